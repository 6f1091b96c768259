//! Input and output of the reading of a page: plain data, so that it can travel between processes.

use serde::{Deserialize, Serialize};

use super::{ModelUsage, PageCode, PageDefect, PageMark, PageText, PriceClass, TextLine};

/// How the pages of a document are to be read: everything but the document itself and the caps on
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadRecipe {
    /// Dots per inch that pages are rendered at.
    pub dpi: u32,
    /// Languages as Tesseract names them; empty: chosen per page among the installed ones.
    pub languages: Vec<String>,
    /// Which repairs may be tried.
    pub repairs: RepairSwitches,
    /// A page whose first reading falls below this, 0..1, is read a second time.
    pub threshold: f32,
}

impl ReadRecipe {
    /// The part of a stored transcript's identity. Names and order must stay, however the fields
    /// are called here: another spelling makes every stored transcript one of another recipe, which
    /// is read again.
    pub fn identity(&self) -> String {
        let Self { dpi, languages, repairs, threshold } = self;
        let repairs = repairs.identity();
        // A float with its fraction and quoted texts, as they always were.
        format!(
            "Recipe {{ dpi: {dpi}, languages: {languages:?}, repairs: {repairs}, \
             threshold: {threshold:?} }}"
        )
    }
}

/// Which repairs of page images are allowed (`[ocr.repair]`). Each happens only to a page that has
/// the defect it is for; a page without defects is never touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one key each")]
pub struct RepairSwitches {
    /// Whether pages are repaired at all.
    pub enabled: bool,
    /// Turning pages whose lines run along the columns, or that stand on their head.
    pub orientation: bool,
    /// Cutting a photographed page out of its surroundings and straightening it.
    pub perspective: bool,
    /// Whether shadows and uneven light are evened out.
    pub illumination: bool,
    /// Stretching faint or dark pages to the full range.
    pub contrast: bool,
    /// Smoothing noise and removing specks.
    pub noise: bool,
    /// Sharpening blurred pages, and small print that was read badly enlarged.
    pub sharpen: bool,
    /// Whether skewed pages are straightened.
    pub deskew: bool,
    /// Whether small text is enlarged.
    pub upscale: bool,
}

impl RepairSwitches {
    /// All repairs allowed.
    pub const ALL: Self = Self::with_all(true);
    /// No step: pages are read as they are.
    pub const NONE: Self = Self::with_all(false);

    const fn with_all(on: bool) -> Self {
        Self {
            enabled: on,
            orientation: on,
            perspective: on,
            illumination: on,
            contrast: on,
            noise: on,
            sharpen: on,
            deskew: on,
            upscale: on,
        }
    }

    /// The repairs as part of the recipe's identity, see [`ReadRecipe::identity`].
    fn identity(&self) -> String {
        let Self {
            enabled,
            orientation,
            perspective,
            illumination,
            contrast,
            noise,
            sharpen,
            deskew,
            upscale,
        } = self;
        format!(
            "Repairs {{ enabled: {enabled}, orientation: {orientation}, \
             perspective: {perspective}, illumination: {illumination}, contrast: {contrast}, \
             noise: {noise}, sharpen: {sharpen}, deskew: {deskew}, upscale: {upscale} }}"
        )
    }
}

impl Default for RepairSwitches {
    fn default() -> Self {
        Self::ALL
    }
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct PageReadResult {
    /// The text of the page, with its lines and words.
    pub page: PageText,
    /// The image that the text was read from, if that is not what the file shows.
    pub repaired: Option<EncodedImage>,
}

/// Result of comparing the text layer of a page with its drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondLookResult {
    /// The drawing shows the text.
    Same,
    /// Some words are surely drawn as others; they are marked.
    Different,
    /// The drawing could not be read well enough to be compared.
    Unread,
}

impl SecondLookResult {
    /// The value of a label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
            Self::Unread => "unread",
        }
    }
}

/// A page with a text layer that was compared with its drawing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondLook {
    /// The page, with marks at the words that are drawn otherwise.
    pub page: PageText,
    /// How the comparison ended.
    pub result: SecondLookResult,
}

/// The printed text of a page, found without reading its picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrintedPage {
    /// Its lines; none of a page that has to be read from its picture.
    pub text: PageText,
    /// Whether it shows what is not in its lines: a picture, letters drawn as shapes, what was lost.
    pub shows_more: bool,
}

/// How a page is to be shown to a reader elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageViewMode {
    /// Facts about its picture, without the picture.
    Facts,
    /// Its picture as the file has it.
    AsItIs,
    /// Its picture after the repair that its defects call for.
    Repaired,
}

/// A page that is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum PageViewResult {
    /// Its text is given: no reader is needed.
    Text(Box<PageText>),
    /// This has to be read.
    Picture(Box<PagePicture>),
    /// There is nothing to repair on it.
    Unaltered,
}

/// The picture of a page, and what is needed to make a [`PageText`] of what is read from it.
#[derive(Debug, Clone, PartialEq)]
pub struct PagePicture {
    /// Facts about the picture, found without reading it.
    pub facts: PictureFacts,
    /// The picture; without bytes if only the facts were asked for.
    pub image: EncodedImage,
    /// This machine's reading of the same picture, for a provider that never reads alone. The
    /// picture was then sized for that provider, and `facts` belong to the one that was read here.
    pub local_reading: Option<Box<PageReadResult>>,
}

/// How large a picture a vision model takes without shrinking it by itself, and how it is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureFit {
    /// Most pixels of the longer side.
    pub longest_side: u32,
    /// Most pixels in all.
    pub pixels: u64,
    /// Quarter turns clockwise, 0 to 3.
    pub quarter_turns: u8,
}

impl PictureFit {
    /// The factor, above 0 and at most 1, that brings a picture of this size within the fit: none is
    /// ever enlarged.
    pub fn scale(self, width: u32, height: u32) -> f64 {
        let longest = f64::from(width.max(height).max(1));
        let all = (f64::from(width) * f64::from(height)).max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "pixels of a picture")]
        let by_pixels = (self.pixels as f64 / all).sqrt();
        by_pixels.min(f64::from(self.longest_side) / longest).min(1.0)
    }
}

/// Why what a vision model said of a page is of no use. The page is read by the next provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingRefusal {
    /// It ran into its limit of tokens.
    Cut,
    /// It repeats itself.
    Loop,
    /// It declined, or a filter did.
    Declined,
    /// Picture and prompt do not fit into its window.
    TooLong,
    /// It broke the form that was asked for.
    BrokenForm,
    /// So few tokens of the prompt were counted that the picture cannot be among them.
    NoPicture,
    /// It says more than there is ink for.
    Invented,
    /// Hardly anything of what this machine read surely is in it, or the other way round.
    AnotherPage,
    /// It leaves out a part of the page.
    Incomplete,
    /// It says that the page is not upright, and reads nothing that this machine reads.
    Turned,
}

impl ReadingRefusal {
    /// The word for logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Loop => "loop",
            Self::Declined => "declined",
            Self::TooLong => "too_long",
            Self::BrokenForm => "broken_form",
            Self::NoPicture => "no_picture",
            Self::Invented => "invented",
            Self::AnotherPage => "another_page",
            Self::Incomplete => "incomplete",
            Self::Turned => "turned",
        }
    }
}

/// Facts about a page's picture before it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureFacts {
    /// Number of the page, starting at 1.
    pub number: u32,
    /// It is not the picture that the file has.
    pub repaired: bool,
    /// 0 to 1: how good it is, as we see it; 1 once it was repaired.
    pub score: f32,
    /// Defects of the picture in the file.
    pub defects: Vec<PageDefect>,
    /// Where there seems to be text.
    pub text: TextMap,
    /// A text layer that is not all there is, in points; what is read completes it.
    pub layer: Option<TextLayer>,
    /// A part of the page or of its document is missing.
    pub cut: bool,
    /// Codes on the picture, boxes in its pixels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<PageCode>,
}

/// The text that a page of a file brings with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextLayer {
    /// Width of the page after rotation, in points.
    pub width: f32,
    /// Height of the page after rotation, in points.
    pub height: f32,
    /// Its lines in reading order, boxes in points.
    pub lines: Vec<TextLine>,
    /// Its words are none: the layer cannot be right.
    pub garbled: bool,
    /// Other drawings of the file, boxes in points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<PageMark>,
}

/// Where on a picture there seems to be text: the numbers of such cells in a grid of squares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextMap {
    /// Cells side by side.
    pub across: usize,
    /// Number of cells of the whole grid.
    pub cells: usize,
    /// Width of a cell in pixels.
    pub cell: usize,
    /// Those that look like text, row by row.
    pub text: Vec<usize>,
}

/// A provider's reading of one picture. Boxes are positions in that picture, in pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderReading {
    /// Lines as they were found.
    pub lines: Vec<TextLine>,
    /// The provider's own score of the picture, 0 to 1, if it gives one.
    pub score: Option<f32>,
    /// The provider's list of defects of the picture; counts only together with a score.
    pub defects: Vec<PageDefect>,
    /// Languages it found, as Tesseract names them where they are known to us.
    pub languages: Vec<String>,
    /// Words that were written by hand, if it says so; boxes as those of the lines.
    pub marks: Vec<PageMark>,
    /// How it straightened the picture, see [`ProviderNotes::transform`](super::ProviderNotes).
    pub transform: Option<[f32; 6]>,
    /// Version of its model, if it says.
    pub version: Option<String>,
    /// The reading was paid for and is of no use; then there are no lines.
    pub refused: Option<ReadingRefusal>,
    /// The page may stand otherwise: so many quarter turns clockwise make it upright, says a reader
    /// whose reading is of no use.
    pub turn: Option<u8>,
}

/// The usage of one call to a provider, for its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageUsage {
    /// The provider's name in the configuration, e.g. `document_ai`.
    pub provider: &'static str,
    /// Its processor or operation, which decides on the price.
    pub model: String,
    /// Pages that are charged.
    pub pages: u32,
    /// Tokens that are charged, of a provider that counts them.
    pub tokens: ModelUsage,
    /// The terms of the call that change its price.
    pub class: PriceClass,
}

/// Facts about an encoded image without its bytes. Stored in the finished pages of a document under
/// these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageHeader {
    /// Pixels per row.
    pub width: u32,
    /// Number of pixel rows.
    pub height: u32,
    /// Dots per inch of these pixels.
    pub dpi: u32,
    /// Format of the encoded bytes.
    pub encoding: ImageEncoding,
}

/// The picture of a page, repaired or as the file has it, as an encoded grey image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedImage {
    /// Size, resolution and encoding of the image.
    pub header: ImageHeader,
    /// The image file's bytes, in the format above.
    pub bytes: Vec<u8>,
}

/// How a page image is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageEncoding {
    /// PNG, eight bits of grey, not interlaced.
    Png,
    /// Baseline JPEG, one channel.
    Jpeg,
}

impl ImageEncoding {
    /// The usual ending of a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_named_in_stored_transcripts_as_it_was_by_every_build_before() {
        let languages = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let recipe = |dpi, names, repairs, threshold| ReadRecipe {
            dpi,
            languages: languages(names),
            repairs,
            threshold,
        };
        let only_deskew = RepairSwitches { enabled: true, deskew: true, ..RepairSwitches::NONE };
        let table = [
            (
                recipe(300, &[], RepairSwitches::ALL, 0.5),
                "Recipe { dpi: 300, languages: [], repairs: Repairs { enabled: true, \
                 orientation: true, perspective: true, illumination: true, contrast: true, \
                 noise: true, sharpen: true, deskew: true, upscale: true }, threshold: 0.5 }",
            ),
            (
                recipe(150, &["deu", "chi_sim"], RepairSwitches::NONE, 1.0),
                "Recipe { dpi: 150, languages: [\"deu\", \"chi_sim\"], repairs: Repairs { \
                 enabled: false, orientation: false, perspective: false, illumination: false, \
                 contrast: false, noise: false, sharpen: false, deskew: false, upscale: false }, \
                 threshold: 1.0 }",
            ),
            (
                recipe(72, &["eng"], only_deskew, 0.65),
                "Recipe { dpi: 72, languages: [\"eng\"], repairs: Repairs { enabled: true, \
                 orientation: false, perspective: false, illumination: false, contrast: false, \
                 noise: false, sharpen: false, deskew: true, upscale: false }, threshold: 0.65 }",
            ),
        ];
        for (recipe, expected) in table {
            assert_eq!(recipe.identity(), expected);
        }
    }
}
