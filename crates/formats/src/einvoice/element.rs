//! Values of elements, in the form of the data: found by local name within the namespaces of
//! e-invoices, exact or refused.

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::{Number, Value};
use time::Date;

use super::defect::EinvoiceDefect;
use crate::notation::date;
use crate::xml::XmlError;

/// How the namespaces begin whose elements count.
const FAMILIES: [&str; 3] = [
    "urn:un:unece:uncefact:data:standard:",
    "urn:ferd:CrossIndustryDocument:",
    "urn:oasis:names:specification:ubl:schema:xsd:",
];

/// The longest text that is carried, in bytes.
const MAX_TEXT: usize = 10_000;

/// The longest code that is carried, in bytes.
const MAX_CODE: usize = 20;

/// The children of this local name.
pub(super) fn named_children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| {
        let tag = child.tag_name();
        let namespace = tag.namespace().unwrap_or_default();
        child.is_element()
            && tag.name() == name
            && FAMILIES.iter().any(|family| namespace.starts_with(family))
    })
}

/// Every element that a path of local names, `A/B/C`, leads to from `node`.
pub(super) fn elements_at<'a, 'i: 'a>(node: Node<'a, 'i>, path: &'a str) -> Vec<Node<'a, 'i>> {
    let mut reached = vec![node];
    for name in path.split('/') {
        reached = reached.into_iter().flat_map(|node| named_children(node, name)).collect();
    }
    reached
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

/// The element's text, white space collapsed; null if there is none.
pub(super) fn text_value(node: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    Ok(plain_text(node)?.map_or(Value::Null, Value::String))
}

/// As [`text_value`], of the first of several that has any.
pub(super) fn first_text_value(nodes: [Option<Node<'_, '_>>; 2]) -> Result<Value, EinvoiceDefect> {
    let [preferred, other] = nodes;
    match text_value(preferred)? {
        Value::Null => text_value(other),
        value => Ok(value),
    }
}

/// As [`text_value`], not yet a value.
pub(super) fn plain_text(node: Option<Node<'_, '_>>) -> Result<Option<String>, EinvoiceDefect> {
    let Some(node) = node else { return Ok(None) };
    // A comment divides a text in two.
    let parts: String =
        node.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect();
    if parts.len() > MAX_TEXT {
        return Err(EinvoiceDefect::Xml(XmlError::TooLarge));
    }
    let words: Vec<&str> = parts.split_whitespace().collect();
    Ok(Some(words.join(" ")).filter(|text| !text.is_empty()))
}

/// The element's number (`xsd:decimal`), exactly.
///
/// # Errors
/// Not a number, or one that a JSON number would round.
pub(super) fn number_value(node: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    plain_text(node)?.map_or(Ok(Value::Null), |text| decimal_value(&text))
}

/// An attribute of the element, white space around it taken off; null if there is none.
pub(super) fn attribute_value(node: Option<Node<'_, '_>>, name: &str) -> Value {
    let text = node.and_then(|node| node.attribute(name)).map(str::trim);
    // A code, not a text: what is longer is none.
    let code = text.filter(|text| !text.is_empty() && text.len() <= MAX_CODE);
    code.map_or(Value::Null, Value::from)
}

/// A number (`xsd:decimal`), exactly.
///
/// # Errors
/// As [`number_value`].
pub(super) fn decimal_value(text: &str) -> Result<Value, EinvoiceDefect> {
    let value = parse_xsd_decimal(text).ok_or(EinvoiceDefect::Amount)?.normalize();
    let whole = value.to_string().parse::<i64>().ok().map(Number::from);
    // The shortest form of a binary number gives up to 15 digits back as they were.
    let number = whole.or_else(|| {
        let float = value.to_string().parse::<f64>().ok()?;
        let back = parse_xsd_decimal(&Number::from_f64(float)?.to_string())?;
        Number::from_f64(float).filter(|_| back.normalize() == value)
    });
    number.map(Value::Number).ok_or(EinvoiceDefect::Amount)
}

/// `xsd:decimal`: digits with a point and a sign, nothing else.
fn parse_xsd_decimal(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = Decimal::from_str_exact(text.strip_prefix('+').unwrap_or(text));
    value.ok().filter(|_| plain && digits.contains(|c: char| c.is_ascii_digit()))
}

/// The element's day: `20260314` (UN/EDIFACT 2379 format 102, and longer ones that begin like it)
/// or `2026-03-14`, whatever time follows.
///
/// # Errors
/// Anything else that is not empty.
pub(super) fn date_value(node: Option<Node<'_, '_>>) -> Result<Value, EinvoiceDefect> {
    let Some(text) = plain_text(node)? else { return Ok(Value::Null) };
    let read = parse_compact_date(&text).or_else(|| date::parse_iso(text.get(..10)?));
    read.map(|day| Value::String(date::to_iso(day))).ok_or(EinvoiceDefect::Date)
}

/// `CCYYMMDD`, `CCYYMMDDHHMM` or `CCYYMMDDHHMMSS`.
fn parse_compact_date(text: &str) -> Option<Date> {
    let is_known = matches!(text.len(), 8 | 12 | 14) && text.bytes().all(|b| b.is_ascii_digit());
    let (year, rest) = text.split_at_checked(4).filter(|_| is_known)?;
    let (month, rest) = rest.split_at_checked(2)?;
    date::parse_iso(&format!("{year}-{month}-{}", rest.get(..2)?))
}

/// An address on one line: what is there of `lines`, then `postcode city`, then the country.
pub(super) fn join_address(
    lines: &[Option<Node<'_, '_>>],
    postcode: Option<Node<'_, '_>>,
    city: Option<Node<'_, '_>>,
    country: Option<Node<'_, '_>>,
) -> Result<Value, EinvoiceDefect> {
    let mut parts = Vec::new();
    for line in lines {
        parts.extend(plain_text(*line)?);
    }
    let town: Vec<String> = plain_text(postcode)?.into_iter().chain(plain_text(city)?).collect();
    parts.extend(Some(town.join(" ")).filter(|town| !town.is_empty()));
    parts.extend(plain_text(country)?);
    let whole = parts.join(", ");
    Ok(if whole.is_empty() { Value::Null } else { Value::String(whole) })
}

/// Of several amounts in different currencies the one in `currency`, or the one that names none.
pub(super) fn amount_in_currency<'a, 'i>(
    amounts: Vec<Node<'a, 'i>>,
    currency: &Value,
) -> Option<Node<'a, 'i>> {
    amounts.into_iter().find(|amount| {
        let own = amount.attribute("currencyID");
        own.is_none() || own == currency.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_carried_up_to_its_bound_and_a_code_that_is_longer_is_none() {
        let read = |length: usize, unit: &str| {
            let xml = format!("<a unit='{unit}'>{}</a>", "x".repeat(length));
            let tree = roxmltree::Document::parse(&xml).unwrap();
            let node = Some(tree.root_element());
            (plain_text(node).is_ok(), attribute_value(node, "unit"))
        };
        for (length, unit, expected) in [
            (MAX_TEXT, " C62 ", (true, "C62".into())),
            (MAX_TEXT + 1, "  ", (false, Value::Null)),
            (0, "twenty-letters-long.", (true, "twenty-letters-long.".into())),
            (0, "one-letter-more-here.", (true, Value::Null)),
        ] {
            assert_eq!(read(length, unit), expected, "{length} {unit}");
        }
    }
}
