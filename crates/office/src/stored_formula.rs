//! Formulas whose stored value is the one that programs calculate as they open the file: sums,
//! products and roundings of numbers of the same sheet (ISO/IEC 29500-1 §18.17). Whether any other
//! formula has its value is not decided.

use std::collections::HashMap;

use docmill_formats::xml::XmlNode;

use crate::cell_area::{CellArea, parse_reference};
use crate::tags::{all, attribute, child, own_text};

/// Cells that the formulas of a sheet may name, all together.
const MAX_NAMED_CELLS: usize = 1_000_000;
/// Brackets within brackets.
const MAX_BRACKETS: usize = 16;
/// Part of a value by which two calculations of it may differ.
const MAX_RELATIVE_ERROR: f64 = 1e-9;
/// Decimals that a value may be rounded to.
const MAX_DECIMALS: f64 = 9.0;

/// The stored value of a cell as far as sums and products take it.
#[derive(Debug, Clone, Copy)]
enum StoredValue {
    Number(f64),
    /// Sums pass it over.
    Text,
    Undecided,
}

/// The stored values of a sheet by column and row.
type StoredValues = HashMap<(u32, u32), StoredValue>;

/// Whether each formula of a sheet has the value that it makes of the stored values of the others.
pub(crate) fn formulas_hold(sheet: XmlNode<'_, '_>) -> bool {
    let (mut values, mut formulas) = (StoredValues::new(), Vec::new());
    for cell in all(sheet, "c") {
        let written = child(cell, "f");
        let Some(place) = attribute(cell, "r").and_then(parse_reference) else { return false };
        let value = stored_value(cell);
        values.insert(place, value);
        match (written, value) {
            (None, _) => {}
            (Some(formula), StoredValue::Number(stored)) if attribute(formula, "t").is_none() => {
                formulas.push((own_text(formula).replace('$', ""), stored));
            }
            _ => return false,
        }
    }
    let mut left = MAX_NAMED_CELLS;
    formulas.into_iter().all(|(text, stored)| {
        let mut reader = FormulaReader { rest: &text, values: &values, left: &mut left, depth: 0 };
        let made = reader.read_sum().filter(|_| reader.rest.is_empty());
        made.is_some_and(|it| (it - stored).abs() <= MAX_RELATIVE_ERROR * it.abs().max(1.0))
    })
}

fn stored_value(cell: XmlNode<'_, '_>) -> StoredValue {
    let text = child(cell, "v").map(own_text);
    match (attribute(cell, "t").unwrap_or("n"), text) {
        ("n", Some(text)) => {
            let number = text.trim().parse().ok().filter(|it: &f64| it.is_finite());
            number.map_or(StoredValue::Undecided, StoredValue::Number)
        }
        ("n", None) if child(cell, "f").is_none() => StoredValue::Number(0.0),
        ("s" | "str" | "inlineStr", _) => StoredValue::Text,
        _ => StoredValue::Undecided,
    }
}

/// Reads a formula from left to right; `None`: it is not decided.
struct FormulaReader<'a, 'b> {
    rest: &'a str,
    values: &'a StoredValues,
    left: &'b mut usize,
    depth: usize,
}

impl<'a> FormulaReader<'a, '_> {
    fn skips(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.map_or(self.rest.trim(), str::trim_start);
        rest.is_some()
    }

    fn read_sum(&mut self) -> Option<f64> {
        let mut sum = self.read_product()?;
        loop {
            if self.skips("+") {
                sum += self.read_product()?;
            } else if self.skips("-") {
                sum -= self.read_product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn read_product(&mut self) -> Option<f64> {
        let mut product = self.read_factor()?;
        loop {
            if self.skips("*") {
                product *= self.read_factor()?;
            } else if self.skips("/") {
                product /= self.read_factor()?;
            } else {
                return Some(product).filter(|it| it.is_finite());
            }
        }
    }

    fn read_factor(&mut self) -> Option<f64> {
        let sign = if self.skips("-") { -1.0 } else { 1.0 };
        let mut value = if self.skips("(") {
            self.read_bracket()?
        } else if self.skips("SUM(") {
            self.read_total()?
        } else if self.skips("ROUND(") {
            self.read_rounding()?
        } else {
            self.read_operand()?
        };
        while self.skips("%") {
            value /= 100.0;
        }
        Some(sign * value)
    }

    fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_BRACKETS).then_some(())
    }

    fn close(&mut self) -> Option<()> {
        self.depth -= 1;
        self.skips(")").then_some(())
    }

    fn read_bracket(&mut self) -> Option<f64> {
        self.enter()?;
        let value = self.read_sum()?;
        self.close()?;
        Some(value)
    }

    fn read_rounding(&mut self) -> Option<f64> {
        self.enter()?;
        let value = self.read_sum()?;
        let decimals = if self.skips(",") { self.read_sum()? } else { return None };
        self.close()?;
        let is_usual = decimals.fract() == 0.0 && (0.0..=MAX_DECIMALS).contains(&decimals);
        let unit = 10_f64.powf(decimals);
        is_usual.then(|| (value * unit).round() / unit)
    }

    fn read_total(&mut self) -> Option<f64> {
        self.enter()?;
        let mut sum = 0.0;
        loop {
            sum += match self.take_area() {
                Some(area) => self.total_of(area)?,
                None => self.read_sum()?,
            };
            if !self.skips(",") {
                break;
            }
        }
        self.close()?;
        Some(sum)
    }

    /// A reference to cells that stands alone between the signs of a sum.
    fn take_area(&mut self) -> Option<CellArea> {
        let end = self.rest.find([',', ')'])?;
        let (text, rest) = self.rest.split_at_checked(end)?;
        let area = CellArea::parse(text.trim())?;
        self.rest = rest;
        Some(area)
    }

    fn total_of(&mut self, area: CellArea) -> Option<f64> {
        if area.rows.0 > area.rows.1 || area.columns.0 > area.columns.1 {
            return None;
        }
        let mut sum = 0.0;
        for row in area.rows.0..=area.rows.1 {
            for column in area.columns.0..=area.columns.1 {
                *self.left = self.left.checked_sub(1)?;
                match self.values.get(&(column, row)) {
                    Some(StoredValue::Number(value)) => sum += value,
                    Some(StoredValue::Undecided) => return None,
                    Some(StoredValue::Text) | None => {}
                }
            }
        }
        Some(sum)
    }

    /// A number, or the one of a cell.
    fn read_operand(&mut self) -> Option<f64> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        let (text, rest) = self.rest.split_at_checked(end.unwrap_or(self.rest.len()))?;
        self.rest = rest;
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return text.parse().ok();
        }
        match self.values.get(&parse_reference(text)?) {
            Some(StoredValue::Number(value)) => Some(*value),
            Some(_) => None,
            None => Some(0.0),
        }
    }
}
