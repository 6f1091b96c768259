#!/usr/bin/env bash
# Checks e-invoices by the official rules twice, by docmill and by Saxon (saxonche from PyPI), and prints every
# difference by rule id: the official unit tests, examples and test suites, and 1,500 mutated ones. Data
# of all of them is written as UBL, checked, and read back.
#   scripts/einvoice_rules.sh FOLDER
# FOLDER holds the repositories that einvoice_rules.py names, and xrechnung-testsuite and schxslt. The last line
# has the figures. Exit code 1: a difference, or a statement of a unit test that does not hold.
set -euo pipefail
folder=$(realpath "$1")
cd "$(dirname "$0")/.."

SAXON=13.1.1
tools=target/tools/saxon
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -x $tools/bin/python ]; then
    python3 -m venv $tools
    $tools/bin/pip install -q saxonche==$SAXON >&2
fi
scripts/einvoice_rules.py "$folder" "$work/rules.json"
$tools/bin/python scripts/einvoice_rules_peer.py files "$folder" "$work/files" >"$work/list"
cargo run --locked --quiet --release -p docmill-schematron --example check_einvoices -- "$work/rules.json" \
    <"$work/list" >"$work/verdicts"
find "$folder" -name '*.xml' | cargo run --locked --quiet --release -p docmill-schematron \
    --example rewrite_einvoices -- "$work/rules.json"
$tools/bin/python scripts/einvoice_rules_peer.py compare "$folder" "$work/verdicts" 2>"$work/errors"
