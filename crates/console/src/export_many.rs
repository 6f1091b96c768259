//! Data of many documents in one file: of the rows that were selected in a list, or of all that match its
//! filter.
//!
//! Asked for by POST and recorded with the ingestions, as an original is. A file has at most
//! [`MAX_TOGETHER`](retry::MAX_TOGETHER) documents; the page leads on to the next.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::tagged_json;
use super::chosen_ingestions::{
    ChosenIngestions, IngestionChoice, back_to_list, choice_words, hidden_choice,
};
use super::exports::csv_options;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::layout::{form_secret, frame_page};
use super::listing::{read_cursor, read_filter};
use super::openapi::{BulkExportFormName, CsvSeparatorName, DecimalSignName, KindName, StatusName};
use super::originals::attachment;
use super::state::ConsoleState;
use docmill_core::model::IngestionId;
use docmill_operations::bulk_export::{BulkExportForm, MAX_EXPORT_BYTES, collect_documents};
use docmill_operations::export::ExportedDocument;
use docmill_operations::retry;

/// The cursor of the next page of CSV.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("next-cursor");

/// `/ingestions/export`: counts what is meant, and asks for the form of the file.
pub(super) async fn show_export(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let choice = IngestionChoice::read(&visitor, &wanted)?;
    let chosen = choice.load(&state, &visitor).await?;
    let goes_on = matches!(choice, IngestionChoice::Matching(..)) && chosen.has_more;
    let next = chosen.ids.last().filter(|_| goes_on);
    let next = next.map(|last| {
        state.link(&format!("/ingestions/export?{}", wanted.with("cursor", &last.to_string())))
    });
    let body = html! {
        @if chosen.ids.is_empty() { p { "No ingestion matches any more." } }
        @else { (export_form(&state, &visitor, &wanted, &chosen)) }
        @if let Some(href) = next { p { a rel="next" href=(href) { "Go on with older ones" } } }
        (back_to_list(&state, &visitor, &wanted))
    };
    Ok(frame_page(&state, Some(&visitor), "Export data", &body))
}

fn export_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    chosen: &ChosenIngestions,
) -> Markup {
    html! {
        p { (choice_words(visitor, wanted, chosen))
            @if chosen.has_more { " The first " (chosen.ids.len()) " are in this file." } }
        form method="post" action=(state.link("/ingestions/export")) {
            (form_secret(visitor))
            (hidden_choice(visitor, wanted, false))
            div.field { label for="form" { "Form" }
                select id="form" name="form" {
                    @for (name, title, _) in BulkExportForm::ALL { option value=(name) { (title) } } } }
            div.field { label for="of-kind" { "Documents of the kind" }
                select id="of-kind" name="of_kind" { option value="" { "any (JSON only)" }
                    @for kind in state.kinds().iter() {
                        option value=(kind.name) selected[wanted.get("kind") == Some(kind.name.as_str())] { (kind.title) } } } }
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            button.first { "Export" }
        }
    }
}

/// A file of many documents.
struct BulkExportFile {
    form: BulkExportForm,
    bytes: Vec<u8>,
    exported: Vec<IngestionId>,
}

/// `POST /ingestions/export`.
pub(super) async fn post_export(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let chosen = IngestionChoice::read(&visitor, &form)?.load(&state, &visitor).await?;
    let kind = form.get("of_kind");
    let file = write_many(&state, &visitor, &chosen.ids, kind, &form).await?;
    if file.exported.is_empty() {
        return Err(ConsoleFailure::refused("None of them carries data of this kind."));
    }
    let by = visitor.audit_note(form.get("why").unwrap_or_default());
    let (media_type, ending) = file.form.file_type();
    let name = form.value("form");
    retry::note_export(state.database(), &file.exported, name, &by).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CONTENT_DISPOSITION, attachment(&format!("documents{ending}"))),
    ];
    Ok((headers, file.bytes).into_response())
}

/// The file of these ingestions' documents in the form that is asked for.
async fn write_many(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    ids: &[IngestionId],
    kind: Option<&str>,
    wanted: &FieldValues,
) -> Result<BulkExportFile, ConsoleFailure> {
    let form = read_form(wanted)?;
    let csv = csv_options(wanted)?;
    let fields = match kind {
        Some(name) => Some(
            state
                .kinds()
                .get(name)
                .ok_or_else(|| ConsoleFailure::refused("There is no such kind.").about("kind"))?,
        ),
        None => None,
    };
    let _room = state.transcript_room(visitor, MAX_EXPORT_BYTES)?;
    let documents = collect_documents(state.database(), ids, kind).await?;
    let bytes = form.write(&documents, fields.map(|kind| &**kind), csv)?;
    let exported = documents.iter().map(|one| IngestionId(one.ingestion_id)).collect();
    Ok(BulkExportFile { form, bytes, exported })
}

fn read_form(wanted: &FieldValues) -> Result<BulkExportForm, ConsoleFailure> {
    let form = wanted.get("form").and_then(BulkExportForm::from_name);
    form.ok_or_else(|| {
        let names = BulkExportForm::ALL.map(|(name, ..)| name).join(", ");
        ConsoleFailure::wrong_request(format!("form is one of {names}")).about("form")
    })
}

/// A page of documents with their data.
#[derive(Serialize, ToSchema)]
struct ExportedPage {
    items: Vec<ExportedDocument>,
    next_cursor: Option<Uuid>,
}

/// The data of up to 500 documents of a kind, newest first, as people decided it or else as it was read.
///
/// Of CSV the cursor of the next page is in the header `next-cursor`. 422 if a page is larger than 32 MiB:
/// narrow the filter.
#[utoipa::path(
    get,
    path = "/ingestions/export",
    operation_id = "exportIngestions",
    params(
        ("form" = inline(BulkExportFormName), Query),
        ("kind" = KindName, Query),
        ("status" = inline(Option<StatusName>), Query),
        ("reason" = Option<String>, Query, pattern = "\\S"),
        ("tenant" = Option<String>, Query, pattern = "\\S"),
        ("since" = Option<String>, Query, pattern = "^[1-9][0-9]{0,2}(s|m|h|days)$",
            description = "registered within, e.g. 2h"),
        ("separator" = inline(Option<CsvSeparatorName>), Query),
        ("decimal" = inline(Option<DecimalSignName>), Query),
        ("bom" = Option<bool>, Query, description = "CSV begins with a byte order mark."),
        ("cursor" = Option<Uuid>, Query, description = "next_cursor of the page before"),
    ),
    responses((status = 200, description = "Done.", content(
        (ExportedPage = "application/json"), (String = "text/csv; charset=utf-8"),
    )))
)]
pub(super) async fn get_exported(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let form = read_form(&wanted)?;
    // These options do not apply to JSON, and are validated all the same.
    csv_options(&wanted)?;
    let kind = wanted.get("kind").filter(|kind| state.kinds().get(kind).is_some());
    let kind = kind
        .ok_or_else(|| ConsoleFailure::wrong_request("kind is the name of a kind").about("kind"))?;
    let filter = read_filter(&visitor, &wanted)?;
    let choice = IngestionChoice::Matching(filter, read_cursor(&wanted)?);
    let chosen = choice.load(&state, &visitor).await?;
    let next = chosen.ids.last().filter(|_| chosen.has_more).map(|id| id.0);
    if form == BulkExportForm::Json {
        let _room = state.transcript_room(&visitor, MAX_EXPORT_BYTES)?;
        let items = collect_documents(state.database(), &chosen.ids, Some(kind)).await?;
        return tagged_json(&headers, &ExportedPage { items, next_cursor: next });
    }
    let file = write_many(&state, &visitor, &chosen.ids, Some(kind), &wanted).await?;
    let (media_type, _) = form.file_type();
    let mut answer = ([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))], file.bytes)
        .into_response();
    if let Some(next) = next.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        answer.headers_mut().insert(NEXT_CURSOR, next);
    }
    Ok(answer)
}
