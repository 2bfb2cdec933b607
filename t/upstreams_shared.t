#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# One upstream of several endpoints: each of them asks it what it is, also where
# the location makes something of the endpoint's name.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;


# by the header X-What a location says which features its endpoint has

sub server {
    my ($name) = @_;

    my $mcp = Mcp::Upstream::mcp(
        'tools/list' => sub {
            return { tools => [ map {
                { name => $_, inputSchema => { type => 'object' } }
            } @{ $Mcp::Upstream::V{tools} || ['where'] } ] };
        },
        'tools/call' => sub {
            return { content => [ { type => 'text', text => $name } ] };
        },
        GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) });

    return Mcp::Upstream->new(sub {
        my ($r) = @_;

        my $what = $r->{headers}{'x-what'};
        my $method = ref $r->{json} eq 'HASH' ? $r->{json}{method} || '' : '';

        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25', capabilities =>
                { tools => {}, experimental => { $what => {} } },
            serverInfo => { name => $name, version => '1' } }),
                { 'Mcp-Session-Id' => "s-$what" }]
            if defined $what && $method eq 'initialize';

        return $mcp->($r);
    });
}


my $up = server('up');
my $named = server('named');
my $other = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] }));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, NAMED => $named->port, OTHER => $other->port },
    conf => <<'EOF');
mcp_zone zone=main:8m;

map $mcp_endpoint $what {
    default "";
    ~named-(.*)$ $1;
}

server {
    %%LISTEN%%
    server_name localhost;

    # several upstreams, and one of these alone

    location = /both {
        mcp_endpoint zone=main;
        mcp_upstream other /_other;
        mcp_upstream two /_up?$mcp_tenant;
        mcp_tenant t$http_x_tenant;
        mcp_list_cache on;
    }

    location = /alone {
        mcp_endpoint zone=main;
        mcp_upstream up /_up?$mcp_tenant;
        mcp_tenant t$http_x_tenant;
        mcp_list_cache on;
    }

    location = /a { mcp_endpoint zone=main name=named-a;
                    mcp_upstream named /_named; }
    location = /b { mcp_endpoint zone=main name=named-b;
                    mcp_upstream named /_named; }

    location = /_named {
        internal;
        proxy_pass http://127.0.0.1:%%NAMED%%/;
        proxy_set_header X-What $what;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_other { internal; proxy_pass http://127.0.0.1:%%OTHER%%/; }

    location = /publish { allow 127.0.0.1; deny all; mcp_publish zone=main; }
    location = /status { allow 127.0.0.1; deny all; mcp_status zone=main; }
}
EOF


# how often a probe began; what clients and shared sessions do is not counted

sub probes { scalar $_[0]->calls('server/discover') }

sub at {
    my ($path, $tenant) = @_;

    return $t->session(path => $path, headers => { 'X-Tenant' => $tenant });
}

sub text { my $r = shift; return $r && $r->{result}{content}[0]{text} }

sub state {
    my ($endpoint) = @_;

    my ($u) = grep { $_->{endpoint} eq $endpoint
                     && $_->{upstream} =~ /^(?:up|two|named)$/ }
              @{ $t->status->{upstreams} };
    return $u;
}


# with a prefix in the one, with bare names in the other

my $both = at('/both', 1);
my $alone = at('/alone', 1);

is(text($both->tool('two__where')), 'up', 'prefixed');
is(text($alone->tool('where')), 'up', 'bare');

at($_, 1) for ('/both', '/alone') x 4;
is(probes($up), 2, 'each endpoint asked once, on any worker');

at($_, 2) for '/alone', '/both';
is(probes($up), 4, 'another tenant: once more');

for ('/both', '/alone') {
    is(state("localhost$_")->{state}, 'known', "mcp_status: known to $_");
    is(state("localhost$_")->{tenants}{known}, 2, 'for both tenants');
}


# the lists of each endpoint: a change is told once to the sessions of each

my %get = (both => $both->open_get, alone => $alone->open_get);

sub names {
    my ($s) = @_;
    return [ sort map { $_->{name} } @{ $s->call('tools/list')
                                          ->{result}{tools} } ];
}

is_deeply(names($both), ['two__where'], 'the list of the one');
is_deeply(names($alone), ['where'], 'of the other');

ok((wait_for { $up->held('get') >= 2 }), 'changes are listened for');
$up->set(tools => ['where', 'more']);
$up->emit('get', [event => notification('tools/list_changed')]);

for my $who (qw(both alone)) {
    my $e = $get{$who}->event_where(sub { $_->{data} ne '' });

    is($e && $e->{json}{method}, 'notifications/tools/list_changed',
       "$who hears of it");
}

$t->publish(notification('message', { level => 'info', data => 'mark' }));

for my $who (qw(both alone)) {
    my $e = $get{$who}->event_where(sub { $_->{data} ne '' });

    is($e && $e->{json}{params}{data}, 'mark', 'once');
}

is_deeply(names($both), ['two__more', 'two__where'], 'it changed for the one');
is_deeply(names($alone), ['more', 'where'], 'and for the other');


# away: clients of both begin with what is known, and both learn of the end

$up->refuse;
$up->drop;

for ('/both', '/alone') {
    ok((wait_for { at($_, 1); state("localhost$_")->{state} eq 'away' }),
       "it is away for $_");
}

$up->restore;

for ('/both', '/alone') {
    ok((wait_for { at($_, 1); state("localhost$_")->{state} eq 'known' }),
       "and is back for $_");
}

ok((wait_for { (text($both->tool('two__where')) || '') eq 'up' }),
   'the one reaches it');
ok((wait_for { (text($alone->tool('where')) || '') eq 'up' }),
   'so does the other');


# the endpoint's name is used: each has what holds for it

sub feature {
    my ($path) = @_;
    return join ' ', keys %{ at($path, '')->{server}{capabilities}
                                                    {experimental} };
}

is(feature("/$_"), $_, "/$_ gets what its location says") for qw(b a b a);
is(probes($named), 2, 'each asked once');

done_testing();
