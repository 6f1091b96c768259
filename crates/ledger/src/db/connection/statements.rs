//! The one way to Postgres: every statement has a limit on this side of the network, too.
//!
//! `statement_timeout` ends a statement that Postgres has received. It does nothing for one that
//! never arrived, or whose answer never will: the host is gone, a firewall has dropped the
//! connection, the server's disk hangs. TCP gives up after a quarter of an hour, behind a proxy
//! that acknowledges everything never, and sqlx has no way to set keepalives on its sockets. So:
//!
//! * A statement without an answer within the server's limit and [`MARGIN`] is an error of the
//!   connection, which is closed without a word to the server and leaves the pool at once. The same
//!   happens if the statement is dropped before its answer. (sqlx would ping first, without a
//!   limit.)
//! * The connections that were idle at that time stand on the same ground; each is replaced when it
//!   is asked for, so that sixteen dead ones do not cost sixteen limits.
//! * A server that takes no writes (SQLSTATE 25006: the name led to a replica when the connection was
//!   made, or a failover made the server one) counts as one without an answer: the next connection
//!   asks the name again.
//! * No connection lives for longer than [`MAX_LIFETIME`]: after a failover that nobody saw, reads
//!   leave the earlier server by then.
//! * Going back to the pool and opening a connection have limits of their own.
//!
//! sqlx pings a connection whenever it goes back to its pool, and no setting prevents that: a round
//! trip for each statement. So an answered connection is kept for the next statement, and goes back
//! once it has been out for [`MAX_CHECKOUT_TIME`]: there its age and its idleness count.
//!
//! Not promised: that a statement without an answer did nothing. Callers that need to know ask
//! again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, TryFutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgConnection, PgPool, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo, Postgres,
};
use sqlx::{AssertSqlSafe, Connection as _, Describe, Either, Execute, Executor, SqlStr};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use docmill_core::retry::{Jitter, RetryBackoff};

/// How much longer than Postgres we wait: its own limit speaks first, if it can.
const MARGIN: Duration = Duration::from_secs(2);
/// A connection that is not there by then is tried anew: its first packets may have gone nowhere.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time outside of the pool a connection goes back between two statements; an unused one
/// within twice this time.
const MAX_CHECKOUT_TIME: Duration = Duration::from_secs(1);
/// A connection has to answer a ping by then, or it does not go back to the pool.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection is replaced at this age, or up to a quarter earlier: not in step with other processes.
const MAX_LIFETIME: RetryBackoff =
    RetryBackoff::constant(Duration::from_secs(5 * 60)).with_jitter(Jitter::Quarter);
/// Statements under way are waited for so long when the pool closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A pool of connections on which nothing waits without end. As an [`Executor`] it runs one
/// statement; [`StatementPool::begin`] opens a transaction.
#[derive(Clone)]
pub(crate) struct StatementPool {
    pool: PgPool,
    /// The server's own limit.
    statement_timeout: Duration,
    /// One permit for each connection that there may be: who has one finds a connection among the idle
    /// ones, or room for one in the pool, and never waits there for one that is idle here.
    turns: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
}

/// Connections outside of the pool that wait for the next statement.
struct IdleConnections {
    state: Mutex<IdleState>,
    silence: LastSilence,
}

#[derive(Default)]
struct IdleState {
    /// The one that came last is taken first: the others go back.
    waiting: Vec<IdleConnection>,
    /// A task returns unused ones.
    is_watched: bool,
    is_closed: bool,
}

struct IdleConnection {
    connection: PoolConnection<Postgres>,
    /// When it left the pool.
    out_since: Instant,
    idle_since: Instant,
}

/// When an answer was last missing; connections that were idle then are not used again.
#[derive(Debug, Clone, Default)]
struct LastSilence(Arc<Mutex<Option<Instant>>>);

/// A connection on loan. Only [`LeasedConnection::give_back`] keeps it for others; dropped, it is
/// closed, because answers may still be under way on it.
struct LeasedConnection {
    connection: Option<PoolConnection<Postgres>>,
    out_since: Instant,
    idle: Arc<IdleConnections>,
    /// Freed last: who gets it next finds what this one has given back.
    _turn: OwnedSemaphorePermit,
}

/// A transaction on one connection, each statement with its limit; undone unless committed.
pub(crate) struct StatementTransaction {
    lease: LeasedConnection,
    limit: Duration,
}

impl fmt::Debug for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementPool").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl fmt::Debug for StatementTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementTransaction").finish_non_exhaustive()
    }
}

impl LastSilence {
    fn note_now(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// Notes it; the error that says so.
    fn note(&self, limit: Duration) -> sqlx::Error {
        self.note_now();
        let text = format!("Postgres gave no answer within {limit:?}");
        sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
    }

    /// Whether a connection that has been idle for so long was so when an answer was missing.
    fn falls_within(&self, idle_for: Duration) -> bool {
        let last = *self.0.lock();
        last.is_some_and(|silence| silence.elapsed() <= idle_for)
    }
}

impl LeasedConnection {
    fn connection(&mut self) -> sqlx::Result<&mut PgConnection> {
        // Taken out only by `give_back` and `drop`, which end the lease.
        self.connection.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// Waits until the server is done with what was asked last; `false`: it is not to be had any more.
    async fn is_ready_again(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match timeout(RETURN_TIMEOUT, connection.ping()).await {
            Ok(pinged) => pinged.is_ok(),
            Err(_elapsed) => {
                self.idle.silence.note_now();
                false
            }
        }
    }

    /// For the next statement.
    fn give_back(mut self) {
        let Some(connection) = self.connection.take() else { return };
        let (out_since, idle_since) = (self.out_since, Instant::now());
        Arc::clone(&self.idle).keep(IdleConnection { connection, out_since, idle_since });
    }

    /// The state of a connection after an answer, or after none.
    ///
    /// Postgres sends an error first and rolls the statement back then. So an error is passed on
    /// once the connection is ready again: an immediate retry on another connection would find the
    /// locks of the failed statement.
    async fn end<T>(
        mut self,
        answer: Result<sqlx::Result<T>, tokio::time::error::Elapsed>,
        limit: Duration,
    ) -> sqlx::Result<T> {
        match answer {
            Ok(Ok(value)) => {
                self.give_back();
                Ok(value)
            }
            Ok(Err(error)) => {
                if takes_no_writes(&error) {
                    self.idle.silence.note_now();
                } else if !breaks_connection(&error) && self.is_ready_again().await {
                    self.give_back();
                }
                Err(error)
            }
            Err(_elapsed) => Err(self.idle.silence.note(limit)),
        }
    }
}

impl Drop for LeasedConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl IdleConnections {
    /// Keeps one that has answered, unless it is to go back.
    fn keep(self: Arc<Self>, idle: IdleConnection) {
        let mut state = self.state.lock();
        if state.is_closed || idle.is_long_out() {
            drop(state);
            return idle.return_to_pool(self.silence.clone());
        }
        state.waiting.push(idle);
        if !std::mem::replace(&mut state.is_watched, true) {
            drop(state);
            tokio::spawn(self.return_unused());
        }
    }

    /// The one that answered last, if there is one that may be used.
    fn take(&self) -> Option<IdleConnection> {
        loop {
            let idle = self.state.lock().waiting.pop()?;
            if idle.is_long_out() {
                idle.return_to_pool(self.silence.clone());
            } else if self.silence.falls_within(idle.idle_since.elapsed()) {
                drop(idle.connection.detach());
            } else {
                return Some(idle);
            }
        }
    }

    /// Returns connections that were out for long, until none is left.
    async fn return_unused(self: Arc<Self>) {
        loop {
            tokio::time::sleep(MAX_CHECKOUT_TIME).await;
            let mut state = self.state.lock();
            let long_out: Vec<_> =
                state.waiting.extract_if(.., |idle| idle.is_long_out()).collect();
            state.is_watched = !state.waiting.is_empty();
            let is_over = !state.is_watched;
            drop(state);
            long_out.into_iter().for_each(|idle| idle.return_to_pool(self.silence.clone()));
            if is_over {
                return;
            }
        }
    }

    /// From now on everything goes back.
    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let all = std::mem::take(&mut state.waiting);
        drop(state);
        all.into_iter().for_each(|idle| idle.return_to_pool(self.silence.clone()));
    }
}

impl IdleConnection {
    fn is_long_out(&self) -> bool {
        self.out_since.elapsed() >= MAX_CHECKOUT_TIME
    }

    /// Back to the pool, which asks for a sign of life first.
    fn return_to_pool(mut self, silence: LastSilence) {
        // The same as sqlx does when a connection is dropped, but not without end: given up, the
        // connection is closed and its place free. Hidden in sqlx's documentation only.
        let returning = self.connection.return_to_pool();
        tokio::spawn(async move {
            if timeout(RETURN_TIMEOUT, returning).await.is_err() {
                silence.note_now();
            }
        });
    }
}

/// Whether the server is a replica, or was made read-only; see "PostgreSQL Error Codes" of its manual.
fn takes_no_writes(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(refusal) if refusal.code().as_deref() == Some("25006"))
}

fn breaks_connection(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, Protocol, Tls, WorkerCrashed};
    matches!(error, Io(_) | Tls(_) | Protocol(_) | WorkerCrashed)
}

impl StatementPool {
    /// `statement_timeout` is the limit in the sessions' settings.
    pub(in crate::db) fn connect_lazy(
        options: PgPoolOptions,
        login: sqlx::postgres::PgConnectOptions,
        statement_timeout: Duration,
    ) -> Self {
        let silence = LastSilence::default();
        let stood_by = silence.clone();
        let options = options
            .max_lifetime(MAX_LIFETIME.wait_after(0))
            // Longer than this and the statement had better fail and be tried again.
            .acquire_timeout(statement_timeout)
            .test_before_acquire(false)
            .before_acquire(move |_, idle| {
                let sound = !stood_by.falls_within(idle.idle_for);
                Box::pin(async move { Ok(sound) })
            });
        let most = options.get_max_connections() as usize;
        let pool = options.connect_lazy_with(login);
        let (turns, state) = (Arc::new(Semaphore::new(most)), Mutex::default());
        Self { pool, statement_timeout, turns, idle: Arc::new(IdleConnections { state, silence }) }
    }

    /// No connection that is idle now is used again: the server behind them takes no writes.
    pub(in crate::db) fn replace_connections(&self) {
        self.idle.silence.note_now();
    }

    /// The pool itself, for what changes its settings.
    pub(in crate::db) fn inner(&self) -> &PgPool {
        &self.pool
    }

    /// A connection that is the caller's own, without limits: for migrations.
    pub(in crate::db) async fn detach_connection(&self) -> sqlx::Result<PgConnection> {
        let mut lease = self.acquire().await?;
        let connection = lease.connection.take().ok_or(sqlx::Error::PoolClosed)?;
        Ok(connection.detach())
    }

    /// Closes the pool; statements under way are waited for a moment.
    pub(in crate::db) async fn close(&self) {
        self.idle.close();
        // A late connection is closed with the process, or by its own limit.
        let _late = timeout(CLOSE_TIMEOUT, self.pool.close()).await;
    }

    /// Opens a transaction.
    pub(crate) async fn begin(&self) -> sqlx::Result<StatementTransaction> {
        self.begin_by("BEGIN".to_owned()).await
    }

    /// Opens a transaction that has the advisory locks of these keys, taken in the order given: in the
    /// same round trip.
    pub(crate) async fn begin_locked(&self, keys: &[i64]) -> sqlx::Result<StatementTransaction> {
        let keys = keys.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        // One statement however many they are: it has one limit, and is planned once.
        self.begin_by(format!(
            "BEGIN; SELECT count(pg_advisory_xact_lock(key)) FROM unnest('{{{keys}}}'::bigint[]) AS key"
        ))
        .await
    }

    /// `opening`: no value of it comes from outside.
    async fn begin_by(&self, opening: String) -> sqlx::Result<StatementTransaction> {
        let (lease, limit) = (self.acquire().await?, self.limit());
        let mut transaction = StatementTransaction { lease, limit };
        (&mut transaction).execute(AssertSqlSafe(opening)).await?;
        Ok(transaction)
    }

    fn limit(&self) -> Duration {
        self.statement_timeout + MARGIN
    }

    async fn acquire(&self) -> sqlx::Result<LeasedConnection> {
        let until = Instant::now() + self.statement_timeout;
        let turn = timeout(self.statement_timeout, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_elapsed| sqlx::Error::PoolTimedOut)?;
        // Never closed, so never refused.
        let turn = turn.map_err(|_closed| sqlx::Error::PoolClosed)?;
        let (connection, out_since) = match self.idle.take() {
            Some(idle) => (idle.connection, idle.out_since),
            None => (self.acquire_from_pool(until).await?, Instant::now()),
        };
        let idle = Arc::clone(&self.idle);
        Ok(LeasedConnection { connection: Some(connection), out_since, idle, _turn: turn })
    }

    async fn acquire_from_pool(&self, until: Instant) -> sqlx::Result<PoolConnection<Postgres>> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left.min(CONNECT_TIMEOUT), self.pool.acquire()).await {
                Ok(acquired) => return acquired,
                Err(_elapsed) if left <= CONNECT_TIMEOUT => return Err(sqlx::Error::PoolTimedOut),
                Err(_elapsed) => {}
            }
        }
    }
}

impl StatementTransaction {
    /// Makes what was done last.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        (&mut self).execute("COMMIT").await?;
        self.lease.give_back();
        Ok(())
    }

    /// Undoes what was done, and keeps the connection; one that is dropped instead is closed.
    pub(crate) async fn rollback(mut self) -> sqlx::Result<()> {
        (&mut self).execute("ROLLBACK").await?;
        self.lease.give_back();
        Ok(())
    }
}

/// The result of a statement: its rows, and at the end of each statement the number of changed
/// rows.
type StatementSteps = Vec<Either<PgQueryResult, PgRow>>;

fn into_stream<'e>(
    steps: impl Future<Output = sqlx::Result<StatementSteps>> + Send + 'e,
) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>> {
    // The rows are collected before the caller sees the first: the limit is one of the statement,
    // and not of what the caller does with it.
    steps.map_ok(|steps| stream::iter(steps.into_iter().map(Ok))).try_flatten_stream().boxed()
}

impl<'p> Executor<'p> for &'p StatementPool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        into_stream(async move {
            let mut lease = self.acquire().await?;
            let steps = lease.connection()?.fetch_many(query).try_collect();
            let answer = timeout(self.limit(), steps).await;
            lease.end(answer, self.limit()).await
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        async move {
            let mut lease = self.acquire().await?;
            let answer = timeout(self.limit(), lease.connection()?.fetch_optional(query)).await;
            lease.end(answer, self.limit()).await
        }
        .boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'p: 'e,
    {
        async move {
            let mut lease = self.acquire().await?;
            let prepared = lease.connection()?.prepare_with(sql, parameters);
            let answer = timeout(self.limit(), prepared).await;
            lease.end(answer, self.limit()).await
        }
        .boxed()
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        'p: 'e,
    {
        async move {
            let mut lease = self.acquire().await?;
            let answer = timeout(self.limit(), lease.connection()?.describe(sql)).await;
            lease.end(answer, self.limit()).await
        }
        .boxed()
    }
}

impl StatementTransaction {
    /// After an error the transaction is over: what follows fails, and dropping it closes the
    /// connection.
    fn note<T>(
        &self,
        answer: Result<sqlx::Result<T>, tokio::time::error::Elapsed>,
    ) -> sqlx::Result<T> {
        let answer =
            answer.unwrap_or_else(|_elapsed| Err(self.lease.idle.silence.note(self.limit)));
        if answer.as_ref().is_err_and(takes_no_writes) {
            self.lease.idle.silence.note_now();
        }
        answer
    }
}

impl<'t> Executor<'t> for &'t mut StatementTransaction {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
    where
        't: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        into_stream(async move {
            let steps = self.lease.connection()?.fetch_many(query).try_collect();
            let answer = timeout(self.limit, steps).await;
            self.note(answer)
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        't: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        async move {
            let answer = self.lease.connection()?.fetch_optional(query);
            let answer = timeout(self.limit, answer).await;
            self.note(answer)
        }
        .boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        't: 'e,
    {
        async move {
            let prepared = self.lease.connection()?.prepare_with(sql, parameters);
            let answer = timeout(self.limit, prepared).await;
            self.note(answer)
        }
        .boxed()
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
    where
        't: 'e,
    {
        async move {
            let answer = timeout(self.limit, self.lease.connection()?.describe(sql)).await;
            self.note(answer)
        }
        .boxed()
    }
}
