#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Tools that say nothing for a long time: they are waited for unless a time-out
# was written, their clients see signs of life, and TCP looks whether they are
# still there.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;

my $clock = Mcp::Clock->new;

# a stream that is to be resumed

sub later { ([sse => {}], [event => undef, id => 'e', retry => 30000]) }

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    GET => sub {
        my $id = $_[0]{headers}{'last-event-id'} || '';
        return ([tag => 'mute'], [sse => {}], [until => 'mute'])
            if $id eq 'mute';
        return $id ? later() : [http => 405, {}, ''];
    },
    capabilities => { tools => {} },
    'tools/list' => { tools => [] },
    'tools/call' => sub {
        my ($r) = @_;
        return { as => 'plain' } if $r->{json}{params}{name} eq 'plain';
        return later() if $r->{json}{params}{name} eq 'later';
        return ([sse => {}], [event => undef, id => 'mute', retry => 50])
            if $r->{json}{params}{name} eq 'mute';
        return ([until => 'slow'],
                [json => Mcp::Upstream::result($r, { as => 'slow' })]);
    },
));

# makes no session

my $stuck = Mcp::Upstream->new(sub {
    my ($r) = @_;
    return [hang =>] if ref $r->{json} && $r->{json}{method} eq 'initialize'
                        && $Mcp::Upstream::V{stuck};
    return Mcp::Upstream::mcp(sessions => 0, 'tools/call' => {})->($r);
});

my $t = Mcp::Test->new(
    vars => { UP => $up->port, STUCK => $stuck->port }, conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;
    keepalive_timeout 1h;

    location = /mcp     { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /stuck   { mcp_endpoint zone=main; mcp_upstream st /_stuck; }
    location = /total   { mcp_endpoint zone=main; mcp_upstream up /_up;
                          mcp_upstream_timeout total=70s; }
    location = /written { mcp_endpoint zone=main; mcp_upstream up /_up;
                          mcp_upstream_timeout 60s; }
    location = /read    { mcp_endpoint zone=main; mcp_upstream up /_read; }
    location = /off     { mcp_endpoint zone=main; mcp_upstream up /_off; }

    location = /_up    { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_stuck { internal; proxy_pass http://127.0.0.1:%%STUCK%%/; }
    location = /_read  { internal; proxy_pass http://127.0.0.1:%%UP%%/;
                         proxy_read_timeout 50s; }
    location = /_off   { internal; proxy_pass http://127.0.0.1:%%UP%%/;
                         proxy_socket_keepalive off; }
}
CONF

my %s = map { $_ => $t->session(path => "/$_") }
        qw(mcp stuck total written read off);
my $json = $t->session(path => '/mcp', accept => 'application/json');

# one at a time gets its connection to the upstream, so that these are known

$_->tool('plain') for @s{qw(mcp total written read off)}, $json;

my %call;

for my $name (qw(mcp total written read off)) {
    $call{$name} = $s{$name}->send_only(
        $s{$name}->message('tools/call', { name => 'slow' }));
}

$call{json} = $json->send_only(
    $json->message('tools/call', { name => 'slow' }));

ok((wait_for { 6 == grep { $_->{json}{params}{name} eq 'slow' }
                    $up->calls('tools/call') }), 'six calls run');

# connections that TCP looks after: the third of a line's timers

sub probed {
    my $port = sprintf '%04X', $up->port;
    open my $fh, '<', '/proc/net/tcp' or return;
    return scalar grep { / [0-9A-F]{8}:$port 01 \S+ 02:/ } <$fh>;
}

SKIP: {
    skip '/proc/net/tcp', 2 unless -r '/proc/net/tcp';
    is(probed(), 0, 'no connection is probed at once');
    $clock->pass($t, 11);
    ok((wait_for { probed() == 5 }),
       'each is after some time, unless that was forbidden')
        or diag(probed());
}

$stuck->set(stuck => 1);
$s{stuck}->send_only($s{stuck}->message('tools/call', { name => 'x' }));

$clock->pass($t, 65);

for my $name (qw(written read)) {
    my $r = $s{$name}->read_response($call{$name}->response('POST'));
    is($r->{json}{error}{code}, -32603, "$name: a time-out that was written")
        or diag($r->{body});
}

$clock->pass($t, 10);

my $r = $s{total}->read_response($call{total}->response('POST'));
is($r->{json}{error}{code}, -32603, 'total: the longest time of all');
like($t->log, qr/"st" (?:was silent for|did not finish within) 30000ms/,
     'a session that an upstream does not make is not waited for');

$clock->pass($t, 300);
$up->release('slow');

for my $name (qw(mcp off json)) {
    my $s = $name eq 'json' ? $json : $s{$name};
    my $r = $s->read_response($call{$name}->response('POST'));

    is_deeply($r->{json}{result}, { as => 'slow' },
              "$name: the result came after six minutes");
    cmp_ok(scalar(() = $r->{body} =~ /^:/mg), '>', 10,
           'the client saw signs of life')
        unless $name eq 'json';
}

# the longest time of all includes the pauses before a stream is resumed

sub resumed { scalar grep { $_->{headers}{'last-event-id'} } $up->requests }

my $plain = $t->session(path => '/total', accept => 'application/json');
my $later = $plain->send_only($plain->message('tools/call',
                                              { name => 'later' }));
$up->wait_requests(sub {
    ref $_[0]{json} && ($_[0]{json}{params}{name} || '') eq 'later'
});

for my $n (1, 2) {
    $clock->pass($t, 31);
    ok((wait_for { resumed() == $n }), 'a stream is resumed');
}

$r = $plain->read_response($later->response('POST'));
like($r->{body}, qr/"the upstream took too long"/,
     'but not behind the longest time of all');
is(resumed(), 2, 'nor is it asked for again');

# one that is resumed, and then silent

my $mute = $plain->send_only($plain->message('tools/call',
                                             { name => 'mute' }));
wait_for { $up->held('mute') };
my $before = length $t->log;
$clock->pass($t, 71);
$r = $plain->read_response($mute->response('POST'));
like($r->{body}, qr/"the upstream took too long"/, 'a stream that is silent');
like(substr($t->log, $before), qr/"up" did not finish within 70000ms/,
     'the log names the longest time of all');

$t->allow_log(qr/was silent for/, qr/did not finish within/, qr/timed out/);
done_testing();
