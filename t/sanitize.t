#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The tests once more, on an nginx and a module with ASan and UBSan: any
# report of theirs fails the test in which it was made.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

plan(skip_all => 'runs inside itself') if $ENV{MCP_SANITIZED};

my $root = $Mcp::Test::ROOT;
my $text = `$root/t/build.sh sanitize 2>&1`;

is($?, 0, 'build') or do {
    diag($text);
    done_testing();
    exit 1;
};

$ENV{MCP_SANITIZED} = 1;
$ENV{MCP_SLOW} = 3;
$ENV{MCP_NGINX} = "$root/.build/sanitize/nginx";
$ENV{MCP_MODULE} = "$root/.build/sanitize/ngx_http_mcp_module.so";

my @failed;

for my $test (sort glob "$root/t/*.t") {
    my ($name) = $test =~ m{([^/]+)\.t$};

    # what has no nginx in it
    next if $name =~ /^(?:sanitize|style|compile|fuzz.*|bench.*|unit.*)$/;

    $text = `prove $test 2>&1`;
    ok($? == 0, $name) or push @failed, $name, $text;
}

done_testing();

# at the end, as little more than that is kept of a long output

while (my ($name, $text) = splice @failed, 0, 2) {
    diag(map { "$name: $_\n" } split /\n/, $text);
}
