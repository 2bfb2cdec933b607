#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# The MCP Inspector as a command: what it prints of the reference server is
# the same with the module between them.

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();

use Mcp::Test;
use Mcp::Everything;

my $e = Mcp::Everything->new;
my $home = File::Temp::tempdir(CLEANUP => 1);

my @inspector = (
    Mcp::Node::node22(),
    Mcp::Node::module('@modelcontextprotocol/inspector')
    . '/clients/launcher/build/index.js', '--cli'
);

my @commands = (
    ['tools/list'],
    ['tools/call', qw(--tool-name echo --tool-arg message=hi)],
    ['tools/call', qw(--tool-name get-sum --tool-arg a=2 b=3)],
    ['tools/call', qw(--tool-name get-tiny-image)],
    ['resources/list'],
    ['resources/templates/list'],
    ['resources/read', '--uri',
     'demo://resource/static/document/architecture.md'],
    ['prompts/list'],
    ['prompts/get', qw(--prompt-name args-prompt --prompt-args city=Paris)],
    ['logging/setLevel', qw(--log-level warning)],
);

for my $command (@commands) {
    my ($method, @args) = @$command;
    my ($code, $wanted) = inspect($e->{straight}, $method, @args);
    my ($code2, $got) = inspect($e->{through}, $method, @args);

    is($code, 0, "$method @args straight");
    is($code2, 0, "$method @args through the module");
    is_deeply($got, $wanted, 'the same');
}

my ($code) = inspect($e->{straight}, 'tools/call', qw(--tool-name none));
my ($code2) = inspect($e->{through}, 'tools/call', qw(--tool-name none));

isnt($code, 0, 'an unknown tool');
is($code2, $code, 'the same');

done_testing();


sub inspect {
    my ($url, $method, @args) = @_;

    my ($code, $rows, $text) = Mcp::Node->run(
        [@inspector, $url, '--transport', 'http', '--method', $method, @args],
        env => { HOME => $home }
    );

    # what is printed on one line is a row already, the rest is text
    my $json = @$rows == 1 ? $rows->[0] : json_decode($text =~ s/\n[^}]*\z//r);

    diag($text) if $code != 0 && "@args" !~ /none/;
    return ($code >> 8, $json);
}
