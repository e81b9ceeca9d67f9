#!/usr/bin/env bash
# Installs Debian's PostgreSQL for the tests, once, and prints the folder of its
# programs as the last line. A server that is there already is used: any major
# version from 14 to 18. Otherwise version 15 is installed by apt, as root on
# Debian 12; no cluster is made and no server started on the machine.
set -euo pipefail

installed() {
    local major
    for major in 18 17 16 15 14; do
        if [[ -x /usr/lib/postgresql/$major/bin/initdb ]]; then
            echo "/usr/lib/postgresql/$major/bin"
            return 0
        fi
    done
    return 1
}

if ! installed >/dev/null; then
    if ! grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release; then
        echo "postgres: PostgreSQL 14 to 18 is needed below /usr/lib/postgresql, and is installed on Debian 12 only" >&2
        exit 3
    fi
    if [[ $(id -u) -ne 0 ]]; then
        echo "postgres: only root can install it: apt-get install postgresql-15" >&2
        exit 3
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    apt-get install -qq -y --no-install-recommends postgresql-common >&2
    sed -i 's/^#\? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
    apt-get install -qq -y --no-install-recommends 'postgresql-15=15.*' >&2
fi
installed
