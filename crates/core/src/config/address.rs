//! Addresses as they may be shown: in `config show`, in errors, in log lines.
//!
//! The one place that decides which part of an address is secret. The input need not be a reachable
//! address.

use serde::Serializer;

/// An address without its secrets: user and password are left out, a query is shown as `?***`. A
/// text that is no address stays as it is, except for the part before an `@` behind a colon.
pub fn strip_credentials(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let host = rest.get(userinfo_end(rest, scheme.is_empty())..).unwrap_or_default();
    match host.split_once('?') {
        Some((place, query)) if !query.is_empty() => format!("{scheme}{place}?***"),
        _ => format!("{scheme}{host}"),
    }
}

/// Where the host begins.
fn userinfo_end(rest: &str, is_bare: bool) -> usize {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    if is_bare && !authority.contains(':') {
        return 0;
    }
    if let Some(at) = authority.rfind('@') {
        // `git@host:path` is a login, not a password.
        let is_login = is_bare && authority.get(..at).is_some_and(|user| !user.contains(':'));
        return if is_login { 0 } else { at + 1 };
    }
    // A password in which `/`, `?` or `#` was not encoded: what seems to be the port is none.
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let is_port =
        |port: &str| port.ends_with(']') || port.bytes().all(|byte| byte.is_ascii_digit());
    match rest.rfind('@') {
        Some(at) if port.is_some_and(|port| !is_port(port)) => at + 1,
        _ => 0,
    }
}

/// For fields with an address: serialized as [`strip_credentials`] shows it.
pub(super) fn serialize_address<S: Serializer>(
    address: &str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&strip_credentials(address))
}

/// The same for a field that may be left out.
pub(super) fn serialize_optional_address<S: Serializer>(
    address: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match address {
        Some(address) => serializer.serialize_some(&strip_credentials(address)),
        None => serializer.serialize_none(),
    }
}

/// Whether `address` is an unencrypted one of another machine: everything sent there, also a key,
/// can be read on the way.
pub(super) fn sends_in_the_clear(address: &str) -> bool {
    address.trim().starts_with("http://") && !is_on_this_machine(address)
}

/// Whether `address`, of http or https, is one of this machine.
pub(super) fn is_on_this_machine(address: &str) -> bool {
    let Some((_, rest)) = address.trim().split_once("://") else { return false };
    let host = rest.get(userinfo_end(rest, false)..).unwrap_or_default();
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_shows_its_password_however_it_is_written() {
        for (address, shown) in [
            ("https://user:SECRET@host/a@b.git", "https://host/a@b.git"),
            ("https://host/a@b.git", "https://host/a@b.git"),
            ("https://host:8443/v1", "https://host:8443/v1"),
            ("https://host/v1?key=SECRET", "https://host/v1?***"),
            ("https://[::1]:4566/a@b", "https://[::1]:4566/a@b"),
            ("http://user:SEC/RET@host:80/x", "http://host:80/x"),
            ("http://user:SEC@RET@host/x", "http://host/x"),
            ("user:SECRET@host:4566", "host:4566"),
            ("ssh://git@host:22/x", "ssh://host:22/x"),
            ("git@host:x/y.git", "git@host:x/y.git"),
            ("", ""),
        ] {
            assert_eq!(strip_credentials(address), shown);
        }
    }

    #[test]
    fn only_local_addresses_may_be_unencrypted() {
        for (address, clear) in [
            ("http://models.example/v1", true),
            ("http://10.0.0.7:8000/v1", true),
            ("http://localhost@evil.example/v1", true),
            ("http://127.0.0.1.evil.example/v1", true),
            ("http://localhost:11434/v1", false),
            ("http://127.0.0.1:8000", false),
            ("http://[::1]:8000/v1", false),
            ("https://models.example/v1", false),
            ("", false),
        ] {
            assert_eq!(sends_in_the_clear(address), clear, "{address}");
        }
    }
}
