#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Ids of upstreams' sessions, of any length: some servers put a token into
# them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $made = 0;

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $j = $r->{json};
    my $id = $r->{headers}{'mcp-session-id'};
    my $known = $Mcp::Upstream::V{known} ||= {};

    return [http => delete $known->{$id} ? 200 : 404, {}, '']
        if $r->{method} eq 'DELETE';

    if ($r->{method} eq 'GET') {
        return [http => 404, {}, ''] unless $known->{$id};
        return ([sse => {}], [tag => 'get'], [hang =>]);
    }

    if ($j->{method} eq 'initialize') {
        return [http => 401, {}, ''] if $Mcp::Upstream::V{closed}
                                        && !$r->{headers}{authorization};
        $id = sprintf '%s-%d-', $r->{uri} =~ m{([0-9]+)}, ++$made;
        $id .= 'x' x ($1 - length $id) if $r->{uri} =~ m{([0-9]+)};
        $known->{$id} = 1;
        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25',
            capabilities => { tools => {},
                              resources => { subscribe => JSON::PP::true } },
            serverInfo => { name => 'ids', version => '1' } }),
            { 'Mcp-Session-Id' => $id }];
    }

    return [http => 404, {}, ''] unless $id && $known->{$id};
    return [http => 202, {}, ''] unless exists $j->{id};
    return [json => Mcp::Upstream::result($r, { id => $id })];
});

my @lengths = (36, 512, 513, 1500, 2500, 4096, 4097, 6000);

my $locations = join '', map { <<"CONF" } @lengths;
    location = /mcp$_ { mcp_endpoint zone=main; mcp_upstream up /_$_; }
    location = /_$_   { internal; proxy_pass http://127.0.0.1:%%UP%%/$_; }
CONF

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<"CONF");
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

$locations
}
CONF

my @workers = $t->workers;

for my $len (grep { $_ <= 4096 } @lengths) {
    for my $closed (0, 1) {
        my $name = "$len bytes" . ($closed ? ', a session for who asks' : '');

        $up->set(closed => $closed);

        if ($closed) {
            $t->reload;
            @workers = $t->workers;
        }

        my $s = $t->session(path => "/mcp$len",
                            headers => { Authorization => 'me' });
        my %ids;

        for (@workers, @workers) {
            my $r = $s->tool('x', {}, conn => $t->conn_on_worker($_));
            $ids{ $r->{result}{id} || '' } = 1;
        }

        my ($id) = keys %ids;
        is(length $id, $len, "$name: the id is used");
        is(scalar keys %ids, 1, 'in every worker');

        my $get = $s->open_get;
        $get->event;
        ok((wait_for { $up->held('get') }), 'for the stream as well');

        is_deeply($s->call('resources/subscribe', { uri => 'x:/a' })
                  ->{error}, undef, 'subscribed') unless $closed;

        is($s->delete->{status}, 200, 'DELETE');
        my ($told) = $up->wait_requests(sub {
            $_[0]{method} eq 'DELETE'
            && $_[0]{headers}{'mcp-session-id'} eq $id
        });
        ok($told, 'the upstream is told');
    }
}

$up->set(closed => 0);
$t->reload;

for my $len (grep { $_ > 4096 } @lengths) {
    my $s = $t->session(path => "/mcp$len");
    my $from = length $t->log;
    my $r = $s->tool('x');

    is($r->{http}{status}, 502, "$len bytes: refused");
    is($r->{error}{code}, -32603, 'code');

    my @lines = grep { /\[error\]/ } split /\n/, substr $t->log, $from;

    is(scalar @lines, 1, 'with one line') or diag(join "\n", @lines);
    like($lines[0], qr/"up" made a session whose id has $len bytes/,
         'that says why');
    ok((wait_for {
        grep { $_->{method} eq 'DELETE' && $_->{uri} eq "/$len" }
        $up->requests;
    }), 'and the upstream is told to end it');
    $s->delete;
}

$t->allow_log(qr/made a session whose id/);
done_testing();
