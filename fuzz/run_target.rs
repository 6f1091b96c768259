//! Runs one fuzz target, the one that the variable `FUZZ_TARGET` names, under libFuzzer. Part of every
//! program here.

use std::panic::{PanicHookInfo, take_hook};
use std::sync::OnceLock;

/// A target: the bytes of an input are tried on it.
type TargetFunction = fn(&[u8]);

static TARGET: OnceLock<TargetFunction> = OnceLock::new();

/// Chooses among the program's targets. Asked for `list`, it prints their names.
pub(crate) fn prepare(targets: &[(&str, TargetFunction)]) {
    let named = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some((_, run)) = targets.iter().find(|(name, _)| *name == named) else {
        for (name, _) in targets {
            println!("{name}");
        }
        std::process::exit(if named == "list" { 0 } else { 2 });
    };
    TARGET.get_or_init(|| *run);
    // libFuzzer's own hook ends the process at every panic, those of decoders that we catch too.
    drop(take_hook());
    std::panic::set_hook(Box::new(end_at_our_panic));
}

/// Tries one input.
pub(crate) fn try_input(data: &[u8]) {
    TARGET.get().expect("libFuzzer prepares first")(data);
}

/// A panic in other people's code is one that has to be caught: one that is not still ends the
/// process, by unwinding to libFuzzer. Our own code never panics, caught or not.
fn end_at_our_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or("", |place| place.file());
    let theirs = place.contains("/registry/src/") || place.starts_with("/rustc/");
    if !theirs {
        eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}
