#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Three replicas of a server with sessions in memory behind one upstream with
# "hash $mcp_session_id consistent": SDK clients of both eras work on while one
# replica restarts, and another one is taken out of the configuration.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

use File::Temp ();

Mcp::Node::needed();

my @ports = map { free_port() } 1 .. 3;
my $dir = File::Temp::tempdir(CLEANUP => 1);
my $servers = "$dir/servers.conf";

chmod 0755, $dir;
open my $fh, '>', $servers or die "$servers: $!";
print $fh "server 127.0.0.1:$_;\n" for @ports;
close $fh;

my $t = Mcp::Test->new(workers => 2, vars => { SERVERS => $servers },
                       conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 500ms;

upstream replicas {
    hash $mcp_session_id consistent;
    include %%SERVERS%%;
    keepalive 8;
    keepalive_timeout 3s;
}

server {
    %%LISTEN%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream replicas /_replicas protocol=legacy;
    }

    location = /_replicas {
        internal;
        proxy_pass http://replicas/mcp;
        proxy_set_header Host localhost;
    }
}
EOF

Mcp::Node->check('replicas', [Mcp::Node::node(), 'affinity.mjs', $t->port,
                              $t->pid, $servers, @ports], timeout => 120);

done_testing();
