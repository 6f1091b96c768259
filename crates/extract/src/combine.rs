//! Two readings of one document as one, in which no populated value of either is lost.
//!
//! Each of two models may find values that the other missed. The leading reading decides where both
//! have a value, and the other fills empty fields. Of two lists the longer counts, of equally long
//! ones the fuller; its rows are filled from rows of the other that do not contradict them.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use docmill_core::model::{Extraction, FieldEvidence};

/// `lead`, with its empty fields filled from `other`. Tokens are those of both.
pub fn combine_extractions(lead: &Extraction, other: &Extraction) -> Extraction {
    let mut result = lead.clone();
    result.usage += other.usage;
    for (name, value) in &other.data {
        let place = result.data.entry(name.clone()).or_insert(Value::Null);
        let taken = match (&*place, value) {
            (_, value) if is_blank(value) => continue,
            (own, value) if is_blank(own) => Some(value.clone()),
            (Value::Array(own), Value::Array(theirs)) => {
                let kept = list_weight(own) >= list_weight(theirs);
                let (base, filler) = if kept { (own, theirs) } else { (theirs, own) };
                *place = Value::Array(fill_rows(base, filler));
                if !kept {
                    move_evidence(&mut result.evidence, &other.evidence, name);
                }
                continue;
            }
            (Value::Object(own), Value::Object(theirs)) => {
                Some(Value::Object(fill_row(own, theirs)))
            }
            _ => None,
        };
        if let Some(value) = taken {
            *place = value;
            move_evidence(&mut result.evidence, &other.evidence, name);
        }
    }
    let data = &result.data;
    result.missing_fields.retain(|name| data.get(name).is_none_or(is_blank));
    result
}

/// Whether a value is empty.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Rows, then populated cells.
fn list_weight(list: &[Value]) -> (usize, usize) {
    (list.len(), list.iter().map(populated_cells).sum())
}

fn populated_cells(row: &Value) -> usize {
    match row {
        Value::Object(row) => row.values().filter(|cell| !is_blank(cell)).count(),
        other => usize::from(!is_blank(other)),
    }
}

/// Unused rows of the other list that a row is compared with: both readings have the same order.
const MAX_COMPARED_ROWS: usize = 200;

/// The rows of a list, each filled from the first row of the other list that may be the same one. No
/// row is used twice.
fn fill_rows(base: &[Value], filler: &[Value]) -> Vec<Value> {
    let mut unused: VecDeque<&Map<String, Value>> =
        filler.iter().filter_map(Value::as_object).collect();
    let mut filled = Vec::with_capacity(base.len());
    for row in base {
        filled.push(match row.as_object().and_then(|own| take_same_row(own, &mut unused)) {
            Some(row) => Value::Object(row),
            None => row.clone(),
        });
    }
    filled
}

/// A row filled from the one that is taken out of the others.
fn take_same_row(
    own: &Map<String, Value>,
    unused: &mut VecDeque<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let mut compared = unused.iter().take(MAX_COMPARED_ROWS);
    let at = compared.position(|theirs| is_same_row(own, theirs))?;
    unused.remove(at).map(|theirs| fill_row(own, theirs))
}

/// Whether two rows share a value and contradict each other in none.
fn is_same_row(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let mut shared = false;
    for (name, value) in one.iter().filter(|(_, value)| !is_blank(value)) {
        match other.get(name).filter(|theirs| !is_blank(theirs)) {
            Some(theirs) if theirs == value => shared = true,
            Some(_) => return false,
            None => {}
        }
    }
    shared
}

fn fill_row(own: &Map<String, Value>, theirs: &Map<String, Value>) -> Map<String, Value> {
    let mut row = own.clone();
    for (name, value) in theirs {
        let cell = row.entry(name.clone()).or_insert(Value::Null);
        if is_blank(cell) {
            *cell = value.clone();
        }
    }
    row
}

/// The evidence of a field moves with its value.
fn move_evidence(own: &mut Vec<FieldEvidence>, theirs: &[FieldEvidence], field: &str) {
    own.retain(|evidence| !is_about(evidence, field));
    own.extend(theirs.iter().filter(|evidence| is_about(evidence, field)).cloned());
}

fn is_about(evidence: &FieldEvidence, field: &str) -> bool {
    evidence.field.split(['[', '.']).next() == Some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{ExtractionMethod, ModelUsage, StatedConfidence};
    use proptest::prelude::*;
    use serde_json::json;

    fn reading(data: Value) -> Extraction {
        Extraction {
            reader: ExtractionMethod::Llm,
            model: Some("m".to_owned()),
            kind: "invoice".to_owned(),
            data: data.as_object().unwrap().clone(),
            successful: true,
            confidence: StatedConfidence::High,
            missing_fields: vec!["total".to_owned(), "due_date".to_owned()],
            evidence: Vec::new(),
            certainties: Vec::new(),
            usage: ModelUsage { input: 1, cache_read: 2, cache_write: 3, output: 4 },
        }
    }

    #[test]
    fn the_lead_decides_and_the_other_fills_empty_fields() {
        let rows = |rows: Value| json!({"line_items": rows});
        #[rustfmt::skip]
        let table = [
            ("both",           json!({"total": 1}),   json!({"total": 2}),  json!({"total": 1})),
            ("only the other", json!({"total": null}),json!({"total": 2}),  json!({"total": 2})),
            ("blank",          json!({"total": " "}), json!({"total": "x"}),json!({"total": "x"})),
            ("only the lead",  json!({"total": 1}),   json!({"total": null}),json!({"total": 1})),
            ("a shorter list", rows(json!([{"a": 1}])), rows(json!([{"a": 1}, {"a": 2}])), rows(json!([{"a": 1}, {"a": 2}]))),
            ("a fuller list",  rows(json!([{"a": 1, "b": null}])), rows(json!([{"a": 2, "b": 3}])), rows(json!([{"a": 2, "b": 3}]))),
            ("the same row",   rows(json!([{"a": 1, "b": null}, {"a": 9}])), rows(json!([{"a": 1, "b": 3}])), rows(json!([{"a": 1, "b": 3}, {"a": 9}]))),
            ("another row",    rows(json!([{"a": 1, "b": null}, {"a": 9}])), rows(json!([{"a": 2, "b": 3}])), rows(json!([{"a": 1, "b": null}, {"a": 9}]))),
        ];
        for (name, lead, other, expected) in table {
            let result = combine_extractions(&reading(lead), &reading(other));
            assert_eq!(Value::Object(result.data), expected, "{name}");
            assert_eq!(
                result.usage,
                ModelUsage { input: 2, cache_read: 4, cache_write: 6, output: 8 }
            );
        }
    }

    #[test]
    fn a_value_brings_its_place_along_and_is_no_longer_missing() {
        let at = |field: &str, page| FieldEvidence { field: field.into(), page, lines: vec![1] };
        let mut lead = reading(json!({"total": null, "due_date": null, "line_items": [{"a": 1}]}));
        lead.evidence = vec![at("line_items[0].a", 1)];
        let mut other = reading(json!({"total": 2, "line_items": [{"a": 1}, {"a": 2}]}));
        other.evidence = vec![at("total", 7), at("line_items[1].a", 8)];
        let result = combine_extractions(&lead, &other);
        assert_eq!(result.missing_fields, ["due_date"]);
        assert_eq!(result.evidence, [at("total", 7), at("line_items[1].a", 8)]);
    }

    fn data() -> impl Strategy<Value = Value> {
        let cell = || prop::option::of(0_u8..3);
        let row = (cell(), cell()).prop_map(|(a, b)| json!({"a": a, "b": b}));
        (cell(), cell(), prop::collection::vec(row, 0..4))
            .prop_map(|(x, y, rows)| json!({"x": x, "y": y, "rows": rows}))
    }

    proptest! {
        #[test]
        fn nothing_populated_is_lost_whichever_leads(one in data(), other in data()) {
            let (one, other) = (reading(one), reading(other));
            for result in [combine_extractions(&one, &other), combine_extractions(&other, &one)] {
                for field in ["x", "y"] {
                    let there = !one.data[field].is_null() || !other.data[field].is_null();
                    prop_assert_eq!(there, !result.data[field].is_null());
                }
                let rows = |it: &Extraction| list_weight(it.data["rows"].as_array().unwrap());
                prop_assert!(rows(&result) >= rows(&one).max(rows(&other)));
            }
        }
    }
}
