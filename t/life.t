#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Reloads, killed workers and resuming, with calls running and streams open.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};
        my $answer = Mcp::Upstream::result($r, {
            content => [{ type => 'text', text => $name }] });

        return ([until => $name], [json => $answer]) if $name =~ /^json/;

        return (
            [sse => {}],
            [event => notification('message',
                                   { level => 'info', data => 'begun' })],
            [until => $name],
            [event => $answer],
        );
    },
    GET => sub { return ([sse => {}], [tag => 'listener'], [hang =>]) },
));

# opens its streams when it is told to

my $late_gets = 0;
my $late = Mcp::Upstream->new(Mcp::Upstream::mcp(
    GET => sub {
        return ([until => 'get-' . ++$late_gets], [sse => {}], [hang =>]);
    },
));

my $conf = <<'EOF';
mcp_zone zone=main:4m;
mcp_drain_time 500ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /soon {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_builtin_tools wait_for_event;
        mcp_stream_after 10ms;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }

    location = /late {
        mcp_endpoint zone=main;
        mcp_upstream late /_late;
    }

    location = /_late {
        internal;
        proxy_pass http://127.0.0.1:%%LATE%%/mcp;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my $t = Mcp::Test->new(vars => { UP => $up->port, LATE => $late->port },
                       conf => $conf);


# a reload with calls running and a stream open

my $s = $t->session;
my $get = $s->open_get;
is($get->status, 200, 'GET is open');
ok(defined $get->event->{id}, 'and primed');

my $sse = $s->stream('tools/call', { name => 'sse-reload' });
ok($sse->event_where(data('begun')), 'a streamed call runs');

my $waits = $s->send_only($s->message('tools/call', { name => 'json-reload' }));
$up->wait_requests(sub {
    ref $_[0]{json} && ($_[0]{json}{params}{name} || '') eq 'json-reload'
});

is(publish('before'), 202, 'an event before the reload');
ok($get->event_where(data('before')), 'arrives');

ok($t->reload, 'reload');

ok($get->eof, 'the idle stream is ended');
ok($get->cut, 'so that every client comes back');
ok($get->retry >= 1000 && $get->retry <= 2000, 'with a retry of its own');

is(publish('between'), 202, 'an event while nothing is open');

my $again = $s->open_get(last_event_id => $get->last_id);
is($again->status, 200, 'the client resumes on a new worker');
ok($again->event_where(data('between')), 'and has missed nothing');

$up->release('sse-reload');
my $e = $sse->event_where(\&answer);
is($e->{json}{result}{content}[0]{text}, 'sse-reload',
   'the call on the old worker ends with its answer');
ok($sse->eof, 'and its stream');
$sse->close;

$up->release('json-reload');
my $r = $waits->response('POST');
is(json_decode($r->{body})->{result}{content}[0]{text}, 'json-reload',
   'so does the one that answers in JSON');
$waits->close;

ok($t->wait_old, 'old workers exit once the last call has ended');

is($s->call('ping')->{http}{status}, 200, 'the session goes on');
$again->close;


# a worker is killed with a streamed call running

my ($one, $two) = $t->workers;

$sse = $s->stream('tools/call', { name => 'sse-kill' },
                  conn => $t->conn_on_worker($one));
ok($sse->event_where(data('begun')), 'a call runs on one worker');

my $new = $t->kill_worker($one);
ok($new, 'which is killed and replaced');
ok($sse->eof, 'its connection is lost');

$get = $s->open_get(last_event_id => $sse->last_id,
                    conn => $t->conn_on_worker($two));
$e = $get->event_where(\&answer);
is($e->{json}{error}{code}, -32603, 'resumed, the call is answered');
is($e->{json}{error}{data}{reason}, 'worker died, the call may have run',
   'with what may have happened');
is($e->{json}{id}, $sse->{id}, 'under its id');
ok($get->eof, 'and the stream ends');

is($s->call('ping')->{http}{status}, 200, 'the session goes on');
$up->release('sse-kill');


# a client that leaves only detaches

$sse = $s->stream('tools/call', { name => 'sse-left' },
                  conn => $t->conn_on_worker($two));
ok($sse->event_where(data('begun')), 'a call runs');
my $last = $sse->last_id;
$sse->close;

$get = $s->open_get(last_event_id => $last, conn => $t->conn_on_worker($new));
is($get->status, 200, 'its client comes back to another worker');
$up->release('sse-left');
$e = $get->event_where(\&answer);
is($e->{json}{result}{content}[0]{text}, 'sse-left', 'and gets the answer');
ok($get->eof, 'the stream ends after it');

$get = $s->open_get(last_event_id => $last);
$e = $get->event_where(\&answer);
is($e->{json}{result}{content}[0]{text}, 'sse-left',
   'which is repeated for the same Last-Event-ID');


# the worker that listens at the upstream is killed

$s->delete;
ok((wait_for { $up->held('listener') == 0 }), 'nothing is listened for');
$s = $t->session;

my $away = $s->open_get(conn => $t->conn_on_worker($two));
ok($away->event, 'a stream on one worker');
ok((wait_for { $up->held('listener') == 1 }), 'is listened for upstream');

$get = $s->open_get(conn => $t->conn_on_worker($new));
ok($get->event, 'a newer one on the other worker');

my $gets = $up->count(sub { $_[0]{method} eq 'GET' });
$t->kill_worker($two);

ok($get->eof, 'is ended when who listened dies');
$get = $s->open_get(last_event_id => $get->last_id);
$up->wait_requests(sub { $_[0]{method} eq 'GET' }, $gets + 1);
ok((wait_for { $up->held('listener') == 1 }), 'so that the next one listens');

$up->emit('listener', [event => notification('message',
    { level => 'info', data => 'from upstream' })]);
ok($get->event_where(data('from upstream')),
   'and what the upstream says arrives');


# a client that comes back to a new session with an id of its old one

$s->delete;
ok((wait_for { $up->held('listener') == 0 }), 'nothing is listened for');

$s = $t->session;

for my $name ('sse-old-1', 'sse-old-2') {
    $sse = $s->stream('tools/call', { name => $name });
    ok($sse->event_where(data('begun')), 'a call of the old session');
}

my $old = $s;
$s = $t->session;
$get = $s->open_get(last_event_id => $sse->last_id);
ok($get->event, 'gets the general stream');
ok((wait_for { $up->held('listener') == 1 }), 'for which it is listened');

$up->emit('listener', [event => notification('message',
    { level => 'info', data => 'to the new one' })]);
ok($get->event_where(data('to the new one')), 'and it hears');
$old->delete;


# the session goes in the turn in which the upstream opens its stream

($one, $two) = $t->workers;
my $conn = $t->conn_on_worker($two);

for my $n (1 .. 5) {
    $s = $t->session(path => '/late');
    $get = $s->open_get(conn => $t->conn_on_worker($one));
    ok($get->event, "a stream, $n");
    $late->wait_requests(sub { $_[0]{method} eq 'GET' }, $n);

    kill 'STOP', $one;
    is($s->delete(conn => $conn)->{status}, 200, 'its session is deleted');
    $late->release("get-$n");
    kill 'CONT', $one;

    ok($get->eof, 'and it ends');
}

is_deeply([$t->workers], [$one, $two], 'no worker was lost');


# a session ends while its calls run; their connections can be used again

my $n = 0;

for my $tool (['sse-end', {}], ['json-end', {}],
              [wait_for_event => { topic => 'none', timeout_seconds => 600 }])
{
    for my $where ($one, $two) {
        $s = $t->session(path => '/soon');
        $conn = $t->conn_on_worker($one);
        $sse = $s->stream('tools/call',
                          { name => $tool->[0] . ($tool->[0] =~ /-/ && ++$n),
                            arguments => $tool->[1] }, conn => $conn);

        is($sse->headers->{connection}, 'keep-alive', "$tool->[0] runs");
        is($s->delete(conn => $t->conn_on_worker($where))->{status}, 200,
           'its session ends, by ' . ($where == $one ? 'its' : 'the other')
           . ' worker');

        $e = $sse->response($sse->{id});
        is($e && $e->{json}{error}{code}, -32001, 'it is told so');
        ok($sse->eof && !$sse->cut, 'its stream ends');
        is($t->session->call('ping', undef, conn => $conn)->{http}{status},
           200, 'its connection takes another request');
    }
}

$s = $t->session;
$sse = $s->stream('tools/call', { name => 'sse-end-old' });
ok($sse->event_where(data('begun')), 'a call runs on a worker');
ok($t->reload, 'that is about to exit');
is($s->delete->{status}, 200, 'its session ends');
is($sse->response($sse->{id})->{json}{error}{code}, -32001, 'it is told so');
ok($sse->eof && !$sse->cut, 'its stream ends');
ok($t->wait_old, 'the worker exits');

ok((wait_for { $t->status->{calls}{running} == 0 }), 'no call runs')
    or diag($t->status->{calls}{running});

done_testing();


sub publish {
    my ($data) = @_;

    return $t->publish(notification('message',
                                    { level => 'info', data => $data }))
             ->{status};
}


sub data {
    my ($data) = @_;

    return sub {
        my ($m) = $_[0]{json};
        ref $m && ref $m->{params} && ($m->{params}{data} || '') eq $data;
    };
}


sub answer { ref $_[0]{json} && exists $_[0]{json}{id} }
