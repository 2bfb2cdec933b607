#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Calls whose clients have left: they run on, so many for each tenant and in
# all, and the oldest of a tenant beyond that are cancelled.  A worker has room
# for 25 of them, and a tenant for half as many.  Notifications whose clients
# have left, which the upstream does not answer, are few in all.  So are answers
# to an upstream that it does not take.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};
        my $answer = Mcp::Upstream::result($r, {
            content => [{ type => 'text', text => $name }] });

        return [json => $answer] if $name eq 'quick';

        return ([sse => {}],
                (map { [event => { jsonrpc => '2.0', id => "p$_",
                                   method => 'sampling/createMessage',
                                   params => {} }] } 1 .. 500),
                [event => $answer]) if $name eq 'asks';

        if ($name eq 'huge') {
            my $head = '{"jsonrpc":"2.0","id":' . json_encode($r->{json}{id})
                       . ',"result":{"x":"';

            return ([bytes => "HTTP/1.1 200 OK\r\n"
                              . "Content-Type: application/json\r\n"
                              . 'Content-Length: '
                              . (length($head) + 10_000_003)
                              . "\r\n\r\n$head"],
                    (map { [bytes => 'x' x 100_000] } 1 .. 100),
                    [until => $name], [bytes => '"}}']);
        }

        return (
            [sse => {}],
            [event => notification('message',
                                   { level => 'info', data => 'begun' })],
            [until => $name],
            [event => $answer],
        );
    },
    response => sub { ([until => 'response'], [http => 202, {}, '']) },
    'notifications/unheard' => sub { ([until => 'unheard'],
                                      [http => 202, {}, '']) },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, workers => 2,
                       events => 'worker_connections 200;', conf => <<'EOF');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up listen=off;
        mcp_tenant $http_x_tenant;
        mcp_call_limit 12;
        mcp_batch on;
    }

    location = /huge {
        mcp_endpoint zone=main name=huge;
        mcp_upstream up /_up listen=off;
        mcp_tenant $http_x_tenant;
        mcp_call_limit 2;
        mcp_message_limit 32m;
        send_timeout 300ms;
    }

    location = /many {
        mcp_endpoint zone=main name=many;
        mcp_upstream up /_up listen=off;
        mcp_tenant $http_x_tenant;
    }

    location = /users {
        mcp_endpoint zone=main name=users;
        mcp_upstream up /_up listen=off;
        mcp_session_bind $http_x_user;
        mcp_session_limit 0 key=shared;
        mcp_call_limit 2;
    }

    location = /_up {
        internal;
        proxy_pass http://127.0.0.1:%%UP%%/mcp;
    }

    location = /status { mcp_status zone=main; }
}
EOF

sub calls { json_decode($t->get('/status')->{body})->{calls} }


# begins a call and leaves; the id of its first event

sub leave {
    my ($s, $name, %o) = @_;
    my $sse = $s->stream('tools/call', { name => $name }, %o);
    my ($e, $id);

    $id = $sse->{id};
    $e = $sse->event until $e && $e->{json} || $sse->ended;
    $sse->close;

    return ($e->{id}, $id);
}


sub answer {
    my ($s, $id) = @_;
    my $get = $s->open_get(last_event_id => $id);
    my $e = $get->event_where(sub {
        $_[0]{json} && ($_[0]{json}{result} || $_[0]{json}{error})
    });

    $get->close;
    return $e && $e->{json};
}


my $modest = $t->session(headers => { 'X-Tenant' => 'modest' });
my ($kept) = leave($modest, 'modest');


# a tenant takes what it can get

# each worker keeps some: the first calls go to one, which cancels them

my @greedy;
my ($first) = $t->workers;

for my $n (1 .. 15) {
    my $s = $t->session(headers => { 'X-Tenant' => 'greedy' });

    for my $i (1 .. 8) {
        my @on = $n > 2 ? () : (conn => $t->conn_on_worker($first));
        my ($event, $id) = leave($s, "greedy$n-$i", @on);
        push @greedy, [$s, $event, $id];
    }
}

my $calls;
ok(wait_for(sub {
    $calls = calls();
    $calls->{running} <= 2 * 12 + 1
    && $calls->{abandoned} == 121 - $calls->{running}
}), 'so many run on in each worker, the others are cancelled')
    or diag(json_encode($calls));
cmp_ok($calls->{running}, '>=', 12, 'but many');

is($modest->call('tools/call', { name => 'quick' })
   ->{result}{content}[0]{text}, 'quick', 'others are served meanwhile');

my $j = answer($greedy[0][0], $greedy[0][1]);
is($j && $j->{error}{code}, -32603, 'who resumes a cancelled one is told');
like($j->{error}{message}, qr/its client left/, 'why');

my %cancelled;
ok(wait_for(sub {
    %cancelled = map { $_->{headers}{'mcp-session-id'} . ' '
                       . $_->{json}{params}{requestId} => 1 }
                 $up->calls('notifications/cancelled');
    keys %cancelled >= calls()->{abandoned}
}), 'the upstream is told of each') or diag(scalar keys %cancelled);

$up->release('modest');
$up->release("greedy15-8");

$j = answer($modest, $kept);
is($j && $j->{result}{content}[0]{text}, 'modest',
   'what another tenant left runs on');

$j = answer($greedy[-1][0], $greedy[-1][1]);
is($j && $j->{result}{content}[0]{text}, 'greedy15-8', 'so do the newest');


# who came back for an answer gets it, however many of the tenant leave

my $worker = ($t->workers)[0];
my @back = map { $t->session(headers => { 'X-Tenant' => 'back' }) } 1 .. 4;

my ($from) = leave($back[0], 'back', conn => $t->conn_on_worker($worker));
my $get = $back[0]->open_get(last_event_id => $from);
my $before = calls()->{abandoned};

for my $s (@back[1 .. 3]) {
    leave($s, 'others', conn => $t->conn_on_worker($worker)) for 1 .. 8;
}

ok(wait_for(sub { calls()->{abandoned} >= $before + 12 }),
   'many of a tenant are cancelled');

$up->release('back');

$j = $get->event_where(sub {
    $_[0]{json} && ($_[0]{json}{result} || $_[0]{json}{error})
});
is($j && $j->{json}{result}{content}[0]{text}, 'back',
   'but not the one that is read again');


# all of those end

$up->release($_) for 'others', map { my $n = $_; map { "greedy$n-$_" } 1 .. 8 }
                               1 .. 15;
ok(wait_for(sub { calls()->{running} == 0 }), 'none of those before runs on')
    or diag(calls()->{running});


# where the worker has no room for more, no other tenant's are cancelled

my @full;

for (1, 2) {
    my $s = $t->session(headers => { 'X-Tenant' => "full$_" });

    push @full, [$s, leave($s, 'full', conn => $t->conn_on_worker($worker))]
        for 1 .. 12;
}

my $last = $t->session(headers => { 'X-Tenant' => 'last' });
push @full, [$last, leave($last, 'full', conn => $t->conn_on_worker($worker))];

my $late = $t->session(headers => { 'X-Tenant' => 'late' });

$before = calls()->{abandoned};
my ($new) = leave($late, 'late', conn => $t->conn_on_worker($worker));

ok(wait_for(sub { calls()->{abandoned} > $before }),
   'one that is left then is cancelled');
is(calls()->{abandoned}, $before + 1, 'and no other');

$up->release('full');

for (@full[0, 12, 24]) {
    $j = answer(@$_[0, 1]);
    is($j && $j->{result}{content}[0]{text}, 'full', 'the oldest run on');
}

$j = answer($late, $new);
is($j && $j->{error}{code}, -32603, 'the new one is answered with an error');

$up->release('late');
ok(wait_for(sub { calls()->{running} == 0 }), 'and all end');


# where the limit would let it, a tenant takes half of the room at most

my @crowd = map { $t->session(path => '/many',
                              headers => { 'X-Tenant' => $_ }) } qw(crowd poor);

$before = calls()->{abandoned};
leave($crowd[0], 'crowd', conn => $t->conn_on_worker($worker)) for 1 .. 30;

ok(wait_for(sub { calls()->{abandoned} >= $before + 18 }),
   'those beyond half of the room are cancelled')
    or diag(calls()->{abandoned} - $before);

my ($poor) = leave($crowd[1], 'poor', conn => $t->conn_on_worker($worker));
$up->release('poor');

$j = answer($crowd[1], $poor);
is($j && $j->{result}{content}[0]{text}, 'poor', 'another tenant has room');
is(calls()->{abandoned}, $before + 18, 'and nothing else is cancelled');

$up->release('crowd');
ok(wait_for(sub { calls()->{running} == 0 }), 'and those end');


# without a tenant, users are told apart, whatever they share

my $user = $t->session(path => '/users', headers => { 'X-User' => 'lone' });
my ($lone) = leave($user, 'lone', conn => $t->conn_on_worker($worker));

$before = calls()->{abandoned};

for (1 .. 3) {
    my $s = $t->session(path => '/users', headers => { 'X-User' => 'many' });

    leave($s, 'many', conn => $t->conn_on_worker($worker)) for 1 .. 2;
}

ok(wait_for(sub { calls()->{abandoned} >= $before + 4 }),
   'those of one user are cancelled');
is(calls()->{abandoned}, $before + 4, 'no more than that');

$up->release('lone');

$j = answer($user, $lone);
is($j && $j->{result}{content}[0]{text}, 'lone', 'another one gets answers');

$up->release('many');
ok(wait_for(sub { calls()->{running} == 0 }), 'and none runs on');


# who reads nothing is given up, and counts as one that left

my %deaf = (path => '/huge', accept => 'application/json',
            headers => { 'X-Tenant' => 'deaf' });
my @deaf;

$before = calls()->{abandoned};

for (1 .. 6) {
    my $s = $t->session(%deaf);
    my $conn = $t->conn_on_worker($worker, rcvbuf => 4096);

    push @deaf, $conn;
    $s->send_only($s->message('tools/call', { name => 'huge' }),
                  conn => $conn);
}

ok(wait_for(sub { calls()->{abandoned} == $before + 4 }),
   'two of a tenant that reads nothing run on')
    or diag(calls()->{abandoned} - $before);

$up->release('huge');
ok(wait_for(sub { calls()->{running} == 0 }), 'and end')
    or diag(calls()->{running});


# notifications: a worker waits for the answers of a few

sub unheard { grep { !$_->{ended} } $up->calls('notifications/unheard') }

for my $array (0, 1) {
    my @n = map { { jsonrpc => '2.0', method => 'notifications/unheard',
                    params => { n => $_ } } } 1 .. 12;
    my $s = $t->session(headers => { 'X-Tenant' => 'unheard' },
                        $array ? (version => '2025-03-26') : ());

    $s->call('tools/call', { name => 'quick' });
    $up->clear;

    for (1 .. 100 / ($array ? @n : 1)) {
        my $c = $t->conn_on_worker($worker);
        $s->send_only($array ? \@n : $n[0], conn => $c);
        $c->close;
    }

    my $begin = time;

    $up->wait_requests(sub { ref $_[0]{json}
        && ($_[0]{json}{method} || '') eq 'notifications/unheard' });

    is($s->call('tools/call', { name => 'quick' },
                conn => $t->conn_on_worker($worker))
       ->{result}{content}[0]{text}, 'quick', 'others are served meanwhile');

    ok(wait_for(sub { unheard() <= 24 }), 'few are waited for')
        or diag(scalar unheard());
    within(time - $begin, 0, 4, 'as they are too many, not too old');
    cmp_ok(scalar $up->calls('notifications/unheard'), '>', 75,
           'but most were passed on');
    ok(wait_for(sub { unheard() == 0 }), 'and none for long');
}

my $begin = time;
my $waits = $modest->notify('notifications/unheard');

is($waits->{status}, 202, 'a client that waits is answered');
within(time - $begin, 4.9, 9, 'after some seconds');
like($t->log, qr/1 of 1 upstreams have not answered notifications\/unheard/,
     'the log says that the upstream was not waited for');


# an upstream that asks much and takes no answers gets few

sub responses { grep { ref $_->{json} && !$_->{json}{method} } $up->requests }

$up->clear;
is($modest->call('tools/call', { name => 'asks' },
                 conn => $t->conn_on_worker($worker))
   ->{result}{content}[0]{text}, 'asks', 'an upstream that asks is waited for');
ok(wait_for(sub { responses() == 12 }), 'and gets answers')
    or diag(scalar responses());
is($modest->call('tools/call', { name => 'quick' },
                 conn => $t->conn_on_worker($worker))
   ->{result}{content}[0]{text}, 'quick', 'others are served meanwhile');
is(scalar(() = $t->log =~ /requests of upstream "up" are not answered/g), 1,
   'the log says once that there are too many');

$up->release('response');
$modest->call('tools/call', { name => 'asks' },
              conn => $t->conn_on_worker($worker));
ok(wait_for(sub { responses() == 24 }), 'later, there is room again')
    or diag(scalar responses());
$up->release('response');

$t->allow_log(qr/its client left/, qr/are not answered/);
done_testing();
