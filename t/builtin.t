#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The tools that the module itself answers: wait_for_event in all its ends,
# session_info, and what a thousand that wait cost.

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX ();

use Mcp::Test;
use Mcp::Node;

my $mcp = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] },
    'tools/call' => sub { return { content => [], mine => 1 } },
    'resources/subscribe' => {},
));

my $t = Mcp::Test->new(
    events => 'worker_connections 4096;',
    vars => { MCP => $mcp->port },
    conf => <<'CONF');
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_tenant         $http_x_tenant;
    mcp_builtin_tools  wait_for_event session_info;
    mcp_call_limit     8;
    mcp_batch          on;
    mcp_stream_after   300ms;
    mcp_stream_heartbeat 200ms;
    mcp_drain_time     200ms;

    location = /mcp  { mcp_endpoint zone=main name=mcp;
                       mcp_tenant "any"; mcp_versions any; }
    location = /two  { mcp_endpoint zone=main name=two; }
    location = /up   { mcp_endpoint zone=main name=up;
                       mcp_upstream mcp /_mcp; }
    location = /many { mcp_endpoint zone=main name=many;
                       mcp_call_limit 1000; mcp_stream_after 0; }

    location = /_mcp { internal; proxy_pass http://127.0.0.1:%%MCP%%/mcp; }
    location = /status { mcp_status zone=main; }

    location = /publish { mcp_publish zone=main; }
}
CONF

my @w = $t->workers;
my ($r, $e, $sse, $conn);

# clients of the SDK check what they get against the schemas

Mcp::Node->check('SDK clients', [ Mcp::Node::node(), 'builtin.mjs',
                                  $t->port ]);


# an event before the call, and behind a position

my $acme = $t->session(path => '/two', headers => { 'X-Tenant' => 'acme' });
my $bold = $t->session(path => '/two', headers => { 'X-Tenant' => 'bold' });

for my $n (1 .. 3) {
    publish({ topic => 'a', tenant_id => 'acme', kind => $n == 2 ? 'x' : 'y',
              n => $n, deep => { list => [ 1, "\x{e9}" ] } });
}

my $first = wait_for_event($acme, { topic => 'a' });
is($first->{event}{n}, 1, 'an event before the call');
is_deeply([ sort keys %$first ], [ qw(event position) ], 'and its position');
my $next = wait_for_event($acme, { topic => 'a',
                                   after => $first->{position} });
is($next->{event}{n}, 2, 'the next one');
is(wait_for_event($acme, { uri => 'events://a/latest',
                           after => $next->{position} })->{event}{n}, 3,
   'by its URI');
is(wait_for_event($acme, { topic => 'a', event_name => 'x' })->{event}{n}, 2,
   'by its name');
is(wait_for_event($acme, { topic => 'a', match => { n => 3.0 } })
   ->{event}{n}, 3, 'by a field');
is(wait_for_event($acme, { topic => 'a', match =>
                           { kind => 'y', deep => { list => [ 1, "\x{e9}" ] },
                             n => 3 } })->{event}{n}, 3, 'by several');
$r = wait_for_event($acme, { topic => 'a', match => { n => '3' },
                             timeout_seconds => 0 });
ok($r->{timeout} && !$r->{event}, 'a string is no number');
is($r->{position}, wait_for_event($acme, { topic => 'a', event_name => 'none',
                                           timeout_seconds => 0.01 })
                   ->{position}, 'the position after all that was looked at');
ok(wait_for_event($bold, { topic => 'a', timeout_seconds => 0 })->{timeout},
   "another tenant's topic is another one");
ok(wait_for_event($t->session(path => '/two',
                              headers => { 'X-Tenant' => 'acme' }),
                  { topic => 'a', timeout_seconds => 0 })->{timeout},
   'what was before the session is not looked at');

$r = $acme->tool('wait_for_event', { topic => 'a' });
utf8::encode($r->{result}{content}[0]{text});
is_deeply(scalar(json_decode($r->{result}{content}[0]{text})),
          $r->{result}{structuredContent}, 'the same as text');

# one that was not kept

publish({ topic => 'many', tenant_id => 'acme', n => $_ }) for 1 .. 40;
$r = wait_for_event($acme, { topic => 'many' });
is($r->{event}{n}, 9, 'the oldest that is kept');
ok($r->{missed}, 'and that some are not');


# waiting, on either worker

for my $w (@w) {
    my $c = call($acme, { topic => 'b' });

    waits(0);
    $conn = $acme->send_only($c, conn => $t->conn_on_worker($w));
    waits(1);
    publish({ topic => 'other', tenant_id => 'acme' });
    publish({ topic => 'b', tenant_id => 'bold' });
    publish({ topic => 'b', tenant_id => 'acme', w => $w });
    $r = answer_of($conn, $c->{id});
    is($r->{event}{w}, $w, 'it comes') or diag(json_encode($r));
    $acme = $t->session(path => '/two', headers => { 'X-Tenant' => 'acme' });
}


# it becomes a stream, with heartbeats

$sse = $acme->stream('tools/call', { name => 'wait_for_event',
                                     arguments => { topic => 'c' } });
ok($sse->comment, 'a stream with heartbeats');
publish({ topic => 'c', n => 1 });
is($sse->response($sse->{id})->{json}{result}{structuredContent}{event}{n}, 1,
   'that has the answer');

# and one whose client left

$sse = $acme->stream('tools/call', { name => 'wait_for_event',
                                     arguments => { topic => 'd' } });
$sse->comment;
my $last = $sse->last_id;
my $id = $sse->{id};
$sse->close;
publish({ topic => 'd', n => 2 });
$sse = $acme->open_get(last_event_id => $last);
is($sse->response($id)->{json}{result}{structuredContent}{event}{n}, 2,
   'the answer waits');

# one that is not a stream has no way to its client any more

waits(0);
$conn = $acme->send_only(call($acme, { topic => 'e' }),
                         headers => { Accept => 'application/json' });
waits(1);
$conn->close;
ok(waits(0), 'who leaves and gets no stream waits no more');

# time, cancellation, limits

$sse = $acme->stream('tools/call', { name => 'wait_for_event', arguments =>
                     { topic => 'f', timeout_seconds => 0.5 } });
ok($sse->response($sse->{id})->{json}{result}{structuredContent}{timeout},
   'the time is over');

my $m = call($acme, { topic => 'f' });
waits(0);
$conn = $acme->send_only($m);
waits(1);
$acme->notify('notifications/cancelled', { requestId => $m->{id} });
ok(waits(0), 'a call is cancelled');
$r = $conn->response('POST');
unlike($r->{body}, qr/result|error/, 'and gets no answer');

my @all = map { my $c = call($acme, { topic => 'g' });
                [ $c, $acme->send_only($c) ] } 1 .. 8;
ok(waits(8), 'eight wait');
is($acme->tool('wait_for_event', { topic => 'g' })->{http}{status}, 503,
   'mcp_call_limit');
publish({ topic => 'g' });
is(scalar(grep { answer_of($_->[1], $_->[0]{id})->{event}{topic} eq 'g' }
          @all), 8, 'all are answered by one event');


# other resources

my $up = $t->session(path => '/up', headers => { 'X-Tenant' => 'acme' });

publish(updated('file:///x'));
ok(wait_for_event($up, { uri => 'file:///x', timeout_seconds => 0 })
   ->{timeout}, 'an update of which nobody wanted to hear');
publish(updated('file:///x'));
$r = wait_for_event($up, { uri => 'file:///x' });
is($r->{event}{params}{uri}, 'file:///x', 'one from then on');
$m = call($up, { uri => 'file:///x', after => $r->{position} });
waits(0);
$conn = $up->send_only($m);
waits(1);
publish(updated('file:///y'));
publish({ kind => 'none', uri => 'file:///x' });
publish(updated('file:///x'));
is(answer_of($conn, $m->{id})->{event}{method},
   'notifications/resources/updated', 'it is waited for');
$up->call('resources/subscribe', { uri => 'file:///z' });
publish(updated('file:///z'));
is(wait_for_event($up, { uri => 'file:///z' })->{event}{params}{uri},
   'file:///z', 'one that came since it was subscribed to');
ok($up->tool('anything')->{result}{mine}, 'other tools are the upstream\'s');


# what is wrong

for ([ {}, qr/either topic or uri/ ],
     [ { topic => 'a', uri => 'b' }, qr/either topic or uri/ ],
     [ { topic => 7 }, qr/topic must be/ ],
     [ { topic => '' }, qr/topic must be/ ],
     [ { topic => 'x' x 513 }, qr/topic must be/ ],
     [ { topic => "a\nb" }, qr/topic must be/ ],
     [ { uri => [] }, qr/uri must be/ ],
     [ { topic => 'a', event_name => 7 }, qr/event_name/ ],
     [ { topic => 'a', match => 'x' }, qr/match must be/ ],
     [ { topic => 'a', match => { a => 'x' x 5000 } }, qr/match must not/ ],
     [ { topic => 'a', timeout_seconds => 601 }, qr/timeout_seconds/ ],
     [ { topic => 'a', timeout_seconds => -1 }, qr/timeout_seconds/ ],
     [ { topic => 'a', timeout_seconds => 'x' }, qr/timeout_seconds/ ],
     [ { topic => 'a', after => 1.5 }, qr/after/ ],
     [ { topic => 'a', after => 'x' }, qr/after/ ],
     [ { topic => 'a', more => 1 }, qr/unknown argument/ ])
{
    $r = $acme->tool('wait_for_event', $_->[0]);
    ok($r->{result}{isError}
       && $r->{result}{content}[0]{text} =~ $_->[1], "refused: $_->[1]")
        or diag(json_encode($r));
}

is($acme->call('tools/call', { name => 'wait_for_event', arguments => 'x' })
   ->{error}{code}, -32602, 'arguments that are no object');
is($acme->call('tools/call', { name => 'nothing' })->{error}{code}, -32602,
   'a tool that is not there');
is($acme->call('tools/call', {})->{error}{code}, -32602, 'no name');


# session_info

my $s = $t->session(path => '/two', headers => { 'X-Tenant' => 'info' },
                    caps => { roots => {} });
my $get = $s->open_get;

$s->call('resources/subscribe', { uri => 'file:///a' });
$s->call('logging/setLevel', { level => 'warning' });
publish(notification('n', undef, session_id => $s->id));
$get->method('notifications/n');
$s->call($_) for qw(ping tools/list tools/list no/such);

$r = $s->tool('session_info')->{result}{structuredContent};
is($r->{session_id}, $s->id, 'session_info');
is($r->{endpoint}, 'two', 'endpoint');
is_deeply($r->{client}, { info => { name => 'mcp-test', version => '1.0' },
                          capabilities => { roots => {} } }, 'client');
is($r->{protocol_version}, '2025-11-25', 'revision');
is_deeply($r->{subscriptions}, [ 'file:///a' ], 'subscriptions');
is($r->{log_level}, 'warning', 'level');
is($r->{open_streams}, 1, 'streams');
is($r->{calls}, 7, 'all requests, whoever answered them');
is($r->{events}, 1, 'events');
is($r->{time_left_seconds}, 1800, 'time left');
like($r->{created}, qr/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'created');


# a batch

my $batch = $t->session(path => '/two', version => '2025-03-26',
                        headers => { 'X-Tenant' => 'acme' });
waits(0);
$conn = $batch->send_only([ call($batch, { topic => 'h' }),
                            $batch->message('ping') ]);
waits(1);
publish({ topic => 'h' });
$r = $batch->read_response($conn->response('POST'));
is(scalar(grep { $_->{result} } map { ref eq 'ARRAY' ? @$_ : $_ }
          @{ $r->{messages} }), 2, 'in a batch');


# the session ends, a worker dies, nginx is reloaded

$sse = $s->stream('tools/call', { name => 'wait_for_event',
                                  arguments => { topic => 'i' } });
$sse->comment;
my $waiting = $s->send_only(call($s, { topic => 'i' }),
                            headers => { Accept => 'application/json' });
ok(waits(2), 'two wait');
$s->delete;
ok(waits(0), 'none when their session has ended');
ok($sse->eof, 'its stream ends with the session');
is($waiting->response('POST')->{status}, 404, 'and so do others');

my $victim = $t->conn_on_worker($w[0]);
$sse = $acme->stream('tools/call', { name => 'wait_for_event',
                                     arguments => { topic => 'j' } },
                     conn => $victim);
$sse->comment;
($last, $id) = ($sse->last_id, $sse->{id});
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by $w[0]\b/);
kill 'KILL', $w[0];
wait_for { !grep { $_ == $w[0] } $t->workers };
ok(waits(0), 'none when their worker has died');
$sse = $acme->open_get(last_event_id => $last);
is($sse->response($id)->{json}{error}{code}, -32603, 'a worker that died');

@all = map { my $c = call($acme, { topic => 'k', timeout_seconds => 600 });
             [ $c, $acme->send_only($c) ] } 1 .. 4;
ok(waits(4), 'four wait');
publish({ topic => 'k2', tenant_id => 'acme' });
$t->reload;
my @got = map { answer_of($_->[1], $_->[0]{id}) } @all;
is(scalar(grep { $_->{timeout} && defined $_->{position} } @got), 4,
   'old workers let go at a reload');
publish({ topic => 'k', tenant_id => 'acme', n => 5 });
is(wait_for_event($acme, { topic => 'k', after => $got[0]{position} })
   ->{event}{n}, 5, 'and nothing is missed');
ok($t->wait_old, 'they are gone');


# a thousand

my $n = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) > 1200 ? 1000 : 500;
my $many = $t->session(path => '/many', headers => { 'X-Tenant' => 'm' });

@all = map { my $c = call($many, { topic => 'all', timeout_seconds => 300 });
             [ $c, $many->send_only($c) ] } 1 .. $n;
ok(waits($n), "$n wait");

my @workers = $t->workers;
my $ticks;

# nothing can be awaited where nothing is to happen; the workers may have
# something to finish at first

for (1 .. 5) {
    my $before = ticks(@workers);

    select undef, undef, undef, 1;

    $ticks = ticks(@workers) - $before;
    last if $ticks <= 2;
}

cmp_ok($ticks, '<=', 2, 'who waits takes no time');
publish({ topic => 'all', n => $n });
is(scalar(grep { answer_of($_->[1], $_->[0]{id})->{event}{n} == $n } @all),
   $n, 'one event answers them all');
ok(waits(0), 'and none waits');

done_testing();


sub publish { ($r = $t->publish(@_))->{json} }


sub updated {
    return notification('resources/updated', { uri => $_[0] });
}


sub call {
    my ($session, $arguments) = @_;

    return $session->message('tools/call', { name => 'wait_for_event',
                                             arguments => $arguments });
}


sub wait_for_event {
    my ($session, $arguments) = @_;

    return $session->tool('wait_for_event', $arguments)
           ->{result}{structuredContent};
}


# the result of a call, however it is answered

sub answer_of {
    my ($c, $of) = @_;

    my $res = $c->response('POST', stream => 1);
    my $type = $res->{headers}{'content-type'} || '';
    my $json;

    if ($type =~ /event-stream/) {
        $json = Mcp::Sse->new($res)->response($of)->{json};

    } else {
        $res->{reader}->slurp(10);
        $json = json_decode($res->{reader}{out});
    }

    return $json->{result}{structuredContent} || {};
}


# so many calls run

sub waits {
    my ($n) = @_;
    return wait_for { $t->status->{calls}{running} == $n };
}


sub ticks {
    my $sum = 0;

    for my $pid (@_) {
        my @f = split / /, Mcp::Test::slurp_file("/proc/$pid/stat") =~
                           s/^.*\) //sr;
        $sum += $f[11] + $f[12];
    }

    return $sum;
}
