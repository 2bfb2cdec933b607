package Mcp::Json;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# JSON in one form for all: UTF-8, keys in order, any value.

use strict;
use warnings;

use Cpanel::JSON::XS ();
use JSON::PP ();

my $json = Cpanel::JSON::XS->new->utf8->canonical->allow_nonref
    ->allow_blessed->convert_blessed->escape_slash($ENV{MCP_ESCAPE_SLASH} || 0);


sub encode { $json->encode($_[0]) }


# dies if it is no JSON

sub decode { $json->decode($_[0]) }


1;
