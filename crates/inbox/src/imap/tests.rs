//! The mailbox against the stand-in: all extensions and none, hostile servers, changed UIDs.

use std::io::{Read as _, Seek as _};

use docmill_core::config::{ImapSecurity, SecretString};
use docmill_testkit::imap::{Extensions, ImapFault, LOGIN, Server};
use tokio::io::AsyncWriteExt as _;

use super::*;

/// Longer than any answer takes, and shorter than a test may.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

fn config(server: &Server, mark: InboxMark) -> InboxSourceConfig {
    InboxSourceConfig {
        name: "mails".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: server.port(),
        tls: ImapSecurity::None,
        user: LOGIN.0.to_owned(),
        password: LOGIN.1.to_owned().into(),
        mark,
        ..InboxSourceConfig::default()
    }
}

fn source(server: &Server, mark: InboxMark) -> ImapSource {
    ImapSource::new(config(server, mark), COMMAND_TIMEOUT, None)
}

async fn read(
    source: &mut ImapSource,
    item: &ArrivedItem,
    max_bytes: u64,
) -> Result<(ItemReading, Vec<u8>)> {
    let mut plain = tempfile::tempfile().unwrap();
    let mut file = File::from_std(plain.try_clone().unwrap());
    let reading = source.read_item(item, &mut file, max_bytes).await?;
    tokio::io::AsyncWriteExt::flush(&mut file).await.unwrap();
    let mut bytes = Vec::new();
    plain.rewind().unwrap();
    plain.read_to_end(&mut bytes).unwrap();
    Ok((reading, bytes))
}

async fn labels(source: &mut ImapSource) -> Vec<String> {
    source.list_new().await.unwrap().into_iter().map(|item| item.label).collect()
}

#[tokio::test]
async fn mails_are_read_in_pieces_and_their_marks_end_their_listing() {
    let large: Vec<u8> = (0..2 * PIECE_BYTES + 5).map(|at| b"ab(){}\r\n"[at % 8]).collect();
    let exact = vec![b'x'; PIECE_BYTES];
    for extensions in [Extensions::ALL, Extensions { uid_plus: true, ..Extensions::NONE }] {
        for mark in [InboxMark::Move, InboxMark::Seen, InboxMark::Keyword] {
            if mark == InboxMark::Keyword && !extensions.keywords {
                continue;
            }
            let server = Server::start(extensions).await.unwrap();
            for bytes in [&large, &exact, &b"small".to_vec()] {
                server.deliver(bytes.clone());
            }
            let mut source = source(&server, mark);
            let items = source.list_new().await.unwrap();
            assert_eq!(items.len(), 3);
            for (item, bytes) in items.iter().zip([&large, &exact, &b"small".to_vec()]) {
                let size = u64::try_from(bytes.len()).unwrap();
                assert_eq!(item.size, Some(size));
                let (reading, found) = read(&mut source, item, size).await.unwrap();
                assert!(reading == ItemReading::Whole && found == *bytes, "{mark:?} {size}");
                let (reading, _) = read(&mut source, item, size - 1).await.unwrap();
                assert_eq!(reading, ItemReading::TooLarge, "{mark:?} {size}");
            }
            source.mark_item(&items[0], ItemMark::Done).await.unwrap();
            source.mark_item(&items[1], ItemMark::Failed).await.unwrap();
            assert_eq!(labels(&mut source).await, ["7-3"], "{mark:?} {extensions:?}");
            let flags = |folder: &str| -> Vec<_> {
                server.mails(folder).into_iter().map(|mail| mail.flags.join(" ")).collect()
            };
            match mark {
                InboxMark::Move => {
                    assert_eq!((flags("docmill").len(), flags("docmill-failed").len()), (1, 1));
                    assert_eq!(flags("INBOX").len(), 1);
                }
                InboxMark::Seen => assert_eq!(flags("INBOX"), ["\\Seen", "\\Flagged \\Seen", ""]),
                InboxMark::Keyword => {
                    assert_eq!(flags("INBOX"), ["docmill", "docmill-failed", ""]);
                }
            }
        }
    }
}

#[tokio::test]
async fn marks_that_would_not_be_kept_are_refused_before_anything_is_read() {
    for (mark, said) in [(InboxMark::Move, "neither MOVE"), (InboxMark::Keyword, "keep")] {
        let server = Server::start(Extensions::NONE).await.unwrap();
        let error = source(&server, mark).open().await.unwrap_err();
        assert_eq!(error.fault, Fault::Misconfigured);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_refused_login_says_so_and_nothing_of_the_password() {
    for extensions in [Extensions::ALL, Extensions::NONE] {
        let server = Server::start(extensions).await.unwrap();
        let mut config = config(&server, InboxMark::Seen);
        config.password = SecretString::from("SECRETMARK".to_owned());
        let error = ImapSource::new(config, COMMAND_TIMEOUT, None).open().await.unwrap_err();
        assert_eq!(error.fault, Fault::Denied);
        assert!(!format!("{error:?}").contains("SECRETMARK"), "{error:?}");
    }
}

#[tokio::test]
async fn a_token_signs_in_and_one_that_is_refused_is_forgotten() {
    struct Numbered(std::sync::atomic::AtomicU32);
    #[async_trait]
    impl docmill_client::access_token::TokenGrant for Numbered {
        async fn request_token(&self) -> Result<docmill_client::access_token::GrantedToken> {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let value = if number == 0 { "stale".to_owned() } else { LOGIN.1.to_owned() }.into();
            let lifetime = Duration::from_secs(3600);
            Ok(docmill_client::access_token::GrantedToken { value, lifetime })
        }
    }
    let server = Server::start(Extensions::ALL).await.unwrap();
    let mut config = config(&server, InboxMark::Seen);
    config.auth = ImapAuth::Entra;
    let tokens = AccessTokenCache::new(Numbered(0.into()));
    let mut source = ImapSource::new(config, COMMAND_TIMEOUT, Some(tokens));
    assert_eq!(source.open().await.unwrap_err().fault, Fault::Denied);
    source.open().await.unwrap();
}

#[tokio::test]
async fn a_hostile_server_ends_the_call_and_the_next_one_connects_anew() {
    for fault in [
        ImapFault::EndlessLine,
        ImapFault::EndlessData,
        ImapFault::GiantLiteral,
        ImapFault::CutBefore,
        ImapFault::CutAfter,
        ImapFault::Refuse,
    ] {
        let server = Server::start(Extensions::ALL).await.unwrap();
        server.deliver("mail");
        let mut source = source(&server, InboxMark::Move);
        let items = source.list_new().await.unwrap();
        server.fail("BODY.PEEK", fault, 1);
        let error = read(&mut source, &items[0], 100).await.unwrap_err();
        let expected = match fault {
            ImapFault::CutBefore | ImapFault::CutAfter => Fault::Transient,
            _ => Fault::Rejected,
        };
        assert_eq!(error.fault, expected, "{fault:?}: {error}");
        let (reading, bytes) = read(&mut source, &items[0], 100).await.unwrap();
        assert!(reading == ItemReading::Whole && bytes == b"mail", "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_every_call_within_its_timeout() {
    for text in ["CAPABILITY", "AUTHENTICATE", "SELECT", "SEARCH", "RFC822.SIZE", "IDLE"] {
        let server = Server::start(Extensions::ALL).await.unwrap();
        server.deliver("mail");
        server.fail(text, ImapFault::Silence, 1);
        let mut source = source(&server, InboxMark::Move);
        let calls = async {
            source.list_new().await?;
            source.wait_for_items(Duration::from_secs(1)).await
        };
        let ended = tokio::time::timeout(Duration::from_secs(3600), calls).await;
        let error = ended.unwrap_or_else(|_| panic!("{text} waits without end")).unwrap_err();
        assert_eq!(error.fault, Fault::Transient, "{text}");
    }
}

#[tokio::test]
async fn after_new_uids_an_item_of_the_old_ones_is_neither_read_nor_marked() {
    let server = Server::start(Extensions::ALL).await.unwrap();
    server.deliver("one");
    server.deliver("two");
    let mut source = source(&server, InboxMark::Move);
    let items = source.list_new().await.unwrap();
    server.fail("BODY.PEEK", ImapFault::CutBefore, 1);
    read(&mut source, &items[0], 100).await.unwrap_err();
    server.renumber();
    assert_eq!(read(&mut source, &items[0], 100).await.unwrap_err().fault, Fault::Transient);
    source.mark_item(&items[0], ItemMark::Done).await.unwrap_err();
    assert_eq!(server.mails("INBOX").len(), 2);
    assert_eq!(labels(&mut source).await, ["8-1", "8-2"]);
}

#[tokio::test]
async fn a_mail_that_comes_ends_the_wait() {
    let server = Server::start(Extensions::ALL).await.unwrap();
    let mut source = source(&server, InboxMark::Move);
    assert_eq!(labels(&mut source).await, Vec::<String>::new());
    let deliver = async {
        assert!(server.received("IDLE", 1, COMMAND_TIMEOUT).await);
        server.deliver("mail");
    };
    let waited = source.wait_for_items(Duration::from_secs(3600));
    let (waited, ()) = tokio::join!(tokio::time::timeout(COMMAND_TIMEOUT, waited), deliver);
    waited.unwrap().unwrap();
    assert_eq!(labels(&mut source).await, ["7-1"]);
}

#[tokio::test]
async fn what_a_stranger_puts_in_front_of_the_encryption_ends_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stranger = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tokio::io::BufReader::new(stream);
        stream.get_mut().write_all(b"* OK\r\n").await.unwrap();
        let mut line = String::new();
        tokio::io::AsyncBufReadExt::read_line(&mut stream, &mut line).await.unwrap();
        let both = b"d1 OK begin\r\n* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n";
        stream.get_mut().write_all(both).await.unwrap();
        tokio::io::AsyncBufReadExt::read_line(&mut stream, &mut line).await.unwrap_or_default()
    });
    let config = InboxSourceConfig {
        host: "localhost".to_owned(),
        port: address.port(),
        tls: ImapSecurity::Starttls,
        user: LOGIN.0.to_owned(),
        password: LOGIN.1.to_owned().into(),
        ..InboxSourceConfig::default()
    };
    let error = ImapSource::new(config, COMMAND_TIMEOUT, None).open().await.unwrap_err();
    assert_eq!(error.fault, Fault::Denied, "{error}");
    assert_eq!(stranger.await.unwrap(), 0, "nothing follows");
}
