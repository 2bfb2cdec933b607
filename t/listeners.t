#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The module's own session at an upstream: its listener, and the subscriptions
# that sessions share there.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();
my $plain = server(GET => sub { [http => 405, { Allow => 'POST' }, ''] });
my $closed = server(initialize => \&refuse_strangers, sessions => 0);
my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(rpc => 1,
    'resources/list' => { resources => [] }));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, PLAIN => $plain->port, RPC => $rpc->port,
              CLOSED => $closed->port },
    conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 500ms;
mcp_upstream_timeout 5s;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_tenant tenant-$http_x_tenant;
        mcp_builtin_tools wait_for_event;
    }

    location = /off {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /limit {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_builtin_tools wait_for_event;
        mcp_call_limit 1;
    }

    location = /plain { mcp_endpoint zone=main; mcp_upstream plain /_plain; }
    location = /rpc   { mcp_endpoint zone=main; mcp_upstream rpc /_rpc; }

    location = /closed {
        mcp_endpoint zone=main;
        mcp_upstream closed /_closed protocol=legacy;
    }

    location = /_up {
        internal;
        proxy_set_header X-Tenant $mcp_tenant;
        proxy_set_header X-Session $mcp_session_id;
        proxy_set_header X-Worker $pid;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /_plain  { internal; proxy_pass http://127.0.0.1:%%PLAIN%%/; }
    location = /_rpc    { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_closed { internal; proxy_pass http://127.0.0.1:%%CLOSED%%/; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my ($one, $two) = $t->workers;
my ($pings, $markers) = (0, 0);
my %clients;


# many sessions, one subscription

my @s = map { session() } 1 .. 4;
my @get = map {
    $s[$_]->open_get(conn => $t->conn_on_worker($_ % 2 ? $one : $two))
} 0 .. 3;
$_->event for @get;

for (0 .. 2) {
    is(subscribe($s[$_], 'file:///a'), 'ok', "session $_ subscribes");
}

is(asked($up, 'resources/subscribe'), 1, 'the upstream is asked once');
is(subscribe($s[0], 'file:///a'), 'ok', 'again');
is(subscribe($s[1], 'file:///b'), 'ok', 'to another resource');
is(asked($up, 'resources/subscribe'), 2, 'for which it is asked');

my $own = ($up->calls('resources/subscribe'))[0]{headers};
my $sid = $own->{'mcp-session-id'};

isnt($own->{'x-session'}, $s[0]->id, 'not on the session of a client');
like($own->{'x-session'}, qr/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
     'but on one of its own');
is($own->{'x-tenant'}, 'tenant-', 'with the tenant of the audience');

ok((wait_for { listening($up, $sid) }), 'it listens there, too');

my ($listener) = grep { $_->{headers}{'mcp-session-id'} eq $sid }
                 listeners($up);
is($listener->{headers}{'x-session'}, $own->{'x-session'},
   'under the same id');

emit($up, $sid, updated('file:///a'));
hears($get[$_], 'file:///a', "session $_ hears of it") for 0 .. 2;
emit($up, $sid, updated('file:///b'));
hears($get[1], 'file:///b', 'one who subscribed to another hears of that');
emit($up, $sid, [updated('file:///a'), updated('file:///b')]);
hears($get[$_], 'file:///a', "session $_, in an array") for 0 .. 2;
hears($get[1], 'file:///b', 'with another after it');
nothing_but(\@get, 'nobody hears anything twice, or what is not for it');
is($s[0]->tool('wait_for_event', { uri => 'file:///a' })
   ->{result}{structuredContent}{event}{params}{uri}, 'file:///a',
   'who waits for it finds it');


# the listener says nothing else

emit($up, $sid, notification('message', { level => 'error', data => 'no' }));
emit($up, $sid, { jsonrpc => '2.0', id => 's1',
                  method => 'sampling/createMessage', params => {} });

my $pong = ping($sid);
is_deeply($pong->{json}{result}, {}, 'a ping on the listener is answered');
is($pong->{headers}{'mcp-session-id'}, $sid, 'on its session');
my ($no) = $up->wait_requests(sub { answers($_[0], 's1') });
is($no->{json}{error}{code}, -32601, 'other requests are refused');
nothing_but(\@get, 'none of it reaches a client');

# a server that tells all of its sessions

for my $r (listeners($up)) {
    emit($up, $r->{headers}{'mcp-session-id'}, changed('tools'));
}

ok($_->method('notifications/tools/list_changed'),
   'a changed list does') for @get;
nothing_but(\@get, 'once');

# a client that has no stream of its own there

{
    $up->set(only => $sid);

    my $s = session();
    my $get = $s->open_get;

    $get->event;
    emit($up, $sid, changed('tools'));
    ok($get->method('notifications/tools/list_changed'),
       'who has no stream there hears of a list by the one for all');
    nothing_but([$get, @get], 'once, and nobody else again');
    $s->delete;
    $up->set(only => '');
}


# of updates, what clients' own streams say of the same is not news

is($s[3]->call('tools/call', { name => 'x' })->{result}{content}[0]{text}, 'x',
   'a client has a session at the upstream');
my ($theirs) = $up->calls('tools/call');
$theirs = $theirs->{headers}{'mcp-session-id'};
isnt($theirs, $sid, 'of its own');

$get[3] = $s[3]->open_get;
$get[3]->event;
is(subscribe($s[3], 'file:///a'), 'ok', 'it subscribes as well');
emit($up, $sid, updated('file:///a'));
emit($up, $theirs, updated('file:///a'));
hears($get[$_], 'file:///a', "session $_ hears of it") for 0 .. 3;
emit($up, $theirs, changed('tools'));
emit($up, $theirs, notification('message', { level => 'error',
                                             data => 'hello' }));
my $e = $get[3]->event;
is($e->{json}{method}, 'notifications/tools/list_changed',
   'a list of which this session alone is told');
$e = $get[3]->event;
is($e->{json}{params}{data}, 'hello', 'and the rest pass');
nothing_but(\@get, 'and no more, and to no other');

my $r = $s[3]->call('tools/call', { name => 'changes' });
is(join(' ', map { $_->{method} || 'answer' } @{ $r->{http}{messages} }),
   'notifications/tools/list_changed notifications/progress answer',
   'on that of a call as well');


# the last one leaves

is(unsubscribe($s[0], 'file:///a'), 'ok', 'one unsubscribes');
is(unsubscribe($s[3], 'file:///a'), 'ok', 'another does');
$s[1]->delete;
is(asked($up, 'resources/unsubscribe', 'file:///b'), 1,
   'the last one for a resource has left by DELETE');
is(count($up, 'resources/unsubscribe', 'file:///a'), 0,
   'another resource has subscribers');
emit($up, $sid, updated('file:///a'));
hears($get[2], 'file:///a', 'who is left hears');
nothing_but([@get[0, 2, 3]], 'who unsubscribed does not');
is(unsubscribe($s[2], 'file:///a'), 'ok', 'the last one unsubscribes');
is(asked($up, 'resources/unsubscribe', 'file:///a'), 1,
   'and the upstream hears of it');
is(unsubscribe($s[2], 'file:///a'), 'ok', 'no harm in doing so twice');
is(count($up, 'resources/unsubscribe'), 2, 'of which it does not');


# two tenants are two audiences

$up->clear;

my $acme = session(headers => { 'X-Tenant' => 'acme' });
my $acme_get = $acme->open_get;
$acme_get->event;
is(subscribe($acme, 'file:///a'), 'ok', 'another tenant subscribes');
my $other = ($up->calls('resources/subscribe'))[0]{headers};
is($other->{'x-tenant'}, 'tenant-acme', 'with its own tenant');
$other = $other->{'mcp-session-id'};
isnt($other, $sid, 'on a session of its own');
is(subscribe($s[0], 'file:///a'), 'ok', 'as does the first');
is(count($up, 'resources/subscribe'), 2, 'each is asked for');

emit($up, $other, updated('file:///a'));
hears($acme_get, 'file:///a', 'the one hears what is its');
nothing_but([@get[0, 2, 3]], 'the other does not');
$acme->delete;
asked($up, 'resources/unsubscribe');


# the upstream forgets everything

ok((wait_for { $up->held($sid) == 1 }), 'it listens again');
$up->clear;
$up->set(forget => 1);
$up->emit($sid, ['cut']);

my ($anew) = $up->wait_requests(sub {
    ref $_[0]{json} eq 'HASH'
    && ($_[0]{json}{method} || '') eq 'resources/subscribe'
    && ($_[0]{headers}{'mcp-session-id'} || '') ne $sid
});
ok($anew, 'an upstream that forgot all is subscribed to again');
$sid = $anew->{headers}{'mcp-session-id'};
is($anew->{json}{params}{uri}, 'file:///a', 'to the same');
emit($up, $sid, updated('file:///a'));
hears($get[0], 'file:///a', 'and goes on');


# the holder is killed

emit($up, $sid, [notification('message', { level => 'info', data => 'x' }),
                 updated('file:///a')], 'id-7');
hears($get[0], 'file:///a', 'an event with an id, and two messages');
ping($sid);
my $holder = holder();
$up->clear;

$t->kill_worker($holder);
my ($next) = $up->wait_requests(sub {
    $_[0]{method} eq 'GET' && $_[0]{headers}{'mcp-session-id'} eq $sid
});
is($next->{headers}{'last-event-id'}, 'id-7',
   'the next one goes on from the last event');
@get = map { my $g = $_->open_get; $g->event; $g } @s[0, 2];
emit($up, $sid, updated('file:///a'));
hears($get[0], 'file:///a', 'on the same session');
is(count($up, 'resources/subscribe'), 0, 'nothing is subscribed to again');
is(count($up, 'initialize'), 0, 'or made anew');


# an event that is not read: the stream begins again behind it

$up->clear;
emit($up, $sid, [map { updated('file:///z') } 1 .. 129], 'id-8');
hears($get[0], 'file:///a', 'an array of too many messages is a gap');
($next) = $up->wait_requests(sub {
    $_[0]{method} eq 'GET' && $_[0]{headers}{'mcp-session-id'} eq $sid
});
is($next->{headers}{'last-event-id'}, 'id-8', 'behind which it goes on');

is(subscribe($s[2], 'file:///c'), 'ok', 'subscriptions go on');
is(asked($up, 'resources/subscribe', 'file:///c'), 1, 'and are asked for');


# a reload

$holder = holder();
$up->clear;
ok($t->reload, 'reload');
@get = map { my $g = $_->open_get; $g->event; $g } @s[0, 2];
ok($t->wait_old, 'old workers exit');
ok((wait_for {
       grep { $_->{headers}{'mcp-session-id'} eq $sid
              && $_->{headers}{'x-worker'} ne $holder } listeners($up)
   }), 'a new one listens on the same session');
emit($up, $sid, updated('file:///c'));
hears($get[1], 'file:///c', 'and all goes on');
is(count($up, 'resources/subscribe'), 0, 'nothing is subscribed to again');
nothing_but(\@get, 'and nothing is said twice');


# the holder dies while the first subscription waits

my %conn = map { $_ => $t->conn_on_worker($_) } $t->workers;
$holder = holder();
my ($beside) = grep { $_ != $holder } keys %conn;
my $waits = $s[0]->send_only($s[0]->message('resources/subscribe',
                                            { uri => 'file:///slow' }),
                             conn => $conn{$beside});
is(asked($up, 'resources/subscribe', 'file:///slow'), 1, 'a slow one is asked');
$t->kill_worker($holder);
ok((wait_for { count($up, 'resources/subscribe', 'file:///slow') > 1 }),
   'the holder dies meanwhile, the next one asks again');
$up->release('slow');
is_deeply(json_decode($waits->response('POST')->{body})->{result}, {},
          'and the client has its answer');
$waits->close;


# refused for all: each for itself

$up->clear;
$up->set(refuse => $sid);
is(subscribe($s[0], 'file:///mine'), 'ok', 'refused on the own session');
my @asked = $up->calls('resources/subscribe');
is(scalar @asked, 2, 'it is tried on that of the client');
isnt($asked[1]{headers}{'mcp-session-id'}, $sid, 'which is another');
my $mine = $asked[1]{headers}{'mcp-session-id'};
my $mine_get = $s[0]->open_get;
$mine_get->event;
emit($up, $mine, updated('file:///mine'));
hears($mine_get, 'file:///mine', 'from where it hears');
is(unsubscribe($s[0], 'file:///mine'), 'ok', 'it unsubscribes');
is(scalar $up->calls('resources/unsubscribe'), 1, 'there');

$up->set(refuse => 'all');
is(subscribe($s[0], 'file:///no'), -32002, 'refused there as well');
$up->set(refuse => '');
emit($up, $sid, updated('file:///no'));
nothing_but([$mine_get], 'and it is not subscribed');

my $known = session(path => '/closed', headers => { Authorization => 'me' });
is(subscribe($known, 'file:///a'), 'ok',
   'an upstream that knows clients alone is asked by these');
is(($closed->calls('resources/subscribe'))[0]{headers}{authorization}, 'me',
   'with what they say of themselves');


# a refusal of what is subscribed to already takes nothing away

{
    my $s = session(path => '/limit');

    is(subscribe($s, 'file:///again'), 'ok', 'one subscribes');

    my ($asked) = grep { $_->{json}{params}{uri} eq 'file:///again' }
                  $up->calls('resources/subscribe');
    my $get = $s->open_get;
    my $waits = $s->send_only($s->message('tools/call', {
        name => 'wait_for_event', arguments => { topic => 't' } }));

    ok((wait_for { $t->status->{calls}{running} == 1 }), 'a call runs');
    is(subscribe($s, 'file:///again'), -32000, 'a second time: refused');
    emit($up, $asked->{headers}{'mcp-session-id'}, updated('file:///again'));
    hears($get, 'file:///again', 'and still hears of it');
    $waits->close;
    $s->delete;
}


# no GET stream, no handshake, no listening

my $p = session(path => '/plain');
is(subscribe($p, 'file:///a'), 'ok', 'an upstream without a GET stream');
is(asked($plain, 'resources/subscribe'), 1, 'is asked');
is(unsubscribe($p, 'file:///a'), 'ok', 'unsubscribe');
is(asked($plain, 'resources/unsubscribe'), 1, 'is passed on');

$p = session(path => '/rpc');
is(subscribe($p, 'file:///a'), 'ok', 'an rpc upstream');
is(count($rpc, 'resources/subscribe'), 0, 'is not asked');

$up->clear;
$p = session(path => '/off');
is(subscribe($p, 'file:///a'), 'ok', 'one that is not listened to');
is(scalar $up->calls('resources/subscribe'), 1, 'is asked');
is(($up->calls('resources/subscribe'))[0]{headers}{'x-session'}, $p->id,
   'on the session of the client');
is(subscribe($s[0], 'events://t/latest'), 'ok', 'a topic');
is(count($up, 'resources/subscribe', 'events://t/latest'), 0,
   'is nothing of an upstream');


$t->allow_log(qr/cut its response/, qr/did not answer initialize/);
done_testing();


sub session {
    my $s = $t->session(path => '/mcp', @_);
    $clients{$s->id} = 1;
    return $s;
}


sub subscribe {
    my ($s, $uri) = @_;
    return outcome($s->call('resources/subscribe', { uri => $uri }));
}


sub unsubscribe {
    my ($s, $uri) = @_;
    return outcome($s->call('resources/unsubscribe', { uri => $uri }));
}


sub outcome {
    my ($r) = @_;
    return $r->{error}{code} if $r->{error};
    return ref $r->{result} eq 'HASH' ? 'ok' : 'none';
}


sub updated {
    return notification('resources/updated', { uri => $_[0] });
}


sub changed {
    return notification("$_[0]/list_changed");
}


sub answers {
    my ($r, $id) = @_;
    return ref $r->{json} eq 'HASH' && !$r->{json}{method}
           && ($r->{json}{id} || '') eq $id;
}


# on sessions of the module's own

sub count {
    my ($server, $method, $uri) = @_;
    return scalar grep { !$uri || ($_->{json}{params}{uri} || '') eq $uri }
        grep { !$clients{$_->{headers}{'x-session'} || ''} }
        $server->calls($method);
}


# waits for one, says how many

sub asked {
    my ($server, $method, $uri) = @_;
    wait_for { count($server, $method, $uri) };
    return count($server, $method, $uri);
}


sub listeners { $_[0]->requests(sub { $_[0]{method} eq 'GET' }) }
sub listening { $_[0]->held($_[1]) }


# on the GET streams of a session there

sub emit {
    my ($server, $session, $message, $id) = @_;
    wait_for { listening($server, $session) };
    return $server->emit($session,
                         [event => $message, $id ? (id => $id) : ()]);
}


# once it is answered all was heard that was said before

sub ping {
    my ($session) = @_;
    my $id = 'ping-' . ++$pings;
    emit($up, $session, { jsonrpc => '2.0', id => $id, method => 'ping' });
    my ($r) = $up->wait_requests(sub { answers($_[0], $id) });
    return $r;
}


sub hears {
    my ($get, $uri, $name) = @_;
    my $e = $get->method('notifications/resources/updated');
    is($e && $e->{json}{params}{uri}, $uri, $name);
}


# a marker for all shows that nothing came before it

sub nothing_but {
    my ($gets, $name) = @_;

    ping($sid);

    my $marker = 'marker-' . ++$markers;
    $t->publish(notification('message',
                             { level => 'error', data => $marker }));

    my @extra;

    for my $get (@$gets) {
        while (1) {
            my $e = $get->event;
            push @extra, 'no marker' unless $e;
            my $data = $e && $e->{json} ? $e->{json}{params}{data} || '' : '';
            last if !$e || $data eq $marker;
            push @extra, $e->{json}{method}
                if $e->{json} && $data !~ /^marker/;
        }
    }

    is("@extra", '', $name);
}


# the worker that listens

sub holder {
    my @get = grep { $_->{headers}{'mcp-session-id'} eq $sid } listeners($up);
    return $get[-1]{headers}{'x-worker'};
}


sub refuse_strangers {
    my ($r) = @_;
    return [http => 401, { 'WWW-Authenticate' => 'Bearer' }, '']
        unless $r->{headers}{authorization};
    return [json => Mcp::Upstream::result($r, {
        protocolVersion => '2025-11-25',
        capabilities => { resources => { subscribe => JSON::PP::true } },
        serverInfo => { name => 'closed', version => '1' },
    })];
}


sub server {
    my (%m) = @_;

    my $subscribe = sub {
        my ($r) = @_;
        my $sid = $r->{headers}{'mcp-session-id'} || '';
        my $refuse = $Mcp::Upstream::V{refuse} || '';

        return [json => Mcp::Upstream::error($r, -32002, 'no')]
            if $refuse && ($refuse eq 'all' || $refuse eq $sid);
        return ([until => 'slow'], [json => Mcp::Upstream::result($r, {})])
            if $r->{json}{params}{uri} =~ /slow/;
        return {};
    };

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { resources => { subscribe => JSON::PP::true },
                          tools => {} },
        'resources/subscribe' => $subscribe,
        'resources/unsubscribe' => {},
        'tools/call' => sub {
            my ($r) = @_;
            my $name = $r->{json}{params}{name};
            my $answer = Mcp::Upstream::result($r, {
                content => [{ type => 'text', text => $name }] });

            return [json => $answer] unless $name eq 'changes';
            return ([sse => {}],
                    [event => updated('file:///a')],
                    [event => changed('tools')],
                    [event => notification('progress', { progressToken => 1,
                                                         progress => 1 })],
                    [event => $answer]);
        },
        GET => sub {
            my ($r) = @_;
            return [http => 404, {}, ''] if $Mcp::Upstream::V{forget};
            return [http => 409, {}, '']
                if ($Mcp::Upstream::V{only} || $r->{headers}{'mcp-session-id'})
                   ne $r->{headers}{'mcp-session-id'};
            return ([sse => {}], [tag => $r->{headers}{'mcp-session-id'}],
                    [hang =>]);
        },
        %m,
    ));
}
