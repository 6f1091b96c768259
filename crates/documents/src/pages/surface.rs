//! A drawing surface that keeps what a page shows instead of painting it: glyphs with their
//! positions, where images lie, and how much is drawn as shapes.
//!
//! It decides for each glyph whether a person looking at the page would see it: not if it is drawn
//! invisibly (text render mode 3), transparent, tiny, outside the page or its clip, in white on
//! nothing, or under an opaque image or rectangle that is painted later. Clips are approximated by
//! their bounding boxes and colours behind white text by the boxes of earlier paint, so a glyph is
//! called hidden only when it is surely hidden.

use std::time::Instant;

use hayro::hayro_interpret::font::{Glyph as FontGlyph, GlyphRun, PositionedGlyph};
use hayro::hayro_interpret::hayro_cmap::BfString;
use hayro::hayro_interpret::hayro_syntax::object::Stream;
use hayro::hayro_interpret::hayro_syntax::object::dict::keys;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, Paint, SoftMask,
};
use hayro::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape, Vec2};

use super::expansion::stream_bytes;
use super::refusal::{PageRefusal, stop_decoder};
use docmill_core::model::OutcomeReason;

/// Drawing operations on one page, forms drawn inside forms included. Several times what dense
/// drawings need; nested forms reach it in seconds instead of years.
const MAX_OPERATIONS: u64 = 1_000_000;

/// Glyphs below this size, in points, are not meant to be read.
const TINY: f64 = 1.0;

/// Text lighter than this is taken for white.
const WHITE: u8 = 245;

/// A glyph as it stands on the page. Coordinates in points, origin top left, y downwards.
#[derive(Debug, Clone)]
pub(super) struct PageGlyph {
    /// Its text: usually one character; `U+FFFD` if the font does not tell.
    pub text: String,
    /// Where the glyph's baseline starts.
    pub origin: Point,
    /// From its origin to where the next glyph is due.
    pub advance: Vec2,
    /// One em along the baseline.
    pub em: Vec2,
    /// Font size on the page.
    pub size: f64,
    /// Whether a person looking at the page sees it.
    pub visible: bool,
}

impl PageGlyph {
    fn centre(&self) -> Point {
        let up = Vec2::new(self.em.y, -self.em.x).normalize() * (self.size * 0.3);
        self.origin + self.advance * 0.5 + up
    }
}

/// An image on the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedImage {
    /// The part of the page it covers, clipped.
    pub area: Rect,
}

/// The surface; see the module.
#[derive(Debug)]
pub(super) struct GlyphCollector {
    /// Every glyph, in drawing order.
    pub glyphs: Vec<PageGlyph>,
    /// Every image, in drawing order.
    pub images: Vec<PlacedImage>,
    /// Curves in filled shapes: text that was turned into outlines has ten per letter.
    pub curves: usize,
    /// Number of painted shapes of any form.
    pub shapes: usize,
    clips: Vec<Rect>,
    groups: Vec<OpacityGroup>,
    painted: Vec<Rect>,
    substituted: bool,
    operations: u64,
    deadline: Instant,
    page_pixels: u64,
}

#[derive(Debug, Clone, Copy)]
struct OpacityGroup {
    opacity: f32,
    opaque: bool,
}

impl GlyphCollector {
    /// An empty page of `page` points. Drawing stops past `deadline` (`timeout`), after too many
    /// operations, and at an image of more than `page_pixels` pixels (`too_large`).
    pub(super) fn new(page: Rect, deadline: Instant, page_pixels: u64) -> Self {
        Self {
            glyphs: Vec::new(),
            images: Vec::new(),
            curves: 0,
            shapes: 0,
            clips: vec![page],
            groups: Vec::new(),
            painted: Vec::new(),
            substituted: false,
            operations: 0,
            deadline,
            page_pixels,
        }
    }

    fn count_operations(&mut self, operations: usize) {
        self.operations += 1 + operations as u64;
        if self.operations > MAX_OPERATIONS {
            let detail = format!("more than {MAX_OPERATIONS} drawing operations on one page");
            stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
        if self.operations.is_multiple_of(256) && Instant::now() > self.deadline {
            stop_decoder(PageRefusal::new(
                OutcomeReason::Timeout,
                "a page took longer than limits.page_time",
            ));
        }
    }

    fn current_clip(&self) -> Rect {
        self.clips.last().copied().unwrap_or(Rect::ZERO)
    }

    fn push_clip(&mut self, bounds: Rect) {
        self.count_operations(0);
        self.clips.push(self.current_clip().intersect(bounds));
    }

    fn current_opacity(&self) -> f32 {
        self.groups.iter().map(|group| group.opacity).product()
    }

    fn is_opaque_here(&self) -> bool {
        self.groups.iter().all(|group| group.opaque)
    }

    /// Takes the width of substituted glyphs out of their advances.
    ///
    /// A font that is not embedded is drawn with another one's letters, each stretched to the width
    /// its own should have. That stretch is in the matrix, like a horizontal scaling of the text,
    /// but does not move the next glyph. A scaling is the same for a whole run; if the matrices are
    /// all alike, it shows in where the next glyphs stand; for a single glyph, the run before
    /// tells.
    fn undo_stretching(&mut self, glyphs: &mut [PageGlyph]) {
        let ratio = |glyph: &PageGlyph| glyph.em.length() / glyph.size;
        if glyphs.iter().all(|glyph| (ratio(glyph) - 1.0).abs() < 0.005) {
            return;
        }
        let (mut as_drawn, mut unstretched, mut uneven) = (0.0, 0.0, false);
        for pair in glyphs.windows(2) {
            let [one, next] = pair else { continue };
            let step = (next.origin - one.origin).length();
            as_drawn += (step - one.advance.length()).abs();
            unstretched += (step - one.advance.length() / ratio(one)).abs();
            uneven |= (ratio(one) - ratio(next)).abs() > 0.01;
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

    /// Everything drawn so far within `area` is now under paint.
    fn cover_area(&mut self, area: Rect) {
        self.count_operations(self.glyphs.len() / 64);
        for glyph in &mut self.glyphs {
            glyph.visible &= !area.contains(glyph.centre());
        }
    }

    fn paint_shape(
        &mut self,
        bounds: Rect,
        props: &DrawProps<'_>,
        mode: &DrawMode,
    ) -> Option<Rect> {
        self.shapes += 1;
        let area = props.transform.transform_rect_bbox(bounds).intersect(self.current_clip());
        let filled = matches!(mode, DrawMode::Fill(_) | DrawMode::FillAndStroke(..));
        let ink = paint_appearance(&props.paint);
        if area.area() > 0.0 && filled && ink.alpha > 0.05 && ink.luma < WHITE {
            self.painted.push(area);
        }
        let opaque = filled
            && ink.solid
            && ink.alpha >= 1.0
            && props.soft_mask.is_none()
            && props.blend_mode == BlendMode::Normal
            && self.is_opaque_here();
        opaque.then_some(area)
    }
}

/// The properties of a paint that decide about visibility.
struct PaintAppearance {
    alpha: f32,
    luma: u8,
    solid: bool,
}

fn paint_appearance(paint: &Paint<'_>) -> PaintAppearance {
    match paint {
        Paint::Color(color) => {
            let [red, green, blue, alpha] = color.to_rgba().to_rgba8();
            let luma = red.min(green).min(blue);
            PaintAppearance { alpha: f32::from(alpha) / 255.0, luma, solid: true }
        }
        // Some texture: assume that it shows, and that it does not hide.
        Paint::Pattern(_) => PaintAppearance { alpha: 1.0, luma: 0, solid: false },
    }
}

fn glyph_text(glyph: &FontGlyph<'_>) -> String {
    match glyph.as_unicode() {
        Some(BfString::Char(c)) => c.to_string(),
        Some(BfString::String(text)) => text,
        // Fonts without any mapping still use the code of the space for spaces.
        None if glyph.char_code() == 32 => " ".to_owned(),
        None => "\u{fffd}".to_owned(),
    }
}

fn advance_in_ems(glyph: &FontGlyph<'_>) -> f64 {
    let width = match glyph {
        FontGlyph::Outline(outline) => outline.advance_width(),
        FontGlyph::Type3(drawn) => drawn.advance_width(),
    };
    f64::from(width.filter(|width| width.is_finite()).unwrap_or(500.0)) / 1000.0
}

/// Where a glyph stands on the page; `None` if its matrix is degenerate.
fn place_glyph(glyph: &PositionedGlyph<'_>, transform: Affine) -> Option<PageGlyph> {
    let placed = transform * glyph.transform();
    let [a, b, c, d, ..] = placed.as_coeffs();
    let origin = placed * Point::ORIGIN;
    let em = Vec2::new(a, b) * 1000.0;
    let size = Vec2::new(c, d).length() * 1000.0;
    let usable = origin.is_finite() && em.is_finite() && em.length() > 0.0 && size.is_finite();
    let advance = em * advance_in_ems(glyph);
    usable.then(|| PageGlyph { text: glyph_text(glyph), origin, advance, em, size, visible: false })
}

/// Most bytes of a pixel: four components of 16 bits.
const PIXEL_BYTES: u64 = 8;
/// What may follow the pixels of an image without being of any use.
const SPARE_BYTES: u64 = 1 << 20;

/// Stops at an image in the program of a page whose data expands to far more than its pixels take.
/// Images that are objects of the file were counted when it was opened.
fn check_image_data(stream: &Stream<'_>, pixels: u64) {
    let most = pixels.saturating_mul(PIXEL_BYTES).saturating_add(SPARE_BYTES);
    if stream_bytes(stream, most) >= most {
        let detail = format!("the data of an image of {pixels} pixels has more than {most} bytes");
        stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
}

impl<'a> Device<'a> for GlyphCollector {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(path.elements().len() / 64);
        if matches!(mode, DrawMode::Fill(_) | DrawMode::FillAndStroke(..)) {
            let is_curve =
                |element: &&PathEl| matches!(element, PathEl::CurveTo(..) | PathEl::QuadTo(..));
            self.curves += path.elements().iter().filter(is_curve).count();
        }
        self.paint_shape(path.control_box(), &props, mode);
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(0);
        if let Some(area) = self.paint_shape(*rect, &props, mode) {
            self.cover_area(area);
        }
    }

    fn push_clip_path(&mut self, clip: &ClipPath) {
        self.push_clip(clip.path.bounding_box());
    }

    fn push_clip_rect(&mut self, rect: &Rect) {
        self.push_clip(*rect);
    }

    fn pop_clip(&mut self) {
        if self.clips.len() > 1 {
            self.clips.pop();
        }
    }

    fn push_transparency_group(
        &mut self,
        opacity: f32,
        mask: Option<SoftMask<'a>>,
        blend_mode: BlendMode,
    ) {
        self.count_operations(0);
        let opaque = opacity >= 1.0 && mask.is_none() && blend_mode == BlendMode::Normal;
        self.groups.push(OpacityGroup { opacity, opaque });
    }

    fn pop_transparency_group(&mut self) {
        self.groups.pop();
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operations(run.glyphs().len());
        let ink = paint_appearance(&props.paint);
        let shown =
            !matches!(mode, DrawMode::Invisible) && ink.alpha * self.current_opacity() > 0.05;
        let mut glyphs: Vec<PageGlyph> =
            run.glyphs().iter().filter_map(|glyph| place_glyph(glyph, props.transform)).collect();
        self.undo_stretching(&mut glyphs);
        for mut glyph in glyphs {
            let centre = glyph.centre();
            glyph.visible = shown
                && glyph.size >= TINY
                && self.current_clip().contains(centre)
                && (ink.luma < WHITE || self.painted.iter().any(|area| area.contains(centre)));
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
        if let Image::Raster(raster) = &image
            && raster.stream().dict().obj_id().is_none()
        {
            check_image_data(raster.stream(), pixels);
        }
        let whole = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let area = props.transform.transform_rect_bbox(whole).intersect(self.current_clip());
        if area.area() <= 0.0 {
            return;
        }
        self.images.push(PlacedImage { area });
        self.painted.push(area);
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
