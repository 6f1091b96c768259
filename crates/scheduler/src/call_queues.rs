//! The queues of waiting calls of this process, and the memory it holds for their models. Pure: the
//! caller supplies the time, the readings of the devices and the states of other processes.
//!
//! Held memory is never kept as a running sum; it is counted from the turns each time, in whole
//! MiB. So nothing can drift, and a model without a turn holds nothing.

use std::collections::{BTreeMap, VecDeque};

use super::plan::{
    self, DeviceMemory, IdleModel, MemoryNeed, ModelDemand, ModelTurn, SchedulingRules,
    TurnDecision,
};

/// How many call durations are remembered: enough to know the longest, few enough to forget it.
const REMEMBERED: usize = 32;

/// A call that waits for its model to have memory.
#[derive(Debug, Clone, Copy)]
struct TurnRequest {
    ticket: u64,
    since_ms: u64,
}

#[derive(Debug, Clone)]
struct ModelQueue {
    need: MemoryNeed,
    /// First come, first served.
    line: VecDeque<TurnRequest>,
    running: u32,
    turn: Option<ModelTurn>,
    idle: Option<IdleModel>,
    /// Duration of its last calls in milliseconds, without the loading of the model.
    took_ms: VecDeque<u64>,
    /// When its last turn ended, in milliseconds; 0 if it has had none.
    ended_ms: u64,
}

impl ModelQueue {
    fn new(need: MemoryNeed) -> Self {
        Self {
            need,
            line: VecDeque::new(),
            running: 0,
            turn: None,
            idle: None,
            took_ms: VecDeque::new(),
            ended_ms: 0,
        }
    }

    /// Its demand, for the plan and for other processes.
    fn demand(&self, name: &str) -> ModelDemand {
        ModelDemand {
            model: name.to_owned(),
            need: self.need,
            waiting: self.line.len(),
            oldest_ms: self.line.front().map(|waiting| waiting.since_ms),
            running: self.running,
            turn: self.turn.clone(),
            idle: self.idle.clone(),
            longest_ms: self.took_ms.iter().copied().max().unwrap_or(0),
            ended_ms: self.ended_ms,
        }
    }
}

/// The queues of calls and the turns of models.
#[derive(Debug, Clone)]
pub(super) struct CallQueues {
    rules: SchedulingRules,
    models: BTreeMap<String, ModelQueue>,
    /// As of the last tick: [`TurnDecision::shut_out`] of models that wait here.
    shut_out: BTreeMap<String, u64>,
}

/// How a call ended that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    Answered,
    /// An error came back: of a model that was not loaded before, it says that it is not.
    Failed,
    /// Nobody waited for the end, so that nothing is known.
    Abandoned,
}

/// Why a call was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueRefusal {
    Full,
    Unknown,
}

impl CallQueues {
    pub(super) fn new(
        rules: SchedulingRules,
        models: impl IntoIterator<Item = (String, MemoryNeed)>,
    ) -> Self {
        let models = models.into_iter().map(|(name, need)| (name, ModelQueue::new(need))).collect();
        Self { rules, models, shut_out: BTreeMap::new() }
    }

    /// Adds a call to the end of its model's queue.
    pub(super) fn join(
        &mut self,
        model: &str,
        ticket: u64,
        now_ms: u64,
    ) -> Result<(), QueueRefusal> {
        let most = self.rules.max_queue_depth;
        let model = self.models.get_mut(model).ok_or(QueueRefusal::Unknown)?;
        if model.line.len() >= most {
            return Err(QueueRefusal::Full);
        }
        model.line.push_back(TurnRequest { ticket, since_ms: now_ms });
        Ok(())
    }

    /// Removes a call that has stopped waiting; does nothing if it was let in before.
    pub(super) fn leave(&mut self, model: &str, ticket: u64) {
        if let Some(model) = self.models.get_mut(model) {
            model.line.retain(|waiting| waiting.ticket != ticket);
        }
    }

    /// Records that a call that was let in at `since_ms` is over.
    pub(super) fn finish_call(&mut self, model: &str, since_ms: u64, now_ms: u64, end: CallEnd) {
        let Some(model) = self.models.get_mut(model) else { return };
        model.running = model.running.saturating_sub(1);
        let Some(turn) = &mut model.turn else { return };
        // A call that waited for the model to load says nothing about the duration of the next.
        if turn.loaded_ms.is_some_and(|loaded| loaded <= since_ms) {
            model.took_ms.push_back(now_ms.saturating_sub(since_ms));
            if model.took_ms.len() > REMEMBERED {
                model.took_ms.pop_front();
            }
        }
        match end {
            CallEnd::Answered => turn.loaded_ms = turn.loaded_ms.or(Some(now_ms)),
            // The rest of the line would fail as well, if this was only a try.
            CallEnd::Failed if turn.loaded_ms.is_none() && model.running == 0 => {
                model.turn = None;
                model.ended_ms = now_ms;
            }
            CallEnd::Failed | CallEnd::Abandoned => {}
        }
    }

    /// Ends turns, gives turns and lets calls in; returns their models and tickets, in order.
    pub(super) fn tick(
        &mut self,
        now_ms: u64,
        reading: &DeviceMemory,
        others: &[ModelDemand],
    ) -> Vec<(String, u64)> {
        self.forget_idle(reading, others);
        let mut decision = self.decide_turns(now_ms, reading, others);
        if self.end_turns(now_ms, reading, &decision) {
            decision = self.decide_turns(now_ms, reading, others);
        }
        self.begin_turns(now_ms, &decision);
        self.share_turns(reading, others, &decision);
        let let_in = self.admit_calls(&decision);
        decision
            .shut_out
            .retain(|name, _| self.models.get(name).is_some_and(|it| !it.line.is_empty()));
        self.shut_out = decision.shut_out;
        let_in
    }

    /// Models that wait here and fit nowhere beside what others use of the devices, in MiB.
    pub(super) fn list_shut_out(&self) -> &BTreeMap<String, u64> {
        &self.shut_out
    }

    fn decide_turns(
        &self,
        now_ms: u64,
        reading: &DeviceMemory,
        others: &[ModelDemand],
    ) -> TurnDecision {
        let mut posts = self.model_demands();
        posts.extend_from_slice(others);
        plan::decide_turns(&posts, reading, now_ms, self.rules)
    }

    /// A model is no longer loaded once another has taken its memory, or its memory is free again.
    fn forget_idle(&mut self, reading: &DeviceMemory, others: &[ModelDemand]) {
        let own = self.model_demands();
        let evicting: Vec<(String, &str)> = own
            .iter()
            .chain(others)
            .filter_map(|post| {
                let turn = post.turn.as_ref().filter(|turn| turn.evicts)?;
                Some((post.model.clone(), turn.device.as_str()))
            })
            .collect();
        for (name, model) in &mut self.models {
            let gone = model.idle.as_ref().is_some_and(|idle| {
                let evicted =
                    evicting.iter().any(|(by, device)| by != name && *device == idle.device);
                evicted || !plan::is_still_loaded(idle, model.need, reading)
            });
            if gone {
                model.idle = None;
            }
        }
    }

    /// Ends the turns that are over; returns whether there were any.
    fn end_turns(&mut self, now_ms: u64, reading: &DeviceMemory, decision: &TurnDecision) -> bool {
        let mut ended = false;
        for (name, model) in &mut self.models {
            let is_over = model.line.is_empty() || decision.yields.contains(name);
            if model.running > 0 || !is_over {
                continue;
            }
            let Some(turn) = model.turn.take() else { continue };
            ended = true;
            model.ended_ms = now_ms;
            // One that has answered no call was perhaps never loaded.
            model.idle = turn
                .loaded_ms
                .map(|since_ms| idle_model(turn.device, since_ms, model.need, reading));
        }
        ended
    }

    fn begin_turns(&mut self, now_ms: u64, decision: &TurnDecision) {
        for start in &decision.starts {
            // Turns of others are theirs to begin; the room for them is left.
            let Some(model) = self.models.get_mut(&start.model) else { continue };
            if model.line.is_empty() || model.turn.is_some() {
                continue;
            }
            let loaded_at = model.idle.take().map_or(now_ms, |idle| idle.since_ms);
            model.turn = Some(ModelTurn {
                device: start.device.clone(),
                began_ms: now_ms,
                loaded_ms: start.loaded.then_some(loaded_at),
                evicts: start.evicts,
            });
        }
    }

    /// A model that another process has loaded costs nothing more.
    fn share_turns(
        &mut self,
        reading: &DeviceMemory,
        others: &[ModelDemand],
        decision: &TurnDecision,
    ) {
        for (name, model) in &mut self.models {
            if model.turn.is_some() || model.line.is_empty() || decision.yields.contains(name) {
                continue;
            }
            if let Some(turn) = plan::find_turn(name, others, reading) {
                model.idle = None;
                model.turn = Some(ModelTurn { evicts: false, ..turn });
            }
        }
    }

    fn admit_calls(&mut self, decision: &TurnDecision) -> Vec<(String, u64)> {
        let mut let_in = Vec::new();
        for (name, model) in &mut self.models {
            if model.turn.is_none() || decision.yields.contains(name) {
                continue;
            }
            while model.running < self.rules.calls_at_once {
                let Some(next) = model.line.pop_front() else { break };
                model.running += 1;
                let_in.push((name.clone(), next.ticket));
            }
        }
        let_in
    }

    /// Whether nothing waits and no turn is held.
    pub(super) fn is_idle(&self) -> bool {
        self.models.values().all(|model| model.line.is_empty() && model.turn.is_none())
    }

    /// Whether it is idle and no model is, still loaded.
    pub(super) fn is_empty(&self) -> bool {
        self.is_idle() && self.models.values().all(|model| model.idle.is_none())
    }

    /// The demands visible to other processes and operators.
    pub(super) fn model_demands(&self) -> Vec<ModelDemand> {
        self.models.iter().map(|(name, model)| model.demand(name)).collect()
    }
}

/// A model that keeps its memory without a turn. Other free memory is known only from a reading
/// taken after it was loaded.
fn idle_model(
    device: String,
    since_ms: u64,
    need: MemoryNeed,
    reading: &DeviceMemory,
) -> IdleModel {
    let free = reading.find_device(&device).map_or(0, |device| device.free_mib);
    let free_mib = match need {
        MemoryNeed::Mib(mib) if reading.at_ms <= since_ms => free.saturating_sub(mib),
        _ => free,
    };
    IdleModel { device, since_ms, free_mib }
}
