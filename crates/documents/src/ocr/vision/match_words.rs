//! Which word of a model is which word of the local reader: first runs of words that occur once in both,
//! then single ones, nearest first, at last similar words between two equal ones.
//!
//! Words need not come in one order: columns are read in any. A word with a digit is the same only
//! digit by digit, sign by sign; any other only letter by letter, whatever its case and accents.
//! Each word is matched once, so repetitions by the model are left over. Runs in time proportional
//! to the words, but for short gaps.

use std::collections::{BTreeSet, HashMap};

use docmill_formats::notation::fold_text;

/// Words on either side of a gap in which words that are nearly alike are looked for.
const MAX_GAP_WORDS: usize = 24;

/// The relation of a word of the model to a local one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordMatch {
    /// The same word.
    Same(usize),
    /// Nearly the same, and neither has a digit.
    Alike(usize),
    /// They differ where digits are.
    Differs(usize),
    /// No local word.
    Alone,
}

impl WordMatch {
    /// The word of the local reader.
    pub(super) fn local(self) -> Option<usize> {
        match self {
            Self::Same(at) | Self::Alike(at) | Self::Differs(at) => Some(at),
            Self::Alone => None,
        }
    }
}

/// The key that equal words share.
pub(super) fn word_key(word: &str) -> String {
    if has_digit(word) {
        return word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    }
    let folded = fold_text(word);
    if folded.is_empty() { word.to_owned() } else { folded }
}

pub(super) fn has_digit(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

/// Matches each word of the model with a local one.
pub(super) fn match_words(model: &[String], local: &[String]) -> Vec<WordMatch> {
    let mut matcher = WordMatcher {
        model,
        local,
        found: vec![WordMatch::Alone; model.len()],
        taken: vec![false; local.len()],
    };
    for length in [3, 2, 1] {
        matcher.match_unique_runs(length);
    }
    matcher.match_nearest();
    matcher.match_gaps();
    matcher.found
}

struct WordMatcher<'a> {
    model: &'a [String],
    local: &'a [String],
    found: Vec<WordMatch>,
    taken: Vec<bool>,
}

/// Where runs of words begin that come once; `None` for those that come more often.
type RunStarts<'a> = HashMap<&'a [String], Option<usize>>;

impl WordMatcher<'_> {
    fn match_unique_runs(&mut self, length: usize) {
        let model =
            unique_runs(self.model, length, |at| self.found.get(at) == Some(&WordMatch::Alone));
        let local = unique_runs(self.local, length, |at| self.taken.get(at) == Some(&false));
        let mut pairs: Vec<(usize, usize)> =
            model.iter().filter_map(|(run, at)| Some(((*at)?, (*local.get(run)?)?))).collect();
        pairs.sort_unstable();
        for (one, other) in pairs {
            self.extend_match(one, other);
        }
    }

    /// Matches these two, and what follows and precedes them as long as it is the same.
    fn extend_match(&mut self, model: usize, local: usize) {
        let (mut one, mut other) = (model, local);
        while self.match_same(one, other) {
            (one, other) = (one + 1, other + 1);
        }
        let (mut one, mut other) = (model, local);
        while let (Some(before), Some(beside)) = (one.checked_sub(1), other.checked_sub(1)) {
            if !self.match_same(before, beside) {
                break;
            }
            (one, other) = (before, beside);
        }
    }

    fn match_same(&mut self, model: usize, local: usize) -> bool {
        let same = self.model.get(model).is_some_and(|word| self.local.get(local) == Some(word));
        let open = self.found.get(model) == Some(&WordMatch::Alone)
            && self.taken.get(local) == Some(&false);
        if same && open {
            self.take(model, WordMatch::Same(local));
        }
        same && open
    }

    fn take(&mut self, model: usize, found: WordMatch) {
        let taken = found.local().and_then(|at| self.taken.get_mut(at));
        if let (Some(place), Some(taken)) = (self.found.get_mut(model), taken) {
            (*place, *taken) = (found, true);
        }
    }

    /// Words that come more than once: each takes the free one that is nearest to where its
    /// predecessor was found.
    fn match_nearest(&mut self) {
        let mut free: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for (at, word) in self.local.iter().enumerate().filter(|(at, _)| !self.is_taken(*at)) {
            free.entry(word).or_default().insert(at);
        }
        let mut expected = 0;
        for (at, word) in self.model.iter().enumerate() {
            if let Some(known) = self.found.get(at).and_then(|found| found.local()) {
                expected = known + 1;
                continue;
            }
            let Some(places) = free.get_mut(word.as_str()) else { continue };
            let behind = places.range(expected..).next().copied();
            let before = places.range(..expected).next_back().copied();
            let nearest = [behind, before].into_iter().flatten();
            let Some(nearest) = nearest.min_by_key(|at| at.abs_diff(expected)) else { continue };
            places.remove(&nearest);
            self.take(at, WordMatch::Same(nearest));
            expected = nearest + 1;
        }
    }

    fn is_taken(&self, local: usize) -> bool {
        self.taken.get(local).copied().unwrap_or(true)
    }

    /// Between two words that were found, those that were not: each of the model's takes the most
    /// alike of the local reader's, in their order.
    fn match_gaps(&mut self) {
        let mut start = 0;
        while start < self.found.len() {
            let open = self.found.iter().skip(start).take_while(|at| **at == WordMatch::Alone);
            let end = start + open.count();
            if end > start {
                self.match_gap(start, end);
            }
            start = end + 1;
        }
    }

    fn match_gap(&mut self, start: usize, end: usize) {
        let before = start.checked_sub(1).and_then(|at| self.found.get(at)?.local());
        let behind = self.found.get(end).and_then(|found| found.local());
        let low = before.map(|at| at + 1);
        let (low, high) = match (low, behind) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, self.local.len().min(low + MAX_GAP_WORDS)),
            (None, Some(high)) => (high.saturating_sub(MAX_GAP_WORDS), high),
            (None, None) if start == 0 && end == self.found.len() => (0, self.local.len()),
            (None, None) => return,
        };
        let mut next = low;
        if end - start > MAX_GAP_WORDS || high.saturating_sub(low) > MAX_GAP_WORDS {
            return;
        }
        for at in start..end {
            let Some(word) = self.model.get(at) else { return };
            let free = (next..high).filter(|place| !self.is_taken(*place));
            let rated = free.filter_map(|place| {
                let (distance, length) = spelling_distance(word, self.local.get(place)?);
                (distance * 2 <= length).then_some((distance, place))
            });
            let Some((distance, place)) = rated.min() else { continue };
            let Some(beside) = self.local.get(place) else { return };
            let found = match has_digit(word) || has_digit(beside) {
                // Two that were found the same before, in another order of words.
                _ if distance == 0 => WordMatch::Same(place),
                true => WordMatch::Differs(place),
                false => WordMatch::Alike(place),
            };
            self.take(at, found);
            next = place + 1;
        }
    }
}

fn unique_runs(words: &[String], length: usize, is_open: impl Fn(usize) -> bool) -> RunStarts<'_> {
    let mut starts: RunStarts<'_> = HashMap::new();
    for (at, run) in words.windows(length).enumerate() {
        if (at..at + length).all(&is_open) {
            starts.entry(run).and_modify(|known| *known = None).or_insert(Some(at));
        }
    }
    starts
}

/// By how many letters two words differ, and how many the longer one has.
fn spelling_distance(one: &str, other: &str) -> (usize, usize) {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let length = one.len().max(other.len());
    // Far longer than any word: what is compared must stay short.
    if length > 60 {
        return (length, length);
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in (1..).zip(&one) {
        let mut diagonal = at - 1;
        let mut left = at;
        if let Some(first) = row.first_mut() {
            *first = at;
        }
        for (cell, beside) in row.iter_mut().skip(1).zip(&other) {
            let kept = diagonal + usize::from(letter != beside);
            diagonal = *cell;
            left = kept.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    (row.last().copied().unwrap_or(length), length)
}

#[cfg(test)]
mod tests {
    use super::WordMatch::{Alike, Alone, Differs, Same};
    use super::*;

    fn matches(model: &str, local: &str) -> Vec<WordMatch> {
        let keys = |text: &str| text.split(' ').map(word_key).collect::<Vec<String>>();
        match_words(&keys(model), &keys(local))
    }

    #[test]
    fn a_word_of_the_model_is_that_of_the_local_reader_which_it_repeats() {
        #[rustfmt::skip]
        let table: [(&str, &str, &str, Vec<WordMatch>); 9] = [
            ("the same",          "total 9,50 eur",      "Total 9,50 EUR",      vec![Same(0), Same(1), Same(2)]),
            ("other columns",     "d e f a b c",         "a b c d e f",         vec![Same(3), Same(4), Same(5), Same(0), Same(1), Same(2)]),
            ("more often",        "0,00 0,00 0,00",      "x 0,00 0,00",         vec![Same(1), Same(2), Alone]),
            ("another letter",    "net tota1s sum",      "net totals sum",      vec![Same(0), Differs(1), Same(2)]),
            ("other letters",     "net Muller sum",      "net Mtiller sum",     vec![Same(0), Alike(1), Same(2)]),
            ("another digit",     "sum 1.234,56 eur",    "sum 1.284,56 eur",    vec![Same(0), Differs(1), Same(2)]),
            ("another separator", "sum 1,234 eur",       "sum 1.234 eur",       vec![Same(0), Differs(1), Same(2)]),
            ("nothing there",     "sum gross 12,00",     "sum 12,00",           vec![Same(0), Alone, Same(1)]),
            ("currency signs",    "(€12,00)",            "12,00",               vec![Same(0)]),
        ];
        for (name, model, local, expected) in table {
            assert_eq!(matches(model, local), expected, "{name}");
        }
    }

    #[test]
    fn the_distance_of_two_words_is_that_of_their_letters() {
        for (one, other, expected) in
            [("", "", (0, 0)), ("abc", "abc", (0, 3)), ("abc", "abd", (1, 3)), ("rn", "m", (2, 2))]
        {
            assert_eq!(spelling_distance(one, other), expected, "{one} {other}");
            assert_eq!(spelling_distance(other, one), expected, "{other} {one}");
        }
    }
}
