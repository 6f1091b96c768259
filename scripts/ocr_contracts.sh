#!/usr/bin/env bash
# Holds what we send to Document AI, Textract, Mistral OCR and Document Intelligence, and what their
# stand-ins answer, against the vendors' own descriptions of their services:
#   scripts/ocr_contracts.sh
# Makes a Python environment below target/tools once; the exchanges are made by tests.
set -euo pipefail
cd "$(dirname "$0")/.."

home=target/tools/ocr-contracts
scripts/environment.sh $home scripts/ocr-contracts-requirements.txt

exchanges=$(mktemp -d "${TMPDIR:-/tmp}/docmill-exchanges.XXXXXX")
trap 'rm -rf "$exchanges"' EXIT
export DOCMILL_OCR_EXCHANGES="$exchanges"
if command -v cargo-nextest >/dev/null; then
    cargo nextest run --test it -E 'test(/providers::contract::/)'
else
    cargo test --test it providers::contract::
fi
$home/bin/python scripts/ocr_contracts.py "$exchanges"
