//! The two ways in which documents are set, a till's receipt and a page, chosen once per document.
//! Readers ask for the trait that matters to them.

use docmill_gate::kinds::LabelIndex;

use super::certainty::{ReadingSign, sign_of_till};
use super::dates::DateSign;
use super::supplier::NameSign;

/// How documents are set, and where their readers differ.
#[derive(Debug)]
pub(super) struct PageStyle {
    /// The paper is one column: the next row continues a block even off its centre, wide gaps part
    /// a line, and nothing is beside the head or at the foot.
    pub(super) one_column: bool,
    /// A shop heads it, over its branch, owner or company, often without a postal code.
    pub(super) shop_head: bool,
    /// It is written to a recipient, with references, labels in its head, and a closing formula.
    pub(super) letter: bool,
    /// Its number has no label of its own, and is beside those of shop, cashier and order.
    pub(super) loose_number: bool,
    /// A clock prints its day, in parts, with the time.
    pub(super) printed_by_clock: bool,
    /// Amounts have codes of their tax, taxes are included in the total, and it is paid at once.
    pub(super) till_sums: bool,
    /// Its signs have weights of their own.
    till_signs: bool,
}

const RECEIPT: PageStyle = PageStyle {
    one_column: true,
    shop_head: true,
    letter: false,
    loose_number: true,
    printed_by_clock: true,
    till_sums: true,
    till_signs: true,
};

const PAGE: PageStyle = PageStyle {
    one_column: false,
    shop_head: false,
    letter: true,
    loose_number: false,
    printed_by_clock: false,
    till_sums: false,
    till_signs: false,
};

impl PageStyle {
    /// That of a receipt where the kind has labels of what was handed over.
    pub(super) fn of_labels(labels: &LabelIndex) -> &'static Self {
        if labels.labels_of("tendered").next().is_some() { &RECEIPT } else { &PAGE }
    }

    /// Adds the signs that a name has on a till's paper.
    pub(super) fn mark_name(&self, signs: &mut Vec<NameSign>) {
        if self.till_signs {
            let first = signs.contains(&NameSign::First).then_some(NameSign::TillFirst);
            let head = signs.contains(&NameSign::Head).then_some(NameSign::TillHead);
            signs.extend([NameSign::OnTill].into_iter().chain(first).chain(head));
        }
    }

    /// The signs of a day with a time beside it, or written by hand.
    pub(super) fn day_signs(&self, timed: bool, written: bool) -> Vec<DateSign> {
        let signs = [
            (DateSign::TillTime, timed && self.till_signs),
            (DateSign::OnTill, self.till_signs),
            (DateSign::Written, written && !self.printed_by_clock),
        ];
        signs.into_iter().filter(|(_, holds)| *holds).map(|(sign, _)| sign).collect()
    }

    /// The sign of a value with these signs.
    pub(super) fn reading_sign(&self, signs: &[ReadingSign]) -> Option<ReadingSign> {
        self.till_signs.then(|| sign_of_till(signs))
    }

    /// `Kettle Stop #0417`: the shop of which it is a branch.
    pub(super) fn shop_of_branch<'t>(&self, name: &'t str) -> &'t str {
        name.rsplit_once(" #").filter(|_| self.shop_head).map_or(name, |(shop, _)| shop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn receipts_are_read_as_tills_print_them_and_other_kinds_as_pages() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        for (kind, till) in
            [("receipt", true), ("invoice", false), ("credit_note", false), ("contract", false)]
        {
            let style = PageStyle::of_labels(&kinds.get(kind).unwrap().labels);
            assert_eq!((style.one_column, style.letter), (till, !till), "{kind}");
        }
    }
}
