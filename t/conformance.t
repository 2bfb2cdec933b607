#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The official conformance suite, straight at a server and through the module:
# the same outcome, check by check, or a success where the server alone earns a
# warning (0.1.16 names 2025-03-26 in sessions of 2025-11-25: the server then
# leaves out the priming event and the rest of the answer, the module knows
# what was agreed on and gives both). Likewise where two other upstreams stand
# beside the server, whose names stay.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Conformance;
use Mcp::Node;

Mcp::Node::needed();

my $port = free_port();
my $fixture = Mcp::Node->fixture($port);

my %more = (
    'tools/list' => { tools => [ { name => 'more', description => 'more',
                                   inputSchema => { type => 'object' } } ] },
    'tools/call' => { content => [] },
    'prompts/list' => { prompts => [ { name => 'more',
                                       description => 'more' } ] },
    'resources/list' => { resources => [ { uri => 'more://more', name => 'more',
                                           description => 'more' } ] },
);

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(%more, rpc => 1));
my $legacy = Mcp::Upstream->new(Mcp::Upstream::mcp(%more,
    capabilities => { tools => {}, prompts => {}, resources => {} }));

my $t = Mcp::Test->new(vars => { FIXTURE => $port, RPC => $rpc->port,
                                 LEGACY => $legacy->port }, conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream fixture /_fixture;
    }

    location = /_fixture {
        internal;
        proxy_pass http://127.0.0.1:%%FIXTURE%%/mcp;
    }
}

server {
    %%LISTEN_three%%
    server_name localhost 127.0.0.1;

    location = /mcp {
        mcp_endpoint zone=main name=three;
        mcp_upstream rpc /_rpc;
        mcp_upstream fixture /_fixture prefix=none;
        mcp_upstream legacy /_legacy;
    }

    location = /_fixture {
        internal;
        proxy_pass http://127.0.0.1:%%FIXTURE%%/mcp;
    }

    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_legacy { internal; proxy_pass http://127.0.0.1:%%LEGACY%%/; }
}
EOF

my @suites = (
    # package, arguments, how many pass
    ['@modelcontextprotocol/conformance', ['--suite', 'all'], 44],
    ['conformance-next', ['--requirements', '2025-11-25'], 84],
);

for my $suite (@suites) {
    my ($package, $args, $passed) = @$suite;

    my ($straight, $sum) = Mcp::Conformance::outcome($package, $args, $port);

    is($sum, "$passed passed, 0 failed", "$package straight");

    same($straight, "$package through the module", $passed,
         Mcp::Conformance::outcome($package, $args, $t->port));
    same($straight, "$package with three upstreams", $passed,
         Mcp::Conformance::outcome($package, $args, $t->port('three')));
}

done_testing();


sub same {
    my ($straight, $name, $passed, $through, $sum, $why) = @_;

    my ($passed2, $failed2) = ($sum || '') =~ /^(\d+) passed, (\d+) failed$/;
    is($failed2, 0, "$name, failed");

    for my $check (sort { $a cmp $b } keys %{{ %$straight, %$through }}) {
        my ($a, $b) = map { defined $_ ? $_ : 'not run' }
                      $straight->{$check}, $through->{$check};

        # notes of what was seen on the way are no verdicts
        next if "$a $b" =~ /^(?:INFO|SKIPPED|not run) (?:INFO|not run)$/;

        next if $b eq 'SUCCESS' && $a =~ /^(?:WARNING|INFO|not run)$/;

        # it asks for lists, which are made here of several, and are JSON
        if ($b eq 'INFO' && $a eq 'SUCCESS' && $name =~ /three/
            && $check =~ /sse-streams-functional/)
        {
            $passed--;
            next;
        }

        is($b, $a, "$name: $check")
            or diag($why->{$check} || '');
    }

    cmp_ok($passed2, '>=', $passed, "$name, passed");
}
