#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A share for everyone, at random (MCP_SEED): a greedy client takes all that it
# can, beside modest ones in another tenant and in its own.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Shares;
use Mcp::Test;

my $seed = $ENV{MCP_SEED} || int rand 1e9;
my $steps = 400;

srand $seed;
diag("MCP_SEED=$seed");

my $up = Mcp::Shares::upstream();

my $t = Mcp::Shares::nginx($up, '3m', <<'MCP', '', log_level => 'error',
mcp_builtin_tools wait_for_event;
mcp_stream_after 0;
MCP
                           events => 'worker_connections 1024;');

sub one { return $_[rand @_] }

my (@modest, @greedy, @held, %refused);

for (['b', '192.0.2.1'], ['a', '192.0.2.2']) {
    my $s = $t->session(client(@$_));
    push @modest, { s => $s, stream => $s->open_get, n => 0 };
}

# a call of a modest client, and how long its answer takes

my %took;

sub modest {
    my ($m, $when) = @_;

    my $start = time();
    my $r = $m->{s}->tool('big', { count => 1, size => 100 });

    push @{ $took{$when} }, time() - $start;
    return $r;
}

sub median { return (sort { $a <=> $b } @_)[@_ / 2] }

modest(one(@modest), 'alone') for 1 .. 15;

sub greedy { return client('a', '192.0.2.1') }

my %move = (
    initialize => sub {
        for (1 .. 20) {
            my $c = $t->client(greedy(), info => {
                name => 'g', version => '1', x => 'x' x rand 4000 });

            return $refused{initialize}++
                if $c->initialize->{status} != 200;

            push @greedy, $c;
        }
    },
    subscribe => sub {
        my $r = one(@greedy)->call('resources/subscribe', {
            uri => 'x:' . rand() . '/' . 'u' x rand 16000 });
        $refused{subscribe}++ if !$r || $r->{error};
    },
    call => sub {
        one(@greedy)->tool('big', { count => 1 + int rand 5,
                                    size => int rand 60_000 });
    },
    held => sub {
        my $s = one(@greedy);
        push @held, $s->send_only($s->message('tools/call', {
            name => 'big', arguments => { count => 1 + int rand 5,
                                          size => int rand 60_000,
                                          held => 1 } }));
        (shift @held)->close if @held > 20;
    },
    topic => sub {
        my $s = one(@greedy);
        push @held, $s->send_only($s->message('tools/call', {
            name => 'wait_for_event',
            arguments => { topic => 'g' . rand(), timeout_seconds => 30 } }));
        (shift @held)->close if @held > 20;
    },
    stream => sub {
        my $stream = one(@greedy)->open_get;
        push @held, $stream->conn if $stream->status == 200;
        (shift @held)->close if @held > 20;
    },
    publish => sub {
        my $r = $t->publish({ %{ notification(message => {
            level => 'info', data => 'x' x rand 60_000 }) },
            session_id => one(@greedy)->id });
        $refused{publish}++ if $r->{status} == 503;
    },
);

my @moves = sort keys %move;
my $bad = 0;
my $end = time() + 20 * ($ENV{MCP_SLOW} || 1);
my $done = 0;

for my $step (1 .. $steps) {
    last if time() > $end;

    $move{@greedy ? one(@moves) : 'initialize'}->();
    $done++;

    next if $step % 5;

    my $m = one(@modest);
    my $n = ++$m->{n};
    my $r = $t->publish({ %{ notification(message => {
        level => 'info', data => "event $n" }) }, session_id => $m->{s}->id });

    $bad++, diag("step $step: publish $r->{status}: $r->{body}")
        if $r->{status} != 202;

    $r = modest($m, 'beside');

    $bad++, diag("step $step: call: " . json_encode($r && $r->{error}))
        unless $r && $r->{result};
}

ok($done > 20, "$done steps");
is($bad, 0, 'each event was taken, each call was answered');

# a machine that stands still for a while does so in few of the calls

my ($alone, $beside) = map { median(@{ $took{$_} }) } qw(alone beside);

cmp_ok($beside, '<', 10 * $alone + 0.05, 'their calls are as quick as alone')
    or diag("median $alone s alone, $beside s beside");
diag(join ', ', map { "$_ refused $refused{$_} times" } sort keys %refused);

for my $m (@modest) {
    my @got;

    for (1 .. $m->{n}) {
        my $e = $m->{stream}->event_where(sub { defined $_->{data}
                                                && length $_->{data} });
        last unless $e;
        push @got, $e->{json}{params}{data} || $e->{event} || $e->{data};
    }

    is_deeply(\@got, [map { "event $_" } 1 .. $m->{n}],
              'all its events came, without a gap');
    is($m->{s}->call('ping')->{http}{status}, 200, 'its session lives');
}

is($t->status->{sessions}{evicted}, 0, 'no session went');

$_->close for @held;

done_testing();
