#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The tools of the module and its topics for clients of revision 2026-07-28,
# who have no session: wait_for_event in all its ends, what the caller may
# read, shares and limits, and feeds and resources that it alone wants.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;
use Mcp::Feed;

my $K = 'io.modelcontextprotocol/';

my $feed = Mcp::Feed->new;
my $mcp = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [{ name => 'own', inputSchema => {
        type => 'object' } }, { name => 'wait_for_event', inputSchema => {
        type => 'object' } }] },
    'tools/call' => { content => [] },
    'resources/list' => { resources => [{ uri => 'u:a', name => 'a' }] },
    'resources/subscribe' => {},
    'resources/unsubscribe' => {},
));

my $t = Mcp::Test->new(
    vars => { FEED => $feed->port, MCP => $mcp->port }, conf => <<'EOF');
mcp_zone zone=main:16m;

map $mcp_name $denied {
    default                   0;
    session_info              1;
    events://secret/latest    1;
}

server {
    %%LISTEN%%
    server_name localhost;

    mcp_versions       any;
    mcp_builtin_tools  wait_for_event session_info;
    mcp_stream_after   0;
    mcp_drain_time     200ms;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_tenant $http_x_tenant;
        mcp_session_bind $http_x_user;
        mcp_call_limit 3;
    }

    location = /deny { mcp_endpoint zone=main name=deny; mcp_deny $denied; }

    location = /slow {
        mcp_endpoint zone=main name=slow;
        mcp_stream_after 50ms;
        mcp_stream_heartbeat 100ms;
    }

    location = /up {
        mcp_endpoint zone=main name=up;
        mcp_upstream mcp /_mcp;
    }

    location = /feeds {
        mcp_endpoint zone=main name=feeds;
        mcp_tenant $http_x_tenant;
        mcp_events /_of/$mcp_tenant;
        mcp_events /_about/$mcp_topic;
    }

    location = /few {
        mcp_endpoint zone=main name=few;
        mcp_topic_limit 2;
    }

    location = /legacy {
        mcp_endpoint zone=main name=legacy;
        mcp_versions 2025-11-25;
    }

    location = /_mcp { internal; proxy_pass http://127.0.0.1:%%MCP%%/mcp; }
    location /_ { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my @w = $t->workers;
my ($r, $conn);

my $ann = client('/mcp', { 'X-Tenant' => 'acme', 'X-User' => 'ann' });
my $bob = client('/mcp', { 'X-Tenant' => 'acme', 'X-User' => 'bob' });
my $eve = client('/mcp', { 'X-Tenant' => 'bold', 'X-User' => 'eve' });
my $deny = client('/deny');
my $up = client('/up');
my $few = client('/few');
my $only = client('/feeds', { 'X-Tenant' => 'x' });


# lists

is(join(' ', tools($ann)), 'wait_for_event session_info', 'the tools');
is(join(' ', tools($deny)), 'wait_for_event', 'without one that is denied');
is(join(' ', tools($up)), 'wait_for_event session_info own',
   'in front of those of the upstream');
is_deeply([ names($ann) ], [], 'no topic yet');

$r = $ann->call('resources/templates/list')->{json}{result};
is($r->{resourceTemplates}[0]{uriTemplate}, 'events://{+topic}/latest',
   'the template of topics');
is("$r->{resultType} $r->{ttlMs} $r->{cacheScope}", 'complete 0 private',
   'a result as the revision has it');
ok($ann->call('server/discover')->{json}{result}{capabilities}{$_},
   "discover offers $_") for qw(tools resources);


# an event from the call on

publish({ topic => 'a', tenant_id => 'acme', n => 1 });
is_deeply([ map { $_->{event}{n} } events($ann, 'a') ], [1],
          'an event is kept though nobody was there');

$r = waited($ann, { topic => 'a', timeout_seconds => 0 });
ok($r->{timeout}, 'what came before the call is not looked at');
my $begin = $r->{position};
is(waited($ann, { topic => 'a', after => 0 })->{event}{n}, 1,
   'but behind a position that is named');

publish({ topic => 'old', n => 1 });
is_deeply([ names($few) ], [ 'old' ], 'one for all, where there is one tenant');
is_deeply([ names($only) ], [], 'not where there may be any');
is_deeply($t->session(path => '/legacy')->call('resources/list')->{result},
          { resources => [] }, 'nor for clients with sessions');

for my $w (@w) {
    $conn = waiting($ann, { topic => 'a' }, $w);
    publish({ topic => 'b', tenant_id => 'acme' });
    publish({ topic => 'a', tenant_id => 'bold' });
    publish({ topic => 'a', tenant_id => 'acme', w => $w });
    $r = answer($conn);
    is($r->{structuredContent}{event}{w}, $w, 'it comes')
        or diag(json_encode($r));
    is($r->{resultType}, 'complete', 'with what each result has');
}

is(waited($ann, { topic => 'a', after => $begin })->{event}{w}, $w[0],
   'nothing between two calls is missed');
is(waited($eve, { topic => 'a', after => $begin })->{event}{tenant_id}, 'bold',
   'another tenant has another topic');


# for whom an event is

$conn = waiting($ann, { topic => 'mine' });
publish({ topic => 'mine', identity => 'bob', tenant_id => 'acme', n => 1 });
publish({ topic => 'mine', uri => 'u:x', tenant_id => 'acme', n => 3 });
publish({ topic => 'mine', identity => 'ann', tenant_id => 'acme', n => 4 });
is(answer($conn)->{structuredContent}{event}{n}, 4,
   'events for others are not shown');
is_deeply([ map { $_->{event}{n} } events($bob, 'mine') ], [1],
          'nor to those who read the topic');


# topics as resources

is_deeply([ names($ann) ], [ qw(a old b mine) ], 'topics are listed');
is_deeply([ names($eve) ], [ 'a' ], 'not those of another tenant');

$r = $ann->call('resources/read', { uri => 'events://a/latest' });
is("$r->{json}{result}{ttlMs} $r->{json}{result}{cacheScope}", '0 private',
   'a topic is read');
is_deeply([ map { $_->{event}{w} || 0 } events($ann, 'a') ], [0, @w],
          'its events');

for my $case (['events://none/latest', $ann], ['events://mine/latest', $eve]) {
    $r = $case->[1]->call('resources/read', { uri => $case->[0] });
    is(Mcp::Modern::said($r), '200 -32602', 'no topic');
    is($r->{json}{error}{data}{uri}, $case->[0], 'of this URI');
}


# what is refused

$r = $deny->call('tools/call', { name => 'session_info', arguments => {} });
is($r->{status}, 403, 'a tool that is denied');
$r = $deny->call('tools/call', { name => 'wait_for_event',
                                 arguments => { topic => 'secret' } });
is($r->{status}, 403, 'a topic that is denied');
is($deny->call('resources/read', { uri => 'events://secret/latest' })
   ->{status}, 403, 'and to read it');
ok($ann->call('tools/call', { name => 'wait_for_event', arguments => $_ })
   ->{json}{result}{isError}, 'wrong arguments')
    for {}, { uri => "a:b\0", timeout_seconds => 0 };


# limits are those of the identity, and who leaves waits no more

my @all = map { waiting($ann, { topic => 'c' }) } 1 .. 3;
is($ann->call('tools/call', { name => 'wait_for_event',
                              arguments => { topic => 'c' } })->{status},
   503, 'mcp_call_limit');
ok(waited($bob, { topic => 'c', timeout_seconds => 0 })->{timeout},
   'of this identity');
$_->close for @all;
ok(waits(0), 'a response that its client closes is cancelled');

@all = map { waiting($few, { topic => $_ }) } qw(a b);
$r = $few->call('tools/call', { name => 'wait_for_event',
                               arguments => { topic => 'c' } });
is(Mcp::Modern::said($r), '200 complete', 'mcp_topic_limit');
ok($r->{json}{result}{isError}, 'is an error of the tool');
like($r->{json}{result}{content}[0]{text}, qr/too many topics/, 'and why');
publish({ topic => $_ }) for qw(a b);
answer($_) for @all;
ok(waited($few, { topic => 'c', timeout_seconds => 0 })->{timeout},
   'one that nobody waits for makes room');


# a stream

my $slow = client('/slow');
my $sse = $slow->stream('wait_for_event', { topic => 'd' });

ok($sse->comment, 'heartbeats of a call that waits');
publish({ topic => 'd', n => 1 });
my $e = $sse->event;
is($e->{json}{result}{structuredContent}{event}{n}, 1, 'its answer');
ok(!defined $e->{id}, 'without an event id');


# session_info

$r = $ann->post($ann->message('tools/call',
    { name => 'session_info', arguments => {} },
    "${K}clientInfo" => { name => 'n', version => '2' },
    "${K}clientCapabilities" => { sampling => {} },
    "${K}logLevel" => 'error'))->{json}{result}{structuredContent};
ok(!delete $r->{session}, 'session_info says that there is no session');
is_deeply($r, { endpoint => 'mcp', tenant => 'acme',
                protocol_version => '2026-07-28', log_level => 'error',
                client => { info => { name => 'n', version => '2' },
                            capabilities => { sampling => {} } },
                running_calls_limit => 3, subscriptions_limit => 256 },
          'and what is known of the caller')
    or diag(json_encode($r));


# a resource of an upstream

$conn = waiting($up, { uri => 'u:a' });
ok(wait_for { $mcp->calls('resources/subscribe') },
   'the upstream is asked for it');
publish(notification('resources/updated', { uri => 'u:b' }));
publish(notification('resources/updated', { uri => 'u:a' }));
is(answer($conn)->{structuredContent}{event}{params}{uri}, 'u:a',
   'an update of it ends the call');
ok(wait_for { $mcp->calls('resources/unsubscribe') },
   'who waits no more does not want it');


# feeds that nobody else wants

$conn = waiting($only, { topic => 'one' });
$feed->wait_open($_) for qw(/about/one /of/x);
$feed->say('/about/one', { n => 1 });
is(answer($conn)->{structuredContent}{event}{n}, 1, 'the feed of a topic');
$conn = waiting($only, { topic => 'two' });
$feed->say('/of/x', { topic => 'two', tenant_id => 'x', n => 2 });
is(answer($conn)->{structuredContent}{event}{n}, 2, 'the feed of a tenant');


# a reload, and a worker that dies

$conn = waiting($bob, { topic => 'e', timeout_seconds => 600 });
$t->reload;
$r = answer($conn)->{structuredContent};
ok($r->{timeout}, 'old workers let go at a reload');
publish({ topic => 'e', tenant_id => 'acme', n => 9 });
is(waited($bob, { topic => 'e', after => $r->{position} })->{event}{n}, 9,
   'and nothing is missed');
ok($t->wait_old, 'they are gone');

@w = $t->workers;
@all = map { waiting($ann, { topic => 'f' }, $w[0]) } 1 .. 3;
$t->allow_log(qr/exited on signal 9/);
kill 'KILL', $w[0];
ok(waits(0), 'the calls of a worker that died are no more');
ok(waited($ann, { topic => 'f', timeout_seconds => 0 })->{timeout},
   'nor do they count');

done_testing();


sub client {
    my ($path, $headers) = @_;
    return Mcp::Modern->new($t, path => $path, headers => $headers || {});
}


sub publish { $t->publish(@_)->{json} }


sub tools {
    my ($client) = @_;
    return map { $_->{name} }
           @{ $client->call('tools/list')->{json}{result}{tools} };
}


sub names {
    my ($client) = @_;
    return map { $_->{name} }
           @{ $client->call('resources/list')->{json}{result}{resources} };
}


sub events {
    my ($client, $topic) = @_;

    my $res = $client->call('resources/read',
                            { uri => "events://$topic/latest" })->{json};

    return @{ json_decode($res->{result}{contents}[0]{text})->{events} };
}


sub waited {
    my ($client, $arguments) = @_;

    return $client->call('tools/call', { name => 'wait_for_event',
                                         arguments => $arguments })
           ->{json}{result}{structuredContent};
}


# a call that has begun to wait: its connection

sub waiting {
    my ($client, $arguments, $worker) = @_;

    my $running = $t->status->{calls}{running};
    my $c = $client->send_only(
        $client->message('tools/call', { name => 'wait_for_event',
                                         arguments => $arguments }),
        $worker ? $t->conn_on_worker($worker) : ());

    waits($running + 1);

    return $c;
}


sub answer { return json_decode($_[0]->response('POST')->{body})->{result} }


# so many calls run

sub waits {
    my ($n) = @_;
    return wait_for { $t->status->{calls}{running} == $n };
}
