//! An end to what the gate compares. Most checks look at everything once; some look at all of the
//! text for each of many values, or at all rows for each of many entries. An honest document never
//! comes near the end of this; one that is made to is left to a person.

use std::cell::Cell;

/// Bytes, numbers or rows that may still be looked at.
#[derive(Debug)]
pub(super) struct WorkBudget {
    left: Cell<u64>,
}

impl WorkBudget {
    /// So many looks.
    pub(super) fn new(looks: u64) -> Self {
        Self { left: Cell::new(looks) }
    }

    /// Takes so many looks; `false`, and nothing is left then, if there are fewer.
    pub(super) fn spend(&self, looks: usize) -> bool {
        let rest = self.left.get().checked_sub(u64::try_from(looks).unwrap_or(u64::MAX));
        self.left.set(rest.unwrap_or(0));
        rest.is_some()
    }

    /// Looks that are left.
    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }
}
