//! Expanded names as numbers, so that a step of a path compares integers.

use std::collections::HashMap;

/// Number of an expanded name that occurs in the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameId(u32);

impl NameId {
    /// Every name that no rule has.
    pub(crate) const FOREIGN: Self = Self(u32::MAX);

    /// The number as an index.
    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// The expanded names that occur in a set of rules.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// By namespace, then by local name.
    numbers: HashMap<String, HashMap<String, NameId>>,
    count: u32,
}

impl NameTable {
    /// The number of a name, given on its first call.
    pub(crate) fn intern(&mut self, namespace: &str, local: &str) -> NameId {
        if let Some(known) = self.numbers.get(namespace).and_then(|it| it.get(local)) {
            return *known;
        }
        let number = NameId(self.count);
        self.count = self.count.saturating_add(1);
        let names = self.numbers.entry(namespace.to_owned()).or_default();
        names.insert(local.to_owned(), number);
        number
    }

    /// Names so far.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// The number of a name; [`NameId::FOREIGN`] for one that no rule has.
    pub(crate) fn find(&self, namespace: Option<&str>, local: &str) -> NameId {
        let names = self.numbers.get(namespace.unwrap_or_default());
        names.and_then(|it| it.get(local)).copied().unwrap_or(NameId::FOREIGN)
    }
}
