//! Weighs the candidates for one field: their log-odds become shares of certainty, so that a close
//! second, or no good candidate, lowers the certainty of the best.

/// A candidate's log-odds as its share of certainty beside the others.
///
/// `none`: the log-odds of none of them.
pub(super) fn share_certainty(scores: &[f32], none: f32) -> Vec<f32> {
    let most = scores.iter().copied().fold(none, f32::max);
    let parts: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f32 = parts.iter().sum::<f32>() + (none - most).exp();
    parts.into_iter().map(|part| part / sum).collect()
}

/// Adds a sign if it holds.
pub(super) fn add_sign<T>(signs: &mut Vec<T>, sign: T, holds: bool) {
    if holds {
        signs.push(sign);
    }
}

#[cfg(test)]
mod tests {
    use super::share_certainty;

    #[test]
    fn a_close_second_takes_certainty_off_the_first() {
        let alone = share_certainty(&[4.0], 0.0);
        let close = share_certainty(&[4.0, 3.9], 0.0);
        assert!(alone[0] > 0.95);
        assert!(close[0] < 0.55 && close[0] > close[1]);
        assert!(share_certainty(&[], 0.0).is_empty());
    }
}
