# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: large answers of upstreams.


# payload_files: answers with so many MB of text, as JSON and as SSE

payload_files() {
    local n text='{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"'

    mkdir -p "$dir/files"

    for n in 1 10 50; do
        {
            printf '%s,"text":"' "$text"
            head -c "${n}000000" /dev/zero | tr '\0' x
            printf '"}]}}'
        } > "$dir/files/json-$n"
        {
            printf 'event: message\ndata: '
            cat "$dir/files/json-$n"
            printf '\n\n'
        } > "$dir/files/sse-$n"
    done
}


# payload_endpoints: one for each file, as JSON from each kind of upstream, or
# for a client of 2026-07-28

payload_endpoints() {
    local n kind

    for kind in "rpc json" "modern json" "legacy json" "legacy sse"; do
        for n in 1 10 50; do
            # shellcheck disable=SC2086
            set -- $kind
            cat << END
                location = /$1-$2-$n {
                    mcp_endpoint zone=main;
                    mcp_upstream up /_$1-$2-$n protocol=${1/modern/rpc}
                                 listen=off;
                }
                location = /_$1-$2-$n {
                    internal;
                    proxy_pass http://up/${1/modern/rpc}/$2-$n;
                }
END
        done
    done
}


payload() {
    local up n kind ask=${call/@@@@/1}
    local result='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'

    result+='"serverInfo":{"name":"up","version":"1"}'
    payload_files

    start payload-up 1 10 << END
        map \$http_x_id \$id { '' '"nginx-mcp"'; default \$http_x_id; }
        map \$http_x_method \$initialized {
            default '';
            initialize '{"jsonrpc":"2.0","id":\$id,"result":{$result}}';
        }
        server {
            listen 127.0.0.1:$((port + 1));
            root $dir/files;
            location /json { error_page 405 =200 \$uri; }
            location /sse {
                default_type text/event-stream;
                error_page 405 =200 \$uri;
            }
            location /rpc/ {
                if (\$http_x_method = tools/call) {
                    rewrite ^/rpc(.*) \$1 last;
                }
                return 200 '{"jsonrpc":"2.0","id":\$id,"result":{"tools":[]}}';
            }
            location /legacy/ {
                if (\$http_x_method = tools/call) {
                    rewrite ^/legacy(.*) \$1 last;
                }
                if (\$initialized = '') { return 202; }
                add_header Mcp-Session-Id 1;
                return 200 \$initialized;
            }
        }
END
    up=$master

    for kind in "rpc json" "modern json" "legacy json" "legacy sse"; do
        for n in 1 10 50; do
            # shellcheck disable=SC2086
            payload_rows $n $kind
        done
    done

    stop "$up"
}


# payload_rows MB UPSTREAM KIND

payload_rows() {
    local ms_a time_a grown_a all_a ms_b time_b grown_b all_b

    # memory that an answer before needed may still be the worker's

    start "payload-$2-$3-$1" 1 << END
        mcp_zone zone=main:8m;
        upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        proxy_set_header X-Method \$mcp_method;
        server {
            listen 127.0.0.1:$port;
            mcp_message_limit 64m;
            $(payload_endpoints)
            location /json { proxy_pass http://up; }
            location /sse { proxy_pass http://up; proxy_buffering off; }
        }
END

    if [ "$2" = modern ]; then
        modern "$dir/a" "/$2-$3-$1" tools/call "$weather" 'Connection: close'
        sed -i 's/@@@@/1001/' "$dir/a"
    else
        request "$dir/a" "/$2-$3-$1" "$ask" \
            "$(session "/$2-$3-$1")"$'\r\nConnection: close'
    fi

    request "$dir/b" "/$3-$1" "$ask" "Connection: close"

    # shellcheck disable=SC2086
    read -r ms_a time_a grown_a all_a ms_b time_b grown_b all_b \
        < <($cpu "$load" -p "$port" $work payload 5 "$dir/a" "$dir/b")

    stop "$master"

    [ "$((all_a / 1000000))" = "$1" ] && [ "$((all_b / 1000000))" = "$1" ]

    row "$1 MB, $2 $3 | proxy_pass, ms" "$ms_a" "$ms_b" \
        "$(divide "$ms_b" "$ms_a")" "" ""
    row "    time of the worker, ms" "$time_a" "$time_b" \
        "$(divide "$time_b" "$time_a")" "" ""
    row "    growth of the worker at most, KB" "$((grown_a / 1024))" \
        "$((grown_b / 1024))" "" "" ""
}
