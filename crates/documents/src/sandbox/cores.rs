//! Which page gets a core next.
//!
//! Two rules share the cores' time. Two thirds go to the oldest waiting document, in order of
//! arrival, so that a backlog ends one document after the other instead of all at its end. One
//! third goes to the document on which the least work was done, the newest of equals. A document of
//! milliseconds therefore waits for the current page and not for the backlog of long ones, and its
//! length need not be known beforehand.
//!
//! Before both rules comes the tenants' share: while others wait, no page of a tenant that is more
//! than [`MAX_LEAD`] of core time ahead of the one served least gets a core. Time of pages that
//! were stopped for their length counts several times. A tenant alone has all cores.
//!
//! Not promised: how long a page holds its core; its own time limit bounds that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Parts of the cores' time for the oldest document; the one with the least work has one.
const PARTS_FOR_OLDEST: u32 = 2;
/// Core time that a tenant may have more than the one served least. Documents that take less are
/// read in the order of their arrival, across tenants.
const MAX_LEAD: Duration = Duration::from_secs(30);
/// The next request of a document comes within this time after an answer. For so long a core is
/// kept from a tenant that is ahead and whose pages are long.
const NEXT_REQUEST_TIMEOUT: Duration = Duration::from_millis(100);
/// The least time of such a page: what an idle core costs stays small beside it.
const MIN_LONG_PAGE: Duration = Duration::from_secs(2);
/// A page that was stopped for its length counts so many times besides.
const OVER_TIME_PENALTY: u32 = 3;
/// Upper bound of a tenant's penalties together.
const MAX_PENALTY: Duration = Duration::from_secs(600);

/// The cores, and the requests that wait for one.
#[derive(Debug)]
pub(super) struct CoreQueue {
    began: Instant,
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
    /// Tenants that wait for a core or have one, and those that had one since cores were last idle.
    tenants: HashMap<Option<Arc<str>>, TenantUse>,
    /// Since when a core is kept idle, by the queue's clock.
    kept_since: Option<Duration>,
    /// Whether requests are looked at again after [`NEXT_REQUEST_TIMEOUT`].
    is_timer_set: bool,
}

/// The core time of a tenant, since all cores were last idle.
#[derive(Debug, Default)]
struct TenantUse {
    waiting: usize,
    running: usize,
    /// Core time of requests that have ended; a tenant that joins begins with the least of others.
    used: Duration,
    penalty: Duration,
    /// Time of its longest request.
    longest: Duration,
    /// End of its last request, by the queue's clock.
    ended: Option<Duration>,
    /// Sum of the starts of running requests, by the queue's clock.
    starts: Duration,
}

/// The core time up to which a tenant gets cores while others wait.
#[derive(Debug, Clone, Copy)]
struct ShareLimit {
    /// For a tenant of short pages: beside tenants that wait.
    of_waiting: Duration,
    /// For one of long pages: also beside tenants whose next request is expected.
    with_expected: Duration,
}

impl TenantUse {
    fn is_active(&self) -> bool {
        self.waiting + self.running > 0
    }

    /// Whether the next request of a document is likely to come at once.
    fn is_expected(&self, now: Duration) -> bool {
        self.ended.is_some_and(|ended| now < ended + NEXT_REQUEST_TIMEOUT)
    }

    /// Core time that counts at `now`, of running requests too.
    fn counted(&self, now: Duration) -> Duration {
        let running = now * u32::try_from(self.running).unwrap_or(u32::MAX);
        self.used + self.penalty + running.saturating_sub(self.starts)
    }
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
    tenant: Option<Arc<str>>,
    turn: oneshot::Sender<CorePermit>,
}

/// A core, until this is dropped.
#[derive(Debug)]
pub(super) struct CorePermit {
    queue: Arc<CoreQueue>,
    rule: SelectionRule,
    tenant: Option<Arc<str>>,
    since: Instant,
    is_over_time: bool,
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
        Arc::new(Self { began: Instant::now(), state: Mutex::new(state) })
    }

    /// Waits for a core for a page of the tenant's document at this position, on which `spent`
    /// milliseconds of work were done so far.
    pub(super) async fn acquire_core(
        self: &Arc<Self>,
        tenant: Option<&Arc<str>>,
        document: u64,
        spent: &Arc<AtomicU64>,
    ) -> CorePermit {
        let (waiting, turn) = {
            let mut state = self.lock_state();
            state.join_tenant(tenant, self.began.elapsed());
            state.asked += 1;
            let place = RequestPosition { document, number: state.asked };
            let (tell, turn) = oneshot::channel();
            let spent_when_queued = spent.load(Ordering::Relaxed);
            let call = WaitingCall {
                spent: Arc::clone(spent),
                spent_when_queued,
                tenant: tenant.cloned(),
                turn: tell,
            };
            state.enqueue_call(place, call);
            (WaitingRequest { queue: self, place }, turn)
        };
        self.grant_cores();
        // The sender is only dropped with the request itself.
        let permit = match turn.await {
            Ok(permit) => permit,
            Err(_) => std::future::pending().await,
        };
        drop(waiting);
        permit
    }

    fn permit(
        self: &Arc<Self>,
        rule: SelectionRule,
        tenant: Option<Arc<str>>,
        state: &mut CoreQueueState,
    ) -> CorePermit {
        let since = Instant::now();
        let of_tenant = state.tenants.entry(tenant.clone()).or_default();
        of_tenant.running += 1;
        of_tenant.starts += since - self.began;
        CorePermit { queue: Arc::clone(self), rule, tenant, since, is_over_time: false }
    }

    /// Hands free cores to the next requests.
    fn grant_cores(self: &Arc<Self>) {
        while let Some((permit, turn)) = self.take_request() {
            // A permit without a receiver is dropped, and so passed on again.
            drop(turn.send(permit));
        }
    }

    fn take_request(self: &Arc<Self>) -> Option<(CorePermit, oneshot::Sender<CorePermit>)> {
        let mut state = self.lock_state();
        if state.free == 0 {
            return None;
        }
        let now = self.began.elapsed();
        state.charge_kept_time(now);
        if let Some((rule, call)) = state.take_next(now) {
            state.free -= 1;
            return Some((self.permit(rule, call.tenant, &mut state), call.turn));
        }
        if state.waiting.is_empty() {
            state.forget_idle_tenants();
            return None;
        }
        state.kept_since = Some(now);
        if !state.is_timer_set && tokio::runtime::Handle::try_current().is_ok() {
            // The core is kept for the next request of a document that has just had one.
            state.is_timer_set = true;
            tokio::spawn(Arc::clone(self).grant_cores_later());
        }
        None
    }

    async fn grant_cores_later(self: Arc<Self>) {
        tokio::time::sleep(NEXT_REQUEST_TIMEOUT).await;
        self.lock_state().is_timer_set = false;
        self.grant_cores();
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

    /// Counts a tenant that asks for a core. One that comes back owes nothing for its absence, and
    /// is owed nothing.
    fn join_tenant(&mut self, tenant: Option<&Arc<str>>, now: Duration) {
        let key = tenant.cloned();
        let known = self.tenants.get(&key);
        if known.is_some_and(|known| known.is_active() || known.is_expected(now)) {
            return;
        }
        let active = self.tenants.values().filter(|other| other.is_active());
        let least = active.map(|other| other.counted(now).saturating_sub(other.penalty)).min();
        let joined = self.tenants.entry(key).or_default();
        joined.used = joined.used.max(least.unwrap_or_default());
    }

    /// Past use is of no account once nobody competes.
    fn forget_idle_tenants(&mut self) {
        if !self.tenants.values().any(TenantUse::is_active) {
            self.tenants.clear();
        }
    }

    /// A kept core is used by those that it is kept for: a stream of small requests keeps none for
    /// ever.
    fn charge_kept_time(&mut self, now: Duration) {
        let Some(since) = self.kept_since.take() else { return };
        let limit = self.share_limit(now).with_expected;
        for tenant in self.tenants.values_mut() {
            if tenant.is_expected(since) && tenant.counted(now) <= limit {
                tenant.used += now.saturating_sub(since);
            }
        }
    }

    /// The core time up to which tenants get cores.
    fn share_limit(&self, now: Duration) -> ShareLimit {
        let (mut waiting, mut expected) = (Duration::MAX, Duration::MAX);
        for tenant in self.tenants.values() {
            let counted = tenant.counted(now).saturating_add(MAX_LEAD);
            if tenant.waiting > 0 {
                waiting = waiting.min(counted);
            } else if tenant.is_expected(now) {
                expected = expected.min(counted);
            }
        }
        ShareLimit { of_waiting: waiting, with_expected: waiting.min(expected) }
    }

    fn is_within(&self, call: &WaitingCall, limit: ShareLimit, now: Duration) -> bool {
        self.tenants.get(&call.tenant).is_none_or(|tenant| {
            let is_long = tenant.longest >= MIN_LONG_PAGE;
            let limit = if is_long { limit.with_expected } else { limit.of_waiting };
            tenant.counted(now) <= limit
        })
    }

    fn enqueue_call(&mut self, place: RequestPosition, call: WaitingCall) {
        self.tenants.entry(call.tenant.clone()).or_default().waiting += 1;
        self.by_work.insert(place.by_work(call.spent_when_queued));
        self.waiting.insert(place, call);
    }

    fn remove_call(&mut self, place: RequestPosition) -> Option<WaitingCall> {
        let call = self.waiting.remove(&place)?;
        if let Some(tenant) = self.tenants.get_mut(&call.tenant) {
            tenant.waiting -= 1;
        }
        self.by_work.remove(&place.by_work(call.spent_when_queued));
        Some(call)
    }

    /// The request that a free core goes to.
    fn take_next(&mut self, now: Duration) -> Option<(SelectionRule, WaitingCall)> {
        let (rule, limit) = (self.next_rule(), self.share_limit(now));
        let place = match rule {
            SelectionRule::Oldest => {
                let mut calls = self.waiting.iter();
                *calls.find(|(_, call)| self.is_within(call, limit, now))?.0
            }
            SelectionRule::LeastWork => self.least_worked_on(limit, now)?,
        };
        Some((rule, self.remove_call(place)?))
    }

    /// The first by current work of a tenant within `limit`: work done since a request was queued
    /// moves it back.
    fn least_worked_on(&mut self, limit: ShareLimit, now: Duration) -> Option<RequestPosition> {
        loop {
            let (first, place) = self.by_work.iter().find_map(|first| {
                let place = RequestPosition { document: first.document.0, number: first.number };
                let call = self.waiting.get(&place)?;
                self.is_within(call, limit, now).then_some((*first, place))
            })?;
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

impl CorePermit {
    /// Counts this time several times: the page was stopped for its length.
    pub(super) fn note_over_time(&mut self) {
        self.is_over_time = true;
    }
}

impl Drop for CorePermit {
    fn drop(&mut self) {
        let used = self.since.elapsed();
        {
            let mut state = self.queue.lock_state();
            if let Some(tenant) = state.tenants.get_mut(&self.tenant) {
                tenant.running -= 1;
                tenant.starts = tenant.starts.saturating_sub(self.since - self.queue.began);
                tenant.used += used;
                tenant.longest = tenant.longest.max(used);
                tenant.ended = Some(self.queue.began.elapsed());
                if self.is_over_time {
                    let penalty = tenant.penalty + used * OVER_TIME_PENALTY;
                    tenant.penalty = penalty.min(MAX_PENALTY);
                }
            }
            match self.rule {
                SelectionRule::Oldest => state.used_by_oldest += used,
                SelectionRule::LeastWork => state.used_by_least_work += used,
            }
            state.free += 1;
        }
        self.queue.grant_cores();
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

    /// A document that cores are asked for.
    #[derive(Clone)]
    struct AskedDocument {
        tenant: Option<Arc<str>>,
        number: u64,
    }

    impl AskedDocument {
        fn of(tenant: &str, number: u64) -> Self {
            Self { tenant: Some(Arc::from(tenant)), number }
        }

        fn of_nobody(number: u64) -> Self {
            Self { tenant: None, number }
        }
    }

    /// Opens a document, which takes so many milliseconds, and reads it, three pages at a time as a
    /// reader with two cores does; returns when it was done.
    async fn read(
        queue: Arc<CoreQueue>,
        of: AskedDocument,
        opening: u64,
        pages: Vec<Duration>,
    ) -> Instant {
        let spent = Arc::new(AtomicU64::new(0));
        let work = |time: Duration| {
            let (queue, of, spent) = (&queue, &of, &spent);
            async move {
                let _core = queue.acquire_core(of.tenant.as_ref(), of.number, spent).await;
                tokio::time::sleep(time).await;
                spent.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
            }
        };
        work(Duration::from_millis(opening)).await;
        futures::stream::iter(pages).for_each_concurrent(3, work).await;
        Instant::now()
    }

    /// Asserts that a backlog of such documents ends in order.
    async fn ends_within_twice_its_share(page: Duration, pages: u32, is_apart: bool) {
        const DOCUMENTS: u32 = 64;
        let (queue, began) = (CoreQueue::new(2), Instant::now());
        let mut ends = JoinSet::new();
        for document in 0..DOCUMENTS {
            let pages = vec![page; usize::try_from(pages).unwrap()];
            let tenant = is_apart.then(|| Arc::from(document.to_string()));
            let reading = read(
                Arc::clone(&queue),
                AskedDocument { tenant, number: document.into() },
                30,
                pages,
            );
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
            ends_within_twice_its_share(page, pages, false).await;
        }
        // Also where each is another tenant's, up to the lead that a tenant may have.
        for (page, pages) in [(PAGE, 8), (PAGE / 3, 8), (PAGE / 10, 8)] {
            ends_within_twice_its_share(page, pages, true).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_document_does_not_wait_for_the_backlog_of_long_ones() {
        let queue = CoreQueue::new(2);
        let mut others = JoinSet::new();
        for document in 0..64 {
            others.spawn(read(
                Arc::clone(&queue),
                AskedDocument::of_nobody(document),
                30,
                vec![PAGE; 25],
            ));
        }
        // While none, some and all of the others are known to be long.
        for (document, pause) in [(64, 2), (65, 30), (66, 400)] {
            tokio::time::sleep(PAGE * pause).await;
            let began = Instant::now();
            let pages = vec![Duration::from_millis(5); 2];
            let end = read(Arc::clone(&queue), AskedDocument::of_nobody(document), 5, pages).await;
            assert!(end - began <= PAGE * 12, "{document}: {:?}", end - began);
        }
        others.abort_all();
    }

    /// One page of a document; `stopped`: it runs over its time.
    async fn read_of(
        queue: Arc<CoreQueue>,
        of: AskedDocument,
        page: Duration,
        stopped: bool,
    ) -> Instant {
        let spent = Arc::new(AtomicU64::new(0));
        let mut core = queue.acquire_core(of.tenant.as_ref(), of.number, &spent).await;
        tokio::time::sleep(page).await;
        if stopped {
            core.note_over_time();
        }
        drop(core);
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_whose_files_are_slow_or_stopped_delays_another_by_a_page_or_two() {
        let began = Instant::now();
        for (page, stopped, cores) in
            [(120, false, 1), (120, true, 1), (10, true, 1), (60, false, 2)]
        {
            // The other tenant's document comes before, among and after the slow ones.
            for position in [0_u64, 6, 12] {
                let (queue, page) = (CoreQueue::new(cores), Duration::from_secs(page));
                let start = Instant::now();
                let mut slow = JoinSet::new();
                for document in (0..13).filter(|document| *document != position) {
                    let evil = AskedDocument::of("evil", document);
                    slow.spawn(read_of(Arc::clone(&queue), evil, page, stopped));
                }
                tokio::task::yield_now().await;
                let mut good = start;
                for _ in 0..4 {
                    let acme = AskedDocument::of("acme", position);
                    let page = Duration::from_millis(100);
                    good = read_of(Arc::clone(&queue), acme, page, false).await;
                }
                let took = good - start;
                let what = format!("{page:?}, stopped {stopped}, place {position}: {took:?}");
                assert!(took <= page * 2 + Duration::from_secs(1), "{what}");
                slow.join_all().await;
                let whole = start.elapsed().as_secs_f64();
                let work = page.as_secs_f64() * 12.0 / f64::from(u32::try_from(cores).unwrap());
                assert!(whole <= work + 2.0, "a core was idle: {whole} for {work}; {what}");
                assert!(queue.lock_state().tenants.is_empty(), "{what}");
            }
        }
        assert!(began.elapsed() > Duration::from_secs(3600));
    }

    /// Reads pages of a busy tenant's document until this time; returns their time together.
    async fn read_until(
        queue: &Arc<CoreQueue>,
        document: u64,
        page: Duration,
        until: Duration,
    ) -> Duration {
        let (mut done, busy) = (Duration::ZERO, AskedDocument::of("busy", document));
        while queue.began.elapsed() < until {
            read_of(Arc::clone(queue), busy.clone(), page, false).await;
            done += page;
        }
        done
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_small_requests_keeps_no_core_idle_for_long() {
        const WATCHED: Duration = Duration::from_secs(600);
        // Pages of the backlog, the pause between small requests, and the least share of the backlog.
        for (page, pause, least) in [(3_000, 80, 0.45), (3_000, 400, 0.9), (50, 80, 0.9)] {
            let (queue, page) = (CoreQueue::new(1), Duration::from_millis(page));
            let backlog = (0..3).map(|document| read_until(&queue, document, page, WATCHED));
            let backlog = futures::future::join_all(backlog);
            let stream = async {
                loop {
                    let small = AskedDocument::of("small", 3);
                    read_of(Arc::clone(&queue), small, Duration::from_millis(5), false).await;
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            };
            let done: Duration = tokio::select! {
                done = backlog => done.into_iter().sum(),
                () = stream => Duration::ZERO,
            };
            let share = done.as_secs_f64() / WATCHED.as_secs_f64();
            assert!(share >= least, "{page:?}, a small request each {pause} ms: {share}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_core_comes_back_whoever_was_to_have_it() {
        let (queue, new) = (CoreQueue::new(1), Arc::new(AtomicU64::new(0)));
        let held = queue.acquire_core(None, 0, &new).await;
        let mut given_up = Box::pin(queue.acquire_core(None, 1, &new));
        assert!(futures::poll!(given_up.as_mut()).is_pending());
        let mut told = Box::pin(queue.acquire_core(None, 2, &new));
        assert!(futures::poll!(told.as_mut()).is_pending());
        drop(given_up);
        drop(held);
        // It was granted the core and never polled.
        drop(told);
        drop(queue.acquire_core(None, 3, &new).await);
        assert_eq!(queue.lock_state().free, 1);
    }
}
