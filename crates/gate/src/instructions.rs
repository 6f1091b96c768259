//! Text on a document that addresses a model instead of a reader.
//!
//! Two signs: turns of phrase that a kind's rule lists, and the raw names of our own fields
//! (`supplier_name`), which no honest document prints. A document that words its demand otherwise
//! is not recognised here; what it makes a model say still has to be grounded and to add up.

use std::collections::HashSet;

use crate::kinds::{Kind, RuleCheck};
use docmill_core::model::Transcript;
use docmill_formats::notation::fold_text;

/// Names of the reply's own fields, beside those of the kind.
const ENVELOPE: &[&str] = &["extraction_successful", "missing_fields"];

/// The lines that speak to a model: number of the page, index of the line.
pub(super) fn find_instruction_lines(
    transcript: &Transcript,
    kind: &Kind,
) -> HashSet<(u32, usize)> {
    let phrases: Vec<&String> = kind
        .rules
        .iter()
        .filter_map(|rule| match &rule.check {
            RuleCheck::NoInstructions { phrases } => Some(phrases),
            _ => None,
        })
        .flatten()
        .collect();
    let names: Vec<&str> =
        kind.fields().map(|(name, _)| name).filter(|name| name.contains('_')).collect();
    let mut found = HashSet::new();
    for page in &transcript.pages {
        let folded: Vec<String> =
            page.lines.iter().map(|line| format!(" {} ", fold_text(&line.text()))).collect();
        // Few pages have any phrase: asked of the page at once, wrapped or not.
        let all = folded.iter().map(|line| line.trim_end()).collect::<String>() + " ";
        let phrases: Vec<&String> =
            phrases.iter().copied().filter(|phrase| all.contains(phrase.as_str())).collect();
        for (at, line) in page.lines.iter().enumerate() {
            let own = folded.get(at).map_or("", String::as_str);
            // All names have one.
            let is_raw = line.words.iter().any(|word| word.text.contains('_'));
            let raw = if is_raw { line.text().to_lowercase() } else { String::new() };
            let named = names.iter().chain(ENVELOPE).any(|name| raw.contains(name));
            if named || phrases.iter().any(|phrase| own.contains(*phrase)) {
                found.insert((page.number, at));
                continue;
            }
            // A phrase may be wrapped.
            let Some(next) = folded.get(at + 1).filter(|_| !phrases.is_empty()) else { continue };
            let both = format!("{}{next}", own.trim_end());
            if phrases.iter().any(|phrase| both.contains(*phrase) && !next.contains(*phrase)) {
                found.extend([(page.number, at), (page.number, at + 1)]);
            }
        }
    }
    found
}
