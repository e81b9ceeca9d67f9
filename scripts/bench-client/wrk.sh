#!/usr/bin/env bash
# Unpacks the pinned wrk of Debian into the cache, once, without root, and prints
# the path of a wrk that runs. The folder is named after the pins, and one that
# exists is whole, because it is renamed into place at the end.
set -euo pipefail

pins="1f0ea919d09d47420993aca0102ec0aed46338b2bf7e072a4b4566c5616f09d2  libluajit-5.1-2 2.1.0~beta3+git20220320+dfsg-4.1+deb12u1
b0206dc74df85365a248ddac2433c0ee3f210579fc5ed83758e73354bb1bbefb  wrk 4.1.0-3+b2"

cache=${ASSAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay}
dir=$cache/wrk/$(sha256sum <<<"$pins" | cut -c1-16)

if [[ ! -d $dir ]]; then
    if [[ $(dpkg --print-architecture 2>/dev/null) != amd64 ]]; then
        echo "wrk: the pinned packages are Debian's for amd64; give another wrk by bench-client -wrk PATH" >&2
        exit 3
    fi
    mkdir -p "$cache/wrk"
    tmp=$(mktemp -d "$cache/wrk/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    cd "$tmp"
    while read -r sum name version; do
        if ! apt-get -q download "$name=$version" >&2; then
            echo "wrk: no $name $version; apt-get update, or give another wrk by bench-client -wrk PATH" >&2
            exit 3
        fi
        sha256sum --check --quiet <<<"$sum  $(echo "$name"_*.deb)" >&2
        dpkg -x "$name"_*.deb .
        rm "$name"_*.deb
    done <<<"$pins"
    cat >wrk <<'EOF'
#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH=$here/usr/lib/x86_64-linux-gnu exec "$here/usr/bin/wrk" "$@"
EOF
    chmod 755 wrk .
    # Somebody else may have been faster: theirs is as good.
    mv -T "$tmp" "$dir" 2>/dev/null || [[ -d $dir ]]
fi
echo "$dir/wrk"
