#!/usr/bin/env bash
# What a job costs when its work costs nothing: jobs a second, CPU time, SQS requests. No target.
# See benches/orchestration.rs. The argument: how many jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/bench.sh orchestration "$@"
