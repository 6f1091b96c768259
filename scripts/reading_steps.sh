#!/usr/bin/env bash
# What each step of reading costs, in ms per A4 page on one core. See benches/reading/steps.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh reading steps
