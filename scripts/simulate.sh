#!/usr/bin/env bash
# Runs schedules of the simulation (tests/it/simulation.rs) for so many minutes, 500 at a time, and goes
# on where the last run stopped: `scripts/simulate.sh [MINUTES]`. Exit code 1 at the first that falls; its
# seed is in the output.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
until=$((SECONDS + 60 * ${1:-60}))
mark=target/simulated
seed=$(cat $mark 2>/dev/null || echo 0)
while [ $SECONDS -lt $until ]; do
    FIRST_SEED=$seed SCHEDULES=500 scripts/run_tests.sh simulation::whatever_happens
    seed=$((seed + 500))
    echo "$seed" >$mark
done
echo "schedules up to $seed hold"
