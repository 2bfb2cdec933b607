#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What clients are told of events that nobody kept: how many, if it is known,
# and once for those that are refused one after the other.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $f = Mcp::Feed->new;

$f->set('/plain', ids => 0, retry => 100);

my $t = Mcp::Test->new(vars => { FEED => $f->port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name mcp.test;
    mcp_event_buffer 16 4k;

    location = /mcp {
        mcp_endpoint zone=main name=one;
        mcp_events /_feed;
        mcp_stream_heartbeat 0;
    }

    location = /alive {
        mcp_endpoint zone=main name=alive;
        mcp_events /_alive;
        mcp_stream_heartbeat 200ms;
    }

    location = /plain {
        mcp_endpoint zone=main name=plain;
        mcp_events /_plain;
    }

    location /_ { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOC

my @w = $t->workers;

sub note_of { return notification(message => { level => 'info',
                                               data => $_[0] }) }

sub gap { return $_[0]->event_where(sub { ($_[0]{event} || '') eq 'lagged' }) }

# the gaps before a text, and whether it came

sub until_text {
    my ($g, $text) = @_;
    my @gaps;

    my $e = $g->event_where(sub {
        my ($e) = @_;
        push @gaps, $e->{json}{missed} if ($e->{event} || '') eq 'lagged';
        return $e->{json} && ref $e->{json}{params}
               && ($e->{json}{params}{data} || '') eq $text;
    });

    return $e ? [ @gaps ] : 'no event';
}

my $large = 'x' x 5000;


# refused one after the other, on both workers

my $s = $t->session;
my $other = $t->session;
my $g = $s->open_get(conn => $t->conn_on_worker($w[0]));
my $g2 = $other->open_get(conn => $t->conn_on_worker($w[1]));

$f->wait_open('/feed');
$f->say('/feed', note_of('first'));
is_deeply(until_text($_, 'first'), [], 'listens') for $g, $g2;

$f->say('/feed', note_of($large));
is(gap($_)->{json}{missed}, 1, 'one that is refused is a gap of one')
    for $g, $g2;

$f->say('/feed', note_of($large)) for 1 .. 10;
$f->say('/feed', note_of('second'));
is_deeply(until_text($_, 'second'), [10],
          'more of them are told at once, before what goes through')
    for $g, $g2;

$f->say('/feed', note_of($large));
is(gap($g)->{json}{missed}, 1, 'the next is a gap again');

# what was not told yet is told by the id

$f->say('/feed', note_of($large)) for 1 .. 3;
ok((wait_for { $t->status->{events}{dropped_large} == 15 }), 'refused');
my $id = $g->last_id;
$g->close;
$g = $s->open_get(last_event_id => $id);
is(gap($g)->{json}{missed}, 3, 'a client that comes back');

for (['', 'all of'], ['session_id', 'one of']) {
    my ($member, $whose) = @$_;

    $f->say('/feed', note_of("before $member"));
    until_text($g, "before $member");
    $f->say('/feed', { %{ note_of($large) },
                       $member ? ($member => $s->id) : () }) for 1 .. 5;
    $f->say('/feed', note_of("after $member"));

    my $gaps = until_text($g, "after $member");
    my $sum = 0;
    $sum += $_ for @$gaps;
    is($sum, 5, "$whose the sessions: each is counted");
    ok(@$gaps <= 2, 'in two gaps at most');
}


# nothing else happens: it is told with a heartbeat

$s = $t->session(path => '/alive');
$g = $s->open_get;
$f->wait_open('/alive');
$f->say('/alive', note_of($large));
is(gap($g)->{json}{missed}, 1, 'refused');
$f->say('/alive', note_of($large));
is(gap($g)->{json}{missed}, 1, 'and again, with a heartbeat');


# of unknown size

$s = $t->session(path => '/plain');
$g = $s->open_get;
$f->wait_open('/plain');
$f->say('/plain', note_of('here'));
is_deeply(until_text($g, 'here'), [], 'a feed without ids');

for (1, 2) {
    $f->cut('/plain');
    my $e = gap($g);
    ok(exists $e->{json}{missed} && !defined $e->{json}{missed},
       'nobody knows what it would have said');
    $f->wait_open('/plain');
}

# how many were for it is not known where only some were

ok($s->call('logging/setLevel', { level => 'warning' })->{result}, 'a level');
$f->say('/plain', note_of('below'));
$f->say('/plain', notification(message => { level => 'error',
                                            data => 'above' }));
is_deeply(until_text($g, 'above'), [], 'is passed');
$id = $g->last_id;
$g->close;

# 256 are kept, sixteen times as many as of a session

my $from = $t->status->{events}{feed};
my @both = (note_of('below'),
            notification(message => { level => 'error', data => 'more' }));
$f->raw('/plain', join('', map { 'data: ' . json_encode($_) . "\n\n" } @both)
                  x 200);
ok((wait_for { $t->status->{events}{feed} == $from + 400 }),
   'more than are kept');
$g = $s->open_get(last_event_id => $id);
my $e = gap($g);
ok(exists $e->{json}{missed} && !defined $e->{json}{missed},
   'not all that is missing was for it');

# an id that is not known: only the last event of the notice has an id, as a
# client that is cut off before it has to be told again

$s = $t->session;
$s->call('resources/subscribe', { uri => "events://one/$_" }) for 'a', 'b';
$f->wait_open('/feed');

my $get = $s->open_get(last_event_id => 'bogus');
my @notice;

ok($get->event_where(sub {
       push @notice, $_[0];
       return ($_[0]{json}{params}{uri} || '') eq 'events://one/b';
   }), 'the notice');
is($notice[0]{event}, 'lagged', 'begins');
cmp_ok(scalar(@notice), '>=', 3, 'and names what was subscribed to');
is_deeply([ map { defined $_->{id} ? 1 : 0 } @notice ],
          [ (0) x $#notice, 1 ], 'its last event alone has an id');

$get->close;
$get = $s->open_get(last_event_id => $notice[-1]{id});
$f->say('/feed', note_of('after the notice'));
is_deeply(until_text($get, 'after the notice'), [],
          'which a client comes back with that knows of it');


done_testing();
