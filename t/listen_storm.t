#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# 300 listeners of 2026-07-28 and 30 sessions of two tenants on two workers,
# events of lists, resources and topics for one or both, four reloads and four
# kills in between: what a listener gets has no gap until it is told that it
# listens no more, and nothing comes twice; the sessions get all.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

my $t = Mcp::Test->new(workers => 2, events => 'worker_connections 2048;',
                       conf => <<'EOC');
mcp_zone zone=main:32m;
mcp_drain_time 200ms;
mcp_stream_retry 100ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_tenant $http_x_tenant;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOC

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

Mcp::Node->check('listeners', [Mcp::Node::node(), 'listen_storm.mjs',
                               $t->port, $t->pid,
                               $ENV{MCP_STORM_LISTENERS} || 300,
                               $ENV{MCP_STORM_EVENTS} || 400], timeout => 300);

done_testing();
