//! The picture of a page, from its pixels to its text, by the table of passes in [`plan`]: run a
//! pass, merge it into the best reading, stop when that is good. The better of two readings stays,
//! with the words that only the other has.

mod main_reader;
mod plan;
mod robust_reader;

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use self::plan::{EngineSet, PassCondition, PassEngine, PassPicture, ReadingPass, ReadingPlan};
use crate::image::encode::encode_page;
use crate::image::opencv_mat::{self, OpenCvError};
use crate::marks::{PageMarks, find_marks, find_pen_marks, write_boxes};
use crate::page::PageRaster;
use crate::page_error::PageError;
use crate::pdf::lines::join_rows;
use crate::quality::text_cells::TextCells;
use crate::quality::{self, PageAssessment};
use crate::reading::legibility::{LegibilityScore, score_legibility};
use crate::reading::merge_ocr::{MIN_LISTED_LETTERS, ReadingOrigins, letters_of, merge_lines};
use crate::reading::recognise::PageRecogniser;
use crate::repair::{RepairStep, RepairedRaster, cut_out_sheet, repair_page};
use docmill_core::model::{
    EncodedImage, PageCode, PageDefect, PageDefectKind, PageMark, ReadRecipe, TextLine,
};

/// A page whose words are this sure lies as it was read: upside down they would not be.
const SURELY_UPRIGHT: f32 = 0.7;
/// A worse reading is merged into the better one if its words are at least this part as sure.
const MIN_PEER_CONFIDENCE: f32 = 0.75;
/// Of a reading by the robust reader of this quality nine words in a hundred may be wrong.
const DOUBTLESS_QUALITY: f32 = 0.93;
/// Another pass is begun only within this part of the page's time, so that a page that was read is
/// not lost to its limit.
const MORE_PASSES_DIVISOR: u32 = 3;

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
    /// Defects of the picture as the file has it.
    pub defects: Vec<PageDefect>,
    /// Languages it was read with.
    pub languages: Vec<String>,
    /// Language that its words prove.
    pub detected_language: Option<String>,
    /// The picture that was read, if it is not the one of the file.
    pub repaired: Option<EncodedImage>,
    /// Codes on the picture that was read.
    pub codes: Vec<PageCode>,
    /// Other marks on that picture.
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
    /// Steps but turns that have moved its ink. Pictures with the same ones that lie the same way
    /// up have the page's words in the same places, up to their scale.
    moved: Vec<RepairStep>,
    /// Whether its letters were enlarged.
    enlarged: bool,
}

impl<'a> PictureCandidate<'a> {
    fn from_original(page: &'a PageRaster) -> Self {
        let picture = Cow::Borrowed(page);
        Self { picture, turned: 0, repaired: false, moved: Vec::new(), enlarged: false }
    }

    /// Whether the picture is another one than the file's.
    fn is_altered(&self) -> bool {
        self.repaired || self.turned != 0
    }
}

impl PictureCandidate<'static> {
    /// Of a page of which `found` was known.
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
    candidate: PictureCandidate<'a>,
    /// Whether the robust reader read it.
    robust: bool,
    text: TextCells,
    lines: Vec<TextLine>,
    legibility: LegibilityScore,
    languages: Vec<String>,
    detected_language: Option<String>,
}

impl OcrPass<'_> {
    /// Quarter turns clockwise that put the page upright, if it was read so surely that they are
    /// known.
    fn known_turns(&self) -> Option<u8> {
        (self.legibility.confidence >= SURELY_UPRIGHT).then_some(self.candidate.turned)
    }

    /// Adds the words that `other`, a worse reading of the same page, has better or alone.
    /// `listed`: long words of either reading that are in the word lists. Unchanged if the words of
    /// the two cannot be compared, or if `other` is so much worse that its few sure words are luck.
    fn merge_with(&mut self, other: &Self, listed: &HashSet<String>) {
        let is_peer =
            other.legibility.confidence >= MIN_PEER_CONFIDENCE * self.legibility.confidence;
        let (own, others) = (&self.candidate, &other.candidate);
        if !is_peer || own.moved != others.moved || own.turned != others.turned {
            return;
        }
        let (width, other_width) = (own.picture.width.max(1), others.picture.width.max(1));
        #[expect(clippy::cast_possible_truncation, reason = "a scale of one digit")]
        let scale = (f64::from(width) / f64::from(other_width)) as f32;
        let origins = match self.robust == other.robust {
            true => ReadingOrigins::OneReader,
            false => ReadingOrigins::TwoReaders {
                base: self.legibility.confidence,
                other: other.legibility.confidence,
                listed,
            },
        };
        self.lines = merge_lines(std::mem::take(&mut self.lines), &other.lines, scale, origins);
        self.legibility = score_reading(&self.text, &self.lines, self.robust);
    }

    /// Whether this reading is kept rather than `earlier`. Of equal ones the robust reader's is.
    fn replaces(&self, earlier: &Self) -> bool {
        let (quality, earlier_quality) = (self.legibility.quality(), earlier.legibility.quality());
        let is_preferred = self.robust && !earlier.robust;
        quality > earlier_quality || is_preferred && quality >= earlier_quality
    }
}

/// A page's picture as the file has it, and its assessment.
#[derive(Clone, Copy)]
struct SourcePicture<'a> {
    page: &'a PageRaster,
    found: &'a PageAssessment,
}

/// The passes over a page so far.
struct PageReading<'a> {
    /// The best reading, merged with the others.
    best: OcrPass<'a>,
    /// The last reading that was worse, if its picture was enlarged and may be sharpened.
    enlarged: Option<OcrPass<'a>>,
    /// Whether a picture was read that was repaired as its defects call for.
    is_repaired: bool,
}

impl<'a> PageReading<'a> {
    /// Merges the worse of `next` and the best reading into the better one, and returns the worse.
    /// `listed`: long words of either reading that are in the word lists.
    fn merge(&mut self, next: OcrPass<'a>, listed: &HashSet<String>) -> OcrPass<'a> {
        let worse = match next.replaces(&self.best) {
            true => std::mem::replace(&mut self.best, next),
            false => next,
        };
        self.best.merge_with(&worse, listed);
        worse
    }

    /// The reading of an enlarged picture, if there is one.
    fn enlarged(&self) -> Option<&OcrPass<'a>> {
        Some(&self.best).filter(|best| best.candidate.enlarged).or(self.enlarged.as_ref())
    }
}

impl PictureReader<'_> {
    /// Reads the picture of a page.
    ///
    /// # Errors
    /// Those of the recogniser; no memory for the repair.
    pub(crate) fn read(&mut self, page: &PageRaster) -> Result<PictureRead, PageError> {
        let found = quality::assess_page(page)?;
        let plan = ReadingPlan::choose(&found, self.engines());
        let source = SourcePicture { page, found: &found };
        let PageReading { best, is_repaired, .. } = self.run_plan(&plan, source)?;
        let OcrPass { candidate, lines, legibility, languages, detected_language, .. } = best;
        let is_altered = candidate.is_altered();
        let mut defects = found.defects.clone();
        if candidate.turned == 0 && is_repaired {
            // It looked turned and was read upright, or was not read at all.
            defects.retain(|defect| defect.kind != PageDefectKind::Rotated);
        }
        // Repaired defects do not count any more.
        let image_score = if is_altered || is_repaired { 1.0 } else { found.score };
        let picture = candidate.picture;
        let mut lines = join_rows(lines);
        let found = find_marks(&picture, &lines)?;
        let by_pen = find_pen_marks(&picture, &lines, &found)?;
        let PageMarks { codes, boxes, figures } = found;
        write_boxes(&mut lines, &boxes);
        let marks = figures.into_iter().chain(by_pen).take(PageMark::MAX_PER_PAGE).collect();
        Ok(PictureRead {
            width: picture.width,
            height: picture.height,
            quality: legibility.combine_with_image(image_score),
            repaired: if is_altered { Some(encode_page(&picture)?) } else { None },
            lines,
            codes,
            marks,
            defects,
            languages,
            detected_language,
        })
    }

    /// Reads a picture as it is, once, by the main reader.
    ///
    /// # Errors
    /// Those of the recogniser.
    pub(crate) fn read_once(&mut self, picture: &PageRaster) -> Result<Vec<TextLine>, PageError> {
        let languages = self.choose_languages(self.hint.clone());
        Ok(self.recogniser.recognise(picture, &languages)?)
    }

    /// Reads a piece of a page as it is, by every reader there is.
    ///
    /// # Errors
    /// Those of the recogniser.
    pub(crate) fn read_crop(&mut self, crop: &PageRaster) -> Result<Vec<TextLine>, PageError> {
        let languages = self.choose_languages(self.hint.clone());
        let mut lines = self.recogniser.recognise(crop, &languages)?;
        if self.engines() == EngineSet::MainAndRobust
            && let Some(robust) = self.recogniser.robust_reader()
        {
            lines.extend(robust.recognise(crop, &languages)?);
        }
        Ok(lines)
    }

    fn engines(&mut self) -> EngineSet {
        if self.recogniser.is_robust() {
            return EngineSet::RobustOnly;
        }
        if self.has_robust_reader() { EngineSet::MainAndRobust } else { EngineSet::MainOnly }
    }

    /// Runs the passes of `plan` that are needed, and merges them.
    fn run_plan<'a>(
        &mut self,
        plan: &ReadingPlan,
        source: SourcePicture<'a>,
    ) -> Result<PageReading<'a>, PageError> {
        let picture = self.candidate(plan.first.picture, source, None)?;
        let picture = picture.unwrap_or_else(|| PictureCandidate::from_original(source.page));
        let is_repaired = is_called_for(plan.first, &picture);
        let best = match plan.first.engine {
            PassEngine::Main => self.read_by_main(picture, source.found)?,
            PassEngine::Robust => self.read_by_robust(picture, source.found, None)?,
        };
        let mut reading = PageReading { best, enlarged: None, is_repaired };
        for pass in &plan.then {
            if !self.is_needed(pass.condition, &reading.best) {
                continue;
            }
            let Some(next) = self.run_pass(*pass, source, &mut reading)? else { continue };
            let listed = self.listed_words(&reading.best, &next)?;
            let worse = reading.merge(next, &listed);
            reading.enlarged = Some(worse).filter(|it| plan.sharpens() && it.candidate.enlarged);
        }
        Ok(reading)
    }

    /// The long words of both readings that are in the word lists.
    fn listed_words(
        &mut self,
        one: &OcrPass<'_>,
        other: &OcrPass<'_>,
    ) -> Result<HashSet<String>, PageError> {
        let Some(robust) = self.recogniser.robust_reader().filter(|_| one.robust != other.robust)
        else {
            return Ok(HashSet::new());
        };
        let words = one.lines.iter().chain(&other.lines).flat_map(|line| &line.words);
        let long: Vec<&str> = words
            .map(|word| letters_of(&word.text))
            .filter(|word| word.chars().all(char::is_alphabetic))
            .filter(|word| word.chars().count() >= MIN_LISTED_LETTERS)
            .collect();
        let languages: Vec<String> =
            one.languages.iter().chain(&other.languages).cloned().collect();
        let known = robust.known_words(&long, &languages)?;
        let listed = long.into_iter().zip(known).filter(|(_, is_known)| *is_known);
        Ok(listed.map(|(word, _)| word.to_owned()).collect())
    }

    /// One further pass; `None`: the page has no such picture.
    fn run_pass<'a>(
        &mut self,
        pass: ReadingPass,
        source: SourcePicture<'a>,
        reading: &mut PageReading<'a>,
    ) -> Result<Option<OcrPass<'a>>, PageError> {
        // Reuse the detected language.
        self.hint = self.hint.take().or_else(|| reading.best.detected_language.clone());
        if pass.picture == PassPicture::Sharpened {
            let enlarged = reading.enlarged().filter(|_| self.may_sharpen());
            return enlarged.map(|enlarged| self.read_sharpened(enlarged)).transpose();
        }
        let Some(picture) = self.candidate(pass.picture, source, Some(reading))? else {
            return Ok(None);
        };
        reading.is_repaired |= is_called_for(pass, &picture);
        let next = match (pass.engine, pass.picture) {
            (PassEngine::Main, _) => self.read_by_main(picture, source.found)?,
            (PassEngine::Robust, PassPicture::WholePhotograph) => {
                self.read_by_robust(picture, source.found, None)?
            }
            (PassEngine::Robust, _) => {
                self.read_by_robust(picture, source.found, reading.best.known_turns())?
            }
        };
        Ok(Some(next))
    }

    /// The picture for a pass, `reading` being the passes before it.
    fn candidate<'a>(
        &self,
        picture: PassPicture,
        source: SourcePicture<'a>,
        reading: Option<&PageReading<'_>>,
    ) -> Result<Option<PictureCandidate<'a>>, PageError> {
        let SourcePicture { page, found } = source;
        let original = PictureCandidate::from_original(page);
        let was_repaired = reading.is_some_and(|reading| reading.is_repaired);
        Ok(match picture {
            PassPicture::RepairedOrOriginal => Some(self.repair(page, found)?.unwrap_or(original)),
            PassPicture::Repaired => self.repair(page, found)?,
            PassPicture::Unrepaired if !was_repaired => None,
            PassPicture::SheetOrOriginal | PassPicture::Unrepaired => {
                Some(self.cut_out(source)?.unwrap_or(original))
            }
            PassPicture::WholePhotograph => {
                let moved = reading.map(|reading| &reading.best.candidate.moved);
                moved
                    .is_some_and(|moved| moved.contains(&RepairStep::Perspective))
                    .then_some(original)
            }
            PassPicture::Opposite if was_repaired => Some(original),
            PassPicture::Opposite => self.repair(page, &found.with_suspicions())?,
            PassPicture::Sharpened => None,
        })
    }

    fn repair(
        &self,
        page: &PageRaster,
        found: &PageAssessment,
    ) -> Result<Option<PictureCandidate<'static>>, PageError> {
        let done = repair_page(page, found, self.recipe.repairs)?;
        Ok(done.map(|done| PictureCandidate::from_repair(done, found)))
    }

    fn cut_out(
        &self,
        source: SourcePicture<'_>,
    ) -> Result<Option<PictureCandidate<'static>>, PageError> {
        let sheet = cut_out_sheet(source.page, source.found, self.recipe.repairs)?;
        Ok(sheet.map(|sheet| PictureCandidate::from_repair(sheet, source.found)))
    }

    fn is_needed(&self, condition: PassCondition, best: &OcrPass<'_>) -> bool {
        let good = match condition {
            // The middle between suspicious and perfect: a page that passes by luck is read again
            // too.
            PassCondition::FallsShort => f32::midpoint(self.recipe.threshold, 1.0),
            PassCondition::InDoubt => DOUBTLESS_QUALITY,
        };
        best.legibility.quality() < good && self.has_time()
    }

    fn may_turn(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.orientation
    }

    fn may_sharpen(&self) -> bool {
        self.recipe.repairs.enabled && self.recipe.repairs.sharpen
    }

    fn has_time(&self) -> bool {
        self.started.elapsed() < self.page_time / MORE_PASSES_DIVISOR
    }
}

/// Whether `picture` is repaired as the page's defects call for, not on a suspicion. Turns alone
/// are no repair for the robust reader, which detects them by itself.
fn is_called_for(pass: ReadingPass, picture: &PictureCandidate<'_>) -> bool {
    match (pass.engine, pass.picture) {
        (_, PassPicture::Opposite) => false,
        (PassEngine::Robust, PassPicture::RepairedOrOriginal) => picture.repaired,
        _ => picture.is_altered(),
    }
}

/// How far the lines can be trusted. Small letters lower Tesseract's accuracy before its
/// confidence; the robust reader's confidence reflects them.
fn score_reading(text: &TextCells, lines: &[TextLine], is_robust: bool) -> LegibilityScore {
    let legibility = score_legibility(text, lines);
    match is_robust {
        true => LegibilityScore { size: 1.0, ..legibility },
        false => legibility,
    }
}

/// Where text seems to be. Noise looks like text unless it is reduced first.
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
