#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Directives that decide about access see the values that count: nothing is
# allowed where a regular expression fails.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

# with so many segments the stack of PCRE's JIT is exhausted

my $long = 'a/' x 10_000 . 'secret';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, resources => {} },
    'tools/list' => { tools => [map { {
        name => $_, inputSchema => { type => 'object' },
    } } 'plain', "file:///$long"] },
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

server {
    %%LISTEN%%
    server_name a.test;

    location /_up/ { internal; proxy_pass http://127.0.0.1:%%UP%%; }

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
}
EOF

subtest 'a regular expression of mcp_deny fails' => sub {
    my $s = $t->session;
    my $r = $s->call('resources/read', { uri => 'file:///a/secret' });

    is($r->{http}{status}, 403, 'a short URI is denied');

    $t->allow_log(qr/pcre/);
    $up->clear;

    $r = $s->call('resources/read', { uri => "file:///$long" });
    is($r->{http}{status}, 500, 'a long URI is refused');
    is($up->count, 0, 'and is not forwarded');
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
        is($up->count, 0, 'and is not forwarded');
        ok($t->log =~ /\[error\].*could not evaluate "$directive"/,
           'the log names the directive');
    }

    my $s = $t->session(path => '/uri');

    $up->clear;

    my $r = $s->call('tools/call', { name => 'a' },
                     headers => { 'X-Long' => $long });

    is($r->{result}, undef, 'mcp_upstream: there is no result');
    is($up->count, 0, 'the request is not forwarded');
    ok($t->log =~ /\[error\].*could not evaluate "mcp_upstream"/,
       'the log names the directive');
};

done_testing();
