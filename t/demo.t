#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The demos of conf/: the quick start, and an event on its way from curl
# through one worker to a client of the SDK on the other.

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Path ();
use File::Temp ();
use IO::Socket::INET;

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

plan(skip_all => 'the demos build a module of their own')
    if $ENV{MCP_SANITIZED};

my $dir = File::Temp::tempdir('mcp demo-XXXXXX', TMPDIR => 1, CLEANUP => 1);

$ENV{MCP_DIR} = $dir;
$ENV{MCP_PORT} = free_port();

my $conf = "$Mcp::Test::ROOT/conf";
my $text = `sh $conf/events.sh 2>'$dir/errors'`;

is($?, 0, 'conf/events.sh') or diag(Mcp::Test::slurp_file("$dir/errors"));

my ($stream) = $text =~ /^the client's stream is on +worker (\d+)$/m;
my ($taker) = $text =~ /^through +worker (\d+)$/m;

ok($stream && $taker && $stream != $taker, 'by way of two workers')
    or diag($text);
like($text, qr/^nginx answered +\{"accepted":1,/m, 'the event is accepted');
like($text, qr/^the\ client\ received\ +info\ the\ index\ products\ was
               \ rebuilt\ \{"kind":"index","reason":"nightly\ import"/mx,
     'and arrives as what its kind is mapped to');
like($text, qr/^the\ client\ received\ +info\ the\ list\ of\ tools\ changed\ .*
               ^and\ asked\ for\ the\ tools\ again\ +time,\ whoami,\ load$/msx,
     'a changed list makes the client ask for it');
ok(!-e "$dir/nginx.pid", 'what was started has ended');

$text = `sh $conf/quickstart.sh 2>'$dir/errors'`;

is($?, 0, 'conf/quickstart.sh') or diag(Mcp::Test::slurp_file("$dir/errors"));
like($text, qr{^nginx speaks MCP at http://127\.0\.0\.1:$ENV{MCP_PORT}/mcp:}m,
     'says where it is');
like(`$conf/events.sh 2>'$dir/errors'`, qr/the index products was rebuilt/,
     'conf/events.sh uses it') or diag(Mcp::Test::slurp_file("$dir/errors"));
ok(-e "$dir/nginx.pid", 'and lets it run');

{
    # another port is another demo

    local $ENV{MCP_PORT} = free_port();
    delete local $ENV{MCP_DIR};

    my $pid = Mcp::Test::slurp_file("$dir/nginx.pid");
    my $other = "$Mcp::Test::ROOT/.build/quickstart-$ENV{MCP_PORT}";

    `$conf/quickstart.sh 2>'$dir/errors'`;
    is($?, 0, 'a demo on another port')
        or diag(Mcp::Test::slurp_file("$dir/errors"));
    ok(-e "$other/nginx.pid", 'has a folder of its own');
    is(Mcp::Test::slurp_file("$dir/nginx.pid"), $pid,
       'and leaves the first alone');

    `$conf/quickstart.sh stop 2>&1`;
    ok(!-e "$other/nginx.pid", 'and is stopped by its port');
    File::Path::remove_tree($other);
}

`$conf/quickstart.sh stop 2>&1`;

is($?, 0, 'conf/quickstart.sh stop');
ok(!-e "$dir/nginx.pid", 'ends it');

{
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1,
                                      LocalPort => $ENV{MCP_PORT})
        or die "listen: $!";

    `$conf/quickstart.sh 2>'$dir/errors'`;
    isnt($?, 0, 'a port that is taken');
    unlike(my $said = Mcp::Test::slurp_file("$dir/errors"), qr/^build: /m,
           'is noticed before the build');
    like($said, qr/port $ENV{MCP_PORT} is taken/, 'and said');
}

done_testing();
