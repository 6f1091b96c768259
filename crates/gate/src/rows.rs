//! Rows of amounts on the pages, by position: what a list should hold.
//!
//! A reader may give a printed row as several lines, so rows are put together here from the words'
//! boxes. This counts what looks like a row; it does not read one.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::ground::is_parted;
use super::sums::{MAX_RATE, is_close};
use super::work_budget::WorkBudget;
use docmill_core::model::{PageText, Transcript};
use docmill_formats::notation::number::{self, DecimalSeparator, FoundNumber};

/// A number and where it stands.
#[derive(Debug, Clone)]
struct PrintedNumber {
    page: u32,
    middle: f32,
    height: f32,
    right: f32,
    value: Decimal,
    money: bool,
    percent: bool,
}

/// All numbers of a document, row by row.
pub(super) struct NumberRows {
    rows: Vec<Vec<PrintedNumber>>,
    /// How many numbers there are.
    numbers: usize,
    /// Numbers that may still be compared with entries.
    pub(super) comparisons: WorkBudget,
}

/// Printed numbers that are compared with the entries of lists: a thousand entries with fifty
/// thousand numbers, several times over. What is compared beyond it counts as not shown.
const MAX_COMPARED: u64 = 200_000_000;

impl NumberRows {
    pub(super) fn from_transcript(transcript: &Transcript) -> Self {
        let words = transcript.pages.iter().flat_map(|page| &page.lines);
        let words = words.flat_map(|line| &line.words).map(|word| word.text.as_str());
        let mark = DecimalSeparator::from_words(words);
        let rows: Vec<Vec<PrintedNumber>> =
            transcript.pages.iter().flat_map(|page| rows_on_page(page, mark)).collect();
        let numbers = rows.iter().map(Vec::len).sum();
        Self { rows, numbers, comparisons: WorkBudget::new(MAX_COMPARED) }
    }

    /// Rows that hold an amount and at least one more number, as lines of an invoice do; two more
    /// where a percentage is printed, as rows of taxes and discounts have one.
    pub(super) fn count_amount_rows(&self) -> usize {
        let has_amount = |row: &&Vec<PrintedNumber>| {
            let percentages = row.iter().filter(|it| it.percent).count();
            let others = row.len() - percentages;
            others >= 2 + usize::from(percentages > 0) && row.iter().any(|it| it.money)
        };
        self.rows.iter().filter(has_amount).count()
    }

    /// Of each row in which the product of two numbers is a third one, that amount: lines beyond
    /// doubt.
    pub(super) fn product_amounts(&self) -> Vec<Decimal> {
        self.rows.iter().filter_map(|row| product_of(row)).collect()
    }

    /// Whether one row holds the factors and, right of them, the amount.
    pub(super) fn show_together(&self, factors: &[Decimal], amount: Decimal) -> bool {
        let holds = |row: &Vec<PrintedNumber>| {
            let is = |it: &&PrintedNumber, value: Decimal| it.value.abs() == value.abs();
            let mut rest: Vec<&PrintedNumber> = row.iter().collect();
            rest.sort_by(|a, b| b.right.total_cmp(&a.right));
            let last = rest.iter().position(|it| it.money && !it.percent);
            let Some(last) = last.filter(|at| rest.get(*at).is_some_and(|it| is(it, amount)))
            else {
                return false;
            };
            rest.remove(last);
            factors.iter().all(|factor| {
                let at = rest.iter().position(|it| is(it, *factor));
                at.map(|at| rest.remove(at)).is_some()
            })
        };
        self.comparisons.spend(self.numbers) && self.rows.iter().any(holds)
    }

    /// Printed pairs of net and tax, by a printed percentage of at most `most`.
    pub(super) fn net_and_tax_pairs(&self, most: Decimal) -> Vec<(Decimal, Decimal)> {
        let all = || self.rows.iter().flatten();
        let rates: BTreeSet<Decimal> = all()
            .filter(|it| it.percent && it.value <= most)
            .map(|it| it.value)
            .take(MAX_RATES)
            .collect();
        let amounts: BTreeSet<Decimal> =
            all().filter(|it| it.money).map(|it| it.value.abs()).take(MAX_AMOUNTS).collect();
        let mut pairs = Vec::new();
        for net in &amounts {
            for rate in &rates {
                let tax =
                    net.checked_mul(*rate).and_then(|it| it.checked_div(Decimal::ONE_HUNDRED));
                let Some(tax) = tax.filter(|tax| *tax > CENT) else { continue };
                let near = amounts.range(tax - CENT..=tax + CENT).next();
                pairs.extend(near.map(|tax| (*net, *tax)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Whether the pages show the list's amounts in one column, and in that column no other amount
    /// but `known` ones (totals): then nothing is missing, whatever the sums say.
    pub(super) fn show_no_more_than(&self, amounts: &[Decimal], known: &[Decimal]) -> bool {
        let all: Vec<&PrintedNumber> =
            self.rows.iter().flatten().filter(|it| !it.percent).collect();
        let is = |printed: &PrintedNumber, value: &Decimal| printed.value.abs() == value.abs();
        if !self.comparisons.spend(all.len().saturating_mul(amounts.len())) {
            return false;
        }
        let sought: BTreeSet<Decimal> = amounts.iter().map(Decimal::abs).collect();
        // One of each column: what stands in it is told by its edge alone.
        let mut seen = BTreeSet::new();
        let edges = all.iter().filter(|it| sought.contains(&it.value.abs()));
        let edges = edges.filter(|it| seen.insert(it.right.to_bits()));
        let column = |right: f32| {
            let near = move |it: &&&PrintedNumber| (it.right - right).abs() <= 0.5 * it.height;
            all.iter().filter(near).copied().collect::<Vec<&PrintedNumber>>()
        };
        let holds = |column: &Vec<&PrintedNumber>| {
            if !self.comparisons.spend(column.len().saturating_mul(amounts.len() + known.len())) {
                return false;
            }
            // Each amount takes one printed number away; what is left has to be a total.
            let mut rest: Vec<&&PrintedNumber> = column.iter().collect();
            let every = amounts.iter().all(|value| {
                let at = rest.iter().position(|it| is(it, value));
                at.map(|at| rest.remove(at)).is_some()
            });
            let other = |it: &&&PrintedNumber| it.money && !known.iter().any(|value| is(it, value));
            every && !rest.iter().any(other)
        };
        let mut columns =
            edges.map_while(|it| self.comparisons.spend(all.len()).then(|| column(it.right)));
        !amounts.is_empty() && columns.any(|column| holds(&column))
    }

    /// Whether the amounts that stand right over the total in its column make it, two at least, and
    /// nothing under it is more: net amount, charges and tax, or the lines of a letter.
    pub(super) fn column_makes(&self, total: Decimal) -> bool {
        let all: Vec<&PrintedNumber> = self.rows.iter().flatten().filter(|it| it.money).collect();
        let totals = all.iter().filter(|it| it.value == total).take(MAX_TOTALS);
        totals.into_iter().any(|last| {
            if !self.comparisons.spend(all.len()) {
                return false;
            }
            let column = all.iter().filter(|it| {
                it.page == last.page && (it.right - last.right).abs() <= 0.5 * last.height
            });
            let (above, below): (Vec<&PrintedNumber>, Vec<&PrintedNumber>) =
                column.partition(|it| it.middle < last.middle - 0.5 * last.height);
            let more = below.iter().any(|it| it.value.abs() > total.abs());
            let sums = above.iter().rev().scan((last.middle, Decimal::ZERO), |(at, sum), it| {
                let near = *at - it.middle < MAX_GAP * last.height;
                *at = it.middle;
                *sum = sum.checked_add(it.value).filter(|_| near)?;
                Some(*sum)
            });
            !more && sums.skip(1).any(|sum| sum == total)
        })
    }

    /// In how many rows the number is printed.
    pub(super) fn count_rows_with(&self, value: Decimal) -> usize {
        let has = |row: &&Vec<PrintedNumber>| row.iter().any(|it| it.value.abs() == value.abs());
        self.rows.iter().filter(has).count()
    }
}

fn rows_on_page(page: &PageText, mark: Option<DecimalSeparator>) -> Vec<Vec<PrintedNumber>> {
    let mut numbers: Vec<PrintedNumber> = Vec::new();
    // `23      115,20`: what a gap parts stands in two columns, and is no number of two groups.
    let parts = page.lines.iter().flat_map(|line| line.words.chunk_by(|a, b| !is_parted(a, b)));
    for part in parts {
        let words: Vec<&str> = part.iter().map(|word| word.text.as_str()).collect();
        let mut add = |amount: &FoundNumber, first: usize| {
            // The word that ends the digits: a currency may follow them.
            let own = part.get(first..).unwrap_or_default();
            let own = own.get(amount.words.clone()).unwrap_or_default();
            let digits = |word: &&docmill_core::model::TextWord| {
                word.text.contains(|c: char| c.is_ascii_digit())
            };
            let Some(last) = own.iter().rev().find(digits) else { return };
            let area = last.bounding_box;
            numbers.push(PrintedNumber {
                page: page.number,
                middle: area.y + area.h / 2.0,
                height: area.h,
                right: area.right(),
                value: amount.value,
                money: amount.is_money(),
                percent: amount.percent,
            });
        };
        number::find_numbers(&words, mark).iter().for_each(|amount| add(amount, 0));
    }
    numbers.sort_by(|a, b| a.middle.total_cmp(&b.middle));
    let same = |a: &PrintedNumber, b: &PrintedNumber| {
        a.page == b.page && (b.middle - a.middle).abs() < 0.5 * a.height.min(b.height)
    };
    numbers.chunk_by(same).map(<[PrintedNumber]>::to_vec).collect()
}

/// Places of a total over which its column is added up.
const MAX_TOTALS: usize = 20;
/// Heights of a line between two amounts of one column.
const MAX_GAP: f32 = 6.0;

/// Amounts among which pairs are searched for.
const MAX_AMOUNTS: usize = 2_000;
/// Printed percentages by which pairs are searched for.
const MAX_RATES: usize = 500;

const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

const HALF_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// Rows of so many numbers are tables of another sort; comparing all their products is their cube.
const MAX_IN_ROW: usize = 12;

/// Hardly any tax on sales is lower, in percent.
const MIN_RATE: Decimal = Decimal::TWO;

/// What a rate in a row makes of an amount left of it: a tax, as tables of taxes have them. The price of ten stands
/// left of the amount.
fn taxes_of(row: &[&PrintedNumber]) -> Vec<Decimal> {
    let is_rate = |it: &&&PrintedNumber| it.value >= MIN_RATE && it.value <= MAX_RATE;
    let rates: Vec<Decimal> = row.iter().filter(is_rate).map(|it| it.value).collect();
    let is_tax = |tax: &PrintedNumber| {
        let bases = row.iter().filter(|base| base.money && base.right < tax.right);
        let mut bases = bases.filter(|base| base.value.abs() > tax.value.abs());
        bases.any(|base| {
            rates.iter().any(|rate| {
                let made = base.value.checked_mul(*rate);
                let made = made.and_then(|made| made.checked_div(Decimal::ONE_HUNDRED));
                made.is_some_and(|made| is_close(made, tax.value, HALF_CENT))
            })
        })
    };
    row.iter().filter(|it| it.money && is_tax(it)).map(|it| it.value).collect()
}

/// The amount that is the product of two other numbers of the row. The tax of a row is neither product nor price:
/// ten times the tax at 10 % is what is taxed, and a code of one times it is itself.
fn product_of(row: &[PrintedNumber]) -> Option<Decimal> {
    let row: Vec<&PrintedNumber> =
        row.iter().filter(|it| !it.percent && !it.value.is_zero()).collect();
    if !(3..=MAX_IN_ROW).contains(&row.len()) {
        return None;
    }
    let taxes = taxes_of(&row);
    let is_product = |a: &PrintedNumber, b: &PrintedNumber, c: &PrintedNumber| {
        let product = a.value.checked_mul(b.value);
        let difference = product.and_then(|product| product.abs().checked_sub(c.value.abs()));
        b.money
            && c.money
            && difference.is_some_and(|it| it.abs() <= HALF_CENT)
            && ![a, b, c].iter().any(|it| taxes.contains(&it.value))
    };
    let others = |at: usize| row.iter().enumerate().filter(move |(index, _)| *index != at);
    row.iter().enumerate().rev().find_map(|(last, c)| {
        let pair = others(last).any(|(first, a)| {
            others(last).any(|(second, b)| second != first && is_product(a, b, c))
        });
        pair.then_some(c.value)
    })
}
