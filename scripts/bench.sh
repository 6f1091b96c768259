#!/usr/bin/env bash
# Runs one of benches/ with arguments: scripts/bench.sh NAME [ARGUMENT...]
# The dependencies of the development build that read pages are optimised already; so is docmill here.
# AS_RELEASED=yes: all that a job runs through is compiled as a release is. AS_IMAGE=yes: everything is as
# in the image (half an hour the first time): what a job costs where it runs.
# Files lie in memory where the system offers that: the disk is not what is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
shift
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
how=(--profile dev --config scripts/optimised.toml)
[ -z "${AS_RELEASED:-}" ] || how=(--profile dev --config scripts/as_released.toml)
[ -z "${AS_IMAGE:-}" ] || how=(--profile image)
exec cargo bench --locked --quiet "${how[@]}" --bench "$name" -- "$@"
