//! Addresses in the small print of a page: over two lines, in front of telephone and account, in
//! the columns of a footer.

use super::address::{AddressLines, is_registry_line, is_street_line, parted_address};
use super::postal_code::has_postal_code;
use super::{SupplierSearch, is_next_line, tidy_name};
use crate::rules::layout::TextCell;

/// Share of a page's height above which no footer is.
const LOWER: f32 = 0.35;

impl SupplierSearch<'_> {
    /// The lines at the foot of a page, or under all of its amounts, that are not the recipient's.
    fn foot_lines(&self) -> impl Iterator<Item = &TextCell> {
        let cells = self.layout.cells.iter();
        cells.filter(|cell| {
            let amounts = self.last_amounts.get(cell.page).copied().flatten();
            let under = amounts.is_some_and(|row| cell.row > row);
            let foot = under || self.is_in_last_lines(cell);
            foot && !self.is_customer(cell)
        })
    }

    /// `Kettle a.s., Mill Lane 4/12,` over `702 00 Northtown`: the line breaks before the town.
    pub(super) fn wrapped_office(&self) -> Option<AddressLines> {
        self.foot_lines().find_map(|cell| {
            let text = cell.joined_text();
            let front = text.strip_suffix(',')?;
            let street = front.rsplit([',', '.']).next()?.trim();
            let below = self.layout.rows_from(cell).find(|other| is_next_line(cell, other))?;
            let town = below.joined_text();
            let town = town.split(". ").next()?;
            let named = self.has_legal_form(front);
            let holds = is_street_line(street) && !has_postal_code(street) && has_postal_code(town);
            let plain = !is_registry_line(street) && !is_registry_line(town);
            let lines = vec![tidy_name(street), tidy_name(town)];
            (named && holds && plain).then_some(AddressLines {
                lines,
                town: true,
                least: cell.confidence.min(below.confidence),
            })
        })
    }

    /// `Mill Lane 7, 4207 HE Northtown, tel. 0183-555 010, IBAN …, KvK 23099117`: street and town
    /// begin a line with a register or an account.
    pub(super) fn office_before_details(&self) -> Option<AddressLines> {
        self.foot_lines().find_map(|cell| {
            let text = cell.joined_text();
            let told = is_registry_line(&text);
            let lines = vec![parted_address(&text).filter(|_| told)?];
            Some(AddressLines { lines, town: true, least: cell.confidence })
        })
    }

    /// A street over its town in the lower half, in rows with telephone or mail and a register in
    /// other columns.
    pub(super) fn office_in_columns(&self) -> Option<AddressLines> {
        let streets = self.layout.cells.iter().filter(|cell| {
            let first = self.layout.row_cells(cell.row).first();
            first.is_some_and(|first| std::ptr::eq(first, *cell))
                && self.layout.depth_on_page(cell) > LOWER
                && !self.is_customer(cell)
        });
        streets.into_iter().find_map(|street| {
            let town = self.layout.cell_below(street, 1.2)?;
            let rows = [street.row, town.row].map(|row| self.layout.row_cells(row));
            let beside = || rows.iter().flat_map(|row| row.iter().skip(1));
            let reach = beside().any(|cell| self.has_contact_details(cell));
            let register = beside().any(|cell| self.is_contact(cell));
            let least = street.confidence.min(town.confidence);
            let (street, town) = (tidy_name(&street.joined_text()), tidy_name(&town.joined_text()));
            let holds = is_street_line(&street) && !has_postal_code(&street);
            let lines = vec![street, town.clone()];
            (reach && register && holds && has_postal_code(&town)).then_some(AddressLines {
                lines,
                town: true,
                least,
            })
        })
    }
}
