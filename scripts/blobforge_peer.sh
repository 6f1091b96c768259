#!/usr/bin/env bash
# docmill and BlobForge's own code on one bucket (moto): handed in by one and converted by the other,
# both at once, locks, and its commands over what docmill wrote. BlobForge is in no package registry:
#   scripts/blobforge_peer.sh FOLDER, or BLOBFORGE_SOURCE=FOLDER make proof
# with FOLDER a checkout of its commit 039ba07, the last that has its queue in the bucket. Its model is
# replaced by a converter that counts (scripts/blobforge_peer_side.py); everything else is its own.
set -euo pipefail
cd "$(dirname "$0")/.."

source=${1:-${BLOBFORGE_SOURCE:?"scripts/blobforge_peer.sh FOLDER, or BLOBFORGE_SOURCE: a checkout of BlobForge 039ba07"}}
[ -f "$source/blobforge/s3_client.py" ] || { echo "$source has no BlobForge with a queue in a bucket" >&2; exit 1; }
moto=target/tools/moto
[ -x "$moto/bin/moto_server" ] || scripts/environment.sh "$moto" scripts/moto-requirements.txt
cargo build --locked --quiet --bin docmill
exec "$moto/bin/python" scripts/blobforge_peer.py target/debug/docmill "$moto/bin/moto_server" "$source"
