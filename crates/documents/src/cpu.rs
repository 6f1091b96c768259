//! CPU work: threads of this process for work on our own data, and child processes for whatever
//! touches the bytes of documents.
//!
//! A child process of our own binary is a *cell*. It runs `pages::serve`, which nobody here knows:
//! this module starts cells, takes away what they do not need ([`confine`]), talks to them in
//! frames over two pipes ([`wire`]), watches their time, and decides what follows when one dies.
//!
//! One cell is shared by all ordinary documents, with one thread per core. When it dies, nobody can
//! tell which document killed it, so each of those that were in it goes on in a cell of its own:
//! the guilty one dies there once more and is refused, the others complete. Pages that were
//! answered before the death are not read again. A document that was under suspicion from the
//! start never enters the shared cell.
//!
//! [`ProcessPool::open_document`] and [`OpenDocument::read_page`] wait for a free core first, in the order of asking,
//! over all cells together, so that no document can fill the cores ahead of others by more than the
//! few pages its reader asks for at a time. Dropping the last handle of a document ends its own
//! cell at once; in the shared one its running pages are given a moment, and their answers are
//! dropped.
//!
//! Not promised: that a death is ever explained better than by the document that was alone with it.

mod cell;
pub mod confine;
mod document;
mod end;
mod place;
mod pool;
mod setup;
mod start;
pub mod wire;

pub use document::{DocumentReadError, OpenDocument};
pub use place::ProcessPool;
pub use pool::CpuPool;
pub use setup::ProcessSetup;
pub use start::{COMMAND, ProcessProgram, ServeFunction};

/// Stack of a thread that works on documents. Parsers of nested formats recurse; the memory is
/// only touched when it is used.
pub const STACK_BYTES: usize = 32 << 20;
