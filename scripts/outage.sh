#!/usr/bin/env bash
# Postgres, SQS and S3 fall silent in turn, without closing a connection, for 10 minutes each while a
# worker has its hands full; then they speak again. No document may fail, no attempt may be counted,
# and work must go on within 30 s. The argument: how many minutes. See scripts/outage.py.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    exec scripts/with_postgres.sh scripts/outage.sh "$@"
fi
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --bin docmill
fi
moto=${DOCMILL_MOTO_SERVER:-target/tools/moto/bin/moto_server}
exec python3 scripts/outage.py "${DOCMILL:-target/debug/docmill}" "$moto" samples/invoice_en.pdf "${1:-10}"
