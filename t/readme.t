#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# README.md: nginx accepts each piece of configuration in it, every directive
# and variable is there, with an example, and every link leads somewhere.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $root = $Mcp::Test::ROOT;
my $readme = Mcp::Test::slurp_file("$root/README.md");
my $t = Mcp::Test->new(start => 0);

# these belong to "http", a location to a server, all else to an endpoint

my $http = qr/^(?:limit_req_zone|log_format|map|mcp_zone|server|upstream)\b/;

# what the reader has under these names

my %given = (
    role => 'map $http_x_role $role { default user; }',
    token => 'map $http_x_token $token { default x; }',
);


# directives and variables of the source

my $source = Mcp::Test::slurp_file("$root/src/edge/ngx_http_mcp_directives.c");
my @directives = $source =~ /^    \{ ngx_string\("(mcp_\w+)"\),\n      NGX/mg;

$source = Mcp::Test::slurp_file("$root/src/edge/ngx_http_mcp_conf.h");
push @directives, $source =~ /^    SETTING\("(mcp_\w+)"/mg;

$source = Mcp::Test::slurp_file("$root/src/edge/ngx_http_mcp_variables.c");

my @variables = $source =~ /^    \{ ngx_string\("(mcp_\w+)"\)/mg;
my %section = $readme =~ /^### (mcp_\w+)\n(.*?)(?=^#{2,3} )/msg;

ok(@directives > 30 && @variables > 10, 'directives and variables');
is_deeply([sort keys %section], [sort @directives],
          'each directive has a section of its own, and no other has');

my $examples = join '', $readme =~ /^```nginx\n(.*?)^```/msg;

for my $name (@directives) {
    like($section{$name} || '',
         qr/^\*\*Syntax:\*\*\ `\Q$name\E .*\*\*Default:\*\*.*
            ^\*\*Context:\*\*/msx, "$name: syntax, default, context");
    like($examples, qr/(?:^|[ {])\Q$name\E\s/m, 'and an example');
}

like($readme, qr/^\| .*`\$\Q$_\E`.* \|/m, "\$$_") for @variables;


# log messages: the longest part without a value is a text of the source

my @texts;

for my $file (glob "$root/src/*/*.[ch]") {
    my $code = Mcp::Test::slurp_file($file) =~ s{/\*.*?\*/}{}gsr;

    while ($code =~ /((?:"(?:[^"\\\n]|\\.)*"\s*)+)/g) {
        push @texts, join '', map { s/\\"/"/gr }
                              $1 =~ /"((?:[^"\\\n]|\\.)*)"/g;
    }
}

my ($messages) = $readme =~ /^(\| message \| level .*?)^\n/ms;

for my $message (map { /`([^`]+)`/g } $messages =~ /^\| (`.*?) \| /mg) {
    my ($part) = sort { length $b <=> length $a }
                 split /\ *(?:"?…"?|"mcp_\w+"|\d+\b
                         |\b(?:N|STATUS|CODE|initialize|tools\/list)\b:?)\ */x,
                       $message;

    ok((grep { index($_, $part) >= 0 } @texts), "log message: $message")
        if length($part // '') > 8;
}


# configuration

my $tls = "$t->{dir}/tls";

mkdir $tls;
system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x "
       . "-keyout $tls/x.key -out $tls/x.pem 2>/dev/null") == 0
    or die 'openssl failed';

my $line = 1;
my $blocks = 0;

for my $piece (split /^(```\w*\n.*?^```\n)/ms, $readme) {
    if ($piece =~ /^```nginx\n(.*)^```\n\z/ms) {
        my ($code, $text) = $t->check(conf => frame($1));

        # a reminder that stands as long as the directive does
        $text =~ s/^.*\[warn\] "mcp_batch on".*\n//m;

        $blocks++;
        ok($code == 0 && $text !~ /\[(?:warn|emerg)\]/,
           "nginx takes the configuration of line $line")
            or diag($text);
    }

    if ($piece =~ /^```json\n(.*)^```\n\z/ms) {
        ok(eval { json_decode($1); 1 }, "JSON of line $line") or diag($@);
    }

    $line += $piece =~ tr/\n//;
}

ok($blocks > 20, 'pieces of configuration');


# links

my $prose = $readme =~ s/^```.*?^```\n//msgr;
my %anchor;

for my $title ($prose =~ /^#{1,6} (.*)$/mg) {
    my $name = lc $title =~ s/[^\w\- ]//gr =~ tr/ /-/r;

    ok(!$anchor{$name}++, "one heading \"$title\"");
}

for my $to ($prose =~ /\]\(([^)]+)\)/g) {
    next if $to =~ /^https?:/;
    ok($to =~ /^#(.*)/ ? $anchor{$1} : -e "$root/$to", "link to $to");
}

for my $title ($prose =~ /^## (.*)$/mg) {
    next if $title eq 'Contents';
    my $name = lc $title =~ s/[^\w\- ]//gr =~ tr/ /-/r;

    like($prose, qr/^- \[\Q$title\E\]\(#\Q$name\E\)/m,
         "\"$title\" is in the table of contents");
}

done_testing();


# a piece of configuration, with what it takes for granted around it

sub frame {
    my ($piece) = @_;

    $piece = $1 if $piece =~ /^http \{\n(.*)^\}/ms;

    my (@http, @server, @endpoint);
    my $servers = $piece =~ s{\blisten +8080;}{%%LISTEN%%}gr;

    $servers =~ s/\blisten +443 ssl;/listen 127.0.0.1:%%PORT_tls%% ssl;/;
    $servers =~ s{/etc/nginx/tls/agents\.}{$tls/x.}g;
    $servers =~ s{/var/log/nginx/}{%%DIR%%/}g;

    $servers =~ s/^( *server \{\n)(?!\s*(?:%%|listen))/$1%%LISTEN%%\n/mg;

    for (statements($servers)) {
        push @{ /$http/ ? \@http : /^location\b/ ? \@server : \@endpoint }, $_;
    }

    unshift @http, 'mcp_zone zone=main:4m;' if $piece !~ /\bmcp_zone\b/;

    for my $name ($piece =~ m{\bproxy_pass\s+https?://([a-z_]+)[/;]}g) {
        push @http, "upstream $name { server 127.0.0.1:1; }"
            unless grep { /^upstream \Q$name\E\b/ } @http;
    }

    for my $name (sort keys %given) {
        push @http, $given{$name}
            if $piece =~ /\$$name\b/ && $piece !~ /^map \S+ \$$name\b/m;
    }

    my $internal = 'location /_ { internal; proxy_pass http://127.0.0.1:1; }';

    if (grep { /^server\b/ } @http) {
        $_ =~ s/\}\s*\z/$internal\n}/ for grep { /^server\b/ } @http;
        return join "\n", @http;
    }

    push @endpoint, 'mcp_upstream given /_given;'
        if "@endpoint" !~ /\bmcp_(?:upstream|publish|status)\b/;
    push @endpoint, 'mcp_endpoint zone=main name=given;'
        if "@endpoint" !~ /\bmcp_(?:endpoint|publish|status)\b/;

    return join "\n", @http, 'server {', '%%LISTEN%%',
                      'server_name agents.example.com;', @server, $internal,
                      'location = /given {', @endpoint, '}', '}';
}


# the statements of the outermost level

sub statements {
    my ($text) = @_;

    my ($depth, $now, @all) = (0, '');

    while ($text =~ /\G("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\$\{\w+\}
                     |\#[^\n]*\n|.)/gsx)
    {
        my $token = $1;

        $token = "\n" if $token =~ /^#/;
        $now .= $token;
        $depth++ if $token eq '{';
        $depth-- if $token eq '}';

        if ($depth == 0 && ($token eq ';' || $token eq '}')) {
            push @all, $now =~ s/^\s+//r;
            $now = '';
        }
    }

    return @all;
}
