#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Many sessions end at once: upstreams are told of a few at a time, and other
# clients are served meanwhile.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $sessions = 200;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        return [json => Mcp::Upstream::result($_[0], { content => [] })];
    },
    DELETE => sub {
        return ([tag => 'delete'], [until => 'go'],
                [http => 200, { Connection => 'close' }, ''], ['cut']);
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
        proxy_connect_timeout 60s;
    }
}
EOF

my $other = $t->session;
my @all = map { my $s = $t->session; $s->call('tools/call', { name => 'x' });
                $s } 1 .. $sessions;

is(scalar(grep { $_->delete->{status} == 200 } @all), $sessions,
   'all sessions are ended');

cmp_ok($up->held('delete'), '<=', 64,
       'each worker says at most 32 DELETEs at a time');
is_deeply($other->call('tools/call', { name => 'x' })->{result},
          { content => [] }, 'others are served');

$up->release('go');


# one more is that of the worker that asked for what the upstream is like

sub told { map { $_->{headers}{'mcp-session-id'} }
           $up->requests(sub { $_[0]{method} eq 'DELETE' }) }

ok(wait_for(sub { told() > $sessions }, 30),
   'and the upstream is told of each') or diag(scalar told());

my %told = map { $_ => 1 } told();
is(scalar(keys %told), $sessions + 1, 'once');

done_testing();
