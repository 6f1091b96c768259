//! Check digits of VAT identification numbers, for the countries that publish their rule.
//!
//! Sources: the national rules as collected in the VIES documentation of the European Commission
//! and in `python-stdnum`. A number that passes need not be in use; sample numbers such as
//! DE123456789 do not pass, so this is a sign of a misread digit, no proof of one.

use super::{account, vat_id};

/// Whether the check digits hold; none for a country whose rule we do not know, and for a text
/// that has not even its country's form.
pub fn check_digits_hold(text: &str) -> Option<bool> {
    if vat_id::has_valid_form(text) != Some(true) {
        return None;
    }
    let id = vat_id::normalise_vat_id(text);
    let (country, rest) = id.split_at_checked(2)?;
    let digits: Vec<u32> = rest.chars().filter_map(|c| c.to_digit(10)).collect();
    let (last, body) = digits.split_last()?;
    Some(match country {
        "AT" => (10 - (luhn_sum(body, false) + 4) % 10) % 10 == *last,
        "BE" => rest.len() <= 10 && check_belgian(&digits),
        "CH" => check_swiss(&digits)?,
        "DE" | "HR" => iso_11_10(body) == *last,
        "DK" => weighted_sum(&digits, &[2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11),
        "EE" => (10 - weighted_sum(body, &[3, 7, 1, 3, 7, 1, 3, 7]) % 10) % 10 == *last,
        "EL" | "GR" => weighted_sum(body, &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == *last,
        "FI" => weighted_sum(&digits, &[7, 9, 10, 5, 8, 4, 2, 1]).is_multiple_of(11),
        "FR" => check_french(rest)?,
        "GB" | "XI" => check_british(&digits)?,
        "HU" => (10 - weighted_sum(body, &[9, 7, 3, 1, 9, 7, 3]) % 10) % 10 == *last,
        "IT" | "SE" if country == "IT" || rest.ends_with("01") => {
            let own = if country == "SE" { digits.get(..10)? } else { digits.as_slice() };
            let (last, body) = own.split_last()?;
            (10 - luhn_sum(body, country == "SE") % 10) % 10 == *last
        }
        "LU" => digits_to_number(digits.get(..6)?) % 89 == digits_to_number(digits.get(6..)?),
        "NL" => check_dutch(&id, &digits)?,
        "NO" => weighted_sum(digits.get(..9)?, &[3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11),
        "PL" => weighted_sum(body, &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == *last,
        "PT" => (11 - weighted_sum(body, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10 == *last,
        "SI" => (11 - weighted_sum(body, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10 == *last,
        "SK" => digits_to_number(&digits).is_multiple_of(11),
        _ => return None,
    })
}

fn weighted_sum(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

fn digits_to_number(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Every second digit doubled, the first of them if `from_first`, digits of the products added.
fn luhn_sum(digits: &[u32], from_first: bool) -> u32 {
    let mut sum = 0;
    for (at, digit) in digits.iter().enumerate() {
        let twice = digit * 2;
        let is_doubled = (at % 2 == 0) == from_first;
        sum += if is_doubled { twice / 10 + twice % 10 } else { *digit };
    }
    sum
}

/// ISO 7064, modulus 11,10.
fn iso_11_10(body: &[u32]) -> u32 {
    let product = body.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        2 * (if sum == 0 { 10 } else { sum }) % 11
    });
    (11 - product) % 10
}

fn check_belgian(digits: &[u32]) -> bool {
    let whole = digits_to_number(digits);
    97 - whole / 100 % 97 == whole % 100
}

/// Only the old form of two digits is public.
fn check_french(rest: &str) -> Option<bool> {
    let (key, siren) = rest.split_at_checked(2)?;
    let key: u64 = key.parse().ok()?;
    let siren: u64 = siren.parse().ok()?;
    Some((12 + 3 * siren) % 97 == key)
}

/// Both series: the sum of weights and check digits is a multiple of 97, with 55 or without.
fn check_british(digits: &[u32]) -> Option<bool> {
    let own = digits.get(..9)?;
    let sum = weighted_sum(own, &[8, 7, 6, 5, 4, 3, 2, 10, 1]);
    Some(sum.is_multiple_of(97) || (sum + 55).is_multiple_of(97))
}

/// The old numbers are modulo 11, those of sole traders since 2020 modulo 97 over all characters.
fn check_dutch(id: &str, digits: &[u32]) -> Option<bool> {
    let old = weighted_sum(digits.get(..8)?, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 == *digits.get(8)?;
    Some(old || account::remainder_modulo_97(id.as_bytes().iter()) == 1)
}

fn check_swiss(digits: &[u32]) -> Option<bool> {
    let sum = weighted_sum(digits.get(..8)?, &[5, 4, 3, 2, 7, 6, 5, 4]);
    Some((11 - sum % 11) % 11 == *digits.get(8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_are_told_from_misread_ones_by_country() {
        // Numbers that the rules' descriptions and tests give as examples.
        #[rustfmt::skip]
        let sound = [
            "ATU13585627", "BE0428759497", "CHE-107.787.577 MWST", "DE136695976", "DK13585628",
            "EE100931558", "EL094259216", "FI20774740", "FR40303265045", "GB980780684", "HR33392005961",
            "HU12892312", "IT00743110157", "LU15027442", "NL004495445B01", "NL002455799B11",
            "NO995525828MVA", "PL8567346215", "PT501964843", "SE123456789701", "SI50223054",
            "SK2022749619", "ATU10223006", "BE0776091951", "DK88146328", "EE100207415", "EL040127797",
            "FI09853608", "FR83404833048", "GB802311782", "GB100190874", "HU21376414", "IT00159560366",
            "LU10000356", "NL010000446B01", "PL5260001246", "PT502757191", "SE556188840401",
            "SI15012557", "SK4030000007", "DE100000008",
        ];
        for text in sound {
            assert_eq!(check_digits_hold(text), Some(true), "{text}");
            // Any one digit changed by one no longer fits.
            let at = text.rfind(|c: char| c.is_ascii_digit() && c != '0' && c != '1').unwrap();
            let digit = u32::from(text.as_bytes()[at] - b'0');
            let mut misread = text.to_owned();
            misread.replace_range(at..=at, &(digit - 1).to_string());
            assert_ne!(check_digits_hold(&misread), Some(true), "{misread}");
        }
        // A Swedish company's second number has another ending, whose rule is not known.
        assert_eq!(check_digits_hold("SE556188840402"), None);
        for (text, expected) in
            [("DE123456789", Some(false)), ("DE1234", None), ("IE1234567T", None), ("", None)]
        {
            assert_eq!(check_digits_hold(text), expected, "{text}");
        }
    }
}
