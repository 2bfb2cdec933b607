#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# GET streams that upstreams refuse or end: how long the pauses are before the
# module asks again, and what it asks for.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;

my $clock = Mcp::Clock->new;

# GET answered by a body of JSON, which grows no stream

my %json = (
    200 => '{"status":"ok"}',
    404 => '{"detail":"Not Found"}',
    503 => '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}',
);

my %up = map {
    my $status = $_;

    "json$status" => sub {
        return [http => $status, { 'Content-Type' => 'application/json' },
                $json{$status}];
    };
} keys %json;

%up = map { $_ => Mcp::Upstream->new(Mcp::Upstream::mcp(
                      'tools/list' => { tools => [] }, GET => $up{$_})) }
      keys %up;

my $t = Mcp::Test->new(
    vars => { WHERE => join "\n", map {
        "location = /$_ { mcp_endpoint zone=main; mcp_upstream $_ /_$_; }\n"
        . "location = /_$_ { internal;\n"
        . 'proxy_pass http://127.0.0.1:' . $up{$_}->port . '/; }'
    } sort keys %up }, conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    %%WHERE%%
}
EOF

sub gets { return $up{$_[0]}->requests(sub { $_[0]{method} eq 'GET' }) }

$clock->pass($t, 1);

my @open = map { my $s = $t->session(path => "/$_"); ($s, $s->open_get) }
           sort keys %up;

for my $name (sort keys %up) {
    wait_for { gets($name) };
}

# attempts after 1, 3, 7 and 15 seconds, and up to a quarter more

$clock->pass($t, 25);

for my $name (sort keys %up) {
    within(scalar gets($name), 3, 6, "$name: the pauses grow");
}

is(scalar(() = $t->log =~ /"json$_" answered GET /g), 1,
   "$_: the log says so once") for 200, 404;

done_testing();
