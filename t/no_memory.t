#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Where there is no memory for an answer, the call ends with an error, once, and
# the connection goes on. malloc() fails for sizes that only the answers have.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

use File::Temp ();

plan(skip_all => 'sanitizers have a malloc() of their own')
    if $ENV{MCP_SANITIZED};

my $dir = File::Temp->newdir;

open my $fh, '>', "$dir/fail.c" or die $!;
print $fh <<'EOC';
#include <errno.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);

void *
malloc(size_t size)
{
    if (size == 50008 || size == 60000) {
        errno = ENOMEM;
        return NULL;
    }

    return __libc_malloc(size);
}
EOC
close $fh;

plan(skip_all => 'cc')
    if system("cc -shared -fPIC -o $dir/fail.so $dir/fail.c 2>/dev/null");

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $head = '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
                   . ',"result":{"x":"';
        my $size = $r->{json}{params}{arguments}{size};

        return [http => 200, { 'Content-Type' => 'application/json' },
                $head . 'x' x ($size - length($head) - 3) . '"}}'];
    },
));

local $ENV{LD_PRELOAD} = "$dir/fail.so";

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%; }
}
EOC

delete $ENV{LD_PRELOAD};

for my $accept ('text/event-stream', 'application/json',
                'application/json, text/event-stream')
{
    my $s = $t->session(accept => $accept);
    my $conn = $t->conn;

    for my $size (50_000, 60_000) {
        my $r = $s->tool('x', { size => $size }, conn => $conn);
        my $name = "$accept: $size";

        if ($size == 50_000 && $accept =~ /json/) {
            ok($r->{result}, "$name is not framed");
            next;
        }

        cmp_ok($r->{http}{status}, '>=', 500, "$name: an error")
            or diag(explain($r));
        is($s->tool('x', { size => 1000 })->{http}{status}, 200,
           'and the next call is answered');
    }
}

$t->allow_log(qr/malloc\(\d+\) failed/);
done_testing();
