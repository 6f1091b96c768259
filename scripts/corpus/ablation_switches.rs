//! Run-time switches that scripts/corpus/ablate.py puts into predicates. A switch records whether it
//! matters for the document at hand, and takes its predicate out while it is off.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const COUNT: usize = 20_000;
pub static OFF: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
pub static PASSED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

fn is_off(site: usize) -> bool {
    PASSED[site].store(true, Relaxed);
    OFF[site].load(Relaxed)
}

/// An operand of `&&`, or the condition of a filter: true while it is off.
pub fn and(site: usize, holds: bool) -> bool {
    holds || is_off(site)
}

/// An operand of `||`, or the condition of an `if`: false while it is off.
pub fn or(site: usize, holds: bool) -> bool {
    holds && !is_off(site)
}

/// An `if let`: not taken while it is off.
pub fn branch(site: usize) -> bool {
    !is_off(site)
}

/// A function: returns at once while it is off.
pub fn entry(site: usize) -> bool {
    is_off(site)
}

/// A fallback: none while it is off.
pub fn option<T>(site: usize, value: impl FnOnce() -> Option<T>) -> Option<T> {
    value().filter(|_| !is_off(site))
}

/// Further candidates: none while it is off.
pub fn chain<I: IntoIterator>(site: usize, items: I) -> impl Iterator<Item = I::Item> {
    items.into_iter().filter(move |_| !is_off(site))
}
