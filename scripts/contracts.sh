#!/usr/bin/env bash
# Holds what docmill sends to model vendors, and what our stand-ins answer, against the vendors' own
# types: PyPI's openai, anthropic and google-genai, botocore's bedrock-runtime. Needs Python 3.10 and a package
# registry. Exit code 1 if a request or a reply does not validate.
#   scripts/contracts.sh [FILE]     a document to process; default: a sample invoice
set -euo pipefail
cd "$(dirname "$0")/.."

home=target/tools/contracts
scripts/environment.sh $home scripts/contracts-requirements.txt
cargo build --locked --bin docmill
cargo build --locked -p docmill-testkit --bin model-standin
$home/bin/python scripts/batch_contracts.py target/debug/model-standin
exec $home/bin/python scripts/contracts.py \
    target/debug/docmill target/debug/model-standin "${1:-samples/invoice_en.pdf}"
