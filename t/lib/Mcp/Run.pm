package Mcp::Run;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An nginx for long runs with numbered events (t/npm/events.mjs): endpoints
# one and two with rules of their own, tenants, identities, and a seed that is
# said and can be given.

use strict;
use warnings;

use Mcp::Test;
use Mcp::Node;


# options: workers; http, one, two: more directives of these levels; {feed} is
# the port of the server of feeds

sub new {
    my ($class, %o) = @_;

    my $http = $o{http} || '';
    my $one = $o{one} || '';
    my $two = $o{two} || '';
    my $feed = free_port();

    my $t = Mcp::Test->new(
        vars => { FEED => $feed }, workers => $o{workers} || 2,
        events => 'worker_connections 2048;', conf => <<"EOF");
mcp_zone zone=main:96m;

mcp_stream_retry 100ms;
mcp_drain_time   500ms;
mcp_event_buffer 1024;

client_body_buffer_size 1m;
$http

server {
    %%LISTEN%%
    server_name localhost;

    mcp_upstream     rpc /_rpc protocol=rpc;
    mcp_tenant       \$http_x_tenant;
    mcp_session_bind \$http_x_user;

    location = /one {
        mcp_endpoint   zone=main name=one;
        mcp_invalidate document "message=\$n" level=\$level
                                notify=notifications/document;
        mcp_invalidate changed  updated=\$path notify=notifications/changed;
        mcp_invalidate health   "message=\$n" level=\$level;
        mcp_invalidate *        drop;
        $one
    }

    location = /two {
        mcp_endpoint   zone=main name=two;
        mcp_invalidate document notify=notifications/other;
        mcp_invalidate health   "message=\$n" level=\$level;
        mcp_invalidate *        drop;
        $two
    }

    location /_feed/ {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/;
    }

    location = /_rpc {
        internal;
        default_type application/json;
        return 200 '{"jsonrpc":"2.0","id":\$mcp_request_id,"result":{}}';
    }

    location = /publish     { mcp_publish zone=main; }
    location = /publish-one { mcp_publish zone=main endpoint=one; }
    location = /publish-two { mcp_publish zone=main endpoint=two; }

    location = /status { mcp_status zone=main; }
}
EOF

    # workers are killed
    $t->allow_log(qr/exited on signal 9/);
    $t->allow_log(qr/was locked by/);

    return bless { t => $t, feed => $feed,
                   seed => $ENV{MCP_SEED} || int rand 1e9 }, $class;
}


sub t { $_[0]{t} }


# a script of t/npm, with port, pid of the master, the seed, and arguments

sub check {
    my ($self, $script, @arguments) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    Mcp::Node->check("$script, MCP_SEED=$self->{seed}",
                     [Mcp::Node::node(), $script, $self->{t}->port,
                      $self->{t}->pid, $self->{seed}, @arguments],
                     timeout => 300);
}


1;
