#!/usr/bin/env bash
# Reads scans with a vision model that really looks (RapidOCR behind an OpenAI-compatible server of this
# machine) and the machine's own readers as the local reading: recall beside docmill alone, words of neither, digits
# without a local reading (vision_scans.py says what has to hold).
#   scripts/vision_scans.sh DIR [NAME…]
# DIR holds scans and truth/NAME.txt; NAMEs choose some of them. 150 MB from PyPI; half a minute a scan.
# READER=tesseract lets bare Tesseract be the model. DOCMILL names another binary of ours.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] && [ -d "$1/truth" ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }

home=target/tools/vision-scans
scripts/environment.sh $home scripts/vision-scans-requirements.txt
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --config scripts/optimised.toml --bin docmill
    DOCMILL=target/debug/docmill
fi
exec $home/bin/python scripts/vision_scans.py "$DOCMILL" "$@"
