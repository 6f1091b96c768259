#!/usr/bin/env bash
# usage: einvoice_suites.sh DIR
# Reads every UBL and CII invoice below DIR with docmill and by a second reading, and compares them by business term.
# DIR holds checkouts of public suites, e.g. ConnectingEurope/eInvoicing-EN16931, itplr-kosit/xrechnung-testsuite,
# OpenPEPPOL/peppol-bis-invoice-3, ZUGFeRD/corpus. They are not part of this repository.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d "${1:-}" ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
program=${DOCMILL:-target/debug/docmill}
[ -x "$program" ] || cargo build --locked --bin docmill
exec python3 scripts/einvoice_reading.py "$program" "$1"
