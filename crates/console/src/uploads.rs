//! Handing documents in: a body is written to a file of its own as it comes, and then handed in as
//! from the command line.
//!
//! A body that is too large is refused before it is read, or at the limit. A slow one ends with its
//! connection, and takes no place: places are for complete ones. The same bytes of the same tenant
//! are one document, however often they come. Not promised: that a name stays as it was sent; it
//! becomes one that any system takes.

use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::QueryFields;
use super::openapi::{BinaryContent, KindName, PriorityName};
use super::state::ConsoleState;
use docmill_core::model::digest::encode_hex;
use docmill_core::model::{IngestionStatus, Priority};
use docmill_operations::submit::{
    self, IdempotentAnswer, Submission, SubmitContext, SubmitOptions, SubmitStatus,
};
use docmill_operations::tenant_shares::TakenShare;

/// Bytes of a file's name.
const MAX_NAME_BYTES: usize = 120;
/// Signs of a key.
const MAX_KEY_BYTES: usize = 200;

/// A document as it arrived, in a folder that goes with this value, and so does the room it takes.
pub(super) struct ArrivedDocument {
    _folder: TempDir,
    _room: TakenShare,
    path: PathBuf,
    /// SHA-256 of the bytes, in hex.
    sha256: String,
}

/// Hands a document in: the body is its bytes.
///
/// The same bytes of a tenant are one document.
#[utoipa::path(
    post,
    path = "/documents",
    operation_id = "submitDocument",
    params(
        ("name" = Option<String>, Query, pattern = "\\S"),
        ("kind" = Option<KindName>, Query),
        ("tenant" = Option<String>, Query, pattern = "\\S"),
        ("priority" = inline(Option<PriorityName>), Query),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^(\"[!#-~][ !#-~]{0,199}\"|[!#-~][ !#-~]{0,199})$",
            description = "a name of your own for the request, of plain characters"),
    ),
    request_body(content = inline(BinaryContent), content_type = "*/*"),
    responses((status = 200, description = "Done.", body = SubmittedDocument))
)]
pub(super) async fn post_document(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ConsoleFailure> {
    let named = NamedTerms {
        kind: asked.text("kind"),
        tenant: asked.text("tenant"),
        priority: asked.text("priority"),
    };
    let options = named.into_options(&state, &visitor)?;
    let key = read_key(&headers)?;
    let name = file_name(asked.get("name").unwrap_or_default());
    let arrived = receive(&state, &visitor, body, &name).await?;
    let terms = json!([arrived.sha256, name, options.kind, options.tenant, options.priority]);
    let named = RequestName { visitor: &visitor.name, key, fingerprint: fingerprint(&terms) };
    answer_by_name(&state, named, async || {
        let _place = state.upload_place(&visitor).await?;
        submit_arrived(&state, &arrived, &options).await
    })
    .await
}

/// Hands in the arrived document.
///
/// # Errors
/// It is refused, or a dependency does not answer.
pub(super) async fn submit_arrived(
    state: &ConsoleState,
    arrived: &ArrivedDocument,
    options: &SubmitOptions,
) -> Result<Value, ConsoleFailure> {
    let context = submit_context(state);
    let done = Box::pin(submit::submit_file(context, &arrived.path, options)).await?;
    describe_submission(&done)
}

/// The destination of documents.
pub(super) fn submit_context(state: &ConsoleState) -> SubmitContext<'_> {
    SubmitContext {
        db: state.database(),
        store: state.store(),
        queue: state.queue(),
        largest: state.limits().largest,
        destination: &state.limits().destination,
    }
}

/// Which request this is, if its sender has named it.
pub(super) struct RequestName<'a> {
    pub(super) visitor: &'a str,
    pub(super) key: Option<&'a str>,
    /// Hash of the request.
    pub(super) fingerprint: String,
}

/// The SHA-256 of a request.
pub(super) fn fingerprint(terms: &Value) -> String {
    encode_hex(Sha256::digest(terms.to_string()))
}

/// Does the work, unless the request of this name was answered before: then with that answer.
pub(super) async fn answer_by_name(
    state: &ConsoleState,
    named: RequestName<'_>,
    work: impl AsyncFnOnce() -> Result<Value, ConsoleFailure>,
) -> Result<Response, ConsoleFailure> {
    let RequestName { visitor, key, fingerprint } = named;
    let database = state.database();
    if let Some(key) = key
        && let Some(known) = submit::find_answer(database, visitor, key).await?
    {
        return answer_again(state, known, &fingerprint);
    }
    let answer = IdempotentAnswer { fingerprint, answer: work().await? };
    if let Some(key) = key {
        submit::keep_answer(database, visitor, key, &answer).await?;
    }
    Ok(answer_once(state, answer.answer))
}

/// A document that was handed in.
#[derive(Serialize, ToSchema)]
pub(super) struct SubmittedDocument {
    document_id: Option<Uuid>,
    ingestion_id: Option<Uuid>,
    #[schema(value_type = String)]
    fate: SubmitStatus,
    #[schema(value_type = Option<String>)]
    status: Option<IngestionStatus>,
    problem: Option<String>,
}

/// The answer about a document that was handed in.
///
/// # Errors
/// It was refused.
pub(super) fn describe_submission(done: &Submission) -> Result<Value, ConsoleFailure> {
    if done.fate == SubmitStatus::Refused {
        return Err(ConsoleFailure::refused(done.problem.clone().unwrap_or_default()));
    }
    let answer = SubmittedDocument {
        document_id: done.document_id.map(|id| id.0),
        ingestion_id: done.ingestion_id.map(|id| id.0),
        fate: done.fate,
        status: done.status,
        problem: done.problem.clone(),
    };
    serde_json::to_value(&answer)
        .map_err(|_| ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR))
}

fn answer_once(state: &ConsoleState, answer: Value) -> Response {
    let id = answer.get("ingestion_id").and_then(Value::as_str).unwrap_or_default();
    let place = HeaderValue::from_str(&state.link(&format!("/api/v1/ingestions/{id}")));
    let mut response = Json(&answer).into_response();
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// The answer of the request that had this key first, if this is the same request.
fn answer_again(
    state: &ConsoleState,
    known: IdempotentAnswer,
    fingerprint: &str,
) -> Result<Response, ConsoleFailure> {
    if known.fingerprint != fingerprint {
        return Err(ConsoleFailure::key_reused());
    }
    let mut response = answer_once(state, known.answer);
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    Ok(response)
}

/// The name that the sender gives the request.
pub(super) fn read_key(headers: &HeaderMap) -> Result<Option<&str>, ConsoleFailure> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    // In quotes or without.
    let key = key
        .to_str()
        .ok()
        .map(|key| key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key));
    let key = key.filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    let key = key.filter(|key| !key.starts_with(' ') && !key.contains(['"', '\t']));
    key.map(Some).ok_or_else(|| {
        ConsoleFailure::wrong_request("Idempotency-Key is 1 to 200 plain characters.")
    })
}

/// Properties of a document besides its content.
#[derive(Debug, Default)]
pub(super) struct NamedTerms {
    pub(super) kind: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) priority: Option<String>,
}

impl NamedTerms {
    /// The same, checked.
    ///
    /// # Errors
    /// There is no such kind or priority, or tenant or priority are not for this visitor.
    pub(super) fn into_options(
        self,
        state: &ConsoleState,
        visitor: &ConsoleVisitor,
    ) -> Result<SubmitOptions, ConsoleFailure> {
        let tenant = match (&visitor.tenant, filled(self.tenant)) {
            (Some(own), Some(named)) if *own != named => {
                return Err(ConsoleFailure::forbidden("Your token is for another tenant."));
            }
            (Some(own), _) => Some(own.clone()),
            (None, named) => named,
        };
        let kind = filled(self.kind);
        if kind.as_deref().is_some_and(|kind| state.kinds().get(kind).is_none()) {
            return Err(ConsoleFailure::wrong_request("There is no kind of this name."));
        }
        let priority = filled(self.priority).as_deref().map(str::parse).transpose();
        let named: Option<Priority> = priority.map_err(ConsoleFailure::wrong_request)?;
        // More urgent priorities come first in their order.
        let highest = visitor.highest_priority;
        if named.is_some_and(|named| named < highest) {
            let text = format!("Your token hands in up to the priority {}.", highest.code());
            return Err(ConsoleFailure::forbidden(text));
        }
        let priority = named.unwrap_or_else(|| highest.max(Priority::default()));
        Ok(SubmitOptions { kind, tenant, priority, ..SubmitOptions::default() })
    }
}

/// A name that any system takes for a file of its own.
pub(super) fn file_name(named: &str) -> String {
    let last = named.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for sign in last.chars().filter(|sign| !sign.is_control()) {
        if name.len() + sign.len_utf8() > MAX_NAME_BYTES {
            break;
        }
        name.push(sign);
    }
    if name.trim_matches(['.', ' ']).is_empty() { "document".to_owned() } else { name }
}

/// Writes an object of the store to a file.
///
/// # Errors
/// It cannot be written.
pub(super) async fn keep_bytes(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    bytes: Bytes,
    name: &str,
) -> Result<ArrivedDocument, ConsoleFailure> {
    receive(state, visitor, Body::from(bytes), name).await
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn write_failed(error: std::io::Error) -> ConsoleFailure {
    tracing::error!(error = %error, "an upload cannot be written to its file: {error}");
    ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Writes the body to a file as it comes. Bytes not sent yet take no room.
///
/// # Errors
/// It is incomplete or too large, or there is no room.
pub(super) async fn receive(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    body: Body,
    name: &str,
) -> Result<ArrivedDocument, ConsoleFailure> {
    let folder = tempfile::tempdir().map_err(write_failed)?;
    let path = folder.path().join(name);
    let mut file = tokio::fs::File::create(&path).await.map_err(write_failed)?;
    let (mut body, mut size, mut hash) = (body.into_data_stream(), 0_u64, Sha256::new());
    let (mut room, largest) = (state.arrival_room(visitor, 0)?, state.limits().largest);
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| ConsoleFailure::wrong_request("The body is incomplete."))?;
        size += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        if size > largest {
            return Err(ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        room.add(state.arrival_room(visitor, piece.len())?);
        hash.update(&piece);
        file.write_all(&piece).await.map_err(write_failed)?;
    }
    file.flush().await.map_err(write_failed)?;
    Ok(ArrivedDocument { _folder: folder, _room: room, path, sha256: encode_hex(hash.finalize()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_sent_is_never_a_way_out_of_its_folder() {
        for (sent, kept) in [
            ("a.pdf", "a.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\a.pdf", "a.pdf"),
            ("..", "document"),
            ("", "document"),
            ("a/", "document"),
            ("a\0b\n.pdf", "ab.pdf"),
        ] {
            assert_eq!(file_name(sent), kept, "{sent:?}");
        }
        assert!(file_name(&"ü".repeat(500)).len() <= MAX_NAME_BYTES);
    }
}
