//! A line cut out of its page.

use opencv::core::{self, Mat, Point2f, Scalar, Size, Vector};
use opencv::{Result, imgproc};

use super::line_box::LineBox;
use super::pixels::{resize_mat, side_to_f32, to_i32};
use crate::image::opencv_mat::PixelMatrix;

/// The pixels in `line`, levelled, `height` pixels high and proportionally wide, up to `widest`.
pub(super) fn cut_strip(
    page: &impl PixelMatrix,
    line: &LineBox,
    height: i32,
    widest: i32,
) -> Result<Mat> {
    let (wide, high) = (line.width().max(1.0), line.height().max(1.0));
    let level = Size::new(to_i32(wide.round()).max(1), to_i32(high.round()).max(1));
    // Corners are edges of pixels, OpenCV's places are their middles.
    let middle = |(x, y): (f32, f32)| Point2f::new(x - 0.5, y - 0.5);
    let [top_left, top_right, _, bottom_left] = line.corners.map(middle);
    let from = Vector::<Point2f>::from_slice(&[top_left, top_right, bottom_left]);
    let (right, bottom) = (side_to_f32(level.width) - 0.5, side_to_f32(level.height) - 0.5);
    let to = Vector::<Point2f>::from_slice(&[
        Point2f::new(-0.5, -0.5),
        Point2f::new(right, -0.5),
        Point2f::new(-0.5, bottom),
    ]);
    let view = imgproc::get_affine_transform(&from, &to)?;
    let mut strip = Mat::default();
    imgproc::warp_affine(
        page,
        &mut strip,
        &view,
        level,
        imgproc::INTER_LINEAR,
        core::BORDER_REPLICATE,
        Scalar::default(),
    )?;
    let width = to_i32((side_to_f32(height) * wide / high).ceil()).clamp(8, widest);
    resize_mat(&strip, Size::new(width, height))
}
