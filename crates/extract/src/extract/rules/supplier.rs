//! Who issued the document: name, address and VAT identifier.
//!
//! Several weak signs vote: an explicit label, the sender line above the address window, the text
//! beside or above the VAT identifier, legal forms, and how often a name comes back.

mod address;
mod identifier;
mod name;

use self::address::has_postal_code;
use super::FoundValue;
use super::layout::{CellLayout, TextCell};
use super::spots::{LabelMatch, LabelMatches};
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::LabelIndex;

const MOST_CANDIDATES: usize = 100;

const LONGEST_NAME: usize = 80;

/// What separates name, street and town on a sender line.
const SEPARATORS: [&str; 7] = [" - ", " – ", " • ", " · ", " | ", " * ", ", "];

/// The parties' data, as far as found.
#[derive(Debug, Default)]
pub(super) struct SupplierDetails {
    pub(super) name: Option<FoundValue<String>>,
    pub(super) address: Option<FoundValue<String>>,
    pub(super) vat_id: Option<FoundValue<String>>,
}

struct SupplierCandidate<'a> {
    score: f32,
    name: String,
    address: Option<String>,
    cell: &'a TextCell,
}

pub(super) fn find_supplier(spots: &LabelMatches<'_>, labels: &LabelIndex) -> SupplierDetails {
    let folded = spots.layout.cells.iter().map(|cell| fold_text(&cell.joined_text())).collect();
    let search = SupplierSearch { spots, layout: spots.layout, labels, folded };
    let vat = search.find_vat_id();
    let mut candidates = Vec::new();
    search.add_labelled(&mut candidates);
    search.add_sender_lines(&mut candidates);
    search.add_near_vat_id(vat.as_ref(), &mut candidates);
    search.add_letterhead(&mut candidates);
    search.add_payees(&mut candidates);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(MOST_CANDIDATES);
    for candidate in &mut candidates {
        candidate.score += search.score_bonus(candidate);
    }
    let best = candidates
        .iter()
        .max_by(|a, b| a.score.total_cmp(&b.score).then_with(|| b.cell.row.cmp(&a.cell.row)));
    let Some(best) = best else {
        return SupplierDetails { vat_id: vat, ..SupplierDetails::default() };
    };
    let (name, joined) = search.full_name(best);
    let folded = fold_text(&best.name);
    let same = candidates.iter().filter(|c| fold_text(&c.name) == folded).collect::<Vec<_>>();
    let address = best.address.clone().or_else(|| search.address_below(best.cell, joined));
    let address = address.or_else(|| same.iter().find_map(|c| c.address.clone()));
    let address =
        address.or_else(|| same.iter().find_map(|c| search.address_below(c.cell, joined)));
    let address = address.or_else(|| search.labelled_address(best.cell));
    SupplierDetails {
        name: Some(FoundValue::new(name, best.score >= 6.0, best.cell)),
        address: address.map(|text| FoundValue::new(text, false, best.cell)),
        vat_id: vat,
    }
}

struct SupplierSearch<'a> {
    spots: &'a LabelMatches<'a>,
    layout: &'a CellLayout,
    labels: &'a LabelIndex,
    /// The text of each cell, folded.
    folded: Vec<String>,
}

impl<'a> SupplierSearch<'a> {
    /// Beside "Seller", "Sold by", or "Name:" within such a section.
    fn add_labelled(&self, candidates: &mut Vec<SupplierCandidate<'a>>) {
        for spot in self.spots.of_field("supplier") {
            let Some(cell) = self.spots.cell_of(spot).filter(|_| spot.words.start == 0) else {
                continue;
            };
            let closed =
                cell.words.get(spot.words.end.saturating_sub(1)).is_some_and(|w| w.ends_with(':'))
                    || cell.words.get(spot.words.end).is_some_and(|word| word == ":");
            let whole = spot.words.end == cell.words.len();
            if !closed && !whole {
                continue;
            }
            if let Some((name, at)) = self.named_in_section(spot) {
                candidates.push(SupplierCandidate { score: 14.0, name, address: None, cell: at });
                continue;
            }
            for beside in self.spots.value_candidates(spot) {
                let name = tidy_name(&beside.value_words().join(" "));
                if self.is_name(&name) {
                    candidates.push(SupplierCandidate {
                        score: 10.0,
                        name,
                        address: None,
                        cell: beside.cell,
                    });
                    break;
                }
            }
        }
    }

    /// `Name: X` in the rows after a heading such as "Seller", before the next party's heading.
    fn named_in_section(&self, heading: &LabelMatch) -> Option<(String, &'a TextCell)> {
        let after = self.spots.all.iter().filter(|spot| spot.cell > heading.cell);
        let end = after
            .clone()
            .find(|spot| spot.field == "customer" && spot.words.start == 0)
            .map_or(usize::MAX, |spot| spot.cell);
        let row = self.spots.cell_of(heading)?.row;
        let name = after.filter(|spot| spot.field == "party_name" && spot.words.start == 0).find(
            |spot| {
                spot.cell < end && self.spots.cell_of(spot).is_some_and(|cell| cell.row <= row + 8)
            },
        )?;
        let beside = self.spots.value_candidates(name);
        let first = beside.iter().find(|beside| !beside.below)?;
        let text = tidy_name(&first.value_words().join(" "));
        // A name over two lines is centred on its label: one line above, one below it.
        let above = self.layout.cells.iter().find(|cell| {
            cell.page == first.cell.page
                && cell.row + 1 == first.cell.row
                && (cell.area.x - first.cell.area.x).abs() < 2.0
                && first.cell.area.y - cell.area.y < cell.area.h
        });
        let text = above.map_or(text.clone(), |above| format!("{} {text}", above.joined_text()));
        self.is_name(&text).then_some((text, first.cell))
    }

    /// `Name - Street 1 - 12345 Town`, in one cell or over a row of separated cells.
    fn add_sender_lines(&self, candidates: &mut Vec<SupplierCandidate<'a>>) {
        for row in 0..self.layout.rows.len() {
            let cells = self.layout.row_cells(row);
            let Some(first) = cells.first() else { continue };
            for cell in cells {
                let text = cell.joined_text();
                let parts: Vec<&str> = SEPARATORS
                    .iter()
                    .map(|s| text.split(s).collect::<Vec<_>>())
                    .max_by_key(Vec::len)
                    .unwrap_or_default();
                self.add_sender(&parts, cell, candidates);
            }
            let close = cells.windows(2).take_while(|pair| match pair {
                [a, b] => b.area.x - a.area.right() < 3.0 * a.area.h,
                _ => false,
            });
            let count = close.count() + 1;
            let texts: Vec<String> =
                cells.iter().take(count.min(4)).map(TextCell::joined_text).collect();
            let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.add_sender(&parts, first, candidates);
        }
    }

    fn add_sender(
        &self,
        parts: &[&str],
        cell: &'a TextCell,
        candidates: &mut Vec<SupplierCandidate<'a>>,
    ) {
        let Some((name, rest)) = parts.split_first().filter(|(_, rest)| rest.len() >= 2) else {
            return;
        };
        let rest: Vec<&str> = rest.iter().map(|part| part.trim()).take(4).collect();
        let town = rest.iter().take(3).rposition(|part| has_postal_code(part));
        let name = tidy_name(name);
        if let Some(town) = town {
            let company = self.has_legal_form(&name);
            // `The Old Mill, Mill Lane, Town AB1 2CD` under a company's name is its address alone.
            let mut cells = self.layout.cells.iter();
            let headed = cells.any(|c| {
                is_next_line(c, cell) && self.has_legal_form(&tidy_name(&c.joined_text()))
            });
            let plain = company || !(headed || name.contains(char::is_numeric));
            if plain
                && self.is_name(&name)
                && rest.iter().take(town + 1).any(|part| part.contains(char::is_numeric))
            {
                let upto = rest.get(..rest.len().min(town + 2)).unwrap_or_default();
                let kept: Vec<&str> = upto
                    .iter()
                    .enumerate()
                    .filter(|(at, part)| *at <= town || !part.contains(char::is_numeric))
                    .map(|(_, part)| *part)
                    .collect();
                let address = Some(kept.join(", "));
                let top = if self.layout.depth_on_page(cell) < 0.35 { 1.0 } else { 0.0 };
                candidates.push(SupplierCandidate { score: 7.0 + top, name, address, cell });
            }
        }
    }

    /// Left of the VAT identifier, or at the head of the block it closes.
    fn add_near_vat_id(
        &self,
        vat: Option<&FoundValue<String>>,
        candidates: &mut Vec<SupplierCandidate<'a>>,
    ) {
        let Some(cell) = vat.and_then(|vat| self.layout.cells.get(vat.cell)) else { return };
        let folded = fold_text(&vat.map(|vat| vat.value.clone()).unwrap_or_default());
        let all = self.layout.cells.iter().zip(&self.folded);
        for other in all.filter(|(_, text)| text.contains(&folded)).map(|(cell, _)| cell) {
            let left = self.layout.row_cells(other.row).iter().rfind(|c| c.area.x < other.area.x);
            if let Some(left) = left.filter(|left| other.overlap_x(left) > -3.0 * other.area.h) {
                let name = tidy_name(&left.joined_text());
                if self.is_name(&name) {
                    candidates.push(SupplierCandidate {
                        score: 8.0,
                        name,
                        address: None,
                        cell: left,
                    });
                }
            }
        }
        let mut top = cell;
        for _ in 0..7 {
            let above = self
                .layout
                .cells
                .iter()
                .filter(|c| is_next_line(c, top))
                .max_by(|a, b| a.area.y.total_cmp(&b.area.y));
            let Some(above) = above else { break };
            let name = tidy_name(&above.joined_text());
            if self.is_name(&name) && !has_postal_code(&name) {
                let legal = if self.has_legal_form(&name) { 2.0 } else { 0.0 };
                candidates.push(SupplierCandidate {
                    score: 4.0 + legal,
                    name,
                    address: None,
                    cell: above,
                });
            }
            top = above;
        }
        let name = strip_label(&top.joined_text(), self.labels);
        if self.is_name(&name) {
            candidates.push(SupplierCandidate { score: 6.0, name, address: None, cell: top });
        }
    }

    /// Anything that looks like a company at the head or foot of a page; else the first line.
    fn add_letterhead(&self, candidates: &mut Vec<SupplierCandidate<'a>>) {
        let mut first = true;
        for cell in &self.layout.cells {
            let name = tidy_name(&cell.joined_text());
            let depth = self.layout.depth_on_page(cell);
            if (0.45..0.7).contains(&depth) || !self.is_name(&name) || has_postal_code(&name) {
                continue;
            }
            if self.has_legal_form(&name) {
                let head = if depth < 0.2 { 1.0 } else { 0.0 };
                candidates.push(SupplierCandidate { score: 3.0 + head, name, address: None, cell });
            } else if first && cell.page == 0 && depth < 0.25 {
                candidates.push(SupplierCandidate { score: 2.5, name, address: None, cell });
            }
            first = false;
        }
    }

    /// Whose bank account it is, and what stands over "registered office".
    fn add_payees(&self, candidates: &mut Vec<SupplierCandidate<'a>>) {
        for spot in self.spots.of_field("payee") {
            for beside in self.spots.value_candidates(spot).iter().filter(|beside| !beside.below) {
                let name = tidy_name(&beside.value_words().join(" "));
                if self.is_name(&name) {
                    candidates.push(SupplierCandidate {
                        score: 5.0,
                        name,
                        address: None,
                        cell: beside.cell,
                    });
                    break;
                }
            }
        }
        for spot in self.spots.of_field("registered_office").filter(|spot| spot.words.start == 0) {
            let Some(label) = self.spots.cell_of(spot) else { continue };
            let above = self.layout.cells.iter().rev().find(|cell| {
                let gap = label.area.y - cell.area.bottom();
                cell.page == label.page
                    && gap > -2.0
                    && gap < label.area.h
                    && cell.overlap_x(label) > 0.0
            });
            let Some(above) = above else { continue };
            let name = tidy_name(&above.joined_text());
            if self.is_name(&name) {
                let text = label.words_in(spot.words.end..label.words.len()).join(" ");
                let parts: Vec<&str> = text
                    .split([':', '–'])
                    .flat_map(|part| part.split(" - "))
                    .map(str::trim)
                    .collect();
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let town = parts.iter().take(3).rposition(|part| has_postal_code(part));
                let address = town.and_then(|town| Some(parts.get(..=town)?.join(", ")));
                candidates.push(SupplierCandidate { score: 6.0, name, address, cell: above });
            }
        }
    }

    fn score_bonus(&self, candidate: &SupplierCandidate<'_>) -> f32 {
        let folded = fold_text(&candidate.name);
        let again = self.folded.iter().filter(|text| text.starts_with(&folded));
        let mut bonus = again.count().saturating_sub(1).min(3) as f32;
        if self.has_legal_form(&candidate.name) {
            bonus += 2.0;
        }
        if self.is_customer(candidate.cell) {
            bonus -= 9.0;
        }
        bonus
    }
}

/// Whether `below` is the next line of the same block.
fn is_next_line(above: &TextCell, below: &TextCell) -> bool {
    let gap = below.area.y - above.area.bottom();
    let height = above.area.h.max(below.area.h);
    let aligned = (below.area.x - above.area.x).abs() < 0.6 * height
        || (below.area.right() - above.area.right()).abs() < 0.6 * height;
    above.page == below.page
        && below.middle_y() > above.area.bottom()
        && gap < 0.9 * height
        && aligned
}

fn tidy_name(text: &str) -> String {
    let trim =
        |c: char| matches!(c, ',' | ':' | ';' | '|' | '-' | '–' | '●' | '•' | '·' | ' ' | '*');
    text.trim_matches(trim).to_owned()
}

/// What stands before a separated label: `Example Ltd - VAT No. 123` is named `Example Ltd`.
fn strip_label(text: &str, labels: &LabelIndex) -> String {
    let cut = text.match_indices(" - ").find(|(at, separator)| {
        let rest = fold_text(text.get(at + separator.len()..).unwrap_or_default());
        !labels.labels_at(&rest.split(' ').collect::<Vec<_>>()).is_empty()
    });
    tidy_name(cut.and_then(|(at, _)| text.get(..at)).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn read(drawing: &str) -> [String; 3] {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let labels = &kinds.get("invoice").unwrap().labels;
        let layout = CellLayout::new(&transcript(&[drawing]));
        let found = find_supplier(&LabelMatches::new(&layout, labels), labels);
        [found.name, found.address, found.vat_id]
            .map(|found| found.map_or("-".to_owned(), |found| found.value))
    }

    #[test]
    fn the_supplier_is_told_from_the_customer() {
        #[rustfmt::skip]
        let table = [
            ("Hosting AG - Uferweg 40 - D-63571 Gelnhausen\nClient Ltd.\n93B Sai Yu Chung\n\nRechnung",
                ["Hosting AG", "Uferweg 40, D-63571 Gelnhausen", "-"]),
            ("                              De Maat\n                              Postbus 7\n\
              \x20                             1950 AB Velsen\n\
              \x20                             BTW-nummer: NL820098395B01\n\n\
              ODIN B.V.\nPOSTBUS 3\n1960 AJ HEEMSKERK\n\nFACTUUR",
                ["De Maat", "Postbus 7, 1950 AB Velsen", "NL820098395B01"]),
            ("Verkäufer\n   Name:        Grund GmbH & Co.\n   Anschrift:   Musterstraße 42\n\
              \x20               DE 75645 Frankfurt\n   USt.-Id.-Nr.:   DE136695976\nKäufer\n\
              \x20  Name:        Mieter GmbH",
                ["Grund GmbH & Co.", "Musterstraße 42, DE 75645 Frankfurt", "DE136695976"]),
            ("FACTUUR   Coolblau B.V.\n          Weena 664\n          3012 CN Rotterdam\n          Nederland\n\n\
              \x20         BTW NL810433941B01",
                ["Coolblau B.V.", "Weena 664, 3012 CN Rotterdam, Nederland", "NL810433941B01"]),
            ("Invoice 12\n\nSold By : Retail Services Ltd.,\nBill to\nSomebody Inc.\n1 Street",
                ["Retail Services Ltd.", "-", "-"]),
            ("Operations Ltd\nSeller Street 4\nBath BA1 5QT\nVAT Reg No GB 555 0123 45\n\nInvoice 12",
                ["Operations Ltd", "Seller Street 4, Bath BA1 5QT", "GB 555 0123 45"]),
        ];
        for (drawing, expected) in table {
            assert_eq!(read(drawing), expected.map(str::to_owned), "{drawing}");
        }
    }

    #[test]
    fn the_customers_vat_id_is_not_taken() {
        let drawing = "N° TVA client   FR19787878784\n\n\nNETPRESSE   TVA FR63530848134";
        assert_eq!(read(drawing)[2], "FR63530848134");
        assert_eq!(read("Customer VAT Number   ESA12345674")[2], "-");
    }
}
