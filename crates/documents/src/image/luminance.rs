//! Greys: of a colour, of paint on paper, and the contrast of ink to its background (WCAG 2). Not
//! promised: that ink with enough contrast can be read.

/// Contrast (WCAG 2: of relative luminances) of ink to its background. Half of WCAG's own lowest
/// bound would do for large letters; pale grey print of letter papers has 2.3 and more.
const MIN_CONTRAST: f32 = 2.0;

/// Luma after ITU-R BT.601, in integers.
pub(crate) fn grey_of_rgb([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    u8::try_from(sum / 1000).unwrap_or(u8::MAX)
}

/// A grey with this much of it on white paper.
pub(crate) fn blend_pixel(value: u8, alpha: u8) -> u8 {
    let (value, alpha) = (u32::from(value), u32::from(alpha));
    u8::try_from((value * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
}

/// Whether ink of this grey is seen on white paper.
pub(crate) fn is_seen_on_white(ink: u8) -> bool {
    stands_out(ink, u8::MAX)
}

/// Whether the contrast of two greys is enough to be seen.
pub(crate) fn stands_out(ink: u8, behind: u8) -> bool {
    has_contrast(ink, behind, MIN_CONTRAST)
}

/// Whether the contrast of two greys, 1 to 21, is at least this.
pub(crate) fn has_contrast(ink: u8, behind: u8, least: f32) -> bool {
    contrast(ink, behind) >= least
}

/// The contrast of two greys, 1 to 21.
fn contrast(one: u8, other: u8) -> f32 {
    let (light, dark) = (luminance(one.max(other)), luminance(one.min(other)));
    (light + 0.05) / (dark + 0.05)
}

/// Relative luminance of a grey (WCAG 2).
fn luminance(grey: u8) -> f32 {
    let value = f32::from(grey) / 255.0;
    if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((contrast(0, 255) - 21.0).abs() < 0.01);
        assert!((contrast(0x99, 255) - 2.85).abs() < 0.01, "#999999");
        assert!((contrast(80, 80) - 1.0).abs() < 1e-6);
        for (ink, seen) in [(0, true), (0x99, true), (0xaa, true), (0xcc, false), (244, false)] {
            assert_eq!(is_seen_on_white(ink), seen, "{ink}");
        }
    }
}
