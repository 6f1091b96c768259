//! The evidence at the boundary between two pages, from four sides.

use serde::{Deserialize, Serialize};

use crate::boundary_sign::{BoundarySign, EvidenceSide};
use crate::signs::PageSigns;
use crate::words::DATA;

/// Share of the words of two pages' stationery that is common to both: alike at least so much,
/// different at most so much.
const ALIKE: f32 = 0.6;
const DIFFERENT: f32 = 0.1;
/// By how much the proportions of paper differ that is another format.
const RATIO_MARGIN: f32 = 0.04;
/// Characters of a name that are compared.
const MIN_NAME_CHARS: usize = 4;

/// Conclusion from the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundaryVerdict {
    /// A document ends here, with certainty.
    Cut,
    /// The document goes on, with certainty.
    Join,
    /// Rather a cut; a person decides.
    MaybeCut,
    /// Rather a join; a person decides.
    MaybeJoin,
}

/// The boundary before a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boundary {
    /// The page behind it, from 1.
    pub page: u32,
    /// The conclusion.
    pub verdict: BoundaryVerdict,
    /// The evidence.
    pub signs: Vec<BoundarySign>,
}

/// The document so far: its first page, what any of its pages says, and its last page with text.
pub(crate) struct OpenPart<'a> {
    pages: Vec<&'a PageSigns>,
    blank_behind: bool,
}

impl<'a> OpenPart<'a> {
    pub(crate) fn new(first: &'a PageSigns) -> Self {
        Self { pages: vec![first], blank_behind: false }
    }

    pub(crate) fn add(&mut self, page: &'a PageSigns) {
        if page.blank {
            self.blank_behind = true;
        } else {
            self.pages.push(page);
            self.blank_behind = false;
        }
    }

    /// The evidence between this document and the next page with text.
    pub(crate) fn weigh(&self, next: &PageSigns, page: u32) -> Boundary {
        let mut signs = Vec::new();
        self.add_counts(next, &mut signs);
        self.add_ends(&mut signs);
        let differs = self.add_identities(next, &mut signs);
        self.add_head(next, differs, &mut signs);
        Boundary { page, verdict: verdict_of(&signs), signs }
    }

    fn last(&self) -> Option<&'a PageSigns> {
        self.pages.last().copied()
    }

    fn number(&self) -> Option<&'a str> {
        self.pages.iter().find_map(|page| page.number.as_deref())
    }

    /// Whether the next page has a total although there is one already.
    fn is_closed_by(&self, next: &PageSigns) -> bool {
        next.closed && self.pages.iter().any(|page| page.closed)
    }

    /// Evidence of the printed page numbers.
    fn add_counts(&self, next: &PageSigns, signs: &mut Vec<BoundarySign>) {
        let before = self.last().and_then(|page| page.count);
        if let Some(count) = next.count {
            let follows = before.is_some_and(|it| it.number + 1 == count.number);
            match before {
                Some(it) if follows && it.total.is_some() && it.total == count.total => {
                    signs.push(BoundarySign::NextPage);
                }
                _ if follows => signs.push(BoundarySign::NextNumber),
                _ if count.number == 1 && count.named => signs.push(BoundarySign::FirstPage),
                _ if count.number > 1 => signs.push(BoundarySign::LaterPage),
                _ => {}
            }
        }
        if let Some(before) = before.filter(|it| it.named)
            && let Some(total) = before.total
        {
            let sign = match before.number == total {
                true => BoundarySign::LastPage,
                false => BoundarySign::Unfinished,
            };
            signs.push(sign);
        }
    }

    /// Whether the document before looks complete.
    fn add_ends(&self, signs: &mut Vec<BoundarySign>) {
        if self.pages.iter().any(|page| page.closed) {
            signs.push(BoundarySign::Closed);
        }
        if self.pages.iter().any(|page| !page.accounts.is_empty()) {
            signs.push(BoundarySign::AccountNamed);
        }
        if self.blank_behind {
            signs.push(BoundarySign::BlankBack);
        }
    }

    /// Compares numbers, issuers and days; whether the next page has a number of its own.
    fn add_identities(&self, next: &PageSigns, signs: &mut Vec<BoundarySign>) -> bool {
        let carried = self.last().is_some_and(|page| !page.carried.is_disjoint(&next.carried));
        let is_parted =
            [BoundarySign::FirstPage, BoundarySign::LastPage].iter().any(|it| signs.contains(it));
        if carried && !is_parted {
            signs.push(BoundarySign::Carried);
        }
        let mut is_other = false;
        match (self.number(), next.number.as_deref()) {
            (Some(one), Some(other)) if one == other => signs.push(BoundarySign::SameNumber),
            (Some(one), _) if next.mentions(one) => signs.push(BoundarySign::NumberMentioned),
            (Some(_), Some(other)) if !self.pages.iter().any(|page| page.mentions(other)) => {
                is_other = true;
                signs.push(BoundarySign::NumberDiffers);
            }
            _ => {}
        }
        let days = self.pages.iter().find_map(|page| page.day.as_deref()).zip(next.day.as_deref());
        if days.is_some_and(|(one, other)| one != other) {
            signs.push(BoundarySign::DayDiffers);
        }
        let names =
            self.pages.iter().find_map(|page| page.issuer.as_deref()).zip(next.issuer.as_deref());
        if names.is_some_and(|(one, other)| are_other_names(one, other)) {
            signs.push(BoundarySign::IssuerDiffers);
        }
        match self.compare_accounts(next) {
            Some(true) if !is_other && !self.is_closed_by(next) => {
                signs.push(BoundarySign::SameAccount);
            }
            Some(false) => signs.push(BoundarySign::AccountDiffers),
            _ => {}
        }
        is_other
    }

    /// Whether the issuers' accounts and identifiers are the same; none if nothing is known of one.
    fn compare_accounts(&self, next: &PageSigns) -> Option<bool> {
        let accounts = self.pages.iter().flat_map(|page| &page.accounts);
        let mut accounts = accounts.peekable();
        if accounts.peek().is_some() && !next.accounts.is_empty() {
            return Some(accounts.any(|account| next.accounts.contains(account)));
        }
        let own = self.pages.iter().find_map(|page| page.vat_id.as_ref())?;
        let other = next.vat_id.as_ref()?;
        let known = next.vat_ids.contains(own)
            || self.pages.iter().any(|page| page.vat_ids.contains(other));
        Some(own == other || known)
    }

    /// Head of the next page, and its paper.
    fn add_head(&self, next: &PageSigns, is_other: bool, signs: &mut Vec<BoundarySign>) {
        let begins = [
            (next.titled, BoundarySign::Title),
            (next.number.is_some(), BoundarySign::OwnNumber),
            (next.day.is_some(), BoundarySign::OwnDay),
            (next.issuer.is_some(), BoundarySign::OwnIssuer),
        ];
        let found = begins.iter().filter(|(is_there, _)| *is_there);
        signs.extend(found.map(|(_, sign)| *sign));
        if next.supporting {
            signs.push(BoundarySign::Supporting);
        }
        let Some(before) = self.last() else { return };
        let is_named = next.titled || next.number.is_some() || next.day.is_some();
        let is_known = is_named || !next.accounts.is_empty() || next.vat_id.is_some();
        let (head, foot) = (likeness(&before.head, &next.head), likeness(&before.foot, &next.foot));
        let alike = head.into_iter().chain(foot).reduce(f32::max);
        let is_strange = alike.is_some_and(|alike| alike <= DIFFERENT);
        let has_own_total = self.is_closed_by(next) || (next.closed && is_strange);
        if !is_known && !has_own_total {
            signs.push(BoundarySign::Headless);
        }
        match alike {
            Some(alike) if alike >= ALIKE && !is_other && !self.is_closed_by(next) => {
                signs.push(BoundarySign::SameStationery);
            }
            Some(alike) if alike <= DIFFERENT => signs.push(BoundarySign::StationeryDiffers),
            _ => {}
        }
        if (before.ratio - next.ratio).abs() > RATIO_MARGIN {
            signs.push(BoundarySign::SizeDiffers);
        }
    }
}

/// Whether neither name is a part of the other.
fn are_other_names(one: &str, other: &str) -> bool {
    let long = one.chars().count().min(other.chars().count()) >= MIN_NAME_CHARS;
    long && !one.contains(other) && !other.contains(one)
}

/// Share of all words that both have; none where one has too few.
fn likeness(
    one: &std::collections::BTreeSet<String>,
    other: &std::collections::BTreeSet<String>,
) -> Option<f32> {
    if one.len().min(other.len()) < 3 {
        return None;
    }
    let [both, all] = [one.intersection(other).count(), one.union(other).count()];
    #[expect(clippy::cast_precision_loss, reason = "words at an end of a page")]
    let share = both as f32 / all as f32;
    Some(share)
}

fn verdict_of(signs: &[BoundarySign]) -> BoundaryVerdict {
    let thresholds = &DATA.thresholds;
    let [begins, ends, differs, continues] =
        [EvidenceSide::Begins, EvidenceSide::Ends, EvidenceSide::Differs, EvidenceSide::Continues]
            .map(|side| weight_of(signs, side));
    let is_cut =
        begins >= thresholds.begins && ends >= thresholds.ends && differs >= thresholds.differs;
    let restarts = signs.contains(&BoundarySign::FirstPage);
    let against = differs + if restarts { begins } else { 0.0 };
    if is_cut && continues <= 0.0 {
        BoundaryVerdict::Cut
    } else if continues >= thresholds.continues && continues - against >= thresholds.margin {
        BoundaryVerdict::Join
    } else if differs + begins > continues {
        BoundaryVerdict::MaybeCut
    } else {
        BoundaryVerdict::MaybeJoin
    }
}

fn weight_of(signs: &[BoundarySign], side: EvidenceSide) -> f32 {
    let own = signs.iter().filter(|sign| sign.side() == side);
    own.filter_map(|sign| DATA.weights.get(sign)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_needs_evidence_on_both_sides_and_a_difference_and_nothing_against_it() {
        use BoundarySign as S;
        use BoundaryVerdict::{Cut, Join, MaybeCut, MaybeJoin};
        let whole: &[S] = &[S::Title, S::OwnNumber, S::LastPage, S::NumberDiffers];
        #[rustfmt::skip]
        let table = [
            (whole, Cut),
            (&[S::FirstPage, S::Closed, S::AccountDiffers], Cut),
            (&[S::Title, S::OwnNumber, S::LastPage, S::NumberDiffers, S::NumberMentioned], MaybeCut),
            (&[S::Title, S::OwnNumber, S::NumberDiffers], MaybeCut),
            (&[S::LastPage, S::Closed, S::NumberDiffers], MaybeCut),
            (&[S::FirstPage, S::Title, S::LastPage, S::Closed], MaybeCut),
            (&[S::NextPage, S::Title, S::OwnNumber, S::Closed, S::DayDiffers], Join),
            (&[S::SameNumber, S::Title, S::OwnNumber, S::OwnDay], Join),
            (&[S::Headless, S::StationeryDiffers, S::Closed, S::LastPage], Join),
            (&[S::Headless, S::IssuerDiffers, S::StationeryDiffers], MaybeJoin),
            (&[S::SameAccount, S::FirstPage], MaybeCut),
            (&[], MaybeJoin),
        ];
        for (signs, verdict) in table {
            assert_eq!(verdict_of(signs), verdict, "{signs:?}");
        }
    }
}
