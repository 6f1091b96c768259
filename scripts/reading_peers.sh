#!/usr/bin/env bash
# Reads the same scans with docmill and with its peers, and prints the word recall, precision and
# CPU time of each by kind of scan, side by side:
#   scripts/reading_peers.sh DIR [NAME...]
# DIR holds scans, truth/NAME.txt and, if there is one, SCANS.tsv (columns file, kind, language).
# NAMEs choose readers (all): tesseract tesseract-language ocrmypdf kreuzberg rapidocr docmill, and that
# one with one of its readers alone, docmill-tesseract docmill-neural. Tesseract and OCRmyPDF are
# Debian's, kreuzberg and RapidOCR come from PyPI into target/tools. A peer that is not there and
# cannot be installed is left out, and that is said. Wants pdftoppm (poppler-utils). DOCMILL names
# another binary of ours.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] && [ -d "$1/truth" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }

KREUZBERG=4.10.4
tools=target/tools

# Whether a reader is to be run: all, if none is named.
is_asked() {
    local name=$1
    shift 2
    [ $# = 0 ] || [[ " $* " == *" $name "* ]]
}

if is_asked ocrmypdf "$@" && ! command -v ocrmypdf >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        ocrmypdf unpaper </dev/null >&2 || echo "ocrmypdf was not installed" >&2
fi
if is_asked kreuzberg "$@" && [ ! -x $tools/kreuzberg/bin/python ]; then
    python3 -m venv $tools/kreuzberg && $tools/kreuzberg/bin/pip install -q kreuzberg==$KREUZBERG >&2 ||
        { rm -rf $tools/kreuzberg; echo "kreuzberg was not installed" >&2; }
fi
if is_asked rapidocr "$@"; then
    scripts/environment.sh $tools/vision-scans scripts/vision-scans-requirements.txt ||
        echo "rapidocr was not installed" >&2
fi
if [ -z "${DOCMILL:-}" ]; then
    # With a bench, so that the crates have the features they are tested with and are compiled once.
    cargo build --locked --quiet --config scripts/optimised.toml --bin docmill --bench reading
    DOCMILL=target/debug/docmill
fi
export DOCMILL KREUZBERG_PYTHON=$tools/kreuzberg/bin/python RAPIDOCR_PYTHON=$tools/vision-scans/bin/python
exec python3 scripts/reading_peers.py "$@"
