//! `docmill review`: what waits for a person, and what a person decides.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::jobs::{audit_note, open_database};
use super::{CommandContext, CommandExit, DATABASE, UsageError, print, standard_input};
use crate::app::App;
use docmill_core::config::ConfigNeeds;
use docmill_gate::kinds::KindSet;
use docmill_operations::Db;
use docmill_operations::answer::{AnswerForm, AnswerRequest, write_answer};
use docmill_operations::inspect;
use docmill_operations::rejections::{
    BulkUndoEnd, DocumentRejection, DocumentUndo, RejectionEnd, SeenDocument, reject_all,
    undo_decisions,
};
use docmill_operations::review::{
    self, AcceptedData, DataCorrection, DecidingReviewer, KnownAccount, RecordedDecision,
    ReviewCase, ReviewFilter, ReviewRow, TruthExport, load_seen_case,
};

/// The largest file of data that is read.
const MAX_DATA: u64 = 16 << 20;

/// Documents that are rejected by one filter, those that wait longest.
const MAX_MATCHING: u32 = 10_000;

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum ReviewCommand {
    /// List documents that need review, oldest first
    List(ReviewListArgs),
    /// Show one document: reasons, extracted data, earlier decisions
    Show {
        /// Document id, ingestion id, or SHA-256 prefix
        id: String,
    },
    /// Accept the data
    Accept(AcceptArgs),
    /// Correct the data
    Correct(CorrectArgs),
    /// Reject documents
    Reject(RejectArgs),
    /// Write the answer to the sender of an e-invoice
    Answer(AnswerArgs),
    /// Undo your own last decisions about documents, each within the undo period
    Undo(UndoArgs),
    /// Export decisions as a folder for `docmill eval`
    Export(TruthExportArgs),
}

/// Arguments of `review answer`.
#[derive(Debug, clap::Args)]
pub(super) struct AnswerArgs {
    /// Document id, ingestion id, or SHA-256 prefix
    id: String,
    /// Peppol Invoice Response 3, or CDAR of the French reform
    #[arg(long, value_parser = ["invoice-response", "cdar"])]
    form: String,
    /// Code of the reason for a rejection, e.g. `PRI` or `TX_TVA_ERR`
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
}

/// Arguments of `review export`.
#[derive(Debug, clap::Args)]
pub(super) struct TruthExportArgs {
    /// Output folder: documents, and truth/NAME.json
    folder: PathBuf,
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Filter by kind
    #[arg(long)]
    kind: Option<String>,
    /// Write KIND/examples/ID.txt and ID.json for the kinds' folders instead
    #[arg(long)]
    examples: bool,
}

/// Arguments of `review list`.
#[derive(Debug, clap::Args)]
pub(super) struct ReviewListArgs {
    #[command(flatten)]
    filter: ReviewFilterArgs,
    /// Maximum number of results
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Continue after this document
    #[arg(long, value_name = "ID")]
    after: Option<Uuid>,
}

/// Documents that need review.
#[derive(Debug, clap::Args)]
pub(super) struct ReviewFilterArgs {
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Filter by kind
    #[arg(long)]
    kind: Option<String>,
    /// Filter by review reason, e.g. totals
    #[arg(long)]
    reason: Option<String>,
}

impl ReviewFilterArgs {
    fn into_filter(self) -> ReviewFilter {
        let Self { tenant, kind, reason } = self;
        ReviewFilter { tenant, kind, reason, ..ReviewFilter::default() }
    }
}

/// Arguments of `review reject`.
#[derive(Debug, clap::Args)]
pub(super) struct RejectArgs {
    /// Document ids, ingestion ids, or SHA-256 prefixes; none: the 10,000 longest waiting that match
    #[arg(required_unless_present_any = ["tenant", "kind", "reason"],
        conflicts_with_all = ["tenant", "kind", "reason"])]
    ids: Vec<String>,
    #[command(flatten)]
    filter: ReviewFilterArgs,
    /// Version shown by `review show`; fail if it has changed
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    seen: Option<OffsetDateTime>,
    /// Reason, for the audit log
    #[arg(long, default_value = "")]
    why: String,
    /// Decide even if another reviewer has the document open
    #[arg(long)]
    take_over: bool,
    /// Dry run: list the affected documents
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of every other decision.
#[derive(Debug, clap::Args)]
pub(super) struct DecisionArgs {
    /// Document id, ingestion id, or SHA-256 prefix
    id: String,
    /// Version shown by `review show`; fail if it has changed
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    seen: Option<OffsetDateTime>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
    /// Decide even if another reviewer has the document open
    #[arg(long)]
    take_over: bool,
}

/// Arguments of `review undo`.
#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// Document ids, ingestion ids, or SHA-256 prefixes
    #[arg(required = true)]
    ids: Vec<String>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

/// Arguments of `review accept`.
#[derive(Debug, clap::Args)]
pub(super) struct AcceptArgs {
    #[command(flatten)]
    decision: DecisionArgs,
    /// Accept the newest ingestion's data, even if the document carries other data
    #[arg(long)]
    newest: bool,
}

/// Arguments of `review correct`.
#[derive(Debug, clap::Args)]
pub(super) struct CorrectArgs {
    #[command(flatten)]
    decision: DecisionArgs,
    /// Field and correct value; empty after `=`: the document has none
    #[arg(
        long = "set",
        id = "fields",
        value_name = "FIELD=VALUE",
        required_unless_present = "data"
    )]
    fields: Vec<String>,
    /// All data as a JSON file; `-`: standard input
    #[arg(long, value_name = "FILE", conflicts_with = "fields")]
    data: Option<PathBuf>,
}

fn parse_version(text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| "copy it from `docmill review show`, e.g. 2026-01-31T08:15:00.123456Z".into())
}

pub(super) async fn run(
    context: &CommandContext,
    what: ReviewCommand,
) -> anyhow::Result<CommandExit> {
    match what {
        ReviewCommand::List(list) => list_reviews(context, list).await,
        ReviewCommand::Show { id } => {
            let desk = ReviewSession::open(context).await?;
            let case = review::load_case(&desk.db, &id).await?;
            let known = review::find_known_accounts(&desk.db, &case, &desk.kinds).await?;
            let shown = ShownCase { case: &case, known_accounts: &known };
            context.result_output().show(&shown, || format_case(&case, &known))?;
            Ok(CommandExit::Done)
        }
        ReviewCommand::Answer(wanted) => show_answer(context, &wanted).await,
        ReviewCommand::Export(wanted) => Box::pin(export_truth(context, &wanted)).await,
        ReviewCommand::Accept(AcceptArgs { decision, newest }) => {
            let desk = ReviewSession::open(context).await?;
            let case = load_seen_case(&desk.db, &decision.id, decision.seen).await?;
            let which = if newest { AcceptedData::Newest } else { AcceptedData::Document };
            let by = desk.reviewer(decision);
            show_decision(context, &review::accept_document(&desk.db, &case, which, &by).await?)
        }
        ReviewCommand::Correct(correct) => {
            let correction = match &correct.data {
                Some(path) => DataCorrection::Whole(read_data(path)?),
                None => DataCorrection::Fields(parse_fields(&correct.fields)?),
            };
            let desk = ReviewSession::open(context).await?;
            let case =
                load_seen_case(&desk.db, &correct.decision.id, correct.decision.seen).await?;
            let by = desk.reviewer(correct.decision);
            let done = review::correct_document(&desk.db, &case, correction, &by).await?;
            show_decision(context, &done)
        }
        ReviewCommand::Reject(reject) => Box::pin(reject_documents(context, reject)).await,
        ReviewCommand::Undo(undo) => Box::pin(undo_own(context, undo)).await,
    }
}

/// Where decisions are made, and by which rules.
struct ReviewSession {
    app: App,
    kinds: KindSet,
    db: Db,
}

impl ReviewSession {
    async fn open(context: &CommandContext) -> anyhow::Result<Self> {
        let (app, db) = open_database(context, DATABASE).await?;
        let kinds = KindSet::load(&app.config().kinds)?;
        Ok(Self { app, kinds, db })
    }

    fn reviewer(&self, decision: DecisionArgs) -> DecidingReviewer<'_> {
        DecidingReviewer {
            by: audit_note(decision.why),
            config: &self.app.config().review,
            kinds: &self.kinds,
            take_over: decision.take_over,
            effort: None,
        }
    }
}

/// Rejects the named documents, or all that wait and match, each in the version that is listed now.
async fn reject_documents(
    context: &CommandContext,
    reject: RejectArgs,
) -> anyhow::Result<CommandExit> {
    let desk = ReviewSession::open(context).await?;
    let RejectArgs { ids, filter, seen, why, take_over, dry_run } = reject;
    let by = desk.reviewer(DecisionArgs { id: String::new(), seen, why, take_over });
    if let ([id], false) = (ids.as_slice(), dry_run) {
        let case = load_seen_case(&desk.db, id, seen).await?;
        return show_decision(context, &review::reject_document(&desk.db, &case, &by).await?);
    }
    let (mut wanted, mut chosen) = (filter.into_filter(), Vec::new());
    for id in &ids {
        let ReviewCase { document_id, version, .. } = load_seen_case(&desk.db, id, seen).await?;
        chosen.push(SeenDocument { document_id, version });
        wanted.documents.get_or_insert_default().push(document_id);
    }
    if dry_run || ids.is_empty() {
        let rows = review::list_reviews(&desk.db, &wanted, MAX_MATCHING, None).await?;
        if dry_run {
            context.result_output().show(&rows, || format_reviews(&rows))?;
            return Ok(CommandExit::Done);
        }
        chosen = rows.iter().map(SeenDocument::from).collect();
    }
    let done = reject_all(&desk.db, &chosen, &by).await?;
    let rows: Vec<_> = done.iter().map(DocumentRejection::describe).collect();
    context.result_output().show(&done, || print::table(["document", "result"], &rows))?;
    Ok(CommandExit::from_success(done.iter().all(|one| one.end == RejectionEnd::Rejected)))
}

/// Undoes the operator's own newest decisions about the named documents.
async fn undo_own(context: &CommandContext, undo: UndoArgs) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let mut documents = Vec::new();
    for id in &undo.ids {
        documents.push(review::load_case(&db, id).await?.document_id);
    }
    let by = audit_note(undo.why);
    if let [document] = documents[..] {
        return show_decision(context, &review::undo_decision(&db, document, &by).await?);
    }
    let done = undo_decisions(&db, &documents, None, &by).await?;
    let rows: Vec<_> = done.iter().map(DocumentUndo::describe).collect();
    context.result_output().show(&done, || print::table(["document", "result"], &rows))?;
    Ok(CommandExit::from_success(done.iter().all(|one| one.end == BulkUndoEnd::Undone)))
}

/// Prints the answer to the sender of the newest ingestion that the id means.
async fn show_answer(context: &CommandContext, wanted: &AnswerArgs) -> anyhow::Result<CommandExit> {
    let form = AnswerForm::from_name(&wanted.form).context("--form names no form of answers")?;
    let (_, db) = open_database(context, DATABASE).await?;
    let found = inspect::find_ingestions(&db, &wanted.id).await?;
    let row = found.first().context("nothing has this id")?;
    let case = review::load_case(&db, &wanted.id).await?;
    let request = AnswerRequest { form, reason_code: wanted.reason.as_deref() };
    let answer = write_answer(&db, row, &case, request).await?;
    context.result_output().show(&answer, || answer.xml.clone())?;
    Ok(CommandExit::Done)
}

async fn export_truth(
    context: &CommandContext,
    wanted: &TruthExportArgs,
) -> anyhow::Result<CommandExit> {
    let needs = ConfigNeeds { database: true, queue: false, store: true };
    let (app, db) = open_database(context, needs).await?;
    let store = app.open_store().await?;
    let export = TruthExport {
        folder: &wanted.folder,
        tenant: wanted.tenant.as_deref(),
        kind: wanted.kind.as_deref(),
        largest: app.config().limits.document_bytes.0,
        as_examples: wanted.examples,
    };
    let done = review::export_truth(&db, store.as_ref(), export).await?;
    context.result_output().show(&done, || {
        format!(
            "written: {}\nnot in the store, or too large: {}",
            done.written,
            done.left_out.len()
        )
    })?;
    Ok(CommandExit::from_success(done.left_out.is_empty()))
}

fn parse_fields(fields: &[String]) -> Result<BTreeMap<String, String>, UsageError> {
    fields
        .iter()
        .map(|text: &String| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.to_owned())),
            None => Err(UsageError("--set takes FIELD=VALUE, e.g. --set total=120.50".to_owned())),
        })
        .collect()
}

fn read_data(path: &Path) -> anyhow::Result<Value> {
    let mut text = String::new();
    let source: Box<dyn std::io::Read> = if standard_input::is_dash(path) {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).with_context(|| format!("reading {}", path.display()))?)
    };
    let read = source.take(MAX_DATA + 1).read_to_string(&mut text);
    read.with_context(|| format!("reading {}", path.display()))?;
    if text.len() as u64 > MAX_DATA {
        return Err(UsageError("the data is larger than 16 MiB".to_owned()).into());
    }
    // The parser's own message names the place and no value.
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

async fn list_reviews(
    context: &CommandContext,
    list: ReviewListArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let wanted = list.filter.into_filter();
    let rows = review::list_reviews(&db, &wanted, list.limit, list.after).await?;
    context.result_output().show(&rows, || {
        let table = format_reviews(&rows);
        match rows.last() {
            Some(last) if rows.len() == usize::try_from(list.limit).unwrap_or(usize::MAX) => {
                format!("{table}more with --after {}\n", last.document_id)
            }
            _ => table,
        }
    })?;
    Ok(CommandExit::Done)
}

fn format_reviews(rows: &[ReviewRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            [
                row.document_id.to_string(),
                row.original_name.clone().unwrap_or_else(|| row.file_path.clone()),
                print::or_dash(row.kind.as_deref()),
                print::or_dash(row.tenant.as_deref()),
                print::or_dash(row.status.as_deref()),
                row.review_reasons.join(" "),
                print::or_dash(row.held_by.as_deref()),
                print::age_of(row.since),
            ]
        })
        .collect();
    let head = ["document", "file", "kind", "tenant", "status", "reasons", "open at", "waits"];
    print::table(head, &rows)
}

/// A document as `review show` prints it.
#[derive(Serialize)]
struct ShownCase<'a> {
    #[serde(flatten)]
    case: &'a ReviewCase,
    /// Accounts that were confirmed of its supplier before.
    known_accounts: &'a [KnownAccount],
}

/// One document in words.
fn format_case(case: &ReviewCase, known: &[KnownAccount]) -> String {
    let state = if case.needs_human_review { "to be reviewed" } else { "nothing to review" };
    let mut lines = vec![format!("document {}: {state}", case.document_id)];
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(format!("  {name}: {}", print::inline(&value)));
        }
    };
    say("reasons", Some(case.review_reasons.join(", ")));
    say("file", case.original_name.clone());
    say("lies at", Some(case.file_path.clone()));
    say("tenant", case.tenant.clone());
    say("kind", case.kind.clone());
    say("ingestion", case.ingestion_id.map(|id| id.to_string()));
    say("status", case.status.clone());
    say("reason", case.reason.clone());
    say("transcript", case.transcription_file_path.clone());
    say("version", case.version.format(&Rfc3339).ok());
    say("open at", case.held.as_ref().map(|held| held.reviewer.clone()));
    say("first of two reviewers", case.pending.as_ref().map(|it| it.reviewer.clone()));
    for KnownAccount { account, since, documents } in known {
        let since = since.format(&Rfc3339).unwrap_or_default();
        lines.push(format!("  confirmed account: {account} since {since}, documents: {documents}"));
    }
    for revision in &case.revisions {
        let at = revision.decided_at.format(&Rfc3339).unwrap_or_default();
        let (who, why) = (print::inline(&revision.reviewer), print::inline(&revision.why));
        lines.push(format!("  {at}: {} by {who} {why}", revision.decision));
    }
    if let Some(pending) = &case.pending {
        lines.push(format!("first reviewer: {}", pretty(&pending.data)));
    }
    if let Some(carried) = &case.document_data {
        lines.push(format!("document: {}", pretty(carried)));
    }
    if let Some(read) =
        case.ingestion_data.as_ref().filter(|it| Some(*it) != case.document_data.as_ref())
    {
        lines.push(format!("newest ingestion: {}", pretty(read)));
    }
    lines.join("\n")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn show_decision(context: &CommandContext, done: &RecordedDecision) -> anyhow::Result<CommandExit> {
    context.result_output().show(done, || {
        let waits = if done.awaits_second { ", waits for a second person" } else { "" };
        format!("document {}: {}{waits}", done.document_id, done.decision.code())
    })?;
    Ok(CommandExit::Done)
}
