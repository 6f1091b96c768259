//! The memory scheduler for models that run on this machine.
//!
//! Such a model takes gigabytes of one device while it is loaded, and several do not fit at once.
//! Calls wait in one queue for each model; a model gets a turn (a reservation on one device) when
//! it fits, and its calls go out in order until the queue is empty or others have waited long
//! enough. Which model is next is decided by `plan`, pure; the queues of calls are kept by `desk`,
//! pure; `devices` reads what is free and `board` lets the processes of this machine share it.
//!
//! Nothing is durable here and nothing needs to be: a call that waits belongs to a job whose
//! message is in the queue. Not promised: that the server loads a model where and when it gets its
//! turn; docmill does not load models, it only keeps calls apart that would not fit together.

mod call_queues;
mod devices;
mod driver;
mod plan;
mod shared_state;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

pub use devices::{DeviceProbe, select_probe};
pub use plan::{
    DeviceMemory, IdleModel, MemoryDevice, MemoryNeed, ModelDemand, ModelTurn, held_mib,
};
pub use shared_state::{ProcessState, read_states};

use call_queues::{CallEnd, CallQueues, QueueRefusal};
use docmill_core::config::SchedulerConfig;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::machine;
use docmill_core::metrics;
use docmill_core::model::{LocalDevice, LocalModelCalls, LocalModelReport, PriceClass};
use docmill_core::turn::{self, JobTurn};
use docmill_core::work_clock::wait_off_clock;
use docmill_llm::{Llm, ModelReply, Prompt, RequestOptions};
use driver::SchedulerDriver;
use plan::SchedulingRules;
use shared_state::SharedState;

/// Gives turns to local models.
pub struct Scheduler {
    config: SchedulerConfig,
    clock: SchedulerClock,
    state: Mutex<SchedulerState>,
    /// The driver's last reading of the devices, and the memory that all processes held then.
    seen: Mutex<SeenDevices>,
    /// Notified when a call arrives or ends.
    changed: Notify,
}

struct SeenDevices {
    devices: Vec<LocalDevice>,
    at_ms: u64,
}

struct SchedulerState {
    queues: CallQueues,
    waiting: HashMap<u64, oneshot::Sender<CallPermit>>,
    tickets: u64,
    /// When each model answered last.
    answered: HashMap<String, Instant>,
}

/// A job that stands in line for a model comes back no sooner.
const MIN_PUT_OFF: Duration = Duration::from_secs(10);

/// The machine's clock as this process counts it on.
struct SchedulerClock {
    began_ms: u64,
    began: Instant,
}

/// Milliseconds of the clock that all processes of this machine share: it cannot be set, and like
/// the clock of `Instant` it stops while the machine is suspended. The time of day would stay wrong
/// in a process that began before it was set.
pub fn machine_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let parts = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(parts).unwrap_or_default()
}

impl SchedulerClock {
    fn start() -> Self {
        Self { began_ms: machine_ms(), began: Instant::now() }
    }

    fn now_ms(&self) -> u64 {
        self.began_ms.saturating_add(as_milliseconds(self.began.elapsed()))
    }
}

fn as_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One call that was let in. Its memory is given back when this is dropped, however the call ended.
pub struct CallPermit {
    scheduler: Arc<Scheduler>,
    model: String,
    since_ms: u64,
    end: CallEnd,
}

impl CallPermit {
    /// Says how the call ended; otherwise it counts as abandoned.
    fn note_end(&mut self, is_answered: bool) {
        self.end = if is_answered { CallEnd::Answered } else { CallEnd::Failed };
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let now_ms = self.scheduler.clock.now_ms();
        let mut state = self.scheduler.lock_state();
        state.queues.finish_call(&self.model, self.since_ms, now_ms, self.end);
        if self.end == CallEnd::Answered {
            state.answered.insert(self.model.clone(), Instant::now());
        }
        drop(state);
        self.scheduler.changed.notify_one();
    }
}

/// A place in a queue, given up when dropped.
struct QueueTicket<'a> {
    scheduler: &'a Scheduler,
    model: &'a str,
    ticket: u64,
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock_state();
        state.queues.leave(self.model, self.ticket);
        // With a permit in it, if it was let in this very moment: dropped outside the lock.
        let left = state.waiting.remove(&self.ticket);
        drop(state);
        drop(left);
        self.scheduler.changed.notify_one();
    }
}

impl Scheduler {
    /// Starts scheduling; `None` if no model is local. Ends when the last use of it is dropped.
    ///
    /// # Errors
    /// A model that fits on no device, by name; devices that cannot be read; a folder that cannot
    /// be used.
    pub fn start(config: &SchedulerConfig) -> Result<Option<Arc<Self>>> {
        if config.local_models().is_empty() {
            return Ok(None);
        }
        Self::with_probe(config, select_probe(config.devices, config.join_devices)).map(Some)
    }

    /// The same over devices that are read in another way.
    ///
    /// # Errors
    /// As `Scheduler::start`.
    pub fn with_probe(config: &SchedulerConfig, probe: Box<dyn DeviceProbe>) -> Result<Arc<Self>> {
        let devices = probe.read_devices()?;
        let needs = model_needs(config, &devices)?;
        let shared = SharedState::create(&config.shared_folder())?;
        let clock = SchedulerClock::start();
        let reading = DeviceMemory { devices, at_ms: clock.now_ms() };
        let queues = CallQueues::new(scheduling_rules(config), needs);
        let scheduler = Arc::new(Self {
            config: config.clone(),
            clock,
            state: Mutex::new(SchedulerState {
                queues,
                waiting: HashMap::new(),
                tickets: 0,
                answered: HashMap::new(),
            }),
            seen: Mutex::new(list_seen(&reading, |_| 0)),
            changed: Notify::new(),
        });
        tokio::spawn(SchedulerDriver::new(&scheduler, shared, probe, reading).run());
        Ok(scheduler)
    }

    /// The model behind the scheduler; the model itself if it is not a local one.
    pub fn wrap_model(self: &Arc<Self>, inner: Arc<dyn Llm>) -> Arc<dyn Llm> {
        if !self.config.is_local(inner.model()) {
            return inner;
        }
        Arc::new(ScheduledLlm { inner, scheduler: Arc::clone(self) })
    }

    /// Waits for this model's turn. Dropping the future gives the place up.
    ///
    /// # Errors
    /// [`Fault::InLine`] if too many wait already, or it took too long; [`Fault::Throttled`] if the
    /// model has answered nobody lately.
    pub async fn acquire_turn(self: &Arc<Self>, model: &str) -> Result<CallPermit> {
        let since = Instant::now();
        let (place, granted) = self.join_queue(model)?;
        self.changed.notify_one();
        let granted = tokio::time::timeout(self.config.longest_wait, granted);
        let answer = wait_off_clock(granted).await;
        drop(place);
        let waited = since.elapsed();
        let Ok(Ok(permit)) = answer else {
            metrics::scheduler_put_off(model, "wait");
            return Err(
                self.deferral_error(model, &format!("no memory for it within {waited:.0?}"))
            );
        };
        metrics::scheduler_wait(model, waited);
        Ok(permit)
    }

    fn join_queue<'a>(
        &'a self,
        model: &'a str,
    ) -> Result<(QueueTicket<'a>, oneshot::Receiver<CallPermit>)> {
        let now_ms = self.clock.now_ms();
        let mut state = self.lock_state();
        state.tickets += 1;
        let ticket = state.tickets;
        match state.queues.join(model, ticket, now_ms) {
            Ok(()) => {}
            Err(QueueRefusal::Full) => {
                drop(state);
                metrics::scheduler_put_off(model, "full");
                let most = self.config.max_queue_depth;
                return Err(
                    self.deferral_error(model, &format!("{most} calls wait for it already"))
                );
            }
            Err(QueueRefusal::Unknown) => {
                return Err(Error::internal(format!("model {model} is not scheduled here")));
            }
        }
        let (sender, granted) = oneshot::channel();
        state.waiting.insert(ticket, sender);
        Ok((QueueTicket { scheduler: self, model, ticket }, granted))
    }

    /// The local models and their memory, for the overview of the whole service.
    pub fn report(&self) -> LocalModelReport {
        let now_ms = self.clock.now_ms();
        let demands = self.lock_state().queues.model_demands();
        let seen = self.seen.lock();
        LocalModelReport {
            machine: machine::read_boot_id(),
            read_s: seconds_between(seen.at_ms, now_ms),
            devices: seen.devices.clone(),
            models: demands.iter().map(|demand| count_calls(demand, now_ms)).collect(),
        }
    }

    /// The memory that all processes together hold of a device.
    fn held_mib(&self, device: &str, own: &[ModelDemand], others: &[ProcessState]) -> u64 {
        let others = others.iter().flat_map(|sheet| sheet.posts.iter().cloned());
        let posts: Vec<ModelDemand> = own.iter().cloned().chain(others).collect();
        held_mib(device, &posts)
    }

    /// A job waits without end for a model that serves others: the older it is, the longer its
    /// message is hidden each time.
    fn deferral_error(&self, model: &str, why: &str) -> Error {
        let answered = self.lock_state().answered.get(model).map(Instant::elapsed);
        let serves = answered.is_some_and(|age| age <= turn::SERVED_LATELY);
        let waited = turn::current_turn().map(|turn| turn.waited).unwrap_or_default();
        let fault = match serves {
            true => Fault::InLine(JobTurn::put_off_time(waited, waited / 4, MIN_PUT_OFF)),
            false => Fault::Throttled(None),
        };
        Error::new(fault, format!("local model {model}: {why}"))
    }

    fn lock_state(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock()
    }

    /// Updates the shared state once: turns end and begin, calls are let in. Returns the states of
    /// the other processes. Blocking, for as long as another process holds the lock of the folder.
    fn run_tick(
        self: &Arc<Self>,
        shared: &SharedState,
        reading: &DeviceMemory,
    ) -> Result<Vec<ProcessState>> {
        let (mut state, (queues, let_in, since_ms), others) = shared.update_shared(|others| {
            let posts: Vec<ModelDemand> =
                others.iter().flat_map(|sheet| sheet.posts.iter().cloned()).collect();
            let state = self.lock_state();
            let mut queues = state.queues.clone();
            let now_ms = self.clock.now_ms();
            let let_in = queues.tick(now_ms, reading, &posts);
            let (process, posts) = (std::process::id(), queues.model_demands());
            let sheet = ProcessState { process, posts, reading: reading.clone() };
            (sheet, (state, (queues, let_in, now_ms), others))
        })?;
        // Posted: from here on others leave us the memory, and the calls may go.
        state.queues = queues;
        let senders: Vec<_> = let_in
            .into_iter()
            .filter_map(|(model, ticket)| Some((model, state.waiting.remove(&ticket)?)))
            .collect();
        drop(state);
        for (model, sender) in senders {
            let end = CallEnd::Abandoned;
            let permit = CallPermit { scheduler: Arc::clone(self), model, since_ms, end };
            // Gone meanwhile: the permit comes back and is dropped.
            drop(sender.send(permit));
        }
        Ok(others)
    }
}

/// A local model whose calls wait for their turn.
struct ScheduledLlm {
    inner: Arc<dyn Llm>,
    scheduler: Arc<Scheduler>,
}

#[async_trait]
impl Llm for ScheduledLlm {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    fn request_options(&self) -> Option<&RequestOptions> {
        self.inner.request_options()
    }

    fn price_class(&self) -> PriceClass {
        self.inner.price_class()
    }

    fn is_down(&self) -> bool {
        self.inner.is_down()
    }

    fn refuses_schema(&self, prompt: &Prompt) -> bool {
        self.inner.refuses_schema(prompt)
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let mut permit = self.scheduler.acquire_turn(self.inner.model()).await?;
        let answer = self.inner.complete(prompt).await;
        permit.note_end(answer.is_ok());
        answer
    }
}

/// The devices of a reading, with what is held of each.
fn list_seen(reading: &DeviceMemory, held_mib: impl Fn(&str) -> u64) -> SeenDevices {
    SeenDevices {
        devices: reading
            .devices
            .iter()
            .map(|device: &MemoryDevice| LocalDevice {
                name: device.name.clone(),
                total_mib: device.total_mib,
                free_mib: device.free_mib,
                held_mib: held_mib(&device.name),
            })
            .collect(),
        at_ms: reading.at_ms,
    }
}

fn count_calls(demand: &ModelDemand, now_ms: u64) -> LocalModelCalls {
    LocalModelCalls {
        model: demand.model.clone(),
        needs_mib: match demand.need {
            MemoryNeed::Mib(mib) => Some(mib),
            MemoryNeed::Alone => None,
        },
        state: demand.state(),
        device: demand.device().map(str::to_owned),
        running: demand.running,
        waiting: u32::try_from(demand.waiting).unwrap_or(u32::MAX),
        oldest_s: demand.oldest_ms.map(|since_ms| seconds_between(since_ms, now_ms)),
    }
}

fn seconds_between(since_ms: u64, now_ms: u64) -> f64 {
    Duration::from_millis(now_ms.saturating_sub(since_ms)).as_secs_f64()
}

fn scheduling_rules(config: &SchedulerConfig) -> SchedulingRules {
    SchedulingRules {
        margin_mib: config.margin_mib,
        quantum_ms: as_milliseconds(config.quantum),
        overdue_ms: as_milliseconds(config.overdue_after),
        calls_at_once: config.calls_at_once,
        max_queue_depth: config.max_queue_depth,
    }
}

/// Each model's memory need; refuses models that could never run.
fn model_needs(
    config: &SchedulerConfig,
    devices: &[MemoryDevice],
) -> Result<Vec<(String, MemoryNeed)>> {
    let most = devices
        .iter()
        .map(|device: &MemoryDevice| device.total_mib.saturating_sub(config.margin_mib))
        .max()
        .unwrap_or(0);
    let mut needs = Vec::new();
    let mut too_large = Vec::new();
    for (model, budget) in config.local_models() {
        match budget {
            Some(mib) if mib > most => too_large.push(format!("{model} ({mib} MiB)")),
            Some(mib) => needs.push((model, MemoryNeed::Mib(mib))),
            None => {
                tracing::warn!(
                    llm.model = model,
                    "model {model} has no budget in llm.scheduler.budgets_mib: it runs alone on \
                     its device"
                );
                needs.push((model, MemoryNeed::Alone));
            }
        }
    }
    if too_large.is_empty() {
        return Ok(needs);
    }
    Err(Error::new(
        Fault::Misconfigured,
        format!(
            "llm.scheduler.budgets_mib: {} would fit on no device; the largest has {most} MiB after \
             llm.scheduler.margin_mib",
            too_large.join(", ")
        ),
    ))
}
