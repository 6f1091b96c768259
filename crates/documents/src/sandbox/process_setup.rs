//! The first frame that a page process is sent.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::confine::ProcessPermissions;
use super::pool::STACK_BYTES;
use docmill_core::config::{
    ByteSize, ConfinementMode, CpuConfig, LimitsConfig, OcrConfig, ProcessSharing,
};
use docmill_core::model::page_work::ReadRecipe;

/// Program, libraries, heap and the process's own structures, without any document.
const PROCESS_BASE_BYTES: u64 = 768 << 20;

/// All settings of a page process: sent as its first frame, because it has no environment.
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
    /// Bytes of address space that the process may have.
    pub address_space: u64,
    /// Permissions that remain once the page process is set up; `None`: all of this process's.
    pub permissions: Option<ProcessPermissions>,
    /// A page process that is not confined reads nothing.
    pub requires_confinement: bool,
    /// Which documents may be in one page process.
    pub sharing: ProcessSharing,
    /// Official rules of e-invoices, a file or a folder; empty: none.
    pub einvoice_rules: PathBuf,
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
        let setup = Self {
            threads: threads.max(1),
            limits: limits.clone(),
            recipe,
            ocr: ocr.clone(),
            page_memory: cpu.page_memory,
            address_space: 0,
            permissions: (cpu.confine != ConfinementMode::Off).then(ProcessPermissions::default),
            requires_confinement: cpu.confine == ConfinementMode::Required,
            sharing: cpu.shared,
            einvoice_rules: PathBuf::new(),
        };
        Self { address_space: setup.shared_bytes(), ..setup }
    }

    /// With the permissions that the reader of page images needs. Unconfined processes have them
    /// anyway.
    #[must_use]
    pub fn permitting(mut self, permissions: ProcessPermissions) -> Self {
        self.permissions = self.permissions.map(|_| permissions);
        self
    }

    /// With rules that e-invoices are checked by.
    #[must_use]
    pub fn with_einvoice_rules(self, rules: &Path) -> Self {
        Self { einvoice_rules: rules.to_owned(), ..self }
    }

    /// For the process that documents share, with this limit.
    #[must_use]
    pub(super) fn shared(&self, address_space: u64) -> Self {
        Self { address_space, ..self.clone() }
    }

    /// For a process of one document, which reads a page at a time, with this limit.
    #[must_use]
    pub(super) fn own(&self, address_space: u64) -> Self {
        Self { threads: 1, address_space, ..self.clone() }
    }

    /// Bytes of address space that a shared process takes at most: the page of every thread, the
    /// documents in it at the same time, and the process itself.
    pub fn shared_bytes(&self) -> u64 {
        let threads = u64::try_from(self.threads).unwrap_or(u64::MAX);
        PROCESS_BASE_BYTES
            .saturating_add(self.limits.documents_in_memory.0)
            .saturating_add(threads.saturating_mul(self.thread_bytes()))
    }

    /// Bytes of address space that a process of one document takes at most: one page, the document,
    /// and the process itself.
    pub fn own_bytes(&self) -> u64 {
        PROCESS_BASE_BYTES
            .saturating_add(self.limits.document_bytes.0)
            .saturating_add(self.thread_bytes())
    }

    /// A page, a thread's stack, and the arena that the C library reserves for its heap.
    fn thread_bytes(&self) -> u64 {
        let own = u64::try_from(STACK_BYTES).unwrap_or(u64::MAX).saturating_add(128 << 20);
        self.page_memory.0.saturating_add(own)
    }
}
