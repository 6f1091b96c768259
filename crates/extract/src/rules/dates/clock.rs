//! Times of day, which receipts print beside the date; found so that they are not read as dates.

use crate::rules::characters::is_digits;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// Whether a text is the time of a day, as tills print it behind the date.
pub(super) fn is_time(text: &str) -> bool {
    let text = fold_text(text);
    let words: Vec<&str> = text.split(' ').collect();
    let digits = words.iter().take_while(|word| is_two_digits(word)).count();
    let rest = words.get(digits..).unwrap_or_default();
    (2..=3).contains(&digits)
        && match rest {
            [] => true,
            [unit] => vocabulary().clock.has(unit),
            _ => false,
        }
}

fn is_two_digits(word: &&str) -> bool {
    word.len() <= 2 && is_digits(word)
}

/// Whether a text is nothing but a time, with its colon.
pub(super) fn is_clock(text: &str) -> bool {
    text.contains(':') && is_time(text)
}
