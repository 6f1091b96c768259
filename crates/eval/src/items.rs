//! Lists: the known rows are matched to the given ones, then each field is counted on its own.
//!
//! The matching is the one whose likeness is greatest in sum; for lists of many hundred rows, where
//! that would take minutes, rows are matched in order, the likest neighbour first.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compare::{same_value, text_similarity};
use super::{FieldScore, ListCompleteness, assign};

/// Above so many pairs rows are matched in order.
const MAX_PAIRS: usize = 360_000;

/// Scores by field, as `list.field`. An empty list of known rows is not scored.
pub(super) fn score_fields(
    list: &str,
    known: &[Value],
    given: &Value,
) -> BTreeMap<String, FieldScore> {
    let none = Vec::new();
    let given = given.as_array().unwrap_or(&none);
    let pairs = match_rows(known, given);
    let mut scores: BTreeMap<String, FieldScore> = BTreeMap::new();
    for (index, row) in known.iter().enumerate() {
        let partner = pairs.iter().find(|(left, _)| *left == index).map(|(_, right)| *right);
        let partner = partner.and_then(|right| given.get(right));
        for (name, field, value) in cells_of(list, row) {
            let other = partner.and_then(|row| cell_named(row, field)).unwrap_or(&Value::Null);
            let right = same_value(field, value, other);
            let own = scores.entry(name).or_default();
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
        for (name, _, _) in cells_of(list, row) {
            if let Some(own) = scores.get_mut(&name) {
                own.wrong += 1;
            }
        }
    }
    scores
}

/// The cells of an entry, with the names they are scored under; a single value under the list's own
/// name. Objects and lists within an entry are not scored.
fn cells_of<'v>(list: &'v str, row: &'v Value) -> Vec<(String, &'v str, &'v Value)> {
    match row {
        Value::Object(cells) => cells
            .iter()
            .filter(|(_, value)| is_single(value))
            .map(|(field, value)| (format!("{list}.{field}"), field.as_str(), value))
            .collect(),
        row if is_single(row) => vec![(list.to_owned(), list, row)],
        _ => Vec::new(),
    }
}

fn is_single(value: &Value) -> bool {
    !value.is_null() && !value.is_object() && !value.is_array()
}

fn cell_named<'v>(row: &'v Value, field: &str) -> Option<&'v Value> {
    if row.is_object() { row.get(field) } else { Some(row) }
}

/// How much of a list is there at all: rows with a partner that is alike, of the known ones.
pub(super) fn list_completeness(known: &[Value], given: &Value) -> ListCompleteness {
    let none = Vec::new();
    let found = match_rows(known, given.as_array().unwrap_or(&none)).len();
    ListCompleteness { known: known.len(), found }
}

/// Pairs of indexes, each used once.
fn match_rows(known: &[Value], given: &[Value]) -> Vec<(usize, usize)> {
    let size = (known.len() + given.len()) as f64;
    // Of equals the nearest in order.
    let alike = |left: usize, right: usize| {
        let likeness = row_likeness(known.get(left)?, given.get(right)?);
        (likeness > 0.0).then(|| likeness - left.abs_diff(right) as f64 / size / 100.0)
    };
    if known.len().saturating_mul(given.len()) <= MAX_PAIRS {
        let likeness = |left, right| alike(left, right).unwrap_or(0.0);
        return assign::best_pairs(known.len(), given.len(), &likeness);
    }
    let (mut pairs, mut next) = (Vec::new(), 0);
    for left in 0..known.len() {
        let near = next..given.len().min(next + NEAR);
        let likest = near
            .filter_map(|right| Some((alike(left, right)?, right)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, right)) = likest {
            pairs.push((left, right));
            next = right + 1;
        }
    }
    pairs
}

/// How far a row is searched for in a very long list.
const NEAR: usize = 50;

fn row_likeness(a: &Value, b: &Value) -> f64 {
    let fields = a.as_object().into_iter().flatten();
    if !a.is_object() && same_value("", a, b) {
        return 1.5;
    }
    fields
        .map(|(field, known)| match (known, b.get(field)) {
            (Value::String(known), Some(Value::String(given))) => {
                2.0 * text_similarity(known, given)
            }
            (known, Some(given)) if !known.is_null() && same_value(field, known, given) => 1.5,
            _ => 0.0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn amounts(known: Value, given: Value) -> (usize, usize, usize) {
        let scores = score_fields("lines", known.as_array().unwrap(), &given);
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
    fn the_best_matching_is_found_where_the_likest_pair_misleads() {
        let known =
            json!([{"description": "Red pen", "amount": 5}, {"description": "Red", "amount": 5}]);
        let given =
            json!([{"description": "Red", "amount": 5}, {"description": "Pen", "amount": 5}]);
        assert_eq!(amounts(known, given), (2, 0, 0));
    }

    #[test]
    fn very_long_lists_are_matched_in_order() {
        let rows = |range: std::ops::Range<usize>| -> Vec<Value> {
            range.map(|it| json!({"description": format!("Row {it}"), "amount": it})).collect()
        };
        let (known, given) = (rows(0..700), Value::Array(rows(3..690)));
        assert_eq!(list_completeness(&known, &given), ListCompleteness { known: 700, found: 687 });
    }

    #[test]
    fn rows_too_many_count_as_wrong_and_unknown_fields_not_at_all() {
        let known = json!([{"description": "Apples", "amount": 1, "quantity": null}]);
        let given = json!([{"description": "Apples", "amount": 1, "quantity": 9},
                           {"description": "Ghost", "amount": 7, "quantity": 9}]);
        assert_eq!(amounts(known.clone(), given.clone()), (1, 1, 0));
        let scores = score_fields("lines", known.as_array().unwrap(), &given);
        assert!(!scores.contains_key("lines.quantity"));
        assert!(score_fields("lines", &[], &given).is_empty());
    }

    #[test]
    fn lists_of_texts_are_scored_by_their_entries() {
        let (known, given) = (json!(["red", "green"]), json!(["green", "blue"]));
        let scores = score_fields("tags", known.as_array().unwrap(), &given);
        let own = scores.get("tags").cloned().unwrap_or_default();
        assert_eq!((own.correct, own.wrong, own.missed), (1, 1, 1));
    }
}
