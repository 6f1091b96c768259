#!/usr/bin/env bash
# Attacks on a running docmill, each with the behaviour that is safe; exit code 1 if one gets
# through. Each runs in a memory cgroup of 6 GB where the machine lets us make one, as a container
# would, else with its address space limited. A private Postgres and a moto server, gone afterwards.
#
#   scripts/attacks.sh [NAME...]      all of them take about 20 minutes; see scripts/attacks/run.py
#
# DOCMILL names another program than target/debug/docmill, LIAR another lying page process.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${DOCMILL:-}" ] || cargo build --locked --quiet --bin docmill
[ -n "${LIAR:-}" ] || cargo build --locked --quiet -p docmill-documents --example lying_page_process
export LIAR="${LIAR:-$PWD/target/debug/examples/lying_page_process}"
export DOCMILL="${DOCMILL:-$PWD/target/debug/docmill}"
python=$PWD/target/tools/moto/bin/python
if [ ! -x "$python" ]; then
    echo "scripts/setup.sh test installs the moto server that this needs" >&2
    exit 2
fi
exec scripts/with_postgres.sh "$python" scripts/attacks/run.py "$@"
