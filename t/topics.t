#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Topics as resources: what is kept, who sees it, lists that the module's own
# entries are mixed into, with an upstream and without one.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my @tools = map { { name => $_, inputSchema => { type => 'object' } } }
            qw(wait_for_event alpha secret session_info);

my $mcp = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => sub {
        my ($r) = @_;

        return $r->{json}{params}{cursor}
               ? { tools => [ { name => 'session_info' },
                              { name => 'beta' } ] }
               : { tools => \@tools, nextCursor => 'more' };
    },
    'resources/list' => { resources => [ { uri => 'file:///a',
                                           name => 'a' } ] },
    'resources/templates/list' => { resourceTemplates => [] },
    'resources/read' => { contents => [ { uri => 'file:///a',
                                          text => 'upstream' } ] },
    'resources/subscribe' => {},
    'resources/unsubscribe' => {},
));

my $large = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/list' => { tools => [ map { { name => "tool$_",
                                         description => 'x' x 1000,
                                         inputSchema => {
                                             type => 'object' } } }
                                 1 .. 100 ] },
));

# knows of none of it

my $bare = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'prompts/list' => { prompts => [] },
));

my $t = Mcp::Test->new(
    vars => { MCP => $mcp->port, BARE => $bare->port,
              LARGE => $large->port },
    conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_zone zone=quiet:2m;
mcp_zone zone=few:2m;

map $mcp_name $secret { secret 1; session_info 1; default ""; }

server {
    %%LISTEN%%
    server_name localhost;

    mcp_tenant   $http_x_tenant;
    mcp_batch    on;

    location = /mcp {
        mcp_endpoint       zone=main name=alone;
        mcp_builtin_tools  wait_for_event session_info;
    }

    location = /up {
        mcp_endpoint       zone=main name=up;
        mcp_upstream       mcp /_mcp;
        mcp_builtin_tools  wait_for_event session_info;
        mcp_deny           $secret;
    }

    location = /cached {
        mcp_endpoint       zone=main name=cached;
        mcp_upstream       mcp /_mcp;
        mcp_list_cache     on;
        mcp_builtin_tools  wait_for_event session_info;
        mcp_deny           $secret;
    }

    location = /plain {
        mcp_endpoint       zone=main name=plain;
        mcp_upstream       mcp /_mcp;
    }

    location = /large {
        mcp_endpoint       zone=main name=large;
        mcp_upstream       large /_large;
        mcp_builtin_tools  session_info;
    }

    location = /bare {
        mcp_endpoint       zone=main name=bare;
        mcp_upstream       bare /_bare protocol=rpc;
        mcp_builtin_tools  wait_for_event;
    }

    location = /quiet {
        mcp_endpoint       zone=quiet name=quiet;
    }

    location = /few {
        mcp_endpoint       zone=few name=few;
        mcp_topic_limit    3;
    }

    location = /except {
        mcp_endpoint       zone=main name=except;
        mcp_builtin_tools  wait_for_event;
        limit_except GET   { allow all; }
    }

    location = /if {
        mcp_endpoint       zone=main name=if;
        mcp_builtin_tools  wait_for_event;

        if ($http_x_odd) {
            set $odd 1;
        }
    }

    location = /_mcp   { internal; proxy_pass http://127.0.0.1:%%MCP%%/mcp; }
    location = /_bare  { internal; proxy_pass http://127.0.0.1:%%BARE%%; }
    location = /_large { internal; proxy_pass http://127.0.0.1:%%LARGE%%/mcp; }

    location = /publish       { mcp_publish zone=main; }
    location = /publish-alone { mcp_publish zone=main endpoint=alone; }
    location = /publish-few   { mcp_publish zone=few; }
    location = /hook          { mcp_publish zone=main endpoint=alone
                                            topic=hooks/$arg_name; }
}
EOF

my @w = $t->workers;
my ($r, $e, @e);

# what is offered

my %s = map { $_ => $t->session(headers => { 'X-Tenant' => $_ }) }
        qw(acme bold);
my $offers = { subscribe => JSON::PP::true, listChanged => JSON::PP::true };

is_deeply($s{acme}{server}{capabilities}{resources}, $offers,
          'resources without an upstream');
is_deeply($s{acme}{server}{capabilities}{tools},
          { listChanged => JSON::PP::true }, 'and tools');

my $quiet = $t->session(path => '/quiet', headers => { 'X-Tenant' => 'x' });

is_deeply($quiet->{server}{capabilities}, {},
          'nothing where nothing can be published');
is($quiet->call('resources/list')->{error}{code}, -32601, 'nor listed');
is($quiet->call('resources/read', { uri => 'events://a/latest' })
   ->{error}{code}, -32601, 'nor read');


# templates and lists

is_deeply([ map { $_->{uriTemplate} }
            @{ $s{acme}->call('resources/templates/list')
               ->{result}{resourceTemplates} } ],
          [ 'events://{+topic}/latest' ], 'the template');
is_deeply($s{acme}->call('resources/list')->{result}, { resources => [] },
          'no topic yet');
$r = $s{acme}->call('resources/list', { cursor => 'x' });
is($r->{error}{code}, -32602, 'there are no other pages');


# reading

$r = $s{acme}->call('resources/read', { uri => 'events://a/b/latest' });
is($r->{error}{code}, -32002, 'an unknown topic');
is_deeply($r->{error}{data}, { uri => 'events://a/b/latest' }, 'is named');
is($s{acme}->call('resources/read', { uri => 'file:///x' })->{error}{code},
   -32002, 'any other resource, without an upstream');
is($s{acme}->call('resources/read', {})->{error}{code}, -32602, 'no URI');

my %g = map { $_ => $s{$_}->open_get(conn => $t->conn_on_worker($w[0])) }
        keys %s;
my $other = $t->conn_on_worker($w[1]);

$r = post_on($other, '/publish-alone',
             { topic => 'a/b', tenant_id => 'acme', n => 1 });
is_deeply($r->{events}, [ { sessions => 1 } ], 'one is published');
is_deeply([ map { $_->{json}{method} } heard('acme') ],
          [ 'notifications/resources/list_changed' ],
          'a new topic is announced');
post_on($other, '/publish-alone',
        { topic => 'a/b', tenant_id => 'acme', n => 2,
          identity => 'nobody' });
is_deeply([ map { $_->{json}{method} } heard('acme') ], [], 'once');
is_deeply([ heard('bold') ], [], 'to its tenant');

is_deeply([ map { [ @$_{qw(uri name mimeType)} ] }
            @{ $s{acme}->call('resources/list')->{result}{resources} } ],
          [ [ 'events://a/b/latest', 'a/b', 'application/json' ] ],
          'it is listed');
is_deeply($s{bold}->call('resources/list')->{result}, { resources => [] },
          'for its tenant');

my $read = topic('acme', 'events://a/b/latest');
is($read->{topic}, 'a/b', 'it is read');
is_deeply([ map { $_->{event}{n} } @{ $read->{events} } ], [ 1 ],
          'what is for others is not shown');
is($read->{events}[0]{event}{tenant_id}, 'acme', 'as it was published');
is($s{bold}->call('resources/read', { uri => 'events://a/b/latest' })
   ->{error}{code}, -32002, 'not by others');

for my $n (2 .. 40) {
    post_on($other, '/publish-alone', { topic => 'a/b', tenant_id => 'acme',
                                        n => $n });
}

$read = topic('acme', 'events://a/b/latest');
is_deeply([ map { $_->{event}{n} } @{ $read->{events} } ], [ 9 .. 40 ],
          'the last 32, newest last');
is_deeply([ sort { $a <=> $b } map { $_->{position} } @{ $read->{events} } ],
          [ map { $_->{position} } @{ $read->{events} } ],
          'in the order of their positions');

$r = post_on($other, '/publish-alone', { topic => 'a/b', tenant_id => 'acme',
                                         n => 41, pad => 'x' x 17000 });
is_deeply($r->{events}, [ { sessions => 1, kept => JSON::PP::false } ],
          'one over 16k is not kept, and that is said');
$r = post_on($other, '/publish-alone', { topic => 'a/b', tenant_id => 'acme',
                                         n => 42, pad => 'x' x 16000 });
is_deeply($r->{events}, [ { sessions => 1 } ], 'a smaller one is');
@e = map { $_->{event}{n} }
     @{ topic('acme', 'events://a/b/latest')->{events} };
ok(@e > 1 && @e < 16 && $e[-1] == 42, 'in place of older ones');

$r = post_on($other, '/publish', { topic => 'x' x 513 });
like($r->{events}[0]{error}, qr/512/, 'a name that is too long');


for my $bad ("a\x01b", "a\nb", "a\x7fb") {
    $r = post_on($other, '/publish', { topic => $bad });
    like($r->{events}[0]{error}, qr/the topic has a control character/,
         'a name with a control character');
}

for my $bad ('%01', '%0A', '%7F') {
    is($s{acme}->call('resources/read', { uri => "events://a${bad}b/latest" })
       ->{error}{code}, -32002, 'and no topic has one');
}


# names and their URIs

my $odd = "gr\x{fc}n & blau/\"x\"";

for ([ $odd, 'events://gr%C3%BCn%20&%20blau/%22x%22/latest' ],
     [ '100%', 'events://100%25/latest' ],
     [ 'a:b?c#d', 'events://a:b?c#d/latest' ])
{
    post_on($other, '/publish-alone', { topic => $_->[0],
                                        tenant_id => 'bold' });
    is(topic('bold', $_->[1])->{topic}, $_->[0], 'a name and its URI');
}

is(topic('bold', 'events://gr%C3%BCn%20%26%20blau%2F%22x%22/latest')->{topic},
   $odd, 'however it is encoded');
is_deeply([ names($s{bold}) ], [ $odd, '100%', 'a:b?c#d' ],
          'in the order in which they were made');
heard($_) for keys %g;


# subscriptions, on the other worker

for my $who (qw(acme bold)) {
    $s{$who}->call('resources/subscribe', { uri => 'events://news/latest' });
}

is_deeply($s{acme}->call('resources/subscribe',
                         { uri => 'events://b%6Fb/latest' })->{result}, {},
          'accepted, known or not');

post_on($other, '/publish-alone', { topic => 'news', tenant_id => 'acme',
                                    n => 1 });
post_on($other, '/publish-alone', { topic => 'bob', tenant_id => 'acme' });
is_deeply([ map { $_->{json}{params} ? $_->{json}{params}{uri} : () }
            heard('acme') ],
          [ 'events://news/latest', 'events://bob/latest' ],
          'told of updates');
is_deeply([ map { $_->{json}{params} ? 1 : () } heard('bold') ], [],
          'not of those of others');
is_deeply([ map { $_->{event}{n} }
            @{ topic('acme', 'events://news/latest')->{events} } ], [ 1 ],
          'and finds it there');

$s{acme}->call('resources/unsubscribe', { uri => 'events://news/latest' });
post_on($other, '/publish-alone', { topic => 'news', tenant_id => 'acme' });
is_deeply([ map { $_->{json}{params} ? 1 : () } heard('acme') ], [],
          'not any more');

# notifications with a topic are kept as they are

$s{acme}->call('resources/subscribe', { uri => 'events://note/latest' });
post_on($other, '/publish-alone',
        notification('note', { x => 1 }, topic => 'note',
                     tenant_id => 'acme'));
is_deeply([ grep { !/list_changed/ }
            map { $_->{json}{method} } heard('acme') ],
          [ 'notifications/note' ], 'a notification to a topic');
is_deeply(topic('acme', 'events://note/latest')->{events}[0]{event},
          notification('note', { x => 1 }), 'is kept');

# for one session

my $second = $t->session(headers => { 'X-Tenant' => 'acme' });

post_on($other, '/publish-alone', { topic => 'mine', n => 1,
                                    session_id => $s{acme}->id });
is_deeply([ sort keys %{ topic('acme', 'events://mine/latest')
                         ->{events}[0]{event} } ], [ qw(n topic) ],
          'an event for one session');
is($second->call('resources/read', { uri => 'events://mine/latest' })
   ->{error}{code}, -32002, 'is not there for another');
ok(!(grep { $_ eq 'mine' } names($second)), 'nor is its topic');

# webhooks

$t->post('/hook?name=ci', { 'Content-Type' => 'application/json' },
         '{"state":"green"}');
$read = topic('acme', 'events://hooks/ci/latest');
is_deeply($read->{events}[0]{event}{payload}, { state => 'green' },
          'what a webhook brought');


# mixed into an upstream's lists

my $up = $t->session(path => '/up', headers => { 'X-Tenant' => 'acme' });
my $plain = $t->session(path => '/plain', headers => { 'X-Tenant' => 'acme' });

post_on($other, '/publish', { topic => 'up', tenant_id => 'acme' });

is_deeply([ tools($up) ], [ qw(wait_for_event alpha) ],
          'built-in tools come first, theirs are hidden, denied ones left out');
is($up->call('tools/list')->{result}{nextCursor}, 'more', 'pages stay');
is_deeply([ tools($up, { cursor => 'more' }) ], [ 'beta' ],
          'on the first page only');
is_deeply([ tools($plain) ], [ map { $_->{name} } @tools ],
          'untouched elsewhere');
like($t->log, qr/hides the tool "wait_for_event"/,
     'the log says so');
is($up->tool('session_info')->{http}{status}, 403, 'a denied one is refused');

is_deeply([ names($up) ], [ 'up', 'a' ], 'resources');

my @many = map { "many/$_ " . "\x{e4}" x ($_ % 50) } 1 .. 300;

my $many = $t->session(path => '/up', headers => { 'X-Tenant' => 'many' });

$t->publish(join "\n", map { json_encode({ topic => $_, n => 1,
                                           tenant_id => 'many' }) } @many);

is_deeply([ names($many) ], [ @many, 'a' ], 'many of them, with long names');
is_deeply([ map { $_->{name} } @{ $up->call('resources/templates/list')
                                  ->{result}{resourceTemplates} } ],
          [ 'events' ], 'templates');
is($up->call('resources/read', { uri => 'file:///a' })
   ->{result}{contents}[0]{text}, 'upstream', "the upstream's are its own");
is($up->call('resources/read', { uri => 'events://none/latest' })
   ->{error}{code}, -32002, 'topics are not asked of it');
my $before = $mcp->calls('resources/subscribe');
$up->call('resources/subscribe', { uri => 'events://up/latest' });
$up->call('resources/unsubscribe', { uri => 'events://up/latest' });
is($mcp->calls('resources/subscribe'), $before, 'nor subscribed to there');

my $large_session = $t->session(path => '/large',
                                headers => { 'X-Tenant' => 'acme' });
is(scalar(() = tools($large_session)), 101, 'a list in pieces');
is((tools($large_session))[0], 'session_info', 'has it in front');

# into cached ones

my $cached = $t->session(path => '/cached', headers => { 'X-Tenant' => 'x' });

for my $w (@w) {
    my @on = (conn => $t->conn_on_worker($w));

    is_deeply([ map { $_->{name} }
                @{ $cached->call('tools/list', undef, @on)
                   ->{result}{tools} } ], [ qw(wait_for_event alpha beta) ],
              'tools of a cached list');
    is_deeply([ map { $_->{name} }
                @{ $cached->call('resources/templates/list', undef, @on)
                   ->{result}{resourceTemplates} } ], [ 'events' ],
              'templates of a cached list');
}

post_on($other, '/publish', { topic => 'cached', tenant_id => 'x' });
is_deeply([ names($cached) ], [ 'cached', 'a' ],
          'resources of a cached list');


# a batch

my $batch = $t->session(path => '/up', version => '2025-03-26',
                        headers => { 'X-Tenant' => 'acme' });
$r = $batch->post([ $batch->message('tools/list'),
                    $batch->message('resources/list'),
                    $batch->message('resources/read',
                                    { uri => 'events://no/latest' }) ]);
my @b = @{ $r->{json} };
is(scalar(grep { $_->{result}{tools} && $_->{result}{tools}[0]{name}
                 eq 'wait_for_event' } @b), 1, 'tools in a batch');
is(scalar(grep { $_->{result}{resources}
                 && $_->{result}{resources}[0]{name} eq 'up' } @b), 1,
   'resources in a batch');
is_deeply([ map { $_->{error} ? $_->{error}{data} : () } @b ],
          [ { uri => 'events://no/latest' } ], 'an error with its data');

# an upstream that has none of it

my $bare_session = $t->session(path => '/bare',
                               headers => { 'X-Tenant' => 'acme' });
is_deeply([ tools($bare_session) ], [ 'wait_for_event' ],
          'tools where the upstream has none');
ok(exists $bare_session->call('resources/list')->{result}{resources},
   'resources likewise');
is($bare_session->call('resources/templates/list')
   ->{result}{resourceTemplates}[0]{uriTemplate}, 'events://{+topic}/latest',
   'and templates');
is($bare_session->tool('nothing')->{error}{code}, -32601,
   'what it does not know it answers itself');


# how many there may be

my $few = $t->session(path => '/few', headers => { 'X-Tenant' => 'x' });

post_on($other, '/publish-few', { topic => "t$_" }) for 1 .. 3;
my %keeps = map {
    $_ => $t->session(path => '/few', headers => { 'X-Tenant' => 'x' })
} qw(t1 t2 t4);
$keeps{t1}->call('resources/subscribe', { uri => 'events://t1/latest' });
topic_of($few, 'events://t2/latest');
post_on($other, '/publish-few', { topic => 't4' });
is_deeply([ names($few) ], [ qw(t1 t2 t4) ],
          'the one used longest ago goes, not one subscribed to');
is_deeply($keeps{$_}->call('resources/subscribe',
                           { uri => "events://$_/latest" })->{result}, {},
          "$_ is kept") for qw(t2 t4);
$r = post_on($other, '/publish-few', { topic => 't5' });
is_deeply($r->{events}, [ { sessions => 4, kept => JSON::PP::false } ],
          'no room for one more');
$r = $few->call('resources/subscribe', { uri => 'events://t6/latest' });
is($r->{error}{code}, -32000, 'nor for who subscribes');
like($r->{error}{message}, qr/mcp_topic_limit/, 'which directive says');
is_deeply([ names($few) ], [ qw(t1 t2 t4) ], 'none goes');
$keeps{t2}->call('resources/unsubscribe', { uri => 'events://t2/latest' });
post_on($other, '/publish-few', { topic => 't5' });
is_deeply([ names($few) ], [ qw(t1 t4 t5) ], 'now one can');


# they outlive workers and reloads

kill 'KILL', $w[1];
$t->allow_log(qr/exited on signal 9/);
wait_for { my @n = $t->workers; @n == 2 && !grep { $_ == $w[1] } @n };
is_deeply([ names($few) ], [ qw(t1 t4 t5) ], 'a kill');
$t->reload;
is_deeply([ names($few) ], [ qw(t1 t4 t5) ], 'a reload');
is(topic('acme', 'events://hooks/ci/latest')->{events}[0]{event}{payload}
   {state}, 'green', 'with their events');

# "if" and "limit_except" within the location

for my $path (qw(/except /if)) {
    my $odd = $t->session(path => $path, headers => { 'X-Tenant' => 'odd',
                                                      'X-Odd' => 1 });

    is_deeply($odd->{server}{capabilities}{resources}, $offers,
              "$path: resources are offered");
    $t->publish({ topic => 'odd', tenant_id => 'odd' });
    ok($odd->call('resources/read', { uri => 'events://odd/latest' })
       ->{result}, "$path: and read");
}

done_testing();


sub post_on {
    my ($conn, $uri, $body) = @_;

    return $t->publish($body, $uri, conn => $conn)->{json};
}


# what came before a marker

sub heard {
    my ($who) = @_;
    my @heard;

    $t->publish(notification('marker', undef,
                             session_id => $s{$who}->id), '/publish-alone');

    while (my $e = $g{$who}->event) {
        return @heard if ref $e->{json}
                         && $e->{json}{method} eq 'notifications/marker';
        push @heard, $e if $e->{data} ne '';
    }

    return (@heard, { json => { method => 'no marker' } });
}


sub topic_of {
    my ($session, $uri) = @_;

    my $res = $session->call('resources/read', { uri => $uri });

    is($res->{result}{contents}[0]{mimeType}, 'application/json', 'read')
        or diag(json_encode($res));

    my $text = $res->{result}{contents}[0]{text};

    utf8::encode($text);
    return json_decode($text);
}


sub topic { return topic_of($s{$_[0]}, $_[1]) }


sub tools {
    my ($session, $params) = @_;

    my $res = $session->call('tools/list', $params);
    return map { $_->{name} } @{ $res->{result}{tools} };
}


sub names {
    return map { $_->{name} }
           @{ $_[0]->call('resources/list')->{result}{resources} };
}
