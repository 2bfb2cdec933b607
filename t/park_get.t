#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Clients of revision 2026-07-28 in front of servers with sessions that ask on
# the GET stream of the session instead of the stream of the call.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Park;
use Mcp::Sse;
use Mcp::Test;

my $K = $Mcp::Modern::KEY;
my $clock = Mcp::Clock->new;
my $up = Mcp::Park->upstream(gets => 1);
my $none = Mcp::Park->upstream;
my $odd = Mcp::Park->upstream(GET => sub { [http => 403, {}, 'no'] });

my $t = Mcp::Test->new(vars => { UP => $up->port, NONE => $none->port,
                                 ODD => $odd->port }, conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy listen=off;
    }

    location = /few {
        mcp_endpoint zone=main name=few;
        mcp_upstream up /_up protocol=legacy listen=off;
        mcp_call_limit 4;
    }

    location = /none {
        mcp_endpoint zone=main;
        mcp_upstream none /_none protocol=legacy listen=off;
        mcp_upstream odd /_odd protocol=legacy listen=off;
    }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /_none { internal; proxy_pass http://127.0.0.1:%%NONE%%/; }
    location = /_odd { internal; proxy_pass http://127.0.0.1:%%ODD%%/; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF

my ($here, $there) = $t->workers;

my %caps = (elicitation => { form => {}, url => {} }, sampling => {},
            roots => {});

my $c = Mcp::Modern->new($t, caps => \%caps,
                         headers => { Authorization => 'Bearer a' });

sub said { Mcp::Modern::said(@_) }
sub call { Mcp::Park::call($c, @_) }
sub again { Mcp::Park::again(@_) }
sub gets { $_[0]->requests(sub { $_[0]{method} eq 'GET' }) }
sub open_gets { grep { !$_->{ended} } gets($_[0]) }


# asked by the GET stream, in one worker or the other

my $r = call('@ask', on => $here);
is(said($r), '200 input_required', 'the client is asked');

my ($get) = gets($up);
my ($post) = $up->calls('tools/call');
my $session = $post->{headers}{'mcp-session-id'};

is($get->{headers}{'mcp-session-id'}, $session, 'in the session of the call');
is($get->{headers}{authorization}, 'Bearer a', 'with headers of the client');
is($get->{headers}{'x-session'}, $post->{headers}{'x-session'},
   'and the same $mcp_session_id');
cmp_ok($get->{n}, '<', $post->{n}, 'by a stream that stood before the call');

my $next = again($r, on => $there);
is(said($next), '200 complete', 'the next request is answered');
is_deeply(Mcp::Park::answers($next),
          { ask => { action => 'accept', content => { x => 'ask' } } },
          'with what the client said');

for my $on ($there, $here, $there) {
    is(said(again(call('@think+where', on => $on), on => $here)),
       '200 complete', 'and one more');
}

is(scalar gets($up), 1, 'all by one stream');

$r = call('@ask where @think+page @where', on => $there);

for my $round (1 .. 3) {
    $r = again($r, on => ($there, $here)[$round % 2]);
    is(said($r), '200 input_required', "round $round");
}

$next = again($r, on => $here);
is(said($next), '200 complete', 'and the end');
is_deeply([sort keys %{ Mcp::Park::answers($next) }],
          [qw(ask page think where)], 'with all answers');


# what is about the call, before and behind

sub heard {
    my ($r) = @_;
    return join ' ', map { $_->{params}{progress} || $_->{params}{data} }
                     @{ $r->{before} };
}

$r = call('@complete @tick @log @tick @ask @tick @log', on => $here,
          meta => { progressToken => 'one', "${K}logLevel" => 'info' });
is(heard($r), '1 log 2', 'progress and log');
is(said($r), '200 input_required', 'asked behind');
is(said(again($r, on => $there)), '200 complete', 'and goes on');

$r = call('@log @tick @ask', on => $there);
is_deeply($r->{before}, [], 'none of it for a client that wants none');
is(said(again($r)), '200 complete', 'which is asked all the same');


# more than a round takes

$r = call('@' . join('+', map { "ask$_" } 1 .. 40), on => $here);
is(scalar keys %{ $r->{json}{result}{inputRequests} }, 32, 'a large round');
my %all = %{ Mcp::Park::answers(again($r, on => $there)) };
is(scalar(grep { ($_->{code} || 0) == -32601 } values %all), 8,
   'what is beyond that is refused');


# what is about no call

sub say_get { $up->emit("get $session", map { [event => $_] } @_) }

sub answered {
    my ($id) = @_;
    my ($r) = $up->wait_requests(sub {
        $_[0]{json} && ($_[0]{json}{id} || '') eq $id });
    return $r->{json};
}

say_get({ jsonrpc => '2.0', id => 'stray', method => 'roots/list' });
is(answered('stray')->{error}{code}, -32601, 'no call runs: refused');
say_get({ jsonrpc => '2.0', id => 'ping', method => 'ping' });
is_deeply(answered('ping')->{result}, {}, 'a ping');
say_get(notification('message', { level => 'error', data => 'stray' }),
        { jsonrpc => '2.0', id => 'last', method => 'ping' });
answered('last');

$r = call('@ask wait', on => $here, meta => { "${K}logLevel" => 'debug' });
is_deeply($r->{before}, [], 'nothing that was said before the call');

$t->publish({ kind => 'message', params => { level => 'error',
                                             data => 'all' } });
say_get({ jsonrpc => '2.0', id => 'odd', method => 'x/odd' });
is(answered('odd')->{error}{code}, -32601, 'an unknown request');

{
    my $open = again($r, on => $there, open => 1,
                     meta => { "${K}logLevel" => 'debug',
                               progressToken => 'p' });
    $up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method}
                             && $_[0]{json}{id} =~ /\/ask$/ });
    my $sse = Mcp::Sse->new($open);

    # the worker of the call hears of the answer before

    ok(wait_for {
        say_get(notification('tools/list_changed'),
                notification('progress', { progressToken => 'p',
                                           progress => 1 }),
                notification('message', { level => 'error', data => 'own' }));
        my $e = $sse->event(0.2);
        $e && $e->{json}{params}{data} eq 'own';
    }, 'only what is of the call is heard');

    say_get({ jsonrpc => '2.0', method => 'notifications/odd',
              params => { data => 'own' } });
    ok($sse->method('notifications/odd'), 'also what the module does not know');

    $up->release('wait');
    my @more;

    while (my $e = $sse->event(20)) {
        push @more, $e->{json} if $e->{json};
    }

    $next = pop @more;
    is($next->{result}{resultType}, 'complete', 'until it ends');
    is((grep { $_->{params}{data} ne 'own' } @more), 0, 'nothing else');
}

is($t->status->{streams}{open}, 0, 'no client has a stream by that');

for my $word ('ask!', '@ask!') {
    is(said(call($word, on => $here)), '200 complete',
       "$word: it waits for no answer");
    my $reply = answered('call-' . $up->calls('tools/call') . '/ask');
    ok($reply->{error} || $reply->{result}{action} eq 'cancel',
       'and has one in the end');
}


# a client that does not read, while the upstream says much

{
    my $had = $up->calls('tools/call');
    my $sent = Mcp::Park::send_only($c, $c->message('tools/call', {
        name => 'wait2', arguments => {} }, "${K}logLevel" => 'debug'),
        on => $here);
    ok((wait_for { $up->calls('tools/call') > $had }), 'a call that lasts');

    for my $n (1 .. 30) {
        say_get((map { notification('message', { level => 'error',
                                                 data => 'x' x 20000 }) }
                     1 .. 100),
                { jsonrpc => '2.0', id => "many$n", method => 'ping' });
        answered("many$n");
    }

    $up->release('wait2');
    my $r = Mcp::Park::arrived($sent);
    cmp_ok(scalar @{ $r->{before} }, '<', 1500, 'most of it is not kept');
    is(said($r), '200 complete', 'and its result comes');
}


# calls at a time, and clients that are not asked

{
    my @at_once = map { call('@ask', on => $_) } $here, $there, $here;
    is(scalar open_gets($up), 3, 'one stream for each call');
    is(said(again($_)), '200 complete', 'each goes on') for @at_once;

    my $deaf = Mcp::Modern->new($t);
    my $had = gets($up);
    is(said(Mcp::Park::call($deaf, 'log')), '200 complete',
       'a client that cannot be asked');
    is(scalar gets($up), $had, 'has no stream there');

    my $less = Mcp::Modern->new($t, caps => { sampling => {} });
    my $r = Mcp::Park::call($less, '@ask');
    is(said($r), '200 complete', 'what was not declared');
    is(Mcp::Park::answers($r)->{ask}{code}, -32601, 'is refused');
}


# upstreams without such a stream are asked for it once in a session

my $other = Mcp::Modern->new($t, caps => \%caps, path => '/none');

for my $on ($here, $there, $here) {
    is(said(again(Mcp::Park::call($other, "${_}__ask", on => $on))),
       '200 complete', "upstream $_") for qw(none odd);
}

is(scalar gets($none), 1, 'one without GET is asked once');
is(scalar gets($odd), 1, 'likewise one that refuses it');


# the stream ends some time behind the last call

$clock->pass($t, 12);
ok((wait_for { !open_gets($up) }), 'no stream without a call');
is(said(again(call('@ask', on => $there), on => $here)), '200 complete',
   'and a new one with the next');


# a call waits for it, but not for long

sub waiting {
    my ($name) = @_;

    $clock->pass($t, 12);
    wait_for { !open_gets($up) };
    $up->clear;
    $up->set(slow_get => $name);

    my $sent = Mcp::Park::send_only($c, $c->message('tools/call', {
        name => '@ask', arguments => {} }), on => $here);

    ok($up->wait_requests(sub { $_[0]{method} eq 'GET' }), 'asked for');
    is(scalar $up->calls('tools/call'), 0, 'and waited for');
    return $sent;
}

my $sent = waiting('get-1');
$up->release('get-1');
$r = Mcp::Park::arrived($sent);
is(said($r), '200 input_required', 'until it stands');
is(said(again($r, on => $there)), '200 complete', 'and so on');

$sent = waiting('get-2');
$clock->pass($t, 3);
ok($up->wait_requests(sub { ($_[0]{json}{method} || '') eq 'tools/call' }),
   'no longer than some seconds');
$sent->{conn}->close;
$up->set(slow_get => '');


# the worker that reads the stream dies, and a session that is forgotten

$clock->pass($t, 61);
($here, $there) = $t->workers;
is(said(again(call('@ask', on => $here))), '200 complete', 'read here');
$r = call('@ask @think', on => $there);
is(said($r), '200 input_required', 'for a call there');
my $had = gets($up);
$t->kill_worker($here);
ok((wait_for { gets($up) > $had }), 'then it is read there');
($here) = grep { $_ != $there } $t->workers;
$r = again($r, on => $here);
is(said($r), '200 input_required', 'the call is asked again');
is(said(again($r, on => $there)), '200 complete', 'and goes on');

$up->drop;
$up->set(forget => 1);
is(said(again(call('@ask', on => $there))), '200 complete',
   'in a new session of the upstream');


# a client with ever new credentials has so many sessions there as calls

{
    my $with = sub {
        return Mcp::Modern->new($t, caps => \%caps, path => '/few',
                                headers => { Authorization => "Bearer $_[0]" });
    };

    my $waits = Mcp::Park::call($with->('waits'), '@ask');
    is(said($waits), '200 input_required', 'one call waits');
    $up->clear;

    is(said(Mcp::Park::call($with->($_), 'tick')), '200 complete',
       "other credentials, $_")
        for 1 .. 12;

    is(scalar $up->calls('initialize'), 12, 'each gets a session');
    ok($up->wait_requests(sub { $_[0]{method} eq 'DELETE' }, 9),
       'and most of them end');
    ok((wait_for { open_gets($up) <= 3 }), 'with their GET streams');

    is(said(again($waits)), '200 complete', 'but not that of the call');

    my @wait = map { Mcp::Park::call($with->("wait $_"), '@ask') } 1 .. 4;

    is_deeply([map { said($_) } @wait], [('200 input_required') x 4],
              'as many calls as are allowed');
    is(said(again($_)), '200 complete', 'each is answered') for @wait;
}


# a reload: old workers read while their calls run

$r = call('@ask @think @where', on => $here);
is(said($r), '200 input_required', 'asked before a reload');
ok($t->reload, 'which comes');

for my $kind (qw(think where)) {
    $r = again($r);
    is(said($r), '200 input_required', "and asked for $kind behind it");
}

is(said(again($r)), '200 complete', 'until the end');
$t->wait_old;
pass('the old workers end then');

done_testing();
