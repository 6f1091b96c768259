//! A second document with the same supplier and number, by the kind's rule.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use docmill_core::model::IngestionId;

use crate::support::documents;
use crate::support::world::World;

/// The shipped invoice without its examples, with another consequence of its rule against duplicates.
fn invoice_kind(consequence: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kinds/invoice");
    let own = folder.path().join("invoice");
    std::fs::create_dir_all(&own).unwrap();
    for name in ["kind.toml", "schema.json", "prompt.md", "labels.toml", "rules.toml"] {
        let text = std::fs::read_to_string(shipped.join(name)).unwrap();
        std::fs::write(own.join(name), text).unwrap();
    }
    let rule = |consequence| format!("check = \"duplicate\"\nconsequence = \"{consequence}\"");
    let rules = std::fs::read_to_string(own.join("rules.toml")).unwrap();
    assert!(rules.contains(&rule("flag")));
    std::fs::write(own.join("rules.toml"), rules.replace(&rule("flag"), &rule(consequence)))
        .unwrap();
    folder
}

/// An invoice, and the same with an attachment, one after the other.
async fn read_twice(consequence: &str) -> (World, IngestionId, IngestionId) {
    let mut world = World::new().await;
    let kinds = invoice_kind(consequence);
    world.config.kinds.path = kinds.path().to_owned();
    let worker = world.worker_with(|_| {}).await;
    let first = world.submit("first.pdf", documents::invoice("D-1")).await;
    world.until(first, "status", "completed").await;
    let copy = documents::invoice_carrying("D-1", &[("note.txt", "a copy")]);
    let second = world.submit("second.pdf", copy).await;
    world.until_empty().await;
    worker.stop().await;
    (world, first, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_is_flagged_is_no_reason_to_doubt_what_was_read() {
    let (world, first, second) = read_twice("flag").await;
    let of = async |id, column| world.column(id, column).await.unwrap();
    assert_eq!(of(second, "status").await, "completed");
    assert_eq!(of(second, "needs_human_review").await, "true");
    assert_eq!(of(second, "review_reasons").await, "{duplicate}");
    assert_eq!(of(second, "gate_score").await, of(first, "gate_score").await);
    assert_eq!(of(first, "review_reasons").await, "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_the_kind_refuses_is_not_completed() {
    let (world, first, second) = read_twice("review").await;
    let of = async |id, column| world.column(id, column).await.unwrap();
    assert_eq!(of(first, "status").await, "completed");
    assert_eq!(of(second, "status").await, "failed");
    assert_eq!(of(second, "reason").await, "gate_refused");
    assert_eq!(of(second, "review_reasons").await, "{duplicate}");
}
