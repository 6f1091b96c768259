//! The picture of a page, from its pixels to its text: repaired if its defects call for it, turned
//! if it lies wrong, read once in the language it is written in, and a second time only where the
//! first reading falls short. The better reading stays, with the words that only the other has.
//! Small print that falls short even then is read a third time, enlarged and sharpened.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::encode::encoded;
use super::language::Evidence;
use super::plane::{self, OpenCvError};
use super::probe;
use super::quality::{self, Assessment};
use super::repair::{RepairStep, repair, sharper};
use super::score::{Legibility, legibility};
use super::text_cells::TextCells;
use super::two_readings::merged;
use super::{Raster, Recogniser, Trouble, rows};
use crate::model::{Defect, DefectKind, EncodedImage, Line, Recipe};

/// What is read first where nothing is known, if it is installed.
const USUAL_LANGUAGE: &str = "eng";
/// Letters stand on their feet beyond this, see [`quality::Direction::feet`].
const UPRIGHT: f32 = 0.1;
/// A reading in the language that the words speak of may score this much less than the first one:
/// confidences of two languages are not quite alike.
const LANGUAGE_BONUS: f32 = 1.02;
/// A reading whose words are at least this part as sure has something to say beside the better one.
const PEER: f32 = 0.75;
/// Another reading is begun only within this part of the page's time, so that a page that was read
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
    pub repaired: Option<EncodedImage>,
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

/// A picture to read.
struct Candidate<'a> {
    picture: Cow<'a, Raster>,
    /// Quarter turns clockwise that it was given, to be confirmed by reading.
    turned: u8,
    /// Whether more was done to it than turning.
    repaired: bool,
    /// Whether it still shows the page as it came, larger perhaps, but nowhere else. A page is
    /// repaired once at most, so pictures that are not in place show it in the same other places.
    in_place: bool,
    /// Whether its letters were enlarged.
    enlarged: bool,
}

impl<'a> Candidate<'a> {
    fn as_it_came(page: &'a Raster) -> Self {
        let picture = Cow::Borrowed(page);
        Self { picture, turned: 0, repaired: false, in_place: true, enlarged: false }
    }
}

/// One reading of one picture.
struct Reading<'a> {
    picture: Cow<'a, Raster>,
    turned: u8,
    repaired: bool,
    in_place: bool,
    enlarged: bool,
    text: TextCells,
    lines: Vec<Line>,
    legibility: Legibility,
    languages: Vec<String>,
    heard: Option<String>,
}

impl Reading<'_> {
    /// Whether the picture is another one than the file's.
    fn is_altered(&self) -> bool {
        self.repaired || self.turned != 0
    }

    /// With the words that `other`, a reading of the same page that is not as good, has better or
    /// alone; as it is if the words of the two cannot be held against each other, or if the other
    /// is so much worse that its few sure words are luck.
    fn with(mut self, other: &Self) -> Self {
        let is_equal = other.legibility.confidence >= PEER * self.legibility.confidence;
        if is_equal && self.in_place == other.in_place && self.turned == other.turned {
            let scale = |picture: &Raster| f64::from(picture.width.max(1));
            #[expect(clippy::cast_possible_truncation, reason = "a scale of one digit")]
            let scale = (scale(&self.picture) / scale(&other.picture)) as f32;
            self.lines = merged(self.lines, &other.lines, scale);
            self.legibility = legibility(&self.text, &self.lines);
        }
        self
    }

    fn is_better_than(&self, other: &Self) -> bool {
        self.legibility.quality() > other.legibility.quality()
    }
}

impl PictureReader<'_> {
    /// Reads the picture of a page.
    ///
    /// # Errors
    /// Those of the recogniser; no memory for the repair.
    pub(super) fn read(&mut self, page: &Raster) -> Result<PictureRead, Trouble> {
        let found = quality::assess(page)?;
        let repaired = self.repaired(page, &found)?;
        let is_repaired = repaired.is_some();
        let first = repaired.unwrap_or_else(|| Candidate::as_it_came(page));
        let mut best = self.reading(first, &found)?;
        if self.falls_short(&best) {
            // A repair may have done harm; without one, a smaller defect may have.
            let other = match is_repaired {
                true => Some(Candidate::as_it_came(page)),
                false => self.repaired(page, &found.suspicious())?,
            };
            if let Some(candidate) = other {
                let second = self.reading(candidate, &found)?;
                best = self.joined(best, second)?;
            }
        }
        let is_altered = best.is_altered();
        let mut defects = found.defects;
        if best.turned == 0 && is_repaired {
            // It looked turned and was read upright, or was not read at all.
            defects.retain(|defect| defect.kind != DefectKind::Rotated);
        }
        // What a repair has mended does not count any more.
        let image_score = if is_altered || is_repaired { 1.0 } else { found.score };
        Ok(PictureRead {
            width: best.picture.width,
            height: best.picture.height,
            quality: best.legibility.combined(image_score),
            repaired: if is_altered { Some(encoded(&best.picture)?) } else { None },
            lines: rows(best.lines),
            defects,
            languages: best.languages,
            heard: best.heard,
        })
    }

    /// The better of two readings of the page with what the other has beyond it; if that falls short
    /// as well and one of the two was of an enlarged picture, with a third reading of that one.
    fn joined<'a>(
        &mut self,
        first: Reading<'a>,
        second: Reading<'a>,
    ) -> Result<Reading<'a>, Trouble> {
        let is_better = second.is_better_than(&first);
        let (best, other) = if is_better { (second, first) } else { (first, second) };
        let best = best.with(&other);
        let enlarged = [&best, &other].into_iter().find(|reading| reading.enlarged);
        let third = match enlarged.filter(|_| self.may_sharpen() && self.falls_short(&best)) {
            Some(enlarged) => self.sharpened(enlarged)?,
            None => return Ok(best),
        };
        Ok(if third.is_better_than(&best) { third.with(&best) } else { best.with(&third) })
    }

    /// The same picture, sharpened, read in the same way.
    fn sharpened(&mut self, enlarged: &Reading<'_>) -> Result<Reading<'static>, Trouble> {
        let picture = sharper(&enlarged.picture)?;
        let languages = enlarged.languages.clone();
        let (lines, legibility, heard) = self.read_with(&picture, &enlarged.text, &languages)?;
        Ok(Reading {
            picture: Cow::Owned(picture),
            text: enlarged.text.clone(),
            repaired: true,
            lines,
            legibility,
            languages,
            heard,
            turned: enlarged.turned,
            in_place: enlarged.in_place,
            enlarged: true,
        })
    }

    fn repaired(
        &self,
        page: &Raster,
        found: &Assessment,
    ) -> Result<Option<Candidate<'static>>, Trouble> {
        let done = repair(page, found, self.recipe.repairs)?;
        Ok(done.map(|done| Candidate {
            picture: Cow::Owned(done.raster),
            turned: if done.steps.contains(&RepairStep::Turn) { found.quarter_turns() } else { 0 },
            repaired: done.steps.iter().any(|step| *step != RepairStep::Turn),
            in_place: !done.steps.iter().any(|step| step.moves_ink()),
            enlarged: done.steps.contains(&RepairStep::Upscale),
        }))
    }

    /// Reads a picture upright and in its language.
    fn reading<'a>(
        &mut self,
        candidate: Candidate<'a>,
        found: &Assessment,
    ) -> Result<Reading<'a>, Trouble> {
        let Candidate { mut picture, mut turned, repaired, in_place, enlarged } = candidate;
        let mut text = text_cells(&picture, found)?;
        let mut language = self.hint.clone();
        let is_upright = !found.has(DefectKind::Rotated) && found.direction.feet >= UPRIGHT;
        let is_unheard = self.recipe.languages.is_empty() && language.is_none();
        if (turned != 0 || !is_upright || is_unheard)
            && let Some(look) = self.look(&picture, &text, turned)?
        {
            language = language.or(look.language);
            if look.quarter_turns != 0 {
                picture = Cow::Owned(probe::turned(picture.into_owned(), look.quarter_turns));
                turned = (turned + look.quarter_turns) % 4;
                text = text_cells(&picture, found)?;
            }
        }
        let languages = self.languages(language);
        let (lines, legibility, heard) = self.read_with(&picture, &text, &languages)?;
        self.in_its_language(Reading {
            picture,
            turned,
            repaired,
            in_place,
            enlarged,
            text,
            lines,
            legibility,
            languages,
            heard,
        })
    }

    fn look(
        &mut self,
        picture: &Raster,
        text: &TextCells,
        turned: u8,
    ) -> Result<Option<probe::Look>, Trouble> {
        let back = (4 - turned % 4) % 4;
        let turns: &[u8] = if self.may_turn() { &[2, 1, 3] } else { &[] };
        let first = self.languages(self.hint.clone());
        let order = probe::Order { turns, unless_sure: back };
        Ok(probe::look(picture, text, &order, &first, self.recogniser)?)
    }

    /// Reads it again if its words are of another language than it was read with.
    fn in_its_language<'a>(&mut self, mut first: Reading<'a>) -> Result<Reading<'a>, Trouble> {
        let Some(language) = first.heard.clone() else { return Ok(first) };
        let is_free = self.recipe.languages.is_empty() && !first.languages.contains(&language);
        if !is_free || !self.has_time() {
            return Ok(first);
        }
        let languages = vec![language];
        let (lines, legibility, heard) = self.read_with(&first.picture, &first.text, &languages)?;
        if legibility.quality() * LANGUAGE_BONUS >= first.legibility.quality() {
            first = Reading { lines, legibility, languages, heard, ..first };
        }
        Ok(first)
    }

    fn read_with(
        &mut self,
        picture: &Raster,
        text: &TextCells,
        languages: &[String],
    ) -> Result<(Vec<Line>, Legibility, Option<String>), Trouble> {
        let lines = self.recogniser.recognise(picture, languages)?;
        let legibility = legibility(text, &lines);
        let heard = Evidence::of(&lines).language(self.recogniser.languages());
        Ok((lines, legibility, heard.map(str::to_owned)))
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

    /// Whether a second reading is worth its time: below the middle between what is suspicious and
    /// what is perfect, so that a page that passes by luck gets one too.
    fn falls_short(&self, reading: &Reading<'_>) -> bool {
        let good = f32::midpoint(self.recipe.threshold, 1.0);
        reading.legibility.quality() < good && self.has_time()
    }

    fn may_turn(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.orientation
    }

    fn may_sharpen(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.sharpen
    }

    fn has_time(&self) -> bool {
        self.started.elapsed() < self.page_time / TIME_FOR_MORE
    }
}

/// Where text seems to be. Noise seems to be text as well, unless it is calmed first.
fn text_cells(picture: &Raster, found: &Assessment) -> Result<TextCells, OpenCvError> {
    if !found.has(DefectKind::Noisy) {
        return Ok(TextCells::of(picture));
    }
    let calm = plane::calmed(&plane::view(picture)?)?;
    Ok(TextCells::of(&plane::raster(&calm, picture.dpi)?))
}

#[cfg(test)]
mod tests;
