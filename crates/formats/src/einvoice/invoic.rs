//! The message INVOIC of UN/EDIFACT, directories D.96A and D.01B, with the codes that EANCOM uses
//! (UNTDID 1001, 1153, 2005, 3035, 5025, 5125, 6063). Other directories are read alike and noted.
//!
//! A total is the amount 77, 39 or 128, or 86 where it is the sum of net and tax, what is due the
//! amount 9. A rate of VAT in the header is that of lines without one; other taxes than VAT are charges.
//! A partner that is given by its number alone is named by that, and noted. Checked: one message of
//! this kind, its version, and the number of its segments.

use rust_decimal::Decimal;
use serde_json::Value;

use super::amounts::{column_sum, share_of, sum_of, value_of};
use super::consistency::StatedSums;
use super::defect::EinvoiceDefect;
use super::edifact::{EdifactFile, EdifactSegment};
use super::element::{ValueReader, decimal_of, parse_decimal};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, PaymentAccounts, TaxRow, adjustment_value, cash_discount,
    day_after, days_until,
};
use super::repeated::note_repeated_segments;
use crate::notation::date;

/// Amounts of an allowance or charge (UNTDID 5025).
const ADJUSTMENTS: [&str; 4] = ["8", "204", "23", "131"];

/// The base amount of an allowance or charge.
const SHARE_BASE: &str = "25";

/// The test indicator's position in UNB.
const TEST_ELEMENT: usize = 10;

/// Date formats (UNTDID 2379): code, leading digits, and the century of two-digit years. A date
/// without code has format 102.
const DAY_FORMS: [(&str, usize, &str); 12] = [
    ("101", 6, "20"),
    ("201", 10, "20"),
    ("202", 12, "20"),
    ("301", 10, "20"),
    ("302", 12, "20"),
    ("", 8, ""),
    ("102", 8, ""),
    ("203", 12, ""),
    ("204", 14, ""),
    ("205", 12, ""),
    ("303", 12, ""),
    ("304", 14, ""),
];

/// The codes of VAT (UNTDID 5153).
const VAT: [&str; 2] = ["VAT", "GST"];

/// The code of a currency that invoices are stated in (UNTDID 6343).
const INVOICING: &str = "4";

/// A description is put together from segments up to this length.
const MAX_DESCRIPTION_BYTES: usize = 5_000;

/// Reads a file.
///
/// # Errors
/// Text that is none or is cut off, several invoices, and other messages than invoices.
pub(super) fn parse_invoic(
    bytes: &[u8],
    reader: &mut ValueReader,
) -> Result<InvoiceXmlFields, EinvoiceDefect> {
    let file = EdifactFile::parse(bytes)?;
    check_message(&file.segments, reader)?;
    note_repeated_segments(&file.segments, reader);
    let mut message = InvoicReader {
        reader,
        decimal: file.decimal,
        fields: InvoiceXmlFields::default(),
        part: InvoicSection::Opening,
        party: String::new(),
        supplier: None,
        invoicee: None,
        line: None,
        adjustment: None,
        tax: None,
        discount_days: None,
        is_discount: false,
        has_lost_share: false,
        is_adjusted: false,
        term_days: Vec::new(),
        header_rates: Vec::new(),
        line_day: Value::Null,
        line_days: Vec::new(),
        other_tax: None,
        payee_accounts: PaymentAccounts::default(),
        totals: Vec::new(),
        words: Vec::new(),
    };
    for segment in &file.segments {
        message.read_segment(segment);
    }
    Ok(message.finish())
}

pub(super) fn check_message(
    segments: &[EdifactSegment],
    reader: &mut ValueReader,
) -> Result<(), EinvoiceDefect> {
    let mut heads = segments.iter().enumerate().filter(|(_, segment)| segment.tag == "UNH");
    let (begin, head) = heads.next().ok_or(EinvoiceDefect::NotAnInvoice)?;
    if head.get(1, 0) != "INVOIC" {
        return Err(EinvoiceDefect::NotAnInvoice);
    }
    if heads.next().is_some() {
        return Err(EinvoiceDefect::Batch);
    }
    let mut interchange = segments.iter().filter(|segment| segment.tag == "UNB");
    if interchange.any(|segment| segment.get(TEST_ELEMENT, 0) == "1") {
        reader.note("test");
    }
    if !matches!((head.get(1, 1), head.get(1, 2)), ("D", "96A" | "01B")) {
        reader.note("edifact_version");
    }
    let end = segments.iter().position(|segment| segment.tag == "UNT");
    let count = end.map(|end| (end + 1).saturating_sub(begin));
    let stated = end.and_then(|end| segments.get(end)?.get(0, 0).parse::<usize>().ok());
    if count.is_none() || count != stated {
        reader.note("segment_count");
    }
    Ok(())
}

/// The part of the message that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvoicSection {
    /// Segments before the first reference or partner: their days are the document's.
    Opening,
    Header,
    Lines,
    Summary,
}

/// An allowance or charge while it is read.
#[derive(Debug, Default)]
struct OpenAdjustment {
    is_charge: bool,
    reason: Value,
    rate: Value,
    amount: Value,
    /// The basis of the amount (`MOA+25`), and the share in percent (`PCD`).
    base: Value,
    percent: Value,
}

/// Reads segment by segment.
struct InvoicReader<'r> {
    reader: &'r mut ValueReader,
    decimal: char,
    fields: InvoiceXmlFields,
    part: InvoicSection,
    /// The code of the partner that references belong to.
    party: String,
    /// The partners that a message names once, as they were named.
    supplier: Option<Value>,
    invoicee: Option<Value>,
    line: Option<InvoiceXmlLine>,
    adjustment: Option<OpenAdjustment>,
    tax: Option<TaxRow>,
    /// The days of a discount whose percentage follows the terms (`PCD+12`).
    discount_days: Option<Value>,
    /// Whether the terms that are read are those of a discount.
    is_discount: bool,
    /// Whether the line has an allowance or charge of its own.
    is_adjusted: bool,
    /// Whether a header allowance or charge has a percentage without base amount.
    has_lost_share: bool,
    /// Days from issue to the due date, by the payment terms.
    term_days: Vec<Value>,
    /// Rates of VAT that the header states.
    header_rates: Vec<Value>,
    /// The day of delivery of the line, and those of the lines before it.
    line_day: Value,
    line_days: Vec<Value>,
    /// The code of the tax that is read, where it is not VAT.
    other_tax: Option<String>,
    /// The accounts of a payee other than the seller.
    payee_accounts: PaymentAccounts,
    /// Amounts of the summary by their code.
    totals: Vec<(String, Value)>,
    /// The terms of payment.
    words: Vec<String>,
}

impl InvoicReader<'_> {
    fn read_segment(&mut self, segment: &EdifactSegment) {
        match segment.tag.as_str() {
            "BGM" => self.read_document(segment),
            "DTM" => self.read_day(segment),
            "RFF" => self.read_reference(segment),
            "NAD" => self.read_partner(segment),
            "FII" if matches!(segment.get(0, 0), "RB" | "BF" | "BE") => {
                let (account, bic) = (text_value(segment.get(1, 0)), text_value(segment.get(2, 0)));
                let is_payee = matches!(self.party.as_str(), "PE" | "RE");
                let own =
                    if is_payee { &mut self.payee_accounts } else { &mut self.fields.accounts };
                own.add(account, bic);
            }
            "CUX" if self.fields.currency.is_null() => {
                let own = (0..=1).find(|element| segment.get(*element, 2) == INVOICING);
                self.fields.currency = text_value(segment.get(own.unwrap_or(0), 1));
            }
            "PAT" | "PYT" => self.read_terms(segment),
            "PCD" => self.read_percentage(segment),
            "ALC" => self.open_adjustment(segment),
            "TAX" => self.read_tax(segment),
            "MOA" => self.read_amount(segment),
            "LIN" => self.open_line(segment),
            "PIA" | "IMD" | "QTY" | "PRI" => self.read_line(segment),
            "UNS" => {
                self.close_line();
                self.part = InvoicSection::Summary;
            }
            "UNT" => self.close_line(),
            _ => {}
        }
        if self.part == InvoicSection::Opening
            && !matches!(segment.tag.as_str(), "UNB" | "UNG" | "UNH" | "BGM" | "DTM")
        {
            self.part = InvoicSection::Header;
        }
    }

    fn number(&mut self, field: &str, text: &str) -> Value {
        if text.is_empty() {
            return Value::Null;
        }
        // A comma is a decimal mark whatever UNA says (ISO 9735): thousands have no marks.
        let number = parse_decimal(&text.replace([self.decimal, ','], "."));
        if number.is_none() {
            self.reader.note(format!("unread.{field}"));
        }
        value_of(number)
    }

    /// The end date of a discount, where its days are not stated.
    fn note_discount_day(&mut self, text: &str, format: &str) {
        if self.discount_days == Some(Value::Null) {
            let until = self.day("cash_discounts", text, format);
            self.discount_days = Some(days_until(&self.fields.date, &until));
        }
    }

    /// A day in one of [`DAY_FORMS`].
    fn day(&mut self, field: &str, text: &str, format: &str) -> Value {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let known = DAY_FORMS.iter().find(|(code, length, _)| *code == format && *length == digits);
        let whole = known.map_or_else(String::new, |(_, _, century)| format!("{century}{text}"));
        let parts = (whole.get(..4), whole.get(4..6), whole.get(6..8));
        let day = match parts {
            (Some(year), Some(month), Some(day)) => {
                date::parse_iso(&format!("{year}-{month}-{day}"))
            }
            _ => None,
        };
        if day.is_none() {
            self.reader.note(format!("unread.{field}"));
        }
        day.map_or(Value::Null, |day| date::to_iso(day).into())
    }

    fn read_document(&mut self, segment: &EdifactSegment) {
        self.fields.document_type = text_value(segment.get(0, 0));
        self.fields.number = text_value(segment.get(1, 0));
        // UNTDID 1225. Originals: also confirmations by other means, and definitive ones.
        let doubt = match segment.get(2, 0) {
            "" | "9" | "42" | "47" => return,
            "1" | "3" => "cancels_another",
            "5" => "correction_replaces",
            "7" | "31" | "35" | "43" => "copy",
            "53" => "test",
            _ => "message_function",
        };
        self.reader.note(doubt);
    }

    fn read_day(&mut self, segment: &EdifactSegment) {
        let (code, text, format) = (segment.get(0, 0), segment.get(0, 1), segment.get(0, 2));
        let is_opening = self.part == InvoicSection::Opening;
        match code {
            "137" if is_opening => self.fields.date = self.day("invoice_date", text, format),
            "3" if is_opening && self.fields.date.is_null() => {
                self.fields.date = self.day("invoice_date", text, format);
            }
            "35" if is_opening => {
                self.fields.delivery_date = self.day("delivery_date", text, format)
            }
            "35" if self.line.is_some() => {
                self.line_day = self.day("delivery_date", text, format);
            }
            "12" | "13" | "265" if self.is_discount || code == "12" => {
                self.note_discount_day(text, format);
            }
            "263" if is_opening => {
                // 718 is CCYYMMDD-CCYYMMDD, 711 the same without the stroke.
                let (start, end) =
                    text.split_once('-').or(text.split_at_checked(8)).unwrap_or((text, ""));
                self.fields.period =
                    [self.day("period_start", start, "102"), self.day("period_end", end, "102")];
            }
            // Of the charges, or of what is invoiced.
            "167" | "194" if is_opening => {
                self.fields.period[0] = self.day("period_start", text, format)
            }
            "168" | "206" if is_opening => {
                self.fields.period[1] = self.day("period_end", text, format)
            }
            "13" | "265" => {
                let day = self.day("due_date", text, format);
                if !self.fields.due_date.is_null() && self.fields.due_date != day {
                    self.reader.note("several_due_dates");
                } else {
                    self.fields.due_date = day;
                }
            }
            _ => {}
        }
    }

    fn read_reference(&mut self, segment: &EdifactSegment) {
        if !matches!(self.part, InvoicSection::Opening | InvoicSection::Header) {
            return;
        }
        let value = text_value(segment.get(0, 1));
        match (segment.get(0, 0), self.party.as_str()) {
            ("ON", _) if self.fields.order_number.is_null() => self.fields.order_number = value,
            ("PQ", _) => self.fields.payment_reference = value,
            ("VA", "SU" | "SE") if self.fields.supplier_vat_id.is_null() => {
                self.fields.supplier_vat_id = value;
            }
            ("VA", "IV") => self.fields.buyer_vat_id = value,
            ("VA", "BY") if self.fields.buyer_vat_id.is_null() => self.fields.buyer_vat_id = value,
            _ => {}
        }
    }

    fn read_partner(&mut self, segment: &EdifactSegment) {
        segment.get(0, 0).clone_into(&mut self.party);
        // Parties of a line are not parties of the invoice.
        if !matches!(self.part, InvoicSection::Opening | InvoicSection::Header) {
            return;
        }
        let names: Vec<&str> = segment.components(3).chain(segment.components(2)).collect();
        let number = segment.get(1, 0);
        let mut name = text_value(&names.join(" "));
        let is_named = !name.is_null();
        if !is_named && !number.is_empty() {
            name = format!("GLN {number}").into();
        }
        let repeated = match self.party.as_str() {
            "SU" | "SE" => Some(("supplier_name", &mut self.supplier)),
            "IV" => Some(("buyer_name", &mut self.invoicee)),
            _ => None,
        };
        if let Some((field, first)) = repeated
            && *first.get_or_insert_with(|| name.clone()) != name
        {
            self.reader.note(format!("several.{field}"));
            return;
        }
        match self.party.as_str() {
            "SU" | "SE" => {
                self.fields.supplier_name = name;
                self.fields.supplier_address = address(segment);
            }
            "IV" => self.fields.buyer_name = name,
            "BY" if self.fields.buyer_name.is_null() => self.fields.buyer_name = name,
            "PE" | "RE" => self.fields.payee_name = name,
            _ => return,
        }
        if !is_named {
            self.reader.note("partner_by_number");
        }
    }

    /// `PAT+3++5:3:D:30`: days from a day on; `22` is a discount.
    fn read_terms(&mut self, segment: &EdifactSegment) {
        let text = segment.get(2, 3);
        let in_days = segment.get(2, 2) == "D";
        let days = if in_days { self.number("cash_discounts", text) } else { Value::Null };
        self.is_discount = segment.get(0, 0) == "22";
        self.discount_days = Some(if self.is_discount { days.clone() } else { Value::Null });
        if !self.is_discount && !days.is_null() {
            self.words.push(format!("{text} D"));
            // After the date of the invoice (UNTDID 2475 and 2009).
            if (segment.get(2, 0), segment.get(2, 1)) == ("5", "3") {
                self.term_days.push(days);
            }
        }
        self.words.extend(segment.components(1).skip(3).map(str::to_owned));
    }

    fn read_percentage(&mut self, segment: &EdifactSegment) {
        if self.adjustment.is_some() {
            let percent = self.number("allowances", segment.get(0, 1));
            if let Some(open) = &mut self.adjustment {
                open.percent = percent;
            }
            return;
        }
        if let Some(days) = self.discount_days.take().filter(|_| segment.get(0, 0) == "12") {
            let percent = self.number("cash_discounts", segment.get(0, 1));
            self.fields.cash_discounts.extend(cash_discount(percent, days));
        }
    }

    fn open_adjustment(&mut self, segment: &EdifactSegment) {
        self.close_adjustment();
        self.is_adjusted |= self.line.is_some();
        let reason: Vec<&str> = [segment.get(4, 3), segment.get(4, 4), segment.get(4, 0)]
            .into_iter()
            .filter(|text| !text.is_empty())
            .take(1)
            .collect();
        let is_charge = segment.get(0, 0) == "C";
        if !is_charge && segment.get(0, 0) != "A" {
            self.reader.note("unread.allowances");
        }
        let reason = text_value(&reason.concat());
        self.adjustment = Some(OpenAdjustment { is_charge, reason, ..OpenAdjustment::default() });
    }

    /// An allowance of a line is in its amount; one of the summary repeats the header's.
    fn close_adjustment(&mut self) {
        let Some(mut open) = self.adjustment.take() else { return };
        let is_repeated = self.part == InvoicSection::Summary
            && !(self.fields.allowances.is_empty() && self.fields.charges.is_empty());
        if self.line.is_some() || is_repeated {
            return;
        }
        if open.amount.is_null() {
            open.amount = share_of(&open.base, &open.percent);
        }
        if open.amount.is_null() {
            self.has_lost_share |= decimal_of(&open.percent).is_some_and(|it| !it.is_zero());
            return;
        }
        // The amounts of the summary stand for the shares of the header.
        self.has_lost_share &= self.part != InvoicSection::Summary;
        let value = adjustment_value(open.reason, open.rate, open.amount);
        let list =
            if open.is_charge { &mut self.fields.charges } else { &mut self.fields.allowances };
        list.push(value);
    }

    fn read_tax(&mut self, segment: &EdifactSegment) {
        let rate = self.number("taxes", segment.get(4, 3));
        let category = text_value(segment.get(5, 0));
        let code = segment.get(1, 0);
        if !code.is_empty() && !VAT.contains(&code) {
            if self.part == InvoicSection::Summary {
                self.close_tax();
                self.other_tax = Some(code.to_owned());
                self.tax = Some(TaxRow::default());
            }
            return;
        }
        if let Some(open) = &mut self.adjustment {
            open.rate = rate;
        } else if let Some(line) = &mut self.line {
            line.tax_rate = rate;
        } else if self.part == InvoicSection::Summary {
            self.close_tax();
            self.tax = Some(TaxRow { rate, category, ..TaxRow::default() });
        } else if !self.header_rates.contains(&rate) {
            self.header_rates.push(rate);
        }
    }

    fn close_tax(&mut self) {
        let other_tax = self.other_tax.take();
        let Some(row) = self.tax.take().filter(|row| !row.base.is_null() || !row.amount.is_null())
        else {
            return;
        };
        match other_tax {
            Some(code) => {
                self.fields.charges.push(adjustment_value(code.into(), Value::Null, row.amount));
            }
            None => self.fields.taxes.push(row.into_value()),
        }
    }

    fn read_amount(&mut self, segment: &EdifactSegment) {
        let code = segment.get(0, 0);
        let amount = self.number("total", segment.get(0, 1));
        let currency = segment.get(0, 2);
        if self.fields.currency.is_null() && matches!(segment.get(0, 3), "" | INVOICING) {
            self.fields.currency = text_value(currency);
        }
        if !currency.is_empty() && self.fields.currency.as_str().is_some_and(|own| own != currency)
        {
            self.reader.note("currency_of.amounts");
        }
        if let Some(open) = &mut self.adjustment
            && code == SHARE_BASE
        {
            open.base = amount;
            return;
        }
        if let Some(open) = &mut self.adjustment
            && ADJUSTMENTS.contains(&code)
        {
            open.amount = amount;
            if self.part == InvoicSection::Summary {
                self.close_adjustment();
            }
            return;
        }
        if let Some(line) = &mut self.line {
            match code {
                "203" => line.amount = amount,
                "66" if line.amount.is_null() => line.amount = amount,
                _ => {}
            }
            return;
        }
        if self.part != InvoicSection::Summary {
            return;
        }
        match (&mut self.tax, code) {
            (Some(row), "124") => row.amount = amount,
            (Some(row), "125" | "79") if row.base.is_null() => row.base = amount,
            _ => self.totals.push((code.to_owned(), amount)),
        }
    }

    fn open_line(&mut self, segment: &EdifactSegment) {
        self.close_line();
        self.part = InvoicSection::Lines;
        let article = text_value(segment.get(2, 0));
        self.line = Some(InvoiceXmlLine { article_number: article, ..InvoiceXmlLine::default() });
    }

    fn read_line(&mut self, segment: &EdifactSegment) {
        let (code, text) = (segment.get(0, 0), segment.get(0, 1));
        let value = match segment.tag.as_str() {
            "QTY" => self.number("line_items.quantity", text),
            "PRI" => self.number("line_items.unit_price", text),
            _ => Value::Null,
        };
        let base = self.number("line_items.price_base_quantity", segment.get(0, 4));
        let Some(line) = self.line.as_mut().filter(|_| self.adjustment.is_none()) else { return };
        match (segment.tag.as_str(), code) {
            ("QTY", "47") => {
                line.quantity = value;
                line.unit = text_value(segment.get(0, 2));
            }
            ("QTY", "46" | "12" | "61") if line.quantity.is_null() => {
                line.quantity = value;
                line.unit = text_value(segment.get(0, 2));
            }
            ("PRI", "AAA" | "INV" | "NTP" | "AAB") if code != "AAB" || line.price.is_null() => {
                line.price = value;
                line.price_base = base;
                line.price_base_unit = text_value(segment.get(0, 5));
            }
            ("PIA", _) => {
                let own = (1..=5).find(|element| segment.get(*element, 1) == "SA");
                if let Some(element) = own {
                    line.article_number = text_value(segment.get(element, 0));
                }
            }
            ("IMD", _) if line.description.as_str().map_or(0, str::len) < MAX_DESCRIPTION_BYTES => {
                let own = line.description.as_str().unwrap_or_default();
                let words = [own, segment.get(2, 3), segment.get(2, 4)];
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                line.description = text_value(&words.join(" "));
            }
            ("IMD", _) => self.reader.note("text_cut"),
            _ => {}
        }
    }

    fn close_line(&mut self) {
        self.close_adjustment();
        let Some(mut line) = self.line.take() else { return };
        self.line_days.push(std::mem::take(&mut self.line_day));
        if let [rate] = self.header_rates.as_slice()
            && line.tax_rate.is_null()
        {
            line.tax_rate = rate.clone();
        }
        // The price before a line's allowances is not the one of its amount.
        if std::mem::take(&mut self.is_adjusted) && !line.amount.is_null() {
            line.take_price_from_amount();
        }
        self.fields.lines.push(line.into_value(self.reader));
    }

    fn total(&mut self, codes: &[&str]) -> Value {
        let amounts = codes.iter().map(|code| {
            let own = self.totals.iter().filter(|(own, amount)| own == code && !amount.is_null());
            own.map(|(_, amount)| amount.clone()).collect::<Vec<_>>()
        });
        let Some(found) = amounts.into_iter().find(|own| !own.is_empty()) else {
            return Value::Null;
        };
        let first = found.first().cloned().unwrap_or_default();
        if found.iter().any(|other| *other != first) {
            self.reader.note("several.total");
        }
        first
    }

    /// The day of delivery that all lines state alike, and the due date by the only days of the terms.
    fn settle_days(&mut self) {
        let first = self.line_days.first().cloned().unwrap_or_default();
        if self.fields.delivery_date.is_null() && self.line_days.iter().all(|day| *day == first) {
            self.fields.delivery_date = first;
        }
        if let [days] = self.term_days.as_slice()
            && self.fields.due_date.is_null()
        {
            self.fields.due_date = day_after(&self.fields.date, days);
        }
    }

    fn finish(mut self) -> InvoiceXmlFields {
        self.close_adjustment();
        self.close_tax();
        if self.has_lost_share {
            self.reader.note("unread.allowances");
        }
        self.settle_days();
        self.payee_accounts.append(std::mem::take(&mut self.fields.accounts));
        self.fields.accounts = std::mem::take(&mut self.payee_accounts);
        let mut total = self.total(&["77", "39", "128"]);
        let of_message = self.total(&["86"]);
        let (paid, due) = (self.total(&["113"]), self.total(&["9"]));
        let mut vat = self.total(&["124", "176"]);
        let mut net = self.total(&["125"]);
        let fields = &mut self.fields;
        if vat.is_null() {
            vat = value_of(column_sum(&fields.taxes, "amount"));
        }
        if net.is_null() {
            net = value_of(column_sum(&fields.taxes, "base"));
        }
        if total.is_null() && sum_of([&net, &vat]) == decimal_of(&of_message) {
            total = of_message;
        }
        let whole = decimal_of(&total).or_else(|| sum_of([&due, &paid]));
        if net.is_null() {
            let tax = decimal_of(&vat).unwrap_or(Decimal::ZERO);
            net = value_of(whole.map(|whole| whole - tax));
        }
        fields.amount_due = due;
        if fields.amount_due.is_null() {
            fields.amount_due =
                value_of(whole.map(|whole| whole - decimal_of(&paid).unwrap_or_default()));
        }
        (fields.total, fields.subtotal, fields.vat_amount, fields.paid_amount) =
            (total, net, vat, paid);
        fields.payment_terms = text_value(&self.words.join(" / "));
        let lines = self.total(&["79"]);
        self.fields.check_sums(&StatedSums { lines, ..StatedSums::default() }, self.reader);
        self.fields.check_type(false, self.reader);
        self.fields
    }
}

fn text_value(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// Street, postcode and town, and country.
fn address(segment: &EdifactSegment) -> Value {
    let mut parts: Vec<String> = segment.components(4).map(str::to_owned).collect();
    let town = [segment.get(7, 0), segment.get(5, 0)];
    let town: Vec<&str> = town.into_iter().filter(|text| !text.is_empty()).collect();
    parts.extend(Some(town.join(" ")).filter(|town| !town.is_empty()));
    if parts.is_empty() {
        return Value::Null;
    }
    parts.extend(Some(segment.get(8, 0).to_owned()).filter(|country| !country.is_empty()));
    parts.join(", ").into()
}
