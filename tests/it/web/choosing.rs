//! Several rows of a list at once: rejected, exported and changed by people and by programs.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::process::Command;

use docmill_core::model::DocumentId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::desk::{Browser, PageAnswer, WebConsole, invoice, send};

const REJECT: &str = "/reviews/reject";
const UNDO: &str = "/reviews/undo";
const EXPORT: &str = "/ingestions/export";

/// The ticked boxes of the page of a rejection, as a browser sends them.
fn picks(page: &str) -> Vec<String> {
    let boxes = page.split("name=\"pick\" checked value=\"").skip(1);
    boxes.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

async fn reject(
    ann: &Browser<'_>,
    page: &str,
    picked: &[String],
    filled: &[(&str, &str)],
) -> PageAnswer {
    let mut all: Vec<(&str, &str)> = vec![("confirm", "yes")];
    all.extend(filled);
    let form = super::desk::filled_form(page, REJECT, &all);
    let picked = picked.iter().map(|pick| format!("&pick={}", pick.replace(' ', "+")));
    ann.post_raw(REJECT, &(form + &picked.collect::<String>())).await
}

async fn version_of(desk: &WebConsole, document: DocumentId) -> String {
    desk.get(&format!("/reviews/{document}"), "ann").await.json()["version"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn ticked_documents_are_rejected_with_a_reason_and_what_has_changed_or_is_open_stays() {
    let desk = WebConsole::open().await;
    let mut all = Vec::new();
    for total in [1.0, 2.0, 3.0, 4.0] {
        all.push(desk.refused("acme", &invoice(total)).await.0);
    }
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let list = ann.get("/reviews").await.body;
    assert!(all.iter().all(|id| list.contains(&format!("name=\"id\" value=\"{id}\""))), "{list}");
    let viewer = desk.browser("viewer").await.get("/reviews").await.body;
    assert!(!viewer.contains("checkbox") && !viewer.contains(REJECT), "{viewer}");

    let page = ann.get(&format!("{REJECT}?of=waiting&kind=invoice")).await.body;
    let ticked = picks(&page);
    assert_eq!(ticked.len(), 4, "{page}");
    // Meanwhile bob opens one and decides another, and ann unticks a third.
    let [open, decided, unticked, rest] = all.as_slice() else { panic!() };
    let renew = "&opens=yes&page=6f1c2a52-7b0e-4a35-9f0a-3d6c1c0b8e11";
    let secret = super::desk::form_fields(&bob.get("/reviews").await.body, "/sign-out").remove(0).1;
    let held = format!("form_secret={secret}{renew}");
    let held = bob.post_raw(&format!("/reviews/{open}/renew"), &held).await;
    assert!(held.body.contains("\"held\":true"), "{held:?}");
    let path = format!("/reviews/{decided}");
    assert!(bob.submit(&path, &path, &[("decision", "accept")]).await.status.is_redirection());
    let kept: Vec<String> =
        ticked.into_iter().filter(|pick| !pick.contains(&unticked.to_string())).collect();

    for (picked, filled, status) in [
        (&kept[..0], vec![("reason", "unreadable")], StatusCode::BAD_REQUEST),
        (&kept[..], vec![], StatusCode::UNPROCESSABLE_ENTITY),
        (&kept[..], vec![("reason", "unreadable"), ("confirm", "")], StatusCode::BAD_REQUEST),
    ] {
        let refused = reject(&ann, &page, picked, &filled).await;
        assert_eq!(refused.status, status, "{filled:?}: {refused:?}");
    }
    let filled = [("reason", "unreadable"), ("why", "all black")];
    let done = reject(&ann, &page, &kept, &filled).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    for row in ["<td>rejected", "<td>changed since", "<td>open at another"] {
        assert!(
            done.body.contains(&format!("<td class=\"number\">1</td>{row}")),
            "{row}: {done:?}"
        );
    }
    let decisions =
        "SELECT string_agg(document_id || ' ' || decision || ' ' || reviewer || ' ' || why, ';'
        ORDER BY id) FROM document_revision";
    assert_eq!(
        desk.scalar(decisions).await,
        format!("{decided} accepted web:bob ;{rest} rejected web:ann Unreadable: all black")
    );
    let undo = format!("/reviews/{rest}");
    let undone = ann.submit(&undo, &format!("{undo}/undo"), &[]).await;
    assert!(undone.status.is_redirection(), "each is undone as any decision: {undone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_of_many_is_undone_as_one_and_says_of_how_many_and_until_when() {
    let desk = WebConsole::open().await;
    let mut all = Vec::new();
    for total in [1.0, 2.0, 3.0] {
        all.push(desk.refused("acme", &invoice(total)).await.0);
    }
    let now = time::OffsetDateTime::now_utc();
    desk.database.freeze(now).await;
    let ann = desk.browser("ann").await;
    let page = ann.get(&format!("{REJECT}?of=waiting&kind=invoice")).await.body;
    let done = reject(&ann, &page, &picks(&page), &[("why", "a test run")]).await.body;
    assert!(done.contains("Undo these 3 rejections") && done.contains("(UTC)"), "{done}");
    // One of them was undone on its own page already.
    let own = format!("/reviews/{}", all[1]);
    assert!(ann.submit(&own, &format!("{own}/undo"), &[]).await.status.is_redirection());
    // Nobody else undoes them.
    let ids = |secret: &str| {
        let ids: String = all.iter().map(|id| format!("&id={id}")).collect();
        format!("form_secret={secret}{ids}")
    };
    for (who, end) in [("bob", "decided by another reviewer"), ("rival", "no such document")] {
        let other = desk.browser(who).await;
        let secret = super::desk::form_fields(&other.get("/reviews").await.body, "/sign-out");
        let refused = other.post_raw(UNDO, &ids(&secret[0].1)).await;
        assert!(refused.body.contains(end), "{who}: {refused:?}");
    }
    desk.database.freeze(now + std::time::Duration::from_secs(59)).await;
    let undone = ann.send_form(&done, UNDO, &[]).await.body;
    for row in ["2</td><td>undone", "1</td><td>without a decision to undo"] {
        assert!(undone.contains(&format!("<td class=\"number\">{row}")), "{row}: {undone}");
    }
    assert!(undone.contains("/reviews?kind=invoice"), "back to the same queue: {undone}");
    let waiting = "SELECT count(*) FROM document WHERE needs_human_review";
    assert_eq!(desk.scalar(waiting).await, "3");

    let page = ann.get(&format!("{REJECT}?of=waiting&kind=invoice")).await.body;
    let done = reject(&ann, &page, &picks(&page), &[("why", "advertisements")]).await.body;
    desk.database.freeze(now + std::time::Duration::from_secs(120)).await;
    let late = ann.send_form(&done, UNDO, &[]).await.body;
    assert!(late.contains("3</td><td>too late"), "{late}");
    assert_eq!(desk.scalar(waiting).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_documents_than_one_rejection_takes_are_listed_in_turn_by_age() {
    let desk = WebConsole::open().await;
    desk.execute(
        "WITH d AS (INSERT INTO document (file_path, tenant, needs_human_review, review_reasons)
             SELECT 'documents/' || n, 'acme', true, '{corrupt}' FROM generate_series(1, 203) n
             RETURNING id)
         INSERT INTO ingestion (document_id, tenant) SELECT id, 'acme' FROM d",
    )
    .await;
    let ann = desk.browser("ann").await;
    let path = format!("{REJECT}?of=waiting&part=unreadable");
    let page = ann.get(&path).await.body;
    let ticked = picks(&page);
    assert!(ticked.len() == 200 && page.contains("More match."), "{}", ticked.len());
    let more: Vec<String> = ticked.iter().chain(ticked.first()).cloned().collect();
    let refused = reject(&ann, &page, &more, &[("why", "x")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{refused:?}");
    let done = reject(&ann, &page, &ticked, &[("why", "x")]).await.body;
    assert!(done.contains("<td class=\"number\">200</td><td>rejected"), "{done}");
    assert_eq!(picks(&ann.get(&path).await.body).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_selected_rows_or_all_that_match_is_a_file_that_the_audit_has() {
    let desk = WebConsole::open().await;
    let (corrected, first) = desk.refused("acme", &invoice(1.0)).await;
    let (rejected, gone) = desk.refused("acme", &invoice(2.0)).await;
    let (_, other) = desk.refused("rival", &invoice(3.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{corrected}");
    let filled = [("field.total", "77"), ("decision", "correct")];
    assert!(ann.submit(&path, &path, &filled).await.status.is_redirection());
    let path = format!("/reviews/{rejected}");
    let filled = [("why", "x"), ("decision", "reject")];
    assert!(ann.submit(&path, &path, &filled).await.status.is_redirection());

    let selected = format!("{EXPORT}?of=selected&id={first}&id={gone}");
    let page = ann.get(&selected).await.body;
    assert!(page.contains("2 ingestions selected."), "{page}");
    let export = async |page: &str, filled: &[(&str, &str)], ids: &[String]| {
        let ids: String = ids.iter().map(|id| format!("&id={id}")).collect();
        ann.post_raw(EXPORT, &(super::desk::filled_form(page, EXPORT, filled) + &ids)).await
    };
    for filled in [vec![("form", "csv")], vec![("form", "csv"), ("of_kind", "receipt")]] {
        let refused = export(&page, &filled, &[]).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{filled:?}: {refused:?}");
    }
    assert_eq!(export(&page, &[("form", "ubl")], &[]).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");

    let csv = export(&page, &[("form", "csv"), ("of_kind", "invoice"), ("why", "ERP")], &[]).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.header("content-disposition").contains("documents.csv"), "{csv:?}");
    let rows: Vec<&str> = csv.body.lines().collect();
    assert!(
        rows.len() == 2 && rows[1].split(',').any(|cell| cell == "77"),
        "as it was decided: {csv:?}"
    );
    let all = ann.get(&format!("{EXPORT}?of=matching&kind=invoice")).await.body;
    let json: Value = export(&all, &[("form", "json")], &[]).await.json();
    let totals: Vec<&Value> =
        json.as_array().unwrap().iter().map(|one| &one["data"]["total"]).collect();
    assert_eq!(totals, [&json!(3.0), &json!(77)], "newest first, without the rejected");
    let queue = ann.get(&format!("{EXPORT}?of=waiting")).await.body;
    let json: Value = export(&queue, &[("form", "json")], &[]).await.json();
    assert_eq!(json[0]["ingestion_id"], other.to_string());
    let audit = "SELECT string_agg(operator || ' ' || target || ' ' || why || ' '
        || jsonb_array_length(before -> 'ingestions'), ';' ORDER BY id)
        FROM operator_action WHERE action = 'export'";
    assert_eq!(
        desk.scalar(audit).await,
        "web:ann export:csv ERP 1;web:ann export:json  2;web:ann export:json  1"
    );
    let rival = desk.browser("rival").await;
    assert_eq!(rival.get(&selected).await.status, StatusCode::NOT_FOUND);
    assert_eq!(desk.browser("viewer").await.get(&selected).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_changes_ingestions_by_id_or_filter_and_goes_on_behind_the_cursor() {
    let desk = WebConsole::open().await;
    desk.execute(
        "WITH d AS (INSERT INTO document (file_path, tenant)
             SELECT 'documents/' || n, 'acme' FROM generate_series(1, 502) n RETURNING id)
         INSERT INTO ingestion (document_id, tenant, created_at)
             SELECT id, 'acme', '2026-01-01' FROM d",
    )
    .await;
    let (_, other) = desk.refused("rival", &invoice(1.0)).await;
    let change = async |name: &str, body: Value| {
        send(desk.call(Method::POST, "/ingestions/change", name).json(&body)).await
    };
    let filter = json!({ "status": "in-progress" });
    for (body, status) in [
        (json!({ "change": "retry", "filter": {} }), 400),
        (json!({ "change": "retry" }), 400),
        (json!({ "change": "retry", "ids": [] }), 400),
        (json!({ "change": "retry", "ids": vec![other; 501] }), 400),
        (json!({ "change": "retry", "ids": [other], "filter": filter }), 400),
        (json!({ "change": "erase", "filter": filter }), 400),
        (json!({ "change": "retry", "ids": [other] }), 404),
    ] {
        let refused = change("acme", body.clone()).await;
        assert_eq!(refused.status.as_u16(), status, "{body:.80}: {refused:?}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
    let body = json!({ "change": "cancel", "filter": filter, "why": "by mistake" });
    let some = change("acme", body.clone()).await.json();
    assert_eq!(some["items"].as_array().unwrap().len(), 500);
    let mut next = body;
    next["cursor"] = some["next_cursor"].clone();
    let rest = change("acme", next).await.json();
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_cursor"]), (2, &Value::Null));
    let done = "SELECT string_agg(status || ' ' || n, ',' ORDER BY status) FROM
        (SELECT status, count(*) n FROM ingestion GROUP BY 1) AS counts";
    assert_eq!(desk.scalar(done).await, "cancelled 502,failed 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_rejects_what_it_has_seen_and_exports_a_kind_page_by_page() {
    let desk = WebConsole::open().await;
    let (own, _) = desk.refused("acme", &invoice(1.0)).await;
    let (foreign, _) = desk.refused("rival", &invoice(2.0)).await;
    let (seen, version) = (version_of(&desk, own).await, version_of(&desk, foreign).await);
    let body = json!({ "why": "a letter", "documents": [
        { "document_id": own, "version": seen }, { "document_id": foreign, "version": version },
    ] });
    let reject =
        async |body: &Value| send(desk.call(Method::POST, REJECT, "acme").json(body)).await;
    let export = "/ingestions/export?kind=invoice";
    let before = desk.get(&format!("{export}&form=json"), "viewer").await.json();
    assert_eq!(before["items"].as_array().unwrap().len(), 2);
    let csv = desk.get(&format!("{export}&form=csv-lines&separator=semicolon"), "acme").await;
    assert_eq!((csv.body.lines().count(), csv.header("next-cursor")), (3, ""), "{csv:?}");
    for (path, status) in [
        ("/ingestions/export?form=json", 400),
        ("/ingestions/export?kind=nothing&form=json", 400),
        ("/ingestions/export?kind=generic&form=csv-lines", 422),
        ("/ingestions/export?kind=invoice&form=ubl", 400),
    ] {
        assert_eq!(desk.get(path, "viewer").await.status.as_u16(), status, "{path}");
    }
    for ends in [["rejected", "missing"], ["changed", "missing"]] {
        assert_eq!(ends_of(&reject(&body).await.json()["items"]), ends);
    }
    let undo = async |body: Value| send(desk.call(Method::POST, UNDO, "acme").json(&body)).await;
    for ends in [["undone", "missing"], ["nothing", "missing"]] {
        let done = undo(json!({ "documents": [own, foreign], "why": "no letter" })).await.json();
        assert_eq!(ends_of(&done["items"]), ends);
    }
    for wrong in [json!({ "documents": [] }), json!({ "documents": vec![own; 201] })] {
        assert_eq!(undo(wrong).await.status, StatusCode::BAD_REQUEST);
    }
    for wrong in [json!({ "why": "x" }), json!({ "why": "x", "documents": [] })] {
        assert_eq!(reject(&wrong).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "2");
}

fn ends_of(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|one| one["end"].as_str().unwrap()).collect()
}

/// Runs `docmill` on the desk's database, as JSON.
fn run(desk: &WebConsole, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command.args(arguments).arg("--json").env("DOCMILL_OPERATOR", "ada");
    let ran = command.env("DOCMILL__DATABASE__URL", desk.database.url()).output().unwrap();
    (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_rejects_all_that_wait_and_match_after_a_dry_run() {
    let desk = WebConsole::open().await;
    let mut own = Vec::new();
    for total in [1.0, 2.0, 3.0] {
        own.push(desk.refused("acme", &invoice(total)).await.0.to_string());
    }
    desk.refused("rival", &invoice(4.0)).await;
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let [first, second, third] = own[..] else { panic!() };
    let by_filter = ["review", "reject", "--tenant", "acme", "--why", "a test run"];
    let (_, listed) = run(&desk, &[&by_filter[..], &["--dry-run"][..]].concat());
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    let (code, done) = run(&desk, &["review", "reject", first, second, "--why", "letters"]);
    assert_eq!((code, ends_of(&done)), (Some(0), vec!["rejected"; 2]), "{done}");
    for (code, end) in [(0, "undone"), (1, "nothing")] {
        let done = run(&desk, &["review", "undo", first, second]);
        assert_eq!((done.0, ends_of(&done.1)), (Some(code), vec![end; 2]));
    }
    run(&desk, &["review", "reject", first, second, "--why", "letters"]);
    let (code, done) = run(&desk, &by_filter);
    assert_eq!((code, ends_of(&done)), (Some(0), vec!["rejected"]), "{done}");
    assert_eq!(done[0]["document_id"], third);
    assert!(done[0]["undo_until"].is_string(), "{done}");
    for wrong in [vec!["review", "reject"], vec!["review", "reject", first, "--tenant", "acme"]] {
        assert_eq!(run(&desk, &wrong).0, Some(2), "{wrong:?}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM document WHERE needs_human_review").await, "1");
    let who = "SELECT DISTINCT reviewer || ' ' || decision FROM document_revision";
    assert_eq!(desk.scalar(&format!("{who} ORDER BY 1 LIMIT 1")).await, "ada rejected");
}
