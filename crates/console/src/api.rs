//! The interface for programs, below `/api/v1`: the same operations as the pages, in JSON.
//!
//! Field names are those of docs/reference/json.md; fields are added, never taken away. What may be
//! done is the table of [`openapi`](super::openapi), from which the routes are made as well.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use super::access::ConsoleVisitor;
use super::api_forms::{ChangeRequest, JsonBody, read_limit, tagged_json};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{cancel_visible, find_visible, read_id, retry_visible};
use super::layout::version_text;
use super::listing::load_page;
use super::overview::require_all_tenants;
use super::review_desk::load_visible_case;
use super::review_queue::load_queue;
use super::reviews::{DecisionRequest, ReviewDecisionInput, record_review, stale_version};
use super::state::ConsoleState;
use docmill_operations::review::{self, AcceptedData, DataCorrection};

/// Longest wait for the end of an ingestion, in seconds.
const MAX_WAIT_SECONDS: u64 = 20;
/// Between two looks whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// What a reviewer has decided.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    decision: RequestedDecision,
    #[serde(default)]
    why: String,
    /// With `accepted`: what the newest ingestion read.
    #[serde(default)]
    newest: bool,
    /// Also if somebody else has the document open.
    #[serde(default)]
    take_over: bool,
    /// With `corrected`: the whole data.
    data: Option<Value>,
    /// With `corrected`: single fields.
    fields: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RequestedDecision {
    Accepted,
    Corrected,
    Rejected,
}

impl DecisionBody {
    fn into_input(self) -> Result<ReviewDecisionInput, ConsoleFailure> {
        let corrects = self.decision == RequestedDecision::Corrected;
        if !corrects && (self.data.is_some() || self.fields.is_some()) {
            let text = "data and fields go with the decision `corrected`";
            return Err(ConsoleFailure::wrong_request(text));
        }
        match (self.decision, self.data, self.fields) {
            (RequestedDecision::Accepted, ..) if self.newest => {
                Ok(ReviewDecisionInput::Accept(AcceptedData::Newest))
            }
            (RequestedDecision::Accepted, ..) => {
                Ok(ReviewDecisionInput::Accept(AcceptedData::Document))
            }
            (RequestedDecision::Rejected, ..) => Ok(ReviewDecisionInput::Reject),
            (RequestedDecision::Corrected, Some(data), None) => {
                Ok(ReviewDecisionInput::Correct(DataCorrection::Whole(data)))
            }
            (RequestedDecision::Corrected, None, Some(fields)) if !fields.is_empty() => {
                let fields = fields.into_iter().map(|(name, value)| (name, typed_text(value)));
                Ok(ReviewDecisionInput::Correct(DataCorrection::Fields(fields.collect())))
            }
            (RequestedDecision::Corrected, ..) => {
                let text = "`corrected` takes either data or fields, and at least one field";
                Err(ConsoleFailure::wrong_request(text))
            }
        }
    }
}

/// A value as a person would type it.
fn typed_text(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// `GET /overview`.
pub(super) async fn get_overview(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let answer = state.load_overview().await?;
    tagged_json(&headers, &json!({ "service": answer.service, "cost_today": answer.cost }))
}

/// `GET /ingestions`.
pub(super) async fn list_ingestions(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let page = load_page(&state, &visitor, &wanted, read_limit(&wanted)?).await?;
    tagged_json(&headers, &json!({ "items": page.rows, "next_cursor": page.next }))
}

/// `GET /ingestions/{id}`.
pub(super) async fn get_ingestion(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let (id, until) = (read_id(&id)?, Instant::now() + read_wait(&asked)?);
    loop {
        let found = find_visible(&state, &visitor, id).await?;
        if found.ingestion.status != "in-progress" || Instant::now() + POLL_INTERVAL > until {
            return tagged_json(&headers, &found);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// How long to wait for the end of an ingestion; the connection lives a little longer.
fn read_wait(asked: &FieldValues) -> Result<Duration, ConsoleFailure> {
    let Some(text) = asked.get("wait") else { return Ok(Duration::ZERO) };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= MAX_WAIT_SECONDS);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        ConsoleFailure::wrong_request(format!(
            "wait is a number of seconds up to {MAX_WAIT_SECONDS}"
        ))
    })
}

/// `GET /ingestions/{id}/result`.
pub(super) async fn get_result(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    if row.status == "in-progress" {
        return Err(ConsoleFailure::conflict("The ingestion has not ended yet."));
    }
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let result = json!({
        "ingestion_id": row.id, "document_id": row.document_id, "status": row.status,
        "reason": row.reason, "data": row.structured_data, "document_data": case.document_data,
        "needs_human_review": case.needs_human_review, "review_reasons": case.review_reasons,
    });
    tagged_json(&headers, &result)
}

/// `POST /ingestions/{id}/retry`.
pub(super) async fn post_retry(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    let done = retry_visible(&state, &visitor, read_id(&id)?, &request.why).await?;
    Ok(Json(done).into_response())
}

/// `POST /ingestions/{id}/cancel`.
pub(super) async fn post_cancel(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    let done = cancel_visible(&state, &visitor, read_id(&id)?, &request.why).await?;
    Ok(Json(done).into_response())
}

/// `GET /reviews`.
pub(super) async fn list_reviews(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let page = load_queue(&state, &visitor, &wanted, read_limit(&wanted)?).await?;
    tagged_json(&headers, &json!({ "items": page.rows, "next_cursor": page.next }))
}

/// `GET /reviews/{document_id}`: its `ETag` is the version that a decision names.
pub(super) async fn get_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let tag = format!("\"{}\"", version_text(case.version));
    Ok(([(header::ETAG, tag)], Json(case)).into_response())
}

/// `POST /reviews/{document_id}/decision`.
pub(super) async fn post_decision(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<DecisionBody>,
) -> Result<Response, ConsoleFailure> {
    let Some(named) = headers.get(header::IF_MATCH) else {
        return Err(ConsoleFailure::version_needed());
    };
    let named = named.to_str().unwrap_or_default().trim_matches('"');
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    if OffsetDateTime::parse(named, &Rfc3339).ok() != Some(case.version) {
        return Err(stale_version(&case));
    }
    let (why, take_over) = (request.why.clone(), request.take_over);
    let request = DecisionRequest { input: request.into_input()?, why: &why, take_over };
    let done = record_review(&state, &visitor, &case, request).await?;
    Ok(Json(done).into_response())
}

/// `POST /reviews/{document_id}/undo`.
pub(super) async fn post_undo(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let by = visitor.audit_note("");
    let done = review::undo_decision(state.database(), case.document_id, &by).await?;
    Ok(Json(done).into_response())
}
