#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What ends while something else still knows of it: requests that their
# subrequests outlive, listeners that end in the turn in which the upstream
# says something, workers that quit while somebody waits for them. A worker
# that stands still gets all of it in one turn of its event loop.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {} },
    'logging/setLevel' => sub {
        my ($r) = @_;
        my $level = $r->{json}{params}{level};

        return {} unless $level =~ /^(?:alert|critical)$/;
        return ([until => $level], [json => Mcp::Upstream::result($r, {})]);
    },
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};
        my $answer = Mcp::Upstream::result($r, {
            content => [{ type => 'text', text => $name }] });

        return ([sse => {}], [event => $answer], [hang =>])
            if $name =~ /^endless/;
        return [json => $answer];
    },
    GET => sub { return ([sse => {}], [tag => 'get'], [hang =>]) },
));

my $slow = Mcp::Upstream->new(sub {
    my ($r) = @_;

    return [http => 202, {}, ''] unless defined $r->{json}{id};
    return ([until => 'known'], [json => Mcp::Upstream::result($r, {
        protocolVersion => '2025-11-25', capabilities => {},
        serverInfo => { name => 'slow', version => '1' } })]);
});

# answers and never ends it

my $endless = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $j = $r->{json};

    return [http => 405, {}, ''] unless $r->{method} eq 'POST';
    return [http => 202, {}, ''] unless defined $j->{id};
    return ([sse => { 'Mcp-Session-Id' => 'one' }],
            [event => Mcp::Upstream::result($r, $j->{method} ne 'initialize'
                ? { content => [] }
                : { protocolVersion => '2025-11-25', capabilities => {},
                    serverInfo => { name => 'e', version => '1' } })],
            [hang =>]);
});

my $conf = <<'EOF_CONF';
mcp_zone zone=main:4m;
mcp_drain_time 200ms;
mcp_stream_after 50ms;

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_h2%% http2;
    server_name localhost;

    location = /mcp     { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /slow    { mcp_endpoint zone=main; mcp_upstream slow /_slow; }
    location = /endless { mcp_endpoint zone=main;
                          mcp_upstream endless /_endless; }

    location = /_up      { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_slow    { internal; proxy_pass http://127.0.0.1:%%SLOW%%/; }
    location = /_endless { internal;
                           proxy_pass http://127.0.0.1:%%ENDLESS%%/; }
}
EOF_CONF

my $t = Mcp::Test->new(conf => $conf, vars => {
    UP => $up->port, SLOW => $slow->port, ENDLESS => $endless->port });

my ($one, $two) = $t->workers;
my $on_two = $t->conn_on_worker($two);


# an answer behind which the upstream's stream does not end

my $s = $t->session;
my $conn = $t->conn_on_worker($one);

for my $accept ('application/json, text/event-stream', 'application/json') {
    my $r = $s->tool('endless', {}, conn => $conn,
                     headers => { Accept => $accept });
    is($r->{result}{content}[0]{text}, 'endless', "answered, $accept");
    is($s->tool('next', {}, conn => $conn)->{result}{content}[0]{text}, 'next',
       'and the connection is of use again');
}

ok((wait_for {
       my @asked = grep { $_->{json}{params}{name} eq 'endless' }
                   $up->calls('tools/call');
       2 == grep { $_->{lost} } @asked;
   }), 'the upstream was let go');

my $begin = time();
my $e = $t->session(path => '/endless');
ok($e->tool('x')->{result}, 'an upstream that ends none of its streams');
within(time() - $begin, 0, 8, 'is no hindrance');


# a stream was opened for what is answered here

$s->tool('link');

my $sse = $s->stream('logging/setLevel', { level => 'alert' });
like($sse->headers->{'content-type'}, qr/event-stream/,
     'an upstream takes long to note a level');
$up->release('alert');
is_deeply($sse->response($sse->{id})->{json}{result}, {},
          'the answer is on the stream');
ok($sse->eof && !$sse->cut, 'which ends');


# who left on HTTP/2 is answered nothing

SKIP: {
    skip('curl is not installed', 1) unless `curl -V` =~ /HTTP2/;

    my $h = $s->request_headers(headers => { Accept => 'application/json' });

    my @curl = (qw(curl -s -o /dev/null --http2-prior-knowledge),
                (map { ('-H', "$_: $h->{$_}") } sort keys %$h), '-d',
                json_encode($s->message('logging/setLevel', {
                    level => 'critical' })),
                'http://127.0.0.1:' . $t->port('h2') . '/mcp');
    my $pid = fork;

    if (!$pid) {
        Mcp::Test::in_child();
        exec @curl or POSIX::_exit(1);
    }

    my $level = sub { ($_[0]{json}{params}{level} || '') eq 'critical' };
    ok($up->wait_requests($level), 'a client on HTTP/2 asks');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    $up->release('critical');
    wait_for { ($up->requests($level))[0]{ended} };
}


# a session is deleted in the turn in which the upstream's stream breaks

for my $n (1 .. 3) {
    $s = $t->session;
    my $get = $s->open_get(conn => $t->conn_on_worker($one));
    ok($get->event, "a stream, $n");
    ok((wait_for { $up->held('get') == 1 }), 'is listened for upstream');

    kill 'STOP', $one;
    $up->emit('get', [cut =>]);
    is($s->delete(conn => $on_two)->{status}, 200, 'its session is deleted');
    kill 'CONT', $one;

    ok($get->eof, 'and it ends');
}

is_deeply([$t->workers], [$one, $two], 'no worker was lost');


# workers quit while an upstream is being asked what it is

my $c = $t->client(path => '/slow');
$conn = $c->send_only($c->message('initialize', {
    protocolVersion => '2025-11-25', capabilities => {},
    clientInfo => { name => 'c', version => '1' } }));

ok($slow->wait_requests(sub { 1 }), 'an upstream is asked what it is');
ok($t->reload, 'reload');
$slow->release('known');

my $r = $conn->response('POST', timeout => 10);
is($r->{status}, 200, 'who waited for it is answered');
$conn->close;
ok($t->wait_old, 'and the old workers go');


# who listens for a session quits when a new worker has its stream already

ok((wait_for { $up->held('get') == 0 }), 'nobody listens');

($one, $two) = $t->workers;
$s = $t->session;
my $before = $s->open_get(conn => $t->conn_on_worker($one));

ok((wait_for { $up->held('get') == 1 }), 'a session is listened for');

kill 'STOP', $one;
kill 'HUP', $t->pid;

# the old ones are told to quit after the new ones have started

my $new;

ok((wait_for {
       ($new) = grep { $_ != $one } $t->workers;
       $new && !grep { $_ == $two } $t->workers(all => 1);
   } 20), 'reload');

my $now = $s->open_get(conn => $t->conn_on_worker($new));

is($now->status, 200, 'it has a stream in a new worker');
$before->close;
kill 'CONT', $one;
ok((wait_for { !grep { $_ == $one } $t->workers(all => 1) } 20),
   'the worker that listened goes');

$now = $s->open_get if $now->eof(20);
ok((wait_for { $up->held('get') == 1 }), 'and it is listened for again');

done_testing();
