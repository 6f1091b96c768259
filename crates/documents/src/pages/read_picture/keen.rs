//! Reading with the keen reader: which pages it reads first, and what it reads again.
//!
//! It is given the picture as the file has it: what repairs do for Tesseract it needs less, and
//! some take from it what it lives on, the grey of an edge. Only where that falls short the repaired
//! picture is read as well, and both are joined. It tells by itself which way up a page lies.

use std::borrow::Cow;

use super::{OcrPass, PictureCandidate, PictureReader, join_readers, text_cells};
use crate::pages::language::LanguageEvidence;
use crate::pages::page::PageRaster;
use crate::pages::page_error::PageError;
use crate::pages::quality::PageAssessment;
use crate::pages::recognise::{TurnedPage, TurnedReading};
use crate::pages::score::score_legibility;

/// Pages whose picture scores less than this are no clean print: reading them plainly first would
/// mostly be for nothing. Clean print of 200 dots per inch, whose letters are smallish, scores more.
const CLEAN: f32 = 0.75;

/// Languages in other scripts than Latin, as Tesseract names them, or how such names begin.
const OTHER_SCRIPTS: [&str; 50] = [
    "amh", "ara", "asm", "aze_cyrl", "bel", "ben", "bod", "bul", "chi_", "chr", "dzo", "ell",
    "fas", "grc", "guj", "heb", "hin", "hye", "iku", "jpn", "kan", "kat", "kaz", "khm", "kir",
    "kor", "lao", "mal", "mar", "mkd", "mon", "mya", "nep", "ori", "pan", "pus", "rus", "san",
    "sin", "snd", "srp", "tam", "tel", "tgk", "tha", "tir", "uig", "ukr", "urd", "yid",
];

impl PictureReader<'_> {
    /// Whether there is a keen reader for pages of these languages.
    pub(super) fn has_keen_reader(&mut self) -> bool {
        let is_latin = |name: &String| !OTHER_SCRIPTS.iter().any(|other| name.starts_with(other));
        self.recipe.languages.iter().all(is_latin) && self.recogniser.keen_reader().is_some()
    }

    /// Whether the page is one that the keen reader reads first.
    pub(super) fn begins_keenly(&mut self, found: &PageAssessment) -> bool {
        // The letters of a fax have lost the grey that it lives on.
        let is_bad = found.score < CLEAN && !found.bilevel;
        self.recogniser.is_keen() || is_bad && self.has_keen_reader()
    }

    /// By the keen reader, and plainly as well if that falls short: it may be another script, or a
    /// print that the repair is made for. The best of it, and whether there was a repair.
    pub(super) fn read_keenly_first<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
    ) -> Result<(OcrPass<'a>, bool), PageError> {
        let (keen, was_repaired) = self.read_keenly(page, found)?;
        if self.recogniser.is_keen() || !self.falls_short(&keen) {
            return Ok((keen, was_repaired));
        }
        let (plain, is_repaired) = self.read_plainly(page, found)?;
        Ok((join_readers(keen, plain), is_repaired || was_repaired))
    }

    /// Reads the page as it is, and repaired as well if that falls short and there is something to
    /// repair; the best of it, and whether there was a repair.
    pub(super) fn read_keenly<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
    ) -> Result<(OcrPass<'a>, bool), PageError> {
        let best = self.read_keen(PictureCandidate::from_original(page), found)?;
        if !self.falls_short(&best) {
            return Ok((best, false));
        }
        let Some(repaired) = self.repair_page(page, found)? else { return Ok((best, false)) };
        let second = self.read_keen(repaired, found)?;
        Ok((join_readers(best, second), true))
    }

    fn read_keen<'a>(
        &mut self,
        candidate: PictureCandidate<'a>,
        found: &PageAssessment,
    ) -> Result<OcrPass<'a>, PageError> {
        let PictureCandidate { mut picture, mut turned, repaired, in_place, enlarged } = candidate;
        let may_turn = self.may_turn();
        let languages = self.recipe.languages.clone();
        let reading = match self.recogniser.keen_reader() {
            Some(reader) if may_turn => reader.recognise_turned(&picture, &languages)?,
            Some(reader) => TurnedReading::of_upright(reader.recognise(&picture, &languages)?),
            None => TurnedReading::of_upright(Vec::new()),
        };
        let TurnedReading { turned: found_turned, lines } = reading;
        if let Some(TurnedPage { quarter_turns, upright }) = found_turned {
            picture = Cow::Owned(upright);
            turned = (turned + quarter_turns) % 4;
        }
        let text = text_cells(&picture, found)?;
        let legibility = score_legibility(&text, &lines);
        let known = self.recogniser.languages();
        let heard = LanguageEvidence::from_lines(&lines).leading_language(known);
        Ok(OcrPass {
            picture,
            turned,
            repaired,
            in_place,
            enlarged,
            keen: true,
            text,
            legibility,
            heard: heard.map(str::to_owned),
            languages: heard.map(str::to_owned).into_iter().collect(),
            lines,
        })
    }
}
