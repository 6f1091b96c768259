//! Spain's Facturae 3.2, 3.2.1 and 3.2.2 (`Facturaev3_2_2.xsd` of the Ministerio de Hacienda).
//!
//! `InvoiceTotal` is the total less the taxes withheld (IRPF): the total with VAT is the tax basis
//! and the taxes on it, and what was withheld lowers the amount due, named in the terms of payment.
//! A surcharge of equivalence is part of its rate. A correction by differences that takes money back
//! becomes a credit note with the signs turned around. A file with several invoices is refused.
//! Checked against the schema: the elements in [`MANDATORY`] and the values of `InvoiceClass`.

use std::collections::BTreeSet;

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::Value;

use super::amounts::{note_missing, sum_of, value_of};
use super::defect::EinvoiceDefect;
use super::element::{
    ValueReader, decimal_of, element_at, elements_at, elements_below, first_element, plain_text,
    shared_element,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, PaymentTerm, TaxRow, adjustment_value, self_billed,
    settle_terms,
};

/// Namespaces of the root: 3.2, 3.2.1 and 3.2.2.
pub(super) const NAMESPACES: [&str; 3] = [
    "http://www.facturae.es/Facturae/2009/v3.2/Facturae",
    "http://www.facturae.es/Facturae/2014/v3.2.1/Facturae",
    "http://www.facturae.gob.es/formato/Versiones/Facturaev3_2_2.xml",
];

/// Elements without which the schema takes no invoice.
#[rustfmt::skip]
const MANDATORY: [&str; 8] = [
    "FileHeader/SchemaVersion", "Parties/SellerParty/TaxIdentification",
    "Parties/BuyerParty/TaxIdentification", "Invoices/Invoice/InvoiceHeader/InvoiceNumber",
    "Invoices/Invoice/InvoiceHeader/InvoiceClass", "Invoices/Invoice/InvoiceIssueData/IssueDate",
    "Invoices/Invoice/TaxesOutputs", "Invoices/Invoice/InvoiceTotals/InvoiceTotal",
];

/// Tolerance between a stated amount and the sum of its parts: rounding.
const ONE_CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

pub(super) fn parse_facturae(
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    note_missing(root, &MANDATORY, reader);
    let invoices = elements_at(root, "Invoices/Invoice");
    if invoices.len() > 1 {
        return Err(EinvoiceDefect::Batch);
    }
    let invoice = invoices.first().copied();
    let issued = first_element(invoice, &["InvoiceIssueData"]);
    let mut fields = InvoiceXmlFields {
        number: invoice_number(first_element(invoice, &["InvoiceHeader"])),
        date: reader.day("invoice_date", first_element(issued, &["IssueDate"])),
        delivery_date: reader.day(
            "delivery_date",
            first_element(issued, &["OperationDate"])
                .or_else(|| shared_element(invoice, "Items/InvoiceLine", "TransactionDate")),
        ),
        period: [
            reader.day("period_start", first_element(issued, &["InvoicingPeriod/StartDate"])),
            reader.day("period_end", first_element(issued, &["InvoicingPeriod/EndDate"])),
        ],
        currency: reader.text(first_element(issued, &["InvoiceCurrencyCode"])),
        order_number: reader
            .text(first_element(invoice, &["Items/InvoiceLine/ReceiverTransactionReference"])),
        ..InvoiceXmlFields::default()
    };
    read_parties(first_element(Some(root), &["Parties"]), &mut fields, reader);
    for line in elements_below(invoice, "Items/InvoiceLine") {
        fields.lines.push(invoice_line(line, reader));
    }
    read_taxes(invoice, &mut fields, reader);
    read_totals(first_element(invoice, &["InvoiceTotals"]), &mut fields, reader);
    check_batch(root, invoice, reader);
    read_payment(root, invoice, &mut fields, reader);
    settle_class(first_element(invoice, &["InvoiceHeader"]), &mut fields, reader);
    Ok(fields)
}

/// Series and number together identify an invoice.
fn invoice_number(header: Option<Node<'_, '_>>) -> Value {
    let number = plain_text(first_element(header, &["InvoiceNumber"]));
    let series = plain_text(first_element(header, &["InvoiceSeriesCode"]));
    match (series, number) {
        (Some(series), Some(number)) if !number.starts_with(&series) => {
            let is_divided = !series.ends_with(char::is_alphanumeric)
                || !number.starts_with(char::is_alphanumeric);
            format!("{series}{}{number}", if is_divided { "" } else { "-" }).into()
        }
        (_, number) => number.into(),
    }
}

fn read_parties(
    parties: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let seller = first_element(parties, &["SellerParty"]);
    let buyer = first_element(parties, &["BuyerParty"]);
    fields.supplier_name = party_name(seller);
    fields.trading_name = reader.text(first_element(seller, &["LegalEntity/TradeName"]));
    fields.buyer_name = party_name(buyer);
    fields.supplier_vat_id = vat_id(seller);
    fields.buyer_vat_id = vat_id(buyer);
    let addresses = [
        "LegalEntity/AddressInSpain",
        "LegalEntity/OverseasAddress",
        "Individual/AddressInSpain",
        "Individual/OverseasAddress",
    ];
    let address = first_element(seller, &addresses);
    let town = first_element(address, &["Town", "PostCodeAndTown"]);
    fields.supplier_address = reader.address(
        &[[first_element(address, &["Address"])]],
        [first_element(address, &["PostCode"]), town, first_element(address, &["CountryCode"])],
    );
}

/// The company's name, or the person's first name and surnames.
fn party_name(party: Option<Node<'_, '_>>) -> Value {
    let paths = [
        "LegalEntity/CorporateName",
        "Individual/Name",
        "Individual/FirstSurname",
        "Individual/SecondSurname",
    ];
    let parts: Vec<String> =
        paths.iter().filter_map(|path| plain_text(first_element(party, &[*path]))).collect();
    if parts.is_empty() { Value::Null } else { parts.join(" ").into() }
}

/// The tax number of a resident behind `ES`, that of a resident of the Union as it is.
fn vat_id(party: Option<Node<'_, '_>>) -> Value {
    let ids = first_element(party, &["TaxIdentification"]);
    let number = plain_text(first_element(ids, &["TaxIdentificationNumber"]));
    let residence = plain_text(first_element(ids, &["ResidenceTypeCode"])).unwrap_or_default();
    match (residence.as_str(), number) {
        ("R", Some(number)) if !number.starts_with("ES") => format!("ES{number}").into(),
        ("R" | "U", Some(number)) => number.into(),
        _ => Value::Null,
    }
}

fn invoice_line(line: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let one = Some(line);
    let mut found = InvoiceXmlLine {
        description: reader.text(first_element(one, &["ItemDescription"])),
        article_number: reader.text(first_element(one, &["ArticleCode"])),
        quantity: reader.number("line_items.quantity", first_element(one, &["Quantity"])),
        unit: line_unit(one),
        price: reader.number("line_items.unit_price", first_element(one, &["UnitPriceWithoutTax"])),
        tax_rate: line_rate(one, reader),
        amount: reader.number("line_items.amount", first_element(one, &["GrossAmount"])),
        ..InvoiceXmlLine::default()
    };
    if element_at(line, "DiscountsAndRebates").or(element_at(line, "Charges")).is_some() {
        found.take_price_from_amount();
    }
    let field = "line_items.amount";
    let cost = decimal_of(&reader.number(field, element_at(line, "TotalCost")));
    let off = sum_below(one, "DiscountsAndRebates/Discount/DiscountAmount", field, reader);
    let added = sum_below(one, "Charges/Charge/ChargeAmount", field, reader).unwrap_or_default();
    let net = cost.map(|cost| cost.saturating_sub(off.unwrap_or_default()).saturating_add(added));
    let net = net.zip(decimal_of(&found.amount));
    if net.is_some_and(|(net, amount)| net.saturating_sub(amount).abs() > ONE_CENT) {
        reader.note("sum.line_items");
    }
    found.into_value(reader)
}

/// The units of `UnitOfMeasure`, `01` first, by the codes of UN/ECE Recommendations 20 and 21 that the
/// schema gives them, else by their names. `05` is another unit.
const UNITS: &str = "C62 HUR KGM LTR - BX DS BA JY BG CO BO CI Tetra-Brik CLT CMT BI DZN \
                     CS DJ GRM KMT CA BH MTR MMT 6-Pack PK Portion RO EN TB MTQ SEC WTT KWH";

fn line_unit(line: Option<Node<'_, '_>>) -> Value {
    let code = plain_text(first_element(line, &["UnitOfMeasure"]));
    let index = code.and_then(|code| code.parse::<usize>().ok()?.checked_sub(1));
    index.and_then(|index| UNITS.split(' ').nth(index)).filter(|unit| *unit != "-").into()
}

/// The rate of a line with its surcharge, as in the breakdown.
fn line_rate(line: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    let tax = first_element(line, &["TaxesOutputs/Tax"]);
    let [rate, surcharge] = ["TaxRate", "EquivalenceSurcharge"]
        .map(|name| reader.number("line_items.tax_rate", first_element(tax, &[name])));
    value_of(sum_of([&rate, &surcharge]))
}

fn read_taxes(
    invoice: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let untaxed = untaxed_category(invoice, reader);
    for tax in elements_below(invoice, "TaxesOutputs/Tax") {
        let rate = reader.number("taxes", element_at(tax, "TaxRate"));
        let amount = reader.number("taxes", element_at(tax, "TaxAmount/TotalAmount"));
        let surcharge = reader.number("taxes", element_at(tax, "EquivalenceSurcharge"));
        let added =
            reader.number("taxes", element_at(tax, "EquivalenceSurchargeAmount/TotalAmount"));
        let has_surcharge = decimal_of(&surcharge).is_some_and(|rate| !rate.is_zero());
        let reason = format!("recargo de equivalencia {surcharge} %");
        let is_zero = decimal_of(&rate).is_some_and(|rate| rate.is_zero());
        let (special, why) = if is_zero { untaxed.clone() } else { (None, Value::Null) };
        let category = match plain_text(element_at(tax, "TaxTypeCode")).as_deref() {
            Some(_) if special.is_some() => special,
            Some("01") if is_zero => Some("Z"),
            Some("01") => Some("S"),
            Some("02") => Some("M"),
            Some("03") => Some("L"),
            _ => None,
        };
        let row = TaxRow {
            rate: value_of(sum_of([&rate, &surcharge])),
            base: reader.number("taxes", element_at(tax, "TaxableBase/TotalAmount")),
            amount: value_of(sum_of([&amount, &added])),
            category: category.into(),
            exemption_reason: Some(reason).filter(|_| has_surcharge).map_or(why, Value::from),
        };
        fields.taxes.push(row.into_value());
    }
}

/// Category and reason of the lines without tax (`SpecialTaxableEvent`): exempt or not subject.
/// `None` without any; differing ones are noted.
fn untaxed_category(
    invoice: Option<Node<'_, '_>>,
    reader: &mut ValueReader,
) -> (Option<&'static str>, Value) {
    let events = elements_below(invoice, "Items/InvoiceLine/SpecialTaxableEvent");
    let codes = events
        .iter()
        .map(|event| plain_text(element_at(*event, "SpecialTaxableEventCode")).unwrap_or_default());
    let codes: BTreeSet<String> = codes.collect();
    let reason = events.first().and_then(|it| element_at(*it, "SpecialTaxableEventReason"));
    let category = match codes.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => return (None, Value::Null),
        ["01"] => "E",
        ["02"] => "O",
        _ => {
            reader.note("tax_category");
            return (None, Value::Null);
        }
    };
    let lines = elements_below(invoice, "Items/InvoiceLine").into_iter();
    let untaxed = lines.filter(|line| {
        decimal_of(&line_rate(Some(*line), reader)).is_none_or(|rate| rate.is_zero())
    });
    if untaxed.count() != events.len() {
        reader.note("tax_category");
    }
    (Some(category), reader.text(reason))
}

fn read_totals(
    totals: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    for (field, path, value) in [
        ("subtotal", "TotalGrossAmountBeforeTaxes", &mut fields.subtotal),
        ("vat_amount", "TotalTaxOutputs", &mut fields.vat_amount),
        ("total", "InvoiceTotal", &mut fields.total),
        ("paid_amount", "TotalPaymentsOnAccount", &mut fields.paid_amount),
        ("amount_due", "TotalExecutableAmount", &mut fields.amount_due),
    ] {
        *value = reader.number(field, first_element(totals, &[path]));
    }
    let withheld = reader.number("total", first_element(totals, &["TotalTaxesWithheld"]));
    if decimal_of(&withheld).is_some_and(|withheld| !withheld.is_zero()) {
        // Some writers do not take it off.
        let is_whole = decimal_of(&fields.total) == sum_of([&fields.subtotal, &fields.vat_amount]);
        if !is_whole {
            fields.total = value_of(sum_of([&fields.total, &withheld]));
        }
        fields.payment_terms = format!("Impuestos retenidos: {withheld}").into();
    }
    for discount in elements_below(totals, "GeneralDiscounts/Discount") {
        fields.allowances.push(adjustment_value(
            reader.text(element_at(discount, "DiscountReason")),
            Value::Null,
            reader.number("allowances", element_at(discount, "DiscountAmount")),
        ));
    }
    for charge in elements_below(totals, "GeneralSurcharges/Charge") {
        fields.charges.push(adjustment_value(
            reader.text(element_at(charge, "ChargeReason")),
            Value::Null,
            reader.number("charges", element_at(charge, "ChargeAmount")),
        ));
    }
    check_sums(totals, fields, reader);
    for (path, doubt) in [
        ("Subsidies", "subsidies_in_amount_due"),
        ("TotalReimbursableExpenses", "expenses_in_amount_due"),
        ("TotalFinancialExpenses", "expenses_in_amount_due"),
        ("AmountsWithheld", "withheld_from_amount_due"),
    ] {
        let amounts = [path.to_owned(), format!("{path}/WithholdingAmount")];
        let [own, inner] = amounts.map(|path| plain_text(first_element(totals, &[path.as_str()])));
        let text = own.or(inner).unwrap_or_default();
        let is_zero = !text.is_empty() && text.chars().all(|c| matches!(c, '0' | '.'));
        if first_element(totals, &[path]).is_some() && !is_zero {
            reader.note(doubt);
        }
    }
}

/// Notes totals that are not the sums of their parts; payments on account without one are added up.
fn check_sums(
    totals: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    for (path, parts, field) in [
        ("TotalGeneralDiscounts", "GeneralDiscounts/Discount/DiscountAmount", "allowances"),
        ("TotalGeneralSurcharges", "GeneralSurcharges/Charge/ChargeAmount", "charges"),
        (
            "TotalPaymentsOnAccount",
            "PaymentsOnAccount/PaymentOnAccount/PaymentOnAccountAmount",
            "paid_amount",
        ),
    ] {
        let stated = decimal_of(&reader.number(field, first_element(totals, &[path])));
        let parts = sum_below(totals, parts, field, reader);
        if stated.zip(parts).is_some_and(|(stated, parts)| stated != parts) {
            reader.note(format!("sum.{field}"));
        }
        if field == "paid_amount" && stated.is_none() {
            fields.paid_amount = value_of(parts);
        }
    }
    let [total, open, withheld] = ["InvoiceTotal", "TotalOutstandingAmount", "TotalTaxesWithheld"]
        .map(|path| decimal_of(&reader.number("amount_due", first_element(totals, &[path]))));
    let paid = decimal_of(&fields.paid_amount).unwrap_or_default();
    let is_subsidised = first_element(totals, &["Subsidies"]).is_some();
    let is_rest = total.zip(open).is_none_or(|(total, open)| {
        let rest = total.saturating_sub(paid).saturating_sub(open);
        // Some writers take the taxes withheld off here.
        [Decimal::ZERO, withheld.unwrap_or_default()]
            .into_iter()
            .any(|off| rest.saturating_sub(off).abs() <= ONE_CENT)
    });
    if !is_rest && !is_subsidised {
        reader.note("sum.amount_due");
    }
}

/// The sum of the numbers at a path; `None` if there are none.
fn sum_below(
    node: Option<Node<'_, '_>>,
    path: &str,
    field: &'static str,
    reader: &mut ValueReader,
) -> Option<Decimal> {
    let found = elements_below(node, path).into_iter();
    let parts: Vec<Value> = found.map(|part| reader.number(field, Some(part))).collect();
    sum_of(&parts)
}

/// Notes file totals that differ from those of its only invoice.
fn check_batch(root: Node<'_, '_>, invoice: Option<Node<'_, '_>>, reader: &mut ValueReader) {
    let batch = element_at(root, "FileHeader/Batch");
    for (field, of_file, of_invoice) in [
        ("total", "TotalInvoicesAmount/TotalAmount", "InvoiceTotals/InvoiceTotal"),
        ("amount_due", "TotalExecutableAmount/TotalAmount", "InvoiceTotals/TotalExecutableAmount"),
    ] {
        let stated = reader.number(field, first_element(batch, &[of_file]));
        let own = reader.number(field, first_element(invoice, &[of_invoice]));
        if decimal_of(&stated).zip(decimal_of(&own)).is_some_and(|(stated, own)| stated != own) {
            reader.note(format!("several.{field}"));
        }
    }
    let currency = plain_text(first_element(batch, &["InvoiceCurrencyCode"]));
    let own = plain_text(first_element(invoice, &["InvoiceIssueData/InvoiceCurrencyCode"]));
    if currency.is_some() && own.is_some() && currency != own {
        reader.note("several.currency");
    }
}

/// Instalments and accounts; those of a factor first, because the debt is his.
fn read_payment(
    root: Node<'_, '_>,
    invoice: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let factoring = first_element(Some(root), &["FileHeader/FactoringAssignmentData"]);
    let assignee = first_element(factoring, &["Assignee"]);
    if assignee.is_some() {
        fields.payee_name = party_name(assignee);
    }
    let assigned = elements_below(factoring, "PaymentDetails/Installment").into_iter();
    let own = elements_below(invoice, "PaymentDetails/Installment");
    let mut terms = Vec::new();
    for part in assigned.chain(own.iter().copied()) {
        let account = first_element(
            Some(part),
            &["AccountToBeCredited/IBAN", "AccountToBeCredited/AccountNumber"],
        );
        let [bic, reference] = ["AccountToBeCredited/BIC", "PaymentReconciliationReference"]
            .map(|path| reader.text(element_at(part, path)));
        fields.accounts.add_way(plain_text(account).into(), bic, reference);
    }
    for part in &own {
        let day = reader.day("due_date", element_at(*part, "InstallmentDueDate"));
        let amount = reader.number("instalments", element_at(*part, "InstallmentAmount"));
        terms.push(PaymentTerm { day, amount, ..PaymentTerm::default() });
    }
    let sum = sum_of(terms.iter().map(|term| &term.amount));
    if sum.zip(decimal_of(&fields.amount_due)).is_some_and(|(sum, due)| sum != due) {
        reader.note("sum.instalments");
    }
    (fields.due_date, fields.instalments) = settle_terms(terms);
}

/// Kind and code of the document, and its signs.
fn settle_class(
    header: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let class = plain_text(first_element(header, &["InvoiceClass"])).unwrap_or_default();
    let method = plain_text(first_element(header, &["Corrective/CorrectionMethod"]));
    let total = decimal_of(&fields.total).unwrap_or_default();
    let is_negative = total.is_sign_negative() && !total.is_zero();
    if matches!(class.as_str(), "CO" | "CR" | "CC") {
        reader.note("copy");
    }
    let kind = plain_text(first_element(header, &["InvoiceDocumentType"]));
    let is_self_billed = kind.as_deref() == Some("AF");
    let code = match class.as_str() {
        "OO" | "OC" | "CO" | "CC" if is_self_billed => self_billed("380"),
        "OO" | "OC" | "CO" | "CC" => "380",
        "OR" | "CR" if is_negative => "381",
        "OR" | "CR" => {
            let replaces = method.as_deref() == Some("01");
            reader.note(if replaces { "correction_replaces" } else { "correction_upwards" });
            "384"
        }
        _ => {
            reader.note("unread.document_type");
            return;
        }
    };
    let is_credit_note = code == "381";
    fields.document_type =
        if is_credit_note && is_self_billed { self_billed(code) } else { code }.into();
    if is_credit_note {
        fields.is_credit_note = true;
        fields.negate_amounts();
    }
}
