#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# How it is found out what an upstream is: what is said, to the client and in
# the log, of one that does not answer as it should, and that it heals.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

# the upstream behaves as $V{how} says; "mcp" and "rpc" are what they should be

my $mcp = Mcp::Upstream::mcp('tools/list' => { tools => [{
    name => 'a', inputSchema => { type => 'object' } }] },
    'tools/call' => { content => [] });
my $rpc = Mcp::Upstream::mcp(rpc => 1,
    'tools/list' => { tools => [{
        name => 'r', inputSchema => { type => 'object' } }] });

my %how = (
    'wrong id' => sub {
        [json => { jsonrpc => '2.0', id => 'other', result => {} }] },
    'no JSON-RPC' => sub { [json => { hello => 'world' }] },
    lacks => sub { [json => Mcp::Upstream::error($_[0], -32601, 'none')] },
    'no session' => sub {
        [http => 400, { 'Content-Type' => 'application/json' },
         json_encode({ jsonrpc => '2.0', id => undef, error => {
             code => -32000, message => 'Server not initialized' } })] },
    judges => sub {
        [http => 400, { 'Content-Type' => 'application/json' },
         json_encode({ jsonrpc => '2.0', id => undef, error => {
             code => -32050, message => 'too old', data => { min => 7 } } })] },
    'an error' => sub {
        [json => Mcp::Upstream::error($_[0], -32602, "no su\x1b[31mch")] },
    'HTML' => sub {
        [http => 200, { 'Content-Type' => 'text/html' },
         "<html>\r\n<b>sign \x07in</b>"] },
    'no JSON' => sub {
        [http => 200, { 'Content-Type' => 'application/json' }, '{"a'] },
    'empty' => sub { [http => 200, {}, ''] },
    closes => sub { [cut =>] },
    hangs => sub { [hang =>] },
    strays => sub {
        my ($r) = @_;
        my @strays = ([bytes => join '', map {
            my $text = "data: " . json_encode({
                jsonrpc => '2.0', id => 'stray', result => {} }) . "\n\n";
            sprintf "%x\r\n%s\r\n", 1000 * length $text, $text x 1000
        } 1 .. 20]);
        return ([sse => {}], @strays, [end =>]);
    },
    'a slash' => sub {
        [http => 307, { Location => "http://named$_[0]{uri}/" }, ''] },
    shuts => sub { [http => 403, {}, 'Invalid Host header'] },
    challenges => sub {
        [http => 401, { 'WWW-Authenticate' => 'Bearer realm="x"' }, ''] },
    nobody => sub { [http => 401, {}, 'who?'] },
    (map { my $s = $_; $s => sub {
        [http => $s, { 'Content-Type' => 'text/plain',
                       $s < 400 ? (Location => 'http://else.where/mcp') : () },
         "status is $s"] } }
        302, 307, 308, 400, 404, 405, 406, 421, 429, 500, 501, 503, 504),
);

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;

    my $how = $Mcp::Upstream::V{how} || 'mcp';

    return $mcp->($r) if $how eq 'mcp';
    return $rpc->($r) if $how eq 'rpc';

    if ($how eq 'slow') {
        return ([wait => 6], $mcp->($r))
            if ($r->{json}{method} || '') eq 'initialize';
        return $mcp->($r);
    }

    return $how{$how}->($r);
});

my $dead = free_port();

my $t = Mcp::Test->new(vars => { UP => $up->port, DEAD => $dead },
                       conf => <<'EOC');
mcp_zone zone=main:8m;
upstream named { server 127.0.0.1:%%UP%%; server 127.0.0.1:%%UP%%; }
server {
    %%LISTEN%%
    mcp_upstream_timeout 4s;
    location = /auto   { mcp_endpoint zone=main; mcp_upstream auto /_up/auto; }
    location = /legacy { mcp_endpoint zone=main;
                         mcp_upstream legacy /_up/legacy protocol=legacy; }
    location = /rpc    { mcp_endpoint zone=main;
                         mcp_upstream rpc /_up/rpc protocol=rpc; }
    location = /wrong  { mcp_endpoint zone=main; mcp_tenant $http_x_tenant;
                         mcp_upstream wrong /_up/wrong protocol=rpc; }
    location = /said   { mcp_endpoint zone=main; mcp_capabilities tools;
                         mcp_upstream said /_up/said protocol=rpc; }
    location = /new    { mcp_endpoint zone=main; mcp_tenant $http_x_tenant;
                         mcp_upstream new /_up/new protocol=modern; }
    location = /older  { mcp_endpoint zone=main; mcp_tenant $http_x_tenant;
                         mcp_upstream older /_up/older protocol=legacy; }
    location = /to     { mcp_endpoint zone=main; mcp_tenant $http_x_tenant;
                         mcp_upstream to /_to/$mcp_tenant; }
    location = /_to/shut { internal; return 403; }
    location = /_to/full { internal; return 503; }
    location = /_to/small { internal; client_max_body_size 1;
                            proxy_pass http://127.0.0.1:1; }
    location = /_to/text { internal; default_type text/plain;
                           return 200 '{"jsonrpc":"2.0"}'; }
    location = /tenant { mcp_endpoint zone=main; mcp_tenant $http_x_tenant;
                         mcp_upstream tenant /_up/tenant; }
    location = /dead   { mcp_endpoint zone=main; mcp_upstream dead /_dead; }
    location = /kept   { mcp_endpoint zone=main; mcp_upstream kept /_up/kept; }
    location = /left   { mcp_endpoint zone=main; mcp_upstream left /_up/left;
                         mcp_upstream_timeout 60s; }
    location = /stays  { mcp_endpoint zone=main; mcp_upstream stays /_up/stays;
                         mcp_upstream_timeout 60s; }
    location = /slow   { mcp_endpoint zone=main; mcp_upstream slow /_slow;
                         mcp_upstream_timeout 60s; }
    location /_up/     { internal; proxy_pass http://named/path/; }
    location = /_slow  { internal; proxy_pass http://named/slow; }
    location = /_dead  { internal; proxy_pass http://127.0.0.1:%%DEAD%%; }
}
EOC

sub initialize {
    my ($endpoint, %headers) = @_;

    return $t->client(path => $endpoint, headers => \%headers)
             ->initialize(timeout => 45);
}


# what the log says since the last time

my $seen = 0;

sub lines {
    my ($match) = @_;

    my $text = substr $t->log, $seen;
    return grep { $_ =~ $match } split /\n/, $text;
}

sub from_here { $seen = length $t->log }


# 1. what it says of each failure

my $n = 0;

for (
    ['wrong id' => 502, qr/with id "other" instead of "nginx-mcp"/],
    ['no JSON-RPC' => 502, qr/not a JSON-RPC message/],
    ['an error' => 502, qr/error -32602: .*no su/],
    ['HTML' => 502, qr{content type "text/html"}, qr/got "<html> <b>sign in</,
     qr/the address and the path/],
    ['no JSON' => 502, qr/not valid JSON/, qr/got "\{"a"/],
    ['empty' => 502, qr/empty/],
    [closes => 502, qr/closed the connection/, qr/speaks TLS, "https:/],
    [hangs => 504, qr/did not answer within [2-9]\d{3}ms/,
     qr/check that the upstream answers at all/],
    [302 => 502, qr/status 302/, qr{redirected to "http://else.where/mcp"}],
    [307 => 502, qr/status 307/, qr/"proxy_pass" to the URL of the redirect/],
    ['a slash' => 502, qr/status 307/,
     qr{redirected to "http://named/path/tenant/";}],
    [308 => 502, qr/status 308/, qr/"proxy_pass" to the URL of the redirect/],
    [406 => 502, qr/status 406/, qr/got "status is 406"/],
    [400 => 502, qr/status 400/, qr/proxy_set_header Host/],
    [421 => 502, qr/status 421/, qr/proxy_set_header Host/],
    [429 => 503, qr/status 429/],
    [500 => 502, qr/status 500/, qr/got "status is 500"/],
    [503 => 503, qr/status 503/],
    [504 => 504, qr/status 504/],
    [404 => 502, qr/status 404/, qr/"proxy_pass" has the path.*\/sse/],
    [405 => 502, qr/status 405/],
    [501 => 502, qr/status 501/],
) {
    my ($how, $status, $why, @more) = @$_;

    $up->set(how => $how);
    $up->clear;
    from_here();

    # each tenant's upstream is found out for itself

    my $r = initialize('/tenant', 'X-Tenant' => 't' . ++$n);

    is($r->{status}, $status, "$how: HTTP status");
    like($r->{json}{error}{message}, $why, "$how: the message");
    is($r->{json}{error}{data}{upstream}, 'tenant', "$how: the upstream");

    my @said = lines(qr/\[error\].*mcp upstream "tenant"/);

    is(scalar @said, 1, "$how: one line") or diag join "\n", @said;

    for my $match ($why, @more, qr{sent "POST /path/tenant HTTP/1.1", "Host: })
    {
        like($said[0] || '', $match, "$how: says $match");
    }

    unlike($said[0] || '', qr/[\x00-\x1f\x7f-\xff]/, "$how: harmless");
}

# however many answers are none, they take no memory

sub most {
    my $k = 0;

    for my $pid ($t->workers) {
        $k += $1 if Mcp::Test::slurp_file("/proc/$pid/status")
                    =~ /^VmHWM:\s+(\d+) kB/m;
    }

    return $k;
}

SKIP: {
    skip 'the memory of a worker', 2
        if $ENV{MCP_SANITIZED} || !-r '/proc/self/status';

    $up->set(how => 'strays');

    my $before = most();
    my $r = initialize('/tenant', 'X-Tenant' => 't' . ++$n);
    like($r->{json}{error}{message}, qr/with id "stray"/,
         '20,000 answers with another id');
    within(most() - $before, 0, 8000, 'with little memory, in k');
}

my $r;

# 2. an rpc upstream, which is asked for its lists, as well

for (
    ['HTML' => 502, qr{content type "text/html"}],
    [hangs => 504, qr/did not answer within/],
    [500 => 502, qr/status 500/],
) {
    my ($how, $status, $why) = @$_;

    $up->set(how => $how);
    from_here();

    my $r = wait_for { my $r = initialize('/rpc');
                       $r->{json}{error}{message} =~ $why && $r };

    is($r && $r->{status}, $status, "rpc, $how: HTTP status");
    ok(scalar lines(qr/\[error\].*"rpc".*did not answer tools\/list: .*$why/),
       "rpc, $how: the line");
}

# with no list at all it is a wrong path, unless it is said what there is

for my $how (404, 'lacks') {
    $up->set(how => $how);
    from_here();

    my $r = wait_for { my $r = initialize('/rpc');
                       $r->{json}{error}{message}
                       =~ ($how eq 'lacks' ? qr/-32601/ : qr/status 404/)
                       && $r };

    is($r && $r->{status}, 502, "rpc, $how to every list: no empty MCP server");
    is(scalar lines(qr/\[error\].*"rpc".*did not answer any list/), 1,
       "rpc, $how: one line");
    is(initialize('/said')->{status}, 200, "rpc, $how, mcp_capabilities");
}

$up->set(how => 'rpc');
$r = wait_for { my $r = initialize('/rpc'); $r->{status} == 200 && $r };
ok($r && $r->{json}{result}{capabilities}{tools}, 'it is asked again');

# a server that is not what "protocol" says

for (['/new', 'no session', 'auto'], ['/new', 'lacks', 'rpc'],
     ['/older', 'lacks', 'rpc'])
{
    my ($path, $how, $protocol) = @$_;

    $up->set(how => $how);
    from_here();
    initialize($path, 'X-Tenant' => "kind $how");

    my @said = lines(qr/\[error\].*did not answer/);
    like("@said", qr/write "protocol=$protocol"/, "$path, $how: the remedy");
    unlike("@said", qr/probe=off/, "$path, $how: which is no other");
}

# an MCP server, which wants a session

for ('no session', 400) {
    $up->set(how => $_);
    from_here();
    is(initialize('/wrong', 'X-Tenant' => "rpc $_")->{status}, 502,
       "rpc, $_: HTTP status");

    my @said = lines(qr/\[error\].*"wrong".*did not answer tools.list/);
    is(scalar @said, 1, "rpc, $_: one line");
    like($said[0], qr/write "protocol=auto"/, "rpc, $_: the remedy");
    unlike($said[0], qr/probe=off/, "rpc, $_: which is no other");
}

# 3. refusals that are meant for the client

for ([shuts => 403, qr/\[error\].*status 403.*got "Invalid Host header".*Host/],
     [challenges => 401, qr/\[info\].*"tenant".*status 401/],
     [nobody => 401,
      qr/\[(?:info|error)\].*status 401.*got "who\?".*_header Authorization/])
{
    my ($how, $status, $line) = @$_;

    $up->set(how => $how);
    from_here();

    my $r = initialize('/tenant', 'X-Tenant' => 't' . ++$n);

    is($r->{status}, $status, "$how: HTTP status");
    ok(scalar lines($line), "$how: the line");
    is($r->{headers}{'www-authenticate'},
       $how eq 'challenges' ? 'Bearer realm="x"' : undef, "$how: challenge");
}

# a JSON-RPC error without an id, as for a call

for my $tenant ('first', 'first', 'other') {
    $up->set(how => 'judges');
    from_here();

    my $r = initialize('/tenant', 'X-Tenant' => "judged $tenant");

    is($r->{status}, 400, "$tenant: the upstream's status");
    is_deeply($r->{json}{error},
              { code => -32050, message => 'too old', data => { min => 7 } },
              "$tenant: its code, message and data");
    cmp_ok(scalar lines(qr/\[error\].*mcp upstream "tenant"/), '<=', 1,
           "$tenant: at most one line");
}

# nginx's own refusal, of which no upstream knows

$up->set(how => 'mcp');

for ([shut => '/_to/shut', 403, 403, 'look for "return"'],
     [none => '/_to/none', 502, 404, 'write a location'],
     [full => '/_to/full', 503, 503, 'if "limit_req" or .* add a "burst"'],
     [small => '/_to/small', 502, 413, 'raise "client_max_body_size"'])
{
    my ($to, $uri, $status, $own, $remedy) = @$_;

    $up->clear;
    from_here();

    my $r = initialize('/to', 'X-Tenant' => $to);

    is($r->{status}, $status, "$uri: HTTP status");
    is($up->count(sub { $_[0]{uri} !~ m{^/path/(?!to)} }), 0,
       "$uri: no upstream was asked");

    my @said = lines(qr/\[error\].*mcp upstream "to".*did not answer/);
    is(scalar @said, 1, "$uri: one line") or diag substr $t->log, $seen;
    like($said[0], qr/no upstream was asked.*location "$uri" answered(?x:
                      )\ with status $own; $remedy/,
         "$uri: says so");
}

# 4. nothing known heals within a second, and is one line each

$up->set(how => 404);
from_here();

for my $endpoint ('/auto', '/legacy') {
    my $r = initialize($endpoint);

    is($r->{status}, 502, "$endpoint: no empty MCP server");
    like($r->{json}{error}{message}, qr/status 404/, "$endpoint: why");
}

is(scalar lines(qr/\[error\].*mcp upstream "auto"/), 1, 'one line');

$up->set(how => 'mcp');

for my $endpoint ('/auto', '/legacy') {
    my $r = wait_for { my $r = initialize($endpoint);
                       $r->{status} == 200 && $r };

    ok($r && $r->{json}{result}{capabilities}{tools}, "$endpoint heals");
}

is(initialize('/dead')->{status}, 502, 'a dead one');
my ($line) = lines(qr/\[error\].*"dead".*answer server.discover: .*cannot be/);
like($line, qr/; check that the upstream runs, and that "proxy_pass" has its/,
     'is named with what to check');
unlike($line, qr/; sent "/, 'and nothing is said to be sent');

from_here();
is(initialize('/to', 'X-Tenant' => 'text')->{status}, 502,
   'a location that answers by itself with another type');
ok(scalar lines(qr/content type "text\/plain".*default_type application/),
   'is told of the type');

# 5. what was known to be an MCP server is not forgotten over a 404

my $s = $t->session(path => '/kept');

is($s->call('tools/list')->{result}{tools}[0]{name}, 'a', 'known');

$up->set(how => 404);

$r = $s->call('tools/list');
ok(!$r->{result}, 'a call fails meanwhile');

$r = initialize('/kept');
is($r->{status}, 200, 'but a session may begin');
ok($r->{json}{result}{capabilities}{tools}, 'of an MCP server');

$up->set(how => 'mcp');
$r = wait_for { my $r = $s->call('tools/list'); $r->{result} && $r };
is($r && $r->{result}{tools}[0]{name}, 'a', 'the session outlives it');

# and yet it may become another

$up->set(how => 'rpc');
$r = wait_for { my $r = initialize('/kept');
                my $s = $t->session(path => '/kept');
                my $l = $s->call('tools/list');
                $l->{result} && $l->{result}{tools}[0]{name} eq 'r' };
ok($r, 'it became an rpc upstream');

# 6. one that starts slowly is waited for, longer than any fixed five seconds,
# by all workers

$up->set(how => 'slow');
$up->clear;

my @waiting = map { $t->client(path => '/slow') } 1 .. 6;

$_->{conn} = $t->conn for @waiting;
$_->{conn}->write($_->{conn}->format_request(
    'POST', '/slow', $_->request_headers, json_encode($_->message(
        'initialize', { protocolVersion => '2025-11-25', capabilities => {},
                        clientInfo => { name => 'a', version => '1' } }))))
    for @waiting;

for my $c (@waiting) {
    my $r = $c->read_response($c->{conn}->response('POST', timeout => 30));
    ok($r->{json}{result}{capabilities}{tools}, 'answered at last');
}

is(scalar $up->requests(sub {
    $_[0]{uri} eq '/slow' && ($_[0]{json}{method} || '') eq 'initialize'
}), 1, 'it was asked once for all');


# 7. an old worker does not stay for what nobody waits for, and another asks

$up->set(how => 'hangs');
$up->clear;

my $left = $t->client(path => '/left');

$left->{conn} = $t->conn;
$left->{conn}->write($left->{conn}->format_request(
    'POST', '/left', $left->request_headers, json_encode($left->message(
        'initialize', { protocolVersion => '2025-11-25', capabilities => {},
                        clientInfo => { name => 'a', version => '1' } }))));
$up->wait_requests(sub { $_[0]{uri} =~ /left/ });
$left->{conn}->close;

ok($t->reload, 'reload while one is asked');
ok($t->wait_old(20), 'whom nobody waits for');

$up->set(how => 'mcp');
ok($t->session(path => '/left'), 'a new worker asks');


# 8. and new workers do not wait for an answer that an old one waits for

$up->set(how => 'hangs');
$up->clear;

my $stays = $t->client(path => '/stays');

$stays->{conn} = $t->conn;
$stays->{conn}->write($stays->{conn}->format_request(
    'POST', '/stays', $stays->request_headers, json_encode($stays->message(
        'initialize', { protocolVersion => '2025-11-25', capabilities => {},
                        clientInfo => { name => 'a', version => '1' } }))));
$up->wait_requests(sub { $_[0]{uri} =~ /stays/ });

ok($t->reload, 'reload while one is asked, for a client that waits');
$up->set(how => 'mcp');
ok($t->session(path => '/stays'), 'a new worker asks as well');
cmp_ok(scalar(my @workers = $t->workers(all => 1)), '>', $t->wanted_workers,
       'before the old one has its answer');
$stays->{conn}->close;

done_testing();
