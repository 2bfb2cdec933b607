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

my $alpha = server('alpha', instructions => "Ask \"alpha\" first.",
                   info => { title => 'The Alpha' },
                   capabilities => { tools => {}, experimental => { a => {} },
                                     odd => { from => 'alpha' } });
my $beta = server('beta', instructions => "Beta knows\nmore.",
                  capabilities => { tools => {}, prompts => {},
                                    experimental => { a => { x => 1 },
                                                      b => {} },
                                    odd => { from => 'beta' } });
my $gamma = Mcp::Test::free_port();

my $conf = <<'EOF2';
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_drain_time 100ms;

    location = /one {
        mcp_endpoint zone=main;
        mcp_upstream one /_one;
    }

    location = /_one { internal; proxy_pass http://127.0.0.1:%%ONE%%/mcp; }

    location = /three {
        mcp_endpoint zone=main;
        mcp_upstream alpha /_alpha;
        mcp_upstream beta /_beta prefix=none;
        mcp_upstream gamma /_gamma;
    }

    location = /_alpha { internal; proxy_pass http://127.0.0.1:%%ALPHA%%/; }
    location = /_beta { internal; proxy_pass http://127.0.0.1:%%BETA%%/; }
    location = /_gamma { internal; proxy_pass http://127.0.0.1:%%GAMMA%%/; }

    location = /status { allow 127.0.0.1; deny all; mcp_status zone=main; }
}
EOF2

my $t = Mcp::Test->new(conf => $conf, vars => {
    ONE => $one->port, ALPHA => $alpha->port, BETA => $beta->port,
    GAMMA => $gamma });


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
    cmp_ok(time - $first, '<', 5, 'at once');
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

ok(wait_for { $t->session(path => '/one')->{server}{capabilities}{prompts} },
   'and is asked again: it has more now');

# three upstreams, of which one is never reached: the others are offered

$s = $t->session(path => '/three');

my $caps = $s->{server}{capabilities};

is_deeply([sort keys %$caps], ['experimental', 'odd', 'prompts', 'tools'],
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

is($alpha->count(sub { ($_[0]{json}{method} || '') eq 'initialize' }), 1,
   'each was asked once');

$gamma = server('gamma', port => $gamma,
                capabilities => { resources => {}, logging => {} });

ok(wait_for { $t->session(path => '/three')
                  ->{server}{capabilities}{resources} },
   'its arrival changes what new sessions are offered');

my $n = $gamma->count;
$t->session(path => '/three') for 1 .. 3;
is($gamma->count, $n, 'it is asked no more then');

$beta->refuse;
ok($t->reload, 'reload while another is away');
$caps = $t->session(path => '/three')->{server}{capabilities};
ok($caps->{prompts} && $caps->{resources} && $caps->{tools},
   'what it can is still offered');
$beta->restore;


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
cmp_ok(time - $begin, '<', 9, 'in a bounded time');
is(sessions('logging/setLevel', $alpha, $beta, $gamma), '3 3 3',
   'all were told');
$beta->set(mute => 0);

done_testing();
