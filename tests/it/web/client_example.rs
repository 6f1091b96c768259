//! The Rust example of docs/guides/clients.md, compiled and run; a test holds the page against it.
// The example begins here.
use std::time::Duration;

use docmill_api_client::{ApiClient, ApiFailure, DocumentUpload, EndedResult};

/// Hands a document in and waits for what is read from it.
pub(super) async fn read_invoice(
    address: &str,
    token: &str,
    bytes: Vec<u8>,
) -> Result<EndedResult, ApiFailure> {
    let client = ApiClient::new(address, token)?;
    let mut upload = DocumentUpload::new("invoice.pdf", bytes);
    upload.kind = Some("invoice".to_owned());
    // The same request under this name is answered the same for a day: after a crash ask again.
    upload.idempotency_key = Some("mail-4711".to_owned());
    let receipt = client.submit_document(&upload).await?;
    let ended = client.wait_for_end(receipt.ingestion_id, Duration::from_secs(300)).await?;
    client.load_result(ended.id).await
}
