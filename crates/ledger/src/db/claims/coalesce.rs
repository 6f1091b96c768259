//! Ends that arrive while others are being written go together in one statement.
//!
//! A lone end is written at once. Under load a statement of many rows costs Postgres a fraction
//! of what as many statements cost (measured: 5 times less per row), and the ledger's port stays
//! one end per call. The write runs in a task of its own: a caller that is cancelled takes nobody
//! else's end with it; its own is not begun any more.
//!
//! One end that cannot be written holds up no other: a row that somebody has locked is skipped, and
//! if Postgres refuses a statement (a value, or the document's row is locked), each of its ends is
//! written by itself. What failed then stays by itself when it is tried again.
//! Not promised: order between ends.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, oneshot};

use super::finish::{self, ResultRow};
use crate::db::Db;
use crate::ledger::WriteResult;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::ClaimToken;

/// Statements that run at the same time.
const SIDE_BY_SIDE: usize = 2;
/// Ends in one statement; also bounds what is sent to Postgres at a time.
const TOGETHER: usize = 64;
/// Ends that are written by themselves at the same time: some that wait leave connections to others.
const ALONE: usize = 4;

/// Collects ends and writes them.
#[derive(Debug, Clone)]
pub(super) struct ResultBatcher {
    db: Db,
    state: Arc<Mutex<BatcherState>>,
    alone: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct BatcherState {
    waiting: Vec<PendingResult>,
    running: usize,
    /// Claims whose end could not be written: it goes by itself the next time.
    apart: HashSet<ClaimToken>,
}

#[derive(Debug)]
struct PendingResult {
    end: ResultRow,
    answer: oneshot::Sender<Result<WriteResult>>,
}

/// One of the tasks that write. A panic in it fails what it had taken, and ends nobody's waiting.
struct WriterTask(ResultBatcher);

impl Drop for WriterTask {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut state = self.0.lock_state();
        if state.waiting.is_empty() {
            state.running -= 1;
        } else {
            drop(state);
            tokio::spawn(self.0.clone().write_all());
        }
    }
}

impl ResultBatcher {
    pub(super) fn new(db: Db) -> Self {
        Self { db, state: Arc::default(), alone: Arc::new(Semaphore::new(ALONE)) }
    }

    fn lock_state(&self) -> MutexGuard<'_, BatcherState> {
        self.state.lock()
    }

    /// Writes an end, perhaps together with others.
    pub(super) async fn record(&self, end: ResultRow) -> Result<WriteResult> {
        let token = end.token();
        let written = if self.lock_state().apart.contains(&token) {
            self.write_alone(&end).await
        } else {
            self.write_with_others(end).await
        };
        match &written {
            Ok(_) => drop(self.lock_state().apart.remove(&token)),
            // Nothing arrives anywhere: that is no fault of this end.
            Err(error) if error.fault == Fault::Unavailable => {}
            Err(_) => drop(self.lock_state().apart.insert(token)),
        }
        written
    }

    async fn write_alone(&self, end: &ResultRow) -> Result<WriteResult> {
        // Never closed, so never refused.
        let _turn = self.alone.acquire().await;
        write_one(&self.db, end).await
    }

    async fn write_with_others(&self, end: ResultRow) -> Result<WriteResult> {
        let (answer, answered) = oneshot::channel();
        let start = {
            let mut state = self.lock_state();
            state.waiting.push(PendingResult { end, answer });
            let start = state.running < SIDE_BY_SIDE;
            state.running += usize::from(start);
            start
        };
        if start {
            tokio::spawn(self.clone().write_all());
        }
        // The task answers everything it takes, unless it panics or the runtime is going down.
        answered.await.unwrap_or_else(|_| {
            Err(Error::new(Fault::Interrupted, "stopped while an outcome was being recorded"))
        })
    }

    /// Writes until nothing waits.
    async fn write_all(self) {
        let task = WriterTask(self);
        while let Some(batch) = task.0.next_batch() {
            let (ends, answers): (Vec<ResultRow>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.end, waiting.answer)).unzip();
            let results = write_batch(&task.0.db, ends).await;
            for (answer, result) in answers.into_iter().zip(results) {
                // A caller that has gone reads its outcome back, or leaves it to the next claim.
                drop(answer.send(result));
            }
        }
    }

    /// What waits and is still wanted, or `None` and one less that runs.
    fn next_batch(&self) -> Option<Vec<PendingResult>> {
        let mut state = self.lock_state();
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        if state.waiting.is_empty() {
            state.running -= 1;
            return None;
        }
        let count = state.waiting.len().min(TOGETHER);
        Some(state.waiting.drain(..count).collect())
    }
}

/// Writes together; if Postgres refuses that, each by itself, so that one end that cannot be
/// written (or a deadlock with another batch) is its own affair.
async fn write_batch(db: &Db, ends: Vec<ResultRow>) -> Vec<Result<WriteResult>> {
    match finish::record_results(db, &ends).await {
        Ok(results) => results,
        Err(error) if ends.len() == 1 => vec![Err(error)],
        // Nothing is known of what became of it: each caller reads its own outcome back.
        Err(error) if error.fault == Fault::Unavailable => {
            let same = || Err(Error::new(error.fault, error.context.clone()));
            ends.iter().map(|_| same()).collect()
        }
        Err(_) => {
            let alone: Vec<_> = ends.iter().map(|end| write_one(db, end).boxed()).collect();
            stream::iter(alone).buffered(ALONE).collect().await
        }
    }
}

async fn write_one(db: &Db, end: &ResultRow) -> Result<WriteResult> {
    let written = finish::record_results(db, std::slice::from_ref(end)).await?;
    written.into_iter().next().unwrap_or(Ok(WriteResult::Lost))
}
