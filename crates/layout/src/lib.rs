//! The structure of a page: blocks in reading order made from the lines and words of a transcript,
//! and Markdown, plain text and pieces for retrieval made from these. No bytes of a document are
//! opened here.

pub mod layout;
