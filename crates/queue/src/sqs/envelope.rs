//! A message's attributes beside its body: its owner, its trace, and its origin.

use std::collections::HashMap;

use aws_sdk_sqs::types::MessageAttributeValue;

use super::super::{MessageOrigin, OutgoingMessage};
use docmill_core::fault::{Error, Result};
use docmill_core::model::digest;

/// The attribute's name, as W3C Trace Context spells the header.
pub(super) const TRACEPARENT: &str = "traceparent";
/// The attribute of a message that took another's place.
pub(super) const ORIGIN: &str = "docmill-origin";
/// The longest `MessageGroupId` (API reference, `SendMessage`).
const MAX_GROUP_CHARS: usize = 128;

/// The message attributes; `None` without any.
pub(super) fn message_attributes(
    message: &OutgoingMessage,
) -> Result<Option<HashMap<String, MessageAttributeValue>>> {
    let origin = message.origin.map(MessageOrigin::to_text);
    let named = [(TRACEPARENT, message.traceparent.as_deref()), (ORIGIN, origin.as_deref())];
    let mut attributes = HashMap::new();
    for (name, text) in named {
        let Some(text) = text else { continue };
        let value = MessageAttributeValue::builder().data_type("String").string_value(text);
        let value = value.build().map_err(|error| {
            Error::internal("a message attribute could not be built").with_source(error)
        })?;
        attributes.insert(name.to_owned(), value);
    }
    Ok((!attributes.is_empty()).then_some(attributes))
}

/// The fair-queue group of a tenant: its name, or, if SQS would not take that, its SHA-256.
pub(super) fn fair_group(tenant: &str) -> String {
    let plain = tenant.bytes().all(|byte| byte.is_ascii_graphic());
    if plain && !tenant.is_empty() && tenant.len() <= MAX_GROUP_CHARS {
        return tenant.to_owned();
    }
    digest::sha256_hex(tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_its_own_group_unless_the_service_would_refuse_it() {
        assert_eq!(fair_group("acme/eu-1"), "acme/eu-1");
        for odd in ["", "a b", "Müller", "line\nbreak", &"x".repeat(129)] {
            let made = fair_group(odd);
            assert_eq!((made.len(), fair_group(&made)), (64, made.clone()), "{odd}");
        }
    }
}
