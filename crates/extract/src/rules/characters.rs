//! The digits and letters of a text.

pub(super) fn count_digits(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}

pub(super) fn count_letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

pub(super) fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// Whether it has digits alone.
pub(super) fn is_digits(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}
