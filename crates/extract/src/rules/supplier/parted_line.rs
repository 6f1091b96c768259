//! Lines of a head or a foot divided by gaps, points or bars: street and town in one row.

use super::address::{is_registry_line, is_street_and_town, is_street_line};
use super::name::FORM_ASIDE;
use super::postal_code::{has_postal_code, is_canadian_code};
use super::{SupplierSearch, is_next_area, tidy_name};
use crate::rules::layout::TextCell;
use docmill_core::model::BoundingBox;

/// Heights of a line between the parts of one line.
const PARTED: f32 = 3.0;

/// The same where they are street and town, or an address and a telephone.
const PARTED_WIDE: f32 = 6.0;

/// Heights of a line between the parts of one line on a receipt.
const PARTED_ON_TILL: f32 = 2.5;

impl SupplierSearch<'_> {
    /// The cells of the next line, divided by points or bars, as under a name in a footer: `Mill
    /// Road 12 · 82216 Northtown · VAT DE123456789`. They are under the name together.
    pub(super) fn parted_line_below<'s>(&'s self, above: &TextCell) -> &'s [TextCell] {
        let rows = (above.row + 1..=above.row + 2).map(|row| self.layout.row_cells(row));
        let next = rows.into_iter().find(|row| {
            let within = |most: f32| {
                row.windows(2).all(|pair| match pair {
                    [a, b] => b.area.x - a.area.right() < most * a.area.h,
                    _ => false,
                })
            };
            let address = within(PARTED_WIDE) && self.is_address_row(row);
            let area = row.iter().map(|cell| cell.area).reduce(BoundingBox::union);
            let first = row.first().filter(|first| first.page == above.page);
            // Centred lines of a head are aligned only roughly.
            let alone = self.layout.row_cells(above.row).len() == 1;
            let under = |area: BoundingBox| {
                let gap = area.y - above.area.bottom();
                alone
                    && area.x <= above.area.x
                    && above.area.right() <= area.right()
                    && (0.0..0.9 * above.area.h).contains(&gap)
            };
            row.len() > 1
                && first.is_some()
                && area.is_some_and(|area| {
                    (within(PARTED) || address) && is_next_area(above.area, area)
                        || address && under(area)
                })
        });
        next.unwrap_or_default()
    }

    /// `88 Depot St     Bend, OR 97701`, `203 Domain Road, Tai Tapu 7672     Ph 03 555 0140`: the
    /// row begins with a street, and continues with its town or with contact details.
    fn is_address_row(&self, row: &[TextCell]) -> bool {
        let [street, rest @ ..] = row else { return false };
        let text = street.joined_text();
        is_street_line(&text)
            && ((is_street_and_town(&text)
                && rest.iter().all(|cell| self.has_contact_details(cell)))
                || !has_postal_code(&text)
                    && rest.first().is_some_and(|cell| has_postal_code(&cell.joined_text())))
    }

    /// The text of a line: on a receipt with the part behind a wider gap, elsewhere with the town
    /// behind a point: `Mill Lane 12 · 12345 Town`.
    pub(super) fn line_text(&self, cell: &TextCell) -> String {
        let mut text = cell.joined_text();
        let right = self.layout.next_in_row(cell);
        let foot = self.layout.cell_below(cell, 1.5).is_none();
        let town = right.filter(|next| {
            let town = next.joined_text();
            // The columns of a footer are read across where the town is not below.
            let coded = town.starts_with(|c: char| c.is_ascii_digit()) && next.words.len() <= 4;
            let across = foot && coded && is_street_line(&text);
            let gap = next.area.x - cell.area.right();
            let on_till = self.matches.style.one_column
                && is_street_line(&text)
                && (PARTED_ON_TILL..PARTED_WIDE).contains(&(gap / cell.area.h));
            (on_till || !self.matches.style.one_column)
                && (on_till
                    || across
                    || gap < 2.0 * cell.area.h
                    || is_canadian(next) && gap < FORM_ASIDE * cell.area.h)
                && (is_street_line(&text) || next.words.len() <= 2)
                && !has_postal_code(&text)
                && has_postal_code(&town)
                && !is_registry_line(&town)
        });
        if let Some(town) = town {
            let between = if is_street_line(&text) { ", " } else { " " };
            return format!("{}{between}{}", tidy_name(&text), tidy_name(&town.joined_text()));
        }
        let mut last = cell;
        let behind = self.layout.right_of(cell.index).iter();
        for next in behind.filter(|_| self.matches.style.one_column) {
            if self.matches.begins_with_label(next.index)
                || next.area.x - last.area.right() > PARTED_ON_TILL * cell.area.h
            {
                break;
            }
            text = format!("{text} {}", next.joined_text());
            last = next;
        }
        tidy_name(&text)
    }
}

/// `H2T 3B3`, which a wider gap parts from its town.
fn is_canadian(cell: &TextCell) -> bool {
    matches!(cell.words.as_slice(), [front, back] if is_canadian_code(front, back))
}

#[cfg(test)]
mod tests {
    use super::super::super::label_matches::LabelMatches;
    use super::super::super::layout::CellLayout;
    use super::super::super::layout::tests::transcript;
    use super::super::SupplierSearch;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn street_and_telephone_stand_about_in_the_middle_under_the_name() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let address = "203 Mill Road, Tai Moor 7672";
        for (beside, expected) in [("Ph 03 555 0140", Some(address)), ("somewhere", None)] {
            let page = format!(
                "Invoice 12\n                    Kettle River Vets Ltd\n           {address}         {beside}"
            );
            let layout = CellLayout::new(&transcript(&[&page]));
            let matches = LabelMatches::new(&layout, kind);
            let search = SupplierSearch::new(&matches);
            let below = search.address_below(&layout.cells[1], 0).map(|found| found.text());
            assert_eq!(below.as_deref(), expected, "{beside}");
        }
    }
}
