//! Values in words: names, periods, the document's title.

use super::FoundValue;
use super::characters::count_letters;
use super::label_matches::{LabelMatch, LabelMatches, ValueCandidate};
use super::layout::TextCell;
use super::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

const MAX_TEXT_BYTES: usize = 120;

/// Characters at which a name in running text ends.
const ENDS: [char; 5] = [',', ';', '(', '–', '"'];

/// Share of the first page that may hold its title.
const UPPER: f32 = 0.5;

/// Lines down to the next paragraph.
const REACH: f32 = 3.5;

/// Most words of a title.
const MAX_TITLE: usize = 10;

/// The words beside the best of `field`'s labels.
///
/// A weak label counts only in a cell of its own, a strong one within a sentence only if its
/// continuation begins like a name.
pub(super) fn text_beside_label(
    matches: &LabelMatches<'_>,
    field: &str,
) -> Option<FoundValue<String>> {
    let mut best: Option<(u8, FoundValue<String>)> = None;
    for label_match in matches.of_field(field) {
        let Some(cell) = matches.cell_of(label_match) else { continue };
        let whole = label_match.words.len() == cell.words.len();
        if !label_match.strong && !whole {
            continue;
        }
        let closed = is_closed(cell, label_match);
        let mut places = matches.value_candidates(label_match);
        if places.is_empty() && whole {
            places.extend(paragraph_below(matches, cell));
        }
        let found = places.into_iter().find_map(|beside| {
            let text = candidate_text(&beside, closed)?;
            let sure = u8::from(closed)
                + u8::from(label_match.words.start == 0)
                + u8::from(label_match.strong);
            Some((sure, FoundValue::new(text, closed && !beside.below, beside.cell)))
        });
        if let Some((sure, found)) = found
            && best.as_ref().is_none_or(|(other, _)| sure > *other)
        {
            best = Some((sure, found));
        }
    }
    best.map(|(_, found)| found)
}

/// The next paragraph, with an empty line between.
fn paragraph_below<'a>(matches: &LabelMatches<'a>, cell: &TextCell) -> Option<ValueCandidate<'a>> {
    let below = matches.layout.cell_below(cell, REACH)?;
    Some(ValueCandidate { cell: below, words: 0..below.words.len(), inline: false, below: true })
}

/// Whether a colon ends the label.
fn is_closed(cell: &TextCell, label_match: &LabelMatch) -> bool {
    let last = cell.words.get(label_match.words.end.saturating_sub(1));
    last.is_some_and(|word| word.ends_with(':'))
        || cell.words.get(label_match.words.end).is_some_and(|word| word == ":")
}

fn candidate_text(beside: &ValueCandidate<'_>, closed: bool) -> Option<String> {
    let words = beside.value_words();
    let text = words.join(" ");
    let text = text.trim_start_matches([':', '-', '–', '.', ' ']);
    let name = text.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    if beside.inline && !closed && !name {
        return None;
    }
    let text = text.find(ENDS).and_then(|at| text.get(..at)).unwrap_or(text);
    let mut kept: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        // `Smith and Sons` is one name, `Smith Ltd and Jones Ltd` are two.
        if !closed && kept.len() >= 2 && vocabulary().and.has(&fold_text(word)) {
            break;
        }
        kept.push(word);
    }
    let text = kept.join(" ");
    let text = text.trim_matches(['.', ',', ':', '-', ' ', '"', '“', '”', '„']);
    let letters = count_letters(text);
    (letters >= 2 && text.len() <= MAX_TEXT_BYTES).then(|| text.to_owned())
}

/// The document's title: the largest text in the upper part of its first page, of equals the first.
pub(super) fn document_title(matches: &LabelMatches<'_>) -> Option<FoundValue<String>> {
    let first_page = matches.layout.cells.iter().take_while(|cell| cell.page == 0);
    let able = first_page.filter(|cell| {
        let letters = cell.joined_text().chars().filter(|c| c.is_alphabetic()).count();
        matches.layout.depth_on_page(cell) < UPPER && letters >= 3 && cell.words.len() <= MAX_TITLE
    });
    let mut best: Option<&TextCell> = None;
    for cell in able {
        if best.is_none_or(|other| cell.area.h > 1.1 * other.area.h) {
            best = Some(cell);
        }
    }
    best.map(|cell| {
        FoundValue::new(cell.joined_text().trim_end_matches(':').to_owned(), false, cell)
    })
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn parties_are_read_where_contracts_name_them() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("contract").unwrap();
        for (drawing, first, second) in [
            (
                "between\n\nA Tools Ltd, 3 Road\n\nand\n\nB Homes LLP (hereinafter B)",
                Some("A Tools Ltd"),
                Some("B Homes LLP"),
            ),
            (
                "Landlord:   Jane Miller\nTenant:   John Smith",
                Some("Jane Miller"),
                Some("John Smith"),
            ),
            ("zwischen der Muster GmbH und der Beispiel AG", None, None),
            ("zwischen Muster Bau GmbH und Beispiel AG", Some("Muster Bau GmbH"), None),
            ("Customer shall pay within 30 days", None, None),
        ] {
            let layout = CellLayout::new(&transcript(&[drawing]));
            let matches = LabelMatches::new(&layout, kind);
            let read = |field| text_beside_label(&matches, field).map(|found| found.value);
            assert_eq!(read("first_party").as_deref(), first, "{drawing}");
            assert_eq!(read("second_party").as_deref(), second, "{drawing}");
        }
    }
}
