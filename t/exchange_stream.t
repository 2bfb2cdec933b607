#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Calls that stream: what an upstream sends while it works, requests to the
# client, cancelling, leaving and coming back, on whichever worker.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

sub notice {
    my ($method, %params) = @_;
    return [event => notification($method, \%params)];
}


# by hand: a large text is slow to encode

sub large {
    my ($r) = @_;
    return '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
           . ',"result":{"x":"'
           . 'x' x $r->{json}{params}{arguments}{size} . '"}}';
}


sub in_array {
    my ($r) = @_;
    return [(map { notification('message', { level => $_, data => $_ }) }
             qw(info warning)),
            Mcp::Upstream::result($r, { done => 1 }),
            notification('message', { level => 'error', data => 'late' })];
}


sub result { return [event => Mcp::Upstream::result(@_)] }


my %tools = (
    # sends one thing after the other, as it is told to
    progress => sub {
        my ($r) = @_;
        my $p = $r->{json}{params};
        my $n = $p->{arguments}{n};
        my @progress = map { (notice('progress', progress => $_,
                                     progressToken =>
                                     $p->{_meta}{progressToken}),
                              [until => "$n-$_"]) } 1 .. 3;

        return ([sse => {}], @progress,
                notice('message', level => 'info', data => 'nearly'),
                [until => "$n-4"], result($r, { done => 1 }));
    },
    # says when it is about to wait, and waits to be released
    held => sub {
        my ($r) = @_;
        my $a = $r->{json}{params}{arguments};

        return ([sse => {}],
                notice('message', level => 'info', data => "begin $a->{n}"),
                [until => "end-$a->{n}"],
                notice('message', level => 'info', data => "end $a->{n}"),
                result($r, { n => $a->{n} }));
    },
    slow => sub {
        my ($r) = @_;
        my $a = $r->{json}{params}{arguments};

        return ([until => "slow-$a->{n}"],
                [json => Mcp::Upstream::result($r, {
                    n => $a->{n}, $a->{pad} ? (pad => 'x' x $a->{pad}) : (),
                })]);
    },
    ask => sub {
        my ($r) = @_;
        my $a = $r->{json}{params}{arguments};

        return ([sse => {}],
                [event => { jsonrpc => '2.0', id => $a->{id},
                            method => 'sampling/createMessage',
                            params => { _meta => {
                                            progressToken => $a->{id} },
                                        n => $a->{n} } }],
                [until => "asked-$a->{n}"],
                $a->{cancel} ? [event => {
                    jsonrpc => '2.0', method => 'notifications/cancelled',
                    params => { requestId => $a->{id} } }] : (),
                result($r, { n => $a->{n} }));
    },
    # ends its stream early, twice, and goes on when it is resumed
    early => sub {
        my ($r) = @_;
        $Mcp::Upstream::V{early} = $r;
        return ([sse => {}],
                [event => undef, id => 'e0', retry => 50],
                [@{ notice('message', level => 'info', data => 1) },
                 id => 'e1']);
    },
    # goes on when it is resumed, but has to be released
    'early and late' => sub {
        my ($r) = @_;
        $Mcp::Upstream::V{late} = $r;
        return ([sse => {}], [event => undef, id => 'late', retry => 20]);
    },
    # ends its stream before it said anything, and does not know it again
    'early and lost' => sub {
        return ([sse => {}], [event => undef, id => 'lost', retry => 20]);
    },
    large => sub {
        my ($r) = @_;
        return [json => large($r)];
    },
    'large in a stream' => sub {
        my ($r) = @_;
        my $size = $r->{json}{params}{arguments}{size};

        return ([sse => {}],
                notice('message', level => 'info', data => 'before'),
                [event => '{"jsonrpc":"2.0","method":"notifications/message",'
                          . '"params":{"level":"info","data":"'
                          . 'y' x $size . '"}}'],
                notice('message', level => 'info', data => 'after'),
                [event => large($r)]);
    },
    'more than its answer' => sub {
        my ($r) = @_;
        return ([sse => {}], result($r, {}), [until => 'enough']);
    },
    many => sub {
        my ($r) = @_;
        return ([sse => {}], (map { notice('message', level => 'info',
                                         data => $_) } 1 .. 100),
                result($r, { done => 1 }));
    },
    levels => sub {
        my ($r) = @_;
        return ([sse => {}], (map { notice('message', level => $_, data => $_) }
                              qw(debug info warning error)),
                result($r, { done => 1 }));
    },
    # the same in an array, as servers of 2025-03-26 may send it
    array => sub { return [json => in_array(@_)] },
    'array in a stream' => sub {
        return ([sse => {}], [event => in_array(@_)]);
    },
    plain => sub { return { content => [] } },
);

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {}, logging => {} },
    'logging/setLevel' => {},
    'tools/call' => sub {
        my ($r) = @_;
        return $tools{$r->{json}{params}{name}}->($r);
    },
    GET => sub {
        my ($r) = @_;
        my $last = $r->{headers}{'last-event-id'};

        if (defined $last) {
            my $early = $Mcp::Upstream::V{early};

            return ([sse => {}],
                    [@{ notice('message', level => 'info', data => 2) },
                     id => 'e2', retry => 20])
                if $last eq 'e1';

            return ([sse => {}], [@{ result($early, { done => 1 }) },
                                  id => 'e3'])
                if $last eq 'e2';

            return ([sse => {}], [until => 'late'],
                    result($Mcp::Upstream::V{late}, { done => 1 }))
                if $last eq 'late';

            return [http => 400, { 'Content-Type' => 'application/json' },
                    '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,'
                    . '"message":"no session"}}']
                if $last eq 'lost';

            return [http => 404, {}, ''];
        }

        return ([sse => {}], [tag => "feed-$r->{headers}{'mcp-session-id'}"]);
    },
));

# the same as above for what knows no sessions

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => { tools => [] },
    'tools/call' => sub {
        my ($r) = @_;
        return $tools{$r->{json}{params}{name}}->($r);
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port, RPC => $rpc->port },
                       conf => <<'EOF');
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name mcp.test;

    mcp_message_limit 8m;

    location = /mcp { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /rpc { mcp_endpoint zone=main;
                      mcp_upstream rpc /_rpc protocol=rpc; }

    location = /one { mcp_endpoint zone=main; mcp_upstream up /_up;
                      mcp_call_limit 1; }

    location = /after {
        mcp_stream_after 300ms;
        mcp_stream_heartbeat 200ms;
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
    }

    location = /_up  { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }

    location = /status { mcp_status zone=main; access_log off; }
}
EOF

my ($w1, $w2) = $t->workers;

sub on { $t->conn_on_worker($_[0]) }

sub held {
    my ($s, $n, %o) = @_;
    return $s->stream('tools/call', { name => 'held',
                                      arguments => { n => $n } }, %o);
}


# what is sent arrives when it is sent

my $n = 0;

for my $path ('/mcp', '/rpc') {
    for my $token ('"p-1"', '7', '9007199254740993', '"7"') {
        my $s = $t->session(path => $path);
        my $server = $path eq '/rpc' ? $rpc : $up;
        my $name = 'progress-' . ++$n;
        my $body = '{"jsonrpc":"2.0","id":"call","method":"tools/call",'
                   . '"params":{"name":"progress","arguments":{"n":"'
                   . qq[$name"},"_meta":{"progressToken":$token}}}];
        my $sse = Mcp::Sse->new($s->post($body, stream => 1));

        is($sse->status, 200, "$path: stream opens");
        like($sse->headers->{'content-type'}, qr{^text/event-stream},
             'as an event stream');

        for (1 .. 3) {
            my $e = $sse->method('notifications/progress');
            is($e->{json}{params}{progress}, $_, "progress $_");
            like($e->{data}, qr/"progressToken":\Q$token\E[,}]/,
                 "token $token as it was sent");
            ok(length $e->{id}, 'has an id');
            $server->release("$name-$_");
        }

        my $e = $sse->method('notifications/message');
        is($e->{json}{params}{data}, 'nearly', 'a message');
        $server->release("$name-4");
        $e = $sse->response('call');
        is_deeply($e->{json}{result}, { done => 1 }, 'result');
        ok($sse->eof && !$sse->cut, 'and the end');

        last if $token eq '"p-1"' && $path eq '/rpc';
    }
}

# an upstream that has answered and does not end

my $talks = $t->session(path => '/one');

for (1, 2) {
    my $r = $talks->call('tools/call', { name => 'more than its answer' },
                         id => 'same');
    is_deeply($r->{result}, {}, 'does not hold up the next');
    is($r->{http}{headers}{'content-type'}, 'application/json',
       'and is JSON, as nothing came before its answer');
}

$up->release('enough');


# the form of a stream by revision

for my $version (qw(2025-03-26 2025-06-18 2025-11-25)) {
    my $s = $t->session(version => $version);
    my $sse = $s->stream('tools/call', { name => 'levels' });
    my @e = $sse->drain(10);
    my %ids;

    $ids{$_->{id}}++ for grep { defined $_->{id} } @e;

    my ($first) = $sse->lines;
    like($first->[1], qr/^retry: ?1000$/, "$version: retry is first");

    if ($version eq '2025-11-25') {
        is($e[0]{data}, '', 'priming event');
        ok(length $e[0]{id}, 'with an id');
        shift @e;

    } else {
        ok(!(grep { $_->{data} eq '' } @e), 'no priming event');
    }

    is(scalar @e, 5, 'messages');
    is(scalar(grep { $_ != 1 } values %ids), 0, 'distinct ids');
    is_deeply([map { $_->{json}{params}{level} || 'result' } @e],
              [qw(debug info warning error result)], 'in order');

    is_deeply($s->call('logging/setLevel', { level => 'warning' })->{result},
              {}, 'level');
    my $r = $s->call('tools/call', { name => 'levels' });
    is_deeply([map { $_->{params}{level} || 'result' }
               @{ $r->{http}{messages} }], [qw(warning error result)],
              'from this level on');
}


# an answer that is an array

for my $path ('/mcp', '/rpc') {
    for my $accept ('application/json, text/event-stream',
                    'application/json')
    {
        for my $tool ('array', 'array in a stream') {
            my $s = $t->session(path => $path, accept => $accept);
            my $r = $s->call('tools/call', { name => $tool });
            my @m = @{ $r->{http}{messages} };
            my $get = $s->open_get;

            is_deeply($r->{result}, { done => 1 }, "$path, $accept: $tool");

            push @m, map { $get->method('notifications/message')->{json} } 1, 2
                if $accept !~ /event/;

            is_deeply([map { $_->{params}{level} || 'result' } @m],
                      $accept =~ /event/ ? [qw(info warning result)]
                                         : [qw(result info warning)],
                      'has what is before its answer');
            $s->delete;
        }
    }
}


# a client that takes JSON only

{
    my $s = $t->session(accept => 'application/json');
    my $r = $s->call('tools/call', { name => 'levels' });

    is($r->{http}{headers}{'content-type'}, 'application/json', 'JSON');
    is_deeply($r->{result}, { done => 1 }, 'result');

    my $get = $s->open_get(conn => on($w2));
    is_deeply([map { $get->method('notifications/message')
                     ->{json}{params}{level} } 1 .. 4],
              [qw(debug info warning error)], 'notifications on its GET');

    my $conn = $s->send_only($s->message('tools/call', {
        name => 'held', arguments => { n => 'json' } }), conn => on($w1));
    is($get->method('notifications/message')->{json}{params}{data},
       'begin json', 'while the call runs');
    $up->release('end-json');
    is($get->method('notifications/message')->{json}{params}{data},
       'end json', 'and at its end');
    is_deeply($s->read_response($conn->response('POST'))->{json}{result},
              { n => 'json' }, 'result as JSON');
    ok(!$get->event(0.1), 'nothing else on its GET');

    # an SSE-only client

    $r = $s->call('tools/call', { name => 'plain' },
                  headers => { Accept => 'text/event-stream' });
    ok($r->{http}{sse}, 'who takes streams only gets one');
    is_deeply($r->{result}, { content => [] }, 'with the result');
}


# a slow JSON upstream

{
    my $s = $t->session(path => '/after');
    my $began = time();
    my $sse = $s->stream('tools/call', { name => 'slow',
                                         arguments => { n => 1 } });

    cmp_ok(time() - $began, '>=', 0.25, 'opened as a stream after a while');
    like($sse->headers->{'content-type'}, qr/event-stream/, 'SSE');
    ok($sse->comment, 'heartbeat');
    ok($sse->comment, 'another');
    $up->release('slow-1');
    is_deeply($sse->response($sse->{id})->{json}{result}, { n => 1 },
              'result');
    ok($sse->eof, 'end');

    # JSON only: waits

    my $json = $t->session(path => '/after', accept => 'application/json');
    my $conn = $json->send_only($json->message('tools/call', {
        name => 'slow', arguments => { n => 2 } }));

    $up->wait_requests(sub { ref $_[0]{json} eq 'HASH'
        && ($_[0]{json}{params}{arguments}{n} || '') eq '2' });
    ok(!defined $conn->fill(0.6), 'JSON only: nothing is sent meanwhile');
    $up->release('slow-2');

    my $r = $json->read_response($conn->response('POST'));
    is($r->{headers}{'content-type'}, 'application/json', 'JSON');
    is_deeply($r->{json}{result}, { n => 2 }, 'result');

    # one that is fast for its endpoint stays JSON

    $r = $t->session->call('tools/call', { name => 'plain' });
    is($r->{http}{headers}{'content-type'}, 'application/json',
       'a fast one stays JSON');
}


# requests of the upstream, answered on the other worker

{
    my @s = map { $t->session(caps => { sampling => {} }) } 1 .. 2;
    my @id = (0, 'q');
    my $minted = qr/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
    my (@sse, @mine, %mine);

    # two sessions, the same ids

    for my $i (0, 1) {
        for my $n (0, 1) {
            $sse[$i][$n] = $s[$i]->stream('tools/call', {
                name => 'ask', arguments => { id => $id[$n], n => "$i$n" }
            }, conn => on($n ? $w1 : $w2));

            my $e = $sse[$i][$n]->method('sampling/createMessage');
            $mine[$i][$n] = $e->{json}{id};
            $mine{ $e->{json}{id} } = 1;
            like($e->{json}{id}, $minted, 'id of the request is made here');
            is($e->{json}{params}{_meta}{progressToken}, $e->{json}{id},
               'the progress token, too');
            is($e->{json}{params}{n}, "$i$n", 'on its own line');
        }
    }

    is(scalar keys %mine, 4, 'no two are the same');

    # its id is of no use to another session

    $s[1]->respond($mine[0][0], { i => 'wrong' });

    for my $i (0, 1) {
        for my $n (1, 0) {
            $s[$i]->notify('notifications/progress', {
                progressToken => $mine[$i][$n], progress => "1$i$n"
            }, conn => on($w1));

            my ($told) = $up->wait_requests(sub {
                my $j = $_[0]{json};
                ref $j eq 'HASH' && ($j->{params}{progress} || '') eq "1$i$n"
            });
            ok($told && $told->{body} =~ ($n ? qr/"progressToken":"q"/
                                             : qr/"progressToken":0\b/),
               'progress has the upstream\'s token');

            my $r = $n ? $s[$i]->respond($mine[$i][$n], { i => "$i$n" },
                                         conn => on($w2))
                       : $s[$i]->respond_error($mine[$i][$n], -1, "$i$n",
                                               conn => on($w1));
            is($r->{status}, 202, 'answer is taken');
            is($r->{body}, '', 'without a body');

            my ($seen) = $up->wait_requests(sub {
                my $j = $_[0]{json};
                ref $j eq 'HASH' && !exists $j->{method}
                && ($j->{result}{i} || $j->{error}{message} || '') eq "$i$n"
            });
            ok($seen, 'upstream has it');
            is($seen->{json}{id}, $id[$n], 'with its id');
            ok($seen->{body} =~ ($n ? qr/"id":"q"/ : qr/"id":0\b/),
               'of its type');

            my ($asked) = $up->requests(sub {
                ref $_[0]{json} eq 'HASH'
                && ($_[0]{json}{params}{arguments}{n} || '') eq "$i$n"
            });
            is($seen->{headers}{'mcp-session-id'},
               $asked->{headers}{'mcp-session-id'}, 'in its session');

            # a second answer goes nowhere

            is($s[$i]->respond($mine[$i][$n], {})->{status}, 202,
               'again: 202');
            is($s[$i]->respond($id[$n], {})->{status}, 202,
               'nor does one with the upstream\'s id');

            $up->release("asked-$i$n");
            is_deeply($sse[$i][$n]->response($sse[$i][$n]{id})
                      ->{json}{result}, { n => "$i$n" }, 'and the result');
        }
    }

    is($up->count(sub { ref $_[0]{json} eq 'HASH'
                        && !exists $_[0]{json}{method} }), 4,
       'each answer once');

    is($up->count(sub { ref $_[0]{json} eq 'HASH'
                        && ($_[0]{json}{params}{progress} || '') =~ /^1/ }),
       4, 'and the progress');

    # the upstream cancels

    {
        my $s = $s[0];
        my $sse = $s->stream('tools/call', {
            name => 'ask', arguments => { id => 7, n => 'c', cancel => 1 } });
        my $e = $sse->method('sampling/createMessage');

        $up->release('asked-c');
        is($sse->method('notifications/cancelled')->{json}{params}{requestId},
           $e->{json}{id}, 'cancelled by the id that the client knows');
        ok($sse->response($sse->{id}), 'and the result');
        $s->respond($e->{json}{id}, { i => 'late' });
        $s->notify('notifications/progress', {
            progressToken => $e->{json}{id}, progress => 'late' });
    }

    # who cannot be asked

    my $json = $t->session(accept => 'application/json',
                           caps => { sampling => {} });
    my $conn = $json->send_only($json->message('tools/call', {
        name => 'ask', arguments => { id => 'n', n => 'no' } }));
    my ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH' && ref $_[0]{json}{error}
        && $_[0]{json}{id} eq 'n'
    });
    is($seen->{json}{error}{code}, -32601, 'JSON only, no GET: -32601');
    like($seen->{json}{error}{message}, qr/Accept lacks text.event-stream/,
         'and why');
    $up->release('asked-no');
    is($conn->response('POST')->{status}, 200, 'and the call goes on');

    # with a GET it can

    my $get = $json->open_get;
    $conn = $json->send_only($json->message('tools/call', {
        name => 'ask', arguments => { id => 'y', n => 'yes' } }));
    my $e = $get->method('sampling/createMessage');
    is($e->{json}{params}{n}, 'yes', 'JSON only, with a GET: asked there');
    $json->respond($e->{json}{id}, { text => 1 });
    $up->wait_requests(sub { ref $_[0]{json} eq 'HASH'
                             && ($_[0]{json}{id} || '') eq 'y'
                             && $_[0]{json}{result}{text} });
    $up->release('asked-yes');
    is($conn->response('POST')->{status}, 200, 'and the call goes on');
    is($up->count(sub { $_[0]{body} =~ /wrong|late/ }), 0,
       'none of what nobody waits for has reached the upstream');

    # a client that did not declare it

    my $mute = $t->session(caps => { elicitation => {} });
    my $call = $mute->stream('tools/call', {
        name => 'ask', arguments => { id => 'd', n => 'undeclared' } });
    ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH' && ref $_[0]{json}{error}
        && $_[0]{json}{id} eq 'd'
    });
    is($seen->{json}{error}{code}, -32601, 'not declared: -32601');
    $up->release('asked-undeclared');
    ok($call->response($call->{id}), 'and the call goes on');
    ok(!(grep { $_->[1] =~ /createMessage/ } $call->lines),
       'which shows no request');

    # a request whose answer could not come back

    my $long = 'l' x 300;
    my $sse = $t->session->stream('tools/call', {
        name => 'ask', arguments => { id => $long, n => 'long' } });
    ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH' && ref $_[0]{json}{error}
        && $_[0]{json}{id} eq $long
    });
    is($seen->{json}{error}{code}, -32601, 'a long id: -32601');
    $up->release('asked-long');
    is_deeply([map { $_->{method} || 'answer' } grep { $_ }
               map { $_->{json} } $sse->drain(30)], ['answer'],
              'and the client is not asked');
}


# cancelling, from the other worker

for my $id ('"c"', 5) {
    my $s = $t->session;
    my $other = $t->session;
    my $conn = on($w1);
    my $sse = Mcp::Sse->new($s->post(
        '{"jsonrpc":"2.0","id":' . $id . ',"method":"tools/call","params":'
        . '{"name":"held","arguments":{"n":"cancel"}}}',
        stream => 1, conn => $conn));

    is($sse->method('notifications/message')->{json}{params}{data},
       'begin cancel', 'running');

    my $cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled",'
                 . '"params":{"requestId":%s,"reason":"enough"}}';

    $up->clear;

    is($s->post(sprintf $cancel, '"nobody"')->{status}, 202, 'unknown: 202');
    is($s->post(sprintf $cancel, $id eq '5' ? '"5"' : 5)->{status}, 202,
       'another id: 202');
    is($other->post(sprintf $cancel, $id)->{status}, 202,
       'another session: 202');
    ok(!$sse->eof(0.1), 'still running');
    is(scalar $up->calls('notifications/cancelled'), 0, 'and not passed on');

    is($s->post(sprintf($cancel, $id), conn => on($w2))->{status}, 202,
       'cancelled: 202');
    ok($sse->eof, 'the stream ends');
    ok(!$sse->cut, 'properly');
    ok(!(grep { $_->{json} } $sse->drain(0)), 'without a response');
    ok(!defined $conn->fill(0.1), 'and the connection stays');
    ok($s->call('ping', undef, conn => $conn), 'for the next request');
    is($s->open_get(last_event_id => $sse->last_id, conn => on($_))->status,
       405, 'which its client need not come back for') for $w1, $w2;

    my ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH'
        && ($_[0]{json}{method} || '') eq 'notifications/cancelled'
    });
    is($seen->{json}{params}{requestId}, $id =~ s/"//gr, 'upstream was told');
    like($seen->{body}, qr/"requestId":\Q$id\E\D/, 'by the same token');
    is($seen->{json}{params}{reason}, 'enough', 'and why');

    # one that has not streamed yet

    $conn = $s->send_only($s->message('tools/call', {
        name => 'slow', arguments => { n => "c$id" } }, id => 'quiet'));
    $up->wait_requests(sub { ref $_[0]{json} eq 'HASH'
        && ($_[0]{json}{params}{arguments}{n} || '') eq "c$id" });
    is($s->notify('notifications/cancelled', { requestId => 'quiet' })
       ->{status}, 202, 'cancelled before it streamed');
    my $r = $conn->response('POST');
    like($r->{status}, qr/^20[02]$/, 'its POST ends');
    is($r->{body}, '', 'without a response');

    is($s->call('tools/call', { name => 'plain' })->{http}{status}, 200,
       'the session goes on');
    ok((wait_for { !$t->status->{calls}{running} }), 'no call runs');
}


# leaving and coming back, on the other worker

for my $how (qw(close reset)) {
    my $s = $t->session;
    my $sse = held($s, "left-$how", conn => on($w1));
    my $e = $sse->method('notifications/message');

    is($e->{json}{params}{data}, "begin left-$how", 'running');
    my $last = $sse->last_id;
    $sse->$how;

    # not taken for a cancelling

    my $before = $up->calls('notifications/cancelled');
    my $get = $s->open_get(last_event_id => $last, conn => on($w2));

    is($get->status, 200, "$how: resumed on the other worker");
    ok(!$get->method('notifications/message', 0.15), 'nothing yet');
    $up->release("end-left-$how");
    is($get->method('notifications/message')->{json}{params}{data},
       "end left-$how", 'what followed');
    is_deeply($get->response($sse->{id})->{json}{result},
              { n => "left-$how" }, 'and the result');
    ok($get->eof, 'and the end');
    is(scalar $up->calls('notifications/cancelled'), $before,
       'upstream was not told');
    is($s->open_get(last_event_id => $get->last_id)->status, 405,
       'behind it there is nothing');

    # once more from an earlier place, after the end

    $get = $s->open_get(last_event_id => $last, conn => on($w1));
    is($get->method('notifications/message')->{json}{params}{data},
       "end left-$how", 'again');
    is_deeply($get->response($sse->{id})->{json}{result},
              { n => "left-$how" }, 'and the result');
    ok($get->eof, 'and the end');
}

# leaving before a stream was opened: the answer waits

{
    my $s = $t->session(path => '/after');
    my $sse = $s->stream('tools/call', { name => 'slow',
                                         arguments => { n => 'gone' } });
    my $last = $sse->event->{id};
    $sse->close;
    $up->release('slow-gone');

    my $get = $s->open_get(last_event_id => $last);
    is_deeply($get->response($sse->{id})->{json}{result}, { n => 'gone' },
              'a slow answer after leaving');
    ok($get->eof, 'and the end');

    # one that is larger than what is kept is not left out silently

    $sse = $s->stream('tools/call', { name => 'slow',
                      arguments => { n => 'large', pad => 100_000 } });
    $last = $sse->event->{id};
    $sse->close;

    $get = $s->open_get(last_event_id => $last);
    $up->release('slow-large');
    is($get->response($sse->{id})->{json}{error}{code}, -32603,
       'a slow answer that is not kept: an error');
    ok($get->eof, 'and the end');
}

# it holds its place while it runs

{
    my $s = $t->session;
    my $m = $s->message('tools/call', { name => 'held',
                                        arguments => { n => 'twin' } },
                        id => 'twin');
    my $sse = Mcp::Sse->new($s->post($m, stream => 1));
    $sse->method('notifications/message');

    my $r = $s->post($m);
    is($r->{status}, 400, 'a second call of the same id');
    is($r->{json}{error}{code}, -32600, 'is refused');

    $up->release('end-twin');
    is($sse->response('twin')->{json}{result}{n}, 'twin',
       'and the first goes on');
    ok($sse->eof, 'to its end');
    is($s->tool('plain', {}, id => 'twin')->{http}{status}, 200,
       'then the id may be used again');
}


# the upstream's GET stream is held while the client holds one

my (%left, $left_at, $undeclared);

{
    my $s = $t->session(caps => { roots => {},
                                  elicitation => { url => {} } });
    my $other = $t->session;
    my $leaver = $t->session;

    my ($mine, $others, $leavers) = map {
        $_->tool('plain');
        ($up->calls('tools/call'))[-1]{headers}{'mcp-session-id'};
    } $s, $other, $leaver;

    is($up->held("feed-$mine"), 0, 'no GET yet');

    my $get = $s->open_get(conn => on($w1));
    ok((wait_for { $up->held("feed-$mine") == 1 }), 'GET is held');

    my $get2 = $s->open_get(conn => on($w2));
    is($get2->status, 200, 'a second GET of the client');

    is($up->emit("feed-$mine", notice('message', level => 'info',
                                      data => 'out')), 1, 'one reader');

    my $e = $get2->method('notifications/message');
    is($e->{json}{params}{data}, 'out', 'goes to the newest');
    ok(!$get->method('notifications/message', 0.2), 'and to no other');

    $get2->close;
    ok((wait_for {
           $up->emit("feed-$mine", notice('message', level => 'info',
                                          data => 'on'));
           $get->method('notifications/message', 0.2);
       }), 'which takes over');
    is($up->held("feed-$mine"), 1, 'held by one still');

    my $deaf = $other->open_get;
    ok((wait_for { $up->held("feed-$others") == 1 }),
       'another session has its own');
    ok(!$deaf->method('notifications/message', 0.1),
       'and hears nothing of the first');

    # a request on it

    $up->emit("feed-$mine", [event => { jsonrpc => '2.0', id => 'r1',
                                        method => 'roots/list' }]);
    $e = $get->method('roots/list');
    my $r1 = $e->{json}{id};
    is($s->respond($r1, { roots => [] }, conn => on($w2))->{status}, 202,
       'answer');
    my ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH' && ($_[0]{json}{id} || '') eq 'r1'
    });
    is($seen->{headers}{'mcp-session-id'}, $mine, 'reaches it');

    # those that the client declared nothing for

    for (['sampling/createMessage', {}], ['elicitation/create', {}]) {
        my ($method, $params) = @$_;
        my $id = 'u' . ++$undeclared;

        $up->emit("feed-$mine", [event => { jsonrpc => '2.0', id => $id,
                                            method => $method,
                                            params => $params }]);
        ($seen) = $up->wait_requests(sub {
            ref $_[0]{json} eq 'HASH' && ($_[0]{json}{id} || '') eq $id
        });
        is($seen->{json}{error}{code}, -32601, "$method is refused");
    }

    $up->emit("feed-$mine", [event => { jsonrpc => '2.0', id => 'url',
                                        method => 'elicitation/create',
                                        params => { mode => 'url' } }]);
    is($get->method('elicitation/create')->{json}{params}{mode}, 'url',
       'what it declared comes alone');

    my $long = 'g' x 300;

    $up->emit("feed-$mine", [event => { jsonrpc => '2.0', id => $long,
                                        method => 'roots/list' }]);
    ($seen) = $up->wait_requests(sub {
        ref $_[0]{json} eq 'HASH' && ref $_[0]{json}{error}
        && $_[0]{json}{id} eq $long
    });
    is($seen->{json}{error}{code}, -32601, 'one whose answer could not come');
    is($seen->{headers}{'mcp-session-id'}, $mine, 'is refused');

    # lost, it is taken up again

    $up->drop;
    ok((wait_for { $up->held("feed-$mine") == 1 }),
       'cut, it is held again');

    # who leaves has its GET held for a while: looked at in the end

    my $brief = $leaver->open_get;
    ok((wait_for { $up->held("feed-$leavers") == 1 }), 'held for one');
    $brief->close;
    $left{$leavers} = 1;
    $left_at = time();

    # the end of the session

    my $sse = held($s, 'deleted');
    $sse->method('notifications/message');
    $up->clear;

    is($s->delete(conn => on($w2))->{status}, 200, 'DELETE');
    ok($get->eof, 'GET ends');
    ok($sse->eof, 'running call ends');
    ok((wait_for { $up->held("feed-$mine") == 0 }),
       'upstream\'s GET is let go');

    my @deleted = $up->wait_requests(sub {
        $_[0]{method} eq 'DELETE'
        && $_[0]{headers}{'mcp-session-id'} eq $mine
    });
    is(scalar @deleted, 1, 'upstream is told of its session, once');
    is($s->call('ping')->{http}{status}, 404, 'session is gone');
    is($other->call('ping')->{http}{status}, 200, 'the other is not');
}


# what is large

{
    my $s = $t->session;

    for my $size (60_000, 70_000, 1_000_000, 5_000_000) {
        my $r = $t->post('/mcp', $s->request_headers, json_encode(
            $s->message('tools/call', { name => 'large', arguments => {
                size => $size } }, id => 'large')));

        is($r->{headers}{'content-type'}, 'application/json', 'JSON');
        ok($r->{body} eq '{"jsonrpc":"2.0","id":"large","result":{"x":"'
                         . 'x' x $size . '"}}', "of $size, as it was sent");
    }

    for my $size (1_000, 60_000, 70_000, 200_000) {
        my $sse = $s->stream('tools/call', {
            name => 'large in a stream', arguments => { size => $size } });
        my @data = map {
            my $e = $sse->method('notifications/message');
            length($e->{json}{params}{data}) > 100
            ? length $e->{json}{params}{data} : $e->{json}{params}{data}
        } 1 .. 3;

        is_deeply(\@data, ['before', $size, 'after'],
                  "stream, messages of $size");
        is(length $sse->response($sse->{id})->{json}{result}{x}, $size,
           'and the result');
        ok($sse->eof, 'end');
    }

    # a slow reader gets all of it, and the upstream is not read ahead

    my $sse = $s->stream('tools/call', {
        name => 'large in a stream', arguments => { size => 400_000 } },
        rcvbuf => 4096);
    is($sse->method('notifications/message')->{json}{params}{data},
       'before', 'slow reader');
    sleep 0.1;
    is(length $sse->method('notifications/message')
       ->{json}{params}{data}, 400_000, 'gets it');
    is(length $sse->response($sse->{id})->{json}{result}{x}, 400_000,
       'whole');
}


# many at once

{
    my @s = map { $t->session } 1 .. 3;
    my @running;

    for my $i (1 .. 8) {
        for my $s (@s) {
            push @running, $s->stream('tools/call', { name => 'many' });
        }
    }

    my $bad = 0;
    my %ids;

    for my $sse (@running) {
        my @e = grep { $_->{json} } $sse->drain(10);

        $bad++ unless @e == 101 && $e[-1]{json}{id} == $sse->{id};
        $bad++ if grep { $e[$_ - 1]{json}{params}{data} != $_ } 1 .. 100;
        $ids{$_->{id}}++ for @e;
    }

    is($bad, 0, 'parallel calls: each has all of its own, in order');

    # held ones, ended in another order

    my $s = $s[0];
    my %held = map { $_ => held($s, "par-$_") } 1 .. 6;

    $held{$_}->method('notifications/message') for keys %held;

    for my $n (4, 1, 6, 3, 2, 5) {
        $up->release("end-par-$n");
        is($held{$n}->response($held{$n}{id})->{json}{result}{n},
           "par-$n", "call $n gets its own answer");
        delete $held{$n};
    }
}


# an upstream that ends its stream early, and is resumed

for my $o ([version => '2025-06-18'], [version => '2025-11-25'],
           [accept => 'application/json'])
{
    my $s = $t->session(@$o);
    my (@e, $r);

    $up->clear;

    if ($o->[0] eq 'version') {
        my $sse = $s->stream('tools/call', { name => 'early' });
        my $id = $sse->{id};

        @e = grep { $_->{json} } $sse->drain(10);

        # a client of 2025-11-25 is let poll

        for (1 .. 5) {
            last if grep { exists $_->{json}{result} } @e;
            is($s->{negotiated}, '2025-11-25', 'who knows of polling');
            ok($sse->ended && !$sse->cut, 'its stream ends');
            $sse = $s->open_get(last_event_id => $sse->last_id);
            is($sse->status, 200, 'and is resumed');
            push @e, grep { $_->{json} } $sse->drain(10);
        }

        is_deeply([map { $_->{json}{params}{data} || 'result' } @e],
                  [1, 2, 'result'], "@$o: nothing is lost or twice");
        is($e[-1]{json}{id}, $id, 'the answer\'s id');

    } else {
        is_deeply($s->call('tools/call', { name => 'early' })->{result},
                  { done => 1 }, 'JSON only: resumed where it was left');
    }

    my @gets = grep { defined $_->{headers}{'last-event-id'} }
               $up->requests(sub { $_[0]{method} eq 'GET' });

    is_deeply([map { $_->{headers}{'last-event-id'} } @gets], [qw(e1 e2)],
              'by its ids');
    is(scalar $up->calls('tools/call'), 1, 'the call is sent once');
}

# a client that is let poll must not wait on the connection of its call

{
    my $s = $t->session;
    my $conn = $t->conn;
    my $sse = $s->stream('tools/call', { name => 'early and late' },
                         conn => $conn);

    is($sse->headers->{connection}, 'close', 'let poll: it is told so');
    $sse->drain(30);
    ok($sse->ended && !$sse->cut, 'its stream ends');

    ok((wait_for { $conn->fill(0.1) if $conn->alive; !$conn->alive }),
       'and its connection takes no other request');

    my $get = $s->open_get(last_event_id => $sse->last_id);

    $up->release('late');
    is_deeply($get->response($sse->{id})->{json}{result}, { done => 1 },
              'the answer comes on another');
}

# what an upstream began to do it is not asked to do again

for my $o ([], [accept => 'application/json']) {
    my $s = $t->session(@$o);

    $up->clear;

    if (@$o) {
        my $r = $s->tool('early and lost');

        is("$r->{http}{status} $r->{error}{code}", '502 -32603',
           'a call that is lost: the upstream failed');
        like($r->{error}{message}, qr/did not resume.* may have run/,
             'the message says how');
        like($t->log, qr/\[error\].* "up" ended its stream .* with status 400/,
             'and the log does');

    } else {
        my $sse = $s->stream('tools/call', { name => 'early and lost' });

        $sse->drain(30);
        $sse = $s->open_get(last_event_id => $sse->last_id);
        ok($sse->event_where(sub { ref $_[0]{json} && $_[0]{json}{error} }),
           'a call that is lost: an error answers it');
    }

    is(scalar $up->calls('tools/call'), 1, 'and it was sent once');
}


# upstream GETs of clients that left

for (keys %left) {
    ok((wait_for { $up->held("feed-$_") == 0 }),
       'let go with the client\'s');
    cmp_ok(time() - $left_at, '>=', 5, 'after a while');
}


# nothing is left

ok((wait_for {
       my $j = $t->status;
       !$j->{calls}{running} && !$j->{streams}{open};
   }), 'no call, no stream')
    or diag(json_encode($t->status));

done_testing();
