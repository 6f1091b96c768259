//! Messages between a worker and its page processes: requests, and replies with their bytes. Their
//! encoding on a pipe is in `frame`.

mod frame;

use serde::{Deserialize, Serialize};

pub use frame::{read_frame, write_frame};
pub(super) use frame::{receive_frame, send_frame};

use super::confine::ConfinementStatus;
use docmill_core::model::{
    EncodedImage, ImageHeader, MemberFacts, OutcomeReason, PageCrop, PagePicture, PageReadResult,
    PageText, PageViewMode, PageViewResult, PictureFacts, PictureFit, PrintedPage, SecondLook,
    TextLine,
};
use docmill_formats::einvoice::EinvoiceFinding;

/// A request to a page process. Only [`DocumentRequest::Close`] gets no reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestFrame {
    /// The request's number, repeated by its reply.
    pub id: u64,
    /// The request itself.
    pub request: DocumentRequest,
}

/// The requests that a page process answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DocumentRequest {
    /// Recognise the document in the frame's body and count its pages.
    Open {
        /// The number by which later requests name this document.
        document: u64,
        /// Bytes at the body's start that are passwords to try, as JSON.
        secrets: u32,
        /// Whether to look for e-invoices in it as well, and read them.
        scan_einvoice: bool,
        /// Whether to look for documents in it; a container is refused otherwise.
        find_members: bool,
    },
    /// Read a page.
    Read {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
    },
    /// Read a page with a text layer, and compare it with its drawing.
    LookAgain {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
    },
    /// Show a page to a reader elsewhere.
    Show {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// Whether the picture is drawn, and whether it is repaired first.
        view: PageViewMode,
    },
    /// Read a page, and show the picture that it was read from to a reader elsewhere.
    ReadLocally {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// How large the picture may be, and how it is turned.
        fit: PictureFit,
    },
    /// Draw a page as a person sees it, for a model that extracts.
    Draw {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// Whether its text was read from a repaired picture, which is drawn then.
        repaired: bool,
        /// How large the picture may be.
        fit: PictureFit,
    },
    /// Draw a page in the colours of its file, for people who look at it.
    Paint {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// As in [`DocumentRequest::Draw`].
        repaired: bool,
        /// How large the picture may be.
        fit: PictureFit,
    },
    /// Draw a page as its file shows it, for a copy that people keep.
    Copy {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
    },
    /// Cut a figure out of a page.
    Cut {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// As in [`DocumentRequest::Draw`].
        repaired: bool,
        /// Where on the page.
        crop: PageCrop,
    },
    /// Read a piece of a page once more, enlarged.
    Reread {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
        /// As in [`DocumentRequest::Draw`].
        repaired: bool,
        /// Where on the page.
        crop: PageCrop,
    },
    /// Return a page's text layer, without reading its picture.
    Print {
        /// The number under which the document was opened.
        document: u64,
        /// Index of the page, starting at 0.
        index: u32,
    },
    /// Return a document that was found in another.
    Member {
        /// The number under which the document was opened.
        document: u64,
        /// Its place among the documents found there, starting at 0.
        index: u32,
    },
    /// Return whether a document is a form to type into.
    Fields {
        /// The number under which the document was opened.
        document: u64,
    },
    /// Close a document and free what belongs to it.
    Close {
        /// The number under which the document was opened.
        document: u64,
    },
}

impl DocumentRequest {
    /// The number of the document that it is about.
    #[must_use]
    pub fn document(self) -> u64 {
        match self {
            Self::Open { document, .. }
            | Self::Read { document, .. }
            | Self::LookAgain { document, .. }
            | Self::Show { document, .. }
            | Self::ReadLocally { document, .. }
            | Self::Draw { document, .. }
            | Self::Paint { document, .. }
            | Self::Copy { document, .. }
            | Self::Cut { document, .. }
            | Self::Reread { document, .. }
            | Self::Print { document, .. }
            | Self::Member { document, .. }
            | Self::Fields { document }
            | Self::Close { document } => document,
        }
    }
}

/// The first frame a page process sends: it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyFrame {
    /// Which permissions it has given up.
    pub confinement: ConfinementStatus,
}

/// The reply to a [`RequestFrame`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplyFrame {
    /// The number of the request that this answers.
    pub id: u64,
    /// The result of the request.
    pub answer: DocumentAnswer,
}

/// The result of a request to a page process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DocumentAnswer {
    /// The document can be read.
    Opened {
        /// Number of its pages, at least 1; 0 of a container.
        pages: u32,
        /// The documents found in it; empty if they were not looked for.
        members: Vec<MemberFacts>,
        /// Whether documents are attached to it that were not taken: too many, or too large.
        #[serde(default)]
        members_left_out: bool,
        /// Content of its e-invoices: fields and lines, not the XML. `None`: not requested.
        einvoice: Option<EinvoiceFinding>,
    },
    /// A page; an image that goes with it is the frame's body.
    Read {
        /// The page's lines and words.
        page: Box<PageText>,
        /// The image it was read from, if that is not what the file shows.
        image: Option<ImageHeader>,
    },
    /// A page that was compared with its drawing, the reply to [`DocumentRequest::LookAgain`].
    LookedAgain(Box<SecondLook>),
    /// A page whose text is known without reading its picture.
    Known {
        /// The page's text, taken from the file.
        page: Box<PageText>,
    },
    /// A page's text layer, the reply to [`DocumentRequest::Print`].
    Printed {
        /// The text, and whether it is all.
        page: Box<PrintedPage>,
    },
    /// A page that has to be read; its picture is the frame's body, if it was asked for.
    Shown {
        /// Facts of the page that need no reading of its picture.
        facts: Box<PictureFacts>,
        /// Size and format of the picture in the frame's body.
        image: ImageHeader,
    },
    /// A page that was read, and is to be read elsewhere as well. In the frame's body the picture
    /// for that comes first, and behind it the one it was read from, if that is not what the file
    /// shows.
    LocalRead {
        /// Facts of the picture that was read.
        facts: Box<PictureFacts>,
        /// Size and format of the picture for the other reader.
        image: ImageHeader,
        /// Bytes of that picture.
        length: usize,
        /// The page's lines and words.
        page: Box<PageText>,
        /// Size and format of the picture that was read, if it is there.
        repaired: Option<ImageHeader>,
    },
    /// A page as a person sees it or as its file shows it, in the frame's body; `None`: nothing of
    /// it can be drawn.
    Drawn {
        /// Size and format of the picture.
        image: Option<ImageHeader>,
    },
    /// A piece of a page that was read once more.
    Reread {
        /// Its lines, boxes in shares of the page's width and height.
        lines: Vec<TextLine>,
    },
    /// A page on which there is nothing to repair.
    Unaltered,
    /// A document that was found in another: the frame's body.
    Member,
    /// Whether the document is a form.
    Fields {
        /// Whether it has a field of text.
        of_text: bool,
    },
    /// The document is not read, and trying again gives the same answer.
    Refused {
        /// The code for the row.
        reason: OutcomeReason,
        /// Counts and limits; never document content.
        detail: String,
    },
    /// The request failed for a reason that is not the document's fault.
    Failed {
        /// Whether another try may succeed.
        passing: bool,
        /// The error's context; never document content.
        context: String,
    },
}

impl DocumentAnswer {
    /// A page as an answer and the body of its frame.
    pub fn from_page(read: PageReadResult) -> (Self, Vec<u8>) {
        let page = Box::new(read.page);
        match read.repaired {
            None => (Self::Read { page, image: None }, Vec::new()),
            Some(EncodedImage { header, bytes }) => {
                (Self::Read { page, image: Some(header) }, bytes)
            }
        }
    }

    /// A page that is shown as an answer and the body of its frame.
    pub fn from_shown(shown: PageViewResult) -> (Self, Vec<u8>) {
        match shown {
            PageViewResult::Text(page) => (Self::Known { page }, Vec::new()),
            PageViewResult::Unaltered => (Self::Unaltered, Vec::new()),
            PageViewResult::Picture(picture) => {
                let PagePicture { facts, image: EncodedImage { header, bytes }, local_reading } =
                    *picture;
                let facts = Box::new(facts);
                match local_reading {
                    None => (Self::Shown { facts, image: header }, bytes),
                    Some(local_reading) => {
                        Self::from_local_reading(facts, header, bytes, *local_reading)
                    }
                }
            }
        }
    }

    fn from_local_reading(
        facts: Box<PictureFacts>,
        image: ImageHeader,
        mut body: Vec<u8>,
        local_reading: PageReadResult,
    ) -> (Self, Vec<u8>) {
        let length = body.len();
        let repaired = local_reading.repaired.map(|read| {
            body.extend_from_slice(&read.bytes);
            read.header
        });
        (
            Self::LocalRead { facts, image, length, page: Box::new(local_reading.page), repaired },
            body,
        )
    }

    /// The inverse of [`DocumentAnswer::from_shown`]; `None` if it is something else.
    pub fn into_shown_page(self, body: Vec<u8>) -> Option<PageViewResult> {
        match self {
            Self::Known { page } => Some(PageViewResult::Text(page)),
            Self::Unaltered => Some(PageViewResult::Unaltered),
            Self::Shown { facts, image } => {
                let image = EncodedImage { header: image, bytes: body };
                let (facts, local_reading) = (*facts, None);
                Some(PageViewResult::Picture(Box::new(PagePicture { facts, image, local_reading })))
            }
            Self::LocalRead { facts, image, length, page, repaired } => {
                let (shown, read) = body.split_at_checked(length)?;
                if repaired.is_none() && !read.is_empty() {
                    return None;
                }
                let image = EncodedImage { header: image, bytes: shown.to_vec() };
                let repaired = repaired.map(|header| EncodedImage { header, bytes: read.to_vec() });
                let local_reading = Some(Box::new(PageReadResult { page: *page, repaired }));
                let facts = *facts;
                Some(PageViewResult::Picture(Box::new(PagePicture { facts, image, local_reading })))
            }
            _ => None,
        }
    }

    /// A picture as an answer and the body of its frame.
    pub fn from_drawn(drawn: Option<EncodedImage>) -> (Self, Vec<u8>) {
        match drawn {
            None => (Self::Drawn { image: None }, Vec::new()),
            Some(EncodedImage { header, bytes }) => (Self::Drawn { image: Some(header) }, bytes),
        }
    }

    /// The inverse of [`DocumentAnswer::from_drawn`]; `None` if it is something else.
    pub fn into_drawn(self, body: Vec<u8>) -> Option<Option<EncodedImage>> {
        let Self::Drawn { image } = self else { return None };
        Some(image.map(|header| EncodedImage { header, bytes: body }))
    }

    /// The lines of a piece; `None` if it is something else.
    pub fn into_reread(self) -> Option<Vec<TextLine>> {
        let Self::Reread { lines } = self else { return None };
        Some(lines)
    }

    /// Whether there is a field of text; `None` if it is something else.
    pub fn into_text_fields(self) -> Option<bool> {
        let Self::Fields { of_text } = self else { return None };
        Some(of_text)
    }

    /// A page that was compared with its drawing; `None` if it is something else.
    pub fn into_second_look(self) -> Option<SecondLook> {
        let Self::LookedAgain(look) = self else { return None };
        Some(*look)
    }

    /// A page's text layer; `None` if it is something else.
    pub fn into_printed_page(self) -> Option<PrintedPage> {
        let Self::Printed { page } = self else { return None };
        Some(*page)
    }

    /// The inverse of [`DocumentAnswer::from_page`]; `None` if it is no page.
    pub fn into_page(self, body: Vec<u8>) -> Option<PageReadResult> {
        let Self::Read { page, image } = self else { return None };
        let repaired = image.map(|header| EncodedImage { header, bytes: body });
        Some(PageReadResult { page: *page, repaired })
    }
}
