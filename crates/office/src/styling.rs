//! Labels of numbered lists.

/// The label of an entry: its number in the form of the list, as the format names it.
pub(crate) fn number_label(form: &str, number: u32) -> String {
    match form {
        "lowerLetter" | "a" => letters(number, b'a'),
        "upperLetter" | "A" => letters(number, b'A'),
        "lowerRoman" | "i" => roman(number),
        "upperRoman" | "I" => roman(number).to_ascii_uppercase(),
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
