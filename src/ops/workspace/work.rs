//! A worker of a workspace: goes through the groups in an order of its own, several at a time, until
//! all are done or it is stopped.
//!
//! A group that somebody else has is put back and looked at again; groups that are added meanwhile
//! are seen once the others are done. At a signal the groups in work are given back at once, what
//! was read of them kept, and the document in work not counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::Workspace;
use super::job::{self, Outcome, Shared};
use super::ledger::{Entry, Standing};
use super::read::Read;
use super::source::Sources;
use crate::fault::Result;
use crate::queue::objects::olmocr::index::Group;
use crate::shutdown::Stop;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Groups at the same time; at least 1.
    pub jobs: usize,
    /// A document is begun so often at most.
    pub tries: u32,
    /// Lost pages per page, above which a document is left out; 0 to 1.
    pub page_error_rate: f64,
    /// Pause before a group is tried again, and after something that is no document's fault.
    pub retry_pause: Duration,
    /// Pause between two looks at a group that somebody else has.
    pub look_again: Duration,
    /// End once only such groups are left.
    pub leave_locked: bool,
}

/// A worker, ready to run.
pub struct Work {
    /// Where.
    pub workspace: Arc<Workspace>,
    /// How documents are read.
    pub reader: Arc<dyn Read>,
    /// Where they are.
    pub sources: Arc<Sources>,
    /// How it works.
    pub terms: Terms,
}

/// What became of what a worker took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Groups whose result it wrote.
    pub groups: u64,
    /// Documents in these results.
    pub documents: u64,
    /// Documents of these groups with nothing on them.
    pub empty: u64,
    /// Documents of these groups that could not be read; `stats` names them.
    pub unread: u64,
    /// Runs that left a document for another run.
    pub partial: u64,
    /// Groups lost to another worker while in work.
    pub lost: u64,
}

/// A tally that is being made.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Tally>);

impl Counts {
    fn change(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn documents(&self, entries: impl Iterator<Item = Entry>) {
        self.change(|tally| {
            tally.groups += 1;
            for entry in entries {
                match entry.standing {
                    Standing::Read => tally.documents += 1,
                    Standing::Empty => tally.empty += 1,
                    _ => tally.unread += 1,
                }
            }
        });
    }
}

/// A group that waits for its turn.
struct Waiting {
    group: Group,
    not_before: Instant,
    /// Somebody else had it at the last look.
    locked: bool,
}

/// The groups that are neither done nor in work, and when the worker may go on.
struct Turns {
    waiting: VecDeque<Waiting>,
    paused_until: Instant,
}

type Jobs = JoinSet<(Group, Result<Outcome>)>;

impl Work {
    /// Works until everything is done or it is stopped.
    ///
    /// # Errors
    /// The store does not answer at the start, or the index is of no use. Later failures are waited
    /// out.
    pub async fn run(self, stop: Stop) -> Result<Tally> {
        let Self { workspace, reader, sources, terms } = self;
        let shared = Arc::new(Shared {
            workspace,
            reader,
            sources,
            terms,
            worker: format!("docmill-{}", uuid::Uuid::new_v4()),
            counts: Counts::default(),
            stop,
        });
        let mut turns = Turns { waiting: open(&shared).await?, paused_until: Instant::now() };
        tracing::info!(groups = turns.waiting.len(), "working on {}", shared.workspace.describe());
        let mut jobs = Jobs::new();
        loop {
            turns.begin(&shared, &mut jobs);
            if jobs.is_empty() && turns.is_over(&shared).await {
                break;
            }
            turns.wait(&shared, &mut jobs).await;
            if shared.stop.is_asked() {
                break;
            }
        }
        while let Some(ended) = jobs.join_next_with_id().await {
            turns.ended(&shared, ended);
        }
        let tally = *shared.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(tally)
    }
}

/// The groups that are not done, in an order of our own, so that workers seldom meet.
async fn open(shared: &Shared) -> Result<VecDeque<Waiting>> {
    let (index, finished) =
        tokio::try_join!(shared.workspace.index(), shared.workspace.finished())?;
    let mut groups = index.0.groups;
    groups.retain(|group| !finished.contains(&group.hash));
    fastrand::shuffle(&mut groups);
    let now = Instant::now();
    let waiting = |group| Waiting { group, not_before: now, locked: false };
    Ok(groups.into_iter().map(waiting).collect())
}

impl Turns {
    /// Starts jobs until there is no room or nothing due.
    fn begin(&mut self, shared: &Arc<Shared>, jobs: &mut Jobs) {
        let now = Instant::now();
        while jobs.len() < shared.terms.jobs && self.paused_until <= now {
            let due = self.waiting.iter().position(|waiting| waiting.not_before <= now);
            let Some(Waiting { group, .. }) = due.and_then(|at| self.waiting.remove(at)) else {
                return;
            };
            let shared = Arc::clone(shared);
            jobs.spawn(async move {
                let outcome = Box::pin(job::run(&shared, &group)).await;
                (group, outcome)
            });
        }
    }

    /// Whether nothing is left to do, once nothing is in work.
    async fn is_over(&mut self, shared: &Shared) -> bool {
        if !self.waiting.is_empty() {
            return shared.terms.leave_locked && self.waiting.iter().all(|one| one.locked);
        }
        match open(shared).await {
            Ok(waiting) => {
                self.waiting = waiting;
                self.waiting.is_empty()
            }
            Err(error) => {
                job::told(&error);
                self.pause(shared);
                false
            }
        }
    }

    /// Waits for the end of a job, a group's turn, or a stop.
    async fn wait(&mut self, shared: &Shared, jobs: &mut Jobs) {
        let next = self.waiting.iter().map(|waiting| waiting.not_before).min();
        // With nothing waiting and nothing in work the index is looked at again after a pause.
        let next = next.unwrap_or_else(Instant::now).max(self.paused_until);
        let sleeps =
            jobs.is_empty() || (jobs.len() < shared.terms.jobs && !self.waiting.is_empty());
        tokio::select! {
            Some(ended) = jobs.join_next_with_id() => self.ended(shared, ended),
            () = tokio::time::sleep_until(next), if sleeps => {}
            () = shared.stop.until_asked() => {}
        }
    }

    fn pause(&mut self, shared: &Shared) {
        self.paused_until = Instant::now() + shared.terms.retry_pause;
    }

    fn ended(
        &mut self,
        shared: &Shared,
        ended: std::result::Result<(Id, (Group, Result<Outcome>)), tokio::task::JoinError>,
    ) {
        let (group, outcome) = match ended {
            Ok((_, ended)) => ended,
            // Its locks stay until they are abandoned; the group is found again in the index.
            Err(died) => return tracing::error!(error = %died, "a job died"),
        };
        let terms = &shared.terms;
        let (pause, locked) = match outcome {
            Ok(Outcome::Done) => {
                tracing::info!(group = group.hash, "group done");
                return;
            }
            Ok(Outcome::Settled) => return,
            Ok(Outcome::Busy(left)) => (left.min(terms.look_again), true),
            Ok(Outcome::Partial) => {
                shared.counts.change(|tally| tally.partial += 1);
                (terms.retry_pause, false)
            }
            Ok(Outcome::Lost) => {
                tracing::warn!(group = group.hash, "a group was taken over by somebody else");
                shared.counts.change(|tally| tally.lost += 1);
                (terms.look_again, false)
            }
            Ok(Outcome::Interrupted | Outcome::Held) => {
                self.pause(shared);
                (Duration::ZERO, false)
            }
            Err(error) => {
                job::told(&error);
                self.pause(shared);
                (terms.retry_pause, false)
            }
        };
        let not_before = Instant::now() + pause;
        self.waiting.push_back(Waiting { group, not_before, locked });
    }
}
