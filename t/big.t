#!/usr/bin/perl

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# 200 sessions on two workers, 20,000 events of mixed audience, three reloads
# and three kills: every id is accounted for. Some events come by feeds.
#
# MCP_BIG_SESSIONS, MCP_BIG_EVENTS, MCP_BIG_TIMES (as many reloads and kills),
# MCP_SEED: other numbers.

use FindBin;
use lib "$FindBin::Bin/lib";

use Mcp::Test;
use Mcp::Run;

my $sessions = $ENV{MCP_BIG_SESSIONS} || 200;
my $events = $ENV{MCP_BIG_EVENTS} || 20000;

my $run = Mcp::Run->new(one => 'mcp_events /_feed/sse/one;',
                        two => 'mcp_events /_feed/of/$mcp_tenant;');

$run->check('big.mjs', $sessions, $events, $run->{feed}, 0);
$run->t->stop;

# a feed without ids goes on at a reload as well

$run = Mcp::Run->new(one => 'mcp_events /_feed/lines/one;');
$run->check('big.mjs', int $sessions / 2, int $events / 4, $run->{feed}, 1);

done_testing();
