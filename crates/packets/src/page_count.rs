//! Which page of its document a page says it is: `Seite 2 von 3`, `Page 1/2`, `Blatt 4`.

use std::collections::BTreeSet;

use crate::words::DATA;
use docmill_core::model::{PageText, TextLine};
use docmill_formats::notation::fold_text;

/// Pages that a document may say it has.
const MAX_PAGES: u32 = 2_000;
/// Share of the height at the ends of a page in which a bare `2/3` is a number of a page.
const MARGIN: f32 = 0.12;
/// Characters of a word that may be one of these numbers.
const MAX_WORD_CHARS: usize = 24;

/// The number of a page in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageCount {
    /// From 1.
    pub(crate) number: u32,
    /// Of how many.
    pub(crate) total: Option<u32>,
    /// A word for pages stands before it.
    pub(crate) named: bool,
}

impl PageCount {
    /// The number that a page prints; none where it prints several that contradict each other.
    pub(crate) fn read(page: &PageText) -> Option<Self> {
        let mut found = BTreeSet::new();
        for line in &page.lines {
            let depth = line.bounding_box().y / page.height.max(1.0);
            let in_margin = !(MARGIN..=1.0 - MARGIN).contains(&depth);
            found.extend(counts_of(line, in_margin));
        }
        // A total is the surest sign; a reference to another page has none.
        let ranks: [fn(&Self) -> bool; 3] =
            [|it| it.named && it.total.is_some(), |it| it.total.is_some(), |it| it.named];
        for rank in ranks {
            let mut ranked = found.iter().filter(|it| rank(it));
            if let Some(first) = ranked.next() {
                return ranked.next().is_none().then_some(*first);
            }
        }
        None
    }
}

/// Whether pages are missing: all that say of how many they are say it of as many, beside a word for pages,
/// and there are fewer.
pub fn lacks_pages(pages: &[PageText]) -> bool {
    let counts: Vec<PageCount> = pages.iter().filter_map(PageCount::read).collect();
    let totals: BTreeSet<u32> =
        counts.iter().filter(|it| it.named).filter_map(|it| it.total).collect();
    let numbers: BTreeSet<u32> = counts.iter().map(|it| it.number).collect();
    let total = totals.first().copied().filter(|_| totals.len() == 1);
    total
        .and_then(|total| usize::try_from(total).ok())
        .is_some_and(|total| pages.len() < total && numbers.len() == counts.len())
}

/// The numbers of pages on a line.
fn counts_of(line: &TextLine, in_margin: bool) -> Vec<PageCount> {
    let words: Vec<String> = line.words.iter().flat_map(|word| split_word(&word.text)).collect();
    let mut counts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(number) = page_number(word) else { continue };
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let named = before.is_some_and(|word| DATA.words.page.contains(word));
        let total = total_behind(words.get(at + 1..).unwrap_or_default());
        let total = total.filter(|total| *total >= number);
        // Of bare numbers only those that stand by themselves at an end of the page.
        let alone = in_margin && total.is_some() && words.len() <= 5;
        if named || alone {
            counts.push(PageCount { number, total, named });
        }
    }
    counts
}

/// The parts of a word: numbers, signs and letters by themselves, folded.
fn split_word(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for c in word.chars().take(MAX_WORD_CHARS) {
        let kind = |c: char| (c.is_ascii_digit(), c.is_alphabetic());
        match parts.last_mut().filter(|part| part.chars().next_back().map(kind) == Some(kind(c))) {
            Some(part) => part.push(c),
            None => parts.push(c.to_string()),
        }
    }
    // Marks between a word and its number say nothing; the stroke stands for `of`.
    let parts = parts.into_iter().map(|part| match part.trim() {
        "/" | "|" => "/".to_owned(),
        other => fold_text(other),
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn total_behind(words: &[String]) -> Option<u32> {
    match words {
        [mark, total, ..] if mark == "/" || DATA.words.of.contains(mark) => page_number(total),
        _ => None,
    }
}

fn page_number(word: &str) -> Option<u32> {
    let plain = !word.starts_with('0') && word.len() <= 4;
    word.parse().ok().filter(|number| plain && (1..=MAX_PAGES).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::{BoundingBox, TextWord};

    fn page(lines: &[(&str, f32)]) -> PageText {
        let line = |(text, y): &(&str, f32)| TextLine {
            words: text
                .split_whitespace()
                .map(|word| TextWord {
                    text: word.into(),
                    bounding_box: BoundingBox { x: 0.0, y: *y, w: 9.0, h: 9.0 },
                    confidence: 1.0,
                    unwitnessed: false,
                })
                .collect(),
        };
        PageText::from_native(1, (600.0, 1000.0), 1.0, lines.iter().map(line).collect())
    }

    /// Lines of a page, each with its place from the top.
    type PrintedLines<'a> = &'a [(&'a str, f32)];
    /// The page, and of how many.
    type PageNumber = (u32, Option<u32>);

    #[test]
    fn pages_are_counted_in_the_words_of_many_languages_and_nothing_else_is_taken_for_it() {
        #[rustfmt::skip]
        let table: [(PrintedLines<'_>, Option<PageNumber>); 16] = [
            (&[("Seite 2 von 3", 500.0)], Some((2, Some(3)))),
            (&[("Rechnung 17 Seite: 1/2", 20.0)], Some((1, Some(2)))),
            (&[("Page1of4", 20.0)], Some((1, Some(4)))),
            (&[("Page 3 of 2", 20.0)], Some((3, None))),
            (&[("Blatt 4", 500.0)], Some((4, None))),
            (&[("Página 1 de 1", 500.0)], Some((1, Some(1)))),
            (&[("Strona 2 z 5", 950.0)], Some((2, Some(5)))),
            (&[("2/3", 960.0)], Some((2, Some(3)))),
            (&[("- 2 / 3 -", 960.0)], Some((2, Some(3)))),
            (&[("2/3", 500.0)], None),
            (&[("03/04", 960.0)], None),
            (&[("12/10/2026 9/10", 960.0)], None),
            (&[("Feuille 1/2", 100.0), ("total : feuille 2", 900.0)], Some((1, Some(2)))),
            (&[("Seite 1 von 2", 10.0), ("Seite 2 von 2", 990.0)], None),
            (&[("Parcel 1 of 3", 500.0)], None),
            (&[("Page 0", 10.0)], None),
        ];
        for (lines, expected) in table {
            let read = PageCount::read(&page(lines)).map(|it| (it.number, it.total));
            assert_eq!(read, expected, "{lines:?}");
        }
    }

    #[test]
    fn pages_are_missing_where_all_that_count_them_count_more() {
        for (pages, missing) in [
            (&["Page 1 of 2"][..], true),
            (&["Page 1 of 1"], false),
            (&["Page 1 of 2", "Page 2 of 2"], false),
            (&["Page 1 of 3", "Page 2 of 3"], true),
            (&["Page 1 of 3", "Page 3 of 3"], true),
            (&["Page 1 of 2", "Terms"], false),
            (&["Page 1 of 2", "Page 1 of 1"], false),
            (&["Page 1 of 3", "Page 1 of 3"], false),
            (&["Page 1"], false),
            (&["Parcel 1 of 3"], false),
            (&[], false),
        ] {
            let pages: Vec<PageText> = pages.iter().map(|text| page(&[(text, 500.0)])).collect();
            assert_eq!(lacks_pages(&pages), missing, "{pages:?}");
        }
    }
}
