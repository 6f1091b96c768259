//! Tasks of newcomers, operators, reviewers and developers in a real browser, walked as a person
//! walks them and counted by the keystroke model. Each has a ceiling in seconds of the person.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use docmill_compat::objects::ObjectQueue;
use docmill_queue::{MessageQueue as _, OutgoingMessage};
use docmill_storage::folder::FolderStore;
use reqwest::Method;
use serde_json::{Value, json};

use super::browsing::{DeskWorker, assert_stayed_here, carried, doubtful, hand_in_file, sit_down};
use super::desk::{WebConsole, invoice, send};
use super::keystrokes::{KEY_S, ONE_CLICK_S, TaskWalk};
use crate::support::browser::DrivenBrowser;
use crate::support::documents;
use crate::support::world::{SOON, until};

/// Tasks of the judgement of 28 November.
const TASKS: usize = 23;

#[test]
fn every_task_is_walked_and_has_its_row_with_the_figure_of_before() {
    let root = env!("CARGO_MANIFEST_DIR");
    let note = std::fs::read_to_string(format!("{root}/docs/lab/2026-11-29-console.md")).unwrap();
    let walks = include_str!("tasks.rs").replace(char::is_whitespace, "");
    let row_of = |task: usize| note.lines().find(|line| line.starts_with(&format!("| {task} ")));
    for task in 1..=TASKS {
        let row = row_of(task).unwrap_or_else(|| panic!("task {task} has no row"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 9, "{row}");
        let begins = format!(",\"{}\",", cells[1].replace(' ', ""));
        assert!(walks.contains(&begins), "task {task} is not walked: {row}");
        assert!(cells[6].parse::<f64>().unwrap() > 0.0 && !cells[7].is_empty(), "{row}");
    }
    assert_eq!(row_of(TASKS + 1), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_sees_a_sample_move_and_opens_its_review() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let admin = sit_down(&desk, "admin").await;
    let mut walk = TaskWalk::begin(&admin, "1 see a document in the browser", 20.0);
    walk.write("docmill dev --open").await;
    walk.end_with("Enter").await;
    admin.open(&desk.url("/")).await;
    walk.click("nav a[href='/upload']").await;
    walk.until_at("/upload").await;
    walk.click("button[value='receipt.jpg']").await;
    walk.until_at("/upload?done=1").await;
    let link = "#moving a[href^='/reviews/']";
    let has_link = format!("return document.querySelector(\"{link}\") !== null");
    until(SOON, || async { admin.run(&has_link).await == true }).await;
    admin.keep_screen("newcomer-moved").await;
    walk.click(link).await;
    walk.until_at("/reviews/").await;
    until(SOON, || is_drawn(&admin)).await;
    walk.read(".sheets", "").await;
    walk.end();
    admin.keep_screen("newcomer-review").await;
    assert_stayed_here(&desk, &admin).await;
}

/// Whether the picture of a page is there.
async fn is_drawn(browser: &DrivenBrowser) -> bool {
    let script = "const it = document.querySelector('.sheet img');
         return it !== null && it.complete && it.naturalWidth > 500";
    browser.run(script).await == true
}

/// Twenty documents that failed for one reason and one for another, and a target that is down.
async fn trouble(desk: &WebConsole) {
    for _ in 0..21 {
        desk.refused("acme", &invoice(1.0)).await;
    }
    desk.execute(
        "UPDATE ingestion SET reason = 'timeout', structured_data = NULL;
         UPDATE ingestion SET reason = 'corrupt'
             WHERE id = (SELECT id FROM ingestion ORDER BY id LIMIT 1);
         INSERT INTO webhook_target (name, place, url_hash)
             VALUES ('erp', 'https://erp.example.com', 'x');
         INSERT INTO webhook_delivery (target, document_id, event, event_id, event_number,
             occurred_at, facts, state, due_at, open_since, tries, last_tried_at, last_problem)
         SELECT 'erp', id, 'document.failed', gen_random_uuid(), 1, docmill_now(), '{}', 'due',
             docmill_now() + interval '5 minutes', docmill_now() - interval '13 minutes', 4,
             docmill_now(), 'connection refused' FROM document ORDER BY id LIMIT 1",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_what_is_wrong_and_retries_pauses_and_redrives() {
    let desk = WebConsole::open().await;
    trouble(&desk).await;
    give_up_message(&desk).await;
    let operator = sit_down(&desk, "operator").await;
    see_trouble(&desk, &operator).await;
    retry_one(&desk, &operator).await;
    retry_all(&desk, &operator).await;
    pause_tenant(&desk, &operator).await;
    redrive(&operator).await;
    assert_stayed_here(&desk, &operator).await;
}

async fn see_trouble(desk: &WebConsole, operator: &DrivenBrowser) {
    operator.open(&desk.url("/overview")).await;
    let mut walk = TaskWalk::begin(operator, "2 is anything wrong?", 6.0);
    walk.read(".tiles", "failed within a day").await;
    walk.read(".tiles", "to review").await;
    walk.end();
    let mut walk = TaskWalk::begin(operator, "7 notice a webhook target that is down", 2.0);
    walk.read(".notice.bad", "Webhook target erp has been failing since").await;
    walk.end();
}

async fn retry_one(desk: &WebConsole, operator: &DrivenBrowser) {
    let mut walk = TaskWalk::begin(operator, "3 retry one failed", 12.0);
    walk.click("nav a[href='/ingestions?status=failed']").await;
    walk.until_at("status=failed").await;
    walk.click("td a[href^='/ingestions/']").await;
    walk.until_at("/ingestions/").await;
    walk.click("form[action$='/retry'] button").await;
    walk.until_at("done=reopened").await;
    walk.end();
    let open = "SELECT count(*) FROM ingestion WHERE status = 'in-progress'";
    assert_eq!(desk.scalar(open).await, "1");
}

async fn retry_all(desk: &WebConsole, operator: &DrivenBrowser) {
    operator.open(&desk.url("/overview")).await;
    let mut walk = TaskWalk::begin(operator, "4 retry all 20 of one reason", 15.0);
    walk.click("a[href='/ingestions?status=failed&reason=timeout']").await;
    walk.until_at("reason=timeout").await;
    walk.click("button[value=matching]").await;
    walk.until_at("/ingestions/change").await;
    walk.click("input[name=confirm]").await;
    walk.click("form[action='/ingestions/change'] button.first").await;
    until(SOON, || async { operator.text().await.contains("It is open again") }).await;
    walk.end();
    let failed = "SELECT string_agg(DISTINCT reason, ' ') FROM ingestion WHERE status = 'failed'";
    assert!(["corrupt", ""].contains(&desk.scalar(failed).await.as_str()));
}

async fn pause_tenant(desk: &WebConsole, operator: &DrivenBrowser) {
    let mut walk = TaskWalk::begin(operator, "5 pause a tenant", 18.0);
    walk.click("nav a[href='/pauses']").await;
    walk.until_at("/pauses").await;
    walk.choose("select[name=scope]", "t").await;
    walk.click("input[name=name]").await;
    walk.write("acme").await;
    walk.click("input[name=confirm]").await;
    walk.click("form[action='/pauses'] button.first").await;
    until(SOON, || async { operator.text().await.contains("Resume") }).await;
    walk.end();
    assert_eq!(desk.scalar("SELECT scope || name FROM pause").await, "tenantacme");
}

/// A message of the newest failed ingestion that the queue gave up.
async fn give_up_message(desk: &WebConsole) {
    let (_, ingestion) = desk.refused("rival", &invoice(1.0)).await;
    let store = Arc::new(FolderStore::open(&desk.folder.path().join("queue")).await.unwrap());
    let queue = ObjectQueue::new(store, Duration::from_secs(60), Some(1));
    assert!(queue.send(&[OutgoingMessage::from_body(ingestion.to_string())]).await[0].is_ok());
    let taken = queue.receive(1, Duration::from_secs(10)).await.unwrap().remove(0);
    assert!(queue.hide(&[(taken.receipt, Duration::ZERO)]).await[0].is_ok());
    assert!(queue.receive(1, Duration::ZERO).await.unwrap().is_empty(), "it is dead");
}

async fn redrive(operator: &DrivenBrowser) {
    let mut walk = TaskWalk::begin(operator, "6 redrive dead letters", 12.0);
    walk.click("nav a[href='/dead-letters']").await;
    walk.until_at("/dead-letters").await;
    walk.click("input[name=letter]").await;
    walk.click("input[name=confirm]").await;
    walk.click("form[action='/dead-letters/redrive'] button.first").await;
    walk.until_at("/dead-letters?done=1-0-0").await;
    walk.end();
}

/// Replaces what a field of the newest ingestion and its document says.
async fn change_data(desk: &WebConsole, document: &str, field: &str, value: &Value) {
    desk.execute(&format!(
        "UPDATE ingestion SET structured_data = jsonb_set(structured_data, '{{{field}}}', '{value}')
             WHERE document_id = '{document}' AND structured_data IS NOT NULL;
         UPDATE document SET structured_data = jsonb_set(structured_data, '{{{field}}}', '{value}')
             WHERE id = '{document}' AND structured_data IS NOT NULL"
    ))
    .await;
}

/// Makes this the only reason for which a document calls for a person.
async fn flag(desk: &WebConsole, document: &str, reason: &str) {
    desk.execute(&format!(
        "UPDATE document SET review_reasons = ARRAY['{reason}'] WHERE id = '{document}';
         UPDATE ingestion SET review_reasons = ARRAY['{reason}'] WHERE document_id = '{document}'"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_approves_corrects_rejects_postpones_and_undoes() {
    let desk = WebConsole::open().await;
    let mut documents = Vec::new();
    for _ in 0..6 {
        documents.push(desk.refused("acme", &invoice(21.0)).await.0.to_string());
    }
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url("/reviews")).await;
    ann.click("form[action='/reviews/next'] button").await;
    ann.until_at(&documents[0]).await;

    let mut walk = TaskWalk::begin(&ann, "9 accept a right document, by keys", 2.0);
    walk.press("Ctrl+Enter").await;
    walk.until_at(&documents[1]).await;
    walk.end();

    let mut walk = TaskWalk::begin(&ann, "15 undo", 3.0);
    walk.click("form.inline[action*='/undo'] button").await;
    walk.until_at("done=undone").await;
    walk.end();

    let mut walk = TaskWalk::begin(&ann, "9b accept a right document, by mouse", ONE_CLICK_S);
    walk.click("button[value=accept]").await;
    walk.until_at(&documents[1]).await;
    walk.end();

    let mut walk = TaskWalk::begin(&ann, "17 postpone what I cannot decide", 2.0);
    walk.press("Alt+s").await;
    walk.until_at(&documents[2]).await;
    walk.end();

    type_total_as_printed(&desk, &ann, &documents[2]).await;
    ann.until_at(&documents[3]).await;

    let mut walk = TaskWalk::begin(&ann, "14 reject an unreadable one", 8.0);
    walk.choose("#reason", "unr").await;
    walk.press("Alt+r").await;
    walk.until_at(&documents[4]).await;
    walk.end();
    let decided = "SELECT string_agg(decision, ' ' ORDER BY id) FROM document_revision";
    assert_eq!(desk.scalar(decided).await, "accepted undone accepted corrected rejected");
    assert_eq!(desk.scalar("SELECT count(*) FROM review_later").await, "1");
    assert_stayed_here(&desk, &ann).await;
}

async fn type_total_as_printed(desk: &WebConsole, ann: &DrivenBrowser, document: &str) {
    while ann.focus().await != "field-total" {
        ann.press("Alt+Down").await;
    }
    let mut walk = TaskWalk::begin(ann, "13 type a total as printed", 6.0);
    walk.press("Ctrl+a").await;
    walk.write("1.700,00").await;
    walk.end_with("Enter").await;
    until(SOON, || async { carried(desk, document).await["total"] == 1700.0 }).await;
    walk.end();
}

/// An invoice of four lines, each on a line of its page.
fn invoice_of_lines(number: &str) -> Vec<u8> {
    let number = format!("Invoice number: {number}");
    let mut lines = vec![
        (60.0, 60.0, "Northwind Paper Ltd"),
        (60.0, 76.0, "12 Mill Lane, Leeds LS1 4AB"),
        (60.0, 140.0, "INVOICE"),
        (60.0, 164.0, number.as_str()),
        (60.0, 180.0, "Invoice date: 2026-03-14"),
    ];
    for (at, (name, count, price, amount)) in [
        ("Copy paper A4, box", "4", "25.00", "100.00"),
        ("Blue ink", "2", "10.00", "20.00"),
        ("Envelopes C5", "3", "5.00", "15.00"),
        ("Stapler", "1", "12.50", "12.50"),
    ]
    .into_iter()
    .enumerate()
    {
        let y = 258.0 + 18.0 * f32::from(u8::try_from(at).unwrap());
        lines.extend([(60.0, y, name), (300.0, y, count), (380.0, y, price), (480.0, y, amount)]);
    }
    lines.extend([(380.0, 380.0, "Total"), (480.0, 380.0, "GBP 147.50")]);
    documents::pdf(&lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_the_page_fill_a_field_an_address_and_four_lines() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let ann = sit_down(&desk, "ann").await;
    correct_field(&desk, &ann).await;
    fill_address(&desk, &ann).await;
    enter_lines(&desk, &ann).await;
    assert_stayed_here(&desk, &ann).await;
}

/// Opens a review and waits for the picture.
async fn open_review(desk: &WebConsole, ann: &DrivenBrowser, document: &str) {
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    until(SOON, || is_drawn(ann)).await;
}

async fn correct_field(desk: &WebConsole, ann: &DrivenBrowser) {
    let document = hand_in_file(desk, "one.pdf", doubtful("C-1")).await;
    change_data(desk, &document, "total", &json!(730)).await;
    flag(desk, &document, "required:total").await;
    open_review(desk, ann, &document).await;
    assert_eq!(ann.focus().await, "field-total", "the first doubtful field");
    let mut walk = TaskWalk::begin(ann, "10 correct the first doubtful field", 5.0);
    walk.press("Ctrl+a").await;
    walk.write("120").await;
    walk.end_with("Enter").await;
    until(SOON, || async { carried(desk, &document).await["total"] == 120.0 }).await;
    walk.end();

    let document = hand_in_file(desk, "two.pdf", doubtful("C-2")).await;
    change_data(desk, &document, "total", &json!(730)).await;
    flag(desk, &document, "required:total").await;
    open_review(desk, ann, &document).await;
    let mut walk =
        TaskWalk::begin(ann, "10b the same by one click on the page", ONE_CLICK_S + KEY_S);
    walk.click_at("rect.shown", (0.8, 0.5)).await;
    until(SOON, || async { ann.value("#field-total").await.contains("130.00") }).await;
    walk.end_with("Enter").await;
    until(SOON, || async { carried(desk, &document).await["total"] == 130.0 }).await;
    walk.end();
}

async fn fill_address(desk: &WebConsole, ann: &DrivenBrowser) {
    let document = hand_in_file(desk, "three.pdf", doubtful("C-3")).await;
    change_data(desk, &document, "supplier_address", &Value::Null).await;
    flag(desk, &document, "required:supplier_address").await;
    open_review(desk, ann, &document).await;
    assert_eq!(ann.focus().await, "field-supplier_address");
    let mut walk = TaskWalk::begin(ann, "11 fill an empty address", 7.0);
    // The address stands at (60, 76) of 595 by 842 points.
    walk.drag(".sheet svg", (58.0 / 595.0, 70.0 / 842.0), (250.0 / 595.0, 76.0 / 842.0)).await;
    let filled = "12 Mill Lane, Leeds LS1 4AB";
    until(SOON, || async { ann.value("#field-supplier_address").await == filled }).await;
    walk.end_with("Enter").await;
    until(SOON, || async { carried(desk, &document).await["supplier_address"] == filled }).await;
    walk.end();
}

async fn enter_lines(desk: &WebConsole, ann: &DrivenBrowser) {
    let document = hand_in_file(desk, "four.pdf", invoice_of_lines("L-1")).await;
    change_data(desk, &document, "line_items", &json!([])).await;
    open_review(desk, ann, &document).await;
    ann.click("[data-whole]").await;
    let mut walk = TaskWalk::begin(ann, "12 enter 4 missing lines", 25.0);
    walk.click("[data-field=line_items] [data-add]").await;
    walk.drag(".sheet svg", (58.0 / 595.0, 250.0 / 842.0), (530.0 / 595.0, 312.0 / 842.0)).await;
    let amount = "const it = document.querySelector(\"[name='item.line_items.3.amount']\");
         return it ? it.value : ''";
    until(SOON, || async { ann.run(amount).await == "12.50" }).await;
    ann.keep_screen("review-lines-drawn").await;
    walk.end_with("Enter").await;
    let count = format!(
        "SELECT jsonb_array_length(structured_data -> 'line_items') FROM document
             WHERE id = '{document}'"
    );
    until(SOON, || async { desk.scalar(&count).await == "4" }).await;
    walk.end();
    let lines = carried(desk, &document).await["line_items"].clone();
    let line = |at: usize| {
        ["description", "quantity", "unit_price", "amount"].map(|name| lines[at][name].clone())
    };
    assert_eq!(line(0), [json!("Copy paper A4, box"), json!(4), json!(25.0), json!(100.0)]);
    assert_eq!(line(3), [json!("Stapler"), json!(1), json!(12.5), json!(12.5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_works_off_a_choice_changes_a_kind_and_sees_what_could_not_be_read() {
    let desk = WebConsole::open().await;
    for (at, tenant) in ["rival", "acme", "acme"].into_iter().enumerate() {
        let (document, ingestion) = desk.refused(tenant, &invoice(21.0)).await;
        desk.store_original(document, &documents::invoice(&format!("R-{at}"))).await;
        super::api::store_transcript(&desk, ingestion).await;
    }
    desk.execute("UPDATE ingestion SET kind = 'receipt'").await;
    let ann = sit_down(&desk, "ann").await;
    let mut walk = TaskWalk::begin(&ann, "16 work off receipts of one tenant only", 15.0);
    walk.choose("#kind", "rec").await;
    walk.click("#tenant").await;
    walk.write("acme").await;
    walk.end_with("Enter").await;
    walk.until_at("tenant=acme").await;
    walk.click("form[action^='/reviews/next'] button").await;
    walk.until_at("/reviews/").await;
    walk.press("Ctrl+Enter").await;
    walk.until_at("done=accepted").await;
    walk.end();
    let tenant = "SELECT tenant FROM document d JOIN review_lease l ON l.document_id = d.id";
    until(SOON, || async { desk.scalar(tenant).await == "acme" }).await;

    let mut walk = TaskWalk::begin(&ann, "18 change the kind", 12.0);
    walk.click("details.more summary").await;
    walk.choose("#new_kind", "inv").await;
    walk.click("button[formaction$='/kind']").await;
    let read_again = "SELECT count(*) FROM ingestion WHERE status = 'in-progress'";
    until(SOON, || async { desk.scalar(read_again).await == "1" }).await;
    walk.end();
    see_unreadable(&desk, &ann).await;
}

async fn see_unreadable(desk: &WebConsole, ann: &DrivenBrowser) {
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    desk.store_original(document, &documents::invoice("U-1")).await;
    desk.execute(&format!(
        "UPDATE ingestion SET reason = 'timeout', structured_data = NULL
             WHERE document_id = '{document}';
         UPDATE document SET structured_data = NULL WHERE id = '{document}'"
    ))
    .await;
    ann.open(&desk.url("/reviews")).await;
    let mut walk = TaskWalk::begin(ann, "19 read a document whose reading failed", 8.0);
    walk.click(".tabs a[href='/reviews?part=unreadable']").await;
    walk.until_at("part=unreadable").await;
    walk.click(&format!("td a[href^='/reviews/{document}']")).await;
    walk.until_at(&document.to_string()).await;
    until(SOON, || is_drawn(ann)).await;
    walk.read(".sheets", "").await;
    walk.end();
    ann.keep_screen("review-unreadable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_is_found_by_its_number_and_its_page_tells_who_changed_what() {
    let desk = WebConsole::open().await;
    let mut data = invoice(21.0);
    data["invoice_number"] = "INV-2207".into();
    let (document, _) = desk.refused("acme", &data).await;
    let ann = desk.browser("ann").await;
    let page = format!("/reviews/{document}");
    let changed = [("field.total", "13"), ("decision", "correct")];
    let done = ann.submit(&page, &page, &changed).await;
    assert!(done.status.is_redirection(), "{done:?}");
    let admin = sit_down(&desk, "admin").await;
    let mut walk = TaskWalk::begin(&admin, "8 find an invoice by its number", 8.0);
    walk.click("#find").await;
    walk.write("INV-2207").await;
    walk.end_with("Enter").await;
    walk.until_at("/ingestions/").await;
    walk.read("h1", "a.pdf").await;
    walk.end();
    let mut walk = TaskWalk::begin(&admin, "20 see who changed what", 6.0);
    walk.click("a[href='#history']").await;
    walk.read("tr", "web:ann").await;
    walk.end();
    let rows = "return [...document.querySelectorAll('tr')].map((row) => row.innerText).join(' ')";
    let rows = admin.run(rows).await;
    let rows = rows.as_str().unwrap();
    assert!(rows.contains("21.00") && rows.contains("13.00"), "before and after: {rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_reads_the_reference_gets_a_result_in_two_calls_and_tests_a_webhook() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    trouble(&desk).await;
    let operator = sit_down(&desk, "operator").await;
    let mut walk = TaskWalk::begin(&operator, "23 read the API reference", 5.0);
    walk.click("nav a[href='/api-reference']").await;
    walk.until_at("/api-reference").await;
    walk.read("h1", "API reference").await;
    walk.end();
    let shown = operator.run("return document.body.textContent").await;
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("curl") && shown.contains("/api/v1/documents"), "{shown}");

    let mut walk = TaskWalk::begin(&operator, "22 test a webhook", 6.0);
    walk.click("nav a[href='/webhooks']").await;
    walk.until_at("/webhooks").await;
    walk.click("form[action='/webhooks/test'] button").await;
    until(SOON, || async { operator.text().await.contains("not sent yet") }).await;
    walk.end();

    // Two calls, as the reference shows them.
    let sent = desk.call(Method::POST, "/documents?name=d.pdf&kind=invoice", "producer");
    let sent = send(sent.body(documents::invoice("D-1"))).await;
    let id = sent.json()["ingestion_id"].as_str().unwrap().to_owned();
    let got = desk.get(&format!("/ingestions/{id}?wait=20"), "producer").await.json();
    assert_eq!(
        (&got["status"], &got["structured_data"]["total"]),
        (&json!("completed"), &json!(120))
    );
    let mut walk = TaskWalk::begin(&operator, "21 first result over the API, two calls", 3.0);
    walk.read("body", "").await;
    walk.read("body", "").await;
    walk.end();
}
