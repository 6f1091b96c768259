//! CPU work on a [`rayon::ThreadPool`] of its own, of a fixed size, behind an async call.
//!
//! [`CpuPool::run`] first waits for a free core, in the order of calls, and then starts the work.
//! Work whose future is dropped while it waits never starts. No document can fill the pool ahead of
//! others by more than the few pages that its reader requests at a time. Work that has started
//! cannot be stopped from outside: after a dropped future or a passed limit it keeps its core until
//! it ends, so page work carries deadlines of its own. An abort of the process (a failed allocation,
//! a stack overflow) is not survived: work on the bytes of documents belongs into a
//! [page process](super::ProcessPool).

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Semaphore, oneshot};

use docmill_core::fault::{Error, Result};
use docmill_core::work_clock::wait_off_clock;

/// Stack of a thread that works on documents. Parsers of nested formats recurse; the memory is
/// only touched when it is used.
pub const STACK_BYTES: usize = 32 << 20;

/// A piece of work for a page thread.
type PageWork = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this thread is inside of a piece of page work.
    static IS_WORKING: Cell<bool> = const { Cell::new(false) };
}

/// Threads that take work in the order in which it comes, and end with the last of it.
///
/// A rayon thread that waits, for a part of its page or for another pool, runs other tasks
/// meanwhile. Parts of pages are short. A whole page is not: the waiting page would lose that time,
/// and its own limit counts it. Work therefore waits in a queue of ours, and rayon gets one turn
/// for each piece; a turn that comes to a thread inside of page work is offered to all threads
/// instead.
#[derive(Debug)]
pub(crate) struct PageThreads {
    pool: ThreadPool,
    queue: Arc<WorkQueue>,
}

#[derive(Default)]
struct WorkQueue(Mutex<VecDeque<PageWork>>);

impl std::fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkQueue").finish_non_exhaustive()
    }
}

impl WorkQueue {
    fn take_turn(self: Arc<Self>) {
        if IS_WORKING.get() {
            // A thread inside of page work skips its part, and looks into the queue afterwards.
            rayon::spawn_broadcast(move |_| self.work_off());
        } else {
            self.work_off();
        }
    }

    fn work_off(&self) {
        if IS_WORKING.replace(true) {
            return;
        }
        while let Some(work) = self.pop() {
            // An unwinding task would abort the process. The caller notices a dropped sender.
            drop(catch_unwind(AssertUnwindSafe(work)));
        }
        IS_WORKING.set(false);
    }

    fn pop(&self) -> Option<PageWork> {
        self.0.lock().pop_front()
    }
}

impl PageThreads {
    /// Starts `count` threads, at least one; none is started later.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(count.max(1))
            .stack_size(STACK_BYTES)
            .thread_name(|index| format!("page-{index}"))
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { pool, queue: Arc::default() })
    }

    /// Runs `work` as soon as a thread is free. A panic ends this piece of work only.
    pub(crate) fn run(&self, work: PageWork) {
        self.queue.0.lock().push_back(work);
        let queue = Arc::clone(&self.queue);
        self.pool.spawn(move || queue.take_turn());
    }
}

/// A bounded number of threads for work that keeps a core busy.
#[derive(Debug)]
pub struct CpuPool {
    threads: PageThreads,
    free: Arc<Semaphore>,
}

impl CpuPool {
    /// A pool of `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// The system refuses to start the threads.
    pub fn new(threads: usize) -> Result<Self> {
        let count = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        let threads = PageThreads::start(count)
            .map_err(|error| Error::internal("cannot start the CPU pool").with_source(error))?;
        Ok(Self { threads, free: Arc::new(Semaphore::new(count)) })
    }

    /// How many pieces of work run at the same time.
    pub fn thread_count(&self) -> usize {
        self.threads.pool.current_num_threads()
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
        self.start_work(work).await?.await.map_err(|_| panic_error())
    }

    /// As [`CpuPool::run`], but returns `None` for work that takes longer than `limit`, counted from its
    /// start. The work itself goes on until it notices.
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
            Ok(answer) => answer.map(Some).map_err(|_| panic_error()),
            Err(_elapsed) => Ok(None),
        }
    }

    /// Waits for a core and starts `work` there; the sender of its answer is dropped if it panics.
    async fn start_work<T, F>(&self, work: F) -> Result<oneshot::Receiver<T>>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let permit = wait_off_clock(Arc::clone(&self.free).acquire_owned()).await;
        let permit = permit.map_err(|_| Error::internal("the CPU pool is closed"))?;
        let span = tracing::Span::current();
        let (answer, receiver) = oneshot::channel();
        self.threads.run(Box::new(move || {
            let result = span.in_scope(work);
            drop(permit);
            // No receiver is left if the future was dropped.
            drop(answer.send(result));
        }));
        Ok(receiver)
    }
}

/// The receiver's error: the sender was dropped by an unwinding piece of work.
fn panic_error() -> Error {
    Error::internal("work on the CPU pool panicked")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use docmill_core::fault::Fault;

    /// Only a hang takes this long.
    const HANG_TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn work_that_waits_when_the_pool_is_dropped_is_done_in_order_and_then_the_threads_end() {
        let (started, done) = mpsc::channel();
        let threads = PageThreads::start(1).unwrap();
        for number in 0..100 {
            let started = started.clone();
            threads.run(Box::new(move || started.send(number).unwrap()));
        }
        drop((threads, started));
        assert_eq!(done.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_ends_its_own_piece_of_work_only() {
        let threads = PageThreads::start(1).unwrap();
        let (done, answers) = mpsc::channel();
        threads.run(Box::new(|| panic!("on purpose")));
        threads.run(Box::new(move || done.send(7).unwrap()));
        assert_eq!(answers.recv_timeout(HANG_TIMEOUT), Ok(7));
    }

    #[test]
    fn no_page_is_begun_by_a_thread_whose_page_waits_for_another_pool() {
        let (threads, other) = (PageThreads::start(1).unwrap(), PageThreads::start(1).unwrap());
        let (entered, is_waiting) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let (order, orders) = mpsc::channel();
        let (first, second) = (order.clone(), order);
        threads.run(Box::new(move || {
            other.pool.install(move || {
                entered.send(()).unwrap();
                gate.recv().unwrap();
            });
            first.send("the page that waits").unwrap();
        }));
        is_waiting.recv_timeout(HANG_TIMEOUT).unwrap();
        threads.run(Box::new(move || second.send("the next page").unwrap()));
        // One for `threads`, one for the turn of the page that waits: the next page's turn was taken.
        let began = std::time::Instant::now();
        while Arc::strong_count(&threads.queue) > 2 {
            assert!(began.elapsed() < HANG_TIMEOUT);
            std::thread::yield_now();
        }
        release.send(()).unwrap();
        let order: Vec<_> = orders.iter().collect();
        assert_eq!(order, ["the page that waits", "the next page"]);
    }

    #[test]
    fn a_page_is_read_by_the_idle_thread_while_another_page_waits_for_another_pool() {
        let (threads, other) = (PageThreads::start(2).unwrap(), PageThreads::start(1).unwrap());
        let other = Arc::new(other);
        for round in 0..200 {
            let (entered, is_waiting) = mpsc::channel();
            let (release, gate) = mpsc::channel::<()>();
            let (done, answers) = mpsc::channel();
            let (first, second, other) = (done.clone(), done, Arc::clone(&other));
            threads.run(Box::new(move || {
                other.pool.install(move || {
                    entered.send(()).unwrap();
                    gate.recv().unwrap();
                });
                first.send(std::thread::current().id()).unwrap();
            }));
            is_waiting.recv_timeout(HANG_TIMEOUT).unwrap();
            threads.run(Box::new(move || second.send(std::thread::current().id()).unwrap()));
            let next = answers.recv_timeout(HANG_TIMEOUT).unwrap();
            release.send(()).unwrap();
            assert_ne!(Ok(next), answers.recv_timeout(HANG_TIMEOUT), "round {round}");
        }
    }

    #[tokio::test]
    async fn work_runs_on_another_thread_and_its_answer_comes_back() {
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
    async fn work_over_its_limit_is_abandoned_and_keeps_its_core() {
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
        assert!(running.await.unwrap());
        pool.run(|| ()).await.unwrap();
        assert_eq!(starts.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
