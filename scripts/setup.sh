#!/usr/bin/env bash
# Installs what is missing, and only that.
#
#   scripts/setup.sh run     what `make demo` needs
#   scripts/setup.sh test    what `make test` needs as well
#   scripts/setup.sh proof   what `make proof` and `make image` need as well
#
# Safe to run again; well under a second when nothing is missing. Packages come from
# scripts/packages.txt. Rust is looked at but never installed: which way is the owner's choice.
set -euo pipefail
cd "$(dirname "$0")/.."

level="${1:-run}"
case "$level" in
    run) wanted="build run dev" ;;
    test) wanted="build run dev test" ;;
    proof) wanted="build run dev test proof" ;;
    *)
        echo "usage: scripts/setup.sh [run|test|proof]" >&2
        exit 2
        ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

# Names in column $1 (2 debian, 3 homebrew) of the rows that are wanted.
packages() {
    awk -v column="$1" -v wanted=" $wanted " '
        !/^#/ && NF && index(wanted, " " $1 " ") && $column != "-" { print $column }
    ' scripts/packages.txt | sort -u
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        # Without a terminal nobody can answer a question: fail at once instead of waiting.
        if [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
    else
        die "not root and no sudo; run as root: $*"
    fi
}

# Debian's package would start a system-wide server on installation. Ours is private, so a
# machine that had none is left without one. The drop-in goes away again.
no_system_cluster=/etc/postgresql-common/createcluster.d/docmill-setup.conf

install_debian() {
    local missing=() installed
    installed=" $(dpkg-query -W -f '${Package} ${db:Status-Status}\n' |
        awk '$2 == "installed" { printf "%s ", $1 }')"
    for name in $(packages 2); do
        [[ "$installed" == *" $name "* ]] || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    as_root apt-get update -q
    if [[ "$installed" != *" postgresql-common "* ]]; then
        as_root mkdir -p "$(dirname $no_system_cluster)"
        echo 'create_main_cluster = false' | as_root tee $no_system_cluster >/dev/null
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null
    as_root rm -f $no_system_cluster
}

install_homebrew() {
    local missing=() installed
    xcode-select -p >/dev/null 2>&1 || die "no C compiler: run xcode-select --install"
    installed=" $(brew list --formula -1 | tr '\n' ' ')"
    for name in $(packages 3); do
        [[ "$installed" == *" $name "* ]] || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    brew install "${missing[@]}" </dev/null
}

# Neither apt nor Homebrew: look for the programs, name the packages, change nothing.
look_only() {
    local missing=()
    for program in git make cc tesseract python3; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    command -v initdb >/dev/null || command -v pg_config >/dev/null || missing+=("postgresql")
    [ ${#missing[@]} -eq 0 ] || die "no apt-get or brew here; install by hand: ${missing[*]}." \
        "Debian calls what is needed: $(packages 2 | tr '\n' ' ')"
}

check_rust() {
    local needed found
    needed="$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"
    PATH="$PATH:$HOME/.cargo/bin"
    if ! command -v cargo >/dev/null || ! found="$(rustc --version 2>/dev/null)"; then
        die "Rust $needed or newer is needed and none was found. Install rustup (from your" \
            "package manager or as the Rust project's site describes), then: rustup install stable"
    fi
    found="$(printf '%s' "$found" | awk '{ sub(/-.*/, "", $2); print $2 }')"
    if [ "$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -1)" != "$needed" ]; then
        die "Rust $needed or newer is needed, this is $found. With rustup: rustup update stable"
    fi
}

if command -v apt-get >/dev/null; then
    install_debian
elif command -v brew >/dev/null; then
    install_homebrew
else
    look_only
fi
check_rust
# Without them bad scans are read worse, and the program says so.
scripts/models.sh || say "the weights of the neural reader are not there: scripts/models.sh fetches them"
if [ "$level" != run ]; then
    # The tests' S3 and SQS.
    scripts/environment.sh target/tools/moto scripts/moto-requirements.txt
    # axe checks the pages for accessibility.
    scripts/axe.sh
    command -v cargo-nextest >/dev/null ||
        say "cargo-nextest is not installed: the tests run with cargo test (slower, same result)"
fi
