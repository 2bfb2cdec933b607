#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A worker that has no connection left when it is to listen again.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => JSON::PP::true } },
    'resources/subscribe' => {},
    GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) },
));

my $t = Mcp::Test->new(workers => 1, events => 'worker_connections 32;',
                       vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name mcp.test;
    keepalive_timeout 0;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_stream_limit 100;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%; }
}
EOC

$t->allow_log(qr/worker_connections are not enough/);

my $s = $t->session;
my @streams = ($s->open_get);

is_deeply($s->call('resources/subscribe', { uri => 'x:y' })->{result}, {},
          'subscribed');
ok((wait_for { $up->held('get') == 2 }),
   'the upstream is listened to, for the session and for all');

sub more {
    my $stream = eval { $s->open_get };
    return if !$stream || !$stream->status;
    return push @streams, $stream;
}

while (more()) { }

$up->drop;

# what that sets free is taken before it can be used to listen again

my $end = time() + 2;

while (time() < $end) {
    more() or select undef, undef, undef, 0.02;
}

ok(@streams > 20, 'there was no connection left');

$_->close for splice @streams, 1;

ok((wait_for { $up->held('get') == 2 }), 'it is listened to again');

done_testing();
