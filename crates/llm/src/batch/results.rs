//! A file of answers, line by line: one JSON object each, in any order. No more than a line is in
//! memory.

use reqwest::Response;

use super::BatchedResult;
use crate::exchange::REPLY_CAP;
use docmill_client::http;
use docmill_core::fault::Result;

/// Reads one line; `None`: it is none of a vendor's.
pub(crate) type ResultParser = Box<dyn Fn(&[u8]) -> Option<BatchedResult> + Send + Sync>;

/// Most bytes of a line whose vendor repeats the question in it: a question's, and those of a reply.
pub(crate) const LINE_WITH_QUESTION: usize = (64 << 20) + REPLY_CAP;

/// The answers of one file, as they arrive.
pub struct BatchResults {
    response: Response,
    parse: ResultParser,
    what: String,
    lines: LineBuffer,
}

impl BatchResults {
    /// Over the body of a response; `what`: the operation, for error texts.
    pub(crate) fn new(
        response: Response,
        what: String,
        parse: impl Fn(&[u8]) -> Option<BatchedResult> + Send + Sync + 'static,
    ) -> Self {
        let lines = LineBuffer::with_longest(REPLY_CAP);
        Self { response, parse: Box::new(parse), what, lines }
    }

    /// The same for lines that repeat their questions.
    #[must_use]
    pub(crate) fn with_questions(self) -> Self {
        Self { lines: LineBuffer::with_longest(LINE_WITH_QUESTION), ..self }
    }

    /// The next answer; `None`: that was all. A line over the limit of replies, or of another form,
    /// is left out: its question counts as unanswered.
    ///
    /// # Errors
    /// The connection broke or took too long.
    pub async fn next(&mut self) -> Result<Option<BatchedResult>> {
        loop {
            while let Some(line) = self.lines.pop_line() {
                if let Some(result) = (self.parse)(&line) {
                    return Ok(Some(result));
                }
            }
            let chunk = self.response.chunk().await;
            let chunk = chunk.map_err(|error| http::no_answer_error(error, &self.what))?;
            match chunk {
                Some(chunk) => self.lines.push_bytes(&chunk),
                None if self.lines.is_finished => return Ok(None),
                None => self.lines.finish(),
            }
        }
    }
}

impl std::fmt::Debug for BatchResults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchResults").field("what", &self.what).finish_non_exhaustive()
    }
}

/// Bytes that have arrived, as lines.
#[derive(Debug)]
struct LineBuffer {
    /// Most bytes of a line.
    longest: usize,
    open: Vec<u8>,
    whole: std::collections::VecDeque<Vec<u8>>,
    /// The open line is longer than any reply.
    is_too_long: bool,
    is_finished: bool,
}

impl LineBuffer {
    fn with_longest(longest: usize) -> Self {
        let (open, whole) = (Vec::new(), std::collections::VecDeque::new());
        Self { longest, open, whole, is_too_long: false, is_finished: false }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if self.open.len() + piece.len() > self.longest {
                self.is_too_long = true;
                self.open = Vec::new();
            }
            if !self.is_too_long {
                self.open.extend_from_slice(piece);
            }
            if pieces.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.open);
        if !std::mem::take(&mut self.is_too_long) && !line.is_empty() {
            self.whole.push_back(line);
        }
    }

    fn finish(&mut self) {
        self.end_line();
        self.is_finished = true;
    }

    fn pop_line(&mut self) -> Option<Vec<u8>> {
        self.whole.pop_front()
    }
}

/// The vendor's word, if it looks like one: what a vendor says in words may repeat what it was asked.
pub(crate) fn plain_word(text: Option<&str>, otherwise: &str) -> String {
    let word = text.filter(|text| {
        (1..=64).contains(&text.len())
            && text.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    });
    word.unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut buffer = LineBuffer::with_longest(REPLY_CAP);
        chunks.iter().for_each(|chunk| buffer.push_bytes(chunk));
        buffer.finish();
        std::iter::from_fn(|| buffer.pop_line()).collect()
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut_into_chunks() {
        let whole = b"{\"a\":1}\n\n{\"b\":2}\n{\"c\":3}";
        let expected = [b"{\"a\":1}".to_vec(), b"{\"b\":2}".to_vec(), b"{\"c\":3}".to_vec()];
        for size in 1..=whole.len() {
            let chunks: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(lines(&chunks), expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_line_longer_than_any_reply_is_left_out_and_the_next_one_is_read() {
        let long = vec![b'x'; REPLY_CAP / 2 + 1];
        assert_eq!(lines(&[&long, &long, &long, b"\nnext\n"]), [b"next".to_vec()]);
    }

    #[test]
    fn a_vendors_word_is_passed_on_only_if_it_is_one() {
        assert_eq!(plain_word(Some("batch_expired"), "failed"), "batch_expired");
        for told in [None, Some(""), Some("the invoice of ACME"), Some("é")] {
            assert_eq!(plain_word(told, "failed"), "failed");
        }
    }
}
