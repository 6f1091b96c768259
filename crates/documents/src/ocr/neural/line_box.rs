//! From the probability of each pixel to boxes around lines of text.
//!
//! As in Liao and others, "Real-time scene text detection with differentiable binarization", AAAI
//! 2020. Probable text falls into connected components. The smallest rotated rectangle around each
//! is a line without its outermost pixels, because the network was trained on shrunk lines; it is
//! expanded by that margin.
//!
//! Not promised: more than [`MAX_BOXES`] lines of a page. A page with more is noise; the largest
//! stay, and what is left out lowers the page's quality as text that was not found.

use opencv::core::{self, Mat, Point, Point2f, Scalar, Vector};
use opencv::prelude::*;
use opencv::{Result, imgproc};

use super::pixels;

/// A pixel is text from this probability on, of 255.
const TEXT: f64 = 64.0;
/// A box is a line if its pixels have this mean probability, of 255.
const LINE: f64 = 115.0;
/// Area over circumference of a box, times this, is how far it grows on each side.
const GROWTH: f32 = 1.5;
/// Pixels that a box is high and wide at least.
const MIN_SIDE_PIXELS: f32 = 3.0;
/// Most boxes of a page.
pub(super) const MAX_BOXES: usize = 3000;
/// Pieces of a page that are looked at, at most.
const MAX_PIECES: usize = 20_000;

/// A rectangle around a line, turned as the line lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LineBox {
    /// Corners from the one that is top left for who reads the line, clockwise, in pixels of the page.
    pub corners: [(f32, f32); 4],
}

impl LineBox {
    /// Length along the line.
    pub(super) fn width(&self) -> f32 {
        let [one, other, ..] = self.corners;
        (other.0 - one.0).hypot(other.1 - one.1)
    }

    /// Height across the line.
    pub(super) fn height(&self) -> f32 {
        let [one, .., other] = self.corners;
        (other.0 - one.0).hypot(other.1 - one.1)
    }

    /// The longer one of its sides.
    pub(super) fn longer_side(&self) -> f32 {
        self.width().max(self.height())
    }

    /// The shorter one of its sides.
    pub(super) fn shorter_side(&self) -> f32 {
        self.width().min(self.height())
    }

    fn area(&self) -> f32 {
        self.width() * self.height()
    }

    /// Whether it is higher than wide.
    pub(super) fn is_upright(&self) -> bool {
        self.height() >= 1.5 * self.width()
    }

    /// The same box, its reading direction turned by `turns` quarter turns.
    pub(super) fn turned(&self, quarter_turns: usize) -> Self {
        let mut corners = self.corners;
        corners.rotate_left(quarter_turns % 4);
        Self { corners }
    }

    /// Where a place of the box, from 0 to 1 along and across the line, lies on the page.
    pub(super) fn place(&self, along: f32, across: f32) -> (f32, f32) {
        let [origin, right, _, below] = self.corners;
        (
            origin.0 + along * (right.0 - origin.0) + across * (below.0 - origin.0),
            origin.1 + along * (right.1 - origin.1) + across * (below.1 - origin.1),
        )
    }
}

/// The boxes of a map of probabilities; `scale`: pixels of the page for one of the map, across and
/// down.
pub(super) fn find_boxes(map: &Mat, scale: (f32, f32)) -> Result<Vec<LineBox>> {
    let mut text = Mat::default();
    imgproc::threshold(map, &mut text, TEXT, 255.0, imgproc::THRESH_BINARY)?;
    let mut pieces = Vector::<Vector<Point>>::new();
    imgproc::find_contours_def(
        &text,
        &mut pieces,
        imgproc::RETR_EXTERNAL,
        imgproc::CHAIN_APPROX_SIMPLE,
    )?;
    let mut found = Vec::new();
    for piece in pieces.iter().take(MAX_PIECES) {
        if let Some(line) = box_of_piece(map, &piece, scale)? {
            found.push(line);
        }
    }
    if found.len() > MAX_BOXES {
        found.sort_by(|one, other| other.area().total_cmp(&one.area()));
        found.truncate(MAX_BOXES);
    }
    Ok(found)
}

fn box_of_piece(map: &Mat, piece: &Vector<Point>, scale: (f32, f32)) -> Result<Option<LineBox>> {
    let mut tight = imgproc::min_area_rect(piece)?;
    // A contour runs through the middles of pixels.
    tight.size.width += 1.0;
    tight.size.height += 1.0;
    let (wide, high) = (tight.size.width, tight.size.height);
    if wide.min(high) < MIN_SIDE_PIXELS || mean_inside(map, &tight)? < LINE {
        return Ok(None);
    }
    let grown = wide * high * GROWTH / (2.0 * (wide + high));
    tight.size.width += 2.0 * grown;
    tight.size.height += 2.0 * grown;
    let mut corners = [Point2f::default(); 4];
    tight.points(&mut corners)?;
    Ok(Some(LineBox { corners: order_corners(corners.map(|it| (it.x * scale.0, it.y * scale.1))) }))
}

/// Mean probability of the pixels in a turned rectangle.
fn mean_inside(map: &Mat, area: &core::RotatedRect) -> Result<f64> {
    let whole = core::Rect::new(0, 0, map.cols(), map.rows());
    let around = area.bounding_rect()? & whole;
    if around.width < 1 || around.height < 1 {
        return Ok(0.0);
    }
    let mut corners = [Point2f::default(); 4];
    area.points(&mut corners)?;
    let outline: Vector<Point> = corners
        .iter()
        .map(|it| {
            Point::new(
                pixels::to_i32(it.x.round()) - around.x,
                pixels::to_i32(it.y.round()) - around.y,
            )
        })
        .collect();
    let mut mask = Mat::zeros(around.height, around.width, core::CV_8U)?.to_mat()?;
    imgproc::fill_convex_poly_def(&mut mask, &outline, Scalar::all(255.0))?;
    let part = map.roi(around)?;
    let [mean, ..] = core::mean(&part, &mask)?.0;
    Ok(mean)
}

/// From the top left, clockwise: the left two first, the upper one of them.
fn order_corners(mut corners: [(f32, f32); 4]) -> [(f32, f32); 4] {
    corners.sort_by(|one, other| one.0.total_cmp(&other.0));
    let [a, b, c, d] = corners;
    let (top_left, bottom_left) = if a.1 <= b.1 { (a, b) } else { (b, a) };
    let (top_right, bottom_right) = if c.1 <= d.1 { (c, d) } else { (d, c) };
    [top_left, top_right, bottom_right, bottom_left]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map with these rectangles of surely text: x, y, width, height.
    fn map(parts: &[(i32, i32, i32, i32)], value: f64) -> Mat {
        let mut map = Mat::zeros(200, 300, core::CV_8U).unwrap().to_mat().unwrap();
        for (x, y, width, height) in parts {
            let part = core::Rect::new(*x, *y, *width, *height);
            imgproc::rectangle(&mut map, part, Scalar::all(value), -1, imgproc::LINE_8, 0).unwrap();
        }
        map
    }

    #[test]
    fn pieces_of_text_become_boxes_that_grew_and_what_is_hardly_there_becomes_none() {
        let found = find_boxes(&map(&[(50, 40, 100, 10), (60, 120, 80, 12)], 250.0), (2.0, 2.0));
        let mut found = found.unwrap();
        found.sort_by(|one, other| one.corners[0].1.total_cmp(&other.corners[0].1));
        assert_eq!(found.len(), 2);
        let [left, top] = [found[0].corners[0].0, found[0].corners[0].1];
        assert!((80.0..96.0).contains(&left) && (60.0..76.0).contains(&top), "{found:?}");
        assert!((205.0..240.0).contains(&found[0].width()), "{found:?}");
        assert!((25.0..50.0).contains(&found[0].height()), "{found:?}");
        assert!(find_boxes(&map(&[(50, 40, 100, 10)], 90.0), (1.0, 1.0)).unwrap().is_empty());
        assert!(find_boxes(&map(&[(50, 40, 100, 1)], 250.0), (1.0, 1.0)).unwrap().is_empty());
    }

    #[test]
    fn of_a_page_of_noise_only_so_many_boxes_are_read() {
        let mut map = Mat::zeros(1000, 1000, core::CV_8U).unwrap().to_mat().unwrap();
        for y in (2..990).step_by(10) {
            for x in (2..990).step_by(10) {
                let part = core::Rect::new(x, y, 5, 4 + (x / 10) % 3);
                imgproc::rectangle(&mut map, part, Scalar::all(255.0), -1, imgproc::LINE_8, 0)
                    .unwrap();
            }
        }
        let found = find_boxes(&map, (1.0, 1.0)).unwrap();
        assert_eq!(found.len(), MAX_BOXES);
        let lowest = found.iter().map(LineBox::height).fold(f32::MAX, f32::min);
        assert!(lowest > 4.0, "the largest stay: {lowest}");
    }

    #[test]
    fn a_box_that_stands_is_read_from_its_side() {
        let standing = LineBox { corners: [(10.0, 0.0), (20.0, 0.0), (20.0, 90.0), (10.0, 90.0)] };
        assert!(standing.is_upright());
        let lying = standing.turned(1);
        assert!(!lying.is_upright());
        assert_eq!((lying.width(), lying.height()), (90.0, 10.0));
        assert_eq!(lying.place(0.0, 0.0), (20.0, 0.0));
        assert_eq!(lying.place(1.0, 1.0), (10.0, 90.0));
    }
}
