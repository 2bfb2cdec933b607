#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A worker is killed that has the lock of the zone: another one releases the
# lock, and serves, before nginx's master knows of the death (here the master is
# stopped, so that it cannot know).

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $t = Mcp::Test->new(user => 'nobody nogroup', conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp { mcp_endpoint zone=main; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my ($one, $two) = $t->workers;
my $conn = $t->conn_on_worker($two);
my $session = $t->session;

# the lock is the first word of the largest shared mapping

my $from = (sort { $b->[1] <=> $a->[1] } map {
    /^(\w+)-(\w+) ...s/ ? [from_hex($1), from_hex($2) - from_hex($1)] : ()
} split /\n/, Mcp::Test::slurp_file("/proc/" . $t->pid . "/maps"))[0][0];

open my $memory, '<:raw', '/proc/' . $t->pid . '/mem'
    or plan(skip_all => "the memory of nginx: $!");

my $holder = sub {
    sysseek $memory, $from, 0 and sysread $memory, my $word, 8 or die $!;
    return unpack 'Q', $word;
};

# events are published, until the worker has stopped with the lock

my @events = (notification('message', { level => 'info', data => 'x' })) x 100;
my $load = fork // die $!;

if ($load == 0) {
    Mcp::Test::in_child();

    for ( ;; ) {
        my $to = $t->conn_on_worker($one);

        $t->publish(\@events, undef, conn => $to) for 1 .. 50;
    }
}

my $held = 0;

for (1 .. 5000) {
    kill 'STOP', $one;
    wait_for { state_of($one) eq 'T' };
    last if $held = $holder->() == $one;
    kill 'CONT', $one;
    select undef, undef, undef, rand 0.003;
}

ok($held, 'a worker is stopped that has the lock');

$t->allow_log(qr/worker process $one exited on signal/);
kill 'STOP', $t->pid;
kill 'KILL', $one;

is($session->delete(conn => $conn)->{status}, 200, 'another one serves');
isnt($holder->(), $one, 'with the lock');

kill 'CONT', $t->pid;
kill 'KILL', $load;
waitpid $load, 0;

ok((wait_for { $t->workers == 2 && !grep { $_ == $one } $t->workers }),
   'a new worker replaces the dead one');
is($t->session->call('ping')->{http}{status}, 200, 'and all serve');
unlike($t->log, qr/was locked by/, 'nginx had nothing to release');

done_testing();


sub from_hex { unpack 'Q>', pack 'H16', sprintf '%016s', $_[0] }


sub state_of {
    my ($pid) = @_;

    my ($state) = Mcp::Test::slurp_file("/proc/$pid/stat") =~ /\) (\w)/;
    return $state // 'X';
}
