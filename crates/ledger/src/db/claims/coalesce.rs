//! Ends that arrive while others are being written go together in one statement.
//!
//! A lone end is written at once. Under load a statement of many rows costs Postgres a fraction
//! of what as many statements cost (measured: 5 times less per row), and the ledger's port stays
//! one end per call. Two statements run side by side, so that one that waits for a lock holds
//! back only what went with it. The write runs in a task of its own: a caller that is cancelled
//! takes nobody else's end with it.
//! Not promised: order between ends.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::finish::{self, ResultRow};
use crate::db::Db;
use crate::ledger::WriteResult;
use docmill_core::fault::{Error, Fault, Result};

/// Statements that run at the same time.
const SIDE_BY_SIDE: usize = 2;
/// Ends in one statement; also bounds what is sent to Postgres at a time.
const TOGETHER: usize = 64;

/// Collects ends and writes them.
#[derive(Debug, Clone)]
pub(super) struct ResultBatcher {
    db: Db,
    state: Arc<Mutex<BatcherState>>,
}

#[derive(Debug, Default)]
struct BatcherState {
    waiting: Vec<PendingResult>,
    running: usize,
}

#[derive(Debug)]
struct PendingResult {
    end: ResultRow,
    answer: oneshot::Sender<Result<WriteResult>>,
}

impl ResultBatcher {
    pub(super) fn new(db: Db) -> Self {
        Self { db, state: Arc::default() }
    }

    /// Writes an end, perhaps together with others.
    pub(super) async fn record(&self, end: ResultRow) -> Result<WriteResult> {
        let (answer, answered) = oneshot::channel();
        let start = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waiting.push(PendingResult { end, answer });
            let start = state.running < SIDE_BY_SIDE;
            state.running += usize::from(start);
            start
        };
        if start {
            tokio::spawn(self.clone().write_all());
        }
        // The task answers everything it takes; it is gone only if the runtime is going down.
        answered.await.unwrap_or_else(|_| {
            Err(Error::new(Fault::Interrupted, "stopped while an outcome was being recorded"))
        })
    }

    /// Writes until nothing waits.
    async fn write_all(self) {
        while let Some(batch) = self.next_batch() {
            let (ends, answers): (Vec<ResultRow>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.end, waiting.answer)).unzip();
            let results = write_batch(&self.db, ends).await;
            for (answer, result) in answers.into_iter().zip(results) {
                // A caller that has gone reads its outcome back, or leaves it to the next claim.
                drop(answer.send(result));
            }
        }
    }

    /// What waits, or `None` and one less that runs.
    fn next_batch(&self) -> Option<Vec<PendingResult>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
        Ok(held) => held.into_iter().map(Ok).collect(),
        Err(error) if ends.len() == 1 => vec![Err(error)],
        // Nothing is known of what became of it: each caller reads its own outcome back.
        Err(error) if error.fault == Fault::Unavailable => {
            let same = || Err(Error::new(error.fault, error.context.clone()));
            ends.iter().map(|_| same()).collect()
        }
        Err(_) => {
            let mut results = Vec::with_capacity(ends.len());
            for end in ends {
                let alone = finish::record_results(db, std::slice::from_ref(&end)).await;
                results.push(alone.map(|held| held.first().copied().unwrap_or(WriteResult::Lost)));
            }
            results
        }
    }
}
