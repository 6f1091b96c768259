//! Operators at their pages.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use docmill::app::App;
use docmill_compat::objects::ObjectQueue;
use docmill_core::config::QueueBackend;
use docmill_core::model::{
    HOOK_PROVIDER, LaneBreaker, LocalDevice, LocalModelCalls, LocalModelReport, LocalModelState,
    Priority, ProviderLane,
};
use docmill_ledger::db::claims::PostgresLedger;
use docmill_ledger::db::reports::overview::{ReviewBacklog, measure_reviews};
use docmill_ledger::{Ledger as _, WorkerStatus};
use docmill_pipeline::shutdown::Shutdown;
use docmill_queue::{MessageQueue as _, OutgoingMessage};
use docmill_storage::folder::FolderStore;
use reqwest::StatusCode;

use super::api::given_up;
use super::desk::{WebConsole, form_fields, invoice, tokens};
use crate::support::postgres::TestDatabase;
use crate::support::process::Process;
use crate::support::world::{SOON, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_tells_what_waits_what_failed_and_what_it_cost() {
    let desk = WebConsole::open().await;
    desk.waiting("acme", "a.pdf").await;
    desk.refused("acme", &invoice(1.0)).await;
    let (_, held) = desk.waiting("acme", "b.pdf").await;
    desk.execute(&format!(
        "UPDATE ingestion SET claim_token = gen_random_uuid(), claims = 1, worker = 'w-1',
             lease_expires_at = docmill_now() + interval '5 minutes', started_at = docmill_now(),
             stage = 'transcribe', attempt_count = 1 WHERE id = '{held}'"
    ))
    .await;
    let lane = |in_flight, breaker, rate| ProviderLane {
        provider: "openai".to_owned(),
        model: "large".to_owned(),
        in_flight,
        waiting: 4,
        rate,
        breaker,
        denied: false,
        answered_s: None,
        answer_ms: None,
        failing_s: None,
    };
    let ledger = PostgresLedger::new(desk.database.db());
    for (worker, lane) in [
        ("w-1", lane(2, LaneBreaker::Closed, Some(1.5))),
        ("w-2", lane(5, LaneBreaker::Open, None)),
    ] {
        let status =
            WorkerStatus { slots: 4, slots_used: 1, lanes: vec![lane], local_models: None };
        ledger.save_worker_status(worker, &status).await.unwrap();
    }
    let operator = desk.browser("operator").await;
    let page = operator.get("/overview").await.body;
    for text in [
        "openai large",
        "open in 1 of them",
        "<td class=\"number\">7</td><td class=\"number\">8</td><td class=\"number\">90</td>",
        "<strong>2 of 8</strong>slots used",
        "<strong>2</strong>in progress",
        "gate_refused",
        "transcribe",
        "w-1",
        "spent today",
        "workers online",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains(&format!("/ingestions/{held}")));
}

/// A worker's calls to a hook: seconds since the last answer, and since calls fail.
fn hook_lane(name: &str, answered_s: Option<f64>, failing_s: Option<f64>) -> ProviderLane {
    ProviderLane {
        provider: HOOK_PROVIDER.to_owned(),
        model: name.to_owned(),
        in_flight: 0,
        waiting: 0,
        rate: None,
        breaker: LaneBreaker::Closed,
        denied: false,
        answered_s,
        answer_ms: answered_s.map(|_| 34),
        failing_s,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_stand_beside_the_webhooks_with_their_last_answer_and_since_when_they_fail() {
    let desk = WebConsole::open().await;
    let operator = desk.browser("operator").await;
    let before = operator.get("/webhooks").await.body;
    assert!(!before.contains("Hooks</h2>"), "{before}");
    let now = time::macros::datetime!(2026-11-29 12:00 UTC);
    desk.database.freeze(now).await;
    let ledger = PostgresLedger::new(desk.database.db());
    for (worker, lanes) in [
        // Of `spam` one worker has an answer that is newer than the other's failure.
        ("w-1", [hook_lane("spam", None, Some(600.0)), hook_lane("erp", Some(900.0), Some(660.0))]),
        ("w-2", [hook_lane("spam", Some(60.0), None), hook_lane("erp", None, Some(30.0))]),
    ] {
        let lanes = lanes.to_vec();
        let status = WorkerStatus { slots: 4, slots_used: 1, lanes, local_models: None };
        ledger.save_worker_status(worker, &status).await.unwrap();
    }
    let page = operator.get("/webhooks").await.body;
    let row = |name: &str| {
        let rest = page.split(&format!("<tr><td>{name}</td>")).nth(1).unwrap();
        let row = rest.split("</tr>").next().unwrap();
        row.to_owned()
    };
    let (spam, erp) = (row("spam"), row("erp"));
    assert!(
        spam.contains("healthy") && spam.contains("in 34 ms") && spam.contains("11:59"),
        "{spam}"
    );
    assert!(!spam.contains("since"), "{spam}");
    assert!(erp.contains("failing</span> since") && erp.contains("11:49"), "{erp}");
    assert!(erp.contains("in 34 ms") && erp.contains("11:45"), "{erp}");
    let overview = operator.get("/overview").await.body;
    assert!(overview.contains("Hook erp</a> has been failing since"), "{overview}");
    assert!(!overview.contains("Hook spam"), "{overview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_draws_the_hours_that_were_counted_and_leads_to_what_it_counts() {
    let desk = WebConsole::open().await;
    let operator = desk.browser("operator").await;
    let empty = operator.get("/overview").await.body;
    assert!(empty.contains("No hour has been counted yet."), "{empty}");
    desk.refused("acme", &invoice(1.0)).await;
    desk.execute(
        "INSERT INTO ended_hour (hour, completed, flagged, failed, cancelled, p50_s, p95_s,
             failures, cost_nanos)
         SELECT date_trunc('hour', docmill_now(), 'UTC') - n * interval '1 hour', 8, 2, 2, 1, 5, 200,
             '{\"corrupt\": 2}', 1500000000 FROM generate_series(1, 30) n",
    )
    .await;
    for (period, figures) in [
        ("", ["240 documents, at most 10 an hour", "60.0 % of 240", "48, most often corrupt (48)"]),
        ("?period=week", ["300 documents, at most 10", "60.0 % of 300", "95 % within 3 min"]),
        (
            "?period=month",
            ["300 documents, at most 10", "Cost: 45.00", "60, most often corrupt (60)"],
        ),
    ] {
        let page = operator.get(&format!("/overview{period}")).await.body;
        for text in figures {
            assert!(page.contains(text), "{period} {text}: {page}");
        }
        assert_eq!(page.matches("<svg").count(), 5, "{period}");
        assert!(!page.contains("<strong>–</strong>webhook"), "a figure is missing");
        for link in ["/reviews", "/webhooks", "/ingestions?status=failed&amp;since=1day"] {
            assert!(page.contains(&format!("<li><a href=\"{link}\">")), "{link}: {page}");
        }
    }
    let wrong = operator.get("/overview?period=year").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

/// A worker's report of a machine with one card and two models.
fn local_models(read_s: f64, held_mib: u64, state: LocalModelState) -> LocalModelReport {
    let card =
        LocalDevice { name: "gpu0".to_owned(), total_mib: 16_000, free_mib: 5_000, held_mib };
    let calls = |model: &str, needs_mib, state, waiting| LocalModelCalls {
        model: model.to_owned(),
        needs_mib,
        state,
        device: None,
        running: 2,
        waiting,
        oldest_s: (waiting > 0).then_some(90.0),
    };
    LocalModelReport {
        machine: Some("m-1".to_owned()),
        read_s,
        devices: vec![card],
        models: vec![
            calls("small:4b", Some(6_500), state, 0),
            calls("big:70b", None, LocalModelState::Waiting, 3),
        ],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_tells_which_local_models_have_memory_and_which_wait() {
    let desk = WebConsole::open().await;
    let ledger = PostgresLedger::new(desk.database.db());
    let reports = [
        ("w-1", local_models(30.0, 9_999, LocalModelState::Loaded)),
        ("w-2", local_models(1.0, 6_500, LocalModelState::Loading)),
    ];
    for (worker, report) in reports {
        let status = WorkerStatus { local_models: Some(report), ..WorkerStatus::default() };
        ledger.save_worker_status(worker, &status).await.unwrap();
    }
    ledger.save_worker_status("w-3", &WorkerStatus::default()).await.unwrap();
    let page = desk.browser("operator").await.get("/overview").await.body;
    let cells =
        |cells: &[&str]| cells.iter().map(|cell| format!("{cell}</td>")).collect::<String>();
    for row in [
        cells(&[
            "<td>big:70b",
            "<td class=\"number\">all of a device",
            "<td>not loaded in any of 2",
        ]),
        cells(&["<td>small:4b", "<td class=\"number\">6500", "<td>loaded in 1, loading in 1 of 2"]),
        // One machine: the newest reading, and what all of its workers hold.
        cells(&["<td>gpu0", "<td>w-2 and 1 more", "<td class=\"number\">16000"]),
        cells(&["<td class=\"number\">6500", "<td class=\"number\">5000"]),
    ] {
        assert!(page.contains(&row), "{row}: {page}");
    }
    assert!(page.find("big:70b") < page.find("small:4b"), "who waits longest stands first");
    assert!(!page.contains("9999"), "an older reading of the same memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_does_not_answer_is_told_and_hides_nothing_else() {
    let desk = WebConsole::open().await;
    desk.waiting("acme", "a.pdf").await;
    std::fs::remove_dir_all(desk.folder.path().join("queue")).unwrap();
    std::fs::write(desk.folder.path().join("queue"), "no folder").unwrap();
    let page = desk.browser("operator").await.get("/overview").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("The queue does not answer"), "{}", page.body);
    assert!(page.body.contains("<strong>1</strong>in progress"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingestion_tells_how_it_came_there_and_an_operator_retries_and_cancels_it() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.execute(&format!(
        "INSERT INTO attempt (ingestion_id, claims, token, worker, started_at, ended_at, stage, outcome, final, counted)
         VALUES ('{ingestion}', 1, gen_random_uuid(), 'w-7', docmill_now() - interval '90 seconds',
             docmill_now(), 'gate', 'gate_refused', true, true)"
    ))
    .await;
    let operator = desk.browser("operator").await;
    let path = format!("/ingestions/{ingestion}");
    let page = operator.get(&path).await.body;
    for text in
        ["w-7", "1 min", "The amounts do not add up to the total.", "Screws", "gate_refused"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(operator.get(&format!("/ingestions/{document}")).await.status, StatusCode::OK);

    let retry = format!("{path}/retry");
    let unsure = operator.send_form(&page, &retry, &[("why", "x"), ("confirm", "")]).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST, "nothing is done unconfirmed");
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
    let done = operator.send_form(&page, &retry, &[("why", "new rules"), ("confirm", "yes")]).await;
    assert_eq!(done.location(), format!("{path}?done=reopened"));
    let open = operator.get(done.location()).await.body;
    assert!(open.contains("It is open again, and its message is sent."));
    assert!(open.contains("Why it waits"), "{open}");
    assert!(open.contains("one in the queue; were it lost, another is sent"), "{open}");
    desk.execute("UPDATE ingestion SET parked_by = 'kind:<b>', parked_until = NULL").await;
    let parked = operator.get(&path).await.body;
    assert!(
        parked.contains("none, while there is the pause <bdi>kind:&lt;b&gt;</bdi>"),
        "{parked}"
    );
    desk.execute("UPDATE ingestion SET parked_by = NULL").await;

    let done = operator
        .send_form(&open, &format!("{path}/cancel"), &[("why", "not ours"), ("confirm", "yes")])
        .await;
    assert_eq!(done.location(), format!("{path}?done=cancelled"));
    let audit = "SELECT string_agg(operator || ' ' || action || ' ' || why, '; ' ORDER BY id) FROM operator_action";
    assert_eq!(
        desk.scalar(audit).await,
        "web:operator reopen new rules; web:operator cancel not ours"
    );
    let ended = operator.get(&path).await.body;
    for text in ["none is needed any more", "<td>reopen</td>", "new rules", "not ours"] {
        assert!(ended.contains(text), "{text}: {ended}");
    }
    let viewer = desk.browser("viewer").await.get(&path).await.body;
    assert!(!viewer.contains("not ours"), "who did what is for operators");
    assert!(
        !viewer.contains("<form method=\"post\" action=\"/ingestions"),
        "a viewer is offered nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_rows_and_all_that_match_are_retried_moved_and_cancelled_together() {
    let desk = WebConsole::open().await;
    let (_, first) = desk.refused("acme", &invoice(1.0)).await;
    let (_, second) = desk.refused("acme", &invoice(2.0)).await;
    let (_, other) = desk.refused("rival", &invoice(3.0)).await;
    let operator = desk.browser("operator").await;
    let list = operator.get("/ingestions?status=failed&tenant=acme").await.body;
    for id in [first, second] {
        assert!(list.contains(&format!("name=\"id\" value=\"{id}\"")), "{list}");
    }
    let viewer = desk.browser("viewer").await.get("/ingestions?status=failed").await.body;
    assert!(!viewer.contains("/ingestions/change") && !viewer.contains("checkbox"), "{viewer}");

    let action = "/ingestions/change";
    let sure = ("confirm", "yes");
    let picked = format!("{action}?of=selected&id={first}&id={second}&status=failed");
    let page = operator.get(&picked).await.body;
    assert!(page.contains("2 ingestions selected."), "{page}");
    let unsure = operator.send_form(&page, action, &[("change", "retry")]).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST, "nothing is done unconfirmed");
    let in_acme = format!("{action}?of=matching&status=in-progress&tenant=acme");
    for (path, change, counted, result) in [
        (picked.as_str(), "retry", "selected", "It is open again"),
        (&in_acme, "high", "match: status <bdi>in-progress</bdi>, tenant", "the new priority"),
        (&in_acme, "cancel", "match: status <bdi>in-progress</bdi>, tenant", "It is cancelled."),
    ] {
        let page = operator.get(path).await.body;
        assert!(page.contains(&format!("2 ingestions {counted}")), "{change}: {page}");
        let filled = [("change", change), ("why", "together"), sure];
        let done = operator.send_form(&page, action, &filled).await;
        assert_eq!(done.status, StatusCode::OK, "{change}: {done:?}");
        let row = "<td class=\"number\">2</td><td>It ";
        assert!(done.body.contains(row) && done.body.contains(result), "{change}: {}", done.body);
    }
    let audit = "SELECT string_agg(operator || ' ' || action || ' ' || why || ' ' || n, '; ' ORDER BY action)
        FROM (SELECT operator, action, why, count(*) n FROM operator_action GROUP BY 1, 2, 3) AS done";
    assert_eq!(
        desk.scalar(audit).await,
        "web:operator cancel together 2; web:operator reopen together 2; \
         web:operator reprioritize together 2"
    );
    let priorities = "SELECT string_agg(DISTINCT status || ' ' || priority, ',' ORDER BY
        status || ' ' || priority) FROM ingestion";
    assert_eq!(desk.scalar(priorities).await, "cancelled high,failed normal");
    assert!(operator.get("/ingestions?status=failed").await.body.contains(&other.to_string()));

    for wrong in ["of=matching", "of=selected", "of=selected&id=x", "status=failed"] {
        let answer = operator.get(&format!("{action}?{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}: {answer:?}");
    }
    let page = operator.get(&format!("{action}?of=matching&status=failed")).await.body;
    let unknown = operator.send_form(&page, action, &[("change", "erase"), sure]).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_ingestions_than_one_request_changes_are_changed_in_turn_and_none_is_left() {
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = tokens();
        for token in &mut config.web.tokens {
            token.highest_priority = Priority::Normal;
        }
    })
    .await;
    desk.execute(
        "WITH d AS (INSERT INTO document (file_path, tenant)
             SELECT 'documents/' || n, 'acme' FROM generate_series(1, 502) n RETURNING id)
         INSERT INTO ingestion (document_id, tenant, created_at)
             SELECT id, 'acme', '2026-01-01' FROM d",
    )
    .await;
    let operator = desk.browser("operator").await;
    let action = "/ingestions/change";
    let page = operator.get(&format!("{action}?of=matching&status=in-progress")).await.body;
    assert!(page.contains("More than 500 ingestions match"), "{page}");
    assert!(page.contains("\"normal\"") && !page.contains("\"high\""), "{page}");
    let urgent = [("change", "high"), ("confirm", "yes")];
    let refused = operator.send_form(&page, action, &urgent).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "above the token's priority");
    let filled = [("change", "cancel"), ("confirm", "yes")];
    let some = operator.send_form(&page, action, &filled).await.body;
    assert!(some.contains("<td class=\"number\">500</td>"), "{some}");
    let rest = operator.send_form(&some, action, &[]).await.body;
    assert!(rest.contains("<td class=\"number\">2</td>") && !rest.contains("Go on"), "{rest}");
    let open = "SELECT count(*) FROM ingestion WHERE status = 'in-progress'";
    assert_eq!(desk.scalar(open).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_set_shown_and_ended() {
    let desk = WebConsole::open().await;
    let operator = desk.browser("operator").await;
    let fields = [("scope", "kind"), ("name", "invoice"), ("why", "bad rules"), ("confirm", "yes")];
    let done = operator.submit("/pauses", "/pauses", &fields).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{done:?}");
    let page = operator.get("/pauses").await.body;
    assert!(page.contains("bad rules") && page.contains("web:operator"));
    assert!(operator.get("/overview").await.body.contains("bad rules"));
    let wrong = operator
        .submit("/pauses", "/pauses", &[("scope", "all"), ("name", "x"), ("confirm", "yes")])
        .await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let ended = operator.send_form(&page, "/pauses/end", &[("confirm", "yes")]).await;
    assert_eq!(ended.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "0");
    assert_eq!(
        desk.scalar("SELECT string_agg(action, ',' ORDER BY id) FROM operator_action").await,
        "pause,resume"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_replays_the_selected_deliveries_alone_and_asks_for_a_test() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(1.0)).await;
    let first = given_up(&desk, document).await;
    desk.execute(
        "INSERT INTO webhook_delivery (target, document_id, event, event_id, event_number,
             occurred_at, facts, state, open_since, ended_at)
         SELECT target, document_id, event, gen_random_uuid(), event_number + n, occurred_at, facts,
             state, open_since, ended_at FROM webhook_delivery, generate_series(1, 2) n",
    )
    .await;
    let (operator, page) = (desk.browser("operator").await, "/webhooks?target=erp");
    let shown = operator.get(page).await.body;
    assert_eq!(shown.matches("name=\"delivery\"").count(), 3);
    assert!(shown.contains("none yet"), "no message was sent to it");
    let secret = form_fields(&shown, "/webhooks/replay").remove(0).1;
    let form = format!("form_secret={secret}&target=erp&which=selected");
    let last = first + 2;
    let many = (0..101).map(|id| format!("&delivery={id}")).collect::<String>();
    for (rest, status) in [
        (format!("&delivery={first}"), StatusCode::BAD_REQUEST),
        ("&confirm=yes".to_owned(), StatusCode::BAD_REQUEST),
        ("&confirm=yes&delivery=x".to_owned(), StatusCode::BAD_REQUEST),
        (format!("&confirm=yes{many}"), StatusCode::BAD_REQUEST),
        (format!("&confirm=yes&delivery={}", last + 1), StatusCode::CONFLICT),
    ] {
        let refused = operator.post_raw("/webhooks/replay", &format!("{form}{rest}")).await;
        assert_eq!(refused.status, status, "{rest}");
    }
    let dead = "SELECT string_agg(id::text, ',') FROM webhook_delivery WHERE state = 'dead'";
    let chosen = format!("{form}&confirm=yes&delivery={first}&delivery={last}");
    let done = operator.post_raw("/webhooks/replay", &chosen).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, page));
    assert_eq!(desk.scalar(dead).await, (first + 1).to_string());

    let asked = operator.submit(page, "/webhooks/test", &[]).await;
    assert_eq!(asked.status, StatusCode::SEE_OTHER, "{asked:?}");
    assert!(operator.get(page).await.body.contains("not sent yet"));
    let unknown = operator.submit(page, "/webhooks/test", &[("target", "nobody")]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    desk.execute(
        "UPDATE webhook_target SET test_id = NULL, test_ended_at = now(), test_status = 204,
             test_ms = 41, tried_at = now(), answer_ms = 3000, answer_problem = 'timeout'",
    )
    .await;
    let viewer = desk.browser("viewer").await.get(page).await.body;
    assert!(viewer.contains("204 in 41 ms") && viewer.contains("no answer in 3000 ms"));
    assert!(!viewer.contains("name=\"delivery\"") && !viewer.contains("<button>Send a test"));
    let audit = "SELECT string_agg(operator || ' ' || action || ' ' || target, ', ' ORDER BY id)
        FROM operator_action WHERE action = 'test'";
    assert_eq!(desk.scalar(audit).await, "web:operator test webhook:erp");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_page_by_page_and_neither_lose_nor_repeat_a_row_of_the_same_moment() {
    let desk = WebConsole::open().await;
    desk.execute(
        "WITH d AS (INSERT INTO document (file_path, original_name, tenant)
             SELECT 'documents/' || n, 'file ' || n, 'acme' FROM generate_series(1, 120) n RETURNING id)
         INSERT INTO ingestion (document_id, tenant, created_at)
             SELECT id, 'acme', '2026-01-01' FROM d",
    )
    .await;
    let operator = desk.browser("operator").await;
    for start in ["/ingestions?tenant=acme", "/documents?q=file"] {
        let (mut path, mut seen, mut pages) = (start.to_owned(), BTreeSet::new(), 0);
        loop {
            let page = operator.get(&path).await.body;
            let links = page
                .split("href=\"/ingestions/")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap().to_owned());
            let links: Vec<String> = links.collect();
            assert!(links.len() <= 50);
            for id in links {
                assert!(seen.insert(id), "a row is shown twice");
            }
            pages += 1;
            let Some((_, next)) = page.split_once("rel=\"next\" href=\"") else { break };
            path = next.split('"').next().unwrap().replace("&amp;", "&");
        }
        assert_eq!((seen.len(), pages), (120, 3), "{start}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_found_by_id_name_hash_supplier_and_number() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    desk.waiting("acme", "other.pdf").await;
    let supplier =
        serde_json::json!({ "supplier_name": "Zimmer GmbH", "invoice_number": "RE-4711" });
    desk.execute(&format!("UPDATE document SET structured_data = '{supplier}', original_name = 'Rechnung 5.pdf' WHERE id = '{document}'")).await;
    let hash = desk.scalar(&format!("SELECT sha256 FROM document WHERE id = '{document}'")).await;
    let operator = desk.browser("operator").await;
    let hash: String = hash.chars().take(16).collect();
    for words in ["rechnung", "zimmer", "4711", "gmbh+re-4711", hash.as_str()] {
        let page = operator.get(&format!("/documents?q={words}")).await.body;
        assert!(page.contains(&ingestion.to_string()), "{words}: {page}");
        assert_eq!(page.matches("href=\"/ingestions/").count(), 1, "{words}");
    }
    let by_id = operator.get(&format!("/documents?q={document}")).await;
    assert_eq!(by_id.location(), format!("/ingestions/{document}"));
    assert!(operator.get("/documents?q=%25%25").await.body.contains("Nothing was found."));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_box_of_every_page_leads_to_the_only_document_with_a_key_and_lists_several() {
    let desk = WebConsole::open().await;
    let mut known = Vec::new();
    for (tenant, supplier, number, total) in [
        ("acme", "Zimmer GmbH", "RE-1", "120.5"),
        ("acme", "Zimmer KG", "RE-2", "120.50"),
        ("rival", "ZIMMER AG", "re-1", "7"),
    ] {
        let (document, ingestion) = desk.waiting(tenant, "x.pdf").await;
        desk.execute(&format!(
            "UPDATE document SET structured_data = '{{\"supplier_name\": \"{supplier}\",
                 \"invoice_number\": \"{number}\", \"total\": {total}}}' WHERE id = '{document}'"
        ))
        .await;
        known.push((document.to_string(), ingestion.to_string()));
    }
    let path = format!("documents/{}.pdf", known[1].0);
    for (name, text, found) in [
        ("operator", "re-2", vec![1]),
        ("operator", "RE-1", vec![0, 2]),
        ("acme", "RE-1", vec![0]),
        ("operator", "zimmer k", vec![1]),
        ("operator", "Zimmer", vec![0, 1, 2]),
        ("rival", "Zimmer", vec![2]),
        ("operator", "120,50", vec![0, 1]),
        ("operator", "7.00", vec![2]),
        ("acme", "7.00", vec![]),
        ("operator", "Zimmer%", vec![]),
        ("operator", path.as_str(), vec![1]),
    ] {
        let browser = desk.browser(name).await;
        let page = browser.get("/reviews").await.body;
        let form = super::desk::filled_form(&page, "/documents", &[("q", text)]);
        let answer = browser.get(&format!("/documents?{form}")).await;
        let place = |at: usize| format!("/ingestions/{}", known[at].1);
        if let [only] = found.as_slice() {
            assert_eq!(answer.location(), place(*only), "{name}: {text}: {answer:?}");
            continue;
        }
        assert_eq!(answer.status, StatusCode::OK, "{name}: {text}");
        for at in 0..known.len() {
            let shown = answer.body.contains(&format!("href=\"{}\"", place(at)));
            assert_eq!(shown, found.contains(&at), "{name}: {text}: {at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_without_a_token_are_told_that_the_pages_live_and_whether_postgres_answers() {
    let desk = WebConsole::open().await;
    let stranger = desk.stranger();
    for (path, says) in [("/livez", "alive"), ("/readyz", "ready")] {
        let answer = stranger.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, says));
    }
    desk.execute(
        "DO $$ DECLARE pages text; BEGIN
             FOR pages IN SELECT DISTINCT usename FROM pg_stat_activity
                 WHERE datname = current_database() AND usename LIKE 'login_%'
             LOOP EXECUTE format('ALTER ROLE %I NOLOGIN', pages); END LOOP;
         END $$;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND usename LIKE 'login_%'",
    )
    .await;
    until(SOON, || async {
        stranger.get("/readyz").await.status == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert_eq!(stranger.get("/livez").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_review_queue_is_measured_by_count_and_by_the_age_of_its_oldest_document() {
    let desk = WebConsole::open().await;
    let db = desk.database.db();
    let none = ReviewBacklog { waiting: 0, oldest_s: 0.0 };
    assert_eq!(measure_reviews(&db).await.unwrap(), none);
    let (old, _) = desk.refused("acme", &invoice(1.0)).await;
    desk.refused("acme", &invoice(2.0)).await;
    desk.execute(&format!(
        "UPDATE document SET updated_at = docmill_now() - interval '2 hours' WHERE id = '{old}'"
    ))
    .await;
    let found = measure_reviews(&db).await.unwrap();
    assert!(found.waiting == 2 && (7_200.0..7_260.0).contains(&found.oldest_s), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_a_sub_path_every_link_form_and_redirect_stays_below_it() {
    let desk = WebConsole::open_with(|config| {
        assert_eq!(config.queue.backend, QueueBackend::Folder);
        config.web.base_path = "/tools/docmill".to_owned();
    })
    .await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let local = desk.stranger();
    let first = local.get("/").await;
    assert_eq!(first.location(), "/tools/docmill/overview");
    let mut links = 0;
    for path in [
        "/overview".to_owned(),
        "/ingestions".to_owned(),
        format!("/ingestions/{ingestion}"),
        "/reviews".to_owned(),
        format!("/reviews/{document}"),
        "/pauses".to_owned(),
        "/api-reference".to_owned(),
        "/documents?q=a".to_owned(),
        "/nowhere".to_owned(),
    ] {
        let page = local.get(&path).await.body;
        for attribute in ["href=\"", "action=\"", "src=\""] {
            for target in page.split(attribute).skip(1) {
                assert!(
                    target.starts_with("/tools/docmill/") || target.starts_with('#'),
                    "{path}: {target:.80}"
                );
                links += 1;
            }
        }
    }
    assert!(links > 60, "{links}");
    let done = local
        .submit(
            &format!("/reviews/{document}"),
            &format!("/reviews/{document}"),
            &[("decision", "accept")],
        )
        .await;
    let undo = format!("/tools/docmill/reviews?done=accepted&undo={document}");
    assert_eq!(done.location(), undo);
    let api = local.get("/api/v1/openapi.json").await.json();
    assert_eq!(api["servers"][0]["url"], "/tools/docmill/api/v1");
    let outside = reqwest::get(format!("http://{}/overview", desk.address)).await.unwrap();
    assert_eq!(outside.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_the_operators_role_is_enough_for_every_page_and_action() {
    let desk = WebConsole::open_in_role("docmill_operator").await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let operator = desk.browser("operator").await;
    let review = format!("/reviews/{document}");
    let path = format!("/ingestions/{ingestion}");
    let pages =
        ["/overview", "/ingestions", "/documents?q=a", "/reviews", "/dead-letters", "/quality"];
    for page in pages.into_iter().chain([path.as_str(), review.as_str()]) {
        assert_eq!(operator.get(page).await.status, StatusCode::OK, "{page}");
    }
    let sure = ("confirm", "yes");
    let changes = [("field.total", "2"), ("decision", "correct")];
    for (page, action, filled) in [
        (&review, review.clone(), changes.to_vec()),
        (&path, format!("{path}/retry"), vec![sure]),
        (&path, format!("{path}/cancel"), vec![sure]),
        (&"/pauses".to_owned(), "/pauses".to_owned(), vec![("scope", "all"), sure]),
        (&"/pauses".to_owned(), "/pauses/end".to_owned(), vec![sure]),
    ] {
        let done = operator.submit(page, &action, &filled).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{action}: {done:?}");
    }
    let actions = "SELECT string_agg(action, ',' ORDER BY id) FROM operator_action";
    assert_eq!(desk.scalar(actions).await, "reopen,cancel,pause,resume");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_only_reads_shows_everything_and_changes_nothing() {
    let desk = WebConsole::open_in_role("docmill_reader").await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let operator = desk.browser("operator").await;
    let pages = ["/overview".to_owned(), "/ingestions".to_owned(), "/reviews".to_owned()];
    let those = [format!("/ingestions/{ingestion}"), format!("/reviews/{document}")];
    for page in pages.iter().chain(&those) {
        assert_eq!(operator.get(page).await.status, StatusCode::OK, "{page}");
    }
    let [path, review] = those;
    let retry = operator.submit(&path, &format!("{path}/retry"), &[("confirm", "yes")]).await;
    assert!(!retry.status.is_success() && !retry.status.is_redirection(), "{retry:?}");
    let accept = operator.submit(&review, &review, &[("decision", "accept")]).await;
    assert!(!accept.status.is_success() && !accept.status.is_redirection(), "{accept:?}");
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_sent_again_by_an_operator_who_means_it_and_the_audit_has_it() {
    let desk = WebConsole::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let store = Arc::new(FolderStore::open(&desk.folder.path().join("queue")).await.unwrap());
    let queue = ObjectQueue::new(store, Duration::from_secs(60), Some(1));
    assert!(queue.send(&[OutgoingMessage::from_body(ingestion.to_string())]).await[0].is_ok());
    let taken = queue.receive(1, Duration::from_secs(10)).await.unwrap().remove(0);
    assert!(queue.hide(&[(taken.receipt, Duration::ZERO)]).await[0].is_ok());
    assert!(queue.receive(1, Duration::ZERO).await.unwrap().is_empty(), "it is dead");

    let viewer = desk.browser("viewer").await;
    assert!(!viewer.get("/dead-letters").await.body.contains("redrive"));
    let operator = desk.browser("operator").await;
    let page = operator.get("/dead-letters").await.body;
    assert!(page.contains(&ingestion.to_string()), "{page}");
    let other = [("which", "all"), ("reason", "corrupt"), ("confirm", "yes")];
    let none = operator.send_form(&page, "/dead-letters/redrive", &other).await;
    assert_eq!(none.location(), "/dead-letters?done=0-0-1", "{none:?}");
    let unsure = operator.send_form(&page, "/dead-letters/redrive", &[]).await;
    assert_eq!(unsure.status, StatusCode::BAD_REQUEST);
    for (which, ids, status) in [
        ("selected", vec![], StatusCode::BAD_REQUEST),
        ("some", vec!["x"], StatusCode::BAD_REQUEST),
        ("selected", vec!["x"], StatusCode::SEE_OTHER),
    ] {
        let mut filled = vec![("which", which), ("confirm", "yes")];
        filled.extend(ids.into_iter().map(|id| ("letter", id)));
        let answer = operator.send_form(&page, "/dead-letters/redrive", &filled).await;
        assert_eq!(answer.status, status, "{which}: {answer:?}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0", "not the other");
    let (_, letter) = page.split_once("name=\"letter\" value=\"").unwrap();
    let letter = letter.split('"').next().unwrap();
    let sure = [("which", "selected"), ("letter", letter), ("why", "mended"), ("confirm", "yes")];
    let done = operator.send_form(&page, "/dead-letters/redrive", &sure).await;
    assert_eq!(done.location(), "/dead-letters?done=1-0-0", "{done:?}");
    let told = operator.get(done.location()).await.body;
    assert!(told.contains("Sent again: 1."), "{told}");
    assert!(operator.get("/dead-letters?done=%3Cb%3E").await.body.contains("No dead letters."));
    let again = queue.receive(1, Duration::from_secs(10)).await.unwrap();
    assert_eq!(again.first().map(|it| it.body.clone()), Some(ingestion.to_string()));
    let audit = "SELECT concat_ws(' ', action, operator, why) FROM operator_action";
    assert!(desk.scalar(audit).await.contains("web:operator mended"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingestion_tells_what_each_of_its_attempts_has_cost() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    desk.execute(&format!(
        "INSERT INTO spending (ingestion_id, claims, day, provider, model, document_id, calls,
             input_tokens, output_tokens, cost_nanos, unpriced_calls)
         SELECT '{ingestion}', claims, day, 'openai', 'large', '{document}', 1, 1000, 50, 20000000, 0
         FROM (VALUES (1, DATE '2026-01-01'), (1, DATE '2026-01-02'), (2, DATE '2026-01-02'))
             AS paid (claims, day)"
    ))
    .await;
    let page = desk.browser("viewer").await.get(&format!("/ingestions/{ingestion}")).await.body;
    let cell = |text: &str| format!("<td class=\"number\">{text}</td>");
    for text in ["openai large", &cell("2000"), &cell("0.04"), &cell("0.02")] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_serves_the_pages_too_where_that_is_wanted_and_ends_with_them() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = super::desk::console_config(&database, folder.path());
    std::fs::create_dir(&config.queue.path).unwrap();
    std::fs::create_dir(&config.store.path).unwrap();
    config.web.tokens = tokens();
    config.web.in_worker = true;
    config.worker.address = ([127, 0, 0, 1], 0).into();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    config.web.address = free;
    let stop = Shutdown::default();
    let app = App::new(config);
    let page = format!("http://{free}/api/v1/overview");
    let client = reqwest::Client::builder().timeout(SOON).build().unwrap();
    let ask = || async {
        let asked = client.get(&page).bearer_auth("token of viewer").send().await;
        asked.is_ok_and(|answer| answer.status() == StatusCode::OK)
    };
    let looking = async {
        until(SOON, ask).await;
        stop.request();
    };
    let (served, ()) = tokio::join!(Box::pin(app.serve(stop.clone())), looking);
    served.unwrap();
    assert!(!ask().await, "the pages are gone with the worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_a_tenant_that_nothing_has_is_refused_unless_that_is_meant() {
    let desk = WebConsole::open().await;
    desk.waiting("globex", "a.pdf").await;
    let operator = desk.browser("operator").await;
    let mut fields = vec![("scope", "tenant"), ("name", "globexx"), ("confirm", "yes")];
    let refused = operator.submit("/pauses", "/pauses", &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "0");
    fields.push(("unknown", "yes"));
    assert_eq!(operator.submit("/pauses", "/pauses", &fields).await.status, StatusCode::SEE_OTHER);
    let known = [("scope", "tenant"), ("name", "globex"), ("confirm", "yes")];
    assert_eq!(operator.submit("/pauses", "/pauses", &known).await.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "2");
}

/// `docmill web` as a process, with health pages on a port of their own.
fn start_pages(desk: &WebConsole) -> Process {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_docmill"));
    command
        .arg("web")
        .env("DOCMILL__DATABASE__URL", desk.database.url())
        .env("DOCMILL__QUEUE__BACKEND", "folder")
        .env("DOCMILL__QUEUE__PATH", desk.folder.path().join("queue"))
        .env("DOCMILL__STORE__BACKEND", "folder")
        .env("DOCMILL__STORE__PATH", desk.folder.path().join("store"))
        .env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0")
        .env("DOCMILL__WEB__ADDRESS", "127.0.0.1:0")
        .env("DOCMILL__WEB__BASE_PATH", "/desk");
    Process::spawn(command, "warn,docmill=info", desk.folder.path())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_the_template_of_their_route_and_shown_on_the_health_port_alone() {
    let desk = WebConsole::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let mut process = start_pages(&desk);
    until(SOON, || async { process.log().contains("/desk/") }).await;
    let log = process.log();
    let pages = log.split("http://").find(|rest| rest.contains("/desk/")).unwrap();
    let pages = format!("http://{}/desk", pages.split("/desk/").next().unwrap());
    for (path, status) in [
        (format!("/ingestions/{ingestion}"), 200),
        ("/ingestions/00000000-0000-0000-0000-000000000000".to_owned(), 404),
        ("/api/v1/ingestions?limit=x".to_owned(), 400),
        ("/nowhere/at/all".to_owned(), 404),
        ("/metrics".to_owned(), 404),
    ] {
        let answer = reqwest::get(format!("{pages}{path}")).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert!(!answer.text().await.unwrap().contains("docmill_web_requests_total"), "{path}");
    }
    let invented = reqwest::Method::from_bytes(b"INVENTED").unwrap();
    reqwest::Client::builder()
        .build()
        .unwrap()
        .request(invented, format!("{pages}/pauses"))
        .send()
        .await
        .unwrap();
    let health = format!("http://{}/metrics", process.pages());
    let counted = "docmill_web_requests_total{route=";
    let lines = [
        format!("{counted}\"/ingestions/{{id}}\",method=\"GET\",status=\"200\"}} 1"),
        format!("{counted}\"/ingestions/{{id}}\",method=\"GET\",status=\"404\"}} 1"),
        format!("{counted}\"/api/v1/ingestions\",method=\"GET\",status=\"400\"}} 1"),
        format!("{counted}\"none\",method=\"GET\",status=\"404\"}} 2"),
        format!("{counted}\"/pauses\",method=\"other\""),
        "docmill_web_request_seconds_count{route=\"/ingestions/{id}\",method=\"GET\"} 2".to_owned(),
        "docmill_web_sessions 0".to_owned(),
        "docmill_web_database_connections{state=\"used\"} ".to_owned(),
    ];
    let show = async || reqwest::get(&health).await.unwrap().text().await.unwrap();
    until(SOON, || async { show().await.contains("docmill_web_sessions") }).await;
    let page = show().await;
    for line in lines {
        assert!(page.contains(&line), "{line}: {page}");
    }
    assert!(!page.contains(&ingestion.to_string()) && !page.contains("INVENTED"), "{page}");
    process.terminate();
    assert!(process.ended(SOON).await.success());
}
