#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An event of a feed that becomes many notifications, for many tenants, is
# delivered whole and once, whoever is killed over it.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $parts = 60;
my $tenants = 34;                       # more than get it at once
my $rounds = 6;
my $events = 8;                         # of each round
my $small = 300;                        # of those that are joined

my $f = Mcp::Feed->new;

my $rules = join "\n", map { qq{mcp_invalidate * "message=\$n/$_";} }
                           1 .. $parts;

my $t = Mcp::Test->new(vars => { FEED => $f->port, RULES => $rules },
                       conf => <<'EOF');
mcp_zone zone=main:64m;
mcp_event_buffer 600;
mcp_stream_retry 10ms;
mcp_tenant $http_x_tenant;

server {
    %%LISTEN%%
    server_name localhost;

    location = /whole  { mcp_endpoint zone=main name=whole;
                         mcp_events /_whole topic=jobs;
                         mcp_builtin_tools wait_for_event;
                         %%RULES%% }

    location = /joined { mcp_endpoint zone=main name=joined;
                         mcp_events /_joined;
                         mcp_coalesce 100ms;
                         mcp_invalidate * message=first;
                         mcp_invalidate * notify=notifications/second; }

    location = /status { mcp_status zone=main; }

    location /_ {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/;
    }
}
EOF

my @sessions = map {
    $t->session(path => '/whole', headers => { 'X-Tenant' => "t$_" })
} 1 .. $tenants;

my @joined = map {
    $t->session(path => '/joined', headers => { 'X-Tenant' => "t$_" })
} 1 .. $tenants;

my @clients = map { { s => $_, got => {}, said => 0, gaps => 0,
                      first => 0, second => 0 } }
              @sessions[0, 20, -1], @joined[0, -1];

$_->call('resources/subscribe', { uri => 'events://jobs/latest' })
    for @sessions[0, 20, -1];

$f->wait_open($_) for qw(/whole /joined);
follow();


# many at once; who reads them is killed when a few are taken

for my $round (1 .. $rounds) {
    my $name = $round % 3 ? 'whole' : 'joined';
    my ($n, $m) = map { $_ * $round } $events, $small;

    $f->wait_open($_) for qw(/whole /joined);

    my $before = reader($name)->{taken};
    $f->count('/joined', $small, 0, { kind => 'x' });
    $f->count('/whole', $events, 0, { kind => 'x' });

    my $r;
    wait_for { $r = reader($name); $r->{taken} >= $before + 2 };
    ok($t->kill_worker($r->{pid}), "kill -9 of who reads $name");

    wait_for {
        follow();
        !grep { keys %{ $_->{got} } < $n * $parts || $_->{said} < $n }
              @clients[0 .. 2]
        and !grep { $_->{first} < $m || $_->{second} < $m } @clients[3, 4];
    };
}

$_ *= $rounds for $events, $small;

for my $c (@clients[0 .. 2]) {
    my $got = $c->{got};
    my @lost = grep { !$got->{$_} }
               map { my $n = $_; map { "$n/$_" } 1 .. $parts } 1 .. $events;
    my @twice = grep { $got->{$_} > 1 } sort keys %$got;

    is("@lost", '', 'nothing is lost');
    is("@twice", '', 'nothing comes twice');
}

is($clients[$_]{said}, $events, 'nor what is said of the topic') for 0 .. 2;

for my $c (@clients[3, 4]) {
    is($c->{first}, $small, 'each event is counted once among the joined');
    is($c->{second}, $small, 'in what each rule makes of it');
}

is($_->{gaps}, 0, 'no gap') for @clients;

done_testing();


sub reader {
    my ($name) = @_;

    my ($l) = grep { $_->{key} =~ m{/_$name} }
              @{ json_decode($t->get('/status')->{body})->{leases}{by} };

    return $l;
}


# takes what has come, and opens streams that ended again

sub follow {
    for my $c (@clients) {

        if (!$c->{g} || $c->{g}->ended) {
            my $g = eval {
                $c->{s}->open_get(last_event_id => $c->{id}, timeout => 5);
            };

            next unless $g && $g->status && $g->status == 200;
            $c->{g} = $g;
        }

        while (my $e = $c->{g}->event(0)) {
            $c->{id} = $e->{id} if defined $e->{id};
            $c->{gaps}++ if ($e->{event} || '') eq 'lagged';

            my $m = ref $e->{json} && $e->{json}{method} or next;
            my $p = $e->{json}{params};

            if ($m eq 'notifications/resources/updated') {
                $c->{said}++;

            } elsif ($m eq 'notifications/second') {
                $c->{second} += $p->{count} || 1;

            } elsif ($m eq 'notifications/message' && $p->{data} eq 'first') {
                $c->{first} += $p->{details}{count} || 1;

            } elsif ($m eq 'notifications/message') {
                $c->{got}{ $p->{data} }++;
            }
        }
    }

    select undef, undef, undef, 0.005;
}
