//! Messages to Amazon SQS, SNS and `EventBridge`: one signed request each, by the services' own
//! protocols (AWS JSON 1.0 of SQS, the query protocol of SNS, AWS JSON 1.1 of `EventBridge`).
//!
//! Messages go to the address that the ARN stands for, or to the configured one in its place, and
//! both are checked as those of other targets. Not promised: that AWS forwards a message only once,
//! or in order, except in FIFO queues and topics, where a document is a group.

use std::time::SystemTime;

use aws_config::BehaviorVersion;
use aws_sdk_sqs::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The source of docmill's events in `EventBridge`.
const SOURCE: &str = "docmill";
/// The problem of an ARN of another form.
const ARN_FORMS: &str = "an ARN of a target is arn:aws:sqs:REGION:ACCOUNT:QUEUE, \
    arn:aws:sns:REGION:ACCOUNT:TOPIC or arn:aws:events:REGION:ACCOUNT:event-bus/NAME";
const NO_CREDENTIALS: &str = "AWS gives no credentials; check the role or environment";
/// Signs of an error's name that are kept.
const MAX_CODE_CHARS: usize = 80;

/// A service of AWS that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageService {
    Sqs,
    Sns,
    EventBridge,
}

/// A queue, topic or event bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsTarget {
    service: MessageService,
    arn: String,
    region: String,
    account: String,
    name: String,
    endpoint: Url,
}

/// An event, before it is put into a service's own form.
#[derive(Debug, Clone)]
pub struct AwsMessage {
    /// The same at every try.
    pub id: String,
    /// The event.
    pub event: String,
    /// The unit whose order is kept, where the target keeps one: the document.
    pub group: String,
    /// The payload, JSON.
    pub body: String,
}

/// A request that is not signed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnsignedRequest {
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl AwsTarget {
    /// Whether a target's address is an ARN.
    pub fn is_arn(address: &str) -> bool {
        address.starts_with("arn:")
    }

    /// Reads an ARN of a queue, a topic or an event bus. `endpoint` takes the place of the address
    /// that AWS documents for the service; empty: that one.
    ///
    /// # Errors
    /// The problem with it.
    pub fn parse(arn: &str, endpoint: &str) -> Result<Self, String> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, service, region, account, resource] = parts.as_slice() else {
            return Err(ARN_FORMS.to_owned());
        };
        let (service, host, name) = match *service {
            "sqs" => (MessageService::Sqs, "sqs", *resource),
            "sns" => (MessageService::Sns, "sns", *resource),
            "events" => {
                let bus = resource.strip_prefix("event-bus/").ok_or(ARN_FORMS)?;
                (MessageService::EventBridge, "events", bus)
            }
            _ => return Err(ARN_FORMS.to_owned()),
        };
        let domain = match *partition {
            "aws" | "aws-us-gov" => "amazonaws.com",
            "aws-cn" => "amazonaws.com.cn",
            _ => return Err(ARN_FORMS.to_owned()),
        };
        let digits = account.chars().all(|c| c.is_ascii_digit()) && !account.is_empty();
        if !is_plain(region, "-") || !digits || !is_plain(name, "-_./") {
            return Err(ARN_FORMS.to_owned());
        }
        let address = match endpoint {
            "" => format!("https://{host}.{region}.{domain}/"),
            given => given.to_owned(),
        };
        let endpoint =
            Url::parse(&address).map_err(|_| "its endpoint cannot be read".to_owned())?;
        Ok(Self {
            service,
            arn: arn.to_owned(),
            region: (*region).to_owned(),
            account: (*account).to_owned(),
            name: name.to_owned(),
            endpoint,
        })
    }

    /// Where requests go.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    fn keeps_order(&self) -> bool {
        self.service != MessageService::EventBridge && self.name.ends_with(".fifo")
    }

    /// The message in the service's own form.
    pub(super) fn write_request(&self, message: &AwsMessage) -> UnsignedRequest {
        match self.service {
            MessageService::Sqs => self.write_sqs(message),
            MessageService::Sns => self.write_sns(message),
            MessageService::EventBridge => self.write_event(message),
        }
    }

    fn write_sqs(&self, message: &AwsMessage) -> UnsignedRequest {
        let queue = format!("{}{}/{}", self.endpoint, self.account, self.name);
        let mut body = json!({
            "QueueUrl": queue, "MessageBody": message.body,
            "MessageAttributes": {
                "webhook-id": { "DataType": "String", "StringValue": message.id },
                "event": { "DataType": "String", "StringValue": message.event },
            },
        });
        if let (true, Value::Object(fields)) = (self.keeps_order(), &mut body) {
            fields.insert("MessageGroupId".to_owned(), json!(message.group));
            fields.insert("MessageDeduplicationId".to_owned(), json!(message.id));
        }
        json_request("AmazonSQS.SendMessage", "application/x-amz-json-1.0", &body)
    }

    fn write_sns(&self, message: &AwsMessage) -> UnsignedRequest {
        let mut form = vec![
            ("Action", "Publish"),
            ("Version", "2010-03-31"),
            ("TopicArn", self.arn.as_str()),
            ("Message", message.body.as_str()),
        ];
        let names = [
            (
                "webhook-id",
                &message.id,
                [
                    "MessageAttributes.entry.1.Name",
                    "MessageAttributes.entry.1.Value.DataType",
                    "MessageAttributes.entry.1.Value.StringValue",
                ],
            ),
            (
                "event",
                &message.event,
                [
                    "MessageAttributes.entry.2.Name",
                    "MessageAttributes.entry.2.Value.DataType",
                    "MessageAttributes.entry.2.Value.StringValue",
                ],
            ),
        ];
        for (name, value, [key, kind, text]) in names {
            form.extend([(key, name), (kind, "String"), (text, value.as_str())]);
        }
        if self.keeps_order() {
            form.push(("MessageGroupId", message.group.as_str()));
            form.push(("MessageDeduplicationId", message.id.as_str()));
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let kind = "application/x-www-form-urlencoded".to_owned();
        UnsignedRequest { headers: vec![("content-type", kind)], body }
    }

    fn write_event(&self, message: &AwsMessage) -> UnsignedRequest {
        // An event has no field for an id of ours except its details.
        let mut detail = serde_json::from_str(&message.body).unwrap_or_else(|_| json!({}));
        if let Value::Object(fields) = &mut detail {
            fields.insert("id".to_owned(), json!(message.id));
        }
        let entry = json!({
            "Source": SOURCE, "DetailType": message.event, "EventBusName": self.arn,
            "Detail": detail.to_string(),
        });
        let body = json!({ "Entries": [entry] });
        json_request("AWSEvents.PutEvents", "application/x-amz-json-1.1", &body)
    }

    /// The headers with a signature (version 4) of the request.
    ///
    /// # Errors
    /// It cannot be signed; nothing of the credentials is said.
    pub(super) fn sign_request(
        &self,
        request: &UnsignedRequest,
        credentials: Credentials,
        now: SystemTime,
    ) -> Result<Vec<(String, String)>, String> {
        let service = match self.service {
            MessageService::Sqs => "sqs",
            MessageService::Sns => "sns",
            MessageService::EventBridge => "events",
        };
        let identity = credentials.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(service)
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| unsigned("a part is missing"))?
            .into();
        let headers = request.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let body = SignableBody::Bytes(request.body.as_bytes());
        let signable = SignableRequest::new("POST", self.endpoint.as_str(), headers, body)
            .map_err(|_| unsigned("its address is invalid"))?;
        let (signed, _) =
            sign(signable, &parameters).map_err(|_| unsigned("its parts do not fit"))?.into_parts();
        let plain = request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let added = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(plain.chain(added).collect())
    }

    /// Why an answer is no success, by the words of AWS's own errors; `None`: the message was taken.
    pub(super) fn find_problem(
        &self,
        status: u16,
        error_type: &str,
        body: &[u8],
    ) -> Option<String> {
        let read: Value = serde_json::from_slice(body).unwrap_or_default();
        if (200..300).contains(&status) {
            let failed = self.service == MessageService::EventBridge
                && read.get("FailedEntryCount").and_then(Value::as_u64) != Some(0);
            let code = read.pointer("/Entries/0/ErrorCode").and_then(Value::as_str);
            return failed.then(|| format!("not taken: {}", plain_code(code.unwrap_or_default())));
        }
        let text = String::from_utf8_lossy(body);
        let in_xml = text.split("<Code>").nth(1).and_then(|rest| rest.split("</Code>").next());
        let named = read.get("__type").and_then(Value::as_str).or(in_xml);
        let code = if error_type.is_empty() { named.unwrap_or_default() } else { error_type };
        Some(format!("{status} {}", plain_code(code)))
    }
}

/// Whether a text has letters and digits of ASCII and `more`, and at least one of them.
fn is_plain(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

fn unsigned(problem: &str) -> String {
    format!("the request to AWS cannot be signed: {problem}")
}

/// The name of an error, without its namespace and other additions.
fn plain_code(code: &str) -> String {
    let last = code.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    let plain = last.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    let plain: String = plain.take(MAX_CODE_CHARS).collect();
    if plain.is_empty() { "no reason given".to_owned() } else { plain }
}

fn json_request(target: &str, kind: &str, body: &Value) -> UnsignedRequest {
    let headers = vec![("content-type", kind.to_owned()), ("x-amz-target", target.to_owned())];
    UnsignedRequest { headers, body: body.to_string() }
}

/// Credentials of AWS's usual chain, looked up when they are needed first.
#[derive(Debug, Default)]
pub(super) struct AwsCredentials {
    provider: OnceCell<Option<SharedCredentialsProvider>>,
}

impl AwsCredentials {
    /// Those of this provider.
    pub(super) fn given(provider: SharedCredentialsProvider) -> Self {
        Self { provider: OnceCell::new_with(Some(Some(provider))) }
    }

    /// Credentials that hold now.
    ///
    /// # Errors
    /// There are none, or their source does not answer.
    pub(super) async fn current(&self) -> Result<Credentials, String> {
        let provider = self.provider.get_or_init(async || {
            let shared = aws_config::defaults(BehaviorVersion::latest()).load().await;
            shared.credentials_provider()
        });
        let provider = provider.await.as_ref().ok_or(NO_CREDENTIALS)?;
        provider.provide_credentials().await.map_err(|_| NO_CREDENTIALS.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn message() -> AwsMessage {
        AwsMessage {
            id: "e-1".to_owned(),
            event: "document.completed".to_owned(),
            group: "d-1".to_owned(),
            body: r#"{"type":"document.completed"}"#.to_owned(),
        }
    }

    #[test]
    fn an_arn_leads_to_the_endpoint_that_aws_documents_and_nothing_else_is_one() {
        for (arn, endpoint) in [
            (
                "arn:aws:sqs:eu-central-1:123456789012:told",
                "https://sqs.eu-central-1.amazonaws.com/",
            ),
            ("arn:aws-cn:sns:cn-north-1:1:told.fifo", "https://sns.cn-north-1.amazonaws.com.cn/"),
            (
                "arn:aws:events:us-east-1:1:event-bus/default",
                "https://events.us-east-1.amazonaws.com/",
            ),
        ] {
            assert_eq!(AwsTarget::parse(arn, "").unwrap().endpoint().as_str(), endpoint, "{arn}");
        }
        for wrong in [
            "arn:aws:sqs:eu-central-1:123456789012:",
            "arn:aws:sqs:eu-central-1::told",
            "arn:aws:sqs:evil.example/:1:told",
            "arn:aws:lambda:eu-central-1:1:told",
            "arn:aws:events:us-east-1:1:default",
            "arn:evil:sqs:us-east-1:1:told",
            "arn:aws:sqs:us-east-1:1:told?x=y",
        ] {
            assert!(AwsTarget::parse(wrong, "").is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_document_is_a_group_of_a_fifo_queue_or_topic_and_repetitions_of_a_message_are_dropped_there()
     {
        for (arn, group, again) in [
            (
                "arn:aws:sqs:us-east-1:1:t.fifo",
                "\"MessageGroupId\":\"d-1\"",
                "\"MessageDeduplicationId\":\"e-1\"",
            ),
            ("arn:aws:sns:us-east-1:1:t.fifo", "MessageGroupId=d-1", "MessageDeduplicationId=e-1"),
        ] {
            let body = AwsTarget::parse(arn, "").unwrap().write_request(&message()).body;
            assert!(body.contains(group) && body.contains(again), "{body}");
            let plain = AwsTarget::parse(arn.trim_end_matches(".fifo"), "").unwrap();
            assert!(!plain.write_request(&message()).body.contains("Group"), "{arn}");
        }
    }

    /// As AWS documents `PutEvents`.
    #[test]
    fn an_event_has_its_source_and_type_and_the_payload_with_its_id_as_detail() {
        let bus = "arn:aws:events:us-east-1:1:event-bus/b";
        let request = AwsTarget::parse(bus, "").unwrap().write_request(&message());
        assert!(request.headers.contains(&("x-amz-target", "AWSEvents.PutEvents".to_owned())));
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let expected = json!({ "Source": "docmill", "DetailType": "document.completed",
            "EventBusName": bus,
            "Detail": r#"{"type":"document.completed","id":"e-1"}"# });
        assert_eq!(body.pointer("/Entries/0"), Some(&expected));
    }

    #[test]
    fn an_entry_refused_by_eventbridge_is_a_failure_although_the_answer_is_200() {
        let target = AwsTarget::parse("arn:aws:events:us-east-1:1:event-bus/b", "").unwrap();
        let refused = br#"{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException"}]}"#;
        let told = |status, kind: &str, body: &[u8]| target.find_problem(status, kind, body);
        assert_eq!(told(200, "", refused).unwrap(), "not taken: ThrottlingException");
        assert_eq!(told(200, "", br#"{"FailedEntryCount":0,"Entries":[{}]}"#), None);
        assert!(told(200, "", b"").is_some(), "an answer that says nothing says no");
        let json = br#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"CONTENT"}"#;
        assert_eq!(told(400, "", json).unwrap(), "400 QueueDoesNotExist");
        let xml = b"<ErrorResponse><Error><Code>NotFound</Code><Message>CONTENT</Message>";
        assert_eq!(told(404, "", xml).unwrap(), "404 NotFound");
        assert_eq!(told(400, "Throttled:http://x", b"").unwrap(), "400 Throttled");
        let sqs = AwsTarget::parse("arn:aws:sqs:us-east-1:1:t", "").unwrap();
        assert_eq!(sqs.find_problem(200, "", b"{}"), None);
    }

    #[test]
    fn a_request_is_signed_with_all_that_determines_its_effect() {
        let target = AwsTarget::parse("arn:aws:sqs:us-east-1:1:t", "").unwrap();
        let request = target.write_request(&message());
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let sign = |request: &UnsignedRequest| {
            let credentials = Credentials::new("AK", "secret", Some("token".to_owned()), None, "t");
            let headers = target.sign_request(request, credentials, at).unwrap();
            headers.into_iter().collect::<std::collections::BTreeMap<_, _>>()
        };
        let headers = sign(&request);
        let signature = &headers["authorization"];
        let signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target";
        assert!(
            signature.contains("/us-east-1/sqs/aws4_request") && signature.contains(signed),
            "{signature}"
        );
        assert_eq!(headers["x-amz-security-token"], "token");
        let other = UnsignedRequest { body: "{}".to_owned(), ..request };
        assert_ne!(&sign(&other)["authorization"], signature, "the body is signed");
    }
}
