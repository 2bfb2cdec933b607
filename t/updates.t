#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Updates of resources at the defaults, of servers that tell all who
# subscribed, and of those that tell only the session that caused the change.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

my $port = free_port();
my $everything = Mcp::Node->everything($port);

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => JSON::PP::true },
                      tools => {} },
    'resources/subscribe' => sub {
        my $id = $_[0]{headers}{'x-session'};
        return $id eq ($Mcp::Upstream::V{mute} || '') ? [hang =>] : {};
    },
    'resources/unsubscribe' => {},
    'tools/call' => sub {
        my ($r) = @_;
        my $uri = $r->{json}{params}{arguments}{uri};

        return ([sse => {}], $uri ? [event => updated($uri)] : (),
                [event => Mcp::Upstream::result($r, { content => [] })]);
    },
    GET => sub {
        return ([sse => {}], [tag => $_[0]{headers}{'mcp-session-id'}],
                [hang =>]);
    },
));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, EVERYTHING => $port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_builtin_tools wait_for_event;
    }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /status { mcp_status zone=main; }

    location = /short {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_upstream_timeout 3s;
    }

    location = /all {
        mcp_endpoint zone=main;
        mcp_upstream everything /_everything;
    }

    location = /_everything {
        internal;
        proxy_set_header Connection "";
        proxy_pass http://127.0.0.1:%%EVERYTHING%%/mcp;
    }
}
EOF

my @w = $t->workers;
my $markers = 0;


# each client's session at the upstream is subscribed, too

my @s = map { $t->session } 0 .. 1;
my @get = map { $s[$_]->open_get(conn => $t->conn_on_worker($w[$_])) } 0, 1;
my @there = map { listening($s[$_]->id) } 0, 1;

is_deeply($s[$_]->call('resources/subscribe', { uri => 'x:a' })->{result}, {},
          "client $_ subscribes") for 0, 1;

wait_for { $up->calls('resources/subscribe') >= 3 };

my @asked = map { $_->{headers}{'mcp-session-id'} }
            $up->calls('resources/subscribe');
my ($own) = grep { $_ ne $there[0] && $_ ne $there[1] } @asked;

is(scalar @asked, 3, 'the upstream is asked for each, and for all');
ok($own, 'by a session of the module') && listening($own, 1);


# one that has no session there hears of it by that for all, and is subscribed
# once it has one

my $late = $t->session;
is_deeply($late->call('resources/subscribe', { uri => 'x:a' })->{result}, {},
          'another client');
is(scalar $up->calls('resources/subscribe'), 3, 'is supplied already');
my $late_get = $late->open_get;
my $late_there = listening($late->id);
ok((wait_for {
       grep { $_->{headers}{'mcp-session-id'} eq $late_there }
       $up->calls('resources/subscribe')
   }), 'and subscribed once it has a stream');
$late->delete;


# a server that tells all of them: once, whichever comes first

told($own, @there);
hear(1, 'the one for all first');
told(@there, $own);
hear(1, 'their own first');

told($own, $there[0], $own, $there[1], $there[0], $own, $there[1], @there);
hear(3, 'three of them, mixed');


# what a client alone is told of comes, at first only when it is known

for my $n (0, 1) {
    told($there[$n]);
    is(uri($get[$n]), 'x:a', "client $n alone is told of one");
}

my @log = $t->log =~ /(\[notice\].* notified one session .*)/g;
ok(@log >= 1 && @log <= 2, 'the log says so, once in a worker');
like($log[0], qr/"x:.*"listen=off" of "mcp_upstream"/, 'and what to change');

my ($at, @took);

for (1 .. 3) {
    $at = time();
    told($there[0]);
    is(uri($get[0]), 'x:a', 'the next one');
    push @took, time() - $at;
}

within((sort { $a <=> $b } @took)[0], 0, 1.5, 'comes at once');

quiet('nothing else came');

all_again();


# what such a client waits for is there

told($there[0]);
is($s[0]->tool('wait_for_event', { uri => 'x:a', timeout_seconds => 20,
                                   after => last_position($s[0]) })
   ->{result}{structuredContent}{event}{params}{uri}, 'x:a',
   'who waits for it has it');
is(uri($get[0]), 'x:a', 'as has the stream');
all_again();


# on the stream of a call

$s[0]->tool('change', { uri => 'x:a' });
is(uri($get[0]), 'x:a', 'one that came with the answer to a call');
all_again();


# a part of the resource, which the upstream may say instead

$up->emit($there[0], [event => updated('x:a/part')]);
is(uri($get[0]), 'x:a/part', 'of a part of the resource');


# its worker dies before it is known that a client alone is told

my ($pid) = map { $_->{pid} } grep { $_->{key} =~ /"own"/ }
                              @{ $t->status->{leases}{by} };
my ($n) = grep { $w[$_] != $pid } 0, 1;

$up->emit($there[$n], [event => updated('x:a')],
                      [event => updated('x:a/part')]);
is(uri($get[$n]), 'x:a/part', 'one that is kept');
ok($t->kill_worker($w[$n]), 'kill -9 of the worker that keeps it');
$get[$n] = $s[$n]->open_get;
listening($s[$n]->id);
is(uri($get[$n]), 'x:a', 'the client may have missed it');
all_again();


# one that ends meanwhile

in_time(sub {
    my ($try) = @_;

    told($there[1]);

    my $said = read_up_to_now($get[1], $there[1]);

    $s[1]->call('resources/unsubscribe', { uri => 'x:a' });

    return sub {
        ok((wait_for { unsubscribed($there[1]) >= $try }),
           'the upstream session of a client unsubscribes');
        ok(!unsubscribed($own),
           'that for all does not, as others are subscribed');

        $said .= marker(1);

        is_deeply($s[1]->call('resources/subscribe', { uri => 'x:a' })
                  ->{result}, {}, 'it subscribes again');
        return $said;
    };
}, '', 'what was not said yet is not said');


# after a reload

told($there[0]);
is(uri($get[0]), 'x:a', 'one alone');

ok($t->reload, 'reload');
@get = map { $_->open_get } @s;
ok($t->wait_old, 'old workers are gone');
listening($_) for map { $_->id } @s;
is(uri($get[$_]), 'x:a', 'who is told alone may have missed one') for 0, 1;
all_again();

is_deeply($s[0]->call('resources/unsubscribe', { uri => 'x:a' })->{result}, {},
          'the first one unsubscribes');
$s[1]->delete;
ok(wait_for { unsubscribed($own) }, 'the last one leaves: none for all');


# the last one unsubscribes while it is not known yet whether it alone is told

@w = $t->workers;

for my $again (0, 1) {
    my $name = $again ? 'subscribed again' : 'unsubscribed';
    my @two = ($t->session, $t->session(path => '/short'));
    my @stream = map { $_->open_get(conn => $t->conn_on_worker($w[0])) } @two;
    my @sid = map { listening($_->id) } @two;

    $up->clear;
    $_->call('resources/subscribe', { uri => 'x:a' }) for @two;
    ok((wait_for { $up->calls('resources/subscribe') >= 4 }),
       "$name: two clients of two endpoints");

    my ($for_all) = map { $_->{headers}{'mcp-session-id'} }
                    grep { $_->{headers}{'x-session'} ne $two[0]->id }
                    $up->calls('resources/subscribe');
    listening($for_all, 1);

    told($sid[0], $for_all);
    is(uri($stream[0]), 'x:a', 'one is told by that for all');
    is_deeply($two[0]->call('resources/unsubscribe', { uri => 'x:a' })
              ->{result}, {}, 'it unsubscribes');

    if ($again) {
        is_deeply($two[0]->call('resources/subscribe', { uri => 'x:a' })
                  ->{result}, {}, 'and subscribes');

    } else {
        ok((wait_for { !$up->held($for_all) }), 'the stream for all ends');
    }

    told($sid[1]);
    is(uri($stream[1]), 'x:a', 'the other one is told 2 s later');
    is(read_up_to_now($stream[0], $sid[0]), '', 'and the first nothing more');
    $_->delete for @two;
}


# an upstream session of a client that does not answer

my $mute = $t->session;
$mute->tool('change');
$up->set(mute => $mute->id);
$at = time();
is_deeply($mute->call('resources/subscribe', { uri => 'x:4' })->{result}, {},
          'a subscription that is shared');
within(time() - $at, 1.8, 20, 'is answered after 2 s');
$mute->delete;

$mute = $t->session(path => '/short');
$mute->tool('change');
is_deeply($mute->call('resources/subscribe', { uri => "x:$_" })->{result}, {},
          "x:$_") for 1 .. 3;

$up->clear;
$up->set(mute => $mute->id);
$up->set(forget => 1);
is_deeply($mute->tool('change')->{result}, { content => [] },
          'the upstream forgot its sessions');
is(scalar(grep { $_->{headers}{'x-session'} eq $mute->id }
          $up->calls('resources/subscribe')), 1,
   'the first that is not answered is the last of its subscriptions');
$up->set(mute => '');
$mute->delete;


# the reference server

my @e = map { $t->session(path => '/all') } 0 .. 1;
my @eget = map { $_->open_get } @e;
my $uri = 'demo://resource/dynamic/text/1';

for my $n (0, 1) {
    is_deeply($e[$n]->call('resources/subscribe', { uri => $uri })->{result},
              {}, "server-everything: client $n subscribes");
}

$e[0]->tool('toggle-subscriber-updates');
is(uri($eget[0]), $uri, 'an update');
is(uri($eget[0]), $uri, 'and the next one, 5 s later');
is_deeply([ grep { ($_->{data} || '') =~ /updated/ } $eget[1]->drain(0.1) ],
          [], 'of which the server does not tell the other client');

$e[1]->tool('toggle-subscriber-updates');
is(uri($eget[1]), $uri, 'which has its own');

ok($t->reload, 'reload');
@eget = map { $_->open_get } @e;
ok($t->wait_old, 'old workers are gone');
is(uri($eget[$_]), $uri, "an update for client $_ after it") for 0, 1;
uri($eget[0], 0.2);
is(uri($eget[0]), $uri, 'and another one');

is_deeply($e[0]->call('resources/unsubscribe', { uri => $uri })->{result}, {},
          'unsubscribe');
uri($eget[0], 0.2);
is(uri($eget[1]), $uri, 'the other one is told');
is(uri($eget[0], 0.2), undef, 'who left is not');

my $line;
$_->delete for @e;
my $ended = 0;
$ended += $line =~ /Transport closed/
    while $ended < 2 && defined($line = $everything->line(10));
is($ended, 2, 'DELETE ends their sessions at the server');

done_testing();


sub updated {
    return notification('resources/updated', { uri => $_[0] });
}


sub told {
    $up->emit($_, [event => updated('x:a')]) for @_;
}


# the upstream session of a session here, once it has its stream there

sub listening {
    my ($id, $is) = @_;
    my $sid = $id;

    wait_for {
        ($sid) = map { $_->{headers}{'mcp-session-id'} }
                 grep { $_->{headers}{'x-session'} eq $id }
                 $up->requests(sub { $_[0]{method} eq 'GET' })
            unless $is;
        $sid && $up->held($sid);
    };

    return $sid;
}


sub unsubscribed {
    my ($sid) = @_;
    return grep { $_->{headers}{'mcp-session-id'} eq $sid
                  && $_->{json}{params}{uri} eq 'x:a' }
           $up->calls('resources/unsubscribe');
}


sub uri {
    my ($get, $timeout) = @_;
    my $e = $get->method('notifications/resources/updated', $timeout);
    return $e && $e->{json}{params}{uri};
}


# each client hears so many, and no more

sub hear {
    my ($n, $name) = @_;

    for my $i (0, 1) {
        is(scalar(grep { ($_ || '') eq 'x:a' } map { uri($get[$i]) } 1 .. $n),
           $n, "$name: client $i");
    }

    quiet('and no more');
}


# who was told alone hears at once, so that the one for all has to come first

sub all_again {
    in_time(sub {
        told($own);
        is(uri($get[$_]), 'x:a', "all are told again: client $_") for 0, 1;
        told(@there);

        return sub { join ' ', marker(0), marker(1) };
    }, ' ', 'once');
}


# after 2 s nginx takes no update for another any more: where the first part
# took long, all is done again

sub in_time {
    my ($sub, $is, $name) = @_;

    for my $try (1 .. 10) {
        my $at = time();
        my $rest = $sub->($try);
        my $late = time() - $at > 1;
        my $came = $rest->();

        return is($came, $is, $name) unless $late && $try < 10;
    }
}


# waits until nginx has read what the upstream sent on the stream of a client's
# session; returns the updates that came

sub read_up_to_now {
    my ($stream, $sid) = @_;
    my @came;

    $up->emit($sid, [event => notification('message', {
        level => 'error', data => 'mark' })]);

    while (my $e = $stream->event) {
        next unless ref $e->{json};
        last if $e->{json}{method} eq 'notifications/message';
        push @came, $e->{json}{params}{uri};
    }

    return "@came";
}


# another resource, of which a client alone is told, comes behind all that was
# kept before; what came until then

sub marker {
    my ($n) = @_;

    my $marker = 'x:marker' . ++$markers;
    my $sid = $there[$n];

    $s[$n]->call('resources/subscribe', { uri => $marker });
    $up->emit($sid, [event => updated($marker)]);

    my @came;
    while (defined(my $uri = uri($get[$n]))) {
        last if $uri eq $marker;
        push @came, $uri;
    }

    $s[$n]->call('resources/unsubscribe', { uri => $marker });
    return "@came";
}


sub quiet {
    my ($name) = @_;
    is(join(' ', marker(0), marker(1)), ' ', $name);
}


sub last_position {
    my ($s) = @_;
    my $r = $s->tool('wait_for_event', { uri => 'x:a', timeout_seconds => 0 });
    my $after = $r->{result}{structuredContent}{position};

    while (1) {
        $r = $s->tool('wait_for_event', { uri => 'x:a', after => $after,
                                          timeout_seconds => 0 });
        last if $r->{result}{structuredContent}{timeout};
        $after = $r->{result}{structuredContent}{position};
    }

    return $after;
}
