//! Whether a text goes in circles at its end: the way in which models fail that does not end by
//! itself. A form may end in a row of dots or dashes, which is no loop. Loops with growing numbers
//! are not detected here, but by their missing ink.

/// Only the last characters are examined.
const TAIL: usize = 16_000;
/// The longest piece that is looked for.
const MAX_PIECE_CHARS: usize = 400;
/// A shorter piece is a loop by its number of repetitions, a longer one by its share of the text.
const SHORT: usize = 8;
/// Characters of a loop of longer pieces, at least: a row of empty cells is shorter.
const MIN_LOOP_CHARS: usize = 120;

/// Whether the end of the text is one piece, many times over.
pub(super) fn ends_in_loop(text: &str) -> bool {
    let mut tail: Vec<char> = text.chars().rev().skip_while(|c| !c.is_alphanumeric()).collect();
    tail.truncate(TAIL);
    (1..=MAX_PIECE_CHARS.min(tail.len() / 2)).any(|unit| repeats_too_often(&tail, unit))
}

/// `tail` runs backwards.
fn repeats_too_often(tail: &[char], unit: usize) -> bool {
    let later = tail.iter().skip(unit);
    let alike = tail.iter().zip(later).take_while(|(one, other)| one == other).count();
    let (times, length) = (alike / unit + 1, alike + unit);
    let speaks = tail.iter().take(unit).any(|c| c.is_alphanumeric());
    let often = if unit < SHORT {
        times > 30
    } else {
        times >= 5 && length >= MIN_LOOP_CHARS && length * 3 > tail.len()
    };
    speaks && often
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_one_of_eight_and_of_two_hundred_characters_are_told_and_forms_are_not() {
        let page = "Invoice 2041\nWidget 2 10,00 20,00\nTotal 20,00 EUR\n";
        let long: String = (0..40).map(|at| format!("w{} ", at * 7 % 40)).collect();
        let rows: String = (1..40).map(|at| format!("Item {at} 1 {at},00 {at},00\n")).collect();
        #[rustfmt::skip]
        let table = [
            ("one character",     format!("{page}{}", "a".repeat(60)),                 true),
            ("eight characters",  format!("{page}{}", "abc 123 ".repeat(20)),          true),
            ("many characters",   format!("{page}{}", long.repeat(6)),                 true),
            ("cut in its middle", format!("{page}{}abc 1", "abc 123 ".repeat(20)),     true),
            ("a page",            page.to_owned(),                                     false),
            ("rows of a table",   format!("{page}{rows}"),                             false),
            ("a dotted line",     format!("{page}{}", ".".repeat(200)),                false),
            ("equal cells",       format!("{page}{}", "0,00 ".repeat(12)),             false),
            ("nothing",           String::new(),                                       false),
        ];
        for (name, text, expected) in table {
            assert_eq!(ends_in_loop(&text), expected, "{name}");
        }
    }
}
