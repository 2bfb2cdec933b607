#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Sessions: negotiation, who may use them, limits, reclaiming; the values that
# decide about access, and the variables.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Test;

my $clock = Mcp::Clock->new;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    info => { name => 'the-upstream', version => '9' },
    capabilities => { tools => {}, logging => {}, experimental => { x => {} } },
    'tools/list' => { tools => [] },
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};

        return ([until => 'hold'],
                [json => Mcp::Upstream::result($r, { content => [] })])
            if $name eq 'hold';
        return { isError => JSON::PP::true, content => [] }
            if $name eq 'fail';
        return { size => length($r->{json}{params}{arguments}{a} || '') };
    },
));

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1, '' => sub { return { ok => 1 } },
));

# an authority that knows who has which token

my $auth = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my ($who) = ($r->{headers}{authorization} || '') =~ /^Bearer (\w+)$/;

    return [http => 401, { 'WWW-Authenticate' => 'Bearer' }, '']
        unless $who;
    return [http => 403, { 'X-User' => $who }, ''] if $who eq 'shut';
    return [http => 200, { 'X-User' => $who eq 'none' ? '' : $who }, ''];
});

my $t = Mcp::Test->new(
    vars => { UP => $up->port, RPC => $rpc->port, AUTH => $auth->port },
    conf => <<'EOF');
mcp_zone zone=main:4m;
mcp_zone zone=full:1m;
mcp_zone zone=packed:1m;
mcp_zone zone=small:1m;

log_format mcp '$mcp_method|$mcp_name|$mcp_request_id|$mcp_session_id|'
               '$mcp_protocol_version|$mcp_client_name|$mcp_client_version|'
               '$mcp_tenant|$mcp_endpoint|$mcp_upstream|$mcp_response|'
               '$mcp_error|$mcp_events_sent|$upstream_addr|$upstream_status|'
               '$status';

log_format refused '$mcp_tenant|$user|$mcp_method|$mcp_name|$mcp_list_key|'
                   '$mcp_response|$mcp_error|$status';
log_format unread '$mcp_method|$mcp_name|$mcp_request_id|$status';

# looked at by a limit before the token is known: what it saw must not decide

map $user $org   { "" ""; default "org-$user"; alice acme; bob acme;
                   carol other; }
map $user $guest { guest 1; }

map $user $stale { "" anonymous; alice acme; default ""; }
map $stale $staler { default $stale; }

limit_req_zone $org$guest$staler zone=orgs:1m rate=1000r/s;
limit_req_zone $mcp_session_id$mcp_name zone=tools:1m rate=1r/m;
limit_req_zone $mcp_tenant zone=tenants:1m rate=1r/m;

map $mcp_name $place { "a b/c" found; default "other"; }
limit_req_zone $place zone=mapped:1m rate=10000r/s;

map $mcp_method:$mcp_name $class {
    "tools/call:secret" secret;
    ~^tools/            tool;
    default             other;
}

server {
    %%LISTEN%%
    server_name mcp.test;

    client_body_buffer_size 1k;
    client_max_body_size 8m;

    access_log %%DIR%%/mcp.log mcp;

    location = /mcp   { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /other { mcp_endpoint zone=main name=other; }
    location = /info  {
        mcp_endpoint zone=main;
        mcp_server_info name=own version=2 "title=A title";
        mcp_instructions "be \"kind\"";
        mcp_capabilities tools logging;
    }

    location = /auth {
        auth_request /_auth;
        auth_request_set $user $upstream_http_x_user;
        limit_req zone=orgs burst=10000 nodelay;

        mcp_tenant $org;
        mcp_session_bind $user;
        mcp_deny $guest;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /refused {
        access_log %%DIR%%/refused.log refused;
        auth_request /_auth;
        auth_request_set $user $upstream_http_x_user;

        mcp_tenant $org;
        mcp_session_bind $user;
        mcp_list_cache on key=$http_x_key;
        mcp_deny $guest;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;

    }

    location = /shut {
        access_log %%DIR%%/refused.log refused;
        deny all;
        set $user $http_x_user;
        mcp_tenant $http_x_tenant;
        mcp_endpoint zone=main;
    }

    location = /unread {
        access_log %%DIR%%/unread.log unread;
        client_max_body_size 200;
        mcp_endpoint zone=main;
    }

    location = /stale {
        auth_request /_auth;
        auth_request_set $user $upstream_http_x_user;
        limit_req zone=orgs burst=10000 nodelay;

        mcp_tenant $staler;
        mcp_endpoint zone=main;
    }

    location = /set {
        set $who "";
        set $who set;
        mcp_tenant $who;
        mcp_endpoint zone=main;
    }

    location = /control {
        mcp_tenant "a\nb\rc";
        mcp_endpoint zone=main;
        mcp_upstream rpc /_paths/$mcp_tenant protocol=rpc;
    }

    location = /raw {
        mcp_tenant raw-$http_x_org;
        mcp_list_cache on key=raw-$http_x_key;
        mcp_subscription_limit 2;
        mcp_upstream rpc /_paths/raw protocol=rpc;
        mcp_endpoint zone=main;
    }

    location = /limit {
        mcp_session_limit 2 key=$http_x_key;
        mcp_session_timeout 10s;
        mcp_endpoint zone=main;
    }

    location = /expire {
        mcp_session_timeout 60ms;
        mcp_endpoint zone=small;
    }

    location = /later { mcp_endpoint zone=small; mcp_session_timeout 1h; }

    location = /calls {
        mcp_call_limit 2;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /packed {
        mcp_endpoint zone=packed;
        mcp_session_bind $http_x_user;
    }
    location = /full { mcp_endpoint zone=full; mcp_session_timeout 1h; }

    location = /paths {
        mcp_endpoint zone=main;
        mcp_upstream rpc
            /_paths/$mcp_method/$mcp_name?s=$mcp_session_id&c=$class
            protocol=rpc;
    }

    location = /mapped {
        limit_req zone=mapped burst=10000 nodelay;
        mcp_endpoint zone=main;
        mcp_upstream rpc /_paths/$place/$http_x_more/$mcp_name protocol=rpc;
    }

    location = /dots {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_paths/$mcp_name protocol=rpc;
    }

    location = /tenants {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_upstream rpc /_paths/$mcp_tenant protocol=auto;
    }

    location = /unprobed {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_upstream rpc /_paths/$mcp_tenant probe=off listen=off;
    }

    location = /beside {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_upstream up /_up;
        mcp_upstream a /_paths/$mcp_tenant;
        mcp_upstream rpc /_paths/$mcp_tenant protocol=rpc;
    }

    location = /keys {
        mcp_endpoint zone=main;
        mcp_list_cache on key=$http_x_key;
        mcp_upstream up /_keys/$mcp_list_key protocol=legacy;
    }

    location = /values {
        mcp_endpoint zone=main;
        mcp_batch on;
        mcp_builtin_tools session_info;
        mcp_upstream up /_keys/$http_x_more protocol=legacy;
    }

    location = /some {
        mcp_endpoint zone=main;
        mcp_builtin_tools session_info;
        mcp_upstream a /_keys/$http_x_more protocol=legacy;
        mcp_upstream b /_keys/b protocol=legacy;
    }

    location /_keys/ { internal; proxy_pass http://127.0.0.1:%%UP%%; }

    location = /limited {
        limit_req zone=tools;
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /early {
        limit_req zone=tenants;
        mcp_tenant $http_x_tenant;
        mcp_endpoint zone=main;
    }

    location = /if {
        if ($http_x_if) { set $user $http_x_if; }
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /status { mcp_status zone=small; access_log off; }
    location = /_auth {
        internal;
        access_log off;
        proxy_pass http://127.0.0.1:%%AUTH%%/;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/;
                      proxy_set_header X-Class $class;
                      proxy_set_header X-Name $mcp_name;
                      proxy_set_header X-Session $mcp_session_id; }
    location /_paths/ { internal; proxy_pass http://127.0.0.1:%%RPC%%/p/; }
    location /_paths/tools/call/own {
        internal;
        default_type application/json;
        return 200 '{"jsonrpc":"2.0","id":$mcp_request_id,"result":{}}';
    }
}

server {
    listen 127.0.0.1:%%PORT_h2%% http2;
    server_name h2.test;

    location = /mcp { mcp_endpoint zone=main name=h2; mcp_upstream up /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

my ($w1, $w2) = $t->workers;
my ($c1, $c2) = ($t->conn_on_worker($w1), $t->conn_on_worker($w2));

my @json = ('Content-Type' => 'application/json',
            Accept => 'application/json, text/event-stream');

sub log_line {
    my ($match) = @_;

    my $line = wait_for {
        (grep { $_ =~ $match } split /\n/, $t->slurp('mcp.log'))[-1]
    };

    return split /\|/, defined $line ? $line : '', -1;
}


# negotiation

for (['2025-03-26'] , ['2025-06-18'], ['2025-11-25'],
     ['2026-07-28', '2025-11-25'], ['1999-01-01', '2025-11-25'],
     ['2099-01-01', '2025-11-25'], ['', '2025-11-25'])
{
    my ($asked, $got) = @$_;
    my $s = $t->session(version => $asked);

    is($s->{negotiated}, $got || $asked, "asked for \"$asked\"");
    is($s->call('tools/list')->{http}{status}, 200, 'and works');

    $s->delete;

    my @r = map { ($up->calls($_))[-1] } qw(notifications/initialized
                                            tools/list);
    my $id = $r[1]{headers}{'mcp-session-id'};

    push @r, $up->wait_requests(sub {
        $_[0]{method} eq 'DELETE' && $_[0]{headers}{'mcp-session-id'} eq $id
    });

    # the header is of later revisions than the first

    is_deeply([ map { $_->{headers}{'mcp-protocol-version'} } @r ],
              [ ($got || $asked) eq '2025-03-26' ? (undef) x 3
                                     : ($s->{negotiated}) x 3 ],
              'version towards the upstream, in all of a session');
}

my $s = $t->session(caps => { roots => {} });

like($s->id, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-
                [0-9a-f]{12}$/x, 'UUIDv7');

my ($high, $low) = map { hex } $s->id =~ /^(.{8})-(.{4})/;
within(time() - ($high * 65536 + $low) / 1000, -2, 5, 'with the time of now');

my %ids = map { $t->client(path => '/other')->initialize->{headers}
                {'mcp-session-id'} => 1 } 1 .. 50;
is(keys %ids, 50, 'distinct ids');

is_deeply($s->{server}{serverInfo}, { name => 'the-upstream',
                                      version => '9' }, 'upstream\'s info');
is_deeply($s->{server}{capabilities}{experimental}, { x => {} },
          'a capability unknown here');
ok($s->{server}{capabilities}{tools}{listChanged}, 'list changes are offered');

my $own = $t->session(path => '/info');
is_deeply($own->{server}{serverInfo},
          { name => 'own', version => '2', title => 'A title' }, 'own info');
is($own->{server}{instructions}, 'be "kind"', 'own instructions');
is_deeply($own->{server}{capabilities},
          { tools => { listChanged => JSON::PP::true }, logging => {} },
          'own capabilities');

my $bare = $t->session(path => '/other');
is($bare->{server}{serverInfo}{name}, 'nginx-mcp', 'default info');


# any worker

is($s->call('ping', undef, conn => $_)->{http}{status}, 200,
   'session is found by a worker') for $c1, $c2, $c1, $c2;
is_deeply($s->call('ping')->{result}, {}, 'ping');

my $s2 = $t->client;
$s2->initialize(conn => $c1);
is($s2->call('ping', undef, conn => $c2)->{http}{status}, 200,
   'session of the other worker');
is($s2->delete(conn => $c2)->{status}, 200, 'DELETE');
is($s2->call('ping', undef, conn => $_)->{http}{status}, 404,
   'and it is gone') for $c1, $c2;
is($s2->delete->{status}, 404, 'a second DELETE');
is($s2->open_get->status, 404, 'GET');
is($s->call('ping')->{http}{status}, 200, 'the other lives');

$bare->{path} = '/mcp';
is($bare->call('ping')->{http}{status}, 404, 'another endpoint');
is($bare->delete->{status}, 404, 'another endpoint: DELETE');
$bare->{path} = '/other';
is($bare->call('ping')->{http}{status}, 200, 'its own endpoint');


# tenant and identity: alice and bob are of one tenant, carol is of another

sub user {
    my ($name, %o) = @_;
    return $t->client(path => '/auth',
                      headers => { Authorization => "Bearer $name" }, %o);
}

sub login {
    my ($name) = @_;
    return $t->session(path => '/auth',
                       headers => { Authorization => "Bearer $name" });
}

my $r = $t->client(path => '/auth')->initialize;
is($r->{status}, 401, 'no token');
like($r->{headers}{'www-authenticate'}, qr/Bearer/, 'and the challenge');
is($r->{json}{error}{code}, -32000, 'with a body');

is(user('none')->initialize->{status}, 403, 'no user, no tenant');
is(user('guest')->initialize->{status}, 403, 'mcp_deny by a late value');

my %user = map { $_ => login($_) } qw(alice bob carol);

for my $owner (sort keys %user) {
    for my $other (sort keys %user) {
        my $session = $user{$owner};
        my %h = (headers => { Authorization => "Bearer $other" });
        my $want = $owner eq $other ? 200 : 404;

        for my $c ($c1, $c2) {
            is($session->call('ping', undef, %h, conn => $c)->{http}{status},
               $want, "$other in a session of $owner");
            is($session->tool('x', {}, %h, conn => $c)->{http}{status},
               $want, "tools/call");
        }

        next if $owner eq $other;

        is($session->open_get(%h)->status, 404, 'GET');
        is($session->delete(%h)->{status}, 404, 'DELETE');
        is($session->notify('notifications/cancelled', { requestId => 1 }, %h)
           ->{status}, 404, 'notification');
    }
}

is($user{alice}->call('ping', undef, headers => { Authorization => undef })
   ->{http}{status}, 401, 'session without a token');
is($user{alice}->call('ping', undef, headers => {
       Authorization => 'Bearer none' })->{http}{status}, 403,
   'session without a user');
is($user{alice}->call('ping', undef, headers => {
       Authorization => 'Bearer guest' })->{http}{status}, 403,
   'session of a guest');
is($user{alice}->call('ping')->{http}{status}, 200, 'session lives');

$user{carol}->tool('logged');
my @f = log_line(qr/^tools\/call\|logged\|/);
is($f[7], 'other', '$mcp_tenant is the late one');

$user{bob}->tool('logged2');
@f = log_line(qr/^tools\/call\|logged2\|/);
is($f[7], 'acme', '$mcp_tenant of another');

# what a limit saw before must not come back where nothing is known now

for (['alice', 200], ['bob', 403]) {
    my ($name, $status) = @$_;

    is($t->client(path => '/stale', headers => {
           Authorization => "Bearer $name" })->initialize->{status},
       $status, "$name: the tenant is not the stale one");
}

my $set = $t->session(path => '/set');
$set->call('of/set');
@f = log_line(qr/^of\/set\|/);
is($f[7], 'set', 'a variable that is only stored');
unlike($t->log, qr/uninitialized/, 'and no warning about it');


for my $name (qw(X-Org X-Key)) {
    for my $value ("\xc3\xa9", "\xe9", "\xed\xa0\x80", "a\xff") {
        my $r = $t->client(path => '/raw')
                ->initialize(headers => { $name => $value });
        is($r->{status}, $value eq "\xc3\xa9" ? 200 : 403,
           "$name that " . ($r->{status} == 200 ? 'is' : 'is no') . ' UTF-8');
    }
}

my $control = $t->session(path => '/control');
$control->tool('of/control');
@f = log_line(qr/\|of\/control\|/);
is($f[7], 'a?b?c', 'no control character in a variable');
is(($rpc->asked)[-1]{uri}, '/p/a%3Fb%3Fc', 'nor in a URI');


# a tenant is not known before access

is($t->client(path => '/early', headers => { 'X-Tenant' => 'a' })
   ->initialize->{status}, 200, 'limit by $mcp_tenant counts nothing')
    for 1 .. 3;


# limits

sub limited {
    my ($key) = @_;
    return $t->client(path => '/limit', headers => { 'X-Key' => $key });
}

my @l = map { limited('a') } 1 .. 3;
is($l[$_]->initialize->{status}, 200, "session $_ of a key") for 0, 1;
$r = $l[2]->initialize;
is($r->{status}, 503, 'one too many');
is($r->{json}{error}{code}, -32000, 'code');
is($r->{json}{id}, 1, 'id');
ok($r->{headers}{'retry-after'} > 0, 'Retry-After');
ok(!exists $r->{headers}{'mcp-session-id'}, 'no session');
is(limited('b')->initialize->{status}, 200, 'another key');

$l[0]->delete;
is($l[2]->initialize->{status}, 200, 'room after DELETE');

# idle sessions make room, those with a stream do not

my $get = $l[2]->open_get;
is($get->status, 200, 'stream');

$clock->pass($t, 11);
is(limited('a')->initialize->{status}, 200, 'an idle session is reclaimed');
is($l[1]->call('ping')->{http}{status}, 404, 'the idle one');
is($l[2]->call('ping')->{http}{status}, 200, 'not the one with a stream');

$get->close;

for (1, 2) {
    $clock->pass($t, 11);
    is(limited('a')->initialize->{status}, 200, 'room for one more');
}

is($l[2]->call('ping')->{http}{status}, 404,
   'its stream closed, it may go');

my $later = $t->client(path => '/later');
is($later->initialize->{status}, 200, 'a session that has more time');

my $unused = $t->client(path => '/expire');
is($unused->initialize->{status}, 200, 'one that is not used');

my $old = $t->session(path => '/expire');

ok((wait_for {
       my $j = $t->get('/status')->{body};
       json_decode($j)->{sessions}{expired} == 2;
   }), 'at last both go by themselves');
is($later->call('ping')->{http}{status}, 200, 'the one with more time stays');
is($old->call('ping')->{http}{status}, 404, 'and is not found');


# mcp_call_limit

my $calls = $t->session(path => '/calls');
my @held = map { $calls->send_only($calls->message('tools/call',
                                                   { name => 'hold' })) }
           1, 2;

$up->wait_requests(sub { ($_[0]{json}{params}{name} || '') eq 'hold' }, 2);
my $asked = $up->asked;

$r = $calls->tool('x', {}, conn => $c1);
is($r->{http}{status}, 503, 'call limit');
is($r->{error}{code}, -32000, 'code');
like($r->{error}{message}, qr/\bmcp_call_limit\b/, 'names the directive');
ok($r->{http}{headers}{'retry-after'} > 0, 'Retry-After');
is($calls->tool('x', {}, conn => $c2)->{http}{status}, 503, 'in any worker');
is(scalar $up->asked, $asked, 'upstream is not asked');
is($calls->call('ping')->{http}{status}, 200, 'ping is answered');

$up->release('hold');
is($_->response('POST')->{status}, 200, 'held call is answered') for @held;
is($calls->tool('x')->{http}{status}, 200, 'and there is room again');

@held = map {
    $calls->tool('x', {}, id => 'same', conn => $_ % 2 ? $c1 : $c2)
} 1 .. 100;
is(scalar(grep { $_->{http}{status} == 200 } @held), 100,
   'a request has ended when its answer is there, for any worker');


# mcp_subscription_limit

my $subscribes = $t->session(path => '/raw');

sub subscribe {
    my ($method, $uri) = @_;

    my $r = $subscribes->call("resources/$method", { uri => $uri });
    is($r->{http}{status}, 200, "$method " . substr $uri, 0, 20);
    return $r->{error} ? $r->{error}{code} : 0;
}

is(subscribe(subscribe => 'file:///1'), 0, 'room');
is(subscribe(subscribe => 'file:///' . 'u' x 16377), -32602, 'too long');
is(subscribe(subscribe => 'file:///' . 'u' x 16376), 0, 'not too long');
is(subscribe(subscribe => 'file:///2'), -32000, 'the limit');
is(subscribe(subscribe => 'file:///1'), 0, 'it has this one');
is(subscribe(unsubscribe => 'file:///1'), 0, 'gone');
is(subscribe(subscribe => 'file:///2'), 0, 'room again');

$subscribes->call('logging/setLevel', { level => 'error' });
@f = log_line(qr/^logging\/setLevel\|/);
is($f[9], '', 'no upstream answers what is answered here');


# a full zone

my @full;
my $wide = 'x' x 3_900;

for (1 .. 1000) {
    my $c = $t->client(path => '/full', info => { name => 'n', version => '1',
                                                  x => $wide });
    $r = $c->initialize;
    last if $r->{status} != 200;
    push @full, $c;
}

ok(@full > 5, 'sessions fit') or diag(scalar @full);
is($r->{status}, 503, 'full zone');
is($r->{json}{error}{code}, -32000, 'code');
ok($r->{headers}{'retry-after'} > 0, 'Retry-After');
is($full[$_]->call('ping')->{http}{status}, 200, 'sessions live')
    for 0, -1;

$full[0]->delete;
is($t->client(path => '/full', info => { name => 'n', version => '1',
                                         x => $wide })->initialize->{status},
   200, 'room after DELETE');

$r = $t->client(path => '/full', info => { name => 'n', version => '1',
                                           x => $wide x 2 })->initialize;
is($r->{json}{error}{code}, -32602, 'initialize that is too large');
like($r->{json}{error}{message}, qr/clientInfo are larger than 4k/, 'says so');


# and a full zone in which each client has a little: streams

my (@packed, @gets);

do {
    push @packed, $t->client(path => '/packed',
                             headers => { 'X-User' => scalar @packed },
                             info => { name => 'n', version => '1',
                                       x => $wide });
} while $packed[-1]->initialize->{status} == 200;

pop @packed;

do {
    push @gets, $packed[@gets % @packed]->open_get;
} while $gets[-1]->status == 200 && @gets < 800;

is($gets[-1]->status, 503, 'no room for a stream');
ok($gets[-1]->headers->{'retry-after'} > 0, 'Retry-After');
like($gets[-1]{body}->slurp(10), qr/no room for a stream.*mcp_zone/, 'why');
$_->close for @gets;


# variables

$s->tool('fail', { a => 1 }, id => '"q');
@f = log_line(qr/^tools\/call\|fail\|/);
is_deeply(\@f, ['tools/call', 'fail', '\x22\x5C\x22q\x22', $s->id,
                '2025-11-25', 'mcp-test', '1.0', '', 'mcp.test/mcp', 'up',
                'json', 'tool', 0, '127.0.0.1:' . $up->port, 200, 200],
          'variables of a call') or diag(join '|', @f);

$s->call('no/such');
@f = log_line(qr/^no\/such\|/);
is("$f[10] $f[11]", 'json -32601', '$mcp_error');

$t->post('/mcp', [@json, 'Mcp-Session-Id' => 'forged'],
         '{"jsonrpc":"2.0","id":1,"method":"forged"}');
@f = log_line(qr/^forged\|/);
is($f[3], '', '$mcp_session_id of an unknown session');
is("$f[9] $f[11] $f[15]", ' -32001 404', 'not asked');


# refusals are of somebody, and have a body

for (
    ['/refused', [], '||', 'json|-32000|401', 'auth_request, 401'],
    ['/refused', [Authorization => 'Bearer shut'], 'org-shut|shut|',
     'json|-32000|403', 'auth_request, 403'],
    ['/refused', [Authorization => 'Bearer guest'], 'org-guest|guest|',
     'json|-32000|403', 'mcp_deny'],
    ['/refused', [Authorization => 'Bearer none'], '||', 'json|-32000|403',
     'no identity'],
    ['/shut', ['X-Tenant' => 't', 'X-User' => 'u'], 't|u|',
     'json|-32000|403', 'access rules'],
    ['/shut', ['X-Tenant' => 't', 'X-User' => 'u', Origin => 'http://a.b'],
     't|u|', 'json|-32000|403', 'Origin'],
) {
    my ($path, $headers, $who, $how, $name) = @$_;
    my $key = $who =~ /guest|shut/ ? 'k' : '';
    my $lines = () = $t->slurp('refused.log') =~ /\n/g;

    $r = $t->post($path, [@json, @$headers, 'X-Key' => 'k'],
                  '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
                  . '"params":{"name":"x"}}');
    is(json_decode($r->{body})->{error}{code}, -32000, "$name: a body");

    my $line = wait_for { (split /\n/, $t->slurp('refused.log'))[$lines] };
    my $what = $name eq 'Origin' ? '|' : 'tools/call|x';

    is($line, "$who$what|$key|$how", "$name: in the access log");
}

# of messages that are not read, or have a fault

for (
    [[Origin => 'http://a.b'], {}, 'tools/call|||403', 'Origin'],
    [['Content-Type' => 'text/plain'], {}, 'tools/call|||415', 'Content-Type'],
    [[], { params => { name => 'x' x 200 } }, 'tools/call|||413', 'size'],
    [[Origin => 'http://a.b', 'Mcp-Method' => 'x'], {}, '|||403',
     'two methods in headers'],
    [[], { method => 'prompts/get' }, 'prompts/get||1|200', 'params'],
    [[], { jsonrpc => '1.0' }, '||1|400', 'version of JSON-RPC'],
    [[], { id => undef }, '|||400', 'id'],
) {
    my ($headers, $members, $expected, $name) = @$_;
    my $lines = () = $t->slurp('unread.log') =~ /\n/g;
    my %h = @$headers;
    my @as = grep { !exists $h{$json[$_]} } map { 2 * $_ } 0 .. $#json / 2;

    $t->post('/unread', [(map { @json[$_, $_ + 1] } @as), @$headers,
                         'Mcp-Method' => 'tools/call', 'Mcp-Name' => 'x'],
             json_encode({ jsonrpc => '2.0', id => 1, method => 'tools/call',
                           params => {}, %$members }));

    is(wait_for { (split /\n/, $t->slurp('unread.log'))[$lines] }, $expected,
       "fault of the $name: in the access log");
}

$s->notify('notifications/logged');
@f = log_line(qr/^notifications\/logged\|/);
is("$f[10] $f[15]", 'none 202', '$mcp_response of a notification');

$t->post('/mcp', [@json],
         '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{'
         . '"protocolVersion":"2025-11-25","capabilities":{},'
         . '"clientInfo":{"name":"evil\u000d\u000aname|",'
         . '"version":"\u0000"}}}');
@f = log_line(qr/evil/);
is($f[5], 'evil??name', 'control characters become ?');

$t->get('/worker');

$s->tool('secret');
is(($up->calls('tools/call'))[-1]{headers}{'x-class'}, 'secret',
   'map over variables, in the upstream location');
is(($up->calls('tools/call'))[-1]{headers}{'x-name'}, 'secret', '$mcp_name');
is(($up->calls('tools/call'))[-1]{headers}{'x-session'}, $s->id,
   '$mcp_session_id');
is((grep { ($_->{headers}{'x-session'} || '') eq $s->id }
    $up->calls('initialize'))[0]{headers}{'x-class'}, 'other',
   'and when its own initialize is sent');

my $lim = $t->session(path => '/limited');
is($lim->tool('a')->{http}{status}, 200, 'limit per session and tool');
is($lim->tool('a')->{http}{status}, 503, 'one too many');
is($lim->tool('b')->{http}{status}, 200, 'another tool');

my $lim2 = $t->session(path => '/limited');
is($lim2->tool('a')->{http}{status}, 200, 'another session');


# the params of initialize with which sessions at upstreams begin

for my $size (100, 5000) {
    my $c = $t->client;

    $up->clear;

    my $m = $c->message('initialize', {
        protocolVersion => '2025-11-25', capabilities => { roots => {} },
        clientInfo => { name => 'x', version => '1' }, more => 'y' x $size });
    my $r = $c->post($m);
    is($r->{status}, 200, "$size bytes more than the members it has to have");
    $c->{id} = $r->{headers}{'mcp-session-id'};
    $c->notify('notifications/initialized');
    $c->call('tools/call', { name => 'x', arguments => {} });

    my $params = ($up->calls('initialize'))[-1]{json}{params};
    delete $m->{params}{more} if $size > 4096;
    is_deeply($params, $m->{params}, 'what the upstream gets of them');
}



# in a URI

my $paths = $t->session(path => '/paths');
my $id = $paths->id;

$rpc->clear;

for (
    ['plain', 'plain'], ['a/b', 'a%2Fb'],
    ["a b?c#d%e&f\xe9", 'a%20b%3Fc%23d%25e%26f%C3%A9'],
    ['a..b', 'a..b'], ['...', '...'], ['../..', '..%2F..'],
    ['http://x/?y=z', 'http%3A%2F%2Fx%2F%3Fy%3Dz'],
) {
    my ($name, $segment) = @$_;

    is($paths->tool($name)->{http}{status}, 200, "name \"$name\"");
    is(($rpc->asked)[-1]{uri}, "/p/tools/call/$segment?s=$id&c=tool",
       'as one segment');
}

$asked = $rpc->asked;
is($paths->tool('own')->{http}{status}, 200, 'a location of one tool');
is(scalar $rpc->asked, $asked, 'answers its calls');
$paths->call('tools/call/own', {});
is(scalar $rpc->asked, $asked + 1, 'and no method that is spelled like them');
is(($rpc->asked)[-1]{uri}, "/p/tools%2Fcall%2Fown/?s=$id&c=tool",
   'which is one segment');

# a map sees what there is, the URI gets it encoded; others are made fit

my $mapped = $t->session(path => '/mapped', headers => { 'X-More' => 'a b#' });

is($mapped->tool('a b/c')->{http}{status}, 200, 'map in a URI');
is(($rpc->asked)[-1]{uri}, '/p/found/a%20b%23/a%20b%2Fc',
   'sees the name as it is');

for my $more ('..', '.', '%2e%2E', '%2e') {
    $asked = $rpc->asked;
    $r = $mapped->tool('x', {}, headers => { 'X-More' => $more });
    is($r->{http}{status}, 400, "dot segment \"$more\" in a header");
    is(scalar $rpc->asked, $asked, 'is not asked for');
}

$asked = $rpc->asked;

for my $p (['/dots', '.'], ['/dots', '..'], ['/paths', '..'],
           ['/paths', '.'])
{
    my $dots = $t->session(path => $p->[0]);

    $asked = $rpc->asked;
    $r = $dots->tool($p->[1]);
    is("$r->{http}{status} $r->{error}{code}", '400 -32600',
       "dot segment \"$p->[1]\" at $p->[0]");
    is(scalar $rpc->asked, $asked, 'is not asked for');
}

my $keys = $t->session(path => '/keys', headers => { 'X-Key' => '..' });
$r = $keys->tool('x');
is("$r->{http}{status} $r->{error}{code}", '400 -32600',
   'dot segment where an upstream is asked for a session first');

for my $tenant ('.', '..') {
    my @as = (headers => { 'X-Tenant' => $tenant });

    for my $path ('/tenants', '/unprobed') {
        $r = $t->client(path => $path, @as)->initialize;
        is("$r->{status} $r->{json}{error}{code}", '400 -32600',
           "tenant \"$tenant\" in the URI at $path");
        like($r->{json}{error}{message}, qr/\btenant\b.* dot segment/,
             'why');
    }

    $r = $t->post('/tenants', { @json, 'X-Tenant' => $tenant,
                                'MCP-Protocol-Version' => '2026-07-28',
                                'Mcp-Method' => 'server/discover' },
                  json_encode({ jsonrpc => '2.0', id => 1,
                                method => 'server/discover', params => {
        _meta => { 'io.modelcontextprotocol/protocolVersion' => '2026-07-28',
                   'io.modelcontextprotocol/clientCapabilities' => {} } } }));
    is("$r->{status} " . json_decode($r->{body})->{error}{code},
       '400 -32600', 'and server/discover');

    # the other upstream of the endpoint serves

    my $beside = $t->session(path => '/beside', @as);

    is($beside->call('tools/list')->{http}{status}, 200,
       'the list is served without such upstreams');

    for my $name ('a__x', 'rpc__x') {
        $r = $beside->tool($name);
        is("$r->{http}{status} $r->{error}{code}", '400 -32600',
           "tenant \"$tenant\" in the URI of tool $name");
        like($r->{error}{message}, qr/\btenant\b.* dot segment/, 'why');
    }
}

is(scalar $rpc->asked, $asked, 'none is asked for');

# messages of a session to upstreams at which it has sessions

for my $path ('/values', '/some') {
    my $values = $t->session(path => $path, version => '2025-03-26',
                             headers => { 'X-More' => 'a' });
    my @more = (headers => { 'X-More' => '..' });
    my $whole = $path eq '/values';
    my $changed = 'notifications/roots/list_changed';

    $values->call('tools/list');

    is($values->call('logging/setLevel', { level => 'error' })->{http}{status},
       200, "a level at $path");
    is($values->notify($changed)->{status}, 202, 'and a notification');

    $up->clear;

    $r = $values->call('logging/setLevel', { level => 'info' }, @more);
    is($r->{http}{status} . ' ' . ($r->{error}{code} || 0),
       $whole ? '400 -32600' : '200 0', 'a level with a dot segment');
    like($r->{error}{message}, qr/ dot segment/, 'why') if $whole;

    $r = $values->notify($changed, undef, @more);
    is($r->{status}, $whole ? 400 : 202, 'a notification with a dot segment');

    if ($whole) {
        my $error = json_decode($r->{body})->{error};

        is($error->{code}, -32600, 'its code');
        like($error->{message}, qr/ dot segment/, 'and why');

        $r = $values->post([
            { jsonrpc => '2.0', id => 7, method => 'logging/setLevel',
              params => { level => 'info' } },
            { jsonrpc => '2.0', method => $changed },
        ], @more);
        is(json_decode($r->{body})->[0]{error}{code}, -32600, 'in an array');
    }

    is(scalar $up->calls('logging/setLevel'), $whole ? 0 : 1,
       'only a level of which another upstream was told');
    is(scalar $up->calls($changed), $whole ? 0 : 1, 'and a notification');

    $r = $values->tool('session_info')->{result}{structuredContent};
    is($r->{log_level}, $whole ? 'error' : 'info', 'the level');
}

$r = $paths->call('..', {});
is("$r->{http}{status} $r->{error}{code}", '400 -32600',
   'dot segment in a method');
is(scalar $rpc->asked, $asked, 'is not asked for');
$r = $paths->call('x/../../y', {});
is(($rpc->asked)[-1]{uri}, "/p/x%2F..%2F..%2Fy/?s=$id&c=other",
   'but beside slashes, which are no path');
$r = $paths->call('evil?x=1', {});
is(($rpc->asked)[-1]{uri}, "/p/evil%3Fx%3D1/?s=$id&c=other",
   'question mark in a method');


# "if" makes a location of its own

my $if = $t->session(path => '/if', headers => { 'X-If' => 1 });
is($if->tool('x')->{http}{status}, 200, 'endpoint within "if"');
is($if->call('ping', undef, headers => { 'X-If' => undef })->{http}{status},
   200, 'is the same endpoint');


# bodies

for my $size (10, 900, 5_000, 300_000, 3_000_000) {
    $r = $s->tool('size', { a => 'x' x $size });
    is($r->{result}{size}, $size, "body of $size");

    my $body = json_encode($s->message('tools/call', {
        name => 'size', arguments => { a => 'y' x $size } }));
    my $chunked = '';
    $chunked .= sprintf("%x\r\n%s\r\n", length $_, $_)
        for $body =~ /(.{1,30000})/gs;

    $r = $t->post('/mcp', { %{ $s->request_headers },
                            'Transfer-Encoding' => 'chunked' },
                  "${chunked}0\r\n\r\n");
    is(json_decode($r->{body})->{result}{size}, $size, 'chunked');
}

# one byte at a time

my $body = json_encode($s->message('tools/call', { name => 'size' }));
my $conn = $t->conn;
my $text = $conn->format_request('POST', '/mcp', $s->request_headers, $body);

$conn->write($_) for split //, $text;
is($conn->response('POST')->{status}, 200, 'one byte at a time');

# one connection, one after another, and pipelined

is($s->tool('size', { a => 'z' x 2000 }, conn => $c1)->{result}{size}, 2000,
   'keep-alive') for 1 .. 3;

$conn = $t->conn;
$conn->write(join '', map {
    $conn->format_request('POST', '/mcp', $s->request_headers,
        json_encode($s->message('tools/call', { name => 'size',
            arguments => { a => 'p' x $_ } })))
} 1, 5000, 3);
is(json_decode($conn->response('POST')->{body})->{result}{size}, $_,
   'pipelined') for 1, 5000, 3;


# HTTP/2

SKIP: {
    skip 'no curl with HTTP/2', 6
        unless `curl --version 2>/dev/null` =~ /HTTP2/;

    my $port = $t->port('h2');

    my $curl = sub {
        my ($how, $sid, $body, @more) = @_;

        open my $fh, '>', $t->dir . '/body';
        print $fh $body;
        close $fh;

        my @sid = $sid ? ('-H', "Mcp-Session-Id: $sid") : ();
        my @how = $how eq 'length' ? ('--data-binary', '@' . $t->dir . '/body')
                                   : ('-X', 'POST', '-T', '-');

        open my $out, '-|', 'sh', '-c', 'exec "$@" <' . $t->dir . '/body',
             'sh', 'curl', '-s', '-i', '--max-time', '60',
             '--http2-prior-knowledge', '-H', 'Expect:',
             '-H', 'Content-Type: application/json',
             '-H', 'Accept: application/json, text/event-stream',
             @sid, @how, @more, "http://127.0.0.1:$port/mcp";
        my $text = join '', <$out>;
        close $out;

        return $text;
    };

    my $init = json_encode({
        jsonrpc => '2.0', id => 1, method => 'initialize',
        params => { protocolVersion => '2025-11-25', capabilities => {},
                    clientInfo => { name => 'h2', version => '1' } } });

    my $text = $curl->('length', undef, $init);
    like($text, qr{^HTTP/2 200}, 'HTTP/2 initialize');
    my ($sid) = $text =~ /^mcp-session-id: (\S+)\r$/mi;
    ok($sid, 'session');

    for my $how (qw(length stream)) {
        for my $size (10, 20_000, 700_000) {
            $text = $curl->($how, $sid, json_encode({
                jsonrpc => '2.0', id => 5, method => 'tools/call',
                params => { name => 'size',
                            arguments => { a => 'h' x $size } } }));
            like($text, qr/"size":$size\}/, "HTTP/2 body of $size, $how");
        }
    }

    like($curl->('length', $sid, '{bad'), qr/^HTTP\/2 400.*-32700/s,
         'HTTP/2 refusal');
    like($curl->('length', 'x', '{"jsonrpc":"2.0","id":1,"method":"ping"}'),
         qr/^HTTP\/2 404.*-32001/s, 'HTTP/2 unknown session');
}

done_testing();
