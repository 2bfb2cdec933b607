#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Parked calls at random (MCP_SEED): clients that are asked in many calls at a
# time, on the stream of the call or the GET stream of its session, and answer a
# part of it, all of it, twice, or never, on any worker, while workers die and
# are replaced.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Park;
use Mcp::Test;

my $seed = defined $ENV{MCP_SEED} ? $ENV{MCP_SEED} : int rand 1e9;
my $steps = $ENV{MCP_STEPS} || 200;

srand $seed;
diag("MCP_SEED=$seed");

my $clock = Mcp::Clock->new;
my $up = Mcp::Park->upstream(gets => 2);

my $t = Mcp::Test->new(log_level => 'error', vars => { UP => $up->port },
                       conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_session_bind $http_x_user;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /status { mcp_status zone=main; }
}
EOF

my %caps = (elicitation => { form => {}, url => {} }, sampling => {},
            roots => {});
my @users = map { Mcp::Modern->new($t, caps => \%caps,
                                   headers => { 'X-User' => $_ }) }
            qw(ann bob);
my @kinds = qw(ask page think where);

# a call: {r} the response that asked last, {rounds} what is still to come,
# {owner} the worker that runs it, {lost}
my @calls;

my (%did, @wrong);

sub pick { $_[int rand @_] }
sub said { Mcp::Modern::said(@_) }
sub wrong { push @wrong, "step $did{steps}: @_" }


sub begin {
    my @rounds;

    for (0 .. rand 3) {
        my %kinds = map { (pick(@kinds) => 1) } 0 .. rand 3;
        push @rounds, [sort keys %kinds];
    }

    my @words = map { (rand() < 0.4 ? '@' : '') . $_ }
                map { join('+', @$_), (rand() < 0.3 ? 'tick' : ()) } @rounds;
    push @words, 'big' . int rand 90000 if rand() < 0.2;

    my $owner = pick($t->workers);
    my $r = Mcp::Park::call(pick(@users), join(' ', @words), on => $owner,
                            meta => { progressToken => "t$did{steps}" });

    return wrong('began with', said($r))
        if said($r) ne '200 input_required';

    push @calls, { r => $r, rounds => \@rounds, owner => $owner };
    expect($calls[-1]);
}


# whether the round has what the server asked for

sub expect {
    my ($call) = @_;

    my @got = sort map { Mcp::Park::kind($_) }
              values %{ $call->{r}{json}{result}{inputRequests} };

    wrong("asked for @got, not @{ $call->{rounds}[0] }")
        if "@got" ne "@{ $call->{rounds}[0] }";
}


# the client is back, with a part of the answers

sub go_on {
    my ($call, $leave) = @_;

    my $r = $call->{r};
    my $all = Mcp::Park::responses($r);
    my %asked = %{ $r->{json}{result}{inputRequests} };
    my @keys = grep { rand() < 0.8 } keys %$all;
    my %left = map { ($_ => 1) } keys %$all;

    delete @left{@keys};

    my $next = Mcp::Park::again($r, on => pick($t->workers), open => $leave,
                                answers => { map { ($_ => $all->{$_}) }
                                             @keys });

    if ($leave) {
        $next->{conn}->close;
        @calls = grep { $_ != $call } @calls;
        return;
    }

    my $said = said($next);

    if ($call->{lost}) {
        wrong("lost, but $said") if $said !~ /-3260[23]$/;
        @calls = grep { $_ != $call } @calls;
        return;
    }

    my @old = ($call->{rounds}[0], $r);

    $call->{rounds}[0] = [sort map { Mcp::Park::kind($asked{$_}) }
                          keys %left];
    shift @{ $call->{rounds} } unless %left;

    my $want = @{ $call->{rounds} } ? '200 input_required' : '200 complete';

    if ($said ne $want) {
        wrong("$said, not $want");
        @calls = grep { $_ != $call } @calls;
        return;
    }

    if (@{ $call->{rounds} }) {
        $call->{r} = $next;
        $call->{used} = $r;
        expect($call);

    } else {
        @calls = grep { $_ != $call } @calls;
        $did{completed}++;
    }
}


my %actions = (
    begin => sub { begin() if @calls < 12 },
    go_on => sub { go_on(pick(@calls)) if @calls },
    leave => sub { go_on(pick(@calls), 1) if @calls },

    replay => sub {
        my ($call) = grep { $_->{used} } @calls or return;
        my $said = said(Mcp::Park::again($call->{used},
                                         on => pick($t->workers)));
        wrong("used twice: $said") if $said ne '400 -32602';
    },

    steal => sub {
        my $call = pick(@calls) or return;
        my ($other) = grep { $_ != $call->{r}{client} } @users;
        my $said = said(Mcp::Park::again({ %{ $call->{r} },
                                           client => $other }));
        wrong("stolen: $said") if $said ne '400 -32602';
    },

    forget => sub {
        my $call = pick(@calls) or return;
        @calls = grep { $_ != $call } @calls;
    },

    kill => sub {
        my $pid = pick($t->workers);
        $t->kill_worker($pid);
        $_->{lost} = 1 for grep { $_->{owner} == $pid } @calls;
    },

    reload => sub { $t->reload or wrong('no reload') },
);

my @weights = ((map { ('begin', 'go_on', 'go_on') } 1 .. 12), ('leave') x 2,
               ('replay') x 2, ('steal') x 2, 'forget', 'kill',
               rand() < 0.5 ? 'reload' : ());

for (1 .. $steps) {
    $did{steps}++;

    my $what = pick(@weights);
    $did{$what}++;
    $actions{$what}->();

    last if @wrong;
}

ok(!@wrong, 'as it should be') or diag("@wrong");
cmp_ok($did{completed} || 0, '>', $steps / 60, 'calls completed');
diag(join ', ', map { "$_ $did{$_}" } sort keys %did);


# what is forgotten ends, and so do the sessions

$clock->pass($t, 605);
ok((wait_for { $t->status->{calls}{running} == 0 }), 'no call is left');
$clock->pass($t, 130);
ok((wait_for {
    my %open = map { ($_->{headers}{'mcp-session-id'} => 1) }
               $up->calls('tools/call');
    delete @open{map { $_->{headers}{'mcp-session-id'} }
                 $up->requests(sub { $_[0]{method} eq 'DELETE' })};
    !%open;
} 20), 'no session at the server');
is($t->status->{streams}{open}, 0, 'and no stream');

done_testing();
