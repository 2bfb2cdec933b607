#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The module compiles without a warning: by clang too, and for later nginx.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

for my $what (qw(clang versions)) {
    my $text = `$Mcp::Test::ROOT/t/build.sh $what 2>&1`;
    my $code = $? >> 8;

    SKIP: {
        skip "$what: $text", 1 if $code == 77;
        ok($code == 0, $what) or diag($text);
    }
}

done_testing();
