#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Streams over TLS and HTTP/2, with curl as the client: events arrive at once,
# a reload ends them (without the last chunk, so that every client comes back),
# a client that leaves does no harm. HTTP/1.1 streams are parked, which shows in
# the access log: their line is written when the stream opens.

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();

use Mcp::Test;

my $dir = File::Temp::tempdir(CLEANUP => 1);

system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
       . " -keyout $dir/key.pem -out $dir/cert.pem 2>/dev/null") == 0
    or die 'openssl failed';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};

        return (
            [sse => {}],
            [event => notification('message', { level => 'info',
                                                data => "$name runs" })],
            [until => $name],
            [event => Mcp::Upstream::result($r, { content => [] })],
        );
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port, PEM => $dir },
                       conf => <<'EOF');
mcp_zone zone=main:4m;
mcp_drain_time 300ms;

log_format short '$server_port $request_method $status';
access_log %%DIR%%/short.log short;

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_tls%% ssl;
    listen 127.0.0.1:%%PORT_h2%% http2;
    listen 127.0.0.1:%%PORT_h2s%% ssl http2;
    server_name localhost;

    ssl_certificate      %%PEM%%/cert.pem;
    ssl_certificate_key  %%PEM%%/key.pem;

    location = /mcp {
        mcp_endpoint zone=main name=transports;
        mcp_upstream up /_up;
    }

    location = /held {
        mcp_endpoint zone=main name=transports;
        mcp_upstream up /_up;
        mcp_stream_park off;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /publish { mcp_publish zone=main; }
}
EOF

my %ways = (
    'TLS, parked'   => ['tls', 'https', '--http1.1', '/mcp', 1],
    'TLS, held'     => ['tls', 'https', '--http1.1', '/held', 0],
    'HTTP/2'        => ['h2', 'http', '--http2-prior-knowledge', '/mcp', 0],
    'HTTP/2 on TLS' => ['h2s', 'https', '--http2', '/mcp', 0],
);

for my $way (sort keys %ways) {
    my ($port, $scheme, $http, $path, $parked) = @{ $ways{$way} };
    my $s = $t->session;
    my $number = $t->port($port);
    my $url = "$scheme://localhost:$number$path";
    my $lines = () = $t->slurp('short.log') =~ /^$number GET/mg;

    my $get = curl($http, $url, $s, '-H', 'Accept: text/event-stream');

    ok((wait_for { $get->{text}->() =~ /^id: /m }), "$way: a stream");
    like($get->{text}->(), qr/^retry: \d+/m, "$way: says when to come back");

    my $seen = $parked ? wait_for { ready($number) > $lines } : 1;
    is(ready($number) - $lines, $parked, "$way: " . ($parked ? '' : 'not ')
       . 'parked');
    ok($seen, "$way: in time");

    publish("to $way");
    ok((wait_for { $get->{text}->() =~ /"data":"to \Q$way\E"/ }),
       "$way: an event arrives");

    # a call whose client leaves, and one whose client stays

    my $call = call($http, $url, $s, "gone-$port");
    ok((wait_for { $call->{text}->() =~ /gone-$port runs/ }),
       "$way: a call streams");
    kill 'KILL', $call->{pid};
    waitpid $call->{pid}, 0;
    $up->release("gone-$port");

    $call = call($http, $url, $s, "stay-$port");
    ok((wait_for { $call->{text}->() =~ /stay-$port runs/ }),
       "$way: another one");
    $up->release("stay-$port");
    is($call->{ended}->(), 0, "$way: which ends properly");
    like($call->{text}->(), qr/"result"/, "$way: with its answer");

    ok($t->reload, "$way: reload");
    is($get->{ended}->(), $http eq '--http1.1' ? 18 : 0,
       "$way: breaks a response in chunks off");
    ok($t->wait_old, "$way: and the old workers");

    is($s->call('ping')->{http}{status}, 200, "$way: the session goes on");
}

done_testing();


sub ready {
    my ($number) = @_;
    return scalar(() = $t->slurp('short.log') =~ /^$number GET/mg);
}


sub publish {
    my ($data) = @_;

    $t->publish(notification('message', { level => 'info', data => $data }));
}


sub call {
    my ($http, $url, $s, $name) = @_;

    return curl($http, $url, $s,
                '-H', 'Accept: application/json, text/event-stream',
                '-H', 'Content-Type: application/json', '--data-binary',
                json_encode($s->message('tools/call', { name => $name })));
}


# curl in a process of its own: what it has received, and its exit code

sub curl {
    my ($http, $url, $s, @more) = @_;

    my $out = File::Temp->new(DIR => $dir);
    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        Mcp::Test::in_child();
        open STDOUT, '>', $out->filename or POSIX::_exit(1);
        open STDERR, '>', '/dev/null';
        exec 'curl', '-sSNk', $http, '--max-time', 60,
             '-H', 'Mcp-Session-Id: ' . $s->id, @more, $url
            or POSIX::_exit(1);
    }

    return {
        pid => $pid, out => $out,
        text => sub { Mcp::Test::slurp_file($out->filename) },
        ended => sub { waitpid $pid, 0; return $? >> 8 },
    };
}
