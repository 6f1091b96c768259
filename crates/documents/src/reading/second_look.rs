//! A second reading of words whose letters are not drawn as the file's text says.
//!
//! The lines with such words are cut out of the drawn page, stacked, and read at once. Where that
//! reading agrees, the word counts like any other. Where it differs, the word is read as it is
//! drawn; where nothing is read, it stays as the file has it. Both remain marked, so that no value
//! rests on them alone. Not promised: that a reader reads every odd font.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use crate::document::ParsedDocument;
use crate::marks::is_checkbox;
use crate::page::PageRaster;
use crate::page_error::PageError;
use crate::pdf::glyph_proof::is_unreadable;
use crate::pdf::text_layer_check::{scale_to_pixels, shows_words};
use crate::reading::merge_ocr::{SharedRegion, shared_regions};
use crate::reading::read_picture::PictureReader;
use docmill_core::model::{BoundingBox, SecondLookResult, TextLine, TextWord};

/// Dots per inch that are enough to read drawn text, which has no noise.
const DPI: u32 = 200;
/// A letter that the file does not name is taken from a reading that is at least this sure.
const MIN_SURE: f32 = 0.5;
/// A word whose letters look like its text is drawn otherwise if a reading is at least this sure.
const MIN_SURE_OTHERWISE: f32 = 0.9;
/// Characters that a glyph without a name may stand for.
const MAX_UNNAMED_CHARS: usize = 4;
/// The gap between a sign and its number, by the number's height.
const MAX_SIGN_GAP: f32 = 0.4;
const MAX_MINUS_GAP: f32 = 0.9;
/// White margin above and below each line, and page rows around it, as shares of its height.
const GAP_SHARE: f32 = 0.5;
const MARGIN_SHARE: f32 = 0.3;
/// Longer words of which a picture shows less than half: it is drawn in another font than the
/// file's, and shows none of them rightly.
const MIN_LOST_WORDS: usize = 10;

/// The lines with their marked words compared with the drawn page `index`.
///
/// # Errors
/// As for drawing and for reading a picture.
pub(crate) fn look_again(
    document: &ParsedDocument,
    index: u32,
    lines: Vec<TextLine>,
    reader: &mut PictureReader<'_>,
) -> Result<Vec<TextLine>, PageError> {
    let Some(rows) = marked_rows(&lines) else { return Ok(lines) };
    let Some((page, above)) = document.draw_rows_at(index, rows, DPI)? else { return Ok(lines) };
    let above = to_pixels(usize::try_from(above).unwrap_or(usize::MAX));
    let mut in_pixels = scale_to_pixels(&lines, page.dpi);
    for word in in_pixels.iter_mut().flat_map(|line| &mut line.words) {
        word.bounding_box.y -= above;
    }
    let strips = LineStrips::cut_out(&page, &in_pixels);
    let read = strips.place_on_page(reader.read_once(&strips.picture)?);
    let compared = compare_words(in_pixels, &read);
    Ok(take_words(lines, &compared))
}

/// The band from the first line with a marked word to the last, in points; `None`: no marked word.
fn marked_rows(lines: &[TextLine]) -> Option<Range<f64>> {
    let marked = lines.iter().filter(|line| is_marked(line)).map(|line| {
        let area = line.bounding_box();
        let margin = area.h * MARGIN_SHARE;
        f64::from(area.y - margin)..f64::from(area.bottom() + margin)
    });
    marked.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
}

/// Compares all words of page `index` with its drawing, though their letters look like their text.
/// The text stays; words that are surely drawn as others are marked.
///
/// # Errors
/// As for drawing and for reading a picture.
pub(crate) fn look_at_all(
    document: &ParsedDocument,
    index: u32,
    lines: &mut [TextLine],
    reader: &mut PictureReader<'_>,
) -> Result<SecondLookResult, PageError> {
    let Some(page) = document.draw_page_at(index, DPI)? else {
        return Ok(SecondLookResult::Unread);
    };
    let in_pixels = scale_to_pixels(lines, page.dpi);
    let read = reader.read_once(&page)?;
    Ok(mark_contradicted(lines, &in_pixels, &read))
}

/// Marks the words that `read` surely has otherwise. `in_pixels` are the same lines as `lines`, with
/// boxes as in `read`.
fn mark_contradicted(
    lines: &mut [TextLine],
    in_pixels: &[TextLine],
    read: &[TextLine],
) -> SecondLookResult {
    if !shows_words(read, in_pixels, MIN_LOST_WORDS) {
        return SecondLookResult::Unread;
    }
    let own: Vec<&TextWord> = in_pixels.iter().flat_map(|line| &line.words).collect();
    let seen: Vec<&TextWord> = read.iter().flat_map(|line| &line.words).collect();
    let mut words: Vec<&mut TextWord> = lines.iter_mut().flat_map(|line| &mut line.words).collect();
    let mut result = SecondLookResult::Unread;
    for region in shared_regions(&own, &seen) {
        let is_same = is_shown(&region, &own, &seen);
        result = match (is_same, result) {
            (false, _) => SecondLookResult::Different,
            (true, SecondLookResult::Unread) => SecondLookResult::Same,
            (true, result) => result,
        };
        for at in region.base.iter().filter(|_| !is_same) {
            if let Some(word) = words.get_mut(*at) {
                (word.confidence, word.unwitnessed) = (TextWord::CONTRADICTED, true);
            }
        }
    }
    result
}

/// Whether the words of a region are those that were read there, or may be.
fn is_shown(region: &SharedRegion, own: &[&TextWord], seen: &[&TextWord]) -> bool {
    let [printed, read] = [(&region.base, own), (&region.other, seen)].map(|(numbers, words)| {
        let mut found: Vec<&TextWord> =
            numbers.iter().filter_map(|at| words.get(*at).copied()).collect();
        found.sort_by(|one, other| one.bounding_box.x.total_cmp(&other.bounding_box.x));
        found
    });
    let is_sure = read.iter().all(|word| word.confidence >= MIN_SURE_OTHERWISE);
    let [printed, read] = [printed, read].map(|words| {
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        word_key(&text)
    });
    // One letter stands for one glyph: a reading of another length has a line of a table in it, or
    // errs.
    !is_sure || printed.len() != read.len() || printed == read
}

fn is_marked(line: &TextLine) -> bool {
    line.words.iter().any(|word| word.unwitnessed)
}

/// How surely the words of a layer are known, drawn checkboxes apart.
pub(crate) fn layer_quality(lines: &[TextLine]) -> f32 {
    let words = lines.iter().flat_map(|line| &line.words).filter(|word| !is_checkbox(word));
    let (mut sum, mut count) = (0.0, 0.0);
    for word in words {
        sum += word.confidence;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 1.0 }
}

/// The words of `lines` as they were compared, in the same order, with their own boxes.
pub(crate) fn take_words(mut lines: Vec<TextLine>, compared: &[TextLine]) -> Vec<TextLine> {
    let words = lines.iter_mut().flat_map(|line| &mut line.words);
    for (word, known) in words.zip(compared.iter().flat_map(|line| &line.words)) {
        *word = TextWord { bounding_box: word.bounding_box, ..known.clone() };
    }
    lines
}

/// The marked words of a layer, compared with a reading of the drawn page. Boxes of both in pixels.
pub(crate) fn compare_words(mut layer: Vec<TextLine>, read: &[TextLine]) -> Vec<TextLine> {
    if !layer.iter().any(is_marked) {
        return layer;
    }
    let read = &join_signs(read);
    let marked: Vec<TextLine> = layer.iter().filter(|line| is_marked(line)).cloned().collect();
    let is_other_font = !shows_words(read, &marked, MIN_LOST_WORDS);
    let own: Vec<&TextWord> = layer.iter().flat_map(|line| &line.words).collect();
    let seen: Vec<&TextWord> = read.iter().flat_map(|line| &line.words).collect();
    let mut results: Vec<TextWord> = own.iter().copied().cloned().collect();
    for region in shared_regions(&own, &seen) {
        let words: Vec<&TextWord> =
            region.other.iter().filter_map(|at| seen.get(*at).copied()).collect();
        compare_region(&mut results, &region, &words, is_other_font);
    }
    let words = layer.iter_mut().flat_map(|line| &mut line.words);
    for (word, result) in words.zip(results) {
        *word = result;
        if word.unwitnessed {
            word.confidence = TextWord::CONTRADICTED;
        }
    }
    layer
}

/// Whether other viewers may show another word.
fn is_contradicted(word: &TextWord) -> bool {
    word.confidence <= TextWord::CONTRADICTED
}

/// Compares the words of a region with those that were read there.
fn compare_region(
    results: &mut [TextWord],
    region: &SharedRegion,
    read: &[&TextWord],
    is_other_font: bool,
) {
    let mut own = region.base.clone();
    own.sort_by(|one, other| left_of(results, *one).total_cmp(&left_of(results, *other)));
    let mut read = read.to_vec();
    read.sort_by(|one, other| one.bounding_box.x.total_cmp(&other.bounding_box.x));
    let printed: String =
        own.iter().filter_map(|at| results.get(*at)).map(|word| word.text.as_str()).collect();
    let seen: String = read.iter().map(|word| word.text.as_str()).collect();
    let confidence = read.iter().map(|word| word.confidence).fold(1.0, f32::min);
    let is_same =
        matches_pattern(&word_key(&printed), &word_key(&seen)) && has_marks_of(&printed, &seen);
    for (position, at) in own.iter().enumerate() {
        // A contradicted word stays contradicted.
        let word = results.get_mut(*at);
        let Some(word) = word.filter(|it| it.unwitnessed && !is_contradicted(it)) else { continue };
        // The reader's words for it, where they are known apart.
        let drawn = match (own.len(), read.get(position)) {
            (1, _) => Some(seen.as_str()),
            (count, Some(one)) if count == read.len() => Some(one.text.as_str()),
            _ => None,
        };
        let is_open = word.text.contains(is_unreadable);
        match drawn {
            _ if is_same && !is_open => (word.confidence, word.unwitnessed) = (1.0, false),
            Some(drawn) if is_same && confidence >= MIN_SURE => {
                word.text = drawn.into();
                (word.confidence, word.unwitnessed) = (confidence, false);
            }
            Some(drawn) if !is_other_font && !word_key(drawn).is_empty() => {
                word.text = drawn.into();
            }
            _ => {}
        }
    }
}

/// The lines of a reading, with signs and digits that were read as words of their own joined with
/// the number that they stand at.
fn join_signs(read: &[TextLine]) -> Vec<TextLine> {
    let mut lines = read.to_vec();
    for line in &mut lines {
        let mut joined: Vec<TextWord> = Vec::new();
        for word in std::mem::take(&mut line.words) {
            match joined.last_mut().filter(|before| is_begun_number(before, &word)) {
                Some(before) => {
                    before.text.push_str(&word.text);
                    before.confidence = before.confidence.min(word.confidence);
                    before.bounding_box = before.bounding_box.union(word.bounding_box);
                }
                None => joined.push(word),
            }
        }
        line.words = joined;
    }
    lines
}

/// Whether a word is the beginning of the number that the next one is.
fn is_begun_number(word: &TextWord, next: &TextWord) -> bool {
    let gap = next.bounding_box.x - word.bounding_box.right();
    let most = if word.text.chars().all(is_minus_sign) { MAX_MINUS_GAP } else { MAX_SIGN_GAP };
    next.text.starts_with(|c: char| c.is_ascii_digit())
        && gap < next.bounding_box.h * most
        && word.text.chars().all(|c| is_minus_sign(c) || c.is_ascii_digit())
}

/// Signs before an amount that turn it around.
fn is_minus_sign(c: char) -> bool {
    matches!(c, '-' | '\u{2212}' | '\u{2013}' | '(')
}

/// Whether the drawn number has the sign and the decimals of its text.
fn has_marks_of(printed: &str, seen: &str) -> bool {
    let is_number = [printed, seen].iter().all(|text| text.contains(|c: char| c.is_ascii_digit()));
    let is_negative = |text: &str| {
        let number = text.trim_start_matches(|c: char| !c.is_alphanumeric() && !is_minus_sign(c));
        number.starts_with(is_minus_sign) || text.ends_with(is_minus_sign)
    };
    !is_number
        || is_negative(printed) == is_negative(seen) && decimals_of(printed) == decimals_of(seen)
}

/// The number of decimals, where the decimal mark is certain.
fn decimals_of(number: &str) -> Option<usize> {
    let (whole, decimals) = number.rsplit_once(['.', ','])?;
    let is_number = whole.ends_with(|c: char| c.is_ascii_digit())
        && decimals.bytes().all(|digit| digit.is_ascii_digit());
    Some(decimals.len()).filter(|count| is_number && (1..=2).contains(count))
}

fn left_of(words: &[TextWord], at: usize) -> f32 {
    words.get(at).map_or(0.0, |word| word.bounding_box.x)
}

/// The letters and digits of a word without case and accents, look-alikes as one; a letter without
/// a name as U+FFFD.
fn word_key(text: &str) -> Vec<char> {
    let mut key = Vec::new();
    for character in text.nfkd().flat_map(char::to_lowercase) {
        key.extend(match character {
            c if is_unreadable(c) => Some('\u{fffd}'),
            'l' | 'i' | '|' | '\u{131}' => Some('1'),
            'o' => Some('0'),
            c => c.is_alphanumeric().then_some(c),
        });
    }
    key
}

/// Whether `seen` is `printed`, of which a letter without a name is a few or none.
fn matches_pattern(printed: &[char], seen: &[char]) -> bool {
    // The lengths of `seen` that what was looked at of `printed` may have.
    let mut lengths = vec![false; seen.len() + 1];
    if let Some(none) = lengths.first_mut() {
        *none = true;
    }
    for character in printed {
        let mut next = vec![false; lengths.len()];
        for (length, _) in lengths.iter().enumerate().filter(|(_, possible)| **possible) {
            let is_unnamed = *character == '\u{fffd}';
            let most = if is_unnamed { MAX_UNNAMED_CHARS } else { 1 };
            let least = usize::from(!is_unnamed);
            let is_equal = is_unnamed || seen.get(length) == Some(character);
            for step in (least..=most).filter(|_| is_equal) {
                if let Some(possible) = next.get_mut(length + step) {
                    *possible = true;
                }
            }
        }
        lengths = next;
    }
    lengths.last().copied().unwrap_or(false)
}

/// The marked lines of a page below each other.
struct LineStrips {
    picture: PageRaster,
    strips: Vec<LineStrip>,
}

/// Where a line begins in the picture and on the page.
#[derive(Clone, Copy)]
struct LineStrip {
    in_picture: usize,
    on_page: usize,
}

impl LineStrips {
    /// `lines` have boxes in pixels of `page`.
    fn cut_out(page: &PageRaster, lines: &[TextLine]) -> Self {
        let mut bands: Vec<(usize, usize)> = Vec::new();
        for line in lines.iter().filter(|line| is_marked(line)) {
            let band = band_of(line.bounding_box(), lines);
            bands.push((to_row(band.start, page.height), to_row(band.end, page.height)));
        }
        bands.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::new();
        for (top, bottom) in bands {
            match joined.last_mut().filter(|(_, last)| top <= *last) {
                Some((_, last)) => *last = bottom.max(*last),
                None => joined.push((top, bottom)),
            }
        }
        let width = usize::try_from(page.width).unwrap_or(0);
        let mut pixels = Vec::new();
        let mut strips = Vec::new();
        for (top, bottom) in joined {
            let gap = to_row(to_pixels(bottom - top) * GAP_SHARE, page.height).max(1);
            pixels.resize(pixels.len() + gap * width, u8::MAX);
            let in_picture = pixels.len() / width.max(1);
            strips.push(LineStrip { in_picture, on_page: top });
            pixels.extend(page.pixels.get(top * width..bottom * width).unwrap_or_default());
            pixels.resize(pixels.len() + gap * width, u8::MAX);
        }
        let height = u32::try_from(pixels.len() / width.max(1)).unwrap_or(0);
        Self { picture: PageRaster { height, pixels, ..*page }, strips }
    }

    /// The lines that were read, where they are on the page.
    fn place_on_page(&self, mut lines: Vec<TextLine>) -> Vec<TextLine> {
        for word in lines.iter_mut().flat_map(|line| &mut line.words) {
            let middle = word.bounding_box.y + word.bounding_box.h / 2.0;
            let before = self.strips.iter().rev();
            let strip = before.copied().find(|strip| to_pixels(strip.in_picture) <= middle);
            if let Some(LineStrip { in_picture, on_page }) = strip {
                word.bounding_box.y += to_pixels(on_page) - to_pixels(in_picture);
            }
        }
        lines
    }
}

/// The rows of a line with a margin, up to its unmarked neighbours: halves of letters would be read
/// as letters.
fn band_of(area: BoundingBox, lines: &[TextLine]) -> Range<f32> {
    let margin = area.h * MARGIN_SHARE;
    let mut band = area.y - margin..area.bottom() + margin;
    for other in lines.iter().filter(|line| !is_marked(line)).map(TextLine::bounding_box) {
        if other.bottom() < area.y + area.h / 2.0 {
            band.start = band.start.max(other.bottom().min(area.y));
        } else if other.y > area.y + area.h / 2.0 {
            band.end = band.end.min(other.y.max(area.bottom()));
        }
    }
    band
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the page")]
fn to_row(pixels: f32, height: u32) -> usize {
    let most = to_pixels(usize::try_from(height).unwrap_or(usize::MAX));
    pixels.clamp(0.0, most) as usize
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn to_pixels(rows: usize) -> f32 {
    rows as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str, x: f32, w: f32) -> TextWord {
        let bounding_box = BoundingBox { x, y: 10.0, w, h: 12.0 };
        TextWord { text: text.into(), bounding_box, confidence: 0.9, unwitnessed: false }
    }

    fn layer(words: &[(&str, f32, f32)]) -> Vec<TextLine> {
        let marked = |(text, x, w): &(&str, f32, f32)| TextWord {
            unwitnessed: true,
            confidence: 1.0,
            ..word(text, *x, *w)
        };
        vec![TextLine { words: words.iter().map(marked).collect() }]
    }

    #[test]
    fn a_word_that_programs_draw_differently_stays_marked_whatever_is_drawn_here() {
        for (confidence, is_marked) in [(1.0, false), (TextWord::CONTRADICTED, true)] {
            let mut own = layer(&[("1,100.00", 0.0, 60.0)]);
            own[0].words[0].confidence = confidence;
            let read = [TextLine { words: vec![word("1,100.00", 1.0, 58.0)] }];
            assert_eq!(compare_words(own, &read)[0].words[0].unwitnessed, is_marked);
        }
    }

    #[test]
    fn a_word_that_is_drawn_as_another_is_read_as_it_is_drawn_and_stays_marked() {
        #[rustfmt::skip]
        let table: [(&str, &[_], &[_], &str); 18] = [
            ("without its decimals",        &[("11.00", 10.0, 60.0)], &[("1100", 10.0, 60.0)], "1100*"),
            ("without its minus",           &[("-1,100.00", 4.0, 66.0)], &[("1,100.00", 10.0, 60.0)], "1,100.00*"),
            ("with decimals drawn in it",   &[("1100", 10.0, 60.0)], &[("11.00", 10.0, 60.0)], "11.00*"),
            ("with its own decimals",       &[("11.00", 10.0, 60.0)], &[("11.00", 10.0, 60.0)], "11.00"),
            ("with a minus drawn before",   &[("1,100.00", 10.0, 60.0)], &[("-1,100.00", 4.0, 66.0)], "-1,100.00*"),
            ("and read apart from it",      &[("1,100.00", 10.0, 60.0)], &[("-", 4.0, 4.0), ("1,100.00", 10.0, 60.0)], "-1,100.00*"),
            ("with a digit drawn before",   &[("1,100.00", 10.0, 60.0)], &[("9", 3.0, 5.0), ("1,100.00", 10.0, 60.0)], "91,100.00*"),
            ("the same",                    &[("1,100.00", 0.0, 60.0)], &[("1,100.00", 1.0, 58.0)], "1,100.00"),
            ("the same by look-alikes",     &[("Oil", 0.0, 30.0)],      &[("0ll", 1.0, 28.0)],      "Oil"),
            ("the same but for accents",    &[("Müller", 0.0, 50.0)],   &[("Muller", 1.0, 48.0)],   "Müller"),
            ("another digit",               &[("9,900.00", 0.0, 60.0)], &[("1,100.00", 1.0, 58.0)], "1,100.00*"),
            ("another letter",              &[("Pinch", 0.0, 40.0)],    &[("Finch", 1.0, 38.0)],    "Finch*"),
            ("nothing is read",             &[("9,900.00", 0.0, 60.0)], &[],                        "9,900.00*"),
            ("read somewhere else",         &[("9,900.00", 0.0, 60.0)], &[("1,100.00", 200.0, 58.0)], "9,900.00*"),
            ("in two pieces",               &[("9900", 0.0, 60.0)],     &[("11", 0.0, 28.0), ("00", 31.0, 28.0)], "1100*"),
            ("two words in one",            &[("AB", 0.0, 20.0), ("CD", 24.0, 20.0)], &[("ABCD", 0.0, 44.0)], "AB CD"),
            ("a letter without a name",     &[("M\u{fffd}ller", 0.0, 50.0)], &[("Müller", 1.0, 48.0)], "Müller"),
            ("without a name beside a lie", &[("M\u{fffd}ller", 0.0, 50.0)], &[("Keller", 1.0, 48.0)], "Keller*"),
        ];
        for (name, own, read, expected) in table {
            let read = [TextLine { words: read.iter().map(|(t, x, w)| word(t, *x, *w)).collect() }];
            let compared = compare_words(layer(own), &read);
            let texts = compared.iter().flat_map(|line| &line.words);
            let texts: Vec<String> = texts
                .map(|word| format!("{}{}", word.text, if word.unwitnessed { "*" } else { "" }))
                .collect();
            assert_eq!(texts.join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_picture_in_another_font_replaces_no_word_and_clears_none() {
        let names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
        let words: Vec<(&str, f32, f32)> =
            (0_u8..12).map(|at| (names[usize::from(at) % 6], f32::from(at) * 50.0, 40.0)).collect();
        let read: Vec<TextWord> = words.iter().map(|(_, x, w)| word("#!qx", *x, *w)).collect();
        let compared = compare_words(layer(&words), &[TextLine { words: read }]);
        let mut kept = compared[0].words.iter().zip(&words);
        assert!(kept.all(|(word, (text, ..))| word.text == *text && word.unwitnessed));
    }

    #[test]
    fn a_page_drawn_by_lot_keeps_its_text_and_is_marked_where_it_is_surely_drawn_otherwise() {
        use SecondLookResult::{Different, Same, Unread};
        let read_as = |text: &str, confidence| TextWord { confidence, ..word(text, 0.0, 60.0) };
        let sure = |text: &str| read_as(text, 0.95);
        #[rustfmt::skip]
        let table = [
            ("the same",               "1,100.00", Some(sure("1.100,00")),                     Same,      "1,100.00"),
            ("another digit",          "9,900.00", Some(sure("1,100.00")),                     Different, "9,900.00*"),
            ("another one, not sure",  "9,900.00", Some(read_as("1,100.00", 0.8)),             Same,      "9,900.00"),
            ("nothing is read",        "9,900.00", None,                                       Unread,    "9,900.00"),
            ("a line beside it",       "Summe",    Some(sure("Summe|")),                           Same,      "Summe"),
            ("a sign for a letter",    "---",      Some(sure("Total")),                        Same,      "---"),
        ];
        for (name, own, read, result, expected) in table {
            let mut lines = vec![TextLine { words: vec![word(own, 0.0, 60.0)] }];
            let (in_pixels, read) =
                (lines.clone(), [TextLine { words: read.into_iter().collect() }]);
            assert_eq!(mark_contradicted(&mut lines, &in_pixels, &read), result, "{name}");
            let own = &lines[0].words[0];
            let shown = format!("{}{}", own.text, if own.unwitnessed { "*" } else { "" });
            assert_eq!(shown, expected, "{name}");
        }
    }

    #[test]
    fn a_strip_of_a_marked_line_has_no_half_of_the_line_beside_it() {
        let at = |y: f32, unwitnessed: bool| {
            let bounding_box = BoundingBox { x: 0.0, y, w: 20.0, h: 12.0 };
            TextLine { words: vec![TextWord { bounding_box, unwitnessed, ..word("7", 0.0, 20.0) }] }
        };
        // The others' rows, and those of the band around the line from 100 to 112.
        let table = [
            (vec![], 96.0, 116.0),
            (vec![60.0, 140.0], 96.0, 116.0),
            (vec![87.0, 113.0], 99.0, 113.0),
            (vec![89.0, 111.0], 100.0, 112.0),
            (vec![101.0], 96.0, 116.0),
        ];
        for (others, start, end) in table {
            let lines: Vec<TextLine> = others.iter().map(|y| at(*y, false)).collect();
            let band = band_of(at(100.0, true).bounding_box(), &lines);
            let near = (band.start - start).abs() < 0.5 && (band.end - end).abs() < 0.5;
            assert!(near, "{others:?}: {band:?}");
        }
    }

    #[test]
    fn words_of_stacked_lines_return_to_their_place_on_the_page() {
        let page = PageRaster { width: 40, height: 400, dpi: 72, pixels: vec![255; 40 * 400] };
        let mut lines = layer(&[("one", 0.0, 20.0)]);
        let mut second = layer(&[("two", 0.0, 20.0)]);
        second[0].words[0].bounding_box.y = 300.0;
        lines.append(&mut second);
        let strips = LineStrips::cut_out(&page, &lines);
        assert!(strips.picture.height < 90, "{}", strips.picture.height);
        let starts: Vec<f32> = strips.strips.iter().map(|it| to_pixels(it.in_picture)).collect();
        let read = starts.iter().map(|y| TextLine {
            words: vec![TextWord {
                bounding_box: BoundingBox { x: 0.0, y: y + 4.0, w: 20.0, h: 12.0 },
                ..word("x", 0.0, 20.0)
            }],
        });
        let placed = strips.place_on_page(read.collect());
        let rows: Vec<f32> = placed.iter().map(|line| line.words[0].bounding_box.y).collect();
        assert!((rows[0] - 10.0).abs() < 2.0 && (rows[1] - 300.0).abs() < 2.0, "{rows:?}");
    }
}
