#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# One of several upstreams does not answer: requests that another one may
# answer do not wait for it, or once only, until it answers again.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;


# $V{silent}: it takes requests and says nothing; $V{mute}: to this tenant

sub server {
    my ($name, @uris) = @_;

    my %has = map { $_ => 1 } @uris;

    my $handler = Mcp::Upstream::mcp(
        capabilities => { tools => {}, resources => {} },
        'tools/list' => sub {
            return ($Mcp::Upstream::V{slow} ? [wait => 0.6] : (),
                    [json => Mcp::Upstream::result($_[0], {
                        tools => [ { name => $name } ] })]);
        },
        'tools/call' => { content => [] },
        'resources/list' => { resources => [] },
        'resources/read' => sub {
            my ($r) = @_;
            my $uri = $r->{json}{params}{uri};
            return [json => Mcp::Upstream::error($r, -32002, 'not found')]
                unless $has{$uri};
            return { contents => [ { uri => $uri, text => $name } ] };
        },
    );

    return Mcp::Upstream->new(sub {
        return [hang =>]
            if $Mcp::Upstream::V{silent}
               || ($Mcp::Upstream::V{mute} || '')
                  eq ($_[0]{headers}{'x-tenant'} || '-');

        return $handler->(@_);
    });
}


my %up = (a => server('one', 'x:a', 'x:all'),
          b => server('two', 'x:b', 'x:b2', 'x:b3', 'x:all'),
          never => Mcp::Upstream->new(sub { [hang =>] }));

my $t = Mcp::Test->new(workers => 1, vars => {
    map { uc $_ => $up{$_}->port } keys %up }, conf => <<'CONF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream a /_a;
        mcp_upstream b /_b;
    }

    location = /never {
        mcp_endpoint zone=main;
        mcp_upstream never /_never;
        mcp_upstream b     /_b;
    }

    location = /said {
        mcp_endpoint zone=main;
        mcp_upstream a /_a protocol=legacy;
        mcp_upstream b /_b;
    }

    location = /tenants {
        mcp_endpoint zone=main;
        mcp_tenant $http_x_tenant;
        mcp_upstream a /_a;
        mcp_upstream b /_b;
    }

    location = /_a     { internal; proxy_pass http://127.0.0.1:%%A%%/; }
    location = /_b     { internal; proxy_pass http://127.0.0.1:%%B%%/; }
    location = /_never { internal; proxy_pass http://127.0.0.1:%%NEVER%%/; }
}
CONF

my ($r, $begin, $took);


# one that never answered

my $s = $t->session(path => '/never');

$begin = time;
is(reads($s, 'x:b'), 'two', 'a resource of another one is read');
within(time - $begin, 0, 4.5, 'without it');
$begin = time;
is(tools($s), 'b__two', 'the list of another one');
within(time - $begin, 0, 4.5, 'likewise');


# one that never had to say what it is, as that is configured

my $m = Mcp::Modern->new($t, path => '/said');

$m->call('tools/list');
$r = $m->call('resources/read', { uri => 'x:all' });
is($r->{json}{result}{contents}[0]{text}, 'one',
   'the first one is asked first') or diag($r->{body});


# one that was there, and becomes silent

$s = $t->session;
is(reads($s, 'x:all'), 'one', 'the first one has it');
is(tools($s), 'a__one b__two', 'a list of both');

$up{a}->set(silent => 1);

$begin = time;
is(tools($s), 'b__two', 'a list without the one that is silent');
$took = time - $begin;
cmp_ok($took, '>', 3, 'which had its time');
within($took, 0, 9, 'and not more');
like($t->log, qr/upstream "a" has not answered tools\/list 5 s after/,
     'the log says so');

$begin = time;
is(tools($s), 'b__two', 'the next list') for 1 .. 3;
is(reads($s, 'x:b2'), 'two', 'a resource');
within(time - $begin, 0, 4.8, 'do not wait for it');

$up{a}->set(silent => 0);
$up{a}->drop;

ok(wait_for { tools($s) eq 'a__one b__two' }, 'it is back');
is(reads($s, 'x:b3'), 'two', 'a resource of the second');
is(reads($s, 'x:a'), 'one', 'and of the first');

# a client does not wait for the list that it has asked for

{
    my $id = $s->next_id;
    my $asks = sub {
        my ($method) = @_;
        return ($up{a}->wait_requests(sub {
            ref $_[0]{json} && ($_[0]{json}{method} || '') eq $method
            && $_[0]{headers}{'x-test-client'};
        }))[0];
    };

    $up{a}->set(silent => 1);
    $up{a}->clear;
    my $conn = $s->send_only($s->message('tools/list', undef, id => $id));
    my $list = $asks->('tools/list');
    $s->notify('notifications/cancelled', { requestId => $id });
    is($conn->response('POST')->{status}, 202, 'a list is cancelled');
    is($asks->('notifications/cancelled')->{json}{params}{requestId},
       $list->{json}{id}, 'also at the server that has not answered');
    $up{a}->set(silent => 0);
    $up{a}->drop;
    ok(wait_for { tools($s) eq 'a__one b__two' }, 'the next list is of both');
}

$up{a}->set(silent => 1);
$begin = time;
is(tools($s), 'b__two', 'it is silent again');
cmp_ok(time - $begin, '>', 3, 'and had its time again');

$up{a}->set(silent => 0);


# one tenant's server is silent: others have as much time as ever, also those
# that the worker forgot because of many others

my %s = map { $_ => $t->session(path => '/tenants',
                                headers => { 'X-Tenant' => $_ }) }
        'x' .. 'z', 1 .. 20;

is(tools($s{$_}), 'a__one b__two', "a list for $_") for 'y', 'z', 1 .. 20, 'x';

$up{a}->set(mute => 'x');
is(tools($s{x}), 'b__two', 'a server is silent to one tenant');
$up{a}->set(slow => 1);
is(tools($s{$_}), 'a__one b__two', "and slow to $_, who get its list")
    for qw(y z);
is(reads($s{y}, 'x:all'), 'one', 'who ask it first');

$begin = time;
is(tools($s{x}), 'b__two', 'that tenant does not wait again');
is(reads($s{x}, 'x:all'), 'two', 'and asks it last');
within(time - $begin, 0, 4.5, 'whatever others get');

$up{a}->set($_ => '') for qw(mute slow);
ok(wait_for { tools($s{x}) eq 'a__one b__two' }, 'until it answers again');

done_testing();


sub tools {
    my ($s) = @_;

    my $r = $s->call('tools/list');

    return join ' ', map { $_->{name} } @{ $r->{result}{tools} || [] };
}


sub reads {
    my ($s, $uri) = @_;

    my $r = $s->call('resources/read', { uri => $uri });

    return $r->{result}{contents}[0]{text} || $r->{error}{message};
}
