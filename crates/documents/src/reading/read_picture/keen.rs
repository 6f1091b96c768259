//! Reading with the keen reader: which pages it reads first, and what it reads again.
//!
//! It is given the picture as the file has it, or the flat sheet where the file has a photograph of
//! one: what repairs do for Tesseract it needs less, and some take from it what it lives on, the grey
//! of an edge. Only of a fax, and of a page full of specks, it is given the repaired picture first.
//! Where that falls short Tesseract reads the repaired picture, and where both together do, the keen
//! reader reads the other one too. It tells by itself which way up a page lies.

use std::borrow::Cow;

use super::{OcrPass, PictureCandidate, PictureReader, join_readers, score_reading, text_cells};
use crate::language::LanguageEvidence;
use crate::page::PageRaster;
use crate::page_error::PageError;
use crate::quality::PageAssessment;
use crate::reading::recognise::{TurnedPage, TurnedReading};
use crate::repair::{RepairStep, cut_out_sheet, turn_page};

/// Pages whose picture scores less than this are no clean print: reading them plainly first would
/// mostly be for nothing. Clean print of 200 dots per inch, whose letters are smallish, scores more.
const CLEAN: f32 = 0.75;

/// Of a keen reading of this quality nine words in a hundred may be wrong.
const DOUBTLESS: f32 = 0.93;

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
        let keen = self.read_keen_once(page, found, None)?;
        let was_repaired = keen.repaired;
        if self.recogniser.is_keen() || !self.is_doubtful(&keen) {
            return self.read_keen_again(page, found, keen, was_repaired);
        }
        self.remember_language(&keen);
        let (plain, is_repaired) = self.read_plainly(page, found)?;
        self.read_keen_again(page, found, join_readers(keen, plain), is_repaired || was_repaired)
    }

    /// Reads the picture that most can be expected of: the page as the file has it, or the sheet in
    /// its photograph; a page of black and white repaired, because its letters are dots by then, and
    /// one full of specks, because they touch its letters and fill the gaps between its words.
    /// `turns`: which way up it lies, if that is known.
    pub(super) fn read_keen_once<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
        turns: Option<u8>,
    ) -> Result<OcrPass<'a>, PageError> {
        let candidate = match is_read_repaired(found) {
            true => self.repair_page(page, found)?,
            false => None,
        };
        let candidate = match candidate {
            Some(repaired) => repaired,
            None => self.unrepaired_candidate(page, found)?,
        };
        self.read_keen(candidate, found, turns)
    }

    /// Where the best so far falls short: with what the keen reader makes of the other picture of the
    /// page, if there is another one, and if that is of a sheet that was cut out and falls short as
    /// well, of the whole photograph; and whether there was a repair, `is_repaired` up to here.
    pub(super) fn read_keen_again<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
        best: OcrPass<'a>,
        is_repaired: bool,
    ) -> Result<(OcrPass<'a>, bool), PageError> {
        if !self.falls_short(&best) {
            return Ok((best, is_repaired));
        }
        let candidate = match is_read_repaired(found) {
            true if is_repaired => Some(self.unrepaired_candidate(page, found)?),
            true => None,
            false => self.repair_page(page, found)?,
        };
        let Some(candidate) = candidate else { return Ok((best, is_repaired)) };
        let again = self.read_keen(candidate, found, best.known_turns())?;
        let best = join_readers(best, again);
        if !best.moved.contains(&RepairStep::Perspective) || !self.falls_short(&best) {
            return Ok((best, true));
        }
        // Print at the edge of the sheet may have been taken for the table.
        let whole = self.read_keen(PictureCandidate::from_original(page), found, None)?;
        Ok((join_readers(best, whole), true))
    }

    /// Whether a keen reading is worth a plain one beside it, which takes half as long: its mistakes
    /// are others.
    fn is_doubtful(&self, reading: &OcrPass<'_>) -> bool {
        reading.legibility.quality() < DOUBTLESS && self.has_time()
    }

    /// The page as the file has it, or the sheet in its photograph, made flat.
    fn unrepaired_candidate<'a>(
        &self,
        page: &'a PageRaster,
        found: &PageAssessment,
    ) -> Result<PictureCandidate<'a>, PageError> {
        let sheet = cut_out_sheet(page, found, self.recipe.repairs)?;
        let sheet = sheet.map(|sheet| PictureCandidate::from_repair(sheet, found));
        Ok(sheet.unwrap_or_else(|| PictureCandidate::from_original(page)))
    }

    fn read_keen<'a>(
        &mut self,
        candidate: PictureCandidate<'a>,
        found: &PageAssessment,
        turns: Option<u8>,
    ) -> Result<OcrPass<'a>, PageError> {
        let PictureCandidate { mut picture, mut turned, repaired, moved, enlarged } = candidate;
        let may_turn = self.may_turn() && turns.is_none();
        if let Some(turns) = turns.filter(|turns| *turns != turned) {
            picture = Cow::Owned(turn_page(&picture, (turns + 4 - turned) % 4)?);
            turned = turns;
        }
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
        let legibility = score_reading(&text, &lines, true);
        let known = self.recogniser.languages();
        let heard = LanguageEvidence::from_lines(&lines).leading_language(known);
        Ok(OcrPass {
            picture,
            turned,
            repaired,
            moved,
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

/// Whether the keen reader gets the repaired picture of a page before the file's own.
fn is_read_repaired(found: &PageAssessment) -> bool {
    found.bilevel || found.is_speckled()
}

#[cfg(test)]
mod tests;
