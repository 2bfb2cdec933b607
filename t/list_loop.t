#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_list_cache: upstreams that announce a change whenever their tools are
# listed are soon asked no more than once a second; a change after a quiet time
# is fetched at once.

use FindBin;
use lib "$FindBin::Bin/lib";

use Time::HiRes qw(time);

use Mcp::Test;

my @changed = ([event => notification('tools/list_changed')]);

# answers of such an upstream

my %list = (
    same  => sub { return { tools => [{ name => 'a' }] } },
    new   => sub { return { tools => [{ name => "a$_[0]{n}" }] } },
    fails => sub { return [http => 500, {}, ''] },
    none  => sub {
        return [json => Mcp::Upstream::error($_[0], -32601, 'no lists')];
    },
);

sub upstream {
    my ($list) = @_;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        'tools/list' => sub {
            my ($r) = @_;
            my $c = $Mcp::Upstream::child;

            $c->emit([@changed], $c->tagged('get'))
                unless $Mcp::Upstream::V{calm};
            return $list->($r);
        },
        GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) },
    ));
}

my %up = map { $_ => upstream($list{$_}) } keys %list;

my $t = Mcp::Test->new(
    vars => { WHERE => join "\n", map {
        "location = /$_ { mcp_endpoint zone=main; mcp_upstream up /_$_; }\n"
        . "location = /_$_ { internal;\n"
        . 'proxy_pass http://127.0.0.1:' . $up{$_}->port . '/; }'
    } sort keys %up }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_list_cache on ttl=1h kinds=tools;

server {
    %%LISTEN%%
    %%WHERE%%
}
EOF

sub lists { return map { $_->{at} } $up{$_[0]}->calls('tools/list') }

my %s = map { $_ => $t->session(path => "/$_") } sort keys %up;

for my $name (sort keys %up) {
    $s{$name}->call('tools/list');
    wait_for { $up{$name}->held('get') };
    $up{$name}->emit('get', @changed);
}

for my $name (sort keys %up) {
    wait_for { lists($name) >= 23 };

    my @at = lists($name);

    within($at[22] - $at[20], 1.4, 6, "$name: two fetches take two seconds");

    $up{$name}->set(calm => 1);
    wait_for { time() > (lists($name))[-1] + 1.5 };

    my $n = lists($name);
    my $began = time();

    $up{$name}->emit('get', @changed);
    wait_for { lists($name) > $n };
    within((lists($name))[-1] - $began, 0, 0.5,
           "$name: after a quiet time it is asked at once");
}

$t->allow_log(qr/cached list stays/);
done_testing();
