#!/usr/bin/env bash
# Cost of a job beside its work: jobs a second, CPU time, SQS requests. No target.
#   scripts/orchestration.sh [--json] [empty=20000] [smallest=4000] [whole=1000] [waiting=10000]
# See benches/orchestration.rs. Postgres commits to the disk. Wants an idle machine; what may be compared
# on a busy one is CPU time, and only within one run.
set -euo pipefail
cd "$(dirname "$0")/.."
# How it grows with rows, queue and slots, by execution in Postgres and pages touched, which hold on a busy
# machine as well:
#   scripts/orchestration.sh [--rows=1000000] [--behind=100000] [--slots=1000] empty=2000
exec env STATEMENTS=yes DURABLE=yes AS_RELEASED=yes scripts/with_postgres.sh scripts/bench.sh orchestration "$@"
