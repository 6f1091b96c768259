//! The cookie of a session.

use axum::http::{HeaderMap, header};

use super::state::ConsoleState;

/// Name of the cookie of a session.
const COOKIE: &str = "docmill_session";
/// See [`cookie_name`].
const HOST_COOKIE: &str = "__Host-docmill_session";

/// The session that a browser names.
pub(super) fn session_id<'a>(state: &ConsoleState, headers: &'a HeaderMap) -> Option<&'a str> {
    let own = cookie_name(state);
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == own).map(|(_, id)| id.trim())
}

/// A browser takes a name that begins with `__Host-` from this very host alone and by HTTPS, so that
/// a neighbouring subdomain cannot plant a session (RFC 6265bis, 4.1.3.2). It needs the path `/`.
fn cookie_name(state: &ConsoleState) -> &'static str {
    let config = state.config();
    match config.origin.starts_with("https://") && config.base_path.is_empty() {
        true => HOST_COOKIE,
        false => COOKIE,
    }
}

/// The cookie of a session; of an empty one: that it is over.
pub(super) fn session_cookie(state: &ConsoleState, id: &str) -> String {
    let config = state.config();
    let path = if config.base_path.is_empty() { "/" } else { config.base_path.as_str() };
    let secure = if config.origin.starts_with("https://") { "; Secure" } else { "" };
    let over = if id.is_empty() { "; Max-Age=0" } else { "" };
    let name = cookie_name(state);
    format!("{name}={id}; Path={path}; HttpOnly; SameSite=Strict{secure}{over}")
}
