//! The record of an ingestion's messages and of operators' actions on it. Read-only.
//!
//! Not promised: that the queue still has the message. It is asked for counts only, because looking for
//! one message would take others from their workers.

use time::OffsetDateTime;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// The record of an ingestion's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRecord {
    /// The tier of the queue that they go to, as [`docmill_core::model::Priority::code`] writes it.
    pub priority: String,
    /// When one was last sent, as far as known: producers may send without saying so.
    pub sent_at: OffsetDateTime,
    /// How often one was sent again because nothing came of it.
    pub resends: i32,
    /// The pause (`scope:name`) for which it waits without a message.
    pub parked_by: Option<String>,
    /// When maintenance sends a message; `None`: it waits for none, or for the end of a pause.
    pub parked_until: Option<OffsetDateTime>,
}

/// One thing that an operator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorActionRow {
    /// When.
    pub done_at: OffsetDateTime,
    /// Who, as signed in or as given on the command line.
    pub operator: String,
    /// What: `reopen`, `cancel`, `reprioritize`.
    pub action: String,
    /// The reason given.
    pub why: String,
}

/// The record of the messages of an ingestion; `None`: there is no such ingestion.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_message_record(db: &Db, id: IngestionId) -> Result<Option<MessageRecord>> {
    sqlx::query_as!(
        MessageRecord,
        "SELECT priority, enqueued_at AS sent_at, resends, parked_by, parked_until
         FROM ingestion WHERE id = $1",
        id.0,
    )
    .fetch_optional(db.pool())
    .await
    .context("reading the record of messages")
}

/// Operators' actions on an ingestion, newest first, at most 20.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_operator_actions(db: &Db, id: IngestionId) -> Result<Vec<OperatorActionRow>> {
    sqlx::query_as!(
        OperatorActionRow,
        "SELECT done_at, operator, action, why FROM operator_action
         WHERE target = $1 ORDER BY id DESC LIMIT 20",
        id.0.to_string(),
    )
    .fetch_all(db.pool())
    .await
    .context("reading operators' actions")
}
