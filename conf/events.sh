#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Shows how an event gets from curl to an agent.  A client of the TypeScript SDK
# connects to the demo of conf/quickstart.sh.  curl publishes two events: an
# index was rebuilt (through the worker that does not hold the client's stream),
# and the list of tools changed.  The client prints the notifications that it
# receives.  The script stops what it started.
#
#   conf/events.sh
#
# Needs Node.js 18, and npm where the tests' packages are not installed.
# MCP_PORT, MCP_DIR: as for conf/quickstart.sh.

# "sh conf/events.sh" works as well
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
port=${MCP_PORT:-8080}
dir=${MCP_DIR:-$root/.build/quickstart-$port}
url=http://127.0.0.1:$port
index='{"kind":"index","name":"products","reason":"nightly import"}'
tools='{"kind":"tools"}'
client=
started=


say() {
    echo "events: $*" >&2
}


die() {
    say "$*"
    exit 1
}


end() {
    [ -z "$client" ] || kill "$client" 2>/dev/null || true
    [ -z "$started" ] || "$root/conf/quickstart.sh" stop
}


# line WORD N: waits until the client, after its first N lines, prints a line
# that begins with WORD, and prints this line

line() {
    local i got

    for i in $(seq 300); do
        got=$(tail -n +$(($2 + 1)) "$dir/events.log" | grep -m 1 "^$1 ") \
            && echo "$got" && return
        kill -0 "$client" 2>/dev/null || break
        sleep 0.1
    done

    cat "$dir/events.log" >&2
    die "the client printed no \"$1\""
}


trap end EXIT

command -v node > /dev/null || die "needs Node.js"
command -v curl > /dev/null || die "needs curl"
mkdir -p "$dir"

if ! curl -sf -o /dev/null "$url/mcp-status"; then
    started=1
    "$root/conf/quickstart.sh" > /dev/null
fi

sdk=$root/t/npm/node_modules

if [ ! -d "$sdk/@modelcontextprotocol/sdk" ]; then
    command -v npm > /dev/null || die "needs npm, to install the SDK"
    say "npm install @modelcontextprotocol/sdk"
    npm install --loglevel=error --no-audit --no-fund --prefix "$dir" \
        @modelcontextprotocol/sdk >&2 \
        || die "npm could not install @modelcontextprotocol/sdk, see above"
    sdk=
fi

[ -z "$sdk" ] || [ -e "$dir/node_modules" ] || ln -s "$sdk" "$dir/node_modules"

cp "$root/conf/events.mjs" "$dir/events.mjs"

# the file has to exist before it is read; the client opens it later
: > "$dir/events.log"
node "$dir/events.mjs" "$url/mcp" > "$dir/events.log" 2>&1 &
client=$!

stream=$(line worker 0)
echo "the client's stream is on        $stream"

# each curl is a new connection, which either worker may accept

for i in $(seq 300); do
    seen=$(wc -l < "$dir/events.log")
    answer=$(curl -sf -D "$dir/events.head" "$url/mcp-publish" -d "$index")
    taker=worker\ $(tr -d '\r' < "$dir/events.head" \
                    | sed -n 's/^X-Worker: //p')
    got=$(line event "$seen")

    if [ "$taker" != "$stream" ]; then
        echo "curl published                   $index"
        echo "through                          $taker"
        echo "nginx answered                   $answer"
        echo "the client received              ${got#event }"
        break
    fi
done

[ "$taker" != "$stream" ] \
    || die "the worker with the stream took all of $i events"

seen=$(wc -l < "$dir/events.log")
curl -sf -o /dev/null "$url/mcp-publish" -d "$tools"
got=$(line event "$seen")
list=$(line tools "$seen")
echo "curl published                   $tools"
echo "the client received              ${got#event }"
echo "and asked for the tools again    ${list#tools }"
