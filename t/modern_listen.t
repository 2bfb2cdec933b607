#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Changes at upstreams of revision 2026-07-28, which tell of them on a stream
# that the module holds for all: subscriptions, lists, gaps, reloads.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Test;

my $KEY = 'io.modelcontextprotocol/';
my $clock = Mcp::Clock->new;

my $up = Mcp::Upstream->new(Mcp::Upstream::modern(
    capabilities => {
        tools => { listChanged => JSON::PP::true },
        resources => { subscribe => JSON::PP::true,
                       listChanged => JSON::PP::true },
    },
    'tools/list' => { tools => [] },
    'resources/list' => { resources => [] },
));

my $none = Mcp::Upstream->new(Mcp::Upstream::modern(
    capabilities => { resources => {} },
    'subscriptions/listen' => sub {
        my ($r) = @_;
        return [http => 404, {}, json_encode(Mcp::Upstream::error($r, -32601,
                                                          'Method not found'))];
    },
));

# one that ends each stream at once

my $ends = Mcp::Upstream->new(Mcp::Upstream::modern(
    capabilities => { resources => { subscribe => JSON::PP::true } },
    'subscriptions/listen' => sub {
        my ($r) = @_;
        return ([sse => {}], [event => Mcp::Upstream::tagged_with($r, {
                    jsonrpc => '2.0',
                    method => 'notifications/subscriptions/acknowledged',
                    params => { notifications =>
                                $r->{json}{params}{notifications} } })],
                [event => Mcp::Upstream::result($r, {
                    resultType => 'complete' })]);
    },
));

# one of an earlier revision, where each client has a stream of its own

my $old = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => { listChanged => JSON::PP::true } },
    'tools/list' => { tools => [] },
    GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) },
));

my $t = Mcp::Test->new(vars => { UP => $up->port, NONE => $none->port,
                                 ENDS => $ends->port, OLD => $old->port },
                       conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
    }

    location = /none {
        mcp_endpoint zone=main;
        mcp_upstream none /_none protocol=modern;
    }

    location = /ends {
        mcp_endpoint zone=main;
        mcp_upstream ends /_ends protocol=modern;
    }

    location = /both {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_upstream old /_old protocol=legacy;
    }

    location = /_old  { internal; proxy_pass http://127.0.0.1:%%OLD%%/; }
    location = /_up   { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_ends { internal; proxy_pass http://127.0.0.1:%%ENDS%%/; }
    location = /_none { internal; proxy_pass http://127.0.0.1:%%NONE%%/; }
}
CONF

# the newest filter, and how many streams are held

sub filter {
    my @r = $up->calls('subscriptions/listen');
    my $n = $r[-1]{json}{params}{notifications};
    return join ' ', sort @{ $n->{resourceSubscriptions} || [] };
}


sub held { wait_for(sub { $up->held('listen') == 1 }) }


sub told {
    my ($method, %params) = @_;
    return [event => notification($method, {
        %params, _meta => { "${KEY}subscriptionId" => 'nginx-mcp' } })];
}


sub updated { $up->emit('listen', told('resources/updated', uri => $_[0])) }


# what a stream gets up to an update of that resource

sub heard {
    my ($get) = @_;
    my @got;

    while (my $e = $get->event(10)) {
        my $m = $e->{json} or next;
        push @got, $m;
        last if ($m->{params}{uri} || '') eq 'x:last';
    }

    return join ' ', map {
        $_->{params}{_meta} ? 'tag' : $_->{params}{uri} || $_->{method}
    } @got;
}


my ($here, $there) = $t->workers;
my $s = $t->session(conn => $t->conn_on_worker($here));
my $o = $t->session(conn => $t->conn_on_worker($there));
my %get = map { $_->{id} => $_->open_get(conn => $t->conn) } $s, $o;


# subscriptions

my $began;

for my $uri ('x:1', 'x:2', 'x:last') {
    $began = time();
    is_deeply($s->call('resources/subscribe', { uri => $uri })->{result}, {},
              "$uri: subscribed");
}

is(filter(), 'x:1 x:2 x:last', 'all are asked for');

# while two streams stand, each is told of by both

my $streams = updated('x:2');

# for 1 s: this process may stand still for longer

ok($streams == 2 || time() - $began >= 1, 'two streams stand for a while')
    or diag($streams);
updated('x:2');
is(join(' ', map {
       $get{ $s->{id} }->method('notifications/resources/updated')
       ->{json}{params}{uri}
   } 1, 2), 'x:2 x:2', 'each update once');

$o->call('resources/subscribe', { uri => 'x:last' });
$o->call('resources/subscribe', { uri => 'x:2' });
is(scalar(grep { /x:2/ } map {
    "@{ $_->{json}{params}{notifications}{resourceSubscriptions} || [] }"
} $up->calls('subscriptions/listen')), 2, 'shared: it is asked for no more');

ok(held(), 'one stream stays');
updated('x:1');
updated('x:2');
updated('x:last');

is(heard($get{ $s->{id} }), 'x:1 x:2 x:last', 'and the next ones');
is(heard($get{ $o->{id} }), 'x:2 x:last', 'to those who subscribed');


# one that the upstream does not tell of

$up->set(refused => ['x:no']);
my $r = $s->call('resources/subscribe', { uri => 'x:no' });
is($r->{error}{code}, -32602, 'a resource that is not told of is refused');
like($r->{error}{message}, qr/does not notify of updates/, 'with the reason');

$r = $t->session(path => '/none')->call('resources/subscribe',
                                        { uri => 'x:1' });
is($r->{error}{code}, -32602, 'so are all where there is no stream');


# lists

ok(held(), 'one stream');
$up->emit('listen', told('tools/list_changed'));
is($get{ $s->{id} }->method('notifications/tools/list_changed')
       ? 1 : 0, 1, 'a changed list');
is($get{ $o->{id} }->method('notifications/tools/list_changed')
       ? 1 : 0, 1, 'for everybody');


# a stream that ends is opened again, and what may be missing is told

$up->drop;
ok(held(), 'the stream stands again');
like(heard($get{ $s->{id} }), qr/x:1|x:last/, 'the gap is told');
is(filter(), 'x:1 x:2 x:last', 'with all that is wanted');


# unsubscribed by the last one

$s->call('resources/unsubscribe', { uri => 'x:1' });
ok(wait_for(sub { filter() eq 'x:2 x:last' }), 'it is told of no more');


# a reload

ok(held(), 'one stream');
ok($t->reload, 'reload');
$_ = $_->open_get(conn => $t->conn) for my ($g, $h) = ($s, $o);
delete @$_{'conn'} for $s, $o;
ok($t->wait_old, 'the old workers are gone');
ok(held(), 'one stream after it');

while ($g->event(0.5)) { }

updated('x:2');
updated('x:last');
is(heard($g), 'x:2 x:last', 'told once');


# a client with a stream of its own at another upstream

{
    my $both = $t->session(path => '/both');
    my $get = $both->open_get(conn => $t->conn);

    $both->call('tools/list');

    ok(wait_for(sub {
        $old->emit('get', [event => notification('message', {
            level => 'error', data => 'hello' })]);
        $get->method('notifications/message', 0.2);
    }), 'a client has a stream of its own at an upstream');

    ok(wait_for(sub { $up->held('listen') == 2 }), 'there is one at another');
    $up->emit('listen', told('tools/list_changed'));
    ok($get->method('notifications/tools/list_changed'),
       'of which the client hears, too');

    $both->delete;
}


# the pauses grow, also if the upstream ends each stream with its result

$s = $t->session(path => '/ends');
is_deeply($s->call('resources/subscribe', { uri => 'x:1' })->{result}, {},
          'a stream that is acknowledged and ends');

for (1 .. 60) {
    $clock->pass($t, 1);
    wait_for { $ends->held == 0 };
}

cmp_ok(scalar $ends->calls('subscriptions/listen'), '<', 15,
       'is opened again after pauses that grow');

done_testing();
