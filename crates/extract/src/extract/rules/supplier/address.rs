//! The address under a name, and how a line with a town is recognised.

use super::{NameCandidate, SupplierSearch, compact_name, is_next_line, tidy_name};
use crate::extract::rules::certainty::ReadingSign;
use crate::extract::rules::layout::TextCell;
use crate::extract::rules::spots::LabelMatch;

impl SupplierSearch<'_> {
    /// The name with its second line, if the legal form stands there.
    pub(super) fn full_name(&self, candidate: &NameCandidate<'_>) -> (String, usize) {
        let name = candidate.name.clone();
        if candidate.address.is_some() || self.has_legal_form(&name) {
            return (name, 0);
        }
        let Some((_, below)) = self.layout.cell_below(candidate.cell, 0.9) else {
            return (name, 0);
        };
        let more = tidy_name(&below.joined_text());
        let aligned = (below.area.x - candidate.cell.area.x).abs() < below.area.h;
        let belongs = aligned
            && self.is_name(&more)
            && self.has_legal_form(&more)
            && !more.contains(char::is_numeric);
        if belongs { (format!("{name} {more}"), 1) } else { (name, 0) }
    }

    /// The address that belongs to a name, and how it was found.
    pub(super) fn address_of(
        &self,
        best: &NameCandidate<'_>,
        joined: usize,
    ) -> (Option<String>, Vec<ReadingSign>) {
        if let Some(address) = best.address.clone() {
            return (Some(address), vec![ReadingSign::AddressOnLine]);
        }
        if let Some(address) = self.address_below(best.cell, joined) {
            return (Some(address), vec![ReadingSign::AddressUnder]);
        }
        let compact = compact_name(&best.name);
        let mut same = self.layout.cells.iter().zip(&self.folded);
        let elsewhere = same.find_map(|(cell, text)| {
            // The same name over an address further down, or at the front of a sender line.
            let sender =
                || self.sender_parts(cell).filter(|(name, _)| compact_name(name) == compact);
            match text.replace(' ', "") == compact {
                true => self.address_below(cell, joined),
                false => sender().map(|(_, address)| address),
            }
        });
        match elsewhere.or_else(|| self.labelled_address(best.cell)) {
            Some(address) => (Some(address), vec![ReadingSign::AddressElsewhere]),
            None => (None, vec![ReadingSign::NoAddress]),
        }
    }

    /// Up to five lines under the name, as long as they look like parts of an address.
    pub(super) fn address_below(&self, cell: &TextCell, skip: usize) -> Option<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut at = cell;
        for line in 0..6 + skip {
            let below = self.layout.rows_from(at).filter(|c| is_next_line(at, c));
            let next = below.min_by(|a, b| a.area.y.total_cmp(&b.area.y));
            let next = next.or_else(|| self.line_after_gap(at, line == 0));
            let Some(next) = next else { break };
            at = next;
            if line < skip {
                continue;
            }
            let text = tidy_name(&next.joined_text());
            let labelled = self.spots.all.iter().any(|spot| {
                spot.words.start == 0
                    && self.spots.cell_of(spot).is_some_and(|c| std::ptr::eq(c, next))
                    && !matches!(
                        spot.field.as_str(),
                        "party_address" | "invoice_date" | "subtotal" | "legal_form"
                    )
                    && !spot.field.starts_with("column_")
                    && !is_within_text(spot, next)
            });
            if labelled || text.contains('@') || text.contains("www.") || text.contains("://") {
                break;
            }
            lines.push(text);
            let last = lines.last().is_some_and(|line| !line.contains(char::is_numeric));
            if last && lines.iter().any(|line| has_postal_code(line)) {
                break;
            }
        }
        let town = lines.iter().rposition(|line| has_postal_code(line))?;
        let country =
            lines.get(town + 1).filter(|line| !line.contains(char::is_numeric) && line.len() <= 20);
        let kept = town + 1 + usize::from(country.is_some());
        Some(lines.get(..kept)?.join(", "))
    }

    /// The line with the town, where an empty line parts it from the street, or the one that a wider
    /// gap parts from the name.
    fn line_after_gap<'s>(&'s self, street: &TextCell, name: bool) -> Option<&'s TextCell> {
        let mut near = self.layout.rows_from(street);
        near.find(|cell| {
            let gap = cell.area.y - street.area.bottom();
            cell.page == street.page
                && (0.0..1.8 * street.area.h).contains(&gap)
                && (cell.area.x - street.area.x).abs() < 0.6 * street.area.h
                && (name || has_postal_code(&cell.joined_text()))
        })
    }

    /// `Address: Street 1` with the town below, in the section of the name.
    pub(super) fn labelled_address(&self, name: &TextCell) -> Option<String> {
        let spot = self.spots.of_field("party_address").find(|spot| {
            spot.words.start == 0
                && self.spots.cell_of(spot).is_some_and(|cell| {
                    cell.page == name.page && (name.row..name.row + 6).contains(&cell.row)
                })
        })?;
        let beside = self.spots.value_candidates(spot);
        let first = beside.first()?;
        let street = tidy_name(&first.value_words().join(" "));
        if has_postal_code(&street) && street.len() > 20 {
            return Some(street);
        }
        let (_, town) = self.layout.cell_below(first.cell, 1.8)?;
        has_postal_code(&town.joined_text())
            .then(|| format!("{street}, {}", tidy_name(&town.joined_text())))
    }
}

/// `Seller Street 5` names no seller: a party's heading stands alone or ends in a colon.
fn is_within_text(spot: &LabelMatch, cell: &TextCell) -> bool {
    let party = matches!(spot.field.as_str(), "supplier" | "customer" | "party_name" | "payee");
    let last = cell.words.get(spot.words.end.saturating_sub(1));
    let closed = last.is_some_and(|word| word.ends_with(':'))
        || cell.words.get(spot.words.end).is_some_and(|word| word == ":");
    party && !closed && spot.words.end < cell.words.len()
}

/// Four or more digits in one word (or the British and Dutch forms' digits) beside a word.
pub(super) fn has_postal_code(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let groups =
        words.iter().filter(|word| word.len() == 4 && word.chars().all(|c| c.is_ascii_digit()));
    // An account, printed in groups of four.
    if groups.count() >= 3 {
        return false;
    }
    let code = words.iter().any(|word| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let short = word.trim_matches(',').len() <= 9;
        // Portugal 4050-253, Brazil 01310-100; a phone number has its dash elsewhere.
        let parted = word.trim_matches(',').split_once('-').is_some_and(|(town, street)| {
            matches!((town.len(), street.len()), (4 | 5, 3)) && digits == town.len() + street.len()
        });
        let mixed = word
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase() || matches!(c, '-' | ','));
        short && mixed && ((3..=6).contains(&digits) || parted)
    });
    let british = words.windows(2).any(|pair| match pair {
        [out, inward] => {
            let inward = inward.trim_matches(',');
            let shape = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            inward.len() == 3
                && inward.starts_with(|c: char| c.is_ascii_digit())
                && inward.chars().skip(1).all(|c| c.is_ascii_uppercase())
                && (2..=4).contains(&out.len())
                && out.chars().all(shape)
        }
        _ => false,
    });
    (code && words.len() >= 2 && text.contains(char::is_alphabetic)) || british
}
