#!/usr/bin/env bash
# Runs the tests with cargo-nextest if it is installed, else with cargo test. Arguments are passed
# on to whichever it is. Called by `make test` and `make test-all` inside scripts/with_postgres.sh.
# PROFILE is one of .config/nextest.toml; CI runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v cargo-nextest >/dev/null; then
    profile=${PROFILE:-default}
    [ -z "${CI:-}" ] || profile=ci
    exec cargo nextest run --locked --workspace --profile "$profile" "$@"
fi
exec cargo test --locked --workspace --lib --bins --tests --no-fail-fast "$@"
