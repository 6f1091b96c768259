#!/usr/bin/env bash
# Builds the image from the Dockerfile without a Docker daemon, starts it as a strict platform would
# (not root, read-only root file system, no /tmp, no capabilities), lets it read three documents of
# samples/ against Moto and a private Postgres, stops it by SIGTERM and says what it weighs.
#
#   scripts/image.sh                    compiles in the build stage, as `docker build` does
#   scripts/image.sh --binary PATH      with a docmill that was compiled on the Debian of the base
#   scripts/image.sh --keep             leaves the image and its layers where they are
#
# Exit code 1 if anything of that fails, or above 270 MB. Needs root, the network, and what
# `scripts/setup.sh proof` installs. The base images are made here,
# by debootstrap and from this machine's Rust toolchain: no registry of images is asked.
# IMAGE_STORE names the folder (a few GB).
set -euo pipefail
cd "$(dirname "$0")/.."

most=270000000
suite=trixie
store="${IMAGE_STORE:-/var/tmp/docmill-image}"
tag=localhost/docmill:check
base=localhost/debian:$suite-slim
toolchain=localhost/docmill-toolchain:$suite
samples=(invoice_en.pdf scan_skewed.pdf einvoice_facturx.pdf)
binary=
keep=

say() { printf 'image: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

while [ $# -gt 0 ]; do
    case "$1" in
        --binary)
            binary=$(realpath "$2")
            shift
            ;;
        --keep) keep=yes ;;
        *) die "unknown argument $1: see the head of this script" ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || die "needs root (debootstrap, mounts)"
for program in buildah debootstrap python3; do
    command -v $program >/dev/null || die "needs $program: scripts/setup.sh proof"
done
[ -x target/tools/moto/bin/moto_server ] || die "needs Moto: scripts/setup.sh test"

layers() {
    buildah --root "$store/layers" --runroot "$store/run" --storage-driver "${IMAGE_DRIVER:-overlay}" "$@"
}

has() { layers inspect --type image "$1" >/dev/null 2>&1; }

# Like the official slim image: a minimal Debian without caches, of documentation the copyrights.
make_base() {
    ! has $base || return 0
    say "making $base"
    local root="$store/rootfs" made
    [ -f "$store/rootfs.done" ] || {
        rm -rf --one-file-system "$root"
        debootstrap --variant=minbase $suite "$root" >"$store/debootstrap.log"
        touch "$store/rootfs.done"
    }
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* \
        "$root"/usr/share/{man,locale,info}/*
    find "$root/usr/share/doc" -type f ! -name copyright -delete
    made=$(layers from scratch)
    layers add -q "$made" "$root" / >/dev/null
    layers config --cmd bash \
        --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$made"
    layers commit -q --rm "$made" $base >/dev/null
    rm -rf --one-file-system "$root" "$store/rootfs.done"
}

# The base with this machine's Rust, and the certificates by which cargo reaches its registry here.
make_toolchain() {
    ! has $toolchain || return 0
    say "making $toolchain"
    local made
    made=$(layers from --pull-never $base)
    layers add -q "$made" "$(rustc --print sysroot)" /usr/local/rust >/dev/null
    layers add -q "$made" /etc/ssl/certs/ca-certificates.crt /usr/local/rust/roots.crt >/dev/null
    layers config --env CARGO_HOME=/usr/local/cargo --env CARGO_HTTP_CAINFO=/usr/local/rust/roots.crt \
        --env PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "$made"
    layers commit -q --rm "$made" $toolchain >/dev/null
}

# Everything that git knows of, so that the context is that of a clone.
make_context() {
    context=$(mktemp -d "$store/context.XXXXXX")
    git ls-files --cached --others --exclude-standard -z |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar --null --files-from=- --create | tar --extract --directory "$context"
    scripts/models.sh
    cp -r target/tools/ocr-models "$context/models.given"
    [ -n "$binary" ] || return 0
    cp "$binary" "$context/docmill.given"
    scripts/image_crates.sh >"$context/docmill.given.crates"
}

build() {
    local arguments=(--build-arg "VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
        --build-arg "REVISION=$(git rev-parse HEAD)" --build-arg BASE_IMAGE=$base
        --build-arg MODELS=models.given)
    if [ -n "$binary" ]; then
        arguments+=(--build-arg RUST_IMAGE=$base --build-arg BINARY=docmill.given)
    else
        arguments+=(--build-arg RUST_IMAGE=$toolchain)
    fi
    # HEALTHCHECK is part of Docker's format only.
    layers bud --isolation chroot --pull-never --format docker --layers \
        "${arguments[@]}" -t $tag -f Dockerfile "$context"
}

# start VARIABLE... -- ARGUMENT...: runs the image with those arguments until it ends.
start() {
    local variables=()
    while [ "$1" != -- ]; do
        variables+=(--env "$1")
        shift
    done
    layers inspect --type image $tag | scripts/image_run.py "$root" "${variables[@]}" \
        --read-only "$PWD/samples:/samples" "$@"
}

# inside COMMAND...: in the running worker, as `docker exec` does.
inside() {
    layers inspect --type image $tag |
        scripts/image_run.py "$root" --enter "$first" --env "$address" -- "$@"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# until SECONDS COMMAND...: tries until it succeeds.
until_well() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.2
    done
}

ends() {
    psql --no-psqlrc --quiet --tuples-only --no-align "$DOCMILL_TEST_DATABASE_URL" -c "
        SELECT json_build_object('file', original_name, 'status', status, 'reason', reason,
            'supplier', i.structured_data->>'supplier_name',
            'number', i.structured_data->>'invoice_number', 'total', i.structured_data->>'total')
        FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id
        WHERE status <> 'in-progress'"
}

all_ended() { [ "$(ends | wc -l)" = ${#samples[@]} ]; }

# Inside scripts/with_postgres.sh.
try() {
    local port endpoint queue settings code=0 paths=() sample
    port=$(free_port)
    endpoint=http://127.0.0.1:$port
    target/tools/moto/bin/moto_server -H 127.0.0.1 -p "$port" >"$store/moto.log" 2>&1 &
    moto=$!
    until_well 60 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" || die "Moto does not start"
    queue=$(target/tools/moto/bin/python deploy/kubernetes/overlays/local/aws_stand_in.py "$endpoint" documents)
    address=DOCMILL__WORKER__ADDRESS=127.0.0.1:$(free_port)
    settings=(AWS_ACCESS_KEY_ID=stand-in AWS_SECRET_ACCESS_KEY=stand-in AWS_REGION=us-east-1
        "DOCMILL__DATABASE__URL=$DOCMILL_TEST_DATABASE_URL"
        "DOCMILL__QUEUE__URL=$queue" "DOCMILL__QUEUE__ENDPOINT=$endpoint"
        DOCMILL__STORE__BUCKET=documents "DOCMILL__STORE__ENDPOINT=$endpoint"
        DOCMILL__STORE__PATH_STYLE=true "$address")
    start "${settings[@]}" -- migrate
    start "${settings[@]}" -- worker >"$store/worker.log" 2>&1 &
    worker=$!
    until_well 120 knows_first || die "the container does not start: $(tail -3 "$store/worker.log")"
    first=$(first_process)
    until_well 120 inside docmill healthcheck ||
        die "the worker does not become well: $(tail -3 "$store/worker.log")"
    say "well; runs as $(inside id -u):$(inside id -g), process 1 is $(inside cat /proc/1/comm)"
    ! inside touch /written 2>/dev/null || die "the root can be written to"
    ! inside touch /tmp/written 2>/dev/null || die "/tmp can be written to"
    for sample in "${samples[@]}"; do paths+=("/samples/$sample"); done
    start "${settings[@]}" -- submit "${paths[@]}"
    until_well 240 all_ended || die "not every document ended: $(ends)"
    ends >"$store/ends.json"
    {
        head -1 samples/EXPECT.tsv
        for sample in "${samples[@]}"; do grep "^$sample" samples/EXPECT.tsv; done
    } >"$store/expect.tsv"
    python3 scripts/compare_ends.py "$store/expect.tsv" "$store/ends.json"
    say "resident memory in MB: $(resident)"
    say "processes that nobody reaped: $(inside sh -c 'cat /proc/[0-9]*/stat' | grep -c ') Z ' || true)"
    local asked=$SECONDS
    kill -TERM "$first"
    wait "$worker" || code=$?
    [ $code = 0 ] || die "exit code $code after SIGTERM: $(tail -3 "$store/worker.log")"
    say "drained after SIGTERM in $((SECONDS - asked)) s, exit code 0"
}

# The container's first process, tini: the only child of the unshare that the worker was started by.
first_process() { pgrep --parent "$worker" -x tini || pgrep --parent "$(pgrep --parent "$worker" -x unshare)" -x tini; }
knows_first() { [ -n "$(first_process)" ]; }

# The worker, then its page processes.
resident() {
    inside sh -c 'for each in /proc/[0-9]*; do
        tr "\\0" " " <$each/cmdline; grep VmRSS $each/status; echo; done' |
        awk '/^docmill worker|page-process/ { printf "%s %d, ", /page-process/ ? "page process" : "worker", $(NF - 1) / 1000 }'
}

# A file with several names counts once.
bytes() {
    find "$@" -type f -printf '%i %s\n' | sort -u | awk '{ all += $2 } END { print all + 0 }'
}

# Failpoints of tests (crates/pipeline/src/failpoint.rs) are in no program that is shipped.
refuse_failpoints() {
    if grep --quiet --text DOCMILL_FAILPOINTS "$root/usr/local/bin/docmill"; then
        say "the program in the image has failpoints: it was built with debug assertions"
        exit 1
    fi
}

weigh() {
    local all from_base program languages libraries weights metadata
    refuse_failpoints
    all=$(bytes "$root")
    from_base=$(bytes "$base_root")
    program=$(bytes "$root/usr/local/bin/docmill")
    languages=$(bytes "$root/usr/share/tesseract-ocr")
    libraries=$(($(bytes "$root/usr/lib") - $(bytes "$base_root/usr/lib")))
    weights=$(bytes "$root/usr/local/share/docmill")
    metadata=$((all - from_base - program - languages - libraries - weights))
    echo "part               MB"
    local row
    for row in "base $from_base" "docmill $program" "libraries $libraries" \
        "languages $languages" \
        "weights $weights" "records,tini,roots $metadata" "all $all"; do
        awk '{ printf "%-18s %6.1f\n", $1, $2 / 1e6 }' <<<"$row"
    done
    python3 - "$root/usr/share/doc/docmill/sbom.cdx.json" <<'PYTHON'
import json, sys
parts = json.load(open(sys.argv[1], encoding="utf-8"))["components"]
kinds = [part["purl"].split("/")[0] for part in parts]
print(f"list of parts: {kinds.count('pkg:deb')} Debian packages, {kinds.count('pkg:cargo')} crates")
PYTHON
    [ "$all" -le $most ] || die "the image has $all bytes, more than $most"
}

if [ "${IMAGE_TRIAL:-}" ]; then
    moto= worker= first= address=
    end_trial() {
        local code=$?
        [ -z "$moto" ] || kill "$moto" 2>/dev/null || true
        [ -z "$first" ] || kill -KILL "$first" 2>/dev/null || true
        exit $code
    }
    trap end_trial EXIT
    root=$IMAGE_TRIAL
    try
    exit 0
fi

mkdir -p "$store"
context= mounted=
clean() {
    [ -z "$context" ] || rm -rf "$context"
    [ -z "$mounted" ] || layers rm $mounted >/dev/null
    [ -n "$keep" ] || layers rmi $tag >/dev/null 2>&1 || true
}
trap clean EXIT
make_base
[ -n "$binary" ] || make_toolchain
make_context
build
made=$(layers from --pull-never $tag)
plain=$(layers from --pull-never $base)
mounted="$made $plain"
root=$(layers mount "$made")
base_root=$(layers mount "$plain")
IMAGE_TRIAL=$root scripts/with_postgres.sh "$0" ${keep:+--keep}
weigh
