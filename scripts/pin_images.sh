#!/usr/bin/env bash
# Pins the images that the Dockerfile builds on by digest: a tag may be another image tomorrow.
#
#   scripts/pin_images.sh           asks the registry and writes the digests into the Dockerfile
#   scripts/pin_images.sh --check   fails if one is without digest; part of a release
#
# Asks by docker, skopeo or crane, whichever is installed. Commit what it writes with the release;
# go back to the tags afterwards, or renew the digests for every security update of the base.
set -euo pipefail
cd "$(dirname "$0")/.."

bases() { sed -n 's/^ARG \(RUST\|BASE\)_IMAGE=//p' Dockerfile; }

digest_of() {
    if command -v docker >/dev/null; then
        docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"
    elif command -v skopeo >/dev/null; then
        skopeo inspect --no-tags --format '{{.Digest}}' "docker://docker.io/library/$1"
    elif command -v crane >/dev/null; then
        crane digest "$1"
    else
        echo "pin_images: needs docker, skopeo or crane" >&2
        return 1
    fi
}

[ "$(bases | wc -l)" = 2 ] || {
    echo "pin_images: the Dockerfile does not name two bases" >&2
    exit 1
}
if [ "${1:-}" = --check ]; then
    loose=$(bases | grep -vE '@sha256:[0-9a-f]{64}$' || true)
    [ -z "$loose" ] || {
        echo "pin_images: without digest: $loose; run scripts/pin_images.sh" >&2
        exit 1
    }
    exit 0
fi
for base in $(bases); do
    tag=${base%@*}
    digest=$(digest_of "$tag")
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || {
        echo "pin_images: the registry's answer for $tag is no digest" >&2
        exit 1
    }
    sed -i "s|^\(ARG [A-Z]*_IMAGE=\)$base\$|\1$tag@$digest|" Dockerfile
    echo "$tag@$digest"
done
