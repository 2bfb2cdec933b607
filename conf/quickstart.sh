#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Installs what is missing (Debian, as root), builds the module and starts an
# nginx with a demo of its own, conf/nginx.conf, on this machine only:
#
#   conf/quickstart.sh          (re)build and (re)start
#   conf/quickstart.sh stop
#
# MCP_PORT=N    another port than 8080, and so a demo of its own
# MCP_DIR=DIR   another folder than .build/quickstart-PORT for the running demo
#
# The system's nginx configuration and service are not touched.

# "sh conf/quickstart.sh" works as well
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
port=${MCP_PORT:-8080}
dir=${MCP_DIR:-$root/.build/quickstart-$port}
so=ngx_http_mcp_module.so
nginx=$(PATH=$PATH:/usr/sbin:/sbin command -v nginx || echo /usr/sbin/nginx)


say() {
    echo "quickstart: $*" >&2
}


die() {
    say "$*"
    exit 1
}


# prints the process id of the demo's nginx, nothing if it does not run

running() {
    local pid

    pid=$(cat "$dir/nginx.pid" 2>/dev/null) || return 0

    if tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -qF -- "-p $dir "
    then
        echo "$pid"
    fi
}


stop() {
    local pid i

    pid=$(running)
    [ -n "$pid" ] || return 1

    kill -TERM "$pid"

    for i in $(seq 100); do
        [ -n "$(running)" ] || return 0
        sleep 0.1
    done

    die "nginx ($pid) did not stop"
}


# The nginx package would start its service; policy-rc.d prevents this.

install() {
    local p missing= policy=/usr/sbin/policy-rc.d

    for p in nginx nginx-dev libcjson-dev gcc make curl; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in
        ?i*) ;;
        *) missing="$missing $p" ;;
        esac
    done

    [ -n "$missing" ] || return 0

    [ "$(id -u)" = 0 ] || die "run as root, or: apt-get install$missing"

    say "installing$missing"

    if [ ! -e $policy ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' > $policy
        chmod 755 $policy
    fi

    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o Acquire::Retries=3 update >&2

    # shellcheck disable=SC2086
    apt-get -qq -y --no-install-recommends -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 install $missing > "$dir/install.log" 2>&1 \
        || { tail -n 20 "$dir/install.log" >&2; die "apt-get failed"; }

    case " $missing " in
    *" nginx "*)
        say "the service nginx was not started; it starts at the next boot," \
            "unless you run: systemctl disable nginx"
        ;;
    esac
}


taken() {
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null
}


free() {
    ! taken || die "port $port is taken; choose another: MCP_PORT=8081 $0"
}


start() {
    # before minutes pass
    [ -n "$(running)" ] || free

    install
    "$root/t/build.sh"

    if [ -n "$(running)" ]; then
        say "the demo is running: restarting it"
        stop
    fi

    free

    mkdir -p "$dir/modules"
    cp "$root/.build/debian/$so" "$dir/modules/$so.new"
    mv "$dir/modules/$so.new" "$dir/modules/$so"
    sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" "$root/conf/nginx.conf" \
        > "$dir/nginx.conf"

    # -e: errors before the configuration is read
    "$nginx" -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" \
        || die "nginx did not start, see $dir/error.log"

    curl -sf -o "$dir/answer" "http://127.0.0.1:$port/mcp" \
        -H 'Content-Type: application/json' -d "$initialize" \
        || die "the demo did not answer, see $dir/error.log"
}


initialize='{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
initialize+='{"protocolVersion":"2025-11-25","capabilities":{},'
initialize+='"clientInfo":{"name":"curl","version":"1"}}}'


hints() {
    local url=http://127.0.0.1:$port var=

    local inspector=@modelcontextprotocol/inspector
    local json="-H 'Content-Type: application/json'"
    local session='-H "Mcp-Session-Id: $sid"'
    local index='{"kind":"index","name":"products"}' tools='{"kind":"tools"}'

    [ -z "${MCP_DIR:-}" ] || var="MCP_DIR='$dir' "

    cat << END

nginx speaks MCP at $url/mcp: three tools, a resource, a prompt.
Configuration and logs: $dir

MCP Inspector (needs Node.js 22), in the browser, then "Connect":

  npx $inspector --transport http --server-url $url/mcp

and without one:

  npx $inspector --cli $url/mcp --transport http \\
    --method tools/list
  npx $inspector --cli $url/mcp --transport http \\
    --method tools/call --tool-name time

Claude Code:

  claude mcp add --transport http nginx-demo $url/mcp

TypeScript SDK, in an empty folder:

npm install @modelcontextprotocol/sdk
cat > demo.mjs << 'JS'
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport }
    from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema }
    from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'demo', version: '1.0.0' });

client.setNotificationHandler(LoggingMessageNotificationSchema,
    (n) => console.log('event:', n.params.data));

await client.connect(new StreamableHTTPClientTransport(
    new URL('$url/mcp')));
console.log(await client.callTool({ name: 'whoami' }));
console.log('waiting for events; end with Ctrl-C');
JS
node demo.mjs

curl:

  sid=\$(curl -s -o /dev/null -D - $url/mcp $json \\
    -d '$initialize' \\
    | tr -d '\\r' | sed -n 's/^Mcp-Session-Id: //p')
  curl $url/mcp $session $json \\
    -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  curl $url/mcp $session $json \\
    -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"time"}}'
  curl -N $url/mcp $session -H 'Accept: text/event-stream'

Publish events to all of them (from another terminal): an index was rebuilt, the
list of tools changed:

  curl $url/mcp-publish -d '$index'
  curl $url/mcp-publish -d '$tools'

or see how both reach a client of the SDK through another worker:

  ${var}MCP_PORT=$port "$root/conf/events.sh"

Metrics and access log:

  curl $url/mcp-status
  tail -f "$dir/access.log"

Stop:

  ${var}MCP_PORT=$port "$root/conf/quickstart.sh" stop

END
}


case ${1:-start} in

start)
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)
    start
    hints
    ;;

stop)
    [ ! -d "$dir" ] || dir=$(cd "$dir" && pwd)

    if stop; then
        say "stopped"
    else
        say "the demo does not run"
    fi
    ;;

*)
    sed -n '5,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 1
    ;;
esac
