#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Servers that offer more tools to clients that can be asked (sampling,
# elicitation, roots): cached lists are those that each client gets straight.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;

my @what = qw(sampling form url roots);


# a server with a tool for each capability; $V{extra}: one that has one more

my (%caps, $n);

sub declared {
    my ($caps) = @_;

    my $e = $caps->{elicitation};

    return join '+', grep {
        $_ eq 'form' ? $e && ($e->{form} || !$e->{url})
        : $_ eq 'url' ? $e && $e->{url} : $caps->{$_}
    } @what;
}

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    sessions => 0,
    initialize => sub {
        my ($r) = @_;
        my $id = 'id-' . ++$n;
        $caps{$id} = declared($r->{json}{params}{capabilities});
        return [json => Mcp::Upstream::result($r, {
            protocolVersion => $r->{json}{params}{protocolVersion},
            capabilities => { tools => { listChanged => JSON::PP::true() },
                              resources => { subscribe =>
                                             JSON::PP::true() } },
            serverInfo => { name => 'up', version => '1' },
        }), { 'Mcp-Session-Id' => $id }];
    },
    'tools/list' => sub {
        my ($r) = @_;
        my $caps = $caps{ $r->{headers}{'mcp-session-id'} };
        my $extra = $Mcp::Upstream::V{extra};
        return { tools => [ map { +{ name => $_ } } 'all',
                            split(/\+/, $caps),
                            defined $extra && $caps eq $extra ? 'extra'
                                                              : () ] };
    },
    'resources/list' => { resources => [] },
    'resources/subscribe' => {},
    GET => sub {
        my ($r) = @_;
        my $caps = $caps{ $r->{headers}{'mcp-session-id'} };
        return ([sse => {}], [tag => "listen $caps"], [hang =>]);
    },
));

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1, 'tools/list' => { tools => [ { name => 'x' } ] }));

my $t = Mcp::Test->new(vars => { UP => $up->port, RPC => $rpc->port },
                       conf => <<'CONF');
mcp_zone zone=main:8m state=%%DIR%%/zone;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_list_cache on ttl=1h;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_versions any;
        mcp_upstream up /_up;
    }

    location = /key {
        mcp_endpoint   zone=main;
        mcp_list_cache on key=$http_x_role;
        mcp_upstream   up /_key;
    }

    location = /off {
        mcp_endpoint   zone=main;
        mcp_versions   any;
        mcp_list_cache off;
        mcp_upstream   up /_up;
    }

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /_up  { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }

    location = /_key {
        internal;
        proxy_pass       http://127.0.0.1:%%UP%%/;
        proxy_set_header X-Role $mcp_list_key;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
CONF

my %client = (
    ''                     => {},
    'sampling'             => { sampling => {} },
    'roots'                => { roots => { listChanged =>
                                           JSON::PP::true() } },
    'form'                 => { elicitation => {} },
    'url'                  => { elicitation => { url => {} } },
    'sampling+form+url+roots' => {
        sampling => { tools => {} }, roots => {}, experimental => { x => {} },
        elicitation => { form => {}, url => {} } },
);
my (%s, %g);

for my $caps (sort keys %client) {
    $s{$caps} = $t->session(caps => $client{$caps});
    is(names($s{$caps}), join(' ', 'all', split /\+/, $caps),
       "tools for a client that declares: $caps");
    is(names($t->session(caps => $client{$caps})), names($s{$caps}),
       'another one');
}

is(scalar $up->calls('tools/list'), scalar keys %client,
   'the server is asked once for all who declare the same');

my $modern = Mcp::Modern->new($t, caps => { elicitation => { form => {} } });
is(join(' ', map { $_->{name} } @{ $modern->call('tools/list')
                                   ->{json}{result}{tools} }), 'all form',
   'tools for a client of 2026-07-28');
is(scalar $up->calls('tools/list'), scalar keys %client, 'asked for already');


for my $caps ('', 'form', 'roots') {
    my $c = Mcp::Modern->new($t, path => '/off', caps => $client{$caps});
    is(join(' ', map { $_->{name} } @{ $c->call('tools/list')
                                         ->{json}{result}{tools} }),
       join(' ', 'all', $caps || ()), "uncached, with $caps");
}

$up->clear;


# a change that one kind of clients sees

$g{$_} = $s{$_}->open_get(conn => $t->conn) for keys %s;
my $name = 'sampling+form+url+roots';
ok(wait_for { !grep { !$up->held("listen $_") } keys %s },
   'there is a listener for each');

$up->set(extra => $name);
$up->emit("listen $_", [event => notification('tools/list_changed')])
    for keys %s;
is(heard($name), 'notifications/tools/list_changed', 'those hear of it');
is(names($s{$name}), "all sampling form url roots extra", 'and see it');
quiet('and nobody else does');
is(names($s{url}), 'all url', 'nor sees it');


# subscriptions are shared by those who declare the same

is_deeply($s{$_}->call('resources/subscribe', { uri => 'r:1' })->{result}, {},
          'a subscription') for 'form', 'url';
is(scalar(grep { !$_->{headers}{'x-test-client'} }
          $up->calls('resources/subscribe')), 2, 'made for each kind');
$up->emit('listen form', [event => notification('resources/updated',
                                                { uri => 'r:1' })]);
is(heard('form'), 'notifications/resources/updated', 'an update is heard');
quiet('by them');


# key= and what clients declare are both in the audience

for my $role (qw(admin guest)) {
    for my $caps ('', 'roots') {
        my $s = $t->session(path => '/key', caps => $client{$caps},
                            headers => { 'X-Role' => $role });
        is(names($s), join(' ', 'all', $caps || ()),
           "tools of $role: $caps");
    }
}

is_deeply([ sort map { $_->{headers}{'x-role'} || () }
            $up->calls('tools/list') ],
          [ qw(admin admin guest guest) ], 'the server sees the key alone');


# where nothing can depend on it, all have one list

my @rpc = map { $t->session(path => '/rpc', caps => $_) } values %client;
$rpc->clear;
names($_) for @rpc;
is(scalar $rpc->calls('tools/list'), 1, 'a plain handler is asked once');


# it outlives a reload and a restart

$up->clear;
ok($t->reload, 'a reload');
ok($t->wait_old, 'the old workers are gone');
is(names($s{roots}), 'all roots', 'a session has its list');
ok($t->stop, 'the end of nginx');
$t->start;
is(names($s{$_}), join(' ', 'all', split /\+/, $_), "its list after that: $_")
    for 'roots', '', 'url';

done_testing();


sub names {
    my ($s) = @_;

    my $r = $s->call('tools/list');

    return join ' ', map { $_->{name} } @{ $r->{result}{tools} || [] };
}


sub heard {
    my ($who) = @_;

    my $e = $g{$who}->event_where(sub { $_->{data} ne '' });

    return 'nothing' unless $e;
    return $e->{json}{params}{data} || $e->{json}{method};
}


sub quiet {
    my ($name) = @_;

    $t->publish(notification('message', { level => 'info', data => 'mark' }));

    my @loud = map { my $h = heard($_); $h eq 'mark' ? () : "$_: $h" }
               sort keys %g;

    is("@loud", '', $name);
}
