#!/usr/bin/env bash
# Memory of a worker and its page processes as time passes; exit code 1 if it rises.
#   scripts/reading_memory.sh [DOCUMENTS]       so many mixed documents of our own making (2000:
#                                               10 to 15 min on two cores)
#   scripts/reading_memory.sh long [PAGES]      one document of so many scans (300)
# See benches/reading/memory.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
# With the bench, so that the crates have the features they are tested with and are compiled once.
cargo build --locked --quiet --config scripts/optimised.toml --bin docmill --bench reading
if [ "${1:-}" = long ]; then
    exec scripts/with_postgres.sh scripts/bench.sh reading long "${2:-300}"
fi
exec scripts/with_postgres.sh scripts/bench.sh reading memory "${1:-2000}"
