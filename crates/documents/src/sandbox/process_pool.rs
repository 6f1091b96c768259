//! Which page process a document is assigned to: the shared one, its tenant's, or one of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::confine::ConfinementStatus;
use super::cores::CoreQueue;
use super::page_process::PageProcess;
use super::process_exit::ProcessExit;
use super::process_memory::ProcessMemory;
use super::process_program::ProcessProgram;
use super::process_setup::ProcessSetup;
use super::tenant_processes::{TenantProcess, TenantProcesses};
use docmill_core::config::ProcessSharing;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::work_clock::wait_off_clock;

/// The page processes of this worker. Each is started when it is first needed.
pub struct ProcessPool {
    program: ProcessProgram,
    setup: ProcessSetup,
    /// A page process is replaced after it has served this many documents.
    documents_per_cell: u64,
    /// The cores, which pages of documents wait for.
    pub(super) cores: Arc<CoreQueue>,
    memory: ProcessMemory,
    /// One permit for every page process that serves a single document.
    own: Arc<Semaphore>,
    /// One permit for every page process that documents share.
    sharing: Arc<Semaphore>,
    shared: Mutex<Option<Arc<PageProcess>>>,
    tenants: TenantProcesses,
    numbers: AtomicU64,
    is_told: AtomicBool,
}

/// A document's slot in a page process. Dropping it closes the document there, and kills the
/// process if it was the document's own.
pub(super) struct ProcessSlot {
    pub process: Arc<PageProcess>,
    /// The document's number, the same in every page process.
    pub document: u64,
    /// The process serves this document alone.
    is_own: bool,
    /// One permit for every page that is read or waits for a core.
    pub turns: Arc<Semaphore>,
    /// Keeps a tenant's process alive as long as a document of the tenant is in it.
    _tenant: Option<Arc<TenantProcess>>,
    worn: RetirementLimits,
}

impl ProcessSlot {
    /// Whether the page process serves no other document.
    pub(super) fn is_alone(&self) -> bool {
        self.is_own
    }
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        let (worn, alone) = (self.worn, self.is_alone());
        let resident = self.process.resident_bytes().unwrap_or(0);
        self.process.remove_document(self.document, |served| {
            alone || served >= worn.documents || resident >= worn.resident
        });
    }
}

/// When a page process has done enough and is replaced.
#[derive(Debug, Clone, Copy)]
struct RetirementLimits {
    documents: u64,
    resident: u64,
}

impl ProcessPool {
    /// Creates the pool, without a bound on what all page processes take together; they are
    /// started later, on demand.
    pub fn new(program: ProcessProgram, setup: ProcessSetup, documents_per_cell: u64) -> Arc<Self> {
        let memory = ProcessMemory::unbounded(&setup);
        Self::within(memory, program, setup, documents_per_cell)
    }

    /// As [`ProcessPool::new`], all page processes together within `memory`.
    pub fn within(
        memory: ProcessMemory,
        program: ProcessProgram,
        setup: ProcessSetup,
        documents_per_cell: u64,
    ) -> Arc<Self> {
        let sharing = Arc::new(Semaphore::new(memory.shared_processes));
        Arc::new(Self {
            cores: CoreQueue::new(setup.threads),
            own: Arc::new(Semaphore::new(memory.own_processes)),
            tenants: TenantProcesses::new(Arc::clone(&sharing)),
            sharing,
            memory,
            program,
            setup,
            documents_per_cell,
            shared: Mutex::new(None),
            numbers: AtomicU64::new(0),
            is_told: AtomicBool::new(false),
        })
    }

    /// How many pages are read at the same time.
    pub fn thread_count(&self) -> usize {
        self.setup.threads
    }

    /// Starts a page process, so that the first document does not wait for it, and returns how far
    /// it is confined. A shared one stays; any other was started as a test only.
    ///
    /// # Errors
    /// It cannot be started; it cannot be confined and has to be.
    pub async fn start_shared(&self) -> Result<ConfinementStatus> {
        let mut shared = self.shared.lock().await;
        if let Some(running) = shared.as_ref() {
            return Ok(running.confined);
        }
        let process = match self.setup.sharing {
            ProcessSharing::All => self.start_shared_process(None).await?,
            ProcessSharing::Tenant => {
                self.start_sharing(acquire_room(&self.sharing).await?).await?
            }
            ProcessSharing::None => self.start_own_process().await?,
        };
        if self.setup.sharing == ProcessSharing::All {
            *shared = Some(Arc::clone(&process));
        }
        Ok(process.confined)
    }

    /// Documents that wait because every process is another tenant's (`cpu.shared = "tenant"`).
    pub fn waiting_tenant_documents(&self) -> usize {
        self.tenants.waiting_documents()
    }

    pub(super) fn setup(&self) -> &ProcessSetup {
        &self.setup
    }

    pub(super) fn next_document_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A slot for a document, `alone` in its process or among others, as `cpu.shared` has it.
    ///
    /// # Errors
    /// A page process has to be started and cannot be.
    pub(super) async fn acquire_slot(
        &self,
        document: u64,
        tenant: Option<&Arc<str>>,
        alone: bool,
    ) -> Result<ProcessSlot> {
        let is_own = alone || self.setup.sharing == ProcessSharing::None;
        let (process, tenant) = if is_own {
            let process = self.start_own_process().await?;
            process.add_document();
            (process, None)
        } else if self.setup.sharing == ProcessSharing::Tenant {
            let found = self.tenants.find_process(tenant, |room| self.start_sharing(room)).await?;
            (Arc::clone(&found.process), Some(found))
        } else {
            (self.shared_process().await?, None)
        };
        let resident = self.memory.shared_bytes / 2;
        let worn = RetirementLimits { documents: self.documents_per_cell, resident };
        // One more than cores: while all are its own, its next page queues for the first that
        // becomes free. If it waited for a turn instead, that core would go to a younger document.
        let turns = Arc::new(Semaphore::new(if is_own { 1 } else { self.setup.threads + 1 }));
        Ok(ProcessSlot { process, document, is_own, turns, _tenant: tenant, worn })
    }

    /// The shared page process with the document added; a new one if the current one takes no more.
    async fn shared_process(&self) -> Result<Arc<PageProcess>> {
        let mut shared = self.shared.lock().await;
        loop {
            if let Some(process) = shared.as_ref().filter(|process| process.add_document()) {
                return Ok(Arc::clone(process));
            }
            // The previous process lives on as long as it has documents, if there is memory for two.
            let previous = shared.take();
            *shared = Some(self.start_shared_process(previous).await?);
        }
    }

    async fn start_shared_process(
        &self,
        previous: Option<Arc<PageProcess>>,
    ) -> Result<Arc<PageProcess>> {
        let room = match Arc::clone(&self.sharing).try_acquire_owned() {
            Ok(room) => room,
            Err(_none_left) => {
                // Documents of the previous one continue in this one.
                if let Some(previous) = previous {
                    previous.kill(ProcessExit::Retired);
                }
                acquire_room(&self.sharing).await?
            }
        };
        self.start_sharing(room).await
    }

    /// A process that several documents share, in this room.
    async fn start_sharing(&self, room: OwnedSemaphorePermit) -> Result<Arc<PageProcess>> {
        self.start_process(&self.setup.shared(self.memory.shared_bytes), room).await
    }

    /// A process for one document, as soon as there is room for it.
    async fn start_own_process(&self) -> Result<Arc<PageProcess>> {
        let room = acquire_room(&self.own).await?;
        self.start_process(&self.setup.own(self.memory.own_bytes), room).await
    }

    async fn start_process(
        &self,
        setup: &ProcessSetup,
        room: OwnedSemaphorePermit,
    ) -> Result<Arc<PageProcess>> {
        let process = PageProcess::spawn(&self.program, setup, room).await?;
        // A thread of this process (tests only) cannot be confined.
        let missing = process.confined.missing_parts().filter(|_| process.is_child());
        metrics::set_process_confined(missing.is_none() && self.setup.permissions.is_some());
        match missing {
            Some(missing) if self.setup.requires_confinement => {
                return Err(Error::new(Fault::Misconfigured, lack_of(missing)));
            }
            Some(missing) if self.setup.permissions.is_some() => self.warn_once(missing),
            _ => {}
        }
        Ok(process)
    }

    fn warn_once(&self, missing: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                missing,
                "page processes are not fully confined: this kernel has no {missing} for them"
            );
        }
    }
}

fn lack_of(missing: &str) -> String {
    format!(
        "page processes cannot be confined, this kernel has no {missing} for them: no document is \
         read (cpu.confine is `required`; docs/explanation/confinement.md says what to do)"
    )
}

/// Waits until one page process more may take memory.
async fn acquire_room(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let room = wait_off_clock(Arc::clone(places).acquire_owned()).await;
    room.map_err(|_| Error::internal("there are no page processes any more"))
}
