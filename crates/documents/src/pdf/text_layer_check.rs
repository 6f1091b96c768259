//! Text layers that cannot be trusted: they lack much of the page's visible text, or are in no
//! language.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;

use crate::language::LanguageEvidence;
use crate::page::PageRaster;
use crate::pdf::render::{self, RenderBounds};
use crate::quality::text_cells::TextCells;
use crate::refusal::PageRefusal;
use docmill_core::model::{BoundingBox, TextLine};

/// Dots per inch that are enough to see where text is.
pub(crate) const GLANCE_DPI: u32 = 150;
/// Share of the text cells that a layer must have under its words.
const MIN_COVERED_SHARE: f32 = 0.75;
/// Words from pictures are added if Tesseract is this sure of them: textures look like words too.
const MIN_SURE_CONFIDENCE: f32 = 0.7;
/// Words of letters that it takes to call a text garbled, ...
const MIN_WORDS: usize = 40;
/// ... and the part of them without a vowel.
const WITHOUT_VOWELS: usize = 4;

/// The page drawn coarsely.
///
/// # Errors
/// As for rendering.
pub(crate) fn glance_at(
    page: &PdfPage<'_>,
    bounds: &RenderBounds<'_>,
) -> Result<PageRaster, PageRefusal> {
    render::render_page(page, &RenderBounds { dpi: GLANCE_DPI, ..*bounds })
}

/// Whether the page, drawn coarsely, shows text that the layer does not have.
pub(crate) fn leaves_text_out(glance: &PageRaster, layer: &[TextLine]) -> bool {
    let lines = scale_to_pixels(layer, glance.dpi);
    TextCells::from_raster(glance).coverage(&lines) < MIN_COVERED_SHARE
}

/// The same lines with their boxes in pixels of the page rendered at `dpi`.
pub(crate) fn scale_to_pixels(lines: &[TextLine], dpi: u32) -> Vec<TextLine> {
    let scale = f32::from(u16::try_from(dpi).unwrap_or(u16::MAX)) / 72.0;
    let mut lines = lines.to_vec();
    for word in lines.iter_mut().flat_map(|line| &mut line.words) {
        word.bounding_box = word.bounding_box.scaled(scale, scale);
    }
    lines
}

/// The words of `read` at positions where `layer` has none.
pub(crate) fn missing_words(layer: &[TextLine], read: &[TextLine]) -> Vec<TextLine> {
    let taken: Vec<BoundingBox> =
        layer.iter().flat_map(|line| &line.words).map(|word| word.bounding_box).collect();
    let mut missing = read.to_vec();
    for line in &mut missing {
        line.words.retain(|word| {
            word.confidence >= MIN_SURE_CONFIDENCE
                && word.text.chars().any(char::is_alphanumeric)
                && !taken.iter().any(|other| covers(other, &word.bounding_box))
        });
    }
    missing.retain(|line| !line.words.is_empty());
    missing
}

/// Whether `taken` contains the middle of `place`, or the two share half of the smaller one.
fn covers(taken: &BoundingBox, place: &BoundingBox) -> bool {
    let (x, y) = (place.x + place.w / 2.0, place.y + place.h / 2.0);
    (taken.x..taken.right()).contains(&x) && (taken.y..taken.bottom()).contains(&y)
        || taken.shared_area(place) * 2.0 > (place.w * place.h).min(taken.w * taken.h)
}

/// Whether a text in Latin letters has the words of no language that we know and too many without
/// a vowel: the font maps its letters to others.
pub(crate) fn is_garbled(lines: &[TextLine]) -> bool {
    let words = lines.iter().flat_map(|line| &line.words);
    let letters = words.map(|word| word.text.trim_matches(|c: char| !c.is_alphabetic()));
    let long: Vec<&str> = letters
        .filter(|word| word.len() >= 4 && word.chars().all(|c| c.is_ascii_alphabetic()))
        .collect();
    let without = long
        .iter()
        .filter(|word| !word.contains(['a', 'e', 'i', 'o', 'u', 'y', 'A', 'E', 'I', 'O', 'U', 'Y']))
        .count();
    long.len() >= MIN_WORDS
        && without * WITHOUT_VOWELS >= long.len()
        && LanguageEvidence::from_lines(lines).strength() < 1.0
}

/// Whether a picture, read as `read`, shows at least half of the longer words of `layer`. Fewer
/// words than `least` prove nothing.
pub(crate) fn shows_words(read: &[TextLine], layer: &[TextLine], least: usize) -> bool {
    let seen: HashSet<String> = longer_words(read).collect();
    let (mut all, mut shown) = (0_usize, 0_usize);
    for word in longer_words(layer) {
        all += 1;
        shown += usize::from(seen.contains(&word));
    }
    all < least || shown * 2 >= all
}

/// Words of four letters and more, in lower case.
fn longer_words(lines: &[TextLine]) -> impl Iterator<Item = String> {
    let words = lines.iter().flat_map(|line| &line.words);
    let letters = words.map(|word| word.text.trim_matches(|c: char| !c.is_alphabetic()));
    letters
        .filter(|word| word.chars().count() >= 4 && word.chars().all(char::is_alphabetic))
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::TextWord;

    fn line(text: &str, y: f32) -> TextLine {
        let word = |(at, text): (usize, &str)| {
            let x = f32::from(u16::try_from(at).unwrap()) * 60.0;
            let bounding_box = BoundingBox { x, y, w: 50.0, h: 10.0 };
            TextWord { text: text.into(), bounding_box, confidence: 0.9, unwitnessed: false }
        };
        TextLine { words: text.split_whitespace().enumerate().map(word).collect() }
    }

    #[test]
    fn words_of_the_picture_are_added_only_where_the_layer_has_none() {
        let layer = [line("Invoice number 4711", 10.0)];
        let mut read = vec![line("Invoice number 4711", 11.0), line("Paid in cash", 300.0)];
        read[1].words[2].confidence = 0.4;
        let missing = missing_words(&layer, &read);
        assert_eq!(missing.iter().map(TextLine::text).collect::<Vec<_>>(), ["Paid in"]);
    }

    #[test]
    fn a_picture_of_other_letters_does_not_show_the_words_of_the_layer() {
        let layer = [line("Invoice total: 9900.00 EUR payable", 10.0)];
        let seen = [line("Invoice total: 1100.00 EUR payab1e", 10.0)];
        let broken = [line("4 LE 7 #A 1242 DLLL CO#", 10.0)];
        assert!(shows_words(&seen, &layer, 3) && !shows_words(&broken, &layer, 3));
        assert!(shows_words(&broken, &layer, 4), "too few words speak against it");
    }

    #[test]
    fn a_text_whose_letters_were_exchanged_is_garbled_and_a_foreign_one_is_not() {
        let said = "invoice amount payable within fourteen days please transfer total";
        let shifted: String = said
            .chars()
            .map(|c| {
                if c == ' ' {
                    ' '
                } else {
                    char::from((u8::try_from(c).unwrap() - b'a' + 3) % 26 + b'a')
                }
            })
            .collect();
        let polish = "faktura sprzedawca nabywca wartość brutto zapłata przelewem termin";
        for (text, garbled) in [(said, false), (&*shifted, true), (polish, false)] {
            let lines: Vec<TextLine> = (0..8).map(|_| line(text, 0.0)).collect();
            assert_eq!(is_garbled(&lines), garbled, "{text}");
        }
    }
}
