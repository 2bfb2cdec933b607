#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# subscriptions/listen of 2026-07-28: what is acknowledged, what arrives, on
# which worker whatever happens, and how it ends.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Sse;
use Mcp::Test;

my $clock = Mcp::Clock->new;
my $legacy = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => \1 }, tools => {} },
    'tools/list' => sub {
        return { tools => [map {
            { name => "t$_", inputSchema => { type => 'object' } }
        } 1 .. ($Mcp::Upstream::V{tools} || 1)] };
    },
    GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
    'resources/subscribe' => sub {
        my ($r) = @_;
        return [json => Mcp::Upstream::error($r, -32602, 'none')]
            if $r->{json}{params}{uri} =~ /none/;
        return [hang =>] if $r->{json}{params}{uri} =~ /silent/;
        return ([sse => {}],
                [event => notification('resources/updated',
                                       { uri => 'file:///a' })],
                [event => Mcp::Upstream::result($r, {})])
            if $r->{json}{params}{uri} =~ /tells/;
        return {};
    },
));

# one more, which has other resources

my $other_up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => \1 } },
    GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
    'resources/subscribe' => sub {
        my ($r) = @_;
        return [json => Mcp::Upstream::error($r, -32602, 'none')]
            if $r->{json}{params}{uri} !~ /second/;
        return {};
    },
));

my $t = Mcp::Test->new(workers => 2, vars => { LEGACY => $legacy->port,
                                               SECOND => $other_up->port },
                       conf => <<'EOF');
mcp_zone zone=main:32m;

map "$mcp_method $mcp_name" $denied {
    "~^resources/subscribe secret:" 1;
    "resources/subscribe events://secret/latest" 1;
}

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=plain;
        mcp_tenant $http_x_tenant;
        mcp_session_bind $http_x_user;
        mcp_subscription_limit 3;
    }

    location = /topics {
        mcp_endpoint zone=main name=topics;
        mcp_topic_limit 16;
    }

    location = /deny {
        mcp_endpoint zone=main name=deny;
        mcp_deny $denied;
    }

    location = /one {
        mcp_endpoint zone=main name=one;
        mcp_session_limit 1;
    }

    location = /held {
        mcp_endpoint zone=main name=held;
        mcp_stream_park off;
        mcp_stream_heartbeat 1s;
    }

    location = /legacy {
        mcp_endpoint zone=main name=legacy;
        mcp_upstream up /_up protocol=legacy;
    }

    location = /cached {
        mcp_endpoint zone=main name=cached;
        mcp_upstream up /_up protocol=legacy;
        mcp_list_cache on;
    }

    location = /several {
        mcp_endpoint zone=main name=several;
        mcp_upstream up /_up protocol=legacy;
        mcp_upstream second /_second protocol=legacy;
    }

    location = /single {
        mcp_endpoint zone=main name=single;
        mcp_session_limit 1;
        mcp_upstream up /_up protocol=legacy;
    }

    location = /deaf {
        mcp_endpoint zone=main name=deaf;
        mcp_upstream up /_up protocol=legacy listen=off;
        mcp_upstream second /_second protocol=legacy;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%LEGACY%%/; }
    location = /_second { internal; proxy_pass http://127.0.0.1:%%SECOND%%/; }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my $KEY = 'io.modelcontextprotocol/subscriptionId';


sub listen_on {
    my ($path, $id, $filter, %o) = @_;

    my $body = {
        jsonrpc => '2.0', id => $id, method => 'subscriptions/listen',
        params => {
            defined $filter ? (notifications => $filter) : (),
            _meta => {
                'io.modelcontextprotocol/protocolVersion' => '2026-07-28',
                'io.modelcontextprotocol/clientInfo' => { name => 't',
                                                          version => '1' },
                'io.modelcontextprotocol/clientCapabilities' => {},
            },
        },
    };

    my $conn = $o{conn} ? $o{conn}
               : $o{worker} ? $t->conn_on_worker($o{worker}) : $t->conn;

    $conn->write($conn->format_request('POST', $path, {
        'Content-Type' => 'application/json',
        Accept => 'application/json, text/event-stream',
        'MCP-Protocol-Version' => '2026-07-28',
        'Mcp-Method' => 'subscriptions/listen',
        %{ $o{headers} || {} },
    }, json_encode($body)));

    return if exists $o{wait};

    my $r = $conn->response('POST', stream => 1);
    my $sse = Mcp::Sse->new($r);

    if ($r->{headers}{'content-type'} !~ m{^text/event-stream}) {
        $r->{reader}->slurp(10);
        $sse->{json} = Mcp::Http::json_decode($r->{reader}{out});
    }

    return $sse;
}


sub publish {
    my ($tenant, @what) = @_;

    my $r = $t->publish({ %{ notification(@what) }, tenant_id => $tenant });
    is($r->{status}, 202, "published $what[0]");
}


# of decoded JSON, members in their order by name

sub same {
    my ($got, $expected, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(json_encode($got), json_encode($expected), $name);
}


# each frame has the id in its JSON type

my %user = ('X-Tenant' => 'a', 'X-User' => 'u');
my $s = listen_on('/mcp', 4242, { toolsListChanged => \1 },
                  headers => \%user);

is($s->status, 200, 'listens');
is($s->headers->{'content-type'}, 'text/event-stream', 'by a stream');
ok(!$s->headers->{'mcp-session-id'}, 'without a session');

my $e = $s->event;
is($e->{json}{method}, 'notifications/subscriptions/acknowledged',
   'is acknowledged first');
same($e->{json}{params}{notifications}, { toolsListChanged => \1 },
          'what it asked for');
is(json_encode($e->{json}{params}{_meta}{$KEY}), '4242', 'a number stays one');
ok(!defined $e->{id} && !defined $s->retry, 'neither event id nor retry');

my $p = listen_on('/mcp', 'abc', { promptsListChanged => \1,
                                   resourceSubscriptions => [
                                       'events://x/latest', 'file:///r',
                                       'file:///r'] },
                  headers => \%user);
$e = $p->event;
same($e->{json}{params}{notifications},
          { promptsListChanged => \1,
            resourceSubscriptions => ['events://x/latest', 'file:///r'] },
          'resources, each once');
is($e->{json}{params}{_meta}{$KEY}, 'abc', 'a string stays one');

my $other = listen_on('/mcp', 1, { toolsListChanged => \1 },
                      headers => { %user, 'X-Tenant' => 'b' });
$other->event;

publish('a', 'message', { level => 'info', data => 'x' });
publish('a', 'tools/list_changed');
publish('a', 'resources/updated', { uri => 'file:///r' });
publish('a', 'prompts/list_changed', { _meta => { k => 1 } });

$e = $s->event;
same($e->{json}, { jsonrpc => '2.0',
                        method => 'notifications/tools/list_changed',
                        params => { _meta => { $KEY => 4242 } } },
          'what it listens for comes, and nothing before');

$e = $p->event;
same($e->{json}{params}, { _meta => { $KEY => 'abc' },
                                uri => 'file:///r' }, 'an update');
$e = $p->event;
same($e->{json}{params}, { _meta => { $KEY => 'abc', k => 1 } },
          'other members stay');

publish('b', 'tools/list_changed');
is($other->event->{json}{params}{_meta}{$KEY}, 1, 'another tenant has its own');
ok(!$s->event(0.3), 'nothing else came');

is($t->status('/status')->{listens}{open}, 3, 'three listen');
is($t->status('/status')->{sessions}{live}, 0, 'and have no session');


# wrong requests

for ([undef, qr/params.notifications/],
     [{ toolsListChanged => 1 }, qr/true or false/],
     [{ resourceSubscriptions => 'x' }, qr/array/],
     (map [{ resourceSubscriptions => ['a:b', $_] },
           qr/empty or has a control character/], '', "a:\0", "a:\x7f"),
     [{ resourceSubscriptions => [map "a:$_", 1 .. 4] },
      qr/mcp_subscription_limit/])
{
    my $r = listen_on('/mcp', 7, $_->[0], headers => \%user);
    is($r->{json}{error}{code}, -32602, 'refused');
    like($r->{json}{error}{message}, $_->[1], 'with the reason');
}


# what a rule denies to subscribe to cannot be listened for

my $d = listen_on('/deny', 9, { resourceSubscriptions => [
    qw(secret:a open:a events://secret/latest events://%73ecret/latest
       events://secre%74/latest)] });
same($d->event->{json}{params}{notifications},
     { resourceSubscriptions => ['open:a'] }, 'a denied resource is left out');

$t->publish({ topic => 'secret', n => 1 });
$t->publish(notification('resources/updated', { uri => $_ }))
    for 'secret:a', 'open:a';
is($d->event->{json}{params}{uri}, 'open:a', 'and not told of');


# topics without room are left out, and not told of

my $few = listen_on('/topics', 10, { resourceSubscriptions => [
    map { "events://$_/latest" } qw(one two three)] });
same($few->event->{json}{params}{notifications},
     { resourceSubscriptions => ['events://one/latest',
                                 'events://two/latest'] },
     'no more topics than there is room for');

$t->publish({ topic => $_ }) for qw(three one);
is($few->event->{json}{params}{uri}, 'events://one/latest',
   'and told of no other');
$few->close;


# the limit of sessions

my $first = listen_on('/one', 1, { toolsListChanged => \1 });
ok($first->event, 'one may listen');

my $second = listen_on('/one', 2, { toolsListChanged => \1 });
is($second->status, 503, 'another one is refused');
like($second->{json}{error}{message}, qr/mcp_session_limit/, 'with the limit');
$first->close;


# held, heartbeats

my $h = listen_on('/held', 5, { resourcesListChanged => \1 });
ok($h->event && $h->comment, 'a held stream has heartbeats');


# a legacy upstream: its subscriptions are shared, refused ones left out

my ($l, $accepted);

# an upstream that stands still for 2 s is not waited for

for (1 .. 3) {
    my $begin = time();

    $l->close if $l;
    $l = listen_on('/legacy', 6, { resourceSubscriptions => [
                                       'file:///a', 'file:///none'] });
    $accepted = $l->event->{json}{params}{notifications};
    last if time() - $begin < 2;
}

same($accepted, { resourceSubscriptions => ['file:///a'] },
          'what the upstream accepted is acknowledged');

# a part of a resource: also for a session, which has a stream there, once

$legacy->emit('listen', [event => notification('resources/updated',
                                               { uri => 'file:///ab' })]);

{
    my $session = $t->session(path => '/legacy');
    my $get = $session->open_get;

    $session->call('resources/subscribe', { uri => 'file:///a' });
    wait_for { $legacy->held('listen') == 2 };

    # an upstream that needs 2 s for both streams is taken for two updates

    for my $n (1 .. 3) {
        my $begin = time();
        my %got = map { $_ => [] } qw(listen get);

        for my $uri ("file:///a/part?x=$n", 'file:///a') {
            $legacy->emit('listen', [event => notification('resources/updated',
                                                           { uri => $uri })]);
        }

        while (my $e = $l->event(@{ $got{listen} } < 2 ? 30 : 0.3)) {
            push @{ $got{listen} }, $e->{json}{params}{uri};
        }

        while (my $e = $get->method('notifications/resources/updated',
                                    @{ $got{get} } < 2 ? 30 : 2.5))
        {
            push @{ $got{get} }, $e->{json}{params}{uri};
        }

        next if $n < 3 && time() - $begin > 4;

        is(join(' ', sort @{ $got{$_} }), "file:///a file:///a/part?x=$n",
           "$_: a part of a resource, once")
            for qw(listen get);
        last;
    }

    $session->delete;
    wait_for { $legacy->held('listen') == 1 };
}


# an update in the answer to another subscription

{
    my $x = listen_on('/legacy', 7, { resourceSubscriptions => ['r:tells'] });

    same($x->event->{json}{params}{notifications},
         { resourceSubscriptions => ['r:tells'] }, 'another subscription');
    is($l->event->{json}{params}{uri}, 'file:///a',
       'the stream of its answer has an update, which is told');
    $x->close;
}


# changes of lists that the upstream tells

for my $path (qw(/legacy /cached)) {
    my $x = listen_on($path, 8, { toolsListChanged => \1 });
    $x->event;

    wait_for {
        $legacy->held('listen') == ($path eq '/legacy' ? 1 : 2);
    };

    # until a first list is kept, a change may be told before it and after it

    Mcp::Modern->new($t, path => $path)->call('tools/list');

    $legacy->set(tools => $path eq '/legacy' ? 2 : 3);
    $legacy->emit('listen', [event => notification('tools/list_changed')]);

    same($x->event->{json}{params}, { _meta => { $KEY => 8 } },
         "$path: a change of the upstream's list");
    is_deeply($x->event(0.3), undef, "$path: it comes once");
}


# of several upstreams, the one that accepts the resource tells of it

for my $path (qw(/several /deaf)) {
    my ($x, $got);

    for (1 .. 3) {
        my $begin = time();

        $x->close if $x;
        $x = listen_on($path, 9, { resourceSubscriptions => [
                                       'none:second', 'none:at-all'] });
        $got = $x->event->{json}{params}{notifications};
        last if time() - $begin < 2;
    }

    same($got, { resourceSubscriptions => ['none:second'] },
         "$path: acknowledged is what one of them accepts");

    ok(wait_for(sub { $other_up->held('listen') }), 'which is listened to');
    $other_up->emit('listen', [event => notification(
                                   'resources/updated',
                                   { uri => 'none:second' })]);
    is($x->event->{json}{params}{uri}, 'none:second', 'and tells of it');
    $x->close;
}


# one that does not answer

{
    my $x;
    my $conn = $t->conn;

    listen_on('/legacy', 'late', { toolsListChanged => \1,
                                   resourceSubscriptions => ['r:silent'] },
              conn => $conn, wait => 0);
    ok($legacy->wait_requests(sub {
        ref $_[0]{json} && ($_[0]{json}{params}{uri} || '') eq 'r:silent'
    }), 'an upstream is asked, and does not answer');

    $clock->pass($t, 5);
    $x = Mcp::Sse->new($conn->response('POST', stream => 1));
    same($x->event->{json}{params}{notifications},
         { toolsListChanged => \1 }, 'after 5 s the client has the rest');
    like($t->log, qr/\[error\].*"up" did not answer resources.subscribe in 5/,
         'and the log says so');
    $x->close;

    # and a client that does not wait so long makes room for another one

    $conn = $t->conn;
    listen_on('/single', 'gone', { resourceSubscriptions => ['r:silent2'] },
              conn => $conn, wait => 0);
    $legacy->wait_requests(sub {
        ref $_[0]{json} && ($_[0]{json}{params}{uri} || '') eq 'r:silent2'
    });
    is(listen_on('/single', 1, { toolsListChanged => \1 })->status, 503,
       'one that waits has its place');
    $conn->close;
    ok(wait_for(sub {
        $x = listen_on('/single', 1, { toolsListChanged => \1 });
        $x->status == 200;
    }), 'until it leaves');
    $x->close;
}


# both workers

my @on = map {
    my $x = listen_on('/mcp', $_, { toolsListChanged => \1 },
                      headers => \%user, worker => $_);
    $x->event;
    $x;
} $t->workers;

publish('a', 'tools/list_changed');
is($_->event->{json}{method}, 'notifications/tools/list_changed',
   'on each worker') for @on;


# a reload ends it with a result

$t->reload;

for ($s, $p, $h) {
    my $r = $_->event_where(sub { exists $_->{json}{result} });
    is($r->{json}{result}{resultType}, 'complete', 'ends with its result');
    is(json_encode($r->{json}{result}{_meta}{$KEY}),
       json_encode($r->{json}{id}), 'which has the id');
    ok(!$_->event(5), 'and nothing follows');
}

wait_for { $t->status('/status')->{listens}{open} == 0 };
is($t->status('/status')->{listens}{open}, 0, 'subscribers end with streams');


# a dead worker's are gone as well

my $conn = $t->conn;
my $dead = $t->worker_of($conn);

$s = listen_on('/mcp', 1, { toolsListChanged => \1 }, headers => \%user,
               conn => $conn);
$s->event;
$t->kill_worker($dead);

ok(!$s->event(10), 'the stream breaks');
wait_for { $t->status('/status')->{listens}{open} == 0 };
is($t->status('/status')->{listens}{open}, 0, 'its subscriber ends');


# also while they wait for an upstream to accept a subscription

$conn = $t->conn;
$dead = $t->worker_of($conn);

listen_on('/legacy', 1, { resourceSubscriptions => ['r:silent'] },
          conn => $conn, wait => 0);
wait_for { $t->status('/status')->{listens}{open} == 1 };
$t->kill_worker($dead);

$clock->pass($t, 100);
is($t->status('/status')->{listens}{open}, 0,
   'a subscriber whose worker died before its stream was open ends');

done_testing();
