//! Which page gets a core next.
//!
//! Long documents are read in the order in which they were opened: what is waiting of the oldest
//! goes first, so that a backlog of them ends one after the other instead of all at its end. What
//! nobody knows yet to be long, because little work was done on it so far, does not stand behind
//! that backlog: it has up to a third of the cores' time, in an order of its own. So a document
//! that takes milliseconds waits for the page at hand, and the oldest of the long ones never has
//! less than two thirds of the cores.
//!
//! Not promised: how long a page holds its core. That is for its own limit of time to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// A document on which less work was done so far is not known to be long.
const LITTLE_WORK: Duration = Duration::from_secs(2);
/// Of the cores' time the documents that are not known to be long have one part, the long ones so
/// many.
const PARTS_FOR_LONG: u32 = 2;

/// The cores, and the requests that wait for one.
#[derive(Debug)]
pub(super) struct CoreQueue {
    state: Mutex<CoreQueueState>,
}

#[derive(Debug)]
struct CoreQueueState {
    free: usize,
    /// Requests so far.
    asked: u64,
    short: RequestLine,
    long: RequestLine,
}

/// Requests of one sort.
#[derive(Debug, Default)]
struct RequestLine {
    /// By document and then in the order of asking.
    waiting: BTreeMap<RequestPlace, oneshot::Sender<CorePermit>>,
    /// Time of cores that this sort has had since both sorts were waiting.
    used: Duration,
}

/// A request's place in its line: the number of the document, and its own.
type RequestPlace = (u64, u64);

/// A core, until this is dropped.
#[derive(Debug)]
pub(super) struct CorePermit {
    queue: Arc<CoreQueue>,
    is_long: bool,
    since: Instant,
}

/// A request that waits; dropping it gives its place up.
struct WaitingRequest<'a> {
    queue: &'a CoreQueue,
    is_long: bool,
    place: RequestPlace,
}

impl CoreQueue {
    /// So many cores, all free.
    pub(super) fn new(cores: usize) -> Arc<Self> {
        let (short, long) = (RequestLine::default(), RequestLine::default());
        let state = CoreQueueState { free: cores, asked: 0, short, long };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Waits for a core for a page of this document, on which so much work was done so far.
    /// Documents are numbered in the order in which they were opened.
    pub(super) async fn acquire_core(
        self: &Arc<Self>,
        document: u64,
        spent: Duration,
    ) -> CorePermit {
        let is_long = spent >= LITTLE_WORK;
        let (waiting, turn) = {
            let mut state = self.lock_state();
            if state.free > 0 {
                state.free -= 1;
                return self.permit(is_long);
            }
            state.asked += 1;
            let place = (document, state.asked);
            let (tell, turn) = oneshot::channel();
            state.line(is_long).waiting.insert(place, tell);
            (WaitingRequest { queue: self, is_long, place }, turn)
        };
        // The sender is only dropped with the request itself.
        let permit = match turn.await {
            Ok(permit) => permit,
            Err(_) => std::future::pending().await,
        };
        drop(waiting);
        permit
    }

    fn permit(self: &Arc<Self>, is_long: bool) -> CorePermit {
        CorePermit { queue: Arc::clone(self), is_long, since: Instant::now() }
    }

    /// Hands a core that became free to the next request.
    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut state = self.lock_state();
            let next = state.take_next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some((is_long, turn)) = next {
            // If nobody takes it any more, the permit comes back and is passed on again.
            drop(turn.send(self.permit(is_long)));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, CoreQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CoreQueueState {
    fn line(&mut self, is_long: bool) -> &mut RequestLine {
        if is_long { &mut self.long } else { &mut self.short }
    }

    /// The request that a free core goes to.
    fn take_next(&mut self) -> Option<(bool, oneshot::Sender<CorePermit>)> {
        let is_long = match (self.short.waiting.is_empty(), self.long.waiting.is_empty()) {
            (false, false) => self.short.used * PARTS_FOR_LONG > self.long.used,
            (no_short, _) => {
                // Nobody saves up what nobody else wanted.
                (self.short.used, self.long.used) = (Duration::ZERO, Duration::ZERO);
                no_short
            }
        };
        let (_, turn) = self.line(is_long).waiting.pop_first()?;
        Some((is_long, turn))
    }
}

impl Drop for CorePermit {
    fn drop(&mut self) {
        self.queue.lock_state().line(self.is_long).used += self.since.elapsed();
        self.queue.pass_on();
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.queue.lock_state().line(self.is_long).waiting.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::task::JoinSet;

    use super::*;

    /// A page takes so long.
    const PAGE: Duration = Duration::from_secs(3);

    /// Reads a document, three pages at a time as a reader with two cores does; returns when it
    /// was done.
    async fn read(queue: Arc<CoreQueue>, document: u64, pages: u32, page: Duration) -> Instant {
        let spent = Mutex::new(Duration::ZERO);
        let read_page = |_| async {
            let so_far = *spent.lock().unwrap();
            let _core = queue.acquire_core(document, so_far).await;
            tokio::time::sleep(page).await;
            *spent.lock().unwrap() += page;
        };
        futures::stream::iter(0..pages).for_each_concurrent(3, read_page).await;
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_backlog_of_long_documents_ends_in_order_each_within_twice_its_share() {
        const DOCUMENTS: u32 = 64;
        const PAGES: u32 = 25;
        let (queue, began) = (CoreQueue::new(2), Instant::now());
        let mut ends = JoinSet::new();
        for document in 0..DOCUMENTS {
            let reading = read(Arc::clone(&queue), document.into(), PAGES, PAGE);
            ends.spawn(async move { (document, reading.await - began) });
        }
        let ended = ends.join_all().await;
        let whole = began.elapsed();
        assert!(whole <= PAGE * (DOCUMENTS * PAGES / 2 + 2), "a core was idle: {whole:?}");
        for (document, took) in ended {
            let share = whole / DOCUMENTS * (document + 1);
            assert!(took <= share * 2, "{document}: {took:?}, its share ends at {share:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_document_does_not_wait_for_the_backlog_of_long_ones() {
        let queue = CoreQueue::new(2);
        let mut others = JoinSet::new();
        for document in 0..64 {
            others.spawn(read(Arc::clone(&queue), document, 25, PAGE));
        }
        // By then the long ones are known.
        tokio::time::sleep(PAGE * 200).await;
        let began = Instant::now();
        let end = read(Arc::clone(&queue), 64, 5, Duration::from_millis(10)).await;
        assert!(end - began <= PAGE * 5, "{:?}", end - began);
        others.abort_all();
    }

    #[tokio::test(start_paused = true)]
    async fn a_core_comes_back_whoever_was_to_have_it() {
        let queue = CoreQueue::new(1);
        let held = queue.acquire_core(0, Duration::ZERO).await;
        let mut given_up = Box::pin(queue.acquire_core(1, Duration::ZERO));
        assert!(futures::poll!(given_up.as_mut()).is_pending());
        let mut told = Box::pin(queue.acquire_core(2, Duration::ZERO));
        assert!(futures::poll!(told.as_mut()).is_pending());
        drop(given_up);
        drop(held);
        // It has been given the core and never looks.
        drop(told);
        drop(queue.acquire_core(3, PAGE).await);
        assert_eq!(queue.lock_state().free, 1);
    }
}
