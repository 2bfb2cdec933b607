#!/usr/bin/env bash

# Copyright (C) 2026 The ngx_http_mcp_module authors
#
# Builds the module, and where needed an nginx for it, into .build/NAME:
#
#   t/build.sh             the module for Debian's nginx (needs nginx-dev)
#   t/build.sh clang       the same by clang
#   t/build.sh sanitize [VERSION]   nginx and the module with ASan and UBSan
#   t/build.sh 1.26        nginx and the module, from Debian's source archive
#   t/build.sh 1.30
#   t/build.sh versions    the module alone, against nginx-dev 1.26 and 1.30
#   t/build.sh source DIR [NAME]   nginx and the module from a source folder
#
# CC=clang makes any of them but "sanitize" use clang.
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
warn="$warn -Wformat-security -Wvla -Werror"
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


case $root in
*[[:space:]]*)
    die "nginx cannot build from a folder with blanks in its name ($root);" \
        "move or clone the project to another"
    ;;
esac


# what is not to be had: no fault of the module, callers tell by the code

unavailable() {
    say "$*"
    exit 77
}


# what configure has looked at: if it changes, it runs again

fingerprint() {
    (
        cd "$root"
        echo "$root" "$@"
        cat config t/build.sh
        find src -name '*.[ch]' | LC_ALL=C sort
    ) | sha256sum
}


# private_apt SUITE KIND: sets apt_opts for a suite beside the system's own; its
# lists stay in .build

private_apt() {
    local suite=$1 kind=$2 apt=$out/apt/$1-$2 uri
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg

    uri=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' \
              /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null \
          | head -n 1 | tr -d ' ' || true)
    uri=${uri:-http://deb.debian.org/debian}

    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "$kind [signed-by=$keys] ${uri%/} $suite main" > "$apt/sources.list"

    apt_opts=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list"
              -o Dir::Etc::sourceparts=/dev/null
              -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
              -o Dir::State::status=/dev/null -o Acquire::Languages=none
              -o Acquire::Retries=3 -o APT::Sandbox::User=root)

    apt-get "${apt_opts[@]}" update >&2 \
        || unavailable "no package lists of $suite"
}


# the suite of Debian that has this version of nginx

suite_of() {
    case $1 in
    1.22) echo bookworm ;;
    1.26) echo trixie ;;
    1.30) echo sid ;;
    *) die "no suite of Debian is known to have nginx $1" ;;
    esac
}


# fetched VERSION source|headers: the folder with nginx's own source, or with
# what Debian's nginx-dev of that version has

fetched() {
    local version=$1 what=$2 dir=$out/src/$1-$2 suite apt_opts

    if [ ! -d "$dir" ]; then
        suite=$(suite_of "$version")
        say "fetching nginx $version ($what, from $suite)"
        rm -rf "$dir.new"
        mkdir -p "$dir.new/unpacked"
        cd "$dir.new"

        if [ "$what" = source ]; then
            private_apt "$suite" deb-src
            apt-get "${apt_opts[@]}" --tar-only source nginx >&2 \
                || unavailable "no source of nginx $version in $suite"
            tar -xf nginx_"$version".*.orig.tar.* -C unpacked \
                --strip-components=1

        else
            private_apt "$suite" deb
            apt-get "${apt_opts[@]}" download nginx-dev >&2 \
                || unavailable "no nginx-dev $version in $suite"
            dpkg-deb -x nginx-dev_"$version".*.deb unpacked
        fi

        cd "$root"
        mv "$dir.new/unpacked" "$dir"
        rm -rf "$dir.new" "$out/apt"
    fi

    if [ "$what" = source ]; then
        echo "$dir"
    else
        echo "$dir/usr/share/nginx/src"
    fi
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


# headers NAME CC FOLDER: the module alone, by what nginx-dev has

headers() {
    local name=$1 cc=$2 src=$3
    local NGX_CONF_FLAGS

    [ -f "$src/conf_flags" ] \
        || die "nginx-dev is missing: apt-get install nginx-dev"
    . "$src/conf_flags"

    build "$name" "$src" modules "$cc" \
        "$base -fstack-protector-strong -D_FORTIFY_SOURCE=2" \
        "-Wl,-z,relro -Wl,-z,now" "${NGX_CONF_FLAGS[@]}"
}


# whole NAME FOLDER: nginx and the module

whole() {
    build "$1" "$2" "binary modules" "${CC:-gcc}" "-g -O2 -fPIC" "" $parts
}


case ${1:-debian} in

debian)
    headers debian "${CC:-gcc}" /usr/share/nginx/src
    ;;

clang)
    headers clang clang /usr/share/nginx/src
    ;;

versions)
    for v in 1.26 1.30; do
        src=$(fetched $v headers)
        headers "module-$v" "${CC:-gcc}" "$src"
    done
    ;;

sanitize)
    version=${2:-1.22}
    src=$(fetched "$version" source)
    san="-fsanitize=address,undefined -fno-omit-frame-pointer"
    san="$san -fno-sanitize-recover=undefined"
    # -z nodelete: reports made at exit still know the module's symbols;
    # nginx itself passes null pointers with length 0
    san="$san -fno-sanitize=nonnull-attribute,pointer-overflow,shift,alignment"
    build "sanitize${2:+-$version}" "$src" "binary modules" gcc \
        "-g -O1 -fPIC $san -DNGX_DEBUG_PALLOC=1" "$san -Wl,-z,nodelete" $parts
    ;;

source)
    [ $# -ge 2 ] || die "which folder?"
    src=$(cd "$2" && pwd)
    [ -e "$src/configure" ] || ln -s auto/configure "$src/configure"
    whole "${3:-source}" "$src"
    ;;

1.*)
    src=$(fetched "$1" source)
    whole "$1" "$src"
    ;;

*)
    sed -n '3,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 1
    ;;
esac
