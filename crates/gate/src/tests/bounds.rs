//! The gate's work on text that is made to keep it busy: counted, not timed.

use super::*;
use crate::ground::PrintedValues;
use crate::rows::NumberRows;
use rust_decimal::Decimal;

fn whole(transcript: &Transcript) -> PrintedValues {
    PrintedValues::new(transcript, |_, _| true)
}

#[test]
fn many_values_that_are_nowhere_cost_a_bounded_search_and_are_not_found() {
    let text: String = (0..40_000).map(|n| format!("word{n}word ")).collect();
    let ground = whole(&long_transcript(&text));
    let before = ground.searches.left();
    // Each of these is looked for in all of the text.
    let searched = |name: usize| ground.value_places(&json!(format!("x {name} nowhere")));
    assert!(searched(0).is_empty());
    let each = before - ground.searches.left();
    assert!(each >= 40_000, "{each}");
    // All but the last few searches, without making them.
    ground.searches.spend(usize::try_from(before - 3 * each).unwrap());
    for name in 0..10 {
        assert!(searched(name).is_empty());
    }
    assert_eq!(ground.searches.left(), 0, "the search has an end");
    assert!(!ground.value_places(&json!("word7word")).is_empty(), "single words are known");
    assert!(ground.value_places(&json!("ord7wor")).is_empty(), "no text is searched any more");
}

#[test]
fn entries_are_compared_with_rows_for_as_long_as_it_is_no_attack() {
    let text: String = (0..2_000).map(|n| format!("{n}.50 7 12.00\n")).collect();
    let rows = NumberRows::from_transcript(&long_transcript(&text));
    let amount = Decimal::new(1200, 2);
    let (seven, nine, slack) = (Decimal::from(7), Decimal::from(9), Decimal::new(5, 1));
    assert!(rows.explain_amount(&[seven], amount, slack));
    let before = rows.comparisons.left();
    assert!(!rows.explain_amount(&[nine, seven], amount, slack));
    let each = before - rows.comparisons.left();
    assert!(each >= 4_000, "{each}");
    rows.comparisons.spend(usize::try_from(rows.comparisons.left()).unwrap());
    assert!(!rows.explain_amount(&[seven], amount, slack), "beyond the bound nothing is explained");
    assert!(!rows.show_no_more_than(&[amount], &[]));
}

#[test]
fn every_date_of_a_long_line_is_at_the_words_that_it_was_read_from() {
    let date = |n| format!("{:02}.{:02}.{} ", n % 28 + 1, n / 28 % 12 + 1, 1990 + n / 336);
    let transcript = long_transcript(&(0..900).map(date).collect::<String>());
    let ground = whole(&transcript);
    for (at, word) in transcript.pages[0].lines[0].words.iter().enumerate() {
        let [day, month, year] = word.text.split('.').collect::<Vec<_>>()[..] else { panic!() };
        let places = ground.value_places(&json!(format!("{year}-{month}-{day}")));
        assert!(places.iter().any(|place| place.bounding_box == word.bounding_box), "{at}");
    }
}

/// Lines one under the other, each word at a place of its own.
fn long_transcript(text: &str) -> Transcript {
    let mut transcript = transcript("x");
    let lines = text.lines().zip(0_u16..).map(|(line, row)| TextLine {
        words: line
            .split_whitespace()
            .zip(0_u16..)
            .map(|(word, column)| TextWord {
                text: word.into(),
                bounding_box: BoundingBox {
                    x: f32::from(column) * 40.0,
                    y: f32::from(row) * 12.0,
                    w: 30.0,
                    h: 10.0,
                },
                confidence: 1.0,
                unwitnessed: false,
            })
            .collect(),
    });
    transcript.pages[0].lines = lines.collect();
    transcript
}
