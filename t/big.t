#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# 200 sessions on two workers, 20,000 events of mixed audience, three reloads
# and three kills: every id is accounted for.
#
# MCP_BIG_SESSIONS, MCP_BIG_EVENTS, MCP_SEED: other numbers.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Run;

my $run = Mcp::Run->new;

$run->check('big.mjs', $ENV{MCP_BIG_SESSIONS} || 200,
            $ENV{MCP_BIG_EVENTS} || 20000);

done_testing();
