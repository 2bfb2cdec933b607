package Mcp::Http2;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An HTTP/2 client on a raw socket, without TLS: one request after another,
# read through a window as small as one likes.

use strict;
use warnings;

use Mcp::Http;
use Time::HiRes qw(time);

use constant {
    DATA => 0, HEADERS => 1, RST => 3, SETTINGS => 4, PING => 6, GOAWAY => 7,
    WINDOW => 8,
};


# options: those of Mcp::Http, and window (65535)

sub new {
    my ($class, %o) = @_;

    my $window = delete $o{window} || 65535;
    my $self = bless { conn => Mcp::Http->new(%o), next => 1 }, $class;

    $self->{conn}->write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                         . frame(SETTINGS, 0, 0, pack 'nN', 4, $window));
    return $self;
}


sub frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


# literals without indexing and without Huffman coding

sub literal {
    my ($name, $value) = @_;

    return "\x00" . join '', map { number(length $_) . $_ } $name, $value;
}


sub number {
    my ($n) = @_;

    return chr $n if $n < 127;

    my $out = chr 127;

    for ($n -= 127; $n >= 128; $n >>= 7) {
        $out .= chr($n % 128 + 128);
    }

    return $out . chr $n;
}


# { status, body, error }; only 200 is told from other statuses. pause: a sub
# that is called before each piece of the window is given back

sub request {
    my ($self, $method, $uri, $headers, $body, %o) = @_;

    my $conn = $self->{conn};
    my $id = $self->{next};
    my $end = time() + ($o{timeout} || $Mcp::Http::TIMEOUT);
    my $r = { status => 0, body => '' };

    $self->{next} += 2;

    my $block = join '', map { literal(@$_) }
        [':method', $method], [':scheme', 'http'], [':path', $uri],
        [':authority', 'localhost'],
        map { [lc, $headers->{$_}] }
        grep { defined $headers->{$_} } sort keys %$headers;

    $conn->write(frame(HEADERS, 4, $id, $block) . frame(DATA, 1, $id, $body));

    while (1) {
        my ($type, $flags, $stream, $payload) = $self->frame_until($end);

        return { %$r, error => 'no whole response' } unless defined $type;

        if ($type == SETTINGS && !($flags & 1)) {
            $conn->write(frame(SETTINGS, 1, 0, ''));

        } elsif ($type == PING && !($flags & 1)) {
            $conn->write(frame(PING, 1, 0, $payload));

        } elsif ($type == GOAWAY || ($type == RST && $stream == $id)) {
            return { %$r, error => $type == RST ? 'reset' : 'goaway' };
        }

        next if $stream != $id;

        if ($type == HEADERS) {
            $r->{status} = $payload =~ /\A(?:[\x20-\x3f])*\x88/ ? 200 : 500;

        } elsif ($type == DATA) {
            $r->{body} .= $payload;
            $o{pause}->() if $o{pause};

            my $more = pack 'N', length $payload;
            $conn->write(frame(WINDOW, 0, 0, $more)
                         . frame(WINDOW, 0, $id, $more)) if length $payload;
        }

        return $r if $flags & 1 && ($type == HEADERS || $type == DATA);
    }
}


sub frame_until {
    my ($self, $end) = @_;

    my $conn = $self->{conn};

    while (1) {
        if (length $conn->{in} >= 9) {
            my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN',
                                                              $conn->{in};
            my $len = $high * 65536 + $low;

            if (length $conn->{in} >= 9 + $len) {
                my $payload = substr $conn->{in}, 9, $len;
                substr $conn->{in}, 0, 9 + $len, '';
                return ($type, $flags, $stream, $payload);
            }
        }

        return unless $conn->fill($end - time());
    }
}


1;
