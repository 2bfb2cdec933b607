#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The GET stream of a client's own session at an upstream: when it breaks, it
# goes on behind the last event that had an id; what a client may have missed by
# a reload, the death of a worker, or a session there that was made anew, it is
# told.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;
mcp_stream_retry 10ms;
mcp_message_limit 100k;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
    }

    location = /_up {
        internal;
        proxy_set_header X-Worker $pid;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}
EOF

$t->allow_log(qr/cut its response/, qr/prematurely closed/, qr/refused/i,
              qr/could not be reached/, qr/mcp_message_limit/);

my %s = map { $_ => $t->session } qw(bare ids);
my @all = map { "$_/list_changed" } qw(prompts resources tools);
my $updated = 'resources/updated file:///a';
my (%g, %said);

for my $who (keys %s) {
    $s{$who}->call('resources/subscribe', { uri => 'file:///a' });
    open_stream($who);
    listening($who);
}

# a stream that carried nothing is no error of ours

cut('bare');
like($t->log, qr/\[info\].*mcp upstream "\w+" cut its response after 0 bytes/,
     'an idle stream that is opened again');
unlike($t->log, qr/\[error\].*mcp upstream "\w+" cut its response/,
       'is no error');

say_it('bare', 'hello');
say_it('ids', 'hello', 'id-1');
heard($_, 'log hello') for keys %s;


# the stream breaks

cut($_) for keys %s;
is(listening('ids')->{last}, 'id-1', 'one with ids goes on');
say_it('ids', 'on', 'id-2');
say_it('bare', 'on');
heard($_, 'log on') for keys %s;

$up->set(unknown => 'id-2');
cut('ids');
gap('ids', 'an id that the upstream does not know any more');
$up->set(unknown => '');


# an event over the limit is left out, and the stream goes on behind it

for my $who (sort keys %s) {
    my $n = listening($who)->{n};

    say_it($who, 'x' x 200_000, $who eq 'ids' ? 'id-large' : ());
    say_it($who, 'small', $who eq 'ids' ? 'id-small' : ());
    heard($who, 'lagged', @all, $updated, 'log small', "$who: it is a gap");
    is(listening($who)->{n}, $n, 'the same stream');
}

say_it('ids', 'x' x 200_000, 'id-large');
gap('ids', 'another one');
cut('ids');
is(listening('ids')->{last}, 'id-large', 'it is not asked for again');

# a reload

say_it('ids', 'before', 'id-3');
heard('ids', 'log before');
my %old = map { $_ => listening($_)->{n} } keys %s;
ok($t->reload, 'reload');
another($_, $old{$_}) for keys %s;
gap($_, "$_: nobody listened for a while") for keys %s;
is(listening('ids')->{last}, undef, 'the next worker begins anew');
say_it('ids', 'behind', 'id-4');
heard('ids', 'log behind');
ok($t->wait_old, 'old workers are gone');

%old = map { $_ => listening($_)->{n} } keys %s;
ok($t->reload, 'once more');
another($_, $old{$_}) for keys %s;
gap($_, "$_: once more") for keys %s;
ok($t->wait_old, 'old workers are gone');


# kill -9: what was heard last is not known

for my $who (sort keys %s) {
    my $get = listening($who);
    my @lost = grep { listening($_)->{worker} eq $get->{worker} } sort keys %s;
    my %n = map { $_ => listening($_)->{n} } @lost;

    ok($t->kill_worker($get->{worker}), "kill -9, $who");

    for (@lost) {
        is(another($_, $n{$_})->{last}, undef, "$_: from anywhere");
        gap($_, "$_: what the worker had not heard");
    }

    say_it($_, "after $who", "killed-$_-$who") for keys %s;
    heard($_, "log after $who") for keys %s;
}


# the upstream is restarted: its sessions are made anew

$up->refuse;
$up->set(epoch => 1);
$up->drop;
$up->restore;
gap($_, "$_: the upstream was restarted") for keys %s;

say_it($_, 'last') for keys %s;
heard($_, 'log last') for keys %s;

done_testing();


sub open_stream {
    my ($who) = @_;

    my $old = $g{$who};

    $g{$who} = $s{$who}->open_get(last_event_id => $old && $old->last_id);
    push @{ $g{$who}{queue} }, @{ $old->{queue} } if $old;
}


# its stream, as the upstream saw it last

sub listening {
    my ($who) = @_;
    my $get;

    wait_for {
        reopen();
        $get = $up->get('get ' . $s{$who}->id);
        $get && $up->held($get->{sid});
    };

    return $get;
}


sub another {
    my ($who, $old) = @_;
    my $get;

    wait_for { $get = listening($who); $get->{n} != $old };
    return $get;
}


# clients come back

sub reopen {
    for my $who (keys %g) {
        $g{$who}->pump(0);
        open_stream($who) if $g{$who}->ended;
    }
}


sub cut {
    my ($who) = @_;
    my $get = listening($who);

    $up->emit($get->{sid}, ['cut']);
    another($who, $get->{n});
}


sub say_it {
    my ($who, $text, $id) = @_;

    $up->emit(listening($who)->{sid}, [event => {
        jsonrpc => '2.0', method => 'notifications/message',
        params => { level => 'error', data => $text },
    }, $id ? (id => $id) : ()]);
}


sub gap {
    my ($who, $name) = @_;

    heard($who, 'lagged', @all, $updated, $name);
}


# these, and nothing before them

sub heard {
    my ($who, @want) = @_;
    my $name = @want > 1 ? pop @want : "$who: @want";
    my @got;

    while (@got < @want) {
        my $e = $g{$who}->event;

        if (!$e && $g{$who}->ended) {
            open_stream($who);
            next;
        }

        last if !$e;

        push @got, 'lagged' if ($e->{event} || '') eq 'lagged';
        my $m = $e->{json} or next;
        my $method = $m->{method} or next;
        my $p = $m->{params} || {};

        $method =~ s{^notifications/}{};
        push @got, $method eq 'message' ? "log $p->{data}"
                   : $p->{uri} ? "$method $p->{uri}" : $method;
    }

    is_deeply([sort @got], [sort @want], $name);
}


sub server {
    my %session;
    my $next = 0;

    my $mcp = Mcp::Upstream::mcp(
        sessions => 0,
        initialize => sub {
            my ($r) = @_;
            my $sid = sprintf 'up-%d-%d', $$, ++$next;
            $session{$sid} = $Mcp::Upstream::V{epoch} || 0;
            return [json => Mcp::Upstream::result($r, {
                protocolVersion => '2025-11-25',
                capabilities => { resources => { subscribe => JSON::PP::true },
                                  tools => {}, prompts => {}, logging => {} },
                serverInfo => { name => 'up', version => '1' },
            }), { 'Mcp-Session-Id' => $sid }];
        },
        'resources/subscribe' => {},
        'resources/unsubscribe' => {},
    );

    return Mcp::Upstream->new(sub {
        my ($r) = @_;
        my $sid = $r->{headers}{'mcp-session-id'};
        my $v = \%Mcp::Upstream::V;

        return [http => 404, {}, '']
            if defined $sid && (!defined $session{$sid}
                                || $session{$sid} != ($v->{epoch} || 0));
        return $mcp->($r) unless $r->{method} eq 'GET';

        my $last = $r->{headers}{'last-event-id'};

        return [http => 400, {}, '']
            if $v->{unknown} && ($last || '') eq $v->{unknown};

        $v->{"get $r->{headers}{'x-session'}"} = {
            n => $r->{n}, sid => $sid, last => $last,
            worker => $r->{headers}{'x-worker'},
        };

        return [sse => {}], [tag => $sid], [hang =>];
    });
}
