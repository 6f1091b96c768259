//! `docmill users` and `docmill tokens`: users of the console, and what they sign in with.

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::jobs::{audit_note, open_database};
use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_core::config::WebRole;
use docmill_core::model::Priority;
use docmill_operations::people::{self, TokenDraft, TokenRow, UserDraft, UserRow};

/// Users or tokens of one answer.
const MAX_ROWS: u32 = 10_000;

/// The rights of a new user.
#[derive(Debug, clap::Args)]
pub(super) struct RightsArgs {
    /// Name, in lower case
    name: String,
    /// Role: viewer, producer, reviewer, operator, administrator
    #[arg(long, value_parser = parse_role)]
    role: WebRole,
    /// The only tenant; left out: all
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tenant: Option<String>,
    /// Most urgent priority of documents handed in
    #[arg(long, default_value = "critical", value_parser = parse_priority)]
    highest_priority: Priority,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

/// Other rights; those left out stay.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// Name
    name: String,
    /// Role: viewer, producer, reviewer, operator, administrator
    #[arg(long, value_parser = parse_role)]
    role: Option<WebRole>,
    /// The only tenant
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), conflicts_with = "all_tenants")]
    tenant: Option<String>,
    /// All tenants
    #[arg(long)]
    all_tenants: bool,
    /// Most urgent priority of documents handed in
    #[arg(long, value_parser = parse_priority)]
    highest_priority: Option<Priority>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

/// Subcommands of `users`.
#[derive(Debug, Subcommand)]
pub(super) enum UsersCommand {
    /// List users
    List,
    /// Add a user
    Add(RightsArgs),
    /// Give a user other rights; those left out stay
    Change(ChangeArgs),
    /// End a user: no token is taken, sessions end
    End {
        /// Name
        name: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Take an ended user up again
    Restore {
        /// Name
        name: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

/// Subcommands of `tokens`.
#[derive(Debug, Subcommand)]
pub(super) enum TokensCommand {
    /// List a user's tokens, newest first
    List {
        /// User
        user: String,
    },
    /// Make a token for a user; it is shown once
    Create {
        /// User
        user: String,
        /// Purpose
        #[arg(long, default_value = "")]
        label: String,
        /// Days until it expires; left out: never
        #[arg(long)]
        days: Option<u32>,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Revoke a token: it is not taken, its sessions end
    Revoke {
        /// Number, as shown by `list`
        id: i64,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

fn parse_role(text: &str) -> Result<WebRole, String> {
    WebRole::from_code(text)
        .ok_or_else(|| "viewer, producer, reviewer, operator or administrator".to_owned())
}

fn parse_priority(text: &str) -> Result<Priority, String> {
    Priority::from_code(text).ok_or_else(|| "critical, high, normal, low or background".to_owned())
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

async fn change_user(db: &docmill_operations::Db, change: ChangeArgs) -> anyhow::Result<()> {
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

fn format_users(users: &[UserRow]) -> String {
    let rows: Vec<_> = users
        .iter()
        .map(|user| {
            [
                user.name.clone(),
                user.role.clone(),
                if user.tenant.is_empty() { "all".to_owned() } else { user.tenant.clone() },
                user.tokens.to_string(),
                user.last_used_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
                if user.ended_at.is_some() { "ended" } else { "active" }.to_owned(),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => "no users".to_owned(),
        false => print::table(["user", "role", "tenant", "tokens", "last used", "state"], &rows),
    }
}

fn format_tokens(tokens: &[TokenRow]) -> String {
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| {
            [
                token.id.to_string(),
                token.label.clone(),
                token.made_at.to_string(),
                token.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
                token.last_used_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
                if token.is_valid { "valid" } else { "not taken" }.to_owned(),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => "no tokens".to_owned(),
        false => print::table(["token", "purpose", "made", "expires", "last used", "state"], &rows),
    }
}
