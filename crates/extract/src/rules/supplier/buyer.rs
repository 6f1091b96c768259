//! The recipient: read only with a heading or label. A block in the window of an envelope without
//! one is usually a recipient, and not read.

use super::place::MAX_HEADINGS;
use super::{NameCandidate, NameSign, SupplierSearch, compact_name};
use crate::rules::FoundValue;
use crate::rules::layout::TextCell;
use docmill_formats::notation::{printed_vat_id, vat_id};
use docmill_gate::kinds::FieldRole;

impl SupplierSearch<'_> {
    /// The name under or beside a heading of the recipient; `supplier` is not it.
    pub(super) fn find_buyer_name(&self, supplier: &str) -> Option<FoundValue<String>> {
        let own = compact_name(supplier);
        let headings = self
            .matches
            .of_role(FieldRole::BuyerName)
            .filter(|label_match| label_match.words.start == 0);
        headings.take(MAX_HEADINGS).find_map(|label_match| {
            let (name, cell) = self.beside_label(label_match)?;
            (compact_name(&name) != own).then(|| FoundValue::new(name, true, cell))
        })
    }

    /// The identifier beside the recipient's label, or in the recipient's block.
    pub(super) fn find_buyer_vat_id(
        &self,
        supplier: Option<&FoundValue<String>>,
    ) -> Option<FoundValue<String>> {
        let own = supplier.map(|found| vat_id::normalise_vat_id(&found.value));
        let labelled = self.matches.of_field("customer_vat_id").find_map(|label_match| {
            let beside = self.matches.value_candidates(label_match).into_iter();
            beside.into_iter().find_map(|beside| {
                let words = beside.value_words();
                let id = (0..words.len())
                    .find_map(|at| printed_vat_id::find_at(words.get(at..).unwrap_or_default()))?;
                Some(FoundValue::new(id.0, true, beside.cell))
            })
        });
        labelled.or_else(|| self.buyer_vat_id_in_block()).filter(|found| {
            own.as_ref().is_none_or(|own| *own != vat_id::normalise_vat_id(&found.value))
        })
    }

    /// Whether the first page has a third party's identifier that no heading gives to the
    /// recipient, and this name has little but its own identifier: either of two blocks side by
    /// side may be the issuer. The sender is seldom lower on the page than the recipient.
    pub(super) fn has_rival_identifier(
        &self,
        best: &NameCandidate<'_>,
        own: Option<&FoundValue<String>>,
    ) -> bool {
        let Some(own) = own.filter(|_| self.has_only_identifier(best)) else {
            return false;
        };
        let lowest = self.layout.cells.get(own.cell).map_or(usize::MAX, |cell| cell.row);
        let own = vat_id::normalise_vat_id(&own.value);
        let is_rival = |cell: &TextCell| {
            let mut found = printed_ids(cell);
            found.any(|id| vat_id::normalise_vat_id(&id) != own)
        };
        let first = self.layout.cells.iter().take_while(|cell| cell.page == 0);
        let mut beside = first.take_while(|cell| cell.row <= lowest);
        beside.any(|cell| is_rival(cell) && !self.is_customer(cell))
    }

    /// Whether this name has little but the only identifier, and another company is above or beside it
    /// that no heading makes the recipient: suppliers abroad have no identifier where customers have one.
    pub(super) fn has_rival_without_identifier(
        &self,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        use NameSign::{
            AmountRow, Attention, Customer, Digits, LegalForm, OtherValue, Place, Prose, Window,
        };
        let theirs = [AmountRow, Attention, Customer, Digits, OtherValue, Place, Prose, Window];
        self.has_only_identifier(best)
            && candidates.iter().any(|one| {
                one.has(LegalForm)
                    && !one.has_any(&theirs)
                    && one.cell.page == best.cell.page
                    && one.cell.row <= best.cell.row
                    && self.block_below(one.cell).len() > 1
                    && !self.is_same_firm(best, one)
                    && !self.is_same_firm(one, best)
            })
    }

    /// Whether an identifier is all that speaks for a name: its label is no contact of its own.
    fn has_only_identifier(&self, best: &NameCandidate<'_>) -> bool {
        use NameSign::{
            Domain, Foot, Labelled, Large, Letterhead, Payee, SenderLine, VatNear, Witnessed,
        };
        let told = [Domain, Foot, Labelled, Large, Letterhead, Payee, SenderLine, Witnessed];
        let block = self.block_below(best.cell);
        best.has(VatNear)
            && !best.has_any(&told)
            && !block.iter().any(|line| self.is_contact(line) && printed_ids(line).next().is_none())
    }

    fn buyer_vat_id_in_block(&self) -> Option<FoundValue<String>> {
        let cells = self.recipient.iter().filter_map(|index| self.layout.cells.get(*index));
        cells
            .into_iter()
            .find_map(|cell| printed_ids(cell).next().map(|id| FoundValue::new(id, true, cell)))
    }
}

fn printed_ids(cell: &TextCell) -> impl Iterator<Item = String> {
    let words = cell.all_words();
    (0..words.len()).filter_map(move |at| {
        printed_vat_id::find_at(words.get(at..).unwrap_or_default()).map(|(id, _)| id)
    })
}
