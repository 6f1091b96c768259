#!/usr/bin/env bash
# kill -9 of workers in a loop, over each queue: 200 documents, 30 kills; every document must end
# once. See tests/it/kill_loop.rs. The arguments: how many documents, how many kills.
set -euo pipefail
cd "$(dirname "$0")/.."
export DOCMILL_KILL_DOCUMENTS="${1:-200}" DOCMILL_KILLS="${2:-30}"
run=(cargo nextest run --profile proof --no-capture -E 'test(/kill_loop/)')
command -v cargo-nextest >/dev/null || run=(cargo test --test it -- --nocapture kill_loop)
exec scripts/with_postgres.sh "${run[@]}"
