#!/bin/sh

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Fuzzes the protocol layer with libFuzzer, ASan and UBSan:
#
#   t/fuzz/run.sh SECONDS [json | sse]
#
# What is found goes to the build folder (see t/unit/build.sh) and ends the
# run with an error.  Needs clang and cJSON.

set -eu

seconds=${1:?"usage: $0 SECONDS [json | sse]"}
targets=${2:-json sse}

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)

. "$here/../unit/headers.sh"

# the empty ngx_str_t has a null pointer, to which 0 is added
flags="-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined
       -fno-sanitize-recover=undefined -fno-sanitize=pointer-overflow
       -Wall -Wextra -Wno-unused-parameter -Werror"

for target in $targets; do
    ${CC:-clang} $flags $incs -I"$here/../unit" -o "$out/fuzz-$target" \
        "$here/$target.c" "$here/../unit/core.c" "$top"/src/protocol/*.c \
        -lcjson

    mkdir -p "$out/corpus-$target"
    echo "fuzz: $target for $seconds s" >&2

    "$out/fuzz-$target" -max_total_time="$seconds" -max_len=2048 -timeout=10 \
        -dict="$here/$target.dict" -artifact_prefix="$out/$target-" \
        -print_final_stats=1 -verbosity=0 \
        "$out/corpus-$target" "$here/seeds/$target"
done
