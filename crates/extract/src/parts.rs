//! A long document is split into parts: of whole pages while a page fits, by rows otherwise.
//!
//! A part must fit into the prompt, and its data into one reply: a list of some hundred entries is
//! longer as JSON than on paper, and a cut reply is paid for and thrown away. The last rows before a
//! part are shown with it, so that an entry that continues over the break is read whole; `merge`
//! drops the repetitions.

use std::ops::Range;

use serde_json::{Value, json};

use super::endless::ReplyNeed;
use super::prompt::{BYTES_PER_TOKEN, TranscriptView};
use super::schema::{entry_tokens, example_reply};
use docmill_llm::estimate_tokens;

/// Rows shown before a part: limits of rows, bytes, and of the share of its own rows (a quarter).
const MAX_CONTEXT_ROWS: usize = 8;
const MAX_CONTEXT_BYTES: usize = 1_000;
const CONTEXT_SHARE: usize = 4;
/// Tokens of an entry's evidence in a reply, by tokenisers of 2026: one name and a line or two.
const EVIDENCE_TOKENS: usize = 25;
/// A part of fewer rows than twice this is not split.
const MIN_ROWS: usize = 4;

/// A range of consecutive rows of a document.
pub type RowRange = Range<usize>;

/// The cost of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowSums {
    /// Bytes in the prompt.
    bytes: usize,
    /// How many look like entries of a list.
    entries: usize,
    /// Bytes of these.
    entry_bytes: usize,
}

impl RowSums {
    /// The sums over the rows before each row, and over all of them: one more than there are rows.
    pub(super) fn before_each<'a>(rows: impl ExactSizeIterator<Item = &'a str>) -> Vec<Self> {
        let mut sum = Self::default();
        let mut sums = Vec::with_capacity(rows.len() + 1);
        sums.push(sum);
        sums.extend(rows.map(|text| {
            sum.bytes += row_bytes(text);
            if looks_like_an_entry(text) {
                sum.entries += 1;
                sum.entry_bytes += text.len();
            }
            sum
        }));
        sums
    }

    fn fits(self, bytes: usize, reply: Option<ReplyTokenBudget>) -> bool {
        self.bytes <= bytes
            && reply.is_none_or(|reply| self.reply_tokens(reply.entry) <= reply.tokens)
    }

    /// Tokens of the list entries about these rows, of which each has `entry` besides its values.
    fn reply_tokens(self, entry: usize) -> usize {
        self.entries * (entry + EVIDENCE_TOKENS) + self.entry_bytes / BYTES_PER_TOKEN
    }
}

/// Bytes that a row takes in a prompt, its id included.
pub(super) fn row_bytes(text: &str) -> usize {
    text.len() + 16
}

/// Limits of one part.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartTokenBudget {
    /// Tokens of its rows.
    pub(super) prompt: usize,
    /// Of the reply about it; `None`: the kind has no lists, a reply is always short.
    pub(super) reply: Option<ReplyTokenBudget>,
}

/// Limits of the reply about one part.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyTokenBudget {
    /// Tokens of its list entries.
    pub(super) tokens: usize,
    /// Tokens of an entry besides its values and evidence.
    pub(super) entry: usize,
}

impl TranscriptView {
    /// Parts within the budget that hold every row once, in order.
    pub(super) fn split_into_parts(&self, budget: PartTokenBudget) -> Vec<RowRange> {
        let bytes = budget.prompt.saturating_mul(BYTES_PER_TOKEN);
        let reply = budget.reply;
        let all = self.all_rows();
        if self.range_sums(&all).fits(bytes, reply) {
            return if all.is_empty() { Vec::new() } else { vec![all] };
        }
        // Less the context before each part.
        let bytes = bytes.saturating_sub(MAX_CONTEXT_BYTES).max(bytes / 2);
        let mut parts: Vec<RowRange> = Vec::new();
        let mut current = 0..0;
        for page in self.page_ranges(all) {
            if self.range_sums(&(current.start..page.end)).fits(bytes, reply) {
                current.end = page.end;
                continue;
            }
            parts.push(current);
            current = page.start..page.start;
            for row in page {
                if !self.range_sums(&(current.start..row + 1)).fits(bytes, reply) {
                    parts.push(current.clone());
                    current.start = row;
                }
                current.end = row + 1;
            }
        }
        parts.push(current);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Two halves, between pages if there are two; `None` for parts too small to split.
    pub(super) fn split_in_half(&self, part: &RowRange) -> Option<(RowRange, RowRange)> {
        let middle = part.start + part.len() / 2;
        let starts = self.page_ranges(part.clone()).into_iter().skip(1).map(|page| page.start);
        let between_pages = starts.min_by_key(|start| start.abs_diff(middle));
        let at = between_pages.or((part.len() >= 2 * MIN_ROWS).then_some(middle))?;
        Some((part.start..at, at..part.end))
    }

    /// Maximum size of a complete reply about a part: a list entry for each row, and each row's
    /// text both in an entry and in a field.
    pub(super) fn reply_need(&self, part: &RowRange, kind: &Value) -> ReplyNeed {
        let rows = self.context_rows(part).start..part.end;
        let text: u64 = rows.clone().map(|at| estimate_tokens(self.row_text(at))).sum();
        let entries = (rows.len() * (entry_tokens(kind) + EVIDENCE_TOKENS)) as u64;
        let empty = estimate_tokens(&example_reply(kind, &json!({}), false).to_string());
        ReplyNeed { tokens: empty + entries + 2 * text, rows: rows.len() }
    }

    /// The rows that are shown before a part.
    pub(super) fn context_rows(&self, part: &RowRange) -> RowRange {
        let most = MAX_CONTEXT_ROWS.min(part.len() / CONTEXT_SHARE);
        let mut start = part.start;
        while start > 0
            && part.start - start < most
            && self.range_sums(&(start - 1..part.start)).bytes <= MAX_CONTEXT_BYTES
        {
            start -= 1;
        }
        start..part.start
    }

    /// Page and index of the line that a part begins with.
    pub(super) fn first_line(&self, part: &RowRange) -> Option<(u32, usize)> {
        self.rows.get(part.start).map(|row| (row.page, row.line.saturating_sub(1) as usize))
    }

    fn sums_before(&self, row: usize) -> RowSums {
        self.sums.get(row).or(self.sums.last()).copied().unwrap_or_default()
    }

    fn page_ranges(&self, part: RowRange) -> Vec<RowRange> {
        let mut ranges: Vec<RowRange> = Vec::new();
        let mut last = None;
        for at in part {
            let page = self.rows.get(at).map(|row| row.page);
            match ranges.last_mut() {
                Some(range) if page == last => range.end = at + 1,
                _ => ranges.push(at..at + 1),
            }
            last = page;
        }
        ranges
    }

    /// The cost of a part, in constant time.
    fn range_sums(&self, part: &RowRange) -> RowSums {
        let (first, last) = (self.sums_before(part.start), self.sums_before(part.end));
        RowSums {
            bytes: last.bytes.saturating_sub(first.bytes),
            entries: last.entries.saturating_sub(first.entries),
            entry_bytes: last.entry_bytes.saturating_sub(first.entry_bytes),
        }
    }
}

/// Two numbers or more, as in entries of invoices and statements.
fn looks_like_an_entry(text: &str) -> bool {
    let numbers =
        text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit()));
    numbers.take(2).count() == 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prompt::tests::transcript;

    fn tokens(prompt: usize) -> PartTokenBudget {
        PartTokenBudget { prompt, reply: None }
    }

    #[test]
    fn pages_stay_whole_while_they_fit_and_a_cut_part_is_halved_between_pages() {
        let shown = TranscriptView::of_transcript(&transcript(&[
            &["aaaa"; 2],
            &["bbbb"; 2],
            &["cccc"; 20],
            &["dddd"],
        ]));
        assert_eq!(shown.split_into_parts(tokens(1_000)), vec![0..25; 1]);
        let parts = shown.split_into_parts(tokens(40));
        assert_eq!(parts, [0..4, 4..8, 8..12, 12..16, 16..20, 20..24, 24..25]);
        assert_eq!(shown.split_in_half(&(0..25)), Some((0..4, 4..25)));
        assert_eq!(shown.split_in_half(&(4..25)), Some((4..24, 24..25)));
        assert_eq!(shown.split_in_half(&(4..24)), Some((4..14, 14..24)), "one page, by rows");
        assert_eq!(shown.split_in_half(&(4..11)), None, "too few to make a difference");
    }

    #[test]
    fn a_part_whose_reply_would_be_cut_is_split_before_it_is_sent() {
        let lines = ["Widget 1 2 5.00 10.00"; 20];
        let shown =
            TranscriptView::of_transcript(&transcript(&[&lines, &lines, &["no list here"; 20]]));
        let reply = Some(ReplyTokenBudget { tokens: 1_600, entry: 45 });
        let budget = PartTokenBudget { prompt: 10_000, reply };
        assert_eq!(shown.split_into_parts(budget), [0..20, 20..60]);
        assert_eq!(shown.split_into_parts(PartTokenBudget { reply: None, ..budget }).len(), 1);
    }

    #[test]
    fn the_last_rows_before_a_part_are_shown_with_it_but_never_many() {
        let shown = TranscriptView::of_transcript(&transcript(&[
            &["a"; 100],
            &[&"x".repeat(1_500)],
            &["b"; 100],
        ]));
        assert_eq!(shown.context_rows(&(0..50)), 0..0);
        assert_eq!(shown.context_rows(&(50..90)), 42..50);
        assert_eq!(shown.context_rows(&(50..58)), 48..50, "a quarter of the part");
        assert_eq!(shown.context_rows(&(101..201)), 101..101, "a line too long to be shown twice");
    }

    proptest! {
        #[test]
        fn parts_are_within_the_budget_and_hold_every_row_once(
            pages in prop::collection::vec(prop::collection::vec("[a-z]{0,60}", 0..8), 0..8),
            prompt in 40_usize..400,
        ) {
            let pages: Vec<Vec<&str>> =
                pages.iter().map(|page| page.iter().map(String::as_str).collect()).collect();
            let pages: Vec<&[&str]> = pages.iter().map(Vec::as_slice).collect();
            let shown = TranscriptView::of_transcript(&transcript(&pages));
            let parts = shown.split_into_parts(tokens(prompt));
            let rows: Vec<usize> = parts.iter().cloned().flatten().collect();
            prop_assert_eq!(rows, (0..shown.rows.len()).collect::<Vec<_>>());
            for part in parts {
                prop_assert!(shown.range_sums(&part).bytes <= prompt * BYTES_PER_TOKEN);
                let rows = part.clone().map(|at| shown.row_text(at));
                let bytes: usize = rows.map(row_bytes).sum();
                prop_assert_eq!(shown.range_sums(&part).bytes, bytes);
            }
        }
    }
}
