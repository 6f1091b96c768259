//! CPU work: threads of this process for work on our own data, and child processes for whatever
//! touches the bytes of documents.
//!
//! A child process of our own binary is a *page process* ([`ProcessPool`] holds them). It runs
//! `pages::serve`, of which nothing here knows: this module starts page processes, takes away the
//! permissions they do not need ([`confine`]), talks to them in frames over two pipes ([`wire`]),
//! watches their time, and decides what follows when one dies.
//!
//! What a page process answers is believed only as far as it can be checked (`answer_check`).
//!
//! One page process is shared by all ordinary documents (or by those of a tenant, or by none, as
//! `cpu.shared` has it), with one thread per core. When it dies, nobody can tell which document
//! killed it, so each document that was in it continues in a page process of its own: the guilty
//! one dies there once more and is refused, the others complete. Pages that were answered before
//! the death are not read again. A document that was suspect from the start never enters the shared
//! process.
//!
//! [`ProcessPool::open_document`] and [`OpenDocument::read_page`] first wait for a free core, in
//! the order of the requests over all page processes together, so that no document can occupy the
//! cores ahead of others by more than the few pages its reader requests at a time. Dropping the
//! last handle of a document ends its own page process at once; in the shared one its running pages
//! get a moment to finish, and their replies are dropped.
//!
//! Not promised: that a death is ever explained better than by the document that was alone with it.

mod answer_check;
pub mod confine;
mod document;
mod page_process;
mod picture_check;
mod pool;
mod process_exit;
mod process_pool;
mod process_program;
mod process_setup;
mod tenant_processes;
pub mod wire;

pub use document::{DocumentReadError, OpenDocument};
pub use pool::CpuPool;
pub use process_pool::ProcessPool;
pub use process_program::{COMMAND, ProcessProgram, ServeFunction};
pub use process_setup::ProcessSetup;

/// Stack of a thread that works on documents. Parsers of nested formats recurse; the memory is
/// only touched when it is used.
pub const STACK_BYTES: usize = 32 << 20;
