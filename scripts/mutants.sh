#!/usr/bin/env bash
# Changes the pure parts in every small way, one at a time (cargo-mutants), and says which change no
# test notices of the part's own crate (for e-invoices, of the crate that makes data of them too):
# `scripts/mutants.sh [PART…]`, all parts if none is named.
# Needs no Postgres. Takes from minutes (message_body) to hours (gate); SHARD=2/8 tries the third of eight
# parts of it, NICE=0 does so at the usual priority. Unnoticed mutants are printed and listed in
# target/mutants/PART/mutants.out/missed.txt; docs/explanation/reliability.md says which of it is known, and why it
# stays.
set -euo pipefail
cd "$(dirname "$0")/.."

version=27.1.0
root=$PWD/target/mutants
if ! cargo mutants --version 2>/dev/null | grep -q " $version$"; then
    cargo install --locked --quiet --version "$version" --root "$root/tools" cargo-mutants
    export PATH="$root/tools/bin:$PATH"
fi
export CARGO_TARGET_DIR=$root/build CARGO_INCREMENTAL=1

# A part is a crate and its files. A part of a crate with drivers and SDKs becomes a package of
# its own (lay_package), because a change costs what its crate costs to compile.
parts=(message_body retry failure_table claim_decision throttle notation scheduler einvoice gate)
crate_of() {
    case "$1" in
    message_body) echo docmill-core crates/core/src/{model/message,fault}.rs ;;
    retry) echo docmill-laid src/lib.rs ;;
    claim_decision) echo docmill-laid src/decide.rs ;;
    throttle) echo docmill-laid src/throttle.rs 'src/throttle/*.rs' ;;
    notation) echo docmill-formats crates/formats/src/notation.rs 'crates/formats/src/notation/*.rs' ;;
    scheduler) echo docmill-laid 'src/*.rs' ;;
    einvoice) echo docmill-formats crates/formats/src/{xml,einvoice}.rs 'crates/formats/src/einvoice/*.rs' ;;
    gate) echo docmill-gate crates/gate/src/lib.rs 'crates/gate/src/*.rs' ;;
    failure_table) echo docmill-laid src/lib.rs ;;
    *) return 1 ;;
    esac
}

# The packages whose tests have to notice a change of a part, and behind `--` words of the names of
# these tests, where that is not all of the tests of its own package.
tests_of() {
    case "$1" in
    einvoice) echo docmill-formats docmill-extract -- xml:: einvoice:: ;;
    *) echo "$2" ;;
    esac
}

# The manifest of a package laid at a place: its name, and the dependencies that it names, as the
# workspace has them. A line of its own, `NAME = …`, stands as it is.
write_manifest() {
    local name=$1 folder=$2 dependency
    shift 2
    {
        printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\n' "$name"
        echo "docmill-core = { path = \"$PWD/crates/core\" }"
        for dependency in "$@"; do
            case "$dependency" in
            *=*) echo "$dependency" ;;
            *) grep "^$dependency = " Cargo.toml ;;
            esac
        done
    } >"$folder/Cargo.toml"
}

# All that the throttle asks of the HTTP client: the name of headers.
headers='reqwest = { package = "http", version = "1" }'

# The modules of a part as a package of its own, with the dependencies that they name, and none else of
# their crate.
lay_package() {
    local part=$1 folder=$root/$1/package
    rm -rf "$folder"
    mkdir -p "$folder/src"
    local -a names=()
    case "$part" in
    failure_table) cp crates/pipeline/src/failure.rs "$folder/src/lib.rs" ;;
    retry)
        cp crates/core/src/retry.rs "$folder/src/lib.rs"
        names=(fastrand tokio)
        ;;
    claim_decision)
        cp -r crates/ledger/src/{decide,duplicate_key,memory,stored}.rs crates/ledger/src/memory "$folder/src/"
        grep -v '^pub mod db;$' crates/ledger/src/lib.rs >"$folder/src/lib.rs"
        names=(async-trait parking_lot serde_json time tokio)
        ;;
    throttle)
        cp -r crates/client/src/throttle{,.rs} "$folder/src/"
        echo 'pub mod throttle;' >"$folder/src/lib.rs"
        names=(fastrand futures parking_lot proptest time tokio tracing "$headers")
        ;;
    scheduler)
        cp -r crates/scheduler/src/. "$folder/src/"
        # Of the two crates that it names, what it asks of them: the trait of a model, without vendors.
        mkdir -p "$folder/client/src" "$folder/llm/src"
        cp -r crates/client/src/throttle{,.rs} "$folder/client/src/"
        echo 'pub mod throttle;' >"$folder/client/src/lib.rs"
        cp crates/llm/src/spaces.rs "$folder/llm/src/"
        grep -vE '^(pub )?mod [a-z]+;$' crates/llm/src/lib.rs >"$folder/llm/src/lib.rs"
        echo 'mod spaces;' >>"$folder/llm/src/lib.rs"
        write_manifest docmill-client "$folder/client" fastrand parking_lot time tokio tracing "$headers"
        write_manifest docmill-llm "$folder/llm" async-trait serde serde_json \
            'docmill-client = { path = "../client" }'
        names=(async-trait fastrand futures parking_lot rustix serde serde_json tempfile tokio tracing
            'docmill-client = { path = "client" }' 'docmill-llm = { path = "llm" }')
        ;;
    esac
    cp Cargo.lock "$folder/Cargo.lock"
    write_manifest docmill-laid "$folder" "${names[@]}"
    printf '[workspace]\n' >>"$folder/Cargo.toml"
    echo "$folder"
}

count() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }

[ $# -gt 0 ] || set -- "${parts[@]}"
missed=0
for part in "$@"; do
    found=$(crate_of "$part") || { echo "no such part: $part; there are: ${parts[*]}" >&2; exit 2; }
    read -r package files <<<"$found"
    folder=$PWD
    [ "$package" != docmill-laid ] || folder=$(lay_package "$part")
    arguments=()
    for file in $files; do arguments+=(--file "$file"); done
    tested=$(tests_of "$part" "$package")
    for name in ${tested%% -- *}; do arguments+=(--test-package "$name"); done
    [ -z "${SHARD:-}" ] || arguments+=(--shard "$SHARD")
    # The first `--` ends our words, the second those of cargo: what follows are names of tests.
    [ "$tested" = "${tested%% -- *}" ] || arguments+=(-- -- ${tested#* -- })
    mkdir -p "$root/$part"
    # It ends with 2 if something was missed, which is told below, and with 4 or more if it could not
    # try at all.
    status=0
    (cd "$folder" && nice -n "${NICE:-19}" cargo mutants --package "$package" \
        --jobs 1 --no-times --colors never --minimum-test-timeout 60 --output "$root/$part" \
        "${arguments[@]}") || status=$?
    [ "$status" -lt 4 ] || exit "$status"
    out=$root/$part/mutants.out
    printf '%-16s noticed %4d  not noticed %4d  without end %4d  do not compile %4d\n' "$part" \
        "$(count "$out/caught.txt")" "$(count "$out/missed.txt")" \
        "$(count "$out/timeout.txt")" "$(count "$out/unviable.txt")"
    cat "$out/missed.txt" 2>/dev/null || true
    missed=$((missed + $(count "$out/missed.txt")))
done
exit $((missed > 0))
