#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# state= of mcp_zone: sessions go on after a restart of nginx, with their
# subscriptions, log levels, events and upstream sessions; what a kill -9
# leaves; files that cannot be used or are left alone; starts that fail, or come
# too early; a binary upgrade.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Node;

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    capabilities => { tools => { listChanged => JSON::PP::true },
                      resources => { subscribe => JSON::PP::true,
                                     listChanged => JSON::PP::true },
                      logging => {} },
    'tools/list' => { tools => [] },
    'resources/subscribe' => {},
    'resources/unsubscribe' => {},
    'logging/setLevel' => {},
    'tools/call' => sub {
        my ($r) = @_;

        return ([sse => {}],
                [event => notification('message', { level => 'error',
                                                    data => 'begun' })],
                [hang =>])
            if $r->{json}{params}{name} eq 'long';

        return { content => [ { type => 'text',
                                text => $r->{headers}{'mcp-session-id'} } ] };
    },
    GET => sub { return ([sse => {}], [tag => 'listener'], [hang =>]) },
));

my $feed = Mcp::Upstream->new(sub {
    return ([sse => {}], [tag => 'feed'], [hang =>]);
});

my $conf = <<'EOF2';
mcp_zone zone=main:8m state=%%DIR%%/state/main %%INTERVAL%%;

server {
    %%LISTEN%%
    server_name localhost;

    mcp_tenant $http_x_tenant;
    mcp_session_bind $http_x_user;
    mcp_stream_after 0;
    mcp_drain_time 100ms;

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/mcp; }

    location = /fed {
        mcp_endpoint zone=main;
        mcp_capabilities logging;
        mcp_events /_feed;
    }

    location = /_feed { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }

    location = /own {
        mcp_endpoint zone=main name=own;
        mcp_capabilities logging resources;
        mcp_builtin_tools wait_for_event;
        mcp_session_limit 2000 key=$http_x_limit;
    }

    location = /sdk {
        mcp_endpoint zone=main name=sdk;
        mcp_capabilities logging resources;
        mcp_tenant sdk;
        mcp_session_bind sdk;
    }

    location = /publish { mcp_publish zone=main; }
    location = /status { mcp_status zone=main; }
}
EOF2

my $t = Mcp::Test->new(start => 0, conf => $conf,
                       vars => { UP => $up->port, FEED => $feed->port,
                                 INTERVAL => '' });
my $file = $t->dir . '/state/main';
my $listened;

$t->allow_log(qr/\[emerg\]/);

# two nginx with one pid file, and one that ends at once

$t->allow_log(qr/unlink\(\) "\S+nginx.pid" failed/,
              qr/open socket #\d+ left in connection|: aborting$/);

my @ann = (headers => { 'X-User' => 'ann', 'X-Tenant' => 'acme' });
my @bob = (headers => { 'X-User' => 'bob', 'X-Tenant' => 'acme' });


# a folder that does not exist

my ($code, $said) = $t->check;
isnt($code, 0, 'a file in a folder that does not exist is refused');
like($said, qr{there is no directory "\S+/state/"; create it},
     'with the remedy');

mkdir $t->dir . '/state';

($code, $said) = $t->check(conf => $conf . <<'EOF2');
mcp_zone zone=other:4m state=%%DIR%%/state/main;
EOF2
isnt($code, 0, 'so is the file of another zone');
like($said, qr/is the file of "mcp_zone" "main"/, 'with the reason');

for my $bad ('interval=0', 'interval=500ms', 'interval=x', 'stat=x', 'state=') {
    ($code, $said) = $t->check(conf => $conf =~ s/%%INTERVAL%%/$bad/r);
    like($said, qr/(?:invalid|duplicate) parameter "\Q$bad\E" of "mcp_zone"; /,
         "$bad is refused");
}

($code, $said) = $t->check(conf => "mcp_zone zone=a:1m interval=1s;\n"
                                   . 'server { %%LISTEN%% }');
like($said, qr/"interval" of "mcp_zone" needs "state"/,
     'an interval without a file is refused');

($code, $said) = $t->check(conf => $conf);
is($code, 0, 'with its folder the file is accepted') or diag($said);
ok(!-e $file, 'and nginx -t does not make it');


# a stop, and a start

$t->start;
unlike($t->log, qr/starts empty|was read/, 'no file is no fault');

my $s = $t->session(@ann);
my $silent = $t->session(@bob);
my $get = $s->open_get;
ok($get->event, 'a client has a stream');

is($s->call('logging/setLevel', { level => 'warning' })->{http}{status}, 200,
   'a log level');
ok($s->call('resources/subscribe', { uri => 'file:///a' })->{result},
   'a subscription');
my $upstream_session = said_by($s);
ok($upstream_session, 'and a session at the upstream');

is(publish('seen'), 202, 'an event is published');
ok($get->event_where(data('seen')), 'and arrives');
my $last = $get->last_id;
$get->close;
ok(wait_for { $t->status->{streams}{open} == 0 }, 'the stream is closed');

is(publish('pending'), 202, 'another one, while no stream is open');
is(publish('low', level => 'info'), 202, 'and one below the log level');

restart('QUIT');

unlike($t->slurp('state/main'), qr/\Q@{[ $s->id ]}\E/,
       'what was read is gone, as it would be old');
like($t->log, qr/was written to "\S+main", 2 sessions/, 'written');
like($t->log, qr/was read from "\S+main": 2 sessions go on, 0 ended/, 'read');

is($s->call('ping')->{http}{status}, 200, 'the session goes on');
is(said_by($s), $upstream_session, 'with its session at the upstream');
is($silent->call('ping')->{http}{status}, 200, 'so does another one');
is($t->session(@ann)->call('ping')->{http}{status}, 200, 'new ones are made');

my $other = $t->client(@bob);
$other->{id} = $s->id;
is($other->call('ping')->{http}{status}, 404, 'of another user it is none');

$get = $s->open_get(last_event_id => $last);
is($get->status, 200, 'the stream is resumed');
my @e;
while (my $e = $get->event) {
    push @e, $e;
    last if ($e->{data} || '') =~ /updated/;
}
is((grep { data('pending')->($_) } @e), 1, 'with the event that waited');
is((grep { data('seen')->($_) } @e), 0, 'not with one that was delivered');
is((grep { data('low')->($_) } @e), 0, 'nor with one below the level');
is((grep { ($_->{event} || '') eq 'lagged' } @e), 1, 'and is told of the gap');
is((grep { $_->{data} =~ m{updated.*file:///a} } @e), 1,
   'so that it looks at what it subscribed to');

is(publish('low', level => 'info'), 202, 'an event below the level');
is(publish('after'), 202, 'an event after the restart');
my $e = $get->event_where(sub { $_[0]{data} =~ /"(?:low|after)"/ });
ok(data('after')->($e), 'arrives, by the log level of before');

ok(wait_for { my $new = listened() - $listened;
              $new && $up->held('listener') == $new },
   'the upstream is listened to again');
$up->emit('listener', [event => notification('resources/updated',
                                             { uri => 'file:///a' })]);
ok($get->event_where(sub { $_[0]{data} =~ m{updated.*file:///a} }),
   'an update of what was subscribed to arrives');
ok($s->call('resources/unsubscribe', { uri => 'file:///a' })->{result},
   'and is unsubscribed from');
$get->close;


# a call that was running, with SIGTERM

my $sse = $s->stream('tools/call', { name => 'long' });
ok($sse->event_where(data('begun')), 'a call runs');

my $kept = $t->session(path => '/own', @ann);
my @wait = ('wait_for_event', { topic => 'jobs', timeout_seconds => 0.1 });
$t->publish({ topic => 'jobs', n => 1, tenant_id => 'acme' });
$t->publish({ topic => 'jobs', n => 2, tenant_id => 'acme' });
my $got = $kept->tool(@wait)->{result}{structuredContent};
is($got->{event}{n}, 1, 'an event of a topic');
is($kept->call('resources/subscribe', { uri => 'events://jobs/latest' })
       ->{http}{status}, 200, 'to which a session subscribes');

my $fed = $t->session(path => '/fed', @ann);
my $fg = $fed->open_get;
ok(wait_for { $feed->held('feed') }, 'a feed is read');
$feed->emit('feed', [event => notification('message', { level => 'error',
                                                        data => 'fed' }),
                     id => 1]);
ok($fg->event_where(data('fed')), 'and its event arrives');

restart('TERM');

$get = $s->open_get(last_event_id => $sse->last_id);
$e = $get->event_where(sub { $_[0]{json} && $_[0]{json}{error} });
is($e && $e->{json}{id}, $sse->{id}, 'the call is answered');
like($e && $e->{json}{error}{message}, qr/the call may have run/,
     'with what may have happened');

$wait[1]{after} = $got->{position};
$got = $kept->tool(@wait)->{result}{structuredContent};
is($got->{event}{n}, 2, 'the next event of the topic was kept');

ok(wait_for { $feed->count(sub { ($_[0]{headers}{'last-event-id'} || '')
                                 eq '1' }) },
   'the feed goes on behind its last event');

is($fed->delete->{status}, 200, 'a session is ended');


# many sessions

my @many = map { $t->session(path => '/own',
                             headers => { 'X-User' => "user-$_",
                                          'X-Tenant' => 't' . $_ % 7,
                                          'X-Limit' => $_ % 3 }) } 1 .. 1000;

restart('QUIT');

is((grep { $_->call('ping')->{http}{status} == 200 } @many), 1000,
   '1,000 sessions go on');
is($fed->call('ping')->{http}{status}, 404, 'one that ended does not');

my $live = $t->status->{sessions}{live};
restart('QUIT');
is($t->status->{sessions}{live}, $live, 'another restart changes nothing');


# files that cannot be used

$t->stop('QUIT');
my $whole = $t->slurp('state/main');
is((stat $file)[2] & 07777, 0600, 'the file is for its owner alone');

my %bad = (
    'cut short' => [substr($whole, 0, length($whole) - 100),
                    qr/is damaged or cut short/],
    'with a head alone' => [substr($whole, 0, 40), qr/is cut short/],
    'damaged' => [do { my $w = $whole;
                       substr($w, length($w) / 2, 1) ^= "\x01"; $w },
                  qr/is damaged/],
    'longer' => ["$whole$whole", qr/is damaged/],
);

# those that nginx leaves alone

my %alone = (
    'foreign' => ["user www-data;\n" x 100, qr/is no file of this module/],
    'short and foreign' => ["\n", qr/is no file of this module/],
    'of a newer version' => [do { my $w = $whole;
                                  substr($w, 12, 4) = pack 'L', 99; $w },
                             qr/is of a newer version of the module/],
    'that others write' => [$whole, qr/can be written by other users/, 0620],
    'with a hard link' => [$whole, qr/has other names/, 0600,
                           sub { link $file, "$file.link" }],
    'that is a link' => [$whole, qr/is a symbolic link/, 0600,
                         sub { rename $file, "$file.link";
                               symlink "$file.link", $file }],
    $> == 0
    ? ('of another user' => [$whole, qr/belongs to a user that is neither/,
                             0600, sub { chown 1, -1, $file }])
    : (),
);

for my $name (sort(keys %bad), sort(keys %alone)) {
    my ($text, $why, $mode, $do) = @{ $bad{$name} || $alone{$name} };

    spew($text);
    chmod $mode || 0600, $file;
    $do->() if $do;

    if ($alone{$name}) {
        ($code, $said) = $t->check;
        like($said, qr/\[warn\] .*is not written to "\S+main", which $why/,
             "nginx -t warns of a file $name");
        is($code, 0, 'and accepts it');
    }

    my $from = length $t->log;
    $t->start;

    like(substr($t->log, $from),
         qr/\[error\].*mcp zone "main" starts empty: .*$why/,
         "a file $name is ignored, and this is said");
    is($many[0]->call('ping')->{http}{status}, 404, 'nginx starts without it');

    $t->stop('QUIT');

    if ($alone{$name}) {
        ok($t->slurp('state/main') eq $text, 'nor is it written');
        like(substr($t->log, $from), qr/\[error\].*is not written to/,
             'and this is said');

    } else {
        ok($t->slurp('state/main') ne $text, 'but is written');
    }

    unlink $file, "$file.link";
}

spew($whole);
$t->start;
is($many[999]->call('ping')->{http}{status}, 200, 'the file as it was');
$t->stop('QUIT');

spew($whole);
$t->configure(conf => $conf =~ s/zone=main/zone=mine/gr);
$t->start;
like($t->log, qr/zone "mine" starts empty: .* is of another zone/,
     'the file of another zone is ignored');
$t->stop('QUIT');
ok($t->slurp('state/main') eq $whole, 'and left alone');
$t->configure(conf => $conf);
unlink $file;

SKIP: {
    skip 'root reads all', 1 if $> == 0;

    spew($whole);
    chmod 0, $file;
    $t->start;
    like($t->log, qr/starts empty: \S+ cannot be opened/, 'an unreadable file');
    $t->stop('QUIT');
    unlink $file;
}

mkdir $file;
$t->start;
like($t->log, qr/starts empty: "\S+" is no file of this module/,
     'a folder of that name');
ok($t->stop('QUIT'), 'nginx ends');
like($t->log, qr/\[error\].*is not written to "\S+main", which is no file/,
     'and says that it cannot write');
is(scalar(() = glob "$file*.tmp"), 0, 'leaving nothing behind');
rmdir $file;

spew('');
my $from = length $t->log;
$t->start;
unlike(substr($t->log, $from), qr/starts empty/, 'an empty file is none');
$t->stop('QUIT');
ok(-s $file, 'and is written');


# starts that fail, and others that leave something behind

spew($whole);
spew('x', "$file.99999999.tmp");
spew('x', "$file.$$.tmp");
mkdir $t->dir . '/nginx.pid';
$t->configure;

ok(system('sh', '-c', 'exec "$@" 2>/dev/null', 'sh', $t->command) != 0,
   'nginx does not start without its pid file');
rmdir $t->dir . '/nginx.pid';
ok(!-e "$file.99999999.tmp", 'it removes what a dead process left');
ok(-e "$file.$$.tmp", 'but not what is of a process that lives');
unlink "$file.$$.tmp";

$t->start;
is($many[999]->call('ping')->{http}{status}, 200, 'no session is lost');


# a kill -9 without an interval

kill 'KILL', $t->pid, children($t->pid);
ok(wait_for { !$t->running }, 'nginx is killed');
$from = length $t->log;
$t->start;
is($many[999]->call('ping')->{http}{status}, 404, 'sessions ended');
like(substr($t->log, $from),
     qr/starts empty: "\S+main" was read by an nginx that was killed/,
     'and this is said');


# nginx starts while the workers of another one are still leaving

$s = $t->session(@ann);
$sse = $s->stream('tools/call', { name => 'long' });
ok($sse->event_where(data('begun')), 'a call runs');

my $first = delete $t->{pid};
kill 'QUIT', $first;
ok(wait_for { !$t->listening }, 'nginx is to end');
$from = length $t->log;
delete $t->{started};
$t->start;
like(substr($t->log, $from),
     qr/\[warn\].*starts empty: "\S+main" has no sessions yet, as an nginx/,
     'another one starts without sessions, and says so');
my $young = $t->session(@ann);

kill 'TERM', $first;
ok(wait_for { waitpid($first, POSIX::WNOHANG()) == $first },
   'the first one ends');
like(substr($t->log, $from),
     qr/is not written to "\S+main", as the nginx with process \d+ was started/,
     'and does not write the file of the other');

restart('QUIT');
is($young->call('ping')->{http}{status}, 200, 'whose sessions go on');
is($s->call('ping')->{http}{status}, 404, 'those of the first one ended');
$t->stop('QUIT');


# kill -9, with an interval

$t->configure(vars => { %{ $t->{vars} }, INTERVAL => 'interval=1s' });
$t->start;
$s = $t->session(path => '/own', @ann);
$get = $s->open_get;
ok($get->event, 'a stream');
my $before = mtime();
ok(wait_for { mtime() > $before }, 'the file is written while nginx runs');
$before = mtime();
ok(wait_for { mtime() > $before }, 'again and again');

is(publish('lost'), 202, 'an event');
ok($get->event_where(data('lost')), 'arrives');
$last = $get->last_id;

kill 'KILL', $t->pid, children($t->pid);
ok(wait_for { !$t->running }, 'nginx is killed');
$t->start;
is($s->call('ping')->{http}{status}, 200, 'the session goes on');
$get = $s->open_get(last_event_id => $last);
ok($get->event_where(sub { ($_[0]{event} || '') eq 'lagged' }),
   'and is told of the gap');
is(publish('new'), 202, 'an event');
ok($get->event_where(data('new')), 'arrives');
$get->close;


# a reload with another size of the zone

$before = mtime();
ok(wait_for { mtime() > $before }, 'the file is written');
ok($t->reload(conf => $conf =~ s/main:8m/main:9m/r), 'a reload, another size');
ok($t->wait_old, 'and the old workers end');
is($s->call('ping')->{http}{status}, 200, 'the sessions go on, too');

$t->stop('QUIT');


# workers of another user, in a folder where all may write, but to their files

SKIP: {
    skip 'nginx is not started by root', 7 if $> != 0;

    my $vars = $t->{vars};
    my $daemon = getpwnam 'daemon';

    chmod 01777, $t->dir . '/state';
    chown 0, -1, $file;
    $t->configure(user => 'daemon');
    $t->start;
    is($s->call('ping')->{http}{status}, 200, 'sessions of a file of root');
    is((stat $file)[4], $daemon, 'which is that of the workers now');
    $before = mtime();
    ok(wait_for { mtime() > $before }, 'and is written by their user');
    $t->stop('QUIT');
    is((stat $file)[4], $daemon, 'what root writes is of their user, too');

    $t->configure(vars => { %$vars, INTERVAL => '' });
    $t->start;
    is($s->call('ping')->{http}{status}, 200, 'and is read');
    ok(-s $file < 100, 'a worker drops what was read');
    $t->stop('QUIT');

    chmod 0755, $t->dir . '/state';
    ($code, $said) = $t->check(vars => { %$vars, INTERVAL => 'interval=1s' });
    like($said, qr/needs a directory that the user "daemon" writes to/,
         'nginx -t warns of a folder where the workers cannot write');

    chown 0, -1, $file;
    $t->configure(user => 'root', vars => $vars);
}


# nginx without a master

$t->configure(globals => 'master_process off;');
$t->start;
is($s->call('ping')->{http}{status}, 200, 'sessions go on without a master');
$t->stop('QUIT');
$t->start;
is($s->call('ping')->{http}{status}, 200, 'and again');
$t->stop('QUIT');
$t->configure(globals => '');


# a binary upgrade

# what sanitizers are told is for the new nginx, too

my $u = Mcp::Test->new(daemon => 1, conf => $conf, start => 0,
                       globals => join('', map { "env $_;\n" }
                                           grep { /SAN_OPTIONS$/ } keys %ENV),
                       vars => { %{ $t->{vars} },
                                 INTERVAL => 'interval=1s' });
mkdir $u->dir . '/state';
$file = $u->dir . '/state/main';
$u->start;
my $old = $u->pid;

$s = $u->session(path => '/own', @ann);
$before = mtime();
ok(wait_for { mtime() > $before } && wait_for { $u->slurp('state/main')
                                                =~ /\Q@{[ $s->id ]}\E/ },
   'a session is in the file');

kill 'USR2', $old;
ok(wait_for { my $new = $u->slurp('nginx.pid'); $new && $new != $old
              && ($u->{pid} = 0 + $new) && $u->workers == 2 },
   'another nginx starts');
like($u->log, qr/was read from "\S+main": 1 sessions go on/,
     'and reads the file');

kill 'WINCH', $old;
ok(wait_for { my $now = $u->{pid}; local $u->{pid} = $old;
              !$u->workers(all => 1) }, 'the workers of the old one end');
is((grep { $s->call('ping')->{http}{status} == 200 } 1 .. 20), 20,
   'the session goes on in the new one');

my $later = $u->session(path => '/own', @ann);
kill 'QUIT', $old;
ok(wait_for { !kill 0, $old }, 'the old one ends');
like($u->log, qr/is not written to "\S+main", as process \d+ runs/,
     'and leaves the file to the new one');

ok($u->stop('QUIT'), 'so does the new one');
$u->start;
is($later->call('ping')->{http}{status}, 200, 'whose sessions go on');
is($s->call('ping')->{http}{status}, 200, 'like those of before');
$u->stop('QUIT');
unlink $file;


# streams of an upstream before which no session was

my $lists;
my $late = Mcp::Upstream->new(Mcp::Upstream::modern('tools/list' => sub {
    return { tools => [{ name => 'tool-' . ++$lists,
                         inputSchema => { type => 'object' } }] };
}));
my $changed = notification('tools/list_changed', { _meta => {
    'io.modelcontextprotocol/subscriptionId' => 'nginx-mcp' } });

my $v = Mcp::Test->new(vars => { LATE => $late->port, FEED => $feed->port },
                       start => 0, conf => <<'EOF2');
mcp_zone zone=main:4m state=%%DIR%%/state/main;

server {
    %%LISTEN%%

    location = /mcp {
        mcp_endpoint zone=main;
        mcp_upstream late /_late;
        mcp_list_cache on;
    }

    location = /_late { internal; proxy_pass http://127.0.0.1:%%LATE%%/; }

    location = /fed {
        mcp_endpoint zone=main;
        mcp_capabilities logging;
        mcp_events /_feed;
    }

    location = /_feed { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
}
EOF2
mkdir $v->dir . '/state';

for my $run (1 .. 3) {
    $late->clear;
    $feed->clear;
    $v->start;
    ok(wait_for { $feed->held('feed') && $feed->count }, 'a feed is read');

    $s = $v->session if $run < 3;
    $get = $s->open_get;
    ok($s->call('tools/list')->{result}, 'a list');
    ok(wait_for { $late->calls('subscriptions/listen')
                  && $late->held('listen') }, 'changes are listened to');
    ok(wait_for {
        $late->emit('listen', [event => $changed]);
        $get->method('notifications/tools/list_changed', 0.1);
    }, 'and are heard');

    if ($run < 3) {
        unlike($v->log, qr/may have sent events/, 'nobody has missed any');
        $s->delete if $run == 1;

    } else {
        like($v->log, qr/may have sent events that were lost/,
             'a session that goes on may have');
    }

    unlike($v->log, qr/has a gap/, 'of a feed without sessions nobody has');
    $v->stop('QUIT');
}


# clients of the SDK

SKIP: {
    skip 'npm packages are missing', 1
        unless -d Mcp::Node::dir() . '/node_modules/@modelcontextprotocol';

    $u->configure(vars => { %{ $u->{vars} }, INTERVAL => '' });
    $u->start;
    Mcp::Node->check('SDK clients', [ Mcp::Node::node(), 'restart.mjs',
                                      $u->port, $u->pid, $file,
                                      $u->command ]);
    $u->{pid} = 0 + $u->slurp('nginx.pid');
}

done_testing();


sub restart {
    my ($signal) = @_;

    ok($t->stop($signal), "nginx ends with $signal");
    ok(-f $file, 'and leaves a file');
    $listened = listened();
    $t->start;
}


sub spew {
    my ($text, $to) = @_;

    $to = $file unless defined $to;
    open my $fh, '>', $to or die "$to: $!";
    print $fh $text;
    close $fh;
}


sub mtime { (Time::HiRes::stat($file))[9] || 0 }


# the processes of a master

sub children {
    my ($master) = @_;

    return map { /^(\d+) \(.*\) \S (\d+)/s && $2 == $master ? $1 : () }
           map { Mcp::Test::slurp_file("$_/stat") } glob '/proc/[0-9]*';
}


sub publish {
    my ($data, %o) = @_;

    return $t->publish(notification('message', {
        level => $o{level} || 'error', data => $data
    }))->{status};
}


sub listened { $up->count(sub { $_[0]{method} eq 'GET' }) }


sub data {
    my ($data) = @_;
    return sub { (($_[0]{json} || {})->{params}{data} || '') eq $data };
}


sub said_by { $_[0]->tool('who')->{result}{content}[0]{text} }
