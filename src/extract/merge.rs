//! From replies about parts of a document to one extraction.
//!
//! Lists are joined in the order of the parts; of single values the first that is there counts, of
//! amounts the last, because totals stand at the end and carry-overs before them. A kind's schema
//! can say otherwise per field with `"x-merge": "first"` or `"last"`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::reply::{Envelope, EvidenceEntry};
use crate::kinds::Kind;
use crate::model::{Confidence, Evidence, Extraction, Reader, Transcript, Usage};

/// Joins replies in the order of their parts.
pub(super) fn merged(kind: &Kind, transcript: &Transcript, parts: Vec<Envelope>) -> Extraction {
    let successful = !parts.is_empty() && parts.iter().all(|part| part.extraction_successful);
    let confidence = lowest(parts.iter().map(|part| part.confidence));
    let single = parts.len() == 1;
    let (mut data, mut evidence, mut missing) = (empty(kind), Vec::new(), Vec::new());
    for part in parts {
        let offset = |field: &str| match data.get(field) {
            Some(Value::Array(list)) => list.len(),
            _ => 0,
        };
        let known = part.evidence.into_iter().filter(|entry| is_known(kind, &entry.field));
        let entries = known.map(|entry| moved(entry, &offset));
        evidence.extend(entries.flat_map(|entry| located(&entry, transcript)));
        missing.extend(part.missing_fields);
        for (name, value) in part.fields {
            let last = takes_last(kind, &name);
            join(data.entry(name).or_insert(Value::Null), value, last);
        }
    }
    // What one part lacks another may have.
    missing.retain(|name| is_known(kind, name));
    missing.retain(|name| single || data.get(name).is_none_or(Value::is_null));
    missing.sort();
    missing.dedup();
    Extraction {
        reader: Reader::Llm,
        model: None,
        kind: kind.name.clone(),
        data,
        successful,
        confidence,
        missing_fields: missing,
        evidence,
        usage: Usage::default(),
    }
}

/// Whether a name from the model is a field of the kind or a part of one. Other names may be any
/// text and would end up where only names belong.
fn is_known(kind: &Kind, name: &str) -> bool {
    let end = name.find(['[', '.']).unwrap_or(name.len());
    let (field, rest) = name.split_at(end);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']' | '.');
    kind.has(field) && rest.len() <= 100 && rest.chars().all(plain)
}

fn lowest(all: impl Iterator<Item = Confidence>) -> Confidence {
    let rank = |confidence: &Confidence| match confidence {
        Confidence::Low => 0,
        Confidence::Medium => 1,
        Confidence::High => 2,
    };
    all.min_by_key(rank).unwrap_or(Confidence::Low)
}

/// Every field of the kind in its order, null.
fn empty(kind: &Kind) -> Map<String, Value> {
    kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect()
}

fn takes_last(kind: &Kind, field: &str) -> bool {
    let schema = kind.schema.get("properties").and_then(|all| all.get(field));
    match schema.and_then(|schema| schema.get("x-merge")).and_then(Value::as_str) {
        Some(word) => word == "last",
        None => kind
            .fields()
            .any(|(name, form)| name == field && form == crate::kinds::FieldType::Number),
    }
}

fn join(into: &mut Value, value: Value, last: bool) {
    match (into, value) {
        (_, Value::Null) => {}
        (into @ Value::Null, value) => *into = value,
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (Value::Object(object), Value::Object(more)) => {
            for (name, value) in more {
                join(object.entry(name).or_insert(Value::Null), value, last);
            }
        }
        (into, value) if last => *into = value,
        _ => {}
    }
}

/// `line_items[2].amount` of a later part, counted on from the entries before it.
fn moved(mut entry: EvidenceEntry, offset: &dyn Fn(&str) -> usize) -> EvidenceEntry {
    if let Some((name, rest)) = entry.field.split_once('[')
        && let Some((index, rest)) = rest.split_once(']')
        && let Ok(index) = index.parse::<usize>()
    {
        entry.field = format!("{name}[{}]{rest}", index.saturating_add(offset(name)));
    }
    entry
}

/// The lines that an entry names, page by page. Ids of lines that are not there are left out: a
/// value that is on no line is found by the gate, which looks for the value itself.
fn located(entry: &EvidenceEntry, transcript: &Transcript) -> Vec<Evidence> {
    let mut pages: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (page, line) in entry.lines.iter().filter_map(|id| line_id(id)) {
        let known = (page as usize).checked_sub(1).and_then(|at| transcript.pages.get(at));
        if known.is_some_and(|it| it.number == page && (line as usize) < it.lines.len()) {
            pages.entry(page).or_default().insert(line);
        }
    }
    let evidence = |(page, lines): (u32, BTreeSet<u32>)| Evidence {
        field: entry.field.clone(),
        page,
        lines: lines.into_iter().collect(),
    };
    pages.into_iter().map(evidence).collect()
}

/// `p1.l12` as page and index of the line, which is one less than its number.
fn line_id(id: &str) -> Option<(u32, u32)> {
    let (page, line) = id.trim().trim_end_matches('|').strip_prefix('p')?.split_once(".l")?;
    Some((page.parse().ok()?, line.parse::<u32>().ok()?.checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::prompt::tests::transcript;
    use crate::extract::schema::tests::{invoice, whole};
    use serde::Deserialize;
    use serde_json::json;

    fn part(fields: Value, evidence: Value, missing: &[&str]) -> Envelope {
        let mut reply = whole(fields);
        reply["evidence"] = evidence;
        reply["missing_fields"] = json!(missing);
        Envelope::deserialize(reply).unwrap()
    }

    #[test]
    fn lists_are_joined_names_come_from_the_first_part_and_totals_from_the_last() {
        let item = |amount: u32| json!([{"amount": amount}]);
        let first = part(
            json!({"supplier_name": "A", "line_items": item(1), "total": 1}),
            json!([
                {"field": "line_items[0].amount", "lines": ["p1.l1"]},
                {"field": "some words of the document", "lines": ["p1.l1"]}
            ]),
            &["due_date", "subtotal", "some words of the document"],
        );
        let second = part(
            json!({"supplier_name": "B", "line_items": item(2), "total": 3, "subtotal": 2}),
            json!([{"field": "line_items[0].amount", "lines": ["p2.l1", "p2.l9", "x", "p1.l2"]}]),
            &["due_date"],
        );
        let seen = transcript(&[&["a", "b"], &["c"]]);
        let all = merged(&invoice(), &seen, vec![first, second]);
        assert_eq!(all.data["supplier_name"], "A");
        assert_eq!(all.data["line_items"], json!([{"amount": 1}, {"amount": 2}]));
        assert_eq!((&all.data["total"], &all.data["subtotal"]), (&json!(3), &json!(2)));
        assert_eq!(all.missing_fields, ["due_date"]);
        let places: Vec<_> =
            all.evidence.iter().map(|it| (it.field.as_str(), it.page, it.lines.clone())).collect();
        let (one, two) = ("line_items[0].amount", "line_items[1].amount");
        assert_eq!(places, [(one, 1, vec![0]), (two, 1, vec![1]), (two, 2, vec![0])]);
    }

    #[test]
    fn the_least_sure_part_speaks_for_the_whole() {
        let mut doubtful = part(json!({}), json!([]), &[]);
        doubtful.confidence = Confidence::Low;
        doubtful.extraction_successful = false;
        let seen = transcript(&[&["a"]]);
        let all = merged(&invoice(), &seen, vec![part(json!({}), json!([]), &[]), doubtful]);
        assert_eq!((all.confidence, all.successful), (Confidence::Low, false));
        assert!(!merged(&invoice(), &seen, Vec::new()).successful);
    }

    #[test]
    fn fields_come_in_the_order_of_the_kind() {
        let one = part(json!({"total": 1}), json!([]), &[]);
        let all = merged(&invoice(), &transcript(&[&["a"]]), vec![one]);
        let kind = invoice();
        let order: Vec<&str> = kind.fields().map(|(name, _)| name).collect();
        assert_eq!(all.data.keys().map(String::as_str).collect::<Vec<_>>(), order);
    }
}
