//! Violations of the rules by a form while it is typed: advice beside the inputs, requested by the
//! page's script. The typed values are kept as the reviewer's draft.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Serialize;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::PostedForm;
use super::findings::explain_reason;
use super::ingestion::read_id;
use super::review_desk::load_visible_case;
use super::review_draft::keep_draft;
use super::review_form::{read_changes, require_values};
use super::state::ConsoleState;
use super::transcripts::work_on_transcript;
use docmill_operations::review;

/// The advice beside the inputs.
#[derive(Debug, Default, Serialize)]
pub(super) struct TypedAdvice {
    /// The typed value that cannot be read.
    problem: Option<String>,
    /// Whether anything differs from the values shown.
    changed: bool,
    /// Violations by field.
    fields: BTreeMap<String, Vec<String>>,
    /// Violations of the document as a whole.
    whole: Vec<String>,
}

/// `POST /reviews/{document}/check`.
pub(super) async fn post_check(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Json<TypedAdvice>, ConsoleFailure> {
    let case = load_visible_case(&state, &visitor, read_id(&id)?).await?;
    keep_draft(&state, &visitor, &case, &form).await;
    let Some(kind) = state.kinds().for_name(case.kind.as_deref()) else {
        return Ok(Json(TypedAdvice::default()));
    };
    let before = review::read_fields(&case).unwrap_or_default();
    let typed = read_changes(kind, &before, &form).and_then(|changes| {
        require_values(kind, &case, &changes)?;
        let data = review::apply_fields(kind, &case, &changes)?;
        Ok((!changes.is_empty(), data))
    });
    let (changed, data) = match typed {
        Ok(typed) => typed,
        Err(failure) if failure.status == StatusCode::UNPROCESSABLE_ENTITY => {
            return Ok(Json(refused_value(failure)));
        }
        Err(failure) => return Err(failure),
    };
    // Without the pages the rules about their text cannot be checked.
    let Some(key) = &case.transcription_file_path else {
        return Ok(Json(TypedAdvice { changed, ..TypedAdvice::default() }));
    };
    let rules = kind.clone();
    let reasons = work_on_transcript(&state, &visitor, key, move |transcript, _| {
        review::check_typed_data(&rules, data, &transcript)
    });
    let reasons = reasons.await?;
    let mut advice = TypedAdvice { changed, ..TypedAdvice::default() };
    for reason in reasons.unwrap_or_default() {
        let finding = explain_reason(Some(kind), &reason);
        for field in &finding.fields {
            let words = advice.fields.entry(field.clone()).or_default();
            if !words.contains(&finding.words) {
                words.push(finding.words.clone());
            }
        }
        if finding.fields.is_empty() {
            advice.whole.push(finding.words);
        }
    }
    Ok(Json(advice))
}

/// The advice about a value that cannot be read: at its field, and for those who do not see it.
fn refused_value(failure: ConsoleFailure) -> TypedAdvice {
    let fields = failure.field.into_iter().map(|field| (field, vec![failure.detail.clone()]));
    let fields = fields.collect();
    TypedAdvice { problem: Some(failure.detail), changed: true, fields, whole: Vec::new() }
}
