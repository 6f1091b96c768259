//! The Swiss QR-bill: SIX, Swiss Implementation Guidelines QR-bill, version 2.3 (and the combined
//! addresses of the versions before, which bills still have).

use super::order::{
    PaymentCode, PaymentCodeDefect, PaymentScheme, is_creditor_reference, is_plain_iban, optional,
    read_amount,
};
use rust_decimal::Decimal;

/// Most characters of a payload.
const MAX_CHARACTERS: usize = 997;
/// Lines up to the trailer, and all that there may be: billing information and two alternatives.
const MIN_LINES: usize = 31;
const MAX_LINES: usize = 34;
/// Characters of an amount, its point included.
const MAX_AMOUNT_CHARS: usize = 12;
/// Most characters of message and billing information together, and of an alternative.
const MAX_MESSAGE_CHARS: usize = 140;
const MAX_ALTERNATIVE_CHARS: usize = 100;

/// Reads the lines of a payload that begins with `SPC`.
pub(super) fn read_bill(
    payload: &str,
    lines: &[&str],
    bytes: bool,
) -> Result<PaymentCode, PaymentCodeDefect> {
    if payload.chars().count() > MAX_CHARACTERS {
        return Err(PaymentCodeDefect::TooLong);
    }
    if bytes || !lines.iter().all(|line| line.chars().all(is_allowed)) {
        return Err(PaymentCodeDefect::Characters);
    }
    if !(MIN_LINES..=MAX_LINES).contains(&lines.len()) || lines.get(30) != Some(&"EPD") {
        return Err(PaymentCodeDefect::Lines);
    }
    if (line(lines, 0), line(lines, 1), line(lines, 2)) != ("SPC", "0200", "1") {
        return Err(PaymentCodeDefect::Header);
    }
    let iban = line(lines, 3);
    if !(iban.starts_with("CH") || iban.starts_with("LI")) || !is_plain_iban(iban) {
        return Err(PaymentCodeDefect::Account);
    }
    // The second party is for a use that is still to come.
    if !is_party(party(lines, 4)) || !is_empty(party(lines, 11)) {
        return Err(PaymentCodeDefect::Party);
    }
    let amount = optional(line(lines, 18)).map(read_francs).transpose()?;
    if !matches!(line(lines, 19), "CHF" | "EUR") {
        return Err(PaymentCodeDefect::Currency);
    }
    if !is_empty(party(lines, 20)) && !is_party(party(lines, 20)) {
        return Err(PaymentCodeDefect::Party);
    }
    let reference = read_reference(iban, line(lines, 27), line(lines, 28))?;
    let [message, data, first, second] = [29, 31, 32, 33].map(|at| line(lines, at).chars().count());
    if message + data > MAX_MESSAGE_CHARS || first.max(second) > MAX_ALTERNATIVE_CHARS {
        return Err(PaymentCodeDefect::Message);
    }
    Ok(PaymentCode {
        scheme: PaymentScheme::SwissBill,
        iban: iban.to_owned(),
        bic: None,
        creditor: Some(line(lines, 5).trim().to_owned()),
        // A bill over nothing is a notice, and not to be paid.
        amount: amount.filter(|amount| !amount.is_zero()),
        currency: line(lines, 19).to_owned(),
        reference,
    })
}

/// The characters of Latin writing that bills may have.
fn is_allowed(c: char) -> bool {
    matches!(c,
        ' '..='~' | '\u{a0}'..='\u{17f}' | '\u{218}'..='\u{21b}' | '\u{20ac}')
}

/// A line; empty if there are fewer.
fn line<'a>(lines: &[&'a str], at: usize) -> &'a str {
    lines.get(at).copied().unwrap_or_default()
}

/// The seven lines of a party.
fn party<'l, 'a>(lines: &'l [&'a str], from: usize) -> &'l [&'a str] {
    lines.get(from..from + 7).unwrap_or_default()
}

/// Whether the text has at most so many characters.
fn within(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars
}

/// As [`within`], and not blank.
fn filled(text: &str, max_chars: usize) -> bool {
    !text.trim().is_empty() && within(text, max_chars)
}

fn is_empty(lines: &[&str]) -> bool {
    lines.iter().all(|line| line.is_empty())
}

/// Type, name, two lines of address, postal code, town, country.
fn is_party(lines: &[&str]) -> bool {
    let [kind, name, street, second, code, town, country] = lines else { return false };
    let is_address = match *kind {
        "S" => within(second, 16) && filled(code, 16) && filled(town, 35),
        "K" => filled(second, 70) && code.is_empty() && town.is_empty(),
        _ => false,
    };
    let is_country = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_uppercase());
    is_address && filled(name, 70) && within(street, 70) && is_country
}

fn read_francs(text: &str) -> Result<Decimal, PaymentCodeDefect> {
    let amount = read_amount(text, 2..=2).filter(|_| text.len() <= MAX_AMOUNT_CHARS);
    amount.ok_or(PaymentCodeDefect::Amount)
}

/// Accounts whose bank has a number from 30000 to 31999 take references of 27 digits and no others,
/// and no other account takes those.
fn read_reference(
    iban: &str,
    kind: &str,
    reference: &str,
) -> Result<Option<String>, PaymentCodeDefect> {
    let bank: Option<u32> = iban.get(4..9).and_then(|bank| bank.parse().ok());
    let takes_digits = bank.is_some_and(|bank| (30_000..=31_999).contains(&bank));
    let is_sound = match kind {
        "QRR" => takes_digits && is_digit_reference(reference),
        "SCOR" => !takes_digits && is_creditor_reference(reference),
        "NON" => !takes_digits && reference.is_empty(),
        _ => false,
    };
    if !is_sound {
        return Err(PaymentCodeDefect::Reference);
    }
    Ok(optional(reference).map(str::to_owned))
}

/// 27 digits of which the last makes the others zero, modulo 10 recursively.
fn is_digit_reference(text: &str) -> bool {
    const NEXT: [u8; 10] = [0, 9, 4, 6, 8, 2, 7, 1, 3, 5];
    let digits: Option<Vec<u8>> =
        text.bytes().map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect();
    let Some([digits @ .., last]) = digits.as_deref() else { return false };
    let mut carry = 0;
    for digit in digits {
        carry = NEXT.get(usize::from((carry + digit) % 10)).copied().unwrap_or_default();
    }
    text.len() == 27 && (10 - carry) % 10 == *last
}

#[cfg(test)]
mod tests;
