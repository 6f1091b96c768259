//! CPU work: threads of this process for work on our own data, child processes for work on the
//! bytes of documents.
//!
//! A child process of our own binary is a *page process* ([`ProcessPool`] holds them). It runs
//! `reading::serve`, on which nothing here depends. This module starts page processes and removes
//! the permissions that they do not need ([`confine`]). It exchanges frames with them over two
//! pipes ([`wire`]), enforces their time limits, and decides what follows when one dies.
//!
//! Every answer of a page process is validated (`answer_check`).
//!
//! One page process is shared by all ordinary documents (or by those of a tenant, or by none, as
//! `cpu.shared` has it), with one thread per core. Which document killed it cannot be determined,
//! so each document that was in it continues in a page process of its own. The guilty one dies
//! there once more and is refused, the others complete. Pages that were answered before the death
//! are not read again. A document that was suspect from the start never enters the shared process.
//!
//! [`ProcessPool::open_document`] and [`OpenDocument::read_page`] first wait for a free core, over
//! all page processes together: long documents in the order in which they were opened, short ones
//! beside them (`cores`). Dropping the last handle of a document ends its own page process at once.
//! In the shared one its running pages get a moment to finish, and their replies are dropped.
//!
//! Not promised: that a death is ever explained better than by the document that was alone with it.

mod answer_check;
pub mod confine;
mod cores;
mod document;
mod page_process;
mod picture_check;
mod pool;
mod process_exit;
pub mod process_memory;
mod process_pool;
mod process_program;
mod process_setup;
mod tenant_processes;
pub mod wire;

pub use answer_check::believes_answer;
pub use document::{DocumentOpening, DocumentReadError, OpenDocument};
pub(crate) use pool::PageThreads;
pub use pool::{CpuPool, STACK_BYTES};
pub use process_memory::ProcessMemory;
pub use process_pool::ProcessPool;
pub use process_program::{COMMAND, ProcessProgram, ServeFunction};
pub use process_setup::ProcessSetup;
