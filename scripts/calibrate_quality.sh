#!/usr/bin/env bash
# How well the page scores rank the errors: scripts/calibrate_quality.sh DIR [PREFIX]
# DIR holds page images with truth/NAME.txt beside them; PREFIX (deg_) chooses among them. Each is
# read twice, with and without repair. Prints per page its two scores and its character error, and
# Spearman's rank correlation of each score with the error: -1 is a perfect ranking.
# DOCMILL names a built docmill; otherwise it is built here.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
prefix=${2-deg_}
if [ -z "${DOCMILL:-}" ]; then
    # As scripts/bench.sh builds it, which is needed below.
    cargo build --locked --quiet --config scripts/optimised.toml --bin docmill --bench page_repair
    DOCMILL=target/debug/docmill
fi
scores=$(mktemp)
trap 'rm -f "$scores"' EXIT
find "$folder" -maxdepth 1 -type f -name "$prefix*" ! -name '*.tsv' -print0 | sort -z |
    xargs -0 scripts/bench.sh page_repair >"$scores"
exec python3 scripts/calibrate_quality.py "$DOCMILL" "$folder" "$prefix" "$scores"
