//! Users of the console and their tokens, checked before anything is written.
//!
//! A token is 256 random bits, shown once; its SHA-256 alone is kept, which needs no slow hash: there is
//! nothing to guess. Not promised: protection from an administrator, who can make a second name.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use docmill_ledger::db::operators::people::{
    SessionTerms, TokenHolder, TokenRow, UserRow, close_session, count_sessions, end_user,
    find_holder, find_user, list_tokens, list_users, may_keep_sessions, note_use, open_session,
    revoke_token, use_session,
};

use docmill_core::config::{WebRole, WebToken};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;
use docmill_core::model::digest::encode_hex;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::operators::people::{self, NewTokenRow, UserRights};

/// Valid tokens of one user.
pub const MAX_TOKENS_PER_USER: u32 = 20;
/// Days that a token may be valid, unless it has no end.
pub const MAX_TOKEN_DAYS: u32 = 3_650;
/// Characters of a user's name.
const MAX_NAME_CHARS: usize = 100;
/// Characters of a tenant.
const MAX_TENANT_CHARS: usize = 200;
/// Characters of the label of a token.
const MAX_LABEL_CHARS: usize = 200;

/// A user to be added or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDraft {
    /// Name in the audit, in lower case.
    pub name: String,
    /// Role.
    pub role: WebRole,
    /// The only tenant; empty: all.
    pub tenant: String,
    /// The most urgent priority of documents handed in.
    pub highest_priority: Priority,
}

impl UserDraft {
    fn rights(&self) -> UserRights {
        UserRights {
            name: self.name.clone(),
            role: self.role.code(),
            tenant: self.tenant.clone(),
            highest_priority: self.highest_priority.code(),
        }
    }
}

/// A token, as it is shown once. Not `Debug`: it is in no log.
#[derive(Serialize)]
pub struct AccessToken {
    /// The token.
    pub token: String,
    /// Its SHA-256 in hex, as the settings keep it.
    pub sha256: String,
}

/// A token that was made for a user. Not `Debug`: it is in no log.
#[derive(Serialize)]
pub struct MadeToken {
    /// The number by which it is revoked.
    pub id: i64,
    /// The token, shown this once.
    pub token: String,
}

/// A token to be made.
#[derive(Debug, Clone, Default)]
pub struct TokenDraft {
    /// Whose.
    pub user: String,
    /// Its purpose; may be empty.
    pub label: String,
    /// Days until it is not taken any more; `None`: no end.
    pub days: Option<u32>,
}

/// A new token.
///
/// # Errors
/// The system gives no random numbers.
pub fn make_access_token() -> Result<AccessToken> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)
        .map_err(|error| Error::internal(format!("no random numbers: {error}")))?;
    let token = format!("dm_{}", encode_hex(bits));
    let sha256 = encode_hex(Sha256::digest(token.as_bytes()));
    Ok(AccessToken { token, sha256 })
}

/// Adds a user. `settings`: `web.tokens`, whose names are taken.
///
/// # Errors
/// `Rejected` for an impossible tenant, or a name that cannot be taken; no answer from Postgres.
pub async fn add_user(
    db: &Db,
    user: &UserDraft,
    settings: &[WebToken],
    by: &AuditNote,
) -> Result<()> {
    check_name(&user.name)?;
    check_tenant(&user.tenant)?;
    if settings.iter().any(|token| token.name.trim().to_lowercase() == user.name) {
        return Err(rejected("a token of web.tokens has this name: choose another"));
    }
    match people::add_user(db, &user.rights(), by).await? {
        true => Ok(()),
        false => Err(rejected("there is, or was, a user of this name: choose another")),
    }
}

/// Gives a user other rights, from the next request on.
///
/// # Errors
/// `Rejected` for an impossible tenant; `Missing` if there is no such user; no answer from Postgres.
pub async fn change_user(db: &Db, user: &UserDraft, by: &AuditNote) -> Result<()> {
    check_tenant(&user.tenant)?;
    match people::change_user(db, &user.rights(), by).await? {
        true => Ok(()),
        false => Err(Error::new(Fault::Missing, "there is no such user: docmill users list")),
    }
}

/// Makes a token for a user.
///
/// # Errors
/// `Rejected` for an impossible label or time, a user who is ended or has too many tokens; no answer from
/// Postgres.
pub async fn make_token(db: &Db, draft: &TokenDraft, by: &AuditNote) -> Result<MadeToken> {
    let is_plain = !draft.label.chars().any(char::is_control);
    if !is_plain || draft.label.chars().count() > MAX_LABEL_CHARS {
        return Err(rejected(format!(
            "the label has more than {MAX_LABEL_CHARS} characters, or several lines"
        )));
    }
    if draft.days.is_some_and(|days| days == 0 || days > MAX_TOKEN_DAYS) {
        return Err(rejected(format!("a token is valid for 1 to {MAX_TOKEN_DAYS} days")));
    }
    let AccessToken { token, .. } = make_access_token()?;
    let row = NewTokenRow {
        user_name: draft.user.clone(),
        label: draft.label.clone(),
        sha256: Sha256::digest(token.as_bytes()).into(),
        days: draft.days,
    };
    match people::add_token(db, &row, MAX_TOKENS_PER_USER, by).await? {
        Some(id) => Ok(MadeToken { id, token }),
        None => Err(rejected(format!(
            "there is no such user, the user is ended, or has {MAX_TOKENS_PER_USER} valid tokens"
        ))),
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_right = name.len() <= MAX_NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '@' | '+' | '-')
        });
    match is_right {
        true => Ok(()),
        false => Err(rejected(format!(
            "a name has 1 to {MAX_NAME_CHARS} of a-z, 0-9, . _ @ + -, and begins with a letter or digit"
        ))),
    }
}

fn check_tenant(tenant: &str) -> Result<()> {
    let is_plain = tenant.trim() == tenant && !tenant.chars().any(char::is_control);
    match is_plain && tenant.chars().count() <= MAX_TENANT_CHARS {
        true => Ok(()),
        false => Err(rejected(format!(
            "a tenant has at most {MAX_TENANT_CHARS} characters in one line, and no blanks around it"
        ))),
    }
}

fn rejected(text: impl Into<String>) -> Error {
    Error::new(Fault::Rejected, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_has_one_spelling_of_a_name() {
        for (name, is_right) in [
            ("ann", true),
            ("ann@example.com", true),
            ("7-eleven", true),
            ("Ann", false),
            ("web:ann", false),
            ("ann ", false),
            ("ann\n", false),
            ("änn", false),
            ("", false),
            (&"a".repeat(101), false),
        ] {
            assert_eq!(check_name(name).is_ok(), is_right, "{name:?}");
        }
    }

    #[test]
    fn a_tenant_that_no_document_can_have_is_refused() {
        let (longest, longer) = ("a".repeat(200), "a".repeat(201));
        for (tenant, is_right) in [
            ("", true),
            ("Acme GmbH", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            (" ", false),
            ("acme ", false),
            ("ac\0me", false),
        ] {
            assert_eq!(check_tenant(tenant).is_ok(), is_right, "{tenant:?}");
        }
    }

    #[test]
    fn a_token_has_256_random_bits_and_the_hash_of_the_settings() {
        let (one, other) = (make_access_token().unwrap(), make_access_token().unwrap());
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), "dm_".len() + 64);
        assert_eq!(one.sha256, docmill_core::model::digest::sha256_hex(&one.token));
    }
}
