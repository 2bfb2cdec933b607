package Mcp::Modern;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Requests of clients of revision 2026-07-28, each on a connection of its own.

use strict;
use warnings;

use Mcp::Http;
use Mcp::Sse;

our $VERSION_NAME = '2026-07-28';
our $KEY = 'io.modelcontextprotocol/';

my $id = 0;
my %named = map { $_ => 1 } qw(tools/call prompts/get resources/read);


# new($t, path => '/mcp', headers => {}, caps => {})

sub new {
    my ($class, $t, %o) = @_;
    return bless { t => $t, path => '/mcp', headers => {}, caps => {}, %o },
                 $class;
}


# a request with its envelope; members of _meta are given, undef: without it

sub message {
    my ($self, $method, $params, %meta) = @_;

    my $m = { "${KEY}protocolVersion" => $VERSION_NAME,
              "${KEY}clientCapabilities" => ref $self ? $self->{caps} : {},
              %meta };
    delete $m->{$_} for grep { !defined $m->{$_} } keys %$m;

    return { jsonrpc => '2.0', id => ++$id, method => $method,
             params => { %{ $params || {} }, _meta => $m } };
}


# the headers of a message, but for those that are given

sub headers {
    my ($self, $message, %h) = @_;

    my $p = $message->{params} || {};
    my $name = defined $p->{name} ? $p->{name} : $p->{uri};
    my $method = $message->{method} || '';

    return { 'Content-Type' => 'application/json',
             Accept => 'application/json, text/event-stream',
             'MCP-Protocol-Version' => $VERSION_NAME,
             'Mcp-Method' => $method,
             'Mcp-Name' => $named{$method} ? $name : undef,
             (ref $self ? %{ $self->{headers} } : ()), %h };
}


# POST of a message: the response, with its {json}

sub post {
    my ($self, $message, $headers, %o) = @_;

    my $r = $self->{t}->post($self->{path},
                             $self->headers($message, %{ $headers || {} }),
                             Mcp::Http::json_encode($message), %o);

    $r->{json} = Mcp::Http::json_decode($r->{body}) unless $o{stream};

    return $r;
}


# (method, params, headers => {}, meta => {}): likewise

sub call {
    my ($self, $method, $params, %o) = @_;

    return $self->post($self->message($method, $params, %{ $o{meta} || {} }),
                       $o{headers});
}


# (tool, arguments, members of _meta): the response to tools/call as a stream

sub stream {
    my ($self, $name, $arguments, %meta) = @_;

    return Mcp::Sse->new($self->post(
        $self->message('tools/call', { name => $name,
                                       arguments => $arguments || {} }, %meta),
        undef, stream => 1));
}


# (message, connection): sends it and does not wait: the connection

sub send_only {
    my ($self, $message, $c) = @_;

    $c ||= $self->{t}->conn;

    $c->connect;
    $c->write($c->format_request('POST', $self->{path},
                                 $self->headers($message),
                                 Mcp::Http::json_encode($message)));

    return $c;
}


# "status code", or "status resultType": what an answer says

sub said {
    my ($r) = @_;

    my $j = $r->{json} || {};

    return $r->{status} . ' '
        . ($j->{error} ? $j->{error}{code}
                       : $j->{result} ? $j->{result}{resultType} || 'result'
                                      : 'nothing');
}


1;
