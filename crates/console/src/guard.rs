//! Checks before every page (visitor, origin, rights), and the headers of every answer.
//!
//! The routes require a role, not the handlers, so that none can be forgotten.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::access::ConsoleVisitor;
use super::connections::{ConnectionStanding, StandingOfConnection};
use super::failure::ConsoleFailure;
use super::proxy_user;
use super::session_cookie::session_id;
use super::sign_in::{keep_over_sign_in, sign_in_path};
use super::state::ConsoleState;
use docmill_core::config::WebRole;

/// Bytes of a form, or of data with all lines of a document.
pub(super) const MAX_BODY_BYTES: u64 = 4 << 20;
/// The paths that take documents, each as large as `limits.document_bytes` allows.
const UPLOADS: [&str; 2] = ["/api/v1/documents", "/upload"];
/// The path of the automatic requests of an open page.
const RENEWALS: &str = "/renew";
/// Nothing from elsewhere, no script but our own file, in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
                      img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Headers of every answer.
const HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", POLICY),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("x-robots-tag", "noindex"),
];

/// Adds the headers of every answer, and forbids caching unless the answer allows it.
pub(super) async fn seal_answer(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Paths, beside assets, that are there without a known visitor.
const PUBLIC_PATHS: [&str; 3] = ["/sign-in", "/livez", "/readyz"];

/// Authenticates the request, and leaves a [`ConsoleVisitor`] for the handlers.
pub(super) async fn admit_visitor(
    State(state): State<ConsoleState>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(failure) = check_origin(&state, request.method(), request.headers()) {
        return failure.into_response();
    }
    let path = request.uri().path();
    let largest = match path {
        _ if UPLOADS.contains(&path) => state.limits().largest,
        _ => MAX_BODY_BYTES,
    };
    if announced_bytes(request.headers()).is_some_and(|bytes| bytes > largest) {
        return ConsoleFailure::from_status(StatusCode::PAYLOAD_TOO_LARGE).into_response();
    }
    let is_public = PUBLIC_PATHS.contains(&path) || path.starts_with("/assets/");
    let (api, public) = (is_api(path), is_public);
    let user = match proxy_user::read_user(&state, &request) {
        Ok(user) => user.filter(|_| !api && !public),
        Err(failure) => return failure.into_response(),
    };
    let named = user.map(|user| proxy_user::find_visitor(&state, &user, request.headers()));
    let named = match named.transpose() {
        Ok(named) => named,
        Err(failure) => return failure.into_response(),
    };
    let visitor = match find_visitor(&state, read_credential(&state, &request, named)).await {
        Ok(visitor) => visitor,
        Err(failure) => return failure.into_response(),
    };
    match visitor {
        Some(visitor) => {
            if let Some(standing) = request.extensions().get::<StandingOfConnection>() {
                standing.raise(ConnectionStanding::Visitor);
            }
            drop(request.extensions_mut().insert(visitor));
        }
        None if public => {}
        None if !api && request.method() == Method::GET => {
            return Redirect::to(&state.link(&sign_in_path(&request))).into_response();
        }
        None if !api && request.method() == Method::POST => {
            return keep_over_sign_in(&state, request).await;
        }
        None => {
            let told = request.headers().contains_key(header::AUTHORIZATION);
            return state.note_stranger(told).into_response();
        }
    }
    let empty = find_empty_value(request.uri().query().unwrap_or_default()).filter(|_| api);
    if let Some(name) = empty {
        let text = "A value of the address is empty: leave out what does not matter.";
        return ConsoleFailure::wrong_request(text).about(&name).into_response();
    }
    next.run(request).await
}

/// By what a visitor is known.
enum VisitorCredential {
    /// Known already: of this machine, or named by the proxy.
    Known(ConsoleVisitor),
    /// A bearer token.
    Token(String),
    /// A session, and whether a person made the request.
    Session(String, bool),
    /// By nothing.
    Missing,
}

fn read_credential(
    state: &ConsoleState,
    request: &Request,
    named: Option<ConsoleVisitor>,
) -> VisitorCredential {
    let (path, headers) = (request.uri().path(), request.headers());
    if let Some(known) = state.access().local_visitor().cloned().or(named) {
        return VisitorCredential::Known(known);
    }
    let is_asset = path.starts_with("/assets/");
    let found = match is_api(path) {
        true => bearer_token(headers).map(|token| VisitorCredential::Token(token.to_owned())),
        false => session_id(state, headers)
            .filter(|_| !is_asset)
            .map(|id| VisitorCredential::Session(id.to_owned(), !path.ends_with(RENEWALS))),
    };
    found.unwrap_or(VisitorCredential::Missing)
}

async fn find_visitor(
    state: &ConsoleState,
    credential: VisitorCredential,
) -> Result<Option<ConsoleVisitor>, ConsoleFailure> {
    let access = state.access();
    Ok(match credential {
        VisitorCredential::Known(visitor) => Some(visitor),
        VisitorCredential::Token(token) => access.visitor_with_token(&token).await?,
        VisitorCredential::Session(id, by_hand) => access.visitor_of_session(&id, by_hand).await?,
        VisitorCredential::Missing => None,
    })
}

/// The first name of the query without a value. A page's form sends empty inputs; from a program it
/// is an unset variable, and without the filter the answer would be about everything.
fn find_empty_value(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(_, value)| value.trim().is_empty()).map(|(name, _)| name.into_owned())
}

/// The announced length of the body.
fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether answers below this path are for programs.
pub(super) fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Counts what waits for review before a page whose navigation shows it.
pub(super) async fn count_waiting(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let tenant = request.extensions().get::<ConsoleVisitor>().map(|visitor| visitor.tenant.clone());
    if let Some(tenant) = tenant.filter(|_| shows_navigation(&request)) {
        state.refresh_waiting(tenant.as_deref()).await;
    }
    next.run(request).await
}

/// Whether the answer is a page with counts in its navigation.
fn shows_navigation(request: &Request) -> bool {
    let path = request.uri().path();
    let is_part = path.ends_with("/picture") || path.ends_with("/words");
    request.method() == Method::GET && !is_api(path) && !is_part
}

/// Refuses a query name that the operation does not have: without its filter the answer would be
/// about everything.
pub(super) async fn require_known_names(
    State(names): State<Arc<[String]>>,
    request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let unknown = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| !names.iter().any(|known| known == name));
    match unknown {
        None => next.run(request).await,
        Some(_) if names.is_empty() => {
            let text = "This operation takes no names in the address.";
            ConsoleFailure::wrong_request(text).into_response()
        }
        Some(_) => {
            let text =
                format!("A name in the address is unknown; known are: {}.", names.join(", "));
            ConsoleFailure::wrong_request(text).into_response()
        }
    }
}

/// Refuses visitors below the role of the route.
pub(super) async fn require_role(
    State(least): State<WebRole>,
    request: Request,
    next: Next,
) -> Response {
    match request.extensions().get::<ConsoleVisitor>() {
        Some(visitor) if visitor.role >= least => next.run(request).await,
        Some(_) => {
            ConsoleFailure::forbidden(format!("This is for {}s.", least.code())).into_response()
        }
        None => ConsoleFailure::unknown_visitor().into_response(),
    }
}

/// Refuses requests that another site's page makes a browser send. Where no sign-in is needed, it
/// also refuses requests to this machine under a foreign host name.
fn check_origin(
    state: &ConsoleState,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), ConsoleFailure> {
    let host = header_text(headers, "host").unwrap_or_default();
    let known = &state.config().origin;
    let is_known_host = known.split_once("://").is_some_and(|(_, known)| known == host);
    if state.access().local_visitor().is_some() && !is_known_host && !is_loopback(host) {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let detail = "Ask for 127.0.0.1 or localhost, or set web.origin.".to_owned();
        return Err(ConsoleFailure { status, code: "misdirected", detail, field: None });
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let same = match (header_text(headers, "sec-fetch-site"), header_text(headers, "origin")) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let of_host = origin.split_once("://").is_some_and(|(_, named)| named == host);
            origin == known || (known.is_empty() && of_host)
        }
        // No browser; a form needs its secret all the same.
        (None, None) => !headers.contains_key("origin"),
    };
    if same { Ok(()) } else { Err(ConsoleFailure::forbidden("This was sent by another site.")) }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_value_is_noticed() {
        for (query, is) in [
            ("", false),
            ("status=failed&limit=20", false),
            ("status=", true),
            ("limit=20&since=%20", true),
            ("cursor", true),
        ] {
            assert_eq!(find_empty_value(query).is_some(), is, "{query}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for (host, is) in [
            ("localhost:8090", true),
            ("127.0.0.1", true),
            ("127.0.0.1:8090", true),
            ("[::1]:8090", true),
            ("evil.example", false),
            ("localhost.evil.example:8090", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host), is, "{host}");
        }
    }
}
