//! Handing in objects that are already in the store, and direct uploads to the store.
//!
//! References follow the rule for events of the bucket: `store.allow` names the places and their
//! tenants. An upload goes straight to the store, to an address that is signed for one object of a
//! size for a while. When it is handed in it is read, copied to the documents and deleted, so that
//! a holder of the address can change nothing afterwards. Not promised: that abandoned uploads
//! disappear; docs/guides/web.md names the bucket's rule for that.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::{JsonBody, WholeNumber};
use super::failure::ConsoleFailure;
use super::ingestion::read_id;
use super::openapi::{KindName, PriorityName};
use super::state::ConsoleState;
use super::uploads::{
    self, NamedTerms, RequestName, SubmittedDocument, answer_by_name, describe_submission,
    file_name, fingerprint, read_key, submit_arrived, submit_context,
};
use docmill_core::model::digest::encode_hex;
use docmill_operations::submit;
use docmill_storage::{GetOptions, GetResult, keys};

/// How long an address takes an upload.
const SIGNATURE_LIFETIME: Duration = Duration::from_secs(900);
/// Signs of the owner's digest in keys.
const OWNER_CHARS: usize = 16;

/// An object that stays where it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceRequest {
    /// `s3://bucket/key`, or a key of the store's own bucket.
    object: String,
    #[schema(value_type = Option<KindName>)]
    kind: Option<String>,
    tenant: Option<String>,
    #[schema(value_type = Option<PriorityName>, inline)]
    priority: Option<String>,
}

/// An upload that is to come.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadRequest {
    /// Exact number of bytes.
    #[schema(value_type = u64, minimum = 1, maximum = 9007199254740991u64)]
    size: WholeNumber,
}

/// A signed address that takes one upload.
#[derive(Serialize, ToSchema)]
struct UploadAddress<'a> {
    upload_id: Uuid,
    method: &'static str,
    url: &'a str,
    #[schema(value_type = Object)]
    headers: &'a BTreeMap<String, String>,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

/// Properties of a completed upload.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CompletionRequest {
    name: String,
    #[schema(value_type = Option<KindName>)]
    kind: Option<String>,
    tenant: Option<String>,
    #[schema(value_type = Option<PriorityName>, inline)]
    priority: Option<String>,
}

/// Hands in an object that stays where it is, in a place that `store.allow` names.
#[utoipa::path(
    post,
    path = "/documents/reference",
    operation_id = "submitReference",
    params(
        ("Idempotency-Key" = Option<String>, Header, pattern = "^(\"[!#-~][ !#-~]{0,199}\"|[!#-~][ !#-~]{0,199})$",
            description = "a name of your own for the request, of plain characters"),
    ),
    request_body = ReferenceRequest,
    responses((status = 200, description = "Done.", body = SubmittedDocument))
)]
pub(super) async fn post_reference(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ReferenceRequest>,
) -> Result<Response, ConsoleFailure> {
    let (places, named) = (state.places(), request.object.as_str());
    let (bucket, key) = match named.strip_prefix("s3://") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => (places.bucket.as_str(), named),
    };
    let whose = find_tenant(&state, &visitor, bucket, key)?;
    let terms = NamedTerms {
        kind: request.kind.clone(),
        tenant: request.tenant.clone().or_else(|| whose.clone()),
        priority: request.priority.clone(),
    };
    let options = terms.into_options(&state, &visitor)?;
    if whose.is_some() && options.tenant != whose {
        return Err(ConsoleFailure::forbidden("This place is another tenant's."));
    }
    let asked = json!([bucket, key, options.kind, options.tenant, options.priority]);
    let name = RequestName {
        visitor: &visitor.name,
        key: read_key(&headers)?,
        fingerprint: fingerprint(&asked),
    };
    let (address, stored) = (format!("s3://{bucket}/{key}"), places.object_name(bucket, key));
    answer_by_name(&state, name, async || {
        let context = submit_context(&state);
        let done = Box::pin(submit::submit_object(context, &address, &stored, &options)).await?;
        describe_submission(&done)
    })
    .await
}

/// The tenant of the place. A visitor of one tenant reaches only that tenant's places.
fn find_tenant(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    bucket: &str,
    key: &str,
) -> Result<Option<String>, ConsoleFailure> {
    let refused = ConsoleFailure::forbidden("This place is not in store.allow for you.");
    let strange = key.is_empty() || key.ends_with('/') || key.contains('\0');
    if strange || keys::is_own_artefact(key) {
        return Err(refused);
    }
    match (state.places().find_place(bucket, key), &visitor.tenant) {
        (None, _) => Err(refused),
        (Some(place), Some(own)) if place.tenant != Some(own.as_str()) => Err(refused),
        (Some(place), _) => Ok(place.tenant.map(ToOwned::to_owned)),
    }
}

/// An address in the store that takes one document by PUT, for a quarter of an hour.
#[utoipa::path(
    post,
    path = "/uploads",
    operation_id = "createUpload",
    params(
        ("Idempotency-Key" = Option<String>, Header, pattern = "^(\"[!#-~][ !#-~]{0,199}\"|[!#-~][ !#-~]{0,199})$",
            description = "a name of your own for the request, of plain characters"),
    ),
    request_body = UploadRequest,
    responses((status = 200, description = "Done.", body = UploadAddress))
)]
pub(super) async fn post_upload(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<UploadRequest>,
) -> Result<Response, ConsoleFailure> {
    let size = u64::try_from(request.size.0).unwrap_or_default();
    if size > state.limits().largest {
        return Err(ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    if size == 0 {
        return Err(ConsoleFailure::wrong_request("A document has at least one byte."));
    }
    // The same key names the same upload; its address is signed anew and kept nowhere.
    let owner = owner_of(&visitor);
    let id = match read_key(&headers)? {
        Some(key) => {
            let named = format!("{owner} {size} {key}");
            Uuid::new_v5(&Uuid::NAMESPACE_OID, named.as_bytes())
        }
        None => Uuid::new_v4(),
    };
    let key = keys::upload_key(&owner, id);
    let until = OffsetDateTime::now_utc() + SIGNATURE_LIFETIME;
    let signed = state.store().presign_write(&key, size, SIGNATURE_LIFETIME).await?;
    let Some(signed) = signed else {
        let text = "This store takes no direct uploads: send the document to /documents.";
        return Err(ConsoleFailure::conflict(text));
    };
    let answer = UploadAddress {
        upload_id: id,
        method: "PUT",
        url: &signed.url,
        headers: &signed.headers,
        expires_at: until,
    };
    Ok(Json(answer).into_response())
}

/// Uploads belong to the visitor who created them.
fn owner_of(visitor: &ConsoleVisitor) -> String {
    let owner = format!("{}\n{}", visitor.name, visitor.tenant.as_deref().unwrap_or_default());
    encode_hex(Sha256::digest(owner)).chars().take(OWNER_CHARS).collect()
}

/// Hands in the object sent to that address.
#[utoipa::path(
    post,
    path = "/uploads/{upload_id}/complete",
    operation_id = "completeUpload",
    params(
        ("upload_id" = Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^(\"[!#-~][ !#-~]{0,199}\"|[!#-~][ !#-~]{0,199})$",
            description = "a name of your own for the request, of plain characters"),
    ),
    request_body(content = CompletionRequest),
    responses((status = 200, description = "Done.", body = SubmittedDocument))
)]
pub(super) async fn post_completion(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CompletionRequest>,
) -> Result<Response, ConsoleFailure> {
    let id = read_id(&id)?;
    let name = file_name(&request.name);
    let terms =
        NamedTerms { kind: request.kind, tenant: request.tenant, priority: request.priority };
    let options = terms.into_options(&state, &visitor)?;
    let asked = json!([id, name, options.kind, options.tenant, options.priority]);
    let named = RequestName {
        visitor: &visitor.name,
        key: read_key(&headers)?,
        fingerprint: fingerprint(&asked),
    };
    let key = keys::upload_key(&owner_of(&visitor), id);
    answer_by_name(&state, named, async || {
        let _place = state.upload_place(&visitor).await?;
        let arrived = fetch_upload(&state, &visitor, &key, &name).await?;
        let answer = submit_arrived(&state, &arrived, &options).await?;
        // Last: a repeated request after a crash before this line finds it there.
        if let Err(error) = state.store().delete(&key).await {
            tracing::warn!(error = %error, "an upload that was handed in stays in the store: {error}");
        }
        Ok::<Value, ConsoleFailure>(answer)
    })
    .await
}

async fn fetch_upload(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    key: &str,
    name: &str,
) -> Result<uploads::ArrivedDocument, ConsoleFailure> {
    let what = GetOptions { at_most: state.limits().largest, if_match: None };
    match state.store().get(key, what).await? {
        GetResult::Found(object) => uploads::keep_bytes(state, visitor, object.bytes, name).await,
        GetResult::TooLarge { .. } => {
            Err(ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE))
        }
        GetResult::Missing | GetResult::Changed => Err(ConsoleFailure::missing()),
    }
}
