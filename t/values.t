#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Directives that decide about access see the values that count: nothing is
# allowed where a regular expression fails, no value is used that nginx computed
# before it knew who asks, no "map" changes $1 of a location, and what was set
# replaces what a "map" would give.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;

# with so many segments the stack of PCRE's JIT is exhausted

my $long = 'a/' x 10_000 . 'secret';
my $uri = 'file:///' . 'a/' x 8_000 . 'secret';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, resources => {} },
    'tools/list' => { tools => [map { {
        name => $_, inputSchema => { type => 'object' },
    } } 'plain', $uri] },
    'resources/read' => { contents => [] },
    'tools/call' => sub {
        my ($r) = @_;

        return { content => [], uri => $r->{uri}, headers => $r->{headers} };
    },
));

my $t = Mcp::Test->new(
    globals => 'pcre_jit on;', vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
large_client_header_buffers 4 64k;

map $mcp_name $secret {
    ~^file:///([^/]+/)*secret  1;
    default                    0;
}

map $http_x_long $long {
    ~^([^/]+/)*secret  secret;
    default            public;
}

map $user $tenant {
    alice    acme;
    default  guests;
}

limit_req_zone $tenant$long zone=early:1m rate=1000r/s;

map $mcp_name $reader {
    ~^(\w+)_read$  0;
    default        1;
}

map $mcp_name $named_reader {
    ~^(?<owner>\w+)_read$  0;
    default                1;
}

map $mcp_name $part {
    ~^(\w+)_read$  part;
    default        none;
}

map $http_x_tenant $forged   { default $http_x_tenant; }
map $http_x_none   $blocked  { default 0; }
map $http_x_tenant $assigned { default $http_x_tenant; }

server {
    %%LISTEN%%
    server_name a.test;

    location /_up/ {
        internal;
        proxy_set_header X-Tenant $mcp_tenant;
        proxy_pass http://127.0.0.1:%%UP%%;
    }

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_deny $secret;
    }

    location = /tenant {
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_tenant $long;
    }

    location = /bind {
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_session_bind $long;
    }

    location = /key {
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_list_cache on key=$long;
    }

    location = /uri {
        mcp_endpoint zone=main;
        mcp_upstream u /_up/$long;
    }

    location = /auth {
        internal;
        proxy_pass http://127.0.0.1:%%PORT_auth%%;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
    }

    location = /user {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_user;
        limit_req zone=early burst=1000 nodelay;
        mcp_endpoint zone=main;
        mcp_tenant $tenant;
    }

    location = /publish {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_user;
        limit_req zone=early burst=1000 nodelay;
        mcp_publish zone=main kind=$tenant tenant=$tenant
                    id=$tenant$http_x_id;
    }

    location = /publish-long {
        allow 127.0.0.1;
        deny all;
        mcp_publish zone=main kind=a tenant=$long;
    }

    location ~ ^/of/([a-z]+)$ {
        mcp_endpoint zone=main name=of;
        mcp_upstream u /_up/$1/$part/$1;
        mcp_tenant $1-$part-$1;
        mcp_deny $reader;
    }

    location ~ ^/named/(?<owner>[a-z]+)$ {
        mcp_endpoint zone=main name=named;
        mcp_upstream u /_up/$owner;
        mcp_tenant $owner;
        mcp_deny $named_reader;
    }

    location = /set {
        set $assigned verified;
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_tenant $assigned;
    }

    location = /auth-set {
        auth_request /auth;
        auth_request_set $forged $upstream_http_x_user;
        auth_request_set $blocked $upstream_http_x_blocked;
        mcp_endpoint zone=main;
        mcp_upstream u /_up/mcp;
        mcp_tenant $forged;
        mcp_deny $blocked;
    }
}

server {
    %%LISTEN_auth%%

    location = /auth {
        add_header X-User $http_x_ask;
        add_header X-Blocked $http_x_block;
        return 204;
    }
}
EOF

subtest 'a regular expression of mcp_deny fails' => sub {
    my $s = $t->session;
    my $r = $s->call('resources/read', { uri => 'file:///a/secret' });

    is($r->{http}{status}, 403, 'a short URI is denied');

    $t->allow_log(qr/pcre/);
    $up->clear;

    $r = $s->call('resources/read', { uri => $uri });
    is($r->{http}{status}, 500, 'a long URI is refused');
    is(scalar $up->asked, 0, 'and is not forwarded');
    ok($t->log =~ /\[alert\].*pcre/, 'the log has the cause');
    ok($t->log =~ /\[error\].*could not evaluate "mcp_deny"/,
       'and names the directive');

    $r = $s->call('resources/read', { uri => 'file:///b' });
    is($r->{http}{status}, 200, 'the next request is served');

    $r = $s->call('tools/list', {});
    is($r->{result}, undef, 'no list shows a tool that may be denied');
};

subtest 'a regular expression of another directive fails' => sub {
    for (['/tenant', 'mcp_tenant'], ['/bind', 'mcp_session_bind'],
         ['/key', 'mcp_list_cache'])
    {
        my ($path, $directive) = @$_;
        my $s = $t->session(path => $path);

        $up->clear;

        my $r = $s->call('tools/call', { name => 'a' },
                         headers => { 'X-Long' => $long });

        is($r->{http}{status}, 500, "$directive: the request is refused");
        is(scalar $up->asked, 0, 'and is not forwarded');
        ok($t->log =~ /\[error\].*could not evaluate "$directive"/,
           'the log names the directive');
    }

    my $s = $t->session(path => '/uri');

    $up->clear;

    my $r = $s->call('tools/call', { name => 'a' },
                     headers => { 'X-Long' => $long });

    is($r->{result}, undef, 'mcp_upstream: there is no result');
    is(scalar $up->asked, 0, 'the request is not forwarded');
    ok($t->log =~ /\[error\].*could not evaluate "mcp_upstream"/,
       'the log names the directive');
};

subtest 'mcp_publish uses no value that a limit has cached' => sub {
    my $s = $t->session(path => '/user', headers => { 'X-Ask' => 'alice' });
    my $other = $t->session(path => '/user', headers => { 'X-Ask' => 'bob' });
    my ($stream, $others) = map { $_->open_get } $s, $other;

    my $publish = sub {
        my ($user) = @_;
        my $r = $t->post('/publish', { 'X-Ask' => $user,
                                       'Content-Type' => 'application/json' },
                         '{}');

        return json_decode($r->{body})->{events}[0];
    };

    is($publish->('alice')->{sessions}, 1, 'for one tenant');
    is($publish->('alice')->{repeated}, JSON::PP::true,
       'the id is the same each time');
    ok(!$publish->('bob')->{repeated}, 'and not that of another user');

    for ([acme => $stream], [guests => $others]) {
        my ($tenant, $of) = @$_;
        my $e = $of->method('notifications/message', 5);

        is($e->{json}{params}{details}{kind}, $tenant,
           "$tenant: the first event is of the own tenant");
    }
};

subtest 'a regular expression of mcp_publish fails' => sub {
    my $r = $t->post('/publish-long', { 'X-Long' => $long }, '{}');

    is($r->{status}, 500, 'the request is refused');
    ok($t->log =~ /\[error\].*could not evaluate "mcp_publish"/,
       'the log names the directive');
};

subtest 'a "map" does not change $1 of the location' => sub {
    for (['/of/acme', '/_up/acme/part/acme', 'acme-part-acme'],
         ['/named/acme', '/_up/acme', 'acme'])
    {
        my ($path, $uri, $tenant) = @$_;
        my $m = Mcp::Modern->new($t, path => $path);
        my $r = $m->call('tools/call', { name => 'another_read',
                                         arguments => {} });

        is($r->{json}{result}{uri}, $uri, "$path: the URI of the upstream");
        is($r->{json}{result}{headers}{'x-tenant'}, $tenant, 'the tenant');
    }
};

subtest 'what was set replaces what a "map" gives' => sub {
    for (['/set'], ['/auth-set', 'X-Ask' => 'verified']) {
        my ($path, @headers) = @$_;
        my $s = $t->session(path => $path, headers => {
            'X-Tenant' => 'forged', @headers,
        });
        my $r = $s->call('tools/call', { name => 'a' });

        is($r->{result}{headers}{'x-tenant'}, 'verified',
           "$path: the tenant is the one that was set");
    }

    my $c = $t->client(path => '/auth-set', headers => {
        'X-Tenant' => 'forged', 'X-Ask' => 'verified', 'X-Block' => '1',
    });

    is($c->initialize->{status}, 403, 'mcp_deny sees what was set');

    $c = $t->client(path => '/auth-set', headers => {
        'X-Tenant' => 'forged',
    });

    is($c->initialize->{status}, 403, 'an empty tenant was set');
};

done_testing();
