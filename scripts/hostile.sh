#!/usr/bin/env bash
# Every file of a folder of hostile documents through one running worker in one go, twenty good
# invoices mixed in among them:
#   scripts/hostile.sh DIR
# DIR/EXPECT.tsv says which answers are right; see scripts/hostile.py. Exit code 1 if one is not, or
# if the worker died, went over its memory, or let a good invoice suffer. DOCMILL names another
# program than target/debug/docmill.
set -euo pipefail
if [ $# -ne 1 ] || [ ! -f "$1/EXPECT.tsv" ]; then
    echo "usage: scripts/hostile.sh DIR, with the answers in DIR/EXPECT.tsv" >&2
    exit 2
fi
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
exec python3 scripts/hostile.py "$dir" "${DOCMILL:-target/debug/docmill}"
