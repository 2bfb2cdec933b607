#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An upstream that does not answer logging/setLevel in time is not sent a level
# that no client of 2026-07-28 wants.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;
use Mcp::Upstream;

my $level = 'io.modelcontextprotocol/logLevel';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {} },
    'logging/setLevel' => sub {
        my ($r) = @_;
        my $gate = $Mcp::Upstream::V{gate} || '';

        return (($gate ? ([tag => $gate], [until => $gate]) : ()),
                [json => Mcp::Upstream::result($r, {})]);
    },
    'tools/call' => { content => [] },
    'tools/list' => { tools => [] },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
server {
    %%LISTEN%%
    server_name localhost;
    mcp_versions any;
    location = /mcp { mcp_endpoint zone=main;
                      mcp_upstream up /_up protocol=legacy; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

my $m = Mcp::Modern->new($t);
my %call = (name => 'tool');

is($m->call('tools/call', \%call)->{status}, 200, 'a session is there');
$up->clear;

$up->set(gate => 'first');
my $first = $m->send_only($m->message('tools/call', \%call, $level => 'info'));
ok(wait_for { $up->held('first') }, 'a call waits for its level');

# the second one still waits when the first one waits no longer

my $begin = time;
wait_for { time - $begin > 2 };
$up->set(gate => 'second');
my $second = $m->send_only($m->message('tools/call', \%call,
                                       $level => 'info'));
ok(wait_for { $up->held('second') }, 'so does another one');

is($first->response('POST')->{status}, 200, 'the first one goes on without');
$up->set(gate => '');
$up->release('second');
is($second->response('POST')->{status}, 200, 'the second one with the level');
$up->release('first');

is(join(' ', map { $_->{json}{params}{level} } $up->calls('logging/setLevel')),
   'info info', 'no other level was sent');

done_testing();
