#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The client of @modelcontextprotocol/client 2.x as one of 2026-07-28, in front
# of the reference server, which has sessions: by name, and as a dual-era client
# that finds the revision.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Everything;

my $e = Mcp::Everything->new;

for my $mode (qw(pinned auto)) {
    Mcp::Node->check($mode, [Mcp::Node::node(), 'modern_client.mjs',
                             $e->{through}, $mode]);
}

done_testing();
