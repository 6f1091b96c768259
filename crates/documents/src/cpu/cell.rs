//! One cell as its worker sees it: questions go in, answers come out, and in the end it dies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Setup;
use super::confine::Confinement;
use super::end::End;
use super::start::{self, Process, Program};
use super::wire::{self, Answer, Ask, Reply, Request};
use crate::fault::Result;
use crate::metrics;

/// For what a dead process still has in its pipes.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An answer and its body, or how the cell ended instead.
pub(super) type Answered = std::result::Result<(Answer, Vec<u8>), End>;

/// A running cell. Dropping it kills it.
pub(super) struct Cell {
    shared: Arc<Shared>,
    asks: mpsc::UnboundedSender<(Ask, Bytes)>,
    /// What it could give up.
    pub confined: Confinement,
}

struct Shared {
    /// None: a thread.
    pid: Option<rustix::process::Pid>,
    state: Mutex<State>,
    /// It has ended, or must end and cannot be killed.
    over: CancellationToken,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Answered>>,
    next: u64,
    /// Documents that are in it.
    documents: usize,
    /// Documents that were in it and have left.
    served: u64,
    /// Takes no further document.
    retiring: bool,
    /// Why we killed it.
    killed: Option<End>,
    end: Option<End>,
    /// Its number may be another process's.
    reaped: bool,
}

impl Cell {
    /// Starts one.
    ///
    /// # Errors
    /// As [`start::start`].
    pub(super) async fn start(program: &Program, setup: &Setup) -> Result<Arc<Self>> {
        let started = start::start(program, setup).await?;
        metrics::cell_started();
        let shared = Arc::new(Shared {
            pid: started.process.as_ref().map(|process| process.pid),
            state: Mutex::default(),
            over: CancellationToken::new(),
        });
        let (asks, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write(started.input, to_write, shared.over.clone()));
        // An encoded page image is not larger than its pixels, but for its header.
        let most = setup.limits.page_pixels.saturating_add(wire::EINVOICES);
        tokio::spawn(listen(Arc::clone(&shared), started.output, started.process, most));
        Ok(Arc::new(Self { shared, asks, confined: started.ready.confinement }))
    }

    /// A document comes in, if the cell still takes any.
    pub(super) fn enter(&self) -> bool {
        let mut state = self.shared.state();
        let open = state.end().is_none() && !state.retiring;
        state.documents += usize::from(open);
        open
    }

    /// A document leaves. `worn`: the cell is to be replaced once it is empty.
    pub(super) fn leave(&self, document: u64, worn: impl FnOnce(u64) -> bool) {
        self.tell(Request::Close { document });
        let mut state = self.shared.state();
        state.documents = state.documents.saturating_sub(1);
        state.served += 1;
        if !state.retiring && state.end().is_none() && worn(state.served) {
            state.retiring = true;
            metrics::cell_replaced();
        }
        let empty = state.retiring && state.documents == 0;
        drop(state);
        if empty {
            self.kill(End::Retired);
        }
    }

    /// Whether no document is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.shared.state().documents == 0
    }

    /// Asks for something; the receiver gets the answer, or how the cell ended instead.
    pub(super) fn ask(&self, request: Request, body: Bytes) -> oneshot::Receiver<Answered> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.shared.state();
        if let Some(end) = state.end() {
            drop(answer.send(Err(end)));
            return receiver;
        }
        let id = state.next;
        state.next += 1;
        state.waiting.insert(id, answer);
        // If nobody writes any more the cell has ended, and whoever found that out answers.
        drop(self.asks.send((Ask { id, request }, body)));
        receiver
    }

    fn tell(&self, request: Request) {
        // The number of an answer that never comes.
        drop(self.asks.send((Ask { id: u64::MAX, request }, Bytes::new())));
    }

    /// Ends it, unless it has ended.
    pub(super) fn kill(&self, why: End) {
        self.shared.kill(why);
    }

    /// How it ended or is about to.
    pub(super) fn end(&self) -> Option<End> {
        self.shared.state().end()
    }

    /// Resident memory in bytes, where the system tells (Linux).
    pub(super) fn resident(&self) -> Option<u64> {
        let pid = self.shared.pid?;
        let status = format!("/proc/{}/status", pid.as_raw_nonzero());
        let status = std::fs::read_to_string(status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes << 10)
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.kill(End::Unwanted);
    }
}

impl State {
    fn end(&self) -> Option<End> {
        self.end.or(self.killed)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kill(&self, why: End) {
        let mut state = self.state();
        if state.end().is_none() {
            state.killed = Some(why);
        }
        match self.pid {
            Some(pid) if !state.reaped => {
                let _gone_already = kill_process_group(pid, Signal::KILL);
            }
            Some(_) => {}
            None => self.over.cancel(),
        }
    }

    /// Passes an answer on; false if nobody asked.
    fn answered(&self, reply: Reply, body: Vec<u8>) -> bool {
        let asked = self.state().waiting.remove(&reply.id);
        let known = asked.is_some();
        if let Some(asked) = asked {
            // Who asked may have gone.
            drop(asked.send(Ok((reply.answer, body))));
        }
        known
    }

    /// The cell has ended: everybody who waits learns how.
    fn ended(&self, found: End) -> (End, usize) {
        let mut state = self.state();
        let end = state.killed.unwrap_or(found);
        state.end = Some(end);
        let waiting = std::mem::take(&mut state.waiting);
        let documents = state.documents;
        drop(state);
        self.over.cancel();
        for asked in waiting.into_values() {
            drop(asked.send(Err(end)));
        }
        (end, documents)
    }
}

/// Writes questions until the cell has ended.
async fn write(
    mut to: Box<dyn AsyncWrite + Send + Unpin>,
    mut asks: mpsc::UnboundedReceiver<(Ask, Bytes)>,
    over: CancellationToken,
) {
    let writing = async {
        while let Some((ask, body)) = asks.recv().await {
            if wire::send(&mut to, &ask, &body).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = over.cancelled() => {}
    }
}

/// Passes answers on until the cell ends, and finds out why it did.
async fn listen(
    shared: Arc<Shared>,
    mut from: Box<dyn AsyncRead + Send + Unpin>,
    process: Option<Process>,
    most: u64,
) {
    let listening = async {
        loop {
            match wire::receive::<Reply>(&mut from, most).await {
                Ok(Some((reply, body))) => {
                    if !shared.answered(reply, body) {
                        return true;
                    }
                }
                Ok(None) => return false,
                Err(error) => return error.kind() == std::io::ErrorKind::InvalidData,
            }
        }
    };
    let nonsense = tokio::select! {
        nonsense = listening => nonsense,
        () = shared.over.cancelled() => false,
    };
    let Some(Process { mut child, pid, starved }) = process else {
        shared.ended(End::Exit(0));
        return;
    };
    {
        // What it ran dies with it. From here on the number may become another's.
        let mut state = shared.state();
        let _gone_already = kill_process_group(pid, Signal::KILL);
        state.reaped = true;
    }
    let status = child.wait().await.ok();
    let starved = tokio::time::timeout(LAST_WORDS, starved).await;
    let starved = matches!(starved, Ok(Ok(true)));
    let found = if nonsense { End::Nonsense } else { End::of(status, starved) };
    let (end, documents) = shared.ended(found);
    report(pid.as_raw_nonzero().get(), end, documents);
}

/// One line for each death.
fn report(pid: i32, end: End, documents: usize) {
    let reason = end.code();
    if end.is_orderly() {
        tracing::debug!(pid, reason, "page process {pid} is no longer needed");
        return;
    }
    metrics::cell_died(reason);
    tracing::warn!(
        pid,
        reason,
        documents,
        end = ?end,
        "page process {pid} died ({reason}) with {documents} documents in it"
    );
}
