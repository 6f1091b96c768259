//! Documents handed in by a browser, and how they move.
//!
//! Without script the form sends files and the page is loaded again; with it files are dropped on
//! the page, and the list follows them.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::extract::multipart::{Field, Multipart};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::layout::{age_since, foreign_name, form_secret, frame_with, state_mark};
use super::listing::load_page;
use super::state::ConsoleState;
use super::uploads::{ArrivedDocument, NamedTerms, file_name, keep_bytes, receive, submit_arrived};
use docmill_operations::inspect::IngestionRow;
use docmill_operations::submit::SubmitOptions;

/// Documents that one form hands in.
const MAX_FILES: usize = 100;
/// Ingestions whose way is shown.
const SHOWN_ROWS: u32 = 15;
/// Milliseconds after which the script loads what moves again.
const FOLLOW_MS: u32 = 1_500;
/// Bundled sample documents, as in `samples/`.
const SAMPLES: [(&str, &str, &[u8]); 5] = [
    ("invoice_en.pdf", "An invoice", include_bytes!("../../../samples/invoice_en.pdf")),
    ("rechnung_de.pdf", "A German invoice", include_bytes!("../../../samples/rechnung_de.pdf")),
    ("einvoice_ubl.xml", "An e-invoice", include_bytes!("../../../samples/einvoice_ubl.xml")),
    ("receipt.jpg", "A photographed receipt", include_bytes!("../../../samples/receipt.jpg")),
    ("encrypted.pdf", "An encrypted file", include_bytes!("../../../samples/encrypted.pdf")),
];

/// `/upload`.
pub(super) async fn show_upload(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let count = wanted.get("done").and_then(|count| count.parse::<u32>().ok());
    let notice = html! {
        @if let Some(count) = count { p.notice role="status" { "Handed in: " (count) "." } }
    };
    upload_page(&state, &visitor, &notice).await
}

async fn upload_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    notice: &Markup,
) -> Result<Html<String>, ConsoleFailure> {
    let newest = load_page(state, visitor, &FieldValues::default(), SHOWN_ROWS).await?;
    let body = html! {
        (notice)
        form.drop id="drop" method="post" action=(state.link("/upload")) enctype="multipart/form-data" {
            (form_secret(visitor))
            span {
                label.unseen-label for="kind" { "Kind" }
                select id="kind" name="kind" { option value="" { "Any kind" }
                    @for kind in state.kinds().iter() { option value=(kind.name) { (kind.title) } } }
            }
            label for="files" { "Drop PDF, image or e-invoice files here, or choose them" }
            input id="files" type="file" name="file" multiple required;
            button.first { "Hand in" }
        }
        h2 { "Or try a sample" }
        form.actions method="post" action=(state.link("/upload/sample")) {
            (form_secret(visitor))
            @for (name, words, _) in SAMPLES { button name="sample" value=(name) { (words) } }
        }
        (moving_list(state, &newest.rows))
    };
    let scripts = [state.live_script_path()];
    Ok(frame_with(state, Some(visitor), "Upload", &body, &scripts))
}

/// The newest ingestions; the script loads this part again while one of them moves.
fn moving_list(state: &ConsoleState, rows: &[IngestionRow]) -> Markup {
    let moves = rows.iter().any(|row| row.status == "in-progress");
    html! {
        section id="moving" data-follow=[moves.then_some(FOLLOW_MS)] aria-live="polite" {
            h2 { "Newest documents" }
            @if rows.is_empty() { p { "What is handed in appears here and moves through its stages." } } @else {
                div.wide tabindex="0" { table {
                    thead { tr { th { "Document" } th { "Kind" } th { "Status" } th { "Stage or reason" } th { "Result" } th { "Age" } } }
                    tbody { @for row in rows { tr {
                        td { a href=(state.link(&format!("/ingestions/{}", row.id))) {
                            (foreign_name(row.original_name.as_ref().unwrap_or(&row.file_path))) } }
                        td { (row.kind.as_deref().unwrap_or("–")) }
                        td { (state_mark(&row.status)) }
                        td { (row.reason.as_deref().or(row.stage.as_deref().filter(|_| row.status == "in-progress")).unwrap_or("–")) }
                        td { @if row.needs_human_review {
                            a href=(state.link(&format!("/reviews/{}", row.document_id))) { "Needs review" } }
                            @else if row.status == "completed" { "Done" } @else { "–" } }
                        td { (age_since(row.created_at)) }
                    } } }
                } }
                @if moves { p.hint { "Load the page again for what is new; with script it follows by itself." } }
            }
        }
    }
}

/// `POST /upload`: the files of a form, one after another, each written to disk as it comes.
pub(super) async fn post_upload(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    mut form: Multipart,
) -> Result<Response, ConsoleFailure> {
    let (mut files, mut terms, mut is_own) = (Vec::new(), NamedTerms::default(), false);
    while let Some(field) = form.next_field().await.map_err(cut_off)? {
        match field.name().unwrap_or_default() {
            "form_secret" => is_own = visitor.owns_form(&field.text().await.map_err(cut_off)?),
            "kind" => terms.kind = Some(field.text().await.map_err(cut_off)?),
            // Its secret comes first: nothing of a foreign form is written.
            "file" if is_own && files.len() < MAX_FILES => {
                files.extend(arrive(&state, &visitor, field).await?);
            }
            "file" if is_own => {
                let text = format!("At most {MAX_FILES} files can be handed in at once.");
                return Err(ConsoleFailure::refused(text));
            }
            _ => {}
        }
    }
    if !is_own {
        return Err(ConsoleFailure::foreign_form());
    }
    let options = terms.into_options(&state, &visitor)?;
    hand_in(&state, &visitor, &files, &options).await
}

fn cut_off(_: axum::extract::multipart::MultipartError) -> ConsoleFailure {
    ConsoleFailure::wrong_request("The form did not arrive whole, or a file is too large.")
}

/// One file as it arrives; `None`: the browser sent an empty input.
async fn arrive(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    mut field: Field<'_>,
) -> Result<Option<(String, ArrivedDocument)>, ConsoleFailure> {
    let named = field.file_name().unwrap_or_default().to_owned();
    if named.is_empty() {
        return Ok(None);
    }
    let name = file_name(&named);
    let (sender, receiver) = futures::channel::mpsc::channel(1);
    let body = Body::from_stream(receiver);
    let (sent, arrived) =
        tokio::join!(send_pieces(&mut field, sender), receive(state, visitor, body, &name));
    let arrived = arrived?;
    sent?;
    Ok(Some((name, arrived)))
}

type PieceSender = futures::channel::mpsc::Sender<Result<axum::body::Bytes, std::io::Error>>;

/// Passes a file on piece by piece, until its receiver has refused it.
async fn send_pieces(field: &mut Field<'_>, mut to: PieceSender) -> Result<(), ConsoleFailure> {
    use futures::SinkExt as _;
    while let Some(piece) = field.chunk().await.map_err(cut_off)? {
        if to.send(Ok(piece)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Hands the files in and leads back to the page; those that are refused are named on it.
async fn hand_in(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    files: &[(String, ArrivedDocument)],
    options: &SubmitOptions,
) -> Result<Response, ConsoleFailure> {
    let (mut count, mut refused) = (0_usize, Vec::new());
    for (name, arrived) in files {
        let _place = state.upload_place(visitor).await?;
        match submit_arrived(state, arrived, options).await {
            Ok(_) => count += 1,
            Err(failure) if failure.status.is_client_error() => {
                refused.push((name.as_str(), failure.detail));
            }
            Err(failure) => return Err(failure),
        }
    }
    if refused.is_empty() {
        let path = state.link(&format!("/upload?done={count}"));
        return Ok(Redirect::to(&path).into_response());
    }
    let notice = html! {
        div.notice.bad role="alert" {
            p { "Handed in: " (count) ". Refused: " (refused.len()) "." }
            ul { @for (name, why) in &refused { li { (foreign_name(name)) ": " (why) } } }
        }
    };
    let page = upload_page(state, visitor, &notice).await?;
    Ok((axum::http::StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
}

/// `POST /upload/sample`: hands in one of the bundled samples.
pub(super) async fn post_sample(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let named = form.value("sample");
    let sample = SAMPLES.iter().find(|(name, ..)| *name == named);
    let (name, _, bytes) = sample.ok_or_else(ConsoleFailure::missing)?;
    let options = NamedTerms::default().into_options(&state, &visitor)?;
    let arrived = keep_bytes(&state, &visitor, (*bytes).into(), name).await?;
    hand_in(&state, &visitor, &[((*name).to_owned(), arrived)], &options).await
}
