#!/usr/bin/env bash
# Cost of each step of reading, in ms per A4 page on one core. See benches/reading/steps.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh reading steps
