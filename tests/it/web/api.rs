//! Programs at their interface.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::desk::{WebConsole, invoice, send, token_of};
use crate::support::documents;

/// A transcript of one page with one word.
pub(super) fn transcript_of_a_word() -> String {
    let word =
        json!({ "text": "ZIMMER", "box": { "x": 1, "y": 1, "w": 9, "h": 9 }, "confidence": 1 });
    let page = json!({ "number": 1, "source": "native", "width": 100, "height": 100, "quality": 1,
        "lines": [{ "words": [word] }] });
    let transcript = json!({ "format": 1, "sha256": "0".repeat(64), "provider": "t", "quality": 1,
        "pages": [page] });
    transcript.to_string()
}

/// The same where the ingestion says.
pub(super) async fn store_transcript(desk: &WebConsole, ingestion: impl ToString) {
    let key = format!("ingestions/{}/transcription-output.json", ingestion.to_string());
    let path = desk.folder.path().join("store").join(&key);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, transcript_of_a_word()).unwrap();
    desk.execute(&format!(
        "UPDATE ingestion SET transcription_file_path = '{key}' WHERE id = '{}'",
        ingestion.to_string()
    ))
    .await;
}

/// A target that answered 410, with a dead delivery.
pub(super) async fn given_up(desk: &WebConsole, document: impl ToString) -> i64 {
    desk.execute(&format!(
        "INSERT INTO webhook_target (name, place, url_hash, disabled_at, disabled_why)
             VALUES ('erp', 'https://erp.example.com', 'x', docmill_now(), 'it answered 410 Gone');
         INSERT INTO webhook_delivery (target, document_id, event, event_id, event_number,
             occurred_at, facts, state, open_since, ended_at)
         VALUES ('erp', '{}', 'document.failed', gen_random_uuid(), 1, docmill_now(), '{{}}',
             'dead', docmill_now(), docmill_now())",
        document.to_string()
    ))
    .await;
    let newest = "SELECT max(id) FROM webhook_delivery WHERE target = 'erp'";
    desk.scalar(newest).await.parse().unwrap()
}

/// Differences between an answer and its description.
pub(super) fn differences(description: &Value, path: &str, answer: &Value) -> Vec<String> {
    let methods = description["paths"][path].as_object().unwrap();
    let described = methods.values().next().unwrap();
    let reference = &described["responses"]["200"]["content"]["application/json"]["schema"];
    let mut schema = reference.clone();
    schema["components"] = description["components"].clone();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator
        .iter_errors(answer)
        .map(|error| format!("{} {error}", error.instance_path()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one call for each operation")]
async fn every_answer_is_as_the_served_description_says() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.waiting("acme", "b.pdf").await;
    store_transcript(&desk, ingestion).await;
    store_einvoice(&desk, ingestion).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    desk.execute(&format!(
        "INSERT INTO attempt (ingestion_id, claims, token, ended_at, outcome, final)
         VALUES ('{ingestion}', 1, gen_random_uuid(), docmill_now(), 'gate_refused', true)"
    ))
    .await;
    super::kinds::store_replay(&desk, ingestion).await;
    let given_up = given_up(&desk, document).await;
    let description = desk.get("/openapi.json", "viewer").await.json();
    assert_eq!(description["openapi"], "3.1.0");
    let mut asked = 0;
    for (template, methods) in description["paths"].as_object().unwrap() {
        let path = template
            .replace("{id}", &ingestion.to_string())
            .replace("{document_id}", &document.to_string())
            .replace("{number}", "1")
            .replace("{target}", "erp")
            .replace("/answer", "/answer?form=cdar")
            .replace("/export", "/export?form=csv")
            .replace("/ingestions/export?form=csv", "/ingestions/export?form=json&kind=invoice");
        if methods.get("get").is_some() {
            let answer = desk.get(&path, "operator").await;
            assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
            asked += 1;
            let forms = &methods["get"]["responses"]["200"]["content"];
            if forms.get("application/json").is_none() {
                assert!(forms.get(answer.header("content-type")).is_some(), "{path}: {forms}");
                continue;
            }
            assert_eq!(differences(&description, template, &answer.json()), [""; 0], "{path}");
        }
    }
    let decision = "/reviews/{document_id}/decision";
    let version = desk.get(&format!("/reviews/{document}"), "ann").await;
    let post = desk.call(Method::POST, &format!("/reviews/{document}/decision"), "ann");
    let post = post.header("if-match", version.header("etag"));
    let done = send(post.json(&json!({ "decision": "accepted" }))).await;
    assert_eq!(differences(&description, decision, &done.json()), [""; 0]);
    let undo = desk.call(Method::POST, &format!("/reviews/{document}/undo"), "ann");
    let undone = send(undo).await.json();
    assert_eq!(differences(&description, "/reviews/{document_id}/undo", &undone), [""; 0]);
    assert_eq!(undone["decision"], "undone");
    for verb in ["retry", "cancel"] {
        let template = format!("/ingestions/{{id}}/{verb}");
        let path = format!("/ingestions/{ingestion}/{verb}");
        let done = send(desk.call(Method::POST, &path, "operator")).await;
        assert_eq!(differences(&description, &template, &done.json()), [""; 0]);
    }
    let seen = json!([{ "document_id": document, "version": "2026-01-01T00:00:00Z" }]);
    for (path, person, body) in [
        ("/reviews/reject", "ann", json!({ "documents": seen, "why": "unreadable" })),
        ("/reviews/undo", "ann", json!({ "documents": [document] })),
        ("/ingestions/change", "operator", json!({ "change": "cancel", "ids": [ingestion] })),
    ] {
        let done = send(desk.call(Method::POST, path, person).json(&body)).await.json();
        assert_eq!(differences(&description, path, &done), [""; 0], "{path}: {done}");
    }
    let replay = desk.call(Method::POST, "/webhooks/replay", "operator");
    let told = send(replay.json(&json!({ "deliveries": [given_up] }))).await.json();
    assert_eq!(differences(&description, "/webhooks/replay", &told), [""; 0]);
    let enable = desk.call(Method::POST, "/webhooks/erp/enable", "operator");
    let told = send(enable.json(&json!({ "why": "mended" }))).await.json();
    assert_eq!(differences(&description, "/webhooks/{target}/enable", &told), [""; 0]);
    let test = desk.call(Method::POST, "/webhooks/erp/test", "operator");
    let told = send(test.json(&json!({}))).await.json();
    assert_eq!(differences(&description, "/webhooks/{target}/test", &told), [""; 0]);
    let replay = desk.call(Method::POST, "/kinds/generic/replays", "operator");
    let told = send(replay.json(&json!({}))).await.json();
    assert_eq!(differences(&description, "/kinds/{kind}/replays", &told), [""; 0]);
    let shadow = format!("/replays/{ingestion}/shadow");
    let shadow = desk.call(Method::PUT, &shadow, "operator").json(&json!({ "share": 0.0 }));
    let told = send(shadow).await.json();
    assert_eq!(differences(&description, "/replays/{id}/shadow", &told), [""; 0], "{told}");
    let own = desk.call(Method::PUT, "/own-companies", "operator");
    let own = send(own.json(&json!({ "companies": [{ "name": "Acme GmbH" }] }))).await.json();
    assert_eq!(own["items"][0]["name"], "Acme GmbH");
    for (path, body) in [
        ("/master-data/suppliers", json!({ "suppliers": [{ "number": "1", "name": "A" }] })),
        ("/master-data/orders", json!({ "orders": [{ "number": "9", "amount": "1.50" }] })),
    ] {
        let put = send(desk.call(Method::PUT, path, "operator").json(&body)).await.json();
        assert_eq!(put["suppliers"], 1, "{path}: {put}");
    }
    // Documents handed in are compared with it in `uploads`.
    assert_eq!(asked + 18, description["paths"].as_object().unwrap().len());
    // The description is closed: other fields are refused.
    let wrong = json!({ "items": [{}], "next_cursor": 5 });
    assert!(differences(&description, "/ingestions", &wrong).len() > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_done_is_told_as_a_problem_with_a_stable_code() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let (_, open) = desk.waiting("acme", "b.pdf").await;
    let decide = format!("/reviews/{document}/decision");
    let version = desk.get(&format!("/reviews/{document}"), "ann").await.header("etag").to_owned();
    let call = |method: Method, path: &str| desk.call(method, path, "operator");
    let post = |path: &str| call(Method::POST, path).header("if-match", &version);
    let accepted = json!({ "decision": "accepted" });
    let old = "\"2020-01-01T00:00:00Z\"";
    for (request, status, code) in [
        (call(Method::GET, "/nowhere"), 404, "not_found"),
        (call(Method::GET, "/ingestions/x"), 404, "not_found"),
        (call(Method::PUT, "/ingestions"), 405, "method_not_allowed"),
        (call(Method::GET, "/ingestions?status=done"), 400, "bad_request"),
        (call(Method::GET, "/ingestions?limit=1000"), 400, "bad_request"),
        (call(Method::GET, "/ingestions?cursor=x"), 400, "bad_request"),
        (call(Method::GET, "/ingestions?since=100000years"), 400, "bad_request"),
        (call(Method::GET, &format!("/ingestions/{open}/result")), 409, "conflict"),
        (call(Method::GET, &format!("/ingestions/{open}/transcript")), 409, "conflict"),
        (call(Method::POST, &decide).json(&accepted), 428, "version_needed"),
        (
            call(Method::POST, &decide).header("if-match", old).json(&accepted),
            412,
            "version_changed",
        ),
        (post(&decide).body("decision=accepted"), 415, "unsupported_media_type"),
        (post(&decide).json(&json!({ "decision": "SECRETMARK" })), 400, "bad_request"),
        (
            post(&decide).json(&json!({ "decision": "accepted", "fields": { "total": 1 } })),
            400,
            "bad_request",
        ),
        (post(&decide).json(&json!({ "decision": "corrected" })), 400, "bad_request"),
        (
            post(&decide)
                .json(&json!({ "decision": "corrected", "fields": { "total": "SECRETMARK" } })),
            422,
            "refused",
        ),
        (
            post(&decide).json(&json!({ "decision": "corrected", "data": { "SECRETMARK": 1 } })),
            422,
            "refused",
        ),
        (post(&decide).json(&json!({ "decision": "rejected" })), 422, "refused"),
        (
            post(&format!("/ingestions/{ingestion}/retry")).json(&json!({ "who": "x" })),
            400,
            "bad_request",
        ),
    ] {
        let answer = send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{code}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let problem = answer.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)));
        assert!(!answer.body.contains("SECRETMARK"), "{answer:?}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_description_allows_is_taken_however_it_is_written_and_nothing_empty_is() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let retry = desk.call(Method::POST, &format!("/ingestions/{ingestion}/retry"), "operator");
    let done = send(retry.json(&json!({ "why": "new\0rules" }))).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    let why = "SELECT string_agg(why, ',') FROM operator_action";
    assert_eq!(desk.scalar(why).await, "new\u{fffd}rules");
    let replay = desk.call(Method::POST, "/webhooks/replay", "operator");
    let done = send(replay.json(&json!({ "deliveries": [7.0, 8] }))).await;
    assert_eq!(done.status, StatusCode::OK, "{done:?}");
    // Whole numbers are taken as such; the rest of these requests is refused.
    for (path, body, code) in [
        (
            format!("/reviews/{document}/decision"),
            json!({ "decision": "cut", "pages": [2.0] }),
            "refused",
        ),
        (
            "/kinds/generic/replays".to_owned(),
            json!({ "max_documents": 0.0, "max_cost_nanos": 1.0 }),
            "refused",
        ),
    ] {
        let version = desk.get(&format!("/reviews/{document}"), "ann").await;
        let asked = desk.call(Method::POST, &path, "operator").json(&body);
        let answer = send(asked.header("if-match", version.header("etag"))).await;
        assert_eq!(answer.json()["code"], code, "{path}: {answer:?}");
    }
    for query in ["status=", "since=%20", "cursor=", "limit", "tenant=&status=failed"] {
        let answer = desk.get(&format!("/ingestions?{query}"), "operator").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
    // A form of a page sends what was left empty.
    let page = desk.browser("operator").await.get("/ingestions?kind=invoice&since=yesterday").await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.body.contains("since: "), "the page names what is wrong");
    assert!(page.body.contains("value=\"yesterday\""), "the form keeps what was typed");
    let page = desk.browser("operator").await.get("/ingestions?status=&since=").await;
    assert_eq!(page.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_not_sent_again_and_a_cursor_goes_on() {
    let desk = WebConsole::open().await;
    for name in ["a.pdf", "b.pdf", "c.pdf"] {
        desk.waiting("acme", name).await;
    }
    let first = desk.get("/ingestions?limit=2", "viewer").await;
    let tag = first.header("etag").to_owned();
    let again =
        desk.call(Method::GET, "/ingestions?limit=2", "viewer").header("if-none-match", &tag);
    let again = send(again).await;
    assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let page = first.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = desk.get(&format!("/ingestions?limit=2&cursor={cursor}"), "viewer").await.json();
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|row| row["id"].to_string()).collect()
    };
    let mut all = [ids(&page), ids(&rest)].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 3);
    desk.waiting("acme", "d.pdf").await;
    let changed =
        desk.call(Method::GET, "/ingestions?limit=2", "viewer").header("if-none-match", &tag);
    assert_eq!(send(changed).await.status, StatusCode::OK);
}

/// Runs the examples for shells of docs/guides/web.md that stand in the same block; what they
/// printed.
pub(super) async fn run_example(desk: &WebConsole, block: usize, more: &[(&str, &str)]) -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/web.md"))
        .unwrap();
    assert_eq!(page.matches("```sh\n").count(), 2, "examples that no test runs");
    let example = page.split("```sh\n").nth(block + 1).unwrap().split("```").next().unwrap();
    let file = desk.folder.path().join("march.pdf");
    std::fs::write(&file, documents::invoice("L-1")).unwrap();
    let ran = Command::new("sh")
        .args(["-eu", "-c", example])
        .current_dir(desk.folder.path())
        .env("DOCMILL_URL", desk.url(""))
        .env("DOCMILL_TOKEN", token_of("operator"))
        .env("FILE", &file)
        .envs(more.iter().copied())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}\n{printed}");
    printed
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_for_programs_in_the_docs_run_as_they_stand() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    store_transcript(&desk, ingestion).await;
    desk.store_original(document, &documents::invoice("A-1")).await;
    given_up(&desk, document).await;
    let (ingestion, id) = (ingestion.to_string(), document.to_string());
    let printed = run_example(&desk, 0, &[("INGESTION", &ingestion), ("DOCUMENT", &id)]).await;
    for text in [
        "\"fate\":\"submitted\"",
        "gate_refused",
        "ZIMMER",
        "\"decision\":\"corrected\"",
        "\"change\":\"reopened\"",
        "\"change\":\"cancelled\"",
        "\"blocks\":[{",
        "\"chunks\":[{",
        "\"state\":\"dead\"",
        "\"left\":[]",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    let total = format!("SELECT structured_data ->> 'total' FROM document WHERE id = '{document}'");
    assert_eq!(desk.scalar(&total).await, "13.0");
    let picture = std::fs::read(desk.folder.path().join("page-1")).unwrap();
    assert!(image::load_from_memory(&picture).is_ok(), "{} bytes", picture.len());
}

/// The facts of an e-invoice, as a worker writes them.
async fn store_einvoice(desk: &WebConsole, ingestion: impl ToString) {
    let party = |name: &str, siren: &str| {
        let id = json!({"scheme": "0002", "id": siren});
        json!({"name": name, "endpoint": id, "legal_id": id})
    };
    let reference = json!({
        "number": "A-1", "issued": "2026-09-22", "type_code": "380",
        "seller": party("Seller", "732829320"), "buyer": party("Buyer", "443061841"),
        "embedded_files": [{"name": "sheet.pdf", "media_type": "application/pdf", "bytes": 9}],
    });
    let finding = json!({
        "rule": "BR-CO-15", "severity": "fatal", "text": "Total <b>", "location": "/Invoice",
    });
    let rules = json!({"sets": ["EN 16931 UBL 1.3.16"], "findings": [finding]});
    desk.execute(&format!(
        "UPDATE ingestion SET reader = 'einvoice', einvoice_rules = '{rules}',
            einvoice_reference = '{reference}' WHERE id = '{}'",
        ingestion.to_string()
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_einvoice_is_shown_with_the_rules_that_it_breaks_by_its_terms_and_answered_by_decision()
{
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let path = |rest: &str| format!("/ingestions/{ingestion}{rest}");
    let none = desk.get(&path("/answer?form=cdar"), "ann").await;
    assert!(none.status.is_client_error(), "it read no e-invoice: {none:?}");
    store_einvoice(&desk, ingestion).await;
    for (rest, name, has) in [
        ("", "viewer", "BR-CO-15"),
        ("/result", "viewer", "\"rule\":\"BR-CO-15\""),
        ("/invoice?lang=de", "viewer", "Rechnungsgesamtbetrag einschließlich Umsatzsteuer"),
        ("/export?form=csv", "viewer", "document_id,file,tenant,"),
        ("/export?form=csv-lines", "viewer", ",line_items.description,"),
        (
            "/export?form=csv&separator=semicolon&decimal=comma",
            "viewer",
            "document_id;file;tenant;",
        ),
        ("/answer?form=invoice-response", "ann", "<cbc:ResponseCode>IP</cbc:ResponseCode>"),
        ("/answer?form=cdar", "ann", "<ram:ProcessConditionCode>204</ram:ProcessConditionCode>"),
    ] {
        let found = desk.get(&path(rest), name).await;
        assert_eq!(found.status, StatusCode::OK, "{rest}: {found:?}");
        assert!(found.body.contains(has), "{rest}: {}", found.body);
        let rival = desk.get(&path(rest), "rival").await;
        assert!(rival.status.is_client_error(), "{rest} is shown to another tenant");
    }
    let bare = desk.get(&path("/export?form=ubl"), "viewer").await;
    assert_eq!(bare.status, StatusCode::UNPROCESSABLE_ENTITY, "{bare:?}");
    assert!(bare.body.contains("BT-55"), "{}", bare.body);
    for rest in [
        "/answer",
        "/answer?form=pdf",
        "/invoice?lang=xx",
        "/export",
        "/export?form=pdf",
        "/export?form=csv&separator=pipe",
        "/export?form=csv&bom=yes",
    ] {
        assert_eq!(desk.get(&path(rest), "ann").await.status, StatusCode::BAD_REQUEST, "{rest}");
    }
    let viewer = desk.get(&path("/answer?form=cdar"), "viewer").await;
    assert_eq!(viewer.status, StatusCode::FORBIDDEN);

    let version = desk.get(&format!("/reviews/{document}"), "ann").await;
    let post = desk.call(Method::POST, &format!("/reviews/{document}/decision"), "ann");
    let decision = json!({"decision": "rejected", "why": "the rate is wrong"});
    let post = post.header("if-match", version.header("etag")).json(&decision);
    assert_eq!(send(post).await.status, StatusCode::OK);
    let response = desk.get(&path("/answer?form=invoice-response&reason=FIN"), "ann").await;
    for part in [">RE<", ">FIN<", ">the rate is wrong<"] {
        assert!(response.body.contains(part), "{part}: {}", response.body);
    }
    let unreasoned = desk.get(&path("/answer?form=cdar"), "ann").await;
    assert!(unreasoned.status.is_client_error(), "a refusal has a code: {unreasoned:?}");

    let browser = desk.browser("ann").await;
    let shown = browser.get(&path("")).await;
    assert!(shown.body.contains("BR-CO-15") && shown.body.contains("Total &lt;b&gt;"));
    let page = browser.get(&path("/invoice?lang=fr")).await;
    for text in ["Montant total de la facture avec TVA", "Document joint", "sheet.pdf"] {
        assert!(page.body.contains(text), "{text}: {}", page.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_the_pages_stands_beside_the_form_of_a_reviewer() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    store_transcript(&desk, ingestion).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    assert!(ann.get(&path).await.body.contains("ZIMMER"));
    std::fs::remove_dir_all(desk.folder.path().join("store/ingestions")).unwrap();
    let without = ann.get(&path).await;
    assert_eq!(without.status, StatusCode::OK, "the form is of use without it");
    assert!(without.body.contains("field.total") && !without.body.contains("ZIMMER"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_given_out_as_text_as_markdown_by_page_and_in_pieces_and_only_once() {
    let desk = WebConsole::open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    store_transcript(&desk, ingestion).await;
    let path = |rest: &str| format!("/ingestions/{ingestion}{rest}");
    for (rest, kind, has) in [
        ("/transcript", "application/json", "\"ZIMMER\""),
        ("/transcript?format=json", "application/json", "\"ZIMMER\""),
        ("/transcript?format=text", "text/plain; charset=utf-8", "ZIMMER"),
        ("/transcript?format=markdown", "text/markdown; charset=utf-8", "ZIMMER"),
        ("/pages/1", "application/json", "\"blocks\":[{"),
        ("/chunks?tokens=16", "application/json", "\"text\":\"ZIMMER\""),
    ] {
        let found = desk.get(&path(rest), "viewer").await;
        assert_eq!(found.status, StatusCode::OK, "{rest}: {found:?}");
        assert_eq!(found.header("content-type"), kind, "{rest}");
        assert!(found.body.contains(has), "{rest}: {}", found.body);
        let again = desk.call(Method::GET, &path(rest), "viewer");
        let again = send(again.header("if-none-match", found.header("etag"))).await;
        assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{rest}");
        let rival = desk.get(&path(rest), "rival").await;
        assert_eq!(rival.status, StatusCode::NOT_FOUND, "{rest} is shown to another tenant");
    }
    for (rest, status) in [
        ("/transcript?format=xml", StatusCode::BAD_REQUEST),
        ("/chunks?tokens=1", StatusCode::BAD_REQUEST),
        ("/pages/2", StatusCode::NOT_FOUND),
        ("/pages/x", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(desk.get(&path(rest), "viewer").await.status, status, "{rest}");
    }
    // The searchable copy is another file, which the transcript names.
    let none = desk.get(&path("/transcript?format=pdf"), "viewer").await;
    assert_eq!(none.status, StatusCode::CONFLICT, "{none:?}");
    let stored = |name: &str| {
        desk.folder.path().join("store").join(format!("ingestions/{ingestion}/{name}"))
    };
    let written = std::fs::read_to_string(stored("transcription-output.json")).unwrap();
    let naming = |said: Value| {
        let mut transcript: Value = serde_json::from_str(&written).unwrap();
        transcript["searchable"] = said;
        std::fs::write(stored("transcription-output.json"), transcript.to_string()).unwrap();
    };
    naming(json!({ "left_out": "too_large" }));
    let none = desk.get(&path("/transcript?format=pdf"), "viewer").await;
    assert_eq!(none.status, StatusCode::CONFLICT);
    assert!(none.body.contains("too_large"), "{none:?}");
    std::fs::write(stored("searchable.pdf"), "%PDF-1.7 of ours").unwrap();
    naming(json!({ "path": format!("ingestions/{ingestion}/searchable.pdf"), "sha256": "0" }));
    let copy = desk.get(&path("/transcript?format=pdf"), "viewer").await;
    assert_eq!((copy.status, copy.body.as_str()), (StatusCode::OK, "%PDF-1.7 of ours"));
    assert_eq!(copy.header("content-type"), "application/pdf");
    let rival = desk.get(&path("/transcript?format=pdf"), "rival").await;
    assert_eq!(rival.status, StatusCode::NOT_FOUND, "it is shown to another tenant");
    // Only what is ours is given out, whatever a transcript names.
    std::fs::write(desk.folder.path().join("store/other.pdf"), "%PDF of others").unwrap();
    naming(json!({ "path": "other.pdf", "sha256": "0" }));
    let other = desk.get(&path("/transcript?format=pdf"), "viewer").await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    // A transcript of an earlier worker is no JSON.
    let key = format!("ingestions/{ingestion}/transcription-output.json");
    std::fs::write(desk.folder.path().join("store").join(key), "{:pages []}").unwrap();
    let foreign = desk.get(&path("/transcript?format=text"), "viewer").await;
    assert_eq!(foreign.status, StatusCode::CONFLICT);
}

/// The numbers of all deliveries that were given up, two a page.
async fn dead_deliveries(desk: &WebConsole) -> Vec<i64> {
    let (mut numbers, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/webhooks/erp/deliveries?state=dead&limit=2{cursor}");
        let page = desk.get(&path, "operator").await.json();
        let rows = page["items"].as_array().unwrap();
        numbers.extend(rows.iter().map(|row| row["id"].as_i64().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return numbers,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lists_page_by_page_what_was_given_up_tells_it_again_and_enables_its_target() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let first = given_up(&desk, document).await;
    desk.execute(
        "INSERT INTO webhook_delivery (target, document_id, event, event_id, event_number,
             occurred_at, facts, state, open_since, ended_at)
         SELECT target, document_id, event, gen_random_uuid(), event_number + n, occurred_at, facts,
             state, open_since, ended_at FROM webhook_delivery, generate_series(1, 4) n",
    )
    .await;
    // All of one moment: none is left out and none comes twice.
    assert_eq!(dead_deliveries(&desk).await, (first..first + 5).collect::<Vec<_>>());
    let post =
        |path: &str, name: &str, body: Value| desk.call(Method::POST, path, name).json(&body);
    for (request, status) in [
        (post("/webhooks/replay", "ann", json!({ "deliveries": [first] })), 403),
        (post("/webhooks/replay", "acme", json!({ "deliveries": [first] })), 403),
        (post("/webhooks/erp/enable", "ann", json!({})), 403),
        (post("/webhooks/nobody/enable", "operator", json!({})), 404),
        (post("/webhooks/erp/test", "ann", json!({})), 403),
        (post("/webhooks/erp/test", "acme", json!({})), 403),
        (post("/webhooks/nobody/test", "operator", json!({})), 404),
        (post("/webhooks/replay", "operator", json!({})), 400),
        (post("/webhooks/replay", "operator", json!({ "dead_of": "nobody" })), 404),
        (desk.call(Method::GET, "/webhooks", "ann"), 403),
        (desk.call(Method::GET, "/webhooks/erp/deliveries", "acme"), 403),
        (desk.call(Method::GET, "/webhooks/nobody/deliveries", "operator"), 404),
        (desk.call(Method::GET, "/webhooks/erp/deliveries?cursor=x", "operator"), 400),
        (desk.call(Method::GET, "/webhooks/erp/deliveries?state=x", "operator"), 400),
    ] {
        let answer = send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
    let why = json!({ "deliveries": [first], "why": "lost" });
    let done = send(post("/webhooks/replay", "operator", why)).await.json();
    assert_eq!(done, json!({ "replayed": [first], "left": [] }));
    let done = send(post("/webhooks/replay", "operator", json!({ "dead_of": "erp" }))).await.json();
    assert_eq!(done["replayed"].as_array().unwrap().len(), 4);
    assert_eq!(
        desk.scalar("SELECT count(*) FROM webhook_delivery WHERE state = 'dead'").await,
        "0"
    );
    let done = send(post("/webhooks/erp/enable", "operator", json!({ "why": "mended" }))).await;
    assert_eq!(done.json(), json!({ "enabled": true }));
    let again = send(post("/webhooks/erp/enable", "operator", json!({}))).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let audit = "SELECT string_agg(operator || ' ' || action || ' ' || target || ' ' || why, '; ' ORDER BY id) FROM operator_action";
    assert_eq!(
        desk.scalar(audit).await,
        "web:operator replay webhook: lost; web:operator replay webhook:erp ; \
         web:operator enable webhook:erp mended"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_choice_an_unsaid_reason_and_a_key_of_other_signs_are_refused() {
    let desk = WebConsole::open().await;
    desk.refused("acme", &invoice(1.0)).await;
    let id = uuid::Uuid::nil();
    // An empty tenant would be every tenant's.
    for name in ["status", "tenant", "kind", "reason", "since"] {
        let mut filter = json!({ "status": "failed", "since": "1h" });
        filter[name] = " ".into();
        let body = json!({ "change": "retry", "filter": filter });
        let asked = desk.call(Method::POST, "/ingestions/change", "operator").json(&body);
        let answer = send(asked).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}: {answer:?}");
        assert_eq!(answer.json()["errors"][0]["pointer"], "/filter", "{answer:?}");
    }
    let seen = json!([{ "document_id": id, "version": "2026-01-01T00:00:00Z" }]);
    let asked = desk.call(Method::POST, "/reviews/reject", "ann");
    let unsaid = send(asked.json(&json!({ "documents": seen, "why": " " }))).await;
    assert_eq!(unsaid.status, StatusCode::UNPROCESSABLE_ENTITY, "{unsaid:?}");
    for bom in ["7", "yes"] {
        let path = format!("/ingestions/export?kind=invoice&form=json&bom={bom}");
        assert_eq!(desk.get(&path, "viewer").await.status, StatusCode::BAD_REQUEST, "{bom}");
    }
    let sent = async |key: &str| {
        let asked = desk.call(Method::POST, "/documents?name=a.pdf", "producer");
        let asked = asked.header("idempotency-key", key.to_owned());
        send(asked.body(documents::invoice("K-1"))).await
    };
    for key in ["\"a", "a\"", "a\"b", "\"\"", "a\tb", "\" a\"", &"a".repeat(201)] {
        assert_eq!(sent(key).await.status, StatusCode::BAD_REQUEST, "{key}");
    }
    assert_eq!(sent("march 7").await.status, StatusCode::OK);
    let again = sent("\"march 7\"").await;
    assert_eq!(again.header("idempotency-replayed"), "true", "in quotes or without: {again:?}");
    assert_eq!(desk.scalar("SELECT count(*) FROM ingestion WHERE status = 'failed'").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_in_the_address_is_refused_and_the_known_ones_are_said() {
    let desk = WebConsole::open().await;
    for (path, said) in [
        ("/ingestions?statuss=failed", "status"),
        ("/reviews?part=later", "reason"),
        ("/overview?x=1", "takes no names"),
    ] {
        let answer = desk.get(path, "viewer").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(said), "{answer:?}");
    }
    let empty = desk.get("/ingestions?status=", "viewer").await.json();
    assert_eq!(empty["errors"][0]["pointer"], "/status");
    assert_eq!(desk.get("/ingestions?status=failed", "viewer").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_says_that_no_text_in_an_address_is_empty_and_which_parts_a_problem_has() {
    let desk = WebConsole::open().await;
    let description = desk.get("/openapi.json", "viewer").await.json();
    let mut texts = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let schema = &parameter["schema"];
                let is_text = schema["type"].to_string().contains("string");
                if parameter["in"] == "query" && is_text {
                    let closed = ["pattern", "enum", "format"].map(|word| schema.get(word));
                    assert!(closed.iter().any(Option::is_some), "{path}: {parameter}");
                    texts += 1;
                }
            }
        }
    }
    assert!(texts > 5, "the parameters are not found");
    let problem = &description["components"]["schemas"]["Problem"];
    let answer = desk.get("/ingestions/nothing", "viewer").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    for part in problem["required"].as_array().unwrap() {
        assert!(answer.json().get(part.as_str().unwrap()).is_some(), "{part} is left out");
    }
}
