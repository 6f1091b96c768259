#!/bin/sh
# Cargo's RUSTC_WRAPPER for fuzzing: the compiler counts the branches of our own crates and notes
# what they compare. Stable compilers have these passes of LLVM, which is all that libFuzzer needs;
# what others wrote is compiled as ever.
ours=
for word in "$@"; do
    case "$word" in docmill*) ours=yes ;; esac
done
[ -n "$ours" ] || exec "$@"
exec "$@" -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
