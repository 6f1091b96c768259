//! Resolves message bodies other than a single id, before anything is claimed.
//!
//! Bodies are untrusted input. Ids are looked up in the database and objects in the store before
//! anything follows from them. Several ids or objects in one body become one message each. Not
//! promised: that an object under an allowed prefix was written by an authorised party; the
//! bucket's policy decides that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::registry::InFlightMessage;
use crate::{DATABASE, QueueJobSource, batch};
use docmill_core::fault::{self, Fault};
use docmill_core::metrics;
use docmill_core::model::message::{MessageBody, ObjectCreated, plain_etag};
use docmill_core::model::{DocumentId, IngestionId};
use docmill_ledger::{ObjectRegistration, QuarantinedMessage};
use docmill_queue::{Delivery, OutgoingMessage};
use docmill_storage::{ObjectMeta, keys};
use parking_lot::Mutex;

/// How long a message is hidden when something it needs did not answer.
const LEDGER_FAILURE_DELAY: Duration = Duration::from_secs(10);
/// The store answers for objects if it has done so within this time.
const ANSWERED_LATELY: Duration = Duration::from_secs(15 * 60);
/// A message that was taken out of the dead-letter queue so often ends by its age alone.
const MAX_REVIVALS: u32 = 2;
/// Interval between warnings about events outside the allowed places.
const WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// Counts refused events, and rate-limits the warning about them.
#[derive(Debug, Default)]
pub struct RefusedEvents {
    since_warned: AtomicU64,
    last_warned: Mutex<Option<Instant>>,
}

impl RefusedEvents {
    /// Counts one. The log gives the count every ten minutes, without keys: keys may be names.
    fn note(&self, bucket: &str) {
        let count = self.since_warned.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last_warned = self.last_warned.lock();
        if last_warned.is_some_and(|at| at.elapsed() < WARNING_INTERVAL) {
            return;
        }
        *last_warned = Some(Instant::now());
        drop(last_warned);
        self.since_warned.store(0, Ordering::Relaxed);
        tracing::warn!(
            bucket,
            count,
            "{count} events about objects outside store.allow were not taken, the last of bucket \
             {bucket}"
        );
    }
}

/// Whether the store answers for objects of events: a refusal is about one object only while others
/// are answered for.
#[derive(Debug, Default)]
pub struct ObjectAnswers {
    last: Mutex<Option<Instant>>,
}

impl ObjectAnswers {
    /// The store has said whether an object is there.
    fn note_answer(&self) {
        *self.last.lock() = Some(Instant::now());
    }

    /// Whether this failure is about the object: the store is there, refuses, and has answered for
    /// others lately.
    fn is_about_object(&self, error: &fault::Error) -> bool {
        let is_refusal = matches!(error.fault, Fault::Denied | Fault::Rejected | Fault::Internal);
        let answered = self.last.lock().map(|at| at.elapsed());
        is_refusal && answered.is_some_and(|ago| ago <= ANSWERED_LATELY)
    }
}

/// The result of resolving one object.
enum ArrivedObject {
    /// This ingestion.
    Ingestion(IngestionId),
    /// Nothing, for this reason.
    NoWork(&'static str),
    /// It is not in the store.
    Absent,
}

/// Finds out which single ingestion a body asks for; everything else is answered here.
pub(super) async fn resolve_body(
    source: &QueueJobSource,
    body: MessageBody,
    delivery: &Delivery,
    ticket: &InFlightMessage,
) -> Option<IngestionId> {
    match body {
        MessageBody::Ingestion(id) => return Some(id),
        MessageBody::Group(ids) => resolve_group(source, ids, delivery, ticket).await,
        MessageBody::Objects(objects) => match <[ObjectCreated; 1]>::try_from(objects) {
            Ok([object]) => match resolve_object(source, object).await {
                Ok(ArrivedObject::Ingestion(id)) => return Some(id),
                Ok(ArrivedObject::NoWork(what)) => {
                    acknowledge_without_work(source, ticket, what).await;
                }
                Ok(ArrivedObject::Absent) => {
                    wait_for(source, delivery, ticket, "unknown_object").await;
                }
                Err(error) if source.heads.is_about_object(&error) => {
                    wait_for(source, delivery, ticket, "unknown_object").await;
                }
                Err(error) => hide_after_error(source, ticket, &error).await,
            },
            Err(objects) => {
                let bodies = objects.iter().map(ObjectCreated::to_event).collect();
                fan_out(source, ticket, bodies).await;
            }
        },
        MessageBody::NoWork(what) => acknowledge_without_work(source, ticket, what).await,
        MessageBody::Malformed(_) if source.queue.leaves_foreign() => {
            leave_to_others(source, delivery, ticket).await;
        }
        MessageBody::Malformed(why) => {
            quarantine_delivery(source, delivery, ticket, "malformed", why).await;
        }
    }
    None
}

/// Sends one message for each id that has a row. Ids without one wait together in one message, so
/// that invented ids cannot multiply messages.
async fn resolve_group(
    source: &QueueJobSource,
    ids: Vec<IngestionId>,
    delivery: &Delivery,
    ticket: &InFlightMessage,
) {
    let unknown = match source.ledger.find_unknown(&ids).await {
        Ok(unknown) => unknown,
        Err(error) => return hide_after_error(source, ticket, &error).await,
    };
    if unknown.len() == ids.len() {
        return wait_for(source, delivery, ticket, "unknown_ingestion").await;
    }
    let known = ids.iter().filter(|id| !unknown.contains(id));
    let mut bodies: Vec<String> = known.map(ToString::to_string).collect();
    if !unknown.is_empty() {
        bodies.push(serde_json::json!({ "ingestion_ids": unknown }).to_string());
    }
    fan_out(source, ticket, bodies).await;
}

/// Checks the store before a row is made. An event decides neither which version is read nor
/// whether another is given up.
async fn resolve_object(
    source: &QueueJobSource,
    object: ObjectCreated,
) -> fault::Result<ArrivedObject> {
    let store = &source.config.store;
    let (bucket, key) = (object.bucket.as_str(), object.key.as_str());
    if keys::is_own_artefact(key) {
        return Ok(ArrivedObject::NoWork("own_artefact"));
    }
    let Some(place) = store.find_place(bucket, key) else {
        source.refused.note(bucket);
        return Ok(ArrivedObject::NoWork("not_allowed"));
    };
    let tenant = place.tenant.map(ToOwned::to_owned);
    let name = store.object_name(bucket, key);
    let there = match source.work.documents().head(&name).await {
        Ok(Some(there)) => {
            source.heads.note_answer();
            Some(there)
        }
        Ok(None) => {
            source.heads.note_answer();
            return Ok(ArrivedObject::Absent);
        }
        // The object exists but is unreadable: its row will show that to a person.
        Err(error) if error.fault == Fault::Missing => None,
        Err(error) => return Err(error),
    };
    if let (Some(document), Some(meta)) = (keys::submitted_document(key), &there)
        && meta.metadata.get(keys::SUBMITTED_AS).is_some_and(|by| *by == document.to_string())
    {
        // `submit` registers its uploads itself, with more data; the row may still be on its way.
        return Ok(ArrivedObject::Ingestion(IngestionId::first_for_document(document)));
    }
    let registration = build_registration(&object, there.as_ref(), name, tenant);
    source.ledger.register_object(&registration).await.map(ArrivedObject::Ingestion)
}

/// The version that is there; the event's word on order counts only if it is about that version.
fn build_registration(
    object: &ObjectCreated,
    there: Option<&ObjectMeta>,
    file_path: String,
    tenant: Option<String>,
) -> ObjectRegistration {
    let (bucket, key) = (object.bucket.as_str(), object.key.as_str());
    let found = there.map(|meta| plain_etag(&meta.etag.0));
    let named = object.etag.as_deref();
    let is_current = named.is_some() && named == found;
    let etag = found.or(named);
    let version = object.version.as_deref().filter(|_| is_current);
    let sequencer = object.sequencer.clone().filter(|_| is_current);
    ObjectRegistration {
        document: DocumentId::from_object(bucket, key),
        ingestion: IngestionId::from_object_version(
            bucket,
            key,
            version.or(etag).unwrap_or_default(),
            sequencer.as_deref().unwrap_or_default(),
        ),
        file_path,
        original_name: key.rsplit('/').next().unwrap_or(key).to_owned(),
        etag: etag.map(ToOwned::to_owned),
        size: there.map(|meta| meta.size),
        sequencer,
        tenant,
    }
}

/// Sends one message each and then acknowledges: a crash in between sends some of them twice,
/// which is harmless, and never none.
async fn fan_out(source: &QueueJobSource, ticket: &InFlightMessage, bodies: Vec<String>) {
    let messages: Vec<OutgoingMessage> =
        bodies.into_iter().map(|body| ticket.replacement_message(body)).collect();
    let answers = source.queue.send(&messages).await;
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        hide_after_error(source, ticket, &error).await;
        return;
    }
    metrics::count_delivery("fanned_out");
    source.acknowledge(ticket).await;
}

async fn acknowledge_without_work(
    source: &QueueJobSource,
    ticket: &InFlightMessage,
    what: &'static str,
) {
    metrics::count_delivery(if what == "not_allowed" { what } else { "no_work" });
    tracing::debug!(what, "acknowledging a message without work: {what}");
    source.acknowledge(ticket).await;
}

/// Hides a message whose ingestion or object does not exist yet: a producer may send before it
/// commits. After the time limit a copy is kept in quarantine: its age counts from the first of the
/// messages whose place it took, and what was dead-lettered twice has been received often enough.
pub(super) async fn wait_for(
    source: &QueueJobSource,
    delivery: &Delivery,
    ticket: &InFlightMessage,
    what: &'static str,
) {
    let settings = &source.config.queue;
    let age = delivery.first_sent().and_then(|sent| SystemTime::now().duration_since(sent).ok());
    let is_old = age.is_some_and(|age| age >= settings.unknown_age);
    let was_received_often =
        delivery.receive_count >= settings.unknown_receives || delivery.revivals() >= MAX_REVIVALS;
    if is_old && was_received_often {
        let why = "its ingestion or object did not appear in many receives";
        return quarantine_delivery(source, delivery, ticket, what, why).await;
    }
    metrics::count_delivery("unknown");
    let growing = Duration::from_secs(5) * (1 << delivery.receive_count.saturating_sub(1).min(7));
    let delay = growing.min(Duration::from_secs(600));
    let id = &delivery.message_id;
    tracing::debug!(message.id = %id, what, "message {id} waits: {what}");
    source.hide(ticket, None, batch::add_jitter(delay)).await;
}

/// Puts back what another program is to work on; without an answer its hiding ends by itself.
async fn leave_to_others(source: &QueueJobSource, delivery: &Delivery, ticket: &InFlightMessage) {
    metrics::count_delivery("foreign");
    metrics::count_disposition("leave");
    let id = &delivery.message_id;
    for answer in source.queue.leave_to_others(&ticket.take_receipts()).await {
        match answer {
            Ok(()) => tracing::debug!(message.id = %id, "message {id} released to other consumers"),
            Err(error) => {
                tracing::warn!(message.id = %id, error = %error, "releasing message {id} failed: {error}")
            }
        }
    }
}

/// Keeps a copy of the whole, then deletes; without the copy the message stays.
async fn quarantine_delivery(
    source: &QueueJobSource,
    delivery: &Delivery,
    ticket: &InFlightMessage,
    reason: &'static str,
    why: &'static str,
) {
    let message = QuarantinedMessage {
        message_id: delivery.message_id.clone(),
        body: delivery.body.clone(),
        reason: reason.to_owned(),
        receive_count: delivery.receive_count,
    };
    if let Err(error) = source.ledger.quarantine_message(&message).await {
        hide_after_error(source, ticket, &error).await;
        return;
    }
    metrics::count_delivery(reason);
    metrics::count_quarantined(reason);
    let id = &delivery.message_id;
    tracing::warn!(message.id = %id, reason, why, "message {id} quarantined: {why}");
    source.acknowledge(ticket).await;
}

/// Something the message needs did not answer: it comes back in a while.
async fn hide_after_error(source: &QueueJobSource, ticket: &InFlightMessage, error: &fault::Error) {
    metrics::count_delivery("trouble");
    tracing::warn!(error = %error, "resolving a message failed: {error}");
    if source.ledger.current_time().await.is_err() {
        source.intake_gate.close(DATABASE);
    }
    source.hide(ticket, None, batch::add_jitter(LEDGER_FAILURE_DELAY)).await;
}
