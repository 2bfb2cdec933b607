package Mcp::Conformance;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The official conformance suite.

use strict;
use warnings;

use File::Temp ();

use Mcp::Json;
use Mcp::Node;


# (package, arguments, port): the status of each check by its name, the sum as
# the suite says it, and why checks failed

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
        my $checks = Mcp::Json::decode(Mcp::Test::slurp_file($path));
        my %n;

        for my $c (@$checks) {
            my $name = "$scenario: $c->{id}";
            $name .= " $n{$name}" if $n{$name}++;
            $status{$name} = $c->{status};
            $why{$name} = ($c->{errorMessage} || '') . ' '
                          . Mcp::Json::encode($c->{details});
        }
    }

    my ($sum) = $text =~ /Total: (\d+ passed, \d+ failed)/;

    Test::More::diag($text) unless defined $sum;

    return (\%status, $sum, \%why);
}


1;
