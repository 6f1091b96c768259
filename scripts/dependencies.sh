#!/usr/bin/env bash
# Checks licences, sources, denied crates and known weaknesses of all dependencies (deny.toml).
#
#   scripts/dependencies.sh            against the advisories in deny/advisory-db.tar.xz
#   scripts/dependencies.sh --online   against today's, which cargo-deny fetches
#   scripts/dependencies.sh --renew FOLDER   writes the archive anew from a checkout of the database
#
# The archive is the RustSec advisory database (CC0-1.0, some advisories CC-BY-4.0, as its LICENSE.txt
# says) at the date printed below.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=deny/advisory-db.tar.xz
parts=(crates rust LICENSE.txt LICENSES support.toml)

if [ "${1:-}" = --renew ]; then
    tar --sort=name --mtime="$(git -C "$2" log -1 --format=%cI)" --owner=0 --group=0 --numeric-owner \
        -C "$2" -cf - "${parts[@]}" | xz -9e >"$archive"
    exit
fi

scripts/environment.sh target/tools/cargo-deny scripts/dependencies-requirements.txt
# cargo-deny looks at crates of every platform; those that no build fetched are fetched here.
cargo fetch --locked --quiet
deny=(target/tools/cargo-deny/bin/cargo-deny --locked)
[ "${1:-}" != --online ] || exec "${deny[@]}" check

# cargo-deny reads a clone at a path of its own making, so the archive becomes a repository there.
database=target/tools/advisory-dbs/advisory-db-3157b0e258782691
stamp="$(cksum <"$archive")"
if [ "$(cat "$database.stamp" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$database"
    mkdir -p "$database"
    tar -xJf "$archive" -C "$database"
    git -C "$database" init --quiet
    git -C "$database" add --all
    git -C "$database" -c user.name=docmill -c user.email=docmill@localhost commit --quiet -m snapshot
    touch "$database/.git/FETCH_HEAD"
    echo "$stamp" >"$database.stamp"
fi
echo "advisories of $(date -u -r "$database/support.toml" +%F)"
exec "${deny[@]}" --offline check
