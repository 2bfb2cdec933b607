#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Many events in one POST to mcp_publish are taken in several turns of the
# event loop: others are served in between, memory stays bounded, and neither a
# client that leaves nor a reload ends the work.

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;

use Mcp::Test;

my $t = Mcp::Test->new(conf => <<'CONF', log_level => 'notice');
mcp_zone zone=main:8m;
client_max_body_size 32m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp { mcp_endpoint zone=main; }
    location = /status { mcp_status zone=main; }
    location = /publish { mcp_publish zone=main; }
}
CONF

my %json = ('Content-Type' => 'application/json');
my $lines = join '', map { qq({"topic":"t$_","n":$_}\n) } 1 .. 100;
my $array = '[' . join(',', ('{"topic":"a","n":1}') x 100_000) . ']';

my $n = 100_000;
my ($w) = $t->workers;
my $s = $t->session(conn => $t->conn_on_worker($w));
my $r;


# others are answered amid the work

for ([ 'lines', $lines x 1000 ], [ 'an array', $array ]) {
    my ($form, $body) = @$_;
    my $amid = 0;

    # this process may stand still for longer than the work takes

    for (1 .. 10) {
        $amid = amid($form, $body);
        last if $amid >= 3;
    }

    cmp_ok($amid, '>=', 3, "$form: others are answered meanwhile");
}


# memory: each worker's peak grows by little more than body and answer

my $small = peak();
$r = $t->publish($lines x 2000, undef, timeout => 60)->{json};
is($r->{accepted}, 2 * $n, 'twice as many');

SKIP: {
    skip 'a sanitizer keeps what was freed', 1 if $ENV{MCP_SANITIZED};
    cmp_ok(peak() - $small, '<', 24 * 1024, 'in bounded memory');
}


# an answer that would be long

$r = $t->publish("1\n" x 400_000, undef, timeout => 60)->{json};
is($r->{refused}, 400_000, 'bad lines are counted');
cmp_ok(scalar(@{ $r->{events} }), '>=', 100_000, 'and explained');
is(@{ $r->{events} } + $r->{omitted}, 400_000, 'up to a limit');


# the client leaves, the worker quits

my $before = published();
my $conn = $t->conn;
$conn->write($conn->format_request('POST', '/publish', \%json,
                                   $lines x 1000));
ok((wait_for { published() > $before }), 'the work has begun');
$conn->close;
ok((wait_for { published() == $before + $n } 30),
   'a client that leaves does not end it');

$before = published();
$conn = $t->conn;
$conn->write($conn->format_request('POST', '/publish', \%json,
                                   $lines x 1000));
ok((wait_for { published() > $before }), 'the work has begun');
ok($t->reload, 'reload');
is(json_decode($conn->response('POST')->{body})->{accepted}, $n,
   'a worker that quits ends it first');
ok($t->wait_old, 'and goes');

done_testing();


# how often another client was answered amid the work

sub amid {
    my ($form, $body) = @_;
    my $before = published();
    my $conn = $t->conn_on_worker($w);
    my $ping = $t->conn_on_worker($w);

    $conn->write($conn->format_request('POST', '/publish', \%json, $body));

    my ($amid, $ready) = (0, 0);
    my $select = IO::Select->new($conn->sock);

    until ($ready) {
        $ping->request('GET', '/worker', {}, undef);
        $ready = $select->can_read(0);
        $amid++ if !$ready && published() > $before;
    }

    $r = json_decode($conn->response('POST')->{body});
    is($r->{accepted}, $n, "$n events as $form");
    is(scalar(@{ $r->{events} }), $n, 'what became of each');

    return $amid;
}


sub published { $t->status->{events}{published} }


sub peak {
    my $most = 0;

    for ($t->workers) {
        my ($kb) = Mcp::Test::slurp_file("/proc/$_/status") =~ /VmHWM:\s+(\d+)/;
        $most = $kb if $kb > $most;
    }

    return $most;
}
