#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# GETs that resume calls: one for each call, and mcp_stream_limit counts them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};

        return (
            [sse => {}],
            [event => notification('message',
                                   { level => 'info', data => 'begun' })],
            [until => $name],
            [event => Mcp::Upstream::result($r, { content => [
                { type => 'text', text => $name } ] })],
        );
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
        mcp_stream_limit 3;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }

    location = /status { mcp_status zone=main; }
}
EOF

sub streams { json_decode($t->get('/status')->{body})->{streams} }

my $s = $t->session;


# a call whose id is known; the client has left

sub call {
    my ($name) = @_;
    my $sse = $s->stream('tools/call', { name => $name });
    my $e;

    $e = $sse->event until !$sse || ($e && $e->{json});
    $sse->close;

    return $e->{id};
}


my @ids = map { call("call$_") } 1 .. 5;
ok(wait_for(sub { streams()->{open} == 0 }), 'the clients have left');

my @gets = map { $s->open_get(last_event_id => $ids[0]) } 1 .. 8;

my $streams;
ok(wait_for(sub {
    $streams = streams();
    $streams->{open} == 1 && $streams->{closed_replaced} == 7;
}), 'a call has one reader, the others were replaced')
    or diag(json_encode($streams));
is(scalar(grep { $_->eof && !$_->cut } @gets[0 .. 6]), 7, 'and ended well');

push @gets, map { $s->open_get(last_event_id => $ids[$_]) } 1 .. 3;
ok(wait_for(sub { streams()->{open} == 3 }), 'readers of calls are counted');
ok($gets[7]->eof, 'the oldest of them is closed');

my $general = $s->open_get;
ok($gets[8]->eof, 'also by one on the general line');

$up->release("call$_") for 1 .. 5;

for my $i (9, 10) {
    my $e = $gets[$i]->event_where(sub { $_[0]{json} && $_[0]{json}{result} });
    is($e && $e->{json}{result}{content}[0]{text}, 'call' . ($i - 6),
       'who stayed has the answer');
}

my $get = $s->open_get(last_event_id => $ids[0]);
my $e = $get->event_where(sub { $_[0]{json} && $_[0]{json}{result} });
is($e && $e->{json}{result}{content}[0]{text}, 'call1',
   'and who was replaced gets it when it resumes');

done_testing();
