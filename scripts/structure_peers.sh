#!/usr/bin/env bash
# Reading order and tables: docmill beside kreuzberg, on the same drawn pages and by the same measure
# (structure_peers.py says which).
#   scripts/structure_peers.sh [FOLDER] [--scans] [--part tune|check] [--verbose]
# FOLDER holds what draw_pages.py drew, or gets it (target/structure). kreuzberg comes from PyPI into
# target/tools. docling is no part of it: its layout models are in no package of a registry. DOCMILL names
# another binary of ours.
set -euo pipefail
cd "$(dirname "$0")/.."

KREUZBERG=4.10.4
tools=target/tools
folder=target/structure
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then
    folder=$1
    shift
fi

if [ ! -d "$folder/truth" ]; then
    scripts/environment.sh $tools/samples scripts/samples-requirements.txt
    $tools/samples/bin/python scripts/corpus/draw_pages.py "$folder" --scans
fi
if [ ! -x $tools/kreuzberg/bin/python ]; then
    python3 -m venv $tools/kreuzberg
    $tools/kreuzberg/bin/pip install -q kreuzberg==$KREUZBERG >&2
fi
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --bin docmill
    DOCMILL=target/debug/docmill
fi
export DOCMILL KREUZBERG_PYTHON=$PWD/$tools/kreuzberg/bin/python
exec python3 scripts/structure_peers.py "$folder" "$@"
