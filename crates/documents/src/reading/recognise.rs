//! What reads the text of a page image; implemented by `ocr`, handed in by whoever starts the work.

use crate::page::PageRaster;
use docmill_core::fault::Result;
use docmill_core::model::{BoundingBox, TextLine};

/// A page that did not lie upright, and does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnedPage {
    /// Quarter turns clockwise, 1 to 3, that it was given.
    pub quarter_turns: u8,
    /// Its pixels after that.
    pub upright: PageRaster,
}

/// What was read of a page, whichever way up it lay.
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

/// Reads page images, one at a time, on the thread that calls it.
///
/// It does not judge the page and does not decide what to do about a bad one. The same image and
/// languages give the same lines, whatever was read before.
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

    /// Reads `page` whichever way up it lies, if it can tell; as it lies otherwise.
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

    /// Reads what stands in `places`, lines of `page` that another reader found: of each, in their
    /// order, what is said there, or nothing. A reader that finds its lines by itself says nothing of
    /// any.
    ///
    /// # Errors
    /// Those of [`PageRecogniser::recognise`].
    fn recognise_regions(
        &mut self,
        _page: &PageRaster,
        places: &[BoundingBox],
        _languages: &[String],
    ) -> Result<Vec<Option<TextLine>>> {
        Ok(vec![None; places.len()])
    }

    /// Of each of `words` whether it is one of these languages'; `None`: there is no list of the words
    /// of one of them.
    ///
    /// # Errors
    /// A list cannot be read.
    fn known_words(&self, _words: &[&str], _languages: &[String]) -> Result<Option<Vec<bool>>> {
        Ok(None)
    }

    /// Whether it reads bad pictures well, whichever way up they lie and in any of its languages at
    /// once, and takes several times as long for it.
    fn is_robust(&self) -> bool {
        false
    }

    /// The reader of bad pictures that goes with this one, which may be itself; `None`: there is none.
    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        None
    }
}
