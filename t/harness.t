#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The test library itself, on an nginx without the module.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [{ name => 'a' }] },
    'tools/call' => sub {
        my ($r) = @_;
        return (
            [sse => {}],
            [event => notification('message', { data => 1 }), id => 'e1'],
            [comment => 'alive'],
            [until => $r->{json}{params}{name}],
            [event => Mcp::Upstream::result($r, { content => [] }),
             id => 'e2'],
        );
    },
    'hang' => sub { return [hang =>] },
    'cut' => sub { return ([sse => {}], [event => 'x'], [cut =>]) },
    GET => sub {
        return ([sse => {}], [event => undef, id => 'p', retry => 700],
                [tag => 'feed']);
    },
));

my $conf = <<'EOF';
server {
    %%LISTEN%%

    location / {
        proxy_pass http://127.0.0.1:%%UP%%;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
    }
}
EOF

my $t = Mcp::Test->new(module => '', vars => { UP => $up->port },
                       conf => $conf);

my @workers = $t->workers;
is(@workers, 2, 'two workers');

for my $pid (@workers, reverse @workers) {
    my $conn = $t->conn_on_worker($pid);
    is($t->worker_of($conn), $pid, "connection on worker $pid");
}

my $s = $t->session;
like($s->id, qr/^up-/, 'session id');
is($s->{server}{serverInfo}{name}, 'up', 'server info');
is_deeply($s->call('tools/list')->{result}, { tools => [{ name => 'a' }] },
          'call');

$up->release('x');
my $r = $s->tool('x');
is_deeply($r->{result}, { content => [] }, 'answer in a stream');
is(@{ $r->{http}{messages} }, 2, 'messages of the stream');

my $sse = $s->stream('tools/call', { name => 'y' });
is($sse->status, 200, 'stream opened');
my $e = $sse->event;
is($e->{id}, 'e1', 'first event');
is($e->{json}{method}, 'notifications/message', 'its data');
is($sse->comment->{text}, 'alive', 'a comment is read as it arrives');
$up->release('y');
is_deeply($sse->event->{comments}, ['alive'], 'it stands before the second');
ok($sse->eof, 'end of stream');
ok(!$sse->cut, 'with a last chunk');

$sse = $s->stream('cut');
ok($sse->event, 'event before the cut');
ok($sse->eof, 'end');
ok($sse->cut, 'without a last chunk');

my $get = $s->open_get;
$e = $get->event;
is($e->{id}, 'p', 'priming event');
is($get->retry, 700, 'retry');
wait_for { $up->held('feed') == 1 };
is($up->emit('feed', [event => { n => 7 }, id => 'q']), 1, 'one reader');
is($get->event->{json}{n}, 7, 'pushed event arrives');
is($get->last_id, 'q', 'last id');
ok(!defined $get->event(0.05), 'and nothing more');

my $conn = $s->send_only($s->message('hang'));
my @seen = $up->wait_requests(sub { ($_[0]{json}{method} || '') eq 'hang' });
is(@seen, 1, 'upstream saw the request');
is($seen[0]{headers}{'mcp-session-id'}, $s->id, 'and its headers');
$conn->close;
ok((wait_for { ($up->calls('hang'))[0]{lost} }), 'and that it was left');

is($s->delete->{status}, 200, 'delete');
is($s->post({ jsonrpc => '2.0', id => 1, method => 'ping' })->{status}, 404,
   'session is gone');

$get->close;
ok($t->reload, 'reload');
ok($t->wait_old, 'old workers exit');
isnt("@{[$t->workers]}", "@workers", 'new workers');

$s = $t->session(version => '2025-06-18');
is($s->{negotiated}, '2025-06-18', 'version');

ok(!$t->reload(conf => 'nonsense;'), 'reload of a bad configuration');
$t->allow_log(qr/unknown directive "nonsense"/);
is($t->session->call('ping')->{http}{status}, 200, 'still served');

my ($victim) = $t->workers;
my $new = $t->kill_worker($victim);
ok($new && $new != $victim, 'a killed worker is replaced');

$up->refuse;
$up->drop;
is($t->post('/', {}, '{}')->{status}, 502, 'upstream refuses');
$up->restore;
is($t->session->call('ping')->{http}{status}, 200, 'upstream is back');

my ($code, $text) = $t->check(conf => 'bogus;');
is($code, 1, 'nginx -t fails');
like($text, qr/unknown directive "bogus"/, 'and says why');
$t->allow_log(qr/unknown directive "bogus"/);

my @ports = map { free_port() } 1 .. 20;
my %distinct = map { $_ => 1 } @ports;
is(keys %distinct, 20, 'ports are distinct');
is((grep { $_ >= 32768 } @ports), 0, 'and below the range of outgoing ones');

done_testing();
