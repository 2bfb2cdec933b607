#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Builds the module, and where needed an nginx for it, into .build/NAME:
#
#   t/build.sh             the module for Debian's nginx (needs nginx-dev)
#   t/build.sh clang       the same by clang
#   t/build.sh sanitize    nginx and the module with ASan and UBSan
#   t/build.sh 1.26        nginx and the module, from Debian's source archive
#   t/build.sh 1.30
#   t/build.sh versions    the module alone against 1.26 and 1.30
#   t/build.sh source DIR [NAME]   nginx and the module from a source folder
#
# Then: MCP_NGINX=.build/NAME/nginx \
#       MCP_MODULE=$PWD/.build/NAME/ngx_http_mcp_module.so prove t
#
# A second run compiles only what changed.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/.build
so=ngx_http_mcp_module.so
jobs=$(nproc)

warn="-Wall -Wextra -Wno-unused-parameter -Wpointer-arith"
warn="$warn -Wwrite-strings -Wformat=2 -Wvla -Werror"
base="-g -O2 -fPIC $warn"

# what a distribution's nginx has, as far as the tests use it
parts="--with-compat --with-debug --with-threads --with-http_ssl_module
       --with-http_v2_module --with-http_auth_request_module
       --with-http_realip_module --with-http_stub_status_module
       --with-http_addition_module --with-http_gunzip_module
       --with-http_gzip_static_module --with-http_slice_module
       --with-http_sub_module --with-http_secure_link_module"


say() {
    echo "build: $*" >&2
}


die() {
    say "$*"
    exit 1
}


# what configure has looked at: if it changes, it runs again

fingerprint() {
    (
        cd "$root"
        echo "$@"
        cat config t/build.sh
        find src -name '*.[ch]' | LC_ALL=C sort
    ) | sha256sum
}


# unpacked DEBIAN-SUITE VERSION-PREFIX: the folder of nginx's own source (without
# Debian's patches), fetched with apt from a suite whose lists stay in .build

unpacked() {
    local suite=$1 version=$2 dir=$out/src/$2 apt=$out/apt uri keys

    if [ -f "$dir/src/core/nginx.h" ]; then
        echo "$dir"
        return
    fi

    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    uri=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' \
              /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null \
          | head -n 1 | tr -d ' ' || true)
    uri=${uri:-http://deb.debian.org/debian}
    uri=${uri%/}

    mkdir -p "$apt/$suite/lists/partial" "$apt/$suite/cache/archives/partial"
    echo "deb-src [signed-by=$keys] $uri $suite main" \
        > "$apt/$suite/sources.list"

    set -- -qq -o "Dir::Etc::sourcelist=$apt/$suite/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$apt/$suite/lists" \
        -o "Dir::Cache=$apt/$suite/cache" \
        -o Acquire::Retries=3 -o APT::Sandbox::User=root

    say "fetching the source of nginx $version ($suite)"
    apt-get "$@" update >&2

    rm -rf "$dir" "$dir.new"
    mkdir -p "$dir.new/unpacked"
    (
        cd "$dir.new"
        apt-get "$@" --tar-only source nginx >&2
        tar -xf nginx_*.orig.tar.* -C unpacked --strip-components=1
    ) || die "no source of nginx in $suite"
    mv "$dir.new/unpacked" "$dir"
    rm -rf "$dir.new" "$apt/$suite/lists"

    case $(sed -n 's/^#define NGINX_VERSION *"\(.*\)"/\1/p' \
               "$dir/src/core/nginx.h") in
    "$version"*) ;;
    *) die "$suite has another nginx than $version" ;;
    esac

    echo "$dir"
}


# build NAME SOURCE-FOLDER MAKE-TARGETS CC CC-OPT LD-OPT [CONFIGURE-ARGS]

build() {
    local name=$1 src=$2 targets=$3 cc=$4 ccopt=$5 ldopt=$6
    shift 6

    local dir=$out/$name objs=$out/$name/objs print

    mkdir -p "$dir"
    exec 9> "$dir/lock"
    flock 9

    print=$(fingerprint "$src" "$cc" "$ccopt" "$ldopt" "$@")

    if [ "$print" != "$(cat "$dir/fingerprint" 2>/dev/null)" ]; then
        rm -rf "$objs" "$dir/fingerprint"

        if ! (cd "$src" && ./configure --builddir="$objs" --with-cc="$cc" \
              --with-cc-opt="$ccopt" --with-ld-opt="$ldopt" \
              "$@" --add-dynamic-module="$root") \
              > "$dir/configure.log" 2>&1
        then
            cat "$dir/configure.log" >&2
            [ ! -f "$objs/autoconf.err" ] || tail -n 20 "$objs/autoconf.err" >&2
            die "configure of $name failed"
        fi

        echo "$print" > "$dir/fingerprint"
    fi

    if ! (cd "$src" && make -s -j"$jobs" -f "$objs/Makefile" $targets) \
         > "$dir/make.log" 2>&1
    then
        grep -E -A 8 'error|warning' "$dir/make.log" | head -n 60 >&2 \
            || tail -n 40 "$dir/make.log" >&2
        die "$name does not compile, see $dir/make.log"
    fi

    if grep -q 'warning:' "$dir/make.log"; then
        cat "$dir/make.log" >&2
    fi

    [ ! -f "$objs/nginx" ] || cmp -s "$objs/nginx" "$dir/nginx" \
        || cp "$objs/nginx" "$dir/nginx"
    cmp -s "$objs/$so" "$dir/$so" || { cp "$objs/$so" "$dir/$so.new" \
                                       && mv "$dir/$so.new" "$dir/$so"; }
    exec 9>&-
    say "$dir/$so"
}


debian() {
    local name=$1 cc=$2 src=/usr/share/nginx/src
    local NGX_CONF_FLAGS

    [ -f $src/conf_flags ] || die "nginx-dev is missing: apt-get install nginx-dev"
    . $src/conf_flags

    build "$name" $src modules "$cc" \
        "$base -fstack-protector-strong -D_FORTIFY_SOURCE=2" \
        "-Wl,-z,relro -Wl,-z,now" "${NGX_CONF_FLAGS[@]}"
}


# the suite of Debian that has this version

suite_of() {
    case $1 in
    1.22) echo bookworm ;;
    1.26) echo trixie ;;
    1.30) echo sid ;;
    *) die "no suite of Debian is known to have nginx $1" ;;
    esac
}


# nginx's own sources are not what -Wextra is for, they get nginx's flags

version() {
    local name=$1 targets=$2 src

    src=$(unpacked "$(suite_of "${name#module-}")" "${name#module-}")
    build "$name" "$src" "$targets" gcc "-g -O2 -fPIC" "" $parts
}


case ${1:-debian} in

debian)
    debian debian "${CC:-gcc}"
    ;;

clang)
    debian clang clang
    ;;

sanitize)
    src=$(unpacked bookworm 1.22)
    san="-fsanitize=address,undefined -fno-omit-frame-pointer"
    san="$san -fno-sanitize-recover=undefined"
    # nginx itself passes null pointers with length 0
    san="$san -fno-sanitize=nonnull-attribute,pointer-overflow,shift,alignment"
    build sanitize "$src" "binary modules" gcc \
        "-g -O1 -fPIC $san -DNGX_DEBUG_PALLOC=1" "$san" $parts
    ;;

versions)
    version module-1.26 modules
    version module-1.30 modules
    ;;

source)
    [ $# -ge 2 ] || die "which folder?"
    src=$(cd "$2" && pwd)
    [ ! -x "$src/auto/configure" ] || [ -e "$src/configure" ] \
        || ln -s auto/configure "$src/configure"
    build "${3:-source}" "$src" "binary modules" gcc "-g -O2 -fPIC" "" $parts
    ;;

1.*)
    version "$1" "binary modules"
    ;;

*)
    sed -n '3,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 1
    ;;
esac
