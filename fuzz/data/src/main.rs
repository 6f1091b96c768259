//! Runs one fuzz target, the one that the variable `FUZZ_TARGET` names, under libFuzzer.
#![no_main]

mod targets;

use std::panic::{PanicHookInfo, take_hook};
use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        choose_target();
        // libFuzzer's own hook ends the process at every panic, those of decoders that we catch too.
        drop(take_hook());
        std::panic::set_hook(Box::new(end_at_our_panic));
    },
    |data: &[u8]| TARGET.get_or_init(choose_target)(data)
);

fn choose_target() -> fn(&[u8]) {
    let named = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = targets::TARGETS.iter().find(|(name, _)| *name == named);
    let Some((_, run)) = target else {
        for (name, _) in targets::TARGETS {
            println!("{name}");
        }
        std::process::exit(if named == "list" { 0 } else { 2 });
    };
    *run
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
