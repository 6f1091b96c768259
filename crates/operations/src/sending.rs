//! Messages for ingestions that are in the database: to the tier of their priority, in the group
//! of their tenant.

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::IngestionId;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::routes::{self, MessageRoute};
use docmill_queue::{MessageQueue, OutgoingMessage};

/// Sends one message for each ingestion. One result per id, in order; `Missing` for an id without
/// a row.
///
/// # Errors
/// No answer from Postgres; no message was sent.
pub async fn send_messages(
    db: &Db,
    queue: &dyn MessageQueue,
    ids: &[IngestionId],
) -> Result<Vec<Result<()>>> {
    send_traced(db, queue, ids, |_| None).await
}

/// The same, with a trace (W3C `traceparent`) that the work on an ingestion continues.
///
/// # Errors
/// As [`send_messages`].
pub async fn send_traced(
    db: &Db,
    queue: &dyn MessageQueue,
    ids: &[IngestionId],
    trace: impl Fn(IngestionId) -> Option<String>,
) -> Result<Vec<Result<()>>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let routes = routes::find_routes(db, ids).await?;
    let messages: Vec<OutgoingMessage> =
        routes.iter().map(|route| build_message(route, trace(route.id))).collect();
    let mut sent = routes.iter().map(|route| route.id).zip(queue.send(&messages).await).peekable();
    // The routes are in the order of the ids, with gaps.
    let mut answers = Vec::with_capacity(ids.len());
    for id in ids {
        answers.push(match sent.next_if(|(of, _)| of == id) {
            Some((_, answer)) => answer,
            None => Err(Error::new(Fault::Missing, "no such ingestion")),
        });
    }
    Ok(answers)
}

fn build_message(route: &MessageRoute, traceparent: Option<String>) -> OutgoingMessage {
    OutgoingMessage {
        priority: route.priority,
        tenant: route.tenant.clone(),
        traceparent,
        origin: None,
        ..OutgoingMessage::from_body(route.id.to_string())
    }
}
