#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Sessions at an upstream that clients of 2026-07-28 share: a client that makes
# up credentials, each of which needs another session, takes its own share of
# the zone, and nothing that another client of its tenant has.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Park;
use Mcp::Shares;
use Mcp::Test;

my $up = Mcp::Park->upstream(gets => 1);

my $t = Mcp::Shares::nginx($up, '1m', '', '');

sub publish {
    my ($data) = @_;

    return $t->publish({ %{ notification(message => { level => 'info',
                                                      data => $data }) },
                         tenant_id => 'a' });
}

my $neighbour = $t->session(client('a', '192.0.2.2'));
publish("early $_") for 1 .. 20;

my $greedy = Mcp::Modern->new($t, client('a', '192.0.2.1'));
my $conn = $t->conn;
my ($r, $n);

for ($n = 0; $n < 4000; $n++) {
    $greedy->{headers}{'X-Api-Key'} = "key $n";

    my $m = $greedy->message('tools/call', { name => 'tick' });

    $r = $conn->request('POST', '/mcp', $greedy->headers($m), json_encode($m));
    last if $r->{status} != 200;
}

cmp_ok($n, '>', 100, 'a client gets many sessions at the upstream');
is($r->{status}, 503, 'but not all that the zone has room for');
is(json_decode($r->{body})->{error}{code}, -32000, 'code');
like($r->{body}, qr/no room for another session at the upstream \(mcp_zone\)/,
     'reason');

my $zone = $t->status->{zone};
cmp_ok($zone->{blocks_free}, '>', $zone->{blocks} / 4, 'others have room');

my $other = Mcp::Modern->new($t, client('a', '192.0.2.3'));
is($other->call('tools/call', { name => 'tick' })->{status}, 200,
   'another client of the tenant gets a session');

is(publish('late')->{status}, 202, 'an event for the tenant is accepted');

my $get = $neighbour->open_get;
my @got;

$get->event_where(sub {
    my $data = ref $_[0]{json} && $_[0]{json}{params}{data} || 'none';
    push @got, $data;
    return $data eq 'late';
});

is_deeply([grep { /^early/ } @got], [map { "early $_" } 1 .. 20],
          'no event of another client is dropped for it');

done_testing();
