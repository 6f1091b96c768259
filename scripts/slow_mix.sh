#!/usr/bin/env bash
# Slow jobs among quick ones: how far from the ideal time are ten slots? Exit code 1 if too far.
# See benches/slow_mix.rs. Wants an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh slow_mix
