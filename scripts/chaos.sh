#!/usr/bin/env bash
# Workers of the three job sources (Postgres with a queue, a BlobForge bucket, an olmOCR workspace) work on
# 500 documents for MINUTES (default 3) while a random sequence of deaths, standstills, stops, failpoints
# and outages goes over them; then everything is counted. Exit code 1 if any of it is not as it must be.
#
#   scripts/chaos.sh [MINUTES] [SEED]
#
# The seed is printed; given again, it draws the same sequence. Root only for the full disk, which is
# skipped aloud otherwise. See scripts/chaos.py.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --workspace --bins
    DOCMILL=target/debug/docmill
fi
exec python3 scripts/chaos.py "$DOCMILL" "${DOCMILL_STANDINS:-target/debug}" "${1:-3}" ${2:+"$2"}
