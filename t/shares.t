#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Shares of the zone: what one client takes is never what another one has,
# neither sessions nor events that were not read yet.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Shares;
use Mcp::Test;

my $up = Mcp::Shares::upstream();

my $t = Mcp::Shares::nginx($up, '2m', <<'MCP', <<'MORE', log_level => 'error');
mcp_event_buffer 256 64k;
mcp_stream_after 0;
MCP
location = /named {
    mcp_endpoint zone=main;
    mcp_upstream up /_up;
    mcp_session_limit 0 key=$http_x_key;
}

location = /bound {
    mcp_endpoint zone=main;
    mcp_upstream up /_up;
    mcp_session_bind $http_x_user;
    mcp_session_limit 0 key=$http_x_key;
}

location = /small {
    mcp_endpoint zone=main;
    mcp_event_buffer 4;
    mcp_capabilities resources;
}
MORE


# modest ones: in another tenant, and in the same from another address, with
# events that nobody has read yet

my @modest = map { $t->session(client(@$_)) }
                 ['b', '192.0.2.1'], ['a', '192.0.2.2'];

sub publish_to {
    my ($s, $data) = @_;

    return $t->publish({ %{ notification(message => {
        level => 'info', data => $data }) }, session_id => $s->id });
}

for my $s (@modest) {
    publish_to($s, "unread $_") for 1 .. 20;
}

$t->publish({ %{ notification(message => { level => 'info',
                                           data => "all $_" }) },
              tenant_id => 'b' }) for 1 .. 20;


# initialize with as much as is taken

my ($c, @greedy);
my $began = time();
my $sessions = 0;
my $conn = $t->conn;

for (1 .. 2000) {
    $c = $t->client(client('a', '192.0.2.1'), conn => $conn,
                    info => { name => 'g', version => '1',
                              x => 'x' x 3900 });
    last if $c->initialize->{status} != 200;
    push @greedy, $c;
    $sessions++;
}

ok($sessions > 50, "$sessions sessions of one client");
is($c->{init}{status}, 503, 'no more of it');
is($c->{init}{json}{error}{code}, -32000, 'code');
like($c->{init}{json}{error}{message},
     qr/^this client occupies its share of the zone$/, 'message');
is($c->{init}{headers}{'retry-after'}, 1, 'Retry-After');

my $st = $t->status->{zone};

cmp_ok($st->{blocks_free}, '>', $st->{blocks} / 3,
       'others have room');


# an event that does not fit is refused, and taken when it is sent again

my %event = (%{ notification(message => { level => 'info',
                                          data => 'x' x 60_000 }) },
             session_id => $greedy[0]->id);

sub again {
    my $r = $t->post('/publish', { 'Content-Type' => 'application/json',
                                   'Idempotency-Key' => 'again' },
                     json_encode(\%event));

    return { %$r, json => json_decode($r->{body}) };
}

my $p = again();

is($p->{status}, 503, 'it does not fit');
is($p->{headers}{'retry-after'}, 1, 'Retry-After');
is($p->{json}{events}[0]{error}, 'the zone is full', 'says why');

$_->delete for splice @greedy, -100;

$p = again();

is($p->{status}, 202, 'now it does');
ok(!$p->{json}{events}[0]{repeated}, 'it was not taken before');

my $gap = $greedy[0]->open_get;
my $first = $gap->event_where(sub { $_->{json} || $_->{event} });
is($first->{json}{method}, 'notifications/message',
   'and there is no gap where it was refused');
$gap->close;


# who shares an address is told apart by key=

for (1 .. 2000) {
    last if $t->client(client('a', '192.0.2.1'), conn => $conn,
                       info => { name => 'g', version => '1',
                                 x => 'x' x 3900 })->initialize->{status}
            != 200;
}

is($t->client(client('a', '192.0.2.1'), path => '/named',
              info => { name => 'g', version => '1', x => 'x' x 3900 })
      ->initialize->{status}, 503, 'no key');
is($t->client(headers => { 'X-Tenant' => 'a', 'X-Client' => '192.0.2.1',
                           'X-Key' => 'other' },
              path => '/named',
              info => { name => 'g', version => '1', x => 'x' x 3900 })
      ->initialize->{status}, 200, 'another key');
is($t->client(headers => { 'X-Tenant' => 'a', 'X-Client' => '192.0.2.1',
                           'X-User' => 'other user' },
              path => '/bound',
              info => { name => 'g', version => '1', x => 'x' x 3900 })
      ->initialize->{status}, 200, 'no key, but an identity');


# subscriptions with long URIs

my @sub = map { $t->session(client('a', '192.0.2.3')) } 1 .. 3;
my $subscribed = 0;
my $r;

SUBSCRIBE:
for my $s (@sub) {
    for (1 .. 250) {
        $r = $s->call('resources/subscribe',
                      { uri => "x:$_/" . 'u' x 16000 });
        last SUBSCRIBE if $r->{error};
        $subscribed++;
    }
}

ok($subscribed > 5, "$subscribed subscriptions");
is($r->{error}{code}, -32000, 'no more');
like($r->{error}{message}, qr/no room for a subscription/, 'as it is said');
cmp_ok($t->status->{zone}{blocks_free}, '>', $st->{blocks_free} / 3,
       'others have room');


# calls with large notifications, whose answers are read, or not at all

my @callers = map { $t->session(client('a', '192.0.2.4')) } 1 .. 4;

for my $s (@callers) {
    for (1 .. 15) {
        $r = $s->tool('big', { count => 3, size => 20_000 });
        ok($r->{result}, "answered") or diag(explain($r)) if $_ == 15;
    }

    for (1 .. 10) {
        my $stream = $s->stream('tools/call',
                                { name => 'big', arguments => {
                                  count => 3, size => 20_000 } });
        $stream->close;
    }
}

# nobody lost anything

for my $s (@modest) {
    is($s->call('ping')->{http}{status}, 200, 'a session lives');

    my $stream = $s->open_get;
    my @want = map { "unread $_" } 1 .. 20;
    my @got = map {
        $stream->method('notifications/message')->{json}{params}{data}
    } 1 .. ($s == $modest[0] ? 40 : 20);

    is_deeply([grep { /^unread/ } @got], \@want, 'its events are there');
    is(scalar(grep { /^all/ } @got), 20, 'and those of its tenant')
        if $s == $modest[0];
    ok($s->tool('big', { count => 2, size => 1000 })->{result},
       'its call is answered');
    is(publish_to($s, 'more')->{status}, 202, 'an event');
    is($stream->method('notifications/message')->{json}{params}{data}, 'more',
       'and it arrives');
    $stream->close;
}

is($t->status->{sessions}{evicted}, 0, 'none was ended');


# publishing to a client that has its share

my $last;

for (1 .. 200) {
    $last = publish_to($callers[0], 'x' x 60_000);
    last if $last->{status} != 202;
}

# older events of the same session go, or it is refused so that it is repeated

like($last->{status}, qr/^(202|503)$/, 'published, or not now');

my @lines = grep { /mcp zone "\w+" (?:is full|has a)/ }
                 split /\n/, $t->log;
within(scalar @lines, 1, 1 + int((time() - $began) / 60),
       'the log says it once in a minute');
like($lines[0], qr/\[error\].*has a client that .*"mcp_session_bind".*mcp_zone/,
     'with whose share it is and the directives');


# lines that were handed over do not stay, whatever comes

my $many = $t->session(client('c', '192.0.2.5'));

$many->tool('big', { count => 1, size => 2000 }) for 1 .. 30;

my $before = $t->status->{zone}{bytes}{events};

$many->tool('big', { count => 1, size => 2000 }) for 1 .. 60;

within($t->status->{zone}{bytes}{events} - $before, -20_000, 20_000,
       'about eight lines are kept');


# a log that moved on over events for others is no gap

sub updated {
    $t->publish({ %{ notification('resources/updated', { uri => $_[0] }) },
                  tenant_id => 'd' });
}

sub after {
    my ($s, $id, @uris) = @_;

    my $stream = $s->open_get(last_event_id => $id);

    updated($_) for @uris;

    my $e = $stream->event_where(sub { $_->{json} || $_->{event} });

    $stream->close;
    return $e;
}

# (number): what the readers of two resources get, one of which is updated much

sub gaps {
    my ($n) = @_;

    my ($busy, $quiet) = map { { uri => "x:$n-$_", s => $t->session(
        path => '/small', client('d', "192.0.2.$_")) } } 6, 7;

    for my $r ($quiet, $busy) {
        $r->{s}->call('resources/subscribe', { uri => $r->{uri} });

        my $stream = $r->{s}->open_get;
        $r->{seen} = $stream->event->{id};
        $stream->close;
    }

    updated($busy->{uri}) for 1 .. 200;

    return map {
        my $e = after($_->{s}, $_->{seen}, $busy->{uri}, $quiet->{uri});
        $e->{event} && $e->{event} eq 'lagged' ? 'lagged'
        : $e->{json}{params}{uri} eq $quiet->{uri} ? 'its own' : 'another';
    } $quiet, $busy;
}

# the log keeps 128 places of losses: two resources may have the same one

my @got;

for my $n (1 .. 4) {
    @got = gaps($n);
    last if $got[0] ne 'lagged';
}

is($got[0], 'its own', 'the next event of who lost nothing, and no gap');
is($got[1], 'lagged', 'a gap of who lost some');

done_testing();
