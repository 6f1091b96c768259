//! Code 128 (ISO/IEC 15417): characters of three bars and three spaces, eleven modules each, and a
//! check character.

use super::super::ruling_removal::to_f32;
use super::bar_run::{BarRun, ReadCode};
use docmill_core::model::CodeSymbology;

/// Modules of a character.
const MODULES: f32 = 11.0;
/// Modules that one bar or space may be off, and all of a character together.
const MAX_OFF: f32 = 0.75;
const MAX_OFF_TOGETHER: f32 = 2.0;
/// Modules of paper around a code; the standard has 10.
const MIN_QUIET_MODULES: i32 = 5;
/// Characters of a payload.
const MAX_CHARS: usize = 128;

const START_A: usize = 103;
const START_C: usize = 105;
const STOP: usize = 106;
const CODE_C: usize = 99;
const CODE_B: usize = 100;
const CODE_A: usize = 101;
const SHIFT: usize = 98;

/// Widths of bars and spaces of each character, in modules; the last bar of the stop character is
/// left out.
#[rustfmt::skip]
const PATTERNS: [u32; 107] = [
    212_222, 222_122, 222_221, 121_223, 121_322, 131_222, 122_213, 122_312, 132_212, 221_213, 221_312, 231_212,
    112_232, 122_132, 122_231, 113_222, 123_122, 123_221, 223_211, 221_132, 221_231, 213_212, 223_112, 312_131,
    311_222, 321_122, 321_221, 312_212, 322_112, 322_211, 212_123, 212_321, 232_121, 111_323, 131_123, 131_321,
    112_313, 132_113, 132_311, 211_313, 231_113, 231_311, 112_133, 112_331, 132_131, 113_123, 113_321, 133_121,
    313_121, 211_331, 231_131, 213_113, 213_311, 213_131, 311_123, 311_321, 331_121, 312_113, 312_311, 332_111,
    314_111, 221_411, 431_111, 111_224, 111_422, 121_124, 121_421, 141_122, 141_221, 112_214, 112_412, 122_114,
    122_411, 142_112, 142_211, 241_211, 221_114, 413_111, 241_112, 134_111, 111_242, 121_142, 121_241, 114_212,
    124_112, 124_211, 411_212, 421_112, 421_211, 212_141, 214_121, 412_121, 111_143, 111_341, 131_141, 114_113,
    114_311, 411_113, 411_311, 113_141, 114_131, 311_141, 411_131, 211_412, 211_214, 211_232, 233_111,
];

/// The code that begins at the first bar, if its check character holds.
pub(super) fn read_at(run: &BarRun<'_>) -> Option<ReadCode> {
    let first: [i32; 6] = run.part(0)?;
    let module = first.iter().sum::<i32>() / 11;
    // Most bars of print end here.
    if module < 1 || !run.is_quiet_before(MIN_QUIET_MODULES * module) {
        return None;
    }
    let start = read_character(first).filter(|code| (START_A..=START_C).contains(code))?;
    let mut codes = vec![start];
    let mut at = 6;
    loop {
        let code = read_character(run.part(at)?)?;
        if code == STOP {
            break;
        }
        if code >= START_A || codes.len() > MAX_CHARS {
            return None;
        }
        codes.push(code);
        at += 6;
    }
    // The stop character has a seventh bar.
    let count = at + 7;
    let is_whole = run.widths.len() >= count;
    if !is_whole || !run.is_quiet_behind(count, MIN_QUIET_MODULES * module) {
        return None;
    }
    let payload = decode(&codes)?;
    Some((CodeSymbology::Code128, payload, count))
}

/// The character of these bars and spaces.
fn read_character(widths: [i32; 6]) -> Option<usize> {
    let total: i32 = widths.iter().sum();
    if total < 11 {
        return None;
    }
    let widths = widths.map(|width| to_f32(width) * MODULES / to_f32(total));
    let mut best: Option<(f32, usize)> = None;
    for (code, pattern) in PATTERNS.iter().enumerate() {
        let Some(off) = distance(widths, *pattern) else { continue };
        if best.is_none_or(|(least, _)| off < least) {
            best = Some((off, code));
        }
    }
    best.map(|(_, code)| code)
}

/// By how much widths are off a pattern; none if by too much.
fn distance(widths: [f32; 6], pattern: u32) -> Option<f32> {
    let mut off = 0.0;
    let mut rest = pattern;
    for width in widths.iter().rev() {
        let digit = u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        let own = (width - f32::from(digit)).abs();
        if own > MAX_OFF {
            return None;
        }
        off += own;
    }
    (off <= MAX_OFF_TOGETHER).then_some(off)
}

/// The text of characters, the start first and the check character last.
fn decode(codes: &[usize]) -> Option<String> {
    let (check, codes) = codes.split_last()?;
    let weighted = codes.iter().enumerate().map(|(at, code)| at.max(1) * code);
    if weighted.sum::<usize>() % 103 != *check {
        return None;
    }
    let (start, data) = codes.split_first()?;
    let mut set = *start;
    let mut shifted = None;
    let mut text = String::new();
    for code in data {
        let current = shifted.take().unwrap_or(set);
        match (*code, current) {
            (CODE_C, set_now) if set_now != START_C => set = START_C,
            (CODE_B, set_now) if set_now != START_A + 1 => set = START_A + 1,
            (CODE_A, set_now) if set_now != START_A => set = START_A,
            (SHIFT, set_now) if set_now != START_C => {
                shifted = Some(if set_now == START_A { START_A + 1 } else { START_A });
            }
            (pair, START_C) if pair < 100 => text.push_str(&format!("{pair:02}")),
            (control, START_A) if (64..96).contains(&control) => {
                text.extend(char::from_u32(u32::try_from(control - 64).ok()?));
            }
            (plain, _) if plain < 96 => {
                text.extend(char::from_u32(u32::try_from(plain + 32).ok()?));
            }
            // Function characters are no text.
            _ => {}
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
pub(in crate::marks) fn draw(text: &str) -> Vec<i32> {
    let mut codes = vec![START_A + 1];
    codes.extend(text.bytes().map(|byte| usize::from(byte) - 32));
    let check = codes.iter().enumerate().map(|(at, code)| at.max(1) * code).sum::<usize>() % 103;
    codes.extend([check, STOP]);
    let digits = codes.iter().flat_map(|code| PATTERNS[*code].to_string().into_bytes());
    digits.chain([b'2']).map(|digit| i32::from(digit - b'0')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_has_eleven_modules_and_none_is_another() {
        let digits = |pattern: &u32| pattern.to_string().bytes().map(|c| c - b'0').sum::<u8>();
        assert!(PATTERNS.iter().all(|pattern| digits(pattern) == 11));
        let different: std::collections::BTreeSet<&u32> = PATTERNS.iter().collect();
        assert_eq!(different.len(), PATTERNS.len());
    }

    #[test]
    fn text_of_all_sets_is_decoded_and_a_wrong_check_character_is_refused() {
        #[rustfmt::skip]
        let table: [(&[usize], Option<&str>); 5] = [
            // The example of the standard's annex in set C, then set B by a change.
            (&[START_C, 12, 34, CODE_B, 33, (105 + 12 + 2 * 34 + 3 * 100 + 4 * 33) % 103], Some("1234A")),
            (&[START_A + 1, 34, 35, (104 + 34 + 2 * 35) % 103], Some("BC")),
            (&[START_A + 1, 34, 35, (104 + 34 + 2 * 35 + 1) % 103], None),
            (&[START_A, 33, SHIFT, 65, (103 + 33 + 2 * 98 + 3 * 65) % 103], Some("Aa")),
            (&[START_C, 102, 10, (105 + 102 + 20) % 103], Some("10")),
        ];
        for (codes, expected) in table {
            assert_eq!(decode(codes).as_deref(), expected, "{codes:?}");
        }
    }
}
