//! The task that turns events into updates of the shared state: one for each scheduler, so that its
//! files and devices are never touched twice at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::plan::DeviceMemory;
use super::shared_state::{ProcessState, SharedState};
use super::{DeviceProbe, Scheduler, list_seen};
use docmill_core::fault::Result;
use docmill_core::metrics;

/// How often the shared state is read while something waits or runs: other processes cannot notify
/// us.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How old a reading of the devices may become.
const READ_INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct SchedulerDriver {
    scheduler: Weak<Scheduler>,
    shared: Arc<SharedState>,
    probe: Arc<dyn DeviceProbe>,
    reading: DeviceMemory,
    /// When the devices were read last, or could not be.
    read: Instant,
    /// A look at the devices that is under way.
    looking: Option<JoinHandle<Result<DeviceMemory>>>,
    /// Why the last look at the devices failed.
    unread: Option<String>,
    /// Whether the last attempt to read the devices or the shared state failed: logged once, not
    /// every time.
    troubled: bool,
    /// Models of which was logged that others leave them no room.
    told: BTreeSet<String>,
}

impl SchedulerDriver {
    pub(super) fn new(
        scheduler: &Arc<Scheduler>,
        shared: SharedState,
        probe: Box<dyn DeviceProbe>,
        reading: DeviceMemory,
    ) -> Self {
        Self {
            scheduler: Arc::downgrade(scheduler),
            shared: Arc::new(shared),
            probe: Arc::from(probe),
            reading,
            read: Instant::now(),
            looking: None,
            unread: None,
            troubled: false,
            told: BTreeSet::new(),
        }
    }

    /// Works until the last user of the scheduler is gone.
    pub(super) async fn run(mut self) {
        while let Some(scheduler) = self.scheduler.upgrade() {
            let (is_idle, is_empty) = {
                let state = scheduler.lock_state();
                (state.queues.is_idle(), state.queues.is_empty())
            };
            let wait = if is_idle { Duration::from_secs(1) } else { POLL_INTERVAL };
            // Held for a second at most: the drop of the last use is what ends this task.
            let changed = async move { scheduler.changed.notified().await };
            let was_changed = tokio::time::timeout(wait, changed).await.is_ok();
            if was_changed || !is_idle {
                self.refresh_reading().await;
                self.run_round().await;
            } else if !is_empty {
                // Others may have taken the memory of our idle models, and rely on our state.
                self.run_round().await;
            }
        }
    }

    /// Reads the devices if the last reading is old. A look that takes long is waited for in the
    /// rounds that follow: what ends meanwhile must be posted.
    async fn refresh_reading(&mut self) {
        if self.looking.is_none() && self.read.elapsed() < READ_INTERVAL {
            return;
        }
        let mut looking = match self.looking.take() {
            Some(looking) => looking,
            None => match self.begin_look() {
                Some(looking) => looking,
                None => return,
            },
        };
        let looked = match tokio::time::timeout(POLL_INTERVAL, &mut looking).await {
            Err(_elapsed) => {
                self.looking = Some(looking);
                return;
            }
            Ok(Ok(looked)) => looked.map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(format!("reading the devices failed: {error}")),
        };
        self.read = Instant::now();
        self.unread = looked.map(|reading| self.reading = reading).err();
    }

    #[expect(clippy::disallowed_methods, reason = "one at a time; it waits for a program")]
    fn begin_look(&self) -> Option<JoinHandle<Result<DeviceMemory>>> {
        let at_ms = self.scheduler.upgrade()?.clock.now_ms();
        let probe = Arc::clone(&self.probe);
        Some(tokio::task::spawn_blocking(move || {
            Ok(DeviceMemory { devices: probe.read_devices()?, at_ms })
        }))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "one at a time; it waits for files, not for a core"
    )]
    async fn run_round(&mut self) {
        let Some(scheduler) = self.scheduler.upgrade() else { return };
        let (shared, reading) = (Arc::clone(&self.shared), self.reading.clone());
        let ticked = tokio::task::spawn_blocking(move || scheduler.run_tick(&shared, &reading));
        let trouble = match ticked.await {
            Ok(Ok(others)) => {
                self.update_metrics(&others);
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(format!("reading the shared state failed: {error}")),
        };
        self.log_trouble(trouble.or_else(|| self.unread.clone()));
    }

    /// Trouble, or that there is none any more.
    fn log_trouble(&mut self, trouble: Option<String>) {
        let troubled = trouble.is_some();
        match trouble {
            Some(what) if !self.troubled => {
                tracing::warn!("no local model can begin a turn: {what}");
            }
            None if self.troubled => {
                tracing::info!("the memory for local models can be read again");
            }
            _ => {}
        }
        self.troubled = troubled;
    }

    fn log_shut_out(&mut self, models: &BTreeMap<String, u64>) {
        for (model, foreign_mib) in models {
            if self.told.insert(model.clone()) {
                tracing::warn!(
                    llm.model = model,
                    foreign_mib,
                    "local model {model} fits on no device beside {foreign_mib} MiB that others \
                     use: it is tried once in llm.scheduler.overdue_after"
                );
            }
        }
    }

    fn update_metrics(&mut self, others: &[ProcessState]) {
        let Some(scheduler) = self.scheduler.upgrade() else { return };
        self.log_shut_out(scheduler.lock_state().queues.list_shut_out());
        let own = scheduler.lock_state().queues.model_demands();
        let seen = list_seen(&self.reading, |device| scheduler.held_mib(device, &own, others));
        for device in &seen.devices {
            metrics::scheduler_memory(&device.name, device.free_mib, device.held_mib);
        }
        *scheduler.seen.lock() = seen;
        for post in &own {
            metrics::scheduler_calls(&post.model, post.waiting, post.running, post.turn.is_some());
        }
    }
}
