//! What a message says beside its body: the trace it belongs to.

use std::collections::HashMap;

use aws_sdk_sqs::types::MessageAttributeValue;

use super::super::Outgoing;
use crate::fault::{Error, Result};

/// The attribute's name, as W3C Trace Context spells the header.
pub(super) const TRACEPARENT: &str = "traceparent";

type Attributes = HashMap<String, MessageAttributeValue>;

/// The message attributes; `None` without any.
pub(super) fn attributes(message: &Outgoing) -> Result<Option<Attributes>> {
    let Some(traceparent) = &message.traceparent else { return Ok(None) };
    let value = MessageAttributeValue::builder()
        .data_type("String")
        .string_value(traceparent)
        .build()
        .map_err(|error| {
            Error::internal("a message attribute could not be built").because(error)
        })?;
    Ok(Some(HashMap::from([(TRACEPARENT.to_owned(), value)])))
}

/// The sender's trace, if it sent one.
pub(super) fn traceparent(attributes: Option<&Attributes>) -> Option<String> {
    attributes?.get(TRACEPARENT)?.string_value().map(str::to_owned)
}
