//! Poland's `KSeF`: the logical structures FA(2) and FA(3) of the Ministry of Finance
//! (`schemat_FA(2)_v1-0E.xsd` and `schemat_FA(3)_v1-0E.xsd`).
//!
//! The schema gives no total without VAT: subtotal and VAT are the sums of `P_13_*` and `P_14_*`. A
//! correction (`KOR`) states differences: where they take money back, it is a credit note and the
//! signs are turned around. Lines of the state before a correction (`StanPrzed`) count against the
//! lines after it. A settlement (`ROZ`) has the lines of the whole and the sums of the rest (article
//! 106f, section 3): the advances between them are allowances. Checked against the schema: the elements in [`MANDATORY`] and the values of
//! `RodzajFaktury`.

use roxmltree::Node;
use rust_decimal::Decimal;
use serde_json::Value;

use super::amounts::{negated, note_missing, sum_of, sums_by_rate, value_of};
use super::element::{
    ValueReader, decimal_of, element_at, elements_below, first_element, plain_text, shared_element,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, PaymentAccounts, PaymentTerm, TaxRow, adjustment_value,
    cash_discount, self_billed, settle_terms,
};

/// Namespaces of FA(2) and FA(3).
pub(super) const NAMESPACES: [&str; 2] =
    ["http://crd.gov.pl/wzor/2023/06/29/12648/", "http://crd.gov.pl/wzor/2025/06/25/13775/"];

/// Elements without which the schema takes no invoice.
#[rustfmt::skip]
const MANDATORY: [&str; 9] = [
    "Naglowek/KodFormularza", "Podmiot1/DaneIdentyfikacyjne/NIP", "Podmiot2/DaneIdentyfikacyjne",
    "Fa/KodWaluty", "Fa/P_1", "Fa/P_2", "Fa/P_15", "Fa/Adnotacje", "Fa/RodzajFaktury",
];

/// A row of the summary: the ending of `P_13_*` and `P_14_*`, its rates, and its category (UNTDID
/// 5305).
struct TaxGroup {
    ending: &'static str,
    rates: &'static [u32],
    category: &'static str,
}

const GROUPS: [TaxGroup; 13] = [
    TaxGroup { ending: "1", rates: &[23, 22], category: "S" },
    TaxGroup { ending: "2", rates: &[8, 7], category: "S" },
    TaxGroup { ending: "3", rates: &[5], category: "S" },
    TaxGroup { ending: "4", rates: &[4, 3], category: "S" },
    TaxGroup { ending: "5", rates: &[], category: "S" },
    TaxGroup { ending: "6_1", rates: &[0], category: "Z" },
    TaxGroup { ending: "6_2", rates: &[0], category: "K" },
    TaxGroup { ending: "6_3", rates: &[0], category: "G" },
    TaxGroup { ending: "7", rates: &[0], category: "E" },
    TaxGroup { ending: "8", rates: &[0], category: "O" },
    TaxGroup { ending: "9", rates: &[0], category: "AE" },
    TaxGroup { ending: "10", rates: &[0], category: "AE" },
    TaxGroup { ending: "11", rates: &[0], category: "E" },
];

pub(super) fn parse_ksef(root: Node<'_, '_>, reader: &mut ValueReader) -> InvoiceXmlFields {
    note_missing(root, &MANDATORY, reader);
    let body = element_at(root, "Fa");
    let mut fields = InvoiceXmlFields {
        currency: reader.text(first_element(body, &["KodWaluty"])),
        number: reader.text(first_element(body, &["P_2"])),
        date: reader.day("invoice_date", first_element(body, &["P_1"])),
        delivery_date: reader.day(
            "delivery_date",
            first_element(body, &["P_6"]).or_else(|| shared_element(body, "FaWiersz", "P_6A")),
        ),
        period: [
            reader.day("period_start", first_element(body, &["OkresFa/P_6_Od"])),
            reader.day("period_end", first_element(body, &["OkresFa/P_6_Do"])),
        ],
        order_number: reader
            .text(first_element(body, &["WarunkiTransakcji/Zamowienia/NrZamowienia"])),
        total: reader.number("total", first_element(body, &["P_15"])),
        ..InvoiceXmlFields::default()
    };
    read_parties(root, &mut fields, reader);
    for line in elements_below(body, "FaWiersz") {
        fields.lines.push(invoice_line(line, reader));
    }
    read_taxes(body, &mut fields, reader);
    read_payment(body, &mut fields, reader);
    read_account(root, body, &mut fields, reader);
    settle_type(body, &mut fields, reader);
    fields
}

fn read_parties(root: Node<'_, '_>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let seller = element_at(root, "Podmiot1");
    let buyer = element_at(root, "Podmiot2");
    fields.supplier_name = reader.text(first_element(seller, &["DaneIdentyfikacyjne/Nazwa"]));
    fields.buyer_name = reader.text(first_element(buyer, &["DaneIdentyfikacyjne/Nazwa"]));
    let address = first_element(seller, &["Adres"]);
    fields.supplier_address = reader.address(
        &["AdresL1", "AdresL2"].map(|name| [first_element(address, &[name])]),
        [None, None, first_element(address, &["KodKraju"])],
    );
    let prefix = plain_text(first_element(seller, &["PrefiksPodatnika"]));
    fields.supplier_vat_id = vat_id(seller, prefix);
    fields.buyer_vat_id = vat_id(buyer, None);
}

/// The NIP behind the country's prefix, or the identifier of another member state.
fn vat_id(party: Option<Node<'_, '_>>, prefix: Option<String>) -> Value {
    let ids = first_element(party, &["DaneIdentyfikacyjne"]);
    if let Some(number) = plain_text(first_element(ids, &["NIP"])) {
        return format!("{}{number}", prefix.as_deref().unwrap_or("PL")).into();
    }
    let country = plain_text(first_element(ids, &["KodUE"]));
    let number = plain_text(first_element(ids, &["NrVatUE"]));
    country.zip(number).map_or(Value::Null, |(country, number)| format!("{country}{number}").into())
}

fn is_set(node: Option<Node<'_, '_>>, path: &str) -> bool {
    plain_text(first_element(node, &[path])).as_deref() == Some("1")
}

fn invoice_line(line: Node<'_, '_>, reader: &mut ValueReader) -> Value {
    let one = Some(line);
    let mut found = InvoiceXmlLine {
        description: reader.text(first_element(one, &["P_7"])),
        article_number: reader
            .first_text(["Indeks", "GTIN"].map(|name| first_element(one, &[name]))),
        quantity: reader.number("line_items.quantity", first_element(one, &["P_8B"])),
        unit: reader.text(first_element(one, &["P_8A"])),
        price: reader.number("line_items.unit_price", first_element(one, &["P_9A"])),
        tax_rate: line_rate(one, reader),
        amount: reader.number("line_items.amount", first_element(one, &["P_11"])),
        ..InvoiceXmlLine::default()
    };
    if found.amount.is_null() {
        read_gross_line(line, &mut found, reader);
    }
    let discount = reader.number("line_items.unit_price", first_element(one, &["P_10"]));
    if decimal_of(&discount).is_some_and(|discount| !discount.is_zero()) {
        found.take_price_from_amount();
    }
    if is_set(one, "StanPrzed") {
        found.quantity = negated(&found.quantity);
        found.amount = negated(&found.amount);
        if !found.price_base.is_null() {
            found.take_price_from_amount();
        }
    }
    found.into_value(reader)
}

/// A line whose prices include VAT (article 106e, sections 7 and 8): the net amount, where the VAT
/// is stated.
fn read_gross_line(line: Node<'_, '_>, found: &mut InvoiceXmlLine, reader: &mut ValueReader) {
    let one = Some(line);
    let gross = reader.number("line_items.amount", first_element(one, &["P_11A"]));
    let tax = reader.number("line_items.amount", first_element(one, &["P_11Vat"]));
    if gross.is_null() {
        return;
    }
    match decimal_of(&gross).zip(decimal_of(&tax)) {
        Some((gross, tax)) => {
            found.amount = value_of(gross.checked_sub(tax));
            found.take_price_from_amount();
        }
        None => {
            reader.note("gross_line_amounts");
            found.amount = gross;
            found.price = reader.number("line_items.unit_price", first_element(one, &["P_9B"]));
        }
    }
}

/// `P_12`: a rate, or a word for one of 0 %, or for no tax at all.
fn line_rate(line: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    let rate = first_element(line, &["P_12"]);
    match plain_text(rate).as_deref() {
        None => reader.number("line_items.tax_rate", first_element(line, &["P_12_XII"])),
        Some("0 KR" | "0 WDT" | "0 EX" | "zw" | "oo" | "np" | "np I" | "np II") => 0.into(),
        Some(_) => reader.number("line_items.tax_rate", rate),
    }
}

fn read_taxes(body: Option<Node<'_, '_>>, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
    let exemption = ["P_19A", "P_19B", "P_19C"]
        .map(|name| format!("Adnotacje/Zwolnienie/{name}"))
        .iter()
        .find_map(|path| plain_text(first_element(body, &[path.as_str()])));
    let mut special = Vec::new();
    for rate in elements_below(body, "FaWiersz/P_12_XII") {
        special.push(reader.number("taxes", Some(rate)));
    }
    for group in &GROUPS {
        let (net, tax) = (format!("P_13_{}", group.ending), format!("P_14_{}", group.ending));
        let base = reader.number("taxes", first_element(body, &[net.as_str()]));
        let amount = reader.number("taxes", first_element(body, &[tax.as_str()]));
        if base.is_null() && amount.is_null() {
            continue;
        }
        if group.ending == "11" {
            reader.note("margin_scheme");
        }
        let is_exempt = group.category == "E";
        let row = TaxRow {
            rate: group_rate(group, &base, &amount, &special),
            base,
            amount: if amount.is_null() { 0.into() } else { amount },
            category: group.category.into(),
            exemption_reason: exemption.clone().filter(|_| is_exempt).into(),
        };
        fields.taxes.push(row.into_value());
    }
    fields.sum_taxes();
}

/// The rate of a group: of its two the one that its amounts are nearer to. The group of the special
/// procedure has the rate of its lines (`special`), if that is one.
fn group_rate(group: &TaxGroup, base: &Value, amount: &Value, special: &[Value]) -> Value {
    let amounts = decimal_of(base).zip(decimal_of(amount));
    let nearest = group.rates.iter().min_by_key(|rate| {
        let expected = amounts.map(|(base, amount)| {
            base.saturating_mul(Decimal::from(**rate)) / Decimal::ONE_HUNDRED - amount
        });
        expected.unwrap_or_default().abs()
    });
    match nearest {
        Some(rate) => (*rate).into(),
        None => {
            let first = special.first().cloned().unwrap_or_default();
            if special.iter().all(|rate| *rate == first) { first } else { Value::Null }
        }
    }
}

fn read_payment(
    body: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let payment = first_element(body, &["Platnosc"]);
    let marks = plain_text(first_element(payment, &["ZnacznikZaplatyCzesciowej"]));
    let mut parts = Vec::new();
    for part in elements_below(payment, "ZaplataCzesciowa/KwotaZaplatyCzesciowej") {
        parts.push(reader.number("paid_amount", Some(part)));
    }
    if is_set(payment, "Zaplacono") || marks.as_deref() == Some("2") {
        fields.paid_amount = fields.total.clone();
    } else {
        fields.paid_amount = value_of(sum_of(&parts));
    }
    let settled = reader.number("amount_due", first_element(body, &["Rozliczenie/DoZaplaty"]));
    if first_element(body, &["Rozliczenie"]).is_some() {
        reader.note("settlement_beside_total");
    }
    let whole = decimal_of(if settled.is_null() { &fields.total } else { &settled });
    let paid = decimal_of(&fields.paid_amount).unwrap_or_default();
    fields.amount_due = value_of(whole.and_then(|whole| whole.checked_sub(paid)));
    let mut terms = Vec::new();
    for term in elements_below(payment, "TerminPlatnosci") {
        let day = reader.day("due_date", element_at(term, "Termin"));
        terms.push(PaymentTerm { day, ..PaymentTerm::default() });
    }
    (fields.due_date, fields.instalments) = settle_terms(terms);
    fields.payment_terms = payment_terms(body, payment);
    let discount = first_element(payment, &["Skonto/WysokoscSkonta"]);
    if let Some(text) = plain_text(discount) {
        let percent = text.trim_end_matches('%').trim().replace(',', ".");
        let percent = super::element::parse_decimal(&percent).filter(|_| text.contains('%'));
        let found = cash_discount(value_of(percent), Value::Null);
        if found.is_none() {
            reader.note("unread.cash_discounts");
        }
        fields.cash_discounts.extend(found);
    }
}

/// The terms in words: what the schema has no date for.
fn payment_terms(body: Option<Node<'_, '_>>, payment: Option<Node<'_, '_>>) -> Value {
    let mut words = Vec::new();
    for term in elements_below(payment, "TerminPlatnosci/TerminOpis") {
        let parts = term.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
        let text: Vec<&str> = parts.flat_map(str::split_whitespace).collect();
        words.push(text.join(" "));
    }
    for path in ["OpisPlatnosci", "Skonto/WarunkiSkonta", "Skonto/WysokoscSkonta"] {
        words.extend(plain_text(first_element(payment, &[path])));
    }
    if is_set(body, "Adnotacje/P_18A") {
        words.push("mechanizm podzielonej płatności".to_owned());
    }
    words.retain(|text| !text.is_empty());
    if words.is_empty() { Value::Null } else { words.join(" / ").into() }
}

/// The accounts: a factor's first, because the debt is his.
fn read_account(
    root: Node<'_, '_>,
    body: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let mut accounts = PaymentAccounts::default();
    for path in ["Platnosc/RachunekBankowyFaktora", "Platnosc/RachunekBankowy"] {
        for account in elements_below(body, path) {
            let number = plain_text(element_at(account, "NrRB")).map(|number| {
                let digits: String = number.chars().filter(|c| !c.is_whitespace()).collect();
                let is_national = digits.len() == 26 && digits.bytes().all(|b| b.is_ascii_digit());
                if is_national { format!("PL{digits}") } else { number }
            });
            accounts.add(number.into(), reader.text(element_at(account, "SWIFT")));
        }
    }
    fields.accounts = accounts;
    for third in elements_below(Some(root), "Podmiot3") {
        if is_set(Some(third), "Rola") {
            fields.payee_name = reader.text(element_at(third, "DaneIdentyfikacyjne/Nazwa"));
        }
    }
}

/// Kind and code of the document, and its signs.
fn settle_type(
    body: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let kind = plain_text(first_element(body, &["RodzajFaktury"])).unwrap_or_default();
    let total = decimal_of(&fields.total).unwrap_or_default();
    let is_self_billed = is_set(body, "Adnotacje/P_17");
    let code = match kind.as_str() {
        "KOR" | "KOR_ZAL" | "KOR_ROZ" if total.is_sign_negative() && !total.is_zero() => "381",
        "KOR" | "KOR_ZAL" | "KOR_ROZ" => {
            let doubt =
                if total.is_zero() { "correction_without_amount" } else { "correction_upwards" };
            reader.note(doubt);
            "384"
        }
        "ZAL" => "386",
        "VAT" | "UPR" | "ROZ" if is_self_billed => self_billed("380"),
        "VAT" | "UPR" | "ROZ" => "380",
        _ => {
            reader.note("unread.document_type");
            ""
        }
    };
    if first_element(body, &["FakturaZaliczkowa"]).is_some()
        && (kind != "ROZ" || !settle_advances(body, fields, reader))
    {
        reader.note("rest_after_advances");
    }
    fields.document_type = match code {
        "" => Value::Null,
        "381" if is_self_billed => self_billed(code).into(),
        code => code.into(),
    };
    if code == "381" {
        fields.is_credit_note = true;
        fields.negate_amounts();
    }
}

/// Adds the advances deducted in a settlement, by rate, as allowances. `false`: the lines do not
/// exceed the sums, or a rate is unknown.
fn settle_advances(
    body: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) -> bool {
    let lines = [(&fields.lines, "amount", Decimal::ONE)];
    let sums = [(&fields.taxes, "base", Decimal::NEGATIVE_ONE)];
    let Some(rest) = sums_by_rate(lines.into_iter().chain(sums)) else { return false };
    let are_advances = rest.values().all(|rest| !rest.is_sign_negative() || rest.is_zero());
    let advances: Vec<_> = rest.into_iter().filter(|(_, rest)| !rest.is_zero()).collect();
    if !are_advances || advances.is_empty() {
        return false;
    }
    let paths = ["FakturaZaliczkowa/NrKSeFFaZaliczkowej", "FakturaZaliczkowa/NrFaZaliczkowej"];
    let numbers = reader.joined_text(paths.map(|path| elements_below(body, path)).concat());
    let reason = format!("Zaliczki {}", numbers.as_str().unwrap_or_default());
    for (rate, advance) in advances {
        let (rate, advance) = (value_of(Some(rate)), value_of(Some(advance)));
        fields.allowances.push(adjustment_value(reason.trim_end().into(), rate, advance));
    }
    true
}
