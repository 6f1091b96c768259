//! `docmill webhooks`: targets, undelivered messages, and replays.

use clap::Subcommand;
use serde_json::json;

use super::jobs::{audit_note, open_database};
use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_operations::webhooks::{
    self, COUNTED, DeliveryQuery, DeliveryRow, ReplayReport, WebhookTargetState,
};

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum WebhooksCommand {
    /// List targets and their undelivered messages
    Targets,
    /// List a target's undelivered messages, oldest first
    List {
        /// Target name
        target: String,
        /// List dead deliveries instead of pending ones
        #[arg(long)]
        dead: bool,
        /// Maximum number of results
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Send deliveries again, delivered or dead
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Replay {
        /// Delivery numbers, as shown by `list`
        #[arg(group = "which")]
        ids: Vec<i64>,
        /// All dead deliveries of this target
        #[arg(long, group = "which", value_name = "TARGET")]
        dead: Option<String>,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Re-enable a target that answered 410 Gone
    Enable {
        /// Target name
        target: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Ask for a test message; `targets` shows the answer
    Test {
        /// Target name
        target: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Print a new secret for a target
    NewSecret,
}

pub(super) async fn run(
    context: &CommandContext,
    what: WebhooksCommand,
) -> anyhow::Result<CommandExit> {
    let output = context.result_output();
    if matches!(what, WebhooksCommand::NewSecret) {
        let secret = webhooks::make_signing_secret()?;
        output.show(&json!({ "secret": secret }), || secret.clone())?;
        return Ok(CommandExit::Done);
    }
    let (_, db) = open_database(context, DATABASE).await?;
    match what {
        WebhooksCommand::Targets => {
            let targets = webhooks::list_targets(&db).await?;
            output.show(&targets, || format_targets(&targets))?;
        }
        WebhooksCommand::List { target, dead, limit } => {
            let wanted = DeliveryQuery { target, dead, after: None };
            let found = webhooks::list_deliveries(&db, &wanted, limit).await?;
            output.show(&found, || format_deliveries(&found))?;
        }
        WebhooksCommand::Replay { ids, dead, why } => {
            let by = audit_note(why);
            let done = match dead {
                Some(target) => webhooks::replay_dead(&db, &target, &by).await?,
                None => webhooks::replay_deliveries(&db, &ids, &by).await?,
            };
            let ReplayReport { replayed, left } = &done;
            output.show(&done, || {
                let (replayed, left) = (replayed.len(), left.len());
                format!("reopened: {replayed}\nmissing or being sent: {left}")
            })?;
            return Ok(CommandExit::from_success(done.left.is_empty()));
        }
        WebhooksCommand::Enable { target, why } => {
            let done = webhooks::enable_target(&db, &target, &audit_note(why)).await?;
            let said = if done { "enabled" } else { "no target of this name is disabled" };
            output.show(&json!({ "enabled": done }), || said.to_owned())?;
            return Ok(CommandExit::from_success(done));
        }
        WebhooksCommand::Test { target, why } => {
            let done = webhooks::ask_test(&db, &target, &audit_note(why)).await?;
            let said = if done { "asked; docmill webhooks targets" } else { "no such target" };
            output.show(&json!({ "asked": done }), || said.to_owned())?;
            return Ok(CommandExit::from_success(done));
        }
        WebhooksCommand::NewSecret => {}
    }
    Ok(CommandExit::Done)
}

fn format_targets(targets: &[WebhookTargetState]) -> String {
    let rows: Vec<_> = targets
        .iter()
        .map(|target| {
            [
                target.name.clone(),
                target.place.clone(),
                counted(target.open),
                target.oldest_s.map_or("-".to_owned(), |age| format!("{age:.0} s")),
                counted(target.dead),
                describe_target(target),
                describe_answer(target.tried_at, target.answer_status, target.answer_ms),
                describe_answer(target.test_ended_at, target.test_status, target.test_ms),
            ]
        })
        .collect();
    let titles =
        ["target", "place", "open", "oldest", "given up", "state", "last answer", "last test"];
    print::table(titles, &rows)
}

/// Status, latency and age of an answer.
fn describe_answer(
    at: Option<time::OffsetDateTime>,
    status: Option<i32>,
    ms: Option<i32>,
) -> String {
    let Some(at) = at else { return "-".to_owned() };
    let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    format!("{status} in {} ms, {} ago", ms.unwrap_or_default(), print::age_of(at))
}

/// Disabled, failing since when and how, or healthy.
fn describe_target(target: &WebhookTargetState) -> String {
    match (target.disabled_at, target.failing_since) {
        (Some(_), _) => format!("disabled: {}", target.disabled_why),
        (None, Some(since)) => {
            let problem = target.last_problem.as_deref().unwrap_or_default();
            format!("failing for {}: {problem}", print::age_of(since))
        }
        (None, None) => "healthy".to_owned(),
    }
}

/// A count that ends somewhere.
fn counted(count: i64) -> String {
    if count < COUNTED { count.to_string() } else { format!("{}+", COUNTED - 1) }
}

fn format_deliveries(found: &[DeliveryRow]) -> String {
    let rows: Vec<_> = found
        .iter()
        .map(|row| {
            [
                row.id.to_string(),
                row.event.clone(),
                row.ingestion_id.map_or("-".to_owned(), |id| id.to_string()),
                row.state.clone(),
                row.tries.to_string(),
                print::or_dash(row.last_problem.as_deref()),
            ]
        })
        .collect();
    print::table(["delivery", "event", "ingestion", "state", "tries", "last problem"], &rows)
}
