package Mcp::Clock;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Lets time pass for an nginx: what it does after minutes is seen at once.
#
#   my $clock = Mcp::Clock->new;         # before Mcp::Test->new
#   $clock->pass($t, 60);                # seconds, all workers see each
#   $clock->jump($t, 60);                # at once: the machine was paused
#   $clock->now                          # theirs

use strict;
use warnings;

use Carp qw(croak);
use File::Temp ();
use Time::HiRes qw(time);


sub new {
    my ($class) = @_;

    my $dir = File::Temp->newdir('mcp-clock-XXXXXX', TMPDIR => 1);
    my $self = bless { dir => $dir, ahead => 0, conns => {}, turn => 0 },
                     $class;
    my $cc = $ENV{CC} || 'cc';

    system($cc, qw(-O1 -Wall -Wextra -Werror -shared -fPIC -o),
           "$dir/clock.so", "$Mcp::Test::ROOT/t/lib/clock.c") == 0
        or croak "$cc: $?";

    $self->write;

    $ENV{MCP_CLOCK} = "$dir/ahead";
    $ENV{LD_PRELOAD} = "$dir/clock.so";
    $ENV{ASAN_OPTIONS} .= ':verify_asan_link_order=0' if $ENV{ASAN_OPTIONS};

    return $self;
}


sub write {
    my ($self) = @_;

    open my $fh, '+>>', "$self->{dir}/ahead" or croak "ahead: $!";
    truncate $fh, 0 unless -s $fh == 8;
    close $fh;

    open $fh, -s "$self->{dir}/ahead" ? '+<' : '>', "$self->{dir}/ahead"
        or croak "ahead: $!";
    binmode $fh;
    print $fh pack 'q', $self->{ahead} * 1000;
    close $fh or croak "ahead: $!";
}


sub now { time() + $_[0]{ahead} }


# A second at a time, so that what is done every second is: a worker has seen
# one when it answers the second request behind it.

sub pass {
    my ($self, $t, $seconds) = @_;

    $self->jump($t, 1) for 1 .. $seconds;
}


sub jump {
    my ($self, $t, $seconds) = @_;

    my %live = map { $_ => 1 } $t->workers;

    delete $self->{conns}{$_} for grep { !$live{$_} } keys %{ $self->{conns} };
    $self->{conns}{$_} ||= $t->conn_on_worker($_) for keys %live;

    $self->{ahead} += $seconds;
    $self->write;

    # another worker sees it first each time

    my @pids = sort keys %{ $self->{conns} };
    push @pids, splice @pids, 0, $self->{turn}++ % @pids;

    for my $pid (@pids) {
        $t->get('/worker', {}, undef, conn => $self->{conns}{$pid}) for 1 .. 2;
    }
}


1;
