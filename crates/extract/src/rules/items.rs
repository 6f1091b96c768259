//! Line items: a header row of known columns, and the rows under it.
//!
//! Numbers go to the column above them; text left of the first of those is the description. A row
//! without an amount continues the previous description.

mod header;

use docmill_gate::kinds::FieldRole;
use rust_decimal::Decimal;

pub(super) use self::header::ItemColumn;
use self::header::{
    TableHeader, description_heading, find_headers, has_number, is_under, nearest_column,
    text_start,
};
use super::abs_close;
use super::characters::{count_letters, has_digit};
use super::label_matches::LabelMatches;
use super::layout::{CellLayout, TextCell};
use super::totals::without_tax_code;
use docmill_formats::notation::number::{self, FoundNumber};

/// One line, as far as its columns were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TableItem {
    pub(super) description: String,
    pub(super) quantity: Option<Decimal>,
    pub(super) unit_price: Option<Decimal>,
    pub(super) amount: Option<Decimal>,
    pub(super) article_number: Option<String>,
    pub(super) unit: Option<String>,
    /// In percent.
    pub(super) tax_rate: Option<Decimal>,
    /// The amount is written as money, not as a mere number.
    money: bool,
    /// The column that every row has is filled.
    keyed: bool,
    pub(super) page: usize,
    pub(super) line: u32,
}

impl TableItem {
    /// Whether quantity and price make the amount.
    fn is_product(&self) -> bool {
        let product = self.quantity.zip(self.unit_price).map(|(quantity, price)| quantity * price);
        let made = product.zip(self.amount);
        made.is_some_and(|(product, amount)| abs_close(product, amount, HALF_CENT))
    }
}

/// The rounding error of a product.
const HALF_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// Numbers of a row among which factors are looked for.
const MAX_NUMBERS: usize = 16;

/// Letters of a unit.
const MAX_UNIT_LETTERS: usize = 10;

/// No country's value added tax is higher, in percent.
const MAX_RATE: Decimal = Decimal::from_parts(27, 0, 0, false, 0);

/// Lines of wrapped description that are kept.
const MAX_DESCRIPTION_LINES: usize = 400;

/// `key` is the column that every row has.
pub(super) fn find_items(matches: &LabelMatches<'_>, key: ItemColumn) -> Vec<TableItem> {
    let headers = find_headers(matches, key);
    let most = headers.iter().map(TableHeader::count_known_columns).max().unwrap_or_default();
    let mut tables = ItemTables { matches, key, items: Vec::new() };
    let mut done = 0;
    for (at, header) in headers.iter().enumerate() {
        // The same table goes on under a repeated header; a table of taxes has fewer columns.
        if header.count_known_columns() < most || header.rows.start < done {
            continue;
        }
        let end = headers.get(at + 1).map_or(matches.layout.rows.len(), |next| next.rows.start);
        done = tables.read_table(header, end);
    }
    let mut items = tables.items;
    // A page number under the column of amounts is no amount where the others are money.
    let money = items.iter().any(|item| item.money) && key == ItemColumn::Amount;
    items.retain(|item| item.keyed && (item.money || !money));
    leave_out_sums(&mut items);
    items
}

/// Leaves out rows that repeat the sum of the lines before them, or of those since the last such row: a
/// carry-over, the sum of a part. A row with a quantity or a price is a line, as is any where none has them.
fn leave_out_sums(items: &mut Vec<TableItem>) {
    let is_bare = |item: &TableItem| item.quantity.is_none() && item.unit_price.is_none();
    let (mut all, mut part) = (RunningSum::default(), RunningSum::default());
    let mut priced = false;
    items.retain(|item| {
        let Some(amount) = item.amount else { return true };
        if is_bare(item) && priced && (all.is_repeated_by(amount) || part.is_repeated_by(amount)) {
            part = RunningSum::default();
            return false;
        }
        priced |= !is_bare(item);
        all.add(amount);
        part.add(amount);
        true
    });
}

/// The sum of lines, and how many they are.
#[derive(Default)]
struct RunningSum {
    amount: Decimal,
    lines: usize,
}

impl RunningSum {
    fn add(&mut self, amount: Decimal) {
        self.amount = self.amount.saturating_add(amount);
        self.lines += 1;
    }

    /// Of a single line it would be a second one of the same amount.
    fn is_repeated_by(&self, amount: Decimal) -> bool {
        self.lines > 1 && self.amount == amount
    }
}

/// The tables of items of a document, as they are read one after the other.
struct ItemTables<'a> {
    matches: &'a LabelMatches<'a>,
    /// The column that every row has.
    key: ItemColumn,
    /// The rows so far.
    items: Vec<TableItem>,
}

impl ItemTables<'_> {
    /// Reads rows up to the totals, or to row `end`; returns where it stopped.
    fn read_table(&mut self, header: &TableHeader, end: usize) -> usize {
        let Self { matches, key, ref mut items } = *self;
        let layout = matches.layout;
        let page = layout.row_cells(header.rows.start).first().map_or(0, |cell| cell.page);
        let before = items.len();
        for row in header.rows.end..end {
            let cells = layout.row_cells(row);
            let on_page = cells.first().is_some_and(|cell| cell.page == page);
            let is_begun = items.len() > before;
            let mut read = read_row(cells, header, layout);
            // `Recycling tax, tyres   4   3.50   14.00` is a line whatever its name.
            let ends = !read.is_product()
                && ends_table(matches, row)
                && !(is_begun && is_line_of_tax(matches, row));
            if !on_page || (ends && (is_begun || is_totals_row(matches, row))) {
                return row;
            }
            let keyed = if key == ItemColumn::Amount { read.amount } else { read.quantity };
            read.keyed = keyed.is_some();
            // Its numbers may stand on the next page.
            if read.keyed || is_begun && has_position(cells, items.len() + 1) {
                let open = items.pop_if(|last| !last.keyed).unwrap_or_default().description;
                read.description = format!("{open} {}", read.description).trim().to_owned();
                items.push(read);
                continue;
            }
            let previous = row_above(layout, row);
            let near = cells.first().zip(previous.first()).is_some_and(|(below, above)| {
                below.area.y - above.area.bottom() < 1.2 * above.area.h
            });
            let Some(item) = items.get_mut(before..).and_then(<[TableItem]>::last_mut) else {
                continue;
            };
            let fits = item.description.len() + read.description.len() < MAX_DESCRIPTION_LINES;
            if near && fits && !read.description.is_empty() {
                item.description =
                    format!("{} {}", item.description, read.description).trim().to_owned();
            }
        }
        end
    }
}

/// Whether a row begins with the number of the next line.
fn has_position(cells: &[TextCell], next: usize) -> bool {
    let word = cells.first().and_then(|cell| cell.words.first());
    word.is_some_and(|word| word.trim_end_matches('.').parse() == Ok(next))
}

/// Cells of a row that is a line by its form.
const LINE_CELLS: usize = 4;

fn row_above(layout: &CellLayout, row: usize) -> &[TextCell] {
    row.checked_sub(1).map(|above| layout.row_cells(above)).unwrap_or_default()
}

/// `Umsatzsteuer-Voranmeldung   24   18.400,00   3/10   307,00` under a line of as many columns:
/// rows of taxes have fewer columns and shorter names.
fn is_line_of_tax(matches: &LabelMatches<'_>, row: usize) -> bool {
    let (above, cells) = (row_above(matches.layout, row), matches.layout.row_cells(row));
    let Some((first, over)) = cells.first().zip(above.first()) else { return false };
    let range = matches.layout.rows.get(row).cloned().unwrap_or_default();
    cells.len() >= LINE_CELLS
        && cells.len() == above.len()
        && (first.area.x - over.area.x).abs() < first.area.h
        && first.folded.iter().filter(|(word, _)| count_letters(word) > 2).count() > 1
        && matches.in_cells(range).all(|one| !one.is_sum() || one.has_role(FieldRole::TaxAmount))
}

/// Whether a row follows a table and does not belong to it.
fn ends_table(matches: &LabelMatches<'_>, row: usize) -> bool {
    let range = matches.layout.rows.get(row).cloned().unwrap_or_default();
    matches.in_cells(range.clone()).any(|label_match| {
        let heading = label_match.words.start == 0;
        let first = matches.cell_of(label_match).is_some_and(|cell| {
            // A tax in its own column of a line is no end.
            let own = label_match.strong || label_match.has_role(FieldRole::Total);
            label_match.cell == range.start || cell.words.len() > label_match.words.len() || own
        });
        heading && first && label_match.is_sum()
    })
}

fn is_totals_row(matches: &LabelMatches<'_>, row: usize) -> bool {
    matches.layout.row_cells(row).len() <= 2 && has_number(matches.layout.row_cells(row))
}

fn read_row(cells: &[TextCell], header: &TableHeader, layout: &CellLayout) -> TableItem {
    use ItemColumn::{Amount, Quantity, UnitPrice};
    let mut item = TableItem::default();
    if let Some(cell) = cells.first() {
        (item.page, item.line) = (cell.page, cell.line);
    }
    let text_end = header
        .headings
        .iter()
        .filter(|heading| matches!(heading.column, Quantity | UnitPrice | Amount))
        .map(|heading| heading.left)
        .filter(|left| description_heading(header).is_none_or(|own| *left > own.left))
        .fold(f32::MAX, f32::min);
    let mut taken: Vec<(ItemColumn, f32)> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let mut amounts_of_row: Vec<FoundNumber> = Vec::new();
    let mut numbers_of_row: Vec<FoundNumber> = Vec::new();
    for cell in cells {
        let all = cell.all_words();
        // `780.00T`: a taxed amount.
        let all: Vec<&str> = all.into_iter().map(without_tax_code).collect();
        // `18 095` alone: money without cents.
        let whole = number::grouped_quantity(&all).map(|amount| vec![amount]);
        let amounts = whole.unwrap_or_else(|| layout.numbers_in(&all));
        numbers_of_row.extend(amounts.iter().filter(|one| !one.percent).cloned());
        for (index, word) in all.iter().enumerate() {
            let left = cell.boxes.get(index).map_or(0.0, |area| area.x);
            let amount = amounts.iter().find(|amount| amount.words.start == index);
            let within = amounts.iter().any(|amount| amount.words.contains(&index));
            take_code(&mut item, cell, index, header);
            if amount.is_none() && within_quantity(&amounts, cell, index, header) {
                take_unit(&mut item, word);
            }
            let under = amount.and_then(|amount| Some((amount, column_of(cell, amount, header)?)));
            if let Some((amount, (column, distance))) = under {
                assign_amount(&mut item, &mut taken, column, amount, distance);
                if column == Amount {
                    amounts_of_row.push(amount.clone());
                }
                if column != ItemColumn::Description {
                    continue;
                }
            }
            let start = text_start(header);
            if left >= start
                && left < text_end
                && (!within || is_in_description(cell, index, header))
            {
                words.push(word);
            }
        }
    }
    item.description = words.join(" ").trim_matches(['-', ':', ',', ' ']).to_owned();
    take_product(&mut item, &amounts_of_row);
    take_factors(&mut item, &numbers_of_row);
    item
}

/// Takes the first three numbers of a row whose columns make no product: from left to right, the
/// last is the product of the others, and the price is money.
fn take_factors(item: &mut TableItem, numbers: &[FoundNumber]) {
    if item.is_product() || item.amount.is_none() || numbers.len() > MAX_NUMBERS {
        return;
    }
    let behind = |at: usize| numbers.iter().enumerate().skip(at + 1);
    let made = numbers.iter().enumerate().find_map(|(at, quantity)| {
        behind(at).filter(|(_, price)| price.is_money()).find_map(|(at, price)| {
            let made = TableItem {
                quantity: Some(quantity.value),
                unit_price: Some(price.value),
                ..item.clone()
            };
            let is_made = |amount: &FoundNumber| {
                let whole = TableItem { amount: Some(amount.value), ..made.clone() };
                amount.is_money() && !amount.value.is_zero() && whole.is_product()
            };
            let (_, amount) = behind(at).find(|(_, amount)| is_made(amount))?;
            Some(TableItem { amount: Some(amount.value), money: true, ..made })
        })
    });
    if let Some(made) = made {
        *item = made;
    }
}

/// Of several columns of amounts, net, tax and gross, the one that quantity and price make.
fn take_product(item: &mut TableItem, amounts: &[FoundNumber]) {
    let made = amounts
        .iter()
        .find(|amount| TableItem { amount: Some(amount.value), ..item.clone() }.is_product());
    item.amount = made.map(|amount| amount.value).or(item.amount);
}

/// Whether a number is in the description rather than under a column of numbers.
fn is_in_description(cell: &TextCell, index: usize, header: &TableHeader) -> bool {
    cell.boxes
        .get(index)
        .and_then(|area| nearest_column(header, area.x, area.right()))
        .is_some_and(|(column, _)| column == ItemColumn::Description)
}

fn column_of(
    cell: &TextCell,
    amount: &FoundNumber,
    header: &TableHeader,
) -> Option<(ItemColumn, f32)> {
    let boxes = cell.boxes.get(amount.words.clone())?;
    let (first, last) = boxes.first().zip(boxes.last())?;
    let (column, distance) = nearest_column(header, first.x, last.right())?;
    let plain = matches!(column, ItemColumn::TaxRate) || !amount.percent;
    Some((if plain { column } else { ItemColumn::Other }, distance))
}

/// Words under the headings of article numbers and units.
fn take_code(item: &mut TableItem, cell: &TextCell, index: usize, header: &TableHeader) {
    let Some((area, word)) = cell.boxes.get(index).zip(cell.words.get(index)) else { return };
    if is_under(header, ItemColumn::Unit, area.x, area.right()) {
        take_unit(item, word);
    }
    let numbered = has_digit(word);
    if numbered
        && item.article_number.is_none()
        && is_under(header, ItemColumn::ArticleNumber, area.x, area.right())
    {
        item.article_number = Some(word.trim_matches([':', ',', ';']).to_owned());
    }
}

/// A unit is one short word without digits.
fn take_unit(item: &mut TableItem, word: &str) {
    let plain = word.trim_matches(['.', ',', '(', ')']);
    let letters = plain.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '²' | '³'));
    if item.unit.is_none() && letters && (1..=MAX_UNIT_LETTERS).contains(&plain.chars().count()) {
        item.unit = Some(plain.to_owned());
    }
}

/// Whether the word follows the quantity in its cell: `20 Stk`.
fn within_quantity(
    amounts: &[FoundNumber],
    cell: &TextCell,
    index: usize,
    header: &TableHeader,
) -> bool {
    let mut before = amounts.iter().filter(|amount| amount.words.end == index);
    before.any(|amount| {
        column_of(cell, amount, header).is_some_and(|(column, _)| column == ItemColumn::Quantity)
    })
}

/// Keeps the number nearest to its heading; of equals the rightmost.
fn assign_amount(
    item: &mut TableItem,
    taken: &mut Vec<(ItemColumn, f32)>,
    column: ItemColumn,
    amount: &FoundNumber,
    distance: f32,
) {
    let slot = match column {
        ItemColumn::Quantity => &mut item.quantity,
        ItemColumn::UnitPrice => &mut item.unit_price,
        ItemColumn::Amount => &mut item.amount,
        // The column "VAT" may hold the rate or the tax.
        ItemColumn::TaxRate if is_rate(amount) => &mut item.tax_rate,
        ItemColumn::Description
        | ItemColumn::ArticleNumber
        | ItemColumn::Unit
        | ItemColumn::TaxRate
        | ItemColumn::Other => return,
    };
    if taken.iter().any(|(other, nearest)| *other == column && *nearest < distance) {
        return;
    }
    *slot = Some(amount.value);
    if column == ItemColumn::Amount {
        item.money = amount.decimals >= 2 || amount.currency().is_some();
    }
    taken.push((column, distance));
}

fn is_rate(amount: &FoundNumber) -> bool {
    let within = amount.value >= Decimal::ZERO && amount.value <= MAX_RATE;
    within && (amount.percent || amount.decimals <= 1)
}

#[cfg(test)]
mod tests {
    use super::super::layout::CellLayout;
    use super::super::layout::tests::transcript;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    fn read(drawings: &[&str]) -> Vec<String> {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let layout = CellLayout::new(&transcript(drawings));
        let matches = LabelMatches::new(&layout, kinds.get("invoice").unwrap());
        let items = find_items(&matches, ItemColumn::Amount).into_iter();
        items
            .map(|item| {
                let numbers = [item.quantity, item.unit_price, item.amount]
                    .map(|value: Option<Decimal>| value.map_or("-".to_owned(), |v| v.to_string()))
                    .join(" ");
                format!("{}: {numbers}", item.description)
            })
            .collect()
    }

    #[test]
    fn rows_are_read_under_their_columns() {
        let drawing = "\
Pos  Beschreibung            Menge   Einzelpreis     Betrag
1    Kopierpapier A4            20          8,90     178,00
     aus Fasern
2    Erbsen im Glas             50          4,30     215,00

                                   Summe netto       393,00";
        assert_eq!(
            read(&[drawing]),
            ["Kopierpapier A4 aus Fasern: 20 8.90 178.00", "Erbsen im Glas: 50 4.30 215.00"]
        );
    }

    #[test]
    fn a_line_that_begins_on_the_page_before_its_numbers_keeps_its_first_words() {
        let first = "\
Pos  Beschreibung            Menge   Einzelpreis     Betrag
1    Kopierpapier A4            20          8,90     178,00
2    Mühlenlaufwerk Wartung";
        let second = "\
Pos  Beschreibung            Menge   Einzelpreis     Betrag
     mit Lagerfett              50          4,30     215,00

                                   Summe netto       393,00";
        let expected = [
            "Kopierpapier A4: 20 8.90 178.00",
            "Mühlenlaufwerk Wartung mit Lagerfett: 50 4.30 215.00",
        ];
        assert_eq!(read(&[first, second]), expected);
    }

    #[test]
    fn of_several_amounts_the_one_that_price_and_quantity_make_is_the_lines() {
        for (drawing, expected) in [
            (
                "Popis          Množství   Cena za MJ     Základ   Celkem\n\
                 Oprava                2      450,00     900,00   1 089,00\n\
                 Čistič                3      100,00     300,00     363,00\n\n\
                 Celkem k úhradě                                1 452,00",
                vec!["Oprava: 2 450.00 900.00", "Čistič: 3 100.00 300.00"],
            ),
            (
                "Désignation           Quantité      Prix     Montant\n\
                 Pneus                        4    132.00      528.00\n\
                 Taxe de recyclage            4      3.50       14.00\n\n\
                 Total                                         542.00",
                vec!["Pneus: 4 132.00 528.00", "Taxe de recyclage: 4 3.50 14.00"],
            ),
            (
                "Description            Qty     Price      Amount\n\
                 Cleaning                 2     50.00      100.00\n\
                 Drawn up by A. Pope             Total     100.00",
                vec!["Cleaning: 2 50.00 100.00"],
            ),
        ] {
            assert_eq!(read(&[drawing]), expected, "{drawing}");
        }
    }

    #[test]
    fn where_headings_mislead_the_numbers_that_make_a_product_are_the_lines() {
        let drawing = "\
Lp.  Nazwa                J.m.  Ilość  Cena netto  Wartość netto  VAT  Kwota VAT  Wartość brutto
1    Obsługa              mc        1    1 850,00       1 850,00  23%     425,50        2 275,50
2    Kadry, 5 osób        os.       5       90,00         450,00  23%     103,50          553,50

                          Razem                         2 300,00          529,00        2 829,00";
        let read = read(&[drawing]);
        let numbers: Vec<&str> =
            read.iter().filter_map(|row| row.split_once(": ")).map(|(_, n)| n).collect();
        assert_eq!(numbers, ["1 1850.00 1850.00", "5 90.00 450.00"]);
    }

    #[test]
    fn amounts_in_groups_without_cents_are_one_number() {
        let drawing = "\
Megnevezés         Mennyiség    Egységár    Nettó érték
Ablak                   2 db      85 000        170 000
Fizetendő                                       170 000";
        assert_eq!(read(&[drawing]), ["Ablak: 2 85000 170000"]);
    }

    #[test]
    fn a_table_goes_on_under_its_repeated_header() {
        let one =
            "Description        Qty    Price    Amount\nApples               1     2.00      2.00";
        let two = "Description        Qty    Price    Amount\nPears                2     3.00      6.00\n\
                   Total                                8.00";
        assert_eq!(read(&[one, two]), ["Apples: 1 2.00 2.00", "Pears: 2 3.00 6.00"]);
    }

    #[test]
    fn a_row_that_repeats_the_sum_of_the_lines_before_it_is_no_line() {
        let table = |rows: &str| format!("Item    Qty    Price    Amount\n{rows}\nTotal    9.00");
        for (rows, expected) in [
            (
                "A       1      2.00     2.00\nB       1      3.00     3.00\nOnward               5.00\n\
              C       1      4.00     4.00\nD       1      1.00     1.00\nPart                 5.00",
                vec!["A", "B", "C", "D"],
            ),
            ("A       1      2.00     2.00\nSame                 2.00", vec!["A", "Same"]),
            (
                "A                      2.00\nB                      3.00\nC                      5.00",
                vec!["A", "B", "C"],
            ),
            (
                "A       1      2.00     2.00\nB       1      3.00     3.00\nC       1      5.00     5.00",
                vec!["A", "B", "C"],
            ),
        ] {
            let read = read(&[&table(rows)]);
            let names: Vec<&str> =
                read.iter().filter_map(|row| row.split_once(": ")).map(|(name, _)| name).collect();
            assert_eq!(names, expected, "{rows}");
        }
    }

    #[test]
    fn a_table_of_taxes_is_no_list_of_lines() {
        assert!(read(&["Tax     Base    Amount\n20.0   100.00     20.00"]).is_empty());
    }
}
