#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Events for one of many streams: it gets them, however many events for others
# came before, and at once after it subscribed on another worker; and no gap is
# told to a stream that missed nothing.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $t = Mcp::Test->new(conf => <<'EOF');
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name mcp.test;

    mcp_tenant $http_x_tenant;
    mcp_session_bind $http_x_user;
    mcp_capabilities resources logging;

    # 64 events for many are kept

    mcp_event_buffer 4;

    location = /mcp     { mcp_endpoint zone=main; }
    location = /publish { mcp_publish zone=main; allow 127.0.0.1; deny all; }
    location = /status  { mcp_status zone=main; allow 127.0.0.1; deny all; }
}
EOF

sub client {
    my ($user, $tenant) = @_;
    my $s = $t->session(headers => { 'X-User' => $user,
                                     'X-Tenant' => $tenant || 'acme' });
    return { s => $s, user => $user };
}


sub listens {
    my ($c, %o) = @_;
    $c->{g} = $c->{s}->open_get(%o);
    die "no stream" unless $c->{g}->event;
    return $c;
}


sub say_it {
    my ($data, %o) = @_;
    return { jsonrpc => '2.0', method => 'notifications/message',
             params => { level => 'info', data => $data }, tenant_id => 'acme',
             %o };
}


# the events up to that one

sub heard {
    my ($c, $last) = @_;
    my @got;

    while (my $e = $c->{g}->event(10)) {
        my $p = ($e->{json} || {})->{params} || {};
        next if $e->{data} =~ /list_changed/;
        push @got, ($e->{event} || '') eq 'lagged' ? 'lagged'
                   : $p->{uri} || $p->{data} || $e->{data};
        last if $got[-1] eq $last;
    }

    return "@got";
}


# ends the newest stream of a client, which the zone has to know of first

sub closes {
    my ($c, $first) = @_;
    my $open = sub { json_decode($t->get('/status')->{body})->{streams}{open} };
    my $n = $open->();

    $c->{g}->close;
    $c->{g} = $first;
    wait_for(sub { $open->() < $n }) or die "the stream is still open";
}


my ($here, $there) = $t->workers;
my %c = map { $_ => listens(client($_)) } qw(ben cat dan);

# these hear when a worker is done with what was said before

listens($c{ann} = client('ann'), conn => $t->conn_on_worker($here));
listens($c{zoe} = client('zoe'), conn => $t->conn_on_worker($there));

# far more than are kept, for users that are not there

my $said = 0;

sub flood {
    my ($n) = @_;

    while ($n > 0) {
        my @some = map { say_it('x', identity => 'user ' . $said++) } 1 .. 40;
        my @last = map { say_it("last $said", identity => $_) } qw(ann zoe);

        $t->publish([@some, @last]);

        for (qw(ann zoe)) {
            my $got = heard($c{$_}, "last $said");
            die "$_ got $got" unless $got eq "last $said";
        }

        $n -= 40;
    }
}


flood(600);
$t->publish(say_it('for ben', identity => 'ben'));
is(heard($c{ben}, 'for ben'), 'for ben', 'one after many for another user');
$t->publish(say_it('for all'));
is(heard($c{$_}, 'for all'), 'for all', "$_ gets one for all, and no gap")
    for qw(ann ben cat zoe);

# its own events say how far it is as well

flood(200);
$t->publish(say_it('own', session_id => $c{cat}{s}->id));
is(heard($c{cat}, 'own'), 'own', 'an event for the session alone');
my $id = $c{cat}{g}->last_id;
flood(40);
$c{cat}{g}->close;
listens($c{cat}, last_event_id => $id);
$t->publish(say_it('again', identity => 'cat'));
is(heard($c{cat}, 'again'), 'again', 'and goes on from there');

# a second stream takes the line over, and gives it back

my $first = $c{cat}{g};
listens($c{cat});
$t->publish(say_it('second', identity => 'cat'));
is(heard($c{cat}, 'second'), 'second', 'a second stream');
$c{cat}{s}->call('resources/subscribe', { uri => 'events://late/latest' });
closes($c{cat}, $first);
$t->publish(say_it('first', identity => 'cat'));
is(heard($c{cat}, 'first'), 'first', 'the first one again');
$t->publish({ topic => 'late', tenant_id => 'acme', n => 1 });
is(heard($c{cat}, 'events://late/latest'), 'events://late/latest',
   'wants what the session subscribed to meanwhile');

# likewise when nothing happened on the second one

listens($c{cat});
$c{cat}{s}->call('resources/subscribe', { uri => 'events://later/latest' });
closes($c{cat}, $first);
$t->publish({ topic => 'later', tenant_id => 'acme', n => 1 });
is(heard($c{cat}, 'events://later/latest'), 'events://later/latest',
   'and wants it as well if it heard nothing in between');

# one subscribes here, its stream is there, the event comes at once

my $conn = $t->conn_on_worker($here);
my $d = $c{dan};

$d->{g}->close;
listens($d, conn => $t->conn_on_worker($there));

my @uris = map { "events://topic-$_/latest" } 1 .. 100;
my @missed;

for my $uri (@uris) {
    my ($topic) = $uri =~ m{//(.*)/};
    $d->{s}->call('resources/subscribe', { uri => $uri }, conn => $conn);
    $t->publish({ topic => $topic, tenant_id => 'acme', n => 1 },
                undef, conn => $conn);
    my $got = heard($d, $uri);
    push @missed, "$uri: $got" if $got ne $uri;
    last if @missed;
}

is("@missed", '', '100 subscriptions, each with an event at once');

$d->{s}->call('resources/unsubscribe', { uri => $uris[0] });
$t->publish([{ topic => 'topic-1', tenant_id => 'acme', n => 2 },
             { topic => 'topic-2', tenant_id => 'acme', n => 2 }]);
is(heard($d, $uris[1]), $uris[1], 'nothing of what it unsubscribed from');

# many that it subscribes to and soon unsubscribes from, and one of them again

for my $uri (('events://often/latest') x 30,
             map { "events://some-$_/latest" } 1 .. 250)
{
    $d->{s}->call('resources/subscribe', { uri => $uri }, conn => $conn);
    $d->{s}->call('resources/unsubscribe', { uri => $uri }, conn => $conn);
}

my $often = 'events://often/latest';

$d->{s}->call('resources/subscribe', { uri => $often }, conn => $conn);
$t->publish([map { { topic => $_, tenant_id => 'acme', n => 3 } }
             qw(often some-1 some-250 topic-100)], undef, conn => $conn);
is(heard($d, $uris[-1]), "$often $uris[-1]",
   'an event comes once, for what is left');

# more tenants at once than a worker is told of one by one

my @many = map { listens(client("user-$_", "tenant-$_")) } 1 .. 100;

$t->publish([map { say_it("one-$_", tenant_id => "tenant-$_") } 1 .. 100]);
is(join(' ', map { heard($many[$_ - 1], "one-$_") } 1 .. 100),
   join(' ', map { "one-$_" } 1 .. 100), '100 tenants get an event each');

my %all = %{ say_it('everybody') };
delete $all{tenant_id};
$t->publish(\%all);
is(join(' ', map { heard($_, 'everybody') } @many),
   join(' ', ('everybody') x 100), 'and one for all of them');

done_testing;
