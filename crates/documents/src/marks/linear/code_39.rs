//! Code 39 (ISO/IEC 16388): characters of five bars and four spaces, three of them wide, between two
//! asterisks. It has no check character.

use super::super::ruling_removal::to_f32;
use super::bar_run::{BarRun, ReadCode};
use docmill_core::model::CodeSymbology;

/// How much wider than narrow ones wide bars and spaces are: 2 to 3, more or less in print.
const MIN_RATIO: f32 = 1.5;
const MAX_RATIO: f32 = 4.5;
/// Narrow bars of paper around a code; the standard has 10.
const MIN_QUIET: i32 = 5;
/// Characters of a payload.
const MIN_CHARS: usize = 3;
const MAX_CHARS: usize = 64;

const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-. $/+%*";

/// Which of the nine are wide, the first one in the highest bit, in the order of the alphabet.
const PATTERNS: [u16; 44] = [
    0x034, 0x121, 0x061, 0x160, 0x031, 0x130, 0x070, 0x025, 0x124, 0x064, 0x109, 0x049, 0x148,
    0x019, 0x118, 0x058, 0x00D, 0x10C, 0x04C, 0x01C, 0x103, 0x043, 0x142, 0x013, 0x112, 0x052,
    0x007, 0x106, 0x046, 0x016, 0x181, 0x0C1, 0x1C0, 0x091, 0x190, 0x0D0, 0x085, 0x184, 0x0C4,
    0x0A8, 0x0A2, 0x08A, 0x02A, 0x094,
];

/// The code that begins at the first bar.
pub(super) fn read_at(run: &BarRun<'_>) -> Option<ReadCode> {
    let first: [i32; 9] = run.part(0)?;
    let narrow = first.iter().min().copied().filter(|width| *width > 0)?;
    if !run.is_quiet_before(MIN_QUIET * narrow) || read_character(first)? != '*' {
        return None;
    }
    let mut text = String::new();
    let mut at = 0;
    loop {
        // A narrow space between two characters is no part of either.
        let gap = run.widths.get(at + 9).copied()?;
        at += 10;
        let character = read_character(run.part(at)?)?;
        if gap > first.iter().sum() {
            return None;
        }
        if character == '*' {
            break;
        }
        text.push(character);
        if text.len() > MAX_CHARS {
            return None;
        }
    }
    let count = at + 9;
    let is_code = text.len() >= MIN_CHARS && run.is_quiet_behind(count, MIN_QUIET * narrow);
    is_code.then_some((CodeSymbology::Code39, text, count))
}

/// The character of these bars and spaces: exactly three are wide, all about as much.
fn read_character(widths: [i32; 9]) -> Option<char> {
    let mut sorted = widths;
    sorted.sort_unstable();
    let [least, .., most_narrow, least_wide, _, widest] = sorted;
    let ratio = |wide: i32, narrow: i32| to_f32(wide) / to_f32(narrow.max(1));
    let is_plain = least > 0
        && ratio(least_wide, most_narrow) >= MIN_RATIO
        && ratio(widest, least) <= 2.0 * MAX_RATIO
        && ratio(least_wide, least) <= MAX_RATIO
        && ratio(most_narrow, least) <= 3.0
        && ratio(widest, least_wide) <= 2.0;
    if !is_plain {
        return None;
    }
    let pattern =
        widths.iter().fold(0_u16, |bits, width| bits << 1 | u16::from(*width >= least_wide));
    let at = PATTERNS.iter().position(|known| *known == pattern)?;
    ALPHABET.get(at).copied().map(char::from)
}

#[cfg(test)]
pub(in crate::marks) fn draw(text: &str) -> Vec<i32> {
    let mut widths = Vec::new();
    for letter in format!("*{text}*").bytes() {
        let pattern = PATTERNS[ALPHABET.iter().position(|known| *known == letter).unwrap()];
        widths.extend((0..9).rev().map(|bit| 1 + 2 * i32::from(pattern >> bit & 1)));
        widths.push(1);
    }
    widths.pop();
    widths
}
