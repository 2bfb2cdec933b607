#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A "proxy_pass" that leads back to the endpoint: the log says so.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $silent = Mcp::Upstream->new(sub { return [hang =>] });

my $t = Mcp::Test->new(vars => { SILENT => $silent->port }, conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    listen %%PORT_all%%;

    mcp_upstream_timeout 500ms;

    location = /same {
        mcp_endpoint zone=main;
        mcp_upstream same /_same;
    }

    location = /all {
        mcp_endpoint zone=main;
        mcp_upstream all /_all;
    }

    location = /silent {
        mcp_endpoint zone=main;
        mcp_upstream silent /_silent;
    }

    location = /_same { internal; proxy_pass http://127.0.0.1:%%PORT%%/same; }
    location = /_all { internal; proxy_pass http://127.0.0.1:%%PORT_all%%/all; }
    location = /_silent { internal; proxy_pass http://127.0.0.1:%%SILENT%%/; }
}
EOF

for my $name (qw(same all silent)) {
    my $s = Mcp::Session->new(t => $t, path => "/$name", lazy => 1);

    isnt($s->initialize->{status}, 200, "$name: the upstream does not answer");
    ok(wait_for { $t->log =~ /"$name" of endpoint "\/$name" did not answer / },
       'which the log says');
}

my $hint = qr{nginx itself listens .* the "proxy_pass" does not lead back};

like($t->log, qr/"$_" of .* did not answer .*; $hint/, "$_: with a hint")
    for qw(same all);
unlike($t->log, qr/"silent" of .* did not answer .*; $hint/,
       'not for another server');

done_testing();
