#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The official conformance suite, straight at a server and through the module:
# the same outcome, check by check, or a success where the server alone earns a
# warning (0.1.16 names 2025-03-26 in sessions of 2025-11-25: the server then
# leaves out the priming event and the rest of the answer, the module knows
# what was agreed on and gives both).

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

my $port = free_port();
my $fixture = Mcp::Node->fixture($port);

my $t = Mcp::Test->new(vars => { FIXTURE => $port }, conf => <<'EOF');
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
EOF

my @suites = (
    # package, arguments, how many pass
    ['@modelcontextprotocol/conformance', ['--suite', 'all'], 44],
    ['conformance-next', ['--requirements', '2025-11-25'], 84],
);

for my $suite (@suites) {
    my ($package, $args, $passed) = @$suite;

    my ($straight, $sum) = outcome($package, $args, $port);
    my ($through, $sum2, $why) = outcome($package, $args, $t->port);

    is($sum, "$passed passed, 0 failed", "$package straight");

    my ($passed2, $failed2) = $sum2 =~ /^(\d+) passed, (\d+) failed$/;
    cmp_ok($passed2, '>=', $passed, "$package through the module, passed");
    is($failed2, 0, "$package through the module, failed");

    for my $check (sort { $a cmp $b } keys %{{ %$straight, %$through }}) {
        my ($a, $b) = map { defined $_ ? $_ : 'not run' }
                      $straight->{$check}, $through->{$check};

        # notes of what was seen on the way are no verdicts
        next if "$a $b" =~ /^(?:INFO|SKIPPED|not run) (?:INFO|not run)$/;

        next if $b eq 'SUCCESS' && $a =~ /^(?:WARNING|INFO|not run)$/;

        is($b, $a, $check)
            or diag($why->{$check} || '');
    }
}

done_testing();


sub outcome {
    my ($package, $args, $to) = @_;

    my $dir = File::Temp::tempdir(CLEANUP => 1);
    my ($code, $rows, $text) = Mcp::Node->run(
        [Mcp::Node::node22(), Mcp::Node::module($package) . '/dist/index.js',
         'server', '--url', "http://127.0.0.1:$to/mcp", @$args, '-o', $dir],
        timeout => 300
    );

    my (%status, %why);

    for my $path (glob "$dir/*/checks.json") {
        my ($scenario) = $path =~ m{/server-([^/]+?)-\d{4}-\d\d-\d\dT[^/]+/};
        my $checks = json_decode(Mcp::Test::slurp_file($path));
        my %n;

        for my $c (@$checks) {
            my $name = "$scenario: $c->{id}";
            $name .= " $n{$name}" if $n{$name}++;
            $status{$name} = $c->{status};
            $why{$name} = ($c->{errorMessage} || '') . ' '
                          . json_encode($c->{details});
        }
    }

    my ($sum) = $text =~ /Total: (\d+ passed, \d+ failed)/;

    diag($text) unless defined $sum;

    return (\%status, $sum, \%why);
}
