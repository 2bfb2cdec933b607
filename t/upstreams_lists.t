#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Cached lists of several upstreams behind one endpoint: each upstream has its
# part, which changes, fails and goes by itself.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;


# a server whose lists are what $V says: a word is a name, "name=title" has a
# title; $V{paged}: one entry in a page

sub entries {
    my ($r, $member, $key, $text) = @_;

    my $V = \%Mcp::Upstream::V;
    my @all = map { my ($name, $title) = split /=/;
                    +{ $key => $name, $key eq 'uri' ? (name => $name) : (),
                       defined $title ? (title => $title) : () } }
              split / /, $text;

    return [http => 500, {}, 'broken'] if $V->{fail};
    return { $member => \@all } unless $V->{paged};

    my $n = $r->{json}{params}{cursor} || 0;

    return { $member => [ $all[$n] ],
             $n + 1 < @all ? (nextCursor => $n + 1 . '') : () };
}


sub server {
    my ($tools, %o) = @_;

    my $get = sub {
        my ($what, $default) = @_;
        my $v = $Mcp::Upstream::V{$what};
        return defined $v ? $v : $default;
    };

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { map { $_ => { listChanged => JSON::PP::true() } }
                          qw(tools prompts resources) },
        'tools/list' => sub {
            entries($_[0], 'tools', 'name', $get->('tools', $tools));
        },
        $o{lone} ? () : (
            'prompts/list' => sub {
                entries($_[0], 'prompts', 'name', $get->('prompts', 'p'));
            },
        ),
        'resources/list' => sub {
            entries($_[0], 'resources', 'uri',
                    $get->('resources', $o{uris} || 'r:all'));
        },
        'resources/templates/list' => sub {
            entries($_[0], 'resourceTemplates', 'uriTemplate',
                    $get->('templates', 't:{x}'));
        },
        'tools/call' => sub {
            return { content => [ { type => 'text',
                                    text => $_[0]{json}{params}{name} } ] };
        },
        'resources/read' => sub {
            my $uri = $_[0]{json}{params}{uri};
            return { contents => [ { uri => $uri, text => $uri } ] };
        },
        GET => sub { return ([sse => {}], [tag => 'listen'], [hang =>]) },
    ), $o{port} ? (port => $o{port}) : ());
}


my $long = 'long-' . 'x' x 80;

my %up = (a => server('x y=Title', uris => 'r:all r:a'),
          b => server("x y=Title $long", lone => 1),
          c => server('x a__y', uris => 'r:c r:all'),
          k => server('x', uris => 'r:all r:a'));
my $late = free_port();

sub conf {
    my (%o) = @_;

    my $c = $o{c} ? "mcp_upstream c /_c prefix=none;" : '';
    my $prefix = $o{prefix} || 'a';

    return <<"EOF";
mcp_zone zone=main:16m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_list_cache on ttl=1h;
    mcp_drain_time 100ms;

    location = /mcp {
        mcp_endpoint zone=main name=all;
        mcp_upstream a /_a prefix=$prefix;
        mcp_upstream b /_b;
        $c
    }

    location = /late {
        mcp_endpoint zone=main name=late;
        mcp_upstream a /_a;
        mcp_upstream d /_d;
    }

    location = /kinds {
        mcp_endpoint   zone=main name=kinds;
        mcp_list_cache on kinds=tools,resources;
        mcp_upstream   k /_k;
    }

    location = /one { mcp_endpoint zone=main name=one; mcp_upstream k /_k; }

    location = /warm {
        mcp_endpoint   zone=main name=warm;
        mcp_list_cache on warm=on kinds=prompts;
        mcp_upstream   b /_b;
        mcp_upstream   c /_c;
    }

    location = /_a { internal; proxy_pass http://127.0.0.1:%%A%%; }
    location = /_b { internal; proxy_pass http://127.0.0.1:%%B%%; }
    location = /_c { internal; proxy_pass http://127.0.0.1:%%C%%; }
    location = /_k { internal; proxy_pass http://127.0.0.1:%%K%%; }
    location = /_d { internal; proxy_pass http://127.0.0.1:%%LATE%%; }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOF
}

my $t = Mcp::Test->new(conf => conf(c => 1), vars => {
    LATE => $late, map { uc $_ => $up{$_}->port } keys %up });
my @w = $t->workers;
my ($r, %s, %g);


# warm=on: they are there before anybody asks

ok(wait_for { kept('warm', 'prompts')->{entries} == 1 },
   'a list is fetched before it is asked for');
is(scalar $up{c}->calls('tools/list'), 0, 'of the kinds that are kept');
$_->clear for values %up;
$s{warm} = $t->session(path => '/warm');
is(names('warm', 'prompts'), 'c__p', 'of upstreams that have it');
is(scalar $up{c}->calls('prompts/list'), 0, 'and served');


# one list of all, in configured order

$s{a} = $t->session(conn => $t->conn_on_worker($w[0]));
$s{b} = $t->session(conn => $t->conn_on_worker($w[1]));

my $cut = (grep { /^b__long/ } split / /, names('a'))[0];
is(length $cut, 64, 'a name that is too long is cut');
like($cut, qr/x_[0-9a-f]{8}$/, 'and tells by its end which it is');

is(names($_), "a__x a__y b__x b__y $cut x", 'tools') for qw(a b);
is(titles('a'), 'Title|Title (b)', 'equal titles are told apart');
is(names($_, 'prompts'), 'a__p p', 'prompts of those that have them')
    for qw(a b);
is(names('a', 'resources', 'uri'), 'r:all r:a r:c', 'resources');
is(names('b', 'resources/templates', 'uriTemplate'), 't:{x}', 'templates');
is(scalar $up{$_}->calls('tools/list'), 1, "$_ was asked once") for qw(a b c);

my @hidden = $t->log =~ /(\[warn\] .*are hidden.*)/g;
is(scalar(grep { /upstream "c"/ && /tools/ && /a__y.* of upstream "a"/ }
          @hidden), 1, 'a name like those of others is hidden, logged once');
is(scalar(grep { /upstream "[bc]"/ && /resources\/list/ && /r:all/ } @hidden),
   2, 'as are equal URIs');

$up{$_}->clear for qw(a b c);
is($s{$_}->tool($cut)->{result}{content}[0]{text}, $long,
   'a cut name is found in the list') for qw(a b);
is(scalar $up{b}->calls('tools/list'), 0, 'which is not fetched for that');
is($s{b}->call('resources/read', { uri => 'r:c' })->{result}{contents}[0]{uri},
   'r:c', 'a resource is read');
is(scalar $up{$_}->calls('resources/read'), $_ eq 'c' ? 1 : 0,
   "where it was listed: $_") for qw(a b c);

$r = $s{a}->call('tools/list', { cursor => 'x' });
is($r->{error}{code}, -32602, 'an unknown cursor');


# each part changes by itself, once for all

$g{$_} = $s{$_}->open_get(conn => $t->conn) for qw(a b);
ok(wait_for { $up{a}->held('listen') && $up{b}->held('listen')
              && $up{c}->held('listen') }, 'listeners are up');
$_->clear for values %up;

change('b', tools => 'z');
hears($_, 'tools') for qw(a b);
is(names($_), 'a__x a__y b__z x', "$_ has the new part") for qw(a b);
quiet('once');
is(scalar $up{$_}->calls('tools/list'), 0, "$_ is not asked") for qw(a c);

my $unchanged = stat_of('unchanged');
said('b', 'tools');
ok(wait_for { stat_of('unchanged') > $unchanged }, 'an equal part');
quiet('is no change');

$up{a}->set(tools => 'x');
$up{c}->set(tools => 'w a__y');
$t->publish(notification('tools/list_changed'));
ok(wait_for { names('a') eq 'a__x b__z w' }, 'two that changed');
is(names('b'), 'a__x b__z w', 'on both workers');
hears($_, 'tools') for qw(a a b b);
quiet('once for each');


# entries behind those of other upstreams change nothing that clients see

my $changed = stat_of('unchanged');
$up{c}->set(resources => 'r:c r:all=Other');
said('c', 'resources');
ok(wait_for { stat_of('unchanged') > $changed }, 'a hidden entry changes');
quiet('and nobody is told');
change('c', resources => 'r:c=New r:all=Other');
hears($_, 'resources') for qw(a b);
is(names('a', 'resources', 'uri'), 'r:all r:a r:c', 'one that is seen');
$up{c}->set(resources => undef);
said('c', 'resources');
hears($_, 'resources') for qw(a b);


# pages of one are walked whole

$up{b}->set(paged => 1);
change('b', tools => 'one two three four');
hears($_, 'tools') for qw(a b);
is(names('b'), 'a__x b__one b__two b__three b__four w',
   'all pages of an upstream');
$up{b}->set(paged => 0);


# a part that fails stays

my $failed = stat_of('failed');
$up{b}->set(fail => 1);
change('b', tools => 'five');
ok(wait_for { stat_of('failed') > $failed }, 'one fails');
change('a', tools => 'x y');
hears($_, 'tools') for qw(a b);
is(names('a'), 'a__x a__y b__one b__two b__three b__four w',
   'its part stays, others change');
$up{b}->set(fail => 0);
hears($_, 'tools') for qw(a b);
is(names('b'), 'a__x a__y b__five w', 'until it answers again');
quiet('which is told once');


# one is away and comes back, as in a deploy

my $port = $up{b}->port;
$up{b}->stop;
change('a', tools => 'x');
hears($_, 'tools') for qw(a b);
is(names('a'), 'a__x b__five w', 'the part of one that is away stays');
$s{new} = $t->session;
is(names('new'), 'a__x b__five w', 'also for a new client');
quiet('nothing is said of it');
$up{b} = server('five six', lone => 1, port => $port);
hears($_, 'tools') for qw(a b);
is(names('b'), 'a__x b__five b__six w', 'it is back, with other tools');
quiet('told once');


# one that was never reached is left out

$s{late} = $t->session(path => '/late');
$g{late} = $s{late}->open_get(conn => $t->conn);
is(names('late'), 'a__x', 'what is there is served');
is(kept('late', 'tools')->{left_out}, 1, 'mcp_status shows what is missing');
ok(wait_for { $t->log =~ /\[error\] .*upstream "d".* is left out .*tools/ },
   'and the log');

my $d = server('d1 d2', port => $late);
hears('late', 'tools');
is(names('late'), 'a__x d__d1 d__d2', 'it arrives');
is(kept('late', 'tools')->{left_out}, 0, 'nothing is missing');
quiet('told once');


# kinds that are not kept pass through

$s{kinds} = $t->session(path => '/kinds');
$s{one} = $t->session(path => '/one');
is(names($_), 'x', "tools of $_") for qw(kinds one);
$up{k}->clear;
is(names('kinds', 'prompts'), 'p', 'a kind that is not kept') for 1 .. 2;
is(names('kinds', 'resources', 'uri'), 'r:all r:a', 'a kind that is')
    for 1 .. 2;
is(scalar $up{k}->calls('prompts/list'), 2, 'is asked for each time');
is(scalar $up{k}->calls('resources/list'), 1, 'is asked for once');

$g{kinds} = $s{kinds}->open_get(conn => $t->conn);
ok(wait_for { $up{k}->held('listen') == 3 },
   'two shared sessions and its own listen');

# the answer to one of them may be on its way, and the first change come twice

said('k', 'prompts');
hears('kinds', 'prompts');
$t->publish(notification('message', { level => 'info', data => 'ready' }));
ok(wait_for { heard('kinds') eq 'ready' }, 'nginx has the answers to all');
for my $who (grep { $_ ne 'kinds' } keys %g) {
    is(heard($who), 'ready', "$who heard nothing of it");
}

said('k', 'prompts');
hears('kinds', 'prompts');
quiet('its change is passed on');
change('k', templates => 'u:{x}');
hears('kinds', 'resources');
is(names('kinds', 'resources/templates', 'uriTemplate'), 'u:{x}',
   'the other one of a pair');
change('k', resources => 'r:all r:b');
hears('kinds', 'resources');
is(names('kinds', 'resources', 'uri'), 'r:all r:b', 'and this one');
quiet('once each');


# other upstreams by a reload

renewed('without one', {}, 'a__x b__five b__six',
        qw(prompts resources tools));
renewed('with another prefix', { prefix => 'other' },
        'other__x b__five b__six', qw(prompts tools));
renewed('with one more', { prefix => 'other', c => 1 },
        'other__x b__five b__six w a__y', qw(prompts resources tools));
renewed('without a change', { prefix => 'other', c => 1 },
        'other__x b__five b__six w a__y');

done_testing();


sub names {
    my ($who, $what, $name) = @_;

    $what ||= 'tools';
    $name ||= 'name';

    my $r = $s{$who}->call("$what/list");
    my ($list) = grep { ref eq 'ARRAY' } values %{ $r->{result} || {} };

    # the module's own stand in front

    return join ' ', grep { !/^events:/ } map { $_->{$name} }
                     @{ $list || [] };
}


sub titles {
    my ($who) = @_;

    my $r = $s{$who}->call('tools/list');

    return join '|', map { $_->{title} || () } @{ $r->{result}{tools} };
}


sub kept {
    my ($endpoint, $list) = @_;

    my ($kept) = grep { $_->{endpoint} eq $endpoint && $_->{list} eq $list }
                 @{ $t->status->{lists}{kept} };

    return $kept || { entries => -1 };
}


sub said {
    my ($up, $kind) = @_;

    $up{$up}->emit('listen', [event => notification("$kind/list_changed")]);
}


sub change {
    my ($up, $kind, $list) = @_;

    $up{$up}->set($kind => $list);
    said($up, $kind eq 'templates' ? 'resources' : $kind);
}


# the list that the next event tells of, or its data; streams end with workers

sub heard {
    my ($who) = @_;

    for (1 .. 3) {
        my $e = $g{$who}->event_where(sub { $_->{data} ne '' });

        if ($e) {
            my $method = $e->{json}{method} || $e->{data};

            return $method =~ m{^notifications/(\w+)/list_changed$}
                   ? $1 : $e->{json}{params}{data} || $method;
        }

        return 'nothing' unless $g{$who}->ended;

        $g{$who} = $s{$who}->open_get(conn => $t->conn,
                                      last_event_id => $g{$who}->last_id);
    }

    return 'nothing';
}


sub hears {
    my ($who, $kind) = @_;

    is(heard($who), $kind, "$who hears of $kind");
}


sub quiet {
    my ($name, @who) = @_;

    $t->publish(notification('message', { level => 'info', data => 'mark' }));

    my @loud = map { my $h = heard($_); $h eq 'mark' ? () : "$_: $h" }
               sort @who ? @who : keys %g;

    is("@loud", '', $name);
}


sub renewed {
    my ($name, $how, $tools, @kinds) = @_;

    ok($t->reload(conf => conf(%$how)), "a reload $name");
    ok($t->wait_old, 'the old workers are gone');

    @w = $t->workers;
    $s{a}{conn} = $t->conn_on_worker($w[0]);
    $s{b}{conn} = $t->conn_on_worker($w[1]);

    ok(wait_for { names('a') eq $tools }, "tools $name")
        or diag(names('a'));
    is(names('b'), $tools, 'on both workers');

    for my $who (qw(a b)) {
        is(join(' ', sort map { heard($who) } @kinds), "@kinds",
           "$who hears of what changed");
    }

    # kinds that are not kept may have changed unnoticed: clients hear of them

    quiet('and nothing more', grep { $_ ne 'kinds' } keys %g);
}


sub stat_of { $t->status->{lists}{$_[0]} }
