#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Events of a kind, without mcp_invalidate, as a topic of the same name: for
# clients of all revisions that asked for it, once each, and stored only where
# somebody has.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Modern;
use Mcp::Sse;

my $t = Mcp::Test->new(conf => <<'EOF');
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_builtin_tools wait_for_event;
    mcp_stream_after  0;

    location = /mcp {
        mcp_endpoint zone=main name=mcp;
        mcp_tenant $http_x_tenant;
    }

    location = /rules {
        mcp_endpoint zone=main name=rules;
        mcp_invalidate * message=$kind;
    }

    location = /join {
        mcp_endpoint zone=main name=join;
        mcp_coalesce 200ms;
    }

    location = /publish { mcp_publish zone=main endpoint=mcp; }
    location = /rules-publish { mcp_publish zone=main endpoint=rules; }
    location = /join-publish { mcp_publish zone=main endpoint=join; }
    location = /status { mcp_status zone=main; }
}
EOF

my $URI = 'events://document/latest';
my $a = Mcp::Modern->new($t, headers => { 'X-Tenant' => 'a' });
my $b = Mcp::Modern->new($t, headers => { 'X-Tenant' => 'b' });
my %s = map { $_ => $t->session(headers => { 'X-Tenant' => 'a' }) } qw(x y);
my %get = map { $_ => $s{$_}->open_get } sort keys %s;


# nobody asked for it

publish({ kind => 'document', tenant_id => 'a', n => 0 });
is(Mcp::Modern::said($a->call('resources/read', { uri => $URI })),
   '200 -32602', 'nobody asked: nothing is stored');
is(next_of('x')->{params}{data}, 'documents_updated', 'but told as ever');
next_of('y');


# those who ask are told, and can read it

my $listens = listens($a, $URI);
my $others = listens($b, $URI);

$s{x}->call('resources/subscribe', { uri => $URI });

publish({ kind => 'document', tenant_id => 'a', reason => 'new', n => 1 });

is_deeply([updates($listens)], [$URI], 'who listens is told');
is_deeply([map { $_->{n} } events($a)], [1], 'and finds the event');

is(next_of('x')->{params}{data}, 'documents_updated', 'a session gets both');
is(next_of('x')->{method}, 'notifications/resources/list_changed',
   'the topic is new');
is(next_of('x')->{params}{uri}, $URI, 'as it subscribed');
is(next_of('y')->{method}, $_, 'another one: only that')
    for qw(notifications/message notifications/resources/list_changed);

publish({ kind => 'chunk', tenant_id => 'a' });
publish({ kind => 'document', tenant_id => 'b', n => 2 });
publish({ kind => 'document', tenant_id => 'a', n => 3 });

is_deeply([updates($listens)], [$URI], 'only this kind, of this tenant');
is_deeply([updates($others, 'b')], [$URI], 'as for another tenant');
is_deeply([map { $_->{n} } events($a)], [1, 3], 'its events');
is_deeply([map { $_->{n} } events($b)], [2], 'and those of the other');

publish({ kind => 'document', n => 4 });
is_deeply([updates($listens)], [$URI], 'an event for all tenants');
is_deeply([updates($others, 'b')], [$URI], 'reaches each');
is_deeply([map { $_->{n} } events($b)], [2, 4], 'is in each topic');


# an event with a topic of its own is one of that topic alone

publish({ kind => 'document', topic => 'mine', tenant_id => 'a', n => 5 });
publish({ kind => 'document', topic => 'document', tenant_id => 'a', n => 6 });
is_deeply([updates($listens)], [$URI], 'once, where it is the same topic');
is_deeply([map { $_->{n} } events($a)], [1, 3, 4, 6], 'and stored once');


# who waits

my $conn = $a->send_only($a->message('tools/call', {
    name => 'wait_for_event', arguments => { topic => 'odd kind/1' } }));
ok((wait_for { $t->status->{calls}{running} == 1 }), 'a call waits');
publish({ kind => 'odd kind/1', tenant_id => 'a', n => 7 });
is(json_decode($conn->response('POST')->{body})
   ->{result}{structuredContent}{event}{n}, 7, 'for a kind of any name');


# rules say themselves what is told

my $rules = Mcp::Modern->new($t, path => '/rules');
my $ruled = listens($rules, $URI);

$t->publish({ kind => 'document' }, '/rules-publish');
$t->publish({ kind => 'x', topic => 'document' }, '/rules-publish');
is_deeply([updates($ruled, undef, '/rules-publish')], [$URI],
          'not with rules');


# mcp_coalesce joins what is told, not what is stored

my $join = Mcp::Modern->new($t, path => '/join');
my $joined = listens($join, $URI);

$t->publish([map { { kind => 'document', n => $_ } } 1 .. 5],
            '/join-publish');
my @n = (next_update($joined), next_update($joined));
is_deeply(\@n, [$URI, $URI], 'the first at once, others together');
is_deeply([map { $_->{n} } events($join)], [1 .. 5], 'all are stored');

is_deeply([updates($joined, undef, '/join-publish')], [], 'and no more');

done_testing();


sub publish { is($t->publish(@_)->{status}, 202, 'published') }


sub listens {
    my ($client, $uri) = @_;

    my $sse = Mcp::Sse->new($client->post(
        $client->message('subscriptions/listen', { notifications => {
            resourceSubscriptions => [$uri, 'x:end'] } }),
        undef, stream => 1));

    my $ack = $sse->event;
    is($ack->{json}{method}, 'notifications/subscriptions/acknowledged',
       'listens');

    return $sse;
}


sub next_update {
    my ($sse) = @_;

    while (my $e = $sse->event) {
        return $e->{json}{params}{uri} if ref $e->{json};
    }
}


# what is told to a listener of a tenant (a) before a marker for the same

sub updates {
    my ($sse, $tenant, $path) = @_;
    my @uris;

    $t->publish({ %{ notification('resources/updated', { uri => 'x:end' }) },
                  $path ? () : (tenant_id => $tenant || 'a') },
                $path || '/publish');

    while (my $uri = next_update($sse)) {
        return @uris if $uri eq 'x:end';
        push @uris, $uri;
    }

    return (@uris, 'no marker');
}


# of a session, passing over events without a message

sub next_of {
    my ($who) = @_;

    while (my $e = $get{$who}->event) {
        next unless ref $e->{json};
        next if ($e->{json}{params}{uri} || '') eq 'x:end';
        return $e->{json};
    }
}


sub events {
    my ($client) = @_;

    my $r = $client->call('resources/read', { uri => $URI })->{json};

    return map { $_->{event} }
           @{ json_decode($r->{result}{contents}[0]{text})->{events} };
}
