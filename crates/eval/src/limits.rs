//! Limits that a run has to keep, for the exit code of a check in CI.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A named figure and its limit, written `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureLimit {
    /// As in the report's `measures`, e.g. `total` or `inv:total`.
    pub name: String,
    /// The value that is just good enough.
    pub value: f64,
}

impl FromStr for MeasureLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(name, value)| {
            let value: f64 = value.trim().parse().ok().filter(|value: &f64| value.is_finite())?;
            Some((name.trim(), value))
        });
        match parts.filter(|(name, _)| !name.is_empty()) {
            Some((name, value)) => Ok(Self { name: name.to_owned(), value }),
            None => Err(format!("`{text}` is not of the form NAME=NUMBER, e.g. total=0.95")),
        }
    }
}

/// The figures beyond their limits, in words; empty if there are none.
///
/// A figure that was not measured is beyond any limit: a check that silently checks nothing is
/// worse than one that fails.
pub fn broken_limits(
    measures: &BTreeMap<String, f64>,
    least: &[MeasureLimit],
    most: &[MeasureLimit],
) -> Vec<String> {
    let check = |limit: &MeasureLimit, word: &str, holds: fn(f64, f64) -> bool| match measures
        .get(&limit.name)
    {
        None => Some(format!("{} was not measured here", limit.name)),
        Some(value) if holds(*value, limit.value) => None,
        Some(value) => {
            Some(format!("{} is {value:.4}, {word} {} is demanded", limit.name, limit.value))
        }
    };
    let least = least.iter().filter_map(|limit| check(limit, "at least", |is, limit| is >= limit));
    let most = most.iter().filter_map(|limit| check(limit, "at most", |is, limit| is <= limit));
    least.chain(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_out_of_its_limit_or_unmeasured_is_named() {
        let measures: BTreeMap<String, f64> =
            [("total".to_owned(), 0.9), ("silent_errors".to_owned(), 2.0)].into();
        let limit = |text: &str| vec![text.parse::<MeasureLimit>().unwrap()];
        for (least, most, expected) in [
            (limit("total=0.9"), vec![], 0),
            (limit("total=0.91"), vec![], 1),
            (vec![], limit("silent_errors=2"), 0),
            (vec![], limit("silent_errors=1"), 1),
            (limit("subtotal=0"), limit("nothing=9"), 2),
        ] {
            let broken = broken_limits(&measures, &least, &most);
            assert_eq!(broken.len(), expected, "{broken:?}");
        }
    }

    #[test]
    fn a_limit_that_is_no_number_is_refused_with_the_form() {
        for text in ["total", "total=", "=0.5", "total=x", "total=NaN"] {
            assert!(text.parse::<MeasureLimit>().unwrap_err().contains("NAME=NUMBER"), "{text}");
        }
    }
}
