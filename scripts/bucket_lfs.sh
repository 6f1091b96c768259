#!/usr/bin/env bash
# A real repository with real Git LFS: 100 documents, 90 of them known to the bucket; the clone
# fetches none, the ingest ten. Needs git-lfs.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v git-lfs >/dev/null || { echo "git-lfs is not installed: apt-get install git-lfs" >&2; exit 1; }
cargo build --locked --quiet
program=$PWD/target/debug/docmill
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work GIT_CONFIG_NOSYSTEM=1
git config --global user.email proof@example.org
git config --global user.name proof
git config --global init.defaultBranch main
git lfs install --skip-repo >/dev/null
git init --quiet --bare "$work/origin.git"
git clone --quiet "file://$work/origin.git" "$work/author" 2>/dev/null
cd "$work/author"
git lfs track '*.pdf' >/dev/null
mkdir -p 'papers, odd'
for number in $(seq 100); do printf '%%PDF-1.4 %s' "$number" >"papers, odd/we+ird %$number.pdf"; done
git add .
git commit --quiet -m papers
git push --quiet origin HEAD 2>/dev/null
cd "$work"
export DOCMILL__BUCKET__PATH=$work/bucket
mkdir known
for number in $(seq 90); do cp "author/papers, odd/we+ird %$number.pdf" known/; done
"$program" bucket ingest known --json >/dev/null
"$program" bucket ingest "file://$work/origin.git" --json >report.json
python3 - <<'PYTHON'
import json

files = json.load(open("report.json"))
fetched = sum(file["fetched"] for file in files)
problems = [file["problem"] for file in files if file["problem"]]
print(f"{len(files)} pointers, {fetched} fetched, {len(problems)} problems {problems[:1]}")
raise SystemExit(not (len(files) == 100 and fetched == 10 and not problems))
PYTHON
