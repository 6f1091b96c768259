//! The level of certainty below which documents are flagged, from the documents drawn so far.
//!
//! Candidates are fixed ([`LEVELS`]): choosing among them would be choosing the luckiest. The risk is
//! divided between them, most to the gate as it is, so that all statements hold together (a union
//! bound; Learn then Test, Angelopoulos et al., AOAS 2025). The lowest level that is shown to keep
//! the promise is in force. Every drawn document counts for every level that it reaches, whether or
//! not the level in force flagged it: a document is drawn before that is asked, and none that was not
//! drawn counts. So the level chooses nothing of its own evidence.

use crate::drift::DriftDetector;
use crate::evidence::{self, LookTally};

/// A candidate: the level and its part of the risk.
type LevelCandidate = (f32, f64);

/// The levels that are tried, ascending. 0: the gate as it is.
pub const LEVELS: [LevelCandidate; 4] = [(0.0, 0.5), (0.8, 0.25), (0.9, 0.125), (0.95, 0.125)];
/// The level that flags every document.
pub const FLAG_ALL: f32 = 1.0;
/// The risk that a stated bound does not hold: it holds with a certainty of 95 %.
pub const RISK: f64 = 0.05;

/// The decision about a drawn document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookState {
    /// The data was right.
    Right,
    /// Something in it was wrong.
    Wrong,
    /// It waits to be looked at.
    Open,
    /// It waits for too long. To show a bound it counts as wrong: a document that is put off is more
    /// likely a difficult one.
    Overdue,
}

/// A document that was drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawnDocument {
    /// How certain its data was, 0..1.
    pub certainty: f32,
    /// The decision about it.
    pub look: LookState,
}

/// State of the level that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelState {
    /// The looks do not show the bound yet; the gate is as it is.
    Unproven,
    /// The looks show the bound.
    Shown,
    /// The looks showed that the bound was broken: everything is flagged.
    Broken,
}

impl LevelState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Unproven, Self::Shown, Self::Broken];

    /// The word in the row.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Shown => "shown",
            Self::Broken => "broken",
        }
    }

    /// The inverse of [`LevelState::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }
}

/// The level in force.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelInForce {
    /// For what it is in force.
    pub state: LevelState,
    /// A document that is less certain is flagged; [`FLAG_ALL`]: every one is.
    pub level: f32,
}

impl LevelInForce {
    /// Before the first look: the gate as it is.
    pub const UNPROVEN: Self = Self { state: LevelState::Unproven, level: 0.0 };
    /// After an alarm.
    pub const BROKEN: Self = Self { state: LevelState::Broken, level: FLAG_ALL };
}

/// The result of a judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelJudgement {
    /// The level that is in force from now on.
    pub in_force: LevelInForce,
    /// The look, counted from 0, that gave an alarm: the evidence begins anew behind it.
    pub alarm_at: Option<usize>,
}

/// The looks that count for one level, and its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelEvidence {
    /// The level.
    pub level: f32,
    /// The looks at documents that reach it.
    pub tally: LookTally,
    /// At most so many documents above it are wrong, 0..1, with its part of the risk.
    pub bound: f64,
    /// More looks, all of them right, that show the promise; 0: it is shown; `None`: out of reach.
    pub looks_to_show: Option<u32>,
}

/// Judges the documents drawn since the evidence began, in the order of their drawing. `rate`: the
/// share of errors that was promised not to be exceeded. A level that was shown stays in force until
/// an alarm: the statement is about the whole time.
pub fn judge_level(before: LevelInForce, drawn: &[DrawnDocument], rate: f64) -> LevelJudgement {
    if let Some(at) = find_alarm(before.level, drawn, rate) {
        return LevelJudgement { in_force: LevelInForce::BROKEN, alarm_at: Some(at) };
    }
    let shown =
        LEVELS.iter().find(|(level, part)| is_level_shown(*level, drawn, rate, RISK * part));
    let in_force = match (before.state, shown) {
        (LevelState::Shown, Some((level, _))) if *level >= before.level => before,
        (_, Some((level, _))) => LevelInForce { state: LevelState::Shown, level: *level },
        _ => before,
    };
    LevelJudgement { in_force, alarm_at: None }
}

/// The evidence for each level, for people.
pub fn weigh_levels(drawn: &[DrawnDocument], rate: f64) -> Vec<LevelEvidence> {
    let levels = LEVELS.iter().map(|(level, part)| {
        let tally = countable(drawn).filter(|(certainty, _)| certainty >= level);
        let tally = tally.fold(LookTally::default(), |sum, (_, wrong)| sum.with_look(wrong));
        let (bound, looks_to_show) = (
            evidence::upper_bound(tally, RISK * part),
            evidence::looks_to_show(tally, rate, RISK * part),
        );
        LevelEvidence { level: *level, tally, bound, looks_to_show }
    });
    levels.collect()
}

/// The documents that show a bound, and whether they were wrong: all up to the first that waits, so
/// that those which are easy to decide do not come first.
fn countable(drawn: &[DrawnDocument]) -> impl Iterator<Item = (f32, bool)> {
    let until_open = drawn.iter().take_while(|one| one.look != LookState::Open);
    until_open.map(|one| (one.certainty, one.look != LookState::Right))
}

/// Whether the looks have shown the bound for a level at any moment so far: after each wrong one it is
/// known how many right ones in turn it takes.
fn is_level_shown(level: f32, drawn: &[DrawnDocument], rate: f64, risk: f64) -> bool {
    let mut tally = LookTally::default();
    let mut lacking = evidence::looks_to_show(tally, rate, risk);
    for (_, wrong) in countable(drawn).filter(|(certainty, _)| *certainty >= level) {
        tally = tally.with_look(wrong);
        lacking = match lacking {
            _ if wrong => evidence::looks_to_show(tally, rate, risk),
            Some(looks) => looks.checked_sub(1),
            None => None,
        };
        if lacking == Some(0) {
            return true;
        }
    }
    false
}

/// The document whose look gave an alarm for a level. Where everything is flagged there is none.
fn find_alarm(level: f32, drawn: &[DrawnDocument], rate: f64) -> Option<usize> {
    if level >= FLAG_ALL {
        return None;
    }
    let mut detector = DriftDetector::new(rate);
    drawn.iter().position(|one| match one.look {
        _ if one.certainty < level => false,
        LookState::Right => detector.add_look(false),
        LookState::Wrong => detector.add_look(true),
        LookState::Open | LookState::Overdue => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(count: usize, certainty: f32, look: LookState) -> Vec<DrawnDocument> {
        vec![DrawnDocument { certainty, look }; count]
    }

    fn judged(before: LevelInForce, parts: &[Vec<DrawnDocument>]) -> LevelJudgement {
        judge_level(before, &parts.concat(), 0.01)
    }

    #[test]
    fn the_lowest_level_that_the_looks_show_is_in_force_and_without_enough_none() {
        use LookState::{Open, Overdue, Right, Wrong};
        let shown = |level| LevelInForce { state: LevelState::Shown, level };
        for (parts, expected) in [
            (vec![], LevelInForce::UNPROVEN),
            (vec![looks(400, 0.96, Right)], LevelInForce::UNPROVEN),
            (vec![looks(455, 0.5, Right)], shown(0.0)),
            (vec![looks(454, 0.5, Right)], LevelInForce::UNPROVEN),
            // Errors below a level are none above it.
            (
                [looks(300, 0.85, Right), looks(1, 0.7, Wrong), looks(300, 0.85, Right)]
                    .into_iter()
                    .chain([looks(1, 0.7, Wrong), looks(300, 0.85, Right)])
                    .collect(),
                shown(0.8),
            ),
            // One that waits ends the count, one that waits for too long is counted as wrong.
            (vec![looks(1, 0.9, Open), looks(900, 0.9, Right)], LevelInForce::UNPROVEN),
            (vec![looks(3, 0.96, Overdue), looks(500, 0.96, Right)], LevelInForce::UNPROVEN),
        ] {
            let found = judged(LevelInForce::UNPROVEN, &parts);
            let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
            assert_eq!((found.in_force, found.alarm_at), (expected, None), "{counts:?}");
        }
    }

    #[test]
    fn a_shown_level_stays_until_an_alarm_and_an_alarm_flags_everything() {
        use LookState::{Right, Wrong};
        let shown = LevelInForce { state: LevelState::Shown, level: 0.8 };
        assert_eq!(judged(shown, &[]).in_force, shown, "the evidence may have been erased");
        let below = judged(shown, &[looks(50, 0.7, Wrong)]);
        assert_eq!(below, LevelJudgement { in_force: shown, alarm_at: None });
        let found = judged(shown, &[looks(300, 0.9, Right), looks(50, 0.9, Wrong)]);
        assert_eq!(found.in_force, LevelInForce::BROKEN);
        assert!(found.alarm_at.is_some_and(|at| (301..310).contains(&at)), "{found:?}");
        // The gate that was never shown can be broken as well, and heals by right looks alone.
        assert_eq!(judged(LevelInForce::UNPROVEN, &[looks(9, 0.9, Wrong)]).in_force.level, 1.0);
        assert_eq!(judged(LevelInForce::BROKEN, &[looks(99, 0.9, Wrong)]).alarm_at, None);
        let healed = judged(LevelInForce::BROKEN, &[looks(455, 0.9, Right)]).in_force;
        assert_eq!(healed, LevelInForce { level: 0.0, ..shown });
    }

    #[test]
    fn the_evidence_of_each_level_says_how_many_looks_are_lacking() {
        let weighed = weigh_levels(&looks(100, 0.85, LookState::Right), 0.01);
        let found: Vec<_> = weighed.iter().map(|it| (it.level, it.tally.looks)).collect();
        assert_eq!(found, [(0.0, 100), (0.8, 100), (0.9, 0), (0.95, 0)]);
        assert_eq!(weighed[0].looks_to_show, Some(355));
        assert!(weighed[0].bound < weighed[1].bound && weighed[3].bound > 0.99, "{weighed:?}");
    }

    #[test]
    fn the_parts_of_the_risk_make_all_of_it_and_every_state_reads_back() {
        assert!((LEVELS.iter().map(|(_, part)| part).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(LEVELS.is_sorted_by(|one, other| one.0 < other.0));
        for state in LevelState::ALL {
            assert_eq!(LevelState::from_code(state.code()), Some(state));
        }
    }
}
