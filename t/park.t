#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Clients of revision 2026-07-28 in front of a server with sessions that asks
# them for something: the answer asks the client, whose next request goes on
# with the call, whatever worker has it.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Http2;
use Mcp::Modern;
use Mcp::Park;
use Mcp::Test;

my $K = $Mcp::Modern::KEY;
my $clock = Mcp::Clock->new;
my $up = Mcp::Park->upstream;
my $other = Mcp::Park->upstream;

my $t = Mcp::Test->new(vars => { UP => $up->port, OTHER => $other->port },
                       conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_zone zone=far:2m;

log_format asked '$mcp_method $mcp_name $mcp_protocol_version $mcp_upstream';

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_h2%% http2;
    server_name localhost;

    access_log asked.log asked;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_session_bind $http_x_user;
    }

    location = /few {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_call_limit 1;
    }

    location = /ten {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_call_limit 10;
    }

    location = /quiet {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=legacy;
        mcp_upstream_timeout 2s;
    }

    location = /both {
        mcp_endpoint zone=main;
        mcp_upstream other /_other protocol=legacy;
        mcp_upstream up /_up protocol=legacy;
        mcp_state_key 0123456789abcdef0123456789abcdef;
    }

    # as on two hosts

    location = /near {
        mcp_endpoint zone=main name=hosts;
        mcp_upstream up /_up protocol=legacy;
        mcp_state_key 0123456789abcdef0123456789abcdef;
    }

    location = /far {
        mcp_endpoint zone=far name=hosts;
        mcp_upstream up /_up protocol=legacy;
        mcp_state_key 0123456789abcdef0123456789abcdef;
    }

    location = /_other { internal; proxy_pass http://127.0.0.1:%%OTHER%%/; }

    location = /_up {
        internal;
        proxy_set_header X-Session $mcp_session_id;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}
EOF

my ($here, $there) = $t->workers;

my %caps = (elicitation => { form => {}, url => {} }, sampling => {},
            roots => { listChanged => JSON::PP::true });

my $c = Mcp::Modern->new($t, caps => \%caps, headers => { 'X-User' => 'ann' });

sub said { Mcp::Modern::said(@_) }
sub call { Mcp::Park::call($c, @_) }
sub again { Mcp::Park::again(@_) }


# one request, answered by another worker

my $r = call('ask', on => $here);

is(said($r), '200 input_required', 'the client is asked');

my $result = $r->{json}{result};
my ($key) = keys %{ $result->{inputRequests} };

is_deeply($result->{inputRequests}{$key}, {
    method => 'elicitation/create', params => $Mcp::Park::ASK{ask}{params} },
    'for what the server asks for');
like($result->{requestState}, qr/^nginx-mcp-1\./, 'with a state');
like($r->{headers}{connection}, qr/close/, 'the connection stays with it');

ok((wait_for {
       ((grep { /tools/ } split /\n/, $t->slurp('asked.log'))[-1] || '')
       eq 'tools/call ask 2026-07-28 up'
   }), 'which is logged at once');

my $next = again($r, on => $there);
is(said($next), '200 complete', 'its next request is answered');
is($next->{json}{id}, $next->{sent}{id}, 'under its own id');
is_deeply(Mcp::Park::answers($next),
          { ask => { action => 'accept', content => { x => 'ask' } } },
          'by the call that asked');
is(scalar $up->calls('tools/call'), 1, 'which ran once');

my ($init) = $up->calls('initialize');
is_deeply($init->{json}{params}{capabilities},
          { %caps, roots => {} }, 'what the client declares is declared');


# one connection for both requests, where that can be

{
    my $h2 = Mcp::Http2->new(port => $t->port('h2'));
    my $m = $c->message('tools/call', { name => 'ask', arguments => {} });

    my $send = sub {
        my $r = $h2->request('POST', '/mcp', $c->headers($m), json_encode($m));
        my ($data) = $r->{body} =~ /^data: (\{.*\})$/m;
        return json_decode($data || $r->{body})->{result};
    };

    my $asked = $send->();
    is($asked->{resultType}, 'input_required', 'asked by HTTP/2');
    $m->{params}{requestState} = $asked->{requestState};
    $m->{params}{inputResponses} = Mcp::Park::responses(
        { json => { result => $asked } });
    is($send->()->{resultType}, 'complete', 'on one connection');
}


# what is refused, and what was refused can still be answered

sub refused {
    my ($name, $r, %o) = @_;

    my $next = again($r, %o);
    is(said($next), '400 -32602', $name);
    return $next->{json}{error}{message};
}

$up->clear;
$r = call('ask', on => $here);
my $state = $r->{json}{result}{requestState};

sub with_state {
    my ($new) = @_;
    return (change => sub { $_[0]{params}{requestState} = $new });
}

for my $at (12, 40, length($state) - 10) {
    my $other = $state;
    substr($other, $at, 1) = substr($other, $at, 1) eq 'A' ? 'B' : 'A';
    refused("changed at $at", $r, with_state($other));
}

refused('with bytes behind', $r, with_state($state . 'A'));
refused('with other bytes behind', $r, with_state("$state="));
refused('cut', $r, with_state(substr($state, 0, -1)));
refused('one of nobody', $r, with_state('state/1'));
refused('one that is no string', $r, with_state(7));
refused('other arguments', $r, change => sub {
    $_[0]{params}{arguments} = { a => 2 } });
refused('another name', $r, change => sub { $_[0]{params}{name} = 'where' });
refused('answers that are none', $r, answers => { x => 1 });

{
    my $bob = Mcp::Modern->new($t, caps => \%caps,
                               headers => { 'X-User' => 'bob' });
    my $theirs = { %$r, client => $bob };
    like(refused('another identity', $theirs, on => $there),
         qr/caller/, 'and why');

    my $get = { %$r, sent => { %{ $r->{sent} }, method => 'prompts/get' } };
    refused('another method', $get, on => $there);
}

is(said(again($r, on => $there)), '200 complete', 'then the right one');
is(scalar $up->calls('tools/call'), 1, 'nothing was called meanwhile');

like(refused('a second time', $r, on => $here), qr/ended|before/, 'and why');


# several requests in a round, several rounds, and all methods

$r = call('ask+think+where', on => $here);
is(join(' ', sort map { $_->{method} }
        values %{ $r->{json}{result}{inputRequests} }),
   'elicitation/create roots/list sampling/createMessage', 'three at once');
$next = again($r, on => $there);
is_deeply(Mcp::Park::answers($next),
          { map { ($_ => $Mcp::Park::ANSWER{$_}->()) } qw(ask think where) },
          'are answered at once');

for my $method ('tools/call', 'prompts/get') {
    $up->clear;
    $r = call('ask page+where think', on => $here, method => $method);
    my @first = ($r);

    for my $round (1 .. 2) {
        $r = again($r, on => ($there, $here)[$round % 2]);
        is(said($r), '200 input_required', "$method: round $round");
        push @first, $r;
    }

    refused("$method: the first state again", $first[0], on => $here);

    $next = again($r, on => $here);
    is(said($next), '200 complete', "$method: and the end");
    is_deeply([sort keys %{ Mcp::Park::answers($next) }],
              [qw(ask page think where)], 'with all answers');
    is(scalar $up->calls($method), 1, 'of one call');
}

$r = call('x:ask', method => 'resources/read');
is(said($r), '200 input_required', 'a resource');
is(said(again($r)), '200 complete', 'and its content');


# answers that are missing, and those that nobody wants

$r = call('ask+where', on => $here);
my %asked = %{ $r->{json}{result}{inputRequests} };
my ($one, $two) = sort { $asked{$a}{method} cmp $asked{$b}{method} }
                  keys %asked;
$next = again($r, on => $there, answers => {
    $one => $Mcp::Park::ANSWER{ask}->(), stray => {} });
is(said($next), '200 input_required', 'one is missing');
is_deeply($next->{json}{result}{inputRequests}, { $two => $asked{$two} },
          'and asked for again');
isnt($next->{json}{result}{requestState}, $r->{json}{result}{requestState},
     'with another state');
my $none = again($next, on => $here, answers => {});
is_deeply($none->{json}{result}{inputRequests}, { $two => $asked{$two} },
          'and once more');
$next = again($none, on => $there);
is_deeply([sort keys %{ Mcp::Park::answers($next) }], [qw(ask where)],
          'until all are there');


# what the call says before it asks, and behind it

$r = call('complete tick log tick ask complete tick log tick', on => $here,
          meta => { progressToken => 'one', "${K}logLevel" => 'info' });
is(said($r), '200 input_required', 'asked after progress');
is(join(' ', map { $_->{params}{progress} || $_->{params}{data} }
        @{ $r->{before} }), '1 log 2', 'which came');
$next = again($r, on => $there, meta => { progressToken => 'two' });
is(join(' ', map { $_->{params}{progress} || $_->{params}{data} }
        @{ $next->{before} }), '3 log 4', 'and more of it');
is(join(' ', map { $_->{params}{progressToken} || () }
        @{ $next->{before} }), 'two two', 'with the token of the request');
is(said($next), '200 complete', 'before the result');

$r = call('ask log tick', on => $here, meta => { progressToken => 1,
                                                 "${K}logLevel" => 'info' });
$next = again($r, on => $there, meta => { progressToken => undef,
                                          "${K}logLevel" => undef });
is_deeply($next->{before}, [], 'none of it for one that wants none');

$r = again(call('ask where... think', on => $here), on => $there);
is(said($r), '200 input_required', 'asked before many messages');
$next = again($r, on => $there);
is(said($next), '200 input_required', 'and behind them');
is(said(again($next, on => $here)), '200 complete', 'until the result');

$r = call('ask where wait1', on => $here);
$up->clear;
my $refuses = again($r, on => $there, open => 1,
                    meta => { "${K}clientCapabilities" => {
                                  elicitation => {} } });
$up->wait_requests(sub { ($_[0]{json}{id} || '') =~ /where/ });
$clock->pass($t, 1);
$up->release('wait1');
$next = Mcp::Park::finish($refuses);
is(said($next), '200 complete', 'what a client cannot answer any more');
is(Mcp::Park::answers($next)->{where}{code}, -32601, 'is refused');

$r = call('ask big300000', on => $here);
$next = again($r, on => $there);
is(length $next->{json}{result}{content}[0]{text}, 300000, 'a large result');


# more than a round takes, several upstreams, and a client that takes JSON only

$r = call(join '+', map { "ask$_" } 1 .. 40);
is(scalar keys %{ $r->{json}{result}{inputRequests} }, 32, 'a large round');
my %all = %{ Mcp::Park::answers(again($r)) };
is(scalar(grep { ($_->{code} || 0) == -32601 } values %all), 8,
   'what is beyond that is refused');

my $both = Mcp::Modern->new($t, caps => \%caps, path => '/both');
$r = again(Mcp::Park::call($both, 'up__ask where'));
is(said($r), '200 input_required', 'one of several upstreams');
$r = again($r, headers => { Accept => 'application/json' });
is(said($r), '200 complete', 'and its result');
is($r->{headers}{'content-type'}, 'application/json', 'as JSON');
$r = Mcp::Park::call($both, 'up__ask',
                     headers => { Accept => 'application/json' });
is(Mcp::Park::answers($r)->{ask}{code}, -32601,
   'a client that takes no stream is not asked');


# pages that have to be visited before the call

$r = call('visit');
is(said($r), '200 input_required', 'a page is wanted first');
is_deeply($r->{json}{result}{inputRequests}, { 'page-1' => {
    method => 'elicitation/create',
    params => { mode => 'url', url => 'http://localhost/a', message => 'A' } },
    'page-2' => { method => 'elicitation/create',
    params => { mode => 'url', url => 'http://localhost/b',
                message => 'B' } } }, 'those of the error');
$next = again($r, change => sub { delete $_[0]{params}{requestState} });
is(said($next), '200 complete', 'then it is called');

{
    my $blind = Mcp::Modern->new($t, caps => { elicitation => {} },
                                 headers => { 'X-User' => 'ann' });
    my $r = Mcp::Park::call($blind, 'visit');
    is(said($r), '400 -32021', 'a client that visits none');
    is_deeply($r->{json}{error}{data}{requiredCapabilities},
              { elicitation => { url => {} } }, 'hears what it lacks');
}

for my $no ('none', 'text', 'form') {
    my $r = call("visit-$no");
    is(said($r), '200 -32603', "$no: no page that the client could visit");
    is($r->{json}{error}{message}, 'visit', 'but what the server says');
}


# upstream sessions: of one principal and its capabilities, for one call each

$up->clear;
my @at_once = map { call('ask') } 1 .. 3;
my %used = map { $_->{headers}{'mcp-session-id'} => 1 }
           $up->calls('tools/call');
is(scalar keys %used, 3, 'calls at the same time do not share one');
is(said(again($_)), '200 complete', 'each goes on') for @at_once;
my $had = $up->calls('initialize');
is(said(again(call('ask'))), '200 complete', 'one more');
is(scalar $up->calls('initialize'), $had, 'uses one of those again');

{
    my $bob = Mcp::Modern->new($t, caps => \%caps,
                               headers => { 'X-User' => 'bob' });
    $up->clear;
    is(said(again(Mcp::Park::call($bob, 'ask'))), '200 complete', 'another');
    is(scalar $up->calls('initialize'), 1, 'has one of their own');

    my $less = Mcp::Modern->new($t, caps => { sampling => {} },
                                headers => { 'X-User' => 'ann' });
    $up->clear;
    my $r = Mcp::Park::call($less, 'ask');
    is(said($r), '200 complete', 'what was not declared is not asked for');
    is(Mcp::Park::answers($r)->{ask}{code}, -32601, 'but refused');
    my ($init) = $up->calls('initialize');
    is_deeply($init->{json}{params}{capabilities}, { sampling => {} },
              'in a session with less');

    my $deaf = Mcp::Modern->new($t, headers => { 'X-User' => 'ann' });
    $up->clear;
    is(said(Mcp::Park::call($deaf, 'ask')), '200 complete', 'or nothing');
    is(said(Mcp::Park::call($deaf, 'ask')), '200 complete', 'shares one');
    is(scalar $up->calls('initialize'), 1, 'with others');
    $r = Mcp::Park::call($deaf, 'ask', params => { requestState => 'x' });
    is(said($r), '400 -32602', 'a state of nobody is refused there as well');
}

# the limit is one of parked calls as well

my $few = Mcp::Modern->new($t, caps => \%caps, path => '/few');
$r = Mcp::Park::call($few, 'ask');
is(said(Mcp::Park::call($few, 'ask')), '503 -32000', 'no more than the limit');
is(said(again($r)), '200 complete', 'but that one goes on');

# many sessions at the upstream are in use: one that is not ends for another

{
    my $ten = sub {
        return Mcp::Modern->new($t, caps => \%caps, path => '/ten',
                                headers => { Authorization => "Bearer $_[0]" });
    };

    $up->clear;
    my @held = map { Mcp::Park::send_only($ten->("a$_"), $ten->("a$_")
                       ->message('tools/call', { name => 'wait-ten',
                                                 arguments => {} })) } 1 .. 8;
    $up->wait_requests(sub {
        ref $_[0]{json} && ($_[0]{json}{params}{name} || '') eq 'wait-ten'
    }, 8);

    is(said(Mcp::Park::call($ten->($_), 'tick')), '200 complete',
       "$_: one more")
        for qw(b1 b2 c d);

    $up->release('wait-ten');
    is(said(Mcp::Park::arrived($_)), '200 complete', 'one of those before')
        for @held;
}

# its place is free when another worker has sent the answer, even if the worker
# that ran it comes last

{
    my %said;
    my @workers = ($here, $there);
    my ($cpus) = `taskset -cp $$` =~ /: *(\S+)\s*\z/;

    system("taskset -cp 0 $_ > /dev/null 2>&1") for @workers;
    setpriority(0, $here, 19);

    for (1 .. 10) {
        $r = Mcp::Park::call($few, 'ask', on => $here);
        $said{said($r)}++;
        $said{said(again($r, on => $there))}++ if $r->{json}{result};
        $r = Mcp::Park::call($few, 'ask', on => $there);
        $said{said($r)}++;
        $said{said(again($r, on => $there))}++ if $r->{json}{result};
    }

    is_deeply(\%said, { '200 input_required' => 20, '200 complete' => 20 },
              'and others, one after the other');

    system("taskset -cp $cpus $_ > /dev/null 2>&1") for @workers;
    setpriority(0, $here, 0);
}


# the silence of one that waits does not count

my $quiet = Mcp::Modern->new($t, caps => \%caps, path => '/quiet');
$r = Mcp::Park::call($quiet, 'ask');
$clock->pass($t, 10);
is(said(again($r)), '200 complete', 'after more than mcp_upstream_timeout');


# clients that do not come back, or leave again

sub cancelled {
    my ($r) = @_;
    my ($call) = $up->calls('tools/call');
    my ($cancel) = $up->wait_requests(sub {
        ($_[0]{json}{method} || '') eq 'notifications/cancelled' });
    is($cancel->{json}{params}{requestId}, $call->{json}{id}, 'cancelled');
    ok($up->wait_requests(sub {
        $_[0]{method} eq 'DELETE'
        && $_[0]{headers}{'mcp-session-id'}
           eq $call->{headers}{'mcp-session-id'} }), 'and the session ends');
}

# time passes also while the clock is put on

sub pass_until {
    my ($end) = @_;

    $clock->pass($t, 1) while $clock->now < $end;
}

$up->clear;
my $since = $clock->now;
$r = call('ask+think', on => $here);
pass_until($since + 590);
is(scalar $up->calls('notifications/cancelled'), 0, 'ten minutes');
$clock->pass($t, 15);
cancelled($r);
my %said = map { $_->{json}{id} =~ s/.*\///r => $_->{json} }
           $up->requests(sub { $_[0]{json} && !$_[0]{json}{method} });
is_deeply($said{ask}{result}, { action => 'cancel' }, 'asked in vain');
is($said{think}{error}{code}, -32603, 'likewise');
is(refused('too late', $r, on => $there),
   'requestState has expired; the request that asked was cancelled',
   'and why');

$since = $clock->now;
$r = call('ask', on => $here);
pass_until($since + 590);
is(said(again($r, on => $there)), '200 complete', 'not too late');

# one that comes back to another host

{
    my ($near, $far) = map { Mcp::Modern->new($t, caps => \%caps,
                                              path => $_) } qw(/near /far);

    $r = Mcp::Park::call($near, 'ask');
    my $lost = { %$r, client => $far };
    like(refused('by another host', $lost), qr/is of another host/, 'and why');
    is(said(again($r)), '200 complete', 'not by the host that asked');

    $clock->pass($t, 605);
    like(refused('later', $lost), qr/is of another host/, 'and why');
}

# the time of a state is its own, whatever the call does

$since = $clock->now;
$r = call('ask wait-long', on => $here);
$up->clear;
my $long = again($r, on => $there, open => 1);
$up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method} });
pass_until($since + 590);
like(refused('used, within its time', $r, on => $there), qr/was used before/,
     'and why');
$clock->pass($t, 15);
like(refused('used, and behind it', $r, on => $there), qr/has expired/,
     'and why');
$up->release('wait-long');
is(said(Mcp::Park::finish($long)), '200 complete', 'the call goes on');

$up->clear;
$r = call('ask wait', on => $here);
my $open = again($r, on => $there, open => 1);
$up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method} });
$open->{conn}->close;
cancelled($r);
like(refused('it ended', $r, on => $there), qr/ended|used/, 'and why');


# the death of what runs it

$up->clear;
$r = call('ask', on => $here);
$t->kill_worker($here);
($here, $there) = $t->workers;
my $equal = call('ask', on => $here);
like(refused('the worker died', $r), qr/ended.*may have run/, 'and why');
is(said(again($equal)), '200 complete', 'an equal call is another one');

$r = call('ask wait', on => $here);
$up->clear;
$open = again($r, on => $there, open => 1);
$up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method} });
$t->kill_worker($here);
is(said(Mcp::Park::finish($open)), '200 -32603', 'it dies under its client');

($here, $there) = $t->workers;
$r = call('ask wait', on => $here);
$up->clear;
$open = again($r, on => $there, open => 1);
$up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method} });
$t->kill_worker($there);
$clock->pass($t, 610);
ok($up->wait_requests(sub {
    ($_[0]{json}{method} || '') eq 'notifications/cancelled' }),
   'the worker of the client dies');
($here, $there) = $t->workers;

for my $big ('', ' big300000') {

    # on a slow machine the answer may come too late

    for (1 .. 3) {
        $r = call("ask!$big", on => $here);
        last if said($r) eq '200 complete';
        again($r);
    }

    is(said($r), '200 complete', "it does not wait for the answer$big");
    is(scalar(grep { $_->{result} } @{ $r->{before} }), 0, 'is not asked');
}

$r = call('ask cut', on => $here);
is(said(again($r, on => $there)), '200 -32603', 'the upstream cut it');

$r = call('ask', on => $here);
$up->drop;
like(said(again($r, on => $there)), qr/^200 -32603$|^400 -32602$/,
     'or had before');


# a reload: the old worker runs it to its end

$r = call('ask', on => $here);
ok($t->reload, 'a reload');
my @old = grep { $_ == $here } $t->workers(all => 1);
is(scalar @old, 1, 'the old worker stays');
is(said(again($r)), '200 complete', 'and has it still');
ok($t->wait_old, 'and ends');
is(said(again(call('ask'))), '200 complete', 'and the new ones others');

# new workers begin long after the old one was told to quit

($here) = $t->workers;
$r = call('ask', on => $here);
$t->hup_late(1.6);
is(said(again($r)), '200 complete', 'a reload whose workers begin late');
ok($t->reloaded, 'it is over');
ok($t->wait_old, 'the old worker ends');

# a worker learns that it is to quit between an answer and the end of the
# stream that brought it

($here, $there) = $t->workers;
$r = call('ask stay wait-reload', on => $here);
$up->clear;
$open = again($r, on => $there, open => 1);
$up->wait_requests(sub { $_[0]{json} && !$_[0]{json}{method} });
kill 'STOP', $here;
$up->release('wait-reload');
$t->hup;
ok(wait_for { !grep { $_ == $there } $t->workers }, 'a reload');
kill 'CONT', $here;
is(said(Mcp::Park::finish($open)), '200 complete', 'is answered');
ok($t->wait_old, 'and its worker ends');
($here, $there) = $t->workers;

# the end: nobody is left who could go on with it, or with that of a worker
# from before a reload

my ($former) = $t->workers;
is(said(call('ask', on => $former)), '200 input_required',
   'asked before a reload');
ok($t->reload, 'a reload');

# it looks for newer workers, and finds them

$clock->pass($t, 2);
kill 'USR1', $former;
ok(wait_for { $t->log =~ /\b$former#\d+: reopening logs/ }, 'some time ago');

is(said(call('ask')), '200 input_required', 'asked at the end');
my $late = () = $t->log =~ /did not come back in time/g;
ok($t->stop, 'nginx ends');
is(scalar(() = $t->log =~ /is cancelled: .*, and nginx quits before/g),
   2, 'which is why both are cancelled');
is(scalar(() = $t->log =~ /did not come back in time/g), $late,
   'not as their client was late');

done_testing();
