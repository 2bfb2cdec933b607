#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Batches that end otherwise than by their last answer: the client leaves, or
# cancels a message that was refused.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};

        return (
            [sse => {}],
            [until => $name],
            [event => Mcp::Upstream::result($r, {
                content => [{ type => 'text', text => $name }] })],
        );
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => 2,
                       conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    mcp_batch on;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_upstream up /_up listen=off;
        mcp_tenant $http_x_tenant;
        mcp_call_limit 8;
    }

    location = /waits {
        mcp_endpoint zone=main name=waits;
        mcp_builtin_tools wait_for_event;
        mcp_topic_limit 8;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

sub calls { json_decode($t->get('/status')->{body})->{calls} }

sub batch {
    my ($tenant, @names) = @_;
    my $s = $t->session(version => '2025-03-26',
                        headers => { 'X-Tenant' => $tenant });

    return $s, $s->send_only([
        map { $s->message('tools/call', { name => $_ }) } @names ]);
}


# clients leave

my ($modest, $kept) = batch('modest', 'modest');
my @greedy = map { (batch('greedy', ('greedy') x 8))[1] } 1 .. 6;

ok(wait_for(sub { $up->calls('tools/call') == 49 }), 'all of them run')
    or diag(scalar $up->calls('tools/call'));

$_->close for @greedy;

my $calls;
ok(wait_for(sub {
    $calls = calls();
    $calls->{running} <= 2 * 8 + 1
    && $calls->{abandoned} == 49 - $calls->{running}
}), 'so many run on in each worker, the others are cancelled')
    or diag(json_encode($calls));
cmp_ok($calls->{running}, '>=', 9, 'but many');

my %cancelled;
ok(wait_for(sub {
    %cancelled = map { $_->{headers}{'mcp-session-id'} . ' '
                       . $_->{json}{params}{requestId} => 1 }
                 $up->calls('notifications/cancelled');
    keys %cancelled >= calls()->{abandoned}
}), 'the upstream is told of each') or diag(scalar keys %cancelled);

$up->release('greedy');
ok(wait_for(sub { calls()->{running} == 1 }), 'the others come to their end');

$up->release('modest');
my $r = $modest->read_response($kept->response('POST'));
is($r->{messages}[0]{result}{content}[0]{text}, 'modest',
   'who stays is answered');
ok(wait_for(sub { calls()->{running} == 0 }), 'and none runs');


# a message that was refused is not there to be cancelled

my $s = $t->session(path => '/waits', version => '2025-03-26');

my $conn = $s->send_only([ map {
    $s->message('tools/call', {
        name => 'wait_for_event',
        arguments => { topic => $_, timeout_seconds => 60 }
    }, id => $_)
} qw(first second) ]);

ok(wait_for(sub { calls()->{running} >= 1 }), 'a batch waits');

$s->notify('notifications/cancelled', { requestId => 'second' });
is($conn->fill(0), undef, 'nothing is answered yet');

$t->publish({ topic => 'first', kind => 'k' });

$r = $s->read_response($conn->response('POST'));
is($r->{status}, 200, 'the batch is answered');
is_deeply([ map { [ $_->{id}, $_->{result}{isError} ? 'refused' : 'result' ] }
            sort { $a->{id} cmp $b->{id} } @{ $r->{messages} || [] } ],
          [ [ 'first', 'result' ], [ 'second', 'refused' ] ],
          'with each of its answers') or diag($r->{body});

done_testing();
