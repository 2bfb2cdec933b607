#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Streams that upstreams refuse for a while (Retry-After): neither a new
# subscriber nor another subscription ends the pause.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Clock;
use Mcp::Modern;

my $clock = Mcp::Clock->new;
my $busy = [http => 503, { 'Retry-After' => 60 }, ''];

my $legacy = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { resources => { subscribe => JSON::PP::true } },
    'resources/subscribe' => {},
    'resources/unsubscribe' => {},
    GET => sub { return $busy },
));

my $feed = Mcp::Upstream->new(sub {
    return $Mcp::Upstream::V{open} ? ([sse => {}], [tag => 'open'], [hang =>])
         : $Mcp::Upstream::V{hour}
         ? [http => 503, { 'Retry-After' => 3600 }, ''] : $busy;
});

my $listen = Mcp::Upstream::modern(
    capabilities => { resources => { subscribe => JSON::PP::true } });
my $modern = Mcp::Upstream->new(sub {
    my ($r) = @_;
    my $j = ref $r->{json} eq 'HASH' ? $r->{json} : {};

    return $busy if $Mcp::Upstream::V{busy}
                    && ($j->{method} || '') eq 'subscriptions/listen';
    return $listen->($r);
});

my $t = Mcp::Test->new(vars => { LEGACY => $legacy->port, FEED => $feed->port,
                                 MODERN => $modern->port }, workers => 2,
                       conf => <<'EOT');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /legacy {
        mcp_endpoint zone=main;
        mcp_upstream up /_legacy protocol=legacy;
    }

    location = /modern {
        mcp_endpoint zone=main;
        mcp_upstream up /_modern protocol=modern;
    }

    location = /feed {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_events /_feed/$mcp_tenant;
    }

    location /_feed { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
    location = /_legacy { internal; proxy_pass http://127.0.0.1:%%LEGACY%%/; }
    location = /_modern { internal; proxy_pass http://127.0.0.1:%%MODERN%%/; }
}
EOT

sub gets { scalar $legacy->requests(sub { $_[0]{method} eq 'GET' }) }
sub feeds { scalar $feed->requests }
sub listens { scalar $modern->calls('subscriptions/listen') }


# a feed on demand of a tenant

my @fed = $t->session(path => '/feed', headers => { 'X-Tenant' => 't' });
ok((wait_for { feeds() }), 'a feed was asked for');


# the last subscriber leaves, and another one comes

my @s = map { $t->session(path => '/legacy') } 0 .. 2;

for my $n (0 .. 2) {
    is_deeply($s[$n]->call('resources/subscribe', { uri => "x:$n" })->{result},
              {}, "subscriber $n");
    ok((wait_for { gets() }), 'a stream was asked for') unless $n;
    is_deeply($s[$n]->call('resources/unsubscribe', { uri => "x:$n" })
              ->{result}, {}, 'and leaves');
    ok($legacy->wait_requests(sub {
           ref $_[0]{json} eq 'HASH'
           && ($_[0]{json}{method} || '') eq 'resources/unsubscribe'
           && $_[0]{json}{params}{uri} eq "x:$n"
       }), 'the upstream is told');
}

is(gets(), 1, 'once: the pause goes on');

is_deeply($s[0]->call('resources/subscribe', { uri => 'x:last' })->{result},
          {}, 'one that stays');
$clock->pass($t, 50);
is(gets(), 1, 'nor within a minute');
$clock->pass($t, 15);
ok((wait_for { gets() == 2 }), 'but after it');


# a reload

ok((wait_for { feeds() == 2 }), 'the feed was asked for again');
ok($t->reload, 'reload');
push @fed, $t->session(path => '/feed', headers => { 'X-Tenant' => 't' });
unlike($t->log, qr/is not connected after/, 'a session need not wait');
$clock->pass($t, 40);
is(gets(), 2, 'the pause of the stream goes on in the new workers');
is(feeds(), 2, 'so does that of the feed');
$clock->pass($t, 25);
ok((wait_for { gets() == 3 }), 'both streams are');
ok((wait_for { feeds() == 3 }), 'asked for after it');


# a long pause, of which a reload leaves a minute, and which is over then

$feed->set(hour => 1);
$clock->pass($t, 65);
ok((wait_for { feeds() == 4 }), 'the feed asks for an hour');
ok($t->reload && $t->wait_old, 'reload');
$feed->set(open => 1);
$clock->pass($t, 40);
is(feeds(), 4, 'the pause goes on');
$clock->pass($t, 25);
ok((wait_for { $feed->held('open') }), 'for a minute, and the feed opens');
ok($t->reload, 'another reload');
ok((wait_for { feeds() == 6 }), 'after which it is read again at once');


# a stream that is to replace another one

my $s = $t->session(path => '/modern');
my $get = $s->open_get;
is_deeply($s->call('resources/subscribe', { uri => 'x:1' })->{result}, {},
          'a subscription');
ok((wait_for { $modern->held('listen') == 1 }), 'by a stream');

my $before = listens();
$modern->set(busy => 1);

my @asked = map {
    my $c = $s->send_only($s->message('resources/subscribe',
                                      { uri => "x:more$_" }));
    wait_for { listens() > $before };
    $c;
} 1, 2;

$clock->pass($t, 50);
is(listens(), $before + 1, 'two more: the new stream is asked for once');

$modern->set(busy => 0);
$clock->pass($t, 15);
ok((wait_for { listens() == $before + 2 }), 'and again after the pause');

$modern->emit('listen', [event => notification('resources/updated', {
    uri => 'x:1',
    _meta => { 'io.modelcontextprotocol/subscriptionId' => 'nginx-mcp' } })]);
is($get->method('notifications/resources/updated')->{json}{params}{uri}, 'x:1',
   'the former stream served meanwhile');

$_->close for @asked;

done_testing();
