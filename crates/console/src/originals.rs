//! Originals: as attachments, read again as another kind, and opened by a password.
//!
//! Each original that is handed out is recorded. It is asked for by POST: another site's link fetches
//! nothing in a reviewer's name. A browser saves it and never shows it on a page of ours.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::Value;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::PostedForm;
use super::ingestion::{find_visible, read_id, redirect_to_change};
use super::state::ConsoleState;
use super::uploads::{file_name, keep_bytes, submit_arrived};
use docmill_core::model::IngestionId;
use docmill_operations::inspect::IngestionRow;
use docmill_operations::retry;
use docmill_operations::submit::SubmitOptions;
use docmill_operations::tenant_shares::TakenShare;
use docmill_storage::GetResult;
use docmill_storage::known_content::get_known_content;

/// Bytes with their share of memory, which is returned when they have been sent.
struct HeldOriginal {
    bytes: Bytes,
    _room: TakenShare,
}

impl AsRef<[u8]> for HeldOriginal {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The original as it was read.
async fn load_original(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    row: &IngestionRow,
) -> Result<Bytes, ConsoleFailure> {
    let gone = "The original is no longer where it was.";
    let Some(sha256) = &row.sha256 else {
        return Err(ConsoleFailure::conflict("The original has not been read yet."));
    };
    let largest = state.limits().largest;
    let known = state.store().head(&row.file_path).await?;
    let size = known.map(|known| known.size).filter(|size| *size <= largest);
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| ConsoleFailure::conflict(gone))?;
    let room = state.transcript_room(visitor, size)?;
    match get_known_content(state.store(), &row.file_path, sha256, largest).await? {
        GetResult::Found(object) => {
            Ok(Bytes::from_owner(HeldOriginal { bytes: object.bytes, _room: room }))
        }
        _ => Err(ConsoleFailure::conflict(gone)),
    }
}

/// `POST /ingestions/{id}/original`.
pub(super) async fn post_original(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(_): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let bytes = load_original(&state, &visitor, &row).await?;
    retry::note_download(state.database(), IngestionId(row.id), &visitor.audit_note("")).await?;
    let disposition = attachment(row.original_name.as_deref().unwrap_or("document"));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, bytes).into_response())
}

/// `POST /ingestions/{id}/kind`: reads the document again as one of another kind, in a new ingestion.
pub(super) async fn post_kind(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let kind = form.text("new_kind").filter(|kind| state.kinds().get(kind).is_some());
    let kind = kind.ok_or_else(|| ConsoleFailure::refused("Choose the kind of the document."))?;
    let bytes = load_original(&state, &visitor, &row).await?;
    let name = file_name(row.original_name.as_deref().unwrap_or_default());
    let arrived = keep_bytes(&state, &visitor, bytes, &name).await?;
    let options = SubmitOptions {
        again: true,
        kind: Some(kind),
        tenant: row.tenant.clone(),
        ..SubmitOptions::default()
    };
    let done = submit_arrived(&state, &arrived, &options).await?;
    let id = done.get("ingestion_id").and_then(Value::as_str).unwrap_or_default();
    Ok(Redirect::to(&state.link(&format!("/ingestions/{id}"))))
}

/// The header under which a browser saves a file by this name (RFC 6266, RFC 5987).
pub(super) fn attachment(name: &str) -> HeaderValue {
    let written: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let text = format!("attachment; filename*=UTF-8''{}", written.replace('+', "%20"));
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// `POST /ingestions/{id}/password`.
pub(super) async fn post_password(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let password = form.raw("password").unwrap_or_default();
    let (db, queue, by) = (state.database(), state.queue(), visitor.audit_note(""));
    let done = retry::retry_with_password(db, queue, IngestionId(row.id), &password, &by).await?;
    let change = done.into_iter().next().ok_or_else(ConsoleFailure::missing)?;
    Ok(redirect_to_change(&state, &change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_attachment_cannot_end_its_header() {
        let header = attachment("a\"\r\nset-cookie: x; ü.pdf");
        let text = header.to_str().unwrap();
        assert!(
            text.starts_with("attachment; filename*=UTF-8''a%22%0D%0Aset-cookie%3A%20x%3B"),
            "{text}"
        );
    }
}
