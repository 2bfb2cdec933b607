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
        return [http => 400, { 'Content-Type' => 'application/json' },
                '{"jsonrpc":"2.0","id":null,"error":'
                . '{"code":-32600,"message":"not now"}}']
            if ($Mcp::Upstream::V{how} || '') eq 'not now';
        $id = sprintf '%s-%d-', $r->{uri} =~ m{([0-9]+)}, ++$made;
        $id .= 'x' x ($1 - length $id) if $r->{uri} =~ m{([0-9]+)};
        $known->{$id} = 1;

        my $how = $Mcp::Upstream::V{how} || '';

        return [http => 403, { 'Mcp-Session-Id' => $id }, 'no']
            if $how eq 'refuses';
        $r->{json}{id} = 'other' if $how eq 'other';

        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25',
            capabilities => { tools => {},
                              resources => { subscribe => JSON::PP::true } },
            serverInfo => { name => 'ids', version => '1' } }),
            { 'Mcp-Session-Id' => $id }];
    }

    return [http => 404, {}, ''] if !$id || !$known->{$id}
        || ($Mcp::Upstream::V{how} || '') eq 'not now';
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


# an upstream session that no session here can use is ended at once

$up->set(closed => 1);
$t->reload;

for (['', 4097, 200], [refuses => 36, 403], [other => 36, 502]) {
    my ($how, $len, $status) = @$_;

    $up->set(how => $how);
    $up->clear;

    my $c = $t->client(path => "/mcp$len",
                       headers => { Authorization => 'me' });
    is($c->initialize->{status}, $status, ($how || 'too long') . ': answered');
    ok((wait_for {
        grep { $_->{method} eq 'DELETE' && $_->{uri} eq "/$len"
               && $_->{headers}{authorization} eq 'me' } $up->requests;
    }), 'and what the upstream made is ended');
}


# who asks for a client's initialize has not answered the module's own

$up->set(how => '');

my $s = $t->session(path => '/mcp36', headers => { Authorization => 'me' });

$up->set(how => 'not now');
ok($s->tool('x')->{error}, 'a session that cannot be made again');
unlike($t->log, qr/answered the module's own initialize/, 'nor said to');

$t->allow_log(qr/made a session whose id/);
done_testing();
