#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_coalesce: like events become one, the last is never lost, whoever sends
# it.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $conf = <<'EOF';
mcp_zone zone=main:4m;
mcp_drain_time 500ms;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_tenant       $http_x_tenant;
    mcp_session_bind $http_x_user;

    location = /mcp {
        mcp_endpoint zone=main name=one;
        mcp_coalesce %%TIME%%;
        %%RULES%%
    }

    location = /plain {
        mcp_endpoint zone=main name=plain;
        mcp_invalidate * "message=$n";
    }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOF

my $rules = <<'EOF';
        mcp_invalidate all message=first message=second list_changed=tools
                           updated=file:///$path notify=notifications/own;
        mcp_invalidate * "message=$n";
EOF

my $t = Mcp::Test->new(conf => $conf,
                       vars => { TIME => '700ms', RULES => $rules });
my @w = $t->workers;
my (@e, %s, %g);

is(scalar @w, 2, 'two workers');

for my $who (qw(ann bob)) {
    for my $tenant (qw(acme bold)) {
        $s{"$who-$tenant"} = client($who, $tenant);
    }
}

$s{plain} = client('ann', 'acme', path => '/plain');

my $i = 0;

for my $name (sort keys %s) {
    $g{$name} = $s{$name}->open_get(conn => $t->conn_on_worker($w[$i++ % 2]));
    is($g{$name}->event(5)->{data}, '', "$name is listening");
}


# many of a kind, from both workers

is_deeply([ publish(0, map { { kind => 'doc', n => $_ } } 1 .. 20) ],
          [ (5) x 20 ], 'the answer says whom each addresses');
publish(1, map { { kind => 'doc', n => $_ } } 21 .. 25);

@e = until_sum('ann-acme', 25);
is($e[0]{data}, 1, 'the first goes at once');
is($e[0]{details}{count}, undef, 'without a count');
cmp_ok(scalar @e, '<=', 4, 'of those behind it few are left');
is($e[-1]{data}, 25, 'the last one is the last');
is_deeply($e[1]{_meta}{'nginx-mcp/details'}, $e[1]{details},
          'the count stands in both places');

for my $name (grep { $_ ne 'plain' } sort keys %g) {
    next if $name eq 'ann-acme';
    my @other = until_sum($name, 25);
    is_deeply([ map { $_->{data} } @other ], [ map { $_->{data} } @e ],
              "$name hears the same");
}

is_deeply([ map { $_->{data} } until_sum('plain', 25) ], [ 1 .. 25 ],
          'an endpoint without coalescing hears them all');

is($t->status->{events}{coalesced}, 25 - @e, 'what was joined is counted');


# what is not alike is not joined

windows_end();

my @like = (
    { kind => 'a' }, { kind => 'b' }, { kind => 'a', tenant_id => 'acme' },
    { kind => 'a', tenant_id => 'bold' },
    { kind => 'a', session_id => $s{'ann-acme'}->id },
    { kind => 'a', identity => 'bob' }, { kind => 'b', uri => 'file:///s' },
);

is($s{'bob-bold'}->call('resources/subscribe', { uri => 'file:///s' })
   ->{http}{status}, 200, 'one subscribes');

$i = 0;
publish(0, map { { %$_, n => ++$i } } @like, @like, @like);

my %want = (
    'ann-acme' => [ 1, 2, 3, 5 ], 'ann-bold' => [ 1, 2, 4 ],
    'bob-acme' => [ 1, 2, 3, 6 ], 'bob-bold' => [ 1, 2, 4, 6, 7 ],
);

for my $name (sort keys %want) {
    my @n = @{ $want{$name} };

    @e = until_sum($name, 3 * @n);
    is_deeply([ map { $_->{data} } @e[0 .. $#n] ], \@n,
              "$name: the first of each at once");
    is_deeply([ sort { $a <=> $b } map { $_->{data} } @e[@n .. $#e] ],
              [ map { $_ + 14 } @n ], 'and the last of each');
    is_deeply([ map { $_->{details}{count} } @e[@n .. $#e] ], [ (2) x @n ],
              'for two');
}


# every action of a kind

windows_end();
$s{'ann-acme'}->call('resources/subscribe', { uri => 'file:///p' });

publish(1, map { { kind => 'all', tenant_id => 'acme', path => 'p', n => $_,
                   $_ == 2 ? (count => 40) : () } } 1 .. 4);

my %heard;

for (1 .. 10) {
    my $e = $g{'ann-acme'}->event_where(sub { ref $_->{json} }) or last;
    my $m = $e->{json};
    my $name = $m->{method};

    $name .= " $m->{params}{data}" if $name eq 'notifications/message';
    push @{ $heard{$name} }, $m->{params};
}

is_deeply([ map { scalar @$_ } values %heard ], [ (2) x 5 ],
          'each action is said twice');
is($heard{'notifications/message second'}[1]{details}{count}, 42,
   'a count of an event is in the sum');
is_deeply($heard{'notifications/own'}[1],
          { kind => 'all', tenant_id => 'acme', path => 'p', n => 4,
            count => 42 },
          'a notification of its own says it too');
is_deeply($heard{'notifications/resources/updated'}[1],
          { uri => 'file:///p' }, 'one of a resource does not');


# a notification stands as it is

publish(0, map { notification('x', { n => $_ }) } 1 .. 3);
is_deeply([ map { $g{'ann-bold'}->method('notifications/x')->{json}{params}{n}
                } 1 .. 3 ],
          [ 1 .. 3 ], 'notifications are not joined');


# who opened the window dies in it

$t->reload(vars => { TIME => '2s', RULES => $rules });
ok($t->wait_old, 'workers with a longer time');
windows_end();
@w = $t->workers;

my $s = client('ann', 'acme');
my $get = $s->open_get(conn => $t->conn_on_worker($w[1]));

publish(0, map { { kind => 'k', n => $_ } } 1 .. 3);
ok($t->kill_worker($w[0]), 'a worker is killed');
@w = $t->workers;

is(wait_message($get)->{data}, 1, 'the first had gone');

my $m = wait_message($get);
is($m->{data}, 3, 'another sends the last');
is($m->{details}{count}, 2, 'for both');


# a reload in a window

publish(1, map { { kind => 'r', n => $_ } } 1 .. 3);
is(wait_message($get)->{data}, 1, 'the first of another kind');
$t->reload;

ok($get->eof, 'the stream is ended by the reload');
$get = again($get);

$m = wait_message($get);
is($m->{data}, 3, 'what is due is sent, by whichever worker');
is($m->{details}{count}, 2, 'with its count');

@w = $t->workers;
publish(1, map { { kind => 'gone', n => $_ } } 1 .. 3);
is(wait_message($get)->{data}, 1, 'the first of a third kind');
$t->reload(vars => { TIME => '0', RULES => '' });

ok($get->eof, 'a reload with other rules');
$get = again($get);
is(wait_message($get)->{data}, 3, 'what waited is said as it was');

@w = $t->workers;
publish(1, map { { kind => 'gone' } } 1 .. 3);
is_deeply([ map { wait_message($get)->{data} } 1 .. 3 ],
          [ ('memory_updated') x 3 ], 'new rules are for new events');

done_testing();


sub client {
    my ($who, $tenant, %o) = @_;

    return $t->session(headers => { 'X-User' => $who, 'X-Tenant' => $tenant },
                       %o);
}


# all at once; how many sessions each addressed

sub publish {
    my ($worker, @events) = @_;

    my $r = $t->publish(\@events, undef,
                        conn => $t->conn_on_worker($w[$worker]));

    is($r->{status}, 202, scalar(@events) . ' events');

    return map { $_->{sessions} } @{ $r->{json}{events} };
}


sub wait_message {
    my ($get) = @_;

    my $e = $get->method('notifications/message');

    return $e ? $e->{json}{params} : {};
}


# the stream that goes on where this one ended, behind what that had brought

sub again {
    my ($old) = @_;

    my $new = $s->open_get(last_event_id => $old->last_id);

    unshift @{ $new->{queue} }, @{ $old->{queue} };

    return $new;
}


# messages until they stand for so many events

sub until_sum {
    my ($name, $sum) = @_;

    my @m;

    while ($sum > 0) {
        my $m = wait_message($g{$name});

        last unless $m->{details};

        push @m, $m;
        $sum -= $m->{details}{count} || 1;
    }

    is($sum, 0, "$name: no event is missing, none is there twice");

    return @m;
}


# none is open any more

sub windows_end {
    ok(wait_for { $t->status->{zone}{bytes}{coalesced} == 0 }, 'windows end');
}
