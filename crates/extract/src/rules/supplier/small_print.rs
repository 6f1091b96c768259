//! Issuers by small print and identifiers: a company with its form and its register under a
//! letterhead with a brand, and the name that a tax number is made of.

use super::address::is_registry_line;
use super::name::{begins_with_form, begins_with_title};
use super::{FoundValue, NameCandidate, NameSign, SupplierSearch, compact_name, tidy_name};
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// Letters of a word that links a brand to a company.
const MIN_DISTINCTIVE_LETTERS: usize = 5;

/// Lines of small print that are looked at.
const MAX_LINES: usize = 40;

/// Ends of a name that begins with its form.
const ENDS: [&str; 8] = [" au capital", " - ", " – ", " · ", " | ", ", ", ". ", " ("];

/// Letters of a company's name with which Mexico's numbers of taxpayers begin.
const INITIALS: usize = 3;

impl<'a> SupplierSearch<'a> {
    /// `SARL Kettle & Filles au capital de 8 000 € - SIRET …` at the foot of a page: the name with
    /// its form before it.
    pub(super) fn company_with_form_before(&self, cell: &TextCell) -> Option<String> {
        let text = cell.joined_text();
        // `au capital de 8 000 €`: the last line has an amount of its own.
        let foot = self.is_at_foot(cell) || self.is_in_last_lines(cell);
        let told = foot && begins_with_form(&text) && is_registry_line(&text);
        let end = ENDS.iter().filter_map(|end| text.find(end)).min().filter(|_| told)?;
        let name = tidy_name(text.get(..end)?);
        self.is_name(&name).then_some(name)
    }

    /// The issuer under a brand, by the small print or by a person's title and number.
    pub(super) fn company_behind<'c, 'b>(
        &self,
        brand: &NameCandidate<'_>,
        vat: Option<&FoundValue<String>>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        let company = self.company_of_small_print(brand, candidates);
        company.or_else(|| self.person_of_practice(brand, vat, candidates))
    }

    /// The one company that the small print names with its form and register, where a brand of
    /// which it has a word heads the page: `SARL Kettle & Filles` of `Maison Kettle`.
    fn company_of_small_print<'c, 'b>(
        &self,
        best: &NameCandidate<'_>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        if !self.is_brand_of_head(best) {
            return None;
        }
        let brand = distinctive_words(&best.name);
        let mut found = self
            .registered_companies(candidates)
            .filter(|one: &&NameCandidate<'_>| shares_word(&one.name, &brand));
        let company = found.next().filter(|_| found.next().is_none())?;
        let form_apart = !compact_name(&company.name).starts_with(&compact_name(&best.name));
        form_apart.then_some(company)
    }

    /// Whether the small print names a company with form and register that shares no word with the
    /// name that heads the page: either may be the issuer.
    pub(super) fn is_of_other_company(
        &self,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        let brand = distinctive_words(&best.name);
        self.is_brand_of_head(best)
            && self.registered_companies(candidates).any(|one: &NameCandidate<'_>| {
                !shares_word(&one.name, &brand)
                    && !self.is_same_firm(best, one)
                    && !self.is_same_firm(one, best)
            })
    }

    /// Whether a name may be a brand: no form, and no heading makes it the seller.
    fn is_brand_of_head(&self, best: &NameCandidate<'_>) -> bool {
        use NameSign::{Attention, Customer, Labelled, LegalForm, Window};
        let told = [Attention, Customer, Labelled, LegalForm, Window];
        !self.matches.style.shop_head && !best.has_any(&told)
    }

    /// Companies in lines at the foot of a page that name a register.
    fn registered_companies<'c, 'b>(
        &self,
        candidates: &'c [NameCandidate<'b>],
    ) -> impl Iterator<Item = &'c NameCandidate<'b>> {
        use NameSign::{Attention, Customer, LegalForm, OtherValue, Prose, Window};
        let told = [Attention, Customer, OtherValue, Prose, Window];
        let lines = self.layout.cells.iter().filter(|cell| {
            let foot = self.is_at_foot(cell) || self.is_in_last_lines(cell);
            foot && is_registry_line(&cell.joined_text())
        });
        let lines: Vec<String> =
            lines.take(MAX_LINES).map(|cell| compact_name(&cell.joined_text())).collect();
        candidates.iter().filter(move |one| {
            let compact = compact_name(&one.name);
            one.has(LegalForm)
                && !one.has_any(&told)
                && lines.iter().any(|line| line.starts_with(&compact))
        })
    }

    /// The person with a title and the identifier right below, where a practice of which he has a
    /// word heads the page: `Avv. Ida Nocciolo` of `Studio Legale Nocciolo`.
    fn person_of_practice<'c, 'b>(
        &self,
        best: &NameCandidate<'_>,
        vat: Option<&FoundValue<String>>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        let id = self.layout.cells.get(vat?.cell)?;
        if !self.is_brand_of_head(best) {
            return None;
        }
        let practice = distinctive_words(&best.name);
        candidates.iter().find(|one| {
            let below =
                self.block_below(one.cell).first().is_some_and(|line| std::ptr::eq(*line, id));
            below
                && begins_with_title(&one.name)
                && !one.has(NameSign::Customer)
                && shares_word(&one.name, &practice)
        })
    }

    /// The name with the first letters of the issuer's number, as in Mexico: `RIB110304KJ8` of
    /// `Refrigeración Industrial del Bajío`, under a brand.
    pub(super) fn name_of_identifier<'c, 'b>(
        &self,
        best: &NameCandidate<'_>,
        vat: Option<&FoundValue<String>>,
        candidates: &'c [NameCandidate<'b>],
    ) -> Option<&'c NameCandidate<'b>> {
        let id: String = vat?.value.chars().filter(|c| c.is_alphanumeric()).collect();
        let letters: String = id.chars().take_while(|c| c.is_alphabetic()).collect();
        let company = letters.chars().count() == INITIALS && id.chars().count() == INITIALS + 9;
        if !company || initials(&best.name).starts_with(&fold_text(&letters)) {
            return None;
        }
        let mut found = candidates.iter().filter(|one| {
            initials(&one.name).starts_with(&fold_text(&letters))
                && !one
                    .signs
                    .iter()
                    .any(|sign: &NameSign| matches!(sign, NameSign::Attention | NameSign::Customer))
        });
        found.next().filter(|_| found.next().is_none())
    }
}

/// The first letters of a name's words, without those that join them.
fn initials(name: &str) -> String {
    let folded = fold_text(name);
    let words = folded.split(' ').filter(|word| {
        let joins = matches!(*word, "de" | "del" | "la" | "las" | "los" | "el");
        !joins && !vocabulary().and.has(word)
    });
    words.filter_map(|word| word.chars().next()).collect()
}

/// Whether a name has one of another's telling words.
fn shares_word(name: &str, telling: &[String]) -> bool {
    distinctive_words(name).iter().any(|word| telling.contains(word))
}

/// The distinctive words of a name.
fn distinctive_words(name: &str) -> Vec<String> {
    let folded = fold_text(name);
    let telling = folded.split(' ').filter(|word| word.chars().count() >= MIN_DISTINCTIVE_LETTERS);
    telling.map(str::to_owned).collect()
}
