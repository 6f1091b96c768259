//! Which page process a document is assigned to: the shared one, or one of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::cores::CoreQueue;
use super::page_process::PageProcess;
use super::process_exit::ProcessExit;
use super::process_memory::ProcessMemory;
use super::process_program::ProcessProgram;
use super::process_setup::ProcessSetup;
use docmill_core::fault::{Error, Result};
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
    /// One permit for every page that the process reads at the same time.
    pub turns: Arc<Semaphore>,
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
        let is_worn = |served| alone || served >= worn.documents || resident >= worn.resident;
        self.process.remove_document(self.document, is_worn);
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
        Arc::new(Self {
            cores: CoreQueue::new(setup.threads),
            own: Arc::new(Semaphore::new(memory.own_processes)),
            sharing: Arc::new(Semaphore::new(memory.shared_processes)),
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

    /// Starts the shared page process, so that the first document does not wait for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn start_shared(&self) -> Result<()> {
        let mut shared = self.shared.lock().await;
        if shared.is_none() {
            *shared = Some(self.start_shared_process(None).await?);
        }
        Ok(())
    }

    pub(super) fn setup(&self) -> &ProcessSetup {
        &self.setup
    }

    pub(super) fn next_document_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A slot for a document, `alone` in its process or among others.
    ///
    /// # Errors
    /// A page process has to be started and cannot be.
    pub(super) async fn acquire_slot(&self, document: u64, alone: bool) -> Result<ProcessSlot> {
        let process = if alone {
            let room = acquire_room(&self.own).await?;
            let process = self.start_process(&self.setup.own(self.memory.own_bytes), room).await?;
            process.add_document();
            process
        } else {
            self.shared_process().await?
        };
        let resident = self.memory.shared_bytes / 2;
        let worn = RetirementLimits { documents: self.documents_per_cell, resident };
        let turns = if alone { 1 } else { self.setup.threads };
        let turns = Arc::new(Semaphore::new(turns));
        Ok(ProcessSlot { process, document, is_own: alone, turns, worn })
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
                // What is still in the previous one goes on in this one.
                if let Some(previous) = previous {
                    previous.kill(ProcessExit::Retired);
                }
                acquire_room(&self.sharing).await?
            }
        };
        self.start_process(&self.setup.shared(self.memory.shared_bytes), room).await
    }

    async fn start_process(
        &self,
        setup: &ProcessSetup,
        room: OwnedSemaphorePermit,
    ) -> Result<Arc<PageProcess>> {
        let process = PageProcess::spawn(&self.program, setup, room).await?;
        let confined = process.confined;
        let lacking = self.setup.permissions.is_some() && !(confined.files && confined.calls);
        if lacking && !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                landlock = confined.files,
                seccomp = confined.calls,
                "page processes are not fully confined: this kernel has no Landlock or no seccomp"
            );
        }
        Ok(process)
    }
}

/// Waits until one page process more may take memory.
async fn acquire_room(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let room = wait_off_clock(Arc::clone(places).acquire_owned()).await;
    room.map_err(|_| Error::internal("there are no page processes any more"))
}
