#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_publish and mcp_status: what web pages may not ask, under a name of their
# own or by one that was made to resolve to this machine, and the warning where
# nothing protects them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $t = Mcp::Test->new(conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name ops.example.com *.ops.example.org;

    location = /mcp     { mcp_endpoint zone=main; }
    location = /publish { mcp_publish  zone=main; }
    location = /status  { mcp_status   zone=main; }

    location = /limited {
        mcp_status zone=main;
        limit_except GET { deny all; }
    }

    location = /listed {
        mcp_publish         zone=main;
        mcp_allowed_origins https://app.example.net;
    }

    location = /any {
        mcp_status          zone=main;
        mcp_allowed_origins any;
    }

    location = /remote {
        set_real_ip_from  127.0.0.1;
        real_ip_header    X-Real-IP;
        mcp_status        zone=main;
    }
}
EOF

my $s = $t->session;
my $get = $s->open_get;
my $port = $t->port;
my $event = json_encode(notification('x', {}));
my $pages = qr/mcp_allowed_origins/;
my $names = qr/Host .*server_name/;
my $taken = 0;

# a page's POST without a preflight

for my $origin ('https://evil.example', 'http://127.0.0.1.evil.example',
                'http://evil.example:8080', 'null')
{
    refused($pages, POST => '/publish', [ Origin => $origin ]);
    refused($pages, GET => '/status', [ Origin => $origin ]);
}

# the host of the page is the server's, as it is at an endpoint

for my $origin ("http://localhost:$port", 'http://127.0.0.1:3000',
                'https://ops.example.com', 'https://a.ops.example.org')
{
    allowed(POST => '/publish', [ Origin => $origin ]);
    allowed(GET => '/status', [ Origin => $origin ]);
}

refused($pages, POST => '/publish', [ Origin => $_ ])
    for ['https://ops.example.com', 'https://evil.example'],
        ['https://evil.example', 'https://ops.example.com'];

refused($pages, POST => '/listed', [ Origin => 'https://ops.example.com' ]);
allowed(POST => '/listed', [ Origin => 'https://app.example.net' ]);
allowed(GET => '/any', [ Origin => 'https://evil.example' ]);

# no Origin: tools, and what browsers send without

allowed(POST => '/publish', []);
allowed(GET => '/status', []);
refused($pages, POST => '/publish', [ 'Sec-Fetch-Site' => 'cross-site' ]);
refused($pages, GET => '/status', [ 'Sec-Fetch-Site' => 'cross-site',
                                    'Sec-Fetch-Mode' => 'no-cors' ]);
allowed(GET => '/status', [ 'Sec-Fetch-Site' => 'cross-site',
                            'Sec-Fetch-Mode' => 'navigate' ]);
allowed(GET => '/status', [ 'Sec-Fetch-Site' => 'none' ]);
allowed(GET => '/any', [ 'Sec-Fetch-Site' => 'cross-site' ]);

# a name that resolves to this machine

for my $host ('evil.example', "evil.example:$port", 'ops.example.com.evil',
              '127.0.0.2', 'localhost.evil.example')
{
    refused($names, POST => '/publish', [ Host => $host ]);
    refused($names, GET => '/status', [ Host => $host ]);
    refused($names, GET => '/any', [ Host => $host ]);
    refused($names, GET => '/limited', [ Host => $host ]);
}

for my $host (qw(localhost LOCALHOST:1 127.0.0.1 [::1]:80 ops.example.com
                 a.ops.example.org))
{
    allowed(POST => '/publish', [ Host => $host ]);
    allowed(GET => '/status', [ Host => $host ]);
}

allowed(GET => '/remote', [ Host => 'evil.example', 'X-Real-IP' => $_ ],
        "a client on another machine, $_")
    for qw(192.0.2.1 2001:db8::1 ::ffff:192.0.2.1);
refused($names, GET => '/remote', [ Host => 'evil.example' ]);
refused($names, GET => '/remote', [ Host => 'evil.example',
                                    'X-Real-IP' => $_ ])
    for qw(127.0.0.2 ::1 ::ffff:127.0.0.1);

my $conn = $t->conn;
$conn->write("GET /status HTTP/1.0\r\n\r\n");
is($conn->response('GET')->{status}, 200, 'no Host at all');

# a refused body is no next request

$conn = $t->conn;
is($conn->request('POST', '/publish', [ Origin => 'https://evil.example' ],
                  'GET /worker HTTP/1.1')->{status}, 403, 'refused');
is($conn->request('POST', '/publish', [], $event)->{status}, 202,
   'and the connection goes on');

is($t->status->{events}{published}, $taken + 1,
   'none of what was refused was published');


# nginx -t

my $tcp = 'listen 127.0.0.1:%%PORT%%;';
my $file = 'listen unix:%%DIR%%/socket;';

# what stands in the server and in the location

for (
    [ $tcp, 'allow 127.0.0.1; deny all;' ],
    [ $tcp, 'deny fe80::/10;' ],
    [ $tcp, 'auth_basic x; auth_basic_user_file none;' ],
    [ $tcp, 'auth_request /_auth;' ],
    [ $tcp, 'internal;' ],
    [ "$tcp allow 127.0.0.1; deny all;", '' ],
    [ $file, '' ],
) {
    for my $directive (qw(mcp_publish mcp_status)) {
        my $text = check($directive, @$_);
        unlike($text, qr/\[warn\]/, "protected: @$_");
    }
}

for (
    [ $tcp, '' ],
    [ $tcp, 'mcp_deny 1;' ],
    [ $tcp, 'allow 127.0.0.1;' ],
    [ "$tcp deny all;", 'allow all;' ],
    [ "$tcp auth_basic x;", 'auth_basic off;' ],
    [ "$tcp auth_request /_auth;", 'auth_request off;' ],
    [ "$file $tcp", '' ],
) {
    for my $directive (qw(mcp_publish mcp_status)) {
        my $text = check($directive, @$_);

        like($text, qr/\[warn\] "$directive" in .*nginx\.conf:\d+ accepts req/,
             "open: @$_");
        like($text, qr/"allow 127\.0\.0\.1; deny all;"/, 'the remedy');
    }
}

done_testing();


sub check {
    my ($directive, $server, $location) = @_;

    my ($code, $text) = $t->check(conf => "mcp_zone zone=main:1m;\n"
        . "server { server_name a;\n$server\n"
        . "location / { $directive zone=main; $location } }\n");

    is($code, 0, "$directive, nginx -t") or diag($text);

    return $text;
}


sub ask {
    my ($method, $uri, $headers) = @_;

    return $t->request($method, $uri, [ 'Content-Type' => 'text/plain',
                                        @$headers ],
                       $method eq 'POST' ? $event : undef);
}


sub allowed {
    my ($method, $uri, $headers, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    $taken += $method eq 'POST';

    is(ask($method, $uri, $headers)->{status}, $method eq 'POST' ? 202 : 200,
       $name || "allowed: $method $uri @$headers");
}


sub refused {
    my ($why, $method, $uri, $headers) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $r = ask($method, $uri, $headers);

    ok($r->{status} == 403
       && (json_decode($r->{body}) || {})->{error} =~ $why,
       "refused: $method $uri @$headers") or diag("$r->{status} $r->{body}");
}
