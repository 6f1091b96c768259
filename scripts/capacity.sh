#!/usr/bin/env bash
# Cost of a document for a worker, by sort; the figures of docs/guides/capacity.md. The argument:
# how many documents of each sort (40: some minutes). See scripts/capacity.py.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --quiet --profile dev --config scripts/optimised.toml --bin docmill
exec python3 scripts/capacity.py target/debug/docmill samples "$@"
