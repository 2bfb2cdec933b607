#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Real servers behind one endpoint: server-everything, a server of the SDK 2.x
# whose names stay, and a plain handler; SDK clients list and call what each
# has, and each restarts while they work. With and without cached lists.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

my %port = map { $_ => free_port() } qw(EVERYTHING SDK RPC);

my $t = Mcp::Test->new(vars => \%port, conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream everything /_everything;
        mcp_upstream sdk /_sdk prefix=none;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /cached {
        mcp_endpoint zone=main name=cached;
        mcp_upstream everything /_everything;
        mcp_upstream sdk /_sdk prefix=none;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_list_cache on;
    }

    location = /_everything {
        internal;
        proxy_pass http://127.0.0.1:%%EVERYTHING%%/mcp;
    }

    location = /_sdk { internal; proxy_pass http://127.0.0.1:%%SDK%%/mcp; }
    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
}
EOF

for my $path (qw(/mcp /cached)) {
    Mcp::Node->check("three servers at $path", [
        Mcp::Node::node(), 'upstreams_real.mjs',
        'http://127.0.0.1:' . $t->port . $path,
        @port{qw(EVERYTHING SDK RPC)},
        Mcp::Node::module('@modelcontextprotocol/server-everything')
        . '/dist/index.js'
    ], timeout => 120);
}

done_testing();
