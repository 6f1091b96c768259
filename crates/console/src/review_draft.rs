//! Typed values of a review that were not decided about: kept for their reviewer until the decision.
//!
//! A deployment, an expired session or a document set aside loses nothing that was typed. Not
//! promised: values typed less than a second before a page without script is left.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::access::ConsoleVisitor;
use super::fields::FieldValues;
use super::review_form::read_changes;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::review::{self, ReviewCase, ReviewDraft};

/// Names of hidden form fields.
const UNTYPED: [&str; 3] = ["form_secret", "page", "decision"];

/// The version that the form was made for.
pub(super) fn read_version(form: &FieldValues) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(form.get("version")?, &Rfc3339).ok()
}

/// The typed values of a form, as a browser sends a form.
pub(super) fn typed_text(form: &FieldValues) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(form.pairs().filter(|(name, _)| !UNTYPED.contains(name)));
    text.finish()
}

/// Whether a form differs from the document shown.
fn is_changed(state: &ConsoleState, case: &ReviewCase, form: &FieldValues) -> bool {
    let data = review::read_fields(case).unwrap_or_default();
    let kind = state.kinds().for_name(case.kind.as_deref());
    // A value that cannot be read was typed.
    let differs = kind.is_some_and(|kind| {
        read_changes(kind, &data, form).map_or(true, |changes| !changes.is_empty())
    });
    differs || form.get("why").is_some()
}

/// Saves the typed values of a form, or deletes the draft if they equal the document's. A failure
/// is logged: the form itself is still with its reviewer.
pub(super) async fn keep_draft(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
    form: &FieldValues,
) {
    let Some(version) = read_version(form) else { return };
    let (db, document, who) = (state.database(), case.document_id, visitor.audit_name());
    let kept = match version == case.version && !is_changed(state, case, form) {
        true => review::discard_draft(db, document, &who).await,
        false => {
            let saved = review::save_draft(db, document, &who, version, &typed_text(form)).await;
            saved.map(drop)
        }
    };
    if let Err(error) = kept {
        tracing::warn!(error = %error, "a review's draft could not be saved: {error}");
    }
}

/// The visitor's draft about a document that calls for review.
pub(super) async fn find_own_draft(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    case: &ReviewCase,
) -> Option<ReviewDraft> {
    if visitor.role < WebRole::Reviewer || !case.needs_human_review {
        return None;
    }
    let found = review::find_draft(state.database(), case.document_id, &visitor.audit_name()).await;
    found.unwrap_or_else(|error| {
        tracing::warn!(error = %error, "a review's draft could not be loaded: {error}");
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_holds_what_was_typed_and_no_secret() {
        let form = "form_secret=s&page=p&version=2026-11-28T10%3A00%3A00Z&field.total=1&\
                    decision=skip&why=a+b";
        let form = FieldValues::parse(form.as_bytes());
        assert_eq!(typed_text(&form), "version=2026-11-28T10%3A00%3A00Z&field.total=1&why=a+b");
        assert!(read_version(&form).is_some());
    }
}
