#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# 300 sessions with open streams on two workers, 400 numbered events to all,
# four reloads and four kills in between: nothing lost, nothing twice.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

my $t = Mcp::Test->new(conf => <<'EOC');
mcp_zone zone=main:32m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
    }

    location = /publish {
        mcp_publish zone=main;
    }
}
EOC

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

Mcp::Node->check('storm', [Mcp::Node::node(), 'storm.mjs', $t->port, $t->pid,
                           $ENV{MCP_STORM_SESSIONS} || 300,
                           $ENV{MCP_STORM_EVENTS} || 400], timeout => 300);

done_testing();
