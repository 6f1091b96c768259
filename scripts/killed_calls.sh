#!/usr/bin/env bash
# kill -9 of the worker until so many model calls (default 500) were interrupted; then every document
# has to be complete, with no more calls than 1 + the times its worker died. Takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export KILLED_CALLS="${1:-500}"
exec scripts/with_postgres.sh cargo test --test it -- --nocapture killed_calls
