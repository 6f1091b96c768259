//! Doubts about an XML as a whole: content that programs read in different ways, and amounts in a
//! currency that is not the invoice's. They are found without knowing what an element means.

use roxmltree::Node;
use serde_json::Value;

use super::element::{ValueReader, currency_of, is_of_family};

/// Amounts that have the invoice's currency, those of its totals apart: their reader looks itself.
#[rustfmt::skip]
const SINGLE_AMOUNTS: [&str; 9] = [
    "PriceAmount", "Amount", "TaxableAmount", "ChargeAmount", "ActualAmount", "BasisAmount",
    "CalculatedAmount", "LineTotalAmount", "AppliedAmount",
];

/// Elements that hold what other programs add.
const EXTENSIONS: &str = "UBLExtensions";

/// Notes text beside elements in one element (`mixed_content`), values of elements that say they have
/// none (`nil_with_value`), and marks that turn the order of letters around (`text_direction`).
pub(super) fn note_ambiguous_content(root: Node<'_, '_>, reader: &mut ValueReader) {
    for node in root.descendants() {
        if node.is_text() {
            if node.text().is_some_and(|text| text.contains(turns_letters)) {
                reader.note("text_direction");
            }
            continue;
        }
        if !node.is_element() || !is_of_family(node, true) {
            continue;
        }
        let has_text = node.children().any(|child| {
            child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty())
        });
        if has_text && node.children().any(|child| child.is_element()) {
            reader.note("mixed_content");
        }
        let mut attributes = node.attributes();
        if has_text
            && attributes.any(|it| it.name() == "nil" && matches!(it.value().trim(), "true" | "1"))
        {
            reader.note("nil_with_value");
        }
    }
}

/// Marks behind which letters are shown from right to left, whatever they are.
fn turns_letters(c: char) -> bool {
    matches!(c, '\u{202b}' | '\u{202e}' | '\u{2067}')
}

/// Notes prices, allowances and parts of the tax in another currency than the invoice's. A tax total
/// that is stated in another one as a whole is none of it.
pub(super) fn note_foreign_amounts(root: Node<'_, '_>, currency: &Value, reader: &mut ValueReader) {
    let Some(currency) = currency.as_str() else { return };
    let is_foreign = root.descendants().filter(|node| node.is_element()).any(|node| {
        let own = currency_of(node).filter(|own| !own.eq_ignore_ascii_case(currency));
        own.is_some_and(|own| has_invoice_currency(node) && !is_of_other_total(node, own))
    });
    if is_foreign {
        reader.note("currency_of.amounts");
    }
}

/// Whether an amount is one of [`SINGLE_AMOUNTS`], or a tax of the breakdown.
fn has_invoice_currency(node: Node<'_, '_>) -> bool {
    let name = node.tag_name().name();
    let parent = node.parent_element().map(|parent| parent.tag_name().name());
    let is_added = node.ancestors().any(|it| it.tag_name().name() == EXTENSIONS);
    let is_part = name == "TaxAmount" && parent == Some("TaxSubtotal");
    !is_added && (is_part || SINGLE_AMOUNTS.contains(&name))
}

/// Whether an amount is part of a tax total that has its currency.
fn is_of_other_total(node: Node<'_, '_>, own: &str) -> bool {
    let total = node.ancestors().find(|it| it.tag_name().name().ends_with("TaxTotal"));
    let amount = total.and_then(|total| {
        total.children().find(|child| child.is_element() && child.tag_name().name() == "TaxAmount")
    });
    amount.is_some_and(|amount| currency_of(amount) == Some(own))
}
