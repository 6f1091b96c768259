#!/usr/bin/env bash
# The crates that the program is linked with, one `name version licence` a line, for the list of
# parts in the image. Ours is not among them.
set -euo pipefail
cd "$(dirname "$0")/.."
# Some crates write an OR as a slash, which is no SPDX expression. Blanks of licences come as `_`.
cargo tree --locked --package docmill --edges normal --prefix none --format '{p}|{l}' |
    sed 's/ (proc-macro)//; s/ (\*)$//' |
    awk -F '|' '
        {
            split($1, part, " ")
            if (part[1] ~ /^docmill(-|$)/) next
            sub(/^v/, "", part[2])
            gsub(/ *\/ */, " OR ", $2)
            gsub(/ +/, "_", $2)
            print part[1], part[2], $2
        }' |
    sort -u
