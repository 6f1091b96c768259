//! The parts of an IMAP server's responses that docmill uses, parsed by `imap-proto`.
//!
//! Not promised: responses of other extensions. They are ignored, as RFC 3501 §7 asks of a client.

use bytes::Bytes;
use imap_proto::{
    AttributeValue, Capability, MailboxDatum, Outcome, Response, ResponseCode, Status,
};

use super::framing::RawResponse;

/// Deeper responses are not parsed: the parser calls itself for each level.
const MAX_DEPTH: usize = 16;

/// A response, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerResponse {
    /// The end of the command with this tag.
    Completed { tag: String, end: CommandEnd },
    /// More of the command is wanted.
    Continue,
    /// The server closes the connection.
    Goodbye,
    /// Data.
    Data(ServerData),
    /// Nothing that matters here.
    Ignored,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// It was carried out.
    Ok { read_only: bool },
    /// It was refused; `try_create`: its mailbox does not exist.
    Refused { try_create: bool },
}

/// Data of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerData {
    /// Capabilities of the server, in capitals.
    Capabilities(Vec<String>),
    /// The flags that last.
    PermanentFlags(Vec<String>),
    /// The validity of the mailbox's UIDs.
    UidValidity(u32),
    /// The number of mails changed.
    Exists,
    /// The UIDs that a search found.
    Found(Vec<u32>),
    /// Facts of a mail.
    Mail(FetchedMail),
}

/// Facts of a mail, as far as the server sent them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FetchedMail {
    pub(super) uid: Option<u32>,
    pub(super) size: Option<u32>,
    /// A piece of its bytes, and the position at which it begins; none: the whole mail.
    pub(super) piece: Option<(Bytes, Option<u32>)>,
}

/// Reads a response.
pub(super) fn parse_response(raw: &RawResponse) -> ServerResponse {
    if raw.depth > MAX_DEPTH {
        return ServerResponse::Ignored;
    }
    // A challenge of a login is base64 and matters to nobody.
    if raw.bytes.starts_with(b"+") {
        return ServerResponse::Continue;
    }
    let Ok((rest, response)) = Response::parse(&raw.bytes) else { return ServerResponse::Ignored };
    if !rest.is_empty() {
        return ServerResponse::Ignored;
    }
    match response {
        Response::Done { tag, status, outcome } => {
            let end = match status {
                Status::Ok => {
                    CommandEnd::Ok { read_only: outcome.code == Some(ResponseCode::ReadOnly) }
                }
                _ => CommandEnd::Refused {
                    try_create: outcome.code == Some(ResponseCode::TryCreate),
                },
            };
            ServerResponse::Completed { tag: tag.0, end }
        }
        Response::Data { status: Status::Bye, .. } => ServerResponse::Goodbye,
        Response::Data { outcome, .. } => {
            read_code(outcome).map_or(ServerResponse::Ignored, ServerResponse::Data)
        }
        Response::Capabilities(all) => ServerResponse::Data(read_capabilities(all)),
        Response::MailboxData(MailboxDatum::Exists(_)) => ServerResponse::Data(ServerData::Exists),
        Response::MailboxData(MailboxDatum::Search(uids)) => {
            ServerResponse::Data(ServerData::Found(uids))
        }
        Response::Fetch(_, attributes) => {
            ServerResponse::Data(ServerData::Mail(read_mail(attributes)))
        }
        _ => ServerResponse::Ignored,
    }
}

fn read_code(outcome: Outcome<'_>) -> Option<ServerData> {
    match outcome.code? {
        ResponseCode::Capabilities(all) => Some(read_capabilities(all)),
        ResponseCode::PermanentFlags(flags) => {
            let flags = flags.into_iter().map(std::borrow::Cow::into_owned);
            Some(ServerData::PermanentFlags(flags.collect()))
        }
        ResponseCode::UidValidity(validity) => Some(ServerData::UidValidity(validity)),
        _ => None,
    }
}

fn read_capabilities(all: Vec<Capability<'_>>) -> ServerData {
    let names = all.into_iter().map(|capability| match capability {
        Capability::Imap4rev1 => "IMAP4REV1".to_owned(),
        Capability::Auth(name) => format!("AUTH={}", name.to_ascii_uppercase()),
        Capability::Atom(name) => name.to_ascii_uppercase(),
    });
    ServerData::Capabilities(names.collect())
}

fn read_mail(attributes: Vec<AttributeValue<'_>>) -> FetchedMail {
    let mut mail = FetchedMail::default();
    for attribute in attributes {
        match attribute {
            AttributeValue::Uid(uid) => mail.uid = Some(uid),
            AttributeValue::Rfc822Size(size) => mail.size = Some(size),
            AttributeValue::BodySection { section: None, index, data } => {
                let bytes = data.map(|data| Bytes::copy_from_slice(&data)).unwrap_or_default();
                mail.piece = Some((bytes, index));
            }
            _ => {}
        }
    }
    mail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ServerResponse {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        parse_response(&RawResponse { bytes, depth: text.matches('(').count() })
    }

    #[test]
    fn responses_of_servers_are_read_as_far_as_they_matter() {
        let data = ServerResponse::Data;
        let done = |tag: &str, end| ServerResponse::Completed { tag: tag.to_owned(), end };
        let mail = |uid, size, piece| data(ServerData::Mail(FetchedMail { uid, size, piece }));
        let words = |all: &[&str]| all.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let piece = |text: &'static str, at| Some((Bytes::from_static(text.as_bytes()), at));
        for (text, expected) in [
            ("A1 OK done\r\n", done("A1", CommandEnd::Ok { read_only: false })),
            ("A1 OK [READ-ONLY] x\r\n", done("A1", CommandEnd::Ok { read_only: true })),
            ("A2 NO [TRYCREATE] x\r\n", done("A2", CommandEnd::Refused { try_create: true })),
            ("A2 BAD what\r\n", done("A2", CommandEnd::Refused { try_create: false })),
            ("* BYE so long\r\n", ServerResponse::Goodbye),
            ("+ eyJzdGF0dXMiOiI0MDAifQ==\r\n", ServerResponse::Continue),
            ("+ \r\n", ServerResponse::Continue),
            (
                "* CAPABILITY IMAP4rev1 idle AUTH=xoauth2\r\n",
                data(ServerData::Capabilities(words(&["IMAP4REV1", "IDLE", "AUTH=XOAUTH2"]))),
            ),
            (
                "* OK [PERMANENTFLAGS (\\Seen \\*)] x\r\n",
                data(ServerData::PermanentFlags(words(&["\\Seen", "\\*"]))),
            ),
            ("* OK [UIDVALIDITY 7] x\r\n", data(ServerData::UidValidity(7))),
            ("* 3 EXISTS\r\n", data(ServerData::Exists)),
            ("* SEARCH 4 9\r\n", data(ServerData::Found(vec![4, 9]))),
            ("* SEARCH\r\n", data(ServerData::Found(Vec::new()))),
            ("* 1 FETCH (UID 9 RFC822.SIZE 70)\r\n", mail(Some(9), Some(70), None)),
            (
                "* 1 FETCH (UID 9 BODY[]<5> {2}\r\nab)\r\n",
                mail(Some(9), None, piece("ab", Some(5))),
            ),
            ("* 1 FETCH (BODY[] \"\")\r\n", mail(None, None, piece("", None))),
            ("* 1 FETCH (UID 9 FLAGS (\\Seen))\r\n", mail(Some(9), None, None)),
            ("* XYZ something\r\n", ServerResponse::Ignored),
            ("nonsense\r\n", ServerResponse::Ignored),
            ("* 1 FETCH (BODYSTRUCTURE ((((((((((((((((((((\r\n", ServerResponse::Ignored),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
