//! Evidence against a share of errors, valid at every moment: it may be asked after each look, and a
//! bound may be stated as soon as it is enough.
//!
//! A wager that the share is below `rate`: its wealth after some looks is the mean, over shares `q`
//! below `rate`, of the likelihood of the looks under `q` over that under `rate`. If the share is
//! `rate` or more, the wealth is a supermartingale from 1, and reaches `1/risk` at any time with a
//! probability of at most `risk` (Ville 1939; Robbins 1970; Waudby-Smith and Ramdas, JRSS B 2024).
//! The shares are `rate·u²` for `u` evenly spaced in 0..1: Jeffreys' weights near zero, so that the
//! first error does not ruin the wager.

/// Shares that the wager is spread over.
const STAKES: u32 = 16;
/// Steps of the bisection of a bound: its error is below 2⁻⁴⁰.
const BISECTIONS: u32 = 40;
/// Looks beyond which no forecast is made.
pub const MAX_LOOKS: u32 = 1_000_000;

/// Looks at drawn documents, and how many were wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookTally {
    /// Documents looked at.
    pub looks: u32,
    /// Those of them that were wrong.
    pub wrong: u32,
}

impl LookTally {
    /// This and one more look.
    #[must_use]
    pub fn with_look(self, wrong: bool) -> Self {
        Self {
            looks: self.looks.saturating_add(1),
            wrong: self.wrong.saturating_add(u32::from(wrong)),
        }
    }

    fn right(self) -> u32 {
        self.looks.saturating_sub(self.wrong)
    }
}

/// Natural logarithm of the wealth of the wager that the share of errors is below `rate` (0..1,
/// without its ends).
pub fn log_wealth(tally: LookTally, rate: f64) -> f64 {
    let (right, wrong) = (f64::from(tally.right()), f64::from(tally.wrong));
    let stakes = (0..STAKES).map(|index| {
        let u = (f64::from(index) + 0.5) / f64::from(STAKES);
        let share = u * u;
        wrong * share.ln() + right * ((-share * rate).ln_1p() - (-rate).ln_1p())
    });
    let stakes: Vec<f64> = stakes.collect();
    let most = stakes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = stakes.iter().map(|stake| (stake - most).exp()).sum();
    most + (sum / f64::from(STAKES)).ln()
}

/// Whether the share of errors is shown to be below `rate`, at this risk of being wrong about it.
pub fn is_shown(tally: LookTally, rate: f64, risk: f64) -> bool {
    log_wealth(tally, rate) >= -risk.ln()
}

/// The least share of errors that the looks show not to be reached, 0..1.
pub fn upper_bound(tally: LookTally, risk: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if is_shown(tally, middle, risk) { high = middle } else { low = middle }
    }
    high
}

/// How many more looks, all of them right, show that the share of errors is below `rate`; `None`: more
/// than [`MAX_LOOKS`].
pub fn looks_to_show(tally: LookTally, rate: f64, risk: f64) -> Option<u32> {
    let (mut low, mut high) = (0, MAX_LOOKS);
    if !is_shown(after_right(tally, high), rate, risk) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if is_shown(after_right(tally, middle), rate, risk) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

fn after_right(tally: LookTally, looks: u32) -> LookTally {
    LookTally { looks: tally.looks.saturating_add(looks), ..tally }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(looks: u32, wrong: u32) -> LookTally {
        LookTally { looks, wrong }
    }

    /// The expectation of the next factor of the wealth, where the share of errors is `share`.
    fn mean_growth(before: LookTally, rate: f64, share: f64) -> f64 {
        let now = log_wealth(before, rate);
        let grown = |wrong| (log_wealth(before.with_look(wrong), rate) - now).exp();
        share * grown(true) + (1.0 - share) * grown(false)
    }

    #[test]
    fn looks_without_an_error_show_a_bound_after_a_known_number() {
        for (rate, risk, looks) in
            [(0.01, 0.05, 377), (0.01, 0.025, 455), (0.005, 0.05, 756), (0.1, 0.05, 36)]
        {
            assert_eq!(looks_to_show(tally(0, 0), rate, risk), Some(looks), "{rate} {risk}");
        }
        assert_eq!(looks_to_show(tally(100, 60), 1e-9, 0.05), None);
    }

    proptest! {
        #[test]
        fn the_wealth_grows_by_nothing_on_average_where_the_share_is_the_rate_or_more(
            looks in 0u32..3000, wrong in 0u32..40, rate in 0.001f64..0.3, above in 0.0f64..0.5,
        ) {
            let before = tally(looks.max(wrong), wrong);
            prop_assert!((mean_growth(before, rate, rate) - 1.0).abs() < 1e-6);
            prop_assert!(mean_growth(before, rate, rate + above) <= 1.0 + 1e-6);
            prop_assert!(mean_growth(before, rate, rate / 2.0) > 1.0 - 1e-6);
        }

        #[test]
        fn a_bound_is_above_the_share_seen_falls_with_right_looks_and_rises_with_wrong_ones(
            looks in 1u32..3000, wrong in 0u32..40,
        ) {
            let seen = tally(looks.max(wrong) + 1, wrong);
            let bound = upper_bound(seen, 0.05);
            prop_assert!(bound > f64::from(wrong) / f64::from(seen.looks));
            prop_assert!(upper_bound(seen.with_look(false), 0.05) <= bound + 1e-9);
            prop_assert!(upper_bound(seen.with_look(true), 0.05) >= bound - 1e-9);
        }

        #[test]
        fn the_looks_forecast_are_enough_and_one_less_is_not(
            looks in 0u32..500, wrong in 0u32..5, rate in 0.002f64..0.2,
        ) {
            let now = tally(looks.max(wrong), wrong);
            let more = looks_to_show(now, rate, 0.05).unwrap();
            prop_assert!(is_shown(after_right(now, more), rate, 0.05));
            prop_assert!(more == 0 || !is_shown(after_right(now, more - 1), rate, 0.05));
        }
    }
}
