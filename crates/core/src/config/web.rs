//! `[web]`: the pages and the interface for programs that `docmill web` serves.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::ProxySignIn;
use super::units::is_plain_name;
use crate::model::Priority;

/// Rights of a signed-in visitor; each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebRole {
    /// Look at ingestions, documents and their data.
    Viewer,
    /// Hand documents in.
    Producer,
    /// Decide about documents that call for a person.
    Reviewer,
    /// Retry, cancel, pause.
    Operator,
    /// Give others access: users and their tokens.
    Administrator,
}

impl WebRole {
    /// All, each with the rights of those before it.
    pub const ALL: [Self; 5] =
        [Self::Viewer, Self::Producer, Self::Reviewer, Self::Operator, Self::Administrator];

    /// The word for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Producer => "producer",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// The role of this word.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }
}

/// A token for signing in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebToken {
    /// Its holder, as named in the audit.
    pub name: String,
    /// SHA-256 of the token, in hex: what `docmill web --new-token` prints.
    pub sha256: String,
    /// Its role.
    pub role: WebRole,
    /// The only tenant whose documents it shows; empty: all, and what has no tenant.
    #[serde(default)]
    pub tenant: String,
    /// The most urgent priority that it may hand documents in with.
    #[serde(default = "most_urgent")]
    pub highest_priority: Priority,
}

fn most_urgent() -> Priority {
    Priority::Critical
}

/// `[web]`: where the pages are, and who may see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    /// Where the pages are served. Without tokens and proxy a loopback address.
    pub address: SocketAddr,
    /// Prefix of every path, e.g. `/docmill`; empty: none.
    pub base_path: String,
    /// How browsers reach the pages through a proxy, e.g. `https://ops.example.com`; empty: as the
    /// `Host` of their requests says.
    pub origin: String,
    /// Tokens that may sign in. None, and no proxy: everyone on this machine may do everything.
    pub tokens: Vec<WebToken>,
    /// Whether users that are kept in Postgres may sign in too (`docmill users`).
    pub users: bool,
    /// A proxy that says who asks.
    pub proxy: ProxySignIn,
    /// Whether pages of originals are drawn for those who look at them.
    pub page_pictures: bool,
    /// Whether `docmill worker` serves the pages too: one process for a small place.
    pub in_worker: bool,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8090)),
            base_path: String::new(),
            origin: String::new(),
            tokens: Vec::new(),
            users: false,
            proxy: ProxySignIn::default(),
            page_pictures: true,
            in_worker: false,
        }
    }
}

impl WebConfig {
    /// Whether signing in is off: everyone on this machine may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty() && !self.users && !self.proxy.is_used()
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.is_open() && !self.address.ip().is_loopback() {
            problems.push(
                "web.address is no loopback address, and there are no web.tokens: anybody could \
                 sign in; add a token (docmill web --new-token), users (web.users) or a proxy that \
                 says who asks (web.proxy), or listen on 127.0.0.1"
                    .to_owned(),
            );
        }
        let signs_in = self.users || !self.tokens.is_empty();
        if signs_in && !self.address.ip().is_loopback() && self.origin.is_empty() {
            problems.push(
                "web.origin is empty, and tokens are taken beyond this machine: without it \
                 cookies travel over plain HTTP too; set it to the address that browsers use, e.g. \
                 https://ops.example.com"
                    .to_owned(),
            );
        }
        self.proxy.collect_problems(problems);
        if !is_base_path(&self.base_path) {
            problems.push(
                "web.base_path must be empty, or begin with / and not end with it, of a-z, A-Z, \
                 0-9, / - _ . ~"
                    .to_owned(),
            );
        }
        if !self.origin.is_empty() && !is_origin(&self.origin) {
            problems.push(
                "web.origin must be https://HOST or http://HOST, with a port if it has one, and \
                 without a path"
                    .to_owned(),
            );
        }
        for (at, token) in self.tokens.iter().enumerate() {
            let is_hex = token.sha256.len() == 64
                && token.sha256.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'));
            if !is_hex {
                problems.push(format!(
                    "web.tokens[{at}].sha256 must be 64 digits of lower-case hex: docmill web \
                     --new-token prints them"
                ));
            }
            if token.name.trim().is_empty() {
                problems.push(format!("web.tokens[{at}].name is empty: the audit needs it"));
            }
            let earlier = self.tokens.iter().take(at);
            if earlier.into_iter().any(|it| it.name == token.name || it.sha256 == token.sha256) {
                problems.push(format!("web.tokens[{at}] has the name or the hash of another"));
            }
        }
    }
}

fn is_base_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return path.is_empty() };
    rest.split('/').all(|part| !matches!(part, "." | "..") && is_plain_name(part, "-_.~"))
}

fn is_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    host.is_some_and(|host| is_plain_name(host, "-.:[]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: &WebConfig) -> Vec<String> {
        let mut problems = Vec::new();
        config.collect_problems(&mut problems);
        problems
    }

    fn token(name: &str, digit: &str) -> WebToken {
        let role = WebRole::Viewer;
        let (name, sha256, tenant) = (name.to_owned(), digit.repeat(64), String::new());
        WebToken { name, sha256, role, tenant, highest_priority: Priority::Critical }
    }

    #[test]
    fn without_a_token_no_other_machine_is_served() {
        let open = WebConfig { address: ([0, 0, 0, 0], 8090).into(), ..WebConfig::default() };
        assert!(problems(&open)[0].contains("there are no web.tokens"), "{:?}", problems(&open));
        let origin = "https://ops.example.com".to_owned();
        let told = WebConfig { tokens: vec![token("ann", "a")], ..open };
        assert!(problems(&told)[0].contains("web.origin is empty"), "{:?}", problems(&told));
        assert_eq!(problems(&WebConfig { origin, ..told.clone() }), Vec::<String>::new());
        let kept = WebConfig { users: true, tokens: Vec::new(), ..told.clone() };
        assert!(!kept.is_open() && problems(&kept)[0].contains("web.origin is empty"));
        let local = WebConfig { address: WebConfig::default().address, ..told };
        assert_eq!(problems(&local), Vec::<String>::new());
        assert_eq!(problems(&WebConfig::default()), Vec::<String>::new());
    }

    #[test]
    fn a_token_may_hand_in_at_any_priority_up_to_its_highest() {
        let row = format!("name = 'a'\nrole = 'producer'\nsha256 = '{}'\n", "a".repeat(64));
        for (more, highest) in
            [("", Priority::Critical), ("highest_priority = 'low'", Priority::Low)]
        {
            let token: WebToken = toml::from_str(&format!("{row}{more}")).unwrap();
            assert_eq!(token.highest_priority, highest);
        }
    }

    #[test]
    fn an_invalid_path_origin_or_token_is_refused() {
        for (path, right) in [
            ("", true),
            ("/docmill", true),
            ("/a/b-c", true),
            ("docmill", false),
            ("/", false),
            ("/a/", false),
            ("/a/../b", false),
            ("/{id}", false),
            ("/a b", false),
        ] {
            assert_eq!(is_base_path(path), right, "{path}");
        }
        for (origin, right) in [
            ("https://ops.example.com", true),
            ("http://10.0.0.1:8090", true),
            ("https://ops.example.com/docmill", false),
            ("ops.example.com", false),
            ("https://", false),
        ] {
            assert_eq!(is_origin(origin), right, "{origin}");
        }
        for tokens in [
            vec![token("", "a")],
            vec![token("ann", "G")],
            vec![token("ann", "a"), token("ann", "b")],
            vec![token("ann", "a"), token("bob", "a")],
        ] {
            assert_eq!(problems(&WebConfig { tokens, ..WebConfig::default() }).len(), 1);
        }
    }
}
