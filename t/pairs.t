#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Real clients and real servers of both eras, in all pairings, with the same
# script: what crosses, and what is refused.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

# Columns are pairings, L with sessions and M of 2026-07-28: LM is a client
# with sessions at a server without. The server of "auto" serves both, and
# nothing is said of either in the configuration. Of each there are two
# clients: of L the SDK 1.x and 2.x, of M the SDK 2.x as it finds the revision,
# and pinned to it. Rows are what the script does.
#
# +  carried
# .  the server has nothing of the kind
# s  the server says it to one of its sessions outside of a call: a client
#    without sessions is not told
# w  the server says it on its GET stream, which is read for a client without
#    sessions while a call of it runs: it may be told

my $table = <<'EOT';
         LL         ML         LL     ML     LM     MM     L-  M-  L*   M*
         everything everything legacy legacy modern modern rpc rpc auto auto
list     +          +          +      +      +      +      +   +   +    +
call     +          +          +      +      +      +      +   +   +    +
progress +          +          +      +      +      +      .   .   +    +
log      +          w          +      +      +      +      .   .   +    +
sampling +          +          +      +      +      +      .   .   +    +
elicit   +          +          +      +      +      +      .   .   +    +
roots    +          +          +      +      +      +      .   .   +    +
complete +          +          +      +      +      +      +   +   +    +
read     +          +          +      +      +      +      +   +   +    +
changed  +          s          +      +      +      +      .   .   +    +
updated  +          s          +      +      +      +      .   .   +    +
publish  +          +          +      +      +      +      +   +   +    +
topic    +          +          +      +      +      +      +   +   +    +
cancel   +          +          +      +      +      +      +   +   +    +
EOT

my %clients = (L => [qw(l1 l2)], M => [qw(ma mp)]);

my ($eras, $servers, @lines) = map { [split] } split /\n/, $table;
my @rows;

for my $i (0 .. $#$servers) {
    my @steps = map { [$_->[0], $_->[$i + 1]] } @lines;

    for my $client (@{ $clients{substr $eras->[$i], 0, 1} }) {
        push @rows, { name => "$eras->[$i] $client $servers->[$i]",
                      client => $client, server => $servers->[$i],
                      path => "/$servers->[$i]", steps => \@steps };
    }
}

my %port = map { $_ => free_port() } qw(EVERYTHING LEGACY MODERN AUTO RPC);
my $everything = Mcp::Node->everything($port{EVERYTHING});
my %fixture = (LEGACY => 'legacy', MODERN => 'modern', AUTO => 'dual');
my @servers = map {
    Mcp::Node->fixture($port{$_}, $fixture{$_}, './pairs-parts.mjs')
} keys %fixture;

my $t = Mcp::Test->new(workers => 2, vars => \%port, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 500ms;
mcp_invalidate index "message=$path $n" level=error updated=$path;

server {
    %%LISTEN%%
    server_name localhost 127.0.0.1;

    location = /everything {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream everything /_everything protocol=legacy;
    }

    location = /legacy {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream legacy /_legacy protocol=legacy;
    }

    location = /modern {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream modern /_modern protocol=modern;
    }

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /auto {
        mcp_endpoint zone=main;
        mcp_upstream auto /_auto;
    }

    location = /_everything {
        internal;
        proxy_pass http://127.0.0.1:%%EVERYTHING%%/mcp;
    }

    location = /_legacy {
        internal;
        proxy_pass http://127.0.0.1:%%LEGACY%%/mcp;
    }

    location = /_modern {
        internal;
        proxy_pass http://127.0.0.1:%%MODERN%%/mcp;
    }

    location = /_auto {
        internal;
        proxy_pass http://127.0.0.1:%%AUTO%%/mcp;
    }

    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

Mcp::Node->check('pairs', [Mcp::Node::node(), 'pairs.mjs', $t->port, $t->pid,
                           $port{RPC}, json_encode(\@rows)], timeout => 120);

done_testing();
