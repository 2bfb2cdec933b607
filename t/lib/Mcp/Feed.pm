package Mcp::Feed;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Event feeds in a process of its own. The path of a request names the feed;
# each has a log, and by default ids that count from 1. Who connects with
# Last-Event-ID gets what came after it, others what comes from then on.
#
#   my $f = Mcp::Feed->new;
#   $f->set('/a', ids => 0, ...)    before or while it is read:
#       ids => 0        events have no ids, nothing is repeated
#       lines => 1      newline-delimited JSON, as type => 'application/..'
#       eol => "\r\n"   of SSE
#       close => 1      without chunks, until the connection ends
#       retry => 200    said at first
#       first => 1      begins with an id alone
#       status => 404, type => 'text/html', body => '..',
#           encoding => 'gzip', after => 3 (Retry-After)   no feed at all
#       hang => 1       accepts and says nothing
#       late => 0.1     sends its header so many seconds later
#       forget => 1     an id is answered with 412
#   $f->say('/a', $event, name => '..')   a ref is made JSON; all get it
#   $f->count('/a', $n, $ms, {..})        says so many events with n => 1 ..
#   $f->raw('/a', $bytes)                 to who is connected, unlogged
#   $f->cut('/a'), $f->refuse, $f->restore
#   $f->info('/a')  { open, most (at once), said, requests => [{ at, id,
#                   accept, headers, uri, closed }] }

use strict;
use warnings;

use parent 'Mcp::Server';


sub set     { my $s = shift; $s->ask('set', @_) }
sub say     { my $s = shift; $s->ask('say', @_) }
sub count   { my $s = shift; $s->ask('count', @_) }
sub raw     { my $s = shift; $s->ask('raw', @_) }
sub cut     { my $s = shift; $s->ask('cut', @_) }
sub info    { my $s = shift; $s->ask('info', @_) }


# waits until the feed is read by so many (1); returns what info says

sub wait_open {
    my ($self, $path, $n) = @_;

    $n = 1 unless defined $n;

    my $info;
    Mcp::Test::wait_for(sub {
        $info = $self->info($path);
        $info->{open} == $n;
    });

    return $info;
}


# waits for so many requests

sub wait_requests {
    my ($self, $path, $n, $timeout) = @_;

    my @r;
    Mcp::Test::wait_for(sub {
        @r = @{ $self->info($path)->{requests} };
        @r >= $n;
    }, $timeout);

    return @r;
}


# waits until all of count() was said

sub wait_said {
    my ($self, $path, $n, $timeout) = @_;
    Mcp::Test::wait_for(sub { $self->info($path)->{said} >= $n }, $timeout);
}


package Mcp::Feed::Child;

use strict;
use warnings;

use Time::HiRes qw(time);

use parent -norequire, 'Mcp::Server::Child';


sub feed {
    my ($self, $path) = @_;

    return $self->{feeds}{$path} ||= {
        path => $path, o => { ids => 1 }, log => [], requests => [], open => 0,
        most => 0, said => 0
    };
}


# says what count() wants said

sub due {
    my ($self, $now) = @_;

    my $next = 3600;

    for my $c (grep { $_->{begins} } $self->conns) {
        my $left = $c->{begins} - $now;

        if ($left <= 0) {
            delete $c->{begins};
            $self->begin($c);

        } elsif ($left < $next) {
            $next = $left;
        }
    }

    for my $f (values %{ $self->{feeds} }) {
        my $c = $f->{count} or next;

        while ($c->{left} && $c->{at} <= $now) {
            my $event = { %{ $c->{event} }, n => ++$c->{n} };

            $self->publish($f, Mcp::Json::encode($event), {});
            $c->{left}--;
            $c->{at} += $c->{step};
        }

        delete $f->{count} unless $c->{left};
        $next = $c->{at} - $now if $c->{left} && $c->{at} - $now < $next;
    }

    return $next;
}


sub received {
    my ($self, $c) = @_;
    $self->request($c) if $c->{in} =~ /\r\n\r\n/ && !$c->{feed};
}


sub request {
    my ($self, $c) = @_;

    my ($line, @headers) = split /\r\n/, $c->{in};
    my ($uri) = $line =~ /^\S+ (\S+)/;
    my %h = map { /^([^:]+):\s*(.*)$/ ? (lc $1, $2) : () } @headers;

    my $f = $c->{feed} = $self->feed($uri =~ s/\?.*//sr);
    my $o = $f->{o};

    $c->{request} = { at => time(), uri => $uri, id => $h{'last-event-id'},
                      accept => $h{accept}, headers => \%h, line => $line };
    push @{ $f->{requests} }, $c->{request};

    return if $o->{hang};

    if ($o->{late}) {
        $c->{begins} = time() + $o->{late};
        return;
    }

    $self->begin($c);
}


sub begin {
    my ($self, $c) = @_;

    my $f = $c->{feed};
    my $o = $f->{o};
    my %h = %{ $c->{request}{headers} };

    my $status = $o->{status};
    $status = 412 if $o->{forget} && defined $h{'last-event-id'};

    if ($status || defined $o->{body}) {
        my $body = defined $o->{body} ? $o->{body} : 'no';
        $c->{out} .= sprintf "HTTP/1.1 %d x\r\nContent-Type: %s\r\n%s"
                     . "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                     $status || 200, $o->{type} || 'text/html',
                     join('', $o->{encoding}
                              ? "Content-Encoding: $o->{encoding}\r\n" : (),
                              defined $o->{after}
                              ? "Retry-After: $o->{after}\r\n" : ()),
                     length $body, $body;
        $c->{last} = 1;
        return;
    }

    my $type = $o->{type} || ($o->{lines} ? 'application/x-ndjson'
                                          : 'text/event-stream');

    $c->{close} = $o->{close};
    $c->{out} .= "HTTP/1.1 200 OK\r\nContent-Type: $type\r\n"
                 . ($o->{close} ? 'Connection: close'
                                : 'Transfer-Encoding: chunked') . "\r\n\r\n";
    $c->{streams} = 1;
    $f->{open}++;
    $f->{most} = $f->{open} if $f->{open} > $f->{most};

    part($c, "retry: $o->{retry}\n\n") if $o->{retry} && !$o->{lines};

    part($c, "id: 0\n\n") if $o->{first} && !defined $h{'last-event-id'};

    if ($o->{ids} && defined $h{'last-event-id'}) {
        my $from = $h{'last-event-id'} =~ /^(\d+)$/ ? $1 : 0;
        part($c, $_->[1]) for grep { $_->[0] > $from } @{ $f->{log} };
    }
}


sub part {
    my ($c, $bytes) = @_;
    $c->{out} .= $c->{close} ? $bytes
                 : sprintf "%x\r\n%s\r\n", length $bytes, $bytes;
}


sub publish {
    my ($self, $f, $data, $o) = @_;

    my $id = ++$f->{said};
    my $eol = $f->{o}{eol} || "\n";
    my $text;

    if ($f->{o}{lines}) {
        $text = "$data$eol";

    } else {
        $text = defined $o->{name} ? "event: $o->{name}$eol" : '';
        $text .= "data: $_$eol" for $data eq '' ? '' : split /\n/, $data, -1;
        $text .= "id: $id$eol" if $f->{o}{ids};
        $text .= $eol;
    }

    push @{ $f->{log} }, [ $id, $text ] if $f->{o}{ids};
    $self->to($f, $text);
}


sub to {
    my ($self, $f, $bytes) = @_;

    for my $c ($self->conns) {
        part($c, $bytes) if $c->{streams} && $c->{feed} == $f;
    }
}


sub ended {
    my ($self, $c) = @_;

    $c->{feed}{open}-- if $c->{streams};
    $c->{request}{closed} = time() if $c->{request};
}


sub command {
    my ($self, $what, $path, @a) = @_;

    my $f = $self->feed($path);

    if ($what eq 'set') {
        my %o = @a;
        defined $o{$_} ? ($f->{o}{$_} = $o{$_}) : delete $f->{o}{$_}
            for keys %o;

    } elsif ($what eq 'say') {
        my ($data, %o) = @a;
        $data = Mcp::Json::encode($data) if ref $data;
        $self->publish($f, $data, \%o);

    } elsif ($what eq 'count') {
        my ($n, $ms, $event) = @a;
        $f->{count} = { left => $n, at => time(), step => $ms / 1000,
                        event => $event || {}, n => $f->{n} || 0 };
        $f->{n} += $n;

    } elsif ($what eq 'raw') {
        $self->to($f, $a[0]);

    } elsif ($what eq 'cut') {
        for my $c (grep { $_->{feed} && $_->{feed} == $f } $self->conns) {
            $c->{last} = 1;
            $self->flush($c);
        }
    }

    return { map { $_ => $f->{$_} } qw(open most said requests) };
}


1;
