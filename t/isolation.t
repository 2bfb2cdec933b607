#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Tenants, identities and tokens of both eras at random, in front of a server
# with sessions, over reloads and kills: no session there ever serves two
# callers, and a requestState serves nobody else, nothing else, and once.
#
# MCP_SEED repeats the dice, MCP_SECONDS goes on for longer.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

my $up = free_port();
my $seed = $ENV{MCP_SEED} || int rand 1e9;

my $t = Mcp::Test->new(workers => 2, events => 'worker_connections 16384;',
                       globals => 'worker_shutdown_timeout 2s;',
                       vars => { UP => $up }, conf => <<'EOF');
mcp_zone zone=main:32m;
mcp_versions any;
mcp_drain_time 200ms;
mcp_tenant $http_x_tenant;

server {
    %%LISTEN%%
    server_name localhost;

    location = /bound {
        mcp_endpoint zone=main name=bound;
        mcp_call_limit 10000;   # most clients do not come back when asked
        mcp_upstream up /_up protocol=legacy;
        mcp_session_bind $http_x_user;
    }

    location = /other {
        mcp_endpoint zone=main name=other;
        mcp_call_limit 10000;   # most clients do not come back when asked
        mcp_upstream up /_up protocol=legacy;
        mcp_session_bind $http_x_user;
    }

    location = /plain {
        mcp_endpoint zone=main name=plain;
        mcp_call_limit 10000;   # most clients do not come back when asked
        mcp_upstream up /_up protocol=legacy;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

Mcp::Node->check("isolation.mjs, MCP_SEED=$seed", [
    Mcp::Node::node(), 'isolation.mjs', $t->port, $t->pid, $up, $seed,
    $ENV{MCP_SECONDS} || 8 ], timeout => 120);

done_testing();
