#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A client of the TypeScript SDK 1.x and a server of the SDK 2.x that speaks
# 2026-07-28 alone, with the module between them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

my $port = Mcp::Test::free_port();
my $server = Mcp::Node->fixture($port, 'modern');

my $t = Mcp::Test->new(vars => { UP => $port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
    }

    location = /auto {
        mcp_endpoint zone=main;
        mcp_upstream auto /_up;
    }

    location = /cached {
        mcp_endpoint zone=main;
        mcp_upstream cached /_up protocol=modern;
        mcp_list_cache on;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp;
                      proxy_set_header Host localhost; }
}
EOC

for my $path (qw(mcp auto cached)) {
    Mcp::Node->check($path, [Mcp::Node::node(), 'modern.mjs',
                             'http://127.0.0.1:' . $t->port . "/$path",
                             $path]);
}

$t->stop;
done_testing();
