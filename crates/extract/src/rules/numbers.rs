//! The document's own number: texts beside the labels of numbers, or behind a mark such as `#`, are
//! weighed by their signs ([`sign`]), the candidates against each other.

mod series;
mod sign;

pub(super) use self::sign::NumberSign;
use super::FoundValue;
use super::characters::{count_digits, count_letters, has_digit};
use super::fields::{is_before_value, read_identifier};
use super::label_matches::{LabelMatch, LabelMatches, ValueCandidate};
use super::layout::TextCell;
use super::parameters::parameters;
use super::vocabulary::vocabulary;
use super::weighing::{add_sign, share_certainty};
use docmill_formats::notation::{date, fold_text};

/// Below this share of legible letters a number is faint.
const FAINT: f32 = 0.6;

/// Labels that are looked at.
const MAX_LABELS: usize = 600;
/// Letters of a mark such as `#` or `No.:` alone before its number.
const MAX_MARK_LETTERS: usize = 4;

/// Texts that are weighed against each other.
const MAX_CANDIDATES: usize = 300;

/// Digits of an unlabelled text that can be a number: shorter ones belong to tables, tills or
/// houses.
const MIN_OPEN_DIGITS: usize = 4;

/// The same behind a mark of numbers: a till's, a table's and a guest's have two.
const MIN_MARKED: usize = 3;

/// A text that may be the number, and its signs.
#[derive(Debug, Clone)]
pub(super) struct NumberCandidate<'a> {
    pub(super) value: String,
    cell: &'a TextCell,
    pub(super) signs: Vec<NumberSign>,
}

/// The numbers of a document.
pub(super) struct NumberSearch<'a> {
    matches: &'a LabelMatches<'a>,
    field: &'a str,
}

impl<'a> NumberSearch<'a> {
    pub(super) fn new(matches: &'a LabelMatches<'a>, field: &'a str) -> Self {
        Self { matches, field }
    }

    /// Every text that can be the number, once, with all its signs.
    pub(super) fn list_candidates(&self) -> Vec<NumberCandidate<'a>> {
        let mut found = Vec::new();
        for label_match in self
            .matches
            .all
            .iter()
            .filter(|label_match| self.is_number_label(label_match))
            .take(MAX_LABELS)
        {
            self.add_adjacent(label_match, label_match.field == self.field, &mut found);
            if found.len() >= MAX_CANDIDATES {
                break;
            }
        }
        self.add_marked(&mut found);
        self.add_series(&mut found);
        self.add_beside_day(&mut found);
        let mut merged = merge_values(found);
        self.add_shape_signs(&mut merged);
        merged
    }

    fn is_number_label(&self, label_match: &&LabelMatch) -> bool {
        label_match.field == self.field || (label_match.field == "other" && label_match.strong)
    }

    fn add_adjacent(
        &self,
        label_match: &LabelMatch,
        own: bool,
        found: &mut Vec<NumberCandidate<'a>>,
    ) {
        // In the middle of a sentence a word such as "invoice" names nothing.
        let titled = self.is_second_title(label_match) || self.ends_heading(label_match);
        if own && !label_match.strong && label_match.words.start > 1 && !titled {
            return;
        }
        let places = self.matches.value_candidates(label_match);
        let most = if own { usize::MAX } else { 1 };
        let strong = label_match.strong
            || own && (self.is_numbered(label_match) || self.heads_document_row(label_match));
        let mut nearest = true;
        for beside in places.into_iter().take(most) {
            let words = beside.value_words();
            if own && !beside.inline && names_other(&words) {
                continue;
            }
            let read = read_identifier(&words, beside.inline).or_else(|| {
                let like_day = series::number_like_day(&words).filter(|_| own)?;
                let numbered = label_match.strong
                    || beside.inline && self.matches.has_days_without_strokes(&words);
                numbered.then_some(like_day)
            });
            let Some(value) = read else { continue };
            // `Beitragsrechnung 2025`
            if own && !strong && self.is_year_of_page(&value) {
                continue;
            }
            let mut signs = self.place_signs(beside.cell);
            signs.push(match (own, strong) {
                (true, true) => NumberSign::OwnLabel,
                (true, false) => NumberSign::WeakLabel,
                _ => NumberSign::OtherLabel,
            });
            signs.extend(self.relation_signs(label_match, &beside, own));
            if !nearest {
                signs.push(NumberSign::Further);
            }
            nearest = false;
            found.push(NumberCandidate { value, cell: beside.cell, signs });
        }
    }

    /// The one number beside the writer's reference, where no label of the document has a value.
    fn find_reference(&self) -> Option<FoundValue<String>> {
        if !self.matches.style.letter {
            return None;
        }
        let matches = self.matches.of_field("own_reference").take(MAX_LABELS);
        let read = matches.filter_map(|label_match| {
            let beside = self.matches.value_candidates(label_match).into_iter().next()?;
            Some((read_identifier(&beside.value_words(), beside.inline)?, beside.cell))
        });
        let mut found: Vec<(String, &TextCell)> = read.collect();
        found.dedup_by_key(|(value, _)| compact_number(value));
        match found.as_slice() {
            [(value, cell)] => {
                Some(FoundValue::weighed(value.clone(), parameters().certainty.reference, cell))
            }
            _ => None,
        }
    }

    /// `Watercolours, July - Invoice 2025-17`: title and number end the subject of a letter, behind
    /// a dash or comma.
    fn ends_heading(&self, label_match: &LabelMatch) -> bool {
        let Some(cell) = self.matches.cell_of(label_match) else { return false };
        let before = label_match.words.start.checked_sub(1).and_then(|at| cell.words.get(at));
        let apart =
            before.is_some_and(|word| word.ends_with(',') || matches!(word.as_str(), "-" | "–"));
        let number = cell.words.get(label_match.words.end..).unwrap_or_default();
        apart && matches!(number, [number] if has_digit(number))
    }

    /// `INVOICE` over `VF25-061`: title and number, each alone in its line, one over the other.
    fn is_under_title(&self, title: &LabelMatch, number: &TextCell) -> bool {
        let Some(cell) = self.matches.cell_of(title) else { return false };
        let digits = number.joined_text().chars().filter(char::is_ascii_digit).count();
        let gap = number.area.y - cell.area.bottom();
        title.words == (0..cell.words.len())
            && number.page == cell.page
            && digits >= MIN_OPEN_DIGITS
            && (number.area.x - cell.area.x).abs() < 0.6 * cell.area.h
            && gap < 0.9 * cell.area.h.max(number.area.h)
            && read_identifier(&number.all_words(), true)
                .is_some_and(|value| value == number.joined_text())
    }

    fn relation_signs(
        &self,
        label_match: &LabelMatch,
        beside: &ValueCandidate<'_>,
        own: bool,
    ) -> Vec<NumberSign> {
        let mut signs = Vec::new();
        if !own {
            return signs;
        }
        if beside.below {
            signs.push(NumberSign::LabelAbove);
            signs.extend(
                self.is_under_title(label_match, beside.cell).then_some(NumberSign::UnderTitle),
            );
        } else if beside.inline {
            signs.push(NumberSign::Inline);
        }
        let begins = self.is_subject(label_match);
        if label_match.words.start > 0 && !begins {
            signs.push(NumberSign::MidText);
        }
        if self.has_day_beside(label_match) {
            signs.push(NumberSign::DayBeside);
        }
        // The value has a label of something else right over it.
        let mut inside = self.matches.in_cell(beside.cell.index);
        if inside.any(|other| other.strong && other.field == "other") {
            signs.push(NumberSign::OtherWithin);
        }
        signs
    }

    /// Adds the text behind `#`, `Nr.` or `No:` in the upper half of the first page.
    fn add_marked(&self, found: &mut Vec<NumberCandidate<'a>>) {
        let first = self.matches.layout.cells.iter().take_while(|cell| cell.page == 0);
        for cell in first.filter(|cell| self.matches.layout.depth_on_page(cell) < 0.5) {
            let Some(front) = cell.words.first() else { continue };
            let word = front.to_lowercase();
            let hash = word.starts_with('#');
            let folded = fold_text(&word);
            let short = vocabulary().number_front.has(&folded)
                || !word.is_ascii() && vocabulary().number_front_marked.has(&folded)
                || vocabulary().number_mark.has(&folded) && self.is_behind_title(cell);
            if !hash && !short || short && self.is_mark_of_other(cell) {
                continue;
            }
            let from = series::after_second_mark(cell, usize::from(short));
            let mut words = cell.words_in(from..cell.words.len());
            // `No :` as well.
            let alone = cell.words.iter().skip(1).all(|word| word == ":");
            if alone && self.is_unit(cell) {
                continue;
            }
            if alone && front.chars().count() <= MAX_MARK_LETTERS {
                let Some(value) = self.matches.layout.next_in_row(cell) else { continue };
                words = value.all_words();
            }
            // `No 23C, Mill Road`
            let house = short && words.len() > 1 && words.first().is_some_and(|w| w.ends_with(','));
            // `NO 216.218. Mill Road`, `#0034 Southport`: a house, or one shop of several.
            let house = house
                || self.matches.style.loose_number
                    && words.iter().skip(1).any(|word| is_word(word));
            // `#000021  CASHIER 7`: the number belongs to the word behind it.
            let cashier = self.matches.style.loose_number
                && self.is_called_behind(cell, from + usize::from(hash));
            if house || cashier {
                continue;
            }
            let Some(value) = read_identifier(&words, true) else { continue };
            let mut signs = self.place_signs(cell);
            signs.push(if hash { NumberSign::Marked } else { NumberSign::ShortLabel });
            found.push(NumberCandidate { value, cell, signs });
        }
    }

    /// Whether another label follows a number, in its cell at word `from` or in the next one.
    fn is_called_behind(&self, cell: &TextCell, from: usize) -> bool {
        let layout = self.matches.layout;
        let (index, from) = match (from < cell.words.len(), layout.next_in_row(cell)) {
            (true, _) => (cell.index, from),
            (false, Some(next)) => (next.index, 0),
            (false, None) => return false,
        };
        self.matches
            .in_cell(index)
            .any(|label_match| label_match.words.start == from && label_match.field == "other")
    }

    /// `Zähler  Nr. 8 114 277`: a word right before the mark, no larger and no title, names it.
    fn is_mark_of_other(&self, mark: &TextCell) -> bool {
        let layout = self.matches.layout;
        let Some(named) = layout.cell_before(mark) else { return false };
        let is_near = named.row == mark.row && -named.overlap_x(mark) < 2.0 * mark.area.h;
        let [word] = named.words.as_slice() else { return false };
        is_near
            && named.area.h < 1.2 * mark.area.h
            && word.chars().all(char::is_alphabetic)
            && is_word(word)
            && !self.matches.in_cell(named.index).any(|one| one.field == self.field)
    }

    /// `FATTURA IMMEDIATA     N. 118/A     DEL 14/04/2026`: a title begins the row before the mark.
    fn is_behind_title(&self, mark: &TextCell) -> bool {
        let layout = self.matches.layout;
        let Some(title) = layout.cell_before(mark) else { return false };
        let first = layout.row_cells(mark.row).first().is_some_and(|one| std::ptr::eq(one, title));
        first
            && !layout.is_on_amount_row(mark)
            && self.matches.in_cell(title.index).any(|label_match: &LabelMatch| {
                label_match.words.start == 0 && label_match.field == self.field
            })
    }

    /// `Bumper      NR      1      355,00`: behind the article of a row, `NR` is a unit.
    fn is_unit(&self, mark: &TextCell) -> bool {
        let layout = self.matches.layout;
        let first = layout.row_cells(mark.row).first();
        first.is_some_and(|first| !std::ptr::eq(first, mark)) && layout.is_on_amount_row(mark)
    }

    fn place_signs(&self, cell: &TextCell) -> Vec<NumberSign> {
        let depth = self.matches.layout.depth_on_page(cell);
        let mut signs = vec![match (cell.page, depth) {
            (0, ..0.2) => NumberSign::Head,
            (0, ..0.5) => NumberSign::Upper,
            (0, _) => NumberSign::Lower,
            _ => NumberSign::Later,
        }];
        if self.matches.layout.is_on_amount_row(cell) {
            signs.push(NumberSign::AmountRow);
        }
        if cell.confidence < FAINT {
            signs.push(NumberSign::Faint);
        }
        signs
    }

    /// Adds the signs of the number's form, and of its repetition.
    fn add_shape_signs(&self, merged: &mut [NumberCandidate<'_>]) {
        let own = |one: &&mut NumberCandidate<'_>| one.signs.iter().any(|sign| sign.is_own());
        let mut named = merged.iter_mut().filter(own);
        if let (Some(only), None) = (named.next(), named.next()) {
            only.signs.push(NumberSign::OnlyOwn);
        }
        for one in merged {
            let digits = count_digits(&one.value);
            add_sign(
                &mut one.signs,
                NumberSign::Short,
                one.value.chars().filter(|c| c.is_alphanumeric()).count() < 3,
            );
            add_sign(&mut one.signs, NumberSign::Letters, one.value.contains(char::is_alphabetic));
            add_sign(&mut one.signs, NumberSign::Long, digits > 3);
            add_sign(&mut one.signs, NumberSign::Decimal, digits < 4 && one.value.contains('.'));
            one.signs.sort_unstable();
            one.signs.dedup();
        }
    }

    /// How certain it is that the document has no number, where none was found: tills print many
    /// receipts without one.
    pub(super) fn absence_certainty(&self) -> Option<f32> {
        let bounds = &parameters().certainty;
        let certainty = if self.has_open_number() { bounds.open_number } else { bounds.no_number };
        self.matches.style.loose_number.then_some(certainty)
    }

    /// Whether the upper half of the first page has a number behind an unknown label.
    fn has_open_number(&self) -> bool {
        let layout = self.matches.layout;
        let cells = layout.cells.iter().enumerate().take_while(|(_, cell)| cell.page == 0);
        let mut upper = cells
            .filter(|(_, cell)| layout.depth_on_page(cell) < 0.5 && !layout.is_on_amount_row(cell));
        upper.any(|(index, cell)| {
            let named = self.matches.in_cell(index).any(|label_match| {
                label_match.field != self.field && !label_match.field.starts_with("column_")
            });
            let text = cell.joined_text();
            let days = date::find_dates(&text);
            let inline = || {
                cell.words.windows(2).enumerate().any(|(at, pair): (usize, &[String])| {
                    let [before, number] = pair else { return false };
                    let from = cell.words_in(0..at + 1).join(" ").len() + 1;
                    let digits = count_digits(number);
                    digits >= MIN_OPEN_DIGITS
                        && before.chars().any(char::is_alphabetic)
                        && read_identifier(&[number], true).is_some()
                        && !days.iter().any(|day| day.range.contains(&from))
                })
            };
            !named && !text.contains(['@', ',']) && (inline() || self.is_number_of_other(index))
        })
    }

    /// `Ride No.   771`: a mark of numbers ends the text, behind an unknown label, and a number is
    /// right of it.
    fn is_number_of_other(&self, index: usize) -> bool {
        let layout = self.matches.layout;
        let words = layout.cells.get(index).map(|cell| cell.words.as_slice()).unwrap_or_default();
        let [.., named, mark] = words else { return false };
        let marked = vocabulary().number_mark.has(&fold_text(mark)) && is_word(named);
        let Some(right) = layout.right_of(index).first().filter(|_| marked) else { return false };
        let text = right.joined_text();
        count_digits(&text) >= MIN_MARKED && read_identifier(&[&text], true).is_some()
    }

    /// The best number and its share of certainty.
    pub(super) fn find_number(&self) -> Option<FoundValue<String>> {
        let candidates = self.list_candidates();
        let weights = &parameters().weights.number;
        let scores: Vec<f32> = candidates.iter().map(|one| weights.score(&one.signs)).collect();
        let shares = share_certainty(&scores, weights.none);
        // A number that only has labels of something else is not the document's own.
        let ranked = candidates.into_iter().zip(&scores).zip(shares);
        let ranked = ranked.filter(|((one, _), _)| one.signs.iter().any(|sign| sign.is_own()));
        // `Order #134`: the mark alone makes an order's number none of the receipt.
        let other = |one: &NumberCandidate<'_>| {
            let labelled = [NumberSign::OwnLabel, NumberSign::WeakLabel];
            one.signs.contains(&NumberSign::OtherLabel)
                && !one.signs.iter().any(|sign| labelled.contains(sign))
        };
        let ranked =
            ranked.filter(|((one, _), _)| !(self.matches.style.loose_number && other(one)));
        let best = ranked.reduce(|best, one| if one.0.1 > best.0.1 { one } else { best });
        let Some(((one, score), share)) = best else { return self.find_reference() };
        if *score < weights.none - 1.5 {
            return None;
        }
        Some(FoundValue::weighed(one.value, share, one.cell))
    }
}

/// `Order ref: 118`: a word with a colon before the number names it.
fn names_other(words: &[&str]) -> bool {
    let number = words.iter().position(|word| has_digit(word));
    let before = words.get(..number.unwrap_or(0)).unwrap_or_default();
    before
        .iter()
        .any(|word| word.ends_with(':') && is_word(word) && !is_before_value(&fold_text(word)))
}

/// Whether letters alone make a word: no code, and no half of a day.
fn is_word(text: &str) -> bool {
    let letters = count_letters(text);
    letters >= 3 && !has_digit(text)
}

/// Letters and digits alone: other marks or a final dash make no difference.
fn compact_number(value: &str) -> String {
    value.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Each number once, with the signs of all its mentions. A name of something else counts only where
/// the number has no label of its own.
fn merge_values(found: Vec<NumberCandidate<'_>>) -> Vec<NumberCandidate<'_>> {
    let mut merged: Vec<NumberCandidate<'_>> = Vec::new();
    for one in found {
        match merged
            .iter_mut()
            .find(|known| compact_number(&known.value) == compact_number(&one.value))
        {
            Some(known) => {
                // A sign against one mention is withdrawn if the other has the label as well.
                let own = |it: &NumberCandidate<'_>| it.signs.iter().any(|sign| sign.is_own());
                if own(known) && own(&one) {
                    let (both, other) = (known.signs.clone(), &one.signs);
                    known.signs.retain(|sign| !sign.is_excused() || other.contains(sign));
                    let rest = other.iter().filter(|it| !it.is_excused() || both.contains(*it));
                    known.signs.extend(rest.copied());
                } else {
                    known.signs.extend(one.signs);
                }
            }
            None => merged.push(one),
        }
    }
    for one in &mut merged {
        if one.signs.contains(&NumberSign::OwnLabel) {
            one.signs.retain(|sign| {
                !matches!(sign, NumberSign::OtherLabel | NumberSign::Later | NumberSign::Lower)
            });
        }
        // The best of its places counts.
        if one.signs.contains(&NumberSign::Head) || one.signs.contains(&NumberSign::Upper) {
            one.signs.retain(|sign| !matches!(sign, NumberSign::Later | NumberSign::Lower));
        }
        one.signs.sort_unstable();
        one.signs.dedup();
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn find(drawing: &str) -> Option<String> {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout = CellLayout::new(&transcript(&[drawing]));
        let matches = LabelMatches::new(&layout, kinds.get("invoice").unwrap());
        NumberSearch::new(&matches, "invoice_number").find_number().map(|found| found.value)
    }

    #[test]
    fn the_documents_own_number_is_told_from_others() {
        for (drawing, expected) in [
            ("Rechnung    Seite 1\nRechnungsnr.   40075218   Kundennr.   58663", Some("40075218")),
            (
                "INVOICE   No: INV2024117\n          Date: 18/03/2024\nJob Ref: KT-2024-00318",
                Some("INV2024117"),
            ),
            (
                "HANDELSRECHNUNG (380) Nr. E2021064 vom 14.06.2021\nBestellung: 2021064\n\n\n\
                 Bei Schriftwechsel bitte Ihre Kundennummer 46051838 und Belegnummer 2021064 angeben",
                Some("E2021064"),
            ),
            ("Visualisierung   Stylesheet-Version 2.1\nRechnung Nr. 618205", Some("618205")),
            ("Kundennummer   4711", None),
            ("Oggetto: fattura n. 27/2024 - assistenza Alder", Some("27/2024")),
            ("Integrationskurs B1, Juli 2025 - Rechnung 2025-17", Some("2025-17")),
            ("Die Anzahlung aus Rechnung 2025-17", None),
            (
                "Gebührenrechnung   2020-04418\nPeriode 2020   Zähler  Nr. 8 114 277",
                Some("2020-04418"),
            ),
            ("Periode 2020   Zähler  Nr. 8 114 277", None),
            ("FACTURA\nSeria TCO nr. 0417\nData: 23/10/2024", Some("TCO 0417")),
            ("Serija AB Nr. 123\n2024-05-13", Some("AB 123")),
            ("Seria produktu: nr 12", None),
            ("Faktura nr 17/06/2024\nData wystawienia: 2024-06-28", Some("17/06/2024")),
            ("Rechnung   03.07.2024\nRechnung Nr.   4711", Some("4711")),
            (
                "Beitragsrechnung 2025\n\nRechnung     Ausgestellt\nBR-0388      01.03.2025",
                Some("BR-0388"),
            ),
            ("Rechnung 2025\nDatum 01.03.2024", Some("2025")),
            ("Αριθμός: ΤΠΥ-Α 1184\nΗμερομηνία: 10/06/2025", Some("ΤΠΥ-Α 1184")),
            ("Order #   AB-77\nInvoice #   AB-77", Some("AB-77")),
            ("Faktura 17/04/2024\nKonin, 2024-04-30", Some("17/04/2024")),
            ("Faktura 17/04/2024\nTermin 30/04/2024", None),
            (
                "Invoice number   KM-2024-0071182\nInvoice date   12 May 2024",
                Some("KM-2024-0071182"),
            ),
            ("#   : M/24-25/17   Place : North\nInvoice Date   : 05/09/2024", Some("M/24-25/17")),
            ("Quittung / Rechnung 600-44921", Some("600-44921")),
            ("Rechnung\nNr. W240 3391      Seite 1", Some("W240 3391")),
            (
                "FACTUUR\nNummer       Datum        Vervaldatum\nVF24/0039    14/06/2024   14/07/2024",
                Some("VF24/0039"),
            ),
            ("R E C H N U N G   240881\nKundennummer   77", Some("240881")),
            ("R e c h n u n g   240-881\nKundennummer   77", Some("240-881")),
            ("FACTURA\nNro. 0003-00044718\nFecha: 25/04/2024", Some("0003-00044718")),
            ("Corner Shop\nNo 23C, Mill Road\n43780 Townsend", None),
            ("RAČUN / INVOICE br. 18/PP1/1\nDatum / Date: 24.08.2024.", Some("18/PP1/1")),
            ("Faktura / Invoice\nNr / No.: 11/09/2024/EX", Some("11/09/2024/EX")),
            ("Fee invoice\nInvoice       TF-24-0447\nFamily code   NOL04", Some("TF-24-0447")),
            ("FAKTURA    číslo 24-0071\ndaňový doklad   strana 1/1", Some("24-0071")),
            ("ARVE 240318\nKuupäev 14.02.2024", Some("240318")),
            ("ΣΕΙΡΑ   ΑΡΙΘΜΟΣ   ΗΜΕΡΟΜΗΝΙΑ\nΤΠΥ     000318    21-06-2024", Some("000318")),
        ] {
            assert_eq!(find(drawing).as_deref(), expected, "{drawing}");
        }
    }

    #[test]
    fn a_mark_behind_the_title_names_the_number_and_a_unit_in_a_table_does_not() {
        for (drawing, expected) in [
            (
                "FATTURA IMMEDIATA     N. 118/A     DEL 14/04/2026\n\n\n\
                 Descrizione       U.M.    Q.tà      Prezzo     Importe\n\
                 Paraurti          NR         1      355,00      355,00",
                Some("118/A"),
            ),
            (
                "Descrizione       U.M.    Q.tà      Importe\nParaurti          NR       477      355,00",
                None,
            ),
        ] {
            assert_eq!(find(drawing).as_deref(), expected, "{drawing}");
        }
    }
}
