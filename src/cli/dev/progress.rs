//! How far the documents are, while a person watches: a bar on a terminal, a line per document
//! that ends otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{ingestions, print};
use crate::model::IngestionId;
use crate::ops::Db;
use crate::ops::inspect;
use crate::ops::submit::Submission;
use crate::runner::Monitor;
use crate::shutdown::Stop;

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(250);
/// Every so many looks the reasons of those that only wait are said again.
const REMIND: u32 = 60;

/// Returns when every submitted ingestion has ended, or when stopped.
pub(super) async fn until_ended(
    db: &Db,
    monitor: &Monitor,
    submissions: &[Submission],
    stop: &Stop,
) -> anyhow::Result<()> {
    let all = ingestions(submissions);
    let display = Display::new(all.len());
    let mut open: BTreeSet<IngestionId> = all.iter().copied().collect();
    for turn in 0_u32.. {
        let ids: Vec<_> = open.iter().copied().collect();
        let waiting = inspect::waiting(db, &ids).await?;
        let still: BTreeSet<_> = waiting.iter().map(|row| IngestionId(row.ingestion_id)).collect();
        let ended: Vec<_> = open.difference(&still).copied().collect();
        if !ended.is_empty() {
            display.ended(&inspect::by_ids(db, &ended).await?);
        }
        open = still;
        display.stages(monitor, all.len() - open.len());
        if open.is_empty() || stop.is_asked() {
            break;
        }
        if turn % REMIND == REMIND - 1 {
            display.reasons(&waiting);
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.until_asked() => {}
        }
    }
    display.bar.finish_and_clear();
    Ok(())
}

struct Display {
    bar: ProgressBar,
    total: usize,
}

impl Display {
    fn new(total: usize) -> Self {
        let length = u64::try_from(total).unwrap_or(u64::MAX);
        // Draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} documents  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, total }
    }

    /// How many are at which stage.
    fn stages(&self, monitor: &Monitor, done: usize) {
        let mut stages: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
        for (_, stage) in monitor.working() {
            let place = crate::model::Stage::ALL.iter().position(|one| *one == stage);
            stages.entry(place.unwrap_or_default()).or_insert((stage.code(), 0)).1 += 1;
        }
        let parts: Vec<_> =
            stages.values().map(|(stage, count)| format!("{stage} {count}")).collect();
        self.bar.set_message(parts.join(", "));
        self.bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
    }

    fn ended(&self, rows: &[inspect::IngestionRow]) {
        for row in rows {
            let name = row.original_name.as_deref().unwrap_or(&row.file_path);
            let reason = row.reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            self.say(&format!("{name}: {}{reason}", row.status));
        }
    }

    /// What takes long says why.
    fn reasons(&self, waiting: &[inspect::InFlight]) {
        let queued = waiting.iter().filter(|row| row.state == "queued").count();
        for row in waiting.iter().filter(|row| row.state != "queued").take(10) {
            self.say(&format!("{}: {}", row.ingestion_id, row.explanation));
        }
        if queued > 0 {
            self.say(&format!("{queued} of {} are waiting for their turn", self.total));
        }
    }

    fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            print::note(line);
        } else {
            self.bar.println(line);
        }
    }
}
