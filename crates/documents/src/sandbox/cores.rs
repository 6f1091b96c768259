//! Which page gets a core next.
//!
//! Two rules share the cores' time. Two thirds go to the oldest waiting document, in order of
//! arrival, so that a backlog ends one document after the other instead of all at its end. One
//! third goes to the document on which the least work was done, the newest of equals. A document of
//! milliseconds therefore waits for the current page and not for the backlog of long ones, and its
//! length need not be known beforehand.
//!
//! Not promised: how long a page holds its core; its own time limit bounds that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Parts of the cores' time for the oldest document; the one with the least work has one.
const PARTS_FOR_OLDEST: u32 = 2;

/// The cores, and the requests that wait for one.
#[derive(Debug)]
pub(super) struct CoreQueue {
    state: Mutex<CoreQueueState>,
}

#[derive(Debug, Default)]
struct CoreQueueState {
    free: usize,
    /// Requests so far.
    asked: u64,
    /// The oldest comes first.
    waiting: BTreeMap<RequestPosition, WaitingCall>,
    /// The same requests, the one with the least work on its document first.
    by_work: BTreeSet<WorkPosition>,
    /// Core time granted by each rule.
    used_by_oldest: Duration,
    used_by_least_work: Duration,
}

/// The rule by which a request got its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SelectionRule {
    Oldest,
    LeastWork,
}

/// A request's position by age; the smallest is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestPosition {
    /// The document's position.
    document: u64,
    /// Requests are numbered as they come.
    number: u64,
}

/// A request's position by the work on its document; the smallest is served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WorkPosition {
    /// Milliseconds of work when it was queued.
    spent: u64,
    document: Reverse<u64>,
    number: u64,
}

/// A caller that waits for a core.
#[derive(Debug)]
struct WaitingCall {
    /// Milliseconds of work on the document so far.
    spent: Arc<AtomicU64>,
    /// The same when it was queued.
    spent_when_queued: u64,
    turn: oneshot::Sender<CorePermit>,
}

/// A core, until this is dropped.
#[derive(Debug)]
pub(super) struct CorePermit {
    queue: Arc<CoreQueue>,
    rule: SelectionRule,
    since: Instant,
}

/// A request that waits; dropping it leaves the queue.
struct WaitingRequest<'a> {
    queue: &'a CoreQueue,
    place: RequestPosition,
}

impl CoreQueue {
    /// A queue for `cores` cores, all free.
    pub(super) fn new(cores: usize) -> Arc<Self> {
        let state = CoreQueueState { free: cores, ..CoreQueueState::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Waits for a core for a page of the document at this position, on which `spent` milliseconds
    /// of work were done so far.
    pub(super) async fn acquire_core(
        self: &Arc<Self>,
        document: u64,
        spent: &Arc<AtomicU64>,
    ) -> CorePermit {
        let (waiting, turn) = {
            let mut state = self.lock_state();
            if state.free > 0 {
                state.free -= 1;
                return self.permit(state.next_rule());
            }
            state.asked += 1;
            let place = RequestPosition { document, number: state.asked };
            let (tell, turn) = oneshot::channel();
            let spent_when_queued = spent.load(Ordering::Relaxed);
            let call = WaitingCall { spent: Arc::clone(spent), spent_when_queued, turn: tell };
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

    fn permit(self: &Arc<Self>, rule: SelectionRule) -> CorePermit {
        CorePermit { queue: Arc::clone(self), rule, since: Instant::now() }
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
        if let Some((rule, turn)) = next {
            // A permit without a receiver is dropped, and so passed on again.
            drop(turn.send(self.permit(rule)));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, CoreQueueState> {
        self.state.lock()
    }
}

impl CoreQueueState {
    /// The rule that has had less than its share.
    fn next_rule(&self) -> SelectionRule {
        if self.used_by_least_work * PARTS_FOR_OLDEST > self.used_by_oldest {
            SelectionRule::Oldest
        } else {
            SelectionRule::LeastWork
        }
    }

    fn enqueue_call(&mut self, place: RequestPosition, call: WaitingCall) {
        self.by_work.insert(place.by_work(call.spent_when_queued));
        self.waiting.insert(place, call);
    }

    fn remove_call(&mut self, place: RequestPosition) -> Option<WaitingCall> {
        let call = self.waiting.remove(&place)?;
        self.by_work.remove(&place.by_work(call.spent_when_queued));
        Some(call)
    }

    /// The request that a free core goes to.
    fn take_next(&mut self) -> Option<(SelectionRule, oneshot::Sender<CorePermit>)> {
        let rule = self.next_rule();
        let place = match rule {
            SelectionRule::Oldest => *self.waiting.first_key_value()?.0,
            SelectionRule::LeastWork => self.least_worked_on()?,
        };
        Some((rule, self.remove_call(place)?.turn))
    }

    /// The first by current work: work done since a request was queued moves it back.
    fn least_worked_on(&mut self) -> Option<RequestPosition> {
        loop {
            let first = *self.by_work.first()?;
            let place = RequestPosition { document: first.document.0, number: first.number };
            let call = self.waiting.get_mut(&place)?;
            let spent = call.spent.load(Ordering::Relaxed);
            if spent <= first.spent {
                return Some(place);
            }
            call.spent_when_queued = spent;
            self.by_work.remove(&first);
            self.by_work.insert(place.by_work(spent));
        }
    }
}

impl RequestPosition {
    fn by_work(self, spent: u64) -> WorkPosition {
        WorkPosition { spent, document: Reverse(self.document), number: self.number }
    }
}

impl Drop for CorePermit {
    fn drop(&mut self) {
        let used = self.since.elapsed();
        {
            let mut state = self.queue.lock_state();
            match self.rule {
                SelectionRule::Oldest => state.used_by_oldest += used,
                SelectionRule::LeastWork => state.used_by_least_work += used,
            }
        }
        self.queue.pass_on();
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.queue.lock_state().remove_call(self.place);
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::task::JoinSet;

    use super::*;

    /// Time of a page.
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

    /// Asserts that a backlog of such documents ends in order.
    async fn ends_within_twice_its_share(page: Duration, pages: u32) {
        const DOCUMENTS: u32 = 64;
        let (queue, began) = (CoreQueue::new(2), Instant::now());
        let mut ends = JoinSet::new();
        for document in 0..DOCUMENTS {
            let pages = vec![page; usize::try_from(pages).unwrap()];
            let reading = read(Arc::clone(&queue), document.into(), 30, pages);
            ends.spawn(async move { (document, reading.await - began) });
        }
        let ended = ends.join_all().await;
        let whole = began.elapsed();
        let opening = Duration::from_millis(30) * DOCUMENTS;
        let work = (page * DOCUMENTS * pages + opening) / 2;
        assert!(whole <= work + page * 2, "a core was idle: {whole:?} for {work:?}");
        for (document, took) in ended {
            let share = whole / DOCUMENTS * (document + 1);
            let what = format!("{pages} pages of {page:?}, document {document}");
            assert!(took <= share * 2 + page, "{what}: {took:?}, its share ends at {share:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_backlog_ends_in_order_each_document_within_twice_its_share() {
        // From very long documents to ones that end before their length shows.
        for (page, pages) in [(PAGE, 25), (PAGE / 3, 8), (PAGE / 10, 8), (PAGE / 30, 8)] {
            ends_within_twice_its_share(page, pages).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_document_does_not_wait_for_the_backlog_of_long_ones() {
        let queue = CoreQueue::new(2);
        let mut others = JoinSet::new();
        for document in 0..64 {
            others.spawn(read(Arc::clone(&queue), document, 30, vec![PAGE; 25]));
        }
        // While none, some and all of the others are known to be long.
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
        // It was granted the core and never polled.
        drop(told);
        drop(queue.acquire_core(3, &new).await);
        assert_eq!(queue.lock_state().free, 1);
    }
}
