#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The client of @modelcontextprotocol/client 2.x and the reference server,
# with and without the module; also as a dual-era client, which has to find
# its way to the legacy revisions where no other is offered.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Everything;

my $e = Mcp::Everything->new(
    'mcp_versions 2025-03-26 2025-06-18 2025-11-25;');
my @script = (Mcp::Node::node(), 'sdk_v2.mjs');

for my $mode (qw(legacy auto)) {
    Mcp::Node->check("$mode, straight",
                     [@script, $e->{straight}, $mode, 'straight']);
    Mcp::Node->check("$mode, through the module",
                     [@script, $e->{through}, $mode]);
}

done_testing();
