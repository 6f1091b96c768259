//! The meaning of a message body. Pure: reads no store, checks no allow-list.
//!
//! Accepted, up to [`MAX_ENTRIES`] entries in one body: a bare ingestion id; `{"ingestion_id": …}`;
//! `{"ingestion_ids": […]}`; an S3 event notification; an event of S3 from `EventBridge`. Each may be
//! wrapped by SNS. Keys of notifications are form-url-encoded (a `+` is a space), see
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>;
//! `EventBridge` has them literally, see
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html>.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::model::IngestionId;

/// One body asks for at most so many ingestions or objects: what it sets off stays in proportion to
/// what it cost to send.
pub const MAX_ENTRIES: usize = 100;

/// The request that a message body contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageBody {
    /// The id of an ingestion that is registered already.
    Ingestion(IngestionId),
    /// Several ingestions, none twice: to be fanned out.
    Group(Vec<IngestionId>),
    /// Objects that were created; at least one.
    Objects(Vec<ObjectCreated>),
    /// A message of a known form that asks for nothing, and which.
    NoWork(&'static str),
    /// None of the forms, and why. The text never quotes the body.
    Malformed(&'static str),
}

/// One created object of an S3 event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCreated {
    /// Name of the bucket.
    pub bucket: String,
    /// Key of the object, literally.
    pub key: String,
    /// Version, in a bucket with versions.
    pub version: Option<String>,
    /// ETag of the object, see [`plain_etag`].
    pub etag: Option<String>,
    /// As the event has it; hex where it comes from S3.
    pub sequencer: Option<String>,
    /// Size of the object in bytes.
    pub size: Option<u64>,
}

impl MessageBody {
    /// Reads a body. Never fails: what is not understood is [`MessageBody::Malformed`].
    pub fn parse(text: &str) -> Self {
        parse_message(text, true)
    }
}

fn parse_message(text: &str, may_be_wrapped: bool) -> MessageBody {
    let text = text.trim();
    if let Ok(id) = text.parse() {
        return MessageBody::Ingestion(id);
    }
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else {
        return MessageBody::Malformed("neither an ingestion id nor a JSON object");
    };
    if let Some(id) = object.get("ingestion_id") {
        return parse_id(id)
            .map_or(MessageBody::Malformed("ingestion_id is not a UUID"), MessageBody::Ingestion);
    }
    if let Some(ids) = object.get("ingestion_ids") {
        return parse_group(ids);
    }
    if object.get("Event").and_then(Value::as_str) == Some("s3:TestEvent") {
        return MessageBody::NoWork("test_event");
    }
    if let Some(records) = object.get("Records") {
        return parse_records(records);
    }
    if object.contains_key("detail-type") {
        return parse_bridge_event(&object);
    }
    if object.contains_key("bucket") && object.contains_key("object") {
        return MessageBody::Malformed(
            "the detail of an EventBridge event alone: send the whole event",
        );
    }
    match object.get("Message").and_then(Value::as_str) {
        Some(inner) if may_be_wrapped => parse_message(inner, false),
        _ => MessageBody::Malformed("a JSON object of no known form"),
    }
}

/// An ETag in the one form in which it is stored and compared: S3 quotes it in some places and not in
/// others.
pub fn plain_etag(etag: &str) -> &str {
    etag.trim_matches('"')
}

impl ObjectCreated {
    /// The body of an event about this object alone.
    pub fn to_event(&self) -> String {
        let mut object = Map::new();
        let key = utf8_percent_encode(&self.key, NON_ALPHANUMERIC).to_string();
        object.insert("key".to_owned(), key.into());
        for (name, value) in
            [("versionId", &self.version), ("eTag", &self.etag), ("sequencer", &self.sequencer)]
        {
            if let Some(value) = value {
                object.insert(name.to_owned(), value.as_str().into());
            }
        }
        if let Some(size) = self.size {
            object.insert("size".to_owned(), size.into());
        }
        let place = serde_json::json!({"bucket": {"name": self.bucket}, "object": object});
        serde_json::json!({"Records": [{"eventName": "ObjectCreated:Put", "s3": place}]})
            .to_string()
    }
}

fn parse_id(value: &Value) -> Option<IngestionId> {
    value.as_str()?.trim().parse().ok()
}

fn parse_group(ids: &Value) -> MessageBody {
    if ids.as_array().is_some_and(|ids| ids.len() > MAX_ENTRIES) {
        return MessageBody::Malformed("more than 100 ids in one body");
    }
    let parsed: Option<Vec<IngestionId>> =
        ids.as_array().and_then(|ids| ids.iter().map(parse_id).collect());
    let Some(mut ids) = parsed else {
        return MessageBody::Malformed("ingestion_ids is not a list of UUIDs");
    };
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
    if ids.is_empty() { MessageBody::NoWork("empty_group") } else { MessageBody::Group(ids) }
}

fn parse_records(records: &Value) -> MessageBody {
    let Some(records) = records.as_array() else {
        return MessageBody::Malformed("Records is not a list");
    };
    if records.len() > MAX_ENTRIES {
        return MessageBody::Malformed("more than 100 records in one body");
    }
    let mut objects = Vec::new();
    for record in records {
        let Some(name) = record.get("eventName").and_then(Value::as_str) else {
            return MessageBody::Malformed("a record without eventName");
        };
        // Without the `s3:` prefix in the notification itself; accepted with it as well.
        if !name.trim_start_matches("s3:").starts_with("ObjectCreated:") {
            continue;
        }
        let (bucket, object) = (record.pointer("/s3/bucket"), record.pointer("/s3/object"));
        match read_object(bucket, object, &NOTIFICATION_FIELDS) {
            Some(object) => objects.push(object),
            None => return MessageBody::Malformed("an ObjectCreated record without bucket or key"),
        }
    }
    if objects.is_empty() {
        MessageBody::NoWork("other_event")
    } else {
        MessageBody::Objects(objects)
    }
}

/// An event that `EventBridge` delivers: always about one object.
fn parse_bridge_event(event: &Map<String, Value>) -> MessageBody {
    if event.get("source").and_then(Value::as_str) != Some("aws.s3") {
        return MessageBody::Malformed("an EventBridge event of another source than aws.s3");
    }
    let detail = event.get("detail");
    let (bucket, object) =
        (detail.and_then(|d| d.get("bucket")), detail.and_then(|d| d.get("object")));
    match event.get("detail-type").and_then(Value::as_str) {
        Some("Object Created") => match read_object(bucket, object, &BRIDGE_FIELDS) {
            Some(object) => MessageBody::Objects(vec![object]),
            None => MessageBody::Malformed("an Object Created event without bucket or key"),
        },
        Some(other) if other.starts_with("Object ") => MessageBody::NoWork("other_event"),
        // A call that CloudTrail recorded may have created an object too: never dropped as no work.
        _ => MessageBody::Malformed("an EventBridge event that is not one of S3's about an object"),
    }
}

/// The spelling of one kind of event.
struct EventFields {
    version: &'static str,
    etag: &'static str,
    key_is_encoded: bool,
}

const NOTIFICATION_FIELDS: EventFields =
    EventFields { version: "versionId", etag: "eTag", key_is_encoded: true };

const BRIDGE_FIELDS: EventFields =
    EventFields { version: "version-id", etag: "etag", key_is_encoded: false };

fn read_object(
    bucket: Option<&Value>,
    object: Option<&Value>,
    fields: &EventFields,
) -> Option<ObjectCreated> {
    let some_text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let text = |value: &Value| value.as_str().and_then(some_text);
    let object = object?;
    let key = object.get("key")?.as_str()?;
    Some(ObjectCreated {
        bucket: text(bucket?.get("name")?)?,
        key: if fields.key_is_encoded { decode_key(key)? } else { some_text(key)? },
        version: object.get(fields.version).and_then(text),
        etag: object.get(fields.etag).and_then(Value::as_str).map(plain_etag).and_then(some_text),
        sequencer: object.get("sequencer").and_then(text),
        size: object.get("size").and_then(Value::as_u64),
    })
}

/// Undoes form-url-encoding: `+` is a space, then percent escapes.
fn decode_key(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?.into_owned();
    (!decoded.is_empty()).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b0e8a6e-3c1a-4b58-9a3e-111111111111";

    fn event(name: &str, key: &str) -> String {
        format!(
            r#"{{"Records":[{{"eventName":"{name}","s3":{{"bucket":{{"name":"b"}},"object":
            {{"key":"{key}","size":3,"eTag":"e","sequencer":"0A"}}}}}}]}}"#
        )
    }

    #[test]
    fn every_valid_form_of_a_message_is_understood_and_no_other() {
        let id: IngestionId = ID.parse().unwrap();
        let sns = serde_json::json!({"Type": "Notification", "Message": ID}).to_string();
        let twice = serde_json::json!({"Message": sns}).to_string();
        let table: Vec<(String, MessageBody)> = vec![
            (ID.into(), MessageBody::Ingestion(id)),
            (format!(" {ID}\n"), MessageBody::Ingestion(id)),
            (format!(r#"{{"ingestion_id":"{ID}"}}"#), MessageBody::Ingestion(id)),
            (format!(r#"{{"ingestion_ids":["{ID}","{ID}"]}}"#), MessageBody::Group(vec![id])),
            (r#"{"ingestion_ids":[]}"#.into(), MessageBody::NoWork("empty_group")),
            (sns, MessageBody::Ingestion(id)),
            (
                r#"{"Service":"Amazon S3","Event":"s3:TestEvent"}"#.into(),
                MessageBody::NoWork("test_event"),
            ),
            (event("ObjectRemoved:Delete", "k"), MessageBody::NoWork("other_event")),
            (r#"{"Records":[]}"#.into(), MessageBody::NoWork("other_event")),
        ];
        for (text, expected) in table {
            assert_eq!(MessageBody::parse(&text), expected, "{text}");
        }
        for text in [
            "",
            "hello",
            "42",
            "[]",
            "{}",
            "{\"ingestion_id\":7}",
            "{\"ingestion_ids\":[7]}",
            "{\"Records\":7}",
            "{\"Records\":[{}]}",
            "{\"Records\":[{\"eventName\":\"ObjectCreated:Put\"}]}",
            twice.as_str(),
            &event("ObjectCreated:Put", ""),
            &event("ObjectCreated:Put", "%ff"),
        ] {
            assert!(matches!(MessageBody::parse(text), MessageBody::Malformed(_)), "{text}");
        }
    }

    #[test]
    fn an_event_of_eventbridge_is_the_notification_of_the_same_object_also_through_sns() {
        let bridged = |kind: &str, key: &str| {
            serde_json::json!({
                "version": "0", "detail-type": kind, "source": "aws.s3", "region": "eu-west-1",
                "resources": ["arn:aws:s3:::b"],
                "detail": {"version": "0", "bucket": {"name": "b"}, "reason": "PutObject",
                    "object": {"key": key, "size": 3, "etag": "e", "sequencer": "0A", "version-id": ""}},
            })
        };
        for (literal, encoded) in [
            ("inbox/a+b c.pdf", "inbox/a%2Bb+c.pdf"),
            ("100%25 ü.pdf", "100%2525+%C3%BC.pdf"),
            ("k", "k"),
        ] {
            let notified = MessageBody::parse(&event("ObjectCreated:Put", encoded));
            assert!(
                matches!(&notified, MessageBody::Objects(all) if all[0].key == literal),
                "{notified:?}"
            );
            let whole = bridged("Object Created", literal).to_string();
            let wrapped = serde_json::json!({"Type": "Notification", "Message": whole}).to_string();
            for text in [whole, wrapped] {
                assert_eq!(MessageBody::parse(&text), notified, "{text}");
            }
        }
        for kind in ["Object Deleted", "Object Restore Completed", "Object Tags Added"] {
            let text = bridged(kind, "k").to_string();
            assert_eq!(MessageBody::parse(&text), MessageBody::NoWork("other_event"), "{kind}");
        }
        let mut foreign = bridged("Object Created", "k");
        foreign["source"] = "my.app".into();
        for (value, told) in [
            (bridged("Object Created", ""), "without bucket or key"),
            (bridged("Object Created", "k")["detail"].clone(), "send the whole event"),
            (bridged("AWS API Call via CloudTrail", "k"), "not one of S3's"),
            (foreign, "another source"),
        ] {
            let body = MessageBody::parse(&value.to_string());
            assert!(
                matches!(body, MessageBody::Malformed(why) if why.contains(told)),
                "{value}: {body:?}"
            );
        }
    }

    #[test]
    fn a_body_with_more_than_a_hundred_entries_is_malformed_and_one_with_a_hundred_is_not() {
        let records = |count: usize| {
            let one: Value = serde_json::from_str(&event("ObjectCreated:Put", "k")).unwrap();
            serde_json::json!({"Records": vec![one["Records"][0].clone(); count]}).to_string()
        };
        let group = |count: usize| {
            let ids: Vec<_> = (0..count).map(|_| IngestionId::random()).collect();
            serde_json::json!({ "ingestion_ids": ids }).to_string()
        };
        assert!(
            matches!(MessageBody::parse(&records(100)), MessageBody::Objects(all) if all.len() == 100)
        );
        assert!(
            matches!(MessageBody::parse(&group(100)), MessageBody::Group(all) if all.len() == 100)
        );
        for text in [records(101), group(101)] {
            assert!(matches!(MessageBody::parse(&text), MessageBody::Malformed(_)));
        }
    }

    #[test]
    fn an_event_about_one_object_reads_back_as_it_was() {
        for (key, version, size) in [("a b+c/ä%.pdf", Some("v1"), Some(7)), ("k", None, None)] {
            let object = ObjectCreated {
                bucket: "b".to_owned(),
                key: key.to_owned(),
                version: version.map(str::to_owned),
                etag: Some("e".to_owned()),
                sequencer: Some("0A".to_owned()),
                size,
            };
            assert_eq!(MessageBody::parse(&object.to_event()), MessageBody::Objects(vec![object]));
        }
    }

    #[test]
    fn empty_fields_of_an_event_are_absent_also_between_quotes() {
        for (etag, expected) in [
            (r#""#, None),
            (r#"\"\""#, None),
            (r#"\""#, None),
            (r#"\"e\""#, Some("e")),
            (r#"e"#, Some("e")),
        ] {
            let text = format!(
                r#"{{"Records":[{{"eventName":"ObjectCreated:Put","s3":{{"bucket":{{"name":"b"}},
                "object":{{"key":"k","eTag":"{etag}","versionId":"","sequencer":""}}}}}}]}}"#
            );
            let MessageBody::Objects(objects) = MessageBody::parse(&text) else {
                panic!("{text} was not understood");
            };
            assert_eq!(objects[0].etag.as_deref(), expected, "{etag}");
            assert_eq!((&objects[0].version, &objects[0].sequencer), (&None, &None));
            // Sent again by itself it is the same object still.
            assert_eq!(MessageBody::parse(&objects[0].to_event()), MessageBody::Objects(objects));
        }
    }

    #[test]
    fn a_plus_in_an_event_key_is_a_space_and_an_escaped_one_is_a_plus() {
        for (key, decoded) in
            [("red+flower.jpg", "red flower.jpg"), ("a%2Bb%26c%3Dd", "a+b&c=d"), ("%C3%A4", "ä")]
        {
            let MessageBody::Objects(objects) =
                MessageBody::parse(&event("ObjectCreated:Put", key))
            else {
                panic!("{key} was not understood");
            };
            assert_eq!(objects[0].key, decoded);
            assert_eq!(objects[0].etag.as_deref(), Some("e"));
        }
    }
}
