//! The properties of a paint that decide about the visibility of what it draws.

use hayro::hayro_interpret::Paint;

use crate::image::luminance::{blend_pixel, grey_of_rgb};

/// The properties of a paint that decide about visibility.
pub(crate) struct PaintAppearance {
    /// Its opacity, 0 to 1.
    pub alpha: f32,
    /// Its darkest component, 255 for white.
    pub luma: u8,
    /// Whether it is one colour.
    pub solid: bool,
    /// Its visible grey on white paper.
    pub on_white: u8,
}

/// The appearance of a paint.
pub(crate) fn paint_appearance(paint: &Paint<'_>) -> PaintAppearance {
    match paint {
        Paint::Color(color) => {
            let [red, green, blue, alpha] = color.to_rgba().to_rgba8();
            let luma = red.min(green).min(blue);
            let on_white = blend_pixel(grey_of_rgb([red, green, blue]), alpha);
            PaintAppearance { alpha: f32::from(alpha) / 255.0, luma, solid: true, on_white }
        }
        // Some texture: assume that it shows, and that it does not hide.
        Paint::Pattern(_) => PaintAppearance { alpha: 1.0, luma: 0, solid: false, on_white: 0 },
    }
}
