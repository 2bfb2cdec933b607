package Mcp::Park;

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A server with sessions whose tools ask their clients, and clients of
# 2026-07-28 that are asked. The name of a tool says what it does, word by
# word: a word of requests, joined by "+", is a round (see %ASK), and with
# "..." behind it a thousand messages follow, with "!" it waits for no answer
# and leaves its stream open; "tick" is progress, "log" a message of level
# error, and a number behind it so many, "changed" says that the tools
# changed, "complete" says that a page was visited, "wait" waits for
# release(), as "wait1" does, "stay" leaves the stream open, "cut" closes,
# "big" and a number make the result so large, and "visit" wants pages to be
# visited first, of which "visit-..." names none. With "@" before it, a word of
# messages uses the GET stream of the session (gets => 1), or is lost without
# one, as with servers of the SDK, or waits for one (gets => 2); connections of
# these have the tag "get SESSION".

use strict;
use warnings;

use Mcp::Json;
use Mcp::Modern;
use Mcp::Sse;
use Mcp::Test ();
use Mcp::Upstream;

our %ASK = (
    ask => { method => 'elicitation/create',
             params => { message => 'Really?',
                         requestedSchema => { type => 'object' } } },
    page => { method => 'elicitation/create',
              params => { mode => 'url', message => 'Visit',
                          url => 'http://localhost/' } },
    think => { method => 'sampling/createMessage',
               params => { maxTokens => 1, messages => [] } },
    where => { method => 'roots/list' },
    huge => { method => 'sampling/createMessage',
              params => { maxTokens => 1, messages => [],
                          systemPrompt => 'x' x 600000 } },
);

my %NO_PAGES = (
    none => { elicitations => [] },
    text => { elicitations => ['http://localhost/'] },
    form => { elicitations => [{ message => 'A', requestedSchema => {} }] },
);

our %ANSWER = (
    ask => sub { { action => 'accept', content => { x => 'ask' } } },
    page => sub { { action => 'accept' } },
    think => sub { { role => 'assistant', model => 'm',
                     content => { type => 'text', text => 'y' } } },
    where => sub { { roots => [] } },
);


# the server; more members of %m as Mcp::Upstream::mcp() has them

sub upstream {
    my ($class, %m) = @_;

    my (%calls, $n, $visits);
    my %kept;                                   # messages, by session

    my $ask = sub {
        my ($r) = @_;

        # every second time the client was there

        return [json => { jsonrpc => '2.0', id => $r->{json}{id}, error => {
            code => -32042, message => 'visit', data => { elicitations => [
                map { { mode => 'url', elicitationId => "id-$_",
                        url => "http://localhost/$_", message => uc } }
                qw(a b)] } } }]
            if $r->{json}{params}{name} eq 'visit' && ++$visits % 2;

        # or names no page

        return [json => { jsonrpc => '2.0', id => $r->{json}{id}, error => {
            code => -32042, message => 'visit', data => $NO_PAGES{$1} } }]
            if $r->{json}{params}{name} =~ /^visit-(\w+)/;

        my $call = { r => $r, tag => 'call-' . ++$n, answers => {},
                     session => $r->{headers}{'mcp-session-id'},
                     kept => ($m{gets} || 0) == 2 ? \%kept : undef,
                     token => $r->{json}{params}{_meta}{progressToken},
                     todo => [split / /, $r->{json}{params}{name}] };
        $calls{$call->{tag}} = $call;

        return ([sse => {}], steps($call), [tag => $call->{tag}], [hang =>]);
    };

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { tools => {}, prompts => {}, resources => {} },
        'tools/list' => { tools => [{ name => 'ask', inputSchema => {
                                          type => 'object' } }] },
        'tools/call' => $ask,
        'prompts/get' => $ask,
        'resources/read' => sub {
            my ($r) = @_;
            $r->{json}{params}{name} = $r->{json}{params}{uri} =~ s/^\w+://r;
            return $ask->($r);
        },
        response => sub {
            my ($r) = @_;

            my ($tag, $kind) = $r->{json}{id} =~ /^(call-\d+)\/(\w+)/
                or return [http => 202, {}, ''];
            my $call = $calls{$tag};

            $call->{answers}{$kind} = $r->{json}{result} || $r->{json}{error};

            if (--$call->{open} == 0) {
                $Mcp::Upstream::child->emit([steps($call)],
                                     $Mcp::Upstream::child->tagged($tag));
            }

            return [http => 202, {}, ''];
        },
        $m{gets} ? (GET => sub {
            my ($r) = @_;
            my $session = $r->{headers}{'mcp-session-id'};
            my @do = ([sse => {}], [tag => "get $session"],
                      @{ delete $kept{$session} || [] }, [hang =>]);
            unshift @do, [until => $Mcp::Upstream::V{slow_get}]
                if $Mcp::Upstream::V{slow_get};
            return @do;
        }) : (),
        %m));
}


# up to the next round, or to the end

sub steps {
    my ($call) = @_;

    my (@do, @get);

    my $said = sub {
        my @to = $Mcp::Upstream::child->tagged("get $call->{session}");

        push @{ $call->{kept}{$call->{session}} }, @get
            if $call->{kept} && !@to;

        $Mcp::Upstream::child->emit(\@get, @to) if @get;
        return @do;
    };

    while (defined(my $word = shift @{ $call->{todo} })) {

        my $to = $word =~ s/^\@// ? \@get : \@do;

        if ($word eq 'tick') {
            push @$to, [event => Mcp::Test::notification('progress', {
                progressToken => $call->{token},
                progress => ++$call->{progress} })];

        } elsif ($word =~ /^log(\d*)$/) {
            push @$to, map { [event => Mcp::Test::notification('message', {
                             level => 'error', data => 'log' })] }
                       1 .. ($1 || 1);

        } elsif ($word eq 'changed') {
            push @$to, [event => Mcp::Test::notification(
                        'tools/list_changed')];

        } elsif ($word eq 'complete') {
            push @do, [event => Mcp::Test::notification('elicitation/complete',
                { elicitationId => 'x' })];

        } elsif ($word =~ /^(?:visit|)$/) {
            next;

        } elsif ($word =~ /^wait/) {
            push @do, [until => $word];

        } elsif ($word =~ /^big(\d+)$/) {
            $call->{big} = $1;

        } elsif ($word eq 'stay') {
            $call->{stays} = 1;

        } elsif ($word eq 'cut') {
            return ($said->(), [cut =>]);

        } else {
            my $more = $word =~ s/\.\.\.$//;
            my $hasty = $word =~ s/!$//;
            my @kinds = split /\+/, $word;

            $call->{open} = @kinds;

            push @$to, map { [event => { jsonrpc => '2.0',
                                        id => "$call->{tag}/$_",
                                        %{ $ASK{$_ =~ s/\d+$//r} } }] }
                      @kinds;

            push @$to, map { [event => Mcp::Test::notification('message', {
                             level => 'error', data => 'log' })] }
                      1 .. 1000
                if $more;

            $call->{stays} = 1 if $hasty;

            return $said->() unless $hasty;
        }
    }

    return ($said->(), [event => Mcp::Upstream::result($call->{r}, {
        content => [{ type => 'text',
                      text => $call->{big} ? 'x' x $call->{big}
                              : Mcp::Json::encode($call->{answers}) }] })],
        $call->{stays} ? () : [end =>]);
}


# (client, tool, on => worker, method =>, arguments =>, meta =>, headers =>):
# the last message of the response as {json}, those before in {before}

sub call {
    my ($c, $name, %o) = @_;

    my $method = $o{method} || 'tools/call';
    my %params = $method eq 'resources/read' ? (uri => $name)
                 : (name => $name, arguments => $o{arguments} || { a => 1 });

    return send_message($c, $c->message($method, { %params,
                                                   %{ $o{params} || {} } },
                                        %{ $o{meta} || {} }), %o);
}


# (response, on =>, answers => { key => .. }, change => sub): the next request

sub again {
    my ($r, %o) = @_;

    my $m = Mcp::Json::decode(Mcp::Json::encode($r->{sent}));
    my $result = $r->{json}{result};

    my $next = $r->{client}->message($m->{method}, $m->{params},
                                     %{ $m->{params}{_meta} },
                                     %{ $o{meta} || {} });
    $next->{params}{requestState} = $result->{requestState};
    $next->{params}{inputResponses} = $o{answers} || responses($r);

    $o{change}->($next) if $o{change};

    return send_message($r->{client}, $next, %o);
}


sub responses {
    my ($r) = @_;

    my %asked = %{ $r->{json}{result}{inputRequests} };

    return { map { ($_ => $ANSWER{kind($asked{$_})}->()) } keys %asked };
}


sub kind {
    my ($request) = @_;

    return 'page' if ($request->{params}{mode} || '') eq 'url';

    my ($kind) = grep { $ASK{$_}{method} eq $request->{method} }
                 qw(ask think where);
    return $kind;
}


sub send_message {
    my ($c, $message, %o) = @_;

    my $conn = $o{on} ? $c->{t}->conn_on_worker($o{on}) : $c->{t}->conn;

    my $r = $c->post($message, $o{headers}, stream => 1, conn => $conn);

    @$r{qw(client sent)} = ($c, $message);

    return $r if $o{open};
    return finish($r);
}


# (client, message, on => worker): sends it; arrived() is its response

sub send_only {
    my ($c, $message, %o) = @_;

    my $conn = $o{on} ? $c->{t}->conn_on_worker($o{on}) : $c->{t}->conn;

    return { client => $c, sent => $message,
             conn => $c->send_only($message, $conn) };
}


sub arrived {
    my ($r) = @_;

    return finish({ %$r, %{ $r->{conn}->response('POST', stream => 1) } });
}


# reads the rest of a response

sub finish {
    my ($r) = @_;

    my @messages;

    if (($r->{headers}{'content-type'} || '') =~ /event-stream/) {
        my $sse = Mcp::Sse->new($r);

        while (my $e = $sse->event(20)) {
            push @messages, $e->{json} if $e->{json};
        }

    } else {
        $r->{reader}->slurp(20);
        push @messages, Mcp::Json::decode($r->{reader}{out})
            if length $r->{reader}{out};
    }

    $r->{json} = pop @messages;
    $r->{before} = \@messages;
    $r->{conn}->close;

    return $r;
}


# what the server was answered, as the call says at its end

sub answers {
    my ($r) = @_;

    my $text = $r->{json}{result}{content}[0]{text};
    return defined $text ? Mcp::Json::decode($text) : undef;
}


1;
