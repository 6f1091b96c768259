//! Parties in columns beside each other, each under its heading: what stands in the recipient's column is his, though
//! a line that only the other column has parts it from what is above.

use super::SupplierSearch;
use super::address::PARTIES_APART;
use crate::extract::rules::layout::TextCell;
use crate::extract::rules::spots::LabelMatch;

/// Rows under the headings that belong to the parties at most.
const MOST_ROWS: usize = 12;

/// Heights of a line that part what is under the parties from them.
const APART: f32 = 1.2;

impl SupplierSearch<'_> {
    /// The cells of the recipient's column under his heading, where the issuer's stands beside it.
    pub(super) fn cells_of_column(&self, heading: &LabelMatch) -> Vec<usize> {
        let Some(own) = self.spots.cell_of(heading) else { return Vec::new() };
        let whole = |spot: &LabelMatch, cell: &TextCell| {
            spot.words.start == 0 && cell.words.len() <= spot.words.len() + 1
        };
        let mut issuers = self.spots.of_field("supplier").filter_map(|spot| {
            let cell = self.spots.cell_of(spot).filter(|cell| whole(spot, cell))?;
            let apart = (cell.area.x - own.area.x).abs() > PARTIES_APART * own.area.h;
            (cell.page == own.page && cell.row == own.row && apart).then_some(cell)
        });
        let Some(issuer) = issuers.next().filter(|_| whole(heading, own)) else {
            return Vec::new();
        };
        let end = if issuer.area.x > own.area.x { issuer.area.x - own.area.h } else { f32::MAX };
        let mut bottom = own.area.bottom();
        let rows = (own.row + 1..=own.row + MOST_ROWS).map_while(|row| {
            let cells = self.layout.row_cells(row);
            let first = cells.first().filter(|first| first.page == own.page)?;
            let near = first.area.y - bottom < APART * first.area.h;
            bottom = cells.iter().map(|cell| cell.area.bottom()).fold(bottom, f32::max);
            (near && !self.layout.is_on_amount_row(first)).then_some(cells)
        });
        let column = rows
            .flatten()
            .filter(|cell| cell.area.x > own.area.x - 0.6 * own.area.h && cell.area.right() < end);
        column.filter_map(|cell| self.layout.index_of(cell)).collect()
    }
}
