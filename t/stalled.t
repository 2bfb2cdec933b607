#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# One worker waits for what another one finds out, and quits or sees the other
# one die; one stands still and finds that others have gone on.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:4m;
mcp_drain_time 100ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up;
    }

    location = /lists {
        mcp_endpoint zone=main name=lists;
        mcp_upstream up /_up;
        mcp_list_cache on ttl=1h;
    }

    location = /_up {
        internal;
        proxy_set_header X-Worker $pid;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /status { mcp_status zone=main; }
}
EOF

my ($holds, $mark) = (0, 0);


# a new configuration finds out anew what an upstream is

my $s = $t->session;
$s->call('ping');

for my $how ('quits', 'quits, and the other one dies') {
    ok($t->reload && $t->wait_old, 'a new configuration');

    my ($one, $two) = $t->workers;
    my %conn = map { $_ => $t->conn_on_worker($_) } $one, $two;
    my $hold = hold('initialize');

    my $first = send_call($conn{$one});
    my ($asked) = asked('initialize', $one);
    ok($asked, 'one worker asks the upstream what it is');

    my $second = send_call($conn{$two});
    ok((wait_for { $t->status->{calls}{running} == 2 }),
       'a call in the other one waits for that');

    kill 'QUIT', $two;
    ok((wait_for { $t->log =~ /\] $two#.*gracefully shutting down/ }),
       "which $how");

    if ($how eq 'quits') {
        hold('');
        $up->release($hold);
        is(said($first), 'done', 'it is found out');

    } else {
        $up->set(hold => '');
        ok($t->kill_worker($one), 'kill -9');
        ok((asked('initialize', $two))[0], 'so that it asks itself');
        $up->release($hold);
    }

    is(said($second), 'done', 'the call is answered');
    $_->close for $first, $second;
    ok((wait_for { !grep { $_ == $two } $t->workers(all => 1) }),
       'and the worker exits');
    wait_for { $t->workers == 2 };
}


# a refresh by a worker that stood still and lost the lease

$t->allow_log(qr/cached list stays/);

my $l = $t->session(path => '/lists');
is(names($l), 'a', 'a list');

# made before: while they are, a worker may stand still and lose the lease

my %conns = map { $_ => [map { $t->conn_on_worker($_) } ($_) x 2] }
            $t->workers;

my ($listener) = asked_by_own();
ok($listener, 'the module listens');

my $holder = $listener->{headers}{'x-worker'};
my ($live) = grep { $_ != $holder } $t->workers;
my $get = $l->open_get(conn => $conns{$live}[0]);
$l->{conn} = $conns{$live}[1];
my $late = $conns{$holder}[0];

my $hold = hold('tools/list');
$up->set(tools => 'old');
$up->emit("own $listener->{headers}{'x-session'}",
          [event => notification('tools/list_changed')]);
ok((asked('tools/list', $holder))[0], 'a list that changed is fetched');

kill 'STOP', $holder;
$up->set(hold => '');
$up->set(tools => 'new');

ok($get->method('notifications/tools/list_changed', 20),
   'another worker takes over');
is(names($l), 'new', 'and has the list as it is by then');

$up->release($hold);
kill 'CONT', $holder;

is($late->request('GET', '/worker')->{body}, $holder, 'the first one goes on');
ok((wait_for {
    !$up->requests(sub {
        $_[0]{method} eq 'GET' && !$_[0]{ended}
        && $_[0]{headers}{'x-worker'} eq $holder
    })
}), 'and lets go');
is(names($l, $late), 'new', 'it serves the new list as well');

$up->set(tools => 'newest');
($listener) = asked_by_own();
isnt($listener->{headers}{'x-worker'}, $holder, 'another one listens');
$up->emit("own $listener->{headers}{'x-session'}",
          [event => notification('tools/list_changed')]);

ok($get->method('notifications/tools/list_changed', 10), 'it changes again');
is(names($l), 'newest', 'this is the only news: the old list was never told');

done_testing();


sub send_call {
    my ($conn) = @_;

    return $s->send_only($s->message('tools/call', { name => 'a' }),
                         conn => $conn);
}


sub said {
    my $r = $_[0]->response('POST');
    my ($m) = $r->{body} =~ /(\{.*\})/;
    return $m && json_decode($m)->{result}{content}[0]{text};
}


# this method is answered when it is released

sub hold {
    $up->set(hold => $_[0]);
    $up->set(until => 'hold-' . ++$holds);
    $mark = $up->count;
    return "hold-$holds";
}


sub asked {
    my ($method, $worker) = @_;

    return $up->wait_requests(sub {
        my ($r) = @_;
        ref $r->{json} && $r->{n} >= $mark
        && ($r->{json}{method} || '') eq $method
        && $r->{headers}{'x-worker'} eq $worker
    });
}


# the GET stream of a session that is no client's, the last one

sub asked_by_own {
    my $r;

    wait_for {
        ($r) = reverse $up->requests(sub {
            $_[0]{method} eq 'GET' && !$_[0]{ended}
            && $_[0]{headers}{'x-session'} ne $l->id
            && $_[0]{headers}{'x-session'} ne $s->id
        });
    };

    return $r;
}


sub names {
    my ($s, $conn) = @_;
    my $r = $s->call('tools/list', undef, $conn ? (conn => $conn) : ());
    return join ' ', map { $_->{name} } @{ $r->{result}{tools} || [] };
}


sub server {
    my $v = \%Mcp::Upstream::V;

    my $mcp = Mcp::Upstream::mcp(
        'tools/call' => { content => [{ type => 'text', text => 'done' }] },
        'tools/list' => sub {
            return { tools => [{ name => $v->{tools} || 'a',
                                 inputSchema => { type => 'object' } }] };
        },
        GET => sub {
            my ($r) = @_;
            return [sse => {}], [tag => "own $r->{headers}{'x-session'}"],
                   [hang =>];
        },
    );

    return Mcp::Upstream->new(sub {
        my ($r) = @_;
        my @actions = $mcp->($r);

        unshift @actions, [until => $v->{until}]
            if $v->{hold} && ref $r->{json}
               && ($r->{json}{method} || '') eq $v->{hold};

        return @actions;
    });
}
