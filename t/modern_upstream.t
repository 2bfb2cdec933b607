#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Upstreams of revision 2026-07-28 behind an endpoint that clients use with
# sessions: what leaves for them, and what comes back.

use utf8;

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Test;

my $KEY = 'io.modelcontextprotocol/';

my $clock = Mcp::Clock->new;

# arguments that are repeated in headers

sub schema {
    return { type => 'object', properties => {
        ($Mcp::Upstream::V{renamed} || 'region') =>
            { type => 'string', 'x-mcp-header' => 'Region' },
        a => { type => 'object', properties => {
            b => { type => 'integer', 'x-mcp-header' => 'Deep' },
        } },
    } };
}


my $up = Mcp::Upstream->new(Mcp::Upstream::modern(
    info => { name => 'forecasts', version => '2' },
    instructions => 'ask politely',
    capabilities => {
        tools => { listChanged => JSON::PP::true }, logging => {},
        prompts => {}, resources => { subscribe => JSON::PP::true },
        completions => {}, extensions => { 'com.example/x' => {} },
    },
    'tools/list' => sub {
        my ($r) = @_;
        my $how = $r->{headers}{'x-list'} || '';

        return [http => 401, { 'WWW-Authenticate' => 'Bearer x' }, '']
            if $how eq 'refused';
        return [http => 500, {}, ''] if $how eq 'broken';

        return { tools => [
        { name => 'plain', inputSchema => schema(),
          outputSchema => { type => 'object', properties => {} } },
        { name => 'odd', inputSchema => { type => 'object' },
          outputSchema => { type => 'array' } },
        $Mcp::Upstream::V{new}
            ? { name => "n\x{e9}w", inputSchema => schema() } : (),
    ], $Mcp::Upstream::V{empty} ? (nextCursor => '')
       : $Mcp::Upstream::V{endless} ? (nextCursor => 'page-' . rand())
       : () } },
    params => { plain => { Region => 'region', Deep => 'a.b' } },
    'prompts/get' => { messages => [] },
    'completion/complete' => { completion => { values => ['x'] } },
    'resources/read' => sub {
        my ($r) = @_;
        return { contents => [{ uri => $r->{json}{params}{uri},
                                text => 'read' }] };
    },
    'tools/call' => sub {
        my ($r) = @_;
        my $p = $r->{json}{params};
        my $how = $p->{arguments}{how} || '';

        return [http => $p->{arguments}{status} || 400, {},
                json_encode(Mcp::Upstream::error($r, $p->{arguments}{code},
                                                 'it says so'))]
            if $how eq 'error';

        return { content => [], structuredContent => [1, 2] }
            if $how eq 'odd';

        return { resultType => 'task', task => { taskId => 7 } }
            if $how eq 'task';

        return ([sse => {}], [event => { jsonrpc => '2.0',
                    method => 'notifications/message', params => {
                        level => 'error', data => 'log' } }],
                [event => { jsonrpc => '2.0',
                    method => 'notifications/progress', params => {
                        progressToken => $p->{_meta}{progressToken},
                        progress => 1 } }],
                (map { [event => { jsonrpc => '2.0', id => $_,
                                   method => 'roots/list' }] } 7 .. 9),
                [event => Mcp::Upstream::result($r, { content => [],
                    resultType => 'complete' })], [end =>])
            if $how eq 'stream';

        return ([sse => {}], [comment => 'slow'], [tag => 'slow'], [hang =>])
            if $how eq 'slow';

        return { content => [{ type => 'text', text => 'done' }],
                 structuredContent => { n => 12345678901234567890 },
                 _meta => { mine => 1,
                            "${KEY}serverInfo" => { name => 'x' } } };
    },
    'example/other' => { ok => JSON::PP::true },
));

# one that says nothing to whom it does not know

my $known = Mcp::Upstream::modern(info => { name => 'guard', version => '1' },
    'tools/list' => { tools => [] },
    'tools/call' => { content => [] });
my $guard = Mcp::Upstream->new(sub {
    my ($r) = @_;
    return $known->($r) if ($r->{headers}{authorization} || '') eq 'Bearer t';
    return [http => 401, { 'WWW-Authenticate' => 'Bearer realm="x"' }, ''];
});

my $t = Mcp::Test->new(vars => { UP => $up->port, GUARD => $guard->port },
                       conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;
    mcp_stream_after 200ms;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
    }

    location = /auto {
        mcp_endpoint zone=main;
        mcp_upstream auto /_up;
    }

    location = /guard {
        mcp_endpoint zone=main;
        mcp_upstream guard /_guard protocol=modern;
    }

    location = /_guard { internal; proxy_pass http://127.0.0.1:%%GUARD%%/; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
CONF

sub seen { my @r = $up->calls($_[0]); return $r[-1] }
sub meta { seen($_[0])->{json}{params}{_meta} }


# the handshake is answered from server/discover

my $s = $t->session(
    headers => { 'X-Test-Client' => 1, Authorization => 'Bearer t' },
    caps => { sampling => {}, elicitation => {}, tasks => {},
              roots => { listChanged => JSON::PP::true },
              experimental => { x => 1 } });
my $init = $s->{server};

is($init->{protocolVersion}, '2025-11-25', 'a client with sessions');
is_deeply($init->{serverInfo}, { name => 'forecasts', version => '2' },
          'the server says who it is');
is($init->{instructions}, 'ask politely', 'and how to use it');
is(join(' ', sort keys %{ $init->{capabilities} }),
   'completions extensions logging prompts resources tools',
   'and what it can');
is_deeply(Mcp::Modern->new($t)->call('server/discover')
              ->{json}{result}{capabilities}{extensions},
          { 'com.example/x' => {} }, 'extensions for clients of its revision');
is(scalar $up->calls('initialize'), 0, 'it never heard of a handshake');
is(scalar $up->calls('notifications/initialized'), 0, 'nor of its end');


# a request

my $r = $s->call('tools/call', { name => 'plain', arguments => {},
                                 _meta => { progressToken => 'p', own => 2,
                                            "${KEY}logLevel" => 'debug' } });
my $got = seen('tools/call');

is_deeply($r->{result}, { content => [{ type => 'text', text => 'done' }],
              structuredContent => { n => 12345678901234567890 },
              _meta => { mine => 1 } }, 'a result, as clients know it');
like($r->{http}{body}, qr/"n":12345678901234567890/, 'byte for byte');
is_deeply($got->{json}{params}{_meta}, {
    "${KEY}protocolVersion" => '2026-07-28',
    "${KEY}clientInfo" => { name => 'mcp-test', version => '1.0' },
    "${KEY}clientCapabilities" => {
        sampling => {}, elicitation => { form => {} }, roots => {},
        experimental => { x => 1 }
    },
    "${KEY}logLevel" => 'info', progressToken => 'p', own => 2,
}, 'the envelope says who asks, and keeps what the client said');
is($got->{headers}{'mcp-name'}, 'plain', 'Mcp-Name');
is($got->{headers}{authorization}, 'Bearer t', 'the client\'s own headers');

$r = $s->call('example/other');
is_deeply($r->{result}, { ok => JSON::PP::true }, 'without params');
is(meta('example/other')->{"${KEY}protocolVersion"}, '2026-07-28',
   'which it gets');

$s->call('resources/read', { uri => 'x:/ä "b"' });
like(seen('resources/read')->{headers}{'mcp-name'}, qr/^=\?base64\?/,
     'a URI that is no header is encoded');
$s->call('tasks/get', { taskId => 't-1' });
is(seen('tasks/get')->{headers}{'mcp-name'}, 't-1', 'the id of a task');
$s->tool('=?base64?eA==?=');
is(seen('tools/call')->{json}{params}{name}, '=?base64?eA==?=',
   'and a name that looks so');

$s->call('logging/setLevel', { level => 'error' });
is(scalar $up->calls('logging/setLevel'), 0, 'a level is no request');
$s->tool('plain');
is(meta('tools/call')->{"${KEY}logLevel"}, 'error', 'but goes with each');

my $b = $t->session(version => '2025-06-18',
                    caps => { elicitation => { url => {} } });
$b->tool('plain');
is_deeply(meta('tools/call')->{"${KEY}clientCapabilities"},
          { elicitation => { form => {} } },
          'a client before 2025-11-25 has forms alone');


# results and errors

$r = $s->call('tools/list');
is_deeply($r->{result}, { tools => [
    { name => 'plain', inputSchema => schema(),
      outputSchema => { type => 'object', properties => {} } },
    { name => 'odd', inputSchema => { type => 'object' } },
] }, 'a list: no hints, and no schema that clients do not know');
is_deeply($s->tool('odd', { how => 'odd' })->{result}, { content => [] },
          'nor such content');

$r = Mcp::Modern->new($t)->call('tools/call', { name => 'odd', arguments => {
                                                how => 'odd' } });
is_deeply($r->{json}{result}{structuredContent}, [1, 2],
          'which clients of the revision know');

$r = Mcp::Modern->new($t)->call('tools/call', { name => 'odd', arguments => {
                                                how => 'task' } });
is(Mcp::Modern::said($r), '200 task', 'types of results that extensions have');
is_deeply($r->{json}{result}{task}, { taskId => 7 }, 'with their members');
is_deeply($s->tool('odd', { how => 'task' })->{result},
          { task => { taskId => 7 } }, 'not for clients with sessions');

$r = $s->call('nothing/here');
is_deeply([$r->{http}{status}, $r->{error}{code}], [200, -32601],
          'an unknown method: 404 is 200');

for my $case ([-32602, -32602, 'it says so'],
              [-32020, -32603, 'the upstream refused the headers or the '
                               . 'version of the request'],
              [-32022, -32603, 'the upstream refused the headers or the '
                               . 'version of the request'])
{
    my ($theirs, $code, $message) = @$case;

    $r = $s->tool('plain', { how => 'error', code => $theirs });
    is_deeply([$r->{http}{status}, $r->{error}{code}, $r->{error}{message}],
              [200, $code, $message], "error $theirs");
}

for my $case (map { my $path = $_; map { [$path, $_] } 200, 404 }
              qw(/mcp /auto))
{
    my ($path, $status) = @$case;

    $r = Mcp::Modern->new($t, path => $path)->call('tools/call', {
        name => 'plain', arguments => { how => 'error', code => -32601,
                                        status => $status } });
    is(Mcp::Modern::said($r), "$status -32601",
       "$path: clients of the revision get $status -32601 unchanged");
}

like($t->log, qr/\[error\].*"up"\ of\ endpoint\ .*refused\ the\ headers.*-32020
                  .*"Mcp-Method"/x, 'the log says what to look at');

$r = $s->tool('plain', { how => 'error', code => -32021 });
is_deeply($r->{result}, { content => [{ type => 'text',
              text => 'it says so' }], isError => JSON::PP::true },
          'a capability that the client lacks');


# arguments in headers

sub lists { scalar $up->calls('tools/list') }

# each worker reads the list for itself

$s->{conn} = $t->conn_on_worker(($t->workers)[0]);
$s->tool('plain') for 1 .. 4;
my $before = lists();
$r = $s->tool('plain', { region => 'eu', a => { b => 12 } });
ok($r->{result}, 'a tool with arguments that are repeated');
is(seen('tools/call')->{headers}{'mcp-param-deep'}, 12, 'in headers');
ok($s->tool('plain', { region => "\x{fc} " })->{result}, 'encoded');
is(lists(), $before, 'the list is read once');

$up->set(renamed => 'place');
$up->set(params => { plain => { Region => 'place' } });
$r = $s->tool('plain', { place => 'us' });
ok($r->{result}, 'it is read again when the headers are refused');
is(seen('tools/call')->{headers}{'mcp-param-region'}, 'us', 'and sent again');
is(lists(), $before + 1, 'once');
delete $s->{conn};


# a failure to read it again leaves what is known

my %on = (conn => $t->conn_on_worker(($t->workers)[0]));

ok($s->tool('plain', { place => 'us' }, %on)->{result}, 'a worker knows it');
$clock->pass($t, 11);

for my $how ('refused', 'broken') {
    $before = lists();
    ok($s->tool('new', {}, %on, headers => { 'X-List' => $how })->{result},
       "$how: the call of a tool that is not listed");
    is(lists(), $before + 1, 'reads the list once');
    ok($s->tool('plain', { place => 'eu' }, %on)->{result}, 'others work');
    is(seen('tools/call')->{headers}{'mcp-param-region'}, 'eu',
       'with their headers');
    is(lists(), $before + 1, 'for which it is not read again');
}


# a failure counts as a reading

$before = lists();
ok($s->tool('new', {}, %on)->{result}, 'the tool once more');
is(lists(), $before, 'for which the list is not read so soon');


# a tool that came later has its headers from its first call on

$up->set(new => 1);
$up->set(params => { plain => { Region => 'place' },
                     "n\x{e9}w" => { Region => 'place' } });
$clock->pass($t, 11);

for (1, 2) {
    ok($s->tool("n\x{e9}w", { place => 'eu' }, %on)->{result},
       'a tool that came later');
    is(seen('tools/call')->{headers}{'mcp-param-region'}, 'eu',
       'with its headers');
    is(lists(), $before + 1, 'for which the list is read once');
}


# an empty cursor, for which the list begins again

$up->set(empty => 1);
$up->set(renamed => 'site');
$up->set(params => { plain => { Region => 'site' } });
$before = lists();
$r = $s->tool('plain', { site => 'us' }, %on);
ok($r->{result}, 'it is read again from an upstream that never ends it');
is(seen('tools/call')->{headers}{'mcp-param-region'}, 'us', 'and sent again');
is(lists(), $before + 2, 'which is asked for two pages');
$up->set(empty => '');


# a list of too many pages

$up->set(endless => 1);

for my $tool ('last', 'latest') {
    $clock->pass($t, 11);
    $before = lists();
    ok($s->tool($tool, {}, %on)->{result}, 'a tool that is on no page');
    is(lists(), $before + 64, 'for which so many pages are read');
}

is(() = $t->log =~ /\[warn\] .* "up" .*; let the upstream list more tools/g, 1,
   'the log tells once that the list is cut');
$up->set(endless => '');


# streams

my $stream = $s->stream('tools/call', { name => 'plain',
    arguments => { how => 'stream' }, _meta => { progressToken => 5 } });
my @events = grep { ref $_->{json} } $stream->drain(10);

is(join(' ', map { $_->{json}{method} || 'result' } @events),
   'notifications/message notifications/progress result',
   'logs and progress, and no request');
is($events[1]{json}{params}{progressToken}, 5, 'the token is the client\'s');
is_deeply($events[-1]{json}{result}, { content => [] }, 'the result');
is(() = $t->log =~ /\[warn\] .* "up" sent a request, which servers of/g, 1,
   'the log says once that the upstream sends requests');


# cancellation closes the exchange, and is told to nobody

my $slow = $s->stream('tools/call', { name => 'plain',
                                      arguments => { how => 'slow' } });

ok(wait_for(sub { $up->held('slow') == 1 }), 'a slow call');

my ($other) = grep { $_ } $t->workers;
$s->notify('notifications/cancelled', { requestId => $slow->{id} },
           conn => $t->conn_on_worker($other));
ok(wait_for(sub { $up->held('slow') == 0 }), 'cancelled: it is closed');
is(scalar $up->calls('notifications/cancelled'), 0, 'that is all');

$s->notify('notifications/roots/list_changed');
is(scalar $up->calls('notifications/roots/list_changed'), 0,
   'roots are not told of');

# found out: it refuses a handshake as such servers do

my $auto = $t->session(path => '/auto');

is($auto->{server}{serverInfo}{name}, 'forecasts', 'found out by itself');
is($auto->tool('plain')->{result}{content}[0]{text}, 'done', 'a call');

# one that answers each client for itself

$r = $t->client(path => '/guard')->initialize;
is($r->{status}, 401, 'a client without a token is refused');
is($r->{headers}{'www-authenticate'}, 'Bearer realm="x"', 'with the challenge');

my $token = $t->session(path => '/guard',
                        headers => { Authorization => 'Bearer t' });
is($token->{server}{serverInfo}{name}, 'guard', 'one with a token is not');
ok($token->tool('x')->{result}, 'its calls neither');
is(scalar $guard->calls('initialize'), 0, 'no handshake');

is($s->delete->{status}, 200, 'DELETE');
is(scalar $up->requests(sub { $_[0]{method} ne 'POST' }), 0,
   'nothing but POST');

done_testing();
