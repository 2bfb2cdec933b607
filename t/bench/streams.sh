# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: open streams, what they need, and what they receive.


# mcp SIZE [MAIN [FEW [SERVER]]]: a server with two endpoints, each with a zone
# and a publish location, and further directives of both and of the server

mcp() {
    echo "mcp_zone zone=main:$1; mcp_zone zone=few:64m;
          server {
              listen 127.0.0.1:$port backlog=4096 ${listen:-};
              $(over) ${4:-}
              mcp_stream_heartbeat 0;
              allow 127.0.0.0/8;
              deny all;
              location = /mcp { mcp_endpoint zone=main; ${2:-} }
              location = /publish { mcp_publish zone=main; }
              location = /few { mcp_endpoint zone=few; ${3:-} }
              location = /publish-few { mcp_publish zone=few; }
              location = /status { mcp_status zone=main; }
              location = /pid { return 200 \$pid; }
          }"
}


fan() {
    fan_of "one event to 5000 streams"
}


listen() {
    fan_of "one event to 5000 who listen" -l
}


# fan_of WHAT [OPTION]

fan_of() {
    local i

    rm -f "$dir"/fan.*

    for i in 1 2 3; do
        start "fan$i" 1 <<< "$(mcp 64m)"
        # shellcheck disable=SC2086
        $cpu "$load" -p "$port" ${2:-} $work fan 5000 7 >> "$dir/fan.a"
        stop "$master"

        bare
        # shellcheck disable=SC2086
        $cpu "$load" -p $((port + 2)) ${2:-} $work fan 5000 7 >> "$dir/fan.b"
        stop "$master"
    done

    fan_rows "$1 | epoll loop" ">= 0.90"
}


# fan_rows WHAT TARGET: of the rounds in fan.a and fan.b

fan_rows() {
    local i

    for i in a b; do
        cut -d ' ' -f 1 "$dir/fan.$i" > "$dir/fan.ms.$i"
        cut -d ' ' -f 2 "$dir/fan.$i" > "$dir/fan.us.$i"
    done

    fan_row "$1, ms" ms "$2"
    fan_row "    time of the worker for a stream, us" us "$2"
}


fan_row() {
    local a b

    a=$(median "$dir/fan.$2.a")
    b=$(median "$dir/fan.$2.b")

    row "$1" "$a" "$b" "$(divide "$b" "$a")" \
        "$(divide "$(least "$dir/fan.$2.b")" "$(least "$dir/fan.$2.a")")" "$3"
}


# 20,000 deliveries a second, in events that come one by one

steady() {
    steady_of << 'END'
parked on
held off
END
}


secure() {
    steady_of << 'END'
parked_TLS on -t ssl
held_TLS off -t ssl
END
}


http2() {
    steady_of << 'END'
HTTP/2 on -2 http2
HTTP/2_TLS on -t_-2 ssl http2
END
}


# steady_of: lines of a name, mcp_stream_park, an option, and $over

steady_of() {
    local n rate kinds kind park option workers a b listen over

    mapfile -t kinds

    for n in $steady; do
        rate=$(scale 20000 "$n")

        bare
        # shellcheck disable=SC2086
        b=$($cpu "$load" -p $((port + 2)) $work steady "$n" "$rate" \
                $((200000 / n)))
        stop "$master"

        for workers in 1 2; do
            listen=
            [ $workers = 1 ] || listen=reuseport

            for kind in "${kinds[@]}"; do
                read -r kind park option over <<< "$kind"

                start "steady-$n-$workers-${kind/\//}" $workers \
                    <<< "$(mcp 64m "mcp_stream_park $park;")"
                # shellcheck disable=SC2086
                a=$($cpu "$load" -p "$port" ${option/_/ } $work \
                        steady "$n" "$rate" $((200000 / n)))
                stop "$master"

                # shellcheck disable=SC2086
                steady_rows $a $b
            done
        done
    done
}


steady_rows() {
    row "$n ${kind/_/ } streams, $workers worker(s), half by ms" "$1" "$4" \
        "$(divide "$4" "$1")" "" ""
    row "    99% of the deliveries by, ms" "$2" "$5" "$(divide "$5" "$2")" \
        "" ""
    row "    time of the workers for one, us" "$3" "$6" \
        "$(divide "$6" "$3")" "" ">= 0.90"
}


# bytes that the workers have of their own, and that are in use in the zone

used() {
    local pid

    for pid in $(workers_of "$master"); do
        cat "/proc/$pid/smaps"
    done | awk '
        /^[0-9a-f]+-/ { shared = $2 ~ /s$/ }
        /^Private_Dirty/ && !shared { sum += $2 * 1024 }
        END { printf "%d ", sum }'

    curl -s "http://127.0.0.1:$port/status" | tr -d ',:"' | awk '
        $1 == "blocks" { all = $2 } $1 == "blocks_free" { free = $2 }
        $1 == "block_size_bytes" { size = $2 }
        END { print (all - free) * size }'
}


# taken N ARGUMENTS: sets $mine and $zone to the bytes that each of N things has
# in the workers and in the zone; the load with these arguments makes them

taken() {
    local n=$1 before input
    shift

    before=$(used)
    mkfifo "$dir/fifo"
    "$load" -p "$port" "$@" < "$dir/fifo" > "$dir/held" &
    exec {input}> "$dir/fifo"
    rm "$dir/fifo"

    until grep -q ready "$dir/held"; do
        kill -0 $!
        sleep 0.1
    done

    sleep 2
    # shellcheck disable=SC2046,SC2086
    set -- $before $(used)
    mine=$((($3 - $1) / n))
    zone=$((($4 - $2) / n))
    exec {input}>&-
}


memory() {
    memory_streams
    memory_things
}


memory_streams() {
    local name park yard option over n=5000 mine zone

    while read -r name park yard option over; do
        start "memory-${name/\//}" 2 <<< "$(mcp 64m "mcp_stream_park $park;")"
        session /mcp > /dev/null
        # shellcheck disable=SC2086
        taken "$n" ${option/_/ } hold "$n" 1
        stop "$master"

        if [ "$yard" = - ]; then
            row "session and its ${name/_/ } stream, B" $((mine + zone)) \
                "" "" "" ""
        else
            row "session and its ${name/_/ } stream | yardstick, B" \
                $((mine + zone)) "$yard" \
                "$(divide $((mine + zone)) "$yard")" "" "<= 1"
        fi

        row "    in the workers, in the zone" "$mine" "$zone" "" "" ""
    done << 'END'
parked on 2048 --
listening on 2048 -l
held off 11264 --
parked_TLS on - -t ssl
held_TLS off - -t ssl
HTTP/2 on 11264 -2 http2
HTTP/2_TLS on - -t_-2 ssl http2
END
}


# each of so many things; a request makes one, and is kept open where the thing
# ends with its request

memory_things() {
    local up name n how what conf id mine zone
    local wait='{"jsonrpc":"2.0","id":@@@@,"method":"tools/call","params":'
    local event='{"jsonrpc":"2.0","method":"notifications/message",'
    local asks='{"elicitation":{}}'

    wait+='{"name":"wait_for_event","arguments":{"topic":"this",'
    wait+='"timeout_seconds":600}}}'
    event+='"params":{"level":"info","data":"words of a usual size"}}'

    mkdir -p "$dir/files"
    {
        printf 'data: {"jsonrpc":"2.0","id":"ask","method":'
        printf '"elicitation/create","params":{"message":"Which city?",'
        printf '"requestedSchema":{"type":"object","properties":'
        printf '{"city":{"type":"string"}}}}}\n\n'
        seq 10000 | sed 's|.*|: the tool waits|'
    } > "$dir/files/input"

    start answers 1 10 <<< "$(answers)"
    up=$master

    while IFS='|' read -r name n how what conf; do
        start "thing-$what" 1 << END
            upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
            proxy_set_header X-Id \$mcp_request_id;
            proxy_set_header X-Method \$mcp_method;
            $(mcp 128m "mcp_call_limit 5000; mcp_topic_limit 5000;
                        mcp_subscription_limit 5000; mcp_stream_after 1h;
                        mcp_builtin_tools wait_for_event; $conf" "" "
                  location /_ { internal; proxy_pass http://up/; }
                  location = /slow {
                      proxy_pass http://up;
                      proxy_http_version 1.1;
                      proxy_set_header Connection '';
                      proxy_set_header X-Method tools/call;
                  }")
END

        id=$(session /mcp -HX-User:user)$'\r\nX-User: user'

        case $what in
        session) request "$dir/$what" /mcp "$initialize" "X-User: user-@@@@" ;;
        subscription)
            request "$dir/$what" /mcp '{"jsonrpc":"2.0","id":1,"method":
                "resources/subscribe","params":{"uri":"memory://@@@@"}}' "$id"
            ;;
        topic) request "$dir/$what" /publish \
            '{"topic":"topic-@@@@","text":"words of a usual size"}' ;;
        event) request "$dir/$what" /publish "$event" ;;
        repeated) request "$dir/$what" /publish "$event" \
            "Idempotency-Key: @@@@" ;;
        call) request "$dir/$what" /mcp "$call" "$id" ;;
        proxy) request "$dir/$what" /slow "$call" ;;
        wait) request "$dir/$what" /mcp "$wait" "$id" ;;
        list) modern "$dir/$what" /mcp tools/list '' 'X-User: user-@@@@' ;;
        input) declared=$asks modern "$dir/$what" /mcp tools/call "$weather" \
            'X-User: user-@@@@' ;;
        *) modern "$dir/$what" /mcp tools/call "$weather" \
            'X-User: user-@@@@' ;;
        esac

        taken "$n" "$how" "$n" "$dir/$what"
        stop "$master"
        row "$name, B: worker | zone" "$mine" "$zone" "" "" ""
    done << END
a session|4000|each|session|
and a tenant of its own|4000|each|session|mcp_tenant \$http_x_user;
and an identity of its own|4000|each|session|mcp_session_bind \$http_x_user;
a subscription|4000|each|subscription|
a topic with an event|4000|each|topic|
an event for all|200|each|event|
an event with an id|200|each|repeated|
a running call, rpc|4000|keep|call|mcp_upstream up /_slow protocol=rpc;
a running proxy_pass|4000|keep|proxy|
a wait_for_event|4000|keep|wait|
20 tools for a tenant|1000|each|list|mcp_tenant \$http_x_user; \
mcp_list_cache on max=4096; mcp_upstream up /_list protocol=rpc;
an upstream session|2000|each|upstream|mcp_upstream up /_mcp/json \
protocol=legacy listen=off;
a call parked for input|1000|each|input|mcp_upstream up /_mcp/input \
protocol=legacy listen=off;
END

    stop "$up"
}


# sessions with a stream each, an event for all of them, and a reload

crowd() {
    local n i input holders old start cpu out all
    local event='{"kind":"episode","reason":"added"}' listen=reuseport

    for n in 10000 50000 100000; do
        start "crowd-$n" 6 <<< "$(mcp 500m)"
        session /mcp > /dev/null
        # shellcheck disable=SC2046
        set -- $(used)

        holders=
        mkfifo "$dir/fifo-$n"
        exec {input}<> "$dir/fifo-$n"

        for i in $(seq $((n / 10000))); do
            "$load" -p "$port" hold 10000 $((i + 1)) < "$dir/fifo-$n" \
                > "$dir/hold-$n-$i" &
            holders="$holders $!"
        done

        for i in $(seq $((n / 10000))); do
            until grep -q ready "$dir/hold-$n-$i"; do
                sleep 0.1
            done
        done

        sleep 3
        # shellcheck disable=SC2046
        set -- "$@" $(used)
        row "session, of $n with a parked stream, B" \
            "$(((($3 - $1) + ($4 - $2)) / n))" "" "" "" ""
        row "    in the workers, in the zone" \
            "$((($3 - $1) / n))" "$((($4 - $2) / n))" "" "" ""

        out=$(($(delivered) + n))
        cpu=$(spent)
        start=$(date +%s%N)
        curl -s -o "$dir/published" -H 'Content-Type: application/json' \
            -d "$event" "http://127.0.0.1:$port/publish"

        until [ "$(delivered)" -ge "$out" ]; do
            sleep 0.02
        done

        all=$((($(date +%s%N) - start) / 1000000))
        row "    an event for all, ms; us of the workers each" "$all" \
            "$(divide "$(($(spent) - cpu))" "$((n * 1000))")" "" "" ""

        old=$(workers_of "$master")
        start=$(date +%s%N)
        kill -HUP "$master"

        for i in $old; do
            while [ -e "/proc/$i" ]; do
                sleep 0.05
            done
        done

        row "    a reload, until old workers are gone, ms" \
            "$((($(date +%s%N) - start) / 1000000))" "" "" "" ""

        exec {input}>&-
        # shellcheck disable=SC2086
        kill $holders
        stop "$master"
    done
}


# events that streams got, and ns that the workers spent

delivered() {
    curl -s "http://127.0.0.1:$port/status" | tr -d ' \t\n' \
        | sed -n 's/.*"events":{[^}]*"out":\([0-9]*\).*/\1/p'
}


spent() {
    local pid

    for pid in $(workers_of "$master"); do
        cut -d ' ' -f 1 "/proc/$pid/schedstat"
    done | awk '{ sum += $1 } END { printf "%.0f", sum }'
}
