//! Values with a single source: each of their occurrences contains a word that a vision model
//! reported and the second reader did not.
//!
//! If the extracting model was shown pages, numbers that the transcript lacks and that no rule of
//! the kind checks count as well: no second reader confirms them.
//!
//! This is not one of a kind's rules, because no kind may do without it. A value with a digit (an
//! amount, a date, an account, an identifier) is refused, any other is flagged. Values that are not
//! on the pages at all are covered by other rules, as are values of an attached XML.

use serde_json::Value;

use super::subject::GateSubject;
use super::{GateFinding, MAX_FINDINGS, MAX_PLACES, field_names};
use crate::kinds::{Kind, RuleCheck, RuleConsequence};
use docmill_core::model::ExtractionMethod;

/// The name under which reviewers see it.
const RULE: &str = "seen_by_one_model";

/// A finding for each value that only one model saw.
pub(super) fn find_uncorroborated(subject: &GateSubject<'_>, kind: &Kind) -> Vec<GateFinding> {
    let pages = &subject.transcript.pages;
    let mut words = pages.iter().flat_map(|page| &page.lines).flat_map(|line| &line.words);
    let is_exact = subject.extraction.reader == ExtractionMethod::Einvoice;
    let pictures = subject.lookups.pictures_shown;
    if is_exact || !pictures && !words.any(|word| word.unwitnessed) {
        return Vec::new();
    }
    let names = field_names(subject);
    let looked_for = names_looked_for(kind);
    let values = names.iter().flat_map(|name| subject.named_values(name));
    let unseen = values.take(MAX_PLACES).filter_map(|(field, value)| {
        let has_digit = value.is_number() || has_digit(value);
        let consequence = match is_uncorroborated(subject, value) {
            false
                if pictures
                    && has_digit
                    && !looked_for.contains(&plain_name(&field).as_str())
                    && !subject.ground.contains_value(value) =>
            {
                RuleConsequence::Flag
            }
            false => return None,
            true if has_digit => RuleConsequence::Review,
            true => RuleConsequence::Flag,
        };
        Some(GateFinding { rule: RULE.to_owned(), field: Some(field), consequence })
    });
    let (grave, mild): (Vec<GateFinding>, Vec<GateFinding>) =
        unseen.partition(|finding| finding.consequence == RuleConsequence::Review);
    grave.into_iter().chain(mild).take(MAX_FINDINGS).collect()
}

/// Whether the value is printed, and everywhere with a word that one model alone saw; or is not
/// printed as a whole, and one of its words with a digit is such a word.
fn is_uncorroborated(subject: &GateSubject<'_>, value: &Value) -> bool {
    let places = subject.ground.value_places(value);
    if !places.is_empty() {
        return places.iter().all(|place| place.unwitnessed);
    }
    let words = value.as_str().unwrap_or_default().split_whitespace();
    let mut numbered = words.filter(|word| word.contains(|c: char| c.is_ascii_digit()));
    numbered.any(|word| {
        let places = subject.ground.value_places(&Value::from(word));
        !places.is_empty() && places.iter().all(|place| place.unwitnessed)
    })
}

/// The fields whose values the kind's own rules look for on the pages.
fn names_looked_for(kind: &Kind) -> Vec<&str> {
    let fields = kind.rules.iter().filter_map(|rule| match &rule.check {
        RuleCheck::Grounded { fields, .. } | RuleCheck::GroundedWords { fields, .. } => {
            Some(fields)
        }
        _ => None,
    });
    fields.flatten().map(String::as_str).collect()
}

/// `line_items[2].amount` as rules name it.
fn plain_name(field: &str) -> String {
    let mut within = false;
    let outside = field.chars().filter(|c| {
        within = *c == '[' || within && *c != ']';
        !within && *c != ']'
    });
    outside.collect()
}

fn has_digit(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains(|c: char| c.is_ascii_digit()))
}
