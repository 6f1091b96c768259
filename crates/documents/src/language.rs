//! The language of a text, by its commonest words.
//!
//! Function words of running text, and the usual words of forms, invoices and receipts, each
//! without its accents: OCR that does not know the language yet loses those first. A word of
//! several languages counts for each of them in part. Distinguishes the languages of [`PROFILES`]
//! only.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

use docmill_core::model::TextLine;

/// Words of a language. `rechnung*` matches every word that begins so.
struct LanguageProfile {
    language: &'static str,
    words: &'static [&'static str],
}

#[rustfmt::skip]
const PROFILES: [LanguageProfile; 14] = [
    LanguageProfile { language: "eng", words: &[
        "the", "of", "and", "to", "is", "was", "for", "on", "with", "that", "this", "your", "you", "we", "our",
        "from", "by", "are", "be", "have", "has", "not", "at", "it", "which", "please", "thank*", "will", "if",
        "invoice", "invoices", "amount", "due", "date", "tax", "bill", "ship*", "description", "quantity",
        "price", "unit", "payment", "payable", "order", "customer", "address", "street", "road", "phone",
        "subtotal", "total", "number", "terms", "bank", "account", "receipt", "cash", "change", "item",
        "items", "discount", "page", "balance", "company", "sales", "paid",
    ] },
    LanguageProfile { language: "deu", words: &[
        "der", "die", "das", "und", "ist", "von", "mit", "fur", "fiir", "auf", "den", "dem", "des", "ein",
        "eine", "einen", "einer", "nicht", "wir", "sie", "ihre", "ihr", "ihnen", "bei", "bitte", "zu", "zum",
        "zur", "nach", "aus", "auch", "oder", "sich", "werden", "wird", "als", "im", "vom", "uber", "unter",
        "rechnung*", "betrag*", "datum", "menge", "preis", "einzelpreis", "gesamt*", "summe", "mwst", "ust",
        "umsatzsteuer*", "steuernummer", "kunde*", "lieferung*", "lieferdatum", "liefer*", "zahlung*", "zahlbar",
        "konto*", "bank*", "geschaftsfuhrer*", "stk", "stuck", "tage", "tagen", "seite", "telefon", "strasse",
        "bezeichnung", "artikel*", "netto", "brutto", "gmbh", "leistung*", "bestell*", "zzgl", "vielen", "dank",
        "registergericht", "amtsgericht", "finanzamt", "empfanger", "falligkeit*", "positionen", "beschreibung",
    ] },
    LanguageProfile { language: "fra", words: &[
        "le", "la", "les", "des", "du", "et", "est", "une", "un", "pour", "dans", "avec", "sur", "par", "pas",
        "que", "qui", "au", "aux", "ce", "cette", "nous", "vous", "votre", "vos", "notre", "nos", "ou", "sont",
        "facture", "factures", "montant", "quantite", "qte", "prix", "unitaire", "ht", "ttc", "tva", "client",
        "adresse", "rue", "date", "echeance", "paiement", "reglement", "virement", "livraison", "commande",
        "designation", "reference", "numero", "total", "remise", "siret", "siren", "rcs", "capital", "banque",
        "societe", "merci", "net", "payer", "code", "frais", "penalite*", "retard", "tel", "cedex", "sarl",
    ] },
    LanguageProfile { language: "nld", words: &[
        "de", "het", "een", "van", "en", "is", "op", "te", "dat", "voor", "met", "zijn", "niet", "aan", "er",
        "om", "ook", "als", "dan", "bij", "naar", "wij", "uw", "onze", "deze", "door", "over", "wordt", "worden",
        "factuur*", "bedrag", "datum", "aantal", "prijs", "btw", "omschrijving", "klant*", "betaling*",
        "betalen", "rekening*", "totaal", "subtotaal", "excl", "incl", "kvk", "vervaldatum", "straat", "bank",
        "levering", "bestelling", "nummer", "ons", "graag", "binnen", "dagen", "bankrekening", "telefoon",
    ] },
    LanguageProfile { language: "spa", words: &[
        "el", "la", "los", "las", "de", "del", "y", "que", "en", "es", "por", "para", "con", "una", "un", "su",
        "se", "al", "como", "mas", "este", "esta", "sus", "no", "lo", "nuestro", "sin", "sobre",
        "factura", "fecha", "importe", "cantidad", "precio", "unidad*", "total", "iva", "cliente", "calle",
        "direccion", "pago", "vencimiento", "descripcion", "concepto", "base", "imponible", "nif", "cif",
        "numero", "cuenta", "banco", "pedido", "telefono", "transferencia", "gracias", "forma", "albaran",
    ] },
    LanguageProfile { language: "ita", words: &[
        "il", "la", "lo", "gli", "le", "di", "del", "della", "dei", "delle", "che", "per", "con", "una", "un",
        "non", "sono", "da", "dal", "al", "alla", "nel", "si", "come", "ed", "questo", "vostra", "nostro",
        "fattura", "data", "importo", "quantita", "prezzo", "totale", "iva", "cliente", "indirizzo", "via",
        "pagamento", "scadenza", "descrizione", "imponibile", "partita", "codice", "fiscale", "banca",
        "numero", "ordine", "bonifico", "spese", "sede", "sconto", "grazie",
    ] },
    LanguageProfile { language: "por", words: &[
        "o", "os", "as", "do", "da", "dos", "das", "de", "e", "que", "em", "um", "uma", "para", "com", "nao",
        "por", "se", "na", "no", "ao", "mais", "como", "sua", "seu", "pelo", "pela",
        "fatura", "data", "valor", "quantidade", "preco", "total", "iva", "cliente", "rua", "pagamento",
        "vencimento", "descricao", "nif", "numero", "conta", "banco", "encomenda", "morada", "obrigado",
    ] },
    LanguageProfile { language: "nor", words: &[
        "og", "til", "av", "pa", "med", "er", "det", "som", "ikke", "vi", "fra", "har", "den", "deres", "var",
        "faktura*", "fakturanummer", "fakturadato", "forfall*", "forfallsdato", "belop", "antall", "pris",
        "enhetspris", "beskrivelse", "kunde*", "betaling*", "betales", "mva", "sum", "totalt", "dato", "gate",
        "konto*", "kontonummer", "bank", "levering*", "levert", "bestilling", "telefon", "rabatt", "vare",
        "varer", "eks", "inkl", "netto", "ordre*", "rente", "kjop*", "kvittering", "foretaksregisteret", "org",
    ] },
    LanguageProfile { language: "dan", words: &[
        "og", "til", "af", "pa", "med", "er", "det", "som", "ikke", "vi", "fra", "har", "den", "deres", "vores",
        "faktura*", "fakturanr", "fakturadato", "forfald*", "forfaldsdato", "belob", "antal", "pris",
        "stykpris", "enhedspris", "beskrivelse", "kunde*", "betaling*", "betales", "moms*", "sum", "dato",
        "konto*", "bank", "levering*", "leveret", "bestilling", "telefon", "rabat", "vare*", "varenr", "ekskl",
        "inkl", "netto", "ordre*", "kvittering", "cvr", "reg", "gade", "vej", "stk", "total", "at", "betale",
    ] },
    LanguageProfile { language: "swe", words: &[
        "och", "till", "av", "pa", "med", "ar", "det", "som", "inte", "vi", "fran", "har", "den", "er", "var",
        "faktura*", "fakturanummer", "fakturadatum", "forfallodatum", "forfallodag", "belopp", "antal", "pris",
        "apris", "beskrivning", "benamning", "kund*", "betalning*", "betala", "moms*", "summa", "datum",
        "konto", "bankgiro", "plusgiro", "leverans*", "order*", "telefon", "rabatt", "artikel*", "exkl", "inkl",
        "netto", "orgnr", "organisationsnummer", "kvitto", "gatan", "for", "att", "oresavrundning", "adress",
    ] },
    LanguageProfile { language: "fin", words: &[
        "ja", "on", "ei", "se", "etta", "tai", "mukaan", "seka", "kanssa", "lasku*", "laskun", "laskunumero",
        "paivamaara", "erapaiva", "summa", "maara", "hinta", "yksikkohinta", "kuvaus", "asiakas*", "maksu*",
        "maksettava", "alv", "yhteensa", "viite*", "viitenumero", "tili*", "tilinumero", "toimitus*", "tilaus*",
        "puhelin", "alennus", "tuote*", "veroton", "verollinen", "kpl", "tunnus", "saaja", "katu", "osoite",
    ] },
    LanguageProfile { language: "hrv", words: &[
        "je", "na", "za", "od", "sa", "se", "iz", "po", "da", "su", "koji", "nije", "te", "ili", "kod",
        "racun*", "racuna", "broj", "datum", "dospijec*", "iznos", "kolicina", "kol", "cijena", "opis",
        "kupac", "prodavatelj", "placanje*", "pdv", "oib", "ukupno", "osnovica", "adresa", "ulica", "banka",
        "ziro", "isporuk*", "narudzb*", "telefon", "popust", "stavka", "jed", "mjere", "hvala", "dokument*",
        "opskrb*", "valuta", "racunom", "porez*",
    ] },
    LanguageProfile { language: "pol", words: &[
        "w", "i", "na", "z", "do", "nie", "od", "jest", "za", "przez", "oraz", "dla", "ze", "sie", "po",
        "faktura", "faktury", "numer", "nr", "data", "termin*", "kwota", "ilosc", "cena", "wartosc", "opis",
        "nazwa", "nabywca", "sprzedawca", "platnosc*", "platnosci", "zaplaty", "przelew*", "vat", "nip",
        "razem", "suma", "ulica", "ul", "bank", "konto", "konta", "dostawa*", "zamowieni*", "telefon", "rabat",
        "netto", "brutto", "szt", "stawka", "slownie", "wystawienia", "sprzedazy", "regon",
    ] },
    LanguageProfile { language: "ces", words: &[
        "je", "na", "za", "od", "se", "ze", "po", "pro", "do", "jsou", "neni", "nebo", "podle", "dle", "pri",
        "faktura", "faktury", "cislo", "datum", "splatnost*", "splatnosti", "castka", "mnozstvi", "cena",
        "popis", "odberatel", "dodavatel", "platba*", "uhrad*", "dph", "ico", "dic", "celkem", "zaklad",
        "ulice", "banka", "ucet", "uctu", "dodani", "objednav*", "telefon", "sleva", "ks", "sazba", "danovy",
        "doklad", "vystaveni", "zdanitelneho", "plneni", "symbol", "variabilni", "prevodem",
    ] },
];

/// Languages, a bit for each of [`PROFILES`].
type LanguageSet = u16;

/// The languages of each word: every word of every page is looked for.
struct WordIndex {
    whole: HashMap<&'static str, LanguageSet>,
    beginnings: Vec<(&'static str, LanguageSet)>,
}

static WORDS: LazyLock<WordIndex> = LazyLock::new(|| {
    let (mut whole, mut beginnings) = (HashMap::new(), HashMap::new());
    for (at, profile) in PROFILES.iter().enumerate() {
        for word in profile.words {
            let languages = match word.strip_suffix('*') {
                Some(beginning) => beginnings.entry(beginning).or_default(),
                None => whole.entry(*word).or_default(),
            };
            *languages |= 1 << at;
        }
    }
    WordIndex { whole, beginnings: beginnings.into_iter().collect() }
});

impl WordIndex {
    fn languages_of(&self, word: &str) -> LanguageSet {
        let whole = self.whole.get(word).copied().unwrap_or_default();
        let begun = self.beginnings.iter().filter(|(beginning, _)| word.starts_with(beginning));
        begun.fold(whole, |all, (_, languages)| all | languages)
    }
}

/// A word or two may be a name.
const MIN_POINTS: f32 = 3.0;
/// How many times the points of the next language the first must have.
const LEAD: f32 = 1.25;

/// Evidence of a text's language.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LanguageEvidence {
    points: [f32; PROFILES.len()],
}

impl LanguageEvidence {
    /// Of the words of these lines.
    pub(crate) fn from_lines<'a>(lines: impl IntoIterator<Item = &'a TextLine>) -> Self {
        let mut points = [0.0; PROFILES.len()];
        for word in lines.into_iter().flat_map(|line| &line.words) {
            let languages = WORDS.languages_of(&fold_word(&word.text));
            let share = 1.0 / f32::from(u8::try_from(languages.count_ones()).unwrap_or(u8::MAX));
            for (at, points) in points.iter_mut().enumerate() {
                if languages >> at & 1 == 1 {
                    *points += share;
                }
            }
        }
        Self { points }
    }

    /// The language that leads clearly among `among`.
    pub(crate) fn leading_language(&self, among: &[String]) -> Option<&'static str> {
        let mut known: Vec<(f32, &'static str)> = PROFILES
            .iter()
            .zip(self.points)
            .filter(|(profile, _)| among.iter().any(|language| language == profile.language))
            .map(|(profile, points)| (points, profile.language))
            .collect();
        known.sort_by(|one, other| other.0.total_cmp(&one.0));
        let (points, language) = known.first()?;
        let next = known.get(1).map_or(0.0, |next| next.0);
        (*points >= MIN_POINTS && *points >= LEAD * next).then_some(*language)
    }

    /// Points of the most likely language, whichever it is.
    pub(crate) fn strength(&self) -> f32 {
        self.points.iter().copied().fold(0.0, f32::max)
    }
}

/// Whether the words of `language` are known here.
pub(crate) fn is_known_language(language: &str) -> bool {
    PROFILES.iter().any(|profile| profile.language == language)
}

/// Lower case without accents, and without anything but letters at either end.
fn fold_word(word: &str) -> String {
    let word = word.trim_matches(|c: char| !c.is_alphabetic());
    let plain = word.nfd().filter(|c| !unicode_normalization::char::is_combining_mark(*c));
    let lower = plain.flat_map(char::to_lowercase);
    // These do not come apart into a letter and an accent.
    lower.fold(String::new(), |mut folded, c| {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' => folded.push('d'),
            other => folded.push(other),
        }
        folded
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{BoundingBox, TextWord};

    fn text(text: &str) -> Vec<TextLine> {
        let bounding_box = BoundingBox::default();
        let word = |text: &str| TextWord {
            text: text.into(),
            bounding_box,
            confidence: 1.0,
            unwitnessed: false,
        };
        vec![TextLine { words: text.split_whitespace().map(word).collect() }]
    }

    #[test]
    fn the_language_is_detected_from_a_few_lines() {
        let installed: Vec<String> = ["deu", "eng", "fra", "nld", "spa"].map(str::to_owned).into();
        #[rustfmt::skip]
        let table = [
            ("Invoice date: 3 May, amount due 120.00, thank you for your order", Some("eng")),
            ("Rechnungsdatum 03.05. Bitte überweisen Sie den Betrag auf das Konto", Some("deu")),
            ("Facture du 3 mai, montant à payer TTC, merci de votre commande", Some("fra")),
            ("Factuurdatum 3 mei, het bedrag graag binnen 14 dagen betalen aan", Some("nld")),
            ("Fecha de la factura 3 mayo, importe total con IVA, forma de pago", Some("spa")),
            ("Fattura del 3 maggio, importo totale, partita IVA, scadenza", None),
            ("Fakturadato 3. mai, forfallsdato 17. mai, beløp og mva, antall",  None),
            ("ACME 4711 120.00 EUR Total", None),
            ("", None),
        ];
        for (words, expected) in table {
            assert_eq!(
                LanguageEvidence::from_lines(&text(words)).leading_language(&installed),
                expected,
                "{words}"
            );
        }
    }

    #[test]
    fn neighbouring_languages_are_distinguished_where_both_are_installed() {
        let installed: Vec<String> =
            PROFILES.iter().map(|profile| profile.language.to_owned()).collect();
        #[rustfmt::skip]
        let table = [
            ("Fakturanummer Fakturadato Forfallsdato Beskrivelse Antall Enhetspris Beløp", "nor"),
            ("Fakturanr Fakturadato Forfaldsdato Beskrivelse Antal Stykpris Beløb Moms",   "dan"),
            ("Faktura Förfallodatum Beskrivning Antal Belopp Moms Summa till och",         "swe"),
            ("Račun Broj računa Datum dospijeća Opis Kol Cijena Iznos Osnovica Ukupno",    "hrv"),
            ("Faktura Sprzedawca Nabywca Ilość Cena Wartość netto brutto Razem Termin",    "pol"),
            ("Faktura Dodavatel Odběratel Množství Cena Celkem Splatnost Variabilní",      "ces"),
            ("Lasku Eräpäivä Määrä Hinta Yhteensä Viitenumero Tilinumero",                 "fin"),
        ];
        for (words, expected) in table {
            assert_eq!(
                LanguageEvidence::from_lines(&text(words)).leading_language(&installed),
                Some(expected),
                "{words}"
            );
        }
    }

    #[test]
    fn words_that_lose_their_accents_in_the_first_reading_still_count() {
        let read_as_english = text("Rechnung fiir Ihre Lieferung, Empfanger, Falligkeit, Stuck");
        let installed = ["eng".to_owned(), "deu".to_owned()];
        assert_eq!(
            LanguageEvidence::from_lines(&read_as_english).leading_language(&installed),
            Some("deu")
        );
    }
}
