//! The batched calls: split to what SQS takes, run side by side, failed entries retried singly.

use aws_sdk_sqs::types::{
    BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry,
    DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry,
};
use futures::future::{BoxFuture, FutureExt as _};
use futures::{StreamExt as _, stream};

use super::super::{OutgoingMessage, ReceiptHandle};
use super::connect::SqsClients;
use super::envelope::{fair_group, message_attributes};
use super::errors::{from_entry, from_sdk};
use super::receipt::{ceil_seconds, handle_of};
use super::sqs_tiers::SqsTier;
use docmill_core::fault::{Error, Fault, Result};

/// Entries per batch (API reference).
const ENTRIES: usize = 10;

/// Body bytes per batch. The service takes 1 MiB, some regions and stand-ins still 256 KiB.
const BYTES: usize = 240 * 1024;

/// Batches of one call that are under way at the same time.
const AT_ONCE: usize = 8;

/// The result of a batch: an error, or the failed entries.
type BatchResult = Result<Vec<BatchResultErrorEntry>>;

/// One change of visibility: handle and whole seconds.
#[derive(Debug, Clone)]
pub(super) struct VisibilityChange {
    pub(super) handle: String,
    pub(super) seconds: i32,
}

/// Runs the calls, several at a time, and puts their results together in order.
///
/// Boxed, because the compiler cannot see that a closure's future is `Send` for every lifetime.
async fn run_concurrently(calls: Vec<BoxFuture<'_, Vec<Result<()>>>>) -> Vec<Result<()>> {
    let results = stream::iter(calls).buffered(AT_ONCE);
    results.collect::<Vec<_>>().await.into_iter().flatten().collect()
}

/// Cuts messages into batches by number and bytes.
fn split_by_size<'a, 'm>(messages: &'a [&'m OutgoingMessage]) -> Vec<&'a [&'m OutgoingMessage]> {
    let mut parts = Vec::new();
    let mut rest = messages;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(ENTRIES).take_while(|message| {
            bytes += message.body.len();
            bytes += message.traceparent.as_ref().map_or(0, |trace| trace.len() + 32);
            // Name and value of an origin.
            bytes += message.origin.map_or(0, |_| 64);
            bytes <= BYTES
        });
        let (part, after) = rest.split_at(fits.count().max(1));
        parts.push(part);
        rest = after;
    }
    parts
}

/// Sorts what a batch said onto its entries. An entry that failed on the service's side is tried
/// once more by itself; the SDK's own retries see only whole requests.
async fn resolve_entries<F>(
    count: usize,
    doing: &str,
    said: BatchResult,
    single: impl Fn(usize) -> F,
) -> Vec<Result<()>>
where
    F: Future<Output = Result<()>>,
{
    let failed = match said {
        Ok(failed) => failed,
        // The SDK's error cannot be copied: the first entry keeps it, the others its words.
        Err(error) => {
            let (fault, context) = (error.fault, error.context.clone());
            let copies = std::iter::repeat_with(|| Error::new(fault, context.clone()));
            return std::iter::once(error).chain(copies).take(count).map(Err).collect();
        }
    };
    let mut results: Vec<Result<()>> = std::iter::repeat_with(|| Ok(())).take(count).collect();
    let mut again = Vec::new();
    for entry in &failed {
        let Some((index, slot)) =
            entry.id().parse().ok().and_then(|index: usize| Some((index, results.get_mut(index)?)))
        else {
            continue;
        };
        let error = from_entry(doing, entry);
        if matches!(error.fault, Fault::Transient | Fault::Throttled(_)) {
            again.push(index);
        }
        *slot = Err(error);
    }
    // Side by side: ten that are slow one after the other would take ten times as long.
    let singles = futures::future::join_all(again.iter().map(|index| single(*index))).await;
    for (index, result) in again.into_iter().zip(singles) {
        if let Some(slot) = results.get_mut(index) {
            *slot = result;
        }
    }
    results
}

fn no_dead_letters_error() -> Error {
    Error::internal("there is no dead-letter queue")
}

/// Building an entry fails only for a missing required field.
fn unbuilt_entry_error(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("an entry of a batch could not be built").with_source(error)
}

/// Makes the batched calls of one queue or several.
#[derive(Debug)]
pub(super) struct SqsBatches {
    clients: SqsClients,
    /// Whether messages say whose they are.
    fair: bool,
}

impl SqsBatches {
    pub(super) fn new(clients: SqsClients, fair: bool) -> Self {
        Self { clients, fair }
    }

    /// Sets visibilities, batch by batch.
    pub(super) async fn change_visibility(
        &self,
        url: &str,
        changes: &[VisibilityChange],
    ) -> Vec<Result<()>> {
        let parts = changes.chunks(ENTRIES);
        run_concurrently(parts.map(|part| self.change_part(url, part).boxed()).collect()).await
    }

    async fn change_part(&self, url: &str, part: &[VisibilityChange]) -> Vec<Result<()>> {
        const DOING: &str = "changing the visibility of a message";
        let said = self.change_batch(url, part).await;
        resolve_entries(part.len(), DOING, said, |index| async move {
            let Some(change) = part.get(index) else { return Ok(()) };
            let request = self.clients.quick.change_message_visibility().queue_url(url);
            let request = request.receipt_handle(&change.handle);
            let sent = request.visibility_timeout(change.seconds).send().await;
            sent.map(drop).map_err(|error| from_sdk(DOING, error))
        })
        .await
    }

    async fn change_batch(&self, url: &str, part: &[VisibilityChange]) -> BatchResult {
        let entries = part.iter().enumerate().map(|(index, change)| {
            ChangeMessageVisibilityBatchRequestEntry::builder()
                .id(index.to_string())
                .receipt_handle(&change.handle)
                .visibility_timeout(change.seconds)
                .build()
                .map_err(unbuilt_entry_error)
        });
        let request = self.clients.quick.change_message_visibility_batch().queue_url(url);
        let request = request.set_entries(Some(entries.collect::<Result<_>>()?));
        let answer = request.send().await;
        Ok(answer.map_err(|error| from_sdk("changing visibilities", error))?.failed)
    }

    /// The same for changes that are the caller's to give away.
    pub(super) fn change_owned<'a>(
        &'a self,
        line: &'a SqsTier,
        changes: Vec<VisibilityChange>,
    ) -> BoxFuture<'a, Vec<Result<()>>> {
        async move { self.change_visibility(&line.url, &changes).await }.boxed()
    }

    /// Makes dead letters of a tier visible.
    pub(super) fn release_dead<'a>(
        &'a self,
        line: &'a SqsTier,
        changes: Vec<VisibilityChange>,
    ) -> BoxFuture<'a, Vec<Result<()>>> {
        async move {
            match &line.dead_letter_url {
                Some(url) => self.change_visibility(url, &changes).await,
                None => changes.iter().map(|_| Err(no_dead_letters_error())).collect(),
            }
        }
        .boxed()
    }

    /// Deletes dead letters of a tier.
    pub(super) fn delete_dead<'a>(
        &'a self,
        line: &'a SqsTier,
        receipts: Vec<&'a ReceiptHandle>,
    ) -> BoxFuture<'a, Vec<Result<()>>> {
        async move {
            match &line.dead_letter_url {
                Some(url) => self.delete_messages(url, receipts).await,
                None => receipts.iter().map(|_| Err(no_dead_letters_error())).collect(),
            }
        }
        .boxed()
    }

    /// Deletes, batch by batch.
    pub(super) async fn delete_messages(
        &self,
        url: &str,
        receipts: Vec<&ReceiptHandle>,
    ) -> Vec<Result<()>> {
        let parts = receipts.chunks(ENTRIES);
        run_concurrently(parts.map(|part| self.delete_part(url, part).boxed()).collect()).await
    }

    async fn delete_part(&self, url: &str, part: &[&ReceiptHandle]) -> Vec<Result<()>> {
        const DOING: &str = "deleting a message";
        let said = self.delete_batch(url, part).await;
        resolve_entries(part.len(), DOING, said, |index| async move {
            let Some(receipt) = part.get(index) else { return Ok(()) };
            let request = self.clients.steady.delete_message().queue_url(url);
            let sent = request.receipt_handle(handle_of(receipt)).send().await;
            sent.map(drop).map_err(|error| from_sdk(DOING, error))
        })
        .await
    }

    async fn delete_batch(&self, url: &str, part: &[&ReceiptHandle]) -> BatchResult {
        let entries = part.iter().enumerate().map(|(index, receipt)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .receipt_handle(handle_of(receipt))
                .build()
                .map_err(unbuilt_entry_error)
        });
        let request = self.clients.steady.delete_message_batch().queue_url(url);
        let request = request.set_entries(Some(entries.collect::<Result<_>>()?));
        let answer = request.send().await;
        Ok(answer.map_err(|error| from_sdk("deleting messages", error))?.failed)
    }

    /// Sends, batch by batch.
    pub(super) async fn send_all(
        &self,
        url: &str,
        messages: Vec<&OutgoingMessage>,
    ) -> Vec<Result<()>> {
        let parts = split_by_size(&messages).into_iter();
        run_concurrently(parts.map(|part| self.send_part(url, part).boxed()).collect()).await
    }

    async fn send_part(&self, url: &str, part: &[&OutgoingMessage]) -> Vec<Result<()>> {
        const DOING: &str = "sending a message";
        let said = self.send_batch(url, part).await;
        resolve_entries(part.len(), DOING, said, |index| async move {
            let Some(message) = part.get(index) else { return Ok(()) };
            let request = self.clients.steady.send_message().queue_url(url);
            let request = request
                .message_body(&message.body)
                .set_message_attributes(message_attributes(message)?)
                .set_message_group_id(self.message_group(message));
            let sent = request.delay_seconds(ceil_seconds(message.delay)).send().await;
            sent.map(drop).map_err(|error| from_sdk(DOING, error))
        })
        .await
    }

    fn message_group(&self, message: &OutgoingMessage) -> Option<String> {
        message.tenant.as_deref().filter(|_| self.fair).map(fair_group)
    }

    async fn send_batch(&self, url: &str, part: &[&OutgoingMessage]) -> BatchResult {
        let entries = part.iter().enumerate().map(|(index, message)| {
            SendMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .message_body(&message.body)
                .set_message_attributes(message_attributes(message)?)
                .set_message_group_id(self.message_group(message))
                .delay_seconds(ceil_seconds(message.delay))
                .build()
                .map_err(unbuilt_entry_error)
        });
        let request = self.clients.steady.send_message_batch().queue_url(url);
        let request = request.set_entries(Some(entries.collect::<Result<_>>()?));
        let answer = request.send().await;
        Ok(answer.map_err(|error| from_sdk("sending messages", error))?.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_into_batches_by_number_and_by_bytes() {
        let of = |size: usize| OutgoingMessage::from_body("x".repeat(size));
        #[rustfmt::skip]
        let table = [
            ("none",                       vec![],                                     vec![]),
            ("one",                        vec![of(1)],                                vec![1]),
            ("eleven small ones",          (0..11).map(|_| of(1)).collect(),           vec![10, 1]),
            ("two that fit only singly",   vec![of(200 * 1024), of(200 * 1024)],       vec![1, 1]),
            ("one over the limit alone",   vec![of(1), of(2 * BYTES), of(1)],          vec![1, 1, 1]),
        ];
        for (name, messages, expected) in table {
            let messages: Vec<&OutgoingMessage> = messages.iter().collect();
            let sizes: Vec<usize> =
                split_by_size(&messages).iter().map(|part| part.len()).collect();
            assert_eq!(sizes, expected, "{name}");
        }
    }
}
