#!/usr/bin/env bash
# Runs the tests that need something outside Go, which they get by an
# environment variable and without which they skip:
#
#   gated.sh VARIABLE [GO TEST FLAGS]
#
# These are the tests in the files that name the variable. The variable must be
# set, and at least one of the tests must pass: a skip is not a proof.
set -euo pipefail
variable=$1
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ -z ${!variable-} ]]; then
    echo "gated: $variable is not set" >&2
    exit 2
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

files=$(go list -f '{{range .TestGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}' ./... |
    sed '/^$/d' | xargs grep -l "\"$variable\"" || true)
for dir in $(xargs -r -n1 dirname <<<"$files" | sort -u); do
    names=$(grep -h "^$dir/[^/]*\$" <<<"$files" | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd'|')
    # A file without tests of its own is a helper of the whole package.
    go test -count=1 -v -run "^(${names:-.*})\$" "$@" "$dir" 2>&1 | sed -u '/^=== \(RUN\|PAUSE\|CONT\|NAME\)/d' | tee -a "$log"
done
if ! grep -q '^--- PASS' "$log"; then
    echo "gated: no test that needs $variable passed" >&2
    exit 1
fi
