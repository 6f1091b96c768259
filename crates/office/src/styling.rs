//! List labels, and labels that read as part of a following number.

use crate::run_seams::is_number_part;

/// Letters and signs of a currency between a sign and its number.
const MAX_CURRENCY_CHARS: usize = 4;

/// The gap between a label and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LabelGap {
    Nothing,
    Space,
    /// A tab or a gap of that width.
    #[default]
    Wide,
}

/// The label of an entry of a list as it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ListLabel {
    text: String,
    gap: LabelGap,
}

impl ListLabel {
    /// A label by its text; a trailing space is a gap.
    pub(crate) fn new(text: impl Into<String>, gap: LabelGap) -> Self {
        let text: String = text.into();
        let ends_wide = gap == LabelGap::Nothing && text.ends_with(char::is_whitespace);
        let gap = if ends_wide { LabelGap::Space } else { gap };
        Self { text: text.trim().to_owned(), gap }
    }

    /// A bullet or picture. Digits in it are not a list number, so that nothing separates them from
    /// a number.
    pub(crate) fn bullet(text: &str, gap: LabelGap) -> Self {
        let text: String = text.trim().chars().map(plain_symbol).collect();
        let is_letter = text.chars().count() == 1 && text.contains(char::is_alphabetic);
        let text = if is_letter { "•".to_owned() } else { text };
        let is_wide = gap == LabelGap::Wide && text.contains(char::is_numeric);
        Self::new(text, if is_wide { LabelGap::Space } else { gap })
    }

    /// Whether the label reads as a part of the number with which `text` begins.
    pub(crate) fn joins(&self, text: &str) -> bool {
        let Some(last) = self.text.chars().next_back() else { return false };
        let Some((lead, _)) = text.split_once(char::is_numeric) else { return false };
        let lead = lead.chars().filter(|c| c.is_alphanumeric() || c.is_ascii_punctuation()).count();
        let is_minus = matches!(last, '-' | '\u{2212}' | '\u{2013}' | '(');
        let begins = lead == 0 || is_minus && lead <= MAX_CURRENCY_CHARS;
        let is_whole = text.chars().filter(|c| c.is_alphabetic()).count() <= MAX_CURRENCY_CHARS;
        match self.gap {
            LabelGap::Nothing => begins && is_number_part(last),
            LabelGap::Space => begins && is_number_part(last) && (is_whole || last.is_numeric()),
            LabelGap::Wide => false,
        }
    }

    /// Whether it is invisible.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The label as a text of its own, if it says something.
    pub(crate) fn alone(&self) -> Option<&str> {
        let letters = self.text.chars().filter(|c| c.is_alphabetic()).count();
        (letters > 1 || self.text.contains(char::is_numeric)).then_some(self.text.as_str())
    }

    /// The label as it is laid out, one space before `text`. There a digit that a gap sets apart
    /// would run into a number.
    pub(crate) fn marker(&self, text: &str) -> String {
        if !self.is_empty() && !self.text.contains(char::is_alphanumeric) {
            return "•".to_owned();
        }
        let first = text.chars().find(|c| c.is_alphanumeric());
        let is_bare = self.gap == LabelGap::Wide && self.text.ends_with(char::is_numeric);
        let is_between = is_bare && first.is_some_and(char::is_numeric);
        if is_between { format!("{}.", self.text) } else { self.text.clone() }
    }
}

/// The character of a symbol font in the private use area.
pub(crate) fn plain_symbol(c: char) -> char {
    let code = u32::from(c);
    let plain = (0xf020..0xf100).contains(&code).then(|| char::from_u32(code - 0xf000));
    plain.flatten().unwrap_or(c)
}

/// The label of an entry: its number in the form of the list, as the format names it.
pub(crate) fn number_label(form: &str, number: u32) -> String {
    match form {
        "lowerLetter" | "a" => letters(number, b'a'),
        "upperLetter" | "A" => letters(number, b'A'),
        "lowerRoman" | "i" => roman(number),
        "upperRoman" | "I" => roman(number).to_ascii_uppercase(),
        "decimalZero" => format!("{number:02}"),
        "none" | "" => String::new(),
        _ => number.to_string(),
    }
}

/// a to z, then aa to zz.
fn letters(number: u32, first: u8) -> String {
    let at = number.saturating_sub(1);
    let letter = u8::try_from(at % 26).unwrap_or(0).saturating_add(first);
    let count = usize::try_from(at / 26).unwrap_or(0).min(8) + 1;
    char::from(letter).to_string().repeat(count)
}

fn roman(number: u32) -> String {
    const SIGNS: [(u32, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let (mut left, mut text) = (number, String::new());
    if number == 0 || number > 3999 {
        return number.to_string();
    }
    for (value, sign) in SIGNS {
        while left >= value {
            text.push_str(sign);
            left -= value;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_joins_the_number_that_it_stands_right_before() {
        use LabelGap::{Nothing, Space, Wide};
        #[rustfmt::skip]
        let table = [
            ("9",    Nothing, "1,100.00",      true),
            ("-",    Nothing, "1,100.00",      true),
            ("-",    Nothing, "GBP 1,100.00",  true),
            ("(",    Nothing, "£1,100.00",     true),
            ("9.",   Nothing, "100.00",        true),
            ("9 ",   Nothing, "1,100.00",      true),
            ("9",    Space,   "500 sheets of paper", true),
            ("9.",   Space,   "1,100.00",      true),
            ("-",    Space,   "1,100.00",      true),
            ("-",    Space,   "500 sheets of paper", false),
            ("9.",   Space,   "500 sheets of paper", false),
            ("9.",   Nothing, "Paper, 500 sheets", false),
            ("9",    Nothing, "GBP 1,100.00",  false),
            ("9",    Nothing, "\u{200b}1,100.00", true),
            ("9",    Wide,    "1,100.00",      false),
            ("-",    Wide,    "1,100.00",      false),
            ("1)",   Wide,    "Paper",         false),
            ("•",    Nothing, "1,100.00",      false),
            ("",     Nothing, "1,100.00",      false),
        ];
        for (label, gap, text, expected) in table {
            assert_eq!(ListLabel::new(label, gap).joins(text), expected, "{label}|{gap:?}|{text}");
        }
        for (label, expected) in
            [("9", true), ("\u{f039}", true), ("\u{f0b7}", false), ("o", false)]
        {
            assert_eq!(ListLabel::bullet(label, Wide).joins("1,100.00"), expected, "{label}");
        }
        assert_eq!(ListLabel::bullet("o", Wide).marker("1"), "•");
        assert_eq!(ListLabel::new("9", Wide).marker("Terms of 2026"), "9");
        for (label, expected) in [("9", "9."), ("9)", "9)"), ("-", "•"), ("A", "A")] {
            assert_eq!(ListLabel::new(label, Wide).marker("1,100.00"), expected);
        }
    }
}
