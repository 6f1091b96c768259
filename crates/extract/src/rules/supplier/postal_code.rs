//! Lines with a town, recognised by the postal codes of the countries.

use crate::rules::characters::{count_digits, has_digit, is_digits};
use crate::rules::vocabulary::vocabulary;

/// Abbreviations of the states before a ZIP code in the United States.
const STATES: &[&str] = &[
    "AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DC", "DE", "FL", "GA", "HI", "IA", "ID", "IL", "IN",
    "KS", "KY", "LA", "MA", "MD", "ME", "MI", "MN", "MO", "MS", "MT", "NC", "ND", "NE", "NH", "NJ",
    "NM", "NV", "NY", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VA", "VT", "WA",
    "WI", "WV", "WY",
];

/// `12345 Town`, `1234 Town, Street 5`: the code in front.
pub(super) fn is_town_first(line: &str) -> bool {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    digits == 5 || (digits == 4 && is_town_and_street(line.get(4..).unwrap_or_default()))
}

/// The text behind a postal code of four digits: ` Győr, Ipar utca 12.`, not ` Broadway, Suite 12`.
fn is_town_and_street(rest: &str) -> bool {
    let Some((town, street)) = rest.trim_start().split_once(", ") else { return false };
    let first = docmill_formats::notation::fold_text(street.split(' ').next().unwrap_or_default());
    !town.contains(' ')
        && town.starts_with(char::is_uppercase)
        && has_digit(street)
        && !vocabulary().room.has(&first)
}

/// Whether a folded word precedes numbers other than postal codes: `Invoice No.: 9876`, `Tel 0999
/// 55`, `since 1951`.
fn is_counted(folded: &str) -> bool {
    vocabulary().counted.has(folded) || vocabulary().since.has(folded)
}

/// Four or more digits in one word (or the British and Dutch forms' digits) beside a word that can
/// be a town's.
pub(in crate::rules) fn has_postal_code(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().flat_map(part_at_point).collect();
    let groups = words.iter().filter(|word| word.len() == 4 && is_digits(word));
    // An account, printed in groups of four.
    if groups.count() >= 3 {
        return false;
    }
    let code = words.iter().enumerate().any(|(at, word)| {
        let digits = count_digits(word);
        let short = word.trim_matches(',').len() <= 9;
        // Portugal 4050-253, Brazil 01310-100; a phone number has its dash elsewhere.
        let parted = word.trim_matches(',').split_once('-').is_some_and(|(town, street)| {
            matches!((town.len(), street.len()), (4 | 5, 3)) && digits == town.len() + street.len()
        });
        let mixed = word
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase() || matches!(c, '-' | ','));
        // `0-24`: hours of a day.
        let hours = digits < 4
            && word
                .split_once('-')
                .is_some_and(|(from, to)| [from, to].iter().all(|part| has_digit(part)));
        short && mixed && !hours && ((3..=6).contains(&digits) || parted) && is_by_town(&words, at)
    });
    let canadian =
        words.windows(2).any(|pair| matches!(pair, [area, unit] if is_canadian_code(area, unit)));
    let british =
        words.windows(2).any(|pair| matches!(pair, [out, inward] if is_british_code(out, inward)));
    let irish =
        words.windows(2).any(|pair| matches!(pair, [area, unit] if is_irish_code(area, unit)));
    code || british || canadian || irish
}

/// `NORTHTOWN.80333 SOUTHPORT`: a part of a town and a code, which an engine has read without their
/// space.
fn part_at_point(word: &str) -> Vec<&str> {
    let glued = word.split_once('.').filter(|(town, code)| {
        town.len() > 3
            && town.chars().all(char::is_alphabetic)
            && code.len() >= 5
            && is_digits(code)
    });
    glued.map_or_else(|| vec![word], |(town, code)| vec![town, code])
}

/// `V1K 7H3`
pub(in crate::rules) fn is_canadian_code(area: &str, unit: &str) -> bool {
    has_digits_at(area, [false, true, false]) && has_digits_at(unit, [true, false, true])
}

fn has_digits_at(word: &str, digits: [bool; 3]) -> bool {
    let word = word.trim_matches(',');
    word.len() == 3
        && word
            .chars()
            .zip(digits)
            .all(|(c, digit)| if digit { c.is_ascii_digit() } else { c.is_ascii_uppercase() })
}

/// Whether a line ends in the state and ZIP code of an address: `LAS VEGAS NV 89103`.
pub(in crate::rules) fn ends_in_zip_code(words: &[String]) -> bool {
    let [.., town, state, zip] = words else { return false };
    let zip = zip.trim_end_matches(['.', ',']);
    let digits = zip.split('-').next().unwrap_or_default();
    digits.len() == 5
        && zip.chars().all(|c| c.is_ascii_digit() || c == '-')
        && STATES.contains(&state.trim_end_matches([',', '.']))
        && town.trim_end_matches(',').chars().all(char::is_alphabetic)
}

/// `D04 9ZZ9`
fn is_irish_code(area: &str, unit: &str) -> bool {
    let unit = unit.trim_matches(',');
    let mut letters = area.chars();
    letters.next().is_some_and(|c| c.is_ascii_uppercase())
        && area.len() == 3
        && letters.next().is_some_and(|c| c.is_ascii_digit())
        && letters.next().is_some_and(|c| c.is_ascii_digit() || c == 'W')
        && unit.len() == 4
        && unit.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && has_digit(unit)
}

/// Whether a line ends in a code of a shape that nothing but a postal code has: `Ely CB7 4ZZ`.
pub(super) fn ends_in_lettered_code(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let last = words.len().checked_sub(2).and_then(|at| words.get(at..));
    matches!(last, Some([a, b]) if is_british_code(a, b) || is_irish_code(a, b))
}

/// `BA1 5QT`
pub(in crate::rules) fn is_british_code(out: &str, inward: &str) -> bool {
    let inward = inward.trim_matches([',', '.']);
    inward.len() == 3
        && inward.starts_with(|c: char| c.is_ascii_digit())
        && inward.chars().skip(1).all(|c| c.is_ascii_uppercase())
        && (2..=4).contains(&out.len())
        && out.chars().all(is_code_character)
}

fn is_code_character(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit()
}

/// Six digits.
fn is_pin(word: &&str) -> bool {
    word.len() == 6 && is_digits(word)
}

/// Whether a word after the number can be a town's, or the one before it, where none follows.
fn is_by_town(words: &[&str], at: usize) -> bool {
    let mut after = words.iter().skip(at + 1).filter(|word| word.contains(char::is_alphanumeric));
    let next = after.next();
    // `753 23 Uppsala`
    let next = if next.is_some_and(|word: &&str| word.len() <= 3 && is_digits(word)) {
        after.next()
    } else {
        next
    };
    if let Some(next) = next {
        return contains_letter(next);
    }
    // `Mill Road 100` is a street.
    if words.get(at).is_some_and(|word| word.len() == 3) {
        return false;
    }
    // `Coimbatore - 641001`, as India writes its codes.
    let mut before = words.get(..at).unwrap_or_default().iter().rev().skip_while(|word: &&&str| {
        matches!(**word, "-" | "–") && words.get(at).is_some_and(is_pin)
    });
    let before = before.next();
    before.is_some_and(|word| {
        let folded = docmill_formats::notation::fold_text(word);
        contains_letter(word) && !word.ends_with([':', '#']) && !is_counted(&folded)
    })
}

fn contains_letter(word: &&str) -> bool {
    word.contains(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_counted_or_called_is_no_towns() {
        for (text, expected) in [
            ("82216 Northtown", true),
            ("D-95100 Selbitztal", true),
            ("4380 GV Koudum", true),
            ("753 23 Uppsala", true),
            ("4050-253 Porto", true),
            ("San Francisco, California 94104", true),
            ("Wien 1010", true),
            ("Coimbatore - 641001", true),
            ("SRI NORTHTOWN.80333 SOUTHPORT", true),
            ("No.80333", false),
            ("Ref - 20418", false),
            ("Mill Road 100", false),
            ("Family business since 1788", false),
            ("1234 AB", true),
            ("Bath BA1 5QT", true),
            ("Dublin D02 X285", true),
            ("Account 6099914, Northtown", false),
            ("D04 9ZZ9, Ireland", true),
            ("WESTMOOR V1K 7H3", true),
            ("Invoice No.: 9876", false),
            ("Rechnung Nr. 618205", false),
            ("Our ref: 7701", false),
            ("Facture n° 2023174", false),
            ("Tel 0999 55", false),
            ("Phone: 0999 555 77", false),
            ("P.O. Box 1234", false),
            ("9876", false),
        ] {
            assert_eq!(has_postal_code(text), expected, "{text}");
        }
    }
}
