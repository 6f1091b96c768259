//! `[silent_errors]`: the bound on errors in documents that nobody was asked to look at, by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The strictest bound that can be shown by looking: 1 in so many.
const MAX_ONE_IN: u32 = 10_000;
/// The loosest: below it nothing needs to be shown.
const MIN_ONE_IN: u32 = 10;

/// The promise, and what it may cost in looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SilentErrorsConfig {
    /// By kind: at most 1 in so many of its unflagged documents is wrong, with a certainty of 95 %.
    /// A kind without a number has no bound: none of its documents is drawn.
    pub at_most_one_in: BTreeMap<String, u32>,
    /// The share of unflagged documents that is drawn for a look, above 0 to 1.
    pub share: f64,
    /// At most about so many of a tenant's documents of one kind and reader are drawn in a day (UTC).
    pub draws_per_day: u32,
    /// Fields of which a correction does not count as an error.
    pub uncounted: Vec<String>,
}

impl Default for SilentErrorsConfig {
    fn default() -> Self {
        Self {
            at_most_one_in: BTreeMap::new(),
            share: 0.05,
            draws_per_day: 20,
            uncounted: Vec::new(),
        }
    }
}

impl SilentErrorsConfig {
    /// The bound of a kind; `None`: it has none.
    pub fn one_in(&self, kind: &str) -> Option<u32> {
        // Variables of the environment come in small letters.
        let mut bounds = self.at_most_one_in.iter();
        bounds.find(|(name, _)| name.eq_ignore_ascii_case(kind)).map(|(_, one_in)| *one_in)
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        for (kind, one_in) in &self.at_most_one_in {
            if !(MIN_ONE_IN..=MAX_ONE_IN).contains(one_in) {
                problems.push(format!(
                    "silent_errors.at_most_one_in.{kind} must be from {MIN_ONE_IN} to {MAX_ONE_IN}"
                ));
            }
        }
        if !(self.share > 0.0 && self.share <= 1.0) {
            problems.push("silent_errors.share must be above 0 and at most 1".to_owned());
        }
        if self.draws_per_day == 0 {
            problems.push(
                "silent_errors.draws_per_day must be at least 1: without draws no bound is shown; \
                 take the kind out of silent_errors.at_most_one_in instead"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_looks_cannot_show_is_refused() {
        let bound = |one_in| SilentErrorsConfig {
            at_most_one_in: BTreeMap::from([("invoice".to_owned(), one_in)]),
            ..SilentErrorsConfig::default()
        };
        for (config, found) in [
            (SilentErrorsConfig::default(), 0),
            (bound(200), 0),
            (bound(9), 1),
            (bound(10_001), 1),
            (SilentErrorsConfig { share: 0.0, ..bound(100) }, 1),
            (SilentErrorsConfig { share: f64::NAN, ..bound(100) }, 1),
            (SilentErrorsConfig { draws_per_day: 0, ..bound(100) }, 1),
        ] {
            let mut problems = Vec::new();
            config.collect_problems(&mut problems);
            assert_eq!(problems.len(), found, "{config:?}");
        }
        assert_eq!((bound(100).one_in("Invoice"), bound(100).one_in("receipt")), (Some(100), None));
    }
}
