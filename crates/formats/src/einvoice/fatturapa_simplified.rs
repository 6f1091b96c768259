//! Italy's simplified invoice, format FSM10 (`Schema_VFSM10.xsd` of the Agenzia delle Entrate): up to
//! 400 EUR, without summary, quantities and terms of payment.
//!
//! Amounts include VAT, which stands beside each of them as an amount or as a rate: here lines are
//! without it, to the cent. Checked against the schema: the elements in [`MANDATORY`] and the values of
//! `TipoDocumento`.

use roxmltree::Node;
use rust_decimal::{Decimal, RoundingStrategy};

use super::amounts::{note_missing, sum_of, value_of};
use super::defect::EinvoiceDefect;
use super::element::{ValueReader, decimal_of, element_at, elements_below, plain_text};
use super::fatturapa::{category_of, only_body, read_head};
use super::fields::{InvoiceXmlFields, InvoiceXmlLine, TaxRow};

/// Namespace of the root.
pub(super) const NAMESPACE: &str = "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.0";

/// Elements without which the schema takes no invoice.
const MANDATORY: [&str; 6] = [
    "FatturaElettronicaHeader/DatiTrasmissione",
    "FatturaElettronicaHeader/CedentePrestatore/IdFiscaleIVA",
    "FatturaElettronicaHeader/CessionarioCommittente",
    "FatturaElettronicaBody/DatiGenerali/DatiGeneraliDocumento/TipoDocumento",
    "FatturaElettronicaBody/DatiGenerali/DatiGeneraliDocumento/Divisa",
    "FatturaElettronicaBody/DatiBeniServizi/Importo",
];

pub(super) fn parse_simplified(
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    note_missing(root, &MANDATORY, reader);
    let body = only_body(root)?;
    let mut fields = read_head(root, body, reader);
    let mut amounts = Vec::new();
    for item in elements_below(body, "DatiBeniServizi") {
        amounts.push(reader.number("line_items.amount", element_at(item, "Importo")));
        read_item(item, amounts.last().and_then(decimal_of), &mut fields, reader);
    }
    fields.total = value_of(sum_of(&amounts));
    fields.amount_due = fields.total.clone();
    fields.sum_taxes();
    Ok(fields)
}

/// Adds an item as a line and to the row of its tax.
fn read_item(
    item: Node<'_, '_>,
    gross: Option<Decimal>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let nature = plain_text(element_at(item, "Natura"));
    let stated = reader.number("line_items.tax_rate", element_at(item, "DatiIVA/Aliquota"));
    let rate = decimal_of(&stated).or(nature.as_ref().map(|_| Decimal::ZERO));
    let tax = decimal_of(&reader.number("taxes", element_at(item, "DatiIVA/Imposta")));
    let tax = tax.or_else(|| included_tax(gross?, rate?));
    if tax.is_none() {
        reader.note("gross_line_amounts");
    }
    let net = gross.map(|gross| gross.saturating_sub(tax.unwrap_or_default()));
    let line = InvoiceXmlLine {
        description: reader.text(element_at(item, "Descrizione")),
        tax_rate: value_of(rate),
        amount: value_of(net),
        ..InvoiceXmlLine::default()
    };
    fields.lines.push(line.into_value(reader));
    let law = plain_text(element_at(item, "RiferimentoNormativo"));
    let reason: Vec<String> = nature.iter().cloned().chain(law).collect();
    let row = TaxRow {
        rate: value_of(rate),
        base: value_of(net),
        amount: value_of(Some(tax.unwrap_or_default())),
        category: category_of(nature.as_deref()).into(),
        exemption_reason: Some(reason.join(" ")).filter(|_| nature.is_some()).into(),
    };
    fields.add_tax(row.into_value());
}

/// The tax within an amount that includes it, to the cent.
fn included_tax(gross: Decimal, rate: Decimal) -> Option<Decimal> {
    let whole = Decimal::ONE_HUNDRED.checked_add(rate)?;
    let tax = gross.checked_mul(rate)?.checked_div(whole)?;
    Some(tax.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero))
}
