#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Answers that do not fit into the client's socket at once: by limit_rate, by a
# small window, because they are large. Each arrives whole, and the connection
# takes the next request, whatever the upstream does meanwhile.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Http2;
use Mcp::Modern;
use Mcp::Test;

my $json = 'application/json';
my $both = 'application/json, text/event-stream';

# by hand: a large text is slow to encode

sub answer {
    my ($r) = @_;
    return '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
           . ',"result":{"x":"' . 'x' x size($r) . '"}}';
}


sub size { $_[0]{json}{params}{arguments}{size} }


my $note = [event => notification('message', { level => 'info', data => 1 })];

my %tools = (
    json => sub { [json => answer($_[0])] },

    # in pieces, a moment between them
    pieces => sub {
        my ($r) = @_;
        my @part = unpack '(a50000)*', answer($r);

        return ([head => 200, { 'Content-Type' => $json }],
                map { [part => $_], [wait => 0.01] } @part);
    },

    stream => sub { ([sse => {}], $note, [event => answer($_[0])]) },

    # the answer in several lines, and the ends of lines in two pieces
    lines => sub {
        my ($r) = @_;
        my $text = answer($r) =~ s/,/,\n/gr =~ s/\n/\r\ndata:/gr;
        my @part = split /(?<=\r)/, "event:message\r\ndata:$text\r\n\r\n";

        return ([sse => {}], map { [part => $_], [wait => 0.01] } @part);
    },

    # leaves its stream open behind the answer
    open => sub { ([sse => {}], [event => answer($_[0])], [wait => 0.5]) },

    # and is heard of until its end
    busy => sub {
        my ($r) = @_;
        return ([sse => {}], [event => answer($r)],
                map { [wait => 0.05], [comment => 'on'] } 1 .. 8);
    },
);

my $long = 'i' x 300_000;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    initialize => sub {
        my ($r) = @_;
        return [json => Mcp::Upstream::result($r, {
            protocolVersion => '2025-11-25', instructions => $long,
            capabilities => { tools => {}, logging => {} },
            serverInfo => { name => 'up', version => '1' },
        }), { 'Mcp-Session-Id' => 'up' }];
    },
    sessions => 0,
    'tools/call' => sub { $tools{$_[0]{json}{params}{name}}->($_[0]) },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOC');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_h2%% http2;
    server_name localhost;
    mcp_message_limit 8m;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
    }

    location = /new {
        mcp_endpoint zone=main name=new;
        mcp_upstream up /_up listen=off;
    }

    location = /rate {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
        limit_rate 400k;
    }

    location = /after {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
        limit_rate 300k;
        limit_rate_after 100k;
        sendfile on;
        tcp_nopush on;
    }

    location = /huge {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
        mcp_message_limit 64m;
    }

    location = /buffered {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_buffered listen=off;
        limit_rate 400k;
        gzip on;
        gzip_types application/json;
    }

    location = /impatient {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
        send_timeout 2s;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }

    location = /_buffered {
        internal;
        proxy_buffering on;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /status { mcp_status zone=main; }
}
EOC

my $s = $t->session;


# limit_rate: each is answered, and so is the next on the same connection

for my $path (qw(/rate /after /buffered)) {
    for my $tool (sort keys %tools) {
        my $conn = $t->conn;

        for my $size (200, 150_000, 500) {
            is(call($tool, $size, $json, conn => $conn, path => $path), $size,
               "$path, $tool: $size");
        }
    }

    my $conn = $t->conn;
    is(call('stream', 150_000, $both, conn => $conn, path => $path), 150_000,
       "$path: a stream");
    is(call('json', 100, $both, conn => $conn, path => $path), 100,
       "$path: and JSON");
}


# without it: more than the socket takes, or than nginx writes at once

for my $tool (sort keys %tools) {
    for my $rcvbuf (0, 4096) {
        my $conn = $t->conn($rcvbuf ? (rcvbuf => $rcvbuf) : ());

        for my $size (300_000, 10, 3_500_000, 10) {
            next if $rcvbuf && $size > 1_000_000;
            is(call($tool, $size, $json, conn => $conn), $size,
               "$tool: $size" . ($rcvbuf ? ', small buffer' : ''));
        }
    }
}

is(call('json', 300_000, 'text/event-stream'), 300_000,
   'large JSON for who takes streams only');

for my $tool (qw(stream open lines)) {
    for my $rcvbuf (0, 4096) {
        my $conn = $t->conn($rcvbuf ? (rcvbuf => $rcvbuf) : ());

        for my $size (65_000, 300_000, 10, 900_000) {
            is(call($tool, $size, 'text/event-stream', conn => $conn), $size,
               "$tool: $size, as a stream"
               . ($rcvbuf ? ', small buffer' : ''));
        }
    }
}


# an event takes its size once, in one worker

SKIP: {
    skip 'the memory of a worker', 9 if $ENV{MCP_SANITIZED};

    my $modern = Mcp::Modern->new($t, path => '/huge');

    for ([$s, $json], [$s, 'text/event-stream'], [$modern, $json]) {
        my ($c, $accept) = @$_;
        my $before = memory();
        my $size = 60_000_000;

        my $m = $c->message('tools/call', { name => 'open', arguments => {
            size => $size } });
        my $r = do {
            local $s->{path} = '/huge';
            $c->post($m, $c == $s ? 'headers' : (), { Accept => $accept });
        };

        cmp_ok(length $r->{body}, '>', $size, "$size bytes for $accept");
        cmp_ok(memory() - $before, '<', 1.25 * $size, 'take no more memory');
        ok($t->reload && $t->wait_old, 'new workers');
    }
}


# HTTP/2, through a small window

for my $path (qw(/mcp /rate)) {
    for my $tool (sort keys %tools) {
        my $h2 = Mcp::Http2->new(port => $t->port('h2'), window => 1000);

        for my $size (200, 100_000, 500) {
            is(call($tool, $size, $json, conn => $h2, path => $path), $size,
               "HTTP/2, $path, $tool: $size");
        }
    }
}


# initialize

for my $version (1, 2) {
    for my $path (qw(/new /rate)) {
        my $conn = $version == 1 ? $t->conn(rcvbuf => 4096)
                   : Mcp::Http2->new(port => $t->port('h2'), window => 3000);

        for my $again (1, 2) {
            my $c = $t->client(path => $path, accept => $both);
            my $r = $c->initialize(conn => $conn);

            $r->{json} ||= json_decode($r->{body});
            is($r->{json}{result}{instructions}, $long,
               "a large initialize, HTTP/$version, $path");
        }
    }
}


# old workers stay until what they have is sent

{
    my $conn = do {
        local $s->{path} = '/rate';
        $s->send_only(message('open', 500_000), headers => { Accept => $json });
    };
    my $r = $conn->response('POST', stream => 1);

    ok($t->reload, 'reload amid an answer');
    is(length json_decode($r->{reader}->slurp(30))->{result}{x}, 500_000,
       'it is whole');
    ok($t->wait_old, 'and the old workers exit');
}


# a client that takes nothing

for my $tool (qw(pieces busy)) {
    local $s->{path} = '/impatient';
    my $started = $t->status->{calls}{started};
    my $conn = $s->send_only(message($tool, 3_500_000), rcvbuf => 4096,
                             headers => { Accept => $json });
    ok((wait_for { $t->status->{calls}{started} > $started }),
       "$tool is called");
    ok((wait_for { $t->status->{calls}{running} == 0 }), 'and ends');
    $conn->close;
}


# what nobody reads does not keep nginx from exiting

my @left = map {
    $s->send_only(message($_, 400_000), headers => { Accept => $json },
                  rcvbuf => 4096)
} sort keys %tools;

is($_->response('POST', stream => 1)->{status}, 200, 'an answer begins')
    for @left;
$_->close for @left;

done_testing();


# the most that workers had, in bytes

sub memory {
    my $kb = 0;

    for ($t->workers) {
        $kb += $1 if Mcp::Test::slurp_file("/proc/$_/status")
                     =~ /^VmHWM:\s+(\d+) kB/m;
    }

    return 1024 * $kb;
}


sub message {
    my ($tool, $size) = @_;

    return $s->message('tools/call', { name => $tool,
                                       arguments => { size => $size } });
}


# the size of what came, or what is wrong with it

sub call {
    my ($tool, $size, $accept, %o) = @_;

    my $m = message($tool, $size);
    my $r = do {
        local $s->{path} = $o{path} || '/mcp';
        $s->post($m, %o, headers => { Accept => $accept });
    };

    $r->{json} ||= json_decode($r->{body});

    return "$r->{error}, " . length($r->{body}) if $r->{error};
    return "status $r->{status}" if $r->{status} != 200;
    return 'cut' if $r->{truncated};
    return "no JSON: " . substr $r->{body}, 0, 200 unless ref $r->{json};
    return 'another id' if $r->{json}{id} ne $m->{id};
    return json_encode($r->{json}) unless $r->{json}{result};
    return length $r->{json}{result}{x};
}
