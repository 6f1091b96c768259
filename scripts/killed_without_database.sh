#!/usr/bin/env bash
# Workers of a bucket and of a workspace are killed 30 times over 200 documents, in a folder and on
# a moto server: every document has to end once, none may be lost. See scripts/bucket_kills.py and
# scripts/workspace_kills.py, whose arguments this takes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --quiet
program=${DOCMILL:-target/debug/docmill}
moto=${DOCMILL_MOTO_SERVER:-target/tools/moto/bin/moto_server}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$moto" -H 127.0.0.1 -p "$port" >/dev/null 2>&1 &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 300); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.1
done
for kind in bucket workspace; do
    python3 scripts/${kind}_kills.py "$program" "$@"
    python3 scripts/${kind}_kills.py "$program" --endpoint "http://127.0.0.1:$port" "$@"
done
