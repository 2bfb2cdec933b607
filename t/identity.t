#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Several users of several tenants do things in random order, through replicas
# that sessions stick to: nobody ever sees what is another's.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $seed = defined $ENV{MCP_SEED} ? $ENV{MCP_SEED} : int rand 1e9;
my $steps = $ENV{MCP_STEPS} || 400;

srand $seed;

# replicas know only their own sessions

sub replica {
    my ($name) = @_;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        info => { name => 'replicas', version => '1' },
        capabilities => { tools => {}, logging => {} },
        'tools/call' => sub {
            my ($r) = @_;
            my $h = $r->{headers};
            my %who = (user => $h->{'x-user'}, tenant => $h->{'x-tenant'},
                       session => $h->{'mcp-session-id'}, replica => $name,
                       arguments => $r->{json}{params}{arguments});

            return \%who if $r->{json}{params}{name} eq 'whoami';
            return ([sse => {}],
                    map({ ([event => notification('message', {
                        level => 'info', data => "$who{user} $_"
                    })], [wait => 0.01]) } 1 .. 3),
                    [event => Mcp::Upstream::result($r, \%who)]);
        },
        GET => sub {
            my ($r) = @_;
            return ([sse => {}],
                    [tag => "feed-$r->{headers}{'mcp-session-id'}"]);
        },
    ));
}

my @up = map { replica($_) } 0 .. 2;

my $t = Mcp::Test->new(vars => { A => $up[0]->port, B => $up[1]->port,
                                 C => $up[2]->port }, conf => <<'EOF');
mcp_zone zone=main:8m;

upstream replicas {
    hash $mcp_session_id consistent;
    server 127.0.0.1:%%A%%;
    server 127.0.0.1:%%B%%;
    server 127.0.0.1:%%C%%;
    keepalive 4;
}

server {
    %%LISTEN%%
    server_name mcp.test;

    mcp_tenant $http_x_tenant;
    mcp_session_bind $http_x_user;

    location = /one { mcp_endpoint zone=main; mcp_upstream u /_up; }
    location = /two { mcp_endpoint zone=main; mcp_upstream u /_up; }

    location = /_up { internal; proxy_pass http://replicas/; }
    location = /status { mcp_status zone=main; access_log off; }
}
EOF

# the same names of users in each tenant, and as other tenants' names

my @who = map { my $tenant = $_; map { { user => $_, tenant => $tenant } }
                qw(alice bob acme) } qw(acme other alice);
my @clients;

sub enter {
    my ($who, $path) = @_;

    my $s = $t->session(
        path => $path, headers => { 'X-User' => $who->{user},
                                    'X-Tenant' => $who->{tenant} },
        version => (qw(2025-03-26 2025-06-18 2025-11-25))[rand 3]);

    return { who => $who, s => $s, path => $path };
}

push @clients, enter($_, (qw(/one /two))[rand 2]) for @who, @who;

my (@bad, %owner, %done);

sub wrong { push @bad, "@_" unless @bad > 20 }
sub name  { "$_[0]{who}{tenant}/$_[0]{who}{user}$_[0]{path}" }


# what a call says about itself, and that it always says the same

sub belongs {
    my ($c, $result, $n) = @_;

    my $w = $c->{who};

    return wrong(name($c), 'got no answer', json_encode($c->{s}{last}{body}))
        unless $result;

    wrong(name($c), 'got', json_encode($result))
        unless $result->{user} eq $w->{user}
               && $result->{tenant} eq $w->{tenant}
               && $result->{arguments}{n} == $n;

    $c->{up} ||= $result->{session};
    $c->{replica} = $result->{replica} unless defined $c->{replica};

    wrong(name($c), 'has another upstream session')
        unless $c->{up} eq $result->{session}
               && $c->{replica} == $result->{replica};

    $owner{$c->{up}} ||= $c;
    wrong(name($c), 'shares a session with', name($owner{$c->{up}}))
        unless $owner{$c->{up}} == $c;
}


my $n = 0;

my %do = (
    call => sub {
        my ($c) = @_;
        my $r = $c->{s}->tool('whoami', { n => ++$n });
        belongs($c, $r && $r->{result}, $n);
    },
    stream => sub {
        my ($c, @others) = @_;
        my %sse = map {
            my $i = ++$n;
            $i => [$_, $_->{s}->stream('tools/call', {
                name => 'progress', arguments => { n => $i } })]
        } $c, @others;

        for my $i (keys %sse) {
            my ($whose, $sse) = @{ $sse{$i} };
            my @e = map { $_->{json} || () } $sse->drain(10);
            my $last = pop @e;

            wrong(name($whose), 'streamed', json_encode([@e, $last]))
                unless @e == 3 && $last->{id} == $sse->{id}
                       && !grep { $_->{params}{data} !~
                                  /^$whose->{who}{user} \d$/ } @e;
            belongs($whose, $last->{result}, $i);
        }
    },
    # somebody else, or the same somewhere else
    trespass => sub {
        my ($c, $other) = @_;
        my $same = $other->{who}{user} eq $c->{who}{user}
                   && $other->{who}{tenant} eq $c->{who}{tenant}
                   && $other->{path} eq $c->{path};
        my %h = (headers => { 'X-User' => $other->{who}{user},
                              'X-Tenant' => $other->{who}{tenant} });
        my $path = $c->{s}{path};

        return if $same;
        $c->{s}{path} = $other->{path};

        my @status = (
            $c->{s}->tool('whoami', {}, %h)->{http}{status},
            $c->{s}->call('ping', undef, %h)->{http}{status},
            $c->{s}->open_get(%h)->status,
            $c->{s}->notify('notifications/x', {}, %h)->{status},
            $c->{s}->delete(%h)->{status},
        );

        $c->{s}{path} = $path;
        wrong(name($other), 'in a session of', name($c), ": @status")
            if grep { $_ != 404 } @status;
    },
    listen => sub {
        my ($c) = @_;

        $do::call->($c) unless $c->{up};
        return unless $c->{up};

        $c->{get} ||= $c->{s}->open_get;
        wait_for { $up[$c->{replica}]->held("feed-$c->{up}") == 1 }
            or wrong(name($c), 'is not listened for');
    },
    # something for one session: it alone hears it
    push => sub {
        my ($c) = @_;
        return unless $c->{get};

        my $secret = name($c) . ' ' . ++$n;
        my $sent = $up[$c->{replica}]->emit("feed-$c->{up}", [event =>
            notification('message', { level => 'info', data => $secret })]);

        return wrong(name($c), 'has', $sent, 'readers') unless $sent == 1;

        my $e = $c->{get}->method('notifications/message');
        wrong(name($c), 'heard', $e ? $e->{data} : 'nothing')
            unless $e && $e->{json}{params}{data} eq $secret;
    },
    silence => sub {
        my ($c) = @_;
        return unless $c->{get};

        my $e = $c->{get}->method('notifications/message', 0);
        wrong(name($c), 'overheard', $e->{data}) if $e;
    },
    leave => sub {
        my ($c) = @_;
        $c->{get}->close if $c->{get};
        delete $c->{get};
    },
    again => sub {
        my ($c, undef, $i) = @_;

        wrong(name($c), 'could not leave')
            unless $c->{s}->delete->{status} == 200;

        push @{ $done{$c->{replica}} }, $c->{up} if $c->{up};
        $clients[$i] = enter($c->{who}, $c->{path});
    },
);

$do::call = $do{call};

my @often = (qw(call) x 6, qw(stream) x 2, qw(trespass) x 2,
             qw(listen) x 2, qw(push) x 2, qw(silence leave again));

for (1 .. $steps) {
    my $i = int rand @clients;
    my $what = $often[rand @often];
    my $other = $clients[rand @clients];

    if ($what eq 'stream') {
        my ($j, $k) = map { int rand @clients } 1, 2;
        my %others = map { $_ => 1 } $j, $k;

        delete $others{$i};
        $do{stream}->($clients[$i], map { $clients[$_] } keys %others);
        next;
    }

    $do{$what}->($clients[$i], $other, $i);
}

is(scalar @bad, 0, 'everyone saw what is theirs, in ' . $steps . ' steps')
    or diag(join "\n", "MCP_SEED=$seed", @bad);

# in all that was said upstream, a session had one user and one replica

my %seen;

for my $i (0 .. 2) {
    for ($up[$i]->requests) {
        my $h = $_->{headers};
        my $id = $h->{'mcp-session-id'} or next;

        next unless $h->{'x-user'};
        $seen{$id}{"$h->{'x-tenant'}/$h->{'x-user'}"}++;
        $seen{$id}{replicas}{$i}++;
    }
}

is(scalar(grep { keys %$_ != 2 || keys %{ $_->{replicas} } != 1 }
          values %seen), 0, 'a session upstream is one user\'s');
ok(scalar(keys %seen) > 9, 'there were several');

# those that were left were told to their own replica

my $lost = 0;

for my $i (keys %done) {
    my %want = map { $_ => 1 } @{ $done{$i} };

    wait_for {
        delete $want{$_->{headers}{'mcp-session-id'}}
            for $up[$i]->requests(sub { $_[0]{method} eq 'DELETE' });
        !%want;
    };

    $lost += keys %want;
}

is($lost, 0, 'DELETE reaches the replica that has the session');

# no session was made anew because a request went astray

my $made = map {
    $_->requests(sub { $_[0]{headers}{'x-user'}
                       && ref $_[0]{json} eq 'HASH'
                       && ($_[0]{json}{method} || '') eq 'initialize' })
} @up;

is($made, scalar keys %seen, 'each session is made once');

$_->{s}->delete for @clients;

ok((wait_for {
       my $j = $t->status;
       !$j->{calls}{running} && !$j->{streams}{open} && !$j->{sessions}{live};
   }), 'nothing is left');

done_testing();
