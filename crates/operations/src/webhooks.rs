//! Webhooks for outcomes and decisions: delivery, and the operators' view of it.
//!
//! An event is in the outbox once it is recorded; nothing is sent from memory.

mod deliver;
mod payload;
mod store_target;

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub use deliver::{WebhookDelivery, WebhookTerms};
pub use docmill_client::webhook::{DestinationPolicy, NameResolver, SystemResolver};
pub use docmill_ledger::db::lanes::webhooks::{
    COUNTED, DeliveryQuery, DeliveryRow, DeliverySlot, WebhookTargetState, ask_test, enable_target,
    list_deliveries, list_of_document, list_targets,
};
pub use store_target::DeliveryStore;

use docmill_client::webhook::write_secret;
use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::webhooks as rows;
use docmill_ledger::db::operators::AuditNote;

/// Deliveries that are replayed between two rows of the audit.
const REPLAYED_TOGETHER: u32 = 500;

/// Counts of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplayReport {
    /// Deliveries that are open again.
    pub replayed: Vec<i64>,
    /// Those that are gone, or are being sent at this moment.
    pub left: Vec<i64>,
}

/// A new secret that signs.
///
/// # Errors
/// The system gives no random numbers.
pub fn make_signing_secret() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::internal(format!("no random numbers: {error}")))?;
    Ok(write_secret(&bytes))
}

/// Sends these deliveries once more, whether they were delivered or given up, in the order of their
/// numbers.
///
/// # Errors
/// No answer from Postgres.
pub async fn replay_deliveries(db: &Db, ids: &[i64], by: &AuditNote) -> Result<ReplayReport> {
    let ids: Vec<i64> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    rows::audit_replay(db, "", &ids, by).await?;
    replay_each(db, &ids).await
}

/// Sends the dead deliveries of a target once more, oldest first.
///
/// # Errors
/// `Missing` if no target has the name; no answer from Postgres.
pub async fn replay_dead(db: &Db, target: &str, by: &AuditNote) -> Result<ReplayReport> {
    if !list_targets(db).await?.iter().any(|known| known.name == target) {
        return Err(Error::new(Fault::Missing, format!("no webhook target is called `{target}`")));
    }
    let wanted = DeliveryQuery { target: target.to_owned(), dead: true, after: None };
    let mut whole = ReplayReport::default();
    loop {
        let page = list_deliveries(db, &wanted, REPLAYED_TOGETHER).await?;
        let mut ids: Vec<i64> = page.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        if ids.is_empty() {
            return Ok(whole);
        }
        rows::audit_replay(db, target, &ids, by).await?;
        let done = replay_each(db, &ids).await?;
        let stuck = done.replayed.is_empty();
        whole.replayed.extend(done.replayed);
        whole.left.extend(done.left);
        if stuck {
            return Ok(whole);
        }
    }
}

/// Each in a transaction of its own: it locks its document, and two who replay many at once in one
/// transaction each could wait for each other in a circle.
async fn replay_each(db: &Db, ids: &[i64]) -> Result<ReplayReport> {
    let mut report = ReplayReport::default();
    for id in ids {
        match rows::replay_delivery(db, *id).await? {
            true => report.replayed.push(*id),
            false => report.left.push(*id),
        }
    }
    Ok(report)
}

/// A token of one look for what is due.
fn lease_token() -> Uuid {
    Uuid::new_v4()
}
