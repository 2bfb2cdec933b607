#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A request that was accepted is answered, once, whole, whatever the speed of
# either side: upstreams that answer in any shape, clients that read in any
# way, locations with any limits. Several clients at a time draw what they do,
# for MCP_SECONDS (12). The seed is printed; MCP_SEED repeats a run.

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::MD5 qw(md5_hex);
use File::Temp ();

use Mcp::Http2;
use Mcp::Test;

my $clients = 6;
my $seconds = $ENV{MCP_SECONDS} || 12;

# the largest answer takes half a minute where the speed is limited

my $patience = 120 * ($ENV{MCP_SLOW} || 1);
my $seed = defined $ENV{MCP_SEED} ? $ENV{MCP_SEED} : int rand 1_000_000_000;

diag("MCP_SEED=$seed");
srand $seed;

my $json = 'application/json';
my $sse = 'text/event-stream';

sub one { $_[rand @_] }


# the upstream answers in the shape that the arguments say

sub text_of { substr "$_[0]-" x (1 + $_[1] / length("$_[0]-")), 0, $_[1] }


sub event_of {
    my ($a, $n) = @_;
    my $pad = text_of($n, $a->{note});

    return '{"jsonrpc":"2.0","method":"notifications/message","params":'
           . qq[{"level":"info","data":{"n":$n,"pad":"$pad"}}}];
}


sub shape {
    my ($r) = @_;
    my $a = $r->{json}{params}{arguments};
    my $text = text_of($a->{key}, $a->{size});
    my $answer = '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
                 . qq[,"result":{"sum":"] . md5_hex($text)
                 . qq[","text":"$text"}}];
    my @do;

    push @do, [wait => $a->{before}] if $a->{before};

    my $body = $answer;

    if ($a->{sse}) {
        push @do, [sse => {}];
        $body = join '', map { "data: $_\n\n" }
                         (map { event_of($a, $_) } 1 .. $a->{notes}), $answer;

    } elsif (!$a->{pieces}) {
        return @do, [json => $answer];

    } else {
        push @do, [head => 200, { 'Content-Type' => $json }];
    }

    my $size = $a->{pieces} ? int(length($body) / $a->{pieces}) + 1
                            : length $body;

    for (my $i = 0; $i < length $body; $i += $size) {
        push @do, [part => substr $body, $i, $size];
        push @do, [wait => $a->{pause}] if $a->{pause};
    }

    push @do, [wait => $a->{open}] if $a->{open};

    return @do;
}


my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    sessions => 0, capabilities => { tools => {}, logging => {} },
    'tools/call' => \&shape,
));

my $dir = File::Temp::tempdir(CLEANUP => 1);

system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
       . " -keyout $dir/key.pem -out $dir/cert.pem 2>/dev/null") == 0
    or die 'openssl failed';

my $locations = '';
my $paths = 8;

for my $i (1 .. $paths) {
    my @lines = (
        'mcp_endpoint zone=main name=mcp',
        'mcp_upstream up ' . one('/_up', '/_up', '/_wide', '/_buffered')
        . ' listen=off',
        one('', '', 'limit_rate ' . one('300k', '1m')),
        one('', '', 'limit_rate_after ' . one('1k', '100k')),
        'sendfile ' . one('on', 'off'), 'tcp_nodelay ' . one('on', 'off'),
        'tcp_nopush ' . one('on', 'off'),
        one('', 'sendfile_max_chunk ' . one('16k', '100k')),
        one('', 'gzip on', 'output_buffers 1 4k'),
        one('', 'gzip_types application/json'),
        one('', 'postpone_output ' . one(0, 8000)),
        one('', 'mcp_stream_buffer ' . one('1k', '16k', '300k')),
        one('', 'mcp_stream_after ' . one('10ms', '100ms')),
    );

    $locations .= "    location = /mcp$i {\n"
                  . join('', map { "        $_;\n" } grep { $_ ne '' } @lines)
                  . "    }\n\n";
}

# a session keeps what the endpoint says that made it

my $buffers = join '', map {
    "    location = /new$_ { mcp_endpoint zone=main name=mcp; "
    . "mcp_upstream up /_up listen=off; mcp_event_buffer "
    . one(1, 2, 8, 30, '256 1k', 256) . "; }\n"
} 1 .. 4;

my $t = Mcp::Test->new(vars => { UP => $up->port, PEM => $dir },
                       conf => <<"EOC");
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_h2%% http2;
    listen 127.0.0.1:%%PORT_tls%% ssl http2;
    server_name localhost;

    ssl_certificate      %%PEM%%/cert.pem;
    ssl_certificate_key  %%PEM%%/key.pem;


$locations
$buffers
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }

    location = /_wide {
        internal;
        proxy_buffer_size 128k;
        proxy_buffers 4 128k;
        proxy_busy_buffers_size 128k;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /_buffered {
        internal;
        proxy_buffering on;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}
EOC

my @pipes;

for my $n (1 .. $clients) {
    pipe my $in, my $out or die "pipe: $!";

    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        Mcp::Test::in_child();
        close $in;
        srand $seed + $n;
        eval { client($n, $out, time() + $seconds) } or print $out "$@\n";
        close $out;
        POSIX::_exit(0);
    }

    close $out;
    push @pipes, { pid => $pid, in => $in };
}

my %done;

for my $p (@pipes) {
    my $in = $p->{in};

    for my $line (<$in>) {
        chomp $line;

        if ($line =~ /^ok (.*)/) {
            $done{$1}++;

        } else {
            fail($line);
        }
    }

    waitpid $p->{pid}, 0;
}

my $all = 0;
$all += $_ for values %done;

ok($all > $clients, "$all requests are answered, seed $seed");
ok($done{$_}, ($done{$_} || 0) . " by $_")
    for grep { $seconds >= 10 } 'HTTP/1.1', 'HTTP/2', 'TLS';

done_testing();


sub client {
    my ($n, $out, $end) = @_;
    my $done = 0;

    while (time() < $end) {
        my $s = $t->session(path => '/new' . one(1 .. 4));
        my @ways = $done++ ? (('HTTP/1.1') x 3, 'HTTP/2', 'TLS')
                   : ('HTTP/1.1', 'HTTP/2', 'TLS')[$n % 3];
        my $way = one(@ways);
        my %how = (
            window => one(100, 5000, 65535), rcvbuf => one(0, 0, 4096, 20_000),
            slow => one(0, 0, 0, 0.001, 0.01), rate => one(0, 0, '200k'),
        );

        my @calls = map { draw($s) } 1 .. 1 + rand 4;
        my @got = $way eq 'TLS' ? curl($s, \%how, @calls)
                  : $way eq 'HTTP/2' ? http2($s, \%how, $end, @calls)
                  : http1($s, \%how, $end, @calls);

        for my $r (@got) {
            my $c = shift @calls;
            my $bad = judge($c, $r);

            print $out $bad ? "client $n, $way, "
                              . json_encode([\%how, $c->{accept}, $c->{path},
                                             $c->{m}{params}{arguments}])
                              . ": $bad\n"
                            : "ok $way\n";
            return 1 if $bad;
        }

        $out->flush;
    }

    return 1;
}


sub draw {
    my ($s) = @_;

    my $notes = one(0, 1, 5, 60, 700, 3000);
    my $bytes = one(1, 1000, 60_000, 65_500, 70_000, 500_000, 2_500_000);
    my $accept = one("$json, $sse", "$json, $sse", $json, $sse);
    my %a = (
        key => int rand 1_000_000_000,
        size => int(1 + rand $bytes),
        sse => one(0, 1),
        notes => $notes,
        note => $notes < 100 ? one(0, 10, 1000, one(0, 70_000)) : one(0, 50),
        pieces => one(0, 0, 1, 3, 10),
        pause => one(0, 0, 0.001, 0.02),
        open => one(0, 0, 0, 0.1, 0.5),
        before => one(0, 0, 0, 0.05, 0.2),
    );

    return { accept => $accept, path => '/mcp' . int(1 + rand $paths),
             m => $s->message('tools/call', { name => 'x',
                                              arguments => \%a }) };
}


# nothing, or what is wrong with a response

sub judge {
    my ($c, $r) = @_;

    my $a = $c->{m}{params}{arguments};

    return 'no response' unless $r;
    return "$r->{error} behind " . length $r->{body} if $r->{error};
    return "status $r->{status}: " . substr $r->{body}, 0, 200
        if $r->{status} != 200;
    return 'cut' if $r->{truncated};

    my ($next, @answers, $stream) = (1);
    my $body = $r->{body};

    if ($body =~ /\A(?:retry|id|data|:)/) {
        return "a stream for $c->{accept}" if $c->{accept} !~ /event/;
        return 'ends within an event' if $body !~ /\n\n\z/;

        $stream = 1;

        while ($body =~ /\G([^\n]*)\n/gc) {
            my $line = $1;

            return $line if $line =~ /^event: /;
            next unless $line =~ /^data: (.+)/;

            my $data = $1;

            if ($data =~ /^\{"jsonrpc":"2.0","method".*?"n":(\d+)/) {
                return "note $1 in place of $next" if $1 != $next;
                return "note $1 is changed" if $data ne event_of($a, $next++);
                return 'a note behind the answer' if @answers;

            } else {
                push @answers, $data;
            }
        }

    } else {
        return "JSON for $c->{accept}" if $c->{accept} eq $sse;
        @answers = $body;
    }

    return scalar(@answers) . ' answers' if @answers != 1;

    my $m = json_decode($answers[0]);
    return 'no JSON: ' . substr $answers[0], 0, 100 unless ref $m eq 'HASH';
    return 'another id' if $m->{id} ne $c->{m}{id};

    my $result = $m->{result} or return substr $answers[0], 0, 200;

    return 'another text' if $result->{sum} ne md5_hex($result->{text})
                             || $result->{text} ne text_of($a->{key},
                                                           $a->{size});
    return 'notes are missing: ' . ($next - 1) . " of $a->{notes}"
        if $stream && $a->{sse} && $next != $a->{notes} + 1;

    return;
}


sub http1 {
    my ($s, $how, $until, @calls) = @_;

    my $conn = $t->conn($how->{rcvbuf} ? (rcvbuf => $how->{rcvbuf}) : ());
    my @got;

    for my $c (@calls) {
        local $s->{path} = $c->{path};
        my $r = $s->post($c->{m}, conn => $conn, stream => 1,
                         headers => { Accept => $c->{accept} });
        my $body = $r->{reader};

        if (!$body) {
            push @got, $r;
            last;
        }

        my $end = time() + $patience;
        my $pauses = 0;

        until ($body->{done}) {
            if (!defined $body->more($end - time())) {
                $r->{error} = "not whole in $patience s";
                last;
            }

            sleep $how->{slow} if $how->{slow} && $pauses++ < 50;
        }

        $r->{body} = $body->{out};
        $r->{truncated} = $body->{cut};
        push @got, $r;

        # what is sent behind the end is an answer to nothing
        last if $r->{error} || $r->{truncated};

        if (length $conn->{in}) {
            $r->{error} = 'more than one response';
            last;
        }

        last if time() > $until;
    }

    return @got;
}


sub http2 {
    my ($s, $how, $until, @calls) = @_;

    my $h2 = Mcp::Http2->new(port => $t->port('h2'),
                             window => $how->{window});
    my $pauses = 0;
    my @got;

    for my $c (@calls) {
        push @got, $h2->request(
            'POST', $c->{path},
            $s->request_headers(headers => { Accept => $c->{accept} }),
            json_encode($c->{m}), timeout => $patience,
            pause => sub {
                sleep $how->{slow} if $how->{slow} && $pauses++ < 50;
            },
        );

        last if $got[-1]{error} || time() > $until;
    }

    return @got;
}


sub curl {
    my ($s, $how, @calls) = @_;

    my @args = ('curl', '-s', '-N');
    my $http = one('--http1.1', '--http2');
    my @out;

    for my $c (@calls) {
        push @args, '--next' if @out;
        push @out, File::Temp->new(DIR => $dir);

        my $h = $s->request_headers(headers => { Accept => $c->{accept} });

        push @args, '-k', $http, '--max-time', $patience,
             ($how->{rate} ? ('--limit-rate', $how->{rate}) : ()),
             (map { ('-H', "$_: $h->{$_}") } sort keys %$h),
             '--data-binary', json_encode($c->{m}),
             '-o', $out[-1]->filename, '-w', '%{http_code} %{exitcode}\n',
             'https://localhost:' . $t->port('tls') . $c->{path};
    }

    open my $fh, '-|', @args or die "curl: $!";
    my @said = <$fh>;
    close $fh;

    return map {
        my $body = Mcp::Test::slurp_file($_->filename);
        my ($status, $code) = (shift(@said) || '') =~ /^(\d+) (\d+)/;

        { status => $status || 0, body => $body,
          !defined $code ? (error => 'curl said nothing')
          : $code ? (error => "curl ended with $code") : () };
    } @out;
}
