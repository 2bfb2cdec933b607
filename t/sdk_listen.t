#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The client of @modelcontextprotocol/client 2.x listens for changes, in front
# of a plain HTTP handler, over a reload.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Node;
use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(rpc => 1,
    'tools/list' => { tools => [{ name => 'a',
                                  inputSchema => { type => 'object' } }] }));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=rpc;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my $base = 'http://127.0.0.1:' . $t->port;

Mcp::Node->check('listens', [Mcp::Node::node(), 'listen.mjs', "$base/mcp",
                             "$base/publish", $t->pid]);

wait_for { $t->status('/status')->{listens}{open} == 0 };
is($t->status('/status')->{listens}{open}, 0, 'nobody listens any more');

done_testing();
