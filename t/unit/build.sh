#!/bin/sh

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Builds the unit tests of the protocol layer, which need no nginx process,
# with ASan and UBSan, and prints the path of the program.
#
#   NGINX_SRC   an nginx source folder (default: that of Debian's nginx-dev)
#   MCP_BUILD   where to build (default: .build/unit)
#   CC, CFLAGS  the compiler (default: gcc) and further options

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

. "$here/headers.sh"

program=$out/protocol

# the empty ngx_str_t has a null pointer, to which 0 is added
flags="-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined
       -fno-sanitize-recover=undefined -fno-sanitize=pointer-overflow
       -Wall -Wextra -Wno-unused-parameter -Wpointer-arith -Werror"

newer=$(find "$here" "$top/src/protocol" -newer "$program" 2>/dev/null \
        || echo y)

if [ ! -x "$program" ] || [ -n "$newer" ]; then
    ${CC:-gcc} $flags ${CFLAGS:-} $incs -o "$program.$$" \
        "$here"/*.c "$top"/src/protocol/*.c
    mv "$program.$$" "$program"
fi

echo "$program"
