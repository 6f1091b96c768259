//! `[inbox]`: mailboxes and folders from which `docmill inbox` takes documents.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secret::{SecretSource, check_secret};
use super::units::{SecretString, is_plain_name};
use crate::model::Priority;

/// The protocol of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxProtocol {
    /// A mailbox on an IMAP server.
    #[default]
    Imap,
    /// A mailbox of Microsoft 365, through Microsoft Graph.
    Graph,
    /// A folder of this machine.
    Folder,
}

/// How a mail is marked that was handed in, or that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxMark {
    /// It is moved to another folder of the mailbox.
    #[default]
    Move,
    /// It counts as read; one that failed is flagged too. Mails that people read are not taken.
    Seen,
    /// It gets an IMAP keyword.
    Keyword,
}

/// Encryption of a connection to an IMAP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImapSecurity {
    /// From the first byte, usually on port 993.
    #[default]
    Tls,
    /// After `STARTTLS`, usually on port 143.
    Starttls,
    /// None: on this machine only.
    None,
}

/// How docmill signs in to an IMAP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImapAuth {
    /// With user and password.
    #[default]
    Password,
    /// With a token of Microsoft Entra ID (XOAUTH2).
    Entra,
}

/// A mailbox or a folder, and the terms of the documents in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InboxSourceConfig {
    /// Its name, in log lines and in the label `inbox` of its documents.
    pub name: String,
    /// Its protocol.
    pub source: InboxProtocol,
    /// Tenant of its documents; empty: none.
    pub tenant: String,
    /// Kind of its documents; empty: by their content.
    pub kind: String,
    /// Priority of their ingestions.
    pub priority: Priority,
    /// Host of the IMAP server.
    pub host: String,
    /// Its port; 0: 993, or 143 with `STARTTLS` or without encryption.
    pub port: u16,
    /// Encryption of the connection.
    pub tls: ImapSecurity,
    /// How docmill signs in there.
    pub auth: ImapAuth,
    /// The login of the IMAP server; for Graph the address or id of the mailbox's user.
    pub user: String,
    /// Password of the login.
    pub password: SecretString,
    /// File with the password, read again when it changes.
    pub password_file: PathBuf,
    /// Directory (tenant) of Entra ID; empty: the identity of the platform is used.
    pub directory_id: String,
    /// Application in that directory.
    pub client_id: String,
    /// Secret of the application.
    pub client_secret: SecretString,
    /// File with the secret, read again when it changes.
    pub client_secret_file: PathBuf,
    /// Another token server than Entra's of the public cloud.
    pub authority: String,
    /// Another address of Graph than that of the public cloud.
    pub endpoint: String,
    /// Folder of the mailbox that is watched.
    pub mailbox: String,
    /// How a mail is marked.
    pub mark: InboxMark,
    /// Keyword or folder of documents that were handed in; empty: `docmill`, in a folder `done`.
    pub done: String,
    /// Keyword or folder of those that failed; empty: `docmill-failed`, in a folder `failed`.
    pub failed: String,
    /// The folder of this machine.
    pub path: PathBuf,
}

impl Default for InboxSourceConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            source: InboxProtocol::default(),
            tenant: String::new(),
            kind: String::new(),
            priority: Priority::default(),
            host: String::new(),
            port: 0,
            tls: ImapSecurity::default(),
            auth: ImapAuth::default(),
            user: String::new(),
            password: SecretString::default(),
            password_file: PathBuf::new(),
            directory_id: String::new(),
            client_id: String::new(),
            client_secret: SecretString::default(),
            client_secret_file: PathBuf::new(),
            authority: String::new(),
            endpoint: String::new(),
            mailbox: "INBOX".to_owned(),
            mark: InboxMark::default(),
            done: String::new(),
            failed: String::new(),
            path: PathBuf::new(),
        }
    }
}

impl InboxSourceConfig {
    /// The current password.
    pub fn password_source(&self) -> SecretSource {
        SecretSource::new(&self.password, &self.password_file)
    }

    /// The current secret of the application.
    pub fn client_secret_source(&self) -> SecretSource {
        SecretSource::new(&self.client_secret, &self.client_secret_file)
    }

    /// The port, or the usual one.
    pub fn effective_port(&self) -> u16 {
        match (self.port, self.tls) {
            (0, ImapSecurity::Tls) => 993,
            (0, _) => 143,
            (port, _) => port,
        }
    }

    /// Keyword or folder of documents that were handed in.
    pub fn done_name(&self) -> &str {
        match (self.done.as_str(), self.source) {
            ("", InboxProtocol::Folder) => "done",
            ("", _) => "docmill",
            (named, _) => named,
        }
    }

    /// Keyword or folder of documents that failed.
    pub fn failed_name(&self) -> &str {
        match (self.failed.as_str(), self.source) {
            ("", InboxProtocol::Folder) => "failed",
            ("", _) => "docmill-failed",
            (named, _) => named,
        }
    }

    fn has_password(&self) -> bool {
        !self.password.is_empty() || !self.password_file.as_os_str().is_empty()
    }

    fn has_client_secret(&self) -> bool {
        !self.client_secret.is_empty() || !self.client_secret_file.as_os_str().is_empty()
    }

    fn collect_problems(&self, key: &str, problems: &mut Vec<String>) {
        let mut found = SourceProblems { key, problems };
        let long = self.name.len() > 64 || !is_plain_name(&self.name, "-_.");
        found.add_if(long, ".name must be 1 to 64 of a-z, A-Z, 0-9, - _ .");
        let control = [&self.user, &self.mailbox, &self.done, &self.failed];
        let control = control.iter().any(|text| text.chars().any(char::is_control));
        found.add_if(control, ": user, mailbox, done and failed have no control characters");
        found.add_if(self.done_name() == self.failed_name(), ": done and failed must differ");
        match self.source {
            InboxProtocol::Imap => self.collect_imap(&mut found),
            InboxProtocol::Graph => {
                found.add_if(self.user.is_empty(), ".user is required: the mailbox's address");
                let keyword = self.mark == InboxMark::Keyword;
                found.add_if(keyword, ".mark is move or seen: Graph has no IMAP keywords");
                self.collect_entra(&mut found);
            }
            InboxProtocol::Folder => {
                found.add_if(
                    self.path.as_os_str().is_empty(),
                    ".path is required: the watched folder",
                );
                found.add_if(
                    self.mark != InboxMark::Move,
                    ".mark is move: files have no other mark",
                );
                let nested = [self.done_name(), self.failed_name()];
                let nested = nested.iter().any(|name| name.contains('/') || name.starts_with('.'));
                found.add_if(nested, ": done and failed are plain names of folders in path");
            }
        }
        check_secret(&self.password, &self.password_file, &format!("{key}.password"), problems);
        let secret_key = format!("{key}.client_secret");
        check_secret(&self.client_secret, &self.client_secret_file, &secret_key, problems);
    }

    fn collect_imap(&self, found: &mut SourceProblems<'_>) {
        found.add_if(self.host.is_empty(), ".host is required: the IMAP server");
        found.add_if(self.user.is_empty(), ".user is required: the login");
        found.add_if(self.mailbox.is_empty(), ".mailbox is required");
        let open = self.tls == ImapSecurity::None && !is_this_machine(&self.host);
        found.add_if(open, ".tls is none, which only a server on this machine may have");
        let names = [self.done_name(), self.failed_name()];
        let odd = names.iter().any(|name| !is_plain_name(name, "-_.$"));
        let odd = odd && self.mark == InboxMark::Keyword;
        found.add_if(odd, ": done and failed are keywords of a-z, A-Z, 0-9, - _ . $");
        match self.auth {
            ImapAuth::Password => {
                found.add_if(!self.has_password(), " has no password or password_file")
            }
            ImapAuth::Entra => self.collect_entra(found),
        }
    }

    fn collect_entra(&self, found: &mut SourceProblems<'_>) {
        let named = [!self.directory_id.is_empty(), !self.client_id.is_empty()];
        let parts = named.iter().filter(|named| **named).count();
        let parts = parts + usize::from(self.has_client_secret());
        let text = " needs directory_id, client_id and client_secret or client_secret_file, or \
                    none of them for the identity of the platform";
        found.add_if(parts != 0 && parts != 3, text);
        let addresses = [&self.authority, &self.endpoint];
        let odd = addresses.iter().any(|url| !url.is_empty() && !is_safe_address(url));
        found.add_if(
            odd,
            ": authority and endpoint begin with https://, on this machine with http://",
        );
    }
}

/// The problems of one source.
struct SourceProblems<'a> {
    key: &'a str,
    problems: &'a mut Vec<String>,
}

impl SourceProblems<'_> {
    /// Notes a problem that was found; `text` follows the source's key.
    fn add_if(&mut self, found: bool, text: &str) {
        if found {
            self.problems.push(format!("{}{text}", self.key));
        }
    }
}

/// Whether a host is this machine.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn is_safe_address(url: &str) -> bool {
    let host = url.strip_prefix("http://").map(|rest| {
        let authority = rest.split('/').next().unwrap_or_default();
        authority.rsplit_once(':').map_or(authority, |(host, _port)| host)
    });
    url.starts_with("https://") || host.is_some_and(is_this_machine)
}

/// `[inbox]`: sources and their pace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InboxConfig {
    /// The sources.
    pub sources: Vec<InboxSourceConfig>,
    /// How often each is asked for what is new; an IMAP server with IDLE says it sooner.
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
    /// How long one command or request may take, its answer included.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
}

impl Default for InboxConfig {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            poll: Duration::from_secs(60),
            timeout: Duration::from_secs(60),
        }
    }
}

/// Servers end a connection that is idle for half an hour.
const MAX_POLL: Duration = Duration::from_secs(25 * 60);
/// Longest time of one command.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

impl InboxConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.poll < Duration::from_millis(10) || self.poll > MAX_POLL {
            problems.push("inbox.poll must be 10ms to 25m".to_owned());
        }
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            problems.push("inbox.timeout must be more than 0 and at most 10m".to_owned());
        }
        let mut names = HashSet::new();
        for (at, source) in self.sources.iter().enumerate() {
            let key = format!("inbox.sources[{at}]");
            source.collect_problems(&key, problems);
            if !names.insert(&source.name) {
                problems.push(format!("{key} has the name of another"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let source: InboxSourceConfig = toml::from_str(text).unwrap();
        let mut problems = Vec::new();
        InboxConfig { sources: vec![source], ..InboxConfig::default() }
            .collect_problems(&mut problems);
        problems
    }

    #[test]
    fn a_source_that_cannot_work_is_refused_before_anything_connects() {
        const IMAP: &str = "name='a'\nhost='mail.example.com'\nuser='u'\npassword='SECRETMARK'";
        const GRAPH: &str = "name='a'\nsource='graph'\nuser='u@example.com'";
        const FOLDER: &str = "name='a'\nsource='folder'\npath='/in'";
        for right in [
            IMAP.to_owned(),
            format!("{IMAP}\nmark='keyword'"),
            IMAP.replace("mail.example.com", "127.0.0.1") + "\ntls='none'",
            GRAPH.to_owned(),
            format!("{GRAPH}\ndirectory_id='d'\nclient_id='c'\nclient_secret='SECRETMARK'"),
            format!("{GRAPH}\nendpoint='http://127.0.0.1:1/v1.0'"),
            FOLDER.to_owned(),
        ] {
            assert_eq!(problems(&right), Vec::<String>::new(), "{right}");
        }
        for (wrong, said) in [
            (IMAP.replace("'a'", "'a b'"), "name must be"),
            (IMAP.replace("mail.example.com", ""), "host is required"),
            (IMAP.replace("password", "client_secret"), "no password"),
            (format!("{IMAP}\ntls='none'"), "on this machine"),
            (format!("{IMAP}\nauth='entra'\ndirectory_id='d'"), "needs directory_id"),
            (format!("{IMAP}\nmailbox=\"a\\r\\nb\""), "control characters"),
            (format!("{IMAP}\nmark='keyword'\ndone='a b'"), "are keywords"),
            (format!("{IMAP}\ndone='x'\nfailed='x'"), "must differ"),
            (format!("{GRAPH}\nmark='keyword'"), "mark is move or seen"),
            (format!("{GRAPH}\nendpoint='http://example.com'"), "begin with https://"),
            (format!("{GRAPH}\nendpoint='http://127.0.0.1.example.com'"), "begin with https://"),
            (format!("{FOLDER}\ndone='../x'"), "plain names"),
            (format!("{FOLDER}\nmark='seen'"), "mark is move"),
            (FOLDER.replace("/in", ""), "path is required"),
        ] {
            let found = problems(&wrong);
            assert!(found.len() == 1 && found[0].contains(said), "{said}: {found:?}");
            assert!(!found[0].contains("SECRETMARK"), "{found:?}");
        }
    }
}
