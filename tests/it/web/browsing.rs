//! The pages in a real browser: a review from upload to decision by mouse and by keyboard alone, two
//! reviewers at once, what keeps people out, and what leaves the machine.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::desk::{WebConsole, invoice, send};
use crate::support::browser::{DrivenBrowser, ScreenSize};
use crate::support::documents;
use crate::support::world::{SOON, until};

/// A worker over the console's database, queue and store; killed when dropped.
pub(super) struct DeskWorker(Child);

impl Drop for DeskWorker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl DeskWorker {
    pub(super) fn start(desk: &WebConsole) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL__")) {
            command.env_remove(name);
        }
        command
            .arg("worker")
            .env("DOCMILL__DATABASE__URL", desk.database.url())
            .env("DOCMILL__QUEUE__BACKEND", "folder")
            .env("DOCMILL__QUEUE__PATH", desk.folder.path().join("queue"))
            .env("DOCMILL__QUEUE__WAIT", "1s")
            .env("DOCMILL__STORE__BACKEND", "folder")
            .env("DOCMILL__STORE__PATH", desk.folder.path().join("store"))
            .env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0")
            .env("DOCMILL__JANITOR__ENABLED", "false")
            .env("DOCMILL__OCR__ENGINE", "tesseract")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

/// An invoice whose total is not net and tax.
pub(super) fn doubtful(number: &str) -> Vec<u8> {
    let right = documents::invoice(number);
    let text = String::from_utf8(right).unwrap();
    assert_eq!(text.matches("GBP 120.00").count(), 1);
    text.replace("GBP 120.00", "GBP 130.00").into_bytes()
}

/// Hands a doubtful scan in and waits until it calls for a person. Its id.
async fn hand_in(desk: &WebConsole, number: &str) -> String {
    let scan = documents::scan(doubtful(number), 150.0);
    hand_in_file(desk, &format!("{number}.png"), scan).await
}

/// The same of any file.
pub(super) async fn hand_in_file(desk: &WebConsole, name: &str, bytes: Vec<u8>) -> String {
    let path = format!("/documents?name={name}&kind=invoice");
    let request = desk.call(Method::POST, &path, "producer").body(bytes);
    let answer = send(request).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let id = answer.json()["document_id"].as_str().unwrap().to_owned();
    let calls = format!("SELECT needs_human_review FROM document WHERE id = '{id}'");
    until(SOON, || async { desk.scalar(&calls).await == "true" }).await;
    id
}

pub(super) async fn carried(desk: &WebConsole, document: &str) -> Value {
    let sql = format!("SELECT structured_data FROM document WHERE id = '{document}'");
    serde_json::from_str(&desk.scalar(&sql).await).unwrap_or(Value::Null)
}

/// Somebody in front of a browser who has signed in.
pub(super) async fn sit_down(desk: &WebConsole, name: &str) -> DrivenBrowser {
    let browser = DrivenBrowser::start().await;
    browser.open(&desk.url("/sign-in")).await;
    browser.click("input[name=token]").await;
    browser.write(&format!("token of {name}")).await;
    browser.press("Enter").await;
    browser
        .until_at(if ["operator", "admin"].contains(&name) { "/overview" } else { "/reviews" })
        .await;
    browser.take_counts();
    browser
}

/// Nothing but the console was asked for, and the browser had nothing to complain of.
pub(super) async fn assert_stayed_here(desk: &WebConsole, browser: &DrivenBrowser) {
    let asked = browser.take_requests().await;
    let here = format!("http://{}/", desk.address);
    let elsewhere: Vec<&String> =
        asked.iter().filter(|url| !url.starts_with(&here) && *url != "about:blank").collect();
    assert!(elsewhere.is_empty() && asked.len() > 3, "{elsewhere:?} of {}", asked.len());
    assert_eq!(browser.take_complaints().await, [""; 0]);
}

/// Replaces what stands in a field by keys.
pub(super) async fn retype(browser: &DrivenBrowser, text: &str) {
    browser.press("Ctrl+a").await;
    browser.write(text).await;
}

/// Edges of what matches, in pixels of the window: left, top, right, bottom.
async fn edges(browser: &DrivenBrowser, css: &str) -> [f64; 4] {
    let script = format!(
        "const it = document.querySelector('{css}').getBoundingClientRect();
         return [it.left, it.top, it.right, it.bottom]"
    );
    let found = browser.run(&script).await;
    [0, 1, 2, 3].map(|at| found[at].as_f64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_field_that_has_the_focus_is_shown_on_the_picture_of_its_page() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let document = hand_in(&desk, "P-1").await;
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let is_drawn = "const it = document.querySelector('.sheet img');
         return it.complete && it.naturalWidth > 500";
    until(SOON, || async { ann.run(is_drawn).await == true }).await;
    // A doubtful field has its place cut out beside it.
    let field = ".field.doubtful:has(#field-total)";
    let crop = edges(&ann, &format!("{field} svg.crop")).await;
    assert!(crop[2] - crop[0] > 200.0 && crop[3] - crop[1] > 20.0, "{crop:?}");
    let shown = "return document.querySelectorAll('rect.shown').length";
    assert_eq!(ann.run(shown).await, 1, "the first doubtful field has the focus");
    ann.click("[data-whole]").await;
    assert_eq!(ann.run(shown).await, 0, "the whole page again");
    let whole = edges(&ann, ".sheet").await;
    ann.keep_screen("review-whole-page").await;
    ann.click("#field-total").await;
    until(SOON, || async { ann.run(shown).await == 1 }).await;
    let (mark, frame) = (edges(&ann, "rect.shown").await, edges(&ann, ".sheets").await);
    let is_inside =
        mark[0] >= frame[0] && mark[1] >= frame[1] && mark[2] <= frame[2] && mark[3] <= frame[3];
    assert!(is_inside, "{mark:?} is not seen in {frame:?}");
    let near = edges(&ann, ".sheet").await;
    assert!(
        near[2] - near[0] > 1.5 * (whole[2] - whole[0]),
        "{near:?} is no larger than {whole:?}"
    );
    ann.keep_screen("review-picture").await;
    // The mark lies on the total.
    let place = "const it = document.querySelector('rect.shown'), page = it.ownerSVGElement.viewBox.baseVal;
         return [it.x.baseVal.value / page.width, it.y.baseVal.value / page.height]";
    let place = ann.run(place).await;
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    assert!((x - 480.0 / 595.0).abs() < 0.08 && (y - 323.0 / 842.0).abs() < 0.02, "{x} {y}");
    assert_stayed_here(&desk, &ann).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_checked_while_a_reviewer_types() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let document = hand_in(&desk, "R-1").await;
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let advice = "return [...document.querySelectorAll('.field:has(#field-total) .typed')]
        .map((line) => line.textContent).join(' ')";
    let says = |part: &'static str| {
        let ann = &ann;
        async move { ann.run(advice).await.as_str().unwrap().contains(part) }
    };
    let before = edges(&ann, ".sheets").await[1];
    // Neither the sum of the parts, nor on the page.
    ann.click("#field-total").await;
    retype(&ann, "777").await;
    until(SOON, || says("This value is not on the document.")).await;
    assert!(says("confirms this total.").await, "{}", ann.run(advice).await);
    retype(&ann, "a lot").await;
    let told = "return document.getElementById('typed-says').textContent";
    until(SOON, || async { ann.run(told).await.as_str().unwrap().contains("total") }).await;
    assert_eq!(edges(&ann, ".sheets").await[1], before, "the page moved under the pointer");
    // The tax that makes the total right.
    retype(&ann, "130").await;
    ann.click("#field-vat_amount").await;
    retype(&ann, "30").await;
    until(SOON, || async { !says("confirms").await && !says("is not on the document").await })
        .await;
    let decided = "SELECT count(*) FROM document_revision";
    assert_eq!(desk.scalar(decided).await, "0", "advice decides nothing");
    assert_stayed_here(&desk, &ann).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_the_page_fill_a_field_and_lines_are_added_pasted_and_summed_in_place() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let document = hand_in(&desk, "W-1").await;
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let is_drawn = "const it = document.querySelector('.sheet img');
         return it.complete && it.naturalWidth > 500";
    until(SOON, || async { ann.run(is_drawn).await == true }).await;
    ann.click("#field-total").await;
    retype(&ann, "1").await;
    ann.click("[data-whole]").await;
    // The total stands at (480, 323) of 595 by 842 points.
    let (x, y) = (480.0 / 595.0, 327.0 / 842.0);
    ann.drag(".sheet svg", (x, y - 0.005), (x + 0.12, y + 0.005)).await;
    until(SOON, || async { ann.value("#field-total").await.contains("130.00") }).await;
    ann.keep_screen("review-word").await;
    let rows = "return document.querySelectorAll('table[data-list=line_items] tbody tr').length";
    let before = ann.run(rows).await.as_u64().unwrap();
    ann.click("[data-field=line_items] [data-add]").await;
    assert_eq!(ann.run(rows).await, before, "an empty line is there already");
    let paste = "const data = new DataTransfer();
        data.setData('text/plain', 'Glue\\t4\\nTape\\t5\\nPins\\t6\\nNuts\\nBolts');
        document.activeElement.dispatchEvent(new ClipboardEvent('paste',
            { clipboardData: data, bubbles: true, cancelable: true }));";
    ann.run(paste).await;
    assert_eq!(ann.run(rows).await, before + 2, "each line of a spreadsheet has its row");
    let kept = "SELECT count(*) FROM review_draft WHERE form LIKE '%Tape%'";
    until(SOON, || async { desk.scalar(kept).await == "1" }).await;
    let sum = "return document.querySelector('output[data-sum-of=line_items]').textContent";
    assert!(ann.run(sum).await.as_str().unwrap().contains('.'));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    assert_stayed_here(&desk, &ann).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_come_late_are_those_under_the_mouse_when_it_was_released() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let document = hand_in(&desk, "W-2").await;
    let ann = sit_down(&desk, "ann").await;
    ann.run_before_pages(
        "const ask = fetch;
         window.fetch = async (path, more) => {
             const answer = await ask(path, more);
             if (String(path).endsWith('/words')) {
                 await new Promise((go) => { window.letWords = go; });
             }
             return answer;
         };",
    )
    .await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let is_ready = "const it = document.querySelector('.sheet img');
         return it.complete && it.naturalWidth > 500 && window.letWords !== undefined";
    ann.click("#field-total").await;
    until(SOON, || async { ann.run(is_ready).await == true }).await;
    retype(&ann, "1").await;
    ann.click("[data-whole]").await;
    let (x, y) = (480.0 / 595.0, 327.0 / 842.0);
    ann.drag(".sheet svg", (x, y - 0.005), (x + 0.12, y + 0.005)).await;
    // Meanwhile the page is enlarged, and another field has the focus.
    let other = ann.value("#field-subtotal").await;
    ann.click("[data-zoom=in]").await;
    ann.click("#field-subtotal").await;
    ann.run("window.letWords()").await;
    until(SOON, || async { ann.value("#field-total").await.contains("130.00") }).await;
    assert_eq!(ann.value("#field-subtotal").await, other);
    assert_stayed_here(&desk, &ann).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_queue_is_worked_off_with_none_shown_twice_and_none_lost() {
    let desk = WebConsole::open().await;
    let mut wanted = std::collections::BTreeSet::new();
    for number in 0..16 {
        let tenant = if number % 2 == 0 { "acme" } else { "rival" };
        let (document, _) = desk.refused(tenant, &invoice(f64::from(number))).await;
        if number % 2 == 0 {
            wanted.insert(document.to_string());
        }
    }
    let mut ann = sit_down(&desk, "ann").await;
    let shown = "return document.querySelector('form.review').getAttribute('action')";
    let begin = async |ann: &DrivenBrowser| {
        ann.open(&desk.url("/reviews?tenant=acme")).await;
        ann.click("form[action^='/reviews/next'] button").await;
    };
    begin(&ann).await;
    let mut seen = std::collections::BTreeSet::new();
    for turn in 0..8 {
        ann.until_at("/reviews/").await;
        let address = ann.run(shown).await.as_str().unwrap().to_owned();
        let document = address.split(['/', '?']).nth(2).unwrap().to_owned();
        assert!(seen.insert(document.clone()), "turn {turn}: shown twice");
        // Every third is set aside, the others are approved.
        ann.press(if turn % 3 == 2 { "Alt+s" } else { "Ctrl+Enter" }).await;
        until(SOON, || async { !ann.url().await.contains(&format!("/reviews/{document}")) }).await;
        if turn == 4 {
            // The browser is closed in the middle, with a document open.
            ann = sit_down(&desk, "ann").await;
            begin(&ann).await;
        }
    }
    assert_eq!(seen, wanted, "the tenant's, all of them, and nobody else's");
    ann.until_at("/reviews?tenant=acme").await;
    assert_eq!(desk.scalar("SELECT count(*) FROM review_later").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_a_busy_server_did_not_draw_is_asked_for_again() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    super::api::store_transcript(&desk, ingestion).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let is_drawn = "const it = document.querySelector('.sheet img');
         return it.complete && it.naturalWidth > 500";
    until(SOON, || async { ann.run(is_drawn).await == true }).await;
    // A busy machine may have made the page ask again already.
    ann.run(
        "const ask = fetch;
         document.querySelector('.sheet').asked = false;
         window.answers = [503, 200, 409];
         window.fetch = async (path, more) => String(path).endsWith('/picture')
             ? new Response('', { status: window.answers.shift() }) : ask(path, more);",
    )
    .await;
    let fail = "document.querySelector('.sheet img').dispatchEvent(new Event('error'))";
    let says_so = "return !document.querySelector('p.unseen').hidden";
    ann.run(fail).await;
    until(SOON, || async { ann.run("return window.answers.length").await == 1 }).await;
    until(SOON, || async { ann.run(is_drawn).await == true }).await;
    assert_eq!(ann.run(says_so).await, false, "it was drawn the second time");
    ann.run(fail).await;
    until(SOON, || async { ann.run(says_so).await == true }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_cannot_be_drawn_says_so_and_the_review_goes_on() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    super::api::store_transcript(&desk, ingestion).await;
    let read = format!("UPDATE ingestion SET sha256 = repeat('0', 64) WHERE id = '{ingestion}'");
    desk.execute(&read).await;
    let ann = sit_down(&desk, "ann").await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    until(SOON, || async { ann.text().await.contains("Page 1 cannot be shown: why?") }).await;
    ann.click("p.unseen a").await;
    until(SOON, || async { ann.text().await.contains("no longer where it was") }).await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    ann.click("button[value=accept]").await;
    ann.until_at("/reviews?done=accepted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubtful_scan_goes_from_upload_to_corrected_and_accepted_by_mouse() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let first = hand_in(&desk, "M-1").await;
    let second = hand_in(&desk, "M-2").await;
    let ann = sit_down(&desk, "ann").await;
    ann.click("nav a[href$='/reviews']").await;
    ann.until_at("/reviews").await;
    ann.keep_screen("queue").await;
    ann.click("form[action='/reviews/next'] button").await;
    ann.until_at(&first).await;
    assert!(ann.text().await.contains("Nothing else on the document confirms this total."));
    ann.keep_screen("review").await;
    let total = ann.value("#field-total").await;
    assert_eq!(total.parse::<f64>().unwrap(), 130.0);
    ann.click("#field-total").await;
    retype(&ann, "120").await;
    ann.click("button[value=correct]").await;
    ann.until_at(&second).await;
    assert_eq!(carried(&desk, &first).await["total"], 120);
    // Too quick: undone, and said once more.
    ann.click("form.inline button").await;
    ann.until_at(&format!("{first}?done=undone")).await;
    assert_ne!(carried(&desk, &first).await["total"], 120, "it is as it was");
    ann.click("#field-total").await;
    retype(&ann, "120").await;
    ann.click("button[value=correct]").await;
    ann.until_at(&second).await;
    ann.click("button[value=accept]").await;
    ann.until_at("/reviews?done=accepted").await;
    assert!(ann.text().await.contains("No document needs review."));
    assert_eq!(carried(&desk, &first).await["total"], 120);
    assert_eq!(carried(&desk, &second).await["total"], 130.0);
    assert_stayed_here(&desk, &ann).await;
}

/// Goes on with Tab until what has the focus says this.
async fn tab_to(browser: &DrivenBrowser, text: &str) {
    let begun = Instant::now();
    while browser.run("return document.activeElement.textContent.trim()").await != text {
        browser.press("Tab").await;
        assert!(begun.elapsed() < SOON, "no Tab leads to {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubtful_scan_goes_from_upload_to_corrected_and_accepted_by_keys_alone() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let first = hand_in(&desk, "K-1").await;
    let second = hand_in(&desk, "K-2").await;
    let ann = DrivenBrowser::start().await;
    ann.open(&desk.url("/sign-in")).await;
    while ann.focus().await != "token" {
        ann.press("Tab").await;
    }
    ann.write("token of ann").await;
    ann.press("Enter").await;
    ann.until_at("/reviews").await;
    tab_to(&ann, "Start reviewing").await;
    ann.press("Enter").await;
    ann.until_at(&first).await;
    while ann.focus().await != "field-total" {
        ann.press("Alt+Down").await;
    }
    retype(&ann, "120").await;
    ann.press("Enter").await;
    ann.until_at(&second).await;
    ann.press("Ctrl+Enter").await;
    ann.until_at("/reviews?done=accepted").await;
    assert_eq!(ann.take_counts().1, 0, "a mouse was used");
    assert_eq!(carried(&desk, &first).await["total"], 120);
    assert_eq!(carried(&desk, &second).await["total"], 130.0);
    assert_stayed_here(&desk, &ann).await;
}

/// Keys and seconds of one step of a review.
struct MeasuredStep {
    name: &'static str,
    strokes: usize,
    seconds: f64,
}

/// Rejects the document that is shown, and accepts the one that was undone.
async fn finish_by_keys(ann: &DrivenBrowser, undone: &str) {
    // To the reason, and rejected.
    let begun = Instant::now();
    while ann.focus().await != "why" {
        ann.press("Alt+Down").await;
        assert!(begun.elapsed() < SOON);
    }
    ann.write("ad").await;
    ann.press("Alt+r").await;
    ann.until_at("done=rejected").await;
    ann.take_counts();
    // The undone document was set aside: it is reached by the list of these.
    ann.until_at("/reviews?done=rejected").await;
    tab_to(ann, "Later 1").await;
    ann.press("Enter").await;
    ann.until_at("part=later").await;
    tab_to(ann, "a.pdf").await;
    ann.press("Enter").await;
    ann.until_at(undone).await;
    ann.press("Alt+a").await;
    ann.until_at("done=accepted").await;
}

/// Opens the first free document by the button of the queue.
async fn begin_reviews(browser: &DrivenBrowser, desk: &WebConsole) {
    browser.open(&desk.url("/reviews")).await;
    browser.click("form[action='/reviews/next'] button").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_needs_no_mouse_from_the_queue_to_the_last_decision_and_its_undo() {
    let desk = WebConsole::open().await;
    let mut documents = Vec::new();
    for _ in 0..4 {
        documents.push(desk.refused("acme", &invoice(21.0)).await.0.to_string());
    }
    let ann = sit_down(&desk, "ann").await;
    begin_reviews(&ann, &desk).await;
    ann.until_at(&documents[0]).await;
    let mut steps = Vec::new();
    let measure = |name: &'static str, begun: Instant, browser: &DrivenBrowser| {
        let (strokes, clicks) = browser.take_counts();
        assert_eq!(clicks, 0, "{name}: a mouse was used");
        MeasuredStep { name, strokes, seconds: begun.elapsed().as_secs_f64() }
    };

    // One field: the first doubtful one has the focus.
    let begun = Instant::now();
    ann.take_counts();
    let first = ann.focus().await;
    assert!(
        ["field-total", "field-subtotal", "field-due_date", "field-vat_amount"]
            .contains(&first.as_str()),
        "{first}"
    );
    while ann.focus().await != "field-total" {
        ann.press("Alt+Down").await;
    }
    retype(&ann, "13").await;
    ann.press("Enter").await;
    ann.until_at(&documents[1]).await;
    steps.push(measure("one field", begun, &ann));
    assert_eq!(carried(&desk, &documents[0]).await["total"], 13);

    // Undone, and the same once more.
    let begun = Instant::now();
    ann.press("Alt+u").await;
    ann.until_at(&format!("{}?done=undone", documents[0])).await;
    steps.push(measure("an undo", begun, &ann));
    assert_eq!(carried(&desk, &documents[0]).await, Value::Null);
    ann.press("Alt+s").await;
    ann.until_at(&documents[1]).await;
    ann.take_counts();

    // A line that is missing.
    let begun = Instant::now();
    ann.press("Alt+l").await;
    until(SOON, || async { ann.focus().await == "field-line_items-empty" }).await;
    ann.write("Glue").await;
    while !ann.focus().await.ends_with(".amount") {
        ann.press("Tab").await;
    }
    ann.write("8").await;
    ann.press("Enter").await;
    ann.until_at(&documents[2]).await;
    steps.push(measure("a line item", begun, &ann));
    let lines = carried(&desk, &documents[1]).await["line_items"].clone();
    assert_eq!((&lines[2]["description"], &lines[2]["amount"]), (&"Glue".into(), &8.into()));

    let begun = Instant::now();
    ann.press("Ctrl+Enter").await;
    ann.until_at(&documents[3]).await;
    steps.push(measure("an accept", begun, &ann));

    finish_by_keys(&ann, &documents[0]).await;
    let decided = "SELECT string_agg(decision, ' ' ORDER BY id) FROM document_revision";
    assert_eq!(desk.scalar(decided).await, "corrected undone corrected accepted rejected accepted");
    assert_stayed_here(&desk, &ann).await;
    write_figures(&steps);
}

/// Seconds go to `target/screens`; keys are those of docs/lab/2026-11-29-console.md.
fn write_figures(steps: &[MeasuredStep]) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let table: String = steps
        .iter()
        .map(|it| format!("{}: {} keys, {:.2} s\n", it.name, it.strokes, it.seconds))
        .collect();
    std::fs::create_dir_all(root.join("target/screens")).unwrap();
    std::fs::write(root.join("target/screens/figures.txt"), &table).unwrap();
    let page = std::fs::read_to_string(root.join("docs/lab/2026-11-29-console.md")).unwrap();
    for step in steps {
        let row = format!("| {} | {} |", step.name, step.strokes);
        assert!(page.contains(&row), "docs/lab/2026-11-29-console.md lacks `{row}`:\n{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_reviewers_at_once_each_is_led_to_another_document_and_sees_who_has_the_first() {
    let desk = WebConsole::open().await;
    let (first, _) = desk.refused("acme", &invoice(21.0)).await;
    let (second, _) = desk.refused("acme", &invoice(13.0)).await;
    let (first, second) = (first.to_string(), second.to_string());
    let (ann, bob) = tokio::join!(sit_down(&desk, "ann"), sit_down(&desk, "bob"));
    begin_reviews(&ann, &desk).await;
    ann.until_at(&first).await;
    begin_reviews(&bob, &desk).await;
    bob.until_at(&second).await;
    let page = bob.run("return document.querySelector('input[name=page]').value").await;
    let claimed = format!(
        "SELECT count(*) FROM review_lease WHERE page::text = '{}'",
        page.as_str().unwrap()
    );
    until(SOON, || async { desk.scalar(&claimed).await == "1" }).await;
    bob.open(&desk.url(&format!("/reviews/{first}"))).await;
    assert!(bob.text().await.contains("web:ann has had it since"));
    assert_eq!(bob.run("return document.querySelectorAll('button[value=accept]').length").await, 0);
    bob.keep_screen("taken").await;
    // Having left the second one, he gave it back.
    let held = format!("SELECT count(*) FROM review_lease WHERE document_id = '{second}'");
    until(SOON, || async { desk.scalar(&held).await == "0" }).await;
    bob.click("button[value=take_over]").await;
    until(SOON, || async { bob.text().await.contains("It is yours now.") }).await;
    ann.click("#field-total").await;
    retype(&ann, "13").await;
    ann.press("Enter").await;
    until(SOON, || async { ann.text().await.contains("web:bob has the document open") }).await;
    assert_eq!(ann.value("#field-total").await, "13", "what was typed is still there");
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    bob.click("button[value=accept]").await;
    bob.until_at("done=accepted").await;
    assert_eq!(carried(&desk, &first).await["total"], 21.0);
    // A click, counted from the page that was opened; ann's keys are of a page without a decision.
    let effort = "SELECT keys_pressed || ' ' || (seconds_spent < 600) FROM document_revision";
    assert_eq!(desk.scalar(effort).await, "0 true");
    for browser in [&ann, &bob] {
        assert_stayed_here(&desk, browser).await;
    }
}

/// Violations of WCAG 2.2 AA and of good practice that axe-core finds, a page that is wider than
/// its window, and an empty notice.
async fn faults(browser: &DrivenBrowser, axe: &str) -> Vec<String> {
    let script = format!(
        "{axe}; const done = arguments[arguments.length - 1];
         const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
         const wide = document.documentElement.scrollWidth > innerWidth ? ['wider than its window'] : [];
         const empty = (it) => it.checkVisibility() && !it.textContent.trim();
         if ([...document.querySelectorAll('.notice')].some(empty)) wide.push('an empty notice');
         axe.run(document, {{ runOnly: tags, rules: {{ 'target-size': {{ enabled: true }} }} }}).then(
             (found) => done(wide.concat(found.violations.map((it) =>
                 it.id + ' ' + it.nodes.map((node) => node.html).join(' ')))),
             (error) => done(['axe: ' + error]));"
    );
    let found = browser.run_until_done(&script).await;
    found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Hours with counts for the charts, and rows for the pages of people and the audit.
async fn fill_counts_and_people(desk: &WebConsole) {
    desk.execute(
        "INSERT INTO ended_hour (hour, completed, flagged, failed, cancelled, p50_s, p95_s,
             failures, cost_nanos)
         SELECT date_trunc('hour', docmill_now(), 'UTC') - n * interval '1 hour',
             40 + n * 7 % 23, n % 9, n % 4, 0, 4 + n % 5, 20 + n * 11 % 37,
             jsonb_build_object('corrupt', n % 3, 'timeout', n % 2), n * 10000000
         FROM generate_series(1, 24) n",
    )
    .await;
    desk.execute(
        "INSERT INTO console_user (name, role, made_by) VALUES ('carl', 'viewer', 'web:admin');
         INSERT INTO console_token (user_name, sha256, made_by)
             VALUES ('carl', sha256('x'), 'web:admin');
         INSERT INTO saved_view (owner, list, name, query)
             VALUES ('web:admin', 'ingestions', 'Failed', 'status=failed');
         INSERT INTO worker (id, started_at, seen_at, slots, slots_used, lanes)
             VALUES ('w-1', docmill_now(), docmill_now(), 4, 0, '[{\"provider\": \"hook\",
                 \"model\": \"erp\", \"in_flight\": 0, \"waiting\": 2, \"breaker\": \"closed\",
                 \"denied\": false, \"answered_s\": 900, \"answer_ms\": 34, \"failing_s\": 30}]');
         INSERT INTO operator_action (operator, action, target) VALUES ('ann', 'pause', 'all:')",
    )
    .await;
}

/// Names and paths of all pages.
fn all_pages(document: &str, ingestion: &str) -> Vec<(&'static str, String)> {
    vec![
        ("overview", "/overview".to_owned()),
        ("ingestions", "/ingestions?status=failed".to_owned()),
        ("ingestion", format!("/ingestions/{ingestion}")),
        ("change", format!("/ingestions/change?of=selected&id={ingestion}")),
        ("export", format!("/ingestions/export?of=selected&id={ingestion}")),
        ("reject", format!("/reviews/reject?of=documents&id={document}")),
        ("page", format!("/ingestions/{ingestion}/pages/1")),
        ("dead-letters", "/dead-letters".to_owned()),
        ("search", "/documents?q=acme".to_owned()),
        ("reviews", "/reviews".to_owned()),
        ("review", format!("/reviews/{document}")),
        ("upload", "/upload".to_owned()),
        ("pauses", "/pauses".to_owned()),
        ("quality", "/quality".to_owned()),
        ("webhooks", "/webhooks".to_owned()),
        ("api-reference", "/api-reference".to_owned()),
        ("companies", "/companies".to_owned()),
        ("kinds", "/kinds".to_owned()),
        ("kind", "/kinds/invoice".to_owned()),
        ("draft", "/kinds/generic/draft".to_owned()),
        ("replay", format!("/replays/{document}")),
        ("audit", "/audit".to_owned()),
        ("people", "/people".to_owned()),
        ("user", "/people?user=carl".to_owned()),
        ("missing", "/nowhere".to_owned()),
        ("sign-in", "/sign-in".to_owned()),
    ]
}

/// Looks at all pages in this colour scheme and size, and keeps a picture of each as `name`.
async fn see_all_pages(name: &str, scheme: &str, size: ScreenSize) {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    super::api::store_transcript(&desk, ingestion).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    desk.waiting("acme", "b.pdf").await;
    fill_counts_and_people(&desk).await;
    let axe = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/axe/axe.min.js");
    let axe = std::fs::read_to_string(axe)
        .unwrap_or_else(|error| panic!("axe-core is not there ({error}): run `scripts/axe.sh`"));
    super::kinds::store_replay(&desk, document).await;
    let operator = sit_down(&desk, "admin").await;
    operator.show_as(scheme, size).await;
    let mut wrong = Vec::new();
    for (page, path) in all_pages(&document.to_string(), &ingestion.to_string()) {
        if page == "sign-in" {
            operator.forget_cookies().await;
        }
        operator.open(&desk.url(&path)).await;
        let faults = faults(&operator, &axe).await;
        wrong.extend(faults.into_iter().map(|it| format!("{page}: {it}")));
        operator.keep_screen(&format!("{page}-{name}")).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_stayed_here(&desk, &operator).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_keeps_people_out_by_light() {
    Box::pin(see_all_pages("light", "light", ScreenSize::DESK)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_keeps_people_out_in_the_dark() {
    Box::pin(see_all_pages("dark", "dark", ScreenSize::DESK)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_keeps_people_out_on_a_phone() {
    Box::pin(see_all_pages("phone", "light", ScreenSize::PHONE)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_the_picture_comes_first_and_the_decisions_are_at_the_thumb() {
    let desk = WebConsole::open().await;
    let _worker = DeskWorker::start(&desk);
    let document = hand_in(&desk, "T-1").await;
    let ann = sit_down(&desk, "ann").await;
    ann.show_as("light", ScreenSize::PHONE).await;
    ann.open(&desk.url(&format!("/reviews/{document}"))).await;
    let is_drawn = "const it = document.querySelector('.sheet img');
         return it.complete && it.naturalWidth > 500";
    until(SOON, || async { ann.run(is_drawn).await == true }).await;
    ann.run("scrollTo(0, 0); document.activeElement.blur()").await;
    ann.keep_screen("review-thumb").await;
    let (picture, fields) = (edges(&ann, ".sheets").await, edges(&ann, ".fields").await);
    assert!(picture[1] < 300.0 && picture[3] <= fields[1], "{picture:?} above {fields:?}");
    assert!(picture[3] - picture[1] > 250.0 && picture[2] <= 390.0, "{picture:?}");
    for button in ["accept", "correct", "skip", "reject"] {
        let [left, top, right, bottom] = edges(&ann, &format!("button[value={button}]")).await;
        let is_seen = left >= 0.0 && right <= 390.0 && top > 600.0 && bottom <= 844.0;
        assert!(is_seen && bottom - top >= 32.0, "{button}: {left} {top} {right} {bottom}");
    }
    ann.click("button[value=accept]").await;
    ann.until_at("done=accepted").await;
    assert_stayed_here(&desk, &ann).await;
}

/// Runs if a browser takes it for more than text, wherever on the page it stands.
const MARKUP: &str = "</title></textarea><img src=x onerror=\"window.hit=1\"><script>window.hit=2</script>\" autofocus onfocus=\"window.hit=3";

#[tokio::test(flavor = "multi_thread")]
async fn markup_in_a_suppliers_name_is_read_and_not_run_by_a_browser() {
    let desk = WebConsole::open().await;
    let mut data = invoice(21.0);
    data["supplier_name"] = MARKUP.into();
    data["line_items"][0]["description"] = MARKUP.into();
    let (document, ingestion) = desk.refused("acme", &data).await;
    desk.execute(&format!(
        "UPDATE document SET structured_data = '{data}', original_name = '{MARKUP}';
         UPDATE ingestion SET detail = '{MARKUP}'"
    ))
    .await;
    let ann = sit_down(&desk, "ann").await;
    let pages = [
        format!("/ingestions/{ingestion}"),
        "/ingestions".to_owned(),
        "/documents?q=onerror".to_owned(),
        "/reviews".to_owned(),
        format!("/reviews/{document}"),
    ];
    let mut read = 0;
    for page in pages {
        ann.open(&desk.url(&page)).await;
        assert_eq!(ann.run("return window.hit || 0").await, 0, "{page} ran it");
        assert_eq!(
            ann.run("return document.querySelectorAll('main img:not([src$=picture])').length")
                .await,
            0
        );
        read += usize::from(ann.text().await.contains("<img src=x onerror="));
    }
    assert!(read >= 3, "only {read} pages show it at all");
    assert_eq!(ann.value("#field-supplier_name").await, MARKUP);
    assert_stayed_here(&desk, &ann).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_lay_the_console_under_its_own() {
    let desk = WebConsole::open_with(|_| {}).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = listener.local_addr().unwrap();
    let frame = format!(
        "<title>bait</title><iframe src=\"{}\" onload=\"document.title = 'laid'\"></iframe>",
        desk.url("/pauses")
    );
    let bait = axum::Router::new().fallback(async move || axum::response::Html(frame));
    let serving = tokio::spawn(async move { axum::serve(listener, bait).await.unwrap() });
    let victim = DrivenBrowser::start().await;
    victim.open(&format!("http://{elsewhere}/")).await;
    until(SOON, || async { victim.run("return document.title").await == "laid" }).await;
    // The frame shows the browser's own page about the refusal.
    let complaints = victim.take_complaints().await;
    let refused = |it: &String| it.contains("frame") && it.contains(&desk.address.to_string());
    assert!(complaints.iter().any(refused), "{complaints:?}");
    serving.abort();
}
