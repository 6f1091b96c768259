#!/usr/bin/env bash
# docmill and olmOCR itself on one workspace: populate by one and work by the other, locks, stale
# locks, 300 groups and 20 workers; in a folder and on S3 (moto). Both layouts of olmOCR are
# installed by name from a package registry. Needs Python 3.10 or newer.
set -euo pipefail
cd "$(dirname "$0")/.."

peer() { # VENV VERSION: the queue of this version, and what its queue imports; not its models
    # Noted at the end: an installation that was broken off is made anew.
    [ "$(cat "$1/installed" 2>/dev/null)" = "$2" ] && return
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet zstandard boto3 requests tqdm google-cloud-storage
    "$1/bin/pip" install --quiet --no-deps "olmocr==$2"
    echo "$2" >"$1/installed"
}
newer=target/tools/olmocr-newer
older=target/tools/olmocr-older
peer "$newer" 0.4.27
peer "$older" 0.1.76
moto=${DOCMILL_MOTO_SERVER:-target/tools/moto/bin/moto_server}
[ -x "$moto" ] || scripts/environment.sh target/tools/moto scripts/moto-requirements.txt
cargo build --locked --quiet --bin docmill
exec python3 scripts/olmocr_peer.py target/debug/docmill samples/invoice_en.pdf \
    "$newer/bin/python" "$older/bin/python" "$moto"
