#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors

# The state layer as plain programs: its functions under ASan and UBSan, with a
# shadow of the zone; a death at every instruction of each operation; and a
# storm of deaths (MCP_CRASH_SECONDS, default 10).

use warnings;
use strict;

use FindBin;
use Test::More;

for my $what (['functions', 'sanitize'], ['lists', 'sanitize'],
              ['leases', 'sanitize'], ['step'], ['crash'])
{
    my $name = $what->[0];
    my $program = `$FindBin::Bin/unit/build_state.sh @$what`;

    ok($? == 0, "build $name") or next;
    chomp $program;

    my @out = `$program 2>&1`;
    my $code = $?;

    if ($code != 0 || !grep { /^1\.\.\d+$/ } @out) {
        fail($name);
        diag(splice @out, -40);
        next;
    }

    pass("$name: " . (grep { /^ok/ } @out) . " tests");
    diag(grep { /^# (?!log)/ } @out) if $ENV{MCP_VERBOSE};
}

done_testing();
