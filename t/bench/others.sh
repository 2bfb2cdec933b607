# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: what else does a part of the work, fetched when this part runs: nchan
# and a Lua script in nginx, and gateways before the reference server.


others() {
    others_nginx
    others_gateways
}


# debian PACKAGE...: unpacks packages of the distribution into $debian

debian() {
    local package

    debian=$root/.build/bench/debian

    if [ ! -e "$debian/done" ]; then
        mkdir -p "$debian/packages"
        (cd "$debian/packages" && apt-get -qq download "$@" 2> "$dir/apt") \
            || { cat "$dir/apt" >&2; exit 1; }

        for package in "$debian"/packages/*.deb; do
            dpkg-deb -x "$package" "$debian"
        done

        touch "$debian/done"
    fi

    modules=$debian/usr/lib/nginx/modules
    export LD_LIBRARY_PATH
    LD_LIBRARY_PATH=$(dirname "$debian"/usr/lib/*/libluajit-5.1.so.2)
}


others_nginx() {
    local i b=$((port + 1)) mcp=$module modules debian cpath

    cpath=usr/lib/$(uname -m)-linux-gnu/lua/5.1

    debian libnginx-mod-nchan libnginx-mod-http-lua libnginx-mod-http-ndk \
        libluajit2-5.1-2 lua-resty-core lua-resty-lrucache lua-cjson

    # a channel of nchan in the place of sessions and their streams

    rm -f "$dir"/fan.*

    for i in 1 2 3; do
        start "others-fan$i" 1 <<< "$(mcp 64m)"
        # shellcheck disable=SC2086
        $cpu "$load" -p "$port" $work fan 5000 7 >> "$dir/fan.a"
        stop "$master"

        module=$modules/ngx_nchan_module.so
        start "others-nchan$i" 1 <<< "$(nchan)"
        # shellcheck disable=SC2086
        $cpu "$load" -p "$port" $work fan 5000 7 >> "$dir/fan.b"
        stop "$master"
        module=$mcp
    done

    fan_rows "one event to 5000 streams | nchan" ""

    # a script that answers tools/list, and ping, and knows no sessions

    start others-lua 1 01 "$modules/ndk_http_module.so" \
        "$modules/ngx_http_lua_module.so" <<< "
        lua_package_path '$debian/usr/share/lua/5.1/?.lua;;';
        lua_package_cpath '$debian/$cpath/?.so;;';
        $(script)
        mcp_zone zone=main:64m;
        mcp_list_cache on;
        upstream up { server 127.0.0.1:$b; keepalive 64; }
        proxy_set_header X-Id \$mcp_request_id;
        server {
            listen 127.0.0.1:$port;
            location = /mcp {
                mcp_endpoint zone=main;
                mcp_upstream up /_list protocol=rpc;
            }
            location = /_list { internal; proxy_pass http://up/list; }
            location = /lua { content_by_lua_block { answer() } }
        }
        server {
            listen 127.0.0.1:$b;
            set \$id \$http_x_id;
            if (\$id = '') { set \$id '\"nginx-mcp\"'; }
            location = /list { return 200 '${list/:1,/:\$id,}'; }
        }"

    request "$dir/a" /mcp "$tools" "$(session /mcp)"
    once /mcp "$dir/a"
    request "$dir/b" /lua "$tools"
    compare "tools/list, cached | Lua script" a b 0.90
    stop "$master"
}


nchan() {
    cat << END
        nchan_max_reserved_memory 64m;
        server {
            listen 127.0.0.1:$port backlog=4096;
            location = /mcp {
                error_page 418 = @session;
                if (\$request_method = POST) { return 418; }
                nchan_subscriber eventsource;
                nchan_channel_id all;
            }
            location @session {
                add_header Mcp-Session-Id 1;
                return 200;
            }
            location = /publish {
                nchan_publisher;
                nchan_channel_id all;
            }
        }
END
}


script() {
    cat << END
        init_by_lua_block {
            local cjson = require "cjson"
            local list = '${list/'"jsonrpc":"2.0","id":1,'/}'

            function answer()
                ngx.req.read_body()
                local ok, m = pcall(cjson.decode, ngx.req.get_body_data())

                if not ok or type(m) ~= "table" or m.jsonrpc ~= "2.0" then
                    return ngx.exit(400)
                end

                local head = '{"jsonrpc":"2.0","id":' .. cjson.encode(m.id)
                ngx.header["Content-Type"] = "application/json"

                if m.method == "tools/list" then
                    ngx.print(head, ",", list:sub(2))
                elseif m.method == "ping" then
                    ngx.print(head, ',"result":{}}')
                else
                    ngx.exit(404)
                end
            end
        }
END
}


# the tool "echo" of server-everything: straight, through nginx, and through
# gateways that start it for each session

others_gateways() {
    local npm=$root/.build/bench/npm everything name pid
    local server=@modelcontextprotocol/server-everything/dist/index.js
    local gateway=$((port + 1))

    everything=$root/t/npm/node_modules/$server

    if [ ! -e "$npm/done" ]; then
        npm install --prefix "$npm" --silent --no-audit --no-fund \
            supergateway@4.0.0 mcp-proxy@6.7.19
        touch "$npm/done"
    fi

    export NODE_OPTIONS="--import $root/t/npm/loopback.mjs"

    PORT=$gateway node "$everything" streamableHttp &> "$dir/everything" &
    pid=$!
    pids="$pids $pid"
    gateway straight "$gateway" "$pid"

    start others 1 <<< "
        mcp_zone zone=main:64m;
        upstream up { server 127.0.0.1:$gateway; keepalive 64; }
        server {
            listen 127.0.0.1:$port;
            location = /mcp {
                mcp_endpoint zone=main;
                mcp_upstream up /_up;
            }
            location = /_up { internal; proxy_pass http://up/mcp; }
        }"
    gateway nginx "$port" "$(workers_of "$master" | tr -d ' ')"
    stop "$master"
    stop "$pid"

    for name in supergateway mcp-proxy; do
        if [ $name = supergateway ]; then
            set -- --stdio "node $everything stdio" --port "$gateway" \
                --outputTransport streamableHttp --stateful --logLevel none
        else
            set -- --port "$gateway" --server stream -- \
                node "$everything" stdio
        fi

        node "$npm/node_modules/.bin/$name" "$@" &> "$dir/$name" &
        pid=$!
        pids="$pids $pid"
        gateway "$name" "$gateway" "$pid"
        stop "$pid"
    done
}


# gateway NAME PORT PID: a call at a time in one session

gateway() {
    local head echo='{"jsonrpc":"2.0","id":@@@@,"method":"tools/call",'
    local i

    echo+='"params":{"name":"echo","arguments":{"message":"a few words"}}}'

    for i in $(seq 200); do
        head=$(curl -s -o "$dir/answer" -D - "http://127.0.0.1:$2/mcp" \
            -H 'Content-Type: application/json' -d "$initialize" \
            -H 'Accept: application/json, text/event-stream' \
            | tr -d '\r' | grep -i '^mcp-session-id: ' || true)

        [ -z "$head" ] || break
        sleep 0.1
    done

    curl -s -o "$dir/answer" "http://127.0.0.1:$2/mcp" -H "$head" \
        -H 'Content-Type: application/json' \
        -H 'Accept: application/json, text/event-stream' \
        -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'

    request "$dir/a" /mcp "$echo" "$head"

    # shellcheck disable=SC2046
    set -- "$1" $($cpu "$load" -p "$2" -w "$3" beside 8 "$ms" 11 \
                      "$dir/a" "$dir/a")

    row "tools/call of server-everything, $1, 1/s" "$2" "" "" "" ""
    row "    time of this process for one, us" "$4" "" "" "" ""
}
