# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: requests that are answered here or through an upstream, beside what
# nginx does without the module.


# compare NAME FILE-A FILE-B TARGET

compare() {
    measured 32 "$2" "$3"

    row "$1, 1/s" "$rate_a" "$rate_b" "$(divide "$rate_a" "$rate_b")" \
        "$(divide "$best_a" "$best_b")" ">= $4"
    row "    time of the worker each, us" "$time_a" "$time_b" \
        "$(divide "$time_b" "$time_a")" "$(divide "$least_b" "$least_a")" \
        ">= $4"
}


# the upstreams of requests(): plain HTTP, and an MCP server that knows the
# method by X-Method

answers() {
    local result='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    local public='"resultType":"complete","ttlMs":86400000,'
    local discovered='"supportedVersions":["2026-07-28"],'

    result+='"serverInfo":{"name":"up","version":"1"}'
    public+='"cacheScope":"public",'
    discovered+='"capabilities":{"tools":{}}'
    public=${list/'"result":{'/'"result":{'$public}
    discovered='{"jsonrpc":"2.0","id":'"\$id"',"result":{'$discovered'}}'

    : > "$dir/nobody"
    cat << END
        map \$http_x_id \$id { '' '"nginx-mcp"'; default \$http_x_id; }
        map \$http_x_method \$initialized {
            default '';
            ~^(initialize|)$ '{"jsonrpc":"2.0","id":\$id,"result":{$result}}';
        }
        server {
            listen 127.0.0.1:$((port + 1));
            location = /list { return 200 '${list/:1,/:\$id,}'; }
            location = /none { return 200 '${none/:1,/:\$id,}'; }
            location = /public {
                if (\$http_x_method = tools/list) {
                    return 200 '${public/:1,/:\$id,}';
                }
                return 200 '$discovered';
            }
            location = /json { return 200 '$tool'; }
            location = /rpc {
                if (\$http_x_method = tools/call) { return 200 '$tool'; }
                if (\$http_x_method = resources/list) {
                    return 200 '${resources/:1,/:\$id,}';
                }
                return 200 '${list/:1,/:\$id,}';
            }
            location = /slow {
                if (\$http_x_method != tools/call) {
                    return 200 '${list/:1,/:\$id,}';
                }
                auth_basic slow;
                auth_basic_user_file $dir/nobody;
                auth_delay 1h;
            }
            location = /input {
                default_type text/event-stream;
                root $dir/files;
                error_page 405 =200 \$uri;
                limit_rate 1000;
            }
            location = /sse {
                default_type text/event-stream;
                return 200 'event: message\ndata: $tool\n\n';
            }
            location /mcp/ {
                if (\$http_x_method = tools/call) {
                    rewrite ^/mcp(.*) \$1 last;
                }
                if (\$request_method = GET) { return 405; }
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
        "$load" -p "$port" ${over:+-t} count 50 "$dir/$f"
        callgrind_control -z "$worker" &> "$dir/control"
        "$load" -p "$port" ${over:+-t} count "$n" "$dir/$f"
        callgrind_control -d "$worker" &> "$dir/control"

        dump=$(ls -v "$dir"/callgrind."$worker".* | tail -n 1)
        spent+=("$(awk -v n="$n" '$1 == "totals:" { print int($2 / n) }' \
                       "$dump")")

        [ -z "${MCP_BENCH_PROFILE:-}" ] || callgrind_annotate --inclusive=no \
            --threshold=100 "$dump" \
            | grep -E '^ *[0-9,]+ \(' | head -n "$MCP_BENCH_PROFILE"
    done

    row "$1, instructions" "${spent[@]}" \
        "$(divide "${spent[1]}" "${spent[0]}")" "" ""
}


# beside PART NAME FILE-A FILE-B TARGET

beside() {
    ! wanted "$1" || $measure "${@:2}"
}


# once PATH FILE: asks for the list, so that it is there

once() {
    curl -s -o "$dir/once" "http://127.0.0.1:$port$1" \
        -H "$(sed -n 's/\r//; s/^Mcp-Session-Id/&/p' "$2")" \
        -H 'Content-Type: application/json' \
        -d "$tools"
    cmp -s <(printf %s "$list") "$dir/once" || cat "$dir/once" >&2
}


# requests that are answered here, and through an upstream; measured by compare
# or count

requests() {
    local up name under conf over=${MCP_BENCH_TLS:+ssl}
    local kind='{"kind":"episode","reason":"added","ts_ms":1764000000000}'
    local message='{"jsonrpc":"2.0","method":"notifications/message",'

    conf="
        mcp_zone zone=main:2000m;
        upstream up { server 127.0.0.1:$((port + 1)); keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        proxy_set_header X-Method \$mcp_method;
        server {
            listen 127.0.0.1:$port;
            $(over)
            mcp_list_cache on;
            location = /ping { mcp_endpoint zone=main; }
            location = /list {
                mcp_endpoint zone=main;
                mcp_upstream up /_list protocol=rpc;
            }
            location = /public {
                mcp_endpoint zone=main;
                mcp_upstream up /_public protocol=modern;
                mcp_list_cache auto;
            }
            location = /merged {
                mcp_endpoint zone=main;
                mcp_upstream up /_list protocol=rpc prefix=none;
                mcp_upstream second /_none protocol=rpc;
                mcp_upstream third /_none protocol=rpc;
            }
            location = /call {
                mcp_endpoint zone=main;
                mcp_upstream up /_call protocol=rpc;
            }
            location = /three {
                mcp_endpoint zone=main;
                mcp_upstream one /_call protocol=rpc;
                mcp_upstream two /_call protocol=rpc;
                mcp_upstream three /_call protocol=rpc;
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
            location = /_none { internal; proxy_pass http://up/none; }
            location = /_public { internal; proxy_pass http://up/public; }
            location = /_call { internal; proxy_pass http://up/json; }
            location = /modern {
                mcp_endpoint zone=main;
                mcp_upstream up /_modern protocol=rpc;
            }
            location = /_modern { internal; proxy_pass http://up/rpc; }
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
            location = /return-discover { return 200 '@discover@'; }
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
    modern "$dir/a" /modern server/discover ''
    sed '1,/^\r$/d; s/@@@@/1/' "$dir/a" > "$dir/b"
    curl -s -o "$dir/discover" "http://127.0.0.1:$port/modern" \
        -H 'Content-Type: application/json' -H 'Mcp-Method: server/discover' \
        -H 'MCP-Protocol-Version: 2026-07-28' -d "@$dir/b"
    stop "$master"

    conf=${conf/@initialize@/$(cat "$dir/answer")}
    conf=${conf/@discover@/$(cat "$dir/discover")}

    if [ "$measure" = count ]; then
        under="valgrind -q --tool=callgrind --trace-children=yes
               --callgrind-out-file=$dir/callgrind.%p"
    fi

    start main 1 <<< "$conf"

    request "$dir/a" /ping '{"jsonrpc":"2.0","id":1,"method":"ping"}' \
        "$(session /ping)"
    request "$dir/b" /return-ping '{"jsonrpc":"2.0","id":1,"method":"ping"}' \
        "$(session /ping)"
    beside ping "ping | return 200" a b 0.90

    request "$dir/a" /list "$tools" "$(session /list)"
    request "$dir/b" /return-list "$tools" "$(session /list)"

    once /list "$dir/a"
    beside list "tools/list, cached | return 200" a b 0.90

    # the same bytes, which the upstream has marked as public

    request "$dir/a" /public "$tools" "$(session /public)"
    once /public "$dir/a"
    beside public "tools/list, public | return 200" a b 0.90

    # the same bytes, of which two upstreams have no part

    request "$dir/b" /merged "$tools" "$(session /merged)"
    once /merged "$dir/b"
    beside merged "list of three upstreams | of one" b a 1.00

    for name in call json sse; do
        request "$dir/a" /$name "$call" "$(session /$name)"$'\r\nX-Id: @@@@'
        request "$dir/b" "/proxy/${name/call/json}" "$call" \
            "$(session /$name)"$'\r\nX-Id: @@@@'
        beside $name "tools/call, ${name/call/rpc} | proxy_pass" a b 0.90
    done

    request "$dir/a" /three "${call/weather/three__weather}" \
        "$(session /three)"$'\r\nX-Id: @@@@'
    request "$dir/b" /call "$call" "$(session /call)"$'\r\nX-Id: @@@@'
    beside three "tools/call, rpc, three upstreams | one" a b 0.97

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

    modern "$dir/a" /modern tools/call "$weather" 'X-Id: @@@@'
    modern "$dir/b" /proxy/rpc tools/call "$weather" \
        $'X-Id: @@@@\r\nX-Method: tools/call'
    beside modern "tools/call of 2026-07-28, rpc | proxy_pass" a b 0.90

    modern "$dir/a" /modern server/discover ''
    modern "$dir/b" /return-discover server/discover ''
    beside discover "server/discover | return 200" a b 0.90

    stop "$master"
    stop "$up"
}
