//! Those who may not, those who pretend, and those who only want to do harm.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::desk::{PageAnswer, WebConsole, invoice, send};
use crate::support::world::SOON;

/// Every page, with an id in its place.
fn pages(document: impl ToString, ingestion: impl ToString) -> Vec<String> {
    let (document, ingestion) = (document.to_string(), ingestion.to_string());
    vec![
        "/".to_owned(),
        "/overview".to_owned(),
        "/dead-letters".to_owned(),
        "/ingestions".to_owned(),
        "/ingestions?status=failed".to_owned(),
        format!("/ingestions/{ingestion}"),
        format!("/ingestions/change?of=selected&id={ingestion}"),
        format!("/ingestions/export?of=selected&id={ingestion}"),
        format!("/reviews/reject?of=documents&id={document}"),
        format!("/ingestions/{ingestion}/transcript?format=text"),
        format!("/ingestions/{ingestion}/pages/1"),
        format!("/ingestions/{ingestion}/pages/1/picture"),
        "/documents".to_owned(),
        "/documents?q=a.pdf".to_owned(),
        "/reviews".to_owned(),
        format!("/reviews/{document}"),
        "/reviews/ahead".to_owned(),
        "/pauses".to_owned(),
        "/quality".to_owned(),
        "/webhooks".to_owned(),
        "/api-reference".to_owned(),
        "/companies".to_owned(),
        "/kinds".to_owned(),
        "/kinds/invoice".to_owned(),
        "/kinds/invoice/draft".to_owned(),
        format!("/replays/{document}"),
        "/audit".to_owned(),
        "/people".to_owned(),
        "/people?user=ann".to_owned(),
    ]
}

/// Method and path of everything that the description names, with an id in its place.
async fn described(desk: &WebConsole, id: impl ToString) -> Vec<(Method, String)> {
    let description = desk.get("/openapi.json", "viewer").await.json();
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path
                .replace("{id}", &id.to_string())
                .replace("{document_id}", &id.to_string())
                .replace("{upload_id}", &id.to_string())
                .replace("{number}", "1")
                .replace("{target}", "erp")
                .replace("{kind}", "invoice");
            all.push((method.to_uppercase().parse().unwrap(), path));
        }
    }
    assert!(all.len() > 8, "{all:?}");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_or_changes_anything_without_a_known_token() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let stranger = desk.stranger();
    for path in pages(document, ingestion) {
        let answer = stranger.get(&path).await;
        let place = answer.location().split('?').next();
        assert_eq!((answer.status, place), (StatusCode::SEE_OTHER, Some("/sign-in")), "{path}");
        let forged = stranger.request(Method::GET, &path).header("cookie", "docmill_session=00");
        assert_eq!(send(forged).await.status, StatusCode::SEE_OTHER, "{path}");
        // A token is no session, and is not taken for one.
        let bearer = stranger.request(Method::GET, &path).bearer_auth("token of ann");
        assert_eq!(send(bearer).await.status, StatusCode::SEE_OTHER, "{path}");
    }
    for path in [format!("/ingestions/{ingestion}/retry"), format!("/reviews/{document}")] {
        let answer = stranger.post_raw(&path, "form_secret=&confirm=yes&decision=accept").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let wrong = stranger.post_raw("/sign-in", "token=nobody").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    let ann = desk.browser("ann").await;
    for (method, path) in described(&desk, ingestion).await {
        let path = format!("/api/v1{path}");
        let none = stranger.request(method.clone(), &path);
        let wrong = stranger.request(method.clone(), &path).bearer_auth("nobody");
        let session = ann.request(method.clone(), &path);
        for request in [none, wrong, session] {
            let answer = send(request).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
            assert_eq!(answer.json()["code"], "unauthorized");
        }
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_do_what_it_is_for_and_no_more() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    for (name, path, allowed) in [
        ("viewer", format!("/reviews/{document}"), false),
        ("viewer", "/reviews/reject".to_owned(), false),
        ("viewer", "/reviews/undo".to_owned(), false),
        ("ann", "/reviews/undo".to_owned(), true),
        ("viewer", "/ingestions/export".to_owned(), false),
        ("ann", "/reviews/reject".to_owned(), true),
        ("ann", "/ingestions/export".to_owned(), true),
        ("ann", "/dead-letters/redrive".to_owned(), false),
        ("viewer", format!("/reviews/{document}/undo"), false),
        ("viewer", format!("/reviews/{document}/renew"), false),
        ("viewer", format!("/reviews/{document}/release"), false),
        ("ann", format!("/reviews/{document}/undo"), true),
        ("ann", format!("/reviews/{document}/renew"), true),
        ("ann", format!("/reviews/{document}/release"), true),
        ("viewer", format!("/ingestions/{ingestion}/retry"), false),
        ("viewer", "/pauses".to_owned(), false),
        ("viewer", "/views".to_owned(), true),
        ("viewer", "/views/remove".to_owned(), true),
        ("ann", format!("/ingestions/{ingestion}/retry"), false),
        ("ann", format!("/ingestions/{ingestion}/cancel"), false),
        ("ann", "/ingestions/change".to_owned(), false),
        ("ann", "/pauses".to_owned(), false),
        ("ann", "/pauses/end".to_owned(), false),
        ("ann", "/companies".to_owned(), false),
        ("ann", "/webhooks/replay".to_owned(), false),
        ("ann", "/webhooks/test".to_owned(), false),
        ("ann", "/companies/remove".to_owned(), false),
        ("ann", "/kinds/invoice/draft".to_owned(), false),
        ("operator", "/people".to_owned(), false),
        ("operator", "/people/rights".to_owned(), false),
        ("operator", "/people/end".to_owned(), false),
        ("operator", "/people/tokens".to_owned(), false),
        ("operator", "/people/tokens/revoke".to_owned(), false),
        ("admin", "/people/tokens".to_owned(), true),
        // The role is checked first: these fail because their forms lack the secret.
        ("ann", format!("/reviews/{document}"), true),
        ("operator", format!("/reviews/{document}"), true),
        ("operator", "/pauses".to_owned(), true),
    ] {
        let answer = desk.browser(name).await.post_raw(&path, "confirm=yes").await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        let for_role = answer.body.contains("This is for ");
        assert_eq!(for_role, !allowed, "{name} {path}: {}", answer.body);
    }
    for (method, path) in described(&desk, ingestion).await {
        // Webhooks and the bound of silent errors are for operators, answers to senders for reviewers.
        let is_reading_of_others = path.starts_with("/webhooks")
            || path.starts_with("/quality")
            || path.starts_with("/replays")
            || path.ends_with("/answer");
        let changes = matches!(method, Method::POST | Method::PUT) || is_reading_of_others;
        let answer = send(desk.call(method, &path, "viewer")).await;
        assert_eq!(answer.status == StatusCode::FORBIDDEN, changes, "{path}: {answer:?}");
    }
    let retry = desk.call(Method::POST, &format!("/ingestions/{ingestion}/retry"), "ann");
    assert_eq!(send(retry).await.status, StatusCode::FORBIDDEN);
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_tenant_sees_nothing_of_another() {
    let desk = WebConsole::open().await;
    let (own, own_ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let (other, other_ingestion) = desk.refused("rival", &invoice(2.0)).await;
    let (lone, lone_ingestion) = desk.refused("", &invoice(3.0)).await;
    desk.execute(
        "UPDATE ingestion SET tenant = NULL WHERE tenant = '';
        UPDATE document SET tenant = NULL WHERE tenant = ''",
    )
    .await;
    let acme = desk.browser("acme").await;
    for path in [
        "/ingestions",
        "/documents?q=a.pdf",
        "/reviews",
        "/ingestions?tenant=rival",
        "/reviews?tenant=rival",
    ] {
        let page = acme.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        let shown = |id: &str| page.body.contains(id);
        assert!(shown(&own.to_string()) || shown(&own_ingestion.to_string()), "{path}");
        for hidden in [
            other.to_string(),
            other_ingestion.to_string(),
            lone.to_string(),
            lone_ingestion.to_string(),
            "rival".to_owned(),
        ] {
            assert!(!shown(&hidden), "{path} shows {hidden}");
        }
    }
    for path in ["/ingestions", "/reviews"] {
        assert_eq!(desk.get(path, "acme").await.json()["items"].as_array().unwrap().len(), 1);
    }
    for path in ["/overview", "/dead-letters", "/webhooks"] {
        assert_eq!(acme.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    for id in [other.to_string(), other_ingestion.to_string(), lone.to_string()] {
        for path in [format!("/ingestions/{id}"), format!("/reviews/{id}")] {
            assert_eq!(acme.get(&path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        for (method, path) in described(&desk, &id).await {
            if path.contains(&id) {
                let request = desk.call(method, &path, "acme").header("if-match", "\"x\"");
                let answer =
                    send(request.json(&serde_json::json!({ "decision": "accepted" }))).await;
                let refused = matches!(answer.status.as_u16(), 404 | 400);
                assert!(refused, "{path}: {answer:?}");
            }
        }
    }
}

/// The page of a review that is open somewhere.
const PAGE: &str = "&page=6f1c2a52-7b0e-4a35-9f0a-3d6c1c0b8e11";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_tenant_changes_nothing_of_another_with_a_form_of_its_own() {
    let desk = WebConsole::open().await;
    let (other, other_ingestion) = desk.refused("rival", &invoice(2.0)).await;
    let acme = desk.browser("acme").await;
    let secret = super::desk::form_fields(&acme.get("/pauses").await.body, "/pauses")[0].1.clone();
    let change = "/ingestions/change".to_owned();
    let selected = format!("&of=selected&id={other_ingestion}&change=retry");
    let matching = "&of=matching&status=failed&tenant=rival&change=retry";
    let export = "/ingestions/export".to_owned();
    let exported = format!("&of=selected&id={other_ingestion}&form=json");
    let queued = format!("&of=documents&id={other}&form=json");
    let version =
        format!("SELECT to_json(updated_at) #>> '{{}}' FROM document WHERE id = '{other}'");
    let pick = format!("&why=x&pick={other}+{}", desk.scalar(&version).await.replace('+', "%2B"));
    for (path, more, status) in [
        (change.clone(), selected.as_str(), StatusCode::NOT_FOUND),
        (change, matching, StatusCode::OK),
        (export.clone(), exported.as_str(), StatusCode::NOT_FOUND),
        (export.clone(), queued.as_str(), StatusCode::NOT_FOUND),
        (export, "&of=waiting&tenant=rival&form=json", StatusCode::UNPROCESSABLE_ENTITY),
        ("/reviews/reject".to_owned(), pick.as_str(), StatusCode::OK),
        ("/reviews/undo".to_owned(), exported.as_str(), StatusCode::OK),
        (format!("/ingestions/{other_ingestion}/retry"), "", StatusCode::NOT_FOUND),
        (format!("/ingestions/{other_ingestion}/cancel"), "", StatusCode::NOT_FOUND),
        (format!("/reviews/{other}"), "&decision=reject&why=x", StatusCode::NOT_FOUND),
        (format!("/reviews/{other}"), "&decision=take_over", StatusCode::NOT_FOUND),
        (format!("/reviews/{other}"), "&decision=skip", StatusCode::NOT_FOUND),
        (format!("/reviews/{other}/undo"), "", StatusCode::NOT_FOUND),
        (format!("/reviews/{other}/renew"), PAGE, StatusCode::NOT_FOUND),
        (format!("/reviews/{other}/release"), PAGE, StatusCode::NOT_FOUND),
        ("/pauses".to_owned(), "&scope=tenant&name=rival", StatusCode::FORBIDDEN),
        ("/pauses".to_owned(), "&scope=all", StatusCode::FORBIDDEN),
        ("/pauses".to_owned(), "&scope=kind&name=invoice", StatusCode::FORBIDDEN),
    ] {
        let form = format!("form_secret={secret}&confirm=yes{more}");
        assert_eq!(acme.post_raw(&path, &form).await.status, status, "{path}{more}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    let form = format!("form_secret={secret}&confirm=yes&scope=tenant&name=acme");
    assert_eq!(acme.post_raw("/pauses", &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT string_agg(name, ',') FROM pause").await, "acme");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_site_or_another_session_changes_nothing() {
    let desk = WebConsole::open().await;
    let operator = desk.browser("operator").await;
    let secret =
        super::desk::form_fields(&operator.get("/pauses").await.body, "/pauses")[0].1.clone();
    let other = desk.browser("operator").await;
    let foreign =
        super::desk::form_fields(&other.get("/pauses").await.body, "/pauses")[0].1.clone();
    assert_ne!(secret, foreign);
    let form = |secret: &str| format!("form_secret={secret}&confirm=yes&scope=all");
    for wrong in ["scope=all&confirm=yes".to_owned(), form(""), form("00"), form(&foreign)] {
        let answer = operator.post_raw("/pauses", &wrong).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{wrong}");
    }
    let right = form(&secret);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
    ] {
        let answer = send(operator.post_request("/pauses", &right).header(name, value)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    // A page that is fetched changes nothing.
    let fetched = operator.get(&format!("/pauses?{right}")).await;
    assert_eq!(fetched.status, StatusCode::OK);
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "0");
    let origin = format!("http://{}", desk.address);
    let done = send(operator.post_request("/pauses", &right).header("origin", origin)).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_a_cookie_that_no_script_reads_and_ends_with_its_sign_out() {
    let desk = WebConsole::open_with(|config| {
        config.web.tokens = vec![docmill_core::config::WebToken {
            name: "ann".to_owned(),
            sha256: docmill_core::model::digest::encode_hex(
                <sha2::Sha256 as sha2::Digest>::digest("token of ann"),
            ),
            role: docmill_core::config::WebRole::Viewer,
            tenant: String::new(),
            highest_priority: docmill_core::model::Priority::Critical,
        }];
        config.web.base_path = "/desk".to_owned();
        config.web.origin = "https://ops.example.com".to_owned();
    })
    .await;
    let stranger = desk.stranger();
    let answer = stranger.post_raw("/sign-in", "token=token+of+ann").await;
    let cookie = answer.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/desk"] {
        assert!(cookie.split("; ").any(|found| found == part), "{cookie}");
    }
    assert_eq!(answer.location(), "/desk/");
    let ann = desk.browser("ann").await;
    let page = ann.get("/overview").await;
    assert_eq!(page.status, StatusCode::OK);
    let out = ann.send_form(&page.body, "/sign-out", &[]).await;
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{out:?}");
    assert_eq!(
        ann.get("/overview").await.location(),
        "/desk/sign-in?next=%2Foverview",
        "the old cookie is worth nothing"
    );
}

/// Scripts on a page; each is the file of ours and has nothing inside.
fn scripts(page: &str) -> usize {
    let ours = page.matches("<script src=\"/assets/").count();
    let empty = page.matches(".js\" defer></script>").count();
    assert_eq!((ours, empty), (page.matches("<script").count(), page.matches("</script").count()));
    ours
}

fn assert_sealed(answer: &PageAnswer, path: &str) {
    let policy = answer.header("content-security-policy");
    for part in
        ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]
    {
        assert!(policy.contains(part), "{path}: {policy}");
    }
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    let kept = answer.header("cache-control");
    assert_eq!(kept == "no-store", !path.starts_with("/assets/"), "{path}: {kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_forbids_scripts_frames_and_keeping_and_nothing_is_loaded_from_elsewhere() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let operator = desk.browser("operator").await;
    for path in
        pages(document, ingestion).into_iter().chain(["/sign-in".to_owned(), "/nowhere".to_owned()])
    {
        let answer = operator.get(&path).await;
        assert_sealed(&answer, &path);
        // The form of a draft shows a schema with its name.
        let shown = answer.body.replace("https://json-schema.org/draft/", "");
        for mark in ["http://", "https://", "style="] {
            assert!(!shown.contains(mark), "{path} has {mark}");
        }
        // Files of our own, and nothing in the page itself.
        let own = match path.as_str() {
            "/overview" => 1,
            path if path == "/reviews/ahead" || path.starts_with("/reviews/reject") => 0,
            path if path.starts_with("/reviews/") => 2,
            _ => 0,
        };
        assert_eq!(scripts(&answer.body), own, "{path}");
    }
    let page = operator.get("/overview").await.body;
    let style = page.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
    let style = style.split('"').next().unwrap();
    let asset = desk.stranger().get(style).await;
    assert_eq!(asset.header("content-type"), "text/css; charset=utf-8");
    assert_sealed(&asset, style);
    assert!(!asset.body.contains("url(") && !asset.body.contains("@import"));
    for path in ["/api/v1/overview", "/api/v1/nowhere", "/api"] {
        assert_sealed(&desk.stranger().get(path).await, path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_from_documents_and_people_is_shown_as_text_on_every_page() {
    let desk = WebConsole::open().await;
    let evil = "<script>alert(1)</script>\" autofocus onfocus=\"alert(2)";
    let mut data = invoice(1.0);
    data["supplier_name"] = evil.into();
    data["supplier_address"] = format!("{evil}\n</textarea>{evil}").into();
    data["line_items"][0]["description"] = evil.into();
    let (document, ingestion) = desk.refused("acme", &data).await;
    let quoted = evil.replace('\'', "''");
    desk.execute(&format!(
        "UPDATE document SET original_name = '{quoted}', structured_data = '{data}', tenant = NULL;
         UPDATE ingestion SET detail = '{quoted}', worker = '{quoted}', tenant = '{quoted}',
             review_reasons = ARRAY['{quoted}', 'totals'];
         UPDATE document SET tenant = '{quoted}', review_reasons = ARRAY['{quoted}'];
         INSERT INTO pause (scope, name, paused_by, why) VALUES ('tenant', '{quoted}', '{quoted}', '{quoted}');
         INSERT INTO document_revision (document_id, reviewer, decision, why, reasons_before, data_after)
             VALUES ('{document}', '{quoted}', 'rejected', '{quoted}', '{{}}', NULL)"
    ))
    .await;
    let operator = desk.browser("operator").await;
    let mut shown = 0;
    let searched = "/documents?q=%3Cscript%3E%22+onfocus%3D%22".to_owned();
    let filtered = "/ingestions?tenant=%22%3E%3Cscript%3E&since=&cursor=".to_owned();
    for path in pages(document, ingestion).into_iter().chain([searched, filtered]) {
        let answer = operator.get(&path).await;
        assert!(scripts(&answer.body) <= 2, "{path}");
        assert!(!answer.body.contains("\" onfocus="), "{path}");
        assert_eq!(
            answer.body.matches("</textarea>").count(),
            answer.body.matches("<textarea").count()
        );
        shown += usize::from(answer.body.contains("&lt;script&gt;"));
    }
    assert!(shown >= 7, "only {shown} pages show it at all");
    let wrong = operator.get("/ingestions?status=%3Cscript%3E").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(!wrong.body.contains("<script"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_number_of_a_form_costs_no_more_than_the_lines_that_it_may_add() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(1.0)).await;
    let reviewer = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    let lines = |answer: &PageAnswer| answer.body.matches("aria-label=\"Line ").count();
    for line in [5_000, 2_000_000_000, usize::MAX] {
        let far = format!("item.line_items.{line}.amount");
        for decision in ["correct", "take_over"] {
            let filled = [(far.as_str(), "1"), ("decision", decision)];
            let answer = reviewer.submit(&path, &path, &filled).await;
            assert!(lines(&answer) < 100, "{line}, {decision}: {} cells", lines(&answer));
            let expected = match decision {
                "correct" => StatusCode::UNPROCESSABLE_ENTITY,
                _ => StatusCode::OK,
            };
            assert_eq!(answer.status, expected, "{line}, {decision}");
        }
    }
    let near = [("item.line_items.900.amount", "1"), ("decision", "take_over")];
    let answer = reviewer.submit(&path, &path, &near).await;
    assert!(lines(&answer) > 900, "the attack would arrive: {} cells", lines(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_grows_past_a_mebibyte_is_refused_and_larger_data_that_was_read_can_be_accepted()
{
    let desk = WebConsole::open().await;
    let mut data = invoice(1.0);
    let line = data["line_items"][0].clone();
    data["line_items"] = vec![line.clone(); 30_000].into();
    let (large, _) = desk.refused("acme", &data).await;
    let (small, _) = desk.refused("acme", &invoice(1.0)).await;
    let grown = json!({ "decision": "corrected", "data": data });
    for (document, decision, expected) in [
        (small, grown, StatusCode::UNPROCESSABLE_ENTITY),
        (large, json!({ "decision": "accepted" }), StatusCode::OK),
    ] {
        let path = format!("/reviews/{document}");
        let version = desk.get(&path, "ann").await.header("etag").to_owned();
        let call = desk.call(Method::POST, &format!("{path}/decision"), "ann");
        let answer = send(call.header("if-match", version).json(&decision)).await;
        assert_eq!(answer.status, expected, "{:.300}", answer.body);
        assert_eq!(answer.body.contains("1024 KiB"), expected != StatusCode::OK);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_try_to_climb_lead_nowhere() {
    let desk = WebConsole::open().await;
    let operator = desk.browser("operator").await;
    for path in [
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/overview",
        "/assets/x.css",
        "/ingestions/..%2foverview",
        "/ingestions/%00",
        "/reviews/%ff",
        "//overview",
        "/overview/",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/ingestions/00000000-0000-0000-0000-000000000000",
    ] {
        let mut stream = TcpStream::connect(desk.address).await.unwrap();
        let host = desk.address;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.starts_with("HTTP/1.1 404")
                || answer.starts_with("HTTP/1.1 303")
                || answer.starts_with("HTTP/1.1 400"),
            "{path}: {answer}"
        );
        let answer = operator.get(path).await;
        let climbed = answer.status.is_success() && !answer.body.contains("oldest in progress");
        assert!(!climbed && !answer.status.is_server_error(), "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_or_never_end_are_refused_and_take_no_memory() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let operator = desk.browser("operator").await;
    for (path, bytes) in [
        (format!("/ingestions/{ingestion}/retry"), 70 << 10),
        (format!("/reviews/{document}"), 5 << 20),
        ("/sign-in".to_owned(), 1 << 20),
    ] {
        let answer = operator.post_request(&path, &"x".repeat(bytes)).send().await;
        // A client that goes on sending after the answer may see the connection break instead.
        if let Ok(answer) = answer {
            assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        }
    }
    let mut stream = TcpStream::connect(desk.address).await.unwrap();
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 2000000000\r\n\r\n",
        desk.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(SOON, stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413", "it is refused before the body comes");
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_only_this_machine_is_served_and_only_under_its_own_name() {
    let desk = WebConsole::open_with(|_| {}).await;
    let local = desk.stranger();
    let page = local.get("/pauses").await;
    assert_eq!(page.status, StatusCode::OK);
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"] {
        let answer = send(local.request(Method::GET, "/pauses").header("host", host)).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        let call = local.request(Method::GET, "/api/v1/overview").header("host", host);
        assert_eq!(send(call).await.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    let done =
        local.send_form(&page.body, "/pauses", &[("confirm", "yes"), ("scope", "all")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{done:?}");
    assert_eq!(desk.scalar("SELECT paused_by FROM pause").await, "web:local");
    let call = local
        .request(Method::POST, "/api/v1/ingestions/x/retry")
        .header("origin", "https://evil.example");
    assert_eq!(send(call).await.status, StatusCode::FORBIDDEN);

    let refused = Command::new(env!("CARGO_BIN_EXE_docmill"))
        .arg("web")
        .env("DOCMILL__WEB__ADDRESS", "0.0.0.0:0")
        .env("DOCMILL__DATABASE__URL", desk.database.url())
        .env("DOCMILL__QUEUE__BACKEND", "folder")
        .env("DOCMILL__QUEUE__PATH", desk.folder.path())
        .env("DOCMILL__STORE__BACKEND", "folder")
        .env("DOCMILL__STORE__PATH", desk.folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("web.address is no loopback address, and there are no web.tokens"),
        "{said}"
    );
}

#[test]
fn a_new_token_is_printed_once_with_the_hash_that_the_configuration_keeps() {
    let made =
        Command::new(env!("CARGO_BIN_EXE_docmill")).args(["web", "--new-token", "--json"]).output();
    let printed: serde_json::Value = serde_json::from_slice(&made.unwrap().stdout).unwrap();
    let token = printed["token"].as_str().unwrap();
    let hash = <sha2::Sha256 as sha2::Digest>::digest(token);
    assert_eq!(printed["sha256"], docmill_core::model::digest::encode_hex(hash));
    assert_eq!(token.len(), "dm_".len() + 64);
}
