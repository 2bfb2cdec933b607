#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Directives: what is refused, and how that is said; inheritance; what a
# reload keeps.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [] },
));

my $t = Mcp::Test->new(start => 0, vars => { UP => $up->port });

# a wrong directive stands alone on a line, so that its number is known

sub check {
    my (%o) = @_;

    my $conf = "mcp_zone zone=main:2m;\n" . ($o{http} || '') . "\n"
               . "server {\n%%LISTEN%%\nserver_name a.example;\n"
               . ($o{server} || '') . "\n"
               . "location = /mcp {\nmcp_endpoint zone=main;\n"
               . ($o{location} || '') . "\n}\n"
               . "location = /two {\n" . ($o{two} || '') . "\n}\n}\n";

    return $t->check(conf => $conf);
}


sub refused {
    my ($level, $line, $match, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my ($code, $text) = check($level => $line);
    my ($directive) = $line =~ /^(\w+)/;
    my ($n, $at);

    for (split /\n/, $t->slurp('nginx.conf')) {
        $n++;
        $at = $n if $_ eq $line;
    }

    my @bad;

    push @bad, "exit code $code" if $code == 0;
    push @bad, 'no directive' unless $text =~ /\Q$directive\E/;
    push @bad, 'no line' unless $text =~ /nginx\.conf:$at\b/;
    push @bad, 'no remedy' unless $text =~ $match;
    push @bad, 'more than one [emerg]'
        if (() = $text =~ /\[emerg\]/g) != 1;

    ok(!@bad, "refused: $line") or diag("@bad:\n$text");
}


my ($code, $text) = check();
is($code, 0, 'the least configuration') or diag($text);
like($text, qr/endpoint "a.example\/mcp" .* no "mcp_upstream".*; add "mcp_up/,
     'the endpoint without an upstream is noted');

($code, $text) = check(location => 'mcp_builtin_tools session_info;');
is($code, 0, 'an endpoint with a tool of its own') or diag($text);
unlike($text, qr/\[(?:warn|error|notice)\]/, 'without a word')
    or diag($text);


# what answers before an endpoint is noted

for my $line ('return 404;', 'return 301 /x;', 'try_files /x =404;',
              'set $x "$arg_y, $arg_z"; return 404;')
{
    my ($what) = $line =~ /(return|try_files)/;

    ($code, $text) = check(location => $line);
    is($code, 0, "$line beside an endpoint") or diag($text);
    like($text, qr/\[warn\] "$what" in .*nginx\.conf:\d+ .*; move "$what" to/,
         'is noted');
}

for my $line ('if ($arg_x) { return 404; }', 'set $x 1;',
              'if ($arg_x) { break; } return 404;',
              'rewrite ^/x /y last;', 'rewrite ^/x /y break; return 404;')
{
    unlike((check(location => $line))[1], qr/answers instead/,
           "$line is not");
}


# post_action would take the context of a request whose stream goes on

for my $place (qw(location server http)) {
    ($code, $text) = check($place => 'post_action /after;');
    ok($code, "post_action for an endpoint is refused ($place)");
    like($text, qr/\[emerg\] "post_action" .*"mcp_\w+" in .*\.conf:\d+; move/,
         'and the remedy is named');
}


# wrong values

refused(http => $_, qr/write "mcp_zone zone=NAME:SIZE/)
    for 'mcp_zone main:1m;', 'mcp_zone zone=main;', 'mcp_zone zone=:1m;',
        'mcp_zone zone=x:big;', 'mcp_zone zone=x:;';
refused(http => 'mcp_zone zone=x:100k;', qr/needs at least 1m/);
refused(http => 'mcp_zone zone=main:2m;', qr/already declared/);
refused(server => 'mcp_zone zone=x:2m;', qr/not allowed here/);
refused(http => 'mcp_zone;', qr/number of arguments/);

refused(two => $_, qr/write "mcp_endpoint zone=NAME/)
    for 'mcp_endpoint main;', 'mcp_endpoint zone=;',
        'mcp_endpoint zone=main nam=x;', 'mcp_endpoint zone=main name=;';
refused(two => 'mcp_endpoint name=x;', qr/needs "zone=NAME"/);
refused(two => 'mcp_endpoint zone=main name=$uri;', qr/without variables/);
refused(two => 'mcp_endpoint zone=other;',
        qr/add "mcp_zone zone=other:32m;".* declared: "main"/);
refused(two => 'mcp_status zone=third;', qr/add "mcp_zone zone=third:32m;"/);
refused(server => 'mcp_endpoint zone=main name=x;', qr/not allowed here/);
refused(location => 'mcp_endpoint zone=main name=x;', qr/duplicate/);

refused(location => 'mcp_upstream u http://127.0.0.1/;', qr/"proxy_pass"/);
refused(location => 'mcp_upstream u _u;', qr/starts with "\/"/);
refused(location => 'mcp_upstream u /_u protocol=soap;',
        qr/protocol=auto\|legacy/);
refused(location => "mcp_list_cache $_;", qr/write "mcp_list_cache off/)
    for 'maybe', 'on warm=yes', 'on kind=tools';
refused(location => "mcp_list_cache on $_;",
        qr/"\Q$_\E" of .*; "kinds" are some of "tools", "prompts", /)
    for 'kinds=', 'kinds=tools,', 'kinds=tool', 'kinds=tools,tools';
refused(location => "mcp_list_cache on ttl=$_;",
        qr/"ttl=$_" of .*; "ttl" is a time above 0, for example "5m"/)
    for 0, '5minutes';
refused(location => 'mcp_list_cache on max=0;',
        qr/"max=0" of .*; "max" is a number from 1 to 4096/);
refused(location => 'mcp_list_cache auto warm=on;',
        qr/write "mcp_list_cache on warm=on;"/);
like((check(location => 'mcp_upstream u /_u protocol=rpc; '
                        . 'mcp_list_cache auto;'))[1],
     qr/"mcp_list_cache auto" caches nothing .*write "mcp_list_cache on"/,
     'auto without an upstream that marks lists is noted');
unlike((check(location => "mcp_upstream u /_u $_"))[1], qr/mcp_list_cache/,
       "$_: is not")
    for 'protocol=rpc;', 'protocol=modern; mcp_list_cache auto;',
        '; mcp_list_cache auto ttl=1m kinds=tools;';
refused(location => 'mcp_upstream u /_u listen=maybe;', qr/listen=on\|off/);
refused(location => 'mcp_upstream u /_u probe=maybe;', qr/probe=on\|off/);
refused(location => 'mcp_upstream u /_u probe=off protocol=rpc;',
        qr/exclude each other: .*; remove one/);
refused(location => 'mcp_upstream u /_u probe=off protocol=modern;',
        qr/exclude each other: .*; remove "probe=off"/);
like((check(location => join "\n", map { "mcp_upstream u$_ /_u;" } 1 .. 33))[1],
     qr/\[emerg\] "mcp_upstream u33" is one more than the 32 .*endpoint of its/,
     'refused: more upstreams than an endpoint may have');
refused(location => 'mcp_upstream u;', qr/number of arguments/);
refused(location => $_, qr/duplicate parameter .*; remove one/)
    for 'mcp_upstream u /_u protocol=rpc protocol=auto;',
        'mcp_upstream u /_u prefix=a prefix=none;',
        'mcp_list_cache on ttl=5m ttl=6m;',
        'mcp_server_info name=a name=b version=1;';
refused(location => 'mcp_upstream "" /_u;', qr/name .* is empty/);
refused(location => 'mcp_upstream u /_u; mcp_upstream u /_v;',
        qr/two "mcp_upstream u"; give each upstream a name/);
refused(location => 'mcp_upstream u /_u prefix=a:b;', qr/invalid prefix "a:b"/);
refused(location => "mcp_upstream u /_u prefix=@{['p' x 33]};",
        qr/1 to 32 letters/);
refused(location => 'mcp_upstream u /_u; mcp_upstream "a b" /_v;',
        qr/"mcp_upstream a b" cannot be the prefix .* write "prefix="/);
refused(location => 'mcp_upstream u /_u prefix=none; '
                    . 'mcp_upstream v /_v prefix=none;',
        qr/both have "prefix=none"; remove one/);
refused(location => "mcp_upstream u /_u prefix=$_->[0]; "
                    . "mcp_upstream v /_v prefix=$_->[1];",
        qr/clashes with prefix .*; write another "prefix="/)
    for ['a', 'a'], ['a', 'a__b'], ['a__b', 'a'], ['a', 'a_'];

refused(location => $_, qr/for example "60s total=1h"/)
    for 'mcp_upstream_timeout fast;', 'mcp_upstream_timeout 0;',
        'mcp_upstream_timeout 1s total=x;', 'mcp_upstream_timeout total=;',
        'mcp_upstream_timeout 5s 6s;';

refused(location => $_, qr/write "mcp_server_info name=NAME/)
    for 'mcp_server_info name=a;', 'mcp_server_info version=1;',
        'mcp_server_info name= version=;', 'mcp_server_info a b;';

refused(location => $_, qr/at least 32, for example those of "openssl/)
    for 'mcp_state_key short;', 'mcp_state_key ' . 'x' x 31 . ';',
        'mcp_state_key "";';

refused(location => 'mcp_capabilities tool;', qr/values are "tools", "pro/);

refused(location => $_, qr/for example "30s"/)
    for 'mcp_session_timeout soon;', 'mcp_session_timeout 0;',
        'mcp_session_timeout -1;', 'mcp_stream_after x;',
        'mcp_stream_heartbeat x;', 'mcp_stream_retry x;',
        'mcp_drain_time 2x;';

refused(location => $_, qr/above 0 in k or m, for example "64k"/)
    for 'mcp_stream_buffer lots;', 'mcp_stream_buffer 0;',
        'mcp_message_limit -1;', 'mcp_message_limit 0;',
        'mcp_message_limit 1g;';

refused(location => $_, qr/write a number from 1 to 1000000/)
    for map { ("$_ 0;", "$_ x;", "$_ -1;", "$_ 9999999;") }
        qw(mcp_stream_limit mcp_call_limit mcp_subscription_limit);

refused(location => $_, qr/write "mcp_session_limit NUMBER \[key=VALUE\]/)
    for 'mcp_session_limit x;', 'mcp_session_limit 1 $remote_addr;',
        'mcp_session_limit -1;', 'mcp_session_limit key=$uri;';

refused(location => $_, qr/write "mcp_event_buffer NUMBER \[SIZE\]/)
    for 'mcp_event_buffer 0;', 'mcp_event_buffer x;',
        'mcp_event_buffer 10 1m;', 'mcp_event_buffer 10 x;';

refused(location => "$_ $_", qr/is duplicate/)
    for 'mcp_batch on;', 'mcp_call_limit 2;', 'mcp_instructions x;',
        'mcp_tenant x;', 'mcp_upstream_timeout 1s;', 'mcp_list_cache on;',
        'mcp_state_key ' . 'x' x 32 . ';', 'mcp_allowed_origins any;',
        'mcp_server_info name=a version=1;', 'mcp_event_buffer 9;';

for (['mcp_versions', 'any', '2025-11-25'], ['mcp_versions', 'any', 'any'],
     ['mcp_allowed_origins', 'any', 'https://a.example'],
     ['mcp_allowed_origins', 'any', 'null'],
     ['mcp_list_cache', 'off', 'ttl=1m'], ['mcp_list_cache', 'off', 'key=off'])
{
    my ($name, $alone, $other) = @$_;

    refused(location => $_,
            qr/"$alone" cannot be combined with .* of "$name"; remove/)
        for "$name $alone $other;", "$name $other $alone;";
}

refused(location => $_, qr/"any" cannot be combined .* of "mcp_versions"/)
    for 'mcp_versions any; mcp_versions 2025-11-25;',
        'mcp_versions 2025-11-25; mcp_versions any;';

refused(location => "$_ maybe;", qr/it must be "on" or "off"/)
    for qw(mcp_cors mcp_stream_park mcp_batch);

refused(location => $_, qr{write "any", "null", or "https://host\[:port\]"})
    for 'mcp_allowed_origins example.com;',
        'mcp_allowed_origins https://;',
        'mcp_allowed_origins https://a.example/;',
        'mcp_allowed_origins ://a;', 'mcp_allowed_origins https://*.a;',
        'mcp_allowed_origins https://.a;', 'mcp_allowed_origins https://a:;',
        'mcp_allowed_origins https://a:x;',
        'mcp_allowed_origins "https://a b";',
        'mcp_allowed_origins https://a:0;',
        'mcp_allowed_origins https://a:65536;',
        'mcp_allowed_origins https://u@a;', 'mcp_allowed_origins https://a?b;',
        'mcp_allowed_origins https://$host;',
        'mcp_allowed_origins https://[::1;';
is((check(location => 'mcp_allowed_origins https://[::1]:3000 http://A.b_c '
                      . 'chrome-extension://abc;'))[0], 0, 'origins');

refused(two => $_, qr/write "mcp_publish zone=NAME/)
    for 'mcp_publish main;', 'mcp_publish zone=main x=y;',
        map { "mcp_publish zone=main $_=;" } qw(kind topic tenant id endpoint);
refused(two => $_, qr/duplicate parameter .*; remove one/)
    for 'mcp_publish zone=main zone=main;', 'mcp_publish zone=main id=a id=b;',
        'mcp_endpoint zone=main zone=other;';
refused(two => 'mcp_publish endpoint=x;', qr/needs "zone=NAME"/);
refused(two => 'mcp_status main;', qr/write "mcp_status zone=NAME;"/);
refused(two => "$_ proxy_pass http://127.0.0.1:1;", qr/give each a location/)
    for 'mcp_publish zone=main;', 'mcp_status zone=main;';
refused(http => 'mcp_zone zone=x:1g;', qr/with a size in k or m, for example/);
refused(location => 'mcp_session_limit 5 keys=$uri;', qr/write "mcp_session_l/);

refused(location => 'mcp_invalidate "" drop;', qr/is empty; write "\*" for/);

# what becomes JSON, variables and keys

refused(location => $_, qr/is not UTF-8; save the file as UTF-8/)
    for "mcp_instructions b\xfcro;", "mcp_logger b\xfcro;",
        "mcp_server_info name=b\xfcro version=1;", "mcp_tenant b\xfcro;",
        "mcp_upstream b\xfcro /_u;", "mcp_events /b\xfcro;",
        "mcp_invalidate b\xfcro drop;", "mcp_invalidate a message=\xc3;",
        "mcp_list_cache on key=b\xfcro;";
refused(two => "mcp_publish zone=main topic=b\xfcro;", qr/save the file as/);
refused(two => "mcp_endpoint zone=main name=b\xfcro;",
        qr/is not UTF-8 .*; write another "name="/);
refused(two => 'mcp_endpoint zone=main "name=a\nb";', qr/control characters/);
refused(location => 'mcp_upstream "a\nb" /_u prefix=p;',
        qr/control characters; remove them/);

($code, $text) = $t->check(conf => "mcp_zone zone=main:2m; server {\n"
    . "%%LISTEN%% location = /b\xfcro { mcp_endpoint zone=main; } }\n");
is($code, 1, 'a location that is not UTF-8');
like($text, qr/in .*:\d+, which defaults to .*; write another "name="/,
     'does not make the name of an endpoint');
is((check(location => "mcp_instructions b\xc3\xbcro;"))[0], 0, 'UTF-8');

for (['mcp_server_info name="a" version=1;', 'name="a" of "mcp_server_info"'],
     ["mcp_list_cache on key='\$uri';", 'key=\'$uri\' of "mcp_list_cache"'],
     ['mcp_invalidate a message="b";', 'message="b" of "mcp_invalidate"'],
     ['mcp_server_info "name=a b" version=1;', undef])
{
    ($code, $text) = check(location => $_->[0]);
    is($code, 0, $_->[0]) or diag($text);
    is($text =~ /\[warn\] the quotes in (.*) become a part of the value; write/
       ? $1 : undef, $_->[1], 'quotes in the middle are noted');
}


# what works and is hardly meant

for (['delete_order', 1], ['0', 0], ['""', 0], ['1', 0], ['$arg_a', 0]) {
    ($code, $text) = check(location => "mcp_deny $_->[0];");

    is($code, 0, "mcp_deny $_->[0]");
    is($text =~ /\[warn\] "mcp_deny delete_order" denies every request; write/
       ? 1 : 0, $_->[1], $_->[1] ? 'with a warning' : 'without a warning');
}

($code, $text) = check(location => 'mcp_invalidate k message=x level=warn;');
is($code, 0, 'a level that is none');
like($text, qr/\[warn\] "level=warn".* means "info".*"warning"/,
     'is told to be "info"');

($code, $text) = check(location => 'mcp_invalidate k message=x '
                                   . 'level=warning;',
                       two => 'deny all; mcp_publish zone=main '
                              . 'endpoint=a.example/mcp;');
unlike($text, qr/\[warn\]/, 'not one that is');

for (['/_f', '/_f', 1], ['/_f', '/_g', 0], ['/_f topic=a', '/_f', 0],
     ['/_f topic=a', '/_f topic=a', 1])
{
    my ($one, $two, $warns) = @$_;

    ($code, $text) = check(location => "mcp_events $one;\nmcp_events $two;");
    is($code, 0, "mcp_events: $one, $two");
    is(() = $text =~ /\[warn\] "mcp_events \/_f" appears twice, .*; remove/g,
       $warns, 'a feed that appears twice is noted');
}

for (['k drop', 'k message=x', 1], ['k message=x', 'k drop', 1],
     ['k drop', 'other message=x', 0], ['k drop', 'k drop', 0],
     ['k message=x', 'k list_changed=tools', 0])
{
    my ($one, $two, $warns) = @$_;

    ($code, $text) = check(location => "mcp_invalidate $one;\n"
                                       . "mcp_invalidate $two;");
    is($code, 0, "mcp_invalidate: $one, $two");
    is(() = $text =~ /\[warn\] "drop" of "mcp_invalidate k" has no effect/g,
       $warns, 'a drop beside something else is noted');
}

($code, $text) = check(two => 'mcp_publish zone=main endpoint=mcp;');
is($code, 0, 'events for an endpoint that is not there');
like($text, qr{\[warn\].* no endpoint "mcp", which .* in .*nginx\.conf:\d},
     'reach nobody');
like($text, qr{the endpoints "a\.example/mcp"$}m, 'the endpoints are listed');

for my $directive ('mcp_upstream u', 'mcp_events') {
    ($code, $text) = check(location => "$directive /mcp;");
    is($code, 1, "$directive: the endpoint itself");
    like($text, qr/names "\/mcp", which is an endpoint itself; name a loc/,
         'refused with the remedy');
}

for my $line ('mcp_upstream u /other/place?x=1;', 'mcp_events /other/place;')
{
    my ($directive) = $line =~ /^(\w+)/;

    my $pass = 'proxy_pass http://127.0.0.1:1;';

    for (["location /other/ { internal; $pass }", 'an internal location',
          undef],
         ["location /other/ { internal; location ~ p { $pass } }",
          'as that in one', undef],
         ['location /other/ { internal; return 204; }', 'an answer of nginx',
          undef],
         ['location /other/ { internal; try_files /x =404; }', 'or a file',
          undef],
         ['', 'no location', qr/no location; add "location = \/other\/place/],
         ["location /other/ { $pass }", 'not an internal one',
          qr/"\/other\/" is not internal: .* add "internal;" there/],
         $directive eq 'mcp_upstream'
         ? ['location /other/ { internal; }', 'nothing that answers',
            qr/nothing answers in its location "\/other\/"; add a "proxy_p/]
         : ())
    {
        my ($server, $name, $match) = @$_;

        ($code, $text) = check(location => $line, server => $server);
        is($code, 0, "$directive: $name") or diag($text);

        if ($match) {
            like($text, qr/\[warn\].* "$directive" in .*:\d+ names .*$match/,
                 'noted');
        } else {
            unlike($text, qr/\[warn\]/, 'not noted');
        }
    }
}

# what has no effect, or breaks it, in the location of an upstream

for (['allow 127.0.0.1; deny all;', qr/"allow" and "deny" in its/],
     ['auth_basic x; auth_basic_user_file x;', qr/"auth_basic" in its/],
     ['auth_request /two;', qr/"auth_request" in its/],
     ['auth_basic off; auth_request off; satisfy any;'],
     ['limit_req zone=few;'],
     ['proxy_pass_request_headers off;',
      qr/"proxy_pass_request_headers off" in .*; write "proxy_set_header NA/],
     ['proxy_pass_request_body off;',
      qr/"proxy_pass_request_body off" in .*; remove it/])
{
    my ($line, $match) = @$_;

    ($code, $text) = check(
        http => 'limit_req_zone $uri zone=few:1m rate=1r/s;',
        location => 'mcp_upstream u /_u;',
        server => "allow all; location = /_u { internal; $line "
                  . 'proxy_pass http://127.0.0.1:1; }');
    is($code, 0, "in the location of an upstream: $line") or diag($text);

    if ($match) {
        like($text, qr/\[warn\] "mcp_upstream" in .*:\d+ names "\/_u".*$match/,
             'is noted');
    } else {
        unlike($text, qr/\[warn\]/, 'is not');
    }
}

like((check(location => 'mcp_events /_u;',
            server => 'location = /_u { internal; auth_request /two; '
                      . 'proxy_pass http://127.0.0.1:1; }'))[1],
     qr/\[warn\] "mcp_events" in .* has no effect: .*; move it there/,
     'in that of a feed');
unlike((check(location => 'mcp_upstream u /_u;',
              server => 'location = /_u { deny all; '
                        . 'proxy_pass http://127.0.0.1:1; }'))[1],
       qr/has no effect/, 'it has one where clients can come');

for ('mcp_tenant a;', 'mcp_session_bind a;', 'mcp_session_timeout 1m;',
     'mcp_session_limit 1;', 'mcp_stream_limit 1;', 'mcp_call_limit 1;',
     'mcp_subscription_limit 1;', 'mcp_stream_after 1s;',
     'mcp_stream_heartbeat 1s;', 'mcp_stream_retry 1s;',
     'mcp_stream_buffer 1k;', 'mcp_stream_park on;', 'mcp_event_buffer 1;',
     'mcp_message_limit 1m;', 'mcp_drain_time 1s;', 'mcp_cors on;',
     'mcp_batch on;', 'mcp_state_key ' . 'x' x 32 . ';',
     'mcp_allowed_origins any;', 'mcp_server_info name=a version=1;',
     'mcp_instructions a;', 'mcp_upstream_timeout 1s;')
{
    ($code, $text) = check(location => "$_\n$_");
    is($code, 1, "twice: $_");
    like($text, qr/duplicate/, 'says so');
}

# what is for endpoints needs one

for my $line ('mcp_upstream u /_u;', 'mcp_events /_u;', 'mcp_stream_limit 1;',
              'mcp_stream_after 1s;', 'mcp_message_limit 1m;', 'mcp_deny $uri;',
              'mcp_builtin_tools session_info;', 'mcp_list_cache on;',
              'mcp_session_limit 1;', 'mcp_invalidate a drop;',
              'mcp_tenant $arg_t;', 'mcp_session_bind $arg_b;',
              'mcp_batch off;', 'mcp_instructions a;', 'mcp_logger a;',
              'mcp_stream_park off;', 'mcp_cors off;',
              'mcp_stream_heartbeat 1m;', 'mcp_allowed_origins any;')
{
    my ($directive) = $line =~ /^(\w+)/;
    my $u = 'location = /_u { internal; return 204; }';

    ($code, $text) = check(two => "\n$line", server => $u);
    is($code, 0, "without an endpoint: $line") or diag($text);

    my ($n, $at);

    for (split /\n/, $t->slurp('nginx.conf')) {
        $n++;
        $at = $n if $_ eq $line;
    }

    like($text,
         qr/\[warn\] "$directive" in .*:$at has no effect: .*; add "mcp_endp/,
         'is noted');

    ($code, $text) = check(server => "$u $line\n",
                           http => 'server { listen 127.0.0.1:%%PORT_b%%; '
                                   . "location / { $line\nlocation /a/b { "
                                   . 'mcp_endpoint zone=main name=b; } } '
                                   . 'location = /_u { internal; return 204; '
                                   . '} }');
    is($code, 0, 'with one below') or diag($text);
    unlike($text, qr/has no effect/, 'it is not');
}

# what they share with endpoints

for my $line ('mcp_stream_heartbeat 1m;', 'mcp_allowed_origins any;') {
    ($code, $text) = check(two => "$line mcp_status zone=main; deny all;");
    is($code, 0, "beside mcp_status: $line") or diag($text);
    unlike($text, qr/has no effect/, 'it is not');

    ($code, $text) = check(two => "$line mcp_publish zone=main; deny all;");
    is($code, 0, "beside mcp_publish: $line") or diag($text);
    is($text =~ /"mcp_stream_heartbeat" in .* has no effect/ ? 1 : 0,
       $line =~ /heartbeat/ ? 1 : 0, 'where it has a use, it is not');
}

($code, $text) = check(two => "mcp_cors off;\nmcp_logger a;\ndeny all;");
is(() = $text =~ /has no effect/g, 1, 'one warning for a location')
    or diag($text);

# a location has one handler

for ('proxy_pass http://127.0.0.1:1;', 'mcp_status zone=main;',
     'mcp_publish zone=main;')
{
    ($code, $text) = check(location => $_);
    is($code, 1, "beside mcp_endpoint: $_");
    like($text, qr/mcp_\w+.*a location of its own.*nginx\.conf:\d/,
         'says so');

    ($code, $text) = check(two => "$_\nmcp_endpoint zone=main;");
    is($code, 1, "before mcp_endpoint: $_");
    like($text, qr/mcp_endpoint.*location of its own/, 'says so');
}


# identities

my $two = <<'EOF';
mcp_zone zone=main:2m;
mcp_zone zone=more:2m;
server {
    %%LISTEN%%
    server_name a.example;
    location = /mcp { mcp_endpoint zone=main; }
}
server {
    listen 127.0.0.1:%%PORT_b%%;
    server_name a.example;
    location = /mcp { mcp_endpoint zone=main%%NAME%%; }
}
EOF

($code, $text) = $t->check(conf => $two =~ s/%%NAME%%//r);
is($code, 1, 'equal identities');
like($text, qr/mcp_endpoint.*nginx\.conf:\d+.*nginx\.conf:\d+.*"name="/,
     'both places and the remedy');
($code, $text) = $t->check(conf => $two =~ s/%%NAME%%/ name=b/r);
is($code, 0, 'one has a name') or diag($text);
($code, $text) = $t->check(
    conf => $two =~ s/%%NAME%%/ name=b/r =~ s/zone=main;/zone=main name=b;/r);
is($code, 0, 'the same name for both') or diag($text);
($code, $text) = $t->check(
    conf => $two =~ s/zone=main%%NAME%%/zone=more/r);
is($code, 0, 'another zone') or diag($text);

my $both = $two =~ s/%%NAME%%; / name=b; %%SECOND%% /r
                =~ s/zone=main; }/zone=main name=b; %%FIRST%% }/r;

for (['', 'the same', 0],
     ['mcp_upstream up /_other;', 'another location', 1],
     ['mcp_upstream other /_up;', 'another name', 1],
     ['mcp_upstream up /_up prefix=p;', 'another prefix', 1],
     ['mcp_upstream up /_up; mcp_upstream more /_more;', 'one more', 1],
     ['mcp_upstream up /_up; mcp_list_cache on;', 'other lists', 1],
     ['mcp_upstream up /_up; mcp_invalidate k list_changed=tools;',
      'other rules', 1],
     ['mcp_upstream up /_up; mcp_coalesce 3s;', 'another window', 1],
     ['mcp_upstream up /_up; mcp_logger own;', 'another logger', 1])
{
    my ($second, $name, $refused) = @$_;

    ($code, $text) = $t->check(
        conf => $both =~ s/%%FIRST%%/mcp_upstream up \/_up;/r
                      =~ s/%%SECOND%%/$second || 'mcp_upstream up \/_up;'/er);
    is($code, $refused, "one endpoint at two locations: $name")
        or diag($text);
    like($text, qr/(nginx\.conf:\d+.*){2}"name=b".*differ; write the same/,
         'both places and the remedy') if $refused;
}

($code, $text) = $t->check(conf => <<'EOF');
server { %%LISTEN%% location = /mcp { mcp_endpoint zone=main; } }
mcp_zone zone=main:2m;
EOF
is($code, 0, 'a zone declared below');
like($text, qr/\[warn\].*usable "server_name".*mcp_allowed_origins/,
     'a server without a name is noted');

$t->allow_log(qr/\[emerg\]/);


# inheritance

my $conf = <<'EOF';
mcp_zone zone=main:%%SIZE%%;

mcp_server_info name=http version=1;
mcp_instructions http;
mcp_tenant http;
mcp_allowed_origins https://http.example;
mcp_upstream up /_up;
mcp_session_limit 100 key=$remote_addr;

server {
    %%LISTEN%%
    server_name a.example;

    location = /http  { mcp_endpoint zone=main; }
    location = /http/ { rewrite ^ /http last; }

    location = /location {
        mcp_server_info name=location version=2;
        mcp_instructions "";
        mcp_allowed_origins any;
        mcp_deny $http_x_deny;
        mcp_endpoint zone=main;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /bare { default_type text/plain; return 200 bare; }
    location = /status { mcp_status zone=main; }
}

server {
    listen 127.0.0.1:%%PORT_b%%;
    server_name b.example;

    mcp_server_info name=server version=3;
    mcp_deny 1;

    location = /server { mcp_deny 0; mcp_endpoint zone=main; }
    location = /denied { mcp_endpoint zone=main; }
    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
EOF

# the recipes for a real server, with what this machine has

{
    my $recipes
        = Mcp::Test::slurp_file("$Mcp::Test::ROOT/conf/production.conf");
    my $tls = "$t->{dir}/tls";

    mkdir $tls;
    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x "
           . "-keyout $tls/x.key -out $tls/x.pem 2>/dev/null") == 0
        or die 'openssl failed';

    $recipes =~ s/^.*?(?=^http \{)//ms;
    $recipes =~ s/^http \{\n(.*)^\}\n\z/$1/ms;
    $recipes =~ s{/etc/nginx/tls/example\.com\.}{$tls/x.}g;
    $recipes =~ s{/var/log/nginx/}{$t->{dir}/}g;
    $recipes =~ s{listen( +)443}{listen${1}127.0.0.1:%%PORT_tls%%}g;
    $recipes =~ s{127\.0\.0\.1:8090}{127.0.0.1:%%PORT%%}g;

    ($code, $text) = $t->check(conf => $recipes);
    is($code, 0, 'conf/production.conf') or diag($text);
    unlike($text, qr/\[warn\]/, 'without a warning') or diag($text);
}


$t->{vars}{SIZE} = '2m';
$t->{conf} = $conf;
$t->start;

my $http = $t->session(path => '/http');
my $location = $t->session(path => '/location');
my $server = $t->session(path => '/server', port => 'b');

is($http->{server}{serverInfo}{name}, 'http', 'from http');
is($http->{server}{instructions}, 'http', 'from http');
is($location->{server}{serverInfo}{name}, 'location', 'own');
ok(!exists $location->{server}{instructions}, 'own, empty');
is($server->{server}{serverInfo}{name}, 'server', 'from server');
is($server->{server}{instructions}, 'http', 'from http, over server');

is_deeply($_->call('tools/list')->{result}, { tools => [] },
          'upstream from http') for $http, $location, $server;

my %evil = (headers => { Origin => 'https://evil.example' });
my %good = (headers => { Origin => 'https://http.example' });

is($http->call('ping', undef, %good)->{http}{status}, 200, 'origin from http');
is($http->call('ping', undef, %evil)->{http}{status}, 403, 'and no other');
is($location->call('ping', undef, %evil)->{http}{status}, 200, 'own origins');
is($location->call('ping', undef, headers => { 'X-Deny' => 1 })
   ->{http}{status}, 403, 'own mcp_deny');
is($t->client(path => '/denied', port => 'b')->initialize->{status}, 403,
   'mcp_deny from server');
is($t->get('/bare')->{body}, 'bare', 'no endpoint, no change');

my $slash = $t->session(path => '/http/');

is_deeply($slash->call('tools/list')->{result}, { tools => [] },
          'a slash more, rewritten');
is($slash->open_get->status, 200, 'its stream');
is($slash->delete->{status}, 200, 'its end');


# what a reload keeps

ok($t->reload, 'reload');
is($http->call('ping')->{http}{status}, 200, 'session is kept');
is($location->call('tools/list')->{http}{status}, 200, 'and its upstream');
is($t->session(path => '/http')->{server}{serverInfo}{name}, 'http',
   'new session');

$t->{conf} = $conf =~ s/name=http version=1/name=changed version=1/r;
ok($t->reload, 'reload with another server info');
is($t->session(path => '/http')->{server}{serverInfo}{name}, 'changed',
   'new sessions see it');
is($http->call('ping')->{http}{status}, 200, 'session is kept');

$t->{conf} = $conf =~ s/location = \/http /location = \/moved /r;
ok($t->reload, 'reload with a moved endpoint');
is($http->notify('x')->{status}, 404, 'the old place is no endpoint');
is($location->call('ping')->{http}{status}, 200, 'others are');

$t->{conf} = $conf;
ok($t->reload, 'and back again');
is($http->call('ping')->{http}{status}, 200, 'session is found again');

my $live = $t->status->{sessions}{live};

ok($live >= 5, 'sessions live');

$t->{vars}{SIZE} = '3m';
ok($t->reload, 'reload with another size');
like($t->log, qr/\[warn\].*mcp zone "main".*\b$live sessions end/,
     'says how many sessions end');
is($http->call('ping')->{http}{status}, 404, 'and they do');

my $new = $t->session(path => '/http');
is($new->call('tools/list')->{http}{status}, 200, 'new ones work');

ok($t->reload, 'reload');
is($new->call('ping')->{http}{status}, 200, 'and are kept');

$t->{conf} = $conf =~ s/zone=main/zone=renamed/gr;
ok($t->reload, 'reload without the zone');
like($t->log, qr/mcp zone "main" is no longer declared: 1 sessions end/,
     'says how many sessions end');
$t->{conf} = $conf;
ok($t->reload, 'and with it again');


# an endpoint without an upstream

$t->{conf} = <<'EOF';
mcp_zone zone=main:3m;
server {
    %%LISTEN%%
    server_name a.example;
    location /mcp { mcp_endpoint zone=main; }
}
EOF
ok($t->reload, 'an endpoint alone');

my $s = $t->session;
is_deeply($s->call('ping')->{result}, {}, 'ping');
is($s->call($_)->{error}{code}, -32601, $_)
    for qw(tools/list prompts/list resources/list resources/templates/list
           no/such);
is($s->call(@$_)->{error}{code}, -32601, $_->[0])
    for [ 'tools/call', { name => 'x' } ],
        [ 'completion/complete', { ref => { name => 'x' } } ];
is($s->call('tools/list')->{http}{status}, 200, 'with 200');
is($s->call('logging/setLevel', { level => 'info' })->{error}{code}, -32601,
   'logging/setLevel');
is($s->notify('notifications/roots/list_changed')->{status}, 202,
   'notification');
is($s->open_get->status, 200, 'GET');
is($t->session(path => '/mcp/below')->call('ping')->{http}{status}, 200,
   'prefix location');
is($s->delete->{status}, 200, 'DELETE');

done_testing();
