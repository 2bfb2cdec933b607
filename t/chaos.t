#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Everything at once, at random: clients that come, leave and break off,
# upstreams and feeds that hang, cut, lie, die and come back, workers that
# stand still for a while, so that much arrives in one turn of their event
# loop, are killed and replaced by others of another configuration. Afterwards
# nothing is left of it. MCP_CHAOS_SEED repeats the same dice,
# MCP_CHAOS_SECONDS goes on for longer.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;
use Mcp::Node;

use File::Temp ();
use POSIX ();

my $seed = $ENV{MCP_CHAOS_SEED} || int rand 1e6;
my $seconds = $ENV{MCP_CHAOS_SECONDS} || 8;
my $clients = $ENV{MCP_CHAOS_CLIENTS} || 5;

note("seed $seed");
srand $seed;

my $dir = File::Temp::tempdir(CLEANUP => 1);

system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
       . " -keyout $dir/key.pem -out $dir/cert.pem 2>/dev/null") == 0
    or die 'openssl failed';

my $legacy = server();
my $shaky = server();
my $rpc = server(rpc => 1);

my $f = Mcp::Feed->new;
$f->set('/a', retry => 50);
$f->set('/b', ids => 0, retry => 50);
$f->set('/c', lines => 1, ids => 0);

my $t = Mcp::Test->new(
    events => 'worker_connections 2048;',
    vars => { UP => $legacy->port, SHAKY => $shaky->port, RPC => $rpc->port,
              FEED => $f->port, PEM => $dir },
    conf => conf());

# killed here on purpose
$t->allow_log(qr/exited on signal 9/);
$t->allow_log(qr/was locked by/);

my $end = time() + $seconds;
my @children = map { child($_) } 1 .. $clients;
push @children, child(0, Mcp::Node::node(), Mcp::Node::dir() . '/chaos.mjs',
                      $t->port('h2'), $t->port('tls'), $seconds, $seed);
my %did;

# who stands still, until when
my %still;
my ($reload, $kill) = (time() + 1, time() + 2 + rand 3);

while (time() < $end) {
    wake();
    turn();
    select undef, undef, undef, rand() < 0.3 ? 0 : rand 0.05;
}

wake(1);
$_->restore for $legacy, $shaky, $rpc, $f;

my $lost = 0;

for my $c (@children) {
    local $/;
    my $fh = $c->{out};
    my $text = <$fh>;

    waitpid $c->{pid}, 0;
    is($?, 0, "client $c->{n}");

    my ($n, @did) = split ' ', defined $text ? $text : '';
    $lost += $n || 0;
    $did{$_}++ for @did;
}

note(join ', ', map { "$did{$_} $_" } sort keys %did);

my $j;

my $calm = wait_for {
    $j = json_decode($t->get('/status')->{body}) or return 0;
    $j->{sessions}{live} <= $lost && !$j->{streams}{open}
    && !$j->{calls}{running};
} 20;

ok($calm, 'all sessions, streams and calls have ended')
    or diag("sessions $j->{sessions}{live} (lost $lost), streams "
            . "$j->{streams}{open}, calls $j->{calls}{running}");

is(scalar(() = $t->log =~ / \[crit\] /g), 0, 'nothing is critical');

is(scalar(grep { $_->{body} =~ /secret/ }
          map { $_->requests } $legacy, $shaky, $rpc), 0,
   'nothing that is denied has reached an upstream');

my $s = $t->session(path => '/none');
is($s->call('ping')->{result} && 1, 1, 'nginx serves');
$s->delete;

for my $pid ($t->workers) {
    my @fds;

    # upstream streams of clients that left are held for a while
    wait_for { @fds = glob "/proc/$pid/fd/*"; @fds < 80 } 20;
    note("worker $pid: ", scalar @fds, ' descriptors');
    cmp_ok(scalar @fds, '<', 80, 'descriptors');
}

done_testing();


# the configuration, which a reload may change

sub conf {
    my $zone = 'main:' . ($seed % 3 ? '8m' : '1m');
    my $coalesce = pick('0', '30ms', '200ms');
    my $cache = pick('off', 'on ttl=200ms', 'on key=$http_x_tenant');
    my $after = pick('0', '20ms', '200ms');
    my $park = pick('on', 'on', 'off');
    my $heartbeat = pick('15s', '50ms');
    my $more = pick('mcp_events /_feed/b;', '');
    my $buffer = pick('4 1k', '64 16k');
    my $room = pick('1k', '64k');
    my $batch = pick('on', 'on', 'off');
    my $rate = pick('', '', 'limit_rate 20k;',
                    'limit_rate_after 1k; limit_rate 200k;');

    return <<"EOC";
mcp_zone zone=$zone;

map \$mcp_name \$secret { ~secret 1; default 0; }

mcp_drain_time 200ms;
mcp_stream_retry 20ms;
mcp_stream_after $after;
mcp_stream_heartbeat $heartbeat;
mcp_stream_park $park;
mcp_stream_limit 2;
mcp_stream_buffer $room;
mcp_call_limit 8;
mcp_subscription_limit 4;
mcp_event_buffer $buffer;
mcp_message_limit 300k;
mcp_upstream_timeout 1s total=3s;
mcp_coalesce $coalesce;
mcp_list_cache $cache;
mcp_batch $batch;
mcp_topic_limit 64;
mcp_deny \$secret;
$rate
mcp_tenant t\$http_x_tenant;
mcp_builtin_tools wait_for_event session_info;
mcp_invalidate tools list_changed=tools message=\$n;
mcp_invalidate res updated=file:///\$n notify=x/y;
mcp_invalidate * message=\$n;
send_timeout 1s;

server {
    %%LISTEN%%
    listen 127.0.0.1:%%PORT_h2%% http2;
    listen 127.0.0.1:%%PORT_tls%% ssl;
    ssl_certificate      %%PEM%%/cert.pem;
    ssl_certificate_key  %%PEM%%/key.pem;
    server_name localhost;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_events /_feed/a;
    }

    location = /shaky {
        mcp_endpoint zone=main;
        mcp_upstream shaky /_shaky;
        mcp_events /_feed/of/\$mcp_tenant;
        $more
    }

    location = /rpc {
        mcp_endpoint zone=main;
        mcp_upstream rpc /_rpc;
        mcp_events /_feed/c topic=lines;
        mcp_events /_feed/topic/\$mcp_topic;
    }

    location = /none {
        mcp_endpoint zone=main;
    }

    location /_feed/ {
        internal;
        proxy_pass http://127.0.0.1:%%FEED%%/;
    }

    location = /_up    { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location = /_shaky { internal; proxy_pass http://127.0.0.1:%%SHAKY%%/; }
    location = /_rpc   { internal; proxy_pass http://127.0.0.1:%%RPC%%/; }

    location = /publish { mcp_publish zone=main; }
    location = /status  { mcp_status zone=main; }
}
EOC
}


sub pick { $_[rand @_] }


# an upstream whose answers depend on the name of the tool, or on dice

sub server {
    my (%o) = @_;

    return Mcp::Upstream->new(Mcp::Upstream::mcp(
        %o,
        capabilities => { tools => { listChanged => JSON::PP::true },
                          resources => {}, prompts => {}, logging => {} },
        'tools/list' => sub { page('tools', sub {
            { name => "t$_[0]", inputSchema => { type => 'object' } } }, @_) },
        'prompts/list' => sub { page('prompts', sub {
            { name => "p$_[0]" } }, @_) },
        'resources/list' => sub { page('resources', sub {
            { uri => "file:///$_[0]", name => "r$_[0]" } }, @_) },
        'resources/templates/list' => { resourceTemplates => [] },
        'resources/subscribe' => sub {
            rand() < 0.2 ? pick([cut =>], [http => 404, {}, ''],
                                [json => Mcp::Upstream::error($_[0], -32002,
                                                              'no')])
                         : {}
        },
        GET => sub {
            return pick([http => 405, {}, ''], [cut =>], [hang =>],
                        [http => 404, {}, ''])
                if rand() < 0.2;
            return ([sse => {}], [tag => 'get'],
                    [event => said(), id => int rand 100],
                    rand() < 0.3 ? ([wait => rand 0.5], [cut =>]) : ());
        },
        DELETE => sub {
            rand() < 0.2 ? pick([hang =>], [reset =>]) : [http => 200, {}, '']
        },
        'tools/call' => sub {
            my ($r) = @_;
            return answer($r, $r->{json}{params}{name} || '');
        },
        '' => sub { rand() < 0.8 ? {} : ([wait => rand 0.6],
            [json => Mcp::Upstream::result($_[0], {})]) },
    ));
}


sub page {
    my ($kind, $entry, $r) = @_;

    return [http => 500, {}, ''] if rand() < 0.1;
    return ([wait => 0.2], [json => Mcp::Upstream::result($r, { $kind => [] })])
        if rand() < 0.1;

    my $at = (($r->{json}{params} || {})->{cursor} || 0) eq "1";

    return {
        $kind => [ map { $entry->($at * 10 + $_) } 1 .. 1 + rand 3 ],
        $at < 1 && rand() < 0.3 ? (nextCursor => '1') : ()
    };
}


sub said {
    my $n = int rand 4;

    return pick(
        { jsonrpc => '2.0', method => 'notifications/tools/list_changed' },
        { jsonrpc => '2.0', method => 'notifications/message',
          params => { level => 'info', data => 'x' x rand 3000 } },
        { jsonrpc => '2.0', method => 'notifications/resources/updated',
          params => { uri => "file:///$n" } },
        { jsonrpc => '2.0', id => "s$n", method => pick('ping', 'roots/list'),
          params => {} },
        pick('keepalive', '{', '[]', '{"jsonrpc":"2.0","method":7}',
             '{"jsonrpc":"2.0","method":"notifications/message","params":'
             . '{"level":"info","data":"cut \\ud83d"}}'),
    );
}


sub answer {
    my ($r, $name) = @_;

    my $result = Mcp::Upstream::result($r, { content => [
        { type => 'text', text => 'x' x ($name eq 'big' ? 90000 : 10) } ] });
    my @start = ([sse => {}], map { [event => said()] } 1 .. 1 + rand 3);

    return [json => $result] if $name eq 'json' || $name eq 'big';
    return (@start, [event => $result]) if $name eq 'sse';
    return ([wait => rand 0.5], [json => $result]) if $name eq 'slow';
    return ([wait => rand 0.2], @start, [wait => rand 0.3],
            [event => $result]) if $name eq 'drip';
    return (@start, [event => { %$result, x => 'y' x 200000 }])
        if $name eq 'large';
    return (@start, pick([cut =>], [reset =>], [end =>], [hang =>]))
        if $name eq 'cut';
    return ([sse => {}], [event => '', id => 1, retry => 50], [end =>])
        if $name eq 'poll';
    return (@start, (map { [event => said()] } 1 .. 400), [event => $result])
        if $name eq 'burst';
    return ([sse => {}], [event => { %$result, x => 'y' x 100000 }],
            [wait => rand 0.6]) if $name eq 'open';
    return ([wait => rand 0.4], [json => $result]) if $name eq 'secret';
    return pick([hang =>], [reset =>], [http => 500, {}, ''],
                [http => 404, {}, ''], [http => 401, {}, 'no'],
                [http => 429, { 'Retry-After' => 1 }, 'slowly'],
                [http => 413, {}, 'x' x rand 3000],
                [http => 400, { 'Content-Type' => 'application/json' },
                 '{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}'],
                [json => { %$result, x => 'y' x 400000 }],
                [http => 200, { 'Content-Type' => 'application/json' }, '{'],
                [json => $result]);
}


# what happens from outside, one thing at a time

sub turn {
    my $dice = rand;

    if ($dice < 0.3) {
        my @w = $t->workers;
        my $pid = $w[rand @w] or return;

        return if keys %still >= 2 || $still{$pid};

        kill 'STOP', $pid;
        $still{$pid} = time() + rand pick(0.15, 0.15, 0.6);

    } elsif ($dice < 0.5) {
        pick($legacy, $shaky)->emit('get', map {
            rand() < 0.9 ? [event => said(), id => int rand 100]
                         : pick([cut =>], [part => "data: {\n\n"])
        } 1 .. 1 + rand 3);

    } elsif ($dice < 0.7) {
        my $path = pick('/a', '/b', '/c', '/of/t1', '/topic/x', '/topic/y');
        $f->say($path, event()) for 1 .. 1 + rand 4;

    } elsif ($dice < 0.75) {
        $f->cut(pick('/a', '/b', '/c', '/of/t1', '/topic/x'));

    } elsif ($dice < 0.8) {
        my $u = pick($shaky, $shaky, $legacy, $rpc);
        pick(sub { $u->drop }, sub { $u->set(forget => 1) },
             sub { $u->emit('get', [cut =>]) })->();

    } elsif ($dice < 0.85) {
        my $u = pick($shaky, $f);
        rand() < 0.4 ? $u->refuse : $u->restore;

    } elsif ($dice < 0.95) {
        eval {
            $t->post('/publish', { 'Content-Type' => 'application/json' },
                     json_encode([ map { event() } 1 .. 1 + rand 3 ]),
                     timeout => 0.3);
        };

    } elsif ($dice < 0.97 && time() > $reload) {
        $reload = time() + 1 + rand 1;
        $t->configure(conf => conf(), workers => 2 + int rand 2);
        kill 'HUP', $t->pid;
        $did{reload}++;

    } elsif (time() > $kill) {
        my @w = $t->workers;
        $kill = time() + 3 + rand 4;
        kill 'KILL', $w[rand @w] if @w > 1;
        $did{kill}++;
    }
}


sub wake {
    my ($all) = @_;

    for my $pid (keys %still) {
        next if !$all && time() < $still{$pid};
        kill 'CONT', $pid;
        delete $still{$pid};
    }
}


sub event {
    my %to;

    $to{tenant_id} = 't' . int rand 3 if rand() < 0.3;
    $to{topic} = pick(qw(x y z)) if rand() < 0.3;
    $to{uri} = 'file:///' . int rand 4 if rand() < 0.1;
    $to{id} = int rand 50 if rand() < 0.2;

    return { kind => pick(qw(tools res other)), n => int rand 4, %to,
             rand() < 0.1 ? (more => 'x' x rand 5000) : () };
}


# a client: a process of its own, or a program, which says how many sessions it
# lost

sub child {
    my ($n, @program) = @_;

    pipe(my $in, my $out) or die "pipe: $!";

    my $pid = fork;
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        Mcp::Test::in_child();
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        srand $seed + $n;
        close $in;

        if (@program) {
            open STDOUT, '>&', $out;
            exec @program or POSIX::_exit(1);
        }

        my $did = eval { play($n) };
        print STDERR "client $n: $@" unless defined $did;
        syswrite $out, $did if defined $did;
        POSIX::_exit(defined $did ? 0 : 1);
    }

    close $out;
    return { n => $n, pid => $pid, out => $in };
}


my (@sessions, @gone, @open, @did, $begun);

sub play {
    my ($n) = @_;

    $begun = 0;

    my %todo = (
        begin => 2, tool => 8, leave => 5, list => 3, get => 3, resume => 2,
        subscribe => 2, wait => 2, finish => 1, cancel => 2, batch => 1,
        reply => 2, level => 1, read => 1, spell => 2, greed => 1, keep => 2,
    );
    my @todo = map { ($_) x $todo{$_} } sort keys %todo;

    while (time() < $end) {
        my $what = @sessions ? pick(@todo) : 'begin';
        push @did, $what;

        eval { no strict 'refs'; &{"do_$what"}(); 1 }
            or $@ =~ /connect|status line|header line/ or die $@;

        look();
    }

    $_->close for @open;
    @open = ();

    # whoever answers to it later than this is not there

    my $until = time() + 15 * ($ENV{MCP_SLOW} || 1);

    for my $s (@sessions, @gone) {
        while (time() < $until) {
            my $r = eval { $s->delete(timeout => 3) };
            last if $r && $r->{status} && ($r->{status} == 200
                                           || $r->{status} == 404);
        }
    }

    return "$begun @did";
}


# reads what has come, and leaves here and there

sub look {
    for my $c (splice @open) {

        if (rand() < 0.15) {
            rand() < 0.5 ? $c->close : $c->reset;
            next;
        }

        $c->fill(0) if rand() < 0.7;

        if ($c->{in} =~ /\nid: (\S+)/) {
            $c->{session}{last} = $1 if $c->{session};
        }

        if ($c->{in} =~ /"id":"(s\d)"/) {
            $c->{session}{asked} = $1 if $c->{session};
        }

        $c->{in} = '' if length $c->{in} > 100000;

        push @open, $c unless $c->{eof};
    }

    (shift @open)->close while @open > 8;
}


sub session { $sessions[rand @sessions] }


# sends it, and waits for the answer or not

sub say_it {
    my ($s, $message, %o) = @_;

    my $c = $s->send_only($message, %o,
                          rand() < 0.1 ? (rcvbuf => 2000) : ());
    $c->{session} = $s;

    my $dice = rand;

    if ($dice < 0.4) {
        $c->response('POST', timeout => 0.01 + rand 0.6);
        $c->close;

    } elsif ($dice < 0.5) {
        $c->close;

    } elsif ($dice < 0.6) {
        $c->reset;

    } else {
        push @open, $c;
    }
}


sub do_begin {
    return if @sessions > 3;

    my $s = $t->client(path => pick('/mcp', '/mcp', '/shaky', '/rpc', '/none'),
                       version => pick('2025-11-25', '2025-03-26'),
                       accept => pick('application/json, text/event-stream',
                                      'application/json, text/event-stream',
                                      'application/json'),
                       headers => { 'X-Tenant' => int rand 3 });

    $begun++;
    my $r = $s->initialize(timeout => rand() < 0.1 ? 0.01 : 3);

    if (!$r->{status}) {
        return;
    }

    # no session was made, or it is known here

    $begun--;
    return unless $s->id;

    push @gone, $s unless $s->{server};
    return unless $s->{server};

    push @sessions, $s;
    say_it($s, { jsonrpc => '2.0', method => 'notifications/initialized' });
}


sub do_tool {
    my $s = session();
    my $m = $s->message('tools/call', {
        name => pick(qw(json json sse sse slow drip drip big large cut poll
                        other session_info burst burst open)),
        arguments => {}, _meta => { progressToken => int rand 9 } });

    $s->{running} = $m->{id};
    say_it($s, $m);
}


sub do_leave {
    my $c = shift @open or return;
    rand() < 0.5 ? $c->close : $c->reset;
}


sub do_list {
    my $s = session();
    say_it($s, $s->message(pick('tools/list', 'prompts/list', 'resources/list',
                                'resources/templates/list', 'x/y'), {
        rand() < 0.1 ? (cursor => 'none') : () }));
}


sub do_read {
    my $s = session();
    say_it($s, $s->message('resources/read', {
        uri => pick('events://x/latest', 'file:///1') }));
}


sub get {
    my ($s, $id) = @_;

    my $h = $s->request_headers;
    my $c = $t->conn(rand() < 0.1 ? (rcvbuf => 2000) : ());

    delete $h->{'Content-Type'};
    $h->{Accept} = 'text/event-stream';
    $h->{'Last-Event-ID'} = $id if defined $id;

    $c->write($c->format_request('GET', $s->{path}, $h));
    $c->{session} = $s;

    push @open, $c;
}


sub do_get    { get(session()) }
sub do_resume { my $s = session(); get($s, $s->{last} || 'nonsense') }


sub do_subscribe {
    my $s = session();
    my $uri = pick('file:///0', 'file:///1', 'events://x/latest');

    say_it($s, $s->message(pick('resources/subscribe', 'resources/subscribe',
                                'resources/unsubscribe'), { uri => $uri }));
}


sub do_wait {
    my $s = session();
    say_it($s, $s->message('tools/call', {
        name => 'wait_for_event',
        arguments => { pick([topic => 'x'], [topic => 'y'],
                            [uri => 'file:///1'])->@*,
                       timeout_seconds => pick(1, 2, 30),
                       rand() < 0.3 ? (match => { n => 1 }) : () } }));
}


sub do_finish {
    return if rand() < 0.5;

    my $s = splice @sessions, rand @sessions, 1;
    my $r = $s->delete(timeout => 0.5);

    push @gone, $s unless $r->{status} && ($r->{status} == 200
                                           || $r->{status} == 404);
}


sub do_cancel {
    my $s = session();
    return unless $s->{running};

    say_it($s, { jsonrpc => '2.0', method => 'notifications/cancelled',
                 params => { requestId => $s->{running} } });
}


sub do_reply {
    my $s = session();
    my $id = delete $s->{asked} or return;

    say_it($s, { jsonrpc => '2.0', id => $id, result => {} });
}


sub do_level {
    my $s = session();
    say_it($s, $s->message('logging/setLevel', {
        level => pick('debug', 'error') }));
}


sub do_batch {
    my ($s) = grep { ($_->{negotiated} || '') eq '2025-03-26' } @sessions;
    return unless $s;

    say_it($s, [ map { $s->message('tools/call', { name => $_ }) }
                 map { pick(qw(json sse slow drip cut wait_for_event burst)) }
                 1 .. 1 + rand 3 ]) if rand() < 0.7;

    say_it($s, [ (map { $s->message('tools/list', {}) } 1 .. 40),
                 pick([], [$s->message('tools/call', { name => 'secret' })],
                      7, $s->message('tools/call', { name => 'secret' })) ])
        if rand() < 0.3;
}


# what some parsers take for something else than others do

sub do_spell {
    my $s = session();

    say_it($s, pick(
        '[[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"name":"secret"}}]]',
        '{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"Name":"secret","name":"json"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"name\\u0000":"secret","name":"json"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","param\\u017f":'
        . '{"name":"secret"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["secret"]}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"name":"json","arguments":{"x":"\\ud83d"}}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        . '{"name":"\\ud83d"}}',
        '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":'
        . '{"uri":"events://%73ecret/latest"}}',
        '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":'
        . '{"uri":"file:///secret","name":"x"}}',
        '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":'
        . '{"ref":{"type":"ref/prompt","name":"secret"}}}',
    ));
}


# more than a share of what all have to share

sub do_greed {
    my $s = session();
    my $n = int rand 1000;

    pick(sub {
        eval {
            $t->client(path => $s->{path}, headers => $s->{headers},
                       info => { name => 'x' x 20000, version => 1 })
              ->initialize(timeout => 0.05);
        };
        $begun++;
    }, sub {
        say_it($s, $s->message('resources/subscribe', {
            uri => "file:///$n" . 'x' x 10000 }));
    }, sub {
        say_it($s, $s->message('resources/subscribe', {
            uri => "events://n$n/latest" }));
    }, sub {
        say_it($s, $s->message('tools/call', {
            name => 'wait_for_event', arguments => {
                topic => 'x', match => { map { ("f$_" => 1) } 1 .. 100 } } }));
    }, sub {
        eval {
            $t->post('/publish', { 'Content-Type' => 'application/x-ndjson' },
                     join("\n", (json_encode(event())) x 500),
                     timeout => 0.3);
        };
    }, sub {
        eval {
            $t->post('/publish', { 'Content-Type' => 'text/plain',
                                   Origin => 'http://elsewhere.example' },
                     json_encode(event()), timeout => 0.3);
        };
    })->();
}


# several requests on one connection, each of which waits for its answer

sub do_keep {
    my $s = session();
    my $c = $t->conn(rand() < 0.3 ? (rcvbuf => 2000) : ());

    for (1 .. 1 + rand 4) {
        my $r = $s->post($s->message('tools/call', {
            name => pick(qw(json big open burst slow)) }), conn => $c,
            timeout => 1);
        last unless $r && $r->{status};
    }

    $c->close;
}
