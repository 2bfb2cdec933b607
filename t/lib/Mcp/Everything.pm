package Mcp::Everything;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# nginx before the reference server @modelcontextprotocol/server-everything.

use strict;
use warnings;

use Mcp::Test;
use Mcp::Node;


# {t}, {straight} and {through}: the URLs of the server and of the module; more
# directives of the endpoint may be given

sub new {
    my ($class, $more) = @_;

    Mcp::Node::needed();

    my $port = Mcp::Test::free_port();
    my $server = Mcp::Node->everything($port);

    my $t = Mcp::Test->new(vars => { EVERYTHING => $port,
                                     MORE => $more || '' }, conf => <<'EOF');
mcp_zone zone=main:8m;

upstream everything {
    server 127.0.0.1:%%EVERYTHING%%;
    keepalive 8;

    # Node.js closes idle connections after 5 s: do so before it does
    keepalive_timeout 3s;
}

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream everything /_everything;
        %%MORE%%
    }

    location = /_everything {
        internal;
        proxy_pass http://everything/mcp;
    }
}
EOF

    return bless {
        t => $t, server => $server,
        straight => "http://127.0.0.1:$port/mcp",
        through => 'http://127.0.0.1:' . $t->port . '/mcp',
    }, $class;
}


1;
