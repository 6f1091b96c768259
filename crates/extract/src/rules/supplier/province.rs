//! Towns without a postal code, recognised by the county or province behind them.

use super::address::is_street_line;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// A district and its province behind a street, where addresses have no postal code: `Ata Sok. No:
/// 4` over `Nilüfer / Bursa`.
pub(super) fn town_with_province(lines: &[String]) -> Option<usize> {
    let [street, town, ..] = lines else { return None };
    (is_street_line(street) && (is_town_and_province(town) || is_town_and_county(town)))
        .then_some(1)
}

/// `Nilüfer / Bursa`: two names and nothing else, with a stroke between.
fn is_town_and_province(text: &str) -> bool {
    text.split_once(" / ")
        .is_some_and(|(town, province)| is_place_name(town) && is_place_name(province))
}

fn is_place_name(part: &str) -> bool {
    let words: Vec<&str> = part.split(' ').collect();
    words.len() <= 2
        && words.iter().all(|word| {
            word.chars().count() > 2
                && word.starts_with(char::is_uppercase)
                && word.chars().all(|c| c.is_alphabetic() || c == '-')
        })
}

/// `Cluj-Napoca, jud. Cluj`: only the name of a town and of a county labelled as one.
fn is_town_and_county(text: &str) -> bool {
    let Some((town, county)) = text.split_once(", ") else { return false };
    let is_county = county.split_once(' ').is_some_and(|(label, name)| {
        vocabulary().county.has(&fold_text(label)) && name.starts_with(char::is_uppercase)
    });
    is_county
        && town.starts_with(char::is_uppercase)
        && town.split(' ').count() <= 3
        && !text.contains(char::is_numeric)
}
