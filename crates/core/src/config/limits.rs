//! `[limits]`: caps on what one document may cost, each checked as close to the input as can be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::ByteSize;
use crate::model::TextLimits;

/// More words do not fit into what one page process says of one page.
const MAX_PAGE_WORDS: u32 = 25_000;
/// A larger transcript could be written but not read again.
const MAX_TEXT_BYTES: ByteSize = ByteSize::from_mib(128);

/// Caps; over one of them the document fails `too_large` or `timeout`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Bytes of a document, checked before its body is read.
    pub document_bytes: ByteSize,
    /// Bytes of all documents that this process holds at the same time.
    pub documents_in_memory: ByteSize,
    /// Pages of a document.
    pub pages: u32,
    /// Pixels of one page image, checked before it is decoded.
    pub page_pixels: u64,
    /// Bytes that compressed parts of one document may expand to.
    pub decompressed_bytes: ByteSize,
    /// Words of one page, checked where it is read and where it is received.
    pub page_words: u32,
    /// Bytes that the text of one document may take in memory: its letters, about 80 for each word
    /// and 32 for each line.
    pub text_bytes: ByteSize,
    /// CPU work on one page, and on the text of one document at a time.
    #[serde(with = "humantime_serde")]
    pub page_time: Duration,
    /// Work on all pages of one document together; waiting for a core is not counted.
    #[serde(with = "humantime_serde")]
    pub document_time: Duration,
    /// Bytes of an archive of documents (olmOCR workspaces), as it lies and of all that is in it
    /// together; it is in memory while its documents are read.
    pub archive_bytes: ByteSize,
    /// Entries of an archive of any kind.
    pub archive_entries: u32,
    /// Documents found in one container: attachments of a mail, files of an archive.
    pub container_members: u32,
    /// Bytes of all documents found in one that was handed in, at every depth.
    pub container_bytes: ByteSize,
    /// How deep documents may lie in others; 0: none is looked for.
    pub container_depth: u32,
    /// Documents found in one that was handed in, at every depth.
    pub family_documents: u32,
    /// Tokens of a prompt, estimated at four bytes each.
    pub prompt_tokens: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            document_bytes: ByteSize::from_mib(64),
            documents_in_memory: ByteSize::from_mib(512),
            pages: 1000,
            page_pixels: 100_000_000,
            decompressed_bytes: ByteSize::from_mib(256),
            page_words: 20_000,
            text_bytes: ByteSize::from_mib(64),
            page_time: Duration::from_secs(120),
            document_time: Duration::from_secs(3600),
            archive_bytes: ByteSize::from_mib(256),
            archive_entries: 10_000,
            container_members: 200,
            container_bytes: ByteSize::from_mib(512),
            container_depth: 3,
            family_documents: 1000,
            prompt_tokens: 100_000,
        }
    }
}

impl LimitsConfig {
    /// Those on text.
    pub fn text(&self) -> TextLimits {
        TextLimits { page_words: u64::from(self.page_words), document_bytes: self.text_bytes.0 }
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.document_bytes > self.documents_in_memory {
            problems.push(
                "limits.document_bytes must not exceed limits.documents_in_memory: the largest \
                 allowed document would wait for ever"
                    .to_owned(),
            );
        }
        if self.document_bytes.0 == 0 || self.pages == 0 || self.page_pixels < 1_000_000 {
            problems.push(
                "limits: document_bytes and pages must be above 0, page_pixels at least 1000000"
                    .to_owned(),
            );
        }
        if self.archive_bytes.0 == 0 || self.archive_entries == 0 {
            problems.push("limits: archive_bytes and archive_entries must be above 0".to_owned());
        }
        if self.page_words == 0 || self.page_words > MAX_PAGE_WORDS {
            problems.push(format!(
                "limits.page_words must be between 1 and {MAX_PAGE_WORDS}: a page has to fit into \
                 one message of the process that reads it"
            ));
        }
        if self.text_bytes.0 == 0 || self.text_bytes > MAX_TEXT_BYTES {
            problems.push(format!(
                "limits.text_bytes must be above 0 and at most {MAX_TEXT_BYTES}: a larger transcript \
                 could not be read again"
            ));
        }
    }
}
