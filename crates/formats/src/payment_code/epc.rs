//! EPC069-12: quick response code, guidelines to enable data capture for the initiation of a SEPA
//! credit transfer.

use super::order::{
    PaymentCode, PaymentCodeDefect, PaymentScheme, is_creditor_reference, is_plain_iban, optional,
    read_amount,
};
use crate::notation::account;
use rust_decimal::Decimal;

/// Most bytes of a payload.
const MAX_BYTES: usize = 331;
/// Lines up to the account, without which there is no transfer; and all that there may be.
const MIN_LINES: usize = 7;
const MAX_LINES: usize = 12;
/// Most characters of a name, of the texts for payee and payer, and of a structured reference.
const NAME: usize = 70;
const TEXT: usize = 140;
const REFERENCE: usize = 35;
/// One billion: no transfer reaches it.
const BEYOND: Decimal = Decimal::from_parts(1_000_000_000, 0, 0, false, 0);

/// Reads the lines of a payload that begins with `BCD`.
pub(super) fn read_transfer(
    payload: &str,
    lines: &[&str],
    bytes: bool,
) -> Result<PaymentCode, PaymentCodeDefect> {
    let size = if bytes { payload.chars().count() } else { payload.len() };
    if size > MAX_BYTES {
        return Err(PaymentCodeDefect::TooLong);
    }
    if lines.iter().any(|line| line.chars().any(char::is_control)) {
        return Err(PaymentCodeDefect::Characters);
    }
    // An empty last line is the end of the one before.
    let lines = match lines {
        [rest @ .., ""] if rest.len() >= MIN_LINES => rest,
        all => all,
    };
    if !(MIN_LINES..=MAX_LINES).contains(&lines.len()) {
        return Err(PaymentCodeDefect::Lines);
    }
    let line = |at: usize| lines.get(at).copied().unwrap_or_default();
    let is_utf8 = line(2) == "1";
    if line(0) != "BCD"
        || !matches!(line(1), "001" | "002")
        || !matches!(line(2), "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8")
        || line(3) != "SCT"
    {
        return Err(PaymentCodeDefect::Header);
    }
    if bytes && is_utf8 {
        return Err(PaymentCodeDefect::Characters);
    }
    let bic = optional(line(4));
    if bic.is_some_and(|bic| !account::is_bic(bic)) || bic.is_none() && line(1) == "001" {
        return Err(PaymentCodeDefect::Bank);
    }
    if line(5).trim().is_empty() || line(5).chars().count() > NAME {
        return Err(PaymentCodeDefect::Party);
    }
    if !is_plain_iban(line(6)) {
        return Err(PaymentCodeDefect::Account);
    }
    let amount = optional(line(7)).map(read_euros).transpose()?;
    check_purpose(line(8))?;
    let reference = read_reference(line(9), line(10))?;
    if line(10).chars().count() > TEXT || line(11).chars().count() > NAME {
        return Err(PaymentCodeDefect::Message);
    }
    // Other sets than UTF-8 and ISO 8859-1 have other letters in the same places.
    let is_read = is_utf8 || line(2) == "2" || line(5).is_ascii();
    Ok(PaymentCode {
        scheme: PaymentScheme::Epc,
        iban: line(6).to_owned(),
        bic: bic.map(str::to_owned),
        creditor: is_read.then(|| line(5).trim().to_owned()),
        amount,
        currency: "EUR".to_owned(),
        reference,
    })
}

fn read_euros(text: &str) -> Result<Decimal, PaymentCodeDefect> {
    let amount = text.strip_prefix("EUR").ok_or(PaymentCodeDefect::Currency)?;
    let amount = read_amount(amount, 0..=2).ok_or(PaymentCodeDefect::Amount)?;
    if amount <= Decimal::ZERO || amount >= BEYOND {
        return Err(PaymentCodeDefect::Amount);
    }
    Ok(amount)
}

fn check_purpose(text: &str) -> Result<(), PaymentCodeDefect> {
    let is_purpose = text.len() <= 4
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if is_purpose { Ok(()) } else { Err(PaymentCodeDefect::Message) }
}

/// A structured reference or a text, never both.
fn read_reference(structured: &str, text: &str) -> Result<Option<String>, PaymentCodeDefect> {
    if structured.is_empty() {
        return Ok(None);
    }
    if !text.is_empty() {
        return Err(PaymentCodeDefect::Message);
    }
    let is_sound = match structured.starts_with("RF") {
        true => is_creditor_reference(structured),
        // The national references of some countries go there as well.
        false => structured.chars().count() <= REFERENCE,
    };
    if is_sound { Ok(Some(structured.to_owned())) } else { Err(PaymentCodeDefect::Reference) }
}

#[cfg(test)]
mod tests {
    use super::super::order::ChangedCode;
    use super::super::read_payment_code;
    use super::*;

    /// The example of the guidelines.
    const SAMPLE: [&str; 12] = [
        "BCD",
        "001",
        "1",
        "SCT",
        "BPOTBEB1",
        "Red Cross of Belgium",
        "BE72000000001616",
        "EUR1",
        "CHAR",
        "",
        "Urgency fund",
        "Sample EPC QR Code",
    ];

    fn read(lines: &[&str], end: &str) -> Result<PaymentCode, PaymentCodeDefect> {
        read_payment_code(&lines.join(end), false).unwrap()
    }

    fn with(changes: &[(usize, &str)]) -> Result<PaymentCode, PaymentCodeDefect> {
        let mut lines = SAMPLE;
        for (at, text) in changes {
            lines[*at] = text;
        }
        read(&lines, "\n")
    }

    #[test]
    fn the_example_of_the_guidelines_is_read_with_either_end_of_line_and_without_its_last_lines() {
        for end in ["\n", "\r\n"] {
            let code = read(&SAMPLE, end).unwrap();
            assert_eq!((code.iban.as_str(), code.amount), ("BE72000000001616", Some(1.into())));
            assert_eq!(code.bic.as_deref(), Some("BPOTBEB1"));
            assert_eq!(code.creditor.as_deref(), Some("Red Cross of Belgium"));
            assert_eq!((code.currency.as_str(), code.reference), ("EUR", None));
        }
        for count in 8..12 {
            assert_eq!(read(&SAMPLE[..count], "\n").unwrap().amount, Some(1.into()), "{count}");
        }
        assert_eq!(read(&SAMPLE[..7], "\n").unwrap().amount, None, "whoever pays fills it in");
    }

    #[test]
    fn each_rule_of_the_guidelines_that_is_broken_is_named() {
        use PaymentCodeDefect as D;
        let long = |count: usize| "x".repeat(count);
        let (seventy, more) = (long(70), long(71));
        let (text, longer) = (long(140), long(141));
        #[rustfmt::skip]
        let table: &[ChangedCode<'_>] = &[
            ("version 2 without a bank",     &[(1, "002"), (4, "")],         None),
            ("version 1 without a bank",     &[(4, "")],                     Some(D::Bank)),
            ("a bank that is none",          &[(4, "BPOT")],                 Some(D::Bank)),
            ("a third version",              &[(1, "003")],                  Some(D::Header)),
            ("a ninth character set",        &[(2, "9")],                    Some(D::Header)),
            ("a direct debit",               &[(3, "SDD")],                  Some(D::Header)),
            ("a tag in small letters",       &[(0, "bcd")],                  Some(D::Header)),
            ("a mark before the tag",        &[(0, "\u{feff}BCD")],          Some(D::Header)),
            ("no name",                      &[(5, " ")],                    Some(D::Party)),
            ("the longest name",             &[(5, &seventy)],               None),
            ("a longer name",                &[(5, &more)],                  Some(D::Party)),
            ("a digit of the account wrong", &[(6, "BE72000000001617")],     Some(D::Account)),
            ("an account with spaces",       &[(6, "BE72 0000 0000 1616")],  Some(D::Account)),
            ("the least amount",             &[(7, "EUR0.01")],              None),
            ("the largest amount",           &[(7, "EUR999999999.99")],      None),
            ("one decimal",                  &[(7, "EUR12.5")],              None),
            ("nothing to pay",               &[(7, "EUR0.00")],              Some(D::Amount)),
            ("more than the largest",        &[(7, "EUR1000000000")],        Some(D::Amount)),
            ("three decimals",               &[(7, "EUR1.005")],             Some(D::Amount)),
            ("a decimal comma",              &[(7, "EUR1,50")],              Some(D::Amount)),
            ("a point and nothing",          &[(7, "EUR1.")],                Some(D::Amount)),
            ("a negative amount",            &[(7, "EUR-1")],                Some(D::Amount)),
            ("a power of ten",               &[(7, "EUR1e3")],               Some(D::Amount)),
            ("leading zeros",                &[(7, "EUR0012")],              Some(D::Amount)),
            ("another currency",             &[(7, "CHF1")],                 Some(D::Currency)),
            ("no purpose",                   &[(8, "")],                     None),
            ("a purpose that is too long",   &[(8, "CHARX")],                Some(D::Message)),
            ("a sound reference",            &[(9, "RF18539007547034"), (10, "")], None),
            ("a reference misread",          &[(9, "RF18539007547035"), (10, "")], Some(D::Reference)),
            ("a national reference",         &[(9, "090933755493"), (10, "")], None),
            ("a reference and a text",       &[(9, "RF18539007547034")],     Some(D::Message)),
            ("the longest text",             &[(10, &text), (11, "")],       None),
            ("a longer text",                &[(10, &longer), (11, "")],     Some(D::Message)),
            ("a longer note to the payer",   &[(11, &more)],                 Some(D::Message)),
            ("a control character",          &[(5, "Red\u{0}Cross")],        Some(D::Characters)),
        ];
        for (name, changes, expected) in table {
            assert_eq!(with(changes).err(), *expected, "{name}");
        }
        assert_eq!(read(&SAMPLE[..6], "\n").err(), Some(D::Lines));
        assert_eq!(read(&[&SAMPLE[..], &["more"]].concat(), "\n").err(), Some(D::Lines));
        let rest = long(300);
        let huge = [&SAMPLE[..11], &[rest.as_str()]].concat();
        assert_eq!(read(&huge, "\n").err(), Some(D::TooLong));
    }

    #[test]
    fn bytes_are_letters_only_in_the_character_set_that_the_code_names() {
        let said = |set: &str| {
            let mut lines = SAMPLE;
            (lines[2], lines[5]) = (set, "Müller");
            read_payment_code(&lines.join("\n"), true).unwrap()
        };
        assert_eq!(said("1").err(), Some(PaymentCodeDefect::Characters), "it says UTF-8");
        assert_eq!(said("2").unwrap().creditor.as_deref(), Some("Müller"));
        assert_eq!(said("5").unwrap().creditor, None, "Cyrillic letters are not read");
    }

    #[test]
    fn what_does_not_begin_like_a_code_for_payments_is_none() {
        for payload in ["", "https://example.org/BCD", "WIFI:S:net;;", "BCDE\n001", "0200\n1\nSPC"]
        {
            assert_eq!(read_payment_code(payload, false), None, "{payload:?}");
        }
    }
}
