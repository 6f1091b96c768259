//! UBL 2.1: invoice and credit note, which differ in the names of the line and its quantity.

use roxmltree::Node;
use serde_json::Value;

use super::amounts::{sum_of, value_of};
use super::consistency::{StatedSums, note_indicator, note_repeated};
use super::element::{
    ValueReader, amount_in_currency, attribute_value, code_value, decimal_of, element_at,
    elements_at, elements_below, first_element, flag_value, plain_text,
};
use super::fields::{
    DANISH_VAT, InvoiceXmlFields, InvoiceXmlLine, PaymentTerm, TaxRow, adjustment_value,
    cash_discount, days_until, is_vat_scheme, parse_marked_discounts, party_names, settle_terms,
    vat_id_of_form, vat_id_of_scheme,
};

/// Namespace of a UBL invoice.
pub(super) const INVOICE: &str = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2";
/// Namespace of a UBL credit note.
pub(super) const CREDIT_NOTE: &str = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2";

pub(super) fn parse_ubl(root: Node<'_, '_>, reader: &mut ValueReader) -> InvoiceXmlFields {
    let is_credit_note = root.tag_name().name() == "CreditNote";
    let mut fields = InvoiceXmlFields {
        is_credit_note,
        currency: reader.currency(element_at(root, "DocumentCurrencyCode")),
        ..InvoiceXmlFields::default()
    };
    read_document(root, &mut fields, reader);
    read_parties(root, &mut fields, reader);
    read_payment(root, &mut fields, reader);
    read_totals(root, &mut fields, reader);
    read_adjustments(root, &mut fields, reader);
    fields.lines = invoice_lines(root, &fields, reader);
    note_repeated(Some(root), &SINGLE, reader);
    note_indicator("copy", Some(root), "CopyIndicator", reader);
    fields.check_type(is_credit_note, reader);
    fields
}

/// Fields with the elements that an invoice has once.
const SINGLE: [(&str, &str); 14] = [
    ("invoice_number", "ID"),
    ("invoice_date", "IssueDate"),
    ("document_type", "InvoiceTypeCode"),
    ("currency", "DocumentCurrencyCode"),
    ("order_number", "OrderReference/ID"),
    ("supplier_name", "AccountingSupplierParty"),
    ("supplier_name", "AccountingSupplierParty/Party"),
    ("supplier_address", "AccountingSupplierParty/Party/PostalAddress"),
    ("supplier_name", "AccountingSupplierParty/Party/PartyLegalEntity/RegistrationName"),
    ("buyer_name", "AccountingCustomerParty"),
    ("buyer_name", "AccountingCustomerParty/Party"),
    ("buyer_name", "AccountingCustomerParty/Party/PartyLegalEntity/RegistrationName"),
    ("payee_name", "PayeeParty"),
    ("total", "LegalMonetaryTotal"),
];

/// The same of one way to pay, of a row of the breakdown and of a line.
const SINGLE_OF_PAYMENT: [(&str, &str); 2] =
    [("payment_reference", "PaymentID"), ("iban", "PayeeFinancialAccount/ID")];
const SINGLE_OF_TAX: [(&str, &str); 3] =
    [("taxes", "TaxableAmount"), ("taxes", "TaxAmount"), ("taxes", "TaxCategory/Percent")];
const SINGLE_OF_LINE: [(&str, &str); 6] = [
    ("line_items", "InvoicedQuantity"),
    ("line_items", "CreditedQuantity"),
    ("line_items", "Price/PriceAmount"),
    ("line_items", "Price/BaseQuantity"),
    ("line_items", "Item/Name"),
    ("line_items", "Item/ClassifiedTaxCategory/Percent"),
];

/// Notes sums that do not come out. In UBL as EN 16931 uses it.
pub(super) fn check_sums(root: Node<'_, '_>, fields: &InvoiceXmlFields, reader: &mut ValueReader) {
    let names = ["LineExtensionAmount", "AllowanceTotalAmount", "ChargeTotalAmount"];
    let totals = element_at(root, "LegalMonetaryTotal");
    fields.check_sums(&StatedSums::read(totals, names, reader), reader);
}

/// Whether it has parts that no other XML with an element `Invoice` has. For one without its
/// namespace.
pub(super) fn has_header(root: Node<'_, '_>) -> bool {
    ["AccountingSupplierParty", "LegalMonetaryTotal"]
        .iter()
        .all(|name| element_at(root, name).is_some())
}

fn read_document(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let whole = Some(root);
    fields.document_type =
        code_value(first_element(whole, &["InvoiceTypeCode", "CreditNoteTypeCode"]));
    fields.number = reader.text(element_at(root, "ID"));
    fields.date = reader.day("invoice_date", element_at(root, "IssueDate"));
    fields.order_number = reader.text(element_at(root, "OrderReference/ID"));
    fields.delivery_date =
        reader.day("delivery_date", element_at(root, "Delivery/ActualDeliveryDate"));
    fields.period = [
        reader.day("period_start", element_at(root, "InvoicePeriod/StartDate")),
        reader.day("period_end", element_at(root, "InvoicePeriod/EndDate")),
    ];
}

fn read_parties(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let seller = element_at(root, "AccountingSupplierParty/Party");
    let buyer = element_at(root, "AccountingCustomerParty/Party");
    (fields.supplier_name, fields.trading_name) = names_of(seller, reader);
    (fields.buyer_name, _) = names_of(buyer, reader);
    let address = first_element(seller, &["PostalAddress"]);
    let lines = [
        ["StreetName", "BuildingNumber"],
        ["AdditionalStreetName", "Floor"],
        ["AddressLine/Line", "Postbox"],
    ];
    fields.supplier_address = reader.address(
        &lines.map(|parts| parts.map(|name| first_element(address, &[name]))),
        ["PostalZone", "CityName", "Country/IdentificationCode"]
            .map(|name| first_element(address, &[name])),
    );
    fields.supplier_vat_id = vat_id("supplier_vat_id", seller, reader);
    fields.buyer_vat_id = vat_id("buyer_vat_id", buyer, reader);
    fields.payee_name = reader.first_text(
        ["PayeeParty/PartyName/Name", "PayeeParty/PartyLegalEntity/RegistrationName"]
            .map(|path| element_at(root, path)),
    );
}

fn names_of(party: Option<Node<'_, '_>>, reader: &mut ValueReader) -> (Value, Value) {
    let registered = reader.text(first_element(party, &["PartyLegalEntity/RegistrationName"]));
    let (name, trading) =
        party_names(registered, reader.text(first_element(party, &["PartyName/Name"])));
    match elements_below(party, "Person").as_slice() {
        [person] if name.is_null() => (person_name(*person), trading),
        _ => (name, trading),
    }
}

/// A party that is a person, and has no other name.
fn person_name(person: Node<'_, '_>) -> Value {
    let parts = ["FirstName", "MiddleName", "FamilyName"].into_iter();
    let parts: Vec<String> =
        parts.filter_map(|part| plain_text(element_at(person, part))).collect();
    Some(parts.join(" ")).filter(|name| !name.is_empty()).into()
}

/// The tax registration for VAT, then one whose tax is not stated and that has the form of a VAT
/// identifier, then other identifiers of a VAT scheme.
fn vat_id(field: &str, party: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    let registrations = elements_below(party, "PartyTaxScheme");
    let stated = registrations.iter().filter_map(|registration| {
        vat_id_of_scheme(company_id(*registration), tax_of(*registration).as_deref())
    });
    let stated = reader.only_id(field, stated);
    let bare = registrations.iter().filter(|registration| tax_of(**registration).is_none());
    let others = ["PartyIdentification/ID", "PartyLegalEntity/CompanyID", "EndpointID"];
    let others = others.into_iter().flat_map(|path| elements_below(party, path));
    let found = stated.or_else(|| {
        bare.into_iter().find_map(|registration| vat_id_of_form(company_id(*registration)))
    });
    let found = found.or_else(|| {
        let mut others = others.into_iter();
        others.find_map(|id| vat_id_of_scheme(plain_text(Some(id)), id.attribute("schemeID")))
    });
    found.into()
}

fn company_id(registration: Node<'_, '_>) -> Option<String> {
    plain_text(element_at(registration, "CompanyID"))
}

/// The tax of a registration: by its code, else its name.
fn tax_of(registration: Node<'_, '_>) -> Option<String> {
    let names = ["TaxScheme/ID", "TaxScheme/Name", "TaxScheme/TaxTypeCode"];
    names.into_iter().find_map(|path| plain_text(element_at(registration, path)))
}

fn read_payment(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    fields.payment_terms = reader.joined_text(elements_at(root, "PaymentTerms/Note"));
    fields.cash_discounts = parse_marked_discounts(reader, &fields.payment_terms);
    let mut terms = Vec::new();
    for path in ["DueDate", "PaymentMeans/PaymentDueDate"] {
        for node in elements_at(root, path) {
            let day = reader.day("due_date", Some(node));
            terms.push(PaymentTerm { day, ..PaymentTerm::default() });
        }
    }
    for term in elements_at(root, "PaymentTerms") {
        let percent = element_at(term, "SettlementDiscountPercent");
        let percent = reader.number("cash_discounts", percent);
        let period = element_at(term, "SettlementPeriod/DurationMeasure");
        let in_days = attribute_value(period, "unitCode").as_str() == Some("DAY");
        let mut days = reader.number("cash_discounts", period.filter(|_| in_days));
        if days.is_null() {
            let until = reader.day("cash_discounts", element_at(term, "SettlementPeriod/EndDate"));
            days = days_until(&fields.date, &until);
        }
        let day = first_element(Some(term), &["PaymentDueDate", "InstallmentDueDate"]);
        terms.push(PaymentTerm {
            day: reader.day("due_date", day),
            amount: reader.number("instalments.amount", element_at(term, "Amount")),
            has_discount: !percent.is_null(),
        });
        fields.cash_discounts.extend(cash_discount(percent, days));
    }
    (fields.due_date, fields.instalments) = settle_terms(terms);
    for means in elements_at(root, "PaymentMeans") {
        note_repeated(Some(means), &SINGLE_OF_PAYMENT, reader);
        let mut references = elements_at(means, "PaymentID").into_iter();
        let reference = reader.text(references.find(|node| plain_text(Some(*node)).is_some()));
        let accounts = elements_at(means, "PayeeFinancialAccount");
        if accounts.is_empty() {
            fields.accounts.add_way(Value::Null, Value::Null, reference.clone());
        }
        for account in accounts {
            let (number, bank) = (reader.text(element_at(account, "ID")), bank_of(account, reader));
            fields.accounts.add_way(number, bank, reference.clone());
        }
    }
}

/// The bank of an account: its branch (BT-86), else the institution, which UBL has for others than
/// EN 16931.
pub(super) fn bank_of(account: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let paths =
        ["FinancialInstitutionBranch/ID", "FinancialInstitutionBranch/FinancialInstitution/ID"];
    reader.first_text(paths.map(|path| element_at(account, path)))
}

fn read_totals(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let sums = element_at(root, "LegalMonetaryTotal");
    let currency = fields.currency.clone();
    for (field, path, value) in [
        ("subtotal", "TaxExclusiveAmount", &mut fields.subtotal),
        ("total", "TaxInclusiveAmount", &mut fields.total),
        ("paid_amount", "PrepaidAmount", &mut fields.paid_amount),
        ("rounding_amount", "PayableRoundingAmount", &mut fields.rounding_amount),
        ("amount_due", "PayableAmount", &mut fields.amount_due),
    ] {
        *value = reader.amount(field, &elements_below(sums, path), &currency);
    }
    let payments = elements_at(root, "PrepaidPayment/PaidAmount").into_iter();
    let payments: Vec<Value> =
        payments.map(|it| reader.amount("paid_amount", &[it], &currency)).collect();
    let paid = decimal_of(&fields.paid_amount).unwrap_or_default();
    if sum_of(&payments).is_some_and(|payments| payments != paid) {
        reader.note("sum.paid_amount");
    }
    fields.vat_amount =
        reader.amount("vat_amount", &elements_at(root, "TaxTotal/TaxAmount"), &currency);
    for total in elements_at(root, "TaxTotal") {
        // The breakdown that is stated in the invoice's own currency.
        if amount_in_currency(&elements_at(total, "TaxAmount"), &currency).is_none() {
            continue;
        }
        for tax in elements_at(total, "TaxSubtotal") {
            note_repeated(Some(tax), &SINGLE_OF_TAX, reader);
            let rates = ["TaxCategory/Percent", "Percent"];
            let reasons = ["TaxCategory/TaxExemptionReason", "TaxCategory/TaxExemptionReasonCode"];
            let row = TaxRow {
                rate: reader.number("taxes.rate", first_element(Some(tax), &rates)),
                base: reader.number("taxes.base", element_at(tax, "TaxableAmount")),
                amount: reader.number("taxes.amount", element_at(tax, "TaxAmount")),
                category: code_value(element_at(tax, "TaxCategory/ID")),
                exemption_reason: reader.first_text(reasons.map(|path| element_at(tax, path))),
            };
            fields.taxes.push(row.into_value());
        }
    }
}

/// Allowances and charges of the whole document. One that is neither is left out and noted.
fn read_adjustments(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    for one in elements_at(root, "AllowanceCharge") {
        let list = match flag_value(element_at(one, "ChargeIndicator")) {
            Some(true) => &mut fields.charges,
            Some(false) => &mut fields.allowances,
            None => {
                reader.note("unread.allowances");
                continue;
            }
        };
        let reasons = ["AllowanceChargeReason", "AllowanceChargeReasonCode"];
        list.push(adjustment_value(
            reader.first_text(reasons.map(|path| element_at(one, path))),
            reader.number("allowances.tax_rate", element_at(one, "TaxCategory/Percent")),
            reader.number("allowances.amount", element_at(one, "Amount")),
        ));
    }
}

fn invoice_lines(
    root: Node<'_, '_>,
    fields: &InvoiceXmlFields,
    reader: &mut ValueReader,
) -> Vec<Value> {
    let of_invoice = ["InvoiceLine", "InvoicedQuantity"];
    let of_credit_note = ["CreditNoteLine", "CreditedQuantity"];
    let ([name, quantity], [other_name, other_quantity]) = match fields.is_credit_note {
        true => (of_credit_note, of_invoice),
        false => (of_invoice, of_credit_note),
    };
    if element_at(root, other_name).is_some() {
        reader.note("unread.line_items");
    }
    let mut lines = Vec::new();
    for item in elements_at(root, name) {
        note_repeated(Some(item), &SINGLE_OF_LINE, reader);
        if element_at(item, other_quantity).is_some() {
            reader.note("unread.line_items.quantity");
        }
        let names = ["Item/Name", "Item/Description"];
        let articles = ["Item/SellersItemIdentification/ID", "Item/StandardItemIdentification/ID"];
        let quantity = element_at(item, quantity);
        let base = element_at(item, "Price/BaseQuantity");
        let amounts = elements_at(item, "LineExtensionAmount");
        let line = InvoiceXmlLine {
            description: reader.first_text(names.map(|path| element_at(item, path))),
            article_number: reader.first_text(articles.map(|path| element_at(item, path))),
            quantity: reader.number("line_items.quantity", quantity),
            unit: attribute_value(quantity, "unitCode"),
            price: line_price(item, reader),
            price_base: reader.number("line_items.price_base_quantity", base),
            price_base_unit: attribute_value(base, "unitCode"),
            tax_rate: reader.number("line_items.tax_rate", line_rate(item)),
            amount: reader.amount("line_items.amount", &amounts, &fields.currency),
            is_adjusted: element_at(item, "AllowanceCharge").is_some(),
        };
        lines.push(line.into_value(reader));
    }
    lines
}

/// The price of one unit of the quantity: UBL states it for others than EN 16931 by a unit of its own
/// and a factor.
fn line_price(item: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let field = "line_items.unit_price";
    let price = reader.number(field, element_at(item, "Price/PriceAmount"));
    let factor = reader.number(field, element_at(item, "Price/OrderableUnitFactorRate"));
    match decimal_of(&price).zip(decimal_of(&factor).filter(|factor| !factor.is_zero())) {
        Some((price, factor)) => value_of(price.checked_mul(factor)),
        None => price,
    }
}

/// The rate of a line: its item's, else that of its VAT, which UBL has for others than EN 16931.
fn line_rate<'a, 'i: 'a>(item: Node<'a, 'i>) -> Option<Node<'a, 'i>> {
    element_at(item, "Item/ClassifiedTaxCategory/Percent").or_else(|| {
        let categories = elements_at(item, "TaxTotal/TaxSubtotal/TaxCategory").into_iter();
        let of_vat = categories.filter(|category| {
            let scheme = plain_text(element_at(*category, "TaxScheme/ID")).unwrap_or_default();
            scheme == DANISH_VAT || is_vat_scheme(&scheme)
        });
        of_vat.into_iter().find_map(|category| element_at(category, "Percent"))
    })
}
