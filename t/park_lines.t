#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What parked calls say to clients of revision 2026-07-28 that come back: all
# of it, or an error that says why not.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Park;
use Mcp::Test;

my $K = $Mcp::Modern::KEY;
my $clock = Mcp::Clock->new;
my $up = Mcp::Park->upstream(gets => 1);

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_zone zone=small:1m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy listen=off;
    }

    location = /limit {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy listen=off;
        mcp_message_limit 100k;
    }

    location = /small {
        mcp_endpoint zone=small;
        mcp_upstream up /_up protocol=legacy listen=off;
    }

    location = /cached {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy listen=off;
        mcp_list_cache on key=ann;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

my ($here, $there) = $t->workers;

my %caps = (elicitation => { form => {}, url => {} }, sampling => {},
            roots => {});

sub client { Mcp::Modern->new($t, caps => \%caps, path => $_[0]) }
sub said { Mcp::Modern::said(@_) }
sub again { Mcp::Park::again(@_) }


# many messages at once, for a client whose request another worker has

my $c = client('/mcp');

for my $burst ('log2000', 'log700 think log700 where log600') {
    my $r = Mcp::Park::call($c, "ask $burst", on => $here);
    my $n = 0;

    while (said($r) eq '200 input_required') {
        $r = again($r, on => $there, meta => { "${K}logLevel" => 'debug' });
        $n += @{ $r->{before} };
    }

    is(said($r), '200 complete', "$burst: the result");
    is($n, 2000, 'behind all messages');
}


# there is no room

sub error {
    my ($r) = @_;
    return $r->{json}{error}{message};
}

sub answered {
    my ($id) = @_;
    my ($r) = $up->wait_requests(sub {
        $_[0]{json} && ($_[0]{json}{id} || '') =~ $id });
    return $r->{json};
}

my $small = client('/small');

my $r = Mcp::Park::call($small, 'ask big600000', on => $here);
my $next = again($r, on => $there);
is(said($next), '200 -32603', 'a result');
like(error($next), qr/no room.*mcp_zone/, 'and why');

$up->clear;
$r = Mcp::Park::call($small, 'ask huge', on => $here);
$next = again($r, on => $there);
is(said($next), '200 -32603', 'a request of the upstream');
like(error($next), qr/no room.*mcp_zone/, 'and why');
is(answered(qr/huge$/)->{error}{code}, -32603, 'which is refused');
ok($up->wait_requests(sub {
    ($_[0]{json}{method} || '') eq 'notifications/cancelled' }),
   'and the call is cancelled');
like($t->log, qr/mcp upstream "up" asks its client for something, and the zone/,
     'as the log says');

for my $name ('@huge', 'ask @huge') {
    $r = Mcp::Park::call($small, $name, on => $here);
    $r = again($r, on => $there) if $name =~ /ask/;
    is(said($r), '200 complete', "$name on the GET stream");
    is(Mcp::Park::answers($r)->{huge}{code}, -32603, 'is refused');
}

$t->allow_log(qr/is full|has no room|prematurely|cut its response/);


# a message over the limit

$r = Mcp::Park::call(client('/limit'), 'ask big200000', on => $here);
like(error(again($r, on => $there)), qr/larger than mcp_message_limit/,
     'a result over the limit');

my $l = client('/limit');
my $rest = length json_encode({ jsonrpc => '2.0', id => 'x' x 36, result => {
    content => [{ type => 'text', text => '' }] } });
my $m = $l->message('tools/call', { name => 'ask big' . (102390 - $rest),
                                    arguments => {} });
$m->{id} = 'y' x 60;

$r = Mcp::Park::send_message($l, $m, on => $here);
$next = again($r, on => $there);
is(said($next), '200 -32603', 'one that is over it with the id of the client');
like(error($next), qr/larger than mcp_message_limit/, 'and why');


# a change of lists, which is one of those that this client has

my $cached = client('/cached');
$cached->call('tools/list');
$cached->call('tools/list');
$up->clear;
$r = Mcp::Park::call($cached, 'ask changed wait', on => $here);
my $open = again($r, on => $there, open => 1);
ok($up->wait_requests(sub {
    ($_[0]{json}{method} || '') eq 'tools/list' }), 'they are asked for again');
$up->release('wait');
is(said(Mcp::Park::finish($open)), '200 complete', 'during the call');

done_testing();
