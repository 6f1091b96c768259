#!/usr/bin/env bash
# docmill and the published clients of redis-work-queue on one queue: the Python client (PyPI 0.1.2,
# 0.1.3, 0.1.5) and the Node client (npm 0.1.5), both directions, with cleaners of both and with jobs
# of others on the same prefix; and the program of docs/guides/jobs.md beside each of them. The Rust client 0.3.0 is in the tests (tests/it/queue_suite/redis.rs).
# Needs Python 3.10 or newer, Node 18 or newer with npm, redis-server and Postgres's programs.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    exec scripts/with_postgres.sh "$0" "$@"
fi
tools=target/tools/redis-peers
mkdir -p "$tools"
for version in 0.1.2 0.1.3 0.1.5; do
    [ -x "$tools/python-$version/bin/python" ] && continue
    python3 -m venv "$tools/python-$version"
    "$tools/python-$version/bin/pip" install --quiet "redis-work-queue==$version"
done
if [ ! -d "$tools/node_modules/@mevitae/redis-work-queue" ]; then
    npm install --silent --no-audit --no-fund --prefix "$tools" @mevitae/redis-work-queue@0.1.5
fi
cargo build --locked --quiet --workspace --bins --examples
exec python3 scripts/redis_peers.py target/debug/docmill target/debug/examples/jobs "$tools"
