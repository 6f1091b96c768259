//! Users of the console, their tokens, and sessions of browsers.
//!
//! A change of a user or token and its row of the audit are one statement. Tokens and ids of sessions
//! are here as their SHA-256 alone, which is enough for 256 random bits. Lookups name the whole hash: its
//! digits cannot be chosen, so that the time of a lookup says nothing of use about a stored one.

use serde::Serialize;
use time::OffsetDateTime;

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// A user's name and rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRights {
    /// Name in the audit, in lower case.
    pub name: String,
    /// Role, as the settings write it.
    pub role: &'static str,
    /// The only tenant; empty: all.
    pub tenant: String,
    /// The most urgent priority, as the settings write it.
    pub highest_priority: &'static str,
}

/// A user as administrators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserRow {
    /// Name in the audit.
    pub name: String,
    /// Role.
    pub role: String,
    /// The only tenant; empty: all.
    pub tenant: String,
    /// The most urgent priority of documents handed in.
    pub highest_priority: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub made_at: OffsetDateTime,
    /// By whom.
    pub made_by: String,
    /// Since when it is ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub ended_at: Option<OffsetDateTime>,
    /// Tokens that are taken.
    pub tokens: i64,
    /// When one of its tokens was last used, to the minute.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_used_at: Option<OffsetDateTime>,
}

/// A token as administrators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenRow {
    /// The number by which it is revoked.
    pub id: i64,
    /// Whose.
    pub user_name: String,
    /// Its purpose.
    pub label: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub made_at: OffsetDateTime,
    /// By whom.
    pub made_by: String,
    /// From when it is not taken.
    #[serde(with = "time::serde::rfc3339::option")]
    pub expires_at: Option<OffsetDateTime>,
    /// When it was last used, to the minute.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_used_at: Option<OffsetDateTime>,
    /// Since when it is revoked.
    #[serde(with = "time::serde::rfc3339::option")]
    pub revoked_at: Option<OffsetDateTime>,
    /// By whom.
    pub revoked_by: Option<String>,
    /// Whether it is taken: neither revoked nor expired, and its user is not ended.
    pub is_valid: bool,
}

/// A token to be kept.
#[derive(Debug, Clone)]
pub struct NewTokenRow {
    /// Whose.
    pub user_name: String,
    /// Its purpose.
    pub label: String,
    /// SHA-256 of it.
    pub sha256: [u8; 32],
    /// Days until it is not taken any more; `None`: no end.
    pub days: Option<u32>,
}

/// The holder of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// Name in the audit.
    pub name: String,
    /// Role, as the schema has it.
    pub role: String,
    /// The only tenant; empty: all.
    pub tenant: String,
    /// The most urgent priority, as the schema has it.
    pub highest_priority: String,
    /// Whether its last use is to be written: more than a minute has passed since.
    pub is_stale: bool,
}

/// When sessions end, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct SessionTerms {
    /// Without a use.
    pub idle_s: f64,
    /// In any case.
    pub age_s: f64,
    /// Sessions of one token; the least used ones beyond end.
    pub most_of_token: i64,
}

/// Up to `limit` users behind the name `after`, by name.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_users(db: &Db, after: &str, limit: u32) -> Result<Vec<UserRow>> {
    sqlx::query_as!(
        UserRow,
        r#"SELECT u.name, u.role, u.tenant, u.highest_priority, u.made_at, u.made_by, u.ended_at,
             t.valid AS "tokens!", t.used AS "last_used_at?"
         FROM (SELECT * FROM console_user WHERE name > $1 ORDER BY name LIMIT $2) AS u
         LEFT JOIN LATERAL (
             SELECT count(*) FILTER (WHERE k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > (SELECT docmill_now()))) AS valid,
                 max(k.last_used_at) AS used
             FROM console_token k WHERE k.user_name = u.name) AS t ON true
         ORDER BY u.name"#,
        after,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing users")
}

/// The user of this name.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_user(db: &Db, name: &str) -> Result<Option<UserRow>> {
    sqlx::query_as!(
        UserRow,
        r#"SELECT u.name, u.role, u.tenant, u.highest_priority, u.made_at, u.made_by, u.ended_at,
             t.valid AS "tokens!", t.used AS "last_used_at?"
         FROM console_user u, LATERAL (
             SELECT count(*) FILTER (WHERE k.revoked_at IS NULL
                    AND (k.expires_at IS NULL OR k.expires_at > (SELECT docmill_now()))) AS valid,
                 max(k.last_used_at) AS used
             FROM console_token k WHERE k.user_name = u.name) AS t
         WHERE u.name = $1"#,
        name,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a user")
}

/// The newest tokens of a user, up to `limit`.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_tokens(db: &Db, user: &str, limit: u32) -> Result<Vec<TokenRow>> {
    sqlx::query_as!(
        TokenRow,
        r#"SELECT k.id, k.user_name, k.label, k.made_at, k.made_by, k.expires_at, k.last_used_at,
             k.revoked_at, k.revoked_by,
             (k.revoked_at IS NULL AND u.ended_at IS NULL
               AND (k.expires_at IS NULL OR k.expires_at > (SELECT docmill_now()))) AS "is_valid!"
         FROM console_token k JOIN console_user u ON u.name = k.user_name
         WHERE k.user_name = $1 ORDER BY k.user_name DESC, k.id DESC LIMIT $2"#,
        user,
        i64::from(limit),
    )
    .fetch_all(db.pool())
    .await
    .context("listing tokens")
}

/// Adds a user; `false` if the name is taken, by one that is ended too.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn add_user(db: &Db, user: &UserRights, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH new AS (
             INSERT INTO console_user (name, role, tenant, highest_priority, made_by)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING RETURNING name)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $5, 'users', 'user:' || n.name, $6, jsonb_build_object('set', jsonb_build_object(
             'role', $2::text, 'tenant', $3::text, 'highest_priority', $4::text)) FROM new n",
        user.name,
        user.role,
        user.tenant,
        user.highest_priority,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("adding a user")?;
    Ok(done.rows_affected() > 0)
}

/// Gives a user other rights, which hold from the next request on; `false` if there is no such user.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn change_user(db: &Db, user: &UserRights, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH held AS MATERIALIZED (
             SELECT u.name, jsonb_build_object('role', u.role, 'tenant', u.tenant,
                 'highest_priority', u.highest_priority) AS before
             FROM console_user u WHERE u.name = $1 FOR UPDATE
         ), audited AS (
             INSERT INTO operator_action (operator, action, target, why, before)
             SELECT $5, 'users', 'user:' || h.name, $6, h.before || jsonb_build_object('set',
                 jsonb_build_object('role', $2::text, 'tenant', $3::text,
                     'highest_priority', $4::text)) FROM held h
         )
         UPDATE console_user u SET role = $2, tenant = $3, highest_priority = $4
         FROM held h WHERE u.name = h.name",
        user.name,
        user.role,
        user.tenant,
        user.highest_priority,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("changing a user")?;
    Ok(done.rows_affected() > 0)
}

/// Ends a user, with all sessions, or takes the user up again with the tokens that were not revoked;
/// `false` if there is no such user, or nothing to change.
///
/// # Errors
/// No answer from Postgres.
pub async fn end_user(db: &Db, name: &str, ended: bool, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH held AS MATERIALIZED (
             SELECT u.name, u.ended_at FROM console_user u
             WHERE u.name = $1 AND (u.ended_at IS NULL) = $2 FOR UPDATE
         ), audited AS (
             INSERT INTO operator_action (operator, action, target, why, before)
             SELECT $3, 'users', 'user:' || h.name, $4, jsonb_build_object('ended_at', h.ended_at,
                 'set', jsonb_build_object('ended', $2::boolean)) FROM held h
         ), signed_out AS (
             DELETE FROM console_session s USING console_token k, held h
             WHERE $2 AND k.user_name = h.name AND s.token_hash = k.sha256
         )
         UPDATE console_user u SET ended_at = CASE WHEN $2 THEN docmill_now() END
         FROM held h WHERE u.name = h.name",
        name,
        ended,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("ending a user")?;
    Ok(done.rows_affected() > 0)
}

/// Adds a token of a user who is not ended and has fewer than `most` that are taken. Its number;
/// `None`: there is no such user, or too many tokens.
///
/// # Errors
/// No answer from Postgres, or values that it refuses.
pub async fn add_token(
    db: &Db,
    token: &NewTokenRow,
    most: u32,
    by: &AuditNote,
) -> Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"WITH holder AS MATERIALIZED (
             SELECT u.name FROM console_user u WHERE u.name = $1 AND u.ended_at IS NULL FOR UPDATE
         ), new AS (
             INSERT INTO console_token (user_name, label, sha256, made_by, expires_at)
             SELECT h.name, $2, $3, $4, docmill_now() + make_interval(days => $5::int) FROM holder h
             WHERE (SELECT count(*) FROM console_token k WHERE k.user_name = h.name
                 AND k.revoked_at IS NULL
                 AND (k.expires_at IS NULL OR k.expires_at > (SELECT docmill_now()))) < $6
             RETURNING id, user_name
         ), audited AS (
             INSERT INTO operator_action (operator, action, target, why, before)
             SELECT $4, 'tokens', 'user:' || n.user_name, $7, jsonb_build_object('set',
                 jsonb_build_object('token', n.id, 'label', $2::text)) FROM new n
         )
         SELECT id AS "id!" FROM new"#,
        token.user_name,
        token.label,
        &token.sha256[..],
        by.operator,
        token.days.and_then(|days| i32::try_from(days).ok()),
        i64::from(most),
        by.why,
    )
    .fetch_optional(db.pool())
    .await
    .context("adding a token")
}

/// Revokes a token and ends its sessions; `false` if there is none of this number, or it is revoked.
///
/// # Errors
/// No answer from Postgres.
pub async fn revoke_token(db: &Db, id: i64, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (
             UPDATE console_token k SET revoked_at = docmill_now(), revoked_by = $2
             WHERE k.id = $1 AND k.revoked_at IS NULL RETURNING k.id, k.user_name, k.sha256
         ), signed_out AS (
             DELETE FROM console_session s USING gone g WHERE s.token_hash = g.sha256
         )
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $2, 'tokens', 'user:' || g.user_name, $3, jsonb_build_object('token', g.id, 'set',
             jsonb_build_object('revoked', true)) FROM gone g",
        id,
        by.operator,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("revoking a token")?;
    Ok(done.rows_affected() > 0)
}

/// The holder of the token with this hash, if it is valid.
///
/// # Errors
/// No answer from Postgres.
pub async fn find_holder(db: &Db, sha256: &[u8; 32]) -> Result<Option<TokenHolder>> {
    sqlx::query_as!(
        TokenHolder,
        r#"SELECT u.name, u.role, u.tenant, u.highest_priority,
             (k.last_used_at IS NULL OR k.last_used_at < docmill_now() - interval '1 minute')
                 AS "is_stale!"
         FROM console_token k JOIN console_user u ON u.name = k.user_name
         WHERE k.sha256 = $1 AND k.revoked_at IS NULL AND u.ended_at IS NULL
           AND (k.expires_at IS NULL OR k.expires_at > (SELECT docmill_now()))"#,
        &sha256[..],
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a token")
}

/// Writes that a token was used.
///
/// # Errors
/// No answer from Postgres.
pub async fn note_use(db: &Db, sha256: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "UPDATE console_token SET last_used_at = docmill_now() WHERE sha256 = $1",
        &sha256[..],
    )
    .execute(db.pool())
    .await
    .context("noting the use of a token")?;
    Ok(())
}

/// Whether this login may keep sessions and note uses.
///
/// # Errors
/// No answer from Postgres.
pub async fn may_keep_sessions(db: &Db) -> Result<bool> {
    sqlx::query_scalar!(
        r#"SELECT has_column_privilege('console_session', 'id_hash', 'INSERT') AS "may!""#
    )
    .fetch_one(db.pool())
    .await
    .context("asking for the right to keep sessions")
}

/// Keeps a new session, and removes those that are over and the least used beyond the bound.
///
/// # Errors
/// No answer from Postgres.
pub async fn open_session(
    db: &Db,
    id_hash: &[u8; 32],
    token_hash: &[u8; 32],
    terms: SessionTerms,
) -> Result<()> {
    sqlx::query!(
        "WITH over AS (
             SELECT s.id_hash FROM console_session s
             WHERE s.opened_at < (SELECT docmill_now()) - make_interval(secs => $3)
             ORDER BY s.opened_at LIMIT 1000
         ), excess AS (
             SELECT s.id_hash FROM console_session s WHERE s.token_hash = $2
             ORDER BY s.token_hash, s.used_at DESC OFFSET $4::bigint - 1
         ), gone AS (
             DELETE FROM console_session s USING (
                 SELECT id_hash FROM over UNION SELECT id_hash FROM excess) AS x
             WHERE s.id_hash = x.id_hash
         )
         INSERT INTO console_session (id_hash, token_hash) VALUES ($1, $2)",
        &id_hash[..],
        &token_hash[..],
        terms.age_s,
        terms.most_of_token,
    )
    .execute(db.pool())
    .await
    .context("opening a session")?;
    Ok(())
}

/// The hash of the token of a session that is not over; `by_hand`: a person used it just now.
///
/// # Errors
/// No answer from Postgres.
pub async fn use_session(
    db: &Db,
    id_hash: &[u8; 32],
    by_hand: bool,
    terms: SessionTerms,
) -> Result<Option<Vec<u8>>> {
    sqlx::query_scalar!(
        "WITH clock AS MATERIALIZED (
             SELECT docmill_now() AS now
         ), live AS MATERIALIZED (
             SELECT s.id_hash, s.token_hash, s.used_at FROM console_session s, clock c
             WHERE s.id_hash = $1 AND s.used_at > c.now - make_interval(secs => $3)
               AND s.opened_at > c.now - make_interval(secs => $4)
         ), used AS (
             UPDATE console_session s SET used_at = c.now FROM live l, clock c
             WHERE s.id_hash = l.id_hash AND $2 AND l.used_at < c.now - interval '1 minute'
         )
         SELECT token_hash FROM live",
        &id_hash[..],
        by_hand,
        terms.idle_s,
        terms.age_s,
    )
    .fetch_optional(db.pool())
    .await
    .context("looking for a session")
}

/// How many sessions are not over.
///
/// # Errors
/// No answer from Postgres.
pub async fn count_sessions(db: &Db, terms: SessionTerms) -> Result<i64> {
    sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM console_session s
        WHERE s.used_at > (SELECT docmill_now()) - make_interval(secs => $1)
          AND s.opened_at > (SELECT docmill_now()) - make_interval(secs => $2)"#,
        terms.idle_s,
        terms.age_s,
    )
    .fetch_one(db.pool())
    .await
    .context("counting sessions")
}

/// Ends a session.
///
/// # Errors
/// No answer from Postgres.
pub async fn close_session(db: &Db, id_hash: &[u8; 32]) -> Result<()> {
    sqlx::query!("DELETE FROM console_session WHERE id_hash = $1", &id_hash[..])
        .execute(db.pool())
        .await
        .context("ending a session")?;
    Ok(())
}
