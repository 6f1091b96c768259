//! What a page process is sent before anything else.

use serde::{Deserialize, Serialize};

use super::STACK_BYTES;
use super::confine::ProcessPermissions;
use docmill_core::config::{
    ByteSize, ConfinementMode, CpuConfig, LimitsConfig, OcrConfig, ProcessSharing,
};
use docmill_core::model::page_work::ReadRecipe;

/// Program, libraries, heap and the process's own structures, without any document.
const BASE: u64 = 768 << 20;

/// Everything a page process needs to know: sent to it as its first frame, because it has no
/// environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessSetup {
    /// Pages that are read at the same time.
    pub threads: usize,
    /// Caps on documents and pages.
    pub limits: LimitsConfig,
    /// Resolution, languages and repairs for reading pages.
    pub recipe: ReadRecipe,
    /// Which engine reads page images, and its settings.
    pub ocr: OcrConfig,
    /// Memory for one page, see `cpu.page_memory`.
    pub page_memory: ByteSize,
    /// What the page process may still do once it is set up; `None`: whatever this process may.
    pub permissions: Option<ProcessPermissions>,
    /// A page process that is not confined reads nothing.
    pub requires_confinement: bool,
    /// Which documents may be in one page process.
    pub sharing: ProcessSharing,
}

impl ProcessSetup {
    /// From the configuration; `threads` is the number of cores to use. Where page processes are
    /// confined, nothing is permitted yet.
    pub fn new(
        cpu: &CpuConfig,
        limits: &LimitsConfig,
        ocr: &OcrConfig,
        recipe: ReadRecipe,
        threads: usize,
    ) -> Self {
        Self {
            threads: threads.max(1),
            limits: limits.clone(),
            recipe,
            ocr: ocr.clone(),
            page_memory: cpu.page_memory,
            permissions: (cpu.confine != ConfinementMode::Off).then(ProcessPermissions::default),
            requires_confinement: cpu.confine == ConfinementMode::Required,
            sharing: cpu.shared,
        }
    }

    /// With what the reader of page images needs. Cells that are not confined may do it anyway.
    #[must_use]
    pub fn permitting(mut self, permissions: ProcessPermissions) -> Self {
        self.permissions = self.permissions.map(|_| permissions);
        self
    }

    /// Bytes of address space: what every thread may take for its page, the documents that can be
    /// in the page process at the same time, and the process itself.
    pub fn address_space(&self) -> u64 {
        let threads = u64::try_from(self.threads).unwrap_or(u64::MAX);
        // A thread's stack, and the arena that the C library reserves for its heap.
        let own = u64::try_from(STACK_BYTES).unwrap_or(u64::MAX).saturating_add(128 << 20);
        let page = self.page_memory.0.saturating_add(own);
        BASE.saturating_add(self.limits.documents_in_memory.0)
            .saturating_add(threads.saturating_mul(page))
    }
}
