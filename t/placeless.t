#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Old workers that do not end take all places of a zone: new ones serve what
# needs none, and get a place when there is one.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

plan(skip_all => 'hundreds of processes are too many with sanitizers')
    if $ENV{MCP_SANITIZED};

use constant EACH => 64;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => { content => [] },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => EACH,
                       conf => <<'EOF');
mcp_zone zone=main:1m;

server {
    %%LISTEN%%

    location = /mcp { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
    location = /static { return 200 here; }
}
EOF

# nginx's own: a worker that stood still is told of others that are gone
$t->allow_log(qr/close\(\) channel failed/);

my @stopped;

END { kill 'CONT', @stopped if @stopped }

# each generation stands still before the next one comes, and keeps its places

for my $generation (1 .. 12) {
    my @live = $t->workers(all => 1);

    @stopped = @live;
    stand_still($_) for @live;
    kill 'HUP', $t->pid;

    wait_for { $t->workers(all => 1) >= @live + EACH } 60
        or die "no workers of generation $generation";

    last if wait_for { $t->log =~ /\[error\].* maximum number of workers/ } 1;
}

like($t->log, qr/\[error\] .*mcp zone "main".* maximum number of workers/,
     'a worker without a place says so');
unlike($t->log, qr/cannot be respawned/, 'no worker has exited');

my $r;

ok(wait_for(sub {
    $r = $t->client->initialize;
    $r->{status} == 503;
}, 20), 'MCP is refused by a worker without a place');
is($r->{json}{error}{code}, -32000, 'with an error');
ok($r->{headers}{'retry-after'}, 'for a while');
is($t->get('/static')->{body}, 'here', 'all else is served');

kill 'CONT', @stopped;
@stopped = ();

ok(wait_for(sub { $t->workers(all => 1) == EACH }, 60), 'the old workers end');

# any of the workers may take a connection

ok(wait_for(sub {
    my @r = map { $t->client->initialize->{status} } 1 .. 30;
    !grep { $_ != 200 } @r;
}, 20), 'and the new ones have places');

done_testing();


# A worker that stands still where it waits for events: one that has the zone's
# lock would let no new worker begin.

sub stand_still {
    my ($pid) = @_;

    wait_for {
        kill 'STOP', $pid;
        scalar(wait_for {
            Mcp::Test::slurp_file("/proc/$pid/stat") =~ /\) T/;
        });

        # the numbers of epoll_wait() and epoll_pwait(); empty: not to be read

        my $in = Mcp::Test::slurp_file("/proc/$pid/syscall");
        return 1 if $in eq '' || $in =~ /^(?:232|281|22) /;

        kill 'CONT', $pid;
        return 0;
    };
}
