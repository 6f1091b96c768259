#!/usr/bin/env bash
# Takes each guard of tests/guards/*.toml out, one at a time, and runs the tests that are said to fall
# then: `scripts/guards.sh [NAME…]`, all guards if none is named. How it is done: scripts/guards.py.
# Exit code 1 if a test does not fall, and if a guard is not where the list says that it is.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/with_postgres.sh python3 scripts/guards.py "$@"
