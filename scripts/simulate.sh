#!/usr/bin/env bash
# Runs schedules of the simulation (tests/it/simulation.rs) for so many minutes, 2000 at a time, and goes
# on where the last run stopped: `scripts/simulate.sh [MINUTES]`. Exit code 1 at one that falls: it is in
# the output, cut down to the smallest that does, with the command that runs that one again
# (`SEED=… FAULTS=… DOCUMENTS=… WORKERS=… scripts/simulate.sh`).
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
if [ -n "${SEED:-}" ]; then
    exec scripts/run_tests.sh simulation::each_document_ends_once
fi
until=$((SECONDS + 60 * ${1:-60}))
mark=target/simulated
seed=$(cat $mark 2>/dev/null || echo 0)
while [ $SECONDS -lt $until ]; do
    FIRST_SEED=$seed SCHEDULES=2000 scripts/run_tests.sh simulation::each_document_ends_once
    seed=$((seed + 2000))
    echo "$seed" >$mark
done
echo "schedules up to $seed hold"
