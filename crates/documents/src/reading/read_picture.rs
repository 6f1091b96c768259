//! The picture of a page, from its pixels to its text: repaired if its defects call for it, turned
//! if it lies wrong, read once in the language it is written in, and a second time only where the
//! first reading falls short. The better reading stays, with the words that only the other has.
//! Small print that falls short even then is read a third time, enlarged and sharpened.

mod keen;
mod other_language;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::image::encode::encode_page;
use crate::image::opencv_mat::{self, OpenCvError};
use crate::language::LanguageEvidence;
use crate::marks::{PageMarks, find_marks, find_pen_marks, write_boxes};
use crate::page::PageRaster;
use crate::page_error::PageError;
use crate::pdf::lines::join_rows;
use crate::quality::text_cells::TextCells;
use crate::quality::{self, PageAssessment, SURE_FEET};
use crate::reading::legibility::{LegibilityScore, score_legibility};
use crate::reading::merge_ocr::{ReadingOrigins, merge_lines};
use crate::reading::orientation_probe;
use crate::reading::recognise::PageRecogniser;
use crate::repair::{RepairStep, RepairedRaster, repair_page, sharpen_enlarged};
use docmill_core::model::{
    EncodedImage, PageCode, PageDefect, PageDefectKind, PageMark, ReadRecipe, TextLine,
};

/// What is read first where nothing is known, if it is installed.
const USUAL_LANGUAGE: &str = "eng";
/// Letters stand on their feet beyond this, see [`quality::LineDirection::feet`].
const UPRIGHT: f32 = 0.1;
/// A page whose words are this sure lies as it was read: upside down they would not be.
const SURELY_UPRIGHT: f32 = 0.7;
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
pub(crate) struct PictureRead {
    /// Lines in reading order; boxes in pixels of the picture that was read.
    pub lines: Vec<TextLine>,
    /// Width of that picture.
    pub width: u32,
    /// Height of that picture.
    pub height: u32,
    /// Quality of the reading, 0 to 1.
    pub quality: f32,
    /// What was wrong with the picture as the file has it.
    pub defects: Vec<PageDefect>,
    /// Languages it was read with.
    pub languages: Vec<String>,
    /// The language that its words are surely of.
    pub heard: Option<String>,
    /// The picture that was read, if it is not the one of the file.
    pub repaired: Option<EncodedImage>,
    /// Codes on the picture that was read.
    pub codes: Vec<PageCode>,
    /// What else it shows.
    pub marks: Vec<PageMark>,
}

/// Reads pictures of one document's pages.
pub(crate) struct PictureReader<'a> {
    /// The OCR engine that reads the pictures.
    pub recogniser: &'a mut dyn PageRecogniser,
    /// How pages are to be read: resolution, languages and repairs.
    pub recipe: &'a ReadRecipe,
    /// Language of an earlier page of the document, or of an earlier reading of the page.
    pub hint: Option<String>,
    /// When work on the page began.
    pub started: Instant,
    /// How long work on the page may take, counted from `started`.
    pub page_time: Duration,
}

/// A picture to read.
#[derive(Clone)]
struct PictureCandidate<'a> {
    picture: Cow<'a, PageRaster>,
    /// Quarter turns clockwise that it was given, to be confirmed by reading.
    turned: u8,
    /// Whether more was done to it than turning.
    repaired: bool,
    /// The steps, turns aside, that have moved its ink. Pictures that the same ones have moved, and
    /// that lie the same way up, show the page in the same places, larger perhaps.
    moved: Vec<RepairStep>,
    /// Whether its letters were enlarged.
    enlarged: bool,
}

impl<'a> PictureCandidate<'a> {
    fn from_original(page: &'a PageRaster) -> Self {
        let picture = Cow::Borrowed(page);
        Self { picture, turned: 0, repaired: false, moved: Vec::new(), enlarged: false }
    }
}

impl PictureCandidate<'static> {
    /// A page of which `found` was known.
    fn from_repair(done: RepairedRaster, found: &PageAssessment) -> Self {
        let RepairedRaster { raster, steps } = done;
        Self {
            picture: Cow::Owned(raster),
            turned: if steps.contains(&RepairStep::Turn) { found.quarter_turns() } else { 0 },
            repaired: steps.iter().any(|step| *step != RepairStep::Turn),
            enlarged: steps.contains(&RepairStep::Upscale),
            moved: steps
                .into_iter()
                .filter(|step| step.moves_ink() && *step != RepairStep::Turn)
                .collect(),
        }
    }
}

/// One reading of one picture.
struct OcrPass<'a> {
    picture: Cow<'a, PageRaster>,
    turned: u8,
    repaired: bool,
    moved: Vec<RepairStep>,
    enlarged: bool,
    /// Whether the keen reader read it.
    keen: bool,
    text: TextCells,
    lines: Vec<TextLine>,
    legibility: LegibilityScore,
    languages: Vec<String>,
    heard: Option<String>,
}

impl OcrPass<'_> {
    /// Whether the picture is another one than the file's.
    fn is_altered(&self) -> bool {
        self.repaired || self.turned != 0
    }

    /// Quarter turns clockwise that put the page upright, if it was read so surely that they are known.
    fn known_turns(&self) -> Option<u8> {
        (self.legibility.confidence >= SURELY_UPRIGHT).then_some(self.turned)
    }

    /// With the words that `other`, a reading of the same page that is not as good, has better or
    /// alone; as it is if the words of the two cannot be compared, or if the other
    /// is so much worse that its few sure words are luck.
    fn merge_with(mut self, other: &Self) -> Self {
        let is_equal = other.legibility.confidence >= PEER * self.legibility.confidence;
        if is_equal && self.moved == other.moved && self.turned == other.turned {
            let scale = |picture: &PageRaster| f64::from(picture.width.max(1));
            #[expect(clippy::cast_possible_truncation, reason = "a scale of one digit")]
            let scale = (scale(&self.picture) / scale(&other.picture)) as f32;
            let origins = match self.keen == other.keen {
                true => ReadingOrigins::OneReader,
                false => ReadingOrigins::TwoReaders {
                    base: self.legibility.confidence,
                    other: other.legibility.confidence,
                },
            };
            self.lines = merge_lines(self.lines, &other.lines, scale, origins);
            self.legibility = score_reading(&self.text, &self.lines, self.keen);
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
    pub(crate) fn read(&mut self, page: &PageRaster) -> Result<PictureRead, PageError> {
        let found = quality::assess_page(page)?;
        let (best, is_repaired) = match self.begins_keenly(&found) {
            true => self.read_keenly_first(page, &found)?,
            false => self.read_plainly_first(page, &found)?,
        };
        let is_altered = best.is_altered();
        let mut defects = found.defects;
        if best.turned == 0 && is_repaired {
            // It looked turned and was read upright, or was not read at all.
            defects.retain(|defect| defect.kind != PageDefectKind::Rotated);
        }
        // What a repair has mended does not count any more.
        let image_score = if is_altered || is_repaired { 1.0 } else { found.score };
        let mut lines = join_rows(best.lines);
        let found = find_marks(&best.picture, &lines)?;
        let by_pen = find_pen_marks(&best.picture, &lines, &found)?;
        let PageMarks { codes, boxes, figures } = found;
        write_boxes(&mut lines, &boxes);
        let marks = figures.into_iter().chain(by_pen).take(PageMark::MAX_PER_PAGE).collect();
        Ok(PictureRead {
            width: best.picture.width,
            height: best.picture.height,
            quality: best.legibility.combine_with_image(image_score),
            repaired: if is_altered { Some(encode_page(&best.picture)?) } else { None },
            lines,
            codes,
            marks,
            defects,
            languages: best.languages,
            heard: best.heard,
        })
    }

    /// Reads a piece of a page as it is, by every reader there is: what one of them says counts.
    ///
    /// # Errors
    /// Those of the recogniser.
    pub(crate) fn read_crop(&mut self, crop: &PageRaster) -> Result<Vec<TextLine>, PageError> {
        let languages = self.choose_languages(self.hint.clone());
        let mut lines = self.recogniser.recognise(crop, &languages)?;
        if !self.recogniser.is_keen()
            && self.has_keen_reader()
            && let Some(keen) = self.recogniser.keen_reader()
        {
            lines.extend(keen.recognise(crop, &languages)?);
        }
        Ok(lines)
    }

    /// Once, repaired where its defects call for it; and whether they did.
    fn read_plainly<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
    ) -> Result<(OcrPass<'a>, bool), PageError> {
        let repaired = self.repair_page(page, found)?;
        let is_repaired = repaired.is_some();
        let first = repaired.unwrap_or_else(|| PictureCandidate::from_original(page));
        Ok((self.read_candidate(first, found)?, is_repaired))
    }

    /// Repaired where its defects call for it, and if that falls short by the keen reader as well, or
    /// where there is none, once more the other way; the best of it, and whether there was a repair.
    fn read_plainly_first<'a>(
        &mut self,
        page: &'a PageRaster,
        found: &PageAssessment,
    ) -> Result<(OcrPass<'a>, bool), PageError> {
        let (best, is_repaired) = self.read_plainly(page, found)?;
        if !self.falls_short(&best) {
            return Ok((self.reread_other_language(best)?, is_repaired));
        }
        if self.has_keen_reader() {
            let keen = self.read_keen_once(page, found, best.known_turns())?;
            let was_repaired = is_repaired || keen.repaired;
            return self.read_keen_again(page, found, join_readers(keen, best), was_repaired);
        }
        self.remember_language(&best);
        // A repair may have done harm; without one, a smaller defect may have.
        let other = match is_repaired {
            true => Some(PictureCandidate::from_original(page)),
            false => self.repair_page(page, &found.with_suspicions())?,
        };
        let Some(candidate) = other else { return Ok((best, is_repaired)) };
        let second = self.read_candidate(candidate, found)?;
        Ok((self.join_passes(best, second)?, is_repaired))
    }

    /// What was heard once need not be looked for in the next picture of the page.
    fn remember_language(&mut self, reading: &OcrPass<'_>) {
        self.hint = self.hint.take().or_else(|| reading.heard.clone());
    }

    /// The better of two readings of the page with what the other has beyond it; if that falls
    /// short as well and one of the two was of an enlarged picture, with a third reading of that
    /// one.
    fn join_passes<'a>(
        &mut self,
        first: OcrPass<'a>,
        second: OcrPass<'a>,
    ) -> Result<OcrPass<'a>, PageError> {
        let is_better = second.is_better_than(&first);
        let (best, other) = if is_better { (second, first) } else { (first, second) };
        let best = best.merge_with(&other);
        let enlarged = [&best, &other].into_iter().find(|reading| reading.enlarged);
        let third = match enlarged.filter(|_| self.may_sharpen() && self.falls_short(&best)) {
            Some(enlarged) => self.read_sharpened(enlarged)?,
            None => return Ok(best),
        };
        Ok(if third.is_better_than(&best) {
            third.merge_with(&best)
        } else {
            best.merge_with(&third)
        })
    }

    /// The same picture, sharpened, read in the same way.
    fn read_sharpened(&mut self, enlarged: &OcrPass<'_>) -> Result<OcrPass<'static>, PageError> {
        let picture = sharpen_enlarged(&enlarged.picture)?;
        let languages = enlarged.languages.clone();
        let (lines, legibility, heard) = self.read_with(&picture, &enlarged.text, &languages)?;
        Ok(OcrPass {
            picture: Cow::Owned(picture),
            text: enlarged.text.clone(),
            repaired: true,
            lines,
            legibility,
            languages,
            heard,
            turned: enlarged.turned,
            moved: enlarged.moved.clone(),
            enlarged: true,
            keen: enlarged.keen,
        })
    }

    fn repair_page(
        &self,
        page: &PageRaster,
        found: &PageAssessment,
    ) -> Result<Option<PictureCandidate<'static>>, PageError> {
        let done = repair_page(page, found, self.recipe.repairs)?;
        Ok(done.map(|done| PictureCandidate::from_repair(done, found)))
    }

    /// Reads a picture upright and in its language.
    fn read_candidate<'a>(
        &mut self,
        candidate: PictureCandidate<'a>,
        found: &PageAssessment,
    ) -> Result<OcrPass<'a>, PageError> {
        let PictureCandidate { mut picture, mut turned, repaired, moved, enlarged } = candidate;
        let mut text = text_cells(&picture, found)?;
        let mut language = self.hint.clone();
        let is_upright =
            !found.has_defect(PageDefectKind::Rotated) && found.direction.feet >= UPRIGHT;
        let is_unheard = self.recipe.languages.is_empty() && language.is_none();
        if (turned != 0 || !is_upright || is_unheard)
            && let Some(look) = self.probe_picture(&picture, &text, turned, found)?
        {
            language = language.or(look.language);
            if look.quarter_turns != 0 {
                picture = Cow::Owned(orientation_probe::rotate_raster(
                    picture.into_owned(),
                    look.quarter_turns,
                ));
                turned = (turned + look.quarter_turns) % 4;
                text = text_cells(&picture, found)?;
            }
        }
        let languages = self.choose_languages(language);
        let (lines, legibility, heard) = self.read_with(&picture, &text, &languages)?;
        self.reread_in_language(OcrPass {
            picture,
            turned,
            repaired,
            moved,
            enlarged,
            keen: false,
            text,
            lines,
            legibility,
            languages,
            heard,
        })
    }

    fn probe_picture(
        &mut self,
        picture: &PageRaster,
        text: &TextCells,
        turned: u8,
        found: &PageAssessment,
    ) -> Result<Option<orientation_probe::OrientationProbe>, PageError> {
        let back = (4 - turned % 4) % 4;
        let is_surely_upright = turned == 0
            && !found.has_defect(PageDefectKind::Rotated)
            && found.direction.feet >= SURE_FEET;
        let turns: &[u8] = if self.may_turn() && !is_surely_upright { &[2, 1, 3] } else { &[] };
        let first = self.choose_languages(self.hint.clone());
        let order = orientation_probe::ProbeOptions { turns, unless_sure: back };
        Ok(orientation_probe::probe_orientation(picture, text, &order, &first, self.recogniser)?)
    }

    /// Reads it again if its words are of another language than it was read with.
    fn reread_in_language<'a>(&mut self, mut first: OcrPass<'a>) -> Result<OcrPass<'a>, PageError> {
        let Some(language) = first.heard.clone() else { return Ok(first) };
        let is_free = self.recipe.languages.is_empty() && !first.languages.contains(&language);
        if !is_free || !self.has_time() {
            return Ok(first);
        }
        let languages = vec![language];
        let (lines, legibility, heard) = self.read_with(&first.picture, &first.text, &languages)?;
        if legibility.quality() * LANGUAGE_BONUS >= first.legibility.quality() {
            first = OcrPass { lines, legibility, languages, heard, ..first };
        }
        Ok(first)
    }

    fn read_with(
        &mut self,
        picture: &PageRaster,
        text: &TextCells,
        languages: &[String],
    ) -> Result<(Vec<TextLine>, LegibilityScore, Option<String>), PageError> {
        let lines = self.recogniser.recognise(picture, languages)?;
        let legibility = score_legibility(text, &lines);
        let heard =
            LanguageEvidence::from_lines(&lines).leading_language(self.recogniser.languages());
        Ok((lines, legibility, heard.map(str::to_owned)))
    }

    /// The configured languages; otherwise the one that is known, or a usual one.
    fn choose_languages(&self, known: Option<String>) -> Vec<String> {
        if !self.recipe.languages.is_empty() {
            return self.recipe.languages.clone();
        }
        let installed = self.recogniser.languages();
        let usual = installed.iter().find(|language| *language == USUAL_LANGUAGE);
        known.or_else(|| usual.or_else(|| installed.first()).cloned()).into_iter().collect()
    }

    /// Whether a second reading is worth its time: below the middle between what is suspicious and
    /// what is perfect, so that a page that passes by luck gets one too.
    fn falls_short(&self, reading: &OcrPass<'_>) -> bool {
        let good = f32::midpoint(self.recipe.threshold, 1.0);
        reading.legibility.quality() < good && self.has_time()
    }

    pub(crate) fn may_turn(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.orientation
    }

    fn may_sharpen(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.sharpen
    }

    fn has_time(&self) -> bool {
        self.started.elapsed() < self.page_time / TIME_FOR_MORE
    }
}

/// The better of two readings with what the other has beyond it.
fn join_readers<'a>(one: OcrPass<'a>, other: OcrPass<'a>) -> OcrPass<'a> {
    match other.is_better_than(&one) {
        true => other.merge_with(&one),
        false => one.merge_with(&other),
    }
}

/// How far the lines can be trusted. Letters that are too small lower what Tesseract makes of them
/// before it notices; the keen reader's confidence says it.
fn score_reading(text: &TextCells, lines: &[TextLine], is_keen: bool) -> LegibilityScore {
    let legibility = score_legibility(text, lines);
    match is_keen {
        true => LegibilityScore { size: 1.0, ..legibility },
        false => legibility,
    }
}

/// Where text seems to be. Noise seems to be text as well, unless it is calmed first.
fn text_cells(picture: &PageRaster, found: &PageAssessment) -> Result<TextCells, OpenCvError> {
    if !found.has_defect(PageDefectKind::Noisy) {
        return Ok(TextCells::from_raster(picture));
    }
    let mut calm = opencv_mat::reduce_noise(&opencv_mat::view_raster(picture)?)?;
    if found.is_speckled() {
        calm = opencv_mat::remove_lone_specks(&calm, found.letter_height)?;
    }
    Ok(TextCells::from_raster(&opencv_mat::raster_from_mat(&calm, picture.dpi)?))
}

#[cfg(test)]
mod tests;
