//! The parts of EN 16931 that an invoice in UBL needs, from its data: checked, and named where they
//! are missing. Nothing is invented: sums have to agree to the cent, and a VAT category is either
//! in the data or certain.

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Map, Value};

use super::element::decimal_of;
use super::fields::CREDIT_NOTES;
use crate::notation::vat_id::normalise_vat_id;

/// Decimals of amounts (rules BR-DEC).
const AMOUNT_DECIMALS: u32 = 2;
/// Categories whose reason is another rule's and has a code of its own (VATEX code list).
const REASON_CODES: [(&str, &str); 3] =
    [("AE", "VATEX-EU-AE"), ("K", "VATEX-EU-IC"), ("G", "VATEX-EU-G")];

/// A VAT category and its rate in percent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VatClass {
    /// UNTDID 5305.
    pub(super) category: String,
    /// Percent.
    pub(super) rate: Decimal,
}

/// One row of the breakdown (BG-23).
#[derive(Debug, Clone)]
pub(super) struct VatRow {
    pub(super) class: VatClass,
    pub(super) base: Decimal,
    pub(super) tax: Decimal,
    /// BT-120, or BT-121 where it begins with `VATEX`.
    pub(super) reason: Option<String>,
}

/// A line (BG-25).
#[derive(Debug)]
pub(super) struct LineParts {
    pub(super) name: String,
    pub(super) article: Option<String>,
    pub(super) quantity: Decimal,
    /// UN/ECE Recommendation 20.
    pub(super) unit: String,
    pub(super) price: Decimal,
    /// Units that the price is for, with their code.
    pub(super) base: Option<(Decimal, String)>,
    pub(super) class: VatClass,
    pub(super) amount: Decimal,
}

/// An allowance or charge of the document (BG-20, BG-21).
#[derive(Debug)]
pub(super) struct AdjustmentParts {
    pub(super) is_charge: bool,
    pub(super) reason: Option<String>,
    pub(super) class: VatClass,
    pub(super) amount: Decimal,
}

/// A party (BG-4, BG-7).
#[derive(Debug)]
pub(super) struct UblPartyParts {
    pub(super) name: String,
    pub(super) trading_name: Option<String>,
    /// The lines of the address: street, second line, the rest.
    pub(super) lines: Vec<String>,
    pub(super) postcode: Option<String>,
    pub(super) city: Option<String>,
    /// ISO 3166-1.
    pub(super) country: String,
    pub(super) vat_id: Option<String>,
}

/// Sums (BG-22).
#[derive(Debug, Default)]
pub(super) struct SumParts {
    pub(super) lines: Decimal,
    /// `None`: there are none.
    pub(super) allowances: Option<Decimal>,
    /// `None`: there are none.
    pub(super) charges: Option<Decimal>,
    pub(super) net: Decimal,
    pub(super) vat: Decimal,
    pub(super) total: Decimal,
    pub(super) paid: Option<Decimal>,
    pub(super) rounding: Option<Decimal>,
    pub(super) due: Decimal,
}

/// The values that a UBL invoice is written from.
#[derive(Debug)]
pub(super) struct UblParts {
    pub(super) is_credit_note: bool,
    pub(super) type_code: String,
    pub(super) number: String,
    pub(super) date: String,
    pub(super) currency: String,
    pub(super) seller: UblPartyParts,
    pub(super) buyer: UblPartyParts,
    pub(super) lines: Vec<LineParts>,
    pub(super) adjustments: Vec<AdjustmentParts>,
    pub(super) taxes: Vec<VatRow>,
    pub(super) sums: SumParts,
}

/// Reads parts and keeps what is missing.
struct PartReader<'a> {
    data: &'a Map<String, Value>,
    problems: Vec<String>,
    /// The rows of the data's breakdown, as far as they have a rate.
    stated: Vec<VatClass>,
}

/// The checked parts of the data, named as an invoice's roles are.
///
/// # Errors
/// Every part that is missing or contradicts another, by its name in the standard.
pub(super) fn collect_parts(
    data: &Map<String, Value>,
    is_credit_note: bool,
) -> Result<UblParts, Vec<String>> {
    let mut reader = PartReader { data, problems: Vec::new(), stated: Vec::new() };
    let stated = text_of(data, "document_type");
    let is_credit_note =
        is_credit_note || stated.as_deref().is_some_and(|code| CREDIT_NOTES.contains(&code));
    let usual = if is_credit_note { "381" } else { "380" };
    let fitting = stated.filter(|code| CREDIT_NOTES.contains(&code.as_str()) == is_credit_note);
    reader.stated = reader.stated_classes();
    let number = reader.required("invoice_number", "the number (BT-1)");
    let date = reader.required("invoice_date", "the date of issue (BT-2)");
    let currency = reader.required("currency", "the currency (BT-5)");
    let (seller, buyer) = (reader.seller(), reader.buyer());
    let lines = reader.lines();
    let adjustments = reader.adjustments();
    let taxes = reader.taxes(&lines, &adjustments);
    let sums = reader.sums(&lines, &adjustments, &taxes);
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let type_code = fitting.unwrap_or_else(|| usual.to_owned());
    Ok(UblParts {
        is_credit_note,
        type_code,
        number,
        date,
        currency,
        seller,
        buyer,
        lines,
        adjustments,
        taxes,
        sums,
    })
}

/// A text of the data; `None` for null and for blanks.
pub(super) fn text_of(data: &Map<String, Value>, field: &str) -> Option<String> {
    let words: Vec<&str> = data.get(field)?.as_str()?.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

/// A number of the data.
fn number_of(data: &Map<String, Value>, field: &str) -> Option<Decimal> {
    data.get(field).and_then(decimal_of)
}

/// The entries of a list of the data.
pub(super) fn entries_of<'a>(
    data: &'a Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    data.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

impl PartReader<'_> {
    fn note(&mut self, problem: impl Into<String>) {
        let problem = problem.into();
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn missing(&mut self, part: &str) {
        self.note(format!("{part} is missing"));
    }

    fn required(&mut self, field: &str, part: &str) -> String {
        let value = text_of(self.data, field);
        if value.is_none() {
            self.missing(part);
        }
        value.unwrap_or_default()
    }

    fn seller(&mut self) -> UblPartyParts {
        let name = self.required("supplier_name", "the seller's name (BT-27)");
        let seller = self.party("supplier", name);
        if seller.vat_id.is_none() {
            self.missing("the seller's VAT identifier with its country's letters (BT-31)");
        }
        if seller.country.is_empty() {
            self.missing("the seller's country (BT-40)");
        }
        UblPartyParts { trading_name: text_of(self.data, "supplier_trading_name"), ..seller }
    }

    fn buyer(&mut self) -> UblPartyParts {
        let name = self.required("buyer_name", "the buyer's name (BT-44)");
        let buyer = self.party("buyer", name);
        if buyer.country.is_empty() {
            self.missing("the buyer's country (BT-55, by a VAT identifier with its letters)");
        }
        buyer
    }

    /// The country is that of the address, else that of the VAT identifier.
    fn party(&self, role: &str, name: String) -> UblPartyParts {
        let vat_id = text_of(self.data, &format!("{role}_vat_id"));
        let vat_id = vat_id.as_deref().and_then(prefixed_vat_id);
        let address = text_of(self.data, &format!("{role}_address")).unwrap_or_default();
        let (mut lines, stated) = split_address(&address);
        let (postcode, city) = split_town(if lines.len() > 1 { lines.pop() } else { None });
        let country = stated.or_else(|| vat_id.as_deref().and_then(country_of_vat_id));
        UblPartyParts {
            name,
            trading_name: None,
            lines,
            postcode,
            city,
            country: country.unwrap_or_default(),
            vat_id,
        }
    }

    /// An amount of at most two decimals.
    fn amount(&mut self, amount: Option<Decimal>, part: &str) -> Decimal {
        match amount {
            None => self.missing(part),
            Some(amount) if amount.normalize().scale() > AMOUNT_DECIMALS => {
                self.note(format!("{part} has more than {AMOUNT_DECIMALS} decimals"));
            }
            Some(_) => {}
        }
        amount.unwrap_or_default()
    }

    /// The classes that the breakdown of the data states. A rate above zero is the standard one.
    fn stated_classes(&self) -> Vec<VatClass> {
        let mut classes: Vec<VatClass> = Vec::new();
        for row in entries_of(self.data, "taxes") {
            let category = text_of(row, "category");
            let rate = number_of(row, "rate");
            let usual = rate.filter(|rate| !rate.is_zero()).map(|_| "S".to_owned());
            let class = category
                .or(usual)
                .map(|category| VatClass { category, rate: rate.unwrap_or_default().normalize() });
            classes.extend(class.filter(|class| !classes.contains(class)));
        }
        classes
    }

    /// The class of a rate; without a rate that of a breakdown with one row.
    fn class_of(&mut self, rate: Option<Decimal>, part: &str) -> VatClass {
        let rate = rate.map(|rate| rate.normalize());
        let fitting = self.stated.iter().filter(|class| rate.is_none_or(|rate| class.rate == rate));
        let fitting: Vec<&VatClass> = fitting.collect();
        let standard = rate.filter(|rate| *rate > Decimal::ZERO);
        let class = match (fitting.as_slice(), standard) {
            ([class], _) => Some((*class).clone()),
            ([], Some(rate)) => Some(VatClass { category: "S".to_owned(), rate }),
            _ => None,
        };
        if class.is_none() {
            self.missing(&format!("the VAT rate or category of {part}"));
        }
        let class = class.unwrap_or(VatClass { category: String::new(), rate: Decimal::ZERO });
        if matches!(class.category.as_str(), "K" | "O") {
            self.note(format!(
                "VAT category {} needs parts that the data does not have",
                class.category
            ));
        }
        class
    }

    fn lines(&mut self) -> Vec<LineParts> {
        let data = self.data;
        let mut lines = Vec::new();
        for (at, line) in entries_of(data, "line_items").enumerate() {
            lines.push(self.line(line, at + 1));
        }
        if lines.is_empty() {
            self.missing("an invoice line (BG-25)");
        }
        lines
    }

    fn line(&mut self, line: &Map<String, Value>, number: usize) -> LineParts {
        let amount =
            self.amount(number_of(line, "amount"), &format!("the amount of line {number}"));
        let [quantity, price] = ["quantity", "unit_price"].map(|field| number_of(line, field));
        let unit = text_of(line, "unit").unwrap_or_else(|| "C62".to_owned());
        let base = number_of(line, "price_base_quantity").filter(|base| *base > Decimal::ZERO);
        let base_unit = text_of(line, "price_base_unit").unwrap_or_else(|| unit.clone());
        let (quantity, price, base) = match (quantity, price) {
            (Some(quantity), Some(price)) => (quantity, price, base),
            // The price of the whole quantity is exact; that of one unit may not be.
            (Some(quantity), None) if !quantity.is_zero() => {
                (quantity * sign_of(amount) * sign_of(quantity), amount.abs(), Some(quantity.abs()))
            }
            (None, Some(price)) if price == amount => (Decimal::ONE, price, None),
            (None, None) => (Decimal::ONE, amount, None),
            _ => {
                self.missing(&format!("quantity or price of line {number}"));
                (Decimal::ONE, amount, None)
            }
        };
        // A price is never negative (BR-27): the quantity is.
        let quantity = if price.is_sign_negative() { -quantity } else { quantity };
        let name = text_of(line, "description");
        if name.is_none() {
            self.missing(&format!("the name of line {number} (BT-153)"));
        }
        LineParts {
            name: name.unwrap_or_default(),
            article: text_of(line, "article_number"),
            quantity,
            unit,
            price: price.abs(),
            base: base.filter(|base| *base != Decimal::ONE).map(|base| (base, base_unit)),
            class: self.class_of(number_of(line, "tax_rate"), &format!("line {number}")),
            amount,
        }
    }

    fn adjustments(&mut self) -> Vec<AdjustmentParts> {
        let data = self.data;
        let mut found = Vec::new();
        for (list, is_charge) in [("allowances", false), ("charges", true)] {
            for (at, entry) in entries_of(data, list).enumerate() {
                let part = format!("entry {} of {list}", at + 1);
                found.push(AdjustmentParts {
                    is_charge,
                    reason: text_of(entry, "reason"),
                    class: self.class_of(number_of(entry, "tax_rate"), &part),
                    amount: self
                        .amount(number_of(entry, "amount"), &format!("the amount of {part}")),
                });
            }
        }
        found
    }

    /// The breakdown: a row for each class in use, with the tax that the data states, else computes.
    fn taxes(&mut self, lines: &[LineParts], adjustments: &[AdjustmentParts]) -> Vec<VatRow> {
        let mut rows: Vec<VatRow> = Vec::new();
        let of_lines = lines.iter().map(|line| (&line.class, line.amount));
        let of_others = adjustments
            .iter()
            .map(|it| (&it.class, if it.is_charge { it.amount } else { -it.amount }));
        for (class, amount) in of_lines.chain(of_others) {
            match rows.iter_mut().find(|row| row.class == *class) {
                Some(row) => row.base += amount,
                None => rows.push(VatRow {
                    class: class.clone(),
                    base: amount,
                    tax: Decimal::ZERO,
                    reason: None,
                }),
            }
        }
        for row in &mut rows {
            self.complete_row(row);
        }
        rows
    }

    fn complete_row(&mut self, row: &mut VatRow) {
        let percent = Decimal::from(100);
        let computed = (row.base * row.class.rate / percent)
            .round_dp_with_strategy(AMOUNT_DECIMALS, RoundingStrategy::MidpointAwayFromZero);
        let stated = entries_of(self.data, "taxes").find(|entry| {
            number_of(entry, "rate").unwrap_or_default() == row.class.rate
                && text_of(entry, "category").is_none_or(|own| own == row.class.category)
        });
        let stated_tax = stated.and_then(|entry| number_of(entry, "amount"));
        row.tax = self.amount(Some(stated_tax.unwrap_or(computed)), "the VAT of a rate (BT-117)");
        if stated.and_then(|entry| number_of(entry, "base")).is_some_and(|base| base != row.base) {
            self.note(format!(
                "the lines at {} % do not add up to their base (BT-116)",
                row.class.rate
            ));
        }
        if matches!(row.class.category.as_str(), "S" | "Z") {
            return;
        }
        let code = REASON_CODES.iter().find(|(category, _)| *category == row.class.category);
        row.reason = stated
            .and_then(|entry| text_of(entry, "exemption_reason"))
            .or_else(|| code.map(|(_, code)| (*code).to_owned()));
        if row.reason.is_none() {
            self.missing("the reason of an exemption from VAT (BT-120)");
        }
    }

    /// The sums, each of them computed and held against the data.
    fn sums(
        &mut self,
        lines: &[LineParts],
        adjustments: &[AdjustmentParts],
        taxes: &[VatRow],
    ) -> SumParts {
        let mut sums = SumParts {
            lines: lines.iter().map(|line| line.amount).sum(),
            allowances: sum_of(adjustments, false),
            charges: sum_of(adjustments, true),
            vat: taxes.iter().map(|row| row.tax).sum(),
            paid: number_of(self.data, "paid_amount").filter(|paid| !paid.is_zero()),
            rounding: number_of(self.data, "rounding_amount").filter(|it| !it.is_zero()),
            ..SumParts::default()
        };
        sums.net =
            sums.lines - sums.allowances.unwrap_or_default() + sums.charges.unwrap_or_default();
        sums.total = sums.net + sums.vat;
        sums.due = sums.total - sums.paid.unwrap_or_default() + sums.rounding.unwrap_or_default();
        for (field, computed, part) in [
            ("subtotal", sums.net, "the total without VAT (BT-109)"),
            ("vat_amount", sums.vat, "the total of VAT (BT-110)"),
            ("total", sums.total, "the total with VAT (BT-112)"),
            ("amount_due", sums.due, "the amount due (BT-115)"),
        ] {
            if number_of(self.data, field).is_some_and(|stated| stated != computed) {
                self.note(format!("{part} is not the sum of its parts"));
            }
        }
        if number_of(self.data, "total").is_none() {
            self.missing("the total with VAT (BT-112)");
        }
        for (amount, part) in [
            (sums.paid, "the paid amount (BT-113)"),
            (sums.rounding, "the rounding amount (BT-114)"),
        ] {
            if amount.is_some() {
                self.amount(amount, part);
            }
        }
        sums
    }
}

/// The sum of all allowances or charges; `None` without one.
fn sum_of(adjustments: &[AdjustmentParts], charges: bool) -> Option<Decimal> {
    let amounts = adjustments.iter().filter(|it| it.is_charge == charges).map(|it| it.amount);
    amounts.reduce(|sum, amount| sum + amount)
}

fn sign_of(number: Decimal) -> Decimal {
    if number.is_sign_negative() { Decimal::NEGATIVE_ONE } else { Decimal::ONE }
}

/// The identifier without separators, if it begins with a country's letters.
fn prefixed_vat_id(text: &str) -> Option<String> {
    let id = normalise_vat_id(text);
    country_of_vat_id(&id).is_some().then_some(id)
}

/// ISO 3166-1 of the letters of a VAT identifier: Greece has EL, Northern Ireland XI.
fn country_of_vat_id(id: &str) -> Option<String> {
    let (prefix, rest) = id.split_at_checked(2)?;
    let letters = prefix.bytes().all(|b| b.is_ascii_uppercase());
    if !letters || !rest.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match prefix {
        "EL" => Some("GR".to_owned()),
        "XI" => Some("GB".to_owned()),
        // The One Stop Shop is no country.
        "EU" | "IM" => None,
        country => Some(country.to_owned()),
    }
}

/// The parts of an address on one line, and the country's code at its end.
fn split_address(address: &str) -> (Vec<String>, Option<String>) {
    let parts = address.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    let is_code = |part: &String| part.len() == 2 && part.bytes().all(|b| b.is_ascii_uppercase());
    let country = parts.pop_if(|part| is_code(part));
    (parts, country)
}

/// Postal code and city, where the code is digits before it.
fn split_town(town: Option<String>) -> (Option<String>, Option<String>) {
    let Some(town) = town else { return (None, None) };
    let Some((code, city)) = town.split_once(' ') else { return (None, Some(town)) };
    let plain = code.chars().all(|c| c.is_ascii_digit() || c == '-');
    match plain && code.contains(|c: char| c.is_ascii_digit()) {
        true => (Some(code.to_owned()), Some(city.to_owned())),
        false => (None, Some(town)),
    }
}
