#!/usr/bin/env bash
# Runs the worker over samples/ with nothing but this machine, and compares every end with
# samples/EXPECT.tsv. Data goes to target/demo, which is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

data=target/demo
documents=()
while IFS=$'\t' read -r file _; do
    documents+=("samples/$file")
done < <(grep -v '^#' samples/EXPECT.tsv | tail -n +2)

mkdir -p $data
started=$SECONDS
# The exit code is 0 only if nothing failed for a technical reason; which documents end how is
# the comparison's business, so that a wrong end is shown beside the right ones.
code=0
target/debug/docmill dev --data $data/data --fresh --json "${documents[@]}" \
    >$data/ends.json || code=$?
python3 scripts/compare_ends.py samples/EXPECT.tsv $data/ends.json
echo "${#documents[@]} documents in $((SECONDS - started)) s"
exit $code
