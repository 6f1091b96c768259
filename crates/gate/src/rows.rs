//! Rows of amounts on the pages, by position: evidence of the entries that a list should have.
//!
//! A reader may return a printed row as several lines, so rows are put together here from the words'
//! boxes. Rows are counted and compared, not read.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::ground::is_parted;
use super::sums::{MAX_RATE, is_close, share_of};
use super::work_budget::WorkBudget;
use docmill_core::model::{PageText, TextWord, Transcript};
use docmill_formats::notation::number::{self, DecimalSeparator};

/// A number and its position.
#[derive(Debug, Clone)]
pub(super) struct PrintedNumber {
    page: u32,
    middle: f32,
    height: f32,
    left: f32,
    right: f32,
    pub(super) value: Decimal,
    money: bool,
    pub(super) percent: bool,
    /// A mark behind it puts it on the other side of the books.
    marked: bool,
}

/// Marks behind an amount that is taken back: credit in the books of English and of German.
const CREDIT_MARKS: [&str; 2] = ["H", "(-)"];

/// Maximum gap between a sign and its amount, in heights of a word.
const SIGN_GAP: f32 = 4.0;

/// Whether a separate sign precedes an unsigned amount.
fn is_signed_apart(before: Option<&TextWord>, first: &TextWord) -> bool {
    before.is_some_and(|sign| {
        let gap = first.bounding_box.x - sign.bounding_box.right();
        let minus = matches!(sign.text.as_str(), "-" | "−" | "–" | "—");
        let parted = minus && is_parted(sign, first) && gap < SIGN_GAP * first.bounding_box.h;
        parted || sign.text.eq_ignore_ascii_case("minus")
    })
}

/// Whether a mark after an amount negates it.
fn is_marked_behind(next: Option<&TextWord>) -> bool {
    next.is_some_and(|next| {
        let text = next.text.as_str();
        CREDIT_MARKS.contains(&text) || text.eq_ignore_ascii_case("haben")
    })
}

impl PrintedNumber {
    /// Whether it is this number, signs aside.
    pub(super) fn equals(&self, value: Decimal) -> bool {
        self.value.abs() == value.abs()
    }

    /// Whether it begins or ends where another one does, within half its height.
    pub(super) fn is_below(&self, column: &Self) -> bool {
        self.is_in_column_of(column.right) || (self.left - column.left).abs() <= 0.5 * self.height
    }

    /// Whether both end at the same right edge, within half the height of `self`.
    fn is_in_column_of(&self, right: f32) -> bool {
        (self.right - right).abs() <= 0.5 * self.height
    }
}

/// All numbers of a document, row by row.
pub(super) struct NumberRows {
    pub(super) rows: Vec<Vec<PrintedNumber>>,
    /// How many numbers there are.
    pub(super) numbers: usize,
    /// Numbers that may still be compared with entries.
    pub(super) comparisons: WorkBudget,
}

/// Comparisons of printed numbers with the entries of lists: a thousand entries with fifty thousand
/// numbers, several times over. Entries beyond it count as not shown.
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
        self.rows.iter().filter(|row| is_amount_row(row)).count()
    }

    /// Of each row in which the product of two numbers is a third one, that amount: lines beyond
    /// doubt.
    pub(super) fn product_amounts(&self) -> Vec<Decimal> {
        self.rows.iter().filter_map(|row| product_of(row)).collect()
    }

    /// Whether one row holds the factors and, right of them, the amount, and another number of the row
    /// makes the amount of their product: what the price is for, a discount, a charge.
    pub(super) fn explain_amount(
        &self,
        factors: &[Decimal],
        amount: Decimal,
        slack: Decimal,
    ) -> bool {
        let mut product = Some(Decimal::ONE);
        for factor in factors {
            product = product.and_then(|it| it.checked_mul(*factor));
        }
        let Some(product) = product.map(|it| it.abs()) else { return false };
        self.comparisons.spend(self.numbers)
            && self.rows.iter().any(|row| {
                let others = rest_of_row(row, factors, amount).unwrap_or_default();
                let mut others = others.into_iter();
                others.any(|other| is_made_by(product, other, amount.abs(), slack))
            })
    }

    /// Whether the amount is printed, and every time with the other sign.
    pub(super) fn contradict_sign(&self, amount: Decimal) -> bool {
        let mut printed = self.numbers().filter(|it| it.money && it.equals(amount)).peekable();
        let is_other = |it: &PrintedNumber| {
            (it.value.is_sign_negative() || it.marked) != amount.is_sign_negative()
        };
        printed.peek().is_some() && printed.all(is_other)
    }

    /// Printed pairs of net and tax, by a printed percentage of at most `most`.
    pub(super) fn net_and_tax_pairs(&self, most: Decimal) -> Vec<(Decimal, Decimal)> {
        let rates: BTreeSet<Decimal> = self
            .numbers()
            .filter(|it| it.percent && it.value <= most)
            .map(|it| it.value)
            .take(MAX_RATES)
            .collect();
        let amounts: BTreeSet<Decimal> = self
            .numbers()
            .filter(|it| it.money)
            .map(|it| it.value.abs())
            .take(MAX_AMOUNTS)
            .collect();
        let mut pairs = Vec::new();
        for net in &amounts {
            for rate in &rates {
                let Some(tax) = share_of(*net, *rate).filter(|tax| *tax > CENT) else { continue };
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
        let all: Vec<&PrintedNumber> = self.numbers().filter(|it| !it.percent).collect();
        if !self.comparisons.spend(all.len().saturating_mul(amounts.len())) {
            return false;
        }
        let sought: BTreeSet<Decimal> = amounts.iter().map(Decimal::abs).collect();
        // Each right edge once: it determines the column.
        let mut edges = BTreeSet::new();
        for number in all.iter().filter(|it| sought.contains(&it.value.abs())) {
            if !edges.insert(number.right.to_bits()) {
                continue;
            }
            if !self.comparisons.spend(all.len()) {
                break;
            }
            let column = all.iter().copied().filter(|it| it.is_in_column_of(number.right));
            if self.is_complete_column(column.collect(), amounts, known) {
                return true;
            }
        }
        false
    }

    /// Whether the column holds all amounts, and besides them no amount but `known` ones.
    fn is_complete_column(
        &self,
        mut column: Vec<&PrintedNumber>,
        amounts: &[Decimal],
        known: &[Decimal],
    ) -> bool {
        self.comparisons.spend(column.len().saturating_mul(amounts.len() + known.len()))
            && amounts.iter().all(|value| remove_number(&mut column, *value))
            && column.iter().all(|it| !it.money || known.iter().any(|value| it.equals(*value)))
    }

    /// Whether two or more amounts directly above the total in its column add up to it, and no amount
    /// below it is larger: net amount, charges and tax, or the lines of a letter.
    pub(super) fn column_makes(&self, total: Decimal) -> bool {
        let all: Vec<&PrintedNumber> = self.numbers().filter(|it| it.money).collect();
        let mut totals = all.iter().filter(|it| it.value == total).take(MAX_TOTALS);
        totals.any(|last| self.comparisons.spend(all.len()) && is_sum_of_column(last, &all))
    }

    /// The number of rows in which the value is printed.
    pub(super) fn count_rows_with(&self, value: Decimal) -> usize {
        self.rows.iter().filter(|row| row.iter().any(|it| it.equals(value))).count()
    }

    fn numbers(&self) -> impl Iterator<Item = &PrintedNumber> {
        self.rows.iter().flatten()
    }
}

fn is_amount_row(row: &[PrintedNumber]) -> bool {
    let percentages = row.iter().filter(|it| it.percent).count();
    let others = row.len() - percentages;
    others >= 2 + usize::from(percentages > 0) && row.iter().any(|it| it.money)
}

/// The other numbers of a row whose rightmost amount is `amount` and that holds all factors, without a
/// whole number in front: it counts the rows.
fn rest_of_row<'a>(
    row: &'a [PrintedNumber],
    factors: &[Decimal],
    amount: Decimal,
) -> Option<Vec<&'a PrintedNumber>> {
    let mut rest: Vec<&PrintedNumber> = row.iter().collect();
    rest.sort_by(|a, b| b.right.total_cmp(&a.right));
    let last = rest.iter().position(|it| it.money && !it.percent)?;
    let holds = rest.remove(last).equals(amount)
        && factors.iter().all(|factor| remove_number(&mut rest, *factor));
    rest.pop_if(|first| !first.money && row.iter().all(|it| it.right >= first.right));
    holds.then_some(rest)
}

/// Whether the amount is the product times or by the other number, more or less by it, or by so many
/// percent.
pub(super) fn is_made_by(
    product: Decimal,
    other: &PrintedNumber,
    amount: Decimal,
    slack: Decimal,
) -> bool {
    let by = other.value.abs();
    let share = share_of(product, by);
    let made = [
        product.checked_mul(by),
        product.checked_div(by),
        product.checked_add(by),
        product.checked_sub(by),
        share.and_then(|share| product.checked_add(share)),
        share.and_then(|share| product.checked_sub(share)),
    ];
    made.into_iter().flatten().any(|made| is_close(made, amount, slack))
}

/// Removes one number of this value; `false` if there is none.
pub(super) fn remove_number(numbers: &mut Vec<&PrintedNumber>, value: Decimal) -> bool {
    let at = numbers.iter().position(|it| it.equals(value));
    at.map(|at| numbers.remove(at)).is_some()
}

/// Whether the amounts directly above `last` in its column add up to it, and none below is larger.
fn is_sum_of_column(last: &PrintedNumber, amounts: &[&PrintedNumber]) -> bool {
    let column = amounts
        .iter()
        .filter(|it| it.page == last.page && (it.right - last.right).abs() <= 0.5 * last.height);
    let (above, below): (Vec<&PrintedNumber>, Vec<&PrintedNumber>) =
        column.partition(|it| it.middle < last.middle - 0.5 * last.height);
    if below.iter().any(|it| it.value.abs() > last.value.abs()) {
        return false;
    }
    let mut sums = above.iter().rev().scan((last.middle, Decimal::ZERO), |(at, sum), it| {
        let near = *at - it.middle < MAX_GAP * last.height;
        *at = it.middle;
        *sum = sum.checked_add(it.value).filter(|_| near)?;
        Some(*sum)
    });
    sums.by_ref().skip(1).any(|sum| sum == last.value)
}

fn rows_on_page(page: &PageText, mark: Option<DecimalSeparator>) -> Vec<Vec<PrintedNumber>> {
    let mut numbers: Vec<PrintedNumber> = Vec::new();
    // `23      115,20`: a gap separates two columns, so this is not one number of two groups.
    let parts = page.lines.iter().flat_map(|line| {
        let befores = std::iter::once(None)
            .chain(line.words.chunk_by(|a, b| !is_parted(a, b)).map(<[TextWord]>::last));
        line.words.chunk_by(|a, b| !is_parted(a, b)).zip(befores)
    });
    for (part, before) in parts {
        let words: Vec<&str> = part.iter().map(|word| word.text.as_str()).collect();
        for amount in number::find_numbers(&words, mark) {
            // The word that ends the digits: a currency may follow them.
            let own = part.get(amount.words.clone()).unwrap_or_default();
            let last = own.iter().rfind(|word| word.text.contains(|c: char| c.is_ascii_digit()));
            let Some(area) = last.map(|word| word.bounding_box) else { continue };
            numbers.push(PrintedNumber {
                page: page.number,
                middle: area.y + area.h / 2.0,
                height: area.h,
                left: area.x,
                right: area.right(),
                value: amount.value,
                money: amount.is_money(),
                percent: amount.percent,
                marked: is_marked_behind(part.get(amount.words.end))
                    || own.first().is_some_and(|first| {
                        let own_before = amount.words.start.checked_sub(1);
                        is_signed_apart(own_before.map_or(before, |at| part.get(at)), first)
                    }),
            });
        }
    }
    numbers.sort_by(|a, b| a.middle.total_cmp(&b.middle));
    let rows = numbers.chunk_by(|a, b| {
        a.page == b.page && (b.middle - a.middle).abs() < 0.5 * a.height.min(b.height)
    });
    rows.map(<[PrintedNumber]>::to_vec).collect()
}

/// Occurrences of a total above which its column is added up.
const MAX_TOTALS: usize = 20;
/// Heights of a line between two amounts of one column.
const MAX_GAP: f32 = 6.0;

/// Amounts searched for pairs.
const MAX_AMOUNTS: usize = 2_000;
/// Printed percentages tried for pairs.
const MAX_RATES: usize = 500;

const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

const HALF_CENT: Decimal = Decimal::from_parts(5, 0, 0, false, 3);

/// Rows of more numbers are tables of another sort; comparing all their products takes their cube.
const MAX_IN_ROW: usize = 12;

/// Hardly any tax on sales is lower, in percent.
const MIN_RATE: Decimal = Decimal::TWO;

/// The taxes of a row: amounts that a rate of the row makes of an amount to their left, as in tables of taxes.
fn taxes_of(row: &[&PrintedNumber]) -> Vec<Decimal> {
    let values = row.iter().map(|it| it.value);
    let rates: Vec<Decimal> = values.filter(|it| (MIN_RATE..=MAX_RATE).contains(it)).collect();
    let mut taxes = Vec::new();
    for tax in row.iter().filter(|it| it.money) {
        let bases = row.iter().filter(|base| base.money && base.right < tax.right);
        let mut bases = bases.filter(|base| base.value.abs() > tax.value.abs());
        if bases.any(|base| {
            let mut made = rates.iter().filter_map(|rate| share_of(base.value, *rate));
            made.any(|made| is_close(made, tax.value, HALF_CENT))
        }) {
            taxes.push(tax.value);
        }
    }
    taxes
}

/// Whether `c` is the product of `a` and the price `b`.
fn is_product(a: &PrintedNumber, b: &PrintedNumber, c: &PrintedNumber) -> bool {
    let product = a.value.checked_mul(b.value);
    let difference = product.and_then(|product| product.abs().checked_sub(c.value.abs()));
    b.money && c.money && difference.is_some_and(|it| it.abs() <= HALF_CENT)
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
    let numbers: Vec<&PrintedNumber> =
        row.into_iter().filter(|it| !taxes.contains(&it.value)).collect();
    for (last, c) in numbers.iter().enumerate().rev() {
        for (first, a) in numbers.iter().enumerate().filter(|(at, _)| *at != last) {
            let mut rest = numbers.iter().enumerate().filter(|(at, _)| ![first, last].contains(at));
            if rest.any(|(_, b)| is_product(a, b, c)) {
                return Some(c.value);
            }
        }
    }
    None
}
