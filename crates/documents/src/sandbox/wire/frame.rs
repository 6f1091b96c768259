//! Frames: two lengths (32 bits for the head, 64 bits for the body, little-endian), a head in JSON
//! and a body of plain bytes: documents on the way in, page images on the way out. Both lengths are
//! checked against caps before anything is read, so that a compromised child cannot make its worker
//! allocate. A frame that breaks the rules is [`std::io::ErrorKind::InvalidData`].

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const LENGTHS: usize = 12;
/// Bytes of a head: the words of the fullest allowed page, with their boxes. In memory they take
/// about as much again.
const MAX_HEAD_BYTES: usize = 4 << 20;
/// A body that is cheaper copied behind its head than written by itself.
const MAX_SMALL_BODY_BYTES: usize = 16 << 10;

/// Writes one frame: its head as JSON, then its body.
///
/// # Errors
/// The pipe is closed; [`io::ErrorKind::FileTooLarge`], with nothing written, for a head over the
/// cap.
pub fn write_frame<T: Serialize>(mut to: impl Write, head: &T, body: &[u8]) -> io::Result<()> {
    let (front, rest) = encode_frame(head, body)?;
    to.write_all(&front)?;
    to.write_all(rest)?;
    to.flush()
}

/// Reads a frame whose body has at most `most` bytes; `None` if the other side is gone.
///
/// # Errors
/// The frame breaks off or breaks the rules.
pub fn read_frame<T: DeserializeOwned>(
    mut from: impl Read,
    most: u64,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; LENGTHS];
    match from.read(&mut lengths)? {
        0 => return Ok(None),
        count => from.read_exact(lengths.get_mut(count..).unwrap_or_default())?,
    }
    let (head, body) = check_lengths(lengths, most)?;
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes)?;
    let head = parse_head(&bytes)?;
    let mut bytes = vec![0; body];
    from.read_exact(&mut bytes)?;
    Ok(Some((head, bytes)))
}

/// As [`write_frame()`], asynchronously.
pub(in crate::sandbox) async fn send_frame<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    head: &T,
    body: &[u8],
) -> io::Result<()> {
    let (front, rest) = encode_frame(head, body)?;
    to.write_all(&front).await?;
    to.write_all(rest).await?;
    to.flush().await
}

/// As [`read_frame`], asynchronously.
pub(in crate::sandbox) async fn receive_frame<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    most: u64,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; LENGTHS];
    match from.read(&mut lengths).await? {
        0 => return Ok(None),
        count => {
            from.read_exact(lengths.get_mut(count..).unwrap_or_default()).await?;
        }
    }
    let (head, body) = check_lengths(lengths, most)?;
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes).await?;
    let head = parse_head(&bytes)?;
    let mut bytes = vec![0; body];
    from.read_exact(&mut bytes).await?;
    Ok(Some((head, bytes)))
}

/// The first write and the rest of the body. Each write to a pipe wakes its reader, so a small
/// frame is one write.
fn encode_frame<'a, T: Serialize>(head: &T, body: &'a [u8]) -> io::Result<(Vec<u8>, &'a [u8])> {
    let mut front = vec![0; LENGTHS];
    serde_json::to_writer(&mut front, head)?;
    let length = front.len() - LENGTHS;
    if length > MAX_HEAD_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a head over its cap"));
    }
    let short = u32::try_from(length).map_err(|_| frame_error("a head beyond 32 bits"))?;
    let long = u64::try_from(body.len()).map_err(|_| frame_error("a body beyond 64 bits"))?;
    let lengths = short.to_le_bytes().into_iter().chain(long.to_le_bytes());
    front.iter_mut().zip(lengths).for_each(|(byte, length)| *byte = length);
    if body.len() > MAX_SMALL_BODY_BYTES {
        return Ok((front, body));
    }
    front.extend_from_slice(body);
    Ok((front, &[]))
}

/// The lengths of head and body, checked against their caps.
fn check_lengths(lengths: [u8; LENGTHS], most: u64) -> io::Result<(usize, usize)> {
    let [a, b, c, d, long @ ..] = lengths;
    let head = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let body = u64::from_le_bytes(long);
    if head > MAX_HEAD_BYTES || body > most {
        return Err(frame_error("a frame over its cap"));
    }
    Ok((head, usize::try_from(body).map_err(|_| frame_error("a body beyond this machine"))?))
}

fn parse_head<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    // The cause may quote the head, which holds text of the document.
    serde_json::from_slice(bytes).map_err(|_quotes| frame_error("a head that makes no sense"))
}

fn frame_error(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::super::{DocumentAnswer, DocumentRequest, ReplyFrame};
    use super::*;
    use docmill_core::model::{BoundingBox, PageText, TextLine, TextWord};

    fn frame(head: &DocumentRequest, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, head, body).unwrap();
        bytes
    }

    #[tokio::test]
    async fn both_sides_read_what_the_other_wrote() {
        let request = DocumentRequest::Read { document: 7, index: 3 };
        let bytes = frame(&request, b"body");
        let (head, body) =
            receive_frame::<DocumentRequest>(&mut bytes.as_slice(), 4).await.unwrap().unwrap();
        assert_eq!((head, body.as_slice()), (request, b"body".as_slice()));
        let mut sent = Vec::new();
        send_frame(&mut sent, &request, b"body").await.unwrap();
        assert_eq!(sent, bytes);
        let (head, body) = read_frame::<DocumentRequest>(sent.as_slice(), 4).unwrap().unwrap();
        assert_eq!((head, body.as_slice()), (request, b"body".as_slice()));
    }

    #[test]
    fn a_head_over_the_cap_is_not_written_and_the_fullest_page_is_not_over_it() {
        let page = |words: usize| {
            let bounding_box = BoundingBox { x: 1234.5, y: 1234.5, w: 1234.5, h: 1234.5 };
            let word = TextWord {
                text: "Wirtschaft".into(),
                bounding_box,
                confidence: 0.875,
                unwitnessed: false,
            };
            let lines = vec![TextLine { words: vec![word; 10] }; words / 10];
            let page = Box::new(PageText::from_native(1, (1.0, 1.0), 1.0, lines));
            ReplyFrame { id: 1, answer: DocumentAnswer::Known { page } }
        };
        let mut written = Vec::new();
        // As many words as `limits.page_words` may allow.
        write_frame(&mut written, &page(25_000), b"").unwrap();
        let length = written.len();
        let error = write_frame(&mut written, &page(50_000), b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(written.len(), length, "nothing of it is on its way");
    }

    #[tokio::test]
    async fn a_frame_that_breaks_the_rules_is_no_frame() {
        let good = frame(&DocumentRequest::Close { document: 1 }, b"12345");
        let lying = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            bytes
        };
        #[rustfmt::skip]
        let table = [
            ("a body over the cap",      lying(4, 6),      io::ErrorKind::InvalidData),
            ("a body of 2^56 bytes",     lying(11, 1),     io::ErrorKind::InvalidData),
            ("a head of 2 GiB",          lying(3, 0x7f),   io::ErrorKind::InvalidData),
            ("a head of another sort",   frame(&DocumentRequest::Open { document: 1, secrets: 0, scan_einvoice: false, find_members: false }, b"")
                                            .iter().map(|b| if *b == b'O' { b'o' } else { *b }).collect(),
                                                           io::ErrorKind::InvalidData),
            ("one that breaks off",      good[..good.len() - 1].to_vec(), io::ErrorKind::UnexpectedEof),
            ("lengths that break off",   good[..5].to_vec(), io::ErrorKind::UnexpectedEof),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(
                read_frame::<DocumentRequest>(bytes.as_slice(), 5).unwrap_err().kind(),
                expected,
                "{name}"
            );
            let error =
                receive_frame::<DocumentRequest>(&mut bytes.as_slice(), 5).await.unwrap_err();
            assert_eq!(error.kind(), expected, "{name}");
        }
        assert!(
            read_frame::<DocumentRequest>([].as_slice(), 5).unwrap().is_none(),
            "the end is no error"
        );
    }
}
