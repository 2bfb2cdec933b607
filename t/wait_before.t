#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# A tool starts something whose event comes before the client waits for it: the
# event is there when wait_for_event is called, from whatever source it came.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Feed;

my $f = Mcp::Feed->new;

# each call ends when it is told to

my $up = Mcp::Upstream->new(Mcp::Upstream::mcp(
    'tools/call' => sub {
        my ($r) = @_;
        my $a = $r->{json}{params}{arguments};

        return ([until => $a->{until}],
                [json => Mcp::Upstream::result($r, { content => [] })]);
    },
));

my $t = Mcp::Test->new(
    vars => { UP => $up->port, FEED => $f->port }, conf => <<'EOC');
mcp_zone zone=main:32m;
mcp_zone zone=small:1m;

server {
    %%LISTEN%%
    server_name localhost;
    mcp_builtin_tools wait_for_event;
    mcp_tenant $http_x_tenant;

    location = /published {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
    }

    location = /all {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_events /_all;
    }

    location = /named {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_events /_named topic=from/$mcp_tenant;
    }

    location = /demand {
        mcp_endpoint zone=main;
        mcp_upstream up /_up;
        mcp_events /_about/$mcp_topic;
    }

    location = /small {
        mcp_endpoint zone=small;
        mcp_upstream up /_up;
    }

    location = /_up { internal; proxy_pass http://127.0.0.1:%%UP%%/; }
    location /_ { internal; proxy_pass http://127.0.0.1:%%FEED%%/; }
    location = /publish { mcp_publish zone=main; }
    location = /publish_small { mcp_publish zone=small; }
    location = /status { mcp_status zone=main; }
}
EOC

my @workers = $t->workers;
my %s = map {
    $_ => $t->session(path => "/$_", headers => { 'X-Tenant' => 'a' })
} qw(published all named demand small);

my ($until, $r) = (0);

$f->wait_open($_) for qw(/all /named);


# published: to all, to the session, and by another tenant

my $b = $t->session(path => '/published', headers => { 'X-Tenant' => 'b' });

during($s{published}, sub {
    publish({ topic => 'any', tenant_id => 'b', n => 0 });
    publish({ topic => 'any', n => 1 });
});
is(waited($s{published}, 'any')->{n}, 1, 'an event for all');

during($s{published}, sub {
    publish({ topic => 'own', session_id => $s{published}->id, n => 2 });
});
is(waited($s{published}, 'own')->{n}, 2, 'one for the session');

during($s{published}, sub {
    publish({ topic => 'kind', kind => 'document', tenant_id => 'a', n => 3 });
});
is(waited($s{published}, 'kind')->{n}, 3, 'one with a kind');


# while others come for a topic each, up to the limit

my @others = map { { topic => "other/$_", tenant_id => 'a' } } 1 .. 1000;

during($s{published}, sub {
    publish({ topic => 'early', tenant_id => 'a', n => 4 });
    publish(\@others);
});
is(waited($s{published}, 'early')->{n}, 4, 'before a thousand of others');


# where the zone has no room for so many, it is said that something is missing

during($s{small}, sub {
    publish({ topic => 'early', tenant_id => 'a', n => 4 }, '/publish_small');
    publish(\@others, '/publish_small');
});
$r = wait_for_event($s{small}, 'early', 0);
ok($r->{timeout} && $r->{missed}, 'no room: missed');
$r = wait_for_event($s{small}, 'early', 0, after => $r->{position});
ok($r->{timeout} && !$r->{missed}, 'which is said once');


# on another worker than it came to

during($s{published}, sub {
    $t->publish({ topic => 'there', tenant_id => 'a', n => 5 }, '/publish',
                conn => $t->conn_on_worker($workers[0]));
});
is(waited($s{published}, 'there', conn => $t->conn_on_worker($workers[1]))
   ->{n}, 5, 'another worker');


# a feed for all topics, whether it names them or the directive does

during($s{all}, sub { said('/all', { topic => 'job', n => 6 }) });
is(waited($s{all}, 'job')->{n}, 6, 'a feed for all topics');

during($s{named}, sub { said('/named', { n => 7 }) });
is(waited($s{named}, 'from/a')->{n}, 7, 'one whose topic the directive names');


# a feed of a topic: while it is open, for a minute after somebody waited

ok(wait_for_event($s{demand}, 'job', 0)->{timeout}, 'nothing is there yet');
$f->wait_open('/about/job');

during($s{demand}, sub { said('/about/job', { n => 8 }) });
is(waited($s{demand}, 'job')->{n}, 8, 'a feed that was asked for a moment ago');

my $other = $t->session(path => '/demand', headers => { 'X-Tenant' => 'a' });

during($other, sub { said('/about/job', { n => 9 }) });
is(waited($other, 'job')->{n}, 9, 'by another session');

done_testing();


# what happens while a call of the session is under way

sub during {
    my ($s, $what) = @_;

    my $m = $s->message('tools/call', {
        name => 'start', arguments => { until => 'done-' . ++$until } });
    my $conn = $s->send_only($m);

    $up->wait_requests(sub {
        ($_[0]{json}{params}{arguments}{until} || '') eq "done-$until" });
    $what->();
    $up->release("done-$until");

    ok($s->read_response($conn->response('POST'))->{json}{result},
       'the call has ended');
}


sub publish {
    my $r = $t->publish(@_);
    is($r->{json}{refused}, 0, 'published');
}


# a feed says it, and it was taken

sub said {
    my ($path, $event) = @_;
    my $taken = $t->status->{events}{feed};

    $f->say($path, $event);
    ok((wait_for { $t->status->{events}{feed} == $taken + 1 }), 'taken');
}


sub wait_for_event {
    my ($s, $topic, $seconds, %o) = @_;
    my @after = exists $o{after} ? (after => delete $o{after}) : ();

    return $s->tool('wait_for_event', {
        topic => $topic, timeout_seconds => $seconds, @after }, %o)
        ->{result}{structuredContent};
}


# it is there: no time is given

sub waited {
    my ($s, $topic, %o) = @_;
    return wait_for_event($s, $topic, 0, %o)->{event} || {};
}
