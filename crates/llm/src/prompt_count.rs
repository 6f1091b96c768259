//! Detects truncated prompts by the token count in the reply.
//!
//! A server may silently truncate a prompt over its context window: Ollama does, llama.cpp and LM
//! Studio shift or cut, vLLM can be configured to, gateways drop the middle. Tokenizers split a
//! text into words and numbers before they join characters to tokens, so a complete prompt has at
//! least one token per word. Measured over invoices and manuals, six tokenizers count 1.4 times the
//! words and more (docs/lab/2026-11-28-models.md).
//!
//! Not promised: that a prompt with enough tokens was complete. A count of 0 means unknown.

use crate::{FinishReason, ModelReply, Prompt, estimate_tokens};

/// Minimum tokens per word of a complete prompt, in percent: some vocabularies have tokens of
/// several words, which save a third of the tokens.
const MIN_COUNTED_PERCENT: u64 = 90;
/// Maximum average of ideograms or syllables per token, in scripts without spaces.
const MAX_IDEOGRAMS_PER_TOKEN: u64 = 4;
/// Tokens by which a truncated prompt may fall short of the window, or of half of it.
const WINDOW_SLACK: u64 = 2;
/// Smallest context window in use.
const MIN_WINDOW: u64 = 1_024;

/// How characters are joined to words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordPart {
    Letter,
    Digit,
    Ideogram,
    Sign,
}

fn classify_char(c: char) -> WordPart {
    match c {
        '\u{2e80}'.. if c.is_alphanumeric() => WordPart::Ideogram,
        _ if c.is_numeric() => WordPart::Digit,
        _ if c.is_alphabetic() => WordPart::Letter,
        _ => WordPart::Sign,
    }
}

/// Number of words and numbers in a text; four ideograms count as one. Punctuation does not count.
pub fn count_words(text: &str) -> u64 {
    let (mut words, mut before, mut run) = (0, WordPart::Sign, 0);
    for part in text.chars().map(classify_char) {
        run = if part == before { run + 1 } else { 0 };
        let begins = run == 0 || (part == WordPart::Ideogram && run % MAX_IDEOGRAMS_PER_TOKEN == 0);
        words += u64::from(part != WordPart::Sign && begins);
        before = part;
    }
    words
}

/// Whether a count is near a window or half of one: windows are powers of two.
fn is_window(tokens: u64) -> bool {
    let window = tokens.saturating_sub(WINDOW_SLACK).next_power_of_two();
    window >= MIN_WINDOW && tokens.abs_diff(window) <= WINDOW_SLACK
}

impl ModelReply {
    /// A count below that of any complete prompt means that the prompt did not fit. Cached tokens
    /// are part of the count; pictures, the schema and the server's own template only increase it.
    #[must_use]
    pub fn check_count(mut self, prompt: &Prompt) -> Self {
        let counted = self.usage.prompt_tokens();
        let words = count_words(&prompt.system).saturating_add(count_words(&prompt.user));
        if counted > 0 && counted < words.saturating_mul(MIN_COUNTED_PERCENT) / 100 {
            self.stop = FinishReason::TooLong;
        }
        self
    }

    /// The same for servers that truncate to the window: the count is that of a window, and the
    /// text is longer.
    pub(super) fn check_window(mut self, prompt: &Prompt) -> Self {
        let counted = self.usage.prompt_tokens();
        let mut whole =
            estimate_tokens(&prompt.system).saturating_add(estimate_tokens(&prompt.user));
        if prompt.schema_in_text {
            whole = whole.saturating_add(estimate_tokens(&prompt.schema.to_string()));
        }
        if is_window(counted) && counted < whole {
            self.stop = FinishReason::TooLong;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use docmill_core::model::ModelUsage;
    use serde_json::Value;

    use super::*;
    use crate::PromptThinking;

    fn prompt(system: &str, user: &str) -> Prompt {
        Prompt {
            system: system.into(),
            user: user.to_owned(),
            schema_name: "invoice".to_owned(),
            schema: Value::Null.into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 9,
            pictures: Vec::new(),
        }
    }

    fn reply(usage: ModelUsage) -> ModelReply {
        ModelReply { usage, ..ModelReply::without_text(FinishReason::Complete, "m") }
    }

    fn counted(input: u64) -> ModelReply {
        reply(ModelUsage { input, ..ModelUsage::default() })
    }

    #[test]
    fn words_are_counted_that_every_tokenizer_splits() {
        #[rustfmt::skip]
        let table = [
            ("",                                   0),
            ("........ ---- ||",                   0),
            ("Total ............ 1.234,56",        4),
            ("line_items[2].amount",               4),
            ("Rechnungsnummer RE-2026/0815a",      5),
            ("Общая сумма к оплате",               4),
            ("合計金額",                             1),
            ("請求書番号",                           2),
            ("주문 번호 12",                         3),
        ];
        for (text, expected) in table {
            assert_eq!(count_words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_prompt_that_was_shortened_is_detected_by_its_count_whether_rules_or_pages_went() {
        let rules = "Read the fields as they are printed on the page. ".repeat(200);
        let document = "p1.l1| Consulting services 2 x 120.50 = 241.00\n".repeat(300);
        let asked = prompt(&rules, &document);
        let (words, whole) =
            (count_words(&rules) + count_words(&document), asked.estimate_tokens());
        assert_eq!(words, 2_000 + 3_600);
        #[rustfmt::skip]
        let table = [
            ("no count",                          0,              FinishReason::Complete),
            ("as estimated",                      whole,          FinishReason::Complete),
            ("a tokenizer of many",               whole * 3 / 2,  FinishReason::Complete),
            ("a token a word",                    words,          FinishReason::Complete),
            ("tokens of several words",           words * 9 / 10, FinishReason::Complete),
            ("one less",                          words * 9 / 10 - 1, FinishReason::TooLong),
            ("half of a window of 4,096",         2_050,          FinishReason::TooLong),
            ("the rules alone are missing",       3_600,          FinishReason::TooLong),
        ];
        for (name, input, expected) in table {
            assert_eq!(counted(input).check_count(&asked).stop, expected, "{name}");
        }
    }

    #[test]
    fn cached_tokens_are_part_of_the_count_whatever_their_price() {
        let asked = prompt(&"Read the fields. ".repeat(1_000), "one page");
        for (cache_read, cache_write, expected) in [
            (4_000, 0, FinishReason::Complete),
            (0, 4_000, FinishReason::Complete),
            (900, 900, FinishReason::TooLong),
        ] {
            let usage = ModelUsage { input: 10, cache_read, cache_write, output: 5 };
            assert_eq!(reply(usage).check_count(&asked).stop, expected, "{usage:?}");
        }
    }

    #[test]
    fn lines_of_signs_are_no_reason_to_doubt_a_count() {
        let leaders = format!("{}\n", ".".repeat(200)).repeat(400);
        let asked = prompt("Read the fields.", &leaders);
        assert_eq!(counted(500).check_count(&asked).stop, FinishReason::Complete);
    }

    #[test]
    fn a_count_of_exactly_a_window_is_one_of_a_shortened_prompt() {
        let long = prompt("", &"word ".repeat(8_000));
        let short = prompt("", &"word ".repeat(400));
        #[rustfmt::skip]
        let table = [
            (&long,  4_095, FinishReason::TooLong),
            (&long,  4_090, FinishReason::Complete),
            (&short, 512,   FinishReason::Complete),
        ];
        for (asked, input, expected) in table {
            assert_eq!(counted(input).check_window(asked).stop, expected, "{input}");
        }
    }
}
