//! Master data of tenants: files of suppliers and orders, checked row by row before any is written.

use std::collections::HashSet;
use std::str::FromStr as _;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use docmill_core::model::{MasterOrder, MasterSupplier};
pub use docmill_ledger::db::operators::master_data::{MasterCounts, count_master_data};

use docmill_core::fault;
use docmill_core::model::MasterMarkSort;
use docmill_gate::fold_mark;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::operators::master_data::{self, OrderUpload, SupplierMark, SupplierUpload};

/// Bytes of a file.
pub const MAX_FILE_BYTES: usize = 32 << 20;
/// Rows of a file.
pub const MAX_ROWS: usize = 100_000;
/// Characters of a value.
const MAX_VALUE_CHARS: usize = 200;
/// Values of one sort of a supplier.
const MAX_VALUES: usize = 50;
/// Problems that are named; one that is mended may show another.
const MAX_PROBLEMS: usize = 20;

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterFormat {
    /// A line with the names of the columns, then a line for each row; several values of a cell are
    /// parted by `|`.
    Csv,
    /// A list of objects.
    Json,
    /// `[[supplier]]` or `[[order]]` tables.
    Toml,
}

impl MasterFormat {
    /// The form by the ending of a file's name.
    pub fn from_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// Why a file is not taken: its problems, each with its line or row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct RefusedRows(pub Vec<String>);

/// Why master data was not changed.
#[derive(Debug, thiserror::Error)]
pub enum MasterChangeError {
    /// It is not sound.
    #[error(transparent)]
    Refused(#[from] RefusedRows),
    /// Postgres did not answer.
    #[error(transparent)]
    Fault(#[from] fault::Error),
}

/// A row of a file, and where it stands: `line 3`, `row 3`.
#[derive(Debug)]
pub struct PlacedRow<T> {
    /// Where.
    pub place: String,
    /// What.
    pub row: T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SupplierFile {
    supplier: Vec<MasterSupplier>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderFile {
    order: Vec<MasterOrder>,
}

/// Reads a file of suppliers.
///
/// # Errors
/// Its problems, by line or row; never with values.
pub fn parse_suppliers(
    text: &str,
    format: MasterFormat,
) -> Result<Vec<PlacedRow<MasterSupplier>>, RefusedRows> {
    match format {
        MasterFormat::Csv => {
            parse_csv(text, &["number", "name", "vat_ids", "accounts"], csv_supplier)
        }
        MasterFormat::Json => parse_json(text),
        MasterFormat::Toml => {
            parse_toml::<SupplierFile>(text).map(|file| place_rows(file.supplier))
        }
    }
}

/// Reads a file of orders.
///
/// # Errors
/// As [`parse_suppliers`].
pub fn parse_orders(
    text: &str,
    format: MasterFormat,
) -> Result<Vec<PlacedRow<MasterOrder>>, RefusedRows> {
    match format {
        MasterFormat::Csv => {
            parse_csv(text, &["number", "supplier", "amount", "currency"], csv_order)
        }
        MasterFormat::Json => parse_json(text),
        MasterFormat::Toml => parse_toml::<OrderFile>(text).map(|file| place_rows(file.order)),
    }
}

/// The rows of a list, counted from 1.
pub fn place_rows<T>(rows: Vec<T>) -> Vec<PlacedRow<T>> {
    let numbered = rows.into_iter().zip(1..);
    numbered.map(|(row, number)| PlacedRow { place: format!("row {number}"), row }).collect()
}

fn refuse(problem: impl Into<String>) -> RefusedRows {
    RefusedRows(vec![problem.into()])
}

fn parse_json<T: DeserializeOwned>(text: &str) -> Result<Vec<PlacedRow<T>>, RefusedRows> {
    // The parser's own words may quote the file.
    let rows = serde_json::from_str(text).map_err(|error| {
        refuse(format!("line {}, column {}: not of the form", error.line(), error.column()))
    })?;
    Ok(place_rows(rows))
}

fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T, RefusedRows> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        refuse(format!("line {}: not of the form", before.matches('\n').count() + 1))
    })
}

fn parse_csv<T>(
    text: &str,
    columns: &[&str; 4],
    read: fn([String; 4]) -> T,
) -> Result<Vec<PlacedRow<T>>, RefusedRows> {
    let mut records = read_records(text.trim_start_matches('\u{feff}'))?.into_iter();
    let (_, head) = records.next().ok_or_else(|| refuse("line 1: no names of columns"))?;
    let head: Vec<String> = head.iter().map(|name| name.trim().to_lowercase()).collect();
    if let Some(unknown) = head.iter().position(|name| !columns.contains(&name.as_str())) {
        let known = columns.join(", ");
        return Err(refuse(format!("line 1: column {} is none of {known}", unknown + 1)));
    }
    let mut problems = Vec::new();
    let mut rows = Vec::new();
    for (line, cells) in records {
        if cells.len() != head.len() {
            problems.push(format!("line {line}: {} cells, not {}", cells.len(), head.len()));
        }
        let cells = columns.map(|name| named_cell(&head, &cells, name));
        rows.push(PlacedRow { place: format!("line {line}"), row: read(cells) });
        if problems.len() >= MAX_PROBLEMS || rows.len() > MAX_ROWS {
            break;
        }
    }
    if problems.is_empty() { Ok(rows) } else { Err(RefusedRows(problems)) }
}

/// The cell of a record in the column of this name; empty: there is none.
fn named_cell(head: &[String], cells: &[String], name: &str) -> String {
    let at = head.iter().position(|own| own == name);
    at.and_then(|at| cells.get(at)).map(|cell| cell.trim().to_owned()).unwrap_or_default()
}

fn csv_supplier([number, name, vat_ids, accounts]: [String; 4]) -> MasterSupplier {
    MasterSupplier { number, name, vat_ids: split_cell(&vat_ids), accounts: split_cell(&accounts) }
}

fn csv_order([number, supplier, amount, currency]: [String; 4]) -> MasterOrder {
    let [supplier, amount, currency] =
        [supplier, amount, currency].map(|cell| Some(cell).filter(|cell| !cell.is_empty()));
    MasterOrder { number, supplier, amount, currency }
}

fn split_cell(cell: &str) -> Vec<String> {
    let values = cell.split('|').map(str::trim).filter(|value| !value.is_empty());
    values.map(str::to_owned).collect()
}

/// The records of a CSV file (RFC 4180) with the line that each begins on; parted by the semicolon if the
/// first line has one. Blank lines are none.
fn read_records(text: &str) -> Result<Vec<(usize, Vec<String>)>, RefusedRows> {
    let first = text.lines().next().unwrap_or_default();
    let mark = if first.contains(';') { ';' } else { ',' };
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begun, mut quoted) = (1, 1, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if quoted || cell.is_empty() => quoted = !quoted,
            _ if quoted => cell.push(letter),
            '\n' => {
                cells.push(std::mem::take(&mut cell));
                records.push((begun, std::mem::take(&mut cells)));
                begun = line;
            }
            '\r' => {}
            _ if letter == mark => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(letter),
        }
        if records.len() > MAX_ROWS + 1 {
            return Err(too_many());
        }
    }
    if quoted {
        return Err(refuse(format!("line {begun}: a quotation mark is not closed")));
    }
    if !cell.is_empty() || !cells.is_empty() {
        cells.push(cell);
        records.push((begun, cells));
    }
    records.retain(|(_, cells)| cells.iter().any(|cell| !cell.trim().is_empty()));
    Ok(records)
}

fn too_many() -> RefusedRows {
    refuse(format!("more than {MAX_ROWS} rows"))
}

/// The problems of rows, and the first ones of numbers that are there twice.
fn check_rows<T>(
    rows: &[PlacedRow<T>],
    number: fn(&T) -> &str,
    problem: fn(&T) -> Option<&'static str>,
) -> Result<(), RefusedRows> {
    if rows.len() > MAX_ROWS {
        return Err(too_many());
    }
    let mut seen = HashSet::new();
    let mut problems = Vec::new();
    for PlacedRow { place, row } in rows {
        let own = problem(row);
        let own = own.or((!seen.insert(number(row))).then_some("the number is there twice"));
        problems.extend(own.map(|own| format!("{place}: {own}")));
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(RefusedRows(problems)) }
}

fn is_sound(value: &str) -> bool {
    value.chars().any(char::is_alphanumeric)
        && value.chars().count() <= MAX_VALUE_CHARS
        && !value.chars().any(char::is_control)
}

fn supplier_problem(row: &MasterSupplier) -> Option<&'static str> {
    let lists = [&row.vat_ids, &row.accounts];
    if !is_sound(&row.number) {
        Some("number: a letter or digit at least, 200 characters at most")
    } else if !is_sound(&row.name) {
        Some("name: a letter or digit at least, 200 characters at most")
    } else if lists.iter().any(|values| values.len() > MAX_VALUES) {
        Some("more than 50 VAT identifiers or accounts")
    } else if lists.iter().any(|values| values.iter().any(|value| !is_sound(value))) {
        Some("a VAT identifier or account: a letter or digit at least, 200 characters at most")
    } else {
        None
    }
}

fn order_problem(row: &MasterOrder) -> Option<&'static str> {
    if !is_sound(&row.number) {
        Some("number: a letter or digit at least, 200 characters at most")
    } else if row.supplier.as_ref().is_some_and(|supplier| !is_sound(supplier)) {
        Some("supplier: a letter or digit at least, 200 characters at most")
    } else if row.amount.as_ref().is_some_and(|amount| !is_amount(amount)) {
        Some("amount: not a decimal number with a point, below 10^15")
    } else if row.currency.as_ref().is_some_and(|code| !is_currency(code)) {
        Some("currency: not three capitals")
    } else {
        None
    }
}

fn is_amount(text: &str) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let amount = Decimal::from_str(text).ok().filter(|_| is_plain);
    amount.is_some_and(|amount| amount.abs() < Decimal::from(10_u64.pow(15)))
}

fn is_currency(code: &str) -> bool {
    code.len() == 3 && code.chars().all(|c| c.is_ascii_uppercase())
}

/// Puts these suppliers in the place of all of the tenant's, at once.
///
/// # Errors
/// [`MasterChangeError`]; then the earlier ones stay.
pub async fn replace_suppliers(
    db: &Db,
    tenant: Option<&str>,
    rows: Vec<PlacedRow<MasterSupplier>>,
    by: &AuditNote,
) -> Result<(), MasterChangeError> {
    check_rows(&rows, |row| &row.number, supplier_problem)?;
    let suppliers: Vec<MasterSupplier> = rows.into_iter().map(|row| row.row).collect();
    let marks = suppliers.iter().flat_map(marks_of).collect();
    let upload = SupplierUpload { suppliers, marks };
    Ok(master_data::replace_suppliers(db, tenant, &upload, by).await?)
}

fn marks_of(supplier: &MasterSupplier) -> Vec<SupplierMark> {
    let name = std::iter::once((MasterMarkSort::Name, &supplier.name));
    let ids = supplier.vat_ids.iter().map(|id| (MasterMarkSort::VatId, id));
    let accounts = supplier.accounts.iter().map(|account| (MasterMarkSort::Account, account));
    let marks = name.chain(ids).chain(accounts).map(|(sort, value)| SupplierMark {
        number: supplier.number.clone(),
        sort: sort.code(),
        mark: fold_mark(sort, value),
    });
    marks.filter(|mark| !mark.mark.is_empty()).collect()
}

/// Puts these orders in the place of all of the tenant's, at once.
///
/// # Errors
/// [`MasterChangeError`]; then the earlier ones stay.
pub async fn replace_orders(
    db: &Db,
    tenant: Option<&str>,
    rows: Vec<PlacedRow<MasterOrder>>,
    by: &AuditNote,
) -> Result<(), MasterChangeError> {
    check_rows(&rows, |row| &row.number, order_problem)?;
    let orders = rows.into_iter().map(|PlacedRow { row: order, .. }| {
        let mark = fold_mark(MasterMarkSort::Account, &order.number);
        OrderUpload { order, mark }
    });
    let orders: Vec<OrderUpload> = orders.collect();
    Ok(master_data::replace_orders(db, tenant, &orders, by).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supplier_rows(text: &str, format: MasterFormat) -> Result<Vec<MasterSupplier>, RefusedRows> {
        let rows = parse_suppliers(text, format)?;
        check_rows(&rows, |row| &row.number, supplier_problem)?;
        Ok(rows.into_iter().map(|row| row.row).collect())
    }

    #[test]
    fn one_supplier_is_the_same_in_every_form_of_a_file() {
        let expected = MasterSupplier {
            number: "70012".to_owned(),
            name: "Müller, \"Bau\" GmbH".to_owned(),
            vat_ids: vec!["DE129273398".to_owned(), "ATU12345675".to_owned()],
            accounts: vec![],
        };
        for (format, text) in [
            (
                MasterFormat::Csv,
                "\u{feff}number,name,vat_ids\r\n70012,\"Müller, \"\"Bau\"\" GmbH\",DE129273398 | ATU12345675\r\n\r\n",
            ),
            (
                MasterFormat::Csv,
                "Name;Number;Vat_Ids;Accounts\nMüller, \"Bau\" GmbH;70012;DE129273398|ATU12345675;",
            ),
            (
                MasterFormat::Json,
                r#"[{"number":"70012","name":"Müller, \"Bau\" GmbH","vat_ids":["DE129273398","ATU12345675"]}]"#,
            ),
            (
                MasterFormat::Toml,
                "[[supplier]]\nnumber = \"70012\"\nname = 'Müller, \"Bau\" GmbH'\nvat_ids = [\"DE129273398\", \"ATU12345675\"]",
            ),
        ] {
            assert_eq!(
                supplier_rows(text, format).unwrap(),
                std::slice::from_ref(&expected),
                "{format:?}"
            );
        }
    }

    #[test]
    fn bad_rows_are_named_by_their_line_and_never_quoted() {
        let many = "number,name\n".to_owned() + &"1,Secret\n".repeat(MAX_ROWS + 1);
        for (format, text, expected) in [
            (
                MasterFormat::Csv,
                "number,name\n1,Secret\n,Secret\n1,Secret\n2\n",
                vec!["line 5: 1 cells, not 2"],
            ),
            (
                MasterFormat::Csv,
                "number,name\n1,Secret\n,Secret\n1,Secret\n",
                vec![
                    "line 3: number: a letter or digit at least, 200 characters at most",
                    "line 4: the number is there twice",
                ],
            ),
            (
                MasterFormat::Csv,
                "number,name\n1,\"Secret\n2,b\n",
                vec!["line 2: a quotation mark is not closed"],
            ),
            (
                MasterFormat::Csv,
                "number,phone\n1,2",
                vec!["line 1: column 2 is none of number, name, vat_ids, accounts"],
            ),
            (MasterFormat::Csv, "", vec!["line 1: no names of columns"]),
            (MasterFormat::Csv, many.as_str(), vec!["more than 100000 rows"]),
            (
                MasterFormat::Json,
                "[\n{\"number\":\"Secret\"}]",
                vec!["line 2, column 19: not of the form"],
            ),
            (
                MasterFormat::Json,
                r#"[{"number":"1","name":"\u0000"}]"#,
                vec!["row 1: name: a letter or digit at least, 200 characters at most"],
            ),
            (MasterFormat::Toml, "[[supplier]]\nnumber = 1\n", vec!["line 2: not of the form"]),
        ] {
            assert_eq!(supplier_rows(text, format).unwrap_err().0, expected, "{format:?}");
        }
        let orders = parse_orders(
            "number,amount,currency\n1,1.5,EUR\n2,1e9999,EUR\n3,1,euro\n",
            MasterFormat::Csv,
        )
        .unwrap();
        let refused = check_rows(&orders, |row| &row.number, order_problem).unwrap_err();
        assert_eq!(
            refused.0,
            [
                "line 3: amount: not a decimal number with a point, below 10^15",
                "line 4: currency: not three capitals"
            ]
        );
    }
}
