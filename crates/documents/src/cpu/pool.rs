//! Page work on the cores: a rayon pool of fixed size behind an async call.
//!
//! [`CpuPool::run`] waits for a free core first and starts second, in the order of asking, so that
//! work whose future is dropped while it waits never starts, and no document can fill the pool
//! ahead of others by more than the few pages its reader asks for at a time. Work that has started
//! cannot be stopped from outside: a dropped future or a passed limit leaves it behind, and its
//! core stays taken until it ends. Page work therefore carries deadlines of its own. What this
//! cannot survive is an abort of the process (a failed allocation, a stack overflow): work on the
//! bytes of documents belongs into a [page process](super::ProcessPool).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use docmill_core::fault::{Error, Result};
use docmill_core::work_clock::wait_off_clock;

/// Stack of a thread that works on documents. Parsers of nested formats recurse; the memory is
/// only touched when it is used.
pub const STACK_BYTES: usize = 32 << 20;

/// A bounded number of threads for work that keeps a core busy.
#[derive(Debug)]
pub struct CpuPool {
    rayon: rayon::ThreadPool,
    free: Arc<Semaphore>,
}

impl CpuPool {
    /// A pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// The system refuses to start the threads.
    pub fn new(threads: usize) -> Result<Self> {
        let rayon = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .stack_size(STACK_BYTES)
            .thread_name(|index| format!("page-{index}"))
            .build()
            .map_err(|error| Error::internal("cannot start the CPU pool").with_source(error))?;
        let free = Arc::new(Semaphore::new(rayon.current_num_threads()));
        Ok(Self { rayon, free })
    }

    /// How many pieces of work run at the same time.
    pub fn thread_count(&self) -> usize {
        self.rayon.current_num_threads()
    }

    /// Runs `work` on a core and waits for it.
    ///
    /// # Errors
    /// [`Fault::Internal`](docmill_core::fault::Fault::Internal) if it panicked.
    pub async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.start_work(work).await?.await.unwrap_or_else(|_| Err(lost_work_error()))
    }

    /// As [`CpuPool::run`], but gives up on work that takes longer than `limit`, counted from its
    /// start: `None`. The work itself goes on until it notices.
    ///
    /// # Errors
    /// As [`CpuPool::run`].
    pub async fn run_within<T, F>(&self, limit: Duration, work: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let running = self.start_work(work).await?;
        match tokio::time::timeout(limit, running).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(lost_work_error())).map(Some),
            Err(_elapsed) => Ok(None),
        }
    }

    /// Waits for a core and starts `work` there.
    async fn start_work<T, F>(&self, work: F) -> Result<oneshot::Receiver<Result<T>>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let permit = wait_off_clock(Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.map_err(|_| Error::internal("the CPU pool is closed"))?;
        let span = tracing::Span::current();
        let (answer, receiver) = oneshot::channel();
        self.rayon.spawn_fifo(move || {
            let result = span.in_scope(|| catch_unwind(AssertUnwindSafe(work)));
            drop(permit);
            let result =
                result.map_err(|_payload| Error::internal("work on the CPU pool panicked"));
            // Nobody waits any more if the future was dropped; the answer is then of no use.
            drop(answer.send(result));
        });
        Ok(receiver)
    }
}

fn lost_work_error() -> Error {
    Error::internal("work on the CPU pool ended without an answer")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use docmill_core::fault::Fault;

    #[tokio::test]
    async fn work_runs_elsewhere_and_its_answer_comes_back() {
        let pool = CpuPool::new(1).unwrap();
        let here = std::thread::current().id();
        let there = pool.run(|| std::thread::current().id()).await.unwrap();
        assert_ne!(here, there);
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_fault_and_the_pool_goes_on() {
        let pool = CpuPool::new(1).unwrap();
        let error = pool.run::<(), _>(|| panic!("on purpose")).await.unwrap_err();
        assert_eq!(error.fault, Fault::Internal);
        assert!(!error.to_string().contains("on purpose"), "a panic's text may hold content");
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_that_is_over_its_limit_is_left_behind_and_keeps_its_core() {
        let pool = CpuPool::new(1).unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let stuck = move || gate.recv().is_ok();
        assert!(pool.run_within(Duration::from_millis(1), stuck).await.unwrap().is_none());
        assert_eq!(pool.free.available_permits(), 0);
        release.send(()).unwrap();
        assert_eq!(pool.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_whose_future_is_dropped_while_it_waits_never_starts() {
        let pool = Arc::new(CpuPool::new(1).unwrap());
        let (release, gate) = mpsc::channel::<()>();
        let running = pool.start_work(move || gate.recv().is_ok()).await.unwrap();
        let (started, starts) = mpsc::channel::<()>();
        let waiting = pool.run(move || started.send(()).is_ok());
        assert!(futures::poll!(Box::pin(waiting)).is_pending());
        release.send(()).unwrap();
        assert!(running.await.unwrap().unwrap());
        pool.run(|| ()).await.unwrap();
        assert_eq!(starts.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
