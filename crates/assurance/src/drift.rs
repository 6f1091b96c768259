//! Whether the share of errors has risen above a bound: a detector of Shiryaev and Roberts over the
//! looks, in their order.
//!
//! For each of a few shares above the bound it sums, over every look from which the change may have
//! begun, the likelihood of the looks since under that share over that under the bound. While the
//! share is within the bound, the mean of these sums grows by at most 1 a look: an alarm at
//! [`ALARM_AT`] comes after that many looks on average at the earliest, and within `n` looks with a
//! probability of at most `n / ALARM_AT` (Shin, Ramdas and Rinaldo, NEJSDS 2024).

/// The sum at which the alarm is given: looks between false alarms, at the least.
pub const ALARM_AT: f64 = 2_000.0;
/// The shares that are looked for, in bounds.
const RISES: [f64; 5] = [1.5, 3.0, 6.0, 12.0, 24.0];
/// No share above this is looked for.
const MAX_SHARE: f64 = 0.8;

/// The detector's state after some looks.
#[derive(Debug, Clone, PartialEq)]
pub struct DriftDetector {
    rate: f64,
    sums: [f64; RISES.len()],
}

impl DriftDetector {
    /// Before the first look. `rate`: the bound, 0..1 without its ends and below 0.8.
    pub fn new(rate: f64) -> Self {
        Self { rate, sums: [0.0; RISES.len()] }
    }

    /// Takes one look; whether the share has risen.
    pub fn add_look(&mut self, wrong: bool) -> bool {
        for (sum, rise) in self.sums.iter_mut().zip(RISES) {
            let share = (self.rate * rise).min(MAX_SHARE);
            let factor = if wrong { share / self.rate } else { (1.0 - share) / (1.0 - self.rate) };
            *sum = (*sum + 1.0) * factor;
        }
        let mean = self.sums.iter().sum::<f64>() / self.sums.len() as f64;
        mean >= ALARM_AT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until the alarm, of which every `each`-th is wrong; `None`: none within 100,000.
    fn looks_until_alarm(rate: f64, each: u32) -> Option<u32> {
        let mut detector = DriftDetector::new(rate);
        (1..100_000).find(|look| detector.add_look(look % each == 0))
    }

    #[test]
    fn the_more_often_it_is_wrong_the_sooner_is_the_alarm() {
        let found = [2, 5, 20, 50].map(|each| looks_until_alarm(0.01, each).unwrap());
        assert!(found.is_sorted(), "{found:?}");
        assert!(found[0] <= 10 && found[2] <= 250 && found[3] <= 2_500, "{found:?}");
        for each in [100, 200] {
            assert_eq!(looks_until_alarm(0.01, each), None, "{each}");
        }
    }
}
