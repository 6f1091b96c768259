//! Page work on the cores: threads of a fixed number behind an async call.
//!
//! [`CpuPool::run`] waits for a free core first and starts second, in the order of asking, so that
//! work whose future is dropped while it waits never starts, and no document can fill the pool
//! ahead of others by more than the few pages its reader asks for at a time. Work that has started
//! cannot be stopped from outside: a dropped future or a passed limit leaves it behind, and its
//! core stays taken until it ends. Page work therefore carries deadlines of its own. What this
//! cannot survive is an abort of the process (a failed allocation, a stack overflow): work on the
//! bytes of documents belongs into a [page process](super::ProcessPool).

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};

use docmill_core::fault::{Error, Result};
use docmill_core::work_clock::wait_off_clock;

/// Stack of a thread that works on documents. Parsers of nested formats recurse; the memory is
/// only touched when it is used.
pub const STACK_BYTES: usize = 32 << 20;

/// Work for a page thread; it never panics.
type PageWork = Box<dyn FnOnce() + Send>;

/// Threads that take work in the order in which it comes, and end with the last of it. None of a
/// rayon pool: those take up other work while they wait for another pool, and a page would wait for
/// the page that its thread has begun meanwhile; and they look for work many times before they rest.
#[derive(Debug)]
pub(crate) struct PageThreads(Arc<WorkQueue>);

/// A piece of work wakes one thread: to hold a lock while waiting for it would wake a second, which then
/// waits in the place of the first.
#[derive(Default)]
struct WorkQueue {
    state: Mutex<WorkQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct WorkQueueState {
    waiting: VecDeque<PageWork>,
    is_closed: bool,
}

impl std::fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkQueue").finish_non_exhaustive()
    }
}

impl WorkQueue {
    /// Waits for work; `None` once there is none and no more will come.
    fn take(&self) -> Option<PageWork> {
        let mut state = self.state.lock();
        loop {
            let next = state.waiting.pop_front();
            if next.is_some() || state.is_closed {
                return next;
            }
            self.changed.wait(&mut state);
        }
    }
}

impl PageThreads {
    /// So many threads, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = Self(Arc::default());
        for index in 0..count.max(1) {
            let queue = Arc::clone(&threads.0);
            let work = move || {
                while let Some(work) = queue.take() {
                    work();
                }
            };
            let named = std::thread::Builder::new().name(format!("page-{index}"));
            named.stack_size(STACK_BYTES).spawn(work)?;
        }
        Ok(threads)
    }

    /// Runs `work` as soon as a thread is free.
    pub(crate) fn run(&self, work: PageWork) {
        self.0.state.lock().waiting.push_back(work);
        self.0.changed.notify_one();
    }
}

impl Drop for PageThreads {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// A bounded number of threads for work that keeps a core busy.
#[derive(Debug)]
pub struct CpuPool {
    threads: PageThreads,
    count: usize,
    free: Arc<Semaphore>,
}

impl CpuPool {
    /// A pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// The system refuses to start the threads.
    pub fn new(threads: usize) -> Result<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if threads == 0 { cores() } else { threads };
        let threads = PageThreads::start(count)
            .map_err(|error| Error::internal("cannot start the CPU pool").with_source(error))?;
        Ok(Self { threads, count, free: Arc::new(Semaphore::new(count)) })
    }

    /// How many pieces of work run at the same time.
    pub fn thread_count(&self) -> usize {
        self.count
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
        self.threads.run(Box::new(move || {
            let result = span.in_scope(|| catch_unwind(AssertUnwindSafe(work)));
            drop(permit);
            let result =
                result.map_err(|_payload| Error::internal("work on the CPU pool panicked"));
            // Nobody waits any more if the future was dropped; the answer is then of no use.
            drop(answer.send(result));
        }));
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

    #[test]
    fn what_waits_when_page_threads_are_given_up_is_still_done_in_its_order_and_then_they_end() {
        let (started, done) = mpsc::channel();
        let threads = PageThreads::start(1).unwrap();
        for number in 0..3 {
            let started = started.clone();
            threads.run(Box::new(move || started.send(number).unwrap()));
        }
        drop((threads, started));
        assert_eq!(done.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }

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
