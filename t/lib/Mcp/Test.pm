package Mcp::Test;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A real nginx with the module in a private folder, MCP clients on raw sockets
# and programmable upstreams. A test is:
#
#   use Mcp::Test;
#
#   my $up = Mcp::Upstream->new(Mcp::Upstream::mcp('tools/list' => {...}));
#   my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'EOF');
#   mcp_zone zone=main:4m;
#   server {
#       %%LISTEN%%
#       location = /mcp { mcp_endpoint zone=main; mcp_upstream up /_up; }
#       location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
#   }
#   EOF
#
#   my $s = $t->session;
#   is_deeply($s->call('tools/list')->{result}, ...);
#   done_testing();
#
# In conf, globals and events: %%LISTEN%% is the listen line of $t->port and a
# location /worker that tells the worker's pid, %%LISTEN_name%% the same for
# $t->port('name'), %%PORT%% and %%PORT_name%% the ports alone, %%DIR%% the
# folder, and any other %%NAME%% comes from vars.
#
# done_testing() stops everything and looks at the error logs: an [alert] or
# [emerg] that $t->allow_log did not announce, a sanitizer's text, or a line of
# the module that says what nginx did before ("while sending to client") fails.
#
# Environment: MCP_NGINX, MCP_MODULE (empty: do not load any), MCP_KEEP=1 (keep
# the folder), MCP_TEST_PORTS=FIRST-LAST, MCP_SLOW.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Spec;
use File::Temp ();
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Scalar::Util qw(weaken);
use Test::More ();
use Time::HiRes qw(time sleep);

use Mcp::Http;
use Mcp::Session;
use Mcp::Upstream;

our $ROOT = abs_path(dirname(__FILE__) . '/../../..');
our $NGINX = $ENV{MCP_NGINX} || '/usr/sbin/nginx';

my (@running, @problems, %locks, $in_child);
my $owner = $$;

# for an nginx with sanitizers (t/build.sh sanitize)
my %sanitizers = (
    # every module has its ngx_module_names
    ASAN_OPTIONS => 'detect_odr_violation=0',
    LSAN_OPTIONS => "suppressions=$ROOT/t/lib/lsan.supp:"
                    . 'print_suppressions=0',
    UBSAN_OPTIONS => 'print_stacktrace=1',
);

for my $name (keys %sanitizers) {
    $ENV{$name} = join ':', $sanitizers{$name}, $ENV{$name} || ();
}


sub import {
    my $to = caller;

    strict->import;
    warnings->import;

    no strict 'refs';

    for my $name (@Test::More::EXPORT) {
        next if $name eq 'done_testing' || $name =~ /^\W/;
        *{"${to}::$name"} = \&{"Test::More::$name"};
    }

    *{"${to}::TODO"} = \${"${to}::TODO"};
    *{"${to}::$_"} = \&$_
        for qw(done_testing wait_for free_port json_encode json_decode
               within notification);
    *{"${to}::time"} = \&Time::HiRes::time;
    *{"${to}::sleep"} = \&Time::HiRes::sleep;
}


sub json_encode { goto &Mcp::Http::json_encode }
sub json_decode { goto &Mcp::Http::json_decode }


# notification($method, $params, %more): tools/list_changed, message, ...

sub notification {
    my ($method, $params, %more) = @_;

    return { jsonrpc => '2.0', method => "notifications/$method",
             defined $params ? (params => $params) : (), %more };
}


# a port below 32768 that no other running test has

sub free_port {
    my ($first, $last) = split /-/, $ENV{MCP_TEST_PORTS} || '24000-31999';
    my $dir = File::Spec->tmpdir . "/mcp-test-ports-$<";

    make_path($dir);

    for (1 .. 2000) {
        my $port = $first + int rand($last - $first + 1);
        next if $locks{$port};

        open my $fh, '>', "$dir/$port" or next;
        flock $fh, LOCK_EX | LOCK_NB or next;

        my $s = IO::Socket::INET->new(
            LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp',
            Listen => 1
        ) or next;

        CORE::close($s);
        $locks{$port} = $fh;
        return $port;
    }

    croak 'no free port';
}


# runs the sub every few milliseconds until it is true; what it returned, or
# nothing after $timeout (30) seconds, later in a slow run. Where the result is
# not used, that fails the test

sub wait_for(&;$) {
    my ($sub, $timeout) = @_;

    my $end = time() + (defined $timeout ? $timeout : 30)
                       * ($ENV{MCP_SLOW} || 1);
    my $pause = 0.002;

    while (1) {
        my $r = $sub->();
        return $r if $r;
        last if time() > $end;
        sleep $pause;
        $pause = $pause < 0.05 ? $pause * 1.5 : 0.05;
    }

    in_vain() if !defined wantarray && !$in_child && $$ == $owner;
    return;
}


sub in_vain {
    my ($i, @at) = (0);

    do { @at = caller $i++ } while @at && $at[0] =~ /^Mcp::/;

    local $Test::Builder::Level = $Test::Builder::Level + $i;
    Test::More::fail("line $at[2]: what is waited for comes");
}


# passes if $got is within $from .. $to; says the number if not. A slow run
# (MCP_SLOW=factor) gets a later end

sub within {
    my ($got, $from, $to, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    $to *= $ENV{MCP_SLOW} || 1;

    my $ok = defined $got && $got >= $from && $got <= $to;

    Test::More::ok($ok, $name);
    Test::More::diag('got ' . (defined $got ? $got : 'undef')
                     . ", wanted $from .. $to")
        unless $ok;

    return $ok;
}


sub in_child { $in_child = 1 }


# options: conf, globals, events, vars, workers (2), start (1), daemon (0),
# log_level (info), reuseport (0), module, nginx, user (of the workers, root)

sub new {
    my ($class, %o) = @_;

    my $self = bless {
        workers => 2, start => 1, log_level => 'info', ports => {},
        globals => '', events => '', conf => '', vars => {}, allowed => [],
        user => 'root', nginx => $NGINX, seen => {}, %o
    }, $class;

    $self->{dir} = File::Temp::tempdir('mcp-test-XXXXXX', TMPDIR => 1);
    chmod 0755, $self->{dir};
    make_path(map { "$self->{dir}/$_" } qw(tmp logs));

    $self->{module} = module() unless exists $o{module};

    push @running, $self;
    $self->start if $self->{start};

    return $self;
}


sub module {
    return $ENV{MCP_MODULE} if defined $ENV{MCP_MODULE};

    my $so = "$ROOT/.build/debian/ngx_http_mcp_module.so";

    if (!-f $so) {
        system("$ROOT/t/build.sh >&2") == 0 or croak 't/build.sh failed';
    }

    return $ENV{MCP_MODULE} = $so;
}


sub dir { $_[0]{dir} }
sub pid { $_[0]{pid} }


sub port {
    my ($self, $name) = @_;

    $name = '' unless defined $name;
    return $self->{ports}{$name} ||= free_port();
}


sub expand {
    my ($self, $text) = @_;

    my $opt = $self->{reuseport} ? ' reuseport' : '';
    my $worker = 'location = /worker { access_log off; default_type '
                 . 'text/plain; return 200 $pid; }';

    $text =~ s{%%([A-Z]+)(?:_(\w+))?%%}{
        my $v = $self->{vars};
        my $whole = defined $2 ? "$1_$2" : $1;

        exists $v->{$whole} ? $v->{$whole}
        : $1 eq 'LISTEN' ? 'listen 127.0.0.1:' . $self->port($2) . "$opt; "
                           . $worker
        : $1 eq 'PORT' ? $self->port($2)
        : $1 eq 'DIR' ? $self->{dir}
        : croak("no value for %%$whole%%");
    }gex;

    return $text;
}


# writes nginx.conf, with other values of conf, globals, vars, workers, ... if
# given

sub configure {
    my ($self, %o) = @_;

    $self->{$_} = $o{$_} for keys %o;

    my $globals = '';

    $globals .= "load_module $self->{module};\n" if $self->{module};
    $globals .= "user $self->{user};\n" if $> == 0;
    $globals .= "daemon off;\n" unless $self->{daemon};

    my $dir = $self->{dir};
    my $conf = $self->expand(<<"EOF");
${globals}worker_processes $self->{workers};
pid $dir/nginx.pid;
error_log $dir/error.log $self->{log_level};
$self->{globals}

events {
    $self->{events}
}

http {
    access_log $dir/access.log;

    # a connection to a worker is used until its test closes it
    keepalive_requests 1000000;
    keepalive_time 1000h;

    client_body_temp_path $dir/tmp/body;
    proxy_temp_path $dir/tmp/proxy;
    fastcgi_temp_path $dir/tmp/fastcgi;
    uwsgi_temp_path $dir/tmp/uwsgi;
    scgi_temp_path $dir/tmp/scgi;

$self->{conf}
}
EOF

    # at once: nginx may still be about to read the one before
    open my $fh, '>', "$dir/nginx.conf.new" or croak "$dir/nginx.conf.new: $!";
    print $fh $conf;
    CORE::close($fh);
    rename "$dir/nginx.conf.new", "$dir/nginx.conf"
        or croak "$dir/nginx.conf: $!";

    return $conf;
}


sub command {
    my ($self, @args) = @_;

    return ($self->{nginx}, '-p', "$self->{dir}/", '-c',
            "$self->{dir}/nginx.conf", '-e', "$self->{dir}/error.log", @args);
}


# nginx -t with this configuration: (exit code, what it said)

sub check {
    my ($self, %o) = @_;

    $self->configure(%o);

    my $pid = open(my $fh, '-|');
    croak "fork: $!" unless defined $pid;

    if ($pid == 0) {
        $in_child = 1;

        # -t exits without freeing what it read
        $ENV{ASAN_OPTIONS} .= ':detect_leaks=0';
        open STDERR, '>&', \*STDOUT;
        exec $self->command('-t') or POSIX::_exit(127);
    }

    my $text = do { local $/; <$fh> };

    local $?;
    CORE::close($fh);

    # what -t says goes to the error log as well; it is no fault of the run
    $self->{skip_to} = -s "$self->{dir}/error.log";

    return ($? >> 8, defined $text ? $text : '');
}


sub start {
    my ($self) = @_;

    $self->configure;

    my $pid = fork;
    croak "fork: $!" unless defined $pid;

    if ($pid == 0) {
        $in_child = 1;

        # PR_SET_PDEATHSIG: a killed test leaves no server behind
        eval { syscall 157, 1, POSIX::SIGTERM() } if $^O eq 'linux';

        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$self->{dir}/output";
        open STDERR, '>>', "$self->{dir}/output";

        { exec $self->command; }
        print STDERR "exec $self->{nginx}: $!\n";
        POSIX::_exit(127);
    }

    $self->{started} = $pid;
    $self->{pid} = $pid;

    if ($self->{daemon}) {
        local $?;
        waitpid $pid, 0;
        $self->{started} = 0;
        $self->{pid} = wait_for { $self->slurp('nginx.pid') =~ /^(\d+)/ && $1 }
                       5;
    }

    my $ok = $self->{pid} && wait_for {
        return -1 unless $self->running;
        $self->listening && $self->workers >= $self->wanted_workers;
    };

    if (!$ok || $ok == -1) {
        Test::More::diag($self->slurp('error.log') . $self->slurp('output'));
        $self->{allowed} = [qr/./];
        croak 'nginx did not start';
    }

    return $self;
}


sub wanted_workers {
    my ($self) = @_;

    return 0 if $self->{globals} =~ /\bmaster_process off;/;
    return $self->{workers} =~ /^\d+$/ ? $self->{workers} : 1;
}


sub running {
    my ($self) = @_;

    my $pid = $self->{pid} or return 0;

    if ($self->{started}) {
        local $?;
        my $r = waitpid $pid, WNOHANG;

        if ($r == $pid) {
            $self->{exit} = $?;
            undef $self->{pid};
            return 0;
        }

        return 1;
    }

    my $stat = slurp_file("/proc/$pid/stat");
    return $stat =~ /\) ([A-Z])/ && $1 ne 'Z' ? 1 : 0;
}


# nginx opens all ports at once; one of them may listen to IPv6 alone

sub listening {
    my ($self) = @_;

    my @ports = values %{ $self->{ports} } or return 1;

    for my $port (@ports) {
        return 1 if IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                          PeerPort => $port, Proto => 'tcp',
                                          Timeout => 1);
    }

    return 0;
}


sub slurp_file {
    my ($path) = @_;

    open my $fh, '<', $path or return '';
    local $/;
    my $text = <$fh>;

    return defined $text ? $text : '';
}


sub slurp { slurp_file("$_[0]{dir}/$_[1]") }
sub log   { $_[0]->slurp('error.log') }


# the pids of the workers that serve; with all => 1 those that are leaving too

sub workers {
    my ($self, %o) = @_;

    my $master = $self->{pid} or return ();
    my @pids;

    for my $dir (glob '/proc/[0-9]*') {
        slurp_file("$dir/stat") =~ /^(\d+) \(.*\) ([A-Z]) (\d+)/s or next;
        next unless $3 == $master && $2 ne 'Z';

        my $pid = $1;
        my $title = slurp_file("$dir/cmdline");

        next unless $title =~ /worker process/;
        next if $title =~ /shutting down/ && !$o{all};
        push @pids, $pid;
    }

    @pids = sort { $a <=> $b } @pids;
    return @pids;
}


# HUP; with arguments the configuration is written anew (see configure). True
# when new workers serve and none of the old ones accepts; the old ones may
# still be leaving (wait_old waits for their end)

sub reload {
    my ($self, %o) = @_;

    my $timeout = delete $o{timeout};

    $self->hup(%o);
    return $self->reloaded($timeout);
}


# the two halves of it

sub hup {
    my ($self, %o) = @_;

    $self->{old} = { map { $_ => 1 } $self->workers(all => 1) };
    $self->{old_log} = length $self->log;

    $self->configure(%o);
    kill 'HUP', $self->{pid};
}


sub reloaded {
    my ($self, $timeout) = @_;

    my $ok = wait_for {
        my @new = $self->workers;
        my @stay = grep { $self->{old}{$_} } @new;

        return 1 if !@stay && @new >= $self->wanted_workers;
        return -1 if substr($self->log, $self->{old_log}) =~ /\[emerg\]/;
        return 0;
    } $timeout;

    return $ok && $ok == 1 ? 1 : 0;
}


# a reload whose workers begin so many seconds late: they stand still, from the
# moment in which they are made

sub hup_late {
    my ($self, $seconds) = @_;

    my $list = "/proc/$self->{pid}/task/$self->{pid}/children";
    my %old = map { $_ => 1 } split / /, slurp_file($list);
    my $until = time() + $seconds;
    my %late;

    $self->hup;

    while (time() < $until) {
        kill 'STOP', $_ for grep { !$old{$_} && !$late{$_}++ }
                            split / /, slurp_file($list);
    }

    kill 'CONT', keys %late;
}


# true when the workers of before the last reload are gone

sub wait_old {
    my ($self, $timeout) = @_;

    return wait_for {
        !grep { $self->{old}{$_} } $self->workers(all => 1)
    } $timeout;
}


# kill -9, and the master's replacement is waited for: its pid

sub kill_worker {
    my ($self, $pid, $signal) = @_;

    my %old = map { $_ => 1 } $self->workers;

    $self->allow_log(qr/worker process $pid exited on signal/);
    $self->allow_log(qr/was locked by $pid/);
    kill $signal || 'KILL', $pid;

    return wait_for {
        my @new = grep { !$old{$_} } $self->workers;
        $new[0];
    };
}


# lines of the error log that match are no failure

sub allow_log {
    my ($self, @patterns) = @_;
    push @{ $self->{allowed} }, @patterns;
}


sub bad_log_lines {
    my ($self) = @_;

    my @bad;
    my $text = $self->log;

    for (split /\n/, $text) {
        next unless / \[(?:alert|emerg)\] / || /Sanitizer|runtime error:/
                    || /exited on signal/
                    || /: (?:\*\d+ )?mcp .* while sending to client/;
        my $line = $_;
        next if grep { $line =~ $_ } @{ $self->{allowed} };
        push @bad, $line;
    }

    for (split /\n/, $self->slurp('output')) {
        next unless /Sanitizer|runtime error:/;
        my $line = $_;
        next if grep { $line =~ $_ } @{ $self->{allowed} };
        push @bad, $line;
    }

    return @bad;
}


# QUIT (or the signal given); true if nginx is gone within $timeout seconds

sub stop {
    my ($self, $signal, $timeout) = @_;

    return 1 unless $self->running;

    kill $signal || 'QUIT', $self->{pid};

    my $ok = wait_for { !$self->running } $timeout;

    if (!$ok) {
        kill 'TERM', $self->{pid};
        scalar(wait_for { !$self->running } 5);
    }

    if ($self->running) {
        kill 'KILL', $self->workers(all => 1), $self->{pid};
        scalar(wait_for { !$self->running } 5);
    }

    undef $self->{pid};

    return $ok ? 1 : 0;
}


# a new connection

sub conn {
    my ($self, %o) = @_;

    my $name = delete $o{port};
    my $port = defined $name && $name =~ /^\d+$/ ? $name : $self->port($name);

    return Mcp::Http->new(port => $port, %o);
}


# one request on a connection of its own

sub request {
    my ($self, $method, $uri, $headers, $body, %o) = @_;

    my $conn = $o{conn} || $self->conn(port => $o{port});

    return $conn->request($method, $uri, $headers, $body, %o);
}


sub get  { my $t = shift; $t->request('GET', @_) }
sub post { my $t = shift; $t->request('POST', @_) }


# posts an event, or a list of them (made JSON if it is a reference), to a URL
# (/publish), and reads that of mcp_status (/status): both as JSON

sub publish {
    my ($self, $event, $uri, %o) = @_;

    my $r = $self->post($uri || '/publish',
                        { 'Content-Type' => 'application/json' },
                        ref $event ? json_encode($event) : $event, %o);

    $r->{json} = json_decode($r->{body});
    return $r;
}


sub status {
    my ($self, $uri) = @_;
    return json_decode($self->get($uri || '/status')->{body});
}


# an open keep-alive connection that this worker serves

sub conn_on_worker {
    my ($self, $pid, %o) = @_;

    my @others = grep { $_ != $pid } $self->workers;
    my @kept;

    for my $try (1 .. 60) {
        my $stop = $try > 6 && !$self->{reuseport};
        my ($conn, $got);

        # with the others stopped only this worker can accept
        kill 'STOP', @others if $stop;

        eval {
            $conn = $self->conn(%o);
            $got = $conn->request('GET', '/worker', {}, undef,
                                  timeout => $stop ? 1 : 5);
        };

        if ($stop) {
            my %before = map { $_ => switches($_) } @others;

            kill 'CONT', @others;

            # they renew their leases, which end after 3 s

            my $ran = wait_for {
                !grep { $before{$_} && switches($_) eq $before{$_} } @others;
            } 2;
        }

        return $conn if $got && $got->{status} == 200
                        && $got->{body} eq $pid;
        push @kept, $conn;
    }

    croak "no connection to worker $pid";
}


# how often a process has waited so far

sub switches {
    my ($pid) = @_;

    return slurp_file("/proc/$pid/status") =~ /^voluntary\w*:\s*(\d+)/m ? $1
                                                                         : '';
}


sub worker_of {
    my ($self, $conn) = @_;

    my $r = $conn->request('GET', '/worker');
    return $r->{status} == 200 ? $r->{body} : undef;
}


# an initialized MCP session, see Mcp::Session

sub session {
    my ($self, %o) = @_;
    return Mcp::Session->new(t => $self, %o);
}


# a session that has not said anything yet

sub client {
    my ($self, %o) = @_;
    return Mcp::Session->new(t => $self, lazy => 1, %o);
}


sub upstream {
    my ($self, @args) = @_;
    return Mcp::Upstream->new(@args);
}


sub finish_all {
    Mcp::Http::close_all();
    Mcp::Upstream->stop_all;

    for my $t (grep { !$_->{finished} } @running) {
        $t->{finished} = 1;

        my $was = $t->{pid} && $t->running;

        push @problems, 'nginx had gone before the end of the test'
            if $t->{pid} && !$was;

        if ($was && !$t->stop('QUIT', $t->{quit_timeout})) {
            push @problems, 'nginx did not exit gracefully';
        }

        push @problems, $t->bad_log_lines;
    }
}


sub done_testing {
    finish_all();

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    if (@running) {
        Test::More::ok(!@problems, 'no alerts in the error log');
        Test::More::diag($_) for @problems;
        @problems = ();
    }

    Test::More::done_testing(@_);
}


sub clean_up {
    my ($failed) = @_;

    for my $t (@running) {

        if (!$failed && !$ENV{MCP_KEEP}) {
            remove_tree($t->{dir});
            next;
        }

        if ($failed) {
            my $log = $t->log;
            my @lines = grep { !/\[(?:debug|info)\]/ } split /\n/, $log;

            splice @lines, 0, @lines - 30 if @lines > 30;

            # what a sanitizer said, from its first line to its summary
            my @reports = "$log\n" =~ /^(==\d+==ERROR: .*?^SUMMARY: .*?)$/msg;
            push @reports, $log =~ /^(.*runtime error: .*)$/mg;

            Test::More::diag(substr $_, 0, 8000)
                for @reports > 3 ? @reports[0 .. 2] : @reports;
            Test::More::diag("error.log: $_") for @reports ? () : @lines;
            Test::More::diag($t->slurp('output')) if -s "$t->{dir}/output";
        }

        Test::More::diag("kept: $t->{dir}");
    }
}


$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
$SIG{PIPE} = 'IGNORE';


END {
    if (!$in_child && $$ == $owner) {
        my $code = $?;

        finish_all();

        if (@problems) {
            Test::More::diag($_) for @problems;
            $code ||= 1;
        }

        my $tb = Test::More->builder;

        clean_up($code != 0 || !$tb->is_passing);
        $? = $code;
    }
}


1;
