//! The issuer of the document: name, address and VAT identifier.
//!
//! Every possible name on the first pages and the last is a candidate; signs of position and form
//! are weighed ([`sign`]), and the candidates against each other.

mod account_owner;
mod address;
#[cfg(test)]
mod apart_tests;
mod branch;
mod buyer;
mod columns;
mod domain;
mod elsewhere;
mod foot;
mod identifier;
mod name;
mod parted_line;
mod place;
mod postal_code;
mod province;
mod relation;
mod sender;
mod sign;
mod signature;
mod small_print;

pub(super) use self::postal_code::{
    ends_in_zip_code, has_postal_code, is_british_code, is_canadian_code,
};
pub(super) use self::sign::NameSign;

use std::cell::OnceCell;

use super::FoundValue;
use super::certainty::ReadingSign;
use super::characters::{count_digits, count_letters};
use super::label_matches::{LabelMatch, LabelMatches};
use super::layout::{CellLayout, TextCell};
use super::parameters::{ReaderParameters, parameters};
use super::vocabulary::vocabulary;
use super::weighing::share_certainty;
use docmill_core::model::{BoundingBox, Transcript};
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::LabelIndex;

/// Texts that are weighed against each other.
const MAX_CANDIDATES: usize = 600;

const MAX_NAME: usize = 80;

/// Brackets of a number in a register, and its longest text.
const BRACKETS: [char; 3] = ['(', '<', '['];
const MAX_REGISTER: usize = 24;

/// Heights of a line between the lines of a block; off pictures a box is as high as the ink in it.
const NEXT: f32 = 0.9;
const NEXT_INK: f32 = 1.2;

/// Heights of a line between a heading and its block.
const HEADING_GAP: f32 = 1.6;

/// Lines with numbers of a party between its heading and its name.
const MAX_NUMBERS: usize = 3;

/// The parties' data, as far as found.
#[derive(Debug, Default)]
pub(super) struct SupplierDetails {
    pub(super) name: Option<FoundValue<String>>,
    pub(super) address: Option<FoundValue<String>>,
    pub(super) vat_id: Option<FoundValue<String>>,
    /// How the identifier was found.
    pub(super) id_reading: Vec<ReadingSign>,
    /// How the address was found.
    pub(super) address_reading: Vec<ReadingSign>,
    /// The recipient of the invoice, if a heading names it.
    pub(super) buyer_name: Option<FoundValue<String>>,
    /// The recipient's VAT identifier.
    pub(super) buyer_vat_id: Option<FoundValue<String>>,
}

/// A text that may be the issuer's name, and every sign of it on the document.
#[derive(Debug, Clone)]
pub(super) struct NameCandidate<'a> {
    pub(super) name: String,
    /// An address that was printed with it on one line.
    address: Option<String>,
    cell: &'a TextCell,
    pub(super) signs: Vec<NameSign>,
}

impl NameCandidate<'_> {
    fn has(&self, sign: NameSign) -> bool {
        self.signs.contains(&sign)
    }

    fn has_any(&self, signs: &[NameSign]) -> bool {
        signs.iter().any(|sign| self.has(*sign))
    }
}

/// Suppliers are on the first pages or the last.
pub(super) fn layout_of_parties(transcript: &Transcript) -> CellLayout {
    let pages = transcript.pages.len();
    CellLayout::of_pages(transcript, |page| page < 3 || page + 1 == pages)
}

/// Every text that can be the issuer's name, with its signs.
pub(super) fn name_evidence(matches: &LabelMatches<'_>) -> Vec<(String, Vec<NameSign>)> {
    let search = SupplierSearch::new(matches);
    let vat = search.find_vat_id();
    let found = search.name_candidates(vat.as_ref()).into_iter();
    found.map(|one| (one.name, one.signs)).collect()
}

pub(super) fn find_supplier(matches: &LabelMatches<'_>) -> SupplierDetails {
    let search = SupplierSearch::new(matches);
    let vat = search.find_vat_id();
    let candidates = search.name_candidates(vat.as_ref());
    let ReaderParameters { weights, certainty, .. } = parameters();
    let scores: Vec<f32> = candidates.iter().map(|one| weights.name.score(&one.signs)).collect();
    let shares = share_certainty(&scores, weights.name.none);
    let ranked = candidates.iter().zip(&scores).zip(&shares);
    // Of equals the one further up.
    let best = ranked.max_by(|((a, x), _), ((b, y), _)| {
        x.total_cmp(y).then_with(|| (b.cell.page, b.cell.row).cmp(&(a.cell.page, a.cell.row)))
    });
    let Some(((best, _), share)) = best else {
        let (id_reading, address_reading) = (search.id_reading(vat.as_ref(), &[], &[]), vec![]);
        return SupplierDetails {
            buyer_vat_id: search.find_buyer_vat_id(vat.as_ref()),
            vat_id: vat,
            id_reading,
            address_reading,
            ..SupplierDetails::default()
        };
    };
    let brand = search.company_of_brand(best, &candidates).unwrap_or(best);
    let company = search.company_behind(brand, vat.as_ref(), &candidates);
    let named = search.name_of_identifier(brand, vat.as_ref(), &candidates);
    let best =
        company.or(named).or_else(|| search.company_at_foot(brand, &candidates)).unwrap_or(brand);
    let same = |one: &NameCandidate<'_>| search.is_same_firm(best, one);
    let own =
        candidates.iter().zip(&shares).filter(|(one, it)| **it > certainty.min_share && same(one));
    let share: f32 = own.map(|(_, part)| *part).sum::<f32>().max(*share);
    let theirs = vat.as_ref().is_some_and(|id| search.is_of_other_party(id, best, &candidates));
    let (vat, others) = if theirs { (None, vat) } else { (vat, None) };
    let doubted = search.is_doubtful(best, vat.as_ref(), &candidates);
    let most = if doubted { certainty.doubtful_name } else { 1.0 };
    let above = candidates.iter().find(|one| search.continues_name(one, best));
    let (name, joined) = search.full_name(above.unwrap_or(best));
    let name = spelled_out(name, &candidates);
    let found = search.address_of(above.unwrap_or(best), joined);
    let (address, mut address_reading) = search.or_address_of_head(found, best, &candidates);
    let plain = !address_reading.contains(&ReadingSign::AddressOnLine);
    let of_other =
        address.as_ref().is_some_and(|text| search.is_address_of_other(text, best, &candidates));
    if plain && of_other {
        address_reading.push(ReadingSign::AddressOfOther);
    }
    if share < certainty.sure_name {
        address_reading.push(ReadingSign::NameDoubtful);
    }
    SupplierDetails {
        buyer_name: search.find_buyer_name(&name),
        buyer_vat_id: search.find_buyer_vat_id(vat.as_ref()).or(others),
        name: Some(FoundValue::weighed(name, share.min(most), best.cell)),
        address: address.map(|text| FoundValue::new(text, false, best.cell)),
        id_reading: search.id_reading(vat.as_ref(), &best.signs, &search.block_below(best.cell)),
        address_reading,
        vat_id: vat,
    }
}

/// `J. Birke` over the window of an envelope is `Jens Birke` of the letterhead.
fn spelled_out(name: String, candidates: &[NameCandidate<'_>]) -> String {
    let theirs = [NameSign::Attention, NameSign::Customer, NameSign::Window];
    let mut heads = candidates
        .iter()
        .filter(|one| !one.has_any(&theirs) && name::is_spelled_out(&one.name, &name));
    heads.next().map_or(name, |full| full.name.clone())
}

struct SupplierSearch<'a> {
    matches: &'a LabelMatches<'a>,
    layout: &'a CellLayout,
    labels: &'a LabelIndex,
    /// The text of each cell, folded.
    folded: Vec<String>,
    /// The names in mail and web addresses, without their endings.
    domains: Vec<String>,
    /// The usual height of a line of the first page.
    height: f32,
    /// Cells in blocks under headings of the recipient, by index.
    recipient: Vec<usize>,
    /// Whether each cell is the recipient's; cached, because it is asked often.
    customers: Vec<OnceCell<bool>>,
    /// The last row of each page.
    last_rows: Vec<Option<usize>>,
    /// The last row with an amount of each page.
    last_amounts: Vec<Option<usize>>,
}

impl SupplierSearch<'_> {
    /// Whether a name is uncertain, whatever its signs.
    fn is_doubtful(
        &self,
        best: &NameCandidate<'_>,
        vat: Option<&FoundValue<String>>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        let doubtful = [NameSign::Customer, NameSign::OverName, NameSign::Tangled];
        best.has_any(&doubtful)
            || self.is_under_other_name(best, vat, candidates)
            || self.has_rival_identifier(best, vat)
            || self.has_rival_without_identifier(best, candidates)
            || is_bare_word(&best.signs)
            || self.is_car_park(best)
            || self.has_equal_company(best, candidates)
            || self.has_equal_block(best, candidates)
            || self.is_of_other_company(best, candidates)
    }

    /// Whether a receipt names no company: car parks print theirs elsewhere.
    fn is_car_park(&self, best: &NameCandidate<'_>) -> bool {
        self.matches.style.shop_head
            && !best.has(NameSign::LegalForm)
            && vocabulary().car_park.is_within(&fold_text(&best.name))
    }
}

impl<'a> SupplierSearch<'a> {
    fn new(matches: &'a LabelMatches<'a>) -> Self {
        let layout = matches.layout;
        let folded = layout.cells.iter().map(|cell| fold_text(&cell.joined_text())).collect();
        let first = layout.cells.iter().filter(|cell| cell.page == 0);
        let mut heights: Vec<f32> = first.map(|cell| cell.area.h).collect();
        heights.sort_by(f32::total_cmp);
        let height = heights.get(heights.len() / 2).copied().unwrap_or(1.0);
        let (domains, recipient) = (Vec::new(), Vec::new());
        let mut search = Self {
            matches,
            layout,
            labels: &matches.kind.labels,
            folded,
            domains,
            height,
            recipient,
            customers: Vec::new(),
            last_rows: layout.last_rows_with(|_| true),
            last_amounts: layout.last_rows_with(|cell| layout.is_on_amount_row(cell)),
        };
        search.domains = search.find_domains();
        search.recipient = search.find_recipient_cells();
        // Cleared: answers cached before did not include the blocks.
        search.customers = vec![OnceCell::new(); layout.cells.len()];
        search
    }

    /// Every text that can be a name, once, with all its signs.
    fn name_candidates(&self, vat: Option<&FoundValue<String>>) -> Vec<NameCandidate<'a>> {
        let mut found: Vec<NameCandidate<'a>> = Vec::new();
        let mut first = true;
        for (index, cell) in self.layout.cells.iter().enumerate() {
            let senders = self.sender_parts(cell);
            let whole = tidy_name(&strip_label(&cell.joined_text(), self.labels));
            let whole = self.before_trading_name(whole);
            let company =
                self.company_of_line(cell).or_else(|| self.company_with_form_before(cell));
            let registered = address::is_registry_line(&whole);
            let texts = match (senders, company) {
                (Some((name, address)), _) => vec![(name, Some(address))],
                (None, Some(name)) if registered || !self.is_name(&whole) => vec![(name, None)],
                (None, _) => vec![(whole, None)],
            };
            for (name, address) in texts {
                let is_other = self.is_label_with_value(cell) || self.is_within_address(cell);
                if is_other || !self.is_name(&name) {
                    continue;
                }
                let mut signs = self.place_signs(index, cell, vat);
                signs.extend(self.text_signs(&name));
                if self.has_form_below(cell) {
                    signs.push(NameSign::LegalForm);
                }
                signs.extend(self.has_register_number(cell).then_some(NameSign::Numbered));
                if address.is_some() {
                    self.mark_sender_line(cell, &mut signs);
                }
                if std::mem::take(&mut first) && cell.page == 0 {
                    signs.push(NameSign::First);
                }
                self.matches.style.mark_name(&mut signs);
                found.push(NameCandidate { name, address, cell, signs });
            }
            if found.len() >= MAX_CANDIDATES {
                break;
            }
        }
        self.add_named(&mut found);
        self.mark_largest(&mut found);
        let mut merged = merge_mentions(found);
        mark_paid_sender(&mut merged);
        let letterhead = has_letterhead(&merged);
        if letterhead {
            mark_addressed(&mut merged);
        }
        mark_letterhead(&mut merged);
        mark_over_person(&mut merged);
        mark_over_name(&mut merged);
        self.mark_trades(&mut merged);
        self.mark_brand_owners(&mut merged);
        mark_banner(&mut merged);
        mark_only_company(&mut merged, letterhead);
        self.mark_witnessed(&mut merged);
        self.mark_account_owners(&mut merged);
        self.mark_signatory(&mut merged);
        merged
    }

    /// Names beside labels of the issuer or of an account.
    fn add_named(&self, found: &mut Vec<NameCandidate<'a>>) {
        for (name, cell) in self.named_as_sides() {
            let mut signs = self.text_signs(&name);
            signs.push(NameSign::Labelled);
            found.push(NameCandidate { name, address: None, cell, signs });
        }
        for (field, sign) in [("supplier", NameSign::Labelled), ("payee", NameSign::Payee)] {
            let matches = self.matches.leading(field);
            for label_match in matches.take(place::MAX_HEADINGS) {
                let plain =
                    || self.beside_label(label_match).map(|(name, cell)| (name, None, cell));
                let Some((name, address, cell)) = self.sender_behind(label_match).or_else(plain)
                else {
                    continue;
                };
                let mut signs = self.text_signs(&name);
                let sold = field == "supplier" && address.is_none();
                let person = sold && self.names_salesperson(label_match, cell, &name);
                signs.push(if person { NameSign::OtherValue } else { sign });
                found.push(NameCandidate { name, address, cell, signs });
            }
        }
    }

    /// The name beside or under a party's label that is alone or ends in a colon.
    fn beside_label(&self, label_match: &LabelMatch) -> Option<(String, &'a TextCell)> {
        let cell = self.matches.cell_of(label_match)?;
        let last = cell.words.get(label_match.words.end.saturating_sub(1));
        let closed = last.is_some_and(|word| word.ends_with(':'))
            || cell.words.get(label_match.words.end).is_some_and(|word| word == ":");
        if !closed && label_match.words.end != cell.words.len() {
            return None;
        }
        if let Some(named) =
            self.named_in_section(label_match).or_else(|| self.named_in_strip(label_match))
        {
            return Some(named);
        }
        let beside = self.matches.value_candidates(label_match).into_iter();
        let mut texts = beside.map(|one| (tidy_name(&one.value_words().join(" ")), one.cell));
        texts.find(|(name, _)| self.is_name(name)).or_else(|| self.name_after_numbers(cell))
    }

    /// Under a heading `Number: 5` and the like may precede the name.
    fn name_after_numbers(&self, heading: &'a TextCell) -> Option<(String, &'a TextCell)> {
        let mut at = heading;
        for passed in 0..=MAX_NUMBERS {
            // An empty line may be between the heading and its block.
            let apart = |other: &TextCell| {
                let gap = other.area.y - heading.area.bottom();
                passed == 0 && (0.0..HEADING_GAP * heading.area.h).contains(&gap)
            };
            let mut next = self
                .layout
                .rows_from(at)
                .filter(|other| other.page == at.page && (is_next_line(at, other) || apart(other)));
            at = next.find(|other| (other.area.x - heading.area.x).abs() < 0.6 * heading.area.h)?;
            let numbered = at.words.iter().any(|word| word.ends_with(':'))
                || self.layout.next_in_row(at).is_some_and(|c| c.joined_text().starts_with(':'));
            let name = tidy_name(&at.joined_text());
            if !numbered {
                return self.is_name(&name).then_some((name, at));
            }
        }
        None
    }

    /// `Name: X` in the rows after a heading such as "Seller", before the next party's heading.
    fn named_in_section(&self, heading: &LabelMatch) -> Option<(String, &'a TextCell)> {
        let after = self.matches.all.iter().filter(|label_match| label_match.cell > heading.cell);
        let row = self.matches.cell_of(heading)?.row;
        let mut customers = after
            .clone()
            .filter(|label_match| label_match.field == "customer" && label_match.words.start == 0);
        // The recipient's heading may be beside this one: then each has its column.
        let beside = |label_match: &LabelMatch| {
            self.matches.cell_of(label_match).is_some_and(|c| c.row == row)
        };
        let columns = customers.clone().any(beside);
        let end = customers
            .find(|label_match| !beside(label_match))
            .map_or(usize::MAX, |label_match| label_match.cell);
        let near = |label_match: &&LabelMatch| {
            label_match.cell < end
                && self.matches.cell_of(label_match).is_some_and(|cell| cell.row <= row + 8)
        };
        // Two parties side by side: each has its own under its heading.
        let heading = self.matches.cell_of(heading)?;
        let aside = |label_match: &LabelMatch| {
            let x = self.matches.cell_of(label_match).map_or(0.0, |cell| cell.area.x);
            (x - heading.area.x).abs() > address::PARTIES_APART * heading.area.h
        };
        let named = after.filter(|label_match| {
            label_match.field == "party_name" && label_match.words.start == 0
        });
        let name = named
            .filter(|label_match: &&LabelMatch| {
                near(label_match) && !(columns && aside(label_match))
            })
            .min_by_key(|label_match| aside(label_match))?;
        let beside = self.matches.value_candidates(name);
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
}

/// Whether one word is the whole name, and only its position and an identifier near it speak for
/// it.
fn is_bare_word(signs: &[NameSign]) -> bool {
    use NameSign::{Digits, Head, OneWord, Upper, VatNear};
    signs.contains(&OneWord)
        && signs.iter().all(|sign| [Digits, Head, OneWord, Upper, VatNear].contains(sign))
}

/// Whether a name heads the letter with its address.
fn has_letterhead(merged: &[NameCandidate<'_>]) -> bool {
    merged.iter().any(|one| heads_letter(&one.signs))
}

fn heads_letter(signs: &[NameSign]) -> bool {
    use NameSign::{AddressBelow, Customer, Digits, First, Head, OtherValue, Place};
    [First, Head, AddressBelow].iter().all(|sign| signs.contains(sign))
        && ![Place, Digits, OtherValue, Customer].iter().any(|sign| signs.contains(sign))
}

/// Marks the payee that heads the letter with an address: no customer, whatever heading is near its
/// repetition, because payment slips name both parties.
fn mark_paid_sender(merged: &mut [NameCandidate<'_>]) {
    use NameSign::{AddressBelow, Customer, First, Head, Payee};
    for NameCandidate { signs, .. } in merged {
        if [First, Head, AddressBelow, Payee].iter().all(|sign| signs.contains(sign)) {
            signs.retain(|sign| *sign != Customer);
        }
    }
}

/// Marks the name that heads the letter with its address where a heading or a form of address makes
/// another name the recipient.
fn mark_letterhead(merged: &mut [NameCandidate<'_>]) {
    use NameSign::{Attention, Faint, Prose, Small, Tangled, Window};
    let doubtful = [Attention, Faint, Prose, Small, Tangled, Window];
    if !merged.iter().any(|one| is_recipient(&one.signs)) {
        return;
    }
    let heads = |one: &NameCandidate<'_>| {
        heads_letter(&one.signs) && !doubtful.iter().any(|sign| one.signs.contains(sign))
    };
    // `Carrier` over a company's name is a heading.
    let is_heading = |one: &NameCandidate<'_>| {
        !one.has(NameSign::LegalForm)
            && merged
                .iter()
                .any(|other| other.has(NameSign::LegalForm) && is_next_line(one.cell, other.cell))
    };
    let found = merged.iter().position(|one| heads(one) && !is_heading(one));
    if let Some(one) = found.and_then(|at| merged.get_mut(at)) {
        one.signs.push(NameSign::Letterhead);
    }
}

/// A label such as `Customer 447` alone names no recipient.
fn is_recipient(signs: &[NameSign]) -> bool {
    signs.contains(&NameSign::AddressBelow)
        && (signs.contains(&NameSign::Customer) || signs.contains(&NameSign::Attention))
}

/// `STUDIO TECNICO` over `Geom. Carlo Bianchi`: a trade right over the person.
fn mark_over_person(merged: &mut [NameCandidate<'_>]) {
    let persons: Vec<&TextCell> =
        merged.iter().filter(|one| is_titled_name(one)).map(|one| one.cell).collect();
    for one in merged.iter_mut().filter(|one| !one.has(NameSign::LegalForm)) {
        if persons.iter().any(|person| is_next_line(one.cell, person)) {
            one.signs.retain(|sign| ![NameSign::First, NameSign::Letterhead].contains(sign));
            one.signs.push(NameSign::OtherValue);
        }
    }
}

fn is_titled_name(one: &NameCandidate<'_>) -> bool {
    one.has(NameSign::AddressBelow)
        && !one.has(NameSign::Attention)
        && name::begins_with_title(&one.name)
}

/// `Klients` over a club and its street: where no label is known, a line of at most two words right
/// over another name is its heading, unless it has other signs of a name. The first line may be a
/// brand over a person; over a company it is a heading, too.
fn mark_over_name(merged: &mut [NameCandidate<'_>]) {
    use NameSign::{
        AddressBelow, Digits, Domain, First, Labelled, Large, LegalForm, Place, Prose, Repeated,
        SenderLine, TillFirst, Witnessed,
    };
    let told = [Domain, Labelled, Large, LegalForm, Repeated, SenderLine, TillFirst, Witnessed];
    let names: Vec<(&TextCell, bool)> = merged
        .iter()
        .filter(|one| {
            one.has_any(&[AddressBelow, LegalForm]) && !one.has_any(&[Digits, Place, Prose])
        })
        .map(|one| (one.cell, one.has(LegalForm)))
        .collect();
    for one in merged {
        let short = one.name.split(' ').count() <= 2 && !one.has_any(&told);
        let first = one.has(First);
        if short
            && names.iter().any(|(name, company): &(&TextCell, bool)| {
                (*company || !first) && is_next_line(one.cell, name)
            })
        {
            one.signs.push(NameSign::OverName);
        }
    }
}

/// A company that is the first text of the page and set in large letters is no recipient.
fn mark_banner(merged: &mut [NameCandidate<'_>]) {
    use NameSign::{
        Attention, Customer, Faint, First, Head, Large, LegalForm, OtherValue, Place, Prose,
        Tangled, Window,
    };
    let wanted = [First, Head, Large, LegalForm];
    let doubtful = [Attention, Customer, Faint, OtherValue, Place, Prose, Tangled, Window];
    for one in merged {
        let has = |sign: &NameSign| one.signs.contains(sign);
        if wanted.iter().all(has) && !doubtful.iter().any(has) {
            one.signs.push(NameSign::Banner);
        }
    }
}

/// Marks blocks of a name and an address without contact details under a letterhead: the window of
/// an envelope, however high.
fn mark_addressed(merged: &mut [NameCandidate<'_>]) {
    use NameSign::{AddressBelow, Contact, First, PlainAddress, VatNear};
    for NameCandidate { signs, .. } in merged {
        let own = [First, Contact, VatNear, PlainAddress];
        if signs.contains(&AddressBelow) && !own.iter().any(|sign| signs.contains(sign)) {
            signs.push(PlainAddress);
        }
    }
}

/// Marks the only name with a legal form outside the recipient's positions.
fn mark_only_company(merged: &mut [NameCandidate<'_>], letterhead: bool) {
    use NameSign::{Attention, Customer, LegalForm, PlainAddress, Prose, Window};
    let mut companies = merged.iter_mut().filter(|one| {
        one.has(LegalForm)
            && !one.signs.iter().any(|sign: &NameSign| {
                matches!(sign, Customer | Window | Attention | Prose)
                    || letterhead && *sign == PlainAddress
            })
    });
    if let (Some(only), None) = (companies.next(), companies.next()) {
        only.signs.push(NameSign::OnlyCompany);
    }
}

/// Letters and digits alone: a name that an engine read without its spaces is the same name.
fn compact_name(name: &str) -> String {
    fold_text(name).replace(' ', "")
}

/// One candidate for each name, with the signs of all its mentions. A sign against it counts only
/// where every mention has it, and a heading that names it outweighs its other positions.
fn merge_mentions(found: Vec<NameCandidate<'_>>) -> Vec<NameCandidate<'_>> {
    let mut merged: Vec<(String, usize, NameCandidate<'_>)> = Vec::new();
    for one in found {
        let compact = compact_name(&one.name);
        match merged.iter_mut().find(|(known, ..)| *known == compact) {
            Some((_, count, known)) => {
                *count += usize::from(!std::ptr::eq(known.cell, one.cell));
                let both = |sign: &NameSign| known.signs.contains(sign) && one.signs.contains(sign);
                let mut signs: Vec<NameSign> = known.signs.clone();
                signs.extend(one.signs.iter().copied());
                let against: Vec<NameSign> =
                    signs.iter().copied().filter(|sign| sign.is_excused() && !both(sign)).collect();
                signs.retain(|sign| !against.contains(sign));
                signs.sort_unstable();
                signs.dedup();
                known.signs = signs;
                known.address = known.address.take().or(one.address);
                // `kettle brook` is how a heading was set, and `Kettle Brook` the name.
                if known.name.to_lowercase() == known.name && one.name.to_lowercase() != one.name {
                    known.name = one.name;
                }
            }
            None => merged.push((compact, 1, one)),
        }
    }
    let mut names = Vec::new();
    for (_, count, mut one) in merged {
        // Companies are repeated in footers and bank lines; other repeated texts are often
        // headings.
        if count > 1 && !one.has(NameSign::LegalForm) {
            one.signs.push(NameSign::Repeated);
        }
        names.push(one);
    }
    names
}

/// Whether `below` is the next line of the same block.
fn is_next_line(above: &TextCell, below: &TextCell) -> bool {
    let reach = if above.from_picture { NEXT_INK } else { NEXT };
    above.page == below.page && is_next_within(above.area, below.area, reach)
}

/// The same for the areas of two lines of one page.
fn is_next_area(above: BoundingBox, below: BoundingBox) -> bool {
    is_next_within(above, below, NEXT)
}

fn is_next_within(above: BoundingBox, below: BoundingBox, reach: f32) -> bool {
    let gap = below.y - above.bottom();
    let height = above.h.max(below.h);
    let aligned = (below.x - above.x).abs() < 0.6 * height
        || (below.right() - above.right()).abs() < 0.6 * height
        || ((below.x + below.w / 2.0) - (above.x + above.w / 2.0)).abs() < 0.8 * height;
    below.y + below.h / 2.0 > above.bottom() && gap < reach * height && aligned
}

fn tidy_name(text: &str) -> String {
    without_registration(text.trim_matches(is_edge_mark)).trim_matches(is_edge_mark).to_owned()
}

fn is_edge_mark(c: char) -> bool {
    matches!(c, ',' | ':' | ';' | '|' | '-' | '–' | '●' | '•' | '·' | ' ' | '*')
}

/// `Example Sdn Bhd (604518-H)`: the number in the register is no part of the name.
fn without_registration(text: &str) -> &str {
    let open = text.rfind(BRACKETS).filter(|open| *open > 0);
    let Some((name, rest)) = open.and_then(|open| text.split_at_checked(open)) else {
        return text;
    };
    if is_register_number(rest) { name } else { text }
}

/// Whether the text behind a bracket is long and plain enough for a number in a register.
fn is_register_number(text: &str) -> bool {
    let digits = count_digits(text);
    let letters = count_letters(text);
    digits >= 4 && letters <= 4 && text.len() <= MAX_REGISTER
}

/// The text before a separated label: `Example Ltd - VAT No. 123` has the name `Example Ltd`.
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
        let kind = kinds.get("invoice").unwrap();
        let layout = CellLayout::new(&transcript(&[drawing]));
        let found = find_supplier(&LabelMatches::new(&layout, kind));
        [found.name, found.address, found.vat_id]
            .map(|found| found.map_or("-".to_owned(), |found| found.value))
    }

    #[test]
    fn the_supplier_is_told_from_the_customer() {
        #[rustfmt::skip]
        let table = [
            ("Wolken AG - Weidenweg 12 - D-95100 Selbitztal\nClient Ltd.\n17A Kam Ping Lei\n\nRechnung",
                ["Wolken AG", "Weidenweg 12, D-95100 Selbitztal", "-"]),
            ("                              De Zeef\n                              Postbus 9\n\
              \x20                             4380 GV Koudum\n\
              \x20                             BTW-nummer: NL864172503B01\n\n\
              EGEL B.V.\nPOSTBUS 4\n7090 DK TWISTEREN\n\nFACTUUR",
                ["De Zeef", "Postbus 9, 4380 GV Koudum", "NL864172503B01"]),
            ("Verkäufer\n   Name:        Fluss GmbH & Co.\n   Anschrift:   Lindenallee 17\n\
              \x20               DE 23968 Wismarhof\n   USt.-Id.-Nr.:   DE136695976\nKäufer\n\
              \x20  Name:        Pacht GmbH",
                ["Fluss GmbH & Co.", "Lindenallee 17, DE 23968 Wismarhof", "DE136695976"]),
            ("FACTUUR   Zeegroen B.V.\n          Singel 85\n          4611 PK Steenberg\n          Nederland\n\n\
              \x20         BTW NL853061725B01",
                ["Zeegroen B.V.", "Singel 85, 4611 PK Steenberg, Nederland", "NL853061725B01"]),
            ("Invoice 12\n\nSold By : Market Partner Ltd.,\nBill to\nSomebody Inc.\n1 Street",
                ["Market Partner Ltd.", "-", "-"]),
            ("SZÁMLA 12\n\nEladó\nKővár Asztalos Kft.\n6500 Nagyfalu\nSzent Anna utca 33.\nAdószám: 28031145-2-03",
                ["Kővár Asztalos Kft.", "6500 Nagyfalu, Szent Anna utca 33.", "28031145-2-03"]),
            ("STUDIO TECNICO\nGeom. Carlo Bianchi\nVia Garibaldi 27\n43039 Salsomaggiore\n\n\nFATTURA 12",
                ["Geom. Carlo Bianchi", "Via Garibaldi 27, 43039 Salsomaggiore", "-"]),
            ("Holz Meier\nLindenallee 17\n23968 Wismarhof\n\n\nRechnung 12\nVerkäufer   Jan Kuhl",
                ["Holz Meier", "Lindenallee 17, 23968 Wismarhof", "-"]),
            ("Holz Meier\nLindenallee 17\n23968 Wismarhof\n\n\nRechnung 12\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\
              Kommanditgesellschaft, Sitz Wismarhof\nHRA 4471\nUSt-IdNr. DE136695976",
                ["Holz Meier", "Lindenallee 17, 23968 Wismarhof", "DE136695976"]),
            ("Operations Ltd\nSeller Street 4\nBath BA1 5QT\nVAT Reg No GB 555 0123 45\n\nInvoice 12",
                ["Operations Ltd", "Seller Street 4, Bath BA1 5QT", "GB 555 0123 45"]),
        ];
        for (drawing, expected) in table {
            assert_eq!(read(drawing), expected.map(str::to_owned), "{drawing}");
        }
    }

    #[test]
    fn no_name_across_another_line_or_under_the_recipients_heading_is_certain() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("receipt").unwrap();
        let certainty = |page: &Transcript| {
            let layout = CellLayout::new(page);
            let found = find_supplier(&LabelMatches::new(&layout, kind));
            found.name.and_then(|name| name.share).unwrap_or_default()
        };
        let drawing =
            "PADDLE TEA LTD\n12 Mill Road\n82216 Northtown\nTel: 555 0199\nwww.paddletea.com";
        let clean = transcript(&[drawing]);
        let mut tangled = clean.clone();
        tangled.pages[0].source = docmill_core::model::PageSource::Ocr;
        let mut across = tangled.pages[0].lines[0].clone();
        across.words.iter_mut().for_each(|word| word.bounding_box.y += 0.3 * word.bounding_box.h);
        tangled.pages[0].lines.push(across);
        let recipient = transcript(&[&format!("Bill to\n{drawing}")]);
        assert!(certainty(&clean) > 0.9, "{}", certainty(&clean));
        assert!(certainty(&tangled) <= 0.8, "{}", certainty(&tangled));
        assert!(certainty(&recipient) <= 0.8, "{}", certainty(&recipient));
    }

    #[test]
    fn a_family_under_a_heading_in_large_letters_is_no_recipient() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let mut page =
            transcript(&["Gasthof Birkblick\nFamilie Huber\nDorfstr. 31, 6167 Tannrode\n\n\n\
             Beispiel Reisen GmbH\nLedergasse 20\n4020 Linz\n\n\nRechnung 412"]);
        page.pages[0].lines[0].words.iter_mut().for_each(|word| {
            word.bounding_box.y -= 5.0;
            word.bounding_box.h = 15.0;
        });
        let layout = CellLayout::new(&page);
        let found = find_supplier(&LabelMatches::new(&layout, kind));
        assert_eq!(found.name.unwrap().value, "Gasthof Birkblick");
    }

    #[test]
    fn letters_tell_a_company_and_its_trades_apart_from_a_recipient_with_a_domain() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let named = |drawing: &str| {
            let mut page = transcript(&[drawing]);
            page.pages[0].lines[0].words.iter_mut().for_each(|word| {
                word.bounding_box.y -= 5.0;
                word.bounding_box.h = 15.0;
            });
            let layout = CellLayout::new(&page);
            let found = find_supplier(&LabelMatches::new(&layout, kind));
            found.name.map(|name| (name.value, name.share.unwrap_or_default()))
        };
        let (name, share) = named(
            "ALDER LTD.\n\nINVOICE\n\nAlder Billing\n123 Mill Road\nNew York, NY 10001\n\n\n\n\n\n\n\n\n\n\n\n\n\
             Birchwood Corp\n123 Other St\nRedmond, WA 98052\n\n\nsomebody@birchwood.example",
        )
        .unwrap();
        assert_eq!(name, "ALDER LTD.");
        assert!(share > 0.85, "{share}");
        let (name, _) = named(
            "GARAGE DU TILLEUL\nRéparation toutes marques - Dépannage\nRoute de Loches - 37460 Genillé\n\
             Tél. 02 47 55 01 18\n\n\n\nFacture FA0008841",
        )
        .unwrap();
        assert_eq!(name, "GARAGE DU TILLEUL");
    }

    #[test]
    fn lines_off_pictures_are_a_block_though_their_boxes_hold_ink_alone() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let mut page = transcript(&["Printed invoice sheet\n\n\nAlder, Birch and Kettle\n\
             12 Mill Road\nNorthtown, RI 02840\nTel 401 555 0118\n\n\nInvoice 118"]);
        let signs = |page: &Transcript| {
            let layout = CellLayout::new(page);
            let matches = LabelMatches::new(&layout, kind);
            let found = SupplierSearch::new(&matches).name_candidates(None);
            found.into_iter().find(|one| one.name.starts_with("Alder")).unwrap().signs
        };
        page.pages[0].source = docmill_core::model::PageSource::Ocr;
        for word in page.pages[0].lines.iter_mut().flat_map(|line| &mut line.words) {
            word.bounding_box.h = 5.8;
        }
        assert!(signs(&page).contains(&NameSign::Contact));
        // The large text over it is no name, and has no trade under it.
        page.pages[0].lines[0].words.iter_mut().for_each(|word| word.bounding_box.h = 14.0);
        for word in &mut page.pages[0].lines[0].words {
            word.bounding_box.y = 20.0;
        }
        assert!(!signs(&page).contains(&NameSign::Trades));
    }

    #[test]
    fn a_name_that_begins_with_another_one_is_no_rival_of_it() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let page = "Bruno Wiech Heizungen\nMeisterbetrieb, Bäder\n\n\
                    Bruno Wiech · Alte Ziegelei 7 · 49176 Tannrode\n\n\nBill to\nBruno Wiech Bauten\n\
                    Am Esch 22\n49201 Birkau\n\nRechnung Nr. 118";
        let layout = CellLayout::new(&transcript(&[page]));
        let matches = LabelMatches::new(&layout, kind);
        let search = SupplierSearch::new(&matches);
        let found = search.name_candidates(None);
        let named = |name: &str| found.iter().find(|one| one.name == name).unwrap();
        let sender = named("Bruno Wiech");
        assert!(search.is_same_firm(named("Bruno Wiech Heizungen"), sender));
        assert!(!search.is_same_firm(named("Bruno Wiech Bauten"), sender), "the recipient's");
    }

    #[test]
    fn the_customers_vat_id_is_not_taken() {
        let drawing = "N° TVA client   FR48618402754\n\n\nALDERPOSTE   TVA FR46703951483";
        assert_eq!(read(drawing)[2], "FR46703951483");
        assert_eq!(read("Customer VAT Number   ESA46209177")[2], "-");
    }

    #[test]
    fn an_identifier_in_the_block_of_another_company_is_not_the_issuers_or_the_name_is_doubtful() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let abroad =
            "Larkfield Software, Inc.\n2261 Alder Street\nPortland, OR 97205\nUnited States";
        let customer = "Kirsi Andmed AS\nTartu mnt 84\n10112 Tallinn\nEstonia\nEE102809963";
        let beside: Vec<String> = customer
            .lines()
            .zip(abroad.lines().chain([""]))
            .map(|(left, right)| format!("{left:<60}{right}").trim_end().to_owned())
            .collect();
        let number = "\n\nInvoice number   LS-2026-0311";
        let below = format!("INVOICE\n\n{abroad}\n\n\n{customer}{number}");
        let beside = format!("INVOICE\n\n{}{number}", beside.join("\n"));
        let labelled = customer.replace("EE1", "VAT EE1");
        let labelled =
            format!("INVOICE\n\nHarbour Ltd\n18/F, Tower 2\nHong Kong\n\n{labelled}{number}");
        for drawing in [below, beside, labelled] {
            let layout = CellLayout::new(&transcript(&[&drawing]));
            let found = find_supplier(&LabelMatches::new(&layout, kind));
            let id = found.vat_id.map(|id| id.value);
            let (name, share) =
                found.name.map(|it| (it.value, it.share.unwrap_or_default())).unwrap();
            match name.as_str() {
                "Larkfield Software, Inc." => {
                    assert_eq!(id, None, "{drawing}");
                    assert_eq!(found.buyer_vat_id.unwrap().value, "EE102809963");
                }
                _ => assert!(share < 0.85, "{name}: {share}"),
            }
        }
    }
}
