#!/usr/bin/env bash
# Hands in many small files that lie in a folder store, kills the run in the middle, repeats it:
#   scripts/submit_many.sh [COUNT]      default 100000
# Fails unless each file is one document with one ingestion, and unless
# `docmill submit` stays below 150 MB. SQS is our stand-in; Postgres is private and durable.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    cargo build --locked --quiet --workspace --bins
    exec scripts/with_postgres.sh "$0" "$@"
fi
count=${1:-100000}
most_kib=$((150 * 1000 * 1000 / 1024))
docmill=${DOCMILL:-target/debug/docmill}
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT

echo "writing $count files"
python3 - "$work/store/inbox" "$count" <<'EOF'
import pathlib, sys
folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    below = folder / f"{number // 1000:04}"
    if number % 1000 == 0:
        below.mkdir(parents=True)
    (below / f"{number}.pdf").write_bytes(b"%%PDF-1.7\n%d" % number)
EOF

mkfifo "$work/address"
target/debug/sqs-standin --queue documents >"$work/address" &
pids+=($!)
read -r endpoint <"$work/address"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
export DOCMILL__DATABASE__URL="$DOCMILL_TEST_DATABASE_URL"
export DOCMILL__QUEUE__URL="$endpoint/000000000000/documents" DOCMILL__QUEUE__ENDPOINT="$endpoint"
export DOCMILL__STORE__BACKEND=folder DOCMILL__STORE__PATH="$work/store"
"$docmill" migrate

ask() { psql -qAt "$DOCMILL_TEST_DATABASE_URL" -c "$1"; }
# The most memory it ever had, as the kernel counts it.
peak() { awk '/VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null || echo 0; }

"$docmill" submit "$work/store/inbox" >/dev/null 2>&1 &
first=$!
until [ "$(ask 'SELECT count(*) FROM docmill.ingestion')" -gt $((count / 3)) ]; do sleep 0.2; done
highest=$(peak $first)
kill -9 $first
wait $first 2>/dev/null || true
echo "killed after $(ask 'SELECT count(*) FROM docmill.ingestion') of $count"

started=$SECONDS
"$docmill" submit "$work/store/inbox" >"$work/report" &
second=$!
while kill -0 $second 2>/dev/null; do
    now=$(peak $second)
    [ "${now:-0}" -gt "$highest" ] && highest=$now
    sleep 0.2
done
wait $second
tail -1 "$work/report"
rows=$(ask 'SELECT count(*), count(DISTINCT document_id) FROM docmill.ingestion')
echo "repeated in $((SECONDS - started)) s; ingestions|documents $rows; peak $((highest / 1024)) MiB"
[ "$rows" = "$count|$count" ] || { echo "not one ingestion and document each" >&2; exit 1; }
[ "$highest" -lt $most_kib ] || { echo "above 150 MB" >&2; exit 1; }
