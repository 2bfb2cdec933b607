#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Cached lists of an upstream that says how long they may be kept (ttlMs).

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;

my $clock = Mcp::Clock->new;

my $up = Mcp::Upstream->new(Mcp::Upstream::modern('tools/list' => sub {
    my ($r) = @_;
    my $v = \%Mcp::Upstream::V;
    my $second = $r->{json}{params}{cursor};

    return {
        tools => [{ name => $second ? 'b' : 'a',
                    inputSchema => { type => 'object' },
                    description => $v->{about} || 'first' }],
        ttlMs => $v->{ $second ? 'ttl_b' : 'ttl_a' } || 0,
        cacheScope => 'private', $second ? () : (nextCursor => 'more')
    };
}));

sub asked { scalar $up->calls('tools/list') }

# [what the pages say, the age that the list reaches]

for (['nothing said', 0, 0, 200], ['both pages', 100000, 60000, 60],
     ['one page', 0, 100000, 100], ['longer than allowed', 300000, 300000, 200],
     ['hardly at all', 1, 500, 10], ['no number', '5', 'x', 200])
{
    my ($name, $first, $second, $age) = @$_;

    $up->set(ttl_a => $first);
    $up->set(ttl_b => $second);
    $up->set(about => undef);
    $up->clear;

    # an nginx of its own: the time that passes is that of all lists

    my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => 2,
                           conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_list_cache on ttl=200s kinds=tools;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
}
EOF

    # workers are stopped until the clock has a connection to each

    $clock->pass($t, 1);

    my $s = $t->session;
    my $get = $s->open_get;
    my $about = sub { $s->call('tools/list')->{result}{tools}[0]{description} };

    my $from = $clock->now;
    is($about->(), 'first', "$name: a list");

    # it may be fetched once more when the stream of changes stands

    ok(wait_for { $up->calls('subscriptions/listen') },
       "$name: its changes are listened to");
    scalar(wait_for { asked() >= 4 } 0.3);
    $clock->pass($t, 1) while $clock->now < $from + $age - 5;
    $about->();
    cmp_ok(asked(), '<=', 4, "$name: it is kept");

    $up->set(about => 'second');
    $from = $clock->now;
    $clock->pass($t, 1) while $clock->now < $from + 10;

    ok($get->method('notifications/tools/list_changed'),
       "$name: it is fetched again");
    is($about->(), 'second', "$name: and served");
    $t->stop;
}

done_testing();
