//! Which page gets a core next.
//!
//! Long documents are read in the order in which their jobs were begun: what is waiting of the oldest
//! goes first, so that a backlog of them ends one after the other instead of all at its end. What
//! nobody knows yet to be long, because little work was done on it so far, does not stand behind
//! that backlog: it has up to a third of the cores' time, the one with the least work first. So a
//! document that takes milliseconds waits for the page at hand, and the oldest of the long ones never
//! has less than two thirds of the cores.
//!
//! Not promised: how long a page holds its core. That is for its own limit of time to say.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
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
    waiting: BTreeMap<RequestPlace, WaitingCall>,
    /// Time of cores that this sort has had since both sorts were waiting.
    used: Duration,
}

/// A request's place in its line; the smallest is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestPlace {
    /// Milliseconds of work on the document when it asked; of long ones nothing.
    spent: u64,
    /// The document's own place.
    document: u64,
    /// Requests are numbered as they come.
    number: u64,
}

/// Who waits for a core.
#[derive(Debug)]
struct WaitingCall {
    /// Milliseconds of work on the document so far.
    spent: Arc<AtomicU64>,
    turn: oneshot::Sender<CorePermit>,
}

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
    place: RequestPlace,
}

impl CoreQueue {
    /// So many cores, all free.
    pub(super) fn new(cores: usize) -> Arc<Self> {
        let (short, long) = (RequestLine::default(), RequestLine::default());
        let state = CoreQueueState { free: cores, asked: 0, short, long };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Waits for a core for a page of the document with this place, on which so many milliseconds of
    /// work were `spent` so far.
    pub(super) async fn acquire_core(
        self: &Arc<Self>,
        document: u64,
        spent: &Arc<AtomicU64>,
    ) -> CorePermit {
        let (waiting, turn) = {
            let mut state = self.lock_state();
            if state.free > 0 {
                state.free -= 1;
                return self.permit(is_long(spent));
            }
            state.asked += 1;
            let so_far = spent.load(Ordering::Relaxed);
            let place = RequestPlace { spent: so_far, document, number: state.asked };
            let (tell, turn) = oneshot::channel();
            let call = WaitingCall { spent: Arc::clone(spent), turn: tell };
            state.enqueue_call(place, call);
            (WaitingRequest { queue: self, place }, turn)
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

    fn enqueue_call(&mut self, place: RequestPlace, call: WaitingCall) {
        if is_long(&call.spent) {
            self.long.waiting.insert(place.among_long(), call);
        } else {
            self.short.waiting.insert(place, call);
        }
    }

    /// The request that a free core goes to.
    fn take_next(&mut self) -> Option<(bool, oneshot::Sender<CorePermit>)> {
        self.demote_first_short();
        let is_long = match (self.short.waiting.is_empty(), self.long.waiting.is_empty()) {
            (false, false) => self.short.used * PARTS_FOR_LONG > self.long.used,
            (no_short, _) => {
                // Nobody saves up what nobody else wanted.
                (self.short.used, self.long.used) = (Duration::ZERO, Duration::ZERO);
                no_short
            }
        };
        let (_, call) = self.line(is_long).waiting.pop_first()?;
        Some((is_long, call.turn))
    }

    /// Moves what turned out to be long since it asked, as far as it would be the next.
    fn demote_first_short(&mut self) {
        while let Some(first) = self.short.waiting.first_entry()
            && is_long(&first.get().spent)
        {
            let (place, call) = first.remove_entry();
            self.long.waiting.insert(place.among_long(), call);
        }
    }
}

impl RequestPlace {
    fn among_long(self) -> Self {
        Self { spent: 0, ..self }
    }
}

/// Whether a document is known to be long, by the milliseconds of work on it.
fn is_long(spent: &AtomicU64) -> bool {
    Duration::from_millis(spent.load(Ordering::Relaxed)) >= LITTLE_WORK
}

impl Drop for CorePermit {
    fn drop(&mut self) {
        self.queue.lock_state().line(self.is_long).used += self.since.elapsed();
        self.queue.pass_on();
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock_state();
        // It may have turned out to be long since.
        state.short.waiting.remove(&self.place);
        state.long.waiting.remove(&self.place.among_long());
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::task::JoinSet;

    use super::*;

    /// A page takes so long.
    const PAGE: Duration = Duration::from_secs(3);

    /// Opens a document, which takes so many milliseconds, and reads it, three pages at a time as a
    /// reader with two cores does; returns when it was done.
    async fn read(
        queue: Arc<CoreQueue>,
        document: u64,
        opening: u64,
        pages: Vec<Duration>,
    ) -> Instant {
        let spent = Arc::new(AtomicU64::new(0));
        let work = |time: Duration| {
            let (queue, spent) = (&queue, &spent);
            async move {
                let _core = queue.acquire_core(document, spent).await;
                tokio::time::sleep(time).await;
                spent.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
            }
        };
        work(Duration::from_millis(opening)).await;
        futures::stream::iter(pages).for_each_concurrent(3, work).await;
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_backlog_of_long_documents_ends_in_order_each_within_twice_its_share() {
        const DOCUMENTS: u32 = 64;
        let (queue, began) = (CoreQueue::new(2), Instant::now());
        let mut ends = JoinSet::new();
        for document in 0..DOCUMENTS {
            let pages = vec![PAGE; 25];
            let reading = read(Arc::clone(&queue), document.into(), 30, pages);
            ends.spawn(async move { (document, reading.await - began) });
        }
        let ended = ends.join_all().await;
        let whole = began.elapsed();
        assert!(whole <= PAGE * (DOCUMENTS * 25 / 2 + 2), "a core was idle: {whole:?}");
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
            others.spawn(read(Arc::clone(&queue), document, 30, vec![PAGE; 25]));
        }
        // While none of them is known to be long, some are, and all.
        for (document, pause) in [(64, 2), (65, 30), (66, 400)] {
            tokio::time::sleep(PAGE * pause).await;
            let began = Instant::now();
            let pages = vec![Duration::from_millis(5); 2];
            let end = read(Arc::clone(&queue), document, 5, pages).await;
            assert!(end - began <= PAGE * 12, "{document}: {:?}", end - began);
        }
        others.abort_all();
    }

    #[tokio::test(start_paused = true)]
    async fn a_core_comes_back_whoever_was_to_have_it() {
        let (queue, new) = (CoreQueue::new(1), Arc::new(AtomicU64::new(0)));
        let held = queue.acquire_core(0, &new).await;
        let mut given_up = Box::pin(queue.acquire_core(1, &new));
        assert!(futures::poll!(given_up.as_mut()).is_pending());
        let mut told = Box::pin(queue.acquire_core(2, &new));
        assert!(futures::poll!(told.as_mut()).is_pending());
        drop(given_up);
        drop(held);
        // It has been given the core and never looks.
        drop(told);
        drop(queue.acquire_core(3, &new).await);
        assert_eq!(queue.lock_state().free, 1);
    }
}
