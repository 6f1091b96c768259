//! `[limits]`: caps on what one document may cost, each checked as close to the input as can be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units::ByteSize;

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
    /// CPU work on one page.
    #[serde(with = "humantime_serde")]
    pub page_time: Duration,
    /// Work on all pages of one document together; waiting for a core is not counted.
    #[serde(with = "humantime_serde")]
    pub document_time: Duration,
    /// Tokens of a prompt, estimated at four bytes each.
    pub prompt_tokens: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            document_bytes: ByteSize::from_mib(64),
            documents_in_memory: ByteSize::from_mib(512),
            pages: 500,
            page_pixels: 100_000_000,
            decompressed_bytes: ByteSize::from_mib(256),
            page_time: Duration::from_secs(120),
            document_time: Duration::from_secs(3600),
            prompt_tokens: 100_000,
        }
    }
}

impl LimitsConfig {
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
    }
}
