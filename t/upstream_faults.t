#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Upstreams that refuse, die, lie, hang, forget: what the client gets, that
# nothing is sent twice, and that nothing stays behind.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

# what an upstream does for each tool, and what the client gets: HTTP status
# and JSON-RPC code ('ok' for a result)

my $long = 'x' x 20_000;
my $huge = 'x' x 200_000;

sub ok_json {
    my ($r, %more) = @_;
    return json_encode(Mcp::Upstream::result($r, { content => [], %more }));
}

my @faults = (
    # it does not get as far as an answer

    [closes => 502, -32603, sub { [cut =>] }],
    [resets => 502, -32603, sub { [reset =>] }],
    ['half a header' => 502, -32603, sub {
        ([bytes => "HTTP/1.1 200 OK\r\nContent-Ty"], [cut =>]) }],
    ['no HTTP' => 502, -32603, sub {
        ([bytes => "220 mail ready\r\n"], [cut =>]) }],
    ['half an answer' => 502, -32603, sub {
        ([bytes => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   . "Content-Length: 500\r\n\r\n" . ok_json($_[0])],
         [cut =>]) }],
    ['half a chunk' => 502, -32603, sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => substr ok_json($_[0]), 0, 20], [cut =>]) }],
    ['chunks without an end' => 502, -32603, sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => ok_json($_[0])], [cut =>]) }],
    [hangs => 504, -32603, sub { [hang =>] }],
    ['hangs after the header' => 504, -32603, sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [hang =>]) }],
    ['hangs in the middle' => 504, -32603, sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => '{"jsonrpc":"2.0",'], [hang =>]) }],
    ['drips for ever' => 504, -32603, sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         map { ([part => ' '], [wait => 0.1]) } 1 .. 80) }],

    # it answers nonsense

    ['HTML' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'text/html' }, '<p>hello'] }],
    ['an HTML error' => 502, -32603, sub {
        [http => 500, { 'Content-Type' => 'text/html' }, '<p>oops'] }],
    ['a bad gateway' => 502, -32603, sub {
        [http => 502, { 'Content-Type' => 'text/html' }, '<p>bad'] }],
    ['a redirect' => 502, -32603, sub {
        [http => 302, { Location => 'http://127.0.0.1:1/' }, ''] }],
    ['text that is JSON' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'text/plain' }, ok_json($_[0])] }],
    ['no content' => 502, -32603, sub { [http => 204, {}, ''] }],
    ['an empty body' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' }, ''] }],
    ['202' => 502, -32603, sub { [http => 202, {}, ''] }],
    ['no JSON' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' }, '{bad'] }],
    ['half JSON' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         substr ok_json($_[0]), 0, -1] }],
    ['more than JSON' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         ok_json($_[0]) . '{}'] }],
    ['an array without an answer' => 502, -32603, sub {
        [json => [notification('x'), notification('y')]] }],
    ['an empty array' => 502, -32603, sub { [json => []] }],
    ['an array of more than 128' => 502, -32603, sub {
        [json => [Mcp::Upstream::result($_[0], { content => [] }), (1) x 128]]
    }],
    ['an array of more than 128 in a stream' => 502, -32603, sub {
        ([sse => {}],
         [event => [Mcp::Upstream::result($_[0], { content => [] }),
                    (1) x 128]]) }],
    ['another id' => 502, -32603, sub {
        [json => { jsonrpc => '2.0', id => 'other', result => {} }] }],
    ['no id' => 502, -32603, sub {
        [json => { jsonrpc => '2.0', result => {} }] }],
    ['an error with a null id' => 200, -32000, sub {
        [json => { jsonrpc => '2.0', id => undef,
                   error => { code => -32000, message => 'm' } }] }],
    ['neither result nor error' => 502, -32603, sub {
        [json => { jsonrpc => '2.0', id => $_[0]{json}{id} }] }],
    (map {
        my $result = $_;
        ["a result that is $result" => 502, -32603, sub {
            [http => 200, { 'Content-Type' => 'application/json' },
             ok_json($_[0]) =~ s/\{"content":\[\]\}/$result/r] }]
    } 'null', '[]', '"text"', '7'),
    ['a notification' => 502, -32603, sub {
        [json => { jsonrpc => '2.0', method => 'notifications/x' }] }],
    ['an empty stream' => 502, -32603, sub { ([sse => {}], [end =>]) }],
    ['a stream of comments' => 502, -32603, sub {
        ([sse => {}], [comment => 'a'], [end =>]) }],
    ['a stream of nonsense' => 502, -32603, sub {
        ([sse => {}], [event => 'nonsense'], [end =>]) }],
    ['a large answer with another id' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         '{"jsonrpc":"2.0","id":"other","result":{"x":"' . 'x' x 200_000
         . '"}}'] }],
    ['a stream with another id' => 502, -32603, sub {
        ([sse => {}], [event => { jsonrpc => '2.0', id => 'other',
                                  result => {} }], [end =>]) }],

    # it refuses

    ['401' => 401, -32000, sub {
        [http => 401, { 'WWW-Authenticate' => 'Bearer realm="x"' }, ''] }],
    ['403' => 403, -32000, sub {
        [http => 403, { 'WWW-Authenticate' =>
                        'Bearer error="insufficient_scope"' }, 'no'] }],
    ['401 with a body' => 401, -32000, sub {
        [http => 401, { 'WWW-Authenticate' => 'Bearer realm="x"' },
         '{"error":"invalid_token"}'] }],
    ['429' => 503, -32000, sub {
        [http => 429, { 'Retry-After' => 17 }, ''] }],
    ['503' => 503, -32000, sub {
        [http => 503, { 'Retry-After' => 17 }, '<p>busy'] }],
    ['503 without Retry-After' => 503, -32000, sub {
        [http => 503, {}, ''] }],
    ['400' => 400, -32000, sub { [http => 400, {}, 'bad request'] }],

    # it answers after all

    ['a JSON-RPC error' => 200, -32000, sub {
        [json => Mcp::Upstream::error($_[0], -32000, 'own')] }],
    ['a JSON-RPC error with 500' => 200, -32001, sub {
        [http => 500, { 'Content-Type' => 'application/json' },
         json_encode(Mcp::Upstream::error($_[0], -32001, 'own'))] }],
    ['a JSON-RPC error with 400' => 200, -32602, sub {
        [http => 400, { 'Content-Type' => 'application/json' },
         json_encode(Mcp::Upstream::error($_[0], -32602, 'own'))] }],
    ['an array of one' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         '[ ' . ok_json($_[0]) . ' ]'] }],
    ['a large array of one' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         '[' . ' ' x 200_000 . ok_json($_[0]) . ']'] }],
    ['a large array of one without a length' => 200, 'ok', sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => '[' . ' ' x 200_000 . ok_json($_[0]) . ']'],
         [end =>]) }],
    ['an array of two' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         '[' . ok_json($_[0]) . ',' . ok_json($_[0], n => 2) . ']'] }],
    ['an array of 128' => 200, 'ok', sub {
        [json => [(notification('x')) x 127,
                  Mcp::Upstream::result($_[0], { content => [] })]] }],
    ['a large array in a stream' => 200, 'ok', sub {
        ([sse => {}],
         [event => '[' . ' ' x 200_000 . ok_json($_[0]) . ',1]']) }],
    ['a large array of two' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         '[' . ' ' x 200_000 . ok_json($_[0]) . ',{}]'] }],
    ['the id as a string, large, without a length' => 200, 'ok', sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => json_encode({ jsonrpc => '2.0', id => "$_[0]{json}{id}",
                                result => { content => [] } })
                  . ' ' x 200_000], [end =>]) }],
    ['the id as a string, large' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         json_encode({ jsonrpc => '2.0', id => "$_[0]{json}{id}",
                       result => { content => [] } }) . ' ' x 200_000] }],
    ['the id as a string' => 200, 'ok', sub {
        [json => { jsonrpc => '2.0', id => "$_[0]{json}{id}",
                   result => { content => [] } }] }],
    ['the id as a fraction' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         ok_json($_[0]) =~ s/("id":\d+)/$1.0/r] }],
    ['the id as a fraction on a stream' => 200, 'ok', sub {
        ([sse => {}], [event => ok_json($_[0]) =~ s/("id":\d+)/$1.00/r]) }],
    ['another number than the id' => 502, -32603, sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         ok_json($_[0]) =~ s/("id":\d+)/$1.01/r] }],
    ['the id as a string on a stream' => 200, 'ok', sub {
        ([sse => {}],
         [event => { jsonrpc => '2.0', id => "$_[0]{json}{id}",
                     result => { content => [] } }]) }],
    ['a byte order mark' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         "\xef\xbb\xbf" . ok_json($_[0])] }],
    ['a byte order mark without a length' => 200, 'ok', sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         [part => "\xef\xbb\xbf" . ok_json($_[0])]) }],
    ['a byte order mark in parts' => 200, 'ok', sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         map { [part => $_] } "\xef", "\xbb\xbf", ok_json($_[0])) }],
    ['a byte order mark before much' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' => 'application/json' },
         "\xef\xbb\xbf" . ' ' x 200_000 . ok_json($_[0])] }],
    ['a charset' => 200, 'ok', sub {
        [http => 200, { 'Content-Type' =>
                        'Application/JSON; charset=utf-8' },
         ok_json($_[0])] }],
    ['drips' => 200, 'ok', sub {
        ([head => 200, { 'Content-Type' => 'application/json' }],
         map { ([part => $_], [wait => 0.01]) } split //, ok_json($_[0])) }],
    ['dripping header' => 200, 'ok', sub {
        my $body = ok_json($_[0]);
        my $text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
        map { ([bytes => $_], [wait => 0.01]) } $text =~ /(.{1,7})/gs }],
    ['slow, but alive' => 200, 'ok', sub {
        ([sse => {}], map({ ([wait => 0.6], [comment => 'alive']) } 1 .. 8),
         [event => ok_json($_[0])]) }],
    ['a stream with CR LF' => 200, 'ok', sub {
        ([sse => {}], [part => "data: " . ok_json($_[0]) . "\r\n\r\n"]) }],
    ['a stream in pieces' => 200, 'ok', sub {
        ([sse => {}], map { ([part => $_], [wait => 0.003]) }
         split //, ":c\ndata: " . ok_json($_[0]) . "\n\n") }],
    ['a stream, last event without an end' => 502, -32603, sub {
        ([sse => {}], [part => 'data: ' . ok_json($_[0])], [end =>]) }],
);

my %fault = map { $_->[0] => $_ } @faults;

# what the client is told

my %told = (
    'HTML' => qr{content type "text/html"},
    'text that is JSON' => qr{content type "text/plain"},
    'no HTTP' => qr/not valid HTTP/,
    'no JSON' => qr/not valid JSON/,
    'an array of more than 128' => qr/answer is not valid$/,
    'a redirect' => qr/the upstream answered with HTTP status 302/,
);

sub tool {
    my ($r) = @_;
    return $fault{$r->{json}{params}{name}}[3]->($r);
}

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/call' => \&tool,
    'tools/list' => { tools => [] },
    'prompts/list' => sub { [http => 404, {}, '<p>not here'] },
    'resources/list' => sub { [http => 405, { Allow => 'GET' }, ''] },
    'resources/read' => sub { [http => 501, {}, ''] },
));

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {},
                      resources => { subscribe => JSON::PP::true } },
    'logging/setLevel' => {}, 'resources/subscribe' => {},
    'tools/list' => { tools => [] },
    'tools/call' => \&tool,
    'sized' => sub {
        my ($r) = @_;
        return { x => 'x' x $r->{json}{params}{size} };
    },
    'sized/chunked' => sub {
        my ($r) = @_;
        my $text = json_encode(Mcp::Upstream::result($r, {
            x => 'x' x $r->{json}{params}{size} }));

        return ([head => 200, { 'Content-Type' => 'application/json' }],
                (map { [part => $_] } $text =~ /(.{1,8000})/gs), [end =>]);
    },
    'sized/cut' => sub {
        my ($r) = @_;
        my $text = json_encode(Mcp::Upstream::result($r, {
            x => 'x' x $r->{json}{params}{size} }));

        return ([head => 200, { 'Content-Type' => 'application/json' }],
                [part => substr $text, 0, -50], [cut =>]);
    },
    'sized/bad' => sub {
        my ($r) = @_;
        my $text = json_encode(Mcp::Upstream::result($r, {
            x => 'x' x $r->{json}{params}{size} }));

        return ([head => 200, { 'Content-Type' => 'application/json' }],
                [part => substr($text, 0, -50) . "\x01}}"], [end =>]);
    },
    'sized/other' => sub {
        my ($r) = @_;
        return [http => 200, { 'Content-Type' => 'application/json' },
                '{"result":{"x":"' . 'x' x $r->{json}{params}{size}
                . '"},"jsonrpc":"2.0","id":"behind"}'];
    },
    'sized/none' => sub {
        my ($r) = @_;
        return [http => 200, { 'Content-Type' => 'application/json' },
                '{"result":{"x":"' . 'x' x $r->{json}{params}{size}
                . '"},"jsonrpc":"2.0"}'];
    },
    'sized/split' => sub {
        my ($r) = @_;
        my $id = $r->{json}{id};
        my $got = $r->{json}{params}{other} ? 'x' . substr $id, 1 : $id;
        my $text = sprintf '{"jsonrpc":"2.0","result":{"x":"%s"},"id":"%s"}',
                   'x' x $r->{json}{params}{size}, $got;

        # the id ends in another piece than the one in which it begins

        return ([bytes => sprintf "HTTP/1.1 200 OK\r\nContent-Type: "
                                  . "application/json\r\nContent-Length: %d"
                                  . "\r\n\r\n%s", length $text,
                                  substr $text, 0, -8],
                [until => "split $got"],
                [bytes => substr $text, -8], [cut =>]);
    },
    'sized/sse' => sub {
        my ($r) = @_;
        return ([sse => {}], [event => Mcp::Upstream::result($r, {
            x => 'x' x $r->{json}{params}{size} })]);
    },
));

# sessions are forgotten on command, in several manners

my ($sessions, %known) = (0);

# how servers say that they have no such session: status, error code, text

my %lost = (
    '200' => [200, -32001, 'Session not found'],
    '200 with the id of the session' => [200, -32000, 'Session "%s" not found'],
    '200 as a stream' => [200, -32600,
                          'Invalid Request: Session not found: %s'],
    '200 in an array' => [200, -32001, 'Session not found'],
    '400 with the id' => [400, -32000,
                          'Bad Request: No valid session ID provided'],
    '400 with the id, longer' => [400, -32000,
                                  'Bad Request: No valid session ID provided '
                                  . 'for non-initialize request'],
    '400 with an id of its own' => [400, -32600,
                                    'Bad Request: Unknown Mcp-Session-Id'],
    '400 as text' => [400, undef, "Invalid session ID\n"],
    '401 as text' => [401, undef, 'Unauthorized: Session not found'],
);

my @lasting = ([-32000, 'a lasting refusal'], [-32602, 'Session not found'],
               [-32001, 'Session 7 not found'],
               [-32000, 'Session not found in the archive'],
               [-32001, 'x' x 300], [-32001, '']);

sub forgotten {
    my ($r) = @_;
    my $manner = $Mcp::Upstream::V{manner} || '';
    my ($status, $code, $text) = @{ $lost{$manner} || return };
    my $answer;

    $text =~ s/%s/$r->{headers}{'mcp-session-id'} || ''/e;
    return [http => $status, { 'Content-Type' => 'text/plain' }, $text]
        unless $code;

    $answer = Mcp::Upstream::error($r, $code, $text);
    $answer->{id} = 'server-error' if $manner =~ /its own/;
    return [sse => {}], [event => json_encode($answer)], [end =>]
        if $manner =~ /stream/;
    return [http => $status, { 'Content-Type' => 'application/json' },
            '[' . json_encode($answer) . ',{"jsonrpc":"2.0",'
            . '"method":"notifications/message","params":{"level":"info",'
            . '"data":"and more"}}]']
        if $manner =~ /array/;
    return [http => $status, { 'Content-Type' => 'application/json' },
            json_encode($answer)];
}

my $forgetful = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $j = $r->{json};
    my $V = \%Mcp::Upstream::V;

    return [http => 405, {}, ''] if $r->{method} eq 'GET';
    return [http => 200, {}, ''] if $r->{method} eq 'DELETE';

    %known = () if delete $V->{amnesia};

    if ($j->{method} eq 'initialize') {
        return [http => 500, {}, ''] if $V->{broken};
        return [hang =>] if $V->{hangs};

        my $id = 'f-' . ++$sessions;
        $known{$id} = 1 unless $V->{always};
        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25',
            capabilities => { tools => {}, logging => {}, resources => {} },
            serverInfo => { name => 'f', version => '1' } }),
                { 'Mcp-Session-Id' => $id }];
    }

    if (!$known{$r->{headers}{'mcp-session-id'} || ''}
        && !($V->{always} && $j->{method} =~ /^(?:notif|logg)/))
    {
        my @said = forgotten($r);

        return @said if @said;
        return [http => $V->{manner}, {}, '']
            if ($V->{manner} || '') =~ /^4(?:04|10)$/;
        return [http => 404, { 'Content-Type' => 'application/json' },
                '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,'
                . '"message":"Session not found"}}']
            if ($V->{manner} || '') eq '404 with a body';
        return [http => 400, { 'Content-Type' => 'application/json' },
                '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,'
                . '"message":"Bad Request: No valid session ID provided"}}'];
    }

    return [http => 202, {}, ''] unless exists $j->{id};
    return [json => Mcp::Upstream::error($r, @{ $lasting[$j->{params}{n}] })]
        if $j->{method} eq 'refused';
    return [json => Mcp::Upstream::result($r, {}),
            { 'Content-Encoding' => 'identity' }];
});

# wants a token from everyone, for everything

my $inner = Mcp::Upstream::mcp(
    capabilities => { tools => {} },
    'tools/list' => { tools => [] },
    'tools/call' => sub { return { as => $_[0]{headers}{authorization} } },
);

my $guarded = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $auth = $r->{headers}{authorization} || '';

    return [http => 401, { 'WWW-Authenticate' => 'Bearer resource_metadata='
                           . '"https://x/.well-known/y"' },
            '{"error":"invalid_token"}']
        unless $auth =~ /^Bearer (?:good|low)/;
    return [http => 403, { 'WWW-Authenticate' =>
                           'Bearer error="insufficient_scope"' }, '']
        if $auth =~ /low/ && ref $r->{json} eq 'HASH'
           && $r->{json}{method} eq 'tools/call';

    return $inner->($r);
});

my $t = Mcp::Test->new(
    vars => { GUARD => $guarded->port, UP => $up->port,
              RPC => $rpc->port, F => $forgetful->port },
    conf => <<'EOF');
mcp_zone zone=main:4m;

upstream kept { server 127.0.0.1:%%RPC%%; keepalive 8; }

server {
    %%LISTEN%%
    server_name mcp.test;

    mcp_stream_after 0;
    mcp_call_limit 256;

    location = /rpc    { mcp_endpoint zone=main;
                         mcp_upstream rpc /_rpc protocol=rpc; }
    location = /mcp    { mcp_endpoint zone=main; mcp_upstream up /_up; }

    # for what is to take longer than it may, and longer than it may be silent
    location = /rpc-hasty {
        mcp_endpoint zone=main;
        mcp_upstream_timeout 2s total=5s;
        mcp_upstream rpc /_rpc protocol=rpc;
    }
    location = /mcp-hasty {
        mcp_endpoint zone=main;
        mcp_upstream_timeout 2s total=5s;
        mcp_upstream up /_up;
    }
    location = /rpc-alive {
        mcp_endpoint zone=main;
        mcp_upstream_timeout 4s total=30s;
        mcp_upstream rpc /_rpc protocol=rpc;
    }
    location = /mcp-alive {
        mcp_endpoint zone=main;
        mcp_upstream_timeout 4s total=30s;
        mcp_upstream up /_up;
    }

    location = /f {
        mcp_endpoint zone=main;
        mcp_upstream f /_f listen=off;
    }
    location = /slowf {
        mcp_endpoint zone=main;
        mcp_upstream_timeout 20s;
        mcp_upstream f /_f;
    }

    location = /guarded { mcp_endpoint zone=main; mcp_upstream g /_g; }
    location = /small  { mcp_endpoint zone=main; mcp_upstream up /_up;
                         mcp_message_limit 10k; }
    location = /medium { mcp_endpoint zone=main; mcp_upstream up /_up;
                         mcp_message_limit 100k; }

    location = /own    { mcp_endpoint zone=main;
                         mcp_upstream own /_own protocol=rpc; }

    location = /_own {
        internal;
        if ($mcp_name = gone) { return 409; }
        if ($mcp_name = shut) { return 403; }
        if ($mcp_name = full) { return 503; }
        proxy_pass http://kept/;
    }
    location = /_rpc { internal; proxy_pass http://kept/; }
    location = /_up  { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_f   { internal; proxy_pass http://127.0.0.1:%%F%%/; }
    location = /_g   { internal; proxy_pass http://127.0.0.1:%%GUARD%%/; }

    location = /status { mcp_status zone=main; access_log off; }
}
EOF

sub log_since {
    my ($from) = @_;
    return grep { / mcp / } split /\n/, substr $t->log, $from;
}

# what is idle: each endpoint has been used, and its sessions are gone

my %path = (rpc => '/rpc', legacy => '/mcp');

for my $path (qw(/rpc /rpc-hasty /rpc-alive /mcp /mcp-hasty /mcp-alive /f
                 /small /medium /slowf /guarded))
{
    my $s = $t->session(path => $path,
                        headers => { Authorization => 'Bearer good' });
    $s->call('tools/list');
    $s->delete;
}

sub quiet {
    my $j = $t->status;
    return !$j->{calls}{running} && !$j->{streams}{open}
           && !$j->{sessions}{live} && $j;
}

# nginx refuses by itself, in the location of the upstream

{
    my $s = $t->session(path => '/own');

    for (['gone', 409], ['shut', 403], ['full', 503]) {
        my ($name, $status) = @$_;
        my $r = $s->call('tools/call', { name => $name });

        is($r->{http}{status}, $status, "$name: refused in the location");
        like($r->{error}{message}, qr/^no upstream was asked, nginx refused/,
             'which the client is told');
        is(scalar(() = $t->log =~ /mcp upstream "own".* status $status/g), 1,
           'and the log, once');
    }

    unlike($t->log, qr/upstream "own" answered/, 'it has not answered');
    $s->delete;
}

my $idle = wait_for { quiet() };
ok($idle, 'idle');


# each fault, by each kind of upstream, to a client of each kind; those that
# take their time run side by side

my %kind = (rpc => $rpc, legacy => $up);

for my $kind (sort keys %kind) {
    for my $accept ('application/json, text/event-stream',
                    'application/json')
    {
        my ($s, $hasty, $alive) = map {
            $t->session(path => "$path{$kind}$_", accept => $accept)
        } '', '-hasty', '-alive';
        my $from = length $t->log;
        my $asked = $kind{$kind}->calls('tools/call');
        my @running;

        for my $f (@faults) {
            my $by = $f->[1] == 504 ? $hasty
                     : $f->[0] eq 'slow, but alive' ? $alive : $s;
            my $m = $by->message('tools/call', { name => $f->[0] });
            push @running, [$f, $by->send_only($m), $m->{id}];
        }

        for (@running) {
            my ($f, $conn, $id) = @$_;
            my ($name, $status, $code) = @$f;
            my $r = $s->read_response($conn->response('POST'));
            my $j = $r->{json} || {};
            my $what = $accept =~ /event/ ? 'both' : 'JSON';

            # a client that streams has got 200 before the fault
            $status = 200 if $r->{sse} && $code ne 'ok';

            is($r->{status}, $status, "$kind, $what, $name: status")
                or diag($r->{body});

            if ($code eq 'ok') {
                is_deeply($j->{result}, { content => [] },
                          "$kind, $what, $name: result");

                # what passes in parts is not changed
                $id = "$id" if $name =~ /large$/;

                is(json_encode($j->{id}), json_encode($id), 'id as it was');
                next;
            }

            like($j->{error}{message}, $told{$name},
                 "$kind, $what, $name: message") if $told{$name};

            is($j->{error}{code}, $code, "$kind, $what, $name: code")
                or diag($r->{body});
            is($j->{id}, $id, 'id');
            is($j->{error}{data}{upstream}, $kind eq 'rpc' ? 'rpc' : 'up',
               'names the upstream')
                if $status >= 500;

            my $h = $r->{headers};
            my ($action) = $name =~ /^\d+/ ? $f->[3]->({}) : ();

            if ($name =~ /^40[13]/) {
                is($h->{'www-authenticate'},
                   $action->[2]{'WWW-Authenticate'}, 'WWW-Authenticate');
            }

            if ($name =~ /^(?:429|503)$/) {
                is($h->{'retry-after'}, 17, 'Retry-After, once');

            } elsif ($status == 503) {
                ok($h->{'retry-after'} > 0, 'Retry-After');
            }
        }

        is($kind{$kind}->calls('tools/call') - $asked, scalar @faults,
           "$kind: nothing is sent twice");

        my $bad = grep { $_->[2] ne 'ok'
                         && ($_->[1] >= 500 || $_->[1] == 400) } @faults;
        my @lines;

        wait_for {
            @lines = grep { /\[(?:error|crit|alert|emerg)\]/ }
                     log_since($from);
            @lines > $bad;
        };

        is((grep { / \[(?:crit|alert|emerg)\] / } @lines), 0,
           "$kind: nothing above [error]");

        # and one of the 500 that had an answer

        is(scalar @lines, $bad + 1, "$kind: one line per fault")
            or diag(join "\n", sort map { s/.*? mcp /mcp /r } @lines);

        for my $id ('with id "other"', 'without an id') {
            ok((grep { /answered $id instead of with id / } @lines),
               "$kind: answered $id");
        }

        $_->delete for $s, $hasty, $alive;
    }
}


# a method that an rpc upstream does not have

my $s = $t->session(path => '/rpc');

for my $method (qw(prompts/list resources/list resources/read no/such)) {
    my $r = $s->call($method, { $method =~ /read/ ? (uri => 'x:/') : () });
    is($r->{http}{status}, 200, "$method: 200");
    is($r->{error}{code}, -32601, "$method: -32601");
}

is($s->call('tools/list')->{http}{status}, 200, 'others are there');


# it is gone, and comes back

$rpc->refuse;
$rpc->drop;

my $from = length $t->log;
my $r = $s->call('tools/list');

is($r->{http}{status}, 502, 'refused connection');
is($r->{error}{code}, -32603, 'code');
is(scalar(grep { /\[error\]/ } log_since($from)), 1, 'one line');

$rpc->restore;
is($s->call('tools/list')->{http}{status}, 200, 'it is back');
$s->delete;

# an upstream that is not there when it is first asked

$s = $t->session(path => '/mcp');
$up->refuse;
$up->drop;

is($s->call('tools/list')->{http}{status}, 502, 'no link, refused');
is($s->call('tools/list')->{http}{status}, 502, 'again');
$up->restore;
is($s->call('tools/list')->{http}{status}, 200, 'it is back');

# a link whose server was restarted: sessions are gone with it

$up->refuse;
$up->drop;
is($s->call('tools/list')->{http}{status}, 502, 'with a link, refused');
$up->restore;
is($s->call('tools/list')->{http}{status}, 200, 'it is back');
$s->delete;


# messages that are large

my %size = map { $_ => $t->session(path => "/$_") } qw(small medium mcp);

for (
    [small => 5_000, 200], [small => 20_000, 502], [small => 300_000, 502],
    [medium => 5_000, 200], [medium => 70_000, 200], [medium => 300_000, 502],
    [mcp => 60_000, 200], [mcp => 65_000, 200], [mcp => 70_000, 200],
    [mcp => 1_000_000, 200],
) {
    my ($path, $size, $status) = @$_;

    for my $method (qw(sized sized/chunked sized/sse)) {
        $r = $size{$path}->call($method, { size => $size });
        my $name = "$method $size, limit of $path";

        if ($status == 200) {
            is($r->{http}{status}, 200, $name);
            is(length $r->{result}{x}, $size, 'whole');
            next;
        }

        is($r->{http}{status}, $method eq 'sized/sse'
                               ? $r->{http}{status} : 502, "$name: 502");
        is($r->{error}{code}, -32603, 'code');
        like($r->{error}{message}, qr/mcp_message_limit/, 'says why');
    }
}

for my $method (qw(sized/cut sized/bad)) {
    is($size{mcp}->call($method, { size => 500 })->{http}{status}, 502,
       "$method, small: 502");

    is($size{mcp}->call($method, { size => 300_000 })->{http}{status}, 502,
       "$method, large: likewise");
}

# another id behind a large result

for (['application/json', 300_000], ['text/event-stream', 300_000],
     ['application/json', 3_000_000, rcvbuf => 4096])
{
    my ($accept, $size, @slow) = @$_;

    $from = length $t->log;
    $s = $t->session(accept => $accept);
    $r = $s->post($s->message('sized/other', { size => $size }), @slow);

    ok($accept =~ /json/ ? $r->{truncated}
                         : $r->{json}{error}{code} == -32603,
       "$accept, $size: a large answer with another id at its end is none");
    like(join("\n", log_since($from)),
         qr/answered with id "behind" instead of with id \d/, 'says the log');
    $s->delete;
}

# an id that comes in two pieces

for my $other (0, 1) {
    $from = length $t->log;
    $s = $t->session(accept => 'application/json');
    $r = $s->post({ jsonrpc => '2.0', id => 'in-two-pieces',
                    method => 'sized/split',
                    params => { size => 300_000, other => $other } },
                  stream => 1);

    is($r->{status}, 200, 'the first piece has come');
    $up->release('split ' . ($other ? 'xn' : 'in') . '-two-pieces');

    my $body = $r->{reader}->slurp(30);
    my $m = json_decode(defined $body ? $r->{reader}{out} : '');

    if ($other) {
        ok($r->{reader}{cut}, 'a large answer whose other id is split is none');
        like(join("\n", log_since($from)),
             qr/answered with id "xn-two-pieces" instead of/, 'says the log');

    } else {
        is($m && $m->{id}, 'in-two-pieces', 'a large answer whose id is split');
        is(length $m->{result}{x}, 300_000, 'is whole');
    }

    $s->delete;
}

# no id

for my $accept ('application/json', 'text/event-stream') {
    $from = length $t->log;
    $s = $t->session(accept => $accept);
    $r = $s->post($s->message('sized/none', { size => 300_000 }));

    ok($accept =~ /json/ ? $r->{truncated}
                         : $r->{json}{error}{code} == -32603,
       "$accept: a large answer without an id is none");
    like(join("\n", log_since($from)), qr/answered without an id instead of/,
         'says the log');
    $s->delete;
}

$_->delete for values %size;


# a stream that broke off behind a notification

# sessions that an upstream forgot

for my $manner ('404', '404 with a body', '410', '400', sort keys %lost) {
    my ($status, $code) = $manner =~ /^20|with the id/
        ? (200, $lost{$manner}[1])
        : $manner =~ /^40[01](?! with a body)/ ? (substr($manner, 0, 3), -32000)
        : (502, -32603);
    $forgetful->set(manner => $manner);

    $s = $t->session(path => '/f');

    is_deeply($s->call('one')->{result}, {}, "$manner: link made");
    is_deeply($s->call('logging/setLevel', { level => 'warning' })->{result},
              {}, 'level');
    is_deeply($s->call('resources/subscribe', { uri => "x:$_" })->{result},
              {}, 'subscription') for 1, 2;

    $forgetful->set(amnesia => 1);
    $forgetful->clear;
    $from = length $t->log;

    is_deeply($s->call('two', { n => 12345678901234567890 })->{result}, {},
              "$manner: healed");

    my @seen = map { "$_->{json}{method}"
                     . ($_->{json}{params}{level}
                        || $_->{json}{params}{uri} || '') }
               grep { $_->{json} } $forgetful->requests;

    is_deeply(\@seen, [qw(two initialize notifications/initialized
                          logging/setLevelwarning resources/subscribex:1
                          resources/subscribex:2 two)],
              "$manner: what the upstream was told") or diag("@seen");
    is(scalar(grep { /lost a session/ && /\[notice\]/ }
              log_since($from)), 1, 'one notice');
    is_deeply($s->call('three')->{result}, {}, 'and goes on');
    is(scalar $forgetful->calls('initialize'), 1, 'without another session');

    # several at once: one session is made

    $forgetful->set(amnesia => 1);
    $forgetful->clear;

    my @conns = map { $s->send_only($s->message('many')) } 1 .. 8;

    is($_->response('POST')->{status}, 200, 'many at once') for @conns;
    is(scalar $forgetful->calls('initialize'), 1, 'one new session');

    $s->delete;

    # forgets for ever

    $s = $t->session(path => '/f');
    is_deeply($s->call('one')->{result}, {}, 'another session');
    $forgetful->set(always => 1);
    $forgetful->set(amnesia => 1);
    $forgetful->clear;

    $r = $s->call('two');
    is($r->{http}{status}, $status, "$manner, for ever: refused");
    is($r->{error}{code}, $code, 'code');
    within(scalar $forgetful->calls('two'), 1, 2, 'tried at most twice');

    $forgetful->set(always => 0);
    is_deeply($s->call('three')->{result}, {}, 'it remembers again');

    # a lasting refusal is not taken for a lost session

    for my $n (0 .. $#lasting) {
        $forgetful->clear;
        is($s->call('refused', { n => $n })->{error}{message}, $lasting[$n][1],
           'refusal');
        is(scalar $forgetful->calls('refused'), 1, 'is not repeated');
    }

    # initialize itself fails

    $forgetful->set(amnesia => 1);
    $forgetful->set(broken => 1);
    is($s->call('four')->{error}{code}, -32603, 'no new session to be had');
    $forgetful->set(broken => 0);
    is_deeply($s->call('five')->{result}, {}, 'and later there is');

    $s->delete;
}


# cancelled while the upstream's session is being made

{
    my $s = $t->session(path => '/slowf');

    is_deeply($s->call('one')->{result}, {}, 'slow upstream');
    $forgetful->set(amnesia => 1);
    $forgetful->set(hangs => 1);
    $forgetful->clear;

    my $conn = $s->send_only($s->message('two', undef, id => 'two'));
    $forgetful->wait_requests(sub { $_[0]{json}{method} eq 'initialize' });

    my $other = $s->send_only($s->message('three', undef, id => 'three'));
    my $began = time();

    is($s->notify('notifications/cancelled', { requestId => 'two' })
       ->{status}, 202, 'cancelled meanwhile');
    within($conn->response('POST')->{status}, 200, 202, 'its POST ends');
    within(time() - $began, 0, 10, 'at once');

    # the one that waited for the same session has to make it now

    $forgetful->set(hangs => 0);
    $forgetful->drop;
    my $r = $other->response('POST');
    ok($r->{status} == 200 || $r->{status} == 502, 'the other is answered');
    is_deeply($s->call('four')->{result}, {}, 'and it goes on');
    $s->delete;
}


# an upstream that wants to know who asks

{
    my $bad = sub {
        my ($token) = @_;
        return $t->client(path => '/guarded',
                          headers => { Authorization => $token });
    };

    for (1, 2) {
        for my $token (undef, 'Bearer bad') {
            my $r = $bad->($token)->initialize;

            is($r->{status}, 401, 'initialize: 401 of the upstream');
            like($r->{headers}{'www-authenticate'},
                 qr/^Bearer resource_metadata=[^,]*$/, 'with its challenge');
            is($r->{json}{error}{code}, -32000, 'and a body');
            is($r->{json}{id}, 1, 'and the id');
            ok(!$r->{headers}{'mcp-session-id'}, 'and no session');
        }
    }

    $guarded->clear;

    my $s = $t->session(path => '/guarded',
                        headers => { Authorization => 'Bearer good1' });
    is($s->{server}{serverInfo}{name}, 'up', 'who has a token gets in');
    is($s->tool('x')->{result}{as}, 'Bearer good1', 'and is heard');

    my @init = grep { ($_->{headers}{authorization} || '') =~ /good1/ }
               $guarded->calls('initialize');
    is(scalar @init, 1, 'its own initialize made the session upstream');

    my $low = $t->session(path => '/guarded',
                          headers => { Authorization => 'Bearer low' });
    is($low->call('tools/list')->{http}{status}, 200, 'another one');
    my $r = $low->tool('x');
    is($r->{http}{status}, 403, 'a call: 403 of the upstream');
    is($r->{http}{headers}{'www-authenticate'},
       'Bearer error="insufficient_scope"', 'with its challenge');
    is($r->{error}{code}, -32000, 'code');

    # the token ran out

    $r = $s->tool('x', {}, headers => { Authorization => 'Bearer old' });
    is($r->{http}{status}, 401, 'a call: 401');
    is($s->tool('x', {}, headers => { Authorization => 'Bearer good2' })
       ->{result}{as}, 'Bearer good2', 'the new one is heard');

    # the end is said with the headers of who ends it

    $guarded->clear;
    is($s->delete(headers => { Authorization => 'Bearer good3' })->{status},
       200, 'DELETE');
    my ($seen) = $guarded->wait_requests(sub { $_[0]{method} eq 'DELETE' });
    is($seen->{headers}{authorization}, 'Bearer good3', 'by its own token');
    is($low->delete->{status}, 200, 'another');
    is(scalar $guarded->wait_requests(sub { $_[0]{method} eq 'DELETE' }, 2),
       2, 'each once');
}


# nothing stays behind

my $now;

ok((wait_for {
       $now = quiet();
       $now && $now->{zone}{blocks_free} >= $idle->{zone}{blocks_free};
   }), 'the zone is as it was')
    or diag(json_encode($idle->{zone}) . "\n"
            . json_encode($t->status));
is($now->{calls}{running}, 0, 'no call runs');

my $x;

ok((wait_for {
       my $ended = 0;
       $x = $t->status->{exchanges};
       $ended += $x->{$_} for qw(ok refused unreachable timeout bad aborted);
       $ended == $x->{started};
   }), 'each exchange has ended in one way') or diag(json_encode($x));
ok($x->{$_} > 0, "exchanges: $_")
    for qw(ok refused unreachable timeout bad aborted);
is($now->{streams}{open}, 0, 'no stream is open');

done_testing();
