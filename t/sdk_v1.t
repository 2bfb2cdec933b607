#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The client of @modelcontextprotocol/sdk 1.x and the reference server, first
# without and then with the module between them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Everything;

my $e = Mcp::Everything->new;
my @script = (Mcp::Node::node(), 'sdk_v1.mjs');

Mcp::Node->check('straight', [@script, $e->{straight}, 'straight']);
Mcp::Node->check('through the module', [@script, $e->{through}]);

done_testing();
