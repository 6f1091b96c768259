//! Payloads by the rules of the guidelines, and by each of them broken.

use super::super::order::ChangedCode;
use super::super::{PaymentCodeDefect as D, read_payment_code};
use super::*;

/// A bill with a reference of 27 digits, as the guidelines draw theirs.
const BILL: [&str; 31] = [
    "SPC",
    "0200",
    "1",
    "CH4431999123000889012",
    "S",
    "Max Muster & Söhne",
    "Musterstrasse",
    "123",
    "8000",
    "Seldwyla",
    "CH",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "1949.75",
    "CHF",
    "S",
    "Simon Muster",
    "Musterstrasse",
    "1",
    "8000",
    "Seldwyla",
    "CH",
    "QRR",
    "210000000003139471430009017",
    "Order of 15.06.2020",
    "EPD",
];
/// Accounts without such a number: one for references of ISO 11649, one for none.
const PLAIN: &str = "CH5800791123000889012";

fn with(changes: &[(usize, &str)]) -> Result<PaymentCode, D> {
    let mut lines: Vec<&str> = BILL.to_vec();
    for (at, text) in changes {
        lines.resize(lines.len().max(at + 1), "");
        lines[*at] = text;
    }
    read_payment_code(&lines.join("\n"), false).unwrap()
}

#[test]
fn a_bill_is_read_with_either_end_of_line() {
    for end in ["\n", "\r\n"] {
        let bill = read_payment_code(&BILL.join(end), false).unwrap().unwrap();
        assert_eq!(bill.scheme, PaymentScheme::SwissBill);
        assert_eq!(bill.iban, "CH4431999123000889012");
        assert_eq!(bill.amount, Some("1949.75".parse().unwrap()));
        assert_eq!((bill.currency.as_str(), bill.bic), ("CHF", None));
        assert_eq!(bill.creditor.as_deref(), Some("Max Muster & Söhne"));
        assert_eq!(bill.reference.as_deref(), Some("210000000003139471430009017"));
    }
    assert_eq!(with(&[(18, "")]).unwrap().amount, None, "whoever pays fills it in");
    assert_eq!(with(&[(18, "0.00")]).unwrap().amount, None, "a notice is not to be paid");
}

#[test]
fn each_rule_of_the_guidelines_that_is_broken_is_named() {
    let long = |count: usize| "x".repeat(count);
    let (seventy, more) = (long(70), long(71));
    let (message, hundred) = (long(140), long(101));
    let creditor = [(3, PLAIN), (27, "SCOR"), (28, "RF18539007547034")];
    let none = [(3, PLAIN), (27, "NON"), (28, "")];
    let combined = [(4, "K"), (7, "8000 Seldwyla"), (8, ""), (9, "")];
    #[rustfmt::skip]
    let table: &[ChangedCode<'_>] = &[
        ("a reference of ISO 11649",        &creditor,                        None),
        ("no reference",                    &none,                            None),
        ("a combined address",              &combined,                        None),
        ("nobody named as the payer",       &[(20, ""), (21, ""), (22, ""), (23, ""), (24, ""), (25, ""), (26, "")], None),
        ("euros",                           &[(19, "EUR")],                   None),
        ("billing information",             &[(31, "//S1/10/1234")],          None),
        ("two alternatives",                &[(31, ""), (32, "eBill/B/x"), (33, "a")], None),
        ("Liechtenstein",                   &[(3, "LI7408806123456789012"), (27, "NON"), (28, "")], None),
        ("the largest amount",              &[(18, "999999999.99")],          None),
        ("an older version",                &[(1, "0100")],                   Some(D::Header)),
        ("another coding",                  &[(2, "2")],                      Some(D::Header)),
        ("a tag in small letters",          &[(0, "spc")],                    Some(D::Header)),
        ("an account of another country",   &[(3, "DE89370400440532013000")], Some(D::Account)),
        ("a digit of the account wrong",    &[(3, "CH4431999123000889013")],  Some(D::Account)),
        ("an account with spaces",          &[(3, "CH44 3199 9123 0008 8901 2")], Some(D::Account)),
        ("no creditor",                     &[(5, "")],                       Some(D::Party)),
        ("the longest name",                &[(5, &seventy)],                 None),
        ("a longer name",                   &[(5, &more)],                    Some(D::Party)),
        ("an address of no type",           &[(4, "X")],                      Some(D::Party)),
        ("no town",                         &[(9, "")],                       Some(D::Party)),
        ("no postal code",                  &[(8, "")],                       Some(D::Party)),
        ("a country of three letters",      &[(10, "CHE")],                   Some(D::Party)),
        ("a combined address with a town",  &[(4, "K")],                      Some(D::Party)),
        ("somebody behind the creditor",    &[(12, "Another")],               Some(D::Party)),
        ("half a payer",                    &[(25, "")],                      Some(D::Party)),
        ("one decimal",                     &[(18, "1949.7")],                Some(D::Amount)),
        ("no decimals",                     &[(18, "1949")],                  Some(D::Amount)),
        ("a decimal comma",                 &[(18, "1949,75")],               Some(D::Amount)),
        ("marks between thousands",         &[(18, "1'949.75")],              Some(D::Amount)),
        ("leading zeros",                   &[(18, "01949.75")],              Some(D::Amount)),
        ("a negative amount",               &[(18, "-1949.75")],              Some(D::Amount)),
        ("more than the largest",           &[(18, "1000000000.00")],         Some(D::Amount)),
        ("dollars",                         &[(19, "USD")],                   Some(D::Currency)),
        ("a reference of no type",          &[(27, "QR")],                    Some(D::Reference)),
        ("a digit of the reference wrong",  &[(28, "210000000003139471430009018")], Some(D::Reference)),
        ("a digit less",                    &[(28, "21000000000313947143000901")],  Some(D::Reference)),
        ("digits for a plain account",      &[(3, PLAIN)],                    Some(D::Reference)),
        ("a numbered account without them", &[(27, "NON"), (28, "")],         Some(D::Reference)),
        ("ISO 11649 misread",               &[creditor[0], creditor[1], (28, "RF18539007547035")], Some(D::Reference)),
        ("a reference where there is none", &[none[0], none[1], (28, "5")],   Some(D::Reference)),
        ("the longest message",             &[(29, &message)],                None),
        ("message and information",         &[(29, &message), (31, "//S1")],  Some(D::Message)),
        ("a long alternative",              &[(31, ""), (32, &hundred)],      Some(D::Message)),
        ("no trailer",                      &[(30, "")],                      Some(D::Lines)),
        ("a line too many",                 &[(34, "x")],                     Some(D::Lines)),
        ("letters that are not Latin",      &[(5, "Рога и копыта")],          Some(D::Characters)),
        ("a control character",             &[(5, "Max\u{7}")],               Some(D::Characters)),
    ];
    for (name, changes, expected) in table {
        assert_eq!(with(changes).err(), *expected, "{name}");
    }
}

#[test]
fn a_text_that_is_cut_or_huge_or_no_utf8_is_no_bill() {
    let short = BILL[..30].join("\n");
    assert_eq!(read_payment_code(&short, false).unwrap().err(), Some(D::Lines));
    assert_eq!(read_payment_code(&BILL.join("\n"), true).unwrap().err(), Some(D::Characters));
    let huge = [BILL.join("\n"), "x".repeat(1_000)].join("\n");
    assert_eq!(read_payment_code(&huge, false).unwrap().err(), Some(D::TooLong));
}
