#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# One upstream of several endpoints: it is asked once what it is, for all
# endpoints that reach it in the same way, and separately where the location
# makes something of the endpoint's name.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;


# what it is can be changed; by the header X-What a location says which tools
# its endpoint has

sub server {
    my ($name, %o) = @_;

    my $tools = sub { return { tools => [ map {
        { name => $_, inputSchema => { type => 'object' } }
    } @{ $Mcp::Upstream::V{tools} || ['where'] } ] } };

    my %does = (
        'tools/list' => $tools,
        'tools/call' => sub {
            return { content => [ { type => 'text', text => $name } ] };
        },
    );

    my $old = Mcp::Upstream::mcp(%does,
        GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) });

    my %other = (modern => Mcp::Upstream::modern(%does),
                 rpc => Mcp::Upstream::mcp(%does, rpc => 1));

    return Mcp::Upstream->new(sub {
        my ($r) = @_;

        my $is = $Mcp::Upstream::V{is} || '';
        my $what = $r->{headers}{'x-what'};
        my $method = ref $r->{json} eq 'HASH' ? $r->{json}{method} || '' : '';

        return [until => 'slow'], [http => 503, {}, '']
            if $Mcp::Upstream::V{slow} && $method eq 'server/discover';

        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25', capabilities =>
                { tools => {}, experimental => { $what => {} } },
            serverInfo => { name => $name, version => '1' } }),
                { 'Mcp-Session-Id' => "s-$what" }]
            if defined $what && $method eq 'initialize';

        return $other{$is}->($r) if $other{$is};
        return $old->($r);
    });
}


my $up = server('up');
my $one = server('one');
my $named = server('named');
my $other = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] }));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, ONE => $one->port, NAMED => $named->port,
              OTHER => $other->port, USES => '' },
    conf => <<'EOF');
mcp_zone zone=main:8m;

map $mcp_endpoint $what {
    default "";
    ~named-(.*)$ $1;
}

log_format mcp '$mcp_endpoint $mcp_upstream';

server {
    %%LISTEN%%
    server_name localhost;

    access_log logs/mcp.log mcp;
    mcp_drain_time 100ms;

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

    # another timeout may have another outcome

    location = /patient {
        mcp_endpoint zone=main;
        mcp_upstream up /_up?$mcp_tenant;
        mcp_tenant t$http_x_tenant;
        mcp_upstream_timeout 50s;
    }

    location = /one-a { mcp_endpoint zone=main; mcp_upstream one /_one; }
    location = /one-b { mcp_endpoint zone=main; mcp_upstream one /_one; }
    location = /one-c { mcp_endpoint zone=main; mcp_upstream one /_one; }

    location = /one-legacy {
        mcp_endpoint zone=main;
        mcp_upstream one /_one protocol=legacy;
    }

    # the endpoint's name decides: by a header, and by the address

    location = /a { mcp_endpoint zone=main name=named-a;
                    mcp_upstream named /_named; }
    location = /b { mcp_endpoint zone=main name=named-b;
                    mcp_upstream named /_named; }
    location = /c { mcp_endpoint zone=main name=named-c;
                    mcp_upstream named /_named; }

    location = /_named {
        internal;
        proxy_pass http://127.0.0.1:%%NAMED%%/;
        proxy_set_header X-What $what;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_other { internal; proxy_pass http://127.0.0.1:%%OTHER%%/; }

    location = /_one {
        internal;
        proxy_pass http://127.0.0.1:%%ONE%%/;
        %%USES%%
    }

    location = /publish { allow 127.0.0.1; deny all; mcp_publish zone=main; }
    location = /status { allow 127.0.0.1; deny all; mcp_status zone=main; }
}

server {
    %%LISTEN%%
    server_name second;

    location = /one-a { mcp_endpoint zone=main; mcp_upstream one /_one; }
    location = /_one { internal; proxy_pass http://127.0.0.1:%%ONE%%/; }
}
EOF


# how often a probe began; what clients and shared sessions do is not counted

sub probes { scalar $_[0]->calls('server/discover') }

sub at {
    my ($path, %o) = @_;

    my $tenant = delete $o{tenant};

    return $t->session(path => $path, %o,
        headers => { defined $tenant ? ('X-Tenant' => $tenant) : (),
                     $o{host} ? (Host => $o{host}) : () });
}

sub text { my $r = shift; return $r && $r->{result}{content}[0]{text} }

sub state {
    my ($endpoint) = @_;

    my ($u) = grep { $_->{endpoint} eq $endpoint
                     && $_->{upstream} =~ /^(?:up|two|one|named)$/ }
              @{ $t->status->{upstreams} };
    return $u;
}


# with a prefix in the one, with bare names in the other

my $both = at('/both', tenant => 1);
my $alone = at('/alone', tenant => 1);

is(text($both->tool('two__where')), 'up', 'prefixed');
is(text($alone->tool('where')), 'up', 'bare');
is(probes($up), 1, 'it was asked once for both endpoints');

at($_, tenant => 1) for ('/both', '/alone') x 4;
is(probes($up), 1, 'on any worker');

is(state('localhost/both')->{state}, 'known', 'mcp_status: known to the one');
is(state('localhost/alone')->{state}, 'known', 'and to the other');

at($_, tenant => 2) for '/alone', '/both';
is(probes($up), 2, 'another tenant: once more');
is(state("localhost$_")->{tenants}{known}, 2, "mcp_status counts for $_")
    for '/both', '/alone';

at('/patient', tenant => 1);
is(probes($up), 3, 'with another timeout: by itself');


# the three, reached in the same way, and not

at("/one-$_") for qw(a b c a b c);
is(probes($one), 1, 'three endpoints, asked once');
at('/one-a', host => 'second');
is(probes($one), 2, 'in another server: by itself');
my $n = () = $one->calls('initialize');
at('/one-legacy');
cmp_ok(scalar(() = $one->calls('initialize')), '>', $n,
       'with its kind configured: by itself');


# the lists of each endpoint: a change is told once to the sessions of each

my %get = map { $_ => { both => $both, alone => $alone }->{$_}->open_get }
              qw(both alone);
my %names = (both => 'two__', alone => '');

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


# a deploy makes it a server of another kind: both endpoints notice

for my $kind (qw(modern rpc legacy)) {
    $up->set(is => $kind);
    $up->set(forget => 1) if $kind eq 'legacy';
    $up->drop;

    ok((wait_for { (text($both->tool('two__where')) || '') eq 'up' }),
       "now it is $kind: the one gets its answers");
    ok((wait_for { (text($alone->tool('where')) || '') eq 'up' }),
       'so does the other');
}


# away: clients of both begin with what is known, and both learn of the end

$up->refuse;
$up->drop;
$both->tool('two__where');

at($_, tenant => 1) for '/both', '/alone';
ok((wait_for { at('/both', tenant => 1);
               state('localhost/alone')->{state} eq 'away' }),
   'it is away for both');

$up->restore;
ok((wait_for { at('/alone', tenant => 1);
               state('localhost/both')->{state} eq 'known' }),
   'and is back for both');
ok((wait_for { (text($both->tool('two__where')) || '') eq 'up' }),
   'the one reaches it');
ok((wait_for { (text($alone->tool('where')) || '') eq 'up' }),
   'so does the other');


# the endpoint's name is used: each has what holds for it

sub feature {
    my ($path) = @_;
    return join ' ', keys %{ at($path)->{server}{capabilities}{experimental} };
}

is(feature("/$_"), $_, "/$_ gets what its location says") for qw(b a c b a c);
is(probes($named), 3, 'each asked once');
is(state("named-$_")->{state}, 'known', "mcp_status: named-$_") for qw(a b c);

$named->clear;
ok($t->reload, 'reload');
is(feature("/$_"), $_, "/$_, after a reload") for qw(c b a c b a);
is(probes($named), 3, 'each asked once again');

$named->refuse;
$named->drop;
ok($t->reload, 'reload while it is away');
is(feature("/$_"), $_, "/$_ has what was known of its own") for qw(b a c);
$named->restore;


# the configuration comes to use the name, and ceases to

$one->clear;
ok($t->reload, 'reload');
at("/one-$_") for qw(b c a);
is(probes($one), 1, 'after a reload it is asked once');

$one->clear;
$t->{vars}{USES} = 'proxy_set_header X-What $what-$mcp_endpoint;';
$t->configure;
ok($t->reload, 'now the location uses the name');
is(feature("/one-$_"), "-localhost/one-$_", "/one-$_ has its own")
    for qw(c a b);
is(probes($one), 3, 'each asked by itself');

$one->clear;
$t->{vars}{USES} = '';
$t->configure;
ok($t->reload, 'it does not any more');
at("/one-$_") for qw(b c a);
is(probes($one), 1, 'asked once again');


# while it hangs, no endpoint asks it once more

$one->set(slow => 1);
ok($t->reload, 'reload before it hangs');
$one->clear;

my @conns = map {
    my $c = $t->client(path => "/one-$_");
    $c->send_only($c->message('initialize', {
        protocolVersion => '2025-11-25', capabilities => {},
        clientInfo => { name => 'x', version => '1' } }));
} qw(a b c);

$one->wait_requests(sub { ($_[0]{json}{method} || '') eq 'server/discover' });

my @got = map { $_->response('POST', timeout => 15 * ($ENV{MCP_SLOW} || 1))
                ->{status} } @conns;
is("@got", '200 200 200', 'all begin with what was known');
is(probes($one), 1, 'and one asked');
$one->set(slow => 0);
$one->release('slow');

done_testing();
