//! The calls that wait for one limiter, and those that were put off and will come back.
//!
//! Each tenant and priority has a line of its own, oldest job first; lines take turns by the weight of
//! their priority (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996). A call that is put off
//! keeps its place in the count: those behind it are told the wait that they really have. Pure; the
//! caller supplies the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use time::OffsetDateTime;
use tokio::sync::Notify;
use tokio::time::Instant;

use docmill_core::model::{IngestionId, Priority};
use docmill_core::turn::JobTurn;

/// Most jobs that are remembered as put off; more are not counted.
const MAX_PUT_OFF: usize = 50_000;

/// Whose calls stand in one line; `None`: those of no job, which do not wait behind any.
type LineKey = Option<(Priority, Option<String>)>;

/// Calls of one line in their order: by the age of the job, then by arrival.
type PlaceInLine = (Option<OffsetDateTime>, u64);

/// A call's place among all that wait for a limiter.
#[derive(Debug, Clone)]
pub(super) struct CallPlace {
    line: LineKey,
    place: PlaceInLine,
    job: Option<IngestionId>,
}

/// The calls of one tenant and priority.
#[derive(Debug, Default)]
struct Line {
    /// Virtual time at which its next call is to go.
    due: f64,
    waiting: BTreeMap<PlaceInLine, Arc<Notify>>,
    /// Jobs by age that were put off.
    put_off: BTreeMap<(OffsetDateTime, IngestionId), Instant>,
}

/// How many calls come before one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallsAhead {
    /// Of those that wait here now.
    pub(super) waiting: usize,
    /// With those that were put off.
    pub(super) all: usize,
}

/// All lines of a limiter.
#[derive(Debug, Default)]
pub(super) struct WaitingLines {
    next: u64,
    waiting: usize,
    /// Virtual time: when the call that went last was due.
    now: f64,
    lines: HashMap<LineKey, Line>,
    /// Put-off jobs by the time at which they come back.
    returns: BTreeMap<(Instant, IngestionId), (LineKey, OffsetDateTime)>,
}

impl Line {
    fn is_over(&self, now: f64) -> bool {
        self.waiting.is_empty() && self.put_off.is_empty() && self.due <= now
    }

    fn start(&self, now: f64) -> f64 {
        self.due.max(now)
    }
}

impl WaitingLines {
    /// A place for a call of this job, behind all calls of older jobs of its line.
    pub(super) fn take_place(&mut self, turn: Option<&JobTurn>) -> CallPlace {
        self.next += 1;
        CallPlace {
            line: turn.map(|turn| (turn.priority, turn.tenant.clone())),
            place: (turn.map(|turn| turn.created_at), self.next),
            job: turn.map(|turn| turn.id),
        }
    }

    /// The call waits for its turn, and is told when to look.
    pub(super) fn enter(&mut self, call: &CallPlace, turn: Arc<Notify>, now: Instant) {
        self.forget_returned(now);
        self.forget_put_off(call);
        let line = self.lines.entry(call.line.clone()).or_default();
        if line.waiting.insert(call.place, turn).is_none() {
            self.waiting += 1;
        }
    }

    /// The call does not wait any more.
    pub(super) fn leave(&mut self, call: &CallPlace) {
        let Some(line) = self.lines.get_mut(&call.line) else { return };
        if line.waiting.remove(&call.place).is_some() {
            self.waiting -= 1;
        }
        if line.is_over(self.now) {
            self.lines.remove(&call.line);
        }
    }

    /// The call goes out: it has had its line's turn.
    pub(super) fn note_sent(&mut self, call: &CallPlace) {
        let line = self.lines.entry(call.line.clone()).or_default();
        self.now = line.start(self.now);
        line.due = self.now + 1.0 / weight(&call.line);
        let now = self.now;
        self.lines.retain(|_, line| !line.is_over(now));
    }

    /// The call's job is put off until then. Not counted if too many are.
    pub(super) fn note_put_off(&mut self, call: &CallPlace, until: Instant) {
        self.forget_put_off(call);
        let (Some(id), Some(created_at)) = (call.job, call.place.0) else { return };
        if self.returns.len() >= MAX_PUT_OFF {
            return;
        }
        let line = self.lines.entry(call.line.clone()).or_default();
        line.put_off.insert((created_at, id), until);
        self.returns.insert((until, id), (call.line.clone(), created_at));
    }

    /// The call whose turn is next.
    fn first(&self) -> Option<(PlaceInLine, &Arc<Notify>)> {
        let heads = self.lines.values().filter_map(|line| {
            let (place, turn) = line.waiting.first_key_value()?;
            Some((line.start(self.now), *place, turn))
        });
        let first = heads.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        first.map(|(_, place, turn)| (place, turn))
    }

    /// Whether the next turn is this call's.
    pub(super) fn is_first(&self, call: &CallPlace) -> bool {
        self.first().is_some_and(|(place, _)| place == call.place)
    }

    /// Tells the first call to look again.
    pub(super) fn wake_first(&self) {
        if let Some((_, turn)) = self.first() {
            turn.notify_one();
        }
    }

    /// Calls that wait here now.
    pub(super) fn count_waiting(&self) -> usize {
        self.waiting
    }

    /// How many calls come before this one as the lines take turns.
    pub(super) fn count_ahead(&mut self, call: &CallPlace, now: Instant) -> CallsAhead {
        self.forget_returned(now);
        let own = self.lines.get(&call.line);
        let older = own.map_or(0, |line| line.waiting.range(..call.place).count());
        let put_off = match (own, call.place.0, call.job) {
            (Some(line), Some(created_at), Some(id)) => {
                line.put_off.range(..(created_at, id)).count()
            }
            _ => 0,
        };
        let start = own.map_or(self.now, |line| line.start(self.now));
        let others = self.lines.iter().filter(|(key, _)| **key != call.line);
        let mut ahead = CallsAhead { waiting: older, all: older + put_off };
        for (key, line) in others {
            let turns = |own: usize| {
                let due = start + count_as_f64(own) / weight(&call.line);
                turns_until(due - line.start(self.now), weight(key))
            };
            ahead.waiting += line.waiting.len().min(turns(older));
            ahead.all += (line.waiting.len() + line.put_off.len()).min(turns(older + put_off));
        }
        ahead
    }

    /// Jobs whose time is over stand in line elsewhere, or come back any moment.
    fn forget_returned(&mut self, now: Instant) {
        while let Some(first) = self.returns.first_entry()
            && first.key().0 <= now
        {
            let ((_, id), (key, created_at)) = first.remove_entry();
            if let Some(line) = self.lines.get_mut(&key) {
                line.put_off.remove(&(created_at, id));
            }
        }
    }

    fn forget_put_off(&mut self, call: &CallPlace) {
        let (Some(id), Some(created_at)) = (call.job, call.place.0) else { return };
        let Some(line) = self.lines.get_mut(&call.line) else { return };
        if let Some(until) = line.put_off.remove(&(created_at, id)) {
            self.returns.remove(&(until, id));
        }
    }
}

/// How many calls a line of this weight sends within a virtual time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a line can hold"
)]
fn turns_until(time: f64, weight: f64) -> usize {
    (time * weight).ceil().clamp(0.0, 1e9) as usize
}

fn count_as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// Turns of a line against one of weight 1: as the tiers of a queue share slots by default. Calls of
/// no job are few and come at once.
fn weight(line: &LineKey) -> f64 {
    match line {
        None => 1e6,
        Some((Priority::Critical, _)) => 16.0,
        Some((Priority::High, _)) => 8.0,
        Some((Priority::Normal, _)) => 4.0,
        Some((Priority::Low, _)) => 2.0,
        Some((Priority::Background, _)) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn job(id: u128, tenant: &str, priority: Priority) -> JobTurn {
        JobTurn {
            id: IngestionId(Uuid::from_u128(id)),
            priority,
            tenant: (!tenant.is_empty()).then(|| tenant.to_owned()),
            created_at: OffsetDateTime::UNIX_EPOCH
                + time::Duration::microseconds(i64::try_from(id).unwrap()),
            waited: Duration::ZERO,
        }
    }

    fn enter(lines: &mut WaitingLines, job: &JobTurn) -> CallPlace {
        let place = lines.take_place(Some(job));
        lines.enter(&place, Arc::new(Notify::new()), Instant::now());
        place
    }

    /// Sends all that wait; their jobs in the order of their turns.
    fn send_all(lines: &mut WaitingLines, mut waiting: Vec<CallPlace>) -> Vec<u128> {
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let at = waiting.iter().position(|call| lines.is_first(call)).unwrap();
            let call = waiting.remove(at);
            lines.leave(&call);
            lines.note_sent(&call);
            order.push(call.job.unwrap().0.as_u128());
        }
        order
    }

    #[test]
    fn the_oldest_job_goes_first_whenever_it_came() {
        let mut lines = WaitingLines::default();
        let jobs = [5, 1, 9, 3].map(|id| job(id, "", Priority::Normal));
        let waiting = jobs.iter().map(|job| enter(&mut lines, job)).collect();
        assert_eq!(send_all(&mut lines, waiting), [1, 3, 5, 9]);
        assert_eq!(lines.count_waiting(), 0);
        assert!(lines.lines.len() <= 1, "{:?}", lines.lines);
    }

    #[test]
    fn a_tenant_with_a_long_line_of_old_jobs_leaves_every_other_turn_to_another() {
        let mut lines = WaitingLines::default();
        let many = (1..=6).map(|id| job(id, "many", Priority::Normal));
        let few = (101..=102).map(|id| job(id, "few", Priority::Normal));
        let waiting = many.chain(few).map(|job| enter(&mut lines, &job)).collect();
        assert_eq!(send_all(&mut lines, waiting), [1, 101, 2, 102, 3, 4, 5, 6]);
    }

    #[test]
    fn urgent_jobs_get_more_turns_and_the_others_some() {
        let mut lines = WaitingLines::default();
        let normal = (1..=4).map(|id| job(id, "", Priority::Normal));
        let critical = (101..=108).map(|id| job(id, "", Priority::Critical));
        let waiting = normal.chain(critical).map(|job| enter(&mut lines, &job)).collect();
        let order = send_all(&mut lines, waiting);
        assert_eq!(order.iter().take(10).filter(|id| **id > 100).count(), 8, "{order:?}");
        assert!(order.iter().take(5).any(|id| *id < 100), "{order:?}");
    }

    #[test]
    fn the_calls_ahead_are_those_that_really_go_before() {
        let mut lines = WaitingLines::default();
        let jobs: Vec<JobTurn> = (0..40)
            .map(|id| {
                let tenant = if id % 3 == 0 { "a" } else { "b" };
                job(id, tenant, if id % 5 == 0 { Priority::High } else { Priority::Normal })
            })
            .collect();
        let waiting: Vec<_> = jobs.iter().map(|job| enter(&mut lines, job)).collect();
        let told: HashMap<u128, usize> = waiting
            .iter()
            .map(|call| {
                let ahead = lines.count_ahead(call, Instant::now());
                (call.job.unwrap().0.as_u128(), ahead.waiting)
            })
            .collect();
        for (place, id) in send_all(&mut lines, waiting).into_iter().enumerate() {
            assert!(
                told[&id].abs_diff(place) <= 3,
                "{id}: {} told, {place} came before",
                told[&id]
            );
        }
    }

    #[test]
    fn older_jobs_that_were_put_off_are_counted_until_they_come_back() {
        let (mut lines, now) = (WaitingLines::default(), Instant::now());
        let old = [1, 2, 3].map(|id| enter(&mut lines, &job(id, "", Priority::Normal)));
        let young = enter(&mut lines, &job(9, "", Priority::Normal));
        for (call, seconds) in old.iter().zip(1..) {
            lines.leave(call);
            lines.note_put_off(call, now + SECOND * seconds);
        }
        let all = |lines: &mut WaitingLines, after: u32| {
            lines.count_ahead(&young, now + SECOND * after).all
        };
        assert_eq!(all(&mut lines, 0), 3);
        assert_eq!(all(&mut lines, 1), 2, "the first may stand anywhere now");
        lines.enter(&old[2], Arc::new(Notify::new()), now);
        assert_eq!(lines.count_ahead(&young, now), CallsAhead { waiting: 1, all: 2 });
        assert_eq!(all(&mut lines, 9), 1);
        assert_eq!(lines.returns.len(), 0);
    }

    #[test]
    fn no_more_jobs_are_remembered_than_the_bound() {
        let (mut lines, now) = (WaitingLines::default(), Instant::now());
        for id in 0..u128::try_from(MAX_PUT_OFF).unwrap() + 10 {
            let place = lines.take_place(Some(&job(id, "", Priority::Normal)));
            lines.note_put_off(&place, now + SECOND);
        }
        assert_eq!(lines.returns.len(), MAX_PUT_OFF);
        let last = lines.take_place(Some(&job(1 << 40, "", Priority::Normal)));
        assert_eq!(lines.count_ahead(&last, now + SECOND).all, 0);
    }
}
