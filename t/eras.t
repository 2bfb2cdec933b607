#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# How protocol=auto finds out the era of an upstream, from each answer to
# server/discover; a server of both eras, which each client meets in its own;
# servers that tell nothing to whom they do not know; deploys that change what
# a server speaks.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;
use Mcp::Modern;

my $KEY = 'io.modelcontextprotocol/';
my $clock = Mcp::Clock->new;

my %is = ('tools/list' => { tools => [
              { name => 'a', inputSchema => { type => 'object' } }] },
          'resources/subscribe' => {});

sub text { return { content => [{ type => 'text', text => $_[0] }] } }

my @listed = (capabilities => { tools => {}, resources => { subscribe => 1 } });
my $legacy = Mcp::Upstream::mcp(%is, @listed, info => { name => 'legacy',
                                                        version => '1' },
    'tools/call' => sub { text('legacy') },
    'resources/unsubscribe' => {},
    GET => sub {
        return [http => 405, {}, ''] unless $Mcp::Upstream::V{stream};
        return ([sse => {}], [tag => 'listen'], [hang =>]);
    });
my $modern = Mcp::Upstream::modern(%is, @listed, info => { name => 'modern',
                                                           version => '2' },
                                   'tools/call' => sub { text('modern') });
my $rpc = Mcp::Upstream::mcp(%is, rpc => 1,
                             'tools/call' => sub { text('rpc') });

# $V{speaks}: legacy, modern, both, rpc; $V{discover}: how that is answered,
# else; $V{slow}: it is not before release of that; $V{token}: whoever has none
# is refused; $V{stream}: legacy has a GET stream

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;

    my $j = ref $r->{json} eq 'HASH' ? $r->{json} : {};
    my $v = \%Mcp::Upstream::V;
    my $speaks = $v->{speaks} || 'both';
    my $is_new = ref $j->{params} eq 'HASH' && ref $j->{params}{_meta} eq 'HASH'
                 && $j->{params}{_meta}{"${KEY}protocolVersion"};

    return [http => 401, { 'WWW-Authenticate' => 'Bearer realm="era"' }, '']
        if $v->{token} && ($r->{headers}{authorization} || '') ne 'Bearer t';

    return ([tag => 'asked'], [until => $v->{slow}],
            [http => 404, {}, 'not found'])
        if ($j->{method} || '') eq 'server/discover' && $v->{slow};

    if (($j->{method} || '') eq 'server/discover' && $v->{discover}) {
        my ($status, $body) = @{ $v->{discover} };

        return [hang =>] if $status eq 'hang';
        return [reset =>] if $status eq 'reset';

        if (ref $body eq 'HASH') {
            $body = { jsonrpc => '2.0', id => $j->{id}, error => $body };
            delete $v->{discover} if $body->{error}{once};
            $body = Mcp::Json::encode($body);
        }

        return [http => $status, { 'Content-Type' => 'application/json' },
                $body];
    }

    return $rpc->($r) if $speaks eq 'rpc';
    return $modern->($r) if $speaks eq 'modern'
                            || $speaks eq 'both' && $is_new;

    # as those SDKs answer that know nothing of the envelope

    return [http => 400, { 'Content-Type' => 'application/json' },
            '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":'
            . '"Bad Request: unsupported protocol version"}}']
        if $is_new;

    return $legacy->($r);
});

my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => 2,
                       conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_capabilities tools resources;

server {
    %%LISTEN%%

    location ~ ^/e/ {
        mcp_endpoint zone=main;
        mcp_tenant $uri;
        mcp_upstream up /_up;
        mcp_upstream_timeout 60s;
    }

    location ~ ^/short/ {
        mcp_endpoint zone=main name=short;
        mcp_tenant $uri;
        mcp_upstream up /_up;
        mcp_upstream_timeout 2s;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
    location = /status { mcp_status zone=main; }
}
EOF

my $n = 0;
my $path;

# an upstream that is not known yet: each tenant has a profile of its own

sub anew {
    my (%v) = @_;
    $path = (delete $v{short} ? '/short/' : '/e/') . ++$n;
    change(speaks => undef, discover => undef, slow => undef, token => undef,
           stream => undef, %v);
    $up->clear;
}

sub change { my %v = @_; $up->set($_ => $v{$_}) for keys %v }

sub text_of {
    my $j = ref $_[0] eq 'HASH' ? $_[0]{json} || $_[0] : {};
    return $j->{result} ? $j->{result}{content}[0]{text} : undef;
}

sub names { join ' ', map { ref $_->{json} eq 'HASH' ? $_->{json}{method}
                                                     : $_->{method} }
                      $up->requests }
sub deleted { $up->wait_requests(sub { $_[0]{method} eq 'DELETE' }) }
sub modern_client { Mcp::Modern->new($t, path => $path, @_) }

# a connection that waits for the acknowledgement of a listening request, and
# that

sub listens {
    my $c = modern_client();
    return $c->send_only($c->message('subscriptions/listen', {
        notifications => { resourceSubscriptions => [@_] } }));
}

sub subscribed {
    return join ' ', sort map { $_->{json}{params}{uri} }
                     $up->calls('resources/subscribe');
}

sub acknowledged {
    my $e = Mcp::Sse->new($_[0]->response('POST', stream => 1))->event(60);
    return json_encode($e->{json}{params}{notifications});
}

my $last;

sub called {
    $last = modern_client(@_)->call('tools/call', { name => 'a',
                                                    arguments => {} });
    return text_of($last);
}


# what the answers to server/discover mean

my $error = sub { [$_[0], { code => $_[1], message => 'no', @_[2 .. $#_] }] };
my @old = (data => { supported => ['2025-11-25'], requested => '2026-07-28' });
my @new = (data => { supported => ['2026-07-28'], requested => '2026-07-28' });

for (['a legacy server', 'legacy', undef, 'legacy'],
     ['-32601', 'legacy', $error->(200, -32601), 'legacy'],
     ['-32601 with 404', 'legacy', $error->(404, -32601), 'legacy'],
     ['405', 'legacy', [405, ''], 'legacy'],
     ['501', 'legacy', [501, ''], 'legacy'],
     ['a page', 'legacy', [200, '<html></html>'], 'legacy'],
     ['a page that says 404', 'legacy', [404, '<html></html>'], 'legacy'],
     ['nothing', 'legacy', [202, ''], 'legacy'],
     ['another result', 'legacy',
      [200, '{"jsonrpc":"2.0","id":"nginx-mcp","result":{}}'], 'legacy'],
     ['older versions alone', 'both', $error->(400, -32022, @old), 'legacy'],
     ['a plain handler', 'rpc', undef, 'rpc'],
     ['a new server', 'modern', undef, 'modern'],
     ['the version, once', 'modern', $error->(400, -32022, @new, once => 1),
      'modern'])
{
    my ($name, $speaks, $discover, $is) = @$_;

    anew(speaks => $speaks, discover => $discover);

    my $s = $t->session(path => $path);

    is(text_of($s->tool('a')), $is, "$name: used as $is");
    is(called(), $is, "$name: also for a client of 2026-07-28");
}

for (['503', [503, ''], 503], ['500', [500, 'oops'], 502],
     ['502', [502, ''], 502], ['a reset', ['reset'], 502],
     ['silence', ['hang'], 504],
     ['refused headers', $error->(400, -32020), 502])
{
    my ($name, $discover, $status) = @$_;

    anew(speaks => 'both', discover => $discover, short => 1);

    my $r = $t->client(path => $path)->initialize;

    is($r->{status}, $status, "$name: says nothing of what it is");
    is(scalar $up->calls('initialize'), 0, "$name: no older revision is tried");

    change(discover => undef);
    ok(wait_for { $t->client(path => $path)->initialize->{status} == 200 },
       "$name: it is asked again");
    ok(deleted(), "$name: and keeps no session of that");
}

like($t->log, qr/answer server.discover: .*status 500.*"protocol=legacy"/,
     'the log says what to do where a server answers like that');
like($t->log, qr/error -32020.*"Mcp-Method"/, 'and whose headers are wrong');


# a server of both eras

anew();

my $s = $t->session(path => $path);
is($s->{server}{serverInfo}{name}, 'legacy', 'a client with a session');
deleted();
is(names(), 'server/discover initialize DELETE', 'the server is asked once');

$up->clear;
is(text_of($s->tool('a')), 'legacy', 'is served as it would be there');
is(scalar(grep { defined $_->{headers}{'mcp-session-id'} }
          $up->calls('tools/call')), 1, 'in a session');
is(called(caps => { sampling => {} }), 'modern',
   'and one of 2026-07-28 likewise');

my ($r) = ($up->calls('tools/call'))[-1];
is($r->{headers}{'mcp-protocol-version'}, '2026-07-28', 'by its own revision');
is_deeply($r->{json}{params}{_meta}{"${KEY}clientCapabilities"},
          { sampling => {} }, 'with its own capabilities');
modern_client()->call('tools/call', { name => 'a', arguments => {} }, meta => {
    "${KEY}clientInfo" => { name => 'mine', version => '9', x => [1] } });
is_deeply(($up->calls('tools/call'))[-1]{json}{params}{_meta}
              {"${KEY}clientInfo"},
          { name => 'mine', version => '9', x => [1] }, 'and its own name');
is(modern_client()->call('server/discover')->{status}, 200, 'it finds out');

is($s->call('resources/subscribe', { uri => 'u:1' })->{error}, undef,
   'a subscription');
is(scalar $up->calls('subscriptions/listen') > 0, 1,
   'changes come by the stream that needs no session');
is(scalar $up->calls('server/discover'), 0, 'nobody asks again');
is($s->delete->{status}, 200, 'the session ends');
ok(deleted(), 'there as well');


# what is known stays while the server cannot be asked, and is asked each hour

sub later {
    my ($name, $want, $known, %v) = @_;

    change(%v);
    $clock->pass($t, 1300) for 1 .. 3;
    $up->clear;
    my $s = $t->client(path => $path);
    is($s->initialize->{status}, 200, "$name: a session");
    ok($up->wait_requests(sub { ref $_[0]{json} eq 'HASH'
                                && $_[0]{json}{method} eq 'server/discover' }),
       "$name: it was asked again");
    ok(wait_for { (called() || '') eq $want }, "$name: $want");
    is(text_of($s->tool('a')), $known, "$name: $known");
}

for my $speaks (qw(legacy both)) {
    my $new = $speaks eq 'both' ? 'modern' : 'legacy';

    anew(speaks => $speaks, short => 1);
    $t->session(path => $path)->delete;

    later("$speaks, silent", $new, 'legacy', discover => ['hang']);
    later("$speaks, 503", $new, 'legacy', discover => [503, '']);
    later("$speaks, still", $new, 'legacy', discover => undef);
}

anew(speaks => 'legacy');
$t->session(path => $path)->delete;
later('upgraded', 'modern', 'legacy', speaks => 'both');


# deploys: calls of sessions go on

anew(speaks => 'legacy');

$s = $t->session(path => $path);
is(text_of($s->tool('a')), 'legacy', 'a call');

for my $speaks (qw(modern legacy modern both legacy both modern)) {
    my $is = $speaks eq 'both' ? 'legacy|modern' : $speaks;

    change(speaks => $speaks, forget => 1);

    # what still works need not be found out to have become more

    like(text_of($s->tool('a')), qr/^(?:$is)$/,
         "$speaks now: a session goes on")
        or diag($s->{last}{body});
    like(called(), qr/^(?:$is)$/, "$speaks now: and others")
        or diag($last->{body});
}


# and so do subscriptions, also those that are made or ended meanwhile

for my $stream (1, 0) {
    my $with = $stream ? 'with a GET stream' : 'without one';

    anew(speaks => 'modern', stream => $stream);

    my @listening = (listens('u:1'), listens('u:2'));

    acknowledged($_) for @listening;
    change(slow => "asked $with");
    change(speaks => 'legacy');
    $up->drop;
    wait_for { $up->held('asked') };

    push @listening, listens('u:3');
    wait_for { $t->status->{listens}{open} == 3 };
    (shift @listening)->close;
    wait_for { $t->status->{listens}{open} == 2 };
    change(slow => undef);
    $up->clear;
    $up->release("asked $with");

    like(acknowledged($listening[1]), qr/"u:3"/,
         "legacy now, $with: what is subscribed to meanwhile is accepted");
    like(acknowledged(listens('u:4')), qr/"u:4"/, "$with: and later");
    ok(wait_for { subscribed() eq 'u:2 u:3 u:4' },
       "$with: the server is asked for what is wanted") or diag(subscribed());

    $clock->pass($t, 5);
    cmp_ok(scalar $up->requests(sub { $_[0]{method} eq 'GET' }), '<', 5,
           "$with: once");

    $_->close for @listening;
    wait_for { $t->status->{listens}{open} == 0 };
    ok(wait_for {
           $clock->pass($t, 10);
           $t->status->{zone}{bytes}{subscriptions} == 0;
       }, "$with: all end");
}


# a server that is silent at first when it is asked what it has become: nothing
# is accepted of which it does not know, and it is asked again

anew(speaks => 'modern', short => 1);

my @listening = listens('u:1');
acknowledged(@listening);

my $failures = () = $t->log =~ /did not answer server.discover/g;

change(slow => 'silent');
change(speaks => 'legacy');
$up->drop;
wait_for { $up->held('asked') };
$up->clear;

push @listening, listens('u:2');
wait_for { $failures < (() = $t->log =~ /did not answer server.discover/g) };
change(slow => undef);
$up->release('silent');

my $accepted = acknowledged($listening[1]);

is($accepted =~ /u:2/ ? 1 : 0, subscribed() =~ /u:2/ ? 1 : 0,
   'no server was asked, and none accepted') or diag($accepted, subscribed());
ok(wait_for { acknowledged(listens('u:3')) =~ /"u:3"/ },
   'it is asked again what it is');


# servers that tell nothing to whom they do not know

my @token = (headers => { Authorization => 'Bearer t' });

for my $speaks (qw(legacy modern both)) {
    my %is = (legacy => $speaks eq 'modern' ? 'modern' : 'legacy',
              modern => $speaks eq 'legacy' ? 'legacy' : 'modern');

    for my $first (qw(legacy modern called)) {
        anew(speaks => $speaks, token => 1);

        my $name = "$speaks, for known ones, $first first";

        my $r = $t->client(path => $path)->initialize;
        is($r->{status}, 401, "$name: a client without a token");
        is($r->{headers}{'www-authenticate'}, 'Bearer realm="era"',
           "$name: with the challenge");

        $r = modern_client()->call('server/discover');
        is($r->{status}, 401, "$name: and one of 2026-07-28");
        is($r->{headers}{'www-authenticate'}, 'Bearer realm="era"',
           "$name: likewise");

        my $s;

        for my $era ($first, qw(legacy modern called)) {

            if ($era eq 'legacy') {
                $s ||= $t->session(path => $path, @token);
                is($s->{server}{serverInfo}{name}, $is{legacy},
                   "$name: a session");
                is(text_of($s->tool('a')), $is{legacy}, "$name: its call");
                next;
            }

            if ($era eq 'modern') {
                my $r = modern_client(@token)->call('server/discover');
                ok($r->{json}{result}{capabilities}{tools},
                   "$name: discovered") or diag($r->{body});
            }

            is(called(@token), $is{modern}, "$name: a call without session");
        }

        $up->clear;
        is(text_of($s->tool('a')), $is{legacy}, "$name: again");
        is(called(@token), $is{modern}, "$name: and again");
        is(join(' ', grep { !/^(?:tools\/list|DELETE)$/ } split / /, names()),
           'tools/call tools/call', "$name: nothing more is asked")
            if $is{modern} eq $speaks || $speaks eq 'both';
        is($t->client(path => $path)->initialize->{status}, 401,
           "$name: still, nobody else gets in");
    }
}

# and become other servers: whoever comes first, with or without a session

for my $turn ([qw(modern legacy)], [qw(legacy modern)], [qw(both legacy)],
              [qw(both modern)], [qw(modern both)])
{
    my ($before, $after) = @$turn;

    for my $alone (0, 1) {
        my $name = "$before, for known ones, becomes $after, "
                   . ($alone ? 'a call' : 'a session') . ' first';
        my $session = sub {
            my $r = $t->client(path => $path, @token)->initialize;
            is($r->{status}, 200, "$name: a new session") or diag($r->{body});
        };
        my $call = sub {
            like(called(@token), qr/^(?:legacy|modern)$/, "$name: a call")
                or diag($last->{body});
        };
        my @both = $alone ? ($call, $session) : ($session, $call);

        anew(speaks => $before, token => 1);
        $_->() for @both;
        change(speaks => $after, forget => 1);
        $_->() for @both;
    }
}

$t->allow_log(qr/./);

done_testing();
