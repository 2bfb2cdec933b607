#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Large results for clients of revision 2026-07-28, which pass through nginx
# and get on the way what each result of the revision has.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;

my $K = 'io.modelcontextprotocol/';
my $BIG = 'y' x 300_000;

my %say = (
    plain => sub { '"content":[{"type":"text","text":"' . $BIG . '"}]' },
    first => sub { '"_meta":{"mine":1},"ttlMs":"x","content":[{"type":"text",'
                   . '"text":"' . $BIG . '"}]' },
    last => sub {
        '"content":[{"type":"text","text":"' . $BIG . '","_meta":{"a":2}}], '
        . '"resultType" : {"strange":[1,"}"]} , "\u005fmeta":{"mine":1,"'
        . $K . 'serverInfo":{"name":"theirs"},"' . ('n' x 400) . '":[2]},'
        . '"structuredContent":{"resultType":"kept"}'
    },
);

sub answers {
    my ($r) = @_;

    my $id = Mcp::Http::json_encode($r->{json}{id});
    my $name = $r->{json}{params}{name} || '';

    return [json => Mcp::Upstream::error($r, -32002, $BIG)]
        if $name eq 'wrong';
    return [http => 200, { 'Content-Type' => 'application/json' },
            qq({"jsonrpc":"2.0","id":$id,"result":{"content":["$BIG"],no}})]
        if $name eq 'broken';

    my $text = qq({"jsonrpc":"2.0","id":$id,"result":{)
               . $say{$name}->() . '}}';

    my $stream = $r->{json}{params}{arguments}{stream};

    return ([sse => {}], [wait => $stream], [event => $text])
        if defined $stream;
    return [http => 200, { 'Content-Type' => 'application/json' }, $text];
}

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => \&answers,
    'tools/list' => sub {
        return { tools => [map { { name => "t$_", description => 'd' x 100,
                                   inputSchema => { type => 'object' } }
                           } 1 .. 1000] };
    },
    rpc => 1));
my $mcp = Mcp::Upstream->new(Mcp::Upstream::mcp('tools/call' => \&answers));

my $t = Mcp::Test->new(vars => { RPC => $rpc->port, MCP => $mcp->port },
                       conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_server_info name=gate version=7;
    mcp_stream_after 0;

    location = /rpc { mcp_endpoint zone=main name=rpc;
                      mcp_upstream up /_rpc protocol=rpc; }
    location = /mcp { mcp_endpoint zone=main name=mcp;
                      mcp_upstream up /_mcp protocol=legacy; }

    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_mcp { internal; proxy_pass http://127.0.0.1:%%MCP%%/; }
}
EOF

# with JSON, and with a stream whose answer comes soon or late

for (['/rpc'], ['/mcp'], ['/mcp', 0], ['/mcp', 0.3]) {
    my ($path, $stream) = @$_;
    my $client = Mcp::Modern->new($t, path => $path);

    for my $name (sort keys %say) {
        my $type = $stream ? 'text/event-stream' : 'application/json';
        my $r;

        # a process that stands still for 100 ms makes soon late, or late soon

        for (1 .. 5) {
            $r = tool($client, $name, $stream);
            last if $r->{headers}{'content-type'} eq $type;
        }

        my $result = $r->{json}{result};
        my $own = json_decode('{' . $say{$name}->() . '}');

        is(Mcp::Modern::said($r), '200 complete', "$path $name");
        is($r->{headers}{'content-type'}, $type, 'as one');
        is_deeply($result->{content}, $own->{content}, 'as it was');
        is_deeply($result->{_meta}, {
            ($name eq 'plain' ? () : (mine => 1)),
            ($name eq 'last' ? ('n' x 400, [2]) : ()),
            "${K}serverInfo" => { name => 'gate', version => '7' } },
            '_meta');
        ok(!exists $result->{ttlMs}, 'a call is not for caches');
        is_deeply($result->{structuredContent}, $own->{structuredContent},
                  'what is within a member');
        is(scalar(() = $r->{body} =~ /resultType/g),
           $name eq 'last' ? 2 : 1, 'each member once');
    }

    my $r = tool($client, 'wrong');
    is(Mcp::Modern::said($r), '200 -32602', 'a large error');
    is($r->{json}{error}{message}, $BIG, 'its message');
}

my $r = Mcp::Modern->new($t, path => '/rpc')->call('tools/list')->{json};
is(scalar @{ $r->{result}{tools} }, 1000, 'a large list');
is("$r->{result}{ttlMs} $r->{result}{cacheScope}", '0 private',
   'is not for caches');

my $conn = Mcp::Modern->new($t, path => '/rpc')->send_only(
    Mcp::Modern->message('tools/call', { name => 'broken' }));
$r = eval { $conn->response('POST') };
$t->allow_log(qr/is not JSON/);
ok(!$r || !json_decode($r->{body} || ''), 'one that is no JSON is cut');

done_testing();


sub tool {
    my ($client, $name, $stream) = @_;

    my $m = $client->message('tools/call', {
        name => $name, arguments => { stream => $stream } });

    $m->{id} = "id of $name";

    my $r = $client->post($m);

    $r->{json} ||= json_decode($1) if $r->{body} =~ /^data: (\{.*)$/m;

    is($r->{json}{id}, "id of $name", 'its id');

    return $r;
}
