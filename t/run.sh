#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Installs what the tests need, builds the module and runs all tests, or those
# given:
#
#   t/run.sh [prove's options] [t/name.t ...]

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

t/setup.sh
t/build.sh

export MCP_REQUIRE_NPM=1

# the longest first, so that none of them is what all wait for at the end
long="t/sanitize.t t/conformance.t"
given=

for a in "$@"; do
    case $a in
    *.t|t|t/*) given=1 ;;
    esac
done

if [ -z "$given" ]; then
    # shellcheck disable=SC2046,SC2086
    set -- "$@" $long $(ls t/*.t | grep -vxF "$(printf '%s\n' $long)")
fi

exec prove --timer -j2 "$@"
