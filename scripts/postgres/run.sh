#!/usr/bin/env bash
# Runs a command with a PostgreSQL server of its own:
#
#   run.sh COMMAND [ARGUMENTS]
#
# The server has a cluster in a temporary folder, listens on a socket there and
# nowhere else, and is gone when the command ends. The command finds its URL, with
# the password, in ASSAY_POSTGRES.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$("$here/install.sh" | tail -n 1)

dir=$(mktemp -d "${TMPDIR:-/tmp}/assay-pg.XXXXXX")
as=()
if [[ $(id -u) -eq 0 ]]; then # PostgreSQL refuses to run as root
    as=(runuser -u postgres --)
    chown postgres "$dir"
fi
password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
stop() {
    (cd / && "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate -s stop) >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap stop EXIT
start() {
    cd /
    "${as[@]}" sh -c 'umask 077 && printf "%s\n" "$2" >"$1/pw"' sh "$dir" "$password"
    "${as[@]}" "$bin/initdb" -D "$dir/data" -U assay -A scram-sha-256 --pwfile "$dir/pw" -E UTF8 --locale C.UTF-8 --no-sync
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -w -t 60 -l "$dir/log" \
        -o "-k $dir -c listen_addresses='' -c fsync=off -c max_connections=60" start
}
chmod 755 "$dir"
if ! out=$( (start) 2>&1); then
    printf 'postgres: the server did not start:\n%s\n' "$out" >&2
    exit 1
fi
export ASSAY_POSTGRES="postgres://assay:$password@/postgres?host=$dir"
"$@"
