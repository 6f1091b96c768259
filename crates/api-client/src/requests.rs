//! Requests to the service.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::answers::IngestionState;

/// A document that is to be handed in.
#[derive(Debug, Clone, Default)]
pub struct DocumentUpload {
    /// The document as it is, up to the service's `limits.document_bytes`.
    pub bytes: Bytes,
    /// The name of its file, for people.
    pub name: String,
    /// Its kind; `None`: the service recognises it by its words.
    pub kind: Option<String>,
    /// Whose it is. A token that is of a tenant names its own or none.
    pub tenant: Option<String>,
    /// `critical`, `high`, `normal`, `low` or `background`; `None`: normal.
    pub priority: Option<String>,
    /// The name of this request, 1 to 200 plain signs: the same request under it is answered the same
    /// for a day, also after a restart of the caller. `None`: one is made for this call.
    pub idempotency_key: Option<String>,
}

impl DocumentUpload {
    /// A document of this name, of any kind.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into(), ..Self::default() }
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut asked = vec![("name", self.name.clone())];
        let more = [("kind", &self.kind), ("tenant", &self.tenant), ("priority", &self.priority)];
        asked.extend(more.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        asked
    }
}

/// Which ingestions are listed; what is `None` excludes none.
#[derive(Debug, Clone, Default)]
pub struct IngestionQuery {
    /// In this state.
    pub status: Option<IngestionState>,
    /// Ended for this reason, e.g. `gate_refused`.
    pub reason: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Registered within, e.g. `2h` or `1day`.
    pub since: Option<String>,
    /// Behind this one: `next_cursor` of the page before.
    pub cursor: Option<Uuid>,
    /// Rows of a page, 1 to 200; `None`: 50.
    pub limit: Option<u32>,
}

impl IngestionQuery {
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        keep_named([
            ("status", self.status.map(|status| status.word().to_owned())),
            ("reason", self.reason.clone()),
            ("kind", self.kind.clone()),
            ("tenant", self.tenant.clone()),
            ("since", self.since.clone()),
            ("cursor", self.cursor.map(|cursor| cursor.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ])
    }
}

/// Which ingestions are changed together.
#[derive(Debug, Clone)]
pub enum IngestionSelection {
    /// These, 1 to 500.
    Named(Vec<Uuid>),
    /// The newest that match, after the cursor; a status is needed.
    Matching(IngestionQuery),
}

impl IngestionSelection {
    pub(super) fn body(&self, change: &str, why: &str) -> Value {
        match self {
            Self::Named(ids) => json!({ "change": change, "ids": ids, "why": why }),
            Self::Matching(query) => json!({
                "change": change,
                "filter": {
                    "status": query.status.map(IngestionState::word),
                    "reason": query.reason,
                    "kind": query.kind,
                    "tenant": query.tenant,
                    "since": query.since,
                },
                "cursor": query.cursor,
                "why": why,
            }),
        }
    }
}

/// Which documents that wait for a person are listed; what is `None` excludes none.
#[derive(Debug, Clone, Default)]
pub struct ReviewQuery {
    /// With this reason.
    pub reason: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Behind this one: `next_cursor` of the page before.
    pub cursor: Option<Uuid>,
    /// Rows of a page, 1 to 200; `None`: 50.
    pub limit: Option<u32>,
}

impl ReviewQuery {
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        keep_named([
            ("reason", self.reason.clone()),
            ("kind", self.kind.clone()),
            ("tenant", self.tenant.clone()),
            ("cursor", self.cursor.map(|cursor| cursor.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ])
    }
}

fn keep_named<const N: usize>(
    asked: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// A reviewer's choice.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewChoice {
    /// The document's data is right.
    Accept,
    /// The newest ingestion's data is right.
    AcceptNewest,
    /// These fields are right so, `null` for none; the others stay.
    CorrectFields(Map<String, Value>),
    /// This is the whole data.
    CorrectWhole(Value),
    /// The document is of no use. Needs a reason.
    Reject,
}

/// Conditions of a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecisionTerms {
    /// Why, for the audit.
    pub why: String,
    /// Also if another reviewer has the document open.
    pub take_over: bool,
}

impl ReviewChoice {
    pub(super) fn body(&self, terms: &DecisionTerms) -> Value {
        let mut body = match self {
            Self::Accept => json!({ "decision": "accepted" }),
            Self::AcceptNewest => json!({ "decision": "accepted", "newest": true }),
            Self::CorrectFields(fields) => json!({ "decision": "corrected", "fields": fields }),
            Self::CorrectWhole(data) => json!({ "decision": "corrected", "data": data }),
            Self::Reject => json!({ "decision": "rejected" }),
        };
        if let Value::Object(fields) = &mut body {
            fields.insert("why".to_owned(), terms.why.as_str().into());
            fields.insert("take_over".to_owned(), terms.take_over.into());
        }
        body
    }
}
