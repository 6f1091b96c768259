//! How well a score separates right results from wrong ones, and its calibration as a probability.
//!
//! Area under the ROC curve: the chance that a right result scores above a wrong one, ties half
//! (Mann-Whitney). Expected calibration error: over bins of equal width, the mean distance between
//! mean score and share of right ones, weighted by size (Naeini et al., AAAI 2015). The straight
//! line in log-odds that fits best is Platt's (1999), found by Newton's method.

use serde::Serialize;

/// Bins of the calibration error and its plot.
const BINS: usize = 10;

/// A result: its score and whether it was right.
pub type ScoredResult = (f64, bool);

/// The quality of a set of scores.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ScoreCalibration {
    /// Results that have a score.
    pub results: usize,
    /// Right ones among them.
    pub right: usize,
    /// 0..1; 0.5 is a coin. None if all are right or all are wrong.
    pub auroc: Option<f64>,
    /// 0..1; 0 is honest.
    pub expected_error: Option<f64>,
    /// Bins that hold a result, ascending.
    pub bins: Vec<CalibrationBin>,
    /// Log-odds of being right = offset + slope × log-odds of the score. Offset 0 and slope 1: the
    /// score needs no correction. None if there is too little to fit.
    pub fit: Option<LogOddsFit>,
}

/// Results of about one score.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrationBin {
    /// Least score of the bin.
    pub from: f64,
    /// Number of results in the bin.
    pub results: usize,
    /// Mean score of those results.
    pub score: f64,
    /// Share of right ones.
    pub right: f64,
}

/// A line in log-odds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LogOddsFit {
    /// At a score of one half.
    pub offset: f64,
    /// Below 1: the score is too sure of itself.
    pub slope: f64,
}

impl ScoreCalibration {
    /// Measures how well the scores of these results tell right from wrong.
    pub fn from_results(results: &[ScoredResult]) -> Self {
        let right = results.iter().filter(|(_, right)| *right).count();
        let bins = make_bins(results);
        let errors = bins.iter().map(|bin| (bin.score - bin.right).abs() * bin.results as f64);
        let error = errors.sum::<f64>() / results.len() as f64;
        let expected_error = (!results.is_empty()).then_some(error);
        let (results, auroc, fit) = (results.len(), auroc(results), fit_log_odds(results));
        Self { results, right, auroc, expected_error, bins, fit }
    }
}

/// Area under the ROC curve, by ranks; equal scores share their mean rank.
pub fn auroc(results: &[ScoredResult]) -> Option<f64> {
    let right = results.iter().filter(|(_, right)| *right).count();
    let wrong = results.len() - right;
    if right == 0 || wrong == 0 {
        return None;
    }
    let mut sorted = results.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut below) = (0.0, 0);
    for tied in sorted.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let rank = below as f64 + (tied.len() as f64 + 1.0) / 2.0;
        ranks += rank * tied.iter().filter(|(_, right)| *right).count() as f64;
        below += tied.len();
    }
    let (right, wrong) = (right as f64, wrong as f64);
    Some((ranks - right * (right + 1.0) / 2.0) / (right * wrong))
}

fn make_bins(results: &[ScoredResult]) -> Vec<CalibrationBin> {
    let width = 1.0 / BINS as f64;
    let bins = (0..BINS).filter_map(|index| {
        let from = index as f64 * width;
        let last = index + 1 == BINS;
        let own: Vec<&ScoredResult> = results
            .iter()
            .filter(|(score, _)| *score >= from && (*score < from + width || last))
            .collect();
        let count = own.len() as f64;
        let score = own.iter().map(|(score, _)| score).sum::<f64>() / count;
        let right = own.iter().filter(|(_, right)| *right).count() as f64 / count;
        (!own.is_empty()).then_some(CalibrationBin { from, results: own.len(), score, right })
    });
    bins.collect()
}

/// Fewest results of each sort that a line is fitted to.
const MIN_RESULTS: usize = 5;

fn fit_log_odds(results: &[ScoredResult]) -> Option<LogOddsFit> {
    let right = results.iter().filter(|(_, right)| *right).count();
    let wrong = results.len() - right;
    if right < MIN_RESULTS || wrong < MIN_RESULTS {
        return None;
    }
    // Platt's targets keep a perfect separation finite.
    let (high, low) = ((right as f64 + 1.0) / (right as f64 + 2.0), 1.0 / (wrong as f64 + 2.0));
    let points: Vec<(f64, f64)> = results
        .iter()
        .map(|(score, right)| (log_odds(*score), if *right { high } else { low }))
        .collect();
    let (mut offset, mut slope) = (0.0, 1.0);
    for _ in 0..100 {
        // A little curvature of its own keeps the step defined where all scores are alike.
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 1e-6, 0.0, 1e-6);
        for (x, target) in &points {
            let p = 1.0 / (1.0 + (-(offset + slope * x)).exp());
            let w = p * (1.0 - p);
            g0 += p - target;
            g1 += (p - target) * x;
            h00 += w;
            h01 += w * x;
            h11 += w * x * x;
        }
        let determinant = h00 * h11 - h01 * h01;
        let (step0, step1) =
            ((h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant);
        // Newton's step overshoots where the curve is flat: halved until it gains something.
        let before = cross_entropy(&points, offset, slope);
        let mut share = 1.0;
        while share > 1e-6
            && cross_entropy(&points, offset - share * step0, slope - share * step1) > before
        {
            share /= 2.0;
        }
        offset -= share * step0;
        slope -= share * step1;
        if share * (step0.abs() + step1.abs()) < 1e-9 {
            break;
        }
    }
    (offset.is_finite() && slope.is_finite()).then_some(LogOddsFit { offset, slope })
}

/// Cross-entropy of the line over the points, in nats.
fn cross_entropy(points: &[(f64, f64)], offset: f64, slope: f64) -> f64 {
    points
        .iter()
        .map(|(x, target)| {
            let z = offset + slope * x;
            // ln(1 + e^z) without overflow.
            let softplus = z.max(0.0) + (-z.abs()).exp().ln_1p();
            softplus - target * z
        })
        .sum()
}

fn log_odds(score: f64) -> f64 {
    let score = score.clamp(1e-6, 1.0 - 1e-6);
    (score / (1.0 - score)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_that_ranks_has_an_area_of_one_and_a_blind_one_of_a_half() {
        for (results, expected) in [
            (vec![(0.9, true), (0.8, true), (0.2, false)], Some(1.0)),
            (vec![(0.1, true), (0.9, false)], Some(0.0)),
            (vec![(0.5, true), (0.5, false), (0.5, false)], Some(0.5)),
            (vec![(0.9, true), (0.5, true), (0.5, false), (0.1, false)], Some(0.875)),
            (vec![(0.9, true)], None),
            (vec![], None),
        ] {
            assert_eq!(auroc(&results), expected, "{results:?}");
        }
    }

    #[test]
    fn an_overconfident_score_is_off_by_as_much_as_it_overstates() {
        let results: Vec<ScoredResult> = (0..100).map(|at| (0.95, at % 2 == 0)).collect();
        let calibration = ScoreCalibration::from_results(&results);
        assert!((calibration.expected_error.unwrap() - 0.45).abs() < 1e-9, "{calibration:?}");
        assert_eq!(ScoreCalibration::from_results(&[]).expected_error, None);
        let all = ScoreCalibration::from_results(&[(1.0, true), (0.0, false)]);
        assert_eq!((all.expected_error, all.bins.len()), (Some(0.0), 2));
    }

    #[test]
    fn a_line_is_found_where_newtons_step_overshoots() {
        // Sure of itself and mostly right, sure of itself and wrong a few times.
        let mut results = vec![(0.98, true); 40];
        results.extend([(0.98, false), (0.5, false), (0.1, false), (0.02, false), (1e-5, false)]);
        results.push((1e-5, true));
        let fit = ScoreCalibration::from_results(&results).fit.unwrap();
        assert!((fit.slope - 0.247).abs() < 0.01 && (fit.offset - 1.606).abs() < 0.01, "{fit:?}");
    }

    #[test]
    fn the_fitted_line_undoes_a_known_distortion() {
        // Log-odds of the score are twice what they should be.
        let mut results = Vec::new();
        for (score, share) in [(0.9412, 80), (0.5, 50), (0.0588, 20)] {
            results.extend((0..100).map(|at| (score, at < share)));
        }
        let fit = ScoreCalibration::from_results(&results).fit.unwrap();
        assert!((fit.slope - 0.5).abs() < 0.02 && fit.offset.abs() < 0.02, "{fit:?}");
    }
}
