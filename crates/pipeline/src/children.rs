//! Documents found in others: each is stored before the end of its parent is recorded, which adds their
//! rows. A crash in between leaves objects that no row names; the next attempt puts the same ones again.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::artefact::StoreTakesNoWrites;
use crate::context::AttemptContext;
use crate::failpoint::{FailureSeam, guard_call};
use crate::step_error::StepError;
use docmill_core::config::LimitsConfig;
use docmill_core::model::digest::sha256_hex;
use docmill_core::model::{DocumentId, MemberFacts, OutcomeReason};
use docmill_core::work_clock::wait_off_clock;
use docmill_documents::sandbox::OpenDocument;
use docmill_gate::kinds::RuleConsequence;
use docmill_gate::{GateFinding, Verdict};
use docmill_ledger::NewChild;
use docmill_storage::keys;

/// The reason for review of a document to which more is attached than was taken.
const LEFT_OUT: &str = "attachments_left_out";

/// The documents found in another one.
pub(super) struct StoredChildren {
    /// Those that are stored.
    pub children: Vec<NewChild>,
    /// Whether there are more: too many, or too large.
    pub are_left_out: bool,
}

/// Stores the documents found in an open one whose original has this SHA-256 (hex). Where they are too
/// many or too large for the family, one with pages of its own has none.
///
/// # Errors
/// `too_large`: those of a container are; faults of store and ledger; a lost claim.
pub(super) async fn store_children(
    attempt: AttemptContext<'_>,
    document: &OpenDocument,
    sha256: &str,
) -> Result<StoredChildren, StepError> {
    let members = document.members();
    let are_left_out = document.leaves_members_out();
    if members.is_empty() {
        return Ok(StoredChildren { children: Vec::new(), are_left_out });
    }
    match check_family(attempt, members).await {
        Err(StepError::Rejected { .. }) if document.page_count() > 0 => {
            return Ok(StoredChildren { children: Vec::new(), are_left_out: true });
        }
        checked => checked?,
    }
    let mut children = Vec::with_capacity(members.len());
    for (position, member) in (0_u32..).zip(members) {
        attempt.claim.ensure_live().await?;
        let reader = &attempt.services().reader;
        let content = Bytes::from(reader.member_content(document, position).await?);
        let name = member.name.clone();
        let id = DocumentId::of_child(attempt.claim.id, sha256, position);
        let key = keys::document_key(id, name.as_deref().unwrap_or_default());
        let child = NewChild {
            sha256: Some(sha256_hex(&content)),
            size: Some(member.bytes),
            name,
            ..NewChild::at(attempt.claim.id, sha256, position, key)
        };
        put_child(attempt, &child, content).await?;
        children.push(child);
    }
    Ok(StoredChildren { children, are_left_out })
}

/// Adds to a verdict that documents attached to this one were not taken.
pub(super) fn note_left_out(verdict: &mut Verdict) {
    verdict.findings.push(GateFinding {
        rule: LEFT_OUT.to_owned(),
        field: None,
        consequence: RuleConsequence::Flag,
    });
}

/// Puts the bytes under the child's key, as `submit` puts an upload.
async fn put_child(
    attempt: AttemptContext<'_>,
    child: &NewChild,
    content: Bytes,
) -> Result<(), StepError> {
    let metadata = BTreeMap::from([
        ("original-name".to_owned(), child.name.clone().unwrap_or_default()),
        ("size".to_owned(), content.len().to_string()),
        (keys::SUBMITTED_AS.to_owned(), child.document.to_string()),
    ]);
    let store = attempt.context.documents.as_ref();
    let putting = store.put(&child.file_path, content, &metadata);
    let put = wait_off_clock(guard_call(FailureSeam::Child, putting)).await;
    put.map_err(StoreTakesNoWrites::mark)?;
    Ok(())
}

/// Whether the family may grow by these: counted with all that was found so far, at every depth.
async fn check_family(
    attempt: AttemptContext<'_>,
    members: &[MemberFacts],
) -> Result<(), StepError> {
    let LimitsConfig { container_bytes, family_documents, .. } = attempt.config().limits;
    let family = attempt.context.ledger.family_size(attempt.claim.id);
    let family = wait_off_clock(family).await?;
    let found = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let bytes = members.iter().map(|member| member.bytes).fold(family.bytes, u64::saturating_add);
    if family.documents.saturating_add(found) > u64::from(family_documents) {
        let detail = format!(
            "{} documents were found in the one handed in, and {found} in this: \
             limits.family_documents is {family_documents}",
            family.documents
        );
        return Err(StepError::rejected(OutcomeReason::TooLarge, detail));
    }
    if bytes > container_bytes.0 {
        let detail = format!(
            "documents found in the one handed in have {bytes} bytes: limits.container_bytes is {}",
            container_bytes.0
        );
        return Err(StepError::rejected(OutcomeReason::TooLarge, detail));
    }
    Ok(())
}
