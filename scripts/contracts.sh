#!/usr/bin/env bash
# Holds what docmill sends to model vendors, and what our stand-ins answer, against the vendors' own
# types: PyPI's openai and anthropic, botocore's bedrock-runtime. Needs Python 3.10 and a package
# registry. Exit code 1 if a request or a reply does not validate.
#   scripts/contracts.sh [FILE]     a document to process; default: a sample invoice
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${CONTRACTS_VENV:-target/contracts-venv}"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --requirement scripts/contracts-requirements.txt
cargo build --locked --bin docmill
cargo build --locked -p docmill-testkit --bin model-standin
exec "$venv/bin/python" scripts/contracts.py \
    target/debug/docmill target/debug/model-standin "${1:-samples/invoice_en.pdf}"
