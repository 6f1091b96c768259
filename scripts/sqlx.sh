#!/usr/bin/env bash
# Renews .sqlx, the checked form of every SQL statement, after a change of SQL or of the schema:
#   scripts/sqlx.sh           writes .sqlx
#   scripts/sqlx.sh --check   fails if .sqlx is not what the sources and migrations say
# A private Postgres is started, migrated with psql, and asked by sqlx's macros during a build;
# no sqlx-cli is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${DOCMILL_SQLX_INSIDE:-}" ]; then
    unset DOCMILL_TEST_DATABASE_URL
    DOCMILL_SQLX_INSIDE=1 exec scripts/with_postgres.sh "$0" "$@"
fi

url="$DOCMILL_TEST_DATABASE_URL"
psql=$(command -v psql || ls -d /usr/lib/postgresql/*/bin/psql /opt/homebrew/opt/*/bin/psql | tail -1)
"$psql" -q -v ON_ERROR_STOP=1 "$url" -c 'CREATE SCHEMA docmill' \
    -c 'CREATE TABLE docmill._sqlx_migrations (version bigint, success boolean)'
for file in migrations/*.sql; do
    whole=(--single-transaction)
    [ "$(head -1 "$file")" = "-- no-transaction" ] && whole=()
    PGOPTIONS="-c search_path=docmill -c client_min_messages=warning" \
        "$psql" -q -v ON_ERROR_STOP=1 ${whole[@]+"${whole[@]}"} "$url" -f "$file"
done

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
# The macros run only when their crate is compiled, and write a file per query. All libraries are built,
# so that the crate has the features that the tests have.
touch crates/ledger/src/lib.rs
SQLX_OFFLINE=false SQLX_OFFLINE_DIR="$fresh" \
    DATABASE_URL="$url?options=-csearch_path%3Ddocmill" cargo build --quiet --lib
touch crates/ledger/src/lib.rs
# A line each: nobody reads them.
for file in "$fresh"/query-*.json; do
    python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), separators=(",", ":")))' <"$file" >"$fresh/line"
    mv "$fresh/line" "$file"
done

if [ "${1:-}" = --check ]; then
    if ! diff -r .sqlx "$fresh"; then
        echo ".sqlx is not current: run scripts/sqlx.sh and commit what changed" >&2
        exit 1
    fi
    echo ".sqlx is current: $(ls "$fresh" | wc -l) statements"
else
    mkdir -p .sqlx
    rm -f .sqlx/query-*.json
    cp "$fresh"/query-*.json .sqlx/
    echo ".sqlx written: $(ls .sqlx | wc -l) statements"
fi
