#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The demos of conf/: the quick start, and an event on its way from curl
# through one worker to a client of the SDK on the other.

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

plan(skip_all => 'the demos build a module of their own')
    if $ENV{MCP_SANITIZED};

my $dir = File::Temp::tempdir('mcp-demo-XXXXXX', TMPDIR => 1, CLEANUP => 1);

$ENV{MCP_DIR} = $dir;
$ENV{MCP_PORT} = free_port();

my $conf = "$Mcp::Test::ROOT/conf";
my $text = `$conf/events.sh 2>$dir/errors`;

is($?, 0, 'conf/events.sh') or diag(Mcp::Test::slurp_file("$dir/errors"));

my ($stream) = $text =~ /^the client's stream is held by +worker (\d+)$/m;
my ($taker) = $text =~ /^which was taken by +worker (\d+)$/m;

ok($stream && $taker && $stream != $taker, 'by way of two workers')
    or diag($text);
like($text, qr/^and answered +\{"accepted":1,/m, 'the event is accepted');
like($text, qr/^the\ client\ received\ +info\ documents_updated\s
               \{"kind":"document","reason":"memory\.forget"/mx,
     'and arrives as what its kind is mapped to');
ok(!-e "$dir/nginx.pid", 'what was started has ended');

$text = `$conf/quickstart.sh 2>$dir/errors`;

is($?, 0, 'conf/quickstart.sh') or diag(Mcp::Test::slurp_file("$dir/errors"));
like($text, qr{^nginx speaks MCP at http://127\.0\.0\.1:$ENV{MCP_PORT}/mcp:}m,
     'says where it is');
like(`$conf/events.sh 2>$dir/errors`, qr/documents_updated/,
     'conf/events.sh uses it') or diag(Mcp::Test::slurp_file("$dir/errors"));
ok(-e "$dir/nginx.pid", 'and lets it run');

`$conf/quickstart.sh stop 2>&1`;

is($?, 0, 'conf/quickstart.sh stop');
ok(!-e "$dir/nginx.pid", 'ends it');

done_testing();
