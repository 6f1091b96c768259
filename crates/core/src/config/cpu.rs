//! `[cpu]`: the child processes that read documents.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::LimitsConfig;
use super::units::ByteSize;

/// Fixed costs of reading a page, whatever its size: fonts, tables, a model of the OCR.
const PAGE_BASE: u64 = 256 << 20;
/// Bytes per pixel while a page is decoded, made grey and repaired: at most 8 in colour, and four
/// grey copies.
const PIXEL_BYTES: u64 = 12;

/// How documents are kept away from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuConfig {
    /// Memory that reading one page may take; a child process may take this for each of its
    /// threads, besides the documents themselves.
    pub page_memory: ByteSize,
    /// Memory that all child processes may take together; 0: what the container or the machine
    /// leaves after the worker itself.
    pub memory: ByteSize,
    /// A child process is replaced after so many documents, so that what libraries leak does not
    /// add up.
    pub documents_per_process: u64,
    /// Whether child processes give up files, network and system calls that they do not need.
    pub confine: bool,
    /// The program that child processes run; empty: this one.
    pub program: PathBuf,
}

impl Default for CpuConfig {
    fn default() -> Self {
        Self {
            page_memory: ByteSize::from_mib(1536),
            memory: ByteSize::from_mib(0),
            documents_per_process: 1000,
            confine: true,
            program: PathBuf::new(),
        }
    }
}

impl CpuConfig {
    pub(super) fn collect_problems(&self, limits: &LimitsConfig, problems: &mut Vec<String>) {
        let least = limits.page_pixels.saturating_mul(PIXEL_BYTES).saturating_add(PAGE_BASE);
        if self.page_memory.0 < least {
            problems.push(format!(
                "cpu.page_memory ({}) must be at least 256MiB and 12 bytes for each of \
                 limits.page_pixels, here {}MiB: the largest allowed page could not be read",
                self.page_memory,
                least.div_ceil(1 << 20),
            ));
        }
        if self.documents_per_process == 0 {
            problems.push("cpu.documents_per_process must be above 0".to_owned());
        }
    }
}
