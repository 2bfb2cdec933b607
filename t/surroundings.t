#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Endpoints and upstreams among the directives that people have anyway.

use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Socket::INET;
use IO::Uncompress::Gunzip qw(gunzip);
use POSIX ();

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {} },
    'tools/list' => { tools => [] },
    'tools/call' => sub {
        my ($r) = @_;
        my $p = $r->{json}{params};

        return ([sse => {}],
                [event => notification('message', { level => 'info',
                                                    data => 'a' x 50 })],
                [until => "go-$p->{arguments}{n}"],
                [event => Mcp::Upstream::result($r, { done => 1 })])
            if $p->{name} eq 'stream';
        return [http => 500, {}, '<p>oops'] if $p->{name} eq 'oops';
        return { text => $p->{arguments}{text} } if $p->{name} eq 'included';
        return { uri => $r->{uri}, version => $r->{version},
                 headers => $r->{headers}, long => 'z' x 2000 };
    },
));

pipe my $wait, my $go or die "pipe: $!";

my $fcgi = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64)
    or die "listen: $!";
my $handler = fork // die "fork: $!";

if ($handler == 0) {
    Mcp::Test::in_child();
    close $go;
    fastcgi($_) while $_ = $fcgi->accept;
    POSIX::_exit(0);
}

END { kill KILL => $handler if $handler }

my $old = Mcp::Upstream->new(sub {
    return [http => 410, { 'Content-Type' => 'text/plain' },
            "$_[0]{method} is gone"];
});

my $t = Mcp::Test->new(vars => { UP => $up->port, OLD => $old->port,
                                 DEAD => free_port(),
                                 FCGI => $fcgi->sockport },
                       conf => <<'EOF');
mcp_zone zone=main:8m;

gzip on;
gzip_types *;
gzip_min_length 1;
gzip_proxied any;

proxy_intercept_errors on;
proxy_cache_path %%DIR%%/cache keys_zone=cache:1m;
proxy_cache cache;
proxy_cache_valid any 1h;

limit_conn_zone $server_name zone=conns:1m;

log_format up '$uri $status $upstream_status $upstream_addr $request_time '
              '$upstream_response_time $bytes_sent';

upstream named { server 127.0.0.1:%%UP%%; keepalive 4; }
upstream spare { server 127.0.0.1:%%DEAD%%; server 127.0.0.1:%%UP%% backup; }

map $host $backend { default 127.0.0.1:%%UP%%; }
map $user $role { ann admin; default ""; }

server {
    %%LISTEN%%
    server_name mcp.test;

    access_log %%DIR%%/up.log up;

    mcp_upstream_timeout 5s;
    proxy_set_header X-Server level;

    # what the packages' own configuration has
    error_page 404 /404.html;
    error_page 500 502 503 504 /50x.html;
    location = /50x.html { root %%DIR%%; }
    location = /404.html { root %%DIR%%; }

    location = /plain { mcp_endpoint zone=main; mcp_upstream u /_plain; }
    location = /_plain { internal; proxy_pass http://127.0.0.1:%%UP%%/; }

    location = /dead { mcp_endpoint zone=main;
                       mcp_upstream u /_dead protocol=legacy; }
    location = /_dead { internal; proxy_pass http://127.0.0.1:%%DEAD%%/; }

    location = /nowhere { mcp_endpoint zone=main;
                          mcp_upstream u /_nowhere protocol=legacy; }

    location = /spare { mcp_endpoint zone=main; mcp_upstream u /_spare; }
    location = /_spare { internal; proxy_pass http://spare/; }

    location = /buffered { mcp_endpoint zone=main;
                           mcp_upstream u /_buffered; }
    location = /_buffered {
        internal;
        proxy_buffering on;
        proxy_buffers 4 4k;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /old { mcp_endpoint zone=main; mcp_upstream u /_old; }
    location = /_old {
        internal;
        proxy_http_version 1.0;
        proxy_set_header Connection close;
        proxy_set_header Authorization "";
        proxy_set_header X-Own own;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    location = /variable { mcp_endpoint zone=main; mcp_upstream u /_var/a; }
    location ~ ^/_var/(\w+)$ {
        internal;
        proxy_pass http://$backend/from/$1;
    }

    location = /rewritten { mcp_endpoint zone=main;
                            mcp_upstream u /_re/x?y=z; }
    location /_re/ {
        internal;
        rewrite ^/_re/(.*)$ /to/$1 break;
        proxy_pass http://named;
    }

    location = /hidden {
        mcp_endpoint zone=main;
        mcp_upstream u /_hidden;
        error_page 403 = /page;
        add_header X-Always yes always;
        expires 1h;
    }
    location = /_hidden {
        internal;
        proxy_hide_header X-Any;
        add_header X-Inner no always;
        proxy_pass http://named/;
    }

    location = /basic {
        auth_basic "the realm";
        auth_basic_user_file %%DIR%%/htpasswd;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }

    location = /any {
        satisfy any;
        deny all;
        auth_basic "the realm";
        auth_basic_user_file %%DIR%%/htpasswd;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }

    location = /conns {
        error_page 418 /x;
        limit_conn conns 1;
        limit_conn_status 503;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }

    location = /except {
        limit_except POST { deny all; }
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }

    location = /moved {
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
        if ($http_x_old) { proxy_pass http://127.0.0.1:%%OLD%%; }
    }

    location = /mirrored {
        mirror /_mirror;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }
    location = /_mirror {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mirror;
    }

    location = /script { mcp_endpoint zone=main; mcp_upstream u /_script; }
    location = /_script {
        internal;
        fastcgi_param SCRIPT_FILENAME /srv/mcp.php;
        fastcgi_param CONTENT_LENGTH $content_length;
        fastcgi_param HTTP_AUTHORIZATION "";
        fastcgi_pass 127.0.0.1:%%FCGI%%;
    }

    location = /large {
        client_max_body_size 2m;
        mcp_endpoint zone=main;
        mcp_upstream u /_large;
    }
    location = /_large {
        internal;
        if ($http_x_if) { proxy_pass http://127.0.0.1:%%UP%%; }
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
    location = /large/small {
        client_max_body_size 2m;
        mcp_endpoint zone=main;
        mcp_upstream u /_large/small;
    }
    location = /_large/small {
        internal;
        client_max_body_size 64k;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }

    # white space, which JSON and SSE allow
    location = /added {
        add_before_body /blank;
        add_after_body /blank;
        addition_types *;
        ssi on;
        ssi_types *;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }
    location = /blank { return 200 "\n"; }

    location = /page { return 200 page; }

    location = /sub { mcp_endpoint zone=main; mcp_upstream u /_sub$mcp_topic; }
    location = /_sub { internal; mcp_endpoint zone=main name=inner; }
}

server {
    listen 127.0.0.1:%%PORT_stored%%;
    server_name ~^(?<site>\w+)\.stored\.test$;

    location ~ ^/(?<what>one|two)$ {
        auth_request     /_check;
        auth_request_set $user $upstream_http_x_user;
        set              $place here;
        set              $key $arg_key;
        set_real_ip_from 127.0.0.1;
        real_ip_header   X-Real-IP;
        add_header       X-Id $request_id;
        mcp_endpoint     zone=main;
        mcp_batch        on;
        mcp_upstream     u /_stored;
        mcp_upstream     v /_stored/2;
    }

    location = /_check {
        internal;
        proxy_pass              http://127.0.0.1:%%PORT_check%%;
        proxy_pass_request_body off;
        proxy_set_header        Content-Length "";
        proxy_set_header        X-Tool $mcp_name;
        proxy_cache             off;
    }

    location /_stored {
        internal;
        proxy_set_header X-User  $user;
        proxy_set_header X-Role  $role;
        proxy_set_header X-Site  $site;
        proxy_set_header X-What  $what;
        proxy_set_header X-Place $place;
        proxy_set_header X-Tool  $mcp_name;
        proxy_set_header X-Id    $request_id;
        proxy_set_header X-Key   $key;
        proxy_set_header X-Peer  $realip_remote_addr;
        proxy_pass http://127.0.0.1:%%UP%%/;
    }
}

server {
    listen 127.0.0.1:%%PORT_check%%;
    location / { add_header X-User $check_user; return 204; }
}

map $http_x_tool:$http_x_ask $check_user {
    u__other:ann bob;
    ~:(?<key>.*) $key;
}

server {
    listen 127.0.0.1:%%PORT_json%%;
    server_name json.test;

    location = /mcp {
        auth_basic "the realm";
        auth_basic_user_file %%DIR%%/htpasswd;
        mcp_endpoint zone=main;
    }

    location = /conns {
        limit_conn conns 1;
        mcp_endpoint zone=main;
        mcp_upstream u /_plain;
    }
    location = /_plain { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

for (['50x.html', '<p>50x'], ['404.html', '<p>404'],
     ['htpasswd', 'user:{PLAIN}secret'])
{
    open my $fh, '>', $t->dir . "/$_->[0]" or die $!;
    print $fh "$_->[1]\n";
    close $fh;
}

my %gzip = (headers => { 'Accept-Encoding' => 'gzip' });
my @json = ('Content-Type' => 'application/json',
            Accept => 'application/json, text/event-stream');


# compression: answers may be, streams must not

{
    my $s = $t->session(path => '/plain');
    my $sse = $s->stream('tools/call', { name => 'stream',
                                         arguments => { n => 1 } }, %gzip);
    is($sse->headers->{'content-encoding'}, undef, 'stream is not gzipped');
    ok($sse->method('notifications/message'), 'and not held back');
    $up->release('go-1');
    ok($sse->response($sse->{id}), 'to the end');

    my $get = $s->open_get(%gzip);
    is($get->headers->{'content-encoding'}, undef, 'GET is not gzipped');
    ok(defined $get->event, 'and not held back');
}


# filters that make subrequests of their own

{
    my $s = $t->session(path => '/added');

    is($s->call('ping')->{http}{status}, 200, 'addition: an answer of ours');
    is($s->call('tools/list')->{http}{status}, 200, 'that of an upstream');

    my $r = $s->tool('included',
                     { text => "<!--#include virtual='/page' -->" });
    is($r->{result}{text}, 'page', 'SSI') or diag($r->{http}{body});
    like($r->{http}{body}, qr/\A\n\{.*\}\n\z/s, 'addition of both');

    my $sse = $s->stream('tools/call', { name => 'stream',
                                         arguments => { n => 4 } });
    ok($sse->method('notifications/message'), 'a stream is not held back');
    $up->release('go-4');
    ok($sse->response($sse->{id}), 'to its answer');
    ok($sse->eof && !$sse->cut, 'and end');

    my $get = $s->open_get;
    ok(defined $get->event, 'a GET is not held back');
    is($s->delete->{body}, "\n\n", 'addition to an empty answer');
    ok($get->eof && !$get->cut, 'and ends');
}


# error pages of the server

{
    my $s = $t->session(path => '/plain');
    my $r = $s->tool('oops');

    is($r->{http}{status}, 502, 'error_page: upstream\'s 500');
    is($r->{error}{code}, -32603, 'is an answer of ours');
    is($s->call('no/such')->{error}{code}, -32601, 'error of the upstream');

    $r = $t->client(path => '/dead')->initialize;
    ok($r->{status} == 200 || $r->{status} == 502, 'dead upstream')
        or diag($r->{status}, $r->{body});
    like($r->{headers}{'content-type'}, qr/json/, 'not the page');

    if ($r->{status} == 200) {
        my $d = $t->session(path => '/dead');
        is($d->tool('x')->{http}{status}, 502, 'call to it');
    }

    $r = $t->client(path => '/nowhere')->initialize;
    is($r->{status}, 502, 'location that is not there');
    is($r->{json}{error}{code}, -32603, 'says so');

    is($t->post('/plain', [@json], '{bad')->{status}, 400, 'refusal');
    is(json_decode($t->post('/plain', [@json], '{"jsonrpc":"2.0","id":1,'
       . '"method":"ping"}')->{body})->{error}{code}, -32000, 'of ours');
    is(json_decode($t->post('/plain', [@json, 'Mcp-Session-Id' => 'x'],
       '{"jsonrpc":"2.0","id":1,"method":"ping"}')->{body})->{error}{code},
       -32001, '404 is not taken by error_page');
    like($t->get('/missing')->{body}, qr/<p>404/, 'which works elsewhere');
}


# upstream locations of all kinds

{
    my $s = $t->session(path => '/spare');
    is($s->tool('x')->{http}{status}, 200, 'backup server');

    $s = $t->session(path => '/buffered');
    my $first = $s->tool('x', { n => 1 });
    my $second = $s->tool('x', { n => 2 });
    is($first->{http}{status}, 200, 'buffered upstream');
    is($second->{id}, $first->{id} + 1, 'no cache answers');

    my $sse = $s->stream('tools/call', { name => 'stream',
                                         arguments => { n => 2 } });
    ok($sse->method('notifications/message'), 'buffered, but not held back');
    $up->release('go-2');
    ok($sse->response($sse->{id}), 'to the end');

    $s = $t->session(path => '/old',
                     headers => { Authorization => 'Bearer x' });
    my $h = $s->tool('x')->{result};
    is($h->{version}, 'HTTP/1.0', 'what is written stays');
    is($h->{headers}{authorization}, undef, 'proxy_set_header Authorization');
    is($h->{headers}{'x-own'}, 'own', 'own header');

    $s = $t->session(path => '/plain',
                     headers => { Authorization => 'Bearer x',
                                  Cookie => 'a=b', 'X-Any' => 'thing',
                                  Origin => undef, 'If-None-Match' => '"x"',
                                  Range => 'bytes=0-1' });
    my $gz = $s->post($s->message('tools/call', { name => 'x' }), %gzip);
    is($gz->{headers}{'content-encoding'}, 'gzip', 'gzip of an answer');
    ok(gunzip(\$gz->{body} => \my $text), 'is whole');
    $h = json_decode($text)->{result};
    is($h->{version}, 'HTTP/1.1', 'HTTP/1.1 unless written');
    $h = $h->{headers};
    is($h->{authorization}, 'Bearer x', 'Authorization crosses');
    is($h->{cookie}, 'a=b', 'Cookie crosses');
    is($h->{'x-any'}, 'thing', 'others cross');
    is($h->{'x-server'}, 'level', 'proxy_set_header of the server');
    is($h->{$_}, undef, "$_ does not cross")
        for qw(if-none-match range accept-encoding origin);
    is($h->{accept}, 'application/json, text/event-stream', 'Accept is set');
    is($h->{'content-type'}, 'application/json', 'Content-Type is set');
    like($h->{'mcp-session-id'}, qr/^up-/, 'the upstream\'s session');

    $s = $t->session(path => '/variable');
    is($s->tool('x')->{result}{uri}, '/from/a', 'regex and variables');

    $s = $t->session(path => '/rewritten');
    is($s->tool('x')->{result}{uri}, '/to/x?y=z', 'rewrite');

    $s = $t->session(path => '/hidden');
    my $r = $s->tool('x');
    is($r->{http}{headers}{'x-always'}, 'yes', 'add_header of the endpoint');
    is($r->{http}{headers}{'x-inner'}, undef, 'not of the upstream location');
    is($r->{http}{status}, 200, 'answered');

    is($t->client(path => '/sub')->initialize->{status}, 502,
       'an endpoint is no upstream');
}


# the endpoint limits messages of clients, and a location of an upstream does so
# only where it says so itself

{
    my %large = (n => 1, text => "x" x 1_500_000);

    for my $if ('', 'yes') {
        my $s = $t->session(path => '/large',
                            headers => { 'X-If' => $if });
        is($s->tool(x => \%large)->{http}{status}, 200,
           'client_max_body_size of the endpoint' . ($if && ', with an "if"'));
    }

    my $s = $t->session(path => '/large/small');
    is($s->tool(x => \%large)->{http}{status}, 413,
       'client_max_body_size of the location of the upstream');
    like($t->log, qr{"/_large/small" answered with status 413; raise},
         'the log says what to raise');
}


# what was stored in the request of the client is there for its upstream

for my $user ('ann', 'bob') {
    for my $path ('/one', '/two') {
        my $s = $t->session(path => "$path?key=k", port => 'stored',
                            version => '2025-03-26',
                            headers => { Host => "a$user.stored.test",
                                         'X-Real-IP' => '192.0.2.1',
                                         'X-Ask' => $user });

        for my $name ('u__x', 'v__x') {
            my $r = $s->tool($name);
            my $h = $r->{result}{headers};
            my @sent = @$h{map "x-$_", qw(user role site what place tool)};

            is(join(' ', map { $_ // '-' } @sent),
               join(' ', $user, $user eq 'ann' ? 'admin' : '-', "a$user",
                    substr($path, 1), 'here', $name),
               "$path, $name: stored variables of $user");
            ok($h->{'x-id'} && $h->{'x-id'} eq $r->{http}{headers}{'x-id'},
               'and $request_id');
            is("$h->{'x-key'} $h->{'x-peer'}", "k 127.0.0.1",
               'an argument, and the address before that of X-Real-IP');
        }

        my @batch = map $s->message('tools/call', { name => $_ }),
                        'u__x', 'u__other';
        my $r = $s->post(\@batch);

        is($r->{status}, $user eq 'ann' ? 403 : 200,
           'a batch has one value of each');
        like($r->{body}, qr/auth_request_set/, 'or is refused')
            if $user eq 'ann';
    }
}


# access

{
    my $basic = 'Basic dXNlcjpzZWNyZXQ=';

    for my $path ('/basic', '/any') {
        is($t->session(path => $path, headers => { Authorization => $basic })
           ->tool('x')->{http}{status}, 200, "$path: with the password");
    }

    my $r = $t->client(path => '/mcp', port => 'json')->initialize;
    is($r->{status}, 401, 'auth_basic');
    is($r->{headers}{'www-authenticate'}, 'Basic realm="the realm"',
       'keeps its header');
    is($r->{json}{error}{code}, -32000, 'and has a body');

    my $s = $t->session(path => '/conns', port => 'json');
    my $sse = wait_for {
        # the request before may count still
        my $try = $s->stream('tools/call', { name => 'stream',
                                             arguments => { n => 3 } });
        $try->status == 200 && $try;
    };
    $sse->method('notifications/message');
    $r = $s->call('ping');
    is($r->{http}{status}, 503, 'limit_conn counts a running call');
    is($r->{error}{code}, -32000, 'with a body');
    $up->release('go-3');
    ok($sse->response($sse->{id}), 'which goes on');
    ok((wait_for { $s->call('ping')->{http}{status} == 200 }),
       'and then it is free');

    $s = $t->session(path => '/except');
    is($s->call('ping')->{http}{status}, 200, 'limit_except: POST');
    is($s->open_get->status, 403, 'limit_except: GET');

    $s = $t->session(path => '/moved');
    is($s->tool('x')->{http}{status}, 200, 'beside an "if" with proxy_pass');

    for my $method (qw(GET POST OPTIONS)) {
        $r = $t->request($method, '/moved', {
            'X-Old' => 1, 'Content-Type' => 'application/json',
            Origin => 'http://mcp.test',
            'Access-Control-Request-Method' => 'POST' },
            $method eq 'POST' ? '{}' : undef);
        is("$r->{status} $r->{body}", "410 $method is gone",
           "$method in the \"if\" is not for the endpoint");
        ok(!exists $r->{headers}{'access-control-allow-origin'},
           'and gets no header of it');
    }

    $s = $t->session(path => '/mirrored');
    is($s->tool('x')->{http}{status}, 200, 'mirror');
    ok(scalar $up->wait_requests(sub { $_[0]{uri} eq '/mirror' }), 'is asked');
}


# the log knows what the exchange did

{
    my $s = $t->session(path => '/plain');
    $s->tool('x');
    $s->tool('oops');

    my $port = $up->port;

    ok((wait_for {
           $t->slurp('up.log') =~ m{^/plain 200 200 127\.0\.0\.1:$port }m
       }), '$upstream_* in the endpoint\'s log');
    ok((wait_for {
           $t->slurp('up.log') =~ m{^/plain 502 500 127\.0\.0\.1:$port }m
       }), 'and of a failure');
}


# a script behind FastCGI, which nginx asks by another protocol

{
    my $s = $t->session(path => '/script',
                        headers => { Authorization => 'Bearer x',
                                     'X-Any' => 'thing' });
    is_deeply($s->call('tools/list')->{result}, { tools => [] }, 'FastCGI');

    my $p = $s->tool('x')->{result};
    is($p->{SCRIPT_FILENAME}, '/srv/mcp.php', 'its parameters');
    is($p->{HTTP_X_ANY}, 'thing', 'headers cross');
    ok(!$p->{HTTP_AUTHORIZATION}, 'but for one that is cleared');

    my $sse = $s->stream('tools/call', { name => 'stream' });
    ok($sse->method('notifications/message'), 'a stream is not held back');
    syswrite $go, '.';
    ok($sse->response($sse->{id}), 'to the end');
}

done_testing();


# one request of FastCGI, to a plain handler

sub fastcgi {
    my ($c) = @_;
    my ($params, $body, %p) = ('', '');

    while (read($c, my $head, 8) == 8) {
        my (undef, $type, undef, $len, $pad) = unpack 'CCnnC', $head;

        read $c, my $data, $len + $pad if $len + $pad;
        $data = substr $data // '', 0, $len;

        $params .= $data if $type == 4;
        $body .= $data if $type == 5;
        last if $type == 5 && $len == 0;
    }

    while (length $params) {
        my @len = map {
            my $n = unpack 'C', $params;

            $n = $n < 128 ? unpack 'C', substr $params, 0, 1, ''
                          : 0x7fffffff & unpack 'N', substr $params, 0, 4, '';
        } 1 .. 2;
        my $name = substr $params, 0, $len[0], '';

        $p{$name} = substr $params, 0, $len[1], '';
    }

    my $m = json_decode($body);
    my $answer = { jsonrpc => '2.0', id => $m->{id} };
    my $type = 'application/json';
    my $out = sub {
        syswrite $c, pack('CCnnCC', 1, 6, 1, length $_[0], 0, 0) . $_[0];
    };

    if ($m->{method} eq 'tools/list') {
        $answer->{result} = { tools => [] };

    } elsif ($m->{method} ne 'tools/call') {
        $answer->{error} = { code => -32601, message => 'unknown' };

    } elsif ($m->{params}{name} eq 'stream') {
        $type = 'text/event-stream';
        $out->("Content-Type: $type\r\n\r\ndata: "
               . json_encode(notification('message', { level => 'info',
                                                       data => 'a' }))
               . "\n\n");
        sysread $wait, my $byte, 1;
        $answer->{result} = {};

    } else {
        $answer->{result} = \%p;
    }

    $out->($type =~ /json/
           ? "Content-Type: $type\r\n\r\n" . json_encode($answer)
           : 'data: ' . json_encode($answer) . "\n\n");
    syswrite $c, pack('CCnnCC', 1, 6, 1, 0, 0, 0)
                 . pack('CCnnCC', 1, 3, 1, 8, 0, 0) . "\0" x 8;
    close $c;
}
