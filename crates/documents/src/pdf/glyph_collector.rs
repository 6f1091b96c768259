//! A drawing device that collects the content of a page instead of painting it: glyphs with their
//! positions, images, and the amount of drawn shapes.
//!
//! It decides for each glyph whether a person would see it: not if it is drawn invisibly (text
//! render mode 3), transparent, tiny, outside the page or its clip, hardly darker than the paper,
//! or under an opaque image or shape that is painted later. Clips are approximated by their
//! bounding boxes unless they are boxes. Where those, other paint or transparency leave it open,
//! the glyph is doubtful, and the rendered page decides ([`crate::pdf::contrast`]).

use std::time::Instant;

use compact_str::{CompactString, ToCompactString as _};
use hayro::hayro_interpret::font::{Glyph as FontGlyph, GlyphRun, PositionedGlyph};
use hayro::hayro_interpret::hayro_cmap::BfString;
use hayro::hayro_interpret::hayro_syntax::object::dict::{Dict, keys};
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, FillRule, Image, ImageDrawProps, SoftMask,
    StrokeProps,
};
use hayro::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape, Vec2};

use crate::image::luminance::is_seen_on_white;
use crate::pdf::crossed_out::PageLines;
use crate::pdf::cut_letters::PaintedPath;
use crate::pdf::drawn_figures::DrawnFigures;
use crate::pdf::drawn_marks::DrawnMarks;
use crate::pdf::glyph_proof::{GlyphProofs, closed_path};
use crate::pdf::inline_images::{check_image_data, is_cut_short};
use crate::pdf::layers::{HiddenLayers, LayerState};
use crate::pdf::letter_ground::{LetterGround, MIN_CUT_EMS, PaintedGrounds, is_cut_by};
use crate::pdf::overprint::SmallDrawings;
use crate::pdf::page_clips::PageClips;
use crate::pdf::page_glyph::PageGlyph;
use crate::pdf::paint_appearance::paint_appearance;
use crate::pdf::paint_record::{PaintPiece, PaintRecord};
use crate::pdf::path_boxes::{CORNER_TOLERANCE, is_box, is_upright, parts_of};
use crate::refusal::{PageRefusal, stop_decoder};
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Drawing operations on one page, forms drawn inside forms included. Several times what dense
/// drawings need; nested forms reach it in seconds instead of years.
const MAX_OPERATIONS: u64 = 1_000_000;

/// Operations between two checks of the deadline.
const OPERATIONS_PER_CHECK: u64 = 256;

/// Glyphs below this share of the page's longer side are not meant to be read: 2 points on A4, ...
const MIN_SIZE_SHARE: f64 = 1.0 / 420.0;
/// ... and never more or less than this, in points.
const MIN_SIZE_POINTS: std::ops::RangeInclusive<f64> = 1.0..=2.0;
/// Glyphs that are squeezed to less than this share of their height are lines, not letters.
const MIN_STRETCH: f64 = 0.2;
/// A letter stands upright on its baseline if the sine of the angle between them is at least this.
const MIN_UPRIGHT: f64 = 0.7;
/// A dark line of this width, in points, is a rule beside text: it hides none.
const MAX_RULE_POINTS: f64 = 3.0;
/// Glyphs under an outline of more elements are doubtful instead of being tested one by one.
const MAX_COVER_ELEMENTS: usize = 1_000;

/// A fainter line crosses out nothing.
const MIN_LINE_ALPHA: f32 = 0.3;
const MAX_LINE_GREY: u8 = 200;
/// Wider strokes mark or cover text, in points.
const MAX_LINE_WIDTH: f64 = 4.0;
/// Wider strokes along a letter's outline change its shape, in ems.
const MAX_LETTER_STROKE_EMS: f64 = 0.12;
/// Lighter ink is ignored; grey level, 255 is white.
const MAX_FAINT_GREY: u8 = 250;

/// A word may be drawn in pieces, in a number that is unknown before they are joined: never in more
/// than this on average.
pub(crate) const PIECES_PER_WORD: u64 = 4;

/// Text lighter than this is taken for white.
const MIN_WHITE: u8 = 245;

/// An image on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedImage {
    /// The part of the page it covers, clipped.
    pub area: Rect,
}

/// The surface; see the module.
#[derive(Debug)]
pub(crate) struct GlyphCollector {
    /// Every glyph, in drawing order.
    pub glyphs: Vec<PageGlyph>,
    /// Every image, in drawing order.
    pub images: Vec<PlacedImage>,
    /// Curves in filled shapes: text that was turned into outlines has ten per letter.
    pub curves: usize,
    /// Number of painted shapes of any form.
    pub shapes: usize,
    /// Where codes and boxes to be ticked may be.
    pub marks: DrawnMarks,
    /// Parts of possible figures.
    pub figures: DrawnFigures,
    /// Small drawings, which may belong to a number.
    pub small: SmallDrawings,
    /// Lines that may cross out letters.
    pub lines: PageLines,
    /// Layers that are not shown.
    pub layers: HiddenLayers,
    /// Whether viewers may show other content on the page.
    pub is_disputed: bool,
    /// State of each open marked-content section.
    open_content: Vec<LayerState>,
    clips: PageClips,
    groups: Vec<OpacityGroup>,
    grounds: PaintedGrounds,
    page: Rect,
    paint: PaintRecord,
    /// Whether glyphs show their text, by what is known of the file.
    pub proofs: GlyphProofs,
    substituted: bool,
    operations: u64,
    /// Words drawn so far, each piece that is drawn apart counted as one.
    pieces: u64,
    deadline: Instant,
    page_pixels: u64,
    page_words: u32,
}

#[derive(Debug, Clone, Copy)]
struct OpacityGroup {
    opacity: f32,
    opaque: bool,
    /// Whether letters in it keep their shapes.
    is_even: bool,
}

impl GlyphCollector {
    /// An empty page of `page` points. Drawing stops past `deadline` (`timeout`), after too many
    /// operations, at an image of more pixels and after more words than a page may have, seen or
    /// not (`too_large`).
    pub(crate) fn new(page: Rect, deadline: Instant, limits: &LimitsConfig) -> Self {
        Self {
            glyphs: Vec::new(),
            images: Vec::new(),
            curves: 0,
            shapes: 0,
            marks: DrawnMarks::default(),
            figures: DrawnFigures::default(),
            small: SmallDrawings::default(),
            lines: PageLines::default(),
            layers: HiddenLayers::default(),
            is_disputed: false,
            open_content: Vec::new(),
            clips: PageClips::new(page),
            groups: Vec::new(),
            grounds: PaintedGrounds::default(),
            page,
            paint: PaintRecord::in_cells(page),
            proofs: GlyphProofs::default(),
            substituted: false,
            operations: 0,
            pieces: 0,
            deadline,
            page_pixels: limits.page_pixels,
            page_words: limits.page_words,
        }
    }

    /// The page that is drawn on it, in points.
    pub(crate) fn page_area(&self) -> Rect {
        self.page
    }

    /// The same for comparing the text with an e-invoice: the visibility of text is doubtful only
    /// where paint under or over it leaves it open.
    pub(crate) fn for_comparison(self) -> Self {
        Self { paint: PaintRecord::in_pieces(), ..self }
    }

    fn count_operations(&mut self, operations: usize) {
        let before = self.operations;
        self.operations += 1 + operations as u64;
        if self.operations > MAX_OPERATIONS {
            let detail = format!("more than {MAX_OPERATIONS} drawing operations on one page");
            stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        let is_due = before / OPERATIONS_PER_CHECK != self.operations / OPERATIONS_PER_CHECK;
        if is_due && Instant::now() > self.deadline {
            stop_decoder(PageRefusal::new(
                OutcomeReason::Timeout,
                "a page took longer than limits.page_time",
            ));
        }
    }

    /// Counts the words of a run, visible or not: hidden text takes its time and memory as well.
    fn count_words(&mut self, run: &[PageGlyph]) {
        let blanks = run.iter().map(|glyph| glyph.text.chars().all(char::is_whitespace));
        let before = std::iter::once(true).chain(blanks.clone());
        let begun = blanks.zip(before).filter(|(blank, after_blank)| !blank && *after_blank);
        self.pieces += begun.count() as u64;
        let (pieces, limit) = (self.pieces, self.page_words);
        if pieces > u64::from(limit) * PIECES_PER_WORD {
            let detail =
                format!("a page of more than {pieces} words, limits.page_words is {limit}");
            stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
    }

    fn push_clip(&mut self, bounds: Rect, shape: Option<&ClipPath>) {
        self.count_operations(shape.map_or(0, |clip| clip.path.elements().len() / 64));
        self.clips.push(bounds, shape);
    }

    /// Whether only the rendered page can show if this glyph is visible.
    pub(crate) fn is_doubtful(&self, glyph: &PageGlyph) -> bool {
        glyph.visible && (glyph.doubtful || self.paint.is_near(glyph))
    }

    /// Keeps where paint is that text may be on or under.
    fn mark_paint(&mut self, piece: PaintPiece) {
        let looked_at = self.paint.add_piece(piece, &mut self.glyphs);
        if looked_at > 0 {
            self.count_operations(looked_at / 64);
        }
    }

    /// The ground under a white letter.
    fn ground_of(&mut self, glyph: &PageGlyph) -> LetterGround {
        let (ground, looked_at) = self.grounds.under(glyph);
        self.count_operations(looked_at / 64);
        ground
    }

    /// Whether all clips leave a letter whole.
    fn is_left_whole(&mut self, ink: Rect) -> bool {
        let (is_whole, looked_at) = self.clips.leave_whole(ink);
        self.count_operations(looked_at / 64);
        is_whole
    }

    /// Everything drawn so far within a filled shape is under paint.
    fn cover_shape(&mut self, path: &BezPath, shape: &DrawnShape) {
        let area = shape.area;
        let within = self.glyphs.iter().filter(|glyph| area.contains(glyph.centre())).count();
        if within == 0 || path.elements().len() > MAX_COVER_ELEMENTS {
            return;
        }
        self.count_operations(within * path.elements().len() / 64);
        let (path, back) = (closed_path(path), shape.transform.inverse());
        for glyph in self.glyphs.iter_mut().filter(|glyph| glyph.visible) {
            let centre = glyph.centre();
            let is_within = match (shape.rule, path.winding(back * centre)) {
                (FillRule::EvenOdd, turns) => turns % 2 != 0,
                (FillRule::NonZero, turns) => turns != 0,
            };
            glyph.visible = !(area.contains(centre) && is_within);
        }
    }

    /// Whether what is drawn now belongs to a layer that is not shown.
    fn is_hidden_content(&self) -> bool {
        self.open_content.iter().any(|state| *state != LayerState::Shown)
    }

    /// Records paint on a hidden layer. In viewers that show it, it changes adjacent digits, and
    /// hides letters if it `covers` them.
    fn note_hidden(&mut self, area: Rect, covers: bool) {
        if self.open_content.contains(&LayerState::Hidden) {
            return;
        }
        self.small.note_disputed(area);
        if covers {
            self.dispute_area(area);
        }
    }

    /// Marks the letters in `area` as contested between viewers.
    pub(crate) fn dispute_area(&mut self, area: Rect) {
        self.count_operations(self.glyphs.len() / 64);
        for glyph in self.glyphs.iter_mut().filter(|glyph| area.contains(glyph.centre())) {
            (glyph.unproven, glyph.contested) = (true, true);
        }
    }

    fn current_opacity(&self) -> f32 {
        self.groups.iter().map(|group| group.opacity).product()
    }

    /// Whether letters painted now keep their shapes.
    fn is_even_here(&self, props: &DrawProps<'_>) -> bool {
        props.soft_mask.is_none()
            && keeps_shapes(props.blend_mode)
            && self.groups.iter().all(|group| group.is_even)
    }

    fn is_opaque_here(&self) -> bool {
        self.groups.iter().all(|group| group.opaque)
    }

    /// Takes the width of substituted glyphs out of their advances.
    ///
    /// A font that is not embedded is drawn with another one's letters, each stretched to the width
    /// of its own. That stretch is in the matrix, like a horizontal scaling of the text, but does
    /// not move the next glyph. A scaling is the same for a whole run. So if the matrices are all
    /// alike, the positions of the next glyphs decide; for a single glyph, those of the run before.
    fn undo_stretching(&mut self, glyphs: &mut [PageGlyph]) {
        if glyphs.iter().all(|glyph| (glyph.stretch() - 1.0).abs() < 0.005) {
            return;
        }
        let (mut as_drawn, mut unstretched, mut uneven) = (0.0, 0.0, false);
        for pair in glyphs.windows(2) {
            let [one, next] = pair else { continue };
            let step = (next.origin - one.origin).length();
            as_drawn += (step - one.advance.length()).abs();
            unstretched += (step - one.advance.length() / one.stretch()).abs();
            uneven |= (one.stretch() - next.stretch()).abs() > 0.01;
        }
        if glyphs.len() > 1 {
            self.substituted = uneven || unstretched < as_drawn;
        }
        if self.substituted {
            for glyph in glyphs {
                let factor = glyph.size / glyph.em.length();
                glyph.advance *= factor;
                glyph.em *= factor;
            }
        }
    }

    /// Marks letters that paint partly covers: they may look like others. `None`: the paint fills
    /// its area.
    fn pare_glyphs(&mut self, area: Rect, painted: Option<&PaintedPath>, mode: BlendMode) {
        let elements = painted.map_or(0, PaintedPath::element_count);
        let painted = painted.filter(|_| elements <= MAX_COVER_ELEMENTS);
        let mut looked_at = 0;
        for glyph in self.glyphs.iter_mut().filter(|glyph| glyph.visible && !glyph.unproven) {
            let ink = glyph.ink_box();
            if is_cut_by(ink, area, glyph.size) {
                looked_at += elements;
                glyph.unproven = painted.is_none_or(|painted| painted.touches(ink));
                glyph.contested |= glyph.unproven && !is_agreed_mode(mode);
            }
        }
        self.count_operations(looked_at / 64);
    }

    /// Ink outside of the glyph's advance covers other letters as paint does.
    fn paint_stray(&mut self, area: Rect) {
        let area = area.intersect(self.clips.area());
        self.small.note(area);
        self.pare_glyphs(area, None, BlendMode::Normal);
    }

    /// Keeps the lines that may cross out letters, and the parts of a large drawing that may belong to
    /// a number.
    fn note_strokes(&mut self, path: &BezPath, props: &DrawProps<'_>, mode: &DrawMode) {
        let ink = paint_appearance(&props.paint);
        if ink.alpha * self.current_opacity() < MIN_LINE_ALPHA || ink.on_white > MAX_LINE_GREY {
            return;
        }
        let clip = self.clips.area();
        let width = stroke_width(mode, props.transform);
        if width.is_some_and(|width| width <= MAX_LINE_WIDTH) {
            self.lines.note_path(path, props.transform, clip);
        }
        for part in parts_of(path) {
            self.small.note(props.transform.transform_rect_bbox(part).intersect(clip));
        }
    }

    /// Everything drawn so far within `area` is now under paint.
    fn cover_area(&mut self, area: Rect) {
        self.count_operations(self.glyphs.len() / 64);
        for glyph in &mut self.glyphs {
            glyph.visible &= !area.contains(glyph.centre());
        }
    }

    fn note_mark(
        &mut self,
        bounds: Rect,
        props: &DrawProps<'_>,
        mode: &DrawMode,
        path: Option<&BezPath>,
    ) {
        let area = props.transform.transform_rect_bbox(bounds).intersect(self.clips.area());
        if area.is_finite() {
            self.marks.note_shape(area, path);
            let filled = matches!(mode, DrawMode::Fill(_) | DrawMode::FillAndStroke(..));
            let ink = paint_appearance(&props.paint);
            if ink.alpha > 0.05 && (ink.luma < MIN_WHITE || !filled) {
                self.figures.note_shape(area, path, filled.then_some(ink.luma));
            }
        }
    }

    fn paint_shape(
        &mut self,
        bounds: Rect,
        props: &DrawProps<'_>,
        mode: &DrawMode,
        path: Option<&BezPath>,
    ) -> Option<Rect> {
        self.shapes += 1;
        let area = props.transform.transform_rect_bbox(bounds).intersect(self.clips.area());
        let filled = matches!(mode, DrawMode::Fill(_) | DrawMode::FillAndStroke(..));
        let ink = paint_appearance(&props.paint);
        if area.area() > 0.0 && filled && ink.alpha > 0.05 {
            self.grounds.add(area, ink.luma < MIN_WHITE);
        }
        let stroke = stroke_width(mode, props.transform);
        if ink.alpha > 0.05 && ink.luma < MIN_WHITE {
            let half = stroke.unwrap_or(0.0) / 2.0;
            self.small.note(area.inflate(half, half));
        }
        let width = stroke.unwrap_or_else(|| area.width().min(area.height()));
        let plain = ink.solid
            && ink.alpha >= 1.0
            && props.soft_mask.is_none()
            && props.blend_mode == BlendMode::Normal
            && self.is_opaque_here();
        let opaque = filled && plain;
        if filled && ink.alpha >= MIN_LINE_ALPHA && ink.on_white <= MAX_LINE_GREY {
            self.lines.note_box(area, self.clips.area());
        }
        // A thin dark line hides no text, and nearly every table has some.
        if ink.luma >= 128 || width >= MAX_RULE_POINTS {
            let covers = opaque
                && path.is_none_or(is_box)
                && matches!(mode, DrawMode::Fill(_))
                && is_upright(props.transform)
                && !self.clips.is_shaped();
            let area = area.inflate(stroke.unwrap_or(0.0), stroke.unwrap_or(0.0));
            self.mark_paint(PaintPiece { area, grey: plain.then_some(ink.on_white), covers });
            if ink.alpha > 0.05 {
                let path = path.cloned().unwrap_or_else(|| bounds.to_path(CORNER_TOLERANCE));
                self.pare_glyphs(
                    area,
                    Some(&PaintedPath::new(props.transform * path, mode, stroke)),
                    props.blend_mode,
                );
            }
        }
        opaque.then_some(area)
    }
}

/// Whether letters on an even ground look the same in this mode.
fn keeps_shapes(mode: BlendMode) -> bool {
    matches!(mode, BlendMode::Normal | BlendMode::Multiply | BlendMode::Darken)
}

/// Whether viewers agree on the effect of this blend mode on letters under it.
fn is_agreed_mode(mode: BlendMode) -> bool {
    keeps_shapes(mode) || matches!(mode, BlendMode::Screen | BlendMode::Lighten)
}

/// A shape that was filled opaquely.
struct DrawnShape {
    /// The smallest box around it on the page, clipped.
    area: Rect,
    /// From its own coordinates to those of the page.
    transform: Affine,
    rule: FillRule,
}

/// The width of a stroke on the page, in points; `None` for a shape that is filled.
fn stroke_width(mode: &DrawMode, transform: Affine) -> Option<f64> {
    let DrawMode::Stroke(stroke) = mode else { return None };
    Some(width_on_page(stroke, transform))
}

fn width_on_page(stroke: &StrokeProps, transform: Affine) -> f64 {
    let [a, b, c, d, ..] = transform.as_coeffs();
    f64::from(stroke.line_width) * (a * d - b * c).abs().sqrt()
}

/// Whether letters of this size that are drawn with a stroke keep their shapes.
fn strokes_whole(mode: &DrawMode, transform: Affine, size: f64) -> bool {
    let (DrawMode::Stroke(stroke) | DrawMode::FillAndStroke(_, stroke)) = mode else { return true };
    let width = width_on_page(stroke, transform);
    width <= MAX_LETTER_STROKE_EMS * size && stroke.dash_array.is_empty()
}

/// Whether the paint is one opaque colour.
fn is_plain_cover(props: &DrawProps<'_>, mode: &DrawMode) -> bool {
    let ink = paint_appearance(&props.paint);
    !matches!(mode, DrawMode::Stroke(_)) && ink.solid && ink.alpha >= 1.0
}

fn glyph_text(glyph: &FontGlyph<'_>) -> CompactString {
    match glyph.as_unicode() {
        Some(BfString::Char(c)) => c.to_compact_string(),
        Some(BfString::String(text)) => text.into(),
        // Fonts without any mapping still use the code of the space for spaces.
        None if glyph.char_code() == 32 => " ".into(),
        None => "\u{fffd}".into(),
    }
}

fn advance_in_ems(glyph: &FontGlyph<'_>) -> f64 {
    let width = match glyph {
        FontGlyph::Outline(outline) => outline.advance_width(),
        FontGlyph::Type3(drawn) => drawn.advance_width(),
    };
    f64::from(width.filter(|width| width.is_finite()).unwrap_or(500.0)) / 1000.0
}

/// Position of a glyph on the page; `None` if its matrix is degenerate.
fn place_glyph(glyph: &PositionedGlyph<'_>, transform: Affine) -> Option<PageGlyph> {
    let placed = transform * glyph.transform();
    let [a, b, c, d, ..] = placed.as_coeffs();
    let origin = placed * Point::ORIGIN;
    let em = Vec2::new(a, b) * 1000.0;
    let size = Vec2::new(c, d).length() * 1000.0;
    let usable = origin.is_finite() && em.is_finite() && em.length() > 0.0 && size.is_finite();
    let advance = em * advance_in_ems(glyph);
    // Mirrored letters and heavily slanted ones look like others.
    let upright = (a * d - b * c) / (em.length() * size) * 1e6;
    usable.then(|| PageGlyph {
        text: glyph_text(glyph),
        origin,
        advance,
        em,
        size,
        visible: true,
        drawn: false,
        ink: 0,
        doubtful: false,
        unproven: upright > -MIN_UPRIGHT,
        contested: false,
    })
}

impl<'a> Device<'a> for GlyphCollector {
    fn begin_marked_content(&mut self, tag: &[u8], properties: Option<&Dict<'_>>) {
        self.count_operations(0);
        let is_condition = tag == b"OC";
        let state = match properties {
            Some(properties) if is_condition => self.layers.state_of(properties),
            // The interpreter hides layers behind any tag, other viewers behind `/OC` only.
            Some(properties) => {
                self.is_disputed |= self.layers.state_of(properties) != LayerState::Shown;
                LayerState::Shown
            }
            None => LayerState::Shown,
        };
        self.open_content.push(state);
    }

    fn end_marked_content(&mut self) {
        self.open_content.pop();
    }

    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(path.elements().len() / 64);
        if self.is_hidden_content() {
            let area = props.transform.transform_rect_bbox(path.control_box());
            self.note_hidden(area, is_plain_cover(&props, mode));
            return;
        }
        if matches!(mode, DrawMode::Fill(_) | DrawMode::FillAndStroke(..)) {
            for element in path.elements() {
                let is_curve = matches!(element, PathEl::CurveTo(..) | PathEl::QuadTo(..));
                self.curves += usize::from(is_curve);
            }
        }
        self.note_mark(path.control_box(), &props, mode, Some(path));
        self.note_strokes(path, &props, mode);
        let area = self.paint_shape(path.control_box(), &props, mode, Some(path));
        if let (Some(area), DrawMode::Fill(rule) | DrawMode::FillAndStroke(rule, _)) = (area, mode)
        {
            let shape = DrawnShape { area, transform: props.transform, rule: *rule };
            self.cover_shape(path, &shape);
        }
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(0);
        if self.is_hidden_content() {
            let area = props.transform.transform_rect_bbox(*rect);
            self.note_hidden(area, is_plain_cover(&props, mode));
            return;
        }
        self.note_mark(*rect, &props, mode, None);
        if let Some(area) = self.paint_shape(*rect, &props, mode, None) {
            self.cover_area(area);
        }
    }

    fn push_clip_path(&mut self, clip: &ClipPath) {
        self.push_clip(clip.path.bounding_box(), Some(clip).filter(|clip| !is_box(&clip.path)));
    }

    fn push_clip_rect(&mut self, rect: &Rect) {
        self.push_clip(*rect, None);
    }

    fn pop_clip(&mut self) {
        self.clips.pop();
    }

    fn push_transparency_group(
        &mut self,
        opacity: f32,
        mask: Option<SoftMask<'a>>,
        blend_mode: BlendMode,
    ) {
        self.count_operations(0);
        let opaque = opacity >= 1.0 && mask.is_none() && blend_mode == BlendMode::Normal;
        let is_even = mask.is_none() && keeps_shapes(blend_mode);
        self.groups.push(OpacityGroup { opacity, opaque, is_even });
    }

    fn pop_transparency_group(&mut self) {
        self.groups.pop();
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(run.glyphs().len());
        let ink = paint_appearance(&props.paint);
        let shown = !matches!(mode, DrawMode::Invisible)
            && ink.alpha * self.current_opacity() > 0.05
            && !self.is_hidden_content();
        let mut glyphs: Vec<PageGlyph> = Vec::with_capacity(run.glyphs().len());
        for glyph in run.glyphs() {
            let Some(placed) = place_glyph(glyph, props.transform) else { continue };
            if !shown {
                let is_drawn = !matches!(mode, DrawMode::Invisible) && !placed.is_blank();
                if is_drawn && self.is_hidden_content() {
                    self.note_hidden(placed.letter_box(), false);
                }
                glyphs.push(placed);
                continue;
            }
            let (proven, stray) = self.proofs.prove_glyph(glyph, placed, &props.paint);
            glyphs.push(proven);
            if let Some(stray) = stray {
                let to_page = props.transform * glyph.transform();
                self.paint_stray(to_page.transform_rect_bbox(stray));
            }
        }
        self.count_words(&glyphs);
        self.undo_stretching(&mut glyphs);
        let is_plain = ink.solid
            && ink.alpha >= 1.0
            && props.soft_mask.is_none()
            && props.blend_mode == BlendMode::Normal
            && self.is_opaque_here();
        let is_shaped = self.clips.is_shaped();
        let is_even = ink.solid && self.is_even_here(&props);
        let tiny = self.page.width().max(self.page.height()) * MIN_SIZE_SHARE;
        let tiny = tiny.clamp(*MIN_SIZE_POINTS.start(), *MIN_SIZE_POINTS.end());
        for mut glyph in glyphs {
            glyph.drawn = shown && self.clips.area().contains(glyph.centre());
            let was_visible = glyph.visible;
            let is_white = glyph.drawn && glyph.visible && !is_seen_on_white(ink.on_white);
            let ground = if is_white { self.ground_of(&glyph) } else { LetterGround::Dark };
            glyph.visible &= glyph.drawn
                && glyph.size >= tiny
                && glyph.em.length() >= glyph.size * MIN_STRETCH
                && ground != LetterGround::White;
            // Not text, but a mark that may belong to a number.
            if glyph.drawn && was_visible && !glyph.visible && ink.on_white <= MAX_FAINT_GREY {
                self.small.note(glyph.letter_box());
            }
            let drawn = glyph.ink_box();
            let clip = self.clips.area();
            let beyond = clip.x0.max(drawn.x0) - drawn.x0 + drawn.x1 - clip.x1.min(drawn.x1);
            let above = clip.y0.max(drawn.y0) - drawn.y0 + drawn.y1 - clip.y1.min(drawn.y1);
            let is_cut = beyond.max(above) > MIN_CUT_EMS * glyph.size
                || ground == LetterGround::Uneven
                || !strokes_whole(mode, props.transform, glyph.size)
                || is_shaped && glyph.visible && !self.is_left_whole(drawn);
            glyph.unproven |= glyph.drawn && (is_cut || !is_even);
            glyph.ink = ink.on_white;
            glyph.doubtful |=
                is_shaped || !is_plain || glyph.visible && self.paint.is_doubtful_ground(&glyph);
            self.glyphs.push(glyph);
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.count_operations(0);
        let (width, height) = (image.width(), image.height());
        let (pixels, limit) = (u64::from(width) * u64::from(height), self.page_pixels);
        if pixels > limit {
            let detail = format!("an image of {width} x {height} pixels, the limit is {limit}");
            stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        let stream = match &image {
            Image::Raster(raster) => raster.stream(),
            Image::Stencil(stencil) => stencil.stream(),
        };
        if stream.dict().obj_id().is_none() {
            check_image_data(stream, pixels);
            self.is_disputed |= is_cut_short(stream, width, height);
        }
        let whole = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let area = props.transform.transform_rect_bbox(whole).intersect(self.clips.area());
        if area.area() <= 0.0 {
            return;
        }
        if self.is_hidden_content() {
            self.note_hidden(area, true);
            return;
        }
        self.small.note(area);
        self.images.push(PlacedImage { area });
        self.marks.note_image(area);
        self.figures.note_image(area);
        self.grounds.add(area, true);
        self.mark_paint(PaintPiece { area, grey: None, covers: false });
        self.pare_glyphs(area, None, props.blend_mode);
        if let Image::Raster(raster) = &image {
            let masks = [keys::SMASK, keys::MASK, keys::SMASK_IN_DATA];
            let dict = raster.stream();
            let masked = masks.iter().any(|key| dict.dict().contains_key(key));
            if !masked && self.is_opaque_here() {
                self.cover_area(area);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::refusal::catch_decoder;

    fn blank_surface(deadline: Instant) -> GlyphCollector {
        let page = Rect::new(0.0, 0.0, 100.0, 100.0);
        GlyphCollector::new(page, deadline, &LimitsConfig::default())
    }

    #[test]
    fn a_page_past_its_time_is_left_whatever_its_operations_count() {
        for step in [0, 1, 2, 255, 1_000] {
            let mut surface = blank_surface(Instant::now());
            surface.count_operations(0);
            let stopped = catch_decoder(|| {
                (0..300).for_each(|_| surface.count_operations(step));
                Ok(())
            });
            assert_eq!(stopped.unwrap_err().reason, OutcomeReason::Timeout, "{step}");
        }
    }

    #[test]
    fn white_letters_compared_with_very_many_shapes_are_too_large_instead_of_slow() {
        let mut surface = blank_surface(Instant::now() + Duration::from_secs(600));
        let area = Rect::new(0.0, 0.0, 1.0, 1.0);
        (0..1_000_000).for_each(|_| surface.grounds.add(area, true));
        let glyph = PageGlyph::sample("7", 50.0, 50.0);
        let stopped = catch_decoder(|| {
            (0..1_000).for_each(|_| {
                surface.ground_of(&glyph);
            });
            Ok(())
        });
        assert_eq!(stopped.unwrap_err().reason, OutcomeReason::TooLarge);
    }
}
