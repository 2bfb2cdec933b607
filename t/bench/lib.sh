# shellcheck shell=bash disable=SC2034,SC2154

# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: servers, what they use, requests, rows.


# start NAME WORKERS [AFFINITY [MODULE ...]]: an nginx with http { } from its
# input, and further modules; sets $master, and $work to options of the load
# that name the workers

start() {
    local name=$1 workers=$2 affinity=${3:-01} i pid
    shift $(($# < 3 ? $# : 3))

    mkdir -p "$dir/$name"
    {
        printf 'load_module %s;\n' "$@" "$module"
        echo "daemon off; worker_processes $workers;"
        echo "pid $dir/$name/pid; error_log $dir/$name/error.log;"
        [ -z "${under:-}" ] || echo "user root;"
        [ "$workers" != 1 ] || echo "worker_cpu_affinity $affinity;"
        echo "events { worker_connections $connections; }"
        echo "http { access_log off; keepalive_requests 100000000;"
        echo "keepalive_timeout 1h; default_type application/json;"
        echo "client_body_temp_path $dir/$name/body;"
        echo "proxy_temp_path $dir/$name/proxy;"
        cat
        echo "}"
    } > "$dir/$name/nginx.conf"

    ${under:-} "$nginx" -p "$dir/$name" -c "$dir/$name/nginx.conf" \
        -e "$dir/$name/error.log" &
    master=$!
    pids="$pids $master"
    work=

    for i in $(seq 200); do
        if [ -s "$dir/$name/pid" ] \
            && [ "$(workers_of $master | wc -w)" = "$workers" ]
        then
            for pid in $(workers_of $master); do
                work="$work -w $pid"
            done

            return 0
        fi

        sleep 0.05
    done

    cat "$dir/$name/error.log" >&2
    exit 1
}


stop() {
    kill "$1"
    wait "$1" 2>/dev/null || true
}


# over: how a server speaks $over, such as "ssl", at the port after the next

over() {
    [ -n "${over:-}" ] || return 0

    echo "listen 127.0.0.1:$((port + 2)) backlog=4096 ${listen:-} $over;"

    case $over in
    ssl*)
        [ -e "$dir/key.pem" ] || openssl req -x509 -newkey ec -nodes \
            -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=localhost \
            -keyout "$dir/key.pem" -out "$dir/cert.pem" 2> "$dir/openssl"
        echo "ssl_certificate $dir/cert.pem;"
        echo "ssl_certificate_key $dir/key.pem;"
        ;;
    esac
}


# bare: the epoll loop that stands beside streams; sets $master and $work

bare() {
    taskset -c 0 "$load" -p $((port + 2)) bare &
    master=$!
    pids="$pids $master"
    work="-w $master"

    until (: < "/dev/tcp/127.0.0.1/$((port + 2))") 2> "$dir/dial"; do
        kill -0 "$master"
        sleep 0.05
    done
}


workers_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}


median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}


least() {
    sort -n "$1" | head -n 1
}


row() {
    printf '%-44s %10s %10s %6s %6s %7s\n' "$@"
}


divide() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'
}


scale() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'
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


# modern FILE PATH METHOD PARAMS [HEADER]: a request of revision 2026-07-28,
# with further members of params, of a client with capabilities $declared

modern() {
    local name body meta='"io.modelcontextprotocol/clientCapabilities":'

    meta+=${declared:-"{}"},
    meta+='"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},'
    meta+='"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
    body='{"jsonrpc":"2.0","id":@@@@,"method":"'$3'","params":{'$4
    body+='"_meta":{'$meta'}}}'
    name=$(sed -n 's/^"name":"\([^"]*\)".*/Mcp-Name: \1/p' <<< "$4")

    printf 'POST %s HTTP/1.1\r\nHost: localhost\r\n' "$2" > "$1"
    [ -z "$name" ] || printf '%s\r\n' "$name" >> "$1"
    [ -z "${5:-}" ] || printf '%s\r\n' "$5" >> "$1"
    printf 'Accept: application/json, text/event-stream\r\n' >> "$1"
    printf 'Content-Type: application/json\r\n' >> "$1"
    printf 'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n' "$3" \
        >> "$1"
    printf 'Content-Length: %d\r\n\r\n%s' "${#body}" "$body" >> "$1"
}


# measured CONNECTIONS FILE-A FILE-B: requests per second of each, taken in
# turn, and us of the worker for one: sets $rate, $best, $time, $least of each

measured() {
    # shellcheck disable=SC2086
    read -r rate_a best_a time_a least_a rate_b best_b time_b least_b \
        < <($cpu "$load" -p "$port" ${over:+-t} $work \
                beside "$1" "$ms" "$rounds" "$dir/$2" "$dir/$3")
}


# a tools/list of so many tools

tools_list() {
    local i list='{"jsonrpc":"2.0","id":1,"result":{"tools":['

    for i in $(seq "$1"); do
        [ "$i" = 1 ] || list+=,
        list+='{"name":"tool-'$i'","description":"What it is good for, in a '
        list+='line","inputSchema":{"type":"object","properties":'
        list+='{"a":{"type":"string"}}}}'
    done

    printf '%s]}}' "$list"
}


list=$(tools_list 20)
none=$(tools_list 0)
resources=${none/tools/resources}
ok='{"jsonrpc":"2.0","id":1,"result":{}}'
tools='{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
tool='{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":'
tool+='"It is sunny in Berlin, 21 degrees, with a light wind from the west."'
tool+='}]}}'
initialize='{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
initialize+='{"protocolVersion":"2025-11-25","capabilities":{},'
initialize+='"clientInfo":{"name":"load","version":"1"}}}'
weather='"name":"weather","arguments":{"city":"Berlin"},'
call='{"jsonrpc":"2.0","id":@@@@,"method":"tools/call","params":'
call+='{"name":"weather","arguments":{"city":"Berlin"}}}'


# session PATH [OPTION]: opens one; an option of curl

session() {
    curl -s ${2:-} -o "$dir/answer" -D - "http://127.0.0.1:$port$1" \
        -H 'Content-Type: application/json' -d "$initialize" \
        | tr -d '\r' | sed -n 's/^Mcp-Session-Id: /Mcp-Session-Id: /p'
}
