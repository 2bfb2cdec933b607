#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The limits that the README and conf/production.conf recommend hold for clients
# with a session, for those of 2026-07-28, and for initialize.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;
use Mcp::Upstream;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {} },
    'tools/list' => { tools => [] },
    'tools/call' => { content => [] },
));

my ($readme) = Mcp::Test::slurp_file("$Mcp::Test::ROOT/README.md")
    =~ /^### Limit or deny tools\n.*?^```nginx\n(.*?)^location/ms;
my ($production)
    = Mcp::Test::slurp_file("$Mcp::Test::ROOT/conf/production.conf")
    =~ /^    # 5\. .*?\n(    map .*?)^    server \{/ms;

ok($readme && $production, 'the recipes');

sub nginx {
    my ($recipe, $limit) = @_;

    return Mcp::Test->new(vars => { UP => $up->port }, conf => <<"EOC");
mcp_zone zone=main:4m;
$recipe
server {
    %%LISTEN%%
    server_name localhost;
    location = /mcp { $limit mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
}
EOC
}

sub refused { scalar grep { $_ == 503 } @_ }

for my $r ([$readme, 'README'], [$production, 'production.conf']) {
    my $t = nginx($r->[0], 'limit_req zone=costly burst=3 nodelay;');

    for my $s (map { $t->session } 1, 2) {
        is(refused(map { $s->tool('report')->{http}{status} } 1 .. 8), 4,
           "$r->[1]: each session has its allowance");
    }

    my $m = Mcp::Modern->new($t);

    is(refused(map { $m->call('tools/call', { name => 'report',
                                              arguments => {} })->{status} }
               1 .. 8), 4, 'clients of 2026-07-28 have one by address');
    is($m->call('tools/call', { name => 'cheap', arguments => {} })->{status},
       200, 'which other tools do not use up');
    $t->stop;
}

my $t = nginx($production =~ s{rate=20r/s}{rate=6r/m}r,
              'limit_req zone=session burst=3 nodelay;');
my @answers = map { $t->client->initialize } 1 .. 8;

is(refused(map { $_->{status} } @answers), 4, 'so has initialize');
is($answers[0]{status}, 200, 'the first ones are answered');

done_testing();
