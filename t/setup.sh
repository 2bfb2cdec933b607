#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Installs what the tests need and is missing: Debian packages (as root) and
# the npm packages of t/npm.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)

packages="gcc make clang perl nginx nginx-dev libcjson-dev
          libcpanel-json-xs-perl libpcre2-dev libssl-dev zlib1g-dev
          ca-certificates curl openssl"

# the sanitizers of clang: Debian 12 has no package without their version
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    packages="$packages libclang-rt-14-dev"
else
    packages="$packages libclang-rt-dev"
fi

# any npm will do, not only Debian's
command -v npm > /dev/null || packages="$packages nodejs npm"

missing=
for p in $packages; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null) in
    ii*) ;;
    *) missing="$missing $p" ;;
    esac
done

if [ -n "$missing" ]; then
    echo "setup: installing$missing" >&2

    if [ "$(id -u)" != 0 ]; then
        echo "setup: run as root: apt-get install$missing" >&2
        exit 1
    fi

    # the service of the package is not wanted, only its files
    policy=/usr/sbin/policy-rc.d
    made=
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' > $policy
        chmod 755 $policy
        made=$policy
    fi
    trap '[ -z "$made" ] || rm -f "$made"' EXIT

    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o Acquire::Retries=3 update >&2
    # shellcheck disable=SC2086
    apt-get -qq -y --no-install-recommends -o Acquire::Retries=3 \
        install $missing >&2
fi

cd "$root/t/npm"

if ! cmp -s package-lock.json node_modules/.installed 2>/dev/null; then
    echo "setup: npm ci" >&2
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    cp package-lock.json node_modules/.installed
fi
