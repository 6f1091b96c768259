//! A document's data in the forms that a next program takes: CSV and UBL.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::QueryFields;
use super::ingestion::{find_visible, read_id};
use super::openapi::ExportFormName;
use super::originals::attachment;
use super::review_desk::load_visible_case;
use super::state::ConsoleState;
use docmill_operations::export::{
    ExportForm, ExportLayout, exported_document, kind_of, write_export,
};

/// The data of a document as CSV or UBL, as a person decided it or else as it was read. 422 where the
/// form cannot carry it; the problem names the parts that are missing.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/export",
    operation_id = "getExport",
    params(
        ("id" = uuid::Uuid, Path),
        ("form" = inline(ExportFormName), Query),
    ),
    responses((status = 200, description = "Done.", content(
        (String = "text/csv; charset=utf-8"), (String = "application/xml"),
    )))
)]
pub(super) async fn get_export(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let form = wanted.get("form").and_then(ExportForm::from_name);
    let form = form.ok_or_else(|| {
        let names = ExportForm::ALL.map(|(name, _)| name).join(", ");
        ConsoleFailure::wrong_request(format!("form is one of {names}"))
    })?;
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let document = exported_document(&row, &case)?;
    let kind = kind_of(state.kinds(), &row)?;
    let layout = ExportLayout::of_downloads();
    let file = write_export(state.database(), kind, &document, form, &layout).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(form.media_type())),
        (header::CONTENT_DISPOSITION, attachment(&file.name)),
    ];
    Ok((headers, file.bytes).into_response())
}
