#!/usr/bin/env bash
# Faults of the surroundings, and what they cost documents that are not at fault:
#
#   scripts/surroundings.sh NAME [ARGUMENT...]
#
# NAME is a program in scripts/surroundings/ without its ending; its first comment says what it does, what
# it prints and when its exit code is 1. Without a NAME all of them run, one after the other.
# DOCMILL and DOCMILL_STANDINS name another docmill and another folder with the stand-ins.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    exec scripts/with_postgres.sh scripts/surroundings.sh "$@"
fi
if [ -z "${DOCMILL:-}" ] || [ -z "${DOCMILL_STANDINS:-}" ]; then
    cargo build --locked --quiet --workspace --bins
fi
export DOCMILL="${DOCMILL:-target/debug/docmill}" DOCMILL_STANDINS="${DOCMILL_STANDINS:-target/debug}"
export PYTHONPATH="scripts${PYTHONPATH:+:$PYTHONPATH}"
if [ $# = 0 ]; then
    for program in scripts/surroundings/*.py; do
        [ "$program" != scripts/surroundings/world.py ] || continue
        echo "== $program"
        python3 "$program"
    done
    exit 0
fi
name=$1
shift
exec python3 "scripts/surroundings/$name.py" "$@"
