//! The inside of a page process: answers the requests of one pipe on another, until the first ends.
//!
//! Requests are worked on by as many threads as configured, one each, and answered in the order of
//! completion. The page reader is handed in, because OCR engines are chosen higher up; each thread
//! gets one of its own, kept for the next page. A panic costs its request; the parent handles a
//! killed process.
//!
//! A page's road has five layers. (1) `OpenDocument` in the worker sends a request frame. (2)
//! `PageServer` here receives it. (3) A `PageReader` gets the document. (4) `read_page` chooses
//! between text layer and picture. (5) `PdfFile` or the image decoders draw it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use crate::document::{ParsedDocument, open_locked_document, open_with_members};
use crate::einvoice_rules::EinvoiceRules;
use crate::page::PageRaster;
use crate::reading::colour_page::paint_page;
use crate::reading::cut_figure::cut_figure;
use crate::reading::page_copy::copy_page;
use crate::reading::read_page::{compare_page, read_crop, read_page};
use crate::reading::recognise::PageRecogniser;
use crate::reading::render_with_ocr::render_with_ocr;
use crate::reading::seen_page::{EnlargedCrop, draw_for_model, seen_page};
use crate::reading::show_page::show_page;
use crate::refusal::PageRefusal;
use crate::sandbox::confine::{self, ConfinementStatus};
use crate::sandbox::wire::{
    self, DocumentAnswer, DocumentRequest, ReadyFrame, ReplyFrame, RequestFrame,
};
use crate::sandbox::{PageThreads, ProcessSetup};
use docmill_core::fault::{self, Fault};
use docmill_core::model::{
    EncodedImage, OutcomeReason, PageCrop, PageReadResult, PageSource, PageText, PageViewResult,
    PrintedPage, ReadRecipe, SecondLook, SecondLookResult, TextLine,
};
use docmill_formats::einvoice::EinvoiceFinding;
use parking_lot::Mutex;

pub use crate::page_error::PageError;

/// Reads pages, one at a time, on one thread.
pub trait PageReader: Send {
    /// Reads page `index`, which starts at 0.
    ///
    /// # Errors
    /// The document is to blame, or something else is.
    fn read_page(
        &mut self,
        document: &ParsedDocument,
        index: u32,
        recipe: &ReadRecipe,
    ) -> Result<PageReadResult, PageError>;

    /// Reads page `index`, which starts at 0, and compares its text layer with its drawing.
    ///
    /// # Errors
    /// As [`PageReader::read_page`].
    fn look_again(
        &mut self,
        document: &ParsedDocument,
        index: u32,
        recipe: &ReadRecipe,
    ) -> Result<SecondLook, PageError> {
        let page = self.read_page(document, index, recipe)?.page;
        Ok(SecondLook { page, result: SecondLookResult::Unread })
    }

    /// Reads a piece that was cut out of a page of `document` and enlarged.
    ///
    /// # Errors
    /// It takes too long, or something else is to blame.
    fn read_crop(
        &mut self,
        document: &ParsedDocument,
        crop: &PageRaster,
        recipe: &ReadRecipe,
    ) -> Result<Vec<TextLine>, PageError>;
}

/// The reader in use, except in tests of page processes.
impl PageReader for Box<dyn PageRecogniser> {
    fn read_page(
        &mut self,
        document: &ParsedDocument,
        index: u32,
        recipe: &ReadRecipe,
    ) -> Result<PageReadResult, PageError> {
        read_page(document, index, recipe, self.as_mut())
    }

    fn look_again(
        &mut self,
        document: &ParsedDocument,
        index: u32,
        recipe: &ReadRecipe,
    ) -> Result<SecondLook, PageError> {
        compare_page(document, index, recipe, self.as_mut())
    }

    fn read_crop(
        &mut self,
        document: &ParsedDocument,
        crop: &PageRaster,
        recipe: &ReadRecipe,
    ) -> Result<Vec<TextLine>, PageError> {
        read_crop(document, crop, recipe, self.as_mut())
    }
}

/// Makes one more reader.
pub type PageReaderFactory = Box<dyn Fn() -> fault::Result<Box<dyn PageReader>> + Send + Sync>;

/// Serves until `input` ends. `prepare` gets the setup before any thread is started: there the
/// process drops its rights and loads its readers.
///
/// # Errors
/// The other side violates the protocol, or reads no answers.
pub fn serve_pages<W: Write + Send + 'static>(
    mut input: impl Read,
    mut output: W,
    prepare: impl FnOnce(&ProcessSetup) -> io::Result<(ConfinementStatus, PageReaderFactory)>,
) -> io::Result<()> {
    let Some((setup, _)) = wire::read_frame::<ProcessSetup>(&mut input, 0)? else { return Ok(()) };
    let rules = EinvoiceRules::read(&setup.einvoice_rules)?;
    let (confinement, make) = prepare(&setup)?;
    let threads = PageThreads::start(setup.threads)?;
    // All threads are there.
    let confinement = confine::forbid_threads(setup.permissions.as_ref(), confinement);
    wire::write_frame(&mut output, &ReadyFrame { confinement }, &[])?;
    let most = setup.limits.document_bytes.0;
    let desk = Arc::new(PageServer {
        setup,
        rules,
        make,
        documents: Mutex::default(),
        readers: Mutex::default(),
        output: Mutex::new(output),
    });
    while let Some((ask, body)) = wire::read_frame::<RequestFrame>(&mut input, most)? {
        if let DocumentRequest::Close { document } = ask.request {
            desk.documents.lock().remove(&document);
            continue;
        }
        let desk = Arc::clone(&desk);
        threads.run(Box::new(move || desk.answer_request(ask, body)));
    }
    Ok(())
}

/// The passwords in front of a document's bytes, and those.
fn split_secrets(mut body: Bytes, secrets: u32) -> fault::Result<(Vec<String>, Bytes)> {
    if secrets == 0 {
        return Ok((Vec::new(), body));
    }
    let length = usize::try_from(secrets).ok().filter(|length| *length <= body.len());
    let list = length.map(|length| body.split_to(length));
    let passwords = list.and_then(|list| serde_json::from_slice(&list).ok());
    let passwords =
        passwords.ok_or_else(|| fault::Error::internal("malformed passwords in a request"))?;
    Ok((passwords, body))
}

struct PageServer<W> {
    setup: ProcessSetup,
    rules: EinvoiceRules,
    make: PageReaderFactory,
    documents: Mutex<HashMap<u64, Arc<ParsedDocument>>>,
    /// Idle readers.
    readers: Mutex<Vec<Box<dyn PageReader>>>,
    output: Mutex<W>,
}

impl<W: Write> PageServer<W> {
    fn answer_request(&self, ask: RequestFrame, body: Vec<u8>) {
        let worked = catch_unwind(AssertUnwindSafe(|| self.handle_request(ask.request, body)));
        let worked = worked.unwrap_or_else(|_payload| {
            Err(fault::Error::internal("reading a page panicked").into())
        });
        let (answer, body) =
            worked.unwrap_or_else(|trouble| (answer_for_error(trouble), Vec::new()));
        let written = self.write_reply(ask.id, answer, &body);
        if written.is_err_and(|error| error.kind() == io::ErrorKind::FileTooLarge) {
            let detail = "a page's result exceeds one message of its page process";
            let refusal = PageRefusal::new(OutcomeReason::TooLarge, detail);
            drop(self.write_reply(ask.id, answer_for_error(refusal.into()), &[]));
        }
        // Nobody takes it any more only when the worker is gone, and then the input ends too.
    }

    fn write_reply(&self, id: u64, answer: DocumentAnswer, body: &[u8]) -> io::Result<()> {
        wire::write_frame(&mut *self.output.lock(), &ReplyFrame { id, answer }, body)
    }

    fn handle_request(
        &self,
        request: DocumentRequest,
        body: Vec<u8>,
    ) -> Result<(DocumentAnswer, Vec<u8>), PageError> {
        match request {
            DocumentRequest::Open { document, secrets, scan_einvoice, find_members } => {
                let ProcessSetup { limits, recipe, .. } = &self.setup;
                let (passwords, bytes) = split_secrets(body.into(), secrets)?;
                let open = if find_members { open_with_members } else { open_locked_document };
                let opened = open(bytes, limits, recipe.dpi, &passwords)?;
                let einvoice =
                    scan_einvoice.then(|| opened.find_einvoice(&self.rules)).transpose()?;
                let answer = opened_answer(&opened, einvoice);
                self.documents.lock().insert(document, Arc::new(opened));
                Ok((answer, Vec::new()))
            }
            DocumentRequest::Read { document, index } => Ok(DocumentAnswer::from_page(
                self.read_page(&*self.find_document(document)?, index)?,
            )),
            DocumentRequest::LookAgain { document, index } => {
                let look = self.look_again(&*self.find_document(document)?, index)?;
                Ok((DocumentAnswer::LookedAgain(Box::new(look)), Vec::new()))
            }
            DocumentRequest::Show { document, index, view } => {
                let document = self.find_document(document)?;
                let shown = show_page(&document, index, view, &self.setup.recipe)?;
                if let PageViewResult::Text(page) = &shown {
                    self.check_text(page)?;
                }
                Ok(DocumentAnswer::from_shown(shown))
            }
            DocumentRequest::ReadLocally { document, index, fit } => {
                let document = self.find_document(document)?;
                let read = self.read_page(&document, index)?;
                let shown = render_with_ocr(&document, index, fit, read)?;
                Ok(DocumentAnswer::from_shown(shown))
            }
            DocumentRequest::Draw { .. }
            | DocumentRequest::Paint { .. }
            | DocumentRequest::Copy { .. }
            | DocumentRequest::Cut { .. } => self.draw(request).map(DocumentAnswer::from_drawn),
            DocumentRequest::Reread { document, index, repaired, crop } => {
                let document = self.find_document(document)?;
                let lines = self.reread_crop(&document, index, repaired, crop)?;
                Ok((DocumentAnswer::Reread { lines }, Vec::new()))
            }
            DocumentRequest::Print { document, index } => {
                let document = self.find_document(document)?;
                let page = Box::new(self.printed_page(&document, index)?);
                self.check_text(&page.text)?;
                Ok((DocumentAnswer::Printed { page }, Vec::new()))
            }
            DocumentRequest::Member { document, index } => {
                let content = self.find_document(document)?.member_content(index)?;
                Ok((DocumentAnswer::Member, content))
            }
            DocumentRequest::Fields { document } => {
                let of_text = self.find_document(document)?.has_text_fields();
                Ok((DocumentAnswer::Fields { of_text }, Vec::new()))
            }
            DocumentRequest::Close { .. } => {
                Err(fault::Error::internal("nothing to answer").into())
            }
        }
    }

    /// The printed text of a page. Words that the drawing does not show are read from it.
    fn printed_page(
        &self,
        document: &ParsedDocument,
        index: u32,
    ) -> Result<PrintedPage, PageError> {
        let PrintedPage { mut text, shows_more } = document.printed_page(index)?;
        if !has_unwitnessed(&text) {
            return Ok(PrintedPage { text, shows_more });
        }
        let read = self.read_page(document, index)?.page;
        if read.source == PageSource::Native {
            text = PageText { quality: text.quality.min(read.quality), lines: read.lines, ..text };
        }
        let shows_more = shows_more || has_unwitnessed(&text);
        Ok(PrintedPage { text, shows_more })
    }

    /// The requested picture.
    fn draw(&self, request: DocumentRequest) -> Result<Option<EncodedImage>, PageError> {
        let document = self.find_document(request.document())?;
        let recipe = &self.setup.recipe;
        match request {
            DocumentRequest::Draw { index, repaired, fit, .. } => {
                let page = seen_page(&document, index, repaired, recipe)?;
                page.map(|page| draw_for_model(&page, fit)).transpose()
            }
            DocumentRequest::Paint { index, repaired, fit, .. } => {
                match paint_page(&document, index, repaired, fit, recipe)? {
                    Some(painted) => Ok(Some(painted)),
                    None => {
                        let page = seen_page(&document, index, repaired, recipe)?;
                        page.map(|page| draw_for_model(&page, fit)).transpose()
                    }
                }
            }
            DocumentRequest::Copy { index, .. } => copy_page(&document, index),
            DocumentRequest::Cut { index, repaired, crop, .. } => {
                cut_figure(&document, index, repaired, crop, recipe)
            }
            _ => Err(fault::Error::internal("nothing to draw").into()),
        }
    }

    fn find_document(&self, number: u64) -> fault::Result<Arc<ParsedDocument>> {
        let open = self.documents.lock().get(&number).cloned();
        open.ok_or_else(|| fault::Error::internal("no such document"))
    }

    /// Text counts before it is sent, whatever it was read from.
    fn check_text(&self, page: &PageText) -> Result<(), PageRefusal> {
        self.setup.limits.text().check_page(page).map_err(PageRefusal::from)
    }

    /// Reads a piece of a page once more; boxes are shares of the page.
    fn reread_crop(
        &self,
        document: &ParsedDocument,
        index: u32,
        repaired: bool,
        crop: PageCrop,
    ) -> Result<Vec<TextLine>, PageError> {
        let recipe = &self.setup.recipe;
        let Some(page) = seen_page(document, index, repaired, recipe)? else {
            return Ok(Vec::new());
        };
        let piece = EnlargedCrop::cut_out(&page, crop)?;
        let mut reader = self.take_reader()?;
        let read = reader.read_crop(document, &piece.raster, recipe);
        self.readers.lock().push(reader);
        let lines = piece.place_on_page(read?);
        let page = PageText::from_native(index + 1, (1.0, 1.0), 1.0, lines);
        self.check_text(&page)?;
        Ok(page.lines)
    }

    /// Takes an idle reader.
    fn take_reader(&self) -> Result<Box<dyn PageReader>, PageError> {
        let idle = self.readers.lock().pop();
        Ok(match idle {
            Some(reader) => reader,
            None => (self.make)()?,
        })
    }

    fn look_again(&self, document: &ParsedDocument, index: u32) -> Result<SecondLook, PageError> {
        let mut reader = self.take_reader()?;
        let look = reader.look_again(document, index, &self.setup.recipe);
        self.readers.lock().push(reader);
        let look = look?;
        self.check_text(&look.page)?;
        Ok(look)
    }

    fn read_page(
        &self,
        document: &ParsedDocument,
        index: u32,
    ) -> Result<PageReadResult, PageError> {
        let mut reader = self.take_reader()?;
        // A reader that panics is not used again.
        let read = reader.read_page(document, index, &self.setup.recipe);
        self.readers.lock().push(reader);
        let read = read?;
        self.check_text(&read.page)?;
        Ok(read)
    }
}

fn has_unwitnessed(page: &PageText) -> bool {
    page.lines.iter().flat_map(|line| &line.words).any(|word| word.unwitnessed)
}

fn answer_for_error(trouble: PageError) -> DocumentAnswer {
    match trouble {
        PageError::Refused(PageRefusal { reason, detail }) => {
            DocumentAnswer::Refused { reason, detail }
        }
        PageError::Failed(error) => {
            let passing = error.fault != Fault::Internal;
            DocumentAnswer::Failed { passing, context: error.context.into_owned() }
        }
    }
}

/// The facts about a document that was opened.
fn opened_answer(opened: &ParsedDocument, einvoice: Option<EinvoiceFinding>) -> DocumentAnswer {
    DocumentAnswer::Opened {
        pages: opened.page_count(),
        members: opened.list_members(),
        members_left_out: opened.leaves_members_out(),
        einvoice,
    }
}
