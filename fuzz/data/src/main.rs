//! The targets that open no document.
#![no_main]

#[path = "../../run_target.rs"]
mod run_target;
mod targets;

libfuzzer_sys::fuzz_target!(
    init: run_target::prepare(&targets::TARGETS),
    |data: &[u8]| run_target::try_input(data)
);
