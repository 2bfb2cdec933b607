#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors

# The fuzzers for MCP_FUZZ_SECONDS each (10 unless told).

use warnings;
use strict;

use FindBin;
use Test::More;

my $seconds = $ENV{MCP_FUZZ_SECONDS} || 10;

plan skip_all => 'no clang' if system('command -v clang >/dev/null') != 0;
plan tests => 2;

for my $target (qw(json sse)) {
    my $log = `$FindBin::Bin/fuzz/run.sh $seconds $target 2>&1`;
    ok($? == 0, "$target, $seconds s")
        or diag(join "\n", grep { !/^"/ } split /\n/, $log);
}
