#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What access rules saw is what leaves, for random spellings of messages. The
# upstream reads JSON in every lenient way at once: names of members in any
# case, of Unicode as well, until a NUL, first and last of several, what an
# array holds for what it is. Whatever it may act on must be what $mcp_method
# and $mcp_name said, and nothing that mcp_deny forbids.
#
# MCP_SEED=N repeats a run, MCP_CASES=N is how many messages (3000).

use FindBin;
use lib "$FindBin::Bin/lib";

use Encode ();

use Mcp::Test;

my $seed = $ENV{MCP_SEED} || int rand 1e9;
my $cases = $ENV{MCP_CASES} || 3000;

srand $seed;
diag("MCP_SEED=$seed");

my @methods = ('tools/call', 'tools/call', 'tools/call', 'prompts/get',
               'resources/read', 'completion/complete', 'x/y', 'Tools/Call',
               'RESOURCES/READ', 'Completion/Complete', 'tools/list');
my @names = ('open', 'other', 'file:///open', 'secret', 'secret',
             'file:///secret', 'events://secret/latest',
             'events://%73ecret/latest', '5', 'caf\u00e9', 'Secret');

my $rpc = Mcp::Upstream->new(reading(Mcp::Upstream::mcp(rpc => 1, '' => {})));
my $mcp = Mcp::Upstream->new(reading(Mcp::Upstream::mcp('' => {})));

my $t = Mcp::Test->new(
    vars => { RPC => $rpc->port, MCP => $mcp->port }, conf => <<'CONF');
mcp_zone zone=main:8m;
mcp_batch on;

map $mcp_name $denied {
    default    0;
    ~*secret   1;
}

server {
    %%LISTEN%%

    mcp_deny $denied;
    proxy_set_header X-Method $mcp_method;
    proxy_set_header X-Name "[$mcp_name]";

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc protocol=rpc;
    }

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream mcp /_mcp listen=off;
        mcp_builtin_tools wait_for_event;
    }

    location = /_rpc { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }
    location = /_mcp { internal; proxy_pass http://127.0.0.1:%%MCP%%/; }
}
CONF

my %status;
my @sessions = map { $t->session(path => $_, version => '2025-03-26',
                                 conn => $t->conn) } qw(/rpc /mcp);

# each is one that is forwarded, so that the rest is worth something

for my $s (@sessions) {
    for ([ 'tools/call', name => 'open' ], [ 'x/y', uri => 'open' ],
         [ 'completion/complete', ref => { name => 'open' } ])
    {
        my ($method, %params) = @$_;
        is($s->call($method, \%params)->{http}{status}, 200,
           "$s->{path} $method");
    }
}

for my $up ($rpc, $mcp) {
    is_deeply($up->get('wrong') || [], [], 'and seen as it is');
}

my $before = acted();

for my $n (1 .. $cases) {
    my $s = $sessions[rand @sessions];
    my $body = Encode::encode('UTF-8', batch($n));
    my $r = $s->post($body);

    $status{$r->{status}}++;

    if ($r->{status} !~ /^(200|202|400|403)$/) {
        fail("case $n: $r->{status}");
        diag($body);
        last;
    }

    if ($n % 200 == 0) {
        $_->clear for $rpc, $mcp;
    }
}

for my $up ($rpc, $mcp) {
    my $wrong = $up->get('wrong') || [];

    is(scalar @$wrong, 0, 'acted on what the rules saw, and on nothing else')
        or diag(join "\n", splice @$wrong, 0, 5);
}

my $acted = acted() - $before;

cmp_ok($acted, '>', $cases / 10, "of $cases messages, $acted were acted on");
cmp_ok($status{$_} || 0, '>', $cases / 50, "$_: " . ($status{$_} || 0))
    for 200, 400, 403;

done_testing();


sub acted { return ($rpc->get('acted') || 0) + ($mcp->get('acted') || 0) }


# the upstream

sub reading {
    my ($handler) = @_;

    return sub {
        my ($r) = @_;

        my @messages = $r->{method} eq 'POST' ? judge($r) : ();

        # Perl's JSON takes no half surrogate pair

        $r->{json} ||= {
            map {
                my $v = $_->[1];
                ($_->[0] => $v->{type} eq 'text' ? $v->{text} : 0 + $v->{text})
            } grep { $_->[0] =~ /^(id|method)$/ } @{ $messages[0]{members} }
        };

        return $handler->($r);
    };
}


# notes in 'wrong' what is not as the headers say

sub judge {
    my ($r) = @_;

    my $text = $r->{body};
    my $at = 0;
    my @messages = flat(parse(\$text, \$at));
    my $method = $r->{headers}{'x-method'} // '';
    my $name = $r->{headers}{'x-name'} // '[]';

    for my $m (@messages) {
        for my $reading (readings($m)) {
            my $got = "$reading->[0] [$reading->[1]]";

            $Mcp::Upstream::V{acted}++;

            if ($got ne "$method $name" || $reading->[1] =~ /secret/i) {
                push @{ $Mcp::Upstream::V{wrong} },
                     "$method $name, but $got: $text";
            }
        }
    }

    return @messages;
}


# all objects of arrays within arrays

sub flat {
    my ($value) = @_;

    return $value->{type} eq 'object' ? $value
           : $value->{type} eq 'array' ? map { flat($_) } @{ $value->{list} }
           : ();
}


# [method, name] in all ways to read a message; names are decoded bytes

sub readings {
    my ($m) = @_;

    my @r;

    for my $method (map { text($_) } member($m, 'method')) {
        my $kind = lc $method;
        my @names;

        for my $params (map { flat($_) } member($m, 'params')) {
            my @refs = map { flat($_) } member($params, 'ref');

            push @names, member($params, 'name')
                if $kind !~ m{^(resources/|completion/)};
            push @names, member($params, 'uri')
                if $kind !~ m{^(tools/|prompts/|completion/)};
            push @names, map { member($_, 'name'), member($_, 'uri') } @refs
                if $kind !~ m{^(tools/|prompts/|resources/)};
        }

        # by position

        for (member($m, 'params')) {
            push @names, grep { $_->{type} eq 'text' } @{ $_->{list} || [] };
        }

        @names = () if $kind eq 'tools/list';

        @names = map { text($_) } @names;

        # without a name, what needs one is not done

        push @names, '' if !@names && $kind =~ m{^(tools/list|x/y)$};

        push @r, map { [$method, $_] } @names;
    }

    return @r;
}


# values of what may be taken for a member

sub member {
    my ($object, $want) = @_;

    return map { $_->[1] } grep { folded($_->[0]) eq $want }
           @{ $object->{members} };
}


sub folded {
    my ($name) = @_;

    $name =~ s/\0.*//s;
    $name =~ s/[\x{d800}-\x{dfff}]//g;
    $name =~ tr/\x{130}\x{131}\x{17f}\x{212a}/iisk/;

    return lc $name;
}


# what a lenient reader makes of a value that is no string

sub text {
    my ($value) = @_;

    return map { text($_) } @{ $value->{list} } if $value->{type} eq 'array';
    return '{}' if $value->{type} eq 'object';
    return () if $value->{type} eq 'null';

    my $text = $value->{text};

    $text =~ s/\0.*//s;
    $text =~ s/[\x{d800}-\x{dfff}]/\x{fffd}/g;

    return Encode::encode('UTF-8', $text);
}


# JSON, all members in their order; surrogates that are alone stay

sub parse {
    my ($text, $at) = @_;

    pos($$text) = $$at;
    $$text =~ /\G\s*/gc;

    my $value;

    if ($$text =~ /\G"/gc) {
        $value = { type => 'text', text => string($text) };

    } elsif ($$text =~ /\G\{/gc) {
        my @members;

        while ($$text =~ /\G[\s,]*"/gc) {
            my $name = string($text);

            $$text =~ /\G\s*:/gc or die "no colon: $$text";
            $$at = pos $$text;
            push @members, [$name, parse($text, $at)];
            pos($$text) = $$at;
        }

        $$text =~ /\G\s*\}/gc or die "no end: $$text";
        $value = { type => 'object', members => \@members };

    } elsif ($$text =~ /\G\[/gc) {
        my @list;

        while ($$text !~ /\G[\s,]*\]/gc) {
            $$text =~ /\G[\s,]*/gc;
            $$at = pos $$text;
            push @list, parse($text, $at);
            pos($$text) = $$at;
        }

        $value = { type => 'array', list => \@list };

    } elsif ($$text =~ /\G([-+.\w]+)/gc) {
        $value = { type => $1 eq 'null' ? 'null' : 'other', text => $1 };

    } else {
        die "no value: $$text";
    }

    $$at = pos $$text;
    return $value;
}


sub string {
    my ($text) = @_;

    $$text =~ /\G((?:[^"\\]|\\.)*)"/gc or die "no string: $$text";

    my $raw = Encode::decode('UTF-8', my $copy = $1);

    no warnings 'surrogate';

    $raw =~ s{\\(?:u([dD][89abAB]..)\\u([dD][c-fC-F]..)|u(....)|(.))}{
        defined $1 ? chr(0x10000 + ((hex($1) - 0xd800) << 10)
                         + hex($2) - 0xdc00)
        : defined $3 ? chr hex $3
        : { b => "\b", f => "\f", n => "\n", r => "\r", t => "\t" }->{$4}
          // $4
    }gex;

    return $raw;
}


# the client: text of JSON with characters, not bytes

sub one { return $_[rand @_] }
sub chance { return rand() < $_[0] }


sub batch {
    my ($n) = @_;

    my $text = message($n);

    return $text if chance(0.75);

    my @list = ($text, map { message("$n$_") } 1 .. rand 3);

    for my $m (@list) {
        $m = "[$m]" while chance(0.3);
    }

    $text = '[' . join(',', @list) . ']';
    $text = "[$text]" if chance(0.1);

    return $text;
}


# a list of [name, raw value], of which a few are changed

sub message {
    my ($id) = @_;

    my $method = one(@methods);
    my $name = quoted(one(@names));
    my $kind = lc $method;
    my @params = $kind =~ /^resources/ ? ([uri => $name])
                 : $kind =~ /^completion/
                 ? ([ref => object([ one('name', 'uri'), $name ])])
                 : $kind eq 'x/y' ? ([ one('name', 'uri'), $name ])
                 : $kind eq 'tools/list' ? ()
                 : ([ name => $name ]);

    push @params, [ arguments => '{"name":"inner","URI":1}' ] if chance(0.3);

    my @changes = map { one(qw(other twice value respell params)) }
                  1 .. one(0, 0, 1, 1, 1, 2, 3);

    for (@changes) {
        change($_, \@params);
    }

    my $params = object(@params);

    if (grep { $_ eq 'params' } @changes) {
        $params = one("[$params]", "[$name]", "[[$params]]", 'null', $name,
                      '[]', $params, $params);
    }

    my @members = ([ jsonrpc => '"2.0"' ], [ id => $id ],
                   [ method => quoted($method) ], [ params => $params ]);

    splice @members, 1, 1 if chance(0.05);

    change(one(qw(twice respell)), \@members) if chance(0.2);

    return object(@members);
}


sub change {
    my ($what, $members) = @_;

    my $member = @$members ? one(@$members) : [ name => '"open"' ];
    my $value = $what eq 'value' || chance(0.3)
                ? one(5, 'null', 'true', '["secret"]', '["open"]',
                      '{"name":"secret"}', '[[{"name":"secret"}]]', '""',
                      '"secret\u0000"', '"open\u0000secret"', '"\ud83dsecret"',
                      '"sec\ud83dret"', '"\u0073ecret"')
                : quoted(one(@names));

    if ($what eq 'other') {
        splice @$members, rand @$members + 1, 0,
               one([ name => $value ], [ uri => $value ],
                   [ ref => object([ one(qw(name uri NAME)), $value ]) ]);

    } elsif ($what eq 'twice') {
        splice @$members, rand @$members + 1, 0,
               [ chance(0.5) ? $member->[0] : respelled($member->[0]),
                 chance(0.3) ? $member->[1] : $value ];

    } elsif ($what eq 'value') {
        $member->[1] = $value;

    } elsif ($what eq 'respell') {
        $member->[0] = respelled($member->[0]);
    }
}


# a name that some take for this one, or that is it

sub respelled {
    my ($name) = @_;

    return $name =~ s/(\w)/escape($1)/re if chance(0.2);
    return uc $name if chance(0.2);
    return ucfirst $name if chance(0.2);
    return $name . one('\u0000', '\u0000x', '\ud83d', ' ', '_')
        if chance(0.4);

    my %like = (i => [ "\x{131}", "\x{130}", '\u0131' ], s => [ "\x{17f}",
                '\u017F' ], k => [ "\x{212a}", '\u212a' ]);

    my @parts = map {
        $like{$_} && chance(0.7) ? one(@{ $like{$_} }) : chance(0.2) ? uc : $_
    } split //, $name;

    return join '', @parts;
}


sub escape { return sprintf '\u%04x', ord $_[0] }


# letters may be escaped

sub quoted {
    my ($text) = @_;

    $text =~ s/([a-z])/chance(0.2) ? escape($1) : $1/ge
        if chance(0.3) && $text !~ /\\/;

    return "\"$text\"";
}


sub object {
    return '{' . join(',', map { (chance(0.1) ? ' ' : '') . "\"$_->[0]\":"
                                 . (chance(0.1) ? "\n" : '') . $_->[1] } @_)
           . '}';
}
