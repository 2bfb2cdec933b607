# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: what one thing costs among many, beside the same among few, in time
# of the workers.


# growth_row NAME MANY FEW

growth_row() {
    row "$1" "$2" "$3" "$(divide "$2" "$3")" "" "<= 1.2"
}


# one event for one of so many, each of which has a session with an identity
# of its own, and subscriptions to a URI and a topic of its own; a worker has
# as many streams as descriptors

want() {
    want_among 10000 9000
    want_among 100000 18000
    want_among 100000 "$streams"
}


# want_among SESSIONS STREAMS

want_among() {
    local what a b listen=reuseport workers=$(($2 / 18001 + 1))
    local conf="mcp_session_bind \$http_x_user;
                mcp_capabilities resources logging; mcp_topic_limit 400000;"

    start "want-$1-$2" $workers <<< "$(mcp 1500m "$conf" "$conf")"

    # shellcheck disable=SC2086
    $same "$load" -p "$port" $work want "$1" "$2" "$rounds" > "$dir/wanted"
    stop "$master"

    row "of $1 sessions | 100, streams open" "$2" 100 "" "" ""
    row "    of so many workers" "$workers" "$workers" "" "" ""

    for what in session identity uri topic; do
        read -r a b
        growth_row "    event for one $what, us" "$a" "$b"
    done < "$dir/wanted"
}


sessions() {
    sessions_among 10000 sessions mcp_session_bind identity
    sessions_among 100000 sessions mcp_session_bind identity
}


tenants() {
    sessions_among 10000 tenants mcp_tenant tenant_id
}


# sessions_among NUMBER OF DIRECTIVE MEMBER: sessions with a value of their own
# for the directive, by which the member selects one for an event

sessions_among() {
    local up what a b
    local conf="$3 \$http_x_user; mcp_capabilities tools resources logging;
                mcp_topic_limit 400000; mcp_upstream up /_up protocol=rpc;
                mcp_list_cache on key=all max=4096 kinds=tools,resources;"

    start answers 1 10 <<< "$(answers)"
    up=$master

    start "$2-$1" 1 << END
        upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        proxy_set_header X-Method \$mcp_method;
        $(mcp 1500m "$conf" "$conf" \
              "location = /_up { internal; proxy_pass http://up/rpc; }")
END
    # shellcheck disable=SC2086
    $same "$load" -p "$port" $work sessions "$1" "$rounds" "$4" > "$dir/among"
    stop "$master"
    stop "$up"

    row "of $1 $2 | 100, us" "" "" "" "" ""

    for what in "event for all" "event for one" initialize \
        "a GET stream opens" "it closes" "subscriptions/listen begins" \
        "it ends" DELETE ping "tools/call, rpc" "tools/list, cached" \
        "resources/list, a topic"
    do
        ! read -r a b || growth_row "    $what" "$a" "$b"
    done < "$dir/among"
}


# lists that get longer; the cost for an entry is to remain

lists() {
    local up n

    mkdir -p "$dir/files"
    for n in 500 5000; do
        tools_list $n > "$dir/files/tools-$n"
    done

    start lists-up 1 10 << END
        map \$http_x_id \$id { '' '"nginx-mcp"'; default \$http_x_id; }
        server {
            listen 127.0.0.1:$((port + 1));
            root $dir/files;
            error_page 405 =200 \$uri;
            sub_filter '"id":1' '"id":\$id';
            sub_filter_types *;
        }
END
    up=$master

    start lists 1 << END
        mcp_zone zone=main:64m;
        upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        map \$mcp_name \$denied { ~^tool-.*7\$ 1; default 0; }
        server {
            listen 127.0.0.1:$port;
            mcp_list_cache on;
            location = /plain-5000 {
                mcp_endpoint zone=main;
                mcp_upstream up /_tools-5000 protocol=rpc;
            }
            location = /deny-5000 {
                mcp_endpoint zone=main;
                mcp_upstream up /_tools-5000 protocol=rpc;
                mcp_deny \$denied;
            }
            location = /deny-500 {
                mcp_endpoint zone=main;
                mcp_upstream up /_tools-500 protocol=rpc;
                mcp_deny \$denied;
            }
            location ~ ^/_(.*) { internal; proxy_pass http://up/\$1; }
        }
END

    for n in plain-5000 deny-5000 deny-500; do
        request "$dir/$n" /$n "$tools" "$(session /$n)"
    done

    measured 1 deny-5000 plain-5000
    row "tools/list of 5000, mcp_deny | without, us" "$time_a" "$time_b" \
        "$(divide "$time_b" "$time_a")" "$(divide "$least_b" "$least_a")" ""

    measured 1 deny-5000 deny-500
    growth_row "    for a tool of 5000 | of 500, us" \
        "$(scale "$time_a" 4500)" "$(scale "$time_b" 450)"

    stop "$master"
    stop "$up"
}


topics() {
    local n listed='{"jsonrpc":"2.0","id":1,"method":"resources/list"}'
    local conf="mcp_topic_limit 5000;"

    start topics 1 <<< "$(mcp 256m "$conf" "$conf")"

    request "$dir/many" /mcp "$listed" "$(session /mcp)"
    request "$dir/few" /few "$listed" "$(session /few)"

    for n in publish:4096 publish-few:256; do
        seq "${n#*:}" | sed 's/.*/{"topic":"builds-&","state":"green"}/' \
            | curl -s -o "$dir/published" --data-binary @- \
                "http://127.0.0.1:$port/${n%:*}"
    done

    measured 1 many few
    growth_row "resources/list, a topic of 4096 | of 256, us" \
        "$(scale "$time_a" 4096)" "$(scale "$time_b" 256)"
    stop "$master"
}


subscribe() {
    local a b c d e f

    start subscribe 1 <<< "$(mcp 64m "mcp_capabilities resources;
                                      mcp_subscription_limit 2000;")"
    # shellcheck disable=SC2086
    read -r a b c d e f \
        < <($same "$load" -p "$port" $work subscribe "$rounds")
    stop "$master"

    growth_row "subscribe, session has 100 | 1, us" "$b" "$a"
    growth_row "subscribe, session has 1000 | 1, us" "$c" "$a"
    growth_row "the same with an open stream, 100 | 1, us" "$e" "$d"
    growth_row "the same with an open stream, 1000 | 1, us" "$f" "$d"
}


# calls of wait_for_event

waits() {
    local what a b n=10000
    local conf="mcp_builtin_tools wait_for_event; mcp_stream_after 1h;
                mcp_session_bind \$http_x_user;"

    start waits 1 <<< "$(mcp 256m "$conf" "$conf")"
    # shellcheck disable=SC2086
    $same "$load" -p "$port" $work wait "$n" 5 > "$dir/waited"

    for what in "a call begins to wait" "and gets its event" \
        "meanwhile an event of another topic" \
        "and one of this topic that none waits for"
    do
        read -r a b
        growth_row "$what, $n | 100, us" "$a" "$b"
    done < "$dir/waited"

    stop "$master"
}
