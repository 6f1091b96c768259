//! Invoices in twenty-five languages and three layouts, drawn from one table of words: labels right of
//! or above their values, wrapped descriptions, two-digit years, each language's own numbers and dates.

use serde_json::Value;

use super::transcript;
use docmill_core::config::KindsConfig;
use docmill_extract::rules::extract_by_rules;
use docmill_gate::kinds::KindSet;

/// A language's words and habits.
struct Words {
    language: &'static str,
    title: &'static str,
    number: &'static str,
    date: &'static str,
    due: &'static str,
    customer: &'static str,
    columns: [&'static str; 4],
    totals: [&'static str; 3],
    vat_id: [&'static str; 2],
    currency: &'static str,
    /// Between thousands, and before decimals.
    marks: [&'static str; 2],
    /// Between day, month and year; `-` for the year first.
    day: &'static str,
}

#[rustfmt::skip]
const LANGUAGES: [Words; 25] = [
    Words { language: "en", title: "INVOICE", number: "Invoice no.", date: "Invoice date", due: "Due date", customer: "Bill to", columns: ["Description", "Qty", "Unit price", "Amount"], totals: ["Subtotal", "VAT", "Total"], vat_id: ["VAT Reg No", "GB 123 4567 89"], currency: "GBP", marks: [",", "."], day: "/" },
    Words { language: "de", title: "Rechnung", number: "Rechnungsnummer", date: "Rechnungsdatum", due: "Fällig am", customer: "Rechnungsempfänger", columns: ["Bezeichnung", "Menge", "Einzelpreis", "Betrag"], totals: ["Nettobetrag", "MwSt.", "Gesamtbetrag"], vat_id: ["USt-IdNr.", "DE123456789"], currency: "EUR", marks: [".", ","], day: "." },
    Words { language: "fr", title: "FACTURE", number: "Facture n°", date: "Date de facturation", due: "Date d'échéance", customer: "Facturé à", columns: ["Désignation", "Qté", "Prix unitaire HT", "Montant HT"], totals: ["Total HT", "TVA", "Total TTC"], vat_id: ["N° TVA", "FR11123456782"], currency: "EUR", marks: [" ", ","], day: "/" },
    Words { language: "nl", title: "FACTUUR", number: "Factuurnummer", date: "Factuurdatum", due: "Vervaldatum", customer: "Factuuradres", columns: ["Omschrijving", "Aantal", "Prijs", "Bedrag"], totals: ["Totaal excl. btw", "BTW", "Totaal incl. btw"], vat_id: ["BTW-nummer", "NL001234567B01"], currency: "EUR", marks: [".", ","], day: "-" },
    Words { language: "es", title: "FACTURA", number: "Nº factura", date: "Fecha de factura", due: "Vencimiento", customer: "Cliente", columns: ["Concepto", "Cantidad", "Precio", "Importe"], totals: ["Base imponible", "IVA", "Total factura"], vat_id: ["CIF", "ESB12345678"], currency: "EUR", marks: [".", ","], day: "/" },
    Words { language: "it", title: "FATTURA", number: "Fattura n.", date: "Data fattura", due: "Scadenza", customer: "Spett.le", columns: ["Descrizione", "Quantità", "Prezzo unitario", "Importo"], totals: ["Totale imponibile", "IVA", "Totale fattura"], vat_id: ["P. IVA", "IT01234567890"], currency: "EUR", marks: [".", ","], day: "/" },
    Words { language: "pt", title: "FATURA", number: "Fatura n.º", date: "Data de emissão", due: "Data de vencimento", customer: "Cliente", columns: ["Descrição", "Qtd.", "Preço unitário", "Valor"], totals: ["Total sem IVA", "IVA", "Total a pagar"], vat_id: ["NIF", "PT123456789"], currency: "EUR", marks: [".", ","], day: "/" },
    Words { language: "sv", title: "FAKTURA", number: "Fakturanummer", date: "Fakturadatum", due: "Förfallodatum", customer: "Kund", columns: ["Benämning", "Antal", "À-pris", "Belopp"], totals: ["Summa exkl. moms", "Moms", "Att betala"], vat_id: ["Momsreg.nr", "SE123456789001"], currency: "SEK", marks: [" ", ","], day: "year" },
    Words { language: "da", title: "FAKTURA", number: "Fakturanr.", date: "Fakturadato", due: "Forfaldsdato", customer: "Kunde", columns: ["Beskrivelse", "Antal", "Stk. pris", "Beløb"], totals: ["Subtotal", "Moms", "Total inkl. moms"], vat_id: ["CVR-nr.", "DK12345678"], currency: "DKK", marks: [".", ","], day: "-" },
    Words { language: "no", title: "FAKTURA", number: "Fakturanr", date: "Fakturadato", due: "Forfallsdato", customer: "Kunde", columns: ["Beskrivelse", "Antall", "Enhetspris", "Beløp"], totals: ["Sum eks. mva", "Mva", "Å betale"], vat_id: ["Org.nr", "NO123456789MVA"], currency: "NOK", marks: [" ", ","], day: "." },
    Words { language: "pl", title: "FAKTURA VAT", number: "Numer faktury", date: "Data wystawienia", due: "Termin płatności", customer: "Nabywca", columns: ["Nazwa towaru lub usługi", "Ilość", "Cena jedn. netto", "Wartość netto"], totals: ["Razem netto", "Kwota VAT", "Do zapłaty"], vat_id: ["NIP", "PL1234567890"], currency: "PLN", marks: [" ", ","], day: "." },
    Words { language: "el", title: "ΤΙΜΟΛΟΓΙΟ", number: "Αρ. τιμολογίου", date: "Ημερομηνία έκδοσης", due: "Ημερομηνία λήξης", customer: "Πελάτης", columns: ["Περιγραφή", "Ποσότητα", "Τιμή μονάδας", "Αξία"], totals: ["Καθαρή αξία", "ΦΠΑ", "Γενικό σύνολο"], vat_id: ["ΑΦΜ", "EL123456789"], currency: "EUR", marks: [".", ","], day: "/" },
    Words { language: "hu", title: "SZÁMLA", number: "Számla sorszáma", date: "Számla kelte", due: "Fizetési határidő", customer: "Vevő", columns: ["Megnevezés", "Mennyiség", "Egységár", "Nettó érték"], totals: ["Nettó összesen", "ÁFA", "Bruttó végösszeg"], vat_id: ["Közösségi adószám", "HU12345678"], currency: "HUF", marks: [" ", ","], day: "year" },
    Words { language: "ro", title: "FACTURĂ", number: "Nr. factură", date: "Data emiterii", due: "Data scadenței", customer: "Cumpărător", columns: ["Denumire", "Cantitate", "Preț unitar", "Valoare"], totals: ["Total fără TVA", "TVA", "Total de plată"], vat_id: ["CIF", "RO12345678"], currency: "RON", marks: [".", ","], day: "." },
    Words { language: "bg", title: "ФАКТУРА", number: "Номер на фактура", date: "Дата на издаване", due: "Срок за плащане", customer: "Получател", columns: ["Наименование", "Количество", "Ед. цена", "Стойност"], totals: ["Данъчна основа", "ДДС", "Обща сума"], vat_id: ["ДДС номер", "BG123456789"], currency: "BGN", marks: [" ", ","], day: "." },
    Words { language: "hr", title: "RAČUN", number: "Broj računa", date: "Datum izdavanja", due: "Datum dospijeća", customer: "Kupac", columns: ["Opis", "Količina", "Jedinična cijena", "Iznos"], totals: ["Osnovica", "PDV", "Ukupno za platiti"], vat_id: ["PDV ID", "HR12345678901"], currency: "EUR", marks: [".", ","], day: "." },
    Words { language: "sl", title: "RAČUN", number: "Številka računa", date: "Datum izdaje", due: "Rok plačila", customer: "Kupec", columns: ["Opis", "Količina", "Cena na enoto", "Vrednost"], totals: ["Osnova za DDV", "DDV", "Skupaj za plačilo"], vat_id: ["ID za DDV", "SI12345678"], currency: "EUR", marks: [".", ","], day: "." },
    Words { language: "lt", title: "PVM SĄSKAITA FAKTŪRA", number: "Sąskaitos numeris", date: "Išrašymo data", due: "Apmokėti iki", customer: "Pirkėjas", columns: ["Pavadinimas", "Kiekis", "Vieneto kaina", "Suma"], totals: ["Suma be PVM", "PVM", "Bendra suma"], vat_id: ["PVM mokėtojo kodas", "LT123456789"], currency: "EUR", marks: [" ", ","], day: "year" },
    Words { language: "lv", title: "RĒĶINS", number: "Rēķina numurs", date: "Izrakstīšanas datums", due: "Apmaksas termiņš", customer: "Pircējs", columns: ["Nosaukums", "Daudzums", "Vienības cena", "Summa"], totals: ["Summa bez PVN", "PVN", "Kopsumma"], vat_id: ["PVN reģ. nr.", "LV12345678901"], currency: "EUR", marks: [" ", ","], day: "." },
    Words { language: "et", title: "ARVE", number: "Arve number", date: "Arve kuupäev", due: "Maksetähtaeg", customer: "Ostja", columns: ["Kirjeldus", "Kogus", "Ühiku hind", "Summa"], totals: ["Summa käibemaksuta", "Käibemaks", "Arve summa"], vat_id: ["KMKR", "EE123456789"], currency: "EUR", marks: [" ", ","], day: "." },
    Words { language: "tr", title: "FATURA", number: "Fatura No", date: "Fatura Tarihi", due: "Vade Tarihi", customer: "Sayın", columns: ["Açıklama", "Miktar", "Birim Fiyat", "Tutar"], totals: ["Ara Toplam", "KDV", "Genel Toplam"], vat_id: ["VKN", "1234567890"], currency: "TRY", marks: [".", ","], day: "." },
    Words { language: "cs", title: "FAKTURA", number: "Číslo faktury", date: "Datum vystavení", due: "Datum splatnosti", customer: "Odběratel", columns: ["Popis", "Množství", "Cena za MJ", "Cena celkem"], totals: ["Základ daně", "DPH", "Celkem k úhradě"], vat_id: ["DIČ", "CZ12345678"], currency: "CZK", marks: [" ", ","], day: "." },
    Words { language: "fi", title: "LASKU", number: "Laskun numero", date: "Laskun päiväys", due: "Eräpäivä", customer: "Asiakas", columns: ["Kuvaus", "Määrä", "Yksikköhinta", "Summa"], totals: ["Veroton yhteensä", "ALV", "Loppusumma"], vat_id: ["ALV nro", "FI12345678"], currency: "EUR", marks: [" ", ","], day: "." },
    Words { language: "is", title: "Reikningur", number: "Reikningsnúmer", date: "Útgáfudagur", due: "Eindagi", customer: "Kaupandi", columns: ["Lýsing", "Magn", "Ein.verð", "Upphæð"], totals: ["Samtals án VSK", "VSK", "Til greiðslu"], vat_id: ["VSK nr.", "148227"], currency: "ISK", marks: [".", ","], day: "." },
    Words { language: "uk", title: "Рахунок-фактура", number: "Номер рахунку", date: "Дата рахунку", due: "Оплатити до", customer: "Покупець", columns: ["Найменування", "Кількість", "Ціна", "Сума"], totals: ["Разом без ПДВ", "ПДВ", "Всього до сплати"], vat_id: ["ЄДРПОУ", "30177144"], currency: "UAH", marks: [" ", ","], day: "." },
];

const SUPPLIER: [&str; 3] = ["Alder Metalworks AG", "Mill Road 12", "82216 Northtown"];
const CUSTOMER: [&str; 3] = ["Birch Interiors AG", "Harbour 5", "20457 Southport"];

impl Words {
    /// `cents` as the language writes it.
    fn amount(&self, cents: u32) -> String {
        let (whole, rest) = (cents / 100, cents % 100);
        let [group, mark] = self.marks;
        match whole {
            1000.. => format!("{}{group}{:03}{mark}{rest:02}", whole / 1000, whole % 1000),
            _ => format!("{whole}{mark}{rest:02}"),
        }
    }

    fn written(&self, [year, month, day]: [u32; 3], short: bool) -> String {
        match (self.day, short) {
            ("year", _) => format!("{year}-{month:02}-{day:02}"),
            (mark, true) => format!("{day:02}{mark}{month:02}{mark}{:02}", year % 100),
            (mark, false) => format!("{day:02}{mark}{month:02}{mark}{year}"),
        }
    }

    /// Two lines, the first with a description over two rows; amounts 9825.00 and 491.00.
    fn table(&self, page: &mut Page) {
        let [description, quantity, price, amount] = self.columns;
        page.row(&[(0, description), (30, quantity), (44, price), (66, amount)]);
        let [first, second] = [98_250, 24_550].map(|cents| self.amount(cents));
        let [total, other] = [982_500, 49_100].map(|cents| self.amount(cents));
        page.row(&[(0, "Gate, galvanised"), (32, "10"), (46, &first), (66, &total)]);
        page.row(&[(0, "with two hinges")]);
        page.row(&[(0, "Bracket"), (32, "2"), (46, &second), (66, &other)]);
        page.row(&[]);
    }

    fn totals(&self, page: &mut Page) {
        let [net, vat, gross] = self.totals;
        let [a, b, c] = [1_031_600, 206_320, 1_237_920].map(|cents| self.amount(cents));
        page.row(&[(40, net), (64, &a)]);
        page.row(&[(40, &format!("{vat} 20 %")), (64, &b)]);
        page.row(&[(40, gross), (64, &format!("{c} {}", self.currency))]);
        page.row(&[]);
    }

    fn vat_line(&self) -> String {
        let [label, id] = self.vat_id;
        format!("{label} {id}")
    }
}

const DATE: [u32; 3] = [2024, 3, 15];
const DUE: [u32; 3] = [2024, 4, 14];

/// A page drawn in characters.
#[derive(Default)]
struct Page(String);

impl Page {
    fn row(&mut self, texts: &[(usize, &str)]) {
        let mut line = String::new();
        for (column, text) in texts {
            let length = line.chars().count();
            let gap = column.saturating_sub(length).max(if length > 0 { 3 } else { 0 });
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(text);
        }
        self.0.push_str(&line);
        self.0.push('\n');
    }
}

/// Labels left of their values, in the right half; the supplier in the letterhead.
fn labels_beside(words: &Words) -> String {
    let mut page = Page::default();
    page.row(&[(0, SUPPLIER[0]), (44, words.title)]);
    page.row(&[(0, SUPPLIER[1])]);
    page.row(&[(0, SUPPLIER[2])]);
    page.row(&[(0, &words.vat_line())]);
    page.row(&[]);
    page.row(&[(0, &format!("{}:", words.customer))]);
    let fields = [
        (words.number, "2024-117".to_owned()),
        (words.date, words.written(DATE, false)),
        (words.due, words.written(DUE, false)),
    ];
    for (customer, (label, value)) in CUSTOMER.iter().zip(&fields) {
        page.row(&[(0, customer), (44, &format!("{label}:")), (68, value)]);
    }
    page.row(&[]);
    words.table(&mut page);
    words.totals(&mut page);
    page.0
}

/// Labels above their values in a row; a sender line over the customer; years of two digits.
fn labels_above(words: &Words) -> String {
    let mut page = Page::default();
    page.row(&[(0, &SUPPLIER.join(" - "))]);
    for line in CUSTOMER {
        page.row(&[(0, line)]);
    }
    page.row(&[]);
    page.row(&[(0, words.title)]);
    page.row(&[]);
    page.row(&[(0, words.number), (24, words.date), (50, words.due)]);
    let [date, due] = [DATE, DUE].map(|day| words.written(day, true));
    page.row(&[(0, "2024-117"), (24, &date), (50, &due)]);
    page.row(&[]);
    words.table(&mut page);
    words.totals(&mut page);
    page.row(&[(0, SUPPLIER[0]), (40, &words.vat_line())]);
    page.0
}

/// Everything in running lines with colons; the supplier at the foot, totals in a row of columns.
fn labels_inline(words: &Words) -> String {
    let mut page = Page::default();
    page.row(&[(50, words.title)]);
    page.row(&[]);
    page.row(&[(0, words.customer)]);
    for line in CUSTOMER {
        page.row(&[(0, line)]);
    }
    page.row(&[]);
    let [date, due] = [DATE, DUE].map(|day| words.written(day, false));
    page.row(&[(0, &format!("{}: 2024-117", words.number))]);
    page.row(&[(0, &format!("{}: {date}", words.date))]);
    page.row(&[(0, &format!("{}: {due}", words.due))]);
    page.row(&[]);
    words.table(&mut page);
    let [net, vat, gross] = words.totals;
    page.row(&[(0, net), (26, vat), (46, gross)]);
    let [a, b, c] = [1_031_600, 206_320, 1_237_920].map(|cents| words.amount(cents));
    page.row(&[(0, &a), (26, &b), (46, &format!("{c} {}", words.currency))]);
    for _ in 0..30 {
        page.row(&[]);
    }
    page.row(&[(0, &format!("{} | {} | {}", SUPPLIER[0], SUPPLIER[1], SUPPLIER[2]))]);
    page.row(&[(0, &words.vat_line())]);
    page.0
}

/// The fields that differ from the printed ones.
fn faults(words: &Words, drawing: &str, kinds: &KindSet) -> Vec<String> {
    let transcript = transcript(&[drawing.to_owned()]);
    let kind = kinds.get("invoice").unwrap();
    let mut data = extract_by_rules(&transcript, kind).data;
    // Columns that are not printed are null, which `expected` leaves out.
    let lines = data.get_mut("line_items").and_then(Value::as_array_mut);
    for line in lines.into_iter().flatten().filter_map(Value::as_object_mut) {
        line.retain(|_, value| !value.is_null());
    }
    let [_, id] = words.vat_id;
    let expected = serde_json::json!({
        "supplier_name": SUPPLIER[0], "supplier_address": SUPPLIER[1..].join(", "),
        "supplier_vat_id": id, "invoice_number": "2024-117", "invoice_date": "2024-03-15",
        "due_date": "2024-04-14", "currency": words.currency, "subtotal": 10316,
        "vat_amount": 2063.2, "total": 12379.2, "line_items": [
            {"description": "Gate, galvanised with two hinges", "quantity": 10,
             "unit_price": 982.5, "amount": 9825},
            {"description": "Bracket", "quantity": 2, "unit_price": 245.5, "amount": 491},
        ],
    });
    let mut faults: Vec<String> = expected
        .as_object()
        .unwrap()
        .iter()
        .filter(|(field, value)| data.get(*field) != Some(value))
        .map(|(field, _)| format!("{field}: {}", data.get(field).unwrap_or(&Value::Null)))
        .collect();
    let classified = kinds.classify(&transcript).unwrap();
    if classified.kind.name != "invoice" || classified.doubt.is_some() {
        faults.push(format!("kind: {} {:?}", classified.kind.name, classified.doubt));
    }
    faults
}

#[test]
fn invoices_in_twenty_five_languages_and_three_layouts_are_read_whole() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut wrong = Vec::new();
    for words in &LANGUAGES {
        for (name, layout) in [
            ("beside", labels_beside as fn(&Words) -> String),
            ("above", labels_above),
            ("inline", labels_inline),
        ] {
            let drawing = layout(words);
            let found = faults(words, &drawing, &kinds);
            if !found.is_empty() {
                wrong.push(format!("{} {name}: {}", words.language, found.join("; ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), 3 * LANGUAGES.len(), wrong.join("\n"));
}
