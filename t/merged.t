#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Several upstreams behind one endpoint: errors of merged lists, as clients of
# both eras get them, and rounds of input.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Modern;
use Mcp::Test;

# one without prompts, of each era; resources fail at the second page

my %up = (
    modern => Mcp::Upstream->new(Mcp::Upstream::modern(
        capabilities => { tools => {} },
        info => { name => 'm', version => '1' },
        'tools/list' => { tools => [] },
        'resources/read' => sub {
            my ($r) = @_;

            return { contents => [] } if $r->{json}{params}{inputResponses};
            return { resultType => 'input_required', requestState => 'x',
                     inputRequests => { a => {
                         method => 'elicitation/create', params => {
                             mode => 'form', message => 'Who?',
                             requestedSchema => { type => 'object',
                                                  properties => {} } } } } };
        },
        'resources/list' => sub {
            my ($r) = @_;

            return [http => 400, {},
                    json_encode(Mcp::Upstream::error($r, -32602, 'no page'))]
                if $r->{json}{params}{cursor};
            return { resources => [], nextCursor => 'two' };
        })),
    legacy => Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { tools => {} },
        'tools/list' => { tools => [] },
        'resources/list' => sub {
            my ($r) = @_;

            return [json => Mcp::Upstream::error($r, -32002, 'gone')]
                if $r->{json}{params}{cursor};
            return { resources => [], nextCursor => 'two' };
        })),
    refuses => Mcp::Upstream->new(Mcp::Upstream::mcp(
        capabilities => { tools => {}, prompts => {} },
        'tools/list' => { tools => [] },
        'prompts/list' => sub {
            return [http => 429, { 'Content-Type' => 'application/json' },
                    '{"jsonrpc":"2.0","error":{"code":-32055,"message":"wait"}'
                    . ',"id":null}'];
        })),
    first => Mcp::Upstream->new(Mcp::Upstream::modern(
        capabilities => { resources => {} },
        info => { name => 'f', version => '1' },
        'resources/read' => sub {
            my ($r) = @_;

            return [http => 400, {},
                    json_encode(Mcp::Upstream::error($r, -32602, 'unknown'))];
        })),
);

my $t = Mcp::Test->new(vars => { map { uc $_ => $up{$_}->port } keys %up },
                       conf => <<'EOF');
mcp_zone zone=main:8m;
log_format errors '$mcp_method $mcp_error';

server {
    %%LISTEN%%
    access_log %%DIR%%/errors.log errors;

    location = /modern {
        mcp_endpoint zone=main name=modern;
        mcp_upstream up /_modern prefix=a protocol=modern;
    }
    location = /legacy {
        mcp_endpoint zone=main name=legacy;
        mcp_upstream up /_legacy prefix=a protocol=legacy;
    }
    location = /both {
        mcp_endpoint zone=main name=both;
        mcp_upstream m /_modern protocol=modern;
        mcp_upstream l /_legacy protocol=legacy;
    }
    location = /single {
        mcp_endpoint zone=main name=single;
        mcp_upstream up /_modern protocol=modern;
    }
    location = /seek {
        mcp_endpoint zone=main name=seek;
        mcp_upstream first /_first protocol=modern;
        mcp_upstream m /_modern protocol=modern;
    }
    location = /refuses {
        mcp_endpoint zone=main name=refuses;
        mcp_upstream up /_refuses prefix=a protocol=legacy;
    }
    location = /refuses-single {
        mcp_endpoint zone=main name=refuses-single;
        mcp_upstream up /_refuses protocol=legacy;
    }
    location = /_refuses {
        internal;
        proxy_pass http://127.0.0.1:%%REFUSES%%/;
    }
    location = /_first { internal; proxy_pass http://127.0.0.1:%%FIRST%%/; }
    location = /_modern { internal; proxy_pass http://127.0.0.1:%%MODERN%%/; }
    location = /_legacy { internal; proxy_pass http://127.0.0.1:%%LEGACY%%/; }
}
EOF

my $single = Mcp::Modern::said(
    Mcp::Modern->new($t, path => '/single')->call('resources/list',
                                                  { cursor => 'two' }));

for my $path (qw(/modern /legacy /both)) {
    my $s = $t->session(path => $path);
    my $m = Mcp::Modern->new($t, path => $path);

    my $r = $s->call('prompts/list');
    is($r->{error}{code}, -32601, "$path: nobody has prompts");

    $r = $m->call('prompts/list');
    is(Mcp::Modern::said($r), '404 -32601', 'for both eras');

    $r = $s->call('resources/list');
    is($r->{error}{code}, $path eq '/legacy' ? -32002 : -32602,
       "$path: an error at the second page has the client's id");

    $r = $m->call('resources/list');
    is(Mcp::Modern::said($r), $single, 'for both eras, as without a list');
}

# an upstream's error without an id: with the status of the refusal

{
    my ($merged, $single) = map {
        my $path = $_;
        my $r = Mcp::Modern->new($t, path => $path)->call('prompts/list');
        my $l = $t->session(path => $path)->call('prompts/list');

        join ' ', Mcp::Modern::said($r), $l->{http}{status}, $l->{error}{code};
    } qw(/refuses /refuses-single);

    is($merged, $single, "a refusal: $single");
}

wait_for { (() = $t->slurp('errors.log') =~ m{^resources/list}mg) == 7 };
unlike($t->slurp('errors.log'), qr{^resources/list (?!-32[06]02)}m,
       'the log has the codes');


# an upstream that does not have a resource gets no answers to those that do

my $m = Mcp::Modern->new($t, path => '/seek', caps => { elicitation => {} });
my $r = $m->call('resources/read', { uri => 'x:1' });

is(Mcp::Modern::said($r), '200 input_required', 'a resource that asks');

$r = $m->call('resources/read', {
    uri => 'x:1', requestState => $r->{json}{result}{requestState},
    inputResponses => { a => { action => 'accept', content => {} } } });

is(Mcp::Modern::said($r), '200 complete', 'is answered');
is(scalar $up{first}->calls('resources/read'), 1, 'by nobody else');

done_testing();
