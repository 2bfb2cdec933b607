package Mcp::Session;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An MCP client of the legacy revisions: one session, each request on a
# connection of its own unless told otherwise.

use strict;
use warnings;

use Carp qw(croak);

use Mcp::Http;


# options: path (/mcp), port, headers (on every request), version, caps,
# info, conn (used for every request that is given none), accept, lazy

sub new {
    my ($class, %o) = @_;

    my $self = bless {
        path => '/mcp', headers => {}, version => '2025-11-25', caps => {},
        info => { name => 'mcp-test', version => '1.0' }, next => 1,
        accept => 'application/json, text/event-stream', %o
    }, $class;

    return $self if $self->{lazy};

    $self->initialize;

    croak "initialize: $self->{init}{status} $self->{init}{body}"
        unless $self->{init}{status} == 200 && $self->{server};

    $self->notify('notifications/initialized');

    return $self;
}


sub id { $_[0]{id} }


# sends initialize; {init} is the response, {server} its result

sub initialize {
    my ($self, %o) = @_;

    my $r = $self->post({
        jsonrpc => '2.0', id => $self->next_id, method => 'initialize',
        params => {
            protocolVersion => $self->{version},
            capabilities => $self->{caps}, clientInfo => $self->{info}
        },
    }, %o);

    $self->{init} = $r;
    $self->{id} = $r->{headers}{'mcp-session-id'};
    $self->{server} = $r->{json}{result} if ref $r->{json} eq 'HASH';
    $self->{negotiated} = $self->{server}{protocolVersion}
        if $self->{server};

    return $r;
}


sub next_id { $_[0]{next}++ }


sub request_headers {
    my ($self, %o) = @_;

    my %h = (
        'Content-Type' => 'application/json', Accept => $self->{accept},
        'Mcp-Session-Id' => $self->{id},
        'MCP-Protocol-Version' => $self->{negotiated}, %{ $self->{headers} },
        %{ $o{headers} || {} }
    );

    return \%h;
}


sub connection {
    my ($self, %o) = @_;

    return $o{conn} if $o{conn};
    return $self->{conn} if $self->{conn};
    return $self->{t}->conn(port => $self->{port},
                            $o{rcvbuf} ? (rcvbuf => $o{rcvbuf}) : ());
}


# POST of a message (made JSON if it is a reference). The response has beside
# what Mcp::Http says: {messages}, all JSON-RPC messages that came, and {json},
# the one that answers

sub post {
    my ($self, $message, %o) = @_;

    my $body = ref $message ? Mcp::Http::json_encode($message) : $message;
    my $conn = $self->connection(%o);
    my $r = $conn->request('POST', $self->{path},
                           $self->request_headers(%o), $body, %o);

    return $r if $o{stream};
    return $self->read_response($r);
}


sub read_response {
    my ($self, $r) = @_;

    my $type = $r->{headers}{'content-type'} || '';

    $r->{messages} = [];

    if ($type =~ m{^text/event-stream}) {
        my $sse = Mcp::Sse->new({
            %$r, reader => Mcp::Body::whole($r->{body})
        });

        $r->{events} = [$sse->drain(0)];
        $r->{messages} = [grep { ref } map { $_->{json} } @{ $r->{events} }];
        $r->{sse} = 1;

    } elsif ($type =~ m{^application/json}) {
        my $m = Mcp::Http::json_decode($r->{body});
        $r->{messages} = ref $m eq 'ARRAY' ? $m : ref $m ? [$m] : [];
        $r->{json} = $m if ref $m;
    }

    if (!$r->{json}) {
        ($r->{json}) = grep {
            !exists $_->{method} && (exists $_->{result}
                                     || exists $_->{error})
        } @{ $r->{messages} };
    }

    return $r;
}


# a request and its answer: the JSON-RPC response, with the HTTP response in
# {http}; undef if none came (then see {last})

sub call {
    my ($self, $method, $params, %o) = @_;

    my $r = $self->post($self->message($method, $params, %o), %o);

    $self->{last} = $r;

    return undef unless ref $r->{json} eq 'HASH';
    return { %{ $r->{json} }, http => $r };
}


sub tool {
    my ($self, $name, $arguments, %o) = @_;

    return $self->call('tools/call',
                       { name => $name, arguments => $arguments || {},
                         $o{meta} ? (_meta => $o{meta}) : () }, %o);
}


sub message {
    my ($self, $method, $params, %o) = @_;

    return {
        jsonrpc => '2.0',
        id => exists $o{id} ? $o{id} : $self->next_id, method => $method,
        defined $params ? (params => $params) : ()
    };
}


sub notify {
    my ($self, $method, $params, %o) = @_;

    return $self->post({
        jsonrpc => '2.0', method => $method,
        defined $params ? (params => $params) : ()
    }, %o);
}


# answers to requests of the server

sub respond {
    my ($self, $id, $result, %o) = @_;
    return $self->post({ jsonrpc => '2.0', id => $id, result => $result },
                       %o);
}


sub respond_error {
    my ($self, $id, $code, $message, %o) = @_;
    return $self->post({ jsonrpc => '2.0', id => $id,
                         error => { code => $code, message => $message } },
                       %o);
}


# a request whose answer is read as it comes: an Mcp::Sse whose {id} is the
# request's; ->{json} instead if the answer was JSON

sub stream {
    my ($self, $method, $params, %o) = @_;

    my $m = $self->message($method, $params, %o);
    my $r = $self->post($m, %o, stream => 1);

    my $sse = Mcp::Sse->new($r);
    $sse->{id} = $m->{id};

    if ($r->{status} && ($r->{headers}{'content-type'} || '')
        !~ m{^text/event-stream})
    {
        $r->{reader}->slurp($o{timeout} || 10);
        $sse->{content} = $r->{reader}{out};
        $sse->{json} = Mcp::Http::json_decode($r->{reader}{out});
    }

    return $sse;
}


# writes a request and does not wait for anything; the connection, whose
# ->response is read later

sub send_only {
    my ($self, $message, %o) = @_;

    my $body = ref $message ? Mcp::Http::json_encode($message) : $message;
    my $conn = $self->connection(%o);

    $conn->connect unless $conn->alive;
    $conn->write($conn->format_request('POST', $self->{path},
                                       $self->request_headers(%o), $body));
    return $conn;
}


# GET stream; last_event_id => '...'

sub open_get {
    my ($self, %o) = @_;

    my $h = $self->request_headers(%o);

    delete $h->{'Content-Type'};
    $h->{Accept} = 'text/event-stream'
        unless $o{headers} && $o{headers}{Accept};
    $h->{'Last-Event-ID'} = $o{last_event_id} if defined $o{last_event_id};

    my $r = $self->connection(%o)->request('GET', $self->{path}, $h, undef,
                                           %o, stream => 1);

    return Mcp::Sse->new($r);
}


sub delete {
    my ($self, %o) = @_;

    my $h = $self->request_headers(%o);

    return $self->connection(%o)->request('DELETE', $self->{path}, $h, undef,
                                          %o);
}


1;
