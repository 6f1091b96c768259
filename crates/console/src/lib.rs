//! `docmill web`: the pages for operators and reviewers, and the interface for programs.
//!
//! Server-rendered, usable without script, and nothing is loaded from elsewhere. Visitors are
//! authenticated before a handler runs; the role that a route needs is declared here, beside the
//! route. Actions use the same operations as the command line.

mod access;
mod answers;
mod api;
mod api_forms;
mod api_reference;
mod audit;
mod case_page;
mod change_api;
mod change_many;
mod chosen_ingestions;
mod companies;
mod connections;
mod dead_letters;
mod document_data;
mod document_history;
mod export_many;
mod exports;
mod failure;
mod fields;
mod findings;
mod fresh;
mod guard;
pub mod health_port;
mod hook_states;
mod hour_chart;
mod ingestion;
mod invoice_page;
mod kind_drafts;
mod kind_pages;
mod layout;
mod list_filters;
mod listing;
mod master_data;
mod openapi;
mod originals;
mod overview;
mod page_sheets;
mod page_view;
mod pauses;
mod people;
mod pictures;
mod proxy_user;
mod quality;
mod queue_choice;
mod references;
mod reject_many;
mod review_check;
mod review_desk;
mod review_draft;
mod review_form;
mod review_inputs;
mod review_lines;
mod review_queue;
mod reviews;
mod saved_view_page;
mod secrets;
mod service_charts;
mod session_cookie;
mod session_store;
mod sign_in;
mod similar_documents;
mod state;
mod transcripts;
mod upload_page;
mod uploads;
mod web_health;
mod web_metrics;
mod webhook_api;
mod webhooks;

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::net::TcpListener;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use state::{ConsoleParts, UploadLimits};

use connections::ConnectionLimits;
use docmill_core::config::WebRole;
use failure::ConsoleFailure;
use openapi::{JsonObject, complete_description, with_role};
use state::{ConsoleState, LIVE_SCRIPT, MARK, PICTURE_SCRIPT, REVIEW_SCRIPT, STYLE};

/// Browsers open several connections each; a large form over a slow line takes its time.
const LIMITS: ConnectionLimits = ConnectionLimits {
    port: "web port",
    most: 256,
    head_time: Duration::from_secs(5),
    connection_time: Duration::from_secs(30),
};
/// Bytes of a form, or of data with all lines of a document.
const MAX_FORM_BYTES: usize = 4 << 20;
/// Bytes of a body by default.
const DEFAULT_BODY_BYTES: usize = 64 << 10;
/// Media type of our scripts.
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";

/// The pages, ready to be served.
pub struct ConsolePages {
    router: Router,
    state: ConsoleState,
}

impl ConsolePages {
    /// Pages over these parts.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(parts: ConsoleParts) -> Result<Self, String> {
        let state = ConsoleState::new(parts)
            .map_err(|error| format!("no random numbers for sessions: {error}"))?;
        Ok(Self { router: build_router(&state), state })
    }

    /// Serves the pages until it is dropped.
    pub async fn serve(self, listener: TcpListener) {
        tokio::select! {
            () = connections::serve_connections(listener, self.router, LIMITS) => {}
            () = web_metrics::refresh_gauges(&self.state) => {}
        }
    }
}

fn build_router(state: &ConsoleState) -> Router {
    let pages = public_pages()
        .merge(pages_of(viewer_pages(), WebRole::Viewer))
        .merge(pages_of(producer_pages(), WebRole::Producer))
        .merge(pages_of(reviewer_pages(), WebRole::Reviewer))
        .merge(pages_of(operator_pages(), WebRole::Operator))
        .merge(pages_of(administrator_pages(), WebRole::Administrator))
        .nest("/api/v1", api_routes().into())
        .fallback(answer_nothing)
        .layer(DefaultBodyLimit::max(DEFAULT_BODY_BYTES))
        .layer(from_fn_with_state(state.clone(), guard::count_waiting))
        .layer(from_fn_with_state(state.clone(), guard::admit_visitor))
        .layer(from_fn_with_state(state.clone(), write_failures))
        .layer(from_fn_with_state(state.clone(), web_metrics::measure_request))
        .with_state(state.clone());
    let base = &state.config().base_path;
    let whole = match base.is_empty() {
        true => pages,
        false => {
            let first = state.link("/overview");
            let to_first = move || async move { Redirect::to(&first) };
            Router::new().route(&format!("{base}/"), get(to_first)).nest(base, pages)
        }
    };
    whole.layer(from_fn(guard::seal_answer))
}

fn pages_of(routes: Router<ConsoleState>, role: WebRole) -> Router<ConsoleState> {
    routes.route_layer(from_fn_with_state(role, guard::require_role))
}

fn public_pages() -> Router<ConsoleState> {
    let kept_form = DefaultBodyLimit::max(sign_in::MAX_SIGN_IN_BYTES);
    Router::new()
        .route("/sign-in", get(sign_in::show_sign_in).post(sign_in::sign_in).layer(kept_form))
        .route("/assets/{name}", get(serve_asset))
        .route("/livez", get(web_health::get_livez))
        .route("/readyz", get(web_health::get_readyz))
}

fn viewer_pages() -> Router<ConsoleState> {
    Router::new()
        .route("/", get(show_first))
        .route("/overview", get(overview::show_overview))
        .route("/dead-letters", get(dead_letters::show_dead_letters))
        .route("/ingestions", get(listing::show_ingestions))
        .route("/ingestions/{id}", get(ingestion::show_ingestion))
        .route("/ingestions/{id}/invoice", get(invoice_page::show_invoice))
        .route("/ingestions/{id}/export", get(exports::get_export))
        .route("/ingestions/{id}/data", get(exports::get_data))
        .route("/ingestions/{id}/transcript", get(exports::get_transcript_file))
        .route("/ingestions/{id}/pages/{number}", get(page_view::show_page))
        .route("/ingestions/{id}/pages/{number}/picture", get(pictures::get_picture))
        .route("/ingestions/{id}/pages/{number}/words", get(page_view::get_words))
        .route("/documents", get(listing::show_search))
        .route("/reviews", get(review_queue::show_reviews))
        .route("/reviews/{id}", get(reviews::show_review))
        .route("/pauses", get(pauses::show_pauses))
        .route("/api-reference", get(api_reference::show_reference))
        .route("/webhooks", get(webhooks::show_webhooks))
        .route("/companies", get(companies::show_companies))
        .route("/kinds", get(kind_pages::show_kinds))
        .route("/kinds/{kind}", get(kind_pages::show_kind))
        .route("/views", post(saved_view_page::post_view))
        .route("/views/remove", post(saved_view_page::post_view_removal))
        .route("/sign-out", post(sign_in::sign_out))
}

fn producer_pages() -> Router<ConsoleState> {
    Router::new()
        .route(
            "/upload",
            get(upload_page::show_upload)
                .post(upload_page::post_upload)
                // Each file is measured as it comes.
                .layer(DefaultBodyLimit::disable()),
        )
        .route("/upload/sample", post(upload_page::post_sample))
}

fn reviewer_pages() -> Router<ConsoleState> {
    let large = DefaultBodyLimit::max(MAX_FORM_BYTES);
    Router::new()
        .route("/reviews/next", post(review_desk::post_next))
        .route(
            "/reviews/reject",
            get(reject_many::show_rejection).post(reject_many::post_rejection),
        )
        .route("/reviews/undo", post(reject_many::post_undo))
        .route("/ingestions/export", get(export_many::show_export).post(export_many::post_export))
        .route("/reviews/ahead", get(review_desk::get_ahead))
        .route("/reviews/{id}", post(reviews::post_review).layer(large))
        .route("/reviews/{id}/check", post(review_check::post_check).layer(large))
        .route("/reviews/{id}/undo", post(reviews::post_undo))
        .route("/ingestions/{id}/original", post(originals::post_original).layer(large))
        .route("/ingestions/{id}/kind", post(originals::post_kind).layer(large))
        .route("/reviews/{id}/renew", post(review_desk::post_renew))
        .route("/reviews/{id}/release", post(review_desk::post_release))
}

fn operator_pages() -> Router<ConsoleState> {
    Router::new()
        // Not for reviewers: a count that grows by a decision says that its document was drawn.
        .route("/quality", get(quality::show_quality))
        .route(
            "/kinds/{kind}/draft",
            get(kind_drafts::show_draft)
                .post(kind_drafts::post_draft)
                .layer(DefaultBodyLimit::max(MAX_FORM_BYTES)),
        )
        .route("/replays/{id}", get(kind_drafts::show_replay))
        .route("/replays/{id}/file", get(kind_drafts::get_file))
        .route("/replays/{id}/shadow", post(kind_drafts::post_shadow))
        .route("/ingestions/change", get(change_many::show_change).post(change_many::post_change))
        .route("/audit", get(audit::show_audit))
        .route("/ingestions/{id}/retry", post(ingestion::post_retry))
        .route("/ingestions/{id}/cancel", post(ingestion::post_cancel))
        .route("/ingestions/{id}/password", post(originals::post_password))
        .route("/dead-letters/redrive", post(dead_letters::post_redrive))
        .route("/pauses", post(pauses::post_pause))
        .route("/pauses/end", post(pauses::post_resume))
        .route("/webhooks/replay", post(webhooks::post_replay))
        .route("/webhooks/test", post(webhooks::post_test))
        .route("/companies", post(companies::post_company))
        .route("/companies/remove", post(companies::post_removal))
}

fn administrator_pages() -> Router<ConsoleState> {
    Router::new()
        .route("/people", get(people::show_people).post(people::post_user))
        .route("/people/rights", post(people::post_rights))
        .route("/people/end", post(people::post_end))
        .route("/people/tokens", post(people::post_token))
        .route("/people/tokens/revoke", post(people::post_revocation))
}

fn api_routes() -> OpenApiRouter<ConsoleState> {
    use WebRole::{Operator, Producer, Reviewer, Viewer};
    let mut documents = with_role(Producer, routes!(uploads::post_document));
    documents.2 = documents.2.layer(DefaultBodyLimit::disable());
    let mut decision = with_role(Reviewer, routes!(api::post_decision));
    decision.2 = decision.2.layer(DefaultBodyLimit::max(MAX_FORM_BYTES));
    let mut companies = with_role(Operator, routes!(companies::put_companies));
    companies.2 = companies.2.layer(DefaultBodyLimit::max(MAX_FORM_BYTES));
    let large = DefaultBodyLimit::max(master_data::MAX_BODY_BYTES);
    let mut suppliers = with_role(Operator, routes!(master_data::put_suppliers));
    suppliers.2 = suppliers.2.layer(large);
    let mut orders = with_role(Operator, routes!(master_data::put_orders));
    orders.2 = orders.2.layer(large);
    let mut replays = with_role(Operator, routes!(kind_drafts::post_replay));
    replays.2 = replays.2.layer(DefaultBodyLimit::max(MAX_FORM_BYTES));
    OpenApiRouter::new()
        .routes(with_role(Viewer, routes!(api::get_overview)))
        .routes(documents)
        .routes(with_role(Producer, routes!(references::post_reference)))
        .routes(with_role(Producer, routes!(references::post_upload)))
        .routes(with_role(Producer, routes!(references::post_completion)))
        .routes(with_role(Viewer, routes!(api::list_ingestions)))
        .routes(with_role(Viewer, routes!(export_many::get_exported)))
        .routes(with_role(Operator, routes!(change_api::post_changes)))
        .routes(with_role(Viewer, routes!(api::get_ingestion)))
        .routes(with_role(Viewer, routes!(api::get_result)))
        .routes(with_role(Viewer, routes!(invoice_page::get_invoice)))
        .routes(with_role(Reviewer, routes!(answers::get_answer)))
        .routes(with_role(Viewer, routes!(exports::get_export)))
        .routes(with_role(Viewer, routes!(transcripts::get_transcript)))
        .routes(with_role(Viewer, routes!(transcripts::get_page)))
        .routes(with_role(Viewer, routes!(pictures::get_picture)))
        .routes(with_role(Viewer, routes!(transcripts::get_chunks)))
        .routes(with_role(Operator, routes!(api::post_retry)))
        .routes(with_role(Operator, routes!(api::post_cancel)))
        .routes(with_role(Viewer, routes!(api::list_reviews)))
        .routes(with_role(Viewer, routes!(api::get_review)))
        .routes(decision)
        .routes(with_role(Reviewer, routes!(reject_many::post_rejections)))
        .routes(with_role(Reviewer, routes!(reject_many::post_undos)))
        .routes(with_role(Reviewer, routes!(api::post_undo)))
        .routes(with_role(Operator, routes!(quality::get_quality)))
        .routes(replays)
        .routes(with_role(Operator, routes!(kind_drafts::get_replay)))
        .routes(with_role(Operator, routes!(kind_drafts::put_shadow)))
        .routes(with_role(Operator, routes!(webhook_api::list_targets)))
        .routes(with_role(Operator, routes!(webhook_api::list_deliveries)))
        .routes(with_role(Operator, routes!(webhook_api::post_replay)))
        .routes(with_role(Operator, routes!(webhook_api::post_enable)))
        .routes(with_role(Operator, routes!(webhook_api::post_test)))
        .routes(with_role(Viewer, routes!(companies::get_companies)))
        .routes(companies)
        .routes(with_role(Viewer, routes!(master_data::get_counts)))
        .routes(suppliers)
        .routes(orders)
        .routes(with_role(Viewer, routes!(get_description)))
}

/// This description.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getDescription",
    responses((status = 200, description = "Done.", body = JsonObject))
)]
async fn get_description(State(state): State<ConsoleState>) -> Response {
    Json(describe_api(&state)).into_response()
}

/// The description of the API as it is served here.
fn describe_api(state: &ConsoleState) -> utoipa::openapi::OpenApi {
    let kinds: Vec<&str> = state.kinds().iter().map(|kind| kind.name.as_str()).collect();
    let api = api_routes().into_openapi();
    complete_description(api, &state.config().base_path, &kinds)
}

/// The queue for reviewers, the overview for operators, or the list for visitors of one tenant.
async fn show_first(
    State(state): State<ConsoleState>,
    axum::Extension(visitor): axum::Extension<access::ConsoleVisitor>,
) -> Redirect {
    let first = match visitor.tenant {
        _ if visitor.role == WebRole::Reviewer => "/reviews",
        None => "/overview",
        Some(_) => "/ingestions",
    };
    Redirect::to(&state.link(first))
}

async fn answer_nothing() -> ConsoleFailure {
    ConsoleFailure::missing()
}

/// Style sheet and script, which may be kept: another version has another name.
async fn serve_asset(State(state): State<ConsoleState>, request: Request) -> Response {
    let (kind, text) = match request.uri().path() {
        path if path == state.style_path() => ("text/css; charset=utf-8", STYLE),
        path if path == state.mark_path() => ("image/svg+xml", MARK),
        path if path == state.review_script_path() => (SCRIPT_TYPE, REVIEW_SCRIPT),
        path if path == state.picture_script_path() => (SCRIPT_TYPE, PICTURE_SCRIPT),
        path if path == state.live_script_path() => (SCRIPT_TYPE, LIVE_SCRIPT),
        _ => return ConsoleFailure::missing().into_response(),
    };
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    let kind = HeaderValue::from_static(kind);
    ([(header::CACHE_CONTROL, kept), (header::CONTENT_TYPE, kind)], text).into_response()
}

/// Writes a failure as a page, or for programs as `application/problem+json`.
async fn write_failures(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let api = guard::is_api(request.uri().path());
    let response = next.run(request).await;
    let status = response.status();
    let is_written = response.extensions().get::<ConsoleFailure>().is_none()
        && response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("text/html")));
    if !(status.is_client_error() || status.is_server_error()) || is_written {
        return response;
    }
    let failure = response.extensions().get::<ConsoleFailure>().cloned();
    let failure = failure.unwrap_or_else(|| ConsoleFailure::from_status(status));
    let mut headers = response.headers().clone();
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_TYPE);
    let mut written = match api {
        true => problem_json(&failure),
        false => layout::failure_page(&state, &failure).into_response(),
    };
    headers.extend(written.headers().clone());
    *written.headers_mut() = headers;
    *written.status_mut() = failure.status;
    written
}

fn problem_json(failure: &ConsoleFailure) -> Response {
    let kind = HeaderValue::from_static("application/problem+json");
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], Json(failure.to_problem())).into_response()
}
