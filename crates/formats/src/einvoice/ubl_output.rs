//! An invoice or credit note as UBL 2.1 by EN 16931-1 (syntax binding CEN/TS 16931-3-2), from the
//! data that was read or decided.
//!
//! Not written, because the standard has no place for them or the data lacks parts: instalments,
//! VAT categories K and O. Not promised: rules of a country or network beyond the standard's own.

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::ubl::{CREDIT_NOTE, INVOICE};
use super::ubl_parts::{UblParts, UblPartyParts, VatClass, collect_parts, entries_of, text_of};
use crate::xml_output::XmlOutput;

const SCHEMA: &str = "urn:oasis:names:specification:ubl:schema:xsd";
/// BT-24.
const SPECIFICATION: &str = "urn:cen.eu:en16931:2017";
/// UNTDID 4461: credit transfer, and an instrument that is not defined.
const CREDIT_TRANSFER: &str = "30";
const UNDEFINED_INSTRUMENT: &str = "1";
/// UNTDID 5189 and 7161: codes of a discount and of a charge that no text explains.
const DISCOUNT: &str = "95";
const OTHER_CHARGE: &str = "ZZZ";

/// Why there is no UBL of the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("EN 16931 requires more than the data has: {}", .0.join("; "))]
pub struct UblDefects(pub Vec<String>);

/// Writes the data of an invoice, whose fields have the names of its roles. Units are codes of
/// UN/ECE Recommendation 20. `buyer_address`, which no e-invoice fills, is taken too.
///
/// # Errors
/// Every part that the standard requires and the data lacks or contradicts.
pub fn write_ubl(data: &Map<String, Value>, is_credit_note: bool) -> Result<String, UblDefects> {
    let parts = collect_parts(data, is_credit_note).map_err(UblDefects)?;
    let writer = UblWriter { xml: start(&parts), data, parts };
    Ok(writer.write())
}

fn start(parts: &UblParts) -> XmlOutput {
    let (root, namespace) = match parts.is_credit_note {
        true => ("CreditNote", CREDIT_NOTE),
        false => ("Invoice", INVOICE),
    };
    let [aggregates, basics] = ["CommonAggregateComponents-2", "CommonBasicComponents-2"]
        .map(|it| format!("{SCHEMA}:{it}"));
    XmlOutput::start(
        root,
        &[("xmlns", namespace), ("xmlns:cac", &aggregates), ("xmlns:cbc", &basics)],
    )
}

struct UblWriter<'a> {
    xml: XmlOutput,
    data: &'a Map<String, Value>,
    parts: UblParts,
}

impl UblWriter<'_> {
    fn write(mut self) -> String {
        self.write_head();
        self.write_supply();
        self.write_payment();
        self.write_adjustments();
        self.write_taxes();
        self.write_sums();
        for at in 0..self.parts.lines.len() {
            self.write_line(at);
        }
        self.xml.finish()
    }

    fn text(&self, field: &str) -> Option<String> {
        text_of(self.data, field)
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.xml.value(name, value);
        }
    }

    fn amount(&mut self, name: &str, amount: Decimal) {
        let currency = self.parts.currency.clone();
        self.xml.leaf(name, &[("currencyID", &currency)], &format!("{amount:.2}"));
    }

    fn write_head(&mut self) {
        self.xml.value("cbc:CustomizationID", SPECIFICATION);
        self.xml.value("cbc:ID", &self.parts.number);
        self.xml.value("cbc:IssueDate", &self.parts.date);
        let is_note = self.parts.is_credit_note;
        // A credit note has its due date with the means of payment.
        let due = self.text("due_date").filter(|_| !is_note);
        self.optional("cbc:DueDate", due.as_deref());
        let type_name = if is_note { "cbc:CreditNoteTypeCode" } else { "cbc:InvoiceTypeCode" };
        self.xml.value(type_name, &self.parts.type_code);
        self.xml.value("cbc:DocumentCurrencyCode", &self.parts.currency);
    }

    fn write_supply(&mut self) {
        let [begin, end] = ["period_start", "period_end"].map(|field| self.text(field));
        if begin.is_some() || end.is_some() {
            self.xml.open("cac:InvoicePeriod");
            self.optional("cbc:StartDate", begin.as_deref());
            self.optional("cbc:EndDate", end.as_deref());
            self.xml.close();
        }
        if let Some(order) = self.text("order_number") {
            self.xml.within("cac:OrderReference", "cbc:ID", &order);
        }
        write_party(&mut self.xml, "cac:AccountingSupplierParty", &self.parts.seller);
        write_party(&mut self.xml, "cac:AccountingCustomerParty", &self.parts.buyer);
        if let Some(payee) = self.text("payee_name") {
            self.xml.open("cac:PayeeParty");
            self.xml.within("cac:PartyName", "cbc:Name", &payee);
            self.xml.close();
        }
        if let Some(day) = self.text("delivery_date") {
            self.xml.within("cac:Delivery", "cbc:ActualDeliveryDate", &day);
        }
    }

    fn write_payment(&mut self) {
        let further = self.data.get("further_accounts").and_then(Value::as_array);
        let further = further.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let accounts: Vec<String> = self.text("iban").into_iter().chain(further).collect();
        let due = self.text("due_date").filter(|_| self.parts.is_credit_note);
        let reference = self.text("payment_reference");
        let bic = self.text("bic").filter(|_| self.text("iban").is_some());
        for (at, account) in accounts.iter().enumerate() {
            self.open_means(CREDIT_TRANSFER, due.as_deref(), reference.as_deref());
            self.xml.open("cac:PayeeFinancialAccount");
            self.xml.value("cbc:ID", account);
            if let Some(bic) = bic.as_deref().filter(|_| at == 0) {
                self.xml.within("cac:FinancialInstitutionBranch", "cbc:ID", bic);
            }
            self.xml.close();
            self.xml.close();
        }
        if accounts.is_empty() && (due.is_some() || reference.is_some()) {
            self.open_means(UNDEFINED_INSTRUMENT, due.as_deref(), reference.as_deref());
            self.xml.close();
        }
        if let Some(terms) = self.terms() {
            self.xml.within("cac:PaymentTerms", "cbc:Note", &terms);
        }
    }

    fn open_means(&mut self, code: &str, due: Option<&str>, reference: Option<&str>) {
        self.xml.open("cac:PaymentMeans");
        self.xml.value("cbc:PaymentMeansCode", code);
        self.optional("cbc:PaymentDueDate", due);
        self.optional("cbc:PaymentID", reference);
    }

    /// The terms of payment. Discounts have no element: without a text they stand in it by the
    /// convention of `XRechnung`.
    fn terms(&self) -> Option<String> {
        let stated = self.text("payment_terms");
        if stated.is_some() {
            return stated;
        }
        let mut terms = String::new();
        for discount in entries_of(self.data, "cash_discounts") {
            let [days, percent] = ["days", "percent"]
                .map(|field| discount.get(field).and_then(super::element::decimal_of));
            if let (Some(days), Some(percent)) = (days, percent) {
                terms.push_str(&format!("#SKONTO#TAGE={days}#PROZENT={percent:.2}#\n"));
            }
        }
        Some(terms).filter(|terms| !terms.is_empty())
    }

    fn write_adjustments(&mut self) {
        for at in 0..self.parts.adjustments.len() {
            let Some(one) = self.parts.adjustments.get(at) else { continue };
            let (amount, class) = (one.amount, one.class.clone());
            let code = if one.is_charge { OTHER_CHARGE } else { DISCOUNT };
            self.xml.open("cac:AllowanceCharge");
            self.xml.value("cbc:ChargeIndicator", if one.is_charge { "true" } else { "false" });
            match &one.reason {
                Some(reason) => self.xml.value("cbc:AllowanceChargeReason", reason),
                None => self.xml.value("cbc:AllowanceChargeReasonCode", code),
            }
            self.amount("cbc:Amount", amount);
            write_class(&mut self.xml, "cac:TaxCategory", &class, None);
            self.xml.close();
        }
    }

    fn write_taxes(&mut self) {
        self.xml.open("cac:TaxTotal");
        self.amount("cbc:TaxAmount", self.parts.sums.vat);
        for row in self.parts.taxes.clone() {
            self.xml.open("cac:TaxSubtotal");
            self.amount("cbc:TaxableAmount", row.base);
            self.amount("cbc:TaxAmount", row.tax);
            write_class(&mut self.xml, "cac:TaxCategory", &row.class, row.reason.as_deref());
            self.xml.close();
        }
        self.xml.close();
    }

    fn write_sums(&mut self) {
        let sums = std::mem::take(&mut self.parts.sums);
        self.xml.open("cac:LegalMonetaryTotal");
        for (name, amount) in [
            ("cbc:LineExtensionAmount", Some(sums.lines)),
            ("cbc:TaxExclusiveAmount", Some(sums.net)),
            ("cbc:TaxInclusiveAmount", Some(sums.total)),
            ("cbc:AllowanceTotalAmount", sums.allowances),
            ("cbc:ChargeTotalAmount", sums.charges),
            ("cbc:PrepaidAmount", sums.paid),
            ("cbc:PayableRoundingAmount", sums.rounding),
            ("cbc:PayableAmount", Some(sums.due)),
        ] {
            if let Some(amount) = amount {
                self.amount(name, amount);
            }
        }
        self.xml.close();
    }

    fn write_line(&mut self, at: usize) {
        let (name, quantity) = match self.parts.is_credit_note {
            true => ("cac:CreditNoteLine", "cbc:CreditedQuantity"),
            false => ("cac:InvoiceLine", "cbc:InvoicedQuantity"),
        };
        let Some(line) = self.parts.lines.get(at) else { return };
        let currency = [("currencyID", self.parts.currency.as_str())];
        let xml = &mut self.xml;
        xml.open(name);
        xml.value("cbc:ID", &(at + 1).to_string());
        xml.leaf(quantity, &[("unitCode", &line.unit)], &line.quantity.normalize().to_string());
        xml.leaf("cbc:LineExtensionAmount", &currency, &format!("{:.2}", line.amount));
        xml.open("cac:Item");
        xml.value("cbc:Name", &line.name);
        if let Some(article) = &line.article {
            xml.within("cac:SellersItemIdentification", "cbc:ID", article);
        }
        write_class(xml, "cac:ClassifiedTaxCategory", &line.class, None);
        xml.close();
        xml.open("cac:Price");
        xml.leaf("cbc:PriceAmount", &currency, &line.price.normalize().to_string());
        if let Some((base, unit)) = &line.base {
            xml.leaf("cbc:BaseQuantity", &[("unitCode", unit)], &base.normalize().to_string());
        }
        xml.close();
        xml.close();
    }
}

fn write_party(xml: &mut XmlOutput, role: &str, party: &UblPartyParts) {
    xml.open(role);
    xml.open("cac:Party");
    if let Some(name) = &party.trading_name {
        xml.within("cac:PartyName", "cbc:Name", name);
    }
    xml.open("cac:PostalAddress");
    let mut lines = party.lines.iter();
    for name in ["cbc:StreetName", "cbc:AdditionalStreetName"] {
        if let Some(line) = lines.next() {
            xml.value(name, line);
        }
    }
    for (name, value) in [("cbc:CityName", &party.city), ("cbc:PostalZone", &party.postcode)] {
        if let Some(value) = value {
            xml.value(name, value);
        }
    }
    let rest: Vec<&str> = lines.map(String::as_str).collect();
    if !rest.is_empty() {
        xml.within("cac:AddressLine", "cbc:Line", &rest.join(", "));
    }
    xml.within("cac:Country", "cbc:IdentificationCode", &party.country);
    xml.close();
    if let Some(id) = &party.vat_id {
        xml.open("cac:PartyTaxScheme");
        xml.value("cbc:CompanyID", id);
        xml.within("cac:TaxScheme", "cbc:ID", "VAT");
        xml.close();
    }
    xml.within("cac:PartyLegalEntity", "cbc:RegistrationName", &party.name);
    xml.close();
    xml.close();
}

fn write_class(xml: &mut XmlOutput, name: &str, class: &VatClass, reason: Option<&str>) {
    xml.open(name);
    xml.value("cbc:ID", &class.category);
    xml.value("cbc:Percent", &class.rate.normalize().to_string());
    match reason {
        Some(code) if code.starts_with("VATEX-") => xml.value("cbc:TaxExemptionReasonCode", code),
        Some(text) => xml.value("cbc:TaxExemptionReason", text),
        None => {}
    }
    xml.within("cac:TaxScheme", "cbc:ID", "VAT");
    xml.close();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::einvoice::parse_einvoice;

    fn invoice() -> Map<String, Value> {
        let Value::Object(data) = json!({
            "supplier_name": "Mühle & Söhne GmbH", "supplier_trading_name": "Mühle",
            "supplier_address": "Am Bach 3, Hinterhaus, 80331 München, DE",
            "supplier_vat_id": "DE123456789", "buyer_name": "Backhaus <Nord>",
            "buyer_vat_id": "ATU12345678", "document_type": "380", "invoice_number": "R-17",
            "order_number": "B 5", "invoice_date": "2026-11-02", "due_date": "2026-12-02",
            "delivery_date": "2026-10-30", "period_start": null, "period_end": null,
            "payment_terms": "30 Tage", "payment_reference": "RF18", "payee_name": "Factor AG",
            "iban": "DE89370400440532013000", "bic": "COBADEFFXXX",
            "further_accounts": ["AT611904300234573201"], "currency": "EUR",
            "line_items": [
                {"description": "Mehl", "article_number": "M1", "quantity": 2.5, "unit": "KGM",
                 "unit_price": 10, "price_base_quantity": null, "tax_rate": 7, "amount": 25},
                {"description": "Pfand", "article_number": null, "quantity": -3, "unit": "C62",
                 "unit_price": 2, "price_base_quantity": 3, "tax_rate": 19, "amount": -2},
                {"description": "Fracht", "article_number": null, "quantity": 1, "unit": "C62",
                 "unit_price": 12, "tax_rate": 19, "amount": 12},
            ],
            "allowances": [{"reason": "Rabatt", "tax_rate": 7, "amount": 5}],
            "charges": [{"reason": "Kühlung", "tax_rate": 19, "amount": 10}],
            "taxes": [
                {"rate": 7, "base": 20, "amount": 1.4, "category": "S", "exemption_reason": null},
                {"rate": 19, "base": 20, "amount": 3.8, "category": "S", "exemption_reason": null},
            ],
            "subtotal": 40, "vat_amount": 5.2, "total": 45.2, "paid_amount": 5,
            "rounding_amount": -0.2, "amount_due": 40,
        }) else {
            unreachable!()
        };
        data
    }

    fn with(changes: &[(&str, Value)]) -> Map<String, Value> {
        let mut data = invoice();
        data.extend(changes.iter().map(|(field, value)| ((*field).to_owned(), value.clone())));
        data
    }

    #[test]
    #[rustfmt::skip]
    fn an_invoice_and_a_credit_note_are_read_back_to_the_values_they_were_written_from() {
        let credit = with(&[("document_type", json!("381"))]);
        let exempt = with(&[
            ("line_items", json!([{"description": "Kurs", "quantity": 3, "unit_price": null, "unit": "HUR", "tax_rate": 0, "amount": 100}])),
            ("allowances", Value::Null),
            ("charges", Value::Null),
            ("taxes", json!([{"rate": 0, "base": 100, "amount": 0, "category": "E", "exemption_reason": "§ 4 Nr. 21 UStG"}])),
            ("subtotal", json!(100)),
            ("vat_amount", json!(0)),
            ("total", json!(100)),
            ("paid_amount", Value::Null),
            ("rounding_amount", Value::Null),
            ("amount_due", json!(100)),
        ]);
        for (data, is_credit_note) in [(invoice(), false), (credit, true), (exempt, false)] {
            let xml = write_ubl(&data, is_credit_note).unwrap();
            let read = parse_einvoice(xml.as_bytes()).unwrap();
            assert_eq!(read.doubts(), Vec::<String>::new(), "{xml}");
            assert_eq!(read.is_credit_note, is_credit_note);
            let lists = ["line_items"];
            for (field, value) in data.iter().filter(|(name, _)| !lists.contains(&name.as_str())) {
                assert_eq!(read.field(field), *value, "{field}\n{xml}");
            }
            let cells = |of: &Value, cell: &str| -> Vec<Value> {
                of.as_array().unwrap().iter().map(|line| line[cell].clone()).collect()
            };
            for cell in ["description", "quantity", "unit", "tax_rate", "amount"] {
                let expected = cells(&data["line_items"], cell);
                assert_eq!(cells(&read.field("line_items"), cell), expected, "{cell}");
            }
        }
    }

    #[test]
    fn what_is_not_stated_is_computed_only_where_it_is_certain() {
        let bare = with(&[("taxes", Value::Null), ("vat_amount", Value::Null)]);
        let xml = write_ubl(&bare, false).unwrap();
        let read = parse_einvoice(xml.as_bytes()).unwrap();
        assert_eq!(read.field("vat_amount"), json!(5.2));
        assert_eq!(read.field("taxes"), invoice()["taxes"]);
    }

    #[test]
    fn every_part_that_is_missing_or_contradicts_another_is_named() {
        let line = |cell: &str, value: Value| {
            let mut lines = invoice()["line_items"].clone();
            lines[0][cell] = value;
            lines
        };
        for (changes, part) in [
            (vec![("supplier_name", Value::Null)], "BT-27"),
            (vec![("supplier_vat_id", json!("123/456/789"))], "BT-31"),
            (vec![("buyer_vat_id", Value::Null)], "BT-55"),
            (vec![("buyer_vat_id", json!("EU372000001"))], "BT-55"),
            (vec![("invoice_date", Value::Null)], "BT-2"),
            (vec![("line_items", json!([]))], "BG-25"),
            (vec![("line_items", line("description", Value::Null))], "BT-153"),
            (vec![("line_items", line("quantity", Value::Null))], "quantity or price of line 1"),
            (vec![("line_items", line("amount", json!(25.001)))], "more than 2 decimals"),
            (vec![("line_items", line("amount", json!(24)))], "BT-116"),
            (vec![("line_items", line("tax_rate", json!(0)))], "category of line 1"),
            (vec![("line_items", line("tax_rate", Value::Null))], "category of line 1"),
            (vec![("subtotal", json!(41))], "BT-109"),
            (vec![("vat_amount", json!(5.3))], "BT-110"),
            (vec![("total", json!(45))], "BT-112"),
            (vec![("amount_due", json!(45.2))], "BT-115"),
            (vec![("total", Value::Null)], "BT-112"),
        ] {
            let defects = write_ubl(&with(&changes), false).unwrap_err().to_string();
            assert!(defects.contains(part), "{part}: {defects}");
        }
        let both = with(&[("supplier_name", Value::Null), ("currency", Value::Null)]);
        assert_eq!(write_ubl(&both, false).unwrap_err().0.len(), 2);
    }
}
