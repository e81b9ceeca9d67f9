#!/usr/bin/env bash
# Installs the pinned Python packages of the tests into the cache, once, and
# prints the interpreter that has them as the last line. The folder is named
# after what is in it, and renamed into place when it is whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cache=${ASSAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/assay}
python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "python: $python with version 3.11 or newer and its venv module is needed; set PYTHON to another one" >&2
    exit 3
fi
key=$( (cat requirements.txt sources.txt; "$python" -c 'import sys; print(sys.version, sys.base_prefix)') | sha256sum | cut -c1-16)
dir=$cache/python/$key

if [[ ! -d $dir ]]; then
    mkdir -p "$cache/python"
    tmp=$(mktemp -d "$cache/python/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    "$python" -m venv "$tmp"
    # Wheels: nothing is built, and no script of a package runs.
    "$tmp/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: --require-hashes -r requirements.txt >&2
    # One comes as source only. What builds it is pinned too, by the line above.
    "$tmp/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --require-hashes -r sources.txt >&2
    chmod 755 "$tmp"
    # Somebody else may have been faster: theirs is as good.
    mv -T "$tmp" "$dir" 2>/dev/null || [[ -d $dir ]]
fi
echo "$dir/bin/python"
