#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Events from mcp_publish to clients on either worker: what they are turned
# into, whom they address, webhooks, ids, progress.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/call' => sub {
        my ($r) = @_;
        return ([until => 'hold'],
                [json => Mcp::Upstream::result($r, { content => [] })]);
    },
    '' => sub { return {} },
));

my $conf = <<'EOF';
mcp_zone zone=main:4m;
mcp_zone zone=map:4m;
mcp_zone zone=hooks:4m;

mcp_invalidate drop_me drop;
mcp_invalidate * "message=other $kind";
mcp_logger mapper;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_session_bind $http_x_user;

    location = /mcp {
        mcp_endpoint zone=main name=one;
        mcp_tenant   $http_x_tenant;
        mcp_upstream rpc /_rpc;
        mcp_server_info name=server version=1;
        mcp_stream_after 0;

        mcp_invalidate document "message=$reason of $n ${n}x" level=$status
                                list_changed=tools list_changed=prompts
                                updated=file:///$path
                                notify=notifications/own;
        mcp_invalidate document list_changed=resources;
        mcp_invalidate quiet drop;
    }

    location = /two     { mcp_endpoint zone=main name=two; }

    location = /inherit { mcp_endpoint zone=map name=inherit; }

    location = /hook    { mcp_endpoint zone=hooks name=hook;
                          mcp_invalidate push "message=$ref by $who"
                                         notify=notifications/push;
                          mcp_invalidate text "message=$payload"; }

    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%; }

    location = /publish     { mcp_publish zone=main; }
    location = /publish-two { mcp_publish zone=main endpoint=two; }
    location = /publish-for { mcp_publish zone=main tenant=$arg_for; }
    location = /publish-map { mcp_publish zone=map id=$arg_id; }

    location = /push  { mcp_publish zone=hooks kind=push tenant=$arg_for; }
    location = /text  { mcp_publish zone=hooks kind=text; }
    location = /kind  { mcp_publish zone=hooks kind=$arg_kind; }
    location = /topic { mcp_publish zone=hooks topic=$arg_topic; }
    location = /publish-hooks { mcp_publish zone=hooks; }
}
EOF

my $t = Mcp::Test->new(vars => { RPC => $rpc->port }, conf => $conf);
my @w = $t->workers;
my ($r, $e, @e);
my $mark = 0;

is(scalar @w, 2, 'two workers');

# clients on both

my %s;

for my $who (qw(ann bob)) {
    for my $tenant (qw(acme bold)) {
        $s{"$who-$tenant"} = $t->session(
            headers => { 'X-Tenant' => $tenant, 'X-User' => $who });
    }
}

$s{two} = $t->session(path => '/two', headers => { 'X-User' => 'ann' });

my $i = 0;
my %g = map { $_ => $s{$_}->open_get(conn => $t->conn_on_worker($w[$i++ % 2])) }
        sort keys %s;


# the rules of an endpoint

$r = publish('/publish', { kind => 'document', reason => 'memory.forget',
                           tenant_id => 'acme', ts_ms => 1764000000000,
                           status => 'warning', path => 'a b', n => 17,
                           identity => 'ann' });
is($r->{status}, 202, 'an invalidate event');
is($r->{json}{accepted}, 1, 'is taken');

my %m = map { $_->{json}{method} => $_->{json}{params} } heard('ann-acme');
my $details = { kind => 'document', reason => 'memory.forget',
                tenant_id => 'acme', ts_ms => 1764000000000 };

is_deeply([ sort keys %m ], [ map { "notifications/$_" }
          qw(message own prompts/list_changed resources/list_changed
             tools/list_changed) ],
          'actions of its kind, of several lines');
is_deeply($m{'notifications/message'},
          { level => 'warning', logger => 'mapper', data =>
            'memory.forget of 17 17x', details => $details,
            _meta => { 'nginx-mcp/details' => $details } }, 'the message');
is_deeply($m{'notifications/own'},
          { %$details, status => 'warning', path => 'a b', n => 17 },
          'an own notification has the event, not whom it addressed');
is_deeply([ loud() ], [], 'nobody else heard of it');

$r = publish('/publish', { kind => 'quiet' });
is($r->{json}{accepted}, 1, 'what one endpoint drops');
is_deeply([ loud(grep { $_ ne 'two' } keys %g) ], [], 'is silent there');
($e) = heard('two');
is($e->{json}{params}{data}, 'other quiet', 'not at the other');

publish('/publish', { kind => 'drop_me' });
is_deeply([ loud() ], [], 'no rule, or one that drops');

publish('/publish-two', { kind => 'x', status => 'error' });
($e) = heard('two');
is($e->{json}{params}{data}, 'other x', 'inherited rules');
is($e->{json}{params}{level}, 'info', 'whose level is info');
is_deeply([ loud() ], [], 'of that endpoint alone');


# levels

for ([ healthy => 'info' ], [ warning => 'warning' ], [ error => 'error' ],
     [ critical => 'critical' ], [ nonsense => 'info' ], [ '', 'info' ])
{
    publish('/publish', { kind => 'document', status => $_->[0],
                          session_id => $s{'ann-acme'}->id });
    ($e) = messages('ann-acme');
    is($e->{json}{params}{level}, $_->[1], "level of \"$_->[0]\"");
}

$s{'ann-acme'}->call('logging/setLevel', { level => 'error' });

for ([ warning => 0 ], [ error => 1 ]) {
    publish('/publish', { kind => 'document', status => $_->[0] });
    is(scalar(() = messages('ann-acme')), $_->[1],
       "setLevel error and a $_->[0]");
    is(scalar(() = messages('bob-acme')), 1, 'others get it');
}

$s{'ann-acme'}->call('logging/setLevel', { level => 'debug' });
publish('/publish', { kind => 'document' });
is(scalar(() = messages('ann-acme')), 1, 'set back');
loud();


# updates

$s{'bob-acme'}->call('resources/subscribe', { uri => 'file:///doc' });
publish('/publish', { kind => 'document', path => 'doc' });

for my $who (sort keys %g) {
    is_deeply([ map { $_->{json}{params}{uri} }
                grep { $_->{json}{method} =~ /updated/ } heard($who) ],
              $who eq 'bob-acme' ? [ 'file:///doc' ] : [], "update, $who");
}


# addresses, together

publish('/publish', notice(identity => 'ann'));
is_deeply([ loud() ], [ qw(ann-acme ann-bold two) ], 'an identity');
publish('/publish', notice(identity => 'ann', tenant_id => 'bold'));
is_deeply([ loud() ], [ 'ann-bold' ], 'of a tenant');

$r = publish('/publish', notice(identity => 'bob',
                              session_id => $s{'ann-acme'}->id));
like($r->{json}{events}[0]{error}, qr/no such session/,
     "a session that is another's");

for my $kind (qw(document quiet drop_me other)) {
    $r = publish('/publish', { kind => $kind, session_id => 'none' });
    like($r->{json}{events}[0]{error}, qr/no such session/,
         "no session for $kind");
}

$r = publish('/publish', { kind => 'quiet',
                           session_id => $s{'ann-acme'}->id });
is($r->{json}{accepted}, 1, 'a session whose endpoint drops the event');

publish('/publish', notice(%$_))
    for { identity => 'nobody' }, { identity => '' }, { tenant_id => 'ACME' },
        { uri => 'file:///doc', topic => undef }, { uri => '' },
        { topic => '' }, { uri => 'file:///doc', tenant_id => 'bold' },
        { uri => 'file:///doc', identity => 'ann' };
is_deeply([ loud() ], [], 'nobody');

publish('/publish', notice(uri => 'file:///doc'));
is_deeply([ loud() ], [ 'bob-acme' ], 'who subscribed');

publish('/publish', notice(topic => 'a/b'));
is(scalar(grep { my ($n) = heard($_);
                 $n->{json}{method} eq 'notifications/resources/list_changed' }
          grep { $_ ne 'two' } keys %g), 4, 'a topic that is new');
loud();

$s{'ann-bold'}->call('resources/subscribe', { uri => 'events://a/b/latest' });
publish('/publish', notice(topic => 'a/b'));
is_deeply([ loud() ], [ 'ann-bold' ], 'who subscribed to a topic');
publish('/publish', notice(topic => 'a/b', uri => 'file:///doc'));
is_deeply([ loud() ], [], 'and to a URI');
$s{'ann-bold'}->call('resources/subscribe', { uri => 'file:///doc' });
publish('/publish', notice(topic => 'a/b', uri => 'file:///doc'));
($e) = heard('ann-bold');
is_deeply([ sort keys %{ $e->{json} } ], [ qw(jsonrpc method) ],
          'both, and what addressed it is removed');
is_deeply([ loud() ], [], 'for one');

$r = publish('/publish', notice(uri => 'file:///doc',
                              session_id => $s{'ann-acme'}->id));
is($r->{json}{events}[0]{sessions}, 0, 'a session that did not subscribe');

publish('/publish', { topic => 'a/b' });
($e) = heard('ann-bold');
is_deeply($e->{json}, { jsonrpc => '2.0', method =>
          'notifications/resources/updated', params =>
          { uri => 'events://a/b/latest' } }, 'a topic alone: an update');
is_deeply([ loud() ], [], 'for one');

publish('/publish-for?for=bold', notice());
is_deeply([ loud() ], [ qw(ann-bold bob-bold) ], 'tenant=');
$r = publish('/publish-for?for=bold', { kind => 'y', tenant_id => 'acme' });
is($r->{json}{refused}, 1, 'cannot be left');

$r = publish('/publish', json_encode({ kind => 'document' }) . "\n{}\n"
             . "[]\nnope\n" . json_encode({ kind => 1 }) . "\n" . notice());
is_deeply([ map { $_->{error} ? 0 : 1 } @{ $r->{json}{events} } ],
          [ 1, 0, 0, 0, 0, 1 ], 'each on its own');
like($r->{json}{events}[1]{error}, qr/"kind"/, 'with its reason');
loud();


# tenants do not leak, whatever is published where

for my $n (1 .. 40) {
    my $tenant = $n % 2 ? 'acme' : 'bold';
    my $body = $n % 3 ? { kind => 'document', reason => "r$n", n => $tenant }
                      : notification('n', { tenant => $tenant });

    $body->{tenant_id} = $tenant;
    publish('/publish', $body);
}

for my $who (sort keys %g) {
    my ($of) = $who =~ /-(\w+)/;
    my @texts = map { $_->{data} } heard($who);

    is(scalar(grep { !$of || !/\b$of\b/ } grep { !/list_changed/ } @texts), 0,
       "$who heard nothing of others");
    ok($of ? @texts >= 20 : !@texts, 'and all of its own');
}


# more tenants than a worker is told of one by one

my @many = map {
    $t->session(headers => { 'X-User' => 'x', 'X-Tenant' => "many $_" })
      ->open_get
} 1 .. 80;

publish('/publish', notice());
is(scalar(grep { $_->method('notifications/n') } @many), 80, 'all tenants');
$_->close for @many;
loud();


# progress

my (@conn, @id);

$rpc->clear;

for my $c (0, 1) {
    my $m = tool('bob-acme', "tok$c");
    $id[$c] = $m->{id};
    $conn[$c] = $s{'bob-acme'}->send_only($m,
                                          conn => $t->conn_on_worker($w[$c]));
}

my $plain = $s{'bob-bold'}->send_only(tool('bob-bold', 7),
                                 headers => { Accept => 'application/json' });
my $rival = $s{'ann-bold'}->send_only(tool('ann-bold', 'tok1'));

wait_for { $rpc->calls('tools/call') >= 4 };

$r = publish('/publish', progress('tok0', 1));
is($r->{json}{events}[0]{sessions}, 1, 'progress of a call')
    or diag($r->{body});

my $sse = Mcp::Sse->new($conn[0]->response('POST', stream => 1));
is($sse->method('notifications/progress')->{json}{params}{progress}, 1,
   'opens its stream');
publish('/publish', progress('tok0', 2));
is($sse->method('notifications/progress')->{json}{params}{progress}, 2,
   'and goes on there');

$r = publish('/publish', progress('tok1', 3));
like($r->{json}{events}[0]{error}, qr/several/, 'two calls with a token');
$r = publish('/publish', progress('tok1', 3, tenant_id => 'acme'));
is($r->{json}{accepted}, 1, 'one of a tenant');
$r = publish('/publish', progress('tok1', 4, session_id => $s{'bob-acme'}->id));
is($r->{json}{accepted}, 1, 'one of a session');
$r = publish('/publish', progress('tok0', 4, session_id => $s{'ann-bold'}->id));
is($r->{json}{refused}, 1, 'not that of another session');
$r = publish('/publish', progress('tok0', 4, tenant_id => 'bold'));
is($r->{json}{refused}, 1, 'nor of another tenant');
$r = publish('/publish', progress('tok9', 4));
like($r->{json}{events}[0]{error}, qr/no running call/, 'no call');
$r = publish('/publish', progress('7', 4));
is($r->{json}{refused}, 1, 'a string is not a number');
$r = publish('/publish', progress(7, 5));
is($r->{json}{accepted}, 1, 'a number');

my $other = Mcp::Sse->new($conn[1]->response('POST', stream => 1));
is_deeply([ map { $other->method('notifications/progress')
                  ->{json}{params}{progress} } 1, 2 ], [ 3, 4 ],
          'each on its line');
is_deeply([ map { $_->{json}{params}{progress} } heard('bob-bold') ], [ 5 ],
          'a call that cannot stream: on the general line');

$rpc->release('hold');

ok($sse->response($id[0]), 'the call is answered');
ok($other->response($id[1]), 'the other too');
is($plain->response('POST')->{status}, 200, 'the plain one');
like($rival->response('POST')->{headers}{'content-type'}, qr/json/,
     'and that without progress');
is_deeply([ loud() ], [], 'no other stream heard of it');
$r = publish('/publish', progress('tok0', 6));
is($r->{json}{refused}, 1, 'it is over');


# ids

$s{map} = $t->session(path => '/inherit', headers => { 'X-User' => 'x' });
$g{map} = $s{map}->open_get;

for my $w (@w) {
    my $conn = $t->conn_on_worker($w);

    $r = $conn->request('POST', '/publish-map', {}, json_encode(
                        [ { kind => 'x', id => 'e1' }, { kind => 'x', id => 1 },
                          { kind => 'x', id => '1' } ]));
    $r = json_decode($r->{body});
    is($r->{accepted}, 3, 'events with an id are accepted');
    is_deeply([ map { $_->{repeated} ? 1 : 0 } @{ $r->{events} } ],
              [ ($w == $w[0] ? 0 : 1) x 3 ], 'known the second time');
    is_deeply([ map { $_->{sessions} } @{ $r->{events} } ], [ 1, 1, 1 ],
              'and say the same');
}

is(scalar(() = heard('map')), 3, 'each arrives once');

for ([ '/publish-map?id=a', {} ], [ '/publish-map?id=a', {} ],
     [ '/publish-map', { 'Idempotency-Key' => 'k' } ],
     [ '/publish-map', { 'Idempotency-Key' => 'k' } ],
     [ '/publish-map', {} ])
{
    $t->post($_->[0], $_->[1], notice() . "\n" . notice());
}

is(scalar(() = heard('map')), 6, 'id= and Idempotency-Key');

$r = publish('/publish-map', { id => 'bad', kind => 'x', session_id => 'no' });
is($r->{json}{refused}, 1, 'one that is refused');
$r = publish('/publish-map', { id => 'bad', kind => 'x' });
ok(!$r->{json}{events}[0]{repeated}, 'was not taken');
$r = publish('/publish-map', { id => 'bad', kind => 'x' });
ok($r->{json}{events}[0]{repeated}, 'now it was');
$r = publish('/publish-map', { id => [], kind => 'x' });
is($r->{json}{refused}, 1, 'an id that is none');
publish('/publish-map', [ map { { kind => 'drop_me', id => $_ } } 2 .. 1100 ]);
$r = publish('/publish-map', { id => 'bad', kind => 'x' });
ok(!$r->{json}{events}[0]{repeated}, 'the oldest are forgotten');
loud();


# webhooks

$s{hook} = $t->session(path => '/hook', headers => { 'X-User' => 'x' });
$g{hook} = $s{hook}->open_get;

for (['/push', 403, 'tenant'], ['/kind', 400, 'kind']) {
    $r = $t->publish({}, $_->[0]);
    is($r->{status}, $_->[1], "an empty $_->[2]=");
    is($r->{json}{error}, "the $_->[2] of this location is empty",
       'the answer says so');
}

$r = $t->post('/kind?kind=push', {}, "{\"ref\": \"main\",\n\"who\":\"ann\","
              . '"session_id":"none","identity":"x","kind":"drop_me"}');
is($r->{status}, 202, 'a payload') or diag($r->{body});
@e = heard('hook');
is($e[0]{json}{params}{data}, 'main by ann', 'its members are fields');
is_deeply($e[1]{json}{params}{payload},
          { ref => 'main', who => 'ann', session_id => 'none',
            identity => 'x', kind => 'drop_me' }, 'it is handed on whole');
is($e[1]{json}{params}{kind}, 'push', 'under its kind');
ok($e[0]{json}{params}{details}{ts_ms} > 1e12, 'with its time');

for ([ 'text/plain', "two\nlines \"x\"" ], [ 'text/plain', '12' ],
     [ 'application/json', '"a b"', 'a b' ],
     [ 'application/octet-stream', "\xff\xfe", "\x{fffd}\x{fffd}" ],
     [ 'text/plain', '' ])
{
    $r = $t->post('/text', { 'Content-Type' => $_->[0] }, $_->[1]);
    is($r->{status}, 202, "$_->[0]");
    ($e) = heard('hook');
    is($e->{json}{params}{data}, defined $_->[2] ? $_->[2] : $_->[1],
       'is its text');
}

$r = $t->post('/text', { 'Content-Type' => 'application/json' }, '{bad');
is($r->{status}, 400, 'JSON that is none');

$s{hook}->call('resources/subscribe', { uri => 'events://jobs/latest' });
$t->post("/topic?topic=$_", {}, 'done') for qw(jobs other);
is_deeply([ map { $_->{json}{params} || () } heard('hook') ],
          [ { uri => 'events://jobs/latest' } ], 'a topic');


# configurations

my $c = Mcp::Test->new(conf => '', start => 0);

$c->allow_log(qr{\[emerg\]});

for (['mcp_invalidate a b;', qr/"b" in "mcp_invalidate" is not an action/],
     ['mcp_invalidate a drop message=x;', qr/"drop" cannot be combined/],
     ['mcp_invalidate a level=info;', qr/add "message=DATA"/],
     ['mcp_invalidate a message=x level=a level=b;', qr/appears twice/],
     ['mcp_invalidate a message=$;', qr/does not begin a "\$field"/],
     ['mcp_invalidate a list_changed=x;', qr/names none of/],
     ['mcp_invalidate a notify=notifications/message;', qr/method of MCP/],
     ['mcp_invalidate a;', qr/invalid number of arguments/],
     ['mcp_logger a; mcp_logger b;', qr/is duplicate/],
     ['location /p { mcp_publish zone=main kind=a kind=b; }',
      qr/duplicate parameter "kind=b"/],
     ['location /p { mcp_publish zone=main x=y; }',
      qr/\[kind=VALUE\] \[topic=VALUE\]/])
{
    my ($code, $text) = $c->check(conf => <<"EOF");
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    $_->[0]
    location = /mcp { mcp_endpoint zone=main; }
}
EOF

    isnt($code, 0, "refused: $_->[0]");
    like($text, $_->[1], 'with the remedy');
    like($text, qr/nginx\.conf:\d+/, 'and the place');
}

done_testing();


sub publish {
    my ($uri, $body) = @_;

    return $t->publish($body, $uri);
}


sub notice {
    return json_encode({ jsonrpc => '2.0', method => 'notifications/n', @_ });
}


sub progress {
    my ($token, $n, @address) = @_;

    return json_encode(notification('progress', {
        progressToken => $token, progress => $n }, @address));
}


sub tool {
    my ($who, $token) = @_;

    return $s{$who}->message('tools/call', { name => 'x', _meta =>
                                             { progressToken => $token } });
}


# what a client heard since: all that comes before a mark that is set now

sub heard {
    my ($who) = @_;

    my $n = ++$mark;
    my @heard;

    publish($who eq 'map' ? '/publish-map' : $who eq 'hook' ? '/publish-hooks'
                                                            : '/publish',
            notification('mark', { n => $n }, session_id => $s{$who}->id));

    while (1) {
        my $e = $g{$who}->event;

        if (!$e) {
            fail("$who hears mark $n");
            last;
        }

        last if $e->{json} && $e->{json}{method} eq 'notifications/mark'
                && $e->{json}{params}{n} == $n;
        push @heard, $e if $e->{data} ne '';
    }

    return @heard;
}


sub messages {
    return grep { $_->{json}{method} eq 'notifications/message' } heard(@_);
}


# which of all or of these heard something

sub loud {
    return grep { my @e = heard($_); scalar @e } sort(@_ ? @_ : keys %g);
}
