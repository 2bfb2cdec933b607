package Mcp::Shares;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Tenants and clients that share a zone: nginx before one upstream, at /mcp.
# The X-Tenant header of a request names its tenant, and the X-Client header is
# its address, as behind a proxy.

use strict;
use warnings;

use Mcp::Test ();
use Mcp::Upstream;

use Exporter 'import';

our @EXPORT = qw(client);


# A server that takes subscriptions; the tool sends "count" messages of "size"
# bytes, and answers then, unless it is "held".

sub upstream {
    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { resources => { subscribe => JSON::PP::true },
                          tools => {}, logging => {} },
        'resources/subscribe' => {},
        'tools/call' => sub {
            my ($r) = @_;
            my $a = $r->{json}{params}{arguments};

            return ([sse => {}],
                    map({ [event => Mcp::Test::notification(message => {
                              level => 'info',
                              data => "n$_" . 'x' x $a->{size} })]
                        } 1 .. $a->{count}),
                    $a->{held} ? [hang =>]
                    : ([event => Mcp::Upstream::result($r, { content => [] })],
                       [end =>]));
        },
    ));
}


# (upstream, size of the zone, more of /mcp, more locations, options of
# Mcp::Test->new)

sub nginx {
    my ($up, $size, $endpoint, $locations, %o) = @_;

    return Mcp::Test->new(%o, vars => { UP => $up->port }, conf => <<"EOF");
mcp_zone zone=main:$size;

set_real_ip_from 127.0.0.1;
real_ip_header X-Client;
mcp_tenant \$http_x_tenant;

server {
    %%LISTEN%%
    server_name mcp.test;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        $endpoint
    }

    $locations

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF
}


# headers of a client of this tenant at this address

sub client { return (headers => { 'X-Tenant' => $_[0], 'X-Client' => $_[1] }) }


1;
