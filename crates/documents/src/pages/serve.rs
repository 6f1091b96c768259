//! The inside of a cell: answers what comes over one pipe into another, until the first ends.
//!
//! Questions are worked on by as many threads as the setup says, one question each, and answered in
//! the order in which they are done. The reader of pages is handed in, because what reads pictures
//! is chosen higher up; each thread that needs one gets one of its own, kept for the next page.
//! A panic costs its question. What kills the process is the business of whoever started it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Document, Recogniser, Refusal, read_page, show_page};
use crate::cpu::confine::Confinement;
use crate::cpu::wire::{self, Answer, Ask, Ready, Reply, Request};
use crate::cpu::{STACK_BYTES, Setup};
use crate::fault::{self, Fault};
use crate::model::{PageRead, Recipe};

pub use super::Trouble;

/// Reads pages, one at a time, on one thread.
pub trait PageReader: Send {
    /// Reads page `index`, which starts at 0.
    ///
    /// # Errors
    /// The document is to blame, or something else is.
    fn read(
        &mut self,
        document: &Document,
        index: u32,
        recipe: &Recipe,
    ) -> Result<PageRead, Trouble>;
}

/// The one that there is, but for tests of what cells survive.
impl PageReader for Box<dyn Recogniser> {
    fn read(
        &mut self,
        document: &Document,
        index: u32,
        recipe: &Recipe,
    ) -> Result<PageRead, Trouble> {
        read_page(document, index, recipe, self.as_mut())
    }
}

/// Makes one more reader.
pub type MakeReader = Box<dyn Fn() -> fault::Result<Box<dyn PageReader>> + Send + Sync>;

/// Serves until `input` ends. `prepare` is given the setup before any thread is started: there the
/// process gives up what it does not need, and learns to read pages.
///
/// # Errors
/// The other side breaks the rules, or nobody takes the answers.
pub fn serve<W: Write + Send + 'static>(
    mut input: impl Read,
    mut output: W,
    prepare: impl FnOnce(&Setup) -> io::Result<(Confinement, MakeReader)>,
) -> io::Result<()> {
    let Some((setup, _)) = wire::read::<Setup>(&mut input, 0)? else { return Ok(()) };
    let (confinement, make) = prepare(&setup)?;
    wire::write(&mut output, &Ready { confinement }, &[])?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(setup.threads)
        .stack_size(STACK_BYTES)
        .thread_name(|index| format!("page-{index}"))
        .build()
        .map_err(io::Error::other)?;
    let most = setup.limits.document_bytes.0;
    let desk = Arc::new(Desk {
        setup,
        make,
        documents: Mutex::default(),
        readers: Mutex::default(),
        output: Mutex::new(output),
    });
    while let Some((ask, body)) = wire::read::<Ask>(&mut input, most)? {
        if let Request::Close { document } = ask.request {
            lock(&desk.documents).remove(&document);
            continue;
        }
        let desk = Arc::clone(&desk);
        threads.spawn_fifo(move || desk.answer(ask, body));
    }
    Ok(())
}

struct Desk<W> {
    setup: Setup,
    make: MakeReader,
    documents: Mutex<HashMap<u64, Arc<Document>>>,
    /// Those that are not at work.
    readers: Mutex<Vec<Box<dyn PageReader>>>,
    output: Mutex<W>,
}

impl<W: Write> Desk<W> {
    fn answer(&self, ask: Ask, body: Vec<u8>) {
        let worked = catch_unwind(AssertUnwindSafe(|| self.work(ask.request, body)));
        let worked = worked.unwrap_or_else(|_payload| {
            Err(fault::Error::internal("reading a page panicked").into())
        });
        let (answer, body) = worked.unwrap_or_else(|trouble| (answer_to(trouble), Vec::new()));
        let reply = Reply { id: ask.id, answer };
        // Nobody takes it any more only when the worker is gone, and then the input ends too.
        drop(wire::write(&mut *lock(&self.output), &reply, &body));
    }

    fn work(&self, request: Request, body: Vec<u8>) -> Result<(Answer, Vec<u8>), Trouble> {
        match request {
            Request::Open { document } => {
                let Setup { limits, recipe, .. } = &self.setup;
                let opened = super::open(body.into(), limits, recipe.dpi)?;
                let pages = opened.page_count();
                lock(&self.documents).insert(document, Arc::new(opened));
                Ok((Answer::Opened { pages }, Vec::new()))
            }
            Request::Read { document, index } => {
                Ok(Answer::of_page(self.read(&*self.document(document)?, index)?))
            }
            Request::Show { document, index, view } => {
                let document = self.document(document)?;
                let shown = show_page(&document, index, view, &self.setup.recipe)?;
                Ok(Answer::of_shown(shown))
            }
            Request::Look { document } => {
                Ok(Answer::of_look(self.document(document)?.einvoices()?))
            }
            Request::Close { .. } => Err(fault::Error::internal("nothing to answer").into()),
        }
    }

    fn document(&self, number: u64) -> fault::Result<Arc<Document>> {
        let open = lock(&self.documents).get(&number).cloned();
        open.ok_or_else(|| fault::Error::internal("no such document"))
    }

    fn read(&self, document: &Document, index: u32) -> Result<PageRead, Trouble> {
        let idle = lock(&self.readers).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => (self.make)()?,
        };
        // A reader that panics is not used again.
        let read = reader.read(document, index, &self.setup.recipe);
        lock(&self.readers).push(reader);
        read
    }
}

fn answer_to(trouble: Trouble) -> Answer {
    match trouble {
        Trouble::Refused(Refusal { reason, detail }) => Answer::Refused { reason, detail },
        Trouble::Failed(error) => {
            let passing = error.fault != Fault::Internal;
            Answer::Failed { passing, context: error.context.into_owned() }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
