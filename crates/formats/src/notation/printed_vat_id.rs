//! VAT identification numbers among the words of a line: where one begins, and how many words it
//! takes.
//!
//! The label before it is not considered.

use super::vat_digits::check_digits_hold;
use super::vat_id::{has_valid_form, normalise_vat_id};

/// The identifier that begins at the first of `words`, as written, and how many words it takes.
///
/// The longest run that has a known form wins, so that `DE 481 305 765` is one identifier.
pub fn find_at(words: &[&str]) -> Option<(String, usize)> {
    let first = words.first()?;
    // `No. 418 2209 36` is no Norwegian one.
    if first.chars().take(2).filter(char::is_ascii_uppercase).count() < 2 {
        return None;
    }
    (1..=words.len().min(6)).rev().find_map(|count| {
        let own = words.get(..count)?;
        if !own.last()?.contains(char::is_alphanumeric) {
            return None;
        }
        let text = own.join(" ");
        let text = text.trim_matches(['.', ',', ';', ':', '(', ')', '|']);
        let found = has_valid_form(text) == Some(true) && normalise_vat_id(text).len() >= 8;
        // `VAT REG NO 304 0264 70`, all in capitals: the end of a label, unless the digits are Norway's.
        let label =
            *first == "NO" && !text.ends_with("MVA") && check_digits_hold(text) != Some(true);
        (found && !label).then(|| (text.to_owned(), count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_found_with_its_spaces() {
        assert_eq!(
            find_at(&["DE", "481", "305", "765", "SWIFT"]),
            Some(("DE 481 305 765".to_owned(), 4))
        );
        assert_eq!(find_at(&["NL853061725B01"]), Some(("NL853061725B01".to_owned(), 1)));
        assert_eq!(find_at(&["No.:", "418", "2209", "36"]), None);
        assert_eq!(find_at(&["NO", "304", "0264", "70"]), None);
        assert_eq!(find_at(&["NO", "974", "760", "673"]), Some(("NO 974 760 673".to_owned(), 4)));
        assert_eq!(find_at(&["DE21", "3045", "0000"]), None);
        assert_eq!(find_at(&["Der", "Betrag"]), None);
    }
}
