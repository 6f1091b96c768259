#!/usr/bin/env bash
# Fetches axe-core for the tests of the pages:
#   scripts/axe.sh      makes target/tools/axe/axe.min.js
# From the package that scripts/axe-requirements.txt pins, by pip, without installing or running
# anything of it; held against the sum below. Done already: at once, without the network.
#
# Renew: change the version and its hash, run this, look at what it says, and write down the sum.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=target/tools/axe
sum=84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc

is_whole() { [ -f "$1" ] && sha256sum --check --status <<<"$sum  $1"; }

! is_whole $folder/axe.min.js || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "axe: fetching axe-core 4.12.1, 160 kB" >&2
python3 -m venv "$work/python"
"$work/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes -r scripts/axe-requirements.txt --dest "$work" </dev/null
python3 -m zipfile --extract "$work"/*.whl "$work/package"
is_whole "$work/package/axe_playwright_python/axe.min.js" || {
    echo "axe: this is another file than is known: $(sha256sum "$work"/package/*/axe.min.js)" >&2
    exit 1
}
mkdir -p $folder
cp "$work/package/axe_playwright_python/axe.min.js" $folder/
