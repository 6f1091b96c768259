#!/usr/bin/env bash
# Tries the two commands of the README where nothing is installed: a bare Debian with git, make and
# a C compiler, in a folder of its own. The Rust toolchain is this machine's, mounted read-only.
#
#   scripts/bare_root.sh                            make demo, then make test
#   scripts/bare_root.sh 'scripts/setup.sh test'    these commands instead
#   scripts/bare_root.sh --user [COMMAND...]        as an ordinary user with sudo
#
# Needs root, debootstrap and the network. The project is a clone of what is committed. How this
# machine reaches its package sources (resolver, certificates, settings of apt, pip and cargo) is
# carried over while it runs. BARE_ROOT names the folder; the bare system is kept there as an
# archive, so that the next run starts from it.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=trixie
base="${BARE_ROOT:-/var/tmp/docmill-bare-root}"
root="$base/root"
user=root
if [ "${1:-}" = --user ]; then
    user=dev
    shift
fi
[ $# -gt 0 ] || set -- "make demo" "make test"

[ "$(id -u)" = 0 ] || {
    echo "bare_root: needs root (chroot and mounts)" >&2
    exit 2
}
command -v debootstrap >/dev/null || {
    echo "bare_root: needs debootstrap: scripts/setup.sh proof" >&2
    exit 2
}

unmount() {
    local point
    for point in proc dev/shm opt/rust; do
        mountpoint -q "$root/$point" && umount "$root/$point"
    done
    return 0
}
trap unmount EXIT

# The first source that apt knows here; none: debootstrap's own default.
mirror() {
    local found
    found="$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources \
        2>/dev/null | head -1)"
    [ -n "$found" ] || found="$(awk '$1 == "deb" { print $2; exit }' /etc/apt/sources.list \
        2>/dev/null)"
    echo "$found"
}

make_base() {
    [ -f "$base/base.tar" ] && return
    echo "bare_root: making a bare $suite"
    rm -rf "$base/base"
    debootstrap --variant=minbase --include=git,make,gcc,libc6-dev,ca-certificates \
        $suite "$base/base" $(mirror) >"$base/debootstrap.log"
    tar -C "$base/base" -cf "$base/base.tar" .
    rm -rf "$base/base"
}

# Everything that says how this machine reaches the outside.
carry_over() {
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
    chroot "$root" update-ca-certificates >/dev/null 2>&1
    [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
    [ ! -f /etc/apt/sources.list.d/debian.sources ] ||
        { rm -f "$root/etc/apt/sources.list" &&
            sed "s/\b$(. /etc/os-release && echo "$VERSION_CODENAME")\b/$suite/g" \
                /etc/apt/sources.list.d/debian.sources >"$root/etc/apt/sources.list.d/debian.sources"; }
    local file
    for file in $(grep -l 'Acquire::' /etc/apt/apt.conf.d/* 2>/dev/null); do
        cp "$file" "$root/etc/apt/apt.conf.d/"
    done
    mkdir -p "$root/$home/.cargo"
    [ ! -f "$HOME/.cargo/config.toml" ] || cp "$HOME/.cargo/config.toml" "$root/$home/.cargo/"
}

kept_environment() {
    env | grep -E '^(PIP_(CERT|INDEX_URL|DEFAULT_TIMEOUT)|CARGO_(HTTP|NET|REGISTRIES)_.*|SSL_CERT_FILE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|REQUESTS_CA_BUNDLE|https?_proxy|no_proxy)=' || true
}

inside() {
    local settings=()
    while IFS= read -r line; do settings+=("$line"); done < <(kept_environment)
    chroot --userspec=$user:$user "$root" /usr/bin/env -i HOME="/$home" USER=$user LANG=C.UTF-8 \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/rust/bin "${settings[@]}" \
        bash -c "cd /$home/docmill && $1" </dev/null
}

mkdir -p "$base"
unmount
rm -rf --one-file-system "$root"
make_base
mkdir -p "$root"
tar -C "$root" -xf "$base/base.tar"
home=root
if [ $user != root ]; then
    home=home/$user
    chroot "$root" useradd -m -s /bin/bash $user
fi
carry_over
if [ $user != root ]; then
    chroot "$root" sh -c 'apt-get update -q && apt-get install -y -q sudo' >/dev/null </dev/null
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
fi
git clone --quiet --no-hardlinks . "$root/$home/docmill"
[ $user = root ] || chroot "$root" chown -R $user:$user "/$home"
mkdir -p "$root/opt/rust"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount --bind -o ro "$(rustc --print sysroot)" "$root/opt/rust"

failed=0
report=()
for command in "$@"; do
    started=$SECONDS
    echo "== $command (bare $suite, $user)"
    if inside "$command"; then verdict=ok; else verdict=FAILED failed=1; fi
    report+=("$(printf '%-7s %4d s  %s' $verdict $((SECONDS - started)) "$command")")
done
echo "== bare $suite, as $user, commit $(git rev-parse --short HEAD)"
printf '%s\n' "${report[@]}"
exit $failed
