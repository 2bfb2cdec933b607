#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# server-everything has more tools for clients that can be asked: each client
# gets the same tools through cached lists as straight, and can call them.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Everything;

my $e = Mcp::Everything->new('mcp_list_cache on;');
my $t = $e->{t};
my ($port) = $e->{straight} =~ /:(\d+)/;
my %seen;

for my $caps ({}, { roots => {} }, { sampling => {} }, { elicitation => {} },
              { elicitation => { url => {} } },
              { sampling => {}, roots => {},
                elicitation => { form => {}, url => {} } })
{
    my $name = json_encode($caps);
    my $straight = tools($t->session(port => $port, caps => $caps));
    my $through = tools($t->session(caps => $caps));

    is($through, $straight, "the tools of a client that declares $name");
    $seen{$straight} = 1;
}

is(scalar keys %seen, 6, 'clients that differ see different tools');

my $s = $t->session(caps => { elicitation => {} });
my $sse = $s->stream('tools/call', { name => 'trigger-elicitation-request' });
my $ask = $sse->event_where(sub { ($_->{json}{method} || '')
                                  eq 'elicitation/create' });
$s->respond($ask->{json}{id}, { action => 'decline' });
like($sse->event_where(sub { $_->{json}{result} })->{data}, qr/declined/,
     'one of them is called, and the client asked');

done_testing();


sub tools {
    my ($s) = @_;

    return join ' ', sort map { $_->{name} }
                     @{ $s->call('tools/list')->{result}{tools} };
}
