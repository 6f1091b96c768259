//! A PDF page as grey or coloured pixels: rendered, or its one image taken out.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Instant;

use hayro::hayro_interpret::font::GlyphRun;
use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageData, ImageDrawProps,
    InterpreterCache, InterpreterSettings, LumaData, Paint, SoftMask, TransformExt, interpret_page,
};
use hayro::kurbo::{Affine, BezPath, Rect};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::{Pixmap, RasterizerSettings, RenderContext, Resources, TargetInit};
use hayro::{RenderCache, RenderSettings, render_into};

use crate::image::luminance::{blend_pixel, grey_of_rgb};
use crate::image::picture::{MAX_SIDE, PixelTransform, shrink_raster};
use crate::page::{ColourPlanes, PageRaster};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;
use docmill_core::model::OutcomeReason;

/// Pixels of a rendered page: A4 at 600 dpi. hayro paints four bytes each and casts sizes to 16
/// bits, so larger pages are painted coarser instead.
const MAX_PIXELS: f64 = 36_000_000.0;

/// Limits and resolution of rendering.
pub(crate) struct RenderBounds<'a> {
    /// The limits.
    pub limits: &'a LimitsConfig,
    /// Dots per inch to render at.
    pub dpi: u32,
    /// When to give up.
    pub deadline: Instant,
}

/// Renders a page at `bounds.dpi`, or as fine as the limits allow.
///
/// # Errors
/// `too_large` if the page is so long and narrow that no readable picture of it can be made.
pub(crate) fn render_page(
    page: &PdfPage<'_>,
    bounds: &RenderBounds<'_>,
) -> Result<PageRaster, PageRefusal> {
    Ok(paint_rows(page, 0.0..f64::INFINITY, bounds)?.to_grey().0)
}

/// Renders the rows of a page between two heights, in points from its top, like [`render_page`].
/// Also returns the number of pixel rows above.
///
/// # Errors
/// As [`render_page`].
pub(crate) fn render_rows(
    page: &PdfPage<'_>,
    rows: Range<f64>,
    bounds: &RenderBounds<'_>,
) -> Result<(PageRaster, u32), PageRefusal> {
    Ok(paint_rows(page, rows, bounds)?.to_grey())
}

/// The same in colour.
///
/// # Errors
/// As [`render_page`].
pub(crate) fn render_colours(
    page: &PdfPage<'_>,
    bounds: &RenderBounds<'_>,
) -> Result<ColourPlanes, PageRefusal> {
    let PaintedRows { pixmap, dpi, .. } = paint_rows(page, 0.0..f64::INFINITY, bounds)?;
    let [width, height] = [pixmap.width(), pixmap.height()].map(u32::from);
    let pixels = pixmap.data().iter().map(|pixel| [pixel.r, pixel.g, pixel.b]);
    Ok(ColourPlanes::split(pixels, PageRaster { width, height, dpi, pixels: Vec::new() }))
}

/// Rows of a page in colour.
struct PaintedRows {
    pixmap: Pixmap,
    dpi: u32,
    /// Pixels of the page above them.
    above: u16,
}

impl PaintedRows {
    fn to_grey(&self) -> (PageRaster, u32) {
        (grey_raster(&self.pixmap, self.dpi), u32::from(self.above))
    }
}

/// The rows of a page between two heights, in points from its top, at `bounds.dpi`, or as fine as the
/// limits allow for a whole page.
fn paint_rows(
    page: &PdfPage<'_>,
    rows: Range<f64>,
    bounds: &RenderBounds<'_>,
) -> Result<PaintedRows, PageRefusal> {
    let (width, height) = page.render_dimensions();
    let scale = render_scale(f64::from(width), f64::from(height), bounds);
    if f64::from(width.min(height)) * scale < 1.0 {
        let detail = format!("a page of {width} x {height} points");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    let factor = round_to_f32(scale * 1000.0) / 1000.0;
    let [width, height] = [width, height].map(|points| f64::from((points * factor).floor()));
    let top = (rows.start * f64::from(factor)).floor().clamp(0.0, height - 1.0);
    let bottom = (rows.end * f64::from(factor)).ceil().clamp(top + 1.0, height);
    let transform = Affine::translate((0.0, -top))
        * Affine::scale(f64::from(factor))
        * page.initial_transform(true).to_kurbo();
    Ok(PaintedRows {
        pixmap: paint_page(page, [to_u16(width), to_u16(bottom - top)], transform),
        dpi: to_u32(f64::from(factor) * 72.0),
        above: to_u16(top),
    })
}

/// Renders a part of a page, in points from its top left corner, at `dpi`; no more pixels than the
/// part has, whatever the page's size.
pub(crate) fn render_part(page: &PdfPage<'_>, area: Rect, dpi: u32) -> PageRaster {
    let scale = f64::from(dpi) / 72.0;
    let size = [area.width(), area.height()]
        .map(|points| to_u16((points * scale).clamp(1.0, f64::from(MAX_SIDE))));
    let to_corner = Affine::scale(scale) * Affine::translate((-area.x0, -area.y0));
    let transform = to_corner * page.initial_transform(true).to_kurbo();
    grey_raster(&paint_page(page, size, transform), dpi)
}

fn grey_raster(pixmap: &Pixmap, dpi: u32) -> PageRaster {
    let painted = pixmap.data().iter();
    PageRaster {
        width: u32::from(pixmap.width()),
        height: u32::from(pixmap.height()),
        dpi,
        pixels: painted.map(|pixel| grey_of_rgb([pixel.r, pixel.g, pixel.b])).collect(),
    }
}

/// Paints a page on white paper of `size` (width, height), as viewers do: what blends with its
/// background blends with that.
fn paint_page(page: &PdfPage<'_>, size: [u16; 2], transform: Affine) -> Pixmap {
    let [width, height] = size;
    let mut context = RenderContext::new(width, height);
    context.set_paint(WHITE);
    context.fill_rect(&Rect::new(0.0, 0.0, f64::from(width), f64::from(height)));
    let (cache, settings) = (RenderCache::new(), InterpreterSettings::default());
    render_into(page, &cache, &settings, &RenderSettings::default(), &mut context, transform);
    context.flush();
    let mut pixmap = Pixmap::new(width, height);
    let on_white = RasterizerSettings {
        target_init: TargetInit::Clear(WHITE),
        ..RasterizerSettings::default()
    };
    context.render_with(&mut pixmap, &mut Resources::default(), on_white);
    pixmap
}

/// The scale to render a page at, in pixels per point.
fn render_scale(width: f64, height: f64, bounds: &RenderBounds<'_>) -> f64 {
    let wanted = f64::from(bounds.dpi) / 72.0;
    #[expect(clippy::cast_precision_loss, reason = "a limit, not a count")]
    let most = MAX_PIXELS.min(bounds.limits.page_pixels as f64);
    let by_area = (most / (width * height)).sqrt();
    let by_side = f64::from(MAX_SIDE) / width.max(height);
    wanted.min(by_area).min(by_side)
}

#[expect(clippy::cast_possible_truncation, reason = "a scale factor of a few thousandths to ten")]
fn round_to_f32(value: f64) -> f32 {
    value.floor() as f32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn to_u16(value: f64) -> u16 {
    value.round() as u16
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn to_u32(value: f64) -> u32 {
    value.round().clamp(1.0, 10_000.0) as u32
}

/// Takes the page's only image out at its own resolution, turned as it lies on the page. `None` if
/// it is not to be had this way (drawn at an angle, or undecodable): the page is then rendered.
pub(crate) fn extract_scan(page: &PdfPage<'_>, bounds: &RenderBounds<'_>) -> Option<PageRaster> {
    extract_planes(page, bounds, PlaneSplit::Grey)?.pop()
}

/// The same in colour.
pub(crate) fn extract_colours(
    page: &PdfPage<'_>,
    bounds: &RenderBounds<'_>,
) -> Option<ColourPlanes> {
    let planes = extract_planes(page, bounds, PlaneSplit::Colours)?;
    planes.try_into().ok().map(ColourPlanes)
}

fn extract_planes(
    page: &PdfPage<'_>,
    bounds: &RenderBounds<'_>,
    split: PlaneSplit,
) -> Option<Vec<PageRaster>> {
    let (width, height) = page.render_dimensions();
    let area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut taker = ImageCollector { split, taken: None };
    let cache = InterpreterCache::new();
    let upright = page.initial_transform(true).to_kurbo();
    let settings = InterpreterSettings::default();
    let mut context = Context::new(upright, area, &cache, page.xref(), settings);
    interpret_page(page, &mut context, &mut taker);
    let shrunk = taker.taken?.into_iter().map(|raster| {
        let dpi = f64::from(raster.width) * 72.0 / f64::from(width);
        shrink_raster(PageRaster { dpi: to_u32(dpi), ..raster }, bounds.dpi)
    });
    Some(shrunk.collect())
}

/// The planes that an image is taken out in: one of grey, or red, green and blue.
#[derive(Debug, Clone, Copy)]
enum PlaneSplit {
    Grey,
    Colours,
}

impl PlaneSplit {
    fn split_image(self, data: ImageData) -> Vec<LumaData> {
        match (self, data) {
            (Self::Grey, data) => vec![to_grey(data)],
            (Self::Colours, ImageData::Rgb(rgb)) => [0, 1, 2]
                .map(|at| LumaData {
                    data: rgb.data.iter().skip(at).step_by(3).copied().collect(),
                    width: rgb.width,
                    height: rgb.height,
                    interpolate: rgb.interpolate,
                    scale_factors: rgb.scale_factors,
                })
                .into(),
            (Self::Colours, ImageData::Luma(luma)) => vec![luma.clone(), luma.clone(), luma],
        }
    }

    /// Values of a colour in each plane.
    fn split_colour(self, colour: [u8; 3]) -> Vec<u8> {
        match self {
            Self::Grey => vec![grey_of_rgb(colour)],
            Self::Colours => colour.into(),
        }
    }
}

/// Keeps the pixels of the last image that is drawn.
struct ImageCollector {
    split: PlaneSplit,
    taken: Option<Vec<PageRaster>>,
}

impl<'a> Device<'a> for ImageCollector {
    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        let Some(turn) = pixel_transform(props.transform) else { return };
        let split = self.split;
        let planes = RefCell::new(Vec::new());
        match &image {
            Image::Raster(raster) => raster.with_rgba(
                |data, alpha| {
                    let split = split.split_image(data).into_iter();
                    *planes.borrow_mut() =
                        split.map(|plane| on_white(plane, alpha.as_ref())).collect();
                },
                None,
            ),
            Image::Stencil(stencil) => stencil.with_stencil(
                |mask, paint| *planes.borrow_mut() = paint_mask(&mask, paint, split),
                None,
            ),
        }
        let upright = planes.into_inner().into_iter().map(|plane| {
            let LumaData { width, height, data: pixels, .. } = plane;
            turn.apply(PageRaster { width, height, dpi: 0, pixels })
        });
        let upright: Vec<PageRaster> = upright.collect();
        let is_whole = |raster: &PageRaster| {
            raster.pixels.len() as u64 == u64::from(raster.width) * u64::from(raster.height)
        };
        self.taken = (!upright.is_empty() && upright.iter().all(is_whole)).then_some(upright);
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// How the image's pixels must be turned to lie as they do on the page; `None` at any angle that is
/// not a right one.
fn pixel_transform(transform: Affine) -> Option<PixelTransform> {
    let [a, b, c, d, ..] = transform.as_coeffs();
    let small = 0.01 * (a.abs() + b.abs() + c.abs() + d.abs());
    if b.abs() <= small && c.abs() <= small {
        Some(PixelTransform { transpose: false, mirror: a < 0.0, flip: d < 0.0 })
    } else if a.abs() <= small && d.abs() <= small {
        // The image's rows run along the page's columns: x' = c y, y' = b x.
        Some(PixelTransform { transpose: true, mirror: c < 0.0, flip: b < 0.0 })
    } else {
        None
    }
}

fn to_grey(data: ImageData) -> LumaData {
    match data {
        ImageData::Luma(luma) => luma,
        ImageData::Rgb(rgb) => {
            let pixels = rgb.data.chunks_exact(3);
            LumaData {
                data: pixels.filter_map(|p| <[u8; 3]>::try_from(p).ok()).map(grey_of_rgb).collect(),
                width: rgb.width,
                height: rgb.height,
                interpolate: rgb.interpolate,
                scale_factors: rgb.scale_factors,
            }
        }
    }
}

/// Lays an image on white paper. A mask of another size than its image is left out.
fn on_white(mut plane: LumaData, alpha: Option<&LumaData>) -> LumaData {
    let alpha = alpha.filter(|alpha| alpha.data.len() == plane.data.len());
    if let Some(alpha) = alpha {
        for (value, alpha) in plane.data.iter_mut().zip(&alpha.data) {
            *value = blend_pixel(*value, *alpha);
        }
    }
    plane
}

/// A stencil on white paper: 255 in the mask is paint.
fn paint_mask(mask: &LumaData, paint: &Paint<'_>, split: PlaneSplit) -> Vec<LumaData> {
    let ([red, green, blue], alpha) = match paint {
        Paint::Color(color) => {
            let [red, green, blue, alpha] = color.to_rgba().to_rgba8();
            ([red, green, blue], alpha)
        }
        Paint::Pattern(_) => ([0; 3], u8::MAX),
    };
    let shades = split.split_colour([red, green, blue]).into_iter();
    let painted = shades.map(|shade| {
        let (shade, mut plane) = (blend_pixel(shade, alpha), mask.clone());
        plane.data.iter_mut().for_each(|value| *value = blend_pixel(shade, *value));
        plane
    });
    painted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_oriented_by_its_matrix() {
        let picture = PageRaster { width: 3, height: 1, dpi: 0, pixels: vec![1, 2, 3] };
        #[rustfmt::skip]
        let table = [
            ("upright",           [2.0, 0.0, 0.0, 2.0],   (3, 1, vec![1, 2, 3])),
            ("mirrored",          [-2.0, 0.0, 0.0, 2.0],  (3, 1, vec![3, 2, 1])),
            ("upside down",       [-2.0, 0.0, 0.0, -2.0], (3, 1, vec![3, 2, 1])),
            ("a quarter clockwise", [0.0, 2.0, -2.0, 0.0], (1, 3, vec![1, 2, 3])),
            ("a quarter back",    [0.0, -2.0, 2.0, 0.0],  (1, 3, vec![3, 2, 1])),
        ];
        for (name, [a, b, c, d], expected) in table {
            let turned = pixel_transform(Affine::new([a, b, c, d, 0.0, 0.0]))
                .unwrap()
                .apply(picture.clone());
            assert_eq!((turned.width, turned.height, turned.pixels), expected, "{name}");
        }
        assert_eq!(
            pixel_transform(Affine::rotate(0.1)),
            None,
            "a crooked image is rendered instead"
        );
    }
}
