//! The original, opened again after the reading, since it is not kept in memory. For pages drawn
//! for a model or for people.

use crate::context::AttemptContext;
use crate::fetch;
use crate::step_error::StepError;
use crate::text_budget::TextBudget;
use docmill_core::fault::Error;
use docmill_documents::sandbox::OpenDocument;
use docmill_storage::GetResult;
use docmill_storage::known_content::get_known_content;

/// An original that was opened once more, and the room that its bytes take.
pub(super) struct ReopenedDocument {
    /// The document, in a page process.
    pub(super) document: OpenDocument,
    _text_budget: TextBudget,
}

/// Fetches the original once more, in room that is not waited for: this document's text holds some of
/// it already. `sha256` is that of the bytes that were read.
///
/// # Errors
/// The original cannot be opened again, or was replaced; no room for it; a lost claim.
pub(super) async fn reopen_original(
    attempt: AttemptContext<'_>,
    sha256: &str,
) -> Result<ReopenedDocument, StepError> {
    let AttemptContext { context, claimed, claim, .. } = attempt;
    claim.ensure_live().await?;
    let (documents, services) = (context.documents.as_ref(), attempt.services());
    let path = &claimed.document.file_path;
    let meta = documents.head(path).await?.ok_or_else(fetch::missing_error)?;
    let at_most = services.config.limits.document_bytes.0;
    let mut text_budget = TextBudget::new(&services.budget);
    text_budget.grow(meta.size.min(at_most))?;
    let bytes = match get_known_content(documents, path, sha256, at_most).await? {
        GetResult::Found(object) => object.bytes,
        GetResult::Missing => return Err(fetch::missing_error().into()),
        GetResult::Changed | GetResult::TooLarge { .. } => return Err(replaced_error()),
    };
    let document = attempt.open_document(bytes, false).await?;
    Ok(ReopenedDocument { document, _text_budget: text_budget })
}

fn replaced_error() -> StepError {
    Error::transient("the object was replaced before its pages were drawn").into()
}
