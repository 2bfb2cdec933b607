# shellcheck shell=bash disable=SC2034,SC2154
# Sourced: the lock of the zone, and the death of its holder.


# workers that die with the lock, in a zone of 1 GB with 500,000 sessions

deaths() {
    local n=500000 before most_before freed most_freed after most_after

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

    read -r before most_before freed most_freed after most_after \
        < <("$load" -p "$port" kill "$master" 15 "$dir/event" "$dir/ping")

    curl -s "http://127.0.0.1:$port/status" | grep -E 'recover|sessions"' >&2

    row "stall after kill -9 of the holder, ms | before" "$after" "$before" \
        "" "" "< 5"
    row "    at most" "$most_after" "$most_before" "" "" "< 5"
    row "    until the lock was freed, ms; at most" "$freed" "$most_freed" \
        "" "" ""

    stop "$master"

    # each death is an alert

    grep -v 'exited on signal 9' "$dir/deaths/error.log" \
        > "$dir/deaths/others" || true
    mv "$dir/deaths/others" "$dir/deaths/error.log"
}
