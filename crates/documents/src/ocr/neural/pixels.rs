//! Grey pixels for the networks: sizes and levels.

use opencv::core::{Mat, Size};
use opencv::{Result, imgproc};

use crate::image::opencv_mat::PixelMatrix;

/// The pixels in another size: averaged where they become fewer, bent where they become more.
pub(super) fn resize_mat(page: &impl PixelMatrix, size: Size) -> Result<Mat> {
    let fewer = size.width < page.cols() || size.height < page.rows();
    let how = if fewer { imgproc::INTER_AREA } else { imgproc::INTER_CUBIC };
    let mut resized = Mat::default();
    imgproc::resize(page, &mut resized, size, 0.0, 0.0, how)?;
    Ok(resized)
}

/// Scaling of grey levels to a network's input.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelScale {
    /// Subtracted from a level's share of 255, ...
    pub mean: f32,
    /// ... and what the rest is divided by.
    pub deviation: f32,
}

impl LevelScale {
    /// The value of a level.
    pub(super) fn value(self, level: u8) -> f32 {
        (f32::from(level) / 255.0 - self.mean) / self.deviation
    }
}

/// A side of a picture as a length.
pub(super) fn side(length: i32) -> usize {
    usize::try_from(length).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "a side of a page")]
pub(super) fn side_to_f32(length: i32) -> f32 {
    length as f32
}

#[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
pub(super) fn to_i32(place: f32) -> i32 {
    place as i32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub(super) fn to_byte(value: f32) -> u8 {
    value.clamp(0.0, 255.0) as u8
}
