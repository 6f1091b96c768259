//! The fields that both syntaxes of an e-invoice fill. Presence and correctness are not checked
//! here.

use docmill_core::model::InvoiceReference;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use unicode_normalization::char::is_combining_mark;

use super::element::{ValueReader, decimal_of, decimal_value, parse_decimal};
use crate::notation::date;

/// The header fields and lines that both syntaxes fill.
#[derive(Debug, Default)]
pub(super) struct InvoiceXmlFields {
    pub(super) is_credit_note: bool,
    /// The parts that an answer names.
    pub(super) reference: Option<InvoiceReference>,
    /// Invoice type code (BT-3).
    pub(super) document_type: Value,
    /// Seller name (BT-27), else the trading name.
    pub(super) supplier_name: Value,
    /// Seller trading name (BT-28), where it is another.
    pub(super) trading_name: Value,
    /// Seller address (BG-5) on one line.
    pub(super) supplier_address: Value,
    /// Seller VAT identifier (BT-31), else an identifier of a scheme of VAT numbers (BT-29, BT-30,
    /// BT-34).
    pub(super) supplier_vat_id: Value,
    /// Buyer name (BT-44), else the trading name (BT-45).
    pub(super) buyer_name: Value,
    /// Buyer VAT identifier (BT-48), else as the seller's.
    pub(super) buyer_vat_id: Value,
    /// Invoice number (BT-1).
    pub(super) number: Value,
    /// Purchase order reference (BT-13).
    pub(super) order_number: Value,
    /// Issue date (BT-2).
    pub(super) date: Value,
    /// Payment due date (BT-9).
    pub(super) due_date: Value,
    /// Due dates and amounts of a payment in parts, which EN 16931 does not have.
    pub(super) instalments: Vec<Value>,
    /// Actual delivery date (BT-72).
    pub(super) delivery_date: Value,
    /// Invoicing period start and end date (BT-73, BT-74).
    pub(super) period: [Value; 2],
    /// Payment terms (BT-20).
    pub(super) payment_terms: Value,
    /// Discounts for early payment: beside the terms, or written into them (`#SKONTO#`).
    pub(super) cash_discounts: Vec<Value>,
    /// Remittance information (BT-83).
    pub(super) payment_reference: Value,
    /// Payee name (BT-59), where it is not the seller's.
    pub(super) payee_name: Value,
    /// The accounts to pay to.
    pub(super) accounts: PaymentAccounts,
    /// Invoice currency code (BT-5).
    pub(super) currency: Value,
    /// Invoice lines (BG-25).
    pub(super) lines: Vec<Value>,
    /// Document level allowances (BG-20).
    pub(super) allowances: Vec<Value>,
    /// Document level charges (BG-21).
    pub(super) charges: Vec<Value>,
    /// VAT breakdown (BG-23).
    pub(super) taxes: Vec<Value>,
    /// Total without VAT (BT-109).
    pub(super) subtotal: Value,
    /// Total VAT amount (BT-110).
    pub(super) vat_amount: Value,
    /// Total with VAT (BT-112).
    pub(super) total: Value,
    /// Paid amount (BT-113).
    pub(super) paid_amount: Value,
    /// Rounding amount (BT-114).
    pub(super) rounding_amount: Value,
    /// Amount due for payment (BT-115).
    pub(super) amount_due: Value,
}

/// Codes of UNTDID 1001 that stand for credit notes in EN 16931.
pub(super) const CREDIT_NOTES: [&str; 13] =
    ["81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"];

/// Codes of documents that order no ordinary payment to the seller: requests for interim and
/// provisional payment, pro forma, partial and prepayment invoices, those that the buyer wrote or a
/// factor collects, data for bookkeeping, parts of construction work.
pub(super) const SPECIAL_TYPES: [&str; 21] = [
    "130", "202", "203", "204", "211", "261", "325", "326", "386", "389", "393", "396", "500",
    "501", "502", "503", "527", "751", "875", "876", "877",
];

impl InvoiceXmlFields {
    /// Completes the fields of either syntax: the kind by its code, missing totals, signs.
    pub(super) fn complete(&mut self, reader: &mut ValueReader) {
        let code = self.document_type.as_str().unwrap_or_default();
        self.is_credit_note |= CREDIT_NOTES.contains(&code);
        if SPECIAL_TYPES.contains(&code) {
            reader.note(format!("type_{code}"));
        }
        if self.subtotal.is_null() {
            reader.note("missing.subtotal");
        }
        if self.total.is_null() {
            self.total = self.total_of_due();
            let doubt = if self.total.is_null() { "missing.total" } else { "total_from_due" };
            reader.note(doubt);
        }
        if !self.paid_amount.is_null() {
            self.note_missing_due(reader);
        }
        if self.vat_amount.is_null() && !self.lines.is_empty() && self.subtotal != self.total {
            reader.note("missing.vat_amount");
        }
        if same_name(&self.buyer_vat_id, &self.supplier_vat_id)
            || same_name(&self.buyer_name, &self.supplier_name)
        {
            reader.note("buyer_is_supplier");
        }
        if self.total.as_f64().is_some_and(|total| total < 0.0) {
            reader.note(if self.is_credit_note {
                "negative_credit_note"
            } else {
                "negative_total"
            });
        }
        if same_name(&self.payee_name, &self.supplier_name) {
            self.payee_name = Value::Null;
        }
        self.complete_payment(reader);
        for (field, value) in [
            ("supplier_name", &self.supplier_name),
            ("supplier_vat_id", &self.supplier_vat_id),
            ("buyer_name", &self.buyer_name),
            ("payee_name", &self.payee_name),
            ("invoice_number", &self.number),
        ] {
            if value.as_str().is_some_and(mixes_scripts) {
                reader.note(format!("mixed_letters.{field}"));
            }
        }
        let accounts = self.accounts.further.iter().filter_map(Value::as_str);
        if accounts.into_iter().any(|account| account.chars().any(is_foreign_letter)) {
            reader.note("unread.iban");
        }
    }

    /// The reference for the chosen account; differing due dates and references are noted.
    fn complete_payment(&mut self, reader: &mut ValueReader) {
        let mut days = self.instalments.iter().map(|part| part.get("due_date"));
        let first_day = days.next();
        if days.any(|day| Some(day) != first_day) {
            reader.note("several_due_dates");
        }
        let (reference, has_others) = self.accounts.settle_reference();
        if has_others {
            reader.note("several.payment_reference");
        }
        if let Some(reference) = reference {
            self.payment_reference = reference.clone();
        }
    }

    /// Notes a missing amount due (BT-115), which EN 16931 requires.
    pub(super) fn note_missing_due(&self, reader: &mut ValueReader) {
        if self.amount_due.is_null() {
            reader.note("missing.amount_due");
        }
    }

    /// The total that the amount due is the rest of.
    fn total_of_due(&self) -> Value {
        let [due, paid, rounding] =
            [&self.amount_due, &self.paid_amount, &self.rounding_amount].map(decimal_of);
        let whole = due.map(|due| due + paid.unwrap_or_default() - rounding.unwrap_or_default());
        whole.and_then(decimal_value).unwrap_or_default()
    }
}

/// Whether a word has Latin letters beside Greek or Cyrillic ones, which may look like them, or a digit
/// under a mark.
fn mixes_scripts(text: &str) -> bool {
    let mut pairs = text.chars().zip(text.chars().skip(1));
    if pairs.any(|(one, next)| one.is_numeric() && is_combining_mark(next)) {
        return true;
    }
    text.split(|c: char| !c.is_alphanumeric()).any(|word| {
        word.contains(|c: char| c.is_ascii_alphabetic())
            && word.contains(|c: char| matches!(c, '\u{370}'..='\u{52f}') && c.is_alphabetic())
    })
}

/// A letter that no account number has, though it may look like one that it has.
fn is_foreign_letter(c: char) -> bool {
    c.is_alphabetic() && !c.is_ascii()
}

fn same_name(one: &Value, other: &Value) -> bool {
    let [one, other] = [one, other].map(|name| name.as_str().map(str::to_lowercase));
    one.is_some() && one == other
}

/// A party's names: the registered one, else the trading name; and the trading name, if it is another.
pub(super) fn party_names(registered: Value, trading: Value) -> (Value, Value) {
    if registered.is_null() {
        return (trading, Value::Null);
    }
    let trading = if same_name(&registered, &trading) { Value::Null } else { trading };
    (registered, trading)
}

const SECONDS_OF_DAY: i64 = 86_400;

/// An amount that differs from its product by more than this share, and by one at least, is another.
const MAX_PRODUCT_SHARE: Decimal = Decimal::from_parts(5, 0, 0, false, 1);

/// A line of the invoice.
#[derive(Debug, Default)]
pub(super) struct InvoiceXmlLine {
    /// Item name (BT-153) or description (BT-154).
    pub(super) description: Value,
    /// Item Seller's identifier (BT-155), else the standard one (BT-157).
    pub(super) article_number: Value,
    /// Invoiced quantity (BT-129).
    pub(super) quantity: Value,
    /// Its unit (BT-130), a code of UN/ECE Recommendation 20 or 21.
    pub(super) unit: Value,
    /// Item net price (BT-146).
    pub(super) price: Value,
    /// Item price base quantity (BT-149).
    pub(super) price_base: Value,
    /// Its unit (BT-150).
    pub(super) price_base_unit: Value,
    /// Invoiced item VAT rate (BT-152), in percent.
    pub(super) tax_rate: Value,
    /// Line net amount (BT-131).
    pub(super) amount: Value,
    /// Whether allowances or charges of its own are in its amount.
    pub(super) is_adjusted: bool,
}

impl InvoiceXmlLine {
    /// The line as the data has it: with the price of one unit. Where that is no short decimal, or
    /// the price is for another unit, the price with its base.
    pub(super) fn into_value(mut self, reader: &mut ValueReader) -> Value {
        let base = decimal_of(&self.price_base);
        let same_unit = self.price_base_unit.is_null()
            || self.unit.is_null()
            || self.price_base_unit == self.unit;
        if self.contradicts_product(same_unit && !self.is_adjusted) {
            reader.note("product.line_items");
        }
        if base.is_some_and(|base| base <= Decimal::ZERO) {
            reader.note("unread.line_items.price_base_quantity");
            (self.price_base, self.price_base_unit) = (Value::Null, Value::Null);
        } else if same_unit {
            self.price_base_unit = Value::Null;
            let single = decimal_of(&self.price).zip(base);
            if let Some(price) = single.and_then(|(price, base)| price_of_one(price, base)) {
                (self.price, self.price_base) = (price, Value::Null);
            }
        }
        if self.price.is_null() || self.price_base.is_null() {
            (self.price_base, self.price_base_unit) = (Value::Null, Value::Null);
        }
        json!({
            "description": self.description,
            "article_number": self.article_number,
            "quantity": self.quantity,
            "unit": self.unit,
            "unit_price": self.price,
            "price_base_quantity": self.price_base,
            "price_base_unit": self.price_base_unit,
            "tax_rate": self.tax_rate,
            "amount": self.amount,
        })
    }
}

impl InvoiceXmlLine {
    /// Whether the line amount contradicts quantity and price: another sign, or a difference that
    /// no usual discount, rounding or tax explains.
    fn contradicts_product(&self, is_whole: bool) -> bool {
        let [quantity, price, amount] = [&self.quantity, &self.price, &self.amount].map(decimal_of);
        let base = decimal_of(&self.price_base).filter(|base| *base > Decimal::ZERO);
        let product = quantity.zip(price).and_then(|(quantity, price)| {
            quantity.checked_mul(price)?.checked_div(base.unwrap_or(Decimal::ONE))
        });
        product.zip(amount).is_some_and(|(product, amount)| {
            let larger = product.abs().max(amount.abs());
            let is_far = product.saturating_sub(amount).abs()
                > larger.saturating_mul(MAX_PRODUCT_SHARE).max(Decimal::ONE);
            let is_priced = !price.is_some_and(|price| price.is_zero());
            let is_opposite = product.is_sign_negative() != amount.is_sign_negative();
            (is_opposite && !product.is_zero() && !amount.is_zero())
                || (is_whole && is_priced && is_far)
        })
    }
}

/// `price / base`, where that is carried without rounding.
fn price_of_one(price: Decimal, base: Decimal) -> Option<Value> {
    let value = decimal_value(price.checked_div(base)?)?;
    let whole = decimal_of(&value)?.checked_mul(base)?;
    (whole == price).then_some(value)
}

/// An allowance or charge of the document as the data has it.
pub(super) fn adjustment_value(reason: Value, tax_rate: Value, amount: Value) -> Value {
    json!({ "reason": reason, "tax_rate": tax_rate, "amount": amount })
}

/// One row of the VAT breakdown (BG-23).
#[derive(Debug, Default)]
pub(super) struct TaxRow {
    /// VAT category rate (BT-119), in percent.
    pub(super) rate: Value,
    /// VAT category taxable amount (BT-116).
    pub(super) base: Value,
    /// VAT category tax amount (BT-117).
    pub(super) amount: Value,
    /// VAT category code (BT-118), a code of UNTDID 5305.
    pub(super) category: Value,
    /// VAT exemption reason text (BT-120), else its code (BT-121).
    pub(super) exemption_reason: Value,
}

impl TaxRow {
    /// The row as the data has it.
    pub(super) fn into_value(self) -> Value {
        json!({
            "rate": self.rate,
            "base": self.base,
            "amount": self.amount,
            "category": self.category,
            "exemption_reason": self.exemption_reason,
        })
    }
}

/// The days from the day of issue until another one; null if one of them is missing or it is before.
pub(super) fn days_until(issued: &Value, until: &Value) -> Value {
    let [issued, until] = [issued, until].map(|day| day.as_str().and_then(date::parse_iso));
    let days = until.zip(issued).map(|(until, issued)| (until - issued).whole_days());
    days.filter(|days| *days >= 0).into()
}

/// The day that comes some days after another one; null if one of them is missing.
pub(super) fn day_after(day: &Value, days: &Value) -> Value {
    let start = day.as_str().and_then(date::parse_iso);
    let later = start.zip(days.as_i64()).and_then(|(start, days)| {
        start.checked_add(time::Duration::seconds(days.checked_mul(SECONDS_OF_DAY)?))
    });
    later.map_or(Value::Null, |day| date::to_iso(day).into())
}

/// The self-billing code that corresponds to a document code.
pub(super) fn self_billed(code: &str) -> &'static str {
    if CREDIT_NOTES.contains(&code) { "261" } else { "389" }
}

/// A discount for early payment as the data has it; `None` without a percentage.
pub(super) fn cash_discount(percent: Value, days: Value) -> Option<Value> {
    (!percent.is_null()).then(|| json!({ "percent": percent, "days": days }))
}

/// The discounts that German invoices write into the payment terms by the convention of
/// `XRechnung`: `#SKONTO#TAGE=14#PROZENT=2.00#`. It is free text: a number with a comma or a sign of
/// percent is one, and a discount without a number is left out and noted.
pub(super) fn parse_marked_discounts(reader: &mut ValueReader, terms: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let marked = terms.as_str().unwrap_or_default().split("#SKONTO#").skip(1);
    for text in marked {
        let keys: Map<String, Value> = text
            .split('#')
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().into()))
            .collect();
        let [percent, days] = ["PROZENT", "TAGE"].map(|key| {
            let text = keys.get(key).and_then(Value::as_str).unwrap_or_default();
            let text = text.trim_end_matches('%').trim().replace(',', ".");
            parse_decimal(&text).and_then(decimal_value).unwrap_or_default()
        });
        let percent = decimal_of(&percent).filter(|percent| *percent <= Decimal::ONE_HUNDRED);
        let percent = percent.and_then(decimal_value).unwrap_or_default();
        if percent.is_null() {
            reader.note("unread.cash_discounts");
        }
        found.extend(cash_discount(percent, days));
    }
    found
}

/// One of the terms of payment: when how much is due.
#[derive(Debug, Default)]
pub(super) struct PaymentTerm {
    pub(super) day: Value,
    pub(super) amount: Value,
    /// Whether it is the term of a discount.
    pub(super) has_discount: bool,
}

/// Lower-case words for a discount for early payment, and its maximum percentage; a higher one is a
/// share of the invoice.
const DISCOUNT_WORDS: [&str; 6] =
    ["skonto", "discount", "escompte", "sconto", "korting", "descuento"];
const MAX_DISCOUNT_PERCENT: Decimal = Decimal::from_parts(5, 0, 0, false, 0);

impl PaymentTerm {
    /// Whether the description alone makes a payment term one of a discount.
    pub(super) fn describes_discount(description: &str) -> bool {
        let text = description.to_lowercase();
        let is_named = DISCOUNT_WORDS.iter().any(|word| text.contains(word));
        let mut numbers: Vec<&str> = text.split('%').collect();
        numbers.pop();
        let are_small = numbers.iter().all(|before| {
            let before = before.trim_end();
            let start = before.rfind(|c: char| !matches!(c, '0'..='9' | '.' | ','));
            let number =
                before.get(start.map_or(0, |start| before.ceil_char_boundary(start + 1))..);
            let number = number.map(|number| number.replace(',', "."));
            number.and_then(|it| parse_decimal(&it)).is_some_and(|it| it <= MAX_DISCOUNT_PERCENT)
        });
        text.contains("#skonto#") || (is_named && !numbers.is_empty() && are_small)
    }
}

/// The due date without discount (of instalments, the first), and the instalments if there are
/// several. The last date never belongs to a discount.
pub(super) fn settle_terms(terms: Vec<PaymentTerm>) -> (Value, Vec<Value>) {
    let days = terms.iter().filter_map(|term| term.day.as_str());
    let last = days.max().map_or(Value::Null, Value::from);
    let mut plain: Vec<PaymentTerm> = Vec::new();
    let due = terms.into_iter().filter(|term| !term.has_discount || term.day == last);
    for term in due.filter(|term| !term.day.is_null()) {
        // A day that is stated in two places is one instalment.
        match plain.iter_mut().find(|known| known.day == term.day) {
            Some(known) if known.amount.is_null() => known.amount = term.amount,
            Some(_) if term.amount.is_null() => {}
            _ => plain.push(term),
        }
    }
    let first = plain.iter().filter_map(|term| term.day.as_str()).min().map(Value::from);
    plain.truncate(if plain.len() < 2 { 0 } else { plain.len() });
    let instalments = plain.into_iter();
    let instalments =
        instalments.map(|term| json!({ "due_date": term.day, "amount": term.amount })).collect();
    (first.unwrap_or_default(), instalments)
}

/// Most accounts beside the first that are kept: each is compared with all before it.
const MAX_FURTHER_ACCOUNTS: usize = 100;

/// Maximum payment references kept.
const MAX_REFERENCES: usize = 100;

/// The accounts to pay to.
#[derive(Debug, Default)]
pub(super) struct PaymentAccounts {
    /// Payment account identifier (BT-84) of the first that is an IBAN.
    pub(super) iban: Value,
    /// Payment service provider identifier (BT-86) of that account.
    pub(super) bic: Value,
    /// The identifiers of all others.
    pub(super) further: Vec<Value>,
    /// Payment references by account, or without one.
    references: Vec<[Value; 2]>,
}

impl PaymentAccounts {
    /// Adds a payment means: account, bank and payment reference.
    pub(super) fn add_way(&mut self, account: Value, bic: Value, reference: Value) {
        let iban = iban_value(&account);
        if !reference.is_null() && self.references.len() < MAX_REFERENCES {
            let account = if iban.is_null() { account.clone() } else { iban };
            self.references.push([account, reference]);
        }
        self.add(account, bic);
    }

    /// The reference for the chosen account, else one without an account; and whether others
    /// differ.
    fn settle_reference(&self) -> (Option<&Value>, bool) {
        let first = self.further.first().unwrap_or(&Value::Null);
        let taken = if self.iban.is_null() { first } else { &self.iban };
        let own = [taken, &Value::Null].into_iter().find_map(|account| {
            let mut references = self.references.iter();
            references.find_map(|[of, reference]| (of == account).then_some(reference))
        });
        (own, self.references.iter().any(|[_, reference]| Some(reference) != own))
    }

    /// Adds an account and its bank.
    pub(super) fn add(&mut self, account: Value, bic: Value) {
        let iban = iban_value(&account);
        if !iban.is_null() && self.iban.is_null() {
            (self.iban, self.bic) = (iban, bic);
            return;
        }
        let account = if iban.is_null() { account } else { iban };
        let has_room = self.further.len() < MAX_FURTHER_ACCOUNTS;
        if !account.is_null()
            && account != self.iban
            && has_room
            && !self.further.contains(&account)
        {
            self.further.push(account);
        }
    }

    /// Adds all accounts of another list behind the own ones.
    pub(super) fn append(&mut self, other: Self) {
        self.add(other.iban, other.bic);
        for account in other.further {
            self.add(account, Value::Null);
        }
    }
}

/// A list as the data has it: null where there is nothing.
pub(super) fn list_value(entries: Vec<Value>) -> Value {
    if entries.is_empty() { Value::Null } else { Value::Array(entries) }
}

/// The length of the shortest IBAN (Norway).
const MIN_IBAN_CHARS: usize = 15;

/// An account as an IBAN: without its spaces. Null for what does not begin like one: many accounts
/// outside of the IBAN's countries are given in the same element.
fn iban_value(account: &Value) -> Value {
    let text = account.as_str().unwrap_or_default().trim_start();
    let text =
        text.strip_prefix("IBAN").map_or(text, |rest| rest.trim_start_matches([':', '.', ' ']));
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let head: Vec<u8> = compact.bytes().take(4).collect();
    let begins = matches!(head.as_slice(), [a, b, c, d]
        if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && c.is_ascii_digit() && d.is_ascii_digit());
    let is_long = compact.len() >= MIN_IBAN_CHARS;
    if begins && is_long { Value::String(compact.to_uppercase()) } else { Value::Null }
}

/// VAT in OIOUBL's list of tax schemes, `urn:oioubl:id:taxschemeid-1.1`.
pub(super) const DANISH_VAT: &str = "63";

/// Electronic Address Schemes and ISO 6523 codes of VAT identifiers: 9910 and 9914 (Hungary,
/// Austria), 9920 and 9922 to 9953 (one for each country from Spain to the Vatican, but for 9921),
/// 9955 (Sweden), 9957 (France), 0211 and 9906 (Italy), 0198 and 9904 (Denmark), 0213 (Finland), 9909
/// (Norway), 9912 (the European Union). The tax of Australia, New Zealand and Singapore is `GST` (PINT).
pub(super) fn is_vat_scheme(scheme: &str) -> bool {
    let scheme = scheme.trim().to_ascii_uppercase();
    let number: Option<u32> = scheme.parse().ok().filter(|_| scheme.len() == 4);
    let is_listed = number.is_some_and(|number| {
        matches!(number, 198 | 211 | 213 | 9904 | 9906 | 9909 | 9910 | 9912 | 9914 | 9920)
            || matches!(number, 9922..=9953 | 9955 | 9957)
    });
    is_listed || matches!(scheme.as_str(), "VA" | "VAT" | "GST") || scheme.ends_with(":VAT")
}

/// An identifier under its scheme, if that is one of VAT identifiers.
pub(super) fn vat_id_of_scheme(id: Option<String>, scheme: Option<&str>) -> Option<String> {
    id.filter(|_| scheme.is_some_and(is_vat_scheme))
}

/// An identifier without a scheme, if it has the form of a VAT identifier: the country's letters,
/// then digits as a rule.
pub(super) fn vat_id_of_form(id: Option<String>) -> Option<String> {
    id.filter(|id| {
        let compact: String = id.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let (country, rest) = compact.split_at_checked(2).unwrap_or_default();
        let digits = rest.chars().filter(char::is_ascii_digit).count();
        country.chars().all(|c| c.is_ascii_uppercase()) && digits >= 6 && rest.len() <= 13
    })
}
