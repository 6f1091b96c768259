//! Webhooks for programs: targets, deliveries, replay.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::access::ConsoleVisitor;
use super::api_forms::{ChangeRequest, JsonBody, WholeNumber, read_limit, tagged_json};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::openapi::{DeliveryFilter, replay_schema};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_operations::webhooks::{
    self, DeliveryQuery, DeliveryRow, DeliverySlot, ReplayReport, WebhookTargetState,
};

/// Deliveries of one replay.
const MAX_REPLAYED: usize = 1_000;

/// Deliveries to replay: by number, or all dead ones of a target.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReplayRequest {
    deliveries: Vec<WholeNumber>,
    dead_of: Option<String>,
    why: String,
}

impl utoipa::PartialSchema for ReplayRequest {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        replay_schema(MAX_REPLAYED)
    }
}

impl ToSchema for ReplayRequest {}

/// All targets.
#[derive(Serialize, ToSchema)]
struct WebhookTargets {
    items: Vec<WebhookTargetState>,
}

/// A page of deliveries.
#[derive(Serialize, ToSchema)]
struct DeliveryPage<'a> {
    items: &'a [DeliveryRow],
    next_cursor: Option<String>,
}

/// A target that was enabled.
#[derive(Serialize, ToSchema)]
struct EnabledWebhook {
    enabled: bool,
}

/// A test that was asked for.
#[derive(Serialize, ToSchema)]
struct AskedTest {
    asked: bool,
}

/// Webhook targets with their open and dead deliveries.
#[utoipa::path(
    get,
    path = "/webhooks",
    operation_id = "listWebhooks",
    responses((status = 200, description = "Done.", body = WebhookTargets))
)]
pub(super) async fn list_targets(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let targets = webhooks::list_targets(state.database()).await?;
    tagged_json(&headers, &WebhookTargets { items: targets })
}

/// Open or dead deliveries of a target, oldest first.
#[utoipa::path(
    get,
    path = "/webhooks/{target}/deliveries",
    operation_id = "listDeliveries",
    params(
        ("target" = String, Path, pattern = "^[a-zA-Z0-9._-]{1,64}$"),
        ("state" = inline(Option<DeliveryFilter>), Query),
        ("cursor" = Option<String>, Query, pattern = "^[0-9]{1,16}-[0-9]{1,18}$",
            description = "next_cursor of the page before"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "Done.", body = DeliveryPage))
)]
pub(super) async fn list_deliveries(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(target): Path<String>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let (limit, after) = (read_limit(&wanted)?, read_cursor(&wanted)?);
    let dead = match wanted.get("state") {
        None | Some("open") => false,
        Some("dead") => true,
        Some(_) => return Err(ConsoleFailure::wrong_request("state is open or dead")),
    };
    if !webhooks::list_targets(state.database()).await?.iter().any(|it| it.name == target) {
        return Err(ConsoleFailure::missing());
    }
    let query = DeliveryQuery { target, dead, after };
    let rows = webhooks::list_deliveries(state.database(), &query, limit + 1).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let shown = rows.get(..most).unwrap_or(&rows);
    let next = if shown.len() < rows.len() { shown.last().map(write_cursor) } else { None };
    tagged_json(&headers, &DeliveryPage { items: shown, next_cursor: next })
}

/// Microseconds and number of the last row, which Postgres keeps both whole.
fn write_cursor(row: &DeliveryRow) -> String {
    format!("{}-{}", row.since.unix_timestamp_nanos() / 1000, row.id)
}

fn read_cursor(wanted: &FieldValues) -> Result<Option<DeliverySlot>, ConsoleFailure> {
    let Some(text) = wanted.get("cursor") else { return Ok(None) };
    let place = parse_cursor(text).ok_or_else(|| {
        ConsoleFailure::wrong_request("cursor is the next_cursor of the page before")
    });
    place.map(Some)
}

fn parse_cursor(text: &str) -> Option<DeliverySlot> {
    let (micros, id) = text.split_once('-')?;
    let nanos = i128::from(micros.parse::<i64>().ok()?) * 1000;
    let since = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
    Some(DeliverySlot { since, id: id.parse().ok()? })
}

/// Sends deliveries again: the named ones, or all dead ones of a target.
#[utoipa::path(
    post,
    path = "/webhooks/replay",
    operation_id = "replayDeliveries",
    request_body = ReplayRequest,
    responses((status = 200, description = "Done.", body = ReplayReport))
)]
pub(super) async fn post_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<ReplayRequest>,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let (database, by) = (state.database(), visitor.audit_note(&request.why));
    let deliveries: Vec<i64> = request.deliveries.iter().map(|number| number.0).collect();
    let done = match (&request.dead_of, deliveries.as_slice()) {
        (Some(target), []) => webhooks::replay_dead(database, target, &by).await?,
        (None, ids) if (1..=MAX_REPLAYED).contains(&ids.len()) => {
            webhooks::replay_deliveries(database, ids, &by).await?
        }
        _ => {
            let text = format!("Either deliveries, 1 to {MAX_REPLAYED}, or dead_of, not both.");
            return Err(ConsoleFailure::wrong_request(text));
        }
    };
    Ok(Json(done).into_response())
}

/// Enables a target again that answered 410.
#[utoipa::path(
    post,
    path = "/webhooks/{target}/enable",
    operation_id = "enableWebhook",
    params(
        ("target" = String, Path, pattern = "^[a-zA-Z0-9._-]{1,64}$"),
    ),
    request_body(content = ChangeRequest),
    responses((status = 200, description = "Done.", body = EnabledWebhook))
)]
pub(super) async fn post_enable(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(target): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let by = visitor.audit_note(&request.why);
    let enabled = webhooks::enable_target(state.database(), &target, &by).await?;
    if !enabled {
        let targets = webhooks::list_targets(state.database()).await?;
        return Err(match targets.iter().any(|known| known.name == target) {
            true => ConsoleFailure::conflict("The target is not disabled."),
            false => ConsoleFailure::missing(),
        });
    }
    Ok(Json(EnabledWebhook { enabled }).into_response())
}

/// Asks for a test of a target: a process that delivers to it sends `webhook.test`, and the target's
/// row has the answer.
#[utoipa::path(
    post,
    path = "/webhooks/{target}/test",
    operation_id = "testWebhook",
    params(
        ("target" = String, Path, pattern = "^[a-zA-Z0-9._-]{1,64}$"),
    ),
    request_body(content = ChangeRequest),
    responses((status = 200, description = "Done.", body = AskedTest))
)]
pub(super) async fn post_test(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(target): Path<String>,
    JsonBody(request): JsonBody<ChangeRequest>,
) -> Result<Response, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let by = visitor.audit_note(&request.why);
    match webhooks::ask_test(state.database(), &target, &by).await? {
        true => Ok(Json(AskedTest { asked: true }).into_response()),
        false => Err(ConsoleFailure::missing()),
    }
}
