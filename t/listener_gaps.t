#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What the module's own listener may have missed is told, and nothing else: by
# streams that break, upstreams that restart, workers that die, and reloads.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = server();

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;
mcp_stream_retry 10ms;
mcp_upstream_timeout 5s;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up;
        mcp_tenant tenant-$http_x_tenant;
        mcp_builtin_tools wait_for_event;
    }

    location = /lists {
        mcp_endpoint zone=main name=lists;
        mcp_upstream up /_up;
        mcp_list_cache on;
    }

    location = /_up {
        internal;
        proxy_set_header X-Worker $pid;
        proxy_set_header X-Audience "$mcp_endpoint $mcp_tenant";
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /publish { mcp_publish zone=main; }
}
EOF

$t->allow_log(qr/cut its response/, qr/refused/i, qr/could not be reached/,
              qr/unreachable/, qr/prematurely closed/, qr/cached list stays/);

# who subscribed, who did not, another audience

my %s = (
    ab    => $t->session,
    a     => $t->session,
    none  => $t->session,
    other => $t->session(headers => { 'X-Tenant' => 'x' }),
    lists => $t->session(path => '/lists'),
);

# audiences, as the upstream sees them

my %audience = (mcp => 'mcp tenant-', other => 'mcp tenant-x',
                lists => 'lists');

my $kinds = 'prompts resources tools';
my @all = qw(file:///a file:///b);
my (%g, %sid);
my $markers = 0;

$up->set($_->id => 1) for values %s;
open_stream($_) for keys %s;
subscribe($s{ab}, $_) for @all;
subscribe($s{a}, 'file:///a');
subscribe($s{other}, 'file:///a');
subscribe($s{lists}, 'file:///l');
is(names(), 'one', 'a cached list');
listening($_) for keys %audience;
heard({}, 'no gap at the beginning');


# a stream that breaks

cut('mcp');
heard(gap('mcp'), 'a stream without ids broke');

emit('mcp', updated('file:///b'), 'e1');
heard({ ab => 'file:///b' }, 'an event with an id');
is(cut('mcp')->{last}, 'e1', 'a stream with ids goes on');
heard({}, 'and has no gap');

$up->set(unknown => 'e1');
is(cut('mcp')->{last}, undef,
   'an id that the upstream does not know any more');
heard(gap('mcp'), 'is a gap');
$up->set(unknown => '');


# who waits for a resource is woken

my %for = (uri => 'file:///a', timeout_seconds => 0, after => 0);
my $seen;

do {
    $seen = waited($s{a}->tool('wait_for_event', { %for }));
    $for{after} = $seen->{position};
} until $seen->{timeout};

my $waits = $s{a}->send_only($s{a}->message('tools/call', {
    name => 'wait_for_event', arguments => { %for, timeout_seconds => 60 },
}));
cut('mcp');
is(waited(json_decode($waits->response('POST')->{body}))->{event}{params}{uri},
   'file:///a', 'a gap wakes who waits');
$waits->close;
heard(gap('mcp'), 'and tells who subscribed');


# cached lists are looked at

cut('lists');
heard({ lists => 'file:///l' }, 'an equal list is no news');
is(names(), 'one', 'the same list');

$up->set(tools => 'two');
cut('lists');
heard({ lists => 'file:///l tools' }, 'another one is');
is(names(), 'two', 'and is served');


# the upstream is restarted

restart();
heard(gap(qw(mcp other lists)), 'the upstream was down and forgot all');
goes_on($_) for qw(mcp lists);


# it forgets a session whose stream stays open

my $forgotten = $sid{mcp};
$up->set(forget => $forgotten);
subscribe($s{ab}, 'file:///c');
push @all, 'file:///c';
another('mcp', 'sid', $forgotten);
heard(gap('mcp'), 'a forgotten session is left, with its stream');
ok((wait_for { !$up->held($forgotten) }), 'which ends');
goes_on('mcp');


# kill -9

heard(gap(kill_holder('mcp')), 'the worker that listened is killed');
goes_on('mcp');

emit('mcp', updated('file:///b'), 'e2');
heard({ ab => 'file:///b' }, 'an event with an id');
heard(gap(grep { $_ ne 'mcp' } kill_holder('mcp')),
      'with ids nothing is missed');


# an id of a session that is no more

restart();
heard(gap(qw(mcp other lists)), 'restarted once more');
my @gaps = kill_holder('mcp');
is(listening('mcp')->{last}, undef,
   'an id of the session before is not asked for');
heard(gap(@gaps), 'and what came since is missed');


# a reload: one session may have several streams

for my $which (qw(newest oldest)) {
    $t->hup;
    ok((wait_for { $up->held($sid{mcp}) == 2 }), 'both listen');

    for my $uri (qw(file:///a file:///b file:///a)) {
        $up->emit_one($sid{mcp}, $which, [event => updated($uri)]);
    }

    ok($t->reloaded, "reload, the $which stream speaks");
    ok($t->wait_old, 'old workers are gone');
    ok((wait_for { $up->held($sid{mcp}) == 1 }), 'one stream is left');
    heard({ ab => 'file:///a file:///a file:///b', a => 'file:///a file:///a' },
          'what is said meanwhile is heard, and nothing else');
}


# events go on and on

my @many = map { "file:///many/$_" } 1 .. 60;
subscribe($s{none}, $_) for @many;
ok($t->reload, 'reload');

for my $uri (@many) {
    wait_for {
        $up->emit_one($sid{mcp}, 'newest', [event => updated($uri)]);
    };
    select undef, undef, undef, 0.02;
}

ok($t->wait_old, 'old workers are gone');
heard({ none => "@many" }, 'one at a time, all through a reload');
$s{none}->call('resources/unsubscribe', { uri => $_ }) for @many;


# an upstream that refuses a second stream, or lets it replace the first

for my $how (qw(refuse replace)) {
    $up->set(second => $how);
    ok($t->reload, "reload, a second stream: $how");
    ok($t->wait_old, 'old workers are gone');
    listening($_) for keys %audience;

    if ($how eq 'refuse') {
        heard(gap(qw(mcp other lists)), 'a gap is told');

    } else {
        drain();
    }

    goes_on('mcp');
}

$up->set(second => '');


# more resources than are told of one by one

subscribe($s{none}, "file:///none/$_") for 1 .. 200;
subscribe($s{ab}, "file:///ab/$_") for 1 .. 100;
cut('mcp');
ok($g{ab}->event_where(sub { ($_[0]{event} || '') eq 'lagged' }),
   'a gap of many resources is one of all');

my %seen;

while (keys %seen < 200) {
    my $e = $g{none}->method('notifications/resources/updated') or last;
    $seen{ $e->{json}{params}{uri} }++;
}

is(scalar keys %seen, 200, 'each is told of');

done_testing();


# again, behind the last event

sub open_stream {
    my ($name) = @_;

    $g{$name} = $s{$name}->open_get(
        last_event_id => $g{$name} && $g{$name}->last_id);
}


sub subscribe {
    my ($s, $uri) = @_;
    my $r = $s->call('resources/subscribe', { uri => $uri });
    is_deeply($r->{result}, {}, 'subscribed') if !$r->{result};
}


sub names {
    return join ' ', map { $_->{name} }
                     @{ $s{lists}->call('tools/list')->{result}{tools} };
}


sub waited { $_[0]{result}{structuredContent} || {} }


# waits for its stream: the GET request that the upstream saw last

sub listening {
    my ($who) = @_;
    my $get;

    wait_for {
        $get = $up->get("get $audience{$who}");
        $get && $up->held($get->{sid});
    };

    $sid{$who} = $get->{sid};
    return $get;
}


sub emit {
    my ($who, $message, $id) = @_;
    return $up->emit_one($sid{$who}, 'newest',
                         [event => $message, $id ? (id => $id) : ()]);
}


sub cut {
    my ($who) = @_;
    my $n = listening($who)->{n};

    $up->emit($sid{$who}, ['cut']);
    return another($who, 'n', $n);
}


# waits for one that is not the one before

sub another {
    my ($who, $what, $old) = @_;
    my $get;

    wait_for { $get = listening($who); $get->{$what} ne $old };
    return $get;
}


sub restart {
    $up->refuse;
    $up->set(epoch => 1 + ($up->get('epoch') || 0));
    $up->drop;
    $up->restore;
    listening($_) for keys %audience;
}


# what the same worker listened to

sub kill_holder {
    my ($who) = @_;
    my $pid = listening($who)->{worker};
    my @gaps = grep { listening($_)->{worker} eq $pid } sort keys %audience;

    ok($t->kill_worker($pid), 'kill -9');
    another($_, 'worker', $pid) for @gaps;

    return @gaps;
}


sub goes_on {
    my ($who) = @_;
    my $uri = $who eq 'lists' ? 'file:///l' : 'file:///b';

    wait_for { emit($who, updated($uri)) };
    heard({ $who eq 'lists' ? 'lists' : 'ab' => $uri }, "$who goes on");
}


sub updated {
    return { jsonrpc => '2.0', method => 'notifications/resources/updated',
             params => { uri => $_[0] } };
}


# what a gap of these audiences tells

sub gap {
    my %gap;

    for my $who (@_) {
        if ($who eq 'mcp') {
            $gap{ab} = "@all $kinds";
            $gap{a} = "file:///a $kinds";
            $gap{none} = $kinds;

        } elsif ($who eq 'other') {
            $gap{other} = "file:///a $kinds";

        } else {
            $gap{lists} = 'file:///l';
        }
    }

    return \%gap;
}


# What each hears, URIs and changed kinds: as much as it should, and behind
# that no more, until a marker that is published then.

sub heard {
    my ($want, $name) = @_;
    my %got = map { $_ => [] } keys %s;

    for my $who (keys %$want) {
        my @want = split / /, $want->{$who};
        collect($who, $got{$who}, scalar @want);
    }

    my $marker = mark();
    collect($_, $got{$_}, 1e9, $marker) for keys %s;

    is_deeply({ map { $_ => join ' ', sort @{ $got{$_} } } keys %s },
              { map { $_ => join ' ', sort split / /, $want->{$_} || '' }
                keys %s }, $name);
}


sub drain {
    my $marker = mark();
    collect($_, [], 1e9, $marker) for keys %s;
}


# behind what the upstream said by then

sub mark {
    my $marker = 'marker-' . ++$markers;

    for my $who (keys %audience) {
        my $id = "$marker $who";
        wait_for {
            emit($who, { jsonrpc => '2.0', id => $id, method => 'ping' });
        };
        wait_for { $up->get($id) };
    }

    $t->post('/publish', { 'Content-Type' => 'application/json' },
             json_encode({ jsonrpc => '2.0', method => 'notifications/message',
                           params => { level => 'error', data => $marker } }));
    return $marker;
}


sub collect {
    my ($who, $got, $n, $marker) = @_;

    while (@$got < $n) {
        my $e = $g{$who}->event;

        if (!$e && $g{$who}->ended) {
            open_stream($who);
            next;
        }

        if (!$e) {
            push @$got, 'no more';
            return;
        }

        push @$got, 'lagged' if ($e->{event} || '') eq 'lagged';
        next unless $e->{json};

        my $m = $e->{json}{method} || '';
        my $p = $e->{json}{params};

        push @$got, $p->{uri} if $m eq 'notifications/resources/updated';
        push @$got, $1 if $m =~ m{notifications/(.*)/list_changed};
        return if $marker && ($p->{data} || '') eq $marker;
    }
}


# a session ends with the epoch in which it was made

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
                                  tools => {}, prompts => {} },
                serverInfo => { name => 'up', version => '1' },
            }), { 'Mcp-Session-Id' => $sid }];
        },
        'resources/subscribe' => {},
        'resources/unsubscribe' => {},
        'tools/list' => sub {
            return { tools => [{ name => $Mcp::Upstream::V{tools} || 'one',
                                 inputSchema => { type => 'object' } }] };
        },
    );

    return Mcp::Upstream->new(sub {
        my ($r) = @_;
        my $sid = $r->{headers}{'mcp-session-id'};
        my $v = \%Mcp::Upstream::V;

        return [http => 404, {}, '']
            if defined $sid && (!defined $session{$sid}
                                || $session{$sid} != ($v->{epoch} || 0)
                                || $sid eq ($v->{forget} || ''));
        $v->{ $r->{json}{id} } = 1 if ref $r->{json} && $r->{json}{result};
        return $mcp->($r) unless $r->{method} eq 'GET';

        return [http => 400, {}, '']
            if $v->{unknown}
               && ($r->{headers}{'last-event-id'} || '') eq $v->{unknown};

        if ($v->{second} && Mcp::Upstream::tagged($sid)) {
            return [http => 409, {}, ''] if $v->{second} eq 'refuse';
            Mcp::Upstream::cut($sid);
        }

        $v->{"get $r->{headers}{'x-audience'}"} = {
            n => $r->{n}, sid => $sid, last => $r->{headers}{'last-event-id'},
            worker => $r->{headers}{'x-worker'},
        } unless $v->{ $r->{headers}{'x-session'} };

        return [sse => {}], [tag => $sid], [hang =>];
    });
}
