//! Refusals of the stand-in.
//!
//! Every refusal has two names: the shape of the JSON protocol (`__type`) and the code of the older
//! query protocol, which SDKs read from `x-amzn-query-error` to choose the typed error. Source: the
//! service's model as generated into `aws-sdk-sqs`, and the API reference.

use serde_json::{Value, json};

/// A request that SQS refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    pub(super) message: String,
}

/// The closed set of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AccessDenied,
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InternalFailure,
    InvalidAction,
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidBatchEntryId,
    InvalidMessageContents,
    InvalidParameterValue,
    MessageNotInflight,
    MissingParameter,
    OverLimit,
    PurgeQueueInProgress,
    QueueDoesNotExist,
    QueueNameExists,
    ReceiptHandleIsInvalid,
    RequestThrottled,
    ResourceNotFound,
    ServiceUnavailable,
    TooManyEntries,
    UnsupportedOperation,
}

impl Kind {
    /// Shape name, query code, HTTP status.
    fn names(self) -> (&'static str, &'static str, u16) {
        match self {
            Self::AccessDenied => ("AccessDeniedException", "AccessDenied", 403),
            Self::BatchEntryIdsNotDistinct => {
                ("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400)
            }
            Self::BatchRequestTooLong => {
                ("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", 400)
            }
            Self::EmptyBatchRequest => {
                ("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", 400)
            }
            Self::InternalFailure => ("InternalFailure", "InternalError", 500),
            Self::InvalidAction => ("InvalidAction", "InvalidAction", 400),
            Self::InvalidAttributeName => ("InvalidAttributeName", "InvalidAttributeName", 400),
            Self::InvalidAttributeValue => ("InvalidAttributeValue", "InvalidAttributeValue", 400),
            Self::InvalidBatchEntryId => {
                ("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", 400)
            }
            Self::InvalidMessageContents => {
                ("InvalidMessageContents", "InvalidMessageContents", 400)
            }
            Self::InvalidParameterValue => {
                ("InvalidParameterValueException", "InvalidParameterValue", 400)
            }
            Self::MessageNotInflight => {
                ("MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", 400)
            }
            Self::MissingParameter => {
                ("MissingRequiredParameterException", "MissingParameter", 400)
            }
            Self::OverLimit => ("OverLimit", "OverLimit", 403),
            Self::PurgeQueueInProgress => {
                ("PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", 403)
            }
            Self::QueueDoesNotExist => {
                ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400)
            }
            Self::QueueNameExists => ("QueueNameExists", "QueueAlreadyExists", 400),
            Self::ReceiptHandleIsInvalid => {
                ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 400)
            }
            Self::RequestThrottled => ("RequestThrottled", "RequestThrottled", 400),
            Self::ResourceNotFound => {
                ("ResourceNotFoundException", "ResourceNotFoundException", 404)
            }
            Self::ServiceUnavailable => ("ServiceUnavailable", "ServiceUnavailable", 503),
            Self::TooManyEntries => (
                "TooManyEntriesInBatchRequest",
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
                400,
            ),
            Self::UnsupportedOperation => {
                ("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", 400)
            }
        }
    }
}

/// Shorthand of the actions.
pub(super) type Answer<T> = Result<T, Refusal>;

/// A refusal as an `Err`.
pub(super) fn refuse<T>(kind: Kind, message: impl Into<String>) -> Answer<T> {
    Err(Refusal { kind, message: message.into() })
}

impl Refusal {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn status(&self) -> u16 {
        self.kind.names().2
    }

    /// The value of `x-amzn-query-error`.
    pub(super) fn query_error(&self) -> String {
        format!("{};{}", self.kind.names().1, if self.by_sender() { "Sender" } else { "Receiver" })
    }

    /// The body of the HTTP answer.
    pub(super) fn body(&self) -> Value {
        json!({"__type": format!("com.amazonaws.sqs#{}", self.kind.names().0), "message": self.message})
    }

    /// The entry in `Failed` of a batch's answer.
    pub(super) fn entry(&self, id: &str) -> Value {
        json!({
            "Id": id,
            "SenderFault": self.by_sender(),
            "Code": self.kind.names().1,
            "Message": self.message,
        })
    }

    fn by_sender(&self) -> bool {
        self.status() < 500
    }
}
