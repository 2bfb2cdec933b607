#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# mcp_status: what both forms show of what happened, before and after a
# reload; the text by a strict reading of Prometheus' format.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $rpc = Mcp::Upstream->new(Mcp::Upstream::mcp(
    rpc => 1,
    'tools/list' => { tools => [ map { { name => "t$_", inputSchema =>
                                         { type => 'object' } } } 1 .. 3 ] },
    'tools/call' => sub {
        my ($r) = @_;
        my $name = $r->{json}{params}{name};
        my $answer = [json => Mcp::Upstream::result($r, { content => [] })];

        return ([until => 'slow'], $answer) if $name eq 'slow';
        return [http => 500, {}, ''] if $name eq 'bad';
        return $answer;
    },
    '' => sub { return {} },
));

my $talks = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        return ([sse => {}],
                [event => Mcp::Upstream::result($r, { content => [] })],
                [until => 'over']);
    },
));

my $feed = Mcp::Feed->new;
$feed->set('/sse', retry => 100);

my $conf = <<'EOF';
mcp_zone zone=main:4m;
mcp_drain_time 200ms;

server {
    %%LISTEN%%
    server_name localhost;

    location = /mcp {
        mcp_endpoint   zone=main 'name=%%NAME%%';
        mcp_upstream   rpc /_rpc protocol=rpc;
        mcp_list_cache on;
        mcp_events     /_feed;
        mcp_event_buffer 16 1k;
        mcp_coalesce   60s;
    }

    location = /gone {
        mcp_endpoint  zone=main name=gone;
        mcp_upstream  nobody /_nobody protocol=rpc;
        mcp_event_buffer 16 1k;
    }

    location = /talks {
        mcp_endpoint  zone=main name=talks;
        mcp_upstream  talks /_talks;
    }

    location = /_talks  { internal; proxy_pass http://127.0.0.1:%%TALKS%%; }
    location = /_rpc    { internal; proxy_pass http://127.0.0.1:%%RPC%%; }
    location = /_feed   { internal; proxy_pass http://127.0.0.1:%%FEED%%/sse; }
    location = /_nobody { internal; proxy_pass http://127.0.0.1:%%NOBODY%%; }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; mcp_stream_heartbeat 1ms; }
    location = /calm    { mcp_status zone=main; }
}
EOF

my $name = "a \"b\" \\c \xc3\xbc";
utf8::decode(my $shown = $name);

my $t = Mcp::Test->new(conf => $conf, vars => {
    RPC => $rpc->port, TALKS => $talks->port, FEED => $feed->port,
    NAME => $name, NOBODY => Mcp::Test::free_port() });
my ($r, $j, $p);


# nothing has happened yet

$j = json();
is($j->{sessions}{live}, 0, 'no sessions');
is_deeply($j->{exchanges}{by}, [], 'no exchanges');
is($j->{zone}{bytes}{free} / $j->{zone}{block_size_bytes},
   $j->{zone}{blocks_free}, 'free bytes');
prometheus();


# what happens

my $s = $t->session;
my $get = $s->open_get;

$s->tool('fine') for 1 .. 3;
$s->tool('bad');
$s->call('tools/list');
$s->call("own/method-$_") for 1, 2;
is($t->client(path => '/gone')->initialize->{status}, 502, 'a dead upstream');

my $slow = $s->send_only($s->message('tools/call', { name => 'slow' }));
ok(wait_for { json()->{calls}{running} == 1 }, 'a call runs');

$feed->wait_open('/sse');
$feed->say('/sse', { kind => 'k', n => $_ }) for 1 .. 4;
$feed->say('/sse', 'no JSON');

$t->publish([ { kind => 'x', id => 1 }, { kind => 'x', id => 1 },
              { nothing => 1 }, { kind => 'x', session_id => 'none' },
              notification('y', { x => 'y' x 2000 }) ]);

# its last one is no event; what is counted may be joined a moment later

ok(wait_for {
    $j = json();
    $j->{events}{feed} == 4 && $j->{events}{dropped_invalid} >= 2
    && $j->{events}{coalesced} >= 2 && $j->{lists}{refreshes};
}, 'the feed is read, lists are fetched') or diag(json_encode($j));

is($j->{sessions}{live}, 1, 'sessions');
is($j->{streams}{open}, 1, 'streams');
is($j->{events}{published}, 1, 'published');
is($j->{events}{in}, 5, 'from all sources');
is($j->{events}{coalesced}, 2, 'joined');
is($j->{events}{dropped_repeated}, 1, 'repeated');
is($j->{events}{dropped_unsent}, 1, 'for nobody');
is($j->{events}{dropped_large}, 1, 'too large');
cmp_ok($j->{events}{dropped_invalid}, '>=', 2, 'none that one knows');
ok($j->{zone}{bytes}{$_} > 0, "bytes of $_")
    for qw(sessions streams calls events lists coalesced leases);

my $sum = 0;
$sum += $_ for values %{ $j->{zone}{bytes} };
is($sum, $j->{zone}{blocks} * $j->{zone}{block_size_bytes},
   'all bytes are used for something');

my %by = map { join(' ', @$_{qw(endpoint upstream method)}) => $_ }
             @{ $j->{exchanges}{by} };

$r = $by{"$shown rpc tools/call"};
is($r->{ok}, 3, 'exchanges that went well');
is($r->{bad} + $r->{refused}, 1, 'and one that did not');
is($r->{count}, 4, 'in all; one runs');
is($r->{within_ms}{60000}, 4, 'none of them took a minute');
is($by{"$shown rpc other"}{ok}, 2, 'unknown methods are one');
ok($by{"$shown rpc tools/list"}{ok}, 'the list');
ok(grep({ /^gone nobody \S+\/list$/ && $by{$_}{unreachable} } keys %by),
   'nobody was there');

my ($list) = grep { $_->{list} eq 'tools' && $_->{endpoint} eq $shown }
             @{ $j->{lists}{kept} };
is($list->{audiences}, 1, 'a list is kept');
is($list->{entries}, 3, 'of so many');
ok($list->{bytes} > 0 && $list->{age_ms} >= 0, 'with size and age');

my $lease = feed_lease();
ok(grep({ $_ == $lease->{pid} } $t->workers), 'a worker reads the feed');
cmp_ok($lease->{taken}, '>=', 4, 'so many events');
ok(wait_for { feed_lease()->{silent} }, 'it is silent for three heartbeats');
ok(!feed_lease('/calm')->{silent}, 'which may be longer');


# the same as text

$p = prometheus();
$j = json();

my $zone = 'zone="main"';
my $label = $name;
$label =~ s/(["\\])/\\$1/g;
my $of = "$zone,endpoint=\"$label\",upstream=\"rpc\",method=\"tools/call\"";

is($p->{"nginx_mcp_sessions_live{$zone}"}, 1, 'sessions');
is($p->{"nginx_mcp_events_in_total{$zone,source=\"feed\"}"}, 4, 'events');
is($p->{"nginx_mcp_exchanges_total{$of,outcome=\"ok\"}"}, 3, 'exchanges');
is($p->{"nginx_mcp_exchange_duration_seconds_count{$of}"}, 4,
   'in the histogram');
is($p->{"nginx_mcp_lists_entries{$zone,endpoint=\"$label\",list=\"tools\"}"},
   3, 'lists');
is($p->{"nginx_mcp_leases{$zone,state=\"held\"}"}, $j->{leases}{held},
   'leases');
is($p->{"nginx_mcp_zone_bytes{$zone,use=\"calls\"}"},
   $j->{zone}{bytes}{calls}, 'bytes');

for my $family (['streams', 'closed', 'reason'], ['events', 'in', 'source'],
                ['calls', 'started', 'era'],
                ['events', 'dropped', 'reason'],
                ['exchanges', 'ended', 'outcome'])
{
    my ($g, $n, $by) = @$family;
    my $all = 0;

    $all += $p->{$_}
        for grep { /^nginx_mcp_${g}_${n}_total\{$zone,$by="/ } keys %$p;
    is($all, $j->{$g}{$n}, "$g.$n is the sum of its family");
}


# an upstream may end its stream later than the client has its answer

my $u = $t->session(path => '/talks');

ok($u->call('tools/call', { name => 'x' }, id => 'x')->{result},
   'an answer on a stream');
$talks->release('over');
ok(wait_for { calls_ok('talks') }, 'went well');


# all of it survives a reload

my $before = json();

ok($t->reload, 'reload');
$rpc->release('slow');
is($slow->response('POST')->{status}, 200, 'the call ends');
ok($t->wait_old, 'old workers leave');

$j = json();

for my $g (qw(sessions streams events lists calls exchanges)) {
    my @less = grep { !ref $before->{$g}{$_} && !/^(?:live|open|running)$/
                      && $j->{$g}{$_} < $before->{$g}{$_} }
               keys %{ $before->{$g} };
    is("@less", '', "$g: no counter went back");
}

ok(wait_for { calls_ok() == 4 }, 'the exchange that ended since');
$s->tool('fine');
ok(wait_for { calls_ok() == 5 }, 'and one of a new worker');

prometheus();
done_testing();


sub json {
    my $r = $t->get($_[0] || '/status');

    return json_decode($r->{body});
}


sub feed_lease {
    my ($l) = grep { $_->{key} =~ /_feed/ } @{ json(@_)->{leases}{by} };
    return $l;
}


sub calls_ok {
    my ($endpoint) = (@_, $shown);
    my ($x) = grep { $_->{endpoint} eq $endpoint
                     && $_->{method} eq 'tools/call' }
              @{ json()->{exchanges}{by} };
    return $x->{ok};
}


# every line by the rules; the samples by name and labels

sub prometheus {
    my $text = $t->get('/status?format=prometheus')->{body};
    my (%type, %help, %sample, $family, @bad);
    my $value = qr/(?:[^"\\\n]|\\["\\n])*/;

    push @bad, 'no newline at the end' unless $text =~ /\n\z/;

    for (split /\n/, $text) {

        if (/^# HELP ([a-z_]+) ([A-Z].*\.)$/) {
            push @bad, "two helps: $_" if $help{$1}++;
            next;
        }

        if (my ($new, $is) = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/) {
            push @bad, "no help: $_" unless $help{$new};
            push @bad, "two types: $_" if $type{$new};
            push @bad, "total: $_"
                if ($is eq 'counter') != ($new =~ /_total$/ || 0);
            $family = $new;
            $type{$family} = $is;
            next;
        }

        my ($id, $n, $labels, $v)
            = /^(([a-z_]+)\{((?:[a-z_]+="$value",?)+)\}) (-?\d+(?:\.\d+)?)$/;

        if (!defined $v || $labels =~ /,$/) {
            push @bad, "no sample: $_";
            next;
        }

        my $base = $n;
        $base =~ s/_(?:bucket|sum|count)$// if $type{$family} eq 'histogram';

        push @bad, "not of $family: $_" if $base ne $family;
        push @bad, "twice: $_" if exists $sample{$id};
        push @bad, "negative: $_" if $v < 0;

        $sample{$id} = $v;

        my %names;
        $names{$1}++ while $labels =~ /\G([a-z_]+)="$value",?/g;
        push @bad, "label twice: $_" if grep { $_ > 1 } values %names;
    }

    # buckets grow up to the count

    my %bucket;

    for my $id (keys %sample) {
        my ($n, $l, $le) = $id =~ /^(\w+)_bucket\{(.*),le="([^"]+)"\}$/
            or next;
        push @{ $bucket{$n}{$l} },
             [$le eq '+Inf' ? 9**9**9 : $le, $sample{$id}];
    }

    for my $n (keys %bucket) {
        for my $l (keys %{ $bucket{$n} }) {
            my @b = sort { $a->[0] <=> $b->[0] } @{ $bucket{$n}{$l} };

            push @bad, "no sum: $l" unless exists $sample{"${n}_sum{$l}"};
            push @bad, "no +Inf: $l" if $b[-1][0] != 9**9**9;
            push @bad, "count: $l" if $b[-1][1] != $sample{"${n}_count{$l}"};
            push @bad, "buckets: $l"
                if grep { $b[$_][1] < $b[$_ - 1][1] } 1 .. $#b;
        }
    }

    is(join("\n", @bad), '', 'the text is one that Prometheus reads');

    return \%sample;
}
