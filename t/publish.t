#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_publish: forms, addresses, refusals; mcp_status in both forms.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $t = Mcp::Test->new(conf => <<'EOF');
mcp_zone zone=main:4m;
mcp_zone zone=other:4m;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main name=one;
        mcp_tenant   $http_x_tenant;
    }

    location = /two {
        mcp_endpoint zone=main name=two;
    }

    location = /publish     { mcp_publish zone=main; }
    location = /publish-two { mcp_publish zone=main endpoint=two; }
    location = /publish-for { mcp_publish zone=main tenant=$arg_for; }

    location = /publish-file {
        mcp_publish zone=main endpoint=two;
        client_body_in_file_only clean;
    }

    location = /status { mcp_status zone=main; }
    location = /other  { mcp_status zone=other; }
}
EOF

my ($one, $bold) = map { $t->session(headers => { 'X-Tenant' => $_ }) }
                   qw(acme bold);
my $two = $t->session(path => '/two');
my ($g1, $gb, $g2) = map { $_->open_get } $one, $bold, $two;
my $n = 0;
my ($r, $e);


# forms

$r = publish('/publish', event());
is($r->{status}, 202, 'an object');
is($r->{headers}{'content-type'}, 'application/json', 'is answered in JSON');
is_deeply($r->{json}, { accepted => 1, refused => 0,
                        events => [ { sessions => 3 } ] }, 'with its outcome');
is_deeply([ heard() ], [ 1, 1, 1 ], 'it reaches all');

$r = publish('/publish', '[' . event() . ',' . event() . ']');
is($r->{json}{accepted}, 2, 'an array');
is_deeply([ heard() ], [ 2, 2, 2 ], 'reaches all');

$r = publish('/publish', event() . "\n\n" . event() . "\r\n{bad}\n" . event());
is($r->{status}, 202, 'lines');
is_deeply([ @{ $r->{json} }{qw(accepted refused)} ], [ 3, 1 ],
          'are taken one by one');
like($r->{json}{events}[2]{error}, qr/./, 'with a reason');
is_deeply([ heard() ], [ 3, 3, 3 ], 'the good ones arrive');

$r = publish('/publish-file', "{\n\"jsonrpc\": \"2.0\",\n"
             . "\"method\": \"notifications/n\",\n\"params\": {\"n\":\n1}}");
is($r->{json}{accepted}, 1, 'an object over lines, from a file');
is_deeply([ heard() ], [ 0, 0, 1 ], 'arrives in one line');


# addresses

$r = publish('/publish', event(session_id => $one->id));
is($r->{json}{events}[0]{sessions}, 1, 'to a session');
$e = $g1->event_where(sub { $_->{data} ne '' });
is_deeply([ sort keys %{ $e->{json} } ], [ qw(jsonrpc method params) ],
          'without its address');
is_deeply([ heard() ], [ 0, 0, 0 ], 'and to no other');

$r = publish('/publish', event(tenant_id => 'bold'));
is($r->{json}{events}[0]{sessions}, 1, 'to a tenant');
is_deeply([ heard() ], [ 0, 1, 0 ], 'arrives there');

publish('/publish', '{"jsonrpc":"2.0","\u0074enant_id":"acme",'
        . '"method":"notifications/n","params":{"id":9007199254740993,'
        . '"tenant_id":"x"}}');
$e = $g1->event_where(sub { $_->{data} ne '' });
is($e->{data}, '{"jsonrpc":"2.0","method":"notifications/n",'
   . '"params":{"id":9007199254740993,"tenant_id":"x"}}',
   'an escaped name, and all other bytes as they were');
is_deeply([ heard() ], [ 0, 0, 0 ], 'not for others');

$r = publish('/publish', event(tenant_id => 'bold', session_id => $one->id));
is($r->{json}{refused}, 1, "another tenant's session is not found");

publish('/publish-two', event());
is_deeply([ heard() ], [ 0, 0, 1 ], 'to an endpoint');

$r = publish('/publish-two', event(session_id => $one->id));
is($r->{json}{refused}, 1, "another endpoint's session is not found");

publish('/publish-for?for=acme', event());
is_deeply([ heard() ], [ 1, 0, 0 ], 'to the tenant of the location');

$r = publish('/publish-for?for=acme', event(tenant_id => 'bold'));
is($r->{json}{refused}, 1, 'which an event cannot change');
is(publish('/publish-for', event())->{status}, 403, 'an empty one is refused');
is_deeply([ heard() ], [ 0, 0, 0 ], 'nothing of these arrived');

$one->call('resources/subscribe', { uri => 'file:///a' });
publish('/publish', '{"jsonrpc":"2.0","method":'
        . '"notifications/resources/updated","params":{"uri":"file:///a"}}');
is_deeply([ heard() ], [ 1, 0, 0 ], 'an update reaches who subscribed');

$bold->call('logging/setLevel', { level => 'error' });
publish('/publish', notification('message', { level => 'info', data => 1 }));
is_deeply([ heard() ], [ 1, 0, 1 ], 'a message, who wants its level');


# refusals

for (['{"kind":"a",}', 12], ['{"kind"', 7],
     [qq([{"kind":"a"},\n{"kind" "b"}]), 23], [qq({\n"kind":"a",\n}), 14],
     [qq({x\n{"y"), 1, 4])
{
    my ($text, @at) = @$_;

    is_deeply([ map { $_->{offset} }
                @{ publish('/publish', $text)->{json}{events} } ], \@at,
              "where $text is no JSON");
}

ok(!exists publish('/publish', '{}')->{json}{events}[0]{offset},
   'JSON has no such place');

for my $bad ('', ' ', '[]', '{', 'x', '1', '{"method":"notifications/n"}',
             '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
             '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}',
             '{"jsonrpc":"2.0","method":"sampling/createMessage"}',
             '{"jsonrpc":"2.0","id":1,"result":{}}',
             event(session_id => 'nobody'), event(session_id => 1),
             event(tenant_id => undef),
             event(tenant_id => ''), event(identity => ''),
             { kind => 'x', tenant_id => '' }, { kind => 'x', identity => '' },
             '{"jsonrpc":"2.0","method":"notifications/n","tenant_id":"a",'
             . '"tenant_id":"b"}',
             '{"jsonrpc":"2.0","method":"notifications/message",'
             . '"params":{"level":"loud"}}',
             '{"jsonrpc":"2.0","method":"notifications/resources/updated"}')
{
    $r = publish('/publish', $bad);
    is($r->{status}, 400, "refused: $bad");
    is($r->{json}{accepted}, 0, 'nothing was taken');
}

for my $text ('', " \n", '[]') {
    $r = publish('/publish', $text);
    is($r->{status}, 400, "no event: '$text'");
    is($r->{json}{error}, 'there is no event', 'says so');
}

for my $level ('', ',"level":"healthy"') {
    $r = publish('/publish', '{"jsonrpc":"2.0",'
                 . '"method":"notifications/message","params":{"data":1'
                 . $level . '}}');
    is($r->{status}, 400, "a message with the level '$level'");
    like($r->{json}{events}[0]{error}, qr/"params.level" must be one of.*info/,
         'is told of the levels');
}

for my $address ([], [session_id => $one->id]) {
    $r = publish('/publish', event(@$address, x => 'y' x 70000));
    is($r->{status}, 400, 'one that is too large');
    like($r->{json}{events}[0]{error}, qr/larger than mcp_event_buffer/,
         'says so');
}

is_deeply([ heard() ], [ 0, 0, 0 ], 'nothing of these arrived, not even a gap');

$r = $t->get('/publish');
is($r->{status}, 405, 'GET is no way to publish');
is($r->{headers}{allow}, 'POST', 'POST is');


# status

$r = status('/status');
is($r->{status}, 200, 'status');
is($r->{headers}{'content-type'}, 'application/json', 'in JSON');
is($r->{json}{zone}{name}, 'main', 'of its zone');
is($r->{json}{workers}, 2, 'workers');
is($r->{json}{sessions}{live}, 3, 'sessions');
is($r->{json}{streams}{open}, 3, 'streams');
ok($r->{json}{events}{published} > 10, 'events');
ok($r->{json}{zone}{blocks_free} > 0, 'blocks');
is(status('/other')->{json}{sessions}{live}, 0, 'another zone');

for my $ask (['/status?format=prometheus', {}],
             ['/status', { Accept => 'text/plain;version=0.0.4;q=0.5' }])
{
    $r = $t->get(@$ask);
    like($r->{headers}{'content-type'}, qr{^text/plain; version=0\.0\.4},
         'in text');

    my (%type, %seen, @bad);

    for (split /\n/, $r->{body}) {
        if (my ($new, $type) = /^# TYPE (\w+) (counter|gauge)$/) {
            push @bad, $_ if $type{$new};
            push @bad, $_ if ($type eq 'counter') != ($new =~ /_total$/);
            $type{$new} = $type;

        } elsif (my ($name) = /^(\w+)\{(?:\w+="[^"]*",?)+\} -?\d+$/) {
            push @bad, $_ if !$type{$name} || $seen{s/ .*//r}++;

        } elsif (!/^# HELP \w+ \S/) {
            push @bad, $_;
        }
    }

    is("@bad", '', 'every line is one that Prometheus knows');
    is(join(' ', sort { $a cmp $b } keys %{{
           map { s/\{.*//r => 1 } keys %seen }}), join(' ', sort keys %type),
       'every metric has a value');
    like($r->{body}, qr/^nginx_mcp_sessions_live\{zone="main"\} 3$/m,
         'as in JSON');
}

like($r->{body}, qr/\n\z/, 'it ends with a line');
is($t->request('HEAD', '/status')->{status}, 200, 'HEAD');
is($t->post('/status', {}, '{}')->{status}, 405, 'POST is refused');
is($t->get('/status?format=json', { Accept => 'text/plain' })
   ->{headers}{'content-type'}, 'application/json', 'format= decides');

done_testing();


sub event {
    my (%address) = @_;

    return json_encode(notification('n', { n => ++$n }, %address));
}


sub publish {
    my ($uri, $body) = @_;
    return $t->publish($body, $uri);
}


sub status {
    my $r = $t->get(@_);

    $r->{json} = json_decode($r->{body});
    return $r;
}


# how many messages each of the three has heard since, before a marker

sub heard {
    my $marker = notification('marker', { n => ++$n });
    my @counts;

    is(publish('/publish', json_encode($marker))->{json}{events}[0]{sessions},
       3, 'a marker');

    for my $get ($g1, $gb, $g2) {
        my $count = 0;

        while (my $e = $get->event) {
            last if ref $e->{json}
                    && $e->{json}{method} eq 'notifications/marker';
            $count++ if $e->{data} ne '';
        }

        push @counts, $count;
    }

    return @counts;
}
