#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Upstreams that change, page, lie, die, come back, enter and leave the
# configuration, while workers are replaced and killed. After each step every
# client sees exactly what is known of the upstreams that are configured, and
# was told once of each part that changed.
#
# MCP_SEED=N repeats a run, MCP_SECONDS=N is how long it lasts (25).

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $seed = defined $ENV{MCP_SEED} ? $ENV{MCP_SEED} : int rand 1e9;
my $seconds = $ENV{MCP_SECONDS} || 25;

srand $seed;
diag("MCP_SEED=$seed");


sub server {
    my ($list) = @_;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        'tools/list' => sub {
            my ($r) = @_;
            my $V = \%Mcp::Upstream::V;
            my @all = map { { name => $_ } }
                      split / /, defined $V->{list} ? $V->{list} : $list;

            return [http => 500, {}, 'broken'] if ($V->{bad} || 0) == 1;
            return { tools => [ { nameless => 1 } ] } if $V->{bad};
            return { tools => \@all }
                if !@all || !$V->{paged} && !$r->{json}{params}{cursor};

            # pages are of one list

            my $of = join ' ', map { $_->{name} } @all;
            my ($n, $was) = split /\//, $r->{json}{params}{cursor} || "0/$of";

            return [http => 500, {}, 'it changed'] if $was ne $of;

            return { tools => [ $all[$n++] ],
                     $n < @all ? (nextCursor => "$n/$of") : () };
        },
        GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
    ));
}


# alive, list: of the server; known: the module's part of it, undef: none

my @up = map { my $list = some();
               { name => "u$_", list => $list, server => server($list),
                 alive => 1, known => $list } } 0 .. 4;
my @conf = @up[0 .. 2];
my $version = 0;

my $t = Mcp::Test->new(conf => conf());
my (@s, @g, @history, $poke, $told);

$_->{known} = undef for @up[3, 4];

for my $i (0 .. 2) {
    $s[$i] = $t->session(conn => on_worker($i));
    $g[$i] = $s[$i]->open_get(conn => $t->conn);
    is(names($i), union(), "client $i sees all");
}

my $end = time + $seconds * ($ENV{MCP_SLOW} || 1);
my ($steps, $good, %did) = (0, 1);

while ($good && time < $end) {
    $poke = 0;
    $told = 0;

    my $what = rand() < 0.15 ? reloaded() : rand() < 0.05 ? killed()
               : join ', ', map { step($_) } some_of(@up);

    $t->publish(notification('tools/list_changed')) if $poke;

    $good = settled($what);
    $steps++;
}

ok($good, "$steps steps, seed $seed: "
          . join ' ', map { "$_ $did{$_}" } sort keys %did);
ok($steps > 10, 'are enough');

done_testing();


sub conf {
    my ($c, $l) = ('', '');

    $c .= "mcp_upstream $_->{name} /_$_->{name} prefix=$_->{name};\n"
        for @conf;
    $l .= "location = /_$_->{name} { internal; proxy_pass "
          . 'http://127.0.0.1:' . $_->{server}->port . "; }\n" for @up;

    return <<"CONF";
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name localhost;
    mcp_drain_time 100ms;

    location = /mcp {
        mcp_endpoint   zone=main;
        mcp_list_cache on ttl=1h;
        $c
    }

    $l
    location = /publish { mcp_publish zone=main; allow all; }
    location = /status  { mcp_status zone=main; allow all; }
}
CONF
}


# a list of tools that is like no other one

sub some {
    my $n = int rand 4;
    $version++;
    return join ' ', map { "t$_-$version" } 0 .. $n;
}


sub some_of {
    my @all = sort { rand() <=> 0.5 } @_;
    return @all[0 .. int rand 3];
}


sub on_worker {
    my ($i) = @_;

    my @w = $t->workers;
    return $t->conn_on_worker($w[$i % @w]);
}


sub configured { my ($u) = @_; return scalar grep { $_ == $u } @conf }


# what it says now is what is known of it

sub learned {
    my ($u) = @_;

    return unless configured($u);

    my @sorted = map { join ' ', sort split / /, defined $_ ? $_ : '' }
                 $u->{known}, $u->{list};

    $told++ if $sorted[0] ne $sorted[1];
    $u->{known} = $u->{list};
}


sub says {
    my ($u) = @_;

    $u->{server}->emit('listen',
                       [event => notification('tools/list_changed')])
        or $poke = 1;
}


sub step {
    my ($u) = @_;

    my @can = !$u->{alive} ? qw(back back-changed)
              : $u->{bad} ? qw(heals die)
              : qw(change change change same reorder page lie die);
    my $how = $can[rand @can];
    my $server = $u->{server};

    $did{$how}++;

    if ($how eq 'die') {
        $u->{alive} = 0;
        $server->refuse;
        $server->drop;
        return "$u->{name} dies";
    }

    if ($how =~ /change|lie/) {
        $u->{list} = some();
    }

    if ($how eq 'reorder') {
        $u->{list} = join ' ', reverse split / /, $u->{list};
    }

    if ($how eq 'page') {
        $server->set(paged => $u->{paged} = !$u->{paged} || 0);
    }

    if ($how eq 'lie') {
        $server->set(bad => $u->{bad} = 1 + int rand 2);
    }

    if ($how eq 'heals') {
        $server->set(bad => $u->{bad} = 0);
    }

    $server->set(list => $u->{list});

    if ($how =~ /^back/) {
        $u->{alive} = 1;
        $server->restore;
        $poke = 1;

    } else {
        says($u);
    }

    learned($u) unless $u->{bad};

    return "$u->{name}: $how";
}


# another configuration; u0 stays, so that there is always something

sub reloaded {
    my @old = @conf;
    my $went = 0;

    @conf = sort { rand() <=> 0.5 } $up[0], grep { rand() < 0.6 } @up[1 .. 4];
    push @conf, $up[1] if @conf == 1;

    for my $u (@old) {
        next if configured($u);
        $went = 1 if defined $u->{known} && length $u->{known};
        $u->{known} = undef;
    }

    $told += $went;
    $poke = 1;

    $_->{alive} && !$_->{bad} && learned($_) for @conf;

    my $ok = $t->reload(conf => conf()) && $t->wait_old;

    $s[$_]{conn} = on_worker($_) for 0 .. 2;
    $did{reload}++;

    return ($ok ? 'reload with ' : 'reload failed with ')
           . join ' ', map { $_->{name} } @conf;
}


sub killed {
    my ($pid) = sort { rand() <=> 0.5 } $t->workers;

    $t->kill_worker($pid);
    $s[$_]{conn} = on_worker($_) for 0 .. 2;
    $poke = 1;
    $did{kill}++;

    return 'a worker is killed';
}


sub union {
    return join ' ', map { my $u = $_->{name};
                           map { "${u}__$_" }
                           split / /, defined $_->{known} ? $_->{known} : '' }
                     @conf;
}


sub names {
    my ($i) = @_;

    my $r = $s[$i]->call('tools/list');
    return join ' ', map { $_->{name} } @{ $r->{result}{tools} || [] };
}


# the next event of a client; streams end with workers

sub heard {
    my ($i) = @_;

    for (1 .. 3) {
        my $e = $g[$i]->event_where(sub { $_->{data} ne '' });

        return $e->{json} && $e->{json}{method} || $e->{event} || '' if $e;
        return 'nothing' unless $g[$i]->ended;

        $g[$i] = $s[$i]->open_get(conn => $t->conn,
                                  last_event_id => $g[$i]->last_id);
    }

    return 'nothing';
}


sub settled {
    my ($what) = @_;

    my $want = union();
    my @wrong;
    push @history, $what;

    for my $i (0 .. 2) {
        my $got;

        wait_for { ($got = names($i)) eq $want }
            or push @wrong, "client $i sees:  $got", "it should see: $want";
    }

    # nobody is told before, and all are told then

    my @heard = map { my $i = $_; [ map { heard($i) } 1 .. $told ] } 0 .. 2;

    $t->publish(notification('message', { level => 'info', data => 'mark' }));

    for my $i (0 .. 2) {
        push @{ $heard[$i] }, heard($i);

        # who may have missed something after a kill is told to look at all

        if (grep { $_ eq 'lagged' } @{ $heard[$i] }) {
            $did{gap}++;
            next if grep { $_ =~ m{/message$} } @{ $heard[$i] };

            for (1 .. 8) {
                last if heard($i) =~ m{/message$};
            }

            next;
        }

        my $heard = join ' ', map { s{^notifications/}{}r } @{ $heard[$i] };
        my $should = join ' ', ('tools/list_changed') x $told, 'message';

        push @wrong, "client $i hears: $heard", "it should hear: $should"
            if $heard ne $should;
    }

    return 1 unless @wrong;

    diag("after $steps steps: ", join ' | ', splice @history, -3);
    diag($_) for @wrong;

    return 0;
}
