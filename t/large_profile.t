#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What an upstream says of itself may be too large for the zone: the upstream is
# asked once for all who wait, and they hear why they cannot be served.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::modern(
    instructions => 'i' x 300_000,
    'tools/call' => { content => [] }));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:2m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}
EOC

my $c = Mcp::Modern->new($t);
my $r = $c->post($c->message('tools/call', { name => 'a', arguments => {} }));

is(Mcp::Modern::said($r), '503 -32000', 'no room for it');
like($r->{json}{error}{message}, qr/mcp_zone/, 'and what helps');
is(scalar $up->calls('server/discover'), 1, 'it is asked once');
like($t->slurp('error.log'), qr/\[error\].*"up".*make mcp_zone larger/,
     'the log says so');

done_testing();
