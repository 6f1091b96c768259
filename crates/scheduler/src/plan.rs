//! Which model gets memory next: pure. Everything it needs comes in, a decision goes out.
//!
//! Demands and holdings of every process of this machine are given as [`ModelDemand`]s. Two bounds
//! hold for each device: the memory held, counted once for each model, never exceeds its memory
//! less the margin; and a model that is not loaded yet must fit into the memory really free, less
//! that of models about to load. Order: overdue models first, of these the one whose last turn is
//! longest ago; then the deepest queue, with points for waiting and for being loaded already. An
//! overdue model that does not fit keeps others off the devices that it could run on. A turn that
//! others wait for admits no call that would probably end after its quantum.
//!
//! A server may have loaded a model long before we came, and its memory is missing from what is
//! free then. So a device without turns is tried where the second bound says no: by a model of
//! which nothing is known, and once in `overdue_after` by one that waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use docmill_core::model::LocalModelState;

/// How old a reading may be for turns to begin by it, in milliseconds.
const READING_HOLDS: u64 = 10_000;
/// Points of one waiting call.
const CALL: u64 = 1_000;
/// Milliseconds of waiting for one point: ten seconds weigh as much as one more call.
const WAITING: u64 = 10;
/// Points for a model that is loaded: loading another takes as long as some calls.
const LOADED: u64 = 8 * CALL;

/// One device, in MiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDevice {
    /// The same name in every process of this machine.
    pub name: String,
    /// All of its memory.
    pub total_mib: u64,
    /// Free memory when it was measured.
    pub free_mib: u64,
}

/// A reading of the devices, and its time. Times are milliseconds of the machine's own clock
/// everywhere here ([`super::machine_ms`]), because processes compare them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// All devices of this machine.
    pub devices: Vec<MemoryDevice>,
    /// When they were read.
    pub at_ms: u64,
}

impl DeviceMemory {
    pub(super) fn find_device(&self, device: &str) -> Option<&MemoryDevice> {
        self.devices.iter().find(|it| it.name == device)
    }
}

/// A model's memory need on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryNeed {
    /// A fixed amount, in MiB.
    Mib(u64),
    /// Unknown: nothing else may run there.
    Alone,
}

/// Memory that a model has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// Name of the device.
    pub device: String,
    /// Since when; several processes that share a turn share its beginning.
    pub began_ms: u64,
    /// When it was known to be loaded: its first call was answered, or it was loaded before.
    pub loaded_ms: Option<u64>,
    /// Idle models had to leave the device for it.
    pub evicts: bool,
}

/// A model without a turn that its server has probably still loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleModel {
    /// Name of the device.
    pub device: String,
    /// When it was known to be loaded.
    pub since_ms: u64,
    /// Other free memory at that time, to notice when the server unloads the model.
    pub free_mib: u64,
}

/// One process's demand and holding of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDemand {
    /// Name of the model.
    pub model: String,
    /// The memory it needs while it is loaded.
    pub need: MemoryNeed,
    /// Number of calls that wait for it.
    pub waiting: usize,
    /// Since when the oldest of them does.
    pub oldest_ms: Option<u64>,
    /// Number of calls under way.
    pub running: u32,
    /// The turn it has; `None` while it holds no memory.
    pub turn: Option<ModelTurn>,
    /// The device on which it is idle, still loaded but without a turn.
    pub idle: Option<IdleModel>,
    /// The longest of its late calls, loading aside; 0: not known. Workers of an earlier version
    /// do not write it.
    #[serde(default)]
    pub longest_ms: u64,
    /// When its last turn ended; 0 if it has had none.
    #[serde(default)]
    pub ended_ms: u64,
}

impl ModelDemand {
    /// The state of the model, as far as its process has seen.
    pub fn state(&self) -> LocalModelState {
        match (&self.turn, &self.idle) {
            (Some(turn), _) if turn.loaded_ms.is_some() => LocalModelState::Loaded,
            (Some(_), _) => LocalModelState::Loading,
            (None, _) if self.waiting > 0 => LocalModelState::Waiting,
            (None, Some(_)) => LocalModelState::Idle,
            (None, None) => LocalModelState::Absent,
        }
    }

    /// The device that it has, or on which it is idle.
    pub fn device(&self) -> Option<&str> {
        self.turn
            .as_ref()
            .map(|turn| turn.device.as_str())
            .or_else(|| self.idle.as_ref().map(|idle| idle.device.as_str()))
    }
}

/// The operator's settings that the plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchedulingRules {
    pub(super) margin_mib: u64,
    pub(super) quantum_ms: u64,
    pub(super) overdue_ms: u64,
    pub(super) calls_at_once: u32,
    pub(super) max_queue_depth: usize,
}

/// A model gets memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnStart {
    pub(super) model: String,
    pub(super) device: String,
    /// Whether the model is loaded there already.
    pub(super) loaded: bool,
    pub(super) evicts: bool,
}

/// Which turns begin, and which models give way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TurnDecision {
    pub(super) starts: Vec<TurnStart>,
    /// Models that start no further call, so that others get their memory.
    pub(super) yields: BTreeSet<String>,
    /// Overdue models that no device has room for even without turns and idle models, and the MiB
    /// that other programs use of the one where they use least.
    pub(super) shut_out: BTreeMap<String, u64>,
}

/// One model over all processes.
struct ModelView<'a> {
    model: &'a str,
    need: MemoryNeed,
    waiting: usize,
    oldest_ms: u64,
    turn: Option<ModelTurn>,
    idle: Option<&'a IdleModel>,
    longest_ms: u64,
    ended_ms: u64,
}

impl ModelView<'_> {
    fn is_idle_on(&self, device: &MemoryDevice) -> bool {
        self.idle.is_some_and(|idle| idle.device == device.name)
    }

    /// Whether it may begin where the reading shows no room for it.
    fn may_try(&self, now_ms: u64, rules: SchedulingRules) -> bool {
        let since_ms = self.oldest_ms.max(self.ended_ms);
        self.ended_ms == 0 || now_ms.saturating_sub(since_ms) >= rules.overdue_ms
    }
}

/// Why a model may begin on a device; the best reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StartReason {
    /// It is loaded there.
    Loaded,
    /// There is room for it.
    Room,
    /// It may be loaded there without our knowing.
    Try,
}

/// One device and what is left of it.
struct DeviceRoom<'a> {
    device: &'a MemoryDevice,
    capacity: u64,
    margin: u64,
    held: u64,
    /// Held, but not yet missing from what is free.
    loading: u64,
    /// MiB that would become free if idle models were unloaded.
    reclaimable: u64,
    /// Memory taken by idle models since the reading, which still shows it as free.
    unseen: u64,
    turns: usize,
    alone: bool,
    /// Kept for an overdue model.
    kept: bool,
}

/// Whether a turn's memory is still to disappear from what is free.
fn is_loading(turn: &ModelTurn, reading: &DeviceMemory) -> bool {
    turn.loaded_ms.is_none_or(|loaded| reading.at_ms <= loaded)
}

/// Whether the reading still shows an idle model as loaded. A reading from before cannot know; and
/// when half of its memory has come free, the server has let it go. Of a model without a budget
/// that is half of all that was in use.
pub(super) fn is_still_loaded(idle: &IdleModel, need: MemoryNeed, reading: &DeviceMemory) -> bool {
    reading.at_ms <= idle.since_ms
        || reading.find_device(&idle.device).is_some_and(|device| {
            let mib = match need {
                MemoryNeed::Mib(mib) => mib,
                MemoryNeed::Alone => device.total_mib.saturating_sub(idle.free_mib),
            };
            device.free_mib < idle.free_mib.saturating_add(mib / 2)
        })
}

impl<'a> DeviceRoom<'a> {
    fn new(device: &'a MemoryDevice, margin: u64) -> Self {
        Self {
            device,
            capacity: device.total_mib.saturating_sub(margin),
            margin,
            held: 0,
            loading: 0,
            reclaimable: 0,
            unseen: 0,
            turns: 0,
            alone: false,
            kept: false,
        }
    }

    fn fits_capacity(&self, need: MemoryNeed) -> bool {
        match need {
            MemoryNeed::Alone => true,
            MemoryNeed::Mib(mib) => mib <= self.capacity,
        }
    }

    /// Whether it fits without unloading an idle model.
    fn fits_beside_idle(&self, mib: u64) -> bool {
        let wanted = [mib, self.loading, self.unseen, self.margin];
        wanted.into_iter().fold(0, u64::saturating_add) <= self.device.free_mib
    }

    /// Why a model may begin here now; `None`: it may not.
    fn find_reason(&self, view: &ModelView<'_>, may_try: bool) -> Option<StartReason> {
        let fits = match view.need {
            MemoryNeed::Alone => self.turns == 0,
            MemoryNeed::Mib(mib) => !self.alone && self.held.saturating_add(mib) <= self.capacity,
        };
        let has_room = match view.need {
            MemoryNeed::Alone => true,
            MemoryNeed::Mib(mib) => {
                let wanted = mib.saturating_add(self.loading).saturating_add(self.margin);
                wanted <= self.device.free_mib.saturating_add(self.reclaimable)
            }
        };
        match fits {
            false => None,
            true if view.is_idle_on(self.device) => Some(StartReason::Loaded),
            true if has_room => Some(StartReason::Room),
            true => (may_try && self.turns == 0).then_some(StartReason::Try),
        }
    }

    /// Whether a model could begin here if no turn were left and no other model idle. So long as
    /// turns are still loading this is said too often, never too seldom.
    fn could_hold(&self, need: MemoryNeed) -> bool {
        match need {
            MemoryNeed::Alone => true,
            MemoryNeed::Mib(mib) => {
                let most = self.device.total_mib.saturating_sub(self.foreign_mib());
                self.alone || mib.saturating_add(self.margin) <= most
            }
        }
    }

    /// Memory held neither by turns nor by idle models.
    fn foreign_mib(&self) -> u64 {
        let ours = self.held.saturating_add(self.reclaimable);
        self.device.total_mib.saturating_sub(self.device.free_mib).saturating_sub(ours)
    }

    /// An idle model's memory: free for others, as soon as they are loaded.
    fn add_idle(&mut self, idle: &IdleModel, need: MemoryNeed, reading: &DeviceMemory) {
        let is_seen = reading.at_ms > idle.since_ms;
        let in_use = self.device.total_mib.saturating_sub(self.device.free_mib);
        let (sum, mib) = match (need, is_seen) {
            (MemoryNeed::Mib(mib), true) => (&mut self.reclaimable, mib),
            (MemoryNeed::Mib(mib), false) => (&mut self.unseen, mib),
            // It may be all that is in use.
            (MemoryNeed::Alone, _) => (&mut self.reclaimable, in_use),
        };
        *sum = sum.saturating_add(mib);
    }

    fn reserve(&mut self, need: MemoryNeed, loading: bool) {
        self.turns += 1;
        match need {
            MemoryNeed::Alone => {
                self.alone = true;
                self.held = self.capacity;
            }
            MemoryNeed::Mib(mib) => {
                self.held = self.held.saturating_add(mib);
                if loading {
                    self.loading = self.loading.saturating_add(mib);
                }
            }
        }
    }

    /// The remainder in MiB; the device with the smallest is chosen.
    fn remaining_mib(&self, need: MemoryNeed) -> u64 {
        match need {
            // Of unknown need: the device with the most free memory has the smallest value.
            MemoryNeed::Alone => u64::MAX - self.device.free_mib,
            MemoryNeed::Mib(mib) => self.capacity.saturating_sub(self.held).saturating_sub(mib),
        }
    }
}

/// The demands of all processes, merged by model.
fn merge_demands<'a>(posts: &'a [ModelDemand], reading: &DeviceMemory) -> Vec<ModelView<'a>> {
    let mut views: BTreeMap<&str, ModelView<'a>> = BTreeMap::new();
    for post in posts {
        let view = views.entry(&post.model).or_insert(ModelView {
            model: &post.model,
            need: post.need,
            waiting: 0,
            oldest_ms: u64::MAX,
            turn: None,
            idle: None,
            longest_ms: 0,
            ended_ms: 0,
        });
        view.longest_ms = view.longest_ms.max(post.longest_ms);
        view.ended_ms = view.ended_ms.max(post.ended_ms);
        view.need = view.need.max(post.need);
        view.waiting = view.waiting.saturating_add(post.waiting);
        view.oldest_ms = view.oldest_ms.min(post.oldest_ms.unwrap_or(u64::MAX));
        if let Some(turn) = &post.turn {
            view.turn = Some(match view.turn.take() {
                None => turn.clone(),
                Some(other) => merge_turns(other, turn),
            });
        }
        let idle = post.idle.as_ref().filter(|idle| is_still_loaded(idle, post.need, reading));
        view.idle = view.idle.into_iter().chain(idle).min_by_key(|idle| idle.since_ms);
    }
    for view in views.values_mut().filter(|view| view.turn.is_some()) {
        view.idle = None;
    }
    views.into_values().collect()
}

/// One turn of several processes: begun with the first, loaded once for all.
fn merge_turns(one: ModelTurn, other: &ModelTurn) -> ModelTurn {
    let loaded_ms = match (one.loaded_ms, other.loaded_ms) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let began_ms = one.began_ms.min(other.began_ms);
    ModelTurn { began_ms, loaded_ms, evicts: one.evicts || other.evicts, ..one }
}

/// The memory held on a device, counting each model once; the memory of a model that runs alone is
/// unknown.
pub fn held_mib(device: &str, posts: &[ModelDemand]) -> u64 {
    let mut models: BTreeMap<&str, u64> = BTreeMap::new();
    for post in posts
        .iter()
        .filter(|post: &&ModelDemand| post.turn.as_ref().is_some_and(|turn| turn.device == device))
    {
        if let MemoryNeed::Mib(mib) = post.need {
            let held = models.entry(&post.model).or_default();
            *held = (*held).max(mib);
        }
    }
    models.values().sum()
}

/// The turn that a model has anywhere.
pub(super) fn find_turn(
    model: &str,
    posts: &[ModelDemand],
    reading: &DeviceMemory,
) -> Option<ModelTurn> {
    merge_demands(posts, reading).into_iter().find(|view| view.model == model)?.turn
}

fn device_rooms<'a>(
    views: &[ModelView<'_>],
    reading: &'a DeviceMemory,
    rules: SchedulingRules,
) -> Vec<DeviceRoom<'a>> {
    let mut rooms: Vec<DeviceRoom<'a>> =
        reading.devices.iter().map(|device| DeviceRoom::new(device, rules.margin_mib)).collect();
    for room in &mut rooms {
        for view in views {
            if let Some(turn) = view.turn.as_ref().filter(|turn| turn.device == room.device.name) {
                room.reserve(view.need, is_loading(turn, reading));
            }
            if let Some(idle) = view.idle.filter(|_| view.is_idle_on(room.device)) {
                room.add_idle(idle, view.need, reading);
            }
        }
    }
    rooms
}

/// Decides over everything that lies on the table; nothing, if what is free is not known.
pub(super) fn decide_turns(
    posts: &[ModelDemand],
    reading: &DeviceMemory,
    now_ms: u64,
    rules: SchedulingRules,
) -> TurnDecision {
    if now_ms.saturating_sub(reading.at_ms) > READING_HOLDS {
        return TurnDecision::default();
    }
    let views = merge_demands(posts, reading);
    let mut rooms = device_rooms(&views, reading, rules);
    let mut candidates: Vec<&ModelView<'_>> =
        views.iter().filter(|view| view.waiting > 0 && view.turn.is_none()).collect();
    let is_overdue =
        |view: &ModelView<'_>| now_ms.saturating_sub(view.oldest_ms) >= rules.overdue_ms;
    candidates.sort_by_key(|view| rank(view, now_ms, is_overdue(view)));
    let mut decision = TurnDecision::default();
    // Devices that models which were left out could run on.
    let mut wanted = Vec::new();
    for view in candidates {
        let may_try = view.may_try(now_ms, rules);
        if let Some(start) = start_turn(view, may_try, &mut rooms) {
            decision.starts.push(start);
            continue;
        }
        let could_run = |room: &DeviceRoom<'_>| {
            room.fits_capacity(view.need) && (may_try || room.could_hold(view.need))
        };
        if is_overdue(view) {
            rooms.iter_mut().filter(|room| could_run(room)).for_each(|room| room.kept = true);
            if !rooms.iter().any(could_run) {
                let large = rooms.iter().filter(|room| room.fits_capacity(view.need));
                let foreign_mib = large.map(DeviceRoom::foreign_mib).min().unwrap_or(0);
                decision.shut_out.insert(view.model.to_owned(), foreign_mib);
            }
        }
        let names = rooms.iter().filter(|room| could_run(room)).map(|room| &room.device.name);
        wanted.extend(names);
    }
    for view in &views {
        let Some(turn) = &view.turn else { continue };
        // A call that begins now ends within the quantum, if it takes no longer than late ones.
        let until_ms = now_ms.saturating_add(view.longest_ms);
        let is_over = until_ms.saturating_sub(turn.began_ms) >= rules.quantum_ms;
        if is_over && wanted.contains(&&turn.device) {
            decision.yields.insert(view.model.to_owned());
        }
    }
    decision
}

/// The smallest goes first.
fn rank<'a>(view: &ModelView<'a>, now_ms: u64, is_overdue: bool) -> impl Ord + use<'a> {
    let waiting = u64::try_from(view.waiting).unwrap_or(u64::MAX).saturating_mul(CALL);
    let loaded = if view.idle.is_some() { LOADED } else { 0 };
    let age = now_ms.saturating_sub(view.oldest_ms);
    let points = match is_overdue {
        true => 0,
        false => waiting.saturating_add(age / WAITING).saturating_add(loaded),
    };
    // By age alone a model whose queue is longer than the bound would be the first for ever.
    let served_ms = if is_overdue { view.ended_ms } else { 0 };
    (Reverse(is_overdue), Reverse(points), served_ms, view.oldest_ms, view.model)
}

/// A turn for a model where it may begin for the best reason, and its memory reserved there.
fn start_turn(
    view: &ModelView<'_>,
    may_try: bool,
    rooms: &mut [DeviceRoom<'_>],
) -> Option<TurnStart> {
    let open = rooms.iter_mut().filter(|room| !room.kept);
    let (reason, room) = open
        .filter_map(|room| Some((room.find_reason(view, may_try)?, room)))
        .min_by_key(|(reason, room)| (*reason, room.remaining_mib(view.need)))?;
    let loaded = reason == StartReason::Loaded;
    let evicts = match view.need {
        MemoryNeed::Alone => true,
        // A trial: the next reading shows which models were unloaded for it.
        MemoryNeed::Mib(mib) => reason == StartReason::Room && !room.fits_beside_idle(mib),
    };
    room.reserve(view.need, !loaded);
    if let (true, MemoryNeed::Mib(mib)) = (loaded, view.need) {
        room.reclaimable = room.reclaimable.saturating_sub(mib);
    }
    let (model, device) = (view.model.to_owned(), room.device.name.clone());
    Some(TurnStart { model, device, loaded, evicts })
}
