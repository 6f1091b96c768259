//! Replay of decided documents from their stored transcripts: nothing is read again, regressions are
//! found and named, and the gate says no.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use docmill::app::App;
use docmill_core::config::{Config, ReviewConfig};
use docmill_core::model::IngestionId;
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::{AuditNote, kind_replays};
use docmill_ledger::db::reviews::replays::ReplayFilter;
use docmill_operations::kind_drafts::{
    self, KindDraft, KindReplay, KindReplayFilter, KindReplayRunner,
};
use docmill_operations::replay::{self, DecidedReplay, ReplayTerms};
use docmill_operations::review::{self, AcceptedData, DecidingReviewer};
use docmill_pipeline::shutdown::Shutdown;
use docmill_testkit::models::Script;
use tempfile::TempDir;
use uuid::Uuid;

use crate::costs::prices;
use crate::support::documents;
use crate::support::world::{SOON, World, until};

/// A world with one document that was read by rules and accepted.
async fn decided_world() -> World {
    let world = World::new().await;
    let sample = std::fs::read("samples/invoice_en.pdf").unwrap();
    accept(&world, sample).await;
    world
}

/// Has a document read, and accepts what was read.
async fn accept(world: &World, document: Vec<u8>) -> IngestionId {
    let worker = world.worker().await;
    let id = world.submit("invoice_en.pdf", document).await;
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
        effort: None,
    };
    review::accept_document(&db, &case, AcceptedData::Document, &by).await.unwrap();
    id
}

/// The kind of invoices with more text at the end of one of its files, in a folder of its own.
fn changed_kind(changed: &str, more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let kind = folder.path().join("invoice");
    std::fs::create_dir_all(&kind).unwrap();
    for file in ["kind.toml", "labels.toml", "prompt.md", "rules.toml", "schema.json"] {
        let own = std::fs::read_to_string(format!("config/kinds/invoice/{file}")).unwrap();
        let more = if file == changed { more } else { "" };
        std::fs::write(kind.join(file), format!("{own}{more}")).unwrap();
    }
    folder
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
        let db = self.database.db();
        let pipeline = Box::pin(App::new(config).replay_pipeline(&db)).await.unwrap();
        let terms = ReplayTerms {
            filter: ReplayFilter { tenant: tenant.map(str::to_owned), ..ReplayFilter::default() },
            limit: 2_000,
            at_once: 2,
            max_cost_nanos: None,
            max_worse,
        };
        Box::pin(replay::replay_decided(&db, &self.store, &pipeline, &terms)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_and_accepted_is_read_again_from_its_transcript_alone() {
    let world = decided_world().await;
    // A replay that needs the original fails.
    world.execute("UPDATE docmill.document SET file_path = 'documents/gone.pdf'").await;
    let same = world.replay(world.config.clone(), None, 0.99).await;
    assert_eq!((same.documents, same.changed, same.worse), (1, 0, 0), "{same:?}");
    assert!(same.taken && same.cost_nanos == 0);
    assert_eq!(world.scalar("SELECT count(*)::text FROM docmill.ingestion").await, "1");

    // A kind whose rules are content with nothing refuses what was accepted.
    let folder = changed_kind("rules.toml", STRICT);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_paid_out_of_the_day_and_not_out_of_its_documents() {
    let mut world = World::with_model(Script::default()).await;
    world.config.cost = prices("0");
    let id = accept(&world, documents::invoice("C-1")).await;
    let own = world.ledger().await.spent_on(id).await.unwrap();
    let folder = changed_kind("prompt.md", "\nRead every line.\n");
    let mut config = world.config.clone();
    config.kinds.path = folder.path().to_owned();
    let paid = world.replay(config.clone(), None, 0.99).await;
    assert!(paid.documents == 1 && paid.cost_nanos > 0 && !paid.cut_short, "{paid:?}");
    let rows = "SELECT string_agg(claims || ':' || calls, ' ' ORDER BY claims) \
                FROM docmill.spending WHERE cost_nanos > 0";
    assert_eq!(world.scalar(rows).await, "0:1 1:1");
    assert_eq!(world.ledger().await.spent_on(id).await.unwrap(), own);
    let day = "SELECT (sum(cost_nanos) = (SELECT sum(cost_nanos) FROM docmill.spending))::text \
               FROM docmill.spending_day";
    assert_eq!(world.scalar(day).await, "true");

    // The replay's own spending uses the budget up, and that ends it.
    config.cost = prices("0.000001");
    let asked = world.llm.as_ref().unwrap().calls().len();
    let over = world.replay(config, None, 0.99).await;
    assert_eq!((over.documents, over.cut_short, over.taken), (0, true, false), "{over:?}");
    assert_eq!(world.llm.as_ref().unwrap().calls().len(), asked);
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

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replays_that_are_taken_at_once_one_runs() {
    let world = World::new().await;
    let desk = DraftDesk::open(&world).await;
    let first = desk.ask("").await;
    desk.ask("").await;
    let mut other = world.pool.begin().await.unwrap();
    let taken = "UPDATE docmill.kind_replay SET state = 'running', worker = 'other',
                     started_at = docmill.docmill_now(),
                     lease_until = docmill.docmill_now() + interval '2 minutes' WHERE id = $1";
    sqlx::query(taken).bind(first).execute(&mut *other).await.unwrap();
    let db = world.database.db();
    let lease = Duration::from_secs(120);
    let claiming = tokio::spawn(async move { kind_replays::claim_replay(&db, "own", lease).await });
    let waits = "SELECT (count(*) = 1)::text FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(SOON, || async { claiming.is_finished() || world.scalar(waits).await == "true" }).await;
    other.commit().await.unwrap();
    assert_eq!(claiming.await.unwrap().unwrap(), None);
    let running = "SELECT count(*)::text FROM docmill.kind_replay WHERE state = 'running'";
    assert_eq!(world.scalar(running).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_in_the_shadow_reads_its_share_of_later_decisions_once_each() {
    let world = decided_world().await;
    let desk = DraftDesk::open(&world).await;
    let go_on = Shutdown::default();
    let id = desk.ask("").await;
    let by = AuditNote { operator: "ann".to_owned(), why: String::new() };
    assert!(!kind_drafts::set_shadow(&desk.db, id, Some(0.5), &by).await.unwrap());
    while desk.runner.run_next(&go_on).await.unwrap() {}
    assert!(desk.find(id).await.report.unwrap().taken);
    assert!(kind_drafts::set_shadow(&desk.db, id, Some(0.5), &by).await.unwrap());

    let now = Duration::ZERO;
    assert!(desk.runner.run_shadow(&go_on, now).await.unwrap());
    assert_eq!(desk.find(id).await.shadow, None, "the decision before is none of its share");
    world.copy_decided("later", 120, 120).await;
    assert!(desk.runner.run_shadow(&go_on, now).await.unwrap());
    let half = desk.find(id).await.shadow.unwrap();
    assert!((30..=90).contains(&half.documents) && half.worse == half.documents, "{half:?}");
    // Nothing is read twice, and what follows is added.
    assert!(desk.runner.run_shadow(&go_on, now).await.unwrap());
    assert_eq!(desk.find(id).await.shadow.unwrap(), half);
    world.copy_decided("last", 40, 0).await;
    assert!(desk.runner.run_shadow(&go_on, now).await.unwrap());
    let both = desk.find(id).await.shadow.unwrap();
    assert!(both.documents > half.documents && both.worse == half.worse, "{both:?}");
    assert!(both.named.len() >= half.named.len() && !both.cut_short);

    let interval = Duration::from_secs(600);
    assert!(!desk.runner.run_shadow(&go_on, interval).await.unwrap(), "it was looked at just now");
    assert!(kind_drafts::set_shadow(&desk.db, id, None, &by).await.unwrap());
    assert!(!desk.runner.run_shadow(&go_on, now).await.unwrap());
    assert_eq!(desk.find(id).await.shadow.unwrap(), both, "the counts stay");
}
