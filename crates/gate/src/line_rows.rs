//! Lines of an attached XML against the rows of the pages: a cell that is printed otherwise, a line that no
//! row has, a row that no line has.
//!
//! Rows that print quantity, price and amount of a line show the columns; pages without such a row are not
//! compared. Discounts, taxes and packs that are printed in the row explain a difference.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::{Map, Value};

use super::checks::FailedFields;
use super::einvoice::holds_amount;
use super::rows::{NumberRows, PrintedNumber, is_made_by, remove_number};
use super::subject::{GateSubject, json_decimal};
use super::sums::{is_close, share_of};
use crate::kinds::FieldRole;
use docmill_formats::notation::fold_text;

/// Quantity, price and amount of a line.
type LineCells = [Decimal; 3];
/// The same, as a row prints them.
type RowCells<'r> = [&'r PrintedNumber; 3];

/// The cells by their names in the data.
const CELLS: [&str; 3] = ["quantity", "unit_price", "amount"];
const HALF_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);
/// Shorter words are units and articles.
const MIN_WORD_CHARS: usize = 4;

impl GateSubject<'_> {
    /// The lines and cells of `list` that the pages print otherwise.
    pub(super) fn denied_lines(&self) -> FailedFields {
        let list = self.kind.field_of(FieldRole::Lines);
        let lines: Vec<&Map<String, Value>> = self.list_items(list).collect();
        let rows = self.number_rows();
        let mut cells = BTreeMap::new();
        for (at, line) in lines.iter().enumerate() {
            cells.extend(line_cells(line).map(|cells| (at, cells)));
        }
        let Some(found) = PrintedLines::find(rows, &cells) else { return FailedFields::new() };
        let of_cell = |(at, cell): &(usize, usize)| {
            CELLS.get(*cell).map(|cell| format!("{list}[{at}].{cell}"))
        };
        let mut denied: Vec<String> = found.other_cells.iter().filter_map(of_cell).collect();
        let data = &self.extraction.data;
        let is_unknown = |amount: &Decimal| !data.values().any(|it| holds_amount(it, amount.abs()));
        // Of a line and a row without each other two cells may differ: a discount in a row of its own.
        let has_more = found.missing.is_empty() && found.other_rows.iter().any(is_unknown);
        let has_less = found.other_rows.is_empty()
            && found
                .missing
                .iter()
                .any(|at| lines.get(*at).is_some_and(|it| self.is_unprinted(it)));
        denied.extend((has_more || has_less).then(|| list.to_owned()));
        let printed = found.printed.iter().filter_map(|at| Some((*at, lines.get(*at)?)));
        let (told, untold): (Vec<_>, Vec<_>) =
            printed.partition(|(_, line)| self.prints_description(line));
        let untold = untold.iter().filter(|_| !told.is_empty());
        denied.extend(untold.map(|(at, _)| format!("{list}[{at}].description")));
        denied.into_iter().map(Some).collect()
    }

    /// Whether the amount of a line is printed nowhere, with its tax neither.
    fn is_unprinted(&self, line: &Map<String, Value>) -> bool {
        let [amount, rate] =
            ["amount", "tax_rate"].map(|cell| line.get(cell).and_then(json_decimal));
        let tax = amount.zip(rate).and_then(|(amount, rate)| share_of(amount, rate));
        let gross = amount.zip(tax).map(|(amount, tax)| (amount + tax).round_dp(2));
        let mut amounts = amount.into_iter().chain(gross);
        amount.is_some_and(|amount| !amount.is_zero())
            && amounts.all(|amount| self.ground.number_places(amount).is_empty())
    }

    /// Whether a word of the description of a line is printed, or it has none that tells.
    fn prints_description(&self, line: &Map<String, Value>) -> bool {
        let text = fold_text(line.get("description").and_then(Value::as_str).unwrap_or_default());
        let mut words =
            text.split(' ').filter(|word| word.chars().count() >= MIN_WORD_CHARS).peekable();
        words.peek().is_none() || words.any(|word| self.ground.holds_words(word, 1.0))
    }
}

/// The lines of an XML that were found on the pages, and what of others was found.
#[derive(Debug, Default)]
struct PrintedLines {
    /// Lines of which a row prints all three cells.
    printed: Vec<usize>,
    /// Of lines without such a row, the one cell that a row has otherwise.
    other_cells: Vec<(usize, usize)>,
    /// Lines without any row.
    missing: Vec<usize>,
    /// Amounts of rows in which quantity and price make it, and that are no line's.
    other_rows: Vec<Decimal>,
}

impl PrintedLines {
    /// Finds lines, by their positions; `None`: no row shows the columns.
    fn find(rows: &NumberRows, lines: &BTreeMap<usize, LineCells>) -> Option<Self> {
        let mut found = Self::default();
        let (mut rest, mut columns) = (rows.rows.iter().collect::<Vec<_>>(), Vec::new());
        for (at, cells) in lines {
            if !rows.comparisons.spend(rows.numbers) {
                return None;
            }
            let Some(row) = rest.iter().position(|row| holds_all(row, cells)) else {
                found.missing.push(*at);
                continue;
            };
            columns.extend(single_cells(rest.remove(row), cells));
            found.printed.push(*at);
        }
        let columns: Vec<RowCells<'_>> = columns.into_iter().take(MAX_COLUMNS).collect();
        if columns.is_empty() || !rows.comparisons.spend(rows.numbers * (1 + found.missing.len())) {
            return None;
        }
        let mut rest: Vec<(RowCells<'_>, &[PrintedNumber])> = rest
            .into_iter()
            .filter_map(|row| {
                Some((columns.iter().find_map(|it| cells_below(row, it))?, row.as_slice()))
            })
            .collect();
        found.missing.retain(|at| {
            let Some(cells) = lines.get(at) else { return true };
            let near =
                rest.iter().position(|(printed, _)| differing_cell(printed, cells).is_some());
            let Some((printed, row)) = near.map(|at| rest.remove(at)) else { return true };
            let other = differing_cell(&printed, cells)
                .filter(|cell| !is_explained(*cell, &printed, cells, row));
            found.other_cells.extend(other.map(|cell| (*at, cell)));
            false
        });
        let others = rest.iter().map(|(printed, _)| printed.map(|it| it.value));
        found.other_rows = others.filter(is_product).map(|[.., amount]| amount).collect();
        Some(found)
    }
}

/// Rows of which the columns are taken.
const MAX_COLUMNS: usize = 20;

/// The three numbers of a line whose price is for one of its unit.
fn line_cells(line: &Map<String, Value>) -> Option<LineCells> {
    let [quantity, price, amount] = CELLS.map(|cell| line.get(cell).and_then(json_decimal));
    let is_single = line.get("price_base_quantity").is_none_or(Value::is_null);
    Some([quantity.filter(|_| is_single)?, price?, amount?])
}

fn holds_all(row: &[PrintedNumber], cells: &LineCells) -> bool {
    let mut rest: Vec<&PrintedNumber> = row.iter().filter(|it| !it.percent).collect();
    cells.iter().all(|cell| remove_number(&mut rest, *cell))
}

/// The numbers of a row that are these cells, where each is printed once.
fn single_cells<'r>(row: &'r [PrintedNumber], cells: &LineCells) -> Option<RowCells<'r>> {
    let [quantity, price, amount] = cells.map(|cell| {
        let mut equal = row.iter().filter(|it| !it.percent && it.equals(cell));
        equal.next().filter(|_| equal.next().is_none())
    });
    Some([quantity?, price?, amount?])
}

/// The numbers of a row that stand in the columns of another one.
fn cells_below<'r>(row: &'r [PrintedNumber], columns: &RowCells<'_>) -> Option<RowCells<'r>> {
    let [quantity, price, amount] = columns.map(|column| {
        let mut below = row.iter().filter(|it| !it.percent && it.is_below(column));
        below.next().filter(|_| below.next().is_none())
    });
    let [quantity, price, amount] = [quantity?, price?, amount?];
    let pairs = [(quantity, price), (price, amount), (amount, quantity)];
    let are_apart = !pairs.into_iter().any(|(one, other)| std::ptr::eq(one, other));
    are_apart.then_some([quantity, price, amount])
}

/// The one cell that differs.
fn differing_cell(printed: &RowCells<'_>, cells: &LineCells) -> Option<usize> {
    let pairs = printed.iter().zip(cells).enumerate();
    let mut differing = pairs.filter(|(_, (it, cell))| !it.equals(**cell)).map(|(at, _)| at);
    differing.next().filter(|_| differing.next().is_none())
}

fn is_product([quantity, price, amount]: &LineCells) -> bool {
    let product = quantity.checked_mul(*price).map(|it| it.abs());
    !amount.is_zero() && product.is_some_and(|it| is_close(it, amount.abs(), HALF_CENT))
}

/// Whether a discount, a tax, or what a price is for, explains that a row has another cell.
fn is_explained(
    cell: usize,
    printed: &RowCells<'_>,
    cells: &LineCells,
    row: &[PrintedNumber],
) -> bool {
    let own = printed.map(|it| it.value.abs());
    let [quantity, price, amount] = own;
    let Some(product) = quantity.checked_mul(price) else { return true };
    let mut factors = [10, 100, 1_000].map(Decimal::from).into_iter();
    let is_rounded = printed.iter().zip(cells).any(|(it, cell)| {
        let rounded = cell.abs().round_dp(it.value.scale());
        !it.equals(*cell) && it.equals(rounded)
    });
    // Prices may be those before a discount that no row prints, amounts those before a line's own.
    let is_told = is_rounded
        || match cell {
            1 => !is_product(&own),
            2 => !is_product(cells),
            _ => false,
        };
    let others = row.iter().filter(|it| !printed.iter().any(|own| std::ptr::eq(*own, *it)));
    let mut others = others.chain(row.iter().filter(|it| it.percent));
    let with_tax = cells.iter().zip(&own).any(|(cell, own)| {
        let mut rates = row.iter().filter(|it| it.percent);
        rates.any(|rate| {
            let tax = share_of(cell.abs(), rate.value);
            tax.is_some_and(|tax| is_close(cell.abs() + tax, *own, HALF_CENT * Decimal::TEN))
        })
    });
    is_told
        || with_tax
        || factors.any(|by| is_close(product, amount.saturating_mul(by), HALF_CENT * by))
        || others.any(|other| is_made_by(product, other, amount, HALF_CENT))
}
