#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Feeds that are read on: by new workers after a reload, by others after
# kill -9. Every event of a numbered run arrives exactly once.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $f = Mcp::Feed->new;

$f->set($_, ids => 0) for qw(/bare /lines);
$f->set('/lines', lines => 1);
$f->set('/of/acme', first => 1);

my $t = Mcp::Test->new(vars => { FEED => $f->port }, conf => <<'EOF');
mcp_zone zone=main:32m;
mcp_drain_time 500ms;
mcp_stream_retry 10ms;
mcp_invalidate * message=$n;

server {
    %%LISTEN%%
    server_name localhost;

    location = /ids   { mcp_endpoint zone=main name=ids;
                        mcp_tenant $http_x_tenant;
                        mcp_events /_ids;
                        mcp_events /_of/$mcp_tenant; }
    location = /bare  { mcp_endpoint zone=main name=bare;
                        mcp_events /_bare; }
    location = /lines { mcp_endpoint zone=main name=lines;
                        mcp_events /_lines; }

    location /_ {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/;
    }
}
EOF

my @w = $t->workers;
my @feeds = qw(/ids /bare /lines);

# a client on each worker for each

my @clients = map {
    my $path = $_;
    my $s = $t->session(path => $path, headers => { 'X-Tenant' => 'acme' });
    map { { path => $path, s => $s, got => {}, gaps => 0,
            g => $s->open_get(conn => $t->conn_on_worker($_)) } } $w[-1]
} @feeds;

push @clients, map {
    { path => $_, got => {}, gaps => 0,
      s => $t->session(path => $_, headers => { 'X-Tenant' => 'acme' }) }
} @feeds;

$f->wait_open($_) for @feeds, '/of/acme';


# reloads

run('reloads', 1500, 3, sub {
    for my $n (1 .. 3) {
        ok($t->reload, "reload $n");
        follow() for 1 .. 20;
    }
});

# new workers that begin long after the old ones were told to quit

run('reloads, late', 400, 3, sub {
    $t->hup_late(0.6);
    ok($t->reloaded, 'a reload whose workers begin late');
});

for my $c (@clients) {
    is($c->{gaps}, 0, "$c->{path}: no gap");
}

ok($t->wait_old, 'old workers are gone');
is($f->wait_open($_)->{open}, 1, "$_ is read by one") for @feeds;


# kill -9 of each worker, one of which is the reader

$_->{gaps} = 0 for @clients;

run('kills', 1500, 4, sub {
    for my $pid ($t->workers) {
        ok($t->kill_worker($pid), 'kill -9');
        follow() for 1 .. 40;
    }
});

ok((wait_for {
       follow();
       grep { $_->{gaps} } grep { $_->{path} ne '/ids' } @clients;
   }), 'a feed without ids has a gap then');
is(scalar(grep { $_->{gaps} } grep { $_->{path} eq '/ids' } @clients), 0,
   'one with ids has none');


# both

run('both', 2000, 4, sub {
    ok($t->reload, 'reload');
    follow() for 1 .. 5;
    ok($t->kill_worker(($t->workers)[0]), 'kill -9');
    ok($t->reload, 'reload at once');
    follow() for 1 .. 20;
    ok($t->kill_worker(($t->workers)[1]), 'kill -9');
    follow() for 1 .. 40;
});

ok($t->wait_old, 'old workers are gone');


# a feed of a value is taken over by who was not told of it

$f->wait_open('/of/acme');
$f->say('/of/acme', { kind => 'x', n => 'mine' });
wait_for { follow(); $clients[0]{got}{mine} };
is($clients[0]{got}{mine}, 1, 'a feed on demand has lived through it all');
is($f->info('/of/acme')->{requests}[-1]{id}, 0, 'with an id without event');

# one that is killed, one that gives way and the one that reads

for my $path (qw(/ids /of/acme)) {
    ok((wait_for { $f->info($path)->{open} == 1 }), "$path: one reads");
    cmp_ok($f->info($path)->{most}, '<=', 3, 'no more than take over');
}

done_testing();


sub run {
    my ($what, $n, $ms, $sub) = @_;

    my ($first) = map { $f->info($_)->{said} } '/ids';
    $_->{got} = {} for @clients;

    for (@feeds) {
        $f->wait_open($_);
        $f->count($_, $n, $ms, { kind => 'x' });
    }

    $sub->();

    wait_for {
        follow();
        my @open = grep { $f->info($_)->{said} < $first + $n } @feeds;
        !@open;
    } 30;

    wait_for {
        follow();
        !grep { keys %{ $_->{got} } < $n }
         grep { $what =~ /^reloads/ || $_->{path} eq '/ids' } @clients;
    };

    for my $c (@clients) {
        my $got = $c->{got};
        my @lost = grep { !$got->{$_} } $first + 1 .. $first + $n;
        my @twice = grep { $got->{$_} > 1 } keys %$got;

        is("@twice", '', "$what, $c->{path}: nothing came twice");

        # what was said while nobody read is lost without ids
        next if $what !~ /^reloads/ && $c->{path} ne '/ids';
        is(scalar @lost, 0, "$what, $c->{path}: nothing was lost")
            or diag("@lost[0 .. (@lost > 9 ? 9 : $#lost)]");
    }
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
            $c->{got}{$e->{json}{params}{data}}++
                if ref $e->{json} && $e->{json}{params}{data};
        }
    }

    select undef, undef, undef, 0.02;
}
