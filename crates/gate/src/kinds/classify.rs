//! Which kind a document is of, from the words of its first pages: no model, microseconds.
//!
//! Every kind's signals add up to a score. The best one wins if it is high enough and the next one
//! is clearly below; a doubt is reported, not decided silently. A tie may be decided by one
//! call of a model, which is not made here.

use std::collections::HashMap;
use std::sync::Arc;

use super::{GENERIC, Kind, KindSet, SignalArea, SignalPhrase};
use crate::kinds::KindSignal;
use docmill_core::model::{BoundingBox, PageText, TextLine, Transcript};
use docmill_formats::notation::fold_text;
use docmill_formats::notation::number::{self, FoundNumber};

/// A kind needs this score.
const MIN_SCORE: f64 = 2.0;

/// The next kind has to be this far below.
const MARGIN: f64 = 1.0;

/// Number of first pages that are examined.
const PAGES: usize = 2;

/// Share of the first page's height that headings and titles lie in.
const UPPER: f32 = 0.6;

/// Most folded words of a text that begins with a title.
const MAX_TITLE: usize = 14;

/// Texts on one line that make a strip of labels: titles are alone, or beside one other text.
const STRIP: usize = 3;

/// A title is larger than the text under it by this factor.
const LARGER: f32 = 1.25;

/// Share of the first page's height above which a heading heads the document, and below which another one may head
/// what is printed under it: a statement of account under an invoice.
const HEAD: f32 = 0.25;
const UNDER: f32 = 0.3;

/// Share of a page's height in which a title heads it.
const TITLE_DEPTH: f32 = 0.5;

/// Words at the start of a letter's subject line: `Oggetto: fattura n. 27`. The title follows them.
const SUBJECTS: [&str; 23] = [
    "aihe",
    "arende",
    "asia",
    "asunto",
    "assunto",
    "betreff",
    "betrifft",
    "betr",
    "betreft",
    "concerne",
    "dotyczy",
    "emne",
    "objet",
    "oggetto",
    "onderwerp",
    "predmet",
    "re",
    "regarding",
    "subject",
    "targy",
    "vec",
    "tema",
    "zadeva",
];

/// A gap of so many line heights ends a text.
const GAP: f32 = 1.2;

/// Why the kind is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindAmbiguity {
    /// No kind's signals are strong enough.
    Unknown,
    /// Two kinds' signals are about as strong.
    Tie,
    /// The pages are clearly of another kind than the e-invoice in the document.
    OtherPages,
}

impl KindAmbiguity {
    /// The reason a person sees.
    pub fn review_reason(self) -> &'static str {
        match self {
            Self::Unknown => "kind_unknown",
            Self::Tie => "kind_uncertain",
            Self::OtherPages => "einvoice_contradicts_page",
        }
    }

    /// The field under which the reason stands, if it is one of several of its name.
    pub fn review_field(self) -> Option<&'static str> {
        matches!(self, Self::OtherPages).then_some("kind")
    }
}

/// A kind, and how sure that is.
#[derive(Debug, Clone)]
pub struct ClassifiedKind {
    /// The best kind; [`GENERIC`] if none is good enough.
    pub kind: Arc<Kind>,
    /// None: it is clear.
    pub doubt: Option<KindAmbiguity>,
    /// The kinds that tie with it, best first; none unless the doubt is a tie.
    pub rivals: Vec<Arc<Kind>>,
}

impl ClassifiedKind {
    /// A kind beyond doubt.
    pub fn certain(kind: Arc<Kind>) -> Self {
        Self { kind, doubt: None, rivals: Vec::new() }
    }
}

impl KindSet {
    /// The kind of a document; none if no kind fits and there is no generic one.
    pub fn classify(&self, transcript: &Transcript) -> Option<ClassifiedKind> {
        let mut seen = FirstPagesText::from_pages(transcript.pages.iter().take(PAGES));
        let first = seen.mark_texts_under_amounts(self.kinds.iter().map(Arc::as_ref));
        let near = self.best_kinds(&seen, TitleArea::AboveAmounts);
        // A title below the amounts is not decisive, but may raise a doubt.
        let low = first.map_or(TitleArea::AboveAmounts, FirstTitle::area_of_rivals);
        let near_with_low = self.best_kinds(&seen, low);
        let (Some(kind), false) = (near.first(), near_with_low.is_empty()) else {
            return self.generic_kind();
        };
        let mut rivals: Vec<Arc<Kind>> = Vec::new();
        for other in near.iter().chain(&near_with_low).filter(|other| other.name != kind.name) {
            if rivals.iter().all(|one| one.name != other.name) {
                rivals.push(Arc::clone(other));
            }
        }
        // Labels may outweigh a title, and an offer may have every label of an invoice.
        let denied = transcript.pages.first().is_some_and(|page| kind.is_denied_by_title(page));
        let doubt = (denied || !rivals.is_empty()).then_some(KindAmbiguity::Tie);
        Some(ClassifiedKind { kind: Arc::clone(kind), doubt, rivals })
    }

    /// The kind with the best sufficient score, and kinds with close scores, best first.
    fn best_kinds(&self, seen: &FirstPagesText, area: TitleArea) -> Vec<Arc<Kind>> {
        let scores = self.kinds.iter().map(|kind| (seen.score_kind(kind, area), kind));
        let mut scores: Vec<(f64, &Arc<Kind>)> = scores.collect();
        scores.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let best = scores.first().map(|(best, _)| *best).filter(|best| *best >= MIN_SCORE);
        let Some(best) = best else { return Vec::new() };
        let near = scores.iter().take_while(|(score, _)| best - score < MARGIN);
        near.map(|(_, kind)| Arc::clone(kind)).collect()
    }

    /// The generic kind, which leaves the document to a person; none if there is none.
    pub fn generic_kind(&self) -> Option<ClassifiedKind> {
        let kind = Arc::clone(self.get(GENERIC)?);
        Some(ClassifiedKind { kind, doubt: Some(KindAmbiguity::Unknown), rivals: Vec::new() })
    }
}

/// Titles at the head of a page.
#[derive(Debug, Clone, Default)]
pub struct PageTitles {
    /// The kind with the weightiest title there.
    pub kind: Option<Arc<Kind>>,
    /// A title that speaks against a kind: of a delivery note, an order, a reminder.
    pub excluded: bool,
}

impl KindSet {
    /// The titles in the upper half of a page, read as a document of its own.
    pub fn find_titles(&self, page: &PageText) -> PageTitles {
        let mut seen = FirstPagesText::from_pages([page].into_iter());
        seen.mark_texts_under_amounts(self.kinds.iter().map(Arc::as_ref));
        let scope = TitleScope { lowest: TITLE_DEPTH, area: TitleArea::AboveAmounts };
        let mut titles = PageTitles::default();
        let mut heaviest = 0.0;
        for kind in &self.kinds {
            for signal in kind.signals.iter().filter(|it| it.place != SignalArea::Anywhere) {
                if !seen.shows_signal(signal, scope) {
                    continue;
                }
                titles.excluded |= signal.weight < 0.0;
                if signal.weight > heaviest {
                    heaviest = signal.weight;
                    titles.kind = Some(Arc::clone(kind));
                }
            }
        }
        titles
    }
}

impl Kind {
    /// Whether a title excludes the kind (a reminder, an offer) and no other title supports it.
    pub fn is_denied_by_title(&self, page: &PageText) -> bool {
        let mut seen = FirstPagesText::from_pages([page].into_iter());
        seen.mark_texts_under_amounts(std::iter::once(self));
        let against: Vec<&FoldedText> = seen.titles_of(self, true).collect();
        let mut own = seen.titles_of(self, false).filter(|text| !text.label);
        !against.is_empty() && own.all(|text| against.iter().any(|it| std::ptr::eq(*it, text)))
    }
}

/// The texts of the first pages, folded.
#[derive(Default)]
struct FirstPagesText {
    texts: Vec<FoldedText>,
    /// The places of each word, by text and position in it: kinds have a thousand phrases, a page few words.
    places: HashMap<String, Vec<(usize, usize)>>,
    /// Upper and lower edges of the amounts on the first page.
    amounts: Vec<(f32, f32)>,
}

/// Areas of titles, relative to the amounts below the first title of a page. Each includes those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TitleArea {
    /// Above the amounts.
    AboveAmounts,
    /// Headings without further text, in a row without an amount.
    LoneHeadings,
    /// Other texts in a row without an amount: a sentence at the foot.
    FreeRows,
    /// Texts beside an amount: rows of the table.
    AmountRows,
}

/// Which texts are titles.
#[derive(Debug, Clone, Copy)]
struct TitleScope {
    /// Lowest position of a title, as a share of the page height.
    lowest: f32,
    area: TitleArea,
}

/// The uppermost title of the first page.
struct FirstTitle {
    middle: f32,
    /// Whether it is a heading rather than the beginning of a text.
    heading: bool,
}

impl FirstTitle {
    /// The area of texts that may be titles besides this one: below a heading, a sentence is not.
    fn area_of_rivals(self) -> TitleArea {
        if self.heading { TitleArea::LoneHeadings } else { TitleArea::FreeRows }
    }
}

/// One text: words that no wide gap parts.
struct FoldedText {
    words: Vec<String>,
    /// A short one in the upper part of the first page.
    upper: bool,
    /// It names the value beside it: `Order: 17` on an invoice makes no order of it.
    label: bool,
    /// Its place, as a share of its page's height.
    depth: f32,
    /// The middle of its line.
    middle: f32,
    area: TitleArea,
    /// Words before its title: those that open a subject line.
    subject: usize,
}

impl FirstPagesText {
    fn from_pages<'p>(pages: impl Iterator<Item = &'p PageText>) -> Self {
        let mut seen = Self::default();
        for (index, page) in pages.enumerate() {
            for (at, line) in page.lines.iter().enumerate() {
                let bounds = line.bounding_box();
                let (depth, middle) = (bounds.y / page.height.max(1.0), bounds.y + bounds.h / 2.0);
                if index == 0 {
                    seen.amounts.extend(prints_amount(line).then(|| (bounds.y, bounds.bottom())));
                }
                let upper = index == 0 && depth <= UPPER;
                let above = at.checked_sub(1).and_then(|at| page.lines.get(at));
                for (text, label) in split_texts(line, above, page.lines.get(at + 1)) {
                    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                    let upper = upper && words.len() <= MAX_TITLE;
                    let subject = usize::from(words.len() > 1 && begins_subject(&text));
                    seen.add_text(FoldedText {
                        words,
                        upper,
                        label,
                        depth,
                        middle,
                        area: TitleArea::AboveAmounts,
                        subject,
                    });
                }
            }
        }
        seen
    }

    fn add_text(&mut self, text: FoldedText) {
        for (place, word) in text.words.iter().enumerate() {
            self.places.entry(word.clone()).or_default().push((self.texts.len(), place));
        }
        self.texts.push(text);
    }

    /// Marks the texts from the first amount under the first title on; that title, if there is one.
    fn mark_texts_under_amounts<'k>(
        &mut self,
        kinds: impl Iterator<Item = &'k Kind>,
    ) -> Option<FirstTitle> {
        let first = self.find_first_title(kinds)?;
        let tops = self.amounts.iter().map(|(top, _)| *top).filter(|top| *top > first.middle);
        let limit = tops.reduce(f32::min).unwrap_or(f32::MAX);
        for text in self.texts.iter_mut().filter(|text| text.upper && text.middle >= limit) {
            let mut amounts = self.amounts.iter();
            let beside = amounts.any(|(top, bottom)| (*top..=*bottom).contains(&text.middle));
            text.area = if beside { TitleArea::AmountRows } else { TitleArea::FreeRows };
        }
        Some(first)
    }

    /// The uppermost text that is a title for or against any kind.
    fn find_first_title<'k>(&self, kinds: impl Iterator<Item = &'k Kind>) -> Option<FirstTitle> {
        let scope = TitleScope { lowest: f32::MAX, area: TitleArea::AmountRows };
        let signals = kinds.flat_map(|kind| &kind.signals);
        let titles = signals.filter(|signal| signal.place != SignalArea::Anywhere);
        let found = titles.flat_map(|signal| {
            let heading = signal.place == SignalArea::Heading;
            let phrases = signal.phrases.iter();
            let texts = phrases.flat_map(move |it| self.texts_with(it, signal.place, scope));
            texts.map(move |text| FirstTitle { middle: text.middle, heading })
        });
        found.min_by(|a, b| a.middle.total_cmp(&b.middle).then(b.heading.cmp(&a.heading)))
    }

    fn score_kind(&self, kind: &Kind, area: TitleArea) -> f64 {
        // A heading at the top of the page decides, whatever is printed below it.
        let head = TitleScope { lowest: HEAD, area };
        let headed = self.shows_own_title(kind, SignalArea::Heading, head);
        let above = TitleScope { lowest: f32::MAX, area: TitleArea::AboveAmounts };
        let areas = [SignalArea::Heading, SignalArea::Title];
        let titled = areas.into_iter().any(|place| self.shows_own_title(kind, place, above));
        let found = kind.signals.iter().filter(|signal| {
            let against = signal.weight < 0.0;
            let lowest = if headed && against && signal.place != SignalArea::Anywhere {
                UNDER
            } else {
                f32::MAX
            };
            // No text below the amounts replaces the title above them.
            let area = if titled == against { area } else { TitleArea::AmountRows };
            self.shows_signal(signal, TitleScope { lowest, area })
        });
        found.map(|signal| signal.weight).sum()
    }

    fn shows_own_title(&self, kind: &Kind, area: SignalArea, scope: TitleScope) -> bool {
        let mut signals = kind.signals.iter().filter(|it| it.weight > 0.0 && it.place == area);
        signals.any(|it| self.shows_signal(it, scope))
    }

    /// The texts in the upper half that are titles for or against a kind.
    fn titles_of<'s>(
        &'s self,
        kind: &'s Kind,
        against: bool,
    ) -> impl Iterator<Item = &'s FoldedText> {
        let scope = TitleScope { lowest: TITLE_DEPTH, area: TitleArea::AboveAmounts };
        let signals = kind.signals.iter().filter(move |signal| {
            signal.place != SignalArea::Anywhere && (signal.weight < 0.0) == against
        });
        signals.flat_map(move |signal| {
            let phrases = signal.phrases.iter();
            phrases.flat_map(move |it| self.texts_with(it, signal.place, scope))
        })
    }

    /// Whether a phrase of the signal occurs in its required area.
    fn shows_signal(&self, signal: &KindSignal, scope: TitleScope) -> bool {
        let mut phrases = signal.phrases.iter();
        phrases.any(|it| self.texts_with(it, signal.place, scope).next().is_some())
    }

    /// The texts in an area of the pages that hold a phrase.
    fn texts_with<'s>(
        &'s self,
        phrase: &'s SignalPhrase,
        area: SignalArea,
        scope: TitleScope,
    ) -> impl Iterator<Item = &'s FoldedText> {
        let first = phrase.words.first();
        let whole = first.filter(|_| !phrase.ending).and_then(|first| self.places.get(first));
        let endings = first
            .filter(|_| phrase.ending)
            .into_iter()
            .flat_map(|first| self.places.iter().filter(move |(word, _)| word.ends_with(first)));
        let places = whole.into_iter().chain(endings.map(|(_, places)| places)).flatten();
        places.filter_map(move |(text, place)| {
            let text = self.texts.get(*text)?;
            text.holds_phrase(*place, phrase, area, scope).then_some(text)
        })
    }
}

impl FoldedText {
    /// Whether a phrase begins at this word, and the text is in the area.
    fn holds_phrase(
        &self,
        place: usize,
        phrase: &SignalPhrase,
        area: SignalArea,
        scope: TitleScope,
    ) -> bool {
        let alone = !self.label && self.words.len() == phrase.words.len();
        let is_lone = alone && self.area == TitleArea::FreeRows;
        let own_area = if is_lone { TitleArea::LoneHeadings } else { self.area };
        let begins = self.upper && own_area <= scope.area && (place == 0 || place == self.subject);
        let fits = match area {
            SignalArea::Anywhere => true,
            SignalArea::Title => begins,
            SignalArea::Heading => begins && alone,
        };
        let rest = phrase.words.get(1..).unwrap_or_default();
        fits && self.depth <= scope.lowest
            && self.words.get(place + 1..).is_some_and(|after| after.starts_with(rest))
    }
}

/// Whether a line holds an amount of money.
fn prints_amount(line: &TextLine) -> bool {
    let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
    number::find_numbers(&words, None).iter().any(FoundNumber::is_money)
}

/// Whether a folded text begins like the subject line of a letter, `Oggetto: fattura n. 27`.
#[must_use]
pub fn begins_subject(folded: &str) -> bool {
    folded.split(' ').next().is_some_and(|first| SUBJECTS.contains(&first))
}

/// The texts of a line, parted where the gap is wide, and whether each is a label of something: a
/// colon follows, it is one of several in a strip of labels, a number is right under it, or one beside
/// it in a list of such. Letters set apart are joined.
fn split_texts(
    line: &TextLine,
    above: Option<&TextLine>,
    below: Option<&TextLine>,
) -> Vec<(String, bool)> {
    let mut texts: Vec<(String, BoundingBox)> = Vec::new();
    let mut right = f32::MIN;
    for word in &line.words {
        let area = word.bounding_box;
        match texts.last_mut().filter(|_| area.x - right <= GAP * area.h) {
            Some((text, all)) => {
                text.push(' ');
                text.push_str(&word.text);
                *all = all.union(area);
            }
            None => texts.push((word.text.to_string(), area)),
        }
        right = area.right();
    }
    let pairs = texts.windows(2).filter(|pair| pair.first().is_some_and(|it| it.0.ends_with(':')));
    // `Invoice Number: 17`: a text beside labels with values may be the title.
    let one_beside_pairs = texts.len() == 2 * pairs.count() + 1;
    let strip = texts.len() >= STRIP;
    let folded = texts.iter().enumerate().flat_map(|(at, (text, area))| {
        let next = texts.get(at + 1).is_some_and(|(next, _)| next.trim_start().starts_with(':'));
        let label = next
            || text.ends_with(':')
            || strip && !(one_beside_pairs && at == 0)
            || has_number_below(*area, below)
            || texts.get(at + 1).is_some_and(|value| goes_on_list(*area, value, above));
        let own = fold_text(text);
        let compound = Some(fold_text(&join_hyphens(text))).filter(|joined| *joined != own);
        [Some(join_spaced_letters(&own)), compound].into_iter().flatten().map(move |it| (it, label))
    });
    folded.filter(|(text, _)| !text.is_empty()).collect()
}

/// Whether a number is right under a text that is no larger, as its value does in a form.
fn has_number_below(label: BoundingBox, below: Option<&TextLine>) -> bool {
    let words = below.map_or(&[][..], |line| &line.words);
    words.iter().any(|word| {
        let area = word.bounding_box;
        (area.x - label.x).abs() < area.h
            && area.y > label.y
            && area.y - label.bottom() < label.h
            && label.h < LARGER * area.h
            && word.text.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a number is beside a text, and the line above has a text and a number at the same edges:
/// `Quote   Q25-061` under `Customer   1447`. The first of such a list may be the title of the document.
fn goes_on_list(
    label: BoundingBox,
    (value, area): &(String, BoundingBox),
    above: Option<&TextLine>,
) -> bool {
    let words = above.map_or(&[][..], |line| &line.words);
    let begins =
        words.iter().map(|word| word.bounding_box).find(|over| (over.x - label.x).abs() < label.h);
    let ends = words.iter().find(|word| {
        let over = word.bounding_box;
        let aligned =
            (over.x - area.x).abs() < label.h || (over.right() - area.right()).abs() < label.h;
        over.x > label.x + label.h && aligned && has_digit(&word.text)
    });
    has_digit(value)
        && ends.is_some()
        && begins.is_some_and(|over| {
            over.y < label.y && label.y - over.bottom() < label.h && over.h < LARGER * label.h
        })
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// `Storno-Rechnung` without its hyphen.
fn join_hyphens(text: &str) -> String {
    let parts: Vec<&str> = text.split('-').collect();
    let joins = |pair: &[&str]| {
        let ends = pair.first().is_some_and(|it| it.ends_with(char::is_alphabetic));
        ends && pair.last().is_some_and(|it| it.starts_with(char::is_alphabetic))
    };
    let mut joined = parts.first().copied().unwrap_or_default().to_owned();
    for pair in parts.windows(2) {
        joined.push_str(if joins(pair) { "" } else { "-" });
        joined.push_str(pair.last().copied().unwrap_or_default());
    }
    joined
}

/// `r e c h n u n g` is one word.
fn join_spaced_letters(folded: &str) -> String {
    let letters = folded.split(' ').filter(|word| word.chars().count() == 1).count();
    let spaced = letters >= 4 && letters == folded.split(' ').count();
    if spaced { folded.replace(' ', "") } else { folded.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_core::model::TextWord;

    /// Two or more spaces are a wide gap.
    fn transcript(drawing: &str) -> Transcript {
        let line = |(row, text): (usize, &str)| {
            let mut words = Vec::new();
            let mut column = 0;
            for word in text.split(' ') {
                let width = word.chars().count();
                if width > 0 {
                    let (x, y) = (column as f32 * 5.0, row as f32 * 12.0);
                    let bounding_box = BoundingBox { x, y, w: width as f32 * 5.0, h: 10.0 };
                    words.push(TextWord {
                        text: word.into(),
                        bounding_box,
                        confidence: 1.0,
                        unwitnessed: false,
                    });
                }
                column += width + if width == 0 { 3 } else { 1 };
            }
            TextLine { words }
        };
        let drawn = drawing.lines().enumerate().map(line);
        let lines = drawn.filter(|line| !line.words.is_empty()).collect();
        let page = PageText::from_native(1, (600.0, 840.0), 1.0, lines);
        Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: vec![page],
            quality: 1.0,
        }
    }

    #[test]
    fn documents_are_told_by_their_words() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        #[rustfmt::skip]
        let table = [
            ("Muster GmbH   Rechnung Nr. 17\nGesamtbetrag   12,00 EUR", "invoice", None),
            ("R E C H N U N G\nSumme   12,00", "invoice", None),
            ("Stornorechnung 4\nGesamtbetrag   12,00", "credit_note", None),
            ("CREDIT NOTE\nfor invoice 12   Total   5.00", "credit_note", None),
            ("Faktura\nFakturanr 17   Att betala   120,00", "invoice", None),
            ("CAFE ROMA\nCASH SALE\nTotal   7.60\nCash   10.00\nChange   2.40\nThank you", "receipt", None),
            ("Bon fiscal   Kassenbon\nSumme   7,60\nBar   10,00\nRückgeld   2,40", "receipt", None),
            ("SERVICE AGREEMENT\nbetween A Ltd and B Ltd\nwitnesseth\nterm and termination\ngoverning law", "contract", None),
            ("Mietvertrag\nzwischen A und B\n§ 1 Mietsache", "contract", None),
            ("DATOS DE LA FACTURA\nNº de factura   17\nFecha límite de pago   5/4/2022\nPeaje de acceso   2.0TD", "invoice", None),
            ("Alder Spedition\nFracht   120,00\nMaut   12,00\nSumme   132,00\nWir berechnen", "invoice", None),
            ("Installatiebedrijf Alder\nWerkzaamheden in uw woning\nTe voldoen   12,00", "invoice", None),
            ("Acque Alder\nBolletta n. 12\nTotale bolletta   12,00", "invoice", None),
            ("Alder Taxi\nCash   7.60\nTotal   7.60", "receipt", None),
            ("Bill 17\nCash   7.60\nTotal   7.60\nSort code 20-44-91", "invoice", None),
            ("Order confirmation\nInvoice address: A", "generic", Some(KindAmbiguity::Unknown)),
            ("FAKTURA VAT\nWystawiono   Zamówienie   Płatne do\n2024-12-29   7973   2025-01-28", "invoice", None),
            ("Factura   Pedido\n   8038\nVencimiento   8.1.2024", "invoice", None),
            ("FACTUUR 12   Factuurdatum   20-6-2024\n   Klant   1447\n   Offerte   61\nTe betalen   12,00", "invoice", None),
            ("Offerte   61\nKlant   1447\nFactuur volgt   12,00", "generic", Some(KindAmbiguity::Unknown)),
            ("Studio Alder\nOggetto: fattura n. 27/2026\nAccordo transattivo   600,00", "invoice", None),
            ("Nota\nNota nr. 12\nTe betalen voor 1-2-2024", "invoice", None),
            ("betreft: declaratie 3\ndeclaratienummer: 2024.0063\nte betalen   12,00", "invoice", None),
            ("Dear Sir,\nthank you for your visit.", "generic", Some(KindAmbiguity::Unknown)),
            ("", "generic", Some(KindAmbiguity::Unknown)),
        ];
        for (drawing, kind, doubt) in table {
            let told = kinds.classify(&transcript(drawing)).unwrap();
            assert_eq!((told.kind.name.as_str(), told.doubt), (kind, doubt), "{drawing}");
        }
    }

    #[test]
    fn under_the_amounts_no_row_and_no_sentence_is_a_title_beside_the_one_above() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let tie = Some(KindAmbiguity::Tie);
        #[rustfmt::skip]
        let table = [
            ("Rechnung", "Gutschrift Pfand   1   -20,00", "invoice", None),
            ("Rechnung", "Gutschrift", "invoice", tie),
            ("Rechnung   Nummer:   17", "Gutschrift 4 wurde verrechnet", "invoice", None),
            ("Rechnung", "Gutschrift GS-2026-4 vom 1.10.2026 wurde verrechnet", "invoice", None),
            ("Rechnung", "Lieferschein Nr. 4711 vom 1.2.2024", "invoice", None),
            ("Rechnung Nr. 17", "Gutschrift Pfand   1   -20,00", "invoice", None),
            ("Rechnung Nr. 17", "Gutschrift GS-2026-4 vom 1.10.2026 wurde verrechnet", "invoice", tie),
            ("Stammkapital 25.000,00 EUR\nRechnung", "Avoir sur livraison   1   -20,00", "invoice", None),
            ("Gutschrift", "Rechnung 17 vom 1.2.2024   12,00", "credit_note", None),
            ("Kunde   1447", "Gutschrift", "credit_note", None),
            ("Rechnungsnummer:   17", "Gutschrift", "invoice", tie),
            ("Rechnungsnummer:   17", "Mahnung", "generic", Some(KindAmbiguity::Unknown)),
            ("Mahnung", "Rechnung 17 vom 1.2.2024   12,00", "generic", Some(KindAmbiguity::Unknown)),
        ];
        for (title, under, kind, doubt) in table {
            let drawing = format!("Alder GmbH\n\n{title}\n\nTee   12,00\n{under}\n\nSumme   12,00");
            let told = kinds.classify(&transcript(&drawing)).unwrap();
            assert_eq!((told.kind.name.as_str(), told.doubt), (kind, doubt), "{drawing}");
        }
        let page = transcript("Rechnung\nTee   12,00\nGutschrift Pfand   -2,00").pages.remove(0);
        let titles = kinds.find_titles(&page);
        assert_eq!(titles.kind.unwrap().name.as_str(), "invoice");
    }

    #[test]
    fn what_is_still_open_of_invoices_is_no_invoice() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        #[rustfmt::skip]
        let table = [
            ("Alder GmbH\n\n1. Mahnung\n\nRechnungsnummer   Rechnungsdatum   Betrag\nRE-17   01.02.2024   120,00\nzahlbar bis 1.3.2024", "generic"),
            ("Alder GmbH\n\nMahnung zur Rechnung RE-17\nRechnungsbetrag   120,00\nfällig   1.3.2024", "generic"),
            ("Alder Ltd\n\nPayment Reminder\n\nInvoice number   INV-17\nInvoice date   1 May 2024\nAmount due   120.00", "generic"),
            ("Alder Ltd\n\nStatement\n\nDate   Invoice no   Amount\n1 May   INV-17   120.00\nTotal due   140.00", "generic"),
            ("Alder Ltd\n\nSTATEMENT OF ACCOUNT\n\nInvoice   Amount\nINV-17   120.00\nAmount due   140.00\nPayment terms 30 days", "generic"),
            ("Alder SARL\n\nRelance n° 1\n\nFacture n° 17   du 1/2/2024\nMontant TTC   120,00\nÉchéance   1/3/2024", "generic"),
            ("Alder Srl\n\nSollecito di pagamento\n\nFattura n. 17 del 1/2/2024   120,00\nScadenza 1/3/2024", "generic"),
            ("Alder BV\n\nAanmaning\n\nFactuurnummer 17   Factuurdatum 1-2-2024   120,00", "generic"),
            ("Alder AB\n\nBetalningspåminnelse\n\nFakturanummer 17   Förfallodatum 2024-05-01\nAtt betala   120,00", "generic"),
            ("Alder Ltd\n\nDelivery Note\n\nInvoice no. INV-17   Order 12\nQty   Description\n1   Tea", "generic"),
            ("Alder GmbH\n\nRechnung   RE-17\nLieferschein Nr. 4711 vom 1.2.2024\nGesamtbetrag   12,00", "invoice"),
            ("Alder Ltd\n\nInvoice / Delivery note\n\nInvoice number   INV-17\nTotal   12.00", "invoice"),
            ("Alder Ltd\n\nTAX INVOICE\n\n\n\n\n\n\n\n\n\n\n\nInvoice total   12.00\n\n\n\n\n\n\n\n\n\n\n\n\nPlease settle   12.00\n\n\nSTATEMENT OF ACCOUNT   as at 1 May 2024\nINV-17   12.00", "invoice"),
            ("Alder Ltd\n\nTax Invoice / Statement\n\nInvoice number 17\nTotal   12.00", "invoice"),
        ];
        for (drawing, kind) in table {
            let told = kinds.classify(&transcript(drawing)).unwrap();
            assert_eq!(told.kind.name.as_str(), kind, "{drawing}");
        }
    }

    #[test]
    fn a_kind_is_denied_by_a_title_against_it_where_no_other_one_is_its_own() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        for (drawing, denied) in [
            ("Proformarechnung\nRechnungsnummer:   17\nSumme   12,00", true),
            ("Mahnung\nRechnungsnummer:   17\nSumme   12,00", true),
            ("Pro-forma-Rechnung\nSumme   12,00", true),
            ("Proforma Rechnung\nSumme   12,00", true),
            ("Abschlags-Rechnung\nSumme   12,00", false),
            ("Rechnung - Angebot\nSumme   12,00", false),
            ("Angebot\nRechnungsnummer:   17\nSumme   12,00", true),
            ("Angebot   Rechnungsnummer:   17\nSumme   12,00", true),
            ("Angebot   Kunde   Rechnungsnummer:\nSumme   12,00", false),
            ("Rechnung\nAngebot:   17\nSumme   12,00", false),
            ("Rechnung\nLieferschein\nSumme   12,00", false),
            ("Rechnung\nTee   12,00\nMahnung\nSumme   12,00", false),
            ("Alder GmbH\nSumme   12,00", false),
        ] {
            let page = transcript(drawing).pages.remove(0);
            assert_eq!(invoice.is_denied_by_title(&page), denied, "{drawing}");
        }
    }

    #[test]
    fn a_title_against_a_kind_leaves_it_in_doubt_whatever_its_labels_are() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let labels = "Invoice number:   17\nInvoice date:   1 May 2024\nDue date:   2 May 2024\nAmount due   12.00";
        for (title, doubt) in [
            ("Proforma Invoice", Some(KindAmbiguity::Tie)),
            ("Quotation", Some(KindAmbiguity::Tie)),
            ("Invoice", None),
            ("Alder Ltd", None),
        ] {
            let told = kinds.classify(&transcript(&format!("{title}\n{labels}"))).unwrap();
            assert_eq!((told.kind.name.as_str(), told.doubt), ("invoice", doubt), "{title}");
        }
    }

    #[test]
    fn two_titles_of_equal_weight_are_a_tie() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let told = kinds.classify(&transcript("Invoice\nReceipt")).unwrap();
        assert_eq!(told.doubt, Some(KindAmbiguity::Tie));
        let mut names = vec![told.kind.name.as_str()];
        names.extend(told.rivals.iter().map(|kind| kind.name.as_str()));
        names.sort_unstable();
        assert_eq!(names, ["invoice", "receipt"]);
    }
}
