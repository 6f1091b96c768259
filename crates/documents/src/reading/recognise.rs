//! The trait of OCR readers of page images, implemented in `ocr` and handed in by the page process.

use crate::page::PageRaster;
use docmill_core::fault::Result;
use docmill_core::model::TextLine;

/// A page that did not lie upright, and does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnedPage {
    /// Quarter turns clockwise, 1 to 3, that it was given.
    pub quarter_turns: u8,
    /// Its pixels after that.
    pub upright: PageRaster,
}

/// A reading of a page, turned upright if necessary.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnedReading {
    /// The page, if it had to be turned.
    pub turned: Option<TurnedPage>,
    /// Lines as they were found, boxes in pixels of the upright page.
    pub lines: Vec<TextLine>,
}

impl TurnedReading {
    /// Of a page that lay upright.
    pub fn of_upright(lines: Vec<TextLine>) -> Self {
        Self { turned: None, lines }
    }
}

/// Reads page images, one at a time, on the calling thread.
///
/// It does not judge the page or decide about a bad one. The same image and languages give the same
/// lines, independent of earlier pages.
pub trait PageRecogniser: Send {
    /// Languages it can read, as Tesseract names them (ISO 639-2, with a script where one language
    /// has several).
    fn languages(&self) -> &[String];

    /// Reads `page` with `languages`, of which there is at least one, the first being the main one.
    /// Lines as they were found, boxes in pixels of `page`.
    ///
    /// # Errors
    /// [`Fault::Rejected`](docmill_core::fault::Fault::Rejected): the page takes longer than it
    /// may. Anything else is not the page's fault.
    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>>;

    /// Reads `page` in any orientation, if it can detect it; otherwise as it lies.
    ///
    /// # Errors
    /// Those of [`PageRecogniser::recognise`].
    fn recognise_turned(
        &mut self,
        page: &PageRaster,
        languages: &[String],
    ) -> Result<TurnedReading> {
        Ok(TurnedReading::of_upright(self.recognise(page, languages)?))
    }

    /// For each of `words`, whether the word lists of these languages have it or its parts; `false`
    /// without word lists.
    ///
    /// # Errors
    /// A list cannot be read.
    fn known_words(&self, words: &[&str], _languages: &[String]) -> Result<Vec<bool>> {
        Ok(vec![false; words.len()])
    }

    /// Whether it reads bad pictures in any orientation, and all of its languages at once.
    fn is_robust(&self) -> bool {
        false
    }

    /// The robust reader beside this one, which may be itself; `None`: there is none.
    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        None
    }
}
