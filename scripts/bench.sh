#!/usr/bin/env bash
# Runs one of benches/ with arguments: scripts/bench.sh NAME [ARGUMENT...]
# The dependencies of the development build are optimised already; so is docmill here.
# Files lie in memory where the system offers that: the disk is not what is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
shift
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
exec cargo bench --locked --quiet --profile dev --config scripts/optimised.toml \
    --bench "$name" -- "$@"
