//! Handing documents in: a body is written to a file of its own as it comes, and then handed in as
//! from the command line.
//!
//! What is too large is refused before it is read, or when it turns out to be; what comes too slowly
//! ends with its connection. The same bytes of the same tenant are one document, however often they
//! come. Not promised: that a name is kept as it was sent; it becomes one that any system takes.

use std::path::PathBuf;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::state::ConsoleState;
use crate::ops::submit::{
    self, IdempotentAnswer, Submission, SubmitContext, SubmitOptions, SubmitStatus,
};
use docmill_core::model::digest::encode_hex;

/// Bytes of a file's name.
const LONGEST_NAME: usize = 120;
/// Signs of a key.
const LONGEST_KEY: usize = 200;

/// A document as it arrived, in a folder that goes with this value.
struct ArrivedDocument {
    _folder: TempDir,
    path: PathBuf,
    /// SHA-256 of the bytes, in hex.
    sha256: String,
}

/// `POST /documents`: the body is the document.
pub(super) async fn post_document(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(asked): QueryFields,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ConsoleFailure> {
    let options = read_options(&state, &visitor, &asked)?;
    let key = read_key(&headers)?;
    let _place = state.upload_place().ok_or_else(ConsoleFailure::busy)?;
    let name = file_name(asked.get("name").unwrap_or_default());
    let arrived = receive(body, &name, state.limits().largest).await?;
    let terms = json!([arrived.sha256, name, options.kind, options.tenant, options.priority]);
    let fingerprint = encode_hex(Sha256::digest(terms.to_string()));
    let database = state.database();
    if let Some(key) = key
        && let Some(known) = submit::find_answer(database, &visitor.name, key).await?
    {
        return answer_again(&state, known, &fingerprint);
    }
    let context = SubmitContext {
        db: database,
        store: state.store(),
        queue: state.queue(),
        largest: state.limits().largest,
        destination: &state.limits().destination,
    };
    let done = Box::pin(submit::submit_file(context, &arrived.path, &options)).await?;
    if done.fate == SubmitStatus::Refused {
        return Err(ConsoleFailure::refused(done.problem.unwrap_or_default()));
    }
    let answer = IdempotentAnswer { fingerprint, answer: describe_submission(&done) };
    if let Some(key) = key {
        submit::keep_answer(database, &visitor.name, key, &answer).await?;
    }
    Ok(answer_once(&state, answer.answer))
}

fn describe_submission(done: &Submission) -> Value {
    json!({
        "document_id": done.document_id, "ingestion_id": done.ingestion_id, "fate": done.fate,
        "status": done.status, "problem": done.problem,
    })
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

fn read_key(headers: &HeaderMap) -> Result<Option<&str>, ConsoleFailure> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().map(|key| key.trim_matches('"'));
    let key = key.filter(|key| !key.is_empty() && key.len() <= LONGEST_KEY);
    let wrong = || ConsoleFailure::wrong_request("Idempotency-Key is 1 to 200 plain signs.");
    key.map(Some).ok_or_else(wrong)
}

fn read_options(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    asked: &FieldValues,
) -> Result<SubmitOptions, ConsoleFailure> {
    let tenant = match (&visitor.tenant, asked.text("tenant")) {
        (Some(own), Some(named)) if *own != named => {
            return Err(ConsoleFailure::forbidden("Your token is for another tenant."));
        }
        (Some(own), _) => Some(own.clone()),
        (None, named) => named,
    };
    let kind = asked.text("kind");
    if kind.as_deref().is_some_and(|kind| state.kinds().get(kind).is_none()) {
        return Err(ConsoleFailure::wrong_request("There is no kind of this name."));
    }
    let priority = asked.get("priority").map(str::parse).transpose();
    let priority = priority.map_err(ConsoleFailure::wrong_request)?.unwrap_or_default();
    Ok(SubmitOptions { kind, tenant, priority, ..SubmitOptions::default() })
}

/// A name that any system takes for a file of its own.
fn file_name(named: &str) -> String {
    let last = named.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for sign in last.chars().filter(|sign| !sign.is_control()) {
        if name.len() + sign.len_utf8() > LONGEST_NAME {
            break;
        }
        name.push(sign);
    }
    if name.trim_matches(['.', ' ']).is_empty() { "document".to_owned() } else { name }
}

/// Writes the body down as it comes.
async fn receive(body: Body, name: &str, largest: u64) -> Result<ArrivedDocument, ConsoleFailure> {
    let failed = |error: std::io::Error| {
        tracing::error!(error = %error, "an upload cannot be written down: {error}");
        ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR)
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join(name);
    let mut file = tokio::fs::File::create(&path).await.map_err(failed)?;
    let (mut body, mut size, mut hash) = (body.into_data_stream(), 0_u64, Sha256::new());
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| ConsoleFailure::wrong_request("It did not arrive whole."))?;
        size += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        if size > largest {
            return Err(ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        hash.update(&piece);
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(ArrivedDocument { _folder: folder, path, sha256: encode_hex(hash.finalize()) })
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
        assert!(file_name(&"ü".repeat(500)).len() <= LONGEST_NAME);
    }
}
