//! Owners of accounts: the payee's name has the words of the lines that head the page.

use super::{NameCandidate, NameSign, SupplierSearch, tidy_name};
use crate::rules::layout::TextCell;
use docmill_formats::notation::fold_text;

/// Labels of accounts' owners that are looked at.
const MAX_OWNERS: usize = 20;

/// The words of a text, folded and in order of the alphabet.
fn sorted_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = fold_text(text).split(' ').map(str::to_owned).collect();
    words.sort();
    words
}

impl SupplierSearch<'_> {
    /// `Joost Kettle` over `Gardens` at the head, `t.n.v. Gardens Joost Kettle` behind the account:
    /// both lines are the name, in the order in which the bank has it.
    pub(super) fn mark_account_owners(&self, merged: &mut [NameCandidate<'_>]) {
        use NameSign::{Attention, Customer, Head, Large, Place, Prose, Window, Witnessed};
        let theirs = [Attention, Customer, Place, Prose, Window, Witnessed];
        let owners: Vec<&[String]> = self.owners().take(MAX_OWNERS).collect();
        for one in merged {
            let heads = one.has(Head) && (one.has(NameSign::First) || one.has(Large));
            if !heads || one.has_any(&theirs) {
                continue;
            }
            let Some(name) = self.owner_of_lines(one.cell, &one.name, &owners) else { continue };
            one.name = name;
            one.signs.retain(|sign| *sign != NameSign::Repeated);
            one.signs.push(Witnessed);
        }
    }

    /// The texts behind the labels of an account's owner, in their lines.
    fn owners(&self) -> impl Iterator<Item = &[String]> {
        let labels = self.matches.of_field("payee");
        labels.filter_map(|label_match| {
            self.layout.cells.get(label_match.cell)?.words.get(label_match.words.end..)
        })
    }

    /// The owner with the words of a line and of the next one together.
    fn owner_of_lines(&self, line: &TextCell, name: &str, owners: &[&[String]]) -> Option<String> {
        let below = self.layout.rows_from(line).find(|below| self.is_continued_by(line, below))?;
        let below = tidy_name(&below.joined_text());
        let both = format!("{name} {below}");
        let words = sorted_words(&both);
        let count = both.split(' ').count();
        owners.iter().find_map(|owner| {
            let owner = tidy_name(&owner.get(..count)?.join(" "));
            (self.is_name(&below) && sorted_words(&owner) == words).then_some(owner)
        })
    }
}
