//! A document's data in the forms that a next program takes, and its text: as files for a browser to save.

use std::fmt::Display;
use std::str::FromStr;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{find_visible, read_id};
use super::openapi::{CsvSeparatorName, DecimalSignName, ExportFormName};
use super::originals::attachment;
use super::review_desk::load_visible_case;
use super::state::ConsoleState;
use super::transcripts::get_transcript;
use docmill_core::fault::Error;
use docmill_operations::export::{
    CsvOptions, ExportForm, ExportLayout, ExportStyle, exported_document, kind_of, write_export,
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
        ("separator" = inline(Option<CsvSeparatorName>), Query),
        ("decimal" = inline(Option<DecimalSignName>), Query),
        ("bom" = Option<bool>, Query, description = "CSV begins with a byte order mark."),
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
    let csv = csv_options(&wanted)?;
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let document = exported_document(&row, &case)?;
    let kind = kind_of(state.kinds(), &row)?;
    let style = ExportStyle { form, csv, layout: &ExportLayout::of_downloads() };
    let file = write_export(state.database(), kind, &document, style).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(form.media_type())),
        (header::CONTENT_DISPOSITION, attachment(&file.name)),
    ];
    Ok((headers, file.bytes).into_response())
}

/// `/ingestions/{id}/data`: the data as JSON, as a person decided it or else as it was read.
pub(super) async fn get_data(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
) -> Result<Response, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let case = load_visible_case(&state, &visitor, row.id).await?;
    let document = exported_document(&row, &case)?;
    let text = serde_json::to_vec_pretty(&document.data)
        .map_err(|error| Error::internal("data cannot be written").with_source(error))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_DISPOSITION, attachment(&format!("{}.json", row.id))),
    ];
    Ok((headers, text).into_response())
}

/// `/ingestions/{id}/transcript`: the text as `format` says, or the searchable PDF.
pub(super) async fn get_transcript_file(
    state: State<ConsoleState>,
    visitor: Extension<ConsoleVisitor>,
    id: Path<String>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let ending = match wanted.value("format") {
        "pdf" => "pdf",
        "text" => "txt",
        "markdown" => "md",
        _ => "json",
    };
    let name = attachment(&format!("{}.{ending}", id.0));
    let mut answer = get_transcript(state, visitor, id, QueryFields(wanted), headers).await?;
    answer.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    Ok(answer)
}

/// The style of CSV; a choice that is left out is the usual one.
pub(super) fn csv_options(wanted: &FieldValues) -> Result<CsvOptions, ConsoleFailure> {
    Ok(CsvOptions {
        byte_order_mark: choice(wanted, "bom")?,
        separator: choice(wanted, "separator")?,
        decimal: choice(wanted, "decimal")?,
    })
}

fn choice<T: FromStr + Default>(wanted: &FieldValues, name: &str) -> Result<T, ConsoleFailure>
where
    T::Err: Display,
{
    let Some(text) = wanted.get(name) else { return Ok(T::default()) };
    text.parse().map_err(|why| ConsoleFailure::wrong_request(format!("{name}: {why}")))
}
