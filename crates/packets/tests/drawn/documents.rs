//! Documents and packets made of the pages of `tests/corpus`, drawn in characters.

use std::path::{Path, PathBuf};

use docmill_core::model::{BoundingBox, PageText, TextLine, TextWord};
use fastrand::Rng;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");
/// Rows of a drawn page of A4.
const ROWS: usize = 70;

/// Terms that go with a document and name nothing.
const TERMS: [&str; 4] = [
    "Terms and conditions\n\n1. Goods remain our property until they are paid for in full.\n2. Claims must be made in writing within eight days.\n3. The courts at our seat have jurisdiction.\n4. Payment is due within thirty days of the invoice.",
    "Allgemeine Geschäftsbedingungen\n\n§ 1 Die Ware bleibt bis zur vollständigen Bezahlung unser Eigentum.\n§ 2 Mängel sind binnen acht Tagen schriftlich anzuzeigen.\n§ 3 Gerichtsstand ist unser Sitz.\n§ 4 Rechnungen sind ohne Abzug zahlbar.",
    "Conditions générales de vente\n\n1. Les marchandises restent notre propriété jusqu'au paiement.\n2. Toute réclamation se fait par écrit sous huit jours.\n3. Le tribunal de notre siège est seul compétent.",
    "Algemene voorwaarden\n\n1. De goederen blijven ons eigendom tot de factuur betaald is.\n2. Klachten schriftelijk binnen acht dagen.\n3. De rechtbank van onze zetel is bevoegd.",
];

/// A document as its pages are drawn.
#[derive(Debug, Clone)]
pub(crate) struct PacketDocument {
    pub(crate) name: String,
    pub(crate) pages: Vec<String>,
    number: Option<String>,
    issuer: String,
    country: String,
}

/// The documents of the corpus.
pub(crate) struct Corpus {
    documents: Vec<PacketDocument>,
}

impl Corpus {
    pub(crate) fn read() -> Self {
        let mut paths: Vec<PathBuf> = Vec::new();
        for folder in std::fs::read_dir(FOLDER).unwrap() {
            let folder = folder.unwrap().path();
            if !folder.ends_with("layouts") {
                paths.extend(std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
            }
        }
        paths.sort();
        Self { documents: paths.iter().map(|path| read_document(path)).collect() }
    }

    /// So many documents one behind the other, some of one issuer, some with papers that go with them.
    pub(crate) fn draw_packet(&self, count: usize, random: &mut Rng) -> Vec<PacketDocument> {
        let mut packet: Vec<PacketDocument> = Vec::new();
        while packet.len() < count {
            let again = packet.last().filter(|_| random.f32() < 0.35).cloned();
            let again = again.and_then(|before| before.following(random));
            let document = match again {
                Some(document) => document,
                None => self.documents[random.usize(..self.documents.len())].clone(),
            };
            packet.push(document.with_company(random));
        }
        packet
    }

    /// Documents of several pages: those of the corpus, and others with papers that go with them.
    pub(crate) fn single_documents(&self, random: &mut Rng) -> Vec<PacketDocument> {
        let mut singles: Vec<PacketDocument> =
            self.documents.iter().filter(|it| it.pages.len() > 1).cloned().collect();
        for document in &self.documents {
            let with = document.clone().with_company(random);
            if with.pages.len() > 1 && document.pages.len() == 1 {
                singles.push(with);
            }
        }
        singles
    }
}

fn read_document(path: &Path) -> PacketDocument {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, body) = text.split_once("---\n").unwrap();
    let value = |key: &str| {
        let parts = head.lines().flat_map(|line| line.split("  "));
        let mut found = parts.filter_map(|part| part.split_once(": "));
        found.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
    };
    PacketDocument {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        pages: body.trim_end_matches('\n').split("\n+++\n").map(str::to_owned).collect(),
        number: value("number"),
        issuer: value("name").unwrap_or_default(),
        country: value("country").unwrap_or_default(),
    }
}

impl PacketDocument {
    /// The next document of the same issuer: another number and another day.
    fn following(&self, random: &mut Rng) -> Option<Self> {
        let number = self.number.as_ref()?;
        let next = other_number(number, random)?;
        let mut document = self.clone();
        let is_printed = document.pages.iter().any(|page| page.contains(number.as_str()));
        if !is_printed {
            return None;
        }
        for page in &mut document.pages {
            *page = page.replace(number.as_str(), &next);
        }
        document.number = Some(next);
        Some(document)
    }

    /// Adds what documents come with: a blank back, terms, a delivery note, more pages of lines.
    fn with_company(mut self, random: &mut Rng) -> Self {
        let chance = random.f32();
        if chance < 0.15 {
            self.pages.push(String::new());
        } else if chance < 0.3 {
            let terms = random.usize(..TERMS.len());
            self.pages.push(TERMS[terms].to_owned());
        } else if chance < 0.4 && self.number.is_some() {
            self.pages.push(self.delivery_note(random));
        } else if chance < 0.5 && self.pages.len() == 1 && self.number.is_some() {
            self.add_lines(random.usize(2..=6), random);
        }
        self
    }

    fn delivery_note(&self, random: &mut Rng) -> String {
        let (title, label) = match self.country.as_str() {
            "de" | "at" | "ch" => ("Lieferschein", "Lieferschein-Nr."),
            "fr" | "lu" => ("Bon de livraison", "Bon n°"),
            "nl" | "be" => ("Leveringsbon", "Bonnummer"),
            _ => ("Delivery note", "Delivery note no."),
        };
        let number = random.u32(10_000..99_999);
        format!(
            "{}\n\n\n{title}\n\n{label}   {number}\n\nQty   Description\n   4   Boxes, large\n  12   Boxes, small\n\n\n\nReceived   ____________",
            self.issuer
        )
    }

    /// Makes it one of several pages: the lines go on, the pages are counted.
    fn add_lines(&mut self, more: usize, random: &mut Rng) {
        let number = self.number.clone().unwrap_or_default();
        let (page, of, title, carried) = match self.country.as_str() {
            "de" | "at" | "ch" => ("Seite", "von", "Rechnung", "Übertrag"),
            "fr" | "lu" => ("Page", "sur", "Facture", "À reporter"),
            "nl" | "be" => ("Pagina", "van", "Factuur", "Over te brengen"),
            "es" => ("Página", "de", "Factura", "Suma y sigue"),
            "it" => ("Pagina", "di", "Fattura", "A riportare"),
            "pl" => ("Strona", "z", "Faktura", "Do przeniesienia"),
            _ => ("Page", "of", "Invoice", "Carried forward"),
        };
        let all = more + 1;
        if let Some(first) = self.pages.first_mut() {
            first.push_str(&format!("\n{:>90}{page} 1 {of} {all}", ""));
        }
        for at in 2..=all {
            let sum = random.u32(100..9_000);
            let mut drawing =
                format!("{}\n{title} {number}{:>60}{page} {at} {of} {all}\n\n", self.issuer, "");
            drawing.push_str(&format!("{carried:<70}{sum},00\n"));
            for row in 0..random.usize(5..30) {
                let amount = random.u32(1..400);
                drawing.push_str(&format!("{row:>4}   Article {:<50}{amount},00\n", row * 7 + at));
            }
            self.pages.push(drawing);
        }
    }
}

/// A number of the same form with other digits at its end.
fn other_number(number: &str, random: &mut Rng) -> Option<String> {
    let (head, tail) = number.split_at(number.rfind(|c: char| c.is_ascii_digit())? + 1);
    let stem = head.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = head.strip_prefix(stem)?;
    let next = digits.parse::<u64>().ok()? + random.u64(1..40);
    Some(format!("{stem}{next:0width$}{tail}", width = digits.len()))
}

/// A page drawn in characters: a column is 5 wide, a row 12 high.
pub(crate) fn page_text(drawing: &str) -> PageText {
    let mut lines = Vec::new();
    for (row, text) in drawing.lines().enumerate() {
        let text = text.replace("  ~", "   ").replace("  *", "   ").replace("  ^", "   ");
        let text = text.strip_prefix(['~', '*', '^']).unwrap_or(&text);
        let mut words: Vec<TextWord> = Vec::new();
        let mut open = false;
        for (column, c) in text.chars().enumerate() {
            if c.is_whitespace() {
                open = false;
                continue;
            }
            if !open {
                let (x, y) = (column as f32 * 5.0, row as f32 * 12.0);
                words.push(TextWord {
                    text: String::new().into(),
                    bounding_box: BoundingBox { x, y, w: 0.0, h: 10.0 },
                    confidence: 1.0,
                    unwitnessed: false,
                });
                open = true;
            }
            let word = words.last_mut().unwrap();
            word.text.push(c);
            word.bounding_box.w += 5.0;
        }
        if !words.is_empty() {
            lines.push(TextLine { words });
        }
    }
    let height = (drawing.lines().count().max(ROWS) * 12) as f32;
    PageText::from_native(1, (600.0, height), 1.0, lines)
}

/// Misreads a page as OCR does: letters for others, words left out.
pub(crate) fn misread(page: &mut PageText, random: &mut Rng) {
    const LOOKALIKES: [(char, char); 10] = [
        ('O', '0'),
        ('0', 'O'),
        ('1', 'l'),
        ('l', '1'),
        ('5', 'S'),
        ('8', 'B'),
        ('e', 'c'),
        ('n', 'm'),
        ('i', 'l'),
        ('t', 'f'),
    ];
    for line in &mut page.lines {
        if line.words.len() > 1 {
            line.words.retain(|_| random.f32() >= 0.02);
        }
        for word in &mut line.words {
            if random.f32() >= 0.04 {
                continue;
            }
            let (from, to) = LOOKALIKES[random.usize(..LOOKALIKES.len())];
            word.text = word.text.replacen(from, &to.to_string(), 1).into();
        }
    }
    page.lines.retain(|line| !line.words.is_empty());
}
