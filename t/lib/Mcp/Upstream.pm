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

use MIME::Base64 ();

use parent 'Mcp::Server';


# new($sub, port => N); the sub gets the request: { n, method,
# uri, headers, body, json, at, conn }

sub new {
    my ($class, $handler, %o) = @_;
    return $class->SUPER::new(%o, handler => $handler, requests => []);
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


# requests that clients caused: those that the module makes by itself may come
# at any time, and have no header of a client

sub asked { $_[0]->requests(sub { $_[0]{headers}{'x-test-client'} }) }


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

# (tag, 'newest' or 'oldest', @actions): to one of them
sub emit_one { my $s = shift; $s->ask('emit_one', @_) }

sub drop    { $_[0]->ask('drop') }                  # cut all connections
sub set     { $_[0]->ask('set', $_[1], $_[2]) }     # $Mcp::Upstream::V{name}
sub get     { $_[0]->ask('get', $_[1]) }

our %V;

# for handlers: how many connections have the tag, and to close them
our $child;
sub tagged { my @c = $child->tagged($_[0]); return scalar @c }
sub cut    { $child->finish($_, 1) for $child->tagged($_[0]) }


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


# The handler of a small server of 2026-07-28, which refuses what is not as that
# revision wants it. Keys of %m as above; special ones: capabilities, info,
# params => { tool => { header => 'argument' } }. A listening request is
# acknowledged with what it asks for, and its connection is tagged "listen".

sub modern {
    my (%m) = @_;

    my $key = 'io.modelcontextprotocol/';

    return sub {
        my ($r) = @_;

        my ($j, $h) = @$r{qw(json headers)};

        return [http => 405, { Allow => 'POST' }, '']
            if $r->{method} ne 'POST';
        return [http => 400, {}, 'not JSON-RPC'] unless ref $j eq 'HASH';

        my $refuse = sub {
            my ($status, $code, $message, $data) = @_;
            my $e = error($r, $code, $message);
            $e->{error}{data} = $data if $data;
            return [http => $status, {}, Mcp::Json::encode($e)];
        };

        my $method = defined $j->{method} ? $j->{method} : '';
        my $p = $j->{params} || {};
        my $meta = $p->{_meta};

        return $refuse->(400, -32022, 'version', { supported => [
                                                   '2026-07-28' ] })
            if !(ref $meta eq 'HASH' && $meta->{"${key}protocolVersion"})
               && ($h->{'mcp-protocol-version'} || '') ne '2026-07-28';
        return $refuse->(400, -32602, 'no envelope')
            unless ref $meta eq 'HASH' && $meta->{"${key}protocolVersion"}
                   && ref $meta->{"${key}clientCapabilities"} eq 'HASH';
        return $refuse->(400, -32020, 'MCP-Protocol-Version')
            unless ($h->{'mcp-protocol-version'} || '')
                   eq $meta->{"${key}protocolVersion"};
        return $refuse->(400, -32022, 'version', { supported => [] })
            unless $meta->{"${key}protocolVersion"} eq '2026-07-28';
        return $refuse->(400, -32020, 'Mcp-Method')
            unless ($h->{'mcp-method'} || '') eq $method;
        return $refuse->(400, -32020, 'a session')
            if $h->{'mcp-session-id'} || $h->{'last-event-id'};

        my %named = ('tools/call' => 'name', 'prompts/get' => 'name',
                     'resources/read' => 'uri');

        if (my $member = $named{$method}) {
            return $refuse->(400, -32020, 'Mcp-Name')
                unless header_text($h->{'mcp-name'}) eq bytes($p->{$member});
        }

        if ($method eq 'tools/call') {
            my $want = $V{params} || $m{params} || {};
            $want = $want->{$p->{name}} || {};

            for my $name (sort keys %$want) {
                my $value = $p->{arguments};
                $value = $value->{$_} for split /\./, $want->{$name};
                $value = $value ? 'true' : 'false'
                    if JSON::PP::is_bool($value);

                my $is = header_text($h->{'mcp-param-' . lc $name});

                return $refuse->(400, -32020, "Mcp-Param-$name")
                    unless defined $value ? $is eq bytes($value)
                                          : $is eq '';
            }
        }

        return [http => 202, {}, ''] unless exists $j->{id};

        if ($method eq 'server/discover') {
            return [json => result($r, {
                resultType => 'complete', ttlMs => 0, cacheScope => 'private',
                supportedVersions => $m{versions} || ['2026-07-28'],
                capabilities => $m{capabilities} || {
                    tools => { listChanged => JSON::PP::true }
                },
                defined $m{instructions}
                    ? (instructions => $m{instructions}) : (),
                _meta => { "${key}serverInfo" => $m{info}
                           || { name => 'modern', version => '1' } },
            })];
        }

        if ($method eq 'subscriptions/listen' && !$m{$method}) {
            my %n = %{ $p->{notifications} || {} };
            my %refused = map { $_ => 1 } @{ $V{refused} || [] };

            $n{resourceSubscriptions} = [
                grep { !$refused{$_} } @{ $n{resourceSubscriptions} }
            ] if $n{resourceSubscriptions};

            return ([sse => {}], [event => tagged_with($r, {
                jsonrpc => '2.0',
                method => 'notifications/subscriptions/acknowledged',
                params => { notifications => \%n }
            })], [tag => 'listen'], [hang =>]);
        }

        my $how = exists $m{$method} ? $m{$method} : $m{''};

        return $refuse->(404, -32601, 'Method not found') unless $how;

        my @a = ref $how eq 'CODE' ? $how->($r) : $how;

        return @a if ref $a[0] eq 'ARRAY';

        return [json => result($r, {
            resultType => 'complete',
            $method =~ /list$|read$/ ? (ttlMs => 0, cacheScope => 'private')
                                     : (),
            _meta => { "${key}serverInfo" => { name => 'modern',
                                               version => '1' } },
            %{ $a[0] }
        })];
    };
}


# a message of a stream that a request listens on

sub tagged_with {
    my ($r, $message) = @_;

    $message->{params}{_meta}{'io.modelcontextprotocol/subscriptionId'}
        = $r->{json}{id};
    return $message;
}


sub bytes {
    my ($text) = @_;
    utf8::encode($text) if utf8::is_utf8($text);
    return $text;
}


# the text that stands in a header

sub header_text {
    my ($value) = @_;

    return '' unless defined $value;
    return $value unless $value =~ /^=\?base64\?(.*)\?=$/;
    return MIME::Base64::decode_base64($1);
}


package Mcp::Upstream::Child;

use strict;
use warnings;

use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(time);

use parent -norequire, 'Mcp::Server::Child';


sub run {
    my ($self) = @_;

    $Mcp::Upstream::child = $self;
    $self->SUPER::run;
}


# ends [wait => ..]

sub due {
    my ($self, $now) = @_;

    my $next = 3600;

    for my $c ($self->conns) {
        my $at = $c->{resume} or next;

        if ($at <= $now) {
            delete $c->{resume};
            $self->act($c);
            $at = $c->{resume} or next;
        }

        $next = $at - $now if $at - $now < $next;
    }

    return $next;
}


sub received { $_[0]->parse($_[1]) }


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

    $r->{json} = eval { Mcp::Json::decode($r->{body}) }
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
            my $body = ref $arg[0] ? Mcp::Json::encode($arg[0]) : $arg[0];
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
                $data = Mcp::Json::encode($data) if ref $data;
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

    if (my $r = delete $c->{request}) {
        $c->{last} = 1 if ($r->{version} || '') eq 'HTTP/1.0'
                          || ($r->{headers}{connection} || '') =~ /close/i;
    }

    $self->flush($c) or return;
    $self->parse($c) if length $c->{in} && !$c->{last};
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


sub ended {
    my ($self, $c, $own) = @_;

    if (my $r = $c->{request}) {
        $r->{ended} = time();
        $r->{lost} = 1 unless $own;
    }

    $c->{todo} = [];
    delete $c->{resume};
}


# oldest first

sub tagged {
    my ($self, $tag) = @_;

    return sort { $a->{id} <=> $b->{id} }
           grep { ($_->{tag} || '') eq $tag } $self->conns;
}


sub emit {
    my ($self, $actions, @to) = @_;

    for my $c (@to) {
        push @{ $c->{todo} }, map { [@$_] } @$actions;
        $self->act($c);
    }

    return scalar @to;
}


sub command {
    my ($self, $verb, @arg) = @_;

    my @conns = $self->conns;

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

        return $self->emit(\@actions, $self->tagged($tag));

    } elsif ($verb eq 'emit_one') {
        my ($tag, $which, @actions) = @arg;
        my @to = $self->tagged($tag);

        return $self->emit(\@actions,
                           @to ? $to[$which eq 'newest' ? -1 : 0] : ());

    } elsif ($verb eq 'held') {
        return scalar grep {
            !defined $arg[0] || ($_->{tag} || '') eq $arg[0]
        } @conns;

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
