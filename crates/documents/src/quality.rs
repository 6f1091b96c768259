//! Quality of a page image before OCR: a score from 0 to 1, and its defects.
//!
//! Provider-neutral: the names of the defects are those of Google Document AI and three of ours,
//! the confidences are ours. Each is a smooth ramp, `ramp`, between what reads well and what
//! hardly reads; 0.5 is where a repair begins to pay. The numbers were set on pages rendered and
//! degraded by programs; `scripts/calibrate_quality.sh` prints how well they rank the errors.
//!
//! | defect | measure | fine | bad |
//! |---|---|---|---|
//! | blurry | width of the letters' edges in measured pixels | 3.2 | 5.2 |
//! | noisy | noise in grey levels, or lone specks per megapixel (of a fax) | 4, 100 (40) | 10, 500 (240) |
//! | dark | grey level of the paper | 190 | 90 |
//! | faint | contrast of ink, paper being 255 | 110 | 30 |
//! | `text_too_small` | median height of the letters in pixels (bilevel) | 25 (20) | 12 (10) |
//! | shadowed | share of the paper with neither of its two main shades × range of shades | 0.06, 1.15 | 0.3, 1.5 |
//! | glare | share of the page without any shade | 0.002 | 0.02 |
//! | skewed | degrees | 0.1 | 0.7 |
//! | rotated | letters with their neighbour below over beside; letters on their heads | 1, −0.1 | 2, −0.4 |
//! | `text_cutoff` | share of the letters that touch the frame | 0.005 | 0.04 |
//! | `document_cutoff` | edges of the sheet seen, if not all four | 1 | 3 |
//!
//! The score is the product of `1 − weight × confidence`: defects multiply, as the errors they
//! cause do. Evidence from OCR (words' confidence, missing text) is added after reading.
//!
//! Not promised: that a page of pictures, or one with less than a dozen letters, is judged well.

mod compression_artifacts;
mod dewarp;
mod direction;
mod glyphs;
mod measures;
mod outline;
#[cfg(test)]
pub(crate) mod page_in_code;
mod projection_profile;
#[cfg(test)]
mod tests;
pub(crate) mod text_cells;

pub(crate) use dewarp::{LineBend, straighten_lines};
pub use direction::{LineAxis, LineDirection};
pub(crate) use outline::PaperOutline;

use measures::PageMeasures;

use crate::image::opencv_mat::OpenCvError;
use crate::page::PageRaster;
use docmill_core::model::{PageDefect, PageDefectKind};

/// Confidence from which a defect is taken for real.
pub const CERTAIN: f32 = 0.5;
/// Confidences below this are not worth a line in the transcript.
const MIN_REPORTED_CONFIDENCE: f32 = 0.1;
/// Pages smaller than this, in pixels either way, hold no line of text.
const MIN_SIDE_PIXELS: u32 = 24;
/// Fewer letters than this are no text to judge by.
const MIN_LETTERS: usize = 12;

/// How much of a page's text is lost to a defect at its worst.
const WEIGHTS: [(PageDefectKind, f32); 11] = [
    (PageDefectKind::Blurry, 0.4),
    (PageDefectKind::Noisy, 0.4),
    (PageDefectKind::Dark, 0.1),
    (PageDefectKind::Faint, 0.3),
    (PageDefectKind::TextTooSmall, 0.3),
    (PageDefectKind::DocumentCutoff, 0.1),
    (PageDefectKind::TextCutoff, 0.3),
    (PageDefectKind::Glare, 0.3),
    (PageDefectKind::Skewed, 0.5),
    (PageDefectKind::Rotated, 0.9),
    (PageDefectKind::Shadowed, 0.7),
];

/// Noise in grey levels from which it is noise and not specks.
const MIN_GRAIN: f32 = 5.0;

/// Assessment of a page image before OCR.
#[derive(Debug, Clone, PartialEq)]
pub struct PageAssessment {
    /// 0 to 1; 1 is a page without any defect.
    pub score: f32,
    /// Defects with their confidence, in order of their declaration.
    pub defects: Vec<PageDefect>,
    /// The direction and skew of the lines.
    pub direction: LineDirection,
    /// Median height of the letters in pixels of the page, across the lines; 0 without letters.
    pub letter_height: f32,
    /// Whether the page has next to no grey: a fax, or a scan in black and white.
    pub bilevel: bool,
    /// Pixels of the page.
    pub(crate) pixels: f32,
    /// Its width as a multiple of its height, and the other way round, added up: 2 of a square.
    pub(crate) elongation: f32,
    /// Noise between the pixels, in grey levels.
    pub(crate) noise: f32,
    /// Whether enlarging would amplify artifacts of compression or a scanner's grain.
    pub(crate) rough: bool,
    /// Where the sheet lies in its picture.
    pub(crate) outline: PaperOutline,
}

impl PageAssessment {
    /// Confidence of a defect, 0 if it is not there.
    pub fn defect_confidence(&self, kind: PageDefectKind) -> f32 {
        let found = self.defects.iter().find(|defect| defect.kind == kind);
        found.map_or(0.0, |defect| defect.confidence)
    }

    /// The same with every suspicion taken for a defect, except about how the page lies: for a page
    /// that was read badly as it is.
    pub(crate) fn with_suspicions(&self) -> Self {
        let mut bolder = self.clone();
        for defect in &mut bolder.defects {
            if defect.kind != PageDefectKind::Rotated {
                defect.confidence = 1.0;
            }
        }
        bolder
    }

    /// Whether a defect is there, beyond doubt enough to act on it.
    pub fn has_defect(&self, kind: PageDefectKind) -> bool {
        self.defect_confidence(kind) >= CERTAIN
    }

    /// Whether the noise is lone specks on grey paper. On a fax the letters are made of specks as
    /// well.
    pub(crate) fn is_speckled(&self) -> bool {
        self.has_defect(PageDefectKind::Noisy) && !self.bilevel && self.noise < MIN_GRAIN
    }

    /// Quarter turns clockwise, 0 to 3, that make the page upright, judged by the shapes on it.
    /// Lines along columns are detected surely; head and feet only where [`LineDirection::feet`] is
    /// far from 0.
    pub fn quarter_turns(&self) -> u8 {
        let sideways = match self.direction.axis {
            LineAxis::Columns if self.has_defect(PageDefectKind::Rotated) => 1,
            _ => 0,
        };
        if self.direction.feet < -SURE_FEET { sideways + 2 } else { sideways }
    }
}

/// [`LineDirection::feet`] beyond this, either way, is sure.
pub const SURE_FEET: f32 = 0.25;

/// Measures `page` and finds its defects.
///
/// # Errors
/// `OpenCV` had no memory.
pub fn assess_page(page: &PageRaster) -> Result<PageAssessment, OpenCvError> {
    if page.width.min(page.height) < MIN_SIDE_PIXELS {
        return Ok(PageAssessment::of_nothing(page));
    }
    judge_measures(page, &measures::measure_page(page)?)
}

/// As [`assess_page`], of a sheet that was cut out of its photograph; and how its lines bend, if
/// they do.
///
/// # Errors
/// `OpenCV` had no memory.
pub(crate) fn assess_sheet(
    page: &PageRaster,
) -> Result<(PageAssessment, Option<LineBend>), OpenCvError> {
    if page.width.min(page.height) < MIN_SIDE_PIXELS {
        return Ok((PageAssessment::of_nothing(page), None));
    }
    let measures = measures::measure_page(page)?;
    let found = judge_measures(page, &measures)?;
    let bend = match found.direction.axis {
        LineAxis::Rows => dewarp::find_bend(&measures.pieces.glyphs, measures.size)?,
        LineAxis::Columns => None,
    };
    Ok((found, bend.map(|bend| bend.scaled(measures.factor))))
}

fn judge_measures(
    page: &PageRaster,
    measures: &PageMeasures,
) -> Result<PageAssessment, OpenCvError> {
    let direction = direction::find_direction(&measures.ink, &measures.pieces.glyphs)?;
    let across = |glyph: &glyphs::InkBox| match direction.axis {
        LineAxis::Rows => glyph.height,
        LineAxis::Columns => glyph.width,
    };
    let enlarged = f32::from(u16::try_from(measures.factor).unwrap_or(u16::MAX));
    let letter_height = glyphs::median_side(&measures.pieces.glyphs, across) * enlarged;
    let judged = DefectScorer { measures, direction, letter_height };
    let mut defects = Vec::new();
    let mut score = 1.0;
    for (kind, weight) in WEIGHTS {
        let confidence = judged.defect_confidence(kind);
        score *= 1.0 - weight * confidence;
        if confidence >= MIN_REPORTED_CONFIDENCE {
            defects.push(PageDefect { kind, confidence });
        }
    }
    Ok(PageAssessment {
        score,
        defects,
        direction,
        letter_height,
        bilevel: measures.is_bilevel(),
        pixels: pixels_of(page),
        elongation: elongation_of(page),
        noise: measures.noise,
        rough: measures.is_rough(),
        outline: measures.outline,
    })
}

impl PageAssessment {
    /// Of a picture too small for text: nothing is wrong with it.
    fn of_nothing(page: &PageRaster) -> Self {
        Self {
            score: 1.0,
            defects: Vec::new(),
            direction: LineDirection::UNKNOWN,
            letter_height: 0.0,
            bilevel: false,
            pixels: pixels_of(page),
            elongation: elongation_of(page),
            noise: 0.0,
            rough: false,
            outline: PaperOutline::None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "some millions, of which six digits are enough")]
fn pixels_of(page: &PageRaster) -> f32 {
    page.width as f32 * page.height as f32
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of sides")]
fn elongation_of(page: &PageRaster) -> f32 {
    let ratio = page.width.max(1) as f32 / page.height.max(1) as f32;
    ratio + 1.0 / ratio
}

struct DefectScorer<'a> {
    measures: &'a PageMeasures,
    direction: LineDirection,
    letter_height: f32,
}

impl DefectScorer<'_> {
    fn defect_confidence(&self, kind: PageDefectKind) -> f32 {
        let seen = self.measures;
        let has_text = seen.pieces.glyphs.len() >= MIN_LETTERS;
        match kind {
            PageDefectKind::Dark => smooth_ramp(seen.paper, 190.0, 90.0),
            PageDefectKind::Shadowed => {
                smooth_ramp(seen.uneven, 0.06, 0.3) * smooth_ramp(seen.shade_range, 1.15, 1.5)
            }
            PageDefectKind::Glare => smooth_ramp(seen.glare, 0.002, 0.02),
            PageDefectKind::Noisy => {
                // A fax has its noise where the letters are; little of it lies alone.
                let (fine, bad) = if seen.is_bilevel() { (40.0, 240.0) } else { (100.0, 500.0) };
                smooth_ramp(seen.noise, 4.0, 10.0).max(smooth_ramp(
                    seen.specks_per_million(),
                    fine,
                    bad,
                ))
            }
            PageDefectKind::DocumentCutoff => match seen.outline {
                PaperOutline::Sheet { edges, .. } if edges < 4 => {
                    smooth_ramp(f32::from(edges), 1.0, 3.0)
                }
                PaperOutline::None | PaperOutline::Sheet { .. } => 0.0,
            },
            _ if !has_text => 0.0,
            PageDefectKind::Blurry => smooth_ramp(seen.edge_width, 3.2, 5.2),
            PageDefectKind::Faint => smooth_ramp(seen.contrast, 110.0, 30.0),
            PageDefectKind::TextTooSmall => {
                // Grey edges need more pixels than sharp ones.
                let (fine, bad) = if seen.is_bilevel() { (20.0, 10.0) } else { (25.0, 12.0) };
                smooth_ramp(self.letter_height, fine, bad)
            }
            PageDefectKind::TextCutoff => smooth_ramp(seen.cut_letters(), 0.005, 0.04),
            PageDefectKind::Skewed => smooth_ramp(self.direction.skew_degrees.abs(), 0.1, 0.7),
            PageDefectKind::Rotated => {
                let sideways = match self.direction.axis {
                    LineAxis::Rows => 0.0,
                    LineAxis::Columns => smooth_ramp(self.direction.clarity, 1.0, 2.0),
                };
                sideways.max(smooth_ramp(-self.direction.feet, 0.1, 2.0 * SURE_FEET - 0.1))
            }
        }
    }
}

/// 0 at `fine` and beyond, 1 at `bad` and beyond, and in between the smooth step
/// `3t² − 2t³`: level at both ends, so that a page near a limit is not judged by chance.
fn smooth_ramp(value: f32, fine: f32, bad: f32) -> f32 {
    let t = ((value - fine) / (bad - fine)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
