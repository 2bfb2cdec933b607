#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What the module costs, beside what it is measured by, in one run on this
# machine; ratios count, the figures themselves are of the machine. Both are
# measured in turn. "ratio" is of the medians, "best" of the best rounds, which
# others disturbed least. The time of a worker is its CPU time, with the
# kernel's, and suffers less from others than what the clock shows.
#
#   t/bench/run.sh [part ...]     or, if none is given, all of them:
#
#     ping list public call json sse publish rule initialize modern discover
#                    a request | return 200, return 202, proxy_pass
#     merged three   a list, a call with three upstreams | with one
#     fan listen     an event to many streams, those of subscriptions/listen
#     steady secure http2   at a steady rate: parked and held, these over TLS,
#                    HTTP/2
#     memory         of a session with its stream, a call, a topic, and others
#     crowd          100,000 sessions with their streams
#     want           an event for one of many
#     sessions tenants   operations among many sessions, or tenants
#     lists topics   lists of many entries
#     subscribe waits   many subscriptions of a session, calls that wait
#     payload        large answers of an upstream
#     deaths         workers that are killed, with and without the zone's lock
#     locks          how long operations hold this lock (a plain program)
#     others         nchan, a Lua script, and gateways, which it fetches
#
#   t/bench/run.sh instructions [part ...]
#                    of the worker for each request, by callgrind
#
# MCP_NGINX, MCP_MODULE   as for the tests
# MCP_BENCH_PORT=25100    the first of three ports
# MCP_BENCH_ROUNDS=61     of each comparison; medians count
# MCP_BENCH_MS=50        of a round
# MCP_BENCH_TLS=1         requests over TLS, beside the same over TLS
# MCP_BENCH_STREAMS=100000   of "want"
# MCP_BENCH_STEADY='1000 5000 18000'   streams at a steady rate
# MCP_BENCH_PROFILE=40    functions that take most instructions

# shellcheck disable=SC2034    # for the parts

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
nginx=${MCP_NGINX:-/usr/sbin/nginx}
module=${MCP_MODULE:-$root/.build/debian/ngx_http_mcp_module.so}
port=${MCP_BENCH_PORT:-25100}
rounds=${MCP_BENCH_ROUNDS:-61}
ms=${MCP_BENCH_MS:-50}
streams=${MCP_BENCH_STREAMS:-100000}
steady=${MCP_BENCH_STEADY:-1000 5000 18000}
load=$root/.build/bench/load

mkdir -p "$root/.build/bench"

# two at a time would measure each other
exec 9> "$root/.build/bench/lock"
flock 9

dir=$(mktemp -d /tmp/mcp-bench-XXXXXX)
chmod 755 "$dir"
pids=
trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

[ -n "${MCP_MODULE:-}" ] || "$root/t/build.sh"
gcc -O2 -Wall -Wextra -o "$load" "$root"/t/bench/load/*.c -lssl
ulimit -n "$(ulimit -H -n)"
connections=$(($(ulimit -n) - 100))
[ "$connections" -lt 19900 ] || connections=19900

# server and load on a core each, where there are two
cpu=
[ "$(nproc)" -lt 2 ] || cpu="taskset -c 1"

# or on one, where each waits for the other: no core has to be woken
same="taskset -c 0"

for part in lib requests streams growth payload zone others; do
    # shellcheck disable=SC1090
    . "$root/t/bench/$part.sh"
done


wanted() {
    [ -z "$parts" ] || case " $parts " in
    *" $1 "*) ;;
    *) return 1 ;;
    esac
}


each="ping list public merged call json sse three publish rule initialize"
each+=" modern discover"
measure=compare
parts=$*

if [ "${1:-}" = instructions ]; then
    measure=count
    shift
    parts=${*:-$each}
fi

printf '%s, %s, %s cores\n\n' "$("$nginx" -v 2>&1)" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"
row "what | beside what" "module" "other" "ratio" "best" "target"

for part in $each; do
    if wanted "$part"; then
        requests
        break
    fi
done

for part in fan listen steady secure http2 memory crowd want sessions tenants \
    lists topics subscribe waits payload deaths locks others
do
    if wanted "$part"; then
        $part
    fi
done

! cat "$dir"/*/error.log | grep -v '"listen ... http2" directive' \
    | grep -E '\[(warn|error|crit|alert|emerg)\]'
