//! Received and issued invoices for DATEV's "XML-Schnittstelle online" 6.0: a ledger file for each
//! (`Belegverwaltung_online_ledger_import_v060.xsd`) and the description of a package
//! (`Document_v060.xsd`). Elements, their order, lengths and patterns are those of the two schemas.
//!
//! An invoice is one entry with its total. Not promised: accounts and tax keys, which the accountant
//! sets, or a rate where an invoice has several.

use rust_decimal::Decimal;
use serde_json::{Map, Value};
use time::{Date, OffsetDateTime, UtcOffset, macros::format_description};

use super::element::decimal_of;
use super::ubl_parts::{entries_of, text_of};
use crate::notation::account::is_iban;
use crate::xml_output::XmlOutput;

const DOCUMENT: &str = "http://xml.datev.de/bedi/tps/document/v06.0";
const LEDGER: &str = "http://xml.datev.de/bedi/tps/ledger/v060";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The note that the schema fixes.
const LEDGER_NOTE: &str = "Kopie nur zur Verbuchung berechtigt nicht zum Vorsteuerabzug";
/// Characters of an invoice's number besides ASCII letters and digits (type `p10040`).
const NUMBER_SIGNS: &str = "$%&*+-/";
const MAX_NUMBER_CHARS: usize = 36;
/// Type `p10012`.
const MAX_NAME_CHARS: usize = 50;
/// Type `p10027`.
const MAX_VAT_ID_CHARS: usize = 15;
/// Type `p10002` has ten digits before the point: 10 to the power of 10.
const MAX_AMOUNT: Decimal = Decimal::from_parts(1_410_065_408, 2, 0, false, 0);
/// Most documents of a package.
pub const MAX_DATEV_DOCUMENTS: usize = 4_999;

/// Who an invoice is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatevDirection {
    /// A supplier.
    Received,
    /// An own company.
    Issued,
}

impl DatevDirection {
    /// The element of an entry, which is also the type of its file.
    fn ledger(self) -> &'static str {
        match self {
            Self::Received => "accountsPayableLedger",
            Self::Issued => "accountsReceivableLedger",
        }
    }

    /// The folder that DATEV proposes.
    fn folder(self) -> &'static str {
        match self {
            Self::Received => "Eingangsrechnungen",
            Self::Issued => "Ausgangsrechnungen",
        }
    }

    /// The type of a document in a package: type `p25` of DATEV's `Document_types_v050.xsd` (`PyPI`'s
    /// odoo-addon-datev-export-xml 18.0), 1 for the ledger of received invoices and 2 for that of issued ones.
    fn document_type(self) -> &'static str {
        match self {
            Self::Received => "1",
            Self::Issued => "2",
        }
    }

    /// Fields of the other party: its VAT identifier, its name, and the element of that.
    fn party(self) -> [&'static str; 3] {
        match self {
            Self::Received => ["supplier_vat_id", "supplier_name", "supplierName"],
            Self::Issued => ["buyer_vat_id", "buyer_name", "customerName"],
        }
    }
}

/// Why there is no ledger file of the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("DATEV requires more than the data has: {}", .0.join(", "))]
pub struct DatevDefects(pub Vec<&'static str>);

/// An invoice's ledger file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatevLedger {
    /// The XML.
    pub xml: String,
    /// Month of the invoice, `YYYY-MM`.
    pub period: String,
    /// Who it is from.
    pub direction: DatevDirection,
}

/// An invoice in a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatevDocument {
    /// Id of the document, a UUID. DATEV takes each once.
    pub guid: String,
    /// As in [`DatevLedger`].
    pub period: String,
    /// As there.
    pub direction: DatevDirection,
    /// Name of the ledger file in the package.
    pub ledger: String,
    /// Name of the original in the package.
    pub original: String,
}

/// The parts that each entry has.
struct LedgerHead {
    day: Date,
    number: String,
    currency: String,
    amount: Decimal,
}

impl LedgerHead {
    fn read(data: &Map<String, Value>, is_credit_note: bool) -> Result<Self, DatevDefects> {
        let (day, number) = (day_of(data, "invoice_date"), number_of(data));
        let (currency, amount) = (currency_of(data), amount_of(data, is_credit_note));
        let found = [day.is_some(), number.is_some(), currency.is_some(), amount.is_some()];
        if let (Some(day), Some(number), Some(currency), Some(amount)) =
            (day, number, currency, amount)
        {
            return Ok(Self { day, number, currency, amount });
        }
        let names = ["invoice_date", "invoice_number", "currency", "total"];
        let missing = names.into_iter().zip(found).filter(|(_, found)| !found);
        Err(DatevDefects(missing.map(|(name, _)| name).collect()))
    }
}

/// Writes an invoice, whose fields have the names of their roles. Signs that DATEV does not
/// allow in a number are left out, as are optional values that the schema does not allow.
///
/// # Errors
/// The required fields that are missing or of another form.
pub fn write_datev_ledger(
    data: &Map<String, Value>,
    is_credit_note: bool,
    direction: DatevDirection,
) -> Result<DatevLedger, DatevDefects> {
    let LedgerHead { day, number, currency, amount } = LedgerHead::read(data, is_credit_note)?;
    let (date, amount) = (day.to_string(), format!("{amount:.2}"));
    let root = [
        ("xmlns", LEDGER),
        ("version", "6.0"),
        ("generator_info", "docmill"),
        ("generating_system", "docmill"),
        ("xml_data", LEDGER_NOTE),
    ];
    let mut xml = XmlOutput::start("LedgerImport", &root);
    xml.open_with(
        "consolidate",
        &[
            ("consolidatedAmount", &amount),
            ("consolidatedDate", &date),
            ("consolidatedInvoiceId", &number),
            ("consolidatedCurrencyCode", &currency),
        ],
    );
    xml.open(direction.ledger());
    let due = day_of(data, "due_date").filter(|due| *due > day);
    let delivered = day_of(data, "delivery_date").filter(|delivered| *delivered <= day);
    let [vat_id, name, name_element] = direction.party();
    let name = text_of(data, name).map(|name| cut(&name, MAX_NAME_CHARS));
    // The account of an issued invoice is one's own; DATEV asks for the other party's.
    let iban = iban_of(data).filter(|_| direction == DatevDirection::Received);
    for (name, value) in [
        ("date", Some(date)),
        ("amount", Some(amount)),
        ("tax", only_rate(data)),
        ("currencyCode", Some(currency)),
        ("invoiceId", Some(number)),
        ("vatId", vat_id_of(data, vat_id)),
        ("iban", iban),
        ("dueDate", due.map(|due| due.to_string())),
        ("deliveryDate", delivered.map(|delivered| delivered.to_string())),
        (name_element, name),
    ] {
        if let Some(value) = value {
            xml.value(name, &value);
        }
    }
    let period = format!("{:04}-{:02}", day.year(), u8::from(day.month()));
    Ok(DatevLedger { xml: xml.finish(), period, direction })
}

/// Writes the description of a package, `document.xml`.
pub fn write_datev_package(documents: &[DatevDocument], made_at: OffsetDateTime) -> String {
    let at = made_at.to_offset(UtcOffset::UTC);
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]");
    let mut xml = XmlOutput::start(
        "archive",
        &[
            ("xmlns", DOCUMENT),
            ("xmlns:xsi", INSTANCE),
            ("version", "6.0"),
            ("generatingSystem", "docmill"),
        ],
    );
    xml.within("header", "date", &at.format(form).unwrap_or_default());
    xml.open("content");
    for document in documents {
        let direction = document.direction;
        let attributes = [("guid", &*document.guid), ("type", direction.document_type())];
        xml.open_with("document", &attributes);
        let ledger = [("xsi:type", direction.ledger()), ("datafile", &*document.ledger)];
        xml.open_with("extension", &ledger);
        xml.leaf("property", &[("key", "1"), ("value", &document.period)], "");
        xml.leaf("property", &[("key", "3"), ("value", direction.folder())], "");
        xml.close();
        xml.leaf("extension", &[("xsi:type", "File"), ("name", &document.original)], "");
        xml.close();
    }
    xml.finish()
}

fn day_of(data: &Map<String, Value>, field: &str) -> Option<Date> {
    let form = format_description!("[year]-[month]-[day]");
    Date::parse(&text_of(data, field)?, form).ok()
}

fn number_of(data: &Map<String, Value>) -> Option<String> {
    let number: String = text_of(data, "invoice_number")?
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || NUMBER_SIGNS.contains(*c))
        .collect();
    (1..=MAX_NUMBER_CHARS).contains(&number.len()).then_some(number)
}

fn currency_of(data: &Map<String, Value>) -> Option<String> {
    text_of(data, "currency")
        .filter(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
}

/// A correction of an invoice has a negative amount.
fn amount_of(data: &Map<String, Value>, is_credit_note: bool) -> Option<Decimal> {
    let total = data.get("total").and_then(decimal_of)?.round_dp(2);
    let amount = if is_credit_note { -total.abs() } else { total };
    (!amount.is_zero() && amount.abs() < MAX_AMOUNT).then_some(amount)
}

/// The rate of an invoice that has one, as type `p33` has it.
fn only_rate(data: &Map<String, Value>) -> Option<String> {
    let mut rates: Vec<Decimal> =
        entries_of(data, "taxes").filter_map(|tax| tax.get("rate").and_then(decimal_of)).collect();
    rates.dedup();
    let [rate] = rates[..] else { return None };
    let is_rate = rate.round_dp(2) == rate && (Decimal::ZERO..Decimal::ONE_HUNDRED).contains(&rate);
    is_rate.then(|| format!("{rate:.2}"))
}

fn vat_id_of(data: &Map<String, Value>, field: &str) -> Option<String> {
    let id = text_of(data, field)?;
    let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._ ".contains(&b));
    (is_plain && id.len() <= MAX_VAT_ID_CHARS).then_some(id)
}

fn iban_of(data: &Map<String, Value>) -> Option<String> {
    let iban: String = text_of(data, "iban")?.split(' ').collect();
    is_iban(&iban).then_some(iban)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::DatevDirection::{Issued, Received};
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    fn invoice() -> Map<String, Value> {
        let data = json!({"supplier_name": "Mühle & <Söhne>", "supplier_vat_id": "DE123456789",
            "invoice_number": "RE 2026.17/4", "invoice_date": "2026-11-02", "currency": "EUR",
            "total": 23.8, "due_date": "2026-11-30", "delivery_date": "2026-11-03",
            "iban": "DE89 3704 0044 0532 0130 00", "taxes": [{"rate": 19, "amount": 3.8}]});
        data.as_object().unwrap().clone()
    }

    /// Names and texts of the elements of an entry, in order.
    fn entry(xml: &str) -> Vec<String> {
        let tree = roxmltree::Document::parse(xml).unwrap();
        let names = ["accountsPayableLedger", "accountsReceivableLedger"];
        let entry = tree.descendants().find(|it| names.contains(&it.tag_name().name())).unwrap();
        let parts = entry.children().filter(roxmltree::Node::is_element);
        parts.map(|it| format!("{} {}", it.tag_name().name(), it.text().unwrap())).collect()
    }

    #[test]
    fn an_invoice_is_one_entry_with_the_elements_in_the_order_of_datevs_schema() {
        let ledger = write_datev_ledger(&invoice(), false, Received).unwrap();
        assert_eq!(ledger.period, "2026-11");
        let expected = [
            "date 2026-11-02",
            "amount 23.80",
            "tax 19.00",
            "currencyCode EUR",
            "invoiceId RE202617/4",
            "vatId DE123456789",
            "iban DE89370400440532013000",
            "dueDate 2026-11-30",
            "supplierName Mühle & <Söhne>",
        ];
        assert_eq!(entry(&ledger.xml), expected);
        let credited = write_datev_ledger(&invoice(), true, Received).unwrap().xml;
        assert!(entry(&credited).contains(&"amount -23.80".to_owned()), "{credited}");
        assert!(credited.contains("consolidatedAmount=\"-23.80\""), "{credited}");
        let odd = json!({"iban": "DE00 1", "supplier_vat_id": "DE 123 456 789 012", "due_date": null,
            "taxes": [{"rate": 7}, {"rate": 19}], "supplier_name": "x".repeat(60)});
        let mut data = invoice();
        data.extend(odd.as_object().unwrap().clone());
        let found = entry(&write_datev_ledger(&data, false, Received).unwrap().xml);
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[4], format!("supplierName {}", "x".repeat(50)));
    }

    #[test]
    fn an_issued_invoice_names_the_buyer_and_no_account_of_ones_own() {
        let buyer = json!({"buyer_name": "Backhaus Nord", "buyer_vat_id": "ATU12345678"});
        let mut data = invoice();
        data.extend(buyer.as_object().unwrap().clone());
        let ledger = write_datev_ledger(&data, false, Issued).unwrap();
        assert!(ledger.xml.contains("<accountsReceivableLedger>"), "{}", ledger.xml);
        let expected = [
            "date 2026-11-02",
            "amount 23.80",
            "tax 19.00",
            "currencyCode EUR",
            "invoiceId RE202617/4",
            "vatId ATU12345678",
            "dueDate 2026-11-30",
            "customerName Backhaus Nord",
        ];
        assert_eq!(entry(&ledger.xml), expected);
    }

    #[test]
    fn required_parts_that_datev_would_refuse_are_named() {
        for (field, value) in [
            ("total", json!(0)),
            ("total", json!(10_000_000_000_u64)),
            ("total", json!(null)),
            ("currency", json!("€")),
            ("invoice_number", json!("№ …")),
            ("invoice_number", json!("1".repeat(37))),
            ("invoice_date", json!("2026-02-30")),
        ] {
            let mut data = invoice();
            data.insert(field.to_owned(), value);
            let refused = write_datev_ledger(&data, false, Received);
            assert_eq!(refused, Err(DatevDefects(vec![field])), "{field}");
        }
    }

    #[test]
    fn a_package_names_ledger_file_and_original_of_each_document() {
        let document = DatevDocument {
            guid: "00000000-0000-0000-0000-000000000007".to_owned(),
            period: "2026-11".to_owned(),
            direction: Received,
            ledger: "7.xml".to_owned(),
            original: "7.pdf".to_owned(),
        };
        let issued = DatevDocument { direction: Issued, ..document.clone() };
        let xml = write_datev_package(&[document, issued], datetime!(2026-11-29 9:05 +1));
        let tree = roxmltree::Document::parse(&xml).unwrap();
        let all = |name: &str| tree.descendants().filter(|it| it.has_tag_name(name)).count();
        assert_eq!((all("document"), all("extension"), all("property")), (2, 4, 4));
        for part in [
            "<date>2026-11-29T08:05:00</date>",
            "<document guid=\"00000000-0000-0000-0000-000000000007\" type=\"1\">",
            "<extension xsi:type=\"accountsPayableLedger\" datafile=\"7.xml\">",
            "<property key=\"1\" value=\"2026-11\"></property>",
            "<extension xsi:type=\"File\" name=\"7.pdf\"></extension>",
            "<property key=\"3\" value=\"Eingangsrechnungen\"></property>",
            "<document guid=\"00000000-0000-0000-0000-000000000007\" type=\"2\">",
            "<extension xsi:type=\"accountsReceivableLedger\" datafile=\"7.xml\">",
            "<property key=\"3\" value=\"Ausgangsrechnungen\"></property>",
        ] {
            assert!(xml.contains(part), "{part} is not in {xml}");
        }
    }
}
