//! The picture of a page, from its pixels to its text: repaired if its defects call for it, turned
//! if it lies wrong, read once in the language it is written in, and a second time only where the
//! first reading falls short. The better reading stays.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::encode::encoded;
use super::language::Evidence;
use super::probe::{self, turned};
use super::quality::{self, Assessment};
use super::repair::repair;
use super::score::{Legibility, legibility};
use super::text_cells::TextCells;
use super::{Raster, Recogniser, Trouble, rows};
use crate::model::{Defect, DefectKind, Line, Recipe, RepairedPage};

/// What is read first where nothing is known, if it is installed.
const USUAL_LANGUAGE: &str = "eng";
/// Letters stand on their feet beyond this, see [`quality::Direction::feet`].
const UPRIGHT: f32 = 0.1;
/// A reading in the language that the words speak of may score this much less than the first one:
/// confidences of two languages are not quite alike.
const LANGUAGE_BONUS: f32 = 1.02;
/// A second reading is begun only within this part of the page's time, so that a page that was read
/// is not lost to its limit.
const TIME_FOR_MORE: u32 = 3;

/// A page that was read from its picture.
#[derive(Debug)]
pub(super) struct PictureRead {
    /// Lines in reading order; boxes in pixels of the picture that was read.
    pub lines: Vec<Line>,
    /// Width of that picture.
    pub width: u32,
    /// Its height.
    pub height: u32,
    /// 0 to 1.
    pub quality: f32,
    /// What was wrong with the picture as the file has it.
    pub defects: Vec<Defect>,
    /// Languages it was read with.
    pub languages: Vec<String>,
    /// The language that its words are surely of.
    pub heard: Option<String>,
    /// The picture that was read, if it is not the one of the file.
    pub repaired: Option<RepairedPage>,
}

/// Reads pictures of one document's pages.
pub(super) struct PictureReader<'a> {
    /// What reads.
    pub recogniser: &'a mut dyn Recogniser,
    /// How.
    pub recipe: &'a Recipe,
    /// Language of an earlier page.
    pub hint: Option<String>,
    /// When work on the page began, and how long it may take.
    pub started: Instant,
    /// See there.
    pub page_time: Duration,
}

/// One reading of one picture.
struct Reading<'a> {
    picture: Cow<'a, Raster>,
    lines: Vec<Line>,
    legibility: Legibility,
    languages: Vec<String>,
    heard: Option<String>,
}

impl PictureReader<'_> {
    /// Reads the picture of a page.
    ///
    /// # Errors
    /// Those of the recogniser; no memory for the repair.
    pub(super) fn read(&mut self, page: &Raster) -> Result<PictureRead, Trouble> {
        let found = quality::assess(page)?;
        let repaired = repair(page, &found, self.recipe.repairs)?;
        let mut is_repaired = repaired.is_some();
        let picture = repaired.map_or(Cow::Borrowed(page), |done| Cow::Owned(done.raster));
        let mut best = self.reading(picture, &found, is_repaired)?;
        if is_repaired && self.falls_short(&best) {
            // The repair may have done harm.
            let plain = self.reading(Cow::Borrowed(page), &found, false)?;
            if plain.legibility.quality() > best.legibility.quality() {
                (best, is_repaired) = (plain, false);
            }
        }
        let is_other = is_repaired || matches!(best.picture, Cow::Owned(_));
        let quality = best.legibility.combined(if is_repaired { 1.0 } else { found.score });
        let repaired = if is_other { Some(encoded(&best.picture)?) } else { None };
        Ok(PictureRead {
            lines: rows(best.lines),
            width: best.picture.width,
            height: best.picture.height,
            quality,
            defects: found.defects,
            languages: best.languages,
            heard: best.heard,
            repaired,
        })
    }

    /// Reads `picture` upright and in its language.
    fn reading<'a>(
        &mut self,
        mut picture: Cow<'a, Raster>,
        found: &Assessment,
        is_repaired: bool,
    ) -> Result<Reading<'a>, Trouble> {
        let mut text = TextCells::of(&picture);
        let mut language = self.hint.clone();
        let is_upright = !found.has(DefectKind::Rotated) && found.direction.feet >= UPRIGHT;
        let looks = !is_upright || self.recipe.languages.is_empty() && language.is_none();
        if looks || is_repaired {
            if let Some(look) = self.look(&picture, &text)? {
                language = language.or(look.language);
                if look.quarter_turns != 0 {
                    picture = Cow::Owned(turned(picture.into_owned(), look.quarter_turns));
                    text = TextCells::of(&picture);
                }
            }
        }
        let languages = self.languages(language);
        let reading = self.read_with(picture, &text, languages)?;
        self.in_its_language(reading, &text)
    }

    fn look(
        &mut self,
        picture: &Raster,
        text: &TextCells,
    ) -> Result<Option<probe::Look>, Trouble> {
        let turns: &[u8] = if self.may_turn() { &[2, 1, 3] } else { &[] };
        let first = self.languages(self.hint.clone());
        Ok(probe::look((picture, text), turns, &first, self.recogniser)?)
    }

    /// Reads it again if its words are of another language than it was read with.
    fn in_its_language<'a>(
        &mut self,
        first: Reading<'a>,
        text: &TextCells,
    ) -> Result<Reading<'a>, Trouble> {
        let Some(heard) = first.heard.clone() else { return Ok(first) };
        if !self.recipe.languages.is_empty()
            || first.languages.contains(&heard)
            || !self.has_time()
        {
            return Ok(first);
        }
        let second = self.read_with(first.picture.clone(), text, vec![heard])?;
        let pays = second.legibility.quality() * LANGUAGE_BONUS >= first.legibility.quality();
        Ok(if pays { second } else { first })
    }

    fn read_with<'a>(
        &mut self,
        picture: Cow<'a, Raster>,
        text: &TextCells,
        languages: Vec<String>,
    ) -> Result<Reading<'a>, Trouble> {
        let lines = self.recogniser.recognise(&picture, &languages)?;
        let legibility = legibility(text, &lines);
        let heard = Evidence::of(&lines).language(self.recogniser.languages());
        let heard = heard.map(str::to_owned);
        Ok(Reading { picture, lines, legibility, languages, heard })
    }

    /// The configured languages; otherwise the one that is known, or a usual one.
    fn languages(&self, known: Option<String>) -> Vec<String> {
        if !self.recipe.languages.is_empty() {
            return self.recipe.languages.clone();
        }
        let installed = self.recogniser.languages();
        let usual = installed.iter().find(|language| *language == USUAL_LANGUAGE);
        known.or_else(|| usual.or_else(|| installed.first()).cloned()).into_iter().collect()
    }

    fn falls_short(&self, reading: &Reading<'_>) -> bool {
        reading.legibility.quality() < self.recipe.threshold && self.has_time()
    }

    fn may_turn(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.orientation
    }

    fn has_time(&self) -> bool {
        self.started.elapsed() < self.page_time / TIME_FOR_MORE
    }
}

#[cfg(test)]
mod tests;
