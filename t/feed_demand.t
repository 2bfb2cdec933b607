#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Feeds on demand are closed a minute after the last who wants them, and opened
# again.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;
use Mcp::Feed;

my $f = Mcp::Feed->new;
my $clock = Mcp::Clock->new;

my $t = Mcp::Test->new(vars => { FEED => $f->port }, conf => <<'EOF');
mcp_zone zone=main:8m;
mcp_drain_time 200ms;
mcp_stream_after 0;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_builtin_tools wait_for_event;
        mcp_events /_of/$mcp_tenant;
        mcp_events /_about/$MCP_Topic;    # a name of nginx: in any case
    }

    location /_ { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
    location = /status { mcp_status zone=main; }
}
EOF

my %s = map { $_ => $t->session(headers => { 'X-Tenant' => $_ }) } qw(a b);


# the last who subscribed leaves

subscribe(a => 'one');
subscribe(b => 'one');
subscribe(a => 'two');
$f->wait_open($_) for qw(/about/one /about/two /of/a /of/b);

leave(a => 'one');
later(90);
ok(is_open('/about/one'), 'one subscriber is left');

leave(b => 'one');
later(50);
ok(is_open('/about/one'), 'the last one left, not yet a minute ago');
later(30);
ok(closed('/about/one'), 'a minute ago: closed');
ok(wait_for { leases('one') == 0 }, 'and nobody is to read it');
ok(is_open('/about/two'), 'another topic is wanted');


# and comes back

subscribe(b => 'one');
is($f->wait_open('/about/one')->{requests}[-1]{id}, undef,
   'opened again, from now on');
my $g = $s{b}->open_get;
$f->say('/about/one', { n => 1 });
is($g->method('notifications/resources/updated')->{json}{params}{uri},
   'events://one/latest', 'and read');
$g->close;

leave(b => 'one');
later(40);
subscribe(a => 'one');
later(5);
leave(a => 'one');
later(50);
ok(is_open('/about/one'), 'who comes back in time keeps it open');
is($f->info('/about/one')->{most}, 1, 'the same one');
is(opened('/about/one'), 2, 'all the time');
later(30);
ok(closed('/about/one'), 'until a minute after that');


# two topics one after the other, whose names have the same CRC32

subscribe(b => 'plumless');
subscribe(b => 'buckeroo');
$f->wait_open("/about/$_") for qw(plumless buckeroo);
ok(is_open('/about/plumless'), 'the feed of a topic');
ok(is_open('/about/buckeroo'), 'that of another one');


# names that a URI cannot show as they are

subscribe(b => $_) for qw(a%01b a%7Fb shown);
$f->wait_open('/about/shown');
is(leases('a[^"]*b'), 0, 'a name with a control character is no topic');


# who waits

my $waits = $s{a}->send_only($s{a}->message('tools/call', {
    name => 'wait_for_event',
    arguments => { topic => 'late', timeout_seconds => 100 },
}));
$f->wait_open('/about/late');
later(95);
ok(is_open('/about/late'), 'a call that waits keeps one open');
later(10);
ok(json_decode($waits->response('POST')->{body})
   ->{result}{structuredContent}{timeout}, 'its time is over');
later(80);
ok(closed('/about/late'), 'a minute later it is closed');


# the reader dies, or is followed by another, while nobody wants it

subscribe(a => 'one');
$f->wait_open('/about/one');
leave(a => 'one');
later(30);
my $n = opened('/about/one');
ok($t->kill_worker(reader('one')), 'kill -9');
$f->wait_requests('/about/one', $n + 1);
later(80);
ok(closed('/about/one'), 'closed by the one that took over');

subscribe(a => 'one');
$f->wait_open('/about/one');
leave(a => 'one');
later(30);
$n = opened('/about/one');
ok($t->reload, 'reload');
ok($t->wait_old, 'old workers are gone');
$f->wait_requests('/about/one', $n + 1);
later(80);
ok(closed('/about/one'), 'closed by one of the new ones');


# a tenant has no session any more

$s{a}->delete;
later(50);
ok(is_open('/of/a'), 'the last session ended');
later(30);
ok(closed('/of/a'), 'a minute ago: closed');
ok(is_open('/of/b'), 'another tenant has one');
$s{a} = $t->session(headers => { 'X-Tenant' => 'a' });
ok($f->wait_open('/of/a'), 'opened for the next session');

done_testing();


sub subscribe { resource('subscribe', @_) }
sub leave     { resource('unsubscribe', @_) }

sub resource {
    my ($what, $who, $topic) = @_;
    my $r = $s{$who}->call("resources/$what",
                           { uri => "events://$topic/latest" });
    is_deeply($r->{result}, {}, "$what $topic");
}


# lets so many seconds pass, those included that it takes

sub later {
    my $end = time() + $_[0];

    for (my $passed = 0; time() + $passed < $end; $passed++) {
        $clock->pass($t, 1);
    }
}


sub opened { scalar @{ $f->info($_[0])->{requests} } }

sub is_open { $f->info($_[0])->{open} == 1 }

sub closed {
    my ($path) = @_;
    return wait_for { $f->info($path)->{open} == 0 };
}


sub leases { scalar grep { $_->{key} =~ /"$_[0]"/ } @{ leases_by() } }
sub reader { (grep { $_->{key} =~ /"$_[0]"/ } @{ leases_by() })[0]{pid} }

sub leases_by { $t->status->{leases}{by} }
