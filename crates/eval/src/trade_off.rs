//! The documents that each level of certainty passes, and those it sends to a person needlessly.
//!
//! A document is sent to a person if a rule other than that of certainty fails, or if a field is
//! less certain than the level. Beside it, the same for each single reason: a reason that mostly
//! flags right documents is worthless. No level is chosen here.

use serde::Serialize;

/// The levels that are shown.
const LEVELS: [f32; 9] = [0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98];

/// One document, as far as flags go.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlagCase {
    /// Every scored field outside lists is right.
    pub(super) right: bool,
    /// The least certainty of a field.
    pub(super) certainty: f32,
    /// Another rule sends it to a person, or it was refused.
    pub(super) otherwise: bool,
}

/// The consequences of a level of certainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FlagTradeOff {
    /// A field below this certainty sends its document to a person.
    pub level: f32,
    /// Documents that nobody is asked to look at.
    pub unflagged: usize,
    /// Of those, how many have a wrong field.
    pub errors: usize,
    /// Documents that are all right.
    pub right: usize,
    /// Of those, how many are sent to a person.
    pub right_flagged: usize,
}

impl FlagTradeOff {
    /// The curve over all levels; empty without documents that were weighed.
    pub(super) fn measure_levels(cases: &[FlagCase]) -> Vec<Self> {
        if cases.is_empty() {
            return Vec::new();
        }
        LEVELS.into_iter().map(|level| Self::measure_level(cases, level)).collect()
    }

    fn measure_level(cases: &[FlagCase], level: f32) -> Self {
        let flagged = |case: &&FlagCase| case.otherwise || case.certainty < level;
        let unflagged: Vec<&FlagCase> = cases.iter().filter(|case| !flagged(case)).collect();
        Self {
            level,
            unflagged: unflagged.len(),
            errors: unflagged.iter().filter(|case| !case.right).count(),
            right: cases.iter().filter(|case| case.right).count(),
            right_flagged: cases.iter().filter(|case| case.right && flagged(case)).count(),
        }
    }
}

/// How many documents one reason sent to a person, or kept from being completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FlagReasonCount {
    /// Documents with a wrong field.
    pub wrong: usize,
    /// Documents that are all right.
    pub right: usize,
    /// Of those, how many have no other reason.
    pub right_alone: usize,
}

impl FlagReasonCount {
    /// Counts one document; `right`: every scored field outside lists is, `None` if none is known.
    pub(super) fn add(&mut self, right: Option<bool>, alone: bool) {
        self.wrong += usize::from(right == Some(false));
        self.right += usize::from(right == Some(true));
        self.right_alone += usize::from(right == Some(true) && alone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_level_lets_fewer_errors_through_and_flags_more_that_is_right() {
        let case = |right, certainty, otherwise| FlagCase { right, certainty, otherwise };
        let cases = [
            case(true, 0.99, false),
            case(true, 0.6, false),
            case(false, 0.75, false),
            case(false, 0.99, true),
        ];
        let curve = FlagTradeOff::measure_levels(&cases);
        let at = |level: f32| *curve.iter().find(|one| one.level == level).unwrap();
        assert_eq!((at(0.0).unflagged, at(0.0).errors, at(0.0).right_flagged), (3, 1, 0));
        assert_eq!((at(0.7).unflagged, at(0.7).errors, at(0.7).right_flagged), (2, 1, 1));
        assert_eq!((at(0.9).unflagged, at(0.9).errors, at(0.9).right_flagged), (1, 0, 1));
        assert!(FlagTradeOff::measure_levels(&[]).is_empty());
    }
}
