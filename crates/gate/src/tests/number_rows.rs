//! Amounts and days by where they stand: rows, columns, pairs of net and tax.

use rust_decimal::Decimal;
use serde_json::json;

use super::*;
use crate::ground::PrintedValues;
use crate::rows::NumberRows;

/// A word, its right edge, its top and its height.
type Placed = (&'static str, f32, f32, f32);

fn rows_of(text: &str) -> NumberRows {
    NumberRows::from_transcript(&transcript(text))
}

/// One line for each word, at its place.
fn placed(words: &[Placed]) -> Transcript {
    let mut page = transcript(&words.iter().map(|it| it.0).collect::<Vec<_>>().join("\n"));
    for (line, (_, right, y, h)) in page.pages[0].lines.iter_mut().zip(words) {
        line.words[0].bounding_box = BoundingBox { x: right - 30.0, y: *y, w: 30.0, h: *h };
    }
    page
}

fn cents(cents: i64) -> Decimal {
    Decimal::new(cents, 2)
}

#[test]
fn a_row_of_a_list_has_an_amount_and_another_number_and_two_beside_a_percentage() {
    #[rustfmt::skip]
    let table = [
        ("Paper 20 8,90",        1),
        ("Paper 8,90",           0),
        ("Paper 20 30",          0),
        ("VAT 7% 8,90",          0),
        ("VAT 7% 8,90 9,00",     0),
        ("Paper 7% 2 8,90 9,10", 1),
        ("Paper 2 5,00\nMustard 3 9,00\nThanks", 2),
    ];
    for (text, rows) in table {
        assert_eq!(rows_of(text).count_amount_rows(), rows, "{text}");
    }
}

#[test]
fn what_stands_in_two_columns_is_no_number_of_two_groups() {
    let mut page = transcript("10 23 115,20");
    for (word, x) in page.pages[0].lines[0].words.iter_mut().zip([0.0, 100.0, 200.0]) {
        word.bounding_box = BoundingBox { x, y: 0.0, w: 20.0, h: 10.0 };
    }
    let rows = NumberRows::from_transcript(&page);
    assert_eq!(rows.count_rows_with(Decimal::from(23)), 1);
    assert_eq!(rows.count_rows_with(cents(2_311_520)), 0);
}

#[test]
fn a_line_beyond_doubt_is_one_whose_amount_is_the_product_of_two_numbers() {
    #[rustfmt::skip]
    let table = [
        ("Paper 20 8,90 178,00",  Some(17_800)),
        ("Paper 20 8,90 178,10",  None),
        ("Paper 20 8,90",         None),
        ("Paper 3 4 12,00",       None),
        ("Paper 1,50 2 3",        None),
        ("Paper 0,00 5 0,00",     None),
        ("Paper 20% 5,00 100,00", None),
        // A table of taxes: ten times the tax at 10 % is what is taxed, and once the tax is the tax.
        ("10,00 932,00 93,20",                 None),
        ("1 1044,18 20,00 208,84 VAT 208,84",  None),
        ("Paper 5,00 12,00 60,00 23,00 13,80", Some(6_000)),
        ("Paper 10 38,40 384,00",              Some(38_400)),
    ];
    for (text, amount) in table {
        let expected: Vec<Decimal> = amount.map(cents).into_iter().collect();
        assert_eq!(rows_of(text).product_amounts(), expected, "{text}");
    }
}

#[test]
fn an_amount_that_is_no_product_is_explained_by_another_number_of_its_row_alone() {
    let factors = [Decimal::TWO, cents(890)];
    #[rustfmt::skip]
    let table = [
        // The row, its amount in cents, whether it explains the amount.
        ("2 8,90 17,00",           1_700, false),
        ("3 2 8,90 53,40",         5_340, false),
        ("A 2 3,00 8,90 53,40",    5_340, true),
        ("A 2 8,90 100 0,18",         18, true),
        ("A 2 8,90 1,80 16,00",    1_600, true),
        ("A 2 8,90 1,80 19,60",    1_960, true),
        ("A 2 8,90 10,00 16,02",   1_602, true),
        ("A 2 8,90 10% 16,02",     1_602, true),
        ("A 2 8,90 10,00 15,02",   1_502, false),
        ("A 8,90 10% 16,02",       1_602, false),
        ("A 2 8,90 10%\n16,02",   1_602, false),
        ("A 2 8,90 10% 16,02 9,00", 1_602, false),
    ];
    for (text, amount, expected) in table {
        let explained = rows_of(text).explain_amount(&factors, cents(amount), cents(1));
        assert_eq!(explained, expected, "{text}");
    }
}

#[test]
fn a_sign_is_contradicted_where_every_print_of_the_amount_has_the_other() {
    #[rustfmt::skip]
    let table = [
        // The page, and whether it contradicts an amount above and below zero.
        ("Total 4,64",                 false, true),
        ("Total -4,64",                true,  false),
        ("Total 4,64-",                true,  false),
        ("Total (4,64)",               true,  false),
        ("Total 4,64 CR",              true,  false),
        ("Total 4,64 H",               true,  false),
        ("Total 4,64 h",               false, true),
        ("Total 4,64 cr",              true,  false),
        ("Total 4,64 Haben EUR",       true,  false),
        ("Total minus 4,64",           true,  false),
        ("Total ( 4,64 ) EUR",         true,  false),
        ("Total 4,64 - on account",    false, true),
        ("Total - 4,64",               false, true),
        ("Total -4,64\nPaid 4,64",    false, false),
        ("Total 4,65-",                false, false),
    ];
    for (text, above, below) in table {
        let rows = rows_of(text);
        let found = [464, -464].map(|amount| rows.contradict_sign(cents(amount)));
        assert_eq!(found, [above, below], "{text}");
    }
}

#[test]
fn net_and_tax_are_a_pair_by_a_printed_percentage_alone() {
    let pair = |net, tax| vec![(cents(net), cents(tax))];
    #[rustfmt::skip]
    let table = [
        ("19% 100,00 19,00",       pair(10_000, 1_900)),
        ("19% 100,00 19,01",       pair(10_000, 1_901)),
        ("19% 100,00 19,02",       vec![]),
        ("19 100,00 19,00",        vec![]),
        ("28% 100,00 28,00",       vec![]),
        ("0% 100,00 0,00",         vec![]),
        ("-19% 100,00 19,00",      vec![]),
        // A cent may be the rounding of anything.
        ("1% 1,00 0,01",           vec![]),
    ];
    for (text, expected) in table {
        let pairs = rows_of(text).net_and_tax_pairs(Decimal::from(27));
        assert_eq!(pairs, expected, "{text}");
    }
}

#[test]
fn a_column_makes_a_total_by_two_amounts_right_over_it_at_least() {
    let total = cents(3_000);
    let makes = |words: &[Placed]| NumberRows::from_transcript(&placed(words)).column_makes(total);
    let first = ("10,00", 70.0, 0.0, 10.0);
    let second = ("20,00", 70.0, 12.0, 10.0);
    let last = ("30,00", 70.0, 24.0, 10.0);
    #[rustfmt::skip]
    let table: [(&str, &[Placed], bool); 15] = [
        ("two amounts",                    &[first, second, last], true),
        ("one amount",                     &[("30,00", 70.0, 12.0, 10.0), last], false),
        ("less under it",                  &[first, second, last, ("29,99", 70.0, 36.0, 10.0)], true),
        ("as much under it",               &[first, second, last, ("30,00", 70.0, 36.0, 10.0)], true),
        ("more under it",                  &[first, second, last, ("30,01", 70.0, 36.0, 10.0)], false),
        ("another column beside",          &[first, ("7,00", 110.0, 6.0, 10.0), second, last], true),
        ("in another column",              &[("10,00", 110.0, 0.0, 10.0), second, last], false),
        ("half a line aside",              &[("10,00", 75.0, 0.0, 10.0), second, last], true),
        ("more than half a line aside",    &[("10,00", 76.0, 0.0, 10.0), second, last], false),
        ("more than half a line over it",  &[("10,00", 70.0, 6.0, 10.0), ("20,00", 70.0, 18.0, 10.0), last], true),
        ("half a line over it",            &[first, ("20,00", 70.0, 19.0, 10.0), last], false),
        ("less than half a line over it",  &[first, ("20,00", 70.0, 21.0, 10.0), last], false),
        ("nearly six lines apart",         &[first, second, ("30,00", 70.0, 71.0, 10.0)], true),
        ("six lines apart",                &[first, second, ("30,00", 70.0, 72.0, 10.0)], false),
        ("six lines between the amounts",  &[first, ("20,00", 70.0, 60.0, 10.0), ("30,00", 70.0, 72.0, 10.0)], false),
    ];
    for (name, words, expected) in table {
        assert_eq!(makes(words), expected, "{name}");
    }
    let mut apart = placed(&[first, second, last]);
    let mut next = apart.pages[0].clone();
    next.number = 2;
    next.lines = apart.pages[0].lines.split_off(2);
    apart.pages.push(next);
    assert!(!NumberRows::from_transcript(&apart).column_makes(total), "on another page");
}

#[test]
fn a_row_is_what_has_its_middle_within_half_of_the_lower_height() {
    let rows = |words: &[Placed]| NumberRows::from_transcript(&placed(words)).count_amount_rows();
    let number = ("3", 30.0, 20.0, 10.0);
    #[rustfmt::skip]
    let table = [
        ("level",                      ("8,90", 90.0, 20.0, 10.0), 1),
        ("four lower",                 ("8,90", 90.0, 24.0, 10.0), 1),
        ("five lower",                 ("8,90", 90.0, 25.0, 10.0), 0),
        ("eight lower",                ("8,90", 90.0, 28.0, 10.0), 0),
        ("higher letters, one middle", ("8,90", 90.0, 15.0, 20.0), 1),
        ("higher letters, one top",    ("8,90", 90.0, 20.0, 20.0), 0),
    ];
    for (name, amount, expected) in table {
        assert_eq!(rows(&[number, amount]), expected, "{name}");
    }
}

#[test]
fn a_number_is_counted_once_for_each_row_signs_aside() {
    let rows = rows_of("Paper 8,90 8,90\nDiscount -8,90\nMustard 9,00");
    for (value, count) in [(890, 2), (-890, 2), (900, 1), (901, 0)] {
        assert_eq!(rows.count_rows_with(cents(value)), count, "{value}");
    }
}

#[test]
fn a_column_that_holds_the_amounts_and_totals_only_lacks_no_line() {
    let first = ("10,00", 70.0, 0.0, 10.0);
    let second = ("20,00", 70.0, 12.0, 10.0);
    let total = ("29,00", 70.0, 24.0, 10.0);
    let amounts = [cents(1_000), cents(2_000)];
    #[rustfmt::skip]
    let table: [(&str, &[Placed], bool); 7] = [
        ("with a total",                 &[first, second, total], true),
        ("with another amount",          &[first, second, ("7,00", 70.0, 30.0, 10.0), total], false),
        ("with another whole number",    &[first, second, ("7", 70.0, 30.0, 10.0), total], true),
        ("another one half a line aside", &[first, second, ("7,00", 75.0, 30.0, 10.0), total], false),
        ("another one further aside",    &[first, second, ("7,00", 76.0, 30.0, 10.0), total], true),
        ("one in another column",        &[first, ("20,00", 110.0, 12.0, 10.0), total], false),
        ("one is not printed",           &[first, total], false),
    ];
    for (name, words, expected) in table {
        let rows = NumberRows::from_transcript(&placed(words));
        assert_eq!(rows.show_no_more_than(&amounts, &[cents(2_900)]), expected, "{name}");
    }
    assert!(!rows_of("Nothing 1,00").show_no_more_than(&[], &[]));
}

#[test]
fn what_a_second_reader_says_confirms_no_value_that_says_nothing() {
    let lines = transcript("Total 441,87 EUR").pages.remove(0).lines;
    #[rustfmt::skip]
    let table = [
        (json!(441.87), true), (json!("Total"), true), (json!(441.88), false),
        (json!(null), false), (json!(true), false),
    ];
    for (value, expected) in table {
        assert_eq!(confirms_value(&lines, &value), expected, "{value}");
        assert!(!confirms_value(&[], &value), "nothing was read: {value}");
    }
    assert!(!confirms_value(&[], &json!(0)));
}

#[test]
fn a_day_that_a_gap_parts_from_a_number_is_printed() {
    let mut page = transcript("no. 7 November 30, 2022");
    for (at, word) in page.pages[0].lines[0].words.iter_mut().enumerate() {
        let apart = if at > 1 { 200.0 } else { 0.0 };
        word.bounding_box = BoundingBox { x: at as f32 * 22.0 + apart, y: 0.0, w: 20.0, h: 10.0 };
    }
    let ground = PrintedValues::new(&page, |_, _| true);
    assert!(ground.contains_value(&json!("2022-11-30")));
}
