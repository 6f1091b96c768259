//! Reviewers at their pages.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::desk::{Browser, WebConsole, filled_form, form_fields, invoice, send};
use crate::support::documents;

async fn carried(desk: &WebConsole, document: impl ToString) -> Value {
    let sql = format!("SELECT structured_data FROM document WHERE id = '{}'", document.to_string());
    serde_json::from_str(&desk.scalar(&sql).await).unwrap_or(Value::Null)
}

fn assert_usable_by_keyboard(page: &str) {
    for name in ["total", "invoice_date", "line_items", "why"] {
        let id = if name == "why" { name.to_owned() } else { format!("field-{name}") };
        assert!(page.contains(&format!(" for=\"{id}\"")), "{name} has a label");
        assert!(page.contains(&format!("id=\"{id}\"")), "{name} can be focused");
    }
    for key in ["accesskey=\"c\"", "accesskey=\"a\"", "accesskey=\"r\""] {
        assert!(page.contains(key), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_finds_what_waits_corrects_a_field_and_a_line_and_is_led_to_the_next() {
    let desk = WebConsole::open().await;
    let (first, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let (second, _) = desk.refused("acme", &invoice(13.0)).await;
    let ann = desk.browser("ann").await;
    let queue = ann.get("/reviews").await.body;
    let places = [first, second].map(|id| queue.find(&id.to_string()).unwrap());
    assert!(places[0] < places[1], "the one that waits longest comes first");

    let path = format!("/reviews/{first}");
    let page = ann.get(&path).await.body;
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
    assert!(place("Needs attention") < place("Other fields"));
    assert!(
        place("name=\"field.total\"") < place("name=\"field.supplier_name\""),
        "doubtful first"
    );
    assert!(place("A required value is missing.") < place("Other fields"));
    assert!(page.contains("The amounts do not add up to the total."), "rules in words");
    assert!(page.contains("found on page 2"));
    assert_usable_by_keyboard(&page);

    let filled = [
        ("field.total", "13"),
        ("field.due_date", "2026-12-01"),
        ("item.line_items.0.amount", "9.50"),
        ("item.line_items.2.description", "Glue"),
        ("item.line_items.2.amount", "3.5"),
        ("decision", "correct"),
        ("why", "  by the paper "),
    ];
    let done = ann.send_form(&page, &path, &filled).await;
    let next = format!("/reviews/{second}?done=corrected&undo={first}");
    assert_eq!(done.location(), next, "{done:?}");
    let data = carried(&desk, first).await;
    assert_eq!((&data["total"], &data["due_date"]), (&13.into(), &"2026-12-01".into()));
    assert_eq!(data["supplier_name"], "Acme", "what was not touched stays");
    let items = data["line_items"].as_array().unwrap();
    assert_eq!(
        (items.len(), &items[0]["amount"], &items[0]["quantity"]),
        (3, &9.5.into(), &2.into())
    );
    assert_eq!((&items[2]["description"], &items[2]["unit_price"]), (&"Glue".into(), &Value::Null));
    let revision = "SELECT reviewer || ' ' || decision || ' ' || why FROM document_revision";
    assert_eq!(desk.scalar(revision).await, "web:ann corrected by the paper");
    let kept =
        format!("SELECT data_before IS NULL FROM document_revision WHERE document_id = '{first}'");
    assert_eq!(desk.scalar(&kept).await, "true");

    let last = ann
        .submit(
            &format!("/reviews/{second}"),
            &format!("/reviews/{second}"),
            &[("decision", "accept")],
        )
        .await;
    assert_eq!(last.location(), format!("/reviews?done=accepted&undo={second}"));
    assert_eq!(carried(&desk, second).await["total"], 13.0);
    assert!(ann.get("/reviews").await.body.contains("No document needs review."));
    let again = ann.get(&path).await.body;
    assert!(again.contains("corrected by <bdi>web:ann</bdi>"), "the decision stands on the page");
    assert!(ann.get(&format!("/ingestions/{ingestion}")).await.body.contains("failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_beside_what_was_typed_and_nothing_is_written() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    for (filled, told) in [
        (vec![("field.total", "thirteen"), ("decision", "correct")], "`total` is not a number"),
        (
            vec![("item.line_items.0.amount", "ten"), ("decision", "correct")],
            "`line_items.amount` is not a number",
        ),
        (vec![("field.currency", "euros"), ("decision", "correct")], "/currency"),
        (vec![("decision", "correct")], "You have changed nothing"),
        (vec![("field.total", "13"), ("decision", "accept")], "You have changed fields"),
        (vec![("decision", "reject")], "say why it is rejected"),
    ] {
        // The earlier input would be in the form again.
        desk.execute("DELETE FROM review_draft").await;
        let answer = ann.submit(&path, &path, &filled).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{told}");
        assert!(answer.body.contains(told), "{told}: {}", answer.body);
        for (name, value) in filled.iter().filter(|(name, _)| name.contains('.')) {
            let kept = form_fields(&answer.body, &path);
            assert!(kept.contains(&((*name).to_owned(), (*value).to_owned())), "{name} is kept");
        }
    }
    desk.execute("DELETE FROM review_draft").await;
    let none = ann.submit(&path, &path, &[("decision", "maybe")]).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST);
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    let rejected = ann.submit(&path, &path, &[("decision", "reject"), ("why", "an advert")]).await;
    assert_eq!(rejected.location(), format!("/reviews?done=rejected&undo={document}"));
    assert_eq!(carried(&desk, document).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn seconds_and_keys_of_a_decision_are_kept_within_bounds_and_shown_as_medians_of_a_kind() {
    let desk = WebConsole::open().await;
    let ann = desk.browser("ann").await;
    assert!(!desk.browser("operator").await.get("/quality").await.body.contains("Effort"));
    for (seconds, keys, kept) in [
        ("12", "30", "12 30"),
        ("20", "2", "20 2"),
        ("100", "7", "100 7"),
        ("", "", ""),
        ("12", "x", ""),
        ("-1", "2", ""),
        ("86401", "2", ""),
        ("1", "100001", ""),
    ] {
        let (document, _) = desk.refused("acme", &invoice(21.0)).await;
        let path = format!("/reviews/{document}");
        let filled = [("seconds", seconds), ("keys", keys), ("decision", "accept")];
        let done = ann.submit(&path, &path, &filled).await;
        assert!(done.status.is_redirection(), "{seconds} {keys}: {done:?}");
        let stored = format!(
            "SELECT seconds_spent || ' ' || keys_pressed FROM document_revision
             WHERE document_id = '{document}'"
        );
        assert_eq!(desk.scalar(&stored).await, kept, "{seconds} {keys}");
    }
    let page = desk.browser("operator").await.get("/quality").await.body;
    let row = "<td><bdi>invoice</bdi></td><td>3</td><td>20</td><td>7</td>";
    assert!(page.contains("Effort of decisions") && page.contains(row), "{page}");
    let efforts = desk.get("/quality", "rival").await.json()["efforts"].clone();
    assert_eq!(efforts, json!([]), "of one tenant alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_reviewers_at_once_the_second_is_told_by_whom_and_keeps_what_was_typed() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{document}");
    let (for_ann, for_bob) = (ann.get(&path).await.body, bob.get(&path).await.body);
    let corrects = |total: &'static str| [("field.total", total), ("decision", "correct")];
    let first = ann.send_form(&for_ann, &path, &corrects("13")).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    let second = bob.send_form(&for_bob, &path, &corrects("14")).await;
    assert_eq!(second.status, StatusCode::PRECONDITION_FAILED);
    assert!(second.body.contains("Meanwhile web:ann has decided (corrected)."), "{}", second.body);
    assert!(second.body.contains("Your unsaved input:") && second.body.contains("<bdi>14</bdi>"));
    assert_eq!(carried(&desk, document).await["total"], 13);
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "1");
    // Having looked again he may decide otherwise.
    let then = bob.send_form(&second.body, &path, &corrects("14")).await;
    assert_eq!(then.status, StatusCode::SEE_OTHER, "{}", then.body);
    assert_eq!(carried(&desk, document).await["total"], 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_who_decide_at_once_write_one_decision() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    let page = ann.get(&path).await.body;
    let one = || ann.send_form(&page, &path, &[("decision", "accept")]);
    let answers = futures::future::join_all((0..30).map(|_| one())).await;
    let done = answers.iter().filter(|answer| answer.status == StatusCode::SEE_OTHER).count();
    let told = answers.iter().filter(|it| it.status == StatusCode::PRECONDITION_FAILED).count();
    assert_eq!((done, told), (1, 29));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "1");
}

/// The reviewer who has a document open.
async fn holder(desk: &WebConsole, document: impl ToString) -> String {
    let document = document.to_string();
    desk.scalar(&format!("SELECT reviewer FROM review_lease WHERE document_id = '{document}'"))
        .await
}

/// Opens a review as a browser with the script does: the page claims its document.
async fn open_review(browser: &Browser<'_>, path: &str) -> String {
    let page = browser.get(path).await.body;
    if page.contains("name=\"page\"") {
        signal(browser, &page, path, "renew?opens").await;
    }
    page
}

/// Sends the signal of an open page: it is still there, or it was left.
async fn signal(browser: &Browser<'_>, page: &str, path: &str, what: &str) -> Value {
    let fields = form_fields(page, path);
    let of = |name: &str| fields.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let (what, opens) = what.split_once('?').map_or((what, ""), |(what, _)| (what, "&opens=yes"));
    let form = format!("form_secret={}&page={}{opens}", of("form_secret"), of("page"));
    let answer = browser.post_raw(&format!("{path}/{what}"), &form).await;
    assert!(answer.status.is_success(), "{answer:?}");
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_has_its_document_until_it_is_left_skipped_decided_or_taken_over() {
    let desk = WebConsole::open().await;
    let (first, _) = desk.refused("acme", &invoice(21.0)).await;
    let (second, _) = desk.refused("acme", &invoice(13.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{first}");
    let looked = desk.browser("viewer").await.get(&path).await.body;
    assert_eq!(holder(&desk, first).await, "", "who only looks has nothing");
    assert!(looked.contains("<fieldset disabled>") && !looked.contains("value=\"accept\""));
    for link in [path.as_str(), "/reviews/next", "/reviews"] {
        let request = ann.request(Method::GET, link).header("sec-fetch-site", "cross-site");
        send(request).await;
        assert_eq!(holder(&desk, first).await, "", "a link claims nothing");
    }
    let for_ann = open_review(&ann, &path).await;
    assert_eq!(holder(&desk, first).await, "web:ann");
    let for_bob = bob.get(&path).await.body;
    assert!(for_bob.contains("<bdi>web:ann</bdi> has had it since"), "{for_bob}");
    assert!(!for_bob.contains("value=\"accept\""), "there is nothing to decide with");
    assert!(bob.get("/reviews").await.body.contains("<bdi>web:ann</bdi> since"));
    let led = bob.submit("/reviews", "/reviews/next", &[]).await;
    assert_eq!(led.location(), format!("/reviews/{second}"));
    assert_eq!(holder(&desk, second).await, "web:bob");
    assert_eq!(signal(&ann, &for_ann, &path, "renew").await, json!({ "held": true, "says": "" }));

    // A program is refused like a person, and takes over like one.
    let decide = async |more: Value| {
        let version = desk.get(&path, "bob").await.header("etag").to_owned();
        let mut body = json!({ "decision": "rejected", "why": "x" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = desk.call(Method::POST, &format!("{path}/decision"), "bob");
        send(call.header("if-match", version).json(&body)).await
    };
    let refused = decide(json!({})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (StatusCode::CONFLICT, &json!("held")));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");

    let over = bob.send_form(&for_bob, &path, &[("decision", "take_over")]).await;
    assert!(over.status.is_success() && over.body.contains("value=\"accept\""), "{over:?}");
    let told = signal(&ann, &for_ann, &path, "renew").await;
    assert!(told["says"].as_str().unwrap().starts_with("web:bob has taken it over"), "{told}");
    signal(&ann, &for_ann, &path, "release").await;
    assert_eq!(holder(&desk, first).await, "web:bob", "her page gives back what was hers alone");
    let late =
        ann.send_form(&for_ann, &path, &[("field.total", "13"), ("decision", "correct")]).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(late.body.contains("web:bob has the document open since"), "{}", late.body);
    assert!(form_fields(&late.body, &path).contains(&("field.total".to_owned(), "13".to_owned())));
    let skipped = bob.send_form(&over.body, &path, &[("decision", "skip")]).await;
    assert_eq!(skipped.location(), format!("/reviews/{second}"));
    assert_eq!(holder(&desk, first).await, "");
    assert_eq!(holder(&desk, second).await, "web:bob");
    let again = open_review(&ann, &path).await;
    signal(&ann, &again, &path, "release").await;
    assert_eq!(holder(&desk, first).await, "");
    open_review(&ann, &path).await;
    assert_eq!(decide(json!({ "take_over": true })).await.status, StatusCode::OK);
    assert_eq!(holder(&desk, first).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_undone_by_the_button_beside_its_notice_and_by_nobody_else() {
    let desk = WebConsole::open().await;
    let (first, _) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let (path, undo) = (format!("/reviews/{first}"), format!("/reviews/{first}/undo"));
    let done = ann.submit(&path, &path, &[("decision", "accept")]).await;
    let notice = ann.get(done.location()).await.body;
    assert!(notice.contains("Undo your decision"));
    assert!(!bob.get(done.location()).await.body.contains("Undo your decision"));
    let secret = form_fields(&bob.get("/pauses").await.body, "/sign-out")[0].1.clone();
    let others = bob.post_raw(&undo, &format!("form_secret={secret}")).await;
    assert_eq!(others.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(others.body.contains("who alone can undo it"), "{}", others.body);
    let undone = ann.send_form(&notice, &undo, &[]).await;
    assert_eq!(undone.location(), format!("{path}?done=undone"));
    assert_eq!(carried(&desk, first).await, Value::Null);
    assert!(ann.get("/reviews").await.body.contains(&first.to_string()), "it waits again");
    let done = ann.submit(&path, &path, &[("decision", "accept")]).await;
    desk.database.advance(std::time::Duration::from_secs(61)).await;
    assert!(!ann.get(done.location()).await.body.contains("Undo your decision"));
    assert_eq!(ann.send_form(&notice, &undo, &[]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(carried(&desk, first).await["total"], 21.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_person_is_shown_what_the_first_has_said_and_accepts_it() {
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = super::desk::tokens();
        config.review.four_eyes_above = [("*".to_owned(), 10.into())].into();
    })
    .await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{document}");
    let corrects = [("field.total", "13"), ("decision", "correct")];
    let first = ann.submit(&path, &path, &corrects).await;
    assert_eq!(first.location(), format!("/reviews?done=first&undo={document}"), "not hers again");
    assert_eq!(carried(&desk, document).await, Value::Null);
    let refused = ann.submit(&path, &path, &[("decision", "accept")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.body.contains("needs a second person"), "{}", refused.body);
    ann.send_form(&refused.body, &path, &[("decision", "skip")]).await;
    let page = bob.get(&path).await.body;
    assert!(page.contains("<bdi>web:ann</bdi> has corrected it at"));
    assert!(form_fields(&page, &path).contains(&("field.total".to_owned(), "13".to_owned())));
    let second = bob.send_form(&page, &path, &[("decision", "accept")]).await;
    assert_eq!(second.location(), format!("/reviews?done=accepted&undo={document}"));
    assert_eq!(carried(&desk, document).await["total"], 13);
    assert!(bob.get(&path).await.body.contains("after <bdi>web:ann</bdi>"));
}

/// Sends a review with these values typed, as its script does a moment after the last key.
async fn type_into(browser: &Browser<'_>, path: &str, filled: &[(&str, &str)]) {
    let form = filled_form(&browser.get(path).await.body, path, filled);
    assert_eq!(browser.post_raw(&format!("{path}/check"), &form).await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_document_is_of_the_kind_tenant_and_order_that_the_reviewer_chose() {
    let desk = WebConsole::open().await;
    let (_other, _) = desk.refused("rival", &invoice(99.0)).await;
    let (small, _) = desk.refused("acme", &invoice(13.0)).await;
    let (large, _) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let choice = "tenant=acme&order=amount";
    let page = ann.get(&format!("/reviews?{choice}")).await.body;
    let first = ann.send_form(&page, &format!("/reviews/next?{choice}"), &[]).await;
    assert_eq!(first.location(), format!("/reviews/{large}?{choice}"));
    let accept = [("decision", "accept")];
    let done = ann.submit(first.location(), first.location(), &accept).await;
    assert_eq!(done.location(), format!("/reviews/{small}?{choice}&done=accepted&undo={large}"));
    let path = format!("/reviews/{small}?{choice}");
    let done = ann.submit(&path, &path, &accept).await;
    assert!(done.location().starts_with("/reviews?tenant=acme"), "not the rival's: {done:?}");
    // An empty list says why.
    let none = ann.get(&format!("/reviews?{choice}")).await.body;
    assert!(none.contains("No documents match.") && !none.contains("No document needs review."));
}

/// Two hundred documents of two tenants and kinds that wait for a person.
async fn mixed_queue(desk: &WebConsole) -> BTreeSet<String> {
    let mut waiting = BTreeSet::new();
    for number in 0..200_u32 {
        let tenant = if number % 3 == 0 { "rival" } else { "acme" };
        let (document, _) = desk.refused(tenant, &invoice(f64::from(number))).await;
        waiting.insert(document.to_string());
    }
    desk.execute("UPDATE ingestion SET kind = 'credit_note' WHERE (structured_data ->> 'total')::float8 > 120").await;
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_documents_come_once_each_and_a_restart_in_the_middle_loses_none() {
    let mut desk = WebConsole::open().await;
    let waiting = mixed_queue(&desk).await;
    let ann = desk.browser("ann").await;
    let mut at = ann.submit("/reviews", "/reviews/next", &[]).await.location().to_owned();
    let cookie = ann.cookie().to_owned();
    let mut seen = BTreeSet::new();
    for turn in 0..waiting.len() {
        let document = at.split(['/', '?']).nth(2).unwrap().to_owned();
        assert!(seen.insert(document.clone()), "turn {turn}: {document} is shown twice");
        let path = format!("/reviews/{document}");
        let mut page = desk.browser_with(&cookie).get(&at).await.body;
        if turn == 100 {
            let typed = [("field.supplier_name", "Typed before the restart")];
            type_into(&desk.browser_with(&cookie), &path, &typed).await;
            desk.restart(|_| {}).await;
            let again = desk.browser_with(&cookie).get(&at).await.body;
            assert!(again.contains("Typed before the restart"), "{again}");
            page = again;
        }
        let how = match turn % 4 {
            0 => [("decision", "correct"), ("field.currency", "USD")],
            1 => [("decision", "skip"), ("why", "")],
            2 => [("decision", "reject"), ("reason", "unreadable")],
            _ => [("decision", "accept"), ("why", "")],
        };
        let done = desk.browser_with(&cookie).send_form(&page, &path, &how).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "turn {turn}: {done:?}");
        done.location().clone_into(&mut at);
    }
    assert_eq!(seen, waiting);
    assert!(at.starts_with("/reviews?"), "the queue is at its end: {at}");
    let decided = "SELECT string_agg(decision || ' ' || count, ' ' ORDER BY decision) FROM (
        SELECT decision, count(*) FROM document_revision GROUP BY decision) AS each";
    assert_eq!(desk.scalar(decided).await, "accepted 50 corrected 50 rejected 50");
    assert_eq!(desk.scalar("SELECT count(*) FROM review_later").await, "50");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_of_the_next_document_is_led_to_early_and_claims_nothing() {
    let desk = WebConsole::open().await;
    let (first, _) = desk.refused("acme", &invoice(21.0)).await;
    let (_, other) = desk.refused("rival", &invoice(22.0)).await;
    let (_, second) = desk.refused("acme", &invoice(23.0)).await;
    let ann = desk.browser("ann").await;
    for (choice, next) in [("", other), ("tenant=acme&amp;", second)] {
        let path = format!("/reviews/{first}?{}", choice.replace("&amp;", ""));
        let page = ann.get(&path).await.body;
        let ahead = format!("/reviews/ahead?{choice}left={first}");
        assert!(page.contains(&format!("data-ahead=\"{ahead}\"")), "{choice}: {page}");
        let led = ann.get(&ahead.replace("&amp;", "&")).await;
        assert_eq!(led.location(), format!("/ingestions/{next}/pages/1/picture"), "{choice}");
    }
    let none = ann.get(&format!("/reviews/ahead?reason=nothing&left={first}")).await;
    assert_eq!(none.status, StatusCode::NO_CONTENT);
    assert_eq!(desk.scalar("SELECT count(*) FROM review_lease").await, "0");
    let rival = desk.browser("rival").await.get(&format!("/reviews/ahead?left={first}")).await;
    assert_eq!(
        rival.location(),
        format!("/ingestions/{other}/pages/1/picture"),
        "of its own tenant"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reviewer_sets_aside_does_not_return_for_a_day_and_is_listed() {
    let desk = WebConsole::open().await;
    let (first, _) = desk.refused("acme", &invoice(21.0)).await;
    let (second, _) = desk.refused("acme", &invoice(13.0)).await;
    let (third, _) = desk.refused("acme", &invoice(14.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{first}");
    let skipped = ann.submit(&path, &path, &[("decision", "skip")]).await;
    assert_eq!(skipped.location(), format!("/reviews/{second}"));
    let next = format!("/reviews/{second}");
    let done = ann.submit(&next, &next, &[("decision", "accept")]).await;
    assert!(done.location().starts_with(&format!("/reviews/{third}?")), "{done:?}");
    let queue = ann.get("/reviews").await.body;
    assert!(
        !queue.contains(&first.to_string()) && queue.contains("Later <span class=\"count\">1<")
    );
    assert!(ann.get("/reviews?part=later").await.body.contains(&first.to_string()));
    let led = bob.submit("/reviews", "/reviews/next", &[]).await;
    assert_eq!(led.location(), path, "it is others' as before");
    desk.execute("UPDATE review_later SET until = docmill_now()").await;
    desk.execute("DELETE FROM review_lease").await;
    assert_eq!(ann.submit("/reviews", "/reviews/next", &[]).await.location(), path);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_outlives_the_page_the_session_and_a_skip_until_the_decision() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{document}");
    type_into(&ann, &path, &[("field.total", "13,"), ("why", "by the paper")]).await;
    let again = desk.browser("ann").await.get(&path).await.body;
    let shown = form_fields(&again, &path);
    assert!(again.contains("Your unsaved changes of"), "{again}");
    for (name, value) in [("field.total", "13,"), ("why", "by the paper")] {
        assert!(shown.contains(&(name.to_owned(), value.to_owned())), "{name}: {shown:?}");
    }
    assert!(!bob.get(&path).await.body.contains("13,"), "it is hers alone");
    let secret = desk.scalar("SELECT form FROM review_draft").await;
    assert!(!secret.contains("form_secret"), "{secret}");

    // More lines decide nothing, and keep what is there.
    let filled = [("item.line_items.4.description", "Glue"), ("decision", "more_lines")];
    let more = ann.submit(&path, &path, &filled).await;
    let lines = form_fields(&more.body, &path);
    let has = |name: &str| lines.iter().any(|(known, _)| known == name);
    assert!(has("item.line_items.9.description") && more.status == StatusCode::OK);
    assert!(lines.contains(&("item.line_items.4.description".to_owned(), "Glue".to_owned())));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");

    // A form that meets no session is in the form again after the sign-in, and decides nothing.
    let filled = [("item.line_items.4.description", "Paste"), ("decision", "accept")];
    let form = filled_form(&more.body, &path, &filled);
    let refused = desk.stranger().post_raw(&path, &form).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let signed = desk.stranger();
    let back = signed.send_form(&refused.body, "/sign-in", &[("token", "token of ann")]).await;
    assert_eq!(back.location(), path);
    assert!(ann.get(&path).await.body.contains("value=\"Paste\""));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");

    let discard = ann.submit(&path, &path, &[("decision", "discard")]).await;
    assert_eq!(discard.location(), path);
    assert_eq!(desk.scalar("SELECT count(*) FROM review_draft").await, "0");
    type_into(&ann, &path, &[("field.total", "14")]).await;
    let done = ann.submit(&path, &path, &[("field.total", "13"), ("decision", "correct")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT count(*) FROM review_draft").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_ingestion_shows_what_a_person_decided_and_who() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    let filled = [("field.supplier_name", "Right Ltd"), ("decision", "correct"), ("why", "typo")];
    ann.submit(&path, &path, &filled).await;
    let page = ann.get(&format!("/ingestions/{ingestion}")).await.body;
    for text in ["Corrected by <bdi>web:ann</bdi>", "Changed: Supplier name", "Right Ltd", "typo"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let (new, old) = (page.find("Right Ltd").unwrap(), page.find("As it was read").unwrap());
    assert!(new < old, "the reading comes after the decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_original_is_handed_to_reviewers_alone_and_recorded_and_read_again_as_another_kind() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.store_original(document, &documents::invoice("O-1")).await;
    let ann = desk.browser("ann").await;
    let page = format!("/ingestions/{ingestion}");
    let path = format!("{page}/original");
    let saved = ann.submit(&page, &path, &[]).await;
    assert_eq!(saved.header("content-disposition"), "attachment; filename*=UTF-8''a.pdf");
    assert!(saved.status == StatusCode::OK && saved.body.starts_with("%PDF"), "{saved:?}");
    let recorded = "SELECT operator || ' ' || action || ' ' || target FROM operator_action";
    assert_eq!(desk.scalar(recorded).await, format!("web:ann download {ingestion}"));
    for (name, status) in [("viewer", 403), ("rival", 404)] {
        let other = desk.browser(name).await;
        let secret = form_fields(&other.get("/ingestions").await.body, "/sign-out")[0].1.clone();
        let refused = other.post_raw(&path, &format!("form_secret={secret}")).await;
        assert_eq!(refused.status.as_u16(), status, "{name}");
    }
    let review = ann.get(&format!("/reviews/{document}")).await.body;
    let form = filled_form(&review, &format!("/reviews/{document}"), &[("new_kind", "receipt")]);
    let again = ann.post_raw(&format!("{page}/kind"), &form).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER, "{again:?}");
    let newest = format!(
        "SELECT kind FROM ingestion WHERE document_id = '{document}'
         ORDER BY created_at DESC LIMIT 1"
    );
    assert_eq!(desk.scalar(&newest).await, "receipt");
    assert_eq!(desk.scalar("SELECT count(*) FROM document").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_document_is_read_again_with_the_password_that_an_operator_types() {
    let desk = WebConsole::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.execute("UPDATE ingestion SET reason = 'encrypted'").await;
    let operator = desk.browser("operator").await;
    let page = format!("/ingestions/{ingestion}");
    let path = format!("{page}/password");
    let done = operator.submit(&page, &path, &[("password", " open sesame ")]).await;
    assert!(done.location().starts_with(&format!("{page}?done=")), "{done:?}");
    assert_eq!(desk.scalar("SELECT password FROM document_password").await, " open sesame ");
    let told =
        "SELECT count(*) FROM operator_action WHERE row(operator_action)::text LIKE '%sesame%'";
    assert_eq!(desk.scalar(told).await, "0", "the record has no password");
    let empty = "SELECT count(*) FROM ingestion WHERE status = 'in-progress'";
    assert_eq!(desk.scalar(empty).await, "1");
}
