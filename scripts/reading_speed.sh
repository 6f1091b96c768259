#!/usr/bin/env bash
# Pages per second of docmill against bare Tesseract on the same page images, all cores busy, in
# one run, with the word recall of that run beside it:
#   scripts/reading_speed.sh DIR [PAGES]
# DIR is the samples' folder: invoices/*.pdf, of which the first page of so many (24) is drawn at
# 300 dpi as a page that needs no repair (its truth: the PDF's own text), and scans/deg_* with
# scans/truth/*.txt. Bare Tesseract: one process a page and core, OMP_THREAD_LIMIT=1, English, and
# once more with all languages that we choose among. docmill with Tesseract alone (`ocr.engine`), which is
# the same work, and with both readers, whose weights lie in target/tools (scripts/models.sh). Wants an
# idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] && [ -d "$1/scans" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
# With the bench, so that the crates have the features they are tested with and are compiled once.
cargo build --locked --quiet --config scripts/optimised.toml --bin docmill --bench reading
exec python3 scripts/reading_speed.py "$@"
