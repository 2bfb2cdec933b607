#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# 200 sessions on two workers, 20,000 events of mixed audience, three reloads
# and three kills: every id is accounted for.
#
# MCP_BIG_SESSIONS, MCP_BIG_EVENTS, MCP_BIG_SEED: other numbers.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

my $seed = $ENV{MCP_BIG_SEED} || int rand 1e9;

my $t = Mcp::Test->new(events => 'worker_connections 2048;', conf => <<'EOC');
mcp_zone zone=main:96m;

mcp_stream_retry 100ms;
mcp_drain_time   500ms;
mcp_event_buffer 1024;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_upstream     rpc /_rpc protocol=rpc;
    mcp_tenant       $http_x_tenant;
    mcp_session_bind $http_x_user;
    mcp_invalidate   health "message=$n" level=$level;
    mcp_invalidate   * drop;

    location = /one {
        mcp_endpoint   zone=main name=one;
        mcp_invalidate document "message=$n" level=$level
                                notify=notifications/document;
        mcp_invalidate changed  updated=$path notify=notifications/changed;
        mcp_invalidate health   "message=$n" level=$level;
        mcp_invalidate *        drop;
    }

    location = /two {
        mcp_endpoint   zone=main name=two;
        mcp_invalidate document notify=notifications/other;
        mcp_invalidate health   "message=$n" level=$level;
        mcp_invalidate *        drop;
    }

    location = /_rpc {
        internal;
        default_type application/json;
        return 200 '{"jsonrpc":"2.0","id":$mcp_request_id,"result":{}}';
    }

    client_body_buffer_size 1m;

    location = /publish     { mcp_publish zone=main; }
    location = /publish-one { mcp_publish zone=main endpoint=one; }
    location = /publish-two { mcp_publish zone=main endpoint=two; }
}
EOC

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

diag("seed $seed") if $ENV{MCP_BIG_SEED};

Mcp::Node->check("seed $seed", [Mcp::Node::node(), 'big.mjs', $t->port,
                                $t->pid, $ENV{MCP_BIG_SESSIONS} || 200,
                                $ENV{MCP_BIG_EVENTS} || 20000, $seed],
                 timeout => 300);

done_testing();
