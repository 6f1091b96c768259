//! The answer to the sender of an e-invoice, as XML.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::QueryFields;
use super::ingestion::{find_visible, read_id};
use super::openapi::AnswerFormName;
use super::originals::attachment;
use super::review_desk::load_visible_case;
use super::state::ConsoleState;
use docmill_operations::answer::{AnswerForm, AnswerRequest, write_answer};

/// The answer to the sender of the e-invoice: a Peppol Invoice Response or a CDAR. `reason`: the code
/// of the reason for a rejection. 409 or 422 without an answer.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/answer",
    operation_id = "getAnswer",
    params(
        ("id" = uuid::Uuid, Path),
        ("form" = inline(AnswerFormName), Query),
        ("reason" = Option<String>, Query, pattern = "\\S"),
    ),
    responses((status = 200, description = "Done.", content((String = "application/xml"))))
)]
pub(super) async fn get_answer(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let form = wanted.get("form").and_then(AnswerForm::from_name);
    let form = form.ok_or_else(|| {
        ConsoleFailure::wrong_request("form is `invoice-response` or `cdar`".to_owned())
    })?;
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let request = AnswerRequest { form, reason_code: wanted.get("reason") };
    let answer = write_answer(state.database(), &row, &case, request).await?;
    let name = format!("answer-{}.xml", answer.invoice_number);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/xml")),
        (header::CONTENT_DISPOSITION, attachment(&name)),
    ];
    Ok((headers, answer.xml).into_response())
}
