//! From replies about parts of a document to one extraction.
//!
//! Lists are joined in the order of the parts. Of single values the first counts, of amounts the
//! last: totals are printed at the end, carry-overs before them. A kind's schema can override that
//! per field with `"x-merge": "first"` or `"last"`.
//!
//! Parts overlap by a few lines (`parts`). An entry on lines that an earlier part has read belongs
//! to that part; one that continues over the break replaces its beginning. Only the lines that a
//! reply names decide this: two equal entries are two entries.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::reply::{EvidenceEntry, ReplyEnvelope};
use docmill_core::model::{
    Extraction, ExtractionMethod, FieldEvidence, ModelUsage, StatedConfidence, Transcript,
};
use docmill_gate::kinds::Kind;

/// The reply about one part.
#[derive(Debug)]
pub(super) struct PartReply {
    /// Page and index of its first line; the lines before were shown as context.
    pub(super) first_line: LinePosition,
    /// The fields and evidence of the part's reply.
    pub(super) envelope: ReplyEnvelope,
}

/// Page, from 1, and index of the line on it.
type LinePosition = (u32, usize);

/// Joins replies in the order of their parts.
pub(super) fn merge_parts(
    kind: &Kind,
    transcript: &Transcript,
    parts: Vec<PartReply>,
) -> Extraction {
    let successful =
        !parts.is_empty() && parts.iter().all(|part| part.envelope.extraction_successful);
    let confidence = lowest_confidence(parts.iter().map(|part| part.envelope.confidence));
    let (mut data, mut evidence) = (null_fields(kind), Vec::new());
    for PartReply { first_line, envelope: part } in parts {
        let known: Vec<EvidenceEntry> =
            part.evidence.into_iter().filter(|entry| is_known_field(kind, &entry.field)).collect();
        let mut places = BTreeMap::new();
        for (name, value) in part.fields {
            let into = data.entry(name.clone()).or_insert(Value::Null);
            let Value::Array(entries) = value else {
                merge_value(into, value, takes_last(kind, &name));
                continue;
            };
            let lines = lines_of_entries(&name, &known);
            let seen = lines_of_entries(&name, &evidence);
            let all_seen: BTreeSet<LinePosition> = seen.values().flatten().copied().collect();
            let before =
                PreviousEntries { first_line, lines: &lines, seen: &seen, all_seen: &all_seen };
            places.insert(name, before.append_entries(into, entries));
        }
        for entry in known {
            let Some(field) = merged_field_name(&entry.field, &places) else { continue };
            evidence.push(EvidenceEntry { field, lines: entry.lines });
        }
    }
    let empty = data.iter().filter(|(_, value)| value.is_null());
    let missing_fields = empty.map(|(name, _)| name.clone()).collect();
    Extraction {
        reader: ExtractionMethod::Llm,
        model: None,
        kind: kind.name.clone(),
        data,
        successful,
        confidence,
        missing_fields,
        evidence: evidence.iter().flat_map(|entry| locate_lines(entry, transcript)).collect(),
        certainties: Vec::new(),
        usage: ModelUsage::default(),
    }
}

/// The lines of the entries of one list before more are appended.
struct PreviousEntries<'a> {
    first_line: LinePosition,
    /// The lines that each entry of this part names.
    lines: &'a BTreeMap<usize, BTreeSet<LinePosition>>,
    /// The lines of the entries that are there already, by entry.
    seen: &'a BTreeMap<usize, BTreeSet<LinePosition>>,
    /// All of these lines.
    all_seen: &'a BTreeSet<LinePosition>,
}

impl PreviousEntries<'_> {
    /// Appends the entries that are new; returns where each went, `None` if it was left out.
    fn append_entries(&self, into: &mut Value, entries: Vec<Value>) -> Vec<Option<usize>> {
        if into.is_null() {
            *into = Value::Array(Vec::new());
        }
        let Value::Array(list) = into else { return Vec::new() };
        let mut places = Vec::with_capacity(entries.len());
        let last = list.len().checked_sub(1);
        for (at, entry) in entries.into_iter().enumerate() {
            let place =
                match (self.entry_action(at, last), last.and_then(|last| list.get_mut(last))) {
                    (EntryAction::LeftOut, _) => None,
                    (EntryAction::Replaces, Some(beginning)) => {
                        *beginning = entry;
                        last
                    }
                    _ => {
                        list.push(entry);
                        Some(list.len() - 1)
                    }
                };
            places.push(place);
        }
        places
    }

    fn entry_action(&self, at: usize, last: Option<usize>) -> EntryAction {
        let Some(lines) = self.lines.get(&at).filter(|lines| !lines.is_empty()) else {
            return EntryAction::New;
        };
        if lines.iter().all(|line| *line < self.first_line) {
            let is_seen = lines.iter().any(|line| self.all_seen.contains(line));
            return if is_seen { EntryAction::LeftOut } else { EntryAction::New };
        }
        let beginning = last.and_then(|last| self.seen.get(&last));
        let goes_on = lines.iter().any(|line| *line < self.first_line);
        match beginning {
            Some(beginning) if goes_on && beginning.is_subset(lines) => EntryAction::Replaces,
            _ => EntryAction::New,
        }
    }
}

/// The treatment of an entry of a list.
enum EntryAction {
    New,
    /// An earlier part has read it.
    LeftOut,
    /// An earlier part has read its beginning.
    Replaces,
}

/// `line_items[2].amount` as the list's name, 2 and `.amount`.
fn parse_list_entry(field: &str) -> Option<(&str, usize, &str)> {
    let (name, rest) = field.split_once('[')?;
    let (index, rest) = rest.split_once(']')?;
    Some((name, index.parse().ok()?, rest))
}

/// The lines that are named for each entry of a list.
fn lines_of_entries(
    list: &str,
    evidence: &[EvidenceEntry],
) -> BTreeMap<usize, BTreeSet<LinePosition>> {
    let mut lines: BTreeMap<usize, BTreeSet<LinePosition>> = BTreeMap::new();
    for entry in evidence {
        if let Some((name, index, _)) = parse_list_entry(&entry.field)
            && name == list
        {
            let named = entry.lines.iter().filter_map(|id| parse_line_id(id));
            let named = named.map(|(page, line)| (page, line as usize));
            lines.entry(index).or_default().extend(named);
        }
    }
    lines
}

/// `line_items[2].amount` of a part as it is called in the whole; `None` if its entry was left out.
fn merged_field_name(field: &str, places: &BTreeMap<String, Vec<Option<usize>>>) -> Option<String> {
    // A list within an object is taken from one part as a whole.
    let listed = parse_list_entry(field).filter(|(name, ..)| !name.contains('.'));
    let Some((name, index, rest)) = listed else { return Some(field.to_owned()) };
    let place = places.get(name)?.get(index).copied()??;
    Some(format!("{name}[{place}]{rest}"))
}

/// Bytes of the part of a name behind the field.
const MAX_PATH_BYTES: usize = 100;

/// Whether a name from the model is a field of the kind or a part of one. Other names may be
/// arbitrary text, which must not be stored as a name.
fn is_known_field(kind: &Kind, name: &str) -> bool {
    let end = name.find(['[', '.']).unwrap_or(name.len());
    let (field, rest) = name.split_at(end);
    kind.has_field(field)
        && rest.len() <= MAX_PATH_BYTES
        && rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']' | '.'))
}

fn lowest_confidence(all: impl Iterator<Item = StatedConfidence>) -> StatedConfidence {
    let lowest = all.min_by_key(|confidence| match confidence {
        StatedConfidence::Low => 0,
        StatedConfidence::Medium => 1,
        StatedConfidence::High => 2,
    });
    lowest.unwrap_or(StatedConfidence::Low)
}

/// Every field of the kind in its order, null.
fn null_fields(kind: &Kind) -> Map<String, Value> {
    kind.fields().map(|(name, _)| (name.to_owned(), Value::Null)).collect()
}

fn takes_last(kind: &Kind, field: &str) -> bool {
    let schema = kind.schema.get("properties").and_then(|all| all.get(field));
    match schema.and_then(|schema| schema.get("x-merge")).and_then(Value::as_str) {
        Some(word) => word == "last",
        None => kind
            .fields()
            .any(|(name, form)| name == field && form == docmill_gate::kinds::FieldType::Number),
    }
}

fn merge_value(into: &mut Value, value: Value, last: bool) {
    match (into, value) {
        (_, Value::Null) => {}
        (into @ Value::Null, value) => *into = value,
        (Value::Object(object), Value::Object(more)) => {
            for (name, value) in more {
                merge_value(object.entry(name).or_insert(Value::Null), value, last);
            }
        }
        (into, value) if last => *into = value,
        _ => {}
    }
}

/// The lines that an entry names, page by page. Ids of missing lines are left out: the gate searches
/// for the value itself.
fn locate_lines(entry: &EvidenceEntry, transcript: &Transcript) -> Vec<FieldEvidence> {
    let mut pages: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (page, line) in entry.lines.iter().filter_map(|id| parse_line_id(id)) {
        // Of a part of a file the first page has another number than 1.
        let known = transcript.pages.iter().find(|it| it.number == page);
        if known.is_some_and(|it| (line as usize) < it.lines.len()) {
            pages.entry(page).or_default().insert(line);
        }
    }
    let mut evidence = Vec::with_capacity(pages.len());
    for (page, lines) in pages {
        let lines = lines.into_iter().collect();
        evidence.push(FieldEvidence { field: entry.field.clone(), page, lines });
    }
    evidence
}

/// `p1.l12` as page and index of the line, which is one less than its number.
fn parse_line_id(id: &str) -> Option<(u32, u32)> {
    let (page, line) = id.trim().trim_end_matches('|').strip_prefix('p')?.split_once(".l")?;
    Some((page.parse().ok()?, line.parse::<u32>().ok()?.checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tests::transcript;
    use crate::schema::tests::{invoice, whole};
    use serde::Deserialize;
    use serde_json::json;

    fn part(fields: Value, evidence: Value) -> PartReply {
        part_from((1, 0), fields, evidence)
    }

    fn part_from(first_line: LinePosition, fields: Value, evidence: Value) -> PartReply {
        let mut reply = whole(fields);
        reply["evidence"] = evidence;
        PartReply { first_line, envelope: ReplyEnvelope::deserialize(reply).unwrap() }
    }

    /// Amounts, each with its lines.
    type Entries<'a> = &'a [(u32, &'a [&'a str])];

    /// Entries by their amounts, and each one's line.
    fn listed(first_line: LinePosition, entries: &[(u32, &[&str])]) -> PartReply {
        let items: Vec<Value> =
            entries.iter().map(|(amount, _)| json!({"amount": amount})).collect();
        let field = |at: usize| format!("line_items[{at}].amount");
        let evidence: Vec<Value> = entries
            .iter()
            .enumerate()
            .map(|(at, (_, lines))| json!({"field": field(at), "lines": lines}))
            .collect();
        part_from(first_line, json!({ "line_items": items }), json!(evidence))
    }

    #[test]
    fn what_two_parts_read_is_there_once_and_what_goes_on_over_the_break_is_whole() {
        #[rustfmt::skip]
        let table: [(&str, Entries<'_>, Entries<'_>, &[u32]); 6] = [
            ("shown twice, read twice",     &[(1, &["p1.l1"]), (2, &["p1.l2"])], &[(2, &["p1.l2"]), (3, &["p2.l1"])], &[1, 2, 3]),
            ("read by the later one only",  &[(1, &["p1.l1"])],                  &[(2, &["p1.l2"]), (3, &["p2.l1"])], &[1, 2, 3]),
            ("goes on over the break",      &[(1, &["p1.l1"]), (0, &["p1.l2"])], &[(2, &["p1.l2", "p2.l1"])],         &[1, 2]),
            ("looks the same, is another",  &[(1, &["p1.l1"]), (1, &["p1.l2"])], &[(1, &["p2.l1"]), (1, &["p2.l2"])], &[1, 1, 1, 1]),
            ("names no line",               &[(1, &["p1.l1"])],                  &[(1, &[]), (2, &["nonsense"])],     &[1, 1, 2]),
            ("only the overlap",            &[(1, &["p1.l1"])],                  &[(1, &["p1.l1"])],                  &[1]),
        ];
        let seen = transcript(&[&["a", "b"], &["c", "d"]]);
        for (name, first, second, expected) in table {
            let parts = vec![listed((1, 0), first), listed((2, 0), second)];
            let all = merge_parts(&invoice(), &seen, parts);
            let amounts: Vec<Value> =
                expected.iter().map(|amount| json!({"amount": amount})).collect();
            assert_eq!(all.data["line_items"], json!(amounts), "{name}");
            for place in &all.evidence {
                let (_, index, _) = parse_list_entry(&place.field).unwrap();
                assert!(index < expected.len(), "{name}: {place:?}");
            }
        }
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
        );
        let second = part_from(
            (2, 0),
            json!({"supplier_name": "B", "line_items": item(2), "total": 3, "subtotal": 2}),
            json!([{"field": "line_items[0].amount", "lines": ["p2.l1", "p2.l9", "x", "p1.l2"]}]),
        );
        let seen = transcript(&[&["a", "b"], &["c"]]);
        let all = merge_parts(&invoice(), &seen, vec![first, second]);
        assert_eq!(all.data["supplier_name"], "A");
        assert_eq!(all.data["line_items"], json!([{"amount": 1}, {"amount": 2}]));
        assert_eq!((&all.data["total"], &all.data["subtotal"]), (&json!(3), &json!(2)));
        let missing = |name: &str| all.missing_fields.iter().any(|missing| missing == name);
        assert!(missing("due_date") && !missing("subtotal") && !missing("line_items"));
        let places: Vec<_> =
            all.evidence.iter().map(|it| (it.field.as_str(), it.page, it.lines.clone())).collect();
        let (one, two) = ("line_items[0].amount", "line_items[1].amount");
        assert_eq!(places, [(one, 1, vec![0]), (two, 1, vec![1]), (two, 2, vec![0])]);
    }

    #[test]
    fn the_least_sure_part_speaks_for_the_whole() {
        let mut doubtful = part(json!({}), json!([]));
        doubtful.envelope.confidence = StatedConfidence::Low;
        doubtful.envelope.extraction_successful = false;
        let seen = transcript(&[&["a"]]);
        let all = merge_parts(&invoice(), &seen, vec![part(json!({}), json!([])), doubtful]);
        assert_eq!((all.confidence, all.successful), (StatedConfidence::Low, false));
        assert!(!merge_parts(&invoice(), &seen, Vec::new()).successful);
    }

    #[test]
    fn fields_come_in_the_order_of_the_kind() {
        let one = part(json!({"total": 1}), json!([]));
        let all = merge_parts(&invoice(), &transcript(&[&["a"]]), vec![one]);
        let kind = invoice();
        let order: Vec<&str> = kind.fields().map(|(name, _)| name).collect();
        assert_eq!(all.data.keys().map(String::as_str).collect::<Vec<_>>(), order);
    }
}
