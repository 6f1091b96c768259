#!/usr/bin/env bash
# Searchable copies of the samples that are pictures, held against programs of others: qpdf's check, every
# word of the transcript at its place by Poppler's pdftotext, and Apache PDFBox's validator of PDF/A. Says
# what a copy weighs and takes; exit code 1 at the first difference. scripts/setup.sh proof installs them.
#   scripts/searchable_pdf.sh [FILE…]      other documents than those of samples/
set -euo pipefail
cd "$(dirname "$0")/.."

for program in qpdf pdftotext java; do
    command -v $program >/dev/null || { echo "needs $program: scripts/setup.sh proof" >&2; exit 1; }
done
[ -f /usr/share/java/preflight.jar ] || { echo "needs libpdfbox2-java: scripts/setup.sh proof" >&2; exit 1; }
[ $# -gt 0 ] || set -- samples/scan_skewed.pdf samples/photo.jpg samples/receipt.jpg
cargo build --locked --quiet --bin docmill
exec python3 scripts/searchable_pdf.py target/debug/docmill "$@"
