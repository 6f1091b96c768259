//! The mailbox against the stand-in: pages, throttling, moves, tokens.

use docmill_client::access_token::{GrantedToken, TokenGrant};
use docmill_testkit::graph::{GraphFault, Server, TOKEN, USER};

use super::*;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Grants these tokens in turn, the last one for ever.
struct ListedTokens(std::sync::Mutex<Vec<&'static str>>);

#[async_trait]
impl TokenGrant for ListedTokens {
    async fn request_token(&self) -> Result<GrantedToken> {
        let mut left = self.0.lock().unwrap();
        let value = if left.len() > 1 { left.remove(0) } else { left[0] };
        Ok(GrantedToken { value: value.to_owned().into(), lifetime: Duration::from_secs(3600) })
    }
}

fn source(server: &Server, mark: InboxMark, tokens: &[&'static str]) -> GraphSource {
    let config = InboxSourceConfig {
        name: "mails".to_owned(),
        user: USER.to_owned(),
        endpoint: server.endpoint(),
        mark,
        ..InboxSourceConfig::default()
    };
    let tokens = AccessTokenCache::new(ListedTokens(std::sync::Mutex::new(tokens.to_vec())));
    GraphSource::new(config, REQUEST_TIMEOUT, tokens).unwrap()
}

async fn read(source: &mut GraphSource, item: &ArrivedItem, max: u64) -> Result<ItemReading> {
    let mut file = File::from_std(tempfile::tempfile().unwrap());
    source.read_item(item, &mut file, max).await
}

#[tokio::test]
async fn pages_are_followed_and_marks_end_the_listing() {
    for mark in [InboxMark::Move, InboxMark::Seen] {
        let server = Server::start().await.unwrap();
        for number in 0..250 {
            server.deliver(format!("mail {number}"));
        }
        let mut source = source(&server, mark, &[TOKEN]);
        let items = source.list_new().await.unwrap();
        assert_eq!(items.len(), 250);
        assert_eq!(read(&mut source, &items[0], 100).await.unwrap(), ItemReading::Whole);
        assert_eq!(read(&mut source, &items[0], 5).await.unwrap(), ItemReading::TooLarge);
        source.mark_item(&items[0], ItemMark::Done).await.unwrap();
        source.mark_item(&items[1], ItemMark::Failed).await.unwrap();
        let left = source.list_new().await.unwrap();
        assert!(left == items[2..], "{mark:?}");
        match mark {
            InboxMark::Move => {
                let counts = (server.count_in("docmill"), server.count_in("docmill-failed"));
                assert_eq!(counts, (1, 1));
                // The id is the same after the move.
                assert_eq!(read(&mut source, &items[0], 100).await.unwrap(), ItemReading::Whole);
            }
            _ => {
                let flagged =
                    server.messages().into_iter().map(|mail| (mail.is_read, mail.is_flagged));
                let flagged: Vec<_> = flagged.take(3).collect();
                assert_eq!(flagged, [(true, false), (true, true), (false, false)]);
            }
        }
    }
}

#[tokio::test]
async fn folders_for_marks_are_made_once() {
    let server = Server::start().await.unwrap();
    for _ in 0..2 {
        source(&server, InboxMark::Move, &[TOKEN]).open().await.unwrap();
    }
    let made = server.calls().iter().filter(|call| call.starts_with("POST")).count();
    assert_eq!(made, 2);
}

#[tokio::test]
async fn refusals_are_sorted_and_never_quoted() {
    for (fault, expected) in [
        (GraphFault::Throttled(17), Fault::Throttled(Some(Duration::from_secs(17)))),
        (GraphFault::Status(403), Fault::Denied),
        (GraphFault::Status(404), Fault::Missing),
        (GraphFault::Status(503), Fault::Unavailable),
    ] {
        let server = Server::start().await.unwrap();
        server.deliver("mail");
        let mut source = source(&server, InboxMark::Seen, &[TOKEN]);
        source.open().await.unwrap();
        server.fail("/messages", fault, 1);
        let error = source.list_new().await.unwrap_err();
        assert_eq!(error.fault, expected);
        assert!(!error.to_string().contains("may quote"), "{error}");
        assert_eq!(source.list_new().await.unwrap().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_replaced_once() {
    let server = Server::start().await.unwrap();
    source(&server, InboxMark::Seen, &["revoked", TOKEN]).open().await.unwrap();
    let error = source(&server, InboxMark::Seen, &["revoked"]).open().await.unwrap_err();
    assert_eq!(error.fault, Fault::Denied);
}

#[tokio::test]
async fn the_token_is_not_sent_to_another_server() {
    let server = Server::start().await.unwrap();
    let calls = source(&server, InboxMark::Seen, &[TOKEN]).calls;
    let own = format!("{}/users/x/messages?$skip=10", server.endpoint());
    assert!(calls.check_link(&own).is_ok());
    for other in ["https://graph.example.com/v1.0/x", "http://127.0.0.1:1/v1.0/x", "x"] {
        assert_eq!(calls.check_link(other).unwrap_err().fault, Fault::Denied, "{other}");
    }
}

#[tokio::test]
async fn a_mail_that_is_gone_is_left_alone() {
    let server = Server::start().await.unwrap();
    server.deliver("mail");
    let mut source = source(&server, InboxMark::Move, &[TOKEN]);
    let mut item = source.list_new().await.unwrap().remove(0);
    item.label = "AAkALgAA-9=".to_owned();
    assert_eq!(read(&mut source, &item, 100).await.unwrap(), ItemReading::Unsettled);
    source.mark_item(&item, ItemMark::Done).await.unwrap();
}
