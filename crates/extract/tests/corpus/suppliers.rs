//! Forty issuers with six documents each, drawn anew: what the rules reader makes of a document once
//! earlier ones of its issuer are confirmed. Layouts vary as programs do: more lines, a second page, a
//! credit note. The figures are those of docs/explanation/accuracy.md.
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::cast_possible_truncation,
    clippy::needless_range_loop,
    reason = "drawn documents on grids of known size"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use docmill_extract::memory::{RememberedPages, SupplierRecall, apply_memory, find_identifiers};
use docmill_gate::SupplierHistory;
use docmill_gate::kinds::Kind;
use serde_json::{Map, json};
use time::{Duration, OffsetDateTime};

use super::*;

const ISSUERS: usize = 40;
const DOCUMENTS: usize = 6;
/// The document that is a credit note, and the one with a second page.
const CREDIT_NOTE: usize = 4;
const LONG: usize = 2;
/// The fields that have to be right.
const SCORED: [&str; 9] = [
    "supplier_name",
    "supplier_vat_id",
    "invoice_number",
    "invoice_date",
    "currency",
    "subtotal",
    "vat_amount",
    "total",
    "iban",
];

/// The words of a language, in the order of [`Word`].
type Words = [&'static str; 18];

/// Indexes into [`Words`].
#[derive(Clone, Copy)]
enum Word {
    Invoice,
    Credit,
    Number,
    Date,
    Due,
    Customer,
    Item,
    Quantity,
    Price,
    Amount,
    Net,
    Tax,
    Total,
    VatId,
    Page,
    OddNumber,
    OddTotal,
    OddDate,
}

#[rustfmt::skip]
const LANGUAGES: [(&str, Words); 5] = [
    ("DE", ["Rechnung", "Gutschrift", "Rechnungsnummer", "Rechnungsdatum", "Zahlbar bis", "Kundennummer",
        "Bezeichnung", "Menge", "Einzelpreis", "Betrag", "Nettobetrag", "MwSt 19 %", "Gesamtbetrag",
        "USt-IdNr.", "Seite", "Vorgang", "Endbetrag brutto", "Aufgestellt"]),
    ("GB", ["Invoice", "Credit note", "Invoice number", "Invoice date", "Due date", "Customer no.",
        "Description", "Quantity", "Unit price", "Amount", "Net total", "VAT 20 %", "Total",
        "VAT no.", "Page", "Our file", "To be settled", "Made out"]),
    ("FR", ["Facture", "Avoir", "Facture no", "Date de facture", "Échéance", "Client no",
        "Désignation", "Quantité", "Prix unitaire", "Montant", "Total HT", "TVA 20 %", "Total TTC",
        "No TVA", "Page", "Dossier", "Somme finale", "Dressée"]),
    ("NL", ["Factuur", "Creditnota", "Factuurnummer", "Factuurdatum", "Vervaldatum", "Klantnummer",
        "Omschrijving", "Aantal", "Prijs", "Bedrag", "Subtotaal", "Btw 21 %", "Totaal",
        "Btw-nummer", "Pagina", "Kenmerk", "Eindbedrag", "Opgemaakt"]),
    ("IT", ["Fattura", "Nota di credito", "Numero fattura", "Data fattura", "Scadenza", "Cliente",
        "Descrizione", "Quantità", "Prezzo", "Importo", "Imponibile", "IVA 22 %", "Totale",
        "Partita IVA", "Pagina", "Pratica", "Somma finale", "Redatta"]),
];
const RATES: [i64; 5] = [19, 20, 20, 21, 22];
const STEMS: [&str; 8] = [
    "Korkstein",
    "Ahlbrook",
    "Vernois",
    "Terpstra",
    "Molinari",
    "Lindqvist",
    "Brandauer",
    "Osterfeld",
];
const TRADES: [&str; 5] = ["Papier", "Werkzeuge", "Druck", "Logistik", "Technik"];
const FORMS: [&str; 5] = ["GmbH", "Ltd", "SARL", "B.V.", "S.r.l."];
const GOODS: [&str; 7] =
    ["Paper A4", "Ink black", "Folder blue", "Shelf oak", "Lamp steel", "Cable 5 m", "Box large"];

/// A sequence of numbers that is the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A page of characters.
struct Sheet(Vec<Vec<char>>);

impl Sheet {
    fn put(&mut self, row: usize, column: usize, text: &str) {
        if self.0.len() <= row {
            self.0.resize(row + 1, Vec::new());
        }
        let line = &mut self.0[row];
        let end = column + text.chars().count();
        if line.len() < end {
            line.resize(end, ' ');
        }
        for (at, c) in text.chars().enumerate() {
            line[column + at] = c;
        }
    }

    fn put_right(&mut self, row: usize, end: usize, text: &str) {
        self.put(row, end - text.chars().count(), text);
    }

    fn text(&self) -> String {
        let rows: Vec<String> = self.0.iter().map(|row| row.iter().collect()).collect();
        rows.join("\n")
    }
}

struct Issuer {
    at: usize,
    country: &'static str,
    words: Words,
    rate: i64,
    name: String,
    street: String,
    city: String,
    vat_id: String,
    iban: String,
    prefix: String,
    layout: usize,
    /// Whether number, day, total and VAT id stand beside words that no vocabulary has, or none.
    odd: [bool; 4],
}

/// An IBAN of this country with sound check digits.
fn account(country: &str, digits: &str) -> String {
    let (lead, length) = match country {
        "GB" => ("NWBK", 14),
        "NL" => ("ABNA", 10),
        "IT" => ("X", 22),
        "FR" => ("", 23),
        _ => ("", 18),
    };
    let body = format!("{lead}{}", digits.repeat(3).chars().take(length).collect::<String>());
    let text = format!("{body}{country}00");
    let number: String = text.chars().map(|c| c.to_digit(36).unwrap().to_string()).collect();
    let rest = number.bytes().fold(0_u64, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % 97);
    format!("{country}{:02}{body}", 98 - rest)
}

fn vat_id(country: &str, digits: &str) -> String {
    match country {
        "FR" => format!("FR12{}", &digits[..9]),
        "NL" => format!("NL{}B01", &digits[..9]),
        "IT" => format!("IT{digits}1"),
        _ => format!("{country}{}", &digits[..9]),
    }
}

impl Issuer {
    fn new(at: usize) -> Self {
        let mut draw = Draw(at as u64 * 7_919 + 11);
        let (country, words) = LANGUAGES[at % 5];
        let digits: String = (0..10).map(|_| char::from(b'1' + draw.next(9) as u8)).collect();
        let layout = at / 5;
        Self {
            at,
            country,
            words,
            rate: RATES[at % 5],
            name: match at % 4 {
                3 => format!("{} {}", STEMS[layout], TRADES[(at + layout) % 5]),
                _ => format!("{} {} {}", STEMS[layout], TRADES[(at + layout) % 5], FORMS[at % 5]),
            },
            street: format!("Hafenweg {}", 1 + draw.next(90)),
            city: format!("{} Nordstadt", 10_000 + draw.next(80_000)),
            vat_id: vat_id(country, &digits),
            iban: account(country, &digits),
            prefix: ["RE-", "INV", "F", "", "2026/"][(at + layout) % 5].to_owned(),
            layout,
            odd: [
                layout == 5 || at % 3 == 1,
                at % 5 == layout % 5,
                layout == 5 || at % 4 == 2,
                at.is_multiple_of(3),
            ],
        }
    }

    fn word(&self, word: Word) -> &'static str {
        self.words[word as usize]
    }

    fn amount(&self, cents: i64) -> String {
        let (whole, rest) = (cents / 100, cents % 100);
        match self.country {
            "GB" if whole > 999 => format!("{},{:03}.{rest:02}", whole / 1000, whole % 1000),
            "GB" => format!("{whole}.{rest:02}"),
            _ if whole > 999 => format!("{}.{:03},{rest:02}", whole / 1000, whole % 1000),
            _ => format!("{whole},{rest:02}"),
        }
    }

    fn date(&self, day: Date) -> String {
        let (year, month, day) = (day.year(), u8::from(day.month()), day.day());
        match self.country {
            "GB" | "FR" => format!("{day:02}/{month:02}/{year}"),
            "NL" => format!("{day:02}-{month:02}-{year}"),
            _ => format!("{day:02}.{month:02}.{year}"),
        }
    }
}

/// A drawn document and what is true of it.
struct Drawn {
    kind: &'static str,
    transcript: Transcript,
    truth: Map<String, Value>,
}

/// Where number and date stand.
fn draw_head(sheet: &mut Sheet, issuer: &Issuer, title: &str, facts: [(&str, &str); 3]) -> usize {
    let [number, date, due] = facts;
    let customer = (issuer.word(Word::Customer), format!("K{}", 4400 + issuer.at));
    match issuer.layout {
        // A block of labels and values on the right, on the left, or in another order.
        0 | 3 | 4 => {
            let left = if issuer.layout == 3 { 2 } else { 62 };
            sheet.put(14, 2, title);
            for (row, (label, value)) in
                [number, date, (customer.0, customer.1.as_str())].into_iter().enumerate()
            {
                let at = if issuer.layout == 3 { 16 } else { 7 } + row;
                sheet.put(at, left, &format!("{label}:"));
                sheet.put(at, left + 24, value);
            }
            sheet.put(20, 2, &format!("{}: {}", due.0, due.1));
            22
        }
        // Headings over their values.
        1 => {
            sheet.put(14, 2, title);
            for (column, (label, value)) in
                [(customer.0, customer.1.as_str()), date, number].into_iter().enumerate()
            {
                sheet.put(16, 2 + 30 * column, label);
                sheet.put(17, 2 + 30 * column, value);
            }
            sheet.put(19, 2, &format!("{} {}", due.0, due.1));
            21
        }
        // One line of text.
        2 => {
            sheet.put(14, 2, &format!("{title} {} / {}", number.1, date.1));
            sheet.put(16, 2, &format!("{}: {}    {}: {}", customer.0, customer.1, due.0, due.1));
            18
        }
        // Words of its own for the number.
        5 => {
            sheet.put(12, 2, title);
            sheet.put(14, 2, &format!("{} {}", number.0, number.1));
            sheet.put(14, 50, &format!("{} {}", date.0, date.1));
            sheet.put(16, 2, &format!("{} {}", due.0, due.1));
            18
        }
        // The place before the day.
        6 => {
            sheet.put(12, 2, &format!("{title} {}", number.1));
            sheet.put(12, 70, &format!("Nordstadt, {}", date.1));
            sheet.put(14, 2, &format!("{} {}", due.0, due.1));
            16
        }
        _ => {
            sheet.put(12, 40, title);
            sheet.put(14, 2, &format!("{}  {}", number.0, number.1));
            sheet.put(15, 2, &format!("{}  {}", date.0, date.1));
            sheet.put(16, 2, &format!("{}  {}", due.0, due.1));
            18
        }
    }
}

/// One line of a document: text, quantity, price in cents.
fn lines_of(draw: &mut Draw, count: usize) -> Vec<(&'static str, i64, i64)> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let (good, quantity) = (GOODS[draw.next(7) as usize], 1 + draw.next(9) as i64);
        lines.push((good, quantity, 250 + draw.next(9_000) as i64));
    }
    lines
}

#[expect(clippy::too_many_lines, reason = "one page, from its head to its foot")]
fn draw_document(issuer: &Issuer, at: usize) -> Drawn {
    let mut draw = Draw((issuer.at * 101 + at) as u64 + 5);
    let is_credit = at == CREDIT_NOTE;
    let lines = lines_of(&mut draw, [3, 5, 24, 8, 2, 4][at]);
    let number = match is_credit {
        true => format!("G{}", 70_100 + 13 * at + issuer.at),
        false => format!("{}{:05}", issuer.prefix, 20_117 + 31 * at + issuer.at),
    };
    let day = date!(2026 - 01 - 14) + Duration::days(28 * at as i64 + issuer.at as i64 % 9);
    let due = day + Duration::days(14);
    let net: i64 = lines.iter().map(|(_, quantity, price)| quantity * price).sum();
    let tax = (net * issuer.rate + 50) / 100;
    let title = issuer.word(if is_credit { Word::Credit } else { Word::Invoice });
    let mut sheet = Sheet(Vec::new());
    let head = if issuer.layout == 3 { 60 } else { 2 };
    sheet.put(1, head, &issuer.name);
    sheet.put(2, head, &issuer.street);
    sheet.put(3, head, &issuer.city);
    sheet.put(7, 2, "Nordlicht Handel GmbH");
    sheet.put(8, 2, "Am Markt 4");
    sheet.put(9, 2, "20095 Hamburg");
    let (shown_day, shown_due) = (issuer.date(day), issuer.date(due));
    let [odd_number, odd_date, odd_total, bare_id] = issuer.odd;
    let number_label = match odd_number {
        true => issuer.word(Word::OddNumber),
        false if is_credit => title,
        false => issuer.word(Word::Number),
    };
    let facts = [
        (number_label, number.as_str()),
        (issuer.word(if odd_date { Word::OddDate } else { Word::Date }), shown_day.as_str()),
        (issuer.word(Word::Due), shown_due.as_str()),
    ];
    let mut row = draw_head(&mut sheet, issuer, title, facts);
    let mut sheets = Vec::new();
    draw_table_head(&mut sheet, issuer, row);
    row += 1;
    for (line, (good, quantity, price)) in lines.iter().enumerate() {
        if at == LONG && line == 14 {
            sheet.put(row + 2, 80, &format!("{} 1 / 2", issuer.word(Word::Page)));
            sheets.push(std::mem::replace(&mut sheet, Sheet(Vec::new())));
            sheet.put(1, 2, &issuer.name);
            sheet.put(1, 80, &format!("{} 2 / 2", issuer.word(Word::Page)));
            draw_table_head(&mut sheet, issuer, 4);
            row = 5;
        }
        sheet.put(row, 2, good);
        sheet.put_right(row, 52, &quantity.to_string());
        sheet.put_right(row, 72, &issuer.amount(*price));
        sheet.put_right(row, 95, &issuer.amount(quantity * price));
        row += 1;
    }
    let total_label = issuer.word(if odd_total { Word::OddTotal } else { Word::Total });
    for (label, cents) in
        [(issuer.word(Word::Net), net), (issuer.word(Word::Tax), tax), (total_label, net + tax)]
    {
        row += 1;
        let currency = if issuer.country == "GB" { "GBP" } else { "EUR" };
        sheet.put(row, 55, &format!("{label} {currency}"));
        sheet.put_right(row, 95, &issuer.amount(cents));
    }
    let mut grouped = String::new();
    for (at, c) in issuer.iban.chars().enumerate() {
        _ = write!(grouped, "{}{c}", if at > 0 && at % 4 == 0 { " " } else { "" });
    }
    sheet.put(row + 4, 2, &format!("{}, {}, {}", issuer.name, issuer.street, issuer.city));
    sheet.put(row + 5, 2, &format!("IBAN {grouped}"));
    let id_label = if bare_id { "" } else { issuer.word(Word::VatId) };
    sheet.put(row + 5, 50, &format!("{id_label} {}", issuer.vat_id));
    sheets.push(sheet);
    let pages: Vec<String> = sheets.iter().map(Sheet::text).collect();
    let money =
        |cents: i64| json!(format!("{}.{:02}", cents / 100, cents % 100).parse::<f64>().unwrap());
    let truth = json!({
        "supplier_name": issuer.name, "supplier_vat_id": issuer.vat_id, "iban": issuer.iban,
        "supplier_address": format!("{}, {}", issuer.street, issuer.city),
        "invoice_number": number, "invoice_date": date::to_iso(day), "due_date": date::to_iso(due),
        "currency": if issuer.country == "GB" { "GBP" } else { "EUR" },
        "subtotal": money(net), "vat_amount": money(tax), "total": money(net + tax),
    });
    Drawn {
        kind: if is_credit { "credit_note" } else { "invoice" },
        transcript: transcript(&pages),
        truth: truth.as_object().unwrap().clone(),
    }
}

fn draw_table_head(sheet: &mut Sheet, issuer: &Issuer, row: usize) {
    sheet.put(row, 2, issuer.word(Word::Item));
    sheet.put_right(row, 52, issuer.word(Word::Quantity));
    sheet.put_right(row, 72, issuer.word(Word::Price));
    sheet.put_right(row, 95, issuer.word(Word::Amount));
}

/// Documents that were confirmed before, for the gate.
fn history_of(confirmed: &[Drawn], kind: &str) -> SupplierHistory {
    let mut history = SupplierHistory::default();
    for one in confirmed.iter().rev() {
        history.accounts.extend(one.truth["iban"].as_str().map(str::to_owned));
        history.currencies.extend(one.truth["currency"].as_str().map(str::to_owned));
        for (field, value) in one.truth.iter().filter(|_| one.kind == kind) {
            history.values.entry(field.clone()).or_default().push(value.clone());
        }
    }
    history
}

/// The newest first, those of the kind before others.
fn recall_of(confirmed: &[Drawn], kind: &str) -> SupplierRecall {
    let mut newest: Vec<&Drawn> = confirmed.iter().rev().collect();
    newest.sort_by_key(|one| one.kind != kind);
    let documents = newest.into_iter().map(|one| RememberedPages {
        transcript: Arc::new(one.transcript.clone()),
        data: one.truth.clone(),
        learned_at: OffsetDateTime::UNIX_EPOCH,
    });
    SupplierRecall { documents: documents.collect(), prints_account: true }
}

/// How one document ended.
struct Ended {
    wrong: Vec<String>,
    reasons: Vec<String>,
}

fn read(drawn: &Drawn, confirmed: &[Drawn], kind: &Kind) -> Ended {
    let recall = recall_of(confirmed, drawn.kind);
    let own = extract_by_rules(&drawn.transcript, kind);
    let extraction = apply_memory(own, &drawn.transcript, kind, &recall);
    let lookups = GateLookups {
        quality_threshold: 0.7,
        history: history_of(confirmed, drawn.kind),
        ..GateLookups::on_day(date!(2026 - 07 - 15))
    };
    let plain = |value: &Value| match value {
        Value::String(text) => {
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        }
        Value::Number(number) => format!("{:.2}", number.as_f64().unwrap()),
        other => other.to_string(),
    };
    let wrong = SCORED.into_iter().filter(|field| {
        let given = extraction.data.get(*field).unwrap_or(&Value::Null);
        plain(given) != plain(&drawn.truth[*field])
    });
    let reasons = judge_extraction(&extraction, &drawn.transcript, kind, &lookups).review_reasons();
    Ended {
        wrong: wrong
            .map(|field| format!("{field}={}", extraction.data.get(field).unwrap_or(&Value::Null)))
            .collect(),
        reasons,
    }
}

#[test]
fn a_suppliers_second_document_passes_after_one_confirmation_and_none_is_wrong_unflagged() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut passed = [[0_usize; 2]; DOCUMENTS];
    let (mut silent, mut report) = (Vec::new(), String::new());
    for issuer in (0..ISSUERS).map(Issuer::new) {
        let mut confirmed: Vec<Drawn> = Vec::new();
        for at in 0..DOCUMENTS {
            let drawn = draw_document(&issuer, at);
            let kind = kinds.get(drawn.kind).unwrap();
            for (with, known) in [&[][..], &confirmed[..]].into_iter().enumerate() {
                let Ended { wrong, reasons } = read(&drawn, known, kind);
                passed[at][with] += usize::from(wrong.is_empty() && reasons.is_empty());
                if with == 1 && !wrong.is_empty() && reasons.is_empty() {
                    silent.push(format!("{} document {at}: {wrong:?}", issuer.name));
                }
                if with == 1 && !(wrong.is_empty() && reasons.is_empty()) {
                    _ = writeln!(
                        report,
                        "layout {} {} document {at}: {wrong:?} {reasons:?}",
                        issuer.layout, issuer.country
                    );
                }
            }
            confirmed.push(drawn);
        }
    }
    for (at, [without, with]) in passed.iter().enumerate() {
        _ = writeln!(report, "document {}: {without} pass without memory, {with} with it", at + 1);
    }
    assert!(silent.is_empty(), "wrong and unflagged: {silent:?}");
    let share = |at: usize| passed[at][1] as f64 / ISSUERS as f64;
    assert!(share(1) >= 0.85 && share(2) >= 0.95, "{report}");
}

#[test]
fn a_page_names_its_issuer_by_account_vat_id_and_name() {
    let issuer = Issuer::new(3);
    let found = find_identifiers(&draw_document(&issuer, 0).transcript);
    assert_eq!(found.vat_ids, BTreeSet::from([issuer.vat_id]));
    assert_eq!(found.accounts, BTreeSet::from([issuer.iban]));
    assert!(found.names.contains(&issuer.name), "{found:?}");
}

/// A document of an issuer with one confirmed before it, a text of which is another on the page.
fn read_changed(from: &str, to: &str) -> Ended {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let issuer = Issuer::new(0);
    let confirmed = [draw_document(&issuer, 0)];
    let mut drawn = draw_document(&issuer, 1);
    let words = drawn.transcript.pages.iter_mut().flat_map(|page| &mut page.lines);
    let mut changed = 0;
    for word in words.flat_map(|line| &mut line.words).filter(|word| word.text == from) {
        word.text = to.into();
        changed += 1;
    }
    assert!(changed > 0, "no {from}");
    read(&drawn, &confirmed, kinds.get("invoice").unwrap())
}

#[test]
fn remembered_places_make_no_amount_certain_that_does_not_add_up() {
    let issuer = Issuer::new(0);
    let total = draw_document(&issuer, 1).truth["total"].as_f64().unwrap();
    let printed = issuer.amount((total * 100.0).round() as i64);
    let Ended { reasons, .. } = read_changed(&printed, "99.999,17");
    let is_doubted = |field: &str| reasons.iter().any(|reason| reason.ends_with(field));
    assert!(is_doubted(":total"), "{reasons:?}");
}

#[test]
fn another_account_on_the_page_is_flagged_whatever_else_agrees() {
    let issuer = Issuer::new(0);
    let hostile = account("DE", "987654321");
    let block = |iban: &str| iban.get(18..22).unwrap().to_owned();
    // Only the whole account is sound: the page prints another one.
    assert_ne!(block(&issuer.iban), block(&hostile));
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let swindler = Issuer { iban: hostile, ..Issuer::new(0) };
    let (confirmed, drawn) = ([draw_document(&issuer, 0)], draw_document(&swindler, 1));
    let ended = read(&drawn, &confirmed, kinds.get("invoice").unwrap());
    assert_eq!(ended.reasons, ["account_changed:iban"], "{:?}", ended.wrong);
}
