//! Replay of decided documents from their stored transcripts: nothing is read again, regressions are
//! found and named, and the gate says no.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use docmill::app::App;
use docmill_core::config::{Config, ReviewConfig};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::reviews::replays::ReplayFilter;
use docmill_operations::kind_drafts::{
    self, KindDraft, KindReplay, KindReplayFilter, KindReplayRunner,
};
use docmill_operations::replay::{self, DecidedReplay, ReplayTerms};
use docmill_operations::review::{self, AcceptedData, DecidingReviewer};
use docmill_pipeline::shutdown::Shutdown;
use uuid::Uuid;

use crate::support::world::World;

/// A world with one document that was read by rules and accepted.
async fn decided_world() -> World {
    let world = World::new().await;
    let worker = world.worker().await;
    let sample = std::fs::read("samples/invoice_en.pdf").unwrap();
    let id = world.submit("invoice_en.pdf", sample).await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    let db = world.database.db();
    let case = review::load_case(&db, &id.to_string()).await.unwrap();
    let (rules, kinds) = (ReviewConfig::default(), KindSet::load(&world.config.kinds).unwrap());
    let by = DecidingReviewer {
        by: AuditNote { operator: "ann".to_owned(), why: String::new() },
        config: &rules,
        kinds: &kinds,
        take_over: false,
    };
    review::accept_document(&db, &case, AcceptedData::Document, &by).await.unwrap();
    world
}

impl World {
    /// `count` copies of the decided document, of another tenant, with the same transcript. Of the
    /// first `regressed`, another total was read and accepted: reading them now makes them worse.
    async fn copy_decided(&self, tenant: &str, count: u32, regressed: u32) {
        self.execute(&format!(
            "WITH source AS MATERIALIZED (
                 SELECT i.*, r.data_after FROM docmill.ingestion i
                 JOIN docmill.document_revision r ON r.document_id = i.document_id
                 WHERE i.tenant IS NULL LIMIT 1
             ), copied AS MATERIALIZED (
                 SELECT n, gen_random_uuid() AS id, gen_random_uuid() AS document,
                     CASE WHEN n <= {regressed} THEN jsonb_build_object('total', 0.07)
                         ELSE '{{}}' END AS other
                 FROM generate_series(1, {count}) AS n
             ), documents AS (
                 INSERT INTO docmill.document (id, file_path, tenant)
                 SELECT document, 'documents/gone.pdf', '{tenant}' FROM copied
             ), ingestions AS (
                 INSERT INTO docmill.ingestion (id, document_id, tenant, kind, reader, status,
                     completed_at, valid_structured_data, structured_data, transcription_file_path,
                     transcription_identity)
                 SELECT c.id, c.document, '{tenant}', s.kind, s.reader, 'completed', s.completed_at,
                     true, s.structured_data || c.other, s.transcription_file_path,
                     s.transcription_identity FROM copied c, source s
             )
             INSERT INTO docmill.document_revision (document_id, ingestion_id, reviewer, decision,
                 reasons_before, data_after)
             SELECT c.document, c.id, 'ann', 'accepted', '{{}}', s.data_after || c.other
             FROM copied c, source s"
        ))
        .await;
    }

    async fn replay(&self, config: Config, tenant: Option<&str>, max_worse: f64) -> DecidedReplay {
        let pipeline = Box::pin(App::new(config).local_pipeline()).await.unwrap();
        let terms = ReplayTerms {
            filter: ReplayFilter { tenant: tenant.map(str::to_owned), kind: None },
            limit: 2_000,
            at_once: 2,
            max_cost_nanos: None,
            max_worse,
        };
        let db = self.database.db();
        Box::pin(replay::replay_decided(&db, &self.store, &pipeline, &terms)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_and_accepted_is_read_again_from_its_transcript_alone() {
    let world = decided_world().await;
    // Whoever needs the original fails.
    world.execute("UPDATE docmill.document SET file_path = 'documents/gone.pdf'").await;
    let same = world.replay(world.config.clone(), None, 0.99).await;
    assert_eq!((same.documents, same.changed, same.worse), (1, 0, 0), "{same:?}");
    assert!(same.taken && same.cost_nanos == 0);
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.ingestion").await, "1");

    // A kind whose rules are content with nothing refuses what was accepted.
    let folder = tempfile::tempdir().unwrap();
    let kind = folder.path().join("invoice");
    std::fs::create_dir_all(&kind).unwrap();
    for file in ["kind.toml", "labels.toml", "prompt.md", "rules.toml", "schema.json"] {
        std::fs::copy(format!("config/kinds/invoice/{file}"), kind.join(file)).unwrap();
    }
    let rules = std::fs::read_to_string(kind.join("rules.toml")).unwrap();
    let strict =
        "[[rule]]\nname = \"never\"\ncheck = \"score\"\nleast = 1.0\nconsequence = \"review\"\n";
    std::fs::write(kind.join("rules.toml"), format!("{rules}\n{strict}")).unwrap();
    let mut config = world.config.clone();
    config.kinds.path = folder.path().to_owned();
    let other = world.replay(config, None, 0.99).await;
    assert_eq!((other.documents, other.changed, other.worse), (1, 1, 1), "{other:?}");
    assert!(!other.taken && other.named[0].failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn regressions_of_one_two_and_five_in_a_hundred_are_counted_named_and_refused() {
    let world = decided_world().await;
    for (tenant, count, regressed, taken) in [
        ("clean", 300, 0, true),
        ("one", 300, 3, false),
        ("two", 150, 3, false),
        ("five", 60, 3, false),
    ] {
        world.copy_decided(tenant, count, regressed).await;
        let report = world.replay(world.config.clone(), Some(tenant), 0.01).await;
        assert_eq!((report.documents, report.worse), (count, regressed), "{tenant}");
        assert_eq!(report.taken, taken, "{tenant}: {}", report.worse_at_most);
        let named = report.named.iter().filter(|one| one.worse.contains("total")).count();
        assert_eq!(named, usize::try_from(regressed).unwrap(), "{tenant}");
    }
}

/// The drafts of kinds in a world, and the worker that replays them.
struct DraftDesk {
    db: Db,
    kinds: KindSet,
    runner: KindReplayRunner,
}

impl DraftDesk {
    async fn open(world: &World) -> Self {
        let app = App::new(world.config.clone());
        let (_, _, runner) = Box::pin(app.build_parts(&world.parts().await)).await.unwrap();
        let kinds = KindSet::load(&world.config.kinds).unwrap();
        Self { db: world.database.db(), kinds, runner }
    }

    /// Asks for the replay of a draft with these rules more.
    async fn ask(&self, rules: &str) -> Uuid {
        let own = &self.kinds.files_of("invoice").unwrap()["rules.toml"];
        let draft = KindDraft {
            tenant: None,
            kind: "invoice".to_owned(),
            files: BTreeMap::from([("rules.toml".to_owned(), format!("{own}{rules}"))]),
            max_documents: 2_000,
            max_worse: 0.99,
            max_cost_nanos: 0,
        };
        let by = AuditNote { operator: "ann".to_owned(), why: String::new() };
        kind_drafts::ask_replay(&self.db, &self.kinds, draft, &by).await.unwrap()
    }

    async fn find(&self, id: Uuid) -> KindReplay {
        let wanted = KindReplayFilter { id: Some(id), ..KindReplayFilter::default() };
        kind_drafts::list_replays(&self.db, &wanted, 1).await.unwrap().pop().unwrap()
    }
}

const STRICT: &str =
    "\n[[rule]]\nname = \"never\"\ncheck = \"score\"\nleast = 1.0\nconsequence = \"review\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_replays_drafts_as_the_command_does_and_none_is_left_open_by_its_end() {
    let world = decided_world().await;
    let desk = DraftDesk::open(&world).await;
    let go_on = Shutdown::default();
    assert!(!desk.runner.run_next(&go_on).await.unwrap());
    let (same, worse, other) = (desk.ask("").await, desk.ask(STRICT).await, desk.ask("").await);
    let changed = "UPDATE docmill.kind_replay SET version = repeat('0', 64) WHERE id";
    world.execute(&format!("{changed} = '{other}'")).await;
    while desk.runner.run_next(&go_on).await.unwrap() {}
    let mut printed = world.replay(world.config.clone(), None, 0.99).await;
    let mut report = desk.find(same).await.report.unwrap();
    (printed.seconds, report.seconds) = (0.0, 0.0);
    assert_eq!((report.documents, &report), (1, &printed));
    let report = desk.find(worse).await.report.unwrap();
    assert_eq!((report.worse, report.taken, report.named[0].failed), (1, false, true));

    // The first is run by a worker that dies, the second by one that is stopped.
    let lost = desk.ask("").await;
    world
        .execute(
            "UPDATE docmill.kind_replay SET state = 'running', worker = 'gone',
                 started_at = docmill.docmill_now(),
                 lease_until = docmill.docmill_now() - interval '1 second' WHERE state = 'waiting'",
        )
        .await;
    let stopped = desk.ask("").await;
    let stop = Shutdown::default();
    stop.request();
    while desk.runner.run_next(&stop).await.unwrap() {}
    for (id, problem) in [(other, "deploy both"), (lost, "is gone"), (stopped, "was stopped")] {
        let run = desk.find(id).await.run;
        assert!(run.state == "failed" && run.problem.unwrap().contains(problem));
    }
}
