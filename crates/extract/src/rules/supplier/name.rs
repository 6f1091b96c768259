//! Possible names, recipients' names, and names of the same firm.

use std::cell::LazyCell;

use super::address::{is_registry_line, is_street_line};
use super::postal_code::has_postal_code;
use super::relation;
use super::{MAX_NAME, NameCandidate, NameSign, SupplierSearch, compact_name, is_next_line};
use crate::rules::characters::{count_digits, count_letters};
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::{date, fold_text};
use docmill_gate::kinds::FieldRole;

/// Letters of a distinctive part of a name.
const MIN_PART_LETTERS: usize = 6;

/// Letters of a name of several words that another one begins with.
const MIN_FULL_LETTERS: usize = 10;

/// Heights of a line between a name and its form.
pub(super) const FORM_ASIDE: f32 = 5.0;

impl SupplierSearch<'_> {
    /// Whether both name one firm: the lines of a name over two lines, or the name with and without
    /// its legal form.
    pub(super) fn is_same_firm(&self, one: &NameCandidate<'_>, other: &NameCandidate<'_>) -> bool {
        let names = [&one.name, &other.name].map(|name| fold_text(name));
        let [a, b] = names.each_ref().map(|name| name.split(' ').collect::<Vec<&str>>());
        // The name in large letters, and again in a line with the form or the branch.
        let within = |long: &[&str], short: &[&str]| {
            let letters: usize = short.iter().map(|word| word.len()).sum();
            self.matches.style.shop_head
                && letters >= MIN_PART_LETTERS
                && long.windows(short.len()).any(|part| part == short)
        };
        // `Bruno Wiech` in the line of the sender, under `Bruno Wiech Sanitär & Heizung`.
        // `Praxis Dr. Ida Wiech` there, under `Dr. Ida Wiech`.
        let begins = |long: &[&str], short: &[&str]| {
            let letters: usize = short.iter().map(|word| word.len()).sum();
            short.len() > 1
                && letters >= MIN_FULL_LETTERS
                && (long.starts_with(short) || long.ends_with(short))
        };
        let other_party = |one: &NameCandidate<'_>| {
            use NameSign::{Attention, Customer, Window};
            one.signs.iter().any(|sign| matches!(sign, Attention | Customer | Window))
        };
        // `Example Billing` beside `Example Ltd.`: a part of it.
        let is_part = |whole: &[&str], part: &[&str], name: &str| {
            matches!((whole, part), ([own, form @ ..], [first, rest @ ..])
                if own == first
                    && own.len() >= MIN_PART_LETTERS
                    && self.labels.has_label_at("legal_form", form)
                    && (1..=2).contains(&rest.len()))
                && !self.has_legal_form(name)
        };
        // `Kettle` in large letters or in the line of the sender, of `Works Kettle & Sons, S.L.`: a
        // brand, and the company that has it in its name.
        let is_brand = |whole: &[&str], part: &[&str], brand: &NameCandidate<'_>, name: &str| {
            use NameSign::{Large, OtherValue, SenderLine};
            let letters: usize = part.iter().map(|word| word.len()).sum();
            let shown = brand.has(Large) || brand.has(SenderLine);
            letters >= MIN_PART_LETTERS
                && shown
                && !brand.has(OtherValue)
                && self.has_legal_form(name)
                && whole.windows(part.len()).any(|own| own == part)
        };
        let parties = other_party(one) || other_party(other);
        a == b
            || !parties && (begins(&a, &b) || begins(&b, &a))
            || !parties && (is_part(&a, &b, &other.name) || is_part(&b, &a, &one.name))
            || !parties
                && (is_brand(&a, &b, other, &one.name) || is_brand(&b, &a, one, &other.name))
            || within(&a, &b)
            || within(&b, &a)
            || self.is_longer_name(&a, &b)
            || self.is_longer_name(&b, &a)
            || self.continues_name(one, other)
    }

    fn is_longer_name(&self, long: &[&str], short: &[&str]) -> bool {
        let rest = long.get(short.len()..).unwrap_or_default();
        long.starts_with(short)
            && !rest.is_empty()
            && rest.len() <= 3
            && self.labels.has_label_at("legal_form", rest)
    }

    /// Whether the second is the second line of the name that a heading names.
    pub(super) fn continues_name(
        &self,
        first: &NameCandidate<'_>,
        second: &NameCandidate<'_>,
    ) -> bool {
        let (name, joined) = self.full_name(first);
        let compact = compact_name(&name);
        // Printed on one line elsewhere, or under the heading of the issuer.
        let again = || {
            let mut cells = self.layout.cells.iter();
            cells.any(|cell| {
                !std::ptr::eq(cell, first.cell)
                    && compact_name(&cell.joined_text()).contains(&compact)
            })
        };
        joined > 0
            && compact.ends_with(&compact_name(&second.name))
            && (first.has(NameSign::Labelled) || first.has(NameSign::Witnessed) && again())
    }

    /// Whether a heading such as "Bill to" is over or before the cell.
    pub(super) fn is_customer(&self, cell: &TextCell) -> bool {
        match self.customers.get(cell.index) {
            Some(known) => *known.get_or_init(|| self.is_customer_uncached(cell)),
            None => self.is_customer_uncached(cell),
        }
    }

    fn is_customer_uncached(&self, cell: &TextCell) -> bool {
        if self.has_attention_below(cell) {
            return true;
        }
        if self.is_on_remittance_slip(cell) {
            return false;
        }
        if self.recipient.binary_search(&cell.index).is_ok() {
            return true;
        }
        // A register is under a recipient, not in its block.
        let registration = LazyCell::new(|| is_registry_line(&cell.joined_text()));
        self.matches.of_field("customer").any(|label_match| {
            let Some(label) =
                self.matches.cell_of(label_match).filter(|_| label_match.words.start == 0)
            else {
                return false;
            };
            let heading = label.words.len() <= label_match.words.len() + 2 && !*registration;
            let drop = cell.area.y - label.area.bottom();
            let under = heading
                && label.page == cell.page
                && drop > -0.5 * label.area.h
                && drop < 9.0 * label.area.h
                && (label.area.x - cell.area.x).abs() < 4.0 * label.area.h;
            let inline = label.row == cell.row
                && label.area.x <= cell.area.x
                && label.page == cell.page
                && cell.overlap_x(label) > -12.0 * cell.area.h
                && !self.heads_recipient(label_match.cell, label);
            under || inline
        })
    }

    /// Whether the cell is under the heading of a payment slip: there `To` names the payee.
    fn is_on_remittance_slip(&self, cell: &TextCell) -> bool {
        self.matches.of_field("remittance_slip").any(|label_match| {
            label_match.words.start == 0
                && self.matches.cell_of(label_match).is_some_and(|heading| {
                    heading.page == cell.page
                        && heading.area.y < cell.area.y
                        && heading.words.len() <= label_match.words.len() + 1
                })
        })
    }

    /// `Verkäufer   M. Haller` among the details of a document: the salesperson, where no legal
    /// form and no address makes it the seller.
    pub(super) fn names_salesperson(
        &self,
        label_match: &LabelMatch,
        value: &TextCell,
        name: &str,
    ) -> bool {
        let Some(label) = self.matches.cell_of(label_match) else { return false };
        let folded = fold_text(&label.words_in(label_match.words.clone()).join(" "));
        let person = vocabulary().salesperson.has(&folded) && label.row == value.row;
        let mut block =
            self.block_below(value).into_iter().take(3).map(|line| self.line_text(line));
        person
            && !self.has_legal_form(name)
            && !block.any(|text| has_postal_code(&text) || is_street_line(&text))
    }

    /// Whether "Attn" or the like follows in the two lines under it: so begins a recipient.
    pub(super) fn has_attention_below(&self, cell: &TextCell) -> bool {
        let mut at = cell;
        (0..2).any(|_| {
            let next = self.layout.rows_from(at).find(|other| is_next_line(at, other));
            at = next.unwrap_or(at);
            // Under a heading in larger letters a family's name is no line of a recipient's block.
            let next = next.filter(|next| cell.area.h < relation::HEADING * next.area.h);
            next.is_some_and(|next| {
                self.matches.of_field("attention").any(|label_match| {
                    label_match.words.start == 0
                        && self
                            .matches
                            .cell_of(label_match)
                            .is_some_and(|own| std::ptr::eq(own, next))
                })
            })
        })
    }

    /// Whether the text has a form of address: it begins with `Mr`, `Frau` or the like, or they are
    /// right over it.
    pub(super) fn is_addressed(&self, cell: &TextCell) -> bool {
        let mut before = self.layout.rows_before(cell);
        self.begins_with_attention(cell, false)
            || before
                .any(|above| is_next_line(above, cell) && self.begins_with_attention(above, true))
    }

    fn begins_with_attention(&self, line: &TextCell, whole: bool) -> bool {
        self.matches.in_cell(line.index).any(|label_match| {
            label_match.field == "attention"
                && label_match.words.start == 0
                && (!whole || label_match.words.end == line.words.len())
        })
    }

    /// Whether a block has a telephone or a mail address up to its foot: recipients are written to,
    /// and a family name with contact details is a business.
    pub(super) fn is_reached_below(&self, cell: &TextCell) -> bool {
        self.block_below(cell).iter().any(|line| self.has_contact_details(line))
    }

    pub(super) fn is_name(&self, text: &str) -> bool {
        let folded = fold_text(text);
        // `Kettle Stop #0417`: which of its shops it is.
        let own = self.matches.style.shop_of_branch(text);
        let letters = count_letters(own);
        let digits = count_digits(own);
        let words: Vec<&str> = folded.split(' ').collect();
        let first = self.labels.labels_at(&words);
        // A label as a whole or with a colon: `Invoice`, `Date: ...`; but "Total Energies" is a
        // name.
        let label = first.iter().any(|found| {
            found.length == words.len()
                || text.contains(':')
                || found.field == self.matches.kind.field_of(FieldRole::DocumentNumber)
                || (found.strong && digits > 0)
                || found.field == "customer"
        });
        // `Partner: Kettle GmbH`: the label belongs to another party.
        let called = text.split_once(": ").is_some_and(|(front, _)| !self.has_legal_form(front));
        // `Van` over the sender.
        let heading = vocabulary().party_from.has(&folded) || vocabulary().party_to.has(&folded);
        // `f l o r i s t`: a word that is set with spaces.
        let spaced = words.len() > 3 && words.iter().all(|word| word.chars().count() == 1);
        letters >= 3
            && !spaced
            && !called
            && !heading
            && !self.is_heading_of_party(&words)
            && !self.is_heading_in_two_languages(text)
            && !self.is_form_and_seat(&words)
            && (digits <= letters / 3 || self.is_numbered_company(text))
            && text.len() <= MAX_NAME
            && text.split(' ').count() <= 10
            && !label
            && !text.contains(['@', '€', '$', '%', '?', '!'])
            && !folded.starts_with("www")
            && !folded.starts_with("http")
            && date::find_dates(text).is_empty()
            && !text.trim_end().ends_with(':')
            // `Province: CO`
            && text.rsplit_once(": ").is_none_or(|(_, last)| last.chars().count() > 3)
            && !(text.starts_with('[') && text.ends_with(']'))
            && !(text.starts_with('(') && text.ends_with(')'))
    }

    /// `9418-2206 Québec inc.`, `1234567 Ontario Inc.`: Canadian numbered companies.
    pub(super) fn is_numbered_company(&self, text: &str) -> bool {
        let Some((number, rest)) = text.split_once(' ') else { return false };
        let digits = count_digits(number);
        (7..=8).contains(&digits)
            && number.chars().all(|c| c.is_ascii_digit() || c == '-')
            && (2..=3).contains(&rest.split(' ').count())
            && rest.starts_with(char::is_uppercase)
            && self.ends_in_legal_form(rest)
    }

    /// `Billing group:   Weekly`: a text that ends in a colon and has its value in the same row.
    pub(super) fn is_label_with_value(&self, cell: &TextCell) -> bool {
        cell.words.last().is_some_and(|word| word.ends_with(':'))
            && self.layout.next_in_row(cell).is_some()
    }

    /// `Kommanditgesellschaft, Sitz Northtown`: form and seat of a company, under its name.
    fn is_form_and_seat(&self, words: &[&str]) -> bool {
        let [form, rest @ ..] = words else { return false };
        vocabulary().form_ending.iter().any(|ending| form.ends_with(ending))
            && self.labels.has_label_at("registered_office", rest)
    }

    /// `Cedente/prestatore (fornitore)`: nothing but headings of a party, one behind the other.
    fn is_heading_of_party(&self, words: &[&str]) -> bool {
        let mut at = 0;
        while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
            let labels = self.labels.labels_at(rest).into_iter();
            let party = labels.filter(|one| matches!(one.field, "supplier" | "customer"));
            let Some(length) = party.map(|one| one.length).max() else { return false };
            at += length;
        }
        at > 0
    }

    /// `Prestator / Carrier`: the heading of a party, and a word for it in another language.
    fn is_heading_in_two_languages(&self, text: &str) -> bool {
        let halves = text.split_once(" / ").map(|(a, b)| [fold_text(a), fold_text(b)]);
        halves.is_some_and(|halves| {
            let words = halves.each_ref().map(|half| half.split(' ').collect::<Vec<&str>>());
            words.iter().all(|words| words.len() <= 2)
                && words.iter().any(|words| self.is_heading_of_party(words))
                && !self.has_legal_form(text)
        })
    }

    /// The name before a label of the registered office, and the text behind it.
    pub(super) fn split_at_registered_office(&self, text: &str) -> (String, Option<String>) {
        let words: Vec<&str> = text.split(' ').collect();
        let folded: Vec<String> = words.iter().map(|word| fold_text(word)).collect();
        let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
        let labelled = (1..words.len()).find_map(|at| {
            let found = self.labels.labels_at(folded.get(at..)?).into_iter();
            let label =
                found.filter(|one| one.field == "registered_office").map(|one| one.length).max()?;
            Some((words.get(..at)?.join(" "), words.get(at + label..)?.join(" ")))
        });
        match labelled {
            Some((name, street)) if !street.is_empty() => (name, Some(street)),
            _ => (text.to_owned(), None),
        }
    }

    pub(super) fn has_legal_form(&self, text: &str) -> bool {
        let folded = fold_text(text);
        let words: Vec<&str> = folded.split(' ').collect();
        let within = (1..words.len()).any(|at| {
            let rest = words.get(at..).unwrap_or_default();
            self.labels.has_label_at("legal_form", rest)
        });
        // A till's paper has the shop's name over its company's.
        within || !self.matches.style.shop_head && begins_with_form(text)
    }

    /// Whether the last words are a company's legal form.
    pub(super) fn ends_in_legal_form(&self, text: &str) -> bool {
        let folded = fold_text(text);
        let words: Vec<&str> = folded.split(' ').collect();
        (1..words.len()).any(|at| {
            let rest = words.get(at..).unwrap_or_default();
            self.labels.is_label("legal_form", rest)
        })
    }

    /// Whether the next line, or the next cell, is only a legal form: `Alder Works` over `Pty Ltd`.
    pub(super) fn has_form_below(&self, cell: &TextCell) -> bool {
        let below = self.layout.cell_below(cell, 0.9);
        let below = below.filter(|below| (below.area.x - cell.area.x).abs() < below.area.h);
        below.is_some_and(|form| self.is_bare_form(form)) || self.form_beside(cell).is_some()
    }

    /// The legal form that a wide space parts from the name in its line: `ALDER    LTD.`
    pub(super) fn form_beside(&self, cell: &TextCell) -> Option<&TextCell> {
        let next = self.layout.next_in_row(cell).filter(|_| !self.matches.style.one_column)?;
        let close = next.area.x - cell.area.right() < FORM_ASIDE * cell.area.h;
        (close && self.is_bare_form(next)).then_some(next)
    }

    /// Whether a text is nothing but a legal form.
    pub(super) fn is_bare_form(&self, form: &TextCell) -> bool {
        let folded = fold_text(&form.joined_text());
        let words: Vec<&str> = folded.split(' ').collect();
        form.words.len() <= 3 && self.labels.is_label("legal_form", &words)
    }
}

/// `UAB Kettle`, `SARL Kettle`: a form in capitals before the name.
pub(super) fn begins_with_form(text: &str) -> bool {
    let Some((form, _)) = text.split_once(' ') else { return false };
    let capitals = form.chars().filter(|c| c.is_uppercase()).count();
    // `II e ultimo acconto` is no firm of Lithuania's (`IĮ`, folded).
    let counts = form.chars().all(|c| matches!(c, 'I' | 'V' | 'X'));
    capitals > 1 && !counts && vocabulary().form_before.has(&fold_text(form))
}

/// `Geom. Carlo Bianchi`: a person with a title.
pub(super) fn begins_with_title(text: &str) -> bool {
    let folded = fold_text(text);
    folded.split_once(' ').is_some_and(|(title, _)| vocabulary().title.has(title))
}
/// Whether a name has the first name of which the other one has the initial: `Jens Birke`, `J.
/// Birke`.
pub(super) fn is_spelled_out(full: &str, short: &str) -> bool {
    let (Some((first, rest)), Some((initial, other))) =
        (full.split_once(' '), short.split_once(". "))
    else {
        return false;
    };
    let mut letters = initial.chars();
    let one = letters.next().filter(|letter| letter.is_uppercase() && letters.next().is_none());
    one.is_some_and(|letter| first.starts_with(letter))
        && first.chars().nth(1).is_some_and(char::is_lowercase)
        && fold_text(rest) == fold_text(other)
}
