//! A pass by the robust reader. It reads bad pictures well and detects by itself which way up a
//! page lies.

use std::borrow::Cow;

use super::{OcrPass, PictureCandidate, PictureReader, score_reading, text_cells};
use crate::language::LanguageEvidence;
use crate::page_error::PageError;
use crate::quality::PageAssessment;
use crate::reading::recognise::{TurnedPage, TurnedReading};
use crate::repair::turn_page;

/// Languages in other scripts than Latin, as Tesseract names them, or how such names begin.
const OTHER_SCRIPTS: [&str; 50] = [
    "amh", "ara", "asm", "aze_cyrl", "bel", "ben", "bod", "bul", "chi_", "chr", "dzo", "ell",
    "fas", "grc", "guj", "heb", "hin", "hye", "iku", "jpn", "kan", "kat", "kaz", "khm", "kir",
    "kor", "lao", "mal", "mar", "mkd", "mon", "mya", "nep", "ori", "pan", "pus", "rus", "san",
    "sin", "snd", "srp", "tam", "tel", "tgk", "tha", "tir", "uig", "ukr", "urd", "yid",
];

impl PictureReader<'_> {
    /// Whether there is a robust reader for pages of these languages.
    pub(super) fn has_robust_reader(&mut self) -> bool {
        self.recipe.languages.iter().all(|name| is_latin(name))
            && self.recogniser.robust_reader().is_some()
    }

    /// Reads a picture; `turns`: quarter turns that put the file's page upright, if they are known.
    pub(super) fn read_by_robust<'a>(
        &mut self,
        mut candidate: PictureCandidate<'a>,
        found: &PageAssessment,
        turns: Option<u8>,
    ) -> Result<OcrPass<'a>, PageError> {
        let may_turn = self.may_turn() && turns.is_none();
        if let Some(turns) = turns.filter(|turns| *turns != candidate.turned) {
            let missing = (turns + 4 - candidate.turned) % 4;
            candidate.picture = Cow::Owned(turn_page(&candidate.picture, missing)?);
            candidate.turned = turns;
        }
        let (picture, languages) = (&candidate.picture, &self.recipe.languages);
        let reading = match self.recogniser.robust_reader() {
            Some(reader) if may_turn => reader.recognise_turned(picture, languages)?,
            Some(reader) => TurnedReading::of_upright(reader.recognise(picture, languages)?),
            None => TurnedReading::of_upright(Vec::new()),
        };
        let TurnedReading { turned, lines } = reading;
        if let Some(TurnedPage { quarter_turns, upright }) = turned {
            candidate.picture = Cow::Owned(upright);
            candidate.turned = (candidate.turned + quarter_turns) % 4;
        }
        let text = text_cells(&candidate.picture, found)?;
        let legibility = score_reading(&text, &lines, true);
        let known = self.recogniser.languages();
        let detected_language = LanguageEvidence::from_lines(&lines).leading_language(known);
        let detected_language = detected_language.map(str::to_owned);
        let languages = detected_language.iter().cloned().collect();
        Ok(OcrPass {
            candidate,
            robust: true,
            text,
            lines,
            legibility,
            languages,
            detected_language,
        })
    }
}

fn is_latin(language: &str) -> bool {
    !OTHER_SCRIPTS.iter().any(|other| language.starts_with(other))
}
