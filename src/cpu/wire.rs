//! What goes over the pipes between a worker and its cells.
//!
//! A frame is two lengths (32 bits for the head, 64 bits for the body, little-endian), a head in
//! JSON and a body of plain bytes: documents on the way in, page images on the way out. Both
//! lengths are held against caps before anything is read, so that a child gone wrong cannot make
//! its worker allocate. A frame that breaks the rules is [`std::io::ErrorKind::InvalidData`].

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::confine::Confinement;
use crate::model::page_work::Encoding;
use crate::model::{
    Attachment, EinvoiceLook, PagePicture, PageRead, PageShown, PageText, PictureFacts, Reason,
    RepairedPage, View,
};

const LENGTHS: usize = 12;
/// Most bytes of a head: the words of the fullest page, with their boxes, many times over.
const HEAD: usize = 64 << 20;

/// Most bytes of a document's e-invoices together.
pub const EINVOICES: u64 = 32 << 20;

/// Something that a cell is to do. Only [`Request::Close`] is not answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// Repeated by the answer.
    pub id: u64,
    /// What.
    pub request: Request,
}

/// What a cell can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Recognise the document in the frame's body and count its pages.
    Open {
        /// How it will be called from now on.
        document: u64,
    },
    /// Read a page.
    Read {
        /// Of which document.
        document: u64,
        /// Starting at 0.
        index: u32,
    },
    /// Show a page to a reader elsewhere.
    Show {
        /// Of which document.
        document: u64,
        /// Starting at 0.
        index: u32,
        /// How.
        view: View,
    },
    /// Look for e-invoices in a document.
    Look {
        /// In which.
        document: u64,
    },
    /// Forget a document.
    Close {
        /// Which.
        document: u64,
    },
}

/// The first frame of a cell: it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// What it can no longer do.
    pub confinement: Confinement,
}

/// What became of an [`Ask`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// Which one.
    pub id: u64,
    /// What became of it.
    pub answer: Answer,
}

/// What a cell answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The document can be read.
    Opened {
        /// Number of its pages, at least 1.
        pages: u32,
    },
    /// A page; an image that goes with it is the frame's body.
    Read {
        /// What was read.
        page: Box<PageText>,
        /// The image it was read from, if that is not what the file shows.
        image: Option<Image>,
    },
    /// A page whose text is known without reading its picture.
    Known {
        /// What it says.
        page: Box<PageText>,
    },
    /// A page that has to be read; its picture is the frame's body, if it was asked for.
    Shown {
        /// What is known of it.
        facts: Box<PictureFacts>,
        /// Its picture.
        image: Image,
    },
    /// A page on which there is nothing to repair.
    Unaltered,
    /// E-invoices, one after the other in the frame's body.
    Looked {
        /// Their sizes in bytes and whether they are the document itself; `None`: one that is there
        /// cannot be taken out.
        einvoices: Option<Vec<(usize, bool)>>,
        /// What the pages print.
        printed: Vec<PageText>,
    },
    /// The document is not read, and trying again gives the same answer.
    Refused {
        /// The code for the row.
        reason: Reason,
        /// Counts and limits; never document content.
        detail: String,
    },
    /// Not the document's fault.
    Failed {
        /// Whether another try may succeed.
        passing: bool,
        /// What went wrong; never document content.
        context: String,
    },
}

/// A [`RepairedPage`] without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    width: u32,
    height: u32,
    dpi: u32,
    encoding: Encoding,
}

impl Answer {
    /// A page as an answer and the body of its frame.
    pub fn of_page(read: PageRead) -> (Self, Vec<u8>) {
        let page = Box::new(read.page);
        let Some(RepairedPage { width, height, dpi, encoding, bytes }) = read.repaired else {
            return (Self::Read { page, image: None }, Vec::new());
        };
        (Self::Read { page, image: Some(Image { width, height, dpi, encoding }) }, bytes)
    }

    /// A page that is shown as an answer and the body of its frame.
    pub fn of_shown(shown: PageShown) -> (Self, Vec<u8>) {
        match shown {
            PageShown::Text(page) => (Self::Known { page }, Vec::new()),
            PageShown::Unaltered => (Self::Unaltered, Vec::new()),
            PageShown::Picture(picture) => {
                let PagePicture { facts, image } = *picture;
                let RepairedPage { width, height, dpi, encoding, bytes } = image;
                let image = Image { width, height, dpi, encoding };
                (Self::Shown { facts: Box::new(facts), image }, bytes)
            }
        }
    }

    /// The inverse of [`Answer::of_shown`]; `None` if it is something else.
    pub fn into_shown(self, body: Vec<u8>) -> Option<PageShown> {
        match self {
            Self::Known { page } => Some(PageShown::Text(page)),
            Self::Unaltered => Some(PageShown::Unaltered),
            Self::Shown { facts, image } => {
                let Image { width, height, dpi, encoding } = image;
                let image = RepairedPage { width, height, dpi, encoding, bytes: body };
                Some(PageShown::Picture(Box::new(PagePicture { facts: *facts, image })))
            }
            _ => None,
        }
    }

    /// What was found as an answer and the body of its frame.
    pub fn of_look(look: EinvoiceLook) -> (Self, Vec<u8>) {
        let EinvoiceLook { einvoices, printed } = look;
        let mut body = Vec::new();
        let einvoices = einvoices.map(|found| {
            let packed = found.into_iter().map(|einvoice| {
                body.extend_from_slice(&einvoice.bytes);
                (einvoice.bytes.len(), einvoice.is_document)
            });
            packed.collect()
        });
        (Self::Looked { einvoices, printed }, body)
    }

    /// The inverse of [`Answer::of_look`]; `None` if it is something else or does not add up.
    pub fn into_look(self, body: &[u8]) -> Option<EinvoiceLook> {
        let Self::Looked { einvoices, printed } = self else { return None };
        let mut rest = body;
        let mut unpack = |(size, is_document): (usize, bool)| {
            let (bytes, behind) = rest.split_at_checked(size)?;
            rest = behind;
            Some(Attachment { bytes: bytes.to_vec(), is_document })
        };
        let einvoices = match einvoices {
            Some(packed) => Some(packed.into_iter().map(&mut unpack).collect::<Option<Vec<_>>>()?),
            None => None,
        };
        rest.is_empty().then_some(EinvoiceLook { einvoices, printed })
    }

    /// The inverse of [`Answer::of_page`]; `None` if it is no page.
    pub fn into_page(self, body: Vec<u8>) -> Option<PageRead> {
        let Self::Read { page, image } = self else { return None };
        let repaired = image.map(|image| {
            let Image { width, height, dpi, encoding } = image;
            RepairedPage { width, height, dpi, encoding, bytes: body }
        });
        Some(PageRead { page: *page, repaired })
    }
}

/// Writes a frame.
///
/// # Errors
/// The pipe is closed.
pub fn write<T: Serialize>(mut to: impl Write, head: &T, body: &[u8]) -> io::Result<()> {
    let (lengths, head) = opening(head, body)?;
    to.write_all(&lengths)?;
    to.write_all(&head)?;
    to.write_all(body)?;
    to.flush()
}

/// Reads a frame whose body has at most `most` bytes; `None` if the other side is gone.
///
/// # Errors
/// The frame breaks off or breaks the rules.
pub fn read<T: DeserializeOwned>(
    mut from: impl Read,
    most: u64,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; LENGTHS];
    match from.read(&mut lengths)? {
        0 => return Ok(None),
        count => from.read_exact(lengths.get_mut(count..).unwrap_or_default())?,
    }
    let (head, body) = checked(lengths, most)?;
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes)?;
    let head = parsed(&bytes)?;
    let mut bytes = vec![0; body];
    from.read_exact(&mut bytes)?;
    Ok(Some((head, bytes)))
}

/// As [`write()`].
pub(super) async fn send<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    head: &T,
    body: &[u8],
) -> io::Result<()> {
    let (lengths, head) = opening(head, body)?;
    to.write_all(&lengths).await?;
    to.write_all(&head).await?;
    to.write_all(body).await?;
    to.flush().await
}

/// As [`read`].
pub(super) async fn receive<T: DeserializeOwned>(
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
    let (head, body) = checked(lengths, most)?;
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes).await?;
    let head = parsed(&bytes)?;
    let mut bytes = vec![0; body];
    from.read_exact(&mut bytes).await?;
    Ok(Some((head, bytes)))
}

fn opening<T: Serialize>(head: &T, body: &[u8]) -> io::Result<([u8; LENGTHS], Vec<u8>)> {
    let head = serde_json::to_vec(head)?;
    let short = u32::try_from(head.len()).map_err(|_| broken("a head beyond 32 bits"))?;
    let long = u64::try_from(body.len()).map_err(|_| broken("a body beyond 64 bits"))?;
    let mut lengths = [0; LENGTHS];
    let (first, second) = lengths.split_at_mut(4);
    first.copy_from_slice(&short.to_le_bytes());
    second.copy_from_slice(&long.to_le_bytes());
    Ok((lengths, head))
}

/// The lengths of head and body, held against their caps.
fn checked(lengths: [u8; LENGTHS], most: u64) -> io::Result<(usize, usize)> {
    let [a, b, c, d, long @ ..] = lengths;
    let head = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let body = u64::from_le_bytes(long);
    if head > HEAD || body > most {
        return Err(broken("a frame over its cap"));
    }
    Ok((head, usize::try_from(body).map_err(|_| broken("a body beyond this machine"))?))
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    // The cause may quote the head, which holds text of the document.
    serde_json::from_slice(bytes).map_err(|_quotes| broken("a head that makes no sense"))
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(head: &Request, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, head, body).unwrap();
        bytes
    }

    #[tokio::test]
    async fn both_sides_read_what_the_other_wrote() {
        let request = Request::Read { document: 7, index: 3 };
        let bytes = frame(&request, b"body");
        let (head, body) = receive::<Request>(&mut bytes.as_slice(), 4).await.unwrap().unwrap();
        assert_eq!((head, body.as_slice()), (request, b"body".as_slice()));
        let mut sent = Vec::new();
        send(&mut sent, &request, b"body").await.unwrap();
        assert_eq!(sent, bytes);
        let (head, body) = read::<Request>(sent.as_slice(), 4).unwrap().unwrap();
        assert_eq!((head, body.as_slice()), (request, b"body".as_slice()));
    }

    #[test]
    fn e_invoices_travel_in_one_body_and_one_that_does_not_add_up_is_none() {
        let attachment =
            |bytes: &[u8], is_document| Attachment { bytes: bytes.to_vec(), is_document };
        let found = vec![attachment(b"<a/>", false), attachment(b"", true)];
        for einvoices in [None, Some(Vec::new()), Some(found)] {
            let look = EinvoiceLook { einvoices, printed: Vec::new() };
            let (answer, body) = Answer::of_look(look.clone());
            assert_eq!(answer.clone().into_look(&[body.as_slice(), b"x"].concat()), None);
            assert_eq!(answer.into_look(&body), Some(look));
        }
        let short = Answer::Looked { einvoices: Some(vec![(5, false)]), printed: Vec::new() };
        assert_eq!(short.into_look(b"<a/>"), None);
    }

    #[tokio::test]
    async fn a_frame_that_breaks_the_rules_is_no_frame() {
        let good = frame(&Request::Close { document: 1 }, b"12345");
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
            ("a head of another sort",   frame(&Request::Open { document: 1 }, b"")
                                            .iter().map(|b| if *b == b'O' { b'o' } else { *b }).collect(),
                                                           io::ErrorKind::InvalidData),
            ("one that breaks off",      good[..good.len() - 1].to_vec(), io::ErrorKind::UnexpectedEof),
            ("lengths that break off",   good[..5].to_vec(), io::ErrorKind::UnexpectedEof),
        ];
        for (name, bytes, expected) in table {
            assert_eq!(
                read::<Request>(bytes.as_slice(), 5).unwrap_err().kind(),
                expected,
                "{name}"
            );
            let error = receive::<Request>(&mut bytes.as_slice(), 5).await.unwrap_err();
            assert_eq!(error.kind(), expected, "{name}");
        }
        assert!(read::<Request>([].as_slice(), 5).unwrap().is_none(), "the end is no error");
    }
}
