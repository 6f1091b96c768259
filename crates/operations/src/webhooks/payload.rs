//! The payload for a target: ids, outcome, kind and links; the data only if the settings allow it.

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use docmill_ledger::db::lanes::webhooks::ClaimedWebhookDelivery;

/// The body of a message. `pages`: the address of the web console, if it is set; `data`: the data
/// read or decided, if it is to be sent.
pub(super) fn write_payload(
    of: &ClaimedWebhookDelivery,
    pages: &str,
    data: Option<Value>,
) -> String {
    let mut told = of.facts.as_object().cloned().unwrap_or_default();
    told.insert("sequence".to_owned(), json!(of.event_number));
    if let (Some(id), false) = (of.ingestion_id, pages.is_empty()) {
        let links = json!({
            "page": format!("{pages}/ingestions/{id}"),
            "ingestion": format!("{pages}/api/v1/ingestions/{id}"),
            "result": format!("{pages}/api/v1/ingestions/{id}/result"),
        });
        told.insert("links".to_owned(), links);
    }
    if let Some(data) = data {
        told.insert("data".to_owned(), data);
    }
    let body = Map::from_iter([
        ("type".to_owned(), json!(of.event)),
        ("timestamp".to_owned(), json!(of.occurred_at.format(&Rfc3339).unwrap_or_default())),
        ("data".to_owned(), Value::Object(told)),
    ]);
    Value::Object(body).to_string()
}

/// The type of a test.
pub(super) const TEST_EVENT: &str = "webhook.test";

/// The body of a test of this target.
pub(super) fn write_test(target: &str, at: OffsetDateTime) -> String {
    let timestamp = at.format(&Rfc3339).unwrap_or_default();
    json!({ "type": TEST_EVENT, "timestamp": timestamp, "data": { "target": target } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn what_is_told_is_thin_unless_data_is_asked_for() {
        let id = Uuid::from_u128(7);
        let of = ClaimedWebhookDelivery {
            id: 1,
            event: "document.completed".to_owned(),
            event_id: Uuid::from_u128(9),
            event_number: 3,
            occurred_at: time::macros::datetime!(2026-11-22 12:00 UTC),
            facts: json!({"status": "completed", "document_id": "d"}),
            ingestion_id: Some(id),
            revision_id: None,
            tries: 1,
        };
        let thin: Value = serde_json::from_str(&write_payload(&of, "", None)).unwrap();
        let expected = json!({
            "type": "document.completed", "timestamp": "2026-11-22T12:00:00Z",
            "data": {"status": "completed", "document_id": "d", "sequence": 3}
        });
        assert_eq!(thin, expected);
        let whole =
            write_payload(&of, "https://ops.example.com/docmill", Some(json!({"total": 1})));
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole["data"]["data"], json!({"total": 1}));
        let page = format!("https://ops.example.com/docmill/ingestions/{id}");
        assert_eq!(whole["data"]["links"]["page"], json!(page));
    }
}
