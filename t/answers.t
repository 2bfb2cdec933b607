#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What answers are made of: lists without denied tools, streams for clients
# that take nothing else, upstreams that turn into something else.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my @tools = map { { name => $_, inputSchema => { type => 'object' } } }
    qw(read write delete), "quo\"te", 'caf\u00e9';

my %rpc = (
    'tools/list' => { tools => \@tools, nextCursor => 'more' },
    'tools/call' => sub { Mcp::Upstream::result($_[0], { content => [] })
                          && { content => [] } },
);

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(%rpc, rpc => 1));
my $port = free_port();

my $server = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [{ name => 'server' }] }));

# one says how it is to be used; the other, which has the resource, says this in
# a form that it may not have

my %says = (without => 'use it', with => { use => 'it' });

my %grown = map {
    my $name = $_;

    $name => Mcp::Upstream->new(Mcp::Upstream::mcp(
        initialize => sub {
            my ($r) = @_;

            return [json => Mcp::Upstream::result($r, {
                protocolVersion => $r->{json}{params}{protocolVersion},
                capabilities => { resources => { subscribe =>
                                                 JSON::PP::true } },
                serverInfo => { name => $name, version => '1' },
                instructions => $says{$name},
            }), { 'Mcp-Session-Id' => "$name-$$" }];
        },
        sessions => 0,
        'resources/subscribe' => sub {
            return $name eq 'with'
                   ? {} : [json => Mcp::Upstream::error($_[0], -32002, 'no')];
        },
        GET => sub { return ([sse => {}], [hang =>]) },
    ))
} keys %says;

my $t = Mcp::Test->new(vars => { UP => $up->port, TURN => $port,
                                 SERVER => $server->port, GROWN => '',
                                 WITHOUT => $grown{without}->port,
                                 WITH => $grown{with}->port },
                       conf => <<'EOF');
mcp_zone zone=main:4m;
limit_req_zone $server_name zone=slowly:1m rate=10r/s;

map $mcp_name $denied {
    default    0;
    write      1;
    ~^del      1;
    'quo"te'   1;
}

map $http_x_role $reader {
    default  0;
    guest    1;
}

map $mcp_tenant $backend {
    plain    127.0.0.1:%%UP%%;
    server   127.0.0.1:%%SERVER%%;
}

map "$reader:$mcp_name" $guest {
    default   0;
    1:read    1;
}

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=rpc;
        mcp_deny $denied $guest;
        add_header X-Key "[$mcp_list_key][$mcp_topic]";
    }

    location = /turn {
        mcp_endpoint zone=main;
        mcp_upstream turn /_turn;
    }

    location = /delayed {
        mcp_endpoint zone=main;
        mcp_upstream delayed /_delayed protocol=rpc;
    }

    location = /tenants {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_upstream tenants /_tenants;
    }

    location = /_tenants { internal; proxy_pass http://$backend; }

    location = /_delayed {
        internal;
        limit_req zone=slowly burst=10;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /grows {
        mcp_endpoint zone=main;
        %%GROWN%%
    }

    location = /_without {
        internal;
        proxy_pass http://127.0.0.1:%%WITHOUT%%/;
    }

    location = /_with { internal; proxy_pass http://127.0.0.1:%%WITH%%/; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_turn { internal; proxy_pass http://127.0.0.1:%%TURN%%/; }
}
EOF


# lists and calls agree on what is denied

my $s = $t->session;
my $r = $s->call('tools/list');

is_deeply([map { $_->{name} } @{ $r->{result}{tools} }],
          ['read', 'caf\u00e9'], 'denied tools are not listed');
is($r->{result}{nextCursor}, 'more', 'the rest of the list stays');
is($r->{http}{headers}{'x-key'}, '[][]', 'no list key, no topic');
is($s->tool('write')->{http}{status}, 403, 'a denied tool cannot be called');
is($s->tool('read')->{http}{status}, 200, 'another one can');

$r = $s->call('tools/list', undef, headers => { 'X-Role' => 'guest' });
is_deeply([map { $_->{name} } @{ $r->{result}{tools} }], ['caf\u00e9'],
          'who asks decides as well');
is($s->tool('read', {}, headers => { 'X-Role' => 'guest' })->{http}{status},
   403, 'as it does for the call');


# a client that takes streams only

$s = $t->session(accept => 'text/event-stream');
ok($s->{init}{sse}, 'initialize is answered in a stream');

for my $method ('ping', 'tools/list') {
    $r = $s->call($method);
    ok($r->{http}{sse}, "$method is answered in a stream");
    ok(exists $r->{result}, 'with its result');
}


# a plain handler becomes an MCP server, and the other way round

my $turn = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [{ name => 'plain' }] }, rpc => 1),
    port => $port);

$s = $t->session(path => '/turn');
is($s->call('tools/list')->{result}{tools}[0]{name}, 'plain', 'plain handler');

$turn->stop;
$turn = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [{ name => 'server' }] }), port => $port);

for ($t->workers) {
    $r = $s->call('tools/list', undef, conn => $t->conn_on_worker($_));
    is($r->{result}{tools}[0]{name}, 'server',
       'it turned into an MCP server, and is found out');
}

# one that was away may have come back with more

is_deeply([grep { /prompts|tools/ } sort keys
           %{ $t->session(path => '/turn')->{server}{capabilities} }],
          ['tools'], 'it has tools');

$turn->stop;
is($s->call('tools/list')->{http}{status}, 502, 'it goes away');

$turn = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] },
    capabilities => { tools => {}, prompts => {} }), port => $port);

$r = $s->call('tools/list');
is($r->{http}{status}, 200, 'and comes back') or diag($r->{http}{body});
is_deeply([grep { /prompts|tools/ } sort keys
           %{ $t->session(path => '/turn')->{server}{capabilities} }],
          ['prompts', 'tools'], 'with prompts, which a new session is told');

# each tenant may have another kind of server behind one location

my $conn = $t->conn_on_worker(($t->workers)[0]);
my %of = map { $_ => $t->session(path => '/tenants', conn => $conn,
                                 headers => { 'X-Tenant' => $_ }) }
             qw(plain server);

for (1, 2) {
    for my $tenant (sort keys %of) {
        $r = $of{$tenant}->call('tools/list');
        is($r->{result}{tools}[-1]{name},
           $tenant eq 'server' ? 'server' : 'caf\u00e9',
           "tenant \"$tenant\" is served by its own");
    }
}

unlike($t->log, qr/"tenants".*may have changed/, 'which have not changed');

# a limit of an upstream's location delays what it lets through

$s = $t->session(path => '/delayed');

is_deeply($s->call('tools/call', { name => 'read' })->{result},
          { content => [] }, "call $_ behind a limit") for 1 .. 3;

like($t->log, qr/delaying request/, 'was delayed');


# an endpoint without upstreams gets two

my %file = (uri => 'file:///a');

$s = $t->session(path => '/grows');
is_deeply($s->call('resources/subscribe', \%file)->{result}, {},
          'a subscription without an upstream');

ok($t->reload(vars => { %{ $t->{vars} }, GROWN =>
    'mcp_upstream without /_without; mcp_upstream with /_with;' }),
   'upstreams are added');

is($t->session(path => '/grows')->{server}{instructions}, 'use it',
   'how to use one is told, whatever is wrong with the other');

is_deeply($s->call('resources/subscribe', \%file)->{result}, {},
          'the subscription is repeated');

for (sort keys %grown) {
    is_deeply([map { $_->{json}{params}{uri} }
               $grown{$_}->calls('resources/subscribe')], ['file:///a'],
              "upstream \"$_\" is asked for it, and for nothing else");
}

done_testing();
