//! The turns of suspects: a worker takes one only while it has nothing else in hand.
//!
//! A worker that dies accuses all that it had in hand, so only a death over a single document says
//! anything about it. A [`LoneTurn`] is the right to have suspects in hand: nothing else is claimed
//! until it is dropped. The first ones are alone. Where hundreds were accused by workers that died for
//! another reason, most of them are innocent: a worker takes as many at a time as a quarter of those
//! that it has survived. A death among several accuses them again, and the next process begins with one.
//!
//! A busy worker takes a turn only for a suspect that has waited for
//! [`MAX_SUSPECT_WAIT`]. Then it claims nothing, and the turn begins once its jobs have ended; after
//! it other work has at least as much time. So a suspect waits for two minutes and the longest job of
//! one worker, and for the suspects before it twice the time that they take.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::QueueJobSource;
use crate::runner::{IntakeGate, PauseReason, RunnerHandle};

/// A busy worker makes room for a suspect that was accused so long ago.
pub const MAX_SUSPECT_WAIT: Duration = Duration::from_secs(120);
/// After this the suspects that came together and have not begun are left to other workers.
const MAX_LONE_TURN: Duration = Duration::from_secs(60);
/// For so many suspects that a worker has survived it takes one more at a time.
const SURVIVORS_FOR_ONE: usize = 4;
/// A suspect has nothing beside it but its like.
const SUSPECT: PauseReason = PauseReason::from_label("suspect");

/// Facts that decide whether a worker takes a turn for a suspect.
#[derive(Debug, Clone, Copy)]
pub struct LoneTurnRequest {
    /// A suspect has its turn already.
    pub is_lone: bool,
    /// Jobs run, or claims are being asked for.
    pub is_busy: bool,
    /// How long ago the suspect was accused.
    pub accused_for: Duration,
    /// Other work has had its time since the last turn, or none waits.
    pub is_idle_turn_due: bool,
    /// Other work has had its time since the last turn.
    pub is_forced_turn_due: bool,
}

/// Whether a worker takes a turn: an idle one does, and a busy one for a suspect that has waited for
/// [`MAX_SUSPECT_WAIT`]; one turn at a time.
pub fn takes_turn(request: LoneTurnRequest) -> bool {
    let is_free = !request.is_busy && request.is_idle_turn_due;
    let is_forced = request.accused_for >= MAX_SUSPECT_WAIT && request.is_forced_turn_due;
    !request.is_lone && (is_free || is_forced)
}

/// Work that a worker has in hand, as far as suspects are concerned.
#[derive(Debug, Default)]
pub struct WorkInHand {
    state: Mutex<HandState>,
    /// A claim was answered.
    answered: Notify,
}

#[derive(Debug, Default)]
struct HandState {
    /// Claims that are being asked for.
    claiming: usize,
    /// A suspect has its turn.
    is_lone: bool,
    /// Other work was turned away since the turn began.
    is_wanted: bool,
    /// Before this an idle worker takes no turn, because other work waits.
    next_idle_turn: Option<Instant>,
    /// Before this a busy worker takes no turn.
    next_forced_turn: Option<Instant>,
    /// Suspects that this process has survived.
    survived: usize,
}

/// The right to ask for claims beside other work; dropped once their jobs are started.
#[derive(Debug)]
pub struct ClaimingPass(Arc<WorkInHand>);

impl Drop for ClaimingPass {
    fn drop(&mut self) {
        self.0.lock_state().claiming -= 1;
        self.0.answered.notify_waiters();
    }
}

/// The right to have suspects in hand; meanwhile intake is closed.
#[derive(Debug)]
pub struct LoneTurn {
    hand: Arc<WorkInHand>,
    gate: Arc<IntakeGate>,
    begun: Instant,
}

impl WorkInHand {
    fn lock_state(&self) -> MutexGuard<'_, HandState> {
        self.state.lock()
    }

    /// Begins to ask for claims beside other work; `None` while a suspect has its turn.
    pub fn begin_claiming(self: &Arc<Self>) -> Option<ClaimingPass> {
        let mut state = self.lock_state();
        if state.is_lone {
            state.is_wanted = true;
            return None;
        }
        state.claiming += 1;
        Some(ClaimingPass(Arc::clone(self)))
    }

    /// Takes a turn for a suspect that was accused so long ago; `None`: the worker is busy, or it is
    /// other work's time.
    pub fn take_turn(
        self: &Arc<Self>,
        accused_for: Duration,
        is_work_done: bool,
        gate: &Arc<IntakeGate>,
    ) -> Option<LoneTurn> {
        let begun = Instant::now();
        let mut state = self.lock_state();
        let is_due = |next: Option<Instant>| next.is_none_or(|next| next <= begun);
        let request = LoneTurnRequest {
            is_lone: state.is_lone,
            is_busy: !is_work_done || state.claiming > 0,
            accused_for,
            is_idle_turn_due: is_due(state.next_idle_turn),
            is_forced_turn_due: is_due(state.next_forced_turn),
        };
        if !takes_turn(request) {
            return None;
        }
        (state.is_lone, state.is_wanted) = (true, false);
        gate.close(SUSPECT);
        Some(LoneTurn { hand: Arc::clone(self), gate: Arc::clone(gate), begun })
    }
}

impl LoneTurn {
    /// Returns once the worker is idle or stopping. A finished document whose outcome is still
    /// unwritten, for example behind a locked row, is harmless.
    pub async fn wait_until_empty(&self, runner: &RunnerHandle<QueueJobSource>) {
        loop {
            let answered = self.hand.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if self.hand.lock_state().claiming > 0 {
                tokio::select! {
                    () = answered => continue,
                    () = runner.wait_until_stopping() => return,
                }
            }
            return runner.wait_until_work_done().await;
        }
    }

    /// How many suspects may be in hand at a time.
    pub fn group_size(&self) -> usize {
        (self.hand.lock_state().survived / SURVIVORS_FOR_ONE).max(1)
    }

    /// The worker has survived so many more.
    pub fn note_survived(&self, count: usize) {
        self.hand.lock_state().survived += count;
    }

    /// Whether intake is closed for another reason as well: the turn is over.
    pub fn is_paused(&self) -> bool {
        self.gate.is_paused_beside(SUSPECT)
    }

    /// Whether there is time for another suspect than the first.
    pub fn has_time(&self) -> bool {
        self.begun.elapsed() < MAX_LONE_TURN && !self.gate.is_on_trial()
    }
}

impl Drop for LoneTurn {
    fn drop(&mut self) {
        let now = Instant::now();
        let next = now + self.begun.elapsed();
        let mut state = self.hand.lock_state();
        state.is_lone = false;
        state.next_idle_turn = state.is_wanted.then_some(next);
        state.next_forced_turn = Some(next);
        drop(state);
        self.gate.open(SUSPECT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn hand() -> (Arc<WorkInHand>, Arc<IntakeGate>) {
        (Arc::default(), Arc::new(IntakeGate::new(S(1), S(15))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_has_its_turn_only_while_nothing_else_is_in_hand() {
        let (hand, gate) = hand();
        let claiming = hand.begin_claiming();
        assert!(hand.take_turn(S(0), true, &gate).is_none(), "claims are being asked for");
        drop(claiming);
        assert!(hand.take_turn(S(0), false, &gate).is_none(), "a job runs");
        let turn = hand.take_turn(S(0), true, &gate);
        assert!(turn.is_some() && gate.is_paused(), "nothing is received beside it");
        assert!(hand.begin_claiming().is_none(), "nothing is claimed beside it");
        assert!(hand.take_turn(S(0), true, &gate).is_none(), "nor is another suspect");
        drop(turn);
        assert!(hand.begin_claiming().is_some() && !gate.is_paused());
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_that_has_waited_has_its_turn_at_a_busy_worker_and_then_other_work_has_as_long()
     {
        let (hand, gate) = hand();
        assert!(hand.take_turn(MAX_SUSPECT_WAIT - S(1), false, &gate).is_none());
        let turn = hand.take_turn(MAX_SUSPECT_WAIT, false, &gate);
        assert!(turn.is_some());
        tokio::time::advance(S(50)).await;
        drop(turn);
        tokio::time::advance(S(49)).await;
        assert!(hand.take_turn(MAX_SUSPECT_WAIT, false, &gate).is_none());
        tokio::time::advance(S(1)).await;
        assert!(hand.take_turn(MAX_SUSPECT_WAIT, false, &gate).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn suspects_are_alone_until_many_are_survived_and_never_more_than_a_quarter_of_those() {
        let (hand, gate) = hand();
        let turn = hand.take_turn(S(0), true, &gate).unwrap();
        let (mut survived, mut sizes) = (0, Vec::new());
        for _ in 0..16 {
            sizes.push(turn.group_size());
            survived += turn.group_size();
            turn.note_survived(turn.group_size());
        }
        assert_eq!(sizes[..8], [1; 8]);
        assert!(sizes.iter().all(|size| *size == 1 || size * 4 <= survived), "{sizes:?}");
        assert_eq!(sizes[8..], [2, 2, 3, 3, 4, 5, 6, 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_worker_takes_one_suspect_after_another_until_other_work_comes() {
        let (hand, gate) = hand();
        for _ in 0..3 {
            let turn = hand.take_turn(S(0), true, &gate);
            assert!(turn.is_some(), "nothing else waits");
            tokio::time::advance(S(10)).await;
        }
        let turn = hand.take_turn(S(0), true, &gate);
        assert!(hand.begin_claiming().is_none(), "turned away");
        tokio::time::advance(S(10)).await;
        drop(turn);
        assert!(hand.take_turn(S(0), true, &gate).is_none(), "other work has its time first");
        tokio::time::advance(S(10)).await;
        assert!(hand.take_turn(S(0), true, &gate).is_some());
    }
}
