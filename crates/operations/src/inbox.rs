//! Takes mails and files from a source, hands each in, and marks it.
//!
//! In this order: read to a temporary file, hand in as from the command line, mark. A crash before the
//! mark repeats the item, which is known by then: nothing is lost and nothing comes twice. An item
//! that is at fault itself is marked as failed, and the others go on; a source that is at fault is
//! asked again later. Items are named by their source's labels, never by content or file name. Not
//! promised: an order of items.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_inbox::{ArrivedItem, InboxSource, ItemMark, ItemReading, MAX_LISTED_ITEMS};
use docmill_pipeline::shutdown::Shutdown;
use serde::Serialize;
use tempfile::TempDir;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use crate::submit::{self, SubmitContext, SubmitOptions, SubmitStatus};

/// An item that the source refuses so often has failed.
const MAX_ITEM_REFUSALS: u32 = 3;
/// Between news and the list, so that mails that come together are listed together.
const NEWS_DELAY: Duration = Duration::from_millis(250);
/// After the stop, the item under way has so long to end.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Between the tries of a source that fails.
const OUTAGE_PAUSE: RetryBackoff = RetryBackoff::doubling(Duration::from_secs(2))
    .up_to(Duration::from_secs(300))
    .with_jitter(Jitter::Quarter);

/// The terms of one source.
#[derive(Debug, Clone)]
pub struct InboxTerms {
    /// Its name.
    pub name: String,
    /// Properties of its documents.
    pub options: SubmitOptions,
    /// How often it is asked for what is new.
    pub poll: Duration,
}

/// Counts of the items of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InboxReport {
    /// Name of the source.
    pub inbox: String,
    /// Items that became documents.
    pub submitted: u64,
    /// Items whose content was handed in before.
    pub known: u64,
    /// Items that can never be handed in.
    pub failed: u64,
    /// Items left for later: still being written, or refused by the source for now.
    pub deferred: u64,
    /// The failure of the source that ended the pass.
    pub problem: Option<String>,
}

/// The end of one item in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemEnd {
    Submitted,
    Known,
    Failed,
    Deferred,
}

impl ItemEnd {
    fn code(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Known => "known",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
        }
    }
}

impl InboxReport {
    fn count(&mut self, end: ItemEnd) {
        let counter = match end {
            ItemEnd::Submitted => &mut self.submitted,
            ItemEnd::Known => &mut self.known,
            ItemEnd::Failed => &mut self.failed,
            ItemEnd::Deferred => &mut self.deferred,
        };
        *counter += 1;
    }
}

/// How often an item was tried in vain.
#[derive(Debug, Clone, Copy, Default)]
struct ItemTries {
    refused: u32,
    interrupted: u32,
}

/// Works through one source.
pub struct InboxWorker {
    source: Box<dyn InboxSource>,
    terms: InboxTerms,
    tries: HashMap<String, ItemTries>,
}

impl InboxWorker {
    /// Nothing is sent.
    pub fn new(source: Box<dyn InboxSource>, terms: InboxTerms) -> Self {
        Self { source, terms, tries: HashMap::new() }
    }

    /// The source for people.
    pub fn describe(&self) -> String {
        format!("{}: {}", self.terms.name, self.source.describe())
    }

    /// Works until it is asked to stop. The item under way is given a moment to end; one that is cut
    /// off is repeated by the next run.
    pub async fn run(mut self, context: SubmitContext<'_>, stop: &Shutdown) {
        metrics::start_inbox_counters(&self.terms.name);
        tokio::select! {
            () = self.work(context, stop) => {}
            () = wait_for_grace(stop) => {}
        }
    }

    async fn work(&mut self, context: SubmitContext<'_>, stop: &Shutdown) {
        let mut failures = 0;
        while !stop.is_requested() {
            let mut report = InboxReport::default();
            let passed = self.run_pass(context, stop, &mut report).await;
            if passed.is_ok() {
                metrics::count_inbox_pass(&self.terms.name);
            }
            let waited = match passed {
                Ok(true) => continue,
                Ok(false) => tokio::select! {
                    () = stop.wait_until_requested() => return,
                    waited = self.wait() => waited,
                },
                Err(error) => Err(error),
            };
            let Err(error) = waited else {
                failures = 0;
                continue;
            };
            metrics::count_inbox_failure(&self.terms.name);
            let pause = OUTAGE_PAUSE.wait_after(failures).max(asked_wait(&error));
            failures = failures.saturating_add(1);
            let (inbox, wait_s) = (&self.terms.name, pause.as_secs());
            tracing::warn!(inbox, wait_s, fault = error.fault.code(), "inbox {inbox}: {error}");
            tokio::select! {
                () = stop.wait_until_requested() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn wait(&mut self) -> Result<()> {
        tokio::time::sleep(NEWS_DELAY.min(self.terms.poll)).await;
        self.source.wait_for_items(self.terms.poll).await
    }

    /// Takes everything that is there, and returns.
    pub async fn run_once(&mut self, context: SubmitContext<'_>, stop: &Shutdown) -> InboxReport {
        let mut report = InboxReport { inbox: self.terms.name.clone(), ..InboxReport::default() };
        while !stop.is_requested() {
            match self.run_pass(context, stop, &mut report).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    report.problem = Some(error.to_string());
                    break;
                }
            }
        }
        report
    }

    /// One list of items; whether there may be more.
    async fn run_pass(
        &mut self,
        context: SubmitContext<'_>,
        stop: &Shutdown,
        report: &mut InboxReport,
    ) -> Result<bool> {
        self.source.open().await?;
        let mut items = self.source.list_new().await?;
        let listed: HashSet<&str> = items.iter().map(|item| item.label.as_str()).collect();
        self.tries.retain(|label, _| listed.contains(label.as_str()));
        // One that ends connections must not be in front of the others.
        items.sort_by_key(|item| self.tries.get(&item.label).map_or(0, |tries| tries.sum()));
        let (is_full, mut settled) = (items.len() >= MAX_LISTED_ITEMS, 0_u32);
        for item in &items {
            if stop.is_requested() {
                return Ok(false);
            }
            let end = self.take_item(context, item).await?;
            metrics::count_inbox_item(&self.terms.name, end.code());
            settled += u32::from(end != ItemEnd::Deferred);
            report.count(end);
        }
        Ok(is_full && settled > 0)
    }

    /// Hands an item in and marks it.
    ///
    /// # Errors
    /// The source, the store or the database is at fault.
    async fn take_item(
        &mut self,
        context: SubmitContext<'_>,
        item: &ArrivedItem,
    ) -> Result<ItemEnd> {
        let end = match self.submit_item(context, item).await {
            Ok(end) => end,
            Err(error) if error.fault == Fault::Rejected => self.count_refusal(item, &error),
            Err(error) => {
                self.tries.entry(item.label.clone()).or_default().interrupted += 1;
                return Err(error);
            }
        };
        let mark = match end {
            ItemEnd::Submitted | ItemEnd::Known => ItemMark::Done,
            ItemEnd::Failed => ItemMark::Failed,
            ItemEnd::Deferred => return Ok(end),
        };
        if let Err(error) = self.source.mark_item(item, mark).await {
            self.tries.entry(item.label.clone()).or_default().interrupted += 1;
            return Err(error);
        }
        Ok(end)
    }

    async fn submit_item(
        &mut self,
        context: SubmitContext<'_>,
        item: &ArrivedItem,
    ) -> Result<ItemEnd> {
        if item.size.is_some_and(|size| size > context.largest) {
            return Ok(self.report_failure(item, &too_large(context)));
        }
        let folder = tempfile::tempdir().map_err(write_failed)?;
        match self.read_to(&folder, item, context.largest).await? {
            ItemReading::Whole => {}
            ItemReading::TooLarge => return Ok(self.report_failure(item, &too_large(context))),
            ItemReading::Unsettled => return Ok(ItemEnd::Deferred),
        }
        let (path, options) = (folder.path().join(&item.file_name), self.options_of(item));
        let done = Box::pin(submit::submit_file(context, &path, &options)).await?;
        let (inbox, label) = (&self.terms.name, &item.label);
        let id = done.ingestion_id.map(|id| id.to_string()).unwrap_or_default();
        match done.fate {
            SubmitStatus::Refused => {
                Ok(self.report_failure(item, &done.problem.unwrap_or_default()))
            }
            SubmitStatus::Known => Ok(ItemEnd::Known),
            SubmitStatus::Submitted | SubmitStatus::NotSent => {
                tracing::info!(inbox, item = label, "inbox {inbox}: {label} is ingestion {id}");
                Ok(ItemEnd::Submitted)
            }
        }
    }

    async fn read_to(
        &mut self,
        folder: &TempDir,
        item: &ArrivedItem,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        let path = folder.path().join(&item.file_name);
        let mut file = File::create(&path).await.map_err(write_failed)?;
        let reading = self.source.read_item(item, &mut file, max_bytes).await?;
        file.flush().await.map_err(write_failed)?;
        Ok(reading)
    }

    fn options_of(&self, item: &ArrivedItem) -> SubmitOptions {
        let mut options = self.terms.options.clone();
        options.identity.clone_from(&item.identity);
        options
    }

    /// The item is at fault; a server may err once.
    fn count_refusal(&mut self, item: &ArrivedItem, error: &Error) -> ItemEnd {
        let tries = self.tries.entry(item.label.clone()).or_default();
        tries.refused += 1;
        if tries.refused < MAX_ITEM_REFUSALS {
            return ItemEnd::Deferred;
        }
        self.report_failure(item, &error.to_string())
    }

    fn report_failure(&self, item: &ArrivedItem, why: &str) -> ItemEnd {
        let (inbox, label) = (&self.terms.name, &item.label);
        tracing::warn!(inbox, item = label, "inbox {inbox}: {label} is marked as failed: {why}");
        ItemEnd::Failed
    }
}

impl ItemTries {
    fn sum(self) -> u32 {
        self.refused.saturating_add(self.interrupted)
    }
}

async fn wait_for_grace(stop: &Shutdown) {
    stop.wait_until_requested().await;
    stop.wait_until_deadline(STOP_GRACE).await;
}

/// The wait that the other side asked for.
fn asked_wait(error: &Error) -> Duration {
    match error.fault {
        Fault::Throttled(Some(wait)) => wait,
        _ => Duration::ZERO,
    }
}

fn too_large(context: SubmitContext<'_>) -> String {
    format!("larger than limits.document_bytes, {} bytes", context.largest)
}

fn write_failed(error: std::io::Error) -> Error {
    Error::new(Fault::Unavailable, "a temporary file cannot be written").with_source(error)
}
