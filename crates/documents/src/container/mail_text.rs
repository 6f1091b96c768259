//! The text of a mail that is a receipt itself: without an attached document, and stating an amount.

use docmill_office::OTHER_TEXT_MARK;

/// A text is looked through up to here.
const MAX_SEARCHED_BYTES: usize = 256 << 10;
/// Both forms of a text are compared up to here; longer ones count as contradicting each other.
const MAX_COMPARED_BYTES: usize = 4 << 20;
/// Characters between an amount and its currency, as of columns that are filled up with spaces.
const MAX_GAP_CHARS: usize = 60;
const SYMBOLS: [char; 6] = ['€', '$', '£', '¥', '₹', '₺'];
/// Currencies by their codes (ISO 4217) and by usual short forms.
const CURRENCIES: [&str; 26] = [
    "AUD", "BGN", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "EURO", "GBP", "HUF", "INR",
    "JPY", "MXN", "NOK", "NZD", "PLN", "RON", "SEK", "TRY", "USD", "KČ", "KR", "LEI", "ZŁ",
];

/// The mark that says that a text is in UTF-8, whatever it says itself.
const MARK: &str = "\u{feff}";

/// The text as a file of its own.
pub(super) fn as_file(text: &str) -> Vec<u8> {
    format!("{MARK}{text}").into_bytes()
}

/// The file of a plain text.
pub(super) fn as_plain_file(text: &str) -> Vec<u8> {
    as_file(&without_quotation(text))
}

/// A plain text without the marks of quotation before its lines.
fn without_quotation(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let quoted = line.starts_with('>');
        if quoted { line.trim_start_matches(['>', ' ']) } else { line }
    });
    lines.collect::<Vec<&str>>().join("\n")
}

/// A plain text as a piece of HTML.
pub(super) fn as_web_text(text: &str) -> String {
    let text = without_quotation(text).replace('&', "&amp;").replace('<', "&lt;");
    format!("<pre>{text}</pre>")
}

/// The file of an HTML text whose plain form states other amounts.
pub(super) fn as_doubtful_file(text: &str) -> Vec<u8> {
    as_file(&[OTHER_TEXT_MARK, text].concat())
}

/// Whether a text or HTML states an amount of money: digits beside a currency.
pub(super) fn states_amount(text: &str) -> bool {
    let mut end = text.len().min(MAX_SEARCHED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let numbers = numbers_of(text.get(..end).unwrap_or_default());
    numbers.iter().any(|number| number.is_amount)
}

/// Whether the two forms of a text state different amounts: an amount of the plain form is missing
/// in the HTML, or the largest of the HTML is missing in the plain form. A plain form without
/// amounts contradicts nothing: many only ask for another program.
pub(super) fn contradicts(plain: &str, html: &str) -> bool {
    if plain.len().max(html.len()) > MAX_COMPARED_BYTES {
        return true;
    }
    let (plain, html) = (numbers_of(plain), numbers_of(html));
    let largest = html.iter().filter(|it| it.is_amount).map(|it| it.hundredths).max();
    let mut amounts = plain.iter().filter(|it| it.is_amount).peekable();
    amounts.peek().is_some()
        && (amounts.any(|it| !has_number(&html, it.hundredths))
            || largest.is_some_and(|largest| !has_number(&plain, largest)))
}

fn has_number(numbers: &[StatedNumber], hundredths: u64) -> bool {
    numbers.iter().any(|it| it.hundredths == hundredths)
}

/// A number in a text.
struct StatedNumber {
    hundredths: u64,
    /// Whether it stands beside a currency.
    is_amount: bool,
}

/// The numbers of a text or HTML in their order.
fn numbers_of(text: &str) -> Vec<StatedNumber> {
    let letters: Vec<char> = visible_letters(text);
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        if !letter.is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = number_end(&letters, at);
        numbers.push(StatedNumber {
            hundredths: hundredths_of(letters.get(at..end).unwrap_or_default()),
            is_amount: has_currency_before(&letters, at) || has_currency_after(&letters, end),
        });
        at = end;
    }
    numbers
}

/// The value of digits with separators. A separator with two digits after it is the decimal mark.
fn hundredths_of(number: &[char]) -> u64 {
    let digits = number.iter().filter_map(|letter| letter.to_digit(10));
    let whole =
        digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit)));
    let behind = number.iter().rev().skip_while(|letter| !letter.is_ascii_digit());
    let fraction = behind.clone().take_while(|letter| letter.is_ascii_digit()).count();
    let is_cut = behind.clone().nth(fraction).is_some_and(|it| matches!(it, '.' | ','));
    if is_cut && fraction == 2 { whole } else { whole.saturating_mul(100) }
}

/// The letters outside of tags; a tag is a space.
fn visible_letters(text: &str) -> Vec<char> {
    let mut is_tag = false;
    let text = text.replace("&nbsp;", " ").replace("&euro;", "€");
    text.chars()
        .filter_map(|letter| match letter {
            '<' => {
                is_tag = true;
                Some(' ')
            }
            '>' if is_tag => {
                is_tag = false;
                None
            }
            _ => (!is_tag).then_some(letter),
        })
        .collect()
}

fn number_end(letters: &[char], from: usize) -> usize {
    let rest = letters.get(from..).unwrap_or_default();
    let length = rest
        .iter()
        .take_while(|letter| letter.is_ascii_digit() || matches!(letter, '.' | ',' | '\''))
        .count();
    from + length
}

fn has_currency_before(letters: &[char], number: usize) -> bool {
    let before = letters.get(..number).unwrap_or_default();
    let gap = before.iter().rev().take_while(|letter| is_gap(**letter)).count();
    let before = before.get(..before.len() - gap.min(MAX_GAP_CHARS)).unwrap_or_default();
    let word: Vec<char> =
        before.iter().rev().take_while(|letter| letter.is_alphabetic()).copied().collect();
    before.last().is_some_and(|letter| SYMBOLS.contains(letter))
        || is_currency(word.into_iter().rev())
}

fn has_currency_after(letters: &[char], end: usize) -> bool {
    let after = letters.get(end..).unwrap_or_default();
    let gap = after.iter().take_while(|letter| is_gap(**letter)).count();
    let after = after.get(gap.min(MAX_GAP_CHARS)..).unwrap_or_default();
    after.first().is_some_and(|letter| SYMBOLS.contains(letter))
        || is_currency(after.iter().take_while(|letter| letter.is_alphabetic()).copied())
}

/// Whether a letter may stand between an amount and its currency: `Total (EUR):    5.00`.
fn is_gap(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '(' | ')' | ':')
}

fn is_currency(word: impl Iterator<Item = char>) -> bool {
    let word: String = word.take(5).flat_map(char::to_uppercase).collect();
    CURRENCIES.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_beside_a_currency() {
        for (text, expected) in [
            ("Total: 12.50 EUR", true),
            ("Razem: 1 234,00 zł", true),
            ("<td>Total</td><td>$&nbsp;9.99</td>", true),
            ("CHF 1'250.00", true),
            ("you paid €5", true),
            ("Total GBP                 1,200.00", true),
            ("Total (EUR):  1,200.00", true),
            ("<td>EUR</td>\n  <td>5.00</td>", true),
            ("Call +49 30 123456 at 10.30", false),
            ("<p style=\"width:9px\">Hello</p>", false),
            ("in 2026 Europe", false),
            ("", false),
        ] {
            assert_eq!(states_amount(text), expected, "{text}");
        }
    }

    #[test]
    fn two_forms_of_a_text_contradict_each_other_by_their_amounts() {
        for (plain, html, expected) in [
            ("Total 12.50 EUR", "<b>12,50</b> EUR", false),
            ("Total 1.234,00 EUR", "<td>1,234</td><td>EUR</td>", false),
            ("Net 5.00 EUR, total 6.00 EUR", "<p>6.00 EUR</p><p>net 5.00</p>", false),
            ("Please see the HTML of 29.11.2026", "<b>12,50</b> EUR", false),
            ("Total 10.00 EUR", "10.00 EUR, of it 5.00 EUR", false),
            ("Total 100.00 EUR", "<b>900,00</b> EUR", true),
            ("Total 100.00 EUR", "before 100.00 EUR, now <b>900.00</b> EUR", true),
            ("Total 5 EUR", "<b>500</b> EUR", true),
            ("Total 1.00 EUR", "no amount", true),
        ] {
            assert_eq!(contradicts(plain, html), expected, "{plain} | {html}");
        }
        let long = "Total 1.00 EUR".to_owned() + &" ".repeat(MAX_COMPARED_BYTES);
        assert!(contradicts(&long, "Total 1.00 EUR"));
    }
}
