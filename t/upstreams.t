#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Several upstreams behind one endpoint: a plain handler, an MCP server and one
# whose names stay.

use FindBin;
use lib "$FindBin::Bin/lib";

use Digest::SHA qw(sha1_hex);
use Mcp::Modern;
use Mcp::Test;

my $long = 'a_tool_whose_name_alone_takes_nearly_all_of_the_64_bytes_there_are';

sub entry {
    my ($r) = @_;
    return { content => [{ type => 'text',
                           text => $r->{json}{params}{name} }] };
}

sub resource {
    my ($name, %has) = @_;

    return sub {
        my ($r) = @_;
        my $uri = $r->{json}{params}{uri};

        return [json => Mcp::Upstream::error($r, $has{code} || -32002,
                                             'Resource not found')]
            unless $has{$uri};
        return { contents => [{ uri => $uri, text => $name }] };
    };
}

sub complete {
    my ($name) = @_;
    return sub {
        my ($r) = @_;
        my $ref = $r->{json}{params}{ref};
        return [json => Mcp::Upstream::error($r, -32602, 'unknown ref')]
            if $ref->{uri} && $ref->{uri} !~ /^$name:/;
        return { completion => { values => [$name, values %$ref] } };
    };
}

my %list = (
    rpc => [{ name => 'add', title => 'Add' }, { name => $long }],
    mcp => [{ name => 'add', title => 'Add', x => '1.0' },
            { name => 'ask' }, { name => 'hang' }],
    own => [{ name => 'add' }, { name => 'rpc__ghost' }],
);

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => { tools => $list{rpc} },
    'tools/call' => \&entry,
    'prompts/list' => { prompts => [{ name => 'hello' }, { name => $long }] },
    'prompts/get' => sub {
        return { messages => [],
                 description => "rpc $_[0]{json}{params}{name}" };
    },
    'completion/complete' => complete('rpc'),
    'resources/list' => { resources => [{ uri => 'rpc:/1', name => 'one' },
                                        { uri => 'x:/same', name => 'r' }] },
    'resources/read' => resource(rpc => 'rpc:/1' => 1, 'x:/same' => 1),
));

my $ask = sub {
    my ($name) = @_;
    return sub {
        my ($r) = @_;
        my $p = $r->{json}{params};

        return ([sse => {}], [tag => "hang-$r->{json}{id}"], [hang =>])
            if $p->{name} eq 'hang';
        return entry($r) if $p->{name} ne 'ask';
        return ([sse => {}],
                [event => { jsonrpc => '2.0',
                            method => 'notifications/progress',
                            params => { progress => 1, of => $name,
                                progressToken => $p->{_meta}{progressToken} }
                          }],
                [event => { jsonrpc => '2.0', id => 1,
                            method => 'sampling/createMessage',
                            params => { from => $name } }],
                [tag => 'ask'], [hang =>]);
    }
};

my %mcp = (
    capabilities => { tools => {}, prompts => {}, completions => {},
                      resources => { subscribe => JSON::PP::true } },
    'completion/complete' => undef,
    'notifications/cancelled' => undef,
    'resources/unsubscribe' => {},
);

sub subscribe {
    my ($name) = @_;
    return sub {
        my ($r) = @_;
        return [json => Mcp::Upstream::error($r, -32602, 'unknown resource')]
            if $r->{json}{params}{uri} !~ /^$name:/;
        return {};
    };
}

my $mcp = Mcp::Upstream->new(Mcp::Upstream::mcp(
    %mcp,
    'resources/subscribe' => subscribe('mcp'),
    'tools/list' => { tools => $list{mcp} },
    'tools/call' => $ask->('mcp'),
    'completion/complete' => complete('mcp'),
    'resources/list' => { resources => [{ uri => 'mcp:/1', name => 'one' },
                                        { uri => 'x:/same', name => 'm' }] },
    'resources/read' => resource(mcp => 'mcp:/1' => 1, 'x:/same' => 1,
                                 code => -32602),
    'other/method' => { by => 'mcp' },
));

my $own = Mcp::Upstream->new(Mcp::Upstream::mcp(
    %mcp,
    'resources/subscribe' => subscribe('own'),
    'tools/list' => { tools => $list{own} },
    'tools/call' => $ask->('own'),
    'completion/complete' => complete('own'),
    'resources/list' => { resources => [{ uri => 'own:/1', name => 'one' }] },
    'resources/templates/list' => {
        resourceTemplates => [{ uriTemplate => 'own:/item/{id}',
                                name => 'item' }]
    },
    'resources/read' => resource(own => 'own:/1' => 1, 'own:/item/7' => 1,
                                 'mcp:/item/7' => 1),
    'prompts/list' => { prompts => [{ name => 'hello' }] },
    'prompts/get' => { messages => [], description => 'own' },
));

# one whose lists are what the test says

my $odd = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => {} },
    'tools/list' => sub {
        my ($r) = @_;
        my $how = $Mcp::Upstream::V{how} || '';
        my $page = $r->{json}{params}{cursor} || 0;

        return [json => Mcp::Upstream::error($r, -32603, 'broken')]
            if $how eq 'error';
        return { tools => { name => 'x' } } if $how eq 'no array';
        return { tools => [{ name => 1 }] } if $how eq 'no name';
        return { tools => [], nextCursor => 'same' } if $how eq 'circle';
        return { tools => [{ name => 'lone' }], nextCursor => '' }
            if $how eq 'empty';
        return exists $r->{json}{params}{cursor}
               ? { tools => [{ name => 'last' }] }
               : { tools => [{ name => 'first' }], nextCursor => '' }
            if $how eq 'empty first';
        return [json => { jsonrpc => '2.0', id => 'other',
                          result => { tools => [] } }] if $how eq 'id';
        return [http => 401, { 'WWW-Authenticate' => 'Bearer x' }, '']
            if $how eq 'refuses';
        return ([tag => 'slow'], [hang =>]) if $how eq 'slow';

        return { tools => [map { { name => "${_}_" . 'x' x 20000 } }
                           $page * 40 .. $page * 40 + 39],
                 $page < 4 ? (nextCursor => '' . ($page + 1)) : () }
            if $how eq 'large';

        return { tools => [map { { name => "t$page$_" } } 1, 2],
                 $page < 2 ? (nextCursor => '' . ($page + 1)) : () };
    },
));

my $t = Mcp::Test->new(
    vars => { RPC => $rpc->port, MCP => $mcp->port, OWN => $own->port,
              ODD => $odd->port },
    conf => <<'CONF');
mcp_zone zone=main:8m;

log_format up '$mcp_method $mcp_name $mcp_upstream $mcp_error';

map $mcp_name $denied {
    rpc__denied 1;
    denied 1;
}

map $mcp_name $limited {
    rpc__add 1;
}

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_batch on;
        mcp_deny $denied;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_upstream mcp /_mcp;
        mcp_upstream own /_own prefix=none;
        access_log %%DIR%%/up.log up;
    }

    location = /two {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_upstream mcp /_mcp prefix=m;
    }

    location = /one {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc prefix=p;
    }

    location = /kept {
        mcp_endpoint zone=main;
        mcp_list_cache on;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_upstream mcp /_mcp;
        mcp_upstream own /_own prefix=none;
    }

    location = /odd {
        mcp_endpoint zone=main;
        mcp_upstream odd /_odd prefix=none;
        mcp_upstream rpc /_rpc protocol=rpc;
        mcp_deny $denied;
        mcp_builtin_tools session_info;
    }

    location = /_odd { internal; proxy_pass http://127.0.0.1:%%ODD%%/; }

    location = /_rpc {
        internal;
        proxy_pass http://127.0.0.1:%%RPC%%/;
        proxy_set_header X-Name $mcp_name;
        proxy_set_header X-Upstream $mcp_upstream;
        proxy_set_header X-Limited $limited;
    }
    location = /_mcp { internal; proxy_pass http://127.0.0.1:%%MCP%%/; }
    location = /_own { internal; proxy_pass http://127.0.0.1:%%OWN%%/; }
}
CONF

my @workers = $t->workers;
my %up = (rpc => $rpc, mcp => $mcp, own => $own);

sub clear { $_->clear for values %up }

# who was asked for this method

sub asked {
    my ($method) = @_;
    return join ' ', grep { $up{$_}->calls($method) } qw(rpc mcp own);
}

sub cut_name {
    my ($prefix, $name) = @_;
    my $whole = "${prefix}__$name";
    return substr($whole, 0, 55) . '_' . substr sha1_hex($whole), 0, 8;
}

sub text { ($_[0]{result}{content} || [])->[0]{text} }

my $s = $t->session;


# names

for my $worker (@workers) {
    my %on = (conn => $t->conn_on_worker($worker));

    clear();
    is(text($s->tool('rpc__add', {}, %on)), 'add', 'a plain handler');
    is(asked('tools/call'), 'rpc', 'which alone is asked');
    my ($r) = $rpc->calls('tools/call');
    is($r->{headers}{'x-name'}, 'rpc__add', '$mcp_name is what was sent');
    is($r->{headers}{'x-limited'}, '1', 'also for a map');
    is($r->{headers}{'x-upstream'}, 'rpc', '$mcp_upstream');

    clear();
    is(text($s->tool('mcp__add', { a => "\x{e9}" }, %on)), 'add',
       'an MCP server');
    is(asked('tools/call'), 'mcp', 'which alone is asked');
    ($r) = $mcp->calls('tools/call');
    is_deeply($r->{json}{params}, { name => 'add',
                                    arguments => { a => "\x{e9}" } },
              'the rest is as it was');

    clear();
    is(text($s->tool('add', {}, %on)), 'add', 'a name that stays');
    is(asked('tools/call'), 'own', 'and its upstream');
    is(text($s->tool('other__add', {}, %on)), 'other__add',
       'a prefix that nobody has');
    is(text($s->tool('rpc_add', {}, %on)), 'rpc_add', 'or no prefix');

    clear();
    is($s->call('prompts/get', { name => 'rpc__hello' }, %on)
       ->{result}{description}, 'rpc hello', 'a prompt');
    is($s->call('prompts/get', { name => 'hello' }, %on)
       ->{result}{description}, 'own', 'of another');
    is(asked('prompts/get'), 'rpc own', 'each is asked once');
}

my $body = '{"jsonrpc":"2.0", "id" : "x" ,"params":{"_meta":{"a":1.0},'
           . '"name":"mcp__a\u0064d","arguments":{"n":12345678901234567890}},'
           . '"method":"tools/call"}';
clear();
is($s->post($body)->{json}{result}{content}[0]{text}, 'add', 'escapes');
my ($r) = $mcp->calls('tools/call');
(my $sent = $body) =~ s/"mcp__a\\u0064d"/"add"/;
is($r->{body}, $sent, 'only the name is replaced');

clear();
my $two = $t->session(path => '/two');

for (['tools/call', 'tool'], ['prompts/get', 'prompt']) {
    my ($method, $what) = @$_;

    for my $name ('nobody__x', 'x', 'rpc_', 'rpc__', 'mcp__add') {
        my $r = $two->call($method, { name => $name });
        is($r->{error}{code}, -32602, "$method of $name");
        is($r->{error}{message}, "Unknown $what: $name", 'is not known');
        is($r->{http}{status}, 200, 'status');
    }
}

is($two->call('completion/complete', {
    ref => { type => 'ref/prompt', name => 'x' },
    argument => { name => 'a', value => 'b' } })->{error}{message},
   'Unknown prompt: x', 'completion likewise');
is(asked('tools/call') . asked('prompts/get') . asked('completion/complete'),
   '', 'nobody is asked');
is(text($two->tool('m__add')), 'add', 'a prefix of its own');

my $one = $t->session(path => '/one');
is(text($one->tool('p__add')), 'add', 'one upstream with a prefix');
is($one->tool('add')->{error}{code}, -32602, 'and no other names');
is($one->call('resources/read', { uri => 'rpc:/1' })
   ->{result}{contents}[0]{text}, 'rpc', 'but the same URIs');


# a name that was cut is found again, in each worker

my $cut = cut_name('rpc', $long);
is(length $cut, 64, 'a long name');

for my $worker (@workers) {
    for my $method ('tools/call', 'prompts/get') {
        my $r = $s->call($method, { name => $cut },
                         conn => $t->conn_on_worker($worker));
        is($method eq 'tools/call' ? text($r) : $r->{result}{description},
           $method eq 'tools/call' ? $long : "rpc $long",
           "$method by a name that was cut");
    }
}

my $alike = 'rpc__' . 'x' x 50 . '_01234567';
is(text($s->tool($alike)), substr($alike, 5), 'one that only looks like it');

# rules of mcp_deny for it would not see a second name

for (['tools/call'], ['prompts/get'],
     ['completion/complete', argument => { name => 'a', value => 'b' }])
{
    my ($method, %more) = @$_;
    my $name = "p__$long";

    is($one->call($method, %more
                  ? { ref => { type => 'ref/prompt', name => $name }, %more }
                  : { name => $name })->{error}{code}, -32602,
       "$method: the whole name is refused");
}


# completion

for (['mcp__p', mcp => 'p'], ['rpc__p', rpc => 'p'], ['p', own => 'p']) {
    my ($name, $upstream, $local) = @$_;
    my $r = $s->call('completion/complete', {
        ref => { type => 'ref/prompt', name => $name },
        argument => { name => 'a', value => 'b' } });
    my $v = join ' ', sort @{ $r->{result}{completion}{values} || [] };
    is($v, join(' ', sort $upstream, 'ref/prompt', $local),
       "completion of prompt $name");
}

for my $upstream (qw(own mcp rpc)) {
    my $r = $s->call('completion/complete', {
        ref => { type => 'ref/resource', uri => "$upstream:/{x}" },
        argument => { name => 'x', value => 'b' } });
    is($r->{result}{completion}{values}[0], $upstream,
       "completion of a template of $upstream");
}


# resources: who has one is found out once, for all workers

for my $worker (@workers) {
    for my $upstream (qw(own mcp rpc)) {
        clear();
        my $r = $s->call('resources/read', { uri => "$upstream:/1" },
                         conn => $t->conn_on_worker($worker));
        is($r->{result}{contents}[0]{text}, $upstream, "read of $upstream");
        is(asked('resources/read'),
           $worker == $workers[0] && $upstream eq 'own' ? 'rpc mcp own'
           : $worker == $workers[0] && $upstream eq 'mcp' ? 'rpc mcp'
           : $upstream, 'and who was asked for it');
    }
}

is($s->call('resources/read', { uri => 'x:/same' })
   ->{result}{contents}[0]{text}, 'rpc', 'of equal URIs the first');
clear();
$r = $s->call('resources/read', { uri => 'x:/none' });
is($r->{error}{code}, -32002, 'a resource that nobody has');
is(asked('resources/read'), 'rpc mcp own', 'all are asked');
is($r->{http}{status}, 200, 'status');

$rpc->refuse;
is($s->call('resources/read', { uri => 'own:/1' })
   ->{result}{contents}[0]{text}, 'own', 'one is away, another has it');
$r = $s->call('resources/read', { uri => 'x:/none' });
is($r->{http}{status}, 502, 'whoever is away may have it');
is($r->{error}{data}{upstream}, 'rpc', 'and is named');
is($s->call('resources/read', { uri => 'x:/same' })
   ->{result}{contents}[0]{text}, 'mcp', 'or another one has it as well');
$rpc->restore;


# lists, which are not kept

sub names {
    my ($r, $kind) = @_;
    return join ' ', map { $_->{name} } @{ $r->{result}{ $kind || 'tools' } };
}

for my $worker (@workers) {
    my $c = $t->session(conn => $t->conn_on_worker($worker));
    my $r = $c->call('tools/list', {}, conn => $t->conn_on_worker($worker));

    is(names($r), "rpc__add $cut mcp__add mcp__ask mcp__hang add",
       'tools of all');
    is_deeply([map { $_->{title} || '' } @{ $r->{result}{tools} }],
              ['Add', '', 'Add (mcp)', '', '', ''], 'equal titles');
    is(names($c->call('prompts/list'), 'prompts'), "rpc__hello $cut hello",
       'prompts of those that have some');
    is_deeply([map { "$_->{uri} $_->{name}" }
               @{ $c->call('resources/list')->{result}{resources} }],
              ['rpc:/1 one', 'x:/same r', 'mcp:/1 one', 'own:/1 one'],
              'resources, each URI once');
    is(names($c->call('resources/templates/list'), 'resourceTemplates'),
       'item', 'what one has alone');
}

for ('tools/list .* "rpc__ghost" of upstream "rpc"',
     'resources/list .* "x:/same" of upstream "rpc"')
{
    my @lines = $t->log =~ /\[warn\].* 1 entries of the result of $_/g;
    is(scalar @lines, 1, 'what is hidden is said once');
}

is(names($one->call('tools/list')),
   "p__add " . cut_name('p', $long), 'of one upstream with a prefix');
is($s->call('tools/list', { cursor => 'x' })->{error}{code}, -32602,
   'an unknown cursor');


# lists of upstreams that behave oddly

my $rest = "rpc__add $cut";

for my $worker (@workers) {
    my %on = (conn => $t->conn_on_worker($worker));
    my $c = $t->session(path => '/odd');

    $odd->clear;
    is(names($c->call('tools/list', {}, %on)),
       "session_info t01 t02 t11 t12 t21 t22 $rest", 'all pages, one list');
    is(scalar $odd->calls('tools/list'), 3, 'each is asked for once');

    for (['error', qr/: an error;/], ['no array', qr/: the result has no list/],
         ['no name', qr/: a tool has no name/],
         ['circle', qr/: a nextCursor was repeated/],
         ['id', qr/: an answer with another id/], ['refuses', qr/status 401/])
    {
        my ($how, $said) = @$_;
        my $from = length $t->log;

        $odd->set(how => $how);
        is(names($c->call('tools/list', {}, %on)), "session_info $rest",
           "$how: the others");
        like(substr($t->log, $from), qr/ "odd" .*$said/,
             'and the log says why');
    }

    for (['empty', 'lone'], ['empty first', 'first last']) {
        my ($how, $tools) = @$_;
        my $from = length $t->log;

        $odd->set(how => $how);
        $odd->clear;
        is(names($c->call('tools/list', {}, %on)), "session_info $tools $rest",
           "$how cursor: each tool once");
        is(scalar $odd->calls('tools/list'), 2, 'of two pages');
        unlike(substr($t->log, $from), qr/\[error\]/, 'and no error');
    }

    $odd->refuse;
    $odd->drop;
    is(names($c->call('tools/list', {}, %on)), "session_info $rest",
       'one that is away: the others');
    $odd->restore;
    $odd->set(how => '');
}

{
    my $c = $t->session(path => '/odd');
    my %on = (conn => $t->conn);
    $odd->set(how => 'slow');
    my $begin = time;
    my $r = $c->call('tools/list', {}, %on, headers => { Accept =>
        'application/json' });
    within(time - $begin, 4.5, 9, 'one that is slow is waited for');
    is(names($r), "session_info $rest", 'and left out then');
    like($t->log, qr/"odd" has not answered tools\/list 5 s after another/,
         'which the log says');
    ok((wait_for { !$odd->held('slow') }), 'nothing is left of it');
    is($c->call('ping', {}, %on)->{http}{status}, 200,
       'the connection is free at once');

    # it is waited for less until it has answered once

    $odd->set(how => '');
    ok((wait_for {
        names($c->call('tools/list', {}, %on)) ne "session_info $rest"
    }), 'its tools are there again when it answers');

    $odd->set(how => 'large');
    my (@names, $cursor);

    for (1 .. 5) {
        my $r = $c->call('tools/list', $cursor ? { cursor => $cursor } : {});
        push @names, map { $_->{name} =~ /^([a-z0-9]+?)_/ }
                     @{ $r->{result}{tools} };
        $cursor = $r->{result}{nextCursor} or last;
    }

    is(join(' ', @names), join(' ', 'session', 0 .. 199, 'rpc', 'rpc'),
       'a large list has pages of our own');

    $odd->set(how => 'error');
    $rpc->refuse;
    $r = $c->call('tools/list');
    is($r->{error}{message}, 'broken', 'if all fail, the first says why');
    $odd->set(how => 'refuses');
    $r = $c->call('tools/list');
    is($r->{http}{status}, 401, 'or its status');
    is($r->{http}{headers}{'www-authenticate'}, 'Bearer x', 'with its header');
    $rpc->restore;
    $odd->set(how => '');

    $c->delete;
}


# templates, and names that were cut, of lists that are kept

{
    my $c = $t->session(path => '/kept');

    for my $worker (@workers) {
        my %on = (conn => $t->conn_on_worker($worker));

        $c->call($_, {}, %on)
            for 'tools/list', 'resources/list', 'resources/templates/list';
        clear();

        is(text($c->tool($cut, {}, %on)), $long, 'a name that was cut');
        is(asked('tools/list'), '', 'is known');

        for (['own:/item/7', 'own'], ['mcp:/1', 'mcp']) {
            my ($uri, $who) = @$_;
            is($c->call('resources/read', { uri => $uri }, %on)
               ->{result}{contents}[0]{text}, $who, "read of $uri");
        }

        is(asked('resources/read'), 'mcp own', 'each is asked for its own');
        clear();
        is($c->call('completion/complete', {
            ref => { type => 'ref/resource', uri => 'own:/item/{id}' },
            argument => { name => 'id', value => 'b' } }, %on)
            ->{result}{completion}{values}[0], 'own', 'completion');
        is(asked('completion/complete'), 'own', 'of the one with the template');
    }

    $c->delete;
}


# subscriptions

{
    my $c = $t->session;

    for (['own:/1', 'own', 'is made where the resource is'],
         ['own:/never-listed', 'mcp own', 'or where it is accepted'],
         ['mcp:/never-listed', 'mcp', 'in configured order'])
    {
        my ($uri, $who, $what) = @$_;

        clear();
        is_deeply($c->call('resources/subscribe', { uri => $uri })->{result},
                  {}, "subscription to $uri");
        is(asked('resources/subscribe'), $who, $what);

        (my $last = $who) =~ s/.* //;
        clear();
        is_deeply($c->call('resources/unsubscribe', { uri => $uri },
                           conn => $t->conn_on_worker($workers[1]))
                  ->{result}, {}, 'and ended');
        ok($up{$last}->wait_requests(sub {
            ($_[0]{json}{method} || '') eq 'resources/unsubscribe'
        }), 'there');
        is(asked('resources/unsubscribe'), $last, 'only');
    }

    is_deeply($c->call('resources/subscribe', { uri => 'x:/y' })->{result},
              {}, 'one that tells of no updates takes what nobody else does');
    $c->delete;
}


# methods that nobody here knows

is($s->call('other/method', {})->{result}{by}, 'mcp', 'an unknown method');
$r = $s->call('none/method', {});
is($r->{error}{code}, -32601, 'a method that nobody has');


# what is denied

clear();
is($s->tool('rpc__denied')->{http}{status}, 403, 'mcp_deny with a prefix');
is($s->tool('denied')->{http}{status}, 403, 'and without one');
is(text($s->tool('mcp__denied')), 'denied', 'another prefix is another name');
is(asked('tools/call'), 'mcp', 'nobody else is asked');

for (['tools/call', { name => 'add' }], ['prompts/get', { name => 'x' }],
     ['resources/read', { uri => 'a:x' }], ['logging/setLevel', {}],
     ['tools\/call', { name => 'add' }], ['initialize', {}],
     ['server/discover', {}])
{
    my ($method, $params) = @$_;
    clear();
    my $r = $s->post(qq({"jsonrpc":"2.0","method":"$method","params":)
                     . json_encode($params) . '}');
    is($r->{status}, 400, "$method without an id is refused");
    is($r->{json}{error}{code}, -32600, 'as no request');
    like($r->{json}{error}{message}, qr/is a request and needs an "id"/,
         'with the reason');
    is(asked($method =~ s{\\}{}r), '', 'and nobody gets it');
}


# batches

{
    my $c = $t->session(version => '2025-03-26');
    clear();
    my $r = $c->post([
        map { $c->message('tools/call', { name => $_ }) }
            'rpc__add', 'mcp__add', 'add', 'mcp__x' ]);
    is_deeply([map { text($_) } sort { $a->{id} <=> $b->{id} }
               @{ $r->{json} }], [qw(add add add x)], 'a batch');
    is(asked('tools/call'), 'rpc mcp own', 'each gets its own');
}


# two upstreams ask the client at once, with equal ids

{
    my $c = $t->session(caps => { sampling => {} });
    my %sse;

    for my $name ('mcp__ask', 'ask') {
        $sse{$name} = $c->stream('tools/call', {
            name => $name, _meta => { progressToken => "of $name" } });
        is($sse{$name}->method('notifications/progress')
           ->{json}{params}{progressToken}, "of $name", 'progress of a call');
    }

    my %asked = map {
        ($_ => $sse{$_}->method('sampling/createMessage')->{json})
    } keys %sse;

    is($asked{mcp__ask}{params}{from}, 'mcp', 'one asks');
    is($asked{ask}{params}{from}, 'own', 'and another');
    isnt($asked{ask}{id}, $asked{mcp__ask}{id}, 'by ids of our own');

    for my $name ('ask', 'mcp__ask') {
        is($c->respond($asked{$name}{id}, { to => $name })->{status}, 202,
           'the client responds');
        my $up = $name eq 'ask' ? $own : $mcp;
        my ($got) = $up->wait_requests(sub { $_[0]{json}{result} });
        is_deeply($got->{json}, { jsonrpc => '2.0', id => 1,
                                  result => { to => $name } }, "to $name");
        $up->emit('ask', [event => { jsonrpc => '2.0', id => $sse{$name}{id},
                                     result => { of => $name } }], [end =>]);
        is($sse{$name}->response($sse{$name}{id})->{json}{result}{of}, $name,
           'which answers');
    }
}


# cancellation

for my $worker (@workers) {
    my $c = $t->session;
    clear();
    my %sse = map {
        ($_ => $c->stream('tools/call', { name => $_ }))
    } 'mcp__hang', 'hang';

    ok((wait_for { $mcp->held("hang-$sse{mcp__hang}{id}") }), 'one runs');
    ok((wait_for { $own->held("hang-$sse{hang}{id}") }), 'another runs');

    is($c->notify('notifications/cancelled',
                  { requestId => $sse{hang}{id}, reason => 'mine' },
                  conn => $t->conn_on_worker($worker))->{status}, 202,
       'cancelled');
    my ($told) = $own->wait_requests(sub {
        ($_[0]{json}{method} || '') eq 'notifications/cancelled'
    });
    is_deeply($told->{json}{params},
              { requestId => $sse{hang}{id}, reason => 'mine' },
              'its upstream is told');
    is(scalar $mcp->calls('notifications/cancelled'), 0, 'the other is not');
    ok((wait_for { !$own->held("hang-$sse{hang}{id}") }), 'it ends');
    ok($mcp->held("hang-$sse{mcp__hang}{id}"), 'the other goes on');
    $mcp->emit("hang-$sse{mcp__hang}{id}",
               [event => { jsonrpc => '2.0', id => $sse{mcp__hang}{id},
                           result => {} }], [end =>]);
    ok($sse{mcp__hang}->response($sse{mcp__hang}{id}), 'and is answered');
}


# the access log

$s->tool('mcp__add', {}, conn => $t->conn);
$s->call('resources/read', { uri => 'own:/1' }, conn => $t->conn);

Mcp::Modern->new($t)->call(@$_)
    for ['no/such'], ['resources/read', { uri => 'x:nobody' }];

ok((wait_for {
    my $log = $t->slurp('up.log');
    $log =~ /^no\/such  \w+ -32601$/m
    && $log =~ /^resources\/read x:nobody \w+ -32602$/m
}), 'log: what nobody has, as clients of 2026-07-28 are told');

my $log = $t->slurp('up.log');
like($log, qr/^tools\/call rpc__add rpc -?$/m, 'the plain handler');
like($log, qr/^tools\/call mcp__add mcp -?$/m, 'the MCP server');
like($log, qr/^tools\/call add own -?$/m, 'the one without prefix');
like($log, qr/^resources\/read own:\/1 own -?$/m, 'a resource');
like($log, qr/^resources\/read x:\/none \w+ -32002$/m, 'that nobody has');

done_testing();
