#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# nginx without a master process, which cannot reload: it goes on as it is.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {} },
    'tools/list' => { tools => [] },
    'tools/call' => { content => [] },
));

my $t = Mcp::Test->new(globals => 'master_process off;',
                       vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
    location = /publish { mcp_publish zone=main; }
}
EOC

my $s = $t->session;
my $stream = $s->open_get;

$stream->event;

for my $n (1, 2) {
    $t->hup;

    ok(wait_for(sub {
        my @refused = $t->log =~ /\[emerg\].*"master_process off".*restart/g;
        @refused == $n
    }), 'a reload is refused, and the log says why');

    ok($s->call('ping', undef, conn => $t->conn)->{result},
       'a session goes on');
    ok($s->call('tools/call', { name => 'x' }, conn => $t->conn)->{result},
       'with its calls');
    ok($t->session->id, 'another one begins');

    is($t->publish({ %{ notification('message', { level => 'error',
                                                  data => "event $n" }) },
                     session_id => $s->id })->{status}, 202, 'an event');
    is($stream->method('notifications/message')->{json}{params}{data},
       "event $n", 'arrives');
}

$stream->close;

$t->allow_log(qr/master_process off/);

done_testing();
