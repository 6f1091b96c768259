//! Parties in columns, each under its heading: the text of the recipient's column is the
//! recipient's, even under a line that only the other column has.

use super::SupplierSearch;
use super::address::PARTIES_APART;
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use docmill_formats::notation::fold_text;

/// Rows under the headings that belong to the parties at most.
const MAX_ROWS: usize = 12;

/// Heights of a line between the parties and the text under them.
const APART: f32 = 1.2;

/// Heights of a line between a line of the recipient's block and a number behind it.
const CLOSE_BEHIND: f32 = 6.0;

/// The same where both columns go on alike.
const APART_ALIKE: f32 = 3.0;

impl SupplierSearch<'_> {
    /// The cells of the recipient's column under its heading, where the issuer's is beside it.
    pub(super) fn cells_of_column(&self, heading: &LabelMatch) -> Vec<usize> {
        let Some(own) = self.matches.cell_of(heading) else { return Vec::new() };
        let mut issuers = self.matches.of_field("supplier").filter_map(|label_match| {
            let cell = self
                .matches
                .cell_of(label_match)
                .filter(|cell| is_almost_whole_label(label_match, cell))?;
            let apart = (cell.area.x - own.area.x).abs() > PARTIES_APART * own.area.h;
            (cell.page == own.page && cell.row == own.row && apart).then_some(cell)
        });
        let Some(issuer) = issuers.next().filter(|_| is_almost_whole_label(heading, own)) else {
            return Vec::new();
        };
        let end = if issuer.area.x > own.area.x { issuer.area.x - own.area.h } else { f32::MAX };
        let mut bottom = own.area.bottom();
        let rows = (own.row + 1..=own.row + MAX_ROWS).map_while(|row| {
            let cells = self.layout.row_cells(row);
            let first = cells.first().filter(|first| first.page == own.page)?;
            let gap = (first.area.y - bottom) / first.area.h;
            let near = gap < APART
                || gap < APART_ALIKE
                    && has_same_labels(cells, issuer.area.x.max(own.area.x) - own.area.h);
            bottom = cells.iter().map(|cell| cell.area.bottom()).fold(bottom, f32::max);
            (near && !self.layout.is_on_amount_row(first)).then_some(cells)
        });
        let column = rows
            .flatten()
            .filter(|cell| cell.area.x > own.area.x - 0.6 * own.area.h && cell.area.right() < end);
        column.map(|cell| cell.index).collect()
    }
}

fn is_almost_whole_label(label_match: &LabelMatch, cell: &TextCell) -> bool {
    label_match.words.start == 0 && cell.words.len() <= label_match.words.len() + 1
}

/// `IČ DPH: …     IČ DPH: …`: both parties have the label, each in its column. The right one begins
/// at `right`.
fn has_same_labels(row: &[TextCell], right: f32) -> bool {
    let label = |cell: &TextCell| {
        let text = cell.joined_text();
        text.split_once(':').map(|(label, _)| fold_text(label))
    };
    let (left, right): (Vec<&TextCell>, Vec<&TextCell>) =
        row.iter().partition(|cell| cell.area.x < right);
    let labels = |cells: &[&TextCell]| cells.iter().filter_map(|cell| label(cell)).next();
    matches!((labels(&left), labels(&right)), (Some(a), Some(b)) if a == b)
}

impl SupplierSearch<'_> {
    /// Whether a heading is in one row of headings with the customer's code: `Cod. cliente
    /// Partita IVA`. The text under it is the customer's as well.
    fn is_beside_customer_code(&self, heading: usize) -> bool {
        let Some(cell) = self.layout.cells.get(heading) else { return false };
        let is_heading = |cell: &TextCell| {
            let closed = cell.words.last().is_some_and(|word| word.ends_with(':'));
            !closed
                && self
                    .matches
                    .in_cell(cell.index)
                    .any(|label_match| label_match.words == (0..cell.words.len()))
        };
        let of_customer = |cell: &TextCell| {
            cell.folded.iter().any(|(word, _)| self.labels.is_label("customer", &[word.as_str()]))
        };
        is_heading(cell)
            && self.layout.row_cells(cell.row).iter().any(|other| {
                other.index != heading
                    && is_heading(other)
                    && other.words.len() > 1
                    && of_customer(other)
            })
    }

    /// Whether an identifier, or its label, is the customer's by its row.
    pub(super) fn is_in_customers_row(&self, index: usize) -> bool {
        self.is_beside_customer_code(index)
            || self.layout.cells.get(index).is_some_and(|cell| self.is_in_row_of_customer(cell))
    }

    /// `Señor(es): Birch Club     CUIT: 30-55044771-9`: the row begins with the recipient.
    fn is_in_row_of_customer(&self, cell: &TextCell) -> bool {
        let row = self.layout.row_cells(cell.row);
        let first = row.first().filter(|first| first.page == cell.page);
        first.is_some_and(|first| {
            let named = self.matches.in_cell(first.index).any(|label_match| {
                label_match.words.start == 0
                    && matches!(label_match.field.as_str(), "customer" | "attention")
            });
            let colon = first.words.iter().any(|word| word.ends_with(':'));
            let block = self.recipient.binary_search(&first.index).is_ok();
            let near = cell.area.x - first.area.right() < CLOSE_BEHIND * cell.area.h;
            !std::ptr::eq(first, cell) && (named && colon || block && near)
        })
    }
}
