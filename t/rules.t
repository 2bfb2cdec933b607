#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Access rules see what an upstream will act on: the member that $mcp_name
# shows, spellings that other parsers take for it, batches within batches,
# topics however they are encoded, headers that repeat the body, and half
# surrogate pairs, which pass where no rule looks.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $lone = '\ud83d';
my $tools = '{"tools":[{"name":"plain","description":"cut ' . $lone . '",'
            . '"inputSchema":{"type":"object"}},'
            . '{"name":"half' . $lone . '","inputSchema":{"type":"object"}},'
            . '{"name":"secret","inputSchema":{"type":"object"}}]}';

sub raw_result {
    my ($r, $result) = @_;

    return [http => 200, { 'Content-Type' => 'application/json' },
            '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
            . ',"result":' . $result . '}'];
}

# Perl's JSON takes no half surrogate pair

sub lenient {
    my ($handler) = @_;

    return sub {
        my ($r) = @_;

        $r->{json} ||= json_decode($r->{body} =~ s/\\ud83d/?/gr);
        return $handler->($r);
    };
}

my %methods = (
    'tools/list' => sub { return raw_result($_[0], $tools) },
    'tools/call' => sub {
        my ($r) = @_;

        if (($r->{json}{params}{name} || '') eq 'stream') {
            return [sse => {}],
                   [event => '{"jsonrpc":"2.0","method":'
                             . '"notifications/message","params":{"level":'
                             . '"info","data":"' . $lone . '"}}'],
                   [event => '{"jsonrpc":"2.0","id":' . $r->{json}{id}
                             . ',"result":{"text":"' . $lone . '"}}'];
        }

        my $text = ($r->{json}{params}{name} || '') eq 'lone' ? $lone : 'a';

        return raw_result($r, '{"content":[{"type":"text","text":"' . $text
                              . '"}]}');
    },
    '' => {},
);

my $rpc = Mcp::Upstream->new(lenient(Mcp::Upstream::mcp(rpc => 1, %methods)));
my $mcp = Mcp::Upstream->new(lenient(Mcp::Upstream::mcp(
    capabilities => { tools => {}, resources => { subscribe => 1 } },
    %methods)));

my $t = Mcp::Test->new(
    vars => { RPC => $rpc->port, MCP => $mcp->port }, conf => <<'CONF');
mcp_zone zone=main:8m;
mcp_batch on;

map $mcp_name $secret {
    default              0;
    secret               1;
    ~^file:///secret     1;
    ~^events://secret/   1;
}

map $mcp_method:$mcp_name $read_denied {
    default                             0;
    ~^resources/read:events://only/     1;
    ~^resources/read:file:///only       1;
}

underscores_in_headers on;

server {
    %%LISTEN%%

    mcp_deny    $secret $read_denied;
    add_header  X-Seen "$mcp_method [$mcp_name]" always;

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /cached {
        mcp_endpoint zone=main;
        mcp_upstream mcp /_mcp;
        mcp_list_cache on;
    }

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream mcp /_mcp listen=off;
    }

    location = /topics {
        mcp_endpoint zone=main;
        mcp_builtin_tools wait_for_event;
    }

    location = /_rpc {
        internal;
        proxy_set_header X-Seen "$mcp_method [$mcp_name]";
        proxy_pass http://127.0.0.1:%%RPC%%/;
    }

    location = /_mcp {
        internal;
        proxy_set_header X-Seen "$mcp_method [$mcp_name]";
        proxy_pass http://127.0.0.1:%%MCP%%/;
    }

    location = /publish { mcp_publish zone=main; }
}
CONF

my $s = $t->session(path => '/rpc');


# sends the rest of a message behind the method; id 7

sub raw {
    my ($in, $method, $rest) = @_;

    return $in->post('{"jsonrpc":"2.0","id":7,"method":"' . $method . '"'
                     . $rest . '}');
}


sub refused {
    my ($r, $status, $code, $name) = @_;

    my $got = ref $r->{json} eq 'HASH' ? $r->{json}{error}{code} : undef;

    is_deeply([ $r->{status}, $got ], [ $status, $code ], $name);
    return $r;
}


# one member, by the method

my @seen = (
    ['tools/call', '"name":"a"', 'a'],
    ['prompts/get', '"name":"b"', 'b'],
    ['resources/read', '"uri":"file:///c"', 'file:///c'],
    ['resources/read', '"uri":"file:///%63"', 'file:///%63'],
    ['completion/complete', '"ref":{"type":"ref/prompt","name":"d"}', 'd'],
    ['completion/complete', '"ref":{"type":"ref/resource","uri":"e:f"}',
     'e:f'],
    ['x/named', '"name":"g"', 'g'],
    ['x/addressed', '"uri":"h:i"', 'h:i'],
    ['x/other', '"id":"j"', ''],
);

for (@seen) {
    my ($method, $params, $name) = @$_;

    $rpc->clear;
    my $r = raw($s, $method, ",\"params\":{$params}");

    is($r->{headers}{'x-seen'}, "$method [$name]", "seen: $method $params");
    is(($rpc->asked)[0]{headers}{'x-seen'}, "$method [$name]",
       'and so by the upstream');
}

$rpc->clear;

refused(raw($s, 'resources/read',
            ',"params":{"name":"x","uri":"file:///secret"}'),
        400, -32600, 'name beside uri');
refused(raw($s, 'tools/call', ',"params":{"uri":"x","name":"secret"}'),
        400, -32600, 'uri beside name');
refused(raw($s, 'x/y', ',"params":{"uri":"x","name":"y"}'), 400, -32600,
        'both in a method that is not known');
refused(raw($s, 'completion/complete',
            ',"params":{"name":"x","ref":{"name":"secret"}}'),
        400, -32600, 'name beside that of ref');
refused(raw($s, 'completion/complete',
            ',"params":{"ref":{"name":"x","uri":"file:///secret"}}'),
        400, -32600, 'name and uri in ref');

for (
    ['completion/complete', '"ref":{"type":"ref/prompt","name":"secret"}'],
    ['completion/complete',
     '"ref":{"type":"ref/resource","uri":"file:///secret"}'],
    ['resources/read', '"uri":"file:///secret"'],
    ['x/y', '"ref":{"name":"secret"}'],
) {
    refused(raw($s, $_->[0], ",\"params\":{$_->[1]}"), 403, -32000,
            "denied: $_->[0] $_->[1]");
}

for (
    ['tools/call', ''], ['tools/call', ',"params":{}'],
    ['tools/call', ',"params":{"name":""}'],
    ['tools/call', ',"params":{"name":["secret"]}'],
    ['tools/call', ',"params":{"name":null}'],
    ['prompts/get', ',"params":{"uri":"x"}'],
    ['resources/read', ',"params":{"name":"x"}'],
    ['resources/subscribe', ',"params":{"uri":1}'],
    ['resources/unsubscribe', ',"params":{}'],
    ['completion/complete', ',"params":{"ref":["secret"]}'],
    ['completion/complete', ',"params":{"ref":{"name":{"a":1}}}'],
    ['x/y', ',"params":{"name":5}'],
) {
    refused(raw($s, @$_), 200, -32602, "bad params: $_->[0] $_->[1]");
}

is($s->post('{"jsonrpc":"2.0","method":"tools/call","params":{"name":5}}')
   ->{status}, 400, 'a notification with bad params');

for (
    ['"Name"', ',"params":{"Name":"secret"}'],
    ['"Name" beside it', ',"params":{"name":"a","Name":"secret"}'],
    ['"PARAMS"', ',"params":{"name":"a"},"PARAMS":{"name":"secret"}'],
    ['"METHOD"', ',"METHOD":"tools/call","params":{"name":"a"}'],
    ['U+017F', ",\"params\":{\"name\":\"a\"},\"param\xc5\xbf\":{}"],
    ['U+017F, escaped', ',"params":{"name":"a"},"param\u017f":{}'],
    ['U+0131', ",\"params\":{\"name\":\"a\",\"ur\xc4\xb1\":\"b\"}"],
    ['NUL', ',"params":{"name":"a","name\u0000":"secret"}'],
    ['half a pair', ',"params":{"name":"a","na\ud83dme":"secret"}'],
    ['positional', ',"params":[{"name":"secret"}]'],
    ['no parameters', ',"params":[]'],
    ['"REF"', ',"params":{"name":"a","REF":{"name":"secret"}}'],
    ['"_META"', ',"params":{"name":"a","_META":{}}'],
) {
    refused(raw($s, 'tools/call', $_->[1]), 400, -32600,
            "spelled otherwise: $_->[0]");
}

is(scalar $rpc->asked, 0, 'nothing of it was forwarded');

is(raw($s, 'tools/call', ',"params":{"name":"a","arguments":{"NAME":1,'
           . '"name":["b"],"uri":2,"PARAMS":3}}')->{status}, 200,
   'arguments may have any names');


# batches

{
    my $b = $t->session(path => '/rpc', version => '2025-03-26');
    my $call = '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":'
               . '{"name":"%s"}}';
    my $secret = sprintf $call, 'secret';

    $rpc->clear;

    for my $body ("[[$secret]]", "[[[$secret]]]", "[[],[$secret]]",
                  "[ \"x\", [$secret] ]")
    {
        my $r = $b->post($body);

        is($r->{status}, 200, "$body: answered");
        is(scalar(grep { $_->{error}{code} == -32600 } @{ $r->{messages} }),
           scalar @{ $r->{messages} }, 'and each element is refused');
    }

    is(scalar $rpc->asked, 0, 'a batch in a batch is forwarded nowhere');

    my $r = $b->post("[" . sprintf($call, 'a') . ",[$secret]]");

    is_deeply([ map { $_->{error}{code} // 'done' } @{ $r->{messages} } ],
              [ 'done', -32600 ], 'what stands beside it runs');
    is(($rpc->asked)[0]{headers}{'x-seen'}, 'tools/call [a]',
       'under its own name');

    $r = $b->post('[{"jsonrpc":"2.0","id":9,"method":"tools/call"},'
                  . '{"jsonrpc":"2.0","method":"notifications/x",'
                  . '"params":{"name":1}}]');
    is_deeply([ map { $_->{error}{code} } @{ $r->{messages} } ], [ -32602 ],
              'a request with bad params in a batch, and a notification');
}


# topics, however their URI is encoded

{
    my $s = $t->session(path => '/topics');

    publish('{"topic":"secret","n":1}');
    publish('{"topic":"only/a b","n":2}');
    publish('{"topic":"open","n":3}');

    for my $uri ('events://secret/latest', 'events://%73ecret/latest',
                 'events://%73%65%63%72%65%74/latest')
    {
        for my $method (qw(resources/read resources/subscribe
                           resources/unsubscribe))
        {
            my $r = raw($s, $method, ",\"params\":{\"uri\":\"$uri\"}");

            refused($r, 403, -32000, "$method $uri");
            is($r->{headers}{'x-seen'}, "$method [events://secret/latest]",
               'seen in one form');
        }

        refused(wait_event($s, "\"uri\":\"$uri\""), 403, -32000,
                "wait_for_event $uri");
    }

    refused(wait_event($s, '"topic":"secret"'), 403, -32000,
            'wait_for_event for a topic');
    refused(wait_event($s, '"topic":"\u0073ecret"'), 403, -32000,
            'and however it is written');

    my $r = raw($s, 'resources/read',
                ',"params":{"uri":"events://only%2fa b/latest"}');
    refused($r, 403, -32000, 'a rule for one method');
    is($r->{headers}{'x-seen'}, 'resources/read [events://only/a%20b/latest]',
       'which sees the topic as it is kept');

    refused(wait_event($s, '"topic":"only/a b"'), 403, -32000,
            'that rule holds for wait_for_event');
    refused(wait_event($s, '"uri":"file:///only"'), 403, -32000,
            'for other resources as well');
    is(raw($s, 'resources/subscribe',
           ',"params":{"uri":"events://only%2Fa b/latest"}')->{status}, 200,
       'and not for another method');

    $r = wait_event($s, '"topic":"open"');
    is($r->{json}{result}{structuredContent}{event}{n}, 3,
       'a topic that is not denied');

    my $b = $t->session(path => '/topics', version => '2025-03-26');
    $r = $b->post('[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{'
                  . '"name":"wait_for_event","arguments":'
                  . '{"topic":"secret"}}}]');
    is($r->{messages}[0]{error}{code}, -32000, 'in a batch');

    # where an upstream is asked, it gets the URI as it is

    $s = $t->session(path => '/cached');
    $mcp->clear;
    $r = raw($s, 'resources/read', ',"params":{"uri":"demo://%61"}');
    is(($mcp->calls('resources/read'))[0]{headers}{'x-seen'},
       'resources/read [demo://%61]', 'not a topic');
}


sub wait_event {
    my ($s, $arguments) = @_;

    return raw($s, 'tools/call', ',"params":{"name":"wait_for_event",'
                   . "\"arguments\":{$arguments,\"timeout_seconds\":0}}");
}


sub publish { return $t->publish($_[0]) }


# headers that say what the body says

{
    $rpc->clear;

    my $r = $s->tool('a', {}, headers => {
        'Mcp-Method' => 'tools/list', 'MCP-NAME' => 'b',
        'Mcp-Param-Region' => 'eu', 'mcp_method' => 'x', 'Mcp_Name' => 'y',
        'MCP_PARAM_Z' => 'z', 'Mcp_Param-Q' => 'q', 'mcp_session_id' => 's',
        'Mcp-Other' => 'o', 'X-Mcp-Name' => 'p'
    });

    is($r->{http}{status}, 200, 'with headers of its own');

    my $h = ($rpc->asked)[0]{headers};

    is_deeply([ sort grep { /^(x[-_])?mcp[-_]/ && !/protocol/ } keys %$h ],
              [ 'mcp-other', 'x-mcp-name' ],
              'Mcp-Method, Mcp-Name and Mcp-Param-* stay here');
}


# a subscription that is set again carries its name

{
    my $s = $t->session(path => '/mcp');

    is($s->call('resources/subscribe', { uri => 'file:///a' })
       ->{http}{status}, 200, 'subscribed');

    $mcp->clear;
    $mcp->set(forget => 1);

    is($s->tool('plain')->{http}{status}, 200, 'an upstream that forgot');

    my ($again) = $mcp->calls('resources/subscribe');

    is($again->{json}{params}{uri}, 'file:///a', 'is subscribed again');
    is($again->{headers}{'x-seen'}, 'resources/subscribe [file:///a]',
       'under that name');
}


# half surrogate pairs

for my $path (qw(/rpc /mcp /cached)) {
    my $s = $t->session(path => $path,
                        info => { name => 'half', version => '1' });
    my $up = $path eq '/rpc' ? $rpc : $mcp;

    my $r = raw($s, 'tools/list', '');
    like($r->{body}, qr/cut \\ud83d"/, "$path: a list passes as it is");
    like($r->{body}, qr/"half\\ud83d"/, 'with a tool that none can call');
    unlike($r->{body}, qr/"secret"/, 'without what is denied');

    $up->clear;

    $r = raw($s, 'tools/call', ',"params":{"name":"lone","arguments":{"x":"a'
             . $lone . 'b","' . $lone . '":1}}');
    like($r->{body}, qr/"text":"\\ud83d"/, 'a result');
    like(($up->asked)[-1]{body}, qr/"x":"a\\ud83db","\\ud83d":1/,
         'arguments');

    $up->clear;

    for (
        ['name', ',"params":{"name":"half' . $lone . '"}'],
        ['progressToken', ',"params":{"name":"a","_meta":{"progressToken":"'
                          . $lone . '"}}'],
    ) {
        refused(raw($s, 'tools/call', $_->[1]), 400, -32600,
                "but not in $_->[0]");
    }

    refused(raw($s, 'resources/read', ",\"params\":{\"uri\":\"$lone\"}"), 400,
            -32600, 'or uri');
    refused(raw($s, "x$lone", ''), 400, -32600, 'or method');
    refused($s->post("{\"jsonrpc\":\"2.0\",\"id\":\"$lone\",\"method\":"
                     . '"tools/list"}'), 400, -32600, 'or id');

    is(scalar $up->asked, 0, 'nothing of it was forwarded');
}

{
    my $s = $t->session(path => '/mcp');
    my $r = raw($s, 'tools/call', ',"params":{"name":"stream"}');

    like($r->{body}, qr/"data":"\\ud83d"/, 'a notification on a stream');
    like($r->{body}, qr/"result":\{"text":"\\ud83d"/, 'and its result');

    $r = $t->post('/mcp', [ 'Content-Type' => 'application/json' ],
                  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{'
                  . '"protocolVersion":"2025-11-25","capabilities":{},'
                  . '"clientInfo":{"name":"' . $lone . 'x","version":"1"}}}');
    is($r->{status}, 200, 'clientInfo may have one');

    $s = $t->session(path => '/topics');

    $r = publish('{"topic":"open","text":"' . $lone . '"}');
    is($r->{status}, 202, 'an event with one');

    $r = wait_event($s, '"topic":"open","match":{"text":"' . $lone . '"}');
    like($r->{body}, qr/"event":\{"topic":"open","text":"\\ud83d"\}/,
         'is found by it and passes as it is');

    for my $member (qw(tenant_id session_id identity uri topic kind)) {
        my $r = publish("{\"topic\":\"open\",\"$member\":\"$lone\"}"
                        =~ s/"topic":"open",(?="topic")//r);
        is($r->{status}, 400, "in $member it is refused");
        like($r->{body}, qr/half a surrogate pair in .{1,2}$member/,
             'and says so');
    }
}

done_testing();
