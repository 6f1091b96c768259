//! Where documents arrive by themselves, behind one small trait: mailboxes and folders.
//!
//! An [`InboxSource`] lists items without a mark, writes the bytes of one to a file, and marks it. The
//! mark is the only memory: an item that was read and not marked is listed again, after any crash.
//! So the caller hands in first, in a way that may be repeated, and marks then. Not promised: an
//! order of items, and that an item is listed once.
//!
//! Items are named by opaque labels without content. Servers are not trusted: every length is bounded
//! before memory is taken, and every command has a timeout.

pub mod folder;
pub mod graph;
pub mod imap;

use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Error, Fault, Result};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// Most items of one list; more follow once these are marked.
pub const MAX_LISTED_ITEMS: usize = 500;

/// A mail or a file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedItem {
    /// The source's name of it, for marks and log lines; never its content or its file's name.
    pub label: String,
    /// Its size in bytes as the source states it, if it does.
    pub size: Option<u64>,
    /// A name for its document.
    pub file_name: String,
    /// A name that is the same for the same item for ever, where its bytes may differ from one
    /// reading to the next; `None`: the bytes themselves are.
    pub identity: Option<String>,
}

/// The result of reading an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemReading {
    /// All of its bytes are in the file.
    Whole,
    /// It has more bytes than are allowed.
    TooLarge,
    /// It was moved or is still being written: it is listed again or gone.
    Unsettled,
}

/// The mark of an item that was dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemMark {
    /// It was handed in.
    Done,
    /// It can never be handed in.
    Failed,
}

/// A mailbox or a folder.
///
/// Every call fails with [`Fault::Rejected`] if the item itself is at fault; after any other fault the
/// source connects anew.
#[async_trait]
pub trait InboxSource: Send {
    /// The source for people, without secrets.
    fn describe(&self) -> String;

    /// Connects, if it is not connected, and checks that marks will be kept.
    ///
    /// # Errors
    /// The source does not answer, refuses the login, or keeps no such marks.
    async fn open(&mut self) -> Result<()>;

    /// The items without a mark, at most [`MAX_LISTED_ITEMS`].
    ///
    /// # Errors
    /// As [`InboxSource::open`].
    async fn list_new(&mut self) -> Result<Vec<ArrivedItem>>;

    /// Writes the bytes of an item to a file, at most `max_bytes`.
    ///
    /// # Errors
    /// The source does not answer, or not with these bytes; the file cannot be written.
    async fn read_item(
        &mut self,
        item: &ArrivedItem,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading>;

    /// Marks an item. Repeating it changes nothing.
    ///
    /// # Errors
    /// The mark is not set.
    async fn mark_item(&mut self, item: &ArrivedItem, mark: ItemMark) -> Result<()>;

    /// Waits until something may have arrived, at most so long.
    ///
    /// # Errors
    /// The source does not answer.
    async fn wait_for_items(&mut self, longest: Duration) -> Result<()>;
}

/// Appends bytes to the file of an item.
async fn write_piece(file: &mut File, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).await.map_err(|error| {
        Error::new(Fault::Unavailable, "a temporary file cannot be written").with_source(error)
    })
}
