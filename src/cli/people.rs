//! `docmill users` and `docmill tokens`: users of the console, and what they sign in with.

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;

use super::print;
use docmill_core::config::WebRole;
use docmill_core::model::Priority;
use docmill_operations::people::{TokenRow, UserRow};

/// The rights of a new user.
#[derive(Debug, clap::Args)]
pub(super) struct RightsArgs {
    /// Name, in lower case
    pub(super) name: String,
    /// Role: viewer, producer, reviewer, operator, administrator
    #[arg(long, value_parser = parse_role)]
    pub(super) role: WebRole,
    /// The only tenant; left out: all
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub(super) tenant: Option<String>,
    /// Most urgent priority of documents handed in
    #[arg(long, default_value = "critical", value_parser = parse_priority)]
    pub(super) highest_priority: Priority,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    pub(super) why: String,
}

/// Other rights; omitted ones stay.
#[derive(Debug, clap::Args)]
pub(super) struct UserChangeArgs {
    /// Name
    pub(super) name: String,
    /// Role: viewer, producer, reviewer, operator, administrator
    #[arg(long, value_parser = parse_role)]
    pub(super) role: Option<WebRole>,
    /// The only tenant
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), conflicts_with = "all_tenants")]
    pub(super) tenant: Option<String>,
    /// All tenants
    #[arg(long)]
    pub(super) all_tenants: bool,
    /// Most urgent priority of documents handed in
    #[arg(long, value_parser = parse_priority)]
    pub(super) highest_priority: Option<Priority>,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    pub(super) why: String,
}

/// Subcommands of `users`.
#[derive(Debug, Subcommand)]
pub(super) enum UsersCommand {
    /// List users
    List,
    /// Add a user
    Add(RightsArgs),
    /// Give a user other rights; omitted ones stay
    Change(UserChangeArgs),
    /// End a user: tokens are refused, sessions end
    End {
        /// Name
        name: String,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Restore an ended user
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
    /// Revoke a token: it is refused, its sessions end
    Revoke {
        /// Number, as shown by `list`
        id: i64,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

pub(super) fn parse_role(text: &str) -> Result<WebRole, String> {
    WebRole::from_code(text)
        .ok_or_else(|| "viewer, producer, reviewer, operator or administrator".to_owned())
}

pub(super) fn parse_priority(text: &str) -> Result<Priority, String> {
    Priority::from_code(text).ok_or_else(|| "critical, high, normal, low or background".to_owned())
}

pub(super) fn format_users(users: &[UserRow]) -> String {
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

pub(super) fn format_tokens(tokens: &[TokenRow]) -> String {
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
