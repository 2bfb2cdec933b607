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
#       status => 404, type => 'text/html', body => '..'   no feed at all
#       hang => 1       accepts and says nothing
#       forget => 1     an id is answered with 412
#   $f->say('/a', $event, name => '..')   a ref is made JSON; all get it
#   $f->count('/a', $n, $ms, {..})        says so many events with n => 1 ..
#   $f->raw('/a', $bytes)                 to who is connected, unlogged
#   $f->cut('/a'), $f->refuse, $f->restore
#   $f->info('/a')  { open, most (at once), said, requests => [{ at, id,
#                   accept, headers, uri, closed }] }

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use JSON::PP;
use POSIX ();
use Scalar::Util ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

use Mcp::Upstream;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my @running;


sub new {
    my ($class, %o) = @_;

    my $port = $o{port} || Mcp::Test::free_port();

    socketpair(my $mine, my $its, AF_UNIX, SOCK_STREAM, PF_UNSPEC)
        or croak "socketpair: $!";

    my $listen = Mcp::Upstream::listen_on($port);
    my $pid = fork;
    croak "fork: $!" unless defined $pid;

    if ($pid == 0) {
        close $mine;
        Mcp::Test::in_child();
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        $SIG{PIPE} = 'IGNORE';

        eval {
            Mcp::Feed::Child->new(port => $port, listen => $listen,
                                  control => $its)->run;
            1;
        } or print STDERR "feed on $port died: $@";

        POSIX::_exit(0);
    }

    close $its;
    close $listen;
    $mine->autoflush(1);

    my $self = bless { pid => $pid, port => $port, control => $mine,
                       owner => $$ }, $class;

    push @running, $self;
    Scalar::Util::weaken($running[-1]);

    return $self;
}


sub port { $_[0]{port} }

sub ask {
    my ($self, @command) = @_;

    local $SIG{PIPE} = 'IGNORE';
    syswrite $self->{control}, $json->encode(\@command) . "\n";

    my $answer = '';

    while ($answer !~ /\n\z/) {
        IO::Select->new($self->{control})->can_read(10)
            or croak "feed $self->{port} does not answer";
        sysread $self->{control}, $answer, 65536, length $answer
            or croak "feed $self->{port} is gone";
    }

    return $json->decode($answer)->[0];
}


sub set     { my $s = shift; $s->ask('set', @_) }
sub say     { my $s = shift; $s->ask('say', @_) }
sub count   { my $s = shift; $s->ask('count', @_) }
sub raw     { my $s = shift; $s->ask('raw', @_) }
sub cut     { my $s = shift; $s->ask('cut', @_) }
sub info    { my $s = shift; $s->ask('info', @_) }
sub refuse  { $_[0]->ask('refuse') }
sub restore { $_[0]->ask('restore') }


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


sub stop {
    my ($self) = @_;

    return unless $self->{pid} && $self->{owner} == $$;

    kill 'KILL', $self->{pid};
    local $?;
    waitpid $self->{pid}, 0;
    undef $self->{pid};
}


sub stop_all { $_->stop for grep { defined } @running }
sub DESTROY  { $_[0]->stop }


package Mcp::Feed::Child;

use strict;
use warnings;

use IO::Select;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);


sub new {
    my ($class, %o) = @_;
    return bless { %o, conns => {}, feeds => {}, commands => '' }, $class;
}


sub feed {
    my ($self, $path) = @_;

    return $self->{feeds}{$path} ||= {
        path => $path, o => { ids => 1 }, log => [], requests => [], open => 0,
        most => 0, said => 0
    };
}


sub run {
    my ($self) = @_;

    $self->{control}->blocking(0);
    $self->{listen}->blocking(0);

    while (1) {
        my $now = time();
        my $next = 3600;

        for my $f (values %{ $self->{feeds} }) {
            my $c = $f->{count} or next;

            while ($c->{left} && $c->{at} <= $now) {
                $self->publish($f, $json->encode({ %{ $c->{event} },
                                                   n => ++$c->{n} }), {});
                $c->{left}--;
                $c->{at} += $c->{step};
            }

            delete $f->{count} unless $c->{left};
            $next = $c->{at} - $now if $c->{left} && $c->{at} - $now < $next;
        }

        my ($r, $w) = (IO::Select->new($self->{control}), IO::Select->new);
        $r->add($self->{listen}) if $self->{listen};

        for my $c (values %{ $self->{conns} }) {
            $r->add($c->{sock});
            $w->add($c->{sock}) if length $c->{out};
        }

        my ($can_r, $can_w) = IO::Select->select($r, $w, undef,
                                                 $next > 0 ? $next : 0);

        for my $s (@{ $can_w || [] }) {
            my $c = $self->{conns}{fileno $s} or next;
            my $n = syswrite $c->{sock}, $c->{out};
            $n ? substr($c->{out}, 0, $n, '') : $self->close($c);
            $self->close($c) if $c->{last} && !length $c->{out};
        }

        for my $s (@{ $can_r || [] }) {

            if ($s == $self->{control}) {
                $self->control or return;

            } elsif ($self->{listen} && $s == $self->{listen}) {

                while (my $n = $self->{listen}->accept) {
                    setsockopt($n, IPPROTO_TCP, TCP_NODELAY, 1);
                    $n->blocking(0);
                    $self->{conns}{fileno $n} = { sock => $n, in => '',
                                                  out => '' };
                }

            } elsif (defined fileno $s
                     and my $c = $self->{conns}{fileno $s})
            {
                if (sysread $s, $c->{in}, 65536, length $c->{in}) {
                    $self->request($c) if $c->{in} =~ /\r\n\r\n/ && !$c->{feed};

                } elsif (!$!{EAGAIN}) {
                    $self->close($c);
                }
            }
        }
    }
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

    my $status = $o->{status};
    $status = 412 if $o->{forget} && defined $h{'last-event-id'};

    if ($status || defined $o->{body}) {
        my $body = defined $o->{body} ? $o->{body} : 'no';
        $c->{out} .= sprintf "HTTP/1.1 %d x\r\nContent-Type: %s\r\n"
                     . "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                     $status || 200, $o->{type} || 'text/html', length $body,
                     $body;
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

    for my $c (values %{ $self->{conns} }) {
        part($c, $bytes) if $c->{streams} && $c->{feed} == $f;
    }
}


sub close {
    my ($self, $c) = @_;

    return unless $c->{sock};

    syswrite $c->{sock}, $c->{out} if length $c->{out};
    delete $self->{conns}{fileno $c->{sock}};
    CORE::close delete $c->{sock};

    $c->{feed}{open}-- if $c->{streams};
    $c->{request}{closed} = time() if $c->{request};
}


sub control {
    my ($self) = @_;

    sysread $self->{control}, $self->{commands}, 65536,
            length $self->{commands}
        or return 0;

    while ($self->{commands} =~ s/^(.*)\n//) {
        my ($what, @a) = @{ $json->decode($1) };
        my $answer = $self->command($what, @a);
        syswrite $self->{control}, $json->encode([ $answer ]) . "\n";
    }

    return 1;
}


sub command {
    my ($self, $what, $path, @a) = @_;

    if ($what eq 'refuse') {
        CORE::close delete $self->{listen} if $self->{listen};
        return 1;
    }

    if ($what eq 'restore') {
        $self->{listen} ||= Mcp::Upstream::listen_on($self->{port});
        $self->{listen}->blocking(0);
        return 1;
    }

    my $f = $self->feed($path);

    if ($what eq 'set') {
        my %o = @a;
        defined $o{$_} ? ($f->{o}{$_} = $o{$_}) : delete $f->{o}{$_}
            for keys %o;

    } elsif ($what eq 'say') {
        my ($data, %o) = @a;
        $self->publish($f, ref $data ? $json->encode($data) : $data, \%o);

    } elsif ($what eq 'count') {
        my ($n, $ms, $event) = @a;
        $f->{count} = { left => $n, at => time(), step => $ms / 1000,
                        event => $event || {}, n => $f->{n} || 0 };
        $f->{n} += $n;

    } elsif ($what eq 'raw') {
        $self->to($f, $a[0]);

    } elsif ($what eq 'cut') {
        $self->close($_) for grep { $_->{feed} && $_->{feed} == $f }
                             values %{ $self->{conns} };
    }

    return { map { $_ => $f->{$_} } qw(open most said requests) };
}


1;
