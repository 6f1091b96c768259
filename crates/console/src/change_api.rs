//! One change of many ingestions for programs: of named ones, or of all that match a filter.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::JsonBody;
use super::change_many::read_change;
use super::chosen_ingestions::{IngestionChoice, check_count};
use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use super::listing::read_filter;
use super::openapi::{StatusName, change_schema};
use super::state::ConsoleState;
use docmill_operations::retry::{self, IngestionChange, MAX_TOGETHER};

/// Which ingestions are changed: `ids`, or `filter` and after a first request its `cursor`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IngestionsRequest {
    change: String,
    ids: Vec<Uuid>,
    filter: Option<MatchingRequest>,
    cursor: Option<Uuid>,
    why: String,
}

impl utoipa::PartialSchema for IngestionsRequest {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        change_schema(MAX_TOGETHER)
    }
}

impl ToSchema for IngestionsRequest {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        schemas.push((
            "MatchingRequest".to_owned(),
            <MatchingRequest as utoipa::PartialSchema>::schema(),
        ));
        <MatchingRequest as ToSchema>::schemas(schemas);
    }
}

/// All ingestions of a status that match.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchingRequest {
    #[schema(value_type = StatusName, inline)]
    status: String,
    #[schema(pattern = "\\S")]
    reason: Option<String>,
    #[schema(pattern = "\\S")]
    kind: Option<String>,
    #[schema(pattern = "\\S")]
    tenant: Option<String>,
    /// Registered within, e.g. 2h.
    #[schema(pattern = "^[1-9][0-9]{0,2}(s|m|h|days)$")]
    since: Option<String>,
}

impl MatchingRequest {
    /// The same as the query of a list has it.
    ///
    /// # Errors
    /// A value is empty: the filter would match more than was meant.
    fn to_fields(&self) -> Result<FieldValues, ConsoleFailure> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let named = [
            ("status", Some(&self.status)),
            ("reason", self.reason.as_ref()),
            ("kind", self.kind.as_ref()),
            ("tenant", self.tenant.as_ref()),
            ("since", self.since.as_ref()),
        ];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if value.trim().is_empty() {
                let text = format!("filter.{name} is empty: leave it out");
                return Err(ConsoleFailure::wrong_request(text).about("filter"));
            }
            query.append_pair(name, value);
        }
        Ok(FieldValues::parse(query.finish().as_bytes()))
    }
}

impl IngestionsRequest {
    fn choice(&self, visitor: &ConsoleVisitor) -> Result<IngestionChoice, ConsoleFailure> {
        match (&self.filter, self.ids.as_slice(), self.cursor) {
            (Some(filter), [], after) => {
                let filter = read_filter(visitor, &filter.to_fields()?)?;
                Ok(IngestionChoice::Matching(filter, after))
            }
            (None, ids @ [_, ..], None) => {
                check_count(ids.len())?;
                Ok(IngestionChoice::Ingestions(ids.to_vec()))
            }
            _ => {
                let text = format!("Either ids, 1 to {MAX_TOGETHER}, or a filter, not both.");
                Err(ConsoleFailure::wrong_request(text))
            }
        }
    }
}

/// The changes, and where the next request begins.
#[derive(Serialize, ToSchema)]
struct ChangedIngestions {
    items: Vec<IngestionChange>,
    next_cursor: Option<Uuid>,
}

/// Retries, cancels or reprioritises up to 500 ingestions: named ones, or the newest that match.
///
/// `change` is `retry`, `cancel` or a priority. More match while there is a `next_cursor`.
#[utoipa::path(
    post,
    path = "/ingestions/change",
    operation_id = "changeIngestions",
    request_body = IngestionsRequest,
    responses((status = 200, description = "Done.", body = ChangedIngestions))
)]
pub(super) async fn post_changes(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<IngestionsRequest>,
) -> Result<Response, ConsoleFailure> {
    let change = read_change(&visitor, &request.change)?;
    let choice = request.choice(&visitor)?;
    choice.require_changeable()?;
    let chosen = choice.load(&state, &visitor).await?;
    let (database, queue, by) = (state.database(), state.queue(), visitor.audit_note(&request.why));
    let items = retry::change_ingestions(database, queue, &chosen.ids, change, &by).await?;
    let next = chosen.ids.last().filter(|_| chosen.has_more).map(|id| id.0);
    Ok(Json(ChangedIngestions { items, next_cursor: next }).into_response())
}
