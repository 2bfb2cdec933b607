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

static int  copies;

void *
malloc(size_t size)
{
    /* the probe of an upstream keeps its result, then a call copies it */

    if (size == 50008 || size == 60000 || (size == 61000 && ++copies == 2)) {
        errno = ENOMEM;
        return NULL;
    }

    return __libc_malloc(size);
}
EOC
close $fh;

plan(skip_all => 'cc')
    if system("cc -shared -fPIC -o $dir/fail.so $dir/fail.c 2>/dev/null");

my $tools = [ { name => 'tool', description => 'x' x 59_800 } ];

# the result of initialize, of a given size

sub offer {
    my ($size) = @_;
    my $text = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
               . '"serverInfo":{"name":"up","version":"1"},"instructions":"';

    return $text . 'x' x ($size - length($text) - 2) . '"}';
}

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    sessions => 0,
    initialize => sub {
        my ($r) = @_;
        my $id = json_encode($r->{json}{id});
        my $offer = offer($Mcp::Upstream::V{offer} || 200);

        return [http => 200, { 'Content-Type' => 'application/json' },
                qq({"jsonrpc":"2.0","id":$id,"result":$offer})];
    },
    'tools/list' => { tools => $tools },
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

    location = /lists {
        mcp_endpoint zone=main name=lists;
        mcp_upstream up /_up;
        mcp_list_cache on;
        mcp_batch on;
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


# an element of a batch: the id makes its answer as large as it must not be

{
    my $s = $t->session(path => '/lists', version => '2025-03-26');
    my $size = length $s->call('tools/list', undef, id => 'i')->{http}{body};
    my $id = 'i' x (1 + 60_000 - $size);

    my $r = $s->post([ $s->message('ping', undef, id => 'ping'),
                       $s->message('tools/list', undef, id => 'i'),
                       $s->message('tools/list', undef, id => $id) ]);
    my %by = map { $_->{id} => $_ } @{ $r->{messages} };

    is_deeply([ sort keys %by ], [ 'i', $id, 'ping' ],
              'each message of a batch is answered')
        or diag(join ' ', map { substr $_, 0, 20 } keys %by);
    ok($by{ping}{result} && $by{i}{result}, 'those for which there is room');
    is($by{$id}{error}{code}, -32603, 'the other by an error');
}

# a call that waits for the profile of its upstream, which is too large then

{
    my $s = $t->session;

    $up->set(offer => 61_000);
    ok($t->reload, 'reload');
    ok($t->wait_old, 'old workers are gone');

    my $conn = $t->conn_on_worker(($t->workers)[0]);
    my $r = $s->tool('x', { size => 1000 }, conn => $conn);

    is($r->{http}{status}, 502, 'no memory for the profile: an error');
    is($r->{error}{message}, "the upstream's answer is not valid", 'its text');
    ok($s->tool('x', { size => 1000 }, conn => $conn)->{result},
       'the next call of this worker is answered');

    $up->set(offer => 200);
}

$t->allow_log(qr/malloc\(\d+\) failed/);
done_testing();
