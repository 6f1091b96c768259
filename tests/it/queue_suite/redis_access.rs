//! Getting into Redis: which servers are refused, TLS, and a user that may do only what is documented.

use std::time::Duration;

use docmill_core::config::QueueConfig;
use docmill_core::fault::{Error, Fault};
use docmill_queue::redis::{Cleaning, RedisQueue};
use docmill_queue::{MessageQueue, OutgoingMessage};
use redis::AsyncCommands as _;

use super::{acknowledge, all_done, take};
use crate::support::redis::Redis;

async fn refused(config: &QueueConfig) -> Error {
    RedisQueue::connect(config).await.err().unwrap()
}

/// Everything that a worker, its maintenance and an operator do.
async fn do_all(queue: &RedisQueue) {
    let late =
        OutgoingMessage { delay: Duration::from_secs(60), ..OutgoingMessage::from_body("late") };
    all_done(queue.send(&["first", "second"].map(OutgoingMessage::from_body)).await);
    all_done(queue.send(&[late]).await);
    for _ in 0..2 {
        let delivery = take(queue).await;
        all_done(
            queue
                .extend_visibility(std::slice::from_ref(&delivery.receipt), Duration::from_secs(60))
                .await,
        );
        all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    }
    acknowledge(queue, &take(queue).await.receipt).await;
    // Past the last receive that is allowed: the next look makes it a dead letter.
    all_done(queue.hide(&[(take(queue).await.receipt, Duration::ZERO)]).await);
    assert!(queue.receive(1, Duration::from_millis(300)).await.unwrap().is_empty());
    let letters = queue.receive_dead(10, Duration::from_secs(60)).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].delivery.receive_count, 2, "the look that buried it gave it to nobody");
    all_done(queue.release_dead(&[letters[0].delivery.receipt.clone()]).await);
    let letters = queue.receive_dead(10, Duration::from_secs(60)).await.unwrap();
    all_done(queue.acknowledge_dead(&[letters[0].delivery.receipt.clone()]).await);
    assert_eq!(queue.clean(Cleaning::Deep).await.unwrap(), 0);
    queue.run_maintenance().await.unwrap();
    let depth = queue.depth().await.unwrap();
    assert_eq!((depth.ready, depth.in_flight, depth.delayed, depth.dead), (0, 0, 1, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_would_forget_messages_is_refused() {
    for policy in ["volatile-lru", "allkeys-random"] {
        let evicting = Redis::with(&["--maxmemory-policy", policy]).await;
        let error = refused(&evicting.config("q")).await;
        let text = error.to_string();
        assert_eq!(error.fault, Fault::Rejected, "{text}");
        assert!(text.contains(policy) && text.contains("noeviction"), "{text}");
    }
}

/// The rights that the documentation names; nothing besides.
fn documented_rights() -> Vec<String> {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/operations.md"),
    );
    let page = page.unwrap();
    let rights = page.split("<!-- acl -->").nth(1).unwrap();
    let rights = rights.trim().trim_start_matches("```").trim_end_matches("```");
    let rights = rights.replace("PREFIX", "q");
    rights.split_whitespace().map(ToOwned::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_documented_rights_over_tls_can_do_all_and_nothing_else() {
    let rights = documented_rights();
    let user = ["--requirepass", "other", "--user", "docmill", "on", ">sesame"];
    let user: Vec<&str> = user.into_iter().chain(rights.iter().map(String::as_str)).collect();
    let server = Redis::over_tls(&user).await;
    let url = |user: &str| format!("rediss://{user}@{}/0", server.address()).into();
    let mut config = QueueConfig {
        redis_url: url("docmill:sesame"),
        redis_ca_file: server.authority(),
        max_receives: 2,
        ..server.config("q")
    };
    let queue = RedisQueue::connect(&config).await.unwrap();
    assert!(queue.describe().contains("(TLS)"), "{}", queue.describe());
    do_all(&queue).await;

    config.redis_prefix = "another".to_owned();
    let queue = RedisQueue::connect(&config).await.unwrap();
    let sent = queue.send(&[OutgoingMessage::from_body("elsewhere")]).await.pop().unwrap();
    assert_eq!(
        sent.unwrap_err().fault,
        Fault::Unavailable,
        "keys of another prefix are not its own"
    );

    config.redis_url = url("docmill:wrong");
    let error = refused(&config).await;
    assert_eq!(error.fault, Fault::Unavailable, "{error}");
    assert!(error.to_string().contains("user and password"), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_untrusted_certificate_gets_no_password() {
    let server = Redis::over_tls(&["--requirepass", "sesame"]).await;
    let url = format!("rediss://:sesame@{}/0", server.address());
    let vouched = QueueConfig {
        redis_url: url.into(),
        redis_ca_file: server.authority(),
        ..server.config("q")
    };
    RedisQueue::connect(&vouched).await.unwrap();
    let unknown = QueueConfig { redis_ca_file: Default::default(), ..vouched.clone() };
    let error = refused(&unknown).await;
    assert_eq!(error.fault, Fault::Unavailable, "{error}");
    assert!(error.to_string().contains("queue.redis_ca_file"), "{error}");
    let missing = QueueConfig { redis_ca_file: "/nowhere/authority.pem".into(), ..vouched };
    let error = refused(&missing).await;
    assert_eq!(error.fault, Fault::Rejected, "{error}");
    assert!(error.to_string().contains("/nowhere/authority.pem"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_another_program_that_is_no_text_keeps_every_byte_and_can_be_ended() {
    let server = Redis::start().await;
    let queue = RedisQueue::connect(&server.config("q")).await.unwrap();
    let db = &mut server.look().await;
    let id: &[u8] = b"id \xfe:1";
    let key = [&b"q:item:"[..], id].concat();
    let _: () = db.set(&key, &b"\xff\x00data"[..]).await.unwrap();
    let _: () = db.lpush("q:queue", id).await.unwrap();
    let delivery = take(&queue).await;
    assert_eq!(delivery.body, "data:application/octet-stream;base64,/wBkYXRh");
    assert_eq!(delivery.message_id, "696420fe3a31");
    all_done(queue.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    let again = take(&queue).await;
    assert_eq!(again.receive_count, 2);
    acknowledge(&queue, &again.receipt).await;
    let left: Vec<Vec<u8>> = db.keys("q:*").await.unwrap();
    assert!(left.is_empty(), "{} keys are left", left.len());
}
