#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# More workers than a zone has places for at first.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

plan(skip_all => 'hundreds of processes are too many with sanitizers')
    if $ENV{MCP_SANITIZED};

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        return [json => Mcp::Upstream::result($_[0], { content => [] })];
    },
));

my $conf = <<'EOF';
mcp_zone zone=main:%%SIZE%%;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }

    location = /status { mcp_status zone=main; }
}
EOF

my $t = Mcp::Test->new(vars => { UP => $up->port, SIZE => '1m' },
                       conf => $conf, workers => 2, start => 0);

my ($code, $text) = $t->check(workers => 300);
is($code, 1, 'a zone that is too small for 300 workers is refused');
like($text, qr/in \S+:\d+ is too small for 300 workers; set its size to 5m or/,
     'with a remedy');

($code, $text) = $t->check(workers => 9000);
is($code, 1, 'so are more workers than there are places');
like($text, qr/in \S+:\d+ serves at most 8192 workers; lower "worker_pro/,
     'with a remedy');

$t->allow_log(qr/"mcp_zone" "main"/);


# the zone was made for 2 workers and is kept

$t->configure(workers => 2, conf => $conf =~ s/%%SIZE%%/8m/r);
$t->start;

sub places { json_decode($t->get('/status')->{body})->{workers} }

my $s = $t->session;

$t->reload(workers => 300);

ok(wait_for(sub { places() == 300 }, 60), 'all of 300 workers have a place');
is_deeply($s->call('tools/call', { name => 'x' })->{result}, { content => [] },
          'the session is there and served');

done_testing();
