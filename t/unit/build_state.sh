#!/bin/sh

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Builds a test of the state layer as a plain program and prints its path:
#
#   build_state.sh functions|leases|step|crash|bench [sanitize]
#
#   NGINX_SRC   an nginx source folder (default: that of Debian's nginx-dev);
#               where it has sources, nginx's own slab and mutex are linked
#   MCP_BUILD   where to build (default: .build/unit)
#   CC, CFLAGS  the compiler (default: gcc) and further options

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

. "$here/headers.sh"

what=$1
program=$out/state_$what
flags="-g -O2 -Wall -Wextra -Wno-unused-parameter -Wpointer-arith -Werror"

if [ "${2:-}" = sanitize ]; then
    program=$program.sanitize
    flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined
           -fno-sanitize-recover=undefined -fno-sanitize=pointer-overflow
           -Wall -Wextra -Wno-unused-parameter -Wpointer-arith -Werror"
fi

core=
shadow=

# what these do is compared with a shadow of the zone; bench measures holds

case $what in
    functions|lists|leases)
        shadow="$here/state/shadow.c -Wl,--wrap=ngx_mcp_zone_lock
                -Wl,--wrap=ngx_mcp_zone_unlock
                -Wl,--wrap=ngx_mcp_journal_commit_locked"
        ;;
    bench)
        shadow="$here/state/bench_hold.c -Wl,--wrap=ngx_mcp_zone_lock
                -Wl,--wrap=ngx_mcp_zone_unlock
                -Wl,--wrap=ngx_mcp_journal_commit_locked"
        ;;
esac

if [ -f "$nginx/src/core/ngx_slab.c" ]; then
    core="-DENV_NGINX_SLAB=1 $nginx/src/core/ngx_slab.c
          $nginx/src/core/ngx_shmtx.c"
fi

newer=$(find "$here/state" "$here/build_state.sh" "$top/src/zone" \
             "$top/src/state" -newer "$program" 2>/dev/null || echo y)

if [ ! -x "$program" ] || [ -n "$newer" ]; then
    # shellcheck disable=SC2086
    ${CC:-gcc} $flags ${CFLAGS:-} $incs -I"$top/src/zone" -I"$top/src/state" \
        -o "$program.$$" "$here/state/$what.c" "$here/state/env.c" \
        "$here/state/check.c" "$top"/src/zone/*.c "$top"/src/state/*.c \
        "$top/src/protocol/ngx_mcp_id.c" \
        $shadow $core -lpthread
    mv "$program.$$" "$program"
fi

echo "$program"
