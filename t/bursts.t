#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An upstream sends more at once than the log keeps: the client that reads gets
# all of it, at whatever speed it reads, and worker and zone stay small. Where
# nobody reads, the log is overwritten, but the answer is kept.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $note = '{"jsonrpc":"2.0","method":"notifications/message","params":'
           . '{"level":"info","data":';

sub arguments { $_[0]{json}{params}{arguments} }


# notes $from .. $to in one piece, padded

sub notes {
    my ($from, $to, $pad) = @_;
    my $text = $pad ? ',"pad":"' . 'x' x $pad . '"' : '';

    return [part => join '', map { qq[data: $note$_$text}}\n\n] } $from .. $to];
}


sub done { [event => Mcp::Upstream::result($_[0], { done => 1 })] }


my %tools = (
    burst => sub {
        my ($r) = @_;
        my $a = arguments($r);

        return ([sse => {}], notes(1, $a->{n}, $a->{pad}), done($r));
    },
    # some, and when it is told to the rest
    twice => sub {
        my ($r) = @_;
        my $a = arguments($r);

        return ([sse => {}], notes(1, 3), [until => $a->{until}],
                notes(4, $a->{n}), done($r));
    },
);

my $mcp = Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {} },
    'tools/call' => sub { $tools{$_[0]{json}{params}{name}}->($_[0]) },
);

my $up = Mcp::Upstream->new($mcp);

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /one {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
        mcp_event_buffer 1;
    }

    location = /small {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
        mcp_event_buffer 20 1k;
        mcp_stream_buffer 1k;
    }

    location = /wide {
        mcp_endpoint zone=main;
        mcp_upstream up /_wide listen=off;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }

    location = /_wide {
        internal;
        proxy_buffer_size 256k;
        proxy_buffers 4 256k;
        proxy_busy_buffers_size 512k;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /status { mcp_status zone=main; }
}
EOC


# a client that reads

for my $path (qw(/mcp /one /small /wide)) {
    my $s = $t->session(path => $path);

    for my $n (1, 250, 300, 2000) {
        my $sse = burst($s, { n => $n });
        is(all_of($sse), "1 .. $n, the answer", "$path: $n at once");
    }

    my $sse = burst($s, { n => 30, pad => 100_000 });
    is(all_of($sse), '1 .. 30, the answer',
       "$path: 30 at once that are too large to be kept");

    my @calls = map { burst($s, { n => 700 + $_ }) } 1 .. 5;
    is(all_of($calls[$_]), '1 .. ' . (701 + $_) . ', the answer',
       "$path: one of several at once") for 0 .. $#calls;

    $sse = burst($s, { n => 3000, pad => 1000 }, rcvbuf => 4096);
    is(all_of($sse, 20), '1 .. 3000, the answer', "$path: read slowly");
}

my $s = $t->session;

for (['/mcp', 100_000, 0], ['/small', 10_000, 1100]) {
    my ($path, $n, $pad) = @$_;
    my @workers = $t->workers;
    my $before = anonymous(@workers);
    my $most = 0;
    my $sse = burst($t->session(path => $path), { n => $n, pad => $pad });
    my $got = all_of($sse, 0, sub {
        my $now = anonymous(@workers);
        $most = $now if $now > $most;
    });

    is($got, "1 .. $n, the answer", "$path: $n at once");
    within($most - $before, -100_000, 4096, 'with the memory that it had, in k')
        unless $ENV{MCP_SANITIZED};
}


# a client that leaves, and comes back for the answer

for my $n (100, 1000) {
    my $until = "left-$n";
    my $sse = $s->stream('tools/call', { name => 'twice', arguments => {
        n => $n, until => $until } });
    my @e = map { $sse->method('notifications/message') } 1 .. 3;

    is($e[2]{json}{params}{data}, 3, 'a call');
    $sse->close;
    ok((wait_for { $t->status->{streams}{open} == 0 }), 'is left');
    $up->release($until);
    ok((wait_for { $t->status->{calls}{running} == 0 }), 'and ends');

    my $get = $s->open_get(last_event_id => $e[2]{id});
    my ($first) = grep { ($_->{event} || $_->{data}) ne '' }
                  $get->event, $get->event;

    if ($n == 100) {
        is($first->{json}{params}{data}, 4, 'what it missed is there');

    } else {
        is($first->{event}, 'lagged', 'what is not kept is missed');
        is($first->{json}{missed}, 1000 - 3 - 255, 'it hears how much');
    }

    is_deeply($get->response($sse->{id})->{json}{result}, { done => 1 },
              "and the answer, behind $n");
    ok($get->eof && !$get->cut, 'and the end');
}


# a client that reads slowly gets an answer that waits for it, though its
# session has ended

for my $worker ($t->workers) {
    $s = $t->session;
    my $sse = burst($s, { n => 1, pad => 3_000_000 }, rcvbuf => 4096);

    ok((wait_for { $t->status->{calls}{running} == 0 }), 'answered');
    is($s->delete(conn => $t->conn_on_worker($worker))->{status}, 200,
       'a session ends');
    is(all_of($sse), '1 .. 1, the answer', 'whose answer was not read');
    ok(!$sse->cut, 'its stream ends');
}


# what a client that takes JSON only is not told fills its general line

{
    my $s = $t->session;
    my $json = 'application/json';

    my $r = $s->call('tools/call', { name => 'burst',
                                     arguments => { n => 1000 } },
                     headers => { Accept => $json });

    is($r->{http}{headers}{'content-type'}, $json, 'JSON');
    is_deeply($r->{result}, { done => 1 }, 'the answer');

    for my $n (1, 1, 400) {
        is(all_of(burst($s, { n => $n })), "1 .. $n, the answer",
           "later calls are answered all the same, $n");
    }

    is_deeply($s->call('tools/call', { name => 'burst',
                                       arguments => { n => 400 } },
                       headers => { Accept => $json })->{result},
              { done => 1 }, 'whatever they take');
}

done_testing();


sub burst {
    my ($s, $arguments, %o) = @_;

    return $s->stream('tools/call', { name => 'burst',
                                      arguments => $arguments }, %o);
}


# what a stream brings to its end, as text: "1 .. 20, the answer"

sub all_of {
    my ($sse, $slow, $look) = @_;
    my ($text, $next, $answer) = ('', 1, '');
    my $body = $sse->{body};
    my $end = time() + 60 * ($ENV{MCP_SLOW} || 1);
    my $reads = 0;

    while (!$body->{done} || length $body->{out}) {
        defined $body->more($end - time()) or return "hangs behind $next";
        $look->() if $look && $reads++ % 20 == 0;
        sleep 0.002 if $slow && $reads++ % $slow == 0;

        $text .= $body->{out};
        $body->{out} = '';

        while ($text =~ /\G([^\n]*)\n/gc) {
            my $line = $1;

            if ($line =~ /"data":(\d+)/) {
                return "$1 in place of $next" if $1 != $next++;

            } elsif ($line =~ /^event: (.*)/) {
                return "$1 behind " . ($next - 1);

            } elsif ($line =~ /^data: .*"result":\{"done":1\}/) {
                $answer .= ', the answer';

            } elsif ($line =~ /^data: (.+)/) {
                $answer .= ", $1";
            }
        }

        $text = substr $text, pos $text if pos $text;
    }

    return '1 .. ' . ($next - 1) . $answer . ($body->{cut} ? ', cut' : '');
}


# k of memory of these processes, the shared zone aside

sub anonymous {
    my $k = 0;

    for my $pid (@_) {
        $k += $1 if Mcp::Test::slurp_file("/proc/$pid/status")
                    =~ /^RssAnon:\s+(\d+) kB/m;
    }

    return $k;
}
