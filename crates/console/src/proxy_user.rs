//! Visitors that a proxy has signed in.
//!
//! The headers of `web.proxy` count only if the connection comes from its networks and, where one is
//! set, with its secret; a request with one from elsewhere is an impersonation, and is refused
//! whole. They open pages and not the
//! interface for programs: a browser sends them with any request that another site causes, and only
//! forms carry a secret. Not promised: that the proxy authenticates; that is its own task.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::state::ConsoleState;
use crate::connections::PeerAddress;
use docmill_core::config::PROXY_SECRET_HEADER;

/// Bytes of a user's name.
const MAX_NAME_BYTES: usize = 200;

/// The name of the user in the proxy's header, in lower case; `None` without a proxy or header.
///
/// # Errors
/// A header of the proxy comes from elsewhere, or holds an impossible name.
pub(super) fn read_user(
    state: &ConsoleState,
    request: &Request,
) -> Result<Option<String>, ConsoleFailure> {
    let proxy = &state.config().proxy;
    if !proxy.is_used() {
        return Ok(None);
    }
    let headers = request.headers();
    let said = [&proxy.user_header, &proxy.groups_header];
    if !said.iter().any(|name| headers.contains_key(name.as_str())) {
        return Ok(None);
    }
    let mut secrets = headers.get_all(PROXY_SECRET_HEADER).iter();
    let secret = secrets.next().map_or(&b""[..], HeaderValue::as_bytes);
    let is_proxy =
        !proxy.has_secret() || (secrets.next().is_none() && state.is_proxy_secret(secret));
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
    if !is_proxy || !peer.is_some_and(|peer: IpAddr| proxy.trusts(peer)) {
        return Err(state.note_pretender(peer));
    }
    let mut named = headers.get_all(proxy.user_header.as_str()).iter();
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => read_name(name).map(Some),
        // The proxy wrote one of them; which one is unknown.
        (Some(_), Some(_)) => Err(ConsoleFailure::forbidden("The proxy names several users.")),
    }
}

/// One person has one name in any spelling: four eyes need another person.
fn read_name(name: &HeaderValue) -> Result<String, ConsoleFailure> {
    let text = std::str::from_utf8(name.as_bytes()).ok().map(|text| text.trim().to_lowercase());
    text.filter(|name| {
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
    })
    .ok_or_else(|| ConsoleFailure::forbidden("The proxy's user name is invalid."))
}

/// The visitor with the rights of the user's groups.
///
/// # Errors
/// No group of the user may anything here.
pub(super) fn find_visitor(
    state: &ConsoleState,
    user: &str,
    headers: &HeaderMap,
) -> Result<ConsoleVisitor, ConsoleFailure> {
    let proxy = &state.config().proxy;
    let lines = match proxy.groups_header.parse::<HeaderName>() {
        Ok(name) => headers.get_all(name).iter().filter_map(|line| line.to_str().ok()).collect(),
        Err(_) => Vec::new(),
    };
    let groups: Vec<&str> = match proxy.groups_header == proxy.user_header {
        // A user's name is no list, even if a valid address has commas.
        true => lines.iter().map(|line| line.trim()).collect(),
        false => lines.iter().flat_map(|line| line.split(',')).map(str::trim).collect(),
    };
    let group = proxy.find_group(&groups).ok_or_else(|| {
        ConsoleFailure::forbidden("None of your groups has access (web.proxy.groups).")
    })?;
    Ok(state.access().visitor_of_proxy(user, group))
}
