package Mcp::Upstream;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A programmable HTTP server in a process of its own. For every request a sub
# returns a list of actions, which run one after another on that connection:
#
#   [json => $value, {headers}]           whole response, 200
#   [http => $status, {headers}, $body]   whole response
#   [sse => {headers}]                    head of an event stream (chunked)
#   [head => $status, {headers}]          head of a chunked response
#   [event => $value, id => .., event => ..]  one event (a ref is made JSON)
#   [comment => $text]                    one comment line
#   [part => $bytes]                      bytes of the chunked body
#   [bytes => $bytes]                     bytes without any framing
#   [wait => $seconds]                    a pause
#   [until => $name]                      a pause until release($name)
#   [tag => $name]                        emit($name, actions) then reaches it
#   [end =>]                              end of the chunked body
#   [cut =>]                              closes without an end
#   [reset =>]                            closes with RST
#   [hang =>]                             nothing more, the connection stays
#
# A list that began a chunked body and does not say otherwise is ended.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Scalar::Util ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC SOL_SOCKET SO_LINGER
              IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

my $json = JSON::PP->new->utf8->canonical->allow_nonref->allow_blessed
    ->convert_blessed;
my @running;


# new($sub, port => N, log => FILE); the sub gets the request: { n, method,
# uri, headers, body, json, at, conn }

sub new {
    my ($class, $handler, %o) = @_;

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
            Mcp::Upstream::Child->new(port => $port, listen => $listen,
                                      control => $its, handler => $handler)
                ->run;
            1;
        } or print STDERR "upstream on $port died: $@";

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


sub ask {
    my ($self, @command) = @_;

    my $line = $json->encode(\@command) . "\n";
    local $SIG{PIPE} = 'IGNORE';

    syswrite $self->{control}, $line;

    my $fh = $self->{control};
    my $answer = '';

    while ($answer !~ /\n\z/) {
        IO::Select->new($fh)->can_read(10)
            or croak "upstream $self->{port} does not answer";
        sysread $fh, $answer, 65536, length $answer
            or croak "upstream $self->{port} is gone";
    }

    return $json->decode($answer)->[0];
}


# what was asked so far: { n, method, uri, headers, body, json, at, conn,
# ended => time or undef, lost => 1 if the client went before the end }

sub requests {
    my ($self, $match) = @_;

    my @r = @{ $self->ask('requests') };

    return @r unless $match;
    return grep { $match->($_) } @r;
}


sub count { scalar $_[0]->requests($_[1]) }


# requests of a JSON-RPC method

sub calls {
    my ($self, $method) = @_;

    return $self->requests(sub {
        ref $_[0]{json} eq 'HASH' && ($_[0]{json}{method} || '') eq $method
    });
}


# waits until $n (1) requests satisfy the sub, returns them

sub wait_requests {
    my ($self, $match, $n, $timeout) = @_;

    my @r;

    Mcp::Test::wait_for(sub {
        @r = $self->requests($match);
        @r >= (defined $n ? $n : 1);
    }, $timeout);

    return @r;
}


sub clear   { $_[0]->ask('clear') }                 # forget requests
sub release { $_[0]->ask('release', $_[1]) }        # end [until => name]
sub emit    { my $s = shift; $s->ask('emit', @_) }  # (tag, @actions): how many
sub held    { $_[0]->ask('held', $_[1]) }           # connections with a tag
sub refuse  { $_[0]->ask('refuse') }                # stop listening
sub restore { $_[0]->ask('restore') }               # listen again
sub drop    { $_[0]->ask('drop') }                  # cut all connections
sub set     { $_[0]->ask('set', $_[1], $_[2]) }     # $Mcp::Upstream::V{name}
sub get     { $_[0]->ask('get', $_[1]) }

our %V;


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


# a JSON-RPC answer to a request, and an error

sub result {
    my ($r, $result) = @_;
    return { jsonrpc => '2.0', id => $r->{json}{id}, result => $result };
}


sub error {
    my ($r, $code, $message) = @_;
    return { jsonrpc => '2.0', id => $r->{json}{id},
             error => { code => $code, message => $message } };
}


# The handler of a small legacy MCP server. Keys of %m are methods; a value is
# a result, or a sub ($request) that returns a result (a hash) or a list of
# actions. Special keys: '' for what is not named, GET, DELETE, sessions => 0,
# capabilities, info, rpc => 1 (a plain handler: no handshake, no sessions).

sub mcp {
    my (%m) = @_;

    my (%session, $next);

    return sub {
        my ($r) = @_;

        my $sid = $r->{headers}{'mcp-session-id'};

        if ($r->{method} eq 'GET') {
            return $m{GET}->($r) if $m{GET};
            return [http => 405, { Allow => 'POST' }, ''];
        }

        if ($r->{method} eq 'DELETE') {
            return $m{DELETE}->($r) if $m{DELETE};
            delete $session{$sid || ''};
            return [http => 200, {}, ''];
        }

        my $j = $r->{json};

        return [http => 400, {}, 'not JSON-RPC'] unless ref $j eq 'HASH';

        my $method = $j->{method};

        if (!defined $method) {
            return $m{response}->($r) if $m{response};
            return [http => 202, {}, ''];
        }

        if (!$m{rpc} && (!defined $m{sessions} || $m{sessions})
            && $method ne 'initialize')
        {
            return [http => 400, {}, '']
                unless defined $sid;
            return [http => 404, {}, '{"jsonrpc":"2.0","id":null,"error":'
                                 . '{"code":-32001,"message":"no session"}}']
                unless $session{$sid} && !$V{forget};
        }

        if ($method eq 'initialize' && !exists $m{initialize} && !$m{rpc}) {
            my %h;

            if (!defined $m{sessions} || $m{sessions}) {
                $V{forget} = 0;
                $sid = sprintf 'up-%d-%d', $$, ++$next;
                $session{$sid} = 1;
                $h{'Mcp-Session-Id'} = $sid;
            }

            return [json => result($r, {
                protocolVersion => $m{version}
                                   || $j->{params}{protocolVersion},
                capabilities => $m{capabilities} || {
                    tools => { listChanged => JSON::PP::true }
                },
                serverInfo => $m{info} || { name => 'up', version => '1' },
            }), \%h];
        }

        my $how = exists $m{$method} ? $m{$method} : $m{''};

        if (!exists $j->{id}) {
            my @a = ref $how eq 'CODE' ? $how->($r) : ();
            return ref $a[0] eq 'ARRAY' ? @a : [http => 202, {}, ''];
        }

        return [json => result($r, {})] if $method eq 'ping' && !$how;
        return [json => error($r, -32601, 'Method not found')] unless $how;

        my @a = ref $how eq 'CODE' ? $how->($r) : $how;

        return @a if ref $a[0] eq 'ARRAY';
        return [json => result($r, $a[0])];
    };
}


package Mcp::Upstream::Child;

use strict;
use warnings;

use IO::Select;
use Socket qw(SOL_SOCKET SO_LINGER IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);


sub new {
    my ($class, %o) = @_;

    return bless { %o, conns => {}, requests => [], commands => '',
                   released => {} }, $class;
}


sub run {
    my ($self) = @_;

    $self->{control}->blocking(0);
    $self->{listen}->blocking(0);

    while (1) {
        my $now = time();
        my $next = 3600;
        my ($r, $w) = (IO::Select->new($self->{control}), IO::Select->new);

        $r->add($self->{listen}) if $self->{listen};

        for my $c (values %{ $self->{conns} }) {
            $r->add($c->{sock});
            $w->add($c->{sock}) if length $c->{out};

            if ($c->{resume}) {
                my $left = $c->{resume} - $now;
                $next = $left if $left < $next;
            }
        }

        my ($can_r, $can_w) = IO::Select->select($r, $w, undef,
                                                 $next > 0 ? $next : 0);

        for my $s (@{ $can_r || [] }) {

            if ($s == $self->{control}) {
                $self->control or return;

            } elsif ($self->{listen} && $s == $self->{listen}) {

                while (my $n = $self->{listen}->accept) {
                    setsockopt($n, IPPROTO_TCP, TCP_NODELAY, 1);
                    $n->blocking(0);
                    $self->{conns}{fileno $n} = {
                        sock => $n, in => '', out => '', todo => [],
                        id => ++$self->{accepted}
                    };
                }

            } elsif (my $c = $self->{conns}{fileno $s}) {
                $self->readable($c);
            }
        }

        for my $s (@{ $can_w || [] }) {
            my $c = defined fileno $s ? $self->{conns}{fileno $s} : undef;
            $self->flush($c) if $c;
        }

        $now = time();

        for my $c (values %{ $self->{conns} }) {
            if ($c->{resume} && $c->{resume} <= $now) {
                delete $c->{resume};
                $self->act($c);
            }
        }
    }
}


sub readable {
    my ($self, $c) = @_;

    my $n = sysread $c->{sock}, $c->{in}, 65536, length $c->{in};

    if (!defined $n) {
        return if $!{EAGAIN} || $!{EINTR};
        $n = 0;
    }

    return $self->finish($c) if $n == 0;

    $self->parse($c);
}


sub parse {
    my ($self, $c) = @_;

    return if $c->{request};

    if (!$c->{head}) {
        $c->{in} =~ s/\A(.*?)\r\n\r\n//s or return;

        my ($line, @lines) = split /\r\n/, $1;
        my ($method, $uri, $version) = split / /, $line;
        my (%h, @raw);

        for (@lines) {
            my ($name, $value) = /^([^:]+):\s*(.*?)\s*$/ or next;
            push @raw, [$name, $value];
            $name = lc $name;
            $h{$name} = exists $h{$name} ? "$h{$name}, $value" : $value;
        }

        $c->{head} = { method => $method, uri => $uri, headers => \%h,
                       version => $version, raw => \@raw };
        $c->{body} = '';
    }

    my $h = $c->{head}{headers};

    if (($h->{'transfer-encoding'} || '') =~ /chunked/i) {

        while (1) {
            $c->{in} =~ /\A([0-9a-fA-F]+)[^\r\n]*\r\n/ or return;

            my $size = hex $1;
            my $begin = $+[0];
            return if length $c->{in} < $begin + $size + 2;

            $c->{body} .= substr $c->{in}, $begin, $size;
            substr $c->{in}, 0, $begin + $size + 2, '';
            last unless $size;
        }

    } else {
        my $left = ($h->{'content-length'} || 0) - length $c->{body};

        $c->{body} .= substr $c->{in}, 0, $left, '';
        return if length $c->{body} < ($h->{'content-length'} || 0);
    }

    my $r = { %{ delete $c->{head} }, body => $c->{body}, at => time(),
              conn => $c->{id}, n => scalar @{ $self->{requests} } };

    $r->{json} = eval { $json->decode($r->{body}) }
        if $r->{body} =~ /^\s*[{[]/;
    push @{ $self->{requests} }, $r;
    $c->{request} = $r;

    my @todo = eval { $self->{handler}->($r) };

    if ($@) {
        print STDERR "upstream handler: $@";
        @todo = ([http => 500, {}, "$@"]);
    }

    $c->{todo} = \@todo;
    $self->act($c);
}


sub act {
    my ($self, $c) = @_;

    return if $c->{resume} || $c->{until};

    while (my $a = shift @{ $c->{todo} }) {
        my ($verb, @arg) = @$a;

        if ($verb eq 'json') {
            my ($status, $headers) = (200, $arg[1] || {});
            my $body = ref $arg[0] ? $json->encode($arg[0]) : $arg[0];
            $c->{out} .= head($status, {
                'Content-Type' => 'application/json', %$headers
            }, length $body) . $body;

        } elsif ($verb eq 'http') {
            my ($status, $headers, $body) = @arg;
            $body = '' unless defined $body;
            my %h = %{ $headers || {} };
            $h{'Content-Type'} ||= 'application/json' if $body =~ /^[{[]/;
            $c->{out} .= head($status, \%h, length $body) . $body;

        } elsif ($verb eq 'sse') {
            $c->{out} .= head(200, {
                'Content-Type' => 'text/event-stream',
                'Cache-Control' => 'no-cache', %{ $arg[0] || {} }
            });
            $c->{chunked} = 1;

        } elsif ($verb eq 'head') {
            $c->{out} .= head($arg[0], $arg[1] || {});
            $c->{chunked} = 1;

        } elsif ($verb eq 'event') {
            my ($data, %o) = @arg;
            my $text = '';

            $text .= "event: $o{event}\n" if defined $o{event};
            $text .= "id: $o{id}\n" if defined $o{id};
            $text .= "retry: $o{retry}\n" if defined $o{retry};

            if (defined $data) {
                $data = $json->encode($data) if ref $data;
                $text .= join '', map { "data: $_\n" } split /\n/, $data, -1;
            }

            $self->part($c, "$text\n");

        } elsif ($verb eq 'comment') {
            $self->part($c, ": $arg[0]\n\n");

        } elsif ($verb eq 'part') {
            $self->part($c, $arg[0]);

        } elsif ($verb eq 'bytes') {
            $c->{out} .= $arg[0];

        } elsif ($verb eq 'wait') {
            $c->{resume} = time() + $arg[0];
            return $self->flush($c);

        } elsif ($verb eq 'until') {
            next if $self->{released}{$arg[0]};
            $c->{until} = $arg[0];
            return $self->flush($c);

        } elsif ($verb eq 'tag') {
            $c->{tag} = $arg[0];

        } elsif ($verb eq 'end') {
            $c->{out} .= "0\r\n\r\n" if delete $c->{chunked};

        } elsif ($verb eq 'cut') {
            $self->flush($c);
            return $self->finish($c, 1);

        } elsif ($verb eq 'reset') {
            $self->flush($c);
            setsockopt $c->{sock}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
            return $self->finish($c, 1);

        } elsif ($verb eq 'hang') {
            $c->{hang} = 1;

        } else {
            print STDERR "upstream: no action \"$verb\"\n";
        }
    }

    return $self->flush($c) if $c->{hang} || $c->{tag};

    $c->{out} .= "0\r\n\r\n" if delete $c->{chunked};
    $c->{request}{ended} = time() if $c->{request};

    my $close = $c->{request}
                && (($c->{request}{version} || '') eq 'HTTP/1.0'
                    || ($c->{request}{headers}{connection} || '') =~ /close/i);

    delete $c->{request};
    $c->{close} = 1 if $close;

    $self->flush($c) or return;
    $self->parse($c) if length $c->{in};
}


sub part {
    my ($self, $c, $bytes) = @_;

    return if $bytes eq '';

    $c->{out} .= $c->{chunked}
                 ? sprintf("%x\r\n%s\r\n", length $bytes, $bytes) : $bytes;
}


sub head {
    my ($status, $headers, $length) = @_;

    my %reason = (200 => 'OK', 202 => 'Accepted', 401 => 'Unauthorized',
                  403 => 'Forbidden', 404 => 'Not Found',
                  405 => 'Method Not Allowed');
    my $text = "HTTP/1.1 $status " . ($reason{$status} || 'Status') . "\r\n";

    for my $name (sort keys %$headers) {
        my $v = $headers->{$name};
        next unless defined $v;
        $text .= "$name: $_\r\n" for ref $v ? @$v : $v;
    }

    $text .= defined $length ? "Content-Length: $length\r\n"
                             : "Transfer-Encoding: chunked\r\n";

    return "$text\r\n";
}


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

    if ($c->{close} && !$c->{request}) {
        $self->finish($c, 1);
        return 0;
    }

    return 1;
}


sub finish {
    my ($self, $c, $own) = @_;

    if (my $r = $c->{request}) {
        $r->{ended} = time();
        $r->{lost} = 1 unless $own;
    }

    delete $self->{conns}{fileno $c->{sock}} if defined fileno $c->{sock};
    close $c->{sock};
    $c->{todo} = [];
    $c->{out} = '';
    delete $c->{resume};

    return 0;
}


sub control {
    my ($self) = @_;

    my $n = sysread $self->{control}, $self->{commands}, 65536,
                    length $self->{commands};

    return 1 if !defined $n && ($!{EAGAIN} || $!{EINTR});
    return 0 unless $n;

    while ($self->{commands} =~ s/\A(.*?)\n//) {
        my ($verb, @arg) = @{ $json->decode($1) };
        my $answer = $self->command($verb, @arg);

        $self->{control}->blocking(1);
        syswrite $self->{control}, $json->encode([$answer]) . "\n";
        $self->{control}->blocking(0);
    }

    return 1;
}


sub command {
    my ($self, $verb, @arg) = @_;

    my @conns = values %{ $self->{conns} };

    if ($verb eq 'requests') {
        return $self->{requests};

    } elsif ($verb eq 'clear') {
        $self->{requests} = [];

    } elsif ($verb eq 'release') {
        $self->{released}{$arg[0]} = 1;

        for my $c (grep { ($_->{until} || '') eq $arg[0] } @conns) {
            delete $c->{until};
            $self->act($c);
        }

    } elsif ($verb eq 'emit') {
        my ($tag, @actions) = @arg;
        my @to = grep { ($_->{tag} || '') eq $tag } @conns;

        for my $c (@to) {
            push @{ $c->{todo} }, map { [@$_] } @actions;
            $self->act($c);
        }

        return scalar @to;

    } elsif ($verb eq 'held') {
        return scalar grep {
            !defined $arg[0] || ($_->{tag} || '') eq $arg[0]
        } @conns;

    } elsif ($verb eq 'refuse') {
        close delete $self->{listen} if $self->{listen};

    } elsif ($verb eq 'restore') {
        $self->{listen} ||= Mcp::Upstream::listen_on($self->{port});
        $self->{listen}->blocking(0);

    } elsif ($verb eq 'drop') {
        $self->finish($_, 1) for @conns;
        return scalar @conns;

    } elsif ($verb eq 'set') {
        $Mcp::Upstream::V{$arg[0]} = $arg[1];

    } elsif ($verb eq 'get') {
        return $Mcp::Upstream::V{$arg[0]};
    }

    return 1;
}


1;
