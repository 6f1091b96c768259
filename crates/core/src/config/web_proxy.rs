//! `[web.proxy]`: signing in by the headers of a proxy that has asked an identity provider.
//!
//! A header proves nothing by itself: everyone who reaches the port can write one. So it counts
//! only from configured networks, and there is no default for them. Not promised: that the proxy
//! removes such headers from its clients' requests; that is the proxy's task.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::secret::{self, SecretSource};
use super::units::{SecretString, is_plain_name};
use super::{NetworkRange, WebRole};

/// The header with [`ProxySignIn::secret`].
pub const PROXY_SECRET_HEADER: &str = "x-docmill-proxy-secret";
/// Fewest characters of the secret that the proxy shares.
const MIN_SECRET_CHARS: usize = 20;

/// Headers that carry something else, and that a proxy must not say a name in.
const OTHER_HEADERS: [&str; 9] = [
    PROXY_SECRET_HEADER,
    "authorization",
    "cookie",
    "host",
    "origin",
    "content-length",
    "content-type",
    "accept",
    "via",
];

/// The role of a group's members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyGroup {
    /// Name of the group, as the proxy writes it.
    pub group: String,
    /// Role of its members.
    pub role: WebRole,
    /// The only tenant whose documents they see; empty: all, and what has no tenant.
    #[serde(default)]
    pub tenant: String,
}

/// `[web.proxy]`: a proxy that says who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxySignIn {
    /// The networks that the proxy connects from. Empty: signing in by proxy is off.
    pub networks: Vec<NetworkRange>,
    /// The header with the name of the user; kept in the audit in lower case.
    pub user_header: String,
    /// The header with the names of the user's groups, separated by commas. The same as
    /// `user_header` for a proxy without groups: each user is then a group, by the proxy's name for
    /// the user.
    pub groups_header: String,
    /// Roles of groups; of several the first here counts.
    pub groups: Vec<ProxyGroup>,
    /// A secret that the proxy adds to its requests, in the header [`PROXY_SECRET_HEADER`]. Empty: an
    /// address among `networks` is enough.
    pub secret: SecretString,
    /// File with the secret, read again when it changes.
    pub secret_file: PathBuf,
}

impl Default for ProxySignIn {
    fn default() -> Self {
        Self {
            networks: Vec::new(),
            user_header: "x-forwarded-email".to_owned(),
            groups_header: "x-forwarded-groups".to_owned(),
            groups: Vec::new(),
            secret: SecretString::default(),
            secret_file: PathBuf::new(),
        }
    }
}

impl ProxySignIn {
    /// Whether a proxy says who asks.
    pub fn is_used(&self) -> bool {
        !self.networks.is_empty()
    }

    /// Whether the proxy connects from this address.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(peer))
    }

    /// Whether the proxy has to send a secret.
    pub fn has_secret(&self) -> bool {
        !self.secret.is_empty() || self.secret_source().is_file()
    }

    /// The secret of the proxy.
    pub fn secret_source(&self) -> SecretSource {
        SecretSource::new(&self.secret, &self.secret_file)
    }

    /// The role for a member of these groups: the first row of the settings that names one of them.
    pub fn find_group<'a>(&'a self, of: &[&str]) -> Option<&'a ProxyGroup> {
        self.groups.iter().find(|known| of.contains(&known.group.as_str()))
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if !self.is_used() {
            if !self.groups.is_empty() {
                problems.push(
                    "web.proxy.groups without web.proxy.networks: name the networks that the proxy \
                     connects from"
                        .to_owned(),
                );
            }
            return;
        }
        if self.networks.iter().any(|network| network.is_everything()) {
            problems.push(
                "web.proxy.networks has a network of everybody: whoever reaches the port could say \
                 who he is; name the addresses of the proxy"
                    .to_owned(),
            );
        }
        if self.groups.is_empty() {
            problems.push("web.proxy.groups is empty: nobody could sign in".to_owned());
        }
        secret::check_secret(&self.secret, &self.secret_file, "web.proxy.secret", problems);
        if self.has_secret()
            && let Ok(secret) = self.secret_source().current_secret()
            && secret.reveal().len() < MIN_SECRET_CHARS
        {
            problems.push(format!("web.proxy.secret has fewer than {MIN_SECRET_CHARS} characters"));
        }
        for (key, name) in
            [("user_header", &self.user_header), ("groups_header", &self.groups_header)]
        {
            let is_name = is_plain_name(name, "-") && !name.contains(char::is_uppercase);
            if !is_name || OTHER_HEADERS.contains(&name.as_str()) {
                problems.push(format!(
                    "web.proxy.{key} must be the name of a header in lower case, and none that \
                     carries something else"
                ));
            }
        }
        for (at, group) in self.groups.iter().enumerate() {
            let name = &group.group;
            if name.trim() != name || name.is_empty() || name.contains(',') {
                problems.push(format!(
                    "web.proxy.groups[{at}].group must be a name without commas, and without blanks \
                     around it"
                ));
            }
            if self.groups.iter().take(at).any(|earlier| earlier.group == *name) {
                problems.push(format!("web.proxy.groups[{at}] has the name of another"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, role: WebRole, tenant: &str) -> ProxyGroup {
        ProxyGroup { group: name.to_owned(), role, tenant: tenant.to_owned() }
    }

    fn proxy() -> ProxySignIn {
        ProxySignIn {
            networks: vec!["10.0.3.0/24".parse().unwrap()],
            groups: vec![
                group("operators", WebRole::Operator, ""),
                group("acme", WebRole::Viewer, "acme"),
            ],
            ..ProxySignIn::default()
        }
    }

    #[test]
    fn a_proxy_that_anybody_could_pretend_to_be_is_refused_before_anything_starts() {
        let said = |config: &ProxySignIn| {
            let mut problems = Vec::new();
            config.collect_problems(&mut problems);
            problems
        };
        assert_eq!(said(&ProxySignIn::default()), Vec::<String>::new());
        assert_eq!(said(&proxy()), Vec::<String>::new());
        // A proxy without groups: users are named one by one.
        let alone = ProxySignIn { user_header: "x-forwarded-groups".to_owned(), ..proxy() };
        assert_eq!(said(&alone), Vec::<String>::new());
        let all = |text: &str| vec![text.parse().unwrap()];
        let user = |name: &str| ProxySignIn { user_header: name.to_owned(), ..proxy() };
        for (wrong, text) in [
            (ProxySignIn { networks: all("0.0.0.0/0"), ..proxy() }, "a network of everybody"),
            (ProxySignIn { networks: all("::/0"), ..proxy() }, "a network of everybody"),
            (ProxySignIn { networks: Vec::new(), ..proxy() }, "without web.proxy.networks"),
            (ProxySignIn { groups: Vec::new(), ..proxy() }, "nobody could sign in"),
            (ProxySignIn { secret: "short".to_owned().into(), ..proxy() }, "fewer than 20"),
            (ProxySignIn { secret_file: "/nowhere".into(), ..proxy() }, "cannot be read"),
            (user(PROXY_SECRET_HEADER), "user_header must be"),
            (user(""), "user_header must be"),
            (user("X-User"), "user_header must be"),
            (user("authorization"), "user_header must be"),
            (ProxySignIn { groups: vec![group("a,b", WebRole::Viewer, "")], ..proxy() }, "commas"),
            (
                ProxySignIn {
                    groups: vec![
                        group("a", WebRole::Viewer, ""),
                        group("a", WebRole::Operator, ""),
                    ],
                    ..proxy()
                },
                "the name of another",
            ),
        ] {
            let problems = said(&wrong);
            assert!(problems.len() == 1 && problems[0].contains(text), "{text}: {problems:?}");
        }
    }

    #[test]
    fn of_several_groups_the_first_in_the_settings_counts() {
        let proxy = proxy();
        let role = |of: &[&str]| proxy.find_group(of).map(|group| group.role);
        assert_eq!(role(&["acme", "operators"]), Some(WebRole::Operator));
        assert_eq!(role(&["others", "acme"]), Some(WebRole::Viewer));
        assert_eq!((role(&["Operators"]), role(&[])), (None, None));
        assert!(proxy.trusts("::ffff:10.0.3.9".parse().unwrap()));
        assert!(!proxy.trusts("10.0.4.1".parse().unwrap()));
    }
}
