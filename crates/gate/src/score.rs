//! One number for how likely the data is right, 0..1: for ordering a review queue and for a
//! threshold, beside the rules and never instead of them.
//!
//! A logistic model whose terms are the rules themselves: each rule that fails takes its weight off
//! the log-odds, once, however many fields fail it; doubtful letters under the values take some
//! more. `docmill eval` measures how well the number ranks (area under the ROC curve) and how far
//! it is from the share of right results (expected calibration error), and prints the straight line
//! that would fit better. The weights, `config/score.toml`, are fitted by
//! `scripts/corpus/fit_score.py` to errors put into known truth, right and faulty data in equal
//! parts: where a reader errs less often than that, data that a rule objects to is right more often
//! than the score says. The reader's own confidence enters only through its rule.

use std::sync::LazyLock;

use serde::Deserialize;

use super::{GateFinding, PageRegion};
use crate::kinds::{Kind, RuleConsequence};

const FILE: &str = include_str!("../../../config/score.toml");

/// The log-odds that the score adds up; the file explains each.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreWeights {
    certainty: f32,
    refused: f32,
    flagged: f32,
    illegible: f32,
}

static WEIGHTS: LazyLock<ScoreWeights> = LazyLock::new(|| {
    // A test asserts that the file parses.
    toml::from_str(FILE).unwrap_or_default()
});

/// The score of a verdict with these findings. `places`: where the values stand that were found.
pub(super) fn verdict_score(kind: &Kind, findings: &[GateFinding], places: &[PageRegion]) -> f32 {
    let weights = &*WEIGHTS;
    let mut log_odds = weights.certainty;
    let mut counted: Vec<&str> = Vec::new();
    for rule in &kind.rules {
        // Of rules that share a name the graver counts, and once.
        let failed =
            findings.iter().any(|it| it.rule == rule.name && it.consequence == rule.consequence);
        if counted.contains(&rule.name.as_str()) || !failed {
            continue;
        }
        counted.push(&rule.name);
        let flags = rule.consequence == RuleConsequence::Flag;
        let usual = if flags { weights.flagged } else { weights.refused };
        log_odds -= rule.weight.unwrap_or(usual);
    }
    let least = places.iter().map(|place| place.confidence).fold(1.0, f32::min);
    log_odds -= weights.illegible * (1.0 - least.clamp(0.0, 1.0));
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_weights_parses_and_each_takes_certainty_off() {
        let weights: ScoreWeights = toml::from_str(FILE).unwrap();
        let ScoreWeights { certainty, refused, flagged, illegible } = weights;
        assert!([certainty, refused, flagged, illegible].iter().all(|weight| *weight > 0.0));
    }
}
