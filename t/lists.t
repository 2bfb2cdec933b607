#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_list_cache: lists are fetched once for all, changed means changed, and
# each session of the audience hears of it once.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

# a server whose lists are what $V says; $V{paged}: one entry in a page

sub lists {
    my ($r, $member, $text, @keys) = @_;

    my @all = map { my $v = $_; +{ map { $_ => $v } @keys } } split / /, $text;
    my $key = $r->{headers}{'x-key'};

    push @all, { map { $_ => "for-$key" } @keys } if $key;

    if (my $held = $Mcp::Upstream::V{hold}) {
        return ([until => $held],
                [json => Mcp::Upstream::result($r, { $member => \@all })]);
    }

    return [http => 500, {}, 'broken'] if $Mcp::Upstream::V{fail};
    return [json => Mcp::Upstream::result($r, { $member => [ 'bad' ] })]
        if $Mcp::Upstream::V{bad};

    my $n = $r->{json}{params}{cursor} || 0;

    if (!$Mcp::Upstream::V{paged}) {
        return [json => Mcp::Upstream::error($r, -32602, 'no such page')] if $n;
        return { $member => \@all };
    }

    my $next = $Mcp::Upstream::V{circle} ? 1 : $n + 1;

    return { $member => [ $all[$n] ],
             $next < @all ? (nextCursor => "$next") : () };
}

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { map { $_ => { listChanged => JSON::PP::true() } }
                      qw(tools prompts resources) },
    'tools/list' => sub {
        return lists($_[0], 'tools', $Mcp::Upstream::V{tools} || 'b a',
                     'name');
    },
    'prompts/list' => sub {
        return lists($_[0], 'prompts', $Mcp::Upstream::V{prompts} || 'p',
                     'name');
    },
    'resources/list' => sub {
        return lists($_[0], 'resources', $Mcp::Upstream::V{resources} || 'r',
                     'uri', 'name');
    },
    'resources/templates/list' => sub {
        return lists($_[0], 'resourceTemplates',
                     $Mcp::Upstream::V{templates} || 't', 'uriTemplate');
    },
    'tools/call' => sub { return { content => [] } },
    GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
));

my $bulk = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => sub {
        my $n = $Mcp::Upstream::V{count} || 10_001;
        return { tools => [ map { { name => "tool-$_" } } 1 .. $n ] };
    },
    'resources/list' => sub {
        my $pad = 'x' x 1000;
        return { resources => [ map { { uri => "r:$_", name => $pad } }
                                1 .. 2000 ] };
    },
));

my $conf = <<'EOF';
mcp_zone zone=main:32m;
mcp_zone zone=small:4m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_batch on;
    mcp_list_cache on ttl=1h;
    mcp_invalidate deploy list_changed=tools;
    mcp_invalidate moved  list_changed=resources;

    location = /mcp {
        mcp_endpoint zone=main name=one;
        mcp_upstream up /_up;
    }

    location = /keyed {
        mcp_endpoint   zone=main name=keyed;
        mcp_tenant     $http_x_tenant;
        mcp_list_cache on key=$http_x_role max=3;
        mcp_upstream   up /_keyed;
    }

    location = /ttl {
        mcp_endpoint   zone=main name=ttl;
        mcp_list_cache on ttl=1s;
        mcp_upstream   up /_up;
    }

    location = /bound {
        mcp_endpoint     zone=main name=bound;
        mcp_session_bind $http_x_user;
        mcp_upstream     up /_up;
    }

    location = /denied {
        mcp_endpoint zone=main name=denied;
        mcp_upstream up /_up;
        mcp_deny     $forbidden;
    }

    location = /bulk {
        mcp_endpoint zone=main name=bulk;
        mcp_upstream bulk /_bulk protocol=rpc;
    }

    location = /small {
        mcp_endpoint zone=small name=small;
        mcp_upstream bulk /_bulk protocol=rpc;
    }

    location = /off {
        mcp_endpoint   zone=main name=off;
        mcp_list_cache off;
        mcp_upstream   up /_up;
    }

    location = /_up    { internal; proxy_pass http://127.0.0.1:%%UP%%;
                         proxy_set_header X-Endpoint $mcp_endpoint;
                         proxy_set_header X-Session $mcp_session_id; }
    location = /_bulk  { internal; proxy_pass http://127.0.0.1:%%BULK%%; }
    location = /_keyed { internal; proxy_pass http://127.0.0.1:%%UP%%;
                         proxy_set_header X-Key
                             "$mcp_tenant$mcp_list_key"; }

    location = /publish { mcp_publish zone=main; }
    location = /publish-small { mcp_publish zone=small; }
    location = /status  { mcp_status zone=main; }
}

map "$mcp_method $mcp_name" $forbidden {
    "tools/call a"  1;
}
EOF

my $t = Mcp::Test->new(vars => { UP => $up->port, BULK => $bulk->port },
                       conf => $conf);
my @w = $t->workers;
my ($r, %s, %g);


# one fetch for all workers, in the order in which entries were sent

$s{a} = $t->session(conn => $t->conn_on_worker($w[0]));
$s{b} = $t->session(conn => $t->conn_on_worker($w[1]));

is(names('a'), 'b a', 'a list');
ok(wait_for { $up->held('listen') == 1 && stat_of('refreshes') == 1 },
   'is fetched once, and listened for');

$up->clear;
is(names('b'), 'b a', 'on the other worker');
is(names('a'), 'b a', 'and again');
is(scalar $up->calls('tools/list'), 0, 'no more than that');
is($s{a}->call('tools/list', undef, id => '"x')->{id}, '"x', 'any id');

is(names('a', 'prompts'), 'p', 'prompts');
is(names('a', 'resources', 'uri'), 'r', 'resources');
is(names('a', 'resources/templates', 'uriTemplate'), 't', 'templates');
is(names('b', 'resources/templates', 'uriTemplate'), 't', 'on both');
is(scalar $up->calls('resources/templates/list'), 1, 'fetched once');

$r = $s{a}->call('tools/list', { cursor => 'x' });
is($r->{error}{code}, -32602, 'an unknown cursor');
is($s{a}->call('tools/list', { cursor => 1 })->{error}{code}, -32602,
   'no cursor at all');
is(scalar @{ $s{a}->call('tools/list', { cursor => undef })
             ->{result}{tools} }, 2, 'null is none');

my $batch = $t->session(version => '2025-03-26');
$r = $batch->post([ $batch->message('tools/list'),
                    $batch->message('prompts/list'),
                    $batch->message('ping') ]);
is_deeply([ map { join ' ', map { $_->{name} } @{ $_->{result}{tools}
                                                  || $_->{result}{prompts}
                                                  || [] } }
            @{ $r->{json} } ], [ 'b a', 'p', '' ], 'in a batch');

my $sse = $t->session(accept => 'text/event-stream');
is(join(' ', map { $_->{name} } @{ $sse->call('tools/list')->{result}{tools} }),
   'b a', 'as a stream');


# what the upstream says

$g{$_} = $s{$_}->open_get(conn => $t->conn) for qw(a b);
ok(wait_for { $up->held('listen') >= 3 }, 'listeners are up');

my $changed = stat_of('changed');

change(tools => 'b c a');
hears('a', 'tools');
is(names('a'), 'b c a', 'the new list is there when one hears of it');
hears('b', 'tools');
is(names('b'), 'b c a', 'on each worker');
quiet('once');
is(stat_of('changed'), $changed + 1, 'counted once');

silent(sub { said('tools') }, 'unchanged', 'an equal list');

silent(sub { change(tools => 'c b a') }, 'unchanged', 'a new order');
ok(wait_for { names('a') eq 'c b a' }, 'which is served');
is(names('b'), 'c b a', 'everywhere');


# an event of another origin

$up->set(tools => 'c b');
publish({ kind => 'deploy' });
hears($_, 'tools') for qw(a b);
is(names('b'), 'c b', 'an invalidate event that means a list');

$up->set(tools => 'c');
publish(notification('tools/list_changed'));
hears($_, 'tools') for qw(a b);
is(names('b'), 'c', 'a published notification');

silent(sub { publish({ kind => 'deploy' }) }, 'unchanged',
       'one that is not true');

publish(notification('tools/list_changed', undef, session_id => $s{a}->id));
hears('a', 'tools');
quiet('one for a session is for it alone');

$s{off} = $t->session(path => '/off');
$g{off} = $s{off}->open_get;

for my $event ({ kind => 'deploy' }, notification('tools/list_changed')) {
    silent(sub { publish($event); hears('off', 'tools') }, 'unchanged',
           'without a cache it passes through');
}

delete $g{off};


# two kinds, one notification

$up->set(templates => 't u');
change(resources => 'r s');
hears($_, 'resources') for qw(a b);
is(names('a', 'resources', 'uri'), 'r s', 'resources and templates');
is(names('b', 'resources/templates', 'uriTemplate'), 't u', 'both changed');
quiet('said once');

$up->set(templates => 't');
publish({ kind => 'moved' });
hears($_, 'resources') for qw(a b);
is(names('a', 'resources/templates', 'uriTemplate'), 't', 'one of them');
quiet('said once');


# a change while the list is being fetched

$up->set(hold => 'first');
$up->clear;
change(tools => 'd');
ok(wait_for { $up->calls('tools/list') == 1 }, 'it is being fetched');
$up->set(hold => '');
$up->set(tools => 'd e');
said('tools') for 1 .. 3;

# the oldest stream is that of the module's own session

$up->emit_one('listen', 'oldest', [event => { jsonrpc => '2.0', id => 'heard',
                                              method => 'ping' }]);
ok($up->wait_requests(sub {
       ref $_[0]{json} && ($_[0]{json}{id} || '') eq 'heard'
   }), 'all signals are heard');

# the signals of the streams of both clients count as well

$up->emit('listen', [event => notification('message', { level => 'error',
                                                        data => 'heard' })]);
ok($g{$_}->event_where(sub { $_[0]{data} =~ /"heard"/ }), "those of $_ too")
    for qw(a b);

is(names('a'), 'c', 'the old list is served meanwhile');
$up->release('first');
hears($_, 'tools') for qw(a b);
is(names('b'), 'd e', 'fetched once more');
quiet('for many signals');
is(scalar $up->calls('tools/list'), 2, 'and not again');


# failures

for my $how (qw(fail bad)) {
    my $failed = stat_of('failed');

    $up->set($how => 1);
    change(tools => "$how 1");
    ok(wait_for { stat_of('failed') > $failed }, "$how: a failure");
    isnt(names('a'), "$how 1", 'the old list stays');
    quiet('nobody is told');
    $up->set($how => 0);
    hears($_, 'tools') for qw(a b);
    is(names('b'), "$how 1", 'tried again');
}


# all pages

$up->set(paged => 1);
change(tools => 'p q r s');
hears($_, 'tools') for qw(a b);
$r = $s{a}->call('tools/list')->{result};
is(join(' ', map { $_->{name} } @{ $r->{tools} }), 'p q r s', 'pages');
ok(!exists $r->{nextCursor}, 'are one list');

my $failed = stat_of('failed');
$up->set(circle => 1);
change(tools => 'x y z');
ok(wait_for { stat_of('failed') > $failed }, 'pages that have no end');
is(names('a'), 'p q r s', 'are no list');
$up->set($_ => 0) for qw(circle paged);
hears($_, 'tools') for qw(a b);


# time

$s{ttl} = $t->session(path => '/ttl');
$g{ttl} = $s{ttl}->open_get;
is(names('ttl'), 'x y z', 'a list with a short life');
$up->set(tools => 'late');
hears('ttl', 'tools');
is(names('ttl'), 'late', 'is fetched again when its time is over');
is(names('a'), 'x y z', 'not so one with a long life');
delete $g{ttl};
$s{ttl}->delete;


# audiences: only the one that changed hears of it

my %who = (
    ann  => { 'X-Tenant' => 'acme', 'X-Role' => 'dev' },
    bob  => { 'X-Tenant' => 'acme', 'X-Role' => 'ops',
              Authorization => 'Bearer bob' },
    carl => { 'X-Tenant' => 'bold', 'X-Role' => 'dev' },
);

for my $name (sort keys %who) {
    $s{$name} = $t->session(path => '/keyed', headers => $who{$name});
    $g{$name} = $s{$name}->open_get;
    is(names($name), "late for-$who{$name}{'X-Tenant'}$who{$name}{'X-Role'}",
       "list of $name");
}

delete @g{qw(a b)};
silent(sub { publish({ kind => 'deploy', tenant_id => 'acme' }) },
       'unchanged', 'the same for all of a tenant', 2);

$up->set(tools => 'later');
publish({ kind => 'deploy', tenant_id => 'bold' });
hears('carl', 'tools');
quiet('one tenant');
is(names('carl'), 'later for-bolddev', 'has the new list');
is(names('ann'), 'late for-acmedev', 'the other has not');
is(names('ann', 'tools', 'name', headers => { %{ $who{ann} },
                                              'X-Role' => 'x' }),
   'later for-acmex', 'who has another key now gets its own list');
is(names('ann'), 'late for-acmedev', 'and with the first key the cached one');

$up->set(tools => 'latest');
publish({ kind => 'deploy', tenant_id => 'acme' });
hears($_, 'tools') for qw(ann bob);
quiet('the other tenant');

# one audience more than there may be

$s{dora} = $t->session(path => '/keyed', headers => {
                       'X-Tenant' => 'acme', 'X-Role' => 'new' });
is(names('dora'), 'latest for-acmenew', 'one audience too many');
is(names('ann'), 'latest for-acmedev', 'does no harm');
delete @g{qw(ann bob carl)};


# credentials

$up->clear;
my %auth = (headers => { Authorization => 'Bearer x' });
my %cookie = (headers => { Cookie => 'x=1' });

is(names('a', 'tools', 'name', %auth), 'latest', 'Authorization');
is(names('a', 'tools', 'name', %cookie), 'latest', 'Cookie');
is(names('a'), 'x y z', 'without, it is the cached list');
is(scalar asked('one'), 2, 'own exchanges');
is((asked('one'))[0]{headers}{authorization}, 'Bearer x',
   'with their credentials');

# who has lists of its own hears what its own upstream session says

$s{c} = $t->session(headers => { Authorization => 'Bearer c' });
$s{d} = $t->session(conn => $t->conn_on_worker($w[0]));
$g{$_} = $s{$_}->open_get(conn => $t->conn) for qw(c d);
ok(wait_for { listens('c') && listens('d') }, 'sessions of both sorts');

for my $how ('the upstream', 'an event') {
    $up->set(tools => "by $how");
    $how eq 'an event' ? publish({ kind => 'deploy' }) : said('tools');
    hears($_, 'tools') for qw(c d);
    quiet("once, by $how");
}

is(names('c'), names('d'), 'and both see the same');
$up->set(tools => 'by an event');
silent(sub { publish({ kind => 'deploy', session_id => $s{c}->id });
             hears('c', 'tools');
             publish({ kind => 'moved' });
             hears('c', 'resources') },
       'unchanged', 'nothing is compared for it');
delete @g{qw(c d)};

$up->clear;
$s{bound} = $t->session(path => '/bound', headers => { 'X-User' => 'u' });
is(names('bound'), 'by an event', 'an endpoint that binds sessions')
    for 1 .. 2;
is(scalar asked('bound'), 2, 'asks for each');
$g{bound} = $s{bound}->open_get(conn => $t->conn);
ok(wait_for { listens('bound') }, 'it listens itself');
said('tools');
hears('bound', 'tools');
quiet('and is told once');
delete $g{bound};

my @notes = $t->log =~ /\[warn\] .*forwards list requests that carry/g;
is(scalar @notes, 2, 'the log says so once for each endpoint');


# what a caller may not call is left out of a cached list as well

$up->set(tools => 'b a c');
$s{denied} = $t->session(path => '/denied');
is(names('denied'), 'b c', 'a denied tool') for 1 .. 2;


# more than is served whole

$s{bulk} = $t->session(path => '/bulk');
$r = $s{bulk}->call('tools/list')->{result};
is(scalar @{ $r->{tools} }, 10_000, 'at most 10000 entries');
my $second = $s{bulk}->call('tools/list', { cursor => $r->{nextCursor} });
is(join(' ', map { $_->{name} } @{ $second->{result}{tools} }), 'tool-10001',
   'the rest');
ok(!exists $second->{result}{nextCursor}, 'is the last page');
is($s{bulk}->call('resources/list', { cursor => $r->{nextCursor} })
   ->{error}{code}, -32602, 'a cursor of another list');

$bulk->set(count => 10_002);
$g{bulk} = $s{bulk}->open_get;
publish({ kind => 'deploy' });
hears('bulk', 'tools');
is($s{bulk}->call('tools/list', { cursor => $r->{nextCursor} })
   ->{error}{code}, -32602, 'a cursor of the list before');
delete $g{bulk};

my ($n, $size, %seen, %params) = (0, 0);

while ($n++ < 5) {
    my $http = $s{bulk}->post($s{bulk}->message('resources/list', { %params }));
    $r = $http->{json}{result};
    $size = length $http->{body} if length $http->{body} > $size;
    $seen{$_->{uri}}++ for @{ $r->{resources} };
    last unless exists $r->{nextCursor};
    %params = (cursor => $r->{nextCursor});
}

is($n, 2, 'pages of at most 1m');
ok($size < 1024 * 1024 + 200, 'are not larger');
is(scalar keys %seen, 2000, 'with all entries');
is($s{bulk}->call('prompts/list')->{error}{code}, -32601,
   'what the upstream lacks');


# more than there is room for

$s{small} = $t->session(path => '/small');
$g{small} = $s{small}->open_get;

for (1 .. 2) {
    $r = $s{small}->call('resources/list')->{result};
    is(scalar @{ $r->{resources} }, 2000, 'a list that can not be kept');
}

ok(!exists $r->{nextCursor}, 'passes through');
$t->publish({ kind => 'moved' }, '/publish-small');
hears('small', 'resources');
my @large = $t->log =~ /\[warn\] .*(too large for the cache.*)/g;
is(scalar @large, 1, 'which the log says once');
like($large[0], qr/give "mcp_zone" a larger size/, 'with a remedy');

done_testing();


sub names {
    my ($who, $what, $name, %o) = @_;

    $what ||= 'tools';
    $name ||= 'name';

    my $r = $s{$who}->call("$what/list", undef, %o);
    my ($list) = grep { ref eq 'ARRAY' } values %{ $r->{result} || {} };

    # the module's own stand in front

    return join ' ', grep { !/^events:/ } map { $_->{$name} } @{ $list || [] };
}


# for lists of tools of an endpoint

sub asked {
    my ($endpoint) = @_;

    return grep { ($_->{headers}{'x-endpoint'} || '') eq $endpoint }
           $up->calls('tools/list');
}


# a session has a stream of its own at the upstream

sub listens {
    my ($who) = @_;

    return $up->requests(sub {
        $_[0]{method} eq 'GET' && !$_[0]{ended}
        && ($_[0]{headers}{'x-session'} || '') eq $s{$who}->id
    });
}


sub said {
    my ($kind) = @_;

    $up->emit('listen', [event => notification("$kind/list_changed")]);
}


sub change {
    my ($kind, $list) = @_;

    $up->set($kind => $list);
    said($kind);
}


# one list_changed, with an id of the module's own

sub hears {
    my ($who, $kind) = @_;

    my $e = $g{$who}->event_where(sub { $_->{data} ne '' });

    is($e && $e->{json}{method}, "notifications/$kind/list_changed",
       "$who hears of $kind");
    ok($e && length $e->{id}, 'with an id') if $who eq 'a';
}


# what comes next is a marker: nothing came before it

sub quiet {
    my ($name) = @_;

    publish(notification('message', { level => 'info', data => 'marker' }));

    my @loud = grep {
        my $e = $g{$_}->event_where(sub { $_->{data} ne '' });
        !$e || ($e->{json}{params}{data} || '') ne 'marker';
    } sort keys %g;

    is("@loud", '', $name);
}


sub silent {
    my ($what, $counter, $name, $n) = @_;

    my $before = stat_of($counter);

    $what->();
    ok(wait_for { stat_of($counter) >= $before + ($n || 1) },
       "$name is noticed");
    quiet("$name: silence");
}


sub stat_of { $t->status->{lists}{$_[0]} }
sub publish { $t->publish(@_) }
