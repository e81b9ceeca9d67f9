#!/usr/bin/env bash
# Runs every fuzz function of the module for FUZZTIME (20s), one at a time with
# two workers, and fails at the first that finds something or when there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${FUZZTIME:-20s}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
fuzz() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x -parallel 2 "$1" 2>&1 | tee "$log"; }

n=0
for package in $(go list ./...); do
    # Only what go test lists is there: other build constraints do not count.
    listed=$(go test -list '^Fuzz' "$package")
    for name in $(grep '^Fuzz' <<<"$listed" || true); do
        echo "== $package $name for $time"
        if ! fuzz "$package" "$name"; then
            # The fuzzer may report its own deadline as a failure when time is up
            # while it still shrinks an input (go.dev/issue/75804). A real find names its file.
            if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
                echo "== $package $name once more: the deadline of the fuzzer itself is no find"
                fuzz "$package" "$name"
            else
                exit 1
            fi
        fi
        n=$((n + 1))
    done
done
if (( n == 0 )); then
    echo "fuzz: there is no fuzz function" >&2
    exit 1
fi
echo "fuzz: $n functions, $time each, no find"
