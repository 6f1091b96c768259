//! Rows of amounts on the pages, by position: what a list should hold.
//!
//! A reader may give a printed row as several lines, so rows are put together here from the words'
//! boxes. This counts what looks like a row; it does not read one.

use rust_decimal::Decimal;

use crate::model::{PageText, Transcript};
use crate::notation::number::{self, Amount, Mark};

/// A number and where it stands.
#[derive(Debug, Clone)]
struct Printed {
    page: u32,
    middle: f32,
    height: f32,
    right: f32,
    value: Decimal,
    money: bool,
    percent: bool,
}

/// All numbers of a document, row by row.
pub(super) struct Rows {
    rows: Vec<Vec<Printed>>,
}

impl Rows {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let words = transcript.pages.iter().flat_map(|page| &page.lines);
        let words = words.flat_map(|line| &line.words).map(|word| word.text.as_str());
        let mark = Mark::of(words);
        Self { rows: transcript.pages.iter().flat_map(|page| on_page(page, mark)).collect() }
    }

    /// Rows that hold an amount and at least one more number, as lines of an invoice do.
    pub(super) fn of_amounts(&self) -> usize {
        let has_amount = |row: &&Vec<Printed>| row.len() >= 2 && row.iter().any(|it| it.money);
        self.rows.iter().filter(has_amount).count()
    }

    /// Rows in which the product of two numbers is a third one, an amount: lines beyond doubt.
    pub(super) fn of_products(&self) -> usize {
        self.rows.iter().filter(|row| is_product(row)).count()
    }

    /// Whether the pages show the list's amounts in one column, and in that column no other amount
    /// but `known` ones (totals): then nothing is missing, whatever the sums say.
    pub(super) fn show_no_more_than(&self, amounts: &[Decimal], known: &[Decimal]) -> bool {
        let all: Vec<&Printed> = self.rows.iter().flatten().filter(|it| !it.percent).collect();
        let is = |printed: &Printed, value: &Decimal| printed.value.abs() == value.abs();
        let edges = all.iter().filter(|it| amounts.iter().any(|value| is(it, value)));
        let column = |right: f32| {
            let near = move |it: &&&Printed| (it.right - right).abs() <= 0.5 * it.height;
            all.iter().filter(near).copied().collect::<Vec<&Printed>>()
        };
        let holds = |column: &Vec<&Printed>| {
            // Each amount takes one printed number away; what is left has to be a total.
            let mut rest: Vec<&&Printed> = column.iter().collect();
            let every = amounts.iter().all(|value| {
                let at = rest.iter().position(|it| is(it, value));
                at.map(|at| rest.remove(at)).is_some()
            });
            let other = |it: &&&Printed| it.money && !known.iter().any(|value| is(it, value));
            every && !rest.iter().any(other)
        };
        !amounts.is_empty() && edges.map(|it| column(it.right)).any(|column| holds(&column))
    }

    /// In how many rows the number is printed.
    pub(super) fn with(&self, value: Decimal) -> usize {
        let has = |row: &&Vec<Printed>| row.iter().any(|it| it.value.abs() == value.abs());
        self.rows.iter().filter(has).count()
    }
}

fn on_page(page: &PageText, mark: Option<Mark>) -> Vec<Vec<Printed>> {
    let mut numbers: Vec<Printed> = Vec::new();
    for line in &page.lines {
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        let mut add = |amount: &Amount, first: usize| {
            // The word that ends the digits: a currency may follow them.
            let own = line.words.get(first..).unwrap_or_default();
            let own = own.get(amount.words.clone()).unwrap_or_default();
            let digits = |word: &&crate::model::Word| word.text.contains(|c: char| c.is_ascii_digit());
            let Some(last) = own.iter().rev().find(digits) else { return };
            let area = last.bounding_box;
            numbers.push(Printed {
                page: page.number,
                middle: area.y + area.h / 2.0,
                height: area.h,
                right: area.right(),
                value: amount.value,
                money: amount.is_money(),
                percent: amount.percent,
            });
        };
        number::find(&words, mark).iter().for_each(|amount| add(amount, 0));
    }
    numbers.sort_by(|a, b| a.middle.total_cmp(&b.middle));
    let same = |a: &Printed, b: &Printed| {
        a.page == b.page && (b.middle - a.middle).abs() < 0.5 * a.height.min(b.height)
    };
    numbers.chunk_by(same).map(<[Printed]>::to_vec).collect()
}

/// Rows of so many numbers are tables of another sort; comparing all their products is their cube.
const MOST_IN_ROW: usize = 12;

fn is_product(row: &[Printed]) -> bool {
    let row: Vec<&Printed> = row.iter().filter(|it| !it.percent && !it.value.is_zero()).collect();
    if !(3..=MOST_IN_ROW).contains(&row.len()) {
        return false;
    }
    let indexes = 0..row.len();
    let is_third = |a: usize, b: usize, c: usize| {
        let (Some(a), Some(b), Some(c)) = (row.get(a), row.get(b), row.get(c)) else {
            return false;
        };
        let product = a.value.checked_mul(b.value);
        let difference = product.and_then(|product| product.abs().checked_sub(c.value.abs()));
        b.money && c.money && difference.is_some_and(|it| it.abs() <= Decimal::new(5, 3))
    };
    indexes.clone().any(|a| {
        indexes.clone().filter(|b| *b != a).any(|b| {
            indexes.clone().filter(|c| *c != a && *c != b).any(|c| is_third(a, b, c))
        })
    })
}
