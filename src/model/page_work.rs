//! What goes into the reading of a page and what comes out of it: plain data, so that it can
//! travel between processes.

use serde::{Deserialize, Serialize};

use super::PageText;

/// How the pages of a document are to be read: everything but the document itself and the caps on
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Dots per inch that pages are rendered at.
    pub dpi: u32,
    /// Languages as Tesseract names them; empty: chosen per page among the installed ones.
    pub languages: Vec<String>,
    /// Which repairs may be tried.
    pub repairs: Repairs,
    /// A page whose first reading falls below this, 0..1, is read a second time.
    pub threshold: f32,
}

/// Which repairs of page images are allowed (`[ocr.repair]`). Each happens only to a page that has
/// the defect it is for; a page without defects is never touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one key each")]
pub struct Repairs {
    /// Whether pages are repaired at all.
    pub enabled: bool,
    /// Turning pages whose lines run along the columns, or that stand on their head.
    pub orientation: bool,
    /// Cutting a photographed page out of its surroundings and straightening it.
    pub perspective: bool,
    /// Evening out shadows.
    pub illumination: bool,
    /// Stretching faint or dark pages to the full range.
    pub contrast: bool,
    /// Smoothing noise and removing specks.
    pub noise: bool,
    /// Sharpening blurred pages.
    pub sharpen: bool,
    /// Straightening skewed pages.
    pub deskew: bool,
    /// Enlarging small text.
    pub upscale: bool,
}

impl Repairs {
    /// Every step.
    pub const ALL: Self = Self::each(true);
    /// No step: pages are read as they are.
    pub const NONE: Self = Self::each(false);

    const fn each(on: bool) -> Self {
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
}

impl Default for Repairs {
    fn default() -> Self {
        Self::ALL
    }
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageRead {
    /// Its text.
    pub page: PageText,
    /// The image that the text was read from, if that is not what the file shows.
    pub repaired: Option<RepairedPage>,
}

/// XML that may be an e-invoice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its bytes, not decoded.
    pub bytes: Vec<u8>,
    /// Whether it is the document itself: there are no pages to hold it against.
    pub is_document: bool,
}

/// A document's e-invoices, and what its pages say as text if it has any.
#[derive(Debug, Clone, PartialEq)]
pub struct EinvoiceLook {
    /// The e-invoices; `None`: one that is there cannot be taken out.
    pub einvoices: Option<Vec<Attachment>>,
    /// The text layers of the pages; empty if there is no e-invoice to hold against them.
    pub printed: Vec<PageText>,
}

/// A repaired page as an encoded grey image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairedPage {
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Dots per inch of these pixels.
    pub dpi: u32,
    /// What the bytes are.
    pub encoding: Encoding,
    /// The encoded image.
    pub bytes: Vec<u8>,
}

/// How a page image is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// PNG, eight bits of grey, not interlaced.
    Png,
    /// Baseline JPEG, one channel.
    Jpeg,
}

impl Encoding {
    /// The usual ending of a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
        }
    }
}
