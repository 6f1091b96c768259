//! A PDF page as grey pixels: rendered, or its one image taken out.

use std::cell::RefCell;
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
use crate::page::PageRaster;
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
    let (width, height) = page.render_dimensions();
    let scale = render_scale(f64::from(width), f64::from(height), bounds);
    if f64::from(width.min(height)) * scale < 1.0 {
        let detail = format!("a page of {width} x {height} points");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    let factor = round_to_f32(scale * 1000.0) / 1000.0;
    let size = [width, height].map(|points| to_u16(f64::from((points * factor).floor())));
    let transform = Affine::scale(f64::from(factor)) * page.initial_transform(true).to_kurbo();
    let pixmap = paint_page(page, size, transform);
    Ok(grey_raster(&pixmap, to_u32(f64::from(factor) * 72.0)))
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
    let (width, height) = page.render_dimensions();
    let area = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let mut taker = ImageCollector { taken: None };
    let cache = InterpreterCache::new();
    let upright = page.initial_transform(true).to_kurbo();
    let settings = InterpreterSettings::default();
    let mut context = Context::new(upright, area, &cache, page.xref(), settings);
    interpret_page(page, &mut context, &mut taker);
    let raster = taker.taken?;
    let dpi = f64::from(raster.width) * 72.0 / f64::from(width);
    Some(shrink_raster(PageRaster { dpi: to_u32(dpi), ..raster }, bounds.dpi))
}

/// Keeps the pixels of the last image that is drawn.
struct ImageCollector {
    taken: Option<PageRaster>,
}

impl<'a> Device<'a> for ImageCollector {
    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        let Some(turn) = pixel_transform(props.transform) else { return };
        let pixels = RefCell::new(None);
        match &image {
            Image::Raster(raster) => raster.with_rgba(
                |data, alpha| *pixels.borrow_mut() = Some(on_white(to_grey(data), alpha)),
                None,
            ),
            Image::Stencil(stencil) => stencil.with_stencil(
                |mask, paint| *pixels.borrow_mut() = Some(paint_mask(mask, paint)),
                None,
            ),
        }
        let upright = pixels.into_inner().map(|grey| {
            let raster =
                PageRaster { width: grey.width, height: grey.height, dpi: 0, pixels: grey.data };
            turn.apply(raster)
        });
        self.taken = upright.filter(|raster| {
            raster.pixels.len() as u64 == u64::from(raster.width) * u64::from(raster.height)
        });
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
fn on_white(mut grey: LumaData, alpha: Option<LumaData>) -> LumaData {
    let alpha = alpha.filter(|alpha| alpha.data.len() == grey.data.len());
    if let Some(alpha) = alpha {
        for (value, alpha) in grey.data.iter_mut().zip(alpha.data) {
            *value = blend_pixel(*value, alpha);
        }
    }
    grey
}

/// A stencil on white paper: 255 in the mask is paint.
fn paint_mask(mut mask: LumaData, paint: &Paint<'_>) -> LumaData {
    let shade = match paint {
        Paint::Color(color) => {
            let [red, green, blue, alpha] = color.to_rgba().to_rgba8();
            blend_pixel(grey_of_rgb([red, green, blue]), alpha)
        }
        Paint::Pattern(_) => 0,
    };
    for value in &mut mask.data {
        *value = blend_pixel(shade, *value);
    }
    mask
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
