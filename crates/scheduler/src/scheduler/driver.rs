//! The task that turns events into updates of the shared state: one for each scheduler, so that its
//! files and devices are never touched twice at the same time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::plan::DeviceMemory;
use super::shared_state::{ProcessState, SharedState};
use super::{DeviceProbe, Scheduler, list_seen};
use docmill_core::metrics;

/// How often the shared state is read while something waits or runs: other processes cannot notify
/// us.
const LOOK: Duration = Duration::from_millis(200);
/// How old a reading of the devices may become.
const READ: Duration = Duration::from_secs(2);

pub(super) struct SchedulerDriver {
    scheduler: Weak<Scheduler>,
    shared: Arc<SharedState>,
    probe: Arc<dyn DeviceProbe>,
    reading: DeviceMemory,
    read: Instant,
    /// Whether the last attempt to read the devices or the shared state failed: logged once, not
    /// every time.
    troubled: bool,
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
            troubled: false,
        }
    }

    /// Works until nobody uses the scheduler any more.
    pub(super) async fn run(mut self) {
        while let Some(scheduler) = self.scheduler.upgrade() {
            let is_idle = scheduler.lock_state().queues.is_idle();
            let wait = if is_idle { Duration::from_secs(1) } else { LOOK };
            // Held for a second at most: the drop of the last use is what ends this task.
            let changed = async move { scheduler.changed.notified().await };
            let was_changed = tokio::time::timeout(wait, changed).await.is_ok();
            if was_changed || !is_idle {
                self.run_round().await;
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "one at a time; it waits for files, not for a core"
    )]
    async fn run_round(&mut self) {
        let Some(scheduler) = self.scheduler.upgrade() else { return };
        let is_old = self.read.elapsed() >= READ;
        let (shared, probe) = (Arc::clone(&self.shared), Arc::clone(&self.probe));
        let mut reading = self.reading.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let read_at = scheduler.clock.now_ms();
            let read = if is_old { probe.read_devices().map(Some) } else { Ok(None) };
            let read = read.map(|devices| {
                if let Some(devices) = devices {
                    reading = DeviceMemory { devices, at_ms: read_at };
                }
            });
            // Without a reading nothing new may begin, but what ends must still be posted.
            if read.is_err() {
                reading.devices.iter_mut().for_each(|device| device.free_mib = 0);
            }
            let others = scheduler.run_tick(&shared, &reading);
            drop(scheduler);
            (reading, read.and(others))
        });
        match looked.await {
            Ok((reading, looked)) => {
                if is_old {
                    self.read = Instant::now();
                }
                self.reading = reading;
                match looked {
                    Ok(others) => self.update_metrics(&others),
                    Err(error) => self.log_trouble(&error.to_string()),
                }
            }
            Err(error) => self.log_trouble(&format!("the look at the board died: {error}")),
        }
    }

    fn log_trouble(&mut self, what: &str) {
        if !self.troubled {
            tracing::warn!("no local model begins a turn: {what}");
        }
        self.troubled = true;
    }

    fn update_metrics(&mut self, others: &[ProcessState]) {
        if std::mem::take(&mut self.troubled) {
            tracing::info!("the memory for local models can be read again");
        }
        let Some(scheduler) = self.scheduler.upgrade() else { return };
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
