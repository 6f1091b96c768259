//! The interface for programs, below `/api/v1`: the same operations as the pages, in JSON.
//!
//! Field names are those of docs/reference/json.md; fields are added, never taken away. Each
//! handler describes itself for the `OpenAPI` description; the routes and their roles are in `lib.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::{ChangeRequest, JsonBody, WholeNumber, read_limit, tagged_json};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{cancel_visible, find_visible, read_id, retry_visible};
use super::layout::version_text;
use super::listing::{IngestionPage, load_page};
use super::openapi::{ReviewSort, StatusName};
use super::overview::require_all_tenants;
use super::review_desk::load_visible_case;
use super::review_queue::{ReviewPage, load_queue};
use super::reviews::{DecisionRequest, ReviewDecisionInput, record_review, stale_version};
use super::state::ConsoleState;
use docmill_operations::dashboard::ServiceOverview;
use docmill_operations::inspect::{CostSum, FamilyMember, IngestionHistory};
use docmill_operations::retry::IngestionChange;
use docmill_operations::review::{
    self, AcceptedData, DataCorrection, RecordedDecision, ReviewCase,
};

/// Longest wait for the end of an ingestion, in seconds.
pub(super) const MAX_WAIT_SECONDS: u64 = 20;
/// Between two checks whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A decision as a program sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DecisionRequest)]
pub(super) struct DecisionBody {
    #[schema(inline)]
    decision: RequestedDecision,
    /// Needed to reject.
    #[serde(default)]
    why: String,
    /// With `accepted`: the data of the newest ingestion.
    #[serde(default)]
    newest: bool,
    /// Even if another reviewer has the document open.
    #[serde(default)]
    take_over: bool,
    /// With `corrected`: the whole data.
    #[schema(value_type = Value, required = false)]
    data: Option<Value>,
    /// With `corrected`: these fields, null for none.
    #[schema(value_type = Object, required = false)]
    fields: Option<BTreeMap<String, Value>>,
    /// With `cut`: the pages on which the documents after the first begin, in rising order.
    #[serde(default)]
    #[schema(value_type = Vec<u32>)]
    pages: Vec<WholeNumber<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestedDecision {
    Accepted,
    Corrected,
    Rejected,
    /// Into several documents; recorded as rejected.
    Cut,
}

/// The state of the service, and today's cost.
#[derive(Serialize, ToSchema)]
struct Overview<'a> {
    #[schema(value_type = Value)]
    service: &'a ServiceOverview,
    #[schema(value_type = Value)]
    cost_today: &'a Option<CostSum>,
}

/// The data of an ingestion, and of its document.
#[derive(Serialize, ToSchema)]
struct IngestionResult {
    ingestion_id: Uuid,
    document_id: Uuid,
    status: String,
    reason: Option<String>,
    #[schema(value_type = Value)]
    data: Option<Value>,
    #[schema(value_type = Value)]
    document_data: Option<Value>,
    needs_human_review: bool,
    review_reasons: Vec<String>,
    /// The documents that were found in it, in their order.
    children: Vec<FamilyMember>,
    #[schema(value_type = Value)]
    einvoice_rules: Option<Value>,
    /// Match with the tenant's master data: `supplier` and `order`, with the evidence.
    #[schema(value_type = Value)]
    master_match: Option<Value>,
    /// Fields that hooks added, by their names.
    #[schema(value_type = Value)]
    hooks: Option<Value>,
}

impl DecisionBody {
    fn into_input(self) -> Result<ReviewDecisionInput, ConsoleFailure> {
        let corrects = self.decision == RequestedDecision::Corrected;
        if !corrects && (self.data.is_some() || self.fields.is_some()) {
            let text = "data and fields go with the decision `corrected`";
            return Err(ConsoleFailure::wrong_request(text));
        }
        if self.decision != RequestedDecision::Cut && !self.pages.is_empty() {
            return Err(ConsoleFailure::wrong_request("pages go with the decision `cut`"));
        }
        match (self.decision, self.data, self.fields) {
            (RequestedDecision::Accepted, ..) if self.newest => {
                Ok(ReviewDecisionInput::Accept(AcceptedData::Newest))
            }
            (RequestedDecision::Accepted, ..) => {
                Ok(ReviewDecisionInput::Accept(AcceptedData::Document))
            }
            (RequestedDecision::Rejected, ..) => Ok(ReviewDecisionInput::Reject),
            (RequestedDecision::Cut, ..) => {
                Ok(ReviewDecisionInput::Cut(self.pages.iter().map(|page| page.0).collect()))
            }
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

/// The state of the service, at most two seconds old. Not for tokens of one tenant.
#[utoipa::path(
    get,
    path = "/overview",
    operation_id = "getOverview",
    responses((status = 200, description = "Done.", body = Overview))
)]
pub(super) async fn get_overview(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let answer = state.load_overview().await?;
    tagged_json(&headers, &Overview { service: &answer.service, cost_today: &answer.cost })
}

/// Ingestions, newest first.
#[utoipa::path(
    get,
    path = "/ingestions",
    operation_id = "listIngestions",
    params(
        ("status" = inline(Option<StatusName>), Query),
        ("reason" = Option<String>, Query, pattern = "\\S"),
        ("kind" = Option<String>, Query, pattern = "\\S"),
        ("tenant" = Option<String>, Query, pattern = "\\S"),
        ("since" = Option<String>, Query, pattern = "^[1-9][0-9]{0,2}(s|m|h|days)$",
            description = "registered within, e.g. 2h"),
        ("cursor" = Option<Uuid>, Query, description = "next_cursor of the page before"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "Done.", body = IngestionPage))
)]
pub(super) async fn list_ingestions(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let page = load_page(&state, &visitor, &wanted, read_limit(&wanted)?).await?;
    tagged_json(&headers, &page)
}

/// The state of an ingestion (or the newest of a document), with its attempts and the documents found in it.
/// It is in progress until all of those have ended.
#[utoipa::path(
    get,
    path = "/ingestions/{id}",
    operation_id = "getIngestion",
    params(
        ("id" = Uuid, Path),
        ("wait" = Option<u64>, Query, minimum = 0, maximum = 20,
            description = "wait so many seconds for its end"),
    ),
    responses((status = 200, description = "Done.", body = IngestionHistory))
)]
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
        if found.has_ended() || Instant::now() + POLL_INTERVAL > until {
            return tagged_json(&headers, &found.as_whole());
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

/// The data of an ingestion and of its document. 409 until it and all documents found in it have ended.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/result",
    operation_id = "getResult",
    params(
        ("id" = Uuid, Path),
    ),
    responses((status = 200, description = "Done.", body = IngestionResult))
)]
pub(super) async fn get_result(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let found = find_visible(&state, &visitor, read_id(&id)?).await?;
    if !found.has_ended() {
        return Err(ConsoleFailure::conflict("The ingestion has not ended yet."));
    }
    let (row, einvoice_rules) = (found.ingestion, found.einvoice_rules);
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let result = IngestionResult {
        ingestion_id: row.id,
        document_id: row.document_id,
        status: row.status,
        reason: row.reason,
        data: row.structured_data,
        document_data: case.document_data,
        needs_human_review: case.needs_human_review,
        review_reasons: case.review_reasons,
        children: found.children,
        einvoice_rules,
        master_match: found.master_match,
        hooks: found.hooks,
    };
    tagged_json(&headers, &result)
}

/// Works on an ingestion once more.
#[utoipa::path(
    post,
    path = "/ingestions/{id}/retry",
    operation_id = "retryIngestion",
    params(
        ("id" = Uuid, Path),
    ),
    request_body(content = ChangeRequest),
    responses((status = 200, description = "Done.", body = IngestionChange))
)]
pub(super) async fn post_retry(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    let done = retry_visible(&state, &visitor, read_id(&id)?, &request.why).await?;
    Ok(Json(done).into_response())
}

/// Withdraws an ingestion that has not ended.
#[utoipa::path(
    post,
    path = "/ingestions/{id}/cancel",
    operation_id = "cancelIngestion",
    params(
        ("id" = Uuid, Path),
    ),
    request_body(content = ChangeRequest),
    responses((status = 200, description = "Done.", body = IngestionChange))
)]
pub(super) async fn post_cancel(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    let done = cancel_visible(&state, &visitor, read_id(&id)?, &request.why).await?;
    Ok(Json(done).into_response())
}

/// Documents that need review, oldest first.
#[utoipa::path(
    get,
    path = "/reviews",
    operation_id = "listReviews",
    params(
        ("reason" = Option<String>, Query, pattern = "\\S"),
        ("kind" = Option<String>, Query, pattern = "\\S"),
        ("tenant" = Option<String>, Query, pattern = "\\S"),
        ("order" = inline(Option<ReviewSort>), Query,
            description = "oldest first, or the largest amount, which has no next page"),
        ("cursor" = Option<Uuid>, Query, description = "next_cursor of the page before"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "Done.", body = ReviewPage))
)]
pub(super) async fn list_reviews(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let page = load_queue(&state, &visitor, &wanted, read_limit(&wanted)?).await?;
    tagged_json(&headers, &page)
}

/// One document as a reviewer sees it. Its ETag is the version that a decision names.
#[utoipa::path(
    get,
    path = "/reviews/{document_id}",
    operation_id = "getReview",
    params(
        ("document_id" = Uuid, Path),
    ),
    responses((status = 200, description = "Done.", body = ReviewCase))
)]
pub(super) async fn get_review(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
) -> Result<Response, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    let tag = format!("\"{}\"", version_text(case.version));
    Ok(([(header::ETAG, tag)], Json(case)).into_response())
}

/// Accepts, corrects, rejects, or cuts into several documents.
///
/// If-Match names the version: 428 without, 412 if it changed.
#[utoipa::path(
    post,
    path = "/reviews/{document_id}/decision",
    operation_id = "decideReview",
    params(
        ("document_id" = Uuid, Path),
        ("If-Match" = String, Header),
    ),
    request_body = DecisionBody,
    responses((status = 200, description = "Done.", body = RecordedDecision))
)]
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
    let input = request.into_input()?;
    let request = DecisionRequest { input, why: &why, take_over, effort: None };
    let done = record_review(&state, &visitor, &case, request).await?;
    Ok(Json(done).into_response())
}

/// Undoes the token's own last decision, within `review.undo`.
///
/// Refused if the document has changed since.
#[utoipa::path(
    post,
    path = "/reviews/{document_id}/undo",
    operation_id = "undoDecision",
    params(
        ("document_id" = Uuid, Path),
    ),
    responses((status = 200, description = "Done.", body = RecordedDecision))
)]
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
