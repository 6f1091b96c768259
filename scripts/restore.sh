#!/usr/bin/env bash
# Backs a running docmill up, loses its database, restores it and holds the results against those of
# before, as docs/guides/backup.md says. With a private Postgres, the roles of docs/guides/deploy-ecs.md, and
# folders as store and queue. The argument: a docmill; without one it is built. Some seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || cargo build --locked --quiet --bin docmill
docmill=$(realpath "${1:-target/debug/docmill}")
if [ -z "${RESTORE_INSIDE:-}" ]; then
    RESTORE_INSIDE=yes exec scripts/with_postgres.sh "$0" "$docmill"
fi

dir=$(mktemp -d)
worker=
end() {
    [ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null || true
    rm -rf "$dir"
}
trap end EXIT
server="${DOCMILL_TEST_DATABASE_URL%/*}"
place="${server#*@}"
sql() { psql --no-psqlrc --quiet --tuples-only --no-align -v ON_ERROR_STOP=1 "$@"; }
step() { printf '\n== %s\n' "$*"; }
die() {
    echo "restore: $*" >&2
    tail -5 "$dir/worker.log" >&2 || true
    exit 1
}

export DOCMILL__STORE__BACKEND=folder DOCMILL__STORE__PATH="$dir/store"
export DOCMILL__QUEUE__BACKEND=folder DOCMILL__QUEUE__PATH="$dir/queue" DOCMILL__QUEUE__WAIT=1s
export DOCMILL__WORKER__ADDRESS=127.0.0.1:0 DOCMILL__WORKER__DRAIN=30s
export DOCMILL__JANITOR__INTERVAL=1s DOCMILL__JANITOR__QUIET=2s
export DOCMILL__DATABASE__URL="postgres://docmill_production:x@$place/app"
mkdir -p "$dir/store" "$dir/queue"

migrate() { DOCMILL__DATABASE__URL="postgres://docmill_release:x@$place/app" "$docmill" migrate; }
start() {
    "$docmill" worker >>"$dir/worker.log" 2>&1 &
    worker=$!
}
stop() {
    kill -TERM "$worker"
    wait "$worker" || die "the worker ended with $?"
    worker=
}
submit() { "$docmill" submit "$@" >/dev/null; }
results() {
    sql "$server/app" -c "SELECT d.original_name, i.status, md5(i.structured_data::text)
        FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id ORDER BY 1"
}
until_ended() {
    local deadline=$((SECONDS + 120))
    until [ "$(results | grep -c '|completed|')" = "$1" ]; do
        [ $SECONDS -lt $deadline ] || die "not every document ended: $(results)"
        sleep 0.2
    done
}

step "the roles of docs/guides/deploy-ecs.md, and the schema by the migrator's"
sql "$server/postgres" -c 'CREATE DATABASE app'
awk '/^```sql$/ { p = 1; next } /^```/ { p = 0 } p' docs/guides/deploy-ecs.md |
    sed "/^SELECT /d; s/'…'/'x'/" >"$dir/roles.sql"
grep -q 'CREATE ROLE docmill_release' "$dir/roles.sql" || die "docs/guides/deploy-ecs.md has no roles"
sql "$server/app" -f "$dir/roles.sql"
migrate

step "two documents are read; a third waits; backup"
start
submit samples/invoice_en.pdf samples/einvoice_facturx.pdf
until_ended 2
stop
submit samples/rechnung_de.pdf
pg_dump --format=custom --schema=docmill --file="$dir/docmill.dump" "$server/app"

step "the third and a fourth are read; the database is lost"
start
submit samples/einvoice_ubl.xml
until_ended 4
stop
results >"$dir/before"
cat "$dir/before"
sql "$server/postgres" -c 'DROP DATABASE app' -c 'CREATE DATABASE app' \
    -c 'GRANT CREATE ON DATABASE app TO docmill_release'

step "restore: two as they were, one waits and has no message, one is not known"
pg_restore --dbname="$server/app" --no-owner --role=docmill_release "$dir/docmill.dump"
migrate
results
[ "$(results | grep -c '|completed|')" = 2 ] || die "two were completed in the backup"
start
until_ended 3
submit samples/einvoice_ubl.xml
until_ended 4
stop
results >"$dir/after"
diff "$dir/before" "$dir/after" || die "the results differ"
step "every result is as before"
