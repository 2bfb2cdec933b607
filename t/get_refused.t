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

# a stream that can not be resumed behind an event

for my $status (400, 410, 412, 416) {
    $up{"gone$status"} = sub {
        return [http => $status, {}, '']
            if defined $_[0]{headers}{'last-event-id'};
        return ([sse => {}], [event => notification('tools/list_changed'),
                              id => 'e1'], [tag => 'get'], [hang =>]);
    };
}

# a stream that ends at once, and says when to come back

$up{polled} = sub {
    return ([sse => {}], [event => '', id => 'e1', retry => 20000], [end =>]);
};

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

my %s = map { $_ => $t->session(path => "/$_") } sort keys %up;
my %get = map { $_ => $s{$_}->open_get } sort keys %up;

for my $name (sort keys %up) {
    wait_for { gets($name) };
    next unless $name =~ /^gone/;

    wait_for { $up{$name}->held('get') };
    ok($get{$name}->method('notifications/tools/list_changed'),
       "$name: an event with an id");
    $up{$name}->emit('get', [cut =>]);
}

# 20 seconds, and up to a quarter more

$clock->pass($t, 15);
is(scalar gets('polled'), 1, 'polled: a stream is not opened before "retry:"');
$clock->pass($t, 11);
ok((wait_for { gets('polled') == 2 } 5), 'but after it');

# attempts after 1, 3, 7 and 15 seconds, and up to a quarter more

for my $name (grep { /^json/ } sort keys %up) {
    within(scalar gets($name), 3, 6, "$name: the pauses grow");
}

is(scalar(() = $t->log =~ /"json$_" answered GET /g), 1,
   "$_: the log says so once") for 200, 404;

for my $name (grep { /^gone/ } sort keys %up) {
    ok((wait_for { $up{$name}->held('get') } 5),
       "$name: the stream is open again");
    is((gets($name))[1]{headers}{'last-event-id'}, 'e1',
       'it was to be resumed first');
}

$t->allow_log(qr/cut its response/);
done_testing();
