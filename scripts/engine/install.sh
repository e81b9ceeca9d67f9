#!/usr/bin/env bash
# Installs the pinned llama.cpp engine of the tests into the cache, once, and
# prints its folder as the last line. With --where it only prints the folder.
# The folder is named after the lock file: another lock gives another folder,
# and one that exists is whole, because it is renamed into place at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${ASSAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay}
lock=$(cat package.json package-lock.json .npmrc | sha256sum | cut -c1-16)
dir=$cache/engine/$lock

if [[ ${1-} != --where && ! -d $dir ]]; then
    if [[ $(uname -sm) != "Linux x86_64" ]]; then
        echo "engine: the pinned engine runs on Linux on x86-64 only, and this is $(uname -sm)" >&2
        exit 3
    fi
    if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null || ! command -v npm >/dev/null; then
        echo "engine: Node.js 20 or newer and npm are needed to install the engine" >&2
        exit 3
    fi
    mkdir -p "$cache/engine"
    tmp=$(mktemp -d "$cache/engine/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    cp package.json package-lock.json .npmrc "$tmp/"
    # No script of a package runs, and the builds for other machines stay away.
    (cd "$tmp" && npm ci --omit=optional --ignore-scripts --prefer-offline --no-progress >&2)
    chmod 755 "$tmp"
    # Somebody else may have been faster: theirs is as good.
    mv -T "$tmp" "$dir" 2>/dev/null || [[ -d $dir ]]
fi
echo "$dir"
