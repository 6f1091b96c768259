//! Commands on ingestions: show them, change their course.

use clap::builder::PossibleValuesParser;
use time::OffsetDateTime;

use super::{CommandContext, CommandExit, DATABASE, DATABASE_AND_QUEUE, print};
use docmill_core::config::ConfigNeeds;
use docmill_core::model::{IngestionId, IngestionStatus, OutcomeReason};
use docmill_operations::Db;
use docmill_operations::inspect::{self, IngestionFilter, IngestionHistory, IngestionRow};
use docmill_operations::retry::{self, AuditNote, IngestionChange, PauseScope, PauseTarget};

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    /// Ingestion id, document id, or SHA-256 prefix
    id: String,
}

/// A dry run by reason shows so many.
const MAX_PREVIEW_ROWS: u32 = 500;

/// Arguments of `retry`.
#[derive(Debug, clap::Args)]
pub(super) struct RetryArgs {
    /// Ingestion ids, document ids (newest ingestion), or SHA-256 prefixes
    #[arg(required_unless_present = "reason", conflicts_with = "reason")]
    ids: Vec<String>,
    /// All that failed for this reason instead
    #[arg(long, value_name = "CODE", value_parser = parse_reason)]
    reason: Option<String>,
    /// With --reason: registered within this time
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back, requires = "reason")]
    since: Option<std::time::Duration>,
    /// With --reason: of this tenant
    #[arg(long, requires = "reason")]
    tenant: Option<String>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
    /// Dry run: list the affected ingestions
    #[arg(long)]
    dry_run: bool,
}

impl RetryArgs {
    /// Ingestions retried by their reason.
    fn failed(&self) -> Option<IngestionFilter> {
        Some(IngestionFilter {
            status: Some(IngestionStatus::Failed),
            reason: Some(self.reason.clone()?),
            tenant: self.tenant.clone(),
            since: self.since.map(|since| OffsetDateTime::now_utc() - since),
            ..IngestionFilter::default()
        })
    }
}

/// Open ingestions: those that are named, or all that match.
#[derive(Debug, clap::Args)]
pub(super) struct OpenIngestionArgs {
    /// Ingestion ids, document ids (newest ingestion), or SHA-256 prefixes
    #[arg(required_unless_present_any = ["tenant", "kind", "since"],
        conflicts_with_all = ["tenant", "kind", "since"])]
    ids: Vec<String>,
    /// All in progress of this tenant instead
    #[arg(long)]
    tenant: Option<String>,
    /// All in progress of this kind instead
    #[arg(long)]
    kind: Option<String>,
    /// All in progress that were registered within this time instead
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back)]
    since: Option<std::time::Duration>,
}

impl OpenIngestionArgs {
    /// The ids of all of them.
    pub(super) async fn resolve(self, db: &Db) -> anyhow::Result<Vec<IngestionId>> {
        if !self.ids.is_empty() {
            return resolve_ids(db, &self.ids).await;
        }
        let filter = IngestionFilter {
            status: Some(IngestionStatus::InProgress),
            kind: self.kind,
            tenant: self.tenant,
            since: self.since.map(|since| OffsetDateTime::now_utc() - since),
            ..IngestionFilter::default()
        };
        Ok(retry::find_matching(db, &filter).await?)
    }
}

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    open: OpenIngestionArgs,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
    /// Dry run: list the affected ingestions
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Filter by status
    #[arg(long, value_parser = PossibleValuesParser::new(["in-progress", "completed", "failed", "cancelled"]))]
    status: Option<String>,
    /// Filter by outcome reason
    #[arg(long, value_name = "CODE", value_parser = parse_reason)]
    reason: Option<String>,
    /// Filter by kind
    #[arg(long)]
    kind: Option<String>,
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only documents that need review
    #[arg(long)]
    review: bool,
    /// Registered within this time, e.g. 2h or 3days
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back)]
    since: Option<std::time::Duration>,
    /// Maximum number of results
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Continue after this ingestion
    #[arg(long, value_name = "ID")]
    after: Option<IngestionId>,
}

/// Arguments of `pause` and `resume`.
#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    what: PauseTargetArgs,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

/// The scope of a pause.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct PauseTargetArgs {
    /// All work
    #[arg(value_name = "all", value_parser = ["all"])]
    everything: Option<String>,
    /// One document kind
    #[arg(long)]
    kind: Option<String>,
    /// One tenant
    #[arg(long)]
    tenant: Option<String>,
    /// One OCR or model provider
    #[arg(long)]
    provider: Option<String>,
}

impl PauseTargetArgs {
    fn into_target(self) -> PauseTarget {
        let (scope, name) = match (self.kind, self.tenant, self.provider) {
            (Some(name), ..) => (PauseScope::Kind, name),
            (_, Some(name), _) => (PauseScope::Tenant, name),
            (.., Some(name)) => (PauseScope::Provider, name),
            _ => (PauseScope::All, String::new()),
        };
        PauseTarget { scope, name }
    }
}

/// A reason code as an argument.
pub(super) fn parse_reason(text: &str) -> Result<String, String> {
    match OutcomeReason::from_code(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("one of {}", OutcomeReason::ALL.map(OutcomeReason::code).join(", "))),
    }
}

/// The actor and comment for the audit log.
pub(super) fn audit_note(why: String) -> AuditNote {
    let named =
        ["DOCMILL_OPERATOR", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    AuditNote { operator: named.unwrap_or_else(|| "unknown".to_owned()), why }
}

pub(super) async fn open_database(
    context: &CommandContext,
    needs: ConfigNeeds,
) -> anyhow::Result<(crate::app::App, Db)> {
    let app = context.build_app(needs)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    Ok((app, db))
}

pub(super) async fn show_status(
    context: &CommandContext,
    which: &StatusArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let stories = inspect::load_histories(&db, &which.id).await?;
    context
        .result_output()
        .show(&stories, || stories.iter().map(format_history).collect::<Vec<_>>().join("\n"))?;
    Ok(CommandExit::Done)
}

/// One ingestion in words.
pub(super) fn format_history(story: &IngestionHistory) -> String {
    let row = &story.ingestion;
    let mut lines = vec![format!("ingestion {}: {}", row.id, row.status)];
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(format!("  {name}: {}", print::inline(&value)));
        }
    };
    let waits = story.state.as_ref().zip(story.explanation.as_ref());
    say("state", waits.map(|(state, why)| format!("{state}: {why}")));
    say("reason", row.reason.clone());
    say("detail", row.detail.clone());
    say("to review", Some(row.review_reasons.join(", ")));
    say("found in", story.parent.as_ref().map(|parent| parent.ingestion_id.to_string()));
    say("file", row.original_name.clone());
    say("lies at", Some(row.file_path.clone()));
    say("document", Some(row.document_id.to_string()));
    say("sha256", row.sha256.clone());
    say("kind", row.kind.clone());
    say("tenant", row.tenant.clone());
    say("reader", row.reader.clone());
    say("model", row.extraction_model.clone());
    say("pages", row.pages.map(|pages| pages.to_string()));
    say("quality", row.transcription_quality_score.map(|score| format!("{score:.2}")));
    say("score", row.gate_score.map(|score| format!("{score:.2}")));
    say("transcript", row.transcription_file_path.clone());
    say("repaired pages", row.preprocessed_file_path.clone());
    say("reply", row.extraction_output_file_path.clone());
    for attempt in &story.attempts {
        let stage = attempt.stage.as_deref().unwrap_or("-");
        let counted = if attempt.counted { "" } else { ", given back" };
        let detail = print::inline(attempt.detail.as_deref().unwrap_or_default());
        let (claims, outcome) = (attempt.claims, &attempt.outcome);
        lines.push(format!("  attempt {claims}: {outcome} at {stage}{counted} {detail}"));
    }
    for child in &story.children {
        let name = print::inline(child.name.as_deref().unwrap_or("without a name"));
        let (id, status) = (child.ingestion_id, &child.status);
        lines.push(format!("  found in it: {name}: {status}, ingestion {id}"));
    }
    if let Some(data) = &row.structured_data {
        lines.push(format!("  data: {data}"));
    }
    lines.join("\n")
}

pub(super) async fn list(context: &CommandContext, list: ListArgs) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let filter = IngestionFilter {
        status: list.status.as_deref().and_then(IngestionStatus::from_code),
        reason: list.reason,
        kind: list.kind,
        tenant: list.tenant,
        needs_review: list.review.then_some(true),
        since: list.since.map(|since| OffsetDateTime::now_utc() - since),
    };
    let rows = inspect::list_ingestions(&db, &filter, list.limit, list.after).await?;
    context.result_output().show(&rows, || {
        let table = format_ingestions(&rows);
        match rows.last() {
            Some(last) if rows.len() == usize::try_from(list.limit).unwrap_or(usize::MAX) => {
                format!("{table}more with --after {}\n", last.id)
            }
            _ => table,
        }
    })?;
    Ok(CommandExit::Done)
}

fn format_ingestions(rows: &[IngestionRow]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            [
                row.id.to_string(),
                row.original_name.clone().unwrap_or_else(|| row.file_path.clone()),
                row.status.clone(),
                print::or_dash(row.reason.as_deref().or(row.stage.as_deref())),
                print::or_dash(row.kind.as_deref()),
                row.attempt_count.to_string(),
                if row.needs_human_review { row.review_reasons.join(" ") } else { "-".to_owned() },
                print::age_of(row.created_at),
            ]
        })
        .collect();
    let header =
        ["ingestion", "file", "status", "reason/stage", "kind", "attempts", "review", "age"];
    print::table(header, &rows)
}

pub(super) async fn resolve_ids(db: &Db, ids: &[String]) -> anyhow::Result<Vec<IngestionId>> {
    let mut meant = Vec::new();
    for id in ids {
        let found = inspect::find_one(db, id).await?;
        if !meant.contains(&found) {
            meant.push(found);
        }
    }
    Ok(meant)
}

pub(super) async fn retry(
    context: &CommandContext,
    change: RetryArgs,
) -> anyhow::Result<CommandExit> {
    let (app, db) = open_database(context, DATABASE_AND_QUEUE).await?;
    let failed = change.failed();
    let ids = resolve_ids(&db, &change.ids).await?;
    if change.dry_run {
        let rows = match &failed {
            Some(failed) => inspect::list_ingestions(&db, failed, MAX_PREVIEW_ROWS, None).await?,
            None => inspect::ingestions_by_id(&db, &ids).await?,
        };
        context.result_output().show(&rows, || format_ingestions(&rows))?;
        return Ok(CommandExit::Done);
    }
    let (queue, by) = (app.open_queue().await?, audit_note(change.why));
    let done = match &failed {
        Some(failed) => retry::retry_failed(&db, queue.as_ref(), failed, &by).await?,
        None => retry::retry_ingestions(&db, queue.as_ref(), &ids, &by).await?,
    };
    show_changes(context, &done)
}

pub(super) async fn cancel(
    context: &CommandContext,
    change: ChangeArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let ids = change.open.resolve(&db).await?;
    if change.dry_run {
        return preview_change(context, &db, &ids).await;
    }
    let (by, mut done) = (audit_note(change.why), Vec::new());
    for some in ids.chunks(retry::MAX_TOGETHER) {
        done.extend(retry::cancel_ingestions(&db, some, &by).await?);
    }
    show_changes(context, &done)
}

pub(super) async fn preview_change(
    context: &CommandContext,
    db: &Db,
    ids: &[IngestionId],
) -> anyhow::Result<CommandExit> {
    let shown = ids.chunks(retry::MAX_TOGETHER).next().unwrap_or_default();
    let rows = inspect::ingestions_by_id(db, shown).await?;
    context.result_output().show(&rows, || format_ingestions(&rows))?;
    Ok(CommandExit::Done)
}

pub(super) fn show_changes(
    context: &CommandContext,
    done: &[IngestionChange],
) -> anyhow::Result<CommandExit> {
    context.result_output().show(&done, || {
        let rows: Vec<_> = done
            .iter()
            .map(|line| {
                let change = serde_json::to_value(line.change).unwrap_or_default();
                let change = change.as_str().unwrap_or_default().replace('_', " ");
                [line.ingestion_id.to_string(), change, print::or_dash(line.problem.as_deref())]
            })
            .collect();
        print::table(["ingestion", "result", "problem"], &rows)
    })?;
    Ok(CommandExit::from_success(done.iter().all(|line| line.problem.is_none())))
}

pub(super) async fn pause(
    context: &CommandContext,
    pausing: PauseArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    retry::pause_target(&db, &pausing.what.into_target(), &audit_note(pausing.why)).await?;
    show_pauses(context, &db, "").await
}

pub(super) async fn resume(
    context: &CommandContext,
    pausing: PauseArgs,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let lifted =
        retry::resume_target(&db, &pausing.what.into_target(), &audit_note(pausing.why)).await?;
    show_pauses(context, &db, if lifted { "" } else { "it was not paused; " }).await
}

/// Prints the active pauses.
async fn show_pauses(context: &CommandContext, db: &Db, note: &str) -> anyhow::Result<CommandExit> {
    let pauses = retry::list_pauses(db).await?;
    context.result_output().show(&pauses, || {
        if pauses.is_empty() {
            return format!("{note}nothing is paused");
        }
        let lines = pauses.iter().map(|row| {
            let why = if row.why.is_empty() { String::new() } else { format!(": {}", row.why) };
            format!("paused by {}: {} {}{why}", row.paused_by, row.scope, row.name)
        });
        format!("{note}\n{}", lines.collect::<Vec<_>>().join("\n")).trim_start().to_owned()
    })?;
    Ok(CommandExit::Done)
}
