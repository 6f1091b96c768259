#!/usr/bin/env bash
# A deep backlog of long scans: 64 documents of 25 scanned pages, submitted at once to one worker
# with two cores, whose jobs have three times the time that one such document takes alone. All must
# complete, first in first out within a factor of two, none by a second attempt; exit code 1 if not.
# The arguments: how many documents, how many pages each, and which scan each page is: skewed (3 CPU
# seconds a page: in full 40 minutes to an hour and a half on two idle cores) or clean. 12 documents
# of 8 pages take some minutes. See tests/it/waiting.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
export DOCMILL_LOAD_DOCUMENTS="${1:-64}" DOCMILL_LOAD_PAGES="${2:-25}" DOCMILL_LOAD_SCAN="${3:-skewed}"
run=(cargo nextest run --profile load --no-capture --run-ignored only -E 'test(/^waiting::/)')
command -v cargo-nextest >/dev/null ||
    run=(cargo test --test it -- --nocapture --ignored waiting::)
exec scripts/with_postgres.sh "${run[@]}"
