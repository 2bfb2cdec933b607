#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What happens while something else is under way at an upstream: a log level
# while a session is made, a subscription whose upstream goes, streams that
# replace each other.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $KEY = 'io.modelcontextprotocol/';
my $true = JSON::PP::true();


# $V{late}: initialize is answered after release('late'); $V{mute}:
# subscriptions are not answered

sub legacy {
    my $n = 0;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        sessions => 0,
        initialize => sub {
            my ($r) = @_;
            return ($Mcp::Upstream::V{late} ? [until => 'late'] : (),
                    [json => Mcp::Upstream::result($r, {
                        protocolVersion => $r->{json}{params}{protocolVersion},
                        capabilities => { tools => {}, logging => {},
                                          resources => { subscribe => $true } },
                        serverInfo => { name => 'up', version => '1' },
                    }), { 'Mcp-Session-Id' => 'id-' . ++$n }]);
        },
        'tools/call' => { content => [] },
        'logging/setLevel' => {},
        'resources/list' => { resources => [] },
        'resources/subscribe' => sub {
            return $Mcp::Upstream::V{mute} ? ([hang =>]) : {};
        },
        GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) },
    ));
}

my %up = (a => legacy(), b => legacy(),
          m => Mcp::Upstream->new(Mcp::Upstream::modern(
              capabilities => { resources => { subscribe => $true } },
              'resources/list' => { resources => [] })));

my $t = Mcp::Test->new(workers => 1, vars => {
    NAME => 'a', map { uc $_ => $up{$_}->port } keys %up }, conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_upstream_timeout 12s;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream %%NAME%% /_%%NAME%%;
    }

    location = /modern { mcp_endpoint zone=main; mcp_upstream m /_m; }

    location = /_a { internal; proxy_pass http://127.0.0.1:%%A%%/; }
    location = /_b { internal; proxy_pass http://127.0.0.1:%%B%%/; }
    location = /_m { internal; proxy_pass http://127.0.0.1:%%M%%/; }
}
CONF


# the log level is set while the session is made

my $s = $t->session;

$up{a}->clear;
$up{a}->set(late => 1);
my $call = $s->send_only($s->message('tools/call', { name => 'x' }));
ok($up{a}->wait_requests(sub { ($_[0]{json}{method} || '')
                               eq 'initialize' }), 'a session is being made');
is_deeply($s->call('logging/setLevel', { level => 'error' })->{result}, {},
          'a log level is set');
$up{a}->release('late');
is($call->response->{status}, 200, 'the call is answered');
is_deeply([ map { $_->{json}{params}{level} }
            $up{a}->calls('logging/setLevel') ], [ 'error' ],
          'the upstream has the level');
is((map { $_->{json}{method} } $up{a}->requests)[-1], 'tools/call',
   'before the call');
$up{a}->set(late => 0);


# a subscription waits for an upstream that leaves the configuration

$up{a}->set(mute => 1);
my $waits = $s->send_only($s->message('resources/subscribe',
                                      { uri => 'x:1' }));
ok($up{a}->wait_requests(sub { ($_[0]{json}{method} || '')
                               eq 'resources/subscribe' }),
   'one subscribes, and waits');
ok($t->reload(vars => { %{ $t->{vars} }, NAME => 'b' }), 'a reload');

my $begin = time;
is_deeply($s->call('resources/subscribe', { uri => 'x:1' })->{result}, {},
          'it subscribes again');
cmp_ok(time - $begin, '<', 8, 'and waits for the former upstream no more');
ok($up{b}->calls('resources/subscribe') >= 1, 'the other one is asked');
$waits->close;
ok($t->wait_old, 'the old worker is gone');


# the first stream tells of the first resource

$s = $t->session(path => '/modern');
ok($t->reload, 'a reload');
ok($t->wait_old, 'the old worker is gone');

subscribe('x:1');

my $get = $s->open_get(conn => $t->conn);

told('x:1');
is(heard(), 'x:1', 'an update of it');
is(scalar $up{m}->calls('subscriptions/listen'), 1, 'by one stream');


# the older one of two streams ends

is(two_streams('x:2'), 2, 'two streams for a while');
$up{m}->emit_one('listen', 'oldest', [end =>]);
told('x:2');
is(heard(), 'x:2', 'nothing is missing behind its end');

ok(wait_for { $up{m}->held('listen') == 1 }, 'one stream');
is(two_streams('x:3'), 2, 'two streams again');
$up{m}->emit_one('listen', 'oldest', [cut =>]);
is(join(' ', sort map { heard() } 1 .. 3), 'x:1 x:2 x:3',
   'it broke: what it may have had to tell is told');

done_testing();


# both streams stand for 1 s, and this process may stand still for longer

sub two_streams {
    my ($uri) = @_;
    my $n;

    for (1 .. 5) {
        subscribe($uri);
        $n = $up{m}->held('listen');
        last if $n == 2;
        $s->call('resources/unsubscribe', { uri => $uri });
        wait_for { $up{m}->held('listen') == 1 };
    }

    return $n;
}


sub subscribe {
    my ($uri) = @_;

    is_deeply($s->call('resources/subscribe', { uri => $uri })->{result}, {},
              "$uri: subscribed");
}


sub told {
    my ($uri) = @_;

    $up{m}->emit_one('listen', 'newest', [event => notification(
        'resources/updated', { uri => $uri, _meta => {
            "${KEY}subscriptionId" => 'nginx-mcp' } })]);
}


sub heard {
    my $e = $get->event_where(sub { $_->{json} });

    return $e ? $e->{json}{params}{uri} || $e->{json}{method} : 'nothing';
}
