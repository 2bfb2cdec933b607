#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# An event for more sessions than get it at once: what the publisher is told of
# those that have no room for it, and that to send it again is not needed.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;

my $locations = join '', map {
    my $small = $_ == 40 ? 'mcp_event_buffer 16 1k;' : '';
    "location = /mcp$_ { mcp_endpoint zone=main name=e$_; $small }\n"
} 1 .. 40;

my $t = Mcp::Test->new(conf => <<"EOF");
mcp_zone zone=main:8m;

server {
    %%LISTEN%%
    server_name localhost;

    $locations
    location = /publish { mcp_publish zone=main; }
    location = /few     { mcp_publish zone=main endpoint=e40; }
    location = /status  { mcp_status zone=main; }
}
EOF

my @sessions = map { $t->session(path => "/mcp$_") } 1 .. 40;
my ($room, $none) = map { $_->open_get } @sessions[38, 39];

my $large = event('x' x 2000);
my $r = $t->publish($large);

is($r->{status}, 202, 'one of 40 endpoints has no room: it is accepted');
is_deeply($r->{json}, { accepted => 1, refused => 0,
                        events => [ { sessions => 40, missed => 1 } ] },
          'and the answer counts who missed it');
is(length(data($room)), 2000, 'another one has it');
is(lagged($none), 1, 'who missed it is told so');

$r = $t->publish('[' . event('a') . ",$large," . event('b') . ']');
is_deeply($r->{json}{events},
          [ { sessions => 40 }, { sessions => 40, missed => 1 },
            { sessions => 40 } ], 'each event has its own count');
is_deeply([ map { length data($room) } 1 .. 3 ], [ 1, 2000, 1 ],
          'in their order');

$r = $t->publish($large, '/few');
is($r->{status}, 400, 'one for a single endpoint is refused');
like($r->{json}{events}[0]{error}, qr/larger than mcp_event_buffer/, 'as such');

done_testing();


sub event {
    return json_encode({ jsonrpc => '2.0', method => 'notifications/message',
                         params => { level => 'info', data => $_[0] } });
}


sub lagged {
    my ($get) = @_;

    while (my $e = $get->event) {
        return $e->{json}{missed} if ($e->{event} || '') eq 'lagged';
    }

    return 0;
}


sub data {
    my ($get) = @_;

    while (my $e = $get->event) {
        return $e->{json}{params}{data} if ref $e->{json};
    }

    return '';
}
