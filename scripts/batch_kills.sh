#!/usr/bin/env bash
# kill -9 of the batch lane's leader before and after every step of a batch, at each of the four vendors
# (tests/it/batch_kills.rs; `make test-all` has the half of it). Minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export BATCH_KILLS=all
exec scripts/with_postgres.sh cargo test --test it -- --nocapture batch_kills
