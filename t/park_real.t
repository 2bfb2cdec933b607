#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The reference server server-everything asks clients of 2026-07-28: for roots
# on the GET stream of its session, for others on the stream of the call.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Everything;
use Mcp::Modern;
use Mcp::Park;
use Mcp::Test;

my $e = Mcp::Everything->new;
my $t = $e->{t};
my ($here, $there) = $t->workers;

my $c = Mcp::Modern->new($t, caps => { elicitation => {}, sampling => {},
                                       roots => {} });

sub said { Mcp::Modern::said(@_) }
sub text { $_[0]{json}{result}{content}[0]{text} }


# calls a tool, and answers what is asked until the result is there

sub call {
    my ($name, $arguments, $on) = @_;

    my $r = Mcp::Park::call($c, $name, arguments => $arguments,
                            on => $on->[0]);
    my @asked;

    for my $next (@$on[1 .. $#$on], @$on) {
        last if said($r) ne '200 input_required';

        my %requests = %{ $r->{json}{result}{inputRequests} };
        push @asked, map { $_->{method} } values %requests;

        $r = Mcp::Park::again($r, on => $next, answers => {
            map { ($_ => $requests{$_}{method} eq 'roots/list'
                         ? { roots => [{ uri => 'file:///a', name => 'A' }] }
                         : $Mcp::Park::ANSWER{
                               $requests{$_}{method} eq 'elicitation/create'
                               ? 'ask' : 'think' }->()) } keys %requests });
    }

    return ($r, @asked);
}

for my $on ([$here, $there], [$there, $here]) {
    my ($r, @asked) = call('get-roots-list', {}, $on);
    is(said($r), '200 complete', 'get-roots-list');
    like(text($r), qr{file:///a}, 'has the roots of the client');
}

for my $on ([$here, $there], [$there, $here]) {
    my ($r, @asked) = call('trigger-sampling-request',
                           { prompt => 'x', maxTokens => 10 }, $on);
    is(said($r), '200 complete', 'trigger-sampling-request');
    ok((grep { $_ eq 'sampling/createMessage' } @asked), 'asks');
    like(text($r), qr/"y"/, 'and has the answer');
}

done_testing();
