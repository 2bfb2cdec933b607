package Mcp::Server;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What servers of tests have in common: a process of its own, that is told and
# asked things by the test, and its connections.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Scalar::Util ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);

use Mcp::Json;

my @running;


# options: port, and what the class named ::Child wants

sub new {
    my ($class, %o) = @_;

    my $port = $o{port} || Mcp::Test::free_port();

    socketpair(my $mine, my $its, AF_UNIX, SOCK_STREAM, PF_UNSPEC)
        or croak "socketpair: $!";

    my $listen = listen_on($port);
    my $pid = fork;
    croak "fork: $!" unless defined $pid;

    if ($pid == 0) {
        close $mine;
        Mcp::Test::in_child();
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        $SIG{PIPE} = 'IGNORE';

        eval {
            "${class}::Child"->new(%o, port => $port, listen => $listen,
                                   control => $its)->run;
            1;
        } or print STDERR "$class on $port died: $@";

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


sub listen_on {
    my ($port) = @_;

    for (1 .. 100) {
        my $s = IO::Socket::INET->new(
            LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
            Listen => 1024, ReuseAddr => 1
        );
        return $s if $s;
        select undef, undef, undef, 0.02;
    }

    croak "cannot listen on $port: $!";
}


sub port { $_[0]{port} }
sub pid  { $_[0]{pid} }


# runs command() of the child; what it returned

sub ask {
    my ($self, @command) = @_;

    my $fh = $self->{control};
    my $answer = '';

    local $SIG{PIPE} = 'IGNORE';
    syswrite $fh, Mcp::Json::encode(\@command) . "\n";

    while ($answer !~ /\n\z/) {
        IO::Select->new($fh)->can_read(60)
            or croak ref($self) . " on $self->{port} does not answer";
        sysread $fh, $answer, 65536, length $answer
            or croak ref($self) . " on $self->{port} is gone";
    }

    return Mcp::Json::decode($answer)->[0];
}


sub refuse  { $_[0]->ask('refuse') }                # stop listening
sub restore { $_[0]->ask('restore') }               # listen again


sub stop {
    my ($self) = @_;

    return unless $self->{pid} && $self->{owner} == $$;

    kill 'KILL', $self->{pid};
    local $?;
    waitpid $self->{pid}, 0;
    undef $self->{pid};
}


# those of a class

sub stop_all {
    my ($class) = @_;
    $_->stop for grep { defined && $_->isa($class) } @running;
}


sub DESTROY { $_[0]->stop }


# A connection is { id, sock, in, out, last }: what came and is to be taken,
# what is to be sent, and whether it ends then. A child has received($c),
# command(@command), and may have due($now), which does what is due and returns
# the time until more is, and ended($c, $own), whose second argument says that
# this side ended it.

package Mcp::Server::Child;

use strict;
use warnings;

use IO::Select;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);


sub new {
    my ($class, %o) = @_;
    return bless { %o, conns => {}, commands => '' }, $class;
}


sub conns { values %{ $_[0]{conns} } }
sub due   { 3600 }
sub ended { }


sub run {
    my ($self) = @_;

    my $later = 0;

    $_->blocking(0) for @$self{'control', 'listen'};

    while (1) {
        my $left = $self->due(time());
        my ($r, $w) = (IO::Select->new($self->{control}), IO::Select->new);

        $r->add($self->{listen}) if $self->{listen};

        for my $c ($self->conns) {
            $r->add($c->{sock});
            $w->add($c->{sock}) if length $c->{out};
        }

        my ($can_r, $can_w) = IO::Select->select($r, $w, undef,
                                                 $left > 0 ? $left : 0);
        my @can = grep { $_ != $self->{control} } @{ $can_r || [] };

        # what came before a question is seen before that is answered

        if (@can && ++$later < 100) {
            $can_r = \@can;

        } else {
            $later = 0;
        }

        for my $s (@{ $can_r || [] }) {

            if ($s == $self->{control}) {
                $self->control or return;

            } elsif ($self->{listen} && $s == $self->{listen}) {
                $self->accept;

            } elsif (my $c = $self->conn($s)) {
                $self->readable($c);
            }
        }

        for my $s (@{ $can_w || [] }) {
            my $c = $self->conn($s) or next;
            $self->flush($c);
        }
    }
}


# none if it was closed a moment ago

sub conn {
    my ($self, $s) = @_;
    return defined fileno $s ? $self->{conns}{fileno $s} : undef;
}


sub accept {
    my ($self) = @_;

    while (my $s = $self->{listen}->accept) {
        setsockopt $s, IPPROTO_TCP, TCP_NODELAY, 1;
        $s->blocking(0);
        $self->{conns}{fileno $s} = { sock => $s, in => '', out => '',
                                      id => ++$self->{accepted} };
    }
}


sub readable {
    my ($self, $c) = @_;

    my $n = sysread $c->{sock}, $c->{in}, 65536, length $c->{in};

    return if !defined $n && ($!{EAGAIN} || $!{EINTR});
    return $self->finish($c) unless $n;

    $self->received($c);
}


# false if the connection ended

sub flush {
    my ($self, $c) = @_;

    while (length $c->{out}) {
        my $n = syswrite $c->{sock}, $c->{out};

        if (!defined $n) {
            return 1 if $!{EAGAIN} || $!{EINTR};
            $self->finish($c);
            return 0;
        }

        substr $c->{out}, 0, $n, '';
    }

    return 1 unless $c->{last};

    $self->finish($c, 1);
    return 0;
}


sub finish {
    my ($self, $c, $own) = @_;

    return unless defined fileno $c->{sock};

    $self->ended($c, $own);

    delete $self->{conns}{fileno $c->{sock}};
    close $c->{sock};
    $c->{out} = '';
}


sub control {
    my ($self) = @_;

    my $n = sysread $self->{control}, $self->{commands}, 65536,
                    length $self->{commands};

    return 1 if !defined $n && ($!{EAGAIN} || $!{EINTR});
    return 0 unless $n;

    while ($self->{commands} =~ s/\A(.*?)\n//) {
        my ($verb, @arg) = @{ Mcp::Json::decode($1) };
        my $answer = 1;

        if ($verb eq 'refuse') {
            close delete $self->{listen} if $self->{listen};

        } elsif ($verb eq 'restore') {
            $self->{listen} ||= Mcp::Server::listen_on($self->{port});
            $self->{listen}->blocking(0);

        } else {
            $answer = $self->command($verb, @arg);
        }

        $self->{control}->blocking(1);
        syswrite $self->{control}, Mcp::Json::encode([$answer]) . "\n";
        $self->{control}->blocking(0);
    }

    return 1;
}


1;
