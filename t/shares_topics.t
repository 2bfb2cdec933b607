#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# One client does not take the topics of its tenant, nor the feeds that others
# need: shares of a session and of a tenant.

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;

use Mcp::Test;
use Mcp::Feed;

my $f = Mcp::Feed->new;

my $t = Mcp::Test->new(
    vars => { FEED => $f->port },
    events => 'worker_connections 1024;',
    conf => <<'CONF');
mcp_zone zone=main:16m;
mcp_zone zone=fed:16m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_tenant        $http_x_tenant;
    mcp_builtin_tools wait_for_event;
    mcp_call_limit    200;
    mcp_stream_after  0;

    location = /kept { mcp_endpoint zone=main; mcp_topic_limit 64; }

    location = /fed  { mcp_endpoint zone=fed;
                       mcp_events /_about/$mcp_tenant/$mcp_topic; }

    location /_about/ { internal;
                        proxy_pass http://127.0.0.1:%%FEED%%/about/; }

    location = /status { mcp_status zone=fed; }
    location = /publish { mcp_publish zone=main; }
}
CONF

my %a = (headers => { 'X-Tenant' => 'a' });
my %b = (headers => { 'X-Tenant' => 'b' });
my ($greedy, $modest, $r, $n);


# topics that a session makes by subscribing: an eighth

$greedy = $t->session(path => '/kept', %a);
$modest = $t->session(path => '/kept', %a);

is(subscribe($greedy, "s$_")->{error}, undef, "topic $_") for 1 .. 8;
$r = subscribe($greedy, 's9');
is($r->{error}{code}, -32000, 'and not one more');
like($r->{error}{message}, qr/an eighth of mcp_topic_limit/, 'why');
is($greedy->tool('wait_for_event', { topic => 's10', timeout_seconds => 0 })
   ->{result}{isError}, 1, 'nor waits for another one');
ok($greedy->tool('wait_for_event', { topic => 's1', timeout_seconds => 0 })
   ->{result}{structuredContent}{timeout}, 'but for these');

is(subscribe($modest, 's9')->{error}, undef, 'another session has a share');
is(subscribe($greedy, 's9')->{error}, undef, 'of which all may hear');

unsubscribe($greedy, 's1');
is(subscribe($greedy, 's11')->{error}, undef, 'one that is given up is free');


# or by waiting: those waited for no more are given up first

$greedy = $t->session(path => '/kept', %a);

for (1 .. 100) {
    $r = $greedy->tool('wait_for_event', { topic => "w$_",
                                           timeout_seconds => 0 });
    last if $r->{error};
}

is($r->{error}, undef, 'one after the other');
$t->publish({ topic => "t$_", tenant_id => 'a' }) for 1 .. 32;
is(scalar(grep { m{events://t\d+/} } topics($modest)), 32,
   'takes no room from what is published');

my @conn = map {
    $greedy->send_only($greedy->message('tools/call', {
        name => 'wait_for_event',
        arguments => { topic => "at-once$_", timeout_seconds => 600 } }))
} 1 .. 9;

my @refused;
ok((wait_for {
    @refused = grep { IO::Select->new($_->sock)->can_read(0) } @conn;
}), 'nine at once');
is(scalar(@refused), 1, 'are one too many');
ok(json_decode($refused[0]->response('POST')->{body})->{result}{isError},
   'and it is refused');
$greedy->delete;

is(subscribe($t->session(path => '/kept', %a), "again$_")->{error}, undef,
   'what an ended session had is free') for 1 .. 8;


# a read opens no feed

$greedy = $t->session(path => '/fed', %a);
is($greedy->call('resources/read', { uri => "events://r$_/latest" })
   ->{error}{code}, -32002, 'there is no such topic') for 1 .. 3;
subscribe($greedy, 'first');
ok($f->wait_open('/about/a/first'), 'a feed of who subscribes');
is(leases(qr/"r\d"/), 0, 'none of who reads');


# a session opens 32, a tenant a sixteenth of worker_connections: 64

for ($n = 1; $n < 100; $n++) {
    $r = subscribe($greedy, "f$n");
    last if $r->{error};
}

is($n, 32, 'with the one before 32 feeds');
is($r->{error}{code}, -32000, 'no more');
like($r->{error}{message}, qr/32 event feeds \(mcp_events/, 'why');
is($greedy->tool('wait_for_event', { topic => 'more', timeout_seconds => 0 })
   ->{error}{code}, -32000, 'nor for who waits');
is(subscribe($greedy, 'f1')->{error}, undef, 'the same again');

my @others = map { $t->session(path => '/fed', %a) } 1 .. 3;

$n = 0;
for my $s (@others) {
    for (1 .. 31) {
        $r = subscribe($s, 'o' . ++$n);
        last if $r->{error};
    }
    last if $r->{error};
}

is($n - 1, 32, 'the tenant has 64');
like($r->{error}{message}, qr/worker_connections/, 'why not more');

$modest = $t->session(path => '/fed', %b);
is(subscribe($modest, 'mine')->{error}, undef, 'another tenant subscribes');
ok($f->wait_open('/about/b/mine'), 'and is served');

# what an ended session opened stays the tenant's until it is closed

$greedy->delete;
like(subscribe($t->session(path => '/fed', %a), 'late')->{error}{message},
     qr/worker_connections/, 'a new session does not help');

done_testing();


sub subscribe   { $_[0]->call('resources/subscribe', uri($_[1])) }
sub unsubscribe { $_[0]->call('resources/unsubscribe', uri($_[1])) }
sub uri         { { uri => "events://$_[0]/latest" } }


sub topics {
    return map { $_->{uri} }
           @{ $_[0]->call('resources/list')->{result}{resources} };
}


sub leases {
    my ($like) = @_;
    return scalar grep { $_->{key} =~ $like } @{ $t->status->{leases}{by} };
}
