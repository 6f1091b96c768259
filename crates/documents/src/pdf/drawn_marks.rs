//! Marks on pages with a sound text layer: areas where the drawing operations suggest a code or a
//! checkbox. Only these are examined as pictures.
//!
//! A code is an image about as high as wide, a shape of many parts, or a run of many small shapes;
//! a checkbox is a shape about as high as wide and as letters are. Not covered: codes in a font of
//! codes, in strips of images, or rotated by other than right angles so far that they look high.

use std::time::Instant;

use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::kurbo::{BezPath, PathEl, Rect};
use opencv::core::{Mat, Rect as PixelRect};
use opencv::prelude::*;

use crate::image::opencv_mat::{OpenCvError, raster_from_mat, view_raster};
use crate::marks;
use crate::page::PageRaster;
use crate::pdf::render::{self, RenderBounds};
use crate::pdf::text_layer_check::scale_to_pixels;
use crate::refusal::PageRefusal;
use docmill_core::model::{BoundingBox, PageCode, TextLine};

/// Sides of a code, in points; larger ones fill their page, which is read as a picture then.
const CODE_SIDE_POINTS: std::ops::RangeInclusive<f64> = 18.0..=420.0;
/// How square a code is as it is drawn.
const MIN_ASPECT: f64 = 0.7;
/// Highest module of a code, in points, that is a shape of its own.
const MAX_MODULE_POINTS: f64 = 12.0;
/// Shapes of a run, and parts of one shape, from which on they may be a code. The smallest code has
/// more than two hundred dark modules, drawn in rows sixty.
const MIN_SHAPES: usize = 50;
const MIN_PARTS: usize = 40;
/// Sides of a box to be ticked, in points, as for pictures.
const BOX_SIDE_POINTS: std::ops::RangeInclusive<f64> = 5.0..=24.0;
/// Areas of a page that may be codes.
const MAX_CODE_AREAS: usize = 24;
/// Dots per inch at which every code that is meant for print can be read.
const FINE_DPI: u32 = 300;
/// Side of a place, in points, up to which it is drawn twice as finely.
const MAX_FINE_POINTS: f64 = 220.0;
/// Places that are drawn by themselves.
const MAX_PARTS: usize = 4;
/// Points around a place that belong to it.
const MARGIN_POINTS: f64 = 6.0;

/// Drawn areas of a page that may be a mark.
#[derive(Debug, Default)]
pub(crate) struct DrawnMarks {
    places: Vec<Rect>,
    has_boxes: bool,
    /// Small shapes that follow each other: the box around them, and how many.
    run: Option<(Rect, usize)>,
}

impl DrawnMarks {
    /// Takes in a shape of this box on the page.
    pub(crate) fn note_shape(&mut self, area: Rect, path: Option<&BezPath>) {
        let side = area.width().max(area.height());
        if side <= 0.0 {
            return;
        }
        if BOX_SIDE_POINTS.contains(&side) && is_square(area) {
            self.has_boxes = true;
        }
        let is_small =
            area.width().min(area.height()) <= MAX_MODULE_POINTS && side <= *CODE_SIDE_POINTS.end();
        self.run = match self.run.take() {
            Some((around, count)) if is_small && is_near(around, area) => {
                Some((around.union(area), count + 1))
            }
            ended => {
                self.end_run(ended);
                is_small.then_some((area, 1))
            }
        };
        let parts = path.map_or(0, count_parts);
        if parts >= MIN_PARTS {
            self.add_place(area);
        }
    }

    /// Takes in an image of this box on the page.
    pub(crate) fn note_image(&mut self, area: Rect) {
        self.add_place(area);
    }

    fn end_run(&mut self, run: Option<(Rect, usize)>) {
        if let Some((around, count)) = run
            && count >= MIN_SHAPES
        {
            self.add_place(around);
        }
    }

    fn add_place(&mut self, area: Rect) {
        let is_code =
            CODE_SIDE_POINTS.contains(&area.width().max(area.height())) && is_square(area);
        if is_code && self.places.len() < MAX_CODE_AREAS && !self.places.contains(&area) {
            self.places.push(area);
        }
    }

    /// The places of codes.
    fn list_areas(&self) -> Vec<Rect> {
        let mut ended = Self { places: self.places.clone(), ..Self::default() };
        ended.end_run(self.run);
        ended.places
    }

    /// Whether the page has to be rendered.
    pub(crate) fn is_any(&self) -> bool {
        self.has_boxes || !self.list_areas().is_empty()
    }

    /// Reads the codes, in points, and writes the boxes into the lines. `glance` is the page, drawn
    /// coarsely; where a code seems to be that is too fine for that, it is drawn once more.
    ///
    /// # Errors
    /// As for rendering.
    pub(crate) fn read(
        &self,
        page: &PdfPage<'_>,
        glance: &PageRaster,
        lines: &mut [TextLine],
        bounds: &RenderBounds<'_>,
    ) -> Result<Vec<PageCode>, PageRefusal> {
        if self.has_boxes {
            let in_pixels = scale_to_pixels(lines, glance.dpi);
            let found = marks::find_marks(glance, &in_pixels)?.boxes;
            let mut boxes = found;
            for square in &mut boxes {
                square.area = box_in_points(square.area, glance.dpi);
            }
            marks::write_boxes(lines, &boxes);
        }
        let mut fine = FineDrawing { page, bounds, parts: 0, whole: None };
        let mut codes: Vec<PageCode> = Vec::new();
        for place in self.list_areas() {
            let (seems_code, mut read) = read_area(glance, place)?;
            if seems_code && read.is_empty() {
                read = fine.read_area(place)?;
            }
            for code in read {
                if codes.len() < PageCode::MAX_PER_PAGE && !is_known(&codes, &code) {
                    codes.push(code);
                }
            }
        }
        Ok(codes)
    }
}

/// A page drawn as finely as its smallest code needs: the first places by themselves, and where
/// there are more of them the whole page once, because each part costs its program once.
struct FineDrawing<'a, 'page> {
    page: &'a PdfPage<'page>,
    bounds: &'a RenderBounds<'a>,
    /// Places that were drawn by themselves.
    parts: usize,
    whole: Option<PageRaster>,
}

impl FineDrawing<'_, '_> {
    fn read_area(&mut self, place: Rect) -> Result<Vec<PageCode>, PageRefusal> {
        if self.parts < MAX_PARTS && Instant::now() < self.bounds.deadline {
            self.parts += 1;
            return Ok(self.read_part(place)?);
        }
        let drawn = match self.whole.take() {
            Some(drawn) => drawn,
            None => {
                let dpi = self.bounds.dpi.max(FINE_DPI);
                render::render_page(self.page, &RenderBounds { dpi, ..*self.bounds })?
            }
        };
        let (_, read) = read_area(&drawn, place)?;
        self.whole = Some(drawn);
        Ok(read)
    }

    /// Draws a place by itself, at twice the fineness where that is few pixels.
    fn read_part(&self, place: Rect) -> Result<Vec<PageCode>, OpenCvError> {
        let wider = place.inflate(MARGIN_POINTS, MARGIN_POINTS);
        let is_small = wider.width().max(wider.height()) <= MAX_FINE_POINTS;
        let dpi = if is_small { 2 * FINE_DPI } else { FINE_DPI };
        let (_, mut codes) = marks::glance_at_codes(&render::render_part(self.page, wider, dpi))?;
        #[expect(clippy::cast_possible_truncation, reason = "points of a page")]
        let (left, top) = (wider.x0 as f32, wider.y0 as f32);
        for code in &mut codes {
            let BoundingBox { x, y, w, h } = box_in_points(code.bounding_box, dpi);
            code.bounding_box = BoundingBox { x: x + left, y: y + top, w, h };
        }
        Ok(codes)
    }
}

fn is_known(codes: &[PageCode], code: &PageCode) -> bool {
    codes.iter().any(|known| {
        let (a, b) = (known.bounding_box, code.bounding_box);
        known.payload == code.payload && (a.x - b.x).abs() < a.w && (a.y - b.y).abs() < a.h
    })
}

/// Whether a shape lies beside others so that they may be modules of one code.
fn is_near(around: Rect, area: Rect) -> bool {
    let reach = around.inflate(2.0 * MAX_MODULE_POINTS, 2.0 * MAX_MODULE_POINTS);
    reach.x0 <= area.x1 && area.x0 <= reach.x1 && reach.y0 <= area.y1 && area.y0 <= reach.y1
}

fn is_square(area: Rect) -> bool {
    let (width, height) = (area.width(), area.height());
    width.min(height) >= MIN_ASPECT * width.max(height)
}

fn count_parts(path: &BezPath) -> usize {
    path.elements().iter().filter(|element| matches!(element, PathEl::MoveTo(_))).count()
}

/// A coordinate in whole pixels, within the page's `side`.
#[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
fn to_pixel(coordinate: f64, side: u32) -> i32 {
    (coordinate as i32).clamp(0, i32::try_from(side).unwrap_or(i32::MAX))
}

/// Whether there may be a code at `place`, and the decoded ones, in points of the page.
fn read_area(page: &PageRaster, place: Rect) -> Result<(bool, Vec<PageCode>), OpenCvError> {
    let scale = f64::from(page.dpi) / 72.0;
    let wider = place.inflate(MARGIN_POINTS, MARGIN_POINTS);
    let [left, right] = [wider.x0, wider.x1].map(|x| to_pixel(x * scale, page.width));
    let [top, bottom] = [wider.y0, wider.y1].map(|y| to_pixel(y * scale, page.height));
    if right <= left || bottom <= top {
        return Ok((false, Vec::new()));
    }
    let mut piece = Mat::default();
    let area = PixelRect::new(left, top, right - left, bottom - top);
    view_raster(page)?.roi(area)?.copy_to(&mut piece)?;
    let (seems_code, mut codes) = marks::glance_at_codes(&raster_from_mat(&piece, page.dpi)?)?;
    #[expect(clippy::cast_precision_loss, reason = "pixels of a page")]
    let (left, top) = (left as f32, top as f32);
    for code in &mut codes {
        let BoundingBox { x, y, w, h } = code.bounding_box;
        code.bounding_box = box_in_points(BoundingBox { x: x + left, y: y + top, w, h }, page.dpi);
    }
    Ok((seems_code, codes))
}

/// A box in pixels of a page drawn at `dpi`, in points.
pub(crate) fn box_in_points(area: BoundingBox, dpi: u32) -> BoundingBox {
    let scale = 72.0 / f32::from(u16::try_from(dpi.max(1)).unwrap_or(u16::MAX));
    let BoundingBox { x, y, w, h } = area;
    BoundingBox { x: x * scale, y: y * scale, w: w * scale, h: h * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(x: f64, y: f64, side: f64) -> Rect {
        Rect::new(x, y, x + side, y + side)
    }

    #[test]
    fn a_page_is_rendered_only_where_a_code_or_a_box_may_be() {
        let mut marks = DrawnMarks::default();
        marks.note_shape(Rect::new(50.0, 100.0, 500.0, 101.0), None);
        marks.note_shape(Rect::new(50.0, 100.0, 500.0, 400.0), None);
        marks.note_image(Rect::new(50.0, 20.0, 200.0, 60.0));
        assert!(!marks.is_any(), "rules, a frame and a long logo");

        marks.note_image(square(400.0, 20.0, 60.0));
        assert_eq!(marks.list_areas().len(), 1, "a square image");

        let mut modules = DrawnMarks::default();
        for at in 0..400 {
            let (row, column) = (f64::from(at / 20), f64::from(at % 20));
            modules.note_shape(square(100.0 + 2.0 * column, 100.0 + 2.0 * row, 2.0), None);
        }
        assert_eq!(modules.list_areas(), [square(100.0, 100.0, 40.0)]);
        // Anything drawn next, nothing, a mark elsewhere or a frame, ends the run without hiding
        // it.
        modules.note_shape(Rect::ZERO, None);
        modules.note_shape(square(500.0, 700.0, 3.0), None);
        modules.note_shape(Rect::new(50.0, 700.0, 500.0, 760.0), None);
        assert_eq!(modules.list_areas(), [square(100.0, 100.0, 40.0)]);

        let mut boxes = DrawnMarks::default();
        boxes.note_shape(square(60.0, 60.0, 9.0), None);
        assert!(boxes.is_any() && boxes.list_areas().is_empty());
    }
}
