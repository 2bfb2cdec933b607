#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Servers of revision 2026-07-28 that want input of the client before they
# answer: clients with sessions get requests, and answer them to any worker;
# clients of the revision get what the server says.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Clock;
use Mcp::Modern;
use Mcp::Test;

my %kinds = (
    ask => { method => 'elicitation/create',
             params => { mode => 'form', message => 'Really?',
                         requestedSchema => { type => 'object' } } },
    page => { method => 'elicitation/create',
              params => { mode => 'url', message => 'Visit',
                          url => 'http://localhost/' } },
    think => { method => 'sampling/createMessage',
               params => { maxTokens => 1, messages => [] } },
    where => { method => 'roots/list' },
);


# asks for what its name says, one round for each word

sub asks {
    my ($r) = @_;

    my $p = $r->{json}{params};
    my @rounds = split / /, $p->{name};
    my $state = defined $p->{requestState} ? $p->{requestState} : '';
    my $n = ($state =~ /(\d+)$/) ? $1 : 0;

    return { content => [{ type => 'text', text => $state }],
             _meta => { responses => $p->{inputResponses} || {} } }
        if $n == @rounds && $p->{name} ne 'forever';

    my $id = json_encode($r->{json}{id});
    my $next = $n + 1;
    my %wants = map { ($_ => $kinds{$_}) } grep { $kinds{$_} }
                split /\+/, $rounds[$n] || '';
    my $wants = %wants ? '"inputRequests":' . json_encode(\%wants) . ',' : '';

    return [json => qq({"jsonrpc":"2.0","id":$id,"result":{"resultType":)
                    . qq("input_required",$wants"requestState":)
                    . qq("\\u0073tate\\/$next"}})];
}


my $clock = Mcp::Clock->new;
my $up = Mcp::Upstream->new(Mcp::Upstream::modern(
    capabilities => { tools => {}, prompts => {} },
    'tools/call' => \&asks,
    'prompts/get' => \&asks,
    'tools/list' => sub {
        return [json => Mcp::Upstream::result($_[0], {
            resultType => 'input_required', requestState => 'x' })];
    },
));

my $t = Mcp::Test->new(vars => { UP => $up->port }, conf => <<'CONF');
mcp_zone zone=main:8m;
mcp_zone zone=small:1m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up protocol=modern;
    }

    location = /small {
        client_max_body_size 8m;
        mcp_endpoint zone=small;
        mcp_upstream up /_up protocol=modern;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
}
CONF

my ($here, $there) = $t->workers;
my %caps = (sampling => {}, roots => {}, elicitation => { form => {},
                                                          url => {} });
my $s = $t->session(caps => \%caps);


# a call on one worker whose requests are answered on another one

sub call {
    my ($name, $answer, %o) = @_;

    my $client = $o{s} || $s;
    my $stream = $client->stream($o{method} || 'tools/call',
                                 { name => $name, arguments => { a => 1 },
                                   _meta => { progressToken => 'p' } },
                                 conn => $t->conn_on_worker($here));
    my @asked;

    while (my $e = $stream->event(10)) {
        my $m = $e->{json} or next;
        return ($m, @asked) unless $m->{method};
        push @asked, $m;
        $answer->($client, $m) if $m->{id};
    }

    return ($stream->{json}, @asked);
}


my %answers = (
    'elicitation/create' => { action => 'accept', content => { x => 1 } },
    'sampling/createMessage' => { role => 'assistant', model => 'm',
                                  content => { type => 'text', text => 'y' } },
    'roots/list' => { roots => [] },
);

my $answer = sub {
    my ($client, $m) = @_;
    my $r = $client->respond($m->{id}, $answers{$m->{method}},
                             conn => $t->conn_on_worker($there));
    is($r->{status}, 202, "$m->{method}: answered");
};


# one round with three requests

$up->clear;
my ($m, @asked) = call('ask+think+where', $answer);

is(join(' ', sort map { $_->{method} } @asked),
   'elicitation/create roots/list sampling/createMessage',
   'the client is asked');
is_deeply([grep { $_->{method} eq 'elicitation/create' } @asked]->[0]{params},
          $kinds{ask}{params}, 'what the upstream wants to know');
is($m->{result}{content}[0]{text}, 'state/1', 'and the call goes on');
is_deeply($m->{result}{_meta}{responses}, {
    ask => $answers{'elicitation/create'},
    think => $answers{'sampling/createMessage'},
    where => $answers{'roots/list'},
}, 'with the answers');

my @calls = $up->calls('tools/call');

is(scalar @calls, 2, 'it was sent twice');
isnt($calls[1]{json}{id}, $calls[0]{json}{id}, 'with another id');
like($calls[1]{body}, qr/"requestState":"\\u0073tate\\\/1"/,
     'the state is given back byte for byte');
is_deeply([@{ $calls[1]{json}{params} }{qw(name arguments _meta)}],
          [@{ $calls[0]{json}{params} }{qw(name arguments _meta)}],
          'the params are the same');


# several rounds, and ones that only take time

$up->clear;
($m, @asked) = call('ask where', $answer);
is($m->{result}{content}[0]{text}, 'state/2', 'two rounds');
is(scalar @asked, 2, 'of one request each');

($m, @asked) = call('state state', $answer);
is($m->{result}{content}[0]{text}, 'state/2', 'nothing is asked');
is(scalar @asked, 0, 'of the client');

($m, @asked) = call('where', $answer, method => 'prompts/get');
is($m->{result}{content}[0]{text}, 'state/1', 'a prompt');

($m, @asked) = call('page', $answer);
ok($asked[0]{params}{elicitationId}, 'a page has an id');
is($asked[0]{params}{url}, 'http://localhost/', 'and its address');


# what fails

my $refuse = sub {
    my ($client, $m) = @_;
    $client->respond_error($m->{id}, -1, 'no',
                           conn => $t->conn_on_worker($there));
};

($m) = call('ask', $refuse);
is_deeply($m->{result}{_meta}{responses}, { ask => { action => 'cancel' } },
          'a person who does not answer');

($m, @asked) = call('think+ask', sub {
    $refuse->(@_) if $_[1]{method} =~ /sampling/;
});
ok($m->{result}{isError}, 'another error ends the call');
like($m->{result}{content}[0]{text}, qr/answered.*with an error/, 'it says so');
my ($cancelled) = grep { $_->{method} eq 'notifications/cancelled' } @asked;
my ($left) = grep { $_->{method} eq 'elicitation/create' } @asked;
is($cancelled->{params}{requestId}, $left->{id}, 'what is left is cancelled');
is($s->respond($left->{id}, {})->{status}, 202, 'an answer that comes late');

($m) = call('where', $refuse, method => 'prompts/get');
is($m->{error}{code}, -32603, 'of a prompt, an error');

my $plain = $t->session(caps => { elicitation => {} });
my $r = $plain->tool('where');
ok($r->{result}{isError}, 'a client that cannot');
like($r->{result}{content}[0]{text}, qr/cannot give/, 'is told');
ok($plain->tool('page')->{result}{isError}, 'nor show a page');

my $url = { elicitation => { url => {} } };
my $pages = $t->session(caps => $url);
ok($pages->tool('ask')->{result}{isError}, 'a client that only shows pages');
($m) = call('page', $answer, s => $pages);
is($m->{result}{content}[0]{text}, 'state/1', 'is asked for these');
$pages = $t->session(version => '2025-06-18', caps => $url);
($m) = call('ask', $answer, s => $pages);
is($m->{result}{content}[0]{text}, 'state/1', 'which older ones cannot mean');

my $json = $t->session(caps => \%caps, accept => 'application/json');
ok($json->tool('ask')->{result}{isError}, 'a client without any stream');

$r = $s->tool('forever');
ok($r->{result}{isError}, 'without an end');
like($r->{result}{content}[0]{text}, qr/too often/, 'it ends at last');
is($s->call('tools/list')->{error}{code}, -32603, 'a list must not ask');
like($t->log, qr/\[error\].*"up".*not completed.*for a method without/,
     'the log says so');


# an answer that the zone has no room for, which the client may give again

my $small = $t->session(path => '/small', caps => \%caps);
($m) = call('ask', sub {
    my ($client, $m) = @_;
    my $large = $client->respond($m->{id}, { action => 'accept',
                                             content => { x => 'x' x 2e6 } },
                                 conn => $t->conn_on_worker($there));
    is($large->{status}, 503, 'an answer that the zone has no room for');
    ok($large->{headers}{'retry-after'}, 'may be sent again');
    is($large->{json}{error}{code}, -32000, 'its code');
    like($large->{json}{error}{message}, qr/zone has no room/, 'and why');
    $answer->($client, $m);
}, s => $small);
is_deeply($m->{result}{_meta}{responses},
          { ask => $answers{'elicitation/create'} }, 'and the call goes on');


# cancelled meanwhile

$up->clear;
my $stream = $s->stream('tools/call', { name => 'ask' },
                        conn => $t->conn_on_worker($here));
my $asked = $stream->method('elicitation/create');
ok($asked, 'a client that is asked');
$s->notify('notifications/cancelled', { requestId => $stream->{id} },
           conn => $t->conn_on_worker($there));
ok(!$stream->event_where(sub { ref $_->{json} && exists $_->{json}{id} }, 2),
   'cancels: no answer');
$s->respond($asked->{json}{id}, $answers{'elicitation/create'});
is($s->tool('state')->{result}{content}[0]{text}, 'state/1', 'another call');
is(scalar(grep { $_->{json}{params}{name} eq 'ask' } $up->calls('tools/call')),
   1, 'the upstream hears no more of the first');


# not answered in ten minutes

$stream = $s->stream('tools/call', { name => 'think+ask' },
                     conn => $t->conn_on_worker($here));
my %open = map { $_->{json}{method} => $_->{json} }
           map { $stream->event_where(sub { ref $_->{json} }) } 1, 2;
$answer->($s, $open{'sampling/createMessage'});
$clock->pass($t, 540);
ok(!$stream->event_where(sub { ref $_->{json} }, 0.5),
   'a client has ten minutes to answer');
$clock->pass($t, 75);

my $too_late = $stream->event_where(sub { ref $_->{json} });
is($too_late->{json}{method}, 'notifications/cancelled', 'then it is told');
is($too_late->{json}{params}{requestId}, $open{'elicitation/create'}{id},
   'which request it need not answer any more');
$r = $stream->event_where(sub { ref $_->{json} })->{json};
is($r->{id}, $stream->{id}, 'and its own is answered');
ok($r->{result}{isError}, 'with an error');
like($r->{result}{content}[0]{text}, qr/did not answer.* in time/,
     'that says why');
$s->respond($open{'elicitation/create'}{id}, $answers{'elicitation/create'});
is($s->tool('state')->{result}{content}[0]{text}, 'state/1', 'another call');


# clients of the revision: each round is an answer, also one that asks nothing

sub rounds {
    my ($name, $caps) = @_;

    my $c = Mcp::Modern->new($t, caps => $caps);
    my $params = { name => $name, arguments => { a => 1 } };
    my (@rounds, $r);

    for (1 .. 5) {
        my $said = $c->call('tools/call', $params)->{json};

        $r = $said->{result} or return ($said, @rounds);
        last if $r->{resultType} ne 'input_required';

        push @rounds, join ' ', map { $r->{inputRequests}{$_}{method} }
                                sort keys %{ $r->{inputRequests} };
        $params = { name => $name, arguments => { a => 1 },
                    $r->{inputRequests} ? (inputResponses => {
                        map { $_ => $answers{$r->{inputRequests}{$_}{method}} }
                        keys %{ $r->{inputRequests} } }) : (),
                    requestState => $r->{requestState} };
    }

    return ($r, @rounds);
}

$up->clear;
($r, @asked) = rounds('where state ask', \%caps);
is_deeply(\@asked, ['roots/list', '', 'elicitation/create'],
          'a client without a session gets the rounds');
is($r->{content}[0]{text}, 'state/3', 'and then the answer');
is_deeply($r->{_meta}{responses}, { ask => $answers{'elicitation/create'} },
          'with what it answered last');
is(scalar $up->calls('tools/call'), 4, 'the upstream gets what it sends');

for my $case (['where', {}], ['where', { roots => undef }],
              ['think', { sampling => JSON::PP::true }],
              ['ask', $url], ['page', { elicitation => {} }],
              ['page', { elicitation => { url => undef } }])
{
    my ($name, $caps) = @$case;

    ($r, @asked) = rounds($name, $caps);
    ok($r->{isError} && !@asked,
       "$name: not asked with " . json_encode($caps));
}

for my $case (['ask', { elicitation => {} }], ['page', $url],
              ['ask', { elicitation => { url => {}, form => {} } }])
{
    my ($name, $caps) = @$case;

    ($r, @asked) = rounds($name, $caps);
    is($asked[0], 'elicitation/create',
       "$name: asked with " . json_encode($caps));
}

done_testing();
