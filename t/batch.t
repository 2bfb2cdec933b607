#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_batch: off unless it is set, and if it is, each message of an array meets
# the limits and access rules that it would meet alone; what is answered here
# takes turns with other clients.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my @tools = map { { name => "tool-$_", description => 'x' x 60 } } 1 .. 1500;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => { tools => \@tools },
    'tools/call' => sub {
        my ($r) = @_;
        my $size = $r->{json}{params}{arguments}{size} || 0;

        return { content => [ { type => 'text', text => 'y' x $size } ] };
    },
    'notifications/initialized' => sub { () },
));

# one that answers when it is told to

my $late = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => sub {
        return { tools => [] } unless $Mcp::Upstream::V{late};
        return ([tag => 'list'], [until => 'list'], [http => 500, {}, '']);
    },
    'tools/call' => sub {
        my ($r) = @_;

        return ([tag => 'call'], [until => 'call'],
                [json => Mcp::Upstream::result($r, { content => [] })]);
    },
));

# asked by auth_request: what the rules see

my $auth = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $tool = $r->{headers}{'x-tool'} || '';

    return [http => $tool eq 'guarded' ? 403 : 200,
            { 'X-Tenant' => $tool eq 'other' ? 'two' : 'one' }, ''];
});

my $conf = <<'EOF';
mcp_zone zone=main:16m;

map $mcp_method$mcp_name $costly {
    "tools/callreport"  $mcp_session_id;
    default             "";
}
map $mcp_method$http_x_up $up { tools/listup ..; default up; }
map $mcp_name $named { other b; default a; }
map $mcp_name $secret { secret 1; default 0; }
map $mcp_name $hidden { ~^tool-[0-9]*[13579]$ 1; default 0; }

limit_req_zone  $costly         zone=costly:1m rate=1r/m;
limit_req_zone  $mcp_session_id zone=slowly:1m rate=50r/s;
limit_req_zone  $costly         zone=behind:1m rate=1r/m;
limit_conn_zone $mcp_session_id zone=conns:1m;

log_format mcp '$uri|$status|$mcp_method|$mcp_name';
log_format lists '$mcp_method';

server {
    %%LISTEN%%
    server_name localhost;

    mcp_batch    on;
    mcp_upstream up /_up protocol=rpc;

    location = /mcp { mcp_endpoint zone=main name=mcp; mcp_deny $secret; }

    location = /off {
        mcp_endpoint zone=main name=off;
        mcp_batch    off;
    }

    location = /modern {
        mcp_endpoint zone=main name=modern;
        mcp_versions 2026-07-28;
        mcp_batch    off;
    }

    location = /auth {
        access_log        %%DIR%%/mcp.log mcp;
        auth_request      /_auth;
        auth_request_set  $tenant $upstream_http_x_tenant;
        mcp_endpoint      zone=main name=auth;
        mcp_tenant        $tenant;
    }

    location = /named {
        mcp_endpoint  zone=main name=named;
        mcp_tenant    $named;
    }

    location = /either {
        satisfy       any;
        deny          all;
        auth_request  /_auth;
        mcp_endpoint  zone=main name=either;
    }

    location = /limited {
        limit_req     zone=costly burst=3 nodelay;
        mcp_endpoint  zone=main name=limited;
    }

    location = /delayed {
        limit_req     zone=slowly burst=10;
        mcp_endpoint  zone=main name=delayed;
    }

    location = /conns {
        limit_conn    conns 2;
        mcp_endpoint  zone=main name=conns;
    }

    location = /behind {
        mcp_endpoint  zone=main name=behind;
        mcp_upstream  up /_behind protocol=rpc;
    }

    location = /calls {
        mcp_endpoint    zone=main name=calls;
        mcp_call_limit  3;
    }

    location = /small {
        mcp_endpoint       zone=main name=small;
        mcp_message_limit  200k;
    }

    location = /lists {
        access_log         %%DIR%%/lists.log lists;
        mcp_endpoint       zone=main name=lists;
        mcp_list_cache     on;
        mcp_deny           $hidden;
        mcp_message_limit  16m;
    }

    location = /late {
        mcp_endpoint    zone=main name=late;
        mcp_list_cache  on;
        mcp_upstream    late /_late/$up protocol=rpc;
    }

    location = /real {
        set_real_ip_from  127.0.0.1;
        real_ip_header    X-Real-IP;
        auth_request      /_auth;
        mcp_endpoint      zone=main name=real;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location /_late/ { internal; proxy_pass http://127.0.0.1:%%LATE%%/; }

    location = /_behind {
        internal;
        limit_req   zone=behind burst=1 nodelay;
        proxy_pass  http://127.0.0.1:%%UP%%/;
    }

    location = /_auth {
        internal;
        proxy_pass               http://127.0.0.1:%%AUTH%%/;
        proxy_pass_request_body  off;
        proxy_set_header         Content-Length "";
        proxy_set_header         X-Method $mcp_method;
        proxy_set_header         X-Tool $mcp_name;
        proxy_set_header         X-Costly $costly;
        proxy_set_header         X-From "$remote_addr $realip_remote_addr";
    }
}
EOF

my $t = Mcp::Test->new(vars => { UP => $up->port, LATE => $late->port,
                                 AUTH => $auth->port }, conf => $conf);
my ($s, $r, @b);


# off

for my $off ($t->session(path => '/off', version => '2025-03-26'),
             $t->session(path => '/off'))
{
    $up->clear;
    $r = $off->post([ call($off, 'x'), $off->message('ping') ]);

    is($r->{status}, 400, "off, $off->{negotiated}: refused");
    is($r->{json}{error}{code}, -32600, 'as no request');
    like($r->{json}{error}{message}, qr/\bmcp_batch\b/, 'with the reason');
    is(scalar $up->asked, 0, 'and nothing is forwarded');
}

$r = $t->post('/modern', { 'Content-Type' => 'application/json',
                           Accept => 'application/json, text/event-stream' },
              '[{"jsonrpc":"2.0","id":1,"method":"ping"}]');
is($r->{status}, 400, 'no revision with batches: refused');
like($r->{body}, qr/only revision 2025-03-26 has batches/, 'with the reason');


# elements that are none

$s = old('/mcp');
$up->clear;

$r = $s->post('[' . join(',', map { ref $_ ? json_encode($_) : $_ }
    [ call($s, 'x', id => 'nested') ], '[[]]', '1', '"x"', 'null', '{}',
    $s->message('ping', undef, id => 'p')) . ']');
@b = sort map { $_->{error}{code} || $_->{id} } @{ $r->{messages} };
is_deeply(\@b, [ (-32600) x 6, 'p' ], 'what is no object is refused');
is(scalar $up->asked, 0, 'and not forwarded');

$r = $s->post([ (map { { jsonrpc => '2.0', method => $_,
                         params => { name => 'x' } } }
                     qw(tools/call tools/list initialize)),
                $s->message('ping', undef, id => 'p') ]);
@b = sort map { $_->{error}{code} || $_->{id} } @{ $r->{messages} };
is_deeply(\@b, [ (-32600) x 3, 'p' ], 'a request without an id is refused');
is(scalar $up->asked, 0, 'and not forwarded either');


# rules of the access phase

$s = old('/auth');

for my $tool (qw(guarded open)) {
    $auth->clear;
    $up->clear;

    $r = $s->post([ $s->message('ping'), call($s, $tool),
                    $s->message('tools/list') ]);

    my @asked = map { $_->{headers}{'x-method'} . ' '
                      . ($_->{headers}{'x-tool'} || '-') } $auth->requests;

    if ($tool eq 'guarded') {
        is($r->{status}, 403, 'a message that is refused refuses the batch');
        is(scalar $up->asked, 0, 'of which nothing runs');
        is_deeply(\@asked, [ 'ping -', 'tools/call guarded' ],
                  'the rules saw it');
    } else {
        is($r->{status}, 200, 'a batch of what is allowed');
        is(scalar @{ $r->{messages} }, 3, 'is answered');
        is_deeply(\@asked, [ 'ping -', 'tools/call open', 'tools/list -' ],
                  'the rules saw each message');
    }
}

is($s->post([ $s->message('ping'), call($s, 'other') ])->{status}, 403,
   'messages of two tenants are refused');
is($s->post([ call($s, 'guarded'), $s->message('ping') ])->{status}, 403,
   'the first refused');

{
    my $named = $t->session(path => '/named', version => '2025-03-26');

    $up->clear;
    is($named->post([ call($named, 'one'), call($named, 'two') ])->{status},
       200, 'a tenant that does not depend on the tools of a batch');
    is(scalar $up->calls('tools/call'), 2, 'all run');

    $up->clear;
    my $r = $named->post([ call($named, 'one'), call($named, 'other') ]);
    is($r->{status}, 403, 'one that does refuses it');
    like($r->{json}{error}{message}, qr/must have one tenant/, 'and says so');
    is(scalar $up->asked, 0, 'nothing runs');
}

ok(wait_for { $t->slurp('mcp.log') =~ m{/auth\|200\|\|\n} }, 'log: a batch');
ok(wait_for {
       $t->slurp('mcp.log') =~ m{/auth\|403\|tools/call\|guarded\n}
   }, 'log: a refused one names the message');

$s = old('/either');
is($s->post([ $s->message('ping'), call($s, 'guarded') ])->{status}, 403,
   'satisfy any: refused');
is($s->post([ $s->message('ping'), call($s, 'open') ])->{status}, 200,
   'satisfy any: allowed');

$s = old('/real', headers => { 'X-Real-IP' => '192.0.2.7' });
$auth->clear;
$r = $s->post([ map { $s->message('ping') } 1 .. 3 ]);
is($r->{status}, 200, 'behind a proxy');
is_deeply([ map { $_->{headers}{'x-from'} } $auth->requests ],
          [ ('192.0.2.7 127.0.0.1') x 3 ], 'each has the same address');

# values that depend on the message are computed for each

$s = old('/auth');
$auth->clear;
$s->post([ call($s, 'a'), call($s, 'report'), call($s, 'b') ]);
is_deeply([ map { $_->{headers}{'x-costly'} ? 1 : 0 } $auth->requests ],
          [ 0, 1, 0 ], 'a map over the name');


# limits

$s = old('/limited');
$up->clear;
is($s->post([ map { call($s, 'report') } 1 .. 10 ])->{status}, 503,
   'limit_req: ten at once are refused');
is(scalar $up->asked, 0, 'and nothing of them runs');

$s = old('/limited');
$r = $s->post([ (map { call($s, 'report') } 1 .. 3), call($s, 'x') ]);
is(scalar @{ $r->{messages} }, 4, 'limit_req: three of four');
is($s->post([ map { call($s, 'report') } 1 .. 2 ])->{status}, 503,
   'two more are too many');
is($s->post([ call($s, 'x'), $s->message('ping') ])->{status}, 200,
   'others are not limited');

$s = old('/delayed');
$r = $s->post([ map { call($s, 'x') } 1 .. 6 ]);
is(scalar @{ $r->{messages} }, 6, 'limit_req: delayed ones are answered');
cmp_ok(scalar(() = $t->log =~ /delaying request/g), '>', 1, 'one by one');

$s = old('/conns');
is($s->post([ map { $s->message('ping') } 1 .. 3 ])->{status}, 503,
   'limit_conn: three of two');

# nginx counts a request for a moment after its answer was sent
for my $time (1 .. 2) {
    my $status;
    wait_for {
        $status = $s->post([ map { $s->message('ping') } 1 .. 2 ])->{status};
        $status == 200;
    };
    is($status, 200, 'limit_conn: two');
}

$s = old('/behind');
$r = $s->post([ map { call($s, 'report') } 1 .. 6 ]);
is_deeply([ sort map { $_->{result} ? 'result' : 'error' }
            @{ $r->{messages} } ], [ ('error') x 4, ('result') x 2 ],
          'limit_req of an upstream location');

$s = old('/calls');
$r = $s->post([ map { $s->message('ping') } 1 .. 5 ]);
is_deeply([ map { $_->{error}{code} || 0 } @{ $r->{messages} } ],
          [ 0, 0, 0, -32000, -32000 ], 'mcp_call_limit counts each');
like($r->{messages}[4]{error}{message}, qr/\bmcp_call_limit\b/, 'and says so');
is(scalar(grep { $_->{result} }
          @{ $s->post([ map { $s->message('ping') } 1 .. 3 ])->{messages} }),
   3, 'as many as it allows');

$s = old('/small');
$r = $s->post([ map { call($s, 'x', size => 80000) } 1 .. 4 ]);
@b = map { $_->{result} ? 'result' : $_->{error}{message} }
     @{ $r->{messages} };
is(scalar(grep { $_ eq 'result' } @b), 2, 'the answers have a limit');
is(scalar(grep { /mcp_message_limit/ } @b), 2, 'beyond it errors say so');
cmp_ok(length $r->{body}, '<', 200 * 1024 + 2000, 'and it holds');


# turns: another client of the same worker is served while lists are made, and
# they are made to the end by a worker that is about to quit

$s = old('/lists');
$r = $s->call('tools/list');
is(scalar @{ $r->{result}{tools} }, 750, 'a list without what is denied');

for my $quits (0, 1) {
    my $w = ($t->workers)[0];
    my ($one, $two) = map { $t->conn_on_worker($w, timeout => 120) } 1 .. 2;

    # both are there when the worker looks

    kill 'STOP', $w unless $quits;
    $s->send_only([ map { $s->message('tools/list') } 1 .. 64 ],
                  conn => $one);

    if ($quits) {
        ok($t->reload(timeout => 60), 'reload amid the batch');

    } else {
        $s->send_only($s->message('ping'), conn => $two);
        kill 'CONT', $w;
        $r = $s->read_response($two->response('POST'));
        is_deeply($r->{json}{result}, {}, 'another client is answered');
    }

    $r = $s->read_response($one->response('POST'));

    if (!$quits) {
        ok(wait_for { $t->slurp('lists.log') =~ /^ping\n\n/m },
           'before the batch is') or diag($t->slurp('lists.log'));
    }

    is($r->{status}, 200, 'the batch is answered');
    is(scalar(grep { @{ $_->{result}{tools} } == 750 } @{ $r->{messages} }),
       64, 'with all lists');
}


# a line of the log about a list names no request to an upstream beside it

$s = old('/late', headers => { 'X-Up' => 'up' });
$late->set(late => 1);

my $conn = $s->send_only([ call($s, 'x'), $s->message('tools/list') ]);
ok(wait_for { $late->held('call') && $late->held('list') },
   'a call and a list are asked for');
$late->release('list');

my $line;
ok(wait_for { ($line) = $t->log =~ /^(.*"late" was not sent a request.*)$/m },
   'the list is not to be had');
unlike($line, qr/while |subrequest: |upstream: /, 'and only that is logged')
    or diag($line);
$late->release('call');
is(scalar @{ $s->read_response($conn->response('POST'))->{messages} }, 2,
   'both are answered');


# nginx -t

my ($code, $text) = $t->check;
is($code, 0, 'nginx -t');
like($text, qr/\[warn\] "mcp_batch on" at mcp endpoint "mcp" in .*:\d+: /,
     'warns of batches');
unlike($text, qr/mcp endpoint "off"/, 'where they are on');

done_testing();


sub old {
    my ($path, %o) = @_;
    return $t->session(path => $path, version => '2025-03-26', %o);
}


sub call {
    my ($s, $name, %o) = @_;

    return $s->message('tools/call', {
        name => $name, arguments => { size => $o{size} || 0 }
    }, exists $o{id} ? (id => $o{id}) : ());
}
