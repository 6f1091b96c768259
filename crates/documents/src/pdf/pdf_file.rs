//! PDF: opening, and per page the choice between its text layer and its picture.
//!
//! The text layer is taken if its visible text is mostly real characters and it is not merely a
//! stamp on a scan. A page that is one image is extracted at the image's own resolution; any other
//! page without a sound text layer is rendered. A page without drawing is an empty text.

use std::ops::Range;

use bytes::Bytes;
use hayro::hayro_interpret::hayro_syntax::object::dict::keys;
use hayro::hayro_interpret::hayro_syntax::object::{Array, Dict, Stream};
use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro::hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, TransformExt, interpret_page,
};
use hayro::kurbo::Rect;

use crate::container::MemberCollector;
use crate::page::{ColourPlanes, PageContent, PageRaster};
use crate::pdf::disputed_resources::{are_disputed, has_composite_fonts_only};
use crate::pdf::drawn_figures::find_figures;
use crate::pdf::expansion::ExpansionScan;
use crate::pdf::glyph_collector::{GlyphCollector, PIECES_PER_WORD};
use crate::pdf::glyph_proof::{GlyphProofs, is_unreadable};
use crate::pdf::layers::HiddenLayers;
use crate::pdf::lookalike_letters::mark_lookalikes;
use crate::pdf::page_glyph::PageGlyph;
use crate::pdf::render::RenderBounds;
use crate::pdf::{
    attached_files, attachments, contrast, expansion, form_fields, lines, overprint, pdf_recovery,
    render, text_layer_check, undrawn_annotations, words,
};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::{OutcomeReason, TextLayer, TextLine, TextMeter};
use parking_lot::Mutex;

/// An open PDF.
pub(crate) struct PdfFile {
    pdf: Pdf,
    is_cut: bool,
    /// Whether viewers show fewer pages than it has.
    hides_pages: bool,
    /// Invisible text of its pages: it is never read, but costs as much time as visible text.
    hidden: Mutex<TextMeter>,
    /// Glyphs of earlier pages that were compared with their text.
    proofs: Mutex<GlyphProofs>,
}

/// Limits and passwords for opening a file.
#[derive(Clone, Copy)]
struct OpenBounds<'a> {
    limits: &'a LimitsConfig,
    scan: ExpansionScan,
    /// Tried in this order after the empty one.
    passwords: &'a [String],
}

impl std::fmt::Debug for PdfFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("pages", &self.pdf.pages().len()).finish()
    }
}

impl PdfFile {
    /// Opens a PDF, with the empty password or the first that fits if it is encrypted. Rebuilds a
    /// broken table of objects and recovers a damaged file.
    ///
    /// # Errors
    /// `too_large` if compressed parts expand too far, `encrypted`, `corrupt`, `empty`.
    pub(crate) fn open(
        bytes: Bytes,
        limits: &LimitsConfig,
        passwords: &[String],
    ) -> Result<Self, PageRefusal> {
        let scan = expansion::check_expansion(&bytes, limits)?;
        let bounds = OpenBounds { limits, scan, passwords };
        let is_cut = pdf_recovery::is_cut_off(&bytes);
        let ended = if is_cut { pdf_recovery::close_last_stream(&bytes) } else { None };
        let bytes = ended.unwrap_or(bytes);
        let refused = match Self::parse(bytes.clone(), is_cut, bounds) {
            Err(refused) if refused.reason == OutcomeReason::Corrupt => refused,
            decided => return decided,
        };
        let bytes = match pdf_recovery::flatten_arrays(&bytes) {
            Some(flat) => match Self::parse(flat.clone(), is_cut, bounds) {
                Ok(file) => return Ok(file),
                Err(_refused) => flat,
            },
            None => bytes,
        };
        // Pages may be missing now, in unknown number.
        if let Some(bytes) = pdf_recovery::rebuild_page_tree(&bytes, limits.pages) {
            return Self::parse(bytes, true, bounds);
        }
        // The parser does not report encryption of a file whose table of objects is damaged.
        Err(if pdf_recovery::names_encryption(&bytes) {
            encryption_refusal(DAMAGED_ENCRYPTION)
        } else {
            refused
        })
    }

    fn parse(bytes: Bytes, is_cut: bool, bounds: OpenBounds<'_>) -> Result<Self, PageRefusal> {
        let pdf = unlock(bytes, bounds.passwords).map_err(refusal_from_error)?;
        let hidden = Mutex::new(TextMeter::new(bounds.limits.text()));
        let hides_pages = !is_cut && crate::pdf::page_tree::hides_pages(&pdf);
        let file = Self { pdf, is_cut, hides_pages, hidden, proofs: Mutex::default() };
        if bounds.scan == ExpansionScan::NeedsObjects {
            expansion::check_objects(&file.pdf, bounds.limits)?;
        }
        if file.pdf.pages().is_empty() {
            return Err(file.empty_pages_refusal());
        }
        if form_fields::is_dynamic_xfa(&file.pdf) {
            let text = "a dynamic XFA form: its file holds no page, only Adobe's viewer makes them";
            return Err(PageRefusal::new(OutcomeReason::UnsupportedType, text));
        }
        Ok(file)
    }

    /// Adds the documents attached to it, see [`attached_files::add_attached_files`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn add_attached_files(
        &self,
        is_portfolio: bool,
        found: &mut MemberCollector<'_>,
    ) -> Result<(), PageRefusal> {
        attached_files::add_attached_files(&self.pdf, is_portfolio, found)
    }

    /// Whether it is a portfolio.
    pub(crate) fn is_portfolio(&self) -> bool {
        attached_files::is_portfolio(&self.pdf)
    }

    /// The e-invoices that it carries, see [`attachments::list_einvoices`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn list_einvoices(&self) -> Result<Vec<Vec<u8>>, PageRefusal> {
        attachments::list_einvoices(&self.pdf, self.is_cut)
    }

    /// Whether it is a form that people type into.
    pub(crate) fn has_text_fields(&self) -> bool {
        form_fields::has_text_fields(&self.pdf)
    }

    /// Whether a part of the file is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// An empty list of pages is an empty document; a list that leads nowhere is a damaged one.
    fn empty_pages_refusal(&self) -> PageRefusal {
        let root = self.pdf.xref().root_id();
        let catalog = self.pdf.xref().get::<Dict<'_>>(root);
        let tree = catalog.and_then(|catalog| catalog.get::<Dict<'_>>(keys::PAGES));
        let kids = tree.and_then(|tree| tree.get::<Array<'_>>(keys::KIDS));
        match kids.map(|kids| kids.raw_iter().next().is_none()) {
            Some(true) => PageRefusal::new(OutcomeReason::Empty, "0 pages"),
            _ => PageRefusal::new(OutcomeReason::Corrupt, "no page can be found"),
        }
    }

    /// Whether a page that shows nothing has something to show that was lost, or that only a form
    /// program would draw (dynamic XFA).
    fn hides_content(&self, page: &PdfPage<'_>) -> bool {
        let root = self.pdf.xref().root_id();
        let catalog = self.pdf.xref().get::<Dict<'_>>(root);
        let needs = catalog.and_then(|catalog| catalog.get::<bool>(b"NeedsRendering"));
        needs.unwrap_or(false) || is_lost(page)
    }

    pub(crate) fn page_count(&self) -> u32 {
        u32::try_from(self.pdf.pages().len()).unwrap_or(u32::MAX)
    }

    /// The text layer of page `index`, starting at 0; none if the page has to be read from its
    /// picture. Only pages that may hide text or show more of it are rendered.
    pub(crate) fn text_layer(
        &self,
        index: u32,
        bounds: &RenderBounds<'_>,
    ) -> Result<SeenLayer, PageRefusal> {
        let page = self.page_at(index)?;
        let surface = page_surface(page, bounds).for_comparison();
        let mut surface = self.draw_glyphs(page, surface);
        contrast::hide_unseen(page, &mut surface, bounds)?;
        self.count_hidden(index, &surface)?;
        let what = read_mode(&surface, page_area(page));
        if !matches!(what, PageReadMode::Blank | PageReadMode::TextLayer) {
            return Ok(SeenLayer { content: None, shows_more: true });
        }
        let content = self.text_page(page, &surface, what, bounds)?;
        let shows_more = match &content {
            PageContent::Text { lines, .. } => {
                draws_much(&surface, page_area(page))
                    && text_layer_check::leaves_text_out(
                        &text_layer_check::glance_at(page, bounds)?,
                        lines,
                    )
            }
            _ => true,
        };
        Ok(SeenLayer { content: Some(content), shows_more })
    }

    /// Draws the page on a surface of its size.
    fn draw_glyphs(&self, page: &PdfPage<'_>, mut surface: GlyphCollector) -> GlyphCollector {
        surface.proofs = std::mem::take(&mut *self.proofs.lock());
        surface.proofs.begin_page(has_composite_fonts_only(page));
        surface.layers = HiddenLayers::read(page.xref());
        let unshown = undrawn_annotations::hidden_areas(page, &surface.layers);
        if unshown.is_empty() {
            draw_on(page, &mut surface, RenderContent::all());
        } else {
            draw_on(page, &mut surface, RenderContent::PAGE);
            let own = surface.glyphs.len();
            draw_on(page, &mut surface, RenderContent::ANNOTATIONS);
            for glyph in surface.glyphs.iter_mut().skip(own) {
                glyph.visible &= !unshown.iter().any(|area| area.contains(glyph.centre()));
            }
        }
        form_fields::add_unpainted_values(&self.pdf, page, &mut surface.glyphs);
        undrawn_annotations::draw_annotations(page, &mut surface);
        let area = surface.page_area();
        let GlyphProofs { fonts, open_forms, .. } = &mut surface.proofs;
        if self.hides_pages
            || surface.is_disputed
            || are_disputed(page.resources(), &surface.layers, fonts, open_forms)
        {
            surface.dispute_area(area);
        }
        overprint::mark_overprinted(&mut surface.glyphs, &surface.small, area);
        std::mem::take(&mut surface.lines).hide_crossed_out(&mut surface.glyphs);
        mark_turned(&mut surface.glyphs);
        *self.proofs.lock() = std::mem::take(&mut surface.proofs);
        surface
    }

    /// Sums up invisible text, which has the limits of visible text.
    fn count_hidden(&self, index: u32, surface: &GlyphCollector) -> Result<(), PageRefusal> {
        let amount = words::measure_hidden(&surface.glyphs);
        let mut meter = self.hidden.lock();
        meter.add_amount(index + 1, amount)?;
        Ok(())
    }

    fn page_at(&self, index: u32) -> Result<&PdfPage<'_>, PageRefusal> {
        let at = usize::try_from(index).ok().and_then(|index| self.pdf.pages().get(index));
        at.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "no such page"))
    }

    /// A page that is no picture.
    fn text_page(
        &self,
        page: &PdfPage<'_>,
        surface: &GlyphCollector,
        what: PageReadMode,
        bounds: &RenderBounds<'_>,
    ) -> Result<PageContent, PageRefusal> {
        let (width, height) = page.render_dimensions();
        if what == PageReadMode::Blank && self.hides_content(page) {
            return Ok(PageContent::Damaged { width, height });
        }
        let lines = ordered_lines(surface, bounds)?;
        Ok(PageContent::Text { width, height, lines, codes: Vec::new(), marks: Vec::new() })
    }

    /// Draws page `index`, starting at 0, as it looks.
    pub(crate) fn draw_page(
        &self,
        index: u32,
        bounds: &RenderBounds<'_>,
    ) -> Result<PageRaster, PageRefusal> {
        render::render_page(self.page_at(index)?, bounds)
    }

    /// Draws the rows of page `index`, starting at 0, between two heights in points from its top.
    /// Also returns the number of pixel rows above.
    pub(crate) fn draw_rows(
        &self,
        index: u32,
        rows: Range<f64>,
        bounds: &RenderBounds<'_>,
    ) -> Result<(PageRaster, u32), PageRefusal> {
        render::render_rows(self.page_at(index)?, rows, bounds)
    }

    /// Draws a part of page `index`, starting at 0, in points from its top left corner.
    pub(crate) fn draw_part(
        &self,
        index: u32,
        area: Rect,
        dpi: u32,
    ) -> Result<PageRaster, PageRefusal> {
        Ok(render::render_part(self.page_at(index)?, area, dpi))
    }

    /// The picture of page `index`, starting at 0, in colour: of a scan its image, as it is read.
    pub(crate) fn page_colours(
        &self,
        index: u32,
        bounds: &RenderBounds<'_>,
    ) -> Result<ColourPlanes, PageRefusal> {
        let page = self.page_at(index)?;
        let mut surface = self.draw_glyphs(page, page_surface(page, bounds));
        contrast::hide_unseen(page, &mut surface, bounds)?;
        let scan = match read_mode(&surface, page_area(page)) {
            PageReadMode::Scan => render::extract_colours(page, bounds),
            PageReadMode::TextLayer | PageReadMode::Blank | PageReadMode::Rendered => None,
        };
        scan.map_or_else(|| render::render_colours(page, bounds), Ok)
    }

    /// Reads page `index`, starting at 0.
    pub(crate) fn read_page(
        &self,
        index: u32,
        bounds: &RenderBounds<'_>,
    ) -> Result<PageContent, PageRefusal> {
        let page = self.page_at(index)?;
        let mut surface = self.draw_glyphs(page, page_surface(page, bounds));
        contrast::hide_unseen(page, &mut surface, bounds)?;
        self.count_hidden(index, &surface)?;
        match read_mode(&surface, page_area(page)) {
            PageReadMode::TextLayer => text_or_doubt(page, &surface, bounds),
            PageReadMode::Blank => self.text_page(page, &surface, PageReadMode::Blank, bounds),
            PageReadMode::Scan => {
                Ok(PageContent::Image(match render::extract_scan(page, bounds) {
                    Some(raster) => raster,
                    None => render::render_page(page, bounds)?,
                }))
            }
            PageReadMode::Rendered => render::render_page(page, bounds).map(PageContent::Image),
        }
    }
}

/// The text that a page has, and whether that is all.
pub(crate) struct SeenLayer {
    /// `None`: the page has to be read from its picture.
    pub content: Option<PageContent>,
    /// Whether it shows more than its lines: a picture, letters drawn as shapes, lost content.
    pub shows_more: bool,
}

/// The lines of a text layer, unless it has more words than a page may have.
fn ordered_lines(
    surface: &GlyphCollector,
    bounds: &RenderBounds<'_>,
) -> Result<Vec<TextLine>, PageRefusal> {
    let pieces = words::group_words(&surface.glyphs);
    let (words, limit) = (pieces.len(), bounds.limits.page_words);
    if words as u64 > PIECES_PER_WORD * u64::from(limit) {
        let detail = format!("a page of about {words} words, limits.page_words is {limit}");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    let mut lines = lines::order_lines(pieces);
    mark_lookalikes(&mut lines);
    Ok(lines)
}

/// A page with a text layer, and its picture as well where the layer may not be all that it shows.
fn text_or_doubt(
    page: &PdfPage<'_>,
    surface: &GlyphCollector,
    bounds: &RenderBounds<'_>,
) -> Result<PageContent, PageRefusal> {
    let (width, height) = page.render_dimensions();
    let mut lines = ordered_lines(surface, bounds)?;
    let may_show_more = !surface.images.is_empty() || surface.curves > MAX_FILLED_CURVES;
    let garbled = text_layer_check::is_garbled(&lines);
    let page_area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let places = surface.figures.list_areas(page_area);
    let is_looked_at = !places.is_empty() || !garbled && (may_show_more || surface.marks.is_any());
    let glance = is_looked_at.then(|| text_layer_check::glance_at(page, bounds)).transpose()?;
    let shows_more = !garbled
        && may_show_more
        && glance.as_ref().is_some_and(|glance| text_layer_check::leaves_text_out(glance, &lines));
    if let Some(glance) = &glance {
        let large = surface.images.iter().map(|image| image.area);
        text_layer_check::mark_beside_ink(&mut lines, glance, &large.collect::<Vec<_>>());
    }
    if garbled || shows_more || is_mostly_unproven(&lines) {
        let picture = render::render_page(page, bounds)?;
        let seen = glance.as_ref();
        let marks = seen.map(|glance| find_figures(&places, glance, &lines, &[]));
        let marks = marks.unwrap_or_default();
        let layer = TextLayer { width, height, lines, garbled, marks };
        return Ok(PageContent::Doubtful { layer, picture });
    }
    let Some(glance) = glance else {
        let (codes, marks) = (Vec::new(), Vec::new());
        return Ok(PageContent::Text { width, height, lines, codes, marks });
    };
    let codes = surface.marks.read(page, &glance, &mut lines, bounds)?;
    let marks = find_figures(&places, &glance, &lines, &codes);
    Ok(PageContent::Text { width, height, lines, codes, marks })
}

/// Marks letters that stand on their head among others that do not: a 6 is a 9 there.
fn mark_turned(glyphs: &mut [PageGlyph]) {
    let letters = glyphs.iter().filter(|glyph| glyph.visible && is_letter(glyph));
    let (all, turned) = letters
        .fold((0, 0), |(all, turned), glyph| (all + 1, turned + usize::from(is_turned(glyph))));
    if turned == 0 || turned * 2 >= all {
        return;
    }
    let places = glyphs.iter().filter(|glyph| is_letter(glyph) && is_turned(glyph));
    let places: Vec<Rect> = places
        .take(MAX_TURNED)
        .map(|glyph| glyph.letter_box().inflate(glyph.size * 0.6, 0.0))
        .collect();
    // The letters beside one belong to the same word.
    for glyph in glyphs.iter_mut() {
        let place = glyph.letter_box();
        glyph.unproven |= places.iter().any(|turned| turned.overlaps(place));
    }
}

fn is_letter(glyph: &PageGlyph) -> bool {
    glyph.text.contains(char::is_alphanumeric)
}

/// Whether a glyph is drawn from right to left.
fn is_turned(glyph: &PageGlyph) -> bool {
    glyph.em.x < -glyph.em.y.abs()
}

/// Whether most letters of a page do not stand upright, so that people turn the page.
fn lies_on_its_side(glyphs: &[PageGlyph]) -> bool {
    let letters = glyphs.iter().filter(|glyph| glyph.visible && is_letter(glyph));
    let (all, fallen) = letters.fold((0, 0), |(all, fallen), glyph| {
        (all + 1, fallen + usize::from(glyph.em.x <= glyph.em.y.abs()))
    });
    fallen * 2 > all
}

/// Whether so many words do not show their text that the whole page is read from its picture.
fn is_mostly_unproven(lines: &[TextLine]) -> bool {
    let words = lines.iter().flat_map(|line| &line.words);
    let unproven = words.clone().filter(|word| word.unwitnessed).count();
    unproven > MAX_UNPROVEN_WORDS && unproven * 3 > words.count()
}

/// Whether a content stream was lost: it cannot be found or decoded, decodes to nothing, or decodes
/// to something that is no program (which is text but for strings and inline images).
fn is_lost(page: &PdfPage<'_>) -> bool {
    let dictionary = page.raw();
    if !dictionary.contains_key(keys::CONTENTS) {
        return false;
    }
    if let Some(stream) = dictionary.get::<Stream<'_>>(keys::CONTENTS) {
        return is_stream_lost(&stream);
    }
    let Some(array) = dictionary.get::<Array<'_>>(keys::CONTENTS) else { return true };
    let found: Vec<Stream<'_>> = array.iter().collect();
    found.len() < array.raw_iter().count() || found.iter().any(is_stream_lost)
}

fn is_stream_lost(stream: &Stream<'_>) -> bool {
    match stream.decoded_data() {
        Err(_undecodable) => true,
        Ok(data) if data.iter().all(u8::is_ascii_whitespace) => {
            // zlib turns an empty stream into at least 8 bytes.
            !stream.filters().is_empty() && data.is_empty() && stream.raw_data().len() > 16
        }
        Ok(data) => {
            let text = data.iter().filter(|it| it.is_ascii_graphic() || it.is_ascii_whitespace());
            (data.len() - text.count()) * 5 > data.len()
        }
    }
}

/// Parses a file with the empty password, then with each of these until one fits.
fn unlock(bytes: Bytes, passwords: &[String]) -> Result<Pdf, LoadPdfError> {
    let mut opened = Pdf::new(std::sync::Arc::new(bytes.clone()));
    for password in passwords {
        let Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected)) = opened else {
            break;
        };
        opened = Pdf::new_with_password(std::sync::Arc::new(bytes.clone()), password);
    }
    opened
}

/// Why an encrypted file is not opened if that is not a password's fault.
const DAMAGED_ENCRYPTION: &str = "it is encrypted, and its encryption dictionary is damaged";

fn refusal_from_error(error: LoadPdfError) -> PageRefusal {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            encryption_refusal("a password is needed to open it")
        }
        LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
            encryption_refusal("it is encrypted in a way that cannot be opened")
        }
        LoadPdfError::Decryption(_) => encryption_refusal(DAMAGED_ENCRYPTION),
        LoadPdfError::Invalid => {
            PageRefusal::new(OutcomeReason::Corrupt, "it cannot be opened or rebuilt")
        }
    }
}

fn encryption_refusal(detail: &str) -> PageRefusal {
    PageRefusal::new(OutcomeReason::Encrypted, detail)
}

/// An empty surface of the size of the page.
fn page_surface(page: &PdfPage<'_>, bounds: &RenderBounds<'_>) -> GlyphCollector {
    let (width, height) = page.render_dimensions();
    let area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    GlyphCollector::new(area, bounds.deadline, bounds.limits)
}

fn draw_on(page: &PdfPage<'_>, surface: &mut GlyphCollector, render_content: RenderContent) {
    let cache = InterpreterCache::new();
    let upright = page.initial_transform(true).to_kurbo();
    let settings = InterpreterSettings { render_content, ..InterpreterSettings::default() };
    let area = surface.page_area();
    let mut context = Context::new(upright, area, &cache, page.xref(), settings);
    interpret_page(page, &mut context, surface);
}

/// How a page is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageReadMode {
    Blank,
    TextLayer,
    Scan,
    Rendered,
}

/// Share of a page that an image must cover to be the page.
const MIN_PAGE_IMAGE_SHARE: f64 = 0.9;
/// Images over a smaller share of the page are logos, not content.
const MIN_CONTENT_IMAGE_SHARE: f64 = 0.1;
/// With images over this share of the page, ...
const MIN_SCAN_SHARE: f64 = 0.5;
/// ... fewer glyphs than this are a stamp or a page number, not the page's text.
const MIN_TEXT_GLYPHS: usize = 150;
/// More words than this whose drawing does not show their text are not looked up one by one.
const MAX_UNPROVEN_WORDS: usize = 40;
/// Letters on their head of which the neighbours are looked at.
const MAX_TURNED: usize = 200;
/// More filled curves than this on a page with next to no glyphs: its letters are outlines.
const MAX_FILLED_CURVES: usize = 100;

fn page_area(page: &PdfPage<'_>) -> f64 {
    let (width, height) = page.render_dimensions();
    f64::from(width) * f64::from(height)
}

/// The share of a page that images cover.
fn image_share(surface: &GlyphCollector, page_area: f64) -> f64 {
    surface.images.iter().map(|image| image.area.area()).sum::<f64>() / page_area
}

/// Whether an invoice may be drawn beside the text.
fn draws_much(surface: &GlyphCollector, page_area: f64) -> bool {
    image_share(surface, page_area) > MIN_CONTENT_IMAGE_SHARE || surface.curves > MAX_FILLED_CURVES
}

fn read_mode(surface: &GlyphCollector, page_area: f64) -> PageReadMode {
    let text = VisibleGlyphs::from_glyphs(&surface.glyphs);
    let covered = image_share(surface, page_area);
    let nothing_but_text = surface.images.is_empty() && surface.curves <= MAX_FILLED_CURVES;
    if text.letters == 0 {
        return match surface.images.as_slice() {
            [image]
                if image.area.area() >= MIN_PAGE_IMAGE_SHARE * page_area && surface.shapes == 0 =>
            {
                PageReadMode::Scan
            }
            [] if surface.shapes == 0 && text.visible == 0 => PageReadMode::Blank,
            _ => PageReadMode::Rendered,
        };
    }
    let is_stamp = covered > MIN_SCAN_SHARE && text.visible < MIN_TEXT_GLYPHS;
    let is_outlined = surface.curves > MAX_FILLED_CURVES && surface.curves > 20 * text.visible;
    if lies_on_its_side(&surface.glyphs) {
        return PageReadMode::Rendered;
    }
    if text.is_sound() && (nothing_but_text || !is_stamp && !is_outlined) {
        PageReadMode::TextLayer
    } else {
        PageReadMode::Rendered
    }
}

/// Counts of a page's visible glyphs; white space does not count.
#[derive(Debug, Default)]
struct VisibleGlyphs {
    visible: usize,
    letters: usize,
    unreadable: usize,
}

impl VisibleGlyphs {
    fn from_glyphs(glyphs: &[PageGlyph]) -> Self {
        let mut counts = Self::default();
        for glyph in glyphs.iter().filter(|glyph| glyph.visible) {
            let mut characters = glyph.text.chars().filter(|c| !c.is_whitespace());
            let Some(first) = characters.next() else { continue };
            counts.visible += 1;
            counts.letters += usize::from(first.is_alphanumeric());
            counts.unreadable += usize::from(is_unreadable(first));
        }
        counts
    }

    /// Mostly real characters, and a fair share of letters and digits among them.
    fn is_sound(&self) -> bool {
        self.unreadable * 10 <= self.visible && self.letters * 3 >= self.visible
    }
}

#[cfg(test)]
mod tests {
    use hayro::kurbo::{Point, Vec2};

    use std::time::Instant;

    use super::*;
    use crate::pdf::glyph_collector::PlacedImage;

    fn page(text: &str, visible: bool, images: &[Rect]) -> GlyphCollector {
        let whole = Rect::new(0.0, 0.0, 100.0, 100.0);
        let mut surface = GlyphCollector::new(whole, Instant::now(), &LimitsConfig::default());
        surface.glyphs = text
            .chars()
            .map(|c| PageGlyph {
                text: c.to_string().into(),
                origin: Point::ORIGIN,
                advance: Vec2::new(5.0, 0.0),
                em: Vec2::new(10.0, 0.0),
                size: 10.0,
                visible,
                drawn: true,
                ink: 0,
                doubtful: false,
                unproven: false,
                contested: false,
            })
            .collect();
        surface.images = images.iter().map(|area| PlacedImage { area: *area }).collect();
        surface
    }

    #[test]
    fn how_a_page_is_read_follows_from_what_it_shows() {
        let whole = [Rect::new(0.0, 0.0, 100.0, 95.0)];
        let logo = [Rect::new(0.0, 0.0, 20.0, 20.0)];
        let halves = [Rect::new(0.0, 0.0, 100.0, 50.0), Rect::new(0.0, 50.0, 100.0, 100.0)];
        let long = "Invoice 4711, total 120.00 EUR ".repeat(10);
        let private = "\u{e001}\u{e002}\u{e003}ab".repeat(5);
        #[rustfmt::skip]
        let table = [
            ("plain text",                     page("Total 120.00", true, &[]),    PageReadMode::TextLayer),
            ("text and a logo",                page("Total 120.00", true, &logo),  PageReadMode::TextLayer),
            ("text over letter paper",         page(&long, true, &whole),          PageReadMode::TextLayer),
            ("a scan",                         page("", true, &whole),             PageReadMode::Scan),
            ("a scan with a hidden layer",     page(&long, false, &whole),         PageReadMode::Scan),
            ("a scan with a page number",      page("7", true, &whole),            PageReadMode::Rendered),
            ("a scan in two halves",           page("", true, &halves),            PageReadMode::Rendered),
            ("a font without a map",           page(&private, true, &[]),          PageReadMode::Rendered),
            ("a hidden layer on nothing",      page(&long, false, &[]),            PageReadMode::Blank),
            ("nothing at all",                 page("", true, &[]),                PageReadMode::Blank),
        ];
        for (name, surface, expected) in table {
            assert_eq!(read_mode(&surface, 10_000.0), expected, "{name}");
        }
    }

    #[test]
    fn text_on_its_side_is_rendered_and_letters_on_their_head_are_not_proven() {
        let mut side = page("Total 120.00", true, &[]);
        for glyph in &mut side.glyphs {
            (glyph.em, glyph.advance) = (Vec2::new(0.0, -10.0), Vec2::new(0.0, -5.0));
        }
        assert_eq!(read_mode(&side, 10_000.0), PageReadMode::Rendered);

        let places = (0_u32..6).map(|at| PageGlyph::sample("6", 5.0 * f64::from(at), 50.0));
        let mut glyphs: Vec<PageGlyph> = places.collect();
        glyphs.push(PageGlyph {
            origin: Point::new(37.0, 43.0),
            em: Vec2::new(-10.0, 0.0),
            advance: Vec2::new(-5.0, 0.0),
            ..PageGlyph::sample("9", 0.0, 0.0)
        });
        mark_turned(&mut glyphs);
        let unproven: Vec<bool> = glyphs.iter().map(|glyph| glyph.unproven).collect();
        assert_eq!(unproven, [false, false, false, false, false, true, true], "beside it too");
    }

    #[test]
    fn letters_that_were_turned_into_outlines_are_rendered() {
        let mut outlined = page("", true, &[]);
        (outlined.shapes, outlined.curves) = (40, 400);
        assert_eq!(read_mode(&outlined, 10_000.0), PageReadMode::Rendered);
        let mut with_number = page("page 7", true, &[]);
        (with_number.shapes, with_number.curves) = (40, 4000);
        assert_eq!(read_mode(&with_number, 10_000.0), PageReadMode::Rendered);
    }
}
