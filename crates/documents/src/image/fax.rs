//! Fax pages in TIFF, strip by strip and in either order of bits. Group 3 in one and in two
//! dimensions (ITU-T T.4), its form without line ends (TIFF 6.0 §10, "modified Huffman") and Group
//! 4 (T.6).
//!
//! A damaged line stays white up to the next end of a line. Lines missing at the end are white, and
//! the page counts as cut. A fax in standard resolution has half as many lines to the inch as dots:
//! its lines are repeated until its pixels are square.
//!
//! Not covered: tiles, and the uncompressed mode that both recommendations allow and no fax machine
//! uses.

use hayro_ccitt::{DecodeSettings, DecoderContext, EncodingMode};

use crate::image::tiff::TiffDirectory;
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

const IMAGE_WIDTH: u16 = 256;
const IMAGE_LENGTH: u16 = 257;
const BITS_PER_SAMPLE: u16 = 258;
const PHOTOMETRIC: u16 = 262;
const BLACK_IS_ZERO: u64 = 1;
const FILL_ORDER: u16 = 266;
const LOWEST_BIT_FIRST: u64 = 2;
const STRIP_OFFSETS: u16 = 273;
const SAMPLES_PER_PIXEL: u16 = 277;
const ROWS_PER_STRIP: u16 = 278;
const STRIP_BYTE_COUNTS: u16 = 279;
const T4_OPTIONS: u16 = 292;
const TWO_DIMENSIONAL: u64 = 1;
const TILE_WIDTH: u16 = 322;

/// Values of the field `Compression`.
const MODIFIED_HUFFMAN: u64 = 2;
const GROUP_3: u64 = 3;
const GROUP_4: u64 = 4;

/// Pixels may be as many times as tall as they are wide, or the other way round, as this.
const MAX_STRETCH: u64 = 4;

/// How a fax page is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaxCoding {
    encoding: EncodingMode,
    is_byte_aligned: bool,
    is_reversed: bool,
    is_inverted: bool,
    /// Dots of a line.
    width: u32,
    /// Lines.
    height: u32,
    rows_per_strip: u32,
    /// How often each line is repeated, and each dot.
    stretch: PixelStretch,
}

/// How often lines and dots are repeated to make square pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PixelStretch {
    down: u32,
    across: u32,
}

/// A decoded fax page.
#[derive(Debug)]
pub(crate) struct FaxPage {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// 0 and 255, row by row.
    pub pixels: Vec<u8>,
    /// Whether lines are missing.
    pub is_cut: bool,
}

/// A strip's coded bytes and the lines that they hold.
struct FaxStrip<'a> {
    data: &'a [u8],
    first_row: u32,
    rows: u32,
}

impl FaxCoding {
    /// How `directory` of the file `bytes` is coded; `None` if it is no fax in strips.
    ///
    /// # Errors
    /// `corrupt` if its fields contradict each other.
    pub(crate) fn from_directory(
        bytes: &[u8],
        directory: &TiffDirectory,
    ) -> Result<Option<Self>, PageRefusal> {
        let tags = TagReader { bytes, directory };
        let is_two_dimensional = tags.number(T4_OPTIONS).unwrap_or(0) & TWO_DIMENSIONAL != 0;
        let encoding = match directory.compression() {
            MODIFIED_HUFFMAN => EncodingMode::Group3_1D,
            GROUP_3 if is_two_dimensional => EncodingMode::Group3_2D,
            GROUP_3 => EncodingMode::Group3_1D,
            GROUP_4 => EncodingMode::Group4,
            _ => return Ok(None),
        };
        if tags.number(TILE_WIDTH).is_some() {
            return Ok(None);
        }
        let is_bilevel = tags.number(BITS_PER_SAMPLE).unwrap_or(1) == 1
            && tags.number(SAMPLES_PER_PIXEL).unwrap_or(1) == 1;
        let (Some(width), Some(height), true) =
            (tags.side(IMAGE_WIDTH), tags.side(IMAGE_LENGTH), is_bilevel)
        else {
            return Err(contradiction());
        };
        let rows_per_strip = tags
            .number(ROWS_PER_STRIP)
            .map_or(height, |rows| u32::try_from(rows).unwrap_or(height).min(height));
        Ok(Some(Self {
            encoding,
            is_byte_aligned: directory.compression() == MODIFIED_HUFFMAN,
            is_reversed: tags.number(FILL_ORDER) == Some(LOWEST_BIT_FIRST),
            is_inverted: tags.number(PHOTOMETRIC) == Some(BLACK_IS_ZERO),
            width,
            height,
            rows_per_strip: rows_per_strip.max(1),
            stretch: PixelStretch::from_resolution(directory.dots_per_inch()),
        }))
    }

    /// Width and height of the page once its pixels are squares.
    pub(crate) fn size(&self) -> (u32, u32) {
        let PixelStretch { down, across } = self.stretch;
        (self.width.saturating_mul(across), self.height.saturating_mul(down))
    }

    /// Decodes the page, whose size was found to be within the limits.
    ///
    /// # Errors
    /// `corrupt` if the strips lie outside the file or upon each other, or if no line can be decoded.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        directory: &TiffDirectory,
    ) -> Result<FaxPage, PageRefusal> {
        let paper = if self.is_inverted { 0 } else { u8::MAX };
        let mut page = FaxRows::new(self.width, self.height, paper);
        let reversed: Vec<u8>;
        let all = if self.is_reversed {
            reversed = bytes.iter().map(|byte| byte.reverse_bits()).collect();
            reversed.as_slice()
        } else {
            bytes
        };
        let (mut is_cut, mut decoded) = (false, 0);
        for strip in self.strips(bytes, all, directory)? {
            page.next_row = strip.first_row;
            let mut context = DecoderContext::new(self.settings(strip.rows));
            let ended = hayro_ccitt::decode(strip.data, &mut page, &mut context);
            let rows = page.next_row.saturating_sub(strip.first_row);
            decoded += rows;
            is_cut |= ended.is_err() || rows < strip.rows;
            page.blank_rows(page.next_row, strip.first_row.saturating_add(strip.rows));
        }
        if decoded == 0 {
            return Err(PageRefusal::new(OutcomeReason::Corrupt, "a fax without a sound line"));
        }
        let (width, height) = self.size();
        Ok(FaxPage { width, height, pixels: self.stretch.apply(page), is_cut })
    }

    fn settings(&self, rows: u32) -> DecodeSettings {
        DecodeSettings {
            columns: self.width,
            rows,
            end_of_block: !self.is_byte_aligned,
            end_of_line: !self.is_byte_aligned && self.encoding != EncodingMode::Group4,
            rows_are_byte_aligned: self.is_byte_aligned,
            encoding: self.encoding,
            strict: false,
        }
    }

    /// The strips in order. All together they are no longer than the file, so that no byte is
    /// decoded over and over.
    fn strips<'a>(
        &self,
        bytes: &[u8],
        all: &'a [u8],
        directory: &TiffDirectory,
    ) -> Result<Vec<FaxStrip<'a>>, PageRefusal> {
        let offsets = directory.numbers(bytes, STRIP_OFFSETS);
        let mut lengths = directory.numbers(bytes, STRIP_BYTE_COUNTS);
        if let (Some(offset), 1, true) = (offsets.first(), offsets.len(), lengths.is_empty()) {
            lengths.push((all.len() as u64).saturating_sub(*offset));
        }
        let needed = self.height.div_ceil(self.rows_per_strip);
        if offsets.len() as u64 != u64::from(needed) || lengths.len() != offsets.len() {
            return Err(contradiction());
        }
        let mut total = 0_u64;
        let mut strips = Vec::with_capacity(offsets.len());
        for ((offset, length), index) in offsets.into_iter().zip(lengths).zip(0_u32..) {
            total = total.saturating_add(length);
            if total > all.len() as u64 {
                return Err(contradiction());
            }
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let end = start.saturating_add(length).min(all.len());
            let first_row = index * self.rows_per_strip;
            let rows = self.rows_per_strip.min(self.height - first_row);
            strips.push(FaxStrip {
                data: all.get(start..end).unwrap_or_default(),
                first_row,
                rows,
            });
        }
        Ok(strips)
    }
}

fn contradiction() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "a TIFF whose fields contradict each other")
}

/// Numbers in the fields of a directory.
#[derive(Clone, Copy)]
struct TagReader<'a> {
    bytes: &'a [u8],
    directory: &'a TiffDirectory,
}

impl TagReader<'_> {
    fn number(self, tag: u16) -> Option<u64> {
        self.directory.numbers(self.bytes, tag).first().copied()
    }

    fn side(self, tag: u16) -> Option<u32> {
        self.number(tag).and_then(|side| u32::try_from(side).ok())
    }
}

/// How often a dot is repeated where there are `fewer` dots to the inch than `more`.
fn stretch_factor(more: u32, fewer: u32) -> u32 {
    let (more, fewer) = (u64::from(more), u64::from(fewer.max(1)));
    u32::try_from(((2 * more + fewer) / (2 * fewer)).clamp(1, MAX_STRETCH)).unwrap_or(1)
}

impl PixelStretch {
    /// For a page with different resolutions across and down, if stated.
    fn from_resolution(dots: Option<(u32, u32)>) -> Self {
        let (across, down) = dots.unwrap_or((1, 1));
        Self { down: stretch_factor(across, down), across: stretch_factor(down, across) }
    }

    fn apply(self, page: FaxRows) -> Vec<u8> {
        if self == (Self { down: 1, across: 1 }) {
            return page.pixels;
        }
        let (down, across) = (self.down as usize, self.across as usize);
        let mut pixels = Vec::with_capacity(page.pixels.len() * down * across);
        for row in page.pixels.chunks_exact(page.width.max(1)) {
            let wide: Vec<u8> =
                row.iter().flat_map(|dot| std::iter::repeat_n(*dot, across)).collect();
            for _ in 0..down {
                pixels.extend_from_slice(&wide);
            }
        }
        pixels
    }
}

/// The lines of a page, filled in as they are decoded.
struct FaxRows {
    pixels: Vec<u8>,
    width: usize,
    next_row: u32,
    paper: u8,
}

impl FaxRows {
    fn new(width: u32, height: u32, paper: u8) -> Self {
        let (width, height) = (width as usize, height as usize);
        Self { pixels: vec![paper; width * height], width, next_row: 0, paper }
    }

    /// Makes rows white that were not decoded.
    fn blank_rows(&mut self, from: u32, to: u32) {
        let rows = from as usize * self.width..to as usize * self.width;
        self.pixels.get_mut(rows).unwrap_or_default().fill(u8::MAX);
    }
}

impl hayro_ccitt::Decoder for FaxRows {
    fn push_row(&mut self, changes: &[u32]) {
        let start = self.next_row as usize * self.width;
        self.next_row += 1;
        let Some(row) = self.pixels.get_mut(start..start + self.width) else { return };
        for span in changes.chunks(2) {
            let (from, to) = (span.first(), span.get(1));
            let from = from.map_or(self.width, |from| *from as usize);
            let to = to.map_or(self.width, |to| *to as usize);
            row.get_mut(from..to).unwrap_or_default().fill(!self.paper);
        }
    }
}

#[cfg(test)]
mod tests;
