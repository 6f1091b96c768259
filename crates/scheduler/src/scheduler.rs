//! The memory scheduler for models that run on this machine.
//!
//! Such a model takes gigabytes of one device while it is loaded, and several do not fit at once.
//! Calls wait in one line for each model; a model gets a turn (a reservation on one device) when it
//! fits, and its calls go out in order until the line is empty or others have waited long enough.
//! Which model is next is decided by `plan`, pure; the lines are kept by `desk`, pure;
//! `devices` reads what is free and `board` lets the processes of this machine share it.
//!
//! Nothing is durable here and nothing needs to be: a call that waits belongs to a job whose
//! message is in the queue. Not promised: that the server loads a model where and when it gets its
//! turn; docmill does not load models, it only keeps calls apart that would not fit together.

mod board;
mod desk;
mod devices;
mod driver;
mod plan;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

pub use board::{Sheet, look};
pub use devices::{Probe, probe};
pub use plan::{Device, Idle, Need, Post, Reading, Turn, held_mib};

use crate::config::SchedulerConfig;
use crate::fault::{Error, Fault, Result};
use crate::llm::{Llm, Prompt, Reply};
use crate::metrics;
use board::Board;
use desk::{Desk, Refused};
use driver::Driver;
use plan::Rules;

/// Gives turns to local models.
pub struct Scheduler {
    config: SchedulerConfig,
    clock: Clock,
    state: Mutex<State>,
    /// Something came or ended.
    changed: Notify,
}

struct State {
    desk: Desk,
    waiting: HashMap<u64, oneshot::Sender<Permit>>,
    tickets: u64,
}

/// Milliseconds since 1970 that never run backwards within a process.
struct Clock {
    began_ms: u64,
    began: Instant,
}

impl Clock {
    fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began_ms: milliseconds(since), began: Instant::now() }
    }

    fn now_ms(&self) -> u64 {
        self.began_ms.saturating_add(milliseconds(self.began.elapsed()))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One call that was let in. Its memory is given back when this is dropped, however the call ended.
pub struct Permit {
    scheduler: Arc<Scheduler>,
    model: String,
    since_ms: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now_ms = self.scheduler.clock.now_ms();
        self.scheduler.state().desk.finished(&self.model, self.since_ms, now_ms);
        self.scheduler.changed.notify_one();
    }
}

/// A place in a line, given up when dropped.
struct Place<'a> {
    scheduler: &'a Scheduler,
    model: &'a str,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state();
        state.desk.leave(self.model, self.ticket);
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
        Self::over(config, probe(config.devices)?).map(Some)
    }

    /// The same over devices that are read in another way.
    ///
    /// # Errors
    /// As [`Scheduler::start`].
    pub fn over(config: &SchedulerConfig, probe: Box<dyn Probe>) -> Result<Arc<Self>> {
        let devices = probe.read()?;
        let needs = needs(config, &devices)?;
        let board = Board::open(&config.folder())?;
        let clock = Clock::start();
        let reading = Reading { devices, at_ms: clock.now_ms() };
        let desk = Desk::new(rules(config), needs);
        let scheduler = Arc::new(Self {
            config: config.clone(),
            clock,
            state: Mutex::new(State { desk, waiting: HashMap::new(), tickets: 0 }),
            changed: Notify::new(),
        });
        tokio::spawn(Driver::new(&scheduler, board, probe, reading).run());
        Ok(scheduler)
    }

    /// The model behind the scheduler; the model itself if it is not a local one.
    pub fn around(self: &Arc<Self>, inner: Arc<dyn Llm>) -> Arc<dyn Llm> {
        if !self.config.is_local(inner.model()) {
            return inner;
        }
        Arc::new(Scheduled { inner, scheduler: Arc::clone(self) })
    }

    /// Waits for this model's turn. Dropping the future gives the place up.
    ///
    /// # Errors
    /// [`Fault::Throttled`] if too many wait already, or it took too long.
    pub async fn turn(self: &Arc<Self>, model: &str) -> Result<Permit> {
        let since = Instant::now();
        let (place, granted) = self.join(model)?;
        self.changed.notify_one();
        let answer = tokio::time::timeout(self.config.longest_wait, granted).await;
        drop(place);
        let waited = since.elapsed();
        let Ok(Ok(permit)) = answer else {
            metrics::scheduler_put_off(model, "wait");
            return Err(put_off(model, &format!("no memory for it within {waited:.0?}")));
        };
        metrics::scheduler_wait(model, waited);
        Ok(permit)
    }

    fn join<'a>(&'a self, model: &'a str) -> Result<(Place<'a>, oneshot::Receiver<Permit>)> {
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        state.tickets += 1;
        let ticket = state.tickets;
        match state.desk.join(model, ticket, now_ms) {
            Ok(()) => {}
            Err(Refused::Full) => {
                drop(state);
                metrics::scheduler_put_off(model, "full");
                let most = self.config.max_queue_depth;
                return Err(put_off(model, &format!("{most} calls wait for it already")));
            }
            Err(Refused::Unknown) => {
                return Err(Error::internal(format!("model {model} is not scheduled here")));
            }
        }
        let (sender, granted) = oneshot::channel();
        state.waiting.insert(ticket, sender);
        Ok((Place { scheduler: self, model, ticket }, granted))
    }

    /// What all processes together hold of a device.
    fn held_mib(&self, device: &str, own: &[Post], others: &[Sheet]) -> u64 {
        let others = others.iter().flat_map(|sheet| sheet.posts.iter().cloned());
        let posts: Vec<Post> = own.iter().cloned().chain(others).collect();
        held_mib(device, &posts)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One look at the board: turns end and begin, calls are let in. Returns what others have
    /// posted. Blocking, for as long as another process holds the board.
    fn tick(self: &Arc<Self>, board: &Board, reading: &Reading) -> Result<Vec<Sheet>> {
        let (mut state, (desk, let_in, since_ms), others) = board.exchange(|others| {
            let posts: Vec<Post> =
                others.iter().flat_map(|sheet| sheet.posts.iter().cloned()).collect();
            let state = self.state();
            let mut desk = state.desk.clone();
            let now_ms = self.clock.now_ms();
            let let_in = desk.tick(now_ms, reading, &posts);
            let (process, posts) = (std::process::id(), desk.posts());
            let sheet = Sheet { process, posts, reading: reading.clone() };
            (sheet, (state, (desk, let_in, now_ms), others))
        })?;
        // Posted: from here on others leave us the memory, and the calls may go.
        state.desk = desk;
        let senders: Vec<_> = let_in
            .into_iter()
            .filter_map(|(model, ticket)| Some((model, state.waiting.remove(&ticket)?)))
            .collect();
        drop(state);
        for (model, sender) in senders {
            let permit = Permit { scheduler: Arc::clone(self), model, since_ms };
            // Gone meanwhile: the permit comes back and is dropped.
            drop(sender.send(permit));
        }
        Ok(others)
    }
}

/// A local model.
struct Scheduled {
    inner: Arc<dyn Llm>,
    scheduler: Arc<Scheduler>,
}

#[async_trait]
impl Llm for Scheduled {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn ask(&self, prompt: &Prompt) -> Result<Reply> {
        let _permit = self.scheduler.turn(self.inner.model()).await?;
        self.inner.ask(prompt).await
    }
}

fn rules(config: &SchedulerConfig) -> Rules {
    Rules {
        margin_mib: config.margin_mib,
        quantum_ms: milliseconds(config.quantum),
        overdue_ms: milliseconds(config.overdue_after),
        calls_at_once: config.calls_at_once,
        max_queue_depth: config.max_queue_depth,
    }
}

/// What each model needs; refuses those that could never run.
fn needs(config: &SchedulerConfig, devices: &[Device]) -> Result<Vec<(String, Need)>> {
    let room = |device: &Device| device.total_mib.saturating_sub(config.margin_mib);
    let most = devices.iter().map(room).max().unwrap_or(0);
    let mut needs = Vec::new();
    let mut too_large = Vec::new();
    for (model, budget) in config.local_models() {
        match budget {
            Some(mib) if mib > most => too_large.push(format!("{model} ({mib} MiB)")),
            Some(mib) => needs.push((model, Need::Mib(mib))),
            None => {
                tracing::warn!(
                    llm.model = model,
                    "model {model} has no budget in llm.scheduler.budgets_mib: it runs alone on \
                     its device"
                );
                needs.push((model, Need::Alone));
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

fn put_off(model: &str, why: &str) -> Error {
    Error::new(Fault::Throttled(None), format!("local model {model}: {why}"))
}
