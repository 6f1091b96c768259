//! One page of an ingestion: the picture, the lines that were read beside it, and the values that
//! were found there.

use axum::extract::{Path, State};
use axum::response::Html;
use axum::{Extension, Json};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

use super::access::ConsoleVisitor;
use super::document_data::{DataView, label_of_path};
use super::failure::ConsoleFailure;
use super::ingestion::{find_visible, read_id};
use super::layout::{fact, frame_with};
use super::page_sheets::{FieldPlaces, PageSheet, PicturedPages, mark_shape};
use super::state::ConsoleState;
use super::transcripts::load_known_page;
use docmill_core::model::{PageDefectKind, PageSource, PageText, TextLine, value_at};
use docmill_operations::inspect::IngestionRow;

/// Lines of a page that are shown and marked; a page of print has some sixty.
const MAX_LINES: usize = 1000;

/// `/ingestions/{id}/pages/{number}`: a page beside its lines and the values taken from it.
pub(super) async fn show_page(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path((id, number)): Path<(String, String)>,
) -> Result<Html<String>, ConsoleFailure> {
    let number: u32 = number.parse().map_err(|_| ConsoleFailure::missing())?;
    let story = find_visible(&state, &visitor, read_id(&id)?).await?;
    let row = &story.ingestion;
    let key = row.transcription_file_path.as_deref();
    let known = load_known_page(&state, &visitor, key, number).await?;
    let page = known.page;
    let places = FieldPlaces::read(story.grounded.clone());
    let sheets = vec![PageSheet::new(&page, String::new())];
    let pages = PicturedPages::new(&state, Some(row.id), sheets, places);
    let name = row.original_name.as_deref().unwrap_or(&row.file_path);
    let title = format!("Page {number} of {} · {name}", known.count);
    let pages_path = state.link(&format!("/ingestions/{}/pages", row.id));
    let body = html! {
        nav aria-label="Pages of the document" { p.actions {
            a href=(state.link(&format!("/ingestions/{}", row.id))) { "The ingestion" }
            @if number > 1 { a rel="prev" href={ (pages_path) "/" (number - 1) } { "Previous page" } }
            @if number < known.count { a rel="next" href={ (pages_path) "/" (number + 1) } { "Next page" } }
        } }
        (page_facts(&page))
        div.desk {
            div.sheets tabindex="0" role="region" aria-label="Picture of the page" {
                (pages.marked_picture(number, &page_marks(&pages, &page))) }
            section tabindex="0" aria-labelledby="read-here" {
                (values_read(&state, row, &pages, number))
                h2 id="read-here" { "Lines" }
                @if page.lines.is_empty() { p { "No text was found on this page." } }
                ol.lines { @for (at, line) in page.lines.iter().take(MAX_LINES).enumerate() {
                    li { (line_link(at, line)) }
                } }
                @if page.lines.len() > MAX_LINES {
                    p { "The first " (MAX_LINES) " of " (page.lines.len()) " lines." }
                }
            }
        }
    };
    Ok(frame_with(&state, Some(&visitor), &title, &body, &[state.picture_script_path()]))
}

/// The words of a page for the script of a review: what is clicked fills a field.
#[derive(Serialize)]
pub(super) struct PageWords {
    width: f32,
    height: f32,
    /// Lines in reading order.
    lines: Vec<Vec<PlacedWord>>,
}

/// Text, left, top, width and height of a word; a list in JSON.
#[derive(Serialize)]
struct PlacedWord(String, f32, f32, f32, f32);

/// `/ingestions/{id}/pages/{number}/words`.
pub(super) async fn get_words(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path((id, number)): Path<(String, String)>,
) -> Result<Json<PageWords>, ConsoleFailure> {
    let number: u32 = number.parse().map_err(|_| ConsoleFailure::missing())?;
    let row = find_visible(&state, &visitor, read_id(&id)?).await?.ingestion;
    let key = row.transcription_file_path.as_deref();
    let page = load_known_page(&state, &visitor, key, number).await?.page;
    let lines = page.lines.iter().take(MAX_LINES).map(|line| {
        line.words
            .iter()
            .map(|word| {
                let area = word.bounding_box;
                PlacedWord(word.text.to_string(), area.x, area.y, area.w, area.h)
            })
            .collect()
    });
    Ok(Json(PageWords { width: page.width, height: page.height, lines: lines.collect() }))
}

fn page_facts(page: &PageText) -> Markup {
    let defects: Vec<String> =
        page.defects.iter().map(|defect| words_of_defect(defect.kind)).collect();
    let provider = page.provider.as_ref().map(|provider| provider.name.as_str());
    let source = match page.source {
        PageSource::Native => "text in the file",
        PageSource::Ocr => "its picture",
    };
    html! {
        dl.facts {
            (fact("Read from", Some(source)))
            (fact("Read by", provider))
            (fact("Quality", Some(&format!("{:.2}", page.quality))))
            (fact("Defects", Some(&defects.join(", "))))
            (fact("Languages", Some(&page.languages.join(", "))))
            (fact("Repaired before it was read", page.repaired.then_some("yes, and shown so")))
        }
    }
}

/// `text_too_small` as people write it.
fn words_of_defect(kind: PageDefectKind) -> String {
    let code = serde_json::to_value(kind).ok();
    code.as_ref().and_then(Value::as_str).unwrap_or_default().replace('_', " ")
}

/// Values lie over lines, so that both are seen.
fn page_marks(pages: &PicturedPages, page: &PageText) -> Markup {
    html! {
        @for (at, line) in page.lines.iter().take(MAX_LINES).enumerate() {
            (mark_shape(line.bounding_box(), Some(&format!("line-{at}")), "mark line"))
        }
        @for (_, mark, area) in pages.marked_values(page.number) {
            (mark_shape(area, Some(&mark), "mark"))
        }
    }
}

fn line_link(at: usize, line: &TextLine) -> Markup {
    let unsure = line.words.iter().any(|word| word.unwitnessed);
    html! {
        a href={ "#line-" (at) } data-mark={ "line-" (at) } { bdi { (line.text()) } }
        @if unsure { span.hint { " one model's word" } }
    }
}

/// The values that were read here, in words.
fn values_read(
    state: &ConsoleState,
    row: &IngestionRow,
    pages: &PicturedPages,
    number: u32,
) -> Markup {
    let view = DataView::of_kind(state.kinds().for_name(row.kind.as_deref()).map(|kind| &**kind));
    let data = row.structured_data.as_ref().and_then(Value::as_object);
    let mut values = pages.marked_values(number).peekable();
    html! {
        @if values.peek().is_some() {
            h2 { "Values found here" }
            ul.lines { @for (field, mark, _) in values {
                li { a href={ "#" (mark) } data-mark=(mark) { (label_of_path(field)) }
                    @if let Some(value) = data.and_then(|data| value_at(data, field)) {
                        ": " (view.value_at(field, value)) } }
            } }
        }
    }
}
