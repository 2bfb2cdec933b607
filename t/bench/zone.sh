# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: the lock of the zone, and the death of its holder.


# workers that die with the lock, in a zone of 1 GB with 500,000 sessions

deaths() {
    local n=500000

    start deaths 2 << END
        mcp_zone zone=main:1040m;
        server {
            listen 127.0.0.1:$port backlog=4096 reuseport;
            mcp_session_bind \$http_x_user;
            allow 127.0.0.0/8;
            deny all;
            location = /mcp { mcp_endpoint zone=main; }
            location = /publish { mcp_publish zone=main; }
            location = /pid { return 200 \$pid; }
            location = /status { mcp_status zone=main; }
        }
END

    request "$dir/fill" /mcp "$initialize" "X-User: user-@@@@"
    "$load" -p "$port" fill "$n" "$dir/fill"

    request "$dir/ping" /mcp '{"jsonrpc":"2.0","id":1,"method":"ping"}' \
        "$(session /mcp -HX-User:user)"$'\r\nX-User: user'
    request "$dir/event" /publish "{\"jsonrpc\":\"2.0\",\"method\":
        \"notifications/message\",\"params\":{\"level\":\"info\",
        \"data\":\"words of a usual size\"}}"

    deaths_rows 0 "kill -9, the lock is free: stall, ms"
    deaths_rows 1 "kill -9 of the holder: stall, ms"

    stop "$master"

    # each death is an alert

    grep -vE 'exited on signal 9|was locked by' "$dir/deaths/error.log" \
        > "$dir/deaths/others" || true
    mv "$dir/deaths/others" "$dir/deaths/error.log"
}


# deaths_rows HOLDER NAME: the rounds before the death stand beside

deaths_rows() {
    local before freed after rest

    {
        read -ra before
        read -ra freed
        read -ra after
        read -ra rest
    } < <("$load" -p "$port" kill "$master" 15 "$1" "$dir/event" "$dir/ping")

    row "$2" "${after[0]}" "${before[0]}" "" "" "< 5"
    row "    at most" "${after[1]}" "${before[1]}" "" "" ""

    [ "$1" = 1 ] || return 0
    row "    until the lock was free" "${freed[0]}" "" "" "" ""
    row "    at most" "${freed[1]}" "" "" "" ""
    row "    from then on" "${rest[0]}" "${before[0]}" "" "" "< 5"
    row "    at most" "${rest[1]}" "${before[1]}" "" "" ""
}


# CPU time of operations with 100,000 sessions, and how long they hold the lock

locks() {
    echo
    "$("$root/t/unit/build_state.sh" bench)"
}
