//! Detects cut replies that would never end: they repeat themselves, or exceed the length that
//! their lines can need.

use docmill_llm::estimate_tokens;

/// Maximum size of a complete reply about some lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyNeed {
    pub(super) tokens: u64,
    /// Rows shown: each is at most one entry of a list.
    pub(super) rows: usize,
}

/// Whether a cut reply is its model's fault.
pub(super) fn is_endless(reply: &str, need: ReplyNeed) -> bool {
    // Indentation is a few tokens, however wide.
    let words: Vec<&str> = reply.split_whitespace().collect();
    estimate_tokens(&words.join(" ")) > need.tokens || count_repeats(reply) > need.rows
}

/// Repetitions of one piece at the end of a reply, if they fill more than half of it. All digits
/// count as equal: a looping model may count on.
fn count_repeats(reply: &str) -> usize {
    let mut backwards = Vec::with_capacity(reply.len());
    for byte in reply.bytes().rev() {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || backwards.last() != Some(&b'0') {
            backwards.push(byte);
        }
    }
    let matches = match_lengths(&backwards);
    // The prefix up to the second piece, and its continuation, have that period.
    let runs = (1..).zip(matches.iter().skip(1)).map(|(period, more)| (period, period + more));
    let long = runs.filter(|(_, run)| 2 * run > backwards.len());
    long.map(|(period, run)| run / period).max().unwrap_or(0)
}

/// Length of the common prefix of the whole and each suffix (the Z function), in linear time.
fn match_lengths(text: &[u8]) -> Vec<usize> {
    let mut lengths: Vec<usize> = vec![0; text.len()];
    let (mut start, mut end) = (0, 0);
    for at in 1..text.len() {
        let known = lengths.get(at - start).copied().unwrap_or(0);
        let mut length = if at < end { known.min(end - at) } else { 0 };
        while text.get(at + length).is_some() && text.get(at + length) == text.get(length) {
            length += 1;
        }
        if at + length > end {
            (start, end) = (at, at + length);
        }
        if let Some(slot) = lengths.get_mut(at) {
            *slot = length;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_reply_is_endless_if_it_repeats_more_than_its_rows_or_is_longer_than_they_need() {
        let entry =
            |at: usize| format!(r#"{{"description":"Part","line":"p1.l{at}","amount":{at}.50}},"#);
        let entries = |count: usize| (1..=count).map(entry).collect::<String>();
        let words: String = (0..400).map(|at| format!("{:x} ", at * 7_919)).collect();
        let head = r#"{"fields":{"supplier_name":"ACME Ltd","line_items":["#;
        #[rustfmt::skip]
        let table = [
            ("as many entries as rows",  format!("{head}{}", entries(40)),             false),
            ("more, and counting on",    format!("{head}{}{{\"desc", entries(42)),     true),
            ("one entry again and again", format!("{head}{}", entry(7).repeat(42)),    true),
            ("a word again and again",   format!("{head}[{{\"{}", "so ".repeat(200)),  true),
            ("circles of little length", format!("{words}{}", "so ".repeat(100)),      false),
            ("words of any sort",        words.clone(),                               false),
            ("too many of them",         words.replace(' ', "-more ").repeat(2),       true),
            ("far apart",                entries(40).replace(',', &" ".repeat(90)),    false),
            ("nothing",                  String::new(),                                false),
        ];
        for (name, reply, expected) in table {
            assert_eq!(
                is_endless(&reply, ReplyNeed { tokens: 2_000, rows: 40 }),
                expected,
                "{name}"
            );
        }
    }
}
