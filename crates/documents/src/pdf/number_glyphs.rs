//! Whether a digit or sign of a number has a usual size and position. A font may draw a digit as a
//! speck, above its line or over its neighbour: the shape is right, and a person reads another
//! number.

use hayro::kurbo::Rect;

use crate::pdf::glyph_shapes::EM_UNITS;

/// Least height of a digit, and least width but for 1, in ems. Old-style digits are half an em high.
const MIN_DIGIT_HEIGHT_EMS: f64 = 0.38;
const MIN_DIGIT_WIDTH_EMS: f64 = 0.14;
/// Lower edge of a digit above the baseline, in ems.
const DIGIT_BOTTOM_EMS: std::ops::RangeInclusive<f64> = -0.35..=0.2;
/// Ink of a digit or sign outside of its advance, in ems.
const MAX_BESIDE_EMS: f64 = 0.15;
/// Least longer side of a point or comma, and its highest edges, in ems.
const MIN_POINT_EMS: f64 = 0.055;
const MAX_POINT_TOP_EMS: f64 = 0.35;
const MAX_POINT_BOTTOM_EMS: f64 = 0.1;
/// Least width and thickness of a minus, and height of its middle, in ems.
const MIN_MINUS_WIDTH_EMS: f64 = 0.15;
const MIN_MINUS_THICKNESS_EMS: f64 = 0.02;
const MINUS_MIDDLE_EMS: std::ops::RangeInclusive<f64> = 0.1..=0.5;

/// Whether ink with these bounds, in [`EM_UNITS`], has the size and position of `text`. Checks
/// digits, points, commas and minus signs only.
pub(super) fn fits_number(text: &str, bounds: Rect, advance: f64) -> bool {
    let mut characters = text.chars();
    let (Some(character), None) = (characters.next(), characters.next()) else { return true };
    let ink = bounds.scale_from_origin(1.0 / EM_UNITS);
    let is_of_size = match character {
        '0'..='9' => {
            ink.height() >= MIN_DIGIT_HEIGHT_EMS
                && (character == '1' || ink.width() >= MIN_DIGIT_WIDTH_EMS)
                && DIGIT_BOTTOM_EMS.contains(&ink.y0)
        }
        '.' | ',' => {
            ink.width().max(ink.height()) >= MIN_POINT_EMS
                && ink.y0 <= MAX_POINT_BOTTOM_EMS
                && ink.y1 <= MAX_POINT_TOP_EMS
        }
        '-' | '\u{2010}' | '\u{2011}' | '\u{2212}' => {
            ink.width() >= MIN_MINUS_WIDTH_EMS
                && ink.height() >= MIN_MINUS_THICKNESS_EMS
                && MINUS_MIDDLE_EMS.contains(&ink.center().y)
        }
        _ => return true,
    };
    let place = -MAX_BESIDE_EMS..=advance / EM_UNITS + MAX_BESIDE_EMS;
    is_of_size && place.contains(&ink.x0) && place.contains(&ink.x1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_or_sign_that_is_tiny_or_out_of_its_place_is_none_of_a_number() {
        #[rustfmt::skip]
        let table = [
            ("a digit",             "9", Rect::new(40.0, 0.0, 510.0, 710.0),     true),
            ("an old-style digit",  "9", Rect::new(40.0, -220.0, 450.0, 460.0),  true),
            ("a speck",             "9", Rect::new(200.0, 0.0, 240.0, 60.0),     false),
            ("over its line",       "9", Rect::new(40.0, 600.0, 510.0, 1310.0),  false),
            ("under its line",      "9", Rect::new(40.0, -700.0, 510.0, 10.0),   false),
            ("in the next place",   "9", Rect::new(600.0, 0.0, 1070.0, 710.0),   false),
            ("in the place before", "9", Rect::new(-520.0, 0.0, -50.0, 710.0),   false),
            ("squeezed",            "9", Rect::new(250.0, 0.0, 290.0, 710.0),    false),
            ("a thin one",          "1", Rect::new(250.0, 0.0, 330.0, 710.0),    true),
            ("a point",             ".", Rect::new(90.0, 0.0, 190.0, 110.0),     true),
            ("a dot of a point",    ".", Rect::new(90.0, 0.0, 130.0, 40.0),      false),
            ("a point in the middle", ".", Rect::new(90.0, 300.0, 190.0, 400.0), false),
            ("a comma",             ",", Rect::new(90.0, -150.0, 190.0, 110.0),  true),
            ("a minus",             "-", Rect::new(40.0, 230.0, 290.0, 310.0),   true),
            ("a dot of a minus",    "-", Rect::new(40.0, 230.0, 100.0, 250.0),   false),
            ("a hairline",          "-", Rect::new(40.0, 230.0, 290.0, 240.0),   false),
            ("an underline",        "-", Rect::new(40.0, -200.0, 290.0, -120.0), false),
            ("any letter",          "x", Rect::new(900.0, 0.0, 910.0, 10.0),     true),
        ];
        for (name, text, bounds, expected) in table {
            assert_eq!(fits_number(text, bounds, 556.0), expected, "{name}");
        }
    }
}
