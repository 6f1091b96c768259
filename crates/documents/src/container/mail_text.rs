//! The text of a mail that is a receipt itself: without an attached document, and stating an amount.

/// A text is looked through up to here.
const MAX_SEARCHED_BYTES: usize = 256 << 10;
/// Characters between an amount and its currency.
const MAX_GAP_CHARS: usize = 2;
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

/// Whether a text or HTML states an amount of money: digits beside a currency.
pub(super) fn states_amount(text: &str) -> bool {
    let mut end = text.len().min(MAX_SEARCHED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let letters: Vec<char> = visible_letters(text.get(..end).unwrap_or_default());
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        if !letter.is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = number_end(&letters, at);
        if has_currency_before(&letters, at) || has_currency_after(&letters, end) {
            return true;
        }
        at = end;
    }
    false
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
    let gap = before.iter().rev().take_while(|letter| letter.is_whitespace()).count();
    let before = before.get(..before.len() - gap.min(MAX_GAP_CHARS)).unwrap_or_default();
    let word: Vec<char> =
        before.iter().rev().take_while(|letter| letter.is_alphabetic()).copied().collect();
    before.last().is_some_and(|letter| SYMBOLS.contains(letter))
        || is_currency(word.into_iter().rev())
}

fn has_currency_after(letters: &[char], end: usize) -> bool {
    let after = letters.get(end..).unwrap_or_default();
    let gap = after.iter().take_while(|letter| letter.is_whitespace()).count();
    let after = after.get(gap.min(MAX_GAP_CHARS)..).unwrap_or_default();
    after.first().is_some_and(|letter| SYMBOLS.contains(letter))
        || is_currency(after.iter().take_while(|letter| letter.is_alphabetic()).copied())
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
            ("Call +49 30 123456 at 10.30", false),
            ("<p style=\"width:9px\">Hello</p>", false),
            ("in 2026 Europe", false),
            ("", false),
        ] {
            assert_eq!(states_amount(text), expected, "{text}");
        }
    }
}
