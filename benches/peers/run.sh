#!/usr/bin/env bash
# No-op work by docmill and by its peers, five rounds in turn, one table:
#   benches/peers/run.sh          10,000 jobs each (2,000 of those that take milliseconds); some minutes
#   benches/peers/run.sh small    one round of 500, to see that everything runs
# Installs the peers in the versions of package-lock.json and requirements.txt into target/peers. run.py
# explains the figures. Wants an idle machine. Exit code 1 if one of them failed.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=5 jobs=10000 slow=2000
[ "${1:-}" != small ] || rounds=1 jobs=500 slow=200

into=$PWD/target/peers
mkdir -p "$into"
if ! cmp -s benches/peers/package-lock.json "$into/package-lock.json" \
    || [ ! -x "$into/node_modules/.bin/node" ]; then
    cp benches/peers/package.json benches/peers/package-lock.json "$into/"
    (cd "$into" && npm ci --no-audit --no-fund --loglevel error)
fi
cp benches/peers/*.mjs "$into/"
if ! cmp -s benches/peers/requirements.txt "$into/requirements.txt"; then
    python3 -m venv "$into/venv"
    "$into/venv/bin/pip" install --quiet --require-hashes -r benches/peers/requirements.txt
    cp benches/peers/requirements.txt "$into/"
fi

how=(--profile dev --config scripts/as_released.toml)
build() {
    cargo "$@" --locked --quiet --message-format json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1
}
SQS_STANDIN=${SQS_STANDIN:-$(build build "${how[@]}" --workspace --bin sqs-standin)}
bench=${DOCMILL_BENCH:-$(build bench "${how[@]}" --bench orchestration --no-run)}
export SQS_STANDIN
PATH="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1):$PATH"
DURABLE=yes exec scripts/with_postgres.sh \
    python3 benches/peers/run.py "$rounds" "$jobs" "$slow" "$bench" "$into"
