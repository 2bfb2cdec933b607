#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The Host that upstreams get: servers with the guard of the SDKs against DNS
# rebinding work with the snippets as printed; what the user wrote stays.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $guarded = Mcp::Upstream::mcp('tools/list' => { tools => [{
    name => 'forecast', inputSchema => { type => 'object' } }] });

# as the Python SDK does by default; the TypeScript SDK takes any port

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;

    return [http => 403, {}, 'Invalid Host header']
        if $r->{uri} =~ m{^/mcp}
           && $r->{headers}{host} !~ /^(?:localhost|127\.0\.0\.1|\[::1\]):\d+$/;
    return $guarded->($r);
});

my $readme = Mcp::Test::slurp_file("$Mcp::Test::ROOT/README.md");
my $production
    = Mcp::Test::slurp_file("$Mcp::Test::ROOT/conf/production.conf");

my ($snippet)
    = $readme =~ /^```nginx\nload_module.*?\n\nhttp \{\n(.*?)^\}\n```/ms;
my ($block) = $production =~ /^(    upstream weather \{.*?^    \})/ms;
my ($location)
    = $production =~ /^(        location = \/_weather \{.*?^        \})/ms;

ok($snippet, 'the first snippet of the README');
ok($block && $location, 'the first recipe of production.conf');

$_ =~ s/127\.0\.0\.1:9001/127.0.0.1:%%UP%%/ for $snippet, $block;
$snippet =~ s/listen 8080;/%%LISTEN%%/;

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => $snippet);

is($t->session->call('tools/list')->{result}{tools}[0]{name}, 'forecast',
   'the first snippet works with a guarded server');
$t->stop;
$up->clear;

$t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<"EOC");
mcp_zone zone=main:4m;
$block
upstream two     { server 127.0.0.1:%%UP%%; server 127.0.0.2:%%UP%% backup; }
upstream far     { server 127.0.0.1:%%UP%%; server 192.0.2.1:81 backup; }
upstream a.host  { server 127.0.0.1:%%UP%%; }
server {
    %%LISTEN%%
    location = /mcp { mcp_endpoint zone=main; mcp_upstream weather /_weather; }
    $location

    location = /two { mcp_endpoint zone=main; mcp_upstream two /_two; }
    location = /_two { internal; proxy_pass http://two/mcp-two;
                       if (\$http_x_if) { set \$x 1; } }

    location = /far { mcp_endpoint zone=main; mcp_upstream far /_far; }
    location = /_far { internal; proxy_pass http://far/far; }

    location = /host { mcp_endpoint zone=main; mcp_upstream host /_host; }
    location = /_host { internal; proxy_pass http://a.host/host; }

    location = /shut { mcp_endpoint zone=main; mcp_upstream shut /_shut; }
    location = /_shut { internal; proxy_pass http://two/mcp;
                        proxy_set_header host a.name; }

    location = /kept { mcp_endpoint zone=main; mcp_upstream kept /_kept; }
    location = /_kept { internal; proxy_pass http://two/kept;
                        proxy_set_header X-A b; }

    location = /addr { mcp_endpoint zone=main; mcp_upstream addr /_addr; }
    location = /_addr { internal; proxy_pass http://127.0.0.1:%%UP%%/addr; }
}
EOC

my $port = $up->port;

for (
    ['/mcp', "localhost:$port", 'production.conf'],
    ['/two', "localhost:$port", 'a block of this machine'],
    ['/far', 'far', 'a block with another machine'],
    ['/host', 'a.host', 'a block with the name of a host'],
    ['/kept', "localhost:$port", 'beside another header'],
    ['/addr', "127.0.0.1:$port", 'an address'],
) {
    my ($path, $host, $name) = @$_;

    my $s = $t->session(path => $path, headers => { 'X-If' => 1 });

    is($s->call('tools/list')->{result}{tools}[0]{name}, 'forecast',
       "$name works");

    my $uri = $path eq '/two' ? '/mcp-two' : $path;
    my %hosts = map { $_->{headers}{host} => 1 }
                $up->requests(sub { $_[0]{uri} eq $uri });
    is_deeply([keys %hosts], [$host], "$name: Host") or diag explain \%hosts;

    my ($one) = $up->requests(sub { $_[0]{uri} eq $uri });
    is($one->{headers}{'x-a'}, 'b', "$name: other headers")
        if $path eq '/kept';
}

my $r = $t->client(path => '/shut')->initialize;

is($r->{status}, 403, 'what the user wrote stays, and is refused');
like($t->log, qr/\[error\].*"shut".*"host:\ a\.name".*Invalid\ Host\ header
                  .*"proxy_set_header\ Host\ localhost;"/ix,
     'which the log knows a remedy for');

done_testing();
