#!/usr/bin/env bash
# Changes the pure parts in every small way, one at a time (cargo-mutants), and says which change no
# test of the part's own crate notices: `scripts/mutants.sh [PART…]`, all parts if none is named.
# Needs no Postgres. Takes from minutes (message_body) to hours (gate). What is not noticed is printed
# and stands in target/mutants/PART/mutants.out/missed.txt; docs/reliability.md says which of it is
# known, and why it stays.
set -euo pipefail
cd "$(dirname "$0")/.."

version=27.1.0
root=$PWD/target/mutants
if ! cargo mutants --version 2>/dev/null | grep -q " $version$"; then
    cargo install --locked --quiet --version "$version" --root "$root/tools" cargo-mutants
    export PATH="$root/tools/bin:$PATH"
fi
export CARGO_TARGET_DIR=$root/build CARGO_INCREMENTAL=0

# A part is a crate and its files; failure_table is one file of the service, whose tests are tried
# without the service.
parts=(message_body failure_table claim_decision throttle notation scheduler einvoice gate)
crate_of() {
    case "$1" in
    message_body) echo docmill-core crates/core/src/{model/message,retry,fault}.rs ;;
    claim_decision) echo docmill-ledger crates/ledger/src/ledger/decide.rs ;;
    throttle) echo docmill-client crates/client/src/throttle.rs 'crates/client/src/throttle/*.rs' ;;
    notation) echo docmill-formats 'crates/formats/src/notation/*.rs' ;;
    scheduler) echo docmill-scheduler 'crates/scheduler/src/scheduler/*.rs' ;;
    einvoice) echo docmill-formats crates/formats/src/xml.rs 'crates/formats/src/einvoice/*.rs' ;;
    gate) echo docmill-gate 'crates/gate/src/gate/*.rs' ;;
    failure_table) echo docmill-failure-table src/lib.rs ;;
    *) return 1 ;;
    esac
}

# src/pipeline/failure.rs as a package of its own.
lay_failure_table() {
    local folder=$root/failure_table/package
    rm -rf "$folder"
    mkdir -p "$folder/src"
    cp src/pipeline/failure.rs "$folder/src/lib.rs"
    cp Cargo.lock "$folder/Cargo.lock"
    cat >"$folder/Cargo.toml" <<EOF
[package]
name = "docmill-failure-table"
version = "0.1.0"
edition = "2024"
[workspace]
[dependencies]
docmill-core = { path = "$PWD/crates/core" }
EOF
    echo "$folder"
}

count() { if [ -f "$1" ]; then wc -l <"$1"; else echo 0; fi; }

[ $# -gt 0 ] || set -- "${parts[@]}"
missed=0
for part in "$@"; do
    found=$(crate_of "$part") || { echo "no such part: $part; there are: ${parts[*]}" >&2; exit 2; }
    read -r package files <<<"$found"
    folder=$PWD
    [ "$part" != failure_table ] || folder=$(lay_failure_table)
    arguments=()
    for file in $files; do arguments+=(--file "$file"); done
    mkdir -p "$root/$part"
    # It ends with 2 if something was missed, which is told below, and with 4 or more if it could not
    # try at all.
    status=0
    (cd "$folder" && nice -n 19 cargo mutants --package "$package" --test-package "$package" \
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
