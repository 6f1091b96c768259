#!/usr/bin/env bash
# Runs a command with a private Postgres of its own, gone afterwards:
#   scripts/with_postgres.sh cargo nextest run
# The command finds the server's address in DOCMILL_TEST_DATABASE_URL. Without durability: the
# cluster is for tests and for checking SQL only; with DURABLE=yes, for figures, a commit waits for the
# disk; with STATEMENTS=yes the server counts what statements take (pg_stat_statements); with IN_MEMORY=yes
# it lies in memory where four GiB of that are to be had as files. If the variable is set already, the
# command is run as it is.
set -euo pipefail

if [ -n "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    exec "$@"
fi

find_bin() {
    local found
    if [ -n "${PG_BIN:-}" ]; then echo "$PG_BIN"; return; fi
    if command -v initdb >/dev/null && command -v pg_ctl >/dev/null; then
        dirname "$(command -v initdb)"; return
    fi
    found=$(ls -d /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin \
        /usr/local/opt/postgresql*/bin 2>/dev/null | sort -V | tail -1 || true)
    if [ -z "$found" ]; then
        echo "Postgres is not installed: apt-get install postgresql, or brew install postgresql@17" >&2
        exit 1
    fi
    echo "$found"
}

bin=$(find_bin)
# A database of a test is some hundred files made and removed again, and where ext4 looks for a number for
# a new file it steps over all that were removed in the last seconds: a fifth of the time of all tests.
temporary=${TMPDIR:-/tmp}
room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1 || true)
if [ -n "${IN_MEMORY:-}" ] && [ "${room:-0}" -ge 4194304 ]; then temporary=/dev/shm; fi
dir=$(mktemp -d "$temporary/docmill-postgres.XXXXXX")
# Postgres refuses to run as root; the user that its package made takes over.
as=()
if [ "$(id -u)" = 0 ]; then
    chown postgres "$dir"
    as=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi
fast="-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c autovacuum_naptime=5s"
[ -z "${DURABLE:-}" ] || fast=
[ -z "${STATEMENTS:-}" ] || fast="$fast -c shared_preload_libraries=pg_stat_statements"
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

cd "$dir"
${as[@]+"${as[@]}"} "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --no-locale --no-sync >/dev/null
port=
for _ in 1 2 3 4 5; do
    try=$(free_port)
    if ${as[@]+"${as[@]}"} "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -s start -o "-p $try \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=400 $fast" \
        >/dev/null 2>&1
    then port=$try; break; fi
done
stop() {
    ${as[@]+"${as[@]}"} "$bin/pg_ctl" -D "$dir/data" -m immediate -s stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap stop EXIT
if [ -z "$port" ]; then
    cat "$dir/log" >&2
    echo "Postgres did not start" >&2
    exit 1
fi
cd "$OLDPWD"
export DOCMILL_TEST_DATABASE_URL="postgres://postgres@127.0.0.1:$port/postgres"
"$@"
