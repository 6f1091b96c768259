//! Italy's `FatturaPA`, formats FPA12 and FPR12 (schema 1.2 to 1.2.3 of the Agenzia delle Entrate,
//! `Schema_del_file_xml_FatturaPA_v1.2.3.xsd`).
//!
//! The schema gives no totals but the optional `ImportoTotaleDocumento`: subtotal and VAT are the sums
//! of `DatiRiepilogo`. Stamp duty (`DatiBollo`) that is in the total but in no row of the summary
//! becomes a charge outside of VAT. The withholding (`DatiRitenuta`) and VAT that the buyer pays
//! himself (`EsigibilitaIVA` S) lower the amount due and are named in the terms of payment. One that
//! the buyer issues (`SoggettoEmittente` CC) is self-billed. A file with several bodies is several
//! invoices. Checked against the schema: the elements in
//! [`MANDATORY`] and the values of `TipoDocumento`.

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::Value;

use super::amounts::{column_sum, note_missing, share_of, sum_of, value_of};
use super::defect::EinvoiceDefect;
use super::element::{
    ValueReader, decimal_of, element_at, elements_at, elements_below, first_element, plain_text,
    shared_element,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, PaymentTerm, TaxRow, adjustment_value, day_after,
    self_billed, settle_terms,
};

/// Namespaces of the root: schema 1.2, and 1.1 and 1.0 before it, which differ in lists of codes.
pub(super) const NAMESPACES: [&str; 2] = [
    "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.2",
    "http://www.fatturapa.gov.it/sdi/fatturapa/v1.1",
];

/// Elements without which the schema takes no invoice.
const MANDATORY: [&str; 8] = [
    "FatturaElettronicaHeader/DatiTrasmissione",
    "FatturaElettronicaHeader/CedentePrestatore/DatiAnagrafici/IdFiscaleIVA",
    "FatturaElettronicaHeader/CedentePrestatore/Sede",
    "FatturaElettronicaHeader/CessionarioCommittente",
    "FatturaElettronicaBody/DatiGenerali/DatiGeneraliDocumento/TipoDocumento",
    "FatturaElettronicaBody/DatiGenerali/DatiGeneraliDocumento/Divisa",
    "FatturaElettronicaBody/DatiBeniServizi/DettaglioLinee",
    "FatturaElettronicaBody/DatiBeniServizi/DatiRiepilogo",
];

const GENERAL: &str = "DatiGenerali/DatiGeneraliDocumento";

pub(super) fn parse_fatturapa(
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    note_missing(root, &MANDATORY, reader);
    let body = only_body(root)?;
    let general = first_element(body, &[GENERAL]);
    let delivered = first_element(body, &["DatiGenerali/DatiTrasporto/DataOraConsegna"]);
    let [start, end] = ["DataInizioPeriodo", "DataFinePeriodo"]
        .map(|path| shared_element(body, "DatiBeniServizi/DettaglioLinee", path));
    let mut fields = InvoiceXmlFields {
        total: reader.number("total", first_element(general, &["ImportoTotaleDocumento"])),
        order_number: reader
            .text(first_element(body, &["DatiGenerali/DatiOrdineAcquisto/IdDocumento"])),
        delivery_date: reader.day("delivery_date", delivered),
        period: [reader.day("period_start", start), reader.day("period_end", end)],
        ..read_head(root, body, reader)
    };
    for line in elements_below(body, "DatiBeniServizi/DettaglioLinee") {
        fields.lines.push(invoice_line(line, reader));
    }
    read_taxes(body, &mut fields, reader);
    read_funds(general, &mut fields, reader);
    let after_tax = read_discounts(general, &mut fields, reader);
    let amounts = read_payments(body, &mut fields, reader);
    let (withheld, words) = read_withholding(body, reader);
    let paid = sum_of(&amounts).map(|paid| paid + withheld);
    let whole = settle_total(general, after_tax, paid, &mut fields, reader);
    fields.payment_terms = join_terms(words, body, reader);
    let due = whole.map(|whole| whole - withheld);
    fields.amount_due = settle_due(due, &amounts, reader);
    Ok(fields)
}

/// The body of a file.
///
/// # Errors
/// [`EinvoiceDefect::Batch`]: there are several.
pub(super) fn only_body<'a, 'i: 'a>(
    root: Node<'a, 'i>,
) -> Result<Option<Node<'a, 'i>>, EinvoiceDefect> {
    let bodies = elements_at(root, "FatturaElettronicaBody");
    if bodies.len() > 1 { Err(EinvoiceDefect::Batch) } else { Ok(bodies.first().copied()) }
}

/// Parts shared by the ordinary and the simplified invoice.
pub(super) fn read_head(
    root: Node<'_, '_>,
    body: Option<Node<'_, '_>>,
    reader: &mut ValueReader,
) -> InvoiceXmlFields {
    let general = first_element(body, &[GENERAL]);
    let header = element_at(root, "FatturaElettronicaHeader");
    let issuer = plain_text(first_element(header, &["SoggettoEmittente"]));
    let mut document_type = document_type(general, reader);
    if let Some(code) = document_type.as_str().filter(|_| issuer.as_deref() == Some("CC")) {
        document_type = self_billed(code).into();
    }
    let mut fields = InvoiceXmlFields {
        document_type,
        currency: reader.text(first_element(general, &["Divisa"])),
        number: reader.text(first_element(general, &["Numero"])),
        date: reader.day("invoice_date", first_element(general, &["Data"])),
        ..InvoiceXmlFields::default()
    };
    read_parties(header, &mut fields, reader);
    fields
}

/// The code of UNTDID 1001 for `TipoDocumento`. Documents that the buyer writes for his own VAT are
/// self-billed ones.
fn document_type(general: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    let code = match plain_text(first_element(general, &["TipoDocumento"])).as_deref() {
        Some("TD01" | "TD06" | "TD07" | "TD24" | "TD25" | "TD26") => "380",
        Some("TD02" | "TD03") => "386",
        Some("TD04" | "TD08") => "381",
        Some("TD05" | "TD09") => "383",
        Some(
            "TD16" | "TD17" | "TD18" | "TD19" | "TD20" | "TD21" | "TD22" | "TD23" | "TD27" | "TD28"
            | "TD29",
        ) => "389",
        _ => {
            reader.note("unread.document_type");
            return Value::Null;
        }
    };
    code.into()
}

fn read_parties(
    header: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let seller = first_element(header, &["CedentePrestatore"]);
    let buyer = first_element(header, &["CessionarioCommittente"]);
    let names = ["DatiAnagrafici/Anagrafica", "AltriDatiIdentificativi"];
    fields.supplier_name = party_name(first_element(seller, &names).or(seller));
    fields.buyer_name = party_name(first_element(buyer, &names));
    fields.supplier_vat_id = vat_id(seller);
    fields.buyer_vat_id = vat_id(buyer);
    let seat = first_element(seller, &["Sede"]);
    let street = ["Indirizzo", "NumeroCivico"].map(|name| [first_element(seat, &[name])]);
    fields.supplier_address = reader
        .address(&street, ["CAP", "Comune", "Nazione"].map(|name| first_element(seat, &[name])));
}

/// The company's name, or the person's first and last name.
fn party_name(names: Option<Node<'_, '_>>) -> Value {
    let parts = ["Denominazione", "Nome", "Cognome"];
    let parts: Vec<String> =
        parts.iter().filter_map(|name| plain_text(first_element(names, &[*name]))).collect();
    if parts.is_empty() { Value::Null } else { parts.join(" ").into() }
}

fn vat_id(party: Option<Node<'_, '_>>) -> Value {
    let ids = ["DatiAnagrafici/IdFiscaleIVA", "IdFiscaleIVA", "IdentificativiFiscali/IdFiscaleIVA"];
    let id = first_element(party, &ids);
    let country = plain_text(first_element(id, &["IdPaese"])).unwrap_or_default();
    match plain_text(first_element(id, &["IdCodice"])) {
        Some(number) if number.starts_with(&country) => number.into(),
        Some(number) => format!("{country}{number}").into(),
        None => Value::Null,
    }
}

fn invoice_line(line: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let one = Some(line);
    let mut found = InvoiceXmlLine {
        description: reader.text(first_element(one, &["Descrizione"])),
        article_number: reader.text(first_element(one, &["CodiceArticolo/CodiceValore"])),
        quantity: reader.number("line_items.quantity", first_element(one, &["Quantita"])),
        unit: reader.text(first_element(one, &["UnitaMisura"])),
        price: reader.number("line_items.unit_price", first_element(one, &["PrezzoUnitario"])),
        tax_rate: reader.number("line_items.tax_rate", first_element(one, &["AliquotaIVA"])),
        amount: reader.number("line_items.amount", first_element(one, &["PrezzoTotale"])),
        ..InvoiceXmlLine::default()
    };
    if element_at(line, "ScontoMaggiorazione").is_some() {
        found.take_price_from_amount();
    }
    found.into_value(reader)
}

fn read_taxes(body: Option<Node<'_, '_>>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    for summary in elements_below(body, "DatiBeniServizi/DatiRiepilogo") {
        let one = Some(summary);
        let nature = plain_text(first_element(one, &["Natura"]));
        let law = plain_text(first_element(one, &["RiferimentoNormativo"]));
        let rate = reader.number("taxes", first_element(one, &["AliquotaIVA"]));
        let reason: Vec<String> =
            nature.iter().cloned().chain(law.filter(|_| nature.is_some())).collect();
        let row = TaxRow {
            base: reader.number("taxes", first_element(one, &["ImponibileImporto"])),
            amount: reader.number("taxes", first_element(one, &["Imposta"])),
            category: category_of(nature.as_deref()).into(),
            exemption_reason: Some(reason.join(" ")).filter(|reason| !reason.is_empty()).into(),
            rate: rate.clone(),
        };
        fields.taxes.push(row.into_value());
        let rounding = reader.number("rounding_amount", first_element(one, &["Arrotondamento"]));
        if decimal_of(&rounding).is_some_and(|rounding| !rounding.is_zero()) {
            fields.charges.push(adjustment_value("Arrotondamento".into(), rate.clone(), rounding));
        }
        let extra = reader.number("charges", first_element(one, &["SpeseAccessorie"]));
        if decimal_of(&extra).is_some_and(|extra| !extra.is_zero()) {
            fields.charges.push(adjustment_value("Spese accessorie".into(), rate, extra));
        }
    }
    fields.sum_taxes();
}

/// The category (UNTDID 5305) of a `Natura`; without one the rate is a positive one.
pub(super) fn category_of(nature: Option<&str>) -> &'static str {
    match nature {
        None => "S",
        Some("N3.1") => "G",
        Some("N3.2") => "K",
        Some(code) if code.starts_with("N6") => "AE",
        Some(code) if code.starts_with("N3") || matches!(code, "N4" | "N5") => "E",
        Some(_) => "O",
    }
}

/// Contributions to pension funds, which are part of the tax basis.
fn read_funds(
    general: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    for fund in elements_below(general, "DatiCassaPrevidenziale") {
        let kind = plain_text(element_at(fund, "TipoCassa")).unwrap_or_default();
        fields.charges.push(adjustment_value(
            format!("Cassa previdenziale {kind}").trim_end().into(),
            reader.number("charges", element_at(fund, "AliquotaIVA")),
            reader.number("charges", element_at(fund, "ImportoContributoCassa")),
        ));
    }
}

/// Discounts and surcharges of the whole document: allowances and charges where the tax basis has
/// them. Elsewhere they apply to the total; their sum is given back. One that is stated as a percentage
/// alone is one of the lines, where the tax basis has that.
fn read_discounts(
    general: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) -> Decimal {
    let (mut allowances, mut charges) = (Vec::new(), Vec::new());
    let lines = value_of(column_sum(&fields.lines, "amount"));
    let mut is_computed = false;
    for part in elements_below(general, "ScontoMaggiorazione") {
        let mut amount = reader.number("allowances", element_at(part, "Importo"));
        if amount.is_null() {
            is_computed = true;
            let percent = reader.number("allowances", element_at(part, "Percentuale"));
            amount = share_of(&lines, &percent);
        }
        match plain_text(element_at(part, "Tipo")).as_deref() {
            Some("SC") => allowances.push(adjustment_value("Sconto".into(), Value::Null, amount)),
            _ => charges.push(adjustment_value("Maggiorazione".into(), Value::Null, amount)),
        }
    }
    let added = column_sum(&charges, "amount").unwrap_or_default()
        - column_sum(&allowances, "amount").unwrap_or_default();
    let before = [column_sum(&fields.lines, "amount"), column_sum(&fields.charges, "amount")];
    let net = before.into_iter().flatten().sum::<Decimal>() + added;
    if decimal_of(&fields.subtotal) == Some(net) {
        fields.allowances.extend(allowances);
        fields.charges.extend(charges);
        return Decimal::ZERO;
    }
    if is_computed {
        reader.note("unread.allowances");
        return Decimal::ZERO;
    }
    if !added.is_zero() {
        reader.note("discount_after_tax");
    }
    added
}

/// The total with VAT, and the amount due before payments: the document's total has stamp duty,
/// rounding and discounts after tax, and with some writers the withholding taken off. One that is not
/// stated is that of its parts; payments (`paid`) say whether stamp duty is one of them.
fn settle_total(
    general: Option<Node<'_, '_>>,
    after_tax: Decimal,
    paid: Option<Decimal>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) -> Option<Decimal> {
    fields.rounding_amount =
        reader.number("rounding_amount", first_element(general, &["Arrotondamento"]));
    let stamp = first_element(general, &["DatiBollo"]);
    let duty = reader.number("charges", first_element(stamp, &["ImportoBollo"]));
    let sum = sum_of([&fields.subtotal, &fields.vat_amount])?;
    let mut withheld = Vec::new();
    for part in elements_below(general, "DatiRitenuta/ImportoRitenuta") {
        withheld.push(reader.number("amount_due", Some(part)));
    }
    let withheld = sum_of(&withheld).unwrap_or_default();
    let rounding = decimal_of(&fields.rounding_amount).unwrap_or_default();
    // Since schema 1.2.1 the amount may be left out: it is 2.00 by law.
    let duty = stamp.map(|_| decimal_of(&duty).unwrap_or(Decimal::TWO)).unwrap_or_default();
    let stated = decimal_of(&fields.total).unwrap_or_else(|| {
        let parts = sum + after_tax + rounding;
        if paid == Some(parts + duty) {
            return parts + duty;
        }
        if !duty.is_zero() && paid != Some(parts) {
            reader.note("total_from_sums");
        }
        parts
    });
    for duty in [Decimal::ZERO, duty] {
        let beyond = stated - sum - duty;
        let usual = [Decimal::ZERO, rounding, after_tax, after_tax + rounding];
        let is_net = !usual.contains(&beyond) && beyond == after_tax - withheld;
        if !is_net && !usual.contains(&beyond) {
            continue;
        }
        if !duty.is_zero() {
            fields.add_untaxed_charge("Bollo".into(), value_of(Some(duty)));
        }
        fields.total = value_of(Some(sum + duty));
        if is_net {
            reader.note("total_after_withholding");
            return Some(stated + withheld);
        }
        break;
    }
    Some(stated)
}

/// The sum that the buyer does not pay to the seller, and what it is for: tax withheld, and VAT that
/// he pays himself.
fn read_withholding(
    body: Option<Node<'_, '_>>,
    reader: &mut ValueReader,
) -> (Decimal, Vec<String>) {
    let (mut withheld, mut words) = (Vec::new(), Vec::new());
    for part in elements_below(body, "DatiGenerali/DatiGeneraliDocumento/DatiRitenuta") {
        let amount = reader.number("amount_due", element_at(part, "ImportoRitenuta"));
        let kind = plain_text(element_at(part, "TipoRitenuta")).unwrap_or_default();
        words.push(format!("Ritenuta {kind}: {amount}"));
        withheld.push(amount);
    }
    for summary in elements_below(body, "DatiBeniServizi/DatiRiepilogo") {
        if plain_text(element_at(summary, "EsigibilitaIVA")).as_deref() == Some("S") {
            let amount = reader.number("amount_due", element_at(summary, "Imposta"));
            words.push(format!("Scissione dei pagamenti: {amount}"));
            withheld.push(amount);
        }
    }
    (sum_of(&withheld).unwrap_or_default(), words)
}

/// The terms in words: what is withheld, the days, and discounts for early payment, which the schema
/// states as amounts.
fn join_terms(
    mut words: Vec<String>,
    body: Option<Node<'_, '_>>,
    reader: &mut ValueReader,
) -> Value {
    for part in elements_below(body, "DatiPagamento/DettaglioPagamento") {
        if let Some(days) = plain_text(element_at(part, "GiorniTerminiPagamento")) {
            words.push(format!("{days} giorni"));
        }
        if let Some(discount) = plain_text(element_at(part, "ScontoPagamentoAnticipato")) {
            let until = plain_text(element_at(part, "DataLimitePagamentoAnticipato"));
            words.push(format!("Sconto {discount} entro {}", until.unwrap_or_default()));
            reader.note("unread.cash_discounts");
        }
    }
    if words.is_empty() { Value::Null } else { words.join(" / ").into() }
}

/// Due dates, accounts and reference; the amounts of the payments are given back.
fn read_payments(
    body: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) -> Vec<Value> {
    let (mut terms, mut amounts) = (Vec::new(), Vec::new());
    for part in elements_below(body, "DatiPagamento/DettaglioPagamento") {
        let amount = reader.number("amount_due", element_at(part, "ImportoPagamento"));
        let mut day = reader.day("due_date", element_at(part, "DataScadenzaPagamento"));
        if day.is_null() {
            let from = reader.day("due_date", element_at(part, "DataRiferimentoTerminiPagamento"));
            day = day_after(
                &from,
                &reader.number("due_date", element_at(part, "GiorniTerminiPagamento")),
            );
        }
        terms.push(PaymentTerm { day, amount: amount.clone(), ..PaymentTerm::default() });
        amounts.push(amount);
        let account = plain_text(element_at(part, "IBAN"));
        let [bic, code] =
            ["BIC", "CodicePagamento"].map(|name| reader.text(element_at(part, name)));
        fields.accounts.add_way(account.into(), bic, code);
    }
    let details = first_element(body, &["DatiPagamento/DettaglioPagamento"]);
    fields.payee_name = reader.text(first_element(details, &["Beneficiario"]));
    (fields.due_date, fields.instalments) = settle_terms(terms);
    amounts
}

/// The amount due: what the total leaves, which the payments have to make together, or each of them
/// where they are alternatives.
fn settle_due(due: Option<Decimal>, amounts: &[Value], reader: &mut ValueReader) -> Value {
    let sum = sum_of(amounts);
    let agrees = sum.is_none() || sum == due;
    if !agrees && !amounts.iter().any(|amount| decimal_of(amount) == due) {
        reader.note("payments_are_not_due_amount");
        return value_of(sum);
    }
    if !agrees {
        reader.note("alternative_payments");
    }
    value_of(due)
}
