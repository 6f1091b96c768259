//! A page as a person sees it, for a model that extracts: drawn whole and sized for that model, or
//! a piece of it enlarged and read once more.
//!
//! Only visible ink is drawn: hidden layers have none. Ink without contrast to its background is
//! left out as well, by the rule that decides which text of a file is read: a model would see it, a
//! person does not. On pictures only the faintest goes, because a faded print is print. Runs inside
//! of a page process.

use opencv::core::{self, Mat, Point, Rect, Scalar, Size};
use opencv::imgproc;
use opencv::prelude::*;

use crate::document::ParsedDocument;
use crate::image::encode::encode_page;
use crate::image::luminance::has_contrast;
use crate::image::opencv_mat::{OpenCvError, raster_from_mat, view_raster};
use crate::page::{PageContent, PageRaster};
use crate::page_error::PageError;
use crate::quality;
use crate::reading::render_with_ocr::fit_raster;
use crate::reading::show_page::repair_shown;
use docmill_core::model::{BoundingBox, EncodedImage, PageCrop, PictureFit, ReadRecipe, TextLine};

/// Least contrast of ink on a page that was drawn, and on one that is a picture.
const DRAWN_CONTRAST: f32 = 2.0;
const PICTURE_CONTRAST: f32 = 1.2;
/// Resolution by the side of the background around a pixel, in pixels: wider than strokes of usual
/// print.
const SURROUNDINGS: u32 = 15;
/// White paper around a piece that is read, in pixels.
const BORDER: i32 = 24;
/// Dots per inch that a piece is enlarged to, and the most pixels it has then.
const CROP_DPI: f64 = 600.0;
const CROP_PIXELS: f64 = 12_000_000.0;
/// How far around a box its words are looked for: shares of the page, and of its height.
const BESIDE: f64 = 0.02;
const ABOVE: f64 = 0.01;

/// A page as pixels, as a person sees it. `repaired`: its text was read from a repaired picture, to
/// which positions on it refer.
///
/// # Errors
/// The document is to blame, or something else is.
pub(crate) fn seen_page(
    document: &ParsedDocument,
    index: u32,
    repaired: bool,
    recipe: &ReadRecipe,
) -> Result<Option<PageRaster>, PageError> {
    let (raster, contrast) = match document.page_content(index)? {
        PageContent::Image(raster) | PageContent::Cut(raster) => (raster, PICTURE_CONTRAST),
        PageContent::Doubtful { picture, .. } => (picture, DRAWN_CONTRAST),
        PageContent::Text { .. } | PageContent::Laid(_) | PageContent::Damaged { .. } => {
            match document.draw_page(index)? {
                Some(drawn) => (drawn, DRAWN_CONTRAST),
                None => return Ok(None),
            }
        }
    };
    let raster = match repaired {
        true => repair_shown(&raster, &quality::assess_page(&raster)?, recipe)?.unwrap_or(raster),
        false => raster,
    };
    Ok(Some(hide_faint(&raster, contrast)?))
}

/// The page's picture for a model.
///
/// # Errors
/// As [`seen_page`].
pub(crate) fn draw_for_model(
    page: &PageRaster,
    fit: PictureFit,
) -> Result<EncodedImage, PageError> {
    encode_page(&fit_raster(page, fit)?)
}

/// A piece of a page, enlarged, on white paper; and where it lies.
pub(crate) struct EnlargedCrop {
    pub(crate) raster: PageRaster,
    /// Its left and top edge in pixels of the page, and how much larger it is.
    origin: (f64, f64),
    scale: f64,
    /// The page's own size.
    page: (f64, f64),
}

impl EnlargedCrop {
    /// Cuts a piece out, with something around it.
    pub(crate) fn cut_out(page: &PageRaster, crop: PageCrop) -> Result<Self, OpenCvError> {
        let [left, top, right, bottom] = [crop.left, crop.top, crop.right, crop.bottom]
            .map(|unit| f64::from(unit) / f64::from(PageCrop::WHOLE));
        let above = (bottom - top).max(ABOVE);
        let wider = PageCrop::from_shares([
            (left - BESIDE).max(0.0),
            (top - above).max(0.0),
            (right + BESIDE).min(1.0),
            (bottom + above).min(1.0),
        ]);
        let PageCrop { left, top, right, bottom } = wider.unwrap_or(crop);
        let (left, right) = PageCrop::pixels_between(left, right, page.width);
        let (top, bottom) = PageCrop::pixels_between(top, bottom, page.height);
        let [x, y, width, height] = [left, top, right - left, bottom - top]
            .map(|pixels| i32::try_from(pixels).unwrap_or(i32::MAX));
        let area = Rect::new(x, y, width, height);
        let whole = view_raster(page)?;
        let piece = whole.roi(area)?;
        let pixels = (f64::from(area.width) * f64::from(area.height)).max(1.0);
        let scale = (CROP_DPI / f64::from(page.dpi.max(72))).clamp(1.0, 3.0);
        let scale = scale.min((CROP_PIXELS / pixels).sqrt());
        let (mut large, mut framed) = (Mat::default(), Mat::default());
        imgproc::resize(&piece, &mut large, Size::default(), scale, scale, imgproc::INTER_CUBIC)?;
        let (paper, around) = (Scalar::all(255.0), core::BORDER_CONSTANT);
        core::copy_make_border(&large, &mut framed, BORDER, BORDER, BORDER, BORDER, around, paper)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "72 to 60,000")]
        let dpi = (f64::from(page.dpi) * scale).clamp(72.0, 2400.0) as u32;
        Ok(Self {
            raster: raster_from_mat(&framed, dpi)?,
            origin: (f64::from(left), f64::from(top)),
            scale,
            page: (f64::from(page.width.max(1)), f64::from(page.height.max(1))),
        })
    }

    /// The same lines with boxes in shares of the page.
    pub(crate) fn place_on_page(&self, mut lines: Vec<TextLine>) -> Vec<TextLine> {
        for word in lines.iter_mut().flat_map(|line| &mut line.words) {
            word.bounding_box = self.box_on_page(word.bounding_box);
        }
        lines.retain(|line| !line.words.is_empty());
        lines
    }

    fn box_on_page(&self, found: BoundingBox) -> BoundingBox {
        let [left, top] = [(found.x, self.origin.0), (found.y, self.origin.1)]
            .map(|(pixels, origin)| (f64::from(pixels) - f64::from(BORDER)) / self.scale + origin);
        let [width, height] = [found.w, found.h].map(|pixels| f64::from(pixels) / self.scale);
        #[expect(clippy::cast_possible_truncation, reason = "shares of a page")]
        let [x, y, w, h] =
            [left / self.page.0, top / self.page.1, width / self.page.0, height / self.page.1]
                .map(|share| share.clamp(0.0, 1.0) as f32);
        BoundingBox { x, y, w, h }
    }
}

/// The page without ink of less than this contrast to the lightest pixel around it.
fn hide_faint(page: &PageRaster, contrast: f32) -> Result<PageRaster, OpenCvError> {
    let around = i32::try_from(page.dpi / SURROUNDINGS).unwrap_or(20).clamp(5, 81) | 1;
    let kernel =
        imgproc::get_structuring_element_def(imgproc::MORPH_RECT, Size::new(around, around))?;
    let mut lightest = Mat::default();
    let (anchor, edge) = (Point::new(-1, -1), imgproc::morphology_default_border_value()?);
    let plane = view_raster(page)?;
    imgproc::dilate(&plane, &mut lightest, &kernel, anchor, 1, core::BORDER_CONSTANT, edge)?;
    // A table of all pairs: the darkest background that a grey does not stand out from may be far
    // off.
    let seen: Vec<bool> = (0..=u8::MAX)
        .flat_map(|ground| (0..=u8::MAX).map(move |ink| has_contrast(ink, ground, contrast)))
        .collect();
    let mut pixels = Vec::with_capacity(page.pixels.len());
    for (ink, ground) in page.pixels.iter().zip(lightest.data_bytes()?) {
        let is_seen = seen.get(usize::from(*ground) * 256 + usize::from(*ink));
        pixels.push(if is_seen.copied().unwrap_or(true) { *ink } else { *ground });
    }
    Ok(PageRaster { pixels, ..*page })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ink: u8, paper: u8) -> PageRaster {
        let (width, height) = (60, 40);
        let is_ink = |at: u32| (at / width == 20) && (20..40).contains(&(at % width));
        let pixels = (0..width * height).map(|at| if is_ink(at) { ink } else { paper }).collect();
        PageRaster { width, height, dpi: 300, pixels }
    }

    #[test]
    fn invisible_ink_is_not_drawn_and_visible_ink_stays() {
        #[rustfmt::skip]
        let table = [
            ("black on white",        0,    255, DRAWN_CONTRAST,   true),
            ("pale print",            0xaa, 255, DRAWN_CONTRAST,   true),
            ("nearly white on white", 0xf4, 255, DRAWN_CONTRAST,   false),
            ("nearly black on black", 0x18, 0,   DRAWN_CONTRAST,   false),
            ("white on black",        255,  0,   DRAWN_CONTRAST,   true),
            ("a faded receipt",       0xd0, 255, PICTURE_CONTRAST, true),
            ("a trap in a picture",   0xf6, 255, PICTURE_CONTRAST, false),
        ];
        for (name, ink, paper, contrast, stays) in table {
            let shown = hide_faint(&page(ink, paper), contrast).unwrap();
            let grey = |x: usize, y: usize| shown.pixels[y * 60 + x];
            // Invisible light ink takes its surroundings along: no letter is left of it.
            let differs = grey(30, 20) != grey(30, 18) || grey(20, 20) != grey(18, 20);
            assert_eq!(differs, stays, "{name}: {} beside {}", grey(30, 20), grey(30, 18));
        }
    }

    #[test]
    fn words_of_a_piece_keep_their_position_on_the_page() {
        let page = PageRaster { width: 1000, height: 2000, dpi: 200, pixels: vec![255; 2_000_000] };
        let crop = PageCrop::from_shares([0.5, 0.5, 0.7, 0.52]).unwrap();
        let cut = EnlargedCrop::cut_out(&page, crop).unwrap();
        // From 0.48 of the width and 0.48 of the height on, three times as large.
        assert_eq!((cut.origin, cut.scale), ((480.0, 960.0), 3.0));
        let found = BoundingBox { x: 24.0 + 60.0, y: 24.0 + 120.0, w: 300.0, h: 60.0 };
        let placed = cut.box_on_page(found);
        let near = |one: f32, other: f32| (one - other).abs() < 1e-4;
        assert!(near(placed.x, 0.5) && near(placed.y, 0.5), "{placed:?}");
        assert!(near(placed.w, 0.1) && near(placed.h, 0.01), "{placed:?}");
    }
}
