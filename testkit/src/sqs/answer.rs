//! From the JSON of a request to the JSON of its answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::action::Action;
use super::broker::{ACCOUNT, Broker, QueueCell};
use super::clock::Millis;
use super::message::{Content, Wanted};
use super::moves;
use super::refusal::{Answer, Kind, Refusal, refuse};

/// Maximum bytes of a message, and of all entries of a batch together.
const MAX_BATCH_BYTES: usize = 1_048_576;

/// One request: who asks what of which server.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) action: Action,
    pub(super) input: Value,
    /// `http://127.0.0.1:PORT`, for the URLs in answers.
    pub(super) base: String,
}

/// Does what a request asks for.
pub(super) async fn answer(broker: &Arc<Broker>, request: &Request) -> Answer<Value> {
    let input = &request.input;
    match request.action {
        Action::CreateQueue => create(broker, request),
        Action::GetQueueUrl => {
            let name = text(input, "QueueName")?;
            broker.by_name(name).ok_or_else(no_queue)?;
            Ok(json!({"QueueUrl": url(&request.base, name)}))
        }
        Action::StartMessageMoveTask => start_move(broker, input),
        Action::ListMessageMoveTasks => list_moves(broker, input),
        Action::ReceiveMessage => receive(broker, &*queue(broker, input)?, input).await,
        _ => on_queue(broker, &*queue(broker, input)?, request),
    }
}

/// The actions on a queue that do not wait.
fn on_queue(broker: &Broker, cell: &QueueCell, request: &Request) -> Answer<Value> {
    let input = &request.input;
    match request.action {
        Action::DeleteQueue => broker.delete_queue(&cell.name),
        Action::PurgeQueue => broker.purge(cell)?,
        Action::SetQueueAttributes => broker.set(cell, &strings(input, "Attributes")?)?,
        Action::GetQueueAttributes => return attributes(broker, cell, input),
        Action::SendMessage => return send(broker, cell, input),
        Action::DeleteMessage => broker.delete(cell, text(input, "ReceiptHandle")?)?,
        Action::ChangeMessageVisibility => change(broker, cell, input)?,
        Action::SendMessageBatch => {
            let entries = entries(input)?;
            let total: usize = entries.iter().map(|(_, entry)| entry_size(entry)).sum();
            if total > MAX_BATCH_BYTES {
                return refuse(
                    Kind::BatchRequestTooLong,
                    format!(
                        "Batch requests cannot be longer than {MAX_BATCH_BYTES} bytes. You have sent {total} bytes."
                    ),
                );
            }
            return Ok(batch(broker, request.action, &entries, |entry| send(broker, cell, entry)));
        }
        Action::DeleteMessageBatch => {
            return Ok(batch(broker, request.action, &entries(input)?, |entry| {
                broker.delete(cell, text(entry, "ReceiptHandle")?).map(|()| json!({}))
            }));
        }
        Action::ChangeMessageVisibilityBatch => {
            return Ok(batch(broker, request.action, &entries(input)?, |entry| {
                change(broker, cell, entry).map(|()| json!({}))
            }));
        }
        _ => return refuse(Kind::InvalidAction, "The action is not valid for this endpoint."),
    }
    Ok(json!({}))
}

fn url(base: &str, name: &str) -> String {
    format!("{base}/{ACCOUNT}/{name}")
}

fn no_queue() -> Refusal {
    Refusal::new(Kind::QueueDoesNotExist, "The specified queue does not exist.")
}

fn queue(broker: &Broker, input: &Value) -> Answer<Arc<QueueCell>> {
    let url = text(input, "QueueUrl")?;
    let name = url.rsplit('/').next().unwrap_or_default();
    broker.by_name(name).ok_or_else(no_queue)
}

fn text<'a>(input: &'a Value, key: &str) -> Answer<&'a str> {
    match input.get(key).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text),
        _ => {
            refuse(Kind::MissingParameter, format!("The request must contain the parameter {key}."))
        }
    }
}

/// A whole number in its range, `None` if it is not given.
fn number(input: &Value, key: &str, least: u64, most: u64) -> Answer<Option<u64>> {
    let Some(value) = input.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_u64().filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => refuse(
            Kind::InvalidParameterValue,
            format!(
                "Value {value} for parameter {key} is invalid. Reason: Must be >= {least} and <= {most}, if provided."
            ),
        ),
    }
}

fn strings(input: &Value, key: &str) -> Answer<BTreeMap<String, String>> {
    let Some(object) = input.get(key).and_then(Value::as_object) else {
        return Ok(BTreeMap::new());
    };
    let mut strings = BTreeMap::new();
    for (name, value) in object {
        let Some(value) = value.as_str() else {
            return refuse(Kind::InvalidAttributeValue, format!("{name} must be a string."));
        };
        strings.insert(name.clone(), value.to_owned());
    }
    Ok(strings)
}

fn names(input: &Value, keys: &[&str]) -> Vec<String> {
    let lists = keys.iter().filter_map(|key| input.get(*key).and_then(Value::as_array));
    lists.flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

fn create(broker: &Broker, request: &Request) -> Answer<Value> {
    let name = text(&request.input, "QueueName")?;
    broker.create(name, &strings(&request.input, "Attributes")?)?;
    Ok(json!({"QueueUrl": url(&request.base, name)}))
}

fn attributes(broker: &Broker, cell: &QueueCell, input: &Value) -> Answer<Value> {
    let depth = broker.depth(cell);
    let mut all = cell.settings().shown();
    for (name, value) in [
        ("ApproximateNumberOfMessages", depth.ready.to_string()),
        ("ApproximateNumberOfMessagesNotVisible", depth.in_flight.to_string()),
        ("ApproximateNumberOfMessagesDelayed", depth.delayed.to_string()),
        ("QueueArn", cell.arn.clone()),
    ] {
        all.insert(name.to_owned(), value);
    }
    let wanted: BTreeSet<String> = names(input, &["AttributeNames"]).into_iter().collect();
    if !wanted.contains("All") {
        all.retain(|name, _| wanted.contains(name));
    }
    Ok(json!({"Attributes": all}))
}

fn send(broker: &Broker, cell: &QueueCell, entry: &Value) -> Answer<Value> {
    let settings = cell.settings();
    let delay = number(entry, "DelaySeconds", 0, 900)?.unwrap_or(settings.delay_seconds());
    let delay: Millis = delay * 1000;
    let own = entry.get("MessageAttributes").and_then(Value::as_object);
    let mut system = BTreeMap::new();
    if let Some(group) = entry.get("MessageGroupId").and_then(Value::as_str) {
        system.insert("MessageGroupId".to_owned(), group.to_owned());
    }
    let trace = entry.pointer("/MessageSystemAttributes/AWSTraceHeader/StringValue");
    if let Some(trace) = trace.and_then(Value::as_str) {
        system.insert("AWSTraceHeader".to_owned(), trace.to_owned());
    }
    let content = Content::new(
        text(entry, "MessageBody")?.to_owned(),
        own.cloned().unwrap_or_default(),
        system,
        settings.largest_message(),
    )?;
    let mut answer = Map::new();
    answer.insert("MD5OfMessageBody".to_owned(), json!(content.body_md5));
    if let Some(md5) = &content.attributes_md5 {
        answer.insert("MD5OfMessageAttributes".to_owned(), json!(md5));
    }
    let id = broker.send(cell, content, delay);
    answer.insert("MessageId".to_owned(), json!(id));
    Ok(Value::Object(answer))
}

fn change(broker: &Broker, cell: &QueueCell, entry: &Value) -> Answer<()> {
    let handle = text(entry, "ReceiptHandle")?;
    match number(entry, "VisibilityTimeout", 0, 43_200)? {
        Some(seconds) => broker.change(cell, handle, seconds),
        None => refuse(
            Kind::MissingParameter,
            "The request must contain the parameter VisibilityTimeout.",
        ),
    }
}

async fn receive(broker: &Arc<Broker>, cell: &QueueCell, input: &Value) -> Answer<Value> {
    let most = number(input, "MaxNumberOfMessages", 1, 10)?.unwrap_or(1);
    let visibility = number(input, "VisibilityTimeout", 0, 43_200)?;
    let wait = number(input, "WaitTimeSeconds", 0, 20)?;
    let wait = Duration::from_secs(wait.unwrap_or_else(|| cell.settings().wait_seconds()));
    let wanted = Wanted::new(
        names(input, &["AttributeNames", "MessageSystemAttributeNames"]),
        names(input, &["MessageAttributeNames"]),
    );
    let most = usize::try_from(most).unwrap_or(10);
    let received = broker.receive(cell, most, visibility, wait).await?;
    let messages: Vec<Value> = received
        .iter()
        .map(|(handle, message)| message.shown(&cell.handle_text(*handle), &wanted))
        .collect();
    // Like the service: no list at all rather than an empty one.
    Ok(if messages.is_empty() { json!({}) } else { json!({"Messages": messages}) })
}

/// The entries of a batch with their ids, checked as a whole.
fn entries(input: &Value) -> Answer<Vec<(&str, &Value)>> {
    let list = input.get("Entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return refuse(
            Kind::EmptyBatchRequest,
            "There should be at least one entry in the request.",
        );
    }
    if list.len() > 10 {
        return refuse(
            Kind::TooManyEntries,
            format!("Maximum number of entries per request are 10. You have sent {}.", list.len()),
        );
    }
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for entry in list {
        let id = text(entry, "Id")?;
        if id.len() > 80
            || !id.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        {
            return refuse(
                Kind::InvalidBatchEntryId,
                "A batch entry id can only contain alphanumeric characters, hyphens and \
                 underscores. It can be at most 80 letters long.",
            );
        }
        if !seen.insert(id) {
            return refuse(Kind::BatchEntryIdsNotDistinct, format!("Id {id} repeated."));
        }
        entries.push((id, entry));
    }
    Ok(entries)
}

/// Bytes of an entry of a batch, for the limit on the whole.
fn entry_size(entry: &Value) -> usize {
    let body = entry.get("MessageBody").and_then(Value::as_str).map_or(0, str::len);
    let own = entry.get("MessageAttributes").map_or(0, |own| own.to_string().len());
    body + own
}

/// Does every entry by itself and answers what became of each.
fn batch(
    broker: &Broker,
    action: Action,
    entries: &[(&str, &Value)],
    mut each: impl FnMut(&Value) -> Answer<Value>,
) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (id, entry) in entries {
        let result = if broker.faults.entry_fails(action) {
            refuse(Kind::InternalFailure, "We encountered an internal error. Please try again.")
        } else {
            each(entry)
        };
        match result {
            Ok(mut answer) => {
                if let Some(object) = answer.as_object_mut() {
                    object.insert("Id".to_owned(), json!(id));
                }
                successful.push(answer);
            }
            Err(refusal) => failed.push(refusal.entry(id)),
        }
    }
    let mut answer = json!({"Successful": successful});
    if !failed.is_empty()
        && let Some(object) = answer.as_object_mut()
    {
        object.insert("Failed".to_owned(), Value::Array(failed));
    }
    answer
}

fn start_move(broker: &Arc<Broker>, input: &Value) -> Answer<Value> {
    let rate = input.get("MaxNumberOfMessagesPerSecond").and_then(Value::as_u64);
    let order = moves::Order {
        source: text(input, "SourceArn")?.to_owned(),
        destination: input.get("DestinationArn").and_then(Value::as_str).map(str::to_owned),
        rate: rate.map(|rate| u32::try_from(rate).unwrap_or(u32::MAX)),
    };
    Ok(json!({"TaskHandle": moves::start(broker, order)?}))
}

fn list_moves(broker: &Broker, input: &Value) -> Answer<Value> {
    let source = text(input, "SourceArn")?;
    if broker.by_arn(source).is_none() {
        return refuse(Kind::ResourceNotFound, "The source queue doesn't exist.");
    }
    let most = number(input, "MaxResults", 1, 10)?.unwrap_or(1);
    let most = usize::try_from(most).unwrap_or(10);
    Ok(json!({"Results": broker.moves.shown(source, most)}))
}
