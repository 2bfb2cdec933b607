#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Upstreams that come, go and restart, one alone and several behind one
# endpoint: what new clients get meanwhile, what those that are connected get,
# and that all is as before when the upstream is back.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;


# a small MCP server that says what it got

sub server {
    my ($name, %o) = @_;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        info => { name => $name, version => '1', %{ $o{info} || {} } },
        initialize => sub {
            my ($r) = @_;

            return [http => 401, { 'WWW-Authenticate' =>
                                   "Bearer realm=\"$name\"" }, '']
                if $o{guard}
                   && ($r->{headers}{authorization} || '') ne 'Bearer good';

            my $sid = "$name-" . ++$Mcp::Upstream::V{sessions};

            $Mcp::Upstream::V{live}{$sid} = 1;

            return ($Mcp::Upstream::V{late} ? [until => 'late'] : (),
                    [json => Mcp::Upstream::result($r, {
                        protocolVersion => $r->{json}{params}{protocolVersion},
                        capabilities => $Mcp::Upstream::V{capabilities}
                                        || $o{capabilities}
                                        || { tools => {}, logging => {} },
                        serverInfo => { name => $name, version => '1',
                                        %{ $o{info} || {} } },
                        $o{instructions}
                        ? (instructions => $o{instructions}) : (),
                    }), { 'Mcp-Session-Id' => $sid }]);
        },
        sessions => 0,
        'tools/list' => { tools => [ { name => 'where', inputSchema =>
                                       { type => 'object' } } ] },
        GET => sub {
            return [http => 405, { Allow => 'POST' }, ''] if !$o{streams};
            return ([sse => {}], [tag => 'get'], [hang =>]);
        },
        'logging/setLevel' => sub {
            return $Mcp::Upstream::V{mute} ? ([hang =>]) : {};
        },
        'tools/call' => sub {
            my ($r) = @_;
            my $sid = $r->{headers}{'mcp-session-id'} || '';

            # one that was restarted knows none of its sessions

            return [http => 404, { 'Content-Type' => 'application/json' },
                    '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,'
                    . '"message":"no session"}}']
                if !$Mcp::Upstream::V{live}{$sid};

            return [http => 503, {}, ''] if $Mcp::Upstream::V{busy};

            my $how = $r->{json}{params}{arguments}{how} || '';

            return ([until => 'never']) if $how eq 'hang';

            return ([sse => {}],
                    [event => notification('message', { level => 'error',
                                                        data => 'begun' })],
                    [until => 'never']) if $how eq 'stream';

            return { content => [ { type => 'text', text => $name } ] };
        },
        %{ $o{more} || {} },
    ), port => $o{port});
}


sub text { my $r = shift; return $r && $r->{result}{content}[0]{text} }


my $one = server('one');

my $alpha = server('alpha', streams => 1,
                   instructions => "Ask \"alpha\" first.",
                   info => { title => 'The Alpha' },
                   capabilities => { tools => {}, experimental => { a => {} },
                                     odd => { from => 'alpha' } });
my $beta = server('beta', streams => 1, instructions => "Beta knows\nmore.",
                  capabilities => { tools => {}, prompts => {},
                                    experimental => { a => { x => 1 },
                                                      b => {} },
                                    odd => { from => 'beta' } });
my $gamma = Mcp::Test::free_port();

my @many = map { server("many$_") } 1 .. 3;
my $main = server('main');
my $spare = server('spare');

my $conf = <<'EOF2';
mcp_zone zone=main:8m;

upstream many {
    hash $mcp_session_id consistent;
    %%MANY%%
    keepalive 4;
}

upstream spare {
    zone spare 64k;
    server 127.0.0.1:%%MAIN%% max_fails=1 fail_timeout=1s;
    server 127.0.0.1:%%SPARE%% backup;
}

server {
    %%LISTEN%%
    server_name localhost;

    mcp_drain_time 100ms;
    mcp_stream_after 0;

    location = /one {
        mcp_endpoint zone=main;
        mcp_upstream one /_one;
    }

    location = /_one { internal; proxy_pass http://127.0.0.1:%%ONE%%/mcp; }

    location = /three {
        mcp_endpoint zone=main name=three;
        mcp_upstream alpha /_alpha;
        mcp_upstream beta /_beta prefix=none;
        %%THIRD%%
    }

    location = /guarded {
        mcp_endpoint zone=main;
        mcp_upstream alpha /_alpha;
        mcp_upstream guard /_guard;
    }

    location = /_silent { internal; proxy_pass http://127.0.0.1:%%SILENT%%/; }
    location = /_guard { internal; proxy_pass http://127.0.0.1:%%GUARD%%/; }

    location = /publish { allow 127.0.0.1; deny all; mcp_publish zone=main; }

    location = /_alpha { internal; proxy_pass http://127.0.0.1:%%ALPHA%%/; }
    location = /_beta { internal; proxy_pass http://127.0.0.1:%%BETA%%/; }
    location = /_gamma { internal; proxy_pass http://127.0.0.1:%%GAMMA%%/; }

    location = /many {
        mcp_endpoint zone=main;
        mcp_upstream many /_many;
    }

    location = /spare {
        mcp_endpoint zone=main;
        mcp_upstream spare /_spare;
    }

    location = /again {
        mcp_endpoint zone=main;
        mcp_upstream again /_again;
    }

    location = /_many { internal; proxy_pass http://many/; }
    location = /_spare {
        internal;
        proxy_pass http://spare/;
        proxy_next_upstream error timeout http_503;
    }
    location = /_again {
        internal;
        proxy_pass http://spare/;
        proxy_next_upstream error timeout http_503 non_idempotent;
    }

    location = /status { allow 127.0.0.1; deny all; mcp_status zone=main; }
}
EOF2

my $t = Mcp::Test->new(conf => $conf, vars => {
    ONE => $one->port, ALPHA => $alpha->port, BETA => $beta->port,
    GAMMA => $gamma, THIRD => 'mcp_upstream gamma /_gamma;',
    GUARD => 1, SILENT => 1,
    MAIN => $main->port, SPARE => $spare->port,
    MANY => join ' ', map { 'server 127.0.0.1:' . $_->port . ';' } @many });


# one upstream: what is known of it serves new clients while it is away

my $s = $t->session(path => '/one');
is(text($s->tool('where')), 'one', 'the upstream is there');

$one->refuse;
$one->drop;

my $r = $s->tool('where');
is($r->{http}{status}, 502, 'a call is refused while it is away');
like($r->{error}{message}, qr/cannot be reached/, 'with the reason');

sub begins {
    my ($path, $what) = @_;

    my $n = 0;
    my $first = time;

    for (1 .. 6) {
        my $s = $t->session(path => $path, lazy => 1);
        my $r = $s->initialize;
        $n++ if $r->{status} == 200 && $s->{server}{capabilities}{tools};
    }

    is($n, 6, $what);
    within(time - $first, 0, 5, 'at once');
}

begins('/one', 'a new client is answered after a call failed');

ok($t->reload, 'reload');
begins('/one', 'and after a reload');

$r = $t->session(path => '/one')->tool('where');
is($r->{http}{status}, 502, 'only its calls need the upstream');

$one->set(capabilities => { tools => {}, prompts => {} });
$one->set(live => {});
$one->restore;

is(text($s->tool('where')), 'one', 'it is back, without its sessions');

# it restarts while requests run: these get an error that says so

my $hangs = $t->client(path => '/one');
$hangs->initialize;
my $conn = $hangs->send_only($hangs->message('tools/call',
    { name => 'where', arguments => { how => 'hang' } }));
my $begun = $s->stream('tools/call',
    { name => 'where', arguments => { how => 'stream' } });
ok($begun->method('notifications/message'), 'a stream has begun');
$one->wait_requests(sub {
    ($_[0]{json}{params}{arguments}{how} || '') eq 'hang'
});
$one->drop;

$r = $conn->response;
is($r->{status}, 502, 'a request that was under way is refused');
like($r->{body}, qr/closed the connection .* may have run/, 'and told why');

my $last = $begun->response($begun->{id});
like($last && $last->{json}{error}{message}, qr/cut .* may have run/,
     'so is one whose stream had begun');
is($one->count(sub { ($_[0]{json}{params}{arguments}{how} || '') eq 'hang' }),
   1, 'it was not sent again');

ok(wait_for { $t->session(path => '/one')->{server}{capabilities}{prompts} },
   'and is asked again: it has more now');

# three upstreams, of which one is never reached: the others are offered

$s = $t->session(path => '/three');

my $caps = $s->{server}{capabilities};

is_deeply([sort keys %$caps],
          [qw(experimental logging odd prompts resources tools)],
          'capabilities of all that answer');
is_deeply($caps->{experimental}, { a => {}, b => {} },
          'experimental ones are joined by name, the first wins');
is_deeply($caps->{odd}, { from => 'alpha' }, 'so it does for unknown ones');
is($s->{server}{serverInfo}{name}, 'alpha', 'the first is the server');
is($s->{server}{instructions},
   "The Alpha:\nAsk \"alpha\" first.\n\nbeta:\nBeta knows\nmore.",
   'instructions of both, each under its name');

like($t->log, qr{\[error\].* without upstream "gamma",.*cannot be reached},
     'the log says at error which one is left out');

is(begun($alpha), 1, 'each was asked once');

sub state {
    my ($name) = @_;

    my ($u) = grep { $_->{upstream} eq $name } @{ $t->status->{upstreams} };
    return $u->{state};
}

is(state('alpha'), 'known', 'mcp_status: known');
is(state('gamma'), 'unreached', 'mcp_status: never reached');

$gamma = server('gamma', port => $gamma,
                capabilities => { completions => {}, logging => {} });

ok(wait_for { $t->session(path => '/three')
                  ->{server}{capabilities}{completions} },
   'its arrival changes what new sessions are offered');

sub begun { $_[0]->count(sub { ($_[0]{json}{method} || '') eq 'initialize' }) }

my $n = begun($gamma);
$t->session(path => '/three') for 1 .. 3;
is(begun($gamma), $n, 'it is asked no more then');

$beta->refuse;
ok($t->reload, 'reload while another is away');
$caps = $t->session(path => '/three')->{server}{capabilities};
ok($caps->{prompts} && $caps->{completions} && $caps->{tools},
   'what it can is still offered');
is(state('beta'), 'away', 'mcp_status: away');
is(state('gamma'), 'known', 'mcp_status: the one that came');
like($t->get('/status?format=prometheus')->{body},
     qr/upstream_tenants\{[^}]*upstream="beta",state="away"\} 1\n/,
     'in Prometheus text as well');
$beta->restore;
ok(wait_for { $t->session(path => '/three') && state('beta') eq 'known' },
   'and it is back');


# what concerns all upstreams reaches all that have a session of the client

$_->clear for $alpha, $beta, $gamma;

my %mine = (path => '/three', headers => { 'X-Test-Client' => 1 });

$s = $t->session(%mine);
my $get = $s->open_get;

sub asked {
    my ($up, $method) = @_;

    return $up->requests(sub {
        ($_[0]{json}{method} || '') eq $method
        && $_[0]{headers}{'x-test-client'}
    });
}

sub sessions {
    my ($method, @up) = @_;
    return join ' ', map {
        my @r = asked($_, $method);
        scalar(@r) . ($r[0] && $r[0]{headers}{'mcp-session-id'} ? '' : '?')
    } @up;
}

for my $up ($alpha, $beta, $gamma) {
    $up->wait_requests(sub { $_[0]{method} eq 'GET' });
}

$r = $s->call('logging/setLevel', { level => 'warning' });
is_deeply($r->{result}, {}, 'setLevel is answered');
is(sessions('logging/setLevel', $alpha, $beta, $gamma), '1 1 1',
   'by then all have heard it');

$r = $s->notify('notifications/roots/list_changed');
is($r->{status}, 202, 'so is a notification');
is(sessions('notifications/roots/list_changed', $alpha, $beta, $gamma),
   '1 1 1', 'which all have heard');

my $other = $t->session(%mine);
$r = $other->call('logging/setLevel', { level => 'error' });
is_deeply($r->{result}, {}, 'a session that no upstream knows is answered');
is(sessions('logging/setLevel', $alpha, $beta, $gamma), '1 1 1',
   'and nobody is asked');

$get = $other->open_get;

for my $up ($alpha, $beta, $gamma) {
    my @r = $up->wait_requests(sub {
        ($_[0]{json}{params}{level} || '') eq 'error'
    });
    is(scalar @r, 1, 'a session made later gets the level');
}

# one that does not answer is not waited for for long

$beta->set(mute => 1);
my $begin = time;
$r = $s->call('logging/setLevel', { level => 'info' });
is_deeply($r->{result}, {}, 'setLevel is answered, though one is silent');
within(time - $begin, 0, 9, 'in a bounded time');
is(sessions('logging/setLevel', $alpha, $beta, $gamma), '3 3 3',
   'all were told');
$beta->set(mute => 0);


# silent ones: that which is known serves, the other is left out, and only the
# first client waits for them, for 5 seconds

my $silent = Mcp::Upstream->new(sub { [hang =>] });

$beta->set(late => 1);
ok($t->reload(vars => { %{ $t->{vars} }, SILENT => $silent->port,
    THIRD => 'mcp_upstream gamma /_gamma; mcp_upstream silent /_silent;' }),
   'reload');

$begin = time;
$caps = $t->session(path => '/three')->{server}{capabilities};
my $took = time - $begin;

ok($caps->{prompts} && $caps->{completions} && $caps->{tools},
   'what is known of a silent one is offered');
within($took, 0, 9, 'in a bounded time');
like($t->log, qr/without upstream "silent",.*did not answer/,
     'one that is not known is left out');

$begin = time;
$caps = $t->session(path => '/three')->{server}{capabilities};
ok($caps->{prompts} && $caps->{completions} && $caps->{tools},
   'the next client gets the same');
within(time - $begin, 0, 4.5, 'at once');

$beta->set(late => 0);
$beta->release('late');
ok($t->reload(vars => { %{ $t->{vars} },
                        THIRD => 'mcp_upstream gamma /_gamma;' }), 'reload');


# one that wants to know the client: the others are not kept from it

my $guard = server('guard', guard => 1);

ok($t->reload(vars => { %{ $t->{vars} }, GUARD => $guard->port }), 'reload');

$s = $t->session(path => '/guarded');
ok($s->{server}{capabilities}{tools}, 'a client without a token begins');
is(state('guard'), 'refused', 'mcp_status: refused');
is(text($s->tool('alpha__where')), 'alpha', 'and uses the other upstream');

$r = $s->tool('guard__where');
is($r->{http}{status}, 401, 'a call to this one gets its refusal');
is($r->{http}{headers}{'www-authenticate'}, 'Bearer realm="guard"',
   'with the challenge');

$s = $t->session(path => '/guarded',
                 headers => { Authorization => 'Bearer good' });
is(text($s->tool('guard__where')), 'guard', 'a client with a token is served');
is(text($s->tool('alpha__where')), 'alpha', 'by both');


# each upstream's stream goes on from its own last id, and a client's from the
# module's, also when another upstream has come or gone

$s = $t->session(%mine);
$get = $s->open_get;

for my $up ($alpha, $beta) {
    my $name = $up == $alpha ? 'alpha' : 'beta';

    ok(wait_for {
        $up->emit_one('get', 'newest',
                      [event => notification('message', { level => 'error',
                                                          data => $name }),
                       id => "$name-7"]);
        $get->event_where(sub {
            ref $_->{json} eq 'HASH' && ($_->{json}{params}{data} || '')
                eq $name
        }, 1);
    }, "a message of $name");
}

my $id = $get->last_id;

$_->clear for $alpha, $beta;
$_->drop for $alpha, $beta;

for my $up ($alpha, $beta) {
    my $name = $up == $alpha ? 'alpha' : 'beta';

    ok($up->wait_requests(sub {
        ($_[0]{headers}{'last-event-id'} || '') eq "$name-7"
    }), "$name is asked for what comes behind its own event");
}

$get->close;

for my $third ('', 'mcp_upstream gamma /_gamma;') {
    ok($t->reload(vars => { %{ $t->{vars} }, THIRD => $third }),
       'reload with ' . ($third ? 'another' : 'an upstream less'));

    $t->publish({ jsonrpc => '2.0', method => 'notifications/message',
                  endpoint => 'three',
                  params => { level => 'error', data => "as $third" } });

    $get = $s->open_get(last_event_id => $id);
    my $e = $get->event_where(sub {
        ref $_->{json} eq 'HASH' && $_->{json}{method}
        && $_->{json}{method} eq 'notifications/message'
        && $_->{json}{params}{data} =~ /^as/
    });
    is($e && $e->{json}{params}{data}, "as $third",
       'the client gets what it missed, and nothing again');
    $id = $get->last_id;
    $get->close;
}


# three replicas of a server with sessions: each session stays where it is

my @s = map { $t->session(%mine, path => '/many') } 1 .. 36;
my @where = map { text($_->tool('where')) } @s;
my %seen = map { $_ => 1 } @where;

is(scalar keys %seen, 3, 'sessions are spread over three replicas');

sub stay {
    my ($what, @not) = @_;

    my $moved = 0;

    for my $i (0 .. $#s) {
        next if grep { $where[$i] eq $_ } @not;

        for (1 .. 3) {
            $moved++ if (text($s[$i]->tool('where')) || '') ne $where[$i];
        }
    }

    is($moved, 0, $what);
}

sub made {
    my $n = 0;
    $n += asked($_, 'initialize') for @many;
    return $n;
}

my $made = made();
stay('and each stays at its own');
is(made(), $made, 'where it has one session');

$many[0]->set(live => {});
$many[0]->drop;

my $there = grep { $_ eq 'many1' } @where;
stay('one is restarted: all stay where they were');
is(made(), $made + $there, 'and those that were there are healed');

$made = made();
ok($t->reload(vars => { %{ $t->{vars} }, MANY =>
    join ' ', map { 'server 127.0.0.1:' . $_->port . ';' } @many[1, 2] }),
   'one is removed');
stay('those of others stay', 'many1');
is(made(), $made, 'in their sessions');

my @gone = grep { $where[$_] eq 'many1' } 0 .. $#s;
is(scalar(grep { (text($s[$_]->tool('where')) || '') =~ /^many[23]$/ } @gone),
   scalar @gone, 'those of the removed one go on at another');
is(made(), $made + @gone, 'each in a session there');


# max_fails, backup and proxy_next_upstream are those of nginx; with a zone
# the workers agree whether a server is away

sub called {
    my ($up) = @_;
    return $up->count(sub { ($_[0]{json}{method} || '') eq 'tools/call' });
}

$s = $t->session(path => '/spare');
is(text($s->tool('where')), 'main', 'the first server is asked');
is(called($spare), 0, 'and not the spare one');

$main->refuse;
$main->drop;
is(text($s->tool('where')), 'spare', 'the spare one is while it is away');
is(text($t->session(path => '/spare')->tool('where')), 'spare',
   'for new clients as well');

$main->restore;
ok(wait_for { (text($s->tool('where')) || '') eq 'main' },
   'and not after fail_timeout');

$main->clear;
$spare->clear;
$main->set(busy => 1);

$r = $s->tool('where');
is($r->{http}{status}, 503, 'a call that reached a server');
is(called($main) . called($spare), '10', 'is not repeated at another');

$main->set(busy => 0);
ok(wait_for { (text($s->tool('where')) || '') eq 'main' }, 'later it is');

$conn = $s->send_only($s->message('tools/call',
    { name => 'where', arguments => { how => 'hang' } }));
ok($main->wait_requests(sub {
    ($_[0]{json}{params}{arguments}{how} || '') eq 'hang'
}), 'a call is under way');
$main->drop;
is($conn->response->{status}, 502, 'nor one that was cut off');
is($spare->count(sub { ($_[0]{json}{params}{arguments}{how} || '') eq 'hang' }),
   0, 'by the server that had it');

$s = $t->session(path => '/again');
ok(wait_for { (text($s->tool('where')) || '') eq 'main' }, 'main again');
$main->set(busy => 1);
is(text($s->tool('where')), 'spare', 'but with non_idempotent it is repeated');

done_testing();
