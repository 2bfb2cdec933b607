#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors

# The protocol layer as a plain program under ASan and UBSan.

use warnings;
use strict;

use FindBin;

my $program = `$FindBin::Bin/unit/build.sh`;

if ($? != 0) {
    print "Bail out!  the unit tests do not compile\n";
    exit 1;
}

chomp $program;

exec $program or die "$program: $!\n";
