//! `docmill web`: pages for operators and reviewers, an interface for programs, and their tokens.

use serde_json::json;

use super::jobs::{audit_note, open_database};
use super::people::{
    RightsArgs, TokensCommand, UserChangeArgs, UsersCommand, format_tokens, format_users,
    parse_priority, parse_role,
};
use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_client::telemetry;
use docmill_core::config::ConfigNeeds;
use docmill_operations::people::{self, TokenDraft, UserDraft, make_access_token};
use docmill_pipeline::shutdown::Shutdown;

/// Users or tokens of one answer.
const MAX_ROWS: u32 = 10_000;

/// Arguments of `web`.
#[derive(Debug, clap::Args)]
pub(super) struct WebArgs {
    /// Print a new token and its configuration entry, and exit
    #[arg(long)]
    new_token: bool,
}

pub(super) async fn run(context: &CommandContext, web: WebArgs) -> anyhow::Result<CommandExit> {
    if web.new_token {
        let made = make_access_token()?;
        context.result_output().show(&made, || {
            format!(
                "token (shown once, give it to whom it is for):\n  {}\nfor the configuration:\n  \
                 [[web.tokens]]\n  name = \"…\"\n  role = \"viewer\" # producer, reviewer, operator, administrator\n  \
                 sha256 = \"{}\"",
                made.token, made.sha256
            )
        })?;
        return Ok(CommandExit::Done);
    }
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = telemetry::init_service(app.config().worker.log, &app.config().telemetry)?;
    let stop = Shutdown::on_signals()?;
    let health = app.health_pages_if_free().await?;
    tracing::info!("{}", health.describe());
    let console = Box::pin(app.open_console()).await?;
    console.announce(&app.config().web)?;
    let health = health.serve_metrics();
    console.serve(stop).await;
    health.abort();
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    Ok(CommandExit::Done)
}

pub(super) async fn run_users(
    context: &CommandContext,
    what: UsersCommand,
) -> anyhow::Result<CommandExit> {
    let (app, db) = open_database(context, DATABASE).await?;
    match what {
        UsersCommand::List => {}
        UsersCommand::Add(rights) => {
            let RightsArgs { name, role, tenant, highest_priority, why } = rights;
            let tenant = tenant.unwrap_or_default();
            let draft = UserDraft { name, role, tenant, highest_priority };
            let settings = &app.config().web.tokens;
            people::add_user(&db, &draft, settings, &audit_note(why)).await?;
        }
        UsersCommand::Change(change) => change_user(&db, change).await?,
        UsersCommand::End { name, why } => end_user(&db, &name, true, why).await?,
        UsersCommand::Restore { name, why } => end_user(&db, &name, false, why).await?,
    }
    let users = people::list_users(&db, "", MAX_ROWS).await?;
    context.result_output().show(&users, || format_users(&users))?;
    if !app.config().web.users {
        print::error("web.users is off: these users cannot sign in");
    }
    Ok(CommandExit::Done)
}

async fn end_user(
    db: &docmill_operations::Db,
    name: &str,
    ended: bool,
    why: String,
) -> anyhow::Result<()> {
    if !people::end_user(db, name, ended, &audit_note(why)).await? {
        anyhow::bail!("there is no such user, or it is done already: docmill users list");
    }
    Ok(())
}

async fn change_user(db: &docmill_operations::Db, change: UserChangeArgs) -> anyhow::Result<()> {
    let Some(known) = people::find_user(db, &change.name).await? else {
        anyhow::bail!("there is no such user: docmill users list");
    };
    let role = change.role.map_or_else(|| parse_role(&known.role), Ok);
    let priority = change.highest_priority;
    let priority = priority.map_or_else(|| parse_priority(&known.highest_priority), Ok);
    let draft = UserDraft {
        name: known.name,
        role: role.map_err(anyhow::Error::msg)?,
        tenant: match change.all_tenants {
            true => String::new(),
            false => change.tenant.unwrap_or(known.tenant),
        },
        highest_priority: priority.map_err(anyhow::Error::msg)?,
    };
    people::change_user(db, &draft, &audit_note(change.why)).await?;
    Ok(())
}

pub(super) async fn run_tokens(
    context: &CommandContext,
    what: TokensCommand,
) -> anyhow::Result<CommandExit> {
    let (_, db) = open_database(context, DATABASE).await?;
    let output = context.result_output();
    match what {
        TokensCommand::List { user } => {
            let tokens = people::list_tokens(&db, &user, MAX_ROWS).await?;
            output.show(&tokens, || format_tokens(&tokens))?;
        }
        TokensCommand::Create { user, label, days, why } => {
            let draft = TokenDraft { user, label, days };
            let made = people::make_token(&db, &draft, &audit_note(why)).await?;
            output.show(&made, || {
                format!(
                    "token {} (shown once, give it to whom it is for):\n  {}",
                    made.id, made.token
                )
            })?;
        }
        TokensCommand::Revoke { id, why } => {
            let done = people::revoke_token(&db, id, &audit_note(why)).await?;
            let text = if done { "revoked" } else { "no token of this number is valid" };
            output.show(&json!({ "revoked": done }), || text.to_owned())?;
            return Ok(CommandExit::from_success(done));
        }
    }
    Ok(CommandExit::Done)
}
