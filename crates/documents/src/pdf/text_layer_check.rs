//! Text layers that cannot be trusted: they lack much of the page's visible text, or are in no
//! language.

use std::collections::HashSet;
use std::ops::Range;

use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::kurbo::Rect;

use crate::language::LanguageEvidence;
use crate::page::PageRaster;
use crate::pdf::render::{self, RenderBounds};
use crate::quality::text_cells::TextCells;
use crate::refusal::PageRefusal;
use docmill_core::model::{BoundingBox, TextLine, TextWord};

/// Dots per inch that are enough to see where text is.
pub(crate) const GLANCE_DPI: u32 = 150;
/// Share of the text cells that a layer must have under its words.
const MIN_COVERED_SHARE: f32 = 0.75;
/// Ink this far from a number may belong to it, by its height.
const MIN_BESIDE: f32 = 0.06;
const MAX_BESIDE: f32 = 0.6;
/// A rule goes on above and below a line by this, by its height.
const RULE_SHARE: f32 = 0.4;
/// Ink is darker than this, and has at least so many columns of pixels.
const MAX_INK_GREY: u8 = 140;
const MIN_INK_COLUMNS: usize = 2;
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

/// Marks numbers beside image ink that may be a further digit or sign; no second reading clears
/// them. Vertical rules that continue above and below the line are ignored.
pub(crate) fn mark_beside_ink(lines: &mut [TextLine], glance: &PageRaster, images: &[Rect]) {
    let in_pixels = scale_to_pixels(lines, glance.dpi);
    let scale = f64::from(glance.dpi) / 72.0;
    let images: Vec<Rect> = images.iter().map(|area| area.scale_from_origin(scale)).collect();
    for (line, drawn) in lines.iter_mut().zip(&in_pixels) {
        let boxes: Vec<BoundingBox> = drawn.words.iter().map(|word| word.bounding_box).collect();
        for (word, own) in line.words.iter_mut().zip(&boxes) {
            let is_number = word.text.contains(|c: char| c.is_ascii_digit());
            let place = rect_of(own).inflate(f64::from(own.h), 0.0);
            if is_number
                && images.iter().any(|image| image.overlaps(place))
                && has_ink_beside(own, &boxes, glance)
            {
                (word.confidence, word.unwitnessed) = (TextWord::CONTRADICTED, true);
            }
        }
    }
}

fn rect_of(area: &BoundingBox) -> Rect {
    let [x0, y0, x1, y1] = [area.x, area.y, area.right(), area.bottom()].map(f64::from);
    Rect::new(x0, y0, x1, y1)
}

/// Whether there is ink left or right of a word that belongs to no other word of its line.
fn has_ink_beside(own: &BoundingBox, boxes: &[BoundingBox], glance: &PageRaster) -> bool {
    let (near, far) = (own.h * MIN_BESIDE, own.h * MAX_BESIDE);
    let before = boxes.iter().map(BoundingBox::right).filter(|right| *right <= own.x);
    let left = before.fold(own.x - far, f32::max);
    let behind = boxes.iter().map(|other| other.x).filter(|left| *left >= own.right());
    let right = behind.fold(own.right() + far, f32::min);
    [(left, own.x - near), (own.right() + near, right)]
        .into_iter()
        .any(|(from, to)| has_letter_ink(own, from..to, glance))
}

/// Whether some columns have ink at the height of a line and none above and below it.
fn has_letter_ink(own: &BoundingBox, across: Range<f32>, glance: &PageRaster) -> bool {
    let margin = own.h * RULE_SHARE;
    let rows = [own.y - margin, own.y, own.bottom(), own.bottom() + margin];
    let [above, top, bottom, below] = rows.map(|row| to_pixel(row, glance.height));
    let mut inked = 0;
    for column in to_pixel(across.start, glance.width)..to_pixel(across.end, glance.width) {
        let is_dark = |row: usize| {
            let width = usize::try_from(glance.width).unwrap_or(0);
            glance.pixels.get(row * width + column).is_some_and(|grey| *grey < MAX_INK_GREY)
        };
        let is_rule = (above..top).chain(bottom..below).any(is_dark);
        inked += usize::from(!is_rule && (top..bottom).any(is_dark));
    }
    inked >= MIN_INK_COLUMNS
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the page")]
fn to_pixel(place: f32, side: u32) -> usize {
    let most = f32::from(u16::try_from(side).unwrap_or(u16::MAX));
    place.clamp(0.0, most) as usize
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
    fn a_number_is_marked_where_an_image_has_ink_beside_it() {
        // At 72 dpi, so that points are pixels. The word lies from 50 to 100.
        let lines = || vec![line("x 1,320.00", 10.0)];
        #[rustfmt::skip]
        let table = [
            ("nothing",             None,                         true,  false),
            ("a digit before it",   Some((55..58, 11..19)),       true,  true),
            ("a digit behind it",   Some((112..115, 11..19)),     true,  true),
            ("a rule before it",    Some((55..58, 0..40)),        true,  false),
            ("far from it",         Some((125..128, 11..19)),     true,  false),
            ("without an image",    Some((55..58, 11..19)),       false, false),
        ];
        for (name, ink, has_image, expected) in table {
            let mut pixels = vec![255; 200 * 60];
            if let Some((columns, rows)) = ink {
                let rows =
                    rows.flat_map(|row: usize| columns.clone().map(move |x: usize| (row, x)));
                rows.for_each(|(row, x)| pixels[row * 200 + x] = 0);
            }
            let glance = PageRaster { width: 200, height: 60, dpi: 72, pixels };
            let image = [Rect::new(0.0, 0.0, 200.0, 60.0)];
            let mut marked = lines();
            let images: &[Rect] = if has_image { &image } else { &[] };
            mark_beside_ink(&mut marked, &glance, images);
            let word = &marked[0].words[1];
            assert_eq!(word.unwitnessed, expected, "{name}");
            assert_eq!(word.confidence == TextWord::CONTRADICTED, expected, "{name}");
        }
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
