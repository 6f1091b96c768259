//! Signing in with a token, and out again.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{PostedForm, UnsignedForm};
use super::guard::{session_cookie, session_id};
use super::layout::frame_page;
use super::state::ConsoleState;

/// The form for the token.
pub(super) async fn show_sign_in(
    State(state): State<ConsoleState>,
    visitor: Option<Extension<ConsoleVisitor>>,
) -> Response {
    if visitor.is_some() {
        return Redirect::to(&state.link("/")).into_response();
    }
    sign_in_page(&state, "").into_response()
}

fn sign_in_page(state: &ConsoleState, problem: &str) -> Html<String> {
    let body = html! {
        @if !problem.is_empty() { p.notice.bad role="alert" { (problem) } }
        form method="post" action=(state.link("/sign-in")) {
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

/// Takes the token and gives a session.
pub(super) async fn sign_in(
    State(state): State<ConsoleState>,
    UnsignedForm(form): UnsignedForm,
) -> Result<Response, ConsoleFailure> {
    let opened = state.access().open_session(form.get("token").unwrap_or_default());
    let opened = opened
        .map_err(|_no_random| ConsoleFailure::from_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    let Some(id) = opened else {
        let refused = state.note_stranger(true);
        if refused.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(refused);
        }
        let page = sign_in_page(&state, "Unknown token.");
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    };
    let cookie = session_cookie(&state, &id);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&state.link("/"))).into_response())
}

/// Ends the session.
pub(super) async fn sign_out(
    State(state): State<ConsoleState>,
    headers: HeaderMap,
    PostedForm(_): PostedForm,
) -> Response {
    if let Some(id) = session_id(&state, &headers) {
        state.access().close_session(id);
    }
    let cookie = session_cookie(&state, "");
    ([(header::SET_COOKIE, cookie)], Redirect::to(&state.link("/sign-in"))).into_response()
}
