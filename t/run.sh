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

given=
for a in "$@"; do
    case $a in
    *.t|t|t/*) given=1 ;;
    esac
done

if [ -z "$given" ]; then
    set -- "$@" t
fi

exec prove --timer -j2 "$@"
