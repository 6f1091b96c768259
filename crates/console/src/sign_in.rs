//! Signing in with a token, and out again.
//!
//! The visitor is led back to the page that asked for it. A review that met an expired session is
//! kept as a draft of the one who signs in; nothing is decided by signing in.

use axum::Extension;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields, UnsignedForm};
use super::layout::frame_page;
use super::review_desk::load_visible_case;
use super::review_draft::{keep_draft, typed_text};
use super::session_cookie::{session_cookie, session_id};
use super::state::ConsoleState;
use docmill_core::config::WebRole;

/// Bytes of a review's form that is kept over a sign-in.
const MAX_KEPT_BYTES: usize = 256 << 10;
/// Bytes of the sign-in form with such a form in it, each byte written as three.
pub(super) const MAX_SIGN_IN_BYTES: usize = (3 * MAX_KEPT_BYTES) + (16 << 10);
/// Bytes of an address that is led back to.
const MAX_NEXT_BYTES: usize = 2048;

/// Where a sign-in leads, and what it keeps.
#[derive(Debug, Default)]
struct SignInForm {
    problem: &'static str,
    /// A path of ours; empty: the first page.
    next: String,
    /// The typed values of a review.
    kept: String,
}

/// The form for the token.
pub(super) async fn show_sign_in(
    State(state): State<ConsoleState>,
    visitor: Option<Extension<ConsoleVisitor>>,
    QueryFields(wanted): QueryFields,
) -> Response {
    let next = own_path(wanted.value("next"));
    if visitor.is_some() {
        return Redirect::to(&state.link(next.unwrap_or("/"))).into_response();
    }
    let form = SignInForm { next: next.unwrap_or_default().to_owned(), ..SignInForm::default() };
    sign_in_page(&state, &form).into_response()
}

fn sign_in_page(state: &ConsoleState, form: &SignInForm) -> Html<String> {
    let body = html! {
        @if !form.problem.is_empty() { p.notice.bad role="alert" { (form.problem) } }
        @if !form.kept.is_empty() {
            p.notice role="status" { "Your session has ended. What you typed is kept: sign in, and it is in the form again." }
        }
        form.narrow method="post" action=(state.link("/sign-in")) {
            @if !form.next.is_empty() { input type="hidden" name="next" value=(form.next); }
            @if !form.kept.is_empty() { input type="hidden" name="kept" value=(form.kept); }
            div.field {
                label for="token" { "Token" }
                input id="token" name="token" type="password" autocomplete="current-password"
                    required autofocus;
            }
            button.first { "Sign in" }
        }
    };
    frame_page(state, None, "Sign in", &body)
}

/// The path, if it leads to a page of ours and nowhere else, whatever a browser makes of it.
fn own_path(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?;
    let is_plain = path.len() <= MAX_NEXT_BYTES
        && !rest.starts_with(['/', '\\'])
        && path.chars().all(|sign| sign.is_ascii_graphic() && sign != '\\');
    is_plain.then_some(path)
}

/// The address of the sign-in that leads back to this request.
pub(super) fn sign_in_path(request: &Request) -> String {
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
    match own_path(asked) {
        None | Some("/") => "/sign-in".to_owned(),
        Some(next) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            format!("/sign-in?{}", query.append_pair("next", next).finish())
        }
    }
}

/// The document of a review's address.
fn reviewed_document(path: &str) -> Option<Uuid> {
    path.split('?').next()?.strip_prefix("/reviews/")?.parse().ok()
}

/// Answers a form that met no session: a sign-in that keeps a review's typed values.
pub(super) async fn keep_over_sign_in(state: &ConsoleState, request: Request) -> Response {
    let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str()).to_owned();
    let next = own_path(&asked).filter(|path| reviewed_document(path).is_some());
    let Some(next) = next else { return ConsoleFailure::unknown_visitor().into_response() };
    let Ok(body) = to_bytes(request.into_body(), MAX_KEPT_BYTES).await else {
        return ConsoleFailure::unknown_visitor().into_response();
    };
    let kept = typed_text(&FieldValues::parse(&body));
    let form = SignInForm { problem: "", next: next.to_owned(), kept };
    (StatusCode::UNAUTHORIZED, sign_in_page(state, &form)).into_response()
}

/// Takes the token and gives a session of a new id; the one that the browser had ends.
pub(super) async fn sign_in(
    State(state): State<ConsoleState>,
    headers: HeaderMap,
    UnsignedForm(form): UnsignedForm,
) -> Result<Response, ConsoleFailure> {
    let next = own_path(form.value("next")).unwrap_or_default().to_owned();
    let kept = form.value("kept").to_owned();
    let opened = state.access().open_session(form.get("token").unwrap_or_default()).await?;
    let Some(id) = opened else {
        let refused = state.note_stranger(true);
        if refused.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(refused);
        }
        let page = sign_in_page(&state, &SignInForm { problem: "Unknown token.", next, kept });
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    };
    if let Some(earlier) = session_id(&state, &headers) {
        state.access().close_session(earlier).await?;
    }
    let visitor = match kept.is_empty() {
        true => None,
        false => state.access().visitor_of_session(&id, true).await?,
    };
    if let Some(visitor) = visitor {
        keep_for(&state, &visitor, &next, &FieldValues::parse(kept.as_bytes())).await;
    }
    let cookie = session_cookie(&state, &id);
    let next = if next.is_empty() { "/" } else { &next };
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&state.link(next))).into_response())
}

/// Keeps the typed values of a review that the visitor may decide about.
async fn keep_for(state: &ConsoleState, visitor: &ConsoleVisitor, next: &str, form: &FieldValues) {
    let document = reviewed_document(next).filter(|_| visitor.role >= WebRole::Reviewer);
    let Some(document) = document else { return };
    if let Ok(case) = load_visible_case(state, visitor, document).await {
        keep_draft(state, visitor, &case, form).await;
    }
}

/// Ends the session.
pub(super) async fn sign_out(
    State(state): State<ConsoleState>,
    headers: HeaderMap,
    PostedForm(_): PostedForm,
) -> Result<Response, ConsoleFailure> {
    if let Some(id) = session_id(&state, &headers) {
        state.access().close_session(id).await?;
    }
    let cookie = session_cookie(&state, "");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&state.link("/sign-in"))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_back_to_a_page_of_ours_and_nowhere_else() {
        for (path, is) in [
            ("/reviews?kind=invoice&order=amount", true),
            ("/", true),
            ("//evil.example/", false),
            ("/\\evil.example", false),
            ("/a\\b", false),
            ("https://evil.example/", false),
            ("javascript:alert(1)", false),
            ("/a\r\nset-cookie: x", false),
            ("/ü", false),
            ("", false),
        ] {
            assert_eq!(own_path(path).is_some(), is, "{path:?}");
        }
        let document = Uuid::new_v4();
        assert_eq!(reviewed_document(&format!("/reviews/{document}?kind=x")), Some(document));
        assert_eq!(reviewed_document(&format!("/reviews/{document}/undo")), None);
    }
}
