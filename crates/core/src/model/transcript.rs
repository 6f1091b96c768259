//! A document's text with boxes and confidences, page by page, and its quality.
//!
//! The serialised form is stored at `transcription-output.json` and printed by `docmill transcribe
//! --format json`; a change of meaning raises [`Transcript::FORMAT`].

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::{PageCode, PageMark, PageNote, ReadingRefusal};

/// Everything that was read from a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// Version of this form, [`Transcript::FORMAT`] when written by this build.
    pub format: u32,
    /// SHA-256 of the original, in hex.
    pub sha256: String,
    /// The reader of pages that are not native text, e.g. `tesseract 5.3.0`.
    pub provider: String,
    /// The pages, in order.
    pub pages: Vec<PageText>,
    /// 0..1, the mean of the pages' qualities weighted by nothing: a bad page counts as a page.
    pub quality: f32,
}

impl Transcript {
    /// The current version of the stored form.
    pub const FORMAT: u32 = 1;

    /// That of an original which has no pages.
    pub fn without_pages(sha256: &str) -> Self {
        Self {
            format: Self::FORMAT,
            sha256: sha256.to_owned(),
            provider: String::new(),
            pages: Vec::new(),
            quality: 1.0,
        }
    }

    /// Whether nothing was read at all.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.lines.is_empty())
    }

    /// Gives back the room that its lists have for more than they hold: it is kept for as long as its
    /// job waits for a model.
    pub fn shrink_to_fit(&mut self) {
        for page in &mut self.pages {
            page.lines.iter_mut().for_each(|line| line.words.shrink_to_fit());
            page.lines.shrink_to_fit();
        }
        self.pages.shrink_to_fit();
    }

    /// All text: lines separated by line feeds, pages by form feeds.
    pub fn full_text(&self) -> String {
        let pages: Vec<String> = self.pages.iter().map(PageText::text).collect();
        pages.join("\u{c}")
    }
}

/// By which method the text of a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSource {
    /// The text layer of the file.
    Native,
    /// Optical character recognition of a page image.
    Ocr,
}

/// The text of one page, with the positions of its lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageText {
    /// Number of the page, starting at 1.
    pub number: u32,
    /// By which method the page was read.
    pub source: PageSource,
    /// Width in the unit of the boxes: points for native text; for OCR pixels of the image that was
    /// read, upright, which is the repaired one if `repaired` says so and the file's own otherwise.
    pub width: f32,
    /// Height in the same unit.
    pub height: f32,
    /// 0..1; 1 for a sound text layer.
    pub quality: f32,
    /// Defects of the page image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<PageDefect>,
    /// Languages it was read with, ISO 639-2 as Tesseract names them; empty for native text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Read from a repaired or turned image of the page, which is stored beside the transcript; the
    /// boxes are positions in that image, and are not to be laid over the page of the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
    /// The provider's notes; none if the page was read here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Box<ProviderNotes>>,
    /// Codes for machines that were read from its picture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<PageCode>,
    /// Its marks besides words and codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<PageMark>,
    /// Remarks on what is on the page and not in its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<PageNote>,
    /// Lines in reading order.
    pub lines: Vec<TextLine>,
}

/// A provider's notes about a page that it read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderNotes {
    /// Its name in the configuration, e.g. `document_ai`.
    pub name: String,
    /// Version of its model, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its own score of the picture, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// How it straightened the picture before reading: the first two rows of the matrix that takes
    /// a point of the picture to one of its own. The boxes have been taken back already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<[f32; 6]>,
    /// The reading fell short, and a repaired picture is still to be read. Never in a transcript.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// It was paid for a reading that is of no use, and this is why: the page is the next one's to
    /// read. Never in a transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ReadingRefusal>,
}

impl PageText {
    /// A page that was not read by OCR: its number from 1, its size in points, 0..1 for how sound
    /// it is, and its lines.
    pub fn from_native(
        number: u32,
        (width, height): (f32, f32),
        quality: f32,
        lines: Vec<TextLine>,
    ) -> Self {
        Self {
            number,
            source: PageSource::Native,
            width,
            height,
            quality,
            repaired: false,
            defects: Vec::new(),
            languages: Vec::new(),
            provider: None,
            codes: Vec::new(),
            marks: Vec::new(),
            notes: Vec::new(),
            lines,
        }
    }

    /// The lines' texts, separated by line feeds.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(TextLine::text).collect();
        lines.join("\n")
    }
}

/// Words on one baseline, left to right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextLine {
    /// The words; never empty.
    pub words: Vec<TextWord>,
}

impl TextLine {
    /// The words, separated by single spaces.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        words.join(" ")
    }

    /// The smallest box around all words.
    pub fn bounding_box(&self) -> BoundingBox {
        let mut words = self.words.iter().map(|word| word.bounding_box);
        let first = words.next().unwrap_or_default();
        words.fold(first, BoundingBox::union)
    }
}

/// A word and its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextWord {
    /// The characters of the word, without white space. Most words are short, and thousands of
    /// documents wait in memory for a model: up to 24 bytes need no allocation of their own.
    pub text: CompactString,
    /// Its position; origin at the top left of the page.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
    /// 0..1; 1 for native text.
    pub confidence: f32,
    /// Only one source has this word: a vision model whose second reader reads something else here,
    /// or nothing; or the text layer of a PDF whose letters are drawn as something else, where the
    /// drawn page does not confirm it. No value rests on such a word alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwitnessed: bool,
}

impl TextWord {
    /// Confidence, 0 to 1, of a word that another reading or its drawing contradicts.
    pub const CONTRADICTED: f32 = 0.3;
}

/// A rectangle with its origin at the page's top left, y downwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundingBox {
    /// Left edge, in the unit of the page's width.
    pub x: f32,
    /// Top edge, in the unit of the page's height.
    pub y: f32,
    /// Width, in the unit of the page's width.
    pub w: f32,
    /// Height, in the unit of the page's height.
    pub h: f32,
}

impl BoundingBox {
    /// The right edge: left edge plus width.
    pub fn right(&self) -> f32 {
        self.x + self.w
    }

    /// The bottom edge: top edge plus height.
    pub fn bottom(&self) -> f32 {
        self.y + self.h
    }

    /// The area of what both cover; 0 where they are apart.
    pub fn shared_area(&self, other: &Self) -> f32 {
        let across = self.right().min(other.right()) - self.x.max(other.x);
        let down = self.bottom().min(other.bottom()) - self.y.max(other.y);
        across.max(0.0) * down.max(0.0)
    }

    /// The same place in a unit of which so many make one of today's, across and down.
    #[must_use]
    pub fn scaled(self, across: f32, down: f32) -> Self {
        let Self { x, y, w, h } = self;
        Self { x: x * across, y: y * down, w: w * across, h: h * down }
    }

    /// The smallest rectangle around both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = self.right().max(other.right());
        let bottom = self.bottom().max(other.bottom());
        Self { x, y, w: right - x, h: bottom - y }
    }
}

/// Something wrong with a page image, and how sure we are of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageDefect {
    /// The kind of defect.
    pub kind: PageDefectKind,
    /// How sure we are that the defect is there, 0..1.
    pub confidence: f32,
}

/// The named defects. The first eight names are those of Google Document AI
/// (`quality/defect_*` in its discovery document); the last three are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the field's own")]
pub enum PageDefectKind {
    Blurry,
    Noisy,
    Dark,
    Faint,
    TextTooSmall,
    DocumentCutoff,
    TextCutoff,
    Glare,
    Skewed,
    Rotated,
    Shadowed,
}
