#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An upstream that refuses the module's own initialize, for want of a client's
# credentials, may be found out to be another kind later: each worker has to
# notice that before its next request.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $mcp = Mcp::Upstream::mcp('tools/call' => { content => [] });
my $rpc = Mcp::Upstream::mcp(rpc => 1, 'tools/list' => { tools => [] },
                             'tools/call' => { content => [] });

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $how = $Mcp::Upstream::V{how} || 'refuses';
    my $j = ref $r->{json} eq 'HASH' ? $r->{json} : {};

    return $rpc->($r) if $how eq 'rpc';
    return [http => 404, { 'Content-Type' => 'application/json' },
            '{"jsonrpc":"2.0","id":null,"error":'
            . '{"code":-32001,"message":"nothing here"}}']
        if $how eq 'nothing';
    return [http => 401, {}, 'who?']
        if ($j->{params}{clientInfo}{name} || '') eq 'nginx-mcp';
    return $mcp->($r);
});

my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => 2,
                       conf => <<'EOF');
mcp_zone zone=main:2m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }
}
EOF

my @conns = map { $t->conn_on_worker($_) } $t->workers;
my $s = $t->session;

ok($s->tool('a', {}, conn => $_)->{result}, 'a worker has a call answered')
    for @conns;

$up->set(how => 'nothing');
ok(!$s->tool('a', {}, conn => $conns[0])->{result}, 'the upstream has gone');
unlike($t->log, qr/answered the module's own initialize/,
       'which never answered the initialize of the module');

$up->set(how => 'rpc');
ok(wait_for { $s = $t->client; $s->initialize(conn => $conns[0])->{status}
                               == 200 }, 'it is of another kind');

ok($s->tool('a', {}, conn => $_)->{result}, 'and each worker knows')
    or diag($s->{last}{body}) for @conns;

done_testing();
