# Copyright (C) 2026 The ngx_http_mcp_module authors

# Sourced: sets $out to the folder for builds and $incs to the include options
# for nginx's core headers.  Needs $top.

out=${MCP_BUILD:-$top/.build/unit}
mkdir -p "$out"
out=$(cd "$out" && pwd)

nginx=${NGINX_SRC:-/usr/share/nginx/src}

if [ ! -f "$nginx/src/core/ngx_core.h" ]; then
    echo "no nginx headers in $nginx: apt-get install nginx-dev," \
         "or set NGINX_SRC" >&2
    exit 1
fi

objs=$nginx/objs

if [ ! -f "$objs/ngx_auto_config.h" ]; then
    objs=$out/nginx

    # tests that run at the same time configure once
    exec 9> "$out/lock"
    flock 9

    if [ "$nginx" != "$(cat "$objs/source" 2>/dev/null)" ]; then
        rm -rf "$objs"
        mkdir -p "$objs"

        (
            cd "$nginx"
            configure=./configure
            [ -x $configure ] || configure=auto/configure
            $configure --builddir="$objs" --without-pcre --without-http
        ) > "$objs/configure.log" 2>&1 || {
            cat "$objs/configure.log" >&2
            exit 1
        }

        echo "$nginx" > "$objs/source"
    fi

    exec 9>&-
fi

incs="-I$top/src/protocol -I$nginx/src/core -I$nginx/src/event
      -I$nginx/src/os/unix -I$objs"
