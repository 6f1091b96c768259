//! An invoice by the terms of EN 16931, in the reader's language: as a page and as JSON.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, Response};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::api_forms::tagged_json;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, QueryFields};
use super::ingestion::{find_visible, read_id};
use super::layout::{foreign_name, frame_page};
use super::openapi::TermLanguageName;
use super::state::ConsoleState;
use docmill_core::model::IngestionId;
use docmill_operations::inspect::{IngestionRow, load_einvoice_facts};
use docmill_operations::invoice_view::{InvoiceView, TermLanguage, TermTable, TermValue};

/// `/ingestions/{id}/invoice`: `lang` chooses another language than the browser's.
pub(super) async fn show_invoice(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Html<String>, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let view = view_of(&state, &row, &wanted, &headers).await?;
    let path = state.link(&format!("/ingestions/{}", row.id));
    let title = row.original_name.as_deref().unwrap_or(&row.file_path).to_owned();
    let body = html! {
        nav aria-label="Languages" { p.actions {
            a href=(path) { "The ingestion" }
            @for language in TermLanguage::ALL { @if language != view.language {
                a href={ (path) "/invoice?lang=" (language.code()) } hreflang=(language.code()) { (language.code()) }
            } }
        } }
        div lang=(view.language.code()) {
            dl.facts { @for value in &view.values { div {
                dt { (term_label(value)) } dd { (foreign_name(&value.value)) }
            } } }
            @for table in &view.tables { (term_table(table)) }
        }
    };
    Ok(frame_page(&state, Some(&visitor), &title, &body))
}

/// The data of an invoice by the terms of EN 16931. `lang`: `en`, `de` or `fr`, else as
/// `Accept-Language` says.
#[utoipa::path(
    get,
    path = "/ingestions/{id}/invoice",
    operation_id = "getInvoice",
    params(
        ("id" = uuid::Uuid, Path),
        ("lang" = inline(Option<TermLanguageName>), Query),
    ),
    responses((status = 200, description = "Done.", body = InvoiceView))
)]
pub(super) async fn get_invoice(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let view = view_of(&state, &row, &wanted, &headers).await?;
    tagged_json(&headers, &view)
}

/// The view of an ingestion's data and of the files in its XML, in the language that the request names.
async fn view_of(
    state: &ConsoleState,
    row: &IngestionRow,
    wanted: &FieldValues,
    headers: &HeaderMap,
) -> Result<InvoiceView, ConsoleFailure> {
    let language = match wanted.get("lang") {
        Some(code) => TermLanguage::from_code(code).ok_or_else(|| {
            ConsoleFailure::wrong_request("lang is `en`, `de` or `fr`".to_owned())
        })?,
        None => {
            let accepted = headers.get(header::ACCEPT_LANGUAGE);
            TermLanguage::from_accepted(
                accepted.and_then(|it| it.to_str().ok()).unwrap_or_default(),
            )
        }
    };
    let data = row.structured_data.as_ref().and_then(|data| data.as_object());
    let data = data.ok_or_else(|| ConsoleFailure::conflict("The ingestion has no data."))?;
    let facts = load_einvoice_facts(state.database(), IngestionId(row.id)).await?;
    let mut data = data.clone();
    if let Some(files) = facts.reference.and_then(|it| it.get("embedded_files").cloned()) {
        data.insert("embedded_files".to_owned(), files);
    }
    Ok(InvoiceView::of_data(&data, language))
}

fn term_label(value: &TermValue) -> Markup {
    html! { (value.label) @if !value.term.is_empty() { " " span.hint { (value.term) } } }
}

fn term_table(table: &TermTable) -> Markup {
    html! {
        h2 { (table.label) @if !table.term.is_empty() { " " span.hint { (table.term) } } }
        div.wide tabindex="0" { table {
            thead { tr { @for column in &table.columns { th { (term_label(column)) } } } }
            tbody { @for row in &table.rows { tr {
                @for cell in row { td { (foreign_name(cell)) } }
            } } }
        } }
    }
}
