//! Counts the requests that the SDK sends, its own retries included: what SQS bills.

use aws_sdk_sqs::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;

use docmill_core::metrics;

/// Sees every request just before it is sent.
#[derive(Debug)]
pub(super) struct RequestCounter;

impl Intercept for RequestCounter {
    fn name(&self) -> &'static str {
        "docmill requests"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target").unwrap_or_default();
        metrics::queue_request(operation_label(target));
        Ok(())
    }
}

/// The operation as a label, of a closed set: `AmazonSQS.SendMessage`.
fn operation_label(target: &str) -> &'static str {
    match target.rsplit('.').next().unwrap_or_default() {
        "ReceiveMessage" => "receive",
        "DeleteMessage" | "DeleteMessageBatch" => "delete",
        "ChangeMessageVisibility" | "ChangeMessageVisibilityBatch" => "visibility",
        "SendMessage" | "SendMessageBatch" => "send",
        "GetQueueAttributes" => "attributes",
        _ => "other",
    }
}
