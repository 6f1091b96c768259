#!/usr/bin/env bash
# Makes a Python environment of pinned packages, once; well under a second when it is there.
#
#   scripts/environment.sh HOME REQUIREMENTS
#
# HOME is a folder below target/tools, REQUIREMENTS a file as pip reads it. A changed file, another
# Python or another place makes the environment anew: a copied one has the wrong paths in it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# != 2 ]; then
    sed -n '4p' "$0" >&2
    exit 2
fi
home=$1 requirements=$2
stamp="$(cat "$requirements" <(echo "$PWD" && python3 --version) | cksum)"
[ "$(cat "$home/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
echo "making $home" >&2
rm -rf "$home"
mkdir -p "$(dirname "$home")"
python3 -m venv "$home"
"$home/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$requirements" </dev/null
echo "$stamp" >"$home/stamp"
