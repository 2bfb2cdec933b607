#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Clients of revision 2026-07-28: the envelope and the headers that repeat it,
# refusals, results as the revision has them, streams of single requests and
# their end, beside clients of the legacy revisions at the same endpoint.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;

my $M = '2026-07-28';
my $K = 'io.modelcontextprotocol/';

my @tools = ({ name => 'echo', inputSchema => { type => 'object' } },
             { name => 'far', inputSchema => { type => 'object',
                 properties => { region => { type => 'string',
                                             'x-mcp-header' => 'Region' },
                                 n => { type => 'integer',
                                        'x-mcp-header' => 'N' } } } });

my %rpc = (
    'tools/list' => { tools => \@tools },
    'resources/list' => { resources => [{ uri => 'u:a', name => 'a' }] },
    'resources/read' => sub {
        my ($r) = @_;
        return $r->{json}{params}{uri} eq 'u:a'
            ? { contents => [{ uri => 'u:a', text => 'A' }] }
            : [json => Mcp::Upstream::error($r, -32002, 'no such resource')];
    },
    'prompts/get' => { messages => [], resultType => 'strange', ttlMs => 'x',
                       _meta => { mine => 1, "${K}serverInfo" => 'theirs' } },
    'other/method' => {},
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};

        return { content => [], isError => \1 } if $name eq 'bad';
        return { content => [{ type => 'text', text => 'x' x 200000 }] }
            if $name eq 'big';
        return ([until => $name], [json => Mcp::Upstream::result($r, {})])
            if $name =~ /^wait/;
        return [json => Mcp::Upstream::error($r, $1 + 0, 'wrong')]
            if $name =~ /^error(-\d+)$/;

        return ([sse => {}], (map {
            [event => notification('progress', {
                progressToken => $r->{json}{params}{_meta}{progressToken},
                progress => $_ })]
        } 1 .. 3),
        [event => notification('progress', { progressToken => 'no',
                                             progress => 9 })],
        (map { [event => notification('message', { level => $_, data => $_ })]
        } qw(debug warning)),
        [event => notification('tools/list_changed')],
        [event => { jsonrpc => '2.0', id => 's1', method => 'roots/list' }],
        $name eq 'hold' ? [until => 'held'] : (),
        [event => Mcp::Upstream::result($r, { content => [] })])
            if $name =~ /^(?:stream|hold)$/;

        return { content => [{ type => 'text', text => $name }] };
    },
);

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(%rpc, rpc => 1));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:4m;

map $mcp_name $denied {
    default  0;
    secret   1;
}

log_format mcp '$mcp_method|$mcp_name|$mcp_protocol_version|$mcp_session_id|'
               '$mcp_client_name|$mcp_error|$mcp_response|$status';

server {
    %%LISTEN%%
    server_name localhost;

    mcp_server_info name=gate version=7;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=rpc;
        mcp_deny $denied;
        access_log %%DIR%%/access.log mcp;
    }

    location = /status { mcp_status zone=main; }

    location = /only {
        mcp_endpoint zone=main;
        mcp_versions 2026-07-28;
        mcp_upstream up /_up protocol=rpc;
    }

    location = /old {
        mcp_endpoint zone=main;
        mcp_versions 2025-06-18 2025-03-26;
        mcp_upstream up /_up protocol=rpc;
    }

    location = /limited {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream up /_up protocol=rpc;
        mcp_session_bind $http_x_user;
        mcp_tenant $http_x_tenant;
        mcp_call_limit 2;
    }

    location = /cached {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=rpc;
        mcp_list_cache on;
        mcp_builtin_tools session_info;
    }

    location = /slow {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=rpc;
        mcp_stream_after 100ms;
        mcp_stream_heartbeat 200ms;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF


my $client = Mcp::Modern->new($t);
my $id;

sub message { my $m = $client->message(@_); $id = $m->{id}; $m }
sub headers { $client->headers(@_) }
sub said { Mcp::Modern::said(@_) }


sub post {
    my ($message, $headers, $path, %o) = @_;

    return Mcp::Modern->new($t, path => $path || '/mcp')
               ->post($message, $headers, %o);
}


sub call {
    my ($method, $params, %o) = @_;
    return post(message($method, $params), $o{headers}, $o{path});
}


# discover

my $r = call('server/discover');
is(said($r), '200 complete', 'discover');
is_deeply($r->{json}{result}{supportedVersions}, [$M], 'its versions');
is_deeply([sort keys %{ $r->{json}{result}{capabilities} }],
          ['resources', 'tools'], 'its capabilities');
is_deeply($r->{json}{result}{_meta}{"${K}serverInfo"},
          { name => 'gate', version => '7' }, 'its server info');
is($r->{json}{result}{ttlMs}, 0, 'its ttlMs');
is($r->{json}{result}{cacheScope}, 'private', 'its cacheScope');
is($r->{json}{id}, $id, 'its id');
ok(!exists $r->{headers}{'mcp-session-id'}, 'no session');


# the envelope

for my $case (
    ['no version', { "${K}protocolVersion" => undef }, '400 -32602'],
    ['no capabilities', { "${K}clientCapabilities" => undef }, '400 -32602'],
    ['capabilities that are none', { "${K}clientCapabilities" => 1 },
     '400 -32602'],
    ['an unknown level', { "${K}logLevel" => 'loud' }, '400 -32602'],
    ['a version of no revision', { "${K}protocolVersion" => 'v999' },
     '400 -32022', { 'MCP-Protocol-Version' => 'v999' }],
    ['a legacy version', { "${K}protocolVersion" => '2025-11-25' },
     '400 -32022', { 'MCP-Protocol-Version' => '2025-11-25' }],
    ['another version in the header', {}, '400 -32020',
     { 'MCP-Protocol-Version' => '2025-11-25' }],
    ['another version in the body', { "${K}protocolVersion" => 'v999' },
     '400 -32020'],
    ['no version in the header', {}, '400 -32020',
     { 'MCP-Protocol-Version' => undef }],
    ['a version twice', {}, '400 -32020',
     { 'MCP-Protocol-Version' => [$M, $M] }],
    ['without a client', { "${K}clientInfo" => undef }, '200 complete'],
) {
    my ($name, $meta, $want, $headers) = @$case;
    $r = post(message('server/discover', {}, %$meta), $headers);
    is(said($r), $want, $name);
    is($r->{json}{id}, $id, "$name: id");
}

$r = post(message('server/discover', {}, "${K}protocolVersion" => 'v9'),
          { 'MCP-Protocol-Version' => 'v9' });
is_deeply($r->{json}{error}{data}, { supported => [$M], requested => 'v9' },
          'what is supported, and what was requested');

$r = post({ jsonrpc => '2.0', id => 5, method => 'tools/list' });
is(said($r), '400 -32602', 'no envelope, but the header');
$r = post({ jsonrpc => '2.0', id => 5, method => 'initialize', params => {
    protocolVersion => $M, capabilities => {}, clientInfo => {} } });
is(said($r), '400 -32020', 'initialize with the header');
$r = post({ jsonrpc => '2.0', id => 5, result => {} , method => undef },
          { 'Mcp-Method' => undef });
is($r->{status}, 400, 'what is no message');
$r = $t->post('/mcp', headers({ method => 'x' }),
              '{"jsonrpc":"2.0","id":1,"result":{}}');
is(said({ %$r, json => json_decode($r->{body}) }), '400 -32600',
   'a response');
$r = $t->post('/mcp', headers({ method => 'x' }),
              '[' . json_encode(message('tools/list')) . ']');
is(said({ %$r, json => json_decode($r->{body}) }), '400 -32600', 'an array');

$r = post({ jsonrpc => '2.0', id => 5, method => 'tools/list' },
          { 'MCP-Protocol-Version' => '2026-07-29' }, '/only');
is(said($r), '400 -32022', 'no envelope, and an unknown version');
is($r->{json}{error}{data}{requested}, '2026-07-29', 'which is said again');

$r = $t->post('/mcp', headers({ method => 'x' }), '{"id":1');
is(said({ %$r, json => json_decode($r->{body}) }), '400 -32700', 'no JSON');
ok(!exists json_decode($r->{body})->{id}, 'without id');


# headers that repeat the body

for my $case (
    ['no method', { 'Mcp-Method' => undef }, '400 -32020'],
    ['another case', { 'Mcp-Method' => 'TOOLS/CALL' }, '400 -32020'],
    ['another method', { 'Mcp-Method' => 'tools/list' }, '400 -32020'],
    ['the method twice', { 'Mcp-Method' => ['tools/call', 'tools/call'] },
     '400 -32020'],
    ['space around the method', { 'Mcp-Method' => " tools/call \t" },
     '200 complete'],
    ['no name', { 'Mcp-Name' => undef }, '400 -32020'],
    ['another name', { 'Mcp-Name' => 'ech' }, '400 -32020'],
    ['space around the name', { 'Mcp-Name' => "   echo \t" },
     '200 complete'],
    ['an encoded name', { 'Mcp-Name' => '=?base64?ZWNobw==?=' },
     '200 complete'],
    ['wrong padding', { 'Mcp-Name' => '=?base64?ZWNobw?=' }, '400 -32020'],
    ['wrong letters', { 'Mcp-Name' => '=?base64?ZW!!bw==?=' }, '400 -32020'],
    ['an encoding of another kind', { 'Mcp-Name' => '=?BASE64?ZWNobw==?=' },
     '400 -32020'],
    ['a session and an event', { 'Mcp-Session-Id' => 'zzz',
                                 'Last-Event-ID' => '9' }, '200 complete'],
    ['an unknown parameter', { 'Mcp-Param-Foo' => '1' }, '200 complete'],
) {
    my ($name, $headers, $want) = @$case;
    $r = call('tools/call', { name => 'echo' }, headers => $headers);
    is(said($r), $want, "headers: $name");
    ok(!exists $r->{headers}{'mcp-session-id'}, "headers: $name: no session");
}

$up->clear;
call('tools/call', { name => 'echo' }, headers => { 'Mcp-Name' => 'other' });
is($up->asked, 0, 'what is refused does not reach the upstream');

$r = call('tools/call', { name => "caf\xe9" },
          headers => { 'Mcp-Name' => '=?base64?Y2Fmw6k=?=' });
is(said($r), '200 complete', 'a name that no header can have');


# methods

for my $method (qw(initialize ping logging/setLevel resources/subscribe
                   resources/unsubscribe)) {
    $up->clear;
    is(said(call($method, { uri => 'u:a' })), '404 -32601', "no $method");
    is($up->asked, 0, "$method stays here");
}

is(said(call('resources/subscribe')), '404 -32601', 'whatever its params');
is(said(call('tools/call', {})), '400 -32602', 'params without a name');
is(said(call('tools/call', { name => 7 }, headers => { 'Mcp-Name' => undef })),
   '400 -32602', 'a name that is no string');

is(said(call('no/method')), '404 -32601', 'a method that nobody has');
is(said(call('other/method')), '200 complete', 'one that the upstream has');

$r = post({ jsonrpc => '2.0', method => 'notifications/cancelled',
            params => { requestId => 1 } });
is("$r->{status} $r->{body}", '202 ', 'a notification');
my $m = message('notifications/cancelled');
delete $m->{id};
is(post($m)->{status}, 202, 'a notification with an envelope');
is(said(post($m, { 'MCP-Protocol-Version' => '2025-11-25' })), '400 -32020',
   'that has another version');

$m = message('tools/call', { name => 'x' });
delete $m->{id};
$r = post($m);
is(said($r), '400 -32600', 'a request without an id');
ok(!exists $r->{json}{id}, 'which the answer has not either');

for my $version ('2025-11-25', 'v"9') {
    $m = message('notifications/cancelled', {},
                 'io.modelcontextprotocol/protocolVersion' => $version);
    delete $m->{id};
    $r = post($m, { 'MCP-Protocol-Version' => $version });
    is(said($r), '400 -32022', "of a version that is not offered: $version");
    is_deeply($r->{json}{error}{data},
              { supported => ['2026-07-28'], requested => $version },
              'with what is');
    ok(!exists $r->{json}{id}, 'and without an id');
}


# results

$r = call('tools/list');
is(said($r), '200 complete', 'a list');
is($r->{json}{result}{ttlMs}, 0, 'ttlMs of a list');
is($r->{json}{result}{cacheScope}, 'private', 'cacheScope of a list');
is(scalar @{ $r->{json}{result}{tools} }, 2, 'its entries');
is_deeply($r->{json}{result}{_meta},
          { "${K}serverInfo" => { name => 'gate', version => '7' } },
          '_meta of a list');

$r = call('tools/call', { name => 'echo' });
is_deeply($r->{json}{result}{content}, [{ type => 'text', text => 'echo' }],
          'content of a tool');
ok(!exists $r->{json}{result}{ttlMs}, 'a call is not for caches');

$r = call('prompts/get', { name => 'p' });
is($r->{json}{result}{resultType}, 'complete', 'a member of its own');
ok(!exists $r->{json}{result}{ttlMs}, 'another one');
is_deeply($r->{json}{result}{_meta},
          { mine => 1, "${K}serverInfo" => { name => 'gate', version => '7' }
          }, 'its _meta');

$r = call('resources/read', { uri => 'u:a' });
is(said($r), '200 complete', 'a resource');
is($r->{json}{result}{ttlMs}, 0, 'ttlMs of a resource');

$r = call('resources/read', { uri => 'u:b' });
is(said($r), '200 -32602', 'no resource');
is_deeply($r->{json}{error}{data}, { uri => 'u:b' }, 'of this URI');

$r = call('tools/call', { name => 'bad' });
ok($r->{json}{result}{isError}, 'an error of a tool');

for my $case ([-32601, '404 -32601'], [-32602, '200 -32602'],
              [-32020, '200 -32603'], [-32099, '200 -32603'],
              [-32019, '200 -32019'], [-32000, '200 -32000'])
{
    my ($code, $want) = @$case;
    is(said(call('tools/call', { name => "error$code" })), $want,
       "an upstream's error $code");
}

$r = call('tools/call', { name => 'big' });
is(said($r), '200 complete', 'a large result');
is(length $r->{json}{result}{content}[0]{text}, 200000, 'is whole');

$r = $t->post('/mcp', headers(message('tools/call', { name => 'echo' })),
              '{"jsonrpc":"2.0","id":"01","method":"tools/call","params":{'
              . '"name":"echo","_meta":{"' . $K . 'protocolVersion":"' . $M
              . '","' . $K . 'clientCapabilities":{}}}}');
like($r->{body}, qr/"id":"01"/, 'an id that is a string');


# a caller that may not

is(said(call('tools/call', { name => 'secret' })), '403 -32000',
   'a tool that is denied');


# streams

sub stream {
    my ($name, $meta, $path) = @_;

    return Mcp::Sse->new(post(message('tools/call', { name => $name }, %$meta),
                              undef, $path, stream => 1));
}

sub heard {
    my ($s) = @_;

    my @heard;

    while (my $e = $s->event) {
        push @heard, $e->{json};
    }

    return map {
        !$_->{method} ? $_->{result}{resultType}
        : $_->{params}{progress} || $_->{params}{data} || $_->{method}
    } @heard;
}

my $s = stream('stream', { progressToken => 7 });
like($s->headers->{'content-type'}, qr/event-stream/, 'a stream');
is(join(' ', heard($s)), '1 2 3 complete', 'progress, no log');
ok(!defined $s->last_id, 'no event ids');
ok(!defined $s->retry, 'no retry');

$s = stream('stream', { progressToken => 'seven',
                        "${K}logLevel" => 'warning' });
is(join(' ', heard($s)), '1 2 3 warning complete', 'a log of its level');

$s = stream('stream', { "${K}logLevel" => 'debug' });
is(join(' ', heard($s)), 'debug warning complete', 'all logs, no progress');

$r = post(message('tools/call', { name => 'stream' }, progressToken => 1),
          { Accept => 'application/json' });
is(said($r), '200 complete', 'a client that takes JSON alone');

$s = stream('wait1', {}, '/slow');
ok($s->comment, 'a slow request is a stream, and has a heartbeat');
$up->release('wait1');
is(join(' ', heard($s)), 'complete', 'and its answer');


# a client that leaves

$up->clear;
my $c = $t->conn;
$m = message('tools/call', { name => 'wait2' });
$c->write($c->format_request('POST', '/mcp', headers($m), json_encode($m)));
ok($up->wait_requests(sub { ($_[0]{json}{method} || '') eq 'tools/call' }),
   'a request runs');
$c->close;
ok($up->wait_requests(sub { $_[0]{lost} }), 'leaving cancels it');

$up->clear;
$s = stream('hold', { progressToken => 1 });
ok($s->event, 'a stream runs');
$s->close;
ok($up->wait_requests(sub { $_[0]{lost} }), 'leaving cancels it');
$up->release('held');


# limits

my %one = ('X-User' => 'one', 'X-Tenant' => 't');
my @waiting;

$up->clear;

for (1 .. 2) {
    $c = $t->conn;
    $m = message('tools/call', { name => 'wait3' });
    $c->write($c->format_request('POST', '/limited', headers($m, %one),
                                 json_encode($m)));
    push @waiting, $c;
}

is(scalar $up->wait_requests(sub {
    ($_[0]{json}{params}{name} || '') eq 'wait3' && !$_[0]{ended}
}, 2), 2, 'two run');
$r = call('tools/call', { name => 'echo' }, path => '/limited',
          headers => \%one);
is(said($r), '503 -32000', 'the limit of an identity');
ok($r->{headers}{'retry-after'}, 'to be tried again');
$r = call('tools/call', { name => 'echo' }, path => '/limited',
          headers => { %one, 'X-User' => 'two' });
is(said($r), '200 complete', 'another identity');
$r = call('tools/call', { name => 'echo' }, path => '/limited',
          headers => { %one, 'X-Tenant' => 'u' });
is(said($r), '200 complete', 'another tenant');

$up->release('wait3');
is($_->response->{status}, 200, 'they end') for @waiting;

ok((wait_for {
    call('tools/call', { name => 'echo' }, path => '/limited',
         headers => \%one)->{status} == 200
}), 'and others may run');

is(said(call('tools/list', {}, path => '/limited')), '403 -32000',
   'no identity');


# lists that are kept, and headers of arguments

$r = call('tools/list', {}, path => '/cached');
is(said($r), '200 complete', 'a list that is kept');
is_deeply([map { $_->{name} } @{ $r->{json}{result}{tools} }],
          ['session_info', 'echo', 'far'], 'with a tool of the module');
is($r->{json}{result}{ttlMs}, 0, 'its ttlMs');

for my $case (
    [{ region => 'a b' }, { 'Mcp-Param-Region' => 'a b' }, '200 complete'],
    [{ region => 'a' }, { 'mcp-param-REGION' => '=?base64?YQ==?=' },
     '200 complete'],
    [{ region => 'a' }, {}, '400 -32020'],
    [{ region => 'a' }, { 'Mcp-Param-Region' => 'b' }, '400 -32020'],
    [{ region => 'a' }, { 'Mcp-Param-Region' => '=?base64?YQ?=' },
     '400 -32020'],
    [{ region => undef }, {}, '200 complete'],
    [{}, { 'Mcp-Param-Region' => 'b' }, '400 -32020'],
    [{ n => 42 }, { 'Mcp-Param-N' => '42.0' }, '200 complete'],
    [{ n => 42 }, { 'Mcp-Param-N' => '43' }, '400 -32020'],
) {
    my ($arguments, $headers, $want) = @$case;
    is(said(call('tools/call', { name => 'far', arguments => $arguments },
                 path => '/cached', headers => $headers)), $want,
       'argument ' . json_encode($arguments) . ', ' . json_encode($headers));
}


# one endpoint for both eras, and for one of them

my $legacy = $t->session;
is(scalar @{ $legacy->call('tools/list')->{result}{tools} }, 2,
   'a legacy client has its session');
ok(!exists $legacy->call('tools/list')->{result}{resultType},
   'and its results');

is($t->get('/only', { Accept => 'text/event-stream' })->{status}, 405,
   'no GET without sessions');
is($t->request('DELETE', '/only')->{status}, 405, 'and no DELETE');
is($t->get('/only')->{headers}{allow}, 'POST', 'but POST');
like($t->request('PUT', '/only')->{body}, qr/must be POST: /, 'as PUT is told');

$r = post({ jsonrpc => '2.0', id => 1, method => 'initialize', params => {
    protocolVersion => '2025-11-25', capabilities => {}, clientInfo => {} } },
    { 'MCP-Protocol-Version' => undef, 'Mcp-Method' => undef }, '/only');
is(said($r), '400 -32022', 'no initialize');
is_deeply($r->{json}{error}{data}, { supported => [$M],
                                     requested => '2025-11-25' },
          'what is supported instead');
is(said(call('tools/list', {}, path => '/only')), '200 complete',
   'modern clients are served');

$r = post({ jsonrpc => '2.0', id => 1, method => 'server/discover' },
          { 'MCP-Protocol-Version' => undef, 'Mcp-Method' => undef });
is(said($r), '400 -32601', 'server/discover that names no revision');
like($r->{json}{error}{message},
     qr/supports 2026-07-28, 2025-11-25.*or send.*params\._meta/,
     'says what is missing');
like($t->get('/mcp', { Accept => 'text/event-stream',
                       'MCP-Protocol-Version' => $M })->{body},
     qr/no GET and no DELETE.*subscriptions\/listen/, 'GET says what to send');
like(call('initialize')->{json}{error}{message}, qr/send server\/discover/,
     'initialize says what to send');
like(call('resources/subscribe', { uri => 'a:b' })->{json}{error}{message},
     qr/use subscriptions\/listen/, 'resources/subscribe says what to use');

is(said(call('server/discover', {}, path => '/old')), '400 -32601',
   'an endpoint without the revision');
$r = call('tools/list', {}, path => '/old');
is(said($r), '400 -32000', 'answers as one that does not know it');
like($r->{json}{error}{message}, qr/supports 2025-06-18, 2025-03-26;/,
     'and says what it supports');
is($t->session(path => '/old', version => '2025-11-25')->{negotiated},
   '2025-06-18', 'and negotiates that');


# what the metrics have

my %calls = %{ json_decode($t->get('/status')->{body})->{calls} };

cmp_ok($calls{started_modern}, '>', 20, 'calls of clients of the revision');
my $session = $t->session;
$session->tool('echo') for 1 .. 3;

my %after = %{ json_decode($t->get('/status')->{body})->{calls} };

is($after{started_legacy}, $calls{started_legacy} + 3, 'and of others');
is($after{started_modern}, $calls{started_modern}, 'apart');
is($after{started}, $after{started_legacy} + $after{started_modern},
   'together');
like($t->get('/status?format=prometheus')->{body},
     qr/_calls_started_total\S*era="modern"\} $after{started_modern}$/m,
     'by a label');


# what the access log has

my $log = $t->slurp('access.log');
like($log, qr{^tools/call\|echo\|$M\|\|\|\|json\|200$}m, 'a call');
like($log, qr{^tools/call\|stream\|$M\|\|\|\|sse\|200$}m, 'a stream');
like($log, qr{^no/method\|\|$M\|\|\|-32601\|json\|404$}m, 'an error');
like($log, qr{^resources/read\|u:b\|$M\|\|\|-32602\|json\|200$}m,
     'an error as the client has it');

post(message('tools/list', {}, "${K}clientInfo" => { name => 'me' }));
ok((wait_for { $t->slurp('access.log') =~ m{^tools/list\|\|$M\|\|me\|}m }),
   'the client');

done_testing();
