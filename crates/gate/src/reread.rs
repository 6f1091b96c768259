//! Values that a model read from a page's picture, compared with a second reading of the same place.
//!
//! A second reading that contains the value becomes a line of the page, so that every rule finds the
//! value there. Otherwise the model's words become the line, marked as seen by one model alone: the
//! rule `seen_by_one_model` covers those. Neither the model's value nor its place is trusted.

use serde_json::Value;

use super::ground::PrintedValues;
use crate::MAX_PLACES;
use docmill_core::model::{BoundingBox, PageText, TextLine, TextWord, Transcript};

/// Words of a line that are searched for a value at once; a longer value takes the lines as a whole.
const MAX_VALUE: usize = 12;
/// Confidence of words that only a model saw, as page readers give such words.
const ALONE: f32 = 0.35;

/// A value that a model reported of a page's picture.
#[derive(Debug, Clone, PartialEq)]
pub struct PictureClaim {
    /// The value, as it is in the data.
    pub value: Value,
    /// The page, starting at 1.
    pub page: u32,
    /// Left, top, right and bottom edge as the model gives them, in pixels of the picture.
    pub edges: [f64; 4],
}

/// A claim, and what a second reader read at its place: lines with boxes in the page's own units.
#[derive(Debug, Clone, PartialEq)]
pub struct RereadClaim {
    /// The model's claim.
    pub claim: PictureClaim,
    /// The place, in the page's own units; none if the page has no such place.
    pub place: Option<BoundingBox>,
    /// The text that was read there.
    pub lines: Vec<TextLine>,
}

/// The claims whose values no line of the transcript contains, or only words that one model saw. Those
/// go to a second reader, no more than places can be kept.
pub fn unprinted_claims(transcript: &Transcript, claims: Vec<PictureClaim>) -> Vec<PictureClaim> {
    let printed = PrintedValues::new(transcript, |_, _| true);
    let mut open: Vec<PictureClaim> = Vec::new();
    for claim in claims {
        let is_open = printed.value_places(&claim.value).iter().all(|place| place.unwitnessed);
        if is_open && open.len() < MAX_PLACES && !open.contains(&claim) {
            open.push(claim);
        }
    }
    open
}

/// Whether a second reading contains the value.
pub fn confirms_value(lines: &[TextLine], value: &Value) -> bool {
    find_words(lines, value).is_some()
}

/// The transcript with a line for each claim: the second reading if it confirms the claim, else
/// the model's own words, marked as such.
pub fn add_reread_lines(transcript: &Transcript, claims: &[RereadClaim]) -> Transcript {
    let mut seen = transcript.clone();
    for reread in claims {
        let RereadClaim { claim, place, lines } = reread;
        let Some(page) = seen.pages.iter_mut().find(|page| page.number == claim.page) else {
            continue;
        };
        let words = find_words(lines, &claim.value);
        page.lines.push(TextLine {
            words: words.unwrap_or_else(|| model_words(&claim.value, place.unwrap_or_default())),
        });
    }
    seen
}

/// The fewest words of a line that contain the value, or all lines where no single one does.
fn find_words(lines: &[TextLine], value: &Value) -> Option<Vec<TextWord>> {
    for line in lines.iter().filter(|line| contain_value(&line.words, value)) {
        let longest = line.words.len().min(MAX_VALUE);
        let mut windows = (1..=longest).flat_map(|length| line.words.windows(length));
        if let Some(words) = windows.find(|words| contain_value(words, value)) {
            return Some(words.to_vec());
        }
    }
    lines_contain_value(lines, value)
        .then(|| lines.iter().flat_map(|line| line.words.clone()).collect())
}

fn contain_value(words: &[TextWord], value: &Value) -> bool {
    lines_contain_value(&[TextLine { words: words.to_vec() }], value)
}

fn lines_contain_value(lines: &[TextLine], value: &Value) -> bool {
    let page = PageText::from_native(1, (1.0, 1.0), 1.0, lines.to_vec());
    let read = Transcript {
        format: Transcript::FORMAT,
        sha256: String::new(),
        provider: String::new(),
        pages: vec![page],
        quality: 1.0,
    };
    !PrintedValues::new(&read, |_, _| true).value_places(value).is_empty()
}

/// The value in the model's own words.
fn model_words(value: &Value, place: BoundingBox) -> Vec<TextWord> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let text = if text.trim().is_empty() { "?" } else { &text };
    let words = text.split_whitespace().map(|text| TextWord {
        text: text.into(),
        bounding_box: place,
        confidence: ALONE,
        unwitnessed: true,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(text: &str) -> TextLine {
        let word = |(at, text): (u8, &str)| TextWord {
            text: text.into(),
            bounding_box: BoundingBox { x: f32::from(at), y: 1.0, w: 1.0, h: 1.0 },
            confidence: 0.9,
            unwitnessed: false,
        };
        TextLine { words: (0..).zip(text.split(' ')).map(word).collect() }
    }

    fn document(text: &str) -> Transcript {
        Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: vec![PageText::from_native(1, (100.0, 100.0), 0.5, vec![line(text)])],
            quality: 0.5,
        }
    }

    fn claim(value: Value) -> PictureClaim {
        PictureClaim { value, page: 1, edges: [0.0, 0.0, 9.0, 9.0] }
    }

    #[test]
    fn only_digit_by_digit_does_a_second_reading_say_a_value() {
        #[rustfmt::skip]
        let table = [
            (json!(1234.5),                   "Total 1.234,50 EUR",            true),
            (json!(1234.5),                   "Total 1.284,50 EUR",            false),
            (json!("DE89370400440532013000"), "IBAN DE89 3704 0044 0532 0130 00", true),
            (json!("DE89370400440532013000"), "IBAN DE89 3704 0044 0532 0130 01", false),
            (json!("2026-04-03"),             "vom 03.04.2026",                true),
            (json!("2026-04-03"),             "vom 03.04.2025",                false),
            (json!("Honest Parts Ltd"),       "by HONEST PARTS LTD",           true),
            (json!(null),                     "anything",                      false),
            (json!(true),                     "true",                          false),
        ];
        for (value, text, expected) in table {
            assert_eq!(confirms_value(&[line(text)], &value), expected, "{value} in {text}");
        }
        assert!(!confirms_value(&[], &json!(1)));
    }

    #[test]
    fn a_claim_that_the_transcript_has_already_is_not_read_again() {
        let claims = vec![claim(json!(12.5)), claim(json!(99)), claim(json!(99))];
        let open = unprinted_claims(&document("Total 12,50"), claims);
        assert_eq!(open, [claim(json!(99))], "and none twice");
        let many = (0..=MAX_PLACES).map(|number| claim(json!(1_000_000 + number))).collect();
        assert_eq!(unprinted_claims(&document("Total 12,50"), many).len(), MAX_PLACES);
    }

    #[test]
    fn what_the_second_reader_says_is_a_line_of_its_own_and_what_it_does_not_is_marked() {
        let reread = |value: Value, text: &str| RereadClaim {
            claim: claim(value),
            place: Some(BoundingBox { x: 7.0, y: 7.0, w: 7.0, h: 7.0 }),
            lines: vec![line(text)],
        };
        let claims = [reread(json!(99.5), "net 99,50 EUR"), reread(json!(77), "net 71 EUR")];
        let seen = add_reread_lines(&document("Invoice"), &claims);
        let added: Vec<(String, bool)> = seen.pages[0].lines[1..]
            .iter()
            .map(|line| (line.text(), line.words.iter().any(|word| word.unwitnessed)))
            .collect();
        assert_eq!(added, [("99,50".to_owned(), false), ("77".to_owned(), true)]);
        assert_eq!(seen.pages[0].lines[2].words[0].bounding_box.x, 7.0, "where it is said to be");
    }
}
