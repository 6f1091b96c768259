#!/usr/bin/env bash
# Visits every state of the model of claims and messages (docs/explanation/reliability.md) within these bounds:
# `scripts/model.sh [FAULTS [ORDERS]]` for one document, `scripts/model.sh neighbours [DOCUMENTS [FAULTS]]
# [--without MEND]` for several beside each other; without bounds those that `.ci/run` asks for. Exit code 1 if
# a property does not hold. A fault more costs about ten times the states, some 150 bytes each.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
# As the tests build it: the same features, so nothing is compiled twice.
cargo build --locked --workspace --bins
if [ $# -gt 0 ]; then
    exec target/debug/docmill-model "$@"
fi
target/debug/docmill-model 3 0
target/debug/docmill-model 1 1
target/debug/docmill-model neighbours 3 0
target/debug/docmill-model neighbours 2 1
