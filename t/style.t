#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# House rules that a program can check.

use FindBin;
use lib "$FindBin::Bin/lib";

use File::Find;

use Mcp::Test;

my $root = $Mcp::Test::ROOT;
my @layers = qw(protocol zone state upstream bridge edge);
my %rank = map { $layers[$_] => $_ } 0 .. $#layers;
my (@all, %text);

find({
    no_chdir => 1,
    wanted => sub {
        if (/\/(?:node_modules|\.build|\.git|seeds|corpus|tmp)$/) {
            $File::Find::prune = 1;
            return;
        }

        return unless -f && -T;
        return if /package-lock\.json$/ || /\.dict$/;
        push @all, substr $_, 1 + length $root;
    },
}, grep { -e } map { "$root/$_" } qw(src t conf config .ci));

@all = sort @all;
$text{$_} = Mcp::Test::slurp_file("$root/$_") for @all;

my @c = grep { /^src\/.*\.[ch]$/ } @all;
my @code = grep { /\.(?:c|h|pl|pm|t|sh|mjs)$/ || $_ eq 'config' } @all;

none('no tabs', sub { /\t/ ? lines(qr/\t/) : () }, @all);
none('no trailing blanks', sub { lines(qr/[ \t]$/) }, @all);
none('no carriage returns', sub { lines(qr/\r/) }, @all);
none('a newline at the end', sub { /[^\n]\z/ ? 'no' : () }, @all);
none('no blank lines at the end', sub { /\n\n\z/ ? 'some' : () }, @all);
none('80 columns', sub { lines(qr/^.{81,}$/) }, @code);

none('a copyright line', sub {
    /Copyright \(C\)/ ? () : 'none'
}, @code);

none('headers say what they are for', sub {
    /\A\s*\/\*\n \* Copyright .*\n \*\/\n\s*\/\*\n \* \S/
    ? () : 'no comment at the top'
}, grep { /\.h$/ } @c);

none('no left-overs', sub {
    lines(qr/\b(?:TODO|FIXME|XXX|HACK)\b/)
}, grep { !m{^t/} } @all);

none('nothing that a worker must not do', sub {
    lines(qr/\b(?:assert|abort|sleep|usleep|system|popen)\s*\(/)
}, @c);

none('no comments of C++', sub { lines(qr{(?<!:)//}) }, @c);

none('files of one responsibility', sub {
    my $n = tr/\n//;
    $n > 2000 ? "$n lines" : ();
}, @c);

none('declarations are aligned and sorted by the length of their types', sub {
    my @bad;

    while (/^\{\n((?:    \S.*\n)+)\n/mg) {
        my ($column, $length) = (0, 0);

        for my $line (split /\n/, $1) {

            # arrays and functions may come last

            $line =~ /^( +((?:\w+ )*\w+)  +\**)\w[^\[(]*;$/ or next;

            $column ||= length $1;
            push @bad, $line
                if length $1 != $column || length $2 < $length;
            $length = length $2;
        }
    }

    return @bad;
}, grep { /\.c$/ } @c);

none('versions of nginx in one header', sub {
    lines(qr/\bnginx_version\b/)
}, grep { !/ngx_http_mcp_compat\.h$/ } @c);

none('no requests below the upstream layer', sub {
    lines(qr/\bngx_http(?:_request_t|\.h)\b/)
}, grep { m{^src/(?:protocol|zone|state)/} } @c);

none('no word of MCP in the zone', sub {
    lines(qr/session|endpoint|tenant|upstream|topic|subscri|notif|json/i)
}, grep { m{^src/zone/} } @c);


# include direction

my %layer_of;

for my $f (@c) {
    my ($layer, $base) = $f =~ m{^src/([^/]+)/([^/]+)$} or next;
    $layer_of{$base} = $layer if $base =~ /\.h$/;
}

none('includes point downwards', sub {
    my ($f) = @_;
    my ($layer) = $f =~ m{^src/([^/]+)/};

    return map {
        my $of = $layer_of{$_};
        !defined $of ? "$_ is not ours"
        : $rank{$of} > $rank{$layer} ? "$layer includes $_ of $of" : ();
    } /^#include "(.+?)"/mg;
}, @c);

# the README has each file in the table of its folder

my %listed;
my ($layout) = Mcp::Test::slurp_file("$root/README.md")
    =~ /^### Code layout\n(.*?)^###/ms;

while ($layout =~ /^`src\/(\w+)` .*?\n\n((?:\|[^\n]*\n)+)/msg) {
    my ($folder, $table) = ($1, $2);
    my $files = join ' ', $table =~ /^\|(.*?)\|/mg;

    $listed{"$folder/$_"} = 1 for $files =~ /`(\w+)`/g;
}

my %bases = map {
    my ($folder, $base)
        = m{^src/(\w+)/ngx(?:_http)?_mcp(\w+?)\.};
    ("$folder/$base" => 1);
} grep { !/_(?:worker|lease|zone|state)_sh\.h$/ } @c;

is_deeply([sort keys %listed], [sort keys %bases], 'the code layout');

my %count;
$count{ s{.*/}{}r }++ for @c;
is_deeply([grep { $count{$_} > 1 } sort keys %count], [], 'unique base names');


# no file uses another one of its folder in a circle; ngx_http_mcp_module.c has
# the tables of what nginx and the folders below call

for my $folder (qw(protocol zone state upstream bridge edge)) {
    my (%defined, %uses);

    my @files = grep { m{^src/$folder/.*(?<!/ngx_http_mcp_module)\.c$} } @c;

    for my $f (@files) {
        $defined{$_} = $f
            for $text{$f} =~ /^(?!static)[^\n(;]*\n(ngx_\w+)\(/mg;
    }

    for my $f (@files) {
        my @used = @defined{$text{$f} =~ /\b(ngx_\w+)/g};

        $uses{$f} = {map { $_ => 1 } grep { $_ && $_ ne $f } @used};
    }

    # those that use none go, again and again

    while (my @free = grep { !%{$uses{$_}} } keys %uses) {
        delete @uses{@free};
        delete @{$_}{@free} for values %uses;
    }

    is_deeply([sort keys %uses], [], "no circle in $folder");
}


# what the module shows to other modules

SKIP: {
    my $so = Mcp::Test::module();

    skip 'no module', 2 unless $so;

    my @symbols = map { (split)[-1] } `nm -D --defined-only $so`;
    my %own = map { $_ => 1 } qw(ngx_modules ngx_module_names
                                 ngx_module_order);

    ok(@symbols > 0, 'symbols');
    is_deeply([grep { !$own{$_} && !/^ngx_(?:http_)?mcp_/ } @symbols], [],
              'exported symbols carry our prefix');
}

done_testing();


sub lines {
    my ($re) = @_;

    my $n = 0;
    return map { $n++; /$re/ ? "$n: $_" : () } split /\n/;
}


sub none {
    my ($name, $sub, @files) = @_;

    my @bad;

    for my $f (@files) {
        local $_ = $text{$f};
        push @bad, map { "$f: $_" } $sub->($f);
    }

    ok(!@bad, $name) or diag(join "\n", splice @bad, 0, 20);
}
