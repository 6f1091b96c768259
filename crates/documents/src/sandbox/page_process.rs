//! The worker's handle of one page process: requests go in, replies come out, and its end is
//! recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::confine::ConfinementStatus;
use super::process_exit::{ExitVerdict, ProcessExit};
use super::process_program::{self, ChildProcess, ProcessProgram};
use super::process_setup::ProcessSetup;
use super::wire::{self, DocumentAnswer, DocumentRequest, ReplyFrame, RequestFrame};
use docmill_core::fault::Result;
use docmill_core::metrics;

/// How long the standard error of a dead process is read.
const STDERR_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the answer pipe of a dead process is read: its answers are there already, and the end
/// is missing only if another process holds the pipe open.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(500);
/// The reply about a page of text is read in one go; a picture passes it by.
const REPLY_BUFFER: usize = 64 << 10;
/// More than any header of an encoded page image.
const MAX_IMAGE_HEADER_BYTES: u64 = 1 << 20;

/// A reply and its body, or how the process ended instead.
pub(super) type ProcessAnswer = std::result::Result<(DocumentAnswer, Vec<u8>), ProcessExit>;

/// A running page process. Dropping it kills the process.
pub(super) struct PageProcess {
    shared: Arc<PageProcessShared>,
    asks: mpsc::UnboundedSender<(RequestFrame, Bytes)>,
    /// Which confinements the process could apply to itself.
    pub confined: ConfinementStatus,
}

struct PageProcessShared {
    /// The child's process id; `None` if a thread serves instead of a process.
    pid: Option<rustix::process::Pid>,
    state: Mutex<PageProcessState>,
    /// Cancelled once the process has ended, or has to end and cannot be killed.
    over: CancellationToken,
}

/// A request that is sent and not answered.
struct SentRequest {
    document: u64,
    answer: oneshot::Sender<ProcessAnswer>,
}

#[derive(Default)]
struct PageProcessState {
    waiting: HashMap<u64, SentRequest>,
    /// Documents that were worked on when the process ended or was killed. Any of them may have
    /// ended it, none of those that were only open.
    suspects: HashSet<u64>,
    next: u64,
    /// Documents that are open in it now.
    documents: usize,
    /// Documents that were in it and have been closed.
    served: u64,
    /// It accepts no further document and ends once it is empty.
    retiring: bool,
    /// Why we killed it, if we did.
    killed: Option<ProcessExit>,
    end: Option<ProcessExit>,
    /// The process was waited for: its id may belong to another process now.
    reaped: bool,
}

impl PageProcess {
    /// Starts a page process and the tasks that serve its pipes. `room` is given back once the
    /// process is gone, and its memory with it.
    ///
    /// # Errors
    /// As [`process_program::start_process`].
    pub(super) async fn spawn(
        program: &ProcessProgram,
        setup: &ProcessSetup,
        room: OwnedSemaphorePermit,
    ) -> Result<Arc<Self>> {
        let started = process_program::start_process(program, setup).await?;
        metrics::process_started();
        let shared = Arc::new(PageProcessShared {
            pid: started.process.as_ref().map(|process| process.pid),
            state: Mutex::default(),
            over: CancellationToken::new(),
        });
        let (asks, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write_requests(started.input, to_write, shared.over.clone()));
        // An encoded page image is not larger than its pixels, but for its header.
        let most = setup.limits.page_pixels.saturating_add(MAX_IMAGE_HEADER_BYTES);
        let reading = read_replies(Arc::clone(&shared), started.output, started.process, most);
        tokio::spawn(async move {
            reading.await;
            drop(room);
        });
        Ok(Arc::new(Self { shared, asks, confined: started.ready.confinement }))
    }

    /// Counts a document in; `false` if the process accepts no more.
    pub(super) fn add_document(&self) -> bool {
        let mut state = self.shared.lock_state();
        let open = state.exit_reason().is_none() && !state.retiring;
        state.documents += usize::from(open);
        open
    }

    /// Closes a document. `worn`: whether the process is to be replaced once it is empty.
    pub(super) fn remove_document(&self, document: u64, worn: impl FnOnce(u64) -> bool) {
        self.send_notice(DocumentRequest::Close { document });
        let mut state = self.shared.lock_state();
        state.documents = state.documents.saturating_sub(1);
        state.served += 1;
        if !state.retiring && state.exit_reason().is_none() && worn(state.served) {
            state.retiring = true;
            metrics::process_replaced();
        }
        let empty = state.retiring && state.documents == 0;
        drop(state);
        if empty {
            self.kill(ProcessExit::Retired);
        }
    }

    /// Whether it is a process of its own; for tests it may be a thread of this one.
    pub(super) fn is_child(&self) -> bool {
        self.shared.pid.is_some()
    }

    /// Whether no document is open in it.
    pub(super) fn is_empty(&self) -> bool {
        self.shared.lock_state().documents == 0
    }

    /// Sends a request; the receiver gets the reply, or how the process ended instead.
    pub(super) fn send_request(
        &self,
        request: DocumentRequest,
        body: Bytes,
    ) -> oneshot::Receiver<ProcessAnswer> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.shared.lock_state();
        if let Some(end) = state.exit_reason() {
            drop(answer.send(Err(end)));
            return receiver;
        }
        let id = state.next;
        state.next += 1;
        state.waiting.insert(id, SentRequest { document: request.document(), answer });
        // Without the writing task the process has ended, and `mark_ended` answers.
        drop(self.asks.send((RequestFrame { id, request }, body)));
        receiver
    }

    fn send_notice(&self, request: DocumentRequest) {
        // Notices get no reply, so this id is never looked up.
        drop(self.asks.send((RequestFrame { id: u64::MAX, request }, Bytes::new())));
    }

    /// Kills the process, unless it has ended already.
    pub(super) fn kill(&self, why: ProcessExit) {
        self.shared.kill(why);
    }

    /// Kills the process for an answer about this document that makes no sense.
    pub(super) fn kill_for_nonsense(&self, document: u64) {
        self.shared.lock_state().suspects.insert(document);
        self.shared.kill(ProcessExit::Nonsense);
    }

    /// Verdict of the process's end for a document that was in it, `alone` or with others.
    pub(super) fn verdict_for(&self, document: u64, alone: bool) -> Option<ExitVerdict> {
        let state = self.shared.lock_state();
        // An end without running work was caused by earlier work of any document.
        let is_suspect = state.suspects.is_empty() || state.suspects.contains(&document);
        let verdict = state.exit_reason()?.verdict_for(document, alone);
        let is_cleared = verdict == ExitVerdict::Suspect && !is_suspect;
        Some(if is_cleared { ExitVerdict::Again } else { verdict })
    }

    /// Why the process ended or is about to end; `None` while it runs.
    pub(super) fn exit_reason(&self) -> Option<ProcessExit> {
        self.shared.lock_state().exit_reason()
    }

    /// CPU time of the process and its children; `None` where the system does not report it (only
    /// Linux does).
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        let pid = self.shared.pid?;
        let line = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The second column is the name in brackets; columns 14 to 17 are CPU times.
        let (_name, columns) = line.rsplit_once(") ")?;
        let times = columns.split(' ').skip(11).take(4);
        let ticks: u64 = times.map(|time| time.parse::<u64>().unwrap_or_default()).sum();
        let tick = Duration::from_secs(1).div_f64(rustix::param::clock_ticks_per_second() as f64);
        Some(tick.mul_f64(ticks as f64))
    }

    /// Resident memory in bytes, where the system reports it (Linux). Read after every document, so
    /// from the short `statm`: `status` has sixty lines.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let pid = self.shared.pid?;
        let counts = format!("/proc/{}/statm", pid.as_raw_nonzero());
        let counts = std::fs::read_to_string(counts).ok()?;
        let pages: u64 = counts.split(' ').nth(1)?.parse().ok()?;
        pages.checked_mul(rustix::param::page_size() as u64)
    }
}

impl Drop for PageProcess {
    fn drop(&mut self) {
        self.kill(ProcessExit::Unwanted);
    }
}

impl PageProcessState {
    fn exit_reason(&self) -> Option<ProcessExit> {
        self.end.or(self.killed)
    }

    fn note_suspects(&mut self) {
        self.suspects.extend(self.waiting.values().map(|sent| sent.document));
    }
}

impl PageProcessShared {
    fn lock_state(&self) -> MutexGuard<'_, PageProcessState> {
        self.state.lock()
    }

    fn kill(&self, why: ProcessExit) {
        let mut state = self.lock_state();
        if state.exit_reason().is_none() {
            state.note_suspects();
            state.killed = Some(why);
        }
        // Signalled under the lock, so that `reaped` cannot change between the check and the kill.
        match self.pid {
            Some(pid) if !state.reaped => {
                let _gone_already = kill_process_group(pid, Signal::KILL);
            }
            Some(_) => {}
            None => self.over.cancel(),
        }
    }

    /// Passes a reply to its requester; `false` if no request has this id.
    fn deliver_reply(&self, reply: ReplyFrame, body: Vec<u8>) -> bool {
        let asked = self.lock_state().waiting.remove(&reply.id);
        let known = asked.is_some();
        if let Some(asked) = asked {
            // The requester may have stopped waiting.
            drop(asked.answer.send(Ok((reply.answer, body))));
        }
        known
    }

    /// Records the end of the process and answers all open requests with it.
    fn mark_ended(&self, found: ProcessExit) -> (ProcessExit, usize) {
        let mut state = self.lock_state();
        let end = state.killed.unwrap_or(found);
        if state.exit_reason().is_none() {
            state.note_suspects();
        }
        state.end = Some(end);
        let waiting = std::mem::take(&mut state.waiting);
        let documents = state.documents;
        drop(state);
        self.over.cancel();
        for asked in waiting.into_values() {
            drop(asked.answer.send(Err(end)));
        }
        (end, documents)
    }
}

/// Writes requests until the page process has ended.
async fn write_requests(
    mut to: Box<dyn AsyncWrite + Send + Unpin>,
    mut asks: mpsc::UnboundedReceiver<(RequestFrame, Bytes)>,
    over: CancellationToken,
) {
    let writing = async {
        while let Some((ask, body)) = asks.recv().await {
            if wire::send_frame(&mut to, &ask, &body).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = over.cancelled() => {}
    }
}

/// Passes replies on until the page process ends, and finds out why. The end of the process counts,
/// not that of its pipe: a process that it left behind may hold the pipe open.
async fn read_replies(
    shared: Arc<PageProcessShared>,
    from: Box<dyn AsyncRead + Send + Unpin>,
    mut process: Option<ChildProcess>,
    most: u64,
) {
    let gone = async {
        match process.as_mut().map(|process| &mut process.gone) {
            // The sender is dropped with the watching thread.
            Some(gone) => {
                let _closed = gone.await;
            }
            None => std::future::pending().await,
        }
    };
    let mut from = BufReader::with_capacity(REPLY_BUFFER, from);
    let listening = async {
        loop {
            match wire::receive_frame::<ReplyFrame>(&mut from, most).await {
                Ok(Some((reply, body))) => {
                    if !shared.deliver_reply(reply, body) {
                        return true;
                    }
                }
                Ok(None) => return false,
                Err(error) => return error.kind() == std::io::ErrorKind::InvalidData,
            }
        }
    };
    tokio::pin!(listening);
    let nonsense = tokio::select! {
        nonsense = &mut listening => nonsense,
        () = shared.over.cancelled() => false,
        () = gone => tokio::time::timeout(LAST_ANSWERS_TIMEOUT, listening).await.unwrap_or(false),
    };
    let Some(ChildProcess { mut group, mut child, pid, mut starved, .. }) = process else {
        let found = if nonsense { ProcessExit::Nonsense } else { ProcessExit::Exit(0) };
        shared.mark_ended(found);
        return;
    };
    let is_ours = {
        // Programs that it ran die with it. The lock is held over kill and flag: once the child is
        // waited for, its id may belong to another process and must not be signalled.
        let mut state = shared.lock_state();
        group.kill_group();
        state.reaped = true;
        state.killed.is_some()
    };
    let status = child.wait().await.ok();
    // The cause is known if we killed it: standard error is not waited for.
    let words = if is_ours { Duration::ZERO } else { STDERR_TIMEOUT };
    let heard = tokio::time::timeout(words, &mut starved).await;
    starved.abort();
    let starved = matches!(heard, Ok(Ok(true)));
    let found =
        if nonsense { ProcessExit::Nonsense } else { ProcessExit::from_status(status, starved) };
    let (end, documents) = shared.mark_ended(found);
    log_exit(pid.as_raw_nonzero().get(), end, documents);
}

/// Writes one log line for each process that ended.
fn log_exit(pid: i32, end: ProcessExit, documents: usize) {
    let reason = end.code();
    if end.is_orderly() {
        tracing::debug!(pid, reason, "page process {pid} is no longer needed");
        return;
    }
    metrics::process_died(reason);
    tracing::warn!(
        pid,
        reason,
        documents,
        end = ?end,
        "page process {pid} died ({reason}) with {documents} documents in it"
    );
}
