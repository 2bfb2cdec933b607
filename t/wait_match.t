#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What match of wait_for_event looks at, and what it costs when many wait.

use FindBin;
use lib "$FindBin::Bin/lib";

use POSIX ();

use Mcp::Test;

my $t = Mcp::Test->new(
    events => 'worker_connections 1024;',
    conf => <<'CONF');
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_stream_after 0;

    location = /mcp { mcp_endpoint zone=main;
                      mcp_builtin_tools wait_for_event; }
    location = /status { mcp_status zone=main; }
    location = /publish { mcp_publish zone=main; }
    location = /hook { mcp_publish zone=main topic=hook; }
}
CONF

my $s = $t->session;
my $r;

# where a field may stand

$t->publish({ topic => 'a', kind => 'k', n => 1,
              deep => { list => [ 1, 2 ], in => { x => 1.50, 'p.q' => 1 } },
              'dotted.name' => 'yes', params => { n => 2, in => 'params' },
              payload => { n => 3, in => 'payload', last => { z => undef } } });
$t->publish({ topic => 'b', params => 'none', payload => [ { in => 1 } ],
              big => 1 });

for ([ { n => 1 }, 1, 'at the top level' ],
     [ { n => 2 }, 0, 'what stands there is not looked for in params' ],
     [ { in => 'params' }, 1, 'in params' ],
     [ { in => 'payload' }, 0, 'and then not in payload' ],
     [ { last => { z => undef } }, 1, 'in payload' ],
     [ { 'last.z' => undef }, 1, 'a path in payload' ],
     [ { 'deep.in.x' => 1.5 }, 1, 'a path' ],
     [ { 'deep.in.x' => '1.5' }, 0, 'a string is no number' ],
     [ { 'deep.in' => { 'p.q' => 1, x => 15e-1 } }, 1, 'an object' ],
     [ { 'deep.list' => [ 1, 2 ] }, 1, 'an array' ],
     [ { 'deep.list' => [ 2, 1 ] }, 0, 'in its order' ],
     [ { 'dotted.name' => 'yes' }, 1, 'a name with a dot' ],
     [ { 'params.n' => 2, 'payload.n' => 3 }, 1, 'whole paths' ],
     [ { 'params.n.x' => 2 }, 0, 'a path through a number' ],
     [ { nothing => undef }, 0, 'what is not there is not null' ],
     [ { n => 1, in => 'params', 'last.z' => undef, kind => 'k' }, 1,
       'several' ])
{
    my ($match, $found, $name) = @$_;

    for my $argument (qw(match match_params)) {
        $r = wait_for_event({ topic => 'a', $argument => $match,
                              timeout_seconds => 0 });
        is($r->{event} ? 1 : 0, $found, "$argument: $name");
    }
}

ok(wait_for_event({ topic => 'b', match => { in => 1 },
                    timeout_seconds => 0 })->{timeout},
   'params and payload that are no objects');

$t->publish({ order => { state => 'paid' } }, '/hook');
ok(wait_for_event({ topic => 'hook', match => { 'order.state' => 'paid' } })
   ->{event}, 'a webhook');


# so many fields, and no more

my %many = map { ("f$_" => $_) } 1 .. 16;

$t->publish({ topic => 'c', %many });
ok(wait_for_event({ topic => 'c', match => \%many })->{event}, '16 fields');
$many{f17} = 17;
$r = $s->tool('wait_for_event', { topic => 'c', match => \%many });
is($r->{error}{code}, -32602, 'no more');
like($r->{error}{message}, qr/match must not have more than 16 fields/,
     'and why');
$r = $s->tool('wait_for_event', { topic => 'c', match => { a => 1 },
                                  match_params => { a => 1 } });
like($r->{result}{content}[0]{text}, qr/either match or match_params/,
     'one of the two');


# each of several that wait gets what it waits for, and nothing else

my ($w) = $t->workers;

# it takes the events itself: another worker could be 32 of them ahead

my $publishes = $t->conn_on_worker($w);
my $d = $t->session;

my %want = (
    (map { ("n $_" => { match => { n => $_ } }) } 1 .. 4),
    'n 2, too' => { match => { n => 2 } },
    'n 3 in z' => { match => { n => 3, in => 'z' } },
    'in z, n 3' => { match => { in => 'z', n => 3 } },
    'other fields' => { match => { m => 1, n => 1 } },
    'x' => { event_name => 'x' },
    'y, n 4' => { event_name => 'y', match => { n => 4 } },
    'none' => { match => { n => 99 } },
);

my %waiting = map { ($_ => start_wait({ topic => 'd', %{ $want{$_} } })) }
    keys %want;

wait_for { $t->status->{calls}{running} == keys %want };

publish_d({ n => $_ }) for 10 .. 49;                    # 32 are kept
publish_d({ n => 2, name => 'n2' });
publish_d({ n => 3, in => 'y', name => 'n3' });
publish_d({ n => 4, name => 'n4' });
publish_d({ n => 3, payload => { in => 'z' }, name => 'z' });
publish_d({ n => 4, params => { event => 'y' }, name => 'no y' });
publish_d({ n => 4, event => 'y', event_name => 'z', name => 'y' });
publish_d({ kind => 'x', event => 'w', name => 'x' });
publish_d({ n => 1, m => 2, name => 'n1' });
publish_d({ n => 1, m => 1, name => 'm' });

my %names = ('n 1' => 'n1', 'n 2' => 'n2', 'n 2, too' => 'n2', 'n 3' => 'n3',
             'n 4' => 'n4', 'n 3 in z' => 'z', 'in z, n 3' => 'z',
             'other fields' => 'm', 'y, n 4' => 'y', 'x' => 'x');

for (sort keys %names) {
    $r = ended($waiting{$_});
    is($r->{event}{name}, $names{$_}, "it waits for $_");
    ok(!$r->{missed}, 'and has missed nothing');
}

wait_for { $t->status->{calls}{running} == 1 };
publish_d({ n => 99, name => 'last' });
is(ended($waiting{none})->{event}{name}, 'last', 'one waits for long');
ok(!ended($waiting{none})->{missed}, 'and has missed nothing');

my $late = start_wait({ topic => 'd', match => { n => 100 },
                        after => ended($waiting{none})->{position},
                        timeout_seconds => 5 * ($ENV{MCP_SLOW} || 1) });

wait_for { $t->status->{calls}{running} == 1 };
publish_d({ n => $_ }) for 10 .. 49;
publish_d({ name => 'end' });
$r = ended($late);
ok($r->{timeout} && !$r->{missed}, 'time is over, and nothing was missed');
is($r->{position},
   wait_for_event({ topic => 'd', match => { name => 'end' } })->{position},
   'up to the last event');


# many that wait for other events cost little more than one

my $one = cost('one', 1);
my $all = cost('all', 60);

diag("$one and $all ticks");
cmp_ok($all, '<=', 12 * ($one + 1), 'an event is looked at once for all');

done_testing();


# the time that a worker takes for 60 events that nobody waits for, in ticks

sub cost {
    my ($topic, $n) = @_;

    my $waits = $t->session;
    my %match = map { ("none$_" => $_) } 1 .. 16;
    my $event = { topic => $topic, map { ("k$_" => 0) } 1 .. 1300 };
    my @conn;

    for (1 .. $n) {
        push @conn, $waits->send_only(
            $waits->message('tools/call', {
                name => 'wait_for_event',
                arguments => { topic => $topic, match => \%match,
                               timeout_seconds => 600 },
            }), conn => $t->conn_on_worker($w));
    }

    wait_for { $t->status->{calls}{running} >= $n };

    my $publish = $t->conn_on_worker($w);
    my $before = ticks();

    for (1 .. 60) {
        $publish->request('POST', '/publish',
                          { 'Content-Type' => 'application/json' },
                          json_encode($event));
    }

    my $after = ticks();

    $waits->delete;
    wait_for { $t->status->{calls}{running} == 0 };
    return $after - $before;
}


# a call that waits in the first worker

sub start_wait {
    my ($arguments) = @_;

    return { conn => $d->send_only(
        $d->message('tools/call', {
            name => 'wait_for_event', arguments => $arguments
        }), conn => $t->conn_on_worker($w)) };
}


sub ended {
    my ($call) = @_;

    $call->{answer} ||= $d->read_response($call->{conn}->response('POST'))
        ->{messages}[-1]{result}{structuredContent};
    return $call->{answer};
}


sub publish_d {
    $t->publish({ topic => 'd', %{ $_[0] } }, undef, conn => $publishes);
}


sub wait_for_event {
    return $s->tool('wait_for_event', $_[0])->{result}{structuredContent};
}


sub ticks {
    my @f = split / /, Mcp::Test::slurp_file("/proc/$w/stat") =~ s/^.*\) //sr;
    return $f[11] + $f[12];
}
