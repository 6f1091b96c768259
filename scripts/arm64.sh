#!/usr/bin/env bash
# Compiles and links docmill for arm64 on a machine of another architecture, against the libraries that
# the image's Debian has for arm64, and lets an emulator start what came out: its version, its
# settings, and the tests of what a page process may call (numbers of system calls differ).
#
#   scripts/arm64.sh            makes the root once (/var/tmp/docmill-arm64, a few GB), then checks
#   ARM64_STORE=FOLDER scripts/arm64.sh
#
# The compiler is that of Debian's unstable, because it comes with the standard library for arm64 as a
# package; the project's own version is what the Dockerfile builds with, on a machine of the
# architecture. So this says that code, bindings and libraries fit together, not how fast the result
# is. Needs root, debootstrap and the network.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=trixie
target=aarch64-unknown-linux-gnu
store="${ARM64_STORE:-/var/tmp/docmill-arm64}"
root="$store/root"

say() { printf 'arm64: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

[ "$(id -u)" = 0 ] || die "needs root (debootstrap, mounts)"
command -v debootstrap >/dev/null || die "needs debootstrap: scripts/setup.sh proof"

inside() {
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# Tools of this machine's architecture, libraries of the other one.
make_root() {
    [ ! -f "$store/root.done" ] || return 0
    say "making a $suite with libraries for arm64"
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase $suite "$root" >"$store/debootstrap.log"
    inside dpkg --add-architecture arm64
    # The compiler and what it depends on alone come from unstable.
    echo "deb http://deb.debian.org/debian sid main" >"$root/etc/apt/sources.list.d/sid.list"
    printf 'Package: *\nPin: release a=unstable\nPin-Priority: 100\n' >"$root/etc/apt/preferences.d/sid"
    inside apt-get -q update >"$store/apt.log"
    local libraries tools
    libraries=$(awk '$1 == "build" && $2 ~ /^lib.*-dev$/ { print $2 ":arm64" }' scripts/packages.txt)
    tools=$(awk '$1 == "build" && $2 !~ /^lib.*-dev$/ { print $2 }' scripts/packages.txt)
    # shellcheck disable=SC2086
    inside apt-get -q install -y --no-install-recommends $libraries $tools ca-certificates \
        crossbuild-essential-arm64 libclang-dev qemu-user >>"$store/apt.log"
    inside apt-get -q install -y --no-install-recommends -t sid rustc cargo libstd-rust-dev:arm64 \
        >>"$store/apt.log"
    touch "$store/root.done"
}

# What git knows of, and this machine's crates, so that nothing is fetched twice.
make_sources() {
    mkdir -p "$root/src" "$root/cargo/registry" "$store/target" "$root/target"
    find "$root/src" -mindepth 1 -delete
    git ls-files --cached --others --exclude-standard -z |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar --null --files-from=- --create | tar --extract --directory "$root/src"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/roots.crt"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$root/cargo/config.toml" 2>/dev/null || true
}

mounted=()
release() {
    local place
    for place in ${mounted[@]+"${mounted[@]}"}; do umount "$place" || true; done
}
attach() { # WHAT WHERE OPTIONS
    mount --bind "$1" "$2"
    mounted=("$2" ${mounted[@]+"${mounted[@]}"})
}

cross() {
    inside CARGO_HOME=/cargo CARGO_TARGET_DIR=/target CARGO_HTTP_CAINFO=/etc/roots.crt \
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_BUILD_TARGET=$target \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 \
        CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
        CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++ \
        PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_PATH=/usr/lib/aarch64-linux-gnu/pkgconfig \
        OPENCV_LINK_PATHS=/usr/lib/aarch64-linux-gnu \
        OPENCV_INCLUDE_PATHS=/usr/include/opencv4,/usr/include/aarch64-linux-gnu/opencv4 \
        sh -c 'cd /src && exec "$@"' sh "$@"
}

mkdir -p "$store"
make_root
trap release EXIT
make_sources
attach /proc "$root/proc"
attach /dev "$root/dev"
attach "$store/target" "$root/target"
attach "${CARGO_HOME:-$HOME/.cargo}/registry" "$root/cargo/registry"
say "compiling with $(inside rustc --version)"
cross cargo build --locked --bin docmill
program=/target/$target/debug/docmill
file=$(head -c 20 "$root$program" | od -An -tx1 -j18 -N2 | tr -d ' ')
[ "$file" = b700 ] || die "what was linked is no program for arm64 ($file)"
say "started by an emulator: $(cross qemu-aarch64 $program --version)"
cross qemu-aarch64 $program --config config/docmill.example.toml config show >/dev/null
say "the calls of a page process, by the numbers of arm64"
cross cargo test --locked --package docmill-documents --lib cpu::confine::calls
say "all is well"
