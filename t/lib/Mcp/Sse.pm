package Mcp::Sse;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A reader of an event stream: events, comments and raw lines with the time at
# which they came.

use strict;
use warnings;

use Time::HiRes qw(time);


sub new {
    my ($class, $r) = @_;

    return bless {
        r => $r, body => $r->{reader}, conn => $r->{conn},
        status => $r->{status}, headers => $r->{headers},
        lines => [], queue => [], comments => [], block => {}, text => ''
    }, $class;
}


sub status  { $_[0]{status} }
sub headers { $_[0]{headers} }
sub conn    { $_[0]{conn} }
sub close   { $_[0]{conn}->close }
sub reset   { $_[0]{conn}->reset }

sub retry   { $_[0]{retry} }     # the last retry: seen
sub last_id { $_[0]{last_id} }   # that of the last event, or an id alone
sub lines   { @{ $_[0]{lines} } }  # [time, line], framing removed


# Timeouts are in seconds, 30 by default, and longer in a slow run.

sub end_of {
    my ($timeout) = @_;
    return time() + (defined $timeout ? $timeout : 30) * ($ENV{MCP_SLOW} || 1);
}


# the next event within $timeout seconds, or undef: { id, event, data, json,
# comments, at }; a block that has only an id is an event with data ''

sub event { $_[0]->event_until(end_of($_[1])) }


sub event_until {
    my ($self, $end) = @_;

    while (1) {
        my $e = shift @{ $self->{queue} };
        return $e if $e;
        return undef unless $self->pump($end - time());
    }
}


# the next event that satisfies the sub; those before it are dropped

sub event_where {
    my ($self, $match, $timeout) = @_;

    my $end = end_of($timeout);

    while (1) {
        my $e = $self->event_until($end) or return undef;

        local $_ = $e;
        return $e if $match->($e);
    }
}


# the next JSON-RPC message with this method (or, a number or string of an id,
# the response to it)

sub method {
    my ($self, $method, $timeout) = @_;

    return $self->event_where(sub {
        $_->{json} && ref $_->{json} eq 'HASH'
        && ($_->{json}{method} || '') eq $method
    }, $timeout);
}


sub response {
    my ($self, $id, $timeout) = @_;

    return $self->event_where(sub {
        $_->{json} && ref $_->{json} eq 'HASH' && !exists $_->{json}{method}
        && exists $_->{json}{id} && defined $_->{json}{id}
        && $_->{json}{id} eq $id
    }, $timeout);
}


# all events that come until none came for $quiet seconds

sub drain {
    my ($self, $quiet) = @_;

    my @e;

    while (my $e = $self->event(defined $quiet ? $quiet : 0.3)) {
        push @e, $e;
    }

    return @e;
}


# the next comment line within $timeout seconds: { text, at }

sub comment {
    my ($self, $timeout) = @_;

    my $end = end_of($timeout);

    while (1) {
        my $c = shift @{ $self->{comments} };
        return $c if $c;
        return undef unless $self->pump($end - time());
    }
}


# true if the stream ends within $timeout seconds; events stay to be read

sub eof {
    my ($self, $timeout) = @_;

    my $end = end_of($timeout);

    while (!$self->ended) {
        return 0 unless $self->pump($end - time());
    }

    return 1;
}


sub ended { $_[0]{body}{done} ? 1 : 0 }
sub cut   { $_[0]{body}{cut} ? 1 : 0 }     # ended without a last chunk


sub pump {
    my ($self, $timeout) = @_;

    my $body = $self->{body};

    return 0 if $body->{done} && !length $body->{out};
    return 0 unless defined $body->more($timeout > 0 ? $timeout : 0);

    $self->{text} .= $body->{out};
    $self->{raw} .= $body->{out};
    $body->{out} = '';

    my $at = time();

    while ($self->{text} =~ s/\A([^\r\n]*)(?:\r\n|\n|\r(?!\z))//) {
        $self->take($1, $at);
    }

    return 1;
}


sub take {
    my ($self, $line, $at) = @_;

    push @{ $self->{lines} }, [$at, $line];

    my $b = $self->{block};

    if ($line eq '') {

        if (exists $b->{id} || exists $b->{data} || exists $b->{event}) {
            $b->{at} = $at;
            $self->{last_id} = $b->{id} if exists $b->{id};
            $b->{data} = join "\n", @{ $b->{data} || [] };
            $b->{json} = Mcp::Http::json_decode($b->{data})
                if $b->{data} ne '';
            $b->{comments} ||= [];
            push @{ $self->{queue} }, $b;
            $b = {};
        }

        # comments between events belong to the one that follows
        $self->{block} = $b->{comments} ? { comments => $b->{comments} } : {};
        return;
    }

    if ($line =~ /^:\s?(.*)$/) {
        push @{ $b->{comments} }, $1;
        push @{ $self->{comments} }, { text => $1, at => $at };
        return;
    }

    my ($name, $value) = $line =~ /^([^:]*)(?::\x20?(.*))?$/s;
    $value = '' unless defined $value;

    if ($name eq 'data') {
        push @{ $b->{data} }, $value;

    } elsif ($name eq 'retry') {
        $b->{retry} = $self->{retry} = $value;

    } else {
        $b->{$name} = $value;
    }
}


1;
