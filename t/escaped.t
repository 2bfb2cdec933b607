#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Servers and clients that write "/" as "\/" in JSON, as PHP does: what other
# tests say of notifications, updates and input rounds holds for them, too.

use strict;
use warnings;

use FindBin;
use Test::More;

my @tests = qw(updates modern_upstream modern_input);

$ENV{MCP_ESCAPE_SLASH} = 1;

for (@tests) {
    my $said = `$^X $FindBin::Bin/$_.t 2>&1`;

    ok($? == 0, "$_.t") or diag $said;
}

done_testing();
