#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Messages of a batch that limit_req of an upstream's location delays: each goes
# on by itself, and is counted once.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(sub {
    my ($r) = @_;
    return [json => Mcp::Upstream::result($r, {
        tools => [ { name => 'x', inputSchema => { type => 'object' } } ] })]
        if ($r->{json}{method} || '') =~ /list/;
    return [http => 404, {}, ''] unless ($r->{json}{method} || '')
                                        eq 'tools/call';
    return [json => Mcp::Upstream::result($r, { content => [] })];
});

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:4m;

limit_req_zone $server_name zone=few:1m rate=5r/s;
limit_req_zone $server_name zone=one:1m rate=20r/m;

map $mcp_name $place { slow /_one; default /_up; }

server {
    %%LISTEN%%
    server_name localhost;
    mcp_batch on;

    location = /few {
        mcp_endpoint zone=main;
        mcp_upstream up /_few protocol=rpc;
    }

    location = /mixed {
        mcp_endpoint zone=main;
        mcp_upstream up $place protocol=rpc;
    }

    location = /_few {
        internal;
        limit_req zone=few burst=10;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /_one {
        internal;
        limit_req zone=one burst=1;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOC

sub old {
    return $t->session(path => $_[0], version => '2025-03-26');
}

sub batch {
    my ($s, @names) = @_;
    return $s->post([ map { $s->message('tools/call', { name => $_ }) }
                      @names ], timeout => 20);
}

my $s = old('/few');
my $r = batch($s, ('slow') x 4);
is(scalar(grep { $_->{result} } @{ $r->{messages} || [] }), 4,
   'each that is delayed is answered') or diag(explain($r));

my $s2 = old('/mixed');
my $before = () = $t->log =~ /delaying request/g;

$r = batch($s2, 'slow', 'slow', 'quick');
is(scalar(grep { $_->{result} } @{ $r->{messages} || [] }), 3,
   'beside one that is not') or diag(explain($r));
is(scalar(() = $t->log =~ /delaying request/g) - $before, 1,
   'and it is counted once');

done_testing();
