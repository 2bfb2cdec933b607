#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Event streams of upstreams as servers in the field send them: events that are
# no messages, streams that are refused for a while, streams that stay open
# behind the answer.

use FindBin;
use lib "$FindBin::Bin/lib";

use Time::HiRes qw(time);

use Mcp::Test;

my @answers = (
    capabilities => { tools => {}, logging => {},
                      resources => { subscribe => JSON::PP::true } },
    'tools/list' => { tools => [] }, 'logging/setLevel' => {},
    'resources/subscribe' => {},
);

# what stands before a result, in its own stream

my %before = (
    text       => 'keepalive',
    'half JSON' => '{"jsonrpc":"2.0",',
    number     => '1',
    string     => '"alive"',
    'no UTF-8' => "\xff\xfe",
    lines      => "a\n\x01b",
);

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(@answers,
    'tools/call' => sub {
        my ($r) = @_;
        my $p = $r->{json}{params};

        return { as => 'json' } if $p->{name} eq 'plain';

        return ([sse => {}],
                (map { ([event => $_]) } @{ $p->{arguments}{before} }),
                [event => notification('progress', {
                    progressToken => 'p', progress => 1 })],
                (map { ([event => $_]) } @{ $p->{arguments}{before} }),
                $p->{name} eq 'nothing' ? ()
                    : [event => Mcp::Upstream::result($r, { as => 'sse' })],
                [end =>]);
    },
    GET => sub {
        my ($r) = @_;
        my $status = shift @{ $Mcp::Upstream::V{statuses} || [] };

        return [http => $status, {}, ''] if $status;
        return [http => 401, {}, '']
            if $Mcp::Upstream::V{token} && $Mcp::Upstream::V{token}
                                      ne ($r->{headers}{authorization} || '');
        return ([sse => {}], [tag => 'get'], [hang =>]);
    },
));

# answers every request by a stream that it does not end

my $open = Mcp::Upstream->new(sub {
    my ($r) = @_;

    return [http => $r->{method} eq 'GET' ? 405 : 200, {}, '']
        if $r->{method} ne 'POST';

    my ($head, @body) = Mcp::Upstream::mcp(@answers, sessions => 0,
        'tools/call' => { as => 'open' })->($r);

    return ($head, @body) unless $head->[0] eq 'json';
    return ([sse => { 'Mcp-Session-Id' => 'o-' . $r->{n} }],
            [event => $head->[1]], [tag => 'open'], [hang =>]);
});

my $t = Mcp::Test->new(
    vars => { UP => $up->port, OPEN => $open->port }, conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /alone {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /open {
        mcp_endpoint zone=main;
        mcp_upstream open /_open;
    }

    location = /_up   { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_open { internal; proxy_pass http://127.0.0.1:%%OPEN%%/; }
    location = /publish { mcp_publish zone=main; }
}
CONF

# a call's own stream

my $s = $t->session(path => '/alone');
my $json = $t->session(path => '/alone', accept => 'application/json');

for my $what (sort keys %before) {
    for my $client ($s, $json) {
        my $from = length $t->log;
        my $data = $before{$what};
        my $r = $client->tool('stream', { before => [$data, $data] });

        is($r->{http}{status}, 200, "$what: 200");
        is_deeply($r->{result}, { as => 'sse' }, 'the result comes');

        my @lines = grep { /is not a JSON-RPC message/ }
                    split /\n/, substr $t->log, $from;

        is(scalar @lines, 1, 'the log has one line')
            or diag(join "\n", @lines);
        like($lines[0], qr/ \[warn\] .* "up" sent an event/,
             'that names the upstream');
    }
}

my $from = length $t->log;
my $r = $s->tool('nothing', { before => ['keepalive'] });
is($r->{error}{code}, -32603, 'nothing else: an error');
like(substr($t->log, $from), qr/message: "keepalive"/,
     'the log has what came');


# streams for notifications, of clients and of the module

for my $path ('/alone', '/mcp') {
    my $s = $t->session(path => $path);
    my $get = $s->open_get;
    my $name = $path eq '/mcp' ? 'the shared stream' : 'a client\'s stream';

    $get->event;

    if ($path eq '/mcp') {
        is_deeply($s->call('resources/subscribe', { uri => 'x:/a' })
                  ->{result}, {}, 'subscribed');

    } else {
        $s->tool('plain');
        $get = $s->open_get;
        $get->event;
    }

    # the client's own, and that for all

    my $n = $path eq '/mcp' ? 2 : 1;
    ok((wait_for { $up->held('get') == $n }), "$name stands");
    my $asked = $up->count(sub { $_[0]{method} eq 'GET' });

    $up->emit('get', [event => 'keepalive'], [event => '{'], [event => '7'],
              [event => notification('resources/updated', { uri => 'x:/a' })]);

    my $e = $get->method('notifications/resources/updated');
    is($e && $e->{json}{params}{uri}, 'x:/a',
       "$name is heard behind what is no message");
    is($up->count(sub { $_[0]{method} eq 'GET' }), $asked, 'it stands on');

    # it ends, and is refused for a while

    $up->set(statuses => [404, 404, 402]);
    $up->drop;
    my @gets = $up->wait_requests(sub { $_[0]{method} eq 'GET' }, $asked + 4,
                                  60);
    cmp_ok(scalar @gets, '>=', $asked + 4, 'it is asked for again');
    ok((wait_for { $up->held('get') }), 'until it stands');

    $up->emit('get',
              [event => notification('resources/updated', { uri => 'x:/a' })]);
    $e = $get->method('notifications/resources/updated');
    is($e && $e->{json}{params}{uri}, 'x:/a', 'and is heard again');

    $s->delete;
    wait_for { !$up->held('get') };
}


# a stream that finds its session forgotten makes another one, with its level

$s = $t->session(path => '/alone');
is_deeply($s->call('logging/setLevel', { level => 'error' })->{result}, {},
          'a level');
$up->clear;

my $get = $s->open_get;
$get->event;

for my $what ('made', 'restored') {
    my ($set) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH'
        && ($_[0]{json}{method} || '') eq 'logging/setLevel'
    });
    is($set && $set->{json}{params}{level}, 'error',
       "it is set in the session that is $what for a stream");
    ok((wait_for { $up->held('get') }), 'which stands');

    $up->clear;

    if ($what eq 'made') {
        $up->set(statuses => [404]);
        $up->set(forget => 1);
    }

    $up->drop;
}

$s->delete;


# 404 to GET alone, as of a server without a route for GET, is no lost session

$s = $t->session(path => '/alone');
$s->tool('plain');
my ($sid) = map { $_->{headers}{'mcp-session-id'} || () }
            $up->calls('tools/call');

$up->clear;
$up->set(statuses => [404, 404]);
$get = $s->open_get;

my @gets = $up->wait_requests(sub { $_[0]{method} eq 'GET' }, 3);
is(scalar @gets, 3, 'a stream is refused with 404 and asked for again');
is_deeply([grep { $_->{headers}{'mcp-session-id'} ne $sid } @gets], [],
          'on the same session');
is(scalar $up->calls('initialize'), 0, 'as the upstream still knows it');
is_deeply([map { $_->{headers}{'mcp-session-id'} } $up->calls('ping')],
          [$sid, $sid], 'because it was asked');
$s->delete;
wait_for { !$up->held('get') };


# credentials that expire: the client is asked for those that it has now

$s = $t->session(path => '/alone', headers => { Authorization => 'old' });
$s->tool('plain');
$get = $s->open_get;
ok((wait_for { $up->held('get') }), 'a stream with credentials');

$up->set(token => 'new');
$up->drop;
ok($get->eof, 'they expire: the stream of the client is closed');

$s->{headers}{Authorization} = 'new';
$get = $s->open_get;
ok((wait_for { $up->held('get') }), 'with the next ones it stands again');
$s->delete;
wait_for { !$up->held('get') };

$s = $t->session(path => '/alone', headers => { Authorization => 'old' });
$s->tool('plain');
$up->clear;
$get = $s->open_get;
$up->wait_requests(sub { $_[0]{method} eq 'GET' }, 2);
$get->pump(0);
ok(!$get->ended, 'with wrong ones it is not closed again and again');
$s->delete;
$up->set(token => '');


# streams that stay open behind the answer

my $began = time();

$s = $t->session(path => '/open');

is_deeply($s->call('logging/setLevel', { level => 'error' })->{result}, {},
          'a level');
is_deeply($s->tool('x')->{result}, { as => 'open' }, 'an answer');

for (1 .. 4) {
    my $s = $t->session(path => '/open');
    $s->call('logging/setLevel', { level => 'error' });
    is_deeply($s->tool('x')->{result}, { as => 'open' }, 'a new session');
}

# 1 s is what the rest of each of the 16 streams was waited for

within(time() - $began, 0, 8, 'nobody waits for the end of a stream');
ok((wait_for { !$open->held('open') }), 'and none is left open');

$t->allow_log(qr/cut its response/, qr/without an answer/);
done_testing();
