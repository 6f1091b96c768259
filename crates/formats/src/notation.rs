//! How numbers, dates, currencies, accounts and VAT identifiers are written in documents, and the
//! folding under which two spellings of a word are the same.
//!
//! Reading is tolerant and reports ambiguity; nothing here decides what a value means.

pub mod account;
pub mod currency;
pub mod date;
pub mod number;
pub mod party_name;
pub mod printed_vat_id;
pub mod vat_digits;
pub mod vat_id;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Lower case, without diacritics, everything but letters and digits as single spaces.
///
/// Compatibility decomposition first, so that ligatures, full-width forms and `nº` fold as well. Letter by
/// letter: what the decomposition of a whole text would reorder are marks, which go.
pub fn fold_text(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            push_folded(&mut folded, c.to_ascii_lowercase());
        } else {
            let letters = c.nfkd().filter(|c| !is_combining_mark(*c));
            letters.flat_map(char::to_lowercase).for_each(|c| push_folded(&mut folded, c));
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

/// A small letter without marks, as it is compared.
fn push_folded(folded: &mut String, c: char) {
    match c {
        'ß' => folded.push_str("ss"),
        'ø' => folded.push('o'),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'ł' => folded.push('l'),
        'đ' => folded.push('d'),
        // Written otherwise in capitals: `SATICI` and `satıcı`, `ΑΡΙΘΜΟΣ` and `αριθμός`.
        'ı' => folded.push('i'),
        'ς' => folded.push('σ'),
        _ if c.is_alphanumeric() => folded.push(c),
        _ if folded.ends_with(' ') || folded.is_empty() => {}
        _ => folded.push(' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_word_fold_to_the_same() {
        for (text, folded) in [
            ("USt.-Id.-Nr.:", "ust id nr"),
            ("Date d’échéance", "date d echeance"),
            ("Facture n° 12", "facture n 12"),
            ("Nº de factura", "no de factura"),
            ("GRÖSSE / Größe", "grosse grosse"),
            ("Beløp", "belop"),
            ("Lægning, œuvre", "laegning oeuvre"),
            ("Złoty, Đakovo", "zloty dakovo"),
            ("SATICI satıcı", "satici satici"),
            ("ΑΡΙΘΜΟΣ αριθμός", "αριθμοσ αριθμοσ"),
            ("  ", ""),
        ] {
            assert_eq!(fold_text(text), folded, "{text}");
        }
    }
}
