//! Where nothing is sent.

use std::sync::Arc;
use std::time::Duration;

use docmill_core::fault::Fault;

use super::receiver::{
    MovingName, ReceiverMood, RunningDelivery, WebhookReceiver, complete, document, scalar, target,
    telling,
};
use crate::support::postgres::TestDatabase;
use crate::support::world::{SOON, until};

const PROBLEM: &str = "SELECT last_problem FROM webhook_delivery ORDER BY id DESC LIMIT 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_target_at_a_private_address_is_refused_before_anything_is_sent() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let mut config = telling(vec![target("erp", &receiver.url())]);
    config.webhooks.allowed_networks.clear();
    let names = Arc::new(MovingName::default());
    let refused = RunningDelivery::start_with(&database, &config, names).await.err().unwrap();
    assert_eq!(refused.fault, Fault::Misconfigured);
    let said = refused.to_string();
    assert!(said.contains("`erp`") && said.contains("allowed_networks"), "{said}");
    assert!(!said.contains("SECRETMARK"), "{said}");
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_rebound_to_a_private_address_is_refused_and_the_checked_address_is_used() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let name = MovingName::default();
    *name.addresses.lock() = vec!["127.0.0.1".parse().unwrap()];
    let url = format!("http://hooks.example.test:{}/", receiver.address.port());
    let mut config = telling(vec![target("erp", &url)]);
    config.webhooks.first_retry = Duration::from_secs(3600);
    let names = Arc::new(name.clone());
    let _running = RunningDelivery::start_with(&database, &config, names).await.unwrap();
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    until(SOON, || async { receiver.taken().len() == 1 }).await;
    assert_eq!(*name.asked.lock(), 1, "asked again between the check and the connection");
    for moved in [
        // One forbidden address is enough: the connection might use it.
        vec!["127.0.0.1", "10.0.0.1"],
        vec!["127.0.0.2"],
        vec!["169.254.169.254"],
        vec!["::ffff:169.254.169.254"],
        vec!["fd00:ec2::254"],
    ] {
        *name.addresses.lock() = moved.iter().map(|address| address.parse().unwrap()).collect();
        let (_, ingestion) = document(&database, "acme").await;
        complete(&database, ingestion).await;
        let last = moved.last().unwrap().trim_start_matches("::ffff:");
        until(SOON, || async { scalar(&database, PROBLEM).await.contains(last) }).await;
        let said = scalar(&database, PROBLEM).await;
        assert!(said.contains("nothing is sent") || said.contains("allowed"), "{said}");
    }
    assert_eq!(receiver.received().len(), 1, "sent to a name that had moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_wherever_it_leads() {
    let database = TestDatabase::create().await;
    let inner = WebhookReceiver::start(ReceiverMood::Status(200)).await;
    let receiver = WebhookReceiver::start(ReceiverMood::Redirect(inner.url())).await;
    let config = telling(vec![target("erp", &receiver.url())]);
    let _running = RunningDelivery::start(&database, &config).await;
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    until(SOON, || async {
        scalar(&database, PROBLEM).await.contains("redirects are not followed")
    })
    .await;
    assert_eq!((receiver.received().len(), inner.received().len()), (1, 0));
    assert!(!receiver.received()[0].taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_target_answers_is_kept() {
    let database = TestDatabase::create().await;
    let receiver = WebhookReceiver::start(ReceiverMood::Status(500)).await;
    let _running =
        RunningDelivery::start(&database, &telling(vec![target("erp", &receiver.url())])).await;
    let (_, ingestion) = document(&database, "acme").await;
    complete(&database, ingestion).await;
    until(SOON, || async { scalar(&database, PROBLEM).await.contains("500") }).await;
    let kept =
        "SELECT string_agg(d::text, ' ') || (SELECT string_agg(t::text, ' ') FROM webhook_target t)
                FROM webhook_delivery d";
    let kept = scalar(&database, kept).await;
    assert!(kept.contains("erp") && !kept.contains("SECRETANSWER"), "{kept}");
    assert!(!kept.contains("SECRETMARK"), "the address may be a secret: {kept}");
}
