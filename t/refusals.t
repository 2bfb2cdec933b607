#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What bad input gets: the HTTP status, the JSON-RPC code, the id, and that no
# upstream was asked.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        return [hang =>] if $r->{json}{params}{name} eq 'hang';
        return { content => [] };
    },
));
my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1, 'tools/list' => { tools => [] },
    'tools/call' => { content => [] },
    'notifications/initialized' => sub { () },
));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, RPC => $rpc->port, DEAD => free_port() },
    conf => <<'EOF');
mcp_zone zone=main:4m;

limit_req_zone $mcp_method zone=methods:1m rate=1r/m;

map $http_x_deny $deny { default $http_x_deny; }
map $mcp_name $secret { secret 1; }

server {
    %%LISTEN%%
    server_name agents.example.com *.wild.example.net .both.example.net
                mail.* ~^re[0-9]+\.example\.org$ _ "";

    client_max_body_size 64k;
    mcp_batch on;

    location = /mcp  { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /old {
        mcp_endpoint zone=main;
        mcp_versions 2025-03-26 2025-06-18 2025-11-25;
        mcp_upstream up /_up;
    }

    location = /here { mcp_endpoint zone=main; mcp_capabilities logging; }
    location = /dead { mcp_endpoint zone=main; mcp_upstream dead /_dead
                       protocol=rpc; }

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /slow {
        mcp_endpoint zone=main;
        mcp_upstream slow /_up protocol=legacy;
        mcp_upstream_timeout 3s;
    }

    location = /limited {
        limit_req zone=methods burst=1 nodelay;
        mcp_endpoint zone=main;
    }

    location = /auth {
        auth_request /_auth;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /denied { deny all; mcp_endpoint zone=main; }

    location = /pages {
        error_page 403 /page;
        deny all;
        mcp_endpoint zone=main;
    }

    location = /deny {
        mcp_deny "" $deny;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /named {
        mcp_deny $secret;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /tenant {
        mcp_tenant $http_x_tenant;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /bound {
        mcp_session_bind $http_x_user;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /listed {
        mcp_allowed_origins https://app.example.com:443 null
                            http://APP.example.com:80 https://eighty:80;
        mcp_endpoint zone=main;
    }

    location = /any { mcp_allowed_origins any; mcp_endpoint zone=main; }

    location = /quiet {
        mcp_allowed_origins any;
        mcp_cors off;
        mcp_endpoint zone=main;
    }

    location = /page { return 200 "a page"; }

    location = /_auth { internal; add_header X-None ""; return 401; }
    location = /_up   { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_rpc  { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_dead { internal; proxy_pass http://127.0.0.1:%%DEAD%%/; }
}
EOF

my @type = ('Content-Type' => 'application/json');
my @json = (@type, Accept => 'application/json, text/event-stream');
my $ping = '{"jsonrpc":"2.0","id":7,"method":"ping"}';
my $init = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{'
           . '"protocolVersion":"2025-11-25","capabilities":{},'
           . '"clientInfo":{"name":"t","version":"1"}}}';


# $id: what the body says behind "id":, 'none' for no such member

sub refused {
    my ($r, $status, $code, $id, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $j = json_decode($r->{body});
    my @bad;

    push @bad, "status $r->{status}" if $r->{status} != $status;
    push @bad, "type $r->{headers}{'content-type'}"
        if ($r->{headers}{'content-type'} || '') ne 'application/json';

    if (ref $j ne 'HASH' || ref $j->{error} ne 'HASH') {
        push @bad, 'no JSON-RPC error';

    } else {
        my $got = $r->{body} =~ /"id":("(?:[^"\\]|\\.)*"|[^,}]*)/
                  ? $1 : 'none';

        push @bad, "code $j->{error}{code}" if $j->{error}{code} != $code;
        push @bad, "id $got" if $got ne $id;
        push @bad, 'no message' unless length $j->{error}{message};
        push @bad, 'no version' unless $j->{jsonrpc} eq '2.0';
        push @bad, 'a result' if exists $j->{result};
    }

    ok(!@bad, $name)
        or diag("got: @bad\nwanted: $status $code, id $id\n$r->{body}");

    return $j;
}


my %s = map { $_ => $t->session(version => $_) }
        qw(2025-03-26 2025-06-18 2025-11-25);
my ($s_a, $s_b, $s) = @s{sort keys %s};

is($s->call('tools/call', { name => 'x' })->{http}{status}, 200,
   'upstream works');

my ($asked_up, $asked_rpc) = map { scalar $_->asked } $up, $rpc;


# one message in a session, as it stands

sub send_raw {
    my ($session, $body, %o) = @_;

    my $h = $session->request_headers(%o);
    return $t->post($session->{path}, $h, $body);
}


# what is not JSON

my $deep = sub {
    my ($n) = @_;
    return '{"jsonrpc":"2.0","id":3,"method":"ping","params":{"a":'
           . '[' x ($n - 2) . ']' x ($n - 2) . '}}';
};

for (
    ['no JSON', '{bad'],
    ['nothing', ''],
    ['white space', " \n"],
    ['half of it', '{"jsonrpc":"2.0","id":7'],
    ['trailing bytes', $ping . 'x'],
    ['a second value', $ping . $ping],
    ['raw NUL', "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\0ng\"}"],
    ['NUL behind', "$ping\0"],
    ['invalid UTF-8', "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}"],
    ['overlong UTF-8',
     "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xc0\xaf\"}"],
    ['surrogate in UTF-8',
     "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xed\xa0\x80\"}"],
    ['byte order mark', "\xef\xbb\xbf$ping"],
    ['control character',
     "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\nng\"}"],
    ['single quotes', "{'jsonrpc':'2.0'}"],
    ['a trailing comma', '{"jsonrpc":"2.0","id":7,"method":"ping",}'],
    ['leading zero', '{"jsonrpc":"2.0","id":07,"method":"ping"}'],
    ['NaN', '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}'],
    ['deep array', '[' x 60_000],
    ['deeper than 512', $deep->(513)],
) {
    my ($name, $body) = @$_;

    refused($t->post('/mcp', [@json], $body), 400, -32700, 'none',
            "$name: without a session");
    refused(send_raw($s, $body), 400, -32700, 'none', "$name: 2025-11-25");
}

refused(send_raw($s_b, '{bad'), 400, -32700, 'null', 'id null: 2025-06-18');
refused(send_raw($s_a, '{bad'), 400, -32700, 'null', 'id null: 2025-03-26');
refused(send_raw($s_a, '{bad', headers => { 'MCP-Protocol-Version' => undef }),
        400, -32700, 'null', 'id null: 2025-03-26, no version header');

is(send_raw($s, $deep->(512))->{status}, 200, '512 deep is allowed');
is(send_raw($s, " \r\n\t$ping\n")->{status}, 200, 'white space around');


# what is no message

for (
    ['no jsonrpc', '{"id":7,"method":"ping"}', 7],
    ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":7,"method":"ping"}', 7],
    ['jsonrpc a number', '{"jsonrpc":2.0,"id":7,"method":"ping"}', 7],
    ['Jsonrpc', '{"Jsonrpc":"2.0","id":7,"method":"ping"}', 7],
    ['method a number', '{"jsonrpc":"2.0","id":7,"method":1}', 7],
    ['method null', '{"jsonrpc":"2.0","id":7,"method":null}', 7],
    ['half a surrogate pair', '{"jsonrpc":"2.0","id":7,"method":"\ud800"}', 7],
    ['neither method nor result', '{"jsonrpc":"2.0","id":7}', 7],
    ['empty object', '{}', 'none'],
    ['a string', '"ping"', 'none'],
    ['a number', '1', 'none'],
    ['null', 'null', 'none'],
    ['id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 'none'],
    ['id 1.5', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 'none'],
    ['id 1e2', '{"jsonrpc":"2.0","id":1e2,"method":"ping"}', 'none'],
    ['id true', '{"jsonrpc":"2.0","id":true,"method":"ping"}', 'none'],
    ['id an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 'none'],
    ['id an array', '{"jsonrpc":"2.0","id":[1],"method":"ping"}', 'none'],
    ['a long id', '{"jsonrpc":"2.0","id":"' . 'x' x 300 . '","method":"ping"}',
     'none'],
    ['params a string', '{"jsonrpc":"2.0","id":7,"method":"x","params":"a"}',
     7],
    ['params null', '{"jsonrpc":"2.0","id":7,"method":"x","params":null}', 7],
    ['method and result',
     '{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}', 7],
    ['result and error',
     '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}',
     7],
    ['response without id', '{"jsonrpc":"2.0","result":{}}', 'none'],
    ['error a string', '{"jsonrpc":"2.0","id":7,"error":"e"}', 7],
    ['two methods',
     '{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}', 7],
    ['two methods, one escaped', '{"jsonrpc":"2.0","id":7,"method":"ping",'
     . '"\u006dethod":"tools/call"}', 7],
    ['two ids', '{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}', 'none'],
    ['two params', '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
     . '"params":{"name":"a"},"params":{"name":"b"}}', 7],
    ['two names', '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
     . '"params":{"name":"a","name":"b"}}', 7],
    ['two URIs', '{"jsonrpc":"2.0","id":7,"method":"resources/read",'
     . '"params":{"uri":"a:a","uri":"a:b"}}', 7],
    ['two _meta', '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
     . '"params":{"name":"a","_meta":{},"_meta":{}}}', 7],
    ['two jsonrpc', '{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,'
     . '"method":"ping"}', 7],
    ['CR LF in the method',
     '{"jsonrpc":"2.0","id":7,"method":"a\r\nb"}', 7],
    ['NUL in the name', '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
     . '"params":{"name":"a\u0000b"}}', 7],
    ['LF in the name', '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
     . '"params":{"name":"a\u000ab"}}', 7],
    ['DEL in the URI', '{"jsonrpc":"2.0","id":7,"method":"resources/read",'
     . "\"params\":{\"uri\":\"a:\x7f\"}}", 7],
) {
    my ($name, $body, $id) = @$_;

    refused($t->post('/mcp', [@json], $body), 400, -32600, $id,
            "$name: without a session");
    refused(send_raw($s, $body), 400, -32600, $id, "$name: 2025-11-25");
}

refused(send_raw($s_b, '{"jsonrpc":"2.0","id":null,"method":"ping"}'),
        400, -32600, 'null', 'bad id is null: 2025-06-18');
refused(send_raw($s, $init), 400, -32600, 0, 'a second initialize');
is($t->post('/mcp', [@json, 'Mcp-Session-Id' => $s->id], $ping)->{status},
   200, 'and the session lives');


# long methods, names and URIs, which keys of nginx's limits could not hold

my $long = 'n' x 16385;
my $envelope = '"_meta":{"io.modelcontextprotocol/protocolVersion":'
               . '"2026-07-28",'
               . '"io.modelcontextprotocol/clientCapabilities":{}}';

for (
    [$long, '', -32600], ["notifications/$long", '', -32600],
    ['tools/call', qq("name":"$long"), -32602],
    ['my/own', qq("name":"$long"), -32602],
    ['resources/read', qq("uri":"a:$long"), -32602],
    ['completion/complete', qq("ref":{"type":"ref/prompt","name":"$long"}),
     -32602],
    ['completion/complete', qq("ref":{"type":"ref/resource","uri":"a:$long"}),
     -32602],
) {
    my ($method, $params, $code) = @$_;
    my $name = substr "$method $params", 0, 60;
    my $text = qq({"jsonrpc":"2.0","id":7,"method":"$method","params":{);

    refused(send_raw($s, "$text$params}}"), $code == -32600 ? 400 : 200,
            $code, 7, "long, $name");

    my $r = send_raw($s_a, "[$ping,$text$params}}]");
    is((grep { $_->{error} } @{ json_decode($r->{body}) })[0]{error}{code},
       $code, 'in a batch');

    $text .= $params ? "$params,$envelope}}" : "$envelope}}";
    refused($t->post('/mcp', [@json, 'MCP-Protocol-Version' => '2026-07-28',
                              'Mcp-Method' => substr($method, 0, 99)], $text),
            400, $code, 7, 'from a client of 2026-07-28');
}


# ids

for my $id ('0', '-1', '1795292854357', '"0"', '"a\\"b"', '"\u00e4\\/"', '""',
            '9007199254740993', '12345678901234567890123')
{
    for ([$s, 'ping'], [$t->client(path => '/here'), 'ping']) {
        my ($session, $method) = @$_;
        my $r = send_raw($session,
                         "{\"jsonrpc\":\"2.0\",\"id\":$id,"
                         . "\"method\":\"$method\"}");

        like($r->{body}, qr/"id":\Q$id\E[,}]/, "id $id as it was sent");
    }
}


# arrays

refused(send_raw($s, "[$ping]"), 400, -32600, 'none', 'array: 2025-11-25');
refused(send_raw($s_b, "[$ping]"), 400, -32600, 'null', 'array: 2025-06-18');
refused(send_raw($s, '[]'), 400, -32600, 'none', 'empty array: 2025-11-25');
refused(send_raw($s_a, '[]'), 400, -32600, 'null', 'empty array: 2025-03-26');
refused(send_raw($s_a, "[$init]"), 400, -32600, 'null',
        'initialize in an array');
refused(send_raw($s_a, "[$ping,$init]"), 400, -32600, 'null',
        'initialize in an array, second');
refused($t->post('/mcp', [@json], "[$init]"), 400, -32600, 'none',
        'initialize in an array, no session');
refused($t->post('/mcp', [@json], '[]'), 400, -32600, 'none',
        'empty array, no session');

my $r = send_raw($s_a, "[$ping, {\"jsonrpc\":\"2.0\",\"id\":\"b\","
                       . '"method":"ping"}]');
is($r->{status}, 200, 'batch: 200');
is_deeply([sort { $a->{id} cmp $b->{id} } @{ json_decode($r->{body}) }],
          [{ jsonrpc => '2.0', id => 7, result => {} },
           { jsonrpc => '2.0', id => 'b', result => {} }], 'batch: answers');

my $note = '{"jsonrpc":"2.0","method":"notifications/x"}';

$r = send_raw($s_a, "[$note,$note]");
is($r->{status}, 202, 'batch of notifications: 202');
is($r->{body}, '', 'and no body');

$r = send_raw($s_a, '[{"jsonrpc":"2.0","id":99,"result":{}}]');
is($r->{status}, 202, 'batch of responses: 202');

$r = send_raw($s_a, "[$note,$ping,1,{\"id\":\"c\",\"jsonrpc\":\"2.0\"},"
                    . '{"jsonrpc":"2.0","id":"d","method":"tools/call",'
                    . '"params":{"name":"x"}},'
                    . '{"jsonrpc":"2.0","id":"e","method":"no/such"}]');
is($r->{status}, 200, 'mixed batch: 200');

my %by = map { (defined $_->{id} ? $_->{id} : 'null') => $_ }
         @{ json_decode($r->{body}) || [] };

is_deeply([sort keys %by], [qw(7 c d e null)], 'mixed batch: who is answered');
is($by{null}{error}{code}, -32600, 'mixed batch: no message');
is($by{c}{error}{code}, -32600, 'mixed batch: no request');
is_deeply($by{d}{result}, { content => [] }, 'mixed batch: upstream asked');
is($by{e}{error}{code}, -32601, 'mixed batch: unknown method');
is($up->calls('tools/call') - 1, 1, 'mixed batch: upstream asked once');

($asked_up, $asked_rpc) = map { scalar $_->asked } $up, $rpc;


# methods and parameters

my $here = $t->session(path => '/here');

for (
    ['unknown method, no upstream', $here, 'no/such', undef, -32601],
    ['tools/list, no upstream', $here, 'tools/list', undef, -32601],
    ['tools/call, no upstream', $here, 'tools/call', { name => 'x' }, -32601],
    ['logging that is not offered', $t->session(path => '/mcp'),
     'logging/setLevel', { level => 'error' }, -32601],
    ['unknown level', $here, 'logging/setLevel', { level => 'loud' }, -32602],
    ['level a number', $here, 'logging/setLevel', { level => 1 }, -32602],
    ['no level', $here, 'logging/setLevel', {}, -32602],
    ['no params', $here, 'logging/setLevel', undef, -32602],
    ['subscribe to nothing', $here, 'resources/subscribe', {}, -32602],
    ['subscribe to a number', $here, 'resources/subscribe', { uri => 1 },
     -32602],
    ['unsubscribe nothing', $here, 'resources/unsubscribe', {}, -32602],
) {
    my ($name, $session, $method, $params, $code) = @$_;
    my $m = $session->message($method, $params);

    refused(send_raw($session, json_encode($m)), 200, $code, $m->{id}, $name);
}

for (
    ['no params', undef],
    ['no version', { capabilities => {}, clientInfo => {} }],
    ['version a number', { protocolVersion => 1, capabilities => {},
                           clientInfo => {} }],
    ['no capabilities', { protocolVersion => '2025-11-25',
                          clientInfo => {} }],
    ['capabilities an array', { protocolVersion => '2025-11-25',
                                capabilities => [], clientInfo => {} }],
    ['no client info', { protocolVersion => '2025-11-25',
                         capabilities => {} }],
) {
    my ($name, $params) = @$_;
    my $m = $here->message('initialize', $params);

    $r = $t->post('/mcp', [@json], json_encode($m));
    refused($r, 200, -32602, $m->{id}, "initialize: $name");
    ok(!exists $r->{headers}{'mcp-session-id'}, 'and no session');
}

is(scalar $up->asked, $asked_up, 'upstream was not asked');

refused(send_raw($s, '{"jsonrpc":"2.0","id":"u","method":"no/such"}'),
        200, -32601, '"u"', 'unknown method, upstream asked');
is(scalar $up->calls('no/such'), 2, 'once');
$asked_up = $up->asked;


# sessions

for my $method (qw(ping tools/list logging/setLevel)) {
    my $m = qq({"jsonrpc":"2.0","id":7,"method":"$method"});

    refused($t->post('/mcp', [@json], $m), 400, -32000, 7,
            "$method: no session");
    refused($t->post('/mcp', [@json, 'Mcp-Session-Id' => 'nope'], $m),
            404, -32001, 7, "$method: unknown session");
    refused($t->post('/mcp', [@json, 'Mcp-Session-Id' => $here->id], $m),
            404, -32001, 7, "$method: session of another endpoint");
}

for my $m ($note, '{"jsonrpc":"2.0","id":5,"result":{}}', "[$ping]") {
    my $id = $m =~ /"id":5/ ? 5 : 'none';

    refused($t->post('/mcp', [@json], $m), 400, -32000, $id,
            'no session: ' . substr $m, 0, 40);
    refused($t->post('/mcp', [@json, 'Mcp-Session-Id' => 'nope'], $m),
            404, -32001, $id, 'unknown session: ' . substr $m, 0, 40);
}

for my $method (qw(GET DELETE)) {
    my @h = (Accept => 'text/event-stream');

    refused($t->request($method, '/mcp', [@h]), 400, -32000, 'none',
            "$method: no session");
    refused($t->request($method, '/mcp', [@h, 'Mcp-Session-Id' => 'nope']),
            404, -32001, 'none', "$method: unknown session");
    refused($t->request($method, '/mcp',
                        [@h, 'Mcp-Session-Id' => $here->id]),
            404, -32001, 'none', "$method: session of another endpoint");
}

# headers that are there twice

for (['Mcp-Session-Id', $s->id, 'nope'], ['Mcp-Session-Id', 'nope', $s->id],
     ['Mcp-Session-Id', $s->id, $s_b->id], ['Mcp-Session-Id', $s->id, ''],
     ['MCP-Protocol-Version', '2025-11-25', '2025-06-18'],
     ['MCP-Protocol-Version', '1999-01-01', '2025-11-25'],
     ['Last-Event-ID', 'a', 'b'])
{
    my ($name, @values) = @$_;
    my @sid = $name eq 'Mcp-Session-Id' ? () : ('Mcp-Session-Id' => $s->id);

    refused($t->post('/mcp', [@json, @sid, $name => \@values], $ping),
            400, -32000, 7, "twice, $name: @values");
    refused($t->get('/mcp', [Accept => 'text/event-stream', @sid,
                             $name => \@values]),
            400, -32000, 'none', 'and of a GET');
}

refused($t->post('/mcp', [@json, 'Mcp-Session-Id' => $s->id,
                          Origin => $_], $ping), 403, -32000, 'none',
        "twice, Origin: @$_")
    for map { [@$_], [reverse @$_] }
        [ 'https://agents.example.com', 'https://evil.example' ],
        [ 'https://evil.example', '' ];

refused($t->post('/mcp', [@json, 'Mcp-Session-Id' => $s->id . ', ' . $s->id],
                 $ping), 404, -32001, 7, 'two ids in one header');

is($t->post('/mcp', [@json, map { ($_->[0] => [($_->[1]) x 2]) }
                            ['Mcp-Session-Id', $s->id],
                            ['MCP-Protocol-Version', '2025-11-25'],
                            ['Origin', 'https://agents.example.com']], $ping)
   ->{status}, 200, 'equal ones mean what one means');

$r = send_raw($s, '{"jsonrpc":"2.0","id":"nobody asked","result":{}}');
is($r->{status}, 202, 'response to no request: 202');
is($r->{body}, '', 'and no body');
is(send_raw($s, '{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}')
   ->{status}, 202, 'error without an id: 202');


# MCP-Protocol-Version

for ($s, $s_a) {
    for my $v ('1999-01-01', '2025-11-2', 'x', '2026-07-28',
               '2025-11-25, 2025-06-18')
    {
        refused(send_raw($_, $ping, headers => { 'MCP-Protocol-Version'
                                                 => $v }),
                400, $v eq '2026-07-28' ? -32602 : -32000, 7, "version $v");
    }

    for my $v (undef, qw(2025-03-26 2025-06-18 2025-11-25)) {
        is(send_raw($_, $ping, headers => { 'MCP-Protocol-Version' => $v })
           ->{status}, 200, 'version ' . (defined $v ? $v : 'absent'));
    }
}

refused($t->post('/mcp', [@json, 'MCP-Protocol-Version' => '1999-01-01'],
                 $init),
        400, -32000, 0, 'initialize: version header not supported');
is($t->post('/mcp', [@json, 'MCP-Protocol-Version' => '2025-11-25',
                     'Mcp-Method' => 'initialize'], $init)->{status},
   200, 'initialize with headers');

for my $method (qw(GET DELETE)) {
    refused($t->request($method, '/mcp',
                        $s->request_headers(headers => {
                            'MCP-Protocol-Version' => '1999-01-01' })),
            400, -32000, 'none', "$method: version");
}

# a version of requests without sessions says nothing of a session's streams

{
    my $known = $t->session;
    my %h = (headers => { 'MCP-Protocol-Version' => '2026-07-28' });

    is($known->open_get(%h)->status, 200, 'GET: version 2026-07-28');
    is($known->delete(%h)->{status}, 200, 'DELETE: version 2026-07-28');

    for my $method (qw(GET DELETE)) {
        refused($t->request($method, '/mcp', $known->request_headers(%h)),
                404, -32001, 'none', "$method: no such session");
    }
}


# conditions are about what has a state, and cost nobody an answer

for (['If-None-Match', '*'], ['If-Match', '"x"'],
     ['If-Modified-Since', 'Mon, 01 Jan 2040 00:00:00 GMT'],
     ['If-Unmodified-Since', 'Mon, 01 Jan 2001 00:00:00 GMT'])
{
    my %h = (headers => { @$_ });

    is(send_raw($s, $ping, %h)->{status}, 200, "$_->[0]: POST");
    is($s->open_get(%h)->status, 200, "$_->[0]: GET");
}


# requests of 2026-07-28 where that is not offered: what makes a dual-era client
# begin with initialize

my $meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
           . '"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},'
           . '"io.modelcontextprotocol/clientCapabilities":{}}';

for my $method (qw(server/discover tools/list tools/call initialize)) {
    my $m = qq({"jsonrpc":"2.0","id":0,"method":"$method","params":)
            . qq({"name":"x",$meta}});
    my $j = refused($t->post('/old', [@json, 'MCP-Protocol-Version'
                                      => '2026-07-28',
                                      'Mcp-Method' => $method], $m),
                    400, $method eq 'server/discover' ? -32601 : -32000, 0,
                    "modern $method");

    ok(!exists $j->{error}{data}, 'without data of a modern error');
}

for my $path (qw(/old /mcp)) {
    refused($t->post($path, [@json],
                     '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'),
            400, -32601, 1, "$path: server/discover");
}

# and in a session it is a method like any that is not there, also for clients
# that know a modern envelope

my $s_old = $t->session(path => '/old');

refused(send_raw($s_old, $ping,
                 headers => { 'MCP-Protocol-Version' => '2026-07-28' }),
        400, -32000, 7, 'version 2026-07-28, not offered');

for my $params ('{}', "{$meta}") {
    refused(send_raw($s_old,
                     qq({"jsonrpc":"2.0","id":2,)
                     . qq("method":"server/discover","params":$params})),
            200, -32601, 2, 'server/discover in a session');
}


# Accept and Content-Type

for (
    [undef, 200, 200], ['*/*', 200, 200], ['application/json', 200, 406],
    ['text/event-stream', 200, 200], ['application/*', 200, 406],
    ['text/*', 200, 200], ['TEXT/Event-Stream', 200, 200],
    ['text/html', 406, 406], ['', 406, 406],
    ['application/json;q=0', 406, 406],
    ['application/json;q=0, text/event-stream; q=0.000', 406, 406],
    ['application/json; q=0.001', 200, 406],
    ['text/html, text/event-stream;q=0.5', 200, 200],
    ['*/*;q=0', 406, 406],
    ['application/jsonp', 406, 406],
    ['text/event-stream;q=0, */*', 200, 406],
    ['application/json;q=0, text/event-stream;q=0, */*', 406, 406],
) {
    my ($accept, $post, $get) = @$_;
    my $name = 'Accept: ' . (defined $accept ? $accept : '-');

    $r = send_raw($s, $ping, headers => { Accept => $accept });

    if ($post == 200) {
        is($r->{status}, 200, "POST, $name");
    } else {
        refused($r, 406, -32000, 7, "POST, $name");
    }

    my $h = $s->request_headers(headers => { Accept => $accept });
    delete $h->{'Content-Type'};

    $r = $t->request('GET', '/mcp', $h, undef, stream => 1);
    is($r->{status}, $get, "GET, $name");
    $r->{conn}->close;
}

my $h = $s->request_headers;
delete @$h{qw(Accept Content-Type)};

is($t->post('/mcp', [%$h, @type, Accept => 'text/html',
                     Accept => 'application/json'], $ping)->{status},
   200, 'Accept in two lines');

for (undef, '', 'text/plain', 'application/jsonp', 'application/x-json',
     'multipart/form-data; boundary=application/json', 'json')
{
    refused(send_raw($s, $ping, headers => { 'Content-Type' => $_ }),
            415, -32000, 'none',
            'Content-Type: ' . (defined $_ ? $_ : '-'));
}

for ('application/json; charset=utf-8', 'Application/JSON',
     'application/json ; x=y', 'application/json;charset=UTF-8')
{
    is(send_raw($s, $ping, headers => { 'Content-Type' => $_ })->{status},
       200, "Content-Type: $_");
}


# methods

for my $method (qw(PUT PATCH OPTIONS PROPFIND TRACE)) {
    $r = $t->request($method, '/mcp', [@json, 'Mcp-Session-Id' => $s->id],
                     $method eq 'TRACE' ? undef : $ping);

    if ($method eq 'TRACE') {
        is($r->{status}, 405, 'TRACE');
        next;
    }

    refused($r, 405, -32000, 'none', $method);
    is(join(', ', sort split /,\s*/, $r->{headers}{allow} || ''),
       'DELETE, GET, POST', 'and Allow');
}

$r = $t->request('HEAD', '/mcp', [@json, 'Mcp-Session-Id' => $s->id]);
is($r->{status}, 405, 'HEAD');
is($r->{headers}{allow}, 'GET, POST, DELETE', 'and Allow');


# Origin

my $port = $t->port;
my @host = (Host => 'agents.example.com');

for (
    ['/here', 'agents.example.com', 'https://agents.example.com', 1],
    ['/here', 'agents.example.com', 'http://agents.example.com:8080', 1],
    ['/here', 'agents.example.com', 'https://AGENTS.example.com', 1],
    ['/here', 'agents.example.com', 'https://a.wild.example.net', 1],
    ['/here', 'agents.example.com', 'https://a.b.wild.example.net', 1],
    ['/here', 'agents.example.com', 'https://wild.example.net', 0],
    ['/here', 'agents.example.com', 'https://both.example.net', 1],
    ['/here', 'agents.example.com', 'https://x.both.example.net', 1],
    ['/here', 'agents.example.com', 'https://xboth.example.net', 0],
    ['/here', 'agents.example.com', 'https://mail.example.com', 1],
    ['/here', 'agents.example.com', 'https://re1.example.org', 1],
    ['/here', 'agents.example.com', 'https://RE1.example.org', 1],
    ['/here', 'agents.example.com', 'https://re.example.org', 0],
    ['/here', 'agents.example.com', 'https://evil.example', 0],
    ['/here', 'agents.example.com', 'https://_', 0],
    ['/here', 'agents.example.com', 'https://', 0],
    ['/here', 'agents.example.com', 'null', 0],
    ['/here', 'agents.example.com', 'https://agents.example.com.evil', 0],
    ['/here', 'agents.example.com', 'https://evilagents.example.com', 0],
    ['/here', 'agents.example.com', 'agents.example.com', 0],
    ['/here', 'agents.example.com', 'https://agents.example.com/', 0],
    ['/here', 'agents.example.com', 'https://agents.example.com@evil', 0],
    ['/here', 'agents.example.com', 'https://evil@agents.example.com', 0],
    ['/here', 'agents.example.com', 'https://agents.example.com:80:90', 0],
    ['/here', 'agents.example.com', 'https://agents.example.com:x', 0],
    ['/here', 'agents.example.com', 'https://localhost', 0],
    ['/here', 'evil.example', 'https://evil.example', 0],
    ['/here', "localhost:$port", 'http://localhost:3000', 1],
    ['/here', "localhost:$port", 'http://127.0.0.1:3000', 1],
    ['/here', "127.0.0.1:$port", 'http://localhost', 1],
    ['/here', "127.0.0.1:$port", 'http://[::1]:9', 1],
    ['/here', "[::1]:$port", 'http://[::1]', 1],
    ['/here', "127.0.0.1:$port", 'http://127.0.0.1.evil.example', 0],
    ['/here', "localhost:$port", 'http://localhost.evil.example', 0],
    ['/here', "localhost:$port", 'https://evil.example', 0],
    ['/here', "localhost:$port", 'https://agents.example.com', 1],
    ['/listed', "localhost:$port", 'https://app.example.com', 1],
    ['/listed', "localhost:$port", 'null', 1],
    ['/listed', "localhost:$port", 'http://localhost', 0],
    ['/listed', 'agents.example.com', 'https://agents.example.com', 0],
    ['/listed', "localhost:$port", 'https://app.example.com:8443', 0],
    ['/listed', "localhost:$port", 'https://app.example.com:443', 1],
    ['/listed', "localhost:$port", 'http://app.example.com', 1],
    ['/listed', "localhost:$port", 'https://app.example.com:80', 0],
    ['/listed', "localhost:$port", 'https://eighty:80', 1],
    ['/listed', "localhost:$port", 'https://eighty', 0],
    ['/any', "localhost:$port", 'https://evil.example', 1],
    ['/any', "localhost:$port", 'null', 1],
    ['/quiet', "localhost:$port", 'https://app.example.com', 2],
) {
    my ($path, $host, $origin, $ok) = @$_;
    my $name = "$path, Host: $host, Origin: $origin";

    $r = $t->post($path, [@json, Host => $host, Origin => $origin], $init);

    my $allow = $r->{headers}{'access-control-allow-origin'};

    if (!$ok) {
        refused($r, 403, -32000, 'none', $name);
        is($allow, undef, 'no Access-Control-Allow-Origin');

        is($t->request($_, $path, [Accept => 'text/event-stream',
                                   Host => $host, Origin => $origin])
           ->{status}, 403, "$_, $name")
            for qw(GET DELETE);

        $r = $t->request('OPTIONS', $path, [
            Host => $host, Origin => $origin,
            'Access-Control-Request-Method' => 'POST']);
        is($r->{status}, 403, "preflight, $name");
        is($r->{headers}{'access-control-allow-origin'}, undef, 'refused');
        next;
    }

    is($r->{status}, 200, $name);

    if ($ok == 2) {
        is($allow, undef, 'mcp_cors off: no CORS header');
        next;
    }

    is($allow, $origin, 'Access-Control-Allow-Origin');
    is($r->{headers}{vary}, 'Origin', 'Vary');
    is(join(' ', sort split /,\s*/,
            $r->{headers}{'access-control-expose-headers'} || ''),
       'Mcp-Session-Id Retry-After WWW-Authenticate', 'exposed headers');
}

# before limits and access

for my $path (qw(/any /denied /auth /limited)) {
    for (1 .. 3) {
        $r = $t->request('OPTIONS', $path, [
            Host => 'agents.example.com',
            Origin => 'https://agents.example.com',
            'Access-Control-Request-Method' => 'POST',
            'Access-Control-Request-Headers' => 'mcp-session-id, x-own']);

        is($r->{status}, 204, "preflight of $path");
    }

    is($r->{body}, '', 'no body');
    is($r->{headers}{'access-control-allow-origin'},
       'https://agents.example.com', 'allowed origin');
    like($r->{headers}{'access-control-allow-methods'}, qr/\bDELETE\b/,
         'allowed methods');
    like($r->{headers}{'access-control-allow-headers'},
         qr/mcp-session-id, x-own/i, 'allowed headers');
    like($r->{headers}{vary}, qr/Origin/, 'Vary');
}

$r = $t->request('OPTIONS', '/quiet', [
    Origin => 'https://a.example', 'Access-Control-Request-Method' => 'POST']);
refused($r, 405, -32000, 'none', 'preflight with mcp_cors off');
is($r->{headers}{'access-control-allow-origin'}, undef, 'and no CORS header');


# refusals of nginx itself

my @origin = (Host => 'agents.example.com',
              Origin => 'https://agents.example.com');

sub cors {
    my ($name) = @_;
    is($r->{headers}{'access-control-allow-origin'},
       'https://agents.example.com', "$name: CORS header");
}

my $big = '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"'
          . 'x' x 70_000 . '"}}';

$r = $t->post('/mcp', [@json, @origin], $big);
refused($r, 413, -32000, 'none', 'body too large, with a length');
like($r->{body}, qr/\bclient_max_body_size\b/, 'names the directive');
cors('413');

my $chunked = '';
$chunked .= sprintf("%x\r\n%s\r\n", length $_, $_)
    for $big =~ /(.{1,16000})/gs;

$r = $t->post('/mcp', [@json, @origin, 'Transfer-Encoding' => 'chunked'],
              "${chunked}0\r\n\r\n");
refused($r, 413, -32000, 'none', 'body too large, chunked');
like($r->{body}, qr/\bclient_max_body_size\b/, 'names the directive');

$r = $t->post('/mcp', [@json, 'Transfer-Encoding' => 'chunked',
                       'Mcp-Session-Id' => $s->id],
              sprintf("5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", substr($ping, 0, 5),
                      length($ping) - 5, substr $ping, 5));
is($r->{status}, 200, 'chunked body');

$r = $t->post('/denied', [@json, @origin], $ping);
refused($r, 403, -32000, 7, 'deny all');
cors('403');

$r = $t->post('/auth', [@json, @origin], $ping);
refused($r, 401, -32000, 7, 'auth_request');
cors('401');

$r = $t->post('/pages', [@json], $ping);
is($r->{body}, 'a page', 'error_page is left alone');

my $limited = '{"jsonrpc":"2.0","id":"l","method":"limited/method"}';

$t->post('/limited', [@json], $limited) for 1 .. 2;
$r = $t->post('/limited', [@json, @origin], $limited);
refused($r, 503, -32000, '"l"', 'limit_req by $mcp_method');
cors('503');
is($t->post('/limited', [@json], $ping)->{status}, 400,
   'another method is not limited');

$r = $t->conn->request('POST', '/mcp', [@json, 'Content-Length' => 'x'],
                       $ping);
is($r->{status}, 400, 'bad request line or header');

$t->allow_log(qr/limiting requests/);

# in one connection, what follows a refusal is answered

my $conn = $t->conn;

is($conn->request('POST', '/mcp', [@json], '{bad')->{status}, 400,
   'refused');
is($conn->request('PUT', '/mcp', [@json], $ping)->{status}, 405, 'refused');
is($conn->request('POST', '/mcp', [@type, Accept => 'text/html'], $ping)
   ->{status}, 406, 'refused');
is($conn->request('POST', '/denied', [@json], $ping)->{status}, 403,
   'refused');
is($conn->request('POST', '/mcp', $s->request_headers, $ping)->{status}, 200,
   'and then answered');
ok($conn->alive, 'connection is kept');


# mcp_deny, tenant, identity

is($t->client(path => '/deny')->initialize(headers => { 'X-Deny' => $_ })
   ->{status}, length $_ && $_ ne '0' ? 403 : 200, "mcp_deny \"$_\"")
    for '', '0', '00', '1', 'no';

my $named = $t->session(path => '/named', version => '2025-03-26');

refused(send_raw($named, '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
                         . '"params":{"name":"secret"}}'),
        403, -32000, 7, 'mcp_deny by $mcp_name');

for (['tools/call', '{"name":"secret"}', 'tool "secret"'],
     ['prompts/get', '{"name":"secret"}', 'prompt "secret"'],
     ['resources/read', '{"uri":"a://\\"x"}', 'resource "a://"x"'],
     ['ping', '{}', 'method "ping"'])
{
    my ($method, $params, $what) = @$_;
    my $path = $what =~ /secret/ ? '/named' : '/deny';

    $r = $t->post($path, [@json, 'X-Deny' => 1],
                  qq({"jsonrpc":"2.0","id":7,"method":"$method",)
                  . qq("params":$params}));
    is(json_decode($r->{body})->{error}{message},
       "$what is denied by mcp_deny", "mcp_deny: $what");
    like($t->log, qr/\[info\].*\Q$what is denied by mcp_deny/,
         "mcp_deny: $what in the log");
}

my $calls = $up->calls('tools/call');

$r = send_raw($named, '[{"jsonrpc":"2.0","id":"a","method":"tools/call",'
                      . '"params":{"name":"secret"}},'
                      . '{"jsonrpc":"2.0","id":"b","method":"tools/call",'
                      . '"params":{"name":"open"}},'
                      . '{"jsonrpc":"2.0","method":"tools/call",'
                      . '"params":{"name":"secret"}},'
                      . '{"jsonrpc":"2.0","method":"notifications/x",'
                      . '"params":{"name":"secret"}}]');
%by = map { ($_->{id} // 'null') => $_ } @{ json_decode($r->{body}) };
is_deeply([sort keys %by], [qw(a b null)], 'mcp_deny in a batch: answers');
is($by{null}{error}{code}, -32600, 'mcp_deny in a batch: a request without id');
is($by{a}{error}{code}, -32000, 'mcp_deny in a batch: denied');
is_deeply($by{b}{result}, { content => [] }, 'mcp_deny in a batch: allowed');
is($up->calls('tools/call') - $calls, 1, 'and only that was passed on');

my $owned = $t->post('/bound', [@json, 'X-User' => 'ann'], $init)
            ->{headers}{'mcp-session-id'};
refused($t->post('/bound', [@json, 'X-User' => 'bob',
                            'Mcp-Session-Id' => $owned], $ping),
        404, -32001, 7, 'the session of another identity');
like($t->log, qr/\[warn\].*mcp\ session\ "\Q@{[ substr $owned, 0, 8 ]}\E
                 \.\.\."\ of\ endpoint\ "[^"]*"\ belongs\ to\ another/x,
     'is said');
unlike($t->log, qr/\[warn\].*\Q$owned/, 'without its id');

$asked_up = $up->asked;

refused($t->post('/deny', [@json, 'X-Deny' => 1, @origin], $init),
        403, -32000, 0, 'mcp_deny: initialize');
refused($t->post('/deny', [@json, 'X-Deny' => 1], $ping), 403, -32000, 7,
        'mcp_deny: ping');
refused($t->request('GET', '/deny', [Accept => 'text/event-stream',
                                     'X-Deny' => 1]),
        403, -32000, 'none', 'mcp_deny: GET');
refused($t->request('DELETE', '/deny', ['X-Deny' => 1]),
        403, -32000, 'none', 'mcp_deny: DELETE');
refused($t->post('/tenant', [@json], $init), 403, -32000, 0, 'no tenant');
refused($t->post('/bound', [@json], $init), 403, -32000, 0, 'no identity');

refused($t->post('/tenant', [@json, 'X-Tenant' => ''], $ping), 403, -32000, 7,
        'empty tenant');

is(scalar $up->asked, $asked_up, 'no refusal reached the upstream');
is(scalar $rpc->asked, $asked_rpc, 'nor the other');


# upstreams

my $dead = $t->client(path => '/dead');

$r = $dead->initialize;
is(refused($r, 502, -32603, 1, 'initialize, upstream down')->{error}{data}
   {upstream}, 'dead', 'and says which');

my $plain = $t->session(path => '/rpc');

is($plain->tool('x')->{http}{status}, 200, 'rpc upstream works');

$rpc->refuse;
$rpc->drop;

$r = send_raw($plain, '{"jsonrpc":"2.0","id":7,"method":"tools/list"}');
is(refused($r, 502, -32603, 7, 'upstream down')->{error}{data}{upstream},
   'rpc', 'and says which');

my $slow = $t->session(path => '/slow');

$r = send_raw($slow, '{"jsonrpc":"2.0","id":"s","method":"tools/call",'
                     . '"params":{"name":"hang"}}');
is(refused($r, 504, -32603, '"s"', 'upstream too slow')->{error}{data}
   {upstream}, 'slow', 'and says which');

done_testing();
