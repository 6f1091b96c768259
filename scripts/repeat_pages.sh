#!/usr/bin/env bash
# How reading and judging grow with the words of a page: scripts/repeat_pages.sh [FOLDER...], of samples/ without
# one. See repeat_pages.py. Compares a program with itself, so a development build and a busy machine will do.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --quiet
[ $# -gt 0 ] || set -- samples
exec python3 scripts/repeat_pages.py target/debug/docmill "$@"
