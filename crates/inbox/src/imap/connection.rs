//! A connection to an IMAP server (RFC 3501): one command at a time, each with a timeout.
//!
//! A connection on which a call failed without an answer of the server is not used again. Errors
//! never quote the server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use docmill_core::config::{ImapSecurity, InboxSourceConfig, SecretString};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::with_deadline;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;

use super::framing::ResponseReader;
use super::responses::{CommandEnd, ServerData, ServerResponse, parse_response};

/// Longest the way to a connection may take: name, TCP, TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Most bytes that a server may send before the end of one command.
const MAX_COMMAND_BYTES: usize = 32 << 20;

/// A connection with or without TLS.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> ByteStream for S {}

/// The answer to a command.
pub(super) struct CommandAnswer {
    pub(super) end: CommandEnd,
    pub(super) data: Vec<ServerData>,
}

/// A proof of who connects.
pub(super) enum ImapProof<'a> {
    /// A password.
    Password(&'a SecretString),
    /// An access token (XOAUTH2).
    Token(&'a SecretString),
}

/// A connection.
pub(super) struct ImapConnection {
    stream: Box<dyn ByteStream>,
    reader: ResponseReader,
    tags: u32,
    command_timeout: Duration,
    capabilities: BTreeSet<String>,
    /// Whether the number of mails changed since it was last asked for.
    pub(super) has_news: bool,
}

impl ImapConnection {
    /// Connects, encrypts, and waits for the greeting.
    ///
    /// # Errors
    /// `Unavailable`: no connection. `Denied`: the server does not encrypt.
    pub(super) async fn connect(config: &InboxSourceConfig, timeout: Duration) -> Result<Self> {
        let stream = with_deadline(CONNECT_TIMEOUT, open_stream(config), not_connected).await?;
        let mut connection = Self {
            stream,
            reader: ResponseReader::default(),
            tags: 0,
            command_timeout: timeout,
            capabilities: BTreeSet::new(),
            has_news: false,
        };
        connection.read_greeting().await?;
        if config.tls == ImapSecurity::Starttls {
            connection = connection.encrypt(&config.host).await?;
        }
        connection.learn_capabilities().await?;
        Ok(connection)
    }

    async fn read_greeting(&mut self) -> Result<()> {
        match with_deadline(self.command_timeout, self.read_one(), no_answer).await? {
            ServerResponse::Goodbye => {
                Err(Error::new(Fault::Unavailable, "the IMAP server takes no connection now"))
            }
            ServerResponse::Completed { .. } | ServerResponse::Continue => {
                Err(Error::new(Fault::Rejected, "this is no IMAP server"))
            }
            ServerResponse::Data(_) | ServerResponse::Ignored => Ok(()),
        }
    }

    async fn encrypt(mut self, host: &str) -> Result<Self> {
        if self.run("STARTTLS").await?.end == (CommandEnd::Ok { read_only: false })
            // Text in front of the encryption is not the server's.
            && !self.reader.has_more()
        {
            let wrapped = wrap_in_tls(self.stream, host);
            let stream = with_deadline(CONNECT_TIMEOUT, wrapped, not_connected).await?;
            return Ok(Self { stream, ..self });
        }
        Err(Error::new(Fault::Denied, "the IMAP server does not offer STARTTLS"))
    }

    async fn learn_capabilities(&mut self) -> Result<()> {
        let answer = self.run("CAPABILITY").await?;
        for data in answer.data {
            if let ServerData::Capabilities(all) = data {
                self.capabilities = all.into_iter().collect();
            }
        }
        Ok(())
    }

    /// Whether the server offers an extension, named in capitals.
    pub(super) fn offers(&self, name: &str) -> bool {
        self.capabilities.contains(name)
    }

    /// Signs in.
    ///
    /// # Errors
    /// `Denied`: the login is refused, or passwords are.
    pub(super) async fn sign_in(&mut self, user: &str, proof: ImapProof<'_>) -> Result<()> {
        let end = match proof {
            ImapProof::Token(token) => {
                let text = format!("user={user}\u{1}auth=Bearer {}\u{1}\u{1}", token.reveal());
                self.authenticate("XOAUTH2", &text).await?
            }
            ImapProof::Password(password) if self.offers("AUTH=PLAIN") => {
                self.authenticate("PLAIN", &format!("\0{user}\0{}", password.reveal())).await?
            }
            ImapProof::Password(_) if self.offers("LOGINDISABLED") => {
                return Err(Error::new(Fault::Denied, "the IMAP server takes no passwords here"));
            }
            ImapProof::Password(password) => {
                let (user, password) = (quote(user)?, quote(password.reveal())?);
                self.run(&format!("LOGIN {user} {password}")).await?.end
            }
        };
        match end {
            CommandEnd::Ok { .. } => self.learn_capabilities().await,
            CommandEnd::Refused { .. } => {
                Err(Error::new(Fault::Denied, "the IMAP server refuses the login"))
            }
        }
    }

    async fn authenticate(&mut self, mechanism: &str, proof: &str) -> Result<CommandEnd> {
        let proof = BASE64_STANDARD.encode(proof);
        with_deadline(self.command_timeout, self.exchange_proof(mechanism, &proof), no_answer).await
    }

    /// The proof answers the first challenge, an empty line every other: it carries the reason of a
    /// refusal.
    async fn exchange_proof(&mut self, mechanism: &str, proof: &str) -> Result<CommandEnd> {
        let tag = self.send(&format!("AUTHENTICATE {mechanism}")).await?;
        let (mut answer, mut challenges) = (proof, 0);
        loop {
            match self.read_one().await? {
                ServerResponse::Completed { tag: ended, end } if ended == tag => return Ok(end),
                ServerResponse::Continue if challenges < 3 => {
                    self.send_line(answer).await?;
                    (answer, challenges) = ("", challenges + 1);
                }
                ServerResponse::Data(_) | ServerResponse::Ignored => {}
                _ => return Err(out_of_turn()),
            }
        }
    }

    /// Sends a command and waits for its end. A refusal is an end, too.
    ///
    /// # Errors
    /// `Transient`: no whole answer in time. `Rejected`: the answer is none, or over a bound.
    pub(super) async fn run(&mut self, command: &str) -> Result<CommandAnswer> {
        with_deadline(self.command_timeout, self.exchange(command), no_answer).await
    }

    async fn exchange(&mut self, command: &str) -> Result<CommandAnswer> {
        let tag = self.send(command).await?;
        self.read_to_end(&tag).await
    }

    async fn read_to_end(&mut self, tag: &str) -> Result<CommandAnswer> {
        let (mut data, mut bytes) = (Vec::new(), 0);
        loop {
            let raw = self.reader.read_response(self.stream.as_mut()).await?;
            bytes += raw.bytes.len();
            if bytes > MAX_COMMAND_BYTES {
                let text = "the IMAP server sent an answer beyond docmill's limit";
                return Err(Error::new(Fault::Rejected, text));
            }
            match parse_response(&raw) {
                ServerResponse::Completed { tag: ended, end } if ended == tag => {
                    return Ok(CommandAnswer { end, data });
                }
                ServerResponse::Data(ServerData::Exists) => self.has_news = true,
                ServerResponse::Data(one) => data.push(one),
                ServerResponse::Ignored => {}
                ServerResponse::Goodbye => {
                    return Err(Error::transient("the IMAP server ended the connection"));
                }
                ServerResponse::Completed { .. } | ServerResponse::Continue => {
                    return Err(out_of_turn());
                }
            }
        }
    }

    /// Waits with IDLE (RFC 2177) until the number of mails changes, at most so long.
    ///
    /// # Errors
    /// As [`ImapConnection::run`].
    pub(super) async fn idle(&mut self, longest: Duration) -> Result<()> {
        let tag = self.send("IDLE").await?;
        with_deadline(self.command_timeout, self.read_continuation(), no_answer).await?;
        if !self.has_news {
            // Over without news is as good.
            let watched = tokio::time::timeout(longest, self.read_until_news()).await;
            watched.unwrap_or(Ok(()))?;
        }
        self.send_line("DONE").await?;
        let ended = with_deadline(self.command_timeout, self.read_to_end(&tag), no_answer).await?;
        drop(ended);
        Ok(())
    }

    async fn read_continuation(&mut self) -> Result<()> {
        loop {
            match self.read_one().await? {
                ServerResponse::Continue => return Ok(()),
                ServerResponse::Data(_) | ServerResponse::Ignored => {}
                _ => return Err(out_of_turn()),
            }
        }
    }

    async fn read_until_news(&mut self) -> Result<()> {
        while !self.has_news {
            match self.read_one().await? {
                ServerResponse::Data(_) | ServerResponse::Ignored => {}
                ServerResponse::Goodbye => {
                    return Err(Error::transient("the IMAP server ended the connection"));
                }
                _ => return Err(out_of_turn()),
            }
        }
        Ok(())
    }

    async fn read_one(&mut self) -> Result<ServerResponse> {
        let raw = self.reader.read_response(self.stream.as_mut()).await?;
        let response = parse_response(&raw);
        self.has_news |= response == ServerResponse::Data(ServerData::Exists);
        Ok(response)
    }

    /// Sends a command; returns its tag.
    async fn send(&mut self, command: &str) -> Result<String> {
        self.tags += 1;
        let tag = format!("d{}", self.tags);
        self.send_line(&format!("{tag} {command}")).await?;
        Ok(tag)
    }

    async fn send_line(&mut self, line: &str) -> Result<()> {
        let sent = async {
            self.stream.write_all(format!("{line}\r\n").as_bytes()).await?;
            self.stream.flush().await
        };
        let sent =
            tokio::time::timeout(self.command_timeout, sent).await.map_err(|_| no_answer())?;
        sent.map_err(|error| Error::transient("the IMAP connection broke").with_source(error))
    }
}

fn not_connected() -> Error {
    Error::new(Fault::Unavailable, "no connection with the IMAP server in time")
}

fn no_answer() -> Error {
    Error::transient("the IMAP server gave no whole answer within inbox.timeout")
}

fn out_of_turn() -> Error {
    Error::new(Fault::Rejected, "the IMAP server answered out of turn")
}

/// A quoted string (RFC 3501 §4.3).
///
/// # Errors
/// It has characters that no quoted string can have.
pub(super) fn quote(text: &str) -> Result<String> {
    if !text.chars().all(|c| c.is_ascii() && !c.is_ascii_control()) {
        let text = "the IMAP server takes only logins of plain characters: it lacks AUTH=PLAIN";
        return Err(Error::new(Fault::Misconfigured, text));
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

async fn open_stream(config: &InboxSourceConfig) -> Result<Box<dyn ByteStream>> {
    let address = (config.host.as_str(), config.effective_port());
    let stream = TcpStream::connect(address).await.map_err(|error| {
        let text = "the IMAP server cannot be connected to: check host and port";
        Error::new(Fault::Unavailable, text).with_source(error)
    })?;
    match config.tls {
        ImapSecurity::Tls => wrap_in_tls(Box::new(stream), &config.host).await,
        ImapSecurity::Starttls | ImapSecurity::None => Ok(Box::new(stream)),
    }
}

async fn wrap_in_tls(stream: Box<dyn ByteStream>, host: &str) -> Result<Box<dyn ByteStream>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier());
    let config = config.map_err(|error| {
        Error::internal("TLS cannot be set up; are root certificates installed?").with_source(error)
    })?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| {
        Error::new(Fault::Misconfigured, "the IMAP host is no name for TLS").with_source(error)
    })?;
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let stream = connector.connect(name, stream).await.map_err(|error| {
        let text = "no TLS with the IMAP server: check host, port, tls and its certificate";
        Error::new(Fault::Unavailable, text).with_source(error)
    })?;
    Ok(Box::new(stream))
}
