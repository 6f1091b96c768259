//! Reviewers beside each other: leases, undo, and decisions that need two.

use std::time::Duration;

use docmill_operations::review::{
    LockRequest, ReviewHold, claim_review, find_free_review, release_review,
};
use rust_decimal::Decimal;
use sqlx::Row as _;
use uuid::Uuid;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn wish(reviewer: &str) -> LockRequest<'_> {
    let (page, lease) = (Uuid::new_v4(), MINUTE * 10);
    LockRequest { reviewer, page, opens: true, take_over: false, lease }
}

/// Everything of a document but when its row was written last, and its revisions but the last `without`.
async fn snapshot(desk: &ReviewDesk, document: DocumentId, without: i64) -> Vec<String> {
    let sql = format!(
        "SELECT ((to_jsonb(d) - 'updated_at')::text) FROM document d WHERE id = '{document}'
         UNION ALL (SELECT to_jsonb(r)::text FROM document_revision r WHERE document_id = '{document}'
             ORDER BY id LIMIT (SELECT count(*) - {without} FROM document_revision
                 WHERE document_id = '{document}'))"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(desk.database.pool()).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn hold_of(desk: &ReviewDesk, document: DocumentId, wish: &LockRequest<'_>) -> ReviewHold {
    claim_review(&desk.database.db(), document.0, wish).await.unwrap().unwrap()
}

#[tokio::test]
async fn what_somebody_has_open_nobody_else_decides_until_it_ends_or_is_taken_over() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let ann = wish("web:ann");
    assert_eq!(hold_of(&desk, document, &ann).await.reviewer, "web:ann");
    assert_eq!(hold_of(&desk, document, &wish("web:bob")).await.reviewer, "web:ann");
    let seen = desk.case(ingestion).await;
    assert_eq!(seen.held.as_ref().unwrap().reviewer, "web:ann");
    let rows = review::list_reviews(&db, &ReviewFilter::default(), 10, None).await.unwrap();
    assert_eq!(rows[0].held_by.as_deref(), Some("web:ann"));
    let bob = reviewer("web:bob", &USUAL, "");
    let refused = review::accept_document(&db, &seen, AcceptedData::Document, &bob).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, DecisionRefusal::Held(_)), "{refused}");
    assert!(refused.to_string().contains("web:ann has the document open since"), "{refused}");
    assert_eq!(desk.case(ingestion).await, seen, "nothing was written");
    // Ann's page says that it is still open, and then no more.
    desk.database.advance(MINUTE * 9).await;
    let renewal = LockRequest { opens: false, ..ann.clone() };
    assert_eq!(hold_of(&desk, document, &renewal).await.since, seen.held.unwrap().since);
    desk.database.advance(MINUTE * 18).await;
    assert_eq!(hold_of(&desk, document, &wish("web:bob")).await.reviewer, "web:ann");
    desk.database.advance(MINUTE * 20).await;
    assert_eq!(hold_of(&desk, document, &wish("web:bob")).await.reviewer, "web:bob");
    let over = LockRequest { take_over: true, ..wish("web:ann") };
    assert_eq!(hold_of(&desk, document, &over).await.reviewer, "web:ann");
    let case = desk.case(ingestion).await;
    let decides = DecidingReviewer { take_over: true, ..bob };
    review::accept_document(&db, &case, AcceptedData::Document, &decides).await.unwrap();
    assert_eq!(desk.case(ingestion).await.held, None, "the decision ends the lease");
    assert!(claim_review(&db, document.0, &over).await.unwrap().is_none(), "it calls for nobody");
}

#[tokio::test]
async fn a_page_that_was_left_gives_back_what_it_had_and_not_what_a_later_one_has() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (first, second) = (wish("web:ann"), wish("web:ann"));
    hold_of(&desk, document, &first).await;
    hold_of(&desk, document, &second).await;
    // The first page, still open in another tab, renews as well.
    hold_of(&desk, document, &LockRequest { opens: false, ..first.clone() }).await;
    let release = async |who: &str, page| release_review(&db, document.0, who, page).await.unwrap();
    assert!(!release("web:ann", Some(first.page)).await);
    assert!(!release("web:bob", Some(second.page)).await, "it is not his to give back");
    assert!(release("web:ann", Some(second.page)).await);
    assert_eq!(hold_of(&desk, document, &wish("web:bob")).await.reviewer, "web:bob");
}

#[tokio::test]
async fn the_next_document_is_one_that_nobody_has_and_that_does_not_wait_for_another_person() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let mut documents = Vec::new();
    for _ in 0..3 {
        documents.push(desk.refused("acme", &invoice(9000.0)).await);
    }
    let next = async |who: &str, after| {
        let passed: Vec<Uuid> = Option::<Uuid>::into_iter(after).collect();
        let found = find_free_review(&db, &ReviewFilter::default(), who, &passed).await.unwrap();
        found.map(DocumentId)
    };
    let ids: Vec<DocumentId> = documents.iter().map(|(id, _)| *id).collect();
    assert_eq!(next("ann", None).await, Some(ids[0]));
    hold_of(&desk, ids[0], &wish("bob")).await;
    assert_eq!(next("ann", None).await, Some(ids[1]));
    assert_eq!(next("ann", Some(ids[1].0)).await, Some(ids[2]));
    assert_eq!(next("bob", None).await, Some(ids[0]), "his own is his");
    let config = four_eyes();
    let case = desk.case(documents[1].1).await;
    let ann = reviewer("ann", &config, "");
    review::accept_document(&db, &case, AcceptedData::Document, &ann).await.unwrap();
    assert_eq!(next("ann", None).await, Some(ids[2]), "she cannot be the second of her own");
    assert_eq!(next("ann", Some(ids[2].0)).await, None);
    assert_eq!(next("carl", Some(ids[2].0)).await, Some(ids[1]));
}

#[tokio::test]
async fn an_undo_leaves_everything_as_it_was_but_the_record_of_it() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let undo = async || review::undo_decision(&db, document.0, &ann("").by).await;
    assert_eq!(undo().await.unwrap_err().fault, Fault::Rejected, "nothing was decided");
    // First of what no person has decided about, then of what one has.
    for round in 0..3 {
        let before = snapshot(&desk, document, 0).await;
        let case = desk.case(ingestion).await;
        match round {
            0 => drop(desk.correct(&case, total("12.00")).await.unwrap()),
            1 => drop(
                review::accept_document(&db, &case, AcceptedData::Document, &ann(""))
                    .await
                    .unwrap(),
            ),
            _ => drop(review::reject_document(&db, &case, &ann("an advert")).await.unwrap()),
        }
        assert_ne!(snapshot(&desk, document, 1).await, before);
        undo().await.unwrap();
        assert_eq!(snapshot(&desk, document, 2).await, before);
        let last = desk.case(ingestion).await.revisions.pop().unwrap();
        assert_eq!((last.decision.as_str(), last.reviewer.as_str()), ("undone", "ann"));
        assert!(undo().await.is_err(), "an undo is not undone");
        let case = desk.case(ingestion).await;
        desk.correct(&case, total("13.00")).await.unwrap();
        desk.database.advance(MINUTE * (round + 1) * 2).await;
    }
    assert_eq!(desk.case(ingestion).await.document_data, Some(invoice(13.0)));
}

#[tokio::test]
async fn nothing_is_undone_by_others_after_a_minute_or_once_something_else_has_happened() {
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let undo = async |who: &str| {
        let by = reviewer(who, &USUAL, "").by;
        review::undo_decision(&db, document.0, &by).await.map_err(|error| error.to_string())
    };
    let now = time::OffsetDateTime::now_utc();
    desk.database.freeze(now).await;
    desk.correct(&desk.case(ingestion).await, total("12.00")).await.unwrap();
    let others = undo("bob").await.unwrap_err();
    assert!(others.contains("ann's, who alone can undo it"), "{others}");
    desk.database.freeze(now + MINUTE).await;
    let late = undo("ann").await.unwrap_err();
    assert!(late.contains("too late"), "{late}");
    // A second decision.
    let bob = reviewer("bob", &USUAL, "");
    desk.correct(&desk.case(ingestion).await, total("13.00")).await.unwrap();
    let case = desk.case(ingestion).await;
    review::accept_document(&db, &case, AcceptedData::Document, &bob).await.unwrap();
    assert!(undo("ann").await.unwrap_err().contains("bob's"));
    assert_eq!(undo("web:Bob").await.unwrap().data, Some(invoice(13.0)), "one person, two names");
    // A later ingestion.
    desk.correct(&desk.case(ingestion).await, total("14.00")).await.unwrap();
    let later = IngestionId::random();
    desk.run(format!(
        "INSERT INTO ingestion (id, document_id, kind) VALUES ('{later}', '{document}', 'invoice')"
    ))
    .await;
    desk.end(later, "completed", &invoice(21.0)).await;
    let changed = undo("ann").await.unwrap_err();
    assert!(changed.contains("something else has happened"), "{changed}");
    assert_eq!(desk.case(later).await.document_data, Some(invoice(14.0)));
}

/// Above 5000 euros, and above nothing of any other currency.
fn four_eyes() -> ReviewConfig {
    let limits = [("EUR".to_owned(), Decimal::from(5000)), ("*".to_owned(), Decimal::ZERO)];
    ReviewConfig { four_eyes_above: limits.into(), ..ReviewConfig::default() }
}

/// A decision by these rules; `None` accepts.
async fn says(
    desk: &ReviewDesk,
    ingestion: IngestionId,
    who: &str,
    correction: Option<DataCorrection>,
) -> Result<review::RecordedDecision, String> {
    let (db, config) = (desk.database.db(), four_eyes());
    let (case, by) = (desk.case(ingestion).await, reviewer(who, &config, ""));
    let done = match correction {
        Some(data) => review::correct_document(&db, &case, data, &by).await,
        None => review::accept_document(&db, &case, AcceptedData::Document, &by).await,
    };
    done.map_err(|error| error.to_string())
}

#[tokio::test]
async fn above_the_amount_a_second_and_different_person_has_to_say_the_same() {
    let desk = ReviewDesk::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(9000.0)).await;
    let first = says(&desk, ingestion, "web:ann", None).await.unwrap();
    assert!(first.awaits_second);
    let case = desk.case(ingestion).await;
    assert_eq!((case.needs_human_review, &case.document_data), (true, &None), "it waits");
    assert!(case.review_reasons.iter().any(|reason| reason == "second_person"));
    for same in ["web:ann", "ann", "Ann"] {
        let refused = says(&desk, ingestion, same, None).await.unwrap_err();
        assert!(refused.contains("needs a second person"), "{same}: {refused}");
    }
    // A change needs two people again.
    let changed = says(&desk, ingestion, "bob", Some(total("9500"))).await.unwrap();
    assert!(changed.awaits_second);
    assert!(says(&desk, ingestion, "web:bob", None).await.is_err());
    let second = says(&desk, ingestion, "web:ann", None).await.unwrap();
    assert!(!second.awaits_second);
    let case = desk.case(ingestion).await;
    assert_eq!(case.document_data, Some(second.data.unwrap()));
    assert_eq!(case.document_data.as_ref().unwrap()["total"], 9500.0);
    assert!(!case.needs_human_review && case.review_reasons.is_empty());
    assert_eq!(case.revisions.last().unwrap().first_by.as_deref(), Some("bob"));
}

#[tokio::test]
async fn nobody_gets_below_the_amount_by_correcting_it_or_its_currency() {
    let desk = ReviewDesk::open().await;
    let (_, large) = desk.refused("acme", &invoice(9000.0)).await;
    assert!(says(&desk, large, "ann", Some(total("90"))).await.unwrap().awaits_second);
    let (_, small) = desk.refused("acme", &invoice(4000.0)).await;
    let currency = BTreeMap::from([("currency".to_owned(), "CHF".to_owned())]);
    let other = says(&desk, small, "ann", Some(DataCorrection::Fields(currency))).await.unwrap();
    assert!(other.awaits_second);
    let (_, small) = desk.refused("acme", &invoice(4000.0)).await;
    assert!(!says(&desk, small, "ann", None).await.unwrap().awaits_second);
}

#[tokio::test]
async fn what_waits_for_a_second_person_is_neither_exported_nor_kept_when_something_newer_is_read()
{
    let desk = ReviewDesk::open().await;
    let db = desk.database.db();
    let (document, ingestion) = desk.refused("acme", &invoice(9000.0)).await;
    says(&desk, ingestion, "ann", None).await.unwrap();
    let decided = async || {
        docmill_ledger::db::reviews::list_decided(&db, Uuid::nil(), 10).await.unwrap().len()
    };
    assert_eq!(decided().await, 0);
    // The second one, undone: the first one's word waits again.
    says(&desk, ingestion, "web:bob", None).await.unwrap();
    assert_eq!(decided().await, 1);
    review::undo_decision(&db, document.0, &reviewer("web:bob", &USUAL, "").by).await.unwrap();
    assert_eq!(decided().await, 0);
    assert_eq!(desk.case(ingestion).await.pending.unwrap().reviewer, "ann");
    assert!(says(&desk, ingestion, "ann", None).await.is_err());
    let later = IngestionId::random();
    desk.run(format!(
        "INSERT INTO ingestion (id, document_id, kind) VALUES ('{later}', '{document}', 'invoice')"
    ))
    .await;
    desk.end(later, "failed", &invoice(9100.0)).await;
    assert_eq!(desk.case(later).await.pending, None, "it was about what was read before");
    assert!(says(&desk, later, "bob", None).await.unwrap().awaits_second);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_command_line_the_same_person_is_not_the_second_either() {
    let world = crate::support::world::World::new().await;
    let (document, ingestion) = (DocumentId::random(), IngestionId::random());
    world.insert_rows(document, ingestion, "documents/x.pdf").await;
    world
        .execute(&format!(
            "UPDATE docmill.ingestion SET status = 'failed', kind = 'invoice', reason = 'gate_refused',
                 completed_at = now(), valid_structured_data = false, needs_human_review = true,
                 structured_data = '{}' WHERE id = '{ingestion}'",
            invoice(9000.0)
        ))
        .await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[review.four_eyes_above]\n\"*\" = 5000\n").unwrap();
    let logins = [
        world.database.login("docmill_operator").await,
        world.database.login("docmill_operator").await,
    ];
    let accepts = |who: &str, login: &str| {
        let arguments = ["review", "accept", &document.to_string(), "--config"].map(str::to_owned);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let settings = [("DATABASE__URL", login)];
        let mut command = crate::support::process::docmill(&world, &arguments, &settings);
        let output = command.arg(file.path()).env("DOCMILL_OPERATOR", who).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (done, said) = accepts("ann", &logins[0]);
    assert!(done && said.contains("waits for a second person"), "{said}");
    let (done, said) = accepts("ann", &logins[1]);
    assert!(!done && said.contains("needs a second person"), "{said}");
    // Another name in the environment is no other person.
    let (done, said) = accepts("bob", &logins[0]);
    assert!(!done && said.contains("both decisions come from the database login login_"), "{said}");
    let (done, said) = accepts("bob", &logins[1]);
    assert!(done && said.contains("accepted") && !said.contains("waits"), "{said}");
}
