//! How far the documents are, while a person watches: a bar on a terminal, a line per document
//! that ends otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{print, submitted_ingestions};
use docmill_core::model::IngestionId;
use docmill_operations::Db;
use docmill_operations::inspect;
use docmill_operations::submit::Submission;
use docmill_pipeline::shutdown::Shutdown;
use docmill_worker::runner::{ObservedJob, RunnerMonitor};

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(250);
/// Polls between two reminders why documents wait.
const REMIND: u32 = 60;

/// Returns when every submitted ingestion has ended, or when stopped.
pub(super) async fn wait_until_ended(
    db: &Db,
    monitor: &RunnerMonitor,
    submissions: &[Submission],
    stop: &Shutdown,
) -> anyhow::Result<()> {
    let all = submitted_ingestions(submissions);
    let display = ProgressDisplay::new(all.len());
    let mut open: BTreeSet<IngestionId> = all.iter().copied().collect();
    for turn in 0_u32.. {
        let ids: Vec<_> = open.iter().copied().collect();
        let waiting = inspect::find_waiting(db, &ids).await?;
        let still: BTreeSet<_> = waiting.iter().map(|row| IngestionId(row.ingestion_id)).collect();
        let ended: Vec<_> = open.difference(&still).copied().collect();
        if !ended.is_empty() {
            display.show_ended(&inspect::ingestions_by_id(db, &ended).await?);
        }
        open = still;
        display.show_stages(monitor, all.len() - open.len());
        if open.is_empty() || stop.is_requested() {
            break;
        }
        if turn % REMIND == REMIND - 1 {
            display.show_reasons(&waiting);
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait_until_requested() => {}
        }
    }
    display.bar.finish_and_clear();
    Ok(())
}

struct ProgressDisplay {
    bar: ProgressBar,
    total: usize,
}

impl ProgressDisplay {
    fn new(total: usize) -> Self {
        let length = u64::try_from(total).unwrap_or(u64::MAX);
        // Draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} documents  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, total }
    }

    /// How many are at which stage.
    fn show_stages(&self, monitor: &RunnerMonitor, done: usize) {
        let mut stages: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
        for ObservedJob { stage, .. } in monitor.running_jobs() {
            let place =
                docmill_core::model::IngestionStage::ALL.iter().position(|one| *one == stage);
            stages.entry(place.unwrap_or_default()).or_insert((stage.code(), 0)).1 += 1;
        }
        let parts: Vec<_> =
            stages.values().map(|(stage, count)| format!("{stage} {count}")).collect();
        self.bar.set_message(parts.join(", "));
        self.bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    }

    fn show_ended(&self, rows: &[inspect::IngestionRow]) {
        for row in rows {
            let name = print::inline(row.original_name.as_deref().unwrap_or(&row.file_path));
            let reason = row.reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            self.print_line(&format!("{name}: {}{reason}", row.status));
        }
    }

    /// Prints the reasons of long waits.
    fn show_reasons(&self, waiting: &[inspect::InFlightIngestion]) {
        let queued = waiting.iter().filter(|row| row.state == "queued").count();
        for row in waiting.iter().filter(|row| row.state != "queued").take(10) {
            self.print_line(&format!("{}: {}", row.ingestion_id, row.explanation));
        }
        if queued > 0 {
            self.print_line(&format!("{queued} of {} are queued", self.total));
        }
    }

    fn print_line(&self, line: &str) {
        if self.bar.is_hidden() {
            print::note(line);
        } else {
            self.bar.println(print::sanitize_text(line));
        }
    }
}
