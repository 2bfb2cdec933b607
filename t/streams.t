#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Streams, held and parked: what is said first, heartbeats, who carries the
# line, limits, gaps, slow clients, what a drain tells.

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $note = notification('message', { level => 'info',
                                             data => 'x' x 60000 });
        my $answer = Mcp::Upstream::result($r, { content => [] });

        return ([sse => {}], ([event => $note]) x 400, [event => $answer])
            if $r->{json}{params}{name} eq 'much';
        return { content => [ { type => 'text', text => 'z' x 300000 } ] };
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:64m;
mcp_drain_time 4s;

send_timeout 6s;
gzip on;
gzip_types *;
log_format streams '$request_method $uri $status $mcp_response';
access_log %%DIR%%/streams.log streams;

server {
    %%LISTEN%%
    server_name localhost;

    location = /parked {
        mcp_endpoint zone=main name=parked;
        limit_rate 1k;
        mcp_stream_heartbeat 1s;
        mcp_stream_retry 1500ms;
        mcp_stream_limit 3;
    }

    location = /held {
        mcp_endpoint zone=main name=held;
        limit_rate 1k;
        mcp_stream_park off;
        mcp_stream_heartbeat 1s;
        mcp_stream_retry 1500ms;
        mcp_stream_limit 3;
    }

    location = /quiet {
        mcp_endpoint zone=main name=quiet;
        mcp_stream_heartbeat 0;
        mcp_event_buffer 4;
    }

    location = /large {
        mcp_endpoint zone=main name=large;
        mcp_stream_heartbeat 0;
        mcp_stream_buffer 4m;
        mcp_event_buffer 100;
    }

    location = /up {
        mcp_endpoint zone=main name=up;
        mcp_upstream up /_up;
        mcp_stream_after 0;
        send_timeout 30s;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }

    location = /publish {
        mcp_publish zone=main;
        client_max_body_size 32m;
    }

    location = /publish-quiet {
        mcp_publish zone=main endpoint=quiet;
        client_max_body_size 32m;
    }

    location = /publish-large {
        mcp_publish zone=main endpoint=large;
        client_max_body_size 32m;
    }

    location = /status { mcp_status zone=main; }
}
EOF


for my $body (qw(parked held)) {
    my $s = $t->session(path => "/$body");
    my $conn = $t->conn;

    # after a request that an upstream answered, nginx asks to be told when
    # the connection becomes writable
    $t->session(path => '/up')->call('tools/list', undef, conn => $conn);

    my $get = $s->open_get(headers => { 'Accept-Encoding' => 'gzip' },
                           conn => $conn);

    is($get->status, 200, "$body: GET");
    is($get->headers->{'content-type'}, 'text/event-stream', 'content type');
    is($get->headers->{'cache-control'}, 'no-store', 'is not stored');
    is($get->headers->{'x-accel-buffering'}, 'no', 'nor buffered');
    ok(!$get->headers->{'content-encoding'}, 'nor compressed');
    is($get->headers->{connection}, 'keep-alive',
       'nothing lets a break look like an end');

    my $e = $get->event;
    ok(defined $e->{id} && $e->{data} eq '', 'priming event');
    is($get->retry, 1500, 'after retry');

    ok($get->comment, 'heartbeat');

    # this connection becomes readable, and so writable as well
    $conn->write("\r\n") if $body eq 'held';
    ok($get->comment, 'and another');

    # 400k: far above limit_rate

    publish([ map { event("big $_", 'y' x 20000) } 1 .. 20 ]);
    is(scalar(until_note($get, 'big 20')), 20,
       'many large events arrive at once');

    # the newest carries, the one before takes over

    my $second = $s->open_get;
    $second->event;
    publish(event('one'));
    ok($second->event_where(is_note('one')), 'the newest carries');
    ok(!$get->event(0.5), 'the other does not');
    $get->{comments} = [];
    ok($get->comment, 'but has heartbeats');

    $second->close;
    ok(wait_for { counter('streams', 'open') == 1 }, 'the newest leaves');
    publish(event('two'));

    $e = $get->event;
    ok($e && is_note('two')->($e), 'the other goes on behind it');

    # more than mcp_stream_limit

    my @more = map { $s->open_get } 1 .. 3;
    ok($get->eof, 'one more closes the oldest');
    ok(!$get->cut, 'properly');

    publish(event('three'));
    ok($more[2]->event_where(is_note('three')), 'the newest goes on');

    # DELETE, perhaps on another worker

    is($s->delete->{status}, 200, 'DELETE');
    is(scalar(grep { $_->eof && !$_->cut } @more), 3, 'ends all streams');
}

ok(wait_for { counter('streams', 'open') == 0 }, 'none is open');
is(counter('streams', 'closed_replaced'), 2, 'the replaced are counted');
is(counter('streams', 'closed_session'), 6, 'and those of ended sessions');

ok(wait_for { 5 == grep { m{^GET /held 200 sse} } log_lines() },
   'held streams are logged') or diag(join "\n", log_lines());
ok(wait_for { 5 == grep { m{^GET /parked 200 sse} } log_lines() },
   'parked ones too') or diag(join "\n", log_lines());


# gaps

my $s = $t->session(path => '/quiet');
my $get = $s->open_get;
my $id = $get->event->{id};
$get->close;
wait_for { counter('streams', 'open') == 0 };

publish([ map { event("n$_") } 1 .. 100 ]);

$get = $s->open_get(last_event_id => $id);
my @e = until_note($get, 'n100', 1);

is($e[1]{event}, 'lagged', 'a gap is said');
is($e[1]{json}{missed}, 36, 'with the count');
is($e[-1]{json}{params}{data}, 'n100', 'and what is kept follows');
is(scalar(@e), 3 + 64, 'all of it, behind what makes a client fetch again');
is(counter('events', 'lagged'), 36, 'lost events are counted');
$get->close;

$get = $s->open_get(last_event_id => 'nonsense');
ok($get->event_where(sub { ($_->{event} || '') eq 'lagged' }),
   'an id of others is a gap');
ok(!$get->comment(1.5), 'no heartbeat when it is off');

# where another session has been, and this one not yet

my $fresh = $t->session(path => '/quiet');

publish(event('unseen'));
ok($get->event_where(is_note('unseen')), 'one session has an event');

my $fresh_get = $fresh->open_get(last_event_id => $get->last_id);
@e = until_note($fresh_get, 'unseen', 1);

is($e[0]{event}, 'lagged', 'its id is a gap for another');
ok(is_note('unseen')->($e[-1]), 'which loses nothing by it');

$fresh_get->close;
$get->close;

my $e;
my $old = $t->session(path => '/quiet', version => '2025-06-18');
$get = $old->open_get;
publish(event('first'));
$e = $get->event;
ok($e && is_note('first')->($e), 'no priming event before 2025-11-25');
is($get->retry, 1000, 'but retry');
$get->close;


# slow clients

for my $body (qw(parked held)) {
    my $before = counter('streams', 'closed_slow');
    my $slow = $t->session(path => "/$body");
    my $sse = $slow->open_get(rcvbuf => 4096);
    my $fast = $t->session(path => "/$body")->open_get;

    # what comes is taken from the first byte on, and read when all is there

    my $conn = $t->conn;
    my $text = json_encode([ map { event("s$_", 'y' x 60000) } 1 .. 150 ]);

    $conn->write($conn->format_request('POST', '/publish', {}, $text));

    while (index($fast->{body}{out}, '"data":"s150"') < 0) {
        last if !defined $fast->{body}->more(30) || $fast->ended;
    }

    is($conn->response('POST')->{status}, 202, 'published');
    ok($fast->event_where(is_note('s150')), "$body: who takes it gets all");
    ok(wait_for { counter('streams', 'closed_slow') == $before + 1 },
       'who takes nothing for send_timeout is closed');

    $sse->reset;
    $fast->close;
}

# a client that reads again gets all in order, also when the session has ended

for my $body (qw(parked held)) {
    my $slow = $t->session(path => "/$body");
    my $sse = $slow->open_get(rcvbuf => 4096);

    publish([ map { event("s$_", 'y' x 60000) } 1 .. 64 ]);
    is(join(' ', notes(until_note($sse, 's64'))),
       join(' ', map { "s$_" } 1 .. 64), "$body: read slowly");

    publish([ map { event("t$_", 'y' x 60000) } 1 .. 64 ]);
    $slow->delete;

    ok($sse->eof, 'the session ends, and its stream');
    ok(!$sse->cut, 'as it should');
    my @rest = notes($sse->drain(0));
    cmp_ok(scalar @rest, '>', 2, 'behind what was on its way');
    is("@rest", join(' ', map { "t$_" } 1 .. @rest), 'in order');
    $sse->close;
}


# a stream whose next event was overwritten is cut off

{
    my $before = counter('streams', 'closed_slow');
    my $logged = length $t->log;
    my $slow = $t->session(path => '/large');
    my $sse = $slow->open_get(rcvbuf => 4096);

    # more than the socket takes, and then more than is kept

    my $sent = counter('events', 'out');

    for my $n ([1 .. 95], [96 .. 400], [401 .. 700]) {
        $t->post('/publish-large', {}, json_encode([
            map { event("q$_", 'y' x 60000) } @$n ]));
        wait_for { counter('events', 'out') >= $sent + 95 };
    }

    ok($sse->eof && $sse->cut, 'a stream that is too slow is cut off');
    my @data = notes($sse->drain(0));
    is("@data", join(' ', map { "q$_" } 1 .. @data), 'behind what was written');
    is(counter('streams', 'closed_slow'), $before + 1, 'as it was too slow');

    # on a slow machine, send_timeout may come first

    like(substr($t->log, $logged),
         qr/mcp client (?:is too slow: newer events|did not read from its)/,
         'which the log says');

    $sse = $slow->open_get(last_event_id => $sse->last_id);
    my $e = $sse->event_where(sub { $_->{data} ne '' });
    is($e->{event}, 'lagged', 'when it comes again, it learns of the gap');
    $sse->close;
}

$s = $t->session(path => '/up');
my $sse = $s->stream('tools/call', { name => 'much' });
select undef, undef, undef, 1;

my $notes = 0;

while (my $e = $sse->event) {
    $notes++ if $e->{data} =~ /xxxx/;
    last if ref $e->{json} && exists $e->{json}{result};
}

is($notes, 400, 'a call waits for its client')
    or diag(counter('events', 'lagged'));
ok($sse->eof && !$sse->cut, 'and ends');

# a message that is not kept

$sse = $s->stream('tools/call', { name => 'large', arguments => {} },
                  headers => { Accept => 'text/event-stream' });
my $r = $sse->{json} || ($sse->response($sse->{id}) || {})->{json};
is(length($r->{result}{content}[0]{text}), 300000, 'a large answer');


# other bytes on a stream

$s = $t->session(path => '/parked');
$get = $s->open_get;
$get->event;
$get->conn->write("GET /status HTTP/1.1\r\nHost: x\r\n\r\n");
publish(event('still'));
ok($get->event_where(is_note('still')), 'what a client says is not read');
$get->close;


# a drain, with a client that takes nothing

my @s = map { $t->session(path => '/parked') } 1 .. 40;
my @get = map { $_->open_get } @s;
$_->event for @get;

my $stuck = $t->session(path => '/quiet')->open_get(rcvbuf => 4096);
$t->post('/publish-quiet', {}, json_encode([ map { event('d', 'y' x 60000) }
                                             1 .. 60 ]));

my $start = time();
$t->hup;

# all are read as they come, their lines have the time

my %open = map { $_->conn->sock => $_ } @get;

while (%open) {
    my $can = IO::Select->new(map { $_->conn->sock } values %open);
    my @ready = $can->can_read(30) or last;

    for my $stream (@open{@ready}) {
        my $sock = $stream->conn->sock;

        $stream->pump(0);
        next unless $stream->ended;

        publish(event('late')) if keys %open == @get;
        delete $open{$sock};
    }
}

ok($t->reloaded, 'reload');

is(scalar(grep { $_->cut } @get), 40, 'all streams break off');
is(scalar(grep { $_->retry >= 1500 && $_->retry <= 3000 } @get), 40,
   'each was told when to come back');
ok(keys %{{ map { $_->retry => 1 } @get }} > 10, 'not all at once');

my @at = sort { $a <=> $b } map { ($_->lines)[-1][0] - $start } @get;
ok($at[-1] - $at[0] > 0.8, 'spread over mcp_drain_time') or diag("@at");
ok($t->wait_old, 'the old workers exit, whoever is slow');

my $once = 0;

my @again = map { $s[$_]->open_get(last_event_id => $get[$_]->last_id) }
            0 .. $#s;

publish(event('last'));

for my $i (0 .. $#s) {
    my @late = grep { is_note('late')->($_) }
               $get[$i]->drain(0), until_note($again[$i], 'last');
    $once++ if @late == 1;
    $again[$i]->close;
}

is($once, 40, 'what came meanwhile arrives once');

done_testing();


sub event {
    my ($data, $more) = @_;

    return notification('message', { level => 'info', data => $data,
                                     $more ? (more => $more) : () });
}


sub is_note {
    my ($data) = @_;

    return sub {
        my $m = $_[0]{json};
        ref $m && ref $m->{params} && ($m->{params}{data} || '') eq $data;
    };
}


# the events up to one; with its third argument those without data as well

sub until_note {
    my ($sse, $data, $all) = @_;
    my @events;

    while (my $e = $sse->event) {
        push @events, $e if $all || $e->{data} ne '';
        last if is_note($data)->($e);
    }

    return @events;
}


sub notes { map { ref $_->{json} ? $_->{json}{params}{data} || () : () } @_ }


sub publish {
    my $r = $t->publish($_[0]);
    is($r->{status}, 202, 'published') if $r->{status} != 202;
}


sub counter {
    my ($group, $name) = @_;
    return $t->status->{$group}{$name};
}


sub log_lines { split /\n/, $t->slurp('streams.log') }
