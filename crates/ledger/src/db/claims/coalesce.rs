//! Shares statements: rows that jobs read or write at the same time go to Postgres together.
//!
//! A lone row is sent as soon as nothing else is ready to run; rows that come while a statement is
//! under way share the next. A statement of many rows costs a fraction of as many statements
//! (beginning and committing one takes as much of Postgres as ten rows). So a statement of several
//! rows is followed by a rest, measured by its duration and the number of slots: a row that comes
//! meanwhile waits a few milliseconds until as many are there as last time. A statement of one row
//! is followed by none: where rows come one by one, waiting only delays their jobs. A second
//! statement runs beside the first only once a row has waited for [`STATEMENT_TURN`], because the
//! first waits for a lock or the disk. The ledger's port stays one row per call. The statement runs
//! in a task of its own: a cancelled caller does not cancel the rows of others, and its own row is
//! not begun any more.
//!
//! One row that cannot be written delays no other: a locked one is skipped and handled alone, and
//! if Postgres refuses a statement (a value, or the document's row is locked), each of its rows
//! goes alone. A row that is tried again after that stays alone ([`BatchedStatement::claim`]). Not
//! promised: order between rows.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;

use crate::db::Db;
use docmill_core::batching::linger_for;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::ClaimToken;

/// Statements of one sort that run at the same time, if one takes long.
const SIDE_BY_SIDE: usize = 2;
/// How long a row waits for the statement that is under way before the next begins beside it.
const STATEMENT_TURN: Duration = Duration::from_millis(25);
/// A statement rests for so many times what it took, so that its sort occupies Postgres for a quarter
/// of the time at most, until many rows wait.
const REST_FACTOR: u32 = 3;
/// The longest rest after a statement, where there are many slots. A job has seven statements.
const BATCH_LINGER: Duration = Duration::from_millis(15);
/// So many rows wait for no others, however many went together before: more of them in one statement
/// cost hardly less each.
const ENOUGH: usize = 16;
/// Rows that go by themselves at the same time: some that wait leave connections to others.
const ALONE: usize = 4;

/// One sort of statement that takes many rows.
pub(super) trait BatchedStatement: Send + Sync + 'static {
    /// One caller's row of the statement.
    type Row: Send + Sync;
    /// The caller's answer.
    type Answer: Send;
    /// Rows in one statement; also bounds the size of one request and its answer.
    const MAX_ROWS: usize = 64;

    /// Runs the statement for all of these rows; one answer for each, in their order.
    fn run_together(
        db: &Db,
        rows: &[Self::Row],
    ) -> impl Future<Output = Result<Vec<RowAnswer<Self::Answer>>>> + Send;

    /// Runs it for one that was locked, or was refused together with others.
    fn run_alone(db: &Db, row: &Self::Row) -> impl Future<Output = Result<Self::Answer>> + Send;

    /// The claim whose row goes by itself once it has failed; `None`: it is not tried again.
    fn claim(_row: &Self::Row) -> Option<ClaimToken> {
        None
    }
}

/// A statement's answer for one of its rows.
#[derive(Debug)]
pub(super) enum RowAnswer<A> {
    /// This.
    Given(A),
    /// Somebody has locked what it is about; nothing was written.
    Locked,
}

/// Collects rows and runs their statements.
pub(super) struct StatementBatcher<S: BatchedStatement> {
    db: Db,
    state: Arc<Mutex<BatcherState<S>>>,
    /// Told when as many rows wait as are worth a statement, [`BatcherState::worth_sending`].
    enough: Arc<Notify>,
    alone: Arc<Semaphore>,
    longest_rest: Duration,
}

struct BatcherState<S: BatchedStatement> {
    waiting: Vec<PendingRow<S>>,
    running: usize,
    /// Before this, the next statement begins only if enough rows wait; `None`: none was run yet.
    next_begin: Option<Instant>,
    /// Rows in the last statement that ended.
    last_rows: usize,
    /// Claims whose row could not be written: it goes by itself the next time.
    apart: HashSet<ClaimToken>,
}

impl<S: BatchedStatement> BatcherState<S> {
    /// Whether as many rows wait as went together the last time: those that could come have come.
    fn worth_sending(&self) -> bool {
        self.waiting.len() >= self.last_rows.min(ENOUGH)
    }
}

struct PendingRow<S: BatchedStatement> {
    row: S::Row,
    answer: oneshot::Sender<Result<S::Answer>>,
}

/// The task answers everything it takes, unless it panics or the runtime is going down.
fn stopped_error() -> Error {
    Error::new(Fault::Interrupted, "stopped while Postgres was being asked")
}

/// One of the tasks that run statements. A panic in it fails the rows that it had taken, and no
/// other caller waits for ever.
struct StatementTask<S: BatchedStatement>(StatementBatcher<S>);

impl<S: BatchedStatement> Drop for StatementTask<S> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut state = self.0.lock_state();
        if state.waiting.is_empty() {
            state.running -= 1;
        } else {
            drop(state);
            tokio::spawn(self.0.clone().run_all());
        }
    }
}

impl<S: BatchedStatement> Clone for StatementBatcher<S> {
    fn clone(&self) -> Self {
        let Self { db, state, enough, alone, longest_rest } = self;
        let (state, enough) = (Arc::clone(state), Arc::clone(enough));
        let (db, alone, longest_rest) = (db.clone(), Arc::clone(alone), *longest_rest);
        Self { db, state, enough, alone, longest_rest }
    }
}

impl<S: BatchedStatement> fmt::Debug for StatementBatcher<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementBatcher").finish_non_exhaustive()
    }
}

impl<S: BatchedStatement> StatementBatcher<S> {
    /// For the statements of so many jobs at the same time.
    pub(super) fn new(db: Db, slots: u32) -> Self {
        let state = BatcherState {
            waiting: Vec::new(),
            running: 0,
            next_begin: None,
            last_rows: 0,
            apart: HashSet::new(),
        };
        let alone = Arc::new(Semaphore::new(ALONE));
        let longest_rest = linger_for(BATCH_LINGER, slots);
        let (state, enough) = (Arc::new(Mutex::new(state)), Arc::default());
        Self { db, state, enough, alone, longest_rest }
    }

    fn lock_state(&self) -> MutexGuard<'_, BatcherState<S>> {
        self.state.lock()
    }

    /// Has one row answered, perhaps together with others.
    ///
    /// # Errors
    /// The answer of Postgres for this row.
    pub(super) async fn run(&self, row: S::Row) -> Result<S::Answer> {
        let Some(claim) = S::claim(&row) else { return self.run_with_others(row).await };
        let answer = if self.lock_state().apart.contains(&claim) {
            self.run_alone(&row).await
        } else {
            self.run_with_others(row).await
        };
        match &answer {
            Ok(_) => drop(self.lock_state().apart.remove(&claim)),
            // Nothing arrives anywhere: that is no fault of this row.
            Err(error) if error.fault == Fault::Unavailable => {}
            Err(_) => drop(self.lock_state().apart.insert(claim)),
        }
        answer
    }

    async fn run_alone(&self, row: &S::Row) -> Result<S::Answer> {
        // Never closed, so never refused.
        let _turn = self.alone.acquire().await;
        S::run_alone(&self.db, row).await
    }

    async fn run_with_others(&self, row: S::Row) -> Result<S::Answer> {
        let (answer, answered) = oneshot::channel();
        self.add_waiting([PendingRow { row, answer }]);
        self.run_until(answered).await.unwrap_or_else(|_| Err(stopped_error()))
    }

    /// Has several rows answered, in their order: together as far as there is room, perhaps with others.
    pub(super) async fn run_many(&self, rows: Vec<S::Row>) -> Vec<Result<S::Answer>> {
        let (waiting, answered): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .map(|row| {
                let (answer, answered) = oneshot::channel();
                (PendingRow { row, answer }, answered)
            })
            .unzip();
        // All of them before a statement begins, which would leave with the first.
        self.add_waiting(waiting);
        let answers = self.run_until(join_all(answered)).await.into_iter();
        answers.map(|answer| answer.unwrap_or_else(|_| Err(stopped_error()))).collect()
    }

    fn add_waiting(&self, rows: impl IntoIterator<Item = PendingRow<S>>) {
        let mut state = self.lock_state();
        state.waiting.extend(rows);
        if state.worth_sending() {
            self.enough.notify_waiters();
        }
    }

    /// Runs statements for what waits until this is answered.
    async fn run_until<T>(&self, answered: impl Future<Output = T>) -> T {
        tokio::pin!(answered);
        self.start_beside(0);
        match tokio::time::timeout(STATEMENT_TURN, &mut answered).await {
            Ok(answers) => answers,
            Err(_elapsed) => {
                self.start_beside(SIDE_BY_SIDE - 1);
                answered.await
            }
        }
    }

    /// Starts a task that runs statements if something waits and no more than so many run already.
    fn start_beside(&self, others: usize) {
        let mut state = self.lock_state();
        if state.running <= others && !state.waiting.is_empty() {
            state.running += 1;
            tokio::spawn(self.clone().run_all());
        }
    }

    /// Runs statements until nothing waits.
    async fn run_all(self) {
        let task = StatementTask(self);
        loop {
            // After all that is ready to run: at once where a core is free, and where none is, what others
            // are about to ask goes with it.
            tokio::task::yield_now().await;
            task.0.wait_for_company().await;
            let Some(batch) = task.0.next_batch() else { return };
            let (begin, rows) = (Instant::now(), batch.len());
            task.0.run_batch(batch).await;
            let rest = (begin.elapsed() * REST_FACTOR).min(task.0.longest_rest);
            let mut state = task.0.lock_state();
            (state.next_begin, state.last_rows) = (Some(Instant::now() + rest), rows);
        }
    }

    /// Waits while the statement before is not long ago and fewer rows wait than it had; not at all if
    /// none does.
    async fn wait_for_company(&self) {
        loop {
            let told = self.enough.notified();
            let begin = {
                let state = self.lock_state();
                let may_wait = !state.waiting.is_empty() && !state.worth_sending();
                state.next_begin.filter(|begin| may_wait && *begin > Instant::now())
            };
            let Some(begin) = begin else { return };
            tokio::pin!(told);
            let _told_or_time = tokio::time::timeout_at(begin, told).await;
        }
    }

    /// The rows that wait and are still wanted, or `None` and one running statement less.
    fn next_batch(&self) -> Option<Vec<PendingRow<S>>> {
        let mut state = self.lock_state();
        state.waiting.retain(|waiting| !waiting.answer.is_closed());
        if state.waiting.is_empty() {
            state.running -= 1;
            return None;
        }
        let count = state.waiting.len().min(S::MAX_ROWS);
        Some(state.waiting.drain(..count).collect())
    }

    /// Runs one statement; what it leaves open goes by itself, and holds up no other.
    async fn run_batch(&self, batch: Vec<PendingRow<S>>) {
        let (rows, answers): (Vec<S::Row>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.row, waiting.answer)).unzip();
        let open = match S::run_together(&self.db, &rows).await {
            Ok(given) => {
                let mut open: Vec<PendingRow<S>> = Vec::new();
                for ((row, answer), given) in rows.into_iter().zip(answers).zip(given) {
                    match given {
                        // A caller that has gone reads its outcome back, or leaves it to the next claim.
                        RowAnswer::Given(given) => drop(answer.send(Ok(given))),
                        RowAnswer::Locked => open.push(PendingRow { row, answer }),
                    }
                }
                open
            }
            // The outcome is unknown, or there is only one row: each caller gets the error.
            Err(error) if error.fault == Fault::Unavailable || rows.len() == 1 => {
                let same = || Err(Error::new(error.fault, error.context.clone()));
                answers.into_iter().for_each(|answer| drop(answer.send(same())));
                return;
            }
            Err(_) => {
                let pairs = rows.into_iter().zip(answers);
                pairs.map(|(row, answer)| PendingRow { row, answer }).collect()
            }
        };
        for PendingRow { row, answer } in open {
            let batcher = self.clone();
            tokio::spawn(async move { drop(answer.send(batcher.run_alone(&row).await)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join;
    use tokio::time::sleep;

    const TOOK: Duration = Duration::from_millis(2);
    const REST: Duration = Duration::from_millis(6);

    /// A statement that takes so many milliseconds as its first row says; each row is answered with how
    /// many went together.
    struct TimedStatement;

    impl BatchedStatement for TimedStatement {
        type Row = u64;
        type Answer = usize;

        async fn run_together(_db: &Db, rows: &[u64]) -> Result<Vec<RowAnswer<usize>>> {
            sleep(Duration::from_millis(rows[0])).await;
            Ok(rows.iter().map(|_| RowAnswer::Given(rows.len())).collect())
        }

        async fn run_alone(_db: &Db, _row: &u64) -> Result<usize> {
            unreachable!("none is locked or refused")
        }
    }

    /// A row that comes after so long: when it was answered, and how many went with it.
    async fn ask(
        batcher: &StatementBatcher<TimedStatement>,
        after: Duration,
        takes: u64,
    ) -> (Duration, usize) {
        let start = Instant::now();
        sleep(after).await;
        let together = batcher.run(takes).await.unwrap();
        (start.elapsed(), together)
    }

    fn batcher() -> StatementBatcher<TimedStatement> {
        StatementBatcher::new(Db::unconnected(), 64)
    }

    #[tokio::test(start_paused = true)]
    async fn the_statements_of_few_slots_do_not_rest_and_those_of_some_rest_for_less() {
        for (slots, rest) in [(10, 0), (22, 3), (64, 6), (10_000, 6)] {
            let batcher = StatementBatcher::new(Db::unconnected(), slots);
            batcher.run_many(vec![2; 4]).await;
            let expected = (Duration::from_millis(rest) + TOOK, 1);
            assert_eq!(ask(&batcher, Duration::ZERO, 2).await, expected, "{slots} slots");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_long_after_the_last_statement_goes_at_once_and_alone() {
        let batcher = batcher();
        assert_eq!(ask(&batcher, Duration::ZERO, 2).await, (TOOK, 1));
        assert_eq!(ask(&batcher, REST, 2).await, (REST + TOOK, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn rows_that_come_one_by_one_wait_for_none() {
        let batcher = batcher();
        for _ in 0..3 {
            assert_eq!(ask(&batcher, Duration::ZERO, 2).await, (TOOK, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rows_wait_for_as_many_as_went_together_before_but_not_for_long() {
        let batcher = batcher();
        batcher.run_many(vec![2; 4]).await;
        // The fourth comes within the rest, and all four leave with it.
        let asked = (0..4).map(|at| ask(&batcher, Duration::from_millis(at), 2));
        let ends: Vec<_> = join_all(asked).await;
        assert_eq!(ends, [(Duration::from_millis(5), 4); 4]);
        // A third does not come: two leave after three times what the last statement took.
        let asked = (0..2).map(|at| ask(&batcher, Duration::from_millis(at), 2));
        let ends: Vec<_> = join_all(asked).await;
        assert_eq!(ends, [(REST + TOOK, 2); 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn sixteen_rows_wait_for_no_more() {
        let batcher = batcher();
        batcher.run_many(vec![2; 40]).await;
        let start = Instant::now();
        let (few, many) =
            join(batcher.run_many(vec![2; 15]), ask(&batcher, Duration::from_millis(1), 2)).await;
        assert_eq!(few.len(), 15);
        assert_eq!(many.1, 16, "the sixteenth goes with the others");
        assert_eq!(start.elapsed(), Duration::from_millis(1) + TOOK, "and at once");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_the_longest_rest_after_a_slow_statement() {
        let batcher = batcher();
        batcher.run_many(vec![5_000; 2]).await;
        assert_eq!(ask(&batcher, Duration::ZERO, 2).await, (BATCH_LINGER + TOOK, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_that_hangs_delays_other_rows_by_one_turn_at_most() {
        let batcher = batcher();
        let slow = ask(&batcher, Duration::ZERO, 5_000);
        let (_, next) = join(slow, ask(&batcher, Duration::from_millis(1), 2)).await;
        assert_eq!(next, (STATEMENT_TURN + TOOK, 1));
    }
}
