package Mcp::Http;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An HTTP/1.1 client connection on a raw socket: requests one after another,
# whole responses, or an event stream that is read as it arrives.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use Scalar::Util qw(weaken);
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVBUF IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

use Mcp::Json;
use Mcp::Sse;

our $TIMEOUT = 30 * ($ENV{MCP_SLOW} || 1);

my %open;


# options: port, host, timeout, rcvbuf (a small one makes a slow reader)

sub new {
    my ($class, %o) = @_;

    my $self = bless {
        host => '127.0.0.1', timeout => $TIMEOUT, %o, in => ''
    }, $class;

    $self->connect unless $o{lazy};
    $open{0 + $self} = $self;
    weaken($open{0 + $self});

    return $self;
}


sub DESTROY {
    my ($self) = @_;
    delete $open{0 + $self};
}


sub close_all {
    $_->close for grep { defined } values %open;
}


sub connect {
    my ($self) = @_;

    my $s;

    if ($self->{rcvbuf}) {
        socket($s, Socket::PF_INET(), Socket::SOCK_STREAM(), 0)
            or croak "socket: $!";
        setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack('l', $self->{rcvbuf}));
        connect($s, Socket::sockaddr_in($self->{port},
                                        Socket::inet_aton($self->{host})))
            or croak "connect to $self->{port}: $!";
        $s = IO::Socket::INET->new_from_fd($s, 'r+');

    } else {
        $s = IO::Socket::INET->new(
            PeerAddr => $self->{host}, PeerPort => $self->{port},
            Proto => 'tcp', Timeout => $self->{timeout}
        ) or croak "connect to $self->{port}: $@";
    }

    setsockopt($s, IPPROTO_TCP, TCP_NODELAY, 1);
    $s->autoflush(1);
    $s->blocking(0);

    $self->{sock} = $s;
    $self->{in} = '';
    $self->{eof} = 0;

    return $self;
}


sub sock  { $_[0]{sock} }
sub alive { $_[0]{sock} && !$_[0]{eof} }


sub close {
    my ($self) = @_;

    if ($self->{sock}) {
        CORE::close($self->{sock});
        undef $self->{sock};
    }
}


# ends the connection with RST instead of FIN

sub reset {
    my ($self) = @_;

    setsockopt($self->{sock}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0))
        if $self->{sock};
    $self->close;
}


sub write {
    my ($self, $bytes) = @_;

    my $end = time() + $self->{timeout};
    my $off = 0;

    local $SIG{PIPE} = 'IGNORE';

    while ($off < length $bytes) {
        my $n = syswrite($self->{sock}, $bytes, length($bytes) - $off, $off);

        if (defined $n) {
            $off += $n;
            next;
        }

        return unless $!{EAGAIN} || $!{EINTR};

        my $left = $end - time();
        return if $left <= 0;

        IO::Select->new($self->{sock})->can_write($left);
    }

    return 1;
}


# reads what is there, waiting for at most $timeout; 1: got bytes, 0: end of
# the connection, undef: nothing came

sub fill {
    my ($self, $timeout) = @_;

    return 0 if $self->{eof} || !$self->{sock};

    my $end = time() + $timeout;

    while (1) {
        my $n = sysread($self->{sock}, $self->{in}, 65536,
                        length $self->{in});

        if (defined $n) {
            $self->{at} = time();
            $self->{eof} = 1 if $n == 0;
            return $n ? 1 : 0;
        }

        unless ($!{EAGAIN} || $!{EINTR}) {
            $self->{error} = "$!";
            $self->{eof} = 1;
            return 0;
        }

        my $left = $end - time();
        return undef if $left <= 0;

        IO::Select->new($self->{sock})->can_read($left);
    }
}


sub format_request {
    my ($self, $method, $uri, $headers, $body) = @_;

    my @h = ref $headers eq 'ARRAY' ? @$headers : %{ $headers || {} };
    my %seen;

    # what upstreams are asked for a client has this, see Mcp::Upstream
    push @h, 'X-Test-Client' => 1;

    for (my $i = 0; $i < @h; $i += 2) {
        $seen{lc $h[$i]} = 1;
    }

    unshift @h, Host => "$self->{host}:$self->{port}" unless $seen{host};

    if (defined $body && !$seen{'content-length'}
        && !$seen{'transfer-encoding'})
    {
        push @h, 'Content-Length' => length $body;
    }

    my $r = "$method $uri HTTP/1.1\r\n";

    while (my ($name, $value) = splice @h, 0, 2) {
        next unless defined $value;
        $r .= "$name: $_\r\n" for ref $value ? @$value : $value;
    }

    return "$r\r\n" . (defined $body ? $body : '');
}


# options: timeout, stream (returns as soon as the header is read; the body is
# then read with ->sse or ->body)

sub request {
    my ($self, $method, $uri, $headers, $body, %o) = @_;

    $self->connect unless $self->alive;
    $self->write($self->format_request($method, $uri, $headers, $body));

    return $self->response($method, %o);
}


sub response {
    my ($self, $method, %o) = @_;

    my $timeout = $o{timeout} || $self->{timeout};
    my $end = time() + $timeout;
    my $r;

    while (1) {
        if ($self->{in} =~ s/\A(.*?)\r\n\r\n//s) {
            $r = $self->parse_header($1);

            next if $r->{status} >= 100 && $r->{status} < 200;
            last;
        }

        my $n = $self->fill($end - time());

        return { status => 0, headers => {}, body => '', raw => $self->{in},
                 error => 'no response within ' . $timeout . ' s' }
            unless defined $n;

        return { status => 0, headers => {}, body => '', raw => $self->{in},
                 error => 'connection closed' }
            unless $n;
    }

    $r->{at} = time();
    $r->{conn} = $self;

    my $reader = Mcp::Body->new($self, $r, ($method || '') eq 'HEAD');
    $r->{reader} = $reader;

    return $r if $o{stream};

    if (defined $reader->slurp($end - time())) {
        $r->{body} = $reader->{out};

    } else {
        $r->{body} = $reader->{out};
        $r->{error} = 'response not whole';
    }

    $r->{truncated} = 1 if $reader->{cut};
    delete $r->{reader};
    $self->close if $r->{close} || $self->{eof};

    return $r;
}


sub parse_header {
    my ($self, $text) = @_;

    my ($line, @lines) = split /\r\n/, $text;
    my ($version, $status, $reason) = $line =~ m{^HTTP/(\d\.\d) (\d+) ?(.*)$}
        or croak "not a status line: $line";
    my (%h, @raw);

    for (@lines) {
        my ($name, $value) = /^([^:]+):\s*(.*?)\s*$/
            or croak "not a header line: $_";

        push @raw, [$name, $value];
        $name = lc $name;
        $h{$name} = exists $h{$name} ? "$h{$name}, $value" : $value;
    }

    return {
        version => $version, status => 0 + $status, reason => $reason,
        headers => \%h, raw_headers => \@raw, raw => "$text\r\n\r\n",
        close => $version eq '1.0'
                 || ($h{connection} || '') =~ /\bclose\b/i ? 1 : 0,
    };
}


# the event stream of a response that was asked for with stream => 1

sub sse {
    my ($self, $r) = @_;
    return Mcp::Sse->new($r);
}


sub json_encode { return Mcp::Json::encode($_[0]) }
sub json_decode { return eval { Mcp::Json::decode($_[0]) } }


package Mcp::Body;

# A response body as it arrives, freed of its framing.

use strict;
use warnings;

use Time::HiRes qw(time);


sub new {
    my ($class, $conn, $r, $head) = @_;

    my $self = bless { conn => $conn, out => '', close => $r->{close} },
               $class;
    my $h = $r->{headers};

    if ($head || $r->{status} == 204 || $r->{status} == 304) {
        $self->{kind} = 'none';
        $self->{done} = 1;

    } elsif (($h->{'transfer-encoding'} || '') =~ /chunked/i) {
        $self->{kind} = 'chunked';

    } elsif (defined $h->{'content-length'}) {
        $self->{kind} = 'length';
        $self->{left} = $h->{'content-length'};
        $self->{done} = 1 if $self->{left} == 0;

    } else {
        $self->{kind} = 'eof';
    }

    return $self;
}


# a body that is there already

sub whole {
    my ($bytes) = @_;

    return bless { kind => 'none', done => 1, out => $bytes }, __PACKAGE__;
}


sub decode {
    my ($self) = @_;

    my $conn = $self->{conn};
    my $before = length $self->{out};

    if ($self->{kind} eq 'chunked') {

        while (!$self->{done}) {

            if ($self->{left}) {
                last unless length $conn->{in};

                my $part = substr $conn->{in}, 0, $self->{left}, '';
                $self->{left} -= length $part;
                $self->{out} .= $part;
                $self->{crlf} = 1 unless $self->{left};
                next;
            }

            if ($self->{crlf}) {
                last if length $conn->{in} < 2;

                $self->{bad} = 1 unless $conn->{in} =~ s/\A\r\n//;
                $self->{crlf} = 0;
                $self->{done} = 1 if $self->{bad};
                next;
            }

            if ($self->{trailer}) {
                last unless $conn->{in} =~ s/\A(.*?)\r\n//s;

                $self->{done} = 1 if $1 eq '';
                next;
            }

            last unless $conn->{in} =~ s/\A([0-9a-fA-F]+)[^\r\n]*\r\n//;

            $self->{left} = hex $1;
            $self->{chunks}++;
            $self->{trailer} = 1 unless $self->{left};
        }

    } elsif ($self->{kind} eq 'length') {
        my $part = substr $conn->{in}, 0, $self->{left}, '';

        $self->{left} -= length $part;
        $self->{out} .= $part;
        $self->{done} = 1 unless $self->{left};

    } elsif ($self->{kind} eq 'eof') {
        $self->{out} .= $conn->{in};
        $conn->{in} = '';
    }

    return length($self->{out}) > $before || $self->{done} ? 1 : 0;
}


# 1: more of the body in {out}, or its end was reached; undef: nothing came

sub more {
    my ($self, $timeout) = @_;

    my $r = $self->wait_more($timeout);

    # else nginx lingers for 5 s
    $self->{conn}->close if $self->{done} && $self->{close};

    return $r;
}


sub wait_more {
    my ($self, $timeout) = @_;

    my $end = time() + $timeout;

    return 1 if $self->decode;

    while (1) {
        return 1 if $self->{done};

        my $n = $self->{conn}->fill($end - time());

        return undef unless defined $n;
        return 1 if $self->decode;

        if (!$n) {
            $self->{done} = 1;
            $self->{cut} = 1 if $self->{kind} ne 'eof';
            return 1;
        }
    }
}


sub slurp {
    my ($self, $timeout) = @_;

    my $end = time() + $timeout;

    while (!$self->{done}) {
        my $left = $end - time();
        return undef if $left <= 0 || !defined $self->more($left);
    }

    return $self->{out};
}


1;
