//! Claims and their ends: one suite over every ledger, and what only Postgres has to show.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill::fault::Fault;
use docmill::ledger::postgres::PostgresLedger;
use docmill::ledger::{Claim, ClaimTerms, GiveBack, Held, Ledger, ReadBack, Record, Registration};
use docmill::model::{ClaimToken, DocumentId, IngestionId, Stage, Usage};

use crate::support::postgres::TestDatabase;

fn terms() -> ClaimTerms {
    ClaimTerms { worker: "w1".to_owned(), lease: Duration::from_secs(300), crash_limit: 3 }
}

fn object(sequencer: &str) -> Registration {
    Registration {
        document: DocumentId::of_object("b", "k"),
        ingestion: IngestionId::of_object("b", "k", "v", sequencer),
        file_path: "s3://b/k".to_owned(),
        original_name: "k".to_owned(),
        etag: Some("e".to_owned()),
        size: Some(3),
        sequencer: Some(sequencer.to_owned()),
    }
}

fn record() -> Record {
    Record {
        reason: None,
        stage: Stage::Record,
        structured_data: serde_json::json!({"supplier_name": "A", "invoice_number": "1"})
            .as_object()
            .cloned(),
        needs_human_review: false,
        review_reasons: Vec::new(),
        reader: Some("rules".to_owned()),
        kind: Some("invoice".to_owned()),
        model: None,
        usage: Usage::default(),
        sha256: Some("0".repeat(64)),
        detail: String::new(),
    }
}

#[tokio::test]
async fn a_document_goes_the_whole_way() {
    let database = TestDatabase::create().await;
    let ledger = PostgresLedger::new(database.db());
    let ids = ledger.register(&[object("1")]).await.unwrap();
    let claims = ledger.claim(&ids, &terms()).await.unwrap();
    let Claim::Claimed(claimed) = &claims[0] else { panic!("{claims:?}") };
    assert_eq!((claimed.attempt, claimed.claims, claimed.suspect), (1, 1, false));
    assert_eq!(claimed.document.etag.as_deref(), Some("e"));
    let again = ledger.claim(&ids, &terms()).await.unwrap();
    assert!(matches!(again[0], Claim::Busy(_)), "{again:?}");
    let id = claimed.id;
    let other = ClaimToken::random();
    let renewed = ledger.renew(&[(id, other), (id, claimed.token)], terms().lease).await.unwrap();
    assert_eq!(renewed, [Held::Lost, Held::Yes]);
    let how = GiveBack {
        fault: Fault::Unavailable,
        counted: false,
        after: Duration::from_secs(60),
        stage: Stage::Fetch,
        detail: "down".to_owned(),
    };
    assert_eq!(ledger.give_back(id, claimed.token, &how).await.unwrap(), Held::Yes);
    let claims = ledger.claim(&ids, &terms()).await.unwrap();
    assert!(matches!(claims[0], Claim::NotDue(_)), "{claims:?}");
    database.advance(Duration::from_secs(61)).await;
    let claims = ledger.claim(&ids, &terms()).await.unwrap();
    let Claim::Claimed(claimed) = &claims[0] else { panic!("{claims:?}") };
    assert_eq!((claimed.attempt, claimed.claims, claimed.suspect), (1, 2, false));
    assert!(claimed.deferred_for.unwrap() >= Duration::from_secs(60));
    assert_eq!(ledger.record(id, other, &record()).await.unwrap(), Held::Lost);
    assert_eq!(ledger.record(id, claimed.token, &record()).await.unwrap(), Held::Yes);
    assert_eq!(ledger.record(id, claimed.token, &record()).await.unwrap(), Held::Lost);
    assert_eq!(ledger.read_back(id, claimed.token).await.unwrap(), ReadBack::Recorded);
    assert_eq!(ledger.read_back(id, other).await.unwrap(), ReadBack::Lost);
    let found = ledger.find_duplicate(DocumentId::random(), "a ", "1").await.unwrap();
    assert_eq!(found, Some(id));
}
