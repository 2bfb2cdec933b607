#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Clients of revision 2026-07-28, which have no sessions, in front of a server
# that has: whose session their requests use, and what is translated.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Test;
use Mcp::Modern;

my $K = $Mcp::Modern::KEY;

my %server = (
    'tools/list' => { tools => [{ name => 'echo',
                                  inputSchema => { type => 'object' } }] },
    'tools/call' => sub {
        my ($r) = @_;
        my $p = $r->{json}{params};
        my $name = $p->{name};

        return { content => [{ type => 'text', text => 'x' x 200000 }] }
            if $name eq 'big';

        if ($name eq 'ask') {
            return ([sse => {}],
                    [event => { jsonrpc => '2.0', id => 'q1',
                                method => 'elicitation/create',
                                params => { message => 'name?' } }],
                    [event => { jsonrpc => '2.0', id => 'q2',
                                method => 'ping' }],
                    [until => 'asked'],
                    [event => Mcp::Upstream::result($r, { content => [] })]);
        }

        if ($name =~ /^(?:progress|hold|long|alone)$/) {
            return ([sse => {}], [tag => $name],
                    [event => notification('progress', {
                        progressToken => $p->{_meta}{progressToken},
                        progress => 1 })],
                    [event => notification('progress', {
                        progressToken => 1, progress => 9 })],
                    [event => notification('message', { level => 'error',
                                                        data => 'log' })],
                    [until => $name],
                    [event => Mcp::Upstream::result($r, { content => [] })]);
        }

        return { content => [{ type => 'text', text => $name }] };
    },
    response => sub { [http => 202, {}, ''] },
);

my $clock = Mcp::Clock->new;
my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(%server));
my $plain = Mcp::Upstream->new(Mcp::Upstream::mcp(%server, sessions => 0));
my @named = map { Mcp::Upstream->new(Mcp::Upstream::mcp(%server)) } 1, 2;

# a session with this one is made when init is released
my $inner = Mcp::Upstream::mcp(%server);
my $slow = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $made = ref $r->{json} && $r->{json}{method} eq 'initialize'
               && $r->{headers}{'x-test-client'};

    return (($made ? ([tag => 'init'], [until => 'init']) : ()), $inner->($r));
});

# one with log levels: it sends messages from the level of the session on

my @levels = qw(debug info warning error);
my %level;
my $logs = Mcp::Upstream->new(Mcp::Upstream::mcp(
    %server,
    capabilities => { tools => {}, logging => {} },
    'logging/setLevel' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{level};

        return [reset =>] if $Mcp::Upstream::V{broken};
        return [json => Mcp::Upstream::error($r, $Mcp::Upstream::V{refuses},
                                             'no')]
            if $Mcp::Upstream::V{refuses};

        $level{$r->{headers}{'mcp-session-id'}} = $name;

        return ($name eq ($Mcp::Upstream::V{late} || '')
                    ? ([tag => 'late'], [until => 'late']) : (),
                [json => Mcp::Upstream::result($r, {})]);
    },
    'tools/call' => sub {
        my ($r) = @_;
        my $from = $level{$r->{headers}{'mcp-session-id'}} || 'warning';
        my $sends = 0;

        return ([sse => {}],
                map({ $sends ||= $_ eq $from;
                      $sends ? [event => notification('message', {
                                             level => $_, data => $_ })]
                             : () } @levels),
                [event => Mcp::Upstream::result($r, { content => [] })]);
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port, PLAIN => $plain->port,
                                 SLOW => $slow->port, LOGS => $logs->port,
                                 ONE => $named[0]->port,
                                 TWO => $named[1]->port }, conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /bound {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_session_bind $http_x_user;
    }

    location = /alone {
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Real-IP;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_call_limit 1;
    }

    location = /plain {
        mcp_endpoint zone=main;
        mcp_upstream plain /_plain;
    }

    location = /slow {
        mcp_endpoint zone=main;
        mcp_upstream slow /_slow;
    }

    location = /two {
        mcp_endpoint zone=main;
        mcp_upstream one /_one;
        mcp_upstream two /_two;
    }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /logs {
        mcp_endpoint zone=main;
        mcp_upstream logs /_logs;
    }

    location = /_logs { internal; proxy_pass http://127.0.0.1:%%LOGS%%/; }
    location = /_plain { internal; proxy_pass http://127.0.0.1:%%PLAIN%%/; }
    location = /_slow { internal; proxy_pass http://127.0.0.1:%%SLOW%%/; }
    location = /_one { internal; proxy_pass http://127.0.0.1:%%ONE%%/; }
    location = /_two { internal; proxy_pass http://127.0.0.1:%%TWO%%/; }
}
EOF

my $c = Mcp::Modern->new($t);

sub said { Mcp::Modern::said(@_) }


# what goes out and comes back

my $r = $c->call('server/discover');
is(said($r), '200 complete', 'discover');
is_deeply([keys %{ $r->{json}{result}{capabilities} }], ['tools'],
          'what the server can');
is($r->{json}{result}{_meta}{"${K}serverInfo"}{name}, 'up', 'what it is');

$up->clear;
$r = $c->call('tools/call', { name => 'echo' }, meta => {
    "${K}clientInfo" => { name => 'me' }, traceparent => '00-1', 'x' => 1,
    progressToken => 7 });
is(said($r), '200 complete', 'a call');
is($r->{json}{result}{content}[0]{text}, 'echo', 'its result');

my ($call) = $up->calls('tools/call');
my ($init) = $up->calls('initialize');
ok($call->{headers}{'mcp-session-id'}, 'it has a session there');
is($call->{headers}{'mcp-protocol-version'}, '2025-11-25',
   'of a revision with sessions');
ok(!exists $call->{headers}{'mcp-method'}, 'no header of another');
is_deeply([sort keys %{ $call->{json}{params}{_meta} }],
          ['progressToken', 'traceparent', 'x'], '_meta without the envelope');
isnt($call->{json}{id}, $r->{json}{id}, 'an id of the session there');
isnt($call->{json}{params}{_meta}{progressToken}, 7, 'and a progress token');
is_deeply($init->{json}{params}{capabilities}, {}, 'nobody can be asked there');
like($call->{headers}{'x-session'}, qr/^[\da-f-]{36}$/,
     '$mcp_session_id chooses a server');
is($init->{headers}{'x-session'}, $call->{headers}{'x-session'},
   'from the beginning on');

$up->clear;
is(said($c->call('tools/call', { name => 'echo' })), '200 complete', 'another')
    for 1 .. 6;
is(scalar $up->calls('initialize'), 0, 'there is one session for all');
my %sessions = map { $_->{headers}{'mcp-session-id'} => 1 }
               $up->calls('tools/call');
is(scalar keys %sessions, 1, 'which all use');
my %ids = map { $_->{json}{id} => 1 } $up->calls('tools/call');
is(scalar keys %ids, 6, 'with ids of their own');

# each worker knows what one has found out

for my $worker ($t->workers) {
    my $message = $c->message('tools/call', { name => 'echo' });
    my $said = $t->conn_on_worker($worker)->request('POST', '/mcp',
                   $c->headers($message), json_encode($message));

    is(json_decode($said->{body})->{result}{_meta}{"${K}serverInfo"}{name},
       'up', 'each worker says what it is');
}

is(said($c->call('tools/list')), '200 complete', 'a list');
is(said($c->call('tools/call', { name => 'big' })), '200 complete',
   'a large result');
is(said($c->call('prompts/get', { name => 'p' })), '404 -32601',
   'a method that it lacks');


# whose session it is

$up->clear;
for my $headers ({ Authorization => 'Bearer a' },
                 { Authorization => 'Bearer b' }, { Cookie => 'a=1' },
                 { 'X-Api-Key' => 'k' }) {
    is(said($c->call('tools/call', { name => 'echo' },
                     headers => $headers)), '200 complete', 'credentials')
        for 1, 2;
}
%sessions = map { $_->{headers}{'mcp-session-id'} => $_->{headers} }
            $up->calls('tools/call');
is(scalar keys %sessions, 4, 'each has a session of its own');
is_deeply([sort map { $_->{headers}{authorization} || '' }
           $up->calls('initialize')], ['', '', 'Bearer a', 'Bearer b'],
          'made with its credentials');

$up->clear;
for my $user (qw(one two one two)) {
    my $b = Mcp::Modern->new($t, path => '/bound',
                             headers => { 'X-User' => $user });
    is(said($b->call('tools/call', { name => 'echo' })), '200 complete',
       "user $user");
}
is(scalar $up->calls('initialize'), 2, 'so has each identity');


# two at a time, whose ids and tokens are equal

my @m = map { $c->message('tools/call', { name => 'progress' },
                          progressToken => 'p' x 200,
                          $_ ? ("${K}logLevel" => 'info') : ()) } 0, 1;
$_->{id} = 5 for @m;

my @s = map { Mcp::Sse->new($c->post($_, undef, stream => 1)) } @m;

for my $i (0, 1) {
    my $e = $s[$i]->method('notifications/progress');
    is_deeply($e->{json}{params}, { progressToken => 'p' x 200,
                                   progress => 1 },
              "call $i: its progress");
}

wait_for { $up->held('progress') == 2 };
$up->release('progress');

for my $i (0, 1) {
    my @rest;

    while (my $e = $s[$i]->event) {
        push @rest, $e->{json};
    }

    is(join(' ', map { $_->{params}{data} || $_->{params}{progress}
                       || "id $_->{id}" } @rest),
       $i ? 'log id 5' : 'id 5', "call $i: its answer, and its log");
}


# a server that wants to ask

$up->clear;
my $s = $c->stream('ask');
my @answers = $up->wait_requests(sub {
    ref $_[0]{json} && !$_[0]{json}{method}
}, 2);
my %answer = map { $_->{json}{id} => $_->{json} } @answers;
is($answer{q1}{error}{code}, -32601, 'it learns that nobody can be asked');
is_deeply($answer{q2}{result}, {}, 'a ping is answered');
$up->release('asked');
is(said({ status => 200, json => $s->event->{json} }), '200 complete',
   'and the call goes on');


# a client that leaves

$up->clear;
$s = $c->stream('hold', {}, progressToken => 'p');
$s->event;
my ($held) = $up->calls('tools/call');
$s->close;
my ($cancel) = $up->wait_requests(sub {
    ref $_[0]{json}
    && ($_[0]{json}{method} || '') eq 'notifications/cancelled'
});
is($cancel->{json}{params}{requestId}, $held->{json}{id},
   'the server learns which request is cancelled');
is($cancel->{headers}{'mcp-session-id'}, $held->{headers}{'mcp-session-id'},
   'in its session');
$up->release('hold');


# a session is kept while a call in it runs, and ends two minutes later

$up->clear;
my $long = Mcp::Modern->new($t, headers => { Authorization => 'Bearer long' });
$s = $long->stream('long', {}, progressToken => 'p');
$s->event;

for (1 .. 5) {
    $clock->pass($t, 50);
    $up->emit('long', [comment => 'on']);
}

is(said($long->call('tools/call', { name => 'echo' })), '200 complete',
   'a call after four minutes');
is(scalar $up->calls('initialize'), 1, 'uses the session of one that runs');
$up->release('long');
is(said({ status => 200, json => $s->event->{json} }), '200 complete',
   'which is answered, too');
($held) = $up->calls('tools/call');
my $ended = sub {
    grep { $_->{headers}{'mcp-session-id'}
           eq $held->{headers}{'mcp-session-id'} }
    $up->requests(sub { $_[0]{method} eq 'DELETE' });
};
is($ended->(), 0, 'it has not ended');
$clock->pass($t, 130);
ok(wait_for(sub { $ended->() }), 'it ends when nobody uses it');


# a client is an address, or an IPv6 network

{
    my $at = sub {
        return Mcp::Modern->new($t, path => '/alone',
                                headers => { 'X-Real-IP' => $_[0] });
    };

    my @runs = map { $at->($_)->stream('alone', {}, progressToken => 'p') }
               '192.0.2.1', '2001:db8:1:1::1';
    $_->event for @runs;

    for (['192.0.2.1', 503], ['192.0.2.2', 200], ['2001:db8:1:1::1', 503],
         ['2001:db8:1:1:2::', 503], ['2001:db8:1:2::1', 200])
    {
        my ($address, $status) = @$_;
        my $r = $at->($address)->call('tools/call', { name => 'echo' });

        is($r->{status}, $status, "beside these, $address may call: $status");
    }

    $up->release('alone');
    is(said({ status => 200, json => $_->event->{json} }), '200 complete',
       'those are answered') for @runs;
}


# a server that forgot the session

$up->clear;
$up->set(forget => 1);
is(said($c->call('tools/call', { name => 'echo' })), '200 complete',
   'another session is made');
is(scalar $up->calls('initialize'), 1, 'once');


# those that come while a session is made wait for it, on each worker

my $first = Mcp::Modern->new($t, path => '/slow');
my @waiting = map { ($_, $_) } $t->workers;

for my $conn (@waiting) {
    my $m = $first->message('tools/call', { name => 'echo' });

    $conn = $t->conn_on_worker($conn);
    $conn->write($conn->format_request('POST', '/slow', $first->headers($m),
                                       json_encode($m)));
}

wait_for { $slow->held('init') };
ok(!wait_for(sub { $slow->held('init') > 1 }, 0.3), 'one makes the session');
$slow->release('init');

for my $conn (@waiting) {
    my $answer = $conn->response('POST');
    like($answer->{body}, qr/"echo"/, 'all are answered');
}


# log levels

my $log = Mcp::Modern->new($t, path => '/logs');

# what a call with this level gets, and then its answer

sub logged {
    my ($want, $conn, $client) = @_;
    my $m = $log->message('tools/call', { name => 'echo' },
                          "${K}logLevel" => $want,
                          $client ? ("${K}clientCapabilities" => $client) : ());
    my $r = $t->post('/logs', $log->headers($m), json_encode($m),
                     conn => $conn);

    return join ' ', map {
        my $j = json_decode($_);
        $j->{params}{data} || $j->{result}{resultType};
    } $r->{body} =~ /^(?:data: )?(\{.*)$/mg;
}

sub levels {
    my $set = join ' ', map { $_->{json}{params}{level} }
                        $logs->calls('logging/setLevel');
    $logs->clear;
    return $set;
}

is(logged(undef), 'complete', 'a call without a level gets no messages');
is(levels(), '', 'and sets none');

for my $worker ($t->workers) {
    is(logged('error', $t->conn_on_worker($worker)), 'error complete',
       "a call gets those of the level that it wants");
}
is(levels(), 'error', 'which is set once for all workers');

for my $worker ($t->workers) {
    is(logged('info', $t->conn_on_worker($worker)),
       'info warning error complete', 'of a lower one as well');
}
is(levels(), 'info', 'which is set once, too');

is(logged('warning'), 'warning error complete', 'and of a higher one');
is(logged(undef), 'complete', 'or of none');
is(levels(), '', 'with the level that is set already');

is(logged('info', undef, { elicitation => {} }), 'info warning error complete',
   'a call of a client that can be asked gets them') for 1, 2;
is(levels(), 'info', 'in its own session');

$logs->set(forget => 1);
is(logged('info'), 'info warning error complete',
   'it is set again in another session');
is(levels(), 'info', 'once');
is(logged('debug'), 'debug info warning error complete', 'and lowered there');
is(levels(), 'debug', 'once');

$logs->set(forget => 1);
is(logged('warning'), 'warning error complete', 'a higher one in another');
$logs->clear;
$logs->set(forget => 1);
is(logged('info'), 'info warning error complete',
   'one that is asked for where the session is lost');
is(levels(), 'info info', 'is asked for again in the next session');

# one that the server does not take

for (['refuses', -32602], ['refuses', -32603], ['broken', 1],
     ['refuses', -32601])
{
    my ($how, $value) = @$_;
    my $never = $value == -32601;
    my $what = "$how $value";

    $logs->set(forget => 1);
    $logs->set($how => $value);
    is(logged('info'), 'warning error complete',
       "a call goes on if the level is not taken ($what)") for 1, 2;
    is(levels(), $never ? 'info' : 'info info',
       $never ? 'and is not asked again' : 'and is asked again');

    is(logged('error'), 'error complete',
       'so does one with another level');
    is(levels(), $never ? '' : 'error', 'which is the one that is asked for');

    $logs->set($how => 0);
    is(logged('info'), ($never ? '' : 'info ') . 'warning error complete',
       'later');
    is(levels(), $never ? '' : 'info', 'it is set where it can be');
}

# one is set while the answer about a higher one has not come

$logs->set(forget => 1);
$logs->set(late => 'error');
my $late = $log->send_only($log->message('tools/call', { name => 'echo' },
                                         "${K}logLevel" => 'error'));
wait_for { $logs->held('late') };
is(logged('info'), 'info warning error complete', 'the lower one counts');
$logs->release('late');
$late->response('POST');
is(levels(), 'error info info', 'and is set again after the higher one');
is(logged('info'), 'info warning error complete', 'for later calls');
is(levels(), '', 'without more');

is(scalar $up->calls('logging/setLevel'), 0,
   'none is set at a server without messages');


# one that has none, and several

my $p = Mcp::Modern->new($t, path => '/plain');
is(said($p->call('tools/call', { name => 'echo' })), '200 complete',
   'a server that gives no session id') for 1, 2;
is(scalar grep({ $_->{headers}{'x-test-client'} } $plain->calls('initialize')),
   1, 'is asked for one once');

my $two = Mcp::Modern->new($t, path => '/two');
$r = $two->call('tools/list');
is(said($r), '200 complete', 'a list of two servers');
is_deeply([map { $_->{name} } @{ $r->{json}{result}{tools} }],
          ['one__echo', 'two__echo'], 'has the tools of both');
is(said($two->call('tools/call', { name => 'two__echo' })), '200 complete',
   'a tool of the second');
is(said($two->call('tools/call', { name => 'no' })), '400 -32602',
   'a tool of neither');

done_testing();
