//! One number for how likely the data is right, 0..1: for ordering a review queue and for a
//! threshold, beside the rules and never instead of them.
//!
//! A logistic model whose terms are the rules themselves: each rule that fails takes its weight off
//! the log-odds, once, however many fields fail it; doubtful letters under the values take some
//! more. `docmill eval` measures how well the number ranks (area under the ROC curve) and how far
//! it is from the share of right results (expected calibration error), and prints the straight line
//! that would fit better. The constants are fitted by `scripts/corpus/fit_score.py` to errors put into
//! known truth, right and faulty data in equal parts: where a reader errs less often than that,
//! data that a rule objects to is right more often than the score says. The reader's own confidence
//! enters only through its rule.

use super::{GateFinding, PageRegion};
use crate::kinds::{Kind, RuleConsequence};

/// Log-odds of data that no rule objects to.
const CERTAINTY: f32 = 3.4;
/// Loss of score by a rule without a weight of its own.
const REFUSED: f32 = 5.8;
const FLAGGED: f32 = 5.0;
/// Loss of score by values of no confidence at all. Errors injected into native text give no
/// estimate. The number is chosen so that such values alone require a person when letters are as
/// likely wrong as right.
const ILLEGIBLE: f32 = 5.8;

/// The score of a verdict with these findings. `places`: where the values stand that were found.
pub(super) fn verdict_score(kind: &Kind, findings: &[GateFinding], places: &[PageRegion]) -> f32 {
    let mut log_odds = CERTAINTY;
    let mut counted: Vec<&str> = Vec::new();
    for rule in &kind.rules {
        // Of rules that share a name the graver counts, and once.
        let failed =
            findings.iter().any(|it| it.rule == rule.name && it.consequence == rule.consequence);
        if counted.contains(&rule.name.as_str()) || !failed {
            continue;
        }
        counted.push(&rule.name);
        let usual = if rule.consequence == RuleConsequence::Flag { FLAGGED } else { REFUSED };
        log_odds -= rule.weight.unwrap_or(usual);
    }
    let least = places.iter().map(|place| place.confidence).fold(1.0, f32::min);
    log_odds -= ILLEGIBLE * (1.0 - least.clamp(0.0, 1.0));
    1.0 / (1.0 + (-log_odds).exp())
}
