//! A mailbox on an IMAP server (RFC 3501; IDLE, MOVE, UIDPLUS and XOAUTH2 where they are offered).
//!
//! Mails are read by `BODY.PEEK[]` in pieces, so that no flag changes by reading and memory is bounded.
//! A mail is named by UIDVALIDITY and UID; its bytes never change, so they are its identity. Not
//! promised: servers that ignore the bounds of a piece, for mails longer than one.

mod connection;
mod framing;
mod mailbox_name;
mod responses;

use std::time::Duration;

use async_trait::async_trait;
use docmill_client::access_token::AccessTokenCache;
use docmill_core::config::{ImapAuth, InboxMark, InboxSourceConfig};
use docmill_core::fault::{Error, Fault, Result};
use tokio::fs::File;

use self::connection::{ImapConnection, ImapProof, quote};
use self::framing::MAX_LITERAL_BYTES;
use self::mailbox_name::encode_mailbox;
use self::responses::{CommandEnd, FetchedMail, ServerData};
use super::{ArrivedItem, InboxSource, ItemMark, ItemReading, MAX_LISTED_ITEMS, write_piece};

/// Bytes of a mail that are asked for at a time.
const PIECE_BYTES: usize = MAX_LITERAL_BYTES;

/// A mailbox.
pub struct ImapSource {
    config: InboxSourceConfig,
    command_timeout: Duration,
    tokens: Option<AccessTokenCache>,
    selected: Option<SelectedMailbox>,
}

/// A connection whose mailbox is selected.
struct SelectedMailbox {
    connection: ImapConnection,
    uid_validity: u32,
}

impl ImapSource {
    /// Nothing is sent. `tokens` are those of Entra ID, where the settings ask for them.
    pub fn new(
        config: InboxSourceConfig,
        command_timeout: Duration,
        tokens: Option<AccessTokenCache>,
    ) -> Self {
        Self { config, command_timeout, tokens, selected: None }
    }

    async fn connect(&self) -> Result<SelectedMailbox> {
        let mut connection = ImapConnection::connect(&self.config, self.command_timeout).await?;
        self.sign_in(&mut connection).await?;
        let uid_validity = self.select(&mut connection).await?;
        if self.config.mark == InboxMark::Move
            && !connection.offers("MOVE")
            && !connection.offers("UIDPLUS")
        {
            let text =
                "the IMAP server offers neither MOVE nor UIDPLUS: set mark to seen or keyword";
            return Err(Error::new(Fault::Misconfigured, text));
        }
        Ok(SelectedMailbox { connection, uid_validity })
    }

    async fn sign_in(&self, connection: &mut ImapConnection) -> Result<()> {
        let user = &self.config.user;
        let (ImapAuth::Entra, Some(tokens)) = (self.config.auth, &self.tokens) else {
            let password = self.config.password_source().current_secret();
            let password = password.map_err(|text| Error::new(Fault::Misconfigured, text))?;
            return connection.sign_in(user, ImapProof::Password(&password)).await;
        };
        let token = tokens.current_token().await?;
        let signed_in = connection.sign_in(user, ImapProof::Token(&token)).await;
        if signed_in.as_ref().is_err_and(|error| error.fault == Fault::Denied) {
            tokens.forget_token(&token).await;
        }
        signed_in
    }

    /// Selects the mailbox; returns the validity of its UIDs.
    async fn select(&self, connection: &mut ImapConnection) -> Result<u32> {
        let mailbox = quote(&encode_mailbox(&self.config.mailbox))?;
        let answer = connection.run(&format!("SELECT {mailbox}")).await?;
        match answer.end {
            CommandEnd::Ok { read_only: false } => {}
            CommandEnd::Ok { read_only: true } => {
                let text = "the IMAP mailbox is read-only: mails cannot be marked";
                return Err(Error::new(Fault::Denied, text));
            }
            CommandEnd::Refused { .. } => {
                let text = "the IMAP server does not open the mailbox: check its name";
                return Err(Error::new(Fault::Denied, text));
            }
        }
        let (mut validity, mut lasting) = (0, None);
        for data in answer.data {
            match data {
                ServerData::UidValidity(found) => validity = found,
                ServerData::PermanentFlags(flags) => lasting = Some(flags),
                _ => {}
            }
        }
        match lasting {
            Some(flags) if !self.keeps_marks(&flags) => {
                let text = "the IMAP server does not keep these marks: set mark to move or seen";
                Err(Error::new(Fault::Misconfigured, text))
            }
            _ => Ok(validity),
        }
    }

    /// Whether the marks are among the flags that last.
    fn keeps_marks(&self, lasting: &[String]) -> bool {
        let keeps = |flag: &str| lasting.iter().any(|each| each.eq_ignore_ascii_case(flag));
        match self.config.mark {
            InboxMark::Move => true,
            InboxMark::Seen => keeps("\\Seen"),
            InboxMark::Keyword => {
                let (done, failed) = (self.config.done_name(), self.config.failed_name());
                keeps("\\*") || (keeps(done) && keeps(failed))
            }
        }
    }

    /// The mailbox; connects if need be.
    async fn mailbox(&mut self) -> Result<&mut SelectedMailbox> {
        self.open().await?;
        self.selected.as_mut().ok_or_else(|| Error::internal("no IMAP mailbox is selected"))
    }

    /// The mailbox, and the UID of an item that was listed there.
    async fn mailbox_of(&mut self, item: &ArrivedItem) -> Result<(&mut SelectedMailbox, u32)> {
        let selected = self.mailbox().await?;
        match parse_label(&item.label) {
            Some((validity, uid)) if selected.uid_validity == validity => Ok((selected, uid)),
            _ => Err(Error::transient("the IMAP mailbox has new UIDs: it is listed again")),
        }
    }

    /// After a failure the connection is in an unknown state.
    fn drop_after<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.selected = None;
        }
        result
    }

    /// The keys of a search for mails without a mark.
    fn search_keys(&self) -> String {
        match self.config.mark {
            InboxMark::Move => "UNDELETED".to_owned(),
            InboxMark::Seen => "UNDELETED UNSEEN".to_owned(),
            InboxMark::Keyword => {
                let (done, failed) = (self.config.done_name(), self.config.failed_name());
                format!("UNDELETED UNKEYWORD {done} UNKEYWORD {failed}")
            }
        }
    }

    async fn search(&mut self) -> Result<Vec<ArrivedItem>> {
        let (keys, name) = (self.search_keys(), self.config.name.clone());
        let SelectedMailbox { connection, uid_validity } = self.mailbox().await?;
        connection.has_news = false;
        let answer = connection.run(&format!("UID SEARCH {keys}")).await?;
        require_ok(answer.end, "search")?;
        let mut uids: Vec<u32> = Vec::new();
        for data in answer.data {
            if let ServerData::Found(found) = data {
                uids.extend(found);
            }
        }
        uids.sort_unstable();
        uids.dedup();
        uids.truncate(MAX_LISTED_ITEMS);
        let mails = fetch_sizes(connection, &uids).await?;
        let items = uids.into_iter().map(|uid| {
            let mail = mails.iter().find(|mail| mail.uid == Some(uid));
            ArrivedItem {
                label: format!("{uid_validity}-{uid}"),
                size: mail.and_then(|mail| mail.size).map(u64::from),
                file_name: format!("{name}-{uid}.eml"),
                identity: None,
            }
        });
        Ok(items.collect())
    }

    async fn read(
        &mut self,
        item: &ArrivedItem,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        let (selected, uid) = self.mailbox_of(item).await?;
        let mut read = 0_u64;
        loop {
            let piece = fetch_piece(&mut selected.connection, uid, read).await?;
            read += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if read > max_bytes {
                return Ok(ItemReading::TooLarge);
            }
            write_piece(file, &piece).await?;
            if piece.len() < PIECE_BYTES {
                return Ok(ItemReading::Whole);
            }
        }
    }

    async fn mark(&mut self, item: &ArrivedItem, mark: ItemMark) -> Result<()> {
        let how = self.config.mark;
        let name = match mark {
            ItemMark::Done => self.config.done_name(),
            ItemMark::Failed => self.config.failed_name(),
        };
        let name = name.to_owned();
        let (selected, uid) = self.mailbox_of(item).await?;
        let connection = &mut selected.connection;
        let flags = match (how, mark) {
            (InboxMark::Move, _) => return move_mail(connection, uid, &name).await,
            (InboxMark::Seen, ItemMark::Done) => "\\Seen",
            (InboxMark::Seen, ItemMark::Failed) => "\\Seen \\Flagged",
            (InboxMark::Keyword, _) => name.as_str(),
        };
        let command = format!("UID STORE {uid} +FLAGS.SILENT ({flags})");
        require_ok(connection.run(&command).await?.end, "mark of a mail")
    }
}

#[async_trait]
impl InboxSource for ImapSource {
    fn describe(&self) -> String {
        let InboxSourceConfig { host, mailbox, .. } = &self.config;
        format!("mailbox {mailbox} at {host}:{}", self.config.effective_port())
    }

    async fn open(&mut self) -> Result<()> {
        if self.selected.is_none() {
            self.selected = Some(self.connect().await?);
        }
        Ok(())
    }

    async fn list_new(&mut self) -> Result<Vec<ArrivedItem>> {
        let found = self.search().await;
        self.drop_after(found)
    }

    async fn read_item(
        &mut self,
        item: &ArrivedItem,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        let read = self.read(item, file, max_bytes).await;
        self.drop_after(read)
    }

    async fn mark_item(&mut self, item: &ArrivedItem, mark: ItemMark) -> Result<()> {
        let marked = self.mark(item, mark).await;
        self.drop_after(marked)
    }

    async fn wait_for_items(&mut self, longest: Duration) -> Result<()> {
        let connection = &mut self.mailbox().await?.connection;
        if connection.has_news {
            return Ok(());
        }
        if !connection.offers("IDLE") {
            tokio::time::sleep(longest).await;
            return Ok(());
        }
        let waited = connection.idle(longest).await;
        self.drop_after(waited)
    }
}

/// UIDVALIDITY and UID of a label.
fn parse_label(label: &str) -> Option<(u32, u32)> {
    let (validity, uid) = label.split_once('-')?;
    Some((validity.parse().ok()?, uid.parse().ok()?))
}

fn require_ok(end: CommandEnd, what: &str) -> Result<()> {
    match end {
        CommandEnd::Ok { .. } => Ok(()),
        CommandEnd::Refused { .. } => {
            Err(Error::new(Fault::Rejected, format!("the IMAP server refuses the {what}")))
        }
    }
}

async fn fetch_sizes(connection: &mut ImapConnection, uids: &[u32]) -> Result<Vec<FetchedMail>> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let set: Vec<String> = uids.iter().map(u32::to_string).collect();
    let command = format!("UID FETCH {} (UID RFC822.SIZE)", set.join(","));
    let answer = connection.run(&command).await?;
    require_ok(answer.end, "sizes of mails")?;
    let mails = answer.data.into_iter().filter_map(|data| match data {
        ServerData::Mail(mail) => Some(mail),
        _ => None,
    });
    Ok(mails.collect())
}

/// The bytes of a mail from `start` on, at most [`PIECE_BYTES`]; fewer at its end.
async fn fetch_piece(
    connection: &mut ImapConnection,
    uid: u32,
    start: u64,
) -> Result<bytes::Bytes> {
    let command = format!("UID FETCH {uid} (UID BODY.PEEK[]<{start}.{PIECE_BYTES}>)");
    let answer = connection.run(&command).await?;
    require_ok(answer.end, "bytes of a mail")?;
    for data in answer.data {
        let ServerData::Mail(FetchedMail { uid: Some(found), piece, .. }) = data else { continue };
        if found != uid {
            continue;
        }
        match piece {
            Some((bytes, Some(at))) if u64::from(at) == start => return Ok(bytes),
            // A server that ignores the bounds sends the whole mail.
            Some((bytes, None)) if start == 0 && bytes.len() < PIECE_BYTES => return Ok(bytes),
            _ => {}
        }
    }
    Err(Error::new(Fault::Rejected, "the IMAP server did not send the bytes that were asked for"))
}

/// Moves a mail; its folder is made if it is missing.
async fn move_mail(connection: &mut ImapConnection, uid: u32, folder: &str) -> Result<()> {
    let folder = quote(&encode_mailbox(folder))?;
    let verb = if connection.offers("MOVE") { "MOVE" } else { "COPY" };
    let command = format!("UID {verb} {uid} {folder}");
    let mut end = connection.run(&command).await?.end;
    if end == (CommandEnd::Refused { try_create: true }) {
        require_ok(connection.run(&format!("CREATE {folder}")).await?.end, "new folder")?;
        end = connection.run(&command).await?.end;
    }
    require_ok(end, "move of a mail")?;
    if verb == "COPY" {
        let delete = format!("UID STORE {uid} +FLAGS.SILENT (\\Deleted)");
        require_ok(connection.run(&delete).await?.end, "removal of a mail that was copied")?;
        let expunge = format!("UID EXPUNGE {uid}");
        require_ok(connection.run(&expunge).await?.end, "removal of a mail that was copied")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
