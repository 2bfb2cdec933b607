#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_list_cache: waiting for the first list, and what becomes of lists when
# workers are replaced or die while one is being fetched.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => { listChanged => JSON::PP::true() } },
    'tools/list' => sub {
        my ($r) = @_;

        my $held = $Mcp::Upstream::V{hold};
        my $answer = Mcp::Upstream::result($r, { tools => [
            map { { name => $_ } } split / /, $Mcp::Upstream::V{tools} || 'a' ]
        });

        # a client's own exchange is not held
        return ([until => $held], [json => $answer])
            if $held && !$r->{headers}{'x-client'};

        return [json => $answer];
    },
    GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
));

my $big = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => sub {
        my ($r) = @_;

        my @tools = map { { name => "tool-$_", description => 'x' x 100 } }
                    1 .. 3000;

        return ([until => 'go'],
                [json => Mcp::Upstream::result($r, { tools => \@tools })]);
    },
));

my $conf = <<'EOF';
mcp_zone zone=main:8m;
mcp_drain_time 200ms;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_list_cache   on ttl=1h;
    mcp_batch        on;
    mcp_stream_after 100ms;

    location = /mcp   { mcp_endpoint zone=main name=one;
                        mcp_upstream up /_up; }
    location = /plain { mcp_endpoint zone=main name=plain;
                        mcp_upstream up /_up;
                        mcp_stream_after 0; }
    location = /slow  { mcp_endpoint zone=main name=slow;
                        mcp_upstream up /_up; }

    location = /big   { mcp_endpoint zone=main name=big;
                        mcp_upstream big /_big; }

    location = /_big { internal; proxy_pass http://127.0.0.1:%%BIG%%; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%;
                      proxy_set_header X-Worker $pid;
                      proxy_set_header X-Endpoint $mcp_endpoint;
                      proxy_set_header X-Session $mcp_session_id; }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOF

my $t = Mcp::Test->new(vars => { UP => $up->port, BIG => $big->port },
                       conf => $conf);
my @w = $t->workers;
my ($r, $e, %s, %g);
my $mark = 0;

$t->allow_log(qr/cached list stays/);


my @conns = map { $t->conn_on_worker($_) } @w;


# the first list is waited for, by all

$up->set(hold => 'cold');

my $slow = $t->session(path => '/slow', headers => { 'X-Client' => 1 },
                       accept => 'application/json');
my $pending = $slow->send_only($slow->message('tools/list'));
ok(wait_for { $up->calls('tools/list') == 1 }, 'a list is being fetched');

$s{a} = $t->session(conn => $conns[0]);
$s{b} = $t->session(conn => $conns[1]);

my $sse = $s{a}->stream('tools/list', undef, conn => $t->conn);
like($sse->headers->{'content-type'}, qr/event-stream/,
     'who waits is given a stream');

$s{plain} = $t->session(path => '/plain');
my $plain = $s{plain}->message('tools/list');
my $conn = $s{plain}->send_only($plain);

my $gone = $s{plain}->send_only($s{plain}->message('tools/list'));
my $cancelled = $s{plain}->send_only($s{plain}->message('tools/list', undef,
                                                        id => 'x'));
ok(wait_for { calls_running() == 5 }, 'all wait');

$gone->close;
$s{plain}->notify('notifications/cancelled', { requestId => 'x' });
$r = $cancelled->response;
is($r->{status}, 202, 'one was cancelled');

my $old = $t->session(version => '2025-03-26', path => '/plain');
my $batch = $old->send_only([ $old->message('ping'),
                              $old->message('tools/list') ]);
my $ended = $t->session(path => '/plain');
my $last = $ended->send_only($ended->message('tools/list'));
ok(wait_for { calls_running() >= 5 }, 'others wait');
$ended->delete;
is($last->response->{status}, 404, 'the session of one has ended');

ok(wait_for { $up->calls('tools/list') == 3 }, 'one request for each');
$up->set(hold => '');
$up->release('cold');

$e = $sse->response($sse->{id});
is(tools($e->{json}), 'a', 'on the stream');
is(tools(json_decode($conn->response->{body})), 'a', 'as JSON');
is(join(' ', map { tools($_) } @{ json_decode($batch->response->{body}) }),
   ' a', 'in a batch');
ok(wait_for { calls_running() == 0 }, 'nobody is left');
is(tools($slow->read_response($pending->response)->{json}), 'a',
   'and elsewhere');


# a list that is too large to be kept for resuming

my $many = $t->session(path => '/big');
my @wait = map { $many->stream('tools/list', undef, conn => $_) }
           $t->conn, $t->conn(rcvbuf => 4096), $t->conn;

(pop @wait)->close;
$big->release('go');

for my $stream (@wait) {
    $e = $stream->response($stream->{id});
    is(scalar @{ $e->{json}{result}{tools} }, 3000, 'a large list');
    ok($stream->eof, 'ends its stream');
}


# not for ever

$up->set(hold => 'never');
$slow = $t->session(path => '/slow', headers => { 'X-Client' => 1 },
                    accept => 'application/json');

$t->publish(notification('tools/list_changed'));
ok(wait_for { grep { !$_->{ended} } $up->calls('tools/list') },
   'a list is fetched again');
is(tools($slow->call('tools/list')), 'a', 'that is not waited for');
$up->set(hold => '');
$up->release('never');
ok(wait_for { listeners() == 3 }, 'listeners are up');


# a new configuration in the middle of a refresh

$g{$_} = $s{$_}->open_get(conn => $t->conn) for qw(a b);

$up->set(hold => 'reload');
$mark = $up->count;
change('b');
ok(wait_for { owner() }, 'it is being fetched');

ok($t->reload, 'reload');
$up->set(hold => '');
$up->release('reload');

@w = $t->workers;
$s{a}{conn} = $t->conn_on_worker($w[0]);
$s{b}{conn} = $t->conn_on_worker($w[1]);

hears($_) for qw(a b);
is(tools($s{$_}->call('tools/list')), 'b', "$_ has the new list") for qw(a b);
quiet('once');
ok($t->wait_old, 'the old workers are gone');


# the owner dies in the middle of a refresh

for my $how ('while it fetches', 'while nothing happens') {
    ok(wait_for { listeners() >= 3 }, 'there are listeners');

    $mark = $up->count;

    my ($list, $owner);

    if ($how =~ /fetches/) {
        $up->set(hold => 'kill');
        $list = 'c d';
        change($list);
        ok(wait_for { $owner = owner() }, 'it is being fetched');
        $up->set(hold => '');
        ok($t->kill_worker($owner), "kill -9 of the owner $how");

    } else {
        change($list = 'd e');
        hears($_) for qw(a b);
        $owner = owner();
        $up->set(tools => $list = 'e f');
        ok($t->kill_worker($owner), "kill -9 of the owner $how");
    }

    @w = $t->workers;
    $s{a}{conn} = $t->conn_on_worker($w[0]);
    $s{b}{conn} = $t->conn_on_worker($w[1]);

    hears($_) for qw(a b);
    is(tools($s{$_}->call('tools/list')), $list, "$_ has the new list")
        for qw(a b);
    quiet('once');
}


# the patience of a request has an end

$up->set(hold => 'patience');
my $bytes = $t->status->{zone}{bytes}{lists};
$t->reload(conf => $conf =~ s/name=slow/name=patience/r);
ok((wait_for { $t->status->{zone}{bytes}{lists} < $bytes }),
   'the lists of an endpoint that is removed are dropped');
$slow = $t->session(path => '/slow', headers => { 'X-Client' => 1 },
                    accept => 'application/json');
$mark = $up->count;
my $began = time();
is(tools($slow->call('tools/list')), $up->get('tools'),
   'who waits too long gets its own list');
within(time() - $began, 4, 25, 'after some seconds');
is(scalar(grep { $_->{headers}{'x-client'} } lists()), 1,
   'from the upstream');
$up->release('patience');

done_testing();


sub tools {
    my ($m) = @_;
    return join ' ', map { $_->{name} } @{ $m->{result}{tools} || [] };
}


sub change {
    my ($list) = @_;

    $up->set(tools => $list);
    $up->emit('listen', [event => notification('tools/list_changed')]);
}


# since the mark

sub lists { return grep { $_->{n} >= $mark } $up->calls('tools/list') }

# who fetches for /mcp

sub owner {
    my ($r) = grep { $_->{headers}{'x-endpoint'} eq 'one' } lists();
    return $r && $r->{headers}{'x-worker'};
}


# of the module's own sessions

sub listeners {
    my %client = map { $_->id => 1 } $slow, values %s;

    return scalar grep {
        $_->{method} eq 'GET' && !$_->{ended}
        && !$client{$_->{headers}{'x-session'}}
    } $up->requests;
}


sub calls_running {
    return $t->status->{calls}{running};
}


sub stream {
    my ($who) = @_;

    # streams end with their worker

    for (1 .. 3) {
        my $e = $g{$who}->event_where(sub { $_->{data} ne '' });
        return $e if $e || !$g{$who}->ended;

        $g{$who} = $s{$who}->open_get(conn => $t->conn,
                                      last_event_id => $g{$who}->last_id);
    }

    return undef;
}


sub hears {
    my ($who) = @_;

    my $e = stream($who);
    is($e && $e->{json}{method}, 'notifications/tools/list_changed',
       "$who hears of it");
}


sub quiet {
    my ($name) = @_;

    $t->publish(notification('message',
                             { level => 'info', data => 'marker' }));

    my @loud = grep {
        my $e = stream($_);
        !$e || ($e->{json}{params}{data} || '') ne 'marker';
    } sort keys %g;

    is("@loud", '', $name);
}
