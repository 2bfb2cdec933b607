#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Servers of the TypeScript SDK as its documentation shows them: with its guards
# against DNS rebinding, and with one transport, which has one session.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

Mcp::Node::needed();

sub sdk_server {
    my ($mode, $port) = @_;

    return Mcp::Node->server(port => $port, command => [
        Mcp::Node::node(), 'sdk-server.mjs', $mode, $port ]);
}


sub tools { join ' ', map { $_->{name} } @{ $_[0]{result}{tools} || [] } }


# guards: the first snippet of the README works as printed

{
    my $port = Mcp::Test::free_port();
    my $server = sdk_server('guarded', $port);
    my ($snippet) = Mcp::Test::slurp_file("$Mcp::Test::ROOT/README.md")
        =~ /^```nginx\nload_module.*?\n\nhttp \{\n(.*?)^\}\n```/ms;

    $snippet =~ s/(127\.0\.0\.1|localhost):9001/$1:$port/g;
    $snippet =~ s/listen 8080;/%%LISTEN%%/;

    my $t = Mcp::Test->new(conf => <<"EOC");
$snippet
server {
    listen 127.0.0.1:%%PORT_other%%;
    server_name localhost;

    location = /block { mcp_endpoint zone=main; mcp_upstream block /_block; }
    location = /_block { internal; proxy_pass http://weather/mcp; }

    location = /shut { mcp_endpoint zone=main; mcp_upstream shut /_shut; }
    location = /_shut { internal; proxy_pass http://weather/mcp;
                        proxy_set_header Host weather; }
}
EOC

    my $s = $t->session;
    is(tools($s->call('tools/list')), 'forecast', 'the snippet, guarded');
    is($s->tool('forecast')->{result}{content}[0]{text}, 'sunny', 'a call');
    ok($s->open_get, 'a stream');

    $s = $t->session(path => '/block', port => $t->port('other'));
    is(tools($s->call('tools/list')), 'forecast', 'without a Host line');

    is($t->client(path => '/shut', port => $t->port('other'))
         ->initialize->{status}, 403, 'the guard is on');
    like($t->log, qr/"shut".*"proxy_set_header\ Host\ localhost;"/x,
         'and the log says how to pass it');
    $t->stop;
}


# one session for all

my $port = Mcp::Test::free_port();
my $server = sdk_server('single', $port);

my $t = Mcp::Test->new(vars => { UP => $port }, conf => <<'EOC');
mcp_zone zone=main:4m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up probe=off listen=off;
    }

    location = /probed {
        mcp_endpoint zone=main;
        mcp_upstream probed /_up;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }
}
EOC

sub restart {
    $server->stop;
    $server = sdk_server('single', $port);
}


my $s = $t->session;
my $get = $s->open_get;

for my $worker ($t->workers) {
    my $conn = $t->conn_on_worker($worker);

    is(tools($s->call('tools/list', undef, conn => $conn)), 'forecast',
       'the session is the client\'s, on each worker');
}

is($s->{init}{json}{result}{serverInfo}{name}, 'single', 'its own answer');

ok($t->reload, 'reload');
ok($t->wait_old, 'the old workers are gone');
is($s->tool('forecast')->{result}{content}[0]{text}, 'sunny',
   'it goes on after a reload');

my $r = $t->client->initialize;
is($r->{status}, 400, 'there is no second one');
like($r->{json}{error}{message}, qr/Server already initialized/,
     'as the server says');
is($s->tool('forecast')->{result}{content}[0]{text}, 'sunny',
   'which does not harm the first');
unlike($t->log, qr/proxy_set_header Host/, 'nothing is said of Host');
unlike($t->log, qr/leaves that to a client/, 'nor of what is written already');

restart();
is($s->tool('forecast')->{result}{content}[0]{text}, 'sunny',
   'made anew when the server was restarted');
unlike($t->log, qr/may have changed/, 'the server is what it was');


# the module's own initialize uses it up: the log says what to write

restart();
$s = $t->session(path => '/probed');
$r = $s->call('tools/list');
ok($r->{error}, 'the session is used up');
is_deeply($r->{error}{data}{upstream}, 'probed', 'the upstream is named');
like($t->log, qr/\[error\].*"probed"\ .*refuses\ that\ of\ a\ client
                  .*"probe=off\ listen=off"/x, 'with the remedy');
$s->call('tools/list') for 1 .. 5;
cmp_ok(scalar(() = $t->log =~ /\[error\].*refuses that of a client/g), '<=', 2,
       'once for each worker');

done_testing();
