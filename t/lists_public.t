#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_list_cache auto: lists that an upstream of 2026-07-28 marks as public are
# given to all callers of the endpoint and tenant for their ttlMs, and no other
# list is.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;
use Mcp::Modern;

my $KEY = 'io.modelcontextprotocol/';
my $clock = Mcp::Clock->new;


# servers whose lists are named for them and for $V{about}, and say $V{hint}

sub server {
    my ($name, %more) = @_;

    my $list = sub {
        my ($member, $key) = @_;

        return sub {
            my ($r) = @_;
            my $v = \%Mcp::Upstream::V;
            my $hint = $v->{hint} || {};
            my $n = ($r->{json}{params} || {})->{cursor} || 0;

            my %result = (
                $member => [ { $key => $name . ($v->{about} || 1) . ($n || ''),
                               name => $name . ($v->{about} || 1)
                                       . ($n || '') } ],
                %$hint,
                $v->{pages} && $n + 1 < $v->{pages}
                    ? (nextCursor => $n + 1 . '') : (),
            );

            $result{ttlMs} = $v->{later} if $n && $v->{later};

            return { %result } unless $v->{hold};
            return ([tag => 'held'], [until => $v->{hold}],
                    [json => Mcp::Upstream::result($r, {
                        resultType => 'complete', %result })]);
        };
    };

    return Mcp::Upstream->new(Mcp::Upstream::modern(
        capabilities => {
            tools => { listChanged => JSON::PP::true },
            resources => { listChanged => JSON::PP::true,
                           subscribe => JSON::PP::true },
        },
        'tools/list' => $list->('tools', 'name'),
        'resources/list' => $list->('resources', 'uri'),
        'tools/call' => { content => [] },
        %more));
}

my $up = server('u');
my $other = server('o');
my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(rpc => 1,
    'tools/list' => { tools => [ { name => 'plain' } ], ttlMs => 60000,
                      cacheScope => 'public', resultType => 'complete' }));

my $conf = <<'EOC';
mcp_zone zone=main:8m;

map $mcp_name $denied {
    default  0;
    u1       $http_x_low;
}

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
    }

    location = /auto {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /tenant {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_tenant $http_x_tenant;
    }

    location = /key {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_list_cache auto key=$http_x_key;
    }

    location = /bound {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_session_bind $http_x_user;
    }

    location = /deny {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_deny $denied;
    }

    location = /capped {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_list_cache auto ttl=10s kinds=tools;
    }

    location = /off {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_list_cache off;
    }

    location = /on {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_list_cache on ttl=1h;
    }

    location = /two {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
        mcp_upstream other /_other protocol=modern;
    }

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_list_cache on ttl=1h;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }

    location = /_up    { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_other { internal; proxy_pass http://127.0.0.1:%%OTHER%%/; }
    location = /_rpc   { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
}
EOC

my $t = Mcp::Test->new(vars => { UP => $up->port, OTHER => $other->port,
                                 RPC => $rpc->port },
                       workers => 2, conf => $conf);


# what a client of 2026-07-28 gets: "names ttlMs cacheScope", the ttlMs in
# seconds, in steps of five, as the test may be slow; of a worker, if one is
# given

my %conns;

sub list {
    my ($path, %o) = @_;

    my $method = ($o{list} || 'tools') . '/list';
    my $client = Mcp::Modern->new($t, path => $path,
                                  caps => $o{caps} || {});
    my $conn = $o{worker}
             ? ($conns{$o{worker}} ||= $t->conn_on_worker($o{worker})) : undef;

    my $r = $client->post($client->message($method, $o{params}), $o{headers},
                          $conn ? (conn => $conn) : ());
    my $j = $r->{json} || {};
    my $result = $j->{result};

    return $j->{error} ? "error $j->{error}{code}" : "status $r->{status}"
        unless $result;

    return join ' ', (map { $_->{name} } @{ $result->{ $o{list} || 'tools' } }),
                     5 * int(($result->{ttlMs} + 4999) / 5000),
                     $result->{cacheScope};
}

sub asked { scalar $up->calls($_[0] || 'tools/list') }
sub other { scalar $other->calls('tools/list') }

# no lists are kept, and those to come say this

sub hint {
    my ($ttl, $scope, %more) = @_;

    $clock->pass($t, 61);
    %conns = ();

    for my $server ($up, $other) {
        $server->set(hint => { ttlMs => $ttl, cacheScope => $scope });
        $server->set(about => 1);
        $server->set($_ => $more{$_}) for keys %more;
        $server->clear;
    }
}

my ($one, $two) = $t->workers;


# public

hint(60000, 'public');

is(list('/mcp', worker => $one), 'u1 60 public', 'a public list');
$up->set(about => 2);
is(list('/mcp', worker => $one), 'u1 60 public', 'is kept');
is(list('/mcp', worker => $two), 'u1 60 public', 'for both workers');
is(list('/mcp', headers => { Authorization => 'Bearer x' }), 'u1 60 public',
   'for a client with Authorization');
is(list('/mcp', headers => { Cookie => 'a=b' }), 'u1 60 public',
   'with a cookie');
is(asked(), 1, 'and asked for once');

my $s = $t->session;
my $listed = sub { join ' ', map { $_->{name} }
                   @{ $_[0]->call('tools/list')->{result}{tools} } };

is($listed->($s), 'u1', 'a client with a session gets it');
is($listed->($t->session(headers => { Authorization => 'Bearer y' })), 'u1',
   'one with credentials, too');
is(asked(), 1, 'and it is still the same');

my $r = $s->call('tools/list')->{result};
is_deeply([ sort keys %$r ], ['tools'], 'with nothing of the other revision');

$clock->pass($t, 25);
is(list('/mcp'), 'u1 35 public', 'what is left of the time is told');
is(list('/mcp', worker => $_), 'u1 35 public', 'on each worker')
    for $one, $two;
is(asked(), 1, 'it is not asked for');

$clock->pass($t, 35);
is(asked(), 1, 'nor when its time is over');
is(list('/mcp'), 'u2 60 public', 'a request asks then');
is(list('/mcp', worker => $_), 'u2 60 public', 'for all') for $one, $two;
is(asked(), 2, 'once');

is(list('/mcp', params => { filter => 'x' }), 'u2 60 public',
   'a request that may be for another list');
is(asked(), 3, 'goes to the upstream');

is(list('/mcp', list => 'resources'), 'u2 0 private',
   'a list to which topics are added') for 1 .. 2;
is(asked('resources/list'), 1, 'is kept, but not by clients');


# from a client with a session, and with credentials: all get it

hint(60000, 'public');
is($listed->($t->session(headers => { Authorization => 'Bearer z' })), 'u1',
   'asked for by a client with a session and credentials');
is(list('/mcp'), 'u1 60 public', 'and kept for others');
is(asked(), 1, 'once');


# not public

for ([60000, 'private', '60 private'], [0, 'public', '0 private'],
     [-5, 'public', '0 private'], ['60000', 'public', '0 private'],
     [60000, 'Public', '60 private'], [60000, undef, '60 private'],
     [undef, 'public', '0 private'])
{
    my ($ttl, $scope, $is) = @$_;

    hint($ttl, $scope);

    my $name = join ' ', map { defined $_ ? $_ : 'nothing' } $ttl, $scope;

    is(list('/mcp', worker => $_), "u1 $is", "$name: told as it is")
        for $one, $two;
    is($listed->($s), 'u1', "$name: a session");
    is(asked(), 3, "$name: each request asks");
}


# what a server without sessions says of itself has no meaning

is(list('/rpc'), 'plain 0 private', 'an upstream of another revision');


# tenants, keys, identities, denied tools

hint(60000, 'public');
is(list('/tenant', headers => { 'X-Tenant' => 'a' }), 'u1 60 private',
   'of a tenant');
$up->set(about => 2);
is(list('/tenant', headers => { 'X-Tenant' => 'b' }), 'u2 60 private',
   'another tenant has its own');
is(list('/tenant', headers => { 'X-Tenant' => 'a' }), 'u1 60 private',
   'which the first one does not get');
is(asked(), 2, 'each asks once');

hint(60000, 'public');
is(list('/key', headers => { 'X-Key' => 'a' }), 'u1 60 private', 'of a key');
$up->set(about => 2);
is(list('/key', headers => { 'X-Key' => 'b' }), 'u2 60 private',
   'another key has its own');
is(list('/key', headers => { 'X-Key' => 'a' }), 'u1 60 private', 'the first');
is(list('/key', headers => { 'X-Key' => 'k' x 2000 }), 'u2 60 private',
   'a long key') for 1 .. 2;
is(asked(), 4, 'is not kept');

hint(60000, 'public');
is(list('/bound', headers => { 'X-User' => 'a' }), 'u1 60 private',
   'an identity');
is(list('/bound', headers => { 'X-User' => 'b' }), 'u1 60 private',
   'another one');
is(asked(), 1, 'gets the same');

hint(60000, 'public');
is(list('/deny', headers => { 'X-Low' => 1 }), '60 private',
   'without what is denied');
is(list('/deny'), 'u1 60 private', 'for others with it');
is(list('/deny', headers => { 'X-Low' => 1 }), '60 private',
   'from what is kept');
is(asked(), 1, 'asked for once');

hint(60000, 'public');
is(list('/mcp', caps => { sampling => {} }), 'u1 60 public',
   'a client that declares more');
is(list('/mcp'), 'u1 60 public', 'than another one');
is(asked(), 2, 'is of another audience');


# settings

hint(60000, 'public');
is(list('/capped'), 'u1 60 public', 'ttl= is the upper limit');
$clock->pass($t, 5);
is(list('/capped'), 'u1 5 public', 'of what is kept');
$clock->pass($t, 6);
is(list('/capped'), 'u1 60 public', 'then it is asked for again');
is(asked(), 2, 'once');
list('/capped', list => 'resources') for 1 .. 2;
is(asked('resources/list'), 2, 'kinds= are the lists that are kept');

list('/off') for 1 .. 2;
is(asked(), 4, 'off: none is');


# a change

sub told {
    my ($server, $method) = @_;

    return $server->emit('listen', [event => notification($method, {
        _meta => { "${KEY}subscriptionId" => 'nginx-mcp' } })]);
}

hint(60000, 'public');
my $listen = Mcp::Sse->new(Mcp::Modern->new($t)->post(
    Mcp::Modern->message('subscriptions/listen',
                         { notifications => { toolsListChanged => \1 } }),
    undef, stream => 1));
ok(wait_for(sub { $up->held('listen') == 1 }), 'somebody listens');

my $get = $s->open_get;

for my $round (1, 2) {
    $up->set(about => $round);
    is(list('/mcp', worker => $one), "u$round 60 public", 'a list');
    list('/mcp', worker => $_), list('/mcp', caps => { sampling => {} })
        for $one, $two;

    $up->set(about => $round + 1);
    told($up, 'tools/list_changed');

    ok($listen->method('notifications/tools/list_changed'),
       'a client without session is notified');
    ok($get->method('notifications/tools/list_changed'),
       'one with a session');

    my $n = asked();
    is(list('/mcp', worker => $two), "u" . ($round + 1) . ' 60 public',
       'the list is asked for again');
    is(list('/mcp', caps => { sampling => {} }, worker => $one),
       "u" . ($round + 1) . ' 60 public', 'for each audience');
    is($listed->($s), 'u' . ($round + 1), 'for sessions');
    is(asked(), $n + 2, 'and kept');

    told($up, 'tools/list_changed');
    ok($listen->method('notifications/tools/list_changed'), 'notified');
    ok($get->method('notifications/tools/list_changed'), 'both');
}

$up->set(about => 1);
list('/mcp'), list('/mcp', list => 'resources') for 1 .. 2;
$up->clear;
$up->set(about => 2);
told($up, 'resources/list_changed');
ok($get->method('notifications/resources/list_changed'), 'another kind');
is(list('/mcp'), 'u1 60 public', 'of which others are not');
is(list('/mcp', list => 'resources'), 'u2 0 private', 'it is');

$t->publish(notification('tools/list_changed'));
is(list('/mcp'), 'u2 60 public', 'a change that is published');
ok($get->method('notifications/tools/list_changed'), 'a session hears of it');


# clients with sessions alone: the upstream is listened to while one of them
# holds a stream

hint(60000, 'public');

my $old = $t->session(path => '/auto',
                      headers => { Authorization => 'Bearer a' });
my $held = $up->held('listen');
my $hears = $old->open_get;

ok(wait_for(sub { $up->held('listen') == $held + 1 }), 'it is listened to');
is($listed->($old), 'u1', 'a list');
is(list('/auto', worker => $_), 'u1 60 public', 'which is kept')
    for $one, $two;
$up->set(about => 2);
told($up, 'tools/list_changed');
ok($hears->method('notifications/tools/list_changed'), 'changes');
is($listed->($old), 'u2', 'and is asked for again');
is(asked(), 2, 'once');

undef $hears;
ok(wait_for(sub { $up->held('listen') == $held }), 'then no more');


# a list that was on its way when it changed

$t->publish(notification('tools/list_changed'));
$up->set(hold => 'late');
$up->set(about => 1);
my $client = Mcp::Modern->new($t);
my $late = $client->send_only($client->message('tools/list'));
ok(wait_for(sub { $up->held('held') == 1 }), 'a list is on its way');
$up->set(hold => undef);
$up->set(about => 2);
$t->publish(notification('tools/list_changed'));
$up->release('late');
like($late->response->{body}, qr/"name":"u1"/, 'it arrives');
is(list('/mcp'), 'u2 60 public', 'and is not kept');
is(list('/mcp'), 'u2 60 public', 'but the next one');


# of several upstreams each has its own part

hint(60000, 'public');
$other->set(hint => { ttlMs => 30000, cacheScope => 'public' });
is(list('/two'), 'up__u1 other__o1 30 public', 'two upstreams');
is(list('/two', worker => $_), 'up__u1 other__o1 30 public', 'together')
    for $one, $two;
is($listed->($t->session(path => '/two')), 'up__u1 other__o1', 'a session');
is(asked() . ' ' . other(), '1 1', 'each is asked once');

$_->set(about => 2) for $up, $other;
$clock->pass($t, 31);
is(list('/two'), 'up__u1 other__o2 30 public', 'one part is over');
is(asked() . ' ' . other(), '1 2', 'that upstream is asked');
is(list('/two'), 'up__u1 other__o2 30 public', 'and not again');
is(asked() . ' ' . other(), '1 2', 'before it is over');

hint(60000, 'public');
$other->set(hint => { ttlMs => 60000, cacheScope => 'private' });
is(list('/two'), 'up__u1 other__o1 60 private', 'one is not public');
$_->set(about => 2) for $up, $other;
is(list('/two'), 'up__u1 other__o2 60 private', 'that one is asked');
is(asked() . ' ' . other(), '1 2', 'alone');
$up->set(pages => 2);
$up->set(later => 20000);
$t->publish(notification('tools/list_changed'));
is(list('/two'), 'up__u2 up__u21 other__o2 20 private', 'pages');
$clock->pass($t, 10);
is(list('/two'), 'up__u2 up__u21 other__o2 10 private', 'of which the shorter '
                                                        . 'time counts');
is(asked(), 3, 'are kept together');
$clock->pass($t, 11);
is(list('/two'), 'up__u2 up__u21 other__o2 20 private', 'and over together');
$_->set(pages => 0), $_->set(later => undef) for $up, $other;


# of one upstream, pages are the upstream's

hint(60000, 'public', pages => 2);
is(list('/mcp'), 'u1 60 public', 'a page') for 1 .. 2;
is(list('/mcp', params => { cursor => '1' }), 'u11 60 public', 'the next one')
    for 1 .. 2;
is(asked(), 4, 'are not kept');
$_->set(pages => 0) for $up, $other;
is(list('/mcp'), 'u1 60 public', 'a whole list is');
is(list('/mcp', params => { cursor => '1' }), 'u11 60 public',
   'a cursor of the upstream still reaches it');
is(list('/mcp', params => { cursor => undef }), 'u1 60 public', 'null is none');
is(asked(), 6, 'and is not asked');


# lists that are fetched

hint(60000, 'public');
my $fetched = sub { wait_for(sub { list('/on') eq $_[0] }, 15) };

is($listed->($t->session(path => '/on')), 'u1', 'a list that is fetched');
$clock->pass($t, 20);
like(list('/on', worker => $_), qr/^u1 [3-6]\d public$/,
     'says how it may be kept') for $one, $two;
$_->set(hint => { ttlMs => 0, cacheScope => 'public' }) for $up, $other;
$clock->pass($t, 41);
ok(wait_for(sub { list('/on') eq 'u1 0 private' }), 'or that it may not');


# a worker that dies, and a reload

hint(60000, 'public');
is(list('/auto', worker => $_), 'u1 60 public', 'a list') for $one, $two;
$up->set(about => 2);
$t->kill_worker($one);
%conns = ();
($one, $two) = $t->workers;
is(list('/auto', worker => $_), 'u1 60 public', 'outlives a worker')
    for $one, $two;

ok($t->reload, 'reload');
%conns = ();
($one, $two) = $t->workers;
is(list('/auto', worker => $_), 'u2 60 public', 'and no reload')
    for $one, $two;
is(scalar(grep { $_->{headers}{'x-test-client'} } $up->calls('tools/list')), 2,
   'after which it is asked for once');


# to and from lists that are fetched

$up->set(hint => { ttlMs => 60000, cacheScope => 'private' });

for my $how ('on ttl=1h', 'auto', 'on ttl=1h') {
    my $n = $up->get('about') + 1;

    $up->set(about => $n);
    (my $next = $conf) =~ s/(\/_up protocol=modern;\n)/$1 mcp_list_cache $how;/;
    $t->configure(conf => $next);
    ok($t->reload, "$how: reload");
    ok(wait_for(sub { list('/mcp') =~ /^u$n / }), "$how: what is true now");

    $n++;
    $up->set(about => $n);
    $t->publish(notification('tools/list_changed'));
    ok(wait_for(sub { list('/mcp') =~ /^u$n / }), "$how: and what changed");
}

$t->stop;

done_testing();
