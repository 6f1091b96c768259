//! Values of elements, in the form of the data: found by local name within the namespaces of
//! e-invoices.
//!
//! A value that cannot be carried over is null and noted as a doubt, by its field: one bad date does
//! not cost the rest of the invoice.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::{Number, Value};
use time::Date;

use crate::notation::date;

/// How the namespaces begin whose elements count.
#[rustfmt::skip]
const FAMILIES: [&str; 8] = [
    "urn:un:unece:uncefact:data:standard:", "urn:ferd:CrossIndustryDocument:",
    "urn:oasis:names:specification:ubl:schema:xsd:", "http://crd.gov.pl/wzor/",
    "http://www.ebinterface.at/schema/",
    "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/",
    "http://www.fatturapa.gov.it/sdi/fatturapa/", "http://www.facturae.",
];

/// How the namespaces of roots begin whose schema leaves all other elements without a namespace:
/// `FatturaPA` and Facturae.
const BARE_FAMILIES: [&str; 3] = [
    "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/",
    "http://www.fatturapa.gov.it/sdi/fatturapa/",
    "http://www.facturae.",
];

/// The longest text that is carried, in bytes. The rest is cut off.
const MAX_TEXT: usize = 10_000;

/// Most different texts that are joined: each is compared with all before it.
const MAX_JOINED_TEXTS: usize = 200;

/// The longest code that is carried, in bytes.
const MAX_CODE: usize = 20;

/// Decimals that are carried: of a price in a currency, and a quantity.
const MAX_DECIMALS: u32 = 10;
/// Numbers with more decimals may be binary ones, written out with their error.
const MAX_EXACT_DECIMALS: u32 = 6;
/// The error of a binary number that was computed with, relative to the number.
const FLOAT_ERROR: Decimal = Decimal::from_parts(1, 0, 0, false, 12);
/// Decimals of the smallest coin.
const COIN_DECIMALS: u32 = 2;

/// The children of this local name. Elements without a namespace count where the root has none, and
/// where its schema gives them none.
pub(super) fn named_children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    let root = node.document().root_element().tag_name().namespace();
    let family = root.and_then(family_of);
    let is_bare =
        root.is_none_or(|root| BARE_FAMILIES.iter().any(|family| root.starts_with(family)));
    node.children().filter(move |child| {
        child.is_element()
            && child.tag_name().name() == name
            && is_of_family(*child, is_bare)
            && is_akin(*child, family)
    })
}

/// The family of a namespace. The two of CII are one.
fn family_of(namespace: &str) -> Option<usize> {
    FAMILIES.iter().position(|family| namespace.starts_with(family)).map(|at| at.max(1))
}

/// Whether an element belongs to the family of its root, if that has one.
fn is_akin(node: Node<'_, '_>, family: Option<usize>) -> bool {
    let own = node.tag_name().namespace().and_then(family_of);
    own.is_none() || family.is_none() || own == family
}

pub(super) fn is_of_family(node: Node<'_, '_>, is_bare: bool) -> bool {
    match node.tag_name().namespace() {
        Some(namespace) => FAMILIES.iter().any(|family| namespace.starts_with(family)),
        None => is_bare,
    }
}

/// Every element that a path of local names, `A/B/C`, leads to from `node`.
pub(super) fn elements_at<'a, 'i: 'a>(node: Node<'a, 'i>, path: &'a str) -> Vec<Node<'a, 'i>> {
    let mut reached = vec![node];
    for name in path.split('/') {
        reached = reached.into_iter().flat_map(|node| named_children(node, name)).collect();
    }
    reached
}

/// As [`elements_at`], below an element that may be absent.
pub(super) fn elements_below<'a, 'i: 'a>(
    node: Option<Node<'a, 'i>>,
    path: &'a str,
) -> Vec<Node<'a, 'i>> {
    node.map_or_else(Vec::new, |node| elements_at(node, path))
}

/// The first element at a path below `node`.
pub(super) fn element_at<'a, 'i: 'a>(node: Node<'a, 'i>, path: &'a str) -> Option<Node<'a, 'i>> {
    elements_at(node, path).into_iter().next()
}

/// The first element that one of the paths leads to; the paths are tried in order.
pub(super) fn first_element<'a, 'i: 'a>(
    node: Option<Node<'a, 'i>>,
    paths: &[&'a str],
) -> Option<Node<'a, 'i>> {
    let node = node?;
    paths.iter().find_map(|path| element_at(node, path))
}

/// The element at a path that every line has alike; `None`: one of them lacks it or has another.
pub(super) fn shared_element<'a, 'i: 'a>(
    node: Option<Node<'a, 'i>>,
    lines: &'a str,
    path: &'a str,
) -> Option<Node<'a, 'i>> {
    let own = elements_below(node, lines).into_iter().map(|line| element_at(line, path));
    let own: Option<Vec<Node<'a, 'i>>> = own.collect();
    let own = own?;
    let first = own.first().copied()?;
    own.iter().all(|other| whole_text(*other) == whole_text(first)).then_some(first)
}

/// The element's text, white space collapsed; `None` if there is none.
pub(super) fn plain_text(node: Option<Node<'_, '_>>) -> Option<String> {
    let node = node?;
    // A comment divides a text in two.
    let has_own = node.children().any(|child| child.is_text() && !is_blank(child));
    Some(whole_text(node)).filter(|text| has_own && !text.is_empty())
}

/// An identifier without its spaces and signs, in upper case.
fn compact_id(id: &str) -> String {
    id.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).collect()
}

fn is_blank(text: Node<'_, '_>) -> bool {
    text.text().is_none_or(|text| text.trim().is_empty())
}

/// The text of an element and of all within it, white space collapsed, without signs that nobody
/// sees.
pub(super) fn whole_text(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text).filter_map(|node| node.text());
    let seen: String = texts.flat_map(str::chars).filter(|c| !is_unseen(*c)).collect();
    let words: Vec<&str> = seen.split_whitespace().collect();
    words.join(" ")
}

/// Marks that print nothing: of the direction of text, spaces without a width, soft hyphens and tags.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// An attribute of the element, white space around it taken off; null if there is none.
pub(super) fn attribute_value(node: Option<Node<'_, '_>>, name: &str) -> Value {
    let text = node.and_then(|node| node.attribute(name)).map(str::trim);
    // A code, not a text: what is longer is none.
    let code = text.filter(|text| !text.is_empty() && text.len() <= MAX_CODE);
    code.map_or(Value::Null, Value::from)
}

/// The element's code as a text; null if there is none.
pub(super) fn code_value(node: Option<Node<'_, '_>>) -> Value {
    plain_text(node).filter(|code| code.len() <= MAX_CODE).into()
}

/// Whether a flag of `xsd:boolean` is set, in any of its usual spellings; `None` for others.
pub(super) fn flag_value(node: Option<Node<'_, '_>>) -> Option<bool> {
    flag_text(&plain_text(node)?)
}

/// As [`flag_value`], of a text.
pub(super) fn flag_text(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "y" => Some(true),
        "false" | "0" | "no" | "n" => Some(false),
        _ => None,
    }
}

/// The amount in this currency, or the one that names none; of several the first.
pub(super) fn amount_in_currency<'a, 'i>(
    amounts: &[Node<'a, 'i>],
    currency: &Value,
) -> Option<Node<'a, 'i>> {
    amounts.iter().copied().find(|amount| {
        let own = currency_of(*amount);
        own.is_none_or(|own| currency.as_str().is_some_and(|it| it.eq_ignore_ascii_case(own)))
    })
}

/// The currency that an amount names.
pub(super) fn currency_of<'a>(amount: Node<'a, '_>) -> Option<&'a str> {
    amount.attribute("currencyID").map(str::trim).filter(|own| !own.is_empty())
}

/// Reads values, and keeps what was doubtful about them.
#[derive(Debug, Default)]
pub(super) struct ValueReader {
    /// Words of lower-case letters, digits, `_` and `.`: `unread.due_date`.
    doubts: BTreeSet<String>,
}

impl ValueReader {
    /// Notes a doubt about the invoice.
    pub(super) fn note(&mut self, doubt: impl Into<String>) {
        self.doubts.insert(doubt.into());
    }

    /// The doubts, in alphabetical order.
    pub(super) fn into_doubts(self) -> Vec<String> {
        self.doubts.into_iter().collect()
    }

    /// The element's text, white space collapsed; null if there is none. A long one is cut.
    pub(super) fn text(&mut self, node: Option<Node<'_, '_>>) -> Value {
        plain_text(node).map_or(Value::Null, |text| Value::String(self.cut(text)))
    }

    /// As [`ValueReader::text`], of the first of several that has any.
    pub(super) fn first_text<const N: usize>(&mut self, nodes: [Option<Node<'_, '_>>; N]) -> Value {
        let mut texts = nodes.into_iter().filter_map(plain_text);
        texts.next().map_or(Value::Null, |text| Value::String(self.cut(text)))
    }

    /// The element's code of a currency; lower case counts.
    pub(super) fn currency(&mut self, node: Option<Node<'_, '_>>) -> Value {
        match plain_text(node) {
            Some(code) if code.len() == 3 => Value::String(code.to_ascii_uppercase()),
            _ => self.text(node),
        }
    }

    /// The different texts of several elements, ` / ` between them; null if there are none.
    pub(super) fn joined_text(&mut self, nodes: Vec<Node<'_, '_>>) -> Value {
        let mut texts: Vec<String> = Vec::new();
        for text in nodes.into_iter().filter_map(|node| plain_text(Some(node))) {
            if texts.len() >= MAX_JOINED_TEXTS {
                self.note("text_cut");
                break;
            }
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let whole = texts.join(" / ");
        if whole.is_empty() { Value::Null } else { Value::String(self.cut(whole)) }
    }

    fn cut(&mut self, mut text: String) -> String {
        if text.len() > MAX_TEXT {
            self.note("text_cut");
            let end = text.floor_char_boundary(MAX_TEXT - '…'.len_utf8());
            text.truncate(end);
            text.push('…');
        }
        text
    }

    /// The element's number for a field, null and noted if it is none.
    pub(super) fn number(&mut self, field: &str, node: Option<Node<'_, '_>>) -> Value {
        let Some(text) = plain_text(node) else { return Value::Null };
        self.noted(field, parse_decimal(&text).and_then(decimal_value))
    }

    /// The first of several identifiers of one party. Noted where they are not one.
    pub(super) fn only_id(
        &mut self,
        field: &str,
        ids: impl IntoIterator<Item = String>,
    ) -> Option<String> {
        let mut ids = ids.into_iter();
        let first = ids.next()?;
        if ids.any(|other| compact_id(&other) != compact_id(&first)) {
            self.note(format!("several.{field}"));
        }
        Some(first)
    }

    /// The amount of a field in the invoice's currency. Noted where it has another.
    pub(super) fn amount(
        &mut self,
        field: &str,
        amounts: &[Node<'_, '_>],
        currency: &Value,
    ) -> Value {
        let own = amount_in_currency(amounts, currency);
        if own.is_none() && !amounts.is_empty() {
            self.note(format!("currency_of.{field}"));
        }
        let alike = amounts
            .iter()
            .filter(|other| own.is_some_and(|own| currency_of(own) == currency_of(**other)));
        if alike.into_iter().any(|other| plain_text(Some(*other)) != plain_text(own)) {
            self.note(format!("several.{field}"));
        }
        self.number(field, own.or(amounts.first().copied()))
    }

    /// The element's day for a field, null and noted if it is none: `20260314` (UN/EDIFACT 2379
    /// format 102, and longer ones that begin like it) or `2026-03-14`, whatever time follows.
    pub(super) fn day(&mut self, field: &str, node: Option<Node<'_, '_>>) -> Value {
        let Some(text) = plain_text(node) else { return Value::Null };
        let day = parse_compact_date(&text).or_else(|| date::parse_iso(text.get(..10)?));
        self.noted(field, day.map(|day| Value::String(date::to_iso(day))))
    }

    fn noted(&mut self, field: &str, value: Option<Value>) -> Value {
        if value.is_none() {
            self.note(format!("unread.{field}"));
        }
        value.unwrap_or_default()
    }

    /// An address on one line: what is there of `lines` and their parts, then `postcode city`, then
    /// the country.
    /// Null if it is the country alone.
    pub(super) fn address<'a, 'i: 'a>(
        &mut self,
        lines: &[impl AsRef<[Option<Node<'a, 'i>>]>],
        [postcode, city, country]: [Option<Node<'a, 'i>>; 3],
    ) -> Value {
        let lines = lines.iter().map(|parts| {
            let parts = parts.as_ref().iter();
            let parts: Vec<String> = parts.filter_map(|part| plain_text(*part)).collect();
            parts.join(" ")
        });
        let mut parts: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        let town: Vec<String> = [postcode, city].into_iter().filter_map(plain_text).collect();
        parts.extend(Some(town.join(" ")).filter(|town| !town.is_empty()));
        if parts.is_empty() {
            return Value::Null;
        }
        parts.extend(plain_text(country));
        Value::String(self.cut(parts.join(", ")))
    }
}

/// A number (`xsd:decimal`) as the data has it; `None` for one that a JSON number would round.
pub(super) fn decimal_value(value: Decimal) -> Option<Value> {
    let value = without_noise(value);
    (COIN_DECIMALS..=MAX_DECIMALS).rev().find_map(|decimals| exact_value(value.round_dp(decimals)))
}

fn exact_value(value: Decimal) -> Option<Value> {
    let text = value.normalize().to_string();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    // The shortest form of a binary number gives up to 15 digits back as they were.
    let number = Number::from_f64(text.parse::<f64>().ok()?)?;
    let back = parse_decimal(&number.to_string())?;
    (back == value).then_some(Value::Number(number))
}

/// The number without the error of the binary one that it was written from: 412.79999999999995 is
/// 412.80.
fn without_noise(value: Decimal) -> Decimal {
    if value.normalize().scale() <= MAX_EXACT_DECIMALS {
        return value;
    }
    let error = value.abs().checked_mul(FLOAT_ERROR).unwrap_or_default();
    let mut rounded = (COIN_DECIMALS..=MAX_EXACT_DECIMALS).map(|decimals| value.round_dp(decimals));
    rounded.find(|near| (value - *near).abs() <= error).unwrap_or(value)
}

/// The number of a value, exactly.
pub(super) fn decimal_of(value: &Value) -> Option<Decimal> {
    parse_decimal(&value.as_number()?.to_string())
}

/// `xsd:decimal`: digits with a point and a sign, and the exponent that programs write behind binary
/// numbers. Decimals beyond the 28th are rounded.
pub(super) fn parse_decimal(text: &str) -> Option<Decimal> {
    if let Some((number, exponent)) = text.split_once(['e', 'E']) {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let is_short = matches!(digits.len(), 1..=2) && digits.bytes().all(|b| b.is_ascii_digit());
        let number = parse_decimal(number).filter(|_| is_short && !number.contains(['e', 'E']))?;
        return Decimal::from_scientific(&format!("{number}e{exponent}")).ok();
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plain || !digits.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    Decimal::from_str(if text.contains('.') { text.trim_end_matches('0') } else { text }).ok()
}

/// `CCYYMMDD`, `CCYYMMDDHHMM` or `CCYYMMDDHHMMSS`.
fn parse_compact_date(text: &str) -> Option<Date> {
    let is_known = matches!(text.len(), 8 | 12 | 14) && text.bytes().all(|b| b.is_ascii_digit());
    let (year, rest) = text.split_at_checked(4).filter(|_| is_known)?;
    let (month, rest) = rest.split_at_checked(2)?;
    date::parse_iso(&format!("{year}-{month}-{}", rest.get(..2)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_cut_at_its_bound_and_a_code_that_is_longer_is_none() {
        for (length, unit, cut, code) in [
            (MAX_TEXT, " C62 ", false, json!("C62")),
            (MAX_TEXT + 1, "  ", true, Value::Null),
            (0, "twenty-letters-long.", false, json!("twenty-letters-long.")),
            (0, "one-letter-more-here.", false, Value::Null),
        ] {
            let xml = format!("<a unit='{unit}'>{}</a>", "x".repeat(length));
            let tree = roxmltree::Document::parse(&xml).unwrap();
            let node = Some(tree.root_element());
            let mut reader = ValueReader::default();
            let text = reader.text(node);
            let bytes = text.as_str().map_or(0, str::len);
            assert_eq!(bytes, length.min(MAX_TEXT), "{length}");
            assert_eq!(reader.into_doubts(), vec!["text_cut"; usize::from(cut)], "{length}");
            assert_eq!(attribute_value(node, "unit"), code, "{unit}");
        }
    }

    #[test]
    fn a_number_is_carried_exactly_or_without_the_error_of_a_binary_one_or_not_at_all() {
        for (text, expected) in [
            ("229.0800", json!(229.08)),
            ("+0.10", json!(0.1)),
            ("-0.0001", json!(-0.0001)),
            ("123456789.1234", json!(123_456_789.123_4)),
            ("100000000000000000", json!(100_000_000_000_000_000_i64)),
            ("412.79999999999995", json!(412.8)),
            ("412.80000000000001", json!(412.8)),
            ("51.940000000000005", json!(51.94)),
            ("47.050400000000003", json!(47.0504)),
            ("0.33333333333333331", json!(0.333_333_333_3)),
            ("0.9333333333333333333333333333333333", json!(0.933_333_333_3)),
            ("464.740000000000000000000000000000000000", json!(464.74)),
            ("0.0000000000000000", json!(0)),
            ("7.", json!(7)),
            ("12345678901234567.89", Value::Null),
            ("111111111111111111111111111111", Value::Null),
            ("twenty", Value::Null),
            ("NaN", Value::Null),
            ("1e3", json!(1000)),
            ("4.6474E+2", json!(464.74)),
            ("-5e-3", json!(-0.005)),
            ("1e99", Value::Null),
            ("1e3e3", Value::Null),
            ("e3", Value::Null),
            ("1e", Value::Null),
            ("1e+-3", Value::Null),
            ("229,08", Value::Null),
            ("-", Value::Null),
            (".", Value::Null),
            ("2_29.08", Value::Null),
            ("--1", Value::Null),
        ] {
            let value = parse_decimal(text).and_then(decimal_value).unwrap_or_default();
            assert_eq!(value, expected, "{text}");
        }
    }
}
