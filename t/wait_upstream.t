#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# wait_for_event on a resource of an upstream: it is subscribed to there for as
# long as somebody waits, once for all.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;
mcp_upstream_timeout 5s;
mcp_stream_after 0;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_builtin_tools wait_for_event;
    }

    location = /off {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
        mcp_builtin_tools wait_for_event;
    }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_set_header X-Worker $pid;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOF

my ($one, $two) = $t->workers;
my @s = map { $t->session } 1 .. 3;
my $off = $t->session(path => '/off');


# two wait, on both workers

my @w = (waits($s[0], 'file:///a', worker => $one),
         waits($s[1], 'file:///a', worker => $two));
asked('subscribe', 'file:///a', 1, 'subscribed to for who waits');
waiting(2);

my $first = ($up->calls('resources/subscribe'))[0]{headers};
my $sid = $first->{'mcp-session-id'};
ok(!grep({ $_->id eq $first->{'x-session'} } @s),
   'on a session of the module\'s own');

updated($sid, 'file:///a');
is(got($_), 'file:///a', 'and heard') for @w;
asked('unsubscribe', 'file:///a', 1, 'until nobody waits');
is(count('subscribe', 'file:///a'), 1, 'once for both');


# however it ends

my $w = waits($s[0], 'file:///b', timeout => 1);
asked('subscribe', 'file:///b', 1, 'one waits');
is(got($w), 'timeout', 'its time is over');
asked('unsubscribe', 'file:///b', 1, 'that ends it');

$w = waits($s[0], 'file:///c', id => 'c1');
asked('subscribe', 'file:///c', 1, 'one waits');
$s[0]->notify('notifications/cancelled', { requestId => 'c1' });
asked('unsubscribe', 'file:///c', 1, 'being cancelled ends it');
$w->close;

$w = waits($s[2], 'file:///d');
asked('subscribe', 'file:///d', 1, 'one waits');
$s[2]->delete;
asked('unsubscribe', 'file:///d', 1, 'the end of the session ends it');
$w->close;

# in a worker that holds nothing else

my ($holder, $other, $conn) = roles();
$w = waits($s[0], 'file:///e', conn => $conn);
asked('subscribe', 'file:///e', 1, 'one waits');
ok($t->kill_worker($other), 'kill -9');
asked('unsubscribe', 'file:///e', 1, 'the death of the worker ends it');
$w->close;

# in the one that listens

($holder, $other, $conn) = roles();
$w = waits($s[0], 'file:///f', conn => $conn);
asked('subscribe', 'file:///f', 1, 'one waits');
ok($t->kill_worker($holder), 'kill -9 of the one that listens');
is(got($w), 'file:///f', 'the next one wakes who waits: it may be missed');
ok((wait_for { got_worker() != $holder }), 'being another');
asked('unsubscribe', 'file:///f', 1, 'and ends it');

# a reload: who waits there is told early, as ever

$w = waits($s[0], 'file:///g');
asked('subscribe', 'file:///g', 1, 'one waits');
ok($t->reload, 'reload');
is(got($w), 'timeout', 'it ends');
asked('unsubscribe', 'file:///g', 1, 'in the old worker');
ok($t->wait_old, 'which is gone');


# beside those that are subscribed

$s[0]->call('resources/subscribe', { uri => 'file:///h' });
$w = waits($s[1], 'file:///h', timeout => 0.2);
is(got($w), 'timeout', 'one waits for what another is subscribed to');
$w = waits($s[1], 'file:///h');
waiting(1);
updated($sid, 'file:///h');
is(got($w), 'file:///h', 'and hears of it');
$s[0]->call('resources/unsubscribe', { uri => 'file:///h' });
asked('unsubscribe', 'file:///h', 1, 'the last one leaves');
is(count('subscribe', 'file:///h'), 1, 'one subscription for all');


# refused

$w = waits($s[0], 'file:///no');
asked('subscribe', 'file:///no', 1, 'a refused one');
$t->publish({ jsonrpc => '2.0', method => 'notifications/resources/updated',
              params => { uri => 'file:///no' }, uri => 'file:///no' });
is(got($w), 'file:///no', 'is waited for all the same');


# listen=off: the session's own subscription and stream

my $get = $off->open_get;
$off->call('resources/subscribe', { uri => 'file:///i' });
my ($mine) = grep { $_->{headers}{'x-session'} eq $off->id }
             $up->calls('resources/subscribe');
$mine = $mine->{headers}{'mcp-session-id'};
$w = waits($off, 'file:///i');
waiting(1);
ok((wait_for { $up->held($mine) }), 'its own stream');
updated($mine, 'file:///i');
is(got($w), 'file:///i', 'wakes it');
is($get->method('notifications/resources/updated')->{json}{params}{uri},
   'file:///i', 'and tells it');
is(scalar(grep { $_->{headers}{'x-session'} ne $off->id }
          grep { $_->{json}{params}{uri} eq 'file:///i' }
          $up->calls('resources/subscribe')), 0, 'no other asked for it');

$t->allow_log(qr/cut its response/, qr/refused resources/);
done_testing();


sub waits {
    my ($s, $uri, %o) = @_;

    return $s->send_only($s->message('tools/call', {
        name => 'wait_for_event',
        arguments => { uri => $uri, timeout_seconds => $o{timeout} || 60 },
    }, $o{id} ? (id => $o{id}) : ()),
    $o{worker} ? (conn => $t->conn_on_worker($o{worker})) : %o);
}


# the worker that listens, the other, and a connection to that: while it is
# made the first may stand still so long that it is no more the one that listens

sub roles {
    my %conn = map { $_ => $t->conn_on_worker($_) } $t->workers;
    my ($lease) = grep { $_->{key} =~ /"own"/ } @{ $t->status->{leases}{by} };
    my ($other) = grep { $_ != $lease->{pid} } keys %conn;

    return ($lease->{pid}, $other, $conn{$other});
}


# so many calls have arrived, on whatever worker

sub waiting {
    my ($n) = @_;
    wait_for { $t->status->{calls}{running} == $n };
}


# what who waited was given

sub got {
    my $r = json_decode($_[0]->response('POST')->{body});
    my $c = $r->{result}{structuredContent};

    $_[0]->close;
    return $c->{timeout} ? 'timeout' : $c->{event}{params}{uri};
}


sub count {
    my ($what, $uri) = @_;
    return scalar grep { $_->{json}{params}{uri} eq $uri }
                       $up->calls("resources/$what");
}


sub asked {
    my ($what, $uri, $n, $name) = @_;
    wait_for { count($what, $uri) >= $n };
    is(count($what, $uri), $n, $name);
}


# the worker that listens last

sub got_worker {
    my @get = $up->requests(sub {
        $_[0]{method} eq 'GET' && $_[0]{headers}{'mcp-session-id'} eq $sid
    });
    return $get[-1]{headers}{'x-worker'};
}


sub updated {
    my ($session, $uri) = @_;

    wait_for {
        $up->emit_one($session, 'newest', [event => {
            jsonrpc => '2.0', method => 'notifications/resources/updated',
            params => { uri => $uri } }])
    };
}


sub server {
    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { resources => { subscribe => JSON::PP::true } },
        'resources/subscribe' => sub {
            my ($r) = @_;
            return [json => Mcp::Upstream::error($r, -32002, 'no')]
                if $r->{json}{params}{uri} =~ /no$/;
            return {};
        },
        'resources/unsubscribe' => {},
        GET => sub {
            my ($r) = @_;
            return [sse => {}], [tag => $r->{headers}{'mcp-session-id'}],
                   [hang =>];
        },
    ));
}
