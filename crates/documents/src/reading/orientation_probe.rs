//! A first probe of a page image: a few lines are read to find which way up the page is and its
//! language, before all of it is read once.
//!
//! The probe costs about a tenth of the page. A page is turned only if the few lines cannot be read
//! as the page lies and are read well when turned. Upright and illegible pages stay as they are.

use crate::image::picture::PixelTransform;
use crate::language::{self, LanguageEvidence};
use crate::page::PageRaster;
use crate::quality::text_cells::{RasterPart, TextCells};
use crate::reading::recognise::PageRecogniser;
use docmill_core::fault::Result;
use docmill_core::model::TextLine;

/// Cells of the part that is probed, across and down: about four inches by one.
const PART: (usize, usize) = (40, 10);
/// The same where only the language is open, and how many such parts are read until the words prove
/// it: a whole page read in the wrong language costs as much as ten.
const FEW_LINES: (usize, usize) = (40, 5);
const MAX_PARTS: usize = 4;
/// A word is surely read if Tesseract is this sure of it and it is this long.
const MIN_SURE_CONFIDENCE: f32 = 0.7;
const MIN_WORD_LETTERS: usize = 3;
/// Letters in sure words of a part that counts as read, ...
const MIN_LETTERS: usize = 12;
/// ... the share of all letters that they are on a page that lies right, ...
const MIN_SURE_SHARE: f32 = 0.5;
/// ... and how many times as many a turned page must have to be turned.
const MIN_LEAD: usize = 3;
/// Languages without known words that are tried at most.
const MAX_TRIALS: usize = 6;

/// Result of the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrientationProbe {
    /// Quarter turns clockwise that put the page upright.
    pub quarter_turns: u8,
    /// The lines' language, if their words prove it.
    pub language: Option<String>,
}

/// How far a text is read: letters in sure words, and all letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrientationCounts {
    sure: usize,
    all: usize,
}

impl OrientationCounts {
    /// Counts those of `lines`.
    pub(crate) fn from_lines(lines: &[TextLine]) -> Self {
        let (mut sure, mut all) = (0, 0);
        for word in lines.iter().flat_map(|line| &line.words) {
            let letters = word.text.chars().filter(|c| c.is_alphanumeric()).count();
            all += letters;
            if letters >= MIN_WORD_LETTERS && word.confidence >= MIN_SURE_CONFIDENCE {
                sure += letters;
            }
        }
        Self { sure, all }
    }

    /// Whether these are the letters of a page that lies right.
    pub(crate) fn is_well_read(self) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "letters of a page")]
        let share = self.sure as f32 / self.all.max(1) as f32;
        self.sure >= MIN_LETTERS && share >= MIN_SURE_SHARE
    }

    /// Whether these are so much better than `other` that they justify a turn, or another language.
    pub(crate) fn is_far_better_than(self, other: Self) -> bool {
        self.is_well_read() && self.sure >= MIN_LEAD * other.sure
    }
}

/// How a page may be turned, in quarter turns clockwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeOptions<'a> {
    /// Tried if the page cannot be read as it lies.
    pub turns: &'a [u8],
    /// Default unless the reading proves otherwise: undoes a turn that was made on a suspicion.
    pub unless_sure: u8,
}

/// Reads a few lines of `page` in the cells `text`, first as it lies, then, if that fails, turned.
/// `None`: there is no text.
///
/// # Errors
/// Those of the recogniser.
pub(crate) fn probe_orientation(
    page: &PageRaster,
    text: &TextCells,
    order: &ProbeOptions<'_>,
    languages: &[String],
    recogniser: &mut dyn PageRecogniser,
) -> Result<Option<OrientationProbe>> {
    let across = if order.turns.is_empty() { FEW_LINES } else { PART };
    let Some(part) = text.densest_part(across.0, across.1) else { return Ok(None) };
    let mut piece = crop_raster(page, part);
    let mut lines = recogniser.recognise(&piece, languages)?;
    let as_it_lies = OrientationCounts::from_lines(&lines);
    let mut quarter_turns = 0;
    let mut usual = None;
    if !as_it_lies.is_well_read() {
        for turn in order.turns {
            let across = if turn % 2 == 0 { PART } else { (PART.1, PART.0) };
            let Some(part) = text.densest_part(across.0, across.1) else { continue };
            let other = rotate_raster(crop_raster(page, part), *turn);
            let read = recogniser.recognise(&other, languages)?;
            let letters = OrientationCounts::from_lines(&read);
            if letters.is_far_better_than(as_it_lies) {
                (lines, quarter_turns, piece) = (read, *turn, other);
                usual = None;
                break;
            }
            if *turn == order.unless_sure && letters.sure >= as_it_lies.sure {
                usual = Some((read, *turn, other));
            }
        }
    }
    if let Some(usual) = usual {
        (lines, quarter_turns, piece) = usual;
    }
    let counts = OrientationCounts::from_lines(&lines);
    let mut language = detect_language(&lines, recogniser);
    if language.is_none() && !counts.is_well_read() {
        language = probe_other_languages(&piece, counts, recogniser)?;
    }
    if language.is_none() && quarter_turns == 0 {
        language = probe_further(page, text.without(part), lines, languages, recogniser)?;
    }
    Ok(Some(OrientationProbe { quarter_turns, language }))
}

fn detect_language(lines: &[TextLine], recogniser: &dyn PageRecogniser) -> Option<String> {
    let evidence = LanguageEvidence::from_lines(lines);
    evidence.leading_language(recogniser.languages()).map(str::to_owned)
}

/// Reads more of an upright page, in the rest of its `text`, until its words and those of `lines`
/// prove their language.
fn probe_further(
    page: &PageRaster,
    mut text: TextCells,
    mut lines: Vec<TextLine>,
    languages: &[String],
    recogniser: &mut dyn PageRecogniser,
) -> Result<Option<String>> {
    for _further in 1..MAX_PARTS {
        let Some(part) = text.densest_part(FEW_LINES.0, FEW_LINES.1) else { break };
        lines.extend(recogniser.recognise(&crop_raster(page, part), languages)?);
        let language = detect_language(&lines, recogniser);
        if language.is_some() {
            return Ok(language);
        }
        text = text.without(part);
    }
    Ok(None)
}

/// Another script, perhaps: the language among those whose words are not known here that reads the
/// piece well where the first one hardly did, if there is one.
fn probe_other_languages(
    piece: &PageRaster,
    first: OrientationCounts,
    recogniser: &mut dyn PageRecogniser,
) -> Result<Option<String>> {
    let others = recogniser.languages().iter().filter(|name| !language::is_known_language(name));
    let others: Vec<String> = others.take(MAX_TRIALS).cloned().collect();
    let mut best: Option<(usize, String)> = None;
    for name in others {
        let letters = OrientationCounts::from_lines(
            &recogniser.recognise(piece, std::slice::from_ref(&name))?,
        );
        let is_better = letters.is_far_better_than(first);
        if is_better && best.as_ref().is_none_or(|(sure, _)| letters.sure > *sure) {
            best = Some((letters.sure, name));
        }
    }
    Ok(best.map(|(_, name)| name))
}

/// A page turned clockwise by quarter turns.
pub(crate) fn rotate_raster(page: PageRaster, quarter_turns: u8) -> PageRaster {
    let (transpose, mirror, flip) = match quarter_turns % 4 {
        0 => (false, false, false),
        1 => (true, true, false),
        2 => (false, true, true),
        _ => (true, false, true),
    };
    PixelTransform { transpose, mirror, flip }.apply(page)
}

fn crop_raster(page: &PageRaster, part: RasterPart) -> PageRaster {
    let across = page.width as usize;
    let rows = (part.top..part.top + part.height).filter_map(|y| {
        let start = y * across + part.left;
        page.pixels.get(start..start + part.width)
    });
    let pixels: Vec<u8> = rows.flatten().copied().collect();
    let width = u32::try_from(part.width).unwrap_or(u32::MAX);
    let height = u32::try_from(pixels.len() / part.width.max(1)).unwrap_or(u32::MAX);
    PageRaster { width, height, dpi: page.dpi, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_is_clockwise() {
        let page = PageRaster { width: 2, height: 1, dpi: 0, pixels: vec![1, 2] };
        let table =
            [(0, (2, 1), [1, 2]), (1, (1, 2), [1, 2]), (2, (2, 1), [2, 1]), (3, (1, 2), [2, 1])];
        for (turns, size, pixels) in table {
            let turned = rotate_raster(page.clone(), turns);
            assert_eq!(((turned.width, turned.height), &turned.pixels[..]), (size, &pixels[..]));
        }
        let wide = PageRaster { width: 3, height: 2, dpi: 0, pixels: vec![1, 2, 3, 4, 5, 6] };
        assert_eq!(rotate_raster(wide, 1).pixels, [4, 1, 5, 2, 6, 3]);
    }

    #[test]
    fn a_page_is_turned_only_where_it_is_read_many_times_better() {
        let letters = |sure, all| OrientationCounts { sure, all };
        assert!(letters(60, 80).is_far_better_than(letters(6, 70)));
        assert!(!letters(60, 80).is_far_better_than(letters(25, 70)), "read as it lies, if badly");
        assert!(
            !letters(20, 80).is_far_better_than(letters(0, 70)),
            "turned, it is read badly too"
        );
        assert!(!letters(9, 9).is_far_better_than(letters(0, 70)), "too little to tell");
    }
}
