//! Whether a request is one that the real service would take.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::Refused;
use crate::pictures::{Seen, seen};

/// Most bytes of a picture.
const MAX_BYTES: usize = 10_485_760;

pub(super) struct Start {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) token: String,
}

pub(super) struct Get {
    pub(super) job: String,
    pub(super) most: usize,
    /// Number of the first block.
    pub(super) from: usize,
}

/// The one picture of a request.
pub(super) fn picture(request: &Value) -> Result<Seen, Refused> {
    let document = part(object(request, &["Document"])?, "Document")?;
    let bytes = part(object(document, &["Bytes"])?, "Bytes")?.as_str();
    let bytes =
        bytes.and_then(|text| STANDARD.decode(text).ok()).ok_or_else(|| invalid("Bytes"))?;
    if bytes.len() > MAX_BYTES {
        return Err(("DocumentTooLargeException", "Request too large".to_owned()));
    }
    match seen(&bytes).as_deref() {
        Some([one]) => Ok(*one),
        Some(_) => Err(("UnsupportedDocumentException", "more than one page".to_owned())),
        None => Err(("UnsupportedDocumentException", "unsupported document format".to_owned())),
    }
}

pub(super) fn start(request: &Value) -> Result<Start, Refused> {
    let root = object(request, &["DocumentLocation", "ClientRequestToken"])?;
    let place = object(part(root, "DocumentLocation")?, &["S3Object"])?;
    let object = object(part(place, "S3Object")?, &["Bucket", "Name", "Version"])?;
    let token = text(root, "ClientRequestToken")?;
    if token.len() > 64
        || !token.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    {
        return Err(invalid("ClientRequestToken"));
    }
    Ok(Start { bucket: text(object, "Bucket")?, key: text(object, "Name")?, token })
}

pub(super) fn get(request: &Value) -> Result<Get, Refused> {
    let root = object(request, &["JobId", "MaxResults", "NextToken"])?;
    let most = match root.get("MaxResults") {
        None => Some(1000),
        Some(most) => most.as_u64().filter(|most| (1..=1000).contains(most)),
    };
    let most = most.and_then(|most| usize::try_from(most).ok());
    let from = match root.get("NextToken") {
        None => Some(0),
        Some(token) => token.as_str().and_then(|token| token.strip_prefix("from-")?.parse().ok()),
    };
    Ok(Get {
        job: text(root, "JobId")?,
        most: most.ok_or_else(|| invalid("MaxResults"))?,
        from: from.ok_or_else(|| invalid("NextToken"))?,
    })
}

fn invalid(name: &str) -> Refused {
    ("InvalidParameterException", format!("Request has invalid parameters: {name}"))
}

fn part<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Refused> {
    object.get(name).ok_or_else(|| invalid(name))
}

fn text(object: &Map<String, Value>, name: &str) -> Result<String, Refused> {
    let text = part(object, name)?.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| invalid(name))
}

fn object<'a>(value: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, Refused> {
    let object = value.as_object().ok_or_else(|| invalid("the request"))?;
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(invalid(key)),
        None => Ok(object),
    }
}
