//! An IMAP server (RFC 3501) over TCP or TLS, with STARTTLS, IDLE, MOVE, UIDPLUS, AUTH=PLAIN and
//! XOAUTH2 on request.
//!
//! Its contract is the standard's: UIDs ascend, literals are sent with their length, `BODY.PEEK[]` sets
//! no flag, a command that it does not offer is `BAD`, a folder that is missing `NO [TRYCREATE]`, a
//! keyword that it does not keep `NO`. Faults are set for the next commands that contain a text.

mod session;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::served::{Calls, lock};

/// Name and password of the one login; a token is the same as the password.
pub const LOGIN: (&str, &str) = ("user@example.com", "se\"cret\\1");

/// The extensions that a server offers.
#[derive(Debug, Clone, Copy)]
pub struct Extensions {
    /// IDLE (RFC 2177).
    pub idle: bool,
    /// MOVE (RFC 6851).
    pub moves: bool,
    /// UIDPLUS (RFC 4315).
    pub uid_plus: bool,
    /// Keywords of clients are kept.
    pub keywords: bool,
    /// AUTH=PLAIN; without it only LOGIN.
    pub plain: bool,
}

impl Extensions {
    /// All of them.
    pub const ALL: Self =
        Self { idle: true, moves: true, uid_plus: true, keywords: true, plain: true };
    /// None of them: RFC 3501 alone.
    pub const NONE: Self =
        Self { idle: false, moves: false, uid_plus: false, keywords: false, plain: false };
}

/// The encryption of a server.
#[derive(Clone)]
pub enum Encryption {
    /// None.
    None,
    /// From the first byte.
    Tls(TlsAcceptor),
    /// After STARTTLS; nobody signs in before.
    Starttls(TlsAcceptor),
}

/// TLS with this certificate and key (PEM).
///
/// # Errors
/// They are no such things.
pub fn acceptor(certificate: &[u8], key: &[u8]) -> io::Result<TlsAcceptor> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let certificates = certificates.map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(io::Error::other)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
    Ok(TlsAcceptor::from(Arc::new(config.map_err(io::Error::other)?)))
}

/// The fault of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImapFault {
    /// The connection is cut before the command is carried out.
    CutBefore,
    /// The command is carried out, and the connection cut before the answer.
    CutAfter,
    /// No answer, and the connection stays open.
    Silence,
    /// The command is carried out, and no answer comes.
    SilenceAfter,
    /// `NO [LIMIT]`: too many requests.
    Refuse,
    /// A line without an end.
    EndlessLine,
    /// A literal of four gigabytes is announced.
    GiantLiteral,
    /// Data without an end.
    EndlessData,
}

/// A mail in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMail {
    /// Its UID.
    pub uid: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its flags, as they were stored.
    pub flags: Vec<String>,
}

/// A folder.
#[derive(Debug, Clone)]
pub(crate) struct MailFolder {
    validity: u32,
    next_uid: u32,
    mails: Vec<StoredMail>,
}

impl Default for MailFolder {
    fn default() -> Self {
        Self { validity: 7, next_uid: 1, mails: Vec::new() }
    }
}

impl MailFolder {
    fn add(&mut self, bytes: Vec<u8>, flags: Vec<String>) -> u32 {
        let uid = self.next_uid;
        self.next_uid += 1;
        self.mails.push(StoredMail { uid, bytes, flags });
        uid
    }
}

/// The state that all connections share.
pub(crate) struct ImapState {
    extensions: Extensions,
    encryption: Encryption,
    folders: Mutex<BTreeMap<String, MailFolder>>,
    faults: Mutex<Vec<PlannedFault>>,
    commands: Calls<String>,
    /// Counts deliveries; IDLE waits for it.
    deliveries: watch::Sender<u64>,
}

struct PlannedFault {
    text: String,
    fault: ImapFault,
    times: usize,
}

impl ImapState {
    /// The fault of a command, if one is planned.
    fn take_fault(&self, command: &str) -> Option<ImapFault> {
        let mut faults = lock(&self.faults);
        let planned = faults
            .iter_mut()
            .find(|planned| planned.times > 0 && command.contains(planned.text.as_str()))?;
        planned.times -= 1;
        Some(planned.fault)
    }
}

/// A running server; it stops when this is dropped.
pub struct Server {
    address: SocketAddr,
    desk: Arc<ImapState>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts on a free port of this machine, with an empty `INBOX`.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(extensions: Extensions) -> io::Result<Self> {
        Self::start_encrypted(extensions, Encryption::None).await
    }

    /// The same with encryption.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_encrypted(
        extensions: Extensions,
        encryption: Encryption,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let folders = BTreeMap::from([("INBOX".to_owned(), MailFolder::default())]);
        let desk = Arc::new(ImapState {
            extensions,
            encryption,
            folders: Mutex::new(folders),
            faults: Mutex::default(),
            commands: Calls::default(),
            deliveries: watch::Sender::new(0),
        });
        let shared = Arc::clone(&desk);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(session::serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { address, desk, task })
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Delivers a mail to `INBOX`; returns its UID.
    pub fn deliver(&self, bytes: impl Into<Vec<u8>>) -> u32 {
        let uid = {
            let mut folders = lock(&self.desk.folders);
            folders.entry("INBOX".to_owned()).or_default().add(bytes.into(), Vec::new())
        };
        self.desk.deliveries.send_modify(|count| *count += 1);
        uid
    }

    /// The mails of a folder, oldest first; none if there is no such folder.
    pub fn mails(&self, folder: &str) -> Vec<StoredMail> {
        lock(&self.desk.folders).get(folder).map(|folder| folder.mails.clone()).unwrap_or_default()
    }

    /// Gives all mails of `INBOX` new UIDs under another UIDVALIDITY, as a rebuilt mailbox has.
    pub fn renumber(&self) {
        let mut folders = lock(&self.desk.folders);
        let inbox = folders.entry("INBOX".to_owned()).or_default();
        inbox.validity += 1;
        for (number, mail) in inbox.mails.iter_mut().rev().enumerate() {
            mail.uid = u32::try_from(number).unwrap_or(u32::MAX - 1) + 1;
        }
        inbox.mails.sort_by_key(|mail| mail.uid);
    }

    /// The next `times` commands that contain the text fail like this.
    pub fn fail(&self, text: &str, fault: ImapFault, times: usize) {
        lock(&self.desk.faults).push(PlannedFault { text: text.to_owned(), fault, times });
    }

    /// The commands so far, in order, without tags and credentials.
    pub fn commands(&self) -> Vec<String> {
        self.desk.commands.all()
    }

    /// Waits until a command that contains the text was received `count` times; `false` if it was not
    /// within `deadline`.
    pub async fn received(&self, text: &str, count: usize, deadline: Duration) -> bool {
        let waiting = async {
            loop {
                let all = self.desk.commands.all();
                if all.iter().filter(|command| command.contains(text)).count() >= count {
                    return;
                }
                self.desk.commands.arrived(all.len() + 1, deadline).await;
            }
        };
        tokio::time::timeout(deadline, waiting).await.is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
