#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# What the module costs, beside what it is measured by, in one run on this
# machine; ratios count, the figures themselves are of the machine. "ratio" is
# of the medians, "best" of the best rounds, which others disturbed least.
# Requests per second are flattered where the load, and not the worker, is what
# is busy; the worker's time is not.
#
#   t/bench/run.sh [part ...]     ping list call initialize fan memory one want
#                                 or, if none is given, all of them
#   t/bench/run.sh instructions   of the worker for each request, by callgrind
#
# Further parts, of requests: json sse publish rule.
#
# MCP_NGINX, MCP_MODULE   as for the tests
# MCP_BENCH_PORT=25100    the first of three ports
# MCP_BENCH_ROUNDS=7      of each comparison, taken in turn; medians count
# MCP_BENCH_MS=1000       of a round

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
nginx=${MCP_NGINX:-/usr/sbin/nginx}
module=${MCP_MODULE:-$root/.build/debian/ngx_http_mcp_module.so}
port=${MCP_BENCH_PORT:-25100}
rounds=${MCP_BENCH_ROUNDS:-7}
ms=${MCP_BENCH_MS:-1000}
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
gcc -O2 -Wall -Wextra -o "$load" "$root/t/bench/load.c"
ulimit -n "$(ulimit -H -n)"

# server and load on a core each, where there are two
cpu=
[ "$(nproc)" -lt 2 ] || cpu="taskset -c 1"


# start NAME WORKERS: an nginx with http { } from its input; sets $master

start() {
    local name=$1 workers=$2 i

    mkdir -p "$dir/$name"
    {
        echo "load_module $module;"
        echo "daemon off; worker_processes $workers;"
        echo "pid $dir/$name/pid; error_log $dir/$name/error.log;"
        [ -z "${under:-}" ] || echo "user root;"
        [ "$workers" != 1 ] || echo "worker_cpu_affinity ${3:-01};"
        echo "events { worker_connections 16384; }"
        echo "http { access_log off; keepalive_requests 100000000;"
        echo "keepalive_timeout 1h; default_type application/json;"
        cat
        echo "}"
    } > "$dir/$name/nginx.conf"

    ${under:-} "$nginx" -p "$dir/$name" -c "$dir/$name/nginx.conf" \
        -e "$dir/$name/error.log" &
    master=$!
    pids="$pids $master"

    for i in $(seq 200); do
        [ ! -s "$dir/$name/pid" ] || [ -z "$(workers_of $master)" ] || return 0
        sleep 0.05
    done

    cat "$dir/$name/error.log" >&2
    exit 1
}


stop() {
    kill "$1"
    wait "$1" 2>/dev/null || true
}


workers_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}


# clock ticks that the worker of $master has used

ticks() {
    awk '{ print $14 + $15 }' "/proc/$(workers_of "$master" | tr -d ' ')/stat"
}


median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}


least() {
    sort -n "$1" | head -n 1
}


most() {
    sort -n "$1" | tail -n 1
}


# request FILE PATH BODY [HEADER]

request() {
    printf 'POST %s HTTP/1.1\r\nHost: localhost\r\n' "$2" > "$1"
    [ -z "${4:-}" ] || printf '%s\r\n' "$4" >> "$1"
    printf 'Accept: application/json, text/event-stream\r\n' >> "$1"
    printf 'Content-Type: application/json\r\n' >> "$1"
    printf 'MCP-Protocol-Version: 2025-11-25\r\n' >> "$1"
    printf 'Content-Length: %d\r\n\r\n%s' "${#3}" "$3" >> "$1"
}


row() {
    printf '%-42s %10s %10s %6s %6s %7s\n' "$@"
}


divide() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'
}


# compare NAME FILE-A FILE-B TARGET: requests per second of both, in turn

compare() {
    local name=$1 i f before t a b

    rm -f "$dir"/rate.* "$dir"/cpu.*

    for i in $(seq "$rounds"); do
        for f in "$2" "$3"; do
            before=$(ticks)
            t=$($cpu "$load" rate "$port" 32 "$ms" "$dir/$f")
            echo "$t" >> "$dir/rate.$f"
            awk -v n="$t" -v ms="$ms" -v t=$(($(ticks) - before)) \
                'BEGIN { print t * 1e4 / (n * ms / 1000) }' >> "$dir/cpu.$f"
        done
    done

    a=$(median "$dir/rate.$2")
    b=$(median "$dir/rate.$3")
    row "$name, 1/s" "$a" "$b" "$(divide "$a" "$b")" \
        "$(divide "$(most "$dir/rate.$2")" "$(most "$dir/rate.$3")")" ">= $4"

    a=$(median "$dir/cpu.$2")
    b=$(median "$dir/cpu.$3")
    row "    time of the worker each, us" \
        "$(printf %.1f "$a")" "$(printf %.1f "$b")" "$(divide "$b" "$a")" \
        "$(divide "$(least "$dir/cpu.$3")" "$(least "$dir/cpu.$2")")" ""
}


ok='{"jsonrpc":"2.0","id":1,"result":{}}'
list='{"jsonrpc":"2.0","id":1,"result":{"tools":['
for i in $(seq 20); do
    [ "$i" = 1 ] || list+=,
    list+='{"name":"tool-'$i'","description":"What it is good for, in a line",'
    list+='"inputSchema":{"type":"object","properties":'
    list+='{"a":{"type":"string"}}}}'
done
list+=']}}'
tools='{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
tool='{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":'
tool+='"It is sunny in Berlin, 21 degrees, with a light wind from the west."'
tool+='}]}}'
initialize='{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
initialize+='{"protocolVersion":"2025-11-25","capabilities":{},'
initialize+='"clientInfo":{"name":"load","version":"1"}}}'
call='{"jsonrpc":"2.0","id":@@@@,"method":"tools/call","params":'
call+='{"name":"weather","arguments":{"city":"Berlin"}}}'


# session PATH: opens one

session() {
    curl -s -o "$dir/answer" -D - "http://127.0.0.1:$port$1" \
        -H 'Content-Type: application/json' -d "$initialize" \
        | tr -d '\r' | sed -n 's/^Mcp-Session-Id: /Mcp-Session-Id: /p'
}


# the upstreams of requests(): plain HTTP, and an MCP server that knows the
# method by X-Method

answers() {
    local result='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'

    result+='"serverInfo":{"name":"up","version":"1"}'

    cat << END
        map \$http_x_id \$id { '' '"nginx-mcp"'; default \$http_x_id; }
        map \$http_x_method \$initialized {
            default '';
            ~^(initialize|)$ '{"jsonrpc":"2.0","id":\$id,"result":{$result}}';
        }
        server {
            listen 127.0.0.1:$((port + 1));
            location = /list { return 200 '${list/:1,/:\$id,}'; }
            location = /json { return 200 '$tool'; }
            location = /sse {
                default_type text/event-stream;
                return 200 'event: message\ndata: $tool\n\n';
            }
            location /mcp/ {
                if (\$http_x_method = tools/call) {
                    rewrite ^/mcp(.*) \$1 last;
                }
                if (\$initialized = '') { return 202; }
                add_header Mcp-Session-Id 1;
                return 200 \$initialized;
            }
        }
END
}


# count NAME FILE-A FILE-B: instructions of the worker for a request of each,
# when a few have gone before

count() {
    local worker f dump n=500 spent=()

    worker=$(workers_of "$master" | tr -d ' ')

    for f in "$2" "$3"; do
        "$load" count "$port" 50 "$dir/$f"
        callgrind_control -z "$worker" &> "$dir/control"
        "$load" count "$port" "$n" "$dir/$f"
        callgrind_control -d "$worker" &> "$dir/control"

        dump=$(ls -v "$dir"/callgrind."$worker".* | tail -n 1)
        spent+=("$(awk -v n="$n" '$1 == "totals:" { print int($2 / n) }' \
                       "$dump")")
    done

    row "$1, instructions" "${spent[@]}" \
        "$(divide "${spent[1]}" "${spent[0]}")" "" ""
}


# beside PART NAME FILE-A FILE-B TARGET

beside() {
    ! wanted "$1" || $measure "${@:2}"
}


# requests that are answered here, and through an upstream; measured by compare
# or count

requests() {
    local up name under
    local kind='{"kind":"episode","reason":"added","ts_ms":1764000000000}'
    local message='{"jsonrpc":"2.0","method":"notifications/message",'
    local conf="
        mcp_zone zone=main:2000m;
        upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        proxy_set_header X-Method \$mcp_method;
        server {
            listen 127.0.0.1:$port;
            mcp_list_cache on;
            location = /ping { mcp_endpoint zone=main; }
            location = /list {
                mcp_endpoint zone=main;
                mcp_upstream up /_list protocol=rpc;
            }
            location = /call {
                mcp_endpoint zone=main;
                mcp_upstream up /_call protocol=rpc;
            }
            location = /json {
                mcp_endpoint zone=main;
                mcp_upstream up /_json protocol=legacy listen=off;
            }
            location = /sse {
                mcp_endpoint zone=main;
                mcp_upstream up /_sse protocol=legacy listen=off;
            }
            location = /_list { internal; proxy_pass http://up/list; }
            location = /_call { internal; proxy_pass http://up/json; }
            location = /_json { internal; proxy_pass http://up/mcp/json; }
            location = /_sse { internal; proxy_pass http://up/mcp/sse; }
            location = /publish {
                allow 127.0.0.1;
                deny all;
                mcp_publish zone=main endpoint=bench;
            }
            location = /events { mcp_endpoint zone=main name=bench; }
            location = /return-ping { return 200 '$ok'; }
            location = /return-list { return 200 '$list'; }
            location = /return-initialize { return 200 '@initialize@'; }
            location = /return-publish { return 202; }
            location /proxy/ {
                proxy_pass http://up/;
                proxy_http_version 1.1;
                proxy_set_header Connection '';
                proxy_set_header X-Id \$http_x_id;
                location = /proxy/sse {
                    proxy_pass http://up/sse;
                    proxy_buffering off;
                }
            }
        }"

    message+='"params":{"level":"info","data":"words of a usual size"}}'

    start answers 1 10 <<< "$(answers)"
    up=$master

    # the same bytes as the module answers, which are asked for first

    start same 1 <<< "$conf"
    session /call > /dev/null
    stop "$master"

    if [ "$measure" = count ]; then
        under="valgrind -q --tool=callgrind --trace-children=yes
               --callgrind-out-file=$dir/callgrind.%p"
    fi

    start main 1 <<< "${conf/@initialize@/$(cat "$dir/answer")}"

    request "$dir/a" /ping '{"jsonrpc":"2.0","id":1,"method":"ping"}' \
        "$(session /ping)"
    request "$dir/b" /return-ping '{"jsonrpc":"2.0","id":1,"method":"ping"}' \
        "$(session /ping)"
    beside ping "ping | return 200" a b 0.90

    request "$dir/a" /list "$tools" "$(session /list)"
    request "$dir/b" /return-list "$tools" "$(session /list)"

    # asked once, so that it is there

    curl -s -o "$dir/once" "http://127.0.0.1:$port/list" \
        -H "$(sed -n 's/\r//; s/^Mcp-Session-Id/&/p' "$dir/a")" \
        -H 'Content-Type: application/json' \
        -d "$tools"
    cmp -s <(printf %s "$list") "$dir/once" || cat "$dir/once" >&2
    beside list "tools/list, cached | return 200" a b 0.90

    for name in call json sse; do
        request "$dir/a" /$name "$call" "$(session /$name)"$'\r\nX-Id: @@@@'
        request "$dir/b" "/proxy/${name/call/json}" "$call" \
            "$(session /$name)"$'\r\nX-Id: @@@@'
        beside $name "tools/call, ${name/call/rpc} | proxy_pass" a b 0.90
    done

    session /events > /dev/null
    request "$dir/a" /publish "$message"
    request "$dir/b" /return-publish "$message"
    beside publish "publish a notification | return 202" a b 0.80

    request "$dir/a" /publish "$kind"
    request "$dir/b" /return-publish "$kind"
    beside rule "publish by a rule | return 202" a b 0.80

    request "$dir/a" /call "$initialize"
    request "$dir/b" /return-initialize "$initialize"
    beside initialize "initialize | return 200" a b 0.75

    stop "$master"
    stop "$up"
}


# mcp SIZE: a server with an endpoint and its publish location

mcp() {
    echo "mcp_zone zone=main:$1; mcp_zone zone=few:8m;
          server {
              listen 127.0.0.1:$port backlog=4096;
              mcp_stream_heartbeat 1h;
              location = /mcp { mcp_endpoint zone=main; ${2:-} }
              location = /publish { mcp_publish zone=main; }
              location = /few { mcp_endpoint zone=few; ${3:-} }
              location = /publish-few { mcp_publish zone=few; }
              location = /status { mcp_status zone=main; }
          }"
}


fan() {
    local i a b bare

    for i in 1 2 3; do
        start "fan$i" 1 <<< "$(mcp 64m)"
        $cpu "$load" fan "$port" /mcp /publish 5000 "$rounds" >> "$dir/fan.a"
        stop "$master"

        taskset -c 0 "$load" bare $((port + 2)) &
        bare=$!
        pids="$pids $bare"
        sleep 0.3
        $cpu "$load" fan $((port + 2)) /mcp /publish 5000 "$rounds" \
            >> "$dir/fan.b"
        stop "$bare"
    done

    a=$(median "$dir/fan.a")
    b=$(median "$dir/fan.b")
    row "one event to 5000 streams | epoll loop, ms" "$a" "$b" \
        "$(divide "$b" "$a")" \
        "$(divide "$(least "$dir/fan.b")" "$(least "$dir/fan.a")")" ">= 0.90"
}


# bytes that the workers have of their own, and that are in use in the zone

used() {
    local pid sum=0 n

    for pid in $(workers_of "$master"); do
        n=$(awk '/^Private_Dirty/ { print $2 }' "/proc/$pid/smaps_rollup")
        sum=$((sum + n * 1024))
    done

    echo "$sum $(curl -s "http://127.0.0.1:$port/status" | tr -d ',:"' | awk '
        $1 == "blocks" { all = $2 } $1 == "blocks_free" { free = $2 }
        $1 == "block_size_bytes" { size = $2 }
        END { print (all - free) * size }')"
}


memory() {
    local name park yard n=5000 before after input

    while read -r name park yard; do
        start "memory-$park" 2 <<< "$(mcp 64m "mcp_stream_park $park;")"
        session /mcp > /dev/null
        before=$(used)

        mkfifo "$dir/fifo-$park"
        "$load" hold "$port" /mcp "$n" < "$dir/fifo-$park" \
            > "$dir/hold-$park" &
        exec {input}> "$dir/fifo-$park"

        while ! grep -q ready "$dir/hold-$park"; do
            sleep 0.1
        done

        sleep 2
        after=$(used)
        exec {input}>&-
        stop "$master"

        # shellcheck disable=SC2086
        set -- $before $after
        row "session with a $name stream | yardstick, B" \
            "$(((($3 - $1) + ($4 - $2)) / n))" "$yard" \
            "$(divide "$(($3 - $1 + $4 - $2))" "$((n * yard))")" "" "<= 1"
        row "    in the workers, in the zone" \
            "$((($3 - $1) / n))" "$((($4 - $2) / n))" "" "" ""
    done << 'END'
parked on 3072
held off 11264
END
}


one() {
    local a b

    start one 1 <<< "$(mcp 256m)"
    read -r a b < <($cpu "$load" one "$port" /mcp /publish 100000 \
                        /few /publish-few 100 3000)
    stop "$master"

    row "event to 1 session of 100000 | of 100, us" "$a" "$b" \
        "$(divide "$a" "$b")" "" "<= 1.2"
}


# one event for one of many streams, as many as fit into a worker

want() {
    local a b what n=10000
    local conf="mcp_session_bind \$http_x_user;
                mcp_capabilities resources logging; mcp_topic_limit 16000;"

    for what in identity uri topic; do
        start "want-$what" 1 <<< "$(mcp 256m "$conf" "$conf")"
        read -r a b < <($cpu "$load" want "$port" /mcp /publish "$n" \
                            /few /publish-few 100 2000 "$what")
        stop "$master"

        row "event for 1 $what of $n streams | of 100, us" "$a" "$b" \
            "$(divide "$a" "$b")" "" "<= 1.2"
    done

    start want-tenants 1 <<< "$(mcp 256m "mcp_tenant \$http_x_user;" \
                                "mcp_tenant \$http_x_user;")"
    read -r a b < <($cpu "$load" want "$port" /mcp /publish "$n" \
                        /few /publish-few 100 2000 tenants)
    stop "$master"

    row "event for $n tenants | for 100, us" "$a" "$b" \
        "$(divide "$a" "$b")" "" "<= 1.2"
}


wanted() {
    [ -z "$parts" ] || case " $parts " in
    *" $1 "*) ;;
    *) return 1 ;;
    esac
}


each="ping list call json sse publish rule initialize"
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
    if wanted $part; then
        requests
        break
    fi
done

for part in fan memory one want; do
    if wanted $part; then
        $part
    fi
done

! cat "$dir"/*/error.log | grep -E '\[(warn|error|crit|alert|emerg)\]'
