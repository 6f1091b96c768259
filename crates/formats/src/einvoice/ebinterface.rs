//! Austria's ebInterface 4.1 to 4.3, 5.0, 6.0 and 6.1 (`Invoice.xsd` of each version, `AustriaPro`).
//!
//! Subtotal and VAT are the sums of the tax items; other taxes (`OtherTax`) become charges outside
//! of VAT. Checked against the schema: the elements in [`MANDATORY`], the three mandatory attributes
//! of the root and the values of `DocumentType`.

use roxmltree::Node;
use serde_json::Value;

use super::amounts::{note_missing, share_of, value_of};
use super::element::{
    ValueReader, decimal_of, element_at, elements_at, elements_below, first_element, flag_text,
    parse_decimal, plain_text, shared_element,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, TaxRow, adjustment_value, cash_discount, days_until,
};

/// Namespaces of the versions that are read.
#[rustfmt::skip]
pub(super) const NAMESPACES: [&str; 6] = [
    "http://www.ebinterface.at/schema/4p1/", "http://www.ebinterface.at/schema/4p2/",
    "http://www.ebinterface.at/schema/4p3/", "http://www.ebinterface.at/schema/5p0/",
    "http://www.ebinterface.at/schema/6p0/", "http://www.ebinterface.at/schema/6p1/",
];

/// Elements without which no version of the schema takes an invoice.
#[rustfmt::skip]
const MANDATORY: [&str; 8] = [
    "InvoiceNumber", "InvoiceDate", "Biller/VATIdentificationNumber",
    "InvoiceRecipient/VATIdentificationNumber", "Details/ItemList/ListLineItem", "Tax",
    "TotalGrossAmount", "PayableAmount",
];

pub(super) fn parse_ebinterface(root: Node<'_, '_>, reader: &mut ValueReader) -> InvoiceXmlFields {
    note_missing(root, &MANDATORY, reader);
    let whole = Some(root);
    let mut fields = InvoiceXmlFields {
        document_type: document_type(root, reader),
        currency: local_attribute(root, "InvoiceCurrency").map_or(Value::Null, Value::from),
        number: reader.text(first_element(whole, &["InvoiceNumber"])),
        date: reader.day("invoice_date", first_element(whole, &["InvoiceDate"])),
        order_number: reader
            .text(first_element(whole, &["InvoiceRecipient/OrderReference/OrderID"])),
        delivery_date: reader.day(
            "delivery_date",
            element_at(root, "Delivery/Date").or_else(|| {
                shared_element(whole, "Details/ItemList/ListLineItem", "Delivery/Date")
            }),
        ),
        period: [
            reader.day("period_start", first_element(whole, &["Delivery/Period/FromDate"])),
            reader.day("period_end", first_element(whole, &["Delivery/Period/ToDate"])),
        ],
        total: reader.number("total", first_element(whole, &["TotalGrossAmount"])),
        paid_amount: reader.number("paid_amount", first_element(whole, &["PrepaidAmount"])),
        rounding_amount: reader
            .number("rounding_amount", first_element(whole, &["RoundingAmount"])),
        amount_due: reader.number("amount_due", first_element(whole, &["PayableAmount"])),
        ..InvoiceXmlFields::default()
    };
    read_parties(root, &mut fields, reader);
    for line in elements_at(root, "Details/ItemList/ListLineItem") {
        fields.lines.push(invoice_line(line, reader));
    }
    read_adjustments(root, &mut fields, reader);
    read_taxes(root, &mut fields, reader);
    read_payment(root, &mut fields, reader);
    for (path, doubt) in [
        ("CancelledOriginalDocument", "cancels_another"),
        ("Details/BelowTheLineItem", "amounts_beyond_total"),
        ("PaymentConditions/MinimumPayment", "minimum_payment"),
        ("ReductionAndSurchargeDetails/OtherVATableTax", "other_tax_within_vat"),
    ] {
        if element_at(root, path).is_some() {
            reader.note(doubt);
        }
    }
    fields
}

/// An attribute by its local name: version 4.3 has it in the namespace of the schema.
fn local_attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let mut attributes = node.attributes();
    let value = attributes.find(|attribute| attribute.name() == name)?.value().trim();
    Some(value).filter(|value| !value.is_empty())
}

fn document_type(root: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    if local_attribute(root, "IsDuplicate").is_some_and(|text| flag_text(text) == Some(true)) {
        reader.note("copy");
    }
    let code = match local_attribute(root, "DocumentType") {
        Some("Invoice" | "FinalSettlement") => "380",
        Some("CreditMemo" | "SubsequentCredit") => "381",
        Some("SubsequentDebit") => "383",
        Some("InvoiceForAdvancePayment") => "386",
        Some("InvoiceForPartialDelivery") => "326",
        Some("SelfBilling") => "389",
        _ => {
            reader.note("unread.document_type");
            return Value::Null;
        }
    };
    code.into()
}

fn read_parties(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let seller = element_at(root, "Biller");
    let buyer = element_at(root, "InvoiceRecipient");
    let names = ["Address/Name", "Contact/Name"];
    fields.supplier_name = reader.text(first_element(seller, &names));
    fields.buyer_name = reader.text(first_element(buyer, &names));
    fields.supplier_vat_id = vat_id(seller);
    fields.buyer_vat_id = vat_id(buyer);
    let address = first_element(seller, &["Address"]);
    let country = first_element(address, &["Country"]);
    let place = reader.address(
        &["Street", "POBox"].map(|name| [first_element(address, &[name])]),
        [first_element(address, &["ZIP"]), first_element(address, &["Town"]), None],
    );
    let code = country.and_then(|country| local_attribute(country, "CountryCode"));
    fields.supplier_address = match (place, code) {
        (Value::String(place), Some(code)) => format!("{place}, {code}").into(),
        (place, _) => place,
    };
}

/// The VAT identifier; zeros stand for none.
fn vat_id(party: Option<Node<'_, '_>>) -> Value {
    let id = plain_text(first_element(party, &["VATIdentificationNumber"]));
    id.filter(|id| id.chars().any(|c| c != '0')).into()
}

fn invoice_line(line: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let one = Some(line);
    let quantity = element_at(line, "Quantity");
    let price = element_at(line, "UnitPrice");
    let articles = elements_at(line, "ArticleNumber");
    let own = articles.iter().find(|article| {
        local_attribute(**article, "ArticleNumberType") == Some("BillersArticleNumber")
    });
    let base = price.and_then(|price| local_attribute(price, "BaseQuantity"));
    let unit = quantity.and_then(|quantity| local_attribute(quantity, "Unit"));
    let mut found = InvoiceXmlLine {
        description: reader.joined_text(elements_at(line, "Description")),
        article_number: reader.text(own.or(articles.first()).copied()),
        quantity: reader.number("line_items.quantity", quantity),
        unit: unit.map_or(Value::Null, Value::from),
        price: reader.number("line_items.unit_price", price),
        price_base: value_of(base.and_then(parse_decimal)),
        tax_rate: tax_rate(one, reader),
        amount: reader.number("line_items.amount", first_element(one, &["LineItemAmount"])),
        ..InvoiceXmlLine::default()
    };
    if element_at(line, "ReductionAndSurchargeListLineItemDetails").is_some() {
        found.take_price_from_amount();
    }
    found.into_value(reader)
}

/// The rate of a line, a reduction or a tax item; 0 for one that is exempt.
fn tax_rate(node: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    if first_element(node, &["TaxExemption"]).is_some() {
        return 0.into();
    }
    reader.number("taxes", first_element(node, &["VATRate", "TaxPercent", "TaxItem/TaxPercent"]))
}

fn read_adjustments(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let parts = [("Reduction", false), ("Surcharge", true), ("OtherVATableTax", true)];
    for (name, is_charge) in parts {
        for part in elements_at(root, &format!("ReductionAndSurchargeDetails/{name}")) {
            let one = Some(part);
            let mut amount = reader.number("charges", first_element(one, &["Amount", "TaxAmount"]));
            if amount.is_null() {
                let base = reader.number("charges", first_element(one, &["BaseAmount"]));
                let percent = reader.number("charges", first_element(one, &["Percentage"]));
                amount = share_of(&base, &percent);
            }
            let rate = if name == "OtherVATableTax" { Value::Null } else { tax_rate(one, reader) };
            let reason = reader.text(first_element(one, &["Comment"]));
            let value = adjustment_value(reason, rate, amount);
            if is_charge { &mut fields.charges } else { &mut fields.allowances }.push(value);
        }
    }
}

fn read_taxes(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let items = elements_at(root, "Tax/VAT/VATItem").into_iter();
    for item in items.chain(elements_at(root, "Tax/TaxItem")) {
        let one = Some(item);
        let rate = tax_rate(one, reader);
        let base = reader.number("taxes", first_element(one, &["TaxedAmount", "TaxableAmount"]));
        let mut amount = reader.number("taxes", first_element(one, &["Amount", "TaxAmount"]));
        if amount.is_null() {
            amount = share_of(&base, &rate);
        }
        let percent = first_element(one, &["TaxPercent"]);
        let category = percent.and_then(|percent| local_attribute(percent, "TaxCategoryCode"));
        let is_zero = decimal_of(&rate).is_some_and(|rate| rate.is_zero());
        let reason = first_element(one, &["TaxExemption", "Comment"]).filter(|_| is_zero);
        let row = TaxRow {
            rate,
            base,
            amount,
            category: category.into(),
            exemption_reason: reader.text(reason),
        };
        fields.taxes.push(row.into_value());
    }
    fields.sum_taxes();
    for other in elements_at(root, "Tax/OtherTax") {
        let one = Some(other);
        let reason = reader.text(first_element(one, &["Comment"]));
        let amount = reader.number("charges", first_element(one, &["Amount", "TaxAmount"]));
        fields.add_untaxed_charge(reason, amount);
    }
}

fn read_payment(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let conditions = element_at(root, "PaymentConditions");
    fields.due_date = reader.day("due_date", first_element(conditions, &["DueDate"]));
    let comments = ["PaymentConditions/Comment", "PaymentMethod/Comment"];
    let comments = comments.into_iter().filter_map(|path| element_at(root, path)).collect();
    fields.payment_terms = reader.joined_text(comments);
    for discount in elements_below(conditions, "Discount") {
        let percent = reader.number("cash_discounts", element_at(discount, "Percentage"));
        let until = reader.day("cash_discounts", element_at(discount, "PaymentDate"));
        let found = cash_discount(percent, days_until(&fields.date, &until));
        if found.is_none() {
            reader.note("unread.cash_discounts");
        }
        fields.cash_discounts.extend(found);
    }
    let transfer = element_at(root, "PaymentMethod/UniversalBankTransaction");
    fields.payment_reference = reader.text(first_element(transfer, &["PaymentReference"]));
    for account in elements_below(transfer, "BeneficiaryAccount") {
        let number = first_element(Some(account), &["IBAN", "BankAccountNr"]);
        let bic = reader.text(element_at(account, "BIC"));
        fields.accounts.add(plain_text(number).into(), bic);
    }
}
