#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A machine that is paused, with all workers: feeds and the module's streams at
# upstreams go on where they are.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Test;

my $clock = Mcp::Clock->new;
my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => JSON::PP::true } },
    'resources/subscribe' => {},
    GET => sub {
        my ($r) = @_;
        return ([sse => {}], [tag => $r->{uri}], [hang =>]);
    }));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=paused;
        mcp_upstream up /_up protocol=legacy;
        mcp_events /_feed;
        mcp_invalidate * message=$n;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/up; }
    location = /_feed {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/feed;
        proxy_http_version 1.1;
        proxy_set_header Connection '';
    }
}
EOF

sub opened {
    my ($uri) = @_;

    return scalar $up->requests(sub { $_[0]{method} eq 'GET'
                                      && $_[0]{uri} eq $uri });
}


my $s = $t->session;
my $get = $s->open_get;

is_deeply($s->call('resources/subscribe', { uri => 'x:1' })->{result}, {},
          'a subscription');
wait_for { $up->held('/feed') == 1 && $up->held('/up') };

my %before = map { $_ => opened($_) } qw(/up /feed);

for my $seconds (4, 60, 61) {
    $clock->jump($t, $seconds);
    $clock->pass($t, 4);

    is(opened($_), $before{$_}, "$_: asked for once, in spite of $seconds s")
        for qw(/up /feed);

    $up->emit('/feed', [event => { kind => 'x', n => $seconds }]);
    is($get->method('notifications/message')->{json}{params}{data}, $seconds,
       'an event comes');
}

unlike($t->log, qr/ gap|lost/, 'nothing was lost');

done_testing();
