#!/usr/bin/env bash
# Two workers under a provider's limit that they do not know and that changes: does everything
# complete, in how much of the limit's own time, and how many calls are refused? Exit code 1 if a
# target is missed. See benches/throttle.rs. Wants an idle machine and a minute and a half.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh throttle "$@"
