//! The exact upper bound of Clopper and Pearson (Biometrika 1934) for a number of trials that was
//! fixed before the first. Asked again after each trial it would be too low too often: see
//! [`crate::evidence`].

/// Steps of the bisection: the error of a bound is below 2⁻⁵⁰.
const BISECTIONS: u32 = 50;

/// The share that is not exceeded with a certainty of `1 - risk`, if `hits` of `trials` were hits.
pub fn upper_share(hits: u32, trials: u32, risk: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if log_chance_of_at_most(hits, trials, middle) <= risk.ln() {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Natural logarithm of the chance of at most `hits` in `trials`, at a `share` each.
fn log_chance_of_at_most(hits: u32, trials: u32, share: f64) -> f64 {
    let odds = share.ln() - (-share).ln_1p();
    let mut term = f64::from(trials) * (-share).ln_1p();
    let mut sum = term;
    for hit in 0..hits {
        let (left, next) = (f64::from(trials - hit), f64::from(hit + 1));
        term += (left / next).ln() + odds;
        let most = sum.max(term);
        sum = most + ((sum - most).exp() + (term - most).exp()).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bound_is_that_of_the_tables() {
        for (hits, trials, risk, expected) in [
            (0, 10, 0.05, 0.258_87),
            (0, 299, 0.05, 0.009_969),
            (1, 10, 0.025, 0.445_02),
            (5, 20, 0.025, 0.491_05),
            (3, 100, 0.05, 0.075_71),
            (10, 10, 0.05, 1.0),
            (0, 0, 0.05, 1.0),
        ] {
            let bound = upper_share(hits, trials, risk);
            assert!((bound - expected).abs() < 1e-4, "{hits} of {trials}: {bound}");
        }
    }

    proptest! {
        #[test]
        fn more_hits_raise_the_bound_and_more_trials_lower_it(
            hits in 0u32..50, more in 1u32..2000, risk in 0.001f64..0.5,
        ) {
            let trials = hits + more;
            let bound = upper_share(hits, trials, risk);
            prop_assert!(upper_share(hits + 1, trials, risk) >= bound);
            prop_assert!(upper_share(hits, trials + 1, risk) <= bound);
            prop_assert!(upper_share(hits, trials, risk / 2.0) >= bound);
        }
    }
}
