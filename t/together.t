#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An endpoint that uses all of it: cached lists, a feed, topics, subscriptions,
# joined events and the module's own tools, while workers are reloaded and
# killed.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => sub {
        my ($r) = @_;

        return { tools => [ { name => "tool$r->{headers}{'x-generation'}",
                              inputSchema => { type => 'object' } } ] };
    },
    'resources/list' => { resources => [] },
    'resources/templates/list' => { resourceTemplates => [] },
    'resources/subscribe' => {},
    'resources/unsubscribe' => {},
));

my $f = Mcp::Feed->new;

$f->set('/feed', retry => 100);

my $t = Mcp::Test->new(
    vars => { UP => $up->port, FEED => $f->port, GENERATION => 1 },
    conf => <<'EOF');
mcp_zone zone=main:8m;

mcp_stream_retry 100ms;
mcp_drain_time   200ms;
mcp_stream_after 200ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint       zone=main name=all;
        mcp_upstream       up /_up;
        mcp_events         /_feed;
        mcp_list_cache     on ttl=1h;
        mcp_coalesce       1s;
        mcp_builtin_tools  wait_for_event session_info;

        mcp_invalidate     catalog list_changed=tools;
        mcp_invalidate     *       "message=$n";
    }

    location = /_up {
        internal;
        proxy_pass       http://127.0.0.1:%%UP%%/mcp;
        proxy_set_header X-Generation %%GENERATION%%;
    }

    location = /_feed {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/feed;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOF

my (%s, %g, %queue, $r, $m);

for my $who (qw(ann bob)) {
    $s{$who} = $t->session;
    $s{$who}->call('resources/subscribe', { uri => 'events://jobs/latest' });
    is_deeply(tools($who), [ qw(session_info tool1 wait_for_event) ],
              "the upstream's tools and the module's");
}

listen_all();
$f->wait_open('/feed');


# one event is waited for, subscribed to, and joined with others

my $wait = waiting('ann', 'jobs');

$f->count('/feed', 3, 0, { kind => 'first', topic => 'jobs' });
is($wait->()->{event}{n}, 1, 'it ends the waiting');

for my $who (qw(ann bob)) {
    $m = heard($who, 5);
    is_deeply([ map { $_->{data} } @{ $m->{message} } ], [ 1, 3 ],
              "$who gets one at once, two joined");
    is($m->{message}[1]{_meta}{'nginx-mcp/details'}{count}, 2, 'and counted');
    is(scalar(@{ $m->{'resources/updated'} }), 3,
       'and learns of each event of the topic');
}


# a reload while somebody waits and events are being joined

$wait = waiting('bob', 'reload');
publish({ kind => 'second', n => $_ }) for 4, 5;
ok($t->reload, 'a reload');
listen_all();
$f->say('/feed', { topic => 'reload', n => 6 });
is($wait->()->{event}{n}, 6, 'what comes after it is not missed');
is_deeply([ map { $_->{data} } @{ heard($_, 2)->{message} } ], [ 4, 5 ],
          "what was being joined comes to $_, once") for qw(ann bob);
ok($t->wait_old, 'the old workers have nothing left to do');


# a kill while somebody waits and events are being joined

my @w = $t->workers;
my $sse = stream('ann', { topic => 'kill' },
                 conn => $t->conn_on_worker($w[0]));

$sse->event;
publish({ kind => 'third', n => $_ }) for 7, 8;
ok($t->kill_worker($w[0]), 'a kill');
listen_all();

$r = $s{ann}->open_get(last_event_id => $sse->last_id)->response($sse->{id});
is($r->{json}{error}{code}, -32603, 'who waited on that worker is told');

$wait = waiting('ann', 'kill');
$f->say('/feed', { topic => 'kill', n => 9 });
is($wait->()->{event}{n}, 9, 'and may wait again');
is_deeply([ map { $_->{data} } @{ heard($_, 2)->{message} } ], [ 7, 8 ],
          "what was being joined comes to $_, once") for qw(ann bob);


# a list that changed meanwhile: said once, and it is the new one

ok($t->reload(vars => { UP => $up->port, FEED => $f->port,
                        GENERATION => 2 }), 'another reload');
listen_all();
publish({ kind => 'catalog' }) for 1 .. 3;
$f->say('/feed', { kind => 'catalog' });

for my $who (qw(ann bob)) {
    is(scalar(@{ heard($who, 1)->{'tools/list_changed'} || [] }), 1,
       "$who is told");
    is_deeply(tools($who), [ qw(session_info tool2 wait_for_event) ],
              'of the new list');
}

is_deeply([ map { heard($_, 1, 0.5) } qw(ann bob) ], [ {}, {} ],
          'once, and of nothing else');


# all of it goes with the sessions

$_->delete for values %s;

my $status = wait_for {
    my $now = $t->status;
    !$now->{sessions}{live} && !$now->{streams}{open}
        && !$now->{calls}{running} && $now;
};

ok($status, 'nothing is left');

done_testing();


sub publish {
    my ($event) = @_;
    my $r = $t->publish($event);

    is($r->{status}, 202, 'published') if $r->{status} != 202;
}


# streams, again where they were

sub listen_all {
    for my $who (sort keys %s) {
        my @last;

        if ($g{$who}) {
            push @{ $queue{$who} }, $g{$who}->drain(0);
            @last = (last_event_id => $g{$who}->last_id);
            $g{$who}->close;
        }

        $g{$who} = $s{$who}->open_get(@last);
    }
}


# the params of the next so many notifications, by method; topics are listed
# as they come

sub heard {
    my ($who, $n, $timeout) = @_;

    my %m;

    while ($n) {
        my $e = shift @{ $queue{$who} } || $g{$who}->event($timeout || 10)
            or last;
        my $m = $e->{json};

        next if !$m || $m->{method} eq 'notifications/resources/list_changed';

        push @{ $m{ substr $m->{method}, length 'notifications/' } },
             $m->{params} || {};
        $n--;
    }

    return \%m;
}


sub tools {
    my ($who) = @_;

    return [ sort map { $_->{name} }
             @{ $s{$who}->call('tools/list')->{result}{tools} } ];
}


# a call that waits

sub stream {
    my ($who, $arguments, %o) = @_;

    my $sse = $s{$who}->stream('tools/call', { name => 'wait_for_event',
        arguments => { timeout_seconds => 30, %$arguments } }, %o);

    is($sse->{content}, undef, "$who waits");

    return $sse;
}


# what it returns; if that is nothing, as at a reload, it is called again

sub waiting {
    my ($who, $topic) = @_;

    my $sse = stream($who, { topic => $topic });

    return sub {
        my $e = $sse->response($sse->{id});
        my $got = $e->{json}{result}{structuredContent} || {};

        $sse->close;

        return $got unless $got->{timeout};

        return $s{$who}->tool('wait_for_event', {
            topic => $topic, after => $got->{position}
        })->{result}{structuredContent};
    };
}
