#!/usr/bin/env bash
# Checks of arm64 on a machine of another architecture, without a compiler of its own:
# that the image's Debian has every package of scripts/packages.txt for arm64, and that what a page
# process may call, whose numbers differ there, compiles for it and passes its tests under an emulator.
# Not looked at: the program as a whole, which the Dockerfile compiles on a machine of the architecture.
#
#   scripts/arm64.sh            ARM64_STORE=FOLDER: where packages are kept (/var/tmp/docmill-arm64)
#
# The compiler and the standard library for arm64 are Debian's of unstable, taken out of their packages:
# the project's own toolchain has no other library than its machine's. Nothing of them is installed.
# Needs Debian, the network, and gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
store="${ARM64_STORE:-/var/tmp/docmill-arm64}"
say() { printf 'arm64: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}
for program in aarch64-linux-gnu-gcc qemu-aarch64 dpkg-deb; do
    command -v $program >/dev/null || die "needs $program: see the head of this script"
done
mkdir -p "$store"/{packages,root,crate/src}

# apt over lists of its own: SUITE COMMAND...
look_up() {
    local place="$store/$1" suite=$1
    shift
    mkdir -p "$place"/{lists/partial,cache/archives/partial}
    touch "$place/status"
    echo "deb http://deb.debian.org/debian $suite main" >"$place/sources.list"
    local own=(-o "Dir::Etc::sourcelist=$place/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$place"
        -o "Dir::State::lists=$place/lists" -o "Dir::State::status=$place/status" -o "Dir::Cache=$place/cache"
        -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o APT::Architectures::=arm64
        -o APT::Sandbox::User=root)
    local program=$1
    shift
    "$program" -q "${own[@]}" "$@"
}

check_packages() {
    look_up trixie apt-get update >/dev/null
    # As a machine of the architecture asks: one question for all, because each reads the whole list.
    local names missing
    names=$(awk '!/^#/ && NF { print $2 }' scripts/packages.txt | sort -u)
    # shellcheck disable=SC2086
    missing=$(look_up trixie apt-cache -o APT::Architecture=arm64 policy $names |
        awk '/^[^ ]/ { name = $1 } /Candidate: \(none\)/ { print name } /Candidate:/ { seen++ }
            END { if (seen != '"$(wc -w <<<"$names")"') print "some are not known at all" }')
    [ -z "$missing" ] || die "Debian has no arm64 package:" $missing
    say "every package of scripts/packages.txt is there for arm64"
}

make_compiler() {
    [ ! -f "$store/compiler.done" ] || return 0
    say "taking a compiler and the library for arm64 out of their packages"
    look_up sid apt-get update >/dev/null
    (cd "$store/packages" && look_up sid apt-get download rustc libstd-rust-1.97 libllvm22 libstdc++6 \
        libgcc-s1 libc6 zlib1g libzstd1 libffi8 libedit2 libtinfo6 libbsd0 libmd0 libxml2-16 libz3-4 \
        libstd-rust-dev:amd64 libstd-rust-dev:arm64 >/dev/null)
    local package
    for package in "$store"/packages/*.deb; do dpkg-deb --extract "$package" "$store/root"; done
    local libraries="$store/root/usr/lib/x86_64-linux-gnu"
    cat >"$store/rustc" <<WRAPPER
#!/bin/sh
exec $libraries/ld-linux-x86-64.so.2 --library-path $libraries $store/root/usr/bin/rustc --sysroot $store/root/usr "\$@"
WRAPPER
    chmod +x "$store/rustc"
    touch "$store/compiler.done"
}

version_of() { awk -v name="\"$1\"" '$1 == "name" && $3 == name { getline; gsub(/"/, "", $3); print $3; exit }' Cargo.lock; }

check_calls() {
    printf '[package]\nname = "calls"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\nlibc = "=%s"\nseccompiler = "=%s"\n[workspace]\n' \
        "$(version_of libc)" "$(version_of seccompiler)" >"$store/crate/Cargo.toml"
    cp crates/documents/src/sandbox/confine/calls.rs "$store/crate/src/calls.rs"
    echo '#![allow(dead_code)] mod calls;' >"$store/crate/src/lib.rs"
    (cd "$store/crate" && RUSTC="$store/rustc" CARGO_TARGET_DIR="$store/target" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
        cargo test --quiet --lib --target $target)
    say "what a page process may call holds by the numbers of arm64, with $("$store/rustc" --version)"
}

check_packages
make_compiler
check_calls
say "all is well"
