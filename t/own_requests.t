#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Requests that the module makes without a client (discovery, its own sessions,
# feeds) pass what ordinary configurations ask of clients' requests.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Socket ();

my $tls = File::Temp::tempdir('mcp-tls-XXXXXX', TMPDIR => 1, CLEANUP => 1);

system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
       . " -keyout $tls/key.pem -out $tls/cert.pem 2>/dev/null") == 0
    or die 'openssl failed';

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] },
    GET => sub { ([sse => {}], [tag => 'get'], [hang =>]) }));

# where there is IPv6

my $socket;
my $six = socket($socket, Socket::PF_INET6(), Socket::SOCK_STREAM(), 0)
          && bind($socket, Socket::pack_sockaddr_in6(0,
                               Socket::IN6ADDR_LOOPBACK()))
          ? <<'EOC' : '';
server {
    listen [::]:%%PORT_six%% ipv6only=on ssl;

    location = /six { mcp_endpoint zone=main; mcp_upstream six /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/six; }
}
EOC

my $t = Mcp::Test->new(vars => { UP => $up->port, PEM => $tls },
                       conf => <<'EOC' . $six);
mcp_zone zone=main:8m;
mcp_list_cache on;

ssl_certificate      %%PEM%%/cert.pem;
ssl_certificate_key  %%PEM%%/key.pem;

proxy_set_header Host             $http_host;
proxy_set_header Connection       "";
proxy_set_header X-Host           $host;
proxy_set_header X-Scheme         $scheme;
proxy_set_header X-Https          $https;
proxy_set_header X-Port           $server_port;
proxy_set_header X-Server         $server_addr;
proxy_set_header X-Remote         $remote_addr;
proxy_set_header X-Protocol       $server_protocol;
proxy_set_header X-Method         $request_method;

server {
    %%LISTEN_plain%%
    server_name _ *.wild.example ~^re .plain.example other.example;

    if ($host != plain.example) { return 403 "host"; }
    if ($request_method !~ ^(POST|GET|DELETE)$) { return 405; }

    location = /mcp { mcp_endpoint zone=main; mcp_upstream plain /_up;
                      mcp_events /_events; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/plain; }
    location = /_events {
        internal; proxy_pass http://127.0.0.1:%%UP%%/feed;
    }
}

server {
    %%LISTEN_both%%
    listen 127.0.0.1:%%PORT_tls%% ssl;
    server_name tls.example;

    if ($scheme = http) { return 301 https://$host$request_uri; }
    if ($https != on) { return 403; }
    if ($host != tls.example) { return 403; }

    location = /mcp { mcp_endpoint zone=main; mcp_upstream tls /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/tls; }
}

server {
    listen 127.0.0.1:%%PORT_only%% ssl;

    location = /only { mcp_endpoint zone=main; mcp_upstream only /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/only; }
}

server {
    listen %%PORT_any%%;

    location = /any { mcp_endpoint zone=main; mcp_upstream any /_up; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/any; }
}
EOC

sub of {
    my ($uri, $method) = @_;

    my ($r) = $up->requests(sub {
        $_[0]{uri} eq $uri
        && ($method eq 'GET' ? $_[0]{method} eq 'GET'
            : ref $_[0]{json} eq 'HASH' && $_[0]{json}{method} eq $method
              && $_[0]{json}{id} =~ /nginx-mcp/)
    });

    return map { $_ => $r->{headers}{$_} } qw(host x-host x-scheme x-https
        x-port x-server x-remote x-protocol x-method) if $r;
    return;
}

# plain, with all kinds of requests

my $s = $t->session(port => 'plain', headers => { Host => 'plain.example' });

is_deeply($s->call('tools/list')->{result}{tools}, [], 'a list');
$up->wait_requests(sub { $_[0]{uri} eq '/feed' });

my %plain = (host => 'plain.example', 'x-host' => 'plain.example',
             'x-scheme' => 'http', 'x-https' => undef,
             'x-port' => $t->port('plain'), 'x-server' => '127.0.0.1',
             'x-remote' => '127.0.0.1', 'x-protocol' => 'HTTP/1.1');

for (['/plain', 'initialize', 'POST'], ['/plain', 'tools/list', 'POST'],
     ['/feed', 'GET', 'GET'])
{
    my ($uri, $method, $http) = @$_;

    ok(wait_for { my %got = of($uri, $method); %got }, "$uri, $method");

    my %got = of($uri, $method);
    delete $got{'x-https'} unless length($got{'x-https'} || '');

    is_deeply({ 'x-https' => undef, %got }, { %plain, 'x-method' => $http },
              "$uri, $method: what the rules see");
}

# TLS: the client speaks it, so what is known comes from the module's own

my $r = $t->client(port => 'both', headers => { Host => 'tls.example' })
          ->initialize;
is($r->{status}, 301, 'clients are sent to TLS');

sub tls {
    my ($port, $host, $path, $address) = @_;

    my $body = json_encode({
        jsonrpc => '2.0', id => 1, method => 'initialize', params => {
            protocolVersion => '2025-11-25', capabilities => {},
            clientInfo => { name => 'a', version => '1' } } });

    open my $fh, '-|', 'curl', '-ski', '-H', "Host: $host", '-H',
        'Content-Type: application/json', '-d', $body,
        'https://' . ($address || '127.0.0.1') . ":$port$path"
        or die "curl: $!";

    local $/;
    return scalar <$fh>;
}

like(tls($t->port('tls'), 'tls.example', '/mcp'), qr/^HTTP\/1.1 200 /,
     'a server that wants https');

my %got = of('/tls', 'initialize');
is_deeply([@got{qw(host x-scheme x-https x-port)}],
          ['tls.example', 'https', 'on', $t->port('tls')], 'has it');

like(tls($t->port('only'), 'localhost', '/only'), qr/^HTTP\/1.1 200 /,
     'a TLS-only server without a name');
%got = of('/only', 'initialize');
is_deeply([@got{qw(host x-host x-scheme x-port)}],
          ['127.0.0.1:' . $t->port('only'), '127.0.0.1', 'https',
           $t->port('only')], 'goes by its address');

is($t->client(port => 'any', path => '/any')->initialize->{status}, 200,
   'one that listens everywhere');
%got = of('/any', 'initialize');
is_deeply([@got{qw(host x-server x-port)}],
          ['127.0.0.1:' . $t->port('any'), '127.0.0.1', $t->port('any')],
          'goes by the loopback address');

if ($six) {
    like(tls($t->port('six'), 'localhost', '/six', '[::1]'),
         qr/^HTTP\/1.1 200 /, 'one that listens to IPv6 alone');
    %got = of('/six', 'initialize');
    is_deeply([@got{qw(host x-server x-port)}],
              ['[::1]:' . $t->port('six'), '::1', $t->port('six')],
              'goes by that loopback address');
}

done_testing();
