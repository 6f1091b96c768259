//! A file of several documents: cut where its pages prove it and the settings allow it, else flagged or
//! refused; and cut by a reviewer.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use docmill_core::config::{Config, KindsConfig, PacketMode, ReviewConfig};
use docmill_core::model::{IngestionId, PageRange, Transcript};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::operators::AuditNote;
use docmill_operations::review::{
    self, DecidingReviewer, DecisionRefusal, PacketCut, ReviewDecision,
};
use docmill_storage::{GetOptions, GetResult, keys};
use docmill_testkit::models::{Answer, Request, Script, read_document};
use serde_json::json;

use crate::maintenance::maintenance_of;
use crate::support::documents;
use crate::support::world::{SOON, World, until};

/// An invoice of two pages and one of one page; of the second one only the issuer and title if not `plain`.
fn packet(plain: bool) -> Vec<u8> {
    let first = [
        "Alder Tools Ltd",
        "12 Mill Lane, Leeds LS1 4AB",
        "INVOICE",
        "Invoice number: AT-2041",
        "Invoice date: 2024-05-06",
        "Hammer 2 60.00 120.00",
        "Page 1 of 2",
    ];
    let second = [
        "Alder Tools Ltd",
        "Invoice number: AT-2041",
        "Net 100.00",
        "VAT 20.00",
        "Total EUR 120.00",
        "Page 2 of 2",
    ];
    let other = [
        "Birch Foods GmbH",
        "Lindenweg 4, 10115 Berlin",
        "INVOICE",
        "Invoice number: BF-77310",
        "Invoice date: 2024-05-09",
        "Net 50.00",
        "VAT 5.00",
        "Total EUR 55.00",
        "Page 1 of 1",
    ];
    let unnumbered = ["Birch Foods GmbH", "INVOICE", "Flour and sugar", "Total EUR 55.00"];
    let last: &[&str] = if plain { &other } else { &unnumbered };
    let page = |lines: &[&str]| {
        let placed = lines.iter().enumerate();
        placed.map(|(row, text)| (60.0, 60.0 + 30.0 * row as f32, (*text).to_owned())).collect()
    };
    documents::pages(&[page(&first), page(&second), page(last)])
}

fn by_content(config: &mut Config) {
    config.packets.mode = PacketMode::Content;
}

async fn ended(world: &World) {
    let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
    until(SOON, || async { world.scalar(open).await == "0" }).await;
}

/// The numbers of the pages of an ingestion's transcript.
async fn pages_of(world: &World, id: IngestionId) -> Vec<u32> {
    let wanted = GetOptions { at_most: 1 << 26, if_match: None };
    let found = world.store.get(&keys::transcription_key(id), wanted).await.unwrap();
    let GetResult::Found(object) = found else { return Vec::new() };
    let transcript: Transcript = serde_json::from_slice(&object.bytes).unwrap();
    transcript.pages.iter().map(|page| page.number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_certainly_two_invoices_becomes_two_documents_with_its_pages() {
    let world = World::new().await;
    let parent = world.submit("stack.pdf", packet(true)).await;
    let worker = world.worker_with(by_content).await;
    ended(&world).await;
    worker.stop().await;
    let end = "status || ' ' || reader || ' ' || children || ' ' || (structured_data IS NULL)";
    assert_eq!(world.column(parent, end).await.unwrap(), "completed container 2 true");
    let parts = "SELECT string_agg(d.first_page || '-' || d.last_page || ' ' || i.status || ' ' ||
            (i.structured_data->>'invoice_number'), ', ' ORDER BY i.position)
        FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id
        WHERE i.parent_id IS NOT NULL";
    assert_eq!(world.scalar(parts).await, "1-2 completed AT-2041, 3-3 completed BF-77310");
    let children = world.all_ids().await.into_iter().filter(|id| *id != parent);
    let mut pages = Vec::new();
    for child in children {
        pages.push(pages_of(&world, child).await);
    }
    pages.sort();
    assert_eq!(pages, [vec![1, 2], vec![3]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_several_documents_is_flagged_by_default_and_refused_where_it_is_not_certain() {
    let world = World::new().await;
    let flagged = world.submit("stack.pdf", packet(true)).await;
    let worker = world.worker().await;
    ended(&world).await;
    worker.stop().await;
    let refused = world.submit("doubtful.pdf", packet(false)).await;
    let worker = world.worker_with(by_content).await;
    ended(&world).await;
    worker.stop().await;
    let told = "('several_documents' = ANY (review_reasons))::text";
    assert_eq!(world.column(flagged, told).await.unwrap(), "true");
    let end = "status || ' ' || reason || ' ' || ('several_documents' = ANY (review_reasons))";
    assert_eq!(world.column(refused, end).await.unwrap(), "failed gate_refused true");
    assert!(world.column(refused, "detail").await.unwrap().contains("which begin on page 3"));
    assert_eq!(world.all_ids().await.len(), 2, "nothing was cut");
}

fn is_about_boundary(request: &Request) -> bool {
    request.message("system").contains("begins another document")
}

/// Gives this answer about boundaries and counts them, has the first reading fail, and reads after that.
fn judging(answer: &'static str, asked: Arc<AtomicUsize>) -> Script {
    Script::function(move |request: &Request| match (is_about_boundary(request), request.number) {
        (true, _) => {
            asked.fetch_add(1, Ordering::SeqCst);
            Answer::Ok { content: json!({"second_page": answer}) }
        }
        (false, 1) => Answer::status(400),
        (false, _) => Answer::Ok { content: read_document(&request.body) },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_agrees_with_the_proposed_cut_cuts_and_one_that_does_not_leaves_it_to_a_person()
 {
    for (ask, answer, end, ingestions, questions) in [
        (true, "begins", "completed container", 3, 1),
        (true, "continues", "failed llm", 1, 1),
        (true, "a new one", "failed llm", 1, 1),
        (false, "begins", "failed llm", 1, 0),
    ] {
        let asked = Arc::new(AtomicUsize::new(0));
        let world = World::with_model(judging(answer, Arc::clone(&asked))).await;
        let parent = world.submit("doubtful.pdf", packet(false)).await;
        let asking = move |config: &mut Config| {
            by_content(config);
            config.packets.ask_on_ties = ask;
            config.llm.ask_again = false;
        };
        let worker = world.worker_with(asking).await;
        let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";
        world.pass_until(|| async { world.scalar(open).await == "0" }).await;
        worker.stop().await;
        let found = world.column(parent, "status || ' ' || reader").await.unwrap();
        assert_eq!((found.as_str(), world.all_ids().await.len()), (end, ingestions), "{answer}");
        assert_eq!(asked.load(Ordering::SeqCst), questions, "{answer}: once over all attempts");
        let kept = keys::packet_question_key(parent);
        let wanted = GetOptions { at_most: 1 << 20, if_match: None };
        let kept = matches!(world.store.get(&kept, wanted).await.unwrap(), GetResult::Found(_));
        assert_eq!(kept, ask, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_cuts_a_file_once_and_its_parts_are_worked_on_as_documents() {
    let world = World::new().await;
    let parent = world.submit("doubtful.pdf", packet(false)).await;
    let worker = world.worker_with(by_content).await;
    ended(&world).await;
    let (db, config) = (world.parts().await.db, ReviewConfig::default());
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let by = DecidingReviewer {
        by: AuditNote { operator: "web:ada".to_owned(), why: "two invoices".to_owned() },
        config: &config,
        kinds: &kinds,
        take_over: false,
        effort: None,
    };
    let seen = review::load_case(&db, &parent.to_string()).await.unwrap();
    let pages = PageRange { first: 1, last: 3 };
    let cut =
        |firsts: &[u32]| PacketCut { firsts: firsts.to_vec(), pages, sha256: "ab".to_owned() };
    for firsts in [&[][..], &[1], &[4], &[3, 2]] {
        let refused = review::cut_document(&db, &seen, &cut(firsts), &by).await;
        assert!(matches!(refused, Err(DecisionRefusal::Failed(_))), "{firsts:?}");
    }
    let done = review::cut_document(&db, &seen, &cut(&[3]), &by).await.unwrap();
    assert_eq!((done.decision, done.undo_until), (ReviewDecision::Rejected, None));
    let again = review::cut_document(&db, &seen, &cut(&[3]), &by).await;
    assert!(matches!(again, Err(DecisionRefusal::Changed)));
    assert_eq!(maintenance_of(&world).run_pass(false).await.woken, 2, "the parts get messages");
    world
        .pass_until(|| async {
            let open = "SELECT count(*)::text FROM docmill.ingestion WHERE status <> 'in-progress'";
            world.scalar(open).await == "3"
        })
        .await;
    worker.stop().await;
    let children = world.all_ids().await.into_iter().filter(|id| *id != parent);
    let mut pages = Vec::new();
    for child in children {
        pages.push(pages_of(&world, child).await);
    }
    pages.sort();
    assert_eq!(pages, [vec![1, 2], vec![3]]);
    let calls = "SELECT needs_human_review::text FROM docmill.document WHERE parent_id IS NULL";
    assert_eq!(world.scalar(calls).await, "false");
}
