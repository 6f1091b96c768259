#!/usr/bin/env bash
# A rolling deploy under load: an older docmill works, the schema is migrated under it, newer
# workers come, older ones are told to go. Nothing may be lost and no attempt may be spent.
#
#   scripts/rolling_deploy.sh
#   scripts/rolling_deploy.sh OLD_DOCMILL NEW_DOCMILL FOLDER_OF_DOCUMENTS [COPIES]
#
# Both are paths of built programs, the older one of the commit before the newest migration. Without
# arguments they are built here, and the documents are those of samples/. Every document of the folder
# is handed in COPIES times (default 20), each time for another tenant.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

# Builds what is checked out, and the commit before the newest migration came, from Git's history.
build_both() {
    local newest added source=target/rolling/source
    if [ "$(printf '%s\n' migrations/*.sql | wc -l)" = 1 ]; then
        echo "there is only the baseline: no older schema to roll from"
        exit 0
    fi
    newest=$(printf '%s\n' migrations/*.sql | tail -1)
    added=$(git log --diff-filter=A --format=%H -1 -- "$newest")
    if [ -z "$added" ] || ! git cat-file -e "$added^" 2>/dev/null; then
        echo "Git's history has no commit before $newest: commit it, or clone all of the history" >&2
        exit 1
    fi
    rm -rf target/rolling
    mkdir -p $source
    git archive "$added^" | tar --extract --directory $source
    echo "building the commit before $newest"
    (cd $source && CARGO_TARGET_DIR="$OLDPWD/target" cargo build --locked --quiet --bin docmill)
    mv target/debug/docmill target/rolling/older
    echo "building what is checked out"
    cargo build --locked --quiet --bin docmill
    cp target/debug/docmill target/rolling/newer
}

if [ $# = 0 ]; then
    cd "$here/.."
    build_both
    set -- "$PWD/target/rolling/older" "$PWD/target/rolling/newer" "$PWD/samples"
fi
if [ $# -lt 3 ]; then
    sed -n '5,6p' "$here/rolling_deploy.sh" >&2
    exit 2
fi
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    exec "$here/with_postgres.sh" "$here/rolling_deploy.sh" "$@"
fi
old=$1 new=$2 documents=$3 copies=${4:-20}

dir=$(mktemp -d "${TMPDIR:-/tmp}/docmill-rolling.XXXXXX")
workers=()
stop() {
    for pid in "${workers[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap stop EXIT

database="rolling_$$"
sql() { psql -qAtX "$DOCMILL_TEST_DATABASE_URL" -c "$1"; }
sql "CREATE DATABASE $database TEMPLATE template0" >/dev/null
export DOCMILL__DATABASE__URL="${DOCMILL_TEST_DATABASE_URL%/*}/$database"
export DOCMILL__STORE__BACKEND=folder DOCMILL__STORE__PATH="$dir/store"
export DOCMILL__QUEUE__BACKEND=folder DOCMILL__QUEUE__PATH="$dir/queue" DOCMILL__QUEUE__WAIT=1s
export DOCMILL__WORKER__ADDRESS=127.0.0.1:0 DOCMILL__WORKER__SLOTS=2 DOCMILL__WORKER__DRAIN=60s
count() { psql -qAtX "$DOCMILL__DATABASE__URL" -c "SELECT count(*) FROM docmill.ingestion $1"; }
ended() { count "WHERE status <> 'in-progress'"; }
worker() {
    "$1" worker 2>>"$dir/log" &
    workers+=($!)
}
until_ended() {
    local deadline=$((SECONDS + 600))
    while [ "$(ended)" -lt "$1" ]; do
        if [ $SECONDS -gt $deadline ]; then
            tail -20 "$dir/log" >&2
            echo "only $(ended) of $1 have ended after 10 minutes" >&2
            exit 1
        fi
        sleep 0.5
    done
}

"$old" migrate
before=$(psql -qAtX "$DOCMILL__DATABASE__URL" -c "SELECT max(version) FROM docmill._sqlx_migrations")
for copy in $(seq "$copies"); do
    "$old" submit --tenant "tenant-$copy" "$documents" >/dev/null || true
done
all=$(count "")
worker "$old"
worker "$old"
until_ended $((all / 5))

echo "migrating under load: $(ended) of $all have ended"
"$new" migrate
after=$(psql -qAtX "$DOCMILL__DATABASE__URL" -c "SELECT max(version) FROM docmill._sqlx_migrations")
if [ "$before" = "$after" ]; then
    echo "the two programs have the same migrations: nothing is shown" >&2
    exit 1
fi
for old_worker in "${workers[@]}"; do
    worker "$new"
    until_ended $(($(ended) + 2 > all ? all : $(ended) + 2))
    kill -TERM "$old_worker"
    wait "$old_worker" || { echo "an older worker did not drain" >&2; exit 1; }
    echo "one older worker drained: $(ended) of $all have ended"
done
until_ended "$all"

spent=$(count "WHERE attempt_count <> 1 OR crashes > 0")
internal=$(count "WHERE reason IN ('crashed', 'internal', 'transient')")
echo "documents $all, migrated $before -> $after, more than one attempt: $spent, failed for a" \
    "technical reason: $internal"
if [ "$spent" != 0 ] || [ "$internal" != 0 ]; then
    exit 1
fi
