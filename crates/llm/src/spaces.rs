//! White space without end: what models on grammar-bound servers fall into (vLLM's issue 38696 saw
//! it in 6 of 10 prompts), until the token limit ends it.
//!
//! No reader of ours needs such a reply, and fewer pages would not help: unlike one that is merely
//! cut, it is asked for again.

/// Longest run of white space that a reply may have; indentation of the deepest schema stays far
/// below.
const MAX_RUN_CHARS: usize = 1_000;

/// Watches a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct WhitespaceDetector {
    run: usize,
    endless: bool,
}

impl WhitespaceDetector {
    /// Takes the next piece; whether the text goes in circles by now.
    pub(super) fn feed(&mut self, piece: &str) -> bool {
        for c in piece.chars() {
            self.run = if c.is_whitespace() { self.run + 1 } else { 0 };
            self.endless |= self.run > MAX_RUN_CHARS;
        }
        self.endless
    }
}

/// Whether a whole text has a run of white space that is too long.
pub(super) fn has_endless_whitespace(text: &str) -> bool {
    WhitespaceDetector::default().feed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_is_no_endless_white_space_and_a_run_over_several_pieces_is() {
        assert!(!has_endless_whitespace(&format!("{{\n{}\"a\": 1}}", " ".repeat(200)).repeat(100)));
        assert!(has_endless_whitespace(&format!("{{\"a\": {}", " \n\t".repeat(400))));
        let mut watch = WhitespaceDetector::default();
        let pieces: Vec<bool> = (0..4).map(|_| watch.feed(&"\n".repeat(300))).collect();
        assert_eq!(pieces, [false, false, false, true]);
    }
}
