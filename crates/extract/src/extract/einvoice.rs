//! The XML of an e-invoice: exact, no model, no doubt.
//!
//! Both syntaxes of EN 16931: UN/CEFACT CII (`ZUGFeRD` 1.0 and 2.x, Factur-X in every profile,
//! `XRechnung`) and UBL 2.1 (invoice and credit note, `XRechnung`, Peppol). Elements are known by
//! namespace and local name; prefixes mean nothing. BT numbers are those of EN 16931-1.
//!
//! Exact or not at all: an amount, date or text that cannot be carried as it stands makes the whole
//! XML unusable, because a reader that leaves out what it does not understand would be wrong
//! without a word. What is absent is null. Whether the values make sense, and whether they are
//! those of the page, is the gate's to say.

mod cii;
mod element;
#[cfg(test)]
mod tests;
mod ubl;

use roxmltree::Node;
use serde_json::{Map, Value, json};

use docmill_core::model::{
    Extraction, ExtractionMethod, ModelUsage, OutcomeReason, StatedConfidence,
};
use docmill_formats::xml::{XmlError, XmlText};
use docmill_gate::kinds::Kind;

/// Why an XML is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EinvoiceDefect {
    /// It cannot be taken out of its document.
    #[error("the attached e-invoice cannot be taken out of the document")]
    Attachment,
    /// The XML cannot be parsed.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// Its root is neither of the two syntaxes.
    #[error("XML, but no e-invoice in CII or UBL")]
    NotAnInvoice,
    /// An amount, price or quantity that is no number, or has more digits than data can carry.
    #[error("the e-invoice has an amount that is no number or has too many digits")]
    Amount,
    /// A date in a form that is not a day of the calendar.
    #[error("the e-invoice has a date that is none")]
    Date,
    /// It lacks number, date, currency, seller or total.
    #[error("the e-invoice lacks number, date, currency, seller or total")]
    Incomplete,
    /// The document carries several that say different things.
    #[error("the document carries several e-invoices that say different things")]
    Several,
}

impl EinvoiceDefect {
    /// The stable word: what a person sees behind the name of the rule.
    pub fn code(self) -> &'static str {
        match self {
            Self::Attachment => "attachment",
            Self::Xml(error) => error.code(),
            Self::NotAnInvoice => "no_invoice",
            Self::Amount => "amount",
            Self::Date => "date",
            Self::Incomplete => "incomplete",
            Self::Several => "several",
        }
    }

    /// What a document ends in that is nothing but this XML.
    pub fn outcome_reason(self) -> OutcomeReason {
        match self {
            Self::NotAnInvoice => OutcomeReason::UnsupportedType,
            Self::Xml(XmlError::TooLarge) => OutcomeReason::TooLarge,
            _ => OutcomeReason::Corrupt,
        }
    }
}

/// What an e-invoice says. Values are in the form of the data: texts, ISO dates, numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedInvoiceXml {
    /// Whether it takes back rather than demands. Amounts have the sign of the XML all the same,
    /// which for a credit note is none.
    pub is_credit_note: bool,
    fields: Map<String, Value>,
}

/// The header fields and lines that both syntaxes fill.
#[derive(Debug, Default)]
struct InvoiceXmlFields {
    is_credit_note: bool,
    /// Seller name (BT-27) or trading name (BT-28).
    supplier_name: Value,
    /// Seller address (BG-5) on one line.
    supplier_address: Value,
    /// Seller VAT identifier (BT-31).
    supplier_vat_id: Value,
    /// Invoice number (BT-1).
    number: Value,
    /// Issue date (BT-2).
    date: Value,
    /// Payment due date (BT-9).
    due_date: Value,
    /// Invoice currency code (BT-5).
    currency: Value,
    /// Invoice lines (BG-25).
    lines: Vec<Value>,
    /// Total without VAT (BT-109).
    subtotal: Value,
    /// Total VAT amount (BT-110).
    vat_amount: Value,
    /// Total with VAT (BT-112).
    total: Value,
}

/// Without these it is no invoice.
const REQUIRED: [&str; 5] =
    ["supplier_name", "invoice_number", "invoice_date", "currency", "total"];

/// Reads an XML.
///
/// # Errors
/// Every [`EinvoiceDefect`] but `EinvoiceAttachment`, `Incomplete` and `Several`, which are not
/// seen from here.
pub fn parse_einvoice(bytes: &[u8]) -> Result<ParsedInvoiceXml, EinvoiceDefect> {
    let xml = XmlText::decode(bytes)?;
    let tree = xml.parse_tree()?;
    let fields = parse_by_syntax(tree.root_element())?;
    Ok(fields.into())
}

fn parse_by_syntax(root: Node<'_, '_>) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    let name = root.tag_name();
    match (name.namespace().unwrap_or_default(), name.name()) {
        (cii::NAMESPACE, "CrossIndustryInvoice") | (cii::ZUGFERD_1, "CrossIndustryDocument") => {
            cii::parse_cii(root)
        }
        (ubl::INVOICE, "Invoice") | (ubl::CREDIT_NOTE, "CreditNote") => ubl::parse_ubl(root),
        _ => Err(EinvoiceDefect::NotAnInvoice),
    }
}

impl From<InvoiceXmlFields> for ParsedInvoiceXml {
    fn from(read: InvoiceXmlFields) -> Self {
        let lines = if read.lines.is_empty() { Value::Null } else { Value::Array(read.lines) };
        let fields = [
            ("supplier_name", read.supplier_name),
            ("supplier_address", read.supplier_address),
            ("supplier_vat_id", read.supplier_vat_id),
            ("invoice_number", read.number),
            ("invoice_date", read.date),
            ("due_date", read.due_date),
            ("currency", read.currency),
            ("line_items", lines),
            ("subtotal", read.subtotal),
            ("vat_amount", read.vat_amount),
            ("total", read.total),
        ];
        Self {
            is_credit_note: read.is_credit_note,
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

impl ParsedInvoiceXml {
    /// Whether it has what no invoice can lack.
    pub fn is_complete(&self) -> bool {
        REQUIRED.iter().all(|field| self.fields.get(*field).is_some_and(|value| !value.is_null()))
    }

    /// Whether both say the same as far as neither can lack it.
    pub fn agrees_with(&self, other: &Self) -> bool {
        REQUIRED.iter().all(|field| self.fields.get(*field) == other.fields.get(*field))
    }

    /// Its values as data of `kind`. Fields that an e-invoice does not know stay null.
    pub fn to_extraction(&self, kind: &Kind) -> Extraction {
        let value = |name: &str| self.fields.get(name).cloned().unwrap_or_default();
        let data: Map<String, Value> =
            kind.fields().map(|(name, _)| (name.to_owned(), value(name))).collect();
        let missing = data.iter().filter(|(_, value)| value.is_null());
        Extraction {
            reader: ExtractionMethod::Einvoice,
            model: None,
            kind: kind.name.clone(),
            missing_fields: missing.map(|(name, _)| name.clone()).collect(),
            successful: true,
            confidence: StatedConfidence::High,
            evidence: Vec::new(),
            usage: ModelUsage::default(),
            data,
        }
    }
}

/// Whether documents of this kind are recognised by an e-invoice: a contract that carries one is
/// not.
pub fn kind_uses_einvoice(kind: &Kind) -> bool {
    REQUIRED.iter().all(|field| kind.has_field(field))
}

fn invoice_line_value(
    description: Value,
    quantity: Value,
    unit_price: Value,
    amount: Value,
) -> Value {
    json!({
        "description": description,
        "quantity": quantity,
        "unit_price": unit_price,
        "amount": amount,
    })
}

/// UNTDID 1001: the codes of EN 16931 that stand for credit notes.
fn is_credit_note(type_code: &Value) -> bool {
    let codes =
        ["81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"];
    type_code.as_str().is_some_and(|code| codes.contains(&code))
}
