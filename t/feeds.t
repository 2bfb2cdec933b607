#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_events: what feeds say reaches clients on both workers; feeds on demand,
# back-off, resuming, gaps, bad data.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $f = Mcp::Feed->new;

$f->set('/crlf', eol => "\r\n");
$f->set('/lines', lines => 1);
$f->set('/plain', ids => 0, retry => 100);
$f->set('/sse', retry => 100);
$f->set('/old', lines => 1, close => 1);

my $conf = <<'EOF';
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint  zone=main name=one;
        mcp_tenant    $http_x_tenant;
        mcp_message_limit 2k;
        mcp_builtin_tools wait_for_event;

        mcp_invalidate progress notify=notifications/step;
        mcp_invalidate system-health "message=$what is $status" level=$status;
        mcp_invalidate * "message=$kind $n";

        mcp_events /_sse;
        mcp_events /_crlf;
        mcp_events /_lines;
        mcp_events /_topics topic=builds;
        mcp_events /_of/$mcp_tenant;
        mcp_events /_about/$mcp_topic?t=$mcp_tenant;
    }

    location = /plain {
        mcp_endpoint  zone=main name=plain;
        mcp_events    /_plain;
    }

    location = /old {
        mcp_endpoint  zone=main name=old;
        mcp_invalidate * message=$n;
        mcp_events    /_old;
    }

    location /_ {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/;
    }

    location = /_old {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/old;
        proxy_http_version 1.0;
        proxy_buffering on;
        proxy_read_timeout 1s;
    }

    location = /status { mcp_status zone=main; }
}
EOF

my $t = Mcp::Test->new(vars => { FEED => $f->port }, conf => $conf);
my @w = $t->workers;
my ($e, $heard, $info, @r);
my $mark = 0;

my %s = map { $_ => $t->session(headers => { 'X-Tenant' => $_ }) }
            qw(acme bold);
$s{plain} = $t->session(path => '/plain');
$s{old} = $t->session(path => '/old');

my $i = 0;
my %g = map { $_ => $s{$_}->open_get(conn => $t->conn_on_worker($w[$i++ % 2])) }
            sort keys %s;

ok($s{acme}{server}{capabilities}{logging}, 'logging is offered');
is($g{$_}->event->{data}, '', "$_ listens") for sort keys %g;


# both forms reach clients of both workers

$info = $f->wait_open('/sse');
@r = @{ $info->{requests} };
is(scalar @r, 1, 'one connection');
is($r[0]{line}, 'GET /sse HTTP/1.1', 'a GET of HTTP/1.1');
like($r[0]{accept}, qr{text/event-stream.*application/x-ndjson},
     'that accepts both forms');
is($r[0]{headers}{connection}, undef, 'and keeps the connection');
is($r[0]{id}, undef, 'from now on');
$f->wait_open("/$_") for qw(crlf lines topics plain);

for my $path (qw(/sse /crlf /lines)) {
    $f->say($path, notice(1));
    $f->say($path, { kind => 'x', n => 2 });
    is_deeply([ map { $g{$_}->method('notifications/n')->{json}{params}{n} }
                qw(acme bold) ], [ 1, 1 ], "$path: a notification");
    is_deeply([ map { data($g{$_}->method('notifications/message')) }
                qw(acme bold) ], [ 'x 2', 'x 2' ], 'an invalidate event');
    is_deeply([ $g{plain}->drain(0.1) ], [], 'not for another endpoint');
}

$f->say('/sse', { kind => 'system-health', what => 'disk',
                  status => 'warning' });
$e = $g{acme}->method('notifications/message');
is($e->{json}{params}{data}, 'disk is warning', 'system health');
is($e->{json}{params}{level}, 'warning', 'with its level');

$f->say('/lines', { kind => 'progress', percent => 50, tenant_id => 'acme' });
$e = $g{acme}->method('notifications/step');
is($e->{json}{params}{percent}, 50, 'progress');

my $text = "{\n  \"jsonrpc\": \"2.0\",\n  \"method\": \"notifications/n\",\n"
           . "  \"params\": { \"n\": 3 }\n}";

$f->say($_, $text, name => 'some') for qw(/sse /crlf);
is_deeply([ map { $_->{json}{params}{n} }
            map { $g{acme}->method('notifications/n') } 1, 2 ], [ 3, 3 ],
          'data of several lines, with a name');

$f->raw('/sse', $_) for ": comment\n\nevent: x\n\nda", 'ta: {"kind":"half"}',
    "\n", "\n";
is(data($g{acme}->method('notifications/message')), 'half ',
   'in pieces, after what is none');

$f->raw('/lines', $_) for "\n  \n" . '{"kind":"p"',
    "}\r\n\x1e{\"kind\":\"q\"}\n";
is_deeply([ map { data($g{acme}->method('notifications/message')) } 1, 2 ],
          [ 'p ', 'q ' ], 'lines in pieces');


# by HTTP/1.0, buffered, cut

my $old = $f->wait_open('/old');
is($old->{requests}[0]{line}, 'GET /old HTTP/1.0', 'HTTP/1.0');
$f->raw('/old', $_) for '{"kind":"x","n":1}', "\n", '{"kind":"x","n":2}';
is(data($g{old}->method('notifications/message')), 1, 'is read as it comes');
is(data($g{old}->method('notifications/message', 0.3)), undef, 'by lines');
$f->cut('/old');
is(data($g{old}->method('notifications/message')), 2, 'the last may lack its');
ok(lagged($g{old}), 'it broke');


# whom they address

heard();
$f->raw('/sse', "data:\n\n");
$f->say('/sse', '');
$f->say('/lines', { kind => 'a', tenant_id => 'bold' });
$f->say('/lines', notice(9, session_id => $s{acme}->id));
$f->say('/lines', notice(10, session_id => 'none'));
$heard = heard(qw(/sse /lines));
is_deeply([ map { data($_) } @{ $heard->{bold} } ], [ 'a ' ], 'a tenant');
is_deeply([ map { $_->{data} } @{ $heard->{acme} } ],
          [ '{"jsonrpc":"2.0","method":"notifications/n","params":{"n":9}}' ],
          'a session, without its address');


# a topic of all events of a feed

$s{acme}->call('resources/subscribe', { uri => 'events://builds/latest' });
$f->say('/topics', { status => 'green' });
$e = $g{acme}->method('notifications/resources/updated');
is($e->{json}{params}{uri}, 'events://builds/latest', 'topic=');
$f->say('/topics', notice(11));
is($g{acme}->method('notifications/n')->{json}{params}{n}, 11,
   'a notification of the topic');
is_deeply(heard()->{bold}, [], 'who did not subscribe hears nothing');


# on demand: by tenant, by topic

$f->wait_open("/of/$_") for qw(acme bold);
is($f->info('/of/')->{open}, 0, 'only of tenants');

$f->say('/of/acme', { kind => 'mine', n => 1 });
$f->say('/of/acme', { kind => 'mine', n => 2, tenant_id => 'bold' });
$f->say('/of/acme', { kind => 'mine', n => 3, tenant_id => 'acme' });
is_deeply([ map { data($g{acme}->method('notifications/message')) } 1, 2 ],
          [ 'mine 1', 'mine 3' ], 'events of a tenant\'s feed');
is_deeply([ grep { /mine/ } map { $_->{data} } @{ heard()->{bold} } ], [],
          'reach that tenant alone');

$t->session(headers => { 'X-Tenant' => 'a/b?#' })->delete;
like($f->wait_requests('/of/a%2Fb%3F%23', 1) ? '' : 'none', qr/^$/,
     'a tenant of odd letters');

$t->session(headers => { 'X-Tenant' => '..' })->delete;
ok(wait_for { $t->log =~ /has a dot segment/ }, 'one that must not be asked');

is($f->info('/about/jobs')->{open}, 0, 'nobody wants the topic');
$s{bold}->call('resources/subscribe', { uri => 'events://jobs/latest' });
$info = $f->wait_open('/about/jobs');
is($info->{requests}[0]{uri}, '/about/jobs?t=bold', 'now its feed is read');
$f->say('/about/jobs', { done => 1 });
$e = $g{bold}->method('notifications/resources/updated');
is($e->{json}{params}{uri}, 'events://jobs/latest', 'to who subscribed');
is_deeply([ grep { /updated/ } map { $_->{data} } @{ heard()->{acme} } ], [],
          'in that tenant');

$e = $s{acme}->send_only($s{acme}->message('tools/call', {
    name => 'wait_for_event', arguments => { topic => 'deploys' } }));
$f->wait_open('/about/deploys');
$f->say('/about/deploys', { version => 7 });
$e = $s{acme}->read_response($e->response('POST'))->{json};
is($e->{result}{structuredContent}{event}{version}, 7, 'who waits wants it');

$s{acme}->call('resources/read', { uri => 'events://news/latest' });
my $third = $t->session(headers => { 'X-Tenant' => 'acme' });
is($f->info('/about/news')->{open}, 0, 'a client that reads it does not');
is($f->info('/of/acme')->{most}, 1, 'another session needs no other feed');


# it breaks, and goes on from its id

heard('/sse');
$info = $f->info('/sse');
$f->cut('/sse');
$f->say('/sse', { kind => 'late', n => $_ }) for 1 .. 3;
@r = $f->wait_requests('/sse', 2);
is($r[1]{id}, $info->{said}, 'Last-Event-ID, also of what says no more');
is_deeply([ map { data($g{acme}->method('notifications/message')) } 1 .. 3 ],
          [ map { "late $_" } 1 .. 3 ], 'nothing is lost');
is_deeply(heard('/sse')->{acme}, [], 'nothing comes twice');

$f->refuse;
$f->cut('/sse');
ok(wait_for { $t->log =~ m{feed "/_sse" of endpoint "one" could not be } },
   'that it is away is in the log');
$f->say('/sse', { kind => 'later', n => 1 });
$f->restore;
is(data($g{acme}->method('notifications/message', 60)), 'later 1',
   'it is found again');
like($t->log, qr{"/_sse" of endpoint "one" is connected again},
     'the log says so');


# what it says when it cannot go on

heard();
$f->say('/sse', 'x', name => 'lagged');
ok(lagged($g{acme}), '"lagged" of a feed is one of its sessions');
ok(lagged($g{bold}), 'of all of them');
is_deeply([ $g{plain}->drain(0) ], [], 'of the endpoint');

heard();
$f->say('/of/bold', '{}', name => 'lagged');
ok(lagged($g{bold}), 'that of a tenant');
is_deeply(heard()->{acme}, [], 'is for it alone');

$f->say('/about/jobs', '{}', name => 'lagged');
$e = $g{bold}->method('notifications/resources/updated');
is($e->{json}{params}{uri}, 'events://jobs/latest', 'that of a topic');
is_deeply([ map { $_->{event} || $_->{json}{method} }
            map { @$_ } values %{ heard() } ], [],
          'is for its subscribers, and once');

$f->say('/plain', { kind => 'document' });
is(data($g{plain}->method('notifications/message')), 'documents_updated',
   'a feed without ids');
$f->cut('/plain');
ok(lagged($g{plain}), 'that breaks has a gap');
is($f->wait_open('/plain')->{requests}[1]{id}, undef, 'and asks for no id');

heard();
$f->set('/sse', forget => 1);
$f->cut('/sse');
ok(lagged($g{acme}), 'an id that the feed forgot is a gap');
$f->set('/sse', forget => 0);
$f->say('/sse', { kind => 'then', n => 1 });
is(data($g{acme}->method('notifications/message')), 'then 1', 'it goes on');

heard();
$f->set('/sse', ids => 0);
$f->cut('/sse');
$f->wait_requests('/sse', 6);
$f->wait_open('/sse');
$f->say('/sse', { kind => 'then', n => 2 });
ok(lagged($g{acme}), 'one that has no ids any more is a gap');
is(data($g{acme}->method('notifications/message')), 'then 2', 'it goes on');


# bad data

heard();

my $invalid = $t->status->{events}{dropped_invalid};
my $large = '{"kind":"x","pad":"' . 'x' x 4000 . '"}';

$f->say('/lines', $_) for 'no JSON', 'no JSON', '[1]', '[2]', $large;
$f->say('/crlf', $_) for $large, 'no JSON';
$f->say($_, { kind => 'good', n => 1 }) for qw(/lines /crlf);
$heard = heard(qw(/lines /crlf));
my @gaps = grep { ($_->{event} || '') eq 'lagged' } @{ $heard->{acme} };
is_deeply([ grep { defined } map { data($_) } @{ $heard->{acme} } ],
          [ 'good 1', 'good 1' ],
          'bad events are dropped, the rest goes on');
ok(scalar @gaps, 'those over the limit are a gap');
is($t->status->{events}{dropped_invalid} - $invalid, 7, 'all are counted');
is(scalar(() = $t->log =~ m{\[error\].* feed "/_lines" .* dropped: }g), 2,
   'one line for each kind');
is(scalar(() = $t->log =~ /event is ignored/g), 2, 'and for those too large');
is($f->info('/lines')->{requests}[1], undef, 'on the same connection');


# no feed at all

for ([ status => 404 ], [ status => 500 ], [ body => '<html>' ],
     [ status => 204, body => '' ], [ body => '' ],
     [ body => '{}', type => 'application/json' ],
     [ body => 'x', type => 'text/event-stream', encoding => 'gzip' ])
{
    my $n = @{ $f->info('/plain')->{requests} };

    $f->set('/plain', @$_);
    $f->cut('/plain');
    $f->wait_requests('/plain', $n + 3);
    $f->set('/plain', map { $_ => undef } qw(status body type encoding));
    $f->wait_open('/plain');
    $f->say('/plain', notice($n));
    is($g{plain}->method('notifications/n')->{json}{params}{n}, $n,
       "after @$_");
}

# feeds that say when to come back

for ([ 503, 3, 3, ' of at least 3 seconds, as its Retry-After says' ],
     [ 429, 2, 2, ' of at least 2 seconds, as its Retry-After says' ],
     [ 500, 600, 0, '' ], [ 503, 'Fri, 27 Nov 2099 08:00:00 GMT', 0, '' ])
{
    my ($code, $after, $least, $said) = @$_;
    my $n = @{ $f->info('/crlf')->{requests} };
    my $log = length $t->log;

    $f->say('/crlf', notice($n));
    is($g{acme}->method('notifications/n')->{json}{params}{n}, $n,
       'an event resets the pause');

    $f->set('/crlf', status => $code, after => $after, retry => 100);
    $f->cut('/crlf');

    my @came = ($f->wait_requests('/crlf', $n + 1))[$n]{at};

    $f->set('/crlf', status => undef, after => undef);
    push @came, ($f->wait_requests('/crlf', $n + 2))[$n + 1]{at};
    $f->wait_open('/crlf');

    cmp_ok($came[1] - $came[0], '>=', $least, "$code, after $after");
    like(substr($t->log, $log), qr{feed "/_crlf" .*after growing pauses$said$}m,
         'and the log says so');
}

is_deeply([ $t->log =~ m{feed "/_plain" .* opened: the upstream(.*?);}g ],
          [ ' answered with HTTP status 404', ' answered with HTTP status 500',
            q('s answer has content type "text/html"),
            ' answered with HTTP status 204', q('s answer is empty),
            q('s answer has content type "application/json"),
            q('s answer has content encoding "gzip") ],
          'what is no feed is said once');
is(scalar(() = $t->log =~ /"\/_plain" of .* "plain" is connected again/g), 7,
   'and that it is one again');


my $status = $t->status;

cmp_ok($status->{events}{feed}, '>=', 25, 'events are counted');

for my $path (qw(/sse /crlf /lines /topics /plain /of/acme /about/jobs)) {
    is($f->info($path)->{most}, 1, "$path had one connection at a time");
}

is(scalar(() = $t->log =~ /has a dot segment/g), 1, 'what must not be asked');


# a reload: feeds that come and go

(my $more = $conf) =~ s{mcp_events /_sse;}{mcp_events /_new/\$mcp_tenant;};

ok($t->reload(conf => $more), 'a reload');
$f->wait_open("/new/$_") for qw(acme bold);
ok($f->wait_open('/sse', 0), 'what is configured no more is not read');
is($f->info('/new/..')->{open}, 0, 'tenants without sessions want nothing');


# a reload that fails does not make nginx wait for its workers when it quits

my $quits = Mcp::Test->new(vars => { FEED => $f->port }, conf => <<'EOF');
mcp_zone zone=main:1m;

server {
    %%LISTEN%%

    location = /mcp { mcp_endpoint zone=main; mcp_events /_quits; }
    location = /_quits { internal; proxy_pass http://127.0.0.1:%%FEED%%; }
}
EOF

$quits->allow_log(qr/bind\(\)|\[emerg\]/);
$f->wait_open('/_quits');
$quits->hup(conf => $quits->{conf}
            . 'server { listen 127.0.0.1:' . $f->port . '; }');
ok((wait_for { $quits->log =~ /still could not bind/ }), 'a reload fails');
ok($quits->stop('QUIT', 2), 'nginx quits without delay');


# configurations

my $c = Mcp::Test->new(conf => '', start => 0);

$c->allow_log(qr{\[emerg\]});

for ([ 'mcp_events http://x/;', qr/internal location/ ],
     [ 'mcp_events /a other=x;', qr/\[topic=VALUE\]/ ])
{
    my ($ok, $out) = $c->check(conf => <<EOF);
mcp_zone zone=a:1m;
server { %%LISTEN%% location = /x { mcp_endpoint zone=a; $_->[0] } }
EOF
    like($out, $_->[1], $_->[0]);
}

done_testing();


sub notice {
    my ($n, %more) = @_;
    return notification('n', { n => $n }, %more);
}


sub data { ref $_[0] && ref $_[0]{json} ? $_[0]{json}{params}{data} : undef }

# what acme and bold heard since: all that comes before marks that these feeds
# set now, but that there are other topics, which is said when it is time

sub heard {
    my @paths = @_ ? @_ : '/lines';
    my $n = $mark;
    my %heard;

    $f->say($_, notification('mark', { n => ++$mark })) for @paths;

    for my $who (qw(acme bold)) {
        my $left = @paths;

        $heard{$who} = [];

        while ($left) {
            my $e = $g{$who}->event;

            if (!$e) {
                fail("$who hears the marks of @paths");
                last;
            }

            my $m = $e->{json} || {};

            my $method = $m->{method} || '';

            if ($method eq 'notifications/mark') {
                $left-- if $m->{params}{n} > $n;

            } elsif ($method ne 'notifications/resources/list_changed') {
                push @{ $heard{$who} }, $e;
            }
        }
    }

    return \%heard;
}


sub lagged {
    my ($g) = @_;
    return $g->event_where(sub { ($_->{event} || '') eq 'lagged' });
}
