#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Who subscribed to a topic, or began a session, gets the answer when the feeds
# for that are connected: an event that is sent right after the answer is not
# missed.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;
use Mcp::Modern;
use Mcp::Sse;

my $TIMES = 30;

my $f = Mcp::Feed->new;

# a worker has a feed on demand for every eight of its connections

my $t = Mcp::Test->new(vars => { FEED => $f->port },
                       events => 'worker_connections 4096;', conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;
mcp_stream_after 0;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_batch on;
        mcp_invalidate * message=$n;
        mcp_events /_of/$mcp_tenant;
        mcp_events /_about/$mcp_topic;
        mcp_events /_both/$mcp_tenant/$mcp_topic;
    }

    location /_ { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
    location = /status { mcp_status zone=main; }
}
EOF

my @w = $t->workers;
my @conn = map { $t->conn_on_worker($_) } @w;
is(scalar @w, 2, 'two workers');


# an event right after the answer to initialize, on either worker

$f->set("/of/t$_", late => 0.03) for 1 .. $TIMES;

my $heard = 0;

for my $n (1 .. $TIMES) {
    my $before = late();
    my $s = $t->session(headers => { 'X-Tenant' => "t$n" },
                        conn => $conn[$n % 2]);

    # a feed that stands still for 2 s is not waited for, as is logged

    my $gave_up = late() > $before;
    $f->say("/of/t$n", { kind => 'x', n => "tenant $n" });

    my $g = $s->open_get(conn => $t->conn);
    my $e = $g->method('notifications/message', $gave_up ? 0 : undef);

    $heard++ if $gave_up || $e && $e->{json}{params}{data} eq "tenant $n";
    $g->close;
}

is($heard, $TIMES, 'initialize: each event right after it is heard');


# and after that to resources/subscribe, also where another worker has the feed

my (@s, @g);

$heard = 0;

for my $n (1 .. $TIMES) {
    $f->set("/about/s$n", late => 0.03);
    $f->set("/both/a/s$n", late => 0.05);

    # a session may have 32 feeds

    begin('a') if $n % 10 == 1;

    my $uri = "events://s$n/latest";
    my $before = late();

    # one of them is not the holder of the feed

    $s[$_]->send_only($s[$_]->message('resources/subscribe', { uri => $uri }),
                      conn => $conn[$_]) for 0, 1;

    my ($first, $other) = ($n % 2, 1 - $n % 2);
    my $r = answer($conn[$first]);
    my $gave_up = late() > $before;

    $f->say($n % 3 ? "/about/s$n" : "/both/a/s$n", { n => $n });

    $heard++ if $r->{result} && ($gave_up || $g[$first]->event_where(sub {
        ($_->{data} || "") =~ m{"\Q$uri\E"}
    }));

    answer($conn[$other]);
}

is($heard, $TIMES, 'subscribe: each event right after it is heard');


# a client of 2026-07-28 that listens, after the acknowledgement

$heard = 0;

for my $n (1 .. $TIMES) {
    my $uri = "events://l$n/latest";
    my $before = late();

    $f->set($_, late => 0.03) for "/of/l$n", "/about/l$n", "/both/l$n/l$n";

    my $l = Mcp::Sse->new(listens("l$n", $uri,
                                  $t->conn_on_worker($w[$n % 2]))
                          ->response('POST', stream => 1));
    my $e = $l->event;
    my $gave_up = late() > $before;

    $f->say("/of/l$n", notification('tools/list_changed'));
    $f->say($n % 3 ? "/about/l$n" : "/both/l$n/l$n", { n => $n });

    my %came = map { ($l->event($gave_up ? 0 : 10) || {})->{data} || '', 1 }
               1, 2;

    $heard++ if $e->{data} =~ /acknowledged.*\Q$uri\E/
                && ($gave_up || grep({ /tools.list_changed/ } keys %came)
                                && grep({ /\Q$uri\E/ } keys %came));
    $l->close;
}

is($heard, $TIMES, 'listen: each event right after it is heard');


# in a batch

my $b = $t->session(headers => { 'X-Tenant' => 'b' }, version => '2025-03-26');
my $g = $b->open_get;

$f->set("/about/b$_", late => 0.05 * $_) for 1 .. 3;
my $r = $b->post([ map { $b->message('resources/subscribe',
                                     { uri => "events://b$_/latest" }) }
                       1 .. 3 ]);
is_deeply([ map { $_->{result} } @{ $r->{json} } ], [ ({}) x 3 ], 'a batch');
$f->say("/about/b$_", { n => 1 }) for 1 .. 3;
is_deeply([ sort map { $g->method('notifications/resources/updated')
                       ->{json}{params}{uri} } 1 .. 3 ],
          [ map { "events://b$_/latest" } 1 .. 3 ], 'of which all are heard');


# a feed that is connected, or cannot be, is not waited for

my $late = late();
is_deeply(subscribe($b, 'b1'), {}, 'connected already');

$f->set($_, status => 404) for '/about/none', '/both/b/none';

is_deeply(subscribe($b, 'none'), {}, 'one that fails');
like($t->log, qr/\[error\].*mcp feed ".*about\/none".*status 404/,
     'and is logged');
is(late(), $late, 'neither is waited for');


# one that says nothing is waited for once, for 2 s

$f->set($_, hang => 1) for qw(/about/mute /of/mute);

my $at;
my $from = length $t->log;

for my $what ([ subscribe => sub { subscribe($b, 'mute') } ],
              [ initialize => sub { mute() } ])
{
    my ($name, $do) = @$what;

    $at = time();
    ok($do->(), "$name is answered although the feed says nothing");
    within(time() - $at, 1.8, 20, 'after 2 s');

    for (1 .. 3) {
        $at = time();
        ok($do->(), 'once more');
        last if time() - $at < 1.5;
    }

    within(time() - $at, 0, 1.5, 'at once');
}

my @late = substr($t->log, $from)
           =~ /(\[warn\].*mcp feed .* is not connected after 2.*)/g;
is(scalar @late, 2, 'one line for each feed');
like($late[0], qr{"/_about/\$mcp_topic" of endpoint}, 'that names it');


# cancelled, ended, left meanwhile

$f->set("/about/$_", hang => 1) for qw(cancel end leave);
$f->set('/of/left', hang => 1);

my $id = $b->next_id;
my $c = $b->send_only($b->message('resources/subscribe',
                                  { uri => 'events://cancel/latest' },
                                  id => $id));
$f->wait_requests('/about/cancel', 1);
$b->notify('notifications/cancelled', { requestId => $id });
is($c->response('POST')->{status}, 202, 'cancelled: no answer');

my $other = $t->session(headers => { 'X-Tenant' => 'b' });
$c = $other->send_only($other->message('resources/subscribe',
                                       { uri => 'events://end/latest' }));
$f->wait_requests('/about/end', 1);
$other->delete;
is($c->response('POST')->{status}, 404, 'the session ended: 404');

$c = $b->send_only($b->message('resources/subscribe',
                               { uri => 'events://leave/latest' }));
$f->wait_requests('/about/leave', 1);
$c->close;

my $sessions = sessions();
my $left = $t->client(headers => { 'X-Tenant' => 'left' });
$c = $left->send_only($left->message('initialize', {
    protocolVersion => '2025-11-25', capabilities => {},
    clientInfo => { name => 'x', version => '1' }
}));
$f->wait_requests('/of/left', 1);
is(sessions(), $sessions + 1, 'a session begins');
$c->close;
ok(wait_for { sessions() == $sessions },
   'whose client leaves before the answer, and it ends');


my $listens = listens_open();
$f->set($_, hang => 1) for qw(/of/gone /about/gone);
$c = listens('gone', 'events://gone/latest', $t->conn);
$f->wait_requests($_, 1) for qw(/of/gone /about/gone);
is(listens_open(), $listens + 1, 'a client waits to listen');
$c->close;
ok(wait_for { listens_open() == $listens }, 'and leaves before it does');


# a feed whose worker dies is connected by another, before the answer

begin('a');
$f->set('/about/dies', hang => 1);
my @waits = map { $s[$_]->send_only(
                      $s[$_]->message('resources/subscribe',
                                      { uri => 'events://dies/latest' }),
                      conn => $conn[$_]) } 0, 1;
$f->wait_requests('/about/dies', 1);
$f->set('/about/dies', hang => undef);
my ($pid) = map { $_->{pid} }
            grep { $_->{key} =~ m{about.*"dies"} }
                 @{ $t->status->{leases}{by} };
my ($lives) = grep { $w[$_] != $pid } 0, 1;
ok($t->kill_worker($pid), 'kill -9 of the worker that has it');
is_deeply(answer($waits[$lives])->{result}, {}, 'the other one answers');
$f->wait_open('/about/dies');
$f->say('/about/dies', { n => 1 });
my $e = $g[$lives]->method('notifications/resources/updated');
is($e && $e->{json}{params}{uri}, 'events://dies/latest', 'and hears');


# one of two feeds was connected already by the worker that dies

@w = $t->workers;
@conn = map { $t->conn_on_worker($_) } @w;
begin('b');
$f->set('/about/twice', late => 0.2);
$f->set('/both/b/twice', hang => 1);
@waits = map { $s[$_]->send_only(
                   $s[$_]->message('resources/subscribe',
                                   { uri => 'events://twice/latest' }),
                   conn => $conn[$_]) } 0, 1;
$f->wait_requests('/both/b/twice', 1);
$pid = wait_for { (holder(qr{both.*"twice"}))[0] };
($lives) = grep { $w[$_] != $pid } 0, 1;
$f->wait_open('/about/twice');

# and the other one has heard of it

my $there = $t->conn_on_worker($w[$lives]);
$t->get('/worker', {}, undef, conn => $there) for 1 .. 3;

$f->set('/about/twice', hang => 1);
$f->set('/both/b/twice', hang => undef);
ok($t->kill_worker($pid), 'kill -9 of the worker that has both');
is_deeply(answer($waits[$lives])->{result}, {},
          'the other one answers, although one feed hangs then');
$f->set('/about/twice', hang => undef);


# a worker that quits meanwhile still answers

$f->set('/about/quit', late => 0.5);
$c = $b->send_only($b->message('resources/subscribe',
                               { uri => 'events://quit/latest' }));
$f->wait_requests('/about/quit', 1);
ok($t->reload, 'reload');
is_deeply(answer($c)->{result}, {}, 'answered by a worker that quits');
ok($t->wait_old, 'which is gone then');

done_testing();


# sessions on both workers, with a stream each

sub begin {
    my ($tenant) = @_;

    $_->delete for @s;
    @s = map { $t->session(headers => { 'X-Tenant' => $tenant }) } 0, 1;
    @g = map { $s[$_]->open_get(conn => $t->conn_on_worker($w[$_])) } 0, 1;
}


sub answer { json_decode($_[0]->response('POST')->{body}) }

sub subscribe {
    my ($s, $topic) = @_;
    my $r = $s->call('resources/subscribe',
                     { uri => "events://$topic/latest" });
    return $r && $r->{result};
}


sub mute {
    my $s = $t->session(headers => { 'X-Tenant' => 'mute' });
    return $s->id && $s->{server};
}


sub sessions { $t->status->{sessions}{live} }

sub listens_open { $t->status->{listens}{open} }

# sends subscriptions/listen of this tenant for lists of tools and a resource

sub listens {
    my ($tenant, $uri, $conn) = @_;
    my $c = Mcp::Modern->new($t, headers => { 'X-Tenant' => $tenant });
    my $m = $c->message('subscriptions/listen', { notifications => {
        toolsListChanged => JSON::PP::true,
        resourceSubscriptions => [$uri] } });

    $conn->write($conn->format_request('POST', '/mcp', $c->headers($m),
                                       json_encode($m)));
    return $conn;
}


sub holder {
    my ($key) = @_;
    return map { $_->{pid} } grep { $_->{key} =~ $key }
               @{ $t->status->{leases}{by} };
}


# how often a feed was not waited for any longer

sub late { return scalar(() = $t->log =~ /is not connected after 2/g) }
