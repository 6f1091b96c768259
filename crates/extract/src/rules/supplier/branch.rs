//! Receipts of shops: a brand heads them, its branch is under it, and the foot names the company of
//! both.

use super::relation::HEADING;
use super::{NameCandidate, NameSign, SupplierSearch};
use crate::rules::certainty::ReadingSign;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// Letters of the shortest word that a brand and its company share.
const MIN_SHARED_LETTERS: usize = 4;

/// Words of the name of a branch.
const MAX_WORDS: usize = 5;

/// An address with how it was found.
type ReadAddress = (Option<String>, Vec<ReadingSign>);

/// `Northtown Mall Store` under a brand in larger letters: which of its shops it is.
pub(super) fn is_branch_under(line: &TextCell, brand: &TextCell) -> bool {
    let folded = fold_text(&line.joined_text());
    let words: Vec<&str> = folded.split(' ').collect();
    let mut ends = [words.first(), words.last()].into_iter().flatten();
    brand.area.h > HEADING * line.area.h
        && (2..=MAX_WORDS).contains(&words.len())
        && ends.any(|word| vocabulary().branch.has(word))
}

impl SupplierSearch<'_> {
    /// `Vale Ltd t/a The Kettle`: the company before the brand that it trades under.
    pub(super) fn before_trading_name(&self, name: String) -> String {
        let words: Vec<&str> = name.split(' ').collect();
        let is_mark = |at: usize, count: usize| {
            let mark = words.get(at..at + count).map(|words| fold_text(&words.join(" ")));
            mark.is_some_and(|mark| vocabulary().trading_as.has(&mark))
        };
        let at = (1..words.len()).find(|at| is_mark(*at, 1) || is_mark(*at, 2));
        let company = at.and_then(|at| words.get(..at)).map(|words| words.join(" "));
        company.filter(|company| self.ends_in_legal_form(company)).unwrap_or(name)
    }

    /// `Kettle Retail Sdn Bhd (884120-W)` at the foot of a paper that `kettle collection` heads:
    /// the one company there with its form and its number in a register, and the first word of the
    /// brand.
    pub(super) fn company_at_foot<'c, 'b>(
        &self,
        best: &NameCandidate<'_>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        use NameSign::{
            Attention, Customer, First, LegalForm, Numbered, OtherValue, Prose, Window,
        };
        let told = [Attention, Customer, OtherValue, Prose, Window];
        let plain = |one: &NameCandidate<'_>| !one.has_any(&told);
        let brand = candidates.iter().find(|one| one.has(First))?;
        let own = fold_text(brand.name.split(' ').next().unwrap_or_default());
        let company = [best, brand].iter().any(|one| one.has(LegalForm));
        if company || !plain(brand) || own.chars().count() < MIN_SHARED_LETTERS {
            return None;
        }
        let mut found = candidates.iter().filter(|one| {
            [LegalForm, Numbered].iter().all(|sign| one.signs.contains(sign))
                && plain(one)
                && self.is_under_amounts(one.cell)
                && fold_text(one.name.split(' ').next().unwrap_or_default()) == own
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// The address that heads a receipt, where the company named at the foot has none.
    pub(super) fn or_address_of_head(
        &self,
        found: ReadAddress,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> ReadAddress {
        use NameSign::{Attention, Customer, First, LegalForm, Window};
        let theirs = [Attention, Customer, LegalForm, Window];
        let head = || {
            let first = candidates.iter().find(|one| one.has(First))?;
            let plain = !first.has_any(&theirs);
            let foot = best.has(LegalForm) && self.is_under_amounts(best.cell);
            let (address, signs) = self.address_of(first, 0);
            (plain && foot && address.is_some()).then_some((address, signs))
        };
        match found.0 {
            None => head().unwrap_or(found),
            Some(_) => found,
        }
    }

    /// Whether a cell is under the last amount of its page.
    fn is_under_amounts(&self, cell: &TextCell) -> bool {
        let amounts = self.last_amounts.get(cell.page).copied().flatten();
        amounts.is_some_and(|row| cell.row > row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::label_matches::LabelMatches;
    use super::super::super::layout::CellLayout;
    use super::super::super::layout::tests::transcript;
    use super::super::{SupplierSearch, find_supplier};
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    const PAPER: &str = "        kettle collection\n        Alder Mall Store\n        F1-44, Alder Mall\n\
        \x20     40170 Northtown, Selangor\n       Tel 03-5550 1937\n  (GST Reg. No.: 001730284416)\n\n\
        Tax Invoice\nNo.: SA14-10027318\n20 Jun 2026  15:44:09\n\nBLOUSE   59.90\nTOTAL MYR   59.90\n\n\
        Goods sold are not refundable.\n";

    /// Name and address on a paper whose first line is set in large letters.
    fn read(kind: &str, drawing: &str) -> [String; 2] {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get(kind).unwrap();
        let mut page = transcript(&[drawing]);
        page.pages[0].lines[0].words.iter_mut().for_each(|word| {
            word.bounding_box.y -= 5.0;
            word.bounding_box.h = 15.0;
        });
        let layout = CellLayout::new(&page);
        let found = find_supplier(&LabelMatches::new(&layout, kind));
        [found.name, found.address].map(|found| found.map_or("-".to_owned(), |found| found.value))
    }

    #[test]
    fn the_company_of_the_foot_has_the_brand_and_the_address_that_head_the_paper() {
        let address = "F1-44, Alder Mall, 40170 Northtown, Selangor";
        for kind in ["receipt", "invoice"] {
            let own = format!("{PAPER}Kettle Apparel Sdn Bhd (884120-W)");
            assert_eq!(read(kind, &own), ["Kettle Apparel Sdn Bhd", address], "{kind}");
        }
    }

    #[test]
    fn a_company_stands_before_the_brand_that_it_trades_under() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("receipt").unwrap();
        let layout = CellLayout::new(&transcript(&["Receipt 12"]));
        let matches = LabelMatches::new(&layout, kind);
        let search = SupplierSearch::new(&matches);
        for (text, expected) in [
            ("Vale Ltd t/a The Kettle", "Vale Ltd"),
            ("Vale Ltd trading as The Kettle", "Vale Ltd"),
            ("Ida Birch t/a The Kettle", "Ida Birch t/a The Kettle"),
        ] {
            assert_eq!(search.before_trading_name(text.to_owned()), expected);
        }
    }
}
