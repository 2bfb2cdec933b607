#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The official conformance suite as a client of 2026-07-28, straight at a server
# and through the module, which speaks that revision to the server, or one with
# sessions: the same outcome, check by check, but for what is not supported.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Conformance;
use Mcp::Node;

Mcp::Node::needed();

my $port = free_port();
my $fixture = Mcp::Node->fixture($port);

my $t = Mcp::Test->new(vars => { FIXTURE => $port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_list_cache on;

server {
    %%LISTEN%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream fixture /_fixture protocol=modern;
    }

    location = /_fixture {
        internal;
        proxy_pass http://127.0.0.1:%%FIXTURE%%/mcp;
    }
}

server {
    %%LISTEN_legacy%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main name=legacy;
        mcp_upstream fixture /_fixture protocol=legacy;
    }

    location = /_fixture {
        internal;
        proxy_pass http://127.0.0.1:%%FIXTURE%%/mcp;
    }
}
EOF

# the fixture says that lists changed which did not: where lists are kept,
# nobody is told then
my $listen = qr/list-changed-on-subscription/;

# a server with sessions says in its own way what a client lacks, and has no
# keys for what it asks of one
my $legacy = qr/$listen|capability
                |^input-required-result-basic-elicitation:\ sep-2322/x;

my @suite = ('conformance-next', ['--requirements', '2026-07-28']);

my ($straight, $sum) = Mcp::Conformance::outcome(@suite, $port);

is($sum, '164 passed, 30 failed', 'straight');

same('a server of the revision', $listen,
     Mcp::Conformance::outcome(@suite, $t->port));
same('a server with sessions', $legacy,
     Mcp::Conformance::outcome(@suite, $t->port('legacy')));

done_testing();


sub same {
    my ($name, $missing, $through, $sum, $why) = @_;

    for my $check (sort { $a cmp $b } keys %{{ %$straight, %$through }}) {
        my ($a, $b) = map { defined $_ ? $_ : 'not run' }
                      $straight->{$check}, $through->{$check};

        next if $check =~ $missing;

        # notes of what was seen on the way are no verdicts
        next if "$a $b" =~ /^(?:INFO|SKIPPED|not run) (?:INFO|not run)$/;

        next if $b eq 'SUCCESS' && $a =~ /^(?:WARNING|INFO|not run)$/;

        is($b, $a, "$name: $check")
            or diag($why->{$check} || '');
    }
}
