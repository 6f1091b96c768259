//! One connection of the IMAP stand-in.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::{Encryption, ImapFault, ImapState, LOGIN, StoredMail};
use crate::served::lock;

/// A longer command is no command (RFC 7162 §4 has the same bound).
const MAX_COMMAND_BYTES: usize = 8192;
/// Bytes that a fault without end sends.
const ENDLESS_BYTES: usize = 64 << 20;

/// A connection with or without TLS.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// Serves a connection until its end.
pub(super) async fn serve(stream: TcpStream, desk: Arc<ImapState>) {
    let stream: Box<dyn ByteStream> = match &desk.encryption {
        Encryption::Tls(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => Box::new(stream),
            // The client does not trust the certificate.
            Err(_) => return,
        },
        Encryption::None | Encryption::Starttls(_) => Box::new(stream),
    };
    let session = Session {
        is_encrypted: !matches!(desk.encryption, Encryption::Starttls(_)),
        stream: BufReader::new(stream),
        desk,
        is_signed_in: false,
        selected: None,
        told: 0,
    };
    // The client may be gone at any time.
    drop(session.run().await);
}

struct Session {
    stream: BufReader<Box<dyn ByteStream>>,
    desk: Arc<ImapState>,
    /// As far as the server asks for it.
    is_encrypted: bool,
    is_signed_in: bool,
    selected: Option<String>,
    /// The number of mails that the client was told of.
    told: usize,
}

/// How the session goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Command,
    Encrypt,
    End,
}

impl Session {
    async fn run(mut self) -> io::Result<()> {
        self.send("* OK IMAP4rev1 stand-in\r\n").await?;
        while let Some(line) = self.read_line().await? {
            let Some((tag, command)) = line.split_once(' ') else {
                self.send("* BAD no command\r\n").await?;
                continue;
            };
            match self.serve_command(tag, command).await? {
                Next::Command => {}
                Next::Encrypt => self = self.encrypt().await?,
                Next::End => return Ok(()),
            }
        }
        Ok(())
    }

    async fn encrypt(self) -> io::Result<Self> {
        let Encryption::Starttls(acceptor) = &self.desk.encryption else { return Ok(self) };
        let stream = acceptor.accept(self.stream.into_inner()).await?;
        let stream: Box<dyn ByteStream> = Box::new(stream);
        let desk = Arc::clone(&self.desk);
        Ok(Self { stream: BufReader::new(stream), desk, is_encrypted: true, ..self })
    }

    async fn read_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let available = self.stream.fill_buf().await?;
            if available.is_empty() || line.len() > MAX_COMMAND_BYTES {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let count = end.unwrap_or(available.len());
            line.extend(available.iter().take(count));
            self.stream.consume(count);
            if end.is_some() {
                let line = String::from_utf8_lossy(&line);
                return Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()));
            }
        }
    }

    async fn send(&mut self, text: &str) -> io::Result<()> {
        self.send_bytes(text.as_bytes()).await
    }

    async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await?;
        self.stream.get_mut().flush().await
    }

    async fn serve_command(&mut self, tag: &str, command: &str) -> io::Result<Next> {
        let verb = command.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        let is_secret = matches!(verb.as_str(), "LOGIN" | "AUTHENTICATE");
        let shown = if is_secret { verb.clone() } else { command.to_owned() };
        let fault = self.desk.take_fault(&shown);
        self.desk.commands.push(shown);
        if let Some(fault) = fault
            && !matches!(fault, ImapFault::CutAfter | ImapFault::SilenceAfter)
        {
            return self.fail_before(tag, fault).await;
        }
        let answer = match verb.as_str() {
            "AUTHENTICATE" => self.authenticate(tag, command).await?,
            "IDLE" => self.idle(tag).await?,
            _ => self.answer(tag, command, &verb),
        };
        match fault {
            Some(ImapFault::CutAfter) => return Ok(Next::End),
            Some(_) => return std::future::pending().await,
            None => self.send_bytes(&answer).await?,
        }
        Ok(match verb.as_str() {
            "LOGOUT" => Next::End,
            "STARTTLS" if !self.is_encrypted => Next::Encrypt,
            _ => Next::Command,
        })
    }

    async fn fail_before(&mut self, tag: &str, fault: ImapFault) -> io::Result<Next> {
        match fault {
            ImapFault::Silence => return std::future::pending().await,
            ImapFault::Refuse => {
                self.send(&format!("{tag} NO [LIMIT] too many requests\r\n")).await?;
                return Ok(Next::Command);
            }
            ImapFault::EndlessLine => {
                for _ in 0..ENDLESS_BYTES / MAX_COMMAND_BYTES {
                    self.send(&"x".repeat(MAX_COMMAND_BYTES)).await?;
                }
            }
            ImapFault::GiantLiteral => {
                self.send("* 1 FETCH (UID 1 BODY[]<0> {4294967295}\r\n").await?;
                return std::future::pending().await;
            }
            ImapFault::EndlessData => {
                let line = format!("* OK {}\r\n", "x".repeat(MAX_COMMAND_BYTES));
                for _ in 0..ENDLESS_BYTES / MAX_COMMAND_BYTES {
                    self.send(&line).await?;
                }
            }
            ImapFault::CutBefore | ImapFault::CutAfter | ImapFault::SilenceAfter => {}
        }
        Ok(Next::End)
    }

    async fn authenticate(&mut self, tag: &str, command: &str) -> io::Result<Vec<u8>> {
        let mechanism = command.split(' ').nth(1).unwrap_or_default().to_ascii_uppercase();
        let is_offered = self.is_encrypted && self.desk.extensions.plain || mechanism == "XOAUTH2";
        if !is_offered || !matches!(mechanism.as_str(), "PLAIN" | "XOAUTH2") {
            return Ok(format!("{tag} NO unsupported mechanism\r\n").into_bytes());
        }
        self.send("+ \r\n").await?;
        let proof = self.read_line().await?.unwrap_or_default();
        let proof = BASE64_STANDARD.decode(proof).unwrap_or_default();
        let (user, secret) = LOGIN;
        let right = match mechanism.as_str() {
            "PLAIN" => format!("\0{user}\0{secret}"),
            _ => format!("user={user}\u{1}auth=Bearer {secret}\u{1}\u{1}"),
        };
        self.is_signed_in = proof == right.as_bytes();
        if !self.is_signed_in && mechanism == "XOAUTH2" {
            self.send("+ eyJzdGF0dXMiOiI0MDAifQ==\r\n").await?;
            self.read_line().await?;
        }
        Ok(match self.is_signed_in {
            true => format!("{tag} OK signed in\r\n"),
            false => format!("{tag} NO [AUTHENTICATIONFAILED] wrong\r\n"),
        }
        .into_bytes())
    }

    async fn idle(&mut self, tag: &str) -> io::Result<Vec<u8>> {
        if !self.desk.extensions.idle || self.selected.is_none() {
            return Ok(format!("{tag} BAD no IDLE\r\n").into_bytes());
        }
        let desk = Arc::clone(&self.desk);
        let mut deliveries = desk.deliveries.subscribe();
        self.send("+ idling\r\n").await?;
        loop {
            let news = self.changes();
            self.send(&news).await?;
            let changed = tokio::select! {
                line = self.read_line() => {
                    let done = line?.is_some_and(|line| line.eq_ignore_ascii_case("DONE"));
                    let word = if done { "OK" } else { "BAD" };
                    return Ok(format!("{tag} {word} idle\r\n").into_bytes());
                }
                changed = deliveries.changed() => changed,
            };
            if changed.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    /// The line about new mails in the selected folder.
    fn changes(&mut self) -> String {
        let Some(name) = &self.selected else { return String::new() };
        let count = lock(&self.desk.folders).get(name).map_or(0, |folder| folder.mails.len());
        let grown = count > self.told;
        self.told = count;
        if grown { format!("* {count} EXISTS\r\n") } else { String::new() }
    }

    fn answer(&mut self, tag: &str, command: &str, verb: &str) -> Vec<u8> {
        let words = split_words(command);
        let argument = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
        let mut data = Vec::new();
        let end = match verb {
            "CAPABILITY" => {
                data.extend(self.capabilities().into_bytes());
                "OK done".to_owned()
            }
            "NOOP" | "LOGOUT" => "OK done".to_owned(),
            "STARTTLS" if !self.is_encrypted => "OK begin".to_owned(),
            "LOGIN" if !self.is_encrypted => "NO [PRIVACYREQUIRED] encrypt first".to_owned(),
            "LOGIN" => {
                self.is_signed_in = (argument(1), argument(2)) == LOGIN;
                if self.is_signed_in { "OK in" } else { "NO [AUTHENTICATIONFAILED] no" }.to_owned()
            }
            _ if !self.is_signed_in => "BAD sign in first".to_owned(),
            "SELECT" => self.select(argument(1), &mut data),
            "CREATE" => {
                lock(&self.desk.folders).entry(argument(1).to_owned()).or_default();
                "OK made".to_owned()
            }
            "UID" if self.selected.is_some() => self.answer_uid(&words, &mut data),
            _ => "BAD unknown command".to_owned(),
        };
        let news = self.changes();
        data.extend(format!("{news}{tag} {end}\r\n").into_bytes());
        data
    }

    fn capabilities(&self) -> String {
        let extensions = self.desk.extensions;
        let mut all = "* CAPABILITY IMAP4rev1 AUTH=XOAUTH2".to_owned();
        for (has, name) in [
            (!self.is_encrypted, " STARTTLS LOGINDISABLED"),
            (extensions.plain && self.is_encrypted, " AUTH=PLAIN"),
            (extensions.idle, " IDLE"),
            (extensions.moves, " MOVE"),
            (extensions.uid_plus, " UIDPLUS"),
        ] {
            all.push_str(if has { name } else { "" });
        }
        all + "\r\n"
    }

    fn select(&mut self, name: &str, data: &mut Vec<u8>) -> String {
        let folders = lock(&self.desk.folders);
        let Some(folder) = folders.get(name) else { return "NO no such folder".to_owned() };
        let more = if self.desk.extensions.keywords { " \\*" } else { "" };
        let text = format!(
            "* FLAGS (\\Seen \\Flagged \\Deleted)\r\n* {} EXISTS\r\n* 0 RECENT\r\n\
             * OK [UIDVALIDITY {}] x\r\n* OK [UIDNEXT {}] x\r\n\
             * OK [PERMANENTFLAGS (\\Seen \\Flagged \\Deleted{more})] x\r\n",
            folder.mails.len(),
            folder.validity,
            folder.next_uid,
        );
        self.told = folder.mails.len();
        data.extend(text.into_bytes());
        self.selected = Some(name.to_owned());
        "OK [READ-WRITE] selected".to_owned()
    }

    fn answer_uid(&mut self, words: &[String], data: &mut Vec<u8>) -> String {
        let rest = words.get(3..).unwrap_or_default();
        let verb = words.get(1).map(|verb| verb.to_ascii_uppercase()).unwrap_or_default();
        let set = words.get(2).map(String::as_str).unwrap_or_default();
        match verb.as_str() {
            "SEARCH" => self.search(words.get(2..).unwrap_or_default(), data),
            "FETCH" => self.fetch(&parse_set(set), &rest.join(" "), data),
            "STORE" => self.store(&parse_set(set), rest),
            "COPY" => self.copy(&parse_set(set), rest, false, data),
            "MOVE" if self.desk.extensions.moves => self.copy(&parse_set(set), rest, true, data),
            "EXPUNGE" if self.desk.extensions.uid_plus => {
                let uids = parse_set(set);
                self.remove(data, |mail| {
                    uids.contains(&mail.uid) && mail.flags.iter().any(|flag| flag == "\\Deleted")
                });
                "OK expunged".to_owned()
            }
            _ => "BAD unknown command".to_owned(),
        }
    }

    fn search(&self, keys: &[String], data: &mut Vec<u8>) -> String {
        let mut wanted: Vec<(String, bool)> = Vec::new();
        let mut keys = keys.iter();
        while let Some(key) = keys.next() {
            wanted.push(match key.to_ascii_uppercase().as_str() {
                "UNDELETED" => ("\\Deleted".to_owned(), false),
                "UNSEEN" => ("\\Seen".to_owned(), false),
                "UNKEYWORD" => (keys.next().cloned().unwrap_or_default(), false),
                _ => return "BAD unknown key".to_owned(),
            });
        }
        let folders = lock(&self.desk.folders);
        let mails = self.selected.as_ref().and_then(|name| folders.get(name));
        let uids = mails
            .into_iter()
            .flat_map(|folder| &folder.mails)
            .filter(|mail| wanted.iter().all(|(flag, has)| mail.flags.contains(flag) == *has));
        let uids: Vec<String> = uids.map(|mail| format!(" {}", mail.uid)).collect();
        data.extend(format!("* SEARCH{}\r\n", uids.concat()).into_bytes());
        "OK found".to_owned()
    }

    fn fetch(&self, uids: &[u32], items: &str, data: &mut Vec<u8>) -> String {
        let folders = lock(&self.desk.folders);
        let folder = self.selected.as_ref().and_then(|name| folders.get(name));
        for (at, mail) in folder.into_iter().flat_map(|folder| &folder.mails).enumerate() {
            if !uids.contains(&mail.uid) {
                continue;
            }
            data.extend(format!("* {} FETCH (UID {}", at + 1, mail.uid).into_bytes());
            if items == "(UID RFC822.SIZE)" {
                data.extend(format!(" RFC822.SIZE {}", mail.bytes.len()).into_bytes());
            } else if let Some((start, count)) = parse_partial(items) {
                let end = mail.bytes.len().min(start.saturating_add(count));
                let piece = mail.bytes.get(start.min(end)..end).unwrap_or_default();
                data.extend(format!(" BODY[]<{start}> {{{}}}\r\n", piece.len()).into_bytes());
                data.extend(piece);
            } else {
                return "BAD unknown items".to_owned();
            }
            data.extend(b")\r\n");
        }
        "OK fetched".to_owned()
    }

    fn store(&self, uids: &[u32], words: &[String]) -> String {
        let Some(("+FLAGS.SILENT", flags)) =
            words.split_first().map(|(it, rest)| (it.as_str(), rest))
        else {
            return "BAD unknown change".to_owned();
        };
        let flags = flags.iter().map(|flag| flag.trim_matches(['(', ')']).to_owned());
        let flags: Vec<String> = flags.collect();
        let is_known =
            |flag: &String| ["\\Seen", "\\Flagged", "\\Deleted"].contains(&flag.as_str());
        if !self.desk.extensions.keywords && !flags.iter().all(is_known) {
            return "NO keywords are not kept".to_owned();
        }
        let mut folders = lock(&self.desk.folders);
        let folder = self.selected.as_ref().and_then(|name| folders.get_mut(name));
        for mail in folder.into_iter().flat_map(|folder| &mut folder.mails) {
            if uids.contains(&mail.uid) {
                mail.flags.extend(flags.iter().cloned());
                mail.flags.sort();
                mail.flags.dedup();
            }
        }
        "OK stored".to_owned()
    }

    fn copy(&mut self, uids: &[u32], words: &[String], moves: bool, data: &mut Vec<u8>) -> String {
        let target = words.first().cloned().unwrap_or_default();
        {
            let mut folders = lock(&self.desk.folders);
            let source = self.selected.as_ref().and_then(|name| folders.get(name));
            let mails: Vec<StoredMail> = source
                .into_iter()
                .flat_map(|folder| &folder.mails)
                .filter(|mail| uids.contains(&mail.uid))
                .cloned()
                .collect();
            let Some(folder) = folders.get_mut(&target) else {
                return "NO [TRYCREATE] no such folder".to_owned();
            };
            for mail in mails {
                folder.add(mail.bytes, mail.flags);
            }
        }
        if moves {
            self.remove(data, |mail| uids.contains(&mail.uid));
        }
        "OK copied".to_owned()
    }

    /// Removes mails and reports each.
    fn remove(&mut self, data: &mut Vec<u8>, is_meant: impl Fn(&StoredMail) -> bool) {
        let mut folders = lock(&self.desk.folders);
        let Some(folder) = self.selected.as_ref().and_then(|name| folders.get_mut(name)) else {
            return;
        };
        while let Some(at) = folder.mails.iter().position(&is_meant) {
            folder.mails.remove(at);
            data.extend(format!("* {} EXPUNGE\r\n", at + 1).into_bytes());
        }
        self.told = folder.mails.len();
    }
}

/// Words between blanks; one in quotes is one word.
fn split_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut in_quotes, mut escaped) =
        (Vec::new(), String::new(), false, false);
    for sign in command.chars() {
        match sign {
            _ if escaped => {
                word.push(sign);
                escaped = false;
            }
            '\\' if in_quotes => escaped = true,
            '"' => in_quotes = !in_quotes,
            ' ' if !in_quotes => words.push(std::mem::take(&mut word)),
            _ => word.push(sign),
        }
    }
    words.push(word);
    words
}

/// The UIDs of a set without ranges.
fn parse_set(set: &str) -> Vec<u32> {
    set.split(',').filter_map(|uid| uid.parse().ok()).collect()
}

/// `(UID BODY.PEEK[]<START.COUNT>)`.
fn parse_partial(items: &str) -> Option<(usize, usize)> {
    let bounds = items.strip_prefix("(UID BODY.PEEK[]<")?.strip_suffix(">)")?;
    let (start, count) = bounds.split_once('.')?;
    Some((start.parse().ok()?, count.parse().ok()?))
}
