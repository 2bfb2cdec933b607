#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Many tenants, identities and sessions on three workers, at random: who gets
# what is what a model says.
#
# MCP_TENANTS_SESSIONS, MCP_TENANTS_ROUNDS, MCP_SEED: other numbers.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Run;

my $run = Mcp::Run->new(workers => 3);

$run->check('tenants.mjs', $ENV{MCP_TENANTS_SESSIONS} || 120,
            $ENV{MCP_TENANTS_ROUNDS} || 48, 8);

done_testing();
