#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What upstreams say of requests that they refuse, and what of it reaches the
# client; results that are larger than they may be; methods that are not
# offered.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my %no_id = map { $_ => {
    jsonrpc => '2.0',
    $_ eq 'null' ? (id => undef) : (),
    error => { code => -32099, message => "of \"mine\"",
               data => { n => [1] } },
} } qw(none null);

# errors that are none of JSON-RPC

my %errors = (
    'empty' => '', 'no code' => '"message":"m"', 'no message' => '"code":-1',
    'a text as code' => '"code":"x","message":"m"',
    'a fraction as code' => '"code":1.5,"message":"m"',
    'an exponent in the code' => '"code":1e3,"message":"m"',
    'a large code' => '"code":99999999999999999999,"message":"m"',
    'a number as message' => '"code":-32601,"message":5',
    'null as message' => '"code":-32601,"message":null',
);

# answers that are no responses of JSON-RPC, and what the log says of them

my %unfit = (
    'both' => ['"jsonrpc":"2.0","result":{},"error":{"code":1,"message":"m"}',
               qr/both result and error/],
    'both, null' => ['"jsonrpc":"2.0","result":{},"error":null',
                     qr/both result and error/],
    'neither' => ['"jsonrpc":"2.0"', qr/neither result nor error/],
    'no jsonrpc' => ['"result":{}', qr/no "jsonrpc":"2.0"/],
    'jsonrpc 1.0' => ['"jsonrpc":"1.0","result":{}', qr/no "jsonrpc":"2.0"/],
    'a number' => ['"jsonrpc":2.0,"result":{}', qr/no "jsonrpc":"2.0"/],
    map { ("an error, $_" => [qq("jsonrpc":"2.0","error":{$errors{$_}}),
                              qr/an error without an integer "code"/]) }
        keys %errors,
);

# the same, seen only at the end of a large result

my %late = (
    'an error behind it' => ['"jsonrpc":"2.0",',
                             ',"error":{"code":1,"message":"m"}'],
    'jsonrpc nowhere' => ['', ''],
    'a number behind it' => ['', ',"jsonrpc":2.0'],
);

# answers come whole, in pieces, or as events

my %ways = (
    whole => sub { [http => 200, { 'Content-Type' => 'application/json' },
                    qq({"id":$_[0],$_[1]})] },
    large => sub { [http => 200, { 'Content-Type' => 'application/json' },
                    qq({"id":$_[0],$_[1],"pad":") . 'x' x 100_000 . '"}'] },
    late => sub { [http => 200, { 'Content-Type' => 'application/json' },
                   qq({"id":$_[0],"pad":") . 'x' x 100_000 . qq(",$_[1]})] },
    sse => sub { [sse => {}], [event => qq({"id":$_[0],$_[1]})], [end =>] },
);

my $html = "<html>\r\n\t<b>No\x01 credit</b> \xff\xc3\xa9" . 'x' x 5000;

sub faulty {
    my ($r) = @_;
    my $p = $r->{json}{params}{arguments};
    my $body = $p->{zero} ? '{"jsonrpc":"2.0","error":{"code":0,"message":"x"}}'
        : $p->{id} ? json_encode($no_id{$p->{id}}) : $p->{html}
        ? $html : $p->{large} ? '{"detail":"no ' . 'x' x 100_000 . '"}'
        : '{"detail":"out of credit"}';
    my $type = $p->{html} ? 'text/html' : 'application/json';

    return [sse => {}], [event => $body], [end =>] if $p->{sse};
    return [http => $p->{status}, { 'Content-Type' => $type,
                                    'Retry-After' => 17 }, $body];
}

sub sized {
    my ($r) = @_;
    my $text = json_encode(Mcp::Upstream::result($r, {
        x => 'x' x $r->{json}{params}{arguments}{size} }));
    my $p = $r->{json}{params}{arguments};

    return [sse => {}], [event => $text] if $p->{sse};
    return [http => 200, { 'Content-Type' => 'application/json' }, $text]
        unless $p->{chunked};
    $text = substr $text, 0, -1 if $p->{bad};
    $text = "{$text" if $p->{wrong};
    return [head => 200, { 'Content-Type' => 'application/json' }],
           (map { [part => $_] }
                unpack '(a' . ($p->{part} || 30_000) . ')*', $text),
           $p->{cut} ? [cut =>] : [end =>];
}

sub many {
    my ($r) = @_;
    my $h = $r->{headers};

    return [http => 200, { 'Content-Type' => 'application/json',
                           'Set-Cookie' => 'a=b',
                           map { ("X-R-$_" => 'r' x 90) } 1 .. 30 },
            json_encode(Mcp::Upstream::result($r, {
                got => [ map { $h->{"x-c-$_"} } 1 .. 30 ] }))];
}

my %handlers = ('tools/call' => sub {
    my ($r) = @_;
    my $name = $r->{json}{params}{name};
    return many($r) if $name eq 'many';
    return sized($r) if $name eq 'sized';
    my $way = $ways{$r->{json}{params}{arguments}{way} // 'whole'};
    return $way->($r->{json}{id}, qq("jsonrpc":"2.0","error":{"code":$1,)
                                  . '"message":"m"}')
        if $name =~ /^code (.*)/;
    return $way->($r->{json}{id}, $unfit{$name}[0]) if exists $unfit{$name};
    return [http => 200, { 'Content-Type' => 'application/json' },
            qq({$late{$name}[0]"id":$r->{json}{id},"result":{"x":")
            . 'x' x 100_000 . qq("}$late{$name}[1]})]
        if exists $late{$name};
    return faulty($r);
}, 'tools/list' => { tools => [] }, 'logging/setLevel' => {});

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(%handlers));
my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(%handlers, rpc => 1));
my $logs = Mcp::Upstream->new(Mcp::Upstream::mcp(%handlers,
    capabilities => { logging => {} }));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, RPC => $rpc->port, LOGS => $logs->port },
    conf => <<'CONF');
mcp_zone zone=main:8m;
mcp_zone zone=events:4m;

log_format call '$mcp_request_id $mcp_error $status';

server {
    %%LISTEN%%
    server_name localhost;
    access_log %%DIR%%/call.log call;
    mcp_message_limit 200k;

    location = /legacy { mcp_endpoint zone=main; mcp_upstream up /_up; }
    location = /wide   { mcp_endpoint zone=main; mcp_upstream wide /_wide; }
    location = /rpc    { mcp_endpoint zone=main; mcp_upstream up /_rpc; }
    location = /logs   { mcp_endpoint zone=main; mcp_upstream up /_logs; }
    location = /said   { mcp_endpoint zone=main; mcp_upstream up /_up;
                         mcp_capabilities tools logging; }
    location = /events { mcp_endpoint zone=events; }
    location = /pub    { mcp_publish zone=events; }

    location = /_up   { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_wide { internal; proxy_pass http://127.0.0.1:%%UP%%/;
                        proxy_buffer_size 256k; proxy_buffers 4 256k;
                        proxy_busy_buffers_size 256k; }
    location = /_rpc  { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_logs { internal; proxy_pass http://127.0.0.1:%%LOGS%%/; }
}
CONF

# a large body, whose first bytes come alone or with all others

for my $path (qw(legacy wide)) {
    my $s = $t->session(path => "/$path");
    my $r = $s->tool('x', { status => 500, large => 1 });

    like($r->{error}{data}{body}, qr/^\{"detail":"no x+$/,
         "$path: a large error is quoted");

    for (['bad', 30_000], ['wrong', 30_000], ['bad', 100_000],
         ['wrong', 100_000])
    {
        my ($bad, $part) = @$_;

        $r = $s->tool('sized', { size => 150_000, chunked => 1, $bad => 1,
                                 part => $part });
        like($r->{error}{data}{body}, qr/^\{+"id":/,
             "so is a result of invalid JSON, $bad in parts of $part");
    }
}

# status of the upstream, of the client

my @statuses = (
    [400, 400], [402, 402], [404, 502], [405, 502], [406, 502], [408, 502],
    [409, 409], [413, 413], [415, 502], [418, 502], [422, 422], [429, 503],
    [451, 451], [500, 502], [502, 502], [503, 503], [504, 504],
);

# one after the other, and with many headers on either side

for my $kind (qw(legacy rpc)) {
    my $s = $t->session(path => "/$kind");
    my $conn = $t->conn;

    for my $n (1, 30, 1) {
        my %h = map { ("X-C-$_" => "c$_" x 30) } 1 .. $n;
        my $r = $s->tool('many', {}, headers => \%h, conn => $conn);

        is_deeply($r->{result}{got},
                  [ map { $_ > $n ? undef : "c$_" x 30 } 1 .. 30 ],
                  "$kind, $n headers more: all reach the upstream");
        is($r->{http}{headers}{'set-cookie'}, 'a=b',
           'one of 33 reaches the client');
    }
}

for my $kind (qw(legacy rpc)) {
    my $s = $t->session(path => "/$kind");

    for (@statuses) {
        my ($theirs, $ours) = @$_;
        my $name = "$kind, $theirs";

        # -32601 of a handler that has no such method

        next if $kind eq 'rpc' && $theirs =~ /^40[45]$/;

        for my $id (qw(none null)) {
            my $r = $s->tool('x', { status => $theirs, id => $id });

            is($r->{http}{status}, $ours, "$name, id $id: status $ours");
            $theirs == 404 ? like($r->{error}{data}{body}, qr/of \\"mine/,
                                  'the error is quoted')
                : is_deeply($r->{error}, $no_id{$id}{error},
                            'the error is theirs')
                or diag($r->{http}{body});
            is($r->{id}, $s->{next} - 1, 'the id is ours');
        }

        my $r = $s->tool('x', { status => $theirs, html => 1 });

        is($r->{http}{status}, $ours, "$name, HTML: status $ours");
        is($r->{error}{code}, $ours =~ /^50[24]$/ ? -32603 : -32000, 'code');
        like($r->{error}{message}, qr/HTTP status $theirs$/,
             'the message has their status');
        is($r->{error}{data}{upstream}, 'up', 'the data name the upstream');
        is($r->{error}{data}{status}, $theirs, 'and the status');
        like($r->{error}{data}{body},
             qr{^<html> <b>No credit</b> \?\x{e9}x+$},
             'and have the beginning of the body');
        is($r->{http}{headers}{'retry-after'}, 17, 'Retry-After') ;

        $r = $s->tool('x', { status => $theirs });
        is($r->{error}{data}{body}, '{"detail":"out of credit"}',
           'as of JSON that is no message');

        next if $theirs == 404;

        $r = $s->tool('x', { status => $theirs, zero => 1 });
        is($r->{http}{status}, $ours, "$name, an error with code 0: status");
        is_deeply($r->{error}, { code => 0, message => 'x' },
                  'the error is theirs');
        ok((wait_for { $t->slurp('call.log') =~ /^$r->{id} 0 $ours$/m }),
           'its code is in $mcp_error');
    }

    for my $id (qw(none null)) {
        for my $sse (0, 1) {
            my $r = $s->tool('x', { status => 200, id => $id, sse => $sse });

            is($r->{http}{status}, 200, "$kind, 200, id $id, SSE $sse: 200");
            is_deeply($r->{error}, $no_id{$id}{error}, 'the error is theirs');
        }
    }

    my $last = $s->{next} - 1;
    ok((wait_for { $t->slurp('call.log') =~ /^$last -32099 200$/m }),
       'its code is in $mcp_error');

    for my $way (sort keys %ways) {
        is($s->tool('code -32601.0', { way => $way })->{error}{message}, 'm',
           "$kind, $way, a code that is an integer all the same: passed on");

        my $r = $s->tool('code 0', { way => $way });

        is($r->{error}{message}, 'm', "$kind, $way, a code of 0: passed on");
        ok((wait_for { $t->slurp('call.log') =~ /^$r->{id} 0 200$/m }),
           'and 0 in $mcp_error');

        for (sort keys %unfit) {
            next if $way eq 'large' && $_ eq 'no jsonrpc';      # see %late

            my $seen = length $t->slurp('error.log');
            my $r = $s->tool($_, { way => $way });

            is($r->{http}{status}, 502, "$kind, $way, answered with $_: 502");
            is($r->{error}{code}, -32603, 'code');
            is($r->{error}{data}{upstream}, 'up', 'names the upstream');
            like(substr($t->slurp('error.log'), $seen),
                 qr/mcp upstream "up" answered with $unfit{$_}[1]/,
                 'the log says why');
        }
    }

    for (sort keys %late) {
        my $r = $s->tool($_)->{http};

        is($r->{status}, 200, "$kind, a large result, $_");
        ok($r->{truncated}, 'the response is cut');
    }

    my $r = $s->tool('x', { status => 200, html => 1 });
    is($r->{http}{status}, 502, "$kind, HTML with 200: 502");
    like($r->{error}{data}{body}, qr/^<html> <b>No credit/, 'is quoted');

    # results of any size, with a length or without one, whole or not at all

    for my $size (60_000, 70_000, 199_000, 210_000, 900_000) {
        for my $how ({}, { chunked => 1 }, { sse => 1 }) {
            my $r = $s->tool('sized', { size => $size, %$how });
            my $name = "$kind, $size, " . join ' ', %$how;

            if ($size < 200_000) {
                is(length $r->{result}{x}, $size, "$name: whole");
                next;
            }

            # it may take long enough for a stream to be opened
            is($r->{http}{status}, $r->{http}{sse} ? 200 : 502,
               "$name: refused");
            is($r->{error}{code}, -32603, 'code');
            like($r->{error}{message}, qr/mcp_message_limit/,
                 'names the directive');
        }
    }

    for my $how (qw(cut bad)) {
        my $r = $s->tool('sized', { size => 150_000, chunked => 1,
                                    $how => 1 });
        is($r->{http}{status}, 502, "$kind, $how: 502, nothing in part");
        is($r->{error}{code}, -32603, 'code');
    }
}


# logging/setLevel where logging is offered, and where not

for (['/legacy', 0], ['/rpc', 0], ['/logs', 1], ['/said', 1], ['/events', 1])
{
    my ($path, $offered) = @$_;
    my $s = $t->session(path => $path);
    my $r = $s->call('logging/setLevel', { level => 'error' });

    is(!!$s->{server}{capabilities}{logging}, !!$offered,
       "$path: logging is " . ($offered ? 'offered' : 'not offered'));
    $offered ? is_deeply($r->{result}, {}, 'setLevel')
             : is($r->{error}{code}, -32601, 'setLevel: -32601');
}

$t->allow_log(qr/answered with status/, qr/over the limit/,
              qr/content type/, qr/cut its response/, qr/invalid JSON/);
done_testing();
