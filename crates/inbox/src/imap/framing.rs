//! One response of an IMAP server at a time: lines and literals (RFC 3501 §2.2, §4.3), within bounds.
//!
//! A response is read as a whole before it is parsed, so a server can neither make us wait for memory
//! nor take more of it than stated here.

use bytes::{Bytes, BytesMut};
use docmill_core::fault::{Error, Fault, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Most bytes of one literal: a piece of a mail is no longer.
pub(super) const MAX_LITERAL_BYTES: usize = 1 << 20;
/// Most bytes of one response; a search result names about a million mails in as many.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Bytes asked for at a time.
const READ_BYTES: usize = 16 << 10;

/// The bytes of a response, with its line end.
pub(super) struct RawResponse {
    pub(super) bytes: Bytes,
    /// The deepest nesting of parentheses outside literals.
    pub(super) depth: usize,
}

/// Reads responses; what follows one is kept for the next.
#[derive(Default)]
pub(super) struct ResponseReader {
    buffer: BytesMut,
}

impl ResponseReader {
    /// Whether bytes of a later response have arrived already.
    pub(super) fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads the next response. Dropping the call loses nothing that has arrived.
    ///
    /// # Errors
    /// `Transient`: the connection ended. `Rejected`: the response is over a bound.
    pub(super) async fn read_response(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin + ?Sized),
    ) -> Result<RawResponse> {
        let (mut line_start, mut nesting) = (0, Nesting::default());
        loop {
            let line_end = self.find_line_end(stream, line_start).await?;
            let line = self.buffer.get(line_start..line_end).unwrap_or_default();
            nesting.add_line(line);
            let Some(literal) = literal_bytes(line)? else {
                let bytes = self.buffer.split_to(line_end).freeze();
                return Ok(RawResponse { bytes, depth: nesting.deepest });
            };
            line_start = line_end + literal;
            while self.buffer.len() < line_start {
                self.read_more(stream).await?;
            }
        }
    }

    /// The position behind the line that begins at `start`.
    async fn find_line_end(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin + ?Sized),
        start: usize,
    ) -> Result<usize> {
        let mut searched = start;
        loop {
            let rest = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                return Ok(searched + at + 1);
            }
            searched = self.buffer.len();
            self.read_more(stream).await?;
        }
    }

    async fn read_more(&mut self, stream: &mut (impl AsyncRead + Unpin + ?Sized)) -> Result<()> {
        if self.buffer.len() > MAX_RESPONSE_BYTES {
            return Err(over_bound("a response"));
        }
        self.buffer.reserve(READ_BYTES);
        match stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(Error::transient("the IMAP server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(Error::transient("the IMAP connection broke").with_source(error)),
        }
    }
}

fn over_bound(part: &str) -> Error {
    Error::new(Fault::Rejected, format!("the IMAP server sent {part} beyond docmill's limit"))
}

/// The length of the literal that a line announces at its end: `{42}`.
fn literal_bytes(line: &[u8]) -> Result<Option<usize>> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let Some(text) = text.strip_suffix(b"}") else { return Ok(None) };
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = text.split_at(text.len() - digits);
    if digits.is_empty() || !before.ends_with(b"{") {
        return Ok(None);
    }
    let count = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    match count {
        Some(count) if count <= MAX_LITERAL_BYTES => Ok(Some(count)),
        _ => Err(over_bound("a literal")),
    }
}

/// Parentheses that are open.
#[derive(Default)]
struct Nesting {
    open: usize,
    deepest: usize,
}

impl Nesting {
    fn add_line(&mut self, line: &[u8]) {
        for byte in line {
            match byte {
                b'(' => self.open += 1,
                b')' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
            self.deepest = self.deepest.max(self.open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn responses(sent: &[u8]) -> (Vec<Vec<u8>>, Error) {
        let (mut reader, mut stream, mut found) = (ResponseReader::default(), sent, Vec::new());
        loop {
            match reader.read_response(&mut stream).await {
                Ok(response) => found.push(response.bytes.to_vec()),
                Err(error) => return (found, error),
            }
        }
    }

    #[tokio::test]
    async fn a_response_ends_behind_its_literals_whatever_they_contain() {
        let sent = b"* 1 FETCH (BODY[]<0> {7}\r\na\r\n{9}\n UID 3)\r\n* OK {x}\r\nA1 OK done\r\n";
        let (found, end) = responses(sent).await;
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with(b" UID 3)\r\n") && found[1] == b"* OK {x}\r\n");
        assert_eq!(end.fault, Fault::Transient);
    }

    #[tokio::test]
    async fn giant_literals_and_endless_lines_are_refused_before_memory_is_taken() {
        for count in ["1048577", "4294967296", "99999999999999999999999999"] {
            let (found, error) =
                responses(format!("* 1 FETCH (BODY[] {{{count}}}\r\n").as_bytes()).await;
            assert!(found.is_empty() && error.fault == Fault::Rejected, "{count}: {error}");
        }
        let endless = vec![b'x'; MAX_RESPONSE_BYTES + 2 * READ_BYTES];
        let (found, error) = responses(&endless).await;
        assert!(found.is_empty() && error.fault == Fault::Rejected, "{error}");
    }

    #[tokio::test]
    async fn nesting_is_counted_outside_literals() {
        let mut sent: &[u8] = b"* 1 FETCH (A ((B)) C {3}\r\n((( D)\r\n";
        let response = ResponseReader::default().read_response(&mut sent).await.unwrap();
        assert_eq!(response.depth, 3);
    }
}
