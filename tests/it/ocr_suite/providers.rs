//! Cases of providers over the network.

use docmill_core::fault::Fault;
use docmill_core::model::{PagePicture, ProviderReading, TextLine};

use super::{ProviderHarness, ServiceFailure};

fn text(reading: &ProviderReading) -> String {
    reading.lines.iter().map(TextLine::text).collect::<Vec<_>>().join("\n")
}

/// As many pictures as one call takes, three at most.
fn pictures(harness: &dyn ProviderHarness, most: usize) -> Vec<PagePicture> {
    (1..4).take(most).map(|page| harness.picture(page)).collect()
}

pub(super) async fn is_called_as_the_configuration_calls_it(harness: &dyn ProviderHarness) {
    let (one, other) = (harness.client().await, harness.client().await);
    assert_eq!(one.name(), harness.provider().name());
    assert!(one.identity().contains(one.name()), "{}", one.identity());
    assert_eq!(one.identity(), other.identity(), "the same settings");
    assert!(!one.is_down());
}

pub(super) async fn a_call_within_the_limits_gives_one_reading_for_each_picture_in_order(
    harness: &dyn ProviderHarness,
) {
    let client = harness.client().await;
    let limits = client.call_limits();
    let sent = pictures(harness, limits.pages);
    assert!(sent.iter().map(|picture| picture.image.bytes.len()).sum::<usize>() <= limits.bytes);
    let (readings, usage) = client.read_pictures(&sent).await.unwrap();
    assert_eq!(readings.len(), sent.len());
    for (picture, reading) in sent.iter().zip(&readings) {
        let page = picture.facts.number;
        assert_eq!(reading.refused, None, "page {page}");
        assert!(text(reading).contains(&harness.text(page)), "page {page}: {}", text(reading));
    }
    assert_eq!(usage.provider, client.name());
    assert_eq!(usage.pages as usize, sent.len());
    assert_eq!((harness.calls(), harness.pages_read()), (1, sent.len()), "paid for once");
}

pub(super) async fn words_lie_within_their_picture(harness: &dyn ProviderHarness) {
    let client = harness.client().await;
    let sent = pictures(harness, client.call_limits().pages);
    let (readings, _) = client.read_pictures(&sent).await.unwrap();
    for (picture, reading) in sent.iter().zip(&readings) {
        let (width, height) = (picture.image.header.width, picture.image.header.height);
        for word in reading.lines.iter().flat_map(|line| &line.words) {
            let place = word.bounding_box;
            let inside = place.x >= 0.0
                && place.y >= 0.0
                && place.right() <= width as f32 + 1.0
                && place.bottom() <= height as f32 + 1.0;
            assert!(inside && place.w > 0.0 && place.h > 0.0, "{:?} at {place:?}", word.text);
            assert!((0.0..=1.0).contains(&word.confidence), "{:?}", word.text);
        }
    }
}

pub(super) async fn each_failure_asks_for_its_reaction_and_is_retried_only_if_that_helps(
    harness: &dyn ProviderHarness,
) {
    #[rustfmt::skip]
    let table = [
        // failure                 times, calls, fault
        (ServiceFailure::Throttled,  1,     1, Some(Fault::Throttled(None))),
        (ServiceFailure::Denied,     1,     1, Some(Fault::Denied)),
        (ServiceFailure::Rejected,   1,     1, Some(Fault::Rejected)),
        (ServiceFailure::Broken,     2,     3, None),
        (ServiceFailure::Broken,     3,     3, Some(Fault::Transient)),
    ];
    for (failure, times, calls, fault) in table {
        harness.fail(failure, times);
        let before = harness.calls();
        // A client of its own: what one has learnt from a failure holds up no other case.
        let client = harness.client().await;
        let ended = client.read_pictures(&[harness.picture(1)]).await.err();
        // The governor spreads the time that a service names.
        let found = ended.as_ref().map(|error| match error.fault {
            Fault::Throttled(_) => Fault::Throttled(None),
            other => other,
        });
        assert_eq!((harness.calls() - before, found), (calls, fault), "{failure:?} {times}");
        if let Some(error) = ended {
            assert!(!error.to_string().contains("scripted"), "quotes the service: {error}");
        }
    }
}

pub(super) async fn a_ping_reads_no_page_and_names_refused_credentials(
    harness: &dyn ProviderHarness,
) {
    harness.client().await.ping().await.unwrap();
    harness.refuse_ping();
    let refused = harness.client().await.ping().await.unwrap_err();
    assert_eq!(refused.fault, Fault::Denied, "{refused}");
    assert_eq!(harness.pages_read(), 0);
}
