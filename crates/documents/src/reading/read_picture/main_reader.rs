//! A pass by the main reader, Tesseract: upright, in the language of the page.

use std::borrow::Cow;

use super::{OcrPass, PictureCandidate, PictureReader, text_cells};
use crate::language::LanguageEvidence;
use crate::page_error::PageError;
use crate::quality::text_cells::TextCells;
use crate::quality::{PageAssessment, SURE_FEET};
use crate::reading::legibility::score_legibility;
use crate::reading::orientation_probe::{
    OrientationProbe, ProbeOptions, probe_orientation, rotate_raster,
};
use crate::repair::sharpen_enlarged;
use docmill_core::model::PageDefectKind;

/// The language to begin with where nothing is known, if it is installed.
const DEFAULT_LANGUAGE: &str = "eng";
/// Letters stand on their feet beyond this, see [`crate::quality::LineDirection::feet`].
const UPRIGHT: f32 = 0.1;
/// A reading in the language that the words speak of may score this much less than the first one:
/// confidences of two languages are not quite alike.
const LANGUAGE_BONUS: f32 = 1.02;

impl PictureReader<'_> {
    /// Reads a picture upright and in its language.
    pub(super) fn read_by_main<'a>(
        &mut self,
        mut candidate: PictureCandidate<'a>,
        found: &PageAssessment,
    ) -> Result<OcrPass<'a>, PageError> {
        let mut text = text_cells(&candidate.picture, found)?;
        let mut language = self.hint.clone();
        let is_upright =
            !found.has_defect(PageDefectKind::Rotated) && found.direction.feet >= UPRIGHT;
        let is_language_open = self.recipe.languages.is_empty() && language.is_none();
        if (candidate.turned != 0 || !is_upright || is_language_open)
            && let Some(probe) = self.probe_picture(&candidate, &text, found)?
        {
            language = language.or(probe.language);
            if probe.quarter_turns != 0 {
                let turned = rotate_raster(candidate.picture.into_owned(), probe.quarter_turns);
                candidate.picture = Cow::Owned(turned);
                candidate.turned = (candidate.turned + probe.quarter_turns) % 4;
                text = text_cells(&candidate.picture, found)?;
            }
        }
        let languages = self.choose_languages(language);
        let first = self.read_in_languages(candidate, text, languages)?;
        self.reread_in_language(first)
    }

    /// The picture of an earlier pass, sharpened and read in the same way.
    pub(super) fn read_sharpened(
        &mut self,
        enlarged: &OcrPass<'_>,
    ) -> Result<OcrPass<'static>, PageError> {
        let candidate = PictureCandidate {
            picture: Cow::Owned(sharpen_enlarged(&enlarged.candidate.picture)?),
            turned: enlarged.candidate.turned,
            repaired: true,
            moved: enlarged.candidate.moved.clone(),
            enlarged: true,
        };
        self.read_in_languages(candidate, enlarged.text.clone(), enlarged.languages.clone())
    }

    /// Configured languages; otherwise the `known` one, or a default.
    pub(super) fn choose_languages(&self, known: Option<String>) -> Vec<String> {
        if !self.recipe.languages.is_empty() {
            return self.recipe.languages.clone();
        }
        let installed = self.recogniser.languages();
        let default = installed.iter().find(|language| *language == DEFAULT_LANGUAGE);
        known.or_else(|| default.or_else(|| installed.first()).cloned()).into_iter().collect()
    }

    fn probe_picture(
        &mut self,
        candidate: &PictureCandidate<'_>,
        text: &TextCells,
        found: &PageAssessment,
    ) -> Result<Option<OrientationProbe>, PageError> {
        let back = (4 - candidate.turned % 4) % 4;
        let is_surely_upright = candidate.turned == 0
            && !found.has_defect(PageDefectKind::Rotated)
            && found.direction.feet >= SURE_FEET;
        let turns: &[u8] = if self.may_turn() && !is_surely_upright { &[2, 1, 3] } else { &[] };
        let first = self.choose_languages(self.hint.clone());
        let order = ProbeOptions { turns, unless_sure: back };
        Ok(probe_orientation(&candidate.picture, text, &order, &first, self.recogniser)?)
    }

    /// Reads the picture again if its words are of another language than it was read with.
    fn reread_in_language<'a>(&mut self, first: OcrPass<'a>) -> Result<OcrPass<'a>, PageError> {
        let Some(language) = first.detected_language.clone() else { return Ok(first) };
        let is_free = self.recipe.languages.is_empty() && !first.languages.contains(&language);
        if !is_free || !self.has_time() {
            return Ok(first);
        }
        let OcrPass { candidate, text, .. } = first;
        let second = self.read_in_languages(candidate, text, vec![language])?;
        if second.legibility.quality() * LANGUAGE_BONUS >= first.legibility.quality() {
            return Ok(second);
        }
        Ok(OcrPass { candidate: second.candidate, text: second.text, ..first })
    }

    fn read_in_languages<'a>(
        &mut self,
        candidate: PictureCandidate<'a>,
        text: TextCells,
        languages: Vec<String>,
    ) -> Result<OcrPass<'a>, PageError> {
        let lines = self.recogniser.recognise(&candidate.picture, &languages)?;
        let legibility = score_legibility(&text, &lines);
        let detected_language =
            LanguageEvidence::from_lines(&lines).leading_language(self.recogniser.languages());
        let detected_language = detected_language.map(str::to_owned);
        Ok(OcrPass {
            candidate,
            robust: false,
            text,
            lines,
            legibility,
            languages,
            detected_language,
        })
    }
}
