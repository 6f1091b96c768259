//! Lists: the known rows are matched to the given ones, then each field is counted on its own.
//!
//! Matching is greedy over all pairs by likeness. It differs from the optimal assignment only
//! where rows are equally alike, and then the counts are the same.

use std::collections::BTreeMap;

use serde_json::Value;

use super::FieldScore;
use super::compare::{same, similarity};

/// Above so many pairs rows are matched in order: comparing all would take too long.
const MOST_PAIRS: usize = 1_000_000;

/// Scores by field, as `list.field`. An empty list of known rows says nothing.
pub(super) fn score(list: &str, known: &[Value], given: &Value) -> BTreeMap<String, FieldScore> {
    let none = Vec::new();
    let given = given.as_array().unwrap_or(&none);
    let pairs = matched(known, given);
    let mut scores: BTreeMap<String, FieldScore> = BTreeMap::new();
    for (index, row) in known.iter().enumerate() {
        let partner = pairs.iter().find(|(left, _)| *left == index).map(|(_, right)| *right);
        let partner = partner.and_then(|right| given.get(right));
        for (field, value) in row.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
            let other = partner.and_then(|row| row.get(field)).unwrap_or(&Value::Null);
            let right = same(field, value, other);
            let own = scores.entry(format!("{list}.{field}")).or_default();
            own.correct += usize::from(right);
            own.missed += usize::from(!right);
            own.wrong += usize::from(!right && !other.is_null());
        }
    }
    // Rows that do not exist, counted for the fields that are known at all.
    for (index, row) in given.iter().enumerate() {
        if pairs.iter().any(|(_, right)| *right == index) {
            continue;
        }
        for (field, _) in row.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
            if let Some(own) = scores.get_mut(&format!("{list}.{field}")) {
                own.wrong += 1;
            }
        }
    }
    scores
}

/// Pairs of indexes, each used once.
fn matched(known: &[Value], given: &[Value]) -> Vec<(usize, usize)> {
    if known.len().saturating_mul(given.len()) > MOST_PAIRS {
        return (0..known.len().min(given.len())).map(|index| (index, index)).collect();
    }
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (left, a) in known.iter().enumerate() {
        for (right, b) in given.iter().enumerate() {
            let likeness = likeness(a, b);
            if likeness > 0.0 {
                // Of equals the nearest in order.
                let apart = left.abs_diff(right) as f64 / (known.len() + given.len()) as f64;
                pairs.push((likeness - apart / 100.0, left, right));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut used_left, mut used_right) = (vec![false; known.len()], vec![false; given.len()]);
    let mut matched = Vec::new();
    for (_, left, right) in pairs {
        let free = (used_left.get_mut(left), used_right.get_mut(right));
        if let (Some(left_used @ false), Some(right_used @ false)) = free {
            (*left_used, *right_used) = (true, true);
            matched.push((left, right));
        }
    }
    matched
}

fn likeness(a: &Value, b: &Value) -> f64 {
    let fields = a.as_object().into_iter().flatten();
    fields
        .map(|(field, known)| match (known, b.get(field)) {
            (Value::String(known), Some(Value::String(given))) => 2.0 * similarity(known, given),
            (known, Some(given)) if !known.is_null() && same(field, known, given) => 1.5,
            _ => 0.0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn amounts(known: Value, given: Value) -> (usize, usize, usize) {
        let scores = score("lines", known.as_array().unwrap(), &given);
        let own = scores.get("lines.amount").cloned().unwrap_or_default();
        (own.correct, own.wrong, own.missed)
    }

    #[test]
    fn rows_are_matched_whatever_their_order() {
        let known =
            json!([{"description": "Apples", "amount": 1}, {"description": "Pears", "amount": 2}]);
        let given =
            json!([{"description": "Pears", "amount": 2}, {"description": "Apples", "amount": 3}]);
        assert_eq!(amounts(known.clone(), given), (1, 1, 1));
        assert_eq!(amounts(known.clone(), json!([])), (0, 0, 2));
        assert_eq!(amounts(known.clone(), json!(null)), (0, 0, 2));
        assert_eq!(amounts(known.clone(), known), (2, 0, 0));
    }

    #[test]
    fn rows_too_many_count_as_wrong_and_unknown_fields_not_at_all() {
        let known = json!([{"description": "Apples", "amount": 1, "quantity": null}]);
        let given = json!([{"description": "Apples", "amount": 1, "quantity": 9},
                           {"description": "Ghost", "amount": 7, "quantity": 9}]);
        assert_eq!(amounts(known.clone(), given.clone()), (1, 1, 0));
        let scores = score("lines", known.as_array().unwrap(), &given);
        assert!(!scores.contains_key("lines.quantity"));
        assert!(score("lines", &[], &given).is_empty());
    }
}
