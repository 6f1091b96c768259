//! The XML of an e-invoice: exact, without a model. It is untrusted input, so it is parsed only
//! where documents are opened. The result is a handful of fields and the lines of the invoice.
//!
//! Both syntaxes of EN 16931: UN/CEFACT CII (`ZUGFeRD` 1.0 and 2.x, Factur-X in every profile,
//! `XRechnung`) and UBL 2.1 (invoice and credit note, `XRechnung`, Peppol), also within a
//! `StandardBusinessDocument`; the national formats `KSeF`, `FatturaPA` (and its simplified
//! invoice), Facturae, ebInterface and OIOUBL; and INVOIC of EDIFACT. Elements are identified by
//! namespace and local name; prefixes mean nothing. BT numbers are those of EN 16931-1. Schemas are not
//! compiled in: the module of a national format names the elements and codes of its schema that are
//! checked; a doubt names what is missing.
//!
//! Values are carried over unchanged, but for the price of one unit, which is divided by its base,
//! and for the error of binary numbers. A value that cannot be carried over is null, and a doubt
//! names its field. Absent values are null. The gate flags the doubts, and checks whether the values
//! make sense and agree with the pages.

mod amounts;
mod cii;
mod consistency;
mod datev;
mod defect;
mod ebinterface;
mod edifact;
mod element;
mod facturae;
mod fatturapa;
mod fatturapa_simplified;
mod fields;
mod invoic;
mod ksef;
mod oioubl;
mod reference;
mod repeated;
mod root;
mod ubl;
mod ubl_output;
mod ubl_parts;
mod whole_tree;

use roxmltree::{Document, Node};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use docmill_core::model::{InvoiceReference, RuleReport, TextLine};

use crate::notation::date;
use crate::xml::{XmlError, XmlText};
use consistency::StatedSums;
pub use datev::{
    DatevDefects, DatevDirection, DatevDocument, DatevLedger, MAX_DATEV_DOCUMENTS,
    write_datev_ledger, write_datev_package,
};
pub use defect::EinvoiceDefect;
use edifact::EdifactFile;
pub use edifact::{EdifactError, is_edifact};
use element::ValueReader;
use fields::{InvoiceXmlFields, list_value};
pub use reference::SupportingFile;
use repeated::has_word;
use root::EinvoiceSyntax;
pub use root::XmlRootName;
pub use ubl_output::{UblDefects, write_ubl};

/// The content of an e-invoice. Values have the form of the data: texts, ISO dates, numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedInvoiceXml {
    /// Whether it takes back rather than demands. Amounts have the sign of the XML all the same,
    /// which for a credit note is none.
    pub is_credit_note: bool,
    fields: Map<String, Value>,
    /// The parts that an answer to its sender names, in UBL and CII.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<Box<InvoiceReference>>,
    /// Reasons to look at it, as words: `unread.due_date`.
    doubts: Vec<String>,
}

/// Most doubts, and bytes of each.
const MAX_DOUBTS: usize = 100;
const MAX_DOUBT: usize = 60;

/// Most lines of an invoice, and bytes of its texts: what is read has to fit into one message.
const MAX_LINES: usize = 20_000;
const MAX_TEXT: usize = 1 << 20;

/// Without these it is no invoice.
pub const REQUIRED: [&str; 5] =
    ["supplier_name", "invoice_number", "invoice_date", "currency", "total"];

/// Fields whose texts differ between syntaxes.
const WORDED: [&str; 4] = ["supplier_address", "supplier_trading_name", "payment_terms", "bic"];

/// Cells by which entries of two lists are compared.
const TELLING_CELLS: [&str; 6] = ["quantity", "amount", "base", "due_date", "percent", "days"];

/// Reads an XML.
///
/// # Errors
/// Every [`EinvoiceDefect`] but `Attachment`, `Incomplete` and `Several`, which are not
/// seen from here.
pub fn parse_einvoice(bytes: &[u8]) -> Result<ParsedInvoiceXml, EinvoiceDefect> {
    let mut reader = ValueReader::default();
    let mut fields = if is_edifact(bytes) {
        invoic::parse_invoic(bytes, &mut reader)?
    } else {
        let xml = XmlText::decode(bytes)?;
        let tree = xml.parse_tree()?;
        if xml.is_misdeclared() {
            reader.note("encoding");
        }
        parse_by_syntax(tree.root_element(), &mut reader)?
    };
    fields.complete(&mut reader);
    let invoice = ParsedInvoiceXml::new(fields, reader.into_doubts());
    if invoice.is_within_bounds() {
        Ok(invoice)
    } else {
        Err(EinvoiceDefect::Xml(XmlError::TooLarge))
    }
}

/// The segments of an invoice in EDIFACT as the lines of a page, up to `most_words` words.
///
/// # Errors
/// Text that is none or is cut off, several invoices, and other messages than invoices.
pub fn edifact_lines(bytes: &[u8], most_words: usize) -> Result<Vec<TextLine>, EinvoiceDefect> {
    let file = EdifactFile::parse(bytes)?;
    invoic::check_message(&file.segments, &mut ValueReader::default())?;
    Ok(file.lines(most_words))
}

fn parse_by_syntax(
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    match syntax_of(root).ok_or(EinvoiceDefect::NotAnInvoice)? {
        EinvoiceSyntax::BusinessDocument => parse_by_syntax(only_document(root)?, reader),
        syntax => {
            if root.tag_name().namespace().is_none() {
                reader.note("no_namespace");
            }
            whole_tree::note_ambiguous_content(root, reader);
            parse_document(syntax, root, reader)
        }
    }
}

fn parse_document(
    syntax: EinvoiceSyntax,
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    match syntax {
        EinvoiceSyntax::Cii => {
            let mut fields = cii::parse_cii(root, reader);
            whole_tree::note_foreign_amounts(root, &fields.currency, reader);
            if root.tag_name().namespace() != Some(cii::ZUGFERD_1) {
                fields.note_missing_due(reader);
            }
            fields.reference = reference::reference_of(root, false, &fields);
            Ok(fields)
        }
        EinvoiceSyntax::Ubl => {
            let mut fields = ubl::parse_ubl(root, reader);
            whole_tree::note_foreign_amounts(root, &fields.currency, reader);
            fields.reference = reference::reference_of(root, true, &fields);
            if oioubl::is_oioubl(root) {
                oioubl::settle_oioubl(root, &mut fields, reader);
            }
            fields.note_missing_due(reader);
            ubl::check_sums(root, &fields, reader);
            Ok(fields)
        }
        national => {
            repeated::note_repeated_elements(root, national, reader);
            let fields = parse_national(national, root, reader)?;
            fields.check_sums(&StatedSums::default(), reader);
            Ok(fields)
        }
    }
}

fn parse_national(
    syntax: EinvoiceSyntax,
    root: Node<'_, '_>,
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    match syntax {
        EinvoiceSyntax::Ksef => Ok(ksef::parse_ksef(root, reader)),
        EinvoiceSyntax::FatturaPa => fatturapa::parse_fatturapa(root, reader),
        EinvoiceSyntax::FatturaSemplificata => fatturapa_simplified::parse_simplified(root, reader),
        EinvoiceSyntax::Facturae => facturae::parse_facturae(root, reader),
        EinvoiceSyntax::EbInterface => Ok(ebinterface::parse_ebinterface(root, reader)),
        _ => Err(EinvoiceDefect::NotAnInvoice),
    }
}

/// Whether the root of an XML is that of an e-invoice that is read, or of an envelope of some.
pub fn has_known_root(tree: &Document<'_>) -> bool {
    let root = tree.root_element();
    match syntax_of(root) {
        Some(EinvoiceSyntax::BusinessDocument) => {
            !matches!(only_document(root), Err(EinvoiceDefect::NotAnInvoice))
        }
        syntax => syntax.is_some(),
    }
}

/// The root of the e-invoice in an XML, which may be within an envelope; `None`: there is not one.
pub fn find_root<'a, 'i>(tree: &'a Document<'i>) -> Option<Node<'a, 'i>> {
    let root = tree.root_element();
    match syntax_of(root)? {
        EinvoiceSyntax::BusinessDocument => only_document(root).ok(),
        _ => Some(root),
    }
}

/// The supporting documents embedded in an e-invoice in UBL or CII (BG-24), in order.
pub fn list_supporting_files(tree: &Document<'_>) -> Vec<SupportingFile> {
    let Some(root) = find_root(tree) else { return Vec::new() };
    match syntax_of(root) {
        Some(EinvoiceSyntax::Ubl) => reference::list_supporting(root, true),
        Some(EinvoiceSyntax::Cii) => reference::list_supporting(root, false),
        _ => Vec::new(),
    }
}

/// The syntax of a root. One without a namespace is an invoice by its name and its parts.
fn syntax_of(node: Node<'_, '_>) -> Option<EinvoiceSyntax> {
    let tag = node.tag_name();
    match (tag.namespace(), tag.name()) {
        (Some(namespace), name) => EinvoiceSyntax::from_root(namespace, name),
        (None, "CrossIndustryInvoice") => Some(EinvoiceSyntax::Cii),
        (None, "Invoice" | "CreditNote") if ubl::has_header(node) => Some(EinvoiceSyntax::Ubl),
        (None, _) => None,
    }
}

/// The only e-invoice of a `StandardBusinessDocument`. An envelope within an envelope is none.
fn only_document<'a, 'i>(envelope: Node<'a, 'i>) -> Result<Node<'a, 'i>, EinvoiceDefect> {
    let mut documents = envelope.children().filter(|child| {
        syntax_of(*child).is_some_and(|syntax| syntax != EinvoiceSyntax::BusinessDocument)
    });
    let first = documents.next().ok_or(EinvoiceDefect::NotAnInvoice)?;
    if documents.next().is_some() { Err(EinvoiceDefect::Batch) } else { Ok(first) }
}

impl ParsedInvoiceXml {
    fn new(read: InvoiceXmlFields, doubts: Vec<String>) -> Self {
        let [period_start, period_end] = read.period;
        let fields = [
            ("document_type", read.document_type),
            ("supplier_name", read.supplier_name),
            ("supplier_trading_name", read.trading_name),
            ("supplier_address", read.supplier_address),
            ("supplier_vat_id", read.supplier_vat_id),
            ("buyer_name", read.buyer_name),
            ("buyer_vat_id", read.buyer_vat_id),
            ("invoice_number", read.number),
            ("order_number", read.order_number),
            ("invoice_date", read.date),
            ("due_date", read.due_date),
            ("instalments", list_value(read.instalments)),
            ("delivery_date", read.delivery_date),
            ("period_start", period_start),
            ("period_end", period_end),
            ("payment_terms", read.payment_terms),
            ("cash_discounts", list_value(read.cash_discounts)),
            ("payment_reference", read.payment_reference),
            ("payee_name", read.payee_name),
            ("iban", read.accounts.iban),
            ("bic", read.accounts.bic),
            ("further_accounts", list_value(read.accounts.further)),
            ("currency", read.currency),
            ("line_items", list_value(read.lines)),
            ("allowances", list_value(read.allowances)),
            ("charges", list_value(read.charges)),
            ("taxes", list_value(read.taxes)),
            ("subtotal", read.subtotal),
            ("vat_amount", read.vat_amount),
            ("total", read.total),
            ("paid_amount", read.paid_amount),
            ("rounding_amount", read.rounding_amount),
            ("amount_due", read.amount_due),
        ];
        Self {
            is_credit_note: read.is_credit_note,
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            reference: read.reference.map(Box::new),
            doubts,
        }
    }
}

/// Fields whose value is a text or null.
const TEXTS: &str = "\
    document_type supplier_name supplier_trading_name payment_reference payee_name \
    supplier_address supplier_vat_id buyer_name buyer_vat_id invoice_number order_number \
    payment_terms iban bic currency";
const NUMBERS: [&str; 6] =
    ["subtotal", "vat_amount", "total", "paid_amount", "rounding_amount", "amount_due"];
const DATES: [&str; 5] =
    ["invoice_date", "due_date", "delivery_date", "period_start", "period_end"];
/// Lists of texts.
const TEXT_LISTS: [&str; 1] = ["further_accounts"];

/// The texts and numbers that the entries of a list hold.
struct EntryForm {
    list: &'static str,
    texts: &'static [&'static str],
    numbers: &'static [&'static str],
}

const LISTS: [EntryForm; 6] = [
    EntryForm {
        list: "line_items",
        texts: &["description", "article_number", "unit", "price_base_unit"],
        numbers: &["quantity", "unit_price", "price_base_quantity", "tax_rate", "amount"],
    },
    EntryForm { list: "instalments", texts: &["due_date"], numbers: &["amount"] },
    EntryForm { list: "allowances", texts: &["reason"], numbers: &["tax_rate", "amount"] },
    EntryForm { list: "charges", texts: &["reason"], numbers: &["tax_rate", "amount"] },
    EntryForm {
        list: "taxes",
        texts: &["category", "exemption_reason"],
        numbers: &["rate", "base", "amount"],
    },
    EntryForm { list: "cash_discounts", texts: &[], numbers: &["percent", "days"] },
];

impl ParsedInvoiceXml {
    /// Whether [`parse_einvoice`] can have returned this: those fields and no others, of their types,
    /// as many lines and as much text as it reads at most. For what was read elsewhere.
    pub fn is_sound(&self) -> bool {
        let are_fields = self.fields.iter().all(|(name, value)| match name.as_str() {
            name if DATES.contains(&name) => is_null_or(value, |day| {
                day.as_str().is_some_and(|day| date::parse_iso(day).is_some())
            }),
            name if has_word(TEXTS, name) => is_null_or(value, Value::is_string),
            name if NUMBERS.contains(&name) => is_null_or(value, Value::is_number),
            name if TEXT_LISTS.contains(&name) => is_null_or(value, |list| {
                list.as_array().is_some_and(|list| list.iter().all(Value::is_string))
            }),
            name => LISTS.iter().find(|form| form.list == name).is_some_and(|form| {
                is_null_or(value, |list| {
                    list.as_array().is_some_and(|list| list.iter().all(|it| form.fits(it)))
                })
            }),
        });
        let is_reference = self.reference.as_ref().is_none_or(|it| it.is_sound());
        are_fields && is_reference && self.are_doubts_sound() && self.is_within_bounds()
    }

    /// Doubts become reasons that people see: words of the program, no text of the document.
    fn are_doubts_sound(&self) -> bool {
        let is_word = |doubt: &String| {
            let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"._".contains(&c);
            doubt.len() <= MAX_DOUBT && doubt.bytes().all(plain)
        };
        self.doubts.len() <= MAX_DOUBTS && self.doubts.iter().all(is_word)
    }

    /// Reasons to look at it, as words of lower-case letters, digits, `_` and `.`:
    /// `unread.due_date`, `type_751`.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// The parts that an answer to its sender names; `None`: another syntax, or it lacks them.
    pub fn reference(&self) -> Option<&InvoiceReference> {
        self.reference.as_deref()
    }

    fn is_within_bounds(&self) -> bool {
        self.longest_list() <= MAX_LINES && self.text_bytes() <= MAX_TEXT
    }

    /// Whether it has what no invoice can lack.
    pub fn is_complete(&self) -> bool {
        REQUIRED.iter().all(|field| self.fields.get(*field).is_some_and(|value| !value.is_null()))
    }

    /// Whether both are of one kind, agree in the mandatory fields, and contradict each other in no
    /// field that both state.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.is_credit_note == other.is_credit_note
            && REQUIRED.iter().all(|field| self.fields.get(*field) == other.fields.get(*field))
            && self.fields.iter().all(|(field, own)| {
                let theirs = other.fields.get(field).unwrap_or(&Value::Null);
                let is_stated = !own.is_null() && !theirs.is_null();
                !is_stated || WORDED.contains(&field.as_str()) || are_alike(field, own, theirs)
            })
    }

    /// The value of a field as `invoice_number`; null for one that it lacks, and for what no
    /// e-invoice knows.
    pub fn field(&self, name: &str) -> Value {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    /// Bytes of all its texts.
    fn text_bytes(&self) -> usize {
        let entries = self.fields.values().filter_map(Value::as_array).flatten();
        let cells = entries.clone().filter_map(Value::as_object).flat_map(Map::values);
        self.fields
            .values()
            .chain(entries)
            .chain(cells)
            .filter_map(Value::as_str)
            .map(str::len)
            .sum()
    }

    /// Entries of the longest list, the lines as a rule.
    fn longest_list(&self) -> usize {
        self.fields.values().filter_map(Value::as_array).map(Vec::len).max().unwrap_or_default()
    }
}

impl EntryForm {
    /// Whether an entry holds these fields and no others, of their types.
    fn fits(&self, entry: &Value) -> bool {
        entry
            .as_object()
            .is_some_and(|entry| entry.iter().all(|(name, value)| self.fits_cell(name, value)))
    }

    fn fits_cell(&self, name: &str, value: &Value) -> bool {
        let text = self.texts.contains(&name);
        let number = self.numbers.contains(&name);
        is_null_or(value, |value| (text && value.is_string()) || (number && value.is_number()))
            && (text || number)
    }
}

/// The result of all e-invoices of a document together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EinvoiceFinding {
    /// The one thing that all say which can be read; `None`: there is none to read.
    pub invoice: Result<Option<ParsedInvoiceXml>, EinvoiceDefect>,
    /// Whether it is the document itself: there are no pages to hold it against.
    pub is_document: bool,
    /// The verdict of official rules on it; `None`: none are configured, or none are meant for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RuleReport>,
}

impl EinvoiceFinding {
    /// Nothing was found.
    pub const NONE: Self = Self { invoice: Ok(None), is_document: false, rules: None };

    /// No use could be made of it.
    pub fn unusable(defect: EinvoiceDefect, is_document: bool) -> Self {
        Self { invoice: Err(defect), is_document, rules: None }
    }

    /// Reads what was found. A document that is XML is read even if it is incomplete: nothing else
    /// could be asked.
    pub fn from_files(files: &[Vec<u8>], is_document: bool) -> Self {
        Self::from_checked_files(files, is_document, |_| None)
    }

    /// As [`Self::from_files`]; the file that is used, or the first, is checked by rules.
    pub fn from_checked_files(
        files: &[Vec<u8>],
        is_document: bool,
        check: impl FnOnce(&[u8]) -> Option<RuleReport>,
    ) -> Self {
        let (mut usable, mut flaw): (Option<ParsedInvoiceXml>, _) = (None, None);
        let mut checked = files.first();
        for file in files {
            match parse_einvoice(file) {
                Ok(invoice) if !invoice.is_complete() && !is_document => {
                    flaw = flaw.or(Some(EinvoiceDefect::Incomplete));
                }
                Ok(invoice) => match &usable {
                    Some(first) if !invoice.agrees_with(first) => {
                        return Self::unusable(EinvoiceDefect::Several, is_document);
                    }
                    Some(_) => {}
                    None => (usable, checked) = (Some(invoice), Some(file)),
                },
                Err(other) => flaw = flaw.or(Some(other)),
            }
        }
        let invoice = match (usable, flaw) {
            (None, Some(flaw)) => Err(flaw),
            (usable, _) => Ok(usable),
        };
        Self { invoice, is_document, rules: checked.and_then(|file| check(file)) }
    }
}

/// Whether two values of a field agree. Of two lists of texts, one may have more entries.
fn are_alike(field: &str, own: &Value, theirs: &Value) -> bool {
    let [own, theirs] = [own, theirs].map(telling_values);
    let (fewer, more) = if own.len() <= theirs.len() { (&own, &theirs) } else { (&theirs, &own) };
    own == theirs || (TEXT_LISTS.contains(&field) && fewer.iter().all(|it| more.contains(it)))
}

/// The parts of a value that are compared: the entries of a list in any order.
fn telling_values(value: &Value) -> Vec<String> {
    let Some(entries) = value.as_array() else { return vec![value.to_string()] };
    let mut told: Vec<String> = Vec::new();
    for entry in entries {
        let cells = TELLING_CELLS.map(|cell| entry.get(cell).unwrap_or(&Value::Null).to_string());
        told.push(if entry.is_object() { cells.join(" ") } else { entry.to_string() });
    }
    told.sort_unstable();
    told
}

fn is_null_or(value: &Value, is_right: impl Fn(&Value) -> bool) -> bool {
    value.is_null() || is_right(value)
}

#[cfg(test)]
mod legal_tests;
#[cfg(test)]
mod national_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An XML with these fields, as if read elsewhere.
    fn told(fields: &Value) -> ParsedInvoiceXml {
        serde_json::from_value(json!({ "is_credit_note": false, "fields": fields, "doubts": [] }))
            .unwrap()
    }

    #[test]
    fn two_e_invoices_agree_unless_both_name_another_account_identifier_day_amount_or_line() {
        let head = json!({ "supplier_name": "A", "invoice_number": "1", "total": 5 });
        let line = |cell: &str, value: i64| json!([{ "description": value, cell: value }]);
        let lines = |amounts: [i64; 2]| json!(amounts.map(|it| json!({ "amount": it })));
        for (own, theirs, agrees) in [
            (Value::Null, line("amount", 5), true),
            (line("amount", 5), line("amount", 5), true),
            (line("unit_price", 5), line("unit_price", 6), true),
            (line("amount", 5), line("amount", 6), false),
            (line("quantity", 5), line("quantity", 6), false),
            (lines([5, 6]), lines([6, 5]), true),
            (lines([5, 6]), line("amount", 5), false),
        ] {
            let [mut first, mut second] = [head.clone(), head.clone()];
            (first["line_items"], second["line_items"]) = (own.clone(), theirs);
            assert_eq!(told(&first).agrees_with(&told(&second)), agrees, "{own}");
        }
        let kind = |is_credit_note| ParsedInvoiceXml { is_credit_note, ..told(&head) };
        assert!(!kind(true).agrees_with(&kind(false)), "a credit note");
        for (theirs, agrees) in [(json!(["1", "2"]), true), (json!(["2"]), false)] {
            let [own, theirs] = [json!(["1"]), theirs].map(|it| json!({ "further_accounts": it }));
            assert_eq!(told(&own).agrees_with(&told(&theirs)), agrees, "{theirs}");
        }
        for (field, is_worded) in [
            ("payee_name", false),
            ("document_type", false),
            ("buyer_name", false),
            ("due_date", false),
            ("amount_due", false),
            ("iban", false),
            ("payment_terms", true),
        ] {
            for (other, agrees) in [(json!(7), true), (json!(8), is_worded), (Value::Null, true)] {
                let [mut first, mut second] = [head.clone(), head.clone()];
                (first[field], second[field]) = (json!(7), other.clone());
                assert_eq!(told(&first).agrees_with(&told(&second)), agrees, "{field} {other}");
            }
        }
    }

    #[test]
    fn what_was_read_elsewhere_has_these_fields_and_types_or_is_not_believed() {
        let line = |name: &str, value: Value| json!({ "line_items": [{ name: value }] });
        let long = "x".repeat(MAX_TEXT + 1);
        let lines = |count: usize| json!({ "line_items": vec![json!({}); count] });
        for (name, fields, sound) in [
            ("nothing", json!({}), true),
            ("a text", json!({ "supplier_name": "A" }), true),
            ("a number", json!({ "total": 1.5 }), true),
            ("a day", json!({ "due_date": "2026-03-05" }), true),
            ("a text of a line", line("unit", json!("C62")), true),
            ("a number of a line", line("amount", json!(1)), true),
            ("null", json!({ "total": null, "due_date": null, "iban": null, "taxes": null }), true),
            ("null in a line", line("amount", Value::Null), true),
            ("as many lines as are read", lines(MAX_LINES), true),
            ("one more", lines(MAX_LINES + 1), false),
            ("more text than is read", json!({ "iban": long }), false),
            ("a number as text", json!({ "total": "1.5" }), false),
            ("a text as number", json!({ "iban": 5 }), false),
            ("no day of the calendar", json!({ "due_date": "2026-02-30" }), false),
            ("a list as text", json!({ "taxes": "none" }), false),
            ("an entry that is none", json!({ "taxes": [5] }), false),
            ("a field that no e-invoice has", json!({ "note": null }), false),
            ("a cell that no line has", line("note", Value::Null), false),
            ("a number of a line as text", line("amount", json!("one")), false),
            ("a text of a line as number", line("unit", json!(5)), false),
        ] {
            assert_eq!(told(&fields).is_sound(), sound, "{name}");
        }
        for (doubt, sound) in [
            ("unread.due_date".to_owned(), true),
            ("type_751".to_owned(), true),
            ("Pay to NO9386011117947".to_owned(), false),
            ("x".repeat(MAX_DOUBT + 1), false),
        ] {
            let invoice = ParsedInvoiceXml { doubts: vec![doubt.clone()], ..told(&json!({})) };
            assert_eq!(invoice.is_sound(), sound, "{doubt}");
        }
    }
}
