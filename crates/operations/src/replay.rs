//! Replay: the present kinds, prompts, models and program over documents that people decided about,
//! from their stored transcripts. No page is read again, and a model is called only where what it
//! would be asked has changed: stored replies of the same identity are used.
//!
//! Not replayed: the choice of the kind, which is taken as decided; documents read from XML, whose
//! data does not come from a transcript; rules about earlier documents. Nothing is written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::process::{LocalPipeline, ReplayedExtraction};
use docmill_assurance::fixed::upper_share;
use docmill_core::fault::{Fault, Result};
use docmill_eval::decided::find_wrong_fields;
use docmill_ledger::db::Db;
pub use docmill_ledger::db::reviews::replays::ReplayFilter;
use docmill_ledger::db::reviews::replays::{self, ReplayableDocument};
use docmill_storage::ObjectStore;

/// Documents that are asked for together: what is in memory, beside the documents at work.
const TOGETHER: u32 = 50;
/// Documents that are named.
pub const MAX_NAMED: usize = 1_000;
/// The risk that a replay passes its gate though more documents get worse than it allows.
const RISK: f64 = 0.05;

/// Documents of a replay, and its maximum cost.
#[derive(Debug, Clone)]
pub struct ReplayTerms {
    /// Whose documents.
    pub filter: ReplayFilter,
    /// At most so many, the newest decisions first.
    pub limit: u32,
    /// Replayed at the same time.
    pub at_once: usize,
    /// No further document is begun once so much is spent, in billionths of the currency; `None`:
    /// without limit.
    pub max_cost_nanos: Option<u64>,
    /// The gate: at most this share of documents gets worse, with a certainty of 95 %.
    pub max_worse: f64,
}

/// A replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecidedReplay {
    /// Documents that were replayed.
    pub documents: u32,
    /// Those of them whose data is another than before.
    pub changed: u32,
    /// Those whose data has a wrong field less than before, and none more.
    pub better: u32,
    /// Those with a field that was right and is wrong now, or that fail now.
    pub worse: u32,
    /// Those that got worse and are flagged by no rule.
    pub worse_unflagged: u32,
    /// Those that are flagged now and were not.
    pub newly_flagged: u32,
    /// Those that were flagged and are not now.
    pub no_longer_flagged: u32,
    /// Documents without a stored transcript.
    pub left_out: u32,
    /// At most this share gets worse, with a certainty of 95 % (Clopper and Pearson).
    pub worse_at_most: f64,
    /// The gate: the share that was allowed.
    pub max_worse: f64,
    /// Whether the replay passed its gate.
    pub taken: bool,
    /// Whether it ended early, by its cost or because a budget of the day is spent.
    pub cut_short: bool,
    /// Spent on calls to models, in billionths of the currency.
    pub cost_nanos: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Documents that got better or worse, worse ones first, at most [`MAX_NAMED`].
    pub named: Vec<ReplayedDocument>,
}

/// A document that got better or worse. Names of fields, no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayedDocument {
    /// Id of the document.
    pub document_id: Uuid,
    /// Fields that were wrong and are right now.
    pub better: BTreeSet<String>,
    /// Fields that were right and are wrong now.
    pub worse: BTreeSet<String>,
    /// Whether it failed where it completed before.
    pub failed: bool,
}

/// An amount of money in billionths; `None`: it is none.
pub fn parse_nanos(text: &str) -> Option<u64> {
    text.parse::<Decimal>().ok()?.checked_mul(Decimal::from(1_000_000_000))?.to_u64()
}

/// Replays the newest decided documents.
///
/// # Errors
/// Postgres, the store or a model do not answer.
pub async fn replay_decided(
    db: &Db,
    store: &Arc<dyn ObjectStore>,
    pipeline: &LocalPipeline,
    terms: &ReplayTerms,
) -> Result<DecidedReplay> {
    let started = Instant::now();
    let mut report = DecidedReplay { max_worse: terms.max_worse, ..DecidedReplay::default() };
    let mut before = terms.filter.up_to.saturating_add(1);
    let mut left = terms.limit;
    while left > 0 && !report.cut_short {
        let page = replays::list_replayable(db, &terms.filter, before, left.min(TOGETHER)).await?;
        let Some(last) = page.last() else { break };
        before = last.revision;
        left -= u32::try_from(page.len()).unwrap_or(left).min(left);
        replay_page(store, pipeline, terms, page, &mut report).await?;
    }
    report.finish(started.elapsed());
    Ok(report)
}

async fn replay_page(
    store: &Arc<dyn ObjectStore>,
    pipeline: &LocalPipeline,
    terms: &ReplayTerms,
    page: Vec<ReplayableDocument>,
    report: &mut DecidedReplay,
) -> Result<()> {
    let mut waiting = page.into_iter();
    let mut running = futures::stream::FuturesUnordered::new();
    loop {
        while running.len() < terms.at_once.max(1) && !report.is_too_dear(terms) {
            let Some(document) = waiting.next() else { break };
            running.push(async move {
                let replayed = Box::pin(pipeline.replay_document(store, &document)).await;
                (document, replayed)
            });
        }
        let Some((document, replayed)) = running.next().await else { return Ok(()) };
        match replayed {
            Ok(replayed) => report.add(&document, replayed),
            Err(error) if matches!(error.fault, Fault::OverBudget(_)) => report.cut_short = true,
            Err(error) => return Err(error),
        }
    }
}

impl DecidedReplay {
    fn is_too_dear(&mut self, terms: &ReplayTerms) -> bool {
        self.cut_short |=
            self.cost_nanos > 0 && terms.max_cost_nanos.is_some_and(|most| self.cost_nanos >= most);
        self.cut_short
    }

    fn add(&mut self, document: &ReplayableDocument, replayed: Option<ReplayedExtraction>) {
        let Some(now) = replayed else {
            self.left_out += 1;
            return;
        };
        self.documents += 1;
        self.cost_nanos = self.cost_nanos.saturating_add(now.cost_nanos);
        let none = Map::new();
        let [decided, was, is] =
            [&document.decided, &document.data, &now.data].map(|it| object(it.as_ref(), &none));
        let [wrong_before, wrong_now] = [was, is].map(|data| find_wrong_fields(decided, data));
        let failed = now.failed && !document.failed;
        let own = ReplayedDocument {
            document_id: document.document_id,
            better: wrong_before.difference(&wrong_now).cloned().collect(),
            worse: wrong_now.difference(&wrong_before).cloned().collect(),
            failed,
        };
        let is_worse = failed || !own.worse.is_empty();
        self.changed += u32::from(was != is || now.failed != document.failed);
        self.worse += u32::from(is_worse);
        self.better += u32::from(!is_worse && !own.better.is_empty());
        self.worse_unflagged += u32::from(is_worse && !now.flagged);
        self.newly_flagged += u32::from(now.flagged && !document.flagged);
        self.no_longer_flagged += u32::from(!now.flagged && document.flagged);
        if self.named.len() < MAX_NAMED && (is_worse || !own.better.is_empty()) {
            self.named.push(own);
        }
    }

    /// Adds a later replay of the same draft.
    pub(crate) fn join(&mut self, later: Self) {
        let counts = [
            (&mut self.documents, later.documents),
            (&mut self.changed, later.changed),
            (&mut self.better, later.better),
            (&mut self.worse, later.worse),
            (&mut self.worse_unflagged, later.worse_unflagged),
            (&mut self.newly_flagged, later.newly_flagged),
            (&mut self.no_longer_flagged, later.no_longer_flagged),
            (&mut self.left_out, later.left_out),
        ];
        for (count, more) in counts {
            *count = count.saturating_add(more);
        }
        self.cost_nanos = self.cost_nanos.saturating_add(later.cost_nanos);
        self.max_worse = later.max_worse;
        self.cut_short |= later.cut_short;
        self.named.extend(later.named);
        self.named.truncate(MAX_NAMED);
        self.seconds += later.seconds;
        self.conclude();
    }

    fn finish(&mut self, took: Duration) {
        self.seconds = took.as_secs_f64();
        self.conclude();
    }

    fn conclude(&mut self) {
        self.worse_at_most = upper_share(self.worse, self.documents, RISK);
        self.taken = !self.cut_short && self.worse_at_most <= self.max_worse;
        self.named.sort_by_key(|one| (one.worse.is_empty() && !one.failed, one.document_id));
    }
}

fn object<'a>(data: Option<&'a Value>, none: &'a Map<String, Value>) -> &'a Map<String, Value> {
    data.and_then(Value::as_object).unwrap_or(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(data: Value, flagged: bool) -> ReplayableDocument {
        ReplayableDocument {
            revision: 1,
            document_id: Uuid::nil(),
            ingestion_id: Uuid::nil(),
            tenant: None,
            kind: "invoice".to_owned(),
            file_path: String::new(),
            transcription_file_path: String::new(),
            extraction_output_file_path: None,
            extraction_identity: None,
            ended_at: time::OffsetDateTime::UNIX_EPOCH,
            data: Some(data),
            flagged,
            failed: false,
            decided: Some(json!({"total": 10.0, "currency": "EUR"})),
        }
    }

    fn now(data: Value, flagged: bool) -> Option<ReplayedExtraction> {
        Some(ReplayedExtraction { data: Some(data), flagged, failed: false, cost_nanos: 5 })
    }

    #[test]
    fn a_document_is_worse_by_one_field_whatever_else_got_better() {
        let mut report = DecidedReplay { max_worse: 0.9, ..DecidedReplay::default() };
        let (right, wrong) =
            (json!({"total": 10, "currency": "EUR"}), json!({"total": 1, "currency": "EUR"}));
        let swapped = json!({"total": 10, "currency": "USD"});
        report.add(&document(right.clone(), false), now(right.clone(), true));
        report.add(&document(wrong.clone(), true), now(right.clone(), false));
        report.add(&document(right.clone(), true), now(wrong.clone(), false));
        report.add(&document(wrong.clone(), false), now(swapped, true));
        report.add(&document(right, false), None);
        report.finish(Duration::from_secs(2));
        assert_eq!((report.documents, report.changed, report.left_out), (4, 3, 1));
        assert_eq!((report.better, report.worse, report.worse_unflagged), (1, 2, 1));
        assert_eq!((report.newly_flagged, report.no_longer_flagged), (2, 2));
        assert_eq!((report.cost_nanos, report.named.len()), (20, 3));
        assert!(report.named[0].worse.len() == 1 && report.named[2].worse.is_empty());
        assert!(!report.taken && report.worse_at_most > 0.9, "two of four say little");
    }

    #[test]
    fn a_regression_is_refused_and_enough_documents_without_one_are_taken() {
        for (documents, worse, max_worse, taken) in [
            (299, 0, 0.01, true),
            (298, 0, 0.01, false),
            (149, 0, 0.02, true),
            (59, 0, 0.05, true),
            (1000, 10, 0.01, false),
            (0, 0, 0.5, false),
        ] {
            let mut report =
                DecidedReplay { documents, worse, max_worse, ..DecidedReplay::default() };
            report.finish(Duration::ZERO);
            assert_eq!(report.taken, taken, "{worse} of {documents}");
        }
        let mut dear = DecidedReplay {
            documents: 1000,
            cost_nanos: 10,
            max_worse: 0.5,
            ..DecidedReplay::default()
        };
        let terms = ReplayTerms {
            filter: ReplayFilter::default(),
            limit: 1,
            at_once: 1,
            max_cost_nanos: Some(10),
            max_worse: 0.5,
        };
        assert!(dear.is_too_dear(&terms));
        dear.finish(Duration::ZERO);
        assert!(!dear.taken, "one that ended early shows nothing");
    }
}
