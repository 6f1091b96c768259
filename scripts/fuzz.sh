#!/usr/bin/env bash
# Tries inputs that nobody wrote: `scripts/fuzz.sh [MINUTES] [TARGET…]`, ten minutes for each target
# if nothing is said (`make fuzz MINUTES=10 TARGETS="pdf tiff"`). Works with the project's own stable
# toolchain and a C++ compiler. A run begins with what is kept in fuzz/corpora and goes on with what
# earlier runs found (fuzz/target/corpora). An input that ends the process, takes more than ten
# seconds or 2 GB is put into fuzz/found/TARGET; the others go on, and the exit code is 1.
#
#   scripts/fuzz.sh list                 the targets
#   scripts/fuzz.sh check                whether its manifests still fit: nothing else compiles it
#   scripts/fuzz.sh try TARGET FILE…     these inputs alone
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/fuzz
export RUSTC_WRAPPER="$folder/rustc.sh" CARGO_TARGET_DIR="$folder/target" CARGO_INCREMENTAL=0

# The lock file is the project's, so that what ships is what is fuzzed; Cargo adds the fuzzer itself.
lock() {
    local ask=(cargo metadata --format-version 1 --manifest-path fuzz/Cargo.toml)
    cp Cargo.lock fuzz/Cargo.lock
    "${ask[@]}" --offline >/dev/null 2>&1 || "${ask[@]}" >/dev/null
}

# Both programs at once: one alone would be built with other features of what they share.
build() {
    lock
    (cd "$folder" && cargo build --locked --quiet --workspace)
}

# The program that has a target.
program_of() {
    local package
    for package in data pages; do
        if grep -q "(\"$1\", " "$folder/$package/src/targets.rs"; then
            echo "docmill-fuzz-$package"
            return
        fi
    done
    echo "no such target: $1" >&2
    return 2
}

all_targets() {
    sed -n 's/^    ("\([a-z0-9_]*\)", [a-z0-9_]*),$/\1/p' "$folder"/{data,pages}/src/targets.rs
}

# Seeds of the kinds that ship: the four files that the target reads, in its order.
seed_kinds() {
    local kind
    for kind in config/kinds/*/; do
        {
            cat "$kind/rules.toml" && printf '\001' && cat "$kind/labels.toml" && printf '\001'
            cat "$kind/schema.json" && printf '\001' && cat "$kind/kind.toml"
        } >"$1/shipped-$(basename "$kind")"
    done
}

case "${1:-10}" in
list)
    all_targets
    exit
    ;;
check)
    lock
    exit
    ;;
try)
    program=$(program_of "$2")
    build
    FUZZ_TARGET=$2 "$folder/target/debug/$program" -timeout=10 -rss_limit_mb=2048 "${@:3}"
    exit
    ;;
esac

minutes=${1:-10}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(all_targets)
for target in "${targets[@]}"; do program_of "$target" >/dev/null; done
build

failed=()
for target in "${targets[@]}"; do
    program=$(program_of "$target")
    grown=$folder/target/corpora/$target found=$folder/found/$target log=$folder/target/$target.log
    mkdir -p "$grown" "$found"
    [ "$target" != kind_files ] || seed_kinds "$grown"
    words=()
    [ ! -f "$folder/words/$target.txt" ] || words=(-dict="$folder/words/$target.txt")
    outcome=held
    FUZZ_TARGET=$target "$folder/target/debug/$program" \
        -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
        -len_control=20 -print_final_stats=1 -artifact_prefix="$found/" "${words[@]}" \
        "$grown" "$folder/corpora/$target" >"$log" 2>&1 || outcome=FELL
    [ $outcome = held ] || failed+=("$target")
    printf '%-18s %s  %12s inputs  %6s branches  %s\n' "$target" "$outcome" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(grep -o 'cov: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)" "$log"
done
[ ${#failed[@]} = 0 ] || {
    echo "look at the log, then at the input: scripts/fuzz.sh try TARGET fuzz/found/TARGET/FILE" >&2
    exit 1
}
