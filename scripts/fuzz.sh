#!/usr/bin/env bash
# Runs every fuzz function of the module for FUZZTIME (1s), two at a time with
# a worker each, and fails when one finds something or when there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export FUZZTIME=${FUZZTIME:-1s}

# fuzz PACKAGE FUNCTION prints what go test says, in one piece.
fuzz() {
    local log try
    log=$(mktemp)
    for try in 1 2; do
        if go test -run '^$' -fuzz "^$2\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x -parallel 1 "$1" >"$log" 2>&1; then
            echo "ok $1 $2: $(grep -o 'execs: [0-9]*' "$log" | tail -n 1) in $FUZZTIME"
            rm -f "$log"
            return 0
        fi
        # The fuzzer may report its own deadline as a failure when time is up
        # while it still shrinks an input (go.dev/issue/75804). A real find names its file.
        if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
            break
        fi
        echo "again $1 $2: the deadline of the fuzzer itself is no find"
    done
    echo "FAIL $1 $2"
    cat "$log"
    rm -f "$log"
    return 1
}
export -f fuzz

list=$(mktemp)
trap 'rm -f "$list"' EXIT
for package in $(go list ./...); do
    # Only what go test lists is there: other build constraints do not count.
    listed=$(go test -list '^Fuzz' "$package")
    for name in $(grep '^Fuzz' <<<"$listed" || true); do
        echo "$package $name" >>"$list"
    done
done
n=$(wc -l <"$list")
if ((n == 0)); then
    echo "fuzz: there is no fuzz function" >&2
    exit 1
fi
xargs -P 2 -L 1 bash -c 'fuzz "$1" "$2"' fuzz <"$list"
echo "fuzz: $n functions, $FUZZTIME each, no find"
