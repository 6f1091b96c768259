//! A PDF/A-2b of page pictures with the text read from them laid over each, invisible: for search,
//! copying and archives.
//!
//! Each picture is passed through as it is encoded. Every word is drawn in text rendering mode 3
//! with a font without outlines, stretched to its box, and mapped to Unicode by the font. No
//! script, attachment, link or encryption; no date either, so that the same pages make the same
//! bytes. Pages may be added in any order. The tests below and `scripts/searchable_pdf.sh`, with
//! third-party programs, check the conformance to PDF/A-2b. Not promised: logical structure
//! (PDF/A-2a), and that a picture shows its text.

use std::collections::HashMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{
    CidFontType, FontFlags, OutputIntentSubtype, SystemInfo, TextRenderingMode, UnicodeCmap,
};
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use crate::image::image_pdf::{InvalidImageError, PreparedImage, to_points};
use crate::image::srgb_profile::srgb_profile;
use crate::pdf::glyphless_font::{ADVANCE, glyphless_font};
use docmill_core::model::{BoundingBox, EncodedImage, PageSource, PageText, TextLine, TextWord};

const CATALOG: Ref = Ref::new(1);
const PAGE_TREE: Ref = Ref::new(2);
const METADATA: Ref = Ref::new(3);
const PROFILE: Ref = Ref::new(4);
const FONT: Ref = Ref::new(5);
const CID_FONT: Ref = Ref::new(6);
const DESCRIPTOR: Ref = Ref::new(7);
const FONT_FILE: Ref = Ref::new(8);
const GLYPH_MAP: Ref = Ref::new(9);
const UNICODE_MAP: Ref = Ref::new(10);
const FIRST_PAGE: Ref = Ref::new(11);
/// Names of picture and font in a page's resources.
const IMAGE_NAME: Name = Name(b"Im");
const FONT_NAME: Name = Name(b"F");
/// The font's name.
const BASE_FONT: Name = Name(b"Glyphless");
/// Sides of a page in points (ISO 32000-1, annex C: what PDF/A-2 allows).
const SIDES: (f32, f32) = (3.0, 14_400.0);
/// Points to a pixel of a page that was read from a picture which is not there: 300 dots per inch.
const POINTS_PER_PIXEL: f32 = 72.0 / 300.0;
/// A box so much higher than wide is that of a vertical word.
const UPRIGHT: f32 = 1.5;
/// Least sides of a word's box in points: a text of no size is not found by all readers.
const MIN_BOX: f32 = 0.5;
/// Most bytes of a text that is shown at once: PDF/A-2 allows 32,767.
const MAX_SHOWN: usize = 32_000;
/// Replacement for letters beyond the 65,534th different one.
const REPLACEMENT: char = '\u{fffd}';

/// A searchable PDF that is being written.
#[derive(Debug)]
pub struct SearchablePdf {
    file: Pdf,
    next: Ref,
    /// Number in the original, and the page's object.
    pages: Vec<(u32, Ref)>,
    letters: CharCodes,
}

impl Default for SearchablePdf {
    fn default() -> Self {
        Self {
            file: Pdf::new(),
            next: FIRST_PAGE,
            pages: Vec::new(),
            letters: CharCodes::default(),
        }
    }
}

impl SearchablePdf {
    /// Adds a page: its picture in its size on paper, and its text at its positions on the picture.
    /// Without a picture the page is white.
    ///
    /// # Errors
    /// [`InvalidImageError`] for a picture that a PDF cannot take as it is; nothing is added.
    pub fn add_page(
        &mut self,
        text: &PageText,
        picture: Option<&EncodedImage>,
    ) -> Result<(), InvalidImageError> {
        let prepared = picture.map(PreparedImage::from_encoded).transpose()?;
        let paper = PaperSize::of_page(text, picture);
        let PaperSize { width, height } = paper;
        let (page, contents) = (self.next.bump(), self.next.bump());
        let image = prepared.map(|prepared| {
            let image = self.next.bump();
            prepared.write(&mut self.file, image);
            image
        });
        self.pages.push((text.number, page));
        let mut dictionary = self.file.page(page);
        dictionary.parent(PAGE_TREE).media_box(Rect::new(0.0, 0.0, width, height));
        dictionary.contents(contents);
        let mut resources = dictionary.resources();
        resources.fonts().pair(FONT_NAME, FONT);
        if let Some(image) = image {
            resources.x_objects().pair(IMAGE_NAME, image);
        }
        resources.finish();
        dictionary.finish();
        let mut content = Content::new();
        if image.is_some() {
            content.save_state().transform([width, 0.0, 0.0, height, 0.0, 0.0]);
            content.x_object(IMAGE_NAME).restore_state();
        }
        write_text(&mut content, text, paper, &mut self.letters);
        self.write_packed(contents, &content.finish());
        Ok(())
    }

    /// Bytes that it has so far.
    pub fn size(&self) -> usize {
        self.file.len()
    }

    /// Writes the shared objects and the trailer; returns the whole file. `identity` identifies the
    /// document: the first 32 digits of a hash in hex.
    pub fn finish(mut self, identity: &str) -> Vec<u8> {
        self.pages.sort_unstable();
        let mut tree = self.file.pages(PAGE_TREE);
        tree.count(i32::try_from(self.pages.len()).unwrap_or(i32::MAX));
        tree.kids(self.pages.iter().map(|(_, page)| *page));
        tree.finish();
        self.write_font();
        let metadata = describe_document(identity);
        let mut stream = self.file.stream(METADATA, metadata.as_bytes());
        stream.pair(Name(b"Type"), Name(b"Metadata")).pair(Name(b"Subtype"), Name(b"XML"));
        stream.finish();
        let profile = srgb_profile();
        self.file.icc_profile(PROFILE, &profile).n(3);
        let mut catalog = self.file.catalog(CATALOG);
        catalog.pages(PAGE_TREE).metadata(METADATA);
        let mut intents = catalog.output_intents();
        let mut intent = intents.push();
        intent.subtype(OutputIntentSubtype::PDFA).dest_output_profile(PROFILE);
        intent.output_condition_identifier(TextStr("sRGB IEC61966-2.1"));
        intent.info(TextStr("sRGB IEC61966-2.1"));
        intent.finish();
        intents.finish();
        catalog.finish();
        let id: Vec<u8> = identity.bytes().take(32).collect();
        self.file.set_file_id((id.clone(), id));
        self.file.finish()
    }

    /// The font of all text, and the meaning of its codes.
    fn write_font(&mut self) {
        let letters = std::mem::take(&mut self.letters);
        let adobe = |ordering| SystemInfo { registry: Str(b"Adobe"), ordering, supplement: 0 };
        let mut font = self.file.type0_font(FONT);
        font.base_font(BASE_FONT).encoding_predefined(Name(b"Identity-H"));
        font.descendant_font(CID_FONT).to_unicode(UNICODE_MAP);
        font.finish();
        let mut cid_font = self.file.cid_font(CID_FONT);
        cid_font.subtype(CidFontType::Type2).base_font(BASE_FONT);
        cid_font.system_info(adobe(Str(b"Identity"))).font_descriptor(DESCRIPTOR);
        cid_font.default_width(f32::from(ADVANCE)).cid_to_gid_map_stream(GLYPH_MAP);
        cid_font.finish();
        let mut descriptor = self.file.font_descriptor(DESCRIPTOR);
        descriptor.name(BASE_FONT).flags(FontFlags::FIXED_PITCH | FontFlags::SYMBOLIC);
        descriptor.bbox(Rect::new(0.0, 0.0, f32::from(ADVANCE), 1000.0)).italic_angle(0.0);
        descriptor.ascent(1000.0).descent(-1.0).cap_height(1000.0).stem_v(80.0);
        descriptor.font_file2(FONT_FILE);
        descriptor.finish();
        let program = glyphless_font();
        let mut stream = self.file.stream(FONT_FILE, &program);
        stream.pair(Name(b"Length1"), i32::try_from(program.len()).unwrap_or(i32::MAX));
        stream.finish();
        let mut map = UnicodeCmap::<u16>::new(Name(b"Glyphless-UCS"), adobe(Str(b"UCS")));
        for (code, letter) in (1..).zip(&letters.in_order) {
            map.pair(code, *letter);
        }
        let map = map.finish();
        self.write_packed(UNICODE_MAP, &map);
        // The missing glyph for the missing letter, and the one glyph for all others.
        let glyphs = [[0, 0]].into_iter().chain(letters.in_order.iter().map(|_| [0, 1]));
        let glyphs: Vec<u8> = glyphs.flatten().collect();
        self.write_packed(GLYPH_MAP, &glyphs);
    }

    /// Writes a stream, compressed.
    fn write_packed(&mut self, at: Ref, plain: &[u8]) {
        match pack_bytes(plain) {
            Ok(packed) => _ = self.file.stream(at, &packed).filter(Filter::FlateDecode),
            // Writing into memory does not fail.
            Err(_) => _ = self.file.stream(at, plain),
        }
    }
}

fn pack_bytes(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Codes of the letters that a document has, from 1 in the order in which they come.
#[derive(Debug, Default)]
struct CharCodes {
    codes: HashMap<char, u16>,
    in_order: Vec<char>,
}

impl CharCodes {
    /// The letter's code. The last one is shared by all letters that find none.
    fn code(&mut self, letter: char) -> u16 {
        if let Some(code) = self.codes.get(&letter) {
            return *code;
        }
        let next = u16::try_from(self.in_order.len() + 1).unwrap_or(u16::MAX);
        let letter = match next {
            ..u16::MAX => letter,
            u16::MAX => REPLACEMENT,
        };
        if let Some(code) = self.codes.get(&letter) {
            return *code;
        }
        self.codes.insert(letter, next);
        self.in_order.push(letter);
        next
    }

    /// A text as the codes of its letters, without controls and byte order marks.
    fn encode(&mut self, text: &str) -> Vec<u8> {
        let letters = text.chars().filter(|c| !c.is_control() && *c != '\u{feff}');
        letters.flat_map(|letter| self.code(letter).to_be_bytes()).collect()
    }
}

fn share_of(value: f32, side: f32) -> f32 {
    if (value / side).is_finite() { (value / side).clamp(0.0, 1.0) } else { 0.0 }
}

/// A page on paper, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PaperSize {
    width: f32,
    height: f32,
}

impl PaperSize {
    /// Of a page that is shown by this picture, or by none.
    fn of_page(text: &PageText, picture: Option<&EncodedImage>) -> Self {
        let (width, height) = match picture {
            Some(EncodedImage { header, .. }) => {
                (to_points(header.width, header.dpi), to_points(header.height, header.dpi))
            }
            None if text.source == PageSource::Native => (text.width, text.height),
            None => (text.width * POINTS_PER_PIXEL, text.height * POINTS_PER_PIXEL),
        };
        let (least, most) = SIDES;
        // Smaller as a whole first, so that the picture keeps its shape.
        let scale = (most / width.max(height).max(1.0)).min(1.0);
        let [width, height] = [width * scale, height * scale].map(|side| match side.is_finite() {
            true => side.clamp(least, most),
            false => least,
        });
        Self { width, height }
    }

    /// Position of a box of the transcript on paper; the page's corner if it has none.
    fn place(self, found: BoundingBox, text: &PageText) -> PaperBox {
        let (left, right) = (share_of(found.x, text.width), share_of(found.right(), text.width));
        let (top, bottom) = (share_of(found.y, text.height), share_of(found.bottom(), text.height));
        PaperBox {
            left: left * self.width,
            bottom: (1.0 - bottom.max(top)) * self.height,
            width: ((right - left) * self.width).max(MIN_BOX),
            height: ((bottom - top) * self.height).max(MIN_BOX),
        }
    }
}

/// A word's area on paper: in points, its origin at the bottom left.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PaperBox {
    left: f32,
    bottom: f32,
    width: f32,
    height: f32,
}

/// Which way a line's words run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordDirection {
    Rightwards,
    Upwards,
    Downwards,
}

impl WordDirection {
    /// A word of several letters with an upright box runs up or down, as the line's words follow
    /// each other; a single one runs up, as most do.
    fn of_word(word: &TextWord, line: &TextLine, placed: PaperBox) -> Self {
        let is_long = placed.width > MIN_BOX && word.text.chars().nth(1).is_some();
        let is_upright = is_long && placed.height > UPRIGHT * placed.width;
        if !is_upright {
            return Self::Rightwards;
        }
        let [first, last] = [line.words.first(), line.words.last()]
            .map(|word| word.map_or(0.0, |word| word.bounding_box.y));
        match last > first {
            true => Self::Downwards,
            false => Self::Upwards,
        }
    }
}

/// The page's words, each over its box, in reading order, with a blank behind each: not all readers
/// separate words, or lines, by their distance.
fn write_text(content: &mut Content, text: &PageText, paper: PaperSize, letters: &mut CharCodes) {
    if text.lines.iter().all(|line| line.words.is_empty()) {
        return;
    }
    content.begin_text().set_text_rendering_mode(TextRenderingMode::Invisible);
    for line in &text.lines {
        for word in &line.words {
            let mut codes = letters.encode(word.text.trim());
            if codes.is_empty() {
                continue;
            }
            let placed = paper.place(word.bounding_box, text);
            let direction = WordDirection::of_word(word, line, placed);
            let (length, size, matrix) = lay_word(placed, direction);
            let natural = size * f32::from(ADVANCE) / 1000.0 * count_to_f32(codes.len() / 2);
            codes.extend(letters.code(' ').to_be_bytes());
            content.set_font(FONT_NAME, size).set_horizontal_scaling(100.0 * length / natural);
            content.set_text_matrix(matrix);
            for piece in codes.chunks(MAX_SHOWN) {
                content.show(Str(piece));
            }
        }
    }
    content.end_text();
}

/// How long a word's text is, how large its letters are, and the matrix that puts it over its box.
fn lay_word(placed: PaperBox, direction: WordDirection) -> (f32, f32, [f32; 6]) {
    let PaperBox { left, bottom, width, height } = placed;
    match direction {
        WordDirection::Rightwards => (width, height, [1.0, 0.0, 0.0, 1.0, left, bottom]),
        WordDirection::Upwards => (height, width, [0.0, 1.0, -1.0, 0.0, left + width, bottom]),
        WordDirection::Downwards => (height, width, [0.0, -1.0, 1.0, 0.0, left, bottom + height]),
    }
}

#[expect(clippy::cast_precision_loss, reason = "letters of a word")]
fn count_to_f32(count: usize) -> f32 {
    count as f32
}

/// The document's metadata (XMP): its standard, its producer, its identity.
fn describe_document(identity: &str) -> String {
    let hex: String = identity.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    let hex = format!("{hex:0<32}");
    let id = [0..8, 8..12, 12..16, 16..20, 20..32]
        .map(|part| hex.get(part).unwrap_or_default())
        .join("-");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\
         <x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n\
         <rdf:Description rdf:about=\"\" xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\">\
         <pdfaid:part>2</pdfaid:part><pdfaid:conformance>B</pdfaid:conformance></rdf:Description>\n\
         <rdf:Description rdf:about=\"\" xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\">\
         <pdf:Producer>docmill {version}</pdf:Producer></rdf:Description>\n\
         <rdf:Description rdf:about=\"\" xmlns:xmpMM=\"http://ns.adobe.com/xap/1.0/mm/\">\
         <xmpMM:DocumentID>uuid:{id}</xmpMM:DocumentID></rdf:Description>\n\
         </rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"w\"?>"
    )
}

#[cfg(test)]
mod tests;
