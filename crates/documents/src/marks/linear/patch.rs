//! Patch codes (Kodak A-61599): four bars, two of them wide, with three narrow spaces between.
//!
//! Wide bars are 0.20 inches, narrow bars and spaces 0.08. `T` and `2` separate documents. The bars of
//! `T` are those of `3` upside down: a sheet may lie either way, so both are read as `T`.

use super::super::ruling_removal::to_f32;
use super::bar_run::{BarRun, ReadCode};
use docmill_core::model::CodeSymbology;

/// How much wider than the narrow ones a wide bar is: 2.5, less or more where the print has spread.
const MIN_RATIO: f32 = 1.7;
const MAX_RATIO: f32 = 3.6;
/// By which share of their mean narrow bars and spaces differ at most, and wide bars.
const MAX_SPREAD: f32 = 0.5;
/// Share of the code's width that its bars are long at least; the standard has 0.94 and more.
const MIN_LENGTH: f32 = 0.7;
/// Pixels of the code's width: 0.8 inches at 100 dots per inch.
const MIN_PIXELS: i32 = 60;

/// The patch code that begins at the first bar.
pub(super) fn read_at(run: &BarRun<'_>) -> Option<ReadCode> {
    let widths: [i32; 7] = run.part(0)?;
    let total: i32 = widths.iter().sum();
    let [a, _, b, _, c, _, d] = widths;
    let mut bars = [a, b, c, d];
    bars.sort_unstable();
    let [first, second, third, fourth] = bars;
    let narrow = (first + second) / 2;
    let wide = (third + fourth) / 2;
    let is_plain = total >= MIN_PIXELS
        && is_ratio(wide, narrow)
        && are_alike([first, second])
        && are_alike([third, fourth])
        && has_even_spaces(widths, wide)
        // Print around it would be no sheet made for this.
        && run.is_quiet_before(narrow * 2)
        && run.is_quiet_behind(7, narrow * 2);
    if !is_plain {
        return None;
    }
    let middle = (narrow + wide) / 2;
    let payload = match [a, b, c, d].map(|bar| bar > middle) {
        [false, true, false, true] | [true, false, true, false] => "T",
        [true, false, false, true] => "2",
        _ => return None,
    };
    Some((CodeSymbology::Patch, payload.to_owned(), 7))
}

/// Whether bars of this length are long enough for the width of the code, both in pixels.
pub(super) fn is_long_enough(width: i32, length: i32) -> bool {
    to_f32(length) >= MIN_LENGTH * to_f32(width)
}

fn is_ratio(wide: i32, narrow: i32) -> bool {
    let ratio = to_f32(wide) / to_f32(narrow.max(1));
    (MIN_RATIO..=MAX_RATIO).contains(&ratio)
}

fn are_alike<const N: usize>(widths: [i32; N]) -> bool {
    let (least, most) = (widths.iter().min().copied(), widths.iter().max().copied());
    let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
    to_f32(most - least) <= MAX_SPREAD * to_f32(most + least) / 2.0
}

/// Whether the three spaces are alike, and narrow beside a wide bar.
fn has_even_spaces([_, one, _, other, _, third, _]: [i32; 7], wide: i32) -> bool {
    let spaces = [one, other, third];
    are_alike(spaces) && spaces.iter().all(|space| is_ratio(wide, *space))
}
