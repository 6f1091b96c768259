//! How the lines of a head or a foot relate: continued lines, forms of address, the neighbours of
//! repeated names.

use super::address::{AddressLines, is_registry_line, is_street_and_town, is_tagline};
use super::name::begins_with_form;
use super::postal_code::has_postal_code;
use super::{
    BRACKETS, FoundValue, NameCandidate, NameSign, SupplierSearch, compact_name, is_next_line,
    is_register_number, tidy_name,
};
use crate::rules::characters::{count_digits, is_digits};
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::{fold_text, vat_digits};

/// Share of the narrower of two lines that the other one covers where they are of one column; a
/// till has no other.
const COLUMN: f32 = 0.6;
const COLUMN_OF_TILL: f32 = 0.3;

/// Share of a page's height of its head.
const HEAD: f32 = 0.17;

/// Letters of a heading are larger than those under it by this factor.
pub(super) const HEADING: f32 = 1.25;

/// Letters of the shortest brand that a company is looked for by.
const MIN_BRAND_LETTERS: usize = 4;

/// Sentences about brands that are looked into.
const MAX_SAID: usize = 20;

/// Letters of a word that makes two names one firm's.
const MIN_DISTINCTIVE_LETTERS: usize = 5;

/// Marks between the trades of a business.
const TRADE_MARKS: [&str; 6] = [" - ", " – ", " · ", " • ", " | ", ", "];

/// Cells behind a name in one line that can be its street and town.
const CELLS_BEHIND: usize = 4;

/// Whether a text ends in a number in brackets that can be a register's, and is no year.
fn ends_in_register_number(text: &str) -> bool {
    let inner = text.trim_end().strip_suffix([')', ']', '>']);
    let number = inner.and_then(|text| text.get(text.rfind(BRACKETS)? + 1..));
    number.is_some_and(|number| is_register_number(number) && count_digits(number) > 4)
}

impl SupplierSearch<'_> {
    /// Whether `below` is the next line of the same block. A receipt is one column, and so is the
    /// head of a letter: the only cell of the next row continues the block even if it is not
    /// exactly centred.
    pub(super) fn is_continued_by(&self, above: &TextCell, below: &TextCell) -> bool {
        let share = if self.matches.style.one_column { COLUMN_OF_TILL } else { COLUMN };
        is_next_line(above, below)
            || (self.matches.style.one_column || self.heads_page(above))
                && self.layout.row_cells(above.row).len() == 1
                && self.layout.row_cells(below.row).len() == 1
                && above.page == below.page
                && below.middle_y() > above.area.bottom()
                && below.area.y - above.area.bottom() < 0.9 * above.area.h.max(below.area.h)
                && above.overlap_x(below) > share * above.area.w.min(below.area.w)
    }

    pub(super) fn heads_page(&self, line: &TextCell) -> bool {
        line.page == 0 && self.layout.depth_on_page(line) < HEAD
    }

    /// `Repairs - Towing` right under a name in large letters: the trade, over the same address.
    pub(super) fn mark_trades(&self, merged: &mut [NameCandidate<'_>]) {
        use NameSign::{
            Attention, Customer, Digits, Domain, First, Labelled, Large, LegalForm, OneWord,
            OtherValue, Place, Prose, Repeated, SenderLine, TillFirst, Witnessed,
        };
        // A text that is no name has no trade under it: `Kettle, Birch and Alder` under `Your
        // logo`.
        let theirs = [Attention, Customer, Digits, OneWord, OtherValue, Place, Prose];
        let named = [Domain, First, Labelled, Large, LegalForm, Repeated, SenderLine, Witnessed];
        let under: Vec<&TextCell> = merged
            .iter()
            .filter(|one| one.has(Large) && !one.has_any(&theirs))
            .filter_map(|one| self.line_under_heading(one.cell))
            .collect();
        // The first line of a receipt is seldom larger.
        let mut shops = merged.iter().filter(|one| one.has(TillFirst) && !one.has_any(&theirs));
        let below_shop = shops.next().and_then(|one| {
            self.layout.rows_from(one.cell).find(|below| self.is_continued_by(one.cell, below))
        });
        for one in merged.iter_mut().filter(|one| !one.has_any(&named)) {
            let parted = TRADE_MARKS.iter().any(|mark| one.name.contains(mark));
            let of_shop = below_shop.is_some_and(|line| std::ptr::eq(line, one.cell));
            if parted && under.iter().any(|line| std::ptr::eq(*line, one.cell))
                || of_shop && (parted || is_tagline(&one.name))
            {
                one.signs.push(NameSign::Trades);
            }
        }
    }

    /// The line under a heading in larger letters, which a wider gap parts from it.
    pub(super) fn line_under_heading(&self, heading: &TextCell) -> Option<&TextCell> {
        self.layout.rows_from(heading).find(|cell| {
            let gap = cell.area.y - heading.area.bottom();
            let aligned = (cell.area.x - heading.area.x).abs() < 0.6 * heading.area.h
                || (middle_of_cell(cell) - middle_of_cell(heading)).abs() < 0.8 * heading.area.h;
            cell.page == heading.page
                && heading.area.h > HEADING * cell.area.h
                && (0.0..1.8 * heading.area.h).contains(&gap)
                && aligned
        })
    }

    /// Whether a receipt begins with another name right over this one: shop and owner are
    /// ambiguous. They are not where a company's register number is with it, or the valid
    /// identifier of the only company.
    pub(super) fn is_under_other_name(
        &self,
        best: &NameCandidate<'_>,
        vat: Option<&FoundValue<String>>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        let first = candidates.iter().find(|one| one.has(NameSign::TillFirst));
        let has = |signs: &[NameSign]| signs.iter().all(|sign| best.signs.contains(sign));
        !(has(&[NameSign::LegalForm, NameSign::Numbered])
            || has(&[NameSign::LegalForm])
                && has(&[NameSign::OnlyCompany, NameSign::VatNear])
                && vat.is_some_and(|id| vat_digits::check_digits_hold(&id.value) == Some(true)))
            && first.is_some_and(|first| {
                let words = first.name.split(' ').count();
                !std::ptr::eq(first.cell, best.cell)
                    && words > 1
                    && self.is_continued_by(first.cell, best.cell)
                    && !self.is_same_firm(best, first)
                    && !self.is_same_firm(first, best)
            })
    }

    /// `Kettle Foods Sdn Bhd (604518-H)`: a number in a register in brackets, behind the name or
    /// alone in the next line.
    pub(super) fn has_register_number(&self, name: &TextCell) -> bool {
        let next = self.layout.rows_from(name).find(|next| self.is_continued_by(name, next));
        ends_in_register_number(&name.joined_text())
            || next
                .map(TextCell::joined_text)
                .is_some_and(|text| text.starts_with(BRACKETS) && ends_in_register_number(&text))
    }

    /// Whether another company is over an address as well, and has a brand, a domain or the foot of
    /// the page for it, while this one has none: an identifier near this one may be the
    /// recipient's.
    pub(super) fn has_equal_company(
        &self,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        use NameSign::{
            AddressBelow, AmountRow, Attention, Contact, Customer, Digits, Domain, Foot, Labelled,
            Large, LegalForm, Letterhead, OnTill, OtherValue, Place, Prose, SenderLine, Window,
            Witnessed,
        };
        let own =
            [Contact, Domain, Foot, Labelled, Large, Letterhead, OnTill, SenderLine, Witnessed];
        let told = [AmountRow, Attention, Customer, Digits, OtherValue, Place, Prose, Window];
        !best.has_any(&own)
            && candidates.iter().any(|one| {
                one.has(AddressBelow)
                    && one.has(LegalForm)
                    && !one.has_any(&told)
                    && !self.is_same_firm(best, one)
                    && !self.is_same_firm(one, best)
                    && candidates.iter().any(|brand| {
                        brand.has_any(&[Domain, Foot, Large, Witnessed])
                            && self.is_same_firm(one, brand)
                    })
            })
    }

    /// Whether this name has only its legal form, its position and an identifier, which recipients
    /// have as well, and another one heads the page or is over an address with contact details:
    /// either of two unlabelled blocks may be the recipient's.
    pub(super) fn has_equal_block(
        &self,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        use NameSign::{
            AddressBelow, AmountRow, Attention, Contact, Customer, Digits, First, Head, LegalForm,
            ManyWords, OneWord, OnlyCompany, OtherValue, OverName, Place, PlainAddress, Prose,
            Small, Tangled, Trades, Upper, VatNear, Window,
        };
        let weak =
            [AddressBelow, Head, LegalForm, ManyWords, OnlyCompany, PlainAddress, Upper, VatNear];
        let told = [
            AmountRow, Attention, Customer, Digits, OneWord, OtherValue, OverName, Place, Prose,
            Small, Tangled, Trades, Window,
        ];
        let own = distinctive_folded_words(&best.name);
        let related = |one: &NameCandidate<'_>| {
            distinctive_folded_words(&one.name).iter().any(|w| own.contains(w))
        };
        let has_all = |one: &NameCandidate<'_>, signs: &[NameSign]| {
            signs.iter().all(|sign| one.signs.contains(sign))
        };
        !self.matches.style.shop_head
            && best.signs.iter().all(|sign| weak.contains(sign))
            && candidates.iter().any(|one| {
                (has_all(one, &[First, Head]) || has_all(one, &[AddressBelow, Contact]))
                    && !told.iter().any(|sign| one.signs.contains(sign))
                    && !related(one)
                    && !self.is_same_firm(best, one)
                    && !self.is_same_firm(one, best)
            })
    }

    /// The company with a name that begins with the brand heading the page in large letters:
    /// `ALDER` over the letter of `Alder Works Ltd`.
    pub(super) fn company_of_brand<'c, 'b>(
        &self,
        best: &NameCandidate<'_>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        use NameSign::LegalForm;
        let brand = fold_text(&best.name);
        let large = best.has(NameSign::Large) && !best.has(LegalForm);
        if self.matches.style.shop_head
            || !large
            || brand.len() < MIN_BRAND_LETTERS
            || !is_plain_name(best)
        {
            return None;
        }
        let mut companies = candidates.iter().filter(|one| {
            let rest = fold_text(&one.name);
            let rest = rest.strip_prefix(&brand).filter(|rest| rest.starts_with(' '));
            rest.is_some() && one.has(LegalForm) && is_plain_name(one)
        });
        companies.next().filter(|_| companies.next().is_none())
    }

    /// `Kettle Windows is a trading name of Vale Ltd`: the sentence names the issuer.
    pub(super) fn mark_brand_owners(&self, merged: &mut [NameCandidate<'_>]) {
        let said = self
            .folded
            .iter()
            .filter(|text| vocabulary().trading_name.iter().any(|phrase| text.contains(phrase)));
        for text in said.take(MAX_SAID) {
            let owned = |name: &str| {
                let mut said =
                    vocabulary().trading_name.iter().filter_map(|phrase| text.split_once(phrase));
                said.any(|(_, owner)| owner.trim_start().starts_with(name))
            };
            for one in merged.iter_mut().filter(|one| one.has(NameSign::LegalForm)) {
                if owned(&fold_text(&one.name)) && !one.has(NameSign::Labelled) {
                    one.signs.push(NameSign::Labelled);
                }
            }
        }
    }

    /// Whether the text has a legal form that does not belong to a place.
    pub(super) fn names_company(&self, text: &str) -> bool {
        self.has_legal_form(text) && !self.is_form_of_place(text)
    }

    /// Lines under a form of address: `De heer L. Kettle`, over his street.
    pub(super) fn addressed_cells(&self) -> Vec<usize> {
        let spoken_to = self.matches.leading("attention");
        let first = spoken_to.filter_map(|label_match| self.matches.cell_of(label_match));
        let blocks = first.filter(|cell| self.matches.style.letter && !self.is_reached_below(cell));
        let lines = blocks.flat_map(|cell| self.block_below(cell));
        lines.map(|line| line.index).collect()
    }

    /// `3738 CC Northtown`, `Bridge Street, Westport, Co. Mayo`: a legal form elsewhere is here
    /// part of a postal code, or precedes the name of a county.
    pub(super) fn is_form_of_place(&self, text: &str) -> bool {
        if self.ends_in_legal_form(text) || begins_with_form(text) {
            return false;
        }
        !text.split(", ").any(|part: &str| {
            let folded = fold_text(part);
            let words: Vec<&str> = folded.split(' ').collect();
            let code = |at: usize| {
                let before = at.checked_sub(1).and_then(|at| words.get(at));
                before.is_some_and(|word| word.len() == 4 && is_digits(word))
                    && words.get(at).is_some_and(|word| word.len() == 2)
            };
            (1..words.len())
                .any(|at| self.has_legal_form_at(words.get(at..).unwrap_or_default()) && !code(at))
        })
    }

    fn has_legal_form_at(&self, words: &[&str]) -> bool {
        self.labels.has_label_at("legal_form", words)
    }

    /// Street and town behind the name where it is printed again, parted by bars or gaps: `Kettle
    /// Works | Mill Lane 5 | 82216 Northtown`.
    pub(super) fn address_beside_mention(&self, name: &NameCandidate<'_>) -> Option<AddressLines> {
        let own = [compact_name(&name.name), compact_name(&self.full_name(name).0)];
        let cells = self.layout.cells.iter().zip(&self.folded).enumerate();
        let mentions = cells.filter(|(_, (cell, folded))| {
            own.contains(&folded.replace(' ', "")) && !self.is_customer(cell)
        });
        mentions.map(|(index, _)| index).find_map(|index| {
            let behind = self.layout.right_of(index).iter().take(CELLS_BEHIND);
            let parts: Vec<(String, f32)> = behind
                .map(|cell| (tidy_name(&cell.joined_text()), cell.confidence))
                .filter(|(text, _)| !text.is_empty())
                .collect();
            (0..parts.len()).find_map(|at| {
                let (street, sure) = parts.get(at)?;
                if is_street_and_town(street) {
                    let lines = vec![street.clone()];
                    return Some(AddressLines { lines, town: true, least: *sure });
                }
                let (town, other) = parts.get(at + 1)?;
                let holds = !is_registry_line(town)
                    && !town.contains([':', '@'])
                    && has_postal_code(town)
                    && !has_postal_code(street);
                let lines = vec![street.clone(), town.clone()];
                holds.then(|| AddressLines { lines, town: true, least: sure.min(*other) })
            })
        })
    }
}

fn is_plain_name(one: &NameCandidate<'_>) -> bool {
    !one.signs.iter().any(|sign: &NameSign| {
        matches!(sign, NameSign::Attention | NameSign::Customer | NameSign::Window)
    })
}

/// A brand over its company has a word of it.
fn distinctive_folded_words(name: &str) -> Vec<String> {
    let folded = fold_text(name);
    let telling = folded.split(' ').filter(|word| word.len() >= MIN_DISTINCTIVE_LETTERS);
    telling.map(str::to_owned).collect()
}

fn middle_of_cell(cell: &TextCell) -> f32 {
    cell.area.x + cell.area.w / 2.0
}

impl<'a> SupplierSearch<'a> {
    /// `From` in a row of headings, each with its block right below: the name is under it, and
    /// another heading beside it.
    pub(super) fn named_in_strip(
        &self,
        label_match: &LabelMatch,
    ) -> Option<(String, &'a TextCell)> {
        let heading = self.matches.cell_of(label_match)?;
        let below = |cell: &'a TextCell| {
            let below = self.layout.cell_below(cell, 1.2)?;
            ((below.area.x - cell.area.x).abs() < 0.6 * cell.area.h).then_some(below)
        };
        let beside = self.layout.right_of(label_match.cell).first()?;
        let (own, other) = (below(heading)?, below(beside)?);
        let whole = label_match.words == (0..heading.words.len());
        let name = tidy_name(&own.joined_text());
        (whole && own.row == other.row && beside.words.len() <= 2 && self.is_name(&name))
            .then_some((name, own))
    }
}

#[cfg(test)]
mod tests;
