#!/usr/bin/env bash
# Two workers under a provider's limit that they do not know and that changes: does everything
# complete, in how much of the limit's own time, and how many calls are refused? And what does a key
# do to the documents that is wrong for a while? Exit code 1 if a target is missed. See
# benches/throttle.rs. Wants an idle machine and two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh throttle "$@"
