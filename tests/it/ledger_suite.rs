//! Claims and their ends: one suite over every ledger, a differential test over random histories,
//! and what only Postgres has to show.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod children;
mod fixture;
mod histories;
mod lane;
mod locks;
mod plans;
mod together;

use std::time::Duration;

use docmill_core::config::RetryConfig;
use docmill_core::fault::Fault;
use docmill_core::model::{
    ArtefactRef, ClaimToken, DocumentId, IngestionId, IngestionStatus, LaneBreaker, OutcomeReason,
    ProviderLane,
};
use docmill_ledger::duplicate_key::{DuplicateKeys, NearKeys, PaymentFacts};
use docmill_ledger::{
    ClaimOutcome, ClaimRelease, ClaimRequest, IngestionResult, LeaseRenewal, LeaseStatus,
    OperatorPause, QuarantinedMessage, ReadBack, StoredTranscript, VersionOutcome, WorkerStatus,
    WriteResult,
};
use docmill_pipeline::failure::{RetryAttempt, RetryDecision, decide_retry};

use fixture::{Fixture, START, failed, object, record, renewal, terms};

const LEASE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn a_row_is_claimed_by_one_and_busy_for_the_rest_of_the_lease() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let claimed = at.take(id).await;
        assert_eq!((claimed.attempt, claimed.claims, claimed.suspect), (1, 1, false));
        assert_eq!(claimed.document.file_path, "documents/x.pdf");
        at.advance(Duration::from_secs(100)).await;
        let ClaimOutcome::Busy(left) = at.claim(id).await else { panic!("not busy") };
        assert_eq!(left, Duration::from_secs(200));
        let unknown = at.claim(IngestionId::random()).await;
        assert!(matches!(unknown, ClaimOutcome::Unknown), "{unknown:?}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_in_the_order_it_was_asked() {
    for at in Fixture::both().await {
        let mut ids: Vec<IngestionId> = (0..10).map(|_| IngestionId::random()).collect();
        for id in ids.iter().skip(1) {
            at.insert(*id, DocumentId::random()).await;
        }
        ids.sort_by_key(|id| std::cmp::Reverse(id.0.as_u128().rotate_left(17)));
        let answers = at.ledger().claim(&ids, &terms()).await.unwrap();
        for (id, answer) in ids.iter().zip(&answers) {
            match answer {
                ClaimOutcome::Claimed(claimed) => assert_eq!(claimed.id, *id),
                ClaimOutcome::Unknown => assert!(at.row(*id).await.is_none()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(answers.len(), 10);
        assert!(at.ledger().claim(&[], &terms()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_renewed_lease_keeps_others_out_and_a_foreign_token_renews_nothing() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let token = at.take(id).await.token;
        at.advance(Duration::from_secs(299)).await;
        let asked = [
            renewal(id, ClaimToken::random()),
            renewal(id, token),
            renewal(IngestionId::random(), token),
        ];
        let renewed = at.ledger().renew_leases(&asked, LEASE).await.unwrap();
        assert_eq!(renewed, [LeaseStatus::Lost, LeaseStatus::Renewed, LeaseStatus::Lost]);
        at.advance(Duration::from_secs(299)).await;
        assert!(matches!(at.claim(id).await, ClaimOutcome::Busy(_)));
    }
}

#[tokio::test]
async fn an_expired_lease_is_closed_as_crashed_and_the_document_becomes_a_suspect() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let ClaimOutcome::Claimed(zombie) = at.claim_beside(id).await else { panic!("free") };
        at.advance(LEASE + Duration::from_secs(7)).await;
        let ClaimOutcome::Suspect(since) = at.claim_beside(id).await else { panic!("a suspect") };
        assert!((7..300).contains(&since.as_secs()), "accused when its lease ended: {since:?}");
        assert!(at.attempts(id).await.is_empty(), "asking for it beside others changes nothing");
        let second = at.take(id).await;
        assert_eq!((second.attempt, second.claims, second.suspect), (1, 2, true), "given back");
        let attempts = at.attempts(id).await;
        assert_eq!(attempts.len(), 1);
        assert_eq!((attempts[0].outcome, attempts[0].token), ("crashed", zombie.token));
        assert!(!attempts[0].is_final && !attempts[0].counted && !attempts[0].alone);
        assert_eq!(at.row(id).await.unwrap().crashes, 0, "its worker had others in hand");
    }
}

#[tokio::test]
async fn a_worker_that_dies_with_twenty_documents_in_hand_convicts_none_however_often() {
    for at in Fixture::both().await {
        let mut ids = Vec::new();
        for _ in 0..20 {
            ids.push(IngestionId::random());
            at.insert(ids[ids.len() - 1], DocumentId::random()).await;
        }
        let asked: Vec<_> = ids.iter().map(|id| ClaimRequest::with_fresh_token(*id)).collect();
        let answers = at.ledger().claim_with_tokens(&asked, &terms()).await.unwrap();
        assert!(answers.iter().all(|answer| matches!(answer, ClaimOutcome::Claimed(_))));
        at.advance(LEASE).await;
        for id in &ids {
            assert!(matches!(at.claim_beside(*id).await, ClaimOutcome::Suspect(_)));
            let claimed = at.take(*id).await;
            assert_eq!((claimed.attempt, claimed.suspect), (1, true));
            let ended = at.ledger().record_result(*id, claimed.token, &record(None)).await;
            assert_eq!(ended.unwrap(), WriteResult::Applied);
            assert_eq!(at.row(*id).await.unwrap().crashes, 0);
        }
    }
}

#[tokio::test]
async fn where_workers_die_whatever_they_have_in_hand_no_document_is_convicted() {
    for at in Fixture::both().await {
        let mut ids = Vec::new();
        for _ in 0..6 {
            ids.push(IngestionId::random());
            at.insert(ids[ids.len() - 1], DocumentId::random()).await;
        }
        for _ in 0..5 {
            for id in &ids {
                at.take(*id).await;
            }
            at.advance(LEASE).await;
        }
        for id in &ids {
            let crashes = at.row(*id).await.unwrap().crashes;
            assert!(crashes <= 1, "only while nothing spoke for the workers' fault: {crashes}");
            assert_eq!(at.row(*id).await.unwrap().attempt_count, 1 + crashes, "given back");
        }
    }
}

#[tokio::test]
async fn a_killer_beside_documents_that_survive_alone_ends_by_its_third_death() {
    for at in Fixture::both().await {
        let killer = IngestionId::random();
        at.insert(killer, DocumentId::random()).await;
        let another = IngestionId::random();
        at.insert(another, DocumentId::random()).await;
        for death in 0..3 {
            at.take(killer).await;
            // Others survive; one more kills as well, but three of four do not.
            for place in 0..4 {
                let id = IngestionId::random();
                at.insert(id, DocumentId::random()).await;
                let token = at.take(id).await.token;
                at.ledger().record_result(id, token, &record(None)).await.unwrap();
                if (death, place) == (0, 0) {
                    at.take(another).await;
                }
            }
            at.advance(LEASE).await;
        }
        assert!(matches!(at.claim(killer).await, ClaimOutcome::Exhausted));
        let row = at.row(killer).await.unwrap();
        assert_eq!((row.crashes, row.reason), (3, Some(OutcomeReason::Crashed)));
        assert_eq!(at.row(another).await.unwrap().status, IngestionStatus::InProgress);
    }
}

#[tokio::test]
async fn two_killers_by_turns_on_workers_without_other_work_both_end() {
    for at in Fixture::both().await {
        let killers = [IngestionId::random(), IngestionId::random()];
        for id in killers {
            at.insert(id, DocumentId::random()).await;
        }
        for _ in 0..8 {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            let token = at.take(id).await.token;
            at.ledger().record_result(id, token, &record(None)).await.unwrap();
        }
        for _ in 0..3 {
            for id in killers {
                at.take(id).await;
                at.advance(LEASE).await;
            }
        }
        for id in killers {
            assert!(matches!(at.claim(id).await, ClaimOutcome::Exhausted));
        }
    }
}

#[tokio::test]
async fn a_suspect_that_was_survived_is_none_before_its_end_is_written() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        for death in 1..=5 {
            let token = at.take(id).await.token;
            let over = LeaseRenewal { is_over: true, ..renewal(id, token) };
            let renewed = at.ledger().renew_leases(&[over], LEASE).await.unwrap();
            assert_eq!(renewed, [LeaseStatus::Renewed]);
            // Its worker begins something that kills it.
            at.advance(LEASE).await;
            let row = at.row(id).await.unwrap();
            assert_eq!((row.crashes, row.attempt_count), (0, 1), "death {death}");
        }
        let token = at.take(id).await.token;
        at.ledger().record_result(id, token, &record(None)).await.unwrap();
        assert_eq!(at.row(id).await.unwrap().status, IngestionStatus::Completed);
    }
}

#[tokio::test]
async fn what_an_attempt_keeps_clears_its_document_and_what_is_used_again_does_not() {
    let artefact = |name: &str| ArtefactRef { path: "p".to_owned(), identity: name.to_owned() };
    let transcript = |name: &str| StoredTranscript {
        artefact: artefact(name),
        quality: 0.9,
        sha256: "a".repeat(64),
        pages: 1,
        preprocessed: None,
    };
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let ledger = at.ledger();
        for (step, cleared) in
            [("new transcript", true), ("same transcript", false), ("reply", true), ("page", true)]
        {
            at.take(id).await;
            at.advance(LEASE).await;
            let token = at.take(id).await.token;
            assert_eq!(at.row(id).await.unwrap().crashes, 1, "{step}");
            match step {
                "reply" => {
                    ledger.save_extraction(id, token, &artefact("r")).await.unwrap();
                }
                "page" => {
                    let kept = LeaseRenewal { has_progress: true, ..renewal(id, token) };
                    ledger.renew_leases(&[kept], LEASE).await.unwrap();
                }
                _ => {
                    ledger.save_transcription(id, token, &transcript("t")).await.unwrap();
                }
            }
            let row = at.row(id).await.unwrap();
            let expected = if cleared { (0, true) } else { (1, false) };
            assert_eq!((row.crashes, row.accused_at.is_none()), expected, "{step}");
            // For the next step: cleared either way.
            ledger.save_extraction(id, token, &artefact("r")).await.unwrap();
            ledger.release_claim(id, token, &failed(Fault::Unavailable, false, 0)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn crashes_that_a_release_before_this_one_counted_convict_nobody() {
    let at = Fixture::postgres().await;
    let Fixture::Postgres { database, .. } = &at else { unreachable!("it is Postgres") };
    let id = IngestionId::random();
    at.insert(id, DocumentId::random()).await;
    sqlx::query("UPDATE ingestion SET crashes = 2").execute(database.pool()).await.unwrap();
    assert!(matches!(at.claim_beside(id).await, ClaimOutcome::Suspect(_)), "but it is a suspect");
    at.take(id).await;
    at.advance(LEASE).await;
    assert!(at.take(id).await.suspect);
    assert_eq!(at.row(id).await.unwrap().crashes, 1, "counted anew");
}

#[tokio::test]
async fn the_third_silent_death_ends_a_document_as_crashed() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        for _ in 0..3 {
            at.take(id).await;
            at.advance(LEASE).await;
        }
        let answer = at.claim(id).await;
        assert!(matches!(answer, ClaimOutcome::Exhausted), "{answer:?}");
        let row = at.row(id).await.unwrap();
        assert_eq!(
            (row.status, row.reason),
            (IngestionStatus::Failed, Some(OutcomeReason::Crashed))
        );
        assert!(row.needs_human_review);
        assert_eq!(row.valid_structured_data, Some(false));
        let attempts = at.attempts(id).await;
        let finals: Vec<bool> = attempts.iter().map(|attempt| attempt.is_final).collect();
        assert_eq!(finals, [false, false, true]);
        let after = at.claim(id).await;
        assert!(matches!(after, ClaimOutcome::Terminal(IngestionStatus::Failed)), "{after:?}");
    }
}

#[tokio::test]
async fn invariant_2_nothing_is_written_under_a_token_that_is_not_in_the_row() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let zombie = at.take(id).await.token;
        at.advance(LEASE).await;
        let owner = at.take(id).await.token;
        let before = (at.row(id).await, at.attempts(id).await);
        let ledger = at.ledger();
        let artefact = ArtefactRef { path: "p".to_owned(), identity: "i".to_owned() };
        let saved = StoredTranscript {
            artefact: artefact.clone(),
            quality: 0.5,
            sha256: "f".repeat(64),
            pages: 1,
            preprocessed: None,
        };
        let how = failed(Fault::Transient, true, 15);
        let stage = docmill_core::model::IngestionStage::Gate;
        let answers = [
            ledger.record_result(id, zombie, &record(None)).await.unwrap(),
            ledger.release_claim(id, zombie, &how).await.unwrap(),
            ledger.save_transcription(id, zombie, &saved).await.unwrap(),
            ledger.save_extraction(id, zombie, &artefact).await.unwrap(),
        ];
        assert_eq!(answers, [WriteResult::ClaimLost; 4]);
        let adopted = ledger.adopt_version(id, zombie, "another").await.unwrap();
        assert_eq!(adopted, VersionOutcome::Lost);
        let mut news = LeaseRenewal { new_stage: Some(stage), ..renewal(id, zombie) };
        assert_eq!(ledger.renew_leases(&[news], LEASE).await.unwrap(), [LeaseStatus::Lost]);
        assert_eq!((at.row(id).await, at.attempts(id).await), before);
        assert_eq!(ledger.read_back(id, zombie).await.unwrap(), ReadBack::Lost);
        assert_eq!(ledger.read_back(id, owner).await.unwrap(), ReadBack::StillHeld);
        news.token = owner;
        assert_eq!(ledger.renew_leases(&[news], LEASE).await.unwrap(), [LeaseStatus::Renewed]);
        assert_eq!(at.row(id).await.unwrap().stage, Some(stage), "told with the renewal");
        assert_eq!(
            ledger.save_transcription(id, owner, &saved).await.unwrap(),
            WriteResult::Applied
        );
        assert_eq!(
            ledger.save_extraction(id, owner, &artefact).await.unwrap(),
            WriteResult::Applied
        );
        assert_eq!(
            ledger.record_result(id, owner, &record(None)).await.unwrap(),
            WriteResult::Applied
        );
        assert_eq!(
            ledger.record_result(id, owner, &record(None)).await.unwrap(),
            WriteResult::ClaimLost
        );
        assert_eq!(ledger.read_back(id, owner).await.unwrap(), ReadBack::Recorded);
    }
}

#[tokio::test]
async fn faults_of_dependencies_release_the_document_and_its_own_are_counted() {
    let table = [
        // fault               counted  attempts after  in a streak of deferrals
        (Fault::Transient, true, 1, false),
        (Fault::Throttled(None), false, 0, true),
        (Fault::Unavailable, false, 0, true),
        (Fault::Interrupted, false, 0, false),
    ];
    for at in Fixture::both().await {
        for (fault, counted, attempts, deferred) in table {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            let token = at.take(id).await.token;
            let how = failed(fault, counted, 60);
            assert_eq!(
                at.ledger().release_claim(id, token, &how).await.unwrap(),
                WriteResult::Applied
            );
            let row = at.row(id).await.unwrap();
            assert_eq!(row.attempt_count, attempts, "{fault:?}");
            assert_eq!(row.deferred_since.is_some(), deferred, "{fault:?}");
            assert_eq!((row.claim_token, row.lease_expires_at), (None, None));
            let ended = at.attempts(id).await;
            assert_eq!((ended[0].outcome, ended[0].counted), (fault.code(), counted));
            let ClaimOutcome::NotDue(left) = at.claim(id).await else { panic!("due at once") };
            assert_eq!(left, Duration::from_secs(60));
            at.advance(Duration::from_secs(58)).await;
            let again = at.take(id).await;
            assert_eq!(again.attempt, attempts + 1, "{fault:?}");
            assert_eq!(again.deferred_for, deferred.then_some(Duration::from_secs(58)));
        }
    }
}

#[tokio::test]
async fn a_streak_of_deferrals_lasts_until_an_attempt_counts() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        for _ in 0..3 {
            let token = at.take(id).await.token;
            let how = failed(Fault::Unavailable, false, 3600);
            at.ledger().release_claim(id, token, &how).await.unwrap();
            at.advance(Duration::from_secs(3600)).await;
        }
        let third = at.take(id).await;
        assert_eq!(third.deferred_for, Some(Duration::from_secs(3 * 3600)));
        at.ledger()
            .release_claim(id, third.token, &failed(Fault::Interrupted, false, 0))
            .await
            .unwrap();
        let fourth = at.take(id).await;
        assert_eq!(fourth.deferred_for, Some(Duration::from_secs(3 * 3600)));
        at.ledger()
            .release_claim(id, fourth.token, &failed(Fault::Transient, true, 0))
            .await
            .unwrap();
        assert_eq!(at.take(id).await.deferred_for, None);
    }
}

#[tokio::test]
async fn neither_a_pause_nor_a_place_in_line_brings_a_document_nearer_to_its_deferral_limit() {
    let long = Duration::from_secs(9 * 3600);
    let refused = Fault::Throttled(None);
    let decide = |deferred_for| {
        let attempt = RetryAttempt { number: 1, deferred_for, jitter: 0.0 };
        decide_retry(refused, attempt, &RetryConfig::default())
    };
    let ended = RetryDecision::End(OutcomeReason::DeferredTooLong);
    assert_eq!(decide(Some(long)), ended, "it is longer than the limit");
    let waits = [
        Fault::Paused,
        Fault::Denied,
        Fault::Misconfigured,
        Fault::OverBudget(Duration::from_secs(60)),
        Fault::Batched(Duration::from_secs(60)),
    ];
    for at in Fixture::both().await {
        for fault in waits {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            let token = at.take(id).await.token;
            // For as long as the limit and longer, not for a minute that grows in line.
            let how = failed(fault, false, long.as_secs());
            at.ledger().release_claim(id, token, &how).await.unwrap();
            at.advance(long).await;
            let again = at.take(id).await;
            assert_ne!(decide(again.deferred_for), ended, "{fault:?}, then its first 429");
        }
        // A 429, a deploy, a worker that dies: each time it waits in line for nine hours.
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let first = at.take(id).await.token;
        at.ledger().release_claim(id, first, &failed(refused, false, 60)).await.unwrap();
        at.advance(Duration::from_secs(60) + long).await;
        let second = at.take(id).await;
        assert_eq!(second.deferred_for, Some(Duration::from_secs(60)), "as long as it was put off");
        let stopped = failed(Fault::Interrupted, false, 0);
        at.ledger().release_claim(id, second.token, &stopped).await.unwrap();
        at.advance(long).await;
        at.take(id).await;
        at.advance(LEASE + long).await;
        let last = at.take(id).await;
        assert_eq!(last.deferred_for, Some(Duration::from_secs(60) + LEASE));
    }
}

#[tokio::test]
async fn a_reopened_document_starts_from_its_first_attempt_and_keeps_its_history() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        for _ in 0..3 {
            at.take(id).await;
            at.advance(LEASE).await;
        }
        assert!(matches!(at.claim(id).await, ClaimOutcome::Exhausted));
        assert!(at.reopen(id).await);
        assert!(!at.reopen(id).await, "only what is terminal is reopened");
        let claimed = at.take(id).await;
        assert_eq!((claimed.attempt, claimed.claims, claimed.suspect), (1, 4, false));
        assert_eq!(at.attempts(id).await.len(), 3);
    }
}

#[tokio::test]
async fn a_cancelled_claim_is_lost_and_its_attempt_is_closed() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let token = at.take(id).await.token;
        assert!(at.cancel(id).await);
        assert!(!at.cancel(id).await);
        let lost = at.ledger().record_result(id, token, &record(None)).await.unwrap();
        assert_eq!(lost, WriteResult::ClaimLost);
        let attempts = at.attempts(id).await;
        assert_eq!((attempts[0].outcome, attempts[0].is_final), ("cancelled", true));
        assert!(matches!(at.claim(id).await, ClaimOutcome::Terminal(IngestionStatus::Cancelled)));
    }
}

#[tokio::test]
async fn a_newer_object_supersedes_unclaimed_ingestions() {
    for at in Fixture::both().await {
        let (old, new) = (object("k", Some("e"), Some("0F")), object("k", Some("f"), Some("10")));
        let id = at.ledger().register_object(&old).await.unwrap();
        at.advance(Duration::from_secs(1)).await;
        assert_eq!(at.ledger().register_object(&new).await.unwrap(), new.ingestion);
        let row = at.row(id).await.unwrap();
        assert_eq!(
            (row.status, row.reason, row.superseded_by),
            (IngestionStatus::Cancelled, Some(OutcomeReason::Superseded), Some(new.ingestion))
        );
        let claimed = at.take(new.ingestion).await;
        assert_eq!(claimed.document.etag.as_deref(), Some("f"));
        let before = at.row(new.ingestion).await;
        assert_eq!(at.ledger().register_object(&new).await.unwrap(), new.ingestion);
        assert_eq!(at.row(new.ingestion).await, before, "repeating an event changes nothing");
    }
}

#[tokio::test]
async fn an_untrusted_or_absurd_sequencer_supersedes_no_waiting_ingestion() {
    for at in Fixture::both().await {
        let genuine = object("k", Some("e"), Some("0055AED6DCD90281E5"));
        at.ledger().register_object(&genuine).await.unwrap();
        for (etag, sequencer) in
            [("x", None), ("y", Some("f".repeat(64))), ("z", Some("zz".into()))]
        {
            at.advance(Duration::from_secs(1)).await;
            let forged = object("k", Some(etag), sequencer.as_deref());
            at.ledger().register_object(&forged).await.unwrap();
        }
        let row = at.row(genuine.ingestion).await.unwrap();
        assert_eq!(row.status, IngestionStatus::InProgress);
        // Nor is what comes later taken for late: what is in the store now is registered.
        let next = object("k", Some("f"), Some("1"));
        at.advance(Duration::from_secs(1)).await;
        at.ledger().register_object(&next).await.unwrap();
        assert_eq!(at.row(next.ingestion).await.unwrap().status, IngestionStatus::InProgress);
    }
}

#[tokio::test]
async fn one_version_of_an_object_is_one_ingestion_whatever_its_events_are_called() {
    for at in Fixture::both().await {
        let first = object("k", Some("e"), None);
        let id = at.ledger().register_object(&first).await.unwrap();
        for sequencer in ["1", "2", "ff"] {
            let again = object("k", Some("e"), Some(sequencer));
            assert_eq!(at.ledger().register_object(&again).await.unwrap(), id, "{sequencer}");
        }
        let token = at.take(id).await.token;
        let failed = record(Some(OutcomeReason::GateRefused));
        at.ledger().record_result(id, token, &failed).await.unwrap();
        at.advance(Duration::from_secs(1)).await;
        assert_eq!(at.ledger().register_object(&first).await.unwrap(), id, "nothing is new");
        let put_again = object("k", Some("e"), Some("3"));
        let second = at.ledger().register_object(&put_again).await.unwrap();
        assert_ne!(second, id, "put there once more, after a failure");
        // Back to what it was two versions ago: that is read, too.
        at.advance(Duration::from_secs(1)).await;
        at.ledger().register_object(&object("k", Some("f"), Some("4"))).await.unwrap();
        at.advance(Duration::from_secs(1)).await;
        let back = object("k", Some("e"), Some("5"));
        assert_eq!(at.ledger().register_object(&back).await.unwrap(), back.ingestion);
    }
}

#[tokio::test]
async fn an_object_that_changed_is_read_as_it_is_unless_another_ingestion_reads_that() {
    for at in Fixture::both().await {
        let old = object("k", Some("e"), Some("1"));
        let id = at.ledger().register_object(&old).await.unwrap();
        let token = at.take(id).await.token;
        let adopt = |token, etag| at.ledger().adopt_version(id, token, etag);
        assert_eq!(adopt(ClaimToken::random(), "f").await.unwrap(), VersionOutcome::Lost);
        assert_eq!(adopt(token, "f").await.unwrap(), VersionOutcome::Adopted);
        assert_eq!(at.row(id).await.unwrap().object_etag.as_deref(), Some("f"));
        // The event about that version finds that it is being read.
        at.advance(Duration::from_secs(1)).await;
        let event = object("k", Some("f"), Some("2"));
        assert_eq!(at.ledger().register_object(&event).await.unwrap(), id);
        let newer = object("k", Some("g"), Some("3"));
        let successor = at.ledger().register_object(&newer).await.unwrap();
        assert_eq!(adopt(token, "g").await.unwrap(), VersionOutcome::SupersededBy(successor));
        assert_eq!(at.row(id).await.unwrap().superseded_by, Some(successor));
        // One that was cancelled reads nothing.
        assert!(at.cancel(successor).await);
        assert_eq!(adopt(token, "g").await.unwrap(), VersionOutcome::Adopted);
    }
}

#[tokio::test]
async fn unknown_ids_are_found_by_one_query() {
    for at in Fixture::both().await {
        let known = IngestionId::random();
        at.insert(known, DocumentId::random()).await;
        let unknown = [IngestionId::random(), IngestionId::random()];
        let asked = [unknown[0], known, unknown[1]];
        assert_eq!(at.ledger().find_unknown(&asked).await.unwrap(), unknown);
        assert_eq!(at.ledger().find_unknown(&[]).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_held_ingestion_is_not_superseded_under_its_worker() {
    for at in Fixture::both().await {
        let (old, new) = (object("k", Some("e"), Some("1")), object("k", Some("f"), Some("2")));
        at.ledger().register_object(&old).await.unwrap();
        let token = at.take(old.ingestion).await.token;
        at.ledger().register_object(&new).await.unwrap();
        let asked = [renewal(old.ingestion, token)];
        let held = at.ledger().renew_leases(&asked, LEASE).await.unwrap();
        assert_eq!(held, [LeaseStatus::Renewed]);
    }
}

#[tokio::test]
async fn a_duplicate_is_the_newest_completed_one_of_another_document() {
    for at in Fixture::both().await {
        let mut ids = Vec::new();
        for reason in [None, None, Some(OutcomeReason::GateRefused)] {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            let token = at.take(id).await.token;
            at.ledger().record_result(id, token, &record(reason)).await.unwrap();
            at.advance(Duration::from_secs(1)).await;
            ids.push(id);
        }
        let own = at.row(ids[1]).await.unwrap().document_id;
        for (document, number, expected) in [
            (DocumentId::random(), "r1", Some(ids[1])),
            (own, "r1", Some(ids[0])),
            (DocumentId::random(), "r2", None),
        ] {
            let keys = DuplicateKeys::new(" MÜLLER", number).unwrap();
            let find = |tenant| at.ledger().find_duplicate(document, tenant, &keys);
            assert_eq!(find(None).await.unwrap(), expected, "{number}");
            assert_eq!(find(Some("other")).await.unwrap(), None, "tenants share nothing");
        }
    }
}

#[tokio::test]
async fn a_duplicate_is_found_and_flagged_however_it_is_spelled() {
    #[rustfmt::skip]
    let table = [
        ("Müller GmbH.",             "R-1",       true),
        ("Mu\u{308}ller G.m.b.H.",   "R\u{2011}1", true),
        ("МULLER",                   "R 1.",      true),
        ("Müller",                   "R 11",      false),
        ("Müller Bau",               "R 1",       false),
        ("Möller",                   "R 1",       false),
    ];
    for (supplier, number, again) in table {
        for at in Fixture::both().await {
            let first = IngestionId::random();
            at.insert(first, DocumentId::random()).await;
            let token = at.take(first).await.token;
            at.ledger().record_result(first, token, &record(None)).await.unwrap();
            let keys = DuplicateKeys::new(supplier, number).unwrap();
            let find = at.ledger().find_duplicate(DocumentId::random(), None, &keys);
            assert_eq!(find.await.unwrap(), again.then_some(first), "{supplier} {number}");
            let end = IngestionResult {
                duplicate_keys: DuplicateKeys::new(supplier, number),
                duplicate_rule: Some("again".to_owned()),
                ..record(None)
            };
            let second = IngestionId::random();
            at.insert(second, DocumentId::random()).await;
            let token = at.take(second).await.token;
            at.ledger().record_result(second, token, &end).await.unwrap();
            let flagged = at.row(second).await.unwrap().needs_human_review;
            assert_eq!(flagged, again, "{supplier} {number}");
        }
    }
}

#[tokio::test]
async fn an_invoice_that_an_earlier_release_recorded_is_found_by_the_same_spelling() {
    let at = Fixture::postgres().await;
    let Fixture::Postgres { database, .. } = &at else { unreachable!("it was asked for") };
    let first = IngestionId::random();
    at.insert(first, DocumentId::random()).await;
    let token = at.take(first).await.token;
    let end = IngestionResult {
        duplicate_keys: DuplicateKeys::new("Müller  GmbH", "R 1/1"),
        duplicate_rule: Some("again".to_owned()),
        ..record(None)
    };
    at.ledger().record_result(first, token, &end).await.unwrap();
    let before = "UPDATE ingestion SET duplicate_key =
        encode(sha256(convert_to('müllergmbh' || chr(10) || 'r1/1', 'UTF8')), 'hex')";
    sqlx::query(before).execute(database.pool()).await.unwrap();
    let keys = DuplicateKeys::new("müller gmbh", "R1/1").unwrap();
    let found = at.ledger().find_duplicate(DocumentId::random(), None, &keys);
    assert_eq!(found.await.unwrap(), Some(first));
    let second = IngestionId::random();
    at.insert(second, DocumentId::random()).await;
    let token = at.take(second).await.token;
    at.ledger().record_result(second, token, &end).await.unwrap();
    assert_eq!(at.row(second).await.unwrap().review_reasons, ["again"]);
}

#[tokio::test]
async fn of_two_copies_of_an_invoice_that_were_judged_beside_each_other_one_is_flagged() {
    const COPIES: usize = 12;
    for at in Fixture::both().await {
        let mut claimed = Vec::new();
        for _ in 0..COPIES {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            claimed.push((id, at.take(id).await.token));
        }
        // None has completed when the gate looks; all are recorded at the same moment.
        let end = IngestionResult { duplicate_rule: Some("again".to_owned()), ..record(None) };
        let ledger = at.ledger();
        let ends = claimed.iter().map(|(id, token)| ledger.record_result(*id, *token, &end));
        for written in futures::future::join_all(ends).await {
            assert_eq!(written.unwrap(), WriteResult::Applied);
        }
        let mut unflagged = 0;
        for (id, _) in &claimed {
            let row = at.row(*id).await.unwrap();
            assert_eq!(row.status, IngestionStatus::Completed);
            let reasons = if row.needs_human_review { vec!["again"] } else { vec![] };
            assert_eq!(row.review_reasons, reasons);
            unflagged += usize::from(!row.needs_human_review);
        }
        assert_eq!(unflagged, 1, "of the copies only the first one may be paid unseen");
    }
}

#[tokio::test]
async fn of_two_near_duplicates_that_were_judged_beside_each_other_one_is_flagged() {
    for at in Fixture::both().await {
        let facts = |number| PaymentFacts {
            supplier: Some("Müller GmbH"),
            number: Some(number),
            issued: Some("2026-03-14"),
            total: Some("119"),
            kind: "invoice",
        };
        let mut claimed = Vec::new();
        for number in ["RE-17", "RE-71", "RE-18"] {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            let end = IngestionResult {
                near_rule: Some("near".to_owned()),
                near_keys: NearKeys::new(&facts(number)),
                duplicate_keys: DuplicateKeys::new("Müller GmbH", number),
                duplicate_rule: Some("again".to_owned()),
                ..record(None)
            };
            claimed.push((id, at.take(id).await.token, end));
        }
        let ledger = at.ledger();
        let ends = claimed.iter().map(|(id, token, end)| ledger.record_result(*id, *token, end));
        for written in futures::future::join_all(ends).await {
            assert_eq!(written.unwrap(), WriteResult::Applied);
        }
        let mut flagged = 0;
        for (id, ..) in &claimed {
            let row = at.row(*id).await.unwrap();
            let expected = if row.needs_human_review { vec!["near"] } else { vec![] };
            assert_eq!(row.review_reasons, expected);
            flagged += usize::from(row.needs_human_review);
        }
        assert_eq!(flagged, 2, "only the first may be paid unseen");
    }
}

#[tokio::test]
async fn a_duplicate_is_flagged_only_for_another_document_and_by_a_rule() {
    for at in Fixture::both().await {
        let rule = IngestionResult { duplicate_rule: Some("again".to_owned()), ..record(None) };
        let failed = IngestionResult { reason: Some(OutcomeReason::GateRefused), ..rule.clone() };
        let keys = DuplicateKeys::new("Müller", "2");
        let other = IngestionResult { duplicate_keys: keys, ..rule.clone() };
        let own = DocumentId::random();
        for (document, end, flagged) in [
            (DocumentId::random(), &failed, true),
            (own, &rule, false),
            (own, &rule, false),
            (DocumentId::random(), &other, false),
            (DocumentId::random(), &record(None), false),
            (DocumentId::random(), &rule, true),
        ] {
            let id = IngestionId::random();
            at.insert(id, document).await;
            let token = at.take(id).await.token;
            at.ledger().record_result(id, token, end).await.unwrap();
            let row = at.row(id).await.unwrap();
            assert_eq!(row.needs_human_review, flagged);
            let said = row.review_reasons.iter().any(|reason| reason == "again");
            assert_eq!(said, flagged && end.reason.is_none());
        }
    }
}

#[tokio::test]
async fn a_hostile_document_cannot_make_its_own_outcome_unrecordable() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let token = at.take(id).await.token;
        let mut end = record(None);
        let long = format!("a\0{}", "x".repeat(100_000));
        let data = serde_json::json!({"supplier_name": long, "invoice_number": long, "\0": 1e308});
        end.duplicate_keys = DuplicateKeys::new(&long, &long);
        end.structured_data = data.as_object().cloned();
        end.review_reasons = vec!["a\"\\,{}'\0".to_owned()];
        end.detail = "\0".to_owned();
        assert_eq!(at.ledger().record_result(id, token, &end).await.unwrap(), WriteResult::Applied);
        let row = at.row(id).await.unwrap();
        assert_eq!(row.review_reasons, ["a\"\\,{}'\u{fffd}"]);
        let message = QuarantinedMessage {
            message_id: "m".to_owned(),
            body: "\0\u{7f}".to_owned(),
            reason: "malformed".to_owned(),
            receive_count: u32::MAX,
        };
        at.ledger().quarantine_message(&message).await.unwrap();
        at.ledger().quarantine_message(&message).await.unwrap();
    }
}

#[tokio::test]
async fn a_fresh_ledger_has_nothing_paused_and_nothing_blocked() {
    for at in Fixture::both().await {
        assert_eq!(at.ledger().active_pauses().await.unwrap(), Vec::<OperatorPause>::new());
        assert!(!at.ledger().is_blocked(&"0".repeat(64)).await.unwrap());
        let lane = ProviderLane {
            provider: "openai".to_owned(),
            model: "large".to_owned(),
            in_flight: 2,
            waiting: 3,
            rate: None,
            breaker: LaneBreaker::Open,
            denied: false,
            answered_s: None,
            answer_ms: None,
            failing_s: None,
        };
        let vitals =
            WorkerStatus { slots: 4, slots_used: 1, lanes: vec![lane], local_models: None };
        at.ledger().save_worker_status("w1", &vitals).await.unwrap();
        at.ledger().save_worker_status("w1", &WorkerStatus::default()).await.unwrap();
        assert_eq!(at.ledger().current_time().await.unwrap(), START);
    }
}

#[tokio::test]
async fn invariant_13_a_claim_brings_the_time_by_the_clock_of_the_ledger() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let day = Duration::from_secs(86_400);
        at.advance(day).await;
        assert_eq!(at.take(id).await.claimed_at, START + day);
        assert_eq!(at.ledger().current_time().await.unwrap(), START + day);
    }
}

#[tokio::test]
async fn a_claim_asked_for_again_under_its_token_is_the_same_claim_and_no_crash() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let asked = [ClaimRequest::with_fresh_token(id)];
        let mut terms = terms();
        // As with messages that are deleted before the work.
        terms.crash_limit = 1;
        // The second answer comes while the lease runs, the third when it is long over.
        for seconds in [0, 200, 400] {
            at.advance(Duration::from_secs(seconds)).await;
            let answer = at.ledger().claim_with_tokens(&asked, &terms).await.unwrap().remove(0);
            let ClaimOutcome::Claimed(claimed) = answer else { panic!("{seconds} s: {answer:?}") };
            assert_eq!((claimed.token, claimed.claims), (asked[0].token, 1));
            assert_eq!((claimed.attempt, claimed.suspect), (1, false));
        }
        let row = at.row(id).await.unwrap();
        assert_eq!((row.claims, row.attempt_count, row.crashes), (1, 1, 0));
        assert!(at.attempts(id).await.is_empty(), "nothing has ended");
        at.advance(Duration::from_secs(299)).await;
        assert!(matches!(at.claim(id).await, ClaimOutcome::Busy(_)), "the lease is a new one");
    }
}

#[tokio::test]
async fn the_holders_write_is_read_back_and_anothers_is_a_loss() {
    for at in Fixture::both().await {
        let ledger = at.ledger();
        let mut taken = Vec::new();
        for _ in 0..4 {
            let id = IngestionId::random();
            at.insert(id, DocumentId::random()).await;
            taken.push((id, at.take(id).await.token));
        }
        let how = failed(Fault::Unavailable, false, 0);
        ledger.release_claim(taken[0].0, taken[0].1, &how).await.unwrap();
        ledger.record_result(taken[1].0, taken[1].1, &record(None)).await.unwrap();
        at.cancel(taken[2].0).await;
        at.advance(LEASE + Duration::from_secs(1)).await;
        at.take(taken[3].0).await;
        let mut read = Vec::new();
        for (id, token) in taken {
            read.push(ledger.read_back(id, token).await.unwrap());
        }
        use ReadBack::{Lost, Recorded};
        assert_eq!(
            read,
            [Recorded, Recorded, Lost, Lost],
            "released, recorded, cancelled, crashed"
        );
    }
}

#[tokio::test]
async fn denied_work_is_retried_at_growing_intervals_until_another_outcome() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        let put_off = async |fault| {
            let token = at.take(id).await.token;
            let how = failed(fault, false, 60);
            assert_eq!(
                at.ledger().release_claim(id, token, &how).await.unwrap(),
                WriteResult::Applied
            );
            let ClaimOutcome::NotDue(wait) = at.claim(id).await else { panic!("due") };
            at.advance(wait).await;
            wait.as_secs() / 60
        };
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(put_off(Fault::Denied).await);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60], "minutes");
        assert_eq!(put_off(Fault::Unavailable).await, 1);
        assert_eq!(put_off(Fault::Misconfigured).await, 1);
        assert_eq!(put_off(Fault::Denied).await, 2);
    }
}

#[tokio::test]
async fn a_document_that_a_sick_worker_refuses_again_and_again_stays_due_soon_for_another() {
    for at in Fixture::both().await {
        let id = IngestionId::random();
        at.insert(id, DocumentId::random()).await;
        for _ in 0..6 {
            let token = at.take(id).await.token;
            let how = ClaimRelease { is_shared: true, ..failed(Fault::Misconfigured, false, 60) };
            let given = at.ledger().release_claim(id, token, &how).await.unwrap();
            assert_eq!(given, WriteResult::Applied);
            let ClaimOutcome::NotDue(wait) = at.claim(id).await else { panic!("due") };
            assert!(wait <= Duration::from_secs(60), "{wait:?}");
            at.advance(wait).await;
        }
    }
}
