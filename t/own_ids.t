#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# No request id comes twice in a session at an upstream, whichever requests the
# module sends there itself.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;

my $K = 'io.modelcontextprotocol/';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {},
                      resources => { subscribe => JSON::PP::true } },
    'logging/setLevel' => {},
    'resources/subscribe' => {},
    'tools/call' => { content => [] },
    'tools/list' => sub {
        my ($r) = @_;
        my $page = $r->{json}{params}{cursor} || 0;
        return { tools => [{ name => "t$page",
                             inputSchema => { type => 'object' } }],
                 $page < 3 ? (nextCursor => '' . ($page + 1)) : () };
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;
    mcp_versions any;

    location = /two {
        mcp_endpoint zone=main;
        mcp_upstream a /_up protocol=legacy;
        mcp_upstream b /_up protocol=legacy;
    }

    location = /shared {
        mcp_endpoint zone=main;
        mcp_list_cache on;
        mcp_upstream up /_up protocol=legacy;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
CONF

sub twice {
    my (%n, $sessions);

    for my $r ($up->requests) {
        my $j = $r->{json};
        next unless ref $j eq 'HASH' && defined $j->{id} && $j->{method};
        next if $j->{method} eq 'initialize';

        my $session = $r->{headers}{'mcp-session-id'} || '';
        push @{ $n{$session}{$j->{id}} }, $j->{method};
    }

    return [map { my $s = $_; map { join ' ', @$_ } grep { @$_ > 1 }
                  values %{ $n{$s} } } sort keys %n];
}


# a client with a session

my $s = $t->session(path => '/two', headers => { 'X-Test-Client' => 1 });
is(scalar @{ $s->call('tools/list')->{result}{tools} }, 8, 'a merged list');
is($s->tool('a__t0')->{http}{status}, 200, 'a call');
is_deeply(twice(), [], 'no id comes twice');

$s->call('logging/setLevel', { level => 'info' });
$s->call('resources/subscribe', { uri => "file:///$_" }) for 1 .. 3;
$up->clear;
$up->set(forget => 1);
is($s->tool('a__t0')->{http}{status}, 200, 'a call in another session');
my @made = map { $_->{json}{method} } $up->requests;
cmp_ok(scalar(grep { /setLevel|subscribe/ } @made), '>', 1,
       'which is made like the first');
is_deeply(twice(), [], 'without an id that comes twice');


# one without

$up->clear;

my $m = Mcp::Modern->new($t, path => '/shared');
for my $level (qw(error warning info)) {
    my $call = $m->message('tools/call', { name => 't0' },
                           "${K}logLevel" => $level);
    is($t->post('/shared', $m->headers($call), json_encode($call))->{status},
       200, "a call with a level: $level");
}
cmp_ok(scalar $up->calls('logging/setLevel'), '>', 2, 'sets levels');
is_deeply(twice(), [], 'no id comes twice, either');

done_testing();
