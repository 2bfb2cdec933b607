#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A session at an upstream that is no longer wanted while it is being made is
# ended there: that of a client's GET stream and the module's own, when the
# client leaves, at a reload, and when the upstream answers late.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:4m;
mcp_drain_time 100ms;
mcp_stream_retry 10ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp { mcp_endpoint zone=main; mcp_upstream up /_up; }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}
EOF

my ($step, %seen) = 0;

# what the upstream is and can is known

my $first = $t->session;
ok(gone($_), 'the session that asked is ended') for made();


# the client leaves, while its GET stream waits for a session there

for my $when (qw(initialize notifications/initialized)) {
    my $s = $t->session;
    my $hold = hold($when);
    my $get = $s->open_get;
    my $r = asked($when);

    is($s->delete->{status}, 200, "$when: the client leaves");
    ended($r, $hold);
    $get->close;
}


# the worker quits

for my $who ('the client', 'the module') {
    my $s = $t->session;
    my $hold = hold('initialize');
    my $get = $who eq 'the client' ? $s->open_get : undef;
    my $waits = $get ? undef
                : $s->send_only($s->message('resources/subscribe',
                                            { uri => 'file:///a' }));
    my $r = asked('initialize');

    is($r->{headers}{'x-session'} eq $s->id ? 1 : 0, $get ? 1 : 0,
       "a session of $who");
    ok($t->reload, 'reload');
    hold('');
    $get = $s->open_get if $get;
    ended($r, $hold);
    ok($t->wait_old, 'the old workers exit');

    if ($waits) {
        is_deeply(json_decode($waits->response('POST')->{body})->{result}, {},
                  'who subscribed is answered');
        $waits->close;
    }

    ok(wait_for { grep { !$seen{$_} } made() }, 'another one is made');
    $s->delete;
}

# nothing is kept of a session that could not be made, not for a moment

my $lost = $t->session;
$up->stop;

my $get = $lost->open_get;

ok(wait_for { $t->log =~ /"up" could not be reached/ },
   'the upstream cannot be reached');
ok($t->reload, 'reload');
$get->close;
ok($t->wait_old, 'the old workers exit');

done_testing();


# from now on this method is answered when it is released

sub hold {
    my ($method) = @_;

    $up->clear;
    $up->set(hold => $method);
    $up->set(until => 'hold-' . ++$step);
    return "hold-$step";
}


sub asked {
    my ($method) = @_;
    my ($r) = $up->wait_requests(sub {
        ref $_[0]{json} && ($_[0]{json}{method} || '') eq $method
    });
    return $r;
}


sub ended {
    my ($r, $hold) = @_;

    hold('');
    $up->release($hold);

    my $sid = wait_for {
        $r->{headers}{'mcp-session-id'} || $up->get("made $r->{conn}")
    };
    ok($sid, 'a session was made');
    ok(gone($sid), 'and is ended');
}


sub gone {
    my ($sid) = @_;
    $seen{$sid} = 1;
    return wait_for { $up->get("ended $sid") };
}


sub made { @{ $up->get('made') || [] } }


sub server {
    my $next = 0;
    my $v = \%Mcp::Upstream::V;

    my $mcp = Mcp::Upstream::mcp(
        sessions => 0,
        initialize => sub {
            my ($r) = @_;
            my $sid = sprintf 'up-%d-%d', $$, ++$next;
            push @{ $v->{made} }, $sid;
            $v->{"made $r->{conn}"} = $sid;
            return [json => Mcp::Upstream::result($r, {
                protocolVersion => '2025-11-25',
                capabilities => { resources => { subscribe => JSON::PP::true },
                                  tools => {} },
                serverInfo => { name => 'up', version => '1' },
            }), { 'Mcp-Session-Id' => $sid }];
        },
        'resources/subscribe' => {},
        'resources/unsubscribe' => {},
        GET => sub {
            return [sse => {}], [tag => 'get'], [hang =>];
        },
        DELETE => sub {
            $v->{"ended $_[0]{headers}{'mcp-session-id'}"} = 1;
            return [http => 200, {}, ''];
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
